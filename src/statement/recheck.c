/*-------------------------------------------------------------------------
 *
 * recheck.c
 *	  What becomes of a join's row when one of its tables' rows has changed
 *	  meanwhile.
 *
 * At READ COMMITTED the newest version of a locked row counts: the join is
 * evaluated once more with it, and with the rows it had of its other tables.
 * That is seldom, and what exactly is to be done depends on the kinds of joins,
 * so it is left to the server: EvalPlanQual makes its own nodes of the plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/calls.h"
#include "statement/statement.h"

struct MotRecheck
{
	MotStatement *st;
	Plan	   *plan;			/* what is evaluated */
	int			param;			/* its epqParam */
	List	   *marks;			/* ExecAuxRowMarks of tables that are not
								 * locked */
	bool		begun;
	EPQState	epq;
};

/*
 * The rows of all tables have to be known by their ctids, as far as there are marks, which are all
 * at one node.
 */
const char *
MotRecheckWhyNot(const Plan *plan, List *row_marks, const PlannedStmt *stmt)
{
	Bitmapset  *rtis = NULL;

	if (list_length(row_marks) != list_length(stmt->rowMarks))
		return "rows are locked in another way";
	MotPlanTables(plan, &rtis);
	foreach_node(PlanRowMark, mark, row_marks)
	{
		if (mark->isParent || mark->rti != mark->prti || mark->markType == ROW_MARK_COPY ||
			!bms_is_member(mark->rti, rtis))
			return "rows are locked in another way";
	}
	return NULL;
}

/*
 * The plan's row marks, of which the server's functions want to know; result:
 * those of tables that are locked (ExecAuxRowMarks), in their order.
 */
MotRecheck *
MotRecheckMake(MotStatement *st, List *row_marks, int param, List **locked)
{
	Plan	   *plan = st->plan->planTree;
	MotRecheck *recheck = palloc0(sizeof(MotRecheck));
	EState	   *estate = st->estate;

	/* what the server's own nodes are made of */
	plan = IsA(plan, Limit) ? outerPlan(outerPlan(plan)) : outerPlan(plan);
	recheck->st = st;
	recheck->plan = plan;
	recheck->param = param;
	estate->es_rowmarks = palloc0(estate->es_range_table_size * sizeof(ExecRowMark *));
	foreach_node(PlanRowMark, mark, row_marks)
	{
		ExecRowMark *erm = palloc0(sizeof(ExecRowMark));
		ExecAuxRowMark *aerm;

		erm->rti = mark->rti;
		erm->prti = mark->prti;
		erm->relid = MotStatementTable(st, mark->rti)->relid;
		erm->rowmarkId = mark->rowmarkId;
		erm->markType = mark->markType;
		erm->strength = mark->strength;
		erm->waitPolicy = mark->waitPolicy;
		estate->es_rowmarks[mark->rti - 1] = erm;
		aerm = ExecBuildAuxRowMark(erm, plan->targetlist);
		if (RowMarkRequiresRowShareLock(mark->markType))
			*locked = lappend(*locked, aerm);
		else
			recheck->marks = lappend(recheck->marks, aerm);
	}
	return recheck;
}

/* A new execution. */
void
MotRecheckStart(MotRecheck *recheck)
{
	EState	   *estate = recheck->st->estate;

	for (Index i = 0; i < estate->es_range_table_size; i++)
	{
		ExecRowMark *erm = estate->es_rowmarks[i];

		if (erm == NULL)
			continue;
		erm->relation = MotStatementTable(recheck->st, erm->rti)->rel;
		erm->ermActive = false;
		ItemPointerSetInvalid(&erm->curCtid);
	}
}

void
MotRecheckRest(MotRecheck *recheck)
{
	if (recheck->begun)
		EvalPlanQualEnd(&recheck->epq);
	recheck->begun = false;
}

/* The row of a table that is to count. */
void
MotRecheckPut(MotRecheck *recheck, MotTable *table, mot_row *row, const mot_version *version)
{
	TupleTableSlot *slot;

	if (!recheck->begun)
	{
		MotWithin(recheck->st->exec_cxt,
				  MotEvalPlanQualInit(&recheck->epq, recheck->st->estate, recheck->plan, recheck->marks, recheck->param));
		recheck->begun = true;
	}
	slot = EvalPlanQualSlot(&recheck->epq, table->rel, table->rti);
	MotSlotStore(slot, version);
	slot->tts_tableOid = table->relid;
	MotStatementTid(table, row, version, &slot->tts_tid);
}

/* "was" is the plan's row; the one in its place, or NULL. */
TupleTableSlot *
MotRecheckRow(MotRecheck *recheck, TupleTableSlot *was)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(recheck->st->exec_cxt);
	TupleTableSlot *slot;

	EvalPlanQualBegin(&recheck->epq);
	EvalPlanQualSetSlot(&recheck->epq, was);
	slot = EvalPlanQualNext(&recheck->epq);
	MemoryContextSwitchTo(oldcxt);
	return TupIsNull(slot) ? NULL : slot;
}
