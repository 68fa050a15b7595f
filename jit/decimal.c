/*-------------------------------------------------------------------------
 *
 * decimal.c
 *	  Numeric as integers.
 *
 * A column of numeric(p, s) has values with s digits behind the point, that is up to
 * (s + 3) / 4 digits of base 10000 there, and mostly few before it.  So what is
 * stored is read as one word, whose 16 bits each are a digit, and brought to that
 * many digits behind the point: a number of 64 bits without a loop or a branch.
 * Sums, differences and products of such have a place of the point that is known when code is
 * made, and a bound that says whether they need 64 bits or 128.
 *
 * Whatever has another form (NaN, longer numbers, values out of line), or would not fit
 * into 128 bits, is not "ok", and the caller's functions do it.  Nothing here raises
 * an error, so all may be computed before it is known to be needed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "emit.h"
#include "catalog/pg_type_d.h"
#include "utils/numeric.h"

#define BASE_DIGITS 4			/* decimal ones in one of base 10000 */
#define WORD_DIGITS 4			/* of base 10000 in a word */
#define INT64_DIGITS 18			/* decimal ones, always */
#define INT128_DIGITS 38
#define MAX_STEPS 16
#define MAX_K 8
#define MAX_COLUMN_K 3
#define MAX_DSCALE 0x3FFF		/* numeric rounds products to it */

/* header word of a stored numeric: short form, positive or negative, and its scale */
#define SHORT_FORM 0x8000
#define SHORT_FORM_MASK 0xDF80
#define SHORT_NEGATIVE 0x2000
#define SHORT_SCALE_SHIFT 7
#define SHORT_WEIGHT_BITS 7

/* numeric(p, s) of a type modifier; false: there is none, or s is negative */
static bool
precision_of(const Var *var, int *precision, int *scale)
{
	int32		typmod = var->vartypmod - (int32) VARHDRSZ;

	if (var->vartype != NUMERICOID || typmod < 0)
		return false;
	*precision = (typmod >> 16) & 0xffff;
	*scale = ((typmod & 0x7ff) ^ 1024) - 1024;
	return *scale >= 0;
}

static LLVMTypeRef
int128_type(MotEmit * emit)
{
	return LLVMIntTypeInContext(emit->context, 128);
}

static int64
power_of_10(int n)
{
	int64		power = 1;

	while (n-- > 0)
		power *= 10;
	return power;
}

LLVMValueRef
MotWiden(MotEmit * emit, const MotNumber * number)
{
	return number->wide ? number->m : LLVMBuildSExt(emit->builder, number->m, int128_type(emit), "");
}

static void
widen(MotEmit * emit, MotNumber * number)
{
	number->m = MotWiden(emit, number);
	number->wide = true;
}

/* ----------------------------------------------------------------- columns */

/*
 * What the varlena at "value" is, if it has the usual form: a header of one byte, the numeric's own
 * of two, up to four digits.
 */
static LLVMValueRef
read_digits(MotEmit * emit, LLVMValueRef value, int scale, int k, int most, LLVMBasicBlockRef other)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef bytes = LLVMBuildIntToPtr(b, value, emit->pointer, "");
	LLVMValueRef length = MotEmitLoad(emit, emit->int8, bytes, 0, 1);
	LLVMValueRef header = MotEmitLoad(emit, emit->int16, bytes, 1, 1);
	LLVMBasicBlockRef usual = MotEmitBlock(emit, "usual");
	LLVMValueRef n4;
	LLVMValueRef n;
	LLVMValueRef up;
	LLVMValueRef is;
	LLVMValueRef word;
	LLVMValueRef mask;
	LLVMValueRef half;
	LLVMValueRef m = NULL;

#define int16(value) MotEmitConst(emit, emit->int16, value)
#define int64(value) MotEmitConst(emit, emit->int64, value)

	/* (2 * (3 + 2 * n) + 1: as 4 * n, which has two zeros at its end) */
	n4 = LLVMBuildSub(b, LLVMBuildZExt(b, length, emit->int64, ""), int64 (7), "");
	is = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, header, int16 ((int16) SHORT_FORM_MASK), ""),
					   int16 ((int16) (SHORT_FORM | scale << SHORT_SCALE_SHIFT)), "");
	is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntULE, n4, int64 (4 * WORD_DIGITS), ""), "");
	is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, n4, int64 (3), ""), int64 (0), ""), "");

	/*
	 * digits that are not stored because they are zeros at the end; there are
	 * "most" in all
	 */
	n = LLVMBuildLShr(b, n4, int64 (2), "");
	up = LLVMBuildShl(b, header, int16 (16 - SHORT_WEIGHT_BITS), "");
	up = LLVMBuildAShr(b, up, int16 (16 - SHORT_WEIGHT_BITS), "");
	up = LLVMBuildAdd(b, LLVMBuildSExt(b, up, emit->int64, ""), int64 (k + 1), "");
	is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntULE, up, int64 (most), ""), "");
	is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntSLE, n, up, ""), "");
	up = LLVMBuildSub(b, up, n, "");
	LLVMBuildCondBr(b, is, usual, other);

	/*
	 * The word that ends with the last digit.  What is in it before the first
	 * is of the headers, or before them: that is there, but none of it.
	 * (Shifted in two steps, since by 64 bits there is no shift.)
	 */
	LLVMPositionBuilderAtEnd(b, usual);
	half = LLVMBuildAdd(b, LLVMBuildShl(b, n, int64 (1), ""), int64 (3 - 8), "");
	word = MotEmitLoadAt(emit, emit->int64, bytes, half, 1);
	half = LLVMBuildSub(b, int64 (32), LLVMBuildShl(b, n, int64 (3), ""), "");
	mask = LLVMBuildShl(b, LLVMBuildShl(b, int64 (-1), half, ""), half, "");
	word = LLVMBuildAnd(b, word, mask, "");
	half = LLVMBuildShl(b, up, int64 (3), "");
	word = LLVMBuildLShr(b, LLVMBuildLShr(b, word, half, ""), half, "");
	for (int i = 0; i < most; i++)
	{
		LLVMValueRef digit = LLVMBuildLShr(b, word, int64 (48 - 16 * i), "");

		if (i > 0)
			digit = LLVMBuildMul(b, LLVMBuildAnd(b, digit, int64 (0xffff), ""), int64 (power_of_10(i * BASE_DIGITS)), "");
		m = m == NULL ? digit : LLVMBuildAdd(b, m, digit, "");
	}
	is = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, header, int16 (SHORT_NEGATIVE), ""), int16 (0), "");
	return LLVMBuildSelect(b, is, LLVMBuildNeg(b, m, ""), m, "");
#undef int16
#undef int64
}

/* A column as a number, once for all that use it; false: its type says too little. */
static bool
read_column(MotEmit * emit, const Var *var, MotNumber * result)
{
	LLVMBuilderRef b = emit->builder;
	MotNumber **known = &emit->numbers[var->varattno - 1];
	const		MotValue *column = &emit->columns[var->varattno - 1];
	LLVMBasicBlockRef blocks[3];
	LLVMBasicBlockRef there;
	LLVMBasicBlockRef other;
	LLVMBasicBlockRef joined;
	LLVMValueRef values[3];
	LLVMValueRef oks[3];
	int			precision;
	int			scale;
	int			k;
	int			most;
	int			n = 0;

#ifdef WORDS_BIGENDIAN
	return false;
#endif
	if (*known != NULL)
	{
		*result = **known;
		return true;
	}
	if (column->value == NULL || !precision_of(var, &precision, &scale))
		return false;
	k = (scale + BASE_DIGITS - 1) / BASE_DIGITS;
	if (k > MAX_COLUMN_K || scale > precision)
		return false;
	most = Min(WORD_DIGITS, k + (precision - scale + BASE_DIGITS - 1) / BASE_DIGITS);

	there = MotEmitBlock(emit, "number");
	other = MotEmitBlock(emit, "no_number");
	joined = MotEmitBlock(emit, "number_known");
	values[0] = values[1] = MotEmitConst(emit, emit->int64, 0);
	if (column->isnull != NULL)
	{
		/* a null is 0, and fits */
		blocks[n] = LLVMGetInsertBlock(b);
		values[n] = MotEmitConst(emit, emit->int64, 0);
		oks[n++] = MotEmitConst(emit, emit->bit, 1);
		LLVMBuildCondBr(b, column->isnull, joined, there);
	}
	else
		LLVMBuildBr(b, there);

	LLVMPositionBuilderAtEnd(b, there);
	values[n] = read_digits(emit, column->value, scale, k, most, other);
	blocks[n] = LLVMGetInsertBlock(b);
	oks[n++] = MotEmitConst(emit, emit->bit, 1);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, other);
	values[n] = MotEmitConst(emit, emit->int64, 0);
	blocks[n] = other;
	oks[n++] = MotEmitConst(emit, emit->bit, 0);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	*known = palloc0(sizeof(MotNumber));
	(*known)->m = MotEmitPhi(emit, emit->int64, n, values, blocks);
	(*known)->ok = MotEmitPhi(emit, emit->bit, n, oks, blocks);
	(*known)->isnull = column->isnull;
	(*known)->digits = most * BASE_DIGITS;
	(*known)->k = k;
	(*known)->dscale = scale;
	*result = **known;
	return true;
}

static void
make_constant(MotEmit * emit, const MotDecimal *constant, MotNumber * result)
{
	uint128		size = constant->m < 0 ? -(uint128) constant->m : (uint128) constant->m;
	uint64_t	words[2] = {(uint64_t) constant->m, (uint64_t) (constant->m >> 64)};

	memset(result, 0, sizeof(MotNumber));
	for (; size != 0; size /= 10)
		result	  ->digits++;
	result	  ->wide = result->digits > INT64_DIGITS;
	result	  ->m = result->wide ? LLVMConstIntOfArbitraryPrecision(int128_type(emit), 2, words) :
	MotEmitConst(emit, emit->int64, (int64) constant->m);
	result	  ->k = constant->k;
	result	  ->dscale = constant->dscale;
}

/* -------------------------------------------------------------- operations */

static LLVMValueRef
both(MotEmit * emit, LLVMValueRef a, LLVMValueRef b)
{
	return a == NULL ? b : b == NULL ? a : LLVMBuildAnd(emit->builder, a, b, "");
}

/* so many digits of base 10000 more behind the point */
static bool
scale_up(MotEmit * emit, MotNumber * number, int by)
{
	if (by == 0)
		return true;
	number->digits += by * BASE_DIGITS;
	if (number->digits > INT128_DIGITS || by > WORD_DIGITS)
		return false;
	if (number->digits > INT64_DIGITS && !number->wide)
		widen(emit, number);
	number->m = LLVMBuildMul(emit->builder, number->m,
							 LLVMConstInt(LLVMTypeOf(number->m), power_of_10(by * BASE_DIGITS), true), "");
	number->k += by;
	return true;
}

static bool
add(MotEmit * emit, MotNumber * a, MotNumber * b, bool subtract)
{
	int			k = Max(a->k, b->k);

	if (!scale_up(emit, a, k - a->k) || !scale_up(emit, b, k - b->k))
		return false;
	a->digits = Max(a->digits, b->digits) + 1;
	if (a->digits > INT128_DIGITS)
		return false;
	if (a->digits > INT64_DIGITS || a->wide || b->wide)
	{
		widen(emit, a);
		widen(emit, b);
	}
	a->m = subtract ? LLVMBuildSub(emit->builder, a->m, b->m, "") : LLVMBuildAdd(emit->builder, a->m, b->m, "");
	a->dscale = Max(a->dscale, b->dscale);
	return true;
}

/* A factor of 128 bits, as those values that fit into 64: others are not ok. */
static void
narrow(MotEmit * emit, MotNumber * number)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef low;

	if (!number->wide)
		return;
	low = LLVMBuildTrunc(b, number->m, emit->int64, "");
	number->ok = both(emit, number->ok, LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildSExt(b, low, int128_type(emit), ""),
													  number->m, ""));
	number->m = low;
	number->wide = false;
	number->digits = Min(number->digits, INT64_DIGITS + 1);
}

static bool
multiply(MotEmit * emit, MotNumber * a, MotNumber * b)
{
	if (a->k + b->k > MAX_K || a->dscale + b->dscale > MAX_DSCALE)
		return false;
	/* (of two that have 64 bits the processor makes one of 128) */
	if (a->digits + b->digits > INT128_DIGITS)
	{
		narrow(emit, a);
		narrow(emit, b);
	}
	if (a->digits + b->digits > INT128_DIGITS)
		return false;
	if (a->digits + b->digits > INT64_DIGITS || a->wide || b->wide)
	{
		widen(emit, a);
		widen(emit, b);
	}
	a->m = LLVMBuildMul(emit->builder, a->m, b->m, "");
	a->digits += b->digits;
	a->k += b->k;
	a->dscale += b->dscale;
	return true;
}

/* What the steps come to; false: some of it is for the caller's functions. */
bool
MotEmitNumber(MotEmit * emit, const MotStep *steps, int nsteps, MotNumber * result)
{
	MotNumber	stack[MAX_STEPS];
	int			n = 0;

	if (nsteps < 1 || nsteps > MAX_STEPS)
		return false;
	for (int i = 0; i < nsteps; i++)
	{
		MotNumber  *a = &stack[Max(n - 2, 0)];
		MotNumber  *b = &stack[Max(n - 1, 0)];
		bool		done;

		switch (steps[i].kind)
		{
			case MOT_STEP_COLUMN:
				if (!read_column(emit, steps[i].var, &stack[n++]))
					return false;
				continue;
			case MOT_STEP_CONST:
				make_constant(emit, &steps[i].constant, &stack[n++]);
				continue;
			case MOT_STEP_MULTIPLY:
				done = multiply(emit, a, b);
				break;
			default:
				done = add(emit, a, b, steps[i].kind == MOT_STEP_SUBTRACT);
				break;
		}
		if (!done)
			return false;
		a->ok = both(emit, a->ok, b->ok);
		a->isnull = MotEmitOr(emit, a->isnull, b->isnull);
		n--;
	}
	*result = stack[0];
	return true;
}
