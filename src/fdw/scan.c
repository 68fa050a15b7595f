/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Reading: the whole table, ranges of an index, single keys.
 *
 * Starting a scan must cost next to nothing, for most are lookups of one row:
 * what the catalogue knows comes from the relation cache, keys are not made
 * before the first row is asked for, and there is one allocation.
 *
 * Rows are shown in place (slot.c).  What a view sees stays in memory until
 * the executor ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "xact/held.h"

static bool next_by_index(MotScan *scan, ExprContext *econtext);

/* Fill in a scan of "node"'s table, which is all zeros. */
void
MotScanInit(MotScan *scan, ForeignScanState *node)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	Relation	rel = node->ss.ss_currentRelation;
	Oid			indexoid = (Oid) list_nth_int(plan->fdw_private, MOT_PLAN_INDEX);

	scan->session = MotSession();
	scan->relation = MotRelationGet(rel);
	scan->view = MotViewFor(estate->es_snapshot);
	MotViewTable(scan->relation, &scan->view);
	scan->node = node;

	if (unlikely(list_nth_int(plan->fdw_private, MOT_PLAN_ARMS) > 1))
		MotUnionInit(scan, plan);
	else if (OidIsValid(indexoid))
	{
		int			at = MOT_PLAN_NCONDITIONS;
		int			value = 0;
		MotIndex   *index = MotRelationIndex(scan->relation, indexoid);

		if (index == NULL)
			elog(ERROR, "index %u of table \"%s\" is not there",
				 indexoid, RelationGetRelationName(rel));
		scan->keys = MotKeysCreate(index, plan, &node->ss.ps, &at, &value);
	}
	else if (list_nth_int(plan->fdw_private, MOT_PLAN_NCONDITIONS) > 0)
		scan->by_tid = true;
}

void
MotScanDropSorted(MotScan *scan)
{
	if (unlikely(scan->sorted != NULL))
		MemoryContextDelete(scan->sorted->cxt);
	scan->sorted = NULL;
}

/*
 * Between two executions of a statement that runs without the executor: nothing of the last one
 * stays.
 */
void
MotScanPark(MotScan *scan)
{
	if (scan->cursor.open)
		MotKeyCursorClose(&scan->cursor);
	MotScanDropSorted(scan);
	if (scan->writer)
		MotWriterRest(scan->writer);
}

static void
open_cursor(MotScan *scan)
{
	MotKeyCursorOpen(&scan->cursor, scan->node->ss.ps.state->es_query_cxt, scan->session, &scan->view,
					 scan->keys, scan->node->ss.ss_currentRelation);
}

static bool
passes_recheck(void *arg, const mot_version *version, Datum **values, bool **isnull)
{
	MotScan    *scan = arg;
	TupleTableSlot *slot = scan->node->ss.ss_ScanTupleSlot;
	ExprContext *econtext = scan->node->ss.ps.ps_ExprContext;

	MotSlotShow(slot, version);
	econtext->ecxt_scantuple = slot;
	if (!ExecQual(MotScanRecheck(scan), econtext))
		return false;
	slot_getsomeattrs(slot, MotIndexColumns(scan->keys->index));
	*values = slot->tts_values;
	*isnull = slot->tts_isnull;
	return true;
}

/* of all rows, or (after MotKeysFirst) of those that the keys lead to */
static void
sort_rows(MotScan *scan, MotKeys *keys)
{
	MemoryContext cxt = AllocSetContextCreate(scan->node->ss.ps.state->es_query_cxt,
											  "MOT sorted rows", ALLOCSET_DEFAULT_SIZES);

	scan->sorted = MemoryContextAllocZero(cxt, sizeof(MotFoundRows));
	scan->sorted->cxt = cxt;
	MotFoundSorted(scan->sorted, scan->session, scan->relation->table, &scan->view, scan->keys->index,
				   keys, passes_recheck, scan);
	ExecClearTuple(scan->node->ss.ss_ScanTupleSlot);
	scan->next_sorted = 0;
}

static bool
next_sorted(MotScan *scan)
{
	const MotFoundRows *sorted = scan->sorted;
	int64		i = scan->next_sorted++;

	if (i >= sorted->n)
	{
		scan->phase = MOT_SCAN_DONE;
		return false;
	}
	if (scan->keys->backward)
		i = sorted->n - 1 - i;
	scan->row = sorted->rows[i].row;
	scan->version = sorted->rows[i].version;
	return true;
}

/*
 * An execution has started that will look up a row, but not at once (a client's
 * parameters come with one message, and the rows are asked for by another):
 * begin to fetch what no cache has.  Of a scan whose keys are "known".
 */
void
MotScanAhead(MotScan *scan, ExprContext *econtext)
{
	MotKeys    *keys = scan->keys;
	MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

	if (MotKeysFirst(keys, econtext))
		mot_index_ahead(&keys->index->handle, keys->lower.data, keys->lower.len);
	MemoryContextSwitchTo(oldcxt);
}

/* Some time later, but before the row is asked for. */
void
MotScanAheadMore(MotScan *scan)
{
	MotKeys    *keys = scan->keys;

	if (scan->phase == MOT_SCAN_START && keys->lower.len > 0)
		mot_index_ahead_more(&keys->index->handle, keys->lower.data, keys->lower.len);
}

static bool
next_row(MotScan *scan, ExprContext *econtext)
{
	if (likely(scan->keys != NULL && scan->u == NULL))
		return next_by_index(scan, econtext);

	if (scan->u != NULL)
	{
		for (;;)
		{
			if (next_by_index(scan, econtext))
			{
				if (MotUnionIsNew(scan))
					return true;
			}
			else if (!MotUnionNextArm(scan))
				return false;
			CHECK_FOR_INTERRUPTS();
		}
	}

	if (scan->by_tid)
	{
		if (scan->phase == MOT_SCAN_START)
		{
			MotTidsFill(scan, econtext);
			scan->phase = MOT_SCAN_RUNNING;
		}
		return scan->phase == MOT_SCAN_RUNNING && MotTidsNext(scan);
	}

	if (scan->phase == MOT_SCAN_DONE)
		return false;
	if (scan->phase == MOT_SCAN_START)
	{
		mot_scan_begin(scan->session, &scan->table_scan, scan->relation->table,
					   &scan->view);
		scan->starts++;
		scan->phase = MOT_SCAN_RUNNING;
	}
	if (mot_scan_next(scan->session, &scan->table_scan, &scan->row, &scan->version))
		return true;
	scan->phase = MOT_SCAN_DONE;
	return false;
}

/* The next row into scan->row and scan->version. */
bool
MotScanNext(MotScan *scan, ExprContext *econtext)
{
	bool		found = next_row(scan, econtext);

	if (unlikely(MotIslandsCounting) && found && scan->keys != NULL)
		MotRelationTouchedNext(scan->relation, scan->version, scan->keys->get ? 0 : scan->cursor.rows++);
	scan->rows += found;
	if (unlikely(scan->rows % MOT_HELD_ROWS == 0))
		MotHeldCheck();
	return found;
}

static bool
next_by_index(MotScan *scan, ExprContext *econtext)
{
	MotKeys    *keys = scan->keys;

	if (scan->phase == MOT_SCAN_START)
	{
		scan->starts++;
		keys->view = &scan->view;
		if (unlikely(scan->view.snapshot < mot_index_valid_from(keys->index->handle.index)))
			sort_rows(scan, NULL);
		else if (!MotKeysFirst(keys, econtext))
		{
			scan->phase = MOT_SCAN_DONE;
			return false;
		}
		else if (unlikely(keys->astray))
			sort_rows(scan, keys);
		else if (!keys->get)
			open_cursor(scan);
		scan->phase = MOT_SCAN_RUNNING;
	}
	if (unlikely(scan->sorted != NULL))
		return next_sorted(scan);

	while (scan->phase == MOT_SCAN_RUNNING)
	{
		if (keys->get)
		{
			mot_status	status = MotKeysGet(keys, scan->session, &scan->view, &scan->row, &scan->version);

			if (unlikely(status == MOT_AND_ANOTHER))
				return true;
			if (!MotKeysNext(keys))
				scan->phase = MOT_SCAN_DONE;
			if (status == MOT_OK)
				return true;
			if (unlikely(status != MOT_NOT_FOUND))
				MotRaiseStatus(status, scan->node->ss.ss_currentRelation);
		}
		else
		{
			if (mot_cursor_next(scan->cursor.cursor, &scan->row, &scan->version))
				return true;
			MotKeyCursorClose(&scan->cursor);
			if (!MotKeysNext(keys))
				scan->phase = MOT_SCAN_DONE;
			else
				open_cursor(scan);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/*
 * What has been read of an ordinary table, for pg_stat_user_tables and its like.  An
 * entry of the relation cache stays where it is as long as nothing has been invalidated.
 */
void
MotScanCount(MotScan *scan)
{
	Relation	rel = scan->node->ss.ss_currentRelation;
	uint64		starts = scan->starts - scan->starts_counted;
	uint64		rows = scan->rows - scan->rows_counted;

	scan->starts_counted = scan->starts;
	scan->rows_counted = scan->rows;
	if (scan->keys != NULL)
	{
		uint64		generation = MotRelationGeneration;

		if (unlikely(scan->index_generation != generation))
		{
			scan->index = RelationIdGetRelation(scan->keys->index->indexoid);
			if (!RelationIsValid(scan->index))
				return;
			RelationClose(scan->index);
			scan->index_generation = MotRelationGeneration == generation ? generation : 0;
		}
		rel = scan->index;
	}
	if (!pgstat_should_count_relation(rel))
		return;
	MotCountScans(rel, starts, rows, scan->keys != NULL ? rows : 0);
}

/* What the bounds enforce, as an expression, for rows not found through them. */
ExprState *
MotScanRecheck(MotScan *scan)
{
	ForeignScan *plan = (ForeignScan *) scan->node->ss.ps.plan;

	if (scan->recheck == NULL && list_nth_int(plan->fdw_private, MOT_PLAN_ARMS) == 1)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(scan->node->ss.ps.state->es_query_cxt);

		/* NULL again if there are none */
		scan->recheck = ExecInitQual(MotPlanList(plan, MOT_LIST_RECHECK), &scan->node->ss.ps);
		MemoryContextSwitchTo(oldcxt);
	}
	return scan->recheck;
}

/*
 * Lock the current row, which the scan's slot shows and which has passed the
 * filter.  If somebody has committed a newer version meanwhile, that is what
 * counts: it has to satisfy everything, and is then what the slot shows.
 * False: the row is not to be touched.
 */
bool
MotScanLockRow(MotScan *scan, ExprContext *econtext, ExprState *filter)
{
	TupleTableSlot *slot = scan->node->ss.ss_ScanTupleSlot;
	const mot_version *newest;
	MotLockResult result;

	result = MotWriterLock(scan->writer, scan->row, scan->version,
						   scan->operation == CMD_DELETE ? MOT_MODE_UPDATE : MOT_MODE_CHANGE,
						   MOT_LOCK_WAIT, &newest);
	if (likely(result == MOT_LOCKED))
		return true;
	if (result == MOT_LOCK_SELF)
		MotRefuseOwnChange(scan->session, &scan->view, scan->relation->table, scan->row, scan->operation);
	if (result != MOT_LOCKED_NEWER)
		return false;
	scan->version = newest;
	MotSlotShow(slot, newest);
	econtext->ecxt_scantuple = slot;
	return ExecQual(filter, econtext) && ExecQual(MotScanRecheck(scan), econtext);
}

/* ------------------------------------------------- the executor's callbacks */

void
MotBeginForeignScan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	MotScan    *scan;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	node->fdw_state = scan = palloc0(sizeof(MotScan));
	MotScanInit(scan, node);
	MotSlotAdopt(node->ss.ss_ScanTupleSlot);

	scan->operation = list_nth_int(plan->fdw_private, MOT_PLAN_LOCK);
	if (scan->operation != 0 && node->ss.ps.state->es_epq_active == NULL)
	{
		scan->writer = MotWriterBegin(node->ss.ss_currentRelation,
									  node->ss.ps.state->es_snapshot,
									  node->ss.ps.state->es_output_cid);

		/*
		 * The filter comes before the lock, so it is ours; evaluated once for
		 * a row, unless it has changed.
		 */
		scan->filter = node->ss.ps.qual;
		node->ss.ps.qual = NULL;
	}
}

TupleTableSlot *
MotIterateForeignScan(ForeignScanState *node)
{
	MotScan    *scan = (MotScan *) node->fdw_state;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	for (;;)
	{
		if (!MotScanNext(scan, econtext))
			return ExecClearTuple(slot);
		MotScanShow(scan);
		if (likely(scan->writer == NULL))
			return slot;

		/*
		 * The rows of an UPDATE or DELETE with row triggers: these must see
		 * the newest version, so it is locked before they run.
		 */
		econtext->ecxt_scantuple = slot;
		if (!ExecQual(scan->filter, econtext))
			InstrCountFiltered1(node, 1);
		else if (MotScanLockRow(scan, econtext, scan->filter))
			return slot;
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
	}
}

/* EvalPlanQual put another version of the row into the slot: would the index have found it? */
bool
MotRecheckForeignScan(ForeignScanState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = slot;
	return ExecQual(MotScanRecheck((MotScan *) node->fdw_state), econtext);
}

void
MotReScanForeignScan(ForeignScanState *node)
{
	MotScan    *scan = (MotScan *) node->fdw_state;

	if (scan == NULL)
		return;
	if (scan->cursor.open)
		MotKeyCursorClose(&scan->cursor);
	MotScanDropSorted(scan);
	scan->phase = MOT_SCAN_START;
	if (scan->u != NULL)
		MotUnionRestart(scan);
}

/* (also of a direct modification, which begins with its scan) */
void
MotEndForeignScan(ForeignScanState *node)
{
	MotScan    *scan = (MotScan *) node->fdw_state;

	if (scan == NULL)
		return;
	MotKeyCursorClose(&scan->cursor);
	if (scan->writer)
		MotWriterEnd(scan->writer);
}
