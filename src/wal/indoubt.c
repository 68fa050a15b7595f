/*-------------------------------------------------------------------------
 *
 * indoubt.c
 *	  Changes of mixed transactions whose fate replay does not know yet.
 *
 * The record of a transaction that has an xid comes before the server's commit
 * record, and counts only if that follows.  Until then it lies here: a small
 * one in the engine's region, where every process finds it at the same address
 * (and it takes less there than its changes did on the server that made
 * them); any other in a file (spill.c).
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
#include "wal/replay.h"
#include "wal/spill.h"
#include "wal/spool.h"
#include "xact/xact.h"

/* more than so many bytes lie in a file */
#define SMALL_SIZE 8192

typedef struct InDoubt
{
	struct InDoubt *next;
	TransactionId xid;
	XLogRecPtr	lsn;
	size_t		len;
	bool		in_file;
	char		ops[];
} InDoubt;

MotReplayShared *MotReplay = NULL;
LWLock	   *MotApplyLock = NULL;

static void add_entry(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len);
static InDoubt *unlink_first(InDoubt *before, InDoubt *entry);

static void
init_replay(void)
{
	pg_atomic_init_u64(&MotReplay->spool_before, PG_UINT64_MAX);
}

const MotShmem MotReplayShmem = {"mot replay", (void **) &MotReplay, sizeof(MotReplayShared), 0, init_replay};

uint32
MotInDoubtCount(void)
{
	return MotReplay == NULL ? 0 : pg_atomic_read_u32(&MotReplay->in_doubt);
}

static char *
file_of(XLogRecPtr lsn)
{
	return MotSpillPath("%08X%08X.doubt", LSN_FORMAT_ARGS(lsn));
}

static void
remove_file(XLogRecPtr lsn)
{
	char	   *path = file_of(lsn);

	MotFileRemove(path);
	pfree(path);
}

/* false: the disk is full */
static bool
write_file(XLogRecPtr lsn, const char *ops, size_t len)
{
	char	   *path = file_of(lsn);
	bool		done = MotSpillWriteIfRoom(path, 0, ops, len);

	if (!done)
		MotFileRemove(path);
	pfree(path);
	return done;
}

void
MotInDoubtAdd(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len)
{
	/* where the disk is full, beside the tables */
	if (len > SMALL_SIZE && write_file(lsn, ops, len))
		ops = NULL;
	add_entry(xid, lsn, ops, len);
}

/* They are in this file, which is ours now. */
void
MotInDoubtAddFile(TransactionId xid, XLogRecPtr lsn, const char *path, size_t len)
{
	char	   *to = file_of(lsn);

	(void) MotFileRename(path, to, ERROR);
	pfree(to);
	add_entry(xid, lsn, NULL, len);
}

/* ops NULL: they are in the file */
static void
add_entry(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len)
{
	mot_session *session = MotSession();
	mot_status	status;
	InDoubt    *entry;

	for (;;)
	{
		/* nobody will ever apply it; nor is anybody left who makes room */
		if (MotSpooling() && MotWalCurrentState() == MOT_WAL_REFUSED)
		{
			if (ops == NULL && len > 0)
				remove_file(lsn);
			return;
		}
		mot_session_use_reserve(session, true);
		entry = mot_host_alloc(session, offsetof(InDoubt, ops) + (ops != NULL ? len : 0), true, &status);
		mot_session_use_reserve(session, false);
		if (entry != NULL)
			break;
		if (status != MOT_NO_MEMORY)
			MotApplyRaiseMemory(status, lsn, NULL);
		/* there, however small it is, if there is room on the disk */
		if (ops != NULL && len > 0 && write_file(lsn, ops, len))
		{
			ops = NULL;
			continue;
		}
		MotApplyMakeRoom(true);
	}
	entry->next = NULL;
	entry->xid = xid;
	entry->lsn = lsn;
	entry->len = len;
	entry->in_file = ops == NULL && len > 0;
	if (ops != NULL)
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

static const char *
entry_ops(const InDoubt *entry)
{
	const char *ops;
	char	   *path;

	if (!entry->in_file)
		return entry->ops;
	path = file_of(entry->lsn);
	ops = MotSpillMap(path, entry->len);
	pfree(path);
	return ops;
}

static bool
apply_entry(const InDoubt *entry)
{
	const char *ops = entry_ops(entry);
	char	   *path = entry->in_file ? file_of(entry->lsn) : NULL;
	bool		done = MotReplayCommitted(ops, entry->len, entry->lsn, entry->xid, path);

	if (path != NULL)
	{
		MotSpillUnmap(ops, entry->len);
		pfree(path);
	}
	return done;
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
		if (committed && !apply_entry(entry))
		{
			/* others may have the lock meanwhile, so from the start */
			MotApplyMakeRoom(true);
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
	if (entry->in_file)
		remove_file(entry->lsn);
	mot_host_free(MotSession(), entry);
	/* after it was applied: who does not see the count sees the rows */
	pg_atomic_fetch_sub_u32(&MotReplay->in_doubt, 1);
	return next;
}

void
MotInDoubtEach(void (*visit) (void *arg, TransactionId xid, XLogRecPtr lsn,
							  const char *ops, size_t len, bool mapped), void *arg)
{
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		visit(arg, entry->xid, entry->lsn, entry_ops(entry), entry->len, entry->in_file);
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
