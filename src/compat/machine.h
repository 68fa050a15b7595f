/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  What the machine, or the container we are in, has to give.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MACHINE_H
#define MOT_MACHINE_H

#include "postgres.h"

/* bytes of memory: the smaller of what is installed and what the control groups allow */
extern uint64 MotMachineMemory(void);
extern uint64 MotMachineHugePages(void);

extern bool MotMachineJoinFence(void);
extern bool MotMachineFence(void);

#endif							/* MOT_MACHINE_H */
