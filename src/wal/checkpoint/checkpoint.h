/*-------------------------------------------------------------------------
 *
 * checkpoint.h
 *	  Between state.c and the files that write and read checkpoints:
 *	  checkpoint.c, checkpoint_write.c, pace.c, slot.c, backup.c, helpers.c,
 *	  manifest.c, snapshotfile.c, load.c, trail.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_CHECKPOINT_H
#define MOT_WAL_CHECKPOINT_H

#include "wal/internal.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "utils/timestamp.h"

/* the worker's function */
#define MOT_CHECKPOINT_MAIN "MotCheckpointMain"

#define MOT_DAMAGE_HINT \
	"Restore the server from a backup, or set mot.ignore_damaged to start without the damaged tables."

/* a file, or the log, is not what it should be */
#define MotRaiseDamage(...) \
	ereport(ERROR, \
			(errcode(ERRCODE_DATA_CORRUPTED), \
			 errmsg(__VA_ARGS__), \
			 errhint(MOT_DAMAGE_HINT)))

extern int	mot_checkpoint_share;

/* ------------------------------------------------------------------ state.c */
typedef enum MotStateFlag
{
	MOT_IS_WRITABLE,			/* the fast path of MotWalCheckWritable */
	MOT_IS_ASKED,				/* somebody wants to write */
	MOT_HAS_STARTED,			/* somebody could write, since shared memory
								 * was made */
	MOT_LOADS_IN_STEPS,			/* sessions may use a table as soon as it is
								 * there: no log has to be applied to it */
	MOT_IS_COMPLETE,			/* a final checkpoint, and nobody has written
								 * since: the log behind it is of no interest */
	MOT_IS_CHECKPOINTING,		/* one is being written */
	MOT_IS_REFUSED,				/* what is damaged was met: nothing is applied
								 * any more, and REFUSED comes, or is there */
	MOT_STATE_FLAGS
} MotStateFlag;

extern bool MotStateIs(MotStateFlag flag);
extern void MotStateSet(MotStateFlag flag, bool on);
extern void MotStateRaiseRefusal(void) pg_attribute_noreturn();
extern void MotStatePreserve(XLogRecPtr lsn);
extern void MotStatePreserveNewest(void);
extern XLogRecPtr MotStatePreserved(void);
extern int	MotStateDamagedList(MotManifestGivenUp **list);
extern void MotStateWritableFailed(const char *why);
extern void MotStateSetWorker(bool here);
extern void MotStateBeginCheckpoint(void);
extern void MotStateEndCheckpoint(void);
extern void MotStateSetLoaded(mot_ts ts);

/* --------------------------------------------------------------- manifest.c */
extern char *MotCheckpointDirectory(TimeLineID tli, XLogRecPtr lsn, bool temporary);	/* path, palloc'd */
extern bool MotDirectoryExists(void);
extern void MotDirectoryMake(void);
extern char *MotDirectoryBegin(TimeLineID tli, XLogRecPtr lsn); /* empty .tmp */
extern void MotDirectoryFinish(TimeLineID tli, XLogRecPtr lsn); /* rename, durably */
extern void MotDirectoryRemove(const char *path);
extern void MotDirectoryPutAside(const char *path, int elevel); /* damaged: kept, not
																 * used */
extern void MotManifestPutAside(XLogRecPtr lsn);	/* one that is still there */
extern bool MotOpenMarkerExists(void);
extern void MotOpenMarkerSet(void);
extern void MotOpenMarkerClear(void);
extern void MotAwaitedMarkerSet(void);
extern bool MotRowsAwaited(void);	/* mot_upgrade has not been run */

/* -------------------------------------------------------------------- slot.c */
extern bool MotSlotUsable(void);	/* it is there and nothing cuts it short */
extern bool MotSlotKeeps(XLogRecPtr lsn);	/* and the log from there on is
											 * kept */
extern void MotSlotKeep(XLogRecPtr lsn);	/* make it (quietly not, if that
											 * cannot be), move it to lsn */

extern void MotSlotDrop(void);

/*
 * Hold: by the startup process; nobody can drop the slot, until the worker
 * lets go of it.
 */
extern void MotSlotHold(void);
extern void MotSlotLetGo(void);

/* -------------------------------------------------------------- checkpoint.c
 *
 * By who loads, in the worker or not.  Look: now and then; raises an error if the
 * server is to stop, and is armed when it has been promoted.  GiveWay: between two pieces of work;
 * the transaction may be another one afterwards.
 */
extern void MotCheckpointLook(void);
extern void MotCheckpointGiveWay(void);

/* ------------------------------------------------------------------ backup.c */
extern void MotBackupInit(void);
extern const MotShmem MotBackupShmem;

/*
 * newest: C of the newest checkpoint, before another one is relied on.  Returns
 * C of the oldest one that a running base backup may need (none: the highest
 * position there is).
 */
extern XLogRecPtr MotBackupKeepFrom(XLogRecPtr newest);

/* ----------------------------------------------------------------- helpers.c
 *
 * Work for several processes: a segment of shared memory with what is to be
 * done, and background workers that do it along with the leader.
 */
typedef struct MotHelpersShared
{
	int			job;			/* which function: MOT_JOB_ */
	bool		gently;			/* nobody waits for it: helpers lower their
								 * priority */
	uint32		nitems;
	int			asked;			/* helpers; some may still be on their way, or
								 * never come */
	pg_atomic_uint32 number;	/* helpers that have begun */
	pg_atomic_uint32 next;		/* item */
	pg_atomic_uint32 done;		/* items */
	pg_atomic_uint32 failed;
	pg_atomic_uint32 running;	/* helpers that have begun and not ended */
	slock_t		mutex;
	int			sqlerrcode;		/* of the first failure */
	char		message[512];
	char		hint[256];
} MotHelpersShared;				/* each job's own struct begins with this */

#define MOT_JOB_WRITE 1
#define MOT_JOB_LOAD 2

extern void MotHelpersInit(void);	/* their settings */

/* how many to ask for: mot.load_workers, mot.checkpoint_workers */
extern int	MotHelpersToLoad(void);
extern int	MotHelpersToWrite(void);

extern void MotHelpersBegin(MotHelpersShared *shared, dsm_segment *segment, int n);
extern bool MotHelpersDone(MotHelpersShared *shared);
extern void MotHelpersEnd(MotHelpersShared *shared);	/* waits; raises the
														 * first failure */
extern void MotHelpersAbandon(MotHelpersShared *shared);	/* waits; for the
															 * leader's own errors */

/* by everybody at work */
extern int	MotHelpersNext(MotHelpersShared *shared);
extern void MotHelpersItemDone(MotHelpersShared *shared);
extern bool MotHelpersStop(MotHelpersShared *shared);
extern void MotHelpersFail(MotHelpersShared *shared, const ErrorData *edata);

/* the jobs: take items until there are no more; a snapshot is published */
extern void MotWriteItems(MotHelpersShared *shared);	/* checkpoint_write.c */

extern void MotLoadItems(MotHelpersShared *shared); /* load.c */

/* -------------------------------------------------------------------- pace.c */
typedef struct MotPace			/* times in microseconds */
{
	pg_atomic_uint32 hurry;
	pg_atomic_uint64 written;	/* bytes */
	uint64		expected;
	int			writers;
	double		cpu,			/* shares of a processor and of the disk, for
								 * each of them */
				disk;
	int64		began;
	XLogRecPtr	log_began;
	uint64		memory_began;
	double		time,			/* that the whole may take: by the clock, */
				log,			/* bytes of log, */
				memory;			/* bytes of old versions */
} MotPace;

extern void MotPaceLowerPriority(void);
extern void MotPaceBegin(MotPace *pace, uint64 expected, int writers, bool hurry);
extern void MotPaceAttend(MotPace *pace);
extern void MotPaceJoin(MotPace *pace);
extern void MotPacePause(MotPace *pace, uint64 bytes, MotHelpersShared *stop);

/* --------------------------------------------------------- checkpoint_write.c */

/*
 * Write a checkpoint; returns C.  final: nobody can write any more.  Raises,
 * and leaves nothing behind then but what the next attempt removes.
 */
extern XLogRecPtr MotCheckpointWrite(bool final, bool helpers);

/* just loaded, and nothing has changed: files for the next one */
extern void MotCheckpointRemember(const MotManifest *manifest, const char *directory);

#endif							/* MOT_WAL_CHECKPOINT_H */
