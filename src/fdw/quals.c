/*-------------------------------------------------------------------------
 *
 * quals.c
 *	  Which of a query's clauses bound an index, and how.
 *
 * The planner's create_index_paths matches clauses to index columns as it
 * does for a btree.  What a scan of ours makes of them is decided here, once,
 * for costs, plans and EXPLAIN alike:
 *
 *	- leading columns that have one value (=, IS NULL) or several (IN): points
 *	- behind them, one column that has a range (<, <=, >=, >, IS NOT NULL, row
 *	  comparison); none if the column's encoding has no order
 *	- all else is a filter
 *
 * Bounds are exact (the key codec compares as the operators do), except those
 * of a row comparison and of some comparisons between types (see
 * MotKeyConvertIsLossy): these are checked again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

static MotCondition *make_row_condition(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
										const MotPlanIndex *pindex, int column, RowCompareExpr *row);

MotPlanIndex *
MotPlanIndexFor(RelOptInfo *rel, IndexOptInfo *index)
{
	MotPlanTable *table = (MotPlanTable *) rel->fdw_private;

	foreach_ptr(MotPlanIndex, pindex, table->families)
	{
		if (pindex->indexoid == index->indexoid)
			return pindex;
	}
	elog(ERROR, "no planning data for index %u", index->indexoid);
	return NULL;				/* keep compiler quiet */
}

/* The type a comparison value has: the operator's, unless that is "any". */
static Oid
value_type(Oid declared, Node *column)
{
	Oid			type = declared;

	if (IsPolymorphicType(type))
		type = exprType(column);
	return getBaseType(type);
}

/*
 * One clause on one column as a condition; NULL if it cannot bound a scan.  Of a
 * plan's clauses the columns are those of the index, and there is no root.
 */
MotCondition *
MotMakeCondition(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
				 const MotPlanIndex *pindex, int column, Node *clause)
{
	MotCondition *condition;

	if (IsA(clause, RowCompareExpr))
		return make_row_condition(root, rel, index, pindex, column, (RowCompareExpr *) clause);
	condition = palloc0(sizeof(MotCondition));
	condition->column = column;
	condition->clause = clause;

	if (IsA(clause, OpExpr) || IsA(clause, ScalarArrayOpExpr))
	{
		bool		array = IsA(clause, ScalarArrayOpExpr);
		Oid			opno = array ? ((ScalarArrayOpExpr *) clause)->opno : ((OpExpr *) clause)->opno;
		List	   *args = array ? ((ScalarArrayOpExpr *) clause)->args : ((OpExpr *) clause)->args;
		Oid			left,
					right;

		condition->kind = array ? MOT_CONDITION_ARRAY : MOT_CONDITION_COMPARE;
		condition->strategy = get_op_opfamily_strategy(opno, pindex->opfamily[column]);
		if (condition->strategy == 0 || list_length(args) != 2)
			return NULL;
		op_input_types(opno, &left, &right);
		condition->valuetypes = list_make1_oid(value_type(right, linitial(args)));
		condition->values = list_make1(lsecond(args));
		condition->lossy = MotKeyConvertIsLossy(pindex->key->columns[column].typid,
												linitial_oid(condition->valuetypes));
		condition->point = (condition->strategy == BTEqualStrategyNumber && !condition->lossy);
		if (array && !(condition->point && ((ScalarArrayOpExpr *) clause)->useOr))
			return NULL;
		return condition;
	}
	if (IsA(clause, NullTest))
	{
		NullTest   *test = (NullTest *) clause;

		condition->kind = test->nulltesttype == IS_NULL ?
			MOT_CONDITION_NULL : MOT_CONDITION_NOT_NULL;
		condition->point = (test->nulltesttype == IS_NULL);
		return condition;
	}
	return NULL;
}

/* one of a table's clauses */
static MotCondition *
condition_of(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, const MotPlanIndex *pindex,
			 int column, RestrictInfo *rinfo)
{
	MotPlanTable *table = (MotPlanTable *) rel->fdw_private;
	MotCondition *condition;
	ListCell   *lc1,
			   *lc2;

	forboth(lc1, table->derived, lc2, table->origin)
		if (lfirst(lc1) == rinfo)
	{
		rinfo = lfirst_node(RestrictInfo, lc2);
		break;
	}
	condition = MotMakeCondition(root, rel, index, pindex, column, (Node *) rinfo->clause);
	if (condition != NULL)
		condition->source = rinfo;
	return condition;
}

static inline bool
is_column(Node *node, int column, IndexOptInfo *index)
{
	if (index != NULL)
		return match_index_to_operand(node, column, index);
	return IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR &&
		((Var *) node)->varattno == column + 1;
}

/* a row comparison's strategy for its first columns alone, which cannot tell of rows equal in them */
static int
or_equal(int strategy)
{
	return strategy == BTLessStrategyNumber ? BTLessEqualStrategyNumber :
		strategy == BTGreaterStrategyNumber ? BTGreaterEqualStrategyNumber : strategy;
}

/*
 * A row comparison whose first column is the index's "column": it can bound
 * the index as far as its columns are the index's in order, compared in one
 * direction of the key's bytes.
 */
static MotCondition *
make_row_condition(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
				   const MotPlanIndex *pindex, int column, RowCompareExpr *row)
{
	MotCondition *condition = palloc0(sizeof(MotCondition));
	bool		var_on_left = is_column(linitial(row->largs), column, index);
	List	   *vars = var_on_left ? row->largs : row->rargs;
	List	   *values = var_on_left ? row->rargs : row->largs;
	int			i;

	condition->kind = MOT_CONDITION_ROW;
	condition->lossy = true;
	condition->column = column;
	condition->clause = (Node *) row;

	for (i = 0; i < list_length(vars) && column + i < pindex->key->ncolumns; i++)
	{
		Oid			opno = list_nth_oid(row->opnos, i);
		Node	   *value = list_nth(values, i);
		Oid			left,
					right;
		int			strategy;

		if (!var_on_left)
			opno = get_commutator(opno);
		if (!OidIsValid(opno) ||
			!is_column(list_nth(vars, i), column + i, index) ||
			!MotPlanIndexIsOrdered(pindex, column + i) ||
			pindex->key->columns[column + i].descending != pindex->key->columns[column].descending)
			break;
		if (index != NULL &&
			(bms_is_member(rel->relid, pull_varnos(root, value)) || contain_volatile_functions(value)))
			break;
		if (index != NULL && OidIsValid(index->indexcollations[column + i]) &&
			index->indexcollations[column + i] != list_nth_oid(row->inputcollids, i))
			break;
		strategy = get_op_opfamily_strategy(opno, pindex->opfamily[column + i]);
		if (strategy == 0 || strategy == BTEqualStrategyNumber ||
			(i > 0 && strategy != condition->strategy))
			break;
		/* (an enum that is taken in turn bounds alone) */
		if (i > 0 && (pindex->key->columns[column].enumerated || pindex->key->columns[column + i].enumerated))
			break;
		condition->strategy = strategy;
		op_input_types(opno, &left, &right);
		condition->valuetypes = lappend_oid(condition->valuetypes,
											value_type(right, list_nth(vars, i)));
		condition->values = lappend(condition->values, value);
	}
	if (condition->values == NIL)
		return NULL;

	if (list_length(condition->values) < list_length(vars))
		condition->strategy = or_equal(condition->strategy);
	return condition;
}

/*
 * Which of the conditions on each column bound a scan; the result is the sources of
 * those whose bounds are exact.
 */
List *
MotChooseConditions(const MotPlanIndex *pindex, List **bounding, MotMatch *match)
{
	List	   *used = NIL;
	int			column;

	memset(match, 0, sizeof(MotMatch));
	for (column = 0; column < pindex->key->ncolumns; column++)
	{
		MotCondition *point = NULL;

		/* one value is better than several */
		foreach_ptr(MotCondition, condition, bounding[column])
		{
			if (condition->point &&
				(point == NULL ||
				 (point->kind == MOT_CONDITION_ARRAY && condition->kind != MOT_CONDITION_ARRAY)))
				point = condition;
		}
		if (point == NULL)
			break;
		match->conditions = lappend(match->conditions, point);
		used = lappend(used, point->source);
		if (point->kind == MOT_CONDITION_COMPARE)
			match->constant = bms_add_member(match->constant, column);
	}

	if (column < pindex->key->ncolumns)
	{
		foreach_ptr(MotCondition, condition, bounding[column])
		{
			if (condition->kind != MOT_CONDITION_NOT_NULL && !MotPlanIndexIsOrdered(pindex, column))
				continue;
			match->conditions = lappend(match->conditions, condition);
			if (!condition->lossy)
				used = lappend(used, condition->source);
			else if (condition->strategy == BTEqualStrategyNumber)
				match->inexact = bms_add_member(match->inexact, column);
		}
	}

	return used;
}

void
MotMatchClauses(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
				List *indexclauses, MotMatch *match)
{
	MotPlanIndex *pindex = MotPlanIndexFor(rel, index);
	List	   *bounding[INDEX_MAX_KEYS] = {NIL};
	List	   *used;			/* RestrictInfos whose bounds are exact */

	foreach_node(IndexClause, ic, indexclauses)
	{
		foreach_node(RestrictInfo, qual, ic->indexquals)
		{
			MotCondition *condition = condition_of(root, rel, index, pindex, ic->indexcol, qual);

			if (condition)
				bounding[ic->indexcol] = lappend(bounding[ic->indexcol], condition);
		}
	}
	used = MotChooseConditions(pindex, bounding, match);

	foreach_node(IndexClause, ic, indexclauses)
	{
		if (!ic->lossy && list_difference_ptr(ic->indexquals, used) == NIL)
			match->enforced = lappend(match->enforced, ic);
	}
}

/*
 * For every restriction that is a row comparison on this table, add the
 * comparison of its first column, which it implies: (a, b) > (1, 2) gives
 * a >= 1.  create_index_paths then considers the indexes it can use; which
 * restriction it came from is in MotPlanTable.
 */
void
MotDeriveRowClauses(PlannerInfo *root, RelOptInfo *rel)
{
	MotPlanTable *table = (MotPlanTable *) rel->fdw_private;

	foreach_node(RestrictInfo, rinfo, rel->baserestrictinfo)
	{
		RowCompareExpr *row = (RowCompareExpr *) rinfo->clause;
		int			strategy;
		Oid			opfamily,
					left,
					right,
					opno;
		Expr	   *clause;

		if (!IsA(row, RowCompareExpr) || rinfo->pseudoconstant)
			continue;
		opfamily = linitial_oid(row->opfamilies);
		get_op_opfamily_properties(linitial_oid(row->opnos), opfamily, false,
								   &strategy, &left, &right);
		strategy = or_equal(strategy);
		if (strategy != BTLessEqualStrategyNumber && strategy != BTGreaterEqualStrategyNumber)
			continue;
		opno = get_opfamily_member(opfamily, left, right, strategy);
		if (!OidIsValid(opno))
			continue;
		clause = make_opclause(opno, BOOLOID, false,
							   copyObject(linitial(row->largs)),
							   copyObject(linitial(row->rargs)),
							   InvalidOid, linitial_oid(row->inputcollids));
		table->derived = lappend(table->derived,
								 MotMakeRestrictInfoLike(root, clause, rinfo));
		table->origin = lappend(table->origin, rinfo);
	}
}
