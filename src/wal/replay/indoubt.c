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
 * Those that PREPARE TRANSACTION has ended wait here, too, as long as it takes.  Once a
 * server is open for writing they are held (prepared.c): then they are in the list for
 * checkpoints only, and whoever ends them takes them out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* more than so many bytes lie in a file */
#define SMALL_SIZE 8192

MotReplayShared *MotReplay = NULL;
LWLock	   *MotApplyLock = NULL;

typedef enum Fate
{
	UNKNOWN,
	COMMITTED,
	VOID
} Fate;

static void add_entry(TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len);
static void fill_entry(InDoubt *entry, TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len);
static const char *entry_ops(const InDoubt *entry);
static void link_last(InDoubt *entry);
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

static MotDoubt
kind_of(const char *ops, size_t len)
{
	return MotRecordIsPrepared(ops, len) ? MOT_DOUBT_PREPARED : MOT_DOUBT_MIXED;
}

void
MotInDoubtAdd(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len)
{
	MotDoubt	what = kind_of(ops, len);

	/* where the disk is full, beside the tables */
	if (len > SMALL_SIZE && write_file(lsn, ops, len))
		ops = NULL;
	add_entry(xid, what, lsn, ops, len);
}

/* They are in this file, which is ours now. */
void
MotInDoubtAddFile(TransactionId xid, XLogRecPtr lsn, const char *path, size_t len)
{
	char	   *to = file_of(lsn);
	MotDoubt	what;
	const char *ops;

	(void) MotFileRename(path, to, ERROR);
	ops = MotSpillMap(to, len);
	what = kind_of(ops, len);
	MotSpillUnmap(ops, len);
	pfree(to);
	add_entry(xid, what, lsn, NULL, len);
}

static void
fill_entry(InDoubt *entry, TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len)
{
	entry->next = NULL;
	entry->xid = xid;
	pg_atomic_init_u32(&entry->what, what);
	entry->lsn = lsn;
	entry->len = len;
	entry->in_file = ops == NULL && len > 0;
	entry->marked = entry->failed = false;
	if (ops != NULL)
		memcpy(entry->ops, ops, len);
}

/* ops NULL: they are in the file */
static void
add_entry(TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len)
{
	mot_session *session = MotSession();
	mot_status	status;
	InDoubt    *entry;

	for (;;)
	{
		/* nobody will ever apply it; nor is anybody left who makes room */
		if (MotStateIs(MOT_IS_REFUSED))
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
	fill_entry(entry, xid, what, lsn, ops, len);
	link_last(entry);
	MOT_FAULT("replay-doubt");
}

static void
link_last(InDoubt *entry)
{
	MotDoubt	what = (MotDoubt) pg_atomic_read_u32(&entry->what);

	if (MotReplay->last == NULL)
		MotReplay->first = entry;
	else
		MotReplay->last->next = entry;
	MotReplay->last = entry;
	if (!MOT_DOUBT_OPEN(what))
		return;
	if (what == MOT_DOUBT_PREPARED)
		pg_atomic_fetch_add_u32(&MotReplay->prepared, 1);

	/*
	 * a full barrier: the commit record is replayed after this, so whoever
	 * sees the commit sees the count
	 */
	pg_atomic_fetch_add_u32(&MotReplay->in_doubt, 1);
}

/*
 * For a transaction that is about to be prepared; not in the list yet.  path: the file that
 * has the operations, which is ours then; NULL: they are at "ops".
 */
InDoubt *
MotInDoubtNew(TransactionId xid, MotDoubt what, XLogRecPtr lsn, const char *ops, size_t len, const char *path)
{
	mot_session *session = MotSession();
	mot_status	status = MOT_NO_MEMORY;
	InDoubt    *entry = NULL;

	if (path != NULL)
	{
		char	   *to = file_of(lsn);

		(void) MotFileRename(path, to, ERROR);
		pfree(to);
	}
	else if (len <= SMALL_SIZE)
		entry = mot_host_alloc(session, offsetof(InDoubt, ops) + len, false, &status);
	if (entry == NULL)
	{
		if (path == NULL && !write_file(lsn, ops, len))
			MotFileRaise("write to file", MOT_SPILL_DIRECTORY);
		ops = NULL;
		entry = mot_host_alloc(session, offsetof(InDoubt, ops), true, &status);
	}
	if (entry == NULL)
	{
		remove_file(lsn);
		MotRaiseStatus(status, NULL);
	}
	fill_entry(entry, xid, what, lsn, ops, len);
	return entry;
}

void
MotInDoubtLink(InDoubt *entry)
{
	link_last(entry);
}

const char *
MotInDoubtOps(const InDoubt *entry)
{
	return entry_ops(entry);
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

/*
 * at_end: who is not committed will never be, unless it is prepared.  Only a server that is open
 * for writing has all those in its list of running transactions, and has no others there that are
 * in doubt; before, they wait.
 */
static Fate
fate_of(const InDoubt *entry, bool at_end)
{
	MotDoubt	what = (MotDoubt) pg_atomic_read_u32(&((InDoubt *) entry)->what);

	if (!MOT_DOUBT_OPEN(what))
		return UNKNOWN;
	if (what == MOT_DOUBT_PREPARED)
	{
		at_end = !RecoveryInProgress();
		if (at_end && TransactionIdIsInProgress(entry->xid))
			return UNKNOWN;
	}
	if (TransactionIdDidCommit(entry->xid))
		return COMMITTED;
	return at_end || TransactionIdDidAbort(entry->xid) ? VOID : UNKNOWN;
}

void
MotInDoubtSettle(bool at_end)
{
	InDoubt    *before = NULL;
	InDoubt    *entry = MotReplay->first;

	while (entry != NULL)
	{
		Fate		fate = fate_of(entry, at_end);

		if (fate == UNKNOWN)
		{
			before = entry;
			entry = entry->next;
			continue;
		}
		MOT_FAULT("replay-settle");
		/* (until it is done: it may raise) */
		entry->failed = true;
		if (fate == COMMITTED && !apply_entry(entry))
		{
			entry->failed = false;
			/* others may have the lock meanwhile, so from the start */
			MotApplyMakeRoom(true);
			before = NULL;
			entry = MotReplay->first;
			continue;
		}
		entry = unlink_first(before, entry);
	}
}

/* With the lock: it is damaged, which is ignored. */
void
MotInDoubtForgetFailed(void)
{
	InDoubt    *entry = MotReplay->first;

	while (entry != NULL && !entry->failed)
		entry = entry->next;
	if (entry != NULL)
		MotInDoubtUnlink(entry);
}

/* The entry behind "before" goes; returns the one after it. */
static InDoubt *
unlink_first(InDoubt *before, InDoubt *entry)
{
	InDoubt    *next = entry->next;
	MotDoubt	what = (MotDoubt) pg_atomic_read_u32(&entry->what);

	if (before == NULL)
		MotReplay->first = next;
	else
		before->next = next;
	if (MotReplay->last == entry)
		MotReplay->last = before;
	if (entry->in_file)
		remove_file(entry->lsn);
	mot_host_free(MotSession(), entry);
	if (what == MOT_DOUBT_PREPARED)
		pg_atomic_fetch_sub_u32(&MotReplay->prepared, 1);
	/* after it was applied: who does not see the count sees the rows */
	if (MOT_DOUBT_OPEN(what))
		pg_atomic_fetch_sub_u32(&MotReplay->in_doubt, 1);
	return next;
}

void
MotInDoubtUnlink(InDoubt *entry)
{
	InDoubt    *before = NULL;

	for (InDoubt *e = MotReplay->first; e != NULL && e != entry; e = e->next)
		before = e;
	(void) unlink_first(before, entry);
}

/* Nothing of these is on its way to be installed while the gate is closed. */
uint32
MotInDoubtMark(void)
{
	uint32		n = 0;

	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
	{
		MotDoubt	what = (MotDoubt) pg_atomic_read_u32(&entry->what);

		entry->marked = what != MOT_DOUBT_KEPT && what != MOT_DOUBT_OVER;
		n += entry->marked;
	}
	return n;
}

/* (on a standby all that there are) */
void
MotInDoubtEach(void (*visit) (void *arg, TransactionId xid, XLogRecPtr lsn,
							  const char *ops, size_t len, bool mapped), void *arg)
{
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		if (entry->marked)
			visit(arg, entry->xid, entry->lsn, entry_ops(entry), entry->len, entry->in_file);
}

static bool
is_among(TransactionId xid, const char *xids, size_t len)
{
	for (size_t at = 0; at + sizeof(TransactionId) <= len; at += sizeof(TransactionId))
	{
		TransactionId one;

		memcpy(&one, xids + at, sizeof(one));
		if (one == xid)
			return true;
	}
	return false;
}

void
MotInDoubtStart(const char *xids, size_t len)
{
	InDoubt    *before = NULL;
	InDoubt    *entry;

	MotInDoubtSettle(true);
	entry = MotReplay->first;
	while (entry != NULL)
	{
		if (pg_atomic_read_u32(&entry->what) == MOT_DOUBT_PREPARED && !is_among(entry->xid, xids, len))
			entry = unlink_first(before, entry);
		else
		{
			before = entry;
			entry = entry->next;
		}
	}
}

char *
MotInDoubtPrepared(size_t *len)
{
	char	   *xids;
	size_t		n = 0;

	LWLockAcquire(MotApplyLock, LW_SHARED);
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		n++;
	xids = palloc(Max(n, 1) * sizeof(TransactionId));
	*len = 0;
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
	{
		if (pg_atomic_read_u32(&entry->what) == MOT_DOUBT_MIXED)
			continue;
		memcpy(xids + *len, &entry->xid, sizeof(TransactionId));
		*len += sizeof(TransactionId);
	}
	LWLockRelease(MotApplyLock);
	return xids;
}

/* ---------------------------------------------------------------- sessions */

static bool
anything_decided(bool at_end)
{
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
		if (fate_of(entry, at_end) != UNKNOWN)
			return true;
	return false;
}

/*
 * After a crash the log is sorted by table, and tables come back one by one: what it leaves in
 * doubt can be applied when all are there.
 */
static bool
can_be_settled(void)
{
	if (MotSpooling())
		return true;
	if (MotWalCurrentState() != MOT_WAL_READY && MotWalCurrentState() != MOT_WAL_REFUSED && IsUnderPostmaster &&
		!MotRecovers() && !RecoveryInProgress())
		MotStateAwaitLoaded();
	return MotWalCurrentState() != MOT_WAL_REFUSED;
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
	decided = anything_decided(at_end);
	LWLockRelease(MotApplyLock);
	if (!decided || !can_be_settled())
		return;

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtSettle(at_end);
	LWLockRelease(MotApplyLock);
}

/* does it begin with one that somebody has failed to apply? */
static bool
decided_has_failed(void)
{
	InDoubt    *entry;
	bool		failed;

	LWLockAcquire(MotApplyLock, LW_SHARED);
	entry = MotReplay->first;
	while (entry != NULL && fate_of(entry, false) == UNKNOWN)
		entry = entry->next;
	failed = entry != NULL && entry->failed;
	LWLockRelease(MotApplyLock);
	return failed;
}

bool
MotInDoubtTry(void)
{
	MemoryContext cxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool done = true;

	if (likely(MotInDoubtCount() == 0))
		return true;
	if (!RecoveryInProgress())
	{
		MotInDoubtCatchUp();
		return true;
	}
	if (decided_has_failed())
		return false;
	PG_TRY();
	{
		MotInDoubtCatchUp();
	}
	PG_CATCH();
	{
		if (!MotErrorIsDamage())
			PG_RE_THROW();
		LWLockReleaseAll();
		InterruptHoldoffCount = holdoff;
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		done = false;
	}
	PG_END_TRY();
	return done;
}

void
MotReplayAwait(void)
{
	LWLockAcquire(MotApplyLock, LW_SHARED);
	LWLockRelease(MotApplyLock);
}
