/*-------------------------------------------------------------------------
 *
 * advice.c
 *	  What follows from the machine and its load: which CPUs to use, into how
 *	  many parts to divide work, and where to put them.
 *
 * Parts of equal size end with the slowest one.  So k CPUs are worth k times
 * the slowest of them, and those are used for which that is most: on 16 CPUs one that
 * has less than 15/16 to give does harm.  What a CPU has to give
 * is what others leave, but never less than half: beside one other process that
 * is our share anyway.  If all are equally busy, all are used.  Others
 * that take less than a tenth are not noticed.  On a core with several threads
 * one that is busy slows down the others.
 *
 * CPU 0 is the system's own in the paper, which serves interrupts and the
 * kernel's work.  Of 16 CPUs or less it would be missed more; so it
 * is left out only where more than 16 are usable.
 *
 * Work bound by computation wants each thread of a core, work bound by memory
 * each core: a second thread adds no bandwidth to it.  A part that is smaller than
 * the cache nearest to a core, the first for computation and the second for memory,
 * is not worth a process.
 *
 * Places are given one after the other, always the best that is left: memory that
 * has room, whole cores, then nodes and caches evenly; or nodes and caches filled
 * one after the other if the parts are to share caches.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/picture.h"

#define UNNOTICED 0.10
#define LEAST_SHARE 0.50
#define SIBLING_COST 0.40
#define MANY_CPUS 16

typedef struct Candidate
{
	unsigned	cpu;
	double		gives;
} Candidate;

static bool is_ours(const mot_picture *picture, const mot_usage *usage, unsigned cpu);
static double used_by_others(const mot_usage *usage, unsigned cpu);
static int	most_first(const void *a, const void *b);
static void add(char *to, size_t size, const char *format,...) __attribute__((format(printf, 3, 4)));

/* ------------------------------------------------------- which CPUs to use */

void
mot_judge(mot_judgement *judgement, const mot_picture *picture, const mot_usage *usage)
{
	unsigned	n = picture->cpus < MOT_MAX_CPUS ? picture->cpus : MOT_MAX_CPUS;
	Candidate  *candidates = malloc(n * sizeof(Candidate));
	int		   *busiest = malloc(n * sizeof(int));	/* by core */
	unsigned	k = 0;
	unsigned	best = 0;
	double		worth = 0;

	memset(judgement, 0, sizeof(*judgement));
	judgement->cpus = n;
	for (unsigned c = 0; busiest != NULL && c < n; c++)
		busiest[c] = -1;
	for (unsigned c = 0; busiest != NULL && c < n; c++)
	{
		int			core = picture->cpu[c].core;

		if (core >= 0 && (unsigned) core < n && used_by_others(usage, c) > 0 &&
			(busiest[core] < 0 || usage->cpu[c].others > usage->cpu[busiest[core]].others))
			busiest[core] = (int) c;
	}

	for (unsigned c = 0; c < n; c++)
	{
		int			core = picture->cpu[c].core;
		double		gives = 1 - used_by_others(usage, c);

		if (!is_ours(picture, usage, c))
		{
			judgement->use[c] = picture->cpu[c].known ?
				(usage->cpu[c].online ? MOT_CPU_OUTSIDE : MOT_CPU_OFFLINE) :
				(picture->real && usage->intervals > 0 && usage->cpu[c].online ? MOT_CPU_OUTSIDE : MOT_CPU_NONE);
			continue;
		}
		judgement->free += 1 - usage->cpu[c].others;
		if (busiest != NULL && core >= 0 && (unsigned) core < n && busiest[core] >= 0 && busiest[core] != (int) c)
			gives -= SIBLING_COST * used_by_others(usage, (unsigned) busiest[core]);
		judgement->allowed++;
		if (candidates != NULL)
		{
			candidates[k].cpu = c;
			candidates[k++].gives = gives < LEAST_SHARE ? LEAST_SHARE : gives;
		}
	}

	if (k > 0)
		qsort(candidates, k, sizeof(Candidate), most_first);
	for (unsigned i = 0; i < k; i++)
	{
		/* not for nothing: who is there needs it, too */
		if ((i + 1) * candidates[i].gives > worth * 1.000001)
		{
			worth = (i + 1) * candidates[i].gives;
			best = i + 1;
		}
	}
	for (unsigned i = best; i < k; i++)
		judgement->use[candidates[i].cpu] =
			used_by_others(usage, candidates[i].cpu) > 0 ? MOT_CPU_BUSY : MOT_CPU_SIBLING;
	free(candidates);
	free(busiest);
	judgement->usable = best;

	if (best > MANY_CPUS && is_ours(picture, usage, 0) && judgement->use[0] == MOT_CPU_USABLE)
	{
		judgement->use[0] = MOT_CPU_SYSTEM;
		judgement->usable--;
	}

	/* nobody can do without any */
	judgement->ours = judgement->allowed > 0 ? judgement->allowed : 1;
	if (judgement->usable == 0)
		judgement->usable = 1;
	judgement->most = judgement->usable;
	if (usage->limit > 0)
	{
		double		left = usage->limit - usage->limit_others;

		if (judgement->free > left)
			judgement->free = left;
		if (judgement->ours > usage->limit)
			judgement->ours = usage->limit > 1 ? (unsigned) usage->limit : 1;
		if (judgement->most > left)
			judgement->most = left > 1 ? (unsigned) left : 1;
	}
	if (judgement->free < 0)
		judgement->free = 0;
}

static bool
is_ours(const mot_picture *picture, const mot_usage *usage, unsigned cpu)
{
	return picture->cpu[cpu].known && usage->cpu[cpu].online && usage->cpu[cpu].allowed;
}

static double
used_by_others(const mot_usage *usage, unsigned cpu)
{
	return usage->cpu[cpu].others < UNNOTICED ? 0 : usage->cpu[cpu].others;
}

/* the other thread of its core that is most used by others; -1: there is none, or none is used */
static int
busiest_sibling(const mot_picture *picture, const mot_usage *usage, unsigned cpu)
{
	int			found = -1;

	for (unsigned c = 0; c < picture->cpus; c++)
		if (c != cpu && used_by_others(usage, c) > 0 && picture->cpu[c].known &&
			picture->cpu[c].core == picture->cpu[cpu].core &&
			(found < 0 || usage->cpu[c].others > usage->cpu[found].others))
			found = (int) c;
	return found;
}

static int
most_first(const void *a, const void *b)
{
	const Candidate *x = a;
	const Candidate *y = b;

	if (x->gives != y->gives)
		return x->gives > y->gives ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* ------------------------------------------------------------------ reasons */

static void
add(char *to, size_t size, const char *format,...)
{
	size_t		len = strlen(to);
	va_list		args;

	va_start(args, format);
	vsnprintf(to + len, size - len, format, args);
	va_end(args);
}

static int
percent(double part)
{
	return (int) (part * 100 + 0.5);
}

void
mot_judgement_why(char *why, size_t size, unsigned cpu, const mot_judgement *judgement,
				  const mot_picture *picture, const mot_usage *usage)
{
	int			sibling;

	why[0] = '\0';
	switch ((mot_cpu_use) judgement->use[cpu])
	{
		case MOT_CPU_USABLE:
			break;
		case MOT_CPU_NONE:
			add(why, size, "not there");
			break;
		case MOT_CPU_OFFLINE:
			add(why, size, "offline");
			break;
		case MOT_CPU_OUTSIDE:
			add(why, size, usage->cpu[cpu].allowed ? "not there when the server started" :
				"not among the server's CPUs (cpuset or affinity)");
			break;
		case MOT_CPU_BUSY:
			add(why, size, "busy %d %% with others", percent(usage->cpu[cpu].others));
			break;
		case MOT_CPU_SIBLING:
			sibling = busiest_sibling(picture, usage, cpu);
			if (sibling >= 0)
				add(why, size, "on one core with CPU %d, busy %d %% with others", sibling,
					percent(usage->cpu[sibling].others));
			else
				add(why, size, "on one core with a CPU that is busy with others");
			break;
		case MOT_CPU_SYSTEM:
			add(why, size, "left to the system");
			break;
	}
}

/* those that we could use, and do not: as many as there is room for */
static void
add_left_out(char *to, size_t size, const mot_judgement *judgement,
			 const mot_picture *picture, const mot_usage *usage)
{
	unsigned	more = 0;

	for (unsigned c = 0; c < judgement->cpus; c++)
	{
		char		why[96];

		if (judgement->use[c] < MOT_CPU_BUSY)
			continue;
		mot_judgement_why(why, sizeof(why), c, judgement, picture, usage);
		if (strlen(to) + strlen(why) + 64 < size)
			add(to, size, "; CPU %u left out: %s", c, why);
		else
			more++;
	}
	if (more > 0)
		add(to, size, "; %u more left out", more);
}

/* --------------------------------------------------------------- partitions */

static unsigned
usable_cores(const mot_judgement *judgement, const mot_picture *picture)
{
	unsigned	cores = 0;

	for (unsigned c = 0; c < judgement->cpus; c++)
	{
		bool		first = judgement->use[c] == MOT_CPU_USABLE;

		for (unsigned before = 0; first && before < c; before++)
			first = judgement->use[before] != MOT_CPU_USABLE ||
				picture->cpu[before].core != picture->cpu[c].core;
		cores += first;
	}
	return cores > 0 ? cores : 1;
}

unsigned
mot_suggest_number(char *why, size_t size, uint64_t bytes, mot_work_bound bound,
				   const mot_judgement *judgement,
				   const mot_picture *picture, const mot_usage *usage)
{
	unsigned	cores = bound == MOT_BOUND_MEMORY ? usable_cores(judgement, picture) : 0;
	unsigned	n = judgement->usable;
	uint64_t	cache = picture->cache_bytes[bound == MOT_BOUND_MEMORY ? 2 : 1];
	uint64_t	fill = cache > 0 ? (bytes + cache - 1) / cache : UINT64_MAX;

	why[0] = '\0';
	if (cores > 0 && cores < n)
	{
		n = cores;
		add(why, size, "%u cores, of whose threads one each has the bandwidth", n);
	}
	else
		add(why, size, "%u usable CPU%s", n, n == 1 ? "" : "s");
	if (judgement->most < n)
	{
		n = judgement->most;
		add(why, size, "; the control group has %.4g processor%s for us", usage->limit - usage->limit_others,
			usage->limit - usage->limit_others == 1 ? "" : "s");
	}
	if (fill < n)
	{
		n = fill > 0 ? (unsigned) fill : 1;
		add(why, size, "; more would have less than a core's cache of %llu kB each", (unsigned long long) cache / 1024);
	}
	add_left_out(why, size, judgement, picture, usage);
	return n;
}

/* ---------------------------------------------------------------- placement */

/* what has been given so far */
typedef struct Given
{
	unsigned	on_cpu[MOT_MAX_CPUS];
	unsigned	on_core[MOT_MAX_CPUS];
	unsigned	on_cache[MOT_MAX_CPUS]; /* the outermost ones */
	unsigned	on_node[MOT_MAX_NODES];
	int			last;			/* the node that was taken into use last */
	const mot_picture *picture;
	const mot_usage *usage;
	uint64_t	bytes;
	bool		together;		/* nodes one after the other */
	bool		share_cache;
} Given;

/* the outermost cache that a CPU uses; 0, too, if it has none */
static unsigned
outermost(const mot_picture *picture, unsigned cpu)
{
	int			level = MOT_CACHE_LEVELS;

	while (level > 0 && picture->cpu[cpu].cache[level] < 0)
		level--;
	return level > 0 ? (unsigned) picture->cpu[cpu].cache[level] % MOT_MAX_CPUS : 0;
}

static unsigned
core_of(const mot_picture *picture, unsigned cpu)
{
	return (unsigned) picture->cpu[cpu].core % MOT_MAX_CPUS;
}

/* how bad a place a CPU is for the next part: the first of these that differ decide */
#define BADNESS 7

static void
rate(double bad[BADNESS], const Given *given, unsigned cpu)
{
	const mot_picture *picture = given->picture;
	int			node = picture->cpu[cpu].node;
	unsigned	on_node = node >= 0 ? given->on_node[node] : 0;
	double		in_cache = given->on_cache[outermost(picture, cpu)];
	double		on_core = given->on_core[core_of(picture, cpu)];
	double		far = node >= 0 && given->last >= 0 ? picture->distance[given->last][node] : 0;

	bad[0] = node >= 0 && picture->node_bytes[node] > 0 &&
		((double) on_node + 1) * (double) given->bytes > (double) picture->node_bytes[node];
	bad[1] = given->on_cpu[cpu];
	bad[2] = given->share_cache ? 0 : on_core;

	/*
	 * a node in use is better than a new one, and of these the nearest; or
	 * the one with the least on it
	 */
	bad[3] = given->together ? (on_node > 0 ? 0 : far) : on_node;
	bad[4] = given->share_cache ? -in_cache : in_cache;
	bad[5] = on_core;
	bad[6] = used_by_others(given->usage, cpu);
}

static bool
is_better(const double a[BADNESS], const double b[BADNESS])
{
	for (int i = 0; i < BADNESS; i++)
		if (a[i] != b[i])
			return a[i] < b[i];
	return false;
}

void
mot_suggest_places(mot_place *places, unsigned partitions, uint64_t bytes,
				   mot_work_bound bound, bool share_cache,
				   const mot_judgement *judgement,
				   const mot_picture *picture, const mot_usage *usage)
{
	Given		given = {.last = -1,.picture = picture,.usage = usage,.bytes = bytes,
	.together = share_cache && bound == MOT_BOUND_COMPUTE,.share_cache = share_cache};

	for (unsigned p = 0; p < partitions; p++)
	{
		double		least[BADNESS];
		int			found = -1;
		int			node;
		mot_place  *place = &places[p];

		for (unsigned c = 0; c < judgement->cpus; c++)
		{
			double		bad[BADNESS];

			if (judgement->use[c] != MOT_CPU_USABLE || !is_ours(picture, usage, c))
				continue;
			rate(bad, &given, c);
			if (found < 0 || is_better(bad, least))
			{
				memcpy(least, bad, sizeof(least));
				found = (int) c;
			}
		}

		place->cpu = found;
		node = place->node = found < 0 ? -1 : picture->cpu[found].node;
		place->why[0] = '\0';
		if (found < 0)
		{
			add(place->why, sizeof(place->why), "no CPU is known");
			continue;
		}
		if (given.on_cpu[found] > 0)
			add(place->why, sizeof(place->why), "%u usable CPU%s for %u partitions", judgement->usable,
				judgement->usable == 1 ? "" : "s", partitions);
		else if (usage->cpu[found].others >= UNNOTICED)
			add(place->why, sizeof(place->why), "busy %d %% with others, and still worth it", percent(usage->cpu[found].others));
		else
			add(place->why, sizeof(place->why), "not used by others");
		if (least[0] != 0)
			add(place->why, sizeof(place->why), "; the memory of no node has room");
		if (given.together && given.on_node[node] > 0)
			add(place->why, sizeof(place->why), "; node %d has been begun", node);
		else if (given.together)
			add(place->why, sizeof(place->why), given.last < 0 ? "; node %d is the first" : "; node %d is the nearest of the others", node);
		else if (picture->nodes > 1 && node >= 0 && given.on_node[node] == 0)
			add(place->why, sizeof(place->why), "; node %d has none yet", node);
		else if (picture->nodes > 1 && node >= 0)
			add(place->why, sizeof(place->why), "; node %d has %u of %u", node, given.on_node[node], p);
		if (p == 0)
			add_left_out(place->why, sizeof(place->why), judgement, picture, usage);

		given.on_cpu[found]++;
		given.on_core[core_of(picture, (unsigned) found)]++;
		given.on_cache[outermost(picture, (unsigned) found)]++;
		if (node >= 0 && given.on_node[node]++ == 0)
			given.last = node;
	}
}
