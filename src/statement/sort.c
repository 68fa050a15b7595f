/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  ORDER BY that no index gives, by the server's tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "statement/statement.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

typedef struct SortNode
{
	MotNode		node;
	Sort	   *plan;
	TupleDesc	desc;
	TupleTableSlot *slot;
	Tuplesortstate *sort;		/* of this execution; in its memory */
	int64		bound;			/* no more rows than these will be asked for;
								 * 0: all */
} SortNode;

static void
sort_rows(SortNode *sort)
{
	MotNode    *outer = sort->node.outer;
	Sort	   *plan = sort->plan;
	TupleTableSlot *slot;

	sort->sort = tuplesort_begin_heap(sort->desc, plan->numCols, plan->sortColIdx,
									  plan->sortOperators, plan->collations, plan->nullsFirst,
									  work_mem, NULL,
									  sort->bound > 0 ? TUPLESORT_ALLOWBOUNDED : TUPLESORT_NONE);
	if (sort->bound > 0)
		tuplesort_set_bound(sort->sort, sort->bound);
	while ((slot = outer->next(outer)) != NULL)
		tuplesort_puttupleslot(sort->sort, slot);
	tuplesort_performsort(sort->sort);
}

static TupleTableSlot *
next_of_sort(MotNode *node)
{
	SortNode   *sort = (SortNode *) node;

	CHECK_FOR_INTERRUPTS();
	if (sort->sort == NULL)
		sort_rows(sort);
	return tuplesort_gettupleslot(sort->sort, true, false, sort->slot, NULL) ? sort->slot : NULL;
}

static void
end_sort(SortNode *sort)
{
	ExecClearTuple(sort->slot);
	if (sort->sort != NULL)
		tuplesort_end(sort->sort);
	sort->sort = NULL;
}

static void
restart_sort(MotNode *node)
{
	end_sort((SortNode *) node);
	node->outer->restart(node->outer);
}

/* LIMIT above, before the first row is asked for */
void
MotSortBound(MotNode *node, int64 bound)
{
	((SortNode *) node)->bound = bound;
}

void
MotSortRest(MotStatement *st)
{
	ListCell   *lc;

	foreach(lc, st->sorts)
		end_sort((SortNode *) lfirst(lc));
}

MotNode *
MotSortBuild(MotStatement *st, Sort *plan)
{
	SortNode   *sort = palloc0(sizeof(SortNode));
	MotNode    *node = &sort->node;

	node->statement = st;
	node->next = next_of_sort;
	node->restart = restart_sort;
	node->is_sort = true;
	node->outer = MotNodeBuild(st, outerPlan(plan));
	sort->plan = plan;
	sort->desc = ExecTypeFromTL(outerPlan(plan)->targetlist);
	sort->slot = MakeTupleTableSlot(ExecTypeFromTL(plan->plan.targetlist), &TTSOpsMinimalTuple);
	st->sorts = lappend(st->sorts, sort);
	return node;
}
