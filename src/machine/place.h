/*-------------------------------------------------------------------------
 *
 * place.h
 *	  Between machine.c and place.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MACHINE_PLACE_H
#define MOT_MACHINE_PLACE_H

/* another number if some CPU has become usable, or is no longer; 0: there is nothing to go by */
extern uint32 MotMachineChanges(void);

/* the machine that is there, whatever a test has put in its place */
extern MotMachine *MotMachineHere(void);

#endif							/* MOT_MACHINE_PLACE_H */
