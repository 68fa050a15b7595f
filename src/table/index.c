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
 * amrescan, which takes the scan over.  Scans for bitmaps would not come by
 * there, so the planner is told that there are none; and a scan that has not been
 * taken over is refused when it asks for a row's bytes.
 *
 * Keys come and go with rows (relation/writer.c), so aminsert has nothing to
 * do, except for rows that ON CONFLICT inserts on trial: they are stored without
 * keys, whose conflicts are an answer then and not an error.
 *
 * What the conditions bound is not all that they say (types that are compared by
 * conversion, text whose keys do not have its collation's order), so those
 * that do more than fix a column are asked again of each row.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "catalog/index.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "relation/keys.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* a row that a scan has come to */
typedef struct FoundRow
{
	mot_row    *row;
	const mot_version *version;
	uint8	   *key;
	size_t		len;
} FoundRow;

/* a condition that is asked of each row */
typedef struct Check
{
	ScanKey		key;
	int			nelements;		/* of an array */
	Datum	   *elements;
	bool	   *nulls;
} Check;

#define SCAN_MAGIC UINT64CONST(0x6d6f74696e646578)

typedef enum Phase
{
	SCAN_START, SCAN_RUNNING, SCAN_ITEMS, SCAN_DONE
} Phase;

typedef struct MotTableIndexScan
{
	uint64		magic;
	MotRelation *relation;
	MotIndex   *index;
	mot_session *session;
	mot_view	view;
	bool		loose;			/* the view is ours to let go */
	Phase		phase;
	bool		backward;		/* as it runs */
	MotKeys    *keys;
	mot_cursor *cursor;
	bool		cursor_open;
	mot_row    *row;			/* the one that was handed out last */
	MemoryContext cxt;			/* of everything below; reset by amrescan */
	MemoryContextCallback cleanup;
	int			nchecks;
	Check	   *checks;
	int			nitems;
	int			maxitems;
	FoundRow	   *items;
	int			at;
	Datum	   *values;			/* columns of a row, as far as they are needed */
	bool	   *isnull;
} MotTableIndexScan;

typedef struct MotTableFetch
{
	IndexFetchTableData base;
	mot_row    *row;			/* stashed by amgettuple */
	const mot_version *version;
	ItemPointerData tid;
} MotTableFetch;

/* a row that is inserted on trial */
static mot_row *trial_row = NULL;
static mot_mark trial_mark;
static bool trial_busy;

PG_FUNCTION_INFO_V1(mot_test_put_back);

static get_relation_info_hook_type prev_get_relation_info = NULL;

/* -------------------------------------------------------- the routine's place */

static IndexScanDesc begin_scan(Relation index, int nkeys, int norderbys);

static bool
is_replaced(Relation index)
{
	return index->rd_indam->ambeginscan == begin_scan;
}

static bool add_trial_key(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation rel,
						  IndexUniqueCheck check, bool unchanged, IndexInfo *info);
static void rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
static bool get_tuple(IndexScanDesc scan, ScanDirection direction);
static void end_scan(IndexScanDesc scan);

static IndexBulkDeleteResult *
bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	MotTableRefuse(info->index, "CREATE INDEX CONCURRENTLY is");
}

static IndexBulkDeleteResult *
vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

typedef struct Replaced
{
	IndexAmRoutine am;
	IndexAmRoutine *original;
} Replaced;

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
	am->aminsert = add_trial_key;
	am->ambulkdelete = bulk_delete;
	am->amvacuumcleanup = vacuum_cleanup;
	am->amcanreturn = NULL;
	am->amcostestimate = (amcostestimate_function) MotIndexCost;
	am->ambeginscan = begin_scan;
	am->amrescan = rescan;
	am->amgettuple = get_tuple;
	am->amgetbitmap = NULL;
	am->amendscan = end_scan;
	am->ammarkpos = NULL;
	am->amrestrpos = NULL;
	am->amestimateparallelscan = NULL;
	am->aminitparallelscan = NULL;
	am->amparallelrescan = NULL;
	index->rd_indam = am;
}

/* If something was invalidated by looking for them, they are seen to again the next time. */
static void
note_entries(Relation rel, List *oids, uint64 generation)
{
	MotRelation *mr = MotRelationGet(rel);
	ListCell   *lc;

	if (mr->maxentries < list_length(oids))
	{
		mr->maxentries = list_length(oids) + 4;
		mr->entries = MemoryContextAlloc(mr->cxt, mr->maxentries * sizeof(Relation));
	}
	mr->nentries = 0;
	foreach(lc, oids)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (RelationIsValid(index))
		{
			if (is_replaced(index))
				mr->entries[mr->nentries++] = index;
			RelationClose(index);
		}
	}
	if (MotRelationGeneration == generation)
		mr->indexes_seen = generation;
}

void
MotTableIndexes(Relation rel)
{
	MotRelation *mr = MotRelationGet(rel);
	uint64		generation = MotRelationGeneration;
	List	   *oids;
	ListCell   *lc;

	/*
	 * Nothing has been invalidated, so the entries are where they were.  (They
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
	foreach(lc, oids)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (RelationIsValid(index))
		{
			replace(index);
			RelationClose(index);
		}
	}
	note_entries(rel, oids, generation);
	list_free(oids);
}

/* The table has become a heap table in this transaction, which keeps its relation cache entries. */
static void
put_back(Relation rel)
{
	List	   *oids = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, oids)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(index))
			continue;
		if (is_replaced(index))
			index->rd_indam = ((Replaced *) index->rd_indam)->original;
		RelationClose(index);
	}
	list_free(oids);
}

/*
 * For tests, which declare it: take the routines out of a table's indexes, as if
 * the server had made their relation cache entries anew and told nobody.
 */
Datum
mot_test_put_back(PG_FUNCTION_ARGS)
{
	Relation	rel = RelationIdGetRelation(PG_GETARG_OID(0));

	put_back(rel);
	RelationClose(rel);
	PG_RETURN_VOID();
}

/* ------------------------------------------------------------------- builds */

double
MotTableBuildIndex(Relation rel, Relation index, struct IndexInfo *info, bool allow_sync,
				   bool anyvisible, bool progress, BlockNumber start, BlockNumber blocks,
				   IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	mot_table_stat stat;

	if (index->rd_rel->relam != BTREE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support indexes of memory-optimized table \"%s\"",
						get_am_name(index->rd_rel->relam), RelationGetRelationName(rel)),
				 errhint("Use USING btree; such a table's indexes are in memory, too.")));
	if (info->ii_Concurrent)
		MotTableRefuse(rel, "CREATE INDEX CONCURRENTLY is");
	if (info->ii_Predicate != NIL)
		MotTableRefuse(rel, "partial indexes are");
	if (info->ii_ExclusionOps != NULL)
		MotTableRefuse(rel, "exclusion constraints are");
	if (info->ii_NullsNotDistinct)
		MotTableRefuse(rel, "NULLS NOT DISTINCT is");
	if (info->ii_NumIndexAttrs != info->ii_NumIndexKeyAttrs)
		MotTableRefuse(rel, "INCLUDE is");
	if (info->ii_Unique && !index->rd_index->indimmediate)
		MotTableRefuse(rel, "deferrable keys are");

	replace(index);
	MotStorageCreateIndex(rel, index);
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	return (double) stat.rows;
}

/* -------------------------------------------------- rows inserted on trial */

void
MotTableInsertTrial(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
					struct BulkInsertStateData *bistate, uint32 token)
{
	mot_session *session = MotBeginWrite();
	mot_view	view = {0, cid};
	MotWriter  *writer;

	MotTableRefusePublished(rel);
	MotTableIndexes(rel);
	writer = MotWriterShared(rel, &view, cid);
	slot_getallattrs(slot);
	trial_mark = mot_txn_mark(session);
	trial_busy = false;
	trial_row = MotWriterStore(writer, slot->tts_values, slot->tts_isnull);
	MotVersionToTid(session, trial_row, 1, &slot->tts_tid);
	slot->tts_tableOid = RelationGetRelid(rel);
}

static bool
add_trial_key(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation rel,
			  IndexUniqueCheck check, bool unchanged, IndexInfo *info)
{
	MotRelation *mr = MotRelationGet(rel);
	unsigned	changes;
	mot_view	view = {0, 0};
	MotIndex   *mi;
	bool		busy;

	if (trial_row == NULL || MotTidToVersion(MotSession(), mr->table, tid, &changes) != trial_row)
		return true;
	mi = MotRelationIndex(mr, RelationGetRelid(index));
	if (mi == NULL)
		elog(ERROR, "index \"%s\" is not there", RelationGetRelationName(index));
	if (!MotWriterAddKey(MotWriterShared(rel, &view, GetCurrentCommandId(true)), mi, trial_row,
						 check != UNIQUE_CHECK_PARTIAL, &busy))
	{
		trial_busy |= busy;
		return false;
	}
	return true;
}

/* If it was in vain, who is in the way is waited for without it; the server then looks again. */
void
MotTableTrialDone(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded)
{
	trial_row = NULL;
	if (succeeded)
	{
		pgstat_count_heap_insert(rel, 1);
		return;
	}
	mot_txn_rollback_to(MotSession(), trial_mark);
	if (trial_busy)
		MotWaitForKey(rel);
}

static void
forget_trial(XactEvent event, void *arg)
{
	trial_row = NULL;
}

static void
forget_trial_sub(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		trial_row = NULL;
}

/* -------------------------------------------------------------- conditions */

static void
close_cursor(void *arg)
{
	MotTableIndexScan *o = arg;

	if (o->cursor_open)
	{
		o->cursor_open = false;
		mot_cursor_close(o->cursor);
	}
}

static Oid
value_type(IndexScanDesc scan, const MotKeyColumn *column, ScanKey key)
{
	if (!OidIsValid(key->sk_subtype) || key->sk_subtype == scan->indexRelation->rd_opcintype[key->sk_attno - 1])
		return column->typid;
	return key->sk_subtype;
}

static bool
is_plain(ScanKey key)
{
	return (key->sk_flags & (SK_ROW_HEADER | SK_SEARCHARRAY | SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0;
}

/* Does it fix its column to a value or several? */
static bool
is_point(IndexScanDesc scan, const MotKeyColumn *column, ScanKey key)
{
	if ((key->sk_flags & SK_ROW_HEADER) != 0)
		return false;
	if ((key->sk_flags & SK_SEARCHNULL) != 0)
		return true;
	return (key->sk_flags & SK_SEARCHNOTNULL) == 0 && key->sk_strategy == BTEqualStrategyNumber &&
		!MotKeyConvertIsLossy(column->typid, value_type(scan, column, key));
}

static void
add_condition(MotKeys *keys, MotConditionKind kind, int column, StrategyNumber strategy, Oid type, ScanKey key)
{
	MotKeyCondition *condition = &keys->conditions[keys->nconditions++];

	condition->kind = kind;
	condition->column = column;
	condition->strategy = strategy;
	condition->first = keys->noperands;
	condition->noperands = 0;
	if (kind == MOT_CONDITION_COMPARE || kind == MOT_CONDITION_ARRAY)
	{
		MotOperand *operand = &keys->operands[keys->noperands++];

		memset(operand, 0, sizeof(*operand));
		operand->kind = MOT_OPERAND_CONST;
		operand->valuetype = type;
		operand->value = key->sk_argument;
		operand->isnull = (key->sk_flags & SK_ISNULL) != 0;
		condition->noperands = 1;
	}
}

static void
add_check(MotTableIndexScan *o, ScanKey key)
{
	Check	   *check = &o->checks[o->nchecks++];

	memset(check, 0, sizeof(*check));
	check->key = key;
	if ((key->sk_flags & SK_SEARCHARRAY) != 0 && (key->sk_flags & SK_ISNULL) == 0)
	{
		ArrayType  *array = DatumGetArrayTypeP(key->sk_argument);
		int16		len;
		bool		byval;
		char		align;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align,
						  &check->elements, &check->nulls, &check->nelements);
	}
}

/* What of the conditions bounds the index, and what has to be asked of each row. */
static void
make_keys(IndexScanDesc scan, MotTableIndexScan *o)
{
	const MotKey *key = o->index->key;
	int			nkeys = scan->numberOfKeys;
	MotKeys    *keys = MotKeysAllocate(o->index, nkeys, nkeys, o->backward);
	bool	   *enforced = palloc0(Max(1, nkeys) * sizeof(bool));
	int			column;

	keys->nconditions = 0;
	for (column = 0; column < key->ncolumns; column++)
	{
		ScanKey		point = NULL;

		for (int i = 0; i < nkeys && point == NULL; i++)
			if (scan->keyData[i].sk_attno == column + 1 && is_point(scan, &key->columns[column], &scan->keyData[i]))
			{
				point = &scan->keyData[i];
				enforced[i] = true;
			}
		if (point == NULL)
			break;
		add_condition(keys, (point->sk_flags & SK_SEARCHNULL) != 0 ? MOT_CONDITION_NULL :
					  (point->sk_flags & SK_SEARCHARRAY) != 0 ? MOT_CONDITION_ARRAY : MOT_CONDITION_COMPARE,
					  column, BTEqualStrategyNumber, value_type(scan, &key->columns[column], point), point);
	}
	for (int i = 0; column < key->ncolumns && i < nkeys; i++)
	{
		ScanKey		range = &scan->keyData[i];

		if (range->sk_attno != column + 1 || !key->columns[column].ordered || !is_plain(range))
			continue;
		add_condition(keys, MOT_CONDITION_COMPARE, column, range->sk_strategy,
					  value_type(scan, &key->columns[column], range), range);
	}
	MotKeysComplete(keys);
	o->keys = keys;

	o->nchecks = 0;
	o->checks = palloc(Max(1, nkeys) * sizeof(Check));
	for (int i = 0; i < nkeys; i++)
		if (!enforced[i])
			add_check(o, &scan->keyData[i]);
}

/* (a, b) < (x, y): as btree compares rows */
static bool
row_satisfies(ScanKey key, const MotKey *columns, const Datum *values, const bool *isnull)
{
	for (ScanKey part = (ScanKey) DatumGetPointer(key->sk_argument);; part++)
	{
		int			i = columns->columns[part->sk_attno - 1].attnum - 1;
		int			cmp;

		if (isnull[i] || (part->sk_flags & SK_ISNULL) != 0)
			return false;
		cmp = DatumGetInt32(FunctionCall2Coll(&part->sk_func, part->sk_collation, values[i], part->sk_argument));
		if (cmp == 0 && (part->sk_flags & SK_ROW_END) == 0)
			continue;
		switch (part->sk_strategy)
		{
			case BTLessStrategyNumber:
				return cmp < 0;
			case BTLessEqualStrategyNumber:
				return cmp <= 0;
			case BTGreaterEqualStrategyNumber:
				return cmp >= 0;
			case BTGreaterStrategyNumber:
				return cmp > 0;
			default:
				elog(ERROR, "unrecognized RowCompareType: %d", (int) part->sk_strategy);
		}
	}
}

static bool
satisfies(const Check *check, const MotKey *columns, const Datum *values, const bool *isnull)
{
	ScanKey		key = check->key;
	int			i = columns->columns[key->sk_attno - 1].attnum - 1;

	if ((key->sk_flags & SK_ROW_HEADER) != 0)
		return row_satisfies(key, columns, values, isnull);
	if ((key->sk_flags & SK_SEARCHNULL) != 0)
		return isnull[i];
	if ((key->sk_flags & SK_SEARCHNOTNULL) != 0)
		return !isnull[i];
	if (isnull[i] || (key->sk_flags & SK_ISNULL) != 0)
		return false;
	if ((key->sk_flags & SK_SEARCHARRAY) == 0)
		return DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, values[i], key->sk_argument));
	for (int n = 0; n < check->nelements; n++)
		if (!check->nulls[n] &&
			DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, values[i], check->elements[n])))
			return true;
	return false;
}

static bool
passes(MotTableIndexScan *o, const mot_version *version)
{
	const MotKey *key = o->index->key;

	if (o->nchecks == 0)
		return true;
	MotRowDeform(o->relation->desc, version, key->max_attnum, o->values, o->isnull);
	for (int i = 0; i < o->nchecks; i++)
		if (!satisfies(&o->checks[i], key, o->values, o->isnull))
			return false;
	return true;
}

/* -------------------------------------------------------------------- scans */

static IndexScanDesc
begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);

	scan->opaque = NULL;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

/* the memory of a scan begun by btree is left to its context */
static void
rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	MotTableIndexScan *o = scan->opaque;

	if (o == NULL || o->magic != SCAN_MAGIC)
	{
		MemoryContext cxt = GetMemoryChunkContext(scan);

		o = MemoryContextAllocZero(cxt, sizeof(MotTableIndexScan));
		o->magic = SCAN_MAGIC;
		o->cxt = AllocSetContextCreate(cxt, "MOT index scan", ALLOCSET_SMALL_SIZES);
		scan->opaque = o;
		scan->xs_itupdesc = RelationGetDescr(scan->indexRelation);
	}
	close_cursor(o);
	MemoryContextReset(o->cxt);
	o->phase = SCAN_START;
	o->cursor = NULL;
	o->items = NULL;
	o->row = NULL;
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

static void
end_scan(IndexScanDesc scan)
{
	MotTableIndexScan *o = scan->opaque;

	if (o == NULL || o->magic != SCAN_MAGIC)
		return;
	close_cursor(o);
	if (o->loose)
		MotLooseViewRelease();
	MemoryContextDelete(o->cxt);
	pfree(o);
	scan->opaque = NULL;
}

static void
open_cursor(MotTableIndexScan *o, bool backward)
{
	mot_status	status;

	if (o->cursor == NULL)
	{
		o->cursor = MemoryContextAlloc(o->cxt, mot_cursor_size());
		o->cleanup.func = close_cursor;
		o->cleanup.arg = o;
		MemoryContextRegisterResetCallback(o->cxt, &o->cleanup);
	}
	status = mot_cursor_open(o->session, o->cursor, &o->view, &o->index->handle,
							 &o->keys->lower_bound, &o->keys->upper_bound, backward);
	MotRaiseStatus(status, NULL);
	o->cursor_open = true;
}

static void
add_item(MotTableIndexScan *o, mot_row *row, const mot_version *version, const MotKeyBuffer *key)
{
	FoundRow	   *item;

	if (o->nitems == o->maxitems || o->items == NULL)
	{
		o->maxitems = o->items == NULL ? 64 : 2 * o->maxitems;
		o->items = o->items == NULL ? MemoryContextAlloc(o->cxt, o->maxitems * sizeof(FoundRow)) :
			repalloc_huge(o->items, o->maxitems * sizeof(FoundRow));
	}
	item = &o->items[o->nitems++];
	item->row = row;
	item->version = version;
	item->len = 0;
	if (key != NULL)
	{
		item->len = key->len;
		item->key = MemoryContextAlloc(o->cxt, Max(1, key->len));
		memcpy(item->key, key->data, key->len);
	}
}

static int
compare_items(const void *a, const void *b)
{
	const FoundRow *x = a;
	const FoundRow *y = b;

	return MotKeysCompare(x->key, x->len, y->key, y->len);
}

/*
 * For a snapshot older than the index, which does not have what that sees: all
 * of the table, sorted.  (The key is that of an index whose columns may all be null:
 * what is now NOT NULL need not have been.)
 */
static void
sort_table(IndexScanDesc scan, MotTableIndexScan *o)
{
	Size		size = offsetof(MotKey, columns) + o->index->key->ncolumns * sizeof(MotKeyColumn);
	MotKey	   *key = memcpy(palloc(size), o->index->key, size);
	mot_scan	table;
	mot_row    *row;
	const mot_version *version;
	MotKeyBuffer buf;

	key->width = -1;
	key->all_inline = false;
	for (int i = 0; i < key->ncolumns; i++)
		key->columns[i].nullable = true;
	MotKeyBufferInit(&buf, o->cxt);
	o->nchecks = 0;
	for (int i = 0; i < scan->numberOfKeys; i++)
		add_check(o, &scan->keyData[i]);

	o->nitems = 0;
	mot_scan_begin(o->session, &table, o->relation->table, &o->view, NULL);
	while (mot_scan_next(o->session, &table, &row, &version))
	{
		bool		has_null;

		CHECK_FOR_INTERRUPTS();
		if (!passes(o, version))
			continue;
		MotRowDeform(o->relation->desc, version, key->max_attnum, o->values, o->isnull);
		MotKeyBufferReset(&buf);
		MotKeyFromRow(key, o->values, o->isnull, &buf, &has_null);
		add_item(o, row, version, &buf);
	}
	if (o->nitems > 1)
		qsort(o->items, o->nitems, sizeof(FoundRow), compare_items);
	o->at = o->backward ? o->nitems : -1;
	o->phase = SCAN_ITEMS;
}

static void
start(IndexScanDesc scan, MotTableIndexScan *o, bool backward)
{
	Snapshot	snapshot = scan->xs_snapshot;
	MemoryContext oldcxt;

	o->relation = MotRelationGet(scan->heapRelation);
	o->session = MotSession();
	o->index = MotRelationIndex(o->relation, RelationGetRelid(scan->indexRelation));
	if (o->index == NULL)
		elog(ERROR, "index \"%s\" is not there", RelationGetRelationName(scan->indexRelation));
	if (o->loose)
		MotLooseViewRelease();
	o->loose = snapshot->snapshot_type != SNAPSHOT_MVCC;
	o->view = o->loose ? MotLooseView() : MotTableView(snapshot);
	MotViewTable(o->relation, &o->view);
	if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
	{
		/* who is not through yet is met when the key is added */
		snapshot->xmin = snapshot->xmax = InvalidTransactionId;
		snapshot->speculativeToken = 0;
	}

	o->backward = backward;
	oldcxt = MemoryContextSwitchTo(o->cxt);
	o->values = palloc(o->relation->desc->natts * sizeof(Datum));
	o->isnull = palloc(o->relation->desc->natts * sizeof(bool));
	make_keys(scan, o);
	if (o->view.snapshot < mot_index_valid_from(o->index->handle.index))
		sort_table(scan, o);
	else if (!MotKeysFirst(o->keys, NULL))
		o->phase = SCAN_DONE;
	else
	{
		if (!o->keys->get)
			open_cursor(o, backward);
		o->phase = SCAN_RUNNING;
	}
	MemoryContextSwitchTo(oldcxt);
	pgstat_count_index_scan(scan->indexRelation);
}

/* the next row of the ranges */
static bool
next_row(MotTableIndexScan *o, mot_row **row, const mot_version **version)
{
	while (o->phase == SCAN_RUNNING)
	{
		bool		found = false;
		mot_status	status;

		if (!o->keys->get)
			found = mot_cursor_next(o->cursor, row, version);
		else
		{
			status = mot_index_get(o->session, &o->view, &o->index->handle,
								   o->keys->lower.data, o->keys->lower.len, NULL, row, version);
			if (status != MOT_OK && status != MOT_NOT_FOUND)
				MotRaiseStatus(status, NULL);
			found = status == MOT_OK;
		}
		if (!found || o->keys->get)
		{
			close_cursor(o);
			if (!MotKeysNext(o->keys, NULL))
				o->phase = SCAN_DONE;
			else if (!o->keys->get)
				open_cursor(o, o->backward);
		}
		if (found && passes(o, *version))
			return true;
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* The scan turns round: all its rows are put down, and the place where it was found among them. */
static void
turn(IndexScanDesc scan, MotTableIndexScan *o)
{
	mot_row    *was = o->row;
	bool		at_end = o->row == NULL;
	bool		backward = o->backward;
	mot_row    *row;
	const mot_version *version;

	close_cursor(o);
	o->backward = false;
	o->nitems = 0;
	o->keys->backward = false;
	o->phase = SCAN_DONE;
	if (MotKeysFirst(o->keys, NULL))
	{
		if (!o->keys->get)
			open_cursor(o, false);
		o->phase = SCAN_RUNNING;
	}
	o->at = -1;
	while (next_row(o, &row, &version))
	{
		if (row == was)
			o->at = o->nitems;
		add_item(o, row, version, NULL);
	}
	if (at_end)
		o->at = backward ? -1 : o->nitems;
	o->phase = SCAN_ITEMS;
}

static void
form_tuple(IndexScanDesc scan, MotTableIndexScan *o, const mot_version *version)
{
	TupleDesc	desc = RelationGetDescr(scan->indexRelation);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext oldcxt;

	MotRowDeform(o->relation->desc, version, o->index->key->max_attnum, o->values, o->isnull);
	for (int i = 0; i < o->index->key->ncolumns; i++)
	{
		int			att = o->index->key->columns[i].attnum - 1;

		values[i] = o->values[att];
		isnull[i] = o->isnull[att];
	}
	oldcxt = MemoryContextSwitchTo(o->cxt);
	scan->xs_itup = index_form_tuple(desc, values, isnull);
	MemoryContextSwitchTo(oldcxt);
}

static bool
get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	MotTableIndexScan *o = scan->opaque;
	MotTableFetch *fetch = (MotTableFetch *) scan->xs_heapfetch;
	bool		backward = ScanDirectionIsBackward(direction);
	mot_row    *row = NULL;
	const mot_version *version = NULL;
	unsigned	changes = 0;
	MemoryContext oldcxt;

	if (o == NULL || o->magic != SCAN_MAGIC)
		elog(ERROR, "scan of index \"%s\" has not been taken over", RelationGetRelationName(scan->indexRelation));
	oldcxt = MemoryContextSwitchTo(o->cxt);
	if (o->phase == SCAN_START)
		start(scan, o, backward);
	else if (o->phase != SCAN_ITEMS && backward != o->backward)
		turn(scan, o);
	if (o->phase == SCAN_ITEMS)
	{
		if (backward ? o->at >= 0 : o->at < o->nitems)
			o->at += backward ? -1 : 1;
		if (o->at >= 0 && o->at < o->nitems)
		{
			row = o->items[o->at].row;
			version = o->items[o->at].version;
		}
	}
	else if (!next_row(o, &row, &version))
		row = NULL;
	MemoryContextSwitchTo(oldcxt);
	/* NULL: it is past its end */
	o->row = row;
	if (row == NULL)
		return false;

	if (mot_version_ts(version) == 0)
		changes = mot_version_changes(row, version);
	else if (o->loose)
		changes = MOT_TID_LOCKED;
	MotVersionToTid(o->session, row, changes, &scan->xs_heaptid);
	scan->xs_recheck = false;
	if (fetch != NULL)
	{
		fetch->row = row;
		fetch->version = version;
		fetch->tid = scan->xs_heaptid;
	}
	if (scan->xs_want_itup)
		form_tuple(scan, o, version);
	return true;
}

/* ------------------------------------------------------- rows for index scans */

struct IndexFetchTableData *
MotTableFetchBegin(Relation rel)
{
	MotTableFetch *fetch = palloc0(sizeof(MotTableFetch));

	MotTableIndexes(rel);
	fetch->base.rel = rel;
	return &fetch->base;
}

void
MotTableFetchReset(struct IndexFetchTableData *data)
{
	((MotTableFetch *) data)->row = NULL;
}

void
MotTableFetchEnd(struct IndexFetchTableData *data)
{
	pfree(data);
}

bool
MotTableFetchRow(struct IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot,
				 TupleTableSlot *slot, bool *call_again, bool *all_dead)
{
	MotTableFetch *fetch = (MotTableFetch *) data;

	*call_again = false;
	if (all_dead != NULL)
		*all_dead = false;
	if (fetch->row == NULL || !ItemPointerEquals(tid, &fetch->tid))
		elog(ERROR, "index of memory-optimized table \"%s\" was read as if it were a btree",
			 RelationGetRelationName(data->rel));
	MotTableShow(data->rel, fetch->row, fetch->version, 0, slot);
	slot->tts_tid = *tid;
	return true;
}

/* ------------------------------------------------------------------ planner */

/*
 * An index on text has its collation's order only where the bytes have: to the
 * planner all btrees are ordered.
 */
static void
planner_relation(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	if (prev_get_relation_info)
		prev_get_relation_info(root, relid, inhparent, rel);
	if (!inhparent && rel->indexlist != NIL && MotIsOrdinaryTable(relid))
	{
		Relation	relation = RelationIdGetRelation(relid);
		MotRelation *mr = MotRelationGet(relation);
		ListCell   *lc;

		foreach(lc, rel->indexlist)
		{
			IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);
			MotIndex   *index = MotRelationIndex(mr, info->indexoid);
			bool		ordered = index != NULL;

			for (int i = 0; ordered && i < index->key->ncolumns; i++)
				ordered = index->key->columns[i].ordered;
			if (!ordered)
				info->sortopfamily = NULL;
			Assert(!info->amhasgetbitmap);
			info->amhasgetbitmap = false;
			info->pages = 0;
		}
		RelationClose(relation);
	}
}

void
MotTableIndexInit(void)
{
	MotIndexesPutBack = put_back;
	prev_get_relation_info = get_relation_info_hook;
	get_relation_info_hook = planner_relation;
	RegisterXactCallback(forget_trial, NULL);
	RegisterSubXactCallback(forget_trial_sub, NULL);
}
