/*-------------------------------------------------------------------------
 *
 * rowcodec.h
 *	  A PostgreSQL tuple as an engine row, and back.
 *
 * A row is what a heap tuple has behind its header: the columns laid out by
 * heap_fill_tuple, preceded (only if there are nulls) by the null bitmap,
 * padded to 8 bytes.  The number of columns and "has nulls" are the version's
 * host bits.  Values are never out of line; they may be compressed in line.
 *
 * Behind the columns may be a tail (the third host bit): the row's keys in indexes
 * on expressions and in partial ones (computed.c), each with its index's oid.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ROWCODEC_H
#define MOT_ROWCODEC_H

#include "mot.h"
#include "access/tupdesc.h"
#include "access/tupmacs.h"
#include "port/pg_bitutils.h"

#define MOT_ROW_NATTS_MASK 0x07ff
#define MOT_ROW_HAS_NULLS 0x0800
#define MOT_ROW_HAS_TAIL 0x1000

/* a multiple of 8 bytes; then entries, each followed by its key and aligned to 4 */
typedef struct MotTail
{
	uint32		size;			/* of all of it */
} MotTail;

typedef struct MotTailEntry
{
	Oid			indexoid;
	uint16		len;
	uint16		has_null;
	uint8		key[FLEXIBLE_ARRAY_MEMBER];
} MotTailEntry;

/* a row's, or NULL; an index's, or NULL: the row is not in it */
extern const MotTail *MotRowTail(TupleDesc desc, unsigned host_bits, const void *row);
#define MotVersionTail(desc, version) MotRowTail(desc, mot_version_host_bits(version), mot_version_data(version))
extern const MotTailEntry *MotTailFind(const MotTail *tail, Oid indexoid);
extern const MotTailEntry *MotTailNext(const MotTail *tail, const MotTailEntry *entry);

/* What finding and writing one column behind another takes to know, in little memory. */
typedef struct MotColumnShape
{
	int16		length;			/* attlen */
	uint8		align;			/* in bytes */
	bool		byval;
	bool		packable;		/* may get a short header */
} MotColumnShape;

/* of a table; and where its columns lie in rows without nulls as long as they are of fixed width */
typedef struct MotRowShape
{
	int			natts;
	MotColumnShape *columns;
	int			nfixed;
	uint32	   *offset_behind;	/* [n]: where the first n end, for n up to
								 * nfixed */
} MotRowShape;

extern void MotRowShapeInit(MotRowShape *shape, TupleDesc desc);

/*
 * The size of the row these values make, and its host bits.  False if one of
 * them is out of line (of another table's storage, an expanded object).
 * Raises 54000 for a row over 1 GB.
 */
extern bool MotRowMeasure(const MotRowShape *shape, const Datum *values, const bool *isnull,
						  size_t *size, unsigned *host_bits);

/* bring out-of-line values here (CurrentMemoryContext), replacing entries of values[] */
extern void MotRowFetch(TupleDesc desc, Datum *values, const bool *isnull);

extern void MotRowFill(const MotRowShape *shape, const Datum *values, const bool *isnull,
					   unsigned host_bits, size_t size, void *data);

/*
 * What these are made of, and heap tuples: the values of the columns from i on, the first of which
 * may begin at *off.  "isnull" is NULL if none is null.  Measuring says false if one is out of line.
 */
static pg_attribute_always_inline bool
MotValuesMeasure(const MotRowShape *shape, int i, const Datum *values, const bool *isnull, size_t *off, bool *has_nulls)
{
	size_t		to = *off;

	for (; i < shape->natts; i++)
	{
		const MotColumnShape *column = &shape->columns[i];

		if (isnull != NULL && isnull[i])
		{
			*has_nulls = true;
			continue;
		}
		if (column->length > 0)
			to = TYPEALIGN(column->align, to) + column->length;
		else if (column->length == -1)
		{
			const char *value = DatumGetPointer(values[i]);

			if (VARATT_IS_SHORT(value))
			{
				/* an external one looks like a short one that is empty */
				if (unlikely(VARATT_IS_EXTERNAL(value)))
					return false;
				to += VARSIZE_SHORT(value);
			}
			else if (column->packable && VARATT_CAN_MAKE_SHORT(value))
				to += VARATT_CONVERTED_SHORT_SIZE(value);
			else
				to = TYPEALIGN(column->align, to) + VARSIZE(value);
		}
		else
			to += strlen(DatumGetCString(values[i])) + 1;
	}
	*off = to;
	return true;
}

/* the next place for a value, the bytes up to it zeroed */
static inline char *
MotPadTo(char *p, const MotColumnShape *column)
{
	char	   *aligned = (char *) TYPEALIGN(column->align, p);

	while (p < aligned)
		*p++ = 0;
	return aligned;
}

/* Where they end.  A bitmap, if there are nulls, is all zeros. */
static pg_attribute_always_inline char *
MotValuesFill(const MotRowShape *shape, int i, const Datum *values, const bool *isnull, uint8 *bitmap, char *p)
{
	for (; i < shape->natts; i++)
	{
		const MotColumnShape *column = &shape->columns[i];
		const char *value = DatumGetPointer(values[i]);
		size_t		length;

		if (isnull != NULL)
		{
			if (isnull[i])
				continue;
			if (bitmap != NULL)
				bitmap[i >> 3] |= 1 << (i & 7);
		}
		if (column->byval)
		{
			p = MotPadTo(p, column);
			store_att_byval(p, values[i], column->length);
			p += column->length;
			continue;
		}
		if (column->length > 0)
		{
			p = MotPadTo(p, column);
			length = column->length;
		}
		else if (column->length == -2)
			length = strlen(value) + 1;
		else if (VARATT_IS_SHORT(value))
			length = VARSIZE_SHORT(value);
		else if (column->packable && VARATT_CAN_MAKE_SHORT(value))
		{
			length = VARATT_CONVERTED_SHORT_SIZE(value);
			SET_VARSIZE_SHORT(p, length);
			p++;
			length--;
			value = VARDATA(value);
		}
		else
		{
			p = MotPadTo(p, column);
			length = VARSIZE(value);
		}
		memcpy(p, value, length);
		p += length;
	}
	return p;
}

/*
 * Columns 1 .. natts of a row (which may be no version yet; the bytes are aligned as a version's
 * are).  By-reference values point into it.  Columns the row is too old to have are null (or
 * the column's missing value).
 */
extern void MotRowDeformBytes(TupleDesc desc, unsigned host_bits, const void *row, int natts,
							  Datum *values, bool *isnull);

extern void MotRowDeform(TupleDesc desc, const mot_version *version, int natts,
						 Datum *values, bool *isnull);

/* bytes of the row data without the tail, found by walking the columns */
extern size_t MotRowColumnsSize(TupleDesc desc, unsigned host_bits, const void *row);

/* Where the value that is at "off" or at the next aligned place ends. */
static inline size_t
MotColumnBehind(const MotColumnShape *shape, const char *base, size_t off)
{
	if (shape->length > 0)
		return TYPEALIGN(shape->align, off) + shape->length;
	if (shape->length == -1)
	{
		if (base[off] == 0)
			off = TYPEALIGN(shape->align, off);
		return off + (VARATT_IS_SHORT(base + off) ? VARSIZE_SHORT(base + off) : VARSIZE(base + off));
	}
	return off + strlen(base + off) + 1;
}

/*
 * Where columns i up to another end, the first of which is at "off" or at the next aligned place.
 */
static pg_attribute_always_inline size_t
MotColumnsBehind(const MotRowShape *shape, const char *base, const uint8 *bitmap, int i, int upto, size_t off)
{
	for (; i < upto; i++)
		if (bitmap == NULL || !att_isnull(i, bitmap))
			off = MotColumnBehind(&shape->columns[i], base, off);
	return off;
}

/* How many columns are there before the first that is null? */
static inline int
MotRowNotNull(const uint8 *bitmap, int natts)
{
	int			i = 0;

	while (i < natts && bitmap[i >> 3] == 0xFF)
		i += 8;
	if (i < natts)
		i += pg_rightmost_one_pos32(~(uint32) bitmap[i >> 3]);
	return Min(i, natts);
}

/* A row made from another one by giving a few columns new values (rowpatch.c). */
typedef struct MotRowPatch MotRowPatch;

extern MotRowPatch *MotRowPatchMake(TupleDesc desc, int n, const AttrNumber *columns);
extern bool MotRowPatchMeasure(MotRowPatch *patch, const mot_version *old,
							   const Datum *values, const bool *isnull,
							   size_t *size, unsigned *host_bits);
extern size_t MotRowPatchNews(const MotRowPatch *patch, size_t size);
extern void MotRowPatchFill(const MotRowPatch *patch, size_t size, void *data);

#endif							/* MOT_ROWCODEC_H */
