/*-------------------------------------------------------------------------
 *
 * picture.c
 *	  What the machine consists of, by hwloc.
 *
 * hwloc shows what the control group's cpuset lets us have.  CPUs beyond that
 * have entries, too, up to the highest number there is: /proc/stat may tell of
 * them.  A machine of which hwloc can say nothing has CPUs and one node.
 *
 *-------------------------------------------------------------------------
 */
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/picture.h"

/* the kernel's own where it tells nothing else */
#define NEAR 10
#define FAR 20

static bool load_machine(hwloc_topology_t machine, const char *what);
static void read_cpus(mot_picture *picture, hwloc_topology_t machine, const mot_topology *topology);
static void read_nodes(mot_picture *picture, hwloc_topology_t machine);

mot_picture *
mot_picture_read(const char *what)
{
	hwloc_topology_t machine;
	mot_topology *topology = malloc(sizeof(mot_topology));
	mot_picture *picture = NULL;
	long		there = sysconf(_SC_NPROCESSORS_CONF);
	unsigned	cpus;
	bool		loaded;

	if (topology == NULL || hwloc_topology_init(&machine) != 0)
	{
		free(topology);
		return NULL;
	}
	loaded = load_machine(machine, what);
	if (loaded)
		mot_topology_read_nodes(topology, machine);
	else if (what == NULL)
		memset(topology, 0, sizeof(*topology));

	if (loaded || what == NULL)
	{
		bool		real = !loaded || hwloc_topology_is_thissystem(machine);

		cpus = loaded ? topology->cpus : 1;
		if (real && there > (long) cpus)
			cpus = there < MOT_MAX_CPUS ? (unsigned) there : MOT_MAX_CPUS;
		picture = calloc(1, offsetof(mot_picture, cpu) + cpus * sizeof(mot_cpu));
		if (picture != NULL)
		{
			picture->cpus = cpus;
			picture->nodes = loaded ? topology->nodes : 1;
			picture->real = real;
			for (unsigned c = 0; c < cpus; c++)
			{
				picture->cpu[c].known = !loaded;
				picture->cpu[c].node = loaded ? -1 : 0;
				picture->cpu[c].core = loaded ? -1 : (int) c;
				for (int level = 0; level <= MOT_CACHE_LEVELS; level++)
					picture->cpu[c].cache[level] = -1;
			}
			if (loaded)
			{
				read_cpus(picture, machine, topology);
				read_nodes(picture, machine);
			}
		}
	}
	hwloc_topology_destroy(machine);
	free(topology);
	return picture;
}

static bool
load_machine(hwloc_topology_t machine, const char *what)
{
	int			set = 0;

	if (what != NULL && what[0] == '<')
		set = hwloc_topology_set_xmlbuffer(machine, what, (int) strlen(what) + 1);
	else if (what != NULL)
		set = hwloc_topology_set_synthetic(machine, what);
	return set == 0 && hwloc_topology_load(machine) == 0 &&
		hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU) > 0;
}

static void
read_cpus(mot_picture *picture, hwloc_topology_t machine, const mot_topology *topology)
{
	int			n = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);

	for (int i = 0; i < n; i++)
	{
		hwloc_obj_t pu = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PU, (unsigned) i);
		mot_cpu    *cpu;

		if (pu->os_index >= picture->cpus)
			continue;
		cpu = &picture->cpu[pu->os_index];
		cpu->known = true;
		cpu->node = topology->cpu_node[pu->os_index];
		cpu->core = i;
		for (hwloc_obj_t above = pu->parent; above != NULL; above = above->parent)
		{
			unsigned	level;

			if (above->type == HWLOC_OBJ_CORE)
				cpu->core = (int) above->logical_index;
			if (!hwloc_obj_type_is_dcache(above->type))
				continue;
			level = above->attr->cache.depth;
			if (level < 1 || level > MOT_CACHE_LEVELS)
				continue;
			cpu->cache[level] = (int) above->logical_index;
			if (above->attr->cache.size > 0 &&
				(picture->cache_bytes[level] == 0 || above->attr->cache.size < picture->cache_bytes[level]))
				picture->cache_bytes[level] = above->attr->cache.size;
		}
	}
}

static void
read_nodes(mot_picture *picture, hwloc_topology_t machine)
{
	struct hwloc_distances_s *matrix;
	unsigned	found = 1;

	for (unsigned a = 0; a < picture->nodes; a++)
	{
		hwloc_obj_t node = hwloc_get_obj_by_type(machine, HWLOC_OBJ_NUMANODE, a);

		if (node != NULL)
			picture->node_bytes[a] = node->attr->numanode.local_memory;
		for (unsigned b = 0; b < picture->nodes; b++)
			picture->distance[a][b] = a == b ? NEAR : FAR;
	}
	if (hwloc_distances_get_by_type(machine, HWLOC_OBJ_NUMANODE, &found, &matrix,
									HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 || found == 0)
		return;
	for (unsigned a = 0; a < matrix->nbobjs; a++)
		for (unsigned b = 0; b < matrix->nbobjs; b++)
		{
			unsigned	from = matrix->objs[a]->logical_index;
			unsigned	to = matrix->objs[b]->logical_index;

			if (from < picture->nodes && to < picture->nodes)
				picture->distance[from][to] = (uint16_t) matrix->values[a * matrix->nbobjs + b];
		}
	hwloc_distances_release(machine, matrix);
}
