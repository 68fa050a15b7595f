/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN (VERBOSE) says beside the server's own words.
 *
 * Before PostgreSQL 18 the server has no place for an extension's words.  So they come when the
 * query ends, while its part of the output is still open.  For that we must know of the output,
 * which ExplainOneQuery_hook tells us.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/explain.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"

#define OF_NODES "MOT Batches"

const char *(*MotExplainNode) (PlanState *ps, const PlannedStmt *stmt) = NULL;
const char *(*MotExplainPlan) (const PlannedStmt *stmt) = NULL;

static bool
shows_nodes(const ExplainState *es)
{
	return es->verbose && es->costs;
}

static void
show_plan(const PlannedStmt *stmt, ExplainState *es)
{
	const char *text = es->verbose ? MotExplainPlan(stmt) : NULL;

	if (text !=NULL)
		ExplainPropertyText("Statement", text, es);
}

#if PG_VERSION_NUM >= 180000

static explain_per_node_hook_type prev_per_node = NULL;
static explain_per_plan_hook_type prev_per_plan = NULL;

static void
per_node(PlanState *ps, List *ancestors, const char *relationship, const char *plan_name, ExplainState *es)
{
	const char *text = shows_nodes(es) ? MotExplainNode(ps, es->pstmt) : NULL;

	if (text !=NULL)
		ExplainPropertyText(OF_NODES, text, es);
	if (prev_per_node)
		prev_per_node(ps, ancestors, relationship, plan_name, es);
}

static void
per_plan(PlannedStmt *stmt, IntoClause *into, ExplainState *es, const char *query_string,
		 ParamListInfo params, QueryEnvironment *query_env)
{
	show_plan(stmt, es);
	if (prev_per_plan)
		prev_per_plan(stmt, into, es, query_string, params, query_env);
}

void
MotExplainInit(void)
{
	prev_per_node = explain_per_node_hook;
	explain_per_node_hook = per_node;
	prev_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = per_plan;
}

#else

static ExplainOneQuery_hook_type prev_ExplainOneQuery = NULL;
static ExplainState *explaining = NULL;

/* what the hook stands in for */
static void
standard(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
		 const char *query_string, ParamListInfo params, QueryEnvironment *query_env)
{
#if PG_VERSION_NUM >= 170000
	standard_ExplainOneQuery(query, cursor_options, into, es, query_string, params, query_env);
#else
	PlannedStmt *plan;
	instr_time	start;
	instr_time	duration;
	BufferUsage before = pgBufferUsage;
	BufferUsage used;

	INSTR_TIME_SET_CURRENT(start);
	plan = pg_plan_query(query, query_string, cursor_options, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	memset(&used, 0, sizeof(BufferUsage));
	if (es->buffers)
		BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, query_string, params, query_env, &duration, es->buffers ? &used : NULL);
#endif
}

static const char *
name_of(const PlanState *ps)
{
	if (IsA(ps, HashJoinState))
		return "Hash Join";
	if (!IsA(ps, AggState))
		return psprintf("%s on %s", IsA(ps, SeqScanState) ? "Seq Scan" : "Foreign Scan",
						RelationGetRelationName(((const ScanState *) ps)->ss_currentRelation));
	switch (((const Agg *) ps->plan)->aggstrategy)
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
add_nodes(PlanState *ps, void *lines)
{
	const char *text = MotExplainNode(ps, explaining->pstmt);

	if (text !=NULL)
		*(List **) lines = lappend(*(List **) lines, psprintf("%s: %s", name_of(ps), text));
	return planstate_tree_walker(ps, add_nodes, lines);
}

void
MotExplainQueryEnds(QueryDesc *query)
{
	List	   *lines = NIL;

	if (likely(explaining == NULL) || explaining->pstmt != query->plannedstmt || query->planstate == NULL)
		return;
	if (shows_nodes(explaining))
		(void) add_nodes(query->planstate, &lines);
	if (lines != NIL)
		ExplainPropertyList(OF_NODES, lines, explaining);
	show_plan(explaining->pstmt, explaining);
}

static void
explain_one_query(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
				  const char *query_string, ParamListInfo params, QueryEnvironment *query_env)
{
	ExplainState *outer = explaining;

	if (es->verbose)
		explaining = es;
	PG_TRY();
	{
		if (prev_ExplainOneQuery)
			prev_ExplainOneQuery(query, cursor_options, into, es, query_string, params, query_env);
		else
			standard(query, cursor_options, into, es, query_string, params, query_env);
	}
	PG_FINALLY();
	{
		explaining = outer;
	}
	PG_END_TRY();
}

void
MotExplainInit(void)
{
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
}

#endif
