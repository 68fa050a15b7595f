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
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

/* the state of one aggregate */
typedef struct State
{
	LLVMValueRef base;
	int64		offset;
} State;

#define OFFSET(member) (state->offset + (int64) offsetof(MotRowState, member))

static LLVMValueRef
get(MotEmit * emit, const State *state, int64 offset)
{
	return MotEmitLoad(emit, emit->int64, state->base, MotEmitConst(emit, emit->int64, offset), 8);
}

static void
put(MotEmit * emit, const State *state, int64 offset, LLVMValueRef value)
{
	MotEmitStore(emit, value, state->base, MotEmitConst(emit, emit->int64, offset), 8);
}

static LLVMValueRef
get_null(MotEmit * emit, const State *state)
{
	LLVMValueRef byte = MotEmitLoad(emit, emit->int8, state->base,
									MotEmitConst(emit, emit->int64, OFFSET(isnull)), 1);

	return LLVMBuildICmp(emit->builder, LLVMIntNE, byte, MotEmitConst(emit, emit->int8, 0), "");
}

static void
put_null(MotEmit * emit, const State *state, LLVMValueRef isnull)
{
	MotEmitStore(emit, LLVMBuildZExt(emit->builder, isnull, emit->int8, ""), state->base,
				 MotEmitConst(emit, emit->int64, OFFSET(isnull)), 1);
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

	put(emit, state, OFFSET(value), LLVMBuildAdd(emit->builder, get(emit, state, OFFSET(value)), by, ""));
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
	put(emit, state, OFFSET(value), LLVMBuildAdd(b, get(emit, state, OFFSET(value)), number_or_zero(emit, arg), ""));
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
	low = LLVMBuildAdd(b, get(emit, state, OFFSET(value)), number, "");
	carry = LLVMBuildZExt(b, LLVMBuildICmp(b, LLVMIntULT, low, number, ""), emit->int64, "");
	high = LLVMBuildAShr(b, number, MotEmitConst(emit, emit->int64, 63), "");
	high = LLVMBuildAdd(b, LLVMBuildAdd(b, get(emit, state, OFFSET(high)), high, ""), carry, "");
	put(emit, state, OFFSET(value), low);
	put(emit, state, OFFSET(high), high);
	put(emit, state, OFFSET(count),
		LLVMBuildAdd(b, get(emit, state, OFFSET(count)), one_if_there(emit, arg), ""));
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
	args[0] = MotFromDatum(emit, get(emit, state, OFFSET(value)), NULL, arg.kind);
	args[1] = arg;
	sums[1] = MotEmitInline(emit, arg.kind == MOT_FLOAT ? F_FLOAT4PL : F_FLOAT8PL, args, &kind);
	from[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, store);

	LLVMPositionBuilderAtEnd(b, store);
	arg.value = MotEmitPhi(emit, emit->kinds[arg.kind], 2, sums, from);
	put(emit, state, OFFSET(value), MotToDatum(emit, arg));
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
	args[0] = MotFromDatum(emit, get(emit, state, OFFSET(value)), NULL, arg.kind);
	args[1] = MotMake(arg.value, NULL, arg.kind);
	take = LLVMBuildOr(b, state_null, LLVMBuildNot(b, MotEmitInline(emit, compare, args, &kind), ""), "");
	if (arg.isnull)
		take = LLVMBuildAnd(b, take, LLVMBuildNot(b, arg.isnull, ""), "");
	args[1].value = LLVMBuildSelect(b, take, arg.value, args[0].value, "");
	put(emit, state, OFFSET(value), MotToDatum(emit, args[1]));
	put_null(emit, state, arg.isnull == NULL ? MotEmitConst(emit, emit->bit, 0) :
			 LLVMBuildAnd(b, state_null, arg.isnull, ""));
}

static void
emit_aggregate(MotEmit * emit, const State *state, const MotRowAggregate *aggregate)
{
	Expr	   *expr = aggregate->args != NIL ? linitial(aggregate->args) : NULL;
	LLVMTypeRef type;
	LLVMValueRef arg;
	MotValue	value;

	if (aggregate->kind == MOT_AGGREGATE_CALL)
	{
		MotEmitOutputs(emit, aggregate->args, aggregate->first_value);
		type = LLVMFunctionType(LLVMVoidTypeInContext(emit->context), &emit->pointer, 1, false);
		arg = MotEmitAddress(emit, aggregate->arg, emit->pointer);
		MotEmitCallAddress(emit, aggregate->call, type, &arg, 1, "");
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
		default:
			emit_extreme(emit, state, value, exprType((Node *) expr), aggregate->kind == MOT_AGGREGATE_MAX);
			break;
	}
}

/* what they use of the row */
List *
MotAggregateExpressions(const MotRowRequest *request)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, request->aggregates)
	{
		const MotRowAggregate *aggregate = lfirst(lc);

		result = list_concat(result, aggregate->args);

		if (aggregate->filter)
			result = lappend(result, aggregate->filter);
	}
	return result;
}

void
MotEmitAggregates(MotEmit * emit)
{
	ListCell   *lc;

	foreach(lc, emit->request->aggregates)
	{
		const MotRowAggregate *aggregate = lfirst(lc);
		State state = {emit->states, foreach_current_index(lc) * (int64) sizeof(MotRowState)};

		if (aggregate->filter)
		{
			LLVMBasicBlockRef passes = MotEmitBlock(emit, "filter");
			LLVMBasicBlockRef next = MotEmitBlock(emit, "next");

			LLVMBuildCondBr(emit->builder, MotIsTrue(emit, MotEmitExpr(emit, aggregate->filter)), passes, next);
			LLVMPositionBuilderAtEnd(emit->builder, passes);
			emit_aggregate(emit, &state, aggregate);
			LLVMBuildBr(emit->builder, next);
			LLVMPositionBuilderAtEnd(emit->builder, next);
		}
		else
			emit_aggregate(emit, &state, aggregate);
	}
}
