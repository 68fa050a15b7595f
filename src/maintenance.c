/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  The module's background workers.
 *
 * "mot maintenance" runs as long as the server does.  It frees what idle and
 * departed backends still owe to reclamation: a backend does that for itself
 * at commit, but one that sits idle, or is gone, has no next commit.
 *
 * When the server has started, it also sees to it that the log names every
 * memory-optimized table that came up empty.  Catalogues can only be read by
 * a process that is connected to their database, so it starts one short-lived
 * worker for each database in turn.  The tables are made there (empty), so
 * that each is reported once; a table that a session touches before the
 * worker gets to it is made and reported by that session.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "catalog/pg_foreign_table.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "mot.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "relation/relation.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#include "xact/xact.h"

/* milliseconds between two rounds; one with nothing to free looks at a counter for each slot */
#define ROUND_MS 1000

PGDLLEXPORT void MotMaintenanceMain(Datum arg);
PGDLLEXPORT void MotAnnounceMain(Datum arg);

static void announce_all(void);
static List *list_databases(void);
static void announce_database(Oid dbid);

void
MotMaintenanceInit(void)
{
	BackgroundWorker worker;

	/* pg_upgrade wants nobody else at its catalogues */
	if (IsBinaryUpgrade)
		return;

	memset(&worker, 0, sizeof(worker));
	strlcpy(worker.bgw_name, "mot maintenance", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "mot maintenance", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "mot", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "MotMaintenanceMain", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	RegisterBackgroundWorker(&worker);
}

void
MotMaintenanceMain(Datum arg)
{
	mot_session *session;

	/* no engine, nothing to do: exit code 0 means "do not start me again" */
	if (MotEngine == NULL)
		proc_exit(0);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	session = MotSession();
	announce_all();

	while (!ShutdownRequestPending)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		(void) mot_reclaim_all(session);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 ROUND_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}

	/* not 0: whoever is terminated by hand comes back */
	proc_exit(1);
}

/* Start a worker in each database, one after the other, and wait for it. */
static void
announce_all(void)
{
	List	   *databases = list_databases();
	ListCell   *lc;

	foreach(lc, databases)
	{
		BackgroundWorker worker;
		BackgroundWorkerHandle *handle;

		memset(&worker, 0, sizeof(worker));
		strlcpy(worker.bgw_name, "mot startup", BGW_MAXLEN);
		strlcpy(worker.bgw_type, "mot startup", BGW_MAXLEN);
		strlcpy(worker.bgw_library_name, "mot", BGW_MAXLEN);
		strlcpy(worker.bgw_function_name, "MotAnnounceMain", BGW_MAXLEN);
		worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
		worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
		worker.bgw_restart_time = BGW_NEVER_RESTART;
		worker.bgw_main_arg = ObjectIdGetDatum(lfirst_oid(lc));
		worker.bgw_notify_pid = MyProcPid;

		/*
		 * No free worker slot: the sessions that use the tables will report
		 * them.
		 */
		if (!RegisterDynamicBackgroundWorker(&worker, &handle))
			break;
		if (WaitForBackgroundWorkerShutdown(handle) == BGWH_POSTMASTER_DIED)
			proc_exit(1);
	}
	list_free(databases);
}

static List *
list_databases(void)
{
	List	   *databases = NIL;
	MemoryContext cxt = CurrentMemoryContext;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tup;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();

	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tup = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database db = (Form_pg_database) GETSTRUCT(tup);
		MemoryContext oldcxt;

		/* a negative limit other than -1: a database half dropped */
		if (!db->datallowconn || db->datconnlimit < -1)
			continue;
		oldcxt = MemoryContextSwitchTo(cxt);
		databases = lappend_oid(databases, db->oid);
		MemoryContextSwitchTo(oldcxt);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);

	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return databases;
}

void
MotAnnounceMain(Datum arg)
{
	Oid			dbid = DatumGetObjectId(arg);

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(dbid, InvalidOid, 0);
	announce_database(dbid);
	proc_exit(0);
}

/* Touch every memory-optimized table of this database. */
static void
announce_database(Oid dbid)
{
	List	   *tables = NIL;
	ListCell   *lc;
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tup;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());

	if (OidIsValid(MotServerOid(true)))
	{
		rel = table_open(ForeignTableRelationId, AccessShareLock);
		scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
		while (HeapTupleIsValid(tup = systable_getnext(scan)))
			tables = lappend_oid(tables, ((Form_pg_foreign_table) GETSTRUCT(tup))->ftrelid);
		systable_endscan(scan);
		table_close(rel, AccessShareLock);
	}

	foreach(lc, tables)
	{
		Oid			relid = lfirst_oid(lc);

		CHECK_FOR_INTERRUPTS();

		/* who holds it exclusively now has found it empty, or made it */
		if (!MotIsMotTable(relid) || !ConditionalLockRelationOid(relid, AccessShareLock))
			continue;
		rel = try_relation_open(relid, NoLock);
		if (rel != NULL)
		{
			(void) MotRelationGet(rel);
			relation_close(rel, NoLock);
		}
		UnlockRelationOid(relid, AccessShareLock);
	}

	PopActiveSnapshot();
	CommitTransactionCommand();
}
