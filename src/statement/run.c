/*-------------------------------------------------------------------------
 *
 * run.c
 *	  The executor's hooks: a statement that is ready runs here.
 *
 * Callers see a QueryDesc as the executor would have left it: an executor
 * state with es_processed in it, a row type, and, where WHERE CURRENT OF could
 * look for it, a scan state.  What others who have hooks above ours allocate
 * in es_query_cxt goes with the execution; while we run, es_query_cxt is the
 * program's memory, for what the server's functions make once and keep.
 *
 * A procedure has no use for a QueryDesc, and asks for its statements without one
 * (MotStatementRunBare), where nobody else would see it either.
 *
 * Modules above ours may want to look at plan states.  Of those we know,
 * pg_stat_statements does not, and auto_explain says by its settings whether it
 * may; with any other, every statement is left to the executor.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/relation.h"
#include "access/xact.h"
#include "compat/calls.h"
#include "compat/modules.h"
#include "executor/instrument.h"
#include "statement/remember.h"
#include "statement/statement.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "xact/held.h"

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static bool hooked = false;

bool		MotStatementRan = false;

/* the context lives as long as the process: registered if "func" is set */
static MemoryContextCallback message_end;

static void start(QueryDesc *query, int eflags);
static void run(MOT_RUN_PARAMETERS);
static void finish(QueryDesc *query);
static void end(QueryDesc *query);
static bool start_statement(MotStatement *st, QueryDesc *query, int eflags);
static void run_statement(MotStatement *st, QueryDesc *query, ScanDirection direction,
						  uint64 count);
static void end_statement(MotStatement *st, QueryDesc *query);

static void
take_hooks(void)
{
	/* a module below us would not be told of an execution that starts here */
	if (!MotExecutorIsOurs() || ExecutorFinish_hook != NULL)
		return;
	hooked = true;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = start;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = MotModulesRun = run;
	ExecutorFinish_hook = finish;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = end;
}

static bool
others_look_at_plans(void)
{
	/* nearly always there is nobody above us */
	if (likely(ExecutorStart_hook == start && ExecutorRun_hook == run &&
			   ExecutorFinish_hook == finish && ExecutorEnd_hook == end))
		return false;
	return MotModulesLookAtPlans();
}

/* Why does no statement at all run here just now?  NULL: some do. */
const char *
MotStatementsWhyNot(void)
{
	if (!mot_jit || mot_jit_prepare_above < 0)
		return "mot.jit is off";
	if (!hooked)
		return "a module with hooks in the executor is before mot in shared_preload_libraries";
	if (others_look_at_plans())
		return "a module may want to look at plans";
	return NULL;
}

void
MotStatementInit(void)
{
	MotStatementTableInit();
	MotCompiledInit();
	take_hooks();
	MotStatementStatInit();
	MotRememberInit();
}

static inline MotStatement *
running(QueryDesc *query)
{
	MotStatement *st = MotStatementRunning;

	while (st != NULL && (st->query != query || st->estate != query->estate))
		st = st->below;
	return st;
}

/* ------------------------------------------------------------------ start */

static void
start(QueryDesc *query, int eflags)
{
	PlannedStmt *slip = MotRememberedPut(query);
	MotStatement *st;

	if (mot_jit && mot_jit_prepare_above >= 0 && MotEngine != NULL &&
		(eflags & ~EXEC_FLAG_SKIP_TRIGGERS) == 0 && query->instrument_options == 0 &&
		query->crosscheck_snapshot == InvalidSnapshot && query->queryEnv == NULL &&
		!IsParallelWorker() && !IsInParallelMode() &&
		(!XactReadOnly || (query->operation == CMD_SELECT && query->plannedstmt->rowMarks == NIL)) &&
		!others_look_at_plans() &&
		(st = MotStatementFor(query)) != NULL &&
		start_statement(st, query, eflags))
		;
	else
		prev_ExecutorStart(query, eflags);
	if (slip != NULL)
		MotRememberedShow(query, slip, (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 || query->instrument_options != 0 ||
						  others_look_at_plans());
}

/*
 * The tables, if they are what the program was made for.
 *
 * The references are counted in the relations only and not with the resource
 * owner, which would make room for them and drop it again in each execution:
 * whatever ends a statement closes its tables.
 */
static bool
open_tables(MotStatement *st)
{
	uint64		generation = MotRelationGeneration;
	bool		same = true;

	if (likely(st->generation == generation))
	{
		for (int i = 0; i < st->ntables; i++)
		{
			MotTable   *table = &st->tables[i];

			table->rel = table->known;
			table->rel->rd_refcnt++;
			st->estate->es_relations[table->rti - 1] = table->rel;
		}
		return true;
	}

	for (int i = 0; i < st->ntables; i++)
	{
		MotTable   *table = &st->tables[i];
		MotRelation *mr;

		/* locked by whoever got the plan out of its cache, or planned it */
		table->rel = relation_open(table->relid, NoLock);
		st->estate->es_relations[table->rti - 1] = table->rel;
		table->known = table->rel;
		mr = MotRelationGet(table->rel);
		if (unlikely(mr != table->mr || mr->built != table->built))
			same = false;
	}
	/* nothing can fail from here on until the statement is entered */
	for (int i = 0; i < st->ntables; i++)
	{
		st->tables[i].rel->rd_refcnt++;
		RelationClose(st->tables[i].rel);
	}
	if (same)
		st->generation = generation;
	return same && !st->stale;
}

void
MotStatementCloseTables(MotStatement *st)
{
	for (int i = 0; i < st->ntables; i++)
	{
		MotTable   *table = &st->tables[i];

		if (table->rel == NULL)
			continue;
		Assert(table->rel->rd_refcnt > 0);
		table->rel->rd_refcnt--;
		table->rel = NULL;
		st->estate->es_relations[table->rti - 1] = NULL;
	}
}

/*
 * A client's message has ended: what was asked for when the youngest statement
 * started has come, perhaps, and the row can be asked for.  (A statement that
 * failed is not there any more.)
 */
static void
message_has_ended(void *arg)
{
	MotStatement *st = MotStatementRunning;

	message_end.func = NULL;
	if (st != NULL && st->ahead != NULL)
		MotScanAheadMore(st->ahead);
}

/*
 * An execution that starts with one of a client's messages (Bind) asks for rows
 * with another (Execute), and we want to be called in between: what belongs to a
 * message is in MessageContext, which is reset before the next one is read.
 * (Background workers have none.)
 */
static inline void
await_message_end(void)
{
	if (message_end.func == NULL && MessageContext != NULL && ActivePortal != NULL &&
		ActivePortal->status == PORTAL_DEFINED && ActivePortal->visible)
	{
		message_end.func = message_has_ended;
		MemoryContextRegisterResetCallback(MessageContext, &message_end);
	}
}

/* The tables are there: it is running, and an error from here on ends it.  "query" may be NULL. */
static void
enter(MotStatement *st, QueryDesc *query, ParamListInfo params)
{
	MotStatementEnter(st, query);
	foreach_ptr(ExprContext, econtext, st->estate->es_exprcontexts)
		econtext->ecxt_param_list_info = params;
	if (query != NULL && st->ahead != NULL)
	{
		/* as long before it is needed as can be */
		MotScanAhead(st->ahead, st->ahead_econtext);
		await_message_end();
	}
	if (!st->compile_tried && mot_jit_above >= 0)
	{
		TimestampTz message = GetCurrentStatementStartTimestamp();

		st->messages += message != st->last_message;
		st->last_message = message;
		if (st->uses >= mot_jit_above && st->uses >= st->compile_after)
			MotStatementCompile(st);
	}
}

/* It has its view: what it reads and changes begins anew.  (The snapshot is for the server's nodes.) */
static void
begin(MotStatement *st, Snapshot snapshot, ParamListInfo params, const char *text, int eflags)
{
	EState	   *estate = st->estate;

	estate->es_output_cid = st->operation != CMD_SELECT || st->lock != NULL ?
		GetCurrentCommandId(true) : 0;
	estate->es_snapshot = snapshot;
	estate->es_top_eflags = eflags;
	estate->es_sourceText = text;

	estate->es_param_list_info = params;
	MotProcessedNone(estate);
	estate->es_finished = false;
	foreach_ptr(MotScanNode, sn, st->scans)
	{
		sn->fss->ss.ss_currentRelation = sn->table->rel;
		sn->scan->view = st->view;
		MotViewTable(sn->scan->relation, &sn->scan->view);
	}
	if (st->initplans != NIL)
		MotSubselectsStart(st);
	if (st->lock != NULL)
		MotLockStart(st);
	if (st->change != NULL)
		MotChangeStart(st);
	else
		st->root->restart(st->root);
	st->started = st->ended = false;
}

static bool
start_statement(MotStatement *st, QueryDesc *query, int eflags)
{
	EState	   *estate = st->estate;

	MotEstatePlan(estate, query->plannedstmt);
	if (!open_tables(st))
	{
		MotStatementCloseTables(st);
		MotStatementDiscard(st);
		return false;
	}
	enter(st, query, query->params);
	if (ExecutorCheckPerms_hook != NULL || st->permitted != MotPermissionsTime)
	{
		MotExecCheckPermissions(query->plannedstmt);
		st->permitted = MotPermissionsTime;
	}
	st->view = MotQueryBeginsKnown(query, st->reads_others);
	begin(st, query->snapshot, query->params, query->sourceText, eflags);

	estate->es_query_cxt = st->exec_cxt;
	if (MotQueryIsMeasured(query))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(st->exec_cxt);

		query->query_instr = MotQueryInstrument(query);
		MemoryContextSwitchTo(oldcxt);
	}
	query->estate = estate;
	query->planstate = st->cursor != NULL ? &st->cursor->fss->ss.ps : NULL;
	query->tupDesc = st->desc;
	return true;
}

/* -------------------------------------------------------------------- run */

static void
run(MOT_RUN_PARAMETERS)
{
	MotStatement *st = running(query);

	MotHeldCheck();
	if (st != NULL)
	{
		if (MotRunOnce(query))
			elog(ERROR, "can't re-execute query flagged for single execution");
		run_statement(st, query, direction, count);
	}
	else
		prev_ExecutorRun(MOT_RUN_ARGUMENTS);
}

static inline TupleTableSlot *
next_row(MotStatement *st)
{
	TupleTableSlot *slot = st->change != NULL ? MotChangeNext(st) : st->root->next(st->root);

	return slot != NULL && st->junk != NULL ? ExecFilterJunk(st->junk, slot) : slot;
}

/* That was the last one.  (False: nobody knows.) */
static inline bool
is_done(const MotStatement *st)
{
	return st->root != NULL && st->root->is_scan && MotScanIsDone(((const MotScanNode *) st->root)->scan);
}

static void
run_statement(MotStatement *st, QueryDesc *query, ScanDirection direction,
			  uint64 count)
{
	EState	   *estate = st->estate;
	DestReceiver *dest = query->dest;
	bool		direct;
	bool		sends;
	MemoryContext oldcxt;
	uint64		n = 0;

	direct = st->sender != NULL && MotSenderBegins(st->sender, query);
	sends = !direct && (st->operation == CMD_SELECT || st->plan->hasReturning);
	oldcxt = MemoryContextSwitchTo(st->exec_cxt);
	st->run_level = GetCurrentTransactionNestLevel();
	estate->es_query_cxt = st->cxt;
	if (query->query_instr)
		MotInstrStart(query->query_instr);
	estate->es_processed = 0;
	if (sends || (direct && dest->mydest == DestRemote))
		dest->rStartup(dest, st->operation, query->tupDesc);

	if (!ScanDirectionIsNoMovement(direction))
	{
		query->already_executed = true;
		Assert(ScanDirectionIsForward(direction));
	}
	while (!ScanDirectionIsNoMovement(direction) && !st->ended)
	{
		TupleTableSlot *slot = next_row(st);

		if (slot == NULL)
		{
			st->ended = true;
			break;
		}
		if (direct)
			MotSenderRow(st->sender, slot);
		else if (sends && !dest->receiveSlot(slot, dest))
			break;
		if (st->operation == CMD_SELECT)
			estate->es_processed++;
		if (++n == count)
		{
			/*
			 * there will be more: WHERE CURRENT OF may want to know where we
			 * are
			 */
			if (st->cursor != NULL)
			{
				MotScanNode *sn = st->cursor;

				if (TTS_EMPTY(sn->fss->ss.ss_ScanTupleSlot))
					MotSlotShow(sn->fss->ss.ss_ScanTupleSlot, sn->scan->version);
				sn->fss->ss.ss_ScanTupleSlot->tts_tableOid = sn->table->relid;
				MotStatementTid(sn->table, sn->scan->row, sn->scan->version,
								&sn->fss->ss.ss_ScanTupleSlot->tts_tid);
			}
			break;
		}
		if (is_done(st))
		{
			st->ended = true;
			break;
		}
	}

	MotProcessedInAll(estate);
	if (direct)
		MotSenderEnds();
	if (sends || (direct && dest->mydest == DestRemote))
		dest->rShutdown(dest);
	if (query->query_instr)
		MotInstrStop(query->query_instr, estate->es_processed);
	estate->es_query_cxt = st->exec_cxt;
	st->run_level = 0;
	MotStatementRan = true;
	MemoryContextSwitchTo(oldcxt);
}

/* -------------------------------------------------------------------- end */

static void
finish(QueryDesc *query)
{
	MotStatement *st = running(query);

	if (st != NULL)
	{
		if (st->change != NULL)
			MotChangeFinish(st);
		st->estate->es_finished = true;
	}
	else
		standard_ExecutorFinish(query);
}

static void
end(QueryDesc *query)
{
	MotStatement *st = query->estate != NULL ? running(query) : NULL;

	if (st != NULL)
		end_statement(st, query);
	else
		prev_ExecutorEnd(query);
}

/* Nothing stays of the execution but what its caller has begun. */
static void
rest(MotStatement *st)
{
	EState	   *estate = st->estate;

	foreach_ptr(MotScanNode, sn, st->scans)
	{
		ExecClearTuple(sn->fss->ss.ss_ScanTupleSlot);
		if (sn->table->ordinary)
			MotScanCount(sn->scan);
		MotScanPark(sn->scan);
	}
	if (st->change != NULL)
		MotChangeRest(st);
	if (st->lock != NULL)
		MotLockRest(st);
	foreach_ptr(MotNode, node, st->kept)
		node->rest(node);
	if (st->parents != NIL)
		MotSubselectsRest(st);
	foreach_ptr(ExprContext, econtext, estate->es_exprcontexts)
	{
		if (unlikely(econtext->ecxt_callbacks != NULL))
			ReScanExprContext(econtext);
		MotContextReset(econtext->ecxt_per_tuple_memory);
		econtext->ecxt_param_list_info = NULL;
	}
	MotStatementCloseTables(st);
	estate->es_snapshot = NULL;
	estate->es_param_list_info = NULL;
	estate->es_sourceText = NULL;
	estate->es_range_table = NIL;
	MotContextReset(st->exec_cxt);
}

static void
end_statement(MotStatement *st, QueryDesc *query)
{
	rest(st);
	query->tupDesc = NULL;
	query->estate = NULL;
	query->planstate = NULL;
	query->query_instr = NULL;
	MotQueryEnds(query);
	MotStatementLeave(st);
}

/* ------------------------------------------------------------------- bare */

/* Its tables may have changed, or somebody's privileges. */
static inline bool
is_out_of_date(const MotStatement *st)
{
	return st->stale || st->generation != MotRelationGeneration || st->permitted != MotPermissionsTime;
}

/*
 * A procedure's statement whose program is at hand, and of which nobody would see a QueryDesc or a
 * snapshot.  NULL: it is the executor's hooks' to run.
 */
MotStatement *
MotStatementBare(const PlannedStmt *plan, ParamListInfo params)
{
	MotStatement *st = MotStatementAtHand(plan, params);

	if (st == NULL || !st->bare || is_out_of_date(st) || ExecutorCheckPerms_hook != NULL ||
		!mot_jit || mot_jit_prepare_above < 0 || IsInParallelMode() || (XactReadOnly && (st->change != NULL || st->lock != NULL)) ||
		ExecutorStart_hook != start || ExecutorRun_hook != run || ExecutorFinish_hook != finish ||
		ExecutorEnd_hook != end)
		return NULL;
	return st;
}

/*
 * Run it: "most" rows, or all if that is 0, go to "receiver"; *rows: how many there were, or were
 * changed.  False: it cannot be run so at this moment, and nothing has been done.  (One moment ago it
 * could: the transaction's own changes of catalogs take effect with its next command, this one.)
 */
bool
MotStatementRunBare(MotStatement *st, ParamListInfo params, const char *text, uint64 most, DestReceiver *receiver,
					uint64 *rows)
{
	EState	   *estate = st->estate;
	MemoryContext oldcxt;
	TupleTableSlot *slot;
	uint64		n = 0;

	if (!MotQueryBeginsBare(st, GetCurrentCommandId(false), &st->view))
		return false;
	if (unlikely(is_out_of_date(st)))
	{
		MotQueryEnds(st);
		return false;
	}
	MotEstatePlan(estate, st->plan);
	(void) open_tables(st);
	enter(st, NULL, params);
	begin(st, NULL, params, text, 0);
	oldcxt = MemoryContextSwitchTo(st->exec_cxt);
	st->run_level = GetCurrentTransactionNestLevel();
	estate->es_query_cxt = st->cxt;
	receiver->rStartup(receiver, st->operation, st->desc);
	while ((slot = next_row(st)) != NULL)
	{
		(void) receiver->receiveSlot(slot, receiver);
		if (++n == most || is_done(st))
			break;
	}
	*rows = st->operation == CMD_SELECT ? n : estate->es_processed;
	st->run_level = 0;
	MemoryContextSwitchTo(oldcxt);
	rest(st);
	MotQueryEnds(st);
	MotStatementLeave(st);
	return true;
}
