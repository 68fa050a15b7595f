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
#include "utils/lsyscache.h"

/* ------------------------------------------------------------- DROP TABLE */

/* is it a table that we can drop together with others? */
static bool
is_droppable(Oid relid)
{
	char		relkind = get_rel_relkind(relid);

	return relkind == RELKIND_RELATION || relkind == RELKIND_PARTITIONED_TABLE ||
		(relkind == RELKIND_FOREIGN_TABLE && MotIsMotTable(relid));
}

/*
 * As RangeVarCallbackForDropRelation, for the two kinds of table; arg is the parent that
 * was locked for a partition.
 */
static void
check_drop(const RangeVar *name, Oid relid, Oid old_relid, void *arg)
{
	Oid		   *parent = (Oid *) arg;

	if (relid != old_relid && OidIsValid(*parent))
	{
		UnlockRelationOid(*parent, AccessExclusiveLock);
		*parent = InvalidOid;
	}
	if (!is_droppable(relid))
		return;					/* just dropped */
	if (!object_ownercheck(RelationRelationId, relid, GetUserId()) &&
		!object_ownercheck(NamespaceRelationId, get_rel_namespace(relid), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), name->relname);
	if (!allowSystemTableMods && IsCatalogRelationOid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied: \"%s\" is a system catalog", name->relname)));
	if (get_rel_relispartition(relid) && relid != old_relid)
	{
		*parent = get_partition_parent(relid, true);
		if (OidIsValid(*parent))
			LockRelationOid(*parent, AccessExclusiveLock);
	}
}

static void
drop_tables_body(const MotUtility *u, void *arg)
{
	DropStmt   *stmt = (DropStmt *) arg;
	ObjectAddresses *objects = new_object_addresses();

	foreach_ptr(List, names, stmt->objects)
	{
		RangeVar   *name = makeRangeVarFromNameList(names);
		Oid			parent = InvalidOid;
		ObjectAddress address;
		Oid			relid;

		/* before the lookup takes a lock: is it anything we should lock? */
		AcceptInvalidationMessages();
		relid = MotDdlLookup(name);
		if (is_droppable(relid))
			relid = RangeVarGetRelidExtended(name, AccessExclusiveLock, RVR_MISSING_OK,
											 check_drop, &parent);
		if (!is_droppable(relid))
		{
			/*
			 * no table: the server says what has to be said (a flat copy, as
			 * there may be thousands of other names)
			 */
			DropStmt   *one = makeNode(DropStmt);

			*one = *stmt;
			one->objects = list_make1(names);
			MotUtilityStep(u, (Node *) one);
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
