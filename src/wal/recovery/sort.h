/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  Redo sorted by table (sort.c), and a table brought forward by its part
 *	  of it (advance.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_SORT_H
#define MOT_WAL_SORT_H

#include "wal/internal.h"

typedef struct MotSorted MotSorted;

/* one table's */
typedef struct MotSortedPart
{
	Oid			dbid;			/* hash key */
	Oid			relid;
	bool		anew;			/* what there was before is gone: it begins
								 * with no table, or one that is made */
	bool		planned;		/* (for who loads) */
	uint64		bytes;
	uint32		nextents;
	uint32		max_extents;
	struct MotSortedExtent *extents;
	char	   *buffer;			/* not in the file yet */
	size_t		used;
	size_t		size;
} MotSortedPart;

/*
 * All of [from, upto), and what was in doubt when the checkpoint was written; in the current
 * context.
 */
extern MotSorted *MotSortLog(const MotManifest *m, XLogRecPtr from, XLogRecPtr upto, TimeLineID tli);
extern void MotSortFree(MotSorted *sorted);

/* in no order; valid until Free */
extern MotSortedPart **MotSortedParts(MotSorted *sorted, int *n);
extern MotSortedPart *MotSortedFind(MotSorted *sorted, Oid dbid, Oid relid);
extern uint64 MotSortedTransactions(MotSorted *sorted);

/* operations of a part, in order, a few at a time */
extern void MotSortedRead(MotSorted *sorted, const MotSortedPart *part,
						  void (*visit) (void *arg, XLogRecPtr lsn, const char *ops, size_t len),
						  void *arg);

/*
 * Bring a table that nobody else can see forward by redo: NULL in *table for one
 * that is still to be made.  read: shows "visit" its operations, in order, a few at a time.
 * look: called now and then, may raise; true: it is to have no more memory.  Both with
 * arg.  false: there is no memory for it, or (*clash) its collations are not what they were
 * (MotKeyGivesWay).
 */
typedef void (*MotAdvanceVisit) (void *advance, XLogRecPtr lsn, const char *ops, size_t len);
extern bool MotAdvance(Oid dbid, Oid relid, mot_table **table,
					   void (*read) (void *arg, MotAdvanceVisit visit, void *advance),
					   bool (*look) (void *arg), void *arg, bool *clash);

/*
 * load.c: the tables of a checkpoint, with what the log has for them (sorted NULL:
 * that comes later, or there is none).
 */
extern void MotLoadCheckpoint(MotManifest *m, const char *directory, MotSorted *sorted);

#endif							/* MOT_WAL_SORT_H */
