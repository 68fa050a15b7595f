/*-------------------------------------------------------------------------
 *
 * background.c
 *	  Commands in a background worker, as pg_cron runs them; only tests declare this.
 *
 *	mot_test_background(commands)
 *							one after the other in one transaction, and no block, of the
 *							same database; returns when the worker has ended, and what
 *							goes wrong is in the log.  They have 127 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat/calls.h"
#include "fmgr.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "mot.h"
#include "postmaster/bgworker.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

PGDLLEXPORT void MotTestBackgroundMain(Datum arg);

static void
run_command(RawStmt *command, const char *string)
{
	QueryCompletion completion;
	Portal		portal;
	List	   *plans;

	PushActiveSnapshot(GetTransactionSnapshot());
	plans = pg_plan_queries(pg_analyze_and_rewrite_fixedparams(command, string, NULL, 0, NULL), string, 0, NULL);
	PopActiveSnapshot();
	portal = CreatePortal("", true, true);
	portal->visible = false;
	PortalDefineQuery(portal, NULL, string, CreateCommandTag(command->stmt), plans, NULL);
	PortalStart(portal, NULL, 0, InvalidSnapshot);
	(void) MotRunPortal(portal, FETCH_ALL, None_Receiver, &completion);
	PortalDrop(portal, false);
	CommandCounterIncrement();
}

void
MotTestBackgroundMain(Datum arg)
{
	char		commands[BGW_EXTRALEN];
	ListCell   *lc;

	strlcpy(commands, MyBgworkerEntry->bgw_extra, sizeof(commands));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	StartTransactionCommand();
	foreach(lc, pg_parse_query(commands))
		run_command(lfirst_node(RawStmt, lc), commands);
	CommitTransactionCommand();
}

PG_FUNCTION_INFO_V1(mot_test_background);

Datum
mot_test_background(PG_FUNCTION_ARGS)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	MotDescribeWorker(&worker, "mot test", "MotTestBackgroundMain", BgWorkerStart_RecoveryFinished,
					  BGW_NEVER_RESTART);
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	strlcpy(worker.bgw_extra, text_to_cstring(PG_GETARG_TEXT_PP(0)), BGW_EXTRALEN);
	if (!RegisterDynamicBackgroundWorker(&worker, &handle) ||
		WaitForBackgroundWorkerShutdown(handle) != BGWH_STOPPED)
		elog(ERROR, "a background worker is not there, or does not end");
	PG_RETURN_VOID();
}
