/*-------------------------------------------------------------------------
 *
 * keycodec.h
 *	  SQL values as byte strings whose memcmp order is the SQL order.
 *
 * A key is the concatenation of its columns' encodings.  Each column's
 * encoding is prefix-free, so that a key's first columns are a prefix of its
 * bytes and no column's end is mistaken for another's beginning:
 *
 *	- a nullable column starts with one byte: null first or last, or value;
 *	  a column declared NOT NULL has no such byte
 *	- fixed-width types: big-endian with the sign flipped so that bytes order
 *	  (floats: all NaNs last and equal, -0 = 0)
 *	- variable-width types: bytes with 0x00 escaped as 0x00 0xFF, ended by
 *	  0x00 0x00 (numeric, text and inet have their own forms of that)
 *	- DESC: every byte of the column's encoding is inverted
 *
 * What is encoded is what the column's operator class compares: its btree
 * comparison function (support function 1) selects the encoding, so a varchar
 * column is encoded as text, a cidr one as inet, a regclass one as oid.
 *
 * Equality of encodings is equality by the operator class.  Order is the
 * operator class's too, except (then "ordered" is false):
 *
 *	- name columns of a collation other than C, POSIX and glibc's C.UTF-8, and such
 *	  text, varchar and bpchar columns if their order is not known, or the key is
 *	  computed: the raw bytes are encoded (bpchar without trailing blanks).
 *	  The *_pattern_ops operator classes compare bytes whatever the collation,
 *	  and so are ordered.
 *
 * Enums in unique keys, and in those of foreign tables, are encoded by the label's oid, because
 * ALTER TYPE ... ADD VALUE can renumber the labels' sort positions (RenumberEnumType): scans put
 * that in order (enumerated.h).  What has no encoding, or is an enum in another index, has a label
 * instead (ranked.h), in ordinary tables.
 *
 * Strings of other collations have two forms.  The plain one, their bytes, is what
 * log, checkpoints and rows have.  In an index they are collated, if their order is known
 * (collation.h): keycodec_collated.c makes one of the other.
 *
 * A column that is not ordered serves = and IN, but no range and no ORDER BY:
 * whoever plans with an index must leave <, <=, >= and > on such a column to
 * a filter, may let bounds and path keys reach only the columns before it
 * (equality on it lets them go on), and must not read its order into the
 * index's.  The planner knows nothing of that: its index paths have to be
 * cut down.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYCODEC_H
#define MOT_KEYCODEC_H

#include "mot.h"
#include "access/stratnum.h"
#include "access/tupdesc.h"
#include "relation/rowcodec.h"
#include "utils/rel.h"

/* Bytes being built; starts in "fixed", moves to palloc'd memory when longer. */
typedef struct MotKeyBuffer
{
	uint8	   *data;
	size_t		len;
	size_t		size;
	MemoryContext cxt;			/* for a longer one; NULL:
								 * CurrentMemoryContext */
	uint8		fixed[256];
} MotKeyBuffer;

extern void MotKeyBufferInit(MotKeyBuffer *buf, MemoryContext cxt);
extern void MotKeyBufferAppend(MotKeyBuffer *buf, const void *bytes, size_t len);
extern void MotKeyBufferReset(MotKeyBuffer *buf);	/* keeps the memory */
extern void MotKeyBufferSet(MotKeyBuffer *buf, const void *bytes, size_t len);	/* to nothing but these */

struct MotKeyColumn;
typedef void (*MotKeyAppend) (const struct MotKeyColumn *column, Datum value, MotKeyBuffer *buf);

typedef struct MotKeyColumn
{
	AttrNumber	attnum;			/* of the table */
	Oid			typid;			/* what is encoded: the operator class's input
								 * type (the base type for an enum); other
								 * types of the column are binary coercible */
	Oid			collation;
	bool		nullable;		/* encodes the null byte */
	bool		descending;
	bool		nulls_first;
	bool		ordered;		/* bytes order as the operator class does */
	bool		collated;		/* they are those of "collation_order" */
	bool		ranked;			/* there is no encoding, but a label: see
								 * ranked.h */
	bool		enumerated;		/* an enum's oid: see enumerated.h */
	bool		typbyval;		/* then: of the values */
	int16		typlen;
	const struct MotCollation *collation_order; /* of strings, or NULL */
	uint16		sort_key_max;	/* of a string, if that is cut (collation.h) */
	uint8		encoding;		/* its number, which never changes */
	uint8		inline_kind;	/* private: integers are encoded in place */
	MotKeyAppend append;		/* value's bytes, ascending, no null byte */
	int16		width;			/* encoded width if fixed (without null byte),
								 * else -1 */
} MotKeyColumn;

typedef struct MotKey
{
	Oid			indexoid;		/* for messages */
	int			ncolumns;
	AttrNumber	max_attnum;		/* highest table column used */
	int			width;			/* whole key's width if fixed, else -1 */
	bool		all_inline;		/* nothing but integers, none nullable */
	bool		computed;		/* it has to be where the row is stored:
								 * columns are the index's own (attnum is
								 * which), keys are found in rows' tails, and
								 * max_attnum is 0 */
	bool		functional;		/* and so it is for expressions or a predicate */
	bool		ranked;			/* or because a column is */
	bool		nulls_equal;	/* NULLS NOT DISTINCT */
	bool		collated;		/* some column is */
	bool		enumerated;		/* the same */
	bool		compared;		/* by a collation that is not trusted */
	bool		blind;			/* plain strings of a nondeterministic
								 * collation: see MotKeyGivesWay */
	uint16		most;			/* bytes, without the sort keys that are cut */
	MotKeyColumn columns[FLEXIBLE_ARRAY_MEMBER];
} MotKey;

/*
 * Is there an encoding for the type under its default operator class? (What
 * CREATE INDEX asks, for columns without an explicit operator class; looks
 * through domains; enums yes.)
 */
extern bool MotKeyTypeSupported(Oid typid);

/*
 * The codec of an index on table "heap" (its catalogue row and indoption
 * decide columns, direction and nulls).  palloc'd.  Raises 0A000 for
 * an operator class without an encoding, of a foreign table, and for nondeterministic collations
 * without a sort key. Whether a column has a null byte comes from the table's attnotnull: an index
 * must be built anew when that changes.
 */
extern MotKey *MotKeyCreate(Relation heap, Relation index);

/* the same of a table that may become an ordinary one of ours */
extern MotKey *MotKeyCreateFor(Relation heap, Relation index);

/*
 * the same of an index that is there, in its form; of a foreign table's only as far as collations
 * are concerned
 */
extern MotKey *MotKeyCreateAs(Relation heap, Relation index, uint64 form);

/*
 * Which columns have a null byte, one bit each; whether strings are collated, and by what
 * (keycodec_collated.c).  An index of an ordinary table keeps the form
 * it was built with (mot_index_form) when a column becomes NOT NULL.
 */
extern uint64 MotKeyForm(const MotKey *key);

/*
 * The collated form of keys.  Open: the form that a new index gets; keys are plain if a locale is
 * not there, or MotKeysStayPlain (unless "raise").  Adopt: as an index has it.
 */
#define MOT_FORM_NULLABLE UINT64CONST(0xffffffff)
#define MOT_FORM_COLLATED (UINT64CONST(1) << 32)
extern bool MotKeysStayPlain;
extern void MotKeyOpenCollations(MotKey *key, bool raise);
extern void MotKeyAdoptCollations(MotKey *key, uint64 form);

/*
 * Another library may take keys of a unique index for equal that were not (if "duplicate"), or
 * make keys of strings that are too long.  Then an index gets plain keys, so that its table can be
 * had.  That serves equality, unless a collation is nondeterministic: such a
 * "blind" index knows the rows that it has by their bytes, which replay needs, and nobody
 * else is to look for rows with it.  Is this such a key, collated today?
 */
extern bool MotKeyGivesWay(const MotKey *key, bool duplicate);

/*
 * The column of what an ordering operator sorts (ORDER BY), nullable; NULL if no encoding's bytes
 * have that order.  palloc'd.
 */
extern MotKeyColumn *MotKeyColumnOfOrder(Oid operator, Oid collation, bool nulls_first);

/* the same key, with plain strings; the key itself if it has no collations.  palloc'd */
extern MotKey *MotKeyPlain(MotKey *key);

/* A whole plain key as the index has it; false: it is none. */
extern bool MotKeyFromPlain(const MotKey *key, const uint8 *plain, size_t len, MotKeyBuffer *buf);

/*
 * Two keys, or first columns of keys, as the server compares what they are of; where only
 * some of the columns can be known (a bound that was cut) the bytes decide.
 */
extern int	MotKeyCompareValues(const MotKey *key, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len);

/* how many bytes a column's are, at their beginning; 0: it does not end there */
extern size_t MotKeyColumnLength(const MotKeyColumn *column, const uint8 *bytes, size_t len);

/*
 * has the column the order of its operators?  "disordered": of an index that is
 * (mot_index_disordered)
 */
extern bool MotKeyColumnIsOrdered(const MotKey *key, int column, bool disordered);

/* For mot_index_handle.in_order, of keys that are "compared".  Raises nothing. */
extern bool MotKeyInOrder(const MotKey *key, const void *lesser, size_t lesser_len, const void *greater, size_t greater_len);

/*
 * A key without a catalogue (definition.h).  Set is false for a number that is
 * no encoding's; Summarize works out what depends on all columns.
 */
extern bool MotKeySetEncoding(MotKeyColumn *column, int number);
extern void MotKeySummarize(MotKey *key);

/*
 * The key of a row: values and isnull are indexed by table attnum - 1 (at
 * least max_attnum of them).  Appends to buf.  Returns flags for the engine.
 * Raises 54000 for a key longer than MOT_MAX_KEY; of a blind index, appends nothing.
 */
extern unsigned MotKeyFromRow(const MotKey *key, const Datum *values, const bool *isnull, MotKeyBuffer *buf);

/* the error of a key of so many bytes, if it is too long */
extern void MotKeyRefuseLong(const MotKey *key, size_t len);

/*
 * The same, of a row that has been stored: if the key is computed, from its tail.  Appends
 * nothing if the row is not in the index.
 */
extern unsigned MotKeyOfRow(const MotKey *key, const MotTail *tail, const Datum *values, const bool *isnull,
							MotKeyBuffer *buf);

/*
 * Where the key's columns lie in rows without nulls, if the key is "all_inline" and
 * no column of variable length lies before; else NULL.  palloc'd.
 */
extern uint32 *MotKeyOffsets(const MotKey *key, TupleDesc desc);

/* The same of such a row; and whether it is this key, of key->width bytes. */
extern void MotKeyFromFixed(const MotKey *key, const char *base, const uint32 *offsets, MotKeyBuffer *buf);
extern bool MotKeyIsOfFixed(const MotKey *key, const char *base, const uint32 *offsets, const uint8 *bytes);

/* One column's bytes, null byte and direction included.  No limit on length: see MotKeyFitBound. */
/* one column of an "all_inline" key; where the next one's bytes go */
extern uint8 *MotKeyPutInteger(const MotKeyColumn *column, Datum value, uint8 *to);
extern void MotKeyAppendColumn(const MotKeyColumn *column, Datum value, bool isnull, MotKeyBuffer *buf);

/*
 * A value to compare with can be longer than any key.  Cuts such a bound to
 * MOT_MAX_KEY bytes and returns false: no key equals it or has it as a
 * prefix, and keys sort against what is left as against the whole.
 */
extern bool MotKeyFitBound(MotKeyBuffer *buf);

/* only the byte that says "not null" or "null" of a nullable column (bounds that exclude nulls); nothing for
 * a NOT NULL column: returns false */
extern bool MotKeyAppendNullByte(const MotKeyColumn *column, bool null, MotKeyBuffer *buf);

/*
 * A comparison value of another type of the operator family (int8 against an
 * int4 column, timestamptz against a date ...): *result is a value of the
 * column's own type, so that "column <strategy> value" has the same answer as
 * "column <returned strategy> result"; or MOT_KEY_ALL / MOT_KEY_NONE when every non-null value or
 * none satisfies it.  strategy: BTLessStrategyNumber ...  May be changed.
 *
 * Where MotKeyConvertIsLossy(column type, value type) is true, the answer may
 * admit values that do not satisfy the comparison (never the other way
 * round), and the original clause must be checked again on the rows found.
 * That is so for date and timestamp columns against timestamptz values: near
 * a daylight-saving switch local time is no monotonic function of real time.
 * "=" may then become MOT_KEY_ALL.
 *
 * Conversions depend on the session's time zone: convert at execution.
 */
typedef enum MotKeyCompare
{
	MOT_KEY_USE, MOT_KEY_ALL, MOT_KEY_NONE
} MotKeyCompare;

extern MotKeyCompare MotKeyConvert(const MotKeyColumn *column, Oid valuetype, Datum value,
								   StrategyNumber *strategy, Datum *result);
extern bool MotKeyConvertIsLossy(Oid columntype, Oid valuetype);

#endif							/* MOT_KEYCODEC_H */
