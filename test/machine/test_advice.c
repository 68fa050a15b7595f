/*-------------------------------------------------------------------------
 *
 * test_advice.c
 *	  What is suggested, on machines that hwloc makes up, with loads that were
 *	  recorded; and what control groups allow, by files of a test's own.
 *
 *-------------------------------------------------------------------------
 */
#include <hwloc.h>
#include <sys/stat.h>

#include "machine/picture.h"
#include "test.h"

/* the paper's: 4 nodes of 4 cores */
#define PAPER "node:4(memory=8589934592) l3:1(size=6291456) l2:4(size=524288) l1d:1(size=65536) core:1 pu:1"
#define GB ((uint64_t) 1 << 30)

static mot_picture *picture;
static mot_usage *usage;
static mot_judgement judgement;
static char why[1024];
static mot_place places[256];

static void
machine(const char *what)
{
	free(picture);
	free(usage);
	picture = mot_picture_read(what);
	REQUIRE(picture != NULL);
	usage = malloc(mot_usage_size(picture->cpus));
	REQUIRE(usage != NULL);
	mot_usage_init(usage, picture->cpus, 100);
	mot_judge(&judgement, picture, usage);
}

/*
 * two readings a second apart: what each CPU was busy with, in percent, and how much of that was
 * ours
 */
static void
reading(double at, const int *busy, const int *ours)
{
	static char text[65536];
	static unsigned long ticks[MOT_MAX_CPUS];
	size_t		n = 0;

	if (at == 0)
	{
		memset(ticks, 0, sizeof(ticks));
		n += (size_t) sprintf(text +n, "at 0\n");
		for (unsigned c = 0; c < picture->cpus; c++)
			n += (size_t) sprintf(text +n, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", c);
	}
	else
	{
		n += (size_t) sprintf(text +n, "at %g\ncpu  1 2 3 4 5 6 7 8 9 10\n", at);
		for (unsigned c = 0; c < picture->cpus; c++)
		{
			ticks[c] += (unsigned long) busy[c];
			n += (size_t) sprintf(text +n, "cpu%u %lu 0 0 %lu 0 0 0 0 0 0\n", c, ticks[c],
								  (unsigned long) (at * 100) - ticks[c]);
		}
		n += (size_t) sprintf(text +n, "intr 1 2 3\n");
		for (unsigned c = 0; ours != NULL && c < picture->cpus; c++)
			n += (size_t) sprintf(text +n, "ours %u %d\n", c, ours[c] * 10000);
	}
	if (strstr(text, "intr") != NULL)
		*strstr(text, "intr") = '#';	/* what does not belong to CPUs */
	CHECK(mot_usage_replay(usage, text));
	mot_judge(&judgement, picture, usage);
}

static unsigned
partitions(uint64_t bytes, mot_work_bound bound)
{
	return mot_suggest_number(why, sizeof(why), bytes, bound, &judgement, picture, usage);
}

static void
place(unsigned n, uint64_t bytes, mot_work_bound bound, bool share)
{
	REQUIRE(n <= 256);
	mot_suggest_places(places, n, bytes, bound, share, &judgement, picture, usage);
}

static unsigned
on_node(unsigned n, int node)
{
	unsigned	found = 0;

	for (unsigned i = 0; i < n; i++)
		found += places[i].node == node;
	return found;
}

/* no CPU twice, none that is not usable */
static bool
each_its_own(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
	{
		if (places[i].cpu < 0 || judgement.use[places[i].cpu] != MOT_CPU_USABLE)
			return false;
		for (unsigned j = 0; j < i; j++)
			if (places[i].cpu == places[j].cpu)
				return false;
	}
	return true;
}

/* ---------------------------------------------------------------- the paper */

static void
paper_has_the_machine(void)
{
	machine(PAPER);
	CHECK(picture->cpus == 16 && picture->nodes == 4 && !picture->real);
	CHECK(picture->cache_bytes[1] == 65536 && picture->cache_bytes[2] == 524288);
	CHECK(picture->cache_bytes[3] == 6291456 && picture->cache_bytes[4] == 0);
	CHECK(picture->node_bytes[0] == 8 * GB);
	CHECK(picture->cpu[3].cache[3] == picture->cpu[0].cache[3]);
	CHECK(picture->cpu[4].cache[3] != picture->cpu[0].cache[3]);
	CHECK(picture->cpu[15].node == 3 && picture->cpu[15].core == 15);
	CHECK(picture->distance[0][0] < picture->distance[0][1]);
}

/* an idle machine of 16 keeps CPU 0; 7 GB in 16 parts use all memory controllers */
static void
paper_idle(void)
{
	machine(PAPER);
	CHECK(partitions(7 * GB, MOT_BOUND_COMPUTE) == 16);
	CHECK(partitions(7 * GB, MOT_BOUND_MEMORY) == 16);
	place(16, 7 * GB / 16, MOT_BOUND_MEMORY, false);
	CHECK(each_its_own(16));
	for (int node = 0; node < 4; node++)
		CHECK(on_node(16, node) == 4);
	/* half as many, too: the naive layout has two nodes */
	place(8, 7 * GB / 8, MOT_BOUND_MEMORY, false);
	for (int node = 0; node < 4; node++)
		CHECK(on_node(8, node) == 2);
}

/* one core busy with others: 15 partitions that avoid it, controllers evenly used */
static void
paper_noisy_neighbour(void)
{
	int			busy[16] = {[3] = 84};

	machine(PAPER);
	reading(0, NULL, NULL);
	reading(1, busy, NULL);
	CHECK(judgement.use[3] == MOT_CPU_BUSY);
	CHECK(judgement.usable == 15 && judgement.allowed == 16);
	CHECK(judgement.free > 15.1 && judgement.free < 15.2);
	mot_judgement_why(why, sizeof(why), 3, &judgement, picture, usage);
	CHECK(strcmp(why, "busy 84 % with others") == 0);
	CHECK(partitions(7 * GB, MOT_BOUND_COMPUTE) == 15);
	CHECK(strcmp(why, "15 usable CPUs; CPU 3 left out: busy 84 % with others") == 0);
	CHECK(partitions(7 * GB, MOT_BOUND_MEMORY) == 15);
	place(15, 7 * GB / 15, MOT_BOUND_MEMORY, false);
	CHECK(each_its_own(15));
	CHECK(on_node(15, 0) == 3);
	for (int node = 1; node < 4; node++)
		CHECK(on_node(15, node) == 4);
	CHECK(strstr(places[0].why, "CPU 3 left out: busy 84 % with others") != NULL);

	/* it goes away: after a few seconds its core is back */
	busy[3] = 0;
	for (int s = 2; s < 8; s++)
		reading(s, busy, NULL);
	CHECK(judgement.usable == 16);
	CHECK(partitions(7 * GB, MOT_BOUND_COMPUTE) == 16);
}

/* ------------------------------------------------------------------- usage */

/* what we use ourselves is no reason to keep away */
static void
our_own_load(void)
{
	int			busy[16],
				ours[16];

	for (int c = 0; c < 16; c++)
		busy[c] = ours[c] = 90;
	machine(PAPER);
	reading(0, NULL, NULL);
	reading(1, busy, ours);
	CHECK(judgement.usable == 16);
	CHECK(usage->cpu[5].ours > 0.89 && usage->cpu[5].others < 0.01);
	CHECK(judgement.free > 15.9);

	/* processes that moved: one CPU seems to have done the work of two */
	ours[0] = 180;
	ours[1] = 0;
	reading(2, busy, ours);
	CHECK(usage->cpu[1].others < 0.01 && usage->cpu[0].others < 0.01);
	CHECK(judgement.usable == 16);
}

/* others' work is what is left of the whole, wherever ours was */
static void
work_of_both(void)
{
	int			busy[16] = {100, 100};

	machine(PAPER);
	reading(0, NULL, NULL);
	mot_usage_ours(usage, -1, 1e6);
	reading(1, busy, NULL);
	CHECK(usage->cpu[0].others > 0.49 && usage->cpu[0].others < 0.51);
	CHECK(usage->cpu[0].others + usage->cpu[1].others < 1.01);
	CHECK(judgement.free > 14.9 && judgement.free < 15.1);
}

/* a little is not noticed; what all have in common is no reason either */
static void
when_all_are_busy(void)
{
	int			busy[16];

	for (int c = 0; c < 16; c++)
		busy[c] = c % 2 == 0 ? 7 : 0;
	machine(PAPER);
	reading(0, NULL, NULL);
	reading(1, busy, NULL);
	CHECK(judgement.usable == 16);
	for (int c = 0; c < 16; c++)
		busy[c] = 100;
	machine(PAPER);
	reading(0, NULL, NULL);
	reading(1, busy, NULL);
	CHECK(judgement.usable == 16 && judgement.free < 0.01 && judgement.most == 16);
	place(16, 0, MOT_BOUND_COMPUTE, false);
	CHECK(strcmp(places[0].why, "busy 100 % with others, and still worth it; node 0 has none yet") == 0);
}

/* CPUs go, come back, and are taken away */
static void
cpus_that_go(void)
{
	machine("node:1 core:4 pu:1");
	CHECK(mot_usage_replay(usage, "at 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\ncpu3 0 0 0 0\n"
						   "at 1\ncpu0 0 0 0 100\ncpu1 0 0 0 100\ncpu3 0 0 0 100\n"));
	mot_judge(&judgement, picture, usage);
	CHECK(judgement.use[2] == MOT_CPU_OFFLINE && judgement.usable == 3 && judgement.ours == 3);
	mot_judgement_why(why, sizeof(why), 2, &judgement, picture, usage);
	CHECK(strcmp(why, "offline") == 0);
	CHECK(mot_usage_replay(usage, "at 2\ncpu0 0 0 0 200\ncpu1 0 0 0 200\ncpu2 50 0 0 0\ncpu3 0 0 0 200\nallowed 1 3\n"));
	mot_judge(&judgement, picture, usage);
	CHECK(judgement.use[2] == MOT_CPU_USABLE && judgement.use[0] == MOT_CPU_OUTSIDE && judgement.usable == 3);
	/* all */
	CHECK(mot_usage_replay(usage, "at 3\n"));
	mot_judge(&judgement, picture, usage);
	CHECK(judgement.usable == 1 && judgement.ours == 1 && judgement.most == 1 && judgement.free < 0.01);
	CHECK(partitions(GB, MOT_BOUND_COMPUTE) == 1);
	place(2, GB, MOT_BOUND_MEMORY, true);
	CHECK(places[0].cpu == -1 && places[1].node == -1);
	/* counters that begin again, and idle time that goes back */
	CHECK(mot_usage_replay(usage, "at 4\ncpu0 5 0 0 0\ncpu1 0 0 0 0\nat 5\ncpu0 10 0 0 0\ncpu1 0 0 0 0\n"
						   "at 6\ncpu0 0 0 0 0\ncpu1 4 0 0 0\nallowed 0 3\n"));
	mot_judge(&judgement, picture, usage);
	CHECK(usage->cpu[0].others < 0.06 && usage->cpu[1].others < 0.06 && judgement.usable == 2);
	CHECK(!mot_usage_replay(usage, "cpu0 1 2 3 4\n") && !mot_usage_replay(usage, "at 7\nwhat?\n"));
}

/* ---------------------------------------------------------------- placement */

static void
threads_of_a_core(void)
{
	int			busy[16] = {[4] = 100};

	machine("node:2 l3:1 core:4 pu:2");
	CHECK(partitions(GB, MOT_BOUND_COMPUTE) == 16);
	CHECK(partitions(GB, MOT_BOUND_MEMORY) == 8);
	CHECK(strstr(why, "8 cores") == why);
	place(8, 0, MOT_BOUND_MEMORY, false);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++)
			CHECK(picture->cpu[places[i].cpu].core != picture->cpu[places[j].cpu].core);
	CHECK(each_its_own(8) && on_node(8, 0) == 4);
	place(20, 0, MOT_BOUND_COMPUTE, false);
	CHECK(each_its_own(16));
	CHECK(strstr(places[16].why, "16 usable CPUs for 20 partitions") != NULL);

	reading(0, NULL, NULL);
	reading(1, busy, NULL);
	CHECK(judgement.use[4] == MOT_CPU_BUSY && judgement.use[5] == MOT_CPU_SIBLING && judgement.usable == 14);
	mot_judgement_why(why, sizeof(why), 5, &judgement, picture, usage);
	CHECK(strcmp(why, "on one core with CPU 4, busy 100 % with others") == 0);
}

static void
caches_shared_or_not(void)
{
	/* two caches a node */
	machine("node:2 l3:2 core:4 pu:1");
	place(4, 0, MOT_BOUND_COMPUTE, true);
	CHECK(each_its_own(4) && on_node(4, places[0].node) == 4);
	for (int i = 1; i < 4; i++)
		CHECK(picture->cpu[places[i].cpu].cache[3] == picture->cpu[places[0].cpu].cache[3]);
	place(4, 0, MOT_BOUND_COMPUTE, false);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			CHECK(picture->cpu[places[i].cpu].cache[3] != picture->cpu[places[j].cpu].cache[3]);
	/* bound by memory: each controller, but one cache behind each */
	place(4, 0, MOT_BOUND_MEMORY, true);
	CHECK(on_node(4, 0) == 2 && on_node(4, 1) == 2);
	CHECK(picture->cpu[places[0].cpu].cache[3] == picture->cpu[places[2].cpu].cache[3]);
	/* all of one node, then the other */
	place(12, 0, MOT_BOUND_COMPUTE, true);
	CHECK(each_its_own(12) && on_node(8, 0) == 8 && on_node(12, 1) == 4);
}

/* a node's memory has an end */
static void
memory_of_a_node(void)
{
	machine("node:2(memory=1073741824) core:4 pu:1");
	place(4, GB / 2, MOT_BOUND_COMPUTE, true);
	CHECK(each_its_own(4) && on_node(4, 0) == 2 && on_node(4, 1) == 2);
	place(5, GB / 2, MOT_BOUND_COMPUTE, true);
	CHECK(each_its_own(5) && strstr(places[4].why, "the memory of no node has room") != NULL);
}

/* what is small is not divided; a control group's limit counts */
static void
few_partitions(void)
{
	machine(PAPER);
	CHECK(partitions(0, MOT_BOUND_COMPUTE) == 1);
	CHECK(partitions(100000, MOT_BOUND_COMPUTE) == 2);
	CHECK(partitions(100000, MOT_BOUND_MEMORY) == 1);
	CHECK(strcmp(why, "16 usable CPUs; more would have less than a core's cache of 512 kB each") == 0);
	usage->limit = 2.5;
	mot_judge(&judgement, picture, usage);
	CHECK(partitions(GB, MOT_BOUND_COMPUTE) == 2 && judgement.ours == 2 && judgement.usable == 16);
	CHECK(strcmp(why, "16 usable CPUs; the control group has 2.5 processors for us") == 0);
	CHECK(judgement.free > 2.49 && judgement.free < 2.51);
	usage->limit_others = 2.2;
	mot_judge(&judgement, picture, usage);
	CHECK(judgement.most == 1 && judgement.free > 0.29 && judgement.free < 0.31);
}

/* CPU 0 is the system's where there are many */
static void
large_machines(void)
{
	machine("node:8 l3:4 core:8 pu:2");
	CHECK(picture->cpus == 512 && judgement.use[0] == MOT_CPU_SYSTEM && judgement.usable == 511);
	CHECK(partitions(1024 * GB, MOT_BOUND_COMPUTE) == 511);
	CHECK(strcmp(why, "511 usable CPUs; CPU 0 left out: left to the system") == 0);
	CHECK(partitions(1024 * GB, MOT_BOUND_MEMORY) == 256);
	place(256, GB, MOT_BOUND_MEMORY, false);
	CHECK(each_its_own(256));
	for (int node = 0; node < 8; node++)
		CHECK(on_node(256, node) == 32);
	/* more than there is room for: cut, and nothing beyond the end */
	machine("node:64 core:100 pu:1");
	CHECK(picture->cpus == MOT_MAX_CPUS && judgement.usable == MOT_MAX_CPUS - 1);
}

/* this machine, whatever it is; XML of another, and what is neither */
static void
other_machines(void)
{
	hwloc_topology_t made_up;
	char	   *xml;
	int			length;

	REQUIRE(hwloc_topology_init(&made_up) == 0 && hwloc_topology_set_synthetic(made_up, PAPER) == 0 &&
			hwloc_topology_load(made_up) == 0 && hwloc_topology_export_xmlbuffer(made_up, &xml, &length, 0) == 0);
	machine(xml);
	CHECK(picture->cpus == 16 && picture->nodes == 4 && !picture->real && picture->cache_bytes[3] == 6291456);
	hwloc_free_xmlbuffer(made_up, xml);
	hwloc_topology_destroy(made_up);
	CHECK(mot_picture_read("nonsense") == NULL);
	CHECK(mot_picture_read("<nonsense>") == NULL);
	machine(NULL);
	CHECK(picture->cpus >= 1 && picture->nodes >= 1);
	CHECK(judgement.ours >= 1 && judgement.usable >= 1 && partitions(GB, MOT_BOUND_COMPUTE) >= 1);
	setenv("HWLOC_SYNTHETIC", "node:3 core:1 pu:1", 1);
	machine(NULL);
	unsetenv("HWLOC_SYNTHETIC");
	CHECK(picture->cpus == 3 && picture->nodes == 3 && !picture->real);
}

/* ------------------------------------------------------------------- limits */

static char root[] = "/tmp/mot-limits-XXXXXX";

static void
put(const char *file, const char *text)
{
	char		path[512];
	FILE	   *f;

	snprintf(path, sizeof(path), "%s%s", root, file);
	for (char *slash = strchr(path + sizeof(root) - 1 + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
	{
		*slash = '\0';
		(void) mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void
control_groups(void)
{
	mot_limits	limits;
	char		command[64];

	REQUIRE(mkdtemp(root) != NULL);
	mot_limits_read(&limits, root);
	CHECK(limits.memory == UINT64_MAX && limits.huge == UINT64_MAX && limits.cpus < 0.01 && limits.used < 0);
	CHECK(mot_pressure_read("cpu", root) < 0);

	/* version 2: each level above ours counts */
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
	put("/sys/fs/cgroup/a/memory.max", "2000000\n");
	put("/sys/fs/cgroup/a/b/hugetlb.2MB.max", "max\n");
	put("/proc/pressure/cpu", "some avg10=2.50 avg60=15.91 avg300=32.81 total=29442927877\n");
	mot_limits_read(&limits, root);
	CHECK(limits.memory == 1000000 && limits.huge == UINT64_MAX);
	CHECK(limits.cpus > 1.49 && limits.cpus < 1.51 && limits.used > 2.49 && limits.used < 2.51);
	CHECK(mot_pressure_read("cpu", root) > 0.0249 && mot_pressure_read("cpu", root) < 0.0251);

	/* version 1: "cpuset" is not "cpu" */
	put("/proc/self/cgroup", "4:cpuset:/wrong\n3:cpu,cpuacct:/c\n2:memory:/c\n0::/\n");
	put("/sys/fs/cgroup/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/wrong/cpu.cfs_quota_us", "10000\n");
	put("/sys/fs/cgroup/cpu/wrong/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpuacct/c/cpuacct.usage", "3000000000\n");
	put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "4096\n");
	mot_limits_read(&limits, root);
	CHECK(limits.cpus > 0.49 && limits.cpus < 0.51 && limits.used > 2.99 && limits.used < 3.01);
	CHECK(limits.memory == 4096);

	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK(system(command) == 0);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(paper_has_the_machine);
	RUN(paper_idle);
	RUN(paper_noisy_neighbour);
	RUN(our_own_load);
	RUN(work_of_both);
	RUN(when_all_are_busy);
	RUN(cpus_that_go);
	RUN(threads_of_a_core);
	RUN(caches_shared_or_not);
	RUN(memory_of_a_node);
	RUN(few_partitions);
	RUN(large_machines);
	RUN(other_machines);
	RUN(control_groups);
	free(picture);
	free(usage);
	return test_end();
}
