/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  What the machine, or the container we are in, has to give, at the moment.
 *
 * picture.h is the page of what is known and of what follows from it.  Here is the
 * part that looks and acts:
 *
 *	machine.c	reads the counters once a second, by whoever comes by (the
 *				maintenance worker; who leads the loading of tables), into shared
 *				memory, and judges them
 *	place.c		how many processes of ours are to work at a time, and which CPUs
 *				they keep to: a preference, given back when the load changes
 *	functions.c	what SQL sees
 *
 * With mot.adviser = off nothing is read, all CPUs count as free, and nobody is
 * placed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MACHINE_H
#define MOT_MACHINE_H

#include "machine/picture.h"

extern bool mot_adviser;

/* called once by _PG_init, before the memory is sized, and by the hooks for shared memory */
extern void MotMachineInit(void);
extern void MotMachineShmemRequest(void);
extern void MotMachineShmemInit(void);

/* bytes of memory: the smaller of what is installed and what the control groups allow */
extern uint64 MotMachineMemory(void);
extern uint64 MotMachineHugePages(void);

/* Read the counters, if the last reading is a second old; to be called often. */
extern void MotMachineSample(void);

/*
 * Processors that others do not use, x 100, within the control group's limit: as of the
 * last reading.  Processors that we may use at all.  A load of a word each.
 */
extern int	MotMachineFree(void);
extern int	MotMachineCpus(void);

/* How many processes of ours find a processor each; at least 1. */
extern int	MotMachineWorkers(void);

/*
 * The caller, number n of processes that work together, keeps to CPUs that others do not
 * use: those of one node, which takes turns, so that memory they touch is spread over
 * nodes.  MotMachineStay, to be called often, sees to it that this remains so;
 * MotMachineLeave undoes it.
 */
extern void MotMachinePlace(int n);
extern void MotMachineStay(void);
extern void MotMachineLeave(void);

/* what is known, palloc'd */
typedef struct MotMachine
{
	const mot_picture *picture;
	mot_usage  *usage;
	mot_judgement judgement;
} MotMachine;

extern MotMachine *MotMachineLook(void);

/* tests put another one in its place, for the session */
extern MotMachine *MotMachineInstead;

#endif							/* MOT_MACHINE_H */
