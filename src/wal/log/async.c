/*-------------------------------------------------------------------------
 *
 * async.c
 *	  Commits that nobody waits for (synchronous_commit = off).
 *
 * The server wants to be told how far the log is to be made durable soon
 * (XLogSetAsyncXactLSN), and then wakes the WAL writer whenever a page has
 * been filled that is not durable yet.  The WAL writer makes it durable every
 * wal_writer_delay only, so until then every commit wakes it again, for
 * nothing: a signal and two switches of context, which is as much as all the
 * rest of a small commit.
 *
 * So under load the maintenance worker tells the server, a few times every
 * wal_writer_delay, and a commit only leaves the position of its record where
 * the worker finds it.  When the worker has something else to do, is gone or
 * finds that there is no such load, commits tell the server themselves.  They
 * also do it when much of the log buffers has been filled since the last time.
 *
 * The worker says whether it serves in one word.  A commit stores its
 * position and then reads the word; the worker stores the word and then reads
 * the positions.  Both with a full barrier between, so no position is left to
 * a worker that has looked for the last time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "compat/compat.h"
#include "engine/port.h"
#include "port/atomics.h"
#include "postmaster/walwriter.h"
#include "wal/internal.h"

#define MAX_TICK_MS 50
#define MIN_TICK_MS 10
#define IDLE_TICKS 20			/* without news, and the worker stops */
#define MIN_COMMITS 100			/* in a round of the worker, for it to begin */
#define MAX_BEHIND (256 * 1024) /* bytes of log that the server has not been
								 * told of */

typedef struct Place
{
	pg_atomic_uint64 lsn;		/* end of the process's last such commit */
	char		pad[MOT_CACHE_LINE - sizeof(pg_atomic_uint64)];
} Place;

typedef struct Shared
{
	pg_atomic_uint32 served;
	pg_atomic_uint64 told;		/* by us; the server may know more */
	char		pad[MOT_CACHE_LINE - sizeof(pg_atomic_uint32) - sizeof(pg_atomic_uint64)];
	Place		place[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

const MotShmem MotAsyncShmem = {"mot asynchronous commits", (void **) &shared, sizeof(Shared), sizeof(Place)};

/* ---------------------------------------------------------------- commits */

static void
tell(XLogRecPtr lsn)
{
	uint64		told = pg_atomic_read_u64(&shared->told);

	while (told < lsn && !pg_atomic_compare_exchange_u64(&shared->told, &told, lsn))
		;
	XLogSetAsyncXactLSN(lsn);
}

/* A commit's record ends at "lsn"; see to it that it becomes durable soon. */
void
MotAsyncCommitted(XLogRecPtr lsn)
{
	uint64		behind = Min(MAX_BEHIND, (uint64) XLOGbuffers * XLOG_BLCKSZ / 8);

	/*
	 * exchange: a full barrier between the position and the look at the
	 * worker's word
	 */
	pg_atomic_exchange_u64(&shared->place[MotMySlot()].lsn, lsn);
	if (pg_atomic_read_u32(&shared->served) == 0)
		XLogSetAsyncXactLSN(lsn);
	else if (lsn >= pg_atomic_read_u64(&shared->told) + behind)
		tell(lsn);
}

/* ----------------------------------------------------------------- worker */

static XLogRecPtr
newest(void)
{
	XLogRecPtr	lsn = 0;

	for (int i = 0; i < MotProcessSlots(); i++)
		lsn = Max(lsn, pg_atomic_read_u64(&shared->place[i].lsn));
	return lsn;
}

/*
 * The worker has time.  "commits": how many there have been in its last round.
 * Returns in how many milliseconds it is to call again; -1: there is no need.
 */
long
MotAsyncServe(uint64 commits)
{
	static int	idle = 0;
	static XLogRecPtr seen = 0;
	long		tick = Min(MAX_TICK_MS, WalWriterDelay / 4);
	XLogRecPtr	lsn = newest();

	if (pg_atomic_read_u32(&shared->served) == 0)
	{
		if (lsn == seen || commits < MIN_COMMITS || tick < MIN_TICK_MS)
		{
			seen = lsn;
			return -1;
		}
		idle = 0;
		pg_atomic_exchange_u32(&shared->served, 1);
	}
	seen = lsn;
	if (lsn > pg_atomic_read_u64(&shared->told))
	{
		tell(lsn);
		idle = 0;
	}
	else if (++idle > IDLE_TICKS || tick < MIN_TICK_MS)
	{
		MotAsyncLeave();
		return -1;
	}
	return tick;
}

/* The worker has something else to do. */
void
MotAsyncLeave(void)
{
	XLogRecPtr	lsn;

	if (pg_atomic_read_u32(&shared->served) == 0)
		return;
	/* exchange: a full barrier between the word and the look at the positions */
	pg_atomic_exchange_u32(&shared->served, 0);
	lsn = newest();
	if (lsn > pg_atomic_read_u64(&shared->told))
		tell(lsn);
}
