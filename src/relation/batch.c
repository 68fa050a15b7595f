/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  Many new rows of one table, written together: inserted, or loaded.
 *
 * Rows set aside are in nobody's sight, as those in heap's multi-insert
 * buffers: their bytes, in the form the engine stores, and their keys are in
 * private memory, and the values they were made from may go.  Of those that stay
 * (COPY's slots, MOT_BATCH_INSERT_SLOTS) the bytes are made where the row is stored.
 *
 * A batch is inserted in one pass for the rows with their first keys (the
 * engine journals these two as one) and one pass for each further index, so
 * that one tree at a time is in the processor's caches.  Yet the error is the
 * one that row after row would have met: the first row in trouble, and its
 * first index.  When a duplicate turns up, the remaining indexes are still
 * tried for the rows before it.  Keys that are computed may raise errors of their own as
 * they are made, so of a table that has such each row is a batch.
 *
 * Loading is without concurrency control, into a table that the transaction
 * made and would drop when it aborts.  Rows loaded are there at once, so each
 * gets all its keys before the next; or none gets any, and the indexes are
 * built when all rows are there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "utils/memutils.h"
#include "xact/xact.h"

/* memory for rows that is kept from one batch to the next */
#define ROWS_KEPT (256 * 1024)

typedef struct BatchRow
{
	Datum	   *values;			/* that stay, or NULL */
	bool	   *isnull;
	size_t		offset;			/* of its bytes */
	size_t		size;
	unsigned	host_bits;
	uint64		number;
	mot_row    *row;			/* once stored */
} BatchRow;

Oid			MotLoadRelid = InvalidOid;

/* keys of all rows for one index, one behind the other */
typedef struct BatchKeys
{
	MotKeyBuffer bytes;
	size_t		end[MOT_BATCH_ROWS];
	unsigned	flags[MOT_BATCH_ROWS];
} BatchKeys;

struct MotBatch
{
	MotWriter  *writer;
	MotBatchMode mode;
	uint64	   *current;
	char	   *data;			/* the rows' bytes */
	size_t		used;
	size_t		size;
	int			nrows;
	int			maxrows;
	int			nindexes;
	BatchKeys  *keys;			/* of each index */
	BatchRow	rows[MOT_BATCH_ROWS];
};

MotBatch *
MotBatchBegin(MotWriter *writer, MotBatchMode mode, uint64 *current)
{
	MotBatch   *batch = palloc(sizeof(MotBatch));

	batch->writer = writer;
	batch->mode = mode;
	batch->current = current;

	/* keys are made before anything is written */
	MotWriterRefresh(writer);
	batch->used = 0;
	batch->size = 8192;
	batch->data = palloc(batch->size);
	batch->nrows = 0;
	batch->nindexes = mode == MOT_BATCH_LOAD_ROWS ? 0 : writer->mr->nindexes;
	batch->maxrows = batch->nindexes > 0 && writer->mr->has_computed ? 1 : MOT_BATCH_ROWS;
	batch->keys = palloc(Max(batch->nindexes, 1) * sizeof(BatchKeys));
	for (int i = 0; i < batch->nindexes; i++)
		MotKeyBufferInit(&batch->keys[i].bytes, CurrentMemoryContext);
	return batch;
}

void
MotBatchEnd(MotBatch *batch)
{
	for (int i = 0; i < batch->nindexes; i++)
		if (batch->keys[i].bytes.data != batch->keys[i].bytes.fixed)
			pfree(batch->keys[i].bytes.data);
	pfree(batch->keys);
	pfree(batch->data);
	pfree(batch);
}

int
MotBatchRows(const MotBatch *batch)
{
	return batch->nrows;
}

bool
MotBatchFull(const MotBatch *batch)
{
	return batch->nrows >= batch->maxrows || batch->used >= MOT_BATCH_BYTES;
}

/* room for a row's bytes */
static char *
reserve(MotBatch *batch, size_t size)
{
	if (unlikely(batch->size - batch->used < size))
	{
		batch->size = Max(2 * batch->size, batch->used + size);
		batch->data = repalloc_huge(batch->data, batch->size);
	}
	return batch->data + batch->used;
}

size_t
MotBatchAdd(MotBatch *batch, Datum *values, bool *isnull, uint64 number)
{
	MotWriter  *writer = batch->writer;
	MotRelation *mr = writer->mr;
	int			n = batch->nrows;
	BatchRow   *r = &batch->rows[n];
	Datum	   *given = values;

	Assert(n < MOT_BATCH_ROWS);
	values = MotWriterMeasure(writer, given, isnull, NULL, &r->size, &r->host_bits);
	r->values = NULL;
	if (batch->mode == MOT_BATCH_INSERT_SLOTS && values == given && (r->host_bits & MOT_ROW_HAS_TAIL) == 0)
	{
		r->values = values;
		r->isnull = isnull;
	}
	else
	{
		MotWriterFill(writer, values, isnull, r->host_bits, r->size, reserve(batch, r->size));
		r->offset = batch->used;
		batch->used += r->size;
	}
	for (int i = 0; i < batch->nindexes; i++)
	{
		BatchKeys  *keys = &batch->keys[i];

		keys->flags[n] = MotKeyOfRow(mr->indexes[i].key, MotWriterTail(writer), values, isnull, &keys->bytes);
		keys->end[n] = keys->bytes.len;
	}
	r->number = number;
	batch->nrows++;
	return r->size;
}

static inline const void *
key_of(const MotBatch *batch, int index, int n, size_t *len)
{
	const BatchKeys *keys = &batch->keys[index];
	size_t		start = n == 0 ? 0 : keys->end[n - 1];

	*len = keys->end[n] - start;
	return keys->bytes.data + start;
}

/* of a table whose ranges live on nodes: where row n is to be */
static void
place_row(MotBatch *batch, int n)
{
	const MotWriter *writer = batch->writer;
	Oid			placed_by = mot_table_placed_by(writer->mr->table);

	for (int i = 0; unlikely(placed_by != InvalidOid) && i < batch->nindexes; i++)
		if (writer->mr->indexes[i].indexoid == placed_by)
		{
			size_t		len;
			const void *key = key_of(batch, i, n, &len);

			mot_row_place(writer->session, writer->mr->table, key, len);
		}
}

static inline void
set_current(MotBatch *batch, int n)
{
	if (batch->current != NULL)
		*batch->current = batch->rows[n].number;
}

static void
raise_duplicate(MotBatch *batch, int n, int index)
{
	MotIndex   *mi = &batch->writer->mr->indexes[index];
	BatchRow   *r = &batch->rows[n];

	set_current(batch, n);
	if (r->values != NULL)
		MotRaiseDuplicate(batch->writer->rel, mi, r->values, r->isnull);
	MotRowDeformBytes(mi->desc, r->host_bits, batch->data + r->offset,
					  MotIndexColumns(mi), mi->check_values, mi->check_isnull);
	MotRaiseDuplicate(batch->writer->rel, mi, mi->check_values, mi->check_isnull);
}

/* ----------------------------------------------------------------- insert */

/* false: a live row has the key */
static inline bool
insert_key(MotBatch *batch, int index, int n)
{
	MotWriter  *writer = batch->writer;
	size_t		len;
	const void *key = key_of(batch, index, n, &len);
	mot_row    *other;
	mot_status	status;

	set_current(batch, n);
	if (unlikely(writer->mr->indexes[index].key->blind) && writer->mr->indexes[index].unique)
		MotRaiseBlindIndex(&writer->mr->indexes[index]);
	while ((status = mot_index_add(writer->session, &writer->mr->indexes[index].handle,
								   batch->rows[n].row, key, len,
								   batch->keys[index].flags[n], &other)) == MOT_BUSY)
		MotWaitForKey(writer->rel);
	if (unlikely(status != MOT_OK && status != MOT_DUPLICATE))
		MotRaiseStatus(status, writer->rel);
	return status == MOT_OK;
}

static int64
insert_rows(MotBatch *batch, MotIndex **index)
{
	MotWriter  *writer = batch->writer;
	int			violated = -1;	/* an index */
	int			limit = batch->nrows;	/* rows that may still be the first in
										 * trouble */

	for (int n = 0; n < limit; n++)
	{
		BatchRow   *r = &batch->rows[n];
		void	   *data;
		mot_status	status;

		place_row(batch, n);
		status = mot_row_insert(writer->session, writer->mr->table, writer->command,
								r->host_bits, r->size, &r->row, &data);
		if (unlikely(status != MOT_OK))
		{
			set_current(batch, n);
			MotRaiseStatus(status, writer->rel);
		}
		if (r->values != NULL)
			MotRowFill(&writer->mr->shape, r->values, r->isnull, r->host_bits, r->size, data);
		else
			memcpy(data, batch->data + r->offset, r->size);
		if (unlikely(MotIslandsCounting))
			MotRelationTouched(writer->mr, mot_row_newest(writer->session, r->row), 1, true);
		MotWriterExpectLog(writer, r->size);
		if (batch->nindexes > 0 && !insert_key(batch, 0, n))
		{
			violated = 0;
			limit = n;
		}
	}
	for (int i = 1; i < batch->nindexes; i++)
	{
		for (int n = 0; n < limit; n++)
		{
			if (!insert_key(batch, i, n))
			{
				violated = i;
				limit = n;
			}
		}
	}
	if (violated < 0)
	{
		if (unlikely(XLogLogicalInfoActive()))
			MotLogicalInserts(writer, batch);
		return -1;
	}
	if (index == NULL)
		raise_duplicate(batch, limit, violated);
	*index = &writer->mr->indexes[violated];
	return (int64) batch->rows[limit].number;
}

/* ------------------------------------------------------------------- load */

static void
load_row(MotBatch *batch, int n)
{
	MotWriter  *writer = batch->writer;
	MotRelation *mr = writer->mr;
	BatchRow   *r = &batch->rows[n];
	void	   *data;
	mot_row    *other;
	mot_status	status;

	set_current(batch, n);
	place_row(batch, n);
	status = mot_load_row(writer->session, mr->table, r->host_bits, r->size, &r->row, &data);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
	memcpy(data, batch->data + r->offset, r->size);

	for (int i = 0; i < batch->nindexes; i++)
	{
		size_t		len;
		const void *key = key_of(batch, i, n, &len);

		status = mot_load_key(writer->session, &mr->indexes[i].handle, r->row,
							  key, len, batch->keys[i].flags[n], &other);
		if (likely(status == MOT_OK))
			continue;

		/* take the row back: it would stay if only a savepoint is rolled back */
		for (int j = 0; j < i; j++)
		{
			key = key_of(batch, j, n, &len);
			mot_unload_key(writer->session, &mr->indexes[j].handle, r->row,
						   key, len, batch->keys[j].flags[n]);
		}
		mot_unload_row(writer->session, mr->table, r->row);

		if (status == MOT_DUPLICATE)
			raise_duplicate(batch, n, i);
		MotRaiseStatus(status, writer->rel);
	}
}

mot_row *
MotBatchRow(const MotBatch *batch, int n)
{
	return batch->rows[n].row;
}

/* The batch is empty afterwards. */
int64
MotBatchWrite(MotBatch *batch, MotIndex **index)
{
	MotWriter  *writer = batch->writer;
	bool		inserts = batch->mode == MOT_BATCH_INSERT || batch->mode == MOT_BATCH_INSERT_SLOTS;
	int64		violating = -1;

	if (batch->nrows == 0)
		return -1;
	if (inserts)
		MotWriterLocate(writer);
	else
		MotWriterRefresh(writer);
	if (batch->mode != MOT_BATCH_LOAD_ROWS && writer->mr->nindexes != batch->nindexes)
		elog(ERROR, "indexes of table \"%s\" have changed", RelationGetRelationName(writer->rel));

	if (inserts)
		violating = insert_rows(batch, index);
	else
	{
		for (int n = 0; n < batch->nrows; n++)
			load_row(batch, n);
	}

	batch->nrows = 0;
	batch->used = 0;
	for (int i = 0; i < batch->nindexes; i++)
		MotKeyBufferReset(&batch->keys[i].bytes);
	if (batch->size > ROWS_KEPT)
	{
		batch->size = ROWS_KEPT;
		batch->data = repalloc_huge(batch->data, batch->size);
	}
	return violating;
}

void
MotBatchLoad(Relation rel, Tuplestorestate *store, TupleDesc desc)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	MemoryContext rowcxt = AllocSetContextCreate(CurrentMemoryContext, "mot row",
												 ALLOCSET_DEFAULT_SIZES);
	MotWriter  *writer = MotWriterBegin(rel, NULL, GetCurrentCommandId(true));
	MotBatch   *batch = MotBatchBegin(writer, MOT_BATCH_LOAD_ROWS, NULL);

	while (tuplestore_gettupleslot(store, true, false, slot))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(rowcxt);

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		MotBatchAdd(batch, slot->tts_values, slot->tts_isnull, 0);
		if (MotBatchFull(batch))
			(void) MotBatchWrite(batch, NULL);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(rowcxt);
	}
	(void) MotBatchWrite(batch, NULL);
	MotBatchEnd(batch);
	MotWriterEnd(writer);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(rowcxt);
}
