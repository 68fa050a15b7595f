/*-------------------------------------------------------------------------
 *
 * program.c
 *	  A whole row function: conditions, then outputs; and the small pieces that
 *	  all code is made of.
 *
 *		bool f(const char *row, unsigned host_bits, MotRowContext *context)
 *
 *	entry:		room on the stack; members of the context
 *	then:		the columns that the conditions need, the conditions one by one,
 *				each leaving for "false" if it is not true
 *	then:		the other columns, the outputs, which group it is of, the
 *				aggregates, or its partner in a join; return true
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "emit.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

void
MotEmitTypes(MotEmit * emit)
{
	LLVMContextRef context = emit->context;

	emit->bit = LLVMInt1TypeInContext(context);
	emit->int8 = LLVMInt8TypeInContext(context);
	emit->int16 = LLVMInt16TypeInContext(context);
	emit->int32 = LLVMInt32TypeInContext(context);
	emit->int64 = LLVMInt64TypeInContext(context);
	emit->pointer = LLVMPointerType(emit->int8, 0);
	emit->kinds[MOT_BOOL] = emit->bit;
	emit->kinds[MOT_INT8] = emit->int8;
	emit->kinds[MOT_INT16] = emit->int16;
	emit->kinds[MOT_INT32] = emit->int32;
	emit->kinds[MOT_WORD] = emit->int64;
	emit->kinds[MOT_FLOAT] = LLVMFloatTypeInContext(context);
	emit->kinds[MOT_DOUBLE] = LLVMDoubleTypeInContext(context);
}

void
MotEmitProgram(MotEmit * emit, const char *name)
{
	const MotRowRequest *request = emit->request;
	LLVMTypeRef args[3];
	LLVMValueRef context;
	LLVMBasicBlockRef start;
	LLVMBasicBlockRef fail = NULL;

	MotEmitTypes(emit);
	args[0] = emit->pointer;
	args[1] = emit->int32;
	args[2] = emit->pointer;
	emit->function = LLVMAddFunction(emit->module, name, LLVMFunctionType(emit->int8, args, 3, false));
	emit->entry = MotEmitBlock(emit, "entry");
	start = MotEmitBlock(emit, "start");

	emit->row = LLVMGetParam(emit->function, 0);
	emit->host_bits = LLVMGetParam(emit->function, 1);
	context = LLVMGetParam(emit->function, 2);
	LLVMSetValueName(emit->row, "row");
	LLVMSetValueName(emit->host_bits, "host_bits");
	LLVMSetValueName(context, "context");

	LLVMPositionBuilderAtEnd(emit->builder, emit->entry);
#define member(name) \
	MotEmitLoad(emit, emit->pointer, context, offsetof(MotRowContext, name), 8)
	emit->params = member(params);
	emit->params_isnull = member(params_isnull);
	emit->values = member(values);
	emit->isnull = member(isnull);
	emit->arguments = context;

	LLVMPositionBuilderAtEnd(emit->builder, start);
	emit->columns = palloc0(sizeof(MotValue) * Max(request->desc->natts, 1));
	MotEmitColumns(emit, request->quals);
	if (request->quals != NIL)
		fail = MotEmitBlock(emit, "fail");
	foreach_ptr(Expr, qual, request->quals)
		MotEmitGoOnIf(emit, MotIsTrue(emit, MotEmitExpr(emit, qual)), fail);

	MotEmitColumns(emit, list_concat(MotAggregateExpressions(request), request->outputs));
	MotEmitOutputs(emit, request->outputs, 0);
	emit->numbers = palloc0(sizeof(MotNumber *) * Max(request->desc->natts, 1));
	if (request->group != NULL || request->aggregates != NIL)
		MotEmitGroup(emit);
	if (request->aggregates != NIL)
		MotEmitAggregates(emit);
	if (request->join_keys != NIL)
		MotEmitPartner(emit);
#undef member
	LLVMBuildRet(emit->builder, MotEmitConst(emit, emit->int8, 1));
	if (fail)
	{
		LLVMPositionBuilderAtEnd(emit->builder, fail);
		LLVMBuildRet(emit->builder, MotEmitConst(emit, emit->int8, 0));
	}

	LLVMPositionBuilderAtEnd(emit->builder, emit->entry);
	LLVMBuildBr(emit->builder, start);
}

/*
 * May an expression's value be an object that functions change in place?  (Of the server's types
 * arrays and rows.)
 */
static bool
may_be_expanded(Node *expr)
{
	Oid			type = exprType(expr);

	if (IsA(expr, Var) || IsA(expr, Const) || get_typlen(type) != -1)
		return false;
	return type >= FirstNormalObjectId || get_typtype(type) != TYPTYPE_BASE || OidIsValid(get_element_type(type));
}

/* Expressions as outputs, from number "first" on. */
void
MotEmitOutputs(MotEmit * emit, List *expressions, int first)
{
	foreach_ptr(Expr, expr, expressions)
	{
		MotValue	output = MotEmitExpr(emit, expr);
		int64		i = first + foreach_current_index(expr);

		/* outputs are used more than once */
		if (may_be_expanded((Node *) expr))
			output = MotReadOnly(emit, output);
		MotEmitStore(emit, MotToDatum(emit, output), emit->values, i * sizeof(Datum), sizeof(Datum));
		MotEmitStore(emit, LLVMBuildZExt(emit->builder, MotIsNull(emit, output), emit->int8, ""), emit->isnull, i, 1);
	}
}

/* Give up, for a reason that the user may read. */
void
MotDecline(MotEmit * emit, const char *format,...)
{
	va_list		args;
	char		reason[256];

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	emit->why_not = pstrdup(reason);
	siglongjmp(emit->declined, 1);
}

/* ----------------------------------------------------------- small pieces */

LLVMValueRef
MotEmitConst(MotEmit * emit, LLVMTypeRef type, int64 value)
{
	return LLVMConstInt(type, (unsigned long long) value, true);
}

/* An address of this process's. */
LLVMValueRef
MotEmitAddress(MotEmit * emit, const void *address, LLVMTypeRef type)
{
	return LLVMConstIntToPtr(MotEmitConst(emit, emit->int64, (int64) (uintptr_t) address), type);
}

static LLVMValueRef
place(MotEmit * emit, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef offset)
{
	LLVMValueRef at = LLVMBuildGEP2(emit->builder, emit->int8, base, &offset, 1, "");

	return LLVMBuildBitCast(emit->builder, at, LLVMPointerType(type, 0), "");
}

/* "offset" counts bytes */
LLVMValueRef
MotEmitLoadAt(MotEmit * emit, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef offset, unsigned align)
{
	LLVMValueRef value = LLVMBuildLoad2(emit->builder, type, place(emit, type, base, offset), "");

	LLVMSetAlignment(value, align);
	return value;
}

LLVMValueRef
MotEmitLoad(MotEmit * emit, LLVMTypeRef type, LLVMValueRef base, int64 offset, unsigned align)
{
	return MotEmitLoadAt(emit, type, base, MotEmitConst(emit, emit->int64, offset), align);
}

LLVMValueRef
MotEmitFlag(MotEmit * emit, LLVMValueRef base, int64 offset)
{
	LLVMValueRef byte = MotEmitLoad(emit, emit->int8, base, offset, 1);

	return LLVMBuildICmp(emit->builder, LLVMIntNE, byte, MotEmitConst(emit, emit->int8, 0), "");
}

void
MotEmitStore(MotEmit * emit, LLVMValueRef value, LLVMValueRef base, int64 offset, unsigned align)
{
	LLVMValueRef at = place(emit, LLVMTypeOf(value), base, MotEmitConst(emit, emit->int64, offset));
	LLVMValueRef store = LLVMBuildStore(emit->builder, value, at);

	LLVMSetAlignment(store, align);
}

/* Room on the stack, as a pointer to bytes. */
LLVMValueRef
MotEmitRoom(MotEmit * emit, size_t size)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(emit->builder);
	LLVMValueRef room;

	LLVMPositionBuilderAtEnd(emit->builder, emit->entry);
	room = LLVMBuildAlloca(emit->builder, LLVMArrayType(emit->int8, size), "");
	LLVMSetAlignment(room, 8);
	room = LLVMBuildBitCast(emit->builder, room, emit->pointer, "");
	LLVMPositionBuilderAtEnd(emit->builder, here);
	return room;
}

LLVMBasicBlockRef
MotEmitBlock(MotEmit * emit, const char *name)
{
	return LLVMAppendBasicBlockInContext(emit->context, emit->function, name);
}

/* Goes on in a new block if the condition is true, else in "otherwise". */
void
MotEmitGoOnIf(MotEmit * emit, LLVMValueRef condition, LLVMBasicBlockRef otherwise)
{
	LLVMBasicBlockRef next = MotEmitBlock(emit, "next");

	LLVMBuildCondBr(emit->builder, condition, next, otherwise);
	LLVMPositionBuilderAtEnd(emit->builder, next);
}

/* What is unlikely goes out of the way. */
void
MotEmitBranchUnlikely(MotEmit * emit, LLVMValueRef condition, LLVMBasicBlockRef then, LLVMBasicBlockRef otherwise)
{
	LLVMValueRef branch = LLVMBuildCondBr(emit->builder, condition, then, otherwise);
	LLVMValueRef weights[3];
	LLVMMetadataRef nodes[3];

	nodes[0] = LLVMMDStringInContext2(emit->context, "branch_weights", strlen("branch_weights"));
	weights[1] = MotEmitConst(emit, emit->int32, 1);
	weights[2] = MotEmitConst(emit, emit->int32, 2000);
	nodes[1] = LLVMValueAsMetadata(weights[1]);
	nodes[2] = LLVMValueAsMetadata(weights[2]);
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(emit->context, "prof", 4),
					LLVMMetadataAsValue(emit->context, LLVMMDNodeInContext2(emit->context, nodes, 3)));
}

LLVMValueRef
MotEmitPhi(MotEmit * emit, LLVMTypeRef type, int n, LLVMValueRef * values, LLVMBasicBlockRef * blocks)
{
	LLVMValueRef phi = LLVMBuildPhi(emit->builder, type, "");

	LLVMAddIncoming(phi, values, blocks, n);
	return phi;
}

LLVMValueRef
MotEmitCallAddress(MotEmit * emit, const void *address, LLVMTypeRef type, LLVMValueRef * args, int n, const char *name)
{
	return LLVMBuildCall2(emit->builder, type,
						  MotEmitAddress(emit, address, LLVMPointerType(type, 0)), args, n, name);
}

/* A function of LLVM's that is one instruction, or a few. */
LLVMValueRef
MotEmitIntrinsic(MotEmit * emit, const char *name, LLVMTypeRef overload, LLVMValueRef * args, int n)
{
	unsigned	id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(emit->module, id, &overload, 1);
	LLVMTypeRef type = LLVMIntrinsicGetType(emit->context, id, &overload, 1);

	return LLVMBuildCall2(emit->builder, type, function, args, n, "");
}

/* of bits of which NULL stands for "false" */
LLVMValueRef
MotEmitOr(MotEmit * emit, LLVMValueRef a, LLVMValueRef b)
{
	if (a == NULL)
		return b;
	if (b == NULL)
		return a;
	return LLVMBuildOr(emit->builder, a, b, "");
}

/* ----------------------------------------------------------------- Datums */

MotKind
MotKindOfLength(int16 typlen, bool typbyval)
{
	if (!typbyval)
		return MOT_WORD;
	switch (typlen)
	{
		case 1:
			return MOT_INT8;
		case 2:
			return MOT_INT16;
		case 4:
			return MOT_INT32;
		default:
			return MOT_WORD;
	}
}

MotKind
MotKindOf(Oid type)
{
	int16		typlen;
	bool		typbyval;

	switch (type)
	{
		case BOOLOID:
			return MOT_BOOL;
		case FLOAT4OID:
			return MOT_FLOAT;
		case FLOAT8OID:
			return MOT_DOUBLE;
		case INT4OID:
			return MOT_INT32;
		case INT8OID:
			return MOT_WORD;
		default:
			get_typlenbyval(type, &typlen, &typbyval);
			return MotKindOfLength(typlen, typbyval);
	}
}

LLVMValueRef
MotIsNull(MotEmit * emit, MotValue value)
{
	return value.isnull ? value.isnull : MotEmitConst(emit, emit->bit, 0);
}

/* as the server's Int32GetDatum and so on make it */
LLVMValueRef
MotToDatum(MotEmit * emit, MotValue value)
{
	LLVMBuilderRef b = emit->builder;

	switch (value.kind)
	{
		case MOT_BOOL:
			return LLVMBuildZExt(b, value.value, emit->int64, "");
		case MOT_INT8:
		case MOT_INT16:
		case MOT_INT32:
			return LLVMBuildSExt(b, value.value, emit->int64, "");
		case MOT_WORD:
			return value.value;
		case MOT_FLOAT:
			return LLVMBuildSExt(b, LLVMBuildBitCast(b, value.value, emit->int32, ""), emit->int64, "");
		case MOT_DOUBLE:
			return LLVMBuildBitCast(b, value.value, emit->int64, "");
	}
	return NULL;
}

MotValue
MotFromDatum(MotEmit * emit, LLVMValueRef datum, LLVMValueRef isnull, MotKind kind)
{
	LLVMBuilderRef b = emit->builder;
	MotValue result = {datum, isnull, kind};

	switch (kind)
	{
		case MOT_BOOL:
			result.		value = LLVMBuildICmp(b, LLVMIntNE, datum, MotEmitConst(emit, emit->int64, 0), "");

			break;
		case MOT_INT8:
		case MOT_INT16:
		case MOT_INT32:
			result.		value = LLVMBuildTrunc(b, datum, emit->kinds[kind], "");

			break;
		case MOT_WORD:
			break;
		case MOT_FLOAT:
			result.		value = LLVMBuildBitCast(b, LLVMBuildTrunc(b, datum, emit->int32, ""), emit->kinds[kind], "");

			break;
		case MOT_DOUBLE:
			result.		value = LLVMBuildBitCast(b, datum, emit->kinds[kind], "");

			break;
	}
	return result;
}

/* the same Datum in other registers: types that are the same in memory */
MotValue
MotConvert(MotEmit * emit, MotValue value, MotKind kind)
{
	if (value.kind == kind)
		return value;
	return MotFromDatum(emit, MotToDatum(emit, value), value.isnull, kind);
}
