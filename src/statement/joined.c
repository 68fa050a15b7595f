/*-------------------------------------------------------------------------
 *
 * joined.c
 *	  UPDATE ... FROM and DELETE ... USING; and whatever else of UPDATE and
 *	  DELETE the wrapper does not do in one node.
 *
 * The rows of a plan say by their ctid which row of the table is to be changed,
 * and have the new values.  As the wrapper does below the server's ModifyTable
 * (fdw/modify.c): the row is locked; if it has changed meanwhile, the plan is
 * evaluated once more with its newest version (recheck.c); then it is changed.
 *
 * The server wants the whole old row from the plan, too, in a column that
 * nobody here looks at: it is left out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "statement/statement.h"

struct MotJoined
{
	MotStatement *st;
	CmdType		operation;
	MotTable   *table;
	ResultRelInfo *rinfo;
	MotWriter  *writer;
	MotNode    *source;
	AttrNumber	ctid;
	MotRecheck *recheck;
	bool		has_checks;
	TupleTableSlot *old;		/* the version that is changed */
	TupleTableSlot *row;		/* the new one; DELETE: the same slot */
	ExprContext *econtext;
	ProjectionInfo *project;
};

/* ------------------------------------------------------------------ shape */

/*
 * The plan without the whole rows of its target, which are handed up as they
 * are.  Only what scans and joins hand up is looked at: what is left elsewhere, or
 * is done with such a row, has not the shape of a statement that is run here.
 */
static Plan *
strip_rows(Plan *plan, Index rti)
{
	List	   *targetlist = NIL;
	Plan	   *copy;

	if (plan == NULL || (IsA(plan, ForeignScan) && ((ForeignScan *) plan)->scan.scanrelid != rti))
		return plan;
	copy = MotPlanCopy(plan);
	if (copy == plan || IsA(plan, Agg) || IsA(plan, Limit) || IsA(plan, LockRows) || IsA(plan, SubqueryScan))
		return plan;
	copy->lefttree = strip_rows(plan->lefttree, rti);
	copy->righttree = strip_rows(plan->righttree, rti);
	foreach_node(TargetEntry, tle, plan->targetlist)
	{
		if (IsA(tle->expr, Var) && ((Var *) tle->expr)->vartype == RECORDOID)
		{
			tle = flatCopyTargetEntry(tle);
			tle->expr = (Expr *) makeNullConst(RECORDOID, -1, InvalidOid);
		}
		targetlist = lappend(targetlist, tle);
	}
	copy->targetlist = targetlist;
	return copy;
}

/* What is to be built of an UPDATE's or DELETE's plan. */
Plan *
MotJoinedPlan(const ModifyTable *plan)
{
	return strip_rows(outerPlan(plan), linitial_int(plan->resultRelations));
}

/* --------------------------------------------------------------- building */

MotJoined *
MotJoinedBuild(MotStatement *st, ModifyTable *plan, ResultRelInfo *rinfo, MotWriter *writer)
{
	MotJoined  *joined = palloc0(sizeof(MotJoined));
	Plan	   *child = outerPlan(plan);
	MotTable   *table = MotStatementTable(st, linitial_int(plan->resultRelations));
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(table->rel));
	List	   *locked = NIL;

	joined->st = st;
	joined->operation = plan->operation;
	joined->table = table;
	joined->rinfo = rinfo;
	joined->writer = writer;
	joined->has_checks = table->rel->rd_att->constr != NULL || table->rel->rd_rel->relispartition;
	joined->source = MotNodeBuild(st, MotJoinedPlan(plan));
	joined->ctid = ExecFindJunkAttributeInTlist(child->targetlist, "ctid");
	joined->recheck = MotRecheckMake(st, plan->rowMarks, plan->epqParam, &locked);
	joined->old = joined->row = MotMakeTupleTableSlot(desc, &TTSOpsHeapTuple);
	MotSlotAdopt(joined->old);
	if (plan->operation == CMD_UPDATE)
	{
		PlanState  *ps;

		joined->econtext = CreateExprContext(st->estate);
		ps = MotParentCreate(st, T_ModifyTableState, sizeof(ModifyTableState), (Plan *) plan,
							 joined->econtext);
		joined->row = MotMakeTupleTableSlot(desc, &TTSOpsVirtual);
		joined->project = ExecBuildUpdateProjection(child->targetlist, false,
													(List *) linitial(plan->updateColnosLists),
													desc, joined->econtext, joined->row, ps);
	}
	return joined;
}

/* The slot that RETURNING looks at. */
TupleTableSlot *
MotJoinedRow(MotJoined *joined)
{
	return joined->row;
}

/* --------------------------------------------------------------- execution */

void
MotJoinedStart(MotJoined *joined)
{
	MotRecheckStart(joined->recheck);
	joined->source->restart(joined->source);
}

void
MotJoinedRest(MotJoined *joined)
{
	ExecClearTuple(joined->old);
	ExecClearTuple(joined->row);
	MotRecheckRest(joined->recheck);
}

/*
 * Lock the row that the plan's row stands for; false: it is skipped.  If there
 * is a newer version, the plan's row is the one for that.
 */
static bool
lock_row(MotJoined *joined, TupleTableSlot **planned, mot_row **row, const mot_version **current)
{
	bool		isnull;
	Datum		ctid = slot_getattr(*planned, joined->ctid, &isnull);
	MotLockResult result = MotLockPlanned(joined->writer, joined->table->rel, joined->table->mr->table,
										  &joined->st->view, joined->operation, false,
										  ctid, isnull, row, current);

	if (result != MOT_LOCKED_NEWER)
		return result == MOT_LOCKED;
	MotRecheckPut(joined->recheck, joined->table, *row, *current);
	*planned = MotRecheckRow(joined->recheck, *planned);
	return *planned != NULL;
}

/*
 * Change the next row.  False: all is done.  MotJoinedRow's slot shows the row
 * as RETURNING wants it, *planned the plan's.
 */
bool
MotJoinedNext(MotJoined *joined, TupleTableSlot **planned)
{
	EState	   *estate = joined->st->estate;
	mot_row    *row;
	const mot_version *current;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		ResetPerTupleExprContext(estate);
		*planned = joined->source->next(joined->source);
		if (*planned == NULL)
			return false;
		if (lock_row(joined, planned, &row, &current))
			break;
	}

	MotSlotShow(joined->old, current);
	joined->old->tts_tableOid = joined->table->relid;
	MotStatementTid(joined->table, row, current, &joined->old->tts_tid);
	if (joined->operation == CMD_UPDATE)
	{
		ResetExprContext(joined->econtext);
		joined->econtext->ecxt_outertuple = *planned;
		joined->econtext->ecxt_scantuple = joined->old;
		ExecProject(joined->project);
		joined->row->tts_tableOid = joined->table->relid;
		if (joined->has_checks)
			MotCheckRow(joined->rinfo, joined->row, estate);
		MotWithin(joined->econtext->ecxt_per_tuple_memory,
				  MotWriterUpdate(joined->writer, row, current, joined->row->tts_values, joined->row->tts_isnull));
		MotStatementTid(joined->table, row, mot_row_newest(MotSession(), row), &joined->row->tts_tid);
	}
	else
		MotWithin(GetPerTupleMemoryContext(estate), MotWriterDelete(joined->writer, row, current, false));
	return true;
}
