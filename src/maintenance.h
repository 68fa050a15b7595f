/*-------------------------------------------------------------------------
 *
 * maintenance.h
 *	  The module's background workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MAINTENANCE_H
#define MOT_MAINTENANCE_H

#include "compat/waitevent.h"
#include "postmaster/bgworker.h"

/* a worker that runs this function of the module */
extern void MotDescribeWorker(BackgroundWorker *worker, const char *name, const char *main,
							  BgWorkerStartTime start, int restart);

/* registers a worker that runs this function of the module */
extern void MotRegisterWorker(const char *name, const char *main, BgWorkerStartTime start, int restart);

/* so many milliseconds, or until the latch is set */
extern void MotNap(long ms, MotWaitFor what);

#endif							/* MOT_MAINTENANCE_H */
