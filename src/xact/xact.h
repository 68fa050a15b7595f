/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  Where PostgreSQL's transactions meet the engine's.
 *
 * A process opens its engine session on first use (slot = its pgprocno) and
 * closes it at exit.  Transaction, subtransaction and executor hooks drive
 * the engine's transaction:
 *
 *	- A PostgreSQL snapshot is given an engine snapshot the first time a scan
 *	  needs one, and keeps it as long as any query that runs with that
 *	  snapshot (ExecutorStart .. ExecutorEnd).  So all scans of a statement,
 *	  and the STABLE functions it calls, see one state; at REPEATABLE READ and
 *	  SERIALIZABLE the whole transaction has one, taken with the
 *	  transaction's first statement.
 *	- The oldest snapshot still in use is what the session publishes.
 *	- The engine transaction begins with the first write (at SERIALIZABLE:
 *	  with the first read), is prepared in PRE_COMMIT, committed in COMMIT and
 *	  undone by subtransaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_XACT_H
#define MOT_XACT_H

#include "mot.h"
#include "executor/execdesc.h"
#include "storage/itemptr.h"
#include "storage/latch.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "xact/logical.h"

/* shared memory of this room, for the module's shmem hooks */
extern void MotXactShmemInit(void);
extern void MotXactShmemRequest(void);

/* for the maintenance worker, see owed.c */
extern void MotOwedServe(Latch *latch);
extern bool MotOwedAsked(void);

extern mot_session *MotOpenSession; /* NULL if it is not open */
extern mot_session *MotSessionOpen(void);

/* This process's session; opens it; raises if there is no engine. */
static inline mot_session *
MotSession(void)
{
	return likely(MotOpenSession != NULL) ? MotOpenSession : MotSessionOpen();
}

/* one step of waiting for what takes an instant */
extern void MotBackoff(unsigned *spins);

/*
 * The view of a query that runs with PostgreSQL snapshot "snapshot"
 * (estate->es_snapshot); command comes from snapshot->curcid.  Begins the
 * engine transaction at SERIALIZABLE.  Valid until the query's ExecutorEnd (or
 * abort); memory seen through it stays until then.
 */
extern mot_view MotViewFor(Snapshot snapshot);

/* The same for a parallel scan's, in the leader and in workers (parallel.c). */
extern mot_view MotViewOfWorkers(Snapshot snapshot);

/*
 * The same for one that is no query's: of now, at every level; valid until the end of the
 * transaction.
 */
extern mot_view MotViewOfNow(Snapshot snapshot);

/*
 * For work that is no query (DDL, index builds, ANALYZE): what has been
 * committed by now and all that this transaction has done, whatever snapshot
 * the transaction has.  Released by MotLooseViewRelease or at transaction end.
 */
extern mot_view MotLooseView(void);
extern void MotLooseViewRelease(void);

/* Called when the executor has made a query's nodes. */
extern void (*MotNodesMade) (QueryDesc *query);

/*
 * What the hooks of ExecutorStart and ExecutorEnd do, for whoever takes the
 * executor's place (query->snapshot may be replaced by a newer one); possible
 * only if no other module's hooks are below ours.
 */
extern void MotQueryBegins(QueryDesc *query, int eflags);
extern void MotQueryEnds(const void *query);

/*
 * The same for a query that is known to read memory-optimized tables; "others":
 * and may read others, see MotReadsOthers.  Returns its view.
 */
extern mot_view MotQueryBeginsKnown(QueryDesc *query, bool others);

/*
 * The same for one that reads nothing else, none of whose functions could look at PostgreSQL's
 * snapshot, and that does without one.  "query" is whatever names it until MotQueryEnds; "command"
 * the transaction's.  False: not at this moment, or not at this level; nothing has been done.
 */
extern bool MotQueryBeginsBare(const void *query, uint32 command, mot_view *view);
extern bool MotReadsOthers(const PlannedStmt *plan);
extern bool MotExecutorIsOurs(void);

/*
 * Set by relation/: is it an ordinary table of ours?  (Queries that name one
 * take both snapshots as they start.)
 */
extern bool (*MotOrdinaryTable) (Oid relid);

/* Set by wal/: a standby has none of its tables yet, and will have all of them at once. */
extern bool (*MotTablesAwaited) (void);

/*
 * While this is not 0, ALTER TABLE is running: queries on ordinary tables are its own
 * (is a new foreign key satisfied?) and see what is there now.
 */
extern int	MotAlterTableDepth;

/* a module that was loaded before has a utility hook, which is below ours */
extern bool MotUtilityBelow;

/* Is it the snapshot of a query between ExecutorStart and ExecutorEnd? */
extern bool MotSnapshotRunning(Snapshot snapshot);
extern bool MotQueryRuns(void);

/*
 * At REPEATABLE READ and above: take the transaction's engine snapshot if it
 * has none yet.  For utility statements that are to count as its first.
 */
extern void MotTransactionSnapshot(void);
extern mot_ts MotTransactionSnapshotTs(void);	/* MOT_TS_NONE (the largest):
												 * none yet; 0: PostgreSQL's
												 * is older than any */

/* at REPEATABLE READ and above: does its snapshot not show what has this number? */
extern bool MotTransactionMisses(mot_ts ts);

/* what that has, and what the transaction has changed; false: it is not held to any */
extern bool MotTransactionView(mot_view *view);

/* Make sure an engine transaction is running; call before any engine write. */
extern mot_session *MotBeginWrite(void);

/*
 * Wait until the transaction that made the engine return MOT_BUSY has ended:
 * queue behind other waiters for that row (heavyweight tuple lock), then wait
 * for the holder's virtual transaction id.  Deadlock detection, lock_timeout
 * and cancel work as for heap rows; pg_locks shows both locks.  (With
 * mot.write_conflicts = abort it raises 40001 instead.)  The caller
 * then repeats the engine call; the tuple lock is dropped by
 * MotWaitDone once that got an answer other than MOT_BUSY (and by an error).
 */
typedef struct MotWait
{
	bool		queued;
	ItemPointerData tid;
} MotWait;

#define MOT_WAIT_INIT {false}
extern void MotWaitForHolder(Relation rel, MotWait *wait);

/* The same at commit, where there is no queue, and no waiting in a circle (circle.c). */
extern void MotWaitAtCommit(void);

/* The same for the transaction that a unique key depends on. */
extern void MotWaitForKey(Relation rel);

/*
 * ... that has a new version of a row which may be the one that is looked for.  First it is given its
 * transaction's name; false: a subscription's worker does not wait for it.
 */
extern bool MotNameWriter(mot_holder *holder);
extern void MotWaitForWriter(Relation rel, const mot_holder *holder);
extern void MotWaitDone(Relation rel, MotWait *wait);

/*
 * statement_timeout ends waits at commit, too: these two stand around whatever
 * may wait there.  An error ends the first by itself.
 */
extern void MotTimeWait(void);
extern void MotTimeWaitOver(void);

/*
 * What else has to be done when a (sub)transaction ends, by the layer above
 * (relation/storage.c).  The engine's transaction has been committed or rolled
 * back when these are called, and snapshots are still held.  "level": the
 * nesting level of the ending subtransaction.  None may raise.
 */
typedef struct MotXactParticipant
{
	void		(*define) (mot_session *session);	/* in PRE_COMMIT, before
													 * all that others wait
													 * for but rows; may wait
													 * and raise.  NULL: no
													 * rows */
	void		(*prepare) (void);	/* in PRE_COMMIT; it may still abort */
	bool		(*loaded) (void);	/* have rows come in without the engine's
									 * transaction? */
	void		(*born) (mot_ts ts);	/* ... which are as old as this */
	void		(*commit) (void);
	void		(*abort) (void);
	void		(*sub_commit) (int level);
	void		(*sub_abort) (int level);
	bool		(*pending) (void);	/* is there anything to do at the end? */

	/*
	 * PREPARE TRANSACTION: could another process do it?  Then pack, once the
	 * log has been told (may raise): a parcel, which is discarded in vain, or
	 * handed over, and ended by whoever ends the transaction.
	 */
	bool		(*portable) (void);
	void	   *(*pack) (void);
	void		(*discard) (void *parcel);
	void		(*handed) (void);
	void		(*end) (void *parcel, bool committed);
} MotXactParticipant;

extern const MotXactParticipant *MotTheParticipant; /* set at the start */

/*
 * The log of changes, kept by the layer above (wal/).  In the order of a
 * commit: writable (before a transaction's first change; may wait and raise),
 * waits (has this commit to wait for a standby? then it is given an xid), enter, drawn,
 * prepare (in PRE_COMMIT, the engine's transaction prepared; if there is an xid,
 * or much to log, and then there is one: the server's commit record will decide; may raise), insert
 * (in COMMIT, before the engine installs; must not raise), installed (rows and storage are as
 * committed), abort (at any time before, also when nothing was prepared). before_snapshot: an
 * engine snapshot is about to be taken to go with a PostgreSQL snapshot (standbys: what that sees
 * has to be applied); try_snapshot: the same, false where it cannot be. amend: MotAmendRow. change:
 * what logical decoding is to find of changes that have been made; gives the (sub)transaction an
 * xid.
 */
typedef struct MotXactLog
{
	void		(*writable) (void);
	bool		(*waits) (void);	/* the server's commit record will have to
									 * wait for a standby */
	void		(*enter) (void);	/* SERIALIZABLE: before the timestamp is
									 * drawn */
	void		(*drawn) (mot_ts ts);	/* ... and at once after it */
	void		(*prepare) (mot_session *session);
	void		(*insert) (mot_session *session);
	void		(*installed) (mot_session *session);
	void		(*abort) (void);
	void		(*before_snapshot) (void);
	bool		(*try_snapshot) (void);
	mot_status	(*amend) (mot_session *session, mot_table *table, mot_row *row, const mot_version *seen,
						  size_t columns, unsigned host_bits, const void *data, size_t size);
	void		(*change) (const RelFileLocator *storage, const MotLogicalChange *changes, int n);

	/*
	 * Two-phase commit (prepared.c).  names: is there a key by which the
	 * table's rows are found after a restart?  keep: as prepare, and a copy
	 * for checkpoints; may raise.  kept: the server has prepared it; or drop,
	 * on abort.  finish, finished: around its installation, or undoing, by
	 * whatever process.  restore: is it one of before a restart that has no
	 * holder yet?  If it is to be committed it has to have one now; may wait
	 * and raise.  await: until nobody is about to give it one.  unrestored:
	 * may there be some that have none?
	 */
	bool		(*names) (mot_table *table);
	void	   *(*keep) (mot_session *session, const char *gid, bool keeps_reads);
	void		(*kept) (void *redo);
	void		(*drop) (void *redo);
	void		(*finish) (void);
	void		(*finished) (void *redo);
	bool		(*restore) (const char *gid, bool commit);
	void		(*await) (void);
	bool		(*unrestored) (void);
} MotXactLog;

extern const MotXactLog *MotTheLog; /* set at the start */

/*
 * Two-phase commit, see prepared.c.  Said: PREPARE TRANSACTION has been.  Finish: runs COMMIT
 * PREPARED or ROLLBACK PREPARED.  Serve: installs what others have left undone.  AwaitEnded: what
 * the server has ended is in place, storage too, when it returns.  Restore: a session
 * in whose transaction the changes of a prepared one are to be made again; then one of the other
 * two follows.
 */
extern void MotPreparedSaid(const char *gid);
extern void MotPreparedFinish(const char *gid, bool commit, void (*run) (void *arg), void *arg);
extern void MotPreparedServe(void);

/* What has ended is in place: all, or what came with storage. */
extern void MotPreparedAwaitEnded(bool storage);
extern mot_session *MotPreparedRestore(TransactionId xid, const char *gid);
extern void MotPreparedRestored(void *redo, bool keeps_reads, void *storage);
extern void MotPreparedNotRestored(void);

/* before a change that does not go through MotBeginWrite (storage) */
extern void MotCheckWritable(void);

/*
 * mot_row_amend of a row whose first bytes ("columns") are as they were, with its record, at once;
 * only where the transaction will log nothing but what comes after it.
 */
extern mot_status MotAmendRow(mot_table *table, mot_row *row, const mot_version *seen, size_t columns,
							  unsigned host_bits, const void *data, size_t size);

/* what logical decoding is to find of changes that have been made */
extern void MotLogChanges(const RelFileLocator *storage, const MotLogicalChange *changes, int n);

/*
 * For the applier of a mixed transaction's record on a standby: as a writer
 * announces it (see mixed.c); ts: what its commit returned.
 */
extern void MotMixedApplyBegin(TransactionId xid);
extern void MotMixedDone(mot_ts ts);

/*
 * Raise the error that fits a status (53200, 40001, 54000 ...).  "rel" may be
 * NULL.  MOT_OK returns.  Duplicate keys are not raised here: relation.h's
 * MotRaiseDuplicate knows names and values.
 */
extern void MotRaiseStatus(mot_status status, Relation rel);

/* row identifiers: a row's number as a ctid and back */
extern void MotRowToTid(mot_session *session, const mot_row *row, ItemPointer tid);
extern mot_row *MotTidToRow(mot_session *session, mot_table *table, ItemPointer tid);

/* the same for versions of rows of ordinary tables: see tid.c */
#define MOT_TID_LOCKED UINT_MAX
extern void MotVersionToTid(mot_session *session, const mot_row *row, unsigned changes, ItemPointer tid);
extern mot_row *MotTidToVersion(mot_session *session, mot_table *table, ItemPointer tid, unsigned *changes);
extern bool MotTidOfChanges(ItemPointer tid);

#endif							/* MOT_XACT_H */
