/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  What EXPLAIN (VERBOSE) says beside the server's own words.
 *
 * Of a node, if costs are shown, and of the whole plan.  From PostgreSQL 18 on the server asks
 * for it, at each node and at the end of each plan; what is said of nodes auto_explain logs, too.
 * Before, what is said of nodes is a list at the plan's end, and of EXECUTE nothing is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_EXPLAIN_H
#define MOT_EXPLAIN_H

#include "postgres.h"

#include "commands/explain.h"
#include "executor/execdesc.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* NULL: there is nothing to say */
extern const char *(*MotExplainNode) (PlanState *ps, const PlannedStmt *stmt);
extern const char *(*MotExplainPlan) (const PlannedStmt *stmt);

extern void MotExplainInit(void);

/* the query's nodes are about to go */
#if PG_VERSION_NUM >= 180000
#define MotExplainQueryEnds(query) ((void) 0)
#else
extern void MotExplainQueryEnds(QueryDesc *query);
#endif

#endif							/* MOT_EXPLAIN_H */
