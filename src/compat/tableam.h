/*-------------------------------------------------------------------------
 *
 * tableam.h
 *	  Callbacks of table access methods that differ between server versions.
 *
 * Each macro makes the callback of the server's version from a function that is the same for
 * all, says which member it is, or what it takes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TABLEAM_H
#define MOT_TABLEAM_H

#include "postgres.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "commands/progress.h"
#include "compat/names.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/backend_status.h"
#include "utils/rel.h"

/* which indexes have to be told of an updated row */
#if PG_VERSION_NUM < 160000
typedef bool TU_UpdateIndexes;
#define TU_None false
#define TU_All true
#endif

/* the table that a parallel scan reads */
#if PG_VERSION_NUM >= 180000
#define MotShareIsOf(parallel, rel) ((parallel)->phs_locator = (rel)->rd_locator)
#else
#define MotShareIsOf(parallel, rel) ((parallel)->phs_relid = RelationGetRelid(rel))
#endif

/*
 * ANALYZE: bool block(TableScanDesc, BlockNumber) goes to a block.  (A stream would read
 * it; it is only asked which one is next.)
 */
#if PG_VERSION_NUM >= 170000
#define MOT_ANALYZE_CALLBACK(name, block) \
static bool \
name(TableScanDesc scan, ReadStream *stream) \
{ \
	BufferAccessStrategy strategy; \
	BlockNumber next = read_stream_next_block(stream, &strategy); \
	\
	return BlockNumberIsValid(next) && block(scan, next); \
}
#else
#define MOT_ANALYZE_CALLBACK(name, block) \
static bool \
name(TableScanDesc scan, BlockNumber next, BufferAccessStrategy strategy) \
{ \
	return block(scan, next); \
}
#endif

/*
 * Does ANALYZE take its sample of a table just now, and have the system read that ahead from the
 * table's files?  It shows by its progress only; where nobody is told of that, perhaps.
 */
#if PG_VERSION_NUM >= 170000
#define MotSampleIsReadAhead(relid) false
#else
static inline bool
MotSampleIsReadAhead(Oid relid)
{
	const int64 *param;

	if (MyBEEntry == NULL || !pgstat_track_activities)
		return true;
	param = MyBEEntry->st_progress_param;
	if (MyBEEntry->st_progress_command != PROGRESS_COMMAND_ANALYZE)
		return false;
	if (param[PROGRESS_ANALYZE_PHASE] == PROGRESS_ANALYZE_PHASE_ACQUIRE_SAMPLE_ROWS_INH)
		return param[PROGRESS_ANALYZE_CURRENT_CHILD_TABLE_RELID] == relid;
	return param[PROGRESS_ANALYZE_PHASE] == PROGRESS_ANALYZE_PHASE_ACQUIRE_SAMPLE_ROWS &&
		MyBEEntry->st_progress_command_target == relid;
}
#endif

/*
 * Scans of bitmaps.  read(scan, block, n, offsets) reads rows of a block, n < 0: all; it is false
 * if there are none.  show(scan, slot) shows the next one of them; it is false, and the slot empty,
 * if there are no more.
 */
#if PG_VERSION_NUM >= 180000
#define MOT_BITMAP_CALLBACKS(read, show) \
static bool \
bitmap_next_tuple(TableScanDesc scan, TupleTableSlot *slot, bool *recheck, \
				  uint64 *lossy_pages, uint64 *exact_pages) \
{ \
	while (!show(scan, slot)) \
	{ \
		TBMIterateResult page; \
		OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE]; \
		int			n = -1; \
		\
		CHECK_FOR_INTERRUPTS(); \
		if (!tbm_iterate(&scan->st.rs_tbmiterator, &page)) \
			return false; \
		if (!page.lossy) \
			n = tbm_extract_page_tuple(&page, offsets, TBM_MAX_TUPLES_PER_PAGE); \
		*recheck = page.recheck; \
		if (page.lossy) \
			(*lossy_pages)++; \
		else \
			(*exact_pages)++; \
		(void) read(scan, page.blockno, n, offsets); \
	} \
	return true; \
}
#define MOT_BITMAP_MEMBERS \
	.scan_bitmap_next_tuple = bitmap_next_tuple
#else
#define MOT_BITMAP_CALLBACKS(read, show) \
static bool \
bitmap_next_block(TableScanDesc scan, struct TBMIterateResult *page) \
{ \
	return read(scan, page->blockno, page->ntuples, page->offsets); \
} \
\
static bool \
bitmap_next_tuple(TableScanDesc scan, struct TBMIterateResult *page, TupleTableSlot *slot) \
{ \
	return show(scan, slot); \
}
#define MOT_BITMAP_MEMBERS \
	.scan_bitmap_next_block = bitmap_next_block, \
	.scan_bitmap_next_tuple = bitmap_next_tuple
#endif

/*
 * Up to 17 the executor has the system read a bitmap's blocks ahead, unless it is
 * told not to; from then on that is the access method's own matter.
 */
#if PG_VERSION_NUM >= 180000
#define MotBitmapStopPrefetching(node) ((void) 0)
#else
#define MotBitmapStopPrefetching(node) ((node)->prefetch_maximum = 0)
#endif

/* options of changes (none of which say anything to us but that a row goes to another partition) */
#if PG_VERSION_NUM >= 190000
typedef uint32 MotChangeOptions;
typedef const VacuumParams MotVacuumParams;

#define MOT_DELETE_PARAMETERS \
	Relation rel, ItemPointer tid, CommandId cid, uint32 options, Snapshot snapshot, Snapshot crosscheck, \
	bool wait, TM_FailureData *failure
#define MotDeleteMoves() ((options & TABLE_DELETE_CHANGING_PARTITION) != 0)
#define MOT_UPDATE_PARAMETERS \
	Relation rel, ItemPointer otid, TupleTableSlot *slot, CommandId cid, uint32 options, Snapshot snapshot, \
	Snapshot crosscheck, bool wait, TM_FailureData *failure, LockTupleMode *lockmode, \
	TU_UpdateIndexes *update_indexes
#define MOT_FETCH_PARAMETERS Relation rel, uint32 flags
#define MotFetchFlags(fetch) ((fetch)->flags = flags)
#define MOT_ANALYZE_PARAMETERS TableScanDesc base, double *live, double *dead, TupleTableSlot *slot
/* with a snapshot: beside writers, whose changes it is told of afterwards, by decoding the log */
#define MOT_CLUSTER_PARAMETERS \
	Relation old, Relation new, Relation index, bool use_sort, TransactionId oldest_xmin, Snapshot snapshot, \
	TransactionId *freeze_xid, MultiXactId *min_multi, double *rows, double *vacuumed, double *recently_dead
#define MotClusterBeside() (snapshot != NULL)
#define MotTableBeginScan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL, SO_NONE)
#else
typedef int MotChangeOptions;
typedef struct VacuumParams MotVacuumParams;

#define MOT_DELETE_PARAMETERS \
	Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck, bool wait, \
	TM_FailureData *failure, bool changing_part
#define MotDeleteMoves() changing_part
#define MOT_UPDATE_PARAMETERS \
	Relation rel, ItemPointer otid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot, \
	Snapshot crosscheck, bool wait, TM_FailureData *failure, LockTupleMode *lockmode, \
	TU_UpdateIndexes *update_indexes
#define MOT_FETCH_PARAMETERS Relation rel
#define MotFetchFlags(fetch) ((void) 0)
#define MOT_ANALYZE_PARAMETERS \
	TableScanDesc base, TransactionId oldest, double *live, double *dead, TupleTableSlot *slot
#define MOT_CLUSTER_PARAMETERS \
	Relation old, Relation new, Relation index, bool use_sort, TransactionId oldest_xmin, \
	TransactionId *freeze_xid, MultiXactId *min_multi, double *rows, double *vacuumed, double *recently_dead
#define MotClusterBeside() false
#define MotTableBeginScan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL)
#endif

/* Is a bitmap made before the scan of its table begins? */
#define MOT_BITMAP_COMES_FIRST (PG_VERSION_NUM >= 170000)

#endif							/* MOT_TABLEAM_H */
