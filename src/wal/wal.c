/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  Where durability is put together: what the module's entry calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "maintenance.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "wal/replay/leftout.h"
#include "wal/recovery/spool.h"

static const MotShmem *const shmem[] = {
	&MotStateShmem, &MotGateShmem, &MotAsyncShmem, &MotReplayShmem, &MotLeftOutShmem, &MotBackupShmem, NULL
};

void
MotWalInit(void)
{
	MotStateInit();
	MotRmgrInit();
	MotLoggerInit();
	MotDurableInit();
	MotBackupInit();
	MotRegisterWorker("mot checkpointer", MOT_CHECKPOINT_MAIN, BgWorkerStart_ConsistentState, 1);
}

/* in shmem_request_hook, once */
void
MotWalShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_apply", 1);
	RequestNamedLWLockTranche("mot_checkpoint", 1);
	MotShmemRequest(shmem);
}

/* in shmem_startup_hook, and again after a crash */
void
MotWalShmemInit(void)
{
	MotApplyLock = &(GetNamedLWLockTranche("mot_apply"))->lock;
	MotStatLock = &(GetNamedLWLockTranche("mot_checkpoint"))->lock;
	MotShmemInit(shmem);
	if (!IsUnderPostmaster)
		MotStandbyLookForWorker();
}
