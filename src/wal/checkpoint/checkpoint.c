/*-------------------------------------------------------------------------
 *
 * checkpoint.c
 *	  The worker that writes checkpoints, in step with the server's.
 *
 * The server has no hook for checkpoints.  What it has is a way for a process
 * to keep one from being completed: a checkpoint that has written its buffers
 * waits for every transaction (by virtual xid) that has
 * DELAY_CHKPT_COMPLETE set at that time.  So the worker always sits in a
 * transaction with that flag ("armed"), sees that a checkpoint has begun by
 * the redo pointer, which moves at its start, writes one of ours, whose
 * position is then not before the redo pointer, and lets go.
 *
 * Letting go is to go on to another transaction, armed again at once, because
 * the next checkpoint may begin as soon as this one has ended.  But the server
 * may not have come to its waiting yet, and would then wait for that other
 * transaction; so we go on to another one every now and then, until the
 * control file shows that the server's checkpoint is complete.
 *
 * Checkpoints at shutdown and at the end of recovery, and restartpoints on a
 * standby, wait for nobody.  At shutdown the worker writes a last checkpoint
 * when all sessions have ended, before it ends itself.  During recovery the
 * slot (slot.c) keeps the log; without one, the startup process loads, and writes a
 * checkpoint when it has replayed everything.
 *
 * While tables are loaded in the running server, also after a crash or a promotion, the worker is
 * armed, too.  There is nothing to be written yet, so it lets the server's checkpoints
 * pass as long as the slot keeps the log, and holds them until it is done otherwise.
 *
 * When the postmaster dies every process ends by itself, the server's
 * checkpointer not before it has completed the checkpoint it is at; so the worker
 * ends it: see worker_gone.
 *
 * A checkpoint of ours that fails keeps the server's waiting only if the log
 * would otherwise be removed, that is, if there is no slot.  Then no other error
 * lets the server's go on either: the worker stays in its transaction, and if it
 * has to end (FATAL), all other processes end with it, as when one of them crashes.
 *
 * As long as there is no memory-optimized table and never was one, the worker
 * sleeps.  It also makes the server ready for the first change: see
 * become_writable.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "compat/compat.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/resowner.h"
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/*
 * milliseconds between two looks at the redo pointer; while there is nothing to be done; after a
 * failure
 */
#define WATCH_MS	20
#define SLEEP_MS	10000
#define RETRY_MS	5000

PGDLLEXPORT void MotCheckpointMain(Datum arg);

static bool armed = false;
static bool watching = false;	/* covered etc. are of the time since it was
								 * armed */
static bool loading = false;
static bool letting_go = false; /* the server's checkpoint is not complete yet */
static bool behind = false;		/* the last attempt failed */
static bool caught_up = false;
static XLogRecPtr covered;		/* redo pointer up to which ours is in step */
static TimestampTz retry_at = 0;
static MemoryContext worker_cxt;

static void worker_gone(int code, Datum arg);
static bool is_needed(void);
static void load_if_nobody_did(void);
static void load_failed(void);
static long one_round(void);
static long standby_round(void);
static bool is_active(void);
static XLogRecPtr newest_checkpoint(void);
static void arm(void);
static void begin_watch(void);
static void go_on(void);
static bool server_is_through(void);
static bool try_checkpoint(bool final);
static void note_failure(const ErrorData *edata);
static void become_writable(void);
static void log_start(void);
static void shut_down(void);
static bool server_is_stopping(void);
static void wait_for_sessions(void);

void
MotCheckpointMain(Datum arg)
{
	/* no engine, nothing to do: exit code 0 means "do not start me again" */
	if (MotEngine == NULL)
		proc_exit(0);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	/* a checkpoint can be cancelled, and comes again; loading would not */
	pqsignal(SIGINT, PG_SIG_IGN);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	worker_cxt = AllocSetContextCreate(TopMemoryContext, "MOT checkpointer", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(worker_cxt);

	before_shmem_exit(worker_gone, (Datum) 0);
	MotStateSetWorker(true);
	MotRoomInWorker();
	(void) MotSession();
	load_if_nobody_did();
	pqsignal(SIGINT, StatementCancelHandler);
	if (MotDirectoryExists())
	{
		/* what a crash has left unfinished */
		MotStateBeginCheckpoint();
		MotManifestRemoveOthers(InvalidXLogRecPtr);
		MotStateEndCheckpoint();
	}

	for (;;)
	{
		long		nap = RETRY_MS;

		if (ShutdownRequestPending)
			shut_down();

		PG_TRY();
		{
			CHECK_FOR_INTERRUPTS();
			if (ConfigReloadPending)
			{
				ConfigReloadPending = false;
				ProcessConfigFile(PGC_SIGHUP);
			}
			nap = RecoveryInProgress() ? standby_round() : one_round();
		}
		PG_CATCH();
		{
			ErrorData  *edata;

			EmitErrorReport();
			edata = MotErrorTake(worker_cxt);
			note_failure(edata);
			LWLockReleaseAll();
			if (armed && is_needed())
			{
				/*
				 * a checkpoint of the server may be waiting for this
				 * transaction
				 */
				while (IsSubTransaction())
					RollbackAndReleaseCurrentSubTransaction();
				CurrentResourceOwner = TopTransactionResourceOwner;
			}
			else
			{
				AbortCurrentTransaction();
				armed = false;
			}
			if (MotStateIs(MOT_IS_ASKED))
				MotStateWritableFailed(edata->message);
			nap = 1000;
		}
		PG_END_TRY();

		MemoryContextSwitchTo(worker_cxt);
		MemoryContextReset(worker_cxt);
		MotNap(nap, MOT_FOR_CHECKPOINT_WORK);
	}
}

static void
worker_gone(int code, Datum arg)
{
	/*
	 * The postmaster has died, so all others end, too, each when it notices.
	 * The server's checkpointer notices after the checkpoint it is at, which
	 * would no longer wait for us and, without a slot, remove the log that
	 * the next start needs from our last checkpoint on.  It must not survive
	 * us: it is told what the postmaster tells it at an immediate shutdown,
	 * and we end as we would then, which leaves our transaction where it is.
	 */
	if (armed && !PostmasterIsAlive())
	{
		int			checkpointer = MotCheckpointerPid();

		if (checkpointer != 0)
			kill(checkpointer, SIGQUIT);
		_exit(2);
	}

	/*
	 * FATAL: a second passes until we come back, in which the server's
	 * checkpoint would complete.  So we leave our transaction where it is,
	 * here too, and the postmaster starts everything anew.
	 */
	LWLockReleaseAll();
	if (loading && MotWalCurrentState() == MOT_WAL_LOADING && !is_needed())
	{
		MotStateRefuse(ERRCODE_DATA_CORRUPTED, "the checkpoint worker has ended before they were loaded", "Restart the server.");
		MotStateLoadDone();
		MotSpoolForget();
	}
	if (code != 0 && is_needed())
	{
		ereport(LOG,
				(errmsg("mot checkpointer ends by an error: without its replication slot the server has to start over")));
		_exit(2);
	}
	MotStateSetWritable(false);
	MotStateSetWorker(false);
}

/* Would log be removed that we need, if a checkpoint of the server did not wait for us? */
static bool
is_needed(void)
{
	return (MotWalCurrentState() == MOT_WAL_READY || loading) && !RecoveryInProgress() && is_active() &&
		!MotStateIs(MOT_IS_COMPLETE) && !MotSlotUsable();
}

/* ----------------------------------------------------------------- loading */

/*
 * After a shutdown, or a crash of which the server has recovered; or on a
 * standby that has nothing to replay yet.  What is being loaded needs its log once
 * more if we crash before there is another checkpoint of ours: so on a
 * primary we are armed before that.
 */
static void
load_if_nobody_did(void)
{
	TimeLineID	tli;
	XLogRecPtr	upto;

	if (MotWalCurrentState() != MOT_WAL_UNLOADED)
		return;
	loading = true;
	if (RecoveryInProgress() || MotSpooling())
	{
		volatile bool done = true;

		MotCheckpointLook();	/* the server may have been open since */
		MemoryContextSwitchTo(worker_cxt);
		PG_TRY();
		{
			done = MotStandbyLoads();
		}
		PG_CATCH();
		{
			load_failed();
		}
		PG_END_TRY();
		if (done)
		{
			loading = false;
			MotSlotLetGo();
			return;
		}
	}
	if (RecoveryInProgress())
		upto = GetXLogReplayRecPtr(&tli);
	else
	{
		upto = GetFlushRecPtr(&tli);
		if (MotStateReplayEnd() != InvalidXLogRecPtr)
			upto = MotStateReplayEnd();
		arm();
		begin_watch();
	}
	MemoryContextSwitchTo(worker_cxt);

	PG_TRY();
	{
		MotLoad(InvalidXLogRecPtr, upto, tli);
	}
	PG_CATCH();
	{
		load_failed();
	}
	PG_END_TRY();
	loading = false;
	MotSlotLetGo();
}

/* Nothing of what it was loaded from is touched; without a slot, though, its log may go. */
static void
load_failed(void)
{
	ErrorData  *edata;

	EmitErrorReport();
	edata = MotErrorTake(worker_cxt);
	LWLockReleaseAll();
	mot_snapshot_hold(MotSession(), MOT_TS_NONE);
	if (armed)
	{
		MyProc->delayChkptFlags &= ~DELAY_CHKPT_COMPLETE;
		AbortCurrentTransaction();
		armed = false;
		MemoryContextSwitchTo(worker_cxt);
	}
	MotLoadRefuse(edata);
}

/*
 * While we load, or apply redo, every now and then.  The server is to stop: the next start can begin
 * anew, if its log is kept.  Or it has been promoted: from now on we are armed.
 */
void
MotCheckpointLook(void)
{
	/* (a session may apply redo as well: it ends as all of them do) */
	if (worker_cxt != NULL)
		MotEndWithServer();
	if (loading && !armed && !RecoveryInProgress())
	{
		MemoryContext oldcxt = CurrentMemoryContext;

		arm();
		begin_watch();
		MemoryContextSwitchTo(oldcxt);
	}
	if (loading && ShutdownRequestPending && (MotStateIs(MOT_IS_COMPLETE) || MotSlotUsable()) &&
		server_is_stopping())
		ereport(ERROR,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("memory-optimized tables were not loaded completely, because the server is to stop")));
}

/*
 * A checkpoint of the server that has begun while we load need not wait for us
 * if the slot keeps the log.  One that had begun before we were armed does not
 * wait; until it is over nobody can drop the slot.  But a base backup that
 * begins with that checkpoint has no log from before it: it waits until ours is
 * as new.
 */
void
MotCheckpointGiveWay(void)
{
	MemoryContext oldcxt = CurrentMemoryContext;

	if (!loading || !armed)
		return;
	if (GetRedoRecPtr() != covered && (MotStateIs(MOT_IS_COMPLETE) || MotSlotUsable()))
	{
		covered = GetRedoRecPtr();
		letting_go = true;
	}
	if (!letting_go)
	{
		MotSlotLetGo();
		return;
	}
	if (MotBackupKeepFrom(newest_checkpoint()) == PG_UINT64_MAX &&
		(MotStateIs(MOT_IS_COMPLETE) || MotSlotUsable()))
		go_on();
	letting_go = !server_is_through();
	MemoryContextSwitchTo(oldcxt);
}

/* ----------------------------------------------------------------- in step */

/* Is there anything that has to be kept? */
static bool
is_active(void)
{
	MotRecoveryStat recovery;

	MotRecoveryStatGet(&recovery);
	return newest_checkpoint() != InvalidXLogRecPtr || recovery.records_applied > 0;
}

static XLogRecPtr
newest_checkpoint(void)
{
	MotCheckpointStat stat;

	MotCheckpointStatGet(&stat);
	return stat.checkpoint_lsn;
}

static void
arm(void)
{
	StartTransactionCommand();
	MyProc->delayChkptFlags |= DELAY_CHKPT_COMPLETE;

	/*
	 * whoever begins a checkpoint after this sees it; who has begun has moved
	 * the redo pointer
	 */
	pg_memory_barrier();
	armed = true;
	watching = false;
}

static void
disarm(void)
{
	if (!armed)
		return;
	MyProc->delayChkptFlags &= ~DELAY_CHKPT_COMPLETE;
	armed = false;
	CommitTransactionCommand();
	MemoryContextSwitchTo(worker_cxt);
}

/* To another transaction: who waits for this one need not any more. */
static void
go_on(void)
{
	bool		was_watching = watching;

	disarm();
	arm();
	watching = was_watching;
}

/* Does the control file show the checkpoint that began with redo pointer "covered"? */
static bool
server_is_through(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	bool		through = crc_ok && control->checkPointCopy.redo >= covered;

	pfree(control);
	return through;
}

/*
 * Armed just now, or tables have just been loaded.  A checkpoint that had begun
 * before may have to wait for us nevertheless.  Others, that did not, have
 * passed: the slot has kept the log; if there is none, be quick.
 */
static void
begin_watch(void)
{
	covered = GetRedoRecPtr();
	letting_go = !server_is_through();
	behind = newest_checkpoint() < covered &&
		(letting_go || (!MotStateIs(MOT_IS_COMPLETE) && !MotSlotUsable()));
	retry_at = 0;
	watching = !loading;
}

static long
one_round(void)
{
	MotSlotLetGo();
	/* refused, though it was loaded; or there is nothing to keep */
	if (MotWalCurrentState() != MOT_WAL_READY || (!is_active() && !MotStateIs(MOT_IS_ASKED)))
	{
		disarm();
		return SLEEP_MS;
	}

	/*
	 * what recovery has left in doubt has been decided, but for those that
	 * are prepared
	 */
	if (!caught_up)
		MotInDoubtCatchUp();
	caught_up = true;
	if (!armed)
		arm();
	if (!watching)
		begin_watch();
	MOT_FAULT("checkpoint-watch");
	if (MotStateIs(MOT_IS_ASKED))
		become_writable();

	if (GetRedoRecPtr() != covered || behind)
	{
		XLogRecPtr	redo = GetRedoRecPtr();

		bool		failed = retry_at != 0 && GetCurrentTimestamp() < retry_at; /* a moment ago */

		if (!failed && try_checkpoint(false))
		{
			letting_go |= redo != covered;
			covered = redo;
			behind = false;
			retry_at = 0;
		}
		else
		{
			if (!failed)
			{
				behind = true;
				retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_MS);
			}
			/* the server's checkpoint waits, or not */
			if (redo != covered && MotSlotUsable())
			{
				covered = redo;
				letting_go = true;
			}
		}
	}
	/* not during a checkpoint: it is waited for */
	if (!behind && !letting_go && MotLeftOutCount() > 0)
		(void) MotLeftOutBringBack(false);
	if (letting_go && GetRedoRecPtr() == covered && (!behind || MotSlotUsable()))
	{
		go_on();
		letting_go = !server_is_through();
	}
	return WATCH_MS;
}

/*
 * Restartpoints wait for nobody, and move the redo pointer when they begin as
 * well.  Not armed: the checkpoint at the end of recovery would wait for us
 * while we wait for the end of recovery.
 */
static long
standby_round(void)
{
	XLogRecPtr	redo = GetRedoRecPtr();

	if (MotWalCurrentState() != MOT_WAL_READY || !is_active())
		return 1000;
	if (redo > newest_checkpoint() && !MotReplay->past_target && (retry_at == 0 || GetCurrentTimestamp() >= retry_at))
	{
		StartTransactionCommand();
		if (try_checkpoint(false))
			retry_at = 0;
		else
			retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_MS);
		CommitTransactionCommand();
		MemoryContextSwitchTo(worker_cxt);
	}
	if (pg_atomic_read_u32(&MotReplay->room_wanted) != 0)
	{
		StartTransactionCommand();
		MotRoomForSessions();
		CommitTransactionCommand();
		MemoryContextSwitchTo(worker_cxt);
	}
	(void) MotLeftOutBringBack(false);
	return 100;
}

/*
 * In a subtransaction, so that a failure leaves nothing behind but the
 * transaction that the server may be waiting for.
 */
static bool
try_checkpoint(bool final)
{
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(worker_cxt);
	PG_TRY();
	{
		(void) MotCheckpointWrite(final, !final);
		ReleaseCurrentSubTransaction();
		done = true;
	}
	PG_CATCH();
	{
		ErrorData  *edata = MotErrorTake(worker_cxt);

		RollbackAndReleaseCurrentSubTransaction();
		note_failure(edata);
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("checkpoint of memory-optimized tables failed: %s", edata->message),
				 MotSlotUsable() ? errdetail("It will be tried again; the log back to the last good one is kept.") :
				 errdetail("It will be tried again; checkpoints of the server wait until it succeeds.")));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(worker_cxt);
	CurrentResourceOwner = owner;
	return done;
}

static void
note_failure(const ErrorData *edata)
{
	MotCheckpointStat *stat = MotCheckpointShared();

	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	stat->failed++;
	strlcpy(stat->last_error, edata->message ? edata->message : "", sizeof(stat->last_error));
	LWLockRelease(MotStatLock);
}

/* ------------------------------------------------------------ first change */

/*
 * Somebody wants to make the first change since the server started.  What has
 * to be there: a checkpoint behind which the log is kept, the mark that the log
 * belongs to it, and in the log the place from which nothing of before goes
 * on.  We are armed, so no checkpoint of the server can pass any more.
 */
static void
become_writable(void)
{
	XLogRecPtr	newest = newest_checkpoint();

	if (MotStateIs(MOT_IS_WRITABLE))
	{
		MotStateSetWritable(true);	/* somebody asked at the last moment */
		return;
	}
	MotDirectoryMake();
	MOT_FAULT("writable-begin");

	MotRestorePrepared();
	MOT_FAULT("writable-restored");

	/* not when only this worker was away: transactions may be on their way */
	if (!MotStateIs(MOT_HAS_STARTED))
		log_start();

	/*
	 * The log behind a final checkpoint has never been needed and may be
	 * gone. Nothing has changed since, so a new one costs a few links.
	 */
	if (newest == InvalidXLogRecPtr || MotStateIs(MOT_IS_COMPLETE) ||
		(newest < covered && !MotSlotUsable()))
	{
		if (!try_checkpoint(false))
		{
			MotCheckpointStat stat;

			MotCheckpointStatGet(&stat);
			MotStateWritableFailed(stat.last_error);
			return;
		}
	}
	else
		MotSlotKeep(newest);
	MOT_FAULT("writable-marker");
	MotOpenMarkerSet();
	MOT_FAULT("writable-marked");
	MotStateSet(MOT_HAS_STARTED, true);
	MotStateSetWritable(true);
}

static void
log_start(void)
{
	MotRecordHeader header = {InvalidXLogRecPtr, GetCurrentTimestamp()};
	char		bytes[MOT_RECORD_HEADER_MAX];
	size_t		len;
	char	   *xids = MotInDoubtPrepared(&len);
	XLogRecPtr	end;

	XLogBeginInsert();
	XLogRegisterData(bytes, MotRecordPutHeader(bytes, &header));
	if (len > 0)
		XLogRegisterData(xids, len);
	end = XLogInsert(mot_resource_manager_id, MOT_XLOG_START);
	XLogFlush(end);
}

/* ---------------------------------------------------------------- shutdown */

/* Returns if it was not the server that is to stop, and we had better go on. */
static void
shut_down(void)
{
	if (!server_is_stopping())
	{
		/*
		 * Terminated by hand: we come back in a second.  Without a slot a
		 * checkpoint could pass in that time.
		 */
		if (MotSlotUsable() || !is_active())
			proc_exit(1);
		ereport(LOG,
				(errmsg("mot checkpointer was asked to terminate and goes on: without its replication slot it is needed until the server stops")));
		ShutdownRequestPending = false;
		return;
	}

	if (MotWalCurrentState() != MOT_WAL_READY || !is_active())
		proc_exit(0);
	if (RecoveryInProgress())
	{
		/* with a slot the log of the last one is there */
		StartTransactionCommand();
		if (!MotSlotUsable() && !MotReplay->past_target)
			(void) try_checkpoint(false);
		CommitTransactionCommand();
		proc_exit(0);
	}
	if (!armed)
		arm();

	MotStateSetWritable(false);
	wait_for_sessions();
	if (MotStateIs(MOT_IS_COMPLETE) && !MotOpenMarkerExists())
	{
		disarm();
		proc_exit(0);			/* nobody has written anything */
	}

	/* a position of its own, even if nothing was written since the last one */
	log_start();
	while (!try_checkpoint(true))
	{
		if (MotSlotUsable())
		{
			disarm();
			proc_exit(0);		/* the next start reads the log */
		}
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, RETRY_MS, MotWaitEvent(MOT_FOR_SHUTDOWN));
	}
	MOT_FAULT("shutdown-final");
	MotOpenMarkerClear();
	MOT_FAULT("shutdown-closed");
	MotSlotDrop();
	disarm();
	proc_exit(0);
}

/* The postmaster notes in its file that it is stopping, before it tells anybody. */
static bool
server_is_stopping(void)
{
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	char		line[MAXPGPATH];
	bool		stopping = false;

	if (file == NULL)
		return true;
	for (int i = 1; fgets(line, sizeof(line), file) != NULL; i++)
		if (i == LOCK_FILE_LINE_PM_STATUS)
			stopping = strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
	FreeFile(file);
	return stopping;
}

/*
 * All processes that are connected to a database end before the server goes on
 * to its own checkpoint; only those that send the log stay, and they change
 * nothing.
 */
static void
wait_for_sessions(void)
{
	for (;;)
	{
		int			others = 0;

		for (int i = 0; i < MotProcessSlots(); i++)
		{
			PGPROC	   *proc = GetPGProcByNumber(i);
			bool		sender = false;

			/*
			 * what a process that has gone leaves behind stays till the next
			 * one comes
			 */
			if (proc->pid == 0 || proc->pid == MyProcPid || !OidIsValid(proc->databaseId) ||
				BackendPidGetProc(proc->pid) != proc)
				continue;
			for (int j = 0; j < max_wal_senders; j++)
				sender |= WalSndCtl->walsnds[j].pid == proc->pid;
			if (!sender)
				others++;
		}
		if (others == 0)
			return;
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10, MotWaitEvent(MOT_FOR_SHUTDOWN));
	}
}

/* --------------------------------------------------------- end of recovery */

/*
 * In the startup process, when everything has been replayed: the server's
 * checkpoint that follows waits for nobody, and the log that we would need
 * after another crash may go with it, or has gone, or has what must not be read
 * (needed).
 */
void
MotCheckpointRecoveryEnd(bool needed)
{
	if (MotWalCurrentState() != MOT_WAL_READY || !is_active())
		return;
	if (!IsUnderPostmaster)
	{
		/*
		 * Single-user mode: nobody will change a memory-optimized table, and
		 * nobody will see to it that log is kept.  So none is to be needed.
		 */
		(void) MotCheckpointWrite(true, false);
		MotOpenMarkerClear();
	}
	else if (needed || !MotSlotUsable())
		(void) MotCheckpointWrite(false, true);
}
