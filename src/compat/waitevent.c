/*-------------------------------------------------------------------------
 *
 * waitevent.c
 *	  What processes show that they wait for.
 *
 * A worker that is parked has to be told from one that waits, by others of ours, too.  So before 17
 * it shows the name of a lock that nobody takes: only locks' names were a module's to give.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/waitevent.h"
#include "storage/lwlock.h"

#define PARKED "mot_parked"

#if PG_VERSION_NUM >= 170000

static const char *const names[] = {
	[MOT_FOR_CHECKPOINT_WORK] = "mot_checkpoint_worker",
	[MOT_FOR_MAINTENANCE_WORK] = "mot_maintenance",
	[MOT_FOR_LOAD] = "mot_load",
	[MOT_FOR_CHECKPOINT] = "mot_checkpoint_written",
	[MOT_FOR_GATE] = "mot_gate",
	[MOT_FOR_GATE_CLOSE] = "mot_gate_close",
	[MOT_FOR_HELPERS] = "mot_helpers",
	[MOT_FOR_PACE] = "mot_pace",
	[MOT_FOR_ROOM] = "mot_room",
	[MOT_FOR_REPLAY] = "mot_replay",
	[MOT_FOR_COMMIT] = "mot_commit",
	[MOT_FOR_FAIRNESS] = "mot_fairness",
	[MOT_FOR_SHUTDOWN] = "mot_shutdown",
	[MOT_FOR_FILE_READ] = "mot_file_read",
	[MOT_FOR_FILE_WRITE] = "mot_file_write",
	[MOT_FOR_FILE_SYNC] = "mot_file_sync",
	[MOT_FOR_PROCESSOR] = PARKED
};
static uint32 events[lengthof(names)];

/* (here and not when somebody waits first: that may be where no lock may be taken) */
void
MotWaitEventsInit(void)
{
	for (int i = 0; i < lengthof(names); i++)
		events[i] = WaitEventExtensionNew(names[i]);
}

uint32
MotWaitEvent(MotWaitFor what)
{
	return events[what];
}

#else

static uint32 parked;

void
MotWaitEventsInit(void)
{
	parked = PG_WAIT_LWLOCK | GetNamedLWLockTranche(PARKED)->lock.tranche;
}

uint32
MotWaitEvent(MotWaitFor what)
{
	return what == MOT_FOR_PROCESSOR ? parked : PG_WAIT_EXTENSION;
}

#endif
