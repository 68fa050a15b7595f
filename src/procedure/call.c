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
 * CALL; and if its arguments are parameters, constants, or arrays of such, the server gets a CALL of
 * parameters and constants, the arrays made beforehand.  That is in memory of its own: ROLLBACK in
 * the procedure may let the plan go while it runs.  What checks, calls, and hands out results is the
 * server's ExecuteCallStmt().
 *
 * It checks before it evaluates, so nothing may fail here.  And it is for what a portal executes,
 * whose memory goes with it: a function in SQL calls as often as it likes before it lets go of any.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/prepare.h"
#include "nodes/makefuncs.h"
#include "nodes/params.h"
#include "procedure/call.h"
#include "statement/statement.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/portal.h"
#include "utils/syscache.h"

/* the server need not copy a larger array, as it does a constant's */
#define LARGEST_ARRAY	(64 * 1024)

static bool
has_value(const Node *expr, ParamListInfo params)
{
	const Param *param = (const Param *) expr;

	if (IsA(expr, Const))
		return true;
	return IsA(expr, Param) && param->paramkind == PARAM_EXTERN && param->paramid > 0 &&
		param->paramid <= params->numParams && params->params[param->paramid - 1].ptype == param->paramtype;
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

/* false: its type has gone since it was analyzed */
static bool
element_type(Oid type, int16 *length, bool *byval, char *align)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Form_pg_type form;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_type) GETSTRUCT(tuple);
	*length = form->typlen;
	*byval = form->typbyval;
	*align = form->typalign;
	ReleaseSysCache(tuple);
	return true;
}

/* What ExecEvalArrayExpr() makes of it; NULL: it has to. */
static Const *
array_of(const ArrayExpr *expr, ParamListInfo params)
{
	int			n = list_length(expr->elements);
	int			lower = 1;
	Size		size = 0;
	Datum	   *values;
	bool	   *nulls;
	int16		length;
	bool		byval;
	char		align;
	int			i = 0;
	ArrayType  *array;

	/* (a function's variables are not that simple) */
	if (expr->multidims || params == NULL || params->paramFetch != NULL || params->paramCompile != NULL ||
		!element_type(expr->element_typeid, &length, &byval, &align) || length < -1)
		return NULL;
	values = palloc(n * sizeof(Datum));
	nulls = palloc(n * sizeof(bool));
	foreach_ptr(const Node, element, expr->elements)
	{
		if (!has_value(element, params))
			return NULL;
		values[i] = value_of(element, params, &nulls[i]);
		if (!nulls[i] && length == -1)
		{
			if (VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) || VARATT_IS_COMPRESSED(DatumGetPointer(values[i])))
				return NULL;
			size += VARSIZE_ANY(DatumGetPointer(values[i]));
		}
		if (size > LARGEST_ARRAY)
			return NULL;
		i++;
	}
	array = n == 0 ? construct_empty_array(expr->element_typeid) :
		construct_md_array(values, nulls, 1, &n, &lower, expr->element_typeid, length, byval, align);
	return makeConst(expr->array_typeid, -1, expr->array_collid, -1, PointerGetDatum(array), false, false);
}

static Node *
argument_of(const Node *expr, ParamListInfo params)
{
	if (IsA(expr, Const) || IsA(expr, Param))
		return copyObjectImpl(expr);
	return IsA(expr, ArrayExpr) ? (Node *) array_of((const ArrayExpr *) expr, params) : NULL;
}

/* Is it the first, and only, statement of what the client has a portal run? */
bool
MotCallIsClients(const PlannedStmt *pstmt)
{
	return ActivePortal != NULL && ActivePortal->cplan != NULL && ActivePortal->stmts != NIL &&
		linitial(ActivePortal->stmts) == pstmt;
}

/*
 * A plan is a custom one the first time: its source is told to keep the next.  Whoever asks for custom
 * plans (plan_cache_mode) gets them still.
 *
 * A module whose hook is before ours may have taken the query's identifier from the statement, as
 * pg_stat_statements does, whose plan nobody else would use.  What is kept has it the next time, too.
 */
void
MotCallKeepPlan(PlannedStmt *pstmt)
{
	PreparedStatement *prepared;
	CachedPlanSource *source;

	/* (it may have been prepared anew since it was bound) */
	prepared = ActivePortal->prepStmtName != NULL ? FetchPreparedStatement(ActivePortal->prepStmtName, false) : NULL;
	if (prepared == NULL || prepared->plansource->commandTag != CMDTAG_CALL)
		return;
	source = prepared->plansource;
	if (source->gplan != ActivePortal->cplan)
		source->cursor_options |= mot_jit ? CURSOR_OPT_GENERIC_PLAN : 0;
	else if (source->cursor_options & CURSOR_OPT_GENERIC_PLAN)
		pstmt->queryId = linitial_node(Query, source->query_list)->queryId;
}

/* EXECUTE has a plan of its own: its portal does not tell whose it is, to give that its identifier. */
void
MotCallForgetPlan(const char *name)
{
	PreparedStatement *prepared = FetchPreparedStatement(name, false);

	if (prepared != NULL && prepared->plansource->commandTag == CMDTAG_CALL)
		prepared->plansource->cursor_options &= ~CURSOR_OPT_GENERIC_PLAN;
}

/*
 * A CALL in place of the one that "stmt" is, which is a plan's and not to be written to.  NULL: that
 * has to be copied, and its arguments evaluated, by the server.
 */
CallStmt *
MotCallEvaluated(const CallStmt *stmt, ParamListInfo params)
{
	CallStmt   *call;
	FuncCall   *written;
	List	   *args = NIL;

	foreach_ptr(const Node, expr, stmt->funcexpr->args)
	{
		Node	   *arg = argument_of(expr, params);

		if (arg == NULL)
			return NULL;
		args = lappend(args, arg);
	}
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
