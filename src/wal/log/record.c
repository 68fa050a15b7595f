/*-------------------------------------------------------------------------
 *
 * record.c
 *	  Operations of redo records: writing and taking apart.
 *
 * record.h says what they look like.  Whatever is read here may be damaged (a
 * record has a checksum, but what was written may have been nonsense), so
 * every length is held against what is left before it is believed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "wal/log/record.h"

#define VARINT_MAX 10			/* bytes of the longest */

/*
 * Equal bytes between two changed runs are worth two lengths from here on
 * only.
 */
#define MIN_KEPT 3

/* ----------------------------------------------------------------- varints */

static inline char *
put_varint(char *p, uint64 value)
{
	while (value >= 0x80)
	{
		*p++ = (char) (value | 0x80);
		value >>= 7;
	}
	*p++ = (char) value;
	return p;
}

static inline bool
get_varint(const char **p, const char *end, uint64 *value)
{
	uint64		result = 0;

	for (int shift = 0; shift < 64 && *p < end; shift += 7)
	{
		uint8		byte = (uint8) *(*p)++;

		if (shift == 63 && byte > 1)
			return false;
		result |= (uint64) (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
		{
			*value = result;
			return true;
		}
	}
	return false;
}

/* a length and as many bytes */
static inline bool
get_bytes(const char **p, const char *end, const char **bytes, size_t *len)
{
	uint64		n;

	if (!get_varint(p, end, &n) || n > (uint64) (end - *p))
		return false;
	*bytes = *p;
	*len = n;
	*p += n;
	return true;
}

static inline bool
get_host_bits(const char **p, const char *end, unsigned *host_bits)
{
	uint64		n;

	if (!get_varint(p, end, &n) || n >= (UINT64_C(1) << MOT_HOST_BITS))
		return false;
	*host_bits = (unsigned) n;
	return true;
}

static inline bool
get_oid(const char **p, const char *end, Oid *oid)
{
	if (end - *p < sizeof(Oid))
		return false;
	memcpy(oid, *p, sizeof(Oid));
	*p += sizeof(Oid);
	return true;
}

/* ------------------------------------------------------------------ header */

int
MotRecordPutHeader(char *to, const MotRecordHeader *header)
{
	char	   *p = to;

	*p++ = MOT_RECORD_FORMAT;
	p = put_varint(p, header->stream);
	memcpy(p, &header->time, sizeof(header->time));
	return (int) (p - to) + (int) sizeof(header->time);
}

size_t
MotRecordGetHeader(const char *data, size_t len, MotRecordHeader *header, int *format)
{
	const char *p = data;
	const char *end = data + len;

	*format = 1;
	if (len > 0 && (uint8) *p % 8 != 0)
		*format = (uint8) *p++;
	if (*format > MOT_RECORD_FORMAT)
		return 0;
	if (*format > 1)
	{
		if (!get_varint(&p, end, &header->stream))
			return 0;
	}
	else
	{
		if (end - p < sizeof(header->stream))
			return 0;
		memcpy(&header->stream, p, sizeof(header->stream));
		p += sizeof(header->stream);
	}
	if (end - p < sizeof(header->time))
		return 0;
	memcpy(&header->time, p, sizeof(header->time));
	return p - data + sizeof(header->time);
}

/* ----------------------------------------------------------------- writing */

/* where "n" bytes can be written; the end is told by put_end */
static inline char *
put_begin(StringInfo buf, size_t n)
{
	if (unlikely((size_t) (buf->maxlen - buf->len) <= n))
	{
		if (n >= MaxAllocSize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("change of a memory-optimized table's row is too large to be logged")));
		enlargeStringInfo(buf, (int) n);
	}
	return buf->data + buf->len;
}

static inline void
put_end(StringInfo buf, char *p)
{
	buf->len = (int) (p - buf->data);
}

static inline char *
put_oid(char *p, Oid oid)
{
	memcpy(p, &oid, sizeof(Oid));
	return p + sizeof(Oid);
}

static inline char *
put_bytes(char *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

void
MotRecordTable(StringInfo buf, Oid dbid, Oid relid)
{
	char	   *p = put_begin(buf, 1 + 2 * sizeof(Oid));

	*p++ = MOT_OP_TABLE;
	p = put_oid(p, dbid);
	p = put_oid(p, relid);
	put_end(buf, p);
}

void
MotRecordBytes(StringInfo buf, MotOp op, const void *bytes, size_t len)
{
	char	   *p = put_begin(buf, 1 + VARINT_MAX + len);

	*p++ = (char) op;
	p = put_varint(p, len);
	p = put_bytes(p, bytes, len);
	put_end(buf, p);
}

void
MotRecordOid(StringInfo buf, MotOp op, Oid oid)
{
	char	   *p = put_begin(buf, 1 + sizeof(Oid));

	*p++ = (char) op;
	if (op != MOT_OP_DROP)
		p = put_oid(p, oid);
	put_end(buf, p);
}

void
MotRecordInsert(StringInfo buf, unsigned host_bits, const void *row, size_t size)
{
	char	   *p = put_begin(buf, 1 + 2 * VARINT_MAX + size);

	*p++ = MOT_OP_INSERT;
	p = put_varint(p, host_bits);
	p = put_varint(p, size);
	p = put_bytes(p, row, size);
	put_end(buf, p);
}

/* mode: of LOCK only */
static void
put_identity(StringInfo buf, MotOp op, int mode, const void *key, size_t key_len,
			 unsigned old_host_bits, const void *old, size_t old_size)
{
	char	   *p = put_begin(buf, 2 + 3 * VARINT_MAX + (key != NULL ? key_len : old_size));

	*p++ = (char) op;
	if (op == MOT_OP_LOCK)
		*p++ = (char) mode;
	if (key != NULL)
	{
		Assert(key_len > 0);
		p = put_varint(p, key_len);
		p = put_bytes(p, key, key_len);
	}
	else
	{
		*p++ = 0;
		p = put_varint(p, old_host_bits);
		p = put_varint(p, old_size);
		p = put_bytes(p, old, old_size);
	}
	put_end(buf, p);
}

bool
MotRecordIsPrepared(const char *ops, size_t len)
{
	return len > 0 && MOT_OP_IS_PREPARED(*ops);
}

void
MotRecordLock(StringInfo buf, mot_row_mode mode, const void *key, size_t key_len,
			  unsigned old_host_bits, const void *old, size_t old_size)
{
	put_identity(buf, MOT_OP_LOCK, mode, key, key_len, old_host_bits, old, old_size);
}

void
MotRecordDelete(StringInfo buf, const void *key, size_t key_len,
				unsigned old_host_bits, const void *old, size_t old_size)
{
	put_identity(buf, MOT_OP_DELETE, 0, key, key_len, old_host_bits, old, old_size);
}

/* ----------------------------------------------------------- differences */

static inline uint64
load_word(const char *p)
{
	uint64		word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/*
 * the first and (one behind) the last byte in which two words differ, given what is not the same in
 * them
 */
static inline int
first_byte(uint64 difference)
{
#ifdef WORDS_BIGENDIAN
	return 7 - pg_leftmost_one_pos64(difference) / 8;
#else
	return pg_rightmost_one_pos64(difference) / 8;
#endif
}

static inline int
last_byte(uint64 difference)
{
#ifdef WORDS_BIGENDIAN
	return 8 - pg_rightmost_one_pos64(difference) / 8;
#else
	return pg_leftmost_one_pos64(difference) / 8 + 1;
#endif
}

/* the changed bytes from "from" to "to", after those kept since "done" */
static inline char *
put_segment(char *p, const char *row, size_t done, size_t from, size_t to)
{
	p = put_varint(p, from - done);
	p = put_varint(p, to - from);
	return put_bytes(p, row + from, to - from);
}

/*
 * Word by word; the bytes at the ends of a changed run are told apart, those
 * within a changed word are not.
 */
static void
put_segments(StringInfo buf, const char *old, size_t old_size,
			 const char *row, size_t size)
{
	size_t		common = Min(old_size, size);
	size_t		done = 0;		/* written up to here */
	size_t		from = 0;		/* the changed run found last */
	size_t		to = 0;
	size_t		i;
	char	   *p;

	/*
	 * Each segment but the first leaves out at least as much as its lengths
	 * take, unless there are very many bytes in it.
	 */
	p = put_begin(buf, size + size / 8192 + 4 * VARINT_MAX);

	for (i = 0; i < common; i += sizeof(uint64))
	{
		uint64		difference;
		size_t		first;
		size_t		last;

		if (likely(common - i >= sizeof(uint64)))
			difference = load_word(old + i) ^ load_word(row + i);
		else
		{
			uint64		a = 0;
			uint64		b = 0;

			memcpy(&a, old + i, common - i);
			memcpy(&b, row + i, common - i);
			difference = a ^ b;
		}
		if (difference == 0)
		{
			/* most of a row is as it was: go on faster */
			while (common - i >= 5 * sizeof(uint64) &&
				   ((load_word(old + i + 8) ^ load_word(row + i + 8)) |
					(load_word(old + i + 16) ^ load_word(row + i + 16)) |
					(load_word(old + i + 24) ^ load_word(row + i + 24)) |
					(load_word(old + i + 32) ^ load_word(row + i + 32))) == 0)
				i += 4 * sizeof(uint64);
			continue;
		}
		first = i + first_byte(difference);
		last = i + last_byte(difference);
		if (to > from && first - to >= MIN_KEPT)
		{
			p = put_segment(p, row, done, from, to);
			done = to;
			from = first;
		}
		else if (to == from)
			from = first;
		to = last;
	}

	/* what the old row does not have is new */
	if (size > common)
	{
		if (to > from && common - to >= MIN_KEPT)
		{
			p = put_segment(p, row, done, from, to);
			done = to;
			from = common;
		}
		else if (to == from)
			from = common;
		to = size;
	}

	if (to > from)
	{
		p = put_segment(p, row, done, from, to);
		done = to;
	}
	if (done < size)
	{
		p = put_varint(p, size - done);
		p = put_varint(p, 0);
	}
	put_end(buf, p);
	Assert(buf->len < buf->maxlen);
}

void
MotRecordUpdate(StringInfo buf, const void *key, size_t key_len,
				unsigned old_host_bits, const void *old, size_t old_size, size_t columns,
				unsigned host_bits, const void *row, size_t size)
{
	char	   *p;

	put_identity(buf, MOT_OP_UPDATE, 0, key, key_len, old_host_bits, old, old_size);

	p = put_begin(buf, 2 * VARINT_MAX);
	p = put_varint(p, host_bits);
	p = put_varint(p, size);
	put_end(buf, p);
	put_segments(buf, old, columns, row, size);
}

bool
MotRecordPatch(const MotOpData *op, const void *old, size_t old_size, void *new_row)
{
	const char *p = op->segments;
	const char *end = p + op->segments_len;
	char	   *to = new_row;
	size_t		done = 0;

	while (done < op->new_len)
	{
		uint64		kept;
		const char *bytes;
		size_t		len;

		if (!get_varint(&p, end, &kept) || kept > op->new_len - done ||
			(kept > 0 && (done > old_size || kept > old_size - done)))
			return false;
		memcpy(to + done, (const char *) old + done, kept);
		done += kept;
		if (!get_bytes(&p, end, &bytes, &len) || len > op->new_len - done ||
			kept + len == 0)
			return false;
		memcpy(to + done, bytes, len);
		done += len;
	}
	return p == end;
}

/* ----------------------------------------------------------- taking apart */

static bool
get_identity(const char **p, const char *end, MotOpData *op)
{
	if (!get_bytes(p, end, &op->key, &op->key_len))
		return false;
	if (op->key_len > 0)
		return true;
	op->key = NULL;
	return get_host_bits(p, end, &op->old_host_bits) &&
		get_bytes(p, end, &op->old_bytes, &op->old_len);
}

/* as far as they go: they say themselves when the new row is complete */
static bool
get_segments(const char **p, const char *end, MotOpData *op)
{
	uint64		size;
	uint64		done = 0;

	if (!get_host_bits(p, end, &op->host_bits) || !get_varint(p, end, &size) ||
		size > MaxAllocSize)
		return false;
	op->new_len = size;
	op->segments = *p;
	while (done < size)
	{
		uint64		kept;
		const char *bytes;
		size_t		len;

		if (!get_varint(p, end, &kept) || kept > size - done ||
			!get_bytes(p, end, &bytes, &len) || len > size - done - kept ||
			kept + len == 0)
			return false;
		done += kept + len;
	}
	op->segments_len = *p - op->segments;
	return true;
}

static bool
next_operation(const char **p, const char *end, MotOpData *op, const char **error)
{
	bool		whole;

	memset(op, 0, sizeof(*op));
	op->op = (MotOp) (uint8) *(*p)++;
	switch (op->op)
	{
		case MOT_OP_TABLE:
			whole = get_oid(p, end, &op->dbid) && get_oid(p, end, &op->oid);
			break;
		case MOT_OP_CREATE:
		case MOT_OP_DEFINE:
			whole = get_bytes(p, end, &op->bytes, &op->len);
			break;
		case MOT_OP_INDEX:
			whole = get_oid(p, end, &op->oid);
			break;
		case MOT_OP_DROP:
			whole = true;
			break;
		case MOT_OP_DROP_DATABASE:
			whole = get_oid(p, end, &op->dbid);
			break;
		case MOT_OP_INSERT:
			whole = get_host_bits(p, end, &op->host_bits) &&
				get_bytes(p, end, &op->bytes, &op->len);
			break;
		case MOT_OP_UPDATE:
			whole = get_identity(p, end, op) && get_segments(p, end, op);
			break;
		case MOT_OP_DELETE:
			whole = get_identity(p, end, op);
			break;
		case MOT_OP_PREPARED:
		case MOT_OP_PREPARED_READS:
			whole = get_bytes(p, end, &op->bytes, &op->len);
			break;
		case MOT_OP_LOCK:
			whole = *p < end && (op->mode = (uint8) *(*p)++) <= MOT_MODE_KEY_SHARE &&
				get_identity(p, end, op);
			break;
		default:
			*error = "there is an unknown operation";
			return false;
	}
	if (!whole)
		*error = "an operation is longer than what there is of it";
	return whole;
}

bool
MotRecordNext(const char **p, const char *end, MotOpData *op, const char **error)
{
	const char *at = *p;

	*error = NULL;
	if (at >= end)
		return false;

	/* what a long operation announces lies behind it, all of it */
	if (*at == MOT_OP_LONG)
	{
		const char *bytes;
		size_t		len;

		at++;
		if (!get_bytes(&at, end, &bytes, &len))
		{
			*error = "a long operation is not complete";
			return false;
		}
		if (len == 0 || *bytes == MOT_OP_LONG)
		{
			*error = "a long operation holds none";
			return false;
		}
		if (!next_operation(&bytes, at, op, error))
			return false;
		if (bytes != at)
		{
			*error = "a long operation is followed by something else";
			return false;
		}
		*p = at;
		return true;
	}

	if (!next_operation(&at, end, op, error))
		return false;
	*p = at;
	return true;
}

/* ------------------------------------------------- changes for logical decoding */

#define HAS_BEFORE 0x10
#define HAS_AFTER 0x20
#define KIND_MASK 0x0f

int
MotRecordPutStorage(char *to, const RelFileLocator *storage)
{
	Oid			oids[] = {storage->spcOid, storage->dbOid, storage->relNumber};

	*to = MOT_RECORD_FORMAT;
	memcpy(to + 1, oids, sizeof(oids));
	return 1 + sizeof(oids);
}

int
MotRecordPutLogical(char *to, const MotLogicalChange *change)
{
	*to = change->kind | (change->before.data != NULL ? HAS_BEFORE : 0) |
		(change->after.data != NULL ? HAS_AFTER : 0);
	return 1;
}

int
MotRecordPutRow(char *to, const MotLogicalRow *row)
{
	return (int) (put_varint(put_varint(to, row->host_bits), row->size) - to);
}

size_t
MotRecordGetStorage(const char *data, size_t len, RelFileLocator *storage, int *format)
{
	const char *p = data;
	const char *end = data + len;

	*format = len > 0 ? (uint8) *p++ : 0;
	if (*format > MOT_RECORD_FORMAT || !get_oid(&p, end, &storage->spcOid) ||
		!get_oid(&p, end, &storage->dbOid) || !get_oid(&p, end, &storage->relNumber))
		return 0;
	return p - data;
}

static bool
get_row(const char **p, const char *end, bool has, MotLogicalRow *row)
{
	const char *bytes = NULL;

	row->data = NULL;
	row->size = 0;
	row->host_bits = 0;
	if (!has)
		return true;
	if (!get_host_bits(p, end, &row->host_bits) || !get_bytes(p, end, &bytes, &row->size))
		return false;
	row->data = bytes;
	return true;
}

bool
MotRecordNextLogical(const char **p, const char *end, MotLogicalChange *change, const char **error)
{
	uint8		byte;

	*error = NULL;
	if (*p == end)
		return false;
	byte = (uint8) *(*p)++;
	change->kind = byte & KIND_MASK;
	if (change->kind < MOT_LOGICAL_INSERT || change->kind > MOT_LOGICAL_DELETE ||
		(byte & ~(KIND_MASK | HAS_BEFORE | HAS_AFTER)) != 0 ||
		((byte & HAS_AFTER) != 0) != (change->kind != MOT_LOGICAL_DELETE))
		*error = "unknown change";
	else if (!get_row(p, end, (byte & HAS_BEFORE) != 0, &change->before) ||
			 !get_row(p, end, (byte & HAS_AFTER) != 0, &change->after))
		*error = "a row runs over the end";
	return *error == NULL;
}
