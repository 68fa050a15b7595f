/*-------------------------------------------------------------------------
 *
 * faults.h
 *	  Named points of commit, checkpoint, load and replay at which a test
 *	  makes a process stop, fail or die.
 *
 * Only in builds with -DMOT_FAULTS.  The setting mot.fault (superuser) is a
 * list "point:action[:nth]", action one of kill (SIGKILL to itself), error,
 * sleep (a second), wait (until the setting or the file
 * $PGDATA/mot.fault.go says otherwise); nth: only the nth time it is reached
 * in this process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_FAULTS_H
#define MOT_WAL_FAULTS_H

#ifdef MOT_FAULTS
extern void MotFaultReached(const char *point);
extern void MotFaultInit(void);
#define MOT_FAULT(point) MotFaultReached(point)
#else
#define MOT_FAULT(point) ((void) 0)
#define MotFaultInit() ((void) 0)
#endif

#endif							/* MOT_WAL_FAULTS_H */
