/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Columns of the row, straight from its bytes.
 *
 * The format is that of relation/rowcodec.h.  A row in which all columns up to
 * the last one needed are present and not null, which is nearly every row, is
 * read by a path without any test per column: fixed-length columns lie at
 * offsets known now until the first one of variable length.  The other path
 * looks at the null bitmap for each column.
 *
 *		  host_bits: no nulls, enough columns? --yes-------------> fast
 *			no |											       ^
 *			   v									               |
 *		  nulls, but not among these? ----yes----------------------+
 *			no |
 *			   v
 *			general ----------------------------------> joined <- fast
 *
 * The null bitmap is padded to 8 bytes, so it is read by words.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/tupdesc_details.h"
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

/* what is read of a row that is shorter than it ought to be */
static const uint64 all_set[(MAX_COLUMNS + WORD_BITS - 1) / WORD_BITS] =
{
	~UINT64CONST(0), ~UINT64CONST(0), ~UINT64CONST(0), ~UINT64CONST(0)
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
	return MotEmitLoad(emit, emit->int8, walk->base, walk->offset, 1);
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
	lengths[1] = MotEmitLoad(emit, emit->int32, walk->base, walk->offset, 1);
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
		*value = MotEmitLoad(emit, emit->kinds[kind_of_column(att)], walk->base, walk->offset, align);

	if (att->attlen > 0)
		advance_walk(emit, walk, att->attlen);
	else if (att->attlen == -1)
		advance_over_varlena(emit, walk);
	else
		advance_over_cstring(emit, walk);
}

/* What a row has that is older than the column. */
static MotValue
missing_value(MotEmit * emit, int attnum)
{
	TupleDesc	desc = emit->request->desc;
	Form_pg_attribute att = TupleDescAttr(desc, attnum - 1);
	MotValue	result;

	result.kind = kind_of_column(att);
	result.value = LLVMConstNull(emit->kinds[result.kind]);
	result.isnull = MotEmitConst(emit, emit->bit, 1);
	if (att->atthasmissing && desc->constr->missing[attnum - 1].am_present)
	{
		MemoryContext old = MemoryContextSwitchTo(emit->cxt);
		Datum		datum = datumCopy(desc->constr->missing[attnum - 1].am_value, att->attbyval, att->attlen);

		MemoryContextSwitchTo(old);
		result = MotFromDatum(emit, MotEmitConst(emit, emit->int64, (int64) datum),
							  MotEmitConst(emit, emit->bit, 0), result.kind);
	}
	return result;
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
	return MotEmitLoad(emit, emit->int64, bitmap, MotEmitConst(emit, emit->int64, word * 8), 8);
}

static void
fast_path(MotEmit * emit, LLVMValueRef base, int last, Bitmapset *wanted, MotValue * values)
{
	Walk		walk = {.base = base};

	set_known(emit, &walk, 0);
	for (int attnum = 1; attnum <= last; attnum++)
	{
		Form_pg_attribute att = TupleDescAttr(emit->request->desc, attnum - 1);

		walk_column(emit, &walk, att, bms_is_member(attnum, wanted) ? &values[attnum - 1].value : NULL);
		values[attnum - 1].isnull = NULL;
	}
}

static void
general_path(MotEmit * emit, LLVMValueRef stored, LLVMValueRef has_nulls, int last, Bitmapset *wanted,
			 MotValue * values)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef set = MotEmitAddress(emit, all_set, emit->pointer);
	LLVMValueRef word = NULL;
	Walk		walk;

	walk.base = LLVMBuildSelect(b, has_nulls, behind_bitmap(emit, stored), emit->row, "");
	set_known(emit, &walk, 0);

	for (int attnum = 1; attnum <= last; attnum++)
	{
		Form_pg_attribute att = TupleDescAttr(emit->request->desc, attnum - 1);
		MotValue	missing = missing_value(emit, attnum);
		int			bit = (attnum - 1) % WORD_BITS;
		bool		want = bms_is_member(attnum, wanted);
		LLVMBasicBlockRef blocks[3];
		LLVMBasicBlockRef looked = MotEmitBlock(emit, "stored");
		LLVMBasicBlockRef present = MotEmitBlock(emit, "present");
		LLVMBasicBlockRef joined = MotEmitBlock(emit, "next");
		LLVMValueRef is_stored;
		LLVMValueRef isnull;
		LLVMValueRef found = NULL;
		LLVMValueRef offsets[3];
		Walk		before;

		is_stored = LLVMBuildICmp(b, LLVMIntUGE, stored, MotEmitConst(emit, emit->int32, attnum), "");
		if (bit == 0)
		{
			LLVMValueRef has_word = LLVMBuildAnd(b, has_nulls, is_stored, "");

			word = bitmap_word(emit, LLVMBuildSelect(b, has_word, emit->row, set, ""), (attnum - 1) / WORD_BITS);
		}
		offsets[0] = offsets[1] = walk.offset;
		blocks[0] = LLVMGetInsertBlock(b);
		LLVMBuildCondBr(b, is_stored, looked, joined);

		LLVMPositionBuilderAtEnd(b, looked);
		isnull = LLVMBuildAnd(b, word, MotEmitConst(emit, emit->int64, (int64) (UINT64CONST(1) << bit)), "");
		isnull = LLVMBuildICmp(b, LLVMIntEQ, isnull, MotEmitConst(emit, emit->int64, 0), "");
		blocks[1] = looked;
		LLVMBuildCondBr(b, isnull, joined, present);

		LLVMPositionBuilderAtEnd(b, present);
		before = walk;
		walk_column(emit, &walk, att, want ? &found : NULL);
		offsets[2] = walk.offset;
		blocks[2] = LLVMGetInsertBlock(b);
		LLVMBuildBr(b, joined);

		LLVMPositionBuilderAtEnd(b, joined);
		if (want)
		{
			LLVMValueRef nulls[3];
			LLVMValueRef found_values[3];

			found_values[0] = missing.value;
			nulls[0] = missing.isnull;
			found_values[1] = LLVMConstNull(emit->kinds[missing.kind]);
			nulls[1] = MotEmitConst(emit, emit->bit, 1);
			found_values[2] = found;
			nulls[2] = MotEmitConst(emit, emit->bit, 0);
			values[attnum - 1].value = MotEmitPhi(emit, emit->kinds[missing.kind], 3, found_values, blocks);
			values[attnum - 1].isnull = MotEmitPhi(emit, emit->bit, 3, nulls, blocks);
		}
		if (attnum < last)
		{
			/* what is known of both ways that lead here */
			int			step = walk.known >= 0 ? (walk.known == 0 ? MAXIMUM_ALIGNOF : Min(walk.known & -walk.known, MAXIMUM_ALIGNOF)) : walk.aligned;
			int			start = before.known >= 0 ? (before.known == 0 ? MAXIMUM_ALIGNOF : Min(before.known & -before.known, MAXIMUM_ALIGNOF)) : before.aligned;

			walk.offset = MotEmitPhi(emit, emit->int64, 3, offsets, blocks);
			walk.known = -1;
			walk.aligned = Min(step, start);
		}
	}
}

/* Those of the columns 1 .. last that are wanted and not there yet. */
static void
load_columns(MotEmit * emit, int last, Bitmapset *wanted)
{
	LLVMBuilderRef b = emit->builder;
	int			natts = emit->request->desc->natts;
	MotValue   *fast = palloc0(sizeof(MotValue) * natts);
	MotValue   *general = palloc0(sizeof(MotValue) * natts);
	LLVMBasicBlockRef bitmap_block = MotEmitBlock(emit, "has_nulls");
	LLVMBasicBlockRef test_block = MotEmitBlock(emit, "which_nulls");
	LLVMBasicBlockRef fast_block = MotEmitBlock(emit, "fast");
	LLVMBasicBlockRef general_block = MotEmitBlock(emit, "general");
	LLVMBasicBlockRef joined = MotEmitBlock(emit, "columns");
	LLVMBasicBlockRef bases_from[2];
	LLVMBasicBlockRef ways[2];
	LLVMValueRef bases[2];
	LLVMValueRef stored;
	LLVMValueRef has_nulls;
	LLVMValueRef usual;
	LLVMValueRef enough;
	LLVMValueRef missing = NULL;
	int			attnum;

	stored = LLVMBuildAnd(b, emit->host_bits, MotEmitConst(emit, emit->int32, MOT_ROW_NATTS_MASK), "stored");
	has_nulls = LLVMBuildAnd(b, emit->host_bits, MotEmitConst(emit, emit->int32, MOT_ROW_HAS_NULLS), "");
	has_nulls = LLVMBuildICmp(b, LLVMIntNE, has_nulls, MotEmitConst(emit, emit->int32, 0), "has_nulls");

	/* in one comparison: "has nulls" is the bit above the number of columns */
	StaticAssertStmt(MOT_ROW_HAS_NULLS == MOT_ROW_NATTS_MASK + 1, "the flag is just above the number");
	usual = LLVMBuildSub(b, emit->host_bits, MotEmitConst(emit, emit->int32, last), "");
	usual = LLVMBuildICmp(b, LLVMIntULT, usual, MotEmitConst(emit, emit->int32, MOT_ROW_HAS_NULLS - last), "");
	bases[0] = emit->row;
	bases_from[0] = LLVMGetInsertBlock(b);
	LLVMBuildCondBr(b, usual, fast_block, bitmap_block);

	LLVMPositionBuilderAtEnd(b, bitmap_block);
	enough = LLVMBuildICmp(b, LLVMIntUGE, stored, MotEmitConst(emit, emit->int32, last), "");
	LLVMBuildCondBr(b, LLVMBuildAnd(b, has_nulls, enough, ""), test_block, general_block);

	LLVMPositionBuilderAtEnd(b, test_block);
	for (int word = 0; word * WORD_BITS < last; word++)
	{
		int			bits = Min(last - word * WORD_BITS, WORD_BITS);
		uint64		mask = bits == WORD_BITS ? ~UINT64CONST(0) : (UINT64CONST(1) << bits) - 1;
		LLVMValueRef unset = LLVMBuildNot(b, bitmap_word(emit, emit->row, word), "");

		missing = MotEmitOr(emit, missing, LLVMBuildAnd(b, unset, MotEmitConst(emit, emit->int64, (int64) mask), ""));
	}
	missing = LLVMBuildICmp(b, LLVMIntNE, missing, MotEmitConst(emit, emit->int64, 0), "");
	bases[1] = behind_bitmap(emit, stored);
	bases_from[1] = test_block;
	LLVMBuildCondBr(b, missing, general_block, fast_block);

	LLVMPositionBuilderAtEnd(b, fast_block);
	fast_path(emit, MotEmitPhi(emit, emit->pointer, 2, bases, bases_from), last, wanted, fast);
	ways[0] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, general_block);
	general_path(emit, stored, has_nulls, last, wanted, general);
	ways[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	attnum = -1;
	while ((attnum = bms_next_member(wanted, attnum)) >= 0)
	{
		Form_pg_attribute att = TupleDescAttr(emit->request->desc, attnum - 1);
		MotValue   *column = &emit->columns[attnum - 1];
		LLVMValueRef values[2] = {fast[attnum - 1].value, general[attnum - 1].value};
		LLVMValueRef nulls[2] = {MotEmitConst(emit, emit->bit, 0), general[attnum - 1].isnull};

		column->kind = kind_of_column(att);
		column->value = MotEmitPhi(emit, emit->kinds[column->kind], 2, values, ways);
		column->isnull = MotEmitPhi(emit, emit->bit, 2, nulls, ways);
		LLVMSetValueName(column->value, NameStr(att->attname));
	}
}

void
MotEmitColumns(MotEmit * emit, List *expressions)
{
	Bitmapset  *used = NULL;
	Bitmapset  *wanted = NULL;
	int			last = 0;
	int			offset = -1;

	pull_varattnos((Node *) expressions, emit->request->varno, &used);
	while ((offset = bms_next_member(used, offset)) >= 0)
	{
		int			attnum = offset + FirstLowInvalidHeapAttributeNumber;

		if (attnum <= 0)
			MotDecline(emit, "it uses a system column or a whole row");
		if (attnum > emit->request->desc->natts)
			MotDecline(emit, "column %d is unknown", attnum);
		if (emit->columns[attnum - 1].value != NULL)
			continue;
		wanted = bms_add_member(wanted, attnum);
		last = attnum;
	}
	if (last > MAX_COLUMNS)
		MotDecline(emit, "it uses columns behind the first %d", MAX_COLUMNS);
	if (last > 0)
		load_columns(emit, last, wanted);
}
