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

/*
 * The next of a transaction's conflicts in, or out, the first one after NULL; NULL: there are no
 * more.  link: what a conflict is in the list by.
 */
#if PG_VERSION_NUM >= 160000
static inline RWConflict
MotNextConflict(dlist_head *list, RWConflict conflict, size_t link)
{
	dlist_node *node = conflict == NULL ? NULL : (dlist_node *) ((char *) conflict + link);

	if (node == NULL ? dlist_is_empty(list) : !dlist_has_next(list, node))
		return NULL;
	node = node == NULL ? dlist_head_node(list) : dlist_next_node(list, node);
	return (RWConflict) ((char *) node - link);
}
#else
#define MotNextConflict(list, conflict, link) \
	((RWConflict) SHMQueueNext(list, (conflict) == NULL ? (list) : (SHM_QUEUE *) ((char *) (conflict) + (link)), link))
#endif

#define MotNextConflictIn(xact, conflict) \
	MotNextConflict(&(xact)->inConflicts, conflict, offsetof(RWConflictData, inLink))
#define MotNextConflictOut(xact, conflict) \
	MotNextConflict(&(xact)->outConflicts, conflict, offsetof(RWConflictData, outLink))

#endif							/* MOT_PREDICATE_H */
