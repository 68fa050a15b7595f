/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting for another transaction; errors for the engine's answers.
 *
 * The engine names the transaction that holds a row by the virtual
 * transaction id that we gave it when that transaction began.  Waiting is
 * waiting for that id's lock, as CREATE INDEX CONCURRENTLY does: the deadlock
 * detector, lock_timeout, cancellation, pg_locks and pg_stat_activity know
 * about it.  If the id's transaction has ended meanwhile there is no wait,
 * and the caller's next attempt finds what has become of the row.
 *
 * A subtransaction can end without its transaction, and lets go of the rows
 * that it locked when it is rolled back.  So each one that writes takes a
 * lock of its own, and waiters wait for the youngest one there is: it
 * covers, or is younger than, whatever took the row.  The server releases it at
 * rollback.  At commit it stands for the parent if that is a subtransaction
 * without a lock of its own; otherwise it is released, since the parent's lock,
 * or the transaction's, covers what was done (whoever waits for it wakes up and
 * finds that).  So there are never more of them than subtransactions that are
 * open, one inside the other, as of heap's, whose waiters wait for the
 * subtransaction's xid.  The lock's tag is of the kind "speculative token",
 * with a third field that the server's own do not have; pg_locks shows
 * "spectoken".
 *
 * When the holder ends all its waiters wake up, and whoever tries first gets
 * the row.  So that waiters of one row are served in the order in which they
 * came, they queue for the row's heavyweight tuple lock first, as heap's do:
 * its owner is the only one that waits for the transaction.  But whoever has a
 * weaker lock of the row already goes past them: they wait for him.
 *
 * Circles of transactions above READ COMMITTED do not wait for the deadlock detector:
 * see circle.c.
 *
 * A row of a heap table is waited for by a statement, which has its time
 * (statement_timeout).  Ours may be waited for by COMMIT, and the server takes a
 * statement's time off before it begins to commit.  So while we wait it is put on
 * again, up to the end that it had.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "compat/compat.h"
#include "compat/fence.h"
#include "compat/waitevent.h"
#include "engine/port.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"
#include "xact/internal.h"

bool		MotMemoryWasShort = false;

/*
 * ms: a COMMIT that waits has the server look for deadlocks after that, if not sooner (see
 * circle.c)
 */
#define COMMIT_DEADLOCK_TIMEOUT 20

#define SUBXACT_LOCK (UINT64CONST(1) << 63) /* a holder's id is one of these */
#define XID_HOLDER (UINT64CONST(1) << 62)	/* ... or of a prepared
											 * transaction */

/* statement_timeout is running because of us */
static bool timing = false;

/*
 * Whoever waits for his client is between two statements, or two rows of a COPY,
 * and has nothing in hand but what the engine knows of (mot_session_move_on).
 */
static bool
rests(unsigned slot)
{
	return ((volatile PGPROC *) &ProcGlobal->allProcs[slot])->wait_event_info == WAIT_EVENT_CLIENT_READ;
}

/*
 * A reader waits for a commit that is waiting itself: for the disk, or a
 * standby (SERIALIZABLE, changes of both kinds of tables).
 */
static void
row_wait_hook(void)
{
	CHECK_FOR_INTERRUPTS();
	(void) WaitLatch(NULL, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 1, MotWaitEvent(MOT_FOR_COMMIT));
}

void
MotWaitInit(void)
{
	mot_row_wait_hook = row_wait_hook;
	mot_rests_hook = rests;
	mot_fence_hook = MotFence;
}

/*
 * As mot_backoff, for instants that nobody interrupts.  One that lasts: whoever
 * is waited for may have died with the postmaster, and then we end as at an
 * immediate shutdown.
 */
void
MotBackoff(unsigned *spins)
{
	mot_backoff(spins);
	if (unlikely(*spins > 1024) && !PostmasterIsAlive())
		_exit(2);
}

/*
 * While something is waited for the statement's time runs, at its end, too.
 * Not in processes that nobody sends statements to: the server does not time
 * what these do.
 */
void
MotTimeWait(void)
{
	TimestampTz start;

	if (StatementTimeout <= 0 || (MyBackendType != B_BACKEND && MyBackendType != B_WAL_SENDER) ||
		get_timeout_active(STATEMENT_TIMEOUT))
		return;

	/* (the server may not have timed the statement that has set this) */
	start = Max(get_timeout_start_time(STATEMENT_TIMEOUT), GetCurrentStatementStartTimestamp());
	timing = true;
	enable_timeout_at(STATEMENT_TIMEOUT, TimestampTzPlusMilliseconds(start, StatementTimeout));
}

/* The wait is over; or the (sub)transaction, because of an error in it. */
void
MotTimeWaitOver(void)
{
	if (likely(!timing))
		return;
	timing = false;
	disable_timeout(STATEMENT_TIMEOUT, false);
}

static void
subxact_lock_tag(uint64 id, LOCKTAG *tag)
{
	SET_LOCKTAG_SPECULATIVE_INSERTION(*tag, (uint32) ((id & ~SUBXACT_LOCK) >> 32), (uint32) id);
	tag->locktag_field3 = 1;
}

/* It belongs to the subtransaction, whatever the present owner of resources is. */
uint64
MotTakeSubxactLock(void)
{
	static uint32 counter = 0;
	uint64		id = SUBXACT_LOCK | (uint64) MotMySlot() << 32 | ++counter;
	ResourceOwner owner = CurrentResourceOwner;
	LOCKTAG		tag;

	subxact_lock_tag(id, &tag);
	CurrentResourceOwner = CurTransactionResourceOwner;
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	CurrentResourceOwner = owner;
	return id;
}

void
MotReleaseSubxactLock(uint64 id)
{
	ResourceOwner owner = CurrentResourceOwner;
	LOCKTAG		tag;

	subxact_lock_tag(id, &tag);
	CurrentResourceOwner = CurTransactionResourceOwner;
	(void) LockRelease(&tag, ExclusiveLock, false);
	CurrentResourceOwner = owner;
}

uint64
MotHolderOfXid(TransactionId xid)
{
	return XID_HOLDER | xid;
}

/* (0 has none) */
TransactionId
MotXidOfHolder(uint64 id)
{
	return (TransactionId) id;
}

/* Wait until the holder's transaction, or subtransaction, has ended. */
static void
wait_for_id(uint64 id)
{
	LOCKTAG		tag;

	if ((id & (SUBXACT_LOCK | XID_HOLDER)) == XID_HOLDER)
	{
		MotPreparedWait((TransactionId) id);
		return;
	}
	if (!(id & SUBXACT_LOCK))
	{
		(void) VirtualXactLock(MotUnpackVirtualXact(id), true);
		return;
	}
	subxact_lock_tag(id, &tag);
	(void) LockAcquire(&tag, ShareLock, false, false);
	LockRelease(&tag, ShareLock, false);
}

/* Waiting would close a circle of transactions that wait for each other. */
static void
refuse_circle(void)
{
	mot_count_event(MotSession(), MOT_EVENT_DEADLOCK);
	if (!IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail("The holder of a row that this transaction needs waits for this transaction.")));
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to transactions that wait for each other"),
			 errdetail("The holder of a row that this transaction needs waits for this transaction."),
			 errhint("The transaction might succeed if retried.")));
}

/* Wait, and say so if that ends in a deadlock.  A relation: in its queue. */
static void
wait_for(mot_holder holder, Relation rel, MotWait *wait, bool commits)
{
	mot_session *session = MotSession();
	int			deadlock_timeout = DeadlockTimeout;

	mot_count_event(session, MOT_EVENT_WAIT);
	if (!MotCircleEnter(&holder))
		refuse_circle();
	MotTimeWait();
	PG_TRY();
	{
		if (commits)
			DeadlockTimeout = Min(deadlock_timeout, COMMIT_DEADLOCK_TIMEOUT);
		if (rel != NULL)
		{
			ItemPointerData tid;

			MotRowToTid(session, holder.row, &tid);
			if (wait->queued && !ItemPointerEquals(&tid, &wait->tid))
				MotWaitDone(rel, wait);

			/*
			 * who holds the row already, less strongly, is what the others in
			 * the queue wait for
			 */
			if (!wait->queued && !mot_row_held(session, holder.row))
			{
				LockTuple(rel, &tid, ExclusiveLock);
				wait->queued = true;
				wait->tid = tid;
			}
		}
		wait_for_id(holder.host_id);
	}
	PG_CATCH();
	{
		DeadlockTimeout = deadlock_timeout;
		MotCircleLeave();
		if (geterrcode() == ERRCODE_T_R_DEADLOCK_DETECTED)
		{
			if (commits)
			{
				FlushErrorState();
				refuse_circle();
			}
			mot_count_event(session, MOT_EVENT_DEADLOCK);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	DeadlockTimeout = deadlock_timeout;
	MotCircleLeave();
	/* first this: it tells what has interrupted us */
	CHECK_FOR_INTERRUPTS();
	MotTimeWaitOver();
}

/* with mot.write_conflicts = abort */
static void
refuse_to_wait(const char *detail, Relation rel)
{
	if (likely(mot_write_conflicts != MOT_WRITE_CONFLICTS_ABORT))
		return;
	mot_count_event(MotSession(), MOT_EVENT_HELD);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to a row held by another transaction"),
			 rel != NULL ? errdetail(detail, RelationGetRelationName(rel)) : errdetail("%s", detail),
			 errhint("The transaction might succeed if retried. With mot.write_conflicts = wait it would wait.")));
}

void
MotWaitForHolder(Relation rel, MotWait *wait)
{
	refuse_to_wait("A row of \"%s\" that this transaction is to change or lock is held.", rel);
	wait_for(mot_session_holder(MotSession()), rel, wait, false);
}

void
MotWaitAtCommit(void)
{
	refuse_to_wait("A row that this transaction is to commit a change of is held.", NULL);
	wait_for(mot_session_holder(MotSession()), NULL, NULL, true);
}

void
MotWaitForKey(Relation rel)
{
	refuse_to_wait("A row of \"%s\" with a key that this transaction is to add is held.", rel);
	wait_for(mot_session_holder(MotSession()), NULL, NULL, false);
}

/*
 * A subtransaction's end tells nothing of what was done before it, or has become its parent's: so
 * its transaction's is waited for.  And not what comes from the publisher itself: who is waited for
 * would wait for us, since one process brings all changes in their order; and what we look for was
 * committed there before those.
 */
bool
MotNameWriter(mot_holder *holder)
{
	const PGPROC *proc;
	VirtualTransactionId vxid;

	if ((holder->host_id & (SUBXACT_LOCK | XID_HOLDER)) == XID_HOLDER)
		return !MotPreparedUnsaid((TransactionId) holder->host_id);
	proc = &ProcGlobal->allProcs[holder->slot];
	if (MotApplyLeader(proc->pid) == MotApplyLeader(MyProcPid))
		return false;
	GET_VXID_FROM_PGPROC(vxid, *proc);
	if ((holder->host_id & SUBXACT_LOCK) != 0 && VirtualTransactionIdIsValid(vxid))
		holder->host_id = MotPackVirtualXact(vxid);
	return true;
}

void
MotWaitForWriter(Relation rel, const mot_holder *holder)
{
	refuse_to_wait("A row of \"%s\" that may be the one that this transaction is to change is held.", rel);
	wait_for(*holder, NULL, NULL, false);
}

void
MotWaitDone(Relation rel, MotWait *wait)
{
	if (wait->queued)
	{
		UnlockTuple(rel, &wait->tid, ExclusiveLock);
		wait->queued = false;
	}
}

/* if it is one's limit that has been met, and not a table's own */
static void
raise_quota(void)
{
	mot_quota_report quota;
	bool		role;
	char	   *name;

	if (!mot_session_full(MotSession(), &quota))
		return;
	role = quota.kind == MOT_QUOTA_ROLE;
	name = role ? GetUserNameFromId(quota.host_id, true) : get_database_name(quota.host_id);
	if (name == NULL)
		name = psprintf("%u", quota.host_id);
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 role ? errmsg("memory limit of role \"%s\" for memory-optimized tables exceeded", name) :
			 errmsg("memory limit of database \"%s\" for memory-optimized tables exceeded", name),
			 errdetail("Its memory-optimized tables take " UINT64_FORMAT " kB, and may take " UINT64_FORMAT " kB.",
					   quota.bytes / 1024, quota.limit / 1024),
			 errhint("Delete rows, truncate or drop tables, or raise the limit with SECURITY LABEL FOR mot ON %s.",
					 role ? "ROLE" : "DATABASE")));
}

void
MotRaiseDependency(mot_event event, const char *detail)
{
	mot_count_event(MotSession(), event);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to read/write dependencies among transactions"),
			 errdetail("%s", detail),
			 errhint("The transaction might succeed if retried.")));
}

void
MotRaiseStatus(mot_status status, Relation rel)
{
	const char *name = rel != NULL ? RelationGetRelationName(rel) : NULL;

	switch (status)
	{
		case MOT_OK:
			return;

		case MOT_NO_MEMORY:
			MotMemoryWasShort = true;
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory for memory-optimized tables"),
					 mot_insert_reserve == MOT_LEAST_RESERVE ?
					 errdetail("mot.max_memory is %d MB.", mot_max_memory_mb) :
					 errdetail("mot.max_memory is %d MB, of which new rows leave %g %% free (mot.insert_reserve).",
							   mot_max_memory_mb, mot_insert_reserve),
					 errhint("Delete rows, truncate or drop tables, or raise mot.max_memory and restart the server.")));
			break;

		case MOT_TABLE_FULL:
			MotMemoryWasShort = true;
			raise_quota();
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 name != NULL ?
					 errmsg("memory limit of memory-optimized table \"%s\" exceeded", name) :
					 errmsg("memory limit of a memory-optimized table exceeded"),
					 errhint("Delete rows, or raise the table's limit.")));
			break;

		case MOT_NO_PRIVATE_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("Failed on a request of the engine of memory-optimized tables.")));
			break;

		case MOT_CONFLICT_CHANGED:
			mot_count_event(MotSession(), MOT_EVENT_CHANGED);
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access due to concurrent update")));
			break;

		case MOT_CONFLICT_DELETED:
			mot_count_event(MotSession(), MOT_EVENT_DELETED);
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access due to concurrent delete")));
			break;

		case MOT_CONFLICT_READ:
			MotRaiseDependency(MOT_EVENT_READ,
							   "A row that this transaction has read was changed by a concurrent transaction.");
			break;

		case MOT_CONFLICT_PHANTOM:
			MotRaiseDependency(MOT_EVENT_PHANTOM, "A row was added to a range that this transaction has read.");
			break;

		case MOT_CONFLICT_KEPT:
			MotRaiseDependency(MOT_EVENT_READ,
							   "A row that this transaction has changed was read by a concurrent transaction that is prepared.");
			break;

		default:
			break;
	}
	elog(ERROR, "unexpected answer of the engine: %s", mot_status_name(status));
}
