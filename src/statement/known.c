/*-------------------------------------------------------------------------
 *
 * known.c
 *	  Plans that need not be asked for.
 *
 * GetCachedPlan() locks all tables of a query, and once more those of its plan, each time; for a look-up
 * by key that is a tenth of all.  Locks that a transaction has are kept until it ends, or the
 * subtransaction that took them is undone; and for one that is there already the server does not look
 * for invalidations.  So whoever executes the same plan often (a compiled procedure, a client's
 * pipeline) remembers it, and asks here whether it is still the one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat/calls.h"
#include "mot.h"
#include "nodes/nodeFuncs.h"
#include "statement/known.h"
#include "storage/lmgr.h"
#include "storage/proc.h"

static uint64 undone = 0;		/* subtransactions, by this session */

static void add_querys_locks(MotKnownPlan *known, Query *tree);

static void
subtransaction_ends(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		undone++;
}

/*
 * Would the server take the generic plan, if it is right?  As choose_custom_plan().
 */
static bool
wants_generic(const CachedPlanSource *source, ParamListInfo params)
{
	if (params == NULL || plan_cache_mode == PLAN_CACHE_MODE_FORCE_GENERIC_PLAN)
		return true;
	if (plan_cache_mode == PLAN_CACHE_MODE_FORCE_CUSTOM_PLAN)
		return false;
	if (source->cursor_options & (CURSOR_OPT_GENERIC_PLAN | CURSOR_OPT_CUSTOM_PLAN))
		return (source->cursor_options & CURSOR_OPT_GENERIC_PLAN) != 0;
	return source->num_custom_plans >= 5 &&
		source->generic_cost < source->total_custom_cost / source->num_custom_plans;
}

/* Is it still the plan of its source? */
static inline bool
is_right(const MotKnownPlan *known, CachedPlanSource *source)
{
	return known->generation == source->generation && CachedPlanIsSimplyValid(source, known->plan, NULL);
}

/* Once each, if there are few. */
static void
add_lock(MotKnownPlan *known, const RangeTblEntry *rte)
{
	const int	few = 32;
	MotPlanLock lock = {rte->relid, rte->rellockmode};

	for (int i = 0; i < known->nlocks && i < few; i++)
		if (known->locks[i].relid == lock.relid && known->locks[i].mode == lock.mode)
			return;
	if (known->nlocks == known->maxlocks)
	{
		known->maxlocks = Max(2 * known->maxlocks, 4);
		known->locks = known->locks == NULL ?
			MemoryContextAlloc(known->cxt, known->maxlocks * sizeof(MotPlanLock)) :
			repalloc(known->locks, known->maxlocks * sizeof(MotPlanLock));
	}
	known->locks[known->nlocks++] = lock;
}

/* (from 16 on a view has become a sub-query, which is locked; before, it is beside that) */
static inline bool
is_locked(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION ||
		(rte->rtekind == RTE_SUBQUERY && OidIsValid(rte->relid) && rte->rellockmode != NoLock);
}

static bool
add_sublinks_locks(Node *node, void *known)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		add_querys_locks(known, castNode(Query, ((SubLink *) node)->subselect));
	return expression_tree_walker(node, add_sublinks_locks, known);
}

/* as ScanQueryForLocks() */
static void
add_querys_locks(MotKnownPlan *known, Query *tree)
{
	foreach_node(RangeTblEntry, rte, tree->rtable)
	{
		if (is_locked(rte))
			add_lock(known, rte);
		if (rte->rtekind == RTE_SUBQUERY)
			add_querys_locks(known, rte->subquery);
	}
	foreach_node(CommonTableExpr, cte, tree->cteList)
		add_querys_locks(known, castNode(Query, cte->ctequery));
	if (tree->hasSubLinks)
		(void) query_tree_walker(tree, add_sublinks_locks, known, QTW_IGNORE_RC_SUBQUERIES);
}

/*
 * What GetCachedPlan() locks for this plan, in its order: the tables of the query, of which the plan may
 * not have all, then those of the plan.
 */
static void
list_locks(MotKnownPlan *known, const CachedPlanSource *source, const PlannedStmt *stmt)
{
	known->nlocks = 0;
	foreach_node(Query, tree, source->query_list)
		add_querys_locks(known, tree);
	known->nquerys = known->nlocks;
	foreach_node(RangeTblEntry, rte, stmt->rtable)
	{
		if (is_locked(rte))
			add_lock(known, rte);
	}
}

/*
 * Take them, as GetCachedPlan() does.  False: something has changed, and those are given back that it
 * would give back, or take now.
 */
static bool
lock_tables(const MotKnownPlan *known, CachedPlanSource *source)
{
	int			n = 0;

	for (; n < known->nquerys; n++)
		LockRelationOid(known->locks[n].relid, known->locks[n].mode);
	if (is_right(known, source))
		for (; n < known->nlocks; n++)
			LockRelationOid(known->locks[n].relid, known->locks[n].mode);
	if (is_right(known, source))
		return true;
	while (n-- > 0)
		UnlockRelationOid(known->locks[n].relid, known->locks[n].mode);
	return false;
}

/*
 * May the plan be had without GetCachedPlan()?  If this transaction has taken the locks for it, and no
 * subtransaction has been undone since, all that is left is to look whether the plan is still right, and
 * is what would be chosen.  Else they are taken once.
 */
bool
MotPlanIsKnown(MotKnownPlan *known, CachedPlanSource *source, ParamListInfo params)
{
	if (known->plan == NULL || known->source != source || !wants_generic(source, params) || !is_right(known, source))
		return false;
	if (likely(known->transaction == MotLocalTransaction() && known->undone == undone))
		return true;
	if (!lock_tables(known, source))
		return false;
	known->transaction = MotLocalTransaction();
	known->undone = undone;
	return true;
}

/*
 * GetCachedPlan(), and it is known from now on, if it is the generic plan of one statement.  (Plans
 * that depend on who asks, or are right for some time only, are not known; nor is one that has just
 * been made: of such a plan it has not gone through the tables.)
 */
CachedPlan *
MotPlanGet(MotKnownPlan *known, CachedPlanSource *source, ParamListInfo params, ResourceOwner owner)
{
	int			generation = source->generation;
	bool		was_right = source->is_valid && source->gplan != NULL && source->gplan->is_valid;
	CachedPlan *plan;

	known->plan = NULL;
	plan = GetCachedPlan(source, params, owner, NULL);
	if (was_right && plan == source->gplan && generation == source->generation && !source->dependsOnRLS &&
		!plan->dependsOnRole && !TransactionIdIsValid(plan->saved_xmin) && list_length(plan->stmt_list) == 1 &&
		linitial_node(PlannedStmt, plan->stmt_list)->utilityStmt == NULL)
	{
		static bool registered = false;

		if (!registered)
			RegisterSubXactCallback(subtransaction_ends, NULL);
		registered = true;
		list_locks(known, source, linitial_node(PlannedStmt, plan->stmt_list));
		known->source = source;
		known->plan = plan;
		known->generation = generation;
		known->transaction = MotLocalTransaction();
		known->undone = undone;
	}
	return plan;
}
