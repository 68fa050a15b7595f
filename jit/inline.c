/*-------------------------------------------------------------------------
 *
 * inline.c
 *	  Functions that are a few machine instructions.
 *
 * Arithmetic raises the errors of int.c, int8.c and float.h; comparisons of
 * floats follow PostgreSQL's order, in which NaNs are equal to each other and
 * greater than everything else.  Where a function of the server's is
 * overloaded over two types of different size, its arguments are brought to
 * the larger one, as the function does it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation_d.h"
#include "emit.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

typedef enum Operation
{
	ADD, SUB, MUL, DIV, MOD, NEG,
	EQ, NE, LT, LE, GT, GE, CMP,
	CAST, TEXT_EQ, TEXT_NE, BPCHAR_EQ, BPCHAR_NE
} Operation;

typedef struct Inline
{
	Oid			funcid;
	uint8 operation;
	uint8		left;			/* MotKind of the arguments */
	uint8		right;
	uint8 result;				/* of arithmetic and casts: also what it is
								 * done in */
	bool		is_unsigned;
} Inline;

/* arithmetic of integers of two sizes, done in the larger one */
#define ARITHMETIC(name, left, right, result) \
	{F_##name##PL, ADD, left, right, result, false}, \
	{F_##name##MI, SUB, left, right, result, false}, \
	{F_##name##MUL, MUL, left, right, result, false}, \
	{F_##name##DIV, DIV, left, right, result, false}

#define COMPARISONS(prefix, left, right, is_unsigned) \
	{prefix##EQ, EQ, left, right, MOT_BOOL, is_unsigned}, \
	{prefix##NE, NE, left, right, MOT_BOOL, is_unsigned}, \
	{prefix##LT, LT, left, right, MOT_BOOL, is_unsigned}, \
	{prefix##LE, LE, left, right, MOT_BOOL, is_unsigned}, \
	{prefix##GT, GT, left, right, MOT_BOOL, is_unsigned}, \
	{prefix##GE, GE, left, right, MOT_BOOL, is_unsigned}

#define CONVERSION(name, from, to) \
	{name, CAST, from, from, to, false}

static const Inline functions[] = {
	ARITHMETIC(INT2, MOT_INT16, MOT_INT16, MOT_INT16),
	ARITHMETIC(INT4, MOT_INT32, MOT_INT32, MOT_INT32),
	ARITHMETIC(INT8, MOT_WORD, MOT_WORD, MOT_WORD),
	ARITHMETIC(INT24, MOT_INT16, MOT_INT32, MOT_INT32),
	ARITHMETIC(INT42, MOT_INT32, MOT_INT16, MOT_INT32),
	ARITHMETIC(INT28, MOT_INT16, MOT_WORD, MOT_WORD),
	ARITHMETIC(INT82, MOT_WORD, MOT_INT16, MOT_WORD),
	ARITHMETIC(INT48, MOT_INT32, MOT_WORD, MOT_WORD),
	ARITHMETIC(INT84, MOT_WORD, MOT_INT32, MOT_WORD),
	ARITHMETIC(FLOAT4, MOT_FLOAT, MOT_FLOAT, MOT_FLOAT),
	ARITHMETIC(FLOAT8, MOT_DOUBLE, MOT_DOUBLE, MOT_DOUBLE),
	ARITHMETIC(FLOAT48, MOT_FLOAT, MOT_DOUBLE, MOT_DOUBLE),
	ARITHMETIC(FLOAT84, MOT_DOUBLE, MOT_FLOAT, MOT_DOUBLE),
	{F_INT2MOD, MOD, MOT_INT16, MOT_INT16, MOT_INT16, false},
	{F_INT4MOD, MOD, MOT_INT32, MOT_INT32, MOT_INT32, false},
	{F_INT8MOD, MOD, MOT_WORD, MOT_WORD, MOT_WORD, false},
	{F_MOD_INT2_INT2, MOD, MOT_INT16, MOT_INT16, MOT_INT16, false},
	{F_MOD_INT4_INT4, MOD, MOT_INT32, MOT_INT32, MOT_INT32, false},
	{F_MOD_INT8_INT8, MOD, MOT_WORD, MOT_WORD, MOT_WORD, false},
	{F_INT2UM, NEG, MOT_INT16, MOT_INT16, MOT_INT16, false},
	{F_INT4UM, NEG, MOT_INT32, MOT_INT32, MOT_INT32, false},
	{F_INT8UM, NEG, MOT_WORD, MOT_WORD, MOT_WORD, false},
	{F_FLOAT4UM, NEG, MOT_FLOAT, MOT_FLOAT, MOT_FLOAT, false},
	{F_FLOAT8UM, NEG, MOT_DOUBLE, MOT_DOUBLE, MOT_DOUBLE, false},

	COMPARISONS(F_INT2, MOT_INT16, MOT_INT16, false),
	COMPARISONS(F_INT4, MOT_INT32, MOT_INT32, false),
	COMPARISONS(F_INT8, MOT_WORD, MOT_WORD, false),
	COMPARISONS(F_INT24, MOT_INT16, MOT_INT32, false),
	COMPARISONS(F_INT42, MOT_INT32, MOT_INT16, false),
	COMPARISONS(F_INT28, MOT_INT16, MOT_WORD, false),
	COMPARISONS(F_INT82, MOT_WORD, MOT_INT16, false),
	COMPARISONS(F_INT48, MOT_INT32, MOT_WORD, false),
	COMPARISONS(F_INT84, MOT_WORD, MOT_INT32, false),
	COMPARISONS(F_FLOAT4, MOT_FLOAT, MOT_FLOAT, false),
	COMPARISONS(F_FLOAT8, MOT_DOUBLE, MOT_DOUBLE, false),
	COMPARISONS(F_FLOAT48, MOT_FLOAT, MOT_DOUBLE, false),
	COMPARISONS(F_FLOAT84, MOT_DOUBLE, MOT_FLOAT, false),
	COMPARISONS(F_BOOL, MOT_BOOL, MOT_BOOL, true),
	COMPARISONS(F_CHAR, MOT_INT8, MOT_INT8, true),
	COMPARISONS(F_OID, MOT_INT32, MOT_INT32, true),
	COMPARISONS(F_DATE_, MOT_INT32, MOT_INT32, false),
	COMPARISONS(F_TIME_, MOT_WORD, MOT_WORD, false),
	COMPARISONS(F_TIMESTAMP_, MOT_WORD, MOT_WORD, false),
	COMPARISONS(F_TIMESTAMPTZ_, MOT_WORD, MOT_WORD, false),
	COMPARISONS(F_CASH_, MOT_WORD, MOT_WORD, false),
	{F_BTINT4CMP, CMP, MOT_INT32, MOT_INT32, MOT_INT32, false},
	{F_BTINT8CMP, CMP, MOT_WORD, MOT_WORD, MOT_INT32, false},
	{F_BTOIDCMP, CMP, MOT_INT32, MOT_INT32, MOT_INT32, true},
	{F_BTFLOAT4CMP, CMP, MOT_FLOAT, MOT_FLOAT, MOT_INT32, false},
	{F_BTFLOAT8CMP, CMP, MOT_DOUBLE, MOT_DOUBLE, MOT_INT32, false},
	{F_DATE_CMP, CMP, MOT_INT32, MOT_INT32, MOT_INT32, false},
	{F_TIMESTAMP_CMP, CMP, MOT_WORD, MOT_WORD, MOT_INT32, false},
	{F_TIMESTAMPTZ_CMP, CMP, MOT_WORD, MOT_WORD, MOT_INT32, false},

	CONVERSION(F_INT4_INT2, MOT_INT16, MOT_INT32),
	CONVERSION(F_INT8_INT2, MOT_INT16, MOT_WORD),
	CONVERSION(F_INT8_INT4, MOT_INT32, MOT_WORD),
	CONVERSION(F_INT2_INT4, MOT_INT32, MOT_INT16),
	CONVERSION(F_INT2_INT8, MOT_WORD, MOT_INT16),
	CONVERSION(F_INT4_INT8, MOT_WORD, MOT_INT32),
	CONVERSION(F_FLOAT4_INT2, MOT_INT16, MOT_FLOAT),
	CONVERSION(F_FLOAT4_INT4, MOT_INT32, MOT_FLOAT),
	CONVERSION(F_FLOAT4_INT8, MOT_WORD, MOT_FLOAT),
	CONVERSION(F_FLOAT8_INT2, MOT_INT16, MOT_DOUBLE),
	CONVERSION(F_FLOAT8_INT4, MOT_INT32, MOT_DOUBLE),
	CONVERSION(F_FLOAT8_INT8, MOT_WORD, MOT_DOUBLE),
	CONVERSION(F_FLOAT8_FLOAT4, MOT_FLOAT, MOT_DOUBLE),

	{F_TEXTEQ, TEXT_EQ, MOT_WORD, MOT_WORD, MOT_BOOL, false},
	{F_TEXTNE, TEXT_NE, MOT_WORD, MOT_WORD, MOT_BOOL, false},
	{F_BPCHAREQ, BPCHAR_EQ, MOT_WORD, MOT_WORD, MOT_BOOL, false},
	{F_BPCHARNE, BPCHAR_NE, MOT_WORD, MOT_WORD, MOT_BOOL, false}
};

/* the table above by function: open addressing, made at the first look-up */
#define SLOTS 1024
static uint8 by_function[SLOTS];	/* index + 1 */

static const Inline *
find(Oid funcid)
{
	static bool ready = false;

	StaticAssertStmt(lengthof(functions) < 255, "indexes fit into a byte");
	if (!ready)
	{
		for (int i = 0; i < lengthof(functions); i++)
		{
			int			slot = functions[i].funcid % SLOTS;

			while (by_function[slot] != 0)
				slot = (slot + 1) % SLOTS;
			by_function[slot] = i + 1;
		}
		ready = true;
	}
	for (int slot = funcid % SLOTS; by_function[slot] != 0; slot = (slot + 1) % SLOTS)
	{
		const Inline *function = &functions[by_function[slot] - 1];

		if (function->funcid == funcid)
			return function;
	}
	return NULL;
}

bool
MotCanInline(Oid funcid, Oid collation)
{
	const Inline *function = find(funcid);

	if (function == NULL)
		return false;
	if (function->operation <TEXT_EQ)
		return true;

	/*
	 * without a collation it is an error; equality may be more than equal
	 * bytes
	 */
	return OidIsValid(collation) &&
		(collation == DEFAULT_COLLATION_OID || get_collation_isdeterministic(collation));
}

/*
 * Without errors, memory or branches.
 */
bool
MotInlineIsSafe(Oid funcid)
{
	const Inline *function = find(funcid);

	if (function == NULL)
		return false;
	if (function->operation >=EQ && function->operation <=CMP)
		return true;
	if (function->operation == CAST)
		return function->result >=MOT_FLOAT || function->result >function->left;
	if (function->operation == NEG)
		return function->result >=MOT_FLOAT;
	return false;
}

/* ----------------------------------------------------------------- pieces */

static bool
is_float(MotKind kind)
{
	return kind == MOT_FLOAT || kind == MOT_DOUBLE;
}

static int
bits_of(MotKind kind)
{
	return kind == MOT_INT16 ? 16 : kind == MOT_INT32 ? 32 : 64;
}

/* Go on where the condition is not met; where it is, call what raises an error. */
static void
raise_if(MotEmit * emit, LLVMValueRef condition, const void *raise, LLVMValueRef arg)
{
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(emit->context), &emit->int32, arg ? 1 : 0, false);
	LLVMBasicBlockRef error = MotEmitBlock(emit, "error");
	LLVMBasicBlockRef fine = MotEmitBlock(emit, "fine");

	MotEmitBranchUnlikely(emit, condition, error, fine);
	LLVMPositionBuilderAtEnd(emit->builder, error);
	MotEmitCallAddress(emit, raise, type, &arg, arg ? 1 : 0, "");
	LLVMBuildUnreachable(emit->builder);
	LLVMPositionBuilderAtEnd(emit->builder, fine);
}

static void
raise_overflow_if(MotEmit * emit, LLVMValueRef condition, MotKind kind)
{
	raise_if(emit, condition, MotRaiseOverflow, MotEmitConst(emit, emit->int32, bits_of(kind)));
}

static LLVMValueRef
emit_is_infinite(MotEmit * emit, LLVMValueRef value, MotKind kind)
{
	LLVMTypeRef type = emit->kinds[kind];
	LLVMValueRef magnitude = MotEmitIntrinsic(emit, "llvm.fabs", type, &value, 1);

	return LLVMBuildFCmp(emit->builder, LLVMRealOEQ, magnitude, LLVMConstReal(type, INFINITY), "");
}

static LLVMValueRef
is_zero(MotEmit * emit, LLVMValueRef value, MotKind kind)
{
	return LLVMBuildFCmp(emit->builder, LLVMRealOEQ, value, LLVMConstReal(emit->kinds[kind], 0.0), "");
}

static LLVMValueRef
is_nan(MotEmit * emit, LLVMValueRef value)
{
	return LLVMBuildFCmp(emit->builder, LLVMRealUNO, value, value, "");
}

/* the same number in a kind that has room for it */
static LLVMValueRef
widen(MotEmit * emit, LLVMValueRef value, MotKind from, MotKind to)
{
	LLVMBuilderRef b = emit->builder;

	if (from == to)
		return value;
	if (is_float(from))
		return LLVMBuildFPExt(b, value, emit->kinds[to], "");
	if (is_float(to))
		return LLVMBuildSIToFP(b, value, emit->kinds[to], "");
	return LLVMBuildSExt(b, value, emit->kinds[to], "");
}

/* ------------------------------------------------------------- arithmetic */

static LLVMValueRef
integer_arithmetic(MotEmit * emit, const Inline *function, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = function->result;
	LLVMTypeRef type = emit->kinds[kind];
	LLVMValueRef args[2] = {x, y};
	LLVMValueRef pair;
	LLVMValueRef minus_one;
	const char *name;

	switch (function->operation)
	{
		case ADD:
			name = "llvm.sadd.with.overflow";
			break;
		case SUB:
			name = "llvm.ssub.with.overflow";
			break;
		case MUL:
			name = "llvm.smul.with.overflow";
			break;
		default:
			raise_if(emit, LLVMBuildICmp(b, LLVMIntEQ, y, MotEmitConst(emit, type, 0), ""), MotRaiseDivisionByZero, NULL);
			minus_one = LLVMBuildICmp(b, LLVMIntEQ, y, MotEmitConst(emit, type, -1), "");
			if (function->operation == DIV)
			{
				/* the one case in which the quotient has no room */
				LLVMValueRef min = MotEmitConst(emit, type, PG_INT64_MIN >> (64 - bits_of(kind)));
				LLVMValueRef is_min = LLVMBuildICmp(b, LLVMIntEQ, x, min, "");

				/* a divisor of more bits cannot have that dividend */
				if (function->left == kind)
					raise_overflow_if(emit, LLVMBuildAnd(b, is_min, minus_one, ""), kind);
				return LLVMBuildSDiv(b, x, y, "");
			}
			/* x % -1, which some machines trip over, is x % 1 */
			y = LLVMBuildSelect(b, minus_one, MotEmitConst(emit, type, 1), y, "");
			return LLVMBuildSRem(b, x, y, "");
	}

	pair = MotEmitIntrinsic(emit, name, type, args, 2);
	raise_overflow_if(emit, LLVMBuildExtractValue(b, pair, 1, ""), kind);
	return LLVMBuildExtractValue(b, pair, 0, "");
}

/* as float4_pl ... float8_div in float.h */
static LLVMValueRef
float_arithmetic(MotEmit * emit, const Inline *function, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = function->result;
	LLVMValueRef zero = LLVMConstReal(emit->kinds[kind], 0.0);
	LLVMValueRef result;
	LLVMValueRef overflow;
	LLVMValueRef underflow = NULL;

	switch (function->operation)
	{
		case ADD:
			result = LLVMBuildFAdd(b, x, y, "");

			break;
		case SUB:
			result = LLVMBuildFSub(b, x, y, "");

			break;
		case MUL:
			result = LLVMBuildFMul(b, x, y, "");

			break;
		default:
			raise_if(emit, LLVMBuildAnd(b, is_zero(emit, y, kind), LLVMBuildNot(b, is_nan(emit, x), ""), ""),
					 float_zero_divide_error, NULL);
			result = LLVMBuildFDiv(b, x, y, "");

			break;
	}

	overflow = LLVMBuildAnd(b, emit_is_infinite(emit, result, kind), LLVMBuildNot(b, emit_is_infinite(emit, x, kind), ""), "");
	if (function->operation !=DIV)
		overflow = LLVMBuildAnd(b, overflow, LLVMBuildNot(b, emit_is_infinite(emit, y, kind), ""), "");
	raise_if(emit, overflow, float_overflow_error, NULL);

	if (function->operation == MUL || function->operation == DIV)
	{
		/* "not equal" is true of a NaN, as it is in C */
		underflow = LLVMBuildAnd(b, is_zero(emit, result, kind), LLVMBuildFCmp(b, LLVMRealUNE, x, zero, ""), "");
		if (function->operation == MUL)
			underflow = LLVMBuildAnd(b, underflow, LLVMBuildFCmp(b, LLVMRealUNE, y, zero, ""), "");
		else
			underflow = LLVMBuildAnd(b, underflow, LLVMBuildNot(b, emit_is_infinite(emit, y, kind), ""), "");
		raise_if(emit, underflow, float_underflow_error, NULL);
	}
	return result;
}

static LLVMValueRef
negation(MotEmit * emit, const Inline *function, LLVMValueRef x)
{
	MotKind		kind = function->result;
	LLVMTypeRef type = emit->kinds[kind];
	LLVMValueRef min;

	if (is_float(kind))
		return LLVMBuildFNeg(emit->builder, x, "");
	min = MotEmitConst(emit, type, PG_INT64_MIN >> (64 - bits_of(kind)));
	raise_overflow_if(emit, LLVMBuildICmp(emit->builder, LLVMIntEQ, x, min, ""), kind);
	return LLVMBuildNeg(emit->builder, x, "");
}

static LLVMValueRef
conversion(MotEmit * emit, const Inline *function, LLVMValueRef x)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef narrow;

	if (is_float(function->result) || function->result >function->left)
		return widen(emit, x, function->left, function->result);
	narrow = LLVMBuildTrunc(b, x, emit->kinds[function->result], "");
	raise_overflow_if(emit, LLVMBuildICmp(b, LLVMIntNE, widen(emit, narrow, function->result, function->left), x, ""),
					  function->result);
	return narrow;
}

/* ------------------------------------------------------------ comparisons */

/* "less" of floats: a NaN is less than nothing, and everything else is less than it */
static LLVMValueRef
float_less(MotEmit * emit, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef less = LLVMBuildOr(b, is_nan(emit, y), LLVMBuildFCmp(b, LLVMRealOLT, x, y, ""), "");

	return LLVMBuildAnd(b, LLVMBuildNot(b, is_nan(emit, x), ""), less, "");
}

static LLVMValueRef
float_equal(MotEmit * emit, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;

	return LLVMBuildOr(b, LLVMBuildFCmp(b, LLVMRealOEQ, x, y, ""),
					   LLVMBuildAnd(b, is_nan(emit, x), is_nan(emit, y), ""), "");
}

static LLVMValueRef
compare(MotEmit * emit, Operation operation, bool of_floats, bool is_unsigned, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;

	if (of_floats)
		switch (operation)
		{
			case EQ:
				return float_equal(emit, x, y);
			case NE:
				return LLVMBuildNot(b, float_equal(emit, x, y), "");
			case LT:
				return float_less(emit, x, y);
			case LE:
				return LLVMBuildNot(b, float_less(emit, y, x), "");
			case GT:
				return float_less(emit, y, x);
			default:
				return LLVMBuildNot(b, float_less(emit, x, y), "");
		}
	switch (operation)
	{
		case EQ:
			return LLVMBuildICmp(b, LLVMIntEQ, x, y, "");
		case NE:
			return LLVMBuildICmp(b, LLVMIntNE, x, y, "");
		case LT:
			return LLVMBuildICmp(b, is_unsigned ? LLVMIntULT : LLVMIntSLT, x, y, "");
		case LE:
			return LLVMBuildICmp(b, is_unsigned ? LLVMIntULE : LLVMIntSLE, x, y, "");
		case GT:
			return LLVMBuildICmp(b, is_unsigned ? LLVMIntUGT : LLVMIntSGT, x, y, "");
		default:
			return LLVMBuildICmp(b, is_unsigned ? LLVMIntUGE : LLVMIntSGE, x, y, "");
	}
}

/* -1, 0 or 1 */
static LLVMValueRef
three_way(MotEmit * emit, bool of_floats, bool is_unsigned, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef greater = compare(emit, GT, of_floats, is_unsigned, x, y);
	LLVMValueRef less = compare(emit, LT, of_floats, is_unsigned, x, y);

	return LLVMBuildSub(b, LLVMBuildZExt(b, greater, emit->int32, ""), LLVMBuildZExt(b, less, emit->int32, ""), "");
}

static LLVMValueRef
equal_bytes(MotEmit * emit, const Inline *function, LLVMValueRef * args)
{
	LLVMTypeRef types[2] = {emit->int64, emit->int64};
	LLVMTypeRef type = LLVMFunctionType(emit->int8, types, 2, false);
	bool		is_text = function->operation == TEXT_EQ || function->operation == TEXT_NE;
	bool		negate = function->operation == TEXT_NE || function->operation == BPCHAR_NE;
	LLVMValueRef result;

	result = MotEmitCallAddress(emit, is_text ? (const void *) MotTextEqual : (const void *) MotBpcharEqual,
								type, args, 2, "equal");
	result = LLVMBuildTrunc(emit->builder, result, emit->bit, "");
	return negate ? LLVMBuildNot(emit->builder, result, "") : result;
}

LLVMValueRef
MotEmitInline(MotEmit * emit, Oid funcid, MotValue * args, MotKind * kind)
{
	const Inline *function = find(funcid);
	bool		unary = function->operation == CAST || function->operation == NEG;
	bool		is_comparison = function->operation >=EQ && function->operation <=CMP;
	MotKind		in = function->result;
	LLVMValueRef values[2];

	*kind = function->result;
	values[0] = MotConvert(emit, args[0], function->left).value;
	values[1] = unary ? NULL : MotConvert(emit, args[1], function->right).value;

	if (function->operation == CAST)
		return conversion(emit, function, values[0]);
	if (function->operation == NEG)
		return negation(emit, function, values[0]);
	if (function->operation >=TEXT_EQ)
		return equal_bytes(emit, function, values);

	/* what it is done in */
	if (is_comparison)
		in = Max(function->left, function->right);
	values[0] = widen(emit, values[0], function->left, in);
	values[1] = widen(emit, values[1], function->right, in);
	if (function->operation == CMP)
		return three_way(emit, is_float(in), function->is_unsigned, values[0], values[1]);
	if (is_comparison)
		return compare(emit, function->operation, is_float(in), function->is_unsigned, values[0], values[1]);
	if (is_float(in))
		return float_arithmetic(emit, function, values[0], values[1]);
	return integer_arithmetic(emit, function, values[0], values[1]);
}
