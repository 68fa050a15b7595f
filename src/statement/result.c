/*-------------------------------------------------------------------------
 *
 * result.c
 *	  The slot for rows that a node computes.
 *
 * A virtual slot, but for one thing: PL/pgSQL and SPI take a copy of each row
 * as a heap tuple.  Where all columns are of fixed width and passed by value,
 * and none is null, one such tuple differs from the next in nothing but the
 * values; so it is the last one's bytes with others in their places.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "statement/statement.h"
#include "utils/memutils.h"

typedef struct ResultSlot
{
	VirtualTupleTableSlot base;
	HeapTuple	pattern;		/* NULL: no tuple has been formed yet */
	uint32	   *offsets;		/* of the columns in it */
} ResultSlot;

static TupleTableSlotOps ops;

static void
make_pattern(ResultSlot *result, HeapTuple tuple)
{
	TupleDesc	desc = result->base.base.tts_tupleDescriptor;
	MemoryContext cxt = result->base.base.tts_mcxt;
	uint32		offset = tuple->t_data->t_hoff;

	result->offsets = MemoryContextAlloc(cxt, desc->natts * sizeof(uint32));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		offset = att_align_nominal(offset, att->attalign);
		result->offsets[i] = offset;
		offset += att->attlen;
	}
	Assert(offset == tuple->t_len);
	result->pattern = MemoryContextAlloc(cxt, HEAPTUPLESIZE + tuple->t_len);
	memcpy(result->pattern, tuple, HEAPTUPLESIZE + tuple->t_len);
}

static HeapTuple
copy_heap_tuple(TupleTableSlot *slot)
{
	ResultSlot *result = (ResultSlot *) slot;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	HeapTuple	tuple;

	for (int i = 0; i < desc->natts; i++)
		if (slot->tts_isnull[i])
			return TTSOpsVirtual.copy_heap_tuple(slot);

	if (unlikely(result->pattern == NULL))
	{
		tuple = TTSOpsVirtual.copy_heap_tuple(slot);
		make_pattern(result, tuple);
		return tuple;
	}

	tuple = palloc(HEAPTUPLESIZE + result->pattern->t_len);
	memcpy(tuple, result->pattern, HEAPTUPLESIZE + result->pattern->t_len);
	tuple->t_data = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);
	/* the row type may have become a known one since */
	HeapTupleHeaderSetTypeId(tuple->t_data, desc->tdtypeid);
	HeapTupleHeaderSetTypMod(tuple->t_data, desc->tdtypmod);
	for (int i = 0; i < desc->natts; i++)
		store_att_byval((char *) tuple->t_data + result->offsets[i], slot->tts_values[i],
						TupleDescAttr(desc, i)->attlen);
	return tuple;
}

TupleTableSlot *
MotResultSlot(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attbyval)
			return MakeTupleTableSlot(desc, &TTSOpsVirtual);
	if (ops.base_slot_size == 0)
	{
		ops = TTSOpsVirtual;
		ops.base_slot_size = sizeof(ResultSlot);
		ops.copy_heap_tuple = copy_heap_tuple;
	}
	return MakeTupleTableSlot(desc, &ops);
}
