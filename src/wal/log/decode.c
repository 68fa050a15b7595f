/*-------------------------------------------------------------------------
 *
 * decode.c
 *	  Logical decoding of ordinary tables: what is logged for it, and how it becomes
 *	  the server's changes.
 *
 * The server puts transactions together from the log (its reorder buffer) and hands them to
 * output plugins in the order of their commits.  What it takes for that of a change is
 * its place in the log, the xid of its subtransaction, the file of its table, and rows as
 * heap tuples; all else (which table that was, as its columns were, savepoints that were
 * rolled back, spilling and streaming, PREPARE TRANSACTION) is the server's and works as for heap
 * tables.  So a change has a record of its own at the time when it is made, as in a heap table,
 * beside the redo that the commit writes.  (relation/logical.c says what is in it.)  Changes made
 * of the redo record instead would all come behind those of heap tables, which may refer to them.
 *
 * Whoever replays the log passes these records by.
 *
 * A row's bytes are those of a heap tuple behind its header, but for the null bitmap, which is
 * padded here to 8 bytes and lies within the header there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "compat/decoding.h"
#include "format.h"
#include "relation/rowcodec.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "wal/replay/replay.h"

/* changes of one statement that share a record: so many bytes */
#define TOGETHER 65536

/* what the server can read of one record */
#define RECORD_MAX ((size_t) 1020 * 1024 * 1024)

/* -------------------------------------------------------------------- log */

static size_t
size_of(const MotLogicalChange *change)
{
	return 1 + 2 * MOT_RECORD_ROW_MAX + change->before.size + change->after.size;
}

static void
begin_record(char *head, const RelFileLocator *storage)
{
	XLogBeginInsert();
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	XLogRegisterData(head, MotRecordPutStorage(head, storage));
}

/* one, whose rows are taken from where they are */
static void
log_one(const RelFileLocator *storage, const MotLogicalChange *change)
{
	const MotLogicalRow *rows[] = {&change->before, &change->after};
	char		head[MOT_RECORD_STORAGE_SIZE];
	char		bytes[1 + 2 * MOT_RECORD_ROW_MAX];
	char	   *start = bytes;
	char	   *p = bytes;

	if (unlikely(MOT_RECORD_STORAGE_SIZE + size_of(change) > RECORD_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("change of a memory-optimized table's row is too big for logical decoding"),
				 errdetail("The log would have a record of %zu bytes, and %zu are the most.",
						   MOT_RECORD_STORAGE_SIZE + size_of(change), RECORD_MAX)));
	begin_record(head, storage);
	p += MotRecordPutLogical(p, change);
	for (int i = 0; i < lengthof(rows); i++)
		if (rows[i]->data != NULL)
		{
			p += MotRecordPutRow(p, rows[i]);
			XLogRegisterData(start, p - start);
			XLogRegisterData(unconstify(void *, rows[i]->data), rows[i]->size);
			start = p;
		}
	if (start == bytes)
		XLogRegisterData(bytes, p - bytes);
	(void) XLogInsert(mot_resource_manager_id, MOT_XLOG_CHANGES);
}

static void
append(StringInfo buf, const MotLogicalChange *change)
{
	const MotLogicalRow *rows[] = {&change->before, &change->after};
	char		bytes[MOT_RECORD_ROW_MAX];

	appendBinaryStringInfoNT(buf, bytes, MotRecordPutLogical(bytes, change));
	for (int i = 0; i < lengthof(rows); i++)
		if (rows[i]->data != NULL)
		{
			appendBinaryStringInfoNT(buf, bytes, MotRecordPutRow(bytes, rows[i]));
			appendBinaryStringInfoNT(buf, rows[i]->data, rows[i]->size);
		}
}

static void
log_together(const RelFileLocator *storage, StringInfo buf)
{
	char		head[MOT_RECORD_STORAGE_SIZE];

	if (buf->len == 0)
		return;
	begin_record(head, storage);
	XLogRegisterData(buf->data, buf->len);
	(void) XLogInsert(mot_resource_manager_id, MOT_XLOG_CHANGES);
	resetStringInfo(buf);
}

void
MotDecodeLog(const RelFileLocator *storage, const MotLogicalChange *changes, int n)
{
	StringInfoData buf;

	(void) GetCurrentTransactionId();
	if (n == 1)
	{
		log_one(storage, changes);
		return;
	}
	initStringInfo(&buf);
	for (int i = 0; i < n; i++)
	{
		if (buf.len + size_of(&changes[i]) > TOGETHER)
			log_together(storage, &buf);
		if (size_of(&changes[i]) > TOGETHER)
			log_one(storage, &changes[i]);
		else
			append(&buf, &changes[i]);
	}
	log_together(storage, &buf);
	pfree(buf.data);
}

/* ----------------------------------------------------------------- decode */

static void
make_tuple(ReorderBuffer *rb, ReorderBufferChange *change, bool old, const MotLogicalRow *row, XLogRecPtr lsn)
{
	int			natts = row->host_bits & MOT_ROW_NATTS_MASK;
	bool		nulls = (row->host_bits & MOT_ROW_HAS_NULLS) != 0;
	size_t		bitmap = nulls ? BITMAPLEN(natts) : 0;
	size_t		before = MAXALIGN(bitmap);	/* what lies before the columns */
	size_t		hoff = MAXALIGN(SizeofHeapTupleHeader + bitmap);
	HeapTuple	tuple;
	HeapTupleHeader header;

	if (row->size < before || natts > MaxTupleAttributeNumber)
		MotRedoRaiseDamaged(lsn, "a row of %zu bytes with %d columns", row->size, natts);
	tuple = MotReorderBufferTuple(rb, change, old, hoff + row->size - before - SizeofHeapTupleHeader);
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	tuple->t_len = hoff + row->size - before;
	header = tuple->t_data;
	memset(header, 0, hoff);
	header->t_hoff = hoff;
	header->t_infomask = HEAP_HASVARWIDTH | (nulls ? HEAP_HASNULL : 0);
	HeapTupleHeaderSetNatts(header, natts);
	memcpy(header->t_bits, row->data, bitmap);
	memcpy((char *) header + hoff, (const char *) row->data + before, row->size - before);
}

static void
queue_change(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer, const RelFileLocator *storage,
			 const MotLogicalChange *from)
{
	ReorderBufferChange *change = MotReorderBufferChange(ctx->reorder);

	change->action = from->kind == MOT_LOGICAL_INSERT ? REORDER_BUFFER_CHANGE_INSERT :
		from->kind == MOT_LOGICAL_UPDATE ? REORDER_BUFFER_CHANGE_UPDATE : REORDER_BUFFER_CHANGE_DELETE;
	change->origin_id = XLogRecGetOrigin(buffer->record);
	*MotReorderBufferStorage(change) = *storage;
	if (from->before.data != NULL)
		make_tuple(ctx->reorder, change, true, &from->before, buffer->origptr);
	if (from->after.data != NULL)
		make_tuple(ctx->reorder, change, false, &from->after, buffer->origptr);
	change->data.tp.clear_toast_afterwards = true;
	ReorderBufferQueueChange(ctx->reorder, XLogRecGetXid(buffer->record), buffer->origptr, change, false);
}

void
MotDecode(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer)
{
	XLogReaderState *record = buffer->record;
	TransactionId xid = XLogRecGetXid(record);
	const char *p = XLogRecGetData(record);
	const char *end = p + XLogRecGetDataLen(record);
	RelFileLocator storage;
	MotLogicalChange change;
	const char *error;
	size_t		behind;
	int			format;

	/* the server asks this of every record, whosoever it is */
	ReorderBufferProcessXid(ctx->reorder, xid, buffer->origptr);
	if ((XLogRecGetInfo(record) & MOT_XLOG_KIND) != MOT_XLOG_CHANGES)
		return;

	/* (the snapshot is needed also by who only moves on) */
	if (SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_FULL_SNAPSHOT ||
		!SnapBuildProcessChange(ctx->snapshot_builder, xid, buffer->origptr) || ctx->fast_forward)
		return;

	behind = MotRecordGetStorage(p, end - p, &storage, &format);
	if (format > MOT_RECORD_FORMAT)
		MotRaiseFormat(psprintf("changes of memory-optimized tables at %X/%X", LSN_FORMAT_ARGS(buffer->origptr)),
					   format, MOT_RECORD_FORMAT);
	if (behind == 0)
		MotRedoRaiseDamaged(buffer->origptr, "too short");
	if (storage.dbOid != ctx->slot->data.database)
		return;
	if (ctx->callbacks.filter_by_origin_cb != NULL &&
		filter_by_origin_cb_wrapper(ctx, XLogRecGetOrigin(record)))
		return;
	p += behind;
	while (MotRecordNextLogical(&p, end, &change, &error))
		queue_change(ctx, buffer, &storage, &change);
	if (error != NULL)
		MotRedoRaiseDamaged(buffer->origptr, "%s", error);
}

void
MotDecodeDescribe(StringInfo buf, const char *data, size_t len)
{
	static const char *const names[] = {
		[MOT_LOGICAL_INSERT] = "insert",
		[MOT_LOGICAL_UPDATE] = "update",
		[MOT_LOGICAL_DELETE] = "delete"
	};
	RelFileLocator storage;
	MotLogicalChange change;
	const char *end = data + len;
	const char *error;
	int			format;
	size_t		behind = MotRecordGetStorage(data, len, &storage, &format);
	int			n = 0;

	if (behind == 0)
	{
		appendStringInfo(buf, "format %d", format);
		return;
	}
	appendStringInfo(buf, "rel %u/%u/%u", storage.spcOid, storage.dbOid, (Oid) storage.relNumber);
	data += behind;
	while (MotRecordNextLogical(&data, end, &change, &error))
		if (n++ == 0)
			appendStringInfo(buf, "; %s, %zu bytes", names[change.kind],
							 change.before.size + change.after.size);
	if (n > 1)
		appendStringInfo(buf, "; %d more", n - 1);
}
