/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  What reading a MOT table costs, in the planner's units.
 *
 * Nothing is read from disk, so there are no page costs: the table has zero
 * pages for the planner, and cost_index then adds processor costs only.
 *
 * The planner sees the catalogue's indexes through IndexOptInfo.  A hook makes
 * them look as our scans can use them: with the btree operator families their
 * operators belong to (so that equivalence classes, boolean columns, LIKE
 * prefixes and proofs of uniqueness match), arrays and nulls searchable, and
 * prices from here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/*
 * A descent compares about once a level of a binary tree, in memory.  A row
 * reached through an index is a cache miss that a sequential scan would not
 * have had: charged as an operator.
 */
#define DESCENT_COST(tuples) (cpu_operator_cost * (1.0 + log((tuples) + 1.0) / log(2.0)))
#define ROW_FETCH_COST cpu_operator_cost

static get_relation_info_hook_type previous_relation_info_hook;

static void adjust_relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel);
static void index_cost(PlannerInfo *root, IndexPath *path, double loop_count,
					   Cost *startup, Cost *total, Selectivity *selectivity,
					   double *correlation, double *pages);

void
MotCostInit(void)
{
	previous_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = adjust_relation_info;
}

static void
adjust_relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	MotPlanTable *table;

	if (previous_relation_info_hook)
		previous_relation_info_hook(root, relid, inhparent, rel);

	if (rel->fdwroutine == NULL || rel->fdwroutine->GetForeignRelSize != MotGetForeignRelSize)
		return;

	table = palloc0(sizeof(MotPlanTable));
	rel->fdw_private = table;

	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		MotPlanIndex *pindex = palloc0(sizeof(MotPlanIndex));
		int			i;

		pindex->indexoid = index->indexoid;
		pindex->ncolumns = index->nkeycolumns;
		memcpy(pindex->opfamily, index->opfamily, index->nkeycolumns * sizeof(Oid));
		table->families = lappend(table->families, pindex);

		if (index->sortopfamily)
			memcpy(index->opfamily, index->sortopfamily, index->nkeycolumns * sizeof(Oid));
		index->amcanorderbyop = false;
		index->amoptionalkey = true;
		index->amsearcharray = true;
		index->amsearchnulls = true;
		index->amhasgettuple = true;
		index->amhasgetbitmap = false;
		index->amcanparallel = false;
		index->amcanmarkpos = false;
		index->amcostestimate = index_cost;
		for (i = 0; i < index->ncolumns; i++)
			index->canreturn[i] = false;
	}
}

void
MotCostSequential(PlannerInfo *root, RelOptInfo *rel, Cost *startup, Cost *total)
{
	*startup = rel->baserestrictcost.startup + rel->reltarget->cost.startup;
	*startup += MotCostOfDisabled(!enable_seqscan);
	*total = *startup +
		Max(rel->tuples, MOT_MIN_SEQUENTIAL_ROWS) * (cpu_tuple_cost + rel->baserestrictcost.per_tuple) +
		rel->rows * rel->reltarget->cost.per_tuple;
}

/* LIMIT by a value that is not known, above what is all ours. */
void
MotGetForeignUpperPaths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
						RelOptInfo *output_rel, void *extra)
{
	if (stage == UPPERREL_FINAL)
		MotCostUnknownLimit(output_rel, extra);
}

/* How many different values, at most, the scan looks up one by one. */
static double
count_lookups(PlannerInfo *root, MotMatch *match)
{
	double		lookups = 1;

	foreach_ptr(MotCondition, condition, match->conditions)
	{
		if (condition->kind == MOT_CONDITION_ARRAY)
			lookups *= Max(1, MotEstimateArrayLength(root, linitial(condition->values)));
	}
	return lookups;
}

/*
 * amcostestimate.  The caller (cost_index) adds cpu_tuple_cost for each row
 * fetched and the cost of the clauses that are not index clauses.
 */
static void
index_cost(PlannerInfo *root, IndexPath *path, double loop_count,
		   Cost *startup, Cost *total, Selectivity *selectivity,
		   double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	RelOptInfo *rel = index->rel;
	MotMatch	match;
	double		lookups;
	double		rows;
	List	   *quals = NIL;
	QualCost	filter;

	MotMatchClauses(root, rel, index, path->indexclauses, &match);
	foreach_ptr(MotCondition, condition, match.conditions)
		quals = lappend(quals, condition->source);

	lookups = count_lookups(root, &match);
	if (index->unique && match.single)
		rows = Min(1.0, rel->tuples);
	else
	{
		rows = rel->tuples * clauselist_selectivity(root, quals, rel->relid, JOIN_INNER, NULL);
		if (rows < 1.0)
			rows = 1.0;
		else
			rows = rint(rows);
		rows = MotCostUnknownRange(quals, rows);
	}

	/* more lookups than rows find nothing, but have to look */
	cost_qual_eval(&filter, match.leftover, root);
	*startup = DESCENT_COST(rel->tuples) + filter.startup;
	*total = *startup + (lookups - 1) * DESCENT_COST(rel->tuples) +
		rows * (cpu_index_tuple_cost + ROW_FETCH_COST + filter.per_tuple);
	*selectivity = rel->tuples > 0 ? Min(1.0, rows / rel->tuples) : 1.0;
	*correlation = 1.0;			/* no pages to jump between */
	*pages = 0;
}
