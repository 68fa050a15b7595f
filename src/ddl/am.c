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

#include <math.h>

#include "access/amapi.h"
#include "access/amvalidate.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/reloptions.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/regproc.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#define MOT_AM_SUPPORT 1		/* comparison, as btree's */

/* comparisons a tree node costs on the way down, entries a border node holds */
#define NODE_FANOUT 11.0
#define NODE_COMPARISONS 4.0

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

/* can the clauses of this index column be a bound of the range, and is it "="? */
static void
column_bounds(IndexOptInfo *index, IndexClause *clause, bool *bound, bool *equal)
{
	ListCell   *lc;

	foreach(lc, clause->indexquals)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Expr	   *expr = rinfo->clause;
		Oid			op = InvalidOid;

		if (IsA(expr, OpExpr))
			op = ((OpExpr *) expr)->opno;
		else if (IsA(expr, ScalarArrayOpExpr))
			op = ((ScalarArrayOpExpr *) expr)->opno;
		else if (IsA(expr, RowCompareExpr))
		{
			*bound = true;
			continue;
		}
		else if (IsA(expr, NullTest))
		{
			*bound = true;
			if (((NullTest *) expr)->nulltesttype == IS_NULL)
				*equal = true;
			continue;
		}
		if (OidIsValid(op))
		{
			*bound = true;
			if (get_op_opfamily_strategy(op, index->opfamily[clause->indexcol]) == BTEqualStrategyNumber)
				*equal = true;
		}
	}
}

/*
 * All in memory: no page costs, only work.  A descent is a chain of dependent
 * cache misses, an entry one or two more; the rows are the wrapper's business
 * and cost_index's.
 */
static void
mot_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
				  Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
				  double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *bound_quals = NIL;
	int			column = 0;
	bool		open_end = false;	/* a column without "=": later ones only
									 * filter */
	bool		unique_match = index->unique;
	bool		equal_here = false;
	double		descents = 1;
	double		entries;
	double		rows = Max(index->rel->tuples, 1);
	double		depth;
	int			quals = 0;
	Cost		startup;
	Cost		total;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		bool		bound = false;
		bool		equal = false;
		ListCell   *lc2;

		if (clause->indexcol != column)
		{
			if (!equal_here || clause->indexcol != column + 1)
				open_end = true;
			column = clause->indexcol;
			equal_here = false;
		}
		column_bounds(index, clause, &bound, &equal);
		equal_here |= equal;
		quals += list_length(clause->indexquals);

		foreach(lc2, clause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (IsA(rinfo->clause, ScalarArrayOpExpr))
			{
				ScalarArrayOpExpr *saop = (ScalarArrayOpExpr *) rinfo->clause;
				int			n = estimate_array_length(lsecond(saop->args));

				if (n > 1 && !open_end)
					descents *= n;
			}
			if (bound && !open_end)
				bound_quals = lappend(bound_quals, rinfo);
		}
	}
	if (open_end || !equal_here || column != index->nkeycolumns - 1)
		unique_match = false;

	/* what part of the index is walked, and what part comes out */
	if (unique_match)
		entries = descents;
	else
	{
		Selectivity walked = clauselist_selectivity(root, bound_quals,
													index->rel->relid, JOIN_INNER, NULL);

		entries = Max(rint(walked * rows), 1);
	}
	*selectivity = clauselist_selectivity(root, get_quals_from_indexclauses(path->indexclauses),
										  index->rel->relid, JOIN_INNER, NULL);
	if (unique_match)
		*selectivity = Min(*selectivity, Max(entries / rows, 1.0e-10));

	depth = ceil(log(Max(rows, 2)) / log(NODE_FANOUT));
	startup = depth * NODE_COMPARISONS * cpu_operator_cost;
	total = startup * descents +
		entries * (cpu_index_tuple_cost + quals * cpu_operator_cost);

	*startup_cost = startup;
	*total_cost = total;

	/* cost_index charges for heap pages by these two: rows lie in memory */
	*correlation = 1.0;
	*pages = 0;
}

/*
 * Is an operator class of this access method complete and sane?
 */
static bool
mot_validate(Oid opclassoid)
{
	bool		result = true;
	HeapTuple	tuple;
	Form_pg_opclass opclass;
	CatCList   *operators;
	CatCList   *functions;
	uint32		strategies = 0;
	bool		compare = false;

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	opclass = (Form_pg_opclass) GETSTRUCT(tuple);

	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(opclass->opcfamily));
	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);

		if (op->amopstrategy < 1 || op->amopstrategy > BTMaxStrategyNumber ||
			op->amoppurpose != AMOP_SEARCH ||
			!check_amop_signature(op->amopopr, BOOLOID, op->amoplefttype, op->amoprighttype))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family of operator class \"%s\" of access method %s contains an unsuitable operator %s",
							NameStr(opclass->opcname), MOT_AM_NAME, format_operator(op->amopopr))));
			result = false;
		}
		else if (op->amoplefttype == opclass->opcintype && op->amoprighttype == opclass->opcintype)
			strategies |= 1u << op->amopstrategy;
	}
	ReleaseCatCacheList(operators);

	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(opclass->opcfamily));
	for (int i = 0; i < functions->n_members; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc) GETSTRUCT(&functions->members[i]->tuple);

		if (proc->amprocnum != MOT_AM_SUPPORT ||
			!check_amproc_signature(proc->amproc, INT4OID, true, 2, 2,
									proc->amproclefttype, proc->amprocrighttype))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family of operator class \"%s\" of access method %s contains an unsuitable function %s",
							NameStr(opclass->opcname), MOT_AM_NAME, format_procedure(proc->amproc))));
			result = false;
		}
		else if (proc->amproclefttype == opclass->opcintype &&
				 proc->amprocrighttype == opclass->opcintype)
			compare = true;
	}
	ReleaseCatCacheList(functions);

	if (strategies != 0x3e || !compare)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is missing operators or functions",
						NameStr(opclass->opcname), MOT_AM_NAME)));
		result = false;
	}
	ReleaseSysCache(tuple);
	return result;
}

Datum
mot_am_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = MOT_AM_SUPPORT;
	am->amoptsprocnum = 0;
	am->amcanorder = true;
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
	am->amcostestimate = mot_cost_estimate;
	am->amoptions = mot_options;
	am->amvalidate = mot_validate;
	am->ambeginscan = mot_begin_scan;
	am->amrescan = mot_rescan;
	am->amgettuple = mot_get_tuple;
	am->amendscan = mot_end_scan;

	PG_RETURN_POINTER(am);
}
