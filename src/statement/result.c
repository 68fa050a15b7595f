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

typedef struct ResultSlot
{
	VirtualTupleTableSlot base;
	HeapTuple	pattern;		/* up to "behind"; NULL: no tuple has been
								 * formed yet */
	MotRowShape shape;
	int			nfixed;			/* columns that have their places */
	uint32	   *offset;			/* of these */
	uint32		behind;			/* where they end */
} ResultSlot;

static TupleTableSlotOps ops;

/* From a tuple without nulls and values that lie elsewhere. */
static void
make_pattern(ResultSlot *result, HeapTuple tuple)
{
	TupleDesc	desc = result->base.base.tts_tupleDescriptor;
	MemoryContext cxt = result->base.base.tts_mcxt;

	MotWithin(cxt, MotRowShapeInit(&result->shape, desc));
	result->offset = MemoryContextAlloc(cxt, Max(desc->natts, 1) * sizeof(uint32));
	result->behind = tuple->t_data->t_hoff;
	for (; result->nfixed < desc->natts && result->shape.columns[result->nfixed].byval; result->nfixed++)
	{
		const MotColumnShape *column = &result->shape.columns[result->nfixed];

		result->offset[result->nfixed] = TYPEALIGN(column->align, result->behind);
		result->behind = result->offset[result->nfixed] + column->length;
	}
	/* (what is behind may be long) */
	result->pattern = MemoryContextAlloc(cxt, HEAPTUPLESIZE + result->behind);
	memcpy(result->pattern, tuple, HEAPTUPLESIZE + result->behind);
}

static HeapTuple
copy_heap_tuple(TupleTableSlot *slot)
{
	ResultSlot *result = (ResultSlot *) slot;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	int			natts = desc->natts;
	HeapTuple	tuple;
	size_t		size;

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

	/* (what is out of line is to be fetched or flattened first) */
	size = result->behind;
	if (unlikely(!MotValuesMeasure(&result->shape, result->nfixed, slot->tts_values, NULL, &size, NULL) ||
				 size > MaxAllocSize / 2))
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
		store_att_byval((char *) tuple->t_data + result->offset[i], slot->tts_values[i],
						result->shape.columns[i].length);
	(void) MotValuesFill(&result->shape, result->nfixed, slot->tts_values, NULL, NULL,
						 (char *) tuple->t_data + result->behind);
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
