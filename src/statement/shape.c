/*-------------------------------------------------------------------------
 *
 * shape.c
 *	  May a plan be run without the executor?  If not, why not?
 *
 * What is let in: reading MOT tables (by key, range or whole), nested loops
 * of that, LIMIT, sorting, row locks, aggregates without grouping, single rows;
 * INSERT, UPDATE and DELETE; sub-selects of all that.  Expressions may have anything that keeps no
 * state between two executions that it must not: no composite values (their row types are looked up
 * once), no functions in SQL (these keep plans of their own).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "statement/remember.h"
#include "statement/statement.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define MAX_VALUES 5000			/* expressions of a VALUES list */

typedef struct Walk
{
	const char *why_not;
	bool		aggregates;		/* allowed at this place */
	bool		system;			/* columns, too */
} Walk;

/* something that has been gone through may look at the query's snapshot */
static bool may_look;

static const char *plan_why_not(const PlannedStmt *stmt);
static const char *node_why_not(const Plan *plan, const PlannedStmt *stmt);
static const char *modify_why_not(const ModifyTable *plan, const PlannedStmt *stmt);
static const char *expressions_why_not(List *expressions, bool aggregates);
static bool sorts_by_servers(Oid op);
static bool hashes_by_servers(Oid op);
static bool walk_expression(Node *node, Walk *walk);

/* *bare (may be NULL): nothing that its expressions call could look at the query's snapshot. */
const char *
MotWhyNot(const PlannedStmt *stmt, bool *bare)
{
	const char *why_not;

	may_look = false;
	why_not = plan_why_not(stmt);
	if (bare != NULL)
		*bare = !may_look;
	return why_not;
}

static const char *
plan_why_not(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	if (stmt->hasModifyingCTE)
		return "a WITH query changes data";
	if (stmt->parallelModeNeeded)
		return "the plan is parallel";
	if (stmt->jitFlags & PGJIT_PERFORM)
		return "the server compiles it";
	if (stmt->utilityStmt != NULL)
		return "it is a utility statement";
	foreach_node(RangeTblEntry, rte, stmt->rtable)
	{
		if (MotRteStandsForOthers(rte))
			continue;
		switch (rte->rtekind)
		{
			case RTE_RESULT:
			case RTE_SUBQUERY:
				break;
			case RTE_VALUES:
				if (rte->lateral)
					return "VALUES refer to other tables";
				break;
			case RTE_RELATION:
				if (rte->relkind == RELKIND_VIEW)
					break;		/* only its privileges are left */
				if (IsA(plan, ModifyTable) && ((const ModifyTable *) plan)->exclRelRTI > 0 &&
					rte == rt_fetch(((const ModifyTable *) plan)->exclRelRTI, stmt->rtable))
					break;		/* ON CONFLICT's "excluded" */
				/* (a materialized view may have to be refused) */
				if ((rte->relkind != RELKIND_RELATION || !MotIsOrdinaryTable(rte->relid)) &&
					(rte->relkind != RELKIND_FOREIGN_TABLE || !MotIsMotTable(rte->relid)))
					return "there are other tables";
				break;
			default:
				return "there are functions or WITH queries in FROM";
		}
	}
	if (stmt->rowMarks != NIL && !IsA(plan, ModifyTable) && !IsA(plan, LockRows) &&
		!(IsA(plan, Limit) && IsA(outerPlan(plan), LockRows)))
		return "rows are locked in another way";
	foreach_ptr(Plan, subplan, stmt->subplans)
	{
		const char *why_not = node_why_not(subplan, stmt);

		if (why_not != NULL)
			return why_not;
	}
	if (IsA(plan, ModifyTable))
		return modify_why_not((const ModifyTable *) plan, stmt);
	if (stmt->commandType != CMD_SELECT)
		return "the command is of another kind";
	return node_why_not(plan, stmt);
}

static const char *
node_why_not(const Plan *plan, const PlannedStmt *stmt)
{
	const char *why_not = NULL;
	List	   *expressions = NIL;	/* of its kind */

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			{
				const ForeignScan *scan = (const ForeignScan *) plan;

				if (scan->scan.scanrelid == 0 || outerPlan(plan) != NULL || scan->operation != CMD_SELECT)
					return "a scan is of an unknown kind";
				if (list_nth_int(scan->fdw_private, MOT_PLAN_LOCK) != 0)
					return "there are triggers";
				expressions = scan->fdw_exprs;
				break;
			}
		case T_NestLoop:
			switch (((const Join *) plan)->jointype)
			{
				case JOIN_INNER:
				case JOIN_LEFT:
				case JOIN_SEMI:
				case JOIN_ANTI:
					break;
				default:
					return "a join is of another kind";
			}
			expressions = list_make1(((const Join *) plan)->joinqual);
			foreach_node(NestLoopParam, param, ((const NestLoop *) plan)->nestParams)
				expressions = lappend(expressions, param->paramval);
			break;
		case T_Agg:
			why_not = MotAggregateWhyNot((const Agg *) plan);
			break;
		case T_LockRows:
			why_not = MotRecheckWhyNot(outerPlan(plan), ((const LockRows *) plan)->rowMarks, stmt);
			break;
		case T_Limit:
			if (((const Limit *) plan)->limitOption != LIMIT_OPTION_COUNT)
				return "LIMIT has WITH TIES";
			expressions = list_make2(((const Limit *) plan)->limitCount, ((const Limit *) plan)->limitOffset);
			break;
		case T_Result:
			expressions = (List *) ((const Result *) plan)->resconstantqual;
			break;
		case T_Sort:
			{
				const Sort *sort = (const Sort *) plan;

				for (int i = 0; i < sort->numCols; i++)
					may_look |= !sorts_by_servers(sort->sortOperators[i]);
				break;
			}
		case T_Unique:
			{
				const Unique *unique = (const Unique *) plan;

				for (int i = 0; i < unique->numCols; i++)
					may_look |= get_opcode(unique->uniqOperators[i]) >= FirstNormalObjectId;
				break;
			}
		case T_Memoize:
			{
				const Memoize *memoize = (const Memoize *) plan;

				for (int i = 0; i < memoize->numKeys; i++)
					may_look |= !hashes_by_servers(memoize->hashOperators[i]);
				break;
			}
		case T_Material:
			break;
		case T_SubqueryScan:
			why_not = node_why_not(((const SubqueryScan *) plan)->subplan, stmt);
			break;
		case T_HashJoin:
			return "there is a hash join";
		case T_MergeJoin:
			return "there is a merge join";
		case T_WindowAgg:
			return "there are window functions";
		case T_Append:
		case T_MergeAppend:
			return "there are partitions, children or UNION";
		case T_Group:
		case T_SetOp:
			return "rows are grouped";
		case T_ProjectSet:
			return "a function returns a set";
		case T_IncrementalSort:
			return "rows are sorted in steps";
		default:
			return "a plan node is of another kind";
	}
	if (plan->qual != NIL &&
		!IsA(plan, ForeignScan) && !IsA(plan, NestLoop) && !IsA(plan, Agg) && !IsA(plan, SubqueryScan))
		return "a plan node is of another kind";
	if (why_not == NULL)
		why_not = expressions_why_not(list_make2(plan->initPlan, expressions), false);
	if (why_not == NULL)
		why_not = expressions_why_not(list_make2(plan->targetlist, plan->qual), IsA(plan, Agg));
	if (why_not == NULL)
		why_not = node_why_not(innerPlan(plan), stmt);
	return why_not != NULL ? why_not : node_why_not(outerPlan(plan), stmt);
}

static const char *
modify_why_not(const ModifyTable *plan, const PlannedStmt *stmt)
{
	const Plan *child = outerPlan(plan);
	Walk		returning = {.system = true};
	const char *why_not;

	if (list_length(plan->resultRelations) != 1 || plan->rootRelation != 0)
		return "the table has partitions or children";
	why_not = expressions_why_not(list_make3(plan->plan.initPlan, plan->onConflictSet, plan->onConflictWhere), false);
	if (why_not != NULL)
		return why_not;
	if (MotConflictSelects(plan))
		return "ON CONFLICT selects";
	if (plan->withCheckOptionLists != NIL)
		return "there is a WITH CHECK OPTION";
	if (walk_expression((Node *) plan->returningLists, &returning))
		return returning.why_not;

	switch (plan->operation)
	{
		case CMD_INSERT:
			if (stmt->rowMarks != NIL)
				return "rows are locked in another way";
			if (IsA(child, ValuesScan))
			{
				const ValuesScan *values = (const ValuesScan *) child;

				if (child->initPlan != NIL || child->qual != NIL)
					return "there are sub-selects in VALUES";
				if (list_length(values->values_lists) *
					list_length((List *) linitial(values->values_lists)) > MAX_VALUES)
					return "the VALUES list is long";
				return expressions_why_not(list_make2(child->targetlist, values->values_lists), false);
			}
			return node_why_not(child, stmt);
		case CMD_UPDATE:
		case CMD_DELETE:
			if (bms_is_empty(plan->fdwDirectModifyPlans))
			{
				why_not = MotRecheckWhyNot(child, plan->rowMarks, stmt);
				return why_not != NULL ? why_not : node_why_not(MotJoinedPlan(plan), stmt);
			}
			if (!IsA(child, ForeignScan) || child->initPlan != NIL)
				return "rows come from another kind of plan";
			return expressions_why_not(list_make2(((const ForeignScan *) child)->fdw_exprs, child->qual), false);
		default:
			return "the command is of another kind";
	}
}

/*
 * A table that is written: its triggers, and the expressions that are
 * evaluated for each row.
 */
const char *
MotTargetWhyNot(Relation rel, const ModifyTable *plan)
{
	TupleDesc	desc = RelationGetDescr(rel);
	TupleConstr *constr = desc->constr;
	bool		generated = constr != NULL && constr->has_generated_stored;
	List	   *expressions = NIL;
	const char *why_not;
	int			i = 0;

	if (rel->trigdesc != NULL && !MotForeignKeysOnly(rel))
		return "there are triggers";
	if (MotHasVirtualColumns(desc))
		return "there are virtual generated columns";
	if (rel->rd_rel->relispartition)
		return "the table is a partition";
	for (i = 0; constr != NULL && i < constr->num_check; i++)
		expressions = lappend(expressions, stringToNode(constr->check[i].ccbin));
	for (i = 0; constr != NULL && i < constr->num_defval; i++)
		if (TupleDescAttr(desc, constr->defval[i].adnum - 1)->attgenerated)
			expressions = lappend(expressions, stringToNode(constr->defval[i].adbin));
	why_not = expressions_why_not(expressions, false);
	if (why_not != NULL)
		return why_not;
	/* the executor plans them for each execution */
	if (MotPlannedAnew((Node *) expressions))
		return "a constraint or generated column has what is computed by settings, or by a function of somebody's own";
	if (generated && plan->operation == CMD_UPDATE)
		return "generated columns are updated";
	if (generated && plan->onConflictAction == ONCONFLICT_UPDATE)
		return "ON CONFLICT updates generated columns";
	if (plan->operation != CMD_INSERT)
		return NULL;

	/* (junk is behind the rest) */
	i = 0;
	foreach_node(TargetEntry, tle, outerPlan(plan)->targetlist)
	{
		Form_pg_attribute att = i < desc->natts ? TupleDescAttr(desc, i) : NULL;

		if (tle->resjunk != (att == NULL))
			return "rows are not of the table's type";
		if (att == NULL)
			continue;
		if (att->attisdropped ? !IsA(tle->expr, Const) || !((Const *) tle->expr)->constisnull :
			exprType((Node *) tle->expr) != att->atttypid)
			return "rows are not of the table's type";
		i++;
	}
	return i < desc->natts ? "rows are not of the table's type" : NULL;
}

/* ------------------------------------------------------------ expressions */

/* (lists may be nested) */
static const char *
expressions_why_not(List *expressions, bool aggregates)
{
	Walk		walk = {.aggregates = aggregates};

	(void) walk_expression((Node *) expressions, &walk);
	return walk.why_not;
}

/* Are functions of the server's own called, if it sorts by this operator?  (it may be in others' families) */
static bool
sorts_by_servers(Oid op)
{
	Oid			family;
	Oid			type;
	CompareType direction;

	return op < FirstNormalObjectId && get_ordering_op_properties(op, &family, &type, &direction) &&
		family < FirstNormalObjectId;
}

static bool
hashes_by_servers(Oid op)
{
	RegProcedure left;
	RegProcedure right;

	return get_opcode(op) < FirstNormalObjectId && get_op_hash_functions(op, &left, &right) &&
		left < FirstNormalObjectId && right < FirstNormalObjectId;
}

/*
 * The server's functions that take values of any array, range or row call what compares or hashes
 * their elements: are these functions the server's own, too?
 */
static bool
compares_by_servers(Oid type)
{
	Oid			element;
	const TypeCacheEntry *entry;

	type = getBaseType(type);
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
			element = get_element_type(type);
			if (!OidIsValid(element))
				return true;
			if (!compares_by_servers(element))
				return false;
			entry = lookup_type_cache(element, TYPECACHE_EQ_OPR | TYPECACHE_CMP_PROC | TYPECACHE_HASH_PROC);
			return OidIsValid(entry->eq_opr) && get_opcode(entry->eq_opr) < FirstNormalObjectId &&
				OidIsValid(entry->cmp_proc) && entry->cmp_proc < FirstNormalObjectId &&
				OidIsValid(entry->hash_proc) && entry->hash_proc < FirstNormalObjectId;
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return type < FirstNormalObjectId;
		default:
			return false;
	}
}

/* GREATEST, LEAST and comparisons of rows call functions that no node names. */
static bool
calls_servers(Node *node)
{
	switch (nodeTag(node))
	{
		case T_MinMaxExpr:
			{
				const TypeCacheEntry *entry = lookup_type_cache(((MinMaxExpr *) node)->minmaxtype, TYPECACHE_CMP_PROC);

				return OidIsValid(entry->cmp_proc) && entry->cmp_proc < FirstNormalObjectId;
			}
		case T_RowCompareExpr:
			foreach_oid(family, ((RowCompareExpr *) node)->opfamilies)
				if (family >= FirstNormalObjectId)
				return false;
			return true;
		default:
			return true;
	}
}

/* Is it one of the server's that are not immutable, but look at no snapshot either? (the usual ones) */
static bool
looks_at_none(Oid funcid)
{
	static const Oid known[] = {
		F_NOW, F_TRANSACTION_TIMESTAMP, F_STATEMENT_TIMESTAMP, F_CLOCK_TIMESTAMP, F_NEXTVAL,
		F_GEN_RANDOM_UUID
	};

	for (int i = 0; i < lengthof(known); i++)
		if (funcid == known[i])
			return true;
	return false;
}

static bool
check_function(Oid funcid, void *context)
{
	Walk	   *walk = (Walk *) context;
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));

	if (!HeapTupleIsValid(tuple))
	{
		walk->why_not = "a function is gone";
		return true;
	}
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId)
		walk->why_not = "a function is in SQL";
	else if (((Form_pg_proc) GETSTRUCT(tuple))->proretset)
		walk->why_not = "a function returns a set";
	if (funcid >= FirstNormalObjectId ||
		(((Form_pg_proc) GETSTRUCT(tuple))->provolatile != PROVOLATILE_IMMUTABLE && !looks_at_none(funcid)))
		may_look = true;
	ReleaseSysCache(tuple);
	return walk->why_not != NULL;
}

static bool
walk_expression(Node *node, Walk *walk)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			{
				Var		   *var = (Var *) node;

				if (MotVarIsOfVersion(var))
					walk->why_not = "RETURNING asks for OLD or NEW";
				else if (var->varattno == 0 || var->vartype == RECORDOID)
					walk->why_not = "a whole row is used as a value";
				else if (var->varattno < 0 && !walk->system && var->varattno != SelfItemPointerAttributeNumber &&
						 var->varattno != TableOidAttributeNumber)
					walk->why_not = "there are system columns";
				break;
			}
		case T_Aggref:
			if (!walk->aggregates)
				walk->why_not = "an aggregate is at an unknown place";
			break;
		case T_NullTest:
			if (((NullTest *) node)->argisrow)
				walk->why_not = "there are composite values";
			break;
		case T_List:
		case T_TargetEntry:
		case T_Const:
		case T_Param:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ArrayExpr:
		case T_CoerceToDomain:
		case T_CoerceToDomainValue:
		case T_SQLValueFunction:
		case T_NextValueExpr:
		case T_CollateExpr:
		case T_SortGroupClause:
		case T_SubscriptingRef:
		case T_RowCompareExpr:
			break;
		case T_SubPlan:
			if (((const SubPlan *) node)->subLinkType == CTE_SUBLINK)
				walk->why_not = "there are WITH queries";
			break;
		default:
			walk->why_not = "an expression is of another kind";
			break;
	}
	if (walk->why_not != NULL)
		return true;
	switch (nodeTag(node))
	{
		case T_List:
		case T_TargetEntry:
		case T_CaseWhen:
			break;
		case T_SortGroupClause:
			{
				const SortGroupClause *clause = (const SortGroupClause *) node;

				may_look |= get_opcode(clause->eqop) >= FirstNormalObjectId ||
					(OidIsValid(clause->sortop) && !sorts_by_servers(clause->sortop));
				break;
			}
		default:
			/* (a domain's conditions are not in the plan) */
			may_look = may_look || IsA(node, CoerceToDomain) || IsA(node, SubPlan) || !calls_servers(node) ||
				!compares_by_servers(exprType(node));
			break;
	}
	if (check_functions_in_node(node, check_function, walk))
		return true;
	return expression_tree_walker(node, walk_expression, walk);
}
