/*-------------------------------------------------------------------------
 *
 * rowpatch.c
 *	  A row made from another one in which a few columns have new values.
 *
 * Most UPDATEs change a column or two.  Taking the whole row apart to put it
 * together again costs a multiple of everything else that they do, in wide
 * tables; here the row's bytes are walked over once, and what is not assigned
 * is copied in as few pieces as possible: columns that keep their distance go
 * together, with the padding between them.  If the new values are as long as
 * the old ones, the row is copied in one piece, nulls and all, and they are put
 * over it.
 *
 * The result is the same, byte for byte, as MotRowFill makes of the columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "relation/rowcodec.h"
#include "utils/memutils.h"

#define BITMAP_SIZE(natts) MAXALIGN(BITMAPLEN(natts))

typedef struct PatchColumn
{
	int16		value;			/* its number among the new values; -1: stays */
	int16		run;			/* the next one that is assigned, from here on */
} PatchColumn;

typedef struct Piece
{
	const char *from;
	size_t		to;				/* behind the null bitmap, but for a whole row */
	size_t		length;
} Piece;

struct MotRowPatch
{
	int			natts;
	MotRowShape shape;
	PatchColumn *columns;

	/* columns of fixed length before the first that is assigned */
	int			prefix;
	size_t		prefix_end;
	int			first;			/* that is assigned */
	uint8	   *no_nulls;		/* bitmap */

	/* the row that was measured */
	bool		in_place;		/* the first piece is all of it, others go
								 * over it */
	int			npieces;
	Piece	   *pieces;			/* two a column at most */
	char	   *headers;		/* short ones, by column */
	Datum	   *datums;			/* by value */
	size_t		bitmap_size;	/* 0: it has no nulls */
	uint8	   *bitmap;
};

/*
 * For rows of this description; "columns" are the attribute numbers assigned
 * to, each once.  In CurrentMemoryContext.  NULL: not for tables like this.
 */
MotRowPatch *
MotRowPatchMake(TupleDesc desc, int n, const AttrNumber *columns)
{
	MotRowPatch *patch = palloc0(sizeof(MotRowPatch));
	int			natts = desc->natts;

	patch->natts = natts;
	patch->columns = palloc0(natts * sizeof(PatchColumn));
	patch->pieces = palloc(2 * natts * sizeof(Piece));
	patch->headers = palloc(natts);
	patch->datums = palloc((n + 1) * sizeof(Datum));
	patch->bitmap = palloc(BITMAP_SIZE(natts));
	patch->no_nulls = palloc0(BITMAP_SIZE(natts));
	for (int i = 0; i < natts; i++)
	{
		/* it becomes null when a row is written */
		if (TupleDescAttr(desc, i)->attisdropped)
			return NULL;
		patch->columns[i].value = -1;
		patch->no_nulls[i >> 3] |= 1 << (i & 7);
	}
	patch->first = natts;
	for (int i = 0; i < n; i++)
	{
		patch->columns[columns[i] - 1].value = i;
		patch->first = Min(patch->first, columns[i] - 1);
	}
	for (int i = natts - 1, next = natts; i >= 0; i--)
	{
		if (patch->columns[i].value >= 0)
			next = i;
		patch->columns[i].run = next;
	}

	MotRowShapeInit(&patch->shape, desc);
	patch->prefix = Min(patch->first, patch->shape.nfixed);
	patch->prefix_end = patch->shape.offset_behind[patch->prefix];
	return patch;
}

static inline void
add_piece(MotRowPatch *patch, const char *from, size_t to, size_t length)
{
	Piece	   *piece = &patch->pieces[patch->npieces++];

	piece->from = from;
	piece->to = to;
	piece->length = length;
}

/* The null bitmap of the new row.  False: it has none. */
static bool
make_bitmap(MotRowPatch *patch, const uint8 *old, const bool *isnull)
{
	size_t		size = BITMAPLEN(patch->natts);

	memset(patch->bitmap, 0, BITMAP_SIZE(patch->natts));
	memcpy(patch->bitmap, old != NULL ? old : patch->no_nulls, size);
	for (int i = patch->first; i < patch->natts; i = i + 1 < patch->natts ? patch->columns[i + 1].run : i + 1)
	{
		if (isnull[patch->columns[i].value])
			patch->bitmap[i >> 3] &= ~(1 << (i & 7));
		else
			patch->bitmap[i >> 3] |= 1 << (i & 7);
	}
	return memcmp(patch->bitmap, patch->no_nulls, size) != 0;
}

/* where a new value's bytes are */
static inline const char *
new_bytes(MotRowPatch *patch, const MotColumnShape *shape, int number, Datum value)
{
	const char *bytes = (const char *) &patch->datums[number];

	if (!shape->byval)
		return DatumGetPointer(value);
	patch->datums[number] = value;
#ifdef WORDS_BIGENDIAN
	bytes += sizeof(Datum) - shape->length;
#endif
	return bytes;
}

/* A value at "to" at the earliest; where it ends.  0: it lies out of line. */
static size_t
add_value(MotRowPatch *patch, int column, size_t to, const char *from)
{
	const MotColumnShape *shape = &patch->shape.columns[column];
	size_t		length = shape->length;

	if (shape->length > 0)
		to = TYPEALIGN(shape->align, to);
	else if (shape->length == -2)
		length = strlen(from) + 1;
	else if (VARATT_IS_EXTERNAL(from))
		return 0;
	else if (VARATT_IS_SHORT(from))
		length = VARSIZE_SHORT(from);
	else if (shape->packable && VARATT_CAN_MAKE_SHORT(from))
	{
		length = VARATT_CONVERTED_SHORT_SIZE(from);
		SET_VARSIZE_SHORT(&patch->headers[column], length);
		add_piece(patch, &patch->headers[column], to, 1);
		to++;
		length--;
		from = VARDATA(from);
	}
	else
	{
		to = TYPEALIGN(shape->align, to);
		length = VARSIZE(from);
	}
	add_piece(patch, from, to, length);
	return to + length;
}

/*
 * A row whose new values are as long as the old ones, and that has nulls only where
 * it stays as it is: the whole row is the first piece.  False: it is not like
 * that.
 */
static pg_attribute_always_inline bool
measure_in_place(MotRowPatch *patch, const char *base, const uint8 *bitmap,
				 const Datum *values, const bool *isnull, size_t *end)
{
	int			i = patch->first;
	size_t		off = bitmap == NULL ? MotColumnsBehind(&patch->shape, base, NULL, patch->prefix, i, patch->prefix_end) :
	MotColumnsBehind(&patch->shape, base, bitmap, 0, i, 0);

	patch->npieces = 1;
	while (i < patch->natts)
	{
		const MotColumnShape *shape = &patch->shape.columns[i];
		int			number = patch->columns[i].value;
		const char *value;

		if (isnull[number] || (bitmap != NULL && att_isnull(i, bitmap)))
			return false;
		value = new_bytes(patch, shape, number, values[number]);
		if (shape->length > 0)
		{
			off = TYPEALIGN(shape->align, off);
			add_piece(patch, value, off, shape->length);
			off += shape->length;
		}
		else
		{
			size_t		length;

			/* short headers only: these are never aligned */
			if (shape->length != -1 || !VARATT_IS_SHORT(base + off) || VARATT_IS_EXTERNAL(base + off))
				return false;
			length = VARSIZE_SHORT(base + off);
			if (VARATT_IS_SHORT(value))
			{
				if (VARATT_IS_EXTERNAL(value) || VARSIZE_SHORT(value) != length)
					return false;
				add_piece(patch, value, off, length);
			}
			else
			{
				if (!shape->packable || !VARATT_CAN_MAKE_SHORT(value) ||
					VARATT_CONVERTED_SHORT_SIZE(value) != length)
					return false;
				add_piece(patch, VARDATA(value), off + 1, length - 1);
			}
			off += length;
		}
		if (++i < patch->natts)
		{
			int			next = patch->columns[i].run;

			off = MotColumnsBehind(&patch->shape, base, bitmap, i, next, off);
			i = next;
		}
	}
	*end = off;
	return true;
}

/*
 * The row that "old" becomes with these values (by number of the columns given
 * to MotRowPatchMake): its size and host bits.  False, if it is to be made in
 * the ordinary way: the old one is too short, or a value lies elsewhere.
 */
bool
MotRowPatchMeasure(MotRowPatch *patch, const mot_version *old, const Datum *values, const bool *isnull,
				   size_t *size, unsigned *host_bits)
{
	unsigned	bits = mot_version_host_bits(old);
	const char *base = mot_version_data(old);
	const uint8 *old_bitmap = NULL;
	bool		new_nulls = (bits & MOT_ROW_HAS_NULLS) != 0;
	size_t		from = 0;
	size_t		to = 0;
	int			i = 0;

	if ((int) (bits & (MOT_ROW_NATTS_MASK | MOT_ROW_HAS_TAIL)) != patch->natts)
		return false;

	patch->bitmap_size = 0;
	if (new_nulls)
	{
		old_bitmap = (const uint8 *) base;
		patch->bitmap_size = BITMAP_SIZE(patch->natts);
		base += patch->bitmap_size;
		patch->in_place = measure_in_place(patch, base, old_bitmap, values, isnull, &to);
	}
	else
		patch->in_place = measure_in_place(patch, base, NULL, values, isnull, &to);
	if (patch->in_place)
	{
		to += patch->bitmap_size;
		patch->pieces[0].from = mot_version_data(old);
		patch->pieces[0].to = 0;
		patch->pieces[0].length = to;
		*host_bits = bits;
		*size = MAXALIGN(to);
		return true;
	}

	patch->npieces = 0;
	from = to = 0;
	if (old_bitmap == NULL && patch->first > 0)
	{
		i = patch->first;
		from = to = MotColumnsBehind(&patch->shape, base, NULL, patch->prefix, i, patch->prefix_end);
		add_piece(patch, base, 0, to);
	}

	while (i < patch->natts)
	{
		const PatchColumn *column = &patch->columns[i];
		const MotColumnShape *shape = &patch->shape.columns[i];
		const char *value = NULL;
		size_t		end;

		/* what keeps its alignment goes in one piece */
		if (column->value < 0 && (to - from) % MAXIMUM_ALIGNOF == 0)
		{
			end = MotColumnsBehind(&patch->shape, base, old_bitmap, i, column->run, from);
			if (end > from)
				add_piece(patch, base + from, to, end - from);
			to += end - from;
			from = end;
			i = column->run;
			continue;
		}

		end = MotColumnsBehind(&patch->shape, base, old_bitmap, i, i + 1, from);
		if (column->value < 0 && end > from)
			value = base + (shape->length == -1 && base[from] != 0 ? from : TYPEALIGN(shape->align, from));
		else if (column->value >= 0 && isnull[column->value])
			new_nulls = true;
		else if (column->value >= 0)
			value = new_bytes(patch, shape, column->value, values[column->value]);
		if (value != NULL && (to = add_value(patch, i, to, value)) == 0)
			return false;
		from = end;
		i++;
	}

	patch->bitmap_size = 0;
	*host_bits = (unsigned) patch->natts;
	if (new_nulls && make_bitmap(patch, old_bitmap, isnull))
	{
		patch->bitmap_size = BITMAP_SIZE(patch->natts);
		*host_bits |= MOT_ROW_HAS_NULLS;
	}
	*size = MAXALIGN(patch->bitmap_size + to);
	return *size <= MaxAllocSize;
}

void
MotRowPatchFill(const MotRowPatch *patch, size_t size, void *data)
{
	char	   *base = (char *) data + patch->bitmap_size;
	char	   *end = base;

	if (patch->in_place)
	{
		/* with its bitmap, which the other pieces lie behind */
		memcpy(data, patch->pieces[0].from, patch->pieces[0].length);
		memset((char *) data + patch->pieces[0].length, 0, size - patch->pieces[0].length);
		for (int i = 1; i < patch->npieces; i++)
		{
			const Piece *piece = &patch->pieces[i];

			if (piece->length == sizeof(int32))
				memcpy(base + piece->to, piece->from, sizeof(int32));
			else
				memcpy(base + piece->to, piece->from, piece->length);
		}
		return;
	}

	if (patch->bitmap_size > 0)
		memcpy(data, patch->bitmap, patch->bitmap_size);
	for (int i = 0; i < patch->npieces; i++)
	{
		const Piece *piece = &patch->pieces[i];
		char	   *to = base + piece->to;

		while (end < to)
			*end++ = 0;
		memcpy(to, piece->from, piece->length);
		end = to + piece->length;
	}
	memset(end, 0, (char *) data + size - end);
}

/* of the row that was measured: bytes that are not the old one's, about */
size_t
MotRowPatchNews(const MotRowPatch *patch, size_t size)
{
	size_t		n = 0;

	if (!patch->in_place)
		return size - (patch->npieces > 0 ? patch->pieces[0].length : 0);
	for (int i = 1; i < patch->npieces; i++)
		n += patch->pieces[i].length;
	return n;
}
