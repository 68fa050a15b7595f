/*-------------------------------------------------------------------------
 *
 * held.c
 *	  What snapshots keep in memory, and who is ended for it.
 *
 * What was superseded after a snapshot was taken is kept as long as somebody has that
 * snapshot.  The engine counts what is superseded (mot_owed_added); so what is kept for a snapshot
 * is what has been added to that number since, times the mean size of such things, of which a few
 * are looked at.  The maintenance worker notes the number when it first sees a session's snapshot,
 * at most a second after it was taken: what came in that second is not charged to it.  What is kept
 * for several snapshots counts for each.
 *
 * A session whose snapshot keeps more than mot.snapshot_memory fails with 40001 at the next row,
 * page or statement at which it looks; until it has rolled back its snapshot is published, so it
 * has seen nothing but what it should have.  A session that is idle in a transaction fails at its
 * next statement, and keeps the memory until then.  Parallel workers look at what their leader's
 * snapshot keeps.
 *
 * It is readers who are ended: not a transaction that has changed or locked rows,
 * nor what takes its snapshot under a lock (DDL, ANALYZE), nor a checkpoint, none of which look
 * here.  Superusers' sessions, pg_dump's for one, are ended only if the setting has been made for
 * the role or in the session, not by what is meant for all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "compat/compat.h"
#include "faults.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "xact/held.h"
#include "xact/internal.h"
#include "xact/xact.h"

/*
 * milliseconds between two rounds; and if some snapshot keeps half of what the server's setting
 * allows
 */
#define ROUND_MS 1000
#define NEAR_MS 100

typedef struct Held
{
	pg_atomic_uint64 snapshot;	/* MOT_TS_NONE: none */
	pg_atomic_uint64 since;		/* when it was first seen */
	pg_atomic_uint64 added;		/* what had been superseded by then */
	pg_atomic_uint64 bytes;		/* kept for it */
	pg_atomic_uint32 spared;	/* a leader of workers: it has changed
								 * something */
} Held;

static Held *shared = NULL;		/* by slot */
static unsigned my_slot = 0;	/* a worker's: its leader's */

static pg_atomic_uint64 nothing;
pg_atomic_uint64 *MotHeldMine = &nothing;
uint64		MotHeldLimit = PG_UINT64_MAX;

static int	mot_snapshot_memory = -1;
static bool limit_is_own = false;

static bool
check_limit(int *newval, void **extra, GucSource source)
{
	bool	   *own = MotSettingExtra(sizeof(bool));

	if (own == NULL)
		return false;
	*own = source >= PGC_S_USER;
	*extra = own;
	return true;
}

static void
assign_limit(int newval, void *extra)
{
	limit_is_own = extra != NULL && *(bool *) extra;
	MotHeldLimit = newval < 0 ? PG_UINT64_MAX : (uint64) newval * 1024;
}

void
MotHeldInit(void)
{
	pg_atomic_init_u64(&nothing, 0);
	DefineCustomIntVariable("mot.snapshot_memory",
							"Memory that may be kept for a reader's snapshot of memory-optimized tables.",
							"If more superseded rows are kept for it, the transaction fails; -1 is no limit.",
							&mot_snapshot_memory,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB,
							check_limit, assign_limit, NULL);
}

static void
init_held(void)
{
	for (int i = 0; i < MotProcessSlots(); i++)
		pg_atomic_init_u64(&shared[i].snapshot, MOT_TS_NONE);
}

const MotShmem MotHeldShmem = {"mot held", (void **) &shared, 0, sizeof(Held), init_held};

void
MotHeldOpened(unsigned slot)
{
	my_slot = slot;
	MotHeldMine = &shared[slot].bytes;
}

/* ---------------------------------------------------- the maintenance worker */

/* Returns the most that is kept for one. */
static uint64
look(void)
{
	uint64		added = mot_owed_added(MotEngine);
	uint64		each = mot_owed_item_bytes(MotEngine);

	/* (those of prepared transactions hold none) */
	unsigned	n = Min(mot_slots_used(MotEngine), (unsigned) MotProcessSlots());
	uint64		most = 0;

	for (unsigned i = 0; i < n; i++)
	{
		mot_ts		snapshot = mot_slot_snapshot(MotEngine, i);
		Held	   *held = &shared[i];
		uint64		bytes = 0;

		if (snapshot != pg_atomic_read_u64(&held->snapshot))
		{
			pg_atomic_write_u64(&held->bytes, 0);
			pg_atomic_write_u64(&held->added, added);
			pg_atomic_write_u64(&held->since, GetCurrentTimestamp());
			/* who sees the snapshot sees what belongs to it */
			pg_write_barrier();
			pg_atomic_write_u64(&held->snapshot, snapshot);
		}
		else if (snapshot != MOT_TS_NONE)
		{
			bytes = (added - pg_atomic_read_u64(&held->added)) * each;
			pg_atomic_write_u64(&held->bytes, bytes);
		}
		most = Max(most, bytes);
	}
	return most;
}

long
MotHeldServe(void)
{
	static TimestampTz looked = 0;
	static long period = 0;
	TimestampTz now = GetCurrentTimestamp();
	long		left = period - (long) ((now - looked) / 1000);

	if (left > 0 && left <= period)
		return left;
	looked = now;
	MotDecodedServe();
	period = look() > MotHeldLimit / 2 ? NEAR_MS : ROUND_MS;
	MOT_FAULT("held-looked");
	return period;
}

uint64
MotHeldBytes(unsigned slot, mot_ts snapshot, TimestampTz *since)
{
	Held	   *held = &shared[slot];
	uint64		added;

	*since = 0;
	if (pg_atomic_read_u64(&held->snapshot) != snapshot)
		return 0;
	pg_read_barrier();
	added = pg_atomic_read_u64(&held->added);
	*since = pg_atomic_read_u64(&held->since);
	return (mot_owed_added(MotEngine) - added) * mot_owed_item_bytes(MotEngine);
}

/* ----------------------------------------------------------------- readers */

static bool
has_changed(void)
{
	return (MotOpenSession != NULL && mot_txn_has_work(MotOpenSession)) ||
		TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* Workers do not know what their leader has changed. */
void
MotHeldLead(void)
{
	pg_atomic_write_u32(&shared[my_slot].spared, has_changed());
}

void
MotHeldTooMuch(void)
{
	Held	   *held = &shared[my_slot];
	mot_ts		snapshot = pg_atomic_read_u64(&held->snapshot);
	uint64		bytes;

	/*
	 * That one may have been let go of, or been a former session's.  Behind
	 * the snapshot the bytes are its own, not what look() has just cleared.
	 */
	pg_read_barrier();
	bytes = pg_atomic_read_u64(&held->bytes);
	if (MotOpenSession == NULL || mot_slot_snapshot(MotEngine, my_slot) != snapshot || bytes <= MotHeldLimit)
		return;
	if (IsParallelWorker() ? pg_atomic_read_u32(&held->spared) != 0 : has_changed())
		return;
	if (!limit_is_own && superuser_arg(GetSessionUserId()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access: too many superseded rows are kept for the transaction's snapshot"),
			 errdetail("They take about " UINT64_FORMAT " kB, and mot.snapshot_memory is " UINT64_FORMAT " kB.",
					   bytes / 1024, MotHeldLimit / 1024),
			 errhint("Run it again when less is written, or with fewer statements a transaction, or with a higher mot.snapshot_memory.")));
}
