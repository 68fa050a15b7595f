/*-------------------------------------------------------------------------
 *
 * waitevent.h
 *	  What processes show that they wait for.
 *
 * From PostgreSQL 17 on waits of a module have names (pg_stat_activity, pg_wait_events); before,
 * all of them are "Extension".
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAITEVENT_H
#define MOT_WAITEVENT_H

#include "postgres.h"

#include "utils/wait_event.h"

typedef enum MotWaitFor
{
	MOT_FOR_CHECKPOINT_WORK,	/* the worker: a checkpoint to be written */
	MOT_FOR_MAINTENANCE_WORK,
	MOT_FOR_LOAD,				/* a table's rows */
	MOT_FOR_CHECKPOINT,			/* the one that somebody else is writing */
	MOT_FOR_GATE,				/* commits, while a checkpoint begins */
	MOT_FOR_GATE_CLOSE,			/* a checkpoint, to begin */
	MOT_FOR_HELPERS,			/* who load or write along */
	MOT_FOR_PACE,				/* others are to have processors and disks */
	MOT_FOR_ROOM,				/* memory */
	MOT_FOR_REPLAY,
	MOT_FOR_COMMIT,				/* of another transaction, which waits itself */
	MOT_FOR_FAIRNESS,			/* others are to begin before */
	MOT_FOR_SHUTDOWN,			/* the last sessions; or to try the last
								 * checkpoint again */
	MOT_FOR_FILE_READ,
	MOT_FOR_FILE_WRITE,
	MOT_FOR_FILE_SYNC,
	MOT_FOR_PROCESSOR,			/* parked */
} MotWaitFor;

/* in shmem_startup_hook */
extern void MotWaitEventsInit(void);

extern uint32 MotWaitEvent(MotWaitFor what);

#endif							/* MOT_WAITEVENT_H */
