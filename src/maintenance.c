/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  A background worker for what nobody else gets around to.
 *
 * "mot maintenance" runs as long as the server does.  It frees what idle and
 * departed backends still owe to reclamation: a backend does that for itself
 * at commit, but one that sits idle, or is gone, has no next commit.  Nor has
 * the startup process of a standby whose primary is idle.  It looks every second,
 * and at once when a large transaction has ended (xact/owed.c).
 *
 * It also looks at the machine every second (machine/machine.c), and puts a place to
 * stop into the log: see mark_time; and
 * under load it tells the server of commits that nobody waits for (wal/async.c).
 * It notes what snapshots keep in memory (xact/held.c), and installs prepared transactions
 * whose end nobody has told of (xact/prepared.c).
 * Once it has tables looked for that no catalogue knows (relation/orphans.c), which counts the
 * others for their owners.  And it takes the setting of what new rows leave free to the engine.
 * (Checkpoints have a worker of their own, wal/checkpoint.c.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "faults.h"
#include "islands/measure.h"
#include "machine/machine.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "mot.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "relation/relation.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "wal/wal.h"
#include "xact/held.h"
#include "xact/xact.h"

/* milliseconds between two rounds; one with nothing to free looks at a counter for each slot */
#define ROUND_MS 1000

/* ... and between two turns of moving rows to other nodes */
#define MOVE_PAUSE_MS 10

PGDLLEXPORT void MotMaintenanceMain(Datum arg);

static void leave(int code, Datum arg);
static void mark_time(uint64 commits);

/*
 * Has a process of ours run "main" from "start" on, and again "restart"
 * seconds after it has died.  To be called while shared_preload_libraries are
 * loaded.
 */
void
MotRegisterWorker(const char *name, const char *main, BgWorkerStartTime start, int restart)
{
	BackgroundWorker worker;

	/* pg_upgrade wants nobody else at its catalogues */
	if (IsBinaryUpgrade)
		return;
	MotDescribeWorker(&worker, name, main, start, restart);
	RegisterBackgroundWorker(&worker);
}

void
MotDescribeWorker(BackgroundWorker *worker, const char *name, const char *main,
				  BgWorkerStartTime start, int restart)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, name, BGW_MAXLEN);
	strlcpy(worker->bgw_type, name, BGW_MAXLEN);
	strlcpy(worker->bgw_library_name, "mot", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, main, BGW_MAXLEN);
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = start;
	worker->bgw_restart_time = restart;
}

void
MotNap(long ms, MotWaitFor what)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, MotWaitEvent(what));
	ResetLatch(MyLatch);
}

void
MotMaintenanceMain(Datum arg)
{
	mot_session *session;
	TimestampTz round = 0;		/* when the last one ended */
	uint64		seen = 0;		/* commits there had been by then */
	uint64		commits = 0;	/* in it */
	bool		looked = false; /* for orphans */

	/* no engine, nothing to do: exit code 0 means "do not start me again" */
	if (MotEngine == NULL)
		proc_exit(0);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	session = MotSession();
	before_shmem_exit(leave, (Datum) 0);
	MotOwedServe(MyLatch);

	while (!ShutdownRequestPending)
	{
		long		remaining;
		long		wait;
		bool		asked;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			mot_engine_set_insert_reserve(MotEngine, mot_insert_reserve / 100);
		}

		if (!looked && MotWalCurrentState() == MOT_WAL_READY && !RecoveryInProgress())
			looked = MotOrphansLook();
		remaining = round == 0 ? 0 : ROUND_MS - TimestampDifferenceMilliseconds(round, GetCurrentTimestamp());
		/* (a test: nothing but what it is asked for) */
		if (MOT_FAULT_SKIPS("maintenance-round"))
			remaining = ROUND_MS;
		asked = MotOwedAsked();
		if (remaining <= 0 || asked)
		{
			uint64		left;

			MotAsyncLeave();
			while (!ShutdownRequestPending && mot_reclaim_step(session, &left) && left > 0)
				CHECK_FOR_INTERRUPTS();
			/* others have more use for it */
			mot_session_flush(session);
		}
		if (remaining <= 0)
		{
			mot_txn_counts counts;

			mot_txn_counts_get(MotEngine, &counts);
			/* (replay's do not count) */
			commits = round == 0 || RecoveryInProgress() ? 0 : counts.commits - seen;
			seen = counts.commits;
			mark_time(commits);
			MotMachineSample();
			if (MotWalCurrentState() == MOT_WAL_READY)
				MotIslandsStep(session);
			MotPreparedServe();
			round = GetCurrentTimestamp();
			remaining = ROUND_MS;
		}
		if (MotIslandsMove(session))
			remaining = Min(remaining, MOVE_PAUSE_MS);
		remaining = Min(remaining, MotHeldServe());
		wait = MotAsyncServe(commits);
		MotNap(wait < 0 ? remaining : Min(wait, remaining), MOT_FOR_MAINTENANCE_WORK);
	}

	/* not 0: whoever is terminated by hand comes back */
	proc_exit(1);
}

static void
leave(int code, Datum arg)
{
	MotOwedServe(NULL);
	MotAsyncLeave();
}

/*
 * Transactions that change nothing but memory-optimized tables have no xid, and
 * their commits are no place for recovery to stop at.  When there were any, a
 * commit record with the time comes once a round; recovery_target_time is met
 * by that much.
 */
static void
mark_time(uint64 commits)
{
	if (!XLogIsNeeded() || commits == 0)
		return;
	StartTransactionCommand();
	(void) GetTopTransactionId();
	CommitTransactionCommand();
}
