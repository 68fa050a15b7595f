/*-------------------------------------------------------------------------
 *
 * replay.h
 *	  Between the files that replay the log: rmgr.c, apply.c, indoubt.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_REPLAY_H
#define MOT_WAL_REPLAY_H

#include "port/atomics.h"
#include "wal/internal.h"

/* what a transaction in the list of those in doubt is */
typedef enum MotDoubt
{
	MOT_DOUBT_MIXED,			/* replayed: its fate comes soon, or never */
	MOT_DOUBT_PREPARED,			/* replayed: it may come late */

	/* and those that have a holder (xact/prepared.c), which ends them */
	MOT_DOUBT_KEPT,				/* the server has not prepared it yet */
	MOT_DOUBT_HELD,
	MOT_DOUBT_OVER				/* installed, or undone */
} MotDoubt;

/* has it to be settled by who finds its fate decided? */
#define MOT_DOUBT_OPEN(what) ((what) <= MOT_DOUBT_PREPARED)

/* in the engine's region */
typedef struct InDoubt
{
	struct InDoubt *next;
	TransactionId xid;
	pg_atomic_uint32 what;		/* MotDoubt */
	XLogRecPtr	lsn;
	size_t		len;
	bool		in_file;
	bool		marked;
	bool		failed;			/* somebody has begun to apply it, and raised */
	char		ops[];
} InDoubt;

/* indoubt.c, for prepared.c */
extern InDoubt *MotInDoubtNew(TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len,
							  const char *path);
extern void MotInDoubtLink(InDoubt *entry);
extern void MotInDoubtUnlink(InDoubt *entry);
extern const char *MotInDoubtOps(const InDoubt *entry);

/* in shared memory; under MotApplyLock, except that anybody may read the count */
typedef struct MotReplayShared
{
	pg_atomic_uint32 in_doubt;	/* open ones in the list */
	pg_atomic_uint32 prepared;	/* of them, those that may be prepared */
	struct InDoubt *first;		/* in the engine's region */
	struct InDoubt *last;
	XLogRecPtr	upto;			/* end of the last record of ours dealt with */

	/*
	 * Begun, and neither complete nor forgotten: their first pieces lie
	 * before "upto", and only the startup process knows of them, so a
	 * checkpoint with that position has to wait until that is over.
	 */
	uint32		streams;
	uint32		contents;		/* files of content.c */

	/*
	 * Commits later than the recovery target have been passed over.  That may
	 * still be moved, so there is to be no checkpoint, until recovery ends;
	 * and then there has to be one.
	 */
	bool		past_target;
	pg_atomic_uint32 room_wanted;	/* by sessions that apply */
	pg_atomic_uint32 room_made; /* tables left out for that */

	/* spool.c; bytes are counted with what precedes each transaction */
	pg_atomic_uint32 spooling;
	uint32		spool_file;		/* the one that is written to, from 1 on */
	uint64		spool_used;		/* of it */
	pg_atomic_uint64 spool_added;
	pg_atomic_uint64 spool_applied;
	pg_atomic_uint64 spool_before;	/* added before the first was applied;
									 * PG_UINT64_MAX: none has been */

	/* standby.c */
	pg_atomic_uint32 standby;	/* who has begun */
	bool		ended;			/* recovery has, and nothing more will be
								 * spooled */
	char		directory[MAXPGPATH];	/* of the checkpoint that is loaded */
} MotReplayShared;

extern MotReplayShared *MotReplay;

/* room.c: by the worker */
extern void MotRoomInWorker(void);
extern void MotRoomForSessions(void);

/* the log is not what it should be */
extern void MotRedoRaiseDamaged(XLogRecPtr lsn, const char *fmt,...) pg_attribute_printf(2, 3) pg_attribute_noreturn();

/* no memory for what is being replayed: say what to do about it */
extern void MotApplyRaiseMemory(mot_status status, XLogRecPtr lsn, const char *table) pg_attribute_noreturn();

#endif							/* MOT_WAL_REPLAY_H */
