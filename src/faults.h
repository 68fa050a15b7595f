/*-------------------------------------------------------------------------
 *
 * faults.h
 *	  Named points of commit, checkpoint, load and replay at which a test
 *	  makes a process stop, fail or die.  Any room may have such points.
 *
 * Only in builds with -DMOT_FAULTS.  The setting mot.fault (superuser) is a
 * list "point:action[:nth]", separated by commas; action one of kill (SIGKILL
 * to itself), killall (to the postmaster first), crash (SIGSEGV), error, fatal, sleep
 * (a second), wait (until the file $PGDATA/mot.fault.go exists), log (only
 * tell), skip (MOT_FAULT_SKIPS: leave out what stands there); nth: only the nth
 * time it is reached in this process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_FAULTS_H
#define MOT_FAULTS_H

#ifdef MOT_FAULTS
extern bool MotFaultReached(const char *point);
extern void MotFaultInit(void);
#define MOT_FAULT(point) ((void) MotFaultReached(point))
#define MOT_FAULT_SKIPS(point) MotFaultReached(point)
#else
#define MOT_FAULT(point) ((void) 0)
#define MOT_FAULT_SKIPS(point) false
#define MotFaultInit() ((void) 0)
#endif

#endif							/* MOT_FAULTS_H */
