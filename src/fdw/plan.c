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
#include "utils/lsyscache.h"

/*
 * ForeignPath->fdw_private: index scans, each a list of index, whether backward, and clauses;
 * several for OR (union.c).  By ctid: one RestrictInfo.
 */

static MotRelationInfoHookType prev_relation_info = NULL;

/* (Only those of nondeterministic collations are, so tables are not opened here.) */
static bool
is_blind(Oid relid, const IndexOptInfo *info)
{
	for (int i = 0; OidIsValid(relid) && i < info->nkeycolumns; i++)
	{
		Relation	rel;
		MotIndex   *index;
		bool		blind;

		if (!OidIsValid(info->indexcollations[i]) || get_collation_isdeterministic(info->indexcollations[i]))
			continue;
		rel = RelationIdGetRelation(relid);
		index = MotRelationIndex(MotRelationGet(rel), info->indexoid);
		blind = index != NULL && index->key->blind;
		RelationClose(rel);
		return blind;
	}
	return false;
}

/*
 * The planner sees the catalogue's indexes with the btree operator families that their
 * operators belong to, so that equivalence classes, boolean columns, LIKE
 * prefixes and proofs of uniqueness match.  What else they can do and what they cost is the
 * access method's to say, as of ordinary tables' indexes (relation/indexcost.c).
 */
static void
relation_info(MOT_RELATION_INFO_PARAMETERS)
{
	MotPlanTable *table;
	List	   *blind = NIL;

	if (prev_relation_info)
		prev_relation_info(MOT_RELATION_INFO_ARGUMENTS);

	if (rel->fdwroutine == NULL || rel->fdwroutine->GetForeignRelSize != MotGetForeignRelSize)
		return;

	table = palloc0(sizeof(MotPlanTable));
	rel->fdw_private = table;

	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		MotPlanIndex *pindex;

		if (is_blind(MotRelationInfoOid(), index))
		{
			blind = lappend(blind, index);
			continue;
		}
		pindex = palloc0(sizeof(MotPlanIndex));
		pindex->indexoid = index->indexoid;
		memcpy(pindex->opfamily, index->opfamily, index->nkeycolumns * sizeof(Oid));
		table->families = lappend(table->families, pindex);

		if (index->sortopfamily)
			memcpy(index->opfamily, index->sortopfamily, index->nkeycolumns * sizeof(Oid));
	}
	if (blind != NIL)
		rel->indexlist = list_difference_ptr(rel->indexlist, blind);
}

void
MotPlanInit(void)
{
	prev_relation_info = MotRelationInfoHook;
	MotRelationInfoHook = relation_info;
}

void
MotGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	Relation	rel;
	MotRelation *mr;

	MotEngineRequired();

	rel = table_open(relid, NoLock);
	mr = MotRelationGet(rel);
	foreach_ptr(MotPlanIndex, pindex, ((MotPlanTable *) baserel->fdw_private)->families)
	{
		MotIndex   *index = MotRelationIndex(mr, pindex->indexoid);

		if (index != NULL)
		{
			pindex->key = index->key;
			pindex->disordered = mot_index_disordered(index->handle.index);
		}
	}
	baserel->tuples = MotPlannedTuples(rel);
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
	const MotPlanIndex *pindex = MotPlanIndexFor(rel, ipath->indexinfo);
	const MotKey *key = pindex->key;
	IndexOptInfo shortened = *ipath->indexinfo;
	List	   *possible;
	List	   *kept = NIL;
	ListCell   *lc1,
			   *lc2;
	int			column;

	for (column = 0; column < key->ncolumns; column++)
	{
		if (bms_is_member(column, match->inexact) ||
			(!MotPlanIndexIsOrdered(pindex, column) && !bms_is_member(column, match->constant)))
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

List *
MotPathArm(IndexPath *ipath)
{
	return list_make3(makeInteger((int) ipath->indexinfo->indexoid),
					  makeInteger(ScanDirectionIsBackward(ipath->indexscandir)),
					  ipath->indexclauses);
}

static void
add_index_path(PlannerInfo *root, RelOptInfo *rel, IndexPath *ipath)
{
	MotMatch	match;
	List	   *pathkeys;

	if (MotPlanIndexFor(rel, ipath->indexinfo)->key == NULL)
		return;

	MotMatchClauses(root, rel, ipath->indexinfo, ipath->indexclauses, &match);
	pathkeys = kept_pathkeys(root, rel, ipath, &match);
	if (match.conditions == NIL && pathkeys == NIL)
		return;					/* no better than reading it all */

	add_path(rel, (Path *)
			 MotCreateForeignScanPath(root, rel,
									  ipath->path.rows,
									  MotPathIsDisabled(&ipath->path),
									  ipath->path.startup_cost,
									  ipath->path.total_cost,
									  pathkeys,
									  PATH_REQ_OUTER(&ipath->path),
									  list_make1(MotPathArm(ipath))));
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
										  baserel->lateral_relids, list_make1(by_tid)));
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
	List	   *arms = NIL;

	if (fdw_private == NIL || IsA(linitial(fdw_private), RestrictInfo))
		return (List *) MotAdjustToChild(root, (Node *) fdw_private, child_rel);
	foreach_ptr(List, arm, fdw_private)
		arms = lappend(arms, list_make3(linitial(arm), lsecond(arm), MotAdjustToChild(root, lthird(arm), child_rel)));
	return arms;
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

/* One more index scan of a plan. */
void
MotPlanArm(MotPlanArms *arms, Oid indexoid, bool backward, const MotMatch *match)
{
	List	   *recheck = NIL;

	if (arms->rechecks == NIL)
		arms->private = list_make5_int((int) indexoid, backward, 0, 0, 1);
	else
		arms->private = lappend_int(arms->private, (int) indexoid);
	arms->private = lappend_int(arms->private, list_length(match->conditions));
	foreach_ptr(MotCondition, condition, match->conditions)
	{
		arms->private = lappend_int(arms->private, condition->kind);
		arms->private = lappend_int(arms->private, condition->column);
		arms->private = lappend_int(arms->private, condition->strategy);
		arms->private = lappend_int(arms->private, list_length(condition->values));
		foreach_oid(oid, condition->valuetypes)
			arms->private = lappend_int(arms->private, (int) oid);
		arms->values = list_concat(arms->values, copyObject(condition->values));
		recheck = lappend(recheck, copyObject(condition->clause));
	}
	arms->rechecks = lappend(arms->rechecks, recheck);
	lfirst_int(list_nth_cell(arms->private, MOT_PLAN_NVALUES)) = list_length(arms->values);
	lfirst_int(list_nth_cell(arms->private, MOT_PLAN_ARMS)) = list_length(arms->rechecks);
}

/* The plan of these; without any, the whole table is read. */
ForeignScan *
MotPlanOf(List *targetlist, List *filter, Index rti, MotPlanArms *arms)
{
	MotMatch	none = {NIL};

	if (arms->rechecks == NIL)
		MotPlanArm(arms, InvalidOid, false, &none);
	return make_foreignscan(targetlist, filter, rti,
							lappend(arms->values, list_length(arms->rechecks) == 1 ?
									linitial(arms->rechecks) : arms->rechecks),
							arms->private, NIL, NIL, NULL);
}

/* A scan by ctid: the condition is the plan's one and only. */
static ForeignScan *
make_tid_plan(PlannerInfo *root, RelOptInfo *rel, List *tlist, List *scan_clauses,
			  RestrictInfo *condition)
{
	Node	   *value = copyObject(MotTidValue(root, rel, condition->clause));
	List	   *recheck = NIL;
	List	   *private = list_make5_int(InvalidOid, false, 0, 1, 1);

	private = lappend_int(lappend_int(private, 1), MOT_CONDITION_TID);

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
	List	   *filter = NIL;
	MotPlanArms arms = {NIL};
	MotMatch	match = {NIL};

	if (private != NIL && IsA(linitial(private), RestrictInfo))
		return make_tid_plan(root, baserel, tlist, scan_clauses, linitial_node(RestrictInfo, private));
	foreach_ptr(List, arm, private)
	{
		Oid			indexoid = (Oid) intVal(linitial(arm));

		MotMatchClauses(root, baserel, find_index(baserel, indexoid), lthird(arm), &match);
		MotPlanArm(&arms, indexoid, intVal(lsecond(arm)) != 0, &match);
	}
	if (list_length(private) > 1)
		match.enforced = NIL;	/* by no arm for all rows */

	/* what the bounds do not see to is left for the executor to check */
	foreach_node(RestrictInfo, rinfo, scan_clauses)
	{
		if (rinfo->pseudoconstant)
			continue;
		if (is_redundant_with_indexclauses(rinfo, match.enforced))
			continue;
		filter = lappend(filter, rinfo->clause);
	}

	return MotPlanOf(tlist, filter, baserel->relid, &arms);
}
