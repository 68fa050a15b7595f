/*-------------------------------------------------------------------------
 *
 * prepared.c
 *	  The redo of prepared transactions: until it is known what becomes of them.
 *
 * In the log a prepared transaction is as one over both kinds of tables: its record
 * carries its xid, and counts if the server says that this is committed.  But that may
 * be said after a week, when checkpoints have let the log go; or after a crash, and
 * until then it has rows that nobody else may change.
 *
 * So its redo is kept in the list of those in doubt (indoubt.c), from before the server's
 * PREPARE record to the end, as "held": whoever finds fates decided passes it by, since
 * the session that ends it installs what it has changed.  A checkpoint takes
 * along what is in the list when its line is drawn.  Who installs says "over" within the
 * gate, and takes it out afterwards; so the line is before both, or behind both.
 * Until the server has prepared it, the process's own place at the gate speaks for it.
 *
 * Replay, on a standby or after a crash, puts such a record into the list as one that may be
 * prepared, and there it stays when recovery ends.  Committed, it is applied there as
 * others are.  A server that is open for writing knows which are prepared: they are
 * those running, since nothing else of before is.  Before anybody can change a row (checkpoint.c:
 * become_writable) the worker makes their changes once more, each in the slot of a
 * holder of its own (xact/prepared.c), under the locks that they had; they are held
 * from then on, and those that are not prepared go.  COMMIT PREPARED has that done first.  That
 * server says in its START record which of them go on, so that standbys forget the
 * others.
 *
 * Should there be no room for their changes, nobody can change anything, and it is
 * tried again for the next who wants to; what is there can be read.  ROLLBACK PREPARED
 * ends them as they are: they were nothing but redo, which goes when that is tried again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "wal/replay/apply.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"
#include "xact/xact.h"

/* -------------------------------------------------------------- the session */

/* path: they are in this file of spill.c's */
void *
MotPreparedRedoKeep(TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len, const char *path)
{
	InDoubt    *entry = MotInDoubtNew(xid, MOT_DOUBT_KEPT, lsn, ops, len, path);

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtLink(entry);
	LWLockRelease(MotApplyLock);
	return entry;
}

/* The server has prepared it: the list speaks for it from now on, and our place no longer. */
void
MotPreparedRedoKept(void *redo)
{
	InDoubt    *entry = redo;

	MotGateEnter(false);
	pg_atomic_write_u32(&entry->what, MOT_DOUBT_HELD);
	MotLoggerForget();
}

/* It has come to nothing. */
void
MotPreparedRedoDrop(void *redo)
{
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtUnlink(redo);
	LWLockRelease(MotApplyLock);
}

void
MotPreparedRedoFinished(void *redo)
{
	InDoubt    *entry = redo;

	pg_atomic_write_u32(&entry->what, MOT_DOUBT_OVER);
	MotGateLeave();
	MOT_FAULT("prepared-left");
	MotPreparedRedoDrop(redo);
}

/* its identifier, in this memory; *keeps_reads: what it has read, too */
static char *
identifier(const InDoubt *entry, const char *ops, bool *keeps_reads)
{
	const char *p = ops;
	const char *error;
	MotOpData	op;

	if (!MotRecordNext(&p, ops + entry->len, &op, &error) || !MOT_OP_IS_PREPARED(op.op))
		elog(ERROR, "redo of prepared transaction %u does not begin with its identifier", entry->xid);
	*keeps_reads = op.op == MOT_OP_PREPARED_READS;
	return pnstrdup(op.bytes, op.len);
}

static bool
is_to_be_restored(const char *gid)
{
	bool		found = false;

	LWLockAcquire(MotApplyLock, LW_SHARED);
	for (InDoubt *entry = MotReplay->first; entry != NULL && !found; entry = entry->next)
		if (pg_atomic_read_u32(&entry->what) == MOT_DOUBT_PREPARED)
		{
			const char *ops = MotInDoubtOps(entry);
			bool		keeps_reads;

			found = strcmp(identifier(entry, ops, &keeps_reads), gid) == 0;
			if (entry->in_file)
				MotSpillUnmap(ops, entry->len);
		}
	LWLockRelease(MotApplyLock);
	return found;
}

/*
 * COMMIT PREPARED, ROLLBACK PREPARED: of before a restart?  Where the tables are refused, the next
 * start finds what has become of it.  What is rolled back need not be restored, and there may be no
 * room for it.
 */
bool
MotPreparedRedoRestore(const char *gid, bool commit)
{
	if (!IsUnderPostmaster || IsBinaryUpgrade)
		return false;
	if (MotWalCurrentState() != MOT_WAL_READY && MotDirectoryExists())
		MotStateAwaitLoaded();
	if (MotWalCurrentState() != MOT_WAL_READY || pg_atomic_read_u32(&MotReplay->prepared) == 0 ||
		!is_to_be_restored(gid))
		return false;
	if (commit)
		MotWalCheckWritable();
	return !commit;
}

/* (before the tables are loaded it is not known) */
bool
MotPreparedRedoUnrestored(void)
{
	return MotWalCurrentState() == MOT_WAL_READY ? pg_atomic_read_u32(&MotReplay->prepared) != 0 :
		MotDirectoryExists();
}

/* --------------------------------------------------------------- the worker */

/* false: there is no room */
static bool
restore_one(InDoubt *entry)
{
	const char *ops = MotInDoubtOps(entry);
	bool		keeps_reads;
	char	   *gid = identifier(entry, ops, &keeps_reads);
	mot_session *session;
	void	   *storage;
	volatile bool done = false;

	PG_TRY();
	{
		session = MotPreparedRestore(entry->xid, gid);
		if (MotApplyAgain(session, ops, entry->len, entry->lsn, &storage))
		{
			MotPreparedRestored(entry, keeps_reads, storage);
			done = true;
		}
	}
	PG_FINALLY();
	{
		/* (nothing to be done if they were) */
		MotPreparedNotRestored();
		if (entry->in_file)
			MotSpillUnmap(ops, entry->len);
	}
	PG_END_TRY();
	pfree(gid);
	return done;
}

void
MotRestorePrepared(void)
{
	if (pg_atomic_read_u32(&MotReplay->prepared) == 0)
		return;
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtSettle(true);
	for (InDoubt *entry = MotReplay->first; entry != NULL; entry = entry->next)
	{
		if (pg_atomic_read_u32(&entry->what) != MOT_DOUBT_PREPARED)
			continue;
		MOT_FAULT("prepared-restore");
		if (!restore_one(entry))
		{
			LWLockRelease(MotApplyLock);
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("the prepared transaction with number %u could not be restored, because memory for memory-optimized tables is full",
							entry->xid)));
		}
		pg_atomic_write_u32(&entry->what, MOT_DOUBT_HELD);
		pg_atomic_fetch_sub_u32(&MotReplay->prepared, 1);
		pg_atomic_fetch_sub_u32(&MotReplay->in_doubt, 1);
	}
	MotTargetsEnd(MotSession());
	LWLockRelease(MotApplyLock);
}
