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

extern CallStmt *MotCallEvaluated(const PlannedStmt *pstmt, ParamListInfo params);

#endif							/* MOT_PROCEDURE_CALL_H */
