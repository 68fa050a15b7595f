/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Reading ordinary tables: sequential scans, rows by their tuple ids.
 *
 * Snapshots.  A query's snapshot has an engine snapshot beside it (see
 * xact/snapshot.c), which its scans read by.  Other work names a snapshot of
 * its own: at READ COMMITTED it gets one of now.  Above that the transaction has
 * one snapshot, which is the active one; what is neither that nor a query's is
 * asked for by DDL that wants the newest rows, under a lock that keeps them so
 * (ALTER TABLE rewriting a table, checking a constraint): what others have
 * committed since the transaction began must not be lost then.
 *
 * A scan reads a page of the engine's at a time, so that it can turn round
 * (cursors), and the server's blocks, which ANALYZE asks for, are shares of the
 * pages.  A table that is not in memory is none to ANALYZE but a warning: it gets the
 * numbers that it has stored the last time, and no row.
 *
 * A range of tuple ids is read in their order, as of a heap table, since who pages through a table
 * by ctid takes that for granted: its pages are put in the order of their addresses first.  Rows
 * that this transaction has changed, whose ids are above all others' (xact/tid.c), are one more
 * page, behind them.
 *
 * A parallel scan deals out pages, 64 kB each, by a counter; who comes late takes the next
 * one, and who leaves early, or is parked (xact/workers.c), has finished his.  Each participant
 * knows himself how many there are: all rows that the common view shows were there before the first
 * of them began, so a page that has come since, which only some count, has none.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/parallel.h"
#include "access/tsmapi.h"
#include "access/xact.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "faults.h"
#include "machine/machine.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "relation/keys.h"
#include "relation/slot.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "xact/held.h"
#include "xact/workers.h"

/* a page that a range of tuple ids may have rows in */
typedef struct RangePage
{
	ItemPointerData first;
	uint64		page;
} RangePage;

typedef struct MotTableScan
{
	TableScanDescData base;
	MotRelation *relation;		/* NULL: not in memory */
	mot_session *session;
	mot_view	view;
	bool		loose;			/* the view is ours to let go */
	bool		dirty;			/* rows are looked for that are to be locked */
	bool		waited;			/* ... also for those not committed at its end */
	uint64		pages;
	uint64		page;			/* the one that has been read, if "in_page";
								 * of a range its place in "ranged" */
	bool		in_page;
	uint64		behind;			/* ANALYZE: first page behind the block */
	pg_atomic_uint64 *next;		/* a parallel scan's: the next page that
								 * nobody has taken */
	int64		at;				/* in it: the row that was handed out last */
	MotFoundRows found;
	ItemPointerData lowest;		/* of a range */
	ItemPointerData highest;
	uint64		nranged;
	RangePage  *ranged;
} MotTableScan;

/* that have begun, ever */
static uint64 bitmap_scans = 0;

static bool bitmaps_planned = false;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;

typedef struct MotSharedScan
{
	ParallelTableScanDescData base;
	pg_atomic_uint64 next;
} MotSharedScan;

/* ------------------------------------------------------------------- views */

mot_view
MotTableView(Snapshot snapshot)
{
	mot_view	view = MotViewFor(snapshot);

	/*
	 * (the transaction's own is what foreign keys are checked with, from 19
	 * on without a query)
	 */
	if (!IsolationUsesXactSnapshot() || snapshot == NULL ||
		(ActiveSnapshotSet() && snapshot == GetActiveSnapshot()) || snapshot == GetTransactionSnapshot())
		return view;
	/* (the command is the snapshot's: it was taken just now) */
	return MotViewOfNow(snapshot);
}

static void
refuse_snapshot(Relation rel)
{
	MotTableRefuse(rel, "reading with this kind of snapshot is");
}

void
MotTableShow(Relation rel, mot_row *row, const mot_version *version, unsigned changes, TupleTableSlot *slot)
{
	if (likely(slot->tts_ops == &MotSlotOps))
		MotSlotShow(slot, version);
	else
		MotSlotStore(slot, version);
	MotVersionToTid(MotSession(), row, changes, &slot->tts_tid);
	slot->tts_tableOid = RelationGetRelid(rel);
}

/* ------------------------------------------------------------------- scans */

/*
 * Who looks for a row to change it (a subscription, without an index): it waits as it locks that.
 * What is not committed is not shown, since it may not have all its bytes yet.  But who has come to
 * the end, and so has found nothing, waits for all who are at such rows, and looks once more.
 */
static void
begin_dirty(MotTableScan *scan)
{
	Snapshot	snapshot = scan->base.rs_snapshot;

	snapshot->xmin = snapshot->xmax = InvalidTransactionId;
	snapshot->speculativeToken = 0;
	scan->view = MotLooseView();
	scan->loose = scan->dirty = true;
}

TableScanDesc
MotScanBegin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
			 ParallelTableScanDesc parallel, uint32 flags)
{
	MotTableScan *scan = palloc0(sizeof(MotTableScan));
	mot_scan	pages;

	if ((flags & SO_TYPE_BITMAPSCAN) != 0)
	{
		MotTableIndexes(rel);
		bitmap_scans++;
	}
	if (nkeys != 0)
		MotTableRefuse(rel, "scans with keys are");

	MotTableShowProgress();

	RelationIncrementReferenceCount(rel);
	scan->found.cxt = CurrentMemoryContext;
	scan->base.rs_rd = rel;
	scan->base.rs_snapshot = snapshot;
	scan->base.rs_flags = flags;
	scan->base.rs_parallel = parallel;
	if (unlikely((flags & SO_TYPE_ANALYZE) != 0 && MotRelationUnreadable(rel)))
	{
		ereport(WARNING,
				(errmsg("skipping analyze of \"%s\" --- it is not in memory", RelationGetRelationName(rel))));
		return &scan->base;
	}

	/* the relation first: to know of it can take waiting */
	scan->relation = MotRelationGet(rel);
	scan->session = MotSession();
	if (parallel != NULL)
	{
		scan->next = &((MotSharedScan *) parallel)->next;
		scan->view = MotViewOfWorkers(snapshot);
		/* (the leader, who serves a client, goes where the system likes) */
		if (IsParallelWorker())
			MotMachinePlace(ParallelWorkerNumber + 1);
	}
	else if (snapshot == NULL || snapshot->snapshot_type == SNAPSHOT_SELF ||
			 snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE)
	{
		/*
		 * the rows as they are now (none: ANALYZE; neither it nor CLUSTER
		 * reads them on the user's behalf)
		 */
		scan->view = MotLooseView();
		scan->view.aside = snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_SELF;
		scan->loose = true;
	}
	else if (snapshot->snapshot_type == SNAPSHOT_MVCC)
		scan->view = MotTableView(snapshot);
	else if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
		begin_dirty(scan);
	else
		refuse_snapshot(rel);
	MotViewTable(scan->relation, &scan->view);
	mot_scan_begin(scan->session, &pages, scan->relation->table, &scan->view);
	scan->pages = pages.pages;
	if ((flags & (SO_TYPE_SEQSCAN | SO_TYPE_SAMPLESCAN)) != 0)
		pgstat_count_heap_scan(rel);
	return &scan->base;
}

void
MotScanFinish(TableScanDesc base)
{
	MotTableScan *scan = (MotTableScan *) base;

	if (scan->loose)
		MotLooseViewRelease();
	if ((base->rs_flags & SO_TEMP_SNAPSHOT) != 0)
		UnregisterSnapshot(base->rs_snapshot);
	RelationDecrementReferenceCount(base->rs_rd);
	if (scan->found.rows != NULL)
		pfree(scan->found.rows);
	if (scan->ranged != NULL)
		pfree(scan->ranged);
	pfree(scan);
}

void
MotScanAgain(TableScanDesc base, struct ScanKeyData *key, bool set_params,
			 bool allow_strat, bool allow_sync, bool allow_pagemode)
{
	MotTableScan *scan = (MotTableScan *) base;
	mot_scan	pages;

	if (unlikely(scan->dirty))
	{
		MotLooseViewRelease();
		begin_dirty(scan);
		MotViewTable(scan->relation, &scan->view);
		mot_scan_begin(scan->session, &pages, scan->relation->table, &scan->view);
		scan->pages = pages.pages;
		scan->waited = false;
	}
	scan->in_page = false;
	scan->page = 0;
	/* (of a bitmap: there may be another one now) */
	scan->found.n = 0;
}

/* Wait for all others who have versions that are not committed.  True: the scan begins anew. */
static bool
waits_for_writers(MotTableScan *scan)
{
	List	   *holders = NIL;
	mot_holder	holder;
	uint64		last = 0;
	mot_scan	pages;

	if (scan->waited)
		return false;
	mot_scan_begin(scan->session, &pages, scan->relation->table, &scan->view);
	while (mot_scan_held(scan->session, &pages, &holder))
	{
		bool		known = holder.host_id == last;

		last = holder.host_id;
		if (known || !MotNameWriter(&holder))
			continue;
		foreach_ptr(mot_holder, other, holders)
			known |= other->host_id == holder.host_id;
		if (!known)
			holders = lappend(holders, memcpy(palloc(sizeof(holder)), &holder, sizeof(holder)));
	}
	if (holders == NIL)
		return false;
	foreach_ptr(mot_holder, writer, holders)
		MotWaitForWriter(scan->base.rs_rd, writer);
	list_free_deep(holders);
	MotScanAgain(&scan->base, NULL, false, false, false, false);
	scan->waited = true;
	return true;
}

/* what this transaction has changed of it */
static inline unsigned
changes_of(const mot_row *row, const mot_version *version)
{
	return unlikely(mot_version_ts(version) == 0) ? mot_version_changes(row, version) : 0;
}

/* all rows of a page that the view sees, besides those that have been found */
static void
add_page(MotTableScan *scan, uint64 page)
{
	mot_scan	pages;
	mot_row    *row;
	const mot_version *version;

	mot_scan_begin(scan->session, &pages, scan->relation->table, &scan->view);
	pages.next_page = page;
	pages.pages = Min(page + 1, pages.pages);
	while (mot_scan_next(scan->session, &pages, &row, &version))
		MotFoundAdd(&scan->found, row, version);
	if (unlikely(MotAlterShows != InvalidOid))
	{
		pgstat_progress_update_param(PROGRESS_REPACK_TOTAL_HEAP_BLKS, scan->pages);
		pgstat_progress_update_param(PROGRESS_REPACK_HEAP_BLKS_SCANNED, page + 1);
	}
	CHECK_FOR_INTERRUPTS();
	if (!scan->loose)
		MotHeldCheck();
}

static void add_range(MotTableScan *scan, uint64 at);

static void
read_page(MotTableScan *scan, uint64 page)
{
	scan->found.n = 0;
	if (unlikely(scan->ranged != NULL))
		add_range(scan, page);
	else
		add_page(scan, page);
	scan->page = page;
	scan->in_page = true;
}

/* the row that the scan has come to, with its tuple id */
void
MotScanShowRow(TableScanDesc base, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;
	MotFound   *found = &scan->found.rows[scan->at];
	unsigned	changes = changes_of(found->row, found->version);

	if (unlikely(scan->dirty))
		MotConflictFound(found->row, found->version);
	MotTableShow(base->rs_rd, found->row, found->version, changes == 0 && scan->dirty ? MOT_TID_LOCKED : changes, slot);
}

/* a forward scan's next page; before the first one if that is the next to be read */
static inline uint64
page_ahead(MotTableScan *scan)
{
	if (scan->next != NULL)
	{
		uint64		page;

		MotMachineStay();
		MotWorkersPause(scan->next, scan->pages);
		page = pg_atomic_fetch_add_u64(scan->next, 1);
		if (page >= scan->pages)
			MotWorkersOver();
		return page;
	}
	return scan->in_page ? scan->page + 1 : scan->page;
}

/* the next row of the pages before "end" */
static inline bool
next_found(MotTableScan *scan, uint64 end, TupleTableSlot *slot)
{
	for (;;)
	{
		if (scan->in_page && ++scan->at < scan->found.n)
			return true;
		scan->page = page_ahead(scan);
		scan->in_page = false;
		if (scan->page >= end)
		{
			ExecClearTuple(slot);
			return false;
		}
		read_page(scan, scan->page);
		scan->at = -1;
	}
}

/* a forward scan's next row, without showing it; NULL: there are no more, and the slot is empty */
const mot_version *
MotScanVersion(TableScanDesc base, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;

	if (!next_found(scan, scan->pages, slot))
		return NULL;
	pgstat_count_heap_getnext(base->rs_rd);
	return scan->found.rows[scan->at].version;
}

/* what a forward scan will come to in so many rows, if it is in the same page; else NULL */
const mot_version *
MotScanPeek(TableScanDesc base, int ahead)
{
	MotTableScan *scan = (MotTableScan *) base;

	return scan->in_page && scan->at + ahead < scan->found.n ? scan->found.rows[scan->at + ahead].version : NULL;
}

bool
MotScanGet(TableScanDesc base, ScanDirection direction, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;

	/*
	 * Not in a page: before the first one if that is the next to be read,
	 * else behind the last.
	 */
	if (ScanDirectionIsForward(direction))
	{
		while (!next_found(scan, scan->ranged != NULL ? scan->nranged + 1 : scan->pages, slot))
			if (likely(!scan->dirty) || !waits_for_writers(scan))
				return false;
	}
	else
	{
		for (;;)
		{
			if (scan->in_page && --scan->at >= 0)
				break;
			scan->in_page = false;
			if (scan->page == 0)
			{
				ExecClearTuple(slot);
				return false;
			}
			read_page(scan, scan->page - 1);
			scan->at = scan->found.n;
		}
	}
	MotScanShowRow(base, slot);
	pgstat_count_heap_getnext(base->rs_rd);
	return true;
}

/* ------------------------------------------------------ ranges of tuple ids */

static int
compare_pages(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) &((const RangePage *) a)->first,
							  (ItemPointer) &((const RangePage *) b)->first);
}

void
MotScanSetRange(TableScanDesc base, ItemPointer lowest, ItemPointer highest)
{
	MotTableScan *scan = (MotTableScan *) base;

	scan->lowest = *lowest;
	scan->highest = *highest;
	scan->in_page = false;
	scan->nranged = 0;
	if (scan->ranged == NULL)
		scan->ranged = MemoryContextAllocHuge(GetMemoryChunkContext(scan),
											  Max(1, scan->pages) * sizeof(RangePage));
	/* (what is a hole now has no row that the view sees) */
	for (uint64 page = 0; page < scan->pages; page++)
	{
		RangePage  *ranged = &scan->ranged[scan->nranged];
		const mot_row *first;
		const mot_row *last;
		ItemPointerData end;

		if (!mot_scan_page(scan->relation->table, page, &first, &last))
			continue;
		MotVersionToTid(scan->session, first, 0, &ranged->first);
		MotVersionToTid(scan->session, last, 0, &end);
		ranged->page = page;
		if (ItemPointerCompare(&end, lowest) >= 0 && ItemPointerCompare(&ranged->first, highest) <= 0)
			scan->nranged++;
	}
	qsort(scan->ranged, scan->nranged, sizeof(RangePage), compare_pages);
}

static void
found_tid(MotTableScan *scan, const MotFound *found, ItemPointer tid)
{
	MotVersionToTid(scan->session, found->row, changes_of(found->row, found->version), tid);
}

static int
compare_found(const void *a, const void *b, void *scan)
{
	ItemPointerData first;
	ItemPointerData second;

	found_tid(scan, a, &first);
	found_tid(scan, b, &second);
	return ItemPointerCompare(&first, &second);
}

/*
 * of the rows found, from this one on, those in the range stay that this transaction has changed,
 * or has not
 */
static void
keep_range(MotTableScan *scan, int64 from, bool changed)
{
	int64		kept = from;

	for (int64 i = from; i < scan->found.n; i++)
	{
		ItemPointerData tid;

		if ((mot_version_ts(scan->found.rows[i].version) == 0) != changed)
			continue;
		found_tid(scan, &scan->found.rows[i], &tid);
		if (ItemPointerCompare(&tid, &scan->lowest) >= 0 && ItemPointerCompare(&tid, &scan->highest) <= 0)
			scan->found.rows[kept++] = scan->found.rows[i];
	}
	scan->found.n = kept;
}

/* the rows of one of the range's pages, of which the last has what this transaction has changed */
static void
add_range(MotTableScan *scan, uint64 at)
{
	if (at < scan->nranged)
	{
		add_page(scan, scan->ranged[at].page);
		keep_range(scan, 0, false);
	}
	else if (mot_txn_has_writes(scan->session) && MotTidOfChanges(&scan->highest))
	{
		for (uint64 page = 0; page < scan->pages; page++)
		{
			int64		from = scan->found.n;

			add_page(scan, page);
			keep_range(scan, from, true);
		}
		qsort_arg(scan->found.rows, scan->found.n, sizeof(MotFound), compare_found, scan);
	}
}

/* a scan that has come to an end is set anew, and then begins at that end again */
bool
MotScanGetRange(TableScanDesc base, ScanDirection direction, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;

	if (!scan->in_page)
		scan->page = ScanDirectionIsForward(direction) ? 0 : scan->nranged + 1;
	return MotScanGet(base, direction, slot);
}

/* ---------------------------------------------------------- parallel scans */

Size
MotScanShare(Relation rel)
{
	return sizeof(MotSharedScan);
}

Size
MotScanShareInit(Relation rel, ParallelTableScanDesc parallel)
{
	MotShareIsOf(parallel, rel);
	parallel->phs_syncscan = false;
	pg_atomic_init_u64(&((MotSharedScan *) parallel)->next, 0);
	return sizeof(MotSharedScan);
}

/* (nobody is scanning) */
void
MotScanShareAgain(Relation rel, ParallelTableScanDesc parallel)
{
	pg_atomic_write_u64(&((MotSharedScan *) parallel)->next, 0);
}

/* ------------------------------------------------------------ bitmap scans */

/*
 * To a bitmap a block has up to MaxHeapTuplesPerPage rows, so these are not the blocks
 * of ctids: 256 row numbers make one.
 */
#define BITMAP_ROWS 256

bool
MotBitmapsFit(void)
{
	StaticAssertStmt(BITMAP_ROWS <= MaxHeapTuplesPerPage, "a block of a bitmap has fewer rows");
	return mot_row_number_bits(MotEngine) <= 40;
}

void
MotBitmapAdd(TIDBitmap *bitmap, mot_session *session, const mot_row *row)
{
	uint64		number = mot_row_number(session, row);
	ItemPointerData tid;

	ItemPointerSet(&tid, (BlockNumber) (number / BITMAP_ROWS), (OffsetNumber) (number % BITMAP_ROWS + 1));
	tbm_add_tuples(bitmap, &tid, 1, false);
}

/* n < 0: only the block has been kept, and all its rows are to be looked at */
bool
MotBitmapRead(TableScanDesc base, BlockNumber block, int n, const OffsetNumber *offsets)
{
	MotTableScan *scan = (MotTableScan *) base;
	bool		all = n < 0;

	scan->found.n = 0;
	scan->at = -1;
	for (int i = 0; i < (all ? BITMAP_ROWS : n); i++)
	{
		unsigned	offset = all ? i : offsets[i] - 1;
		mot_row    *row = mot_row_by_number(scan->session, scan->relation->table,
											(uint64) block * BITMAP_ROWS + offset);
		const mot_version *version = row == NULL ? NULL :
		mot_row_visible(scan->session, &scan->view, scan->relation->table, row);

		if (version != NULL)
			MotFoundAdd(&scan->found, row, version);
	}
	return scan->found.n > 0;
}

bool
MotBitmapShow(TableScanDesc base, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;

	if (++scan->at >= scan->found.n)
	{
		ExecClearTuple(slot);
		return false;
	}
	MotScanShowRow(base, slot);
	pgstat_count_heap_fetch(base->rs_rd);
	return true;
}

/*
 * The executor would have the system read blocks ahead, of a file that has none.  And a
 * bitmap may be asked for before the scan of the table begins: indexes have to
 * be ours by then.
 */
static bool
prepare_bitmaps(PlanState *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, BitmapHeapScanState))
	{
		Relation	rel = ((BitmapHeapScanState *) node)->ss.ss_currentRelation;

		if (MotIsOrdinaryTable(RelationGetRelid(rel)))
		{
			MotTableIndexes(rel);
			MotBitmapStopPrefetching((BitmapHeapScanState *) node);
		}
	}
	return planstate_tree_walker(node, prepare_bitmaps, arg);
}

static void
executor_start(QueryDesc *query, int eflags)
{
	uint64		before = bitmap_scans;

	prev_ExecutorStart(query, eflags);
	if (unlikely(bitmap_scans != before) ||
		(MOT_BITMAP_COMES_FIRST && (bitmaps_planned || IsParallelWorker())))
		(void) prepare_bitmaps(query->planstate, NULL);
}

/* this process may have plans with bitmaps */
void
MotBitmapsPlanned(void)
{
	bitmaps_planned = true;
}

/* (behind MotSnapshotInit, whose hook is below ours) */
void
MotBitmapsInit(void)
{
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}

/* ---------------------------------------------------------- rows by tuple id */

/*
 * The version that a tuple id means to a snapshot, or NULL.  SnapshotAny asks for
 * the very version that it was given with: AFTER triggers and re-checks of
 * rows that are not locked.
 */
static const mot_version *
version_of(MotRelation *mr, ItemPointer tid, Snapshot snapshot, mot_row **rowp)
{
	mot_session *session = MotSession();
	unsigned	changes;
	unsigned	made;
	uint32		command;
	mot_view	view;
	mot_row    *row;
	const mot_version *version;

	/* before the row is looked at: it has to stay where it is */
	if (snapshot->snapshot_type == SNAPSHOT_MVCC)
		view = MotTableView(snapshot);
	else
		view = MotTableView(ActiveSnapshotSet() ? GetActiveSnapshot() : NULL);
	MotViewTable(mr, &view);

	row = MotTidToVersion(session, mr->table, tid, &changes);
	*rowp = row;
	if (row == NULL)
		return NULL;
	switch (snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			return mot_row_visible(session, &view, mr->table, row);
		case SNAPSHOT_SELF:
			return mot_row_newest(session, row);
		case SNAPSHOT_ANY:
			made = mot_row_changes(session, row, &command);
			if (changes != 0 && changes != MOT_TID_LOCKED)
				return mot_row_after_changes(session, &view, row, changes);
			/* what our changes were made from */
			if (made != 0)
				return mot_row_after_changes(session, &view, row, 0);
			/* it may have been deleted since it was found by no snapshot */
			version = changes == MOT_TID_LOCKED ? mot_row_newest(session, row) : NULL;
			return version != NULL ? version : mot_row_visible(session, &view, mr->table, row);
		default:
			return NULL;
	}
}

bool
MotFetchVersion(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	ItemPointerData asked = *tid;
	mot_row    *row;
	uint32		command;
	const mot_version *version;

	if (snapshot->snapshot_type != SNAPSHOT_MVCC && snapshot->snapshot_type != SNAPSHOT_SELF &&
		snapshot->snapshot_type != SNAPSHOT_ANY)
		refuse_snapshot(rel);
	version = version_of(MotRelationGet(rel), tid, snapshot, &row);

	/*
	 * made and deleted since our snapshot was taken, it has been in the way
	 * of ON CONFLICT
	 */
	if (version == NULL && row != NULL && snapshot->snapshot_type == SNAPSHOT_ANY && IsolationUsesXactSnapshot())
		MotRaiseStatus(MOT_CONFLICT_DELETED, rel);
	if (version == NULL)
		return false;
	MotTableShow(rel, row, version, 0, slot);
	if (snapshot->snapshot_type == SNAPSHOT_ANY)
	{
		slot->tts_tid = asked;
		/* (DELETE ... RETURNING) */
		if (mot_row_changes(MotSession(), row, &command) != 0 && mot_row_newest(MotSession(), row) == NULL)
			MotSlotChanged(slot, true);
		else
			MotSlotFetched(slot);
	}
	else if (mot_version_ts(version) == 0)
		MotVersionToTid(MotSession(), row, mot_version_changes(row, version), &slot->tts_tid);
	return true;
}

/* any may be asked for; those that no row has are not found */
bool
MotTidIsValid(TableScanDesc scan, ItemPointer tid)
{
	return ItemPointerIsValid(tid);
}

/* a row's id stays the same as it is updated, but for what this transaction has made of it */
void
MotLatestTid(TableScanDesc scan, ItemPointer tid)
{
	mot_row    *row;
	const mot_version *version = version_of(MotRelationGet(scan->rs_rd), tid, scan->rs_snapshot, &row);

	if (version != NULL)
		MotVersionToTid(MotSession(), row, changes_of(row, version), tid);
}

bool
MotSatisfies(Relation rel, TupleTableSlot *slot, Snapshot snapshot)
{
	MotRelation *mr = MotRelationGet(rel);
	mot_row    *row;
	const mot_version *version = version_of(mr, &slot->tts_tid, SnapshotAny, &row);

	MOT_FAULT("read-again");
	/* (it may have been moved since) */
	return version != NULL && mot_version_same(version, version_of(mr, &slot->tts_tid, snapshot, &row));
}

/* ---------------------------------------------------- ANALYZE, TABLESAMPLE */

/*
 * What the server is told of a table's size.  ANALYZE may have the system read its sample ahead,
 * in files that are empty, and fails where it would have to look into a second one: meanwhile
 * there are no more blocks than in one, and each is a larger share of the table.
 */
uint64
MotTableSizeShown(Relation rel, ForkNumber fork)
{
	uint64		size = MotTableSize(rel, fork);

	return MotSampleIsReadAhead(RelationGetRelid(rel)) ? Min(size, (uint64) RELSEG_SIZE * BLCKSZ) : size;
}

static uint64
sampled_blocks(TableScanDesc base)
{
	return Max(1, MotTableSizeShown(base->rs_rd, MAIN_FORKNUM) / BLCKSZ);
}

bool
MotAnalyzeBlock(TableScanDesc base, BlockNumber block)
{
	MotTableScan *scan = (MotTableScan *) base;
	uint64		blocks = sampled_blocks(base);

	scan->page = scan->pages * block / blocks;
	scan->behind = Min(scan->pages, scan->pages * (block + 1) / blocks);
	scan->in_page = false;
	return true;
}

bool
MotAnalyzeTuple(MOT_ANALYZE_PARAMETERS)
{
	MotTableScan *scan = (MotTableScan *) base;

	if (unlikely(scan->relation == NULL))
	{
		/* each block has its share */
		*live += base->rs_rd->rd_rel->reltuples / (double) sampled_blocks(base);
		ExecClearTuple(slot);
		return false;
	}
	if (!next_found(scan, scan->behind, slot))
		return false;
	MotScanShowRow(base, slot);
	*live += 1;
	return true;
}

/* a block is a page, and a row's offset in it its place among those that the view sees */
bool
MotSampleBlock(TableScanDesc base, struct SampleScanState *state)
{
	MotTableScan *scan = (MotTableScan *) base;
	TsmRoutine *tsm = state->tsmroutine;
	BlockNumber block = scan->in_page ? scan->page + 1 : 0;

	if (tsm->NextSampleBlock != NULL)
		block = tsm->NextSampleBlock(state, (BlockNumber) scan->pages);
	if (block >= scan->pages)
		return false;			/* or InvalidBlockNumber */
	read_page(scan, block);
	return true;
}

bool
MotSampleTuple(TableScanDesc base, struct SampleScanState *state, TupleTableSlot *slot)
{
	MotTableScan *scan = (MotTableScan *) base;
	OffsetNumber offset = state->tsmroutine->NextSampleTuple(state, (BlockNumber) scan->page,
															 (OffsetNumber) scan->found.n);

	if (!OffsetNumberIsValid(offset))
	{
		ExecClearTuple(slot);
		return false;
	}
	scan->at = offset - 1;
	MotScanShowRow(base, slot);
	pgstat_count_heap_getnext(base->rs_rd);
	return true;
}
