/*-------------------------------------------------------------------------
 *
 * topology.c
 *	  The machine's NUMA nodes: how many, which cpu is on which, and binding
 *	  memory to them.
 *
 * hwloc describes the machine, or whatever HWLOC_SYNTHETIC or an XML file
 * says it is; a machine without NUMA, or a container that hides it, has one
 * node.  The nodes are numbered 0, 1, ... here, whatever the system calls
 * them.  Memory is bound only where the nodes are real and more than one; it
 * is a preference, so a full node means memory from another, not a signal.
 * Memory that several processes have mapped is moved for who has CAP_SYS_NICE.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <hwloc.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <unistd.h>

#include "memory/memory_internal.h"

_Thread_local int mot_topology_pretended_cpu = -1;

void
mot_topology_read(mot_topology *topology)
{
	hwloc_topology_t machine;

	memset(topology, 0, sizeof(*topology));
	topology->nodes = 1;
	topology->cpus = 1;

	if (hwloc_topology_init(&machine) != 0)
		return;
	if (hwloc_topology_load(machine) == 0)
		mot_topology_read_nodes(topology, machine);
	hwloc_topology_destroy(machine);
}

void
mot_topology_read_nodes(mot_topology *topology, hwloc_topology_t machine)
{
	int			nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
	int			cpus = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);

	memset(topology, 0, sizeof(*topology));
	topology->nodes = 1;
	topology->cpus = 1;
	if (nodes < 1)
		return;
	if (nodes > MOT_MAX_NODES)
		nodes = MOT_MAX_NODES;
	topology->nodes = (unsigned) nodes;

	for (int n = 0; n < nodes; n++)
	{
		hwloc_obj_t node = hwloc_get_obj_by_type(machine, HWLOC_OBJ_NUMANODE, (unsigned) n);

		topology->os_node[n] = (uint16_t) node->os_index;
	}

	for (int c = 0; c < cpus; c++)
	{
		hwloc_obj_t cpu = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PU, (unsigned) c);

		if (cpu->os_index >= MOT_MAX_CPUS)
			continue;
		if (cpu->os_index >= topology->cpus)
			topology->cpus = cpu->os_index + 1;

		/* the first of the nodes near it: the others are slower memory */
		for (int n = 0; n < nodes; n++)
		{
			if (hwloc_bitmap_isset(cpu->nodeset, topology->os_node[n]))
			{
				topology->cpu_node[cpu->os_index] = (uint8_t) n;
				break;
			}
		}
	}

	topology->bind = nodes > 1 && hwloc_topology_is_thissystem(machine) &&
		numa_available() >= 0;
}

/* the node of the cpu the caller runs on, at the moment */
unsigned
mot_topology_node(const mot_topology *topology)
{
	int			cpu;

	if (topology->nodes == 1)
		return 0;
	cpu = mot_topology_pretended_cpu;
	if (cpu < 0)
		cpu = sched_getcpu();
	if (cpu < 0)
		return 0;

	/* a cpu that came later than we looked, or is not in a synthetic machine */
	return topology->cpu_node[(unsigned) cpu % topology->cpus];
}

void
mot_topology_bind(const mot_topology *topology, unsigned node,
				  void *start, size_t length)
{
	unsigned long mask[1024 / (8 * sizeof(unsigned long))] = {0};
	unsigned	os_node = topology->os_node[node];

	if (!topology->bind || os_node >= 1024)
		return;
	mask[os_node / (8 * sizeof(unsigned long))] |=
		1ul << (os_node % (8 * sizeof(unsigned long)));

	/*
	 * Where it is refused (a container's seccomp filter) the first toucher's
	 * node gets the page, which is mostly the one we meant.
	 */
	(void) mbind(start, length, MPOL_PREFERRED, mask, 1024, 0);
}

/* so many of the system's pages a call */
#define MOVE_BATCH 64

/* a batch of pages; how many are on that node afterwards */
static size_t
move_batch(unsigned os_node, void **pages, size_t n)
{
	int			nodes[MOVE_BATCH];
	int			status[MOVE_BATCH];
	size_t		there = 0;

	for (size_t i = 0; i < n; i++)
	{
		/* the kernel knows only what is mapped here */
		(void) *(volatile char *) pages[i];
		nodes[i] = (int) os_node;
		status[i] = -1;
	}
	if (move_pages(0, n, pages, nodes, status, MPOL_MF_MOVE_ALL) < 0 &&
		move_pages(0, n, pages, nodes, status, MPOL_MF_MOVE) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		there += status[i] == (int) os_node;
	return there;
}

bool
mot_topology_move(const mot_topology *topology, unsigned node, void *start, size_t length)
{
	size_t		size = (size_t) sysconf(_SC_PAGESIZE);
	size_t		there = 0;
	size_t		n = 0;
	void	   *pages[MOVE_BATCH];

	/* nodes that are not real have no memory */
	if (!topology->bind)
		return true;
	for (size_t at = 0; at < length; at += size)
	{
		pages[n++] = (char *) start + at;
		if (n == MOVE_BATCH || at + size >= length)
		{
			there += move_batch(topology->os_node[node], pages, n);
			n = 0;
		}
	}
	return there * size * 2 > length;
}
