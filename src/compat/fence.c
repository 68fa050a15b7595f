/*-------------------------------------------------------------------------
 *
 * fence.c
 *	  A barrier in all processes at once, where the kernel has it.
 *
 * A full barrier in every process that has joined, wherever it is: one that runs is
 * interrupted for it, one that does not has had it.  Not everywhere is that to be
 * had (kernels before 4.16, containers that forbid the call).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "compat/fence.h"

bool
MotFenceJoin(void)
{
#if defined(__linux__) && defined(__NR_membarrier)
	return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
#else
	return false;
#endif
}

bool
MotFence(void)
{
#if defined(__linux__) && defined(__NR_membarrier)
	return syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
#else
	return false;
#endif
}
