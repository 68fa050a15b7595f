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
	known = MotPlanIsKnown(&query->known, source, params);
	if (likely(known && !estate->readonly_func) && (st = MotStatementBare(MotKnownStatement(&query->known), params)) != NULL)
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

	if (known && CachedPlanIsSimplyValid(source, query->known.plan, owner))
	{
		plan = query->known.plan;
		stmt = linitial_node(PlannedStmt, plan->stmt_list);
		source->num_generic_plans++;
	}
	else
	{
		int64		generic = source->num_generic_plans;
		int64		custom = source->num_custom_plans;
		double		cost = source->total_custom_cost;

		plan = MotPlanGet(&query->known, source, params, owner);
		stmt = list_length(plan->stmt_list) == 1 ? linitial_node(PlannedStmt, plan->stmt_list) : NULL;
		if (stmt == NULL || stmt->utilityStmt != NULL || !stmt->canSetTag ||
			(estate->readonly_func && !CommandIsReadOnly(stmt)) || plain_source(query, estate) != source)
		{
			query->known.plan = NULL;

			/*
			 * (the interpreter gets one, too, and the server counts what is
			 * got)
			 */
			source->num_generic_plans = generic;
			source->num_custom_plans = custom;
			source->total_custom_cost = cost;
			ReleaseCachedPlan(plan, owner);
			error_context_stack = context.previous;
			MemoryContextSwitchTo(oldcxt);
			return false;
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
