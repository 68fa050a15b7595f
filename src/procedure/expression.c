/*-------------------------------------------------------------------------
 *
 * expression.c
 *	  Which of a procedure's expressions may be machine code.
 *
 * The interpreter evaluates a "simple" expression, one of nothing but variables, constants and
 * functions, without a snapshot of its own if it has only immutable functions.  Of these, machine
 * code does the ones that are closed: whose functions are the server's own, on the server's own
 * scalar types, so that nothing they call can run statements, change settings, or come back to this
 * procedure.  All others go through the interpreter, which has ways of its own for them (snapshots,
 * recursion, arrays that are changed in place).
 *
 * An expression has a plan, which is made when the interpreter comes to it first: that
 * can be an error, which nobody may see who does not come there, so we never make one.  Code is
 * right for as long as that plan is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "procedure/procedure.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/syscache.h"

/* more than this in an expression, and the compiler would decline */
#define MAX_NODES 200

typedef struct Look
{
	PLpgSQL_execstate *estate;
	int			nodes;
	const char *why_not;
} Look;

/*
 * The server's own scalar types: no arrays, rows, domains, or types that functions can keep
 * unpacked.
 */
static bool
is_plain_type(Oid type)
{
	return type < FirstNormalObjectId && get_typtype(type) == TYPTYPE_BASE && !OidIsValid(get_element_type(type));
}

bool
MotVariableIsPlain(const PLpgSQL_datum *datum)
{
	const PLpgSQL_var *var = (const PLpgSQL_var *) datum;

	return datum->dtype == PLPGSQL_DTYPE_VAR && var->promise == PLPGSQL_PROMISE_NONE &&
		is_plain_type(var->datatype->typoid);
}

/*
 * Is it anything but one of the server's own immutable functions that all may call?  (The interpreter
 * asks once a transaction whether its user may.)
 */
static bool
is_open_function(Oid funcid, void *context)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		open;

	if (funcid >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	open = proc->prolang != INTERNALlanguageId || proc->provolatile != PROVOLATILE_IMMUTABLE ||
		proc->proretset || proc->prosecdef || !heap_attisnull(tuple, Anum_pg_proc_proacl, NULL);
	ReleaseSysCache(tuple);
	return open;
}

static bool
refuse(Look *look, const char *why_not)
{
	look->why_not = why_not;
	return true;
}

/* Is it an element of an array of such, in a variable? */
static bool
is_plain_element(const SubscriptingRef *expr, const PLpgSQL_execstate *estate)
{
	const Param *param = (const Param *) expr->refexpr;
	const PLpgSQL_var *var;

	if (expr->refassgnexpr != NULL || expr->reflowerindexpr != NIL || !OidIsValid(expr->refelemtype) ||
		!IsA(param, Param) || param->paramkind != PARAM_EXTERN || param->paramid < 1 || param->paramid > estate->ndatums)
		return false;
	var = (const PLpgSQL_var *) estate->datums[param->paramid - 1];
	return var->dtype == PLPGSQL_DTYPE_VAR && var->datatype->typoid == param->paramtype &&
		param->paramtype < FirstNormalObjectId && get_typtype(param->paramtype) == TYPTYPE_BASE &&
		get_element_type(param->paramtype) == expr->refelemtype;
}

static bool
open_walker(Node *node, void *context)
{
	Look	   *look = context;

	if (node == NULL)
		return false;
	if (++look->nodes > MAX_NODES)
		return refuse(look, "it has too many nodes");
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			return expression_tree_walker(node, open_walker, context);
		case T_Param:
			{
				const Param *param = (const Param *) node;
				const PLpgSQL_datum *datum;

				if (param->paramkind != PARAM_EXTERN || param->paramid < 1 || param->paramid > look->estate->ndatums)
					return refuse(look, "it has a parameter that is no variable");
				datum = look->estate->datums[param->paramid - 1];
				if (!MotVariableIsPlain(datum) || ((const PLpgSQL_var *) datum)->datatype->typoid != param->paramtype)
					return refuse(look, "it uses a variable that is not of a scalar type of the server's");
				break;
			}
		case T_ScalarArrayOpExpr:
			{
				const ScalarArrayOpExpr *op = (const ScalarArrayOpExpr *) node;
				const Const *array = lsecond(op->args);

				if (!IsA(array, Const) || !is_plain_type(get_element_type(array->consttype)))
					return refuse(look, "it uses an array");
				if (is_open_function(op->opfuncid, NULL))
					return refuse(look, "it calls a function that is not one of the server's immutable ones");
				return open_walker(linitial(op->args), context);
			}
		case T_SubscriptingRef:
			{
				const SubscriptingRef *element = (const SubscriptingRef *) node;

				if (!is_plain_element(element, look->estate))
					return refuse(look, "it uses an array");
				if (!is_plain_type(element->refrestype))
					return refuse(look, "it has a type that is not one of the server's scalar ones");
				return open_walker((Node *) element->refupperindexpr, context);
			}
		case T_NullTest:
			if (((const NullTest *) node)->argisrow)
				return refuse(look, "it looks at a row");
			break;
		case T_Const:
		case T_OpExpr:
		case T_FuncExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_CoerceViaIO:
		case T_RelabelType:
			break;
		default:
			return refuse(look, "it has an expression of a kind that is left to the interpreter");
	}
	if (!is_plain_type(exprType(node)))
		return refuse(look, "it has a type that is not one of the server's scalar ones");
	if (check_functions_in_node(node, is_open_function, NULL))
		return refuse(look, "it calls a function that is not one of the server's immutable ones");
	return expression_tree_walker(node, open_walker, context);
}

static bool
add_function(Oid funcid, void *context)
{
	List	  **functions = context;

	*functions = list_append_unique_oid(*functions, funcid);
	return false;
}

/* The functions that it calls, into the list of them. */
bool
MotListFunctions(Node *node, void *functions)
{
	if (node == NULL)
		return false;
	(void) check_functions_in_node(node, add_function, functions);
	return expression_tree_walker(node, MotListFunctions, functions);
}

/* Plans do not depend on those that the server brings along. */
bool
MotFunctionsAreClosed(const List *functions)
{
	foreach_oid(funcid, functions)
		if (is_open_function(funcid, NULL))
		return false;
	return true;
}

bool
MotSiteIsRight(const MotSite *site)
{
	return site->expr->expr_simple_plansource == site->source &&
		site->source->generation == site->generation &&
		CachedPlanIsSimplyValid(site->source, site->plan, NULL);
}

/* May it be machine code? */
void
MotSiteLook(MotSite *site, PLpgSQL_execstate *estate)
{
	PLpgSQL_expr *expr = site->expr;
	Look		look = {estate, 0, NULL};

	site->why_not = NULL;
	site->unplanned = false;
	if (expr->plan == NULL)
	{
		site->unplanned = true;
		site->why_not = "it has not been evaluated so far";
		return;
	}
	if (expr->expr_simple_expr == NULL)
	{
		site->why_not = "it is a query";
		return;
	}
	site->source = expr->expr_simple_plansource;
	site->plan = expr->expr_simple_plan;
	site->generation = site->source->generation;
	if (!MotSiteIsRight(site))
	{
		site->unplanned = true;
		site->why_not = "its plan is not right any more";
		return;
	}
	site->type = expr->expr_simple_type;
	site->typmod = expr->expr_simple_typmod;
	if (expr->expr_simple_mutable)
		site->why_not = "it calls a function that is not immutable";
	else if (open_walker((Node *) expr->expr_simple_expr, &look))
		site->why_not = look.why_not;
}
