/*-------------------------------------------------------------------------
 *
 * snapshot.c
 *	  What a statement sees: PostgreSQL's snapshots and the engine's.
 *
 * At READ COMMITTED, whoever runs with one PostgreSQL snapshot has to see one
 * state of the engine: all scans of a statement, and the queries of the
 * STABLE functions that it calls, which the server runs with the statement's
 * own snapshot.  So this file knows which queries are running (between
 * ExecutorStart and ExecutorEnd) and with which snapshot; the first scan that
 * asks has an engine snapshot taken, and every query with the same PostgreSQL
 * snapshot has it from then on.  It is let go of when the last of them ends.
 * A query that never asks costs an entry in a small array and nothing else.
 *
 * Queries end in any order (cursors), and some never reach ExecutorEnd: those
 * that an error ends.  A subtransaction that aborts therefore takes the
 * entries with it that were made in it.  An entry made outside can be dead as
 * well (a cursor opened before the savepoint that failed after it), and its
 * snapshot's memory may then be used for another snapshot, which must not be
 * mistaken for it: so after an aborted subtransaction the surviving entries
 * pin their snapshots.
 *
 * Work that runs outside the executor (COPY, ANALYZE, an index build) makes a
 * loose entry.
 *
 * At REPEATABLE READ and SERIALIZABLE the transaction has one engine
 * snapshot, taken when its first query starts, or its first utility statement
 * that has a snapshot (COPY of a heap table, for one).
 *
 * What the session publishes is the oldest engine snapshot of all entries.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "xact/internal.h"

typedef struct Entry
{
	const void *query;			/* the QueryDesc, or one of the tags below */
	Snapshot	snapshot;		/* NULL if there is no query */
	mot_ts		ts;				/* engine snapshot; MOT_TS_NONE: not taken */
	int			level;			/* transaction nesting level it belongs to */
	bool		pinned;			/* the snapshot is registered by us */
} Entry;

/*
 * Entries without a query: a loose view; and what callers of MotViewFor hold
 * who name a snapshot that no query runs with, until the transaction ends.
 */
static const char loose_tag,
			stray_tag;

#define INITIAL_ENTRIES 16

/*
 * Running queries and loose views, the youngest last.  The snapshot that the
 * executor was started with last is nearly always the one asked for.
 */
static Entry *running = NULL;
static int	nrunning = 0;
static int	maxrunning = 0;

/* REPEATABLE READ and up: the transaction's snapshot */
static mot_ts transaction_ts = MOT_TS_NONE;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

static void executor_start(QueryDesc *query, int eflags);
static void executor_end(QueryDesc *query);
static void process_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
							ProcessUtilityContext context, ParamListInfo params,
							QueryEnvironment *query_env, DestReceiver *dest,
							QueryCompletion *qc);
static Entry *add_entry(const void *query, Snapshot snapshot);
static mot_ts stray_snapshot(mot_session *session);
static void remove_entry(int i);
static void publish_oldest(void);
static mot_ts take_snapshot(mot_session *session);

void
MotSnapshotInit(void)
{
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}

/* ---------------------------------------------------------------- queries */

static void
executor_start(QueryDesc *query, int eflags)
{
	/*
	 * Before the plan's nodes are initialised: they may ask for the view. A
	 * parallel worker never has one.
	 */
	if (MotEngine != NULL && !IsParallelWorker())
	{
		if (IsolationUsesXactSnapshot())
			MotTransactionSnapshot();
		else
			(void) add_entry(query, query->snapshot);
	}

	if (prev_ExecutorStart)
		prev_ExecutorStart(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

static void
executor_end(QueryDesc *query)
{
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(query);
	else
		standard_ExecutorEnd(query);

	for (int i = nrunning - 1; i >= 0; i--)
	{
		if (running[i].query == query)
		{
			remove_entry(i);
			break;
		}
	}
}

static void
process_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *query_env, DestReceiver *dest, QueryCompletion *qc)
{
	/* not in a failed transaction, whose end we have been told of already */
	if (IsolationUsesXactSnapshot() && FirstSnapshotSet && IsTransactionState() &&
		MotEngine != NULL && !IsParallelWorker())
		MotTransactionSnapshot();

	if (prev_ProcessUtility)
		prev_ProcessUtility(pstmt, query_string, read_only_tree, context, params,
							query_env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query_string, read_only_tree, context, params,
								query_env, dest, qc);
}

static Entry *
add_entry(const void *query, Snapshot snapshot)
{
	Entry	   *entry;
	mot_ts		ts = MOT_TS_NONE;

	if (unlikely(nrunning == maxrunning))
	{
		int			newmax = maxrunning == 0 ? INITIAL_ENTRIES : 2 * maxrunning;
		Size		size = newmax * sizeof(Entry);

		if (running == NULL)
			running = MemoryContextAlloc(TopMemoryContext, size);
		else
			running = repalloc(running, size);
		maxrunning = newmax;
	}

	/* a query that joins a snapshot in use sees what it has seen */
	if (snapshot != NULL)
		for (int i = nrunning - 1; i >= 0; i--)
			if (running[i].snapshot == snapshot)
			{
				ts = running[i].ts;
				break;
			}

	entry = &running[nrunning++];
	entry->query = query;
	entry->snapshot = snapshot;
	entry->ts = ts;
	entry->level = GetCurrentTransactionNestLevel();
	entry->pinned = false;
	return entry;
}

static void
remove_entry(int i)
{
	Entry		gone = running[i];

	nrunning--;
	if (i < nrunning)
		memmove(&running[i], &running[i + 1], (nrunning - i) * sizeof(Entry));

	if (gone.pinned)
		UnregisterSnapshotFromOwner(gone.snapshot, TopTransactionResourceOwner);
	if (gone.ts != MOT_TS_NONE)
		publish_oldest();
}

/* Publish the oldest snapshot that anything still needs. */
static void
publish_oldest(void)
{
	mot_ts		oldest = transaction_ts;

	for (int i = 0; i < nrunning; i++)
		oldest = Min(oldest, running[i].ts);	/* MOT_TS_NONE is the largest */
	mot_snapshot_hold(MotOpenSession, oldest);
}

static mot_ts
take_snapshot(mot_session *session)
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access memory-optimized tables in a parallel worker"),
				 errhint("Declare functions that use them PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
	return mot_snapshot_take(session);
}

/* ------------------------------------------------------------------ views */

mot_view
MotViewFor(Snapshot snapshot)
{
	mot_session *session = MotSession();
	mot_view	view;
	mot_ts		ts;
	bool		found = false;

	if (IsolationUsesXactSnapshot())
	{
		MotTransactionSnapshot();
		if (XactIsoLevel == XACT_SERIALIZABLE)
			MotTransactionBegin(session);
		view.snapshot = transaction_ts;
		view.command = snapshot != NULL ? snapshot->curcid : MOT_COMMAND_MAX;
		return view;
	}

	view.command = snapshot != NULL ? snapshot->curcid : MOT_COMMAND_MAX;
	for (int i = nrunning - 1; i >= 0; i--)
	{
		if (running[i].snapshot != snapshot || snapshot == NULL)
			continue;
		if (running[i].ts != MOT_TS_NONE)
		{
			view.snapshot = running[i].ts;
			return view;
		}
		found = true;
	}

	/* Nobody asked before, or it is not a query's snapshot at all. */
	if (!found)
	{
		view.snapshot = stray_snapshot(session);
		return view;
	}
	ts = take_snapshot(session);
	for (int i = 0; i < nrunning; i++)
		if (running[i].snapshot == snapshot)
			running[i].ts = ts;
	view.snapshot = ts;
	return view;
}

bool
MotSnapshotRunning(Snapshot snapshot)
{
	if (snapshot == NULL)
		return false;
	if (IsolationUsesXactSnapshot())
		return true;
	for (int i = nrunning - 1; i >= 0; i--)
		if (running[i].snapshot == snapshot)
			return true;
	return false;
}

mot_view
MotLooseView(void)
{
	mot_session *session = MotSession();
	mot_view	view;
	Entry	   *entry;

	entry = add_entry(&loose_tag, NULL);
	if (IsolationUsesXactSnapshot())
	{
		MotTransactionSnapshot();
		if (XactIsoLevel == XACT_SERIALIZABLE)
			MotTransactionBegin(session);
		entry->ts = transaction_ts;
	}
	else
		entry->ts = take_snapshot(session);

	view.snapshot = entry->ts;
	view.command = MOT_COMMAND_MAX;
	return view;
}

void
MotLooseViewRelease(void)
{
	for (int i = nrunning - 1; i >= 0; i--)
		if (running[i].query == &loose_tag)
		{
			remove_entry(i);
			break;
		}
}

/*
 * A snapshot of now for somebody whose end we will not hear of.  All of them
 * share one entry, which keeps the oldest.
 */
static mot_ts
stray_snapshot(mot_session *session)
{
	mot_ts		ts = take_snapshot(session);
	Entry	   *entry;

	for (int i = 0; i < nrunning; i++)
		if (running[i].query == &stray_tag)
			return ts;

	entry = add_entry(&stray_tag, NULL);
	entry->ts = ts;
	entry->level = 1;
	return ts;
}

void
MotTransactionSnapshot(void)
{
	if (likely(transaction_ts != MOT_TS_NONE) || !IsolationUsesXactSnapshot())
		return;
	transaction_ts = take_snapshot(MotSession());
}

mot_ts
MotTransactionSnapshotTs(void)
{
	return transaction_ts;
}

/* -------------------------------------------------------- (sub)transaction */

/* What was begun in the subtransaction is the parent's now. */
void
MotSnapshotSubCommit(int level)
{
	for (int i = nrunning - 1; i >= 0; i--)
		if (running[i].level >= level)
			running[i].level = level - 1;
}

/*
 * The queries that were begun in the subtransaction are gone.  Among the
 * others may be one that failed in it and will never reach ExecutorEnd; its
 * snapshot still exists now, and goes on existing once we have registered it.
 */
void
MotSnapshotSubAbort(int level)
{
	for (int i = nrunning - 1; i >= 0; i--)
		if (running[i].level >= level)
			remove_entry(i);

	for (int i = 0; i < nrunning; i++)
		if (running[i].snapshot != NULL && !running[i].pinned)
		{
			(void) RegisterSnapshotOnOwner(running[i].snapshot, TopTransactionResourceOwner);
			running[i].pinned = true;
		}
}

/*
 * The top-level transaction ends.  At commit we have to give our pins back;
 * an abort has the resource owner do it.
 */
void
MotSnapshotEndXact(bool commit)
{
	bool		held = transaction_ts != MOT_TS_NONE;

	for (int i = 0; i < nrunning; i++)
	{
		if (commit && running[i].pinned)
			UnregisterSnapshotFromOwner(running[i].snapshot, TopTransactionResourceOwner);
		if (running[i].ts != MOT_TS_NONE)
			held = true;
	}
	nrunning = 0;
	transaction_ts = MOT_TS_NONE;
	if (held)
		mot_snapshot_hold(MotOpenSession, MOT_TS_NONE);
}
