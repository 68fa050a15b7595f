/*-------------------------------------------------------------------------
 *
 * call.h
 *	  CALL of a prepared statement; see call.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PROCEDURE_CALL_H
#define MOT_PROCEDURE_CALL_H

#include "mot.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

extern bool MotCallIsClients(const PlannedStmt *pstmt);
extern void MotCallKeepPlan(PlannedStmt *pstmt);
extern void MotCallForgetPlan(const char *name);
extern CallStmt *MotCallEvaluated(const CallStmt *stmt, ParamListInfo params);

#endif							/* MOT_PROCEDURE_CALL_H */
