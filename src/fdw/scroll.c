/*-------------------------------------------------------------------------
 *
 * scroll.c
 *	  WHERE CURRENT OF a cursor that was declared SCROLL.
 *
 * A foreign scan goes forward only, so the planner puts a Material node on top
 * of the plan of such a cursor.  The server finds the cursor's row by looking
 * at its scan, which is somewhere else then, and therefore does not look below
 * a Material.  The row that the cursor is on is the one that the Material has
 * handed out: so its rows get a column more, the ctid, which is junk to
 * everybody else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "nodes/makefuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"

#define CTID_NAME "mot scrolled ctid"

static planner_hook_type prev_planner = NULL;

/* The scan below a Material of ours to be: "simply updatable", as the server has it. */
static ForeignScan *
simple_scan(Plan *plan)
{
	if (!IsA(plan, Material))
		return NULL;
	plan = outerPlan(plan);
	if (IsA(plan, Limit))
		plan = outerPlan(plan);
	return IsA(plan, ForeignScan) && ((ForeignScan *) plan)->scan.scanrelid > 0 &&
		((ForeignScan *) plan)->operation == CMD_SELECT ? (ForeignScan *) plan : NULL;
}

static void
add_ctid(Plan *plan, ForeignScan *scan)
{
	AttrNumber	resno = list_length(scan->scan.plan.targetlist) + 1;
	Var		   *ctid = makeVar(scan->scan.scanrelid, SelfItemPointerAttributeNumber,
							   TIDOID, -1, InvalidOid, 0);

	for (; plan != (Plan *) scan; plan = outerPlan(plan))
		plan->targetlist = lappend(plan->targetlist,
								   makeTargetEntry((Expr *) makeVar(OUTER_VAR, resno, TIDOID, -1, InvalidOid, 0),
												   resno, CTID_NAME, true));
	plan->targetlist = lappend(plan->targetlist,
							   makeTargetEntry((Expr *) ctid, resno, CTID_NAME, true));
	scan->fsSystemCol = true;
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *stmt = (prev_planner ? prev_planner : standard_planner)
	(parse, query_string, cursor_options, params);

	if ((cursor_options & CURSOR_OPT_SCROLL) && stmt->commandType == CMD_SELECT &&
		stmt->planTree != NULL)
	{
		ForeignScan *scan = simple_scan(stmt->planTree);

		if (scan != NULL && MotIsMotTable(rt_fetch(scan->scan.scanrelid, stmt->rtable)->relid))
			add_ctid(stmt->planTree, scan);
	}
	return stmt;
}

/* the name, which may be a parameter; NULL: the server says what is wrong with it */
static const char *
cursor_name(const CurrentOfExpr *expr, ExprContext *econtext)
{
	ParamListInfo params = econtext->ecxt_param_list_info;
	ParamExternData *param;
	ParamExternData data;

	if (expr->cursor_name)
		return expr->cursor_name;
	if (params == NULL || expr->cursor_param <= 0 || expr->cursor_param > params->numParams)
		return NULL;
	param = params->paramFetch != NULL ?
		params->paramFetch(params, expr->cursor_param, false, &data) :
		&params->params[expr->cursor_param - 1];
	if (param->ptype != REFCURSOROID || param->isnull)
		return NULL;
	return TextDatumGetCString(param->value);
}

/*
 * Is the cursor one of those, on this table?  Then where its row is; raises if
 * it is on none.
 */
bool
MotScrolledCurrentOf(const CurrentOfExpr *expr, ExprContext *econtext, Oid relid, ItemPointer tid)
{
	const char *name = cursor_name(expr, econtext);
	Portal		portal = name != NULL ? GetPortalByName(name) : NULL;
	QueryDesc  *query;
	ForeignScan *scan;
	PlanState  *top;
	TargetEntry *last;
	TupleTableSlot *slot;
	Datum		value;
	bool		isnull;

	if (!PortalIsValid(portal) || portal->strategy != PORTAL_ONE_SELECT)
		return false;
	query = portal->queryDesc;
	if (query == NULL || query->estate == NULL || query->planstate == NULL)
		return false;
	top = query->planstate;
	scan = top->plan != NULL ? simple_scan(top->plan) : NULL;
	if (scan == NULL || top->plan->targetlist == NIL ||
		exec_rt_fetch(scan->scan.scanrelid, query->estate)->relid != relid)
		return false;
	last = llast_node(TargetEntry, top->plan->targetlist);
	if (!last->resjunk || last->resname == NULL || strcmp(last->resname, CTID_NAME) != 0)
		return false;

	slot = top->ps_ResultTupleSlot;
	if (portal->atStart || portal->atEnd || TupIsNull(slot))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_CURSOR_STATE),
				 errmsg("cursor \"%s\" is not positioned on a row", name)));
	value = slot_getattr(slot, last->resno, &isnull);
	Assert(!isnull);
	*tid = *(ItemPointer) DatumGetPointer(value);
	return true;
}

void
MotScrollInit(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
