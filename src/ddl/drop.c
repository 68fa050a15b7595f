/*-------------------------------------------------------------------------
 *
 * drop.c
 *	  DROP TABLE on MOT tables, DROP INDEX CONCURRENTLY on their indexes.
 *
 * The server wants DROP FOREIGN TABLE to be said; a MOT table goes by DROP
 * TABLE too, also in one list with ordinary tables.  The list is dropped in
 * one piece, so that the tables in it may depend on each other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "ddl/ddl.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "relation/relation.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/syscache.h"

/* ------------------------------------------------------------- DROP TABLE */

typedef struct DropLookup
{
	bool		ours;			/* a table we can drop together with others */
	Oid			partition_parent;	/* locked for it */
} DropLookup;

/* as RangeVarCallbackForDropRelation, for the two kinds of table */
static void
check_drop(const RangeVar *name, Oid relid, Oid old_relid, void *arg)
{
	DropLookup *lookup = (DropLookup *) arg;
	HeapTuple	tuple;
	Form_pg_class form;
	bool		is_partition;

	if (relid != old_relid && OidIsValid(lookup->partition_parent))
	{
		UnlockRelationOid(lookup->partition_parent, AccessExclusiveLock);
		lookup->partition_parent = InvalidOid;
	}
	lookup->ours = false;
	if (!OidIsValid(relid))
		return;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return;					/* just dropped */
	form = (Form_pg_class) GETSTRUCT(tuple);
	is_partition = form->relispartition;

	lookup->ours = form->relkind == RELKIND_RELATION ||
		form->relkind == RELKIND_PARTITIONED_TABLE ||
		(form->relkind == RELKIND_FOREIGN_TABLE && MotIsMotTable(relid));
	if (lookup->ours)
	{
		if (!object_ownercheck(RelationRelationId, relid, GetUserId()) &&
			!object_ownercheck(NamespaceRelationId, form->relnamespace, GetUserId()))
			aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(form->relkind), name->relname);
		if (!allowSystemTableMods && IsSystemClass(relid, form))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied: \"%s\" is a system catalog", name->relname)));
	}
	ReleaseSysCache(tuple);

	if (lookup->ours && is_partition && relid != old_relid)
	{
		lookup->partition_parent = get_partition_parent(relid, true);
		if (OidIsValid(lookup->partition_parent))
			LockRelationOid(lookup->partition_parent, AccessExclusiveLock);
	}
}

/* a name that is no table: the server says what has to be said */
static void
drop_by_server(const MotUtility *u, DropStmt *stmt, List *name)
{
	DropStmt   *one = makeNode(DropStmt);

	one->objects = list_make1(copyObject(name));
	one->removeType = stmt->removeType;
	one->behavior = stmt->behavior;
	one->missing_ok = stmt->missing_ok;
	MotUtilityStep(u, (Node *) one);
}

static void
drop_tables_body(const MotUtility *u, void *arg)
{
	DropStmt   *stmt = (DropStmt *) arg;
	ObjectAddresses *objects = new_object_addresses();

	foreach_ptr(List, names, stmt->objects)
	{
		RangeVar   *name = makeRangeVarFromNameList(names);
		DropLookup	lookup = {false, InvalidOid};
		ObjectAddress address;
		Oid			relid;

		/* before the lookup takes a lock: is it anything we should lock? */
		AcceptInvalidationMessages();
		relid = MotDdlLookup(name);
		check_drop(name, relid, relid, &lookup);
		if (!lookup.ours)
		{
			drop_by_server(u, stmt, names);
			continue;
		}
		relid = RangeVarGetRelidExtended(name, AccessExclusiveLock, RVR_MISSING_OK,
										 check_drop, &lookup);
		if (!OidIsValid(relid) || !lookup.ours)
		{
			drop_by_server(u, stmt, names);
			continue;
		}
		ObjectAddressSet(address, RelationRelationId, relid);
		add_exact_object_address(&address, objects);
	}
	performMultipleDeletions(objects, stmt->behavior, 0);
	free_object_addresses(objects);
}

bool
MotDrop(const MotUtility *u, DropStmt *stmt)
{
	if (stmt->removeType == OBJECT_TABLE)
	{
		foreach_ptr(List, names, stmt->objects)
		{
			if (MotDdlNamesMotTable(makeRangeVarFromNameList(names)))
			{
				MotUtilityWhole(u, drop_tables_body, stmt);
				return true;
			}
		}
	}
	else if (stmt->removeType == OBJECT_INDEX && stmt->concurrent &&
			 list_length(stmt->objects) == 1 && stmt->behavior == DROP_RESTRICT)
	{
		Oid			indexoid = MotDdlLookup(makeRangeVarFromNameList((List *) linitial(stmt->objects)));

		/*
		 * The concurrent way commits in between, while others may still be
		 * reading the index.  Dropping one in memory is quick; wait for the
		 * lock instead.
		 */
		if (OidIsValid(indexoid) &&
			(MotDdlIsMotIndex(indexoid) || MotIsOrdinaryTable(IndexGetRelation(indexoid, true))))
		{
			DropStmt   *copy = copyObject(stmt);

			PreventInTransactionBlock(MotUtilityIsTopLevel(u), "DROP INDEX CONCURRENTLY");
			copy->concurrent = false;
			MotUtilityRun(u, (Node *) copy);
			return true;
		}
	}
	return false;
}
