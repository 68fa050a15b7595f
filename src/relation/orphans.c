/*-------------------------------------------------------------------------
 *
 * orphans.c
 *	  Tables that no catalogue knows are found and given back.
 *
 * A table or a database that was dropped while mot was not loaded leaves its
 * rows: in memory, in every checkpoint, for good.  That can have happened only
 * before the server started, so once after each start somebody looks: a worker
 * for each database that has tables, one after the other, started by the
 * maintenance worker when recovery has brought everything.
 *
 * Nothing goes that somebody else may have: a table counts as an orphan only
 * if it is settled (no transaction that made it is still running), and the
 * catalogue, read after the table (the database) has been locked against
 * everybody, has nothing by its number: who makes or drops one holds such a
 * lock until the engine's table has been settled or has gone.  Databases that
 * nobody can connect to, because a DROP DATABASE was interrupted, are left to
 * the DROP DATABASE that will be repeated.
 *
 * A table is dropped as DROP TABLE does it, in a transaction and with the log.
 *
 * Who comes by each table also says for whom it counts: see limit.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "relation/internal.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "xact/xact.h"

PGDLLEXPORT void MotOrphansMain(Datum arg);

/* datconnlimit of a database of which DROP DATABASE has done a part (from 15.4 on) */
#define INVALID_DATABASE (-2)

typedef enum DatabaseKind
{
	DATABASE_THERE, DATABASE_GONE, DATABASE_INVALID
} DatabaseKind;

/* the smallest number of a database (or of a table in one) that is greater than "after" */
typedef struct NextNumber
{
	Oid			dbid;			/* of tables; InvalidOid: databases are looked
								 * for */
	Oid			after;
	Oid			found;
} NextNumber;

static void
visit(void *arg, mot_table *table)
{
	NextNumber *next = arg;
	Oid			number = mot_table_host_db(table);

	if (OidIsValid(next->dbid))
	{
		if (number != next->dbid)
			return;
		number = mot_table_host_id(table);
	}
	if (number > next->after && (!OidIsValid(next->found) || number < next->found))
		next->found = number;
}

static Oid
next_number(Oid dbid, Oid after)
{
	NextNumber	next = {dbid, after, InvalidOid};

	mot_table_each(MotEngine, visit, &next);
	return next.found;
}

static DatabaseKind
kind_of_database(Oid dbid)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dbid));
	DatabaseKind kind;

	if (!HeapTupleIsValid(tuple))
		return DATABASE_GONE;
	kind = ((Form_pg_database) GETSTRUCT(tuple))->datconnlimit == INVALID_DATABASE ?
		DATABASE_INVALID : DATABASE_THERE;
	ReleaseSysCache(tuple);
	return kind;
}

/* (it makes no difference what its number was taken for) */
static bool
ordinary_is_known(Oid number)
{
	Relation	pg_class;
	SysScanDesc scan;
	ScanKeyData key;
	bool		known;

	/* in the database's own tablespace; seldom it is somewhere else, or gone */
	if (OidIsValid(RelidByRelfilenumber(InvalidOid, number)))
		return true;
	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_class_relfilenode, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(number));
	scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 1, &key);
	known = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return known;
}

/* Is it anything to be kept?  (A foreign table, even if the wrapper has another name now.) */
static bool
is_known(const mot_table *table, Oid number)
{
	return table != NULL && mot_table_is_numbered(table) ? ordinary_is_known(number) :
		get_rel_relkind(number) == RELKIND_FOREIGN_TABLE;
}

/* Without a lock, by the catalogue as it is. */
static void
count_locked_table(mot_table *table, Oid number, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relkind == RELKIND_FOREIGN_TABLE || form->relfilenode == number)
			MotLimitsCount(table, form->relowner);
		ReleaseSysCache(tuple);
	}
}

/*
 * It counts for its owner, and limits hold, though nobody may come to it for long, or who does know
 * it from recovery.  Not if that takes waiting for a lock: who has the table to himself may be
 * prepared, and nothing is reclaimed while we have a view; then it is counted only.
 */
static void
count_table(mot_table *table, Oid number)
{
	Oid			relid = mot_table_owner(table);
	Relation	rel;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
	{
		count_locked_table(table, number, relid);
		return;
	}
	rel = try_relation_open(relid, NoLock);
	table = mot_table_find(MotEngine, MyDatabaseId, number);
	if (rel != NULL && table != NULL && (MotIsOrdinary(rel) || MotIsMotTable(relid)) && MotStorageNumber(rel) == number)
		MotLimitsApply(rel, table);
	if (rel != NULL)
		relation_close(rel, NoLock);
	UnlockRelationOid(relid, AccessShareLock);
}

static void
look_at_table(Oid relid)
{
	mot_table  *table;
	mot_table  *replaces;

	StartTransactionCommand();
	(void) MotLooseView();		/* a table that goes meanwhile stays readable */
	table = mot_table_find(MotEngine, MyDatabaseId, relid);
	if (table != NULL && is_known(table, relid))
		count_table(table, relid);
	else if (table != NULL && mot_table_is_settled(table, &replaces))
	{
		/* (unsettled it is somebody's, who may be prepared, with all locks) */
		LockRelationOid(mot_table_owner(table), AccessExclusiveLock);
		AcceptInvalidationMessages();
		table = mot_table_find(MotEngine, MyDatabaseId, relid);
		if (table != NULL && mot_table_is_settled(table, &replaces) && !is_known(table, relid))
		{
			(void) GetTopTransactionId();
			MotStorageDropTable(relid);
			ereport(LOG,
					(errmsg("memory-optimized table with OID %u of database \"%s\" is not in the catalogue any more and has been dropped",
							relid, get_database_name(MyDatabaseId))));
		}
	}
	CommitTransactionCommand();
}

static void
look_at_database(Oid dbid)
{
	bool		settled = true;
	Oid			relid = InvalidOid;

	StartTransactionCommand();
	LockSharedObject(DatabaseRelationId, dbid, 0, AccessExclusiveLock);
	while (OidIsValid(relid = next_number(dbid, relid)))
	{
		mot_table  *table = mot_table_find(MotEngine, dbid, relid);
		mot_table  *replaces;

		/* CREATE DATABASE is at it */
		if (table == NULL || !mot_table_is_settled(table, &replaces))
			settled = false;
	}
	if (settled && kind_of_database(dbid) == DATABASE_GONE)
	{
		(void) GetTopTransactionId();
		MotStorageDropDatabase(dbid);
		ereport(LOG,
				(errmsg("memory-optimized tables of the database with OID %u, which is not there any more, have been dropped",
						dbid)));
	}
	CommitTransactionCommand();
}

/* the worker; the first byte of bgw_extra is the database's kind */
void
MotOrphansMain(Datum arg)
{
	Oid			dbid = DatumGetObjectId(arg);
	Oid			relid = InvalidOid;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (MyBgworkerEntry->bgw_extra[0] == DATABASE_GONE)
	{
		BackgroundWorkerInitializeConnection(NULL, NULL, 0);
		look_at_database(dbid);
	}
	else
	{
		BackgroundWorkerInitializeConnectionByOid(dbid, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
		while (OidIsValid(relid = next_number(dbid, relid)))
		{
			CHECK_FOR_INTERRUPTS();
			look_at_table(relid);
		}
	}
	proc_exit(0);
}

/*
 * For the maintenance worker, again and again until it says true: all
 * databases have been looked at.
 */
bool
MotOrphansLook(void)
{
	static Oid	last = InvalidOid;
	static BackgroundWorkerHandle *handle = NULL;
	BackgroundWorker worker;
	DatabaseKind kind;
	pid_t		pid;
	Oid			dbid;

	if (handle != NULL)
	{
		if (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
			return false;
		pfree(handle);
		handle = NULL;
	}
	dbid = next_number(InvalidOid, last);
	if (!OidIsValid(dbid))
		return true;

	StartTransactionCommand();
	kind = kind_of_database(dbid);
	CommitTransactionCommand();
	if (kind == DATABASE_INVALID)
	{
		last = dbid;
		return false;
	}

	MotDescribeWorker(&worker, "mot catalogue check", "MotOrphansMain", BgWorkerStart_RecoveryFinished,
					  BGW_NEVER_RESTART);
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = ObjectIdGetDatum(dbid);
	worker.bgw_extra[0] = kind;
	MemoryContextSwitchTo(TopMemoryContext);
	/* no place for a worker: another time */
	if (RegisterDynamicBackgroundWorker(&worker, &handle))
		last = dbid;
	return false;
}
