/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  Readings of the machine's counters, once a second, in shared memory.
 *
 * The picture is read in the postmaster, before it forks, so all have it.  What
 * changes is in shared memory, under a lock that readings take if nobody has it; what
 * others ask for often are words that they read without.
 *
 * A reading is /proc/stat, and the processor time of each process of the server: a
 * system call each, which is all for those that have been idle.  Those that were not are
 * asked where they ran last (/proc/PID/stat).  Who has ended since, and whoever is no
 * process of the server's but was started by one, counts with the postmaster once
 * it is reaped.  Limits are read every tenth time.  Where a file is not to be had,
 * nothing is known of that, and all CPUs count as free.
 *
 * Which CPUs we may use is the postmaster's affinity: the kernel keeps it within
 * the control group's cpuset, and to CPUs that are online.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "compat/compat.h"
#include "machine/machine.h"
#include "machine/place.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

/* seconds between two readings; the first may come sooner after the server's start */
#define INTERVAL 0.9
#define FIRST_INTERVAL 0.05

/* between two looks at the limits */
#define LIMITS_INTERVAL 10.0

/* microseconds that a process uses up before it is asked where */
#define WORTH_ASKING 10000

/* of /proc/stat, for each CPU */
#define STAT_LINE 160

typedef struct Process
{
	pid_t		pid;			/* 0: none */
	int64		used;			/* microseconds, as far as we have asked where */
} Process;

typedef struct Shared
{
	pg_atomic_uint32 free;
	pg_atomic_uint32 cpus;
	pg_atomic_uint32 workers;
	pg_atomic_uint32 changes;	/* of which CPUs are usable */
	pg_atomic_uint64 next;		/* reading, in microseconds */

	/* under the lock */
	mot_judgement judgement;
	int64		used;			/* microseconds of all our processes */
	double		limits_at;
	double		group_used;		/* then; < 0: not known */
	int64		group_ours;
	int			nprocesses;
	Size		usage_at;
	Process		process[FLEXIBLE_ARRAY_MEMBER];
} Shared;

bool		mot_adviser = true;
MotMachine *MotMachineInstead = NULL;

static mot_picture *picture = NULL;
static Shared *shared = NULL;
static LWLock *lock = NULL;

static mot_usage *the_usage(void);
static void take_reading(double now);
static void read_stat(void);
static void read_processes(void);
static int64 used_by(pid_t pid);
static int64 postmasters_time(void);
static int	last_cpu(pid_t pid);
static bool read_file(const char *path, char *buffer, Size size);
static void read_allowed(void);
static void read_limits(double now);
static void publish(void);

/* ------------------------------------------------------------------ module */

void
MotMachineInit(void)
{
	DefineCustomBoolVariable("mot.adviser",
							 "Processes of memory-optimized tables keep to processors that others do not use.",
							 "Their number goes by that, too, where it is auto.",
							 &mot_adviser,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	picture = mot_picture_read(NULL);
}

static Size
shmem_size(void)
{
	return add_size(MAXALIGN(add_size(offsetof(Shared, process), mul_size(MotProcessSlots(), sizeof(Process)))),
					mot_usage_size(picture->cpus));
}

void
MotMachineShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_machine", 1);
	if (picture != NULL)
		RequestAddinShmemSpace(shmem_size());
}

void
MotMachineShmemInit(void)
{
	bool		found;
	Size		size;

	lock = &(GetNamedLWLockTranche("mot_machine"))->lock;
	if (picture == NULL)
		return;
	size = shmem_size();
	shared = ShmemInitStruct("mot machine", size, &found);
	if (found)
		return;
	memset(shared, 0, size);
	shared->nprocesses = MotProcessSlots();
	shared->usage_at = size - mot_usage_size(picture->cpus);
	shared->group_used = -1;
	pg_atomic_init_u32(&shared->free, 0);
	pg_atomic_init_u32(&shared->cpus, 0);
	pg_atomic_init_u32(&shared->workers, 0);
	pg_atomic_init_u32(&shared->changes, 0);
	pg_atomic_init_u64(&shared->next, 0);
	mot_usage_init(the_usage(), picture->cpus, (unsigned) sysconf(_SC_CLK_TCK));

	/* what later readings are compared with; nobody else is there yet */
	take_reading(0);
}

static mot_usage *
the_usage(void)
{
	return (mot_usage *) ((char *) shared + shared->usage_at);
}

/* ---------------------------------------------------------------- readings */

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void
MotMachineSample(void)
{
	double		now;

	if (shared == NULL || !mot_adviser)
		return;
	now = seconds();
	if (now * 1e6 < pg_atomic_read_u64(&shared->next) || !LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
		return;
	take_reading(now);
	LWLockRelease(lock);
}

/* now: 0, or the time; with the lock */
static void
take_reading(double now)
{
	mot_usage  *usage = the_usage();
	bool		first = usage->at < 0;

	/* (somebody else was first) */
	if (now > 0 && now * 1e6 < pg_atomic_read_u64(&shared->next))
		return;
	if (picture->real)
	{
		read_allowed();
		read_stat();
		read_processes();
		if (now == 0)
			now = seconds();
		read_limits(now);
		mot_usage_end(usage, now);
		pg_atomic_write_u64(&shared->next, (now + (first ? FIRST_INTERVAL : INTERVAL)) * 1e6);
	}
	publish();
}

static void
read_stat(void)
{
	mot_usage  *usage = the_usage();
	Size		size = (usage->cpus + 2) * STAT_LINE;
	char	   *counters = malloc(size);
	const char *path = "/proc/stat";

#ifdef MOT_FAULTS
	/* a test's neighbours */
	if (getenv("MOT_TEST_PROC_STAT") != NULL)
		path = getenv("MOT_TEST_PROC_STAT");
#endif
	if (counters != NULL && read_file(path, counters, size))
		mot_usage_stat(usage, counters);
	free(counters);

	/*
	 * What the kernel lets us run on is there, whatever a container makes of
	 * the file, and idle for all we know.
	 */
	for (unsigned c = 0; c < usage->cpus; c++)
		if (usage->cpu[c].allowed && picture->cpu[c].known)
			usage->cpu[c].seen = true;
}

static void
read_processes(void)
{
	mot_usage  *usage = the_usage();
	int64		used = used_by(PostmasterPid) + postmasters_time();
	int64		placed = 0;

	for (int i = 0; i < shared->nprocesses; i++)
	{
		Process    *process = &shared->process[i];

		/*
		 * (it comes and goes as it likes; its latch is owned as long as it is
		 * there)
		 */
		pid_t		pid = ((volatile PGPROC *) &ProcGlobal->allProcs[i])->procLatch.owner_pid;
		int64		now = pid != 0 ? used_by(pid) : -1;

		if (now < 0)
		{
			process->pid = 0;
			continue;
		}
		used += now;
		if (process->pid != pid || now < process->used)
		{
			process->pid = pid;
			process->used = 0;
		}
		if (now - process->used >= WORTH_ASKING)
		{
			mot_usage_ours(usage, last_cpu(pid), now - process->used);
			placed += now - process->used;
			process->used = now;
		}
	}

	/* who has gone counts again when it is reaped */
	if (used > shared->used)
	{
		if (used - shared->used > placed)
			mot_usage_ours(usage, -1, used - shared->used - placed);
		shared->used = used;
	}
}

/* microseconds of processors; < 0: it has gone */
static int64
used_by(pid_t pid)
{
	clockid_t	clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return -1;
	return (int64) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/*
 * What /proc says of a process from that field on (of those behind the name, which may have blanks
 * in it; the state is number 3); NULL: nothing.
 */
static const char *
read_stat_of(pid_t pid, int number)
{
	static char stat[1024];
	char		path[40];
	char	   *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	at = read_file(path, stat, sizeof(stat)) ? strrchr(stat, ')') : NULL;
	for (int n = 2; at != NULL && n < number; n++)
		at = strchr(at + 1, ' ');
	return at;
}

/* of those that the postmaster has reaped */
static int64
postmasters_time(void)
{
	const char *at = read_stat_of(PostmasterPid, 16);
	unsigned long long user,
				system;

	if (at == NULL || sscanf(at, "%llu %llu", &user, &system) != 2)
		return 0;
	return (int64) ((user + system) * 1000000 / the_usage()->hz);
}

/* < 0: who knows */
static int
last_cpu(pid_t pid)
{
	const char *at = read_stat_of(pid, 39);

	return at != NULL ? atoi(at) : -1;
}

/* as much of it as there is room for */
static bool
read_file(const char *path, char *buffer, Size size)
{
	int			fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t		n;
	Size		len = 0;

	if (fd < 0)
		return false;
	while (len < size - 1 && (n = read(fd, buffer + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buffer[len] = '\0';
	return len > 0;
}

static void
read_allowed(void)
{
	mot_usage  *usage = the_usage();
	unsigned long mask[MOT_MAX_CPUS / (8 * sizeof(unsigned long))] = {0};
	bool		known = sched_getaffinity(PostmasterPid, sizeof(mask), (cpu_set_t *) mask) == 0;

	for (unsigned c = 0; c < usage->cpus; c++)
		usage->cpu[c].allowed = !known || CPU_ISSET_S(c, sizeof(mask), (cpu_set_t *) mask);
}

/* What the control group allows, and how much of that others in it take. */
static void
read_limits(double now)
{
	mot_usage  *usage = the_usage();
	mot_limits	limits;

	if (usage->at >= 0 && now - shared->limits_at < LIMITS_INTERVAL)
		return;
	mot_limits_read(&limits, "");
	usage->limit = limits.cpus;
	usage->limit_others = 0;
	if (limits.used >= 0 && shared->group_used >= 0)
		usage->limit_others = Max(0, (limits.used - shared->group_used - (shared->used - shared->group_ours) / 1e6) /
								  (now - shared->limits_at));
	shared->group_used = limits.used;
	shared->group_ours = shared->used;
	shared->limits_at = now;
}

static void
publish(void)
{
	mot_judgement *judgement = &shared->judgement;
	uint8_t    *before = malloc(sizeof(judgement->use));

	if (before != NULL)
		memcpy(before, judgement->use, sizeof(judgement->use));
	mot_judge(judgement, picture, the_usage());
	pg_atomic_write_u32(&shared->free, (uint32) (judgement->free * 100));
	pg_atomic_write_u32(&shared->cpus, judgement->ours);
	pg_atomic_write_u32(&shared->workers, judgement->most);
	if (before == NULL || memcmp(before, judgement->use, judgement->cpus) != 0)
		pg_atomic_fetch_add_u32(&shared->changes, 1);
	free(before);
}

/* ------------------------------------------------------------------ answers */

static int
online(void)
{
	return (int) Max(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

int
MotMachineFree(void)
{
	return shared != NULL && mot_adviser ? (int) pg_atomic_read_u32(&shared->free) : online() * 100;
}

int
MotMachineCpus(void)
{
	return shared != NULL && mot_adviser ? (int) pg_atomic_read_u32(&shared->cpus) : online();
}

int
MotMachineWorkers(void)
{
	MotMachineSample();
	return shared != NULL && mot_adviser ? (int) pg_atomic_read_u32(&shared->workers) : online();
}

uint32
MotMachineChanges(void)
{
	return shared != NULL && picture->real ? pg_atomic_read_u32(&shared->changes) : 0;
}

MotMachine *
MotMachineLook(void)
{
	return MotMachineInstead != NULL ? MotMachineInstead : MotMachineHere();
}

MotMachine *
MotMachineHere(void)
{
	MotMachine *machine;
	Size		size;

	if (picture == NULL)
		picture = mot_picture_read(NULL);
	if (picture == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));

	machine = palloc(sizeof(MotMachine));
	size = mot_usage_size(picture->cpus);
	machine->picture = picture;
	machine->usage = palloc(size);
	if (shared != NULL && mot_adviser)
	{
		LWLockAcquire(lock, LW_SHARED);
		memcpy(machine->usage, the_usage(), size);
		memcpy(&machine->judgement, &shared->judgement, sizeof(mot_judgement));
		LWLockRelease(lock);
	}
	else
	{
		mot_usage_init(machine->usage, picture->cpus, 0);
		mot_judge(&machine->judgement, picture, machine->usage);
	}
	return machine;
}

uint64
MotMachineMemory(void)
{
	uint64		memory = (uint64) sysconf(_SC_PHYS_PAGES) * (uint64) sysconf(_SC_PAGESIZE);
	mot_limits	limits;

	mot_limits_read(&limits, "");
	return Min(memory, limits.memory);
}

/*
 * Bytes in huge pages of 2 MB that our control group may have; what there is
 * of them is another matter.  Who touches one beyond that is killed, though
 * it was mapped without complaint.
 */
uint64
MotMachineHugePages(void)
{
	mot_limits	limits;

	mot_limits_read(&limits, "");
	return limits.huge;
}
