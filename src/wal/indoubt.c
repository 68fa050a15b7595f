/*-------------------------------------------------------------------------
 *
 * indoubt.c
 *	  Changes of mixed transactions whose fate replay does not know yet.
 *
 * The record of a transaction that has an xid comes before the server's commit
 * record, and counts only if that follows.  Until then it lies here, in the
 * engine's region (so that it is bounded as everything is, and every process
 * finds it at the same address).
 *
 * The server tells nobody that it has replayed a commit record.  So we look:
 * before each record of ours that is applied, and on a standby before each
 * engine snapshot that is taken to go with a snapshot of PostgreSQL's, and
 * before a table is looked up.  What the commit log then says is committed is
 * applied, in the order of the records.  That is never too early: a
 * transaction's rows are locked on the primary from before its record until
 * after its commit record, so whatever lies between the two in the log has
 * nothing to do with them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "wal/internal.h"
#include "wal/replay.h"
#include "xact/xact.h"

typedef struct InDoubt
{
	struct InDoubt *next;
	TransactionId xid;
	XLogRecPtr	lsn;
	size_t		len;
	char		ops[];
} InDoubt;

MotReplayShared *MotReplay = NULL;
LWLock	   *MotApplyLock = NULL;

static bool anything_decided(void);
static InDoubt *unlink_first(InDoubt *before, InDoubt *entry);

Size
MotReplayShmemSize(void)
{
	return sizeof(MotReplayShared);
}

void
MotReplayShmemInit(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	MotReplay = ShmemInitStruct("mot replay", sizeof(MotReplayShared), &found);
	if (!found)
	{
		memset(MotReplay, 0, sizeof(MotReplayShared));
		pg_atomic_init_u32(&MotReplay->in_doubt, 0);
	}
	LWLockRelease(AddinShmemInitLock);
}

uint32
MotInDoubtCount(void)
{
	return MotReplay == NULL ? 0 : pg_atomic_read_u32(&MotReplay->in_doubt);
}

void
MotInDoubtAdd(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len)
{
	mot_session *session = MotSession();
	mot_status	status;
	InDoubt    *entry = mot_host_alloc(session, offsetof(InDoubt, ops) + len, &status);

	if (entry == NULL)
		MotApplyRaiseMemory(status, lsn, NULL);
	entry->next = NULL;
	entry->xid = xid;
	entry->lsn = lsn;
	entry->len = len;
	memcpy(entry->ops, ops, len);

	if (MotReplay->last == NULL)
		MotReplay->first = entry;
	else
		MotReplay->last->next = entry;
	MotReplay->last = entry;

	/*
	 * a full barrier: the commit record is replayed after this, so whoever
	 * sees the commit sees the count
	 */
	pg_atomic_fetch_add_u32(&MotReplay->in_doubt, 1);
	MOT_FAULT("replay-doubt");
}

void
MotInDoubtSettle(bool at_end)
{
	InDoubt    *before = NULL;
	InDoubt    *entry = MotReplay->first;

	while (entry != NULL)
	{
		bool		committed = TransactionIdDidCommit(entry->xid);

		if (!committed && !at_end && !TransactionIdDidAbort(entry->xid))
		{
			before = entry;
			entry = entry->next;
			continue;
		}
		MOT_FAULT("replay-settle");
		if (committed && !MotApply(entry->ops, entry->len, entry->lsn, entry->xid))
		{
			/* others may have the lock meanwhile, so from the start */
			LWLockRelease(MotApplyLock);
			MotApplyMakeRoom();
			LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
			before = NULL;
			entry = MotReplay->first;
			continue;
		}
		entry = unlink_first(before, entry);
	}
}

/* The entry behind "before" goes; returns the one after it. */
static InDoubt *
unlink_first(InDoubt *before, InDoubt *entry)
{
	InDoubt    *next = entry->next;

	if (before == NULL)
		MotReplay->first = next;
	else
		before->next = next;
	if (MotReplay->last == entry)
		MotReplay->last = before;
	mot_host_free(MotSession(), entry);
	/* after it was applied: who does not see the count sees the rows */
	pg_atomic_fetch_sub_u32(&MotReplay->in_doubt, 1);
	return next;
}

void
MotInDoubtEach(void (*visit) (void *arg, TransactionId xid, XLogRecPtr lsn,
							  const char *ops, size_t len), void *arg)
{
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		visit(arg, entry->xid, entry->lsn, entry->ops, entry->len);
}

/* ---------------------------------------------------------------- sessions */

static bool
anything_decided(void)
{
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		if (TransactionIdDidCommit(entry->xid) || TransactionIdDidAbort(entry->xid))
			return true;
	return false;
}

/*
 * Everything that a PostgreSQL snapshot taken before this call can see as
 * committed is applied when it returns.
 */
void
MotInDoubtCatchUp(void)
{
	bool		at_end;
	bool		decided;

	if (likely(MotInDoubtCount() == 0))
		return;

	/* a standby may be promoted without having replayed a single record */
	at_end = !RecoveryInProgress();

	/* most of the time what is in doubt has not been decided */
	LWLockAcquire(MotApplyLock, LW_SHARED);
	decided = at_end || anything_decided();
	LWLockRelease(MotApplyLock);
	if (!decided)
		return;

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtSettle(at_end);
	LWLockRelease(MotApplyLock);
}

void
MotReplayAwait(void)
{
	LWLockAcquire(MotApplyLock, LW_SHARED);
	LWLockRelease(MotApplyLock);
}

void
MotInDoubtBeforeSnapshot(Snapshot snapshot)
{
	MotInDoubtCatchUp();
}

XLogRecPtr
MotReplayedUpTo(void)
{
	/*
	 * the server's pointer moves when a record is done, ours when our part of
	 * it is
	 */
	return Max(MotReplay->upto, GetXLogReplayRecPtr(NULL));
}

bool
MotReplayInStream(void)
{
	return MotReplay->streams != 0;
}
