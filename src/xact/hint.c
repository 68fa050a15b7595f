/*-------------------------------------------------------------------------
 *
 * hint.c
 *	  The concurrency hint: how many processors parallel workers may have.
 *
 * After SAP HANA's scheduler (Psaroudakis et al., ADMS 2013).  A process is active if it runs or
 * wants to: one that waits for a lock, the log, its client or a timer is not, and the server's
 * processes say that themselves (PGPROC's wait_event_info).  What the active ones leave of
 * the processors that other programs do not use (src/machine) is free; the hint is its exponential
 * moving average, half of the new value and half of the old one every 50 ms, and all processors if
 * it is above nine tenths of them.
 *
 * A query asks the hint as it starts.  Workers that run already are asked oftener: the
 * room for them, which is what all others leave, is averaged over a few looks, so that they
 * give way within some milliseconds and not because somebody has just come by.
 *
 * Looking is reading two words for each process.  Nobody does that who has no parallel
 * query: whoever takes part in one looks between two pages, the first who finds that
 * the last look was 2 ms ago (or a hundred times as long ago as it took), and workers that are
 * parked look every 20 ms, which is the watchdog; so a server without such queries is not woken.
 * The first query after that begins with what it finds: each 50 ms that nobody has looked halve the
 * weight of what the average was.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <time.h>

#include "compat/waitevent.h"
#include "machine/machine.h"
#include "mot.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "xact/workers.h"

#define TICK_US 50000			/* between two steps of the average */
#define ROOM_US 20000			/* what was seen before that is of no account
								 * for the room */
#define LOOK_SHARE 100			/* a look takes at most this part of the time */

#define ALL_ABOVE 0.9			/* of the processors: then the hint is all of
								 * them */

typedef struct Shared
{
	pg_atomic_flag looking;
	pg_atomic_uint64 last;		/* when somebody has looked, microseconds */
	pg_atomic_uint64 rest;		/* ... and not again before so many have
								 * passed */
	/* of whoever looks */
	int64		last_tick;
	double		sum;			/* of what was free, since then */
	int			looks;
	/* what was found; thousandths */
	pg_atomic_uint32 processors;
	pg_atomic_uint32 hint;
	pg_atomic_uint32 room;
	pg_atomic_uint32 active;	/* processes */
	pg_atomic_uint32 blocked;
	/* a test's processors and room; UINT32_MAX: what is true */
	pg_atomic_uint32 pretended;
	pg_atomic_uint32 pretended_room;
} Shared;

static Shared *shared = NULL;

static void
init_hint(void)
{
	pg_atomic_init_flag(&shared->looking);
	pg_atomic_init_u32(&shared->pretended, PG_UINT32_MAX);
}

const MotShmem MotHintShmem = {"mot hint", (void **) &shared, sizeof(Shared), 0, init_hint};

int64
MotMicroseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline uint32
thousandths(double value)
{
	return (uint32) (Max(value, 0) * 1000 + 0.5);
}

static inline double
average(double weight, double now, double before)
{
	return weight * now + (1 - weight) * before;
}

static void
look(int64 now, int64 last)
{
	double		all = MotMachineCpus();
	double		room;
	double		unused;
	int			active = 0;
	int			blocked = 0;
	int			workers = 0;	/* ours, active */

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		/* (what is read may be over at once) */
		const volatile PGPROC *proc = &ProcGlobal->allProcs[i];
		uint32		event;

		/*
		 * (the number of a process that has ended may stay; who owns the
		 * latch not)
		 */
		if (proc->procLatch.owner_pid == 0)
			continue;
		event = proc->wait_event_info;
		if (event == 0)
		{
			active++;
			workers += MotIsWorkerOfOurs(proc);
		}
		else if ((event & 0xFF000000U) != PG_WAIT_CLIENT && (event & 0xFF000000U) != PG_WAIT_ACTIVITY &&
				 event != MotWaitEvent(MOT_FOR_PROCESSOR))
			blocked++;
	}
	room = Max(0, Min(all, MotMachineFree() / 100.0) - (active - workers));
	unused = Max(0, room - workers);
	pg_atomic_write_u32(&shared->active, active);
	pg_atomic_write_u32(&shared->blocked, blocked);
	pg_atomic_write_u32(&shared->processors, thousandths(all));

	pg_atomic_write_u32(&shared->room,
						thousandths(average(now - last > ROOM_US ? 1 : 0.5, room,
											pg_atomic_read_u32(&shared->room) / 1000.0)));

	/*
	 * nobody has looked for so long: what was seen before that is of no
	 * account
	 */
	if (now - last >= TICK_US)
	{
		shared->sum = 0;
		shared->looks = 0;
	}
	shared->sum += unused;
	shared->looks++;
	if (now - shared->last_tick >= TICK_US)
	{
		double		weight = 1 - pow(0.5, Min(64, (now - shared->last_tick) / TICK_US));
		double		hint = average(weight, shared->sum / shared->looks,
								   pg_atomic_read_u32(&shared->hint) / 1000.0);

		pg_atomic_write_u32(&shared->hint, thousandths(hint > ALL_ABOVE * all ? all : hint));
		shared->last_tick = now;
		shared->sum = 0;
		shared->looks = 0;
	}
}

/* Look, if the last look was so many microseconds ago; 0: in any case.  Has one been taken? */
bool
MotHintLook(int64 after)
{
	int64		now = MotMicroseconds();
	int64		last = pg_atomic_read_u64(&shared->last);

	if (after > 0 && now - last < Max(after, (int64) pg_atomic_read_u64(&shared->rest)))
		return false;
	if (!pg_atomic_test_set_flag(&shared->looking))
		return false;
	look(now, last);
	pg_atomic_write_u64(&shared->last, now);
	pg_atomic_write_u64(&shared->rest, LOOK_SHARE * (MotMicroseconds() - now));
	pg_atomic_clear_flag(&shared->looking);
	return true;
}

void
MotHintGet(MotHint *hint)
{
	uint32		pretended = pg_atomic_read_u32(&shared->pretended);

	hint->processors = pg_atomic_read_u32(&shared->processors) / 1000.0;
	hint->active = pg_atomic_read_u32(&shared->active);
	hint->blocked = pg_atomic_read_u32(&shared->blocked);
	hint->hint = pg_atomic_read_u32(&shared->hint) / 1000.0;
	hint->room = pg_atomic_read_u32(&shared->room) / 1000.0;
	if (unlikely(pretended != PG_UINT32_MAX))
	{
		hint->processors = pretended / 1000.0;
		hint->room = pg_atomic_read_u32(&shared->pretended_room) / 1000.0;
		hint->hint = Max(0, hint->room - MotWorkersRunning());
	}
}

/*
 * Tests say how many processors there are, and how many of them for workers; less than 0: what is
 * true.
 */
void
MotHintPretend(double processors, double room)
{
	pg_atomic_write_u32(&shared->pretended_room, thousandths(room));
	pg_atomic_write_u32(&shared->pretended, processors < 0 ? PG_UINT32_MAX : thousandths(processors));
}
