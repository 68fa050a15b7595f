/*-------------------------------------------------------------------------
 *
 * conflict.c
 *	  INSERT ... ON CONFLICT.
 *
 * The server plans and prepares the clause as for a heap table, but its
 * executor leaves the whole of an insert into a foreign table to the wrapper.
 * So what ExecInsert and ExecOnConflictUpdate do is done here: insert unless
 * an arbiter index has the key; else lock the row that has it and update it.
 *
 * A row that turns out to be a duplicate has been stored for nothing.  So where the last one was,
 * the key is looked up first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "compat/calls.h"
#include "compat/returning.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "faults.h"
#include "fdw/fdw.h"
#include "miscadmin.h"

/*
 * A transaction with one snapshot must not act on a row that this does not
 * show it (unless it is its own).
 */
static void
check_visible(MotModify *modify, EState *estate, mot_row *row, const mot_version *version)
{
	mot_view	view;

	if (!IsolationUsesXactSnapshot() || version == NULL || mot_version_ts(version) == 0)
		return;
	view = MotViewFor(estate->es_snapshot);
	MotViewTable(modify->relation, &view);
	if (!mot_version_same(mot_row_visible(modify->session, &view, modify->relation->table, row), version))
		MotRaiseStatus(MOT_CONFLICT_CHANGED, NULL);
}

/*
 * A row that is not changed in the end stays locked all the same.  (Above READ COMMITTED one that is
 * to be changed is locked with the change only.)
 */
static void
hold_unchanged(MotModify *modify, mot_row *row, const mot_version *current)
{
	const mot_version *newest;

	if (IsolationUsesXactSnapshot())
		(void) MotWriterLock(modify->writer, row, current, MOT_MODE_NO_KEY_UPDATE, MOT_LOCK_WAIT_CONFLICT, &newest);
}

/*
 * The new values written over a copy of the row.  False: that is not possible, and "slot" has the
 * new row.
 */
static bool
patch_existing(MotModify *modify, EState *estate, mot_row *row, const mot_version *current, TupleTableSlot *slot)
{
	TupleTableSlot *assigned = ExecProject(modify->assign);
	bool		possible = true;

	for (int i = 0; i < modify->nassigned; i++)
		possible &= !assigned->tts_isnull[i] || !modify->not_null[i];
	if (likely(possible))
	{
		MotWithin(GetPerTupleMemoryContext(estate),
				  possible = MotWriterPatch(modify->writer, row, current, modify->patch,
											assigned->tts_values, assigned->tts_isnull));
		if (likely(possible))
			return true;
	}
	MotSlotStore(slot, current);
	for (int i = 0; i < modify->nassigned; i++)
	{
		slot->tts_values[modify->assigned[i] - 1] = assigned->tts_values[i];
		slot->tts_isnull[modify->assigned[i] - 1] = assigned->tts_isnull[i];
	}
	return false;
}

/*
 * DO UPDATE of a locked row whose newest version is "current".  The result is
 * what ExecForeignInsert returns.
 */
static TupleTableSlot *
update_existing(MotModify *modify, EState *estate, ResultRelInfo *rinfo,
				mot_row *row, const mot_version *current, TupleTableSlot *excluded)
{
	ModifyTableState *mtstate = modify->mtstate;
	ExprContext *econtext = mtstate->ps.ps_ExprContext;
	OnConflictActionState *onconfl = rinfo->ri_onConflict;
	TupleTableSlot *existing = onconfl->oc_Existing;
	TupleTableSlot *slot = onconfl->oc_ProjSlot;
	TriggerDesc *triggers = modify->triggers;
	HeapTuple	oldtuple = NULL;
	MemoryContext oldcxt;

	if (modify->patch != NULL)
		MotSlotShow(existing, current);
	else
		MotSlotStore(existing, current);
	existing->tts_tableOid = modify->relation->relid;
	MotRowToTid(modify->session, row, &existing->tts_tid);

	econtext->ecxt_scantuple = existing;
	econtext->ecxt_innertuple = excluded;
	econtext->ecxt_outertuple = NULL;
	if (!ExecQual(onconfl->oc_WhereClause, econtext))
	{
		hold_unchanged(modify, row, current);
		InstrCountFiltered1(&mtstate->ps, 1);
		return NULL;
	}
	if (rinfo->ri_WithCheckOptions != NIL)
		ExecWithCheckOptions(WCO_RLS_CONFLICT_CHECK, rinfo, existing, estate);
	if (modify->patch == NULL)
		ExecProject(onconfl->oc_ProjInfo);
	else if (patch_existing(modify, estate, row, current, slot))
		return slot;
	slot->tts_tableOid = modify->relation->relid;

	oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	if (triggers && (triggers->trig_update_before_row || triggers->trig_update_after_row))
	{
		oldtuple = ExecCopySlotHeapTuple(existing);
		oldtuple->t_tableOid = modify->relation->relid;
	}
	if (triggers && triggers->trig_update_before_row)
	{
		const mot_version *newest;

		MemoryContextSwitchTo(oldcxt);
		ExecMaterializeSlot(slot);
		if (!MotExecBRUpdateTriggers(estate, &mtstate->mt_epqstate, rinfo, oldtuple, slot))
		{
			hold_unchanged(modify, row, current);
			return NULL;
		}
		if (MotWriterLock(modify->writer, row, current, MOT_MODE_CHANGE, MOT_LOCK_WAIT_CONFLICT,
						  &newest) != MOT_LOCKED)
			MotRaiseOwnChange(false);
		MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	}

	if (rinfo->ri_RelationDesc->rd_att->constr &&
		rinfo->ri_RelationDesc->rd_att->constr->has_generated_stored)
		ExecComputeStoredGenerated(rinfo, estate, slot, CMD_UPDATE);
	MotCheckRow(rinfo, slot, estate);
	slot_getallattrs(slot);
	MotReturningOld(rinfo, existing);
	MotWriterUpdate(modify->writer, row, current, slot->tts_values, slot->tts_isnull);
	MotRowToTid(modify->session, row, &slot->tts_tid);
	MemoryContextSwitchTo(oldcxt);

	/* the caller would now fire the INSERT triggers */
	if (triggers)
	{
		if (triggers->trig_update_after_row)
			ExecARUpdateTriggers(estate, rinfo, NULL, NULL, NULL, oldtuple, slot, NIL,
								 mtstate->mt_oc_transition_capture, false);
		MotHideAfterTriggers(modify, rinfo, true);
	}
	return slot;
}

TupleTableSlot *
MotInsertOnConflict(MotModify *modify, EState *estate, ResultRelInfo *rinfo,
					TupleTableSlot *slot)
{
	MemoryContext oldcxt;
	mot_row    *row;
	mot_row    *conflict;
	mot_ts		conflict_ts;
	MotIndex   *index;
	const mot_version *current;
	const mot_version *newest;
	bool		looks = modify->duplicates && modify->conflict == ONCONFLICT_UPDATE;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();

		oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
		slot_getallattrs(slot);
		row = NULL;
		conflict = !looks ? NULL : MotWriterFind(modify->writer, rinfo->ri_onConflictArbiterIndexes,
												 slot->tts_values, slot->tts_isnull, &conflict_ts);
		looks = false;
		if (conflict == NULL)
			row = MotWriterInsertOrFind(modify->writer, rinfo->ri_onConflictArbiterIndexes,
										slot->tts_values, slot->tts_isnull, &conflict, &conflict_ts, &index);
		modify->duplicates = row == NULL;
		MemoryContextSwitchTo(oldcxt);
		if (row != NULL)
		{
			MotRowToTid(modify->session, row, &slot->tts_tid);
			return slot;
		}

		MOT_FAULT("conflict-found");
		current = mot_row_newest(modify->session, conflict);
		if (modify->conflict == ONCONFLICT_NOTHING)
		{
			check_visible(modify, estate, conflict, current);
			InstrCountTuples2(&modify->mtstate->ps, 1);
			return NULL;
		}
		/* deleted meanwhile, or changed: it may have another key */
		if (current == NULL || mot_version_ts(current) != conflict_ts)
			continue;

		switch (MotWriterLock(modify->writer, conflict, current, MOT_MODE_CHANGE, MOT_LOCK_WAIT_CONFLICT, &newest))
		{
			case MOT_LOCKED:
				check_visible(modify, estate, conflict, current);
				slot = update_existing(modify, estate, rinfo, conflict, current, slot);
				InstrCountTuples2(&modify->mtstate->ps, 1);
				return slot;
			case MOT_LOCKED_NEWER:
				/* the newer version may have another key: begin anew */
				mot_row_unlock(modify->session, conflict);
				break;
			case MOT_LOCK_SELF:
				ereport(ERROR,
						(errcode(ERRCODE_CARDINALITY_VIOLATION),
						 errmsg("%s command cannot affect row a second time", "ON CONFLICT DO UPDATE"),
						 errhint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")));
				break;
			case MOT_LOCK_GONE:
			case MOT_LOCK_WOULD_BLOCK:
				break;
		}
	}
}
