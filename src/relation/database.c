/*-------------------------------------------------------------------------
 *
 * database.c
 *	  The tables of a whole database: they go with it, or are copied.
 *
 * A session sees the catalogue of its own database only, so what is done to
 * the tables of another one is done by their definitions (definition.h).
 * Both happen as part of the transaction that drops or makes the database,
 * whose locks keep everybody else out of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "faults.h"
#include "miscadmin.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "relation/keysort.h"
#include "utils/memutils.h"
#include "xact/xact.h"

#define ROWS_BETWEEN_LOOKS 1024

typedef struct Tables
{
	Oid			dbid;
	int			n;
	int			max;
	mot_table **tables;
} Tables;

static void copy_table(mot_table *from, Oid dbid);
static void copy_rows(mot_table *from, mot_table *to, const MotDefinition *def);

static void
collect(void *arg, mot_table *table)
{
	Tables	   *all = arg;

	if (OidIsValid(all->dbid) && mot_table_host_db(table) != all->dbid)
		return;
	if (all->n < all->max)
		all->tables[all->n] = table;
	all->n++;
}

mot_table **
MotTables(Oid dbid, int *n)
{
	Tables		all = {dbid};

	/* nothing can be allocated in the visit, so count first */
	mot_table_each(MotEngine, collect, &all);
	all.max = all.n;
	all.n = 0;
	all.tables = palloc_extended(Max(all.max, 1) * sizeof(mot_table *), MCXT_ALLOC_HUGE);
	mot_table_each(MotEngine, collect, &all);
	*n = Min(all.n, all.max);
	return all.tables;
}

/* it may still be bringing tables */
static void
await_recovery(Oid dbid)
{
	if (MotRelationAwait != NULL)
		(void) MotRelationAwait(dbid, InvalidOid);
}

/* tables that are in files only: dropped with the others, but they cannot be copied */
static bool
any_left_out(Oid dbid)
{
	return MotRelationLeftOut != NULL && MotRelationLeftOut(dbid, InvalidOid);
}

bool
MotStorageHasTables(Oid dbid)
{
	int			n;

	await_recovery(dbid);
	pfree(MotTables(dbid, &n));
	return n > 0 || any_left_out(dbid);
}

void
MotStorageDropDatabase(Oid dbid)
{
	mot_table **tables;
	int			n;

	MOT_FAULT("ddl-database-dropped");
	tables = MotTables(dbid, &n);
	if (n > 0 || (MotRelationMissing != NULL && MotRelationMissing(dbid, InvalidOid)))
		MotStorageDropTables(dbid, tables, n);
	pfree(tables);
}

bool
MotStorageCheckDatabase(Oid dbid, const char *name)
{
	mot_table **tables;
	int			n;

	if (MotEngine == NULL)
		return false;

	await_recovery(dbid);
	if (any_left_out(dbid))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("memory-optimized tables in database \"%s\" cannot be copied", name),
				 errdetail("Memory has no room for all of them: see mot_stat_left_out."),
				 errhint("Raise mot.max_memory and restart the server, or use another template.")));

	/* (one may be in memory still, and its copy would be taken for whole) */
	if (MotRelationMissing != NULL && MotRelationMissing(dbid, InvalidOid))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("memory-optimized tables in database \"%s\" cannot be copied", name),
				 errdetail("There are damaged ones among them."),
				 errhint("Give those up with TRUNCATE or DROP TABLE, or use another template.")));
	tables = MotTables(dbid, &n);
	for (int i = 0; i < n; i++)
	{
		size_t		len;

		if (mot_table_definition(tables[i], &len) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("memory-optimized tables in database \"%s\" cannot be copied", name),
					 errdetail("The table with OID %u has no definition outside of that database.",
							   mot_table_host_id(tables[i])),
					 errhint("Make it anew with TRUNCATE, or use another template.")));
	}
	pfree(tables);
	return n > 0;
}

void
MotStorageCopyDatabase(Oid from, Oid to)
{
	mot_table **tables;
	int			n;

	MotCheckWritable();
	/* keeps the definitions, too */
	(void) MotLooseView();
	tables = MotTables(from, &n);
	for (int i = 0; i < n; i++)
		copy_table(tables[i], to);
	pfree(tables);
	MotLooseViewRelease();
	MOT_FAULT("ddl-database-copied");
}

static void
copy_table(mot_table *from, Oid dbid)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT table copy",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	size_t		len;
	const void *bytes = mot_table_definition(from, &len);
	void	   *moved = MotDefinitionMove(bytes, len, dbid);
	MotDefinition *def = MotDefinitionDecode(moved, len, cxt);
	mot_table  *to;

	MotRaiseStatus(MotDefinitionMakeTable(MotSession(), def, moved, len, &to), NULL);
	MotStorageAddTable(to);
	MotLimitsCopy(from, to);
	copy_rows(from, to, def);

	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
}

/* nobody else has the copy: its indexes are built when all rows are there */
static void
copy_rows(mot_table *from, mot_table *to, const MotDefinition *def)
{
	mot_session *session = MotSession();
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	uint64		n = 0;

	mot_build_rows(session, &build, from, NULL);
	while (mot_build_next(&build, &row, &version))
	{
		size_t		size = MotDefinitionRowSize(def, version);
		mot_row    *copy;
		void	   *data;

		MotRaiseStatus(mot_load_row(session, to, mot_version_host_bits(version), size,
									&copy, &data), NULL);
		memcpy(data, mot_version_data(version), size);
		if (++n % ROWS_BETWEEN_LOOKS == 0)
			CHECK_FOR_INTERRUPTS();
	}
	for (int i = 0; i < def->nindexes; i++)
	{
		mot_index  *index = mot_table_index(to, def->indexes[i].indexoid);
		mot_index  *model = mot_table_index(from, def->indexes[i].indexoid);

		/* one that has plain keys has a reason for them */
		if (model != NULL && (mot_index_form(model) & MOT_FORM_COLLATED) == 0)
			mot_index_set_form(index, mot_index_form(index) & MOT_FORM_NULLABLE);
		MotRaiseStatus(MotLoadIndex(to, index, &def->indexes[i], MotKeySortInterrupts, NULL), NULL);
	}
}
