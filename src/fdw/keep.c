/*-------------------------------------------------------------------------
 *
 * keep.c
 *	  Executor states are kept for the next execution of their plan.
 *
 * To find one row in memory takes less time than the executor needs to set up
 * and take down the tree of nodes that asks for it.  Plans that are executed
 * again and again (prepared statements, statements of functions) need not pay
 * that each time: at ExecutorEnd the tree is put aside instead of being taken
 * down, and the next ExecutorStart with the same plan dresses it up for the
 * new snapshot, parameters and command, and has it start over, as the
 * inner side of a nested loop does (ExecReScan).
 *
 * What the tree may hold while it is parked: its own memory, and pointers into
 * the plan.  What it must not: open relations, references to tuple
 * descriptors, snapshots, rows.  All that is let go of and taken again.
 *
 * How do we know that a plan is the same?  Its address says nothing, for plans
 * are freed.  So each of our nodes carries a serial number, drawn when it was
 * planned, and the plan's nodes must be the very ones that the tree's states
 * point to.  A tree is thrown away when one of its tables changes (relcache
 * invalidation), any function does, another user comes, or it has been used a
 * number of times or has grown (no node is perfect, and other modules
 * allocate in the query's memory), and when the plan is freed: a callback on
 * the plan's memory says so.  Throwing away looks at nothing in it.
 *
 * Only what starts over well is kept: scans of ours, nested loops of them,
 * LIMIT, plain aggregates, INSERT of VALUES, and direct UPDATE and DELETE,
 * without sub-plans, row marks, triggers, EXPLAIN, instrumentation, cursors
 * that go backwards.  The server's own checks stay: privileges are checked
 * each time.  And nothing is kept while a module that we do not know hooks the
 * executor: it may wait for the query's memory to go.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/trigger.h"
#include "compat/modules.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef enum KeptState
{
	KEPT_NOTHING,				/* counting executions */
	KEPT_PARKED,
	KEPT_RUNNING,
	KEPT_UNFIT					/* this plan is not to be kept */
} KeptState;

typedef struct Kept
{
	const PlannedStmt *plan;	/* hash key */
	int			serial;
	KeptState	state;
	int			seen;			/* executions before it is kept */
	int			uses;			/* executions since */
	uint64		asked;			/* all of them, and of those that are not */
	MotPlanUse	use;
	bool		stale;			/* not to be used again */
	bool		told;			/* plan_gone will be called */
	bool		gone;			/* the plan has been freed */
	Oid			userid;
	int			level;			/* running: transaction nesting level */
	QueryDesc  *query;			/* running */
	MemoryContext cxt;			/* the tree's */
	EState	   *estate;
	PlanState  *root;
	TupleDesc	desc;
	int			nrelations;
	Relation   *relations;		/* as es_relations was; only to compare: they
								 * may be gone */
	Oid		   *relids;
	int			nslots;			/* when the next was made */
	List	   *pinned;			/* TupleDescs of slots that are counted */
	List	   *scans;			/* ForeignScanStates */
	ModifyTableState *modify;	/* or NULL */
} Kept;

/* mot.keep_executor_after: executions of a plan before its tree is kept; -1: never */
static int	keep_after = 3;

#define MAX_KEPT 256			/* plans known at a time */
#define GO_AT_ONCE (MAX_KEPT / 16)	/* if there are more */
#define MAX_USES 10000
#define MAX_BYTES (1024 * 1024)

static HTAB *kept_plans = NULL;
static MemoryContext kept_cxt = NULL;
static int	nrunning = 0;
static int	next_serial = 1;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;

static void keep_start(QueryDesc *query, int eflags);
static void keep_end(QueryDesc *query);
static int	find_serial(const PlannedStmt *stmt);
static bool plan_is_fit(const PlannedStmt *stmt);
static Kept *lookup(const PlannedStmt *stmt, int serial);
static void start_kept(Kept *kept, QueryDesc *query, int eflags);
static bool start_again(Kept *kept, QueryDesc *query, int eflags);
static void park(Kept *kept);
static void discard(Kept *kept);
static void forget(Kept *kept);
static MotPlanUse *use_of(void *entry, uint64 *total);
static void forget_entry(void *entry);
static void plan_gone(const PlannedStmt *plan);
static void xact_end(XactEvent event, void *arg);
static void subxact_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg);
static void relcache_changed(Datum arg, Oid relid);
static void function_changed(Datum arg, int cacheid, uint32 hash);

void
MotKeepInit(void)
{
	DefineCustomIntVariable("mot.keep_executor_after",
							"Executions of a plan after which its executor state is kept for the next ones.",
							"-1 never keeps any.",
							&keep_after, 3, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);

	/* a module below us would not be told of an execution that starts here */
	if (!MotExecutorIsOurs())
		return;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = keep_start;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = keep_end;
	RegisterXactCallback(xact_end, NULL);
	RegisterSubXactCallback(subxact_end, NULL);
}

int
MotPlanSerial(void)
{
	next_serial = next_serial == INT_MAX ? 1 : next_serial + 1;
	return next_serial;
}

/* ------------------------------------------------------------------ plans */

static inline int
scan_serial(const ForeignScan *scan)
{
	return list_length(scan->fdw_private) > MOT_PLAN_SERIAL ?
		list_nth_int(scan->fdw_private, MOT_PLAN_SERIAL) : 0;
}

/* The serial of some node of ours, or 0; it need not be the right one for a plan that is not fit. */
static int
find_serial(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	while (plan != NULL && !IsA(plan, ForeignScan))
	{
		if (IsA(plan, ModifyTable))
		{
			const ModifyTable *mt = (const ModifyTable *) plan;

			if (mt->operation == CMD_INSERT)
			{
				List	   *private = mt->fdwPrivLists != NIL ? linitial(mt->fdwPrivLists) : NIL;

				return private != NIL && IsA(private, IntList) && list_length(private) == 2 ?
					list_nth_int(private, MOT_MODIFY_SERIAL) : 0;
			}
		}
		plan = outerPlan(plan);
	}
	return plan != NULL && ((const ForeignScan *) plan)->fdw_private != NIL &&
		IsA(((const ForeignScan *) plan)->fdw_private, IntList) ?
		scan_serial((const ForeignScan *) plan) : 0;
}

static bool
is_sql_function(Oid funcid, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	bool		sql = !HeapTupleIsValid(tuple) ||
	((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return sql;
}

/*
 * A function in SQL has plans of its own, good for one statement: nobody tells
 * it when tables change that only it uses.
 */
static bool
calls_sql(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_sql_function, NULL))
		return true;
	return expression_tree_walker(node, calls_sql, context);
}

static bool
node_calls_sql(const Plan *plan)
{
	if (calls_sql((Node *) plan->targetlist, NULL) || calls_sql((Node *) plan->qual, NULL))
		return true;
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			return calls_sql((Node *) ((const ForeignScan *) plan)->fdw_exprs, NULL);
		case T_NestLoop:
			return calls_sql((Node *) ((const NestLoop *) plan)->join.joinqual, NULL);
		case T_Limit:
			return calls_sql(((const Limit *) plan)->limitCount, NULL) ||
				calls_sql(((const Limit *) plan)->limitOffset, NULL);
		case T_Result:
			return calls_sql(((const Result *) plan)->resconstantqual, NULL);
		default:
			return false;
	}
}

static bool
node_is_fit(const Plan *plan)
{
	if (plan == NULL)
		return true;
	if (plan->initPlan != NIL || node_calls_sql(plan))
		return false;
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			return ((const ForeignScan *) plan)->scan.scanrelid > 0 && outerPlan(plan) == NULL;
		case T_NestLoop:
			return node_is_fit(outerPlan(plan)) && node_is_fit(innerPlan(plan));
		case T_Agg:
			return ((const Agg *) plan)->aggstrategy == AGG_PLAIN && node_is_fit(outerPlan(plan));
		case T_Limit:
		case T_Result:
			return node_is_fit(outerPlan(plan));
		default:
			return false;
	}
}

static bool
plan_is_fit(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;
	ListCell   *lc;

	if (stmt->subplans != NIL || stmt->rowMarks != NIL || stmt->hasModifyingCTE ||
		stmt->parallelModeNeeded || stmt->utilityStmt != NULL || (stmt->jitFlags & PGJIT_PERFORM))
		return false;
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RESULT || rte->rtekind == RTE_JOIN)
			continue;
		if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_FOREIGN_TABLE ||
			!MotIsMotTable(rte->relid))
			return false;
	}
	if (IsA(plan, ModifyTable))
	{
		const ModifyTable *mt = (const ModifyTable *) plan;
		const Plan *child = outerPlan(plan);

		if (list_length(mt->resultRelations) != 1 || mt->rootRelation != 0 || plan->initPlan != NIL ||
			mt->onConflictAction != ONCONFLICT_NONE || mt->withCheckOptionLists != NIL ||
			calls_sql((Node *) mt->returningLists, NULL))
			return false;
		switch (mt->operation)
		{
			case CMD_INSERT:
				return IsA(child, Result) && node_is_fit(child);
			case CMD_UPDATE:
			case CMD_DELETE:
				return !bms_is_empty(mt->fdwDirectModifyPlans) && IsA(child, ForeignScan) &&
					node_is_fit(child);
			default:
				return false;
		}
	}
	return stmt->commandType == CMD_SELECT && node_is_fit(plan);
}

/* Are the tree's states those of the plan's very nodes? */
static bool
same_nodes(const PlanState *state, const Plan *plan)
{
	if (state == NULL || plan == NULL)
		return state == NULL && plan == NULL;
	return state->plan == plan &&
		same_nodes(outerPlanState(state), outerPlan(plan)) &&
		same_nodes(innerPlanState(state), innerPlan(plan));
}

static Kept *
lookup(const PlannedStmt *stmt, int serial)
{
	Kept	   *kept;
	bool		found;

	if (kept_plans == NULL)
	{
		HASHCTL		ctl;

		kept_cxt = AllocSetContextCreate(TopMemoryContext, "MOT executor states",
										 ALLOCSET_DEFAULT_SIZES);
		ctl.keysize = sizeof(PlannedStmt *);
		ctl.entrysize = sizeof(Kept);
		ctl.hcxt = kept_cxt;
		kept_plans = hash_create("MOT executor states", MAX_KEPT, &ctl,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		MotWatchPlans(relcache_changed, function_changed);
	}

	kept = hash_search(kept_plans, &stmt, HASH_FIND, NULL);
	if (kept != NULL && kept->serial != serial && kept->state != KEPT_RUNNING)
	{
		/* another plan where one was */
		discard(kept);
		kept->serial = serial;
		kept->state = KEPT_NOTHING;
		kept->seen = 0;
	}
	if (kept != NULL)
	{
		kept->asked++;
		return kept->serial == serial ? kept : NULL;
	}

	if (hash_get_num_entries(kept_plans) >= MAX_KEPT)
		MotPlanMakeRoom(kept_plans, GO_AT_ONCE, use_of, forget_entry);
	kept = hash_search(kept_plans, &stmt, HASH_ENTER, &found);
	memset((char *) kept + offsetof(Kept, serial), 0, sizeof(Kept) - offsetof(Kept, serial));
	kept->serial = serial;
	return kept;
}

static MotPlanUse *
use_of(void *entry, uint64 *total)
{
	Kept	   *kept = (Kept *) entry;

	*total = kept->asked;
	return kept->state != KEPT_RUNNING ? &kept->use : NULL;
}

static void
forget_entry(void *entry)
{
	forget((Kept *) entry);
}

/* ------------------------------------------------------------ start and end */

static void
keep_start(QueryDesc *query, int eflags)
{
	const PlannedStmt *stmt = query->plannedstmt;
	int			serial;
	Kept	   *kept;

	if (keep_after < 0 || MotEngine == NULL ||
		(eflags & ~EXEC_FLAG_SKIP_TRIGGERS) != 0 || query->instrument_options != 0 ||
		query->crosscheck_snapshot != InvalidSnapshot || query->queryEnv != NULL ||
		IsParallelWorker() || IsInParallelMode() ||
		(XactReadOnly && query->operation != CMD_SELECT) ||
		MotModulesUnknown() ||
		(serial = find_serial(stmt)) == 0 ||
		(kept = lookup(stmt, serial)) == NULL ||
		kept->state == KEPT_RUNNING || kept->state == KEPT_UNFIT)
	{
		prev_ExecutorStart(query, eflags);
		return;
	}

	if (kept->state == KEPT_PARKED)
	{
		if (!kept->stale && kept->userid == GetUserId() && same_nodes(kept->root, stmt->planTree) &&
			start_again(kept, query, eflags))
			return;
		discard(kept);
	}
	if (kept->seen < keep_after)
	{
		kept->seen++;
		prev_ExecutorStart(query, eflags);
		return;
	}
	if (!plan_is_fit(stmt))
	{
		kept->state = KEPT_UNFIT;
		prev_ExecutorStart(query, eflags);
		return;
	}
	start_kept(kept, query, eflags);
}

static void
collect_scans(Kept *kept, PlanState *state)
{
	if (state == NULL)
		return;
	if (IsA(state, ForeignScanState))
		kept->scans = lappend(kept->scans, state);
	collect_scans(kept, outerPlanState(state));
	collect_scans(kept, innerPlanState(state));
}

/* As the server starts it, but in memory that stays. */
static void
start_kept(Kept *kept, QueryDesc *query, int eflags)
{
	MemoryContext oldcxt;
	EState	   *estate;

	if (!kept->told)
	{
		MotPlanWatch(query->plannedstmt, plan_gone);
		kept->told = true;
	}
	kept->cxt = AllocSetContextCreate(kept_cxt, "MOT executor state", ALLOCSET_SMALL_SIZES);
	kept->state = KEPT_RUNNING;
	kept->stale = false;
	kept->userid = GetUserId();
	kept->level = GetCurrentTransactionNestLevel();
	kept->uses = 0;
	kept->estate = NULL;
	kept->pinned = kept->scans = NIL;
	kept->nslots = 0;
	kept->modify = NULL;
	kept->query = query;
	nrunning++;

	/* what an error leaves is thrown away when its (sub)transaction ends */
	oldcxt = MemoryContextSwitchTo(kept->cxt);
	prev_ExecutorStart(query, eflags);
	estate = query->estate;
	kept->estate = estate;
	kept->root = query->planstate;
	kept->desc = query->tupDesc;
	kept->relations = palloc0(estate->es_range_table_size * sizeof(Relation));
	kept->relids = palloc0(estate->es_range_table_size * sizeof(Oid));
	kept->nrelations = estate->es_range_table_size;
	for (int i = 0; i < kept->nrelations; i++)
		if (estate->es_relations[i] != NULL)
		{
			kept->relations[i] = estate->es_relations[i];
			kept->relids[i] = RelationGetRelid(estate->es_relations[i]);
		}
	if (IsA(kept->root, ModifyTableState))
		kept->modify = (ModifyTableState *) kept->root;
	collect_scans(kept, kept->root);
	MemoryContextSwitchTo(oldcxt);

	/* what only now can be known */
	if (kept->modify != NULL && kept->modify->resultRelInfo->ri_TrigDesc != NULL)
		kept->stale = true;
	if (estate->es_trig_target_relations != NIL)
		kept->stale = true;
}

static inline bool
inserts(const Kept *kept)
{
	return kept->modify != NULL && kept->modify->operation == CMD_INSERT;
}

/* Take the relations again; false if they are not those the tree knows. */
static bool
open_relations(Kept *kept)
{
	EState	   *estate = kept->estate;
	bool		same = true;
	ListCell   *lc;

	for (int i = 0; i < kept->nrelations; i++)
	{
		if (!OidIsValid(kept->relids[i]))
			continue;
		/* locked by whoever got the plan out of its cache, or planned it */
		estate->es_relations[i] = relation_open(kept->relids[i], NoLock);
		if (estate->es_relations[i] != kept->relations[i])
			same = false;
	}
	if (!same || kept->stale)
		return false;
	foreach(lc, kept->scans)
		if (!MotScanIsCurrent((MotScan *) ((ForeignScanState *) lfirst(lc))->fdw_state))
		return false;
	if (inserts(kept))
	{
		ResultRelInfo *rinfo = kept->modify->resultRelInfo;

		return MotModifyIsCurrent((MotModify *) rinfo->ri_FdwState, rinfo->ri_RelationDesc);
	}
	return true;
}

static void
close_relations(Kept *kept)
{
	EState	   *estate = kept->estate;

	for (int i = 0; i < kept->nrelations; i++)
	{
		if (estate->es_relations[i] != NULL)
			relation_close(estate->es_relations[i], NoLock);
		estate->es_relations[i] = NULL;
	}
}

/*
 * The parked tree for another execution.  False: it can't be used; nothing has
 * happened.
 */
static bool
start_again(Kept *kept, QueryDesc *query, int eflags)
{
	EState	   *estate = kept->estate;
	MemoryContext oldcxt;
	ListCell   *lc;

	/* the plan's tables, as this plan (at the same place) has them */
	estate->es_range_table = query->plannedstmt->rtable;
	if (!open_relations(kept))
	{
		close_relations(kept);
		return false;
	}
	kept->state = KEPT_RUNNING;
	kept->level = GetCurrentTransactionNestLevel();
	kept->query = query;
	nrunning++;

	(void) ExecCheckRTPerms(query->plannedstmt->rtable, true);
	MotQueryBegins(query, eflags);

	if (query->operation == CMD_SELECT)
		eflags |= EXEC_FLAG_SKIP_TRIGGERS;
	else
		estate->es_output_cid = GetCurrentCommandId(true);
	estate->es_direction = ForwardScanDirection;
	estate->es_snapshot = RegisterSnapshot(query->snapshot);
	estate->es_top_eflags = eflags;
	estate->es_sourceText = query->sourceText;
	estate->es_param_list_info = query->params;
	estate->es_processed = 0;
	estate->es_finished = false;
	foreach(lc, estate->es_exprcontexts)
		((ExprContext *) lfirst(lc))->ecxt_param_list_info = query->params;
	foreach(lc, kept->pinned)
		IncrTupleDescRefCount((TupleDesc) lfirst(lc));
	if (!(eflags & EXEC_FLAG_SKIP_TRIGGERS))
		AfterTriggerBeginQuery();

	query->estate = estate;
	query->planstate = kept->root;
	query->tupDesc = kept->desc;

	oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);
	foreach(lc, kept->scans)
		MotScanRevive((MotScan *) ((ForeignScanState *) lfirst(lc))->fdw_state);
	if (kept->modify != NULL)
	{
		ResultRelInfo *rinfo = kept->modify->resultRelInfo;

		if (inserts(kept))
			MotModifyRevive((MotModify *) rinfo->ri_FdwState, rinfo, estate);
		kept->modify->mt_done = false;
		kept->modify->fireBSTriggers = true;
		ExecReScan(outerPlanState(kept->modify));
	}
	else
		ExecReScan(kept->root);
	MemoryContextSwitchTo(oldcxt);
	return true;
}

static void
keep_end(QueryDesc *query)
{
	if (nrunning > 0 && query->estate != NULL)
	{
		Kept	   *kept = hash_search(kept_plans, &query->plannedstmt, HASH_FIND, NULL);

		if (kept != NULL && kept->state == KEPT_RUNNING && kept->query == query &&
			kept->estate == query->estate)
		{
			if (kept->stale || ++kept->uses > MAX_USES)
			{
				/* as the server ends it; then its memory goes */
				kept->state = KEPT_NOTHING;
				nrunning--;
				prev_ExecutorEnd(query);
				discard(kept);
			}
			else
				park(kept);
			return;
		}
	}
	prev_ExecutorEnd(query);
}

/* The slots' descriptors; some slots are made when the first row comes. */
static void
find_pinned(Kept *kept)
{
	List	   *slots = kept->estate->es_tupleTable;
	MemoryContext oldcxt;
	ListCell   *lc;

	if (kept->nslots == list_length(slots))
		return;
	oldcxt = MemoryContextSwitchTo(kept->cxt);
	list_free(kept->pinned);
	kept->pinned = NIL;
	kept->nslots = list_length(slots);
	foreach(lc, slots)
	{
		TupleTableSlot *slot = lfirst(lc);

		if (slot->tts_tupleDescriptor != NULL && slot->tts_tupleDescriptor->tdrefcount >= 0)
			kept->pinned = lappend(kept->pinned, slot->tts_tupleDescriptor);
	}
	MemoryContextSwitchTo(oldcxt);
}

static void
park(Kept *kept)
{
	EState	   *estate = kept->estate;
	QueryDesc  *query = kept->query;
	ListCell   *lc;

	Assert(estate->es_finished);
	foreach(lc, estate->es_tupleTable)
		ExecClearTuple((TupleTableSlot *) lfirst(lc));
	foreach(lc, kept->scans)
		MotScanPark((MotScan *) ((ForeignScanState *) lfirst(lc))->fdw_state);
	if (inserts(kept))
		MotModifyPark((MotModify *) kept->modify->resultRelInfo->ri_FdwState);
	foreach(lc, estate->es_exprcontexts)
	{
		ExprContext *econtext = lfirst(lc);

		ReScanExprContext(econtext);
		econtext->ecxt_param_list_info = NULL;
	}
	find_pinned(kept);
	foreach(lc, kept->pinned)
		DecrTupleDescRefCount((TupleDesc) lfirst(lc));
	close_relations(kept);
	UnregisterSnapshot(estate->es_snapshot);
	estate->es_snapshot = NULL;
	estate->es_param_list_info = NULL;
	estate->es_sourceText = NULL;

	query->tupDesc = NULL;
	query->estate = NULL;
	query->planstate = NULL;
	query->totaltime = NULL;
	kept->state = KEPT_PARKED;
	kept->query = NULL;
	nrunning--;
	MotQueryEnds(query);

	/* a look now and then: measuring is not free */
	if (kept->uses % 64 == 0 && MemoryContextMemAllocated(kept->cxt, true) > MAX_BYTES)
		discard(kept);
}

static void
discard(Kept *kept)
{
	MemoryContext cxt = kept->cxt;

	if (kept->state == KEPT_PARKED)
		kept->state = KEPT_NOTHING;
	kept->cxt = NULL;
	kept->estate = NULL;
	if (cxt != NULL)
		MemoryContextDelete(cxt);
}

static void
forget(Kept *kept)
{
	discard(kept);
	(void) hash_search(kept_plans, &kept->plan, HASH_REMOVE, NULL);
}

/* ------------------------------------------------------------ what ends it */

static void
plan_gone(const PlannedStmt *plan)
{
	Kept	   *kept = hash_search(kept_plans, &plan, HASH_FIND, NULL);

	if (kept == NULL)
		return;
	if (kept->state == KEPT_RUNNING)
		kept->gone = true;		/* in an abort, whose end comes later */
	else
		forget(kept);
}

/* trees that an error left running, from nesting level "level" on */
static void
discard_running(int level)
{
	HASH_SEQ_STATUS status;
	Kept	   *kept;

	if (nrunning == 0)
		return;
	hash_seq_init(&status, kept_plans);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (kept->state == KEPT_RUNNING && kept->level >= level)
		{
			kept->state = KEPT_NOTHING;
			kept->query = NULL;
			nrunning--;
			if (kept->gone)
				forget(kept);
			else
				discard(kept);
		}
}

/* Also at commit: a cursor that failed in a savepoint is never ended. */
static void
xact_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		discard_running(0);
}

static void
subxact_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (nrunning == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		discard_running(level);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		HASH_SEQ_STATUS status;
		Kept	   *kept;

		hash_seq_init(&status, kept_plans);
		while ((kept = hash_seq_search(&status)) != NULL)
			if (kept->state == KEPT_RUNNING && kept->level >= level)
				kept->level = level - 1;
	}
}

static void
relcache_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	Kept	   *kept;

	hash_seq_init(&status, kept_plans);
	while ((kept = hash_seq_search(&status)) != NULL)
	{
		if (kept->estate == NULL || kept->stale)
			continue;
		if (!OidIsValid(relid))
			kept->stale = true;
		else
			for (int i = 0; i < kept->nrelations; i++)
				if (kept->relids[i] == relid)
					kept->stale = true;
	}
}

static void
function_changed(Datum arg, int cacheid, uint32 hash)
{
	if (!MotIsOtherDatabase(cacheid, hash))
		relcache_changed(arg, InvalidOid);
}
