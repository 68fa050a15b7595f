/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  Between the files of wal/ only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_INTERNAL_H
#define MOT_WAL_INTERNAL_H

#include "wal/wal.h"
#include "wal/log/record.h"
#include "access/xlogreader.h"
#include "access/xlogutils.h"
#include "relation/definition.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/snapshot.h"

/* ------------------------------------------------------------------- gate.c
 *
 * Who is between inserting its record and installing its versions?  Each
 * process has a word of its own for that; the gate is one word that is read
 * by all and hardly ever written, so that a commit writes nothing shared.
 *
 *	enter(stream)	before a timestamp is drawn long before the commit, before
 *					a record is inserted, before anything logged or drawn is
 *					installed; does nothing for who is in.  stream: there will
 *					be pieces.  May wait (an instant for the checkpoint; a
 *					stream also until no checkpoint is about to begin).
 *	drawn(ts)		out again; SERIALIZABLE: this is the timestamp
 *	logged(...)		out again; with an xid: the record is in the log from start to end
 *	leave()			installed, or aborted
 *
 * Who is in must not wait for anybody.
 *
 * close: no stream is let in and those on their way are waited for; then
 * nobody is let in, and who is in is waited for.  While it is closed every
 * commit's record is either before "lsn" and installed, or in the list of
 * mixed ones in doubt, or not inserted; and whoever of the latter two has
 * drawn a timestamp is in the list of these.  The caller takes its snapshot
 * and opens.
 */
typedef struct MotInDoubtRange
{
	TransactionId xid;
	XLogRecPtr	start;			/* of its first record */
	XLogRecPtr	end;			/* of its last one */
} MotInDoubtRange;

typedef struct MotGateLine
{
	XLogRecPtr	lsn;			/* C */
	int			nin_doubt;
	MotInDoubtRange *in_doubt;
	int			ndrawn;
	mot_ts	   *drawn;			/* timestamps that S must leave out */
} MotGateLine;

extern void MotGateEnter(bool stream);
extern void MotGateEnterDecided(void);
extern void MotGateDrawn(mot_ts ts);
extern void MotGateLogged(TransactionId xid, XLogRecPtr start, XLogRecPtr end);
extern void MotGateLeave(void);
extern void MotGateClose(MotGateLine *line);
extern void MotGateOpen(void);
extern const MotShmem MotGateShmem;

/* ------------------------------------------------------- logger.c, durable.c */
extern void MotLoggerInit(void);	/* registers with xact/ */
extern void MotLoggerForget(void);	/* leaves the gate */
extern void MotDurableInit(void);	/* flush at AFTER_LOCKS */

/* will this session's commit have to wait for a synchronous standby? */
extern bool MotDurableWaits(void);

/*
 * in COMMIT, after XLogInsert of a MOT-only transaction's (last) record, before the engine installs
 */
extern void MotDurableNote(mot_session *session, XLogRecPtr lsn);

/*
 * decode.c: changes for logical decoding; the resource manager's rm_decode, and what rm_desc
 * shows of such a record
 */
struct LogicalDecodingContext;
struct XLogRecordBuffer;
extern void MotDecodeLog(const RelFileLocator *storage, const MotLogicalChange *changes, int n);
extern void MotDecode(struct LogicalDecodingContext *ctx, struct XLogRecordBuffer *buffer);
extern void MotDecodeDescribe(StringInfo buf, const char *data, size_t len);

/* async.c */
extern const MotShmem MotAsyncShmem;
extern void MotAsyncCommitted(XLogRecPtr lsn);

/* --------------------------------------------------- apply.c, indoubt.c, rmgr.c
 *
 * One applier at a time: MotApplyLock.  On a primary only recovery applies;
 * on a standby the startup process, and sessions and the worker for
 * transactions in doubt whose fate has become known.
 */
extern LWLock *MotApplyLock;	/* LW_EXCLUSIVE around apply and the list in
								 * doubt */

/*
 * Apply the operations of one transaction (all its pieces put together, OP_LONG
 * resolved) as one engine transaction.  xid valid: it is a mixed one, to be
 * announced to xact/mixed.c so that its two halves are seen together.  Raises
 * XX001 for damage, naming lsn; with mot.ignore_damaged, a table that does not
 * fit is marked damaged and the rest is applied.
 *
 * false: nothing was done, because memory is full.  Then MakeRoom (locked: MotApplyLock
 * is held, and let go of meanwhile), and once more: readers of a standby may keep it full of what
 * they may still see, or some table has to be left out (leftout.c).  Who neither recovers nor loads
 * asks the worker for that, and waits, not for ever.
 */
extern bool MotApply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid);
extern void MotApplyMakeRoom(bool locked);
extern void MotApplyDropGivenUp(void);	/* with the lock: tables, for damage,
										 * that nobody reads */

/*
 * The same, or on a standby that is still loading, spool it (spool.c).  path: a file of spill.c's
 * that has the operations, which may then be gone; NULL: none.
 */
extern bool MotReplayCommitted(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid,
							   const char *path);

/*
 * A record of ours from the log, by rm_redo or by our own reading.  start: its
 * position.  Those before the checkpoint's C are passed over.
 */
extern void MotReplayRecord(XLogReaderState *record);
extern void MotReplayOrRefuse(XLogReaderState *record); /* what is damaged,
														 * unless its log is not
														 * kept */

/* what a record has behind its header; raises for one of an unknown format, or that is too short */
extern const char *MotRecordOpen(XLogReaderState *record, MotRecordHeader *header, size_t *len);

/* transactions that are committed go there, and no further; NULL: they are applied */
extern void (*MotReplayInto) (const char *ops, size_t len, XLogRecPtr lsn);
extern void MotReplayEnd(void); /* end of recovery: settle what is in doubt,
								 * forget streams */

/*
 * In doubt: records of mixed transactions whose fate is not known yet, for all
 * processes to see; and those of prepared ones, see prepared.c.  Under MotApplyLock.  AddFile: what
 * to apply is in this file of spill.c's, which gets another name.  Each: mapped says that what is
 * visited is a mapping, of which the visitor disposes (MotSpillUnmap).
 */
extern void MotInDoubtAdd(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len);
extern void MotInDoubtAddFile(TransactionId xid, XLogRecPtr lsn, const char *path, size_t len);
extern void MotInDoubtSettle(bool at_end);	/* apply those whose xid is known
											 * committed, in order; drop
											 * aborted ones (at_end: all
											 * others but those that may be
											 * prepared) */
extern void MotInDoubtForgetFailed(void);	/* the one at which an error was
											 * raised */
extern uint32 MotInDoubtCount(void);	/* without a lock: anything to settle? */
extern void MotInDoubtEach(void (*visit) (void *arg, TransactionId xid, XLogRecPtr lsn,
										  const char *ops, size_t len, bool mapped), void *arg);

/* A server has begun to write: of those prepared before it these are so still. */
extern void MotInDoubtStart(const char *xids, size_t len);

/* what such a server says: xids, one after the other; palloc'd */
extern char *MotInDoubtPrepared(size_t *len);

/*
 * On a primary, for a checkpoint: Mark, the gate closed (without waiting; nothing is
 * allocated); then Each visits those that were in the list.
 */
extern uint32 MotInDoubtMark(void);

/* --------------------------------------------------------------- prepared.c
 *
 * The redo of transactions that PREPARE TRANSACTION has ended; see xact/xact.h.
 */
extern void *MotPreparedRedoKeep(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len,
								 const char *path);
extern void MotPreparedRedoKept(void *redo);
extern void MotPreparedRedoDrop(void *redo);
extern void MotPreparedRedoFinished(void *redo);
extern bool MotPreparedRedoRestore(const char *gid, bool commit);
extern bool MotPreparedRedoUnrestored(void);

/* by the worker, before anybody may change anything: true: all are as they were */
extern void MotRestorePrepared(void);

/* its changes, in this session, whose transaction goes on; false: there is no room for them */
extern bool MotApplyAgain(mot_session *session, const char *ops, size_t len, XLogRecPtr lsn, void **storage);

/*
 * On a standby, by a session, with or without a snapshot: whatever a PostgreSQL
 * snapshot taken before this can see as committed is applied when it returns.
 * Costs one look at a word when nothing is in doubt.
 */
extern void MotInDoubtCatchUp(void);

/* the same; false: redo is damaged, and who goes on must not read our tables */
extern bool MotInDoubtTry(void);

/*
 * While an error is being handled: has redo been found to be damaged?  A value that is none may be
 * found so by a function of its type, which calls it an internal error.
 */
static inline bool
MotErrorIsDamage(void)
{
	return geterrcode() == ERRCODE_DATA_CORRUPTED || geterrcode() == ERRCODE_INTERNAL_ERROR;
}

extern const MotShmem MotReplayShmem;

/*
 * rmgr.c: MotRmgrInit registers; at rm_startup: MotLoad(); the module's settings for tables damaged
 */
extern void MotRmgrInit(void);

/* log is missing, and that is ignored: what has come of transactions in pieces is of no use */
extern void MotReplayForget(void);

/* ----------------------------------------------------------------- reader.c */

/*
 * Our records of [from, to) in this server's pg_wal, in order; to may be the
 * end of what is durable.  Waits for nothing.  Raises 58P01/XX001 naming file
 * and position for log that is missing or damaged before "to".
 */
extern void MotReadLog(XLogRecPtr from, XLogRecPtr to, TimeLineID tli,
					   void (*visit) (void *arg, XLogReaderState *record), void *arg);

/* Is the segment with that position in this server's pg_wal? */
extern bool MotLogIsHere(XLogRecPtr at, TimeLineID tli);

/*
 * Is there no record between "end" (of one) and "to"?  Nothing but the header of a page, at most.
 */
extern bool MotLogReaches(XLogRecPtr end, XLogRecPtr to);

/* ---------------------------------------------------------------- helpers.c */
extern void MotEndWithServer(void); /* this process, if that has been killed */

/* ------------------------------------------------------------------ trail.c */
extern void MotTrailBegin(XLogRecPtr from);
extern void MotTrailLoaded(void);
extern void MotTrailNote(XLogReaderState *record);
extern bool MotTrailRead(XLogRecPtr from, XLogRecPtr to, void (*visit) (void *arg, XLogReaderState *record));
extern void MotTrailRemove(XLogRecPtr keep_from);

/* ------------------------------------------------------------------ state.c */
extern bool mot_ignore_damaged;

extern void MotStateInit(void); /* settings */
extern const MotShmem MotStateShmem;

/* UNLOADED -> LOADING for one caller only; others wait until it is done: true for the one */
extern bool MotStateClaimLoad(void);
extern void MotStateLoadDone(void); /* READY, or REFUSED, if that was called
									 * for; wakes all */
extern void MotStateRefuse(int sqlerrcode, const char *message, const char *hint);	/* keeps the text */
extern void MotStateAwaitLoaded(void);
extern void MotStateTableLoaded(void);	/* wakes those who wait for a table */
extern bool MotStateTakeAsked(Oid *dbid, Oid *relid);	/* a table that somebody
														 * waits for; once */
extern void MotStateSetReplayEnd(XLogRecPtr end);	/* of the server's
													 * recovery after a crash */
extern XLogRecPtr MotStateReplayEnd(void);
extern pid_t MotStateReplayPid(void);	/* who called the first, until
										 * forgotten */
extern void MotStateForgetReplayPid(void);
extern void MotStateDamage(Oid dbid, Oid relid, const char *why);	/* marks it; undone by
																	 * DROP, TRUNCATE */
extern uint32 MotStateDamages(void);	/* how often */
extern bool MotStateIsDamaged(Oid dbid, Oid relid);
extern void MotStateRaiseDamaged(Oid dbid, Oid relid) pg_attribute_noreturn();
extern void MotStateHeal(Oid dbid, Oid relid);	/* none: all of the database */
extern void MotStateSetWritable(bool writable);
extern void MotStateAskWorker(void);	/* wake the checkpoint worker */
extern LWLock *MotStatLock;
extern MotCheckpointStat *MotCheckpointShared(void);
extern MotRecoveryStat *MotRecoveryShared(void);

/* ------------------------------------ manifest.c, snapshotfile.c, checkpoint.c, load.c
 *
 * $PGDATA/mot/<timeline 8 hex><C 16 hex>/	a complete checkpoint
 *		manifest							last written; names all others with their checksums
 *		<dbid>.<relid>.<part>				rows
 *	 the same with .tmp						on its way, or what a crash left
 * $PGDATA/mot/open							this server has been writing since the
 *											newest checkpoint: its log is needed
 */
#define MOT_DIRECTORY "mot"

typedef struct MotManifestFile
{
	Oid			dbid,
				relid;
	uint32		part;
	uint64		rows,
				bytes;			/* of the file */
	uint32		crc;			/* of the file */
} MotManifestFile;

typedef struct MotManifestTable
{
	Oid			dbid,
				relid;
	uint64		rows;
	char	   *definition;
	size_t		definition_len;
	int			nfiles;
	MotManifestFile *files;
} MotManifestTable;

typedef struct MotManifestInDoubt
{
	TransactionId xid;
	XLogRecPtr	lsn;
	char	   *ops;			/* may be a mapping (spill.c), until memory is
								 * reset */
	size_t		len;
} MotManifestInDoubt;

typedef struct MotManifestGivenUp
{
	Oid			dbid,
				relid;
	char	   *why;			/* not terminated where it was read */
	size_t		len;
} MotManifestGivenUp;

typedef struct MotManifest
{
	uint64		system_identifier;
	XLogRecPtr	lsn;			/* C */
	TimeLineID	tli;
	XLogRecPtr	redo;			/* the server's redo pointer at that time */
	TimestampTz time;
	bool		final;			/* written when nobody could write any more */
	int			rmgr_id;		/* our resource manager's in the log behind it */
	uint64		rows,
				bytes;
	int			ntables;
	MotManifestTable *tables;
	int			nindoubt;
	MotManifestInDoubt *indoubt;
	int			ngiven_up;		/* tables that redo behind it may still
								 * change, and that are not here */
	MotManifestGivenUp *given_up;
	XLogRecPtr	preserve;		/* an older one, to be put aside and not
								 * removed */
} MotManifest;

/* Newest complete checkpoint of that timeline's history, and where it is; NULL: there never was one.
 * Raises for a damaged one. */
extern MotManifest *MotManifestNewest(TimeLineID tli, char **directory);
extern void MotManifestWrite(const char *dir, MotManifest *manifest, bool lasting); /* fsync */
extern MotManifest *MotManifestRead(const char *dir);
extern void MotManifestRemoveOthers(XLogRecPtr keep_from);

/* Row files: blocks with checksums. */
typedef struct MotRowFileWriter MotRowFileWriter;
typedef struct MotRowFileReader MotRowFileReader;

extern char *MotRowFilePath(const char *dir, Oid dbid, Oid relid, uint32 part);
extern MotRowFileWriter *MotRowFileCreate(const char *dir, Oid dbid, Oid relid, uint32 part);
extern void MotRowFileAppend(MotRowFileWriter *w, unsigned host_bits, const void *row, size_t size);
extern void MotRowFileClose(MotRowFileWriter *w, MotManifestFile *file);	/* no fsync */
extern bool MotRowFileCloseLater(MotRowFileWriter *w, MotManifestFile *file);	/* no fsync yet; false:
																				 * let it be */
extern void MotRowFilesSync(void);	/* of those closed so */
extern void MotRowFilesForget(void);
extern void MotRowFileAbandon(MotRowFileWriter *w);
extern MotRowFileReader *MotRowFileOpen(const char *dir, const MotManifestFile *file);
extern bool MotRowFileNext(MotRowFileReader *r, unsigned *host_bits, const void **row, size_t *size);
extern void MotRowFileReaderClose(MotRowFileReader *r);

/* the process that recovers: a server for a single user has no startup process */
#define MotRecovers() (AmStartupProcess() || (!IsUnderPostmaster && InRecovery))

/*
 * Load the newest checkpoint, with helpers, and bring it up to "upto" from the
 * log.  In the startup process (rm_startup) or in the worker (clean start);
 * whichever comes second waits for the other and returns.  from: where the log is to be
 * read from, if not from the checkpoint on.
 */
extern void MotLoad(XLogRecPtr from, XLogRecPtr upto, TimeLineID tli);

/*
 * The startup process has come to the end of a crash's redo, which it began at
 * redo_from; the last record of ours (except START) was at passed_by.  true: the
 * worker may load after the checkpoint that follows, up to end.  false: it has to be done
 * now, the log to be read from *from on (invalid: from the checkpoint on).
 */
extern bool MotLoadLater(XLogRecPtr redo_from, XLogRecPtr passed_by, XLogRecPtr end,
						 XLogRecPtr *from);

/* in the startup process: all log there is has been replayed, up to "end" */
extern void MotLoadCheckEnd(XLogRecPtr end);

/* with mot.ignore_damaged: every table may lack changes */
extern void MotLoadGiveUp(const char *why);

/*
 * In the startup process, after MotReplayEnd.  needed: the log back to the
 * checkpoint that was loaded is not there, whether or not there is a slot.
 */
extern void MotCheckpointRecoveryEnd(bool needed);

/*
 * Named points at which a test build stops or kills itself: see
 * faults.h.  Nothing in production builds.
 */
#include "faults.h"

#endif							/* MOT_WAL_INTERNAL_H */
