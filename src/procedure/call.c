/*-------------------------------------------------------------------------
 *
 * call.c
 *	  CALL of a prepared statement, without copies of its tree.
 *
 * A client's CALL brings a value for each parameter, and is otherwise the same each time.  The
 * server copies the statement three times for it (for the planner, which has nothing to do, for the
 * plan, and for whoever executes it and might scribble on it), and plans and prepares the argument
 * expressions, which are thrown away.  For an order of TPC-C, whose 49 parameters are arrays mostly,
 * that was a fifth of all instructions.
 *
 * So the source of the plan is told to keep a generic one, which is the same, since nobody plans a
 * CALL; and arguments that are parameters, constants, or arrays of such are evaluated here, and the
 * server gets a CALL of constants.  That is in memory of its own: ROLLBACK in the procedure may let
 * the plan go while it runs.  What checks, calls, and hands out results is the server's
 * ExecuteCallStmt().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/prepare.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/params.h"
#include "procedure/call.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"

static bool
is_value(const Node *expr, ParamListInfo params)
{
	const Param *param = (const Param *) expr;

	if (IsA(expr, Const))
		return true;
	return IsA(expr, Param) && param->paramkind == PARAM_EXTERN && param->paramid > 0 &&
		param->paramid <= params->numParams && params->params[param->paramid - 1].ptype == param->paramtype;
}

static bool
is_plain(const Node *expr, ParamListInfo params)
{
	if (!IsA(expr, ArrayExpr))
		return is_value(expr, params);
	if (((const ArrayExpr *) expr)->multidims)
		return false;
	foreach_ptr(const Node, element, ((const ArrayExpr *) expr)->elements)
	{
		if (!is_value(element, params))
			return false;
	}
	return true;
}

static Datum
value_of(const Node *expr, ParamListInfo params, bool *isnull)
{
	const ParamExternData *param;

	if (IsA(expr, Const))
	{
		*isnull = ((const Const *) expr)->constisnull;
		return ((const Const *) expr)->constvalue;
	}
	param = &params->params[((const Param *) expr)->paramid - 1];
	*isnull = param->isnull;
	return param->value;
}

/* as ExecEvalArrayExpr() */
static Datum
array_of(const ArrayExpr *expr, ParamListInfo params)
{
	int			n = list_length(expr->elements);
	int			lower = 1;
	Datum	   *values;
	bool	   *nulls;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	int			i = 0;

	if (n == 0)
		return PointerGetDatum(construct_empty_array(expr->element_typeid));
	values = palloc(n * sizeof(Datum));
	nulls = palloc(n * sizeof(bool));
	foreach_ptr(const Node, element, expr->elements)
	{
		values[i] = value_of(element, params, &nulls[i]);
		i++;
	}
	get_typlenbyvalalign(expr->element_typeid, &typlen, &typbyval, &typalign);
	return PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower, expr->element_typeid, typlen, typbyval, typalign));
}

/* The same, evaluated, and nothing of it where the plan is. */
static Const *
constant_of(const Node *expr, ParamListInfo params)
{
	Oid			type;
	bool		isnull = false;
	Datum		value;
	int16		typlen;
	bool		typbyval;

	if (IsA(expr, Const))
		return (Const *) copyObjectImpl(expr);
	type = exprType(expr);
	value = IsA(expr, ArrayExpr) ? array_of((const ArrayExpr *) expr, params) : value_of(expr, params, &isnull);
	get_typlenbyval(type, &typlen, &typbyval);
	return makeConst(type, exprTypmod(expr), exprCollation(expr), typlen, value, isnull, typbyval);
}

/*
 * The plan of what the portal executes is a custom one: its source is told to keep the next.  Whoever
 * asks for custom plans (plan_cache_mode) gets them still.
 */
static void
keep_plan(const PlannedStmt *pstmt)
{
	PreparedStatement *prepared;

	if (ActivePortal == NULL || ActivePortal->prepStmtName == NULL || ActivePortal->cplan == NULL ||
		ActivePortal->cplan->refcount != 1 || linitial(ActivePortal->stmts) != pstmt)
		return;
	/* (it may have been prepared anew since it was bound) */
	prepared = FetchPreparedStatement(ActivePortal->prepStmtName, false);
	if (prepared != NULL && prepared->plansource->commandTag == CMDTAG_CALL)
		prepared->plansource->cursor_options |= CURSOR_OPT_GENERIC_PLAN;
}

/*
 * A CALL in place of the one that "pstmt" is of, whose tree is a plan's and not to be written to.
 * NULL: that has to be copied, and its arguments evaluated, by the server.
 */
CallStmt *
MotCallEvaluated(const PlannedStmt *pstmt, ParamListInfo params)
{
	const CallStmt *stmt = castNode(CallStmt, pstmt->utilityStmt);
	CallStmt   *call;
	FuncCall   *written;
	List	   *args = NIL;

	keep_plan(pstmt);
	/* (a function's variables are not that simple) */
	if (params == NULL || params->paramFetch != NULL || params->paramCompile != NULL)
		return NULL;
	foreach_ptr(const Node, arg, stmt->funcexpr->args)
	{
		if (!is_plain(arg, params))
			return NULL;
	}
	foreach_ptr(const Node, arg, stmt->funcexpr->args)
		args = lappend(args, constant_of(arg, params));
	call = makeNode(CallStmt);
	call->funcexpr = makeNode(FuncExpr);
	*call->funcexpr = *stmt->funcexpr;
	call->funcexpr->args = args;
	call->outargs = copyObject(stmt->outargs);

	/*
	 * for those who want to know its name: without what was written as its
	 * arguments
	 */
	written = makeNode(FuncCall);
	*written = *stmt->funccall;
	written->funcname = copyObject(written->funcname);
	written->args = NIL;
	call->funccall = written;
	return call;
}
