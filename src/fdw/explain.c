/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN: the index of a scan and its conditions, as the server shows
 *	  them for its own scans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fdw/fdw.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

const char *(*MotExplainStatement) (const PlannedStmt *stmt) = NULL;

typedef struct SubPlanSearch
{
	int			plan_id;
	SubPlan    *found;
} SubPlanSearch;

static List *find_ancestors(PlannedStmt *stmt, Plan *plan, Plan *target, List *ancestors);

static bool
find_subplan(Node *node, void *context)
{
	SubPlanSearch *search = (SubPlanSearch *) context;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->plan_id == search->plan_id)
	{
		search->found = (SubPlan *) node;
		return true;
	}
	return expression_tree_walker(node, find_subplan, context);
}

/* Search the members of an Append and the like. */
static List *
find_in_members(PlannedStmt *stmt, List *plans, Plan *target, List *ancestors)
{
	foreach_ptr(Plan, child, plans)
	{
		List	   *found = find_ancestors(stmt, child, target, ancestors);

		if (found)
			return found;
	}
	return NIL;
}

/*
 * The plan nodes above "target", nearest first, as a one-element list of that
 * list (so that "none above" is not "not found").  The server knows them, but
 * does not tell; without them a join's parameters could not be shown by name.
 */
static List *
find_ancestors(PlannedStmt *stmt, Plan *plan, Plan *target, List *ancestors)
{
	List	   *found;
	List	   *below;
	ListCell   *lc;
	int			plan_id = 0;

	if (plan == NULL)
		return NIL;
	if (plan == target)
		return list_make1(ancestors);

	below = lcons(plan, list_copy(ancestors));	/* lcons changes its list */
	if ((found = find_ancestors(stmt, plan->lefttree, target, below)) != NIL ||
		(found = find_ancestors(stmt, plan->righttree, target, below)) != NIL)
		return found;
	switch (nodeTag(plan))
	{
		case T_Append:
			found = find_in_members(stmt, ((Append *) plan)->appendplans, target, below);
			break;
		case T_MergeAppend:
			found = find_in_members(stmt, ((MergeAppend *) plan)->mergeplans, target, below);
			break;
		case T_SubqueryScan:
			found = find_ancestors(stmt, ((SubqueryScan *) plan)->subplan, target, below);
			break;
		case T_CustomScan:
			found = find_in_members(stmt, ((CustomScan *) plan)->custom_plans, target, below);
			break;
		default:
			break;
	}
	if (found)
		return found;

	/* sub-selects of this node: their parent is a SubPlan expression */
	foreach(lc, stmt->subplans)
	{
		SubPlanSearch search = {++plan_id, NULL};

		if (lfirst(lc) == NULL)
			continue;
		if (!find_subplan((Node *) plan->initPlan, &search) &&
			!find_subplan((Node *) plan->targetlist, &search) &&
			!find_subplan((Node *) plan->qual, &search))
			continue;
		found = find_ancestors(stmt, (Plan *) lfirst(lc), target,
							   lcons(search.found, list_copy(below)));
		if (found)
			return found;
	}
	return NIL;
}

static void
show_expression(ForeignScanState *node, ExplainState *es, const char *label, List *quals)
{
	Plan	   *plan = node->ss.ps.plan;
	List	   *context;
	List	   *found;
	char	   *text;

	if (quals == NIL)
		return;
	found = find_ancestors(es->pstmt, es->pstmt->planTree, plan, NIL);
	context = set_deparse_context_plan(es->deparse_cxt, plan,
									   found ? (List *) linitial(found) : NIL);
	text = deparse_expression((Node *) make_ands_explicit(quals), context,
							  list_length(es->rtable) > 1 || es->verbose, false);

	ExplainPropertyText(label, text, es);
}

static void
show_one_index(ForeignScanState *node, ExplainState *es, Oid indexoid, bool backward,
			   List *conditions)
{
	char	   *name = get_rel_name(indexoid);

	if (name == NULL)
		elog(ERROR, "cache lookup failed for index %u", indexoid);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Index", quote_identifier(name), es);
	else
		ExplainPropertyText("Index Name", name, es);
	if (es->format != EXPLAIN_FORMAT_TEXT || backward)
		ExplainPropertyText("Scan Direction", backward ? "Backward" : "Forward", es);
	show_expression(node, es, "Index Cond", conditions);
}

static void
show_index(ForeignScanState *node, ExplainState *es)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	List	   *private = plan->fdw_private;
	List	   *conditions = MotPlanList(plan, MOT_LIST_RECHECK);
	Oid			indexoid = (Oid) list_nth_int(private, MOT_PLAN_INDEX);
	int			at = MOT_PLAN_NCONDITIONS;
	ListCell   *lc;

	if (list_nth_int(private, MOT_PLAN_ARMS) > 1)
	{
		ExplainOpenGroup("Indexes", "Indexes", false, es);
		foreach(lc, conditions)
		{
			ExplainOpenGroup("Index", NULL, true, es);
			show_one_index(node, es, indexoid, false, (List *) lfirst(lc));
			ExplainCloseGroup("Index", NULL, true, es);
			/* from this arm's number of conditions to the next one's index */
			for (int n = list_nth_int(private, at++); n > 0; n--)
				at += 4 + list_nth_int(private, at + 3);
			if (lnext(conditions, lc))
				indexoid = (Oid) list_nth_int(private, at++);
		}
		ExplainCloseGroup("Indexes", "Indexes", false, es);
	}
	else if (OidIsValid(indexoid))
		show_one_index(node, es, indexoid, list_nth_int(private, MOT_PLAN_BACKWARD) != 0,
					   conditions);
	else if (list_nth_int(private, MOT_PLAN_NCONDITIONS) > 0)
		show_expression(node, es, "TID Cond",
						conditions ? conditions : list_make1(linitial(plan->fdw_exprs)));
}

static void
show_statement(ExplainState *es)
{
	if (es->verbose && MotExplainStatement != NULL && es->pstmt != NULL)
		ExplainPropertyText("Statement", MotExplainStatement(es->pstmt), es);
}

void
MotExplainForeignScan(ForeignScanState *node, ExplainState *es)
{
	show_index(node, es);
	show_statement(es);
}

void
MotExplainForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
						List *fdw_private, int subplan_index, ExplainState *es)
{
	if (mtstate->operation == CMD_INSERT)
		show_statement(es);
}
