/*-------------------------------------------------------------------------
 *
 * expr.c
 *	  Expressions, node by node.
 *
 * What the executor does with a node (execExpr.c, execExprInterp.c) is done
 * here with the same effects: arguments are evaluated in the same order, what
 * the executor does not evaluate is not evaluated, and a strict function is
 * not called with a null.  Where it makes no difference, because nothing of
 * an argument can raise an error, both sides are computed and one is chosen.
 *
 * A value and its null flag travel in registers; branches join in phis.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "emit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* nested deeper, an expression is not compiled: LLVM recurses, too */
#define MAX_DEPTH 200

/* a bound for the time that compiling takes: a node is 20 to 30 microseconds */
#define MAX_NODES 200

/* ... = ANY of more constants is interpreted */
#define MAX_UNROLLED 16

/* --------------------------------------------------------------- joining */

/* Ways that lead to one place, each with a value. */
typedef struct Join
{
	MotEmit    *emit;
	MotKind		kind;
	LLVMBasicBlockRef block;
	int			n;
	int			room;
	bool		nullable;
	LLVMValueRef *values;
	LLVMValueRef *nulls;
	LLVMBasicBlockRef *from;
} Join;

static void
join_begin(Join *join, MotEmit * emit, MotKind kind, int room)
{
	join->emit = emit;
	join->kind = kind;
	join->block = MotEmitBlock(emit, "join");
	join->n = 0;
	join->room = room;
	join->nullable = false;
	join->values = palloc(sizeof(LLVMValueRef) * room);
	join->nulls = palloc(sizeof(LLVMValueRef) * room);
	join->from = palloc(sizeof(LLVMBasicBlockRef) * room);
}

/* the way from here to there begins with this value; a branch is the caller's */
static void
join_note(Join *join, MotValue value)
{
	MotValue	converted = MotConvert(join->emit, value, join->kind);

	Assert(join->n < join->room);
	if (value.isnull)
		join->nullable = true;
	join->values[join->n] = converted.value;
	join->nulls[join->n] = MotIsNull(join->emit, value);
	join->from[join->n++] = LLVMGetInsertBlock(join->emit->builder);
}

static void
join_from_here(Join *join, MotValue value)
{
	join_note(join, value);
	LLVMBuildBr(join->emit->builder, join->block);
}

static MotValue
join_end(Join *join)
{
	MotEmit    *emit = join->emit;
	MotValue result;

	LLVMPositionBuilderAtEnd(emit->builder, join->block);
	result.		kind = join->kind;
	result.		value = MotEmitPhi(emit, emit->kinds[join->kind], join->n, join->values, join->from);
	result.		isnull = join->nullable ?
	MotEmitPhi(emit, emit->bit, join->n, join->nulls, join->from) : NULL;
	return result;
}

static MotValue
null_value(MotEmit * emit, MotKind kind)
{
	return MotMake(LLVMConstNull(emit->kinds[kind]), MotEmitConst(emit, emit->bit, 1), kind);
}

static MotValue
bool_value(MotEmit * emit, bool value)
{
	return MotMake(MotEmitConst(emit, emit->bit, value), NULL, MOT_BOOL);
}

/* true, and not null */
LLVMValueRef
MotIsTrue(MotEmit * emit, MotValue value)
{
	if (value.isnull == NULL)
		return value.value;
	return LLVMBuildAnd(emit->builder, value.value, LLVMBuildNot(emit->builder, value.isnull, ""), "");
}

static LLVMValueRef
is_false(MotEmit * emit, MotValue value)
{
	LLVMValueRef not_value = LLVMBuildNot(emit->builder, value.value, "");

	if (value.isnull == NULL)
		return not_value;
	return LLVMBuildAnd(emit->builder, not_value, LLVMBuildNot(emit->builder, value.isnull, ""), "");
}

static bool
unsafe_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Param:
		case T_Const:
		case T_RelabelType:
		case T_NullTest:
		case T_BooleanTest:
		case T_BoolExpr:
		case T_List:
		case T_CaseTestExpr:
			break;
		case T_OpExpr:
			if (!MotInlineIsSafe(((OpExpr *) node)->opfuncid))
				return true;
			break;
		case T_FuncExpr:
			if (!MotInlineIsSafe(((FuncExpr *) node)->funcid))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, unsafe_walker, context);
}

/*
 * Can it be evaluated although the executor would not, with no effect but a
 * few instructions?
 */
static bool
safe_to_evaluate(Expr *expr)
{
	return !unsafe_walker((Node *) expr, NULL);
}

/* ----------------------------------------------------------------- leaves */

static MotValue
emit_var(MotEmit * emit, Var *var)
{
	MotValue   *column;

	if (var->varlevelsup != 0 || var->varno != emit->request->varno ||
		var->varattno <= 0 || var->varattno > emit->request->desc->natts)
		MotDecline(emit, "it uses a column of something else");
	column = &emit->columns[var->varattno - 1];
	if (column->value == NULL)
		MotDecline(emit, "column %d was not loaded", var->varattno);
	return MotConvert(emit, *column, MotKindOf(var->vartype));
}

static MotValue
emit_const(MotEmit * emit, Const *constant)
{
	MotKind		kind = MotKindOf(constant->consttype);
	Datum		datum;

	if (constant->constisnull)
		return null_value(emit, kind);
	MotWithin(emit->cxt, datum = datumCopy(constant->constvalue, constant->constbyval, constant->constlen));
	return MotFromDatum(emit, MotEmitConst(emit, emit->int64, (int64) datum), NULL, kind);
}

static MotValue
emit_param(MotEmit * emit, Param *param)
{
	if (emit->procedure != NULL)
		return MotEmitVariable(emit, param);
	foreach_node(Param, known, emit->request->params)
	{
		if (known->paramkind == param->paramkind && known->paramid == param->paramid)
		{
			int64		i = foreach_current_index(known);
			LLVMValueRef datum = MotEmitLoad(emit, emit->int64, emit->params, i * sizeof(Datum), sizeof(Datum));

			return MotFromDatum(emit, datum, MotEmitFlag(emit, emit->params_isnull, i), MotKindOf(param->paramtype));
		}
	}
	MotDecline(emit, "parameter %d is unknown", param->paramid);
}

/* ---------------------------------------------------------------- boolean */

/*
 * AND ends at the first false, OR at the first true; a null among what came
 * before makes the result null if nothing ends it.
 */
static MotValue
emit_and_or(MotEmit * emit, BoolExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	bool		is_and = expr->boolop == AND_EXPR;
	int			n = list_length(expr->args);
	LLVMValueRef any_null = NULL;
	Join		join;
	ListCell   *lc;

	join_begin(&join, emit, MOT_BOOL, n + 1);
	foreach(lc, expr->args)
	{
		Expr	   *arg = lfirst(lc);
		bool		last = lnext(expr->args, lc) == NULL;
		MotValue	value = MotEmitExpr(emit, arg);
		LLVMValueRef ends = is_and ? is_false(emit, value) : MotIsTrue(emit, value);
		LLVMBasicBlockRef next;

		if (last)
		{
			/* not ended: the last one, or null if one of the others was */
			if (any_null)
			{
				LLVMValueRef isnull = LLVMBuildOr(b, any_null, MotIsNull(emit, value), "");

				value.isnull = LLVMBuildAnd(b, isnull, LLVMBuildNot(b, ends, ""), "");
			}
			join_from_here(&join, value);
			break;
		}

		any_null = MotEmitOr(emit, any_null, value.isnull);
		next = MotEmitBlock(emit, is_and ? "and" : "or");
		join_note(&join, bool_value(emit, !is_and));
		LLVMBuildCondBr(b, ends, join.block, next);
		LLVMPositionBuilderAtEnd(b, next);
	}
	return join_end(&join);
}

/* The same of two arguments of which the second may be evaluated in any case. */
static MotValue
emit_and_or_select(MotEmit * emit, BoolExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	bool		is_and = expr->boolop == AND_EXPR;
	LLVMValueRef decided = NULL;
	LLVMValueRef any_null = NULL;
	MotValue result = {NULL, NULL, MOT_BOOL};

	foreach_ptr(Expr, arg, expr->args)
	{
		MotValue	value = MotEmitExpr(emit, arg);

		decided = MotEmitOr(emit, decided, is_and ? is_false(emit, value) : MotIsTrue(emit, value));
		any_null = MotEmitOr(emit, any_null, value.isnull);
	}
	result.		value = is_and ? LLVMBuildNot(b, decided, "") : decided;

	if (any_null)
		result.		isnull = LLVMBuildAnd(b, any_null, LLVMBuildNot(b, decided, ""), "");
	return result;
}

static MotValue
emit_bool(MotEmit * emit, BoolExpr *expr)
{
	ListCell   *lc;

	if (expr->boolop == NOT_EXPR)
	{
		MotValue	value = MotEmitExpr(emit, linitial(expr->args));

		value.value = LLVMBuildNot(emit->builder, value.value, "");
		return value;
	}
	for_each_from(lc, expr->args, 1)
	{
		if (!safe_to_evaluate(lfirst(lc)))
			return emit_and_or(emit, expr);
	}
	if (list_length(expr->args) > 4)
		return emit_and_or(emit, expr);
	return emit_and_or_select(emit, expr);
}

static MotValue
emit_null_test(MotEmit * emit, NullTest *test)
{
	LLVMValueRef is;

	if (test->argisrow)
		return MotEmitInterpreted(emit, (Expr *) test);
	is = MotIsNull(emit, MotEmitExpr(emit, test->arg));
	if (test->nulltesttype == IS_NOT_NULL)
		is = LLVMBuildNot(emit->builder, is, "");
	return MotMake(is, NULL, MOT_BOOL);
}

static MotValue
emit_boolean_test(MotEmit * emit, BooleanTest *test)
{
	MotValue	arg = MotEmitExpr(emit, test->arg);
	BoolTestType type = test->booltesttype;
	LLVMValueRef is;

	if (type == IS_TRUE || type == IS_NOT_TRUE)
		is = MotIsTrue(emit, arg);
	else if (type == IS_FALSE || type == IS_NOT_FALSE)
		is = is_false(emit, arg);
	else
		is = MotIsNull(emit, arg);
	if (type == IS_NOT_TRUE || type == IS_NOT_FALSE || type == IS_NOT_UNKNOWN)
		is = LLVMBuildNot(emit->builder, is, "");
	return MotMake(is, NULL, MOT_BOOL);
}

/* ------------------------------------------------------------------ choice */

/*
 * A value that may be an expanded object, and is used more than once: functions must not change it.
 */
MotValue
MotReadOnly(MotEmit * emit, MotValue value)
{
	LLVMTypeRef type = LLVMFunctionType(emit->int64, &emit->int64, 1, false);
	LLVMBasicBlockRef object = MotEmitBlock(emit, "object");
	Join		join;

	join_begin(&join, emit, MOT_WORD, 2);
	join_note(&join, value);
	LLVMBuildCondBr(emit->builder, MotIsNull(emit, value), join.block, object);
	LLVMPositionBuilderAtEnd(emit->builder, object);
	value.value = MotEmitCallAddress(emit, MakeExpandedObjectReadOnlyInternal, type, &value.value, 1, "read_only");
	value.isnull = NULL;
	join_from_here(&join, value);
	return join_end(&join);
}

static MotValue
emit_case(MotEmit * emit, CaseExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = MotKindOf(expr->casetype);
	const		MotValue *outer = emit->case_value;
	MotValue	tested;
	Join		join;

	if (expr->arg)
	{
		/* a CaseTestExpr means this CASE only inside its WHENs */
		tested = MotEmitExpr(emit, expr->arg);
		if (!IsA(expr->arg, Var) && !IsA(expr->arg, Const) &&
			get_typlen(exprType((Node *) expr->arg)) == -1)
			tested = MotReadOnly(emit, tested);
	}

	join_begin(&join, emit, kind, list_length(expr->args) + 1);
	foreach_node(CaseWhen, when, expr->args)
	{
		LLVMBasicBlockRef then = MotEmitBlock(emit, "then");
		LLVMBasicBlockRef otherwise = MotEmitBlock(emit, "else");
		MotValue	condition;

		if (expr->arg)
			emit->case_value = &tested;
		condition = MotEmitExpr(emit, when->expr);
		emit->case_value = outer;

		LLVMBuildCondBr(b, MotIsTrue(emit, condition), then, otherwise);
		LLVMPositionBuilderAtEnd(b, then);
		join_from_here(&join, MotEmitExpr(emit, when->result));
		LLVMPositionBuilderAtEnd(b, otherwise);
	}
	join_from_here(&join, expr->defresult ? MotEmitExpr(emit, expr->defresult) : null_value(emit, kind));
	return join_end(&join);
}

static MotValue
emit_coalesce(MotEmit * emit, CoalesceExpr *expr)
{
	MotKind		kind = MotKindOf(expr->coalescetype);
	ListCell   *lc;
	Join		join;

	join_begin(&join, emit, kind, list_length(expr->args));
	foreach(lc, expr->args)
	{
		MotValue	value = MotConvert(emit, MotEmitExpr(emit, lfirst(lc)), kind);
		LLVMBasicBlockRef next;

		if (value.isnull == NULL || lnext(expr->args, lc) == NULL)
		{
			join_from_here(&join, value);
			break;
		}
		next = MotEmitBlock(emit, "coalesce");
		join_note(&join, MotMake(value.value, NULL, kind));
		LLVMBuildCondBr(emit->builder, value.isnull, next, join.block);
		LLVMPositionBuilderAtEnd(emit->builder, next);
	}
	return join_end(&join);
}

/* GREATEST and LEAST: nulls don't count; the first one of equals wins */
static MotValue
emit_min_max(MotEmit * emit, MinMaxExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = MotKindOf(expr->minmaxtype);
	TypeCacheEntry *type = lookup_type_cache(expr->minmaxtype, TYPECACHE_CMP_PROC);
	int			n = list_length(expr->args);
	MotValue   *values = palloc(sizeof(MotValue) * n);
	MotValue	best;

	if (!OidIsValid(type->cmp_proc))
		MotDecline(emit, "a type has no order");

	/* all are evaluated before the first comparison */
	foreach_ptr(Expr, arg, expr->args)
		values[foreach_current_index(arg)] = MotConvert(emit, MotEmitExpr(emit, arg), kind);

	best = values[0];
	for (int i = 1; i < n; i++)
	{
		LLVMBasicBlockRef have = MotEmitBlock(emit, "value");
		LLVMBasicBlockRef both = MotEmitBlock(emit, "both");
		LLVMBasicBlockRef take = MotEmitBlock(emit, "take");
		MotValue	args[2];
		MotValue	order;
		LLVMValueRef better;
		Join		join;

		join_begin(&join, emit, kind, 3);
		join_note(&join, best);
		LLVMBuildCondBr(b, MotIsNull(emit, values[i]), join.block, have);

		LLVMPositionBuilderAtEnd(b, have);
		LLVMBuildCondBr(b, MotIsNull(emit, best), take, both);

		LLVMPositionBuilderAtEnd(b, both);
		args[0] = MotMake(best.value, NULL, kind);
		args[1] = MotMake(values[i].value, NULL, kind);
		order = MotEmitCall(emit, (Expr *) expr, type->cmp_proc, INT4OID, expr->inputcollid, args, 2);
		better = LLVMBuildICmp(b, expr->op == IS_LEAST ? LLVMIntSGT : LLVMIntSLT, order.value,
							   MotEmitConst(emit, emit->int32, 0), "");
		/* a comparison that gives null is none */
		if (order.isnull)
			better = LLVMBuildAnd(b, better, LLVMBuildNot(b, order.isnull, ""), "");
		join_note(&join, MotMake(best.value, NULL, kind));
		LLVMBuildCondBr(b, better, take, join.block);

		LLVMPositionBuilderAtEnd(b, take);
		join_from_here(&join, MotMake(values[i].value, NULL, kind));
		best = join_end(&join);
	}
	return best;
}

/* ------------------------------------------------------------- comparisons */

/* IS DISTINCT FROM: as "=", not called with nulls, which are values to it */
static MotValue
emit_distinct(MotEmit * emit, DistinctExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	LLVMBasicBlockRef nulls = MotEmitBlock(emit, "nulls");
	LLVMBasicBlockRef both = MotEmitBlock(emit, "both");
	MotValue	args[2];
	MotValue result;
	LLVMValueRef null[2];
	Join		join;

	args[0] = MotEmitExpr(emit, linitial(expr->args));
	args[1] = MotEmitExpr(emit, lsecond(expr->args));
	null[0] = MotIsNull(emit, args[0]);
	null[1] = MotIsNull(emit, args[1]);

	join_begin(&join, emit, MOT_BOOL, 2);
	LLVMBuildCondBr(b, LLVMBuildOr(b, null[0], null[1], ""), nulls, both);
	LLVMPositionBuilderAtEnd(b, nulls);
	join_from_here(&join, MotMake(LLVMBuildXor(b, null[0], null[1], ""), NULL, MOT_BOOL));

	LLVMPositionBuilderAtEnd(b, both);
	args[0].isnull = NULL;
	args[1].isnull = NULL;
	result = MotEmitCall(emit, (Expr *) expr, expr->opfuncid, BOOLOID, expr->inputcollid, args, 2);
	result.		value = LLVMBuildNot(b, result.value, "");

	join_from_here(&join, result);
	return join_end(&join);
}

/* the first one, or null if they are equal */
static MotValue
emit_nullif(MotEmit * emit, NullIfExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = MotKindOf(expr->opresulttype);
	LLVMBasicBlockRef both = MotEmitBlock(emit, "both");
	LLVMBasicBlockRef equal = MotEmitBlock(emit, "equal");
	MotValue	args[2];
	MotValue	known[2];
	MotValue result;
	Join		join;

	args[0] = MotEmitExpr(emit, linitial(expr->args));
	args[1] = MotEmitExpr(emit, lsecond(expr->args));
	join_begin(&join, emit, kind, 3);
	join_note(&join, args[0]);
	LLVMBuildCondBr(b, LLVMBuildOr(b, MotIsNull(emit, args[0]), MotIsNull(emit, args[1]), ""), join.block, both);

	LLVMPositionBuilderAtEnd(b, both);
	for (int i = 0; i < 2; i++)
	{
		known[i] = args[i];
		known[i].isnull = NULL;
	}
	result = MotEmitCall(emit, (Expr *) expr, expr->opfuncid, BOOLOID, expr->inputcollid, known, 2);

	join_note(&join, known[0]);
	LLVMBuildCondBr(b, MotIsTrue(emit, result), equal, join.block);

	LLVMPositionBuilderAtEnd(b, equal);
	join_from_here(&join, null_value(emit, kind));
	return join_end(&join);
}

/* = ANY and <> ALL of a few constants: one after the other, until it is decided */
static MotValue
emit_array_op(MotEmit * emit, ScalarArrayOpExpr *expr)
{
	LLVMBuilderRef b = emit->builder;
	Const	   *constant = lsecond(expr->args);
	ArrayType  *array;
	Oid			element;
	MotKind		kind;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *datums;
	bool	   *nulls;
	int			n;
	bool		some_null = false;
	LLVMValueRef unknown = NULL;
	LLVMBasicBlockRef have;
	MotValue	scalar;
	MotValue	args[2];
	Join		join;

	if (!IsA(constant, Const) || !func_strict(expr->opfuncid))
		return MotEmitInterpreted(emit, (Expr *) expr);
	if (!constant->constisnull)
	{
		array = DatumGetArrayTypeP(constant->constvalue);
		if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > MAX_UNROLLED)
			return MotEmitInterpreted(emit, (Expr *) expr);
	}

	scalar = MotEmitExpr(emit, linitial(expr->args));
	if (constant->constisnull)
		return null_value(emit, MOT_BOOL);
	array = DatumGetArrayTypeP(constant->constvalue);
	element = ARR_ELEMTYPE(array);
	kind = MotKindOf(element);
	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	deconstruct_array(array, element, typlen, typbyval, typalign, &datums, &nulls, &n);
	if (n == 0)
		return bool_value(emit, !expr->useOr);

	join_begin(&join, emit, MOT_BOOL, n + 2);
	have = MotEmitBlock(emit, "scalar");
	join_note(&join, null_value(emit, MOT_BOOL));
	LLVMBuildCondBr(b, MotIsNull(emit, scalar), join.block, have);
	LLVMPositionBuilderAtEnd(b, have);

	args[0] = scalar;
	args[0].isnull = NULL;
	for (int i = 0; i < n; i++)
	{
		LLVMBasicBlockRef next;
		MotValue result;
		Datum		datum;

		if (nulls[i])
		{
			some_null = true;
			continue;
		}
		MotWithin(emit->cxt, datum = datumCopy(datums[i], typbyval, typlen));
		args[1] = MotFromDatum(emit, MotEmitConst(emit, emit->int64, (int64) datum), NULL, kind);
		result = MotEmitCall(emit, (Expr *) expr, expr->opfuncid, BOOLOID, expr->inputcollid, args, 2);

		unknown = MotEmitOr(emit, unknown, result.isnull);
		next = MotEmitBlock(emit, "element");
		join_note(&join, bool_value(emit, expr->useOr));
		LLVMBuildCondBr(b, expr->useOr ? MotIsTrue(emit, result) : is_false(emit, result), join.block, next);
		LLVMPositionBuilderAtEnd(b, next);
	}
	if (some_null)
		unknown = MotEmitConst(emit, emit->bit, 1);
	join_from_here(&join, MotMake(MotEmitConst(emit, emit->bit, !expr->useOr), unknown, MOT_BOOL));
	return join_end(&join);
}

/* A conversion by way of text: the output function, then the other type's input function. */
static MotValue
emit_via_io(MotEmit * emit, CoerceViaIO *expr)
{
	MotValue	args[3];
	Oid			out_function;
	Oid			in_function;
	Oid			in_param;
	bool		varlena;

	getTypeOutputInfo(exprType((Node *) expr->arg), &out_function, &varlena);
	getTypeInputInfo(expr->resulttype, &in_function, &in_param);
	if (!func_strict(out_function))
		MotDecline(emit, "an output function is not strict");
	args[0] = MotEmitExpr(emit, expr->arg);
	args[0] = MotEmitCall(emit, NULL, out_function, CSTRINGOID, InvalidOid, args, 1);
	args[1] = MotMake(MotEmitConst(emit, emit->int64, in_param), NULL, MOT_WORD);
	args[2] = MotMake(MotEmitConst(emit, emit->int64, -1), NULL, MOT_WORD);
	return MotEmitCall(emit, NULL, in_function, expr->resulttype, InvalidOid, args, 3);
}

/*
 * An element of an array, which is null if a subscript is, or leads out of it.  Subscripts are not
 * evaluated if there is no array.
 */
static MotValue
emit_element(MotEmit * emit, SubscriptingRef *expr)
{
	LLVMBuilderRef b = emit->builder;
	MotKind		kind = MotKindOf(expr->refrestype);
	int			n = list_length(expr->refupperindexpr);
	LLVMTypeRef types[4] = {emit->int64, emit->pointer, emit->pointer, emit->pointer};
	LLVMBasicBlockRef some;
	LLVMBasicBlockRef inside;
	LLVMValueRef any_null = NULL;
	LLVMValueRef args[4];
	LLVMValueRef datum;
	MotValue	array;
	MotSubscripts *subscripts;
	Join		join;

	/* (jsonb is subscripted, too, and has no type of elements) */
	if (expr->refassgnexpr != NULL || expr->reflowerindexpr != NIL || n > MAXDIM || !OidIsValid(expr->refelemtype) ||
		get_element_type(expr->refcontainertype) != expr->refelemtype || get_typlen(expr->refcontainertype) != -1)
		return MotEmitInterpreted(emit, (Expr *) expr);
	some = MotEmitBlock(emit, "array");
	inside = MotEmitBlock(emit, "subscripts");
	subscripts = MemoryContextAllocZero(emit->cxt, sizeof(MotSubscripts));
	subscripts->n = n;
	get_typlenbyvalalign(expr->refelemtype, &subscripts->typlen, &subscripts->typbyval, &subscripts->typalign);

	join_begin(&join, emit, kind, 3);
	array = MotEmitExpr(emit, expr->refexpr);
	join_note(&join, null_value(emit, kind));
	LLVMBuildCondBr(b, MotIsNull(emit, array), join.block, some);

	LLVMPositionBuilderAtEnd(b, some);
	args[1] = MotEmitRoom(emit, n * sizeof(int));
	foreach_ptr(Expr, subscript, expr->refupperindexpr)
	{
		MotValue	value = MotConvert(emit, MotEmitExpr(emit, subscript), MOT_INT32);

		any_null = MotEmitOr(emit, any_null, value.isnull);
		MotEmitStore(emit, value.value, args[1],
					 foreach_current_index(subscript) * sizeof(int), sizeof(int));
	}
	join_note(&join, null_value(emit, kind));
	LLVMBuildCondBr(b, any_null != NULL ? any_null : MotEmitConst(emit, emit->bit, 0), join.block, inside);

	LLVMPositionBuilderAtEnd(b, inside);
	args[0] = MotToDatum(emit, array);
	args[2] = MotEmitAddress(emit, subscripts, emit->pointer);
	args[3] = MotEmitRoom(emit, sizeof(bool));
	datum = MotEmitCallAddress(emit, MotArrayElement, LLVMFunctionType(emit->int64, types, 4, false), args, 4, "element");
	join_from_here(&join, MotFromDatum(emit, datum, MotEmitFlag(emit, args[3], 0), kind));
	return join_end(&join);
}

/* --------------------------------------------------------------- all nodes */

static MotValue
emit_node(MotEmit * emit, Expr *expr)
{
	switch (nodeTag(expr))
	{
		case T_OpExpr:
			{
				OpExpr	   *op = (OpExpr *) expr;

				return MotEmitFunction(emit, expr, op->opfuncid, op->opresulttype, op->inputcollid, op->args);
			}
		case T_FuncExpr:
			{
				FuncExpr   *func = (FuncExpr *) expr;

				if (func->funcretset)
					MotDecline(emit, "it calls a function that returns a set");
				return MotEmitFunction(emit, expr, func->funcid, func->funcresulttype, func->inputcollid, func->args);
			}
		case T_BoolExpr:
			return emit_bool(emit, (BoolExpr *) expr);
		case T_NullTest:
			return emit_null_test(emit, (NullTest *) expr);
		case T_BooleanTest:
			return emit_boolean_test(emit, (BooleanTest *) expr);
		case T_CaseExpr:
			return emit_case(emit, (CaseExpr *) expr);
		case T_CoalesceExpr:
			return emit_coalesce(emit, (CoalesceExpr *) expr);
		case T_MinMaxExpr:
			return emit_min_max(emit, (MinMaxExpr *) expr);
		case T_DistinctExpr:
			return emit_distinct(emit, (DistinctExpr *) expr);
		case T_NullIfExpr:
			return emit_nullif(emit, (NullIfExpr *) expr);
		case T_ScalarArrayOpExpr:
			return emit_array_op(emit, (ScalarArrayOpExpr *) expr);
		case T_CoerceViaIO:
			return emit_via_io(emit, (CoerceViaIO *) expr);
		case T_SubscriptingRef:
			return emit_element(emit, (SubscriptingRef *) expr);
		case T_RelabelType:
			{
				RelabelType *relabel = (RelabelType *) expr;

				return MotConvert(emit, MotEmitExpr(emit, relabel->arg), MotKindOf(relabel->resulttype));
			}
		case T_Var:
			return emit_var(emit, (Var *) expr);
		case T_Const:
			return emit_const(emit, (Const *) expr);
		case T_Param:
			return emit_param(emit, (Param *) expr);
		case T_CaseTestExpr:
			if (emit->case_value == NULL)
				MotDecline(emit, "a tested value belongs to no CASE");
			return MotConvert(emit, *emit->case_value, MotKindOf(((CaseTestExpr *) expr)->typeId));
		case T_ArrayExpr:
		case T_ArrayCoerceExpr:
		case T_RowExpr:
		case T_RowCompareExpr:
		case T_FieldSelect:
		case T_CoerceToDomain:
		case T_SQLValueFunction:
			return MotEmitInterpreted(emit, expr);
		default:
			MotDecline(emit, "it has an expression of a kind that is not compiled (%d)", (int) nodeTag(expr));
	}
}

MotValue
MotEmitExpr(MotEmit * emit, Expr *expr)
{
	MotValue	value;

	check_stack_depth();
	if (++emit->depth > MAX_DEPTH)
		MotDecline(emit, "an expression is nested deeper than %d", MAX_DEPTH);
	if (++emit->nodes > MAX_NODES)
		MotDecline(emit, "its expressions have more than %d nodes", MAX_NODES);
	value = emit_node(emit, expr);
	emit->depth--;
	return value;
}
