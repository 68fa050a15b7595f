/*-------------------------------------------------------------------------
 *
 * sorted.c
 *	  An index scan for a snapshot older than the index.
 *
 * An index that was built after a REPEATABLE READ transaction took its
 * snapshot has no entries for the older versions that transaction sees.  Its
 * plans may use the index all the same, and rely on its order.  Then the
 * whole table is read, and the rows that satisfy the conditions are sorted by
 * the keys they have in that snapshot.  Among them can be nulls in columns that
 * have become NOT NULL since, of which index and bounds know nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fdw/fdw.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct MotSortedRow
{
	uint8	   *key;
	size_t		len;
	mot_row    *row;
	const mot_version *version;
} MotSortedRow;

typedef struct MotSorted
{
	MemoryContext cxt;			/* all of it */
	size_t		nrows;
	size_t		size;
	size_t		next;
	MotSortedRow *rows;
} MotSorted;

/* the index's key, but with nulls in every column */
static MotKey *
nullable_key(const MotKey *key)
{
	Size		size = offsetof(MotKey, columns) + key->ncolumns * sizeof(MotKeyColumn);
	MotKey	   *result = memcpy(palloc(size), key, size);

	result->width = -1;
	result->all_inline = false;
	for (int i = 0; i < key->ncolumns; i++)
		result->columns[i].nullable = true;
	return result;
}

static int
compare_rows(const void *a, const void *b)
{
	const MotSortedRow *ra = (const MotSortedRow *) a;
	const MotSortedRow *rb = (const MotSortedRow *) b;

	return MotKeysCompare(ra->key, ra->len, rb->key, rb->len);
}

void
MotSortedFill(MotScan *scan, ExprContext *econtext)
{
	MotIndex   *index = scan->keys->index;
	const MotKey *key;
	Datum		key_values[INDEX_MAX_KEYS];
	bool		key_isnull[INDEX_MAX_KEYS];
	TupleTableSlot *slot = scan->node->ss.ss_ScanTupleSlot;
	ExprState  *quals = MotScanRecheck(scan);
	MemoryContext cxt = AllocSetContextCreate(scan->node->ss.ps.state->es_query_cxt,
											  "mot sorted rows", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	MotSorted  *sorted;
	MotKeyBuffer buf;

	oldcxt = MemoryContextSwitchTo(cxt);
	sorted = palloc(sizeof(MotSorted));
	sorted->cxt = cxt;
	sorted->nrows = 0;
	sorted->size = 64;
	sorted->rows = palloc(sorted->size * sizeof(MotSortedRow));
	MotKeyBufferInit(&buf, cxt);
	key = nullable_key(index->key);
	MemoryContextSwitchTo(oldcxt);

	mot_scan_begin(scan->session, &scan->table_scan, scan->relation->table, &scan->view, NULL);
	while (mot_scan_next(scan->session, &scan->table_scan, &scan->row, &scan->version))
	{
		MotSortedRow *row;
		bool		has_null;

		CHECK_FOR_INTERRUPTS();
		MotSlotShow(slot, scan->version);
		econtext->ecxt_scantuple = slot;
		if (!ExecQual(quals, econtext))
			continue;
		slot_getsomeattrs(slot, MotIndexColumns(index));
		if (key->computed && !MotIndexCompute(index, slot->tts_values, slot->tts_isnull, key_values, key_isnull))
			continue;
		MotKeyBufferReset(&buf);
		MotKeyFromRow(key, key->computed ? key_values : slot->tts_values,
					  key->computed ? key_isnull : slot->tts_isnull, &buf, &has_null);

		if (sorted->nrows == sorted->size)
		{
			sorted->size *= 2;
			sorted->rows = repalloc_huge(sorted->rows, sorted->size * sizeof(MotSortedRow));
		}
		row = &sorted->rows[sorted->nrows++];
		row->key = MemoryContextAlloc(cxt, Max(1, buf.len));
		memcpy(row->key, buf.data, buf.len);
		row->len = buf.len;
		row->row = scan->row;
		row->version = scan->version;
	}
	ExecClearTuple(slot);
	qsort(sorted->rows, sorted->nrows, sizeof(MotSortedRow), compare_rows);
	sorted->next = 0;
	scan->sorted = sorted;
}

bool
MotSortedNext(MotScan *scan)
{
	MotSorted  *sorted = scan->sorted;
	MotSortedRow *row;

	if (sorted->next >= sorted->nrows)
	{
		scan->phase = MOT_SCAN_DONE;
		return false;
	}
	row = &sorted->rows[scan->keys->backward ? sorted->nrows - 1 - sorted->next : sorted->next];
	sorted->next++;
	scan->row = row->row;
	scan->version = row->version;
	return true;
}

/* The scan starts over, or its plan rests. */
void
MotSortedDrop(MotScan *scan)
{
	if (unlikely(scan->sorted != NULL))
		MemoryContextDelete(scan->sorted->cxt);
	scan->sorted = NULL;
}
