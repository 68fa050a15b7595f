/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Columns of the row, straight from its bytes.
 *
 * The format is that of relation/rowcodec.h.  A row in which all columns up to
 * the last one needed are present and not null, which is nearly every row, is
 * read by code without any test per column: fixed-length columns lie at
 * offsets known now until the first one of variable length.  Any other row is
 * taken apart by a function, into room on the stack, so that programs stay
 * small and are compiled fast.
 *
 *		  host_bits: no nulls, enough columns? --yes---------> fast
 *			no |											   ^
 *			   v											   |
 *		  nulls, but not among these? -------yes---------------+
 *			no |
 *			   v
 *			take_apart
 *
 * The columns of the conditions are loaded first, the others when the row has
 * passed; the walk over a fast row goes on where it stopped.
 *
 * The null bitmap is padded to 8 bytes, so it is read by words.
 *
 * Rows of a slot are read as they have been taken apart.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/tupdesc_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type_d.h"
#include "emit.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"

/* a program that would walk over more columns than this is not compiled */
#define MAX_COLUMNS 250

#define WORD_BITS 64

/* how far a walk over the columns has come */
typedef struct Walk
{
	LLVMValueRef base;			/* where the columns begin */
	LLVMValueRef offset;		/* from there */
	int64		known;			/* the offset, if it is the same for every
								 * row; or -1 */
	int			aligned;		/* what divides it, if it is not known */
} Walk;

/* what take_apart knows of a column */
typedef struct Column
{
	int16		length;
	uint8		align;
	bool		byval;
	bool		missing_isnull; /* of a row that is too old to have it */
	Datum		missing;
} Column;

struct MotColumns
{
	int			last;			/* column that is needed */
	Column	   *columns;
	Walk		walk;			/* over a fast row */
	int			next;			/* column it comes to */
	LLVMValueRef is_fast;
	LLVMValueRef datums;		/* room for take_apart */
	LLVMValueRef nulls;
};

static int
alignment(Form_pg_attribute att)
{
	switch (att->attalign)
	{
		case TYPALIGN_DOUBLE:
			return ALIGNOF_DOUBLE;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		default:
			return 1;
	}
}

static MotKind
kind_of_column(Form_pg_attribute att)
{
	switch (att->atttypid)
	{
		case BOOLOID:
		case FLOAT4OID:
		case FLOAT8OID:
			return MotKindOf(att->atttypid);
		default:
			/* not by the type: a dropped column has none */
			return MotKindOfLength(att->attlen, att->attbyval);
	}
}

/* ------------------------------------------------------------------- walk */

static void
set_known(MotEmit * emit, Walk *walk, int64 offset)
{
	walk->known = offset;
	walk->offset = MotEmitConst(emit, emit->int64, offset);
}

static void
align_walk(MotEmit * emit, Walk *walk, int align)
{
	if (walk->known >= 0)
		set_known(emit, walk, TYPEALIGN(align, walk->known));
	else if (walk->aligned < align)
	{
		LLVMValueRef up = LLVMBuildAdd(emit->builder, walk->offset, MotEmitConst(emit, emit->int64, align - 1), "");

		walk->offset = LLVMBuildAnd(emit->builder, up, MotEmitConst(emit, emit->int64, -(int64) align), "");
		walk->aligned = align;
	}
}

static void
advance_walk(MotEmit * emit, Walk *walk, int64 length)
{
	if (walk->known >= 0)
		set_known(emit, walk, walk->known + length);
	else
	{
		walk->offset = LLVMBuildAdd(emit->builder, walk->offset, MotEmitConst(emit, emit->int64, length), "");
		while (length % walk->aligned != 0)
			walk->aligned /= 2;
	}
}

static LLVMValueRef
byte_at(MotEmit * emit, Walk *walk)
{
	return MotEmitLoadAt(emit, emit->int8, walk->base, walk->offset, 1);
}

/* A variable-length value begins right here if its first byte is not padding. */
static void
align_to_varlena(MotEmit * emit, Walk *walk, int align)
{
	Walk		up = *walk;
	LLVMValueRef padding;

	if (walk->known >= 0 ? walk->known % align == 0 : walk->aligned % align == 0)
		return;
	padding = LLVMBuildICmp(emit->builder, LLVMIntEQ, byte_at(emit, walk), MotEmitConst(emit, emit->int8, 0), "");
	align_walk(emit, &up, align);
	walk->offset = LLVMBuildSelect(emit->builder, padding, up.offset, walk->offset, "");
	walk->known = -1;
	walk->aligned = 1;
}

/* Values are never out of line here, so the header is one byte or four. */
static void
advance_over_varlena(MotEmit * emit, Walk *walk)
{
	LLVMBuilderRef b = emit->builder;
	LLVMBasicBlockRef blocks[2];
	LLVMBasicBlockRef joined;
	LLVMValueRef header;
	LLVMValueRef is_short;
	LLVMValueRef lengths[2];

	StaticAssertStmt(VARHDRSZ_SHORT == 1, "a short header is one byte");
	header = byte_at(emit, walk);
	blocks[0] = MotEmitBlock(emit, "short");
	blocks[1] = MotEmitBlock(emit, "long");
	joined = MotEmitBlock(emit, "behind");
#ifdef WORDS_BIGENDIAN
	is_short = LLVMBuildICmp(b, LLVMIntSLT, header, MotEmitConst(emit, emit->int8, 0), "");
#else
	is_short = LLVMBuildTrunc(b, header, emit->bit, "");
#endif
	LLVMBuildCondBr(b, is_short, blocks[0], blocks[1]);

	LLVMPositionBuilderAtEnd(b, blocks[0]);
#ifdef WORDS_BIGENDIAN
	lengths[0] = LLVMBuildAnd(b, header, MotEmitConst(emit, emit->int8, 0x7f), "");
#else
	lengths[0] = LLVMBuildLShr(b, header, MotEmitConst(emit, emit->int8, 1), "");
#endif
	lengths[0] = LLVMBuildZExt(b, lengths[0], emit->int64, "");
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, blocks[1]);
	lengths[1] = MotEmitLoadAt(emit, emit->int32, walk->base, walk->offset, 1);
#ifdef WORDS_BIGENDIAN
	lengths[1] = LLVMBuildAnd(b, lengths[1], MotEmitConst(emit, emit->int32, 0x3fffffff), "");
#else
	lengths[1] = LLVMBuildLShr(b, lengths[1], MotEmitConst(emit, emit->int32, 2), "");
#endif
	lengths[1] = LLVMBuildZExt(b, lengths[1], emit->int64, "");
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	walk->offset = LLVMBuildAdd(b, walk->offset, MotEmitPhi(emit, emit->int64, 2, lengths, blocks), "");
	walk->known = -1;
	walk->aligned = 1;
}

static void
advance_over_cstring(MotEmit * emit, Walk *walk)
{
	LLVMTypeRef type = LLVMFunctionType(emit->int64, &emit->pointer, 1, false);
	LLVMValueRef at = LLVMBuildGEP2(emit->builder, emit->int8, walk->base, &walk->offset, 1, "");
	LLVMValueRef length = MotEmitCallAddress(emit, strlen, type, &at, 1, "strlen");

	length = LLVMBuildAdd(emit->builder, length, MotEmitConst(emit, emit->int64, 1), "");
	walk->offset = LLVMBuildAdd(emit->builder, walk->offset, length, "");
	walk->known = -1;
	walk->aligned = 1;
}

/* Step over a column that is there; its value if it is wanted. */
static void
walk_column(MotEmit * emit, Walk *walk, Form_pg_attribute att, LLVMValueRef * value)
{
	LLVMBuilderRef b = emit->builder;
	int			align = alignment(att);

	if (att->attlen == -1)
		align_to_varlena(emit, walk, align);
	else
		align_walk(emit, walk, align);

	if (value == NULL)
		;
	else if (!att->attbyval)
		*value = LLVMBuildPtrToInt(b, LLVMBuildGEP2(b, emit->int8, walk->base, &walk->offset, 1, ""), emit->int64, "");
	else if (kind_of_column(att) == MOT_BOOL)
		*value = LLVMBuildICmp(b, LLVMIntNE, byte_at(emit, walk), MotEmitConst(emit, emit->int8, 0), "");
	else
		*value = MotEmitLoadAt(emit, emit->kinds[kind_of_column(att)], walk->base, walk->offset, align);

	if (att->attlen > 0)
		advance_walk(emit, walk, att->attlen);
	else if (att->attlen == -1)
		advance_over_varlena(emit, walk);
	else
		advance_over_cstring(emit, walk);
}

/* ------------------------------------------------------------- other rows */

/* Columns 1 .. last of any row. */
static void
take_apart(const Column *columns, int last, const char *row, unsigned host_bits,
		   Datum *values, bool *isnull)
{
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	const uint8 *bitmap = NULL;
	const char *base = row;
	Size		offset = 0;

	if (host_bits & MOT_ROW_HAS_NULLS)
	{
		bitmap = (const uint8 *) row;
		base += MAXALIGN(BITMAPLEN(stored));
	}
	for (int i = 0; i < last; i++)
	{
		const Column *column = &columns[i];
		const char *at;

		if (i >= stored)
		{
			values[i] = column->missing;
			isnull[i] = column->missing_isnull;
			continue;
		}
		isnull[i] = bitmap != NULL && att_isnull(i, bitmap);
		if (isnull[i])
		{
			values[i] = (Datum) 0;
			continue;
		}
		/* a variable-length value begins here if this is no padding */
		if (column->length != -1 || base[offset] == 0)
			offset = TYPEALIGN(column->align, offset);
		at = base + offset;
		values[i] = fetch_att(at, column->byval, column->length);
		offset = att_addlength_pointer(offset, column->length, at);
	}
}

static Column *
describe_columns(MotEmit * emit, int last)
{
	TupleDesc	desc = emit->request->desc;
	Column	   *columns = MemoryContextAllocZero(emit->cxt, sizeof(Column) * last);

	for (int i = 0; i < last; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		columns[i].length = att->attlen;
		columns[i].align = alignment(att);
		columns[i].byval = att->attbyval;
		columns[i].missing_isnull = true;
		if (att->atthasmissing && desc->constr->missing[i].am_present)
		{
			MemoryContext old = MemoryContextSwitchTo(emit->cxt);

			columns[i].missing = datumCopy(desc->constr->missing[i].am_value, att->attbyval, att->attlen);
			columns[i].missing_isnull = false;
			MemoryContextSwitchTo(old);
		}
	}
	return columns;
}

/* -------------------------------------------------------------- two paths */

static LLVMValueRef
behind_bitmap(MotEmit * emit, LLVMValueRef stored)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef size;

	/* MAXALIGN(BITMAPLEN(stored)) */
	size = LLVMBuildLShr(b, LLVMBuildAdd(b, stored, MotEmitConst(emit, emit->int32, WORD_BITS - 1), ""),
						 MotEmitConst(emit, emit->int32, 6), "");
	size = LLVMBuildZExt(b, LLVMBuildShl(b, size, MotEmitConst(emit, emit->int32, 3), ""), emit->int64, "");
	return LLVMBuildGEP2(b, emit->int8, emit->row, &size, 1, "");
}

static LLVMValueRef
bitmap_word(MotEmit * emit, LLVMValueRef bitmap, int word)
{
	return MotEmitLoad(emit, emit->int64, bitmap, word * 8, 8);
}

/* At the beginning of a program: which kind of row is it? */
static void
begin_columns(MotEmit * emit, int last)
{
	LLVMBuilderRef b = emit->builder;
	MotColumns *columns = palloc0(sizeof(MotColumns));
	LLVMBasicBlockRef has_nulls_block = MotEmitBlock(emit, "has_nulls");
	LLVMBasicBlockRef test_block = MotEmitBlock(emit, "which_nulls");
	LLVMBasicBlockRef other_block = MotEmitBlock(emit, "take_apart");
	LLVMBasicBlockRef joined = MotEmitBlock(emit, "row_known");
	LLVMBasicBlockRef ways[3];
	LLVMValueRef bases[3];
	LLVMValueRef fast[3];
	LLVMValueRef stored;
	LLVMValueRef has_nulls;
	LLVMValueRef usual;
	LLVMValueRef enough;
	LLVMValueRef unset = NULL;
	LLVMValueRef args[6];
	LLVMTypeRef types[6];

	columns->last = last;
	columns->columns = describe_columns(emit, last);
	columns->datums = MotEmitRoom(emit, sizeof(Datum) * last);
	columns->nulls = MotEmitRoom(emit, sizeof(bool) * last);
	columns->next = 1;

	/* in one comparison: "has nulls" is the bit above the number of columns */
	StaticAssertStmt(MOT_ROW_HAS_NULLS == MOT_ROW_NATTS_MASK + 1, "the flag is just above the number");
	usual = LLVMBuildSub(b, emit->host_bits, MotEmitConst(emit, emit->int32, last), "");
	usual = LLVMBuildICmp(b, LLVMIntULT, usual, MotEmitConst(emit, emit->int32, MOT_ROW_HAS_NULLS - last), "");
	bases[0] = emit->row;
	fast[0] = MotEmitConst(emit, emit->bit, 1);
	ways[0] = LLVMGetInsertBlock(b);
	LLVMBuildCondBr(b, usual, joined, has_nulls_block);

	LLVMPositionBuilderAtEnd(b, has_nulls_block);
	stored = LLVMBuildAnd(b, emit->host_bits, MotEmitConst(emit, emit->int32, MOT_ROW_NATTS_MASK), "stored");
	has_nulls = LLVMBuildAnd(b, emit->host_bits, MotEmitConst(emit, emit->int32, MOT_ROW_HAS_NULLS), "");
	has_nulls = LLVMBuildICmp(b, LLVMIntNE, has_nulls, MotEmitConst(emit, emit->int32, 0), "");
	enough = LLVMBuildICmp(b, LLVMIntUGE, stored, MotEmitConst(emit, emit->int32, last), "");
	LLVMBuildCondBr(b, LLVMBuildAnd(b, has_nulls, enough, ""), test_block, other_block);

	LLVMPositionBuilderAtEnd(b, test_block);
	for (int word = 0; word * WORD_BITS < last; word++)
	{
		int			bits = Min(last - word * WORD_BITS, WORD_BITS);
		uint64		mask = bits == WORD_BITS ? ~UINT64CONST(0) : (UINT64CONST(1) << bits) - 1;
		LLVMValueRef off = LLVMBuildNot(b, bitmap_word(emit, emit->row, word), "");

		unset = MotEmitOr(emit, unset, LLVMBuildAnd(b, off, MotEmitConst(emit, emit->int64, (int64) mask), ""));
	}
	unset = LLVMBuildICmp(b, LLVMIntNE, unset, MotEmitConst(emit, emit->int64, 0), "");
	bases[1] = behind_bitmap(emit, stored);
	fast[1] = fast[0];
	ways[1] = test_block;
	LLVMBuildCondBr(b, unset, other_block, joined);

	LLVMPositionBuilderAtEnd(b, other_block);
	args[0] = MotEmitAddress(emit, columns->columns, emit->pointer);
	args[1] = MotEmitConst(emit, emit->int32, last);
	args[2] = emit->row;
	args[3] = emit->host_bits;
	args[4] = columns->datums;
	args[5] = columns->nulls;
	for (int i = 0; i < 6; i++)
		types[i] = LLVMTypeOf(args[i]);
	MotEmitCallAddress(emit, take_apart, LLVMFunctionType(LLVMVoidTypeInContext(emit->context), types, 6, false),
					   args, 6, "");
	bases[2] = emit->row;
	fast[2] = MotEmitConst(emit, emit->bit, 0);
	ways[2] = other_block;
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	columns->walk.base = MotEmitPhi(emit, emit->pointer, 3, bases, ways);
	set_known(emit, &columns->walk, 0);
	columns->is_fast = MotEmitPhi(emit, emit->bit, 3, fast, ways);
	emit->walk = columns;
}

/* Those of the columns 1 .. last that are wanted and not there yet. */
static void
load_columns(MotEmit * emit, int last, Bitmapset *wanted)
{
	LLVMBuilderRef b = emit->builder;
	MotColumns *columns = emit->walk;
	Walk	   *walk = &columns->walk;
	LLVMBasicBlockRef fast_block = MotEmitBlock(emit, "fast");
	LLVMBasicBlockRef other_block = MotEmitBlock(emit, "other");
	LLVMBasicBlockRef joined = MotEmitBlock(emit, "columns");
	LLVMValueRef *values = palloc(sizeof(LLVMValueRef) * (last + 1));
	LLVMBasicBlockRef ways[2];
	LLVMValueRef offsets[2];
	int			attnum = -1;

	/* what lies before the place that the walk has come to */
	if (bms_next_member(wanted, -1) < columns->next)
	{
		set_known(emit, walk, 0);
		columns->next = 1;
	}

	LLVMBuildCondBr(b, columns->is_fast, fast_block, other_block);
	LLVMPositionBuilderAtEnd(b, fast_block);
	for (; columns->next <= last; columns->next++)
		walk_column(emit, walk, TupleDescAttr(emit->request->desc, columns->next - 1),
					bms_is_member(columns->next, wanted) ? &values[columns->next] : NULL);
	ways[0] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	if (walk->known < 0)
	{
		offsets[0] = walk->offset;
		offsets[1] = MotEmitConst(emit, emit->int64, 0);
		ways[1] = other_block;
		walk->offset = MotEmitPhi(emit, emit->int64, 2, offsets, ways);
	}

	while ((attnum = bms_next_member(wanted, attnum)) >= 0)
	{
		Form_pg_attribute att = TupleDescAttr(emit->request->desc, attnum - 1);
		MotKind		kind = kind_of_column(att);
		MotValue   *column = &emit->columns[attnum - 1];
		LLVMValueRef isnull;
		LLVMValueRef datum;
		MotValue	other;

		LLVMPositionBuilderAtEnd(b, other_block);
		isnull = MotEmitFlag(emit, columns->nulls, attnum - 1);
		datum = MotEmitLoad(emit, emit->int64, columns->datums, (attnum - 1) * sizeof(Datum), 8);
		other = MotFromDatum(emit, datum, isnull, kind);

		LLVMPositionBuilderAtEnd(b, joined);
		*column = other;
		{
			LLVMValueRef choices[2] = {values[attnum], other.value};
			LLVMValueRef nulls[2] = {MotEmitConst(emit, emit->bit, 0), other.isnull};

			ways[1] = other_block;
			column->value = MotEmitPhi(emit, emit->kinds[kind], 2, choices, ways);
			column->isnull = MotEmitPhi(emit, emit->bit, 2, nulls, ways);
		}
		LLVMSetValueName(column->value, NameStr(att->attname));
	}
	LLVMPositionBuilderAtEnd(b, other_block);
	LLVMBuildBr(b, joined);
	LLVMPositionBuilderAtEnd(b, joined);
}

/* Columns that these expressions use, as numbers; *last is the last one. */
static Bitmapset *
columns_of(MotEmit * emit, List *expressions, int *last)
{
	Bitmapset  *used = NULL;
	Bitmapset  *result = NULL;
	int			offset = -1;

	*last = 0;
	pull_varattnos((Node *) expressions, emit->request->varno, &used);
	while ((offset = bms_next_member(used, offset)) >= 0)
	{
		*last = offset + FirstLowInvalidHeapAttributeNumber;
		if (*last <= 0)
			MotDecline(emit, "it uses a system column or a whole row");
		if (*last > emit->request->desc->natts)
			MotDecline(emit, "column %d is unknown", *last);
		if (*last > MAX_COLUMNS)
			MotDecline(emit, "it uses columns behind the first %d", MAX_COLUMNS);
		if (emit->columns[*last - 1].value == NULL)
			result = bms_add_member(result, *last);
	}
	return result;
}

/* A slot's columns, which have been taken apart. */
static void
load_from_slot(MotEmit * emit, Bitmapset *wanted)
{
	LLVMValueRef nulls = MotEmitLoad(emit, emit->pointer, emit->arguments, offsetof(MotRowContext, row_isnull), 8);
	int			attnum = -1;

	while ((attnum = bms_next_member(wanted, attnum)) >= 0)
	{
		Form_pg_attribute att = TupleDescAttr(emit->request->desc, attnum - 1);
		LLVMValueRef datum = MotEmitLoad(emit, emit->int64, emit->row, (attnum - 1) * sizeof(Datum), 8);

		emit->columns[attnum - 1] = MotFromDatum(emit, datum, MotEmitFlag(emit, nulls, attnum - 1), kind_of_column(att));
	}
}

void
MotEmitColumns(MotEmit * emit, List *expressions)
{
	int			last;
	Bitmapset  *wanted = columns_of(emit, expressions, &last);

	if (wanted == NULL)
		return;
	if (emit->request->from_slot)
	{
		load_from_slot(emit, wanted);
		return;
	}
	if (emit->walk == NULL)
	{
		List	   *all = MotAggregateExpressions(emit->request);
		int			last_of_all;

		all = list_concat(list_concat(all, emit->request->quals), emit->request->outputs);
		columns_of(emit, all, &last_of_all);
		begin_columns(emit, last_of_all);
	}
	load_columns(emit, bms_prev_member(wanted, -1), wanted);
}
