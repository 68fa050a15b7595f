/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  Where durability is put together: what the module's entry calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "wal/leftout.h"

void
MotWalInit(void)
{
	MotStateInit();
	MotRmgrInit();
	MotLoggerInit();
	MotDurableInit();
	MotBackupInit();
	MotCheckpointInit();
}

/* in shmem_request_hook, once */
void
MotWalShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_apply", 1);
	RequestNamedLWLockTranche("mot_checkpoint", 1);
	RequestAddinShmemSpace(MotStateShmemSize());
	RequestAddinShmemSpace(MotGateShmemSize());
	RequestAddinShmemSpace(MotAsyncShmemSize());
	RequestAddinShmemSpace(MotReplayShmemSize());
	RequestAddinShmemSpace(MotLeftOutShmemSize());
	RequestAddinShmemSpace(MotBackupShmemSize());
}

/* in shmem_startup_hook, and again after a crash */
void
MotWalShmemInit(void)
{
	MotApplyLock = &(GetNamedLWLockTranche("mot_apply"))->lock;
	MotStateShmemInit();
	MotGateShmemInit();
	MotAsyncShmemInit();
	MotReplayShmemInit();
	MotLeftOutShmemInit();
	MotBackupShmemInit();
}
