/*-------------------------------------------------------------------------
 *
 * measure.c
 *	  What a session counts: see measure.h.
 *
 * A session's first transaction is counted, and then one in several; the others find
 * MotIslandsCounting unset, as all do while mot.islands is off.
 *
 * What a counted one touches is gathered in the process's own memory, and goes to the
 * session's counts at its end.  These lie in the engine's region, from the node of the
 * slot's first process that needs them.  The slot keeps them when the process has gone, and the
 * next one goes on with them: many sessions that are short are counted as a long one is.
 * Where there is no room for new rows there is none for counts either, and sessions
 * that have none do without.
 *
 * mot.islands_trace is for bench/islands: transactions as they are, for a simulator.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "compat/compat.h"
#include "islands/measure.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

int			mot_islands = MOT_ISLANDS_OFF;
bool		MotIslandsCounting = false;
uint32		MotIslandsLeft = 1;
MotIslandsShared *MotIslands = NULL;
uint32		(*MotIslandsKey) (const mot_index *index) = NULL;

static char *trace_directory = NULL;
static FILE *trace_file = NULL;

static isl_transaction current;
static isl_counts *counts = NULL;	/* this process's */
static bool denied = false;		/* there was no memory for them the last time */
static uint16 kept_to = MOT_ISLANDS_HOMELESS;

static const struct config_enum_entry islands_options[] = {
	{"off", MOT_ISLANDS_OFF, false},
	{"advise", MOT_ISLANDS_ADVISE, false},
	{"on", MOT_ISLANDS_ON, false},
	{"false", MOT_ISLANDS_OFF, true},
	{"no", MOT_ISLANDS_OFF, true},
	{"0", MOT_ISLANDS_OFF, true},
	{"true", MOT_ISLANDS_ON, true},
	{"yes", MOT_ISLANDS_ON, true},
	{"1", MOT_ISLANDS_ON, true},
	{NULL, 0, false}
};

/* so many transactions later whoever was denied memory asks again */
#define DENIED_FOR 1000

static void assign_islands(int newval, void *extra);
static bool take_counts(mot_session *session);
static void write_trace(const MotIslandsSeen *seen, uint64 position, bool change);

void
MotIslandsInit(void)
{
	DefineCustomEnumVariable("mot.islands",
							 "Whether ranges of memory-optimized tables are placed on the nodes of the machine that work on them.",
							 "\"advise\" only shows in mot_islands what would be done.",
							 &mot_islands,
							 MOT_ISLANDS_OFF, islands_options,
							 PGC_SIGHUP, 0,
							 NULL, assign_islands, NULL);
	DefineCustomStringVariable("mot.islands_trace",
							   "Directory to which sessions write what their transactions touch, for bench/islands.",
							   NULL,
							   &trace_directory,
							   "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}

static void
assign_islands(int newval, void *extra)
{
	MotIslandsCounting = newval != MOT_ISLANDS_OFF;
	MotIslandsLeft = 1;
	current.touched = current.lost = 0;
	if (newval != MOT_ISLANDS_ON && kept_to != MOT_ISLANDS_HOMELESS)
	{
		kept_to = MOT_ISLANDS_HOMELESS;
		MotIslandsKeep(NULL, kept_to);
	}
}

/* ---------------------------------------------------------- shared memory */

static Size
shmem_size(void)
{
	return add_size(offsetof(MotIslandsShared, slot), mul_size(MotProcessSlots(), sizeof(MotIslandsSlot)));
}

void
MotIslandsShmemRequest(void)
{
	RequestAddinShmemSpace(shmem_size());
	RequestNamedLWLockTranche("mot_islands", 1);
}

void
MotIslandsShmemInit(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	MotIslands = ShmemInitStruct("mot islands", shmem_size(), &found);
	if (!found)
	{
		/* (most of it is not touched before it is used) */
		MotIslands->generation = 0;
		MotIslands->lock = &(GetNamedLWLockTranche("mot_islands"))->lock;
		isl_interval_init(&MotIslands->interval);
		memset(&MotIslands->before, 0, sizeof(isl_cost));
		memset(&MotIslands->after, 0, sizeof(isl_cost));
		MotIslands->decisions = 0;
		for (int i = 0; i < MotProcessSlots(); i++)
		{
			MotIslands->slot[i].counts = NULL;
			MotIslands->slot[i].home = MOT_ISLANDS_HOMELESS;
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ---------------------------------------------------------------- sessions */

bool
MotIslandsWatches(MotIslandsSeen *seen, uint64 serial)
{
	/* acquire: the scheme was written before its generation */
	uint64		generation = atomic_load_explicit(&MotIslands->generation, memory_order_acquire);
	const MotIslandsScheme *s;
	int			t;

	if (likely(seen->generation == generation && seen->serial == serial))
		return seen->watched;
	seen->generation = generation;
	seen->serial = serial;
	seen->watched = false;
	if (generation == 0)
		return false;
	s = &MotIslands->scheme[generation % 2];
	t = isl_scheme_find(&s->scheme, serial);
	if (t < 0)
		return false;
	seen->index = s->table[t].index;
	seen->skip = s->table[t].skip;
	seen->common = s->table[t].common;
	seen->low = s->scheme.low;
	seen->first = s->scheme.table[t].first;
	seen->subs = s->scheme.table[t].subs;
	/* (what is read while it is written may be anything) */
	seen->watched = seen->first < ISL_MAX_SUBS && seen->subs <= ISL_MAX_SUBS - seen->first &&
		seen->subs > 0 && seen->skip <= MOT_ISLANDS_COMMON;
	return seen->watched;
}

void
MotIslandsTouch(const MotIslandsSeen *seen, const uint8 *key, size_t len, unsigned rows, bool change)
{
	uint64		position = isl_position(key, len, seen->common, seen->skip);

	if (current.touched == 0)
		current.generation = seen->generation;
	else if (unlikely(current.generation != seen->generation))
		return;
	isl_touch(&current, isl_sub_at(seen->low, seen->first, seen->subs, position), rows, change);
	if (unlikely(trace_directory[0] != '\0'))
		write_trace(seen, position, change);
}

static void
count(mot_session *session)
{
	/* relaxed: what it numbers is not looked at */
	uint64		generation = atomic_load_explicit(&MotIslands->generation, memory_order_relaxed);

	if (current.touched > 0 && current.generation == generation && session != NULL &&
		(likely(counts != NULL) || take_counts(session)))
	{
		if (unlikely(atomic_load_explicit(&counts->generation, memory_order_relaxed) != generation))
			isl_counts_clear(counts, generation);
		isl_counts_add(counts, &current);
		if (mot_islands == MOT_ISLANDS_ON)
		{
			/* relaxed: no order is needed */
			uint16		home = atomic_load_explicit(&MotIslands->slot[MotMySlot()].home, memory_order_relaxed);

			if (unlikely(home != kept_to))
				MotIslandsKeep(session, kept_to = home);
		}
	}
	if (unlikely(trace_file != NULL) && current.touched > 0)
		fputc('\n', trace_file);
	current.touched = current.lost = 0;
}

/* One that was counted has ended, or the last one that was left out. */
void
MotIslandsTurn(mot_session *session)
{
	uint32		leave_out = 0;

	if (MotIslandsCounting)
	{
		count(session);
		/* (a recorded load has to be whole) */
		if (unlikely(trace_directory[0] != '\0'))
			leave_out = 0;
		else if (likely(counts != NULL))
			leave_out = isl_counts_leave_out(counts);
		else if (denied)
			leave_out = DENIED_FOR;
	}
	MotIslandsCounting = leave_out == 0;
	MotIslandsLeft = Max(leave_out, 1);
}

static bool
take_counts(mot_session *session)
{
	MotIslandsSlot *slot = &MotIslands->slot[MotMySlot()];
	mot_status	status;

	/* who wrote them before has gone */
	counts = slot->counts;
	if (counts == NULL)
	{
		counts = mot_host_alloc(session, sizeof(isl_counts), false, &status);
		denied = counts == NULL;
		if (denied)
			return false;
		memset(counts, 0, sizeof(isl_counts));
	}
	counts->random += MyProcPid;
	counts->left_out = 0;
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	slot->counts = counts;
	slot->home = MOT_ISLANDS_HOMELESS;
	LWLockRelease(MotIslands->lock);
	return true;
}

/* the oid of the table's first index, position, and R or C of each row; a line a transaction */
static void
write_trace(const MotIslandsSeen *seen, uint64 position, bool change)
{
	if (trace_file == NULL)
		trace_file = fopen(psprintf("%s/%d", trace_directory, MyProcPid), "a");
	if (trace_file != NULL)
		fprintf(trace_file, UINT64_FORMAT ":%016llx:%c ", (uint64) seen->index, (unsigned long long) position,
				change ? 'C' : 'R');
}
