/*-------------------------------------------------------------------------
 *
 * modify.c
 *	  INSERT, UPDATE and DELETE row by row, below the server's ModifyTable.
 *
 * The server computes new rows and fires triggers; rows are locked, checked
 * and written here.  A row that somebody else changed after our snapshot is
 * checked again on its newest version, as the server does for heap tables:
 * EvalPlanQual runs the plan once more with that version in the row's place.
 *
 * Row triggers need one thing more: they must see the newest version, and run
 * once.  So when an UPDATE or DELETE with row triggers has no join, its scan
 * locks the rows as it finds them (MOT_PLAN_LOCK); with a join, they are locked
 * as they come out of it (joined.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "compat/calls.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "fdw/fdw.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

static void set_conflict(MotModify *modify, const ModifyTable *plan, ResultRelInfo *rinfo);
static void keep_plan_rows(ModifyTableState *mtstate, ResultRelInfo *rinfo);

void
MotAddForeignUpdateTargets(PlannerInfo *root, Index rtindex,
						   RangeTblEntry *target_rte, Relation target_relation)
{
	Var		   *var = makeVar(rtindex, SelfItemPointerAttributeNumber,
							  TIDOID, -1, InvalidOid, 0);

	add_row_identity_var(root, var, rtindex, "ctid");
}

/*
 * The scan that finds the rows of this target, if it is directly below the
 * ModifyTable (then *topmost) or an Append there.
 */
ForeignScan *
MotFindTargetScan(ModifyTable *plan, Index resultRelation, int subplan_index, bool *topmost)
{
	Plan	   *subplan = outerPlan(plan);

	*topmost = true;
	if (IsA(subplan, Append))
	{
		Append	   *append = (Append *) subplan;

		if (subplan_index >= list_length(append->appendplans))
			return NULL;
		*topmost = false;
		subplan = (Plan *) list_nth(append->appendplans, subplan_index);
	}
	if (!IsA(subplan, ForeignScan) ||
		((ForeignScan *) subplan)->scan.scanrelid != resultRelation)
		return NULL;
	return (ForeignScan *) subplan;
}

/* fdw_private of the target: by whom its rows are locked before triggers run. */
List *
MotPlanForeignModify(PlannerInfo *root, ModifyTable *plan,
					 Index resultRelation, int subplan_index)
{
	ForeignScan *scan = NULL;
	int			locked = MOT_LOCKED_LATER;
	bool		topmost;

	if (plan->operation == CMD_UPDATE || plan->operation == CMD_DELETE)
	{
		Relation	rel = table_open(planner_rt_fetch(resultRelation, root)->relid, NoLock);
		TriggerDesc *triggers = rel->trigdesc;

		if (triggers != NULL &&
			(plan->operation == CMD_UPDATE ?
			 triggers->trig_update_before_row || triggers->trig_update_after_row :
			 triggers->trig_delete_before_row || triggers->trig_delete_after_row))
		{
			scan = MotFindTargetScan(plan, resultRelation, subplan_index, &topmost);
			locked = scan != NULL ? MOT_LOCKED_BY_SCAN : MOT_LOCKED_JOINED;
		}
		table_close(rel, NoLock);
	}
	if (scan != NULL)
	{
		scan->fdw_private = list_copy(scan->fdw_private);
		lfirst_int(list_nth_cell(scan->fdw_private, MOT_PLAN_LOCK)) = plan->operation;
	}
	return list_make1_int(locked);
}

static MotModify *
begin_modify(ResultRelInfo *rinfo, ModifyTableState *mtstate, Snapshot snapshot, CommandId cid)
{
	Relation	rel = rinfo->ri_RelationDesc;
	MotModify  *modify = palloc0(sizeof(MotModify));

	modify->session = MotSession();
	modify->relation = MotRelationGet(rel);
	modify->writer = MotWriterBegin(rel, snapshot, cid);
	modify->mtstate = mtstate;
	modify->has_checks = rel->rd_att->constr != NULL || rel->rd_rel->relispartition;
	modify->triggers = rinfo->ri_TrigDesc;
	modify->users = 1;
	modify->copy_decided = true;
	rinfo->ri_FdwState = modify;
	if (mtstate != NULL)
	{
		const ModifyTable *plan = (const ModifyTable *) mtstate->ps.plan;

		/* (so may the checks of views, which come after the change, too) */
		if (MotAsksSystem(plan->returningLists) || MotAsksSystem(plan->withCheckOptionLists))
			modify->returned = MotSlotReturned(mtstate->ps.state, rel);
	}

	/*
	 * The executor would open our indexes to put entries into them.  With an
	 * empty list it thinks that it has.
	 */
	if (rinfo->ri_IndexRelationDescs == NULL)
	{
		rinfo->ri_NumIndices = 0;
		rinfo->ri_IndexRelationDescs = (RelationPtr) palloc0(sizeof(Relation));
	}
	return modify;
}

void
MotBeginForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
					  List *fdw_private, int subplan_index, int eflags)
{
	EState	   *estate = mtstate->ps.state;
	MotModify  *modify;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	modify = begin_modify(rinfo, mtstate, estate->es_snapshot, estate->es_output_cid);
	modify->lock_joined = linitial_int(fdw_private) == MOT_LOCKED_JOINED;
	modify->locked = linitial_int(fdw_private) != MOT_LOCKED_LATER;
	if (mtstate->operation == CMD_INSERT)
	{
		set_conflict(modify, (ModifyTable *) mtstate->ps.plan, rinfo);
		keep_plan_rows(mtstate, rinfo);
	}
	else
	{
		modify->view = MotViewFor(estate->es_snapshot);
		modify->ctid_attno = ExecFindJunkAttributeInTlist(outerPlan(mtstate->ps.plan)->targetlist,
														  "ctid");
		if (!AttributeNumberIsValid(modify->ctid_attno))
			elog(ERROR, "could not find junk ctid column");
		if (modify->lock_joined)
			MotWatchJoin(mtstate);
	}
}

static void
set_conflict(MotModify *modify, const ModifyTable *plan, ResultRelInfo *rinfo)
{
	if (MotConflictSelects(plan))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT DO SELECT is not supported for memory-optimized foreign table \"%s\"",
						RelationGetRelationName(rinfo->ri_RelationDesc)),
				 errhint("CREATE TABLE ... USING mot makes a memory-optimized table that knows it.")));
	modify->conflict = plan->onConflictAction;
}

/*
 * The executor copies the plan's rows into a slot for heap tuples, which forms
 * a tuple that we would have to take apart again.  If nobody but us looks at
 * the rows, and they are of the table's type to the letter, give it a slot
 * into which it does not copy them.
 */
static void
keep_plan_rows(ModifyTableState *mtstate, ResultRelInfo *rinfo)
{
	ModifyTable *plan = (ModifyTable *) mtstate->ps.plan;
	TupleDesc	desc = RelationGetDescr(rinfo->ri_RelationDesc);
	List	   *targetlist = outerPlan(plan)->targetlist;
	int			i = 0;

	if (rinfo->ri_TrigDesc || rinfo->ri_projectNewInfoValid ||
		plan->returningLists || plan->withCheckOptionLists ||
		plan->onConflictAction != ONCONFLICT_NONE ||
		(desc->constr && desc->constr->has_generated_stored) ||
		list_length(targetlist) != desc->natts)
		return;
	foreach_node(TargetEntry, tle, targetlist)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i++);

		if (tle->resjunk || att->attisdropped || exprType((Node *) tle->expr) != att->atttypid)
			return;
	}
	rinfo->ri_newTupleSlot = ExecInitExtraTupleSlot(mtstate->ps.state, desc, &TTSOpsVirtual);
	rinfo->ri_projectNew = NULL;
	rinfo->ri_projectNewInfoValid = true;
}

void
MotEndForeignModify(EState *estate, ResultRelInfo *rinfo)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;

	if (modify == NULL)
		return;
	MotHideAfterTriggers(modify, rinfo, false);
	if (--modify->users == 0)
	{
		MotWriterEnd(modify->writer);
		rinfo->ri_FdwState = NULL;
	}
}

/* COPY, and rows routed to a partition */
void
MotBeginForeignInsert(ModifyTableState *mtstate, ResultRelInfo *rinfo)
{
	EState	   *estate = mtstate->ps.state;
	ModifyTable *plan = (ModifyTable *) mtstate->ps.plan;
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;

	if (modify != NULL)
	{
		/* also the target of the UPDATE that moves rows here */
		modify->users++;
		return;
	}
	if (plan == NULL)
	{
		modify = begin_modify(rinfo, NULL, GetActiveSnapshot(), GetCurrentCommandId(true));

		/* may it write in batches?  Known with the first row. */
		modify->copy_decided = mtstate->resultRelInfo != rinfo;
	}
	else
	{
		modify = begin_modify(rinfo, mtstate, estate->es_snapshot, estate->es_output_cid);
		if (plan->operation == CMD_INSERT)
			set_conflict(modify, plan, rinfo);
	}
}

void
MotEndForeignInsert(EState *estate, ResultRelInfo *rinfo)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;

	if (modify != NULL && modify->copy != NULL)
		MotCopyEnd(modify);
	MotEndForeignModify(estate, rinfo);
}

/* NOT NULL, CHECK and partition constraints: the server leaves them to the wrapper. */
void
MotCheckRow(ResultRelInfo *rinfo, TupleTableSlot *slot, EState *estate)
{
	Relation	rel = rinfo->ri_RelationDesc;

	if (rel->rd_att->constr)
		ExecConstraints(rinfo, slot, estate);
	if (rel->rd_rel->relispartition)
		ExecPartitionCheck(rinfo, slot, estate, true);
}

/*
 * Let the server believe, until the next row, that there are no AFTER ROW
 * triggers: they have been seen to.
 */
void
MotHideAfterTriggers(MotModify *modify, ResultRelInfo *rinfo, bool hide)
{
	if (likely(modify->triggers == NULL))
		return;
	if (hide && modify->no_after == NULL)
	{
		modify->no_after = MemoryContextAlloc(GetMemoryChunkContext(modify), sizeof(TriggerDesc));
		*modify->no_after = *modify->triggers;
		modify->no_after->trig_insert_after_row = false;
		modify->no_after->trig_update_after_row = false;
		modify->no_after->trig_delete_after_row = false;
	}
	rinfo->ri_TrigDesc = hide ? modify->no_after : modify->triggers;
}

/* What the executor goes on with: a changed row; see MotSlotReturn. */
static inline TupleTableSlot *
changed_row(MotModify *modify, TupleTableSlot *slot, bool ended)
{
	if (likely(modify->returned == NULL) || slot == NULL)
		return slot;
	return MotSlotReturn(modify->returned, slot, ended);
}

TupleTableSlot *
MotExecForeignInsert(EState *estate, ResultRelInfo *rinfo,
					 TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;
	MemoryContext oldcxt;
	mot_row    *row;

	MotHideAfterTriggers(modify, rinfo, false);
	if (modify->has_checks)
		MotCheckRow(rinfo, slot, estate);
	if (modify->conflict != ONCONFLICT_NONE)
	{
		TupleTableSlot *result = MotInsertOnConflict(modify, estate, rinfo, slot);

		return changed_row(modify, result, result != slot);
	}

	if (unlikely(!modify->copy_decided))
		MotCopyBegin(modify, rinfo);

	/* values that are fetched to be stored go with the row */
	oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	slot_getallattrs(slot);
	if (modify->copy != NULL)
		MotCopyRow(modify, slot);
	else
	{
		row = MotWriterInsert(modify->writer, slot->tts_values, slot->tts_isnull);
		MotRowToTid(modify->session, row, &slot->tts_tid);
	}
	MemoryContextSwitchTo(oldcxt);
	return changed_row(modify, slot, false);
}

/*
 * A row that this transaction changed after the snapshot: if this very
 * command did (a join found the row twice), the row is skipped; if a later
 * one did (a trigger or function), what to do is anybody's guess.
 *
 * When this command did and a later one again, the server looks at the first
 * change only, unless somebody else's change lies between the version that
 * was found and ours: then it looks at the last.
 */
void
MotRefuseOwnChange(mot_session *session, const mot_view *view, mot_table *table,
				   mot_row *row, CmdType operation)
{
	const mot_version *found = mot_row_visible(session, view, table, row);
	const mot_version *before = found;
	const mot_version *after;
	mot_view	later = *view;

	if (!IsolationUsesXactSnapshot())
	{
		later.snapshot = mot_engine_clock(MotEngine);
		before = mot_row_visible(session, &later, table, row);
	}
	later.command++;
	after = mot_row_visible(session, &later, table, row);
	if (mot_version_same(before, found) ? !mot_version_same(after, found) :
		mot_version_same(after, mot_row_newest(session, row)))
		return;

	MotRaiseOwnChange(operation == CMD_DELETE);
}

/* The plan's row for the newest version, or NULL if the plan has none. */
static TupleTableSlot *
check_newest(MotModify *modify, ResultRelInfo *rinfo, mot_row *row, const mot_version *newest)
{
	EPQState   *epqstate = &modify->mtstate->mt_epqstate;
	TupleTableSlot *slot = EvalPlanQualSlot(epqstate, rinfo->ri_RelationDesc,
											rinfo->ri_RangeTableIndex);

	MotSlotStore(slot, newest);
	slot->tts_tableOid = RelationGetRelid(rinfo->ri_RelationDesc);
	MotRowToTid(modify->session, row, &slot->tts_tid);
	slot = EvalPlanQual(epqstate, rinfo->ri_RelationDesc, rinfo->ri_RangeTableIndex, slot);
	return TupIsNull(slot) ? NULL : slot;
}

/*
 * Lock the row that a plan's row names, for an UPDATE or DELETE: MOT_LOCKED or
 * MOT_LOCKED_NEWER, and *current is the version to change; anything else: skip it.
 * locked: it has been before, and its newest version counts.
 */
MotLockResult
MotLockPlanned(MotWriter *writer, Relation rel, mot_table *table, const mot_view *view, CmdType operation,
			   bool locked, Datum ctid, bool isnull, mot_row **row, const mot_version **current)
{
	mot_session *session = MotSession();
	MotLockResult result = MOT_LOCK_SELF;
	const mot_version *newest;
	unsigned	changes;

	if (isnull)
		elog(ERROR, "ctid is NULL");
	*row = MotTidToVersion(session, table, (ItemPointer) DatumGetPointer(ctid), &changes);
	if (*row == NULL)
		elog(ERROR, "row to be changed of table \"%s\" does not exist", RelationGetRelationName(rel));
	/* (above READ COMMITTED, locks are taken at commit) */
	if (locked && !IsolationUsesXactSnapshot())
		*current = mot_row_newest(session, *row);
	else
		*current = mot_row_visible(session, view, table, *row);
	/* NULL: a trigger or function has deleted it */
	if (*current != NULL)
		result = MotWriterLock(writer, *row, *current,
							   operation == CMD_DELETE ? MOT_MODE_UPDATE : MOT_MODE_CHANGE,
							   MOT_LOCK_WAIT, &newest);
	if (result == MOT_LOCKED_NEWER)
		*current = newest;
	else if (result == MOT_LOCK_SELF)
		MotRefuseOwnChange(session, view, table, *row, operation);
	return result;
}

/*
 * The same here; false: skip it.  *newer is the plan's row for a version newer than the planned
 * one, else NULL.
 */
static bool
lock_planned_row(MotModify *modify, ResultRelInfo *rinfo, TupleTableSlot *planSlot, bool locked,
				 mot_row **row, const mot_version **current, TupleTableSlot **newer)
{
	bool		isnull;
	Datum		ctid = ExecGetJunkAttribute(planSlot, modify->ctid_attno, &isnull);
	MotLockResult result = MotLockPlanned(modify->writer, rinfo->ri_RelationDesc, modify->relation->table,
										  &modify->view, modify->mtstate->operation, locked,
										  ctid, isnull, row, current);

	*newer = NULL;
	if (result != MOT_LOCKED_NEWER)
		return result == MOT_LOCKED;
	*newer = check_newest(modify, rinfo, *row, *current);
	return *newer != NULL;
}

/*
 * Lock a row that a join has found, for triggers that are about to run for it.
 * The plan's row to go on with, or NULL: skip it.
 */
TupleTableSlot *
MotLockJoinedRow(ResultRelInfo *rinfo, TupleTableSlot *planSlot)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;
	mot_row    *row;
	const mot_version *current;
	TupleTableSlot *newer;

	if (!lock_planned_row(modify, rinfo, planSlot, false, &row, &current, &newer))
		return NULL;
	return newer != NULL ? newer : planSlot;
}

TupleTableSlot *
MotExecForeignUpdate(EState *estate, ResultRelInfo *rinfo,
					 TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;
	MemoryContext oldcxt;
	mot_row    *row;
	const mot_version *current;
	TupleTableSlot *newer;

	if (!lock_planned_row(modify, rinfo, planSlot, modify->locked, &row, &current, &newer))
		return NULL;

	oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	if (unlikely(newer != NULL))
	{
		TupleTableSlot *oldslot = rinfo->ri_oldTupleSlot;

		/* the new row once more, from the newest version */
		MotSlotStore(oldslot, current);
		slot = ExecGetUpdateNewTuple(rinfo, newer, oldslot);
		slot->tts_tableOid = modify->relation->relid;
		if (rinfo->ri_RelationDesc->rd_att->constr &&
			rinfo->ri_RelationDesc->rd_att->constr->has_generated_stored)
			ExecComputeStoredGenerated(rinfo, estate, slot, CMD_UPDATE);
	}
	if (modify->has_checks)
		MotCheckRow(rinfo, slot, estate);

	slot_getallattrs(slot);
	MotWriterUpdate(modify->writer, row, current, slot->tts_values, slot->tts_isnull);
	MotRowToTid(modify->session, row, &slot->tts_tid);
	MemoryContextSwitchTo(oldcxt);
	return changed_row(modify, slot, false);
}

TupleTableSlot *
MotExecForeignDelete(EState *estate, ResultRelInfo *rinfo,
					 TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MotModify  *modify = (MotModify *) rinfo->ri_FdwState;
	mot_row    *row;
	const mot_version *current;
	TupleTableSlot *newer;

	if (!lock_planned_row(modify, rinfo, planSlot, modify->locked, &row, &current, &newer))
		return NULL;

	/* RETURNING may want the row */
	if (rinfo->ri_projectReturning)
	{
		MotSlotStore(slot, current);
		MotRowToTid(modify->session, row, &slot->tts_tid);
	}
	MotWriterDelete(modify->writer, row, current, false);
	return rinfo->ri_projectReturning ? changed_row(modify, slot, true) : slot;
}
