/*-------------------------------------------------------------------------
 *
 * modify.c
 *	  Changing and locking rows of ordinary tables.
 *
 * The server names a row by its tuple id and says with which snapshot it was
 * found.  The version that was found then is what the snapshot sees, unless the id
 * says more (xact/tid.c): what this transaction has made of the row, or has
 * found newest when it locked it.  If somebody has committed a newer one
 * since, the row is locked already when the server is told that it has been
 * updated; it then asks for the lock, gets the newest version, checks it again
 * and comes back with the id that says so.
 *
 * Above READ COMMITTED the relation's writer raises what has to be raised.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/xact.h"
#include "commands/copyfrom_internal.h"
#include "commands/progress.h"
#include "compat/calls.h"
#include "executor/tuptable.h"
#include "faults.h"
#include "pgstat.h"
#include "relation/slot.h"
#include "utils/backend_progress.h"

/* ----------------------------------------------------------------- inserts */

void
MotTableInsert(Relation rel, TupleTableSlot *slot, CommandId cid, MotChangeOptions options,
			   struct BulkInsertStateData *bistate)
{
	mot_session *session = MotSession();
	mot_view	view = {0, cid};
	MotWriter  *writer;
	mot_row    *row;

	/* what the engine does here it does with a snapshot published */
	if (unlikely(mot_snapshot_held(session) == MOT_TS_NONE))
		(void) MotViewFor(NULL);
	MotTableIndexes(rel);
	writer = MotWriterShared(rel, &view, cid);
	slot_getallattrs(slot);
	row = MotWriterInsert(writer, slot->tts_values, slot->tts_isnull);
	MotVersionToTid(session, row, 1, &slot->tts_tid);
	slot->tts_tableOid = RelationGetRelid(rel);
	MotSlotChanged(slot, false);
	pgstat_count_heap_insert(rel, 1);
	if (unlikely(MotAlterShows != InvalidOid))
		pgstat_progress_update_param(PROGRESS_REPACK_HEAP_TUPLES_INSERTED, ++MotAlterRows);
}

/*
 * COPY stores some rows, and then brings each one's keys and queues its triggers,
 * whose conditions may raise errors.  Where there are none, nothing can come before
 * a key that is taken but another one, and it is raised at once.
 */
bool
MotTableRaisesFirst(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	if (MotRunningCopy() == NULL)
		return false;
	for (int i = 0; triggers != NULL && triggers->trig_insert_after_row && i < triggers->numtriggers; i++)
		if (triggers->triggers[i].tgqual != NULL)
			return false;
	return true;
}

void
MotTableMultiInsert(Relation rel, TupleTableSlot **slots, int n, CommandId cid, MotChangeOptions options,
					struct BulkInsertStateData *bistate)
{
	mot_session *session = MotSession();
	mot_view	view = {0, cid};
	CopyFromState copy = MotRunningCopy();
	bool		later = copy != NULL && !MotTableRaisesFirst(rel);
	uint64	   *line = copy != NULL && !later ? &copy->cur_lineno : NULL;
	MotBatch   *batch;
	MotIndex   *index = NULL;
	int			first = 0;

	if (unlikely(mot_snapshot_held(session) == MOT_TS_NONE))
		(void) MotViewFor(NULL);
	MotTableIndexes(rel);

	/* ranks are a row's own, with all its keys */
	if (unlikely(MotRelationGet(rel)->has_ranked))
	{
		for (int i = 0; i < n; i++)
		{
			if (copy != NULL)
				copy->cur_lineno = MotSlotLine(slots[i]);
			MotTableInsert(rel, slots[i], cid, options, bistate);
		}
		return;
	}
	batch = MotBatchBegin(MotWriterShared(rel, &view, cid), MOT_BATCH_INSERT_SLOTS, line);
	for (int i = 0; i < n; i++)
	{
		int64		taken;

		slot_getallattrs(slots[i]);
		/* (COPY puts it back) */
		if (copy != NULL)
			copy->cur_lineno = MotSlotLine(slots[i]);
		(void) MotBatchAdd(batch, slots[i]->tts_values, slots[i]->tts_isnull,
						   line != NULL ? copy->cur_lineno : i);
		if (!MotBatchFull(batch) && i < n - 1)
			continue;

		/* of a key that is taken "later" COPY says the line */
		taken = MotBatchWrite(batch, later ? &index : NULL);
		for (int k = first; k <= (taken >= 0 ? taken : i); k++)
		{
			MotVersionToTid(session, MotBatchRow(batch, k - first), 1, &slots[k]->tts_tid);
			MotSlotChanged(slots[k], false);
		}
		if (taken >= 0)
		{
			MotTableKeyTaken(MotBatchRow(batch, taken - first), index->indexoid);
			break;
		}
		first = i + 1;
	}
	MotBatchEnd(batch);
	pgstat_count_heap_insert(rel, n);
}

/* ------------------------------------------------------------------- locks */

/* A row that is to be changed or locked. */
typedef struct Target
{
	MotRelation *relation;
	mot_session *session;
	MotWriter  *writer;
	mot_row    *row;
	const mot_version *version; /* the one that is meant; when locked, the
								 * newest */
} Target;

/* changes: as the row's id has them.  Who found it by no snapshot learns that it has been deleted since. */
static TM_Result
own_change(const Target *target, unsigned changes, CommandId cid, TM_FailureData *failure)
{
	uint32		command;

	if (mot_row_changes(target->session, target->row, &command) == 0)
		return changes == MOT_TID_LOCKED ? TM_Deleted : TM_Invisible;
	if (command < cid)
		return TM_Invisible;
	/* MERGE asks whether it was this transaction, and this command of it */
	failure->xmax = command == cid ? GetCurrentTransactionId() : GetCurrentTransactionIdIfAny();
	failure->cmax = command;
	return TM_SelfModified;
}

/*
 * found: it has just been found by no snapshot, by its key or by all it has (ON CONFLICT, a
 * subscription's worker), and is the one that is meant only as it was found
 */
static TM_Result
lock_row(Relation rel, Target *target, ItemPointer tid, bool found, Snapshot snapshot, CommandId cid,
		 mot_row_mode mode, MotLockWait wait, TM_FailureData *failure)
{
	unsigned	changes;
	mot_view	view;
	const mot_version *newest;

	target->relation = MotRelationGet(rel);
	target->session = MotSession();
	view = MotTableView(snapshot);
	MotViewTable(target->relation, &view);

	failure->ctid = *tid;
	failure->xmax = InvalidTransactionId;
	failure->cmax = InvalidCommandId;
	failure->traversed = false;

	target->row = MotTidToVersion(target->session, target->relation->table, tid, &changes);
	if (target->row == NULL)
		return TM_Invisible;
	if (found)
	{
		MOT_FAULT("conflict-found");
	}
	if (changes != 0 && changes != MOT_TID_LOCKED)
		target->version = mot_row_after_changes(target->session, &view, target->row, changes);
	else if (changes == MOT_TID_LOCKED)
		target->version = mot_row_newest(target->session, target->row);
	else
		target->version = mot_row_visible(target->session, &view, target->relation->table, target->row);
	if (target->version == NULL)
		return own_change(target, changes, cid, failure);
	if (found && changes == MOT_TID_LOCKED && !MotConflictStands(target->row, target->version))
		return TM_Updated;

	target->writer = MotWriterShared(rel, &view, cid);
	switch (MotWriterLock(target->writer, target->row, target->version, mode, wait, &newest))
	{
		case MOT_LOCKED:
			return TM_Ok;
		case MOT_LOCKED_NEWER:
			target->version = newest;
			MotVersionToTid(target->session, target->row, MOT_TID_LOCKED, &failure->ctid);
			/* the caller looks again, and may find another */
			if (found)
				mot_row_unlock(target->session, target->row);
			return TM_Updated;
		case MOT_LOCK_GONE:
			return TM_Deleted;
		case MOT_LOCK_SELF:
			return own_change(target, changes, cid, failure);
		case MOT_LOCK_WOULD_BLOCK:
			return TM_WouldBlock;
	}
	return TM_Invisible;		/* keep compiler quiet */
}

/* Is the version that is meant the transaction's own, or what a snapshot sees? */
static bool
is_seen(const Target *target, Snapshot snapshot)
{
	mot_view	view;

	if (mot_version_ts(target->version) == 0)
		return true;
	view = MotViewFor(snapshot);
	return mot_version_same(mot_row_visible(target->session, &view, target->relation->table, target->row),
							target->version);
}

TM_Result
MotTableLock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
			 LockTupleMode mode, LockWaitPolicy policy, uint8 flags, TM_FailureData *failure)
{
	static const mot_row_mode modes[] = {
		[LockTupleKeyShare] = MOT_MODE_KEY_SHARE,
		[LockTupleShare] = MOT_MODE_SHARE,
		[LockTupleNoKeyExclusive] = MOT_MODE_NO_KEY_UPDATE,
		[LockTupleExclusive] = MOT_MODE_UPDATE
	};
	MotLockWait wait = policy == LockWaitSkip ? MOT_LOCK_SKIP : policy == LockWaitError ? MOT_LOCK_NOWAIT_ERROR :
	(flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION) != 0 ? MOT_LOCK_WAIT : MOT_LOCK_WAIT_CONFLICT;
	Target		target;
	TM_Result	result = lock_row(rel, &target, tid, flags == 0, snapshot, cid, modes[mode], wait, failure);

	if (result == TM_Updated && (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION) != 0)
	{
		*tid = failure->ctid;
		failure->traversed = true;
		result = TM_Ok;
	}
	/* ON CONFLICT has found what its own command has made */
	if (result == TM_SelfModified && target.version != NULL &&
		mot_version_ts(target.version) == 0 &&
		target.version == mot_row_newest(target.session, target.row))
		result = TM_Invisible;
	if (result == TM_Ok || (result == TM_Invisible && target.version != NULL))
	{
		/* (a subscription's worker gives the slot's own) */
		ItemPointerData locked = *tid;

		MotTableShow(rel, target.row, target.version, 0, slot);
		slot->tts_tid = locked;
		/* only then the server itself asks whose it is */
		if (result == TM_Invisible)
			MotSlotFetched(slot);
		else if (flags == 0)
		{
			/*
			 * It has been found by no snapshot.  Where it only shares its key
			 * (DO SELECT, from 19 on), nothing but this says that the
			 * transaction does not see it so; the server would ask for its
			 * xmin.
			 */
			if (IsolationUsesXactSnapshot() && !is_seen(&target, snapshot))
				MotRaiseStatus(MOT_CONFLICT_CHANGED, rel);
			MotConflictLocked(target.row, cid);
		}
	}
	return result;
}

/* ----------------------------------------------------------------- changes */

static TM_Result
lock_to_change(Relation rel, Target *target, ItemPointer tid, Snapshot snapshot, Snapshot crosscheck,
			   CommandId cid, mot_row_mode mode, bool wait, TM_FailureData *failure)
{
	TM_Result	result = lock_row(rel, target, tid, false, snapshot, cid, mode,
								  wait ? MOT_LOCK_WAIT : MOT_LOCK_SKIP, failure);

	if (result == TM_Invisible)
		elog(ERROR, "attempted to %s invisible tuple", mode == MOT_MODE_UPDATE ? "delete" : "update");
	if (result == TM_WouldBlock)
		return TM_BeingModified;

	/*
	 * a foreign key's action has found the row as it is now: it may change
	 * that only if the transaction's snapshot sees the same
	 */
	if (result == TM_Ok && crosscheck != InvalidSnapshot && !is_seen(target, crosscheck))
		return TM_Updated;
	return result;
}

TM_Result
MotTableDelete(MOT_DELETE_PARAMETERS)
{
	Target		target;
	TM_Result	result;

	result = lock_to_change(rel, &target, tid, snapshot, crosscheck, cid, MOT_MODE_UPDATE, wait, failure);
	if (result != TM_Ok)
		return result;
	MotWriterDelete(target.writer, target.row, target.version, MotDeleteMoves());
	pgstat_count_heap_delete(rel);
	return TM_Ok;
}

TM_Result
MotTableUpdate(MOT_UPDATE_PARAMETERS)
{
	Target		target;
	TM_Result	result;
	uint32		command;

	MotTableIndexes(rel);
	*lockmode = LockTupleNoKeyExclusive;
	*update_indexes = TU_None;
	result = lock_to_change(rel, &target, otid, snapshot, crosscheck, cid, MOT_MODE_CHANGE, wait, failure);
	if (result != TM_Ok)
		return result;
	slot_getallattrs(slot);
	/* keys that are deferrable the server looks at when the row is there */
	if (MotWriterUpdate(target.writer, target.row, target.version, slot->tts_values, slot->tts_isnull))
		*update_indexes = TU_All;
	MotVersionToTid(target.session, target.row, mot_row_changes(target.session, target.row, &command),
					&slot->tts_tid);
	slot->tts_tableOid = RelationGetRelid(rel);
	MotSlotChanged(slot, MotConflictUpdates(target.row, cid));
	MotCountUpdate(rel);
	return TM_Ok;
}
