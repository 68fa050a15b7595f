/*-------------------------------------------------------------------------
 *
 * takeover.c
 *	  Which nodes are taken over, and what EXPLAIN (VERBOSE) says of them.
 *
 * When the executor has made a query's nodes, in a leader or a worker, those that read
 * memory-optimized tables and that we know get our function in the
 * place of their own.  (What EvalPlanQual makes for itself it makes elsewhere, and that stays
 * as it is.)  Finding ours again from the node the server calls us with is a search
 * of a list, which has as many entries as there are such nodes in running queries.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"
#include "compat/explain.h"
#include "fdw/fdw.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "xact/xact.h"

static bool batches = true;		/* mot.batches */

static MotTakenNode *taken_nodes = NULL;

/* ------------------------------------------------------------------- nodes */

/* What is asked for again and again, for each row of a join, comes to the front. */
MotTakenNode *
MotTakenFind(PlanState *ps)
{
	MotTakenNode **link = &taken_nodes;
	MotTakenNode *taken = taken_nodes;

	while (taken->ps != ps)
	{
		link = &taken->next;
		taken = *link;
	}
	*link = taken->next;
	taken->next = taken_nodes;
	taken_nodes = taken;
	return taken;
}

/* the query's memory goes */
static void
forget(void *arg)
{
	MotTakenNode **link = &taken_nodes;

	while (*link != (MotTakenNode *) arg)
		link = &(*link)->next;
	*link = (*link)->next;
}

static void
take(PlanState *ps, ExecProcNodeMtd function, bool hidden)
{
	MemoryContext cxt = ps->state->es_query_cxt;
	MotTakenNode *taken = MemoryContextAllocZero(cxt, sizeof(MotTakenNode));

	taken->ps = ps;
	taken->hidden = hidden;
	taken->below = ps->ExecProcNodeReal;
	taken->next = taken_nodes;
	taken_nodes = taken;
	taken->gone.func = forget;
	taken->gone.arg = taken;
	MemoryContextRegisterResetCallback(cxt, &taken->gone);
	ExecSetExecProcNode(ps, function);
}

/* Does it read a memory-optimized table, itself or below? */
static bool
reads_ours(PlanState *ps, void *context)
{
	if (ps == NULL)
		return false;
	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			return MotIsOrdinaryTable(RelationGetRelid(((ScanState *) ps)->ss_currentRelation));
		case T_ForeignScanState:
			return ((ForeignScanState *) ps)->fdwroutine->IterateForeignScan == MotIterateForeignScan;
		default:
			return planstate_tree_walker(ps, reads_ours, context);
	}
}

/*
 * A node that could be ours: *why_not says why it is not.  Its function, or NULL: it is of another
 * kind.
 */
static ExecProcNodeMtd
function_of(PlanState *ps, const char **why_not)
{
	if (IsA(ps, AggState) && reads_ours(outerPlanState(ps), NULL))
	{
		*why_not = MotFillWhyNot((AggState *) ps);
		return MotFillAgg;
	}
	if (IsA(ps, HashJoinState) && reads_ours(ps, NULL))
	{
		*why_not = MotProbeWhyNot((HashJoinState *) ps);
		return MotProbeHashJoin;
	}
	if (MotRowsAreOurs(ps))
	{
		*why_not = MotRowsWhyNot(ps);
		return MotRowsScan;
	}
	return NULL;
}

static bool
take_nodes(PlanState *ps, void *hidden)
{
	const char *why_not;
	ExecProcNodeMtd function = function_of(ps, &why_not);
	bool		others = IsA(ps, AggState) || IsA(ps, HashJoinState) || *(bool *) hidden;

	if (function != NULL && why_not == NULL)
		take(ps, function, *(bool *) hidden);
	return planstate_tree_walker(ps, take_nodes, &others);
}

/*
 * Why is no node of the query ours?  Where rows are changed or locked, somebody may have got
 * between the nodes already (fdw/joined.c), and EvalPlanQual looks at what they have found.
 */
static const char *
plan_why_not(const PlannedStmt *stmt)
{
	if (!batches)
		return "mot.batches is off";
	if ((stmt->commandType != CMD_SELECT && stmt->commandType != CMD_INSERT) ||
		stmt->hasModifyingCTE || stmt->rowMarks != NIL)
		return "rows are changed or locked";
	return NULL;
}

static void
nodes_made(QueryDesc *query)
{
	bool		hidden = false;

	if (MotEngine != NULL && query->planstate != NULL && plan_why_not(query->plannedstmt) == NULL &&
		(query->estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		(void) take_nodes(query->planstate, &hidden);
}

/* ----------------------------------------------------------------- EXPLAIN */

/* Of a node that is ours: has it machine code? */
static const char *
describe_code(PlanState *ps)
{
	MotTakenNode *taken = taken_nodes;
	const char *why_not;

	while (taken != NULL && taken->ps != ps)
		taken = taken->next;
	if (IsA(ps, HashJoinState))
		why_not = MotProbeCodeWhyNot((HashJoinState *) ps, taken != NULL ? taken->probe : NULL);
	else
		why_not = IsA(ps, AggState) ? MotFillCodeWhyNot((AggState *) ps, taken != NULL ? taken->fill : NULL) :
			MotRowsCodeWhyNot(ps, taken != NULL ? taken->rows : NULL);
	if (why_not != NULL)
		return psprintf("yes, without machine code (%s)", why_not);
	if (IsA(ps, AggState) && ((const Agg *) ps->plan)->aggstrategy == AGG_HASHED)
		why_not = MotKeysWhyNot((const AggState *) ps);
	return why_not == NULL ? "yes, by machine code" : psprintf("yes, by machine code, but for keys (%s)", why_not);
}

/* NULL: it is not worth a word (of scans only conditions are) */
static const char *
describe_node(PlanState *ps, const PlannedStmt *stmt)
{
	const char *why_not;
	ExecProcNodeMtd function = MotEngine != NULL ? function_of(ps, &why_not) : NULL;
	const char *query_why_not = function != NULL ? plan_why_not(stmt) : NULL;

	if (query_why_not != NULL)
		why_not = query_why_not;
	if (function == NULL || (function == MotRowsScan && (why_not != NULL || ps->plan->qual == NIL)))
		return NULL;
	return why_not == NULL ? describe_code(ps) : psprintf("no (%s)", why_not);
}

void
MotBatchInit(void)
{
	DefineCustomBoolVariable("mot.batches",
							 "Groups and joins rows of memory-optimized tables without the server's expressions.",
							 NULL,
							 &batches, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mot.jit_above_scanned",
							"Rows above which conditions, grouping and aggregates of a query are compiled to machine code.",
							"-1 never compiles.",
							&mot_jit_above_scanned, 100000, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	MotNodesMade = nodes_made;
	MotCompilerSooner = MotDecimalFunction;
	MotExplainNode = describe_node;
	MotExplainInit();
}
