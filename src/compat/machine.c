/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  What the machine, or the container we are in, has to give.
 *
 * In a container the machine's memory is not ours: a control group's limit
 * is what the kernel kills for.  A limit may be set at any level above our
 * own group, so every level up to the root is asked.  Files that are not
 * there or not readable count as "no limit".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "compat/machine.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static uint64 control_limit(const char *controller, const char *file2, const char *file1);
static uint64 read_limit(const char *path);
static uint64 group_limit(const char *root, const char *group, const char *file);

/* the memory there is, for all processes of our control group */
uint64
MotMachineMemory(void)
{
	uint64		memory = (uint64) sysconf(_SC_PHYS_PAGES) * (uint64) sysconf(_SC_PAGESIZE);

	return Min(memory, control_limit("memory", "memory.max", "memory.limit_in_bytes"));
}

/*
 * Bytes in huge pages of 2 MB that our control group may have; what there is
 * of them is another matter.  Who touches one beyond that is killed, though
 * it was mapped without complaint.
 */
uint64
MotMachineHugePages(void)
{
	return control_limit("hugetlb", "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes");
}

/* a limit of our control group, by its names in version 2 and in version 1 */
static uint64
control_limit(const char *controller, const char *file2, const char *file1)
{
	uint64		limit = PG_UINT64_MAX;
	char		line[MAXPGPATH];
	char		root[64];
	FILE	   *groups = fopen("/proc/self/cgroup", "r");

	if (groups == NULL)
		return limit;
	snprintf(root, sizeof(root), "%s/%s", CGROUP_ROOT, controller);

	/* hierarchy:controllers:path; version 2 has number 0 and no controllers */
	while (fgets(line, sizeof(line), groups) != NULL)
	{
		char	   *controllers = strchr(line, ':');
		char	   *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (group == NULL)
			continue;
		*group++ = '\0';
		controllers++;
		group[strcspn(group, "\n")] = '\0';

		if (controllers[0] == '\0')
			limit = Min(limit, group_limit(CGROUP_ROOT, group, file2));
		else if (strstr(controllers, controller) != NULL)
			limit = Min(limit, group_limit(root, group, file1));
	}
	fclose(groups);
	return limit;
}

/* the smallest limit of a group and of all groups above it */
static uint64
group_limit(const char *root, const char *group, const char *file)
{
	char		level[MAXPGPATH];
	char		path[3 * MAXPGPATH];
	uint64		limit = PG_UINT64_MAX;

	strlcpy(level, group, sizeof(level));
	for (;;)
	{
		char	   *slash;

		snprintf(path, sizeof(path), "%s%s/%s", root, level, file);
		limit = Min(limit, read_limit(path));
		slash = strrchr(level, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	return limit;
}

/* "max" or a number of bytes */
static uint64
read_limit(const char *path)
{
	FILE	   *file = fopen(path, "r");
	unsigned long long bytes;
	uint64		limit = PG_UINT64_MAX;

	if (file == NULL)
		return limit;
	if (fscanf(file, "%llu", &bytes) == 1)
		limit = bytes;
	fclose(file);
	return limit;
}

/*
 * A full barrier in every process that has joined, wherever it is: one that runs is
 * interrupted for it, one that does not has had it.  Not everywhere is that to be
 * had (kernels before 4.16, containers that forbid the call).
 */
bool
MotMachineJoinFence(void)
{
#if defined(__linux__) && defined(__NR_membarrier)
	return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
#else
	return false;
#endif
}

bool
MotMachineFence(void)
{
#if defined(__linux__) && defined(__NR_membarrier)
	return syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
#else
	return false;
#endif
}
