/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  Counters of the whole server since they were reset.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/counters.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#if PG_VERSION_NUM >= 180000
#include "utils/pgstat_internal.h"
#endif

typedef struct Shared
{
	LWLock		lock;
	/* what is to be added to what is counted; it may be less than zero */
	MotCounters kept;
} Shared;

static void (*count_up) (uint64 *n);
static Shared *own;				/* ours, if the server keeps none */

static void
init_shared(void *at)
{
	memset(at, 0, sizeof(Shared));
	LWLockInitialize(&((Shared *) at)->lock, LWTRANCHE_PGSTATS_DATA);
}

/* what is kept is read and written with as much as has been counted at that moment */
static void
get(Shared *shared, MotCounters *counters)
{
	memset(counters, 0, sizeof(MotCounters));
	LWLockAcquire(&shared->lock, LW_SHARED);
	count_up(counters->n);
	for (int i = 0; i < MOT_COUNTERS; i++)
		counters->n[i] += shared->kept.n[i];
	counters->since = shared->kept.since;
	LWLockRelease(&shared->lock);
}

static void
reset(Shared *shared, TimestampTz now)
{
	uint64		n[MOT_COUNTERS] = {0};

	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	count_up(n);
	for (int i = 0; i < MOT_COUNTERS; i++)
		shared->kept.n[i] = -n[i];
	shared->kept.since = now;
	LWLockRelease(&shared->lock);
}

#if PG_VERSION_NUM >= 180000

static int	statistics_id = PGSTAT_KIND_EXPERIMENTAL;

static Shared *
where(void)
{
	return own != NULL ? own : pgstat_get_custom_shmem_data(statistics_id);
}

static void
reset_all(TimestampTz now)
{
	reset(where(), now);
}

static void
snapshot(void)
{
	get(where(), pgstat_get_custom_snapshot_data(statistics_id));
}

/*
 * what is written when the server stops is the snapshot, and what is read at its start comes where
 * that is added to
 */
static const PgStat_KindInfo kind = {
	.name = "mot",
	.fixed_amount = true,
	.write_to_file = true,
	.shared_size = sizeof(Shared),
	.shared_data_off = offsetof(Shared, kept),
	.shared_data_len = sizeof(MotCounters),
	.init_shmem_cb = init_shared,
	.reset_all_cb = reset_all,
	.snapshot_cb = snapshot
};

static bool
check_id(int *newval, void **extra, GucSource source)
{
	if (*newval == 0 || pgstat_is_kind_custom(*newval))
		return true;
	GUC_check_errdetail("It must be from %d to %d, or 0.", PGSTAT_KIND_CUSTOM_MIN, PGSTAT_KIND_CUSTOM_MAX);
	return false;
}

void
MotCountersInit(void (*count) (uint64 *n))
{
	const PgStat_KindInfo *other;

	count_up = count;
	DefineCustomIntVariable("mot.statistics_id",
							"ID of the cumulative statistics of memory-optimized tables.",
							"With 0 they begin anew at each start of the server.",
							&statistics_id,
							PGSTAT_KIND_EXPERIMENTAL, 0, PGSTAT_KIND_CUSTOM_MAX,
							PGC_POSTMASTER, 0,
							check_id, NULL, NULL);
	if (statistics_id == 0)
		return;
	other = pgstat_get_kind_info(statistics_id);
	if (other == NULL)
	{
		pgstat_register_kind(statistics_id, &kind);
		return;
	}
	/* no reason not to start */
	ereport(WARNING,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("cumulative statistics of memory-optimized tables are not kept when the server stops"),
			 errdetail("Another module in shared_preload_libraries, \"%s\", has the same ID %d.", other->name, statistics_id),
			 errhint("Set mot.statistics_id to another number from %d to %d, or to 0.",
					 PGSTAT_KIND_CUSTOM_MIN, PGSTAT_KIND_CUSTOM_MAX)));
	SetConfigOption("mot.statistics_id", "0", PGC_POSTMASTER, PGC_S_OVERRIDE);
}

#else

#define statistics_id 0

static Shared *
where(void)
{
	return own;
}

void
MotCountersInit(void (*count) (uint64 *n))
{
	count_up = count;
}

#endif

void
MotCountersShmemRequest(void)
{
	if (statistics_id == 0)
		RequestAddinShmemSpace(sizeof(Shared));
}

void
MotCountersShmemInit(void)
{
	bool		found;

	if (statistics_id != 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	own = ShmemInitStruct("mot counters", sizeof(Shared), &found);
	if (!found)
	{
		init_shared(own);
		own->kept.since = GetCurrentTimestamp();
	}
	LWLockRelease(AddinShmemInitLock);
}

void
MotCountersGet(MotCounters *counters)
{
	get(where(), counters);
}

void
MotCountersReset(void)
{
	reset(where(), GetCurrentTimestamp());
}
