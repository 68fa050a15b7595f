/*-------------------------------------------------------------------------
 *
 * constants.c
 *	  What a statement is without its constants.
 *
 * A query's constants are replaced by parameters at those places where the planner makes no more of them
 * than values that are computed with when the statement is executed: compared with
 * a column in a condition that has to hold, assigned to a column, or inserted; there also as an operand beside a column.
 * What the planner would compute from constants alone is computed here, since that may fail, and
 * fails before anything is executed: calls of the server's own strict and immutable functions, if these are all.  A parameter that a
 * client has sent is taken as the constant that it is to the planner.  All other constants
 * stay, and make another statement: nulls, truth values that are compared, LIMIT, what is selected.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "statement/remember.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* A function that may be called here, or not. */
typedef struct Function
{
	Oid			funcid;			/* hash key */
	bool		immutable;
	bool		usable;			/* here */
	FmgrInfo	info;
} Function;

#define MAX_ARGUMENTS 4			/* of a call that is made here */

static HTAB *functions = NULL;
static MemoryContext functions_cxt = NULL;
static bool functions_stale = false;

/* What an expression is, to who looks for constants. */
typedef enum Nature
{
	VALUE,						/* "value" */
	COMPUTED,					/* a value, when calls may be made */
	COLUMN,						/* of a column: not known before it is read */
	OTHER						/* stays as it is */
} Nature;

typedef struct Value
{
	Datum		datum;
	bool		isnull;			/* only of a client's parameters */
} Value;

static Function *find_function(Oid funcid);
static Nature look_at(Node *node, MotConstants *taken, Value *value);

/* functions may have changed; not at once: one may be about to be called */
void
MotConstantsForget(void)
{
	functions_stale = true;
}

static void
begin_functions(void)
{
	if (likely(functions != NULL && !functions_stale))
		return;
	if (functions != NULL)
		MemoryContextDelete(functions_cxt);
	functions_stale = false;
	functions_cxt = AllocSetContextCreate(TopMemoryContext, "MOT functions of constants", ALLOCSET_SMALL_SIZES);
	functions = MotHashCreate("MOT functions of constants", 32, sizeof(Oid), sizeof(Function), functions_cxt);
}

static inline void
mix(MotConstants *taken, uint32 what)
{
	taken->hash = (taken->hash ^ what) * 0x9E3779B1;
	taken->hash ^= taken->hash >> 15;
}

static void
mix_name(MotConstants *taken, const char *name)
{
	if (name != NULL)
		mix(taken, hash_bytes((const unsigned char *) name, strlen(name)));
}

/* ---------------------------------------------------------- what stays */

static bool
is_mutable(Oid funcid, void *context)
{
	const Function *function = find_function(funcid);

	return function != NULL && !function->immutable;
}

/* Is it not known before it is executed? */
static bool
varies(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, Var) || IsA(node, SQLValueFunction) || IsA(node, NextValueExpr) ||
		check_functions_in_node(node, is_mutable, NULL) || expression_tree_walker(node, varies, context);
}

/* Might the planner compute the node, and fail? */
static bool
may_be_computed(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_List:
		case T_TargetEntry:
		case T_RelabelType:
		case T_CoerceToDomain:
		case T_NullTest:
		case T_BoolExpr:
		case T_InferenceElem:
			return false;
		default:
			return !varies(node, NULL);
	}
}

/* As it is; true: it is nothing that can be remembered. */
static bool
keep(Node *node, void *arg)
{
	MotConstants *taken = arg;

	if (node == NULL)
		return false;
	mix(taken, nodeTag(node));
	taken->others |= may_be_computed(node);
	switch (nodeTag(node))
	{
		case T_Param:
		case T_SubLink:
		case T_Query:
		case T_CurrentOfExpr:
			return true;
		case T_Var:
			mix(taken, ((Var *) node)->varattno);
			break;
		case T_OpExpr:
			mix(taken, ((OpExpr *) node)->opno);
			break;
		case T_FuncExpr:
			mix(taken, ((FuncExpr *) node)->funcid);
			break;
		case T_Const:
			{
				Const	   *c = (Const *) node;

				mix(taken, c->consttype);
				if (c->constisnull)
					break;
				if (c->constbyval)
					mix(taken, (uint32) c->constvalue ^ (uint32) (c->constvalue >> 32));
				else if (c->constlen > 0 || c->constlen == -1)
					mix(taken, hash_bytes((unsigned char *) DatumGetPointer(c->constvalue),
										  datumGetSize(c->constvalue, false, c->constlen)));
				break;
			}
		default:
			break;
	}
	return expression_tree_walker(node, keep, arg);
}

/* --------------------------------------------------------- what is computed */

static Function *
find_function(Oid funcid)
{
	Function   *function;
	HeapTuple	tuple;
	Form_pg_proc form;
	FmgrInfo	info = {0};
	bool		immutable;
	bool		usable;

	function = hash_search(functions, &funcid, HASH_FIND, NULL);
	if (function != NULL)
		return function;

	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	immutable = form->provolatile == PROVOLATILE_IMMUTABLE;
	usable = immutable && form->prolang == INTERNALlanguageId && form->prokind == PROKIND_FUNCTION &&
		form->proisstrict && !form->proretset && funcid < FirstUnpinnedObjectId &&
		heap_attisnull(tuple, Anum_pg_proc_proacl, NULL);

	/*
	 * those of any enum, array and so on keep what they find out of the first
	 * type that comes
	 */
	for (int i = 0; i < form->pronargs; i++)
		usable = usable && get_typtype(form->proargtypes.values[i]) != TYPTYPE_PSEUDO;
	ReleaseSysCache(tuple);
	if (usable)
		fmgr_info_cxt(funcid, &info, functions_cxt);
	function = hash_search(functions, &funcid, HASH_ENTER, NULL);
	function->immutable = immutable;
	function->usable = usable;
	function->info = info;
	return function;
}

/*
 * A call, as the planner would make it.  One of a column stays a call, and has constants beside
 * the column only if they are an operator's, or the numbers of a coercion, which stay.
 */
static Nature
call(Node *node, Oid funcid, Oid collation, List *args, MotConstants *taken, Value *value)
{
	LOCAL_FCINFO(fcinfo, MAX_ARGUMENTS);
	Function   *function;
	Nature		nature = VALUE;
	int			n = 0;

	if (list_length(args) > MAX_ARGUMENTS || args == NIL)
		return OTHER;
	foreach_ptr(Node, arg, args)
	{
		Value		one;

		switch (look_at(arg, taken, &one))
		{
			case OTHER:
				return OTHER;
			case COLUMN:
				if (n > 0 && IsA(node, FuncExpr))
					return OTHER;
				nature = COLUMN;
				break;
			case COMPUTED:
				if (IsA(node, FuncExpr) && nature == COLUMN)
					return OTHER;
				if (nature == VALUE)
					nature = COMPUTED;
				break;
			case VALUE:
				if (nature == COLUMN && IsA(node, FuncExpr) && !IsA(arg, Const))
					return OTHER;
				if (one.isnull)
					return OTHER;
				fcinfo->args[n].value = one.datum;
				fcinfo->args[n].isnull = false;
				break;
		}
		n++;
	}
	if (nature == COLUMN)
		return COLUMN;
	function = find_function(funcid);
	if (function == NULL || !function->usable)
		return OTHER;
	if (!taken->calls)
		return COMPUTED;
	InvokeFunctionExecuteHook(funcid);
	function->info.fn_expr = node;
	InitFunctionCallInfoData(*fcinfo, &function->info, n, collation, NULL, NULL);
	value->datum = FunctionCallInvoke(fcinfo);
	function->info.fn_expr = NULL;
	value->isnull = false;
	return fcinfo->isnull ? OTHER : VALUE;
}

static Nature
look_at(Node *node, MotConstants *taken, Value *value)
{
	switch (nodeTag(node))
	{
		case T_Const:
			{
				Const	   *c = (Const *) node;

				value->datum = c->constvalue;
				value->isnull = false;
				return c->constisnull ? OTHER : VALUE;
			}
		case T_Param:
			{
				Param	   *param = (Param *) node;
				ParamListInfo bound = taken->bound;
				ParamExternData *prm;

				if (param->paramkind != PARAM_EXTERN || bound == NULL || bound->paramFetch != NULL ||
					param->paramid <= 0 || param->paramid > bound->numParams)
					return OTHER;
				prm = &bound->params[param->paramid - 1];
				if (prm->ptype != param->paramtype || !(prm->pflags & PARAM_FLAG_CONST))
					return OTHER;
				value->datum = prm->value;
				value->isnull = prm->isnull;
				return VALUE;
			}
		case T_Var:
			return ((Var *) node)->varlevelsup == 0 ? COLUMN : OTHER;
		case T_RelabelType:
			return look_at((Node *) ((RelabelType *) node)->arg, taken, value);
		case T_OpExpr:
			{
				OpExpr	   *op = (OpExpr *) node;

				if (op->opretset || list_length(op->args) > 2)
					return OTHER;
				set_opfuncid(op);
				return call(node, op->opfuncid, op->inputcollid, op->args, taken, value);
			}
		case T_FuncExpr:
			{
				FuncExpr   *f = (FuncExpr *) node;

				if (f->funcretset || f->funcvariadic)
					return OTHER;
				return call(node, f->funcid, f->inputcollid, f->args, taken, value);
			}
		default:
			return OTHER;
	}
}

/* ------------------------------------------------------------- what is taken */

static bool
take(void **place, Value value, MotConstants *taken)
{
	Node	   *node = *place;
	MotConstant *t;

	if (taken->n == MOT_MAX_CONSTANTS)
		return true;
	t = &taken->places[taken->n];
	t->place = place;
	t->was = node;
	t->param.xpr.type = T_Param;
	t->param.paramkind = PARAM_EXTERN;
	t->param.paramid = ++taken->n;
	t->param.paramtype = exprType(node);
	t->param.paramtypmod = exprTypmod(node);
	t->param.paramcollid = exprCollation(node);
	t->param.location = -1;
	t->value = value.datum;
	t->isnull = value.isnull;
	*place = &t->param;
	mix(taken, t->param.paramtype);
	return false;
}

/* a place where a value is compared or computed with, or "stored", whatever it is */
static bool
take_value(void **place, bool stored, MotConstants *taken)
{
	Node	   *node = *place;
	Value		value;

	switch (look_at(node, taken, &value))
	{
		case VALUE:
			if ((exprType(node) == BOOLOID && !stored) || exprType(node) == UNKNOWNOID)
				return keep(node, taken);
			if (value.isnull && !stored)
				return true;
			return take(place, value, taken);
		case COLUMN:
			if (IsA(node, OpExpr))
			{
				ListCell   *lc;

				mix(taken, ((OpExpr *) node)->opno);
				foreach(lc, ((OpExpr *) node)->args)
				{
					if (take_value(&lfirst(lc), false, taken))
						return true;
				}
				return false;
			}
			if (IsA(node, FuncExpr))
			{
				FuncExpr   *f = (FuncExpr *) node;

				mix(taken, f->funcid);
				return take_value(&linitial(f->args), false, taken);
			}
			if (IsA(node, RelabelType))
				return take_value((void **) &((RelabelType *) node)->arg, false, taken);
			return keep(node, taken);
		case COMPUTED:
			{
				bool		others = taken->others;

				taken->computed = true;
				taken->computed_params |= keep(node, taken);
				taken->others = others;
				return false;
			}
		default:
			break;
	}
	/* a domain's conditions are tried when the statement is executed */
	if (IsA(node, CoerceToDomain))
	{
		mix(taken, T_CoerceToDomain);
		return take_value((void **) &((CoerceToDomain *) node)->arg, stored, taken);
	}
	return keep(node, taken);
}

/* of a condition: has it a column on one side? */
static bool
is_comparison(Node *node, MotConstants *taken)
{
	OpExpr	   *op = (OpExpr *) node;
	Value		value;

	return IsA(node, OpExpr) && list_length(op->args) == 2 &&
		((look_at(linitial(op->args), taken, &value) == COLUMN) !=
		 (look_at(lsecond(op->args), taken, &value) == COLUMN));
}

/* conditions that all have to hold */
static bool
take_conditions(Node *quals, MotConstants *taken)
{
	List	   *conditions = quals == NULL ? NIL :
	is_andclause(quals) ? ((BoolExpr *) quals)->args : list_make1(quals);

	foreach_ptr(Node, condition, conditions)
	{
		mix(taken, nodeTag(condition));
		/* (BETWEEN beside others) */
		if (is_andclause(condition))
		{
			if (take_conditions(condition, taken))
				return true;
			continue;
		}
		if (!is_comparison(condition, taken))
		{
			/* behind one that is false the planner does not compute anything */
			if (!IsA(condition, NullTest))
				taken->others = true;
			if (keep(condition, taken))
				return true;
			continue;
		}
		mix(taken, ((OpExpr *) condition)->opno);
		if (take_value(&linitial(((OpExpr *) condition)->args), false, taken) ||
			take_value(&lsecond(((OpExpr *) condition)->args), false, taken))
			return true;
	}
	return false;
}

static bool
take_targets(List *targets, MotConstants *taken)
{
	foreach_node(TargetEntry, tle, targets)
	{
		mix(taken, tle->resno);
		if (take_value((void **) &tle->expr, true, taken))
			return true;
	}
	return false;
}

/*
 * True: it is nothing that can be remembered.  Without taken->calls nothing is computed, but found out
 * whether something could be, and whether there are others that the planner may compute: these may fail, too,
 * and who fails first is up to the planner.
 */
static bool
take_all(Query *query, MotConstants *taken)
{
	ListCell   *lc;

	taken->hash = 0;
	taken->n = 0;
	taken->others = taken->computed = taken->computed_params = false;
	mix(taken, query->commandType);
	foreach_node(RangeTblEntry, rte, query->rtable)
		mix_name(taken, rte->eref->aliasname);
	if (query->commandType == CMD_SELECT)
		foreach_node(TargetEntry, tle, query->targetList)
			mix_name(taken, tle->resname);
	/* in the planner's order, as an error could tell */
	if (query->commandType == CMD_SELECT ? keep((Node *) query->targetList, taken) : take_targets(query->targetList, taken))
		return true;
	if (keep((Node *) query->returningList, taken) || take_conditions(query->jointree->quals, taken) ||
		keep(query->limitOffset, taken) || keep(query->limitCount, taken))
		return true;
	if (query->onConflict != NULL)
	{
		mix(taken, query->onConflict->action);
		if (keep((Node *) query->onConflict->arbiterElems, taken) || keep(query->onConflict->arbiterWhere, taken) ||
			take_targets(query->onConflict->onConflictSet, taken) || keep(query->onConflict->onConflictWhere, taken))
			return true;
	}
	foreach_node(RangeTblEntry, rte, query->rtable)
	{
		mix(taken, rte->relid);
		if (rte->rtekind != RTE_VALUES)
			continue;
		foreach_ptr(List, values, rte->values_lists)
		{
			mix(taken, T_List);
			foreach(lc, values)
			{
				if (take_value(&lfirst(lc), true, taken))
					return true;
			}
		}
	}
	return false;
}

/*
 * Takes a query's constants out of it, in place.  False: it is none that can be remembered, and as it was.
 * Otherwise it is as it was after MotConstantsPutBack.
 */
bool
MotConstantsTake(Query *query, ParamListInfo bound, MotConstants *taken)
{
	begin_functions();
	taken->bound = bound;
	taken->calls = false;
	if (take_all(query, taken) ||
		(taken->computed && taken->others && taken->computed_params))
	{
		MotConstantsPutBack(taken);
		return false;
	}
	if (taken->computed && !taken->others)
	{
		MotConstantsPutBack(taken);
		taken->calls = true;
		if (take_all(query, taken))
		{
			MotConstantsPutBack(taken);
			return false;
		}
	}
	return true;
}

void
MotConstantsPutBack(MotConstants *taken)
{
	while (taken->n > 0)
	{
		taken->n--;
		*taken->places[taken->n].place = taken->places[taken->n].was;
	}
}
