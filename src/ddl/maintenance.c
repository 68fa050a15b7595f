/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  VACUUM, ANALYZE, REINDEX, CLUSTER and REPACK on MOT tables.
 *
 * The engine reclaims by itself, so VACUUM has nothing to do but the ANALYZE
 * it may be asked for.  The server leaves foreign tables out of statements
 * that name no table; MOT tables are put back in.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "compat/calls.h"
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

List *
MotListTables(void)
{
	List	   *result = NIL;
	Relation	rel = table_open(ForeignTableRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			relid = ((Form_pg_foreign_table) GETSTRUCT(tuple))->ftrelid;

		if (MotIsMotTable(relid))
			result = lappend_oid(result, relid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/* --------------------------------------------------------- VACUUM, ANALYZE */

static bool
option_is_on(List *options, const char *name)
{
	bool		result = false;

	foreach_node(DefElem, option, options)
	{
		if (strcmp(option->defname, name) == 0)
			result = defGetBoolean(option);
	}
	return result;
}

/* those of the options of VACUUM that ANALYZE has, too */
static List *
analyze_options(List *options)
{
	List	   *result = NIL;

	foreach_node(DefElem, option, options)
	{
		if (strcmp(option->defname, "verbose") == 0 ||
			strcmp(option->defname, "skip_locked") == 0)
			result = lappend(result, option);
	}
	return result;
}

/* may this user vacuum it?  Warns if not, as the server does. */
static bool
may_vacuum(Oid relid, uint32 options)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = MotMayVacuum(relid, (Form_pg_class) GETSTRUCT(tuple), options);
	ReleaseSysCache(tuple);
	return result;
}

static void
run_vacuum(const MotUtility *u, bool is_vacuum, List *options, List *rels)
{
	VacuumStmt *stmt = makeNode(VacuumStmt);

	stmt->options = options;
	stmt->rels = rels;
	stmt->is_vacuumcmd = is_vacuum;
	MotUtilityRun(u, (Node *) stmt);
}

bool
MotVacuum(const MotUtility *u, VacuumStmt *stmt)
{
	bool		analyze = !stmt->is_vacuumcmd || option_is_on(stmt->options, "analyze");
	List	   *ours = NIL;
	List	   *others = NIL;
	VacuumStmt *copy;
	MemoryContext oldcxt;
	ListCell   *lc;

	if (!OidIsValid(MotAmOid(true)))
		return false;
	/* ANALYZE of a MOT table that is named works as for any foreign table */
	if (!stmt->is_vacuumcmd && stmt->rels != NIL)
		return false;
	if (stmt->rels != NIL)
	{
		foreach(lc, stmt->rels)
		{
			VacuumRelation *vrel = lfirst_node(VacuumRelation, lc);

			if (vrel->relation && MotDdlNamesMotTable(vrel->relation))
				break;
		}
		if (lc == NULL)
			return false;
	}
	else if (!analyze)
		return false;			/* VACUUM of everything: nothing to add */

	/* what has to live over the transactions that VACUUM starts and ends */
	oldcxt = MemoryContextSwitchTo(PortalContext ? PortalContext : CurrentMemoryContext);
	copy = copyObject(stmt);
	if (copy->rels == NIL)
	{
		foreach_oid(oid, MotListTables())
		{
			/* (without a word if not: the statement names no table) */
			if (object_ownercheck(RelationRelationId, oid, GetUserId()) ||
				object_ownercheck(DatabaseRelationId, MyDatabaseId, GetUserId()))
				ours = lappend(ours, makeVacuumRelation(NULL, oid, NIL));
		}
	}
	else
	{
		PreventInTransactionBlock(MotUtilityIsTopLevel(u), "VACUUM");
		foreach_node(VacuumRelation, vrel, copy->rels)
		{
			if (vrel->relation == NULL || !MotDdlNamesMotTable(vrel->relation))
				others = lappend(others, vrel);
			else if (vrel->va_cols != NIL && !analyze)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("ANALYZE option must be specified when a column list is provided")));
			else if (may_vacuum(MotDdlLookup(vrel->relation), VACOPT_VACUUM) && analyze)
				ours = lappend(ours, vrel);
		}
	}
	MemoryContextSwitchTo(oldcxt);

	if (copy->rels == NIL || others != NIL)
		run_vacuum(u, copy->is_vacuumcmd, copy->options, others);
	if (ours != NIL)
	{
		bool		pushed = false;

		/*
		 * The first half left us in the memory of its last transaction; what
		 * the server allocates around the second must outlive that, too.
		 */
		if (PortalContext)
			MemoryContextSwitchTo(PortalContext);
		copy->options = analyze_options(copy->options);

		/* the statement's snapshot ended with the transactions of VACUUM */
		if (!ActiveSnapshotSet())
		{
			PushActiveSnapshot(GetTransactionSnapshot());
			pushed = true;
		}
		run_vacuum(u, false, copy->options, ours);
		if (pushed && ActiveSnapshotSet())
			PopActiveSnapshot();
	}
	return true;
}

/* ----------------------------------------------------------------- REINDEX */

/* do the rows satisfy what the catalogue says of them? */
static void
check_rows(Relation rel)
{
	List	   *qual = RelationGetPartitionQual(rel);
	List	   *checks = NIL;

	foreach_oid(oid, MotValidChecks(RelationGetRelid(rel), InvalidOid))
		checks = lappend(checks, MotConstraintCheck(oid));
	if (qual != NIL)
	{
		MotRowCheck *check = palloc0(sizeof(MotRowCheck));

		check->expr = make_ands_explicit(copyObject(qual));
		checks = lappend(checks, check);
	}
	for (int i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		for (Oid domain = att->attisdropped ? InvalidOid : att->atttypid;
			 OidIsValid(domain) && get_typtype(domain) == TYPTYPE_DOMAIN;)
		{
			HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
			Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);

			checks = list_concat(checks, MotDomainChecks(MotValidChecks(InvalidOid, domain),
														 type->typnotnull, att->attnum));
			domain = type->typbasetype;
			ReleaseSysCache(tuple);
		}
	}
	if (checks != NIL)
		MotRewriteRows(rel, RelationGetDescr(rel), NIL, false, NULL, checks);
}

static void
reindex(ReindexStmt *stmt)
{
	Oid			relid;
	Oid			indexoid = InvalidOid;
	Relation	rel;
	List	   *indexes;

	if (stmt->kind == REINDEX_OBJECT_INDEX)
	{
		indexoid = RangeVarGetRelidExtended(stmt->relation, NoLock, 0,
											RangeVarCallbackOwnsRelation, NULL);
		relid = IndexGetRelation(indexoid, false);
		LockRelationOid(relid, AccessExclusiveLock);
		LockRelationOid(indexoid, AccessExclusiveLock);
	}
	else
		relid = RangeVarGetRelidExtended(stmt->relation, AccessExclusiveLock, 0,
										 RangeVarCallbackOwnsRelation, NULL);

	if (!MotIsMotTable(relid))
		MotDdlRefuseReplaced(stmt->relation->relname, "REINDEX");
	rel = table_open(relid, NoLock);
	CheckTableNotInUse(rel, "REINDEX");
	if (!OidIsValid(indexoid) && MotDefinitionTakeOver(rel))
		check_rows(rel);
	indexes = OidIsValid(indexoid) ? list_make1_oid(indexoid) : RelationGetIndexList(rel);
	foreach_oid(oid, indexes)
		MotRebuildIndex(rel, oid);
	table_close(rel, NoLock);
}

bool
MotReindex(const MotUtility *u, ReindexStmt *stmt)
{
	Oid			oid;

	if (stmt->relation == NULL || !OidIsValid(MotAmOid(true)))
		return false;			/* SCHEMA, DATABASE and SYSTEM leave foreign
								 * tables out */
	oid = MotDdlLookup(stmt->relation);
	if (!OidIsValid(oid))
		return false;
	if (stmt->kind == REINDEX_OBJECT_INDEX ?
		!MotDdlIsMotIndex(oid) || !MotIsMotTable(IndexGetRelation(oid, true)) :
		stmt->kind != REINDEX_OBJECT_TABLE || !MotIsMotTable(oid))
		return false;

	/* event triggers take no part in REINDEX */
	PreventCommandIfReadOnly("REINDEX");
	PreventCommandIfParallelMode("REINDEX");
	PreventCommandDuringRecovery("REINDEX");
	reindex(stmt);
	CommandCounterIncrement();
	return true;
}

/* --------------------------------------------------------- CLUSTER, REPACK */

bool
MotRepack(const MotUtility *u, RepackStmt * stmt)
{
	RangeVar   *name = MotRepackRelation(stmt);

	if (name != NULL && MotDdlNamesMotTable(name))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot %s memory-optimized table \"%s\"", MotRepackVerb(stmt), name->relname),
				 errdetail("Its rows have no order in memory to improve.")));
	return false;
}
