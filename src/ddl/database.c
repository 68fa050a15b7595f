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

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "faults.h"
#include "relation/relation.h"
#include "xact/xact.h"

/* of the CREATE DATABASE that is running */
static const char *template = NULL;

/* of the DROP DATABASE that is running, once the server has locked it */
static Oid	goes = InvalidOid;

/*
 * Which database it is, and what is in it, is known only when the server has locked it: until then
 * it can be given another name, and until nobody is connected any more, tables.
 */
bool
MotDropDatabase(const MotUtility *u, DropdbStmt *stmt)
{
	if (!MotEngine)
		return false;
	goes = InvalidOid;
	MOT_FAULT("ddl-database-named");
	MotUtilityPass(u);
	if (OidIsValid(goes))
		MotStorageDropDatabase(goes);
	return true;
}

/*
 * OAT_DROP comes before the server has checked that it may; if it may not, that is an error.  Its
 * files are gone by the end, so what can be refused is refused before.
 */
void
MotDatabaseGoes(Oid dbid)
{
	if (!MotEngine)
		return;
	if (MotStorageHasTables(dbid))
		MotCheckWritable();
	goes = dbid;
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
