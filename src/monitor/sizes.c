/*-------------------------------------------------------------------------
 *
 * sizes.c
 *	  pg_relation_size() and its like, of ordinary tables and their indexes.
 *
 * The server's functions add up files, in which such tables have nothing.  Being
 * built in, they cannot be replaced; but whatever calls them is a query that is
 * planned first, and then calls functions of ours with the same arguments, which
 * add what is in memory.  (What the planner itself puts in, a SQL function's body,
 * is not seen.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat/acl.h"
#include "compat/calls.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "mot.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "relation/relation.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(mot_relation_size);
PG_FUNCTION_INFO_V1(mot_table_size);
PG_FUNCTION_INFO_V1(mot_indexes_size);
PG_FUNCTION_INFO_V1(mot_total_relation_size);

static planner_hook_type prev_planner = NULL;

/* ------------------------------------------------------------------- calls */

static Oid
ours(Oid theirs)
{
	const char *name = theirs == F_PG_RELATION_SIZE_REGCLASS || theirs == F_PG_RELATION_SIZE_REGCLASS_TEXT ? "mot_relation_size" :
	theirs == F_PG_TABLE_SIZE ? "mot_table_size" :
	theirs == F_PG_INDEXES_SIZE ? "mot_indexes_size" : "mot_total_relation_size";
	Oid			types[2] = {REGCLASSOID, TEXTOID};
	oidvector  *args = buildoidvector(types, theirs == F_PG_RELATION_SIZE_REGCLASS_TEXT ? 2 : 1);
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum("mot"));
	Oid			result = InvalidOid;

	/* where the extension is, if this database has it */
	if (HeapTupleIsValid(tuple))
	{
		Oid			handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;

		ReleaseSysCache(tuple);
		result = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
								 PointerGetDatum(args), ObjectIdGetDatum(get_func_namespace(handler)));
	}
	return OidIsValid(result) ? result : theirs;
}

static bool
call_ours(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, call_ours, context, 0);
	if (IsA(node, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) node;

		switch (call->funcid)
		{
			case F_PG_RELATION_SIZE_REGCLASS:
			case F_PG_RELATION_SIZE_REGCLASS_TEXT:
			case F_PG_TABLE_SIZE:
			case F_PG_INDEXES_SIZE:
			case F_PG_TOTAL_RELATION_SIZE:
				call->funcid = ours(call->funcid);
		}
	}
	return expression_tree_walker(node, call_ours, context);
}

static PlannedStmt *
plan_query(MOT_PLANNER_PARAMETERS)
{
	(void) call_ours((Node *) parse, NULL);
	return (prev_planner ? prev_planner : standard_planner) (MOT_PLANNER_ARGUMENTS);
}

/* Is there no other module below us that wants to see what is planned? */
bool
MotPlannerIsOurs(void)
{
	return prev_planner == NULL;
}

void
MotSizesInit(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
}

/* ------------------------------------------------------------------- sizes */

/* what the engine has of a table's rows, its indexes, or of the index that it is; 0 of all else */
static int64
in_memory(Oid relid, bool rows, bool indexes)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	Relation	table = rel;
	mot_table  *t;
	int64		size = 0;

	/*
	 * no lock on it: others lock an index after its table, and nobody drops
	 * that without the index
	 */
	if (rel != NULL && rel->rd_rel->relkind == RELKIND_INDEX)
		table = RelationIdGetRelation(rel->rd_index->indrelid);
	if (table != NULL && MotIsOrdinary(table) &&
		(t = mot_table_find(MotEngineRequired(), MyDatabaseId, MotStorageNumber(table))) != NULL)
	{
		mot_table_stat stat;
		mot_index_stat index_stat;
		mot_index  *index = table != rel ? mot_table_index(t, relid) : NULL;

		mot_table_stats(t, &stat);
		if (index != NULL)
			mot_index_stats(index, &index_stat);
		if (table == rel)
			size = (rows ? stat.row_bytes : 0) + (indexes ? stat.index_bytes : 0);
		else if (index != NULL && rows)
			size = index_stat.bytes;
	}
	if (table != NULL && table != rel)
		RelationClose(table);
	if (rel != NULL)
		relation_close(rel, AccessShareLock);
	return size;
}

/* "theirs" is what the user has called */
static Datum
with_memory(FunctionCallInfo fcinfo, Oid theirs, Datum files, bool rows, bool indexes)
{
	AclResult	allowed = object_aclcheck(ProcedureRelationId, theirs, GetUserId(), ACL_EXECUTE);

	if (unlikely(allowed != ACLCHECK_OK))
		aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(theirs));
	if (fcinfo->isnull)
		return files;
	return Int64GetDatum(DatumGetInt64(files) + in_memory(PG_GETARG_OID(0), rows, indexes));
}

/* (of one argument, or with a fork's name) */
Datum
mot_relation_size(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(theirs, 2);
	Datum		files;

	InitFunctionCallInfoData(*theirs, NULL, 2, InvalidOid, NULL, NULL);
	theirs->args[0] = fcinfo->args[0];
	theirs->args[1].value = PG_NARGS() > 1 ? PG_GETARG_DATUM(1) : PointerGetDatum(cstring_to_text("main"));
	theirs->args[1].isnull = false;
	files = pg_relation_size(theirs);
	fcinfo->isnull = theirs->isnull;
	return with_memory(fcinfo, PG_NARGS() == 1 ? F_PG_RELATION_SIZE_REGCLASS : F_PG_RELATION_SIZE_REGCLASS_TEXT,
					   files, PG_NARGS() == 1 || strcmp(text_to_cstring(PG_GETARG_TEXT_PP(1)), "main") == 0, false);
}

Datum
mot_table_size(PG_FUNCTION_ARGS)
{
	return with_memory(fcinfo, F_PG_TABLE_SIZE, pg_table_size(fcinfo), true, false);
}

Datum
mot_indexes_size(PG_FUNCTION_ARGS)
{
	return with_memory(fcinfo, F_PG_INDEXES_SIZE, pg_indexes_size(fcinfo), false, true);
}

Datum
mot_total_relation_size(PG_FUNCTION_ARGS)
{
	return with_memory(fcinfo, F_PG_TOTAL_RELATION_SIZE, pg_total_relation_size(fcinfo), true, true);
}
