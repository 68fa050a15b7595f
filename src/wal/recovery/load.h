/*-------------------------------------------------------------------------
 *
 * load.h
 *	  What those who load a checkpoint share (load.c, loadroom.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_LOAD_H
#define MOT_WAL_LOAD_H

#include "wal/replay/leftout.h"
#include "wal/recovery/sort.h"

/* what may be the matter with a table; once it is whole, nothing */
#define DAMAGED 1
#define NO_ROOM 2
#define WHOLE 3
#define CLASH 4					/* of keys, by collations as they are today */

typedef struct LoadTable
{
	mot_table  *table;
	Oid			dbid;
	Oid			relid;
	Size		definition;		/* offset in the segment */
	Size		definition_len;
	bool		log_follows;	/* the leader applies it, then publishes */
	bool		kept;			/* was left out: the leader has all of it */
	uint32		first_item;
	uint32		nfiles;			/* the first items; the others are indexes */
	uint32		nitems;
	pg_atomic_uint32 taken;		/* items */
	pg_atomic_uint32 files_left;
	pg_atomic_uint32 items_left;
	pg_atomic_uint32 asked;		/* it is in the list */
	pg_atomic_uint32 begun;		/* set with the mutex, as what follows */
	bool		alone;			/* there was no other all the time */
	uint64		rows;			/* in its files */
	uint64		least;			/* memory that it needs, in any case */
	uint64		most;			/* as far as it may come */
	uint64		had;			/* alone: what there was for it */
	uint64		needed;			/* about, when that was not enough */
	pg_atomic_uint32 broken;
	char		why[160];		/* by whoever set broken first */
} LoadTable;

typedef struct LoadItem
{
	uint32		table;
	int			index;			/* number in the definition; -1: a file */
	MotManifestFile file;
} LoadItem;

typedef struct LoadShared
{
	MotHelpersShared base;
	char		directory[MAXPGPATH];
	pg_atomic_uint64 rows;
	pg_atomic_uint64 bytes;
	pg_atomic_uint64 tables;
	pg_atomic_uint32 full;		/* there was no memory for some table */
	uint64		rows_total;
	pid_t		leader_pid;
	uint32		ntables;
	pg_atomic_uint32 first;		/* tables before it have no items left */
	pg_atomic_uint32 begin;		/* tables before it have begun, or need not */
	uint32		nbegun;			/* that have, and not ended; with the mutex */
	uint32		lone;			/* the last one to begin alone */
	uint64		most;			/* all that those may need */
	pg_atomic_uint32 waiting;	/* tables that have their rows, and wait for
								 * the leader */
	pg_atomic_uint32 nasked;	/* of the list of those that are waited for */
	Size		tables_at;		/* offsets */
	Size		items_at;
	Size		asked_at;
} LoadShared;

#define SHARED_TABLE(shared, i) ((LoadTable *) ((char *) (shared) + (shared)->tables_at) + (i))
#define SHARED_ITEM(shared, i) ((LoadItem *) ((char *) (shared) + (shared)->items_at) + (i))
#define SHARED_ASKED(shared) ((uint32 *) ((char *) (shared) + (shared)->asked_at))

/* a table to be loaded: of the checkpoint, or with changes in the log, or both */
typedef struct PlannedTable
{
	Oid			dbid;
	Oid			relid;
	MotManifestTable *from;		/* NULL: nothing of it is needed */
	MotDefinition *def;			/* of that */
	MotSortedPart *part;		/* NULL: none */
	XLogRecPtr	made_by;		/* the transaction in it that makes the table */
	uint64		weight;
} PlannedTable;

/* ------------------------------------------------------------- loadroom.c */

/* what the table may need */
extern void MotLoadEstimate(const PlannedTable *planned, LoadTable *table);

/* Let tables begin, in turn; or one that is waited for: has it begun? */
extern void MotLoadBegin(LoadShared *shared);
extern bool MotLoadBeginAsked(LoadShared *shared, uint32 number);

/* It is there; or not, and what it has taken is free again. */
extern void MotLoadEnd(LoadShared *shared, uint32 number);

/*
 * by the leader: is one there that was left out by who wrote the checkpoint?  Those that have no
 * room
 */
extern bool MotLoadKept(LoadShared *shared, uint32 number, MotSorted *sorted, PlannedTable *planned);
extern void MotLoadLeaveOut(LoadShared *shared, MotSorted *sorted, PlannedTable *planned);

#endif							/* MOT_WAL_LOAD_H */
