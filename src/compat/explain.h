/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  EXPLAIN as the server does it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_EXPLAIN_H
#define MOT_EXPLAIN_H

#include "postgres.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* what ExplainOneQuery_hook stands in for */
extern void MotExplainOneQuery(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
							   const char *query_string, ParamListInfo params, QueryEnvironment *query_env);

#endif							/* MOT_EXPLAIN_H */
