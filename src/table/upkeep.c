/*-------------------------------------------------------------------------
 *
 * upkeep.c
 *	  Storage, sizes and maintenance of ordinary tables, and what the planner
 *	  has to know of them.
 *
 * Each such table has a file, in which nothing is: its number is the name of the
 * table's storage.  So the server's own bookkeeping about files (TRUNCATE,
 * rewriting ALTER TABLE, DROP, savepoints) is what storage comes and goes by.
 *
 * Temporary tables are heap's from the moment their file is made, in pg_class, too, whose
 * row is written afterwards.  Nobody else may see their rows, no log or checkpoint knows
 * of them, and local buffers are private memory already: there is nothing that the
 * engine, which is for rows that many sessions share, would do better.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/multixact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_operator.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "pgstat.h"
#include "storage/smgr.h"
#include "tcop/pquery.h"
#include "utils/backend_status.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;
static create_upper_paths_hook_type prev_create_upper_paths = NULL;

/* ----------------------------------------------------------------- storage */

static void
make_file(Relation rel, const RelFileLocator *node, char persistence)
{
	SMgrRelation file = RelationCreateStorage(*node, persistence, true);

	/*
	 * after a crash the server makes an unlogged table's file from its
	 * initial fork
	 */
	if (persistence == RELPERSISTENCE_UNLOGGED)
	{
		smgrcreate(file, INIT_FORKNUM, false);
		log_smgrcreate(node, INIT_FORKNUM);
		smgrimmedsync(file, INIT_FORKNUM);
	}
	smgrclose(file);
	MotStorageCreateTable(rel, node->spcOid, node->relNumber);
}

void
MotTableSetFilenode(Relation rel, const RelFileLocator *node, char persistence,
					TransactionId *freeze_xid, MultiXactId *min_multi)
{
	if (persistence == RELPERSISTENCE_TEMP)
	{
		rel->rd_rel->relam = HEAP_TABLE_AM_OID;
		rel->rd_amhandler = F_HEAP_TABLEAM_HANDLER;
		rel->rd_tableam = GetHeapamTableAmRoutine();
		table_relation_set_new_filelocator(rel, node, persistence, freeze_xid, min_multi);
		return;
	}
	(void) MotEngineRequired();

	MotTableShowProgress();

	/* while it can begin: CREATE TABLE AS may go on in parallel mode */
	(void) MotBeginWrite();

	/* what is replaced may be lost */
	if (rel->rd_locator.relNumber != node->relNumber)
		MotStorageDropLost(rel->rd_locator.relNumber);

	/* rows know nothing of xids */
	*freeze_xid = InvalidTransactionId;
	*min_multi = InvalidMultiXactId;
	make_file(rel, node, persistence);
}

/*
 * ALTER TABLE begins to store rows anew.  The server shows no progress of that, but has CLUSTER's,
 * of which the second half, which builds the indexes, is the same function.  (What comes before may
 * show something of its own.)
 */
void
MotTableShowProgress(void)
{
	if (likely(MotAlterShows == InvalidOid) || MyBEEntry->st_progress_command == PROGRESS_COMMAND_REPACK)
		return;
	MotAlterRows = 0;
	pgstat_progress_start_command(PROGRESS_COMMAND_REPACK, MotAlterShows);
	pgstat_progress_update_param(PROGRESS_REPACK_PHASE, PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP);
}

static int64
count_rows(mot_table *table, const mot_view *view)
{
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	int64		n = 0;

	mot_build_rows(MotSession(), &build, table, view);
	for (; mot_build_next(&build, &row, &version); n++)
	{
		CHECK_FOR_INTERRUPTS();
		if (view == NULL && MotTransactionMisses(mot_version_ts(version)))
			return -1;
	}
	return n;
}

/*
 * What is stored anew is the transaction's own, which it sees and changes from then on.  Above READ
 * COMMITTED that may be nothing but what its snapshot has, unless nothing follows: none of the rows
 * that are there is newer, and none that it has is gone.  (VACUUM commits by itself.)
 */
static void
refuse_newer(Relation rel)
{
	mot_table  *table = MotRelationGet(rel)->table;
	mot_view	view;

	if (!MotTransactionView(&view) || MotCommandIsLast(CMDTAG_CLUSTER) || MotCommandIsLast(CMDTAG_ALTER_TABLE) ||
		(ActivePortal != NULL && ActivePortal->commandTag == CMDTAG_VACUUM))
		return;
	if (count_rows(table, NULL) != count_rows(table, &view))
		MotRaiseStatus(MOT_CONFLICT_CHANGED, rel);
}

/*
 * The rows as they are now go to new storage, which is "to"'s when its file is "node".
 * Older snapshots would find nothing there, where they do in a heap table: they are refused.
 * It is no read of the transaction's (MotStorageRewritten), as in heap tables.
 * All are put down between, since what is known of a table is known of one storage.
 */
static uint64
copy_rows(Relation from, Relation index, Relation to, RelFileLocator node)
{
	Tuplestorestate *store = tuplestore_begin_heap(false, false, maintenance_work_mem);
	TupleTableSlot *slot = table_slot_create(from, NULL);
	TupleDesc	desc = slot->tts_tupleDescriptor;
	TableScanDesc scan = NULL;
	IndexScanDesc indexscan = NULL;
	RelFileLocator was = to->rd_locator;
	mot_table  *table = MotRelationGet(from)->table;
	SnapshotData now;
	uint64		n = 0;

	refuse_newer(from);
	InitNonVacuumableSnapshot(now, NULL);
	if (index != NULL)
	{
		indexscan = MotIndexBeginScan(from, index, &now);
		index_rescan(indexscan, NULL, 0, NULL, 0);
	}
	else
		scan = MotTableBeginScan(from, &now);
	while (index != NULL ? index_getnext_slot(indexscan, ForwardScanDirection, slot) :
		   table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		slot_getallattrs(slot);
		for (int i = 0; i < desc->natts; i++)
			slot->tts_isnull[i] |= TupleDescAttr(desc, i)->attisdropped;
		tuplestore_putvalues(store, desc, slot->tts_values, slot->tts_isnull);
		n++;
	}
	if (index != NULL)
		index_endscan(indexscan);
	else
		table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);

	MotStorageRewritten(node.relNumber, table, true);
	PG_TRY();
	{
		to->rd_locator = node;
		MotRelationForgetTable(was.relNumber);
		MotBatchLoad(to, store, desc);
		MotStorageFillIndexes(to);
	}
	PG_FINALLY();
	{
		to->rd_locator = was;
		MotRelationForgetTable(node.relNumber);
	}
	PG_END_TRY();
	tuplestore_end(store);
	return n;
}

/* SET TABLESPACE */
void
MotTableCopy(Relation rel, const RelFileLocator *node)
{
	(void) MotBeginWrite();
	make_file(rel, node, rel->rd_rel->relpersistence);
	(void) copy_rows(rel, NULL, rel, *node);
	RelationDropStorage(rel);
}

/* CLUSTER, VACUUM FULL, REPACK */
void
MotTableCluster(MOT_CLUSTER_PARAMETERS)
{
	if (MotClusterBeside())
		MotTableRefuse(old, "REPACK (CONCURRENTLY) is");
	*freeze_xid = InvalidTransactionId;
	*min_multi = InvalidMultiXactId;
	*vacuumed = *recently_dead = 0;
	*rows = (double) copy_rows(old, index, new, new->rd_locator);
}

/*
 * (Of a table that cannot be read ANALYZE, which cannot be told to pass it by, is told what is known
 * already: see MotAnalyzeTuple.)
 */
uint64
MotTableSize(Relation rel, ForkNumber fork)
{
	mot_table_stat stat;

	if (fork != MAIN_FORKNUM && fork != InvalidForkNumber)
		return 0;
	if (unlikely(MotRelationUnreadable(rel)))
		return Max(1, (uint64) rel->rd_rel->relpages) * BLCKSZ;
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	return Min(TYPEALIGN64(BLCKSZ, stat.row_bytes), (uint64) MaxBlockNumber * BLCKSZ);
}

/* ------------------------------------------------------------- maintenance */

/* others go on storing rows meanwhile: then it may be less than nothing */
static inline uint64
gave(uint64 before, uint64 after)
{
	return before > after ? before - after : 0;
}

/*
 * Memory comes back by itself; what is owed can be given back now.  A table that
 * is not in memory, in single-user mode for instance, must not end the VACUUM of
 * a whole database.
 */
void
MotTableVacuum(Relation rel, MotVacuumParams *params, BufferAccessStrategy strategy)
{
	mot_session *session;
	mot_table  *table;
	mot_table_stat before;
	mot_table_stat stat;
	uint64		objects;
	uint64		owed;
	TimestampTz begin = GetCurrentTimestamp();

	if (mot_table_find(MotEngineRequired(), MyDatabaseId, MotStorageNumber(rel)) == NULL)
	{
		ereport(WARNING,
				(errmsg("skipping vacuum of \"%s\" --- it is not in memory", RelationGetRelationName(rel))));
		return;
	}
	session = MotSession();
	table = MotRelationGet(rel)->table;
	mot_table_stats(table, &before);
	objects = mot_table_objects(table);
	owed = mot_reclaim_all(session);
	mot_table_stats(table, &stat);
	MotVacUpdateRelstats(rel, (BlockNumber) (MotTableSize(rel, MAIN_FORKNUM) / BLCKSZ), (double) stat.rows);
	MotReportVacuum(rel, stat.rows, begin);
	ereport((params->options & VACOPT_VERBOSE) != 0 ? INFO : DEBUG2,
			(errmsg("\"%s\": gave back " UINT64_FORMAT " rows and superseded versions, " UINT64_FORMAT " bytes, and pages of " UINT64_FORMAT " bytes to other tables",
					RelationGetRelationName(rel), gave(objects, mot_table_objects(table)),
					gave(before.used_bytes, stat.used_bytes),
					gave(before.row_bytes + before.index_bytes, stat.row_bytes + stat.index_bytes)),
			 errdetail("%lld rows are in " UINT64_FORMAT " bytes, indexes in " UINT64_FORMAT ". "
					   UINT64_FORMAT " objects of all tables are still visible to older snapshots.",
					   (long long) stat.rows, stat.row_bytes, stat.index_bytes, owed)));
}

/* ----------------------------------------------------------------- planner */

void
MotTableEstimate(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples, double *allvisfrac)
{
	mot_table_stat stat;
	bool		counts = pgstat_should_count_relation(rel);

	/* what the planner is told of the indexes it finds in the relation cache */
	MotTableIndexes(rel);
	mot_table_stats(MotRelationGet(rel)->table, &stat);

	/*
	 * the engine counts at commit; what this transaction has done is known to
	 * statistics
	 */
	for (PgStat_TableXactStatus *own = counts ? rel->pgstat_info->trans : NULL; own != NULL; own = own->upper)
		stat.rows += own->tuples_inserted - own->tuples_deleted;

	/* no page costs, only work */
	*pages = 0;
	*tuples = Max(0, (double) stat.rows);
	if (rel->rd_rel->reltuples < 0 && !rel->rd_rel->relhassubclass)
		*tuples = MotPlannedUnknown(rel, attr_widths, *tuples);
	*allvisfrac = 0;
}

/*
 * The server's own paths, once more where what they are priced by is not what we
 * assume (indexcost.c): as set_plain_rel_pathlist makes them.
 */
static void
price_paths(PlannerInfo *root, RelOptInfo *rel)
{
	double		rows = MotCostUnknownRange(rel->baserestrictinfo, rel->rows);
	Path	   *path;

	if (rows == rel->rows && rel->tuples >= MOT_MIN_SEQUENTIAL_ROWS)
		return;

	/*
	 * it is no expression to evaluate: there may be no other path than the
	 * one there is
	 */
	foreach_node(RestrictInfo, rinfo, rel->baserestrictinfo)
	{
		if (IsA(rinfo->clause, CurrentOfExpr))
			return;
	}
	rel->rows = rows;
	rel->pathlist = NIL;
	path = create_seqscan_path(root, rel, rel->lateral_relids, 0);
	path->total_cost += Max(0, MOT_MIN_SEQUENTIAL_ROWS - rel->tuples) *
		(cpu_tuple_cost + rel->baserestrictcost.per_tuple);
	add_path(rel, path);
	create_index_paths(root, rel);
	create_tidscan_paths(root, rel);
}

/*
 * To read a range of ctids is never more than to read all, and comes in the ids'
 * order, unlike that.  The planner, who has been told that there are no pages, knows neither.
 */
static bool
range_paths(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *others = rel->pathlist;
	List	   *found;
	bool		asked = false;
	bool		ranges = false;
	double		random_page;

	foreach_node(RestrictInfo, rinfo, rel->baserestrictinfo)
	{
		Expr	   *clause = rinfo->clause;
		Oid			opno = IsA(clause, OpExpr) ? ((OpExpr *) clause)->opno : InvalidOid;

		asked |= opno == TIDLessOperator || opno == TIDLessEqOperator ||
			opno == TIDGreaterOperator || opno == TIDGreaterEqOperator;
	}
	if (likely(!asked) || !enable_tidscan)
		return false;

	rel->pathlist = NIL;
	create_tidscan_paths(root, rel);
	found = rel->pathlist;
	rel->pathlist = others;
	get_tablespace_page_costs(rel->reltablespace, &random_page, NULL);
	foreach_ptr(Path, path, found)
	{
		if (!IsA(path, TidRangePath))
			continue;
		path->total_cost -= path->startup_cost + random_page;
		path->startup_cost = 0;
		add_path(rel, path);
		ranges = true;
	}
	return ranges;
}

static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	bool		ours = root->simple_rel_array_size > 1;

	if (prev_create_upper_paths)
		prev_create_upper_paths(root, stage, input_rel, output_rel, extra);
	for (int i = 1; ours && i < root->simple_rel_array_size && stage == UPPERREL_FINAL; i++)
	{
		RangeTblEntry *rte = root->simple_rte_array[i];

		/*
		 * (none: place was made for a child that is left out, such as another
		 * session's temporary table)
		 */
		ours = rte == NULL || MotRteStandsForOthers(rte) ||
			(rte->rtekind == RTE_RELATION && MotIsOrdinaryTable(rte->relid));
	}
	if (ours && stage == UPPERREL_FINAL)
		MotCostUnknownLimit(output_rel, extra);
}

/*
 * As create_plain_partial_paths does, but by the bytes that rows take: the planner was told
 * that there are no pages.  And a statement with workers is the executor's, to which a row costs
 * that much more (by default as much as cpu_tuple_cost) than to one without it (statement/), as
 * most scans of one process are.
 */
static void
parallel_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	Relation	relation = RelationIdGetRelation(relid);
	double		pages = (double) MotTableSize(relation, MAIN_FORKNUM) / BLCKSZ;
	int			workers = compute_parallel_worker(rel, pages, -1, max_parallel_workers_per_gather);
	double		divisor = workers + (parallel_leader_participation ? Max(0, 1 - 0.3 * workers) : 0);
	Path	   *path;

	RelationClose(relation);
	if (workers <= 0)
		return;
	path = create_seqscan_path(root, rel, NULL, workers);
	path->total_cost += 0.1 * parallel_tuple_cost * rel->tuples / divisor;
	add_partial_path(rel, path);
}

/* Of SERIALIZABLE's reads workers could not tell (xact/parallel.c). */
static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (rte->rtekind == RTE_RELATION && !rte->inh && MotIsOrdinaryTable(rte->relid))
	{
		bool		ranges = false;

		/*
		 * (of a relation that a constant condition excludes there is nothing
		 * to be read)
		 */
		if (rel->reloptkind == RELOPT_BASEREL && rte->tablesample == NULL && !IS_DUMMY_REL(rel))
			price_paths(root, rel);
		if (rte->tablesample == NULL && !IS_DUMMY_REL(rel))
			ranges = range_paths(root, rel);
		rel->partial_pathlist = NIL;
		if (rel->consider_parallel && IsolationIsSerializable())
		{
			rel->consider_parallel = false;
			foreach_ptr(Path, path, rel->pathlist)
				path->parallel_safe = false;
		}
		if (rel->consider_parallel && rel->lateral_relids == NULL && rte->tablesample == NULL &&
			!IS_DUMMY_REL(rel) && !ranges)
			parallel_paths(root, rel, rte->relid);
	}
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
}

void
MotTablePlannerInit(void)
{
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
	prev_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths;
}
