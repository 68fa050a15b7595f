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
 * (A query whose plan names a foreign table asks when it starts.)  A query that
 * never asks costs an entry in a small array and nothing else.
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
#include "catalog/pg_class.h"
#include "engine/port.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/analyze.h"
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
 * How often a query's snapshot is renewed before half a commit is put up with.
 * One or two times do, except while a SERIALIZABLE transaction writes its
 * commit record; from some point on each time includes a short sleep.
 */
#define MAX_RENEWALS 100000

/*
 * Running queries and loose views, the youngest last.  The snapshot that the
 * executor was started with last is nearly always the one asked for.
 */
static Entry *running = NULL;
static int	nrunning = 0;
static int	maxrunning = 0;

/*
 * REPEATABLE READ and up: the transaction's snapshot.  It is stale if it
 * includes a commit that PostgreSQL's does not (see mixed.c).
 */
static mot_ts transaction_ts = MOT_TS_NONE;
static bool transaction_stale = false;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static post_parse_analyze_hook_type prev_post_parse_analyze = NULL;

static void executor_start(QueryDesc *query, int eflags);
static void executor_end(QueryDesc *query);
static void process_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
							ProcessUtilityContext context, ParamListInfo params,
							QueryEnvironment *query_env, DestReceiver *dest,
							QueryCompletion *qc);
static void post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jstate);
static inline void follow_transaction_snapshot(void);
static Entry *add_entry(const void *query, Snapshot snapshot);
static mot_ts stray_snapshot(mot_session *session);
static void remove_entry(int i);
static void publish_oldest(void);
static mot_ts take_snapshot(mot_session *session, Snapshot snapshot, bool *stale);
static void take_with_query(QueryDesc *query, Entry *entry);
static bool reads_foreign_table(const PlannedStmt *plan);
static void check_transaction_snapshot(void);

void
MotSnapshotInit(void)
{
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	prev_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = post_parse_analyze;
}

/* ---------------------------------------------------------------- queries */

static void
executor_start(QueryDesc *query, int eflags)
{
	/* before the plan's nodes are initialised: they may ask for the view */
	MotQueryBegins(query, eflags);
	if (prev_ExecutorStart)
		prev_ExecutorStart(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/* A parallel worker never has a view. */
void
MotQueryBegins(QueryDesc *query, int eflags)
{
	if (MotEngine != NULL && !IsParallelWorker())
	{
		if (IsolationUsesXactSnapshot())
			MotTransactionSnapshot();
		else
		{
			Entry	   *entry = add_entry(query, query->snapshot);

			if (entry->ts == MOT_TS_NONE && !(eflags & EXEC_FLAG_EXPLAIN_ONLY) &&
				reads_foreign_table(query->plannedstmt))
				take_with_query(query, entry);
		}
	}
}

static bool
reads_foreign_table(const PlannedStmt *plan)
{
	ListCell   *lc;

	foreach(lc, plan->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE)
			return true;
	}
	return false;
}

/*
 * A query that will read a memory-optimized table takes its engine snapshot
 * right away, so that it is as old as the query's PostgreSQL snapshot.  If
 * some transaction committed in between and only half of it would be seen,
 * the query gets a newer PostgreSQL snapshot.  (The server itself takes a new
 * one for execution, after planning.)  Not if the snapshot is not the query's
 * own: a STABLE function keeps what its caller sees.
 */
static void
take_with_query(QueryDesc *query, Entry *entry)
{
	mot_session *session = MotSession();
	bool		own = query->snapshot != NULL &&
	query->snapshot->snapshot_type == SNAPSHOT_MVCC &&
	query->snapshot->curcid == GetCurrentCommandId(false);
	unsigned	tries = 0;
	bool		stale;

	for (Entry *other = running; other < entry; other++)
		if (other->snapshot == query->snapshot)
			own = false;

	for (;;)
	{
		Snapshot	newer;

		entry->ts = take_snapshot(session, query->snapshot, &stale);
		if (!stale || !own || tries > MAX_RENEWALS)
			break;
		CHECK_FOR_INTERRUPTS();
		mot_backoff(&tries);

		newer = RegisterSnapshot(GetTransactionSnapshot());
		newer->curcid = query->snapshot->curcid;
		UnregisterSnapshot(query->snapshot);
		query->snapshot = newer;
		entry->snapshot = newer;
	}

	for (Entry *other = running; other < entry; other++)
		if (other->snapshot == entry->snapshot)
			other->ts = entry->ts;
}

static void
executor_end(QueryDesc *query)
{
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(query);
	else
		standard_ExecutorEnd(query);
	MotQueryEnds(query);
}

void
MotQueryEnds(QueryDesc *query)
{
	for (int i = nrunning - 1; i >= 0; i--)
	{
		if (running[i].query == query)
		{
			remove_entry(i);
			break;
		}
	}
}

/*
 * At REPEATABLE READ and up: if PostgreSQL has taken the transaction's
 * snapshot, take ours, so that few commits come in between.  Not in a failed
 * transaction, whose end we have been told of already.
 */
static inline void
follow_transaction_snapshot(void)
{
	if (IsolationUsesXactSnapshot() && FirstSnapshotSet && IsTransactionState() &&
		MotEngine != NULL && !IsParallelWorker())
		MotTransactionSnapshot();
}

/* Does the executor start and end with us, or are there other modules below? */
bool
MotExecutorIsOurs(void)
{
	return prev_ExecutorStart == NULL && prev_ExecutorEnd == NULL;
}

/* parse analysis is the first that has a snapshot */
static void
post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jstate)
{
	follow_transaction_snapshot();
	if (prev_post_parse_analyze)
		prev_post_parse_analyze(pstate, query, jstate);
}

static void
process_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *query_env, DestReceiver *dest, QueryCompletion *qc)
{
	follow_transaction_snapshot();

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
take_snapshot(mot_session *session, Snapshot snapshot, bool *stale)
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access memory-optimized tables in a parallel worker"),
				 errhint("Declare functions that use them PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
	MotBeforeSnapshot(snapshot);
	*stale = false;
	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC)
		return mot_snapshot_take(session);
	return MotMixedTake(session, snapshot, stale);
}

/* ------------------------------------------------------------------ views */

mot_view
MotViewFor(Snapshot snapshot)
{
	mot_session *session = MotSession();
	mot_view	view;
	mot_ts		ts;
	bool		found = false;
	bool		stale;

	if (IsolationUsesXactSnapshot())
	{
		MotTransactionSnapshot();
		check_transaction_snapshot();
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
	ts = take_snapshot(session, snapshot, &stale);
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
		check_transaction_snapshot();
		if (XactIsoLevel == XACT_SERIALIZABLE)
			MotTransactionBegin(session);
		entry->ts = transaction_ts;
	}
	else
	{
		bool		stale;

		entry->ts = take_snapshot(session, NULL, &stale);
	}

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
	bool		stale;
	mot_ts		ts = take_snapshot(session, NULL, &stale);
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
	transaction_ts = take_snapshot(MotSession(), GetTransactionSnapshot(), &transaction_stale);
}

/*
 * The transaction's PostgreSQL snapshot cannot be renewed.  But it is rare
 * that a commit falls between the two.
 */
static void
check_transaction_snapshot(void)
{
	if (unlikely(transaction_stale))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent commit"),
				 errdetail("A transaction that changed both heap and memory-optimized tables committed while the snapshot was taken."),
				 errhint("The transaction might succeed if retried.")));
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
	transaction_stale = false;
	if (held)
		mot_snapshot_hold(MotOpenSession, MOT_TS_NONE);
}
