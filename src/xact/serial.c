/*-------------------------------------------------------------------------
 *
 * serial.c
 *	  SERIALIZABLE transactions that touch both heap and memory-optimized
 *	  tables.
 *
 * Each side keeps its own promise.  The engine's transactions are serial in
 * the order of their timestamps: every dependency between two of them points
 * forward.  The server's predicate locks (SSI) let a dependency point backward
 * (a reader that missed what an earlier commit wrote), but not in a way that
 * could close a circle of dependencies through heap tables.  A circle through
 * both is what neither sees.  What keeps it away:
 *
 *	1. Transactions that touch both kinds and write something commit one at a
 *	   time, from before the engine's timestamp is drawn until the server's
 *	   locks go.  So the orders of the two sides agree about them.
 *	2. Those that write heap tables only have what they read in the engine
 *	   validated, too, at a timestamp of their own.  So have those that write
 *	   nothing but have learned in the engine of what their snapshot lacks (a
 *	   caught error tells of that); their place is that timestamp's.
 *	3. Such a transaction fails if it missed, in heap tables, what a
 *	   transaction wrote that has committed (or is about to).
 *	4. The two snapshots of a transaction are of one moment (see moment.c and
 *	   mixed.c), so one that only reads has one place in the order of both
 *	   sides.
 *	5. The server has to know as a writer who writes in the engine alone, or
 *	   has a timestamp by 2 without writing at all.
 *	6. A commit that waits for the disk or a standby has its number, also one by 2,
 *	   and 3 behind it, but neither of the snapshots of who comes now has it, nor
 *	   who has a later number (see mixed.c).  Who has touched
 *	   both kinds and only reads tells the server, before it ends, that it comes
 *	   before all of those, as if it had read heap rows which they have changed.
 *
 * Why that is enough.  Give each transaction that touches heap tables a place:
 * one that only reads, the moment of its snapshot; one that has an xid, that
 * at which the server takes it off the list of running ones; one that writes
 * in the engine alone, its draw.  By 1 and 4 the engine's timestamps of those
 * that touch both kinds are in the order of their places (by 2 all of these
 * have one, the snapshot's if they only read), and dependencies in the engine,
 * also those over several transactions that touch nothing else, point forward.
 * (Who precedes those with smaller timestamps touches nothing else; by the
 * places that precede.c gives to such, these point forward, too.)
 *
 * Look at a circle; let F be the first in it, and G -> F the dependency on it.
 * This points backward, so it is one in heap tables: F overwrote what G read.
 * They ran at the same time, and G is no reader, which would have its place
 * before F.  Let P -> G be the dependency before.
 *
 *	- If G overwrote what P read in a heap table, P -> G -> F is what SSI looks
 *	  for, F being the first to commit.  If P only reads, F came before its
 *	  snapshot, which SSI asks for then; and 5 sees to it that it asks
 *	  that only if P does.
 *	- If it is another dependency in a heap table, P had ended when G's
 *	  snapshot was taken, and that was before F ended: F was not the first.
 *	- If it is one in the engine, G has touched both kinds, and 3 applies: F was
 *	  prepared before G looked.  For P, or whoever of both kinds leads to it,
 *	  is F or comes after F, and has either left the section before G came to
 *	  it, or is a reader of a moment before G's draw.  G looks after both.
 *	  Or it is a reader of a later moment, without G: by 6 the server knows
 *	  P -> G -> F, and F was there before P's snapshot was taken.
 *
 * A transaction T that is prepared (prepared.c) has neither place nor number before COMMIT
 * PREPARED, which goes through the section; then it has both, and cannot fail any more. So what
 * makes others fail must not happen to it meanwhile:
 *
 *	- What it has read in the engine stands (engine/kept.c): who is about to change it,
 *	  or to prepare that, waits for T's end.
 *	- So does F who has overwritten what T has read in heap tables, be it that F has
 *	  touched nothing else: 3, the other way round.  Since F looks before the server
 *	  knows of its end, T fails at PREPARE if there is such an F at all, at its end or not.
 *	  (T says that it keeps its reads, and looks then; F has overwritten, and looks
 *	  whether anybody does.)
 *
 * As its place is not before that of whoever is in the section, nobody fails by 3 because of it.
 * After a restart all that is known of prepared transactions is the server's, until the engine's
 * half has been restored; so long F waits for any.
 *
 * The section is a lock of the server's, so its deadlock detector, lock_timeout
 * and cancel know about it.  In the section nobody waits for a row or for
 * NOTIFY's lock: these are taken before.
 *
 * Transactions of one kind, and those that only read, do none of this.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "compat/predicate.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#include "xact/internal.h"

/*
 * The server looks at a relation for whether it is one that it cares about; of
 * this one nobody has a lock.
 */
static FormData_pg_class some_class =
{
	.relpersistence = RELPERSISTENCE_PERMANENT,.relkind = RELKIND_RELATION
};
static const RelationData some_relation = {.rd_id = FirstNormalObjectId,.rd_rel = &some_class};

/*
 * Has this SERIALIZABLE transaction left traces in heap tables that others'
 * order could depend on?
 */
bool
MotSerialTouchesHeap(void)
{
	SERIALIZABLEXACT *me = ShareSerializableXact();
	bool		touches;

	/* without one it is read-only, and its snapshot known to be safe */
	if (me == NULL)
		return false;
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return true;
	LWLockAcquire(SerializablePredicateListLock, LW_SHARED);
	LWLockAcquire(SerializableXactHashLock, LW_SHARED);
	touches = !MotConflictListEmpty(&me->predicateLocks) || !MotConflictListEmpty(&me->outConflicts) ||
		(me->flags & SXACT_FLAG_SUMMARY_CONFLICT_OUT) != 0;
	LWLockRelease(SerializableXactHashLock);
	LWLockRelease(SerializablePredicateListLock);
	return touches;
}

/* The section ends with the transaction. */
void
MotSerialEnter(void)
{
	LOCKTAG		tag;

	/* a number that the server's own do not have: see wait.c, too */
	SET_LOCKTAG_SPECULATIVE_INSERTION(tag, MyDatabaseId, 0);
	tag.locktag_field3 = 2;
	if (LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL)
		return;
	MotTimeWait();
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	MotTimeWaitOver();
}

/* Has it missed what others have committed (or are about to), or "anybody" has changed at all? */
static bool
missed(SERIALIZABLEXACT *me, bool anybody)
{
	RWConflict	conflict;
	bool		result;

	LWLockAcquire(SerializableXactHashLock, LW_SHARED);
	result = (me->flags & (SXACT_FLAG_SUMMARY_CONFLICT_OUT | SXACT_FLAG_CONFLICT_OUT)) != 0;
	for (conflict = MotNextConflictOut(me, NULL); conflict != NULL && !result;
		 conflict = MotNextConflictOut(me, conflict))
	{
		uint32		flags = conflict->sxactIn->flags;

		result = (flags & SXACT_FLAG_ROLLED_BACK) == 0 &&
			(anybody || (flags & SXACT_FLAG_COMMITTED) != 0 ||
			 ((flags & SXACT_FLAG_PREPARED) != 0 && !MotPreparedKeeps(conflict->sxactIn->topXid)));
	}
	LWLockRelease(SerializableXactHashLock);
	return result;
}

void
MotSerialCheck(bool keeps)
{
	SERIALIZABLEXACT *me = ShareSerializableXact();
	RelationData rel = some_relation;

	if (me == NULL)
		return;

	/*
	 * The server takes a transaction that has written no heap table for one
	 * that has only read, and lets these get away with more: their place is
	 * that of their snapshot.  Ours has a number, if only by what an error
	 * has told it.
	 */
	if (!XactReadOnly)
		CheckForSerializableConflictIn(&rel, NULL, InvalidBlockNumber);
	if (missed(me, keeps))
		MotRaiseDependency(MOT_EVENT_MIXED, keeps ?
						   "A heap row that this transaction has read is being changed, or was, by a concurrent transaction, which could end before it is known whether this one, prepared, is committed." :
						   "A heap row that this transaction has read was changed by a concurrent transaction, which comes after it in no order that fits memory-optimized tables, too.");
}

/*
 * A prepared transaction that has read a heap row which this one has overwritten. any: be its reads
 * kept or not
 */
static TransactionId
prepared_reader(SERIALIZABLEXACT *me, bool any)
{
	TransactionId xid = InvalidTransactionId;
	RWConflict	conflict;

	LWLockAcquire(SerializableXactHashLock, LW_SHARED);
	for (conflict = MotNextConflictIn(me, NULL); conflict != NULL && !TransactionIdIsValid(xid);
		 conflict = MotNextConflictIn(me, conflict))
	{
		const SERIALIZABLEXACT *reader = conflict->sxactOut;

		if (MotPreparedKeeps(reader->topXid) ||
			(any && (reader->flags & SXACT_FLAG_PREPARED) != 0 && reader->pid == 0))
			xid = reader->topXid;
	}
	LWLockRelease(SerializableXactHashLock);
	return xid;
}

/*
 * Who is about to commit, or to prepare, waits for those prepared whose reads he has changed;
 * session: his, if he has one.
 */
void
MotSerialAwaitPrepared(mot_session *session)
{
	SERIALIZABLEXACT *me = ShareSerializableXact();

	for (;;)
	{
		bool		any = MotPreparedAnyUnrestored();
		TransactionId xid = InvalidTransactionId;

		if (likely(!any && !MotPreparedAnyKeeps()))
			return;
		if (session != NULL)
			xid = MotXidOfHolder(mot_txn_meets_kept(session));
		if (!TransactionIdIsValid(xid) && me != NULL)
			xid = prepared_reader(me, any);
		if (!TransactionIdIsValid(xid))
			return;
		MotTimeWait();
		MotPreparedWait(xid);
		MotTimeWaitOver();
	}
}

/* Before the end of a transaction that is not in the section. */
void
MotSerialBefore(void)
{
	RelationData rel = some_relation;
	const TransactionId *xids;
	uint32		n = MotMixedLeftOut(&xids);

	if (likely(n == 0) || !MotSerialTouchesHeap())
		return;
	for (uint32 i = 0; i < n; i++)
		CheckForSerializableConflictOut(&rel, xids[i], GetTransactionSnapshot());
}

/*
 * READ ONLY DEFERRABLE: wait until everybody has ended who could make our
 * snapshot one that no serial order has, as the server does when it takes
 * such a snapshot (GetSafeSnapshot, predicate.c).  False: somebody did.
 */
bool
MotSerialBecomesSafe(void)
{
	SERIALIZABLEXACT *me = ShareSerializableXact();
	bool		safe;

	/* nobody was writing */
	if (me == NULL)
		return true;
	LWLockAcquire(SerializableXactHashLock, LW_EXCLUSIVE);
	me->flags |= SXACT_FLAG_DEFERRABLE_WAITING;
	while (!MotConflictListEmpty(&me->possibleUnsafeConflicts) && (me->flags & SXACT_FLAG_RO_UNSAFE) == 0)
	{
		LWLockRelease(SerializableXactHashLock);
		ProcWaitForSignal(WAIT_EVENT_SAFE_SNAPSHOT);
		LWLockAcquire(SerializableXactHashLock, LW_EXCLUSIVE);
	}
	me->flags &= ~SXACT_FLAG_DEFERRABLE_WAITING;
	safe = (me->flags & SXACT_FLAG_RO_UNSAFE) == 0;
	LWLockRelease(SerializableXactHashLock);
	if (safe)
		ReleasePredicateLocks(false, true);
	return safe;
}
