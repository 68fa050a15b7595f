/*-------------------------------------------------------------------------
 *
 * topology.h
 *	  Which NUMA nodes there are, and which cpu is on which (topology.c).
 *
 * Apart from the engine's other headers for src/machine, which looks at the
 * same machine more closely and is to call the nodes by the same numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TOPOLOGY_H
#define MOT_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOT_MAX_NODES	64
#define MOT_MAX_CPUS 4096

typedef struct mot_topology
{
	unsigned	nodes;			/* at least 1 */
	unsigned	cpus;			/* entries of cpu_node that are filled */
	bool		bind;			/* real nodes, more than one: bind memory */
	uint16_t	os_node[MOT_MAX_NODES]; /* the system's number of our node */
	uint8_t		cpu_node[MOT_MAX_CPUS];
} mot_topology;

struct hwloc_topology;

extern void mot_topology_read(mot_topology *topology);

/* of a machine that hwloc has loaded */
extern void mot_topology_read_nodes(mot_topology *topology, struct hwloc_topology *machine);

extern unsigned mot_topology_node(const mot_topology *topology);
extern void mot_topology_bind(const mot_topology *topology, unsigned node,
							  void *start, size_t length);

/* Move memory to a node; true: most of it is there now. */
extern bool mot_topology_move(const mot_topology *topology, unsigned node,
							  void *start, size_t length);

/*
 * Tests run on machines smaller than the topology they pretend to have: a
 * thread that sets this is taken to run on that cpu.  Negative: no pretence.
 */
extern _Thread_local int mot_topology_pretended_cpu;

#endif							/* MOT_TOPOLOGY_H */
