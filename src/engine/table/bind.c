/*-------------------------------------------------------------------------
 *
 * bind.c
 *	  Processes that keep to the processors of a node.
 *
 * A process is kept where the table's ranges that it works on live by the set of
 * processors that the system may run it on.  That is soft: it is always a part of those it
 * was allowed before, never empty, and given back when it is not wanted any more.
 *
 * Processors come and go: they are unplugged, or a control group gives or takes
 * some.  The kernel then runs whoever has none left anywhere, or forgets what he was
 * kept to.  So one process, which is never kept anywhere, looks at its own set now and
 * then and publishes it, and a change of that has everybody begin anew at his next
 * call.  What a process is given back is what it had; or, if that was what everybody
 * had, what everybody has now.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <sched.h>

#include "internal.h"
#include "memory/memory_internal.h"

_Static_assert(MACHINE_WORDS * 64 == MOT_MAX_CPUS, "a bit for each cpu");

typedef struct cpus
{
	uint64_t	word[MACHINE_WORDS];
} cpus;

/* the calling thread's; a process has but one */
static _Thread_local struct
{
	bool		asked;			/* anything but MOT_NODE_ANY */
	bool		kept;
	unsigned	node;
	uint32_t	looks;			/* as of which this is so */
	bool		had_all;		/* "before" was what everybody has */
	cpus		before;
	cpus		ours;
}			mine;

static bool
get_cpus(cpus *set)
{
	memset(set, 0, sizeof(*set));
	return sched_getaffinity(0, sizeof(*set), (cpu_set_t *) set) == 0;
}

static bool
set_cpus(const cpus *set)
{
	return sched_setaffinity(0, sizeof(*set), (const cpu_set_t *) set) == 0;
}

static inline bool
has_cpu(const cpus *set, unsigned cpu)
{
	return (set->word[cpu / 64] >> (cpu % 64)) & 1;
}

/* is there anything in "set" that is not in "of"? */
static bool
is_part(const cpus *set, const cpus *of)
{
	for (unsigned i = 0; i < MACHINE_WORDS; i++)
		if ((set->word[i] & ~of->word[i]) != 0)
			return false;
	return true;
}

/*
 * what the last look has found; that may be in the middle of a change, which the next call will see
 */
static void
get_allowed(const mot_engine *e, cpus *set)
{
	/* relaxed: see mot_process_keep_to */
	for (unsigned i = 0; i < MACHINE_WORDS; i++)
		set->word[i] = atomic_load_explicit(&((mot_engine *) e)->machine.allowed[i], memory_order_relaxed);
}

bool
mot_machine_look(mot_engine *e)
{
	const mot_topology *topology = &e->region->topology;
	mot_machine *machine = &e->machine;
	uint64_t	alive = 0;
	cpus		now;
	cpus		last;

	if (!get_cpus(&now))
		return false;
	get_allowed(e, &last);
	if (memcmp(&now, &last, sizeof(now)) == 0)
		return false;
	for (unsigned cpu = 0; cpu < topology->cpus; cpu++)
		if (has_cpu(&now, cpu))
			alive |= UINT64_C(1) << topology->cpu_node[cpu];
	/* relaxed: "looks" releases them */
	for (unsigned i = 0; i < MACHINE_WORDS; i++)
		atomic_store_explicit(&machine->allowed[i], now.word[i], memory_order_relaxed);
	atomic_store_explicit(&machine->alive, alive, memory_order_relaxed);
	atomic_fetch_add_explicit(&machine->looks, 1, memory_order_release);
	return true;
}

uint64_t
mot_nodes_alive(const mot_engine *e)
{
	/* relaxed: a figure */
	uint64_t	alive = atomic_load_explicit(&((mot_engine *) e)->machine.alive, memory_order_relaxed);

	return alive != 0 ? alive : UINT64_MAX >> (64 - mot_engine_nodes(e));
}

/* what the process had before is its own again */
static void
give_back(const mot_engine *e)
{
	cpus		now;

	if (!mine.kept)
		return;
	mine.kept = false;
	/* somebody else, or the kernel, has given it others: these it keeps */
	if (!get_cpus(&now) || !is_part(&now, &mine.ours))
		return;
	if (mine.had_all)
		get_allowed(e, &now);
	else
		now = mine.before;
	if (!set_cpus(&now))
	{
		/* nothing of that is there any more: all that the system lets it have */
		memset(&now, 0xff, sizeof(now));
		(void) set_cpus(&now);
	}
}

static bool
keep_to(const mot_engine *e, unsigned node)
{
	const mot_topology *topology = &e->region->topology;
	bool		any = false;
	cpus		allowed;

	if (!get_cpus(&mine.before))
		return false;
	get_allowed(e, &allowed);
	mine.had_all = memcmp(&allowed, &mine.before, sizeof(allowed)) == 0;
	memset(&mine.ours, 0, sizeof(mine.ours));
	for (unsigned cpu = 0; cpu < topology->cpus; cpu++)
		if (topology->cpu_node[cpu] == node && has_cpu(&mine.before, cpu))
		{
			mine.ours.word[cpu / 64] |= UINT64_C(1) << (cpu % 64);
			any = true;
		}
	return any && set_cpus(&mine.ours);
}

bool
mot_process_keep_to(mot_engine *e, unsigned node)
{
	/* acquire: what has been found is seen, or the next look is */
	uint32_t	looks = atomic_load_explicit(&e->machine.looks, memory_order_acquire);

	if (mot_likely(mine.asked == (node != MOT_NODE_ANY) &&
				   (!mine.asked || (mine.node == node && mine.looks == looks))))
		return mine.kept;
	give_back(e);
	mine.asked = node != MOT_NODE_ANY;
	mine.node = node;
	mine.looks = looks;
	mine.kept = mine.asked && mot_engine_nodes(e) > 1 && keep_to(e, node);
	return mine.kept;
}

/*
 * Sessions of a node share some of a table's counters among themselves: a line that
 * several nodes write has to come from another one nearly each time.
 */
void
mot_session_settle(mot_session *s)
{
	const mot_topology *topology = &s->engine->region->topology;
	unsigned	each = topology->nodes < TABLE_SHARDS ? TABLE_SHARDS / topology->nodes : 1;

	s->shard = (mot_topology_node(topology) * each + s->owner % each) % TABLE_SHARDS;
}
