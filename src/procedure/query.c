/*-------------------------------------------------------------------------
 *
 * query.c
 *	  A procedure's SQL statements, without SPI.
 *
 * What SPI_execute_plan and exec_stmt_execsql() do is done here for the plain case: one statement
 * that reads or changes rows, which the interpreter has executed before; its result goes nowhere,
 * or its first row into variables.  Plans, snapshots, commands and hooks are as there, but rows
 * need no copies in a table of SPI's.  Everything else, and every error of PL/pgSQL's own, is left
 * to the interpreter, before anything has been done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "procedure/procedure.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

/* The first row, and how many there are. */
typedef struct Receiver
{
	DestReceiver public;
	const MotQuery *query;
	PLpgSQL_execstate *estate;
	MemoryContext memory;
	int			natts;			/* -1: no row type so far */
	uint64		rows;
	Oid			types[MOT_QUERY_TARGETS];
	int32		typmods[MOT_QUERY_TARGETS];
	bool		is_final[MOT_QUERY_TARGETS];	/* the variable's, no cast is
												 * needed */
	bool		isnull[MOT_QUERY_TARGETS];
	Datum		values[MOT_QUERY_TARGETS];
} Receiver;

uint64		MotSubtransactionsUndone = 0;

static void add_querys_locks(MotQuery *query, Query *tree);

static void
begin_rows(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->natts = desc->natts;
	for (int i = 0; i < desc->natts && i < receiver->query->ntargets; i++)
	{
		receiver->types[i] = TupleDescAttr(desc, i)->atttypid;
		receiver->typmods[i] = TupleDescAttr(desc, i)->atttypmod;
		receiver->isnull[i] = true;
		receiver->is_final[i] =
			MotValueIsFinal((PLpgSQL_var *) receiver->estate->datums[receiver->query->targets[i]],
							receiver->query->plain[i], receiver->types[i], receiver->typmods[i]);
	}
}

/*
 * Values are copied to where they stay, if they are (an error from here on ends the activation, and
 * variables with it); what is stored elsewhere is the interpreter's to fetch.
 */
static bool
take_row(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;
	int			n = Min(receiver->query->ntargets, receiver->natts);

	if (receiver->rows++ > 0 || n == 0)
		return true;
	slot_getsomeattrs(slot, n);
	for (int i = 0; i < n; i++)
	{
		MotAttribute *attribute = MotDescAttribute(slot->tts_tupleDescriptor, i);
		Datum		value = slot->tts_values[i];

		receiver->isnull[i] = slot->tts_isnull[i];
		if (slot->tts_isnull[i])
			continue;
		if (MotValueIsElsewhere(value, attribute->attbyval, attribute->attlen))
			receiver->is_final[i] = false;
		receiver->values[i] = MotValueCopy(value, attribute->attbyval, attribute->attlen,
										   receiver->is_final[i] ? receiver->estate->datum_context : receiver->memory);
	}
	return true;
}

static void
end_rows(DestReceiver *self)
{
}

/* as _SPI_error_callback */
static void
say_statement(void *arg)
{
	const char *text = arg;
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(text);
	}
	else
	{
		set_errcontext_domain(NULL);
		errcontext_msg("SQL statement \"%s\"", text);
	}
}

/* May it be executed here, as far as is known before it has a plan? */
static CachedPlanSource *
plain_source(const MotQuery *query, const PLpgSQL_execstate *estate)
{
	List	   *sources;
	CachedPlanSource *source;

	if (query->expr->plan == NULL)
		return NULL;
	sources = SPI_plan_get_plan_sources(query->expr->plan);
	if (list_length(sources) != 1)
		return NULL;
	source = linitial(sources);
	switch (source->commandTag)
	{
		case CMDTAG_SELECT:
			break;
		case CMDTAG_INSERT:
		case CMDTAG_UPDATE:
		case CMDTAG_DELETE:
			if (estate->readonly_func)
				return NULL;
			break;
		default:
			return NULL;
	}
	if (query->performs)
		return source->commandTag == CMDTAG_SELECT && source->resultDesc != NULL ? source : NULL;
	/* (rows may have no columns: these have no destination either) */
	if (source->resultDesc != NULL)
		return query->ntargets > 0 && source->resultDesc->natts == query->ntargets ? source : NULL;
	return query->ntargets == 0 ? source : NULL;
}

/*
 * Would the server take the generic plan, if it is right?  As choose_custom_plan().
 */
static bool
wants_generic(const CachedPlanSource *source, ParamListInfo params)
{
	if (params == NULL || plan_cache_mode == PLAN_CACHE_MODE_FORCE_GENERIC_PLAN)
		return true;
	if (plan_cache_mode == PLAN_CACHE_MODE_FORCE_CUSTOM_PLAN)
		return false;
	if (source->cursor_options & (CURSOR_OPT_GENERIC_PLAN | CURSOR_OPT_CUSTOM_PLAN))
		return (source->cursor_options & CURSOR_OPT_GENERIC_PLAN) != 0;
	return source->num_custom_plans >= 5 &&
		source->generic_cost < source->total_custom_cost / source->num_custom_plans;
}

/* Is it still the plan of its source? */
static inline bool
is_right(const MotQuery *query, CachedPlanSource *source)
{
	return query->generation == source->generation && CachedPlanIsSimplyValid(source, query->plan, NULL);
}

/* Once each, if there are few. */
static void
add_lock(MotQuery *query, const RangeTblEntry *rte)
{
	const int	few = 32;
	MotQueryLock lock = {rte->relid, rte->rellockmode};

	for (int i = 0; i < query->nlocks && i < few; i++)
		if (query->locks[i].relid == lock.relid && query->locks[i].mode == lock.mode)
			return;
	if (query->nlocks == query->maxlocks)
	{
		query->maxlocks = Max(2 * query->maxlocks, 4);
		query->locks = query->locks == NULL ?
			MemoryContextAlloc(GetMemoryChunkContext(query), query->maxlocks * sizeof(MotQueryLock)) :
			repalloc(query->locks, query->maxlocks * sizeof(MotQueryLock));
	}
	query->locks[query->nlocks++] = lock;
}

/* (from 16 on a view has become a sub-query, which is locked; before, it is beside that) */
static inline bool
is_locked(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION ||
		(rte->rtekind == RTE_SUBQUERY && OidIsValid(rte->relid) && rte->rellockmode != NoLock);
}

static bool
add_sublinks_locks(Node *node, void *query)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		add_querys_locks(query, castNode(Query, ((SubLink *) node)->subselect));
	return expression_tree_walker(node, add_sublinks_locks, query);
}

/* as ScanQueryForLocks() */
static void
add_querys_locks(MotQuery *query, Query *tree)
{
	foreach_node(RangeTblEntry, rte, tree->rtable)
	{
		if (is_locked(rte))
			add_lock(query, rte);
		if (rte->rtekind == RTE_SUBQUERY)
			add_querys_locks(query, rte->subquery);
	}
	foreach_node(CommonTableExpr, cte, tree->cteList)
		add_querys_locks(query, castNode(Query, cte->ctequery));
	if (tree->hasSubLinks)
		(void) query_tree_walker(tree, add_sublinks_locks, query, QTW_IGNORE_RC_SUBQUERIES);
}

/*
 * What GetCachedPlan() locks for this plan, in its order: the tables of the query, of which the plan may
 * not have all, then those of the plan.
 */
static void
list_locks(MotQuery *query, const CachedPlanSource *source, const PlannedStmt *stmt)
{
	query->nlocks = 0;
	foreach_node(Query, tree, source->query_list)
		add_querys_locks(query, tree);
	query->nquerys = query->nlocks;
	foreach_node(RangeTblEntry, rte, stmt->rtable)
		if (is_locked(rte))
		add_lock(query, rte);
}

/*
 * Take them, as GetCachedPlan() does.  False: something has changed, and those are given back that it
 * would give back, or take now.
 */
static bool
lock_tables(const MotQuery *query, CachedPlanSource *source)
{
	int			n = 0;

	for (; n < query->nquerys; n++)
		LockRelationOid(query->locks[n].relid, query->locks[n].mode);
	if (is_right(query, source))
		for (; n < query->nlocks; n++)
			LockRelationOid(query->locks[n].relid, query->locks[n].mode);
	if (is_right(query, source))
		return true;
	while (n-- > 0)
		UnlockRelationOid(query->locks[n].relid, query->locks[n].mode);
	return false;
}

/*
 * May the query's plan be had without GetCachedPlan()?  That locks all tables of the query, and once
 * more those of its plan, each time.  Locks that this transaction has are kept until it ends, or the
 * subtransaction that took them is undone; and for one that is there already the server does not look
 * for invalidations.  So if it has taken them for this plan, and no subtransaction has been undone
 * since, all that is left is to look whether the plan is still right, and is what would be chosen.
 * Else they are taken once.  (Plans that depend on who asks, or are right for some time only, are not
 * known.)
 */
static bool
is_known(MotQuery *query, CachedPlanSource *source, ParamListInfo params)
{
	if (query->plan == NULL || query->source != source || !wants_generic(source, params) || !is_right(query, source))
		return false;
	if (likely(query->transaction == MotLocalTransaction() && query->undone == MotSubtransactionsUndone))
		return true;
	if (!lock_tables(query, source))
		return false;
	query->transaction = MotLocalTransaction();
	query->undone = MotSubtransactionsUndone;
	return true;
}

/*
 * The query's program, if its plan is known and it can be run without a QueryDesc, a snapshot and
 * (nothing that it calls could let go of it) a reference to the plan.
 */
static MotStatement *
bare_statement(const MotQuery *query, ParamListInfo params)
{
	return MotStatementBare(linitial_node(PlannedStmt, query->plan->stmt_list), params);
}

/* What comes of it is kept in CurrentMemoryContext, or where it is final. */
static void
prepare(Receiver *receiver, const MotQuery *query, PLpgSQL_execstate *estate)
{
	MemSet(receiver, 0, offsetof(Receiver, types));
	receiver->public.receiveSlot = take_row;
	receiver->public.rStartup = begin_rows;
	receiver->public.rShutdown = end_rows;
	receiver->public.rDestroy = end_rows;
	receiver->public.mydest = DestSPI;
	receiver->query = query;
	receiver->estate = estate;
	receiver->memory = CurrentMemoryContext;
	receiver->natts = -1;
}

/* Run it.  The snapshot that is active stays so: nobody has to keep it. */
static void
execute(PlannedStmt *stmt, const char *string, ParamListInfo params, Receiver *receiver, uint64 most)
{
	QueryDesc	desc = {0};

	desc.operation = stmt->commandType;
	desc.plannedstmt = stmt;
	desc.sourceText = string;
	desc.snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : InvalidSnapshot;
	desc.dest = &receiver->public;
	desc.params = params;
	ExecutorStart(&desc, 0);
	MotExecutorRun(&desc, most);
	receiver->rows = desc.estate->es_processed;
	ExecutorFinish(&desc);
	ExecutorEnd(&desc);
}

/*
 * The variables get their values: those that have been copied for them just so, the others as the
 * interpreter does it.
 */
static void
assign(MotFrame *frame, const MotQuery *query, Receiver *receiver)
{
	PLpgSQL_execstate *estate = frame->estate;
	bool		all = true;

	for (int i = 0; i < query->ntargets; i++)
	{
		PLpgSQL_var *var = (PLpgSQL_var *) estate->datums[query->targets[i]];

		if (receiver->rows > 0 && receiver->is_final[i])
			MotVariableSet(var, receiver->values[i], receiver->isnull[i]);
		else
		{
			/* without a row nulls of no type: a domain may refuse them */
			bool		found = receiver->rows > 0;

			all = false;
			MotProcedurePlugin.assign_value(estate, (PLpgSQL_datum *) var, found ? receiver->values[i] : (Datum) 0,
											!found || receiver->isnull[i], found ? receiver->types[i] : UNKNOWNOID,
											found ? receiver->typmods[i] : -1);
		}
	}
	if (!all)
		MotProcedureClean(frame, NULL);
}

/* False: it is the interpreter's, and nothing has been done. */
bool
MotProcedureQuery(MotFrame *frame, MotQuery *query)
{
	PLpgSQL_execstate *estate = frame->estate;
	CachedPlanSource *source = plain_source(query, estate);
	bool		changes;
	bool		exact;
	uint64		most;
	bool		known;
	MotStatement *st;
	CachedPlan *plan;
	PlannedStmt *stmt;
	ParamListInfo params = NULL;
	ErrorContextCallback context;
	MemoryContext oldcxt;
	ResourceOwner owner = CurrentResourceOwner;
	Receiver	receiver;

	if (source == NULL || MotInterpreterChecks())
		return false;
	changes = source->commandTag != CMDTAG_SELECT;
	exact = query->strict || changes;
	most = query->ntargets == 0 ? 0 : exact ? 2 : 1;
	if (query->expr->paramnos != NULL)
	{
		params = estate->paramLI;
		params->parserSetupArg = query->expr;
		query->expr->func = estate->func;
	}
	frame->seen = 0;
	if (frame->memory == NULL)
		frame->memory = AllocSetContextCreate(estate->datum_context, "MOT procedure's statement", ALLOCSET_DEFAULT_SIZES);

	context.callback = say_statement;
	context.arg = unconstify(char *, source->query_string);
	context.previous = error_context_stack;
	error_context_stack = &context;
	oldcxt = MemoryContextSwitchTo(frame->memory);

	prepare(&receiver, query, estate);
	known = is_known(query, source, params);
	if (likely(known && !estate->readonly_func) && (st = bare_statement(query, params)) != NULL)
	{
		EnsurePortalSnapshotExists();
		CommandCounterIncrement();
		if (MotStatementRunBare(st, params, source->query_string, most, &receiver.public, &receiver.rows))
		{
			source->num_generic_plans++;
			CommandCounterIncrement();
			goto done;
		}
	}

	if (known && CachedPlanIsSimplyValid(source, query->plan, owner))
	{
		plan = query->plan;
		stmt = linitial_node(PlannedStmt, plan->stmt_list);
		source->num_generic_plans++;
	}
	else
	{
		int			generation = source->generation;
		bool		was_right = source->is_valid && source->gplan != NULL && source->gplan->is_valid;

		query->plan = NULL;
		plan = GetCachedPlan(source, params, owner, NULL);
		stmt = list_length(plan->stmt_list) == 1 ? linitial_node(PlannedStmt, plan->stmt_list) : NULL;
		if (stmt == NULL || stmt->utilityStmt != NULL || !stmt->canSetTag ||
			(estate->readonly_func && !CommandIsReadOnly(stmt)) || plain_source(query, estate) != source)
		{
			ReleaseCachedPlan(plan, owner);
			error_context_stack = context.previous;
			MemoryContextSwitchTo(oldcxt);
			return false;
		}

		/*
		 * (of a plan that has just been made it has not gone through the
		 * tables)
		 */
		if (was_right && plan == source->gplan && generation == source->generation && !source->dependsOnRLS &&
			!plan->dependsOnRole && !TransactionIdIsValid(plan->saved_xmin))
		{
			list_locks(query, source, stmt);
			query->source = source;
			query->plan = plan;
			query->generation = generation;
			query->transaction = MotLocalTransaction();
			query->undone = MotSubtransactionsUndone;
		}
	}
	EnsurePortalSnapshotExists();
	if (!estate->readonly_func)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		CommandCounterIncrement();
		UpdateActiveSnapshotCommandId();
	}

	execute(stmt, source->query_string, params, &receiver, most);
	ReleaseCachedPlan(plan, owner);
	if (!estate->readonly_func)
	{
		CommandCounterIncrement();
		PopActiveSnapshot();
	}

done:
	error_context_stack = context.previous;
	MemoryContextSwitchTo(oldcxt);

	MotProcedureSetFound(frame, receiver.rows != 0);
	estate->eval_processed = receiver.rows;
	if (query->ntargets > 0)
	{
		Assert(receiver.natts == query->ntargets);
		if (query->strict && receiver.rows == 0)
			ereport(ERROR,
					(errcode(ERRCODE_NO_DATA_FOUND),
					 errmsg("query returned no rows")));
		if (exact && receiver.rows > 1)
			ereport(ERROR,
					(errcode(ERRCODE_TOO_MANY_ROWS),
					 errmsg("query returned more than one row"),
					 errhint("Make sure the query returns a single row, or use LIMIT 1.")));
		assign(frame, query, &receiver);
	}
	MemoryContextReset(frame->memory);
	return true;
}
