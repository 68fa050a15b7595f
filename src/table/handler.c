/*-------------------------------------------------------------------------
 *
 * handler.c
 *	  The table access method "mot": its routine, and what it refuses.
 *
 * The server asks for the routine whenever it builds what it knows of such a
 * table, so a server that has not preloaded mot says so at the first touch.
 *
 * What is not done yet is refused where it would begin, never answered: kinds of
 * indexes by their build (index.c), and the rest by the callbacks below.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "catalog/pg_am.h"
#include "fmgr.h"
#include "relation/slot.h"

PG_FUNCTION_INFO_V1(mot_table_am_handler);

static const TableAmRoutine routine;

void
MotTableRefuse(Relation rel, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s not supported for memory-optimized table \"%s\"", what, RelationGetRelationName(rel)),
			 errhint("CREATE FOREIGN TABLE ... SERVER %s makes a memory-optimized table that is a foreign table.",
					 MOT_SERVER_NAME)));
}

static const TupleTableSlotOps *
slot_callbacks(Relation rel)
{
	return &MotSlotOps;
}

/* ------------------------------------------------------------------ refused */

static TransactionId
index_delete_tuples(Relation rel, TM_IndexDeleteOp *op)
{
	MotTableRefuse(rel, "indexes are");
}

/*
 * Rows are whole, however long.  But a heap table that a table becomes has a TOAST table only if
 * there was one before.
 */
static bool
needs_toast_table(Relation rel)
{
	return MotAlterLeaves && RelationGetRelid(rel) == MotAlterShows &&
		GetHeapamTableAmRoutine()->relation_needs_toast_table(rel);
}

static Oid
toast_am(Relation rel)
{
	return HEAP_TABLE_AM_OID;
}

MOT_ANALYZE_CALLBACK(analyze_next_block, MotAnalyzeBlock)
MOT_BITMAP_CALLBACKS(MotBitmapRead, MotBitmapShow)

static const TableAmRoutine routine = {
	.type = T_TableAmRoutine,
	.slot_callbacks = slot_callbacks,
	.scan_begin = MotScanBegin,
	.scan_end = MotScanFinish,
	.scan_rescan = MotScanAgain,
	.scan_getnextslot = MotScanGet,
	.scan_set_tidrange = MotScanSetRange,
	.scan_getnextslot_tidrange = MotScanGetRange,
	.parallelscan_estimate = MotScanShare,
	.parallelscan_initialize = MotScanShareInit,
	.parallelscan_reinitialize = MotScanShareAgain,
	.index_fetch_begin = MotTableFetchBegin,
	.index_fetch_reset = MotTableFetchReset,
	.index_fetch_end = MotTableFetchEnd,
	.index_fetch_tuple = MotTableFetchRow,
	.tuple_fetch_row_version = MotFetchVersion,
	.tuple_tid_valid = MotTidIsValid,
	.tuple_get_latest_tid = MotLatestTid,
	.tuple_satisfies_snapshot = MotSatisfies,
	.index_delete_tuples = index_delete_tuples,
	.tuple_insert = MotTableInsert,
	.tuple_insert_speculative = MotTableInsertTrial,
	.tuple_complete_speculative = MotTableTrialDone,
	.multi_insert = MotTableMultiInsert,
	.tuple_delete = MotTableDelete,
	.tuple_update = MotTableUpdate,
	.tuple_lock = MotTableLock,
	.relation_set_new_filelocator = MotTableSetFilenode,
	.relation_nontransactional_truncate = MotStorageTruncate,
	.relation_copy_data = MotTableCopy,
	.relation_copy_for_cluster = MotTableCluster,
	.relation_vacuum = MotTableVacuum,
	MOT_BITMAP_MEMBERS,
	.scan_analyze_next_block = analyze_next_block,
	.scan_analyze_next_tuple = MotAnalyzeTuple,
	.index_build_range_scan = MotTableBuildIndex,
	.index_validate_scan = MotTableCatchUpIndex,
	.relation_size = MotTableSizeShown,
	.relation_needs_toast_table = needs_toast_table,
	.relation_toast_am = toast_am,
	.relation_estimate_size = MotTableEstimate,
	.scan_sample_next_block = MotSampleBlock,
	.scan_sample_next_tuple = MotSampleTuple,
};

/* (calls of MotEngineRequired raise what is missing) */
Datum
mot_table_am_handler(PG_FUNCTION_ARGS)
{
	if (!MotPreloaded())
		(void) MotEngineRequired();
	PG_RETURN_POINTER(&routine);
}

void
MotTableInit(void)
{
	MotTableAm = &routine;
	MotTablePlannerInit();
	MotTableIndexInit();
	MotBitmapsInit();
}
