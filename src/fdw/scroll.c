/*-------------------------------------------------------------------------
 *
 * scroll.c
 *	  WHERE CURRENT OF a cursor that was declared SCROLL.
 *
 * A foreign scan goes forward only, so the planner puts a Material node on top
 * of the plan of such a cursor.  The server finds the cursor's row by looking
 * for the table's scan, below Append, Limit and the like, and at the row that
 * it is on.  Below a Material it does not look: the scans there are at the row
 * that was read last, which need not be the one handed out.
 *
 * So three nodes of ours are added.  Below the Material one writes down with
 * each row which scan it came from, and the row's ctid, in two columns more.
 * Above it another takes these off again, and shows them to where the server
 * does look: there is a place for each table, a scan that has no rows of its
 * own but is on the row that the cursor is on.  The first place hands out the
 * rows; if there are several tables, an Append has the others beside it:
 *
 *		Append
 *		  Custom Scan (MOT cursor) on a
 *		    Materialize
 *		      Custom Scan (MOT cursor rows)
 *		        the cursor's plan
 *		  Custom Scan (MOT cursor) on b
 *
 * Whatever the server then says about the cursor is what it says of one that
 * needs no Material, about heap tables among the partitions as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

/* What is written down of a row: the scan's range table entry, 0 if it is from no table; ctid. */
#define NCOLUMNS 2

typedef struct Recorder
{
	CustomScanState css;		/* must be first */
	List	   *scans;			/* ScanStates */
} Recorder;

typedef struct Place
{
	CustomScanState css;		/* must be first */
	TupleTableSlot *result;
	HeapTuple	row;			/* has the ctid and the table, and nothing
								 * else */

	/* of the first, which the others find by a parameter, as CTE scans do */
	Bitmapset  *running;		/* range table entries */
	struct Place **places;		/* by range table entry */
	struct Place *on;			/* the cursor's row is its */
} Place;

static planner_hook_type prev_planner = NULL;

/* -------------------------------------------------- where the server looks */

/* Scans that search_plan_tree() finds in execCurrent.c: their range table entries. */
static void
planned_scans(Plan *plan, List **found)
{
	ListCell   *lc;

	if (plan == NULL)
		return;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
		case T_CustomScan:
			if (((Scan *) plan)->scanrelid > 0)
				*found = lappend_int(*found, ((Scan *) plan)->scanrelid);
			break;
		case T_Append:
			foreach(lc, ((Append *) plan)->appendplans)
				planned_scans(lfirst(lc), found);
			break;
		case T_Result:
		case T_Limit:
			planned_scans(outerPlan(plan), found);
			break;
		case T_SubqueryScan:
			planned_scans(((SubqueryScan *) plan)->subplan, found);
			break;
		default:
			break;
	}
}

static bool
is_scan(PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_ForeignScanState:
		case T_CustomScanState:
			return ((ScanState *) state)->ss_currentRelation != NULL;
		default:
			return false;
	}
}

/* The same when they run; pruned ones are missing. */
static void
running_scans(PlanState *state, List **found)
{
	int			i;

	if (state == NULL)
		return;
	switch (nodeTag(state))
	{
		case T_AppendState:
			for (i = 0; i < ((AppendState *) state)->as_nplans; i++)
				running_scans(((AppendState *) state)->appendplans[i], found);
			break;
		case T_ResultState:
		case T_LimitState:
			running_scans(outerPlanState(state), found);
			break;
		case T_SubqueryScanState:
			running_scans(((SubqueryScanState *) state)->subplan, found);
			break;
		default:
			if (is_scan(state))
				*found = lappend(*found, state);
			break;
	}
}

static Index
entry_of(const ScanState *scan)
{
	return ((Scan *) scan->ps.plan)->scanrelid;
}

/* -------------------------------------------------------- below the Material */

static void
begin_recorder(CustomScanState *css, EState *estate, int eflags)
{
	Recorder   *recorder = (Recorder *) css;

	outerPlanState(css) = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);
	running_scans(outerPlanState(css), &recorder->scans);
}

/*
 * The scan that the row at hand comes from.  Others may be on rows as well: a
 * Limit does not go on until its scan has ended.
 */
static ScanState *
scan_with_row(PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_AppendState:
			{
				AppendState *append = (AppendState *) state;
				ScanState  *scan = NULL;

				if (append->as_nasyncplans == 0)
					return scan_with_row(append->appendplans[append->as_whichplan]);
				/* which of those it is, nobody says */
				for (int i = 0; i < append->as_nplans && scan == NULL; i++)
					scan = scan_with_row(append->appendplans[i]);
				return scan;
			}
		case T_ResultState:
		case T_LimitState:
			return outerPlanState(state) != NULL ? scan_with_row(outerPlanState(state)) : NULL;
		case T_SubqueryScanState:
			return scan_with_row(((SubqueryScanState *) state)->subplan);
		default:
			return is_scan(state) && !TupIsNull(((ScanState *) state)->ss_ScanTupleSlot) ?
				(ScanState *) state : NULL;
	}
}

static TupleTableSlot *
next_recorded(CustomScanState *css)
{
	TupleTableSlot *row = ExecProcNode(outerPlanState(css));
	TupleTableSlot *result = css->ss.ss_ScanTupleSlot;
	ScanState  *scan;
	int			n;
	Datum	   *ctid;
	bool	   *no_ctid;

	if (TupIsNull(row))
		return NULL;
	scan = scan_with_row(outerPlanState(css));

	ExecClearTuple(result);
	slot_getallattrs(row);
	n = row->tts_tupleDescriptor->natts;
	memcpy(result->tts_values, row->tts_values, n * sizeof(Datum));
	memcpy(result->tts_isnull, row->tts_isnull, n * sizeof(bool));

	ctid = &result->tts_values[n + 1];
	no_ctid = &result->tts_isnull[n + 1];
	*no_ctid = scan == NULL;
	if (scan != NULL && IsA(scan, IndexOnlyScanState))
	{
		/* its row need not have one */
		*ctid = PointerGetDatum(&((IndexOnlyScanState *) scan)->ioss_ScanDesc->xs_heaptid);
	}
	else if (scan != NULL)
		*ctid = slot_getsysattr(scan->ss_ScanTupleSlot, SelfItemPointerAttributeNumber, no_ctid);
	result->tts_values[n] = Int32GetDatum(*no_ctid ? 0 : entry_of(scan));
	result->tts_isnull[n] = false;
	return ExecStoreVirtualTuple(result);
}

static void
end_below(CustomScanState *css)
{
	if (outerPlanState(css) != NULL)
		ExecEndNode(outerPlanState(css));
}

static void
rescan_below(CustomScanState *css)
{
	if (outerPlanState(css) != NULL && outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static const CustomExecMethods recorder_exec = {
	.CustomName = "MOT cursor rows",
	.BeginCustomScan = begin_recorder,
	.ExecCustomScan = next_recorded,
	.EndCustomScan = end_below,
	.ReScanCustomScan = rescan_below,
};

static Node *
create_recorder(CustomScan *plan)
{
	Recorder   *recorder = palloc0(sizeof(Recorder));

	NodeSetTag(recorder, T_CustomScanState);
	recorder->css.methods = &recorder_exec;
	return (Node *) recorder;
}

static const CustomScanMethods recorder_methods = {"MOT cursor rows", create_recorder};

/* --------------------------------------------------------------- the places */

static HeapTuple
row_without_contents(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = palloc0(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	HeapTuple	tuple;

	memset(isnull, true, desc->natts * sizeof(bool));
	tuple = heap_form_tuple(desc, values, isnull);
	tuple->t_tableOid = RelationGetRelid(rel);
	return tuple;
}

static void
begin_place(CustomScanState *css, EState *estate, int eflags)
{
	Place	   *place = (Place *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	ParamExecData *param = &estate->es_param_exec_vals[linitial_int(plan->custom_private)];
	Place	   *first;

	place->result = css->ss.ss_ScanTupleSlot;
	place->row = row_without_contents(css->ss.ss_currentRelation);
	css->ss.ss_ScanTupleSlot = ExecAllocTableSlot(&estate->es_tupleTable,
												  RelationGetDescr(css->ss.ss_currentRelation),
												  &TTSOpsHeapTuple);
	if (outerPlan(plan) != NULL)
	{
		ListCell   *lc;

		outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);
		place->places = palloc0((estate->es_range_table_size + 1) * sizeof(Place *));
		foreach(lc, ((Recorder *) outerPlanState(outerPlanState(css)))->scans)
			place->running = bms_add_member(place->running, entry_of(lfirst(lc)));
		param->value = PointerGetDatum(place);
		param->isnull = false;
	}
	first = (Place *) DatumGetPointer(param->value);
	if (bms_is_member(entry_of(&css->ss), first->running))
		first->places[entry_of(&css->ss)] = place;
	else
		css->ss.ss_currentRelation = NULL;	/* pruned: nothing for the server
											 * to find */
}

static TupleTableSlot *
next_of_cursor(CustomScanState *css)
{
	Place	   *first = (Place *) css;
	TupleTableSlot *result = first->result;
	TupleTableSlot *row;
	int			n;
	Index		entry;

	if (outerPlanState(css) == NULL)
		return NULL;
	row = ExecProcNode(outerPlanState(css));
	if (first->on != NULL)
		ExecClearTuple(first->on->css.ss.ss_ScanTupleSlot);
	first->on = NULL;
	if (TupIsNull(row))
		return NULL;

	slot_getallattrs(row);
	n = row->tts_tupleDescriptor->natts - NCOLUMNS;
	entry = DatumGetInt32(row->tts_values[n]);
	if (entry != 0)
	{
		Place	   *on = first->on = first->places[entry];

		on->row->t_self = *(ItemPointer) DatumGetPointer(row->tts_values[n + 1]);
		ExecStoreHeapTuple(on->row, on->css.ss.ss_ScanTupleSlot, false);
	}
	ExecClearTuple(result);
	memcpy(result->tts_values, row->tts_values, n * sizeof(Datum));
	memcpy(result->tts_isnull, row->tts_isnull, n * sizeof(bool));
	return ExecStoreVirtualTuple(result);
}

static const CustomExecMethods place_exec = {
	.CustomName = "MOT cursor",
	.BeginCustomScan = begin_place,
	.ExecCustomScan = next_of_cursor,
	.EndCustomScan = end_below,
	.ReScanCustomScan = rescan_below,
};

static Node *
create_place(CustomScan *plan)
{
	Place	   *place = palloc0(sizeof(Place));

	NodeSetTag(place, T_CustomScanState);
	place->css.methods = &place_exec;
	return (Node *) place;
}

static const CustomScanMethods place_methods = {"MOT cursor", create_place};

/* ---------------------------------------------------------------- planning */

/* a node's columns, as the node above has them: "varno" says how that finds them */
static List *
columns_of(List *targetlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst_node(TargetEntry, lc));

		tle->expr = (Expr *) makeVar(varno, tle->resno, exprType((Node *) tle->expr),
									 exprTypmod((Node *) tle->expr),
									 exprCollation((Node *) tle->expr), 0);
		result = lappend(result, tle);
	}
	return result;
}

static void
like_plan(Plan *plan, const Plan *model)
{
	plan->startup_cost = model->startup_cost;
	plan->total_cost = model->total_cost;
	plan->plan_rows = model->plan_rows;
	plan->plan_width = model->plan_width;
	plan->extParam = bms_copy(model->extParam);
	plan->allParam = bms_copy(model->allParam);
}

static Plan *
add_recorder(Plan *below)
{
	static const Oid types[NCOLUMNS] = {INT4OID, TIDOID};
	CustomScan *recorder = makeNode(CustomScan);
	List	   *columns = columns_of(below->targetlist, OUTER_VAR);
	int			i;

	for (i = 0; i < NCOLUMNS; i++)
		columns = lappend(columns, makeTargetEntry((Expr *) makeNullConst(types[i], -1, InvalidOid),
												   list_length(columns) + 1, NULL, true));
	like_plan(&recorder->scan.plan, below);
	recorder->scan.plan.lefttree = below;
	recorder->scan.plan.targetlist = columns_of(columns, INDEX_VAR);
	recorder->custom_scan_tlist = columns;
	recorder->methods = &recorder_methods;
	return &recorder->scan.plan;
}

static CustomScan *
make_place(Index entry, int param)
{
	CustomScan *place = makeNode(CustomScan);

	place->scan.scanrelid = entry;
	place->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	place->custom_private = list_make1_int(param);
	place->methods = &place_methods;
	return place;
}

/* Let the server find where the cursor is: see the file's comment. */
static void
add_places(PlannedStmt *stmt, List *entries)
{
	Plan	   *material = stmt->planTree;
	List	   *columns = columns_of(material->targetlist, OUTER_VAR);
	int			param = list_length(stmt->paramExecTypes);
	List	   *places = NIL;
	CustomScan *first;
	ListCell   *lc;

	stmt->paramExecTypes = lappend_oid(stmt->paramExecTypes, INTERNALOID);
	foreach(lc, entries)
		places = lappend(places, make_place(lfirst_int(lc), param));

	outerPlan(material) = add_recorder(outerPlan(material));
	material->targetlist = columns_of(outerPlan(material)->targetlist, OUTER_VAR);
	first = linitial_node(CustomScan, places);
	like_plan(&first->scan.plan, material);
	first->scan.plan.lefttree = material;
	first->scan.plan.targetlist = columns_of(columns, INDEX_VAR);
	first->custom_scan_tlist = columns;
	stmt->planTree = &first->scan.plan;

	if (list_length(places) > 1)
	{
		Append	   *append = makeNode(Append);

		like_plan(&append->plan, material);
		append->plan.targetlist = columns_of(columns, OUTER_VAR);
		append->appendplans = places;
		append->first_partial_plan = list_length(places);
		stmt->planTree = &append->plan;
	}
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *stmt = (prev_planner ? prev_planner : standard_planner)
	(parse, query_string, cursor_options, params);

	if ((cursor_options & CURSOR_OPT_SCROLL) && stmt->commandType == CMD_SELECT &&
		stmt->planTree != NULL && IsA(stmt->planTree, Material))
	{
		List	   *entries = NIL;
		ListCell   *lc;

		planned_scans(outerPlan(stmt->planTree), &entries);
		foreach(lc, entries)
			if (MotIsMotTable(rt_fetch(lfirst_int(lc), stmt->rtable)->relid))
		{
			add_places(stmt, entries);
			break;
		}
	}
	return stmt;
}

void
MotScrollInit(void)
{
	RegisterCustomScanMethods(&recorder_methods);
	RegisterCustomScanMethods(&place_methods);
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
