/*-------------------------------------------------------------------------
 *
 * recover.c
 *	  The newest checkpoint and the log that belongs to it.
 *
 * The log of a checkpoint, from its position to "upto", is sorted by table
 * (sort.c); then tables come back one by one, each with its part of the log
 * (load.c).
 *
 * After a crash this happens in the running server, as after a clean shutdown,
 * provided that the log will not be removed meanwhile: the server's checkpoint
 * at the end of its recovery waits for nobody, so it takes the slot, which
 * nobody can drop until the worker is armed; from then on the worker keeps the
 * server's checkpoints from completing if the slot does not keep the log
 * (checkpoint.c).  Nobody changes a table before all are there, and no
 * checkpoint of ours is written, so whatever happens before that, the next
 * start finds what this one has found.  What cannot be recovered is refused, and
 * left as it is.
 *
 * Where the slot does not keep the log, all is done at the end of the server's
 * recovery, and errors end it.  So does log that ends before the checkpoint's
 * position, because the server would go on writing there.
 *
 * A standby and recovery from an archive apply the log in its order: standby.c.
 * Where they cannot replay while they load, they load all tables here, and then apply the
 * log up to "upto": what lies before the server's own redo, which
 * goes on from there.  So does whoever starts with mot.ignore_damaged; should
 * the log be incomplete, all tables are left out then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "format.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"
#include "wal/recovery/sort.h"
#include "wal/replay/spill.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* what was loaded, in the process that leads */
static char loaded_directory[MAXPGPATH];

/* where the server's own redo began, if it has passed our records by; what we have read */
static XLogRecPtr redo_began = InvalidXLogRecPtr;
static XLogRecPtr reached = InvalidXLogRecPtr;

static void
load_newest(MotManifest *m, const char *directory, XLogRecPtr from, XLogRecPtr upto,
			TimeLineID tli)
{
	mot_session *session = MotSession();
	MotRecoveryStat *stat = MotRecoveryShared();
	MotSorted  *sorted = NULL;
	bool		by_table;
	bool		log_follows;

	/*
	 * Is the log put to the tables one by one?  Not where more will come; and
	 * not where damage is ignored, or has been.
	 */
	by_table = !mot_ignore_damaged && m->ngiven_up == 0 && (MotRecovers() ? !ArchiveRecoveryRequested : !RecoveryInProgress());

	/*
	 * A final checkpoint, and nobody has written since: no log belongs to it.
	 * The server may even have run without us in between.
	 */
	log_follows = from != InvalidXLogRecPtr || !m->final || MotOpenMarkerExists();
	if (log_follows)
		MotRecoverCheckLog(m);
	MotStateSet(MOT_IS_COMPLETE, !log_follows);
	MotStateSet(MOT_LOADS_IN_STEPS, (!log_follows || by_table) && !MotRecovers());

	ereport(LOG,
			(errmsg("loading memory-optimized tables from checkpoint \"%s\"", directory)));
	if (from == InvalidXLogRecPtr)
		from = m->lsn;
	if (log_follows && by_table)
	{
		sorted = MotSortLog(m, from, upto, tli);
		MOT_FAULT("load-sorted");
		LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
		stat->records_applied = MotSortedTransactions(sorted);
		stat->replayed_lsn = upto;
		LWLockRelease(MotStatLock);
	}
	(void) mot_snapshot_take(session);
	MotLoadCheckpoint(m, directory, sorted);
	if (m->nindoubt > 0 && sorted == NULL)
	{
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		for (int i = 0; i < m->nindoubt; i++)
			MotInDoubtAdd(m->indoubt[i].xid, m->indoubt[i].lsn, m->indoubt[i].ops, m->indoubt[i].len);
		LWLockRelease(MotApplyLock);
	}
	mot_snapshot_hold(session, MOT_TS_NONE);

	MOT_FAULT("load-log");
	if (sorted != NULL)
		MotSortFree(sorted);
	else
	{
		MotTrailBegin(m->lsn);
		if (log_follows && upto > from)
			MotRecoverLog(m, from, upto, tli);
		MotTrailLoaded();
	}
	if (!AmStartupProcess() && !RecoveryInProgress())
		MotLoadCheckEnd(upto);

	if (!log_follows && !MotRecovers() && MotStatePreserved() == InvalidXLogRecPtr)
		MotCheckpointRemember(m, directory);
}

void
MotLoad(XLogRecPtr from, XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	MotManifest *m;
	char	   *directory = NULL;
	mot_ts		began;
	TimestampTz began_at;

	if (!MotStateClaimLoad())
	{
		if (MotWalCurrentState() == MOT_WAL_REFUSED)
			MotStateRaiseRefusal();
		return;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT load", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);

	began_at = GetCurrentTimestamp();
	began = mot_engine_clock(MotEngine);
	MotSpillBegin();
	MotLeftOutStart();
	MOT_FAULT("load-begin");
	if (MotRowsAwaited())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the rows of memory-optimized tables have not been brought from the old cluster"),
				 errhint("Stop the server, run mot_upgrade, and start it again.")));
	m = MotManifestNewest(MotRecovers() ? recoveryTargetTLI : tli, &directory);
	MotRecoverBegin(m, directory);
	if (m != NULL)
	{
		load_newest(m, directory, from, upto, tli);
		MotRecoverDone(m, began_at);
	}
	if (!AmStartupProcess() && !RecoveryInProgress())
		MotReplayEnd();
	MOT_FAULT("load-end");
	if (RecoveryInProgress() && mot_engine_clock(MotEngine) > began)
		MotStateSetLoaded(mot_engine_clock(MotEngine));
	MotStateLoadDone();
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
}

/*
 * See internal.h.  A checkpoint that cannot be read is the worker's to refuse,
 * as long as nothing is lost by that.
 */
bool
MotLoadLater(XLogRecPtr redo_from, XLogRecPtr passed_by, XLogRecPtr end, XLogRecPtr *from)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	MotManifest *volatile m = NULL;
	volatile bool readable = false;
	char	   *directory;

	*from = InvalidXLogRecPtr;
	redo_began = redo_from;
	PG_TRY();
	{
		m = MotManifestNewest(recoveryTargetTLI, &directory);
		readable = true;
	}
	PG_CATCH();
	{
		if (!IsUnderPostmaster || !MotSlotUsable())
			PG_RE_THROW();
		MemoryContextSwitchTo(oldcxt);
		FlushErrorState();
	}
	PG_END_TRY();

	if (m == NULL && readable && passed_by != InvalidXLogRecPtr && !mot_ignore_damaged)
		MotRaiseDamage("the log has changes of memory-optimized tables, and there is no checkpoint of them");
	if (m != NULL && m->final && !MotOpenMarkerExists() && passed_by >= m->lsn)
	{
		/*
		 * Written after a final checkpoint, and there is no mark of that: a
		 * copy of a server that has just begun to write.  The log between
		 * that checkpoint and the beginning of redo is of no interest, and
		 * may be gone.
		 */
		*from = Max(redo_from, m->lsn);
		return false;
	}
	if (!IsUnderPostmaster)
		return false;
	if (m != NULL)
	{
		bool		log_follows = !m->final || MotOpenMarkerExists();

		if (!MotLogReaches(end, m->lsn) ||
			(log_follows && (mot_ignore_damaged || m->ngiven_up > 0 || !MotSlotKeeps(m->lsn))))
			return false;
	}
	MotStateSetReplayEnd(end);
	if (max_replication_slots > 0 && MotEngine != NULL)
		MotSlotHold();
	return true;
}

void
MotRecoverDone(const MotManifest *m, TimestampTz began)
{
	MotRecoveryStat *stat = MotRecoveryShared();
	long		secs;
	int			usecs;
	uint64		rows;

	TimestampDifference(began, GetCurrentTimestamp(), &secs, &usecs);
	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	stat->load_seconds = secs + usecs / 1000000.0;
	rows = stat->rows_loaded;
	LWLockRelease(MotStatLock);
	ereport(LOG,
			(errmsg("loaded memory-optimized tables: %d tables, %llu rows, %ld.%03d s", m->ntables,
					(unsigned long long) rows, secs, usecs / 1000)));
}

/*
 * The log behind a checkpoint is read by our ID, so it has to be the one with which it was written.
 */
void
MotRecoverCheckLog(const MotManifest *m)
{
	if (m->rmgr_id != mot_resource_manager_id)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the log of memory-optimized tables was written with mot.resource_manager_id = %d, and it is %d now",
						m->rmgr_id, mot_resource_manager_id),
				 errhint("Set it to %d again and restart the server; it can be changed after a clean shutdown of a primary.",
						 m->rmgr_id)));
}

/* The same in parts, for standby.c, too: m NULL: there is none. */
void
MotRecoverBegin(const MotManifest *m, const char *directory)
{
	MotRecoveryStat *stat = MotRecoveryShared();
	MotCheckpointStat *checkpoint = MotCheckpointShared();

	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	memset(stat, 0, sizeof(*stat));
	if (m != NULL)
	{
		strlcpy(loaded_directory, directory, MAXPGPATH);
		stat->checkpoint_lsn = m->lsn;
		stat->tables_total = m->ntables;
		checkpoint->checkpoint_lsn = m->lsn;
		checkpoint->redo_lsn = m->redo;
		checkpoint->rows = m->rows;
		checkpoint->bytes = m->bytes;
		checkpoint->finished_at = m->time;
	}
	LWLockRelease(MotStatLock);

	/* (who wrote it may have died before) */
	if (m != NULL && m->preserve != InvalidXLogRecPtr)
		MotManifestPutAside(m->preserve);

	/* redo passes them by, up to what makes or drops them */
	for (int i = 0; m != NULL && i < m->ngiven_up; i++)
	{
		MotManifestGivenUp *given = &m->given_up[i];
		char	   *why = pnstrdup(given->why, given->len);

		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("memory-optimized table with OID %u of database with OID %u is damaged and not available",
						given->relid, given->dbid),
				 errdetail("%s.", why)));
		MotStateDamage(given->dbid, given->relid, why);
	}
}

/* -------------------------------------------------------------------- log */

static void
replay_one(void *arg, XLogReaderState *record)
{
	/* (the same by whom it is read: rmgr.c) */
	if (AmStartupProcess() && ArchiveRecoveryRequested && !mot_ignore_damaged)
		MotReplayOrRefuse(record);
	else
		MotReplayRecord(record);
	reached = record->EndRecPtr;
}

void
MotRecoverLog(MotManifest *m, XLogRecPtr from, XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	volatile bool given_up = false;

	reached = from;
	PG_TRY();
	{
		/* in a backup of a standby: trail.c */
		if (!AmStartupProcess() || !ArchiveRecoveryRequested || MotLogIsHere(from, tli) ||
			!MotTrailRead(from, upto, replay_one))
			MotReadLog(from, upto, tli, replay_one, NULL);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (!mot_ignore_damaged || geterrcode() == MOT_FORMAT_ERRCODE)
			PG_RE_THROW();
		edata = MotErrorTake(oldcxt);
		LWLockReleaseAll();
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("%s", edata->message),
				 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.")));
		MotStatePreserve(m->lsn);
		MotReplayForget();
		MotLoadGiveUp(edata->message);
		given_up = true;
	}
	PG_END_TRY();

	/*
	 * What the server itself has replayed is there, and may tell of tables
	 * that were given up, and made anew, before.
	 */
	if (given_up && reached < redo_began && redo_began < upto)
		MotReadLog(redo_began, upto, tli, replay_one, NULL);
}

/*
 * A checkpoint is written when the log up to its position is durable.  Should
 * the log end before, nevertheless, it is damaged, and what was loaded is
 * ahead of all other tables.  What is logged from now on would be taken for
 * older than the checkpoint, too.
 */
void
MotLoadCheckEnd(XLogRecPtr end)
{
	MotRecoveryStat *stat = MotRecoveryShared();
	MotCheckpointStat *checkpoint = MotCheckpointShared();
	XLogRecPtr	lsn = stat->checkpoint_lsn;
	char	   *message;

	if (lsn == InvalidXLogRecPtr || MotLogReaches(end, lsn))
		return;
	message = psprintf("log ends at %X/%X, before checkpoint \"%s\" of memory-optimized tables at %X/%X",
					   LSN_FORMAT_ARGS(end), loaded_directory, LSN_FORMAT_ARGS(lsn));
	ereport(mot_ignore_damaged ? WARNING : ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("%s", message),
			 mot_ignore_damaged ?
			 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.") :
			 errdetail("The log is damaged or incomplete where it ends."),
			 errhint("Restore the log from the archive, or the server from a backup; mot.ignore_damaged starts it without the tables.")));
	MotLoadGiveUp(message);
	MotDirectoryPutAside(loaded_directory, ERROR);
	MotStateSet(MOT_IS_COMPLETE, false);
	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	stat->checkpoint_lsn = InvalidXLogRecPtr;
	memset(checkpoint, 0, sizeof(*checkpoint));
	LWLockRelease(MotStatLock);
}

/* The log has a gap: every table may lack changes. */
void
MotLoadGiveUp(const char *why)
{
	mot_session *session = MotSession();
	mot_table **tables;
	int			n;
	MotLeftOut *left;
	int			nleft;

	if (mot_txn_active(session))
		mot_txn_abort(session);
	tables = MotTables(InvalidOid, &n);
	for (int i = 0; i < n; i++)
		MotStateDamage(mot_table_host_db(tables[i]), mot_table_host_id(tables[i]), why);
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	for (int i = 0; i < n; i++)
		mot_table_drop(session, tables[i]);
	LWLockRelease(MotDirectoryLock);
	nleft = MotLeftOutList(&left);
	for (int i = 0; i < nleft; i++)
	{
		MotStateDamage(left[i].dbid, left[i].relid, why);
		MotLeftOutForget(left[i].dbid, left[i].relid);
	}
}
