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
 * The server has no place for an extension's words at its own nodes in EXPLAIN.
 * So they come in a line of the query's, "MOT Batches", which is
 * written when the query ends, while that part of the output is still open.
 * For that we must know of the output, which ExplainOneQuery_hook tells us.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"
#include "commands/explain.h"
#include "fdw/fdw.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "xact/xact.h"

static bool batches = true;		/* mot.batches */

static MotTakenNode *taken_nodes = NULL;

static ExplainOneQuery_hook_type prev_ExplainOneQuery = NULL;
static ExplainState *explaining = NULL;

/* ------------------------------------------------------------------- nodes */

MotTakenNode *
MotTakenFind(PlanState *ps)
{
	MotTakenNode **link = &taken_nodes;
	MotTakenNode *taken;

	while ((taken = *link)->ps != ps)
		link = &taken->next;
	/* it will be asked for again */
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
take(PlanState *ps, ExecProcNodeMtd function)
{
	MemoryContext cxt = ps->state->es_query_cxt;
	MotTakenNode *taken = MemoryContextAllocZero(cxt, sizeof(MotTakenNode));

	taken->ps = ps;
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

static bool
take_nodes(PlanState *ps, void *context)
{
	if (IsA(ps, AggState) && reads_ours(outerPlanState(ps), NULL) && MotFillWhyNot((AggState *) ps) == NULL)
		take(ps, MotFillAgg);
	return planstate_tree_walker(ps, take_nodes, context);
}

static void
nodes_made(QueryDesc *query)
{
	if (batches && MotEngine != NULL && query->planstate != NULL &&
		(query->estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		(void) take_nodes(query->planstate, NULL);
}

/* ----------------------------------------------------------------- EXPLAIN */

static const char *
name_of(const AggState *agg)
{
	switch (((const Agg *) agg->ss.ps.plan)->aggstrategy)
	{
		case AGG_HASHED:
			return "HashAggregate";
		case AGG_SORTED:
			return "GroupAggregate";
		case AGG_MIXED:
			return "MixedAggregate";
		default:
			return "Aggregate";
	}
}

static bool
describe_nodes(PlanState *ps, void *context)
{
	List	  **lines = (List **) context;

	if (IsA(ps, AggState) && reads_ours(outerPlanState(ps), NULL))
	{
		AggState   *agg = (AggState *) ps;
		const char *why_not = batches ? MotFillWhyNot(agg) : "mot.batches is off";

		*lines = lappend(*lines, why_not == NULL ? psprintf("%s: yes", name_of(agg)) :
						 psprintf("%s: no (%s)", name_of(agg), why_not));
	}
	return planstate_tree_walker(ps, describe_nodes, context);
}

static void
nodes_go(QueryDesc *query)
{
	List	   *lines = NIL;

	if (likely(explaining == NULL) || explaining->pstmt != query->plannedstmt ||
		MotEngine == NULL || query->planstate == NULL)
		return;
	(void) describe_nodes(query->planstate, &lines);
	if (lines != NIL)
		ExplainPropertyList("MOT Batches", lines, explaining);
}

static void
explain_one_query(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
				  const char *query_string, ParamListInfo params, QueryEnvironment *query_env)
{
	ExplainState *outer = explaining;
	PlannedStmt *plan;
	instr_time	start;
	instr_time	duration;
	BufferUsage before = pgBufferUsage;
	BufferUsage used;

	if (es->verbose)
		explaining = es;
	PG_TRY();
	{
		if (prev_ExplainOneQuery)
			prev_ExplainOneQuery(query, cursor_options, into, es, query_string, params, query_env);
		else
		{
			/* as the server does it */
			INSTR_TIME_SET_CURRENT(start);
			plan = pg_plan_query(query, query_string, cursor_options, params);
			INSTR_TIME_SET_CURRENT(duration);
			INSTR_TIME_SUBTRACT(duration, start);
			memset(&used, 0, sizeof(BufferUsage));
			if (es->buffers)
				BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
			ExplainOnePlan(plan, into, es, query_string, params, query_env,
						   &duration, es->buffers ? &used : NULL);
		}
	}
	PG_FINALLY();
	{
		explaining = outer;
	}
	PG_END_TRY();
}

void
MotBatchInit(void)
{
	DefineCustomBoolVariable("mot.batches",
							 "Takes in the rows of aggregates over memory-optimized tables without the server's expressions.",
							 NULL,
							 &batches, true, PGC_USERSET, 0, NULL, NULL, NULL);
	MotNodesMade = nodes_made;
	MotNodesGo = nodes_go;
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
}
