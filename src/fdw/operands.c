/*-------------------------------------------------------------------------
 *
 * operands.c
 *	  A foreign scan's conditions, from its plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fdw/fdw.h"

static void init_operand(MotOperand *operand, Expr *expr, Oid valuetype, PlanState *parent);

/*
 * Read a plan's conditions, whose number is at *at, and whose first value is
 * *value; both go on to what follows.
 */
MotKeys *
MotKeysCreate(MotIndex *index, ForeignScan *plan, PlanState *parent, int *at, int *value)
{
	List	   *private = plan->fdw_private;
	int			nconditions = list_nth_int(private, (*at)++);
	int			nvalues = list_nth_int(private, MOT_PLAN_NVALUES) - *value;
	MotKeys    *keys = MotKeysAllocate(index, nconditions, nvalues,
									   list_nth_int(private, MOT_PLAN_BACKWARD) != 0);

	for (int i = 0; i < keys->nconditions; i++)
	{
		MotKeyCondition *condition = &keys->conditions[i];

		condition->kind = list_nth_int(private, (*at)++);
		condition->column = list_nth_int(private, (*at)++);
		condition->strategy = list_nth_int(private, (*at)++);
		condition->noperands = list_nth_int(private, (*at)++);
		condition->first = keys->noperands;
		for (int n = 0; n < condition->noperands; n++)
		{
			init_operand(&keys->operands[keys->noperands],
						 list_nth(plan->fdw_exprs, (*value)++),
						 (Oid) list_nth_int(private, (*at)++), parent);
			keys->noperands++;
		}
	}
	MotKeysComplete(keys);
	return keys;
}

static void
init_operand(MotOperand *operand, Expr *expr, Oid valuetype, PlanState *parent)
{
	operand->valuetype = valuetype;
	operand->held = false;
	operand->expr = NULL;
	if (IsA(expr, Const))
	{
		Const	   *con = (Const *) expr;

		operand->kind = MOT_OPERAND_CONST;
		operand->value = con->constvalue;
		operand->isnull = con->constisnull;
		return;
	}
	if (IsA(expr, Param))
	{
		Param	   *param = (Param *) expr;

		operand->paramid = param->paramid;
		operand->paramtype = param->paramtype;
		if (param->paramkind == PARAM_EXTERN)
		{
			operand->kind = MOT_OPERAND_EXTERN;
			return;
		}
		if (param->paramkind == PARAM_EXEC)
		{
			operand->kind = MOT_OPERAND_EXEC;
			return;
		}
	}
	operand->kind = MOT_OPERAND_EXPR;
	operand->expr = ExecInitExpr(expr, parent);
}
