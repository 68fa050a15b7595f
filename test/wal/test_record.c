/*-------------------------------------------------------------------------
 *
 * test_record.c
 *	  Operations of redo records: what is written is what is read, and what is
 *	  damaged is told, or at least read only where there is something.
 *
 * Bytes to be taken apart end where a page ends that is followed by one that
 * cannot be read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "wal/log/record.h"

/* not the server's own */
#undef printf
#undef fprintf
#undef snprintf

#define MAX_ROW 3000
#define GUARDED (1024 * 1024)

static int	tests = 0;
static bool failed = false;
static uint64 state = 88172645463325252;

static char *guard;				/* the end of what can be read */

static uint32
next_random(uint32 n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32) (state >> 16) % n;
}

static void
ok(bool good, const char *what)
{
	tests++;
	if (!good)
		failed = true;
	printf("%s %d - %s\n", good ? "ok" : "not ok", tests, what);
}

static void
make_guard(void)
{
	long		page = sysconf(_SC_PAGESIZE);
	char	   *p = mmap(NULL, GUARDED + page, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + GUARDED, page, PROT_NONE) != 0)
	{
		perror("mmap");
		exit(1);
	}
	guard = p + GUARDED;
}

/* the bytes where nothing can be read behind them */
static char *
guarded(const char *bytes, size_t len)
{
	if (len > GUARDED)
		abort();
	return memcpy(guard - len, bytes, len);
}

static size_t
random_row(char *row)
{
	size_t		size = next_random(10) == 0 ? next_random(MAX_ROW) : next_random(160);

	for (size_t i = 0; i < size; i++)
		row[i] = (char) next_random(next_random(2) ? 2 : 256);
	return size;
}

/* what an update does to a row: single bytes, runs, another length, nothing, everything */
static size_t
changed_row(const char *old, size_t old_size, char *row)
{
	size_t		size = old_size;

	memcpy(row, old, old_size);
	switch (next_random(5))
	{
		case 0:
			return random_row(row);
		case 1:
			return size;
		case 2:
			size = next_random(MAX_ROW);
			for (size_t i = old_size; i < size; i++)
				row[i] = (char) next_random(256);
			break;
	}
	for (uint32 n = next_random(6); n > 0 && size > 0; n--)
	{
		size_t		at = next_random((uint32) size);
		size_t		len = 1 + next_random(20);

		len = Min(len, size - at);	/* (which evaluates what it returns a second time) */
		for (size_t i = 0; i < len; i++)
			row[at + i] = (char) next_random(256);
	}
	return size;
}

/* --------------------------------------------------------------- both ways */

typedef struct Expected
{
	MotOp		op;
	Oid			dbid,
				oid;
	unsigned	host_bits,
				old_host_bits;
	size_t		key_len;
	char		key[64];
	size_t		old_size,
				size;
	char		old[MAX_ROW];
	char		row[MAX_ROW];
} Expected;

static void
write_random(StringInfo buf, Expected *e)
{
	static const MotOp ops[] = {MOT_OP_TABLE, MOT_OP_CREATE, MOT_OP_DEFINE, MOT_OP_INDEX, MOT_OP_DROP,
		MOT_OP_DROP_DATABASE, MOT_OP_INSERT, MOT_OP_UPDATE, MOT_OP_UPDATE, MOT_OP_UPDATE, MOT_OP_DELETE,
		MOT_OP_PREPARED, MOT_OP_PREPARED_READS, MOT_OP_LOCK
	};

	memset(e, 0, offsetof(Expected, key));
	e->op = ops[next_random(lengthof(ops))];
	e->dbid = next_random(UINT32_MAX);
	e->oid = next_random(UINT32_MAX);
	e->host_bits = next_random(1 << MOT_HOST_BITS);
	e->old_host_bits = next_random(1 << MOT_HOST_BITS);
	e->key_len = next_random(2) ? 1 + next_random(sizeof(e->key) - 1) : 0;
	for (size_t i = 0; i < e->key_len; i++)
		e->key[i] = (char) next_random(256);
	e->old_size = random_row(e->old);
	e->size = changed_row(e->old, e->old_size, e->row);

	switch (e->op)
	{
		case MOT_OP_TABLE:
			MotRecordTable(buf, e->dbid, e->oid);
			break;
		case MOT_OP_CREATE:
		case MOT_OP_DEFINE:
			MotRecordBytes(buf, e->op, e->row, e->size);
			break;
		case MOT_OP_INDEX:
		case MOT_OP_DROP:
			MotRecordOid(buf, e->op, e->oid);
			break;
		case MOT_OP_DROP_DATABASE:
			MotRecordOid(buf, e->op, e->dbid);
			break;
		case MOT_OP_INSERT:
			MotRecordInsert(buf, e->host_bits, e->row, e->size);
			break;
		case MOT_OP_PREPARED:
		case MOT_OP_PREPARED_READS:
			e->size = next_random(64);
			memset(e->row, 'a' + (int) next_random(26), e->size);
			MotRecordBytes(buf, e->op, e->row, e->size);
			break;
		case MOT_OP_LOCK:
			e->oid = next_random(MOT_MODE_KEY_SHARE + 1);
			MotRecordLock(buf, (mot_row_mode) e->oid, e->key_len > 0 ? e->key : NULL, e->key_len, e->old_host_bits,
						  e->old, e->old_size);
			break;
		case MOT_OP_UPDATE:
			MotRecordUpdate(buf, e->key_len > 0 ? e->key : NULL, e->key_len, e->old_host_bits,
							e->old, e->old_size, e->old_size, e->host_bits, e->row, e->size);
			break;
		default:
			MotRecordDelete(buf, e->key_len > 0 ? e->key : NULL, e->key_len, e->old_host_bits,
							e->old, e->old_size);
			break;
	}
}

static bool
same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool
same_identity(const Expected *e, const MotOpData *op)
{
	if (e->key_len > 0)
		return op->key != NULL && same_bytes(e->key, e->key_len, op->key, op->key_len);
	return op->key == NULL && op->old_host_bits == e->old_host_bits &&
		same_bytes(e->old, e->old_size, op->old_bytes, op->old_len);
}

static bool
is_expected(const Expected *e, const MotOpData *op)
{
	char		row[MAX_ROW];

	if (op->op != e->op)
		return false;
	switch (e->op)
	{
		case MOT_OP_TABLE:
			return op->dbid == e->dbid && op->oid == e->oid;
		case MOT_OP_CREATE:
		case MOT_OP_DEFINE:
		case MOT_OP_PREPARED:
		case MOT_OP_PREPARED_READS:
			return same_bytes(e->row, e->size, op->bytes, op->len);
		case MOT_OP_INDEX:
			return op->oid == e->oid;
		case MOT_OP_DROP:
			return true;
		case MOT_OP_DROP_DATABASE:
			return op->dbid == e->dbid;
		case MOT_OP_INSERT:
			return op->host_bits == e->host_bits &&
				same_bytes(e->row, e->size, op->bytes, op->len);
		case MOT_OP_UPDATE:
			return same_identity(e, op) && op->host_bits == e->host_bits &&
				op->new_len == e->size &&
				MotRecordPatch(op, e->old, e->old_size, row) &&
				memcmp(row, e->row, e->size) == 0;
		case MOT_OP_LOCK:
			return op->mode == (int) e->oid && same_identity(e, op);
		default:
			return same_identity(e, op);
	}
}

static void
test_both_ways(void)
{
	static Expected expected[50];
	bool		good = true;
	bool		small = true;

	for (int round = 0; round < 2000 && good; round++)
	{
		StringInfoData buf;
		int			n = 1 + next_random(lengthof(expected));
		const char *p;
		const char *error;
		MotOpData	op;

		initStringInfo(&buf);
		for (int i = 0; i < n; i++)
		{
			int			begin = buf.len;
			Expected   *e = &expected[i];

			write_random(&buf, e);
			if (buf.len - begin > 64 + e->key_len + e->old_size + e->size + e->size / 64)
				small = false;
		}
		p = guarded(buf.data, buf.len);
		for (int i = 0; i < n && good; i++)
			good = MotRecordNext(&p, guard, &op, &error) && is_expected(&expected[i], &op);
		good = good && p == guard && !MotRecordNext(&p, guard, &op, &error) && error == NULL;
		free(buf.data);
	}
	ok(good, "operations are read as they were written");
	ok(small, "none is much larger than the row");
}

static void
test_size_of_updates(void)
{
	char		old[96];
	char		row[96];
	StringInfoData buf;

	for (int i = 0; i < 96; i++)
		old[i] = (char) i;
	memcpy(row, old, sizeof(row));
	row[8] = 100;
	row[9] = 101;
	initStringInfo(&buf);
	MotRecordUpdate(&buf, "\200\0\0\7", 4, 4, old, sizeof(old), sizeof(old), 4, row, sizeof(row));
	/*
	 * kind, key with length, host bits, size, what is kept, 2 bytes with length, what is kept,
	 * nothing
	 */
	ok(buf.len == 1 + 5 + 1 + 1 + 1 + 3 + 2, "a changed counter takes a few bytes");

	buf.len = 0;
	MotRecordUpdate(&buf, "\200\0\0\7", 4, 4, old, sizeof(old), sizeof(old), 4, old, sizeof(old));
	ok(buf.len == 1 + 5 + 1 + 1 + 2, "an update that changes nothing, too");
	free(buf.data);
}

/* ------------------------------------------------------------------ damage */

/* so that what is read is read */
static volatile char sum;

/* how often damage was noticed is of no interest; what is read is */
static void
read_all(const char *p)
{
	MotOpData	op;
	const char *error;
	char		old[MAX_ROW];

	memset(old, 0, sizeof(old));
	while (MotRecordNext(&p, guard, &op, &error))
	{
		for (size_t i = 0; i < op.len; i++)
			sum += op.bytes[i];
		for (size_t i = 0; i < op.key_len; i++)
			sum += op.key[i];
		for (size_t i = 0; i < op.old_len; i++)
			sum += op.old_bytes[i];
		if (op.op == MOT_OP_UPDATE && op.new_len <= GUARDED)
		{
			char	   *row = malloc(op.new_len + 1);

			(void) MotRecordPatch(&op, old, next_random(sizeof(old)), row);
			free(row);
		}
		if (p > guard)
			abort();
	}
}

static void
test_damage(void)
{
	static Expected expected;

	for (int round = 0; round < 20000; round++)
	{
		StringInfoData buf;
		char	   *p;
		size_t		len;

		initStringInfo(&buf);
		for (int n = 1 + next_random(4); n > 0; n--)
			write_random(&buf, &expected);
		len = next_random(2) ? buf.len : next_random(buf.len + 1);
		p = guarded(buf.data, len);
		for (uint32 n = next_random(4); n > 0 && len > 0; n--)
		{
			/* rather where the lengths are */
			size_t		within = next_random(2) && len > 16 ? 16 : len;

			p[next_random((uint32) within)] = (char) next_random(256);
		}
		read_all(p);
		free(buf.data);
	}
	for (int round = 0; round < 100000; round++)
	{
		char		bytes[64];
		size_t		len = next_random(sizeof(bytes));

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char) next_random(next_random(2) ? 16 : 256);
		read_all(guarded(bytes, len));
	}
	ok(true, "damaged operations are not read beyond their end");
}

static void
test_truncated(void)
{
	static Expected expected;
	bool		good = true;

	for (int round = 0; round < 3000 && good; round++)
	{
		StringInfoData buf;
		const char *p;
		const char *error;
		MotOpData	op;

		initStringInfo(&buf);
		write_random(&buf, &expected);
		p = guarded(buf.data, next_random(buf.len));
		if (p < guard)
			good = !MotRecordNext(&p, guard, &op, &error) && error != NULL;
		free(buf.data);
	}
	ok(good, "an operation that is cut short is told");
}

static void
test_long(void)
{
	static Expected expected;
	StringInfoData buf;
	StringInfoData all;
	const char *p;
	const char *begin;
	const char *error;
	MotOpData	op;
	bool		good = true;

	for (int round = 0; round < 3000 && good; round++)
	{
		uint32		len;

		initStringInfo(&buf);
		initStringInfo(&all);
		write_random(&buf, &expected);
		enlargeStringInfo(&all, buf.len + 16);
		all.data[all.len++] = MOT_OP_LONG;
		for (len = buf.len; len >= 0x80; len >>= 7)
			all.data[all.len++] = (char) (len | 0x80);
		all.data[all.len++] = (char) len;
		memcpy(all.data + all.len, buf.data, buf.len);
		all.len += buf.len;

		p = guarded(all.data, all.len);
		good = MotRecordNext(&p, guard, &op, &error) && is_expected(&expected, &op) && p == guard;

		/* its first piece only */
		p = begin = guarded(all.data, all.len - 1 - next_random(buf.len));
		good = good && !MotRecordNext(&p, guard, &op, &error) && error != NULL && p == begin;
		free(buf.data);
		free(all.data);
	}
	ok(good, "a long operation is read when all of it is there");
}

/* ----------------------------------------------------------------- headers */

static void
test_headers(void)
{
	static const XLogRecPtr streams[] = {0, 8, 0x7f, 0x80, UINT64CONST(0x123456789abcdef0), PG_UINT64_MAX};
	bool		good = true;
	bool		cut = true;
	bool		unknown = true;
	int			format;
	MotRecordHeader read;

	for (int i = 0; i < lengthof(streams); i++)
	{
		MotRecordHeader header = {streams[i], i % 2 ? INT64CONST(-7) : INT64CONST(712345678901234567)};
		char		bytes[MOT_RECORD_HEADER_MAX];
		int			len = MotRecordPutHeader(bytes, &header);

		good = good && len <= MOT_RECORD_HEADER_MAX &&
			MotRecordGetHeader(guarded(bytes, len), len, &read, &format) == len &&
			format == MOT_RECORD_FORMAT && read.stream == header.stream && read.time == header.time;
		for (int n = 1; n < len; n++)
			cut = cut && MotRecordGetHeader(guarded(bytes, n), n, &read, &format) == 0 && format == MOT_RECORD_FORMAT;
	}
	ok(good, "a record's header is read as it was written");

	for (int n = 0; n < 16; n++)
		cut = cut && MotRecordGetHeader(guarded("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", n), n, &read, &format) == 0 && format == 1;
	ok(cut, "one that is cut short is told");

	for (int n = MOT_RECORD_FORMAT + 1; n < 256; n++)
	{
		char		bytes[32] = {(char) n};

		if (n % 8 != 0)
			unknown = unknown && MotRecordGetHeader(guarded(bytes, sizeof(bytes)), sizeof(bytes), &read, &format) == 0 && format == n;
	}
	ok(unknown, "a record of an unknown format is told, with its number");
}

/*
 * test/fixtures/records-N: on each line the name of a record's kind, and the record in
 * hexadecimal digits.  What they say is the same in all formats: in the table of OID 60000
 * rows are inserted, one is changed and one deleted.
 */
static void
test_fixture(int number)
{
	char		name[64];
	char		what[64];
	char		kind[16];
	static char digits[8192];
	static char bytes[4096];
	int			ops[MOT_OP_LONG + 1] = {0};
	bool		good = true;
	FILE	   *file;

	snprintf(name, sizeof(name), FIXTURES "/records-%d", number);
	file = fopen(name, "r");
	while (file != NULL && good && fscanf(file, "%15s %8191s", kind, digits) == 2)
	{
		size_t		len = strlen(digits) / 2;
		const char *p;
		const char *error = NULL;
		MotRecordHeader header;
		MotOpData	op;
		int			format;
		size_t		behind;

		for (size_t i = 0; i < len; i++)
		{
			unsigned	byte;

			(void) sscanf(digits + 2 * i, "%2x", &byte);
			bytes[i] = (char) byte;
		}
		p = guarded(bytes, len);
		behind = MotRecordGetHeader(p, len, &header, &format);
		good = behind > 0 && format == number && header.stream == 0 && header.time > 0;
		p += behind;
		while (good && MotRecordNext(&p, guard, &op, &error))
		{
			ops[op.op]++;
			good = op.op != MOT_OP_TABLE || op.oid == 60000;
		}
		good = good && error == NULL && p == guard;
	}
	if (file != NULL)
		fclose(file);
	snprintf(what, sizeof(what), "records of format %d are read", number);
	ok(good && ops[MOT_OP_TABLE] >= 3 && ops[MOT_OP_INSERT] == 3 && ops[MOT_OP_UPDATE] == 1 && ops[MOT_OP_DELETE] == 1, what);
}

/* ------------------------------------------------- changes for logical decoding */

static void
put_bytes(StringInfo buf, const void *bytes, size_t len)
{
	enlargeStringInfo(buf, (int) len);
	memcpy(buf->data + buf->len, bytes, len);
	buf->len += (int) len;
}

static void
put_logical(StringInfo buf, const MotLogicalChange *change)
{
	const MotLogicalRow *rows[] = {&change->before, &change->after};
	char		bytes[MOT_RECORD_ROW_MAX];

	put_bytes(buf, bytes, MotRecordPutLogical(bytes, change));
	for (int i = 0; i < 2; i++)
		if (rows[i]->data != NULL)
		{
			put_bytes(buf, bytes, MotRecordPutRow(bytes, rows[i]));
			put_bytes(buf, rows[i]->data, rows[i]->size);
		}
}

static MotLogicalRow
logical_row(char *bytes, bool has)
{
	MotLogicalRow row = {NULL};

	if (has)
		row = (MotLogicalRow) {bytes, random_row(bytes), next_random(1 << MOT_HOST_BITS)};
	return row;
}

static bool
same_row(const MotLogicalRow *a, const MotLogicalRow *b)
{
	return (a->data == NULL) == (b->data == NULL) && a->size == b->size && a->host_bits == b->host_bits &&
		(a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static void
test_logical(void)
{
	static char before[4][MAX_ROW];
	static char after[4][MAX_ROW];
	bool		good = true;
	bool		told = true;

	for (int round = 0; round < 20000 && good && told; round++)
	{
		RelFileLocator storage = {1663, next_random(1000), next_random(UINT32_MAX)};
		RelFileLocator found;
		MotLogicalChange changes[4];
		MotLogicalChange change;
		StringInfoData buf;
		char		head[MOT_RECORD_STORAGE_SIZE];
		const char *error;
		const char *p;
		size_t		behind;
		size_t		len;
		int			format;
		int			n = 1 + (int) next_random(4);
		int			i = 0;

		initStringInfo(&buf);
		put_bytes(&buf, head, MotRecordPutStorage(head, &storage));
		for (int k = 0; k < n; k++)
		{
			changes[k].kind = MOT_LOGICAL_INSERT + next_random(3);
			changes[k].before = logical_row(before[k], changes[k].kind != MOT_LOGICAL_INSERT && next_random(2));
			changes[k].after = logical_row(after[k], changes[k].kind != MOT_LOGICAL_DELETE);
			put_logical(&buf, &changes[k]);
		}
		p = guarded(buf.data, buf.len);
		behind = MotRecordGetStorage(p, buf.len, &found, &format);
		good = behind == MOT_RECORD_STORAGE_SIZE && format == MOT_RECORD_FORMAT &&
			memcmp(&found, &storage, sizeof(found)) == 0;
		p += behind;
		while (good && MotRecordNextLogical(&p, guard, &change, &error))
		{
			good = i < n && change.kind == changes[i].kind && same_row(&change.before, &changes[i].before) &&
				same_row(&change.after, &changes[i].after);
			i++;
		}
		good = good && i == n && error == NULL;

		/* cut short or damaged, it is read no further than it goes */
		len = next_random(buf.len);
		p = guarded(buf.data, len);
		for (uint32 k = next_random(3); k > 0 && len > 0; k--)
			guard[-1 - (int) next_random((uint32) len)] = (char) next_random(256);
		behind = MotRecordGetStorage(p, len, &found, &format);
		told = behind == 0 ? len < MOT_RECORD_STORAGE_SIZE || format > MOT_RECORD_FORMAT : len >= MOT_RECORD_STORAGE_SIZE;
		p += behind;
		while (behind != 0 && MotRecordNextLogical(&p, guard, &change, &error))
		{
			for (size_t k = 0; k < change.before.size; k++)
				sum += ((const char *) change.before.data)[k];
			for (size_t k = 0; k < change.after.size; k++)
				sum += ((const char *) change.after.data)[k];
		}
		free(buf.data);
	}
	ok(good, "changes for logical decoding are read as they were written");
	ok(told, "... and not beyond their end");
}

int
main(void)
{
	make_guard();
	test_headers();
	for (int number = 1; number <= MOT_RECORD_FORMAT; number++)
		test_fixture(number);
	test_both_ways();
	test_size_of_updates();
	test_truncated();
	test_damage();
	test_long();
	test_logical();
	printf("1..%d\n", tests);
	return failed ? 1 : 0;
}
