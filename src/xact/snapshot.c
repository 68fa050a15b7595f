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
 * (A query whose plan names a foreign table asks when it starts; if it reads
 * heap tables as well, moment.c has both snapshots be of one moment.)  A query
 * that never asks costs an entry in a small array and nothing else.
 *
 * Queries end in any order (cursors), and some never reach ExecutorEnd: those
 * that an error ends.  A subtransaction that aborts therefore takes the
 * entries with it that were made in it.  An entry made outside can be dead as
 * well (a cursor opened before the savepoint that failed after it), and its
 * snapshot's memory may then be used for another snapshot, which must not be
 * mistaken for it: so after an aborted subtransaction the surviving entries
 * pin their snapshots.
 *
 * At REPEATABLE READ and SERIALIZABLE the transaction has one engine
 * snapshot, taken when its first query starts, or its first utility statement
 * that has a snapshot (COPY of a heap table, for one).  Foreign keys look at what
 * is there now, and check what they change by the transaction's snapshot: a
 * query with a crosscheck snapshot has an engine snapshot of its own.
 *
 * On a standby that still waits for all of its tables (MotTablesAwaited) the transaction's
 * is not taken: there is nothing to be read with it, and it would keep what
 * replay leaves in them, for as long as the transaction lasts.  It is taken later, if
 * the transaction comes to read them; PostgreSQL's is not renewed then if something may have been
 * read with it.  So it is where redo turns out to be damaged.
 *
 * Work that is no query (what ALTER TABLE does to rows, an index build,
 * ANALYZE) makes a loose entry.  It holds a lock that says what may change
 * meanwhile, and is about what is in the table now: at every level it sees
 * what has been committed by now, and never what the transaction's snapshot
 * shows of the past.  What others have committed since that was taken would
 * be undone by whoever stores the rows anew, and not be checked by whoever
 * checks them.
 *
 * What the session publishes is the oldest engine snapshot of all entries.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "compat/calls.h"
#include "compat/explain.h"
#include "miscadmin.h"
#include "parser/analyze.h"
#include "replication/walsender.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "xact/held.h"
#include "xact/internal.h"

typedef struct Entry
{
	const void *query;			/* the QueryDesc, or one of the tags below */
	Snapshot	snapshot;		/* NULL if there is no query */
	MotTaken	taken;			/* engine snapshot; ts MOT_TS_NONE: not taken */
	int			level;			/* transaction nesting level it belongs to */
	bool		pinned;			/* the snapshot is registered by us */
} Entry;

/*
 * Entries without a query: a loose view; and what callers of MotViewFor hold
 * who name a snapshot that no query runs with, until the transaction ends; and
 * the leader's in a parallel worker.
 */
static const char loose_tag,
			early_tag,
			stray_tag,
			leader_tag;

#define INITIAL_ENTRIES 16

/*
 * Running queries and loose views, the youngest last.  The snapshot that the
 * executor was started with last is nearly always the one asked for.
 */
static Entry *running = NULL;
static int	nrunning = 0;
static int	maxrunning = 0;

/*
 * REPEATABLE READ and up: the transaction's snapshot.  It is stale if it is not
 * of the moment of PostgreSQL's (see moment.c), and then the transaction may
 * read one kind of tables only.
 */
static MotTaken transaction_taken = {MOT_TS_NONE, NULL};
static bool transaction_stale = false;
static bool transaction_late = false;	/* queries have run before it was
										 * taken */
static bool serial_begun = false;	/* the engine has been told of it */
static bool stale_read_heap = false;
static bool stale_read_mot = false;
static bool transaction_decoded = false;	/* logical decoding's, or of its
											 * time */

bool		(*MotOrdinaryTable) (Oid relid) = NULL;
bool		(*MotTablesAwaited) (void) = NULL;
void		(*MotNodesMade) (QueryDesc *query) = NULL;
int			MotAlterTableDepth = 0;
bool		MotUtilityBelow = false;

/* the transaction's PostgreSQL snapshot is another transaction's (see export.c) */
bool		MotSnapshotImported = false;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static post_parse_analyze_hook_type prev_post_parse_analyze = NULL;

static inline void set_entry(Entry *entry, const void *query, Snapshot snapshot, MotTaken taken);
static Entry *add_entry(const void *query, Snapshot snapshot);
static MotTaken stray_snapshot(mot_session *session, Snapshot snapshot);
static inline mot_view as_view(MotTaken taken, uint32 command);
static void remove_entry(int i);
static pg_noinline void forget_beyond(int i);
static void publish_oldest(void);
static void before_snapshot(void);
static inline void refuse_worker(void);
static MotTaken take_snapshot(mot_session *session, Snapshot snapshot);
static void take_with_query(QueryDesc *query, Entry *entry, bool both);
static bool reads_foreign_table(const PlannedStmt *plan, bool *heap);
static void take_transaction_snapshot(Snapshot query_snapshot, bool to_read);
static void await_transaction_snapshot(Snapshot query_snapshot);
static void check_transaction_snapshot(bool heap, bool mot);
static void hold_early(void);

/* ---------------------------------------------------------------- queries */

static void
executor_start(QueryDesc *query, int eflags)
{
	/* before the plan's nodes are initialised: they may ask for the view */
	MotQueryBegins(query, eflags);
	prev_ExecutorStart(query, eflags);
	MotNodesMade(query);
	if (unlikely(IsolationUsesXactSnapshot()) && query->operation != CMD_UTILITY &&
		(query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE))
		MotLateWatch(query);
}

static void
executor_run(MOT_RUN_PARAMETERS)
{
	/* (a cursor's) */
	MotHeldCheck();
	if (unlikely(query->plannedstmt->parallelModeNeeded) && MotEngine != NULL && !IsParallelWorker())
		MotParallelRun(prev_ExecutorRun, MOT_RUN_ARGUMENTS);
	else
		prev_ExecutorRun(MOT_RUN_ARGUMENTS);
}

bool
MotPlanNamesOrdinary(const PlannedStmt *plan)
{
	foreach_node(RangeTblEntry, rte, plan->rtable)
	{
		if (rte->rtekind == RTE_RELATION && MotOrdinaryTable(rte->relid))
			return true;
	}
	return false;
}

void
MotQueryBegins(QueryDesc *query, int eflags)
{
	bool		heap;

	if (MotEngine == NULL)
		return;
	if (unlikely(IsParallelWorker()))
	{
		MotParallelFollow(query->snapshot);
		if (!MotParallelFollows())
			return;
	}
	if (IsolationUsesXactSnapshot())
	{
		if (unlikely(transaction_taken.ts == MOT_TS_NONE))
			take_transaction_snapshot(query->snapshot, false);
		else
		{
			MotHeldCheck();
			mot_session_move_on(MotSession());
		}
		if (unlikely(transaction_stale))
		{
			bool		foreign = reads_foreign_table(query->plannedstmt, &heap);

			if (heap && foreign)
				await_transaction_snapshot(query->snapshot);
			if (transaction_stale)
				check_transaction_snapshot(heap, foreign);
		}

		/* a foreign key's action or check: as things are now */
		if (unlikely(query->crosscheck_snapshot != InvalidSnapshot ||
					 (MotAlterTableDepth > 0 && MotPlanNamesOrdinary(query->plannedstmt))))
			add_entry(query, query->snapshot)->taken = take_snapshot(MotSession(), query->snapshot);
	}
	else
	{
		Entry	   *entry;

		MotHeldCheck();
		entry = add_entry(query, query->snapshot);
		if (entry->taken.ts == MOT_TS_NONE && !(eflags & EXEC_FLAG_EXPLAIN_ONLY) &&
			reads_foreign_table(query->plannedstmt, &heap))
			take_with_query(query, entry, heap);
	}
}

mot_view
MotQueryBeginsKnown(QueryDesc *query, bool others)
{
	uint32		command;
	MotTaken	taken;
	Entry	   *entry;

	if (unlikely(others || query->snapshot == NULL || IsolationUsesXactSnapshot()))
	{
		MotQueryBegins(query, 0);
		return MotViewFor(query->snapshot);
	}
	command = query->snapshot->curcid;
	if (likely(nrunning == 0 && maxrunning > 0))
	{
		/* there is no other whose snapshot this could be */
		taken = take_snapshot(MotSession(), query->snapshot);
		set_entry(&running[nrunning++], query, query->snapshot, taken);
		return as_view(taken, command);
	}
	MotHeldCheck();
	entry = add_entry(query, query->snapshot);
	if (likely(entry->taken.ts == MOT_TS_NONE))
		take_with_query(query, entry, false);
	return as_view(entry->taken, command);
}

bool
MotQueryBeginsBare(const void *query, uint32 command, mot_view *view)
{
	MotTaken	taken;

	if (unlikely(IsolationUsesXactSnapshot() || IsParallelWorker() || nrunning == maxrunning))
		return false;
	MotHeldCheck();
	if (unlikely(!MotMixedTakeNone(MotSession(), &taken)))
	{
		publish_oldest();
		return false;
	}
	set_entry(&running[nrunning++], query, NULL, taken);
	*view = as_view(taken, command);
	return true;
}

bool
MotReadsOthers(const PlannedStmt *plan)
{
	bool		heap;

	(void) reads_foreign_table(plan, &heap);
	return heap;
}

/*
 * *heap: it reads a table of another kind, too; or functions that users have
 * made may do so with its snapshot.
 */
static bool
reads_foreign_table(const PlannedStmt *plan, bool *heap)
{
	bool		foreign = false;

	*heap = false;
	foreach_node(RangeTblEntry, rte, plan->rtable)
	{
		/* (ON CONFLICT's "excluded" is a row of the table itself) */
		if (rte->rtekind != RTE_RELATION || rte->relkind == RELKIND_COMPOSITE_TYPE)
			continue;
		if (rte->relkind == RELKIND_FOREIGN_TABLE || MotOrdinaryTable(rte->relid))
			foreign = true;
		else
			*heap = true;
	}
	if (!foreign || *heap)
		return foreign;
	foreach_node(PlanInvalItem, item, plan->invalItems)
		if (item->cacheId == PROCOID)
		*heap = true;
	return foreign;
}

/* Does it read such tables, or call what users have made, which may read them? */
bool
MotPlanMayRead(const PlannedStmt *plan)
{
	bool		heap;

	if (reads_foreign_table(plan, &heap))
		return true;
	foreach_node(PlanInvalItem, item, plan->invalItems)
	{
		int			cache = item->cacheId;

		if (cache == PROCOID || cache == TYPEOID)
			return OidIsValid(get_table_am_oid(MOT_TABLE_AM_NAME, true));
	}
	return false;
}

/*
 * A query that will read both kinds of tables takes both snapshots when it
 * starts, so that they are of one moment.  Not if PostgreSQL's is not the
 * query's own: a STABLE function keeps what its caller sees.
 */
static void
take_with_query(QueryDesc *query, Entry *entry, bool both)
{
	mot_session *session = MotSession();
	bool		own = both && query->snapshot != NULL &&
	query->snapshot->snapshot_type == SNAPSHOT_MVCC &&
	query->snapshot->curcid == GetCurrentCommandId(false);

	for (Entry *other = running; other < entry; other++)
		if (other->snapshot == query->snapshot)
			own = false;

	if (own && !IsInParallelMode())
	{
		before_snapshot();
		entry->taken = MotMomentQuery(session, query->snapshot);
	}
	else
		entry->taken = take_snapshot(session, query->snapshot);

	for (Entry *other = running; other < entry; other++)
		if (other->snapshot == entry->snapshot)
			other->taken = entry->taken;
}

static void
executor_end(QueryDesc *query)
{
	MotExplainQueryEnds(query);
	prev_ExecutorEnd(query);
	MotQueryEnds(query);
}

void
MotQueryEnds(const void *query)
{
	for (int i = nrunning - 1; i >= 0; i--)
	{
		if (running[i].query == query)
		{
			remove_entry(i);
			break;
		}
	}
	/* (while the session is idle nothing leads from it any more) */
	if (unlikely(transaction_taken.ts != MOT_TS_NONE))
	{
		mot_session_move_on(MotOpenSession);
		if (unlikely(XactHasExportedSnapshots()))
			MotExportTell();
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
		MotEngine != NULL && !IsParallelWorker() && transaction_taken.ts == MOT_TS_NONE)
		take_transaction_snapshot(NULL, false);
}

/* Does the executor start and end with us, or are there other modules below? */
bool
MotExecutorIsOurs(void)
{
	return prev_ExecutorStart == standard_ExecutorStart && prev_ExecutorRun == standard_ExecutorRun &&
		prev_ExecutorEnd == standard_ExecutorEnd;
}

/* parse analysis is the first that has a snapshot */
static void
post_parse_analyze(ParseState *pstate, Query *query, MotJumbleState * jstate)
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
	const char *imported = NULL;

	follow_transaction_snapshot();
	if (IsA(pstmt->utilityStmt, VariableSetStmt) &&
		castNode(VariableSetStmt, pstmt->utilityStmt)->kind == VAR_SET_MULTI &&
		strcmp(castNode(VariableSetStmt, pstmt->utilityStmt)->name, "TRANSACTION SNAPSHOT") == 0)
	{
		imported = strVal(&linitial_node(A_Const, castNode(VariableSetStmt, pstmt->utilityStmt)->args)->val);
		MotSnapshotImported = true;
	}

	/*
	 * (COPY of a heap table; where redo is damaged ours has not been taken
	 * either)
	 */
	if (IsA(pstmt->utilityStmt, CopyStmt) && IsolationUsesXactSnapshot() && MotEngine != NULL &&
		(MotTablesAwaited() || transaction_taken.ts == MOT_TS_NONE))
		transaction_late = true;
	if (unlikely(transaction_stale) && IsA(pstmt->utilityStmt, CopyStmt))
		check_transaction_snapshot(true, false);

	prev_ProcessUtility(pstmt, query_string, read_only_tree, context, params, query_env, dest, qc);

	if (unlikely(am_walsender) && IsA(pstmt->utilityStmt, TransactionStmt))
		hold_early();
	if (unlikely(imported != NULL) && MotEngine != NULL && XactIsoLevel == XACT_REPEATABLE_READ)
	{
		transaction_taken = MotExportFind(imported);
		if (transaction_taken.ts == MOT_TS_NONE && XLogLogicalInfoActive() && !MotTablesAwaited() && MotDecodedImport(MotSession(), imported))
		{
			transaction_decoded = true;
			add_entry(&early_tag, NULL)->taken.ts = mot_snapshot_held(MotSession());
			MotTransactionSnapshot();
		}
	}
	/* (a function that DO has run) */
	if (unlikely(transaction_taken.ts != MOT_TS_NONE) && XactHasExportedSnapshots())
		MotExportTell();
}

/*
 * A walsender has begun a transaction, with whose snapshot a subscription's initial copy may
 * be made: see decoded.c.
 */
static void
hold_early(void)
{
	if (!XLogLogicalInfoActive() || MotEngine == NULL || XactIsoLevel != XACT_REPEATABLE_READ || !IsTransactionBlock() ||
		FirstSnapshotSet || nrunning > 0 || MotTablesAwaited())
		return;
	add_entry(&early_tag, NULL)->taken = MotMixedTake(MotSession(), NULL);
	transaction_decoded = true;
}

bool
MotSnapshotHeldEarly(void)
{
	return nrunning > 0 && running[0].query == &early_tag;
}

static inline mot_view
as_view(MotTaken taken, uint32 command)
{
	return (mot_view)
	{
		taken.ts, command, taken.beyond
	};
}

static inline void
set_entry(Entry *entry, const void *query, Snapshot snapshot, MotTaken taken)
{
	entry->query = query;
	entry->snapshot = snapshot;
	entry->taken = taken;
	entry->level = GetCurrentTransactionNestLevel();
	entry->pinned = false;
}

static Entry *
add_entry(const void *query, Snapshot snapshot)
{
	Entry	   *entry;
	MotTaken	taken = {MOT_TS_NONE, NULL};

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
				taken = running[i].taken;
				break;
			}

	entry = &running[nrunning++];
	set_entry(entry, query, snapshot, taken);
	return entry;
}

static void
remove_entry(int i)
{
	Snapshot	pinned = running[i].pinned ? running[i].snapshot : NULL;
	bool		had_ts = running[i].taken.ts != MOT_TS_NONE;

	if (unlikely(running[i].taken.beyond != NULL))
		forget_beyond(i);
	nrunning--;
	if (i < nrunning)
		memmove(&running[i], &running[i + 1], (nrunning - i) * sizeof(Entry));

	if (unlikely(pinned != NULL))
		UnregisterSnapshotFromOwner(pinned, TopTransactionResourceOwner);
	if (had_ts)
		publish_oldest();
}

/* Entry i goes; others may have the same. */
static pg_noinline void
forget_beyond(int i)
{
	for (int other = 0; other < nrunning; other++)
		if (other != i && running[other].taken.beyond == running[i].taken.beyond)
			return;
	MotForgetBeyond(&running[i].taken.beyond);
}

/* Publish the oldest snapshot that anything still needs. */
static void
publish_oldest(void)
{
	mot_ts		oldest = transaction_taken.ts;

	for (int i = 0; i < nrunning; i++)
		oldest = Min(oldest, running[i].taken.ts);	/* MOT_TS_NONE is the
													 * largest */
	mot_snapshot_hold(MotOpenSession, oldest);
}

static void
before_snapshot(void)
{
	refuse_worker();
	MotTheLog->before_snapshot();
}

static inline void
refuse_worker(void)
{
	if (unlikely(IsParallelWorker() && !MotParallelFollows()))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access memory-optimized tables in a parallel worker"),
				 errhint("Declare functions that use them PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

static MotTaken
take_snapshot(mot_session *session, Snapshot snapshot)
{
	refuse_worker();
	return MotMixedTake(session, likely(snapshot != NULL && snapshot->snapshot_type == SNAPSHOT_MVCC) ?
						snapshot : NULL);
}

/* ------------------------------------------------------------------ views */

mot_view
MotViewFor(Snapshot snapshot)
{
	return as_view(MotTakenFor(snapshot), snapshot != NULL ? snapshot->curcid : MOT_COMMAND_MAX);
}

MotTaken
MotTakenFor(Snapshot snapshot)
{
	mot_session *session = MotSession();
	MotTaken	taken;
	bool		found = false;

	if (IsolationUsesXactSnapshot())
	{
		MotTransactionSnapshot();
		if (unlikely(transaction_stale))
			check_transaction_snapshot(false, true);
		if (XactIsoLevel == XACT_SERIALIZABLE)
			MotTransactionBegin(session);
		for (int i = nrunning - 1; i >= 0; i--)
			if (unlikely(running[i].snapshot == snapshot && snapshot != NULL && running[i].taken.ts != MOT_TS_NONE))
				return running[i].taken;
		return transaction_taken;
	}

	for (int i = nrunning - 1; i >= 0; i--)
	{
		if (running[i].snapshot != snapshot || snapshot == NULL)
			continue;
		if (running[i].taken.ts != MOT_TS_NONE)
			return running[i].taken;
		found = true;
	}

	/* Nobody asked before, or it is not a query's snapshot at all. */
	if (!found)
		return stray_snapshot(session, snapshot);
	taken = take_snapshot(session, snapshot);
	for (int i = 0; i < nrunning; i++)
		if (running[i].snapshot == snapshot)
			running[i].taken = taken;
	return taken;
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

/* (at READ COMMITTED) */
bool
MotQueryRuns(void)
{
	for (int i = 0; i < nrunning; i++)
		if (running[i].snapshot != NULL)
			return true;
	return false;
}

/* For a query's own snapshot there is MotViewFor; this is for others, at every level. */
mot_view
MotViewOfNow(Snapshot snapshot)
{
	return as_view(stray_snapshot(MotSession(), snapshot), snapshot->curcid);
}

mot_view
MotLooseView(void)
{
	mot_session *session = MotSession();
	Entry	   *entry = add_entry(&loose_tag, NULL);

	entry->taken = take_snapshot(session, NULL);
	return as_view(entry->taken, MOT_COMMAND_MAX);
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
 * share one entry, which keeps the oldest.  (One that leaves somebody out is older
 * than its moment.)
 */
static MotTaken
stray_snapshot(mot_session *session, Snapshot snapshot)
{
	MotTaken	taken = take_snapshot(session, snapshot);
	Entry	   *entry;

	for (int i = 0; i < nrunning; i++)
		if (running[i].query == &stray_tag)
		{
			const mot_beyond *before = running[i].taken.beyond;

			/* (each row may have it asked for) */
			if (taken.beyond != NULL && before != NULL && before->upto == taken.beyond->upto &&
				before->n == taken.beyond->n &&
				memcmp(before->without, taken.beyond->without, before->n * sizeof(mot_ts)) == 0)
			{
				MotForgetBeyond(&taken.beyond);
				taken.beyond = before;
			}
			running[i].taken.ts = Min(running[i].taken.ts, taken.ts);
			running[i].taken.beyond = taken.beyond;
			return taken;
		}

	entry = add_entry(&stray_tag, NULL);
	entry->taken = taken;
	entry->level = 1;
	return taken;
}

void
MotTransactionSnapshot(void)
{
	if (likely(transaction_taken.ts != MOT_TS_NONE) || !IsolationUsesXactSnapshot())
		return;
	take_transaction_snapshot(NULL, true);
}

/*
 * query_snapshot: of the query that is the transaction's first, or NULL.  to_read: one of our tables
 * is to be read with it.  Else a standby that has met damaged redo goes on without.
 */
static void
take_transaction_snapshot(Snapshot query_snapshot, bool to_read)
{
	mot_session *session = MotSession();

	if (unlikely(MotTablesAwaited()))
	{
		/* else parse analysis, or a utility statement */
		if (query_snapshot != NULL)
			transaction_late = true;
		return;
	}
	if (XactIsoLevel == XACT_SERIALIZABLE)
		MotFairBegin();
	(void) GetTransactionSnapshot();
	if (!to_read && !MotTheLog->try_snapshot())
	{
		transaction_late |= query_snapshot != NULL;
		return;
	}
	before_snapshot();
	if (XactIsoLevel == XACT_SERIALIZABLE)
	{
		serial_begun = true;
		mot_serial_begin(session);
	}
	transaction_stale = !MotMomentTransaction(session, query_snapshot, transaction_late, &transaction_taken) &&
		(!MotSnapshotImported || XactIsoLevel == XACT_SERIALIZABLE || transaction_decoded);
	stale_read_heap |= transaction_late || (transaction_stale && transaction_decoded);
	if (serial_begun)
		mot_serial_begun(session, transaction_taken.ts);
}

/* Nothing has been read so far: who waits for a standby can be waited for. */
static void
await_transaction_snapshot(Snapshot query_snapshot)
{
	while (transaction_stale && !stale_read_heap && !stale_read_mot &&
		   TransactionIdIsValid(MotMixedAwaited()))
	{
		mot_serial_end(MotOpenSession);
		transaction_taken.ts = MOT_TS_NONE;
		publish_oldest();
		XactLockTableWait(MotMixedAwaited(), NULL, NULL, XLTW_None);
		take_transaction_snapshot(query_snapshot, true);
	}
}

/*
 * The transaction's two snapshots are of different moments, and one of
 * PostgreSQL's that others know of, or that is known to be safe, cannot be
 * renewed.
 */
static void
check_transaction_snapshot(bool heap, bool mot)
{
	stale_read_heap |= heap;
	stale_read_mot |= mot;
	if (stale_read_heap && stale_read_mot)
	{
		mot_count_event(MotSession(), MOT_EVENT_SNAPSHOT);
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent commit"),
				 errdetail("A transaction committed while the snapshots of heap and memory-optimized tables were taken."),
				 MotSnapshotImported && transaction_decoded ?
				 errhint("Import the snapshot sooner after the slot has been created.") :
				 MotSnapshotImported ?
				 errhint("An imported snapshot is one of heap tables; use REPEATABLE READ, or read one kind of tables only.") :
				 errhint("The transaction might succeed if retried.")));
	}
}

bool
MotSnapshotStale(void)
{
	return transaction_stale;
}

/* In a worker: what it is told goes with this snapshot, until its end; or with the transaction. */
void
MotSnapshotAdopt(Snapshot snapshot, MotTaken taken)
{
	Entry	   *entry;

	if (IsolationUsesXactSnapshot())
	{
		transaction_taken = taken;
		return;
	}
	entry = add_entry(&leader_tag, snapshot);
	entry->taken = taken;
	entry->level = 1;
}

MotTaken
MotTransactionTaken(void)
{
	return transaction_taken;
}

/* (none has been taken yet: it will have all there is) */
bool
MotTransactionMisses(mot_ts ts)
{
	mot_view	view = as_view(transaction_taken, 0);

	return IsolationUsesXactSnapshot() && !mot_view_sees(&view, ts);
}

bool
MotTransactionView(mot_view *view)
{
	*view = as_view(transaction_taken, MOT_COMMAND_MAX);
	return IsolationUsesXactSnapshot() && transaction_taken.ts != MOT_TS_NONE;
}

mot_ts
MotTransactionSnapshotTs(void)
{
	if (unlikely(transaction_late))
	{
		MotTransactionSnapshot();
		if (transaction_stale)
			return 0;
	}

	/*
	 * a worker's query, whose snapshot the leader has taken, may have had to
	 * wait
	 */
	if (unlikely(IsParallelWorker() && MotParallelFollows() && MotOpenSession != NULL))
		return mot_snapshot_held(MotOpenSession);
	return transaction_taken.ts;
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
	bool		held = transaction_taken.ts != MOT_TS_NONE;

	if (unlikely(held))
		MotExportForget();
	for (int i = 0; i < nrunning; i++)
	{
		if (commit && running[i].pinned)
			UnregisterSnapshotFromOwner(running[i].snapshot, TopTransactionResourceOwner);
		if (running[i].taken.ts != MOT_TS_NONE)
			held = true;
	}
	nrunning = 0;
	transaction_taken = (MotTaken)
	{
		MOT_TS_NONE, NULL
	};
	transaction_stale = transaction_late = stale_read_heap = stale_read_mot = false;
	MotSnapshotImported = transaction_decoded = false;
	if (serial_begun)
		mot_serial_end(MotOpenSession);
	serial_begun = false;
	if (held)
		mot_snapshot_hold(MotOpenSession, MOT_TS_NONE);
}

void
MotSnapshotInit(void)
{
	prev_ExecutorStart = ExecutorStart_hook ? ExecutorStart_hook : standard_ExecutorStart;
	ExecutorStart_hook = executor_start;
	prev_ExecutorRun = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = executor_run;
	prev_ExecutorEnd = ExecutorEnd_hook ? ExecutorEnd_hook : standard_ExecutorEnd;
	ExecutorEnd_hook = executor_end;
	MotUtilityBelow = ProcessUtility_hook != NULL;
	prev_ProcessUtility = MotUtilityBelow ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = process_utility;
	prev_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = post_parse_analyze;
}
