/*-------------------------------------------------------------------------
 *
 * database.c
 *	  Databases with MOT tables in them come and go.
 *
 * CREATE DATABASE copies the template's files; what is in memory is copied
 * here, as part of the same transaction.  It is done before the server does
 * its work, which it could not take back if there were no memory for the
 * rows: for that the new database's OID is chosen beforehand, and given to
 * the server as the statement's option.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "ddl/ddl.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "xact/xact.h"

static bool may_copy(Oid dbid);
static Oid	new_database_oid(void);
static void keep_others_out(Oid dbid, const char *name);

/*
 * DROP DATABASE announces itself to OAT_DROP before it has checked that it
 * may; so look at what became of it.  Its files are gone by then, so what can
 * be refused is refused before.
 */
bool
MotDropDatabase(const MotUtility *u, DropdbStmt *stmt)
{
	Oid			dbid = MotEngine ? get_database_oid(stmt->dbname, true) : InvalidOid;

	if (!OidIsValid(dbid) || !MotStorageHasTables(dbid))
		return false;
	MotCheckWritable();
	MotUtilityPass(u);
	if (!OidIsValid(get_database_oid(stmt->dbname, true)))
		MotStorageDropDatabase(dbid);
	return true;
}

bool
MotCreateDatabase(const MotUtility *u, CreatedbStmt *stmt)
{
	const char *template = "template1";
	Oid			from;
	Oid			to = InvalidOid;

	if (!MotEngine)
		return false;
	foreach_node(DefElem, option, stmt->options)
	{
		if (strcmp(option->defname, "template") == 0 && option->arg)
			template = defGetString(option);
		else if (strcmp(option->defname, "oid") == 0)
			to = defGetObjectId(option);
	}
	from = get_database_oid(template, true);

	/* what the server will refuse */
	if (!OidIsValid(from) || !may_copy(from) ||
		OidIsValid(get_database_oid(stmt->dbname, true)) ||
		(OidIsValid(to) && get_database_name(to) != NULL))
		return false;
	if (!MotStorageCheckDatabase(from, template))
		return false;

	PreventInTransactionBlock(MotUtilityIsTopLevel(u), "CREATE DATABASE");
	keep_others_out(from, template);
	if (!OidIsValid(to))
	{
		stmt = copyObject(stmt);
		to = new_database_oid();
		stmt->options = lappend(stmt->options,
								makeDefElem("oid", (Node *) makeFloat(psprintf("%u", to)), -1));
	}
	MotStorageCopyDatabase(from, to);
	MotUtilityRun(u, (Node *) stmt);
	return true;
}

/* as createdb asks */
static bool
may_copy(Oid dbid)
{
	bool		result = superuser();
	HeapTuple	tuple;

	if (result)
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
		ReleaseSysCache(tuple);
	}
	if (!result)
		return false;
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dbid));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_database) GETSTRUCT(tuple))->datistemplate ||
		object_ownercheck(DatabaseRelationId, dbid, GetUserId());
	ReleaseSysCache(tuple);
	return result;
}

static Oid
new_database_oid(void)
{
	Relation	pg_database = table_open(DatabaseRelationId, RowExclusiveLock);
	Oid			result = GetNewOidWithIndex(pg_database, DatabaseOidIndexId, Anum_pg_database_oid);

	table_close(pg_database, RowExclusiveLock);
	return result;
}

/* From now on nobody connects to the template; the server looks again, but only after we have copied. */
static void
keep_others_out(Oid dbid, const char *name)
{
	int			others;
	int			prepared;

	LockSharedObject(DatabaseRelationId, dbid, 0, ShareLock);
	if (CountOtherDBBackends(dbid, &others, &prepared))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("source database \"%s\" is being accessed by other users", name),
				 errdetail_plural("There is %d other session or prepared transaction using the database.",
								  "There are %d other sessions or prepared transactions using the database.",
								  others + prepared, others + prepared)));
}
