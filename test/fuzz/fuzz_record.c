/*-------------------------------------------------------------------------
 *
 * fuzz_record.c
 *	  Redo records: whatever bytes there are is taken apart or told to be damaged, and an update
 *	  of one half of them to the other comes back as it was.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/wal/log/record.c"

/* a patched row is at most so large: the size is the record's word */
#define MOST_PATCHED (1024 * 1024)

static void
read_operations(const char *data, size_t size)
{
	const char *p = data;
	const char *error;
	MotOpData	op;

	(void) MotRecordIsPrepared(data, size);
	while (MotRecordNext(&p, data + size, &op, &error))
	{
		if (p < data || p > data + size)
			abort();
		fuzz_read(op.bytes, op.len);
		fuzz_read(op.key, op.key_len);
		fuzz_read(op.old_bytes, op.old_len);
		if (op.op == MOT_OP_UPDATE && op.new_len <= MOST_PATCHED)
		{
			char	   *row = palloc(op.new_len);

			/* the old row is what there is in the record, or the record */
			(void) MotRecordPatch(&op, op.old_bytes != NULL ? op.old_bytes : data,
								  op.old_bytes != NULL ? op.old_len : size, row);
			pfree(row);
		}
	}
}

static void
read_changes(const char *data, size_t size)
{
	RelFileLocator storage;
	int			format;
	size_t		begins = MotRecordGetStorage(data, size, &storage, &format);
	const char *p = data + begins;
	const char *error;
	MotLogicalChange change;

	if (begins == 0)
		return;
	while (MotRecordNextLogical(&p, data + size, &change, &error))
	{
		if (p < data || p > data + size)
			abort();
		if (change.before.data != NULL)
			fuzz_read(change.before.data, change.before.size);
		if (change.after.data != NULL)
			fuzz_read(change.after.data, change.after.size);
	}
}

static void
both_ways(const char *data, size_t size)
{
	size_t		old_size = size / 2;
	const char *row = data + old_size;
	size_t		row_size = size - old_size;
	bool		by_key = size > 2 && (data[0] & 1) != 0;
	char	   *patched = palloc(row_size);
	StringInfoData buf;
	MotOpData	op;
	const char *p;
	const char *error;

	initStringInfo(&buf);
	MotRecordUpdate(&buf, by_key ? data : NULL, by_key ? 2 : 0, 1, data, old_size, old_size, 2, row, row_size);
	p = buf.data;
	if (!MotRecordNext(&p, buf.data + buf.len, &op, &error) || p != buf.data + buf.len ||
		op.op != MOT_OP_UPDATE || op.new_len != row_size || (op.key != NULL) != by_key ||
		!MotRecordPatch(&op, data, old_size, patched) || memcmp(patched, row, row_size) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	/* a copy that ends where the bytes end */
	char	   *bytes = memcpy(palloc(size), data, size);
	MotRecordHeader header;
	int			format;
	size_t		begins = 0;

	(void) FUZZ(begins = MotRecordGetHeader(bytes, size, &header, &format));
	if (begins > size)
		abort();
	(void) FUZZ(read_operations(bytes + begins, size - begins));
	(void) FUZZ(read_changes(bytes, size));
	(void) FUZZ(both_ways(bytes, size));
	fuzz_free_all();
	return 0;
}
