/*-------------------------------------------------------------------------
 *
 * wal.h
 *	  Durability: what the rest of the module may call.
 *
 * Redo.  A transaction that changed memory-optimized tables writes one
 * logical record (in pieces when it is large) through a resource manager of
 * our own; see record.h for what is in it.
 *
 *	- MOT only (no xid): the record is the commit.  It is made in PRE_COMMIT,
 *	  inserted in COMMIT, then the versions are installed, and the log is
 *	  flushed after the locks have gone (RESOURCE_RELEASE_AFTER_LOCKS): who
 *	  waited for our rows goes on at once, and its own flush covers ours.
 *	  Whoever read what is not durable yet makes it so before it reports
 *	  success: see mot_session_needs in the engine.  (Not where a synchronous
 *	  standby is configured: then there is an xid.)
 *	- mixed (with an xid): the record is inserted in PRE_COMMIT, tagged with
 *	  the xid, and the server's commit record decides.  Replay keeps it "in
 *	  doubt" until the commit log knows the xid's fate.
 *
 * Checkpoints.  A checkpoint is (C, S): a log position and a snapshot, so that
 * the commits in S are exactly those whose records start before C, except the
 * mixed ones in doubt at C, whose records are copied into it, and minus those
 * that had drawn a timestamp without having been logged.  To get such a
 * pair the gate (gate.c) is closed for an instant: no commit is then between
 * the insertion of its record and its installation.  So replay from C applies
 * every record exactly once, and a row that is not there, or a duplicate key,
 * is damage and is reported as such.
 *
 * Recovery.  Newest complete checkpoint, then the log from C.  After a clean
 * shutdown and after a crash the checkpoint worker does that in the running
 * server, table by table; sessions wait for the table they need (recover.c).  In
 * recovery from an archive and on a standby what lies before
 * the server's own redo is read by ourselves (reader.c), and the rest comes through
 * rm_redo; as long as the worker loads the tables, what is committed waits for them in a
 * spool (standby.c).
 *
 * Prepared transactions are mixed ones that may stay in doubt for long: prepared.c.
 *
 * Rooms: log (gate.c durable.c async.c record.c logger.c prepared.c decode.c: writing redo), replay
 * (rmgr.c apply.c redo.c target.c indoubt.c spill.c content.c room.c leftout.c leftlist.c),
 * checkpoint (checkpoint.c checkpoint_write.c pace.c snapshotfile.c manifest.c slot.c backup.c),
 * recovery (recover.c standby.c spool.c load.c loadroom.c sort.c advance.c reader.c trail.c); and
 * what they share: state.c file.c helpers.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_H
#define MOT_WAL_H

#include "mot.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"

/* called by _PG_init: settings, resource manager, callbacks, workers */
extern void MotWalInit(void);
extern void MotWalShmemRequest(void);
extern void MotWalShmemInit(void);

/* Where the module stands; in shared memory. */
typedef enum MotWalState
{
	MOT_WAL_UNLOADED,			/* nobody has looked at the checkpoint yet */
	MOT_WAL_LOADING,			/* tables are coming; some are there */
	MOT_WAL_READY,				/* all there (on a standby: and replay goes
								 * on) */
	MOT_WAL_REFUSED				/* damage: MotWalRefusal() says what;
								 * statements raise it */
} MotWalState;

extern MotWalState MotWalCurrentState(void);

/*
 * Wait until the table is there or recovery has finished without it; raises
 * what MOT_WAL_REFUSED says, or XX001 for a table marked damaged.  Wait event
 * "MotLoad".  false: recovery is complete and there is no such table.
 */
extern bool MotWalWaitForTable(Oid dbid, Oid relid);

/*
 * Before a transaction's first change: loaded, not a standby, and changes
 * will be recoverable (worker is there, first checkpoint exists).  Waits for
 * that where it is only a matter of time; raises 55000 with a HINT otherwise.
 */
extern void MotWalCheckWritable(void);

/* Returns when no transaction is just being replayed. */
extern void MotReplayAwait(void);

/*
 * For the maintenance worker: tell the server of commits that nobody waits for,
 * as long as there are many; called again after as many milliseconds as it
 * returns, unless that is -1.  Leave: commits are to do it themselves; before
 * anything that takes long, and at exit.  See async.c.
 */
extern long MotAsyncServe(uint64 commits);
extern void MotAsyncLeave(void);

/* statistics for the views */
typedef struct MotCheckpointStat
{
	XLogRecPtr	checkpoint_lsn; /* C of the newest complete one */
	XLogRecPtr	redo_lsn;		/* the server's redo pointer then */
	uint64		rows,
				bytes;
	double		seconds;
	uint64		completed,
				failed;
	TimestampTz finished_at;
	char		last_error[256];
} MotCheckpointStat;

extern void MotCheckpointStatGet(MotCheckpointStat *stat);

typedef struct MotRecoveryStat
{
	MotWalState state;
	XLogRecPtr	checkpoint_lsn; /* loaded */
	XLogRecPtr	replayed_lsn;	/* end of the last record applied */
	uint64		tables_total,
				tables_loaded,
				rows_loaded,
				bytes_loaded;
	double		load_seconds;
	uint64		records_applied;
	uint32		in_doubt;
	uint32		damaged_tables;
} MotRecoveryStat;

extern void MotRecoveryStatGet(MotRecoveryStat *stat);

#endif							/* MOT_WAL_H */
