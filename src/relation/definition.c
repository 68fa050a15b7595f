/*-------------------------------------------------------------------------
 *
 * definition.c
 *	  A table's definition as bytes.
 *
 * The bytes begin with a Header; then, without padding and in the machine's
 * byte order (they are never read on another machine than the log is):
 *
 *	dbid 4, storage's number 4, table's oid 4, ordinary 1, maximum size 8, name (length 2, bytes)
 *	columns 2; for each: type 4, attlen 2, attalign 1, attstorage 1, flags 1,
 *		and if it has a missing value: length 4, bytes
 *	indexes 2, identity 2; for each: oid 4, flags 1, columns 2; for each of
 *		those: attnum 2, number of the encoding 1, flags 1, type 4, collation 4, and if
 *		its order is known, what that is (collation.h)
 *
 * Whoever changes this, or how rows and keys are laid out, gives the format
 * another number (format.h); the Header stays as it is.  Decoding believes nothing: the
 * bytes may come from a damaged file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tupdesc_details.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "compat/attribute.h"
#include "format.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "relation/collation.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define FORMAT 0x4d4f5405		/* "MOT", 5 */
#define FORMAT_4 0x4d4f5404		/* conditions of one wording only */
#define FORMAT_3 0x4d4f5403		/* and without columns' type modifiers */
#define FORMAT_2 0x4d4f5402		/* nor the table's oid */
#define FORMAT_1 0x4d4f5401		/* nor conditions */

/* (they are numbered in their order) */
#define IS_FORMAT(format) ((format) >= FORMAT_1 && (format) <= (FORMAT_1 | 0xff))
#define FORMAT_NUMBER(format) ((int) ((format) & 0xff))

typedef struct Header
{
	uint32		format;
	uint32		len;			/* of everything */
	uint64		stamp;			/* hash of what follows */
} Header;

/* of a table; as of format 3, behind its oid */
#define TABLE_NUMBERED	0x01
#define TABLE_UNLOGGED	0x02

/* of a column */
#define COLUMN_BYVAL	0x01
#define COLUMN_DROPPED	0x02
#define COLUMN_NOT_NULL 0x04
#define COLUMN_MISSING	0x08	/* rows that are too short have a value there */

/* of an index */
#define INDEX_UNIQUE	0x01
#define INDEX_COMPUTED	0x02	/* see MotKey */
#define INDEX_NULLS_EQUAL	0x04
#define INDEX_BEHIND	0x08	/* to the log it does not exist */

/* of an index's column */
#define KEY_NULLABLE	0x01
#define KEY_DESCENDING	0x02
#define KEY_NULLS_FIRST 0x04
#define KEY_COLLATED	0x08	/* behind it is what the collation is */

/* bytes being taken apart */
typedef struct Input
{
	const char *p;
	const char *end;
} Input;

static void encode_column(StringInfo buf, TupleDesc desc, int i);
static const MotKey *identity_key(mot_table *table);
static bool same_key(const MotKey *a, const MotKey *b);
static void encode_index(StringInfo buf, const MotIndexDef *def, const MotKey *key);
static void seal(char *bytes, size_t len);
static void raise_damaged(const char *what) pg_attribute_noreturn();
static void get(Input *in, void *to, size_t len);
static TupleDesc decode_columns(Input *in, bool typmods);
static void decode_column(Input *in, TupleDesc desc, int i, bool typmods);
static bool decode_index(Input *in, const MotDefinition *def, MotIndex *index);

#define PUT(buf, type, value) \
	do { \
		type		put_ = (type) (value); \
		appendBinaryStringInfo(buf, (char *) &put_, sizeof(put_)); \
	} while (0)

#define GET(in, variable) get(in, &(variable), sizeof(variable))

/* ---------------------------------------------------------------- encoding */

void *
MotDefinitionEncode(Relation rel, size_t *len)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *defs = MotIndexDefs(rel);
	char	   *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												  RelationGetRelationName(rel));
	StringInfoData buf;
	Header		header = {FORMAT};
	int			identity = -1;
	bool		primary = false;
	int			identity_at;
	int16		identity_bytes;
	mot_table  *table = mot_table_find(MotEngine, MyDatabaseId, MotStorageNumber(rel));
	const MotKey *kept = MotDefinitionIsShared(RelationGetRelid(rel)) ? identity_key(table) : NULL;
	bool		is_kept = false;
	List	   *conditions;
	List	   *domains;

	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, (char *) &header, sizeof(header));
	PUT(&buf, Oid, MyDatabaseId);
	PUT(&buf, Oid, MotStorageNumber(rel));
	PUT(&buf, Oid, RelationGetRelid(rel));
	PUT(&buf, uint8, (MotIsOrdinary(rel) ? TABLE_NUMBERED : 0) |
		(rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED ? TABLE_UNLOGGED : 0));
	PUT(&buf, uint64, MotTableMaxSize(rel));
	PUT(&buf, uint16, strlen(name));
	appendBinaryStringInfo(&buf, name, strlen(name));

	PUT(&buf, uint16, desc->natts);
	for (int i = 0; i < desc->natts; i++)
		encode_column(&buf, desc, i);

	PUT(&buf, uint16, list_length(defs));
	identity_at = buf.len;
	PUT(&buf, int16, -1);
	foreach_ptr(MotIndexDef, def, defs)
	{
		Relation	index = index_open(def->oid, AccessShareLock);
		MotKey	   *key = MotIndexKey(rel, index, table != NULL ? mot_table_index(table, def->oid) : NULL);
		bool		not_null = !key->computed;

		for (int i = 0; i < key->ncolumns && not_null; i++)
			not_null = MotAttributeNotNull(desc, key->columns[i].attnum - 1);
		if (def->unique && not_null && !is_kept && !def->behind)
		{
			is_kept = kept != NULL && same_key(key, kept);
			if (is_kept || (!primary && (identity < 0 || index->rd_index->indisprimary)))
			{
				identity = foreach_current_index(def);
				primary = index->rd_index->indisprimary;
			}
		}
		encode_index(&buf, def, key);
		pfree(key);
		index_close(index, AccessShareLock);
	}
	identity_bytes = (int16) identity;
	memcpy(buf.data + identity_at, &identity_bytes, sizeof(identity_bytes));
	list_free_deep(defs);
	pfree(name);

	/* what has not preloaded mot does not come near an ordinary table */
	conditions = MotIsOrdinary(rel) ? NIL : MotConditions(rel, &domains);
	PUT(&buf, uint32, list_length(conditions));
	foreach_ptr(MotRowCondition, condition, conditions)
		PUT(&buf, uint64, condition->hash);

	seal(buf.data, buf.len);
	*len = buf.len;
	return buf.data;
}

/*
 * Who commits beside us may have written for the log already which rows it changes, and that
 * comes there after our definition.  So where others write, what takes an identity's place
 * (REINDEX CONCURRENTLY) has to have the same keys.
 */
static const MotKey *
identity_key(mot_table *table)
{
	size_t		len;
	const void *bytes = table != NULL ? MotDefinitionCopyStored(table, &len) : NULL;
	const MotDefinition *def = bytes != NULL ? MotDefinitionDecode(bytes, len, CurrentMemoryContext) : NULL;

	return def != NULL && def->identity >= 0 ? def->indexes[def->identity].key : NULL;
}

/* Does the log name rows by this index, as far as is known to others already? */
bool
MotDefinitionNamesBy(mot_table *table, Oid indexoid)
{
	size_t		len;
	const void *bytes = MotDefinitionCopyStored(table, &len);
	const MotDefinition *def = bytes != NULL ? MotDefinitionDecode(bytes, len, CurrentMemoryContext) : NULL;

	return def != NULL && def->identity >= 0 && def->indexes[def->identity].indexoid == indexoid;
}

/* their bytes; of computed keys only as far as what computes them is the same */
static bool
same_key(const MotKey *a, const MotKey *b)
{
	for (int i = 0; i < a->ncolumns && a->ncolumns == b->ncolumns; i++)
	{
		const MotKeyColumn *x = &a->columns[i];
		const MotKeyColumn *y = &b->columns[i];

		if (x->attnum != y->attnum || x->encoding != y->encoding || x->nullable != y->nullable ||
			x->descending != y->descending || x->nulls_first != y->nulls_first)
			return false;
	}
	return a->ncolumns == b->ncolumns && a->computed == b->computed && a->nulls_equal == b->nulls_equal;
}

static void
encode_column(StringInfo buf, TupleDesc desc, int i)
{
	Form_pg_attribute att = TupleDescAttr(desc, i);
	AttrMissing *missing = NULL;

	if (att->atthasmissing && desc->constr != NULL && desc->constr->missing != NULL &&
		desc->constr->missing[i].am_present)
		missing = &desc->constr->missing[i];

	PUT(buf, Oid, att->atttypid);
	PUT(buf, int32, att->attisdropped ? -1 : att->atttypmod);
	PUT(buf, int16, att->attlen);
	PUT(buf, char, att->attalign);
	PUT(buf, char, att->attstorage);
	PUT(buf, uint8, (att->attbyval ? COLUMN_BYVAL : 0) | (att->attisdropped ? COLUMN_DROPPED : 0) |
		(MotAttributeNotNull(desc, i) ? COLUMN_NOT_NULL : 0) | (missing != NULL ? COLUMN_MISSING : 0));
	if (missing == NULL)
		return;
	if (att->attbyval)
	{
		PUT(buf, uint32, sizeof(Datum));
		PUT(buf, Datum, missing->am_value);
	}
	else
	{
		size_t		len = datumGetSize(missing->am_value, false, att->attlen);

		PUT(buf, uint32, len);
		appendBinaryStringInfo(buf, DatumGetPointer(missing->am_value), (int) len);
	}
}

static void
encode_index(StringInfo buf, const MotIndexDef *def, const MotKey *key)
{
	PUT(buf, Oid, def->oid);

	/*
	 * as the engine has it: the catalogue may call it something else
	 * (MotIndexDefs)
	 */
	PUT(buf, uint8, (def->unique ? INDEX_UNIQUE : 0) | (key->computed ? INDEX_COMPUTED : 0) |
		(key->nulls_equal ? INDEX_NULLS_EQUAL : 0) | (def->behind ? INDEX_BEHIND : 0));
	PUT(buf, uint16, key->ncolumns);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];

		PUT(buf, int16, column->attnum);
		PUT(buf, uint8, column->encoding);
		PUT(buf, uint8, (column->nullable ? KEY_NULLABLE : 0) | (column->descending ? KEY_DESCENDING : 0) |
			(column->nulls_first ? KEY_NULLS_FIRST : 0) | (column->collation_order != NULL ? KEY_COLLATED : 0));
		PUT(buf, Oid, column->typid);
		PUT(buf, Oid, column->collation);
		if (column->collation_order != NULL)
			MotCollationWrite(column->collation_order, buf);
	}
}

/* The header of complete bytes. */
static void
seal(char *bytes, size_t len)
{
	Header		header;

	memcpy(&header, bytes, sizeof(header));
	header.len = (uint32) len;
	header.stamp = hash_bytes_extended((unsigned char *) bytes + sizeof(header),
									   (int) (len - sizeof(header)), header.format);
	memcpy(bytes, &header, sizeof(header));
}

void *
MotDefinitionMove(const void *bytes, size_t len, Oid dbid)
{
	char	   *copy = palloc(len);

	Assert(len > sizeof(Header) + sizeof(Oid));
	memcpy(copy, bytes, len);
	memcpy(copy + sizeof(Header), &dbid, sizeof(Oid));
	seal(copy, len);
	return copy;
}

void *
MotDefinitionUnconditional(const void *bytes, size_t len)
{
	char	   *copy = palloc(len);
	Header		header;

	if (len < sizeof(header))
		raise_damaged("it is too short");
	memcpy(copy, bytes, len);
	memcpy(&header, copy, sizeof(header));
	if (header.format == FORMAT)
	{
		header.format = FORMAT_4;
		memcpy(copy, &header, sizeof(header));
		seal(copy, len);
	}
	return copy;
}

uint64
MotDefinitionStamp(const void *bytes)
{
	uint64		stamp;

	memcpy(&stamp, (const char *) bytes + offsetof(Header, stamp), sizeof(stamp));
	return stamp;
}

Oid
MotDefinitionOwner(const void *bytes)
{
	Header		header;
	Oid			owner;

	memcpy(&header, bytes, sizeof(header));
	memcpy(&owner, (const char *) bytes + sizeof(Header) + (header.format >= FORMAT_3 ? 2 : 1) * sizeof(Oid), sizeof(owner));
	return owner;
}

bool
MotDefinitionIsUnlogged(const void *bytes)
{
	Header		header;

	memcpy(&header, bytes, sizeof(header));
	return header.format >= FORMAT_3 &&
		(((const uint8 *) bytes)[sizeof(Header) + 3 * sizeof(Oid)] & TABLE_UNLOGGED) != 0;
}

/* ---------------------------------------------------------------- decoding */

static void
raise_damaged(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("definition of a memory-optimized table is damaged: %s", what),
			 errhint("Restore the server from a backup.")));
}

static void
get(Input *in, void *to, size_t len)
{
	if (in->end - in->p < len)
		raise_damaged("it is too short");
	memcpy(to, in->p, len);
	in->p += len;
}

MotDefinition *
MotDefinitionDecode(const void *bytes, size_t len, MemoryContext parent)
{
	Input		in = {(const char *) bytes, (const char *) bytes + len};
	MemoryContext cxt;
	MemoryContext oldcxt;
	MotDefinition *def;
	Header		header;
	uint16		n;
	int16		identity;
	uint32		nconditions;
	uint8		flags;

	GET(&in, header);
	if (!IS_FORMAT(header.format))
		raise_damaged("it does not begin as one");
	if (header.len != len)
		raise_damaged("its length is wrong");
	if (header.stamp != hash_bytes_extended((const unsigned char *) in.p,
											(int) (len - sizeof(header)), header.format))
		raise_damaged("its checksum is wrong");
	if (header.format > FORMAT)
		MotRaiseFormat("definition of a memory-optimized table", FORMAT_NUMBER(header.format), FORMAT_NUMBER(FORMAT));

	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT definition", ALLOCSET_SMALL_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	def = palloc0(sizeof(MotDefinition));
	def->cxt = cxt;
	def->stamp = header.stamp;
	GET(&in, def->dbid);
	GET(&in, def->relid);
	def->owner = def->relid;
	if (header.format >= FORMAT_3)
	{
		GET(&in, def->owner);
		GET(&in, flags);
		def->numbered = (flags & TABLE_NUMBERED) != 0;
		def->unlogged = (flags & TABLE_UNLOGGED) != 0;
	}
	GET(&in, def->max_size);
	GET(&in, n);
	def->name = palloc0(n + 1);
	get(&in, def->name, n);
	def->typmods = header.format > FORMAT_3;
	def->desc = decode_columns(&in, def->typmods);

	GET(&in, n);
	GET(&in, identity);
	if (n > MOT_MAX_INDEXES || identity < -1 || identity >= n)
		raise_damaged("its number of indexes is wrong");
	def->identity = identity;
	def->indexes = palloc0(Max(n, 1) * sizeof(MotIndex));
	for (int i = 0; i < n; i++)
		if (decode_index(&in, def, &def->indexes[i]))
			def->nbehind++;
		else if (def->nbehind > 0)
			raise_damaged("its indexes are in disorder");
	def->nindexes = n - def->nbehind;
	if (identity >= def->nindexes)
		raise_damaged("its identity is no index");

	def->nconditions = -1;
	if (header.format != FORMAT_1)
	{
		GET(&in, nconditions);
		if (nconditions > (in.end - in.p) / sizeof(uint64))
			raise_damaged("its number of conditions is wrong");
		def->nconditions = header.format > FORMAT_4 ? (int) nconditions : -1;
		def->conditions = palloc(Max(nconditions, 1) * sizeof(uint64));
		get(&in, def->conditions, nconditions * sizeof(uint64));
	}
	if (in.p != in.end)
		raise_damaged("it is too long");

	MotRowShapeInit(&def->shape, def->desc);
	for (int i = 0; i < n; i++)
		MotIndexComplete(&def->indexes[i], def->desc);
	MemoryContextSwitchTo(oldcxt);
	/* only now: an error before takes it along with the caller's context */
	MemoryContextSetParent(cxt, parent);
	return def;
}

static TupleDesc
decode_columns(Input *in, bool typmods)
{
	TupleDesc	desc;
	uint16		natts;

	GET(in, natts);
	if (natts > MaxTupleAttributeNumber)
		raise_damaged("its number of columns is wrong");
	desc = CreateTemplateTupleDesc(natts);
	for (int i = 0; i < natts; i++)
	{
		decode_column(in, desc, i, typmods);
		MotAttributeMade(desc, i);
	}
	MotDescMade(desc);
	return desc;
}

static void
decode_column(Input *in, TupleDesc desc, int i, bool typmods)
{
	Form_pg_attribute att = TupleDescAttr(desc, i);
	AttrMissing *missing;
	uint8		flags;
	uint32		len;

	memset(att, 0, ATTRIBUTE_FIXED_PART_SIZE);
	att->attnum = (AttrNumber) (i + 1);
	att->atttypmod = -1;
	GET(in, att->atttypid);
	if (typmods)
		GET(in, att->atttypmod);
	GET(in, att->attlen);
	GET(in, att->attalign);
	GET(in, att->attstorage);
	GET(in, flags);
	att->attbyval = (flags & COLUMN_BYVAL) != 0;
	att->attisdropped = (flags & COLUMN_DROPPED) != 0;
	att->attnotnull = (flags & COLUMN_NOT_NULL) != 0;

	if (att->attlen < -2 || att->attlen == 0 ||
		(att->attalign != TYPALIGN_CHAR && att->attalign != TYPALIGN_SHORT &&
		 att->attalign != TYPALIGN_INT && att->attalign != TYPALIGN_DOUBLE) ||
		(att->attbyval && att->attlen != 1 && att->attlen != 2 && att->attlen != 4 &&
		 att->attlen != sizeof(Datum)))
		raise_damaged("a column makes no sense");

	if ((flags & COLUMN_MISSING) == 0)
		return;
	att->atthasmissing = true;
	if (desc->constr == NULL)
	{
		desc->constr = palloc0(sizeof(TupleConstr));
		desc->constr->missing = palloc0(desc->natts * sizeof(AttrMissing));
	}
	missing = &desc->constr->missing[i];
	missing->am_present = true;
	GET(in, len);
	if (len > in->end - in->p || (att->attbyval && len != sizeof(Datum)) ||
		(!att->attbyval && att->attlen > 0 && len != att->attlen))
		raise_damaged("a missing value makes no sense");
	if (att->attbyval)
		GET(in, missing->am_value);
	else
	{
		char	   *value = palloc0(len + 1);

		get(in, value, len);
		if (att->attlen == -1 && (len < 1 || (!VARATT_IS_1B(value) && len < VARHDRSZ) ||
								  VARATT_IS_EXTERNAL(value) || VARSIZE_ANY(value) != len))
			raise_damaged("a missing value makes no sense");
		missing->am_value = PointerGetDatum(value);
	}
}

/* true: it is behind */
static bool
decode_index(Input *in, const MotDefinition *def, MotIndex *index)
{
	uint8		index_flags;
	uint8		flags;
	uint16		ncolumns;
	MotKey	   *key;

	GET(in, index->indexoid);
	GET(in, index_flags);
	GET(in, ncolumns);
	if (ncolumns == 0 || ncolumns > INDEX_MAX_KEYS)
		raise_damaged("an index's number of columns is wrong");
	index->unique = (index_flags & INDEX_UNIQUE) != 0;

	key = palloc0(offsetof(MotKey, columns) + ncolumns * sizeof(MotKeyColumn));
	key->indexoid = index->indexoid;
	key->ncolumns = ncolumns;
	key->computed = (index_flags & INDEX_COMPUTED) != 0;
	key->nulls_equal = (index_flags & INDEX_NULLS_EQUAL) != 0;
	for (int i = 0; i < ncolumns; i++)
	{
		MotKeyColumn *column = &key->columns[i];
		uint8		encoding;

		GET(in, column->attnum);
		GET(in, encoding);
		GET(in, flags);
		GET(in, column->typid);
		GET(in, column->collation);
		if (column->attnum < 1 || column->attnum > (key->computed ? INDEX_MAX_KEYS : def->desc->natts))
			raise_damaged("an index's column is none of the table");
		if (!MotKeySetEncoding(column, encoding))
			raise_damaged("an index's column has an unknown encoding");
		if ((flags & KEY_COLLATED) != 0)
		{
			column->collation_order = MotCollationTake(&in->p, in->end);
			if (column->collation_order == NULL)
				raise_damaged("an index's collation makes no sense");
		}
		column->nullable = (flags & KEY_NULLABLE) != 0;
		column->descending = (flags & KEY_DESCENDING) != 0;
		column->nulls_first = (flags & KEY_NULLS_FIRST) != 0;
	}
	MotKeySummarize(key);
	index->key = key;
	index->plain = MotKeyPlain(key);
	return (index_flags & INDEX_BEHIND) != 0;
}

void
MotDefinitionFree(MotDefinition *def)
{
	MemoryContextDelete(def->cxt);
}

/* ------------------------------------------------------------------ tables */

mot_status
MotDefinitionMakeIndex(mot_session *session, mot_table *table, const MotIndex *def, mot_index **index)
{
	mot_status	status = mot_index_create(session, table, def->indexoid,
										  MOT_INDEX_DERIVED | (def->unique ? MOT_INDEX_UNIQUE : 0), index);

	if (status != MOT_OK)
		return status;

	/* (a locale that is not there must not keep rows away) */
	MotKeyOpenCollations(def->key, false);
	mot_index_set_form(*index, MotKeyForm(def->key));
	return MOT_OK;
}

mot_status
MotDefinitionMakeTable(mot_session *session, const MotDefinition *def,
					   const void *bytes, size_t len, mot_table **table)
{
	mot_definition *definition = NULL;
	mot_status	status = mot_table_create(session, def->dbid, def->relid, table);

	if (status != MOT_OK)
		return status;

	for (int i = 0; i < def->nindexes && status == MOT_OK; i++)
	{
		mot_index  *index;

		status = MotDefinitionMakeIndex(session, *table, &def->indexes[i], &index);
		if (status == MOT_OK)
			mot_index_attach(index);
	}
	if (status == MOT_OK && bytes != NULL)
		status = mot_definition_make(session, bytes, len, &definition);
	if (status != MOT_OK)
	{
		mot_table_drop(session, *table);
		*table = NULL;			/* not to be dropped by the caller as well */
		return status;
	}
	if (definition != NULL)
		mot_table_put_definition(session, *table, definition);
	mot_table_set_owner(*table, def->owner, def->numbered);
	return MOT_OK;
}

bool
MotDefinitionSameIndex(const MotIndex *a, const MotIndex *b, bool collations)
{
	if (a->unique != b->unique || !same_key(a->key, b->key))
		return false;
	/* (before there were collated keys, definitions did not say) */
	for (int i = 0; collations && i < a->key->ncolumns; i++)
		if (a->key->columns[i].collation_order != NULL && b->key->columns[i].collation_order != NULL &&
			a->key->columns[i].collation_order != b->key->columns[i].collation_order)
			return false;
	return true;
}

/* -------------------------------------------------------------------- rows */

size_t
MotDefinitionRowSize(const MotDefinition *def, const mot_version *version)
{
	unsigned	host_bits = mot_version_host_bits(version);
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	const char *base = mot_version_data(version);
	const uint8 *bitmap = NULL;
	size_t		bitmap_size = 0;
	int			there = Min(stored, def->shape.nfixed);
	size_t		size;

	if ((host_bits & MOT_ROW_HAS_NULLS) != 0)
	{
		bitmap = (const uint8 *) base;
		bitmap_size = MAXALIGN(BITMAPLEN(stored));
		base += bitmap_size;
		there = Min(there, MotRowNotNull(bitmap, stored));
	}
	size = MotColumnsBehind(&def->shape, base, bitmap, there, stored, def->shape.offset_behind[there]);
	size = bitmap_size + MAXALIGN(size);
	if (unlikely((host_bits & MOT_ROW_HAS_TAIL) != 0))
		size += ((const MotTail *) ((const char *) mot_version_data(version) + size))->size;
	return size;
}

void
MotDefinitionRowSizes(const MotDefinition *def, const mot_version *a, const mot_version *b,
					  size_t *size_a, size_t *size_b)
{
	unsigned	host_bits = mot_version_host_bits(a);
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	const char *base_a = mot_version_data(a);
	const char *base_b = mot_version_data(b);
	const uint8 *bitmap = NULL;
	size_t		bitmap_size = 0;
	size_t		off;
	int			i = Min(stored, def->shape.nfixed);

	if ((host_bits & MOT_ROW_HAS_NULLS) != 0)
	{
		bitmap = (const uint8 *) base_a;
		bitmap_size = MAXALIGN(BITMAPLEN(stored));
		i = Min(i, MotRowNotNull(bitmap, stored));
	}
	if ((host_bits & MOT_ROW_HAS_TAIL) != 0 || host_bits != mot_version_host_bits(b) || memcmp(base_a, base_b, bitmap_size) != 0)
	{
		*size_a = MotDefinitionRowSize(def, a);
		*size_b = MotDefinitionRowSize(def, b);
		return;
	}

	/* together as long as their columns lie at the same places */
	base_a += bitmap_size;
	base_b += bitmap_size;
	off = def->shape.offset_behind[i];
	for (; i < stored; i++)
	{
		size_t		behind;

		if (bitmap != NULL && att_isnull(i, bitmap))
			continue;
		behind = MotColumnBehind(&def->shape.columns[i], base_a, off);
		if (def->shape.columns[i].length <= 0 &&
			MotColumnBehind(&def->shape.columns[i], base_b, off) != behind)
			break;
		off = behind;
	}
	*size_a = bitmap_size + MAXALIGN(MotColumnsBehind(&def->shape, base_a, bitmap, i, stored, off));
	*size_b = i == stored ? *size_a :
		bitmap_size + MAXALIGN(MotColumnsBehind(&def->shape, base_b, bitmap, i, stored, off));
}
