/*-------------------------------------------------------------------------
 *
 * interpret.c
 *	  Parts of expressions that are left to the executor's interpreter.
 *
 * Arrays, rows, domains and the like are not worth code of their own.  Such a
 * part is prepared once as an expression of the executor's whose columns and
 * parameters have become parameters of ours; the program stores their values
 * and has it evaluated.
 *
 * A prepared expression cannot be evaluated while it is being evaluated.  It
 * never is: a statement that is entered again while it runs is left to the
 * executor.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "emit.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/params.h"

typedef struct Interpreted
{
	ExprState  *state;
	ExprContext *econtext;
	ParamListInfo params;
} Interpreted;

typedef struct Leaves
{
	MotEmit    *emit;
	List	   *leaves;			/* Vars and Params */
} Leaves;

/* Columns and parameters become parameters 1 .. n. */
static Node *
replace_leaves(Node *node, void *context)
{
	Leaves	   *l = context;

	if (node == NULL)
		return NULL;
	if (check_functions_in_node(node, MotIsSqlFunction, NULL))
		MotDecline(l->emit, "it calls a function in SQL");
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Param:
			{
				int			n = 0;
				ListCell   *lc;
				Param	   *param;

				foreach(lc, l->leaves)
				{
					n++;
					if (equal(lfirst(lc), node))
						break;
				}
				if (lc == NULL)
				{
					l->leaves = lappend(l->leaves, node);
					n = list_length(l->leaves);
				}
				param = makeNode(Param);
				param->paramkind = PARAM_EXTERN;
				param->paramid = n;
				param->paramtype = exprType(node);
				param->paramtypmod = exprTypmod(node);
				param->paramcollid = exprCollation(node);
				param->location = -1;
				return (Node *) param;
			}
		case T_CaseTestExpr:
			if (l->emit->case_value != NULL)
				MotDecline(l->emit, "the value that a CASE tests is in an array or row");
			break;
		case T_SubPlan:
		case T_AlternativeSubPlan:
		case T_SubLink:
		case T_Aggref:
		case T_WindowFunc:
		case T_GroupingFunc:
		case T_CurrentOfExpr:
			MotDecline(l->emit, "it has a sub-plan, or what belongs to a plan node");
		default:
			break;
	}
	return expression_tree_mutator(node, replace_leaves, context);
}

static Datum
interpret(Interpreted *part, bool *isnull)
{
	part->econtext->ecxt_per_tuple_memory = CurrentMemoryContext;
	return ExecEvalExpr(part->state, part->econtext, isnull);
}

MotValue
MotEmitInterpreted(MotEmit * emit, Expr *expr)
{
	LLVMBuilderRef b = emit->builder;
	Leaves		l = {emit, NIL};
	Node	   *node = replace_leaves((Node *) expr, &l);
	MemoryContext old = MemoryContextSwitchTo(emit->cxt);
	Interpreted *part = palloc0(sizeof(Interpreted));
	LLVMTypeRef types[2] = {emit->pointer, emit->pointer};
	LLVMValueRef args[2];
	LLVMValueRef datum;

	part->params = makeParamList(list_length(l.leaves));
	part->econtext = makeNode(ExprContext);
	part->econtext->ecxt_per_query_memory = emit->cxt;
	part->econtext->ecxt_per_tuple_memory = emit->cxt;
	part->econtext->ecxt_param_list_info = part->params;
	part->econtext->caseValue_isNull = true;
	part->econtext->domainValue_isNull = true;
	part->state = ExecInitExpr(copyObject((Expr *) node), NULL);
	MemoryContextSwitchTo(old);

	foreach_ptr(Expr, leaf, l.leaves)
	{
		ParamExternData *param = &part->params->params[foreach_current_index(leaf)];
		MotValue	value = MotEmitExpr(emit, leaf);
		LLVMValueRef place = MotEmitAddress(emit, param, emit->pointer);

		param->ptype = exprType((Node *) leaf);
		param->pflags = 0;
		MotEmitStore(emit, MotToDatum(emit, value), place, offsetof(ParamExternData, value), 8);
		MotEmitStore(emit, LLVMBuildZExt(b, MotIsNull(emit, value), emit->int8, ""), place,
					 offsetof(ParamExternData, isnull), 1);
	}

	args[0] = MotEmitAddress(emit, part, emit->pointer);
	args[1] = MotEmitRoom(emit, sizeof(bool));
	datum = MotEmitCallAddress(emit, interpret, LLVMFunctionType(emit->int64, types, 2, false), args, 2,
							   "interpreted");
	return MotFromDatum(emit, datum, MotEmitFlag(emit, args[1], 0), MotKindOf(exprType((Node *) expr)));
}
