/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  Rows that are kept: ORDER BY that no index gives, by the server's
 *	  tuplesort, and what a join reads again and again, in its tuplestore.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "statement/statement.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

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

typedef struct MaterialNode
{
	MotNode		node;
	bool		depends;		/* on parameters: to be read anew */
	bool		complete;		/* all rows are in the store */
	Tuplestorestate *store;		/* of this execution */
	TupleTableSlot *slot;
} MaterialNode;

static void end_material(MaterialNode *material);

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

/* The end of an execution: its memory goes. */
void
MotSortRest(MotStatement *st)
{
	foreach_ptr(MotNode, node, st->sorts)
	{
		if (node->is_sort)
			end_sort((SortNode *) node);
		else
			end_material((MaterialNode *) node);
	}
}

MotNode *
MotSortBuild(MotStatement *st, Sort *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(SortNode), next_of_sort, restart_sort, outerPlan(plan));
	SortNode   *sort = (SortNode *) node;

	node->is_sort = true;
	sort->plan = plan;
	sort->desc = ExecTypeFromTL(outerPlan(plan)->targetlist);
	sort->slot = MakeTupleTableSlot(ExecTypeFromTL(plan->plan.targetlist), &TTSOpsMinimalTuple);
	st->sorts = lappend(st->sorts, sort);
	return node;
}

/* --------------------------------------------------------------- material */

static TupleTableSlot *
next_of_material(MotNode *node)
{
	MaterialNode *material = (MaterialNode *) node;
	TupleTableSlot *slot;

	CHECK_FOR_INTERRUPTS();
	if (material->store == NULL)
	{
		MotWithin(node->statement->exec_cxt, material->store = tuplestore_begin_heap(false, false, work_mem));
		material->complete = false;
	}
	if (!tuplestore_ateof(material->store) &&
		tuplestore_gettupleslot(material->store, true, false, material->slot))
		return material->slot;
	if (material->complete)
		return NULL;
	slot = node->outer->next(node->outer);
	if (slot == NULL)
		material->complete = true;
	else
		tuplestore_puttupleslot(material->store, slot);
	return slot;
}

static void
end_material(MaterialNode *material)
{
	ExecClearTuple(material->slot);
	if (material->store != NULL)
		tuplestore_end(material->store);
	material->store = NULL;
}

static void
restart_material(MotNode *node)
{
	MaterialNode *material = (MaterialNode *) node;

	if (material->store != NULL && !material->depends)
	{
		ExecClearTuple(material->slot);
		tuplestore_rescan(material->store);
		return;
	}
	end_material(material);
	node->outer->restart(node->outer);
}

MotNode *
MotMaterialBuild(MotStatement *st, Material *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(MaterialNode), next_of_material, restart_material, outerPlan(plan));
	MaterialNode *material = (MaterialNode *) node;

	material->depends = !bms_is_empty(plan->plan.extParam);
	material->slot = MakeTupleTableSlot(ExecTypeFromTL(plan->plan.targetlist), &TTSOpsMinimalTuple);
	st->sorts = lappend(st->sorts, node);
	return node;
}
