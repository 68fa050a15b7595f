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
 * Equality of encodings is equality by the type's default btree operator
 * class.  Order is the operator class's too, except for text-like columns of
 * a collation other than C/POSIX: there the raw bytes are encoded, so that
 * equality holds and order does not ("ordered" is false): such a column
 * serves = and IN, but no range and no ORDER BY.  (bpchar drops trailing
 * blanks.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYCODEC_H
#define MOT_KEYCODEC_H

#include "mot.h"
#include "access/stratnum.h"
#include "access/tupdesc.h"
#include "utils/rel.h"

/* Bytes being built; starts in "fixed", moves to palloc'd memory when longer. */
typedef struct MotKeyBuffer
{
	uint8	   *data;
	size_t		len;
	size_t		size;
	MemoryContext cxt;			/* for a longer one; NULL: CurrentMemoryContext */
	uint8		fixed[256];
} MotKeyBuffer;

extern void MotKeyBufferInit(MotKeyBuffer *buf, MemoryContext cxt);
extern void MotKeyBufferReset(MotKeyBuffer *buf);	/* keeps the memory */

struct MotKeyColumn;
typedef void (*MotKeyAppend) (const struct MotKeyColumn *column, Datum value, MotKeyBuffer *buf);

typedef struct MotKeyColumn
{
	AttrNumber	attnum;			/* of the table */
	Oid			typid;			/* base type of the column (domains looked through) */
	Oid			collation;
	bool		nullable;		/* encodes the null byte */
	bool		descending;
	bool		nulls_first;
	bool		ordered;		/* bytes order as the operator class does */
	MotKeyAppend append;		/* value's bytes, ascending, no null byte */
	int16		width;			/* encoded width if fixed (without null byte), else -1 */
} MotKeyColumn;

typedef struct MotKey
{
	int			ncolumns;
	AttrNumber	max_attnum;		/* highest table column used */
	int			width;			/* whole key's width if fixed, else -1 */
	MotKeyColumn columns[FLEXIBLE_ARRAY_MEMBER];
} MotKey;

/* Is there an encoding for the type? (what CREATE INDEX asks; looks through domains; enums yes) */
extern bool MotKeyTypeSupported(Oid typid);

/*
 * The codec of an index on table "heap" (its catalogue row and indoption
 * decide columns, direction and nulls).  palloc'd in cxt.  Raises 0A000 with
 * a HINT for a type without an encoding.
 */
extern MotKey *MotKeyCreate(Relation heap, Relation index, MemoryContext cxt);

/*
 * The key of a row: values and isnull are indexed by table attnum - 1 (at
 * least max_attnum of them).  Appends to buf.  *has_null: some key column is null.
 */
extern void MotKeyFromRow(const MotKey *key, const Datum *values, const bool *isnull,
						  MotKeyBuffer *buf, bool *has_null);

/* One column's bytes, null byte and direction included. */
extern void MotKeyAppendColumn(const MotKeyColumn *column, Datum value, bool isnull, MotKeyBuffer *buf);

/* only the byte that says "not null" or "null" of a nullable column (bounds that exclude nulls); nothing for
 * a NOT NULL column: returns false */
extern bool MotKeyAppendNullByte(const MotKeyColumn *column, bool null, MotKeyBuffer *buf);

/*
 * A comparison value of another type of the operator family (int8 against an
 * int4 column, timestamptz against a date ...): *result is a value of the
 * column's own type, so that "column <strategy> value" has the same answer as
 * "column <returned strategy> result"; or MOT_KEY_ALL / MOT_KEY_NONE when every non-null value or none
 * satisfies it.  strategy: BTLessStrategyNumber ...
 */
typedef enum MotKeyCompare
{
	MOT_KEY_USE, MOT_KEY_ALL, MOT_KEY_NONE
} MotKeyCompare;

extern MotKeyCompare MotKeyConvert(const MotKeyColumn *column, Oid valuetype, Datum value,
								   StrategyNumber *strategy, Datum *result);

#endif							/* MOT_KEYCODEC_H */
