/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  Where durability is put together: what the module's entry calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/shmem.h"
#include "storage/lwlock.h"
#include "wal/internal.h"

void
MotWalInit(void)
{
	MotRmgrInit();
}

/* in shmem_request_hook, once */
void
MotWalShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_apply", 1);
	RequestAddinShmemSpace(MotWalShmemSize());
}

Size
MotWalShmemSize(void)
{
	return MotReplayShmemSize();
}

void
MotWalShmemInit(void)
{
	MotApplyLock = &(GetNamedLWLockTranche("mot_apply"))->lock;
	MotReplayShmemInit();
}
