/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Where server versions differ: processes, settings, statistics.
 *
 * PG_VERSION_NUM appears in this directory and nowhere else (tools/lint sees to
 * that), so that who calls does not know which version it is.  Others here: names.h and
 * calls.h (the same by another name, or with other arguments), foreach.h (loops), acl.h, tableam.h,
 * predicate.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COMPAT_H
#define MOT_COMPAT_H

#include "postgres.h"

#include <unistd.h>

#include "access/twophase.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "replication/logicallauncher.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#if PG_VERSION_NUM < 170000
#include "storage/backendid.h"
#endif

#if PG_VERSION_NUM < 150000
#error "mot needs PostgreSQL 15 or later"
#endif

/*
 * How many processes can have a PGPROC at a time (prepared transactions'
 * excepted, which have no process), and this process's number among them.
 * Known from shmem_request_hook on.
 */
#define MotProcessSlots() (MaxBackends + NUM_AUXILIARY_PROCS)

/* slots of the engine: behind those of processes, one for each prepared transaction */
#define MotSlots() (MotProcessSlots() + max_prepared_xacts)

#if PG_VERSION_NUM >= 170000
#define MotMySlot() ((unsigned) MyProcNumber)
#else
#define MotMySlot() ((unsigned) MyProc->pgprocno)
#endif

/* the checkpointer's process id; 0: there is none */
static inline int
MotCheckpointerPid(void)
{
#if PG_VERSION_NUM >= 180000
	ProcNumber	number = ProcGlobal->checkpointerProc;

	return number == INVALID_PROC_NUMBER ? 0 : GetPGProcByNumber(number)->pid;
#else
	return ProcGlobal->checkpointerLatch == NULL ? 0 : ProcGlobal->checkpointerLatch->owner_pid;
#endif
}

/* is a standby told by promote_trigger_file to be promoted? */
static inline bool
MotPromoteFileExists(void)
{
#if PG_VERSION_NUM < 160000
	return PromoteTriggerFile != NULL && PromoteTriggerFile[0] != '\0' && access(PromoteTriggerFile, F_OK) == 0;
#else
	return false;
#endif
}

/*
 * A virtual transaction id as one word, which the engine keeps with the
 * transaction and gives to whoever waits for it.
 */
static inline uint64
MotMyVirtualXact(void)
{
#if PG_VERSION_NUM >= 170000
	return (uint64) MyProcNumber << 32 | MyProc->vxid.lxid;
#else
	return (uint64) (uint32) MyBackendId << 32 | MyProc->lxid;
#endif
}

static inline VirtualTransactionId
MotUnpackVirtualXact(uint64 word)
{
	VirtualTransactionId vxid;

#if PG_VERSION_NUM >= 170000
	vxid.procNumber = (ProcNumber) (word >> 32);
#else
	vxid.backendId = (BackendId) (word >> 32);
#endif
	vxid.localTransactionId = (LocalTransactionId) word;
	return vxid;
}

static inline uint64
MotPackVirtualXact(VirtualTransactionId vxid)
{
#if PG_VERSION_NUM >= 170000
	return (uint64) vxid.procNumber << 32 | vxid.localTransactionId;
#else
	return (uint64) (uint32) vxid.backendId << 32 | vxid.localTransactionId;
#endif
}

/* who leads a process that applies a subscription's changes in parallel, or its own id */
static inline int
MotApplyLeader(int pid)
{
#if PG_VERSION_NUM >= 160000
	int			leader = GetLeaderApplyWorkerPid(pid);

	return leader > 0 ? leader : pid;
#else
	return pid;
#endif
}

/* what a setting's check hook hands to the one that assigns, and the server frees */
static inline void *
MotSettingExtra(size_t size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

/* NULL: there is none of that name */
static inline struct config_generic *
MotSettingFind(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return find_option(name, false, true, LOG);
#else
	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (strcmp(get_guc_variables()[i]->name, name) == 0)
			return get_guc_variables()[i];
	return NULL;
#endif
}

#endif							/* MOT_COMPAT_H */
