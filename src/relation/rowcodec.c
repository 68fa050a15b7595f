/*-------------------------------------------------------------------------
 *
 * rowcodec.c
 *	  A PostgreSQL tuple as an engine row, and back.
 *
 * The layout is heap's, so that offsets are found as fast and values that
 * are passed by reference can be used where they lie.  The null bitmap is
 * there only when a column is null, and the data behind it starts at a
 * multiple of 8.
 *
 * Bytes between columns are zero: a reader tells from the next byte whether
 * a variable-length value begins right there (with a short header, which is
 * never zero) or at the next aligned place.
 *
 * Offsets that do not depend on the row are remembered in the descriptor's
 * attcacheoff, as the server does it; the descriptor is the process's own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "compat/attribute.h"
#include "relation/rowcodec.h"
#include "utils/memutils.h"

#define BITMAP_SIZE(natts) MAXALIGN(BITMAPLEN(natts))

void
MotRowShapeInit(MotRowShape *shape, TupleDesc desc)
{
	shape->natts = desc->natts;
	shape->columns = palloc(desc->natts * sizeof(MotColumnShape));
	shape->offset_behind = palloc0((desc->natts + 1) * sizeof(uint32));
	shape->nfixed = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		MotColumnShape *column = &shape->columns[i];

		column->length = att->attlen;
		column->align = att_align_nominal(1, att->attalign);
		column->byval = att->attbyval;
		column->packable = att->attlen == -1 && att->attstorage != TYPSTORAGE_PLAIN;
		if (column->length > 0 && shape->nfixed == i)
			shape->offset_behind[++shape->nfixed] = TYPEALIGN(column->align, shape->offset_behind[i]) + column->length;
	}
}

/* one pass for everything: this runs for every row written */
bool
MotRowMeasure(const MotRowShape *shape, const Datum *values, const bool *isnull,
			  size_t *size, unsigned *host_bits)
{
	size_t		off = 0;
	bool		has_nulls = false;

	if (!MotValuesMeasure(shape, 0, values, isnull, &off, &has_nulls))
		return false;
	*host_bits = (unsigned) shape->natts;
	if (has_nulls)
	{
		*host_bits |= MOT_ROW_HAS_NULLS;
		off += BITMAP_SIZE(shape->natts);
	}
	off = MAXALIGN(off);
	if (off > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big: size %zu, maximum size %zu",
						off, (size_t) MaxAllocSize)));
	*size = off;
	return true;
}

void
MotRowFetch(TupleDesc desc, Datum *values, const bool *isnull)
{
	for (int i = 0; i < desc->natts; i++)
		if (!isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			values[i] = PointerGetDatum(detoast_external_attr((struct varlena *)
															  DatumGetPointer(values[i])));
}

void
MotRowFill(const MotRowShape *shape, const Datum *values, const bool *isnull,
		   unsigned host_bits, size_t size, void *data)
{
	uint8	   *bitmap = NULL;
	char	   *p = data;
	char	   *end = p + size;

	if (host_bits & MOT_ROW_HAS_NULLS)
	{
		bitmap = data;
		memset(bitmap, 0, BITMAP_SIZE(shape->natts));
		p += BITMAP_SIZE(shape->natts);
	}
	p = MotValuesFill(shape, 0, values, isnull, bitmap, p);
	Assert(p <= end);
	memset(p, 0, end - p);
}

static pg_attribute_always_inline void
deform(TupleDesc desc, unsigned host_bits, const void *row, int natts,
	   Datum *values, bool *isnull)
{
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	char	   *base = unconstify(void *, row);
	uint8	   *bitmap = NULL;
	uint32		off = 0;
	bool		slow = false;	/* offsets no longer depend on the descriptor
								 * only */
	int			upto = Min(stored, natts);
	int			i;

	if (host_bits & MOT_ROW_HAS_NULLS)
	{
		bitmap = (uint8 *) base;
		base += BITMAP_SIZE(stored);
	}

	/* those whose places are known */
	i = 0;
	if (bitmap == NULL)
	{
		MotAttribute *att = NULL;

		for (; i < upto && MotDescAttribute(desc, i)->attcacheoff >= 0; i++)
		{
			att = MotDescAttribute(desc, i);
			values[i] = fetchatt(att, base + att->attcacheoff);
			isnull[i] = false;
		}
		if (att != NULL)
		{
			off = att->attcacheoff;
			off = att_addlength_pointer(off, att->attlen, base + off);
			slow = att->attlen <= 0;
		}
	}

	for (; i < upto; i++)
	{
		MotAttribute *att = MotDescAttribute(desc, i);

		if (bitmap != NULL && att_isnull(i, bitmap))
		{
			values[i] = (Datum) 0;
			isnull[i] = true;
			slow = true;
			continue;
		}

		isnull[i] = false;
		if (!slow && att->attcacheoff >= 0)
			off = att->attcacheoff;
		else if (att->attlen == -1)
		{
			/*
			 * Where the offset is aligned already, a value lies here whatever
			 * its header is.
			 */
			if (!slow && off == MotAttributeAlign(off, att))
				MotAttributeRemember(att, off);
			else
			{
				off = MotAttributeAlignAt(off, att, base + off);
				slow = true;
			}
		}
		else
		{
			off = MotAttributeAlign(off, att);
			if (!slow)
				MotAttributeRemember(att, off);
		}

		values[i] = fetchatt(att, base + off);
		off = att_addlength_pointer(off, att->attlen, base + off);
		if (att->attlen <= 0)
			slow = true;
	}

	for (; i < natts; i++)
		values[i] = getmissingattr(desc, i + 1, &isnull[i]);
}

/* (each with the whole of it: a call more would be felt for every row) */
void
MotRowDeform(TupleDesc desc, const mot_version *version, int natts,
			 Datum *values, bool *isnull)
{
	deform(desc, mot_version_host_bits(version), mot_version_data(version), natts, values, isnull);
}

void
MotRowDeformBytes(TupleDesc desc, unsigned host_bits, const void *row, int natts,
				  Datum *values, bool *isnull)
{
	deform(desc, host_bits, row, natts, values, isnull);
}

size_t
MotRowColumnsSize(TupleDesc desc, unsigned host_bits, const void *row)
{
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	char	   *start = unconstify(void *, row);
	char	   *base = start;
	uint8	   *bitmap = NULL;
	size_t		off = 0;

	if (host_bits & MOT_ROW_HAS_NULLS)
	{
		bitmap = (uint8 *) base;
		base += BITMAP_SIZE(stored);
	}

	for (int i = 0; i < stored; i++)
	{
		MotAttribute *att = MotDescAttribute(desc, i);

		if (bitmap != NULL && att_isnull(i, bitmap))
			continue;
		off = MotAttributeAlignAt(off, att, base + off);
		off = att_addlength_pointer(off, att->attlen, base + off);
	}
	return MAXALIGN(base - start + off);
}

const MotTail *
MotRowTail(TupleDesc desc, unsigned host_bits, const void *row)
{
	if (likely((host_bits & MOT_ROW_HAS_TAIL) == 0))
		return NULL;
	return (const MotTail *) ((const char *) row + MotRowColumnsSize(desc, host_bits, row));
}

/* the entry behind another, or the first; padding at the end is shorter than one */
const MotTailEntry *
MotTailNext(const MotTail *tail, const MotTailEntry *entry)
{
	size_t		at = sizeof(MotTail);

	if (tail == NULL)
		return NULL;
	if (entry != NULL)
		at = (const char *) entry - (const char *) tail + INTALIGN(offsetof(MotTailEntry, key) + entry->len);
	return at + offsetof(MotTailEntry, key) > tail->size ? NULL : (const MotTailEntry *) ((const char *) tail + at);
}

const MotTailEntry *
MotTailFind(const MotTail *tail, Oid indexoid)
{
	const MotTailEntry *entry = NULL;

	while ((entry = MotTailNext(tail, entry)) != NULL && entry->indexoid != indexoid)
		;
	return entry;
}
