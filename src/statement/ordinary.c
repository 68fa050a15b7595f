/*-------------------------------------------------------------------------
 *
 * ordinary.c
 *	  Plans of ordinary tables, as if they were a foreign table's.
 *
 * An ordinary table's plan has the server's own nodes.  A statement that is run
 * here is made from a copy of the plan, in which scans by index or of the
 * whole table are the foreign scans that the wrapper would have planned for the same
 * conditions, bitmaps included, and a change of a single table's rows is done in one node
 * (fdw/direct.c).  So all that follows, machine code included, knows one kind of
 * scan.  What is not translated is refused by shape.c as any other node is.
 *
 * The plan itself stays as it is: EvalPlanQual runs its nodes, and EXPLAIN, other
 * modules and the plan cache never see the copy.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "commands/trigger.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "statement/statement.h"

/* A copy of a node, but not of what is below; the node itself if it is of a kind that is not run here. */
Plan *
MotPlanCopy(Plan *plan)
{
	static const struct
	{
		NodeTag		tag;
		Size		size;
	}			kinds[] = {
		{T_ForeignScan, sizeof(ForeignScan)}, {T_NestLoop, sizeof(NestLoop)},
		{T_Agg, sizeof(Agg)}, {T_Limit, sizeof(Limit)}, {T_LockRows, sizeof(LockRows)},
		{T_Sort, sizeof(Sort)}, {T_Material, sizeof(Material)}, {T_Memoize, sizeof(Memoize)},
		{T_Result, sizeof(Result)}, {T_SubqueryScan, sizeof(SubqueryScan)}, {T_Unique, sizeof(Unique)},
		{T_ModifyTable, sizeof(ModifyTable)}
	};

	for (int i = 0; i < lengthof(kinds); i++)
		if (nodeTag(plan) == kinds[i].tag)
			return memcpy(palloc(kinds[i].size), plan, kinds[i].size);
	return plan;
}

static Plan *
foreign_scan(const Scan *scan, MotPlanArms *arms, List *filter)
{
	ForeignScan *result = MotPlanOf(scan->plan.targetlist, filter, scan->scanrelid, arms);

	result->scan.plan = scan->plan;
	result->scan.plan.type = T_ForeignScan;
	result->scan.plan.qual = filter;
	result->scan.plan.lefttree = NULL;
	return &result->scan.plan;
}

/* What the index's columns are; false: it cannot be read as ours. */
static bool
describe_index(Oid indexid, Oid relid, MotPlanIndex *pindex)
{
	Relation	rel = relation_open(relid, NoLock);
	Relation	index = relation_open(indexid, AccessShareLock);
	MotIndex   *known = MotRelationIndex(MotRelationGet(rel), indexid);

	/* (the places of ranked columns' bounds are a view's) */
	if (known != NULL && known->key->ranked)
		known = NULL;
	if (known != NULL)
	{
		pindex->indexoid = indexid;
		pindex->key = known->key;
		memcpy(pindex->opfamily, index->rd_opfamily, known->key->ncolumns * sizeof(Oid));
	}
	relation_close(index, NoLock);
	relation_close(rel, NoLock);
	return known != NULL;
}

/* the column of the index that a condition of a plan is about first */
static int
column_of(Node *clause)
{
	Node	   *left = clause;

	if (IsA(clause, OpExpr))
		left = linitial(((OpExpr *) clause)->args);
	else if (IsA(clause, ScalarArrayOpExpr))
		left = linitial(((ScalarArrayOpExpr *) clause)->args);
	else if (IsA(clause, RowCompareExpr))
		left = linitial(((RowCompareExpr *) clause)->largs);
	else if (IsA(clause, NullTest))
		left = (Node *) ((NullTest *) clause)->arg;
	return IsA(left, Var) && ((Var *) left)->varno == INDEX_VAR ? ((Var *) left)->varattno - 1 : -1;
}

/* What of an index scan's conditions bounds it; "used" are those.  False: it cannot be read as ours. */
static bool
match_index(Oid indexid, Oid relid, List *quals, List *originals, MotMatch *match, List **used)
{
	MotPlanIndex pindex = {0};
	List	   *bounding[INDEX_MAX_KEYS] = {NIL};
	ListCell   *lc1,
			   *lc2;

	if (!describe_index(indexid, relid, &pindex))
		return false;
	forboth(lc1, quals, lc2, originals)
	{
		int			column = column_of(lfirst(lc1));
		MotCondition *condition = column < 0 || column >= pindex.key->ncolumns ? NULL :
		MotMakeCondition(NULL, NULL, NULL, &pindex, column, lfirst(lc1));

		if (condition == NULL)
			continue;
		condition->source = condition->clause = lfirst(lc2);
		bounding[column] = lappend(bounding[column], condition);
	}
	*used = MotChooseConditions(&pindex, bounding, match);
	return true;
}

static Plan *
index_scan(IndexScan *scan, const PlannedStmt *stmt)
{
	MotMatch	match;
	MotPlanArms arms = {NIL};
	List	   *used;
	List	   *filter = NIL;

	if (scan->indexorderby != NIL ||
		!match_index(scan->indexid, rt_fetch(scan->scan.scanrelid, stmt->rtable)->relid,
					 scan->indexqual, scan->indexqualorig, &match, &used))
		return &scan->scan.plan;
	MotPlanArm(&arms, scan->indexid, ScanDirectionIsBackward(scan->indexorderdir), &match);
	foreach_ptr(Node, clause, scan->indexqualorig)
		if (!list_member_ptr(used, clause))
		filter = lappend(filter, clause);
	return foreign_scan(&scan->scan, &arms, list_concat_copy(filter, scan->scan.plan.qual));
}

/* A scan of the index only names the index's columns: what they are of the table. */
static Node *
table_columns(Node *node, List *columns)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
		return copyObject((Node *) list_nth_node(TargetEntry, columns, ((Var *) node)->varattno - 1)->expr);
	return expression_tree_mutator(node, table_columns, columns);
}

static Plan *
index_only_scan(const IndexOnlyScan *only, const PlannedStmt *stmt)
{
	IndexScan  *scan = makeNode(IndexScan);

	scan->scan = only->scan;
	scan->scan.plan.type = T_IndexScan;
	scan->scan.plan.targetlist = (List *) table_columns((Node *) only->scan.plan.targetlist, only->indextlist);
	scan->scan.plan.qual = (List *) table_columns((Node *) only->scan.plan.qual, only->indextlist);
	scan->indexid = only->indexid;
	scan->indexqual = only->indexqual;
	scan->indexqualorig = (List *) table_columns((Node *) only->recheckqual, only->indextlist);
	scan->indexorderby = only->indexorderby;
	scan->indexorderdir = only->indexorderdir;
	return index_scan(scan, stmt);
}

/* Of what is intersected, one is enough: that with OR, if there is one. */
static Plan *
one_of(Plan *bitmap)
{
	if (!IsA(bitmap, BitmapAnd))
		return bitmap;
	foreach_ptr(Plan, part, ((BitmapAnd *) bitmap)->bitmapplans)
		if (IsA(part, BitmapOr))
		return part;
	return linitial(((BitmapAnd *) bitmap)->bitmapplans);
}

/*
 * A bitmap of rows: the arms of a union (fdw/union.c), whose filter is all that the bitmap
 * stands for.
 */
static Plan *
bitmap_scan(BitmapHeapScan *scan, const PlannedStmt *stmt)
{
	Plan	   *top = one_of(outerPlan(scan));
	MotPlanArms arms = {NIL};

	foreach_ptr(Plan, each, IsA(top, BitmapOr) ? ((BitmapOr *) top)->bitmapplans : list_make1(top))
	{
		BitmapIndexScan *arm = (BitmapIndexScan *) one_of(each);
		List	   *used;
		MotMatch	match;

		if (!IsA(arm, BitmapIndexScan) ||
			!match_index(arm->indexid, rt_fetch(scan->scan.scanrelid, stmt->rtable)->relid,
						 arm->indexqual, arm->indexqualorig, &match, &used) || match.conditions == NIL)
			return &scan->scan.plan;
		MotPlanArm(&arms, arm->indexid, false, &match);
	}
	return foreign_scan(&scan->scan, &arms, list_concat_copy(scan->bitmapqualorig, scan->scan.plan.qual));
}

static bool
is_ordinary(Index rti, const PlannedStmt *stmt)
{
	return MotIsOrdinaryTable(rt_fetch(rti, stmt->rtable)->relid);
}

/* A change of the rows of one scan, in one node, where the planner would have asked the wrapper. */
static void
translate_change(ModifyTable *plan, const PlannedStmt *stmt)
{
	Index		rti = linitial_int(plan->resultRelations);
	Relation	rel;

	if (list_length(plan->resultRelations) != 1 || plan->withCheckOptionLists != NIL ||
		!is_ordinary(rti, stmt) || !IsA(outerPlan(plan), ForeignScan))
		return;
	rel = relation_open(rt_fetch(rti, stmt->rtable)->relid, NoLock);
	if ((rel->rd_att->constr == NULL || !rel->rd_att->constr->has_generated_stored) &&
		MotPlanDirectModify(NULL, plan, rti, 0))
		plan->fdwDirectModifyPlans = bms_make_singleton(0);
	relation_close(rel, NoLock);
}

static Plan *
translate(Plan *plan, const PlannedStmt *stmt)
{
	MotPlanArms none = {NIL};
	Plan	   *copy;

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(plan, SeqScan) && is_ordinary(((SeqScan *) plan)->scan.scanrelid, stmt))
		return foreign_scan(&((SeqScan *) plan)->scan, &none, plan->qual);
	if (IsA(plan, IndexScan) && is_ordinary(((IndexScan *) plan)->scan.scanrelid, stmt))
		return index_scan((IndexScan *) plan, stmt);
	if (IsA(plan, IndexOnlyScan) && is_ordinary(((IndexOnlyScan *) plan)->scan.scanrelid, stmt))
		return index_only_scan((IndexOnlyScan *) plan, stmt);
	if (IsA(plan, BitmapHeapScan) && is_ordinary(((BitmapHeapScan *) plan)->scan.scanrelid, stmt))
		return bitmap_scan((BitmapHeapScan *) plan, stmt);
	copy = MotPlanCopy(plan);
	if (copy == plan)
		return plan;
	copy->lefttree = translate(plan->lefttree, stmt);
	copy->righttree = translate(plan->righttree, stmt);
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) copy)->subplan = translate(((SubqueryScan *) plan)->subplan, stmt);
	if (IsA(plan, ModifyTable))
		translate_change((ModifyTable *) copy, stmt);
	return copy;
}

/* Does it name a table of ours; an ordinary one? */
bool
MotPlanIsOurs(const PlannedStmt *stmt, bool ordinary)
{
	foreach_node(RangeTblEntry, rte, stmt->rtable)
		if (rte->rtekind == RTE_RELATION &&
			(MotIsOrdinaryTable(rte->relid) ||
			 (!ordinary && rte->relkind == RELKIND_FOREIGN_TABLE && MotIsMotTable(rte->relid))))
		return true;
	return false;
}

/* The plan that is to be run. */
const PlannedStmt *
MotPlanTranslate(const PlannedStmt *stmt)
{
	PlannedStmt *result;

	if (!MotPlanIsOurs(stmt, true))
		return stmt;
	result = palloc(sizeof(PlannedStmt));
	memcpy(result, stmt, sizeof(PlannedStmt));
	result->planTree = translate(stmt->planTree, stmt);
	result->subplans = NIL;
	foreach_ptr(Plan, subplan, stmt->subplans)
		result->subplans = lappend(result->subplans, translate(subplan, stmt));
	return result;
}

/*
 * Are a table's triggers nothing but those of foreign keys, which the server fires when it
 * has been told of each row (change.c)?
 */
bool
MotForeignKeysOnly(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; i < triggers->numtriggers; i++)
		if (!triggers->triggers[i].tgisinternal ||
			RI_FKey_trigger_type(triggers->triggers[i].tgfoid) == RI_TRIGGER_NONE)
			return false;
	return MotIsOrdinary(rel);
}
