/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  ORDER BY, and DISTINCT of what is sorted.
 *
 * Statements that run here mostly sort few rows, for which the server's tuplesort has much to begin
 * and end: memory, tuples, comparisons looked up, keys abbreviated and counted to learn whether that
 * pays.  So the first rows are kept in an array.  If there are no more than that, it is sorted, by
 * the first eight bytes of an index's key, where there is one whose bytes have that order
 * (relation/keycodec.h), and then by the server's own comparisons (utils/sortsupport.h).  If there
 * are more, a node of the server's gets these rows and then all others: it knows work_mem, files,
 * and LIMIT.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/calls.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "relation/keycodec.h"
#include "statement/statement.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* What is sorted here at most.  More rows than that take longer to sort than to begin with. */
#define FEW_ROWS 256
#define FEW_BYTES (64 * 1024)

typedef struct Row
{
	uint64		prefix;			/* of the first column's key, or 0 */
	Datum	   *values;
	bool	   *isnull;
} Row;

typedef struct SortNode
{
	MotNode		node;			/* its state is that of "many" */
	MotNode    *many;			/* the server's */
	bool		read;			/* rows have been */
	bool		is_many;
	MemoryContext cxt;			/* of the rows */
	TupleDesc	desc;
	TupleTableSlot *slot;
	int			nkeys;
	SortSupport keys;
	MotKeyColumn *first;		/* the key of the first column, or NULL */
	MotKeyBuffer buffer;
	int			n;
	int			at;				/* the next one that is handed out */
	Row			rows[FEW_ROWS];
} SortNode;

typedef struct UniqueNode
{
	MotNode		node;
	ExprState  *equal;			/* of the row that comes and the last one */
	MemoryContext cxt;			/* of the last one */
	TupleTableSlot *last;		/* empty: there is none */
} UniqueNode;

/* A row of a slot, its values copied where they would not stay, into the present memory. */
static void
copy_row(TupleDesc desc, TupleTableSlot *slot, Datum *values, bool *isnull)
{
	slot_getsomeattrs(slot, desc->natts);
	memcpy(values, slot->tts_values, desc->natts * sizeof(Datum));
	memcpy(isnull, slot->tts_isnull, desc->natts * sizeof(bool));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attbyval && !isnull[i])
			values[i] = datumCopy(values[i], false, att->attlen);
	}
}

static TupleTableSlot *
show_row(TupleTableSlot *slot, const Datum *values, const bool *isnull)
{
	int			natts = slot->tts_tupleDescriptor->natts;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, isnull, natts * sizeof(bool));
	return ExecStoreVirtualTuple(slot);
}

/* ------------------------------------------------------------------- sorts */

static inline int
compare_rows(const Row *x, const Row *y, const SortNode *sort)
{
	int			result = 0;

	if (x->prefix != y->prefix)
		return x->prefix < y->prefix ? -1 : 1;
	for (int i = 0; i < sort->nkeys && result == 0; i++)
	{
		SortSupport key = &sort->keys[i];
		int			column = key->ssup_attno - 1;

		result = ApplySortComparator(x->values[column], x->isnull[column],
									 y->values[column], y->isnull[column], key);
	}
	return result;
}

#define ST_SORT sort_rows
#define ST_ELEMENT_TYPE Row
#define ST_COMPARE(x, y, sort) compare_rows(x, y, sort)
#define ST_COMPARE_ARG_TYPE const SortNode
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * No key is the beginning of another, so what is put behind a short one makes no difference.
 */
static uint64
prefix_of(SortNode *sort, const Row *row)
{
	int			column = sort->keys[0].ssup_attno - 1;
	uint64		prefix = 0;

	if (sort->first == NULL)
		return 0;
	MotKeyBufferReset(&sort->buffer);
	MotKeyAppendColumn(sort->first, row->values[column], row->isnull[column], &sort->buffer);
	memcpy(&prefix, sort->buffer.data, Min(sort->buffer.len, sizeof(prefix)));
	return pg_ntoh64(prefix);
}

/* Keeps the rows from below, or as many as are few. */
static void
read_rows(SortNode *sort)
{
	int			natts = sort->desc->natts;
	MotNode    *outer = sort->node.outer;
	TupleTableSlot *slot;
	MemoryContext oldcxt;

	sort->n = sort->at = 0;
	sort->read = true;
	while ((slot = outer->next(outer)) != NULL)
	{
		Row		   *row = &sort->rows[sort->n++];

		oldcxt = MemoryContextSwitchTo(sort->cxt);
		row->values = palloc(natts * (sizeof(Datum) + sizeof(bool)));
		row->isnull = (bool *) (row->values + natts);
		copy_row(sort->desc, slot, row->values, row->isnull);
		row->prefix = prefix_of(sort, row);
		MemoryContextSwitchTo(oldcxt);
		if (sort->n == FEW_ROWS || MemoryContextMemAllocated(sort->cxt, false) > FEW_BYTES)
		{
			sort->is_many = true;
			return;
		}
	}
	/* what comparisons leave behind goes with the rows */
	MotWithin(sort->cxt, sort_rows(sort->rows, sort->n, sort));
}

static TupleTableSlot *
next_kept(SortNode *sort)
{
	const Row  *row;

	if (sort->at >= sort->n)
		return NULL;
	row = &sort->rows[sort->at++];
	return show_row(sort->slot, row->values, row->isnull);
}

static TupleTableSlot *
next_of_sort(MotNode *node)
{
	SortNode   *sort = (SortNode *) node;

	if (!sort->read)
		read_rows(sort);
	return sort->is_many ? sort->many->next(sort->many) : next_kept(sort);
}

/* What the server's node sorts: what has been kept, then the rest. */
static TupleTableSlot *
next_of_rest(MotNode *node)
{
	SortNode   *sort = (SortNode *) node->inner;
	TupleTableSlot *slot = next_kept(sort);

	return slot != NULL ? slot : sort->node.outer->next(sort->node.outer);
}

static void
forget_rows(MotNode *node)
{
	SortNode   *sort = (SortNode *) node;

	if (sort->is_many)
		MotServersAnew(sort->many);
	sort->read = sort->is_many = false;
	ExecClearTuple(sort->slot);
	MotContextReset(sort->cxt);
}

static void
restart_sort(MotNode *node)
{
	forget_rows(node);
	node->outer->restart(node->outer);
}

MotNode *
MotSortBuild(MotStatement *st, Sort *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(SortNode), next_of_sort, restart_sort, outerPlan(plan));
	MotNode    *rest = MotNodeMake(st, sizeof(MotNode), next_of_rest, MotNodeRestart, NULL);
	SortNode   *sort = (SortNode *) node;

	/* (to restart it does nothing: it begins where rows were no longer few) */
	rest->inner = node;
	sort->many = MotServersBuild(st, &plan->plan, sizeof(MotNode), rest);
	node->ps = sort->many->ps;
	sort->cxt = AllocSetContextCreate(st->cxt, "MOT sort", ALLOCSET_SMALL_SIZES);
	sort->desc = ExecTypeFromTL(plan->plan.targetlist);
	sort->slot = MotResultSlot(sort->desc);
	sort->nkeys = plan->numCols;
	sort->keys = palloc0(plan->numCols * sizeof(SortSupportData));
	for (int i = 0; i < plan->numCols; i++)
	{
		SortSupport key = &sort->keys[i];

		key->ssup_cxt = st->cxt;
		key->ssup_collation = plan->collations[i];
		key->ssup_nulls_first = plan->nullsFirst[i];
		key->ssup_attno = plan->sortColIdx[i];
		PrepareSortSupportFromOrderingOp(plan->sortOperators[i], key);
	}
	sort->first = MotKeyColumnOfOrder(plan->sortOperators[0], plan->collations[0], plan->nullsFirst[0]);
	MotKeyBufferInit(&sort->buffer, st->cxt);
	node->rest = forget_rows;
	st->kept = lappend(st->kept, node);
	return node;
}

/* ---------------------------------------------------------------- DISTINCT */

static void
forget_last(MotNode *node)
{
	UniqueNode *unique = (UniqueNode *) node;

	ExecClearTuple(unique->last);
	MotContextReset(unique->cxt);
}

static TupleTableSlot *
next_of_unique(MotNode *node)
{
	UniqueNode *unique = (UniqueNode *) node;
	ExprContext *econtext = node->econtext;
	TupleTableSlot *last = unique->last;
	TupleTableSlot *slot;

	do
	{
		CHECK_FOR_INTERRUPTS();
		slot = node->outer->next(node->outer);
		if (slot == NULL)
			return NULL;
		econtext->ecxt_innertuple = slot;
		econtext->ecxt_outertuple = last;
	} while (!TTS_EMPTY(last) && ExecQualAndReset(unique->equal, econtext));

	forget_last(node);
	if (node->outer->next == next_of_sort && !((SortNode *) node->outer)->is_many)
		return show_row(last, slot->tts_values, slot->tts_isnull);	/* (stays) */
	MotWithin(unique->cxt, copy_row(last->tts_tupleDescriptor, slot, last->tts_values, last->tts_isnull));
	return ExecStoreVirtualTuple(last);
}

static void
restart_unique(MotNode *node)
{
	forget_last(node);
	node->outer->restart(node->outer);
}

MotNode *
MotUniqueBuild(MotStatement *st, Unique *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(UniqueNode), next_of_unique, restart_unique, outerPlan(plan));
	UniqueNode *unique = (UniqueNode *) node;
	TupleDesc	desc = ExecTypeFromTL(plan->plan.targetlist);

	MotNodeContext(node, T_UniqueState, sizeof(UniqueState), &plan->plan);
	unique->cxt = AllocSetContextCreate(st->cxt, "MOT distinct", ALLOCSET_SMALL_SIZES);
	unique->last = MotResultSlot(desc);
	unique->equal = execTuplesMatchPrepare(desc, plan->numCols, plan->uniqColIdx, plan->uniqOperators,
										   plan->uniqCollations, node->ps);
	node->rest = forget_last;
	st->kept = lappend(st->kept, node);
	return node;
}
