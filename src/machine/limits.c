/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  What the control groups that we are in allow, and how long work waits.
 *
 * In a container the machine's memory and processors are not ours: a control group's
 * limit is what the kernel kills, or stops, for.  A limit may be set at any level
 * above our own group, so every level up to the root is asked, in version 2 and in
 * version 1.  Files that are not there or not readable count as "no limit".
 *
 * (Which CPUs the cpuset has the kernel tells by our own affinity.)
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "machine/picture.h"

#define GROUPS "/proc/self/cgroup"
#define CGROUP_ROOT "/sys/fs/cgroup"
#define LENGTH 4096				/* of a line, and about of a path */

/* a group's directory in one of the hierarchies */
typedef struct Level
{
	const char *root;
	const char *controller;		/* of version 1; "": version 2 */
	char		group[LENGTH];
} Level;

static void ask(mot_limits *limits, const Level *level, const char *controllers);
static void ask_cpus(mot_limits *limits, const Level *level);
static void least(uint64_t *limit, const Level *level, const char *file);
static bool first_line(char *line, size_t size, const Level *level, const char *controller, const char *file);
static double used_by(const Level *level);
static bool names(const char *list, const char *controller);

void
mot_limits_read(mot_limits *limits, const char *root)
{
	char		line[LENGTH];
	FILE	   *groups;

	limits->memory = limits->huge = UINT64_MAX;
	limits->cpus = 0;
	limits->used = -1;
	snprintf(line, sizeof(line), "%s" GROUPS, root);
	groups = fopen(line, "r");
	if (groups == NULL)
		return;

	/* hierarchy:controllers:path; version 2 has number 0 and no controllers */
	while (fgets(line, sizeof(line), groups) != NULL)
	{
		static const char *const controllers[] = {"memory", "hugetlb", "cpu"};
		char	   *list = strchr(line, ':');
		char	   *path = list ? strchr(list + 1, ':') : NULL;
		Level		level = {.root = root};

		if (path == NULL)
			continue;
		*list++ = '\0';
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		for (unsigned i = 0; i < 3; i++)
		{
			if (list[0] != '\0' && !names(list, controllers[i]))
				continue;
			level.controller = list[0] == '\0' ? "" : controllers[i];
			snprintf(level.group, sizeof(level.group), "%s", path);
			ask(limits, &level, controllers[i]);
		}
	}
	fclose(groups);
}

/* of a group and of all groups above it */
static void
ask(mot_limits *limits, const Level *from, const char *controller)
{
	Level		level = *from;
	bool		second = level.controller[0] == '\0';

	for (;;)
	{
		char	   *slash;

		if (controller[0] == 'm')
			least(&limits->memory, &level, second ? "memory.max" : "memory.limit_in_bytes");
		else if (controller[0] == 'h')
			least(&limits->huge, &level, second ? "hugetlb.2MB.max" : "hugetlb.2MB.limit_in_bytes");
		else
			ask_cpus(limits, &level);
		slash = strrchr(level.group, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
}

/* "max" or a number of bytes */
static void
least(uint64_t *limit, const Level *level, const char *file)
{
	char		line[64];
	unsigned long long bytes;

	if (first_line(line, sizeof(line), level, level->controller, file) &&
		sscanf(line, "%llu", &bytes) == 1 && bytes < *limit)
		*limit = bytes;
}

/* so many microseconds of processors in such a period */
static void
ask_cpus(mot_limits *limits, const Level *level)
{
	char		line[64];
	double		quota,
				period = 0;

	if (level->controller[0] == '\0')
	{
		if (!first_line(line, sizeof(line), level, "", "cpu.max") ||
			sscanf(line, "%lf %lf", &quota, &period) != 2)
			return;
	}
	else if (!first_line(line, sizeof(line), level, "cpu", "cpu.cfs_quota_us") ||
			 sscanf(line, "%lf", &quota) != 1 ||
			 !first_line(line, sizeof(line), level, "cpu", "cpu.cfs_period_us") ||
			 sscanf(line, "%lf", &period) != 1)
		return;
	if (quota <= 0 || period <= 0 || (limits->cpus > 0 && quota / period >= limits->cpus))
		return;
	limits->cpus = quota / period;
	limits->used = used_by(level);
}

static double
used_by(const Level *level)
{
	char		line[64];
	double		used;

	/* (it is the first line of cpu.stat) */
	if (level->controller[0] == '\0')
		return first_line(line, sizeof(line), level, "", "cpu.stat") &&
			sscanf(line, "usage_usec %lf", &used) == 1 ? used / 1e6 : -1;
	return first_line(line, sizeof(line), level, "cpuacct", "cpuacct.usage") &&
		sscanf(line, "%lf", &used) == 1 ? used / 1e9 : -1;
}

static bool
first_line(char *line, size_t size, const Level *level, const char *controller, const char *file)
{
	char		path[2 * LENGTH];
	FILE	   *f;
	bool		there;

	snprintf(path, sizeof(path), "%s" CGROUP_ROOT "/%s%s/%s", level->root, controller, level->group, file);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	there = fgets(line, (int) size, f) != NULL;
	fclose(f);
	return there;
}

/* "cpu" is not "cpuset" */
static bool
names(const char *list, const char *controller)
{
	size_t		len = strlen(controller);

	for (; list != NULL; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, controller, len) == 0 && (list[len] == ',' || list[len] == '\0'))
			return true;
	return false;
}

/* "some avg10=2.54 avg60=..." */
double
mot_pressure_read(const char *what, const char *root)
{
	char		path[LENGTH];
	double		part = -1;
	FILE	   *f;

	snprintf(path, sizeof(path), "%s/proc/pressure/%s", root, what);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	if (fscanf(f, "some avg10=%lf", &part) == 1)
		part /= 100;
	fclose(f);
	return part;
}
