/*-------------------------------------------------------------------------
 *
 * like.h
 *	  What CREATE TABLE ... LIKE brings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_LIKE_H
#define MOT_LIKE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* expandTableLikeClause, keys and indexes included if the new table is a foreign one */
extern List *MotExpandTableLike(RangeVar *relation, TableLikeClause *like);

#endif							/* MOT_LIKE_H */
