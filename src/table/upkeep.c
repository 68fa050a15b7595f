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
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/multixact.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "storage/smgr.h"
#include "utils/lsyscache.h"

static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;

/* ----------------------------------------------------------------- storage */

void
MotTableSetFilenode(Relation rel, const RelFileNode *node, char persistence,
					TransactionId *freeze_xid, MultiXactId *min_multi)
{
	(void) MotEngineRequired();
	if (persistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 persistence == RELPERSISTENCE_TEMP ?
				 errmsg("a temporary table cannot be memory-optimized") :
				 errmsg("an unlogged table cannot be memory-optimized"),
				 errhint("Use USING heap.")));

	/* while it can begin: CREATE TABLE AS may go on in parallel mode */
	(void) MotBeginWrite();

	/* rows know nothing of xids */
	*freeze_xid = InvalidTransactionId;
	*min_multi = InvalidMultiXactId;
	smgrclose(RelationCreateStorage(*node, persistence, true));
	MotStorageCreateNumbered(rel, node->spcNode, node->relNode);
}

/* its file has been made in this transaction */
void
MotTableTruncate(Relation rel)
{
	MotStorageTruncate(rel);
}

uint64
MotTableSize(Relation rel, ForkNumber fork)
{
	mot_table_stat stat;

	if (fork != MAIN_FORKNUM && fork != InvalidForkNumber)
		return 0;
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	return Min(TYPEALIGN64(BLCKSZ, stat.row_bytes), (uint64) MaxBlockNumber * BLCKSZ);
}

/* ------------------------------------------------------------- maintenance */

/*
 * Memory comes back by itself; what is owed can be given back now.  A table that
 * is not in memory, in single-user mode for instance, must not end the VACUUM of
 * a whole database.
 */
void
MotTableVacuum(Relation rel, struct VacuumParams *params, BufferAccessStrategy strategy)
{
	mot_session *session;
	mot_table_stat stat;
	uint64		owed;
	bool		updated;

	if (mot_table_find(MotEngineRequired(), MyDatabaseId, MotStorageNumber(rel)) == NULL)
	{
		ereport(WARNING,
				(errmsg("skipping vacuum of \"%s\" --- it is not in memory", RelationGetRelationName(rel))));
		return;
	}
	session = MotSession();
	(void) MotRelationGet(rel);
	owed = mot_reclaim_all(session);
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	vac_update_relstats(rel, (BlockNumber) (MotTableSize(rel, MAIN_FORKNUM) / BLCKSZ), (double) stat.rows, 0,
						rel->rd_rel->relhasindex, InvalidTransactionId, InvalidMultiXactId,
						&updated, &updated, false);
	pgstat_report_vacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, stat.rows, 0);
	ereport((params->options & VACOPT_VERBOSE) != 0 ? INFO : DEBUG2,
			(errmsg("\"%s\": %lld rows in " UINT64_FORMAT " bytes; " UINT64_FORMAT " objects of all tables are still visible to older snapshots",
					RelationGetRelationName(rel), (long long) stat.rows, stat.row_bytes, owed)));
}

/* ----------------------------------------------------------------- planner */

void
MotTableEstimate(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples, double *allvisfrac)
{
	mot_table_stat stat;

	/* what the planner is told of the indexes it finds in the relation cache */
	MotTableIndexes(rel);
	mot_table_stats(MotRelationGet(rel)->table, &stat);

	/* no page costs, only work */
	*pages = 0;
	*tuples = Max(0, (double) stat.rows);
	*allvisfrac = 0;
}

/* Parallel workers have no views: such tables are read by the leader only. */
static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (rte->rtekind == RTE_RELATION && !rte->inh && MotIsOrdinaryTable(rte->relid))
	{
		ListCell   *lc;

		rel->consider_parallel = false;
		rel->partial_pathlist = NIL;
		foreach(lc, rel->pathlist)
			((Path *) lfirst(lc))->parallel_safe = false;
	}
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
}

void
MotTablePlannerInit(void)
{
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
}
