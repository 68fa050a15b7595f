/*-------------------------------------------------------------------------
 *
 * pace.c
 *	  How fast a checkpoint is written beside the clients' work.
 *
 * Rows are in memory, so a writer is never short of them: left alone it takes
 * a processor for itself and hands the disk as much as that can take, and
 * clients have to do with what is left.  What there is against it:
 *
 *	- Helpers lower their priority (MotPaceLowerPriority), so that they
 *	  take what others leave.  That goes as far as the kernel cares, and it
 *	  is one way: a process without privileges cannot raise its priority
 *	  again.  So whoever lowers it must hold nothing that others wait for, from
 *	  then on to its end.  Helpers look through a snapshot and write to files
 *	  of their own; the leader, which closes the gate, never lowers its own.
 *	- While clients are at work, all writers together take no more than
 *	  mot.checkpoint_cpu_limit percent of the machine's processors.  A writer
 *	  that has had its share sleeps, a few milliseconds at a time, with
 *	  nothing held but its snapshot and its file.  A share of the processors is
 *	  a share of the disk as well: so many bytes take so much time to write.
 *	- Files go to the disk in small pieces as they are written
 *	  (snapshotfile.c), so that a flush of the log finds a short queue, and the
 *	  fsync in the end little to do.
 *
 * Clients are at work if the log grows (on a standby: is replayed), or if we
 * wait for a processor.  On an idle server a checkpoint takes as long as the
 * rows need.
 *
 * It must not take for ever, either.  As the server does with its buffers
 * (IsCheckpointOnSchedule), progress is compared with the time and with the log:
 * checkpoint_completion_target of checkpoint_timeout, and of the log that
 * brings about the next checkpoint.  And with the memory: old versions of rows
 * stay as long as the checkpoint's snapshot.  Who is behind does not sleep.  So
 * tables too large for the limit are written as evenly as the server
 * would, with no more than lowered priority.
 *
 * Nobody sleeps when somebody waits for the checkpoint who does not ask for
 * it to be gentle: the server's stop, the end of recovery, the first change
 * after the start.  CHECKPOINT and backups, which wait too, are asked for
 * while others work, and do not count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/wait_event.h"
#include "wal/checkpoint.h"

#define WRITER_NICE 10
#define BUSY_US 200000			/* clients are at work that long after the
								 * last sign of it */
#define MEMORY_US 100000		/* between two looks at the memory in use */
#define CREDIT_US 5000			/* of processor time that may be saved up */
#define NAP_MS 100				/* at most, between two looks around */

int			mot_checkpoint_cpu_limit = 10;

/* this process's account; times in microseconds */
static struct
{
	int64		now;			/* at the last look */
	int64		cpu;
	XLogRecPtr	log;
	uint64		written;
	int64		busy_until;
	int64		memory_at;		/* when that was last looked at */
	double		memory;			/* used of what may be used up meanwhile */
	double		credit;			/* processor time; below 0: to be slept off */
} mine;

static int64 now_us(void);
static int64 cpu_us(void);
static XLogRecPtr log_position(void);
static bool look_around(MotPace *pace);
static bool is_behind(MotPace *pace);

static int64
now_us(void)
{
	instr_time	t;

	INSTR_TIME_SET_CURRENT(t);
	return (int64) INSTR_TIME_GET_MICROSEC(t);
}

static int64
cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (int64) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* to a page, which costs commits nothing to know */
static XLogRecPtr
log_position(void)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetInsertRecPtr();
}

/*
 * For good: nothing may be held by this process that others wait for.
 *
 * Where the kernel gives each session (in the sense of setsid) its part of the
 * processors, as Linux does for desktops, a priority says nothing beyond the
 * session, and every process of the server is one.  There, it is the
 * session's that counts.
 */
void
MotPaceLowerPriority(void)
{
	if (nice(WRITER_NICE) == -1)
		elog(DEBUG1, "could not lower the priority: %m");
#ifdef __linux__
	{
		int			fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
		char		value[12];
		int			len = snprintf(value, sizeof(value), "%d", WRITER_NICE);

		/* it is not there if the kernel does not do such things */
		if (fd >= 0)
		{
			if (write(fd, value, len) != len)
				elog(DEBUG1, "could not lower the priority of the session: %m");
			close(fd);
		}
	}
#endif
}

/* By the leader.  expected: bytes to be written, more or less; writers: how many will share in it. */
void
MotPaceBegin(MotPace *pace, uint64 expected, int writers, bool hurry)
{
	mot_memory_report memory;
	long		cpus = sysconf(_SC_NPROCESSORS_ONLN);

	mot_memory_report_get(MotEngine, &memory);
	pg_atomic_init_u32(&pace->hurry, hurry || mot_checkpoint_cpu_limit == 100);
	pg_atomic_init_u64(&pace->written, 0);
	pace->expected = Max(expected, 1);
	pace->share = Min(1.0, mot_checkpoint_cpu_limit / 100.0 * Max(cpus, 1) / Max(writers, 1));
	pace->began = now_us();
	pace->time = CheckPointTimeout * 1000000.0 * CheckPointCompletionTarget;
	pace->log_began = log_position();
	pace->log = (double) CheckPointSegments * wal_segment_size * CheckPointCompletionTarget;
	pace->memory_began = memory.used_bytes;
	pace->memory = (memory.max_bytes - Min(memory.used_bytes, memory.max_bytes)) / 2.0;
}

/* Somebody waits: no more pauses, of anybody. */
void
MotPaceHurry(MotPace *pace)
{
	pg_atomic_write_u32(&pace->hurry, 1);
}

/* By each writer, before its first look. */
void
MotPaceJoin(MotPace *pace)
{
	memset(&mine, 0, sizeof(mine));
	mine.now = now_us();
	mine.cpu = cpu_us();
	mine.log = log_position();
}

/*
 * By each writer, after every few rows: bytes of them; wrote: files were
 * written to meanwhile, which may have taken time without saying that the
 * processors are busy.  Sleeps if it has to.  stop: cut that short.
 */
void
MotPacePause(MotPace *pace, uint64 bytes, bool wrote, MotHelpersShared *stop)
{
	int64		last = mine.now;
	int64		cpu;

	pg_atomic_fetch_add_u64(&pace->written, bytes);
	if (pg_atomic_read_u32(&pace->hurry) || pace->share >= 1.0)
		return;

	mine.now = now_us();
	cpu = cpu_us() - mine.cpu;
	mine.cpu += cpu;
	if (!wrote && mine.now - last > 2 * cpu + 1000)
		mine.busy_until = mine.now + BUSY_US;
	mine.credit = Min(mine.credit + (mine.now - last) * pace->share, CREDIT_US) - cpu;
	if (!look_around(pace))
	{
		mine.credit = Max(mine.credit, 0);
		return;
	}

	while (mine.credit < 0 && !MotHelpersStop(stop))
	{
		long		nap = (long) Min(ceil(-mine.credit / pace->share / 1000), NAP_MS);

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, nap, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		last = mine.now;
		mine.now = now_us();
		mine.credit += (mine.now - last) * pace->share;
		if (!look_around(pace))
			break;
	}
	mine.cpu = cpu_us();
}

/* Is there any reason to sleep? */
static bool
look_around(MotPace *pace)
{
	XLogRecPtr	log = log_position();

	if (log != mine.log)
		mine.busy_until = mine.now + BUSY_US;
	mine.log = log;
	if (ShutdownRequestPending || MotStateIsAsked())
		MotPaceHurry(pace);
	return !pg_atomic_read_u32(&pace->hurry) && mine.now < mine.busy_until && !is_behind(pace);
}

static bool
is_behind(MotPace *pace)
{
	double		progress = (double) pg_atomic_read_u64(&pace->written) / pace->expected;

	if (mine.now - mine.memory_at > MEMORY_US)
	{
		mot_memory_report memory;

		mot_memory_report_get(MotEngine, &memory);
		mine.memory_at = mine.now;
		mine.memory = memory.used_bytes <= pace->memory_began ? 0.0 :
			(memory.used_bytes - pace->memory_began) / Max(pace->memory, 1.0);
	}
	return progress < (mine.now - pace->began) / pace->time ||
		progress < (mine.log - pace->log_began) / pace->log ||
		progress < mine.memory;
}
