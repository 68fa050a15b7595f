/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  UPDATE and DELETE of one table in a single node.
 *
 * When the rows to change come straight from a scan of ours and no trigger
 * wants to see them, the scan changes them itself: find, filter, lock, check
 * again if somebody was faster, compute, write.  That saves carrying whole
 * rows through the plan, a second look-up of each, and the machinery for
 * re-checks: with one table, evaluating the conditions on the newest version
 * is all there is to that.
 *
 * The plan's lists (see fdw.h) go on for these plans.  fdw_private ends with
 *	... column numbers assigned, their count, 1 if the command counts rows
 * and fdw_exprs with one more list: the new values (TargetEntries).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "fdw/fdw.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

typedef struct MotDirect
{
	MotScan		scan;			/* must be first */
	ProjectionInfo *project;	/* UPDATE: the new row */
	bool		has_checks;
	bool		counts;			/* in the command's tag */
	TupleTableSlot *returned;	/* RETURNING asks for system columns, else
								 * NULL */
} MotDirect;

static bool
has_multiexpr(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->subLinkType == MULTIEXPR_SUBLINK)
		return true;
	return expression_tree_walker(node, has_multiexpr, context);
}

bool
MotPlanDirectModify(PlannerInfo *root, ModifyTable *plan,
					Index resultRelation, int subplan_index)
{
	ForeignScan *scan;
	bool		topmost;
	List	   *colnos = NIL;
	List	   *values = NIL;

	if (plan->operation != CMD_UPDATE && plan->operation != CMD_DELETE)
		return false;
	scan = MotFindTargetScan(plan, resultRelation, subplan_index, &topmost);
	if (scan == NULL)
		return false;

	/*
	 * an Append hands rows up that say which table they are of; ours would
	 * not
	 */
	if (plan->returningLists && !topmost)
		return false;

	if (plan->operation == CMD_UPDATE)
	{
		int			i;

		colnos = (List *) list_nth(plan->updateColnosLists, subplan_index);
		if (list_length(scan->scan.plan.targetlist) < list_length(colnos) ||
			has_multiexpr((Node *) scan->scan.plan.targetlist, NULL))
			return false;

		/* the assigned columns come first, in the same order */
		for (i = 0; i < list_length(colnos); i++)
		{
			TargetEntry *tle = list_nth_node(TargetEntry, scan->scan.plan.targetlist, i);

			values = lappend(values, makeTargetEntry(tle->expr, i + 1, NULL, false));
		}

		/*
		 * New values are computed when the row is locked already; if one of
		 * their functions changed the row, nobody would notice
		 */
		if (contain_volatile_functions((Node *) values))
			return false;
	}

	scan->fdw_exprs = lappend(list_copy(scan->fdw_exprs), values);

	/* our slots need nothing done for system columns; but see MotSlotReturn */
	scan->fsSystemCol = MotAsksSystem(plan->returningLists);
	scan->fdw_private = list_concat_copy(scan->fdw_private, colnos);
	scan->fdw_private = lappend_int(scan->fdw_private, list_length(colnos));
	scan->fdw_private = lappend_int(scan->fdw_private, plan->canSetTag);
	scan->operation = plan->operation;
	scan->resultRelation = resultRelation;

	/*
	 * Nothing of the row is needed above.  The executor insists on a column
	 * "wholerow" for UPDATE, but not on what it is.
	 */
	if (topmost)
	{
		scan->scan.plan.targetlist = NIL;
		if (plan->operation == CMD_UPDATE)
			scan->scan.plan.targetlist =
				list_make1(makeTargetEntry((Expr *) makeNullConst(INT4OID, -1, InvalidOid),
										   1, pstrdup("wholerow"), true));
	}
	else
	{
		/* the Append's rows have this shape, but there will be none */
		foreach_node(TargetEntry, tle, scan->scan.plan.targetlist)
		{
			if (!IsA(tle->expr, Var) && !IsA(tle->expr, Const))
				tle->expr = (Expr *) makeNullConst(exprType((Node *) tle->expr),
												   exprTypmod((Node *) tle->expr),
												   exprCollation((Node *) tle->expr));
		}
	}
	return true;
}

void
MotBeginDirectModify(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	Relation	rel = node->ss.ss_currentRelation;
	int			nprivate = list_length(plan->fdw_private);
	MotDirect  *direct;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	direct = palloc0(sizeof(MotDirect));
	MotScanInit(&direct->scan, node);
	direct->scan.writer = MotWriterBegin(rel, estate->es_snapshot, estate->es_output_cid);
	direct->scan.operation = plan->operation;
	direct->scan.filter = node->ss.ps.qual;
	node->ss.ps.qual = NULL;
	direct->has_checks = rel->rd_att->constr != NULL || rel->rd_rel->relispartition;
	direct->counts = list_nth_int(plan->fdw_private, nprivate - 1) != 0;
	direct->returned = plan->fsSystemCol ? MotSlotReturned(estate, rel) : NULL;
	node->fdw_state = direct;
	MotSlotAdopt(node->ss.ss_ScanTupleSlot);

	if (plan->operation == CMD_UPDATE)
	{
		int			ncolumns = list_nth_int(plan->fdw_private, nprivate - 2);
		List	   *colnos = list_copy_tail(plan->fdw_private, nprivate - 2 - ncolumns);
		TupleTableSlot *slot;

		colnos = list_truncate(colnos, ncolumns);
		slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsVirtual);
		direct->project = ExecBuildUpdateProjection(MotPlanList(plan, MOT_LIST_VALUES), true, colnos,
													RelationGetDescr(rel),
													node->ss.ps.ps_ExprContext,
													slot, &node->ss.ps);
	}
}

TupleTableSlot *
MotIterateDirectModify(ForeignScanState *node)
{
	MotDirect  *direct = (MotDirect *) node->fdw_state;
	MotScan    *scan = &direct->scan;
	EState	   *estate = node->ss.ps.state;
	ResultRelInfo *rinfo = node->resultRelInfo;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	TupleTableSlot *result = slot;

	while (MotScanNext(scan, econtext))
	{
		econtext->ecxt_scantuple = MotScanShow(scan);
		if (!ExecQual(scan->filter, econtext))
			InstrCountFiltered1(node, 1);
		else if (MotScanLockRow(scan, econtext, scan->filter))
		{
			if (direct->project)
			{
				result = ExecProject(direct->project);
				result->tts_tableOid = scan->relation->relid;
				if (direct->has_checks)
					MotCheckRow(rinfo, result, estate);
				MotWriterUpdate(scan->writer, scan->row, scan->version,
								result->tts_values, result->tts_isnull);
			}
			else
				MotWriterDelete(scan->writer, scan->row, scan->version, false);

			if (direct->counts)
				estate->es_processed++;
			if (rinfo->ri_projectReturning)
			{
				result->tts_tableOid = scan->relation->relid;
				MotRowToTid(scan->session, scan->row, &result->tts_tid);
				if (unlikely(direct->returned != NULL))
					result = MotSlotReturn(direct->returned, result, direct->project == NULL);
				rinfo->ri_projectReturning->pi_exprContext->ecxt_scantuple = result;
				return result;
			}
			if (node->ss.ps.instrument)
				node->ss.ps.instrument->tuplecount += 1;
		}
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
	}
	return ExecClearTuple(slot);
}
