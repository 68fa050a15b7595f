/*-------------------------------------------------------------------------
 *
 * indexcost.c
 *	  What it costs to read an index, and what is assumed where nothing is known, of either kind of table.
 *
 * A generic plan does not know the values of its parameters.  The server then
 * takes a range for a fraction of the table, and LIMIT for a fraction of the
 * rows, so that on a large table the generic plan of a short range looks dearer
 * than planning it anew each time: every execution is planned, which takes many
 * times longer than to run it.  What prepared statements read of tables in
 * memory by a range from one parameter to another is a few rows, however large
 * the table is, and so is what they LIMIT by a parameter: that is what we
 * assume when there is nothing to go by.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "compat/calls.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "relation/relation.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "xact/xact.h"
#include "utils/selfuncs.h"

/* a descent compares about once a level of a binary tree, in memory */
#define DESCENT_COST(rows) (cpu_operator_cost * (1.0 + log((rows) + 1.0) / log(2.0)))

/*
 * A table that was never analyzed is planned as if it had at least as many
 * rows as the server assumes for such a heap table: plans made while it is
 * empty are cached and used when it no longer is.
 */
#define UNKNOWN_TABLE_PAGES 10

/* So many rows at most are between two values, or before a LIMIT, that are not known yet. */
#define UNKNOWN_ROWS 50

double
MotPlannedUnknown(Relation rel, int32 *attr_widths, double tuples)
{
	int32		width = get_rel_data_width(rel, attr_widths) + 28;

	return Max(tuples, rint((double) UNKNOWN_TABLE_PAGES * BLCKSZ / width));
}

double
MotPlannedTuples(Relation rel)
{
	mot_table_stat stat;
	double		tuples;

	mot_table_stats(MotRelationGet(rel)->table, &stat);
	tuples = Max(stat.rows, 0);
	if (rel->rd_rel->reltuples < 0)
		tuples = MotPlannedUnknown(rel, NULL, tuples);
	else if (mot_txn_has_writes(MotSession()))
	{
		/*
		 * the count is of committed rows; ANALYZE may have seen this
		 * transaction's own
		 */
		tuples = Max(tuples, rel->rd_rel->reltuples);
	}
	return tuples;
}

/*
 * All in memory: no page costs, only work.  A descent is a chain of dependent
 * cache misses, an entry one or two more; the rows are the wrapper's business
 * and cost_index's.
 */
void
MotIndexCost(PlannerInfo *root, IndexPath *path, double loop_count,
			 Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
			 double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *bound_quals = NIL;
	int			column = 0;
	bool		open_end = false;	/* a column without "=": later ones only
									 * filter */
	bool		unique_match = index->unique;
	bool		equal_here = false;
	double		descents = 1;
	double		entries;
	double		rows = Max(index->rel->tuples, 1);
	int			quals = 0;
	Cost		startup;
	Cost		total;

	foreach_node(IndexClause, clause, path->indexclauses)
	{
		if (clause->indexcol != column)
		{
			if (!equal_here || clause->indexcol != column + 1)
				open_end = true;
			column = clause->indexcol;
			equal_here = false;
		}
		quals += list_length(clause->indexquals);

		foreach_node(RestrictInfo, rinfo, clause->indexquals)
		{
			Expr	   *expr = rinfo->clause;
			Oid			opno = InvalidOid;

			if (IsA(expr, OpExpr))
				opno = ((OpExpr *) expr)->opno;
			else if (IsA(expr, ScalarArrayOpExpr))
			{
				int			n = MotEstimateArrayLength(root, lsecond(((ScalarArrayOpExpr *) expr)->args));

				opno = ((ScalarArrayOpExpr *) expr)->opno;
				if (n > 1 && !open_end)
					descents *= n;
			}
			/* (a unique index may have any number of nulls) */
			else if (IsA(expr, NullTest) && ((NullTest *) expr)->nulltesttype == IS_NULL)
			{
				equal_here = true;
				unique_match = false;
			}
			equal_here |= OidIsValid(opno) &&
				get_op_opfamily_strategy(opno, index->opfamily[column]) == BTEqualStrategyNumber;
			if (!open_end)
				bound_quals = lappend(bound_quals, rinfo);
		}
	}
	if (open_end || !equal_here || column != index->nkeycolumns - 1)
		unique_match = false;

	/* what part of the index is walked, and what part comes out */
	if (unique_match)
		entries = descents;
	else
	{
		Selectivity walked = clauselist_selectivity(root, add_predicate_to_index_quals(index, bound_quals),
													index->rel->relid, JOIN_INNER, NULL);

		entries = MotCostUnknownRange(bound_quals, Max(rint(walked * rows), 1));
	}
	*selectivity = clauselist_selectivity(root, add_predicate_to_index_quals(index, get_quals_from_indexclauses(path->indexclauses)),
										  index->rel->relid, JOIN_INNER, NULL);
	if (unique_match || entries < rows)
		*selectivity = Min(*selectivity, Max(entries / rows, 1.0e-10));

	startup = DESCENT_COST(rows);
	/* (the wrapper goes to an entry's row at once, and asks no bound again) */
	total = startup * descents +
		entries * (cpu_index_tuple_cost + (index->rel->fdwroutine != NULL ? 1 : quals) * cpu_operator_cost);
	/* of two indexes that do as well, the one with less of keys to walk over */
	total += 0.01 * cpu_operator_cost * ceil(entries * index->ncolumns / 300);

	*startup_cost = startup;
	*total_cost = total;

	/* cost_index charges for heap pages by these two: rows lie in memory */
	*correlation = 1.0;
	*pages = 0;
}

/* Is the value one that only an execution's parameters will say? */
static bool
has_parameters(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN)
		return true;
	return expression_tree_walker(node, has_parameters, context);
}

/* An inequality with an unknown value: what it bounds, and on which side. */
static Node *
unknown_bound(Expr *clause, bool *lower)
{
	Node	   *left;
	Node	   *right;

	if (!is_opclause(clause) || list_length(((OpExpr *) clause)->args) != 2)
		return NULL;
	switch (get_oprrest(((OpExpr *) clause)->opno))
	{
		case F_SCALARLTSEL:
		case F_SCALARLESEL:
			*lower = false;
			break;
		case F_SCALARGTSEL:
		case F_SCALARGESEL:
			*lower = true;
			break;
		default:
			return NULL;
	}
	left = linitial(((OpExpr *) clause)->args);
	right = lsecond(((OpExpr *) clause)->args);
	if (!contain_var_clause(right) && has_parameters(right, NULL))
		return left;
	*lower = !*lower;
	return !contain_var_clause(left) && has_parameters(left, NULL) ? right : NULL;
}

/* "rows", or less if they are between two values that are not known. */
double
MotCostUnknownRange(List *clauses, double rows)
{
	if (rows <= UNKNOWN_ROWS)
		return rows;
	foreach_node(RestrictInfo, rinfo, clauses)
	{
		bool		lower;
		Node	   *bounded = unknown_bound(rinfo->clause, &lower);

		if (bounded == NULL || !lower)
			continue;
		foreach_node(RestrictInfo, end, clauses)
		{
			Node	   *other = unknown_bound(end->clause, &lower);

			if (other != NULL && !lower && equal(bounded, other))
				return UNKNOWN_ROWS;
		}
	}
	return rows;
}

/* LIMIT by a value that is not known, above what is all ours. */
void
MotCostUnknownLimit(RelOptInfo *output_rel, void *extra)
{
	if (!((FinalPathExtraData *) extra)->limit_needed ||
		((FinalPathExtraData *) extra)->count_est >= 0)
		return;
	foreach_ptr(Path, path, output_rel->pathlist)
	{
		if (IsA(path, LimitPath) && path->rows > UNKNOWN_ROWS)
		{
			path->total_cost = path->startup_cost +
				(path->total_cost - path->startup_cost) * UNKNOWN_ROWS / path->rows;
			path->rows = UNKNOWN_ROWS;
		}
	}
}
