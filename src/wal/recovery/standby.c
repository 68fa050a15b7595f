/*-------------------------------------------------------------------------
 *
 * standby.c
 *	  A standby loads while it replays.
 *
 * Nobody is served by a standby, or a server that recovers from an archive, before replay has
 * come to where it is consistent.  So replay does not wait until our tables are
 * loaded.  When it begins, the startup process finds the newest checkpoint,
 * reads what lies between that and the server's own redo, as ever, and goes
 * on; but what it finds to be committed goes to a spool (spool.c).  The
 * checkpoint worker, which comes when the server is open, loads the tables
 * and applies what is spooled, in its order.  When it finds the spool empty, with
 * MotApplyLock, the tables are READY; from then on whoever learns of a commit
 * applies it itself.
 *
 * Statements that need a memory-optimized table wait until then, and can be cancelled.  A
 * transaction whose snapshot is older than what was applied is refused (MotStateSetLoaded). Nothing
 * else can see a table before that, so the worker needs no lock to apply.  It is the only one who
 * does.
 *
 * Replay hands over without waiting: the worker holds the lock for the last
 * piece of the spool only.  That there is a last one MotSpoolThrottle sees to.
 *
 * Nothing that another start would need goes meanwhile.  No checkpoint of ours is written, and
 * the slot keeps the log from the checkpoint on, which is in this server's
 * pg_wal, restored from an archive or not.  Where there can be no slot, or the log from the
 * checkpoint on is not there (a backup of a standby: trail.c), and where nobody could be
 * served (hot_standby = off) or nobody would come to load, all is loaded before replay
 * goes on, by the startup process (recover.c).  So it is with mot.ignore_damaged.
 *
 * When recovery ends before the worker is done, which may not even have begun, the server is
 * opened for writing, and the worker goes on: as after a crash (recover.c), the log from the
 * checkpoint on is there if it has to begin anew.  Only where the slot has gone, or the log has
 * commits that must not be read again (they are later than the target of recovery), the end of
 * recovery waits.  What cannot be loaded, or applied, is refused: heap tables are served, and
 * replayed, and the next start finds what this one has found.
 *
 * On a server with nothing to replay the startup process does not get as far
 * as calling us.  Then the worker, having waited an instant, loads what there
 * is (recover.c), and the startup process waits for it when there is something.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "compat/calls.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "postmaster/startup.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "wal/recovery/sort.h"
#include "wal/replay/spill.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* who has begun; see MotReplayShared */
#define NOBODY			0
#define STARTUP_BEGINS	1
#define STARTUP_BEGAN	2
#define WORKER			3

/* how long the worker waits for the startup process to begin: naps of 10 ms */
#define NAPS 50

/* of the spool: what is applied while replay waits */
#define LAST_BYTES ((uint64) 256 * 1024)

static bool worker_is_registered = false;

/* -------------------------------------------------- the startup process */

/* false: it has to be loaded before replay goes on */
static bool
begin(XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	MotManifest *m;
	char	   *directory = NULL;
	bool		log_follows;

	if (!EnableHotStandby || mot_ignore_damaged || !IsUnderPostmaster || MotRowsAwaited() || !worker_is_registered)
		return false;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT standby", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	m = MotManifestNewest(recoveryTargetTLI, &directory);
	log_follows = m != NULL && (!m->final || MotOpenMarkerExists());
	if (m != NULL && (!log_follows || m->lsn >= upto || MotLogIsHere(m->lsn, tli)) &&
		!MotSlotKeeps(m->lsn))
		MotSlotKeep(m->lsn);
	if (m == NULL || (log_follows && m->lsn < upto && !MotLogIsHere(m->lsn, tli)) || !MotSlotKeeps(m->lsn))
	{
		MemoryContextSwitchTo(oldcxt);
		MemoryContextDelete(cxt);
		return false;
	}

	if (log_follows)
		MotRecoverCheckLog(m);
	MotSpillBegin();
	MotLeftOutStart();
	MotRecoverBegin(m, directory);
	MotStateSet(MOT_IS_COMPLETE, !log_follows);
	MotStateSet(MOT_LOADS_IN_STEPS, false);
	strlcpy(MotReplay->directory, directory, sizeof(MotReplay->directory));
	MotSpoolBegin();
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	for (int i = 0; i < m->nindoubt; i++)
		MotInDoubtAdd(m->indoubt[i].xid, m->indoubt[i].lsn, m->indoubt[i].ops, m->indoubt[i].len);
	LWLockRelease(MotApplyLock);
	MotTrailBegin(m->lsn);
	if (log_follows && upto > m->lsn)
		MotRecoverLog(m, m->lsn, upto, tli);
	MotTrailLoaded();
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return true;
}

void
MotStandbyBegin(XLogRecPtr upto, TimeLineID tli)
{
	uint32		expected = NOBODY;
	bool		mine = pg_atomic_compare_exchange_u32(&MotReplay->standby, &expected, STARTUP_BEGINS);

	MOT_FAULT("standby-begin");
	if (!mine || !begin(upto, tli))
		MotLoad(InvalidXLogRecPtr, upto, tli);
	if (mine)
		pg_atomic_write_u32(&MotReplay->standby, STARTUP_BEGAN);
}

/*
 * Was there room for it when the server started?  The postmaster looks: from 17 on its
 * children have its list of workers no more, though still the pointer to where it was.
 */
void
MotStandbyLookForWorker(void)
{
	MotWorkerIter iter;

	worker_is_registered = false;
	MotForEachWorker(iter)
	{
		RegisteredBgWorker *rw = MotWorkerOf(iter);

		if (strcmp(rw->rw_worker.bgw_function_name, MOT_CHECKPOINT_MAIN) == 0)
			worker_is_registered = true;
	}
}

/* The worker comes when the server is open, and loads when all is prepared for that. */
bool
MotStandbyWorkerComes(void)
{
	return HotStandbyActive() && pg_atomic_read_u32(&MotReplay->standby) == STARTUP_BEGAN;
}

/*
 * Recovery ends, at this position, and what was in doubt has been decided, before what was spooled
 * has been applied.  true: the worker will
 * go on doing that when the server is open for writing, as after a crash: should there be one, the
 * slot has kept the log.  Nobody can drop it before the worker is armed.
 */
bool
MotStandbyEndsLater(XLogRecPtr end)
{
	MotRecoveryStat stat;
	bool		later = false;

	MotRecoveryStatGet(&stat);
	if (!MotSpooling() || MotWalCurrentState() == MOT_WAL_REFUSED || !MotSlotKeeps(stat.checkpoint_lsn))
		return false;
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	/* it may have been handed over meanwhile */
	if (MotSpooling())
	{
		MotStateSetReplayEnd(end);
		MotReplay->ended = true;
		later = true;
	}
	LWLockRelease(MotApplyLock);
	if (later)
	{
		MotSlotHold();
		ereport(LOG,
				(errmsg("memory-optimized tables are loaded while the server is open")));
	}
	return later;
}

/* It waits for that: returns when what was spooled has been applied, or never will be. */
void
MotStandbyAwait(void)
{
	bool		told = false;

	while (MotSpooling() && MotWalCurrentState() != MOT_WAL_REFUSED)
	{
		if (MotWalCurrentState() == MOT_WAL_UNLOADED)
		{
			MotStandbyLoadHere();
			continue;
		}
		if (!told)
			ereport(LOG,
					(errmsg("end of recovery waits for memory-optimized tables, which are being loaded")));
		told = true;
		ProcessStartupProcInterrupts();
		pg_usleep(10000L);
	}
}

/* Likewise: what is damaged is refused, as where the worker loads. */
void
MotStandbyLoadHere(void)
{
	MemoryContext cxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	PG_TRY();
	{
		MotStandbyLoad();
	}
	PG_CATCH();
	{
		if (!MotErrorIsDamage() || !MotSlotUsable())
			PG_RE_THROW();
		EmitErrorReport();
		MotLoadRefuse(MotErrorTake(cxt));
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
}

/* Nothing of what it was loaded from is touched. */
void
MotLoadRefuse(ErrorData *edata)
{
	LWLockReleaseAll();
	mot_snapshot_hold(MotSession(), MOT_TS_NONE);
	MotStateRefuse(edata->sqlerrcode, edata->message, edata->hint);
	MotStateLoadDone();
	MotSpoolForget();
}

/* ------------------------------------------------------------- the worker */

bool
MotStandbyLoads(void)
{
	for (int naps = 0;; naps++)
	{
		uint32		who = pg_atomic_read_u32(&MotReplay->standby);

		if (MotWalCurrentState() != MOT_WAL_UNLOADED)
			return true;
		if (who == STARTUP_BEGAN && MotSpooling())
		{
			MotStandbyLoad();
			return true;
		}
		if (who == NOBODY && naps >= NAPS &&
			pg_atomic_compare_exchange_u32(&MotReplay->standby, &who, WORKER))
			return false;
		if (!RecoveryInProgress())
			return false;
		if (ShutdownRequestPending)
			return true;
		MotNap(10, MOT_FOR_REPLAY);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
apply_readable(MotSpoolReader *reader, bool locked)
{
	while (MotSpoolNext(reader))
	{
		if (AmStartupProcess())
			ProcessStartupProcInterrupts();
		else if (!locked)
		{
			CHECK_FOR_INTERRUPTS();
			MotCheckpointLook();
		}
		MOT_FAULT("standby-apply");
		if (!locked)
			MotCheckpointGiveWay();
		while (!MotApply(reader->ops, reader->len, reader->lsn, reader->xid))
			MotApplyMakeRoom(locked);
		MotSpoolDone(reader);
	}
}

/*
 * In its order.  Others can see tables only from READY on, and learn of what is
 * committed by MotApplyLock: so whoever has a snapshot that sees a commit finds it spooled
 * before that, or applies it.
 */
static void
apply_spool(mot_ts began)
{
	MotSpoolReader reader;

	MotSpoolReadBegin(&reader);
	for (;;)
	{
		uint64		bytes;
		bool		last;

		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		bytes = MotSpoolReadable(&reader);
		if (bytes == 0)
			break;
		last = bytes <= LAST_BYTES;
		if (!last)
			LWLockRelease(MotApplyLock);
		apply_readable(&reader, last);
		if (last)
			LWLockRelease(MotApplyLock);
	}
	MotSpoolReadEnd(&reader);
	MOT_FAULT("standby-handover");
	if (mot_engine_clock(MotEngine) > began)
		MotStateSetLoaded(mot_engine_clock(MotEngine));
	MotSpoolEnd();
	if (MotReplay->ended)
	{
		/* nobody replays, so there is nobody to be kept out */
		LWLockRelease(MotApplyLock);
		MotReplayEnd();
		MotStateLoadDone();
		return;
	}
	MotStateLoadDone();
	LWLockRelease(MotApplyLock);
}

/* Or, if there is none, the startup process.  Whoever comes second waits for the other. */
void
MotStandbyLoad(void)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	mot_session *session = MotSession();
	MotManifest *m;
	mot_ts		began;
	TimestampTz began_at = GetCurrentTimestamp();

	if (!MotStateClaimLoad())
		return;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT load", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	began = mot_engine_clock(MotEngine);
	MOT_FAULT("load-begin");
	m = MotManifestRead(MotReplay->directory);
	ereport(LOG,
			(errmsg("loading memory-optimized tables from checkpoint \"%s\"", MotReplay->directory)));
	(void) mot_snapshot_take(session);
	MotLoadCheckpoint(m, MotReplay->directory, NULL);
	mot_snapshot_hold(session, MOT_TS_NONE);
	MOT_FAULT("load-log");
	apply_spool(began);
	MOT_FAULT("load-end");
	MotRecoverDone(m, began_at);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
}
