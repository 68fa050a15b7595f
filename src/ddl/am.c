/*-------------------------------------------------------------------------
 *
 * am.c
 *	  The index access method "mot", as far as the server needs one.
 *
 * It makes indexes of MOT tables ordinary catalogue entries: \d shows them,
 * pg_dump writes them, and the planner's create_index_paths offers paths over
 * them, which the wrapper turns into foreign paths.  The server itself never
 * scans, builds or fills such an index: on any other table the building is refused, and
 * for what comes after that there are no functions.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "compat/calls.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "relation/relation.h"
#include "utils/memutils.h"
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

/* (comes after that, but servers with assertions want it to be there) */
static void
mot_build_empty(Relation index)
{
	refuse(index);
}

/* ANALYZE calls this for every index; there is nothing to clean */
static IndexBulkDeleteResult *
mot_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

/* never called, but the planner makes no plain index paths without it */
static bool
mot_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	refuse(scan->indexRelation);
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
	static IndexAmRoutine *kept = NULL;
	MemoryContext oldcxt;
	IndexAmRoutine *am;

	MotShowAsItIs();
	if (kept != NULL)
		PG_RETURN_POINTER(kept);
	/* what is not named here it is not, or has not */
	oldcxt = MemoryContextSwitchTo(MOT_INDEX_ROUTINE_IS_KEPT ? TopMemoryContext : CurrentMemoryContext);
	am = makeNode(IndexAmRoutine);
	MemoryContextSwitchTo(oldcxt);

	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = MOT_AM_SUPPORT;
	am->amcanorder = true;
	MotIndexAmIsOrdered(am);
	am->amcanbackward = true;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->ampredlocks = true;

	am->ambuild = mot_build_heap;
	am->ambuildempty = mot_build_empty;
	am->amvacuumcleanup = mot_vacuum_cleanup;
	am->amcostestimate = MotIndexCost;
	am->amoptions = mot_options;
	am->amvalidate = btvalidate;	/* the classes are btree's */
	am->amgettuple = mot_get_tuple;

	if (MOT_INDEX_ROUTINE_IS_KEPT)
		kept = am;
	PG_RETURN_POINTER(am);
}
