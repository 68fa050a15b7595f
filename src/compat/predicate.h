/*-------------------------------------------------------------------------
 *
 * predicate.h
 *	  Lists of the server's detection of conflicts between serializable transactions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PREDICATE_H
#define MOT_PREDICATE_H

#include "postgres.h"

#include "storage/predicate_internals.h"

#if PG_VERSION_NUM >= 160000
#define MotConflictListEmpty(list) dlist_is_empty(list)
#else
#define MotConflictListEmpty(list) SHMQueueEmpty(list)
#endif

/* The next of a transaction's conflicts in, the first one after NULL; NULL: there are no more. */
static inline RWConflict
MotNextConflictIn(SERIALIZABLEXACT *xact, RWConflict conflict)
{
#if PG_VERSION_NUM >= 160000
	if (conflict == NULL ? dlist_is_empty(&xact->inConflicts) :
		!dlist_has_next(&xact->inConflicts, &conflict->inLink))
		return NULL;
	return dlist_container(RWConflictData, inLink,
						   conflict == NULL ? dlist_head_node(&xact->inConflicts) :
						   dlist_next_node(&xact->inConflicts, &conflict->inLink));
#else
	return (RWConflict) SHMQueueNext(&xact->inConflicts,
									 conflict == NULL ? &xact->inConflicts : &conflict->inLink,
									 offsetof(RWConflictData, inLink));
#endif
}

/* The next of a transaction's conflicts out, the first one after NULL; NULL: there are no more. */
static inline RWConflict
MotNextConflictOut(SERIALIZABLEXACT *xact, RWConflict conflict)
{
#if PG_VERSION_NUM >= 160000
	if (conflict == NULL ? dlist_is_empty(&xact->outConflicts) :
		!dlist_has_next(&xact->outConflicts, &conflict->outLink))
		return NULL;
	return dlist_container(RWConflictData, outLink,
						   conflict == NULL ? dlist_head_node(&xact->outConflicts) :
						   dlist_next_node(&xact->outConflicts, &conflict->outLink));
#else
	return (RWConflict) SHMQueueNext(&xact->outConflicts,
									 conflict == NULL ? &xact->outConflicts : &conflict->outLink,
									 offsetof(RWConflictData, outLink));
#endif
}

#endif							/* MOT_PREDICATE_H */
