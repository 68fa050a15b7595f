/*-------------------------------------------------------------------------
 *
 * indexscan.c
 *	  Reading ordinary tables by their indexes.
 *
 * What the conditions bound is not all that they say (types that are compared by
 * conversion, text whose keys do not have its collation's order), so those
 * that do more than fix a column are asked again of each row.
 *
 * A scan that turns round (cursors), or whose snapshot is older than the index, puts
 * down all its rows; one that is to come back to a place (merge joins) those from there on.
 *
 * There are no index tuples: a scan of the index only gets the columns from the row.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/amapi.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "relation/keys.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "xact/held.h"

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
	MotKeyCursor cursor;
	mot_row    *row;			/* the one that was handed out last */
	const mot_version *version;
	MemoryContext cxt;			/* of everything below; reset by amrescan */
	int			nchecks;
	Check	   *checks;
	MotFoundRows items;			/* SCAN_ITEMS: all rows, as the index has them */
	bool		keeping;		/* or those from the mark on, as they came */
	int64		at;				/* among them: the one that was handed out
								 * last */
	int64		mark;
	int			ncolumns;		/* of the table, as far as the index has them */
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

/* -------------------------------------------------------------- conditions */

static Oid
value_type(IndexScanDesc scan, const MotKeyColumn *column, ScanKey key)
{
	if (!OidIsValid(key->sk_subtype) || key->sk_subtype == scan->indexRelation->rd_opcintype[key->sk_attno - 1])
		return column->typid;
	return key->sk_subtype;
}

/* what a ranked column's bounds are found for: its function compares nothing else */
static bool
is_bound(IndexScanDesc scan, const MotKeyColumn *column, ScanKey key)
{
	return !column->ranked || value_type(scan, column, key) == column->typid;
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
		is_bound(scan, column, key) &&
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

		if (range->sk_attno != column + 1 || !key->columns[column].ordered ||
			(range->sk_flags & (SK_ROW_HEADER | SK_SEARCHARRAY | SK_SEARCHNULL | SK_SEARCHNOTNULL)) != 0 ||
			!is_bound(scan, &key->columns[column], range))
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
		return MotStrategyHolds(part->sk_strategy, cmp);
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

/*
 * what "values" has of the row then is where the key's columns say; false: it is not in the index
 */
static bool
take_apart(MotTableIndexScan *o, const mot_version *version)
{
	MotRowDeform(o->relation->desc, version, MotIndexColumns(o->index), o->values, o->isnull);
	return !o->index->key->computed ||
		MotIndexCompute(o->index, o->values, o->isnull, o->values, o->isnull);
}

static bool
passes(MotTableIndexScan *o, const mot_version *version)
{
	const MotKey *key = o->index->key;

	if (o->nchecks == 0)
		return true;
	if (!take_apart(o, version))
		return false;
	for (int i = 0; i < o->nchecks; i++)
		if (!satisfies(&o->checks[i], key, o->values, o->isnull))
			return false;
	return true;
}

/* -------------------------------------------------------------------- scans */

IndexScanDesc
MotIndexScanBegin(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan;

	/*
	 * a scan is wholly btree's or wholly ours: runtime keys come later, and
	 * another scan may be between
	 */
	if (unlikely(!MotIsOrdinaryTable(index->rd_index->indrelid)))
		return MotIndexPutBack(index)->ambeginscan(index, nkeys, norderbys);
	scan = RelationGetIndexScan(index, nkeys, norderbys);
	scan->opaque = NULL;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

/* the memory of a scan begun by btree is left to its context */
void
MotIndexScanAgain(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
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
	MotKeyCursorClose(&o->cursor);
	MemoryContextReset(o->cxt);
	o->phase = SCAN_START;
	o->cursor.cursor = NULL;
	o->keeping = false;
	o->row = NULL;
	scan->xs_hitup = NULL;
	scan->xs_hitupdesc = NULL;
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

void
MotIndexScanEnd(IndexScanDesc scan)
{
	MotTableIndexScan *o = scan->opaque;

	if (o == NULL || o->magic != SCAN_MAGIC)
		return;
	MotKeyCursorClose(&o->cursor);
	if (o->loose)
		MotLooseViewRelease();
	MemoryContextDelete(o->cxt);
	pfree(o);
	scan->opaque = NULL;
}

static void
open_cursor(MotTableIndexScan *o)
{
	MotKeyCursorOpen(&o->cursor, o->cxt, o->session, &o->view, o->keys, NULL);
}

static void
clear_items(MotTableIndexScan *o)
{
	memset(&o->items, 0, sizeof(o->items));
	o->items.cxt = o->cxt;
}

static bool
passes_checks(void *arg, const mot_version *version, Datum **values, bool **isnull)
{
	MotTableIndexScan *o = arg;

	if (!passes(o, version))
		return false;
	MotRowDeform(o->relation->desc, version, MotIndexColumns(o->index), o->values, o->isnull);
	*values = o->values;
	*isnull = o->isnull;
	return true;
}

/*
 * An exclusion constraint is checked by looking, and so is whether ON CONFLICT has
 * one: whoever may come to have the key, or to have it no more, is waited for.
 * (Where heap would put that off until the end of the transaction, too: who asks
 * is not known here.)
 */
static void
wait_for_rivals(Relation rel, MotTableIndexScan *o)
{
	mot_row    *other;

	if (o->keys->npoints < o->index->key->ncolumns)
		return;
	/* (where one has ended, its key may have another place) */
	while (MotKeysFirst(o->keys, NULL) && !o->keys->gap &&
		   mot_index_rivals(o->session, &o->index->handle, NULL, o->keys->lower.data, o->keys->lower.len,
							&other) == MOT_BUSY)
	{
		MotWaitForKey(rel);
		MotLooseViewRelease();
		o->view = MotLooseView();
	}
}

/* the rows to which the keys lead, or (NULL) of the table */
static void
sort_items(MotTableIndexScan *o, MotKeys *keys)
{
	clear_items(o);
	MotFoundSorted(&o->items, o->session, o->relation->table, &o->view, o->index, keys, passes_checks, o);
	o->at = o->backward ? o->items.n : -1;
	o->phase = SCAN_ITEMS;
}

static void
start(IndexScanDesc scan, Relation table, MotTableIndexScan *o, bool backward)
{
	Snapshot	snapshot = scan->xs_snapshot;
	MemoryContext oldcxt;

	o->relation = MotRelationGet(table);
	o->session = MotSession();
	o->index = MotRelationIndex(o->relation, RelationGetRelid(scan->indexRelation));
	if (o->index == NULL)
		elog(ERROR, "index \"%s\" is not there", RelationGetRelationName(scan->indexRelation));
	if (o->loose)
		MotLooseViewRelease();
	o->loose = snapshot->snapshot_type != SNAPSHOT_MVCC;
	o->view = o->loose ? MotLooseView() : MotTableView(snapshot);
	MotViewTable(o->relation, &o->view);
	/* the planner's, for the ends of an index, or CLUSTER's: no read */
	o->view.aside = snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE;
	if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
	{
		/*
		 * who is not through yet is waited for here, or met when the key is
		 * added
		 */
		snapshot->xmin = snapshot->xmax = InvalidTransactionId;
		snapshot->speculativeToken = 0;
	}

	o->backward = backward;
	oldcxt = MemoryContextSwitchTo(o->cxt);
	o->values = palloc(Max(o->relation->desc->natts, INDEX_MAX_KEYS) * sizeof(Datum));
	o->isnull = palloc(Max(o->relation->desc->natts, INDEX_MAX_KEYS) * sizeof(bool));
	make_keys(scan, o);
	if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
		wait_for_rivals(table, o);
	o->keys->view = &o->view;
	if (o->view.snapshot < mot_index_valid_from(o->index->handle.index))
	{
		o->nchecks = 0;
		for (int i = 0; i < scan->numberOfKeys; i++)
			add_check(o, &scan->keyData[i]);
		sort_items(o, NULL);
	}
	else if (!MotKeysFirst(o->keys, NULL))
		o->phase = SCAN_DONE;
	else if (unlikely(o->keys->astray))
		sort_items(o, o->keys);
	else
	{
		MotCountIndexSearch(scan);
		if (!o->keys->get)
			open_cursor(o);
		o->phase = SCAN_RUNNING;
	}
	MemoryContextSwitchTo(oldcxt);
	pgstat_count_index_scan(scan->indexRelation);
}

/* the next row of the ranges */
static bool
next_row(IndexScanDesc scan, MotTableIndexScan *o, mot_row **row, const mot_version **version)
{
	static unsigned steps = 0;

	while (o->phase == SCAN_RUNNING)
	{
		bool		found = false;
		mot_status	status = MOT_NOT_FOUND;

		if (unlikely(++steps % MOT_HELD_ROWS == 0) && !o->loose)
			MotHeldCheck();
		if (!o->keys->get)
			found = mot_cursor_next(o->cursor.cursor, row, version);
		else
		{
			status = MotKeysGet(o->keys, o->session, &o->view, row, version);
			if (status != MOT_OK && status != MOT_NOT_FOUND && status != MOT_AND_ANOTHER)
				MotRaiseStatus(status, NULL);
			found = status != MOT_NOT_FOUND;
		}
		if ((!found || o->keys->get) && likely(status != MOT_AND_ANOTHER))
		{
			MotKeyCursorClose(&o->cursor);
			if (!MotKeysNext(o->keys))
				o->phase = SCAN_DONE;
			else
			{
				MotCountIndexSearch(scan);
				if (!o->keys->get)
					open_cursor(o);
			}
		}
		if (found && passes(o, *version))
		{
			if (unlikely(MotIslandsCounting))
				MotRelationTouchedNext(o->relation, *version, o->keys->get ? 0 : o->cursor.rows++);
			return true;
		}
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/*
 * The scan turns round: all its rows are put down, and the place where it was found among them.
 * They come as they have come so far: two rows of one key (see mot_index_get) have the same order in
 * both directions.
 */
static void
turn(IndexScanDesc scan, MotTableIndexScan *o)
{
	mot_row    *was = o->row;
	bool		at_end = o->row == NULL;
	bool		backward = o->backward;
	mot_row    *row;
	const mot_version *version;

	MotKeyCursorClose(&o->cursor);
	clear_items(o);
	o->phase = SCAN_DONE;
	if (MotKeysFirst(o->keys, NULL))
	{
		if (unlikely(o->keys->astray))
			sort_items(o, o->keys);
		else
		{
			if (!o->keys->get)
				open_cursor(o);
			o->phase = SCAN_RUNNING;
		}
	}
	if (likely(o->phase != SCAN_ITEMS))
	{
		while (next_row(scan, o, &row, &version))
			MotFoundAdd(&o->items, row, version);
		for (int64 i = 0, j = o->items.n - 1; backward && i < j; i++, j--)
		{
			MotFound	found = o->items.rows[i];

			o->items.rows[i] = o->items.rows[j];
			o->items.rows[j] = found;
		}
	}
	o->backward = o->keys->backward = false;
	o->at = -1;
	for (int64 i = 0; i < o->items.n; i++)
		if (o->items.rows[i].row == was)
			o->at = i;
	if (at_end)
		o->at = backward ? -1 : o->items.n;
	o->phase = SCAN_ITEMS;
}

/* What a scan of the index only is given: the table's columns, in the index's order. */
static void
form_row(IndexScanDesc scan, MotTableIndexScan *o, const mot_version *version)
{
	TupleDesc	table = o->relation->desc;
	Form_pg_index form = scan->indexRelation->rd_index;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext oldcxt = MemoryContextSwitchTo(o->cxt);

	if (scan->xs_hitupdesc == NULL)
	{
		o->ncolumns = 0;
		scan->xs_hitupdesc = CreateTemplateTupleDesc(form->indnatts);
		for (int i = 0; i < form->indnatts; i++)
		{
			int			att = form->indkey.values[i];

			/* (of a computed one nobody asks for the value) */
			TupleDescCopyEntry(scan->xs_hitupdesc, i + 1,
							   att != 0 ? table : RelationGetDescr(scan->indexRelation), att != 0 ? att : i + 1);
			o->ncolumns = Max(o->ncolumns, att);
		}
		MotDescMade(scan->xs_hitupdesc);
	}
	MotRowDeform(table, version, o->ncolumns, o->values, o->isnull);
	for (int i = 0; i < form->indnatts; i++)
	{
		int			att = form->indkey.values[i];

		isnull[i] = att == 0 || o->isnull[att - 1];
		values[i] = isnull[i] ? (Datum) 0 : o->values[att - 1];
	}
	if (scan->xs_hitup != NULL)
		heap_freetuple(scan->xs_hitup);
	scan->xs_hitup = heap_form_tuple(scan->xs_hitupdesc, values, isnull);
	MemoryContextSwitchTo(oldcxt);
}

/*
 * The planner looks for the ends of an index, and takes an index tuple, of which it looks at the
 * first column.  The others need not fit into one.
 */
static void
form_tuple(IndexScanDesc scan, MotTableIndexScan *o, const mot_version *version)
{
	TupleDesc	desc = RelationGetDescr(scan->indexRelation);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	/* (what is computed has INCLUDE's columns, too) */
	MotRowDeform(o->relation->desc, version, o->relation->desc->natts, o->values, o->isnull);
	if (o->index->key->computed)
		(void) MotIndexCompute(o->index, o->values, o->isnull, values, isnull);
	else
	{
		int			att = scan->indexRelation->rd_index->indkey.values[0] - 1;

		values[0] = o->values[att];
		isnull[0] = o->isnull[att];
	}
	memset(isnull + 1, true, (desc->natts - 1) * sizeof(bool));
	MotWithin(o->cxt, scan->xs_itup = index_form_tuple(desc, values, isnull));
}

/*
 * All rows of a scan, which begins anew.  That may have been begun by btree: of the table
 * such a scan knows nothing until its bitmap is asked for.
 */
int64
MotIndexScanBitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	MotTableIndexScan *o = scan->opaque;
	Relation	table = RelationIdGetRelation(scan->indexRelation->rd_index->indrelid);
	mot_row    *row;
	const mot_version *version;
	int64		n = 0;
	MemoryContext oldcxt;

	if (o == NULL || o->magic != SCAN_MAGIC)
		MotIndexScanAgain(scan, NULL, 0, NULL, 0);
	o = scan->opaque;
	start(scan, table, o, false);
	oldcxt = MemoryContextSwitchTo(o->cxt);
	if (o->phase == SCAN_ITEMS)
		for (n = 0; n < o->items.n; n++)
			MotBitmapAdd(bitmap, o->session, o->items.rows[n].row);
	else
		for (; next_row(scan, o, &row, &version); n++)
			MotBitmapAdd(bitmap, o->session, row);
	MemoryContextSwitchTo(oldcxt);
	RelationClose(table);
	return n;
}

bool
MotIndexScanGet(IndexScanDesc scan, ScanDirection direction)
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
		start(scan, scan->heapRelation, o, backward);
	else if (o->phase != SCAN_ITEMS && backward != o->backward)
		turn(scan, o);
	if (o->phase == SCAN_ITEMS || (o->keeping && o->at < o->items.n - 1))
	{
		bool		down = backward && o->phase == SCAN_ITEMS;

		if (down ? o->at >= 0 : o->at < o->items.n)
			o->at += down ? -1 : 1;
		if (o->at >= 0 && o->at < o->items.n)
		{
			row = o->items.rows[o->at].row;
			version = o->items.rows[o->at].version;
		}
	}
	else if (!next_row(scan, o, &row, &version))
		row = NULL;
	else if (o->keeping)
	{
		MotFoundAdd(&o->items, row, version);
		o->at++;
	}
	MemoryContextSwitchTo(oldcxt);
	/* NULL: it is past its end */
	o->row = row;
	o->version = version;
	if (row == NULL)
		return false;
	if (unlikely(o->loose))
		MotConflictFound(row, version);

	if (mot_version_ts(version) == 0)
		changes = mot_version_changes(row, version);
	/* (who builds an exclusion constraint compares with ids of a scan) */
	else if (o->loose && (!scan->indexRelation->rd_index->indisexclusion ||
						  (scan->indexRelation->rd_createSubid == InvalidSubTransactionId &&
						   scan->indexRelation->rd_newRelfilelocatorSubid == InvalidSubTransactionId)))
		changes = MOT_TID_LOCKED;
	MotVersionToTid(o->session, row, changes, &scan->xs_heaptid);
	scan->xs_recheck = false;
	if (fetch != NULL)
	{
		fetch->row = row;
		fetch->version = version;
		fetch->tid = scan->xs_heaptid;
	}
	if (scan->xs_want_itup && !o->loose)
		form_row(scan, o, version);
	else if (scan->xs_want_itup)
		form_tuple(scan, o, version);
	return true;
}

/* A merge join comes back to its inner side's place where equal keys began. */
void
MotIndexScanMark(IndexScanDesc scan)
{
	MotTableIndexScan *o = scan->opaque;

	if (o == NULL || o->magic != SCAN_MAGIC || o->row == NULL)
		elog(ERROR, "scan of index \"%s\" is at no row that could be marked", RelationGetRelationName(scan->indexRelation));
	if (o->phase != SCAN_ITEMS && o->keeping)
	{
		/* from here on only */
		o->items.n -= o->at;
		memmove(o->items.rows, o->items.rows + o->at, o->items.n * sizeof(MotFound));
		o->at = 0;
	}
	else if (o->phase != SCAN_ITEMS)
	{
		o->keeping = true;
		clear_items(o);
		MotFoundAdd(&o->items, o->row, o->version);
		o->at = 0;
	}
	o->mark = o->at;
}

void
MotIndexScanRestore(IndexScanDesc scan)
{
	MotTableIndexScan *o = scan->opaque;

	if (o->phase != SCAN_ITEMS && !o->keeping)
		elog(ERROR, "scan of index \"%s\" has no mark", RelationGetRelationName(scan->indexRelation));
	o->at = o->mark;
}

/* ------------------------------------------------------- rows for index scans */

struct IndexFetchTableData *
MotTableFetchBegin(MOT_FETCH_PARAMETERS)
{
	MotTableFetch *fetch = palloc0(sizeof(MotTableFetch));

	MotTableIndexes(rel);
	fetch->base.rel = rel;
	MotFetchFlags(&fetch->base);
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
	/* a key that has been deferred is about to be checked: not a scan */
	if (fetch->row == NULL && snapshot->snapshot_type == SNAPSHOT_SELF)
	{
		if (!MotFetchVersion(data->rel, tid, snapshot, slot))
			return false;
		*tid = slot->tts_tid;
		return true;
	}
	if (fetch->row == NULL || !ItemPointerEquals(tid, &fetch->tid))
		elog(ERROR, "index of memory-optimized table \"%s\" was read as if it were a btree",
			 RelationGetRelationName(data->rel));
	MotTableShow(data->rel, fetch->row, fetch->version, 0, slot);
	slot->tts_tid = *tid;
	return true;
}
