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
#include "procedure/procedure.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

/* The first row, and how many there are. */
typedef struct Receiver
{
	DestReceiver public;
	int			ntargets;
	MemoryContext memory;
	int			natts;			/* -1: no row type so far */
	uint64		rows;
	Oid			types[MOT_QUERY_TARGETS];
	int32		typmods[MOT_QUERY_TARGETS];
	Datum		values[MOT_QUERY_TARGETS];
	bool		isnull[MOT_QUERY_TARGETS];
} Receiver;

static void
begin_rows(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->natts = desc->natts;
	for (int i = 0; i < desc->natts && i < receiver->ntargets; i++)
	{
		receiver->types[i] = TupleDescAttr(desc, i)->atttypid;
		receiver->typmods[i] = TupleDescAttr(desc, i)->atttypmod;
		receiver->isnull[i] = true;
	}
}

static bool
take_row(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;
	int			n = Min(receiver->ntargets, receiver->natts);

	if (receiver->rows++ > 0 || n == 0)
		return true;
	slot_getsomeattrs(slot, n);
	for (int i = 0; i < n; i++)
	{
		MotAttribute *attribute = MotDescAttribute(slot->tts_tupleDescriptor, i);

		receiver->isnull[i] = slot->tts_isnull[i];
		if (!slot->tts_isnull[i])
			MotWithin(receiver->memory,
					  receiver->values[i] = datumCopy(slot->tts_values[i], attribute->attbyval, attribute->attlen));
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

/* Run it. */
static void
execute(PlannedStmt *stmt, const char *text, ParamListInfo params, Receiver *receiver, uint64 most)
{
	QueryDesc  *desc;

	desc = CreateQueryDesc(stmt, text, ActiveSnapshotSet() ? GetActiveSnapshot() : InvalidSnapshot, InvalidSnapshot,
						   &receiver->public, params, NULL, 0);
	ExecutorStart(desc, 0);
	MotExecutorRun(desc, most);
	receiver->rows = desc->estate->es_processed;
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/* False: it is the interpreter's, and nothing has been done. */
bool
MotProcedureQuery(MotFrame *frame, const MotQuery *query)
{
	PLpgSQL_execstate *estate = frame->estate;
	CachedPlanSource *source = plain_source(query, estate);
	bool		changes;
	bool		exact;
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
	EnsurePortalSnapshotExists();
	if (!estate->readonly_func)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		CommandCounterIncrement();
		UpdateActiveSnapshotCommandId();
	}

	MemSet(&receiver, 0, offsetof(Receiver, types));
	receiver.public.receiveSlot = take_row;
	receiver.public.rStartup = begin_rows;
	receiver.public.rShutdown = end_rows;
	receiver.public.rDestroy = end_rows;
	receiver.public.mydest = DestSPI;
	receiver.ntargets = query->ntargets;
	receiver.memory = frame->memory;
	receiver.natts = -1;
	execute(stmt, source->query_string, params, &receiver, query->ntargets == 0 ? 0 : exact ? 2 : 1);
	ReleaseCachedPlan(plan, owner);
	if (!estate->readonly_func)
	{
		CommandCounterIncrement();
		PopActiveSnapshot();
	}
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
		for (int i = 0; i < query->ntargets; i++)
		{
			PLpgSQL_datum *target = estate->datums[query->targets[i]];

			/* without a row nulls of no type: a domain may refuse them */
			if (receiver.rows == 0)
				MotProcedurePlugin.assign_value(estate, target, (Datum) 0, true, UNKNOWNOID, -1);
			else
				MotProcedurePlugin.assign_value(estate, target, receiver.values[i], receiver.isnull[i],
												receiver.types[i], receiver.typmods[i]);
		}
		MotProcedureClean(frame, NULL);
	}
	MemoryContextReset(frame->memory);
	return true;
}
