/*-------------------------------------------------------------------------
 *
 * tid.c
 *	  Rows by their ctid: ctid = ..., ctid = ANY (...), WHERE CURRENT OF.
 *
 * The server has a scan of its own for these, but only for heap tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/array.h"

typedef struct MotTids
{
	ExprState  *expr;			/* NULL: WHERE CURRENT OF */
	CurrentOfExpr *current_of;
	bool		is_array;
	int			ntids;
	int			next;
	ItemPointerData *tids;
} MotTids;

static bool
is_ctid(RelOptInfo *rel, Node *node)
{
	Var		   *var = (Var *) node;

	return IsA(node, Var) && var->varattno == SelfItemPointerAttributeNumber &&
		var->varno == rel->relid && var->varlevelsup == 0;
}

static bool
is_usable(PlannerInfo *root, RelOptInfo *rel, Node *value)
{
	return !bms_is_member(rel->relid, pull_varnos(root, value)) &&
		!contain_volatile_functions(value);
}

/* The value of a restriction on the row's ctid; NULL if it is none. */
Node *
MotTidValue(PlannerInfo *root, RelOptInfo *rel, Expr *clause)
{
	if (IsA(clause, CurrentOfExpr) && ((CurrentOfExpr *) clause)->cvarno == rel->relid)
		return (Node *) clause;
	if (IsA(clause, OpExpr) && ((OpExpr *) clause)->opno == TIDEqualOperator)
	{
		Node	   *left = linitial(((OpExpr *) clause)->args);
		Node	   *right = lsecond(((OpExpr *) clause)->args);

		if (is_ctid(rel, left) && is_usable(root, rel, right))
			return right;
		if (is_ctid(rel, right) && is_usable(root, rel, left))
			return left;
	}
	if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) clause;

		if (op->opno == TIDEqualOperator && op->useOr &&
			is_ctid(rel, linitial(op->args)) && is_usable(root, rel, lsecond(op->args)))
			return lsecond(op->args);
	}
	return NULL;
}

/* The restriction to find rows by, if there is one; WHERE CURRENT OF first. */
RestrictInfo *
MotTidRestriction(PlannerInfo *root, RelOptInfo *rel)
{
	RestrictInfo *found = NULL;

	foreach_node(RestrictInfo, rinfo, rel->baserestrictinfo)
	{
		if (MotTidValue(root, rel, rinfo->clause) == NULL ||
			!restriction_is_securely_promotable(rinfo, rel))
			continue;
		if (IsA(rinfo->clause, CurrentOfExpr))
			return rinfo;
		if (found == NULL)
			found = rinfo;
	}
	return found;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/* Evaluate the value: no ctid, one, or several in ascending order. */
void
MotTidsFill(MotScan *scan, ExprContext *econtext)
{
	ForeignScan *plan = (ForeignScan *) scan->node->ss.ps.plan;
	MemoryContext oldcxt = MemoryContextSwitchTo(scan->node->ss.ps.state->es_query_cxt);
	MotTids    *tids = scan->tids;
	Datum		value;
	bool		isnull;

	if (tids == NULL)
	{
		Expr	   *expr = (Expr *) linitial(plan->fdw_exprs);

		tids = scan->tids = palloc0(sizeof(MotTids));
		if (IsA(expr, CurrentOfExpr))
			tids->current_of = (CurrentOfExpr *) expr;
		else
			tids->expr = ExecInitExpr(expr, &scan->node->ss.ps);
		tids->is_array = !tids->current_of && exprType((Node *) expr) != TIDOID;
		tids->tids = palloc(sizeof(ItemPointerData));
	}
	tids->ntids = 0;
	tids->next = 0;

	if (tids->current_of)
		tids->ntids = execCurrentOf(tids->current_of, econtext, scan->relation->relid,
									&tids->tids[0]);
	else
	{
		value = ExecEvalExprSwitchContext(tids->expr, econtext, &isnull);
		if (!isnull && !tids->is_array)
		{
			tids->tids[0] = *(ItemPointer) DatumGetPointer(value);
			tids->ntids = 1;
		}
		else if (!isnull)
		{
			Datum	   *elements;
			bool	   *nulls;
			int			n;
			int			i;

			deconstruct_array(DatumGetArrayTypeP(value), TIDOID,
							  sizeof(ItemPointerData), false, TYPALIGN_SHORT,
							  &elements, &nulls, &n);
			tids->tids = repalloc(tids->tids, Max(1, n) * sizeof(ItemPointerData));
			for (i = 0; i < n; i++)
				if (!nulls[i])
					tids->tids[tids->ntids++] = *(ItemPointer) DatumGetPointer(elements[i]);
			qsort(tids->tids, tids->ntids, sizeof(ItemPointerData), compare_tids);
			tids->ntids = (int) qunique(tids->tids, tids->ntids, sizeof(ItemPointerData), compare_tids);
		}
	}
	MemoryContextSwitchTo(oldcxt);
}

bool
MotTidsNext(MotScan *scan)
{
	MotTids    *tids = scan->tids;

	while (tids->next < tids->ntids)
	{
		ItemPointer tid = &tids->tids[tids->next++];

		CHECK_FOR_INTERRUPTS();
		scan->row = MotTidToRow(scan->session, scan->relation->table, tid);
		if (scan->row == NULL)
			continue;
		scan->version = mot_row_visible(scan->session, &scan->view, scan->relation->table,
										scan->row);
		if (scan->version != NULL)
			return true;
	}
	scan->phase = MOT_SCAN_DONE;
	return false;
}
