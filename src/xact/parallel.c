/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  Parallel workers: they see what their leader sees.
 *
 * A worker is another process, with a session of its own.  The server gives it the
 * leader's snapshots, transaction and command; what goes with them here is the
 * query's engine snapshot, and whose changes are its own (mot_session_follow).
 * Uncommitted versions hang in their rows' chains, and who is in parallel mode neither
 * makes nor undoes any, and does not end before its workers have: so for as
 * long as there is a worker, the leader's changes stand still, and the leader holds the snapshot.
 * The worker publishes it as well, since what is unlinked meanwhile
 * waits for whoever is looking at it just now.
 *
 * They are told by a setting, which the server hands to workers with all others, each
 * parallel query those of its own: mot.leader_view is set while such a query runs
 * (a function that it calls may run another one, of another moment), and
 * nobody else can set it.
 *
 * Some of what a transaction sees is in its own memory only.  Then its queries go without workers,
 * whatever their plans say (the nodes that would start them know how to do all themselves):
 *
 *	- at SERIALIZABLE.  What is read there has to be validated at commit, and the worker,
 *	  who knows what it has read, is gone by then;
 *	- once it has changed rows at REPEATABLE READ whose locks are taken at commit
 *	  (mot_txn_defers);
 *	- once it has made, dropped or altered memory-optimized tables, as long as it is not over:
 *	  that their definition is not the stored one is known here only;
 *	- if its two snapshots are of different moments (snapshot.c).
 *
 * So do those that begin while a standby still waits for its tables, or before the transaction has
 * its snapshot for them: whoever comes to read some takes that after it has waited.  (A worker that
 * has waited for one is refused if its snapshot is of before it was loaded.)
 *
 * How many workers there are is decided in workers.c.
 *
 * A query that names no memory-optimized table may read some in functions of users.
 * What a worker has seen that is not durable yet it flushes itself, at the end of its transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat/calls.h"
#include "compat/compat.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "xact/held.h"
#include "xact/internal.h"
#include "xact/workers.h"

#define SETTING "mot.leader_view"

/*
 * "slot level snapshot", and what lies beyond that, if anything: "upto" and the numbers that
 * are left out.  Empty: the query reads no such tables.
 */
static char *setting = NULL;
static bool telling = false;

/* what the running parallel query's workers see; in a worker: what it does */
static MotTaken told = {MOT_TS_NONE, NULL};

static bool
check_setting(char **newval, void **extra, GucSource source)
{
	if (telling || InitializingParallelWorker || (*newval)[0] == '\0')
		return true;
	GUC_check_errdetail("It is how parallel workers are told what they are to see.");
	return false;
}

void
MotParallelInit(void)
{
	DefineCustomStringVariable(SETTING,
							   "Tells parallel workers what they see of memory-optimized tables.",
							   NULL,
							   &setting,
							   "",
							   PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NO_RESET_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   check_setting, NULL, NULL);
}

/* ----------------------------------------------------------------- leaders */

void
MotTakenWrite(StringInfo text, MotTaken taken)
{
	appendStringInfo(text, UINT64_FORMAT, taken.ts);
	if (taken.beyond == NULL)
		return;
	appendStringInfo(text, " " UINT64_FORMAT, taken.beyond->upto);
	for (unsigned i = 0; i < taken.beyond->n; i++)
		appendStringInfo(text, " " UINT64_FORMAT, taken.beyond->without[i]);
}

MotTaken
MotTakenRead(const char *text, MemoryContext cxt)
{
	char	   *at;
	MotTaken	taken = {strtou64(text, &at, 10), NULL};
	mot_beyond *beyond;
	mot_ts	   *without;

	if (*at == '\0')
		return taken;
	/* (each number takes two characters at least) */
	beyond = MemoryContextAlloc(cxt, sizeof(mot_beyond) + strlen(at) / 2 * sizeof(mot_ts));
	without = (mot_ts *) (beyond + 1);
	beyond->upto = strtou64(at, &at, 10);
	beyond->without = without;
	for (beyond->n = 0; *at != '\0'; beyond->n++)
		without[beyond->n] = strtou64(at, &at, 10);
	taken.beyond = beyond;
	return taken;
}

/* for as long as the level of settings lasts that has just begun */
static void
tell(MotTaken taken, int level)
{
	StringInfoData value;

	initStringInfo(&value);
	if (taken.ts != MOT_TS_NONE)
	{
		appendStringInfo(&value, "%u %d ", MotMySlot(), level);
		MotTakenWrite(&value, taken);
	}
	telling = true;
	PG_TRY();
	{
		(void) set_config_option(SETTING, value.data, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
	PG_FINALLY();
	{
		telling = false;
	}
	PG_END_TRY();
	pfree(value.data);
}

/* The query's plan is one with workers; "below" runs it. */
void
MotParallelRun(ExecutorRun_hook_type below, MOT_RUN_PARAMETERS)
{
	PlannedStmt *plan = query->plannedstmt;
	MotTaken	before = told;
	MotTaken	taken = {MOT_TS_NONE, NULL};
	bool		reads = MotPlanMayRead(plan);
	bool		leading;
	int			level;

	if (reads && !MotWorkersSeeAll())
	{
		query->plannedstmt = MemoryContextAlloc(query->estate->es_query_cxt, sizeof(PlannedStmt));
		memcpy(query->plannedstmt, plan, sizeof(PlannedStmt));
		query->plannedstmt->parallelModeNeeded = false;
		below(MOT_RUN_ARGUMENTS);
		query->plannedstmt = plan;
		return;
	}
	if (reads)
		taken = MotTakenFor(query->snapshot);
	else if (setting[0] == '\0')
	{
		leading = MotWorkersLead(NULL);
		below(MOT_RUN_ARGUMENTS);
		MotWorkersLed(leading);
		return;
	}
	level = NewGUCNestLevel();
	tell(taken, level);
	/* (after an error nobody asks before the next query of this kind) */
	told = taken;
	if (reads)
		MotHeldLead();
	leading = MotWorkersLead(MotPlanNamesOrdinary(plan) ? query->planstate : NULL);
	below(MOT_RUN_ARGUMENTS);
	MotWorkersLed(leading);
	told = before;
	AtEOXact_GUC(true, level);
}

mot_view
MotViewOfWorkers(Snapshot snapshot)
{
	if (told.ts == MOT_TS_NONE)
		elog(ERROR, "a parallel scan of a memory-optimized table has not been announced");
	return (mot_view)
	{
		told.ts, snapshot->curcid, told.beyond
	};
}

/* ----------------------------------------------------------------- workers */

/* Has this worker been told what it sees? */
bool
MotParallelFollows(void)
{
	return told.ts != MOT_TS_NONE;
}

/*
 * This worker is about to run the leader's query, with "snapshot", which is the one
 * that the leader has it run with.
 */
void
MotParallelFollow(Snapshot snapshot)
{
	char	   *at = setting;
	unsigned	slot;
	int			level;

	if (MotParallelFollows() || setting[0] == '\0')
		return;
	slot = strtoul(at, &at, 10);
	level = strtol(at, &at, 10);
	told = MotTakenRead(at, TopMemoryContext);
	mot_session_follow(MotSession(), slot, told.ts);
	MotWorkersEnter(level);
	MotHeldOpened(slot);
	MotSnapshotAdopt(snapshot, told);
}
