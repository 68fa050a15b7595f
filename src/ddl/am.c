/*-------------------------------------------------------------------------
 *
 * am.c
 *	  The index access method "mot", as far as the server needs one.
 *
 * It makes indexes of MOT tables ordinary catalogue entries: \d shows them,
 * pg_dump writes them, and the planner's create_index_paths offers paths over
 * them, which the wrapper turns into foreign paths.  The server itself never
 * scans, builds or fills such an index; the functions for that only say so.
 *
 *-------------------------------------------------------------------------
 */
#include "mot.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/reloptions.h"
#include "commands/vacuum.h"
#include "compat/calls.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "relation/relation.h"
#include "utils/rel.h"

#define MOT_AM_SUPPORT 1		/* comparison, as btree's */

PG_FUNCTION_INFO_V1(mot_am_handler);

static void refuse(Relation index) pg_attribute_noreturn();

static void
refuse(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("index \"%s\" uses access method \"%s\", which only memory-optimized tables can use",
					RelationGetRelationName(index), MOT_AM_NAME),
			 errhint("Use USING btree, or create the table with SERVER %s.", MOT_SERVER_NAME)));
}

/* CREATE INDEX ... USING mot on a heap table ends here */
static IndexBuildResult *
mot_build_heap(Relation heap, Relation index, IndexInfo *info)
{
	refuse(index);
}

static void
mot_build_empty(Relation index)
{
	refuse(index);
}

static bool
mot_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
		   IndexUniqueCheck check, bool unchanged, IndexInfo *info)
{
	refuse(index);
}

static IndexBulkDeleteResult *
mot_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				IndexBulkDeleteCallback callback, void *state)
{
	refuse(info->index);
}

/* ANALYZE calls this for every index; there is nothing to clean */
static IndexBulkDeleteResult *
mot_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

static IndexScanDesc
mot_begin_scan(Relation index, int nkeys, int norderbys)
{
	refuse(index);
}

static void
mot_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	refuse(scan->indexRelation);
}

/* never called, but the planner makes no plain index paths without it */
static bool
mot_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	refuse(scan->indexRelation);
}

static void
mot_end_scan(IndexScanDesc scan)
{
}

/*
 * Storage parameters of btree mean nothing here, but clients send them.
 */
static bytea *
mot_options(Datum reloptions, bool validate)
{
	return NULL;
}

Datum
mot_am_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = MOT_AM_SUPPORT;
	am->amoptsprocnum = 0;
	am->amcanorder = true;
	MotIndexAmIsOrdered(am);
	am->amcanorderbyop = false;
	am->amcanbackward = true;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->amstorage = false;
	am->amclusterable = false;
	am->ampredlocks = true;
	am->amcanparallel = false;
	am->amcaninclude = false;
	am->amusemaintenanceworkmem = false;
	am->amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL;
	am->amkeytype = InvalidOid;

	am->ambuild = mot_build_heap;
	am->ambuildempty = mot_build_empty;
	am->aminsert = mot_insert;
	am->ambulkdelete = mot_bulk_delete;
	am->amvacuumcleanup = mot_vacuum_cleanup;
	am->amcostestimate = MotIndexCost;
	am->amoptions = mot_options;
	am->amvalidate = btvalidate;	/* the classes are btree's */
	am->ambeginscan = mot_begin_scan;
	am->amrescan = mot_rescan;
	am->amgettuple = mot_get_tuple;
	am->amendscan = mot_end_scan;

	PG_RETURN_POINTER(am);
}
