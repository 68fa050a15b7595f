/*-------------------------------------------------------------------------
 *
 * fence.h
 *	  A barrier in all processes at once, where the kernel has it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_FENCE_H
#define MOT_FENCE_H

#include "postgres.h"

extern bool MotFenceJoin(void);
extern bool MotFence(void);

#endif							/* MOT_FENCE_H */
