/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  The replication slot that keeps the log back to the newest checkpoint.
 *
 * Checkpoints of ours are in step with the server's, so that the log from
 * ours on is there anyway.  What the slot adds: the server's checkpoints at
 * shutdown and at the end of recovery, which wait for nobody, and the time
 * while the worker is not there.  Where a slot cannot be had (wal_level =
 * minimal, none free) or has been taken away by somebody who did not know it,
 * everything works without; the server's checkpoints then wait for ours
 * however long that takes.
 *
 * The slot is acquired only to be moved, so that it is nobody's in between
 * and the worker is not the one to be terminated if it has to be invalidated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xlog.h"
#include "compat/calls.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "wal/checkpoint/checkpoint.h"

#define SLOT_NAME "mot"

static bool complained = false;

/* once, until it works again */
static void
complain(const char *why)
{
	if (!complained)
		ereport(LOG,
				(errmsg("replication slot \"%s\" of memory-optimized tables is not available: %s",
						SLOT_NAME, why),
				 errdetail("Checkpoints of the server wait for those of memory-optimized tables, even if they fail.")));
	complained = true;
}

bool
MotSlotUsable(void)
{
	return MotSlotKeeps(PG_UINT64_MAX);
}

bool
MotSlotKeeps(XLogRecPtr lsn)
{
	ReplicationSlot *slot;
	bool		usable = false;

	if (max_replication_slots == 0 || max_slot_wal_keep_size_mb >= 0)
		return false;
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(SLOT_NAME, false);
	if (slot != NULL)
	{
		SpinLockAcquire(&slot->mutex);
		usable = !OidIsValid(slot->data.database) && slot->data.persistency == RS_PERSISTENT &&
			!XLogRecPtrIsInvalid(slot->data.restart_lsn) && slot->data.restart_lsn <= lsn;
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return usable;
}

static bool
create_slot(void)
{
	int			used = 0;

	if (wal_level < WAL_LEVEL_REPLICA)
	{
		complain("wal_level is \"minimal\"");
		return false;
	}
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
		if (ReplicationSlotCtl->replication_slots[i].in_use)
			used++;
	LWLockRelease(ReplicationSlotControlLock);
	if (used == max_replication_slots)
	{
		complain("max_replication_slots are in use");
		return false;
	}
	MOT_FAULT("slot-create");
	MotSlotCreate(SLOT_NAME);
	ReplicationSlotReserveWal();
	ReplicationSlotMarkDirty();
	ReplicationSlotPersist();
	MOT_FAULT("slot-created");
	return true;
}

/* After a final checkpoint no log is needed: the server may go on without us, or without slots. */
void
MotSlotDrop(void)
{
	MemoryContext oldcxt = CurrentMemoryContext;

	if (max_replication_slots == 0)
		return;
	PG_TRY();
	{
		/* cut short or not, but ours */
		ReplicationSlot *slot = SearchNamedReplicationSlot(SLOT_NAME, true);

		if (slot != NULL && !OidIsValid(slot->data.database))
			ReplicationSlotDrop(SLOT_NAME, true);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcxt);
		EmitErrorReport();
		FlushErrorState();
		LWLockReleaseAll();
	}
	PG_END_TRY();
}

static void
hold_slot(int code, Datum arg)
{
	ReplicationSlot *slot = code == 0 ? SearchNamedReplicationSlot(SLOT_NAME, true) : NULL;

	if (slot == NULL)
		return;
	SpinLockAcquire(&slot->mutex);
	if (!MotSlotInUse(slot))
		MotSlotMark(slot);
	SpinLockRelease(&slot->mutex);
}

/*
 * Between the end of the server's recovery and the moment when the worker is
 * armed nothing but the slot keeps the log: it is marked as in use, by the
 * process that has recovered, which is about to end.  As the very last that
 * does: it drops all slots that it finds to be its own, before that.  (So it is
 * not let go of before that process has gone.)
 */
void
MotSlotHold(void)
{
	on_shmem_exit(hold_slot, (Datum) 0);
}

void
MotSlotLetGo(void)
{
	pid_t		holder = MotStateReplayPid();
	ReplicationSlot *slot;

	if (holder == 0 || max_replication_slots == 0 || kill(holder, 0) == 0)
		return;
	slot = SearchNamedReplicationSlot(SLOT_NAME, true);
	if (slot != NULL)
	{
		SpinLockAcquire(&slot->mutex);
		if (MotSlotIsMarkedBy(slot, holder))
			MotSlotUnmark(slot);
		SpinLockRelease(&slot->mutex);
		ConditionVariableBroadcast(&slot->active_cv);
	}
	MotStateForgetReplayPid();
}

/*
 * The log is to be kept from lsn on.  Failing at that is no error: see above.
 * The caller is in a transaction, or in none that matters: errors on the way
 * (a full disk, a race for the last slot) are caught here.
 */
void
MotSlotKeep(XLogRecPtr lsn)
{
	MemoryContext oldcxt = CurrentMemoryContext;

	if (max_replication_slots == 0)
	{
		complain("max_replication_slots is 0");
		return;
	}
	PG_TRY();
	{
		ReplicationSlot *slot = SearchNamedReplicationSlot(SLOT_NAME, true);
		bool		ready = true;

		if (slot != NULL && OidIsValid(slot->data.database))
		{
			complain("a logical slot has its name");
			ready = false;
		}
		else if (slot != NULL && MotSlotInUse(slot))
		{
			complain("another process uses it");
			ready = false;
		}
		else if (slot != NULL && MotSlotIsInvalid(slot))
		{
			/* of no use any more */
			ReplicationSlotDrop(SLOT_NAME, true);
			slot = NULL;
		}
		if (ready && slot == NULL)
			ready = create_slot();
		else if (ready)
			MotSlotAcquire(SLOT_NAME);
		if (ready)
		{
			SpinLockAcquire(&MyReplicationSlot->mutex);
			MyReplicationSlot->data.restart_lsn = lsn;
			SpinLockRelease(&MyReplicationSlot->mutex);
			ReplicationSlotMarkDirty();
			MOT_FAULT("slot-move");
			ReplicationSlotSave();
			ReplicationSlotsComputeRequiredLSN();
			ReplicationSlotRelease();
			complained = false;
		}
	}
	PG_CATCH();
	{
		ErrorData  *edata = MotErrorTake(oldcxt);

		LWLockReleaseAll();
		if (MyReplicationSlot != NULL)
			ReplicationSlotRelease();
		complain(edata->message);
		FreeErrorData(edata);
	}
	PG_END_TRY();
}
