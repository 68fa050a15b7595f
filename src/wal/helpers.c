/*-------------------------------------------------------------------------
 *
 * helpers.c
 *	  Background workers that help to load or to write a checkpoint.
 *
 * What is to be done lies in a segment of dynamic shared memory, as a list of
 * items with a counter; who has nothing to do takes the next one.  There may be
 * no place for a helper, or it may come too late: the leader goes on without.
 * The first failure of anybody stops all and is raised by the leader.
 *
 * They keep to processors that others do not use (machine/machine.h), and where
 * nobody says how many there are to be, that many find one each.
 *
 * Helpers need no database and no transaction, so they can run while the
 * server recovers.  They are told to end by a flag, not by a signal handler
 * that would leave the engine in the middle of something.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "machine/machine.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "wal/checkpoint/checkpoint.h"
#include "xact/xact.h"

#define MAX_HELPERS 64
#define AUTO (-1)

static char *load_workers;
static char *checkpoint_workers;
static int	nload = AUTO;
static int	nwrite = AUTO;

PGDLLEXPORT void MotHelperMain(Datum arg);

/* ---------------------------------------------------------------- settings */

/* "auto" or a number; -2: neither */
static int
parse_workers(const char *value)
{
	int			n;

	if (pg_strcasecmp(value, "auto") == 0)
		return AUTO;
	return parse_int(value, &n, 0, NULL) && n >= 0 && n <= MAX_HELPERS ? n : -2;
}

static bool
check_workers(char **newval, void **extra, GucSource source)
{
	if (parse_workers(*newval) != -2)
		return true;
	GUC_check_errdetail("It is \"auto\" or a number from 0 to %d.", MAX_HELPERS);
	return false;
}

static void
assign_load_workers(const char *newval, void *extra)
{
	nload = parse_workers(newval);
}

static void
assign_checkpoint_workers(const char *newval, void *extra)
{
	nwrite = parse_workers(newval);
}

void
MotHelpersInit(void)
{
	DefineCustomStringVariable("mot.load_workers",
							   "Processes that help to load memory-optimized tables at server start.",
							   "auto: as many as find a processor that others do not use.",
							   &load_workers,
							   "auto",
							   PGC_SIGHUP, 0,
							   check_workers, assign_load_workers, NULL);
	DefineCustomStringVariable("mot.checkpoint_workers",
							   "Processes that write a checkpoint of memory-optimized tables.",
							   "auto: as many as find a processor that others do not use.",
							   &checkpoint_workers,
							   "auto",
							   PGC_SIGHUP, 0,
							   check_workers, assign_checkpoint_workers, NULL);
}

/* Of the server's background workers, half are left to others. */
static int
number_of(int setting, int automatic)
{
	return setting != AUTO ? setting : Min(automatic, Min(MAX_HELPERS, max_worker_processes / 2));
}

/* the leader works, too */
int
MotHelpersToLoad(void)
{
	return number_of(nload, MotMachineWorkers() - 1);
}

/* here it does not (checkpoint_write.c) */
int
MotHelpersToWrite(void)
{
	return number_of(nwrite, MotMachineWorkers());
}

/* -------------------------------------------------------------- the leader */

/*
 * Shared's job, nitems and gently are set by the caller, who has made it of zeroes.  n: how
 * many helpers to ask for.
 */
void
MotHelpersBegin(MotHelpersShared *shared, dsm_segment *segment, int n)
{
	SpinLockInit(&shared->mutex);

	for (int i = 0; i < Min(n, (int) shared->nitems); i++)
	{
		BackgroundWorker worker;

		MotDescribeWorker(&worker, shared->job == MOT_JOB_LOAD ? "mot load helper" : "mot checkpoint helper",
						  "MotHelperMain", BgWorkerStart_PostmasterStart, BGW_NEVER_RESTART);
		worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
		worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(segment));
		if (!RegisterDynamicBackgroundWorker(&worker, NULL))
			break;
		shared->asked++;
	}
}

bool
MotHelpersDone(MotHelpersShared *shared)
{
	return pg_atomic_read_u32(&shared->failed) != 0 ||
		pg_atomic_read_u32(&shared->done) == shared->nitems;
}

void
MotHelpersEnd(MotHelpersShared *shared)
{
	char		message[sizeof(shared->message)];
	char		hint[sizeof(shared->hint)];
	int			sqlerrcode;

	while (!MotHelpersDone(shared) && pg_atomic_read_u32(&shared->running) > 0)
		MotNap(5, MOT_FOR_HELPERS);
	MotHelpersAbandon(shared);

	SpinLockAcquire(&shared->mutex);
	sqlerrcode = shared->sqlerrcode;
	strlcpy(message, shared->message, sizeof(message));
	strlcpy(hint, shared->hint, sizeof(hint));
	SpinLockRelease(&shared->mutex);
	if (sqlerrcode != 0)
		ereport(ERROR,
				(errcode(sqlerrcode),
				 errmsg_internal("%s", message),
				 hint[0] ? errhint("%s", hint) : 0));
	if (pg_atomic_read_u32(&shared->done) != shared->nitems)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a helper process of memory-optimized tables has ended before its work was done")));
}

/* No new items, and nobody at work any more. */
void
MotHelpersAbandon(MotHelpersShared *shared)
{
	if (pg_atomic_read_u32(&shared->done) != shared->nitems)
		pg_atomic_write_u32(&shared->failed, 1);
	pg_atomic_write_u32(&shared->next, shared->nitems);
	while (pg_atomic_read_u32(&shared->running) > 0)
		MotNap(5, MOT_FOR_HELPERS);
}

/* The next item's number, or -1: no more. */
int
MotHelpersNext(MotHelpersShared *shared)
{
	uint32		i;

	if (MotHelpersStop(shared) || pg_atomic_read_u32(&shared->next) >= shared->nitems)
		return -1;
	i = pg_atomic_fetch_add_u32(&shared->next, 1);
	return i < shared->nitems ? (int) i : -1;
}

void
MotHelpersItemDone(MotHelpersShared *shared)
{
	pg_atomic_fetch_add_u32(&shared->done, 1);
}

/*
 * Is there a server still?  The next one does not start before those have gone who are at something
 * that takes long.
 */
void
MotEndWithServer(void)
{
	if (unlikely(IsUnderPostmaster && !PostmasterIsAlive()))
		proc_exit(1);
}

/* Has somebody failed?  To be asked often, and so this is also where they look whether to move on. */
bool
MotHelpersStop(MotHelpersShared *shared)
{
	MotEndWithServer();
	MotMachineStay();
	return pg_atomic_read_u32(&shared->failed) != 0;
}

/* Remember the first failure, and have all others stop. */
void
MotHelpersFail(MotHelpersShared *shared, const ErrorData *edata)
{
	SpinLockAcquire(&shared->mutex);
	if (shared->sqlerrcode == 0)
	{
		shared->sqlerrcode = edata->sqlerrcode != 0 ? edata->sqlerrcode : ERRCODE_INTERNAL_ERROR;
		strlcpy(shared->message, edata->message ? edata->message : "", sizeof(shared->message));
		strlcpy(shared->hint, edata->hint ? edata->hint : "", sizeof(shared->hint));
	}
	SpinLockRelease(&shared->mutex);
	pg_atomic_write_u32(&shared->failed, 1);
}

/* ------------------------------------------------------------ helper process */

static void
helper_ended(int code, Datum arg)
{
	MotHelpersShared *shared = (MotHelpersShared *) DatumGetPointer(arg);

	/* by no exit of ours: what it was at is not done */
	if (code != 0)
		pg_atomic_write_u32(&shared->failed, 1);
	pg_atomic_fetch_sub_u32(&shared->running, 1);
}

void
MotHelperMain(Datum arg)
{
	MotHelpersShared *shared;
	dsm_segment *segment;
	MemoryContext cxt;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	/* the leader may have finished before we came */
	if (MotEngine == NULL)
		proc_exit(0);
	segment = dsm_attach(DatumGetUInt32(arg));
	if (segment == NULL)
		proc_exit(0);
	shared = dsm_segment_address(segment);
	before_shmem_exit(helper_ended, PointerGetDatum(shared));
	pg_atomic_fetch_add_u32(&shared->running, 1);
	/* (the leader of a load is number 0) */
	MotMachinePlace((int) pg_atomic_fetch_add_u32(&shared->number, 1) + (shared->job == MOT_JOB_LOAD));

	cxt = AllocSetContextCreate(TopMemoryContext, "MOT helper", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		mot_session *session;

		if (shared->gently)
			MotPaceLowerPriority();
		session = MotSession();
		(void) mot_snapshot_take(session);
		if (shared->job == MOT_JOB_WRITE)
			MotWriteItems(shared);
		else
			MotLoadItems(shared);
		mot_snapshot_hold(session, MOT_TS_NONE);
		mot_session_flush(session);
	}
	PG_CATCH();
	{
		MotHelpersFail(shared, MotErrorTake(cxt));
	}
	PG_END_TRY();
	proc_exit(0);
}
