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
 * A transaction that has no xid, and has changed nothing but ordinary tables, needs none for this:
 * its changes wait in memory, and are logged within the record that commits it (COMMIT_CHANGES).
 * Nothing of the server's lies between them, and they are complete; for the reorder buffer they are
 * a transaction of one record, begun and committed there, under an xid that nobody has
 * (FrozenTransactionId).  It is not streamed, for which there is no need: rows of that xid, as
 * those of catalogues may be, would be taken for its own.  Before anything that may have a place
 * among them they are logged, and the transaction has an xid: before a statement that changes other
 * tables, DDL, a savepoint (MotChangesAtOnce and its callers).  Initial copies know by xids what
 * they have, see xact/decoded.c: while one may be made such a commit gets an xid, too.
 *
 * Whoever replays the log passes all this by.
 *
 * A row's bytes are those of a heap tuple behind its header, but for the null bitmap, which is
 * padded here to 8 bytes and lies within the header there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "compat/compat.h"
#include "compat/decoding.h"
#include "format.h"
#include "relation/rowcodec.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/origin.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "utils/memutils.h"
#include "wal/replay/replay.h"

/* changes of one statement that share a record: so many bytes */
#define TOGETHER 65536

/* changes that wait for their transaction's end: so many bytes */
#define WAITING_MAX 16384

/* what the server can read of one record */
#define RECORD_MAX ((size_t) 1020 * 1024 * 1024)

/* groups, each of a table: its storage, the length of its changes (4 bytes), and these */
static char *waiting = NULL;
static int	nwaiting = 0;		/* bytes */
static int	group;				/* where the last one begins */

/* none wait any more in this transaction; in this session */
static uint64 at_once = 0;
static bool always_at_once = MOT_STANDBYS_DECODE;	/* their slots, too, make
													 * snapshots */

#define GROUP_HEAD ((int) (MOT_RECORD_STORAGE_SIZE + sizeof(uint32)))

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

static void
insert_record(void)
{
	(void) XLogInsert(mot_resource_manager_id, MOT_XLOG_CHANGES);
}

/* one, whose rows are taken from where they are */
static void
log_one(const RelFileLocator *storage, const MotLogicalChange *change)
{
	char		head[MOT_RECORD_STORAGE_SIZE];
	char		bytes[1 + 2 * MOT_RECORD_ROW_MAX];
	char	   *p = bytes;

	if (unlikely(MOT_RECORD_STORAGE_SIZE + size_of(change) > RECORD_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("change of a memory-optimized table's row is too big for logical decoding"),
				 errdetail("The log would have a record of %zu bytes, and %zu are the most.",
						   MOT_RECORD_STORAGE_SIZE + size_of(change), RECORD_MAX)));
	begin_record(head, storage);
	p += MotRecordPutLogical(p, change);
	if (change->before.data != NULL)
	{
		p += MotRecordPutRow(p, &change->before);
		XLogRegisterData(bytes, p - bytes);
		XLogRegisterData(unconstify(void *, change->before.data), change->before.size);
	}
	if (change->after.data != NULL)
	{
		char	   *start = change->before.data != NULL ? p : bytes;

		p += MotRecordPutRow(p, &change->after);
		XLogRegisterData(start, p - start);
		XLogRegisterData(unconstify(void *, change->after.data), change->after.size);
	}
	else if (change->before.data == NULL)
		XLogRegisterData(bytes, p - bytes);
	insert_record();
}

/* size_of(change) bytes, at most */
static char *
put_change(char *p, const MotLogicalChange *change)
{
	const MotLogicalRow *rows[] = {&change->before, &change->after};

	p += MotRecordPutLogical(p, change);
	for (int i = 0; i < lengthof(rows); i++)
		if (rows[i]->data != NULL)
		{
			p += MotRecordPutRow(p, rows[i]);
			memcpy(p, rows[i]->data, rows[i]->size);
			p += rows[i]->size;
		}
	return p;
}

static void
log_together(const RelFileLocator *storage, StringInfo buf)
{
	char		head[MOT_RECORD_STORAGE_SIZE];

	if (buf->len == 0)
		return;
	begin_record(head, storage);
	XLogRegisterData(buf->data, buf->len);
	insert_record();
	resetStringInfo(buf);
}

static bool
may_wait(const MotLogicalChange *changes, int n)
{
	size_t		size = nwaiting + GROUP_HEAD;

	if (always_at_once || at_once == MotMyVirtualXact() || TransactionIdIsValid(GetTopTransactionIdIfAny()) ||
		GetCurrentTransactionNestLevel() > 1 || XactIsoLevel == XACT_SERIALIZABLE || MotReplicationOrigin() != 0)
		return false;
	for (int i = 0; i < n && size <= WAITING_MAX; i++)
		size += size_of(&changes[i]);
	return size <= WAITING_MAX;
}

static void
let_wait(const RelFileLocator *storage, const MotLogicalChange *changes, int n)
{
	char		head[MOT_RECORD_STORAGE_SIZE];
	char	   *p;
	uint32		len;

	if (unlikely(waiting == NULL))
		waiting = MemoryContextAlloc(TopMemoryContext, WAITING_MAX);
	(void) MotRecordPutStorage(head, storage);
	if (nwaiting == 0 || memcmp(waiting + group, head, sizeof(head)) != 0)
	{
		group = nwaiting;
		memcpy(waiting + group, head, sizeof(head));
		nwaiting += GROUP_HEAD;
	}
	p = waiting + nwaiting;
	for (int i = 0; i < n; i++)
		p = put_change(p, &changes[i]);
	nwaiting = p - waiting;
	len = nwaiting - group - GROUP_HEAD;
	memcpy(waiting + group + MOT_RECORD_STORAGE_SIZE, &len, sizeof(len));
}

/* The next group of several: its changes, up to their end. */
static bool
next_group(const char **p, const char *end, const char **head, const char **changes)
{
	uint32		len;

	if (end - *p < GROUP_HEAD)
		return false;
	*head = *p;
	*changes = *p + GROUP_HEAD;
	memcpy(&len, *p + MOT_RECORD_STORAGE_SIZE, sizeof(len));
	if (len > end - *changes)
		return false;
	*p = *changes + len;
	return true;
}

/*
 * What waits is logged now, as the transaction's, which has an xid from now on.  (A
 * subtransaction that has just begun has none, so the record says whose it is.)
 */
static void
log_waiting(void)
{
	TransactionId xid = GetTopTransactionId();
	const char *p = waiting;
	const char *end = waiting + nwaiting;
	const char *head;
	const char *changes;

	nwaiting = 0;
	while (next_group(&p, end, &head, &changes))
	{
		XLogBeginInsert();
		XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
		XLogRegisterData(unconstify(char *, head), MOT_RECORD_STORAGE_SIZE);
		if (!TransactionIdIsValid(GetCurrentTransactionIdIfAny()))
			XLogRegisterData((char *) &xid, sizeof(xid));
		XLogRegisterData(unconstify(char *, changes), p - changes);
		insert_record();
	}
}

void
MotDecodeLog(const RelFileLocator *storage, const MotLogicalChange *changes, int n)
{
	StringInfoData buf;

	if (likely(may_wait(changes, n)))
	{
		let_wait(storage, changes, n);
		return;
	}
	MotDecodeAtOnce(false);
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
		{
			enlargeStringInfo(&buf, size_of(&changes[i]));
			buf.len = put_change(buf.data + buf.len, &changes[i]) - buf.data;
		}
	}
	log_together(storage, &buf);
	pfree(buf.data);
}

/* stay: nor does anything else wait until the transaction ends */
void
MotDecodeAtOnce(bool stay)
{
	if (stay)
		at_once = MotMyVirtualXact();
	if (nwaiting > 0)
		log_waiting();
}

void
MotDecodeNeverWait(void)
{
	always_at_once = true;
	MotDecodeAtOnce(false);
}

const char *
MotDecodeWaiting(int *len)
{
	*len = nwaiting;
	return waiting;
}

void
MotDecodeForget(void)
{
	nwaiting = 0;
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
queue_change(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer, TransactionId xid,
			 const RelFileLocator *storage, const MotLogicalChange *from)
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
	/* what waits for its row is not streamed */
	ReorderBufferQueueChange(ctx->reorder, xid, buffer->origptr, change, !TransactionIdIsNormal(xid));
}

static size_t
open_changes(XLogRecordBuffer *buffer, const char *p, const char *end, RelFileLocator *storage)
{
	int			format;
	size_t		behind = MotRecordGetStorage(p, end - p, storage, &format);

	if (format > MOT_RECORD_FORMAT)
		MotRaiseFormat(psprintf("changes of memory-optimized tables at %X/%X", LSN_FORMAT_ARGS(buffer->origptr)),
					   format, MOT_RECORD_FORMAT);
	if (behind == 0)
		MotRedoRaiseDamaged(buffer->origptr, "too short");
	return behind;
}

static void
queue_changes(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer, TransactionId xid,
			  const RelFileLocator *storage, const char *p, const char *end)
{
	MotLogicalChange change;
	const char *error;

	while (MotRecordNextLogical(&p, end, &change, &error))
		queue_change(ctx, buffer, xid, storage, &change);
	if (error != NULL)
		MotRedoRaiseDamaged(buffer->origptr, "%s", error);
}

static bool
is_filtered(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer, const RelFileLocator *storage)
{
	return storage->dbOid != ctx->slot->data.database ||
		(ctx->callbacks.filter_by_origin_cb != NULL &&
		 filter_by_origin_cb_wrapper(ctx, XLogRecGetOrigin(buffer->record)));
}

/* A transaction that has no xid, all of it: as the server's DecodeCommit. */
static void
decode_commit(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer)
{
	const TransactionId xid = FrozenTransactionId;
	MotRecordHeader header;
	RelFileLocator storage;
	const char *head;
	const char *changes;
	const char *p;
	size_t		len;
	const char *end;
	bool		any = false;

	if (SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_CONSISTENT ||
		SnapBuildXactNeedsSkip(ctx->snapshot_builder, buffer->origptr))
		return;
	p = MotRecordChanges(buffer->record, &header, &len);
	end = p + len;
	while (next_group(&p, end, &head, &changes))
	{
		size_t		behind = open_changes(buffer, head, changes, &storage);

		/* (all are of one database) */
		if (behind != MOT_RECORD_STORAGE_SIZE || is_filtered(ctx, buffer, &storage))
			return;
		MotDecodingRequired(ctx);
		if (ctx->fast_forward || !SnapBuildProcessChange(ctx->snapshot_builder, xid, buffer->origptr))
			return;
		any = true;
		queue_changes(ctx, buffer, xid, &storage, changes, p);
	}
	if (p != end)
		MotRedoRaiseDamaged(buffer->origptr, "changes run over the end");
	if (!any)
		return;
	/* (nor has it an origin) */
	ReorderBufferCommit(ctx->reorder, xid, buffer->origptr, buffer->endptr, header.time, 0, InvalidXLogRecPtr);
	UpdateDecodingStats(ctx);
}

void
MotDecode(LogicalDecodingContext *ctx, XLogRecordBuffer *buffer)
{
	XLogReaderState *record = buffer->record;
	TransactionId xid = XLogRecGetXid(record);
	const char *p = XLogRecGetData(record);
	const char *end = p + XLogRecGetDataLen(record);
	uint8		kind = XLogRecGetInfo(record) & MOT_XLOG_KIND;
	RelFileLocator storage;
	size_t		behind = 0;

	if (kind == MOT_XLOG_CHANGES)
	{
		behind = open_changes(buffer, p, end, &storage);
		if (!TransactionIdIsValid(xid) && !MotRecordGetXid(p, end - p, &behind, &xid))
			MotRedoRaiseDamaged(buffer->origptr, "too short");
	}

	/* the server asks this of every record, whosoever it is */
	ReorderBufferProcessXid(ctx->reorder, xid, buffer->origptr);
	if (kind == MOT_XLOG_COMMIT_CHANGES)
		decode_commit(ctx, buffer);
	if (kind != MOT_XLOG_CHANGES)
		return;

	/* (the snapshot is needed also by who only moves on) */
	if (SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_FULL_SNAPSHOT ||
		!SnapBuildProcessChange(ctx->snapshot_builder, xid, buffer->origptr) || ctx->fast_forward)
		return;
	if (!is_filtered(ctx, buffer, &storage))
		queue_changes(ctx, buffer, xid, &storage, p + behind, end);
}

static void
describe(StringInfo buf, const char *data, size_t len, bool has_xid)
{
	static const char *const names[] = {
		[MOT_LOGICAL_INSERT] = "insert",
		[MOT_LOGICAL_UPDATE] = "update",
		[MOT_LOGICAL_DELETE] = "delete"
	};
	RelFileLocator storage;
	TransactionId xid;
	MotLogicalChange change;
	const char *end = data + len;
	const char *error;
	int			format;
	size_t		behind = MotRecordGetStorage(data, len, &storage, &format);
	int			n = 0;

	if (behind == 0 || (!has_xid && !MotRecordGetXid(data, len, &behind, &xid)))
	{
		appendStringInfo(buf, "format %d", format);
		return;
	}
	appendStringInfo(buf, "rel %u/%u/%u", storage.spcOid, storage.dbOid, (Oid) storage.relNumber);
	if (!has_xid)
		appendStringInfo(buf, "; xid %u", xid);
	data += behind;
	while (MotRecordNextLogical(&data, end, &change, &error))
		if (n++ == 0)
			appendStringInfo(buf, "; %s, %zu bytes", names[change.kind],
							 change.before.size + change.after.size);
	if (n > 1)
		appendStringInfo(buf, "; %d more", n - 1);
}

void
MotDecodeDescribe(StringInfo buf, XLogReaderState *record)
{
	describe(buf, XLogRecGetData(record), XLogRecGetDataLen(record), TransactionIdIsValid(XLogRecGetXid(record)));
}
