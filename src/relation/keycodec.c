/*-------------------------------------------------------------------------
 *
 * keycodec.c
 *	  Keys of rows: which encoding a column gets, and putting columns together.
 *
 * The encodings of the types are in keycodec_fixed.c, keycodec_varlena.c and
 * keycodec_numeric.c; comparisons with other types in keycodec_convert.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "compat/attribute.h"
#include "compat/collation.h"
#include "miscadmin.h"
#include "relation/collation.h"
#include "relation/enumerated.h"
#include "relation/keycodec_types.h"
#include "relation/relation.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* MotKeyColumn.inline_kind */
#define INLINE_NONE 0
#define INLINE_INT4 1
#define INLINE_INT8 2

typedef struct Encoding
{
	MotKeyAppend append;		/* NULL: an integer, in place */
	int16		width;
	uint8		inline_kind;
} Encoding;

static void append_no_rank(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf);

static const Encoding encodings[] = {
	[AS_BOOL] = {MotKeyAppendBool, 1},
	[AS_CHAR] = {MotKeyAppendChar, 1},
	[AS_INT2] = {MotKeyAppendInt2, 2},
	[AS_INT4] = {NULL, 4, INLINE_INT4},
	[AS_INT8] = {NULL, 8, INLINE_INT8},
	[AS_UINT4] = {MotKeyAppendUInt4, 4},
	[AS_UINT8] = {MotKeyAppendUInt8, 8},
	[AS_TID] = {MotKeyAppendTid, 6},
	[AS_FLOAT4] = {MotKeyAppendFloat4, 4},
	[AS_FLOAT8] = {MotKeyAppendFloat8, 8},
	[AS_NUMERIC] = {MotKeyAppendNumeric, -1},
	[AS_TIMETZ] = {MotKeyAppendTimeTz, 12},
	[AS_INTERVAL] = {MotKeyAppendInterval, 10},
	[AS_UUID] = {MotKeyAppendBytes, 16},
	[AS_MACADDR] = {MotKeyAppendBytes, 6},
	[AS_MACADDR8] = {MotKeyAppendBytes, 8},
	[AS_INET] = {MotKeyAppendInet, -1},
	[AS_BYTEA] = {MotKeyAppendBytea, -1},
	[AS_BIT] = {MotKeyAppendBit, -1},
	[AS_TEXT] = {MotKeyAppendText, -1},
	[AS_BPCHAR] = {MotKeyAppendBpchar, -1},
	[AS_NAME] = {MotKeyAppendName, -1},
	[AS_RANK] = {append_no_rank, -1},
};

/* how a comparison function's type is encoded */
typedef struct Compared
{
	Oid			compare;		/* btree support function 1 */
	Oid			typid;
	int			encoding;
	enum
	{
		ORDERED, BY_COLLATION, ENUMERATED
	}			order;
} Compared;

static const Compared compared[] = {
	{F_BTBOOLCMP, BOOLOID, AS_BOOL},
	{F_BTCHARCMP, CHAROID, AS_CHAR},
	{F_BTINT2CMP, INT2OID, AS_INT2},
	{F_BTINT4CMP, INT4OID, AS_INT4},
	{F_BTINT8CMP, INT8OID, AS_INT8},
	{F_BTOIDCMP, OIDOID, AS_UINT4},
	{F_XID8CMP, XID8OID, AS_UINT8},
	{F_PG_LSN_CMP, PG_LSNOID, AS_UINT8},
	{F_BTTIDCMP, TIDOID, AS_TID},
	{F_CASH_CMP, MONEYOID, AS_INT8},
	{F_BTFLOAT4CMP, FLOAT4OID, AS_FLOAT4},
	{F_BTFLOAT8CMP, FLOAT8OID, AS_FLOAT8},
	{F_NUMERIC_CMP, NUMERICOID, AS_NUMERIC},
	{F_DATE_CMP, DATEOID, AS_INT4},
	{F_TIME_CMP, TIMEOID, AS_INT8},
	{F_TIMETZ_CMP, TIMETZOID, AS_TIMETZ},
	{F_TIMESTAMP_CMP, TIMESTAMPOID, AS_INT8},
	{F_TIMESTAMPTZ_CMP, TIMESTAMPTZOID, AS_INT8},
	{F_INTERVAL_CMP, INTERVALOID, AS_INTERVAL},
	{F_UUID_CMP, UUIDOID, AS_UUID},
	{F_MACADDR_CMP, MACADDROID, AS_MACADDR},
	{F_MACADDR8_CMP, MACADDR8OID, AS_MACADDR8},
	{F_NETWORK_CMP, INETOID, AS_INET},
	{F_BYTEACMP, BYTEAOID, AS_BYTEA},
	{F_BITCMP, BITOID, AS_BIT},
	{F_VARBITCMP, VARBITOID, AS_BIT},
	{F_BTTEXTCMP, TEXTOID, AS_TEXT, BY_COLLATION},
	{F_BTTEXT_PATTERN_CMP, TEXTOID, AS_TEXT},
	{F_BPCHARCMP, BPCHAROID, AS_BPCHAR, BY_COLLATION},
	{F_BTBPCHAR_PATTERN_CMP, BPCHAROID, AS_BPCHAR},
	{F_BTNAMECMP, NAMEOID, AS_NAME, BY_COLLATION},
	{F_ENUM_CMP, ANYENUMOID, AS_UINT4, ENUMERATED},
};

static void raise_null(const MotKeyColumn *column) pg_attribute_noreturn();
static void raise_key_too_long(const MotKey *key, size_t most) pg_attribute_noreturn();

/* ---------------------------------------------------------------- buffers */

void
MotKeyBufferInit(MotKeyBuffer *buf, MemoryContext cxt)
{
	buf->data = buf->fixed;
	buf->len = 0;
	buf->size = sizeof(buf->fixed);
	buf->cxt = cxt;
}

void
MotKeyBufferReset(MotKeyBuffer *buf)
{
	buf->len = 0;
}

/* make room for "more" bytes behind len */
void
MotKeyBufferGrow(MotKeyBuffer *buf, size_t more)
{
	size_t		size = Max(2 * buf->size, buf->len + more);

	if (buf->data == buf->fixed)
	{
		uint8	   *data = MemoryContextAlloc(buf->cxt ? buf->cxt : CurrentMemoryContext, size);

		memcpy(data, buf->fixed, buf->len);
		buf->data = data;
	}
	else
		buf->data = repalloc(buf->data, size);
	buf->size = size;
}

void
MotKeyBufferAppend(MotKeyBuffer *buf, const void *bytes, size_t len)
{
	key_put_bytes(buf, bytes, len);
}

void
MotKeyBufferSet(MotKeyBuffer *buf, const void *bytes, size_t len)
{
	buf->len = 0;
	key_put_bytes(buf, bytes, len);
}

bool
MotKeyFitBound(MotKeyBuffer *buf)
{
	if (likely(buf->len <= MOT_MAX_KEY))
		return true;
	buf->len = MOT_MAX_KEY;
	return false;
}

/* -------------------------------------------------------- which encoding */

/* labels are found, not made of the value: by ranked.c */
static void
append_no_rank(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	elog(ERROR, "column %d of an index has no encoding", column->attnum);
}

/*
 * as long as a short label and the value are, and another one for each value's bytes: who estimates
 * has no index
 */
static void
append_stand_in(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	struct varlena *flat = column->typlen == -1 ? PG_DETOAST_DATUM_PACKED(value) : NULL;
	const char *bytes = flat != NULL ? VARDATA_ANY(flat) : column->typbyval ? (char *) &value : DatumGetPointer(value);
	size_t		len = flat != NULL ? Min(VARSIZE_ANY_EXHDR(flat), MOT_KEY_VALUE_MAX) : (size_t) column->typlen;

	key_put64(buf, hash_bytes_extended((const unsigned char *) bytes, (int) len, 0));
	key_put8(buf, 0);
	key_put16(buf, (uint16) len);
	key_put_bytes(buf, bytes, len);
}

static const Compared *
find_compared(Oid compare)
{
	for (size_t i = 0; i < lengthof(compared); i++)
		if (compared[i].compare == compare)
			return &compared[i];
	return NULL;
}

/*
 * The extension's default operator classes are those of btree, as far as
 * there are encodings; so ask for btree's, which also answers for types that
 * have none of their own, and for those that have one we do not know.
 */
bool
MotKeyTypeSupported(Oid typid)
{
	Oid			opclass = GetDefaultOpClass(typid, BTREE_AM_OID);
	Oid			input;

	if (!OidIsValid(opclass))
		return false;
	input = get_opclass_input_type(opclass);
	return find_compared(get_opfamily_proc(get_opclass_family(opclass), input, input,
										   BTORDER_PROC)) != NULL;
}

/*
 * C.UTF-8 compares code points, whose order is that of their UTF-8 bytes:
 * since version 2.35 glibc defines it to be strcmp's order.  (Before, it was
 * up to distributions.)
 */
static bool
locale_is_bytewise(const char *locale)
{
#ifdef __GLIBC__
	int			major;
	int			minor;

	if (pg_strcasecmp(locale, "C.UTF-8") != 0 && pg_strcasecmp(locale, "C.utf8") != 0)
		return false;
	return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
		(major > 2 || (major == 2 && minor >= 35));
#else
	return false;
#endif
}

/*
 * Does the collation order strings as memcmp does?  By what the catalogue says: the locale
 * itself may be gone, and is not opened for this.
 */
static bool
collation_is_bytewise(Oid collation)
{
	MotCollationSource source;

	if (collation == C_COLLATION_OID)
		return true;
	(void) MotCollationRead(collation, &source);
	if (source.provider == COLLPROVIDER_BUILTIN)
		return true;
	return source.provider == COLLPROVIDER_LIBC && source.locale != NULL &&
		(strcmp(source.locale, "C") == 0 || strcmp(source.locale, "POSIX") == 0 || locale_is_bytewise(source.locale));
}

/*
 * Has the column no encoding?  (Enums have one, see enumerated.h, which unique keys have: rows are
 * named by them in the log, and look-ups by a label are slower.)
 */
static bool
is_ranked(Relation index, int i)
{
	const Compared *by = find_compared(index_getprocid(index, i + 1, BTORDER_PROC));

	return by == NULL || (by->order == ENUMERATED && !index->rd_index->indisunique);
}

static void
init_column(MotKeyColumn *column, Relation heap, Relation index, int i, bool ordinary, bool computed)
{
	Form_pg_attribute att;
	const Compared *by;
	int16		option = index->rd_indoption[i];

	column->attnum = index->rd_index->indkey.values[i];
	if (column->attnum <= 0 && (column->attnum < 0 || !computed))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has a column that is not a plain table column",
						RelationGetRelationName(index)),
				 errdetail("Indexes of memory-optimized tables cannot hold expressions or system columns.")));

	att = computed ? TupleDescAttr(RelationGetDescr(index), i) :
		TupleDescAttr(RelationGetDescr(heap), column->attnum - 1);
	if (computed)
		column->attnum = (AttrNumber) (i + 1);
	column->collation = index->rd_indcollation[i];
	column->nullable = computed || !MotAttributeNotNull(RelationGetDescr(heap), column->attnum - 1);
	column->descending = (option & INDOPTION_DESC) != 0;
	column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
	by = find_compared(index_getprocid(index, i + 1, BTORDER_PROC));
	if (ordinary && is_ranked(index, i))
	{
		column->typid = index->rd_opcintype[i];
		column->ordered = column->ranked = true;
		column->typlen = att->attlen;
		column->typbyval = att->attbyval;
		(void) MotKeySetEncoding(column, AS_RANK);
		return;
	}
	if (by == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of type %s cannot be an index column of a memory-optimized table",
						NameStr(att->attname), format_type_be(att->atttypid)),
				 errdetail("There is no key encoding for this type and operator class."),
				 errhint("Index another column, or keep a column of an ordinary type that identifies the value.")));

	column->typid = by->typid;
	if (column->typid == ANYENUMOID)
		column->typid = getBaseType(att->atttypid);
	(void) MotKeySetEncoding(column, by->encoding);

	column->ordered = by->order == ORDERED || by->order == ENUMERATED ||
		(by->order == BY_COLLATION && collation_is_bytewise(column->collation));
	/* (what is computed is stored with the row, as bytes) */
	if (by->order == BY_COLLATION && !column->ordered && !computed &&
		(column->encoding == AS_TEXT || column->encoding == AS_BPCHAR))
		column->collation_order = MotCollationOf(column->collation);

	if (column->collation_order == NULL && OidIsValid(column->collation) &&
		!get_collation_isdeterministic(column->collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" with nondeterministic collation \"%s\" cannot be an index column of a memory-optimized table",
						NameStr(att->attname), get_collation_name(column->collation)),
				 errhint("Give the column a deterministic collation.")));
}

static MotKey *
create(Relation heap, Relation index, bool ordinary)
{
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(index);
	MotKey	   *key = palloc0(offsetof(MotKey, columns) + ncolumns * sizeof(MotKeyColumn));

	key->indexoid = RelationGetRelid(index);
	key->ncolumns = ncolumns;
	/* (the relation cache would evaluate constants, in whose name?) */
	key->functional = ordinary &&
		(!heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) ||
		 !heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL));
	for (int i = 0; i < ncolumns && ordinary; i++)
		key->ranked |= is_ranked(index, i);
	key->computed = key->functional || key->ranked;
	key->nulls_equal = index->rd_index->indnullsnotdistinct;
	for (int i = 0; i < ncolumns; i++)
		init_column(&key->columns[i], heap, index, i, ordinary, key->computed);
	return key;
}

MotKeyColumn *
MotKeyColumnOfOrder(Oid operator, Oid collation, bool nulls_first)
{
	MotKeyColumn *column;
	const Compared *by;
	Oid			opfamily;
	Oid			opcintype;
	CompareType direction;

	if (!get_ordering_op_properties(operator, &opfamily, &opcintype, &direction))
		return NULL;
	by = find_compared(get_opfamily_proc(opfamily, opcintype, opcintype, BTORDER_PROC));
	if (by == NULL || by->order == ENUMERATED ||
		(by->order == BY_COLLATION && !collation_is_bytewise(collation)))
		return NULL;
	column = palloc0(sizeof(MotKeyColumn));
	column->typid = by->typid;
	column->collation = collation;
	column->nullable = column->ordered = true;
	column->descending = direction == COMPARE_GT;
	column->nulls_first = nulls_first;
	(void) MotKeySetEncoding(column, by->encoding);
	return column;
}

MotKey *
MotKeyCreate(Relation heap, Relation index)
{
	MotKey	   *key = create(heap, index, MotIsOrdinary(heap));

	MotKeyOpenCollations(key, true);
	return key;
}

MotKey *
MotKeyCreateFor(Relation heap, Relation index)
{
	MotKey	   *key = create(heap, index, heap->rd_rel->relkind != RELKIND_FOREIGN_TABLE);

	for (int i = 0; i < key->ncolumns; i++)
		if (key->columns[i].ranked)
			key->columns[i].append = append_stand_in;
	MotKeyOpenCollations(key, true);
	return key;
}

MotKey *
MotKeyCreateAs(Relation heap, Relation index, uint64 form)
{
	MotKey	   *key = create(heap, index, MotIsOrdinary(heap));

	for (int i = 0; i < key->ncolumns && MotIsOrdinary(heap); i++)
		key->columns[i].nullable = (form >> i & 1) != 0;
	MotKeyAdoptCollations(key, form);
	return key;
}

void
MotKeySummarize(MotKey *key)
{
	int			cut = 0;

	key->max_attnum = 0;
	key->width = 0;
	key->all_inline = true;
	key->collated = key->compared = key->enumerated = false;
	for (int i = 0; i < key->ncolumns; i++)
	{
		MotKeyColumn *column = &key->columns[i];

		if (!key->computed)
			key->max_attnum = Max(key->max_attnum, column->attnum);
		key->all_inline &= column->inline_kind != INLINE_NONE && !column->nullable;
		column->enumerated = column->encoding == AS_UINT4 && column->typid != OIDOID;
		key->enumerated |= column->enumerated;
		key->collated |= column->collated;
		key->compared |= column->collated && !column->collation_order->trusted;
		/* (also where the locale is not there today) */
		if (column->collation_order != NULL && !column->collation_order->trusted)
			cut++;

		/* a null byte may stand without a value */
		if (column->width < 0 || column->nullable)
			key->width = -1;
		else if (key->width >= 0)
			key->width += column->width;
	}
	/* with their zero bytes */
	key->most = cut > 0 ? MOT_MAX_KEY - MOT_SORT_KEY_MAX - cut : MOT_MAX_KEY;
	for (int i = 0; i < key->ncolumns && cut > 0; i++)
		key->columns[i].sort_key_max = (uint16) (MOT_SORT_KEY_MAX / cut);
}

uint64
MotKeyForm(const MotKey *key)
{
	uint64		form = MotKeyCollatedForm(key);

	for (int i = 0; i < key->ncolumns; i++)
		if (key->columns[i].nullable)
			form |= UINT64CONST(1) << i;
	return form;
}

bool
MotKeySetEncoding(MotKeyColumn *column, int number)
{
	if (number <= 0 || number >= (int) lengthof(encodings))
		return false;
	column->encoding = (uint8) number;
	column->append = encodings[number].append;
	column->width = encodings[number].width;
	column->inline_kind = encodings[number].inline_kind;
	return true;
}

/* ---------------------------------------------------------------- columns */

static inline uint8
null_byte(const MotKeyColumn *column, bool null)
{
	if (!null)
		return MOT_KEY_NOT_NULL;
	return column->nulls_first ? MOT_KEY_NULL_FIRST : MOT_KEY_NULL_LAST;
}

/* an integer's bytes; where the next ones go */
static inline uint8 *
put_int4(uint8 *to, const MotKeyColumn *column, int32 value)
{
	uint32		number = key_flip32(value);

	number = pg_hton32(column->descending ? ~number : number);
	memcpy(to, &number, sizeof(number));
	return to + sizeof(number);
}

static inline uint8 *
put_int8(uint8 *to, const MotKeyColumn *column, int64 value)
{
	uint64		number = key_flip64(value);

	number = pg_hton64(column->descending ? ~number : number);
	memcpy(to, &number, sizeof(number));
	return to + sizeof(number);
}

static inline uint8 *
put_integer(uint8 *to, const MotKeyColumn *column, Datum value)
{
	if (column->inline_kind == INLINE_INT4)
		return put_int4(to, column, DatumGetInt32(value));
	return put_int8(to, column, DatumGetInt64(value));
}

static pg_attribute_always_inline void
append_column(const MotKeyColumn *column, Datum value, bool isnull, MotKeyBuffer *buf)
{
	size_t		start;

	if (column->nullable)
	{
		key_put8(buf, null_byte(column, isnull));
		if (isnull)
			return;
	}
	else if (unlikely(isnull))
		raise_null(column);

	if (column->inline_kind != INLINE_NONE)
	{
		(void) put_integer(key_room(buf, column->width), column, value);
		buf->len += column->width;
		return;
	}

	start = buf->len;
	column->append(column, value, buf);
	if (column->descending)
		for (size_t i = start; i < buf->len; i++)
			buf->data[i] = (uint8) ~buf->data[i];
}

void
MotKeyAppendColumn(const MotKeyColumn *column, Datum value, bool isnull, MotKeyBuffer *buf)
{
	append_column(column, value, isnull, buf);
}

bool
MotKeyAppendNullByte(const MotKeyColumn *column, bool null, MotKeyBuffer *buf)
{
	if (!column->nullable)
		return false;
	key_put8(buf, null_byte(column, null));
	return true;
}

uint8 *
MotKeyPutInteger(const MotKeyColumn *column, Datum value, uint8 *to)
{
	return put_integer(to, column, value);
}

/* the key of a row when it is nothing but integers: the most frequent kind */
static void
integers_from_row(const MotKey *key, const Datum *values, const bool *isnull, MotKeyBuffer *buf)
{
	uint8	   *to = key_room(buf, key->width);

	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		int			att = column->attnum - 1;

		if (unlikely(isnull[att]))
			raise_null(column);
		to = put_integer(to, column, values[att]);
	}
	buf->len += key->width;
}

uint32 *
MotKeyOffsets(const MotKey *key, TupleDesc desc)
{
	uint32	   *offsets = key->all_inline ? palloc(key->ncolumns * sizeof(uint32)) : NULL;
	uint32		off = 0;

	for (int i = 0; offsets != NULL && i < key->max_attnum; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attlen <= 0)
			return NULL;
		off = att_align_nominal(off, att->attalign);
		for (int j = 0; j < key->ncolumns; j++)
			if (key->columns[j].attnum == i + 1)
				offsets[j] = off;
		off += att->attlen;
	}
	return offsets;
}

void
MotKeyFromFixed(const MotKey *key, const char *base, const uint32 *offsets, MotKeyBuffer *buf)
{
	uint8	   *to = key_room(buf, key->width);

	Assert(key->all_inline);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];

		if (column->inline_kind == INLINE_INT4)
			to = put_int4(to, column, *(const int32 *) (base + offsets[i]));
		else
			to = put_int8(to, column, *(const int64 *) (base + offsets[i]));
	}
	buf->len += key->width;
}

bool
MotKeyIsOfFixed(const MotKey *key, const char *base, const uint32 *offsets, const uint8 *bytes)
{
	Assert(key->all_inline);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		uint8		one[sizeof(int64)];

		if (column->inline_kind == INLINE_INT4)
		{
			(void) put_int4(one, column, *(const int32 *) (base + offsets[i]));
			if (memcmp(one, bytes, sizeof(int32)) != 0)
				return false;
			bytes += sizeof(int32);
		}
		else
		{
			(void) put_int8(one, column, *(const int64 *) (base + offsets[i]));
			if (memcmp(one, bytes, sizeof(int64)) != 0)
				return false;
			bytes += sizeof(int64);
		}
	}
	return true;
}

unsigned
MotKeyFromRow(const MotKey *key, const Datum *values, const bool *isnull, MotKeyBuffer *buf)
{
	size_t		start = buf->len;
	bool		any_null = false;

	if (key->all_inline)
	{
		integers_from_row(key, values, isnull, buf);
		return 0;
	}

	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		int			att = column->attnum - 1;

		any_null |= isnull[att];
		append_column(column, values[att], isnull[att], buf);
	}
	if (unlikely(buf->len - start > key->most))
	{
		size_t		most = MotKeyExceeds(key, buf->data + start, buf->len - start);

		if (most > 0 && !key->blind)
			raise_key_too_long(key, most);
		/* the sort key was shorter; nobody looks for rows here */
		if (most > 0)
		{
			buf->len = start;
			return 0;
		}
	}
	return (any_null && !key->nulls_equal ? MOT_KEY_DISTINCT : 0) |
		(MotKeyIsOdd(key, buf->data + start, buf->len - start) ? MOT_KEY_ODD : 0);
}

unsigned
MotKeyOfRow(const MotKey *key, const MotTail *tail, const Datum *values, const bool *isnull,
			MotKeyBuffer *buf)
{
	const MotTailEntry *entry;

	if (likely(!key->computed))
		return MotKeyFromRow(key, values, isnull, buf);
	entry = MotTailFind(tail, key->indexoid);
	if (entry == NULL)
		return 0;
	MotKeyBufferAppend(buf, entry->key, entry->len);
	return (entry->has_null ? MOT_KEY_DISTINCT : 0) |
		(MotKeyIsOdd(key, entry->key, entry->len) ? MOT_KEY_ODD : 0);
}

void
MotKeyRefuseLong(const MotKey *key, size_t len)
{
	if (len > key->most)
		raise_key_too_long(key, key->most);
}

static void
raise_null(const MotKeyColumn *column)
{
	elog(ERROR, "null value in key column %d, which is declared NOT NULL", column->attnum);
}

static void
raise_key_too_long(const MotKey *key, size_t most)
{
	/* replay and loading have no catalogue */
	char	   *name = IsTransactionState() && OidIsValid(MyDatabaseId) ? get_rel_name(key->indexoid) : NULL;

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size exceeds maximum %zu for index \"%s\"",
					most, name ? name : ""),
			 errhint("Values this long cannot be indexed.\n"
					 "Consider indexing a column that holds a hash of the value.")));
}
