/*-------------------------------------------------------------------------
 *
 * table.h
 *	  What the files of the table access method "mot" share.
 *
 * CREATE TABLE ... USING mot makes an ordinary table whose rows are the
 * engine's.  handler.c has the routine and what it refuses; scan.c and indexscan.c
 * read; modify.c changes and locks rows; index.c has the indexes' routine; upkeep.c
 * makes storage, keeps statistics and speaks to the planner.  README.md has the page about how the
 * server's ideas (snapshots, tuple ids, files) are the engine's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TABLE_H
#define MOT_TABLE_H

#include "mot.h"
#include "access/genam.h"
#include "access/tableam.h"
#include "compat/tableam.h"
#include "relation/relation.h"
#include "xact/xact.h"

/* handler.c */
extern void MotTableRefuse(Relation rel, const char *what) pg_attribute_noreturn();

/* scan.c */
extern mot_view MotTableView(Snapshot snapshot);
extern void MotTableShow(Relation rel, mot_row *row, const mot_version *version, unsigned changes,
						 TupleTableSlot *slot);

extern TableScanDesc MotScanBegin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
								  ParallelTableScanDesc parallel, uint32 flags);
extern void MotScanFinish(TableScanDesc scan);
extern void MotScanAgain(TableScanDesc scan, struct ScanKeyData *key, bool set_params,
						 bool allow_strat, bool allow_sync, bool allow_pagemode);
extern bool MotScanGet(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot);
extern const mot_version *MotScanVersion(TableScanDesc scan, TupleTableSlot *slot);
extern void MotScanSetRange(TableScanDesc scan, ItemPointer lowest, ItemPointer highest);
extern bool MotScanGetRange(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot);
extern void MotScanShowRow(TableScanDesc scan, TupleTableSlot *slot);
extern const mot_version *MotScanPeek(TableScanDesc scan, int ahead);
extern Size MotScanShare(Relation rel);
extern Size MotScanShareInit(Relation rel, ParallelTableScanDesc parallel);
extern bool MotBitmapsFit(void);
extern void MotBitmapAdd(TIDBitmap *bitmap, mot_session *session, const mot_row *row);
extern bool MotBitmapRead(TableScanDesc scan, BlockNumber block, int n, const OffsetNumber *offsets);
extern bool MotBitmapShow(TableScanDesc scan, TupleTableSlot *slot);
extern void MotBitmapsPlanned(void);
extern void MotBitmapsInit(void);
extern void MotScanShareAgain(Relation rel, ParallelTableScanDesc parallel);
extern bool MotFetchVersion(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot);
extern bool MotTidIsValid(TableScanDesc scan, ItemPointer tid);
extern void MotLatestTid(TableScanDesc scan, ItemPointer tid);
extern bool MotSatisfies(Relation rel, TupleTableSlot *slot, Snapshot snapshot);
extern bool MotAnalyzeBlock(TableScanDesc scan, BlockNumber block);
extern bool MotAnalyzeTuple(MOT_ANALYZE_PARAMETERS);
extern bool MotSampleBlock(TableScanDesc scan, struct SampleScanState *state);
extern bool MotSampleTuple(TableScanDesc scan, struct SampleScanState *state, TupleTableSlot *slot);

/* modify.c */
extern bool MotTableRaisesFirst(Relation rel);
extern void MotTableInsert(Relation rel, TupleTableSlot *slot, CommandId cid, MotChangeOptions options,
						   struct BulkInsertStateData *bistate);
extern void MotTableMultiInsert(Relation rel, TupleTableSlot **slots, int n, CommandId cid, MotChangeOptions options,
								struct BulkInsertStateData *bistate);
extern TM_Result MotTableDelete(MOT_DELETE_PARAMETERS);
extern TM_Result MotTableUpdate(MOT_UPDATE_PARAMETERS);
extern TM_Result MotTableLock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot,
							  CommandId cid, LockTupleMode mode, LockWaitPolicy policy, uint8 flags,
							  TM_FailureData *failure);

/* index.c */
extern const struct IndexAmRoutine *MotIndexPutBack(Relation index);
extern void MotTableKeyTaken(mot_row *row, Oid indexoid);
extern void MotTableIndexes(Relation rel);
extern double MotTableBuildIndex(Relation rel, Relation index, struct IndexInfo *info, bool allow_sync,
								 bool anyvisible, bool progress, BlockNumber start, BlockNumber blocks,
								 IndexBuildCallback callback, void *state, TableScanDesc scan);
extern void MotTableInsertTrial(Relation rel, TupleTableSlot *slot, CommandId cid, MotChangeOptions options,
								struct BulkInsertStateData *bistate, uint32 token);
extern void MotTableTrialDone(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded);
extern void MotConflictFound(const mot_row *row, const mot_version *version);
extern bool MotConflictStands(const mot_row *row, const mot_version *newest);
extern void MotConflictLocked(const mot_row *row, CommandId cid);
extern bool MotConflictUpdates(const mot_row *row, CommandId cid);
extern void MotTableIndexInit(void);

/* concurrently.c */
extern void MotTableBeginIndex(Relation rel, Relation index, struct IndexInfo *info);
extern void MotTableCatchUpIndex(Relation rel, Relation index, struct IndexInfo *info, Snapshot snapshot,
								 struct ValidateIndexState *state);

/* indexscan.c */
extern int64 MotIndexScanBitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern IndexScanDesc MotIndexScanBegin(Relation index, int nkeys, int norderbys);
extern void MotIndexScanAgain(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool MotIndexScanGet(IndexScanDesc scan, ScanDirection direction);
extern void MotIndexScanMark(IndexScanDesc scan);
extern void MotIndexScanRestore(IndexScanDesc scan);
extern void MotIndexScanEnd(IndexScanDesc scan);
extern struct IndexFetchTableData *MotTableFetchBegin(MOT_FETCH_PARAMETERS);
extern void MotTableFetchReset(struct IndexFetchTableData *data);
extern void MotTableFetchEnd(struct IndexFetchTableData *data);
extern bool MotTableFetchRow(struct IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot,
							 TupleTableSlot *slot, bool *call_again, bool *all_dead);

/* upkeep.c */
extern void MotTableSetFilenode(Relation rel, const RelFileLocator *node, char persistence,
								TransactionId *freeze_xid, MultiXactId *min_multi);
extern void MotTableShowProgress(void);
extern void MotTableCopy(Relation rel, const RelFileLocator *node);
extern void MotTableCluster(MOT_CLUSTER_PARAMETERS);
extern void MotTableVacuum(Relation rel, MotVacuumParams *params, BufferAccessStrategy strategy);
extern uint64 MotTableSize(Relation rel, ForkNumber fork);
extern uint64 MotTableSizeShown(Relation rel, ForkNumber fork);
extern void MotTableEstimate(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples,
							 double *allvisfrac);
extern void MotTablePlannerInit(void);

#endif							/* MOT_TABLE_H */
