/*-------------------------------------------------------------------------
 *
 * returning.h
 *	  RETURNING OLD of an INSERT that has updated a row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_RETURNING_H
#define MOT_RETURNING_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* the insert into a foreign table that is about to return has updated the row in the slot */
extern void MotReturningOld(ResultRelInfo *rinfo, TupleTableSlot *old);

#endif							/* MOT_RETURNING_H */
