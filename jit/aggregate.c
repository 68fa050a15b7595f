/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  Aggregates, advanced where the row is.
 *
 * One after the other, as the executor does it: the filter, the arguments,
 * the transition.  Transitions that are an addition or a comparison are done
 * here; others are calls of the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "emit.h"
#include "executor/nodeAgg.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/fmgroids.h"

/*
 * The state of one aggregate: where its members are, from "base" on; the null flag is
 * twice there.  Sums that need more are beside.
 */
typedef struct State
{
	LLVMValueRef base;
	int64		value;
	int64		isnull;
	LLVMValueRef sum;
	int64		low;
	int64		high;
	int64		count;
	int64		scale_count;
	int64		header;			/* max_scale, k, seen, handed */
	int64		seen;
} State;

#define STATE_OFFSET(i, member) ((i) * (int64) sizeof(AggStatePerGroupData) + (int64) offsetof(AggStatePerGroupData, member))
#define SUM_OFFSET(i, member) ((i) * (int64) sizeof(MotSum) + (int64) offsetof(MotSum, member))

static State
state_of(MotEmit * emit, int i, int sum)
{
	State state = {emit->states};

	StaticAssertStmt(offsetof(AggStatePerGroupData, noTransValue) == offsetof(AggStatePerGroupData, transValueIsNull) + 1,
					 "both flags of a state are one word");
	StaticAssertStmt(offsetof(MotSum, handed) == offsetof(MotSum, max_scale) + 7, "a sum's flags are one word");
	state.		value = STATE_OFFSET(i, transValue);
	state.		isnull = STATE_OFFSET(i, transValueIsNull);
	state.		sum = emit->sums;
	state.		low = SUM_OFFSET(sum, sum);
	state.		high = state.low + 8;
	state.		count = SUM_OFFSET(sum, n);
	state.		scale_count = SUM_OFFSET(sum, max_scale_count);
	state.		header = SUM_OFFSET(sum, max_scale);
	state.		seen = SUM_OFFSET(sum, seen);
	return state;
}

static LLVMValueRef
get_at(MotEmit * emit, LLVMValueRef base, int64 offset)
{
	return MotEmitLoad(emit, emit->int64, base, offset, 8);
}

static void
put_at(MotEmit * emit, LLVMValueRef base, int64 offset, LLVMValueRef value)
{
	MotEmitStore(emit, value, base, offset, 8);
}

static LLVMValueRef
get(MotEmit * emit, const State *state)
{
	return get_at(emit, state->base, state->value);
}

static void
put(MotEmit * emit, const State *state, LLVMValueRef value)
{
	put_at(emit, state->base, state->value, value);
}

static LLVMValueRef
get_null(MotEmit * emit, const State *state)
{
	return MotEmitFlag(emit, state->base, state->isnull);
}

static void
put_null(MotEmit * emit, const State *state, LLVMValueRef isnull)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef flag = LLVMBuildZExt(b, isnull, emit->int16, "");

	flag = LLVMBuildMul(b, flag, MotEmitConst(emit, emit->int16, 0x0101), "");
	MotEmitStore(emit, flag, state->base, state->isnull, 1);
}

/* 1 if there is a value, 0 if it is null */
static LLVMValueRef
one_if_there(MotEmit * emit, MotValue value)
{
	if (value.isnull == NULL)
		return MotEmitConst(emit, emit->int64, 1);
	return LLVMBuildZExt(emit->builder, LLVMBuildNot(emit->builder, value.isnull, ""), emit->int64, "");
}

/* an integer in 64 bits, 0 for null */
static LLVMValueRef
number_or_zero(MotEmit * emit, MotValue value)
{
	LLVMValueRef number = value.value;

	if (value.kind != MOT_WORD)
		number = LLVMBuildSExt(emit->builder, number, emit->int64, "");
	if (value.isnull == NULL)
		return number;
	return LLVMBuildSelect(emit->builder, value.isnull, MotEmitConst(emit, emit->int64, 0), number, "");
}

static void
emit_count(MotEmit * emit, const State *state, MotValue * arg)
{
	LLVMValueRef by = arg ? one_if_there(emit, *arg) : MotEmitConst(emit, emit->int64, 1);

	put(emit, state, LLVMBuildAdd(emit->builder, get(emit, state), by, ""));
}

static void
check_integer(MotEmit * emit, MotValue arg)
{
	if (arg.kind != MOT_INT16 && arg.kind != MOT_INT32 && arg.kind != MOT_WORD)
		MotDecline(emit, "an aggregate's argument is not an integer");
}

static void
emit_sum(MotEmit * emit, const State *state, MotValue arg)
{
	LLVMBuilderRef b = emit->builder;

	check_integer(emit, arg);
	put(emit, state, LLVMBuildAdd(b, get(emit, state), number_or_zero(emit, arg), ""));
	put_null(emit, state, arg.isnull == NULL ? MotEmitConst(emit, emit->bit, 0) :
			 LLVMBuildAnd(b, get_null(emit, state), arg.isnull, ""));
}

static void
emit_sum_wide(MotEmit * emit, const State *state, MotValue arg)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef number;
	LLVMValueRef low;
	LLVMValueRef high;
	LLVMValueRef carry;

	check_integer(emit, arg);
	number = number_or_zero(emit, arg);
	low = LLVMBuildAdd(b, get_at(emit, state->sum, state->low), number, "");
	carry = LLVMBuildZExt(b, LLVMBuildICmp(b, LLVMIntULT, low, number, ""), emit->int64, "");
	high = LLVMBuildAShr(b, number, MotEmitConst(emit, emit->int64, 63), "");
	high = LLVMBuildAdd(b, LLVMBuildAdd(b, get_at(emit, state->sum, state->high), high, ""), carry, "");
	put_at(emit, state->sum, state->low, low);
	put_at(emit, state->sum, state->high, high);
	put_at(emit, state->sum, state->count,
		   LLVMBuildAdd(b, get_at(emit, state->sum, state->count), one_if_there(emit, arg), ""));
	MotEmitStore(emit, MotEmitConst(emit, emit->int8, 1), state->sum, state->seen, 1);
}

/* The state is an array of two, of how many and their sum (numeric.c's Int8TransTypeData). */
static void
emit_average(MotEmit * emit, const State *state, MotValue arg)
{
	LLVMBuilderRef b = emit->builder;
	LLVMBasicBlockRef there = MotEmitBlock(emit, "there");
	LLVMBasicBlockRef done = MotEmitBlock(emit, "done");
	LLVMValueRef pair;
	int64		data = ARR_OVERHEAD_NONULLS(1);

	check_integer(emit, arg);
	LLVMBuildCondBr(b, MotIsNull(emit, arg), done, there);
	LLVMPositionBuilderAtEnd(b, there);
	arg.isnull = NULL;
	pair = LLVMBuildIntToPtr(b, get(emit, state), emit->pointer, "");
	put_at(emit, pair, data, LLVMBuildAdd(b, get_at(emit, pair, data), MotEmitConst(emit, emit->int64, 1), ""));
	put_at(emit, pair, data + 8, LLVMBuildAdd(b, get_at(emit, pair, data + 8), number_or_zero(emit, arg), ""));
	LLVMBuildBr(b, done);
	LLVMPositionBuilderAtEnd(b, done);
}

static void
emit_call(MotEmit * emit, const MotRowAggregate *aggregate)
{
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(emit->context), &emit->pointer, 1, false);
	LLVMValueRef arg = MotEmitAddress(emit, aggregate->arg, emit->pointer);

	MotEmitCallAddress(emit, aggregate->call, type, &arg, 1, "");
}

/*
 * A number is added if it is one, and the sum is of the same form: else, as for a
 * group's first row, the caller does it.
 */
static void
emit_sum_decimal(MotEmit * emit, const State *state, const MotRowAggregate *aggregate, const MotNumber * number)
{
	LLVMBuilderRef b = emit->builder;
	LLVMTypeRef wide = LLVMIntTypeInContext(emit->context, 128);
	LLVMBasicBlockRef null_block = MotEmitBlock(emit, "null");
	LLVMBasicBlockRef there = MotEmitBlock(emit, "there");
	LLVMBasicBlockRef add = MotEmitBlock(emit, "add");
	LLVMBasicBlockRef call = MotEmitBlock(emit, "call");
	LLVMBasicBlockRef done = MotEmitBlock(emit, "done");
	LLVMValueRef header = get_at(emit, state->sum, state->header);
	LLVMValueRef fits;
	LLVMValueRef sum;
	LLVMValueRef before;
	MotSum		form = {0};
	uint64		word;

	form.max_scale = number->dscale;
	form.k = number->k;
	form.seen = true;
	memcpy(&word, (char *) &form + offsetof(MotSum, max_scale), sizeof(word));
	fits = LLVMBuildICmp(b, LLVMIntEQ, header, MotEmitConst(emit, emit->int64, (int64) word), "");
	if (number->ok != NULL)
		fits = LLVMBuildAnd(b, fits, number->ok, "");
	LLVMBuildCondBr(b, fits, there, call);

	LLVMPositionBuilderAtEnd(b, there);
	LLVMBuildCondBr(b, number->isnull ? number->isnull : MotEmitConst(emit, emit->bit, 0), null_block, add);
	LLVMPositionBuilderAtEnd(b, null_block);
	LLVMBuildBr(b, done);

	LLVMPositionBuilderAtEnd(b, add);
	before = MotEmitLoad(emit, wide, state->sum, state->low, 8);
	sum = LLVMBuildAdd(b, before, MotWiden(emit, number), "");
	/* of 38 digits each: that is checked here, and sums of 2^127 are rare */
	fits = LLVMBuildAnd(b, LLVMBuildXor(b, sum, before, ""), LLVMBuildXor(b, sum, MotWiden(emit, number), ""), "");
	fits = LLVMBuildICmp(b, LLVMIntSGE, fits, LLVMConstNull(wide), "");
	there = MotEmitBlock(emit, "fits");
	LLVMBuildCondBr(b, fits, there, call);
	LLVMPositionBuilderAtEnd(b, there);
	MotEmitStore(emit, sum, state->sum, state->low, 8);
	put_at(emit, state->sum, state->count, LLVMBuildAdd(b, get_at(emit, state->sum, state->count),
														MotEmitConst(emit, emit->int64, 1), ""));
	put_at(emit, state->sum, state->scale_count, LLVMBuildAdd(b, get_at(emit, state->sum, state->scale_count),
															  MotEmitConst(emit, emit->int64, 1), ""));
	LLVMBuildBr(b, done);

	LLVMPositionBuilderAtEnd(b, call);
	emit_call(emit, aggregate);
	LLVMBuildBr(b, done);
	LLVMPositionBuilderAtEnd(b, done);
}

/* the first value is taken as it is */
static void
emit_sum_float(MotEmit * emit, const State *state, MotValue arg)
{
	LLVMBuilderRef b = emit->builder;
	LLVMBasicBlockRef there = MotEmitBlock(emit, "there");
	LLVMBasicBlockRef add = MotEmitBlock(emit, "add");
	LLVMBasicBlockRef store = MotEmitBlock(emit, "store");
	LLVMBasicBlockRef done = MotEmitBlock(emit, "done");
	LLVMBasicBlockRef from[2];
	LLVMValueRef sums[2];
	MotValue	args[2];
	MotKind		kind;

	if (arg.kind != MOT_FLOAT && arg.kind != MOT_DOUBLE)
		MotDecline(emit, "an aggregate's argument is not a floating-point number");
	LLVMBuildCondBr(b, MotIsNull(emit, arg), done, there);

	LLVMPositionBuilderAtEnd(b, there);
	arg.isnull = NULL;
	sums[0] = arg.value;
	from[0] = there;
	LLVMBuildCondBr(b, get_null(emit, state), store, add);

	LLVMPositionBuilderAtEnd(b, add);
	args[0] = MotFromDatum(emit, get(emit, state), NULL, arg.kind);
	args[1] = arg;
	sums[1] = MotEmitInline(emit, arg.kind == MOT_FLOAT ? F_FLOAT4PL : F_FLOAT8PL, args, &kind);
	from[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, store);

	LLVMPositionBuilderAtEnd(b, store);
	arg.value = MotEmitPhi(emit, emit->kinds[arg.kind], 2, sums, from);
	put(emit, state, MotToDatum(emit, arg));
	put_null(emit, state, MotEmitConst(emit, emit->bit, 0));
	LLVMBuildBr(b, done);
	LLVMPositionBuilderAtEnd(b, done);
}

/*
 * As the functions larger and smaller: what there was stays only if it is
 * truly larger or smaller (-0 is neither than 0).
 */
static void
emit_extreme(MotEmit * emit, const State *state, MotValue arg, Oid type, bool max)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef state_null = get_null(emit, state);
	LLVMValueRef take;
	MotValue	args[2];
	MotKind		kind;
	Oid			compare;

	switch (arg.kind)
	{
		case MOT_INT16:
			compare = max ? F_INT2GT : F_INT2LT;
			break;
		case MOT_INT32:
			compare = type == OIDOID ? (max ? F_OIDGT : F_OIDLT) : max ? F_INT4GT : F_INT4LT;
			break;
		case MOT_WORD:
			compare = max ? F_INT8GT : F_INT8LT;
			break;
		case MOT_FLOAT:
			compare = max ? F_FLOAT4GT : F_FLOAT4LT;
			break;
		case MOT_DOUBLE:
			compare = max ? F_FLOAT8GT : F_FLOAT8LT;
			break;
		default:
			MotDecline(emit, "an aggregate's argument has another kind of order");
	}
	args[0] = MotFromDatum(emit, get(emit, state), NULL, arg.kind);
	args[1] = MotMake(arg.value, NULL, arg.kind);
	take = LLVMBuildOr(b, state_null, LLVMBuildNot(b, MotEmitInline(emit, compare, args, &kind), ""), "");
	if (arg.isnull)
		take = LLVMBuildAnd(b, take, LLVMBuildNot(b, arg.isnull, ""), "");
	args[1].value = LLVMBuildSelect(b, take, arg.value, args[0].value, "");
	put(emit, state, MotToDatum(emit, args[1]));
	put_null(emit, state, arg.isnull == NULL ? MotEmitConst(emit, emit->bit, 0) :
			 LLVMBuildAnd(b, state_null, arg.isnull, ""));
}

/* "number": of SUM_DECIMAL, or NULL if it is for the caller */
static void
emit_aggregate(MotEmit * emit, const State *state, const MotRowAggregate *aggregate, const MotNumber * number)
{
	Expr	   *expr = aggregate->args != NIL ? linitial(aggregate->args) : NULL;
	MotValue	value;

	if (number != NULL)
	{
		emit_sum_decimal(emit, state, aggregate, number);
		return;
	}
	if (aggregate->kind == MOT_AGGREGATE_CALL || aggregate->kind == MOT_AGGREGATE_SUM_DECIMAL)
	{
		if (aggregate->kind == MOT_AGGREGATE_CALL)
			MotEmitOutputs(emit, aggregate->args, aggregate->first_value);
		emit_call(emit, aggregate);
		return;
	}
	if (expr == NULL)
	{
		if (aggregate->kind != MOT_AGGREGATE_COUNT)
			MotDecline(emit, "an aggregate has no argument");
		emit_count(emit, state, NULL);
		return;
	}
	value = MotEmitExpr(emit, expr);
	switch (aggregate->kind)
	{
		case MOT_AGGREGATE_COUNT:
			emit_count(emit, state, &value);
			break;
		case MOT_AGGREGATE_SUM:
			emit_sum(emit, state, value);
			break;
		case MOT_AGGREGATE_SUM_WIDE:
			emit_sum_wide(emit, state, value);
			break;
		case MOT_AGGREGATE_SUM_FLOAT:
			emit_sum_float(emit, state, value);
			break;
		case MOT_AGGREGATE_AVERAGE:
			emit_average(emit, state, value);
			break;
		default:
			emit_extreme(emit, state, value, exprType((Node *) expr), aggregate->kind == MOT_AGGREGATE_MAX);
			break;
	}
}

/* what they, and keys, use of the row */
List *
MotAggregateExpressions(const MotRowRequest *request)
{
	List	   *result = MotKeyExpressions(request);

	foreach_ptr(const MotRowAggregate, aggregate, request->aggregates)
	{
		result = list_concat(result, aggregate->args);

		if (aggregate->filter)
			result = lappend(result, aggregate->filter);
	}
	return result;
}

void
MotEmitAggregates(MotEmit * emit)
{
	int			n = list_length(emit->request->aggregates);
	MotNumber  *numbers = palloc0(Max(n, 1) * sizeof(MotNumber));
	bool	   *is_number = palloc0(Max(n, 1) * sizeof(bool));

	/* before any branch, for what several of them use (they raise nothing) */
	foreach_ptr(const MotRowAggregate, aggregate, emit->request->aggregates)
	{
		int			i = foreach_current_index(aggregate);

		if (aggregate->kind == MOT_AGGREGATE_SUM_DECIMAL)
			is_number[i] = MotEmitNumber(emit, aggregate->steps, aggregate->nsteps, &numbers[i]);
	}

	foreach_ptr(const MotRowAggregate, aggregate, emit->request->aggregates)
	{
		int			i = foreach_current_index(aggregate);
		State state = state_of(emit, i, aggregate->sum);
		MotNumber  *number = is_number[i] ? &numbers[i] : NULL;

		if (aggregate->filter)
		{
			LLVMBasicBlockRef passes = MotEmitBlock(emit, "filter");
			LLVMBasicBlockRef next = MotEmitBlock(emit, "next");

			LLVMBuildCondBr(emit->builder, MotIsTrue(emit, MotEmitExpr(emit, aggregate->filter)), passes, next);
			LLVMPositionBuilderAtEnd(emit->builder, passes);
			emit_aggregate(emit, &state, aggregate, number);
			LLVMBuildBr(emit->builder, next);
			LLVMPositionBuilderAtEnd(emit->builder, next);
		}
		else
			emit_aggregate(emit, &state, aggregate, number);
	}
}
