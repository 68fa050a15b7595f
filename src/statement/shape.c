/*-------------------------------------------------------------------------
 *
 * shape.c
 *	  May a plan be run without the executor?  If not, why not?
 *
 * What is let in: reading MOT tables (by key, range or whole), nested loops
 * of that, LIMIT, sorting, row locks, aggregates without grouping, single rows;
 * INSERT, UPDATE and DELETE; sub-selects of all that.  Expressions may have anything that keeps no state between two
 * executions that it must not: no composite values (their row types are looked
 * up once), no functions in SQL (these keep plans of their own).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "statement/statement.h"
#include "utils/syscache.h"

#define MAX_VALUES 5000			/* expressions of a VALUES list */

typedef struct Walk
{
	const char *why_not;
	bool		aggregates;		/* allowed at this place */
	bool		system;			/* columns, too */
} Walk;

static const char *node_why_not(const Plan *plan, const PlannedStmt *stmt);
static const char *modify_why_not(const ModifyTable *plan, const PlannedStmt *stmt);
static const char *expressions_why_not(Node *node, bool aggregates);
static const char *returning_why_not(List *returning);
static bool walk_expression(Node *node, Walk *walk);

const char *
MotWhyNot(const PlannedStmt *stmt)
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

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	why_not = expressions_why_not((Node *) plan->initPlan, false);
	if (why_not != NULL)
		return why_not;

	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			if (((const ForeignScan *) plan)->scan.scanrelid == 0 || outerPlan(plan) != NULL ||
				((const ForeignScan *) plan)->operation != CMD_SELECT)
				return "a scan is of an unknown kind";
			if (list_nth_int(((const ForeignScan *) plan)->fdw_private, MOT_PLAN_LOCK) != 0)
				return "there are triggers";
			why_not = expressions_why_not((Node *) ((const ForeignScan *) plan)->fdw_exprs, false);
			break;
		case T_NestLoop:
			{
				const NestLoop *join = (const NestLoop *) plan;

				switch (join->join.jointype)
				{
					case JOIN_INNER:
					case JOIN_LEFT:
					case JOIN_SEMI:
					case JOIN_ANTI:
						break;
					default:
						return "a join is of another kind";
				}
				why_not = expressions_why_not((Node *) join->join.joinqual, false);
				if (why_not == NULL)
					why_not = node_why_not(innerPlan(plan), stmt);
				break;
			}
		case T_Agg:
			why_not = MotAggregateWhyNot((const Agg *) plan);
			break;
		case T_LockRows:
			if (plan->qual != NIL)
				return "a plan node is of another kind";
			why_not = MotLockWhyNot((const LockRows *) plan, stmt);
			break;
		case T_Sort:
			if (plan->qual != NIL)
				return "a plan node is of another kind";
			break;
		case T_Limit:
			if (((const Limit *) plan)->limitOption != LIMIT_OPTION_COUNT)
				return "LIMIT has WITH TIES";
			why_not = expressions_why_not(((const Limit *) plan)->limitCount, false);
			if (why_not == NULL)
				why_not = expressions_why_not(((const Limit *) plan)->limitOffset, false);
			break;
		case T_Result:
			if (plan->qual != NIL)
				return "a plan node is of another kind";
			why_not = expressions_why_not(((const Result *) plan)->resconstantqual, false);
			break;
		case T_Material:
		case T_Memoize:
			if (plan->qual != NIL)
				return "a plan node is of another kind";
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
		case T_Unique:
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
	if (why_not == NULL)
		why_not = expressions_why_not((Node *) plan->targetlist, IsA(plan, Agg));
	if (why_not == NULL)
		why_not = expressions_why_not((Node *) plan->qual, IsA(plan, Agg));
	return why_not != NULL ? why_not : node_why_not(outerPlan(plan), stmt);
}

static const char *
modify_why_not(const ModifyTable *plan, const PlannedStmt *stmt)
{
	const Plan *child = outerPlan(plan);
	const char *why_not;

	if (list_length(plan->resultRelations) != 1 || plan->rootRelation != 0)
		return "the table has partitions or children";
	why_not = expressions_why_not((Node *) plan->plan.initPlan, false);
	if (why_not != NULL)
		return why_not;
	if (plan->onConflictAction == ONCONFLICT_UPDATE)
	{
		why_not = expressions_why_not((Node *) plan->onConflictSet, false);
		if (why_not == NULL)
			why_not = expressions_why_not(plan->onConflictWhere, false);
		if (why_not != NULL)
			return why_not;
	}
	if (plan->withCheckOptionLists != NIL)
		return "there is a WITH CHECK OPTION";
	why_not = returning_why_not(plan->returningLists);
	if (why_not != NULL)
		return why_not;

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
				why_not = expressions_why_not((Node *) child->targetlist, false);
				return why_not != NULL ? why_not :
					expressions_why_not((Node *) values->values_lists, false);
			}
			return node_why_not(child, stmt);
		case CMD_UPDATE:
		case CMD_DELETE:
			if (bms_is_empty(plan->fdwDirectModifyPlans))
			{
				why_not = MotJoinedWhyNot(plan, stmt);
				return why_not != NULL ? why_not : node_why_not(MotJoinedPlan(plan), stmt);
			}
			if (!IsA(child, ForeignScan) || child->initPlan != NIL)
				return "rows come from another kind of plan";
			return expressions_why_not((Node *) ((const ForeignScan *) child)->fdw_exprs, false);
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
	const char *why_not = NULL;

	if (rel->trigdesc != NULL && !MotForeignKeysOnly(rel))
		return "there are triggers";
	for (int i = 0; constr != NULL && why_not == NULL && i < constr->num_check; i++)
		why_not = expressions_why_not(stringToNode(constr->check[i].ccbin), false);
	for (int i = 0; constr != NULL && why_not == NULL && i < constr->num_defval; i++)
		if (TupleDescAttr(desc, constr->defval[i].adnum - 1)->attgenerated)
			why_not = expressions_why_not(stringToNode(constr->defval[i].adbin), false);
	if (rel->rd_rel->relispartition)
		why_not = "the table is a partition";
	if (MotHasVirtualColumns(desc))
		why_not = "there are virtual generated columns";
	if (why_not == NULL && plan->operation == CMD_UPDATE &&
		constr != NULL && constr->has_generated_stored)
		why_not = "generated columns are updated";
	if (why_not == NULL && plan->onConflictAction == ONCONFLICT_UPDATE &&
		constr != NULL && constr->has_generated_stored)
		why_not = "ON CONFLICT updates generated columns";
	if (why_not == NULL && plan->operation == CMD_INSERT)
	{
		List	   *targetlist = outerPlan(plan)->targetlist;
		int			i = 0;

		/* (junk is behind the rest) */
		if (list_length(targetlist) < desc->natts)
			return "rows are not of the table's type";
		foreach_node(TargetEntry, tle, targetlist)
		{
			Form_pg_attribute att;

			if (i == desc->natts)
			{
				if (!tle->resjunk)
					return "rows are not of the table's type";
				continue;
			}
			att = TupleDescAttr(desc, i++);
			if (tle->resjunk ||
				(!att->attisdropped && exprType((Node *) tle->expr) != att->atttypid) ||
				(att->attisdropped && (!IsA(tle->expr, Const) || !((Const *) tle->expr)->constisnull)))
				return "rows are not of the table's type";
		}
	}
	return why_not;
}

/* ------------------------------------------------------------ expressions */

static const char *
expressions_why_not(Node *node, bool aggregates)
{
	Walk		walk = {NULL, aggregates, false};

	(void) walk_expression(node, &walk);
	return walk.why_not;
}

static const char *
returning_why_not(List *returning)
{
	Walk		walk = {NULL, false, true};

	(void) walk_expression((Node *) returning, &walk);
	return walk.why_not;
}

static const char *
function_why_not(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	const char *why_not = NULL;
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		return "a function is gone";
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prolang == SQLlanguageId)
		why_not = "a function is in SQL";
	else if (form->proretset)
		why_not = "a function returns a set";
	ReleaseSysCache(tuple);
	return why_not;
}

static bool
check_function(Oid funcid, void *context)
{
	Walk	   *walk = (Walk *) context;

	if (walk->why_not == NULL)
		walk->why_not = function_why_not(funcid);
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
				else if (var->varattno == 0)
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
			break;
		case T_SubPlan:
			walk->why_not = MotSubselectWhyNot((const SubPlan *) node);
			break;
		case T_RowCompareExpr:
			break;
		default:
			walk->why_not = "an expression is of another kind";
			break;
	}
	if (walk->why_not != NULL)
		return true;
	if (check_functions_in_node(node, check_function, walk))
		return true;
	return expression_tree_walker(node, walk_expression, walk);
}
