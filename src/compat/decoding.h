/*-------------------------------------------------------------------------
 *
 * decoding.h
 *	  A row in the reorder buffer of logical decoding.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COMPAT_DECODING_H
#define MOT_COMPAT_DECODING_H

#include "compat/names.h"
#include "replication/reorderbuffer.h"

#if PG_VERSION_NUM >= 180000
#define MotReorderBufferChange(rb) ReorderBufferAllocChange(rb)
#define MOT_TUPLE_BUFFER(rb, len) ReorderBufferAllocTupleBuf(rb, len)
#else
#define MotReorderBufferChange(rb) ReorderBufferGetChange(rb)
#define MOT_TUPLE_BUFFER(rb, len) ReorderBufferGetTupleBuf(rb, len)
#endif

#if PG_VERSION_NUM >= 160000
#define MotReorderBufferStorage(change) (&(change)->data.tp.rlocator)
#else
#define MotReorderBufferStorage(change) (&(change)->data.tp.relnode)
#endif

/* the old or the new tuple of a change; "len" without the fixed part of its header */
static inline HeapTuple
MotReorderBufferTuple(ReorderBuffer *rb, ReorderBufferChange *change, bool old, Size len)
{
#if PG_VERSION_NUM >= 170000
	HeapTuple	buffer = MOT_TUPLE_BUFFER(rb, len);
	HeapTuple	tuple = buffer;
#else
	ReorderBufferTupleBuf *buffer = MOT_TUPLE_BUFFER(rb, len);
	HeapTuple	tuple = &buffer->tuple;
#endif

	if (old)
		change->data.tp.oldtuple = buffer;
	else
		change->data.tp.newtuple = buffer;
	return tuple;
}

#endif							/* MOT_COMPAT_DECODING_H */
