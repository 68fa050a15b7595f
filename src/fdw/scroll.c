/*-------------------------------------------------------------------------
 *
 * scroll.c
 *	  Scans of cursors that scroll.
 *
 * A foreign scan goes forward only, so the planner puts a Material node on top
 * of the plan of a cursor that was declared SCROLL.  WHERE CURRENT OF does not look
 * below that for the cursor's row: the scans there are at the row that was read
 * last, which need not be the one handed out.
 *
 * So such a plan gets scans that go both ways: a node of ours above each foreign scan
 * remembers the rows that it has found.  They stay where they are as long as the
 * cursor's snapshot is there, so which row and version is all that it takes.  If the plan
 * can then be run backwards as it is, it is, as a heap table's would be; else it
 * keeps its Material, as a heap table's would.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/calls.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "nodes/extensible.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"

typedef struct Scroll
{
	CustomScanState css;		/* must be first */
	bool		complete;		/* all rows have been found */
	int64		at;				/* the row handed out; -1: before the first */
	MotFoundRows found;
} Scroll;

static planner_hook_type prev_planner = NULL;

/* --------------------------------------------------------------- execution */

static void
begin_scroll(CustomScanState *css, EState *estate, int eflags)
{
	Scroll	   *scroll = (Scroll *) css;

	/* (it goes forward only) */
	ForeignScanState *fss = (ForeignScanState *) ExecInitNode(outerPlan(css->ss.ps.plan), estate,
															  eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	outerPlanState(css) = &fss->ss.ps;
	scroll->at = -1;
	scroll->found.cxt = estate->es_query_cxt;

	/* its rows are ours; what is made of them expected another kind of slot */
	css->ss.ss_ScanTupleSlot = fss->ss.ss_ScanTupleSlot;
	css->ss.ps.scanopsfixed = false;
	ExecAssignScanProjectionInfo(&css->ss);
}

static TupleTableSlot *
next_row(ScanState *ss)
{
	Scroll	   *scroll = (Scroll *) ss;
	ForeignScanState *fss = (ForeignScanState *) outerPlanState(ss);
	MotScan    *scan = (MotScan *) fss->fdw_state;

	if (ScanDirectionIsBackward(ss->ps.state->es_direction))
		scroll->at = Max(scroll->at - 1, -1);
	else if (scroll->at < scroll->found.n && ++scroll->at == scroll->found.n && !scroll->complete)
	{
		TupleTableSlot *row = ExecProcNode(&fss->ss.ps);

		if (!TupIsNull(row))
		{
			MotFoundAdd(&scroll->found, scan->row, scan->version);
			return ss->ss_ScanTupleSlot;
		}
		scroll->complete = true;
	}
	if (scroll->at < 0 || scroll->at == scroll->found.n)
		return ExecClearTuple(ss->ss_ScanTupleSlot);
	scan->row = scroll->found.rows[scroll->at].row;
	scan->version = scroll->found.rows[scroll->at].version;
	return MotScanShow(scan);
}

static bool
recheck_row(ScanState *ss, TupleTableSlot *slot)
{
	return true;				/* (such a cursor locks nothing) */
}

static TupleTableSlot *
exec_scroll(CustomScanState *css)
{
	return ExecScan(&css->ss, next_row, recheck_row);
}

static void
end_scroll(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
}

static void
rescan_scroll(CustomScanState *css)
{
	Scroll	   *scroll = (Scroll *) css;

	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	scroll->at = -1;
	if (outerPlanState(css)->chgParam != NULL)
	{
		scroll->complete = false;
		scroll->found.n = 0;
	}
}

static const CustomExecMethods scroll_exec = {
	.CustomName = "MOT cursor",
	.BeginCustomScan = begin_scroll,
	.ExecCustomScan = exec_scroll,
	.EndCustomScan = end_scroll,
	.ReScanCustomScan = rescan_scroll,
};

static Node *
create_scroll(CustomScan *plan)
{
	Scroll	   *scroll = palloc0(sizeof(Scroll));

	NodeSetTag(scroll, T_CustomScanState);
	scroll->css.methods = &scroll_exec;
	return (Node *) scroll;
}

static const CustomScanMethods scroll_methods = {"MOT cursor", create_scroll};

/* ---------------------------------------------------------------- planning */

/* the scan below looks for rows, the node makes of them what is asked for */
static Plan *
make_scroll(ForeignScan *below)
{
	CustomScan *scroll = makeNode(CustomScan);

	scroll->scan = below->scan;
	NodeSetTag(scroll, T_CustomScan);
	scroll->scan.plan.qual = NIL;
	scroll->scan.plan.lefttree = &below->scan.plan;
	scroll->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	scroll->methods = &scroll_methods;
	below->scan.plan.targetlist = NIL;
	below->scan.plan.initPlan = NIL;
	return &scroll->scan.plan;
}

/*
 * The plan with such scans wherever the server looks for a cursor's row: search_plan_tree() in
 * execCurrent.c.
 */
static Plan *
both_ways(Plan *plan, const PlannedStmt *stmt)
{
	ListCell   *lc;

	if (plan == NULL)
		return NULL;
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			if (((Scan *) plan)->scanrelid > 0 &&
				MotIsMotTable(rt_fetch(((Scan *) plan)->scanrelid, stmt->rtable)->relid))
				return make_scroll((ForeignScan *) plan);
			break;
		case T_Append:
			foreach(lc, ((Append *) plan)->appendplans)
				lfirst(lc) = both_ways(lfirst(lc), stmt);
			break;
		case T_Result:
		case T_Limit:
			outerPlan(plan) = both_ways(outerPlan(plan), stmt);
			break;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan = both_ways(((SubqueryScan *) plan)->subplan, stmt);
			break;
		default:
			break;
	}
	return plan;
}

static PlannedStmt *
plan_query(MOT_PLANNER_PARAMETERS)
{
	PlannedStmt *stmt = (prev_planner ? prev_planner : standard_planner)
	(MOT_PLANNER_ARGUMENTS);

	if ((cursor_options & CURSOR_OPT_SCROLL) && stmt->commandType == CMD_SELECT &&
		stmt->planTree != NULL && IsA(stmt->planTree, Material))
	{
		Plan	   *plan = both_ways(copyObject(outerPlan(stmt->planTree)), stmt);

		if (ExecSupportsBackwardScan(plan))
		{
			/* the server has moved these to the Material */
			plan->initPlan = stmt->planTree->initPlan;
			stmt->planTree = plan;
		}
	}
	return stmt;
}

void
MotScrollInit(void)
{
	RegisterCustomScanMethods(&scroll_methods);
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
