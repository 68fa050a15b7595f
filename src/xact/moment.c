/*-------------------------------------------------------------------------
 *
 * moment.c
 *	  A heap snapshot and an engine snapshot of one moment.
 *
 * Commits that change heap tables only, and commits that change
 * memory-optimized tables only, know nothing of each other, but a client may
 * do one after the other.  Who sees the second has to see the first.  mixed.c
 * cannot help: it knows of transactions that do both.
 *
 * What a PostgreSQL snapshot holds changes when a transaction with an xid
 * ends, under ProcArrayLock held exclusively; the server counts that
 * (xactCompletionCount) and writes the count into each snapshot that it
 * computes.  So: compute a snapshot S, take ProcArrayLock in shared mode, see
 * whether the count is still that of S, and read the engine's clock.  If it
 * is, there is a moment at which both are what a snapshot taken just then
 * would be: what was committed before, on either side, is seen, and what was
 * committed later is not.  (A memory-only commit draws its number before its
 * client hears of it, one with an xid leaves the list of running ones before
 * its client does.)  If it is not, try again.
 *
 * A snapshot that is to be used with the result is renewed in place, all
 * copies that the server has made of it, which is possible as long as nothing
 * has been read with it.  (It is the whole transaction's, also if its first
 * statement comes after a savepoint.)  Its xmin remains as it was: that is the oldest xid
 * that has to be looked for in its list, so an older one does no harm, and
 * the server keeps registered snapshots in order of it.
 *
 * At SERIALIZABLE the server's conflict detection has a notion of its own
 * of when the snapshot was taken; for a newer one the transaction is
 * registered with it anew.  If it is READ ONLY DEFERRABLE, the snapshot has to
 * be safe as well, as the old one was: the server's wait for that happens
 * between taking a snapshot and using it, so here it is done again, after the
 * engine's has been taken, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "commands/extension.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "storage/predicate.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "xact/internal.h"

/*
 * How often and for how many ms to try before an old snapshot is put up with.
 * That takes long at SERIALIZABLE, when another transaction of this level that
 * changes both kinds of tables is waiting for the disk or a standby with its commit
 * record, and somebody has committed behind it.  A standby may never come.
 */
#define MANY_TRIES 20
#define MOST_MS 500
#define STANDBY_MS 50

static bool
deferrable(void)
{
	return IsolationIsSerializable() && XactReadOnly && XactDeferrable;
}

/*
 * Not one that was imported or that replication uses; nor when somebody could
 * already know us as a writer; nor one that the server has waited for because
 * it is safe, if there cannot be memory-optimized tables to be read.
 */
static bool
renewable(void)
{
	return !MotSnapshotImported && !am_walsender && !IsInParallelMode() &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		!(deferrable() && !OidIsValid(get_extension_oid("mot", true)));
}

/* GetSerializableTransactionSnapshot, but without waiting for a safe one */
static Snapshot
register_snapshot(Snapshot snapshot)
{
	bool		saved = XactDeferrable;

	XactDeferrable = false;
	PG_TRY();
	{
		snapshot = GetSerializableTransactionSnapshot(snapshot);
	}
	PG_FINALLY();
	{
		XactDeferrable = saved;
	}
	PG_END_TRY();
	return snapshot;
}

static bool
same_contents(Snapshot a, Snapshot b)
{
	return a->xmax == b->xmax && a->xcnt == b->xcnt && a->subxcnt == b->subxcnt &&
		a->suboverflowed == b->suboverflowed &&
		(a->xcnt == 0 || memcmp(a->xip, b->xip, a->xcnt * sizeof(TransactionId)) == 0) &&
		(a->subxcnt == 0 || a->subxip == NULL || b->subxip == NULL ||
		 memcmp(a->subxip, b->subxip, a->subxcnt * sizeof(TransactionId)) == 0);
}

/* an array for n xids: the old one, if it has room */
static TransactionId *
xids(TransactionId *old, uint32 room, const TransactionId *from, uint32 n)
{
	TransactionId *to = old;

	if (n == 0)
		return old;
	if (to == NULL || n > room)
		to = MemoryContextAlloc(TopTransactionContext, n * sizeof(TransactionId));
	memcpy(to, from, n * sizeof(TransactionId));
	return to;
}

static void
renew(Snapshot target, Snapshot now)
{
	uint32		subxcnt = now->suboverflowed && !now->takenDuringRecovery ? 0 : now->subxcnt;

	target->xmax = now->xmax;
	target->xip = xids(target->xip, target->xcnt, now->xip, now->xcnt);
	target->xcnt = now->xcnt;
	target->subxip = xids(target->subxip, Max(target->subxcnt, 0), now->subxip, subxcnt);
	target->subxcnt = subxcnt;
	target->suboverflowed = now->suboverflowed;
	target->takenDuringRecovery = now->takenDuringRecovery;
	MotSnapshotTimes(target, now);
}

/*
 * At READ COMMITTED: an engine snapshot to go with "snapshot", that of a query
 * which is about to run and nobody else's; it may become a newer one.
 */
MotTaken
MotMomentQuery(mot_session *session, Snapshot snapshot)
{
	unsigned	tries = 0;
	Snapshot	now;
	MotTaken	taken;
	bool		stale;

	for (;;)
	{
		now = GetTransactionSnapshot();
		taken = MotMixedTakeMoment(session, now, &stale);
		if (!stale)
			break;
		MotForgetBeyond(&taken.beyond);
		CHECK_FOR_INTERRUPTS();
		MotBackoff(&tries);
	}
	if (!same_contents(now, snapshot))
		renew(snapshot, now);
	return taken;
}

/*
 * At REPEATABLE READ and up, before anything has been read (or used: PostgreSQL's
 * has): the engine's snapshot for the transaction.  query_snapshot: that of the query that is
 * about to run, or NULL.  False: it is not of the moment of PostgreSQL's.  (For one that logical
 * decoding has made, see decoded.c.)
 */
bool
MotMomentTransaction(mot_session *session, Snapshot query_snapshot, bool used, MotTaken *result)
{
	MotTaken	taken = {0, NULL};
	static SnapshotData probe = {SNAPSHOT_MVCC};
	Snapshot	first = GetTransactionSnapshot();
	unsigned	tries = 0;
	TimestampTz since = 0;
	bool		safe = true;
	bool		known;

	/* (the server writes a count into those that it computes) */
	if (unlikely(MotSnapshotHeldEarly() && first->snapXactCompletionCount == 0))
	{
		*result = MotMixedTakeDecoded(session, first, &known);
		return known;
	}
	for (;;)
	{
		Snapshot	active = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
		Snapshot	now;
		bool		stale;

		InvalidateCatalogSnapshot();
		now = GetSnapshotData(&probe);
		MotForgetBeyond(&taken.beyond);
		taken = MotMixedTakeMoment(session, now, &stale);
		if (!stale)
		{
			if (same_contents(first, now) && (safe || MotSerialBecomesSafe()))
			{
				*result = taken;
				return true;
			}
			if (used || !renewable())
			{
				*result = taken;
				return false;
			}
			if (IsolationIsSerializable())
			{
				ReleasePredicateLocks(false, false);
				now = register_snapshot(&probe);
				safe = !deferrable();
			}
			if (query_snapshot != NULL && query_snapshot != first &&
				same_contents(query_snapshot, first))
				renew(query_snapshot, now);
			if (active != NULL && active != first && active != query_snapshot &&
				same_contents(active, first))
				renew(active, now);
			renew(first, now);
			if (!IsolationIsSerializable())
			{
				*result = taken;
				return true;
			}
		}
		if (since == 0)
			since = GetCurrentTimestamp();
		else if (tries > MANY_TRIES && safe &&
				 TimestampDifferenceExceeds(since, GetCurrentTimestamp(),
											TransactionIdIsValid(MotMixedAwaited()) ? STANDBY_MS : MOST_MS))
		{
			*result = taken;
			return false;
		}
		CHECK_FOR_INTERRUPTS();
		MotBackoff(&tries);
	}
}
