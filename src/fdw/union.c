/*-------------------------------------------------------------------------
 *
 * union.c
 *	  OR: the rows that any of several index scans finds.
 *
 * For a heap table the planner would make a BitmapOr.  It is asked for one
 * here, too, and the index paths it is made of become the arms of one scan:
 * each is read in turn, and a row that an earlier arm has found is left out.
 * The OR clause itself stays a filter, so the arms need only find all its
 * rows, and not only them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

typedef struct MotSeenRow
{
	const mot_row *row;
	char		status;
} MotSeenRow;

#define SH_PREFIX seen
#define SH_ELEMENT_TYPE MotSeenRow
#define SH_KEY_TYPE const mot_row *
#define SH_KEY row
#define SH_HASH_KEY(tb, key) murmurhash32((uint32) ((uintptr_t) (key) >> 4))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct MotUnion
{
	int			narms;
	int			current;
	MotKeys   **arms;
	seen_hash  *seen;
} MotUnion;

/* ---------------------------------------------------------------- planning */

static bool
has_or_clause(List *clauses)
{
	foreach_node(RestrictInfo, rinfo, clauses)
	{
		if (restriction_is_or_clause(rinfo))
			return true;
	}
	return false;
}

/* The OR in a tree of bitmap paths, if there is one at its top or in an AND there. */
static BitmapOrPath *
find_or(Path *path)
{
	if (IsA(path, BitmapOrPath))
		return (BitmapOrPath *) path;
	if (IsA(path, BitmapAndPath))
	{
		foreach_ptr(Path, part, ((BitmapAndPath *) path)->bitmapquals)
		{
			if (IsA(part, BitmapOrPath))
				return (BitmapOrPath *) part;
		}
	}
	return NULL;
}

/* The index path for one arm: of several that would be intersected, the most selective. */
static IndexPath *
choose_arm(Path *path)
{
	IndexPath  *best = NULL;

	if (IsA(path, IndexPath))
		return (IndexPath *) path;
	if (!IsA(path, BitmapAndPath))
		return NULL;
	foreach_ptr(IndexPath, ipath, ((BitmapAndPath *) path)->bitmapquals)
	{
		if (IsA(ipath, IndexPath) &&
			(best == NULL || ipath->indexselectivity < best->indexselectivity))
			best = ipath;
	}
	return best;
}

static void
add_union_path(PlannerInfo *root, RelOptInfo *rel, BitmapHeapPath *bpath)
{
	BitmapOrPath *or = find_or(bpath->bitmapqual);
	List	   *arms = NIL;
	Cost		startup = 0;
	Cost		total = 0;
	double		fetched = 0;
	QualCost	filter;

	if (or == NULL)
		return;
	foreach_ptr(Path, arm, or->bitmapquals)
	{
		IndexPath  *ipath = choose_arm(arm);
		MotMatch	match;

		if (ipath == NULL || MotPlanIndexFor(rel, ipath->indexinfo)->key == NULL)
			return;
		MotMatchClauses(root, rel, ipath->indexinfo, ipath->indexclauses, &match);
		if (match.conditions == NIL)
			return;
		arms = lappend(arms, MotPathArm(ipath));
		total += ipath->indextotalcost;
		fetched += ipath->indexselectivity * rel->tuples;
	}

	cost_qual_eval(&filter, rel->baserestrictinfo, root);
	startup += filter.startup;
	total += startup + fetched * (cpu_tuple_cost + cpu_operator_cost + filter.per_tuple) +
		bpath->path.rows * rel->reltarget->cost.per_tuple;
	add_path(rel, (Path *)
			 MotCreateForeignScanPath(root, rel, bpath->path.rows, false, startup, total, NIL,
									  PATH_REQ_OUTER(&bpath->path), arms));
}

/* Add what the planner makes of the relation's OR clauses. */
void
MotAddUnionPaths(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *paths = rel->pathlist;
	List	   *bitmap_paths;

	if (!enable_bitmapscan ||
		(!has_or_clause(rel->baserestrictinfo) && !has_or_clause(rel->joininfo)))
		return;

	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		index->amhasgettuple = false;
		index->amhasgetbitmap = true;
	}
	rel->pathlist = NIL;
	create_index_paths(root, rel);
	bitmap_paths = rel->pathlist;
	rel->pathlist = paths;
	rel->partial_pathlist = NIL;
	foreach_node(IndexOptInfo, index, rel->indexlist)
	{
		index->amhasgettuple = true;
		index->amhasgetbitmap = false;
	}

	foreach_ptr(Path, path, bitmap_paths)
	{
		if (IsA(path, BitmapHeapPath))
			add_union_path(root, rel, (BitmapHeapPath *) path);
	}
}

/* --------------------------------------------------------------- execution */

void
MotUnionInit(MotScan *scan, ForeignScan *plan)
{
	MotUnion   *u = palloc(sizeof(MotUnion));
	int			at = MOT_PLAN_NCONDITIONS;
	int			value = 0;
	int			i;

	u->narms = list_nth_int(plan->fdw_private, MOT_PLAN_ARMS);
	u->arms = palloc(u->narms * sizeof(MotKeys *));
	u->current = 0;
	u->seen = NULL;
	for (i = 0; i < u->narms; i++)
	{
		/* the first arm's index is in its usual place */
		Oid			indexoid = (Oid) list_nth_int(plan->fdw_private,
												  i == 0 ? MOT_PLAN_INDEX : at++);
		MotIndex   *index = MotRelationIndex(scan->relation, indexoid);

		if (index == NULL)
			elog(ERROR, "index %u of table \"%s\" is not there", indexoid,
				 RelationGetRelationName(scan->node->ss.ss_currentRelation));

		/* an index younger than the snapshot would not find all: see sorted.c */
		if (scan->view.snapshot < mot_index_valid_from(index->handle.index))
			return;
		u->arms[i] = MotKeysCreate(index, plan, &scan->node->ss.ps, &at, &value);
	}
	scan->u = u;
	scan->keys = u->arms[0];
}

void
MotUnionRestart(MotScan *scan)
{
	scan->u->current = 0;
	scan->keys = scan->u->arms[0];
	if (scan->u->seen)
		seen_reset(scan->u->seen);
}

/* After an arm's last row: is there another arm? */
bool
MotUnionNextArm(MotScan *scan)
{
	if (scan->u->current + 1 >= scan->u->narms)
		return false;
	MotScanDropSorted(scan);
	scan->keys = scan->u->arms[++scan->u->current];
	scan->phase = MOT_SCAN_START;
	return true;
}

/* Is the current row a new one? */
bool
MotUnionIsNew(MotScan *scan)
{
	bool		found;

	if (scan->u->seen == NULL)
		scan->u->seen = seen_create(scan->node->ss.ps.state->es_query_cxt, 256, NULL);
	seen_insert(scan->u->seen, scan->row, &found);
	return !found;
}
