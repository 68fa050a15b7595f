/*-------------------------------------------------------------------------
 *
 * state.c
 *	  Where the module stands, for all processes to see and to wait for.
 *
 *	UNLOADED --claim--> LOADING --> READY --redo of a standby is damaged-.
 *								\										  |
 *								 \-> REFUSED: damage; the text is kept	<-'
 *											  here and every statement raises it
 *
 * Who loads is whoever claims it first: the checkpoint worker, after a crash and on a standby,
 * too; the startup process where nobody else would keep the log, or nobody else is there.  Sessions
 * wait for the table they need, and say so: it comes next.
 *
 * A transaction's first change asks whether changes are recoverable at all.
 * That is one look at a flag; only when it is not set is the worker asked for
 * what is missing (a first checkpoint, the mark that the log is needed) and
 * waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "compat/waitevent.h"
#include "format.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "relation/relation.h"
#include "storage/latch.h"
#include "storage/spin.h"
#include "utils/guc.h"
#include "wal/replay/apply.h"
#include "wal/replay/leftout.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* how long a session waits for a worker that is not there */
#define WORKER_PATIENCE_MS 10000

/* of 10 ms, for a table that is loaded anew */
#define SOON_NAPS 1000

#define MAX_DAMAGED 1024
#define MAX_ASKED 256
#define TEXT_SIZE 512
#define WHY_SIZE 160

typedef struct Damaged
{
	Oid			dbid;
	Oid			relid;
	char		why[WHY_SIZE];
} Damaged;

typedef struct Shared
{
	pg_atomic_uint32 state;		/* MotWalState, UNLOADED at first */
	pg_atomic_uint32 flag[MOT_STATE_FLAGS];
	pg_atomic_uint32 ndamaged;
	pg_atomic_uint32 damages;	/* how often, also of those that are whole
								 * again */
	pg_atomic_uint32 failures;	/* attempts to become writable that failed */
	pg_atomic_uint64 loaded_ts; /* see MotStateSetLoaded */
	pg_atomic_uint64 preserve;	/* the checkpoint in which damage was ignored:
								 * its files are put aside, not removed */
	pg_atomic_uint64 replay_end;	/* of the server's recovery after a crash;
									 * ours is still to come */
	pg_atomic_uint32 replay_pid;	/* who has said so; it holds the slot */
	ConditionVariable changed;

	slock_t		mutex;			/* of all below */
	int			sqlerrcode;		/* of a refusal */
	char		message[TEXT_SIZE];
	char		hint[TEXT_SIZE];
	char		not_writable[TEXT_SIZE];	/* why the last attempt failed */
	pid_t		worker_pid;
	Latch	   *worker_latch;
	uint32		asked_first;	/* a ring: tables that somebody waits for, not
								 * taken yet by who loads */
	uint32		asked_n;
	MotTargetKey asked_for[MAX_ASKED];
	bool		damaged_more;	/* there were more than have room here */
	Damaged		damaged[MAX_DAMAGED];

	/* under MotStatLock */
	MotCheckpointStat checkpoint;
	MotRecoveryStat recovery;
} Shared;

bool		mot_ignore_damaged = false;

LWLock	   *MotStatLock = NULL;
static Shared *shared = NULL;

static bool any_damaged(Oid dbid);
static bool is_left_out(Oid dbid, Oid relid);
static bool is_missing(Oid dbid, Oid relid);
static bool is_lost(Oid dbid, Oid relid);
static void raise_if_left_out(Oid dbid, Oid relid);
static bool worker_is_there(void);
static void wait_for_change(TimestampTz *missing_since);
static bool await_table(Oid dbid, Oid relid);
static void await_loaded(Oid dbid, Oid relid);
static bool tables_awaited(void);
static void heal(Oid dbid, Oid relid);

/* ------------------------------------------------------------------ module */

void
MotStateInit(void)
{
	DefineCustomBoolVariable("mot.ignore_damaged",
							 "Start in spite of damaged checkpoint files or log of memory-optimized tables.",
							 "Damaged tables are marked and cannot be read; TRUNCATE and DROP work on them.",
							 &mot_ignore_damaged,
							 false,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
	MotHelpersInit();
	DefineCustomIntVariable("mot.checkpoint_share",
							"Part of the machine that checkpoints of memory-optimized tables take beside clients, in percent.",
							"Of its processors, and of the disk's time; as far as checkpoint_timeout and max_wal_size leave time.  100 is no limit.",
							&mot_checkpoint_share,
							5, 1, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	MotRelationAwait = await_table;
	MotRelationAwaitLoaded = await_loaded;
	MotRelationLeftOut = is_left_out;
	MotRelationMissing = is_missing;
	MotRelationLost = is_lost;
	MotRelationHealed = heal;
	MotTablesAwaited = tables_awaited;
}

static void
init_shared(void)
{
	ConditionVariableInit(&shared->changed);
	SpinLockInit(&shared->mutex);
}

const MotShmem MotStateShmem = {"mot state", (void **) &shared, sizeof(Shared), 0, init_shared};

bool
MotStateIs(MotStateFlag flag)
{
	return pg_atomic_read_u32(&shared->flag[flag]) != 0;
}

void
MotStateSet(MotStateFlag flag, bool on)
{
	pg_atomic_write_u32(&shared->flag[flag], on);
}

/* ----------------------------------------------------------------- loading */

MotWalState
MotWalCurrentState(void)
{
	return (MotWalState) pg_atomic_read_u32(&shared->state);
}

bool
MotStateClaimLoad(void)
{
	uint32		expected = MOT_WAL_UNLOADED;

	if (pg_atomic_compare_exchange_u32(&shared->state, &expected, MOT_WAL_LOADING))
		return true;

	ConditionVariablePrepareToSleep(&shared->changed);
	while (MotWalCurrentState() == MOT_WAL_LOADING)
		(void) ConditionVariableTimedSleep(&shared->changed, 1000, MotWaitEvent(MOT_FOR_LOAD));
	ConditionVariableCancelSleep();
	return false;
}

void
MotStateLoadDone(void)
{
	/* what was loaded is there before it is said to be */
	pg_write_barrier();
	pg_atomic_write_u32(&shared->state, MotStateIs(MOT_IS_REFUSED) ? MOT_WAL_REFUSED : MOT_WAL_READY);
	ConditionVariableBroadcast(&shared->changed);
}

void
MotStateRefuse(int sqlerrcode, const char *message, const char *hint)
{
	SpinLockAcquire(&shared->mutex);
	/* the two that are not for want of whole files */
	shared->sqlerrcode = sqlerrcode == MOT_FORMAT_ERRCODE || sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE ?
		sqlerrcode : ERRCODE_DATA_CORRUPTED;
	strlcpy(shared->message, message, TEXT_SIZE);
	if (hint == NULL)
		hint = sqlerrcode == ERRCODE_INTERNAL_ERROR ? "Restore the server from a backup." : "";
	strlcpy(shared->hint, hint, TEXT_SIZE);
	SpinLockRelease(&shared->mutex);
	MotStateSet(MOT_IS_REFUSED, true);
}

void
MotStateTableLoaded(void)
{
	ConditionVariableBroadcast(&shared->changed);
}

/*
 * Tables that somebody waits for come next.  false: there is no room to say
 * so, try again later.
 */
static bool
ask_for(Oid dbid, Oid relid)
{
	bool		there = false;

	SpinLockAcquire(&shared->mutex);
	for (uint32 i = 0; i < shared->asked_n && !there; i++)
	{
		MotTargetKey *a = &shared->asked_for[(shared->asked_first + i) % MAX_ASKED];

		there = a->dbid == dbid && a->relid == relid;
	}
	if (!there && shared->asked_n < MAX_ASKED)
	{
		MotTargetKey *a = &shared->asked_for[(shared->asked_first + shared->asked_n++) % MAX_ASKED];

		a->dbid = dbid;
		a->relid = relid;
		there = true;
	}
	SpinLockRelease(&shared->mutex);
	return there;
}

bool
MotStateTakeAsked(Oid *dbid, Oid *relid)
{
	bool		any;

	SpinLockAcquire(&shared->mutex);
	any = shared->asked_n > 0;
	if (any)
	{
		*dbid = shared->asked_for[shared->asked_first].dbid;
		*relid = shared->asked_for[shared->asked_first].relid;
		shared->asked_first = (shared->asked_first + 1) % MAX_ASKED;
		shared->asked_n--;
	}
	SpinLockRelease(&shared->mutex);
	return any;
}

void
MotStateSetReplayEnd(XLogRecPtr end)
{
	/* the end is there before who has said so */
	pg_atomic_write_u64(&shared->replay_end, end);
	pg_write_barrier();
	pg_atomic_write_u32(&shared->replay_pid, MyProcPid);
}

pid_t
MotStateReplayPid(void)
{
	return (pid_t) pg_atomic_read_u32(&shared->replay_pid);
}

void
MotStateForgetReplayPid(void)
{
	pg_atomic_write_u32(&shared->replay_pid, 0);
}

XLogRecPtr
MotStateReplayEnd(void)
{
	return pg_atomic_read_u64(&shared->replay_end);
}

static bool
await_table(Oid dbid, Oid relid)
{
	bool		there = MotWalWaitForTable(dbid, relid);

	/*
	 * A transaction's snapshot that is older than MotStateSetLoaded has told
	 * would show tables as they were in the checkpoint, or in between, while
	 * heap tables are further.
	 */
	if (unlikely(MotTransactionSnapshotTs() < pg_atomic_read_u64(&shared->loaded_ts)))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to memory-optimized tables, which have been loaded since"),
				 errdetail("The transaction's snapshot was taken before they were there."),
				 errhint("The transaction might succeed if retried.")));
	return there;
}

/*
 * On a standby, which lets sessions in before tables are loaded: the log that was applied
 * to them has changed rows as of up to this number.
 */
void
MotStateSetLoaded(mot_ts ts)
{
	pg_atomic_write_u64(&shared->loaded_ts, ts);
	/* what was applied after loading has left such, too */
	mot_engine_leave_behind(MotEngine);
}

/* (Once it is a primary, transactions may do more than read.) */
static bool
tables_awaited(void)
{
	return unlikely(MotSpooling()) && RecoveryInProgress();
}

/*
 * Until the table is there, or all that will be; true: it may be used, whatever else is still to
 * come.
 */
static bool
wait_while_loading(Oid dbid, Oid relid)
{
	TimestampTz missing_since = 0;
	bool		there = false;
	bool		asked = !OidIsValid(relid);

	ConditionVariablePrepareToSleep(&shared->changed);
	for (;;)
	{
		MotWalState state = MotWalCurrentState();

		if (state == MOT_WAL_REFUSED || state == MOT_WAL_READY)
			break;
		if (state == MOT_WAL_LOADING && MotStateIs(MOT_LOADS_IN_STEPS) &&
			mot_table_find(MotEngine, dbid, relid) != NULL)
		{
			there = true;
			break;
		}
		if (!asked)
			asked = ask_for(dbid, relid);
		wait_for_change(&missing_since);
	}
	ConditionVariableCancelSleep();
	pg_read_barrier();
	return there;
}

static void
await_loaded(Oid dbid, Oid relid)
{
	if (unlikely(MotWalCurrentState() != MOT_WAL_READY) && !IsBinaryUpgrade && IsUnderPostmaster)
		(void) wait_while_loading(dbid, relid);
}

/* until all are there, or refused */
void
MotStateAwaitLoaded(void)
{
	(void) wait_while_loading(InvalidOid, InvalidOid);
}

bool
MotWalWaitForTable(Oid dbid, Oid relid)
{
	bool		there;

	/* pg_upgrade's server has no workers, and nothing to load */
	if (unlikely(IsBinaryUpgrade))
		return mot_table_find(MotEngine, dbid, relid) != NULL;
	if (unlikely(pg_atomic_read_u32(&shared->ndamaged) > 0) && MotStateIsDamaged(dbid, relid))
		MotStateRaiseDamaged(dbid, relid);
	if (likely(MotWalCurrentState() == MOT_WAL_READY))
	{
		/* acquire, as to MotStateLoadDone */
		pg_read_barrier();
		if (unlikely(MotLeftOutCount() > 0))
			raise_if_left_out(dbid, relid);
		return mot_table_find(MotEngine, dbid, relid) != NULL;
	}

	there = wait_while_loading(dbid, relid);
	if (!there && MotWalCurrentState() == MOT_WAL_REFUSED)
		MotStateRaiseRefusal();
	if (!there)
		there = mot_table_find(MotEngine, dbid, relid) != NULL;
	if (pg_atomic_read_u32(&shared->ndamaged) > 0 && MotStateIsDamaged(dbid, relid))
		MotStateRaiseDamaged(dbid, relid);
	if (!there)
	{
		raise_if_left_out(dbid, relid);
		there = mot_table_find(MotEngine, dbid, relid) != NULL;
	}
	return there;
}

/*
 * Prepared to sleep.  The startup process is always there when it is its
 * turn; a worker may never come, for lack of a place for it.
 */
static void
wait_for_change(TimestampTz *missing_since)
{
	if (!IsUnderPostmaster)
	{
		ConditionVariableCancelSleep();
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("memory-optimized tables cannot be used in single-user mode")));
	}
	if (worker_is_there() || MotWalCurrentState() == MOT_WAL_LOADING)
		*missing_since = 0;
	else if (*missing_since == 0)
		*missing_since = GetCurrentTimestamp();
	else if (TimestampDifferenceExceeds(*missing_since, GetCurrentTimestamp(), WORKER_PATIENCE_MS))
	{
		ConditionVariableCancelSleep();
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("memory-optimized tables are not available: the checkpoint worker is not running"),
				 errhint("Increase max_worker_processes if the server's log says \"too many background workers\", and restart the server.")));
	}
	(void) ConditionVariableTimedSleep(&shared->changed, 500, MotWaitEvent(MOT_FOR_LOAD));
}

void
MotStateRaiseRefusal(void)
{
	char		message[TEXT_SIZE];
	char		hint[TEXT_SIZE];
	int			sqlerrcode;

	SpinLockAcquire(&shared->mutex);
	sqlerrcode = shared->sqlerrcode;
	strlcpy(message, shared->message, TEXT_SIZE);
	strlcpy(hint, shared->hint, TEXT_SIZE);
	SpinLockRelease(&shared->mutex);

	ereport(ERROR,
			(errcode(sqlerrcode),
			 errmsg("memory-optimized tables could not be recovered"),
			 errdetail("%s.", message),
			 hint[0] ? errhint("%s", hint) : 0));
}

/* ----------------------------------------------------------------- writing */

/*
 * Before a transaction's first change.  On the way to writability the worker
 * writes a checkpoint and marks the server as writing; if it fails at that, its
 * reason is ours.
 */
void
MotWalCheckWritable(void)
{
	TimestampTz missing_since = 0;
	uint32		failures;

	if (likely(pg_atomic_read_u32(&shared->flag[MOT_IS_WRITABLE])))
		return;

	/*
	 * pg_upgrade restores definitions in a server without workers; rows come
	 * later
	 */
	if (IsBinaryUpgrade)
	{
		MotAwaitedMarkerSet();
		return;
	}
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot change memory-optimized tables during recovery")));

	failures = pg_atomic_read_u32(&shared->failures);
	ConditionVariablePrepareToSleep(&shared->changed);
	while (!MotStateIs(MOT_IS_WRITABLE))
	{
		if (MotWalCurrentState() == MOT_WAL_REFUSED)
		{
			ConditionVariableCancelSleep();
			MotStateRaiseRefusal();
		}
		if (pg_atomic_read_u32(&shared->failures) != failures)
		{
			char		why[TEXT_SIZE];

			ConditionVariableCancelSleep();
			SpinLockAcquire(&shared->mutex);
			strlcpy(why, shared->not_writable, TEXT_SIZE);
			SpinLockRelease(&shared->mutex);
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("memory-optimized tables cannot be changed: their changes would not be recoverable"),
					 errdetail("%s.", why),
					 errhint("Remove the cause; the next change tries again.")));
		}
		MotStateSet(MOT_IS_ASKED, true);
		MotStateAskWorker();
		wait_for_change(&missing_since);
	}
	ConditionVariableCancelSleep();
}

void
MotStateSetWritable(bool writable)
{
	if (writable)
		MotStateSet(MOT_IS_ASKED, false);
	/* full barriers: the gate and what has to be in place before */
	pg_memory_barrier();
	MotStateSet(MOT_IS_WRITABLE, writable);
	pg_memory_barrier();
	ConditionVariableBroadcast(&shared->changed);
}

/* The attempt failed: those who wait raise this; who comes next asks again. */
void
MotStateWritableFailed(const char *why)
{
	SpinLockAcquire(&shared->mutex);
	strlcpy(shared->not_writable, why, TEXT_SIZE);
	SpinLockRelease(&shared->mutex);
	MotStateSet(MOT_IS_ASKED, false);
	pg_atomic_fetch_add_u32(&shared->failures, 1);
	ConditionVariableBroadcast(&shared->changed);
}

/* ------------------------------------------------------------- checkpoints */

/* One at a time: the worker's, and the startup process's at the end of recovery. */
void
MotStateBeginCheckpoint(void)
{
	uint32		expected = 0;

	ConditionVariablePrepareToSleep(&shared->changed);
	while (!pg_atomic_compare_exchange_u32(&shared->flag[MOT_IS_CHECKPOINTING], &expected, 1))
	{
		expected = 0;
		(void) ConditionVariableTimedSleep(&shared->changed, 100, MotWaitEvent(MOT_FOR_CHECKPOINT));
	}
	ConditionVariableCancelSleep();
}

void
MotStateEndCheckpoint(void)
{
	MotStateSet(MOT_IS_CHECKPOINTING, false);
	ConditionVariableBroadcast(&shared->changed);
}

/* ------------------------------------------------------------------ worker */

void
MotStateSetWorker(bool here)
{
	SpinLockAcquire(&shared->mutex);
	if (here)
	{
		shared->worker_pid = MyProcPid;
		shared->worker_latch = MyLatch;
	}
	else if (shared->worker_pid == MyProcPid)
	{
		shared->worker_pid = 0;
		shared->worker_latch = NULL;
	}
	SpinLockRelease(&shared->mutex);
}

static bool
worker_is_there(void)
{
	bool		there;

	SpinLockAcquire(&shared->mutex);
	there = shared->worker_pid != 0;
	SpinLockRelease(&shared->mutex);
	return there;
}

void
MotStateAskWorker(void)
{
	Latch	   *latch;

	/* a PGPROC's latch: setting it after its process has gone does no harm */
	SpinLockAcquire(&shared->mutex);
	latch = shared->worker_latch;
	SpinLockRelease(&shared->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

/* ------------------------------------------------------------------ damage */

static int
find_damaged(Oid dbid, Oid relid)
{
	for (int i = 0; i < (int) pg_atomic_read_u32(&shared->ndamaged); i++)
		if (shared->damaged[i].dbid == dbid && shared->damaged[i].relid == relid)
			return i;
	return -1;
}

void
MotStateDamage(Oid dbid, Oid relid, const char *why)
{
	bool		more = false;
	uint32		n;

	pg_atomic_fetch_add_u32(&shared->damages, 1);
	SpinLockAcquire(&shared->mutex);
	n = pg_atomic_read_u32(&shared->ndamaged);
	if (find_damaged(dbid, relid) < 0)
	{
		if (n < MAX_DAMAGED)
		{
			shared->damaged[n].dbid = dbid;
			shared->damaged[n].relid = relid;
			strlcpy(shared->damaged[n].why, why, WHY_SIZE);
			pg_atomic_write_u32(&shared->ndamaged, n + 1);
		}
		else
			more = !shared->damaged_more;
		shared->damaged_more |= n >= MAX_DAMAGED;
	}
	SpinLockRelease(&shared->mutex);

	/* those have no table in the engine, which is an error as well */
	if (more)
		ereport(LOG,
				(errmsg("more than %d memory-optimized tables are damaged", MAX_DAMAGED)));
}

uint32
MotStateDamages(void)
{
	return pg_atomic_read_u32(&shared->damages);
}

bool
MotStateIsDamaged(Oid dbid, Oid relid)
{
	bool		damaged;

	if (pg_atomic_read_u32(&shared->ndamaged) == 0)
		return false;
	SpinLockAcquire(&shared->mutex);
	damaged = find_damaged(dbid, relid) >= 0;
	SpinLockRelease(&shared->mutex);
	return damaged;
}

static bool
any_damaged(Oid dbid)
{
	bool		any = false;

	SpinLockAcquire(&shared->mutex);
	for (uint32 i = 0; i < pg_atomic_read_u32(&shared->ndamaged) && !any; i++)
		any = shared->damaged[i].dbid == dbid;
	SpinLockRelease(&shared->mutex);
	return any;
}

/*
 * All that are, for a manifest (palloc'd).  Those that had no room are as unknown to who starts from
 * it as they are here.
 */
int
MotStateDamagedList(MotManifestGivenUp **list)
{
	Damaged    *copy = palloc(sizeof(shared->damaged));
	int			n;

	SpinLockAcquire(&shared->mutex);
	n = (int) pg_atomic_read_u32(&shared->ndamaged);
	memcpy(copy, shared->damaged, n * sizeof(Damaged));
	SpinLockRelease(&shared->mutex);

	*list = palloc0(Max(n, 1) * sizeof(MotManifestGivenUp));
	for (int i = 0; i < n; i++)
		(*list)[i] = (MotManifestGivenUp)
	{
		copy[i].dbid, copy[i].relid, copy[i].why, strlen(copy[i].why)
	};
	return n;
}

void
MotStateHeal(Oid dbid, Oid relid)
{
	uint32		n;

	if (pg_atomic_read_u32(&shared->ndamaged) == 0)
		return;
	SpinLockAcquire(&shared->mutex);
	n = pg_atomic_read_u32(&shared->ndamaged);
	for (int i = (int) n - 1; i >= 0; i--)
		if (shared->damaged[i].dbid == dbid && (shared->damaged[i].relid == relid || !OidIsValid(relid)))
			shared->damaged[i] = shared->damaged[--n];
	pg_atomic_write_u32(&shared->ndamaged, n);
	SpinLockRelease(&shared->mutex);
}

void
MotStateRaiseDamaged(Oid dbid, Oid relid)
{
	char		why[WHY_SIZE] = "";
	int			i;

	SpinLockAcquire(&shared->mutex);
	i = find_damaged(dbid, relid);
	if (i >= 0)
		strlcpy(why, shared->damaged[i].why, WHY_SIZE);
	SpinLockRelease(&shared->mutex);

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("memory-optimized table with OID %u is damaged", relid),
			 errdetail("%s.", why),
			 errhint("Restore it from a backup; TRUNCATE or DROP TABLE gives it up.")));
}

static bool
is_left_out(Oid dbid, Oid relid)
{
	MotLeftOut	entry;

	return MotLeftOutFind(dbid, relid, &entry);
}

static bool
is_missing(Oid dbid, Oid relid)
{
	return (OidIsValid(relid) ? MotStateIsDamaged(dbid, relid) : any_damaged(dbid)) ||
		(MotLeftOutCount() > 0 && is_left_out(dbid, relid));
}

static bool
is_lost(Oid dbid, Oid relid)
{
	if (MotWalCurrentState() != MOT_WAL_READY || IsBinaryUpgrade)
		return false;
	/* acquire, as to MotStateLoadDone */
	pg_read_barrier();
	return mot_table_find(MotEngine, dbid, relid) == NULL;
}

static void
heal(Oid dbid, Oid relid)
{
	MotStateHeal(dbid, relid);
	MotLeftOutForget(dbid, relid);
}

static void
raise_if_left_out(Oid dbid, Oid relid)
{
	MotLeftOut	entry;
	bool		left_out = OidIsValid(relid) && MotLeftOutFind(dbid, relid, &entry);

	/* the worker is about to bring it back */
	for (int naps = 0; left_out && entry.soon && naps < SOON_NAPS; naps++)
	{
		MotStateAskWorker();
		MotNap(10, MOT_FOR_LOAD);
		CHECK_FOR_INTERRUPTS();
		left_out = MotLeftOutFind(dbid, relid, &entry);
	}
	if (left_out)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("memory-optimized table with OID %u is not in memory, which has no room for it", entry.relid),
				 errdetail("It is kept in files, and needs about %llu MB of mot.max_memory.",
						   (unsigned long long) (MotLeftOutNeeds(&entry) / (1024 * 1024) + 1)),
				 errhint("Raise mot.max_memory and restart the server, or make room in other tables; TRUNCATE or DROP TABLE gives it up.")));
}

void
MotStatePreserve(XLogRecPtr lsn)
{
	pg_atomic_write_u64(&shared->preserve, lsn);
}

/* The newest one, with the rows of a table that is given up, unless an older one has them. */
void
MotStatePreserveNewest(void)
{
	MotCheckpointStat stat;

	MotCheckpointStatGet(&stat);
	if (MotStatePreserved() == InvalidXLogRecPtr)
		MotStatePreserve(stat.checkpoint_lsn);
}

XLogRecPtr
MotStatePreserved(void)
{
	return pg_atomic_read_u64(&shared->preserve);
}

/* -------------------------------------------------------------- statistics */

MotCheckpointStat *
MotCheckpointShared(void)
{
	return &shared->checkpoint;
}

MotRecoveryStat *
MotRecoveryShared(void)
{
	return &shared->recovery;
}

void
MotCheckpointStatGet(MotCheckpointStat *stat)
{
	LWLockAcquire(MotStatLock, LW_SHARED);
	*stat = shared->checkpoint;
	LWLockRelease(MotStatLock);
}

void
MotRecoveryStatGet(MotRecoveryStat *stat)
{
	LWLockAcquire(MotStatLock, LW_SHARED);
	*stat = shared->recovery;
	LWLockRelease(MotStatLock);
	stat->state = MotWalCurrentState();
	stat->damaged_tables = pg_atomic_read_u32(&shared->ndamaged);
}
