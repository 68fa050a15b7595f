/*-------------------------------------------------------------------------
 *
 * result.c
 *	  The slot for rows that a node computes.
 *
 * A virtual slot, but for one thing: PL/pgSQL and SPI take a copy of each row
 * as a heap tuple.  Where no column is null, the header of one such tuple
 * is that of the next; and where all columns are of fixed width and passed by
 * value, so is everything but the values.  So a tuple is the last one's bytes
 * with others in their places, as far as they have one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "compat/calls.h"
#include "statement/statement.h"
#include "utils/memutils.h"

typedef struct ResultColumn
{
	uint32		offset;			/* if it is before all of variable length */
	MotColumnShape shape;
} ResultColumn;

typedef struct ResultSlot
{
	VirtualTupleTableSlot base;
	HeapTuple	pattern;		/* NULL: no tuple has been formed yet */
	int			nfixed;			/* columns that have their places */
	uint32		behind;			/* where these end */
	ResultColumn *columns;
} ResultSlot;

static TupleTableSlotOps ops;

/* From a tuple without nulls and values that lie elsewhere. */
static void
make_pattern(ResultSlot *result, HeapTuple tuple)
{
	TupleDesc	desc = result->base.base.tts_tupleDescriptor;
	MemoryContext cxt = result->base.base.tts_mcxt;

	result->columns = MemoryContextAlloc(cxt, Max(desc->natts, 1) * sizeof(ResultColumn));
	result->behind = tuple->t_data->t_hoff;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		ResultColumn *column = &result->columns[i];

		MotColumnShapeInit(&column->shape, att);
		if (att->attbyval && result->nfixed == i)
		{
			column->offset = TYPEALIGN(column->shape.align, result->behind);
			result->behind = column->offset + att->attlen;
			result->nfixed++;
		}
	}
	result->pattern = MemoryContextAlloc(cxt, HEAPTUPLESIZE + tuple->t_len);
	memcpy(result->pattern, tuple, HEAPTUPLESIZE + tuple->t_len);
}

/* How long a tuple with these values is; 0: one of them is to be fetched or flattened first. */
static uint32
measure(const ResultSlot *result, int natts, const Datum *values)
{
	Size		off = result->behind;

	for (int i = result->nfixed; i < natts; i++)
	{
		const ResultColumn *column = &result->columns[i];

		if (column->shape.length > 0)
			off = TYPEALIGN(column->shape.align, off) + column->shape.length;
		else if (column->shape.length == -1)
		{
			const char *value = DatumGetPointer(values[i]);

			if (VARATT_IS_SHORT(value))
			{
				if (VARATT_IS_EXTERNAL(value))
					return 0;
				off += VARSIZE_SHORT(value);
			}
			else if (column->shape.packable && VARATT_CAN_MAKE_SHORT(value))
				off += VARATT_CONVERTED_SHORT_SIZE(value);
			else
				off = TYPEALIGN(column->shape.align, off) + VARSIZE(value);
		}
		else
			off += strlen(DatumGetCString(values[i])) + 1;
		if (off > MaxAllocSize / 2)
			return 0;
	}
	return (uint32) off;
}

/* the next place for a value, the bytes up to it zeroed */
static inline char *
pad_to(char *p, const ResultColumn *column)
{
	char	   *aligned = (char *) TYPEALIGN(column->shape.align, p);

	while (p < aligned)
		*p++ = 0;
	return aligned;
}

/* The columns that have no places of their own. */
static void
fill(const ResultSlot *result, int natts, const Datum *values, char *p)
{
	for (int i = result->nfixed; i < natts; i++)
	{
		const ResultColumn *column = &result->columns[i];
		const char *value = DatumGetPointer(values[i]);
		Size		length;

		if (column->shape.byval)
		{
			p = pad_to(p, column);
			store_att_byval(p, values[i], column->shape.length);
			p += column->shape.length;
			continue;
		}
		if (column->shape.length > 0)
		{
			p = pad_to(p, column);
			length = column->shape.length;
		}
		else if (column->shape.length == -2)
			length = strlen(value) + 1;
		else if (VARATT_IS_SHORT(value))
			length = VARSIZE_SHORT(value);
		else if (column->shape.packable && VARATT_CAN_MAKE_SHORT(value))
		{
			length = VARATT_CONVERTED_SHORT_SIZE(value);
			SET_VARSIZE_SHORT(p, length);
			p++;
			length--;
			value = VARDATA(value);
		}
		else
		{
			p = pad_to(p, column);
			length = VARSIZE(value);
		}
		memcpy(p, value, length);
		p += length;
	}
}

static HeapTuple
copy_heap_tuple(TupleTableSlot *slot)
{
	ResultSlot *result = (ResultSlot *) slot;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	int			natts = desc->natts;
	HeapTuple	tuple;
	uint32		size;

	for (int i = 0; i < natts; i++)
		if (slot->tts_isnull[i])
			return TTSOpsVirtual.copy_heap_tuple(slot);

	if (unlikely(result->pattern == NULL))
	{
		tuple = TTSOpsVirtual.copy_heap_tuple(slot);
		if ((tuple->t_data->t_infomask & HEAP_HASEXTERNAL) == 0)
			make_pattern(result, tuple);
		return tuple;
	}

	size = measure(result, natts, slot->tts_values);
	if (unlikely(size == 0))
		return TTSOpsVirtual.copy_heap_tuple(slot);
	tuple = palloc(HEAPTUPLESIZE + size);
	memcpy(tuple, result->pattern, HEAPTUPLESIZE + result->behind);
	tuple->t_len = size;
	tuple->t_data = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);
	/* the row type may have become a known one since */
	HeapTupleHeaderSetDatumLength(tuple->t_data, size);
	HeapTupleHeaderSetTypeId(tuple->t_data, desc->tdtypeid);
	HeapTupleHeaderSetTypMod(tuple->t_data, desc->tdtypmod);
	for (int i = 0; i < result->nfixed; i++)
	{
		const ResultColumn *column = &result->columns[i];

		store_att_byval((char *) tuple->t_data + column->offset, slot->tts_values[i], column->shape.length);
	}
	fill(result, natts, slot->tts_values, (char *) tuple->t_data + result->behind);
	return tuple;
}

TupleTableSlot *
MotResultSlot(TupleDesc desc)
{
	if (ops.base_slot_size == 0)
	{
		ops = TTSOpsVirtual;
		ops.base_slot_size = sizeof(ResultSlot);
		ops.copy_heap_tuple = copy_heap_tuple;
	}
	return MotMakeTupleTableSlot(desc, &ops);
}
