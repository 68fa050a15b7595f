/*-------------------------------------------------------------------------
 *
 * index.c
 *	  Indexes of ordinary tables: btree in the catalogue, the engine's inside.
 *
 * Constraints, foreign keys, ON CONFLICT and clones of partitioned indexes ask for
 * btree by name, so that is what such an index is.  What the server calls to use
 * it, rd_indam of its relation cache entry, is replaced by a copy of btree's
 * routine with functions of ours; its file holds an empty btree.
 *
 * Entries are replaced (MotTableIndexes) whenever the server comes to the table:
 * before planning, before a row is stored, and when a scan by index begins.  One
 * comparison tells that nothing has been invalidated since.  An entry that was not
 * replaced cannot be read: index_beginscan calls btree's ambeginscan,
 * which looks at nothing, then our index_fetch_begin, which replaces it, and then
 * amrescan, which takes the scan over.  Scans for bitmaps do not come by
 * there; but before a bitmap is asked for, when the executor has made its nodes, entries
 * are replaced, too (scan.c).
 * A scan that has not been taken over is refused when it asks for a row's bytes.
 *
 * The server keeps rd_indam of indexes that have been made or made anew in a
 * transaction, also if their table turns into a heap table then, by ALTER TABLE or by
 * ROLLBACK TO.  So whatever is called first for an index asks whose the table
 * is now, and else puts btree's routine back and calls that.
 *
 * Keys come and go with rows (relation/writer.c), so aminsert has nothing to
 * do, except for rows that ON CONFLICT inserts on trial: they are stored without
 * keys, whose conflicts are an answer then and not an error.  And it says whether
 * a deferrable key is unique: to the engine these are not.  COPY is told after its first
 * row that the other indexes take no keys (ii_ReadyForInserts).
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/amapi.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "compat/calls.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "relation/slot.h"
#include "utils/memutils.h"

/* a row that COPY will bring keys of, and the index in which one is taken */
static mot_row *taken_row = NULL;
static Oid	taken_index;

/* a row that is inserted on trial */
static mot_row *trial_row = NULL;
static mot_mark trial_mark;
static bool trial_busy;
static List *trial_lacks;		/* exclusion constraints whose key it does not
								 * have */

/* what ON CONFLICT has found last, and has locked and may be about to update */
typedef struct Conflict
{
	const mot_row *row;
	CommandId	cid;
} Conflict;

static const mot_row *found_row = NULL;
static mot_ts found_ts;
static Conflict *conflicts = NULL;
static int	nconflicts = 0;
static int	maxconflicts = 0;

static MotRelationInfoHookType prev_relation_info = NULL;

/* -------------------------------------------------------- the routine's place */

static bool
is_replaced(Relation index)
{
	return index->rd_indam->ambeginscan == MotIndexScanBegin;
}

static bool insert_key(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation rel,
					   IndexUniqueCheck check, bool unchanged, IndexInfo *info);

typedef struct Replaced
{
	IndexAmRoutine am;
	const IndexAmRoutine *original;
} Replaced;

/* (const from 19 on) */
static inline void
set_routine(Relation index, const IndexAmRoutine *am)
{
	*(const IndexAmRoutine **) &index->rd_indam = am;
}

const IndexAmRoutine *
MotIndexPutBack(Relation index)
{
	if (is_replaced(index))
		set_routine(index, ((const Replaced *) index->rd_indam)->original);
	return index->rd_indam;
}

/* asked by CREATE INDEX CONCURRENTLY only: no row is missing */
static IndexBulkDeleteResult *
bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	if (!MotIsOrdinaryTable(info->index->rd_index->indrelid))
		return MotIndexPutBack(info->index)->ambulkdelete(info, stats, callback, state);
	return palloc0(sizeof(IndexBulkDeleteResult));
}

static IndexBulkDeleteResult *
vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (!MotIsOrdinaryTable(info->index->rd_index->indrelid))
		return MotIndexPutBack(info->index)->amvacuumcleanup(info, stats);
	return stats;
}

/*
 * The row is there with each entry, but not what is computed of it.  (The planner
 * asks for this before it copies the routine's functions.)
 */
static bool
can_return(Relation index, int column)
{
	if (!MotIsOrdinaryTable(index->rd_index->indrelid))
		return MotIndexPutBack(index)->amcanreturn(index, column);
	return column == 0 || index->rd_index->indkey.values[column - 1] != 0;
}

static void
replace(Relation index)
{
	Replaced   *replaced;
	IndexAmRoutine *am;

	if (index->rd_rel->relam != BTREE_AM_OID || is_replaced(index))
		return;
	replaced = MemoryContextAlloc(index->rd_indexcxt, sizeof(Replaced));
	replaced->original = index->rd_indam;
	am = &replaced->am;
	memcpy(am, index->rd_indam, sizeof(IndexAmRoutine));
	am->amcanparallel = false;
	am->aminsert = insert_key;
	am->ambulkdelete = bulk_delete;
	am->amvacuumcleanup = vacuum_cleanup;
	am->amcanreturn = can_return;
	am->amcostestimate = (amcostestimate_function) MotIndexCost;
	am->ambeginscan = MotIndexScanBegin;
	am->amrescan = MotIndexScanAgain;
	am->amgettuple = MotIndexScanGet;
	am->amgetbitmap = MotIndexScanBitmap;
	am->amendscan = MotIndexScanEnd;
	am->ammarkpos = MotIndexScanMark;
	am->amrestrpos = MotIndexScanRestore;
	am->amestimateparallelscan = NULL;
	am->aminitparallelscan = NULL;
	am->amparallelrescan = NULL;
	set_routine(index, am);
}

void
MotTableIndexes(Relation rel)
{
	MotRelation *mr = MotRelationGet(rel);
	uint64		generation = MotRelationGeneration;
	List	   *oids;

	/*
	 * Nothing has been invalidated, so the entries are where they were. (They
	 * are asked all the same whether they are as we have left them.)
	 */
	if (likely(mr->indexes_seen == generation))
	{
		bool		replaced = true;

		for (int i = 0; i < mr->nentries; i++)
			replaced &= is_replaced(mr->entries[i]);
		if (likely(replaced))
			return;
	}
	mr->indexes_seen = 0;
	oids = RelationGetIndexList(rel);
	if (mr->maxentries < list_length(oids))
	{
		mr->maxentries = list_length(oids) + 4;
		mr->entries = MemoryContextAlloc(mr->cxt, mr->maxentries * sizeof(Relation));
	}
	mr->nentries = 0;
	foreach_oid(oid, oids)
	{
		Relation	index = RelationIdGetRelation(oid);

		if (RelationIsValid(index))
		{
			replace(index);
			if (is_replaced(index))
				mr->entries[mr->nentries++] = index;
			RelationClose(index);
		}
	}

	/*
	 * if something was invalidated by looking for them, they are seen to
	 * again the next time
	 */
	if (MotRelationGeneration == generation)
		mr->indexes_seen = generation;
	list_free(oids);
}

/* The table has become a heap table in this transaction, which keeps its relation cache entries. */
static void
put_back(Relation rel)
{
	List	   *oids = RelationGetIndexList(rel);

	foreach_oid(oid, oids)
	{
		Relation	index = RelationIdGetRelation(oid);

		if (!RelationIsValid(index))
			continue;
		(void) MotIndexPutBack(index);
		RelationClose(index);
	}
	list_free(oids);
}

/* ------------------------------------------------------------------- builds */

double
MotTableBuildIndex(Relation rel, Relation index, struct IndexInfo *info, bool allow_sync,
				   bool anyvisible, bool progress, BlockNumber start, BlockNumber blocks,
				   IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	mot_table_stat stat;

	MotRequireBtree(rel, index);

	/*
	 * amcheck, which brings a scan for us to end, has nothing to look for in
	 * the file; nothing is built here under its lock
	 */
	if (scan != NULL)
	{
		table_endscan(scan);
		return 0;
	}
	replace(index);

	/*
	 * VACUUM FULL, CLUSTER and TRUNCATE do not look for duplicates. A unique
	 * index that CREATE INDEX CONCURRENTLY left behind, invalid, is nobody's
	 * until REINDEX does.
	 */
	if (info->ii_Concurrent)
		MotTableBeginIndex(rel, index, info);
	else if (info->ii_Unique || !index->rd_index->indisunique || index->rd_index->indisvalid)
		MotStorageCreateIndex(rel, index);
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	return (double) stat.rows;
}

/* -------------------------------------------------- rows inserted on trial */

void
MotTableInsertTrial(Relation rel, TupleTableSlot *slot, CommandId cid, MotChangeOptions options,
					struct BulkInsertStateData *bistate, uint32 token)
{
	mot_session *session = MotBeginWrite();
	mot_view	view = {0, cid};
	MotWriter  *writer;

	MotTableIndexes(rel);
	writer = MotWriterShared(rel, &view, cid);
	slot_getallattrs(slot);
	trial_mark = mot_txn_mark(session);
	trial_busy = false;
	trial_lacks = NIL;
	trial_row = MotWriterStore(writer, slot->tts_values, slot->tts_isnull);
	MotVersionToTid(session, trial_row, 1, &slot->tts_tid);
	slot->tts_tableOid = RelationGetRelid(rel);
	MotSlotChanged(slot, false);
}

/* Rows have been stored, this one without all of its keys: the error is to come with it. */
void
MotTableKeyTaken(mot_row *row, Oid indexoid)
{
	taken_row = row;
	taken_index = indexoid;
}

static void
raise_taken(Relation index, ItemPointer tid, Relation rel)
{
	MotRelation *mr = MotRelationGet(rel);
	MotIndex   *mi;
	mot_row    *row = taken_row;
	unsigned	changes;

	if (RelationGetRelid(index) != taken_index || MotTidToVersion(MotSession(), mr->table, tid, &changes) != row)
		return;
	taken_row = NULL;
	mi = MotRelationIndex(mr, taken_index);
	MotRowDeform(mr->desc, mot_row_newest(MotSession(), row), MotIndexColumns(mi), mi->check_values, mi->check_isnull);
	MotRaiseDuplicate(rel, mi, mi->check_values, mi->check_isnull);
}

/* "check" is UNIQUE_CHECK_NO for exclusion constraints, too, after which their index is scanned */
static bool
insert_key(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation rel,
		   IndexUniqueCheck check, bool unchanged, IndexInfo *info)
{
	MotRelation *mr;
	unsigned	changes;
	mot_view	view = {0, 0};
	MotIndex   *mi;
	MotWriter  *writer;
	mot_row    *row;
	bool		trial;
	bool		exclusion = index->rd_index->indisexclusion;
	bool		busy;

	if (unlikely(!MotIsOrdinary(rel)))
		return MotIndexPutBack(index)->aminsert(index, values, isnull, tid, rel, check, unchanged, info);
	if (unlikely(taken_row != NULL))
		raise_taken(index, tid, rel);
	if (likely(trial_row == NULL && (check == UNIQUE_CHECK_NO || check == UNIQUE_CHECK_YES)))
	{
		/* COPY, which changes no row and tries none, need not bring any more */
		if (!exclusion && MotTableRaisesFirst(rel))
			info->ii_ReadyForInserts = false;
		return true;
	}
	mr = MotRelationGet(rel);
	row = MotTidToVersion(MotSession(), mr->table, tid, &changes);
	trial = row != NULL && row == trial_row;
	mi = MotRelationIndex(mr, RelationGetRelid(index));
	/* what was left of CREATE INDEX CONCURRENTLY has gone with a crash */
	if (mi == NULL && !index->rd_index->indisvalid)
		return true;
	if (row == NULL || mi == NULL)
		elog(ERROR, "index \"%s\" is not there", RelationGetRelationName(index));
	if (!trial && !mi->deferrable)
		return true;
	writer = MotWriterShared(rel, &view, GetCurrentCommandId(true));
	if (trial && !MotWriterAddKey(writer, mi, row, check != UNIQUE_CHECK_PARTIAL && !exclusion, &busy))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(TopTransactionContext);

		trial_busy |= busy;
		if (exclusion)
			trial_lacks = lappend_oid(trial_lacks, RelationGetRelid(index));
		MemoryContextSwitchTo(oldcxt);
		return false;
	}
	return !mi->deferrable || exclusion ||
		MotWriterKeyIsUnique(writer, mi, row, check == UNIQUE_CHECK_EXISTING);
}

/* If it was in vain, who is in the way is waited for without it; the server then looks again. */
void
MotTableTrialDone(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded)
{
	List	   *lacks = trial_lacks;
	mot_row    *row = trial_row;

	trial_row = NULL;
	trial_lacks = NIL;
	if (succeeded)
	{
		mot_view	view = {0, 0};
		bool		busy;

		/*
		 * who was in the way of an exclusion constraint has gone since; or
		 * has come back, which is an error
		 */
		foreach_oid(oid, lacks)
			(void) MotWriterAddKey(MotWriterShared(rel, &view, GetCurrentCommandId(true)),
								   MotRelationIndex(MotRelationGet(rel), oid), row, true, &busy);
		if (unlikely(XLogLogicalInfoActive()))
			MotLogicalInsert(MotWriterShared(rel, &view, GetCurrentCommandId(true)), row);
		pgstat_count_heap_insert(rel, 1);
		return;
	}
	mot_txn_take_back(MotSession(), trial_mark);
	if (trial_busy)
		MotWaitForKey(rel);
}

/*
 * Which updates are those of ON CONFLICT?  RETURNING asks (MotSlotChanged), and nobody says.  But
 * such a row is found by its key, locked at once, and then updated by the same command.  In between
 * there are triggers, which may do the like with later commands, and conditions, by which it may
 * not come to an update.
 */
void
MotConflictFound(const mot_row *row, const mot_version *version)
{
	found_row = row;
	found_ts = mot_version_ts(version);
}

/* It is about to be locked.  If it has changed since, it may have another key. */
bool
MotConflictStands(const mot_row *row, const mot_version *newest)
{
	return row != found_row || mot_version_ts(newest) == found_ts;
}

void
MotConflictLocked(const mot_row *row, CommandId cid)
{
	bool		found = row == found_row;

	found_row = NULL;
	if (!found)
		return;
	while (nconflicts > 0 && conflicts[nconflicts - 1].cid >= cid)
		nconflicts--;
	if (nconflicts == maxconflicts)
	{
		maxconflicts = Max(8, 2 * maxconflicts);
		conflicts = conflicts == NULL ? MemoryContextAlloc(TopMemoryContext, maxconflicts * sizeof(Conflict)) :
			repalloc_huge(conflicts, maxconflicts * sizeof(Conflict));
	}
	conflicts[nconflicts].row = row;
	conflicts[nconflicts++].cid = cid;
}

bool
MotConflictUpdates(const mot_row *row, CommandId cid)
{
	while (nconflicts > 0 && conflicts[nconflicts - 1].cid > cid)
		nconflicts--;
	if (nconflicts == 0 || conflicts[nconflicts - 1].cid != cid || conflicts[nconflicts - 1].row != row)
		return false;
	nconflicts--;
	return true;
}

static void
forget_trial(XactEvent event, void *arg)
{
	found_row = NULL;
	if (conflicts != NULL)
		pfree(conflicts);
	conflicts = NULL;
	nconflicts = maxconflicts = 0;
	if (taken_row != NULL && (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE))
		elog(ERROR, "a row has been stored without its keys");
	trial_row = taken_row = NULL;
}

static void
forget_trial_sub(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		trial_row = taken_row = NULL;
}

/* ------------------------------------------------------------------ planner */

/*
 * A sub-select of what changes or locks rows may be run by EvalPlanQual, whose nodes we
 * do not see before they run (scan.c).
 */
static bool
is_below_changes(PlannerInfo *root)
{
	while ((root = root->parent_root) != NULL)
		if (root->parse->commandType != CMD_SELECT || root->parse->rowMarks != NIL)
			return true;
	return false;
}

/*
 * An index on text has its collation's order only where the bytes have: to the
 * planner all btrees are ordered.
 */
static void
planner_relation(MOT_RELATION_INFO_PARAMETERS)
{
	Oid			table = MotRelationInfoOid();
	bool		inherits = MotRelationInfoInherits();

	if (prev_relation_info)
		prev_relation_info(MOT_RELATION_INFO_ARGUMENTS);
	if (!OidIsValid(table) || !MotIsOrdinaryTable(table))
		return;

	/* builds of indexes call the table a parent, and have no workers */
	if (inherits)
		rel->rel_parallel_workers = 0;
	if (!inherits && rel->indexlist != NIL)
	{
		Relation	relation = RelationIdGetRelation(table);
		MotRelation *mr = MotRelationGet(relation);
		bool		bitmaps = MotBitmapsFit() && !is_below_changes(root);
		List	   *blind = NIL;

		foreach_node(IndexOptInfo, info, rel->indexlist)
		{
			MotIndex   *index = MotRelationIndex(mr, info->indexoid);
			bool		ordered = index != NULL;

			if (index != NULL && index->key->blind)
			{
				blind = lappend(blind, info);
				continue;
			}
			for (int i = 0; ordered && i < index->key->ncolumns; i++)
				ordered = MotKeyColumnIsOrdered(index->key, i, mot_index_disordered(index->handle.index));

			/*
			 * who looks for a column's ends takes it that a real btree has an
			 * order
			 */
			if (!ordered)
			{
				info->sortopfamily = NULL;
				info->hypothetical = true;
			}
			info->amhasgetbitmap &= bitmaps;
			if (info->amhasgetbitmap)
				MotBitmapsPlanned();
			info->pages = 0;
			if (info->indpred != NIL)
				info->tuples = rel->tuples;
		}
		if (blind != NIL)
			rel->indexlist = list_difference_ptr(rel->indexlist, blind);
		RelationClose(relation);
	}
}

void
MotTableIndexInit(void)
{
	MotIndexesPutBack = put_back;
	prev_relation_info = MotRelationInfoHook;
	MotRelationInfoHook = planner_relation;
	RegisterXactCallback(forget_trial, NULL);
	RegisterSubXactCallback(forget_trial_sub, NULL);
}
