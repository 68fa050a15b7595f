/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  From the planner's index paths to foreign scans.
 *
 * Indexes of MOT tables are real catalogue indexes, so the planner's own
 * create_index_paths finds what can be done with them: clauses, join
 * parameterisation, sort orders, directions.  It leaves IndexPaths in the
 * relation's path list; they are taken out again and come back as
 * ForeignPaths, for the executor must never open our indexes as its own.
 *
 * Nothing is read from disk, so there are no page costs: the table has zero
 * pages for the planner, and cost_index then adds processor costs only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"

/*
 * ForeignPath->fdw_private of an index path.  Index 0: by ctid, and the
 * clauses are one RestrictInfo; or the arms of an OR, and the "clauses" are
 * lists of (index, clauses).
 */
#define PATH_INDEX 0
#define PATH_BACKWARD 1
#define PATH_CLAUSES 2

static get_relation_info_hook_type prev_get_relation_info = NULL;

/*
 * The planner sees the catalogue's indexes with the btree operator families that their
 * operators belong to, so that equivalence classes, boolean columns, LIKE
 * prefixes and proofs of uniqueness match.  What else they can do and what they cost is the
 * access method's to say, as of ordinary tables' indexes (relation/indexcost.c).
 */
static void
relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	MotPlanTable *table;

	if (prev_get_relation_info)
		prev_get_relation_info(root, relid, inhparent, rel);

	if (rel->fdwroutine == NULL || rel->fdwroutine->GetForeignRelSize != MotGetForeignRelSize)
		return;

	table = palloc0(sizeof(MotPlanTable));
	rel->fdw_private = table;

	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		MotPlanIndex *pindex = palloc0(sizeof(MotPlanIndex));

		pindex->indexoid = index->indexoid;
		memcpy(pindex->opfamily, index->opfamily, index->nkeycolumns * sizeof(Oid));
		table->families = lappend(table->families, pindex);

		if (index->sortopfamily)
			memcpy(index->opfamily, index->sortopfamily, index->nkeycolumns * sizeof(Oid));
	}
}

void
MotPlanInit(void)
{
	prev_get_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
}

static void
learn_indexes(RelOptInfo *baserel, MotRelation *mr)
{
	MotPlanTable *table = (MotPlanTable *) baserel->fdw_private;

	foreach_ptr(MotPlanIndex, pindex, table->families)
	{
		MotIndex   *index = MotRelationIndex(mr, pindex->indexoid);

		if (index != NULL)
			pindex->key = index->key;
	}
}

void
MotGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	Relation	rel;
	MotRelation *mr;

	MotEngineRequired();

	rel = table_open(relid, NoLock);
	mr = MotRelationGet(rel);
	learn_indexes(baserel, mr);
	baserel->tuples = MotPlannedTuples(rel, NULL);
	table_close(rel, NoLock);

	baserel->pages = 0;			/* nothing is read from disk */
	set_baserel_size_estimates(root, baserel);
	baserel->rows = MotCostUnknownRange(baserel->baserestrictinfo, baserel->rows);
}

/*
 * As much of an index path's sort order as the index keeps: up to its first
 * column whose encoding has no order (unless that has one value), or that the
 * planner takes for constant and the scan does not.
 */
static List *
kept_pathkeys(PlannerInfo *root, RelOptInfo *rel, IndexPath *ipath, MotMatch *match)
{
	const MotKey *key = MotPlanIndexFor(rel, ipath->indexinfo)->key;
	IndexOptInfo shortened = *ipath->indexinfo;
	List	   *possible;
	List	   *kept = NIL;
	ListCell   *lc1,
			   *lc2;
	int			column;

	for (column = 0; column < key->ncolumns; column++)
	{
		if (bms_is_member(column, match->inexact) ||
			(!key->columns[column].ordered && !bms_is_member(column, match->constant)))
			break;
	}
	if (column == key->ncolumns)
		return ipath->path.pathkeys;

	shortened.nkeycolumns = column;
	possible = build_index_pathkeys(root, &shortened, ipath->indexscandir);
	forboth(lc1, ipath->path.pathkeys, lc2, possible)
	{
		if (lfirst(lc1) != lfirst(lc2))
			break;
		kept = lappend(kept, lfirst(lc1));
	}
	return kept;
}

static void
add_index_path(PlannerInfo *root, RelOptInfo *rel, IndexPath *ipath)
{
	MotMatch	match;
	List	   *pathkeys;
	List	   *private;

	if (MotPlanIndexFor(rel, ipath->indexinfo)->key == NULL)
		return;

	MotMatchClauses(root, rel, ipath->indexinfo, ipath->indexclauses, &match);
	pathkeys = kept_pathkeys(root, rel, ipath, &match);
	if (match.conditions == NIL && pathkeys == NIL)
		return;					/* no better than reading it all */

	private = list_make3(makeInteger((int) ipath->indexinfo->indexoid),
						 makeInteger(ScanDirectionIsBackward(ipath->indexscandir)),
						 ipath->indexclauses);
	add_path(rel, (Path *)
			 MotCreateForeignScanPath(root, rel,
									  ipath->path.rows,
									  MotPathIsDisabled(&ipath->path),
									  ipath->path.startup_cost,
									  ipath->path.total_cost,
									  pathkeys,
									  PATH_REQ_OUTER(&ipath->path),
									  private));
}

void
MotGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	MotPlanTable *table = (MotPlanTable *) baserel->fdw_private;
	List	   *others = baserel->pathlist;
	List	   *index_paths;
	RestrictInfo *by_tid;
	Cost		startup,
				total;

	by_tid = MotTidRestriction(root, baserel);
	if (by_tid)
	{
		/*
		 * nothing can be faster, and WHERE CURRENT OF is no expression to
		 * evaluate
		 */
		startup = baserel->baserestrictcost.startup;
		/* with which the planner keeps others than us away from it */
		if (IsA(by_tid->clause, CurrentOfExpr))
			startup -= MotCostOfCurrentOf;
		total = startup + baserel->rows * (cpu_tuple_cost + baserel->baserestrictcost.per_tuple);
		add_path(baserel, (Path *)
				 MotCreateForeignScanPath(root, baserel, baserel->rows, false,
										  startup, total, NIL,
										  baserel->lateral_relids,
										  list_make3(makeInteger(0), makeInteger(0),
													 list_make1(by_tid))));
		return;
	}

	/* what the server does itself for a plain table */
	check_index_predicates(root, baserel);

	MotDeriveRowClauses(root, baserel);
	if (table->derived != NIL)
	{
		foreach_node(IndexOptInfo, index, baserel->indexlist)
		{
			index->indrestrictinfo = list_concat_copy(index->indrestrictinfo, table->derived);
		}
	}

	baserel->pathlist = NIL;
	create_index_paths(root, baserel);
	index_paths = baserel->pathlist;
	baserel->pathlist = others;
	baserel->partial_pathlist = NIL;

	startup = baserel->baserestrictcost.startup + baserel->reltarget->cost.startup + MotCostOfDisabled(!enable_seqscan);
	total = startup +
		Max(baserel->tuples, MOT_MIN_SEQUENTIAL_ROWS) * (cpu_tuple_cost + baserel->baserestrictcost.per_tuple) +
		baserel->rows * baserel->reltarget->cost.per_tuple;
	add_path(baserel, (Path *)
			 MotCreateForeignScanPath(root, baserel, baserel->rows, !enable_seqscan,
									  startup, total, NIL,
									  baserel->lateral_relids, NIL));
	foreach_ptr(Path, path, index_paths)
	{
		if (IsA(path, IndexPath))
			add_index_path(root, baserel, (IndexPath *) path);
	}
	MotAddUnionPaths(root, baserel);
}

/* LIMIT by a value that is not known, above what is all ours. */
void
MotGetForeignUpperPaths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
						RelOptInfo *output_rel, void *extra)
{
	if (stage == UPPERREL_FINAL)
		MotCostUnknownLimit(output_rel, extra);
}

/* A path of a partitioned join: its clauses speak of the child from now on. */
List *
MotReparameterize(PlannerInfo *root, List *fdw_private, RelOptInfo *child_rel)
{
	List	   *clauses;

	if (fdw_private == NIL)
		return NIL;
	clauses = (List *) list_nth(fdw_private, PATH_CLAUSES);
	if (clauses != NIL && IsA(linitial(clauses), List))
	{
		List	   *arms = NIL;

		foreach_ptr(List, arm, clauses)
			arms = lappend(arms, list_make2(linitial(arm), MotAdjustToChild(root, lsecond(arm), child_rel)));
		clauses = arms;
	}
	else
		clauses = (List *) MotAdjustToChild(root, (Node *) clauses, child_rel);
	return list_make3(list_nth(fdw_private, PATH_INDEX),
					  list_nth(fdw_private, PATH_BACKWARD),
					  clauses);
}

static IndexOptInfo *
find_index(RelOptInfo *rel, Oid indexoid)
{
	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		if (index->indexoid == indexoid)
			return index;
	}
	elog(ERROR, "no planning data for index %u", indexoid);
	return NULL;				/* keep compiler quiet */
}

/* A plan's private list up to the number of conditions. */
List *
MotPlanPrivate(Oid indexoid, int backward, int nvalues, int narms)
{
	return list_make5_int((int) indexoid, backward, 0, nvalues, narms);
}

/* The conditions of one index scan; their values and the clauses they came from. */
List *
MotPlanConditions(List *private, MotMatch *match, List **values, List **clauses)
{
	private = lappend_int(private, list_length(match->conditions));
	foreach_ptr(MotCondition, condition, match->conditions)
	{
		private = lappend_int(private, condition->kind);
		private = lappend_int(private, condition->column);
		private = lappend_int(private, condition->strategy);
		private = lappend_int(private, list_length(condition->values));
		foreach_oid(oid, condition->valuetypes)
			private = lappend_int(private, (int) oid);
		*values = list_concat(*values, copyObject(condition->values));
		*clauses = lappend(*clauses, copyObject(condition->clause));
	}
	return private;
}

/* A scan by ctid: the condition is the plan's one and only. */
static ForeignScan *
make_tid_plan(PlannerInfo *root, RelOptInfo *rel, List *tlist, List *scan_clauses,
			  RestrictInfo *condition)
{
	Node	   *value = copyObject(MotTidValue(root, rel, condition->clause));
	List	   *recheck = NIL;
	List	   *private;

	private = lappend_int(MotPlanPrivate(InvalidOid, 0, 1, 1), 1);
	private = lappend_int(private, MOT_CONDITION_TID);

	/* the row that the cursor is at stays the same row */
	if (!IsA(condition->clause, CurrentOfExpr))
		recheck = list_make1(copyObject(condition->clause));

	scan_clauses = list_delete_ptr(list_copy(scan_clauses), condition);
	return make_foreignscan(tlist, extract_actual_clauses(scan_clauses, false),
							rel->relid, list_make2(value, recheck), private, NIL, NIL, NULL);
}

ForeignScan *
MotGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid relid,
				  ForeignPath *best_path, List *tlist, List *scan_clauses,
				  Plan *outer_plan)
{
	List	   *private = best_path->fdw_private;
	List	   *clauses;
	List	   *plan_private = NIL;
	List	   *values = NIL;
	List	   *recheck = NIL;
	List	   *filter = NIL;
	int			narms;
	Oid			indexoid;
	MotMatch	match;

	if (private == NIL)
		return make_foreignscan(tlist, extract_actual_clauses(scan_clauses, false),
								baserel->relid, list_make1(NIL),
								lappend_int(MotPlanPrivate(InvalidOid, 0, 0, 1), 0),
								NIL, NIL, NULL);

	indexoid = (Oid) intVal(list_nth(private, PATH_INDEX));
	clauses = (List *) list_nth(private, PATH_CLAUSES);
	if (!OidIsValid(indexoid) && IsA(linitial(clauses), RestrictInfo))
		return make_tid_plan(root, baserel, tlist, scan_clauses,
							 linitial_node(RestrictInfo, clauses));
	if (!OidIsValid(indexoid))
	{
		narms = list_length(clauses);
		foreach_ptr(List, arm, clauses)
		{
			List	   *conditions = NIL;

			indexoid = (Oid) intVal(linitial(arm));
			if (plan_private == NIL)
				plan_private = MotPlanPrivate(indexoid, 0, 0, narms);
			else
				plan_private = lappend_int(plan_private, (int) indexoid);
			MotMatchClauses(root, baserel, find_index(baserel, indexoid),
							(List *) lsecond(arm), &match);
			plan_private = MotPlanConditions(plan_private, &match, &values, &conditions);
			recheck = lappend(recheck, conditions);
		}
		match.enforced = NIL;	/* by no arm for all rows */
	}
	else
	{
		plan_private = MotPlanPrivate(indexoid, intVal(list_nth(private, PATH_BACKWARD)), 0, 1);
		MotMatchClauses(root, baserel, find_index(baserel, indexoid), clauses, &match);
		plan_private = MotPlanConditions(plan_private, &match, &values, &recheck);
	}
	lfirst_int(list_nth_cell(plan_private, MOT_PLAN_NVALUES)) = list_length(values);
	values = lappend(values, recheck);

	/* what the bounds do not see to is left for the executor to check */
	foreach_node(RestrictInfo, rinfo, scan_clauses)
	{
		if (rinfo->pseudoconstant)
			continue;
		if (is_redundant_with_indexclauses(rinfo, match.enforced))
			continue;
		filter = lappend(filter, rinfo->clause);
	}

	return make_foreignscan(tlist, filter, baserel->relid, values, plan_private,
							NIL, NIL, NULL);
}
