/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN as the server does it.
 *
 * Before PostgreSQL 17 there is no function for that to call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/explain.h"
#include "executor/instrument.h"
#include "portability/instr_time.h"
#include "tcop/tcopprot.h"

void
MotExplainOneQuery(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
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
