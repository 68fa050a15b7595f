/*-------------------------------------------------------------------------
 *
 * call.c
 *	  Calls of functions by their C entries.
 *
 * The arguments lie on the stack.  What a function keeps between calls
 * (fn_extra) belongs to the program and lives as long.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "emit.h"
#include "fmgr.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * Functions in SQL have plans that are good for one statement: nobody tells
 * them when tables change that only they use.
 */
bool
MotIsSqlFunction(Oid funcid, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	bool result = !HeapTupleIsValid(tuple) ||
	((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}

static FmgrInfo *
look_up(MotEmit * emit, Oid funcid, Expr *node)
{
	FmgrInfo   *flinfo = MemoryContextAllocZero(emit->cxt, sizeof(FmgrInfo));

	if (MotIsSqlFunction(funcid, NULL))
		MotDecline(emit, "function %s is in SQL", get_func_name(funcid));
	fmgr_info_cxt(funcid, flinfo, emit->cxt);
	if (flinfo->fn_retset)
		MotDecline(emit, "function %s returns a set", get_func_name(funcid));
	if (node != NULL)
		MotWithin(emit->cxt, fmgr_info_set_expr((Node *) copyObject(node), flinfo));
	return flinfo;
}

/*
 * The call itself.  Arguments may be null only if the function is not strict,
 * which the caller has seen to.
 */
static MotValue
emit_call(MotEmit * emit, FmgrInfo *flinfo, Oid type, Oid collation, MotValue * args, int nargs)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef room = MotEmitRoom(emit, SizeForFunctionCallInfo(nargs));
	LLVMTypeRef call_type = LLVMFunctionType(emit->int64, &emit->pointer, 1, false);
	const void *address = (const void *) flinfo->fn_addr;
	char	   *name = get_func_name(flinfo->fn_oid);
	PGFunction	sooner = MotSooner(flinfo->fn_oid);
	LLVMValueRef datum;

	/* functions in libraries can be counted (track_functions) */
	if (flinfo->fn_stats != TRACK_FUNC_ALL)
		address = (const void *) MotCallTracked;
	else if (sooner != NULL)
		address = (const void *) sooner;

#define member(name) offsetof(FunctionCallInfoBaseData, name)
	MotEmitStore(emit, MotEmitConst(emit, emit->int64, (int64) (uintptr_t) flinfo), room, member(flinfo), 8);
	MotEmitStore(emit, MotEmitConst(emit, emit->int64, 0), room, member(context), 8);
	MotEmitStore(emit, MotEmitConst(emit, emit->int64, 0), room, member(resultinfo), 8);
	MotEmitStore(emit, MotEmitConst(emit, emit->int32, collation), room, member(fncollation), 4);
	MotEmitStore(emit, MotEmitConst(emit, emit->int8, 0), room, member(isnull), 1);
	MotEmitStore(emit, MotEmitConst(emit, emit->int16, nargs), room, member(nargs), 2);
	for (int i = 0; i < nargs; i++)
	{
		size_t		arg = member(args) + i * sizeof(NullableDatum);

		MotEmitStore(emit, MotToDatum(emit, args[i]), room, arg + offsetof(NullableDatum, value), 8);
		MotEmitStore(emit, LLVMBuildZExt(b, MotIsNull(emit, args[i]), emit->int8, ""), room,
					 arg + offsetof(NullableDatum, isnull), 1);
	}
	datum = MotEmitCallAddress(emit, address, call_type, &room, 1, name ? name : "function");
	return MotFromDatum(emit, datum, MotEmitFlag(emit, room, member(isnull)), MotKindOf(type));
#undef member
}

/*
 * A function of values that are there; "node" (NULL: none) is what it may ask
 * for its arguments' types.  If it is strict and one of them is
 * null, the result is null.
 */
MotValue
MotEmitCall(MotEmit * emit, Expr *node, Oid funcid, Oid type, Oid collation, MotValue * args, int nargs)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef any_null = NULL;
	LLVMBasicBlockRef blocks[2];
	LLVMBasicBlockRef call;
	LLVMBasicBlockRef joined;
	LLVMValueRef values[2];
	LLVMValueRef nulls[2];
	FmgrInfo   *flinfo = NULL;
	MotValue result;
	bool		inlined = MotCanInline(funcid, collation);
	bool		strict = inlined;

	if (nargs > FUNC_MAX_ARGS)
		MotDecline(emit, "a function has more than %d arguments", FUNC_MAX_ARGS);
	if (!inlined)
	{
		flinfo = look_up(emit, funcid, node);
		strict = flinfo->fn_strict;
	}
	if (strict)
		for (int i = 0; i < nargs; i++)
			any_null = MotEmitOr(emit, any_null, args[i].isnull);

	/* some may run on whatever a null has for a value */
	if (inlined && (any_null == NULL || MotInlineIsSafe(funcid)))
	{
		result.		value = MotEmitInline(emit, funcid, args, &result.kind);
		result.		isnull = any_null;

		return MotConvert(emit, result, MotKindOf(type));
	}
	if (any_null == NULL)
		return emit_call(emit, flinfo, type, collation, args, nargs);

	call = MotEmitBlock(emit, "strict");
	joined = MotEmitBlock(emit, "called");
	blocks[0] = LLVMGetInsertBlock(b);
	MotEmitBranchUnlikely(emit, any_null, joined, call);

	LLVMPositionBuilderAtEnd(b, call);
	if (inlined)
	{
		result.		value = MotEmitInline(emit, funcid, args, &result.kind);
		result.		isnull = NULL;
		result = MotConvert(emit, result, MotKindOf(type));
	}
	else
	{
		MotValue   *known = palloc(sizeof(MotValue) * nargs);

		for (int i = 0; i < nargs; i++)
		{
			known[i] = args[i];
			known[i].isnull = NULL;
		}
		result = emit_call(emit, flinfo, type, collation, known, nargs);
	}
	values[1] = result.value;

	nulls[1] = MotIsNull(emit, result);
	blocks[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	values[0] = LLVMConstNull(emit->kinds[result.kind]);
	nulls[0] = MotEmitConst(emit, emit->bit, 1);
	result.		value = MotEmitPhi(emit, emit->kinds[result.kind], 2, values, blocks);
	result.		isnull = MotEmitPhi(emit, emit->bit, 2, nulls, blocks);
	return result;
}

/* All arguments are evaluated, then the function is called. */
MotValue
MotEmitFunction(MotEmit * emit, Expr *node, Oid funcid, Oid type, Oid collation, List *args)
{
	MotValue   *values = palloc(sizeof(MotValue) * Max(list_length(args), 1));

	foreach_ptr(Expr, arg, args)
		values[foreach_current_index(arg)] = MotEmitExpr(emit, arg);
	return MotEmitCall(emit, node, funcid, type, collation, values, list_length(args));
}
