/*-------------------------------------------------------------------------
 *
 * database.c
 *	  Databases with MOT tables in them come and go.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "relation/relation.h"
#include "xact/xact.h"

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

typedef struct CountRows
{
	Oid			dbid;
	int64		rows;
} CountRows;

static void
count_rows(void *arg, mot_table *table)
{
	CountRows  *count = (CountRows *) arg;

	if (mot_table_host_db(table) == count->dbid)
	{
		mot_table_stat stat;

		mot_table_stats(table, &stat);
		count->rows += Max(stat.rows, 0);
	}
}

/*
 * CREATE DATABASE copies files; rows in memory are not among them.
 */
bool
MotCreateDatabase(const MotUtility *u, CreatedbStmt *stmt)
{
	const char *template = "template1";
	CountRows	count = {InvalidOid, 0};
	ListCell   *lc;

	if (!MotEngine)
		return false;
	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "template") == 0 && option->arg)
			template = defGetString(option);
	}
	count.dbid = get_database_oid(template, true);
	MotUtilityPass(u);
	if (OidIsValid(count.dbid))
		mot_table_each(MotEngine, count_rows, &count);
	if (count.rows > 0)
		ereport(WARNING,
				(errmsg("rows of memory-optimized tables in database \"%s\" were not copied",
						template),
				 errhint("The new database has the tables, empty.  Use pg_dump --include-foreign-data=%s to copy the rows.",
						 MOT_SERVER_NAME)));
	return true;
}
