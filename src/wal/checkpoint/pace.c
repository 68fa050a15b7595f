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
 *	  mot.checkpoint_share percent of the machine's processors, and wait for
 *	  the disk no more than that part of the time.  A writer that has had its
 *	  share sleeps, a few milliseconds at a time, with nothing held but its
 *	  snapshot and its file.
 *	- Files go to the disk in small pieces as they are written, and only one is
 *	  on its way while the next is made (snapshotfile.c).  So a flush of the
 *	  log finds a short queue, the fsync in the end little to do, and we
 *	  notice what the disk can take.
 *
 * Clients are at work if the log grows (on a standby: is replayed).  Those
 * who only read have a claim to the processors, which priority sees to, and
 * none to the disk.  On an idle server a checkpoint takes as long as the rows
 * need.
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
#include "machine/machine.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "utils/guc.h"
#include "wal/checkpoint/checkpoint.h"

#define WRITER_NICE 10
#define BUSY_US 200000			/* clients are at work that long after the
								 * last sign of it */
#define LOOK_US		500			/* between two looks around */
#define MEMORY_US 100000		/* between two looks at the memory in use */
#define CREDIT_US 20000			/* that may be saved up */
#define SESSION_US	150000		/* between two attempts to lower the session's
								 * priority */
#define NAP_MS 100				/* at most, between two looks around */

int			mot_checkpoint_share = 5;

/* this process's account; times in microseconds */
static struct
{
	int64		now;			/* at the last look */
	int64		cpu;
	int64		queued;			/* waited for a processor, as far as known */
	int64		waits;			/* times we gave up the processor to wait */
	XLogRecPtr	log;
	int64		busy_until;
	int64		memory_at;		/* when that was last looked at */
	double		memory;			/* used of what may be used up meanwhile */
	double		debt;			/* to be slept off; below 0: saved up */
}			mine;

static int64 session_at = 0;	/* when to try again to lower its priority */

static int64
now_us(void)
{
	instr_time	t;

	INSTR_TIME_SET_CURRENT(t);
	return (int64) INSTR_TIME_GET_MICROSEC(t);
}

static void
read_usage(void)
{
	static int	fd = -2;
	struct rusage usage;
	char		line[64];
	ssize_t		len;
	unsigned long long cpu,
				queued;

	getrusage(RUSAGE_SELF, &usage);
	mine.cpu = (int64) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	mine.waits = usage.ru_nvcsw;
	if (fd == -2)
		fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (len = pread(fd, line, sizeof(line) - 1, 0)) > 0)
	{
		line[len] = '\0';
		if (sscanf(line, "%llu %llu", &cpu, &queued) == 2)
			mine.queued = (int64) (queued / 1000);
	}
}

static XLogRecPtr
log_position(void)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
}

/*
 * The kernel may want us to come again: it allows ten such changes a second, of all processes
 * together.
 */
static void
lower_session(void)
{
	int			fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	char		value[12];
	int			len = snprintf(value, sizeof(value), "%d", WRITER_NICE);

	session_at = 0;
	/* it is not there if the kernel does not do such things */
	if (fd < 0)
		return;
	if (write(fd, value, len) != len)
	{
		if (errno == EAGAIN)
			session_at = now_us() + SESSION_US;
		else
			elog(DEBUG1, "could not lower the priority of the session: %m");
	}
	close(fd);
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
	lower_session();
}

/* Somebody waits: no more pauses, of anybody. */
static void
end_pauses(MotPace *pace)
{
	pg_atomic_write_u32(&pace->hurry, 1);
}

static void
set_share(MotPace *pace)
{
	pace->disk = mot_checkpoint_share / 100.0 / pace->writers;
	pace->cpu = Min(1.0, pace->disk * MotMachineCpus());
	if (mot_checkpoint_share == 100)
		end_pauses(pace);
}

/*
 * By the leader.  expected: bytes to be written, more or less; writers: how many will share in it.
 */
void
MotPaceBegin(MotPace *pace, uint64 expected, int writers, bool hurry)
{
	mot_memory_report memory;

	mot_memory_report_get(MotEngine, &memory);
	pg_atomic_init_u32(&pace->hurry, hurry);
	pg_atomic_init_u64(&pace->written, 0);
	pace->expected = Max(expected, 1);
	pace->writers = Max(writers, 1);
	set_share(pace);
	pace->began = now_us();
	pace->time = CheckPointTimeout * 1000000.0 * CheckPointCompletionTarget;
	pace->log_began = log_position();
	pace->log = (double) CheckPointSegments * wal_segment_size * CheckPointCompletionTarget;
	pace->memory_began = memory.used_bytes;
	pace->memory = (memory.max_bytes - Min(memory.used_bytes, memory.max_bytes)) / 2.0;
}

/* By the leader while it waits for helpers: they are told of what they cannot see. */
void
MotPaceAttend(MotPace *pace)
{
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		set_share(pace);
	}
	if (ShutdownRequestPending)
		end_pauses(pace);
}

/* By each writer, before its first look. */
void
MotPaceJoin(MotPace *pace)
{
	memset(&mine, 0, sizeof(mine));
	mine.now = now_us();
	read_usage();
	mine.log = log_position();
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

/* Is there any reason to sleep? */
static bool
look_around(MotPace *pace)
{
	XLogRecPtr	log = log_position();

	if (log != mine.log)
		mine.busy_until = mine.now + BUSY_US;
	mine.log = log;
	if (ShutdownRequestPending || MotStateIs(MOT_IS_ASKED))
		end_pauses(pace);
	return !pg_atomic_read_u32(&pace->hurry) && mine.now < mine.busy_until && !is_behind(pace);
}

/*
 * By each writer, after every few rows: bytes of them.  Sleeps if it has to.
 * stop: cut that short.
 *
 * If we have waited of our own accord since the last look, it was for the
 * disk, and then perhaps for a processor.
 */
void
MotPacePause(MotPace *pace, uint64 bytes, MotHelpersShared *stop)
{
	int64		now;
	int64		passed;
	int64		used = -mine.cpu;
	int64		queued = -mine.queued;
	int64		waits = -mine.waits;

	pg_atomic_fetch_add_u64(&pace->written, bytes);
	if (pg_atomic_read_u32(&pace->hurry))
		return;

	now = now_us();
	passed = now - mine.now;
	if (passed < LOOK_US)
		return;
	mine.now = now;
	if (unlikely(session_at != 0) && mine.now > session_at)
		lower_session();
	read_usage();
	used += mine.cpu;
	queued += mine.queued;
	waits += mine.waits;
	if (!look_around(pace))
	{
		mine.debt = 0;
		return;
	}
	mine.debt = Max(mine.debt - passed, -CREDIT_US) + used / pace->cpu;
	if (waits > 0)
		mine.debt += Max(passed - used - queued, 0) / pace->disk;

	while (mine.debt > 0 && !MotHelpersStop(stop))
	{
		long		nap = (long) Min(ceil(mine.debt / 1000), NAP_MS);

		MotNap(nap, MOT_FOR_PACE);
		CHECK_FOR_INTERRUPTS();
		mine.debt += mine.now;
		mine.now = now_us();
		mine.debt -= mine.now;
		if (!look_around(pace))
			break;
	}
	read_usage();
}
