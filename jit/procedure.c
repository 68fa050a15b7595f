/*-------------------------------------------------------------------------
 *
 * procedure.c
 *	  A whole procedure, of the same expressions as row programs.
 *
 *		int32 f(MotFrame *frame)
 *
 *	entry:		where are the variables, and where to go on?
 *	then:		the steps, one after the other
 *
 * Variables are loaded and stored where the interpreter has them: a step that it does, or an error,
 * finds all of them as they should be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "emit.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "procedure/program.h"

typedef struct Procedure
{
	MotEmit    *emit;
	MotProcedureRequest *request;
	LLVMValueRef frame;
	LLVMValueRef estate;
	LLVMBasicBlockRef *labels;
	LLVMValueRef resume;		/* the switch */
	int			suspensions;
} Procedure;

static LLVMValueRef
base_of(const Procedure *p, MotPlace place)
{
	switch (place.base)
	{
		case MOT_BASE_FRAME:
			return p->frame;
		case MOT_BASE_ESTATE:
			return p->estate;
		case MOT_BASE_VARIABLES:
			return p->emit->variables;
	}
	return NULL;
}

static LLVMValueRef
load_place(const Procedure *p, LLVMTypeRef type, MotPlace place, unsigned align)
{
	return MotEmitLoad(p->emit, type, base_of(p, place), place.offset, align);
}

static void
store_place(const Procedure *p, LLVMValueRef value, MotPlace place, unsigned align)
{
	MotEmitStore(p->emit, value, base_of(p, place), place.offset, align);
}

static LLVMValueRef
is_set(MotEmit * emit, LLVMValueRef flag)
{
	return LLVMBuildICmp(emit->builder, LLVMIntNE, flag, MotEmitConst(emit, emit->int8, 0), "");
}

/* A variable in an expression. */
MotValue
MotEmitVariable(MotEmit * emit, Param *param)
{
	const MotProcedureRequest *request = emit->procedure;
	int			i = param->paramid - 1;
	LLVMValueRef datum;

	if (param->paramkind != PARAM_EXTERN || i < 0 || i >= request->nvariables || request->value_offsets[i] == MOT_NO_VARIABLE)
		MotDecline(emit, "parameter %d is unknown", param->paramid);
	datum = MotEmitLoad(emit, emit->int64, emit->variables, request->value_offsets[i], sizeof(Datum));
	return MotFromDatum(emit, datum, MotEmitFlag(emit, emit->variables, request->isnull_offsets[i]),
						MotKindOf(param->paramtype));
}

/* ------------------------------------------------------------------ steps */

static LLVMValueRef
call(const Procedure *p, const MotDo *step, LLVMTypeRef result)
{
	MotEmit    *emit = p->emit;
	LLVMTypeRef types[2] = {emit->pointer, emit->pointer};
	LLVMValueRef args[2] = {p->frame, MotEmitAddress(emit, step->argument, emit->pointer)};

	return MotEmitCallAddress(emit, step->address, LLVMFunctionType(result, types, 2, false), args, 2, "");
}

/* Go on at "label" if the condition is met, else with the next step. */
static void
branch(const Procedure *p, LLVMValueRef condition, int label)
{
	LLVMBasicBlockRef next = MotEmitBlock(p->emit, "next");

	LLVMBuildCondBr(p->emit->builder, condition, p->labels[label], next);
	LLVMPositionBuilderAtEnd(p->emit->builder, next);
}

/* as CHECK_FOR_INTERRUPTS does it here */
static void
emit_interrupts(const Procedure *p)
{
	MotEmit    *emit = p->emit;
	LLVMBasicBlockRef pending = MotEmitBlock(emit, "interrupts");
	LLVMBasicBlockRef next = MotEmitBlock(emit, "next");
	LLVMValueRef flag;

	StaticAssertStmt(sizeof(InterruptPending) == 4, "a flag of 32 bits");
	flag = MotEmitLoad(emit, emit->int32, MotEmitAddress(emit, (const void *) &InterruptPending, emit->pointer), 0, 4);
	LLVMSetVolatile(flag, true);
	MotEmitBranchUnlikely(emit, LLVMBuildICmp(emit->builder, LLVMIntNE, flag, MotEmitConst(emit, emit->int32, 0), ""),
						  pending, next);
	LLVMPositionBuilderAtEnd(emit->builder, pending);
	MotEmitCallAddress(emit, ProcessInterrupts, LLVMFunctionType(LLVMVoidTypeInContext(emit->context), NULL, 0, false),
					   NULL, 0, "");
	LLVMBuildBr(emit->builder, next);
	LLVMPositionBuilderAtEnd(emit->builder, next);
}

/*
 * Nothing has changed since plans were looked at, or they are right nevertheless; and the
 * expression is not left over from an error.
 */
static void
emit_check(const Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	LLVMBuilderRef b = emit->builder;
	const MotProcedureExpr *expr = &p->request->exprs[step->expr];
	LLVMBasicBlockRef look = MotEmitBlock(emit, "look");
	LLVMBasicBlockRef right = MotEmitBlock(emit, "right");
	LLVMBasicBlockRef ask = MotEmitBlock(emit, "ask");
	LLVMBasicBlockRef next = MotEmitBlock(emit, "next");
	LLVMTypeRef types[2] = {emit->pointer, emit->pointer};
	LLVMValueRef args[2] = {p->frame, MotEmitAddress(emit, expr->mark, emit->pointer)};
	LLVMValueRef changes;
	LLVMValueRef seen;
	LLVMValueRef answer;

	changes = MotEmitLoad(emit, emit->int64, MotEmitAddress(emit, p->request->changes, emit->pointer), 0, 8);
	seen = MotEmitLoad(emit, emit->int64, p->frame, offsetof(MotFrame, seen), 8);
	MotEmitBranchUnlikely(emit, LLVMBuildICmp(b, LLVMIntNE, changes, seen, ""), look, right);
	LLVMPositionBuilderAtEnd(b, look);
	answer = MotEmitCallAddress(emit, (const void *) p->request->recheck,
								LLVMFunctionType(emit->int8, types, 1, false), args, 1, "right");
	LLVMBuildCondBr(b, is_set(emit, answer), right, p->labels[step->label]);

	LLVMPositionBuilderAtEnd(b, right);
	MotEmitBranchUnlikely(emit, MotEmitFlag(emit, MotEmitAddress(emit, expr->busy, emit->pointer), 0), ask, next);
	LLVMPositionBuilderAtEnd(b, ask);
	answer = MotEmitCallAddress(emit, (const void *) p->request->is_busy,
								LLVMFunctionType(emit->int8, types, 2, false), args, 2, "busy");
	LLVMBuildCondBr(b, is_set(emit, answer), p->labels[step->label], next);
	LLVMPositionBuilderAtEnd(b, next);
}

/* May evaluating it need memory?  Only what is a few instructions certainly does not. */
static bool
allocates(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_OpExpr:

			/*
			 * (comparisons of strings, which unpack them, are none without a
			 * collation)
			 */
			if (!MotCanInline(((OpExpr *) node)->opfuncid, InvalidOid))
				return true;
			break;
		case T_FuncExpr:
			if (!MotCanInline(((FuncExpr *) node)->funcid, InvalidOid))
				return true;
			break;
		case T_Param:
		case T_Const:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_CoalesceExpr:
		case T_List:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, allocates, context);
}

/* What it allocates is in the memory for evaluation. */
static MotValue
emit_expr(const Procedure *p, int i)
{
	MotEmit    *emit = p->emit;
	const MotProcedureExpr *expr = &p->request->exprs[i];
	LLVMValueRef current = MotEmitAddress(emit, &CurrentMemoryContext, emit->pointer);
	LLVMValueRef old = NULL;
	LLVMValueRef workspace = NULL;
	bool		needs_memory = allocates((Node *) expr->expr, NULL);
	MotValue	value;

	p->request->declined = i;
	emit->depth = emit->nodes = 0;
	if (needs_memory)
	{
		LLVMValueRef econtext = MotEmitLoad(emit, emit->pointer, p->estate, p->request->econtext_offset, 8);

		workspace = MotEmitLoad(emit, emit->pointer, econtext, offsetof(ExprContext, ecxt_per_tuple_memory), 8);
		old = MotEmitLoad(emit, emit->pointer, current, 0, 8);
		MotEmitStore(emit, workspace, current, 0, 8);
	}
	MotEmitStore(emit, MotEmitAddress(emit, expr->mark, emit->pointer), p->frame, offsetof(MotFrame, evaluating), 8);
	value = MotEmitExpr(emit, expr->expr);
	MotEmitStore(emit, MotEmitAddress(emit, NULL, emit->pointer), p->frame, offsetof(MotFrame, evaluating), 8);
	if (needs_memory)
	{
		MotEmitStore(emit, old, current, 0, 8);
		if (!expr->keep)
			MotEmitCallAddress(emit, MemoryContextReset,
							   LLVMFunctionType(LLVMVoidTypeInContext(emit->context), &emit->pointer, 1, false),
							   &workspace, 1, "");
	}
	p->request->declined = -1;
	return value;
}

static void
emit_value(const Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	MotValue	value = emit_expr(p, step->expr);

	store_place(p, MotToDatum(emit, value), step->value, 8);
	store_place(p, LLVMBuildZExt(emit->builder, MotIsNull(emit, value), emit->int8, ""), step->other, 1);
}

static void
emit_passed(const Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	LLVMValueRef value = load_place(p, emit->int32, step->value, 4);
	LLVMValueRef end = load_place(p, emit->int32, step->other, 4);

	branch(p, LLVMBuildICmp(emit->builder, step->number > 0 ? LLVMIntSGT : LLVMIntSLT, value, end, ""), step->label);
}

static void
emit_advance(const Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	const char *name = step->number > 0 ? "llvm.sadd.with.overflow" : "llvm.ssub.with.overflow";
	LLVMValueRef args[2];
	LLVMValueRef pair;

	args[0] = load_place(p, emit->int32, step->value, 4);
	args[1] = load_place(p, emit->int32, step->other, 4);
	pair = MotEmitIntrinsic(emit, name, emit->int32, args, 2);
	branch(p, LLVMBuildExtractValue(emit->builder, pair, 1, ""), step->label);
	store_place(p, LLVMBuildExtractValue(emit->builder, pair, 0, ""), step->value, 4);
}

static void
emit_leave(Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	LLVMBasicBlockRef next = MotEmitBlock(emit, "resumed");

	if (step->number == MOT_PROCEDURE_SUSPENDED)
	{
		LLVMValueRef here = MotEmitConst(emit, emit->int32, ++p->suspensions);

		MotEmitStore(emit, MotEmitAddress(emit, step->address, emit->pointer), p->frame, offsetof(MotFrame, next), 8);
		MotEmitStore(emit, here, p->frame, offsetof(MotFrame, resume), 4);
		LLVMAddCase(p->resume, here, next);
	}
	LLVMBuildRet(emit->builder, MotEmitConst(emit, emit->int32, step->number));
	LLVMPositionBuilderAtEnd(emit->builder, next);
}

static void
emit_step(Procedure *p, const MotDo *step)
{
	MotEmit    *emit = p->emit;
	LLVMBuilderRef b = emit->builder;

	switch (step->kind)
	{
		case MOT_DO_LABEL:
			LLVMBuildBr(b, p->labels[step->label]);
			LLVMPositionBuilderAtEnd(b, p->labels[step->label]);
			break;
		case MOT_DO_JUMP:
			LLVMBuildBr(b, p->labels[step->label]);
			LLVMPositionBuilderAtEnd(b, MotEmitBlock(emit, "after"));
			break;
		case MOT_DO_STORE:
			store_place(p, MotEmitAddress(emit, step->address, emit->pointer), step->value, 8);
			break;
		case MOT_DO_STORE_PLACE:
			{
				LLVMValueRef offset = MotEmitConst(emit, emit->int64, step->other.offset);

				store_place(p, LLVMBuildGEP2(b, emit->int8, base_of(p, step->other), &offset, 1, ""), step->value, 8);
				break;
			}
		case MOT_DO_STORE_FLAG:
			store_place(p, MotEmitConst(emit, emit->int8, step->number), step->value, 1);
			break;
		case MOT_DO_STORE_WORD:
			store_place(p, MotEmitConst(emit, emit->int32, step->number), step->value, 4);
			break;
		case MOT_DO_INTERRUPTS:
			emit_interrupts(p);
			break;
		case MOT_DO_CHECK:
			emit_check(p, step);
			break;
		case MOT_DO_EVALUATE:
			emit_value(p, step);
			break;
		case MOT_DO_UNLESS:
			MotEmitGoOnIf(emit, MotIsTrue(emit, emit_expr(p, step->expr)), p->labels[step->label]);
			break;
		case MOT_DO_UNLESS_CALL:
			MotEmitGoOnIf(emit, is_set(emit, call(p, step, emit->int8)), p->labels[step->label]);
			break;
		case MOT_DO_UNLESS_NULL:
			MotEmitGoOnIf(emit, MotEmitFlag(emit, base_of(p, step->value), step->value.offset), p->labels[step->label]);
			break;
		case MOT_DO_CALL:
			(void) call(p, step, LLVMVoidTypeInContext(emit->context));
			break;
		case MOT_DO_PASSED:
			emit_passed(p, step);
			break;
		case MOT_DO_ADVANCE:
			emit_advance(p, step);
			break;
		case MOT_DO_COPY_INT:
			store_place(p, LLVMBuildSExt(b, load_place(p, emit->int32, step->other, 4), emit->int64, ""), step->value, 8);
			break;
		case MOT_DO_LEAVE:
			emit_leave(p, step);
			break;
	}
}

void
MotEmitProcedure(MotEmit * emit, const char *name)
{
	MotProcedureRequest *request = emit->procedure;
	Procedure	procedure = {emit, request};
	Procedure  *p = &procedure;
	LLVMBasicBlockRef start;
	LLVMBasicBlockRef dispatch;

	MotEmitTypes(emit);
	emit->function = LLVMAddFunction(emit->module, name, LLVMFunctionType(emit->int32, &emit->pointer, 1, false));
	emit->entry = MotEmitBlock(emit, "entry");
	dispatch = MotEmitBlock(emit, "dispatch");
	start = MotEmitBlock(emit, "start");
	p->frame = LLVMGetParam(emit->function, 0);
	LLVMSetValueName(p->frame, "frame");

	LLVMPositionBuilderAtEnd(emit->builder, emit->entry);
	p->estate = MotEmitLoad(emit, emit->pointer, p->frame, offsetof(MotFrame, estate), 8);
	emit->variables = MotEmitLoad(emit, emit->pointer, p->frame, offsetof(MotFrame, variables), 8);

	LLVMPositionBuilderAtEnd(emit->builder, dispatch);
	p->resume = LLVMBuildSwitch(emit->builder, MotEmitLoad(emit, emit->int32, p->frame, offsetof(MotFrame, resume), 4),
								start, 8);
	p->labels = palloc(sizeof(LLVMBasicBlockRef) * Max(request->nlabels, 1));
	for (int i = 0; i < request->nlabels; i++)
		p->labels[i] = MotEmitBlock(emit, "label");

	LLVMPositionBuilderAtEnd(emit->builder, start);
	for (int i = 0; i < request->ndo; i++)
		emit_step(p, &request->dos[i]);
	LLVMBuildRet(emit->builder, MotEmitConst(emit, emit->int32, MOT_PROCEDURE_ENDED));

	LLVMPositionBuilderAtEnd(emit->builder, emit->entry);
	LLVMBuildBr(emit->builder, dispatch);
}
