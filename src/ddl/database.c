/*-------------------------------------------------------------------------
 *
 * database.c
 *	  Databases with MOT tables in them come and go.
 *
 * CREATE DATABASE copies the template's files; what is in memory is copied
 * here, as part of the same transaction.  It is done before the server copies
 * files, which it could not take back if there were no memory for the
 * rows, and when it has looked at all that may stand in the way: the object-access hook is
 * called just then.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "relation/relation.h"
#include "xact/xact.h"

/* of the CREATE DATABASE that is running */
static const char *template = NULL;

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
	const char *name = "template1";

	if (!MotEngine)
		return false;
	foreach_node(DefElem, option, stmt->options)
	{
		if (strcmp(option->defname, "template") == 0 && option->arg)
			name = defGetString(option);
	}
	PG_TRY();
	{
		template = name;
		MotUtilityPass(u);
	}
	PG_FINALLY();
	{
		template = NULL;
	}
	PG_END_TRY();
	return true;
}

/* (the server has locked the template, and nobody is connected to it) */
void
MotDatabaseComes(Oid dbid)
{
	Oid			from = template != NULL ? get_database_oid(template, false) : InvalidOid;

	if (OidIsValid(from) && MotStorageCheckDatabase(from, template))
		MotStorageCopyDatabase(from, dbid);
}
