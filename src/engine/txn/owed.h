/*-------------------------------------------------------------------------
 *
 * owed.h
 *	  What is owed to reclamation: the queues of the slots.  See reclaim.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_OWED_H
#define MOT_OWED_H

#include "mot_engine.h"
#include "port.h"

/*
 * One thing owed: an address with its kind in the low four bits (everything
 * in the region is 16-byte aligned), and the clock value from which on nobody
 * can be using it: it is due when the horizon has reached the stamp.
 */
typedef struct owed_item
{
	uint64_t	what;
	mot_ts		stamp;
} owed_item;

typedef enum owed_kind
{
	OWED_OBJECT,				/* free it */
	OWED_INLINE,				/* row: its inlined version was superseded (or
								 * undone) */
	OWED_ROW,					/* row: deleted; take it out of the indexes,
								 * unmark it, then OWED_ROW_MEMORY */
	OWED_ROW_MEMORY,			/* row: unmarked long enough */
	OWED_ENTRY_DONE,			/* index_drop: nobody is looking at the entry
								 * any more */
	/* those that count otherwise than by one, or besides, come last */
	OWED_ENTRY,					/* index_drop: take its claim from the index,
								 * then OWED_ENTRY_DONE */
	OWED_GRAVE,					/* grave: as OWED_ROW for its rows, and itself */
	OWED_GRAVE_MEMORY,
	OWED_INSERTS,				/* mot_inserts: the same for its rows */
	OWED_INSERTS_MEMORY
} owed_kind;

#define OWED_BLOCK_ITEMS 254
typedef struct owed_block
{
	struct owed_block *next;
	uint32_t	first;			/* items [first, used) are in the queue */
	uint32_t	used;
	owed_item	item[OWED_BLOCK_ITEMS];
} owed_block;

/* items in order of their stamps */
typedef struct owed_list
{
	owed_block *head;			/* first block with items */
	owed_block *tail;			/* block being filled; more, empty ones may
								 * follow */
	owed_block *last;			/* the last of those */
	uint64_t	room;			/* free places from tail on */
	uint64_t	entries;		/* OWED_ENTRY items not yet performed */
	mot_ts		entries_from;	/* none of them has a lower stamp */
} owed_list;

/*
 * A slot's queue: what snapshots may still see, and what they cannot, see the
 * head of reclaim.c.  Room in the first for every item that may have to be
 * queued is promised when the change that causes it is made, so neither commit
 * nor rollback nor reclamation needs memory; what is undone, and an item's second
 * step, goes into the other one, if there is room, for which the first gives
 * blocks whose promises have been kept.  (Else it takes the item's own place, if
 * need be at the front, where it holds the others up for a moment.)
 */
typedef enum owed_sight
{
	OWED_SEEN,
	OWED_UNLINKED
} owed_sight;

typedef struct owed_queue
{
	mot_spinlock lock;
	owed_list	list[2];		/* by owed_sight */
	uint64_t	promised;		/* places of the first spoken for */
	_Atomic uint64_t added;		/* items that commits have queued, ever;
								 * counted as below */
	bool		working;		/* somebody is performing items taken off the
								 * front */
	_Atomic uint64_t count;		/* items queued, a grave's rows each (read
								 * without the lock by statistics) */
	_Atomic uint64_t lost;		/* objects given up because neither room nor
								 * memory was there */
} owed_queue;

#define OWED_RESERVE 128		/* places kept for tree nodes, which nobody
								 * promises */

#endif							/* MOT_OWED_H */
