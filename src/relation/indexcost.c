/*-------------------------------------------------------------------------
 *
 * indexcost.c
 *	  What it costs to read an index, of either kind of table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "relation/relation.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* comparisons a tree node costs on the way down, entries a border node holds */
#define NODE_FANOUT 11.0
#define NODE_COMPARISONS 4.0

/* can the clauses of this index column be a bound of the range, and is it "="? */
static void
column_bounds(IndexOptInfo *index, IndexClause *clause, bool *bound, bool *equal)
{
	ListCell   *lc;

	foreach(lc, clause->indexquals)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Expr	   *expr = rinfo->clause;
		Oid			op = InvalidOid;

		if (IsA(expr, OpExpr))
			op = ((OpExpr *) expr)->opno;
		else if (IsA(expr, ScalarArrayOpExpr))
			op = ((ScalarArrayOpExpr *) expr)->opno;
		else if (IsA(expr, RowCompareExpr))
		{
			*bound = true;
			continue;
		}
		else if (IsA(expr, NullTest))
		{
			*bound = true;
			if (((NullTest *) expr)->nulltesttype == IS_NULL)
				*equal = true;
			continue;
		}
		if (OidIsValid(op))
		{
			*bound = true;
			if (get_op_opfamily_strategy(op, index->opfamily[clause->indexcol]) == BTEqualStrategyNumber)
				*equal = true;
		}
	}
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
	double		depth;
	int			quals = 0;
	Cost		startup;
	Cost		total;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		bool		bound = false;
		bool		equal = false;
		ListCell   *lc2;

		if (clause->indexcol != column)
		{
			if (!equal_here || clause->indexcol != column + 1)
				open_end = true;
			column = clause->indexcol;
			equal_here = false;
		}
		column_bounds(index, clause, &bound, &equal);
		equal_here |= equal;
		quals += list_length(clause->indexquals);

		foreach(lc2, clause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (IsA(rinfo->clause, ScalarArrayOpExpr))
			{
				ScalarArrayOpExpr *saop = (ScalarArrayOpExpr *) rinfo->clause;
				int			n = estimate_array_length(lsecond(saop->args));

				if (n > 1 && !open_end)
					descents *= n;
			}
			if (bound && !open_end)
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
		Selectivity walked = clauselist_selectivity(root, bound_quals,
													index->rel->relid, JOIN_INNER, NULL);

		entries = Max(rint(walked * rows), 1);
	}
	*selectivity = clauselist_selectivity(root, get_quals_from_indexclauses(path->indexclauses),
										  index->rel->relid, JOIN_INNER, NULL);
	if (unique_match)
		*selectivity = Min(*selectivity, Max(entries / rows, 1.0e-10));

	depth = ceil(log(Max(rows, 2)) / log(NODE_FANOUT));
	startup = depth * NODE_COMPARISONS * cpu_operator_cost;
	total = startup * descents +
		entries * (cpu_index_tuple_cost + quals * cpu_operator_cost);

	*startup_cost = startup;
	*total_cost = total;

	/* cost_index charges for heap pages by these two: rows lie in memory */
	*correlation = 1.0;
	*pages = 0;
}
