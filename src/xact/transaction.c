/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  The engine's transaction as part of PostgreSQL's.
 *
 * It begins with the first write (at SERIALIZABLE with the first read), is
 * prepared in PRE_COMMIT, where it may still wait and fail, and is committed
 * in COMMIT, after the server's commit record and before the locks go:
 * whoever waits for our virtual transaction id then finds the rows decided.
 * Between the two the server goes on preparing its own commit, and may wait for
 * other sessions.  Nobody must then have to wait for us who is in the way of
 * those (the checkpoint's line; at SERIALIZABLE also readers, once the timestamp
 * is drawn), so what can wait is done before that: rows are locked first, then
 * come NOTIFY's lock and ON COMMIT actions, then serial.c's section, then the
 * timestamp.
 * Storage that was dropped or replaced goes after the commit of the rows in
 * it; at abort, the other way round, changes are undone while the storage
 * that they were made in is still there.
 *
 * PREPARE TRANSACTION: prepared.c.
 *
 * Savepoints: each subtransaction remembers the position of the engine's
 * journal at its start.  One that was begun before the engine's transaction
 * was has the position at which that began.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_database.h"
#include "commands/async.h"
#include "commands/tablecmds.h"
#include "compat/compat.h"
#include "faults.h"
#include "islands/measure.h"
#include "replication/origin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "xact/held.h"
#include "xact/internal.h"
#include "xact/workers.h"

/*
 * levels[level]: where the subtransaction of that nesting level began, and
 * what waits for the youngest that writes wait for (0: nothing of its own)
 */
typedef struct Level
{
	mot_mark	mark;
	uint64		wait_id;
} Level;

static Level *levels = NULL;
static int	maxlevels = 0;

const MotXactParticipant *MotTheParticipant = NULL;
const MotXactLog *MotTheLog = NULL;

/* the log has been told of something in this transaction */
static bool logged = false;

/* this (sub)transaction has been told that it may write */
static bool writable = false;

/* this transaction may have changed something that logical decoding does not find */
static bool not_decoded = false;

static void set_mark(int level, mot_mark mark);
static void take_subxact_lock(mot_session *session);
static void before_commit(void);
static void check_decoded(void);
static void lock_rows(void);
static bool wait_first(bool changes);
static bool notifies(void);
static void prepare_commit(bool serial, bool mixed);
static void before_prepare(void);
static void finish_prepare(void);
static void finish_commit(void);
static void finish_abort(void);
static void reclaim_undone(void);
static bool has_changes(void);

void
MotCheckWritable(void)
{
	if (likely(writable))
		return;
	MotTheLog->writable();
	not_decoded |= !XLogLogicalInfoActive();
	if (GetCurrentTransactionNestLevel() > 1)
	{
		mot_session *session = MotSession();

		if (!mot_txn_active(session))
			MotTransactionBegin(session);
		take_subxact_lock(session);
	}
	writable = true;
}

mot_status
MotAmendRow(mot_table *table, mot_row *row, const mot_version *seen, size_t columns,
			unsigned host_bits, const void *data, size_t size)
{
	MotCheckWritable();
	return MotTheLog->amend(MotSession(), table, row, seen, columns, host_bits, data, size);
}

void
MotLogChanges(const RelFileLocator *storage, const MotLogicalChange *changes, int n)
{
	MotTheLog->change(storage, changes, n);
}

/* once for each subtransaction that writes; before it does */
static void
take_subxact_lock(mot_session *session)
{
	Level	   *level = &levels[GetCurrentTransactionNestLevel()];

	if (level->wait_id != 0)
		return;
	level->wait_id = MotTakeSubxactLock();
	mot_txn_set_host_id(session, level->wait_id);
}

/* a subtransaction has ended: what is left is to be waited for as before */
static void
restore_host_id(int level)
{
	uint64		id = 0;

	while (id == 0 && --level > 1)
		id = levels[level].wait_id;
	mot_txn_set_host_id(MotOpenSession, id != 0 ? id : MotMyVirtualXact());
}

/* a subtransaction commits: what it did is its parent's, and so is its lock, if need be */
static void
commit_subxact_lock(int level)
{
	uint64		id = levels[level].wait_id;

	if (id == 0)
		return;
	levels[level].wait_id = 0;
	if (level > 2 && levels[level - 1].wait_id == 0)
	{
		/* the server hands it on */
		levels[level - 1].wait_id = id;
		return;
	}
	/* first the name that waiters are to find when they have got the lock */
	restore_host_id(level);
	MotReleaseSubxactLock(id);
}

mot_session *
MotBeginWrite(void)
{
	mot_session *session = MotSession();

	if (unlikely(!writable))
		MotCheckWritable();
	if (unlikely(!mot_txn_active(session)))
		MotTransactionBegin(session);
	return session;
}

/* Begin the engine's transaction if there is none. */
void
MotTransactionBegin(mot_session *session)
{
	mot_isolation isolation;
	MotTaken	taken;
	mot_mark	start;

	if (mot_txn_active(session))
		return;

	if (IsInParallelMode() && XactIsoLevel != XACT_SERIALIZABLE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot change memory-optimized tables during a parallel operation")));

	if (XactIsoLevel == XACT_SERIALIZABLE)
		isolation = MOT_SERIALIZABLE;
	else if (IsolationUsesXactSnapshot())
		isolation = MOT_SNAPSHOT;
	else
		isolation = MOT_READ_COMMITTED;

	MotTransactionSnapshot();
	taken = MotTransactionTaken();
	mot_txn_begin(session, isolation, taken.ts, MotMyVirtualXact());
	if (unlikely(taken.beyond != NULL))
		mot_txn_set_beyond(session, taken.beyond);

	start = mot_txn_mark(session);
	for (int level = GetCurrentTransactionNestLevel(); level > 1; level--)
		set_mark(level, start);
}

/* Would parallel workers see all that this transaction does?  See parallel.c. */
bool
MotWorkersSeeAll(void)
{
	return XactIsoLevel != XACT_SERIALIZABLE && !MotTheParticipant->pending() && !MotTablesAwaited() && !MotSnapshotStale() &&
		(!IsolationUsesXactSnapshot() || MotTransactionTaken().ts != MOT_TS_NONE) &&
		(MotOpenSession == NULL || !mot_txn_defers(MotOpenSession));
}

static void
set_mark(int level, mot_mark mark)
{
	if (level >= maxlevels)
	{
		int			newmax = Max(16, 2 * level);
		Size		size = newmax * sizeof(Level);

		levels = levels == NULL ?
			MemoryContextAlloc(TopMemoryContext, size) : repalloc(levels, size);
		maxlevels = newmax;
	}
	levels[level].mark = mark;
	levels[level].wait_id = 0;
}

/* -------------------------------------------------------------- callbacks */

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			before_commit();
			break;

		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			finish_commit();
			break;

		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			/* who cleaned up may have failed at that */
			MotCleansUp = false;
			finish_abort();
			break;

		case XACT_EVENT_PRE_PREPARE:
			before_prepare();
			break;

		case XACT_EVENT_PREPARE:
			finish_prepare();
			break;

		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	switch (event)
	{
		case SUBXACT_EVENT_START_SUB:
			if (MotOpenSession != NULL && mot_txn_active(MotOpenSession))
				set_mark(level, mot_txn_mark(MotOpenSession));
			writable = false;
			break;

		case SUBXACT_EVENT_ABORT_SUB:
			MotTimeWaitOver();
			if (MotOpenSession != NULL && mot_txn_active(MotOpenSession))
			{
				mot_txn_keys_derive(MotOpenSession, !MotTheParticipant->pending());
				mot_txn_rollback_to(MotOpenSession, levels[level].mark);
				if (levels[level].wait_id != 0)
					restore_host_id(level);
			}
			writable = false;
			MotTheParticipant->sub_abort(level);
			MotSnapshotSubAbort(level);
			reclaim_undone();
			MotOwedTell();
			break;

		case SUBXACT_EVENT_COMMIT_SUB:
			if (MotOpenSession != NULL && mot_txn_active(MotOpenSession))
				commit_subxact_lock(level);
			writable = false;
			MotTheParticipant->sub_commit(level);
			MotSnapshotSubCommit(level);
			break;

		case SUBXACT_EVENT_PRE_COMMIT_SUB:
			break;
	}
}

/* ------------------------------------------------------------------- ends */

/* PRE_COMMIT: everything that can wait or fail does so here. */
static void
before_commit(void)
{
	bool		active = MotOpenSession != NULL && mot_txn_active(MotOpenSession);
	bool		changes = has_changes();
	bool		serial = false;
	bool		mixed;

	/*
	 * A subscription's worker ends prepared transactions within one of its
	 * own that does nothing else, and nobody tells us.  What has been
	 * restored since the start, or will be applied as it is, is installed
	 * before the publisher hears of it.
	 */
	if (unlikely(MotReplicationOrigin() != 0))
	{
		MOT_FAULT("prepared-served");
		if (MotEngine != NULL)
		{
			MotTheLog->before_snapshot();
			MotPreparedServe();
		}
	}
	if (active)
		lock_rows();
	if (XactIsoLevel == XACT_SERIALIZABLE)
		MotSerialAwaitPrepared(active ? MotOpenSession : NULL);
	if (!active && !changes)
		return;

	/*
	 * what tables lose is not needed any more by those whose locks the server
	 * has let go
	 */
	if (changes && unlikely(pg_atomic_read_u32(MotPreparedUsed) != 0) && MotTheParticipant->pending())
		MotPreparedAwaitEnded(false);
	if (changes)
		MotTheParticipant->define(active ? MotOpenSession : NULL);
	if (changes)
		check_decoded();
	if (active)
	{
		/*
		 * (an xid that the transaction gets later on tells nothing of heap
		 * tables)
		 */
		serial = XactIsoLevel == XACT_SERIALIZABLE &&
			(mot_txn_is_validated(MotOpenSession) || TransactionIdIsValid(GetTopTransactionIdIfAny())) &&
			MotSerialTouchesHeap();
		if (XactIsoLevel == XACT_SERIALIZABLE && !serial)
			MotSerialBefore();
	}
	mixed = wait_first(changes);
	if (active)
		prepare_commit(serial, mixed);
	MotTheParticipant->prepare();
	if (MotTheParticipant->loaded() && TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		!MotMixedAnnounced())
		MotMixedAnnounce(false, false);
	if (changes)
	{
		MOT_FAULT("commit-prepared");
		logged = true;
		MotTheLog->prepare(MotOpenSession);
		MOT_FAULT("commit-ready");
		if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
			MOT_FAULT("mixed-logged");
	}
}

/*
 * From 19 on decoding may begin with the first logical slot.  Who makes that waits for
 * the transactions that have an xid, which this one may not have had.
 */
static void
check_decoded(void)
{
	if (unlikely(XLogLogicalInfoActive()) && not_decoded)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access because logical decoding has begun meanwhile"),
				 errhint("The transaction might succeed if retried.")));
}

/* of changes that have waited for it; others' rows are waited for here */
static void
lock_rows(void)
{
	mot_status	status;

	while ((status = mot_txn_lock(MotOpenSession)) != MOT_OK)
	{
		if (status != MOT_BUSY)
			MotRaiseStatus(status, NULL);
		MotWaitAtCommit();
	}
}

/*
 * What the server would wait for after PRE_COMMIT, or because of what it then
 * does.  Returns whether this commit is a mixed one: it has an xid, by which others
 * go.  One that it gets for a standby's or a publisher's sake has no other half, in heap tables
 * or with listeners, so nobody's snapshots have to agree about it.
 */
static bool
wait_first(bool changes)
{
	bool		mixed;

	/* a second time these find nothing to do */
	if (XactIsoLevel == XACT_SERIALIZABLE && (MyXactFlags & XACT_FLAGS_ACCESSEDTEMPNAMESPACE) != 0)
		PreCommit_on_commit_actions();

	/* PreCommit_Notify takes the same lock; listeners go by the xid */
	if (notifies())
	{
		(void) GetCurrentTransactionId();
		MotTimeWait();
		LockSharedObject(DatabaseRelationId, InvalidOid, 0, AccessExclusiveLock);
		MotTimeWaitOver();
	}

	mixed = TransactionIdIsValid(GetTopTransactionIdIfAny());

	/*
	 * As in heap tables, nothing is seen and no lock is released before a
	 * synchronous standby has it.  And who applies what a publisher has done
	 * notes how far he has come in the server's commit record.
	 */
	if (changes && (MotTheLog->waits() || MotReplicationOrigin() != 0))
		(void) GetCurrentTransactionId();
	return mixed;
}

/* Only the server's refusal to PREPARE tells whether a NOTIFY is pending. */
static bool
notifies(void)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool pending = false;

	PG_TRY();
	{
		AtPrepare_Notify();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		pending = true;
	}
	PG_END_TRY();
	return pending;
}

/*
 * Draw the timestamp where that is due already, and validate.  If the server is
 * about to commit something of its own along with our changes, mixed.c has to
 * know; and at SERIALIZABLE serial.c, if there have been heap tables in it at all.
 */
static void
prepare_commit(bool serial, bool mixed)
{
	bool		writes = mot_txn_has_writes(MotOpenSession);
	bool		logs = XactIsoLevel == XACT_SERIALIZABLE && writes;
	mot_ts		ts = 0;
	mot_status	status;

	if (serial && !writes)
		mot_txn_order_reads(MotOpenSession);
	/* whoever goes by an xid, or by heap tables, knows of one order only */
	if (!serial && !mixed)
		mot_txn_may_precede(MotOpenSession);
	if (serial)
		MotSerialEnter();
	if (logs)
	{
		/*
		 * may wait, and between announcing and drawing there is no time for
		 * that
		 */
		logged = true;
		MotTheLog->enter();
	}
	if (mixed && (writes || serial))
		MotMixedAnnounce(XactIsoLevel == XACT_SERIALIZABLE, false);
	else if (logs && TransactionIdIsValid(GetTopTransactionIdIfAny()))
		MotMixedAnnounce(true, true);

	/*
	 * (Who changes heap tables only has a place by what it has read here;
	 * what comes behind that is not seen without it.)
	 */
	if (logs || serial)
		ts = mot_txn_draw(MotOpenSession);
	MotMixedDrawn(ts != 0 ? ts : MOT_TS_NONE);
	if (logs)
	{
		MotTheLog->drawn(ts);
		MOT_FAULT("commit-drawn");
	}
	status = mot_txn_prepare(MotOpenSession);
	MotRaiseStatus(status, NULL);
	if (serial)
		MotSerialCheck(false);
}

/*
 * Others may change rows that are shared by their keys, and where there is no key nothing would
 * tell after a restart which ones these were.  So there they are shared as they are from now on.
 */
static void
share_rows(void)
{
	mot_session *session = MotOpenSession;
	mot_ts		held = mot_snapshot_held(session);
	uint64		pos = 0;
	mot_lock	lock;
	mot_status	status;

	/*
	 * versions stay while we look; an error ends the transaction, and its
	 * snapshots
	 */
	(void) mot_snapshot_take(session);
	while (mot_txn_next_lock(session, &pos, &lock))
	{
		if (lock.mode != MOT_MODE_KEY_SHARE || MotTheLog->names(lock.table))
			continue;
		while ((status = mot_row_share(session, lock.row)) != MOT_OK)
		{
			if (status != MOT_BUSY)
				MotRaiseStatus(status, NULL);
			MotWaitAtCommit();
		}
	}
	mot_snapshot_hold(session, held);
}

static void
refuse_to_prepare(const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot PREPARE a %s memory-optimized tables", what),
			 errhint("%s", hint)));
}

/*
 * PRE_PREPARE.  The transaction's own end comes with COMMIT PREPARED, in a process
 * that has nothing of it but what is in shared memory.
 */
static void
before_prepare(void)
{
	bool		active = MotOpenSession != NULL && mot_txn_active(MotOpenSession);
	bool		changes = has_changes();
	bool		keeps = false;

	/* the server says so, a little later */
	if (changes && max_prepared_xacts == 0)
		return;
	if (MotTheParticipant->pending())
	{
		/* others may end it before those are at an end: as in before_commit */
		MotPreparedAwaitEnded(false);
		if (XactIsoLevel == XACT_SERIALIZABLE)
			refuse_to_prepare("SERIALIZABLE transaction that has created, altered, emptied or dropped",
							  "Use COMMIT, or do that at another isolation level.");
		if (!MotTheParticipant->portable())
			refuse_to_prepare("transaction that has altered, or made indexes of,",
							  "Use COMMIT, or do that in a transaction of its own.");
		/* by which it is ended */
		(void) MotBeginWrite();
		active = true;
	}

	if (!active && XactIsoLevel == XACT_SERIALIZABLE)
		MotSerialAwaitPrepared(NULL);
	if (!active)
		return;
	/* (as in before_commit: who has only read has the place of its snapshot) */
	if (XactIsoLevel == XACT_SERIALIZABLE)
		keeps = mot_txn_is_validated(MotOpenSession) || MotPreparedChangesHeap();

	/*
	 * its worker's COMMIT PREPARED would not go through the section
	 * (serial.c)
	 */
	if (keeps && !MotPreparedIsSaid())
		refuse_to_prepare("SERIALIZABLE transaction of a subscription that has read",
						  "Set default_transaction_isolation to another level for the subscription's owner.");
	lock_rows();
	if (changes)
		share_rows();
	if (XactIsoLevel == XACT_SERIALIZABLE)
	{
		MotSerialAwaitPrepared(MotOpenSession);
		if (!keeps)
			MotSerialBefore();
	}
	if (changes)
	{
		check_decoded();
		MotTheParticipant->define(MotOpenSession);
		if (MotTheParticipant->pending() && !MotTheParticipant->portable())
			refuse_to_prepare("transaction that would store a new definition of",
							  "Commit a change of the table's rows in a transaction of its own; then it has been stored.");
	}
	/* reads have to be valid now: there is no later occasion */
	if (!keeps)
		MotRaiseStatus(mot_txn_prepare(MotOpenSession), NULL);
	MotTheParticipant->prepare();
	if (changes || keeps)
	{
		logged = true;
		MotPreparedBegin(MotOpenSession, keeps);
	}
}

/* what this session knows of a transaction that is over */
static void
forget(bool commit)
{
	if (unlikely(mot_islands != MOT_ISLANDS_OFF))
		MotIslandsEnd(MotOpenSession);
	logged = false;
	writable = false;
	not_decoded = false;
	MotSnapshotEndXact(commit);
}

/* PREPARE: it goes on without us. */
static void
finish_prepare(void)
{
	if (!MotPreparedDone(MotOpenSession))
	{
		finish_commit();
		return;
	}
	MotTheParticipant->handed();
	MotTheParticipant->commit();
	MotPreparedEnd();
	forget(true);
	MotOwedTell();
}

/*
 * The log first, then the rows, then the storage; a checkpoint is kept from
 * coming in between (see wal/gate.c).
 */
static void
finish_commit(void)
{
	mot_session *session = MotOpenSession;
	bool		changes = session != NULL && mot_txn_active(session);
	bool		serial = changes && XactIsoLevel == XACT_SERIALIZABLE && mot_txn_has_writes(session);
	bool		loaded = session != NULL && MotTheParticipant->loaded();

	if (logged && session != NULL)
		MotTheLog->insert(session);
	if (changes || loaded)
	{
		mot_ts		ts = 0;

		if (changes)
			MOT_FAULT("commit-inserted");
		MotMixedDraw();
		if (changes)
			ts = mot_txn_commit(session);
		if (unlikely(loaded))
		{
			if (ts == 0)
				ts = mot_commit_draw(session);
			MotTheParticipant->born(ts);
		}
		MotMixedDone(ts);
		if (unlikely(serial))
			MotFairCommitted();
		if (changes)
			MOT_FAULT("commit-installed");
	}
	MotTheParticipant->commit();
	if (logged && session != NULL)
		MotTheLog->installed(session);
	MotPreparedEnd();
	forget(true);
	MotOwedTell();
}

static void
finish_abort(void)
{
	MotTimeWaitOver();
	if (MotOpenSession != NULL && mot_txn_active(MotOpenSession))
	{
		/* (uncommitted definitions are not those that keys are made by later) */
		mot_txn_keys_derive(MotOpenSession, !MotTheParticipant->pending());
		mot_txn_abort(MotOpenSession);
	}
	MotMixedWithdraw();
	MotTheParticipant->abort();
	MotPreparedEnd();
	if (MotOpenSession != NULL)
		MotTheLog->abort();
	forget(false);
	reclaim_undone();
	MotOwedTell();
}

/*
 * After a statement that ran out of memory: what it made is undone now, and
 * the next one, whose snapshot must be newer than that, should find that room.  (Otherwise
 * reclamation can wait for the maintenance worker.)
 */
static void
reclaim_undone(void)
{
	if (MotMemoryWasShort)
	{
		MotMemoryWasShort = false;
		if (MotOpenSession != NULL)
			(void) mot_reclaim_all(MotOpenSession); /* which moves the clock
													 * past it */
	}
}

static bool
has_changes(void)
{
	return MotTheParticipant->pending() ||
		(MotOpenSession != NULL && mot_txn_has_work(MotOpenSession));
}

void
MotXactInit(void)
{
	MotSnapshotInit();
	MotParallelInit();
	MotWorkersInit();
	MotHeldInit();
	MotWaitInit();
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}
