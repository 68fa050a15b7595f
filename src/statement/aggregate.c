/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  Aggregates without grouping.
 *
 * What there is to know of the aggregates, an Agg node of the server's knows; it is also what
 * their functions look at.  The transition and final functions are called as it has them
 * called; counts and sums of integers, whose functions are an addition, are added up here.
 * Only the server's own aggregates are taken: their functions ask their caller for a memory
 * context and nothing else.  With DISTINCT the node itself takes the rows.
 *
 * When the rows are a scan's and the statement is compiled, the row program
 * advances the aggregates: by itself those whose transition is an addition or
 * a comparison, the others by calling back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "executor/execExpr.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "statement/statement.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"

typedef struct AggregateNode AggregateNode;

typedef struct Transition
{
	AggregateNode *agg;
	AggStatePerTrans servers;
	MotRowAggregateKind kind;
	AggStatePerGroup state;
	int			first_input;
	ExprState  *filter;
	ExprState **args;
} Transition;

struct AggregateNode
{
	MotNode		node;
	bool		done;
	AggState   *state;			/* the server's */
	ExprContext *input;			/* of each row from below */
	ExprContext *memory;		/* of transition values */
	Transition *transitions;
	AggStatePerGroup states;	/* one for each transition */
	MotSum	   *sums;			/* of SUM_WIDE, when compiled */

	/* straight from a scan's rows, when compiled */
	MotScanNode *scan;
	MotRowProgram *program;		/* the scan's conditions, all arguments */
	Datum	   *inputs;
	bool	   *inputs_null;
	bool		compiled;		/* it has been run in this execution */
};

static bool
collect_aggrefs(Node *node, List **aggrefs)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		*aggrefs = lappend(*aggrefs, node);
		return false;
	}
	return expression_tree_walker(node, collect_aggrefs, aggrefs);
}

static const char *
aggref_why_not(const Aggref *aggref)
{
	HeapTuple	tuple;
	Form_pg_aggregate form;
	const char *why_not = NULL;

	if (aggref->aggfnoid >= FirstGenbkiObjectId)
		return "an aggregate is not the server's own";
	if (aggref->aggorder != NIL || (aggref->aggdistinct != NIL && list_length(aggref->args) != 1))
		return "an aggregate has ORDER BY, or DISTINCT of several values";
	if (aggref->aggdirectargs != NIL || aggref->aggvariadic || aggref->aggkind != AGGKIND_NORMAL ||
		aggref->aggsplit != AGGSPLIT_SIMPLE)
		return "an aggregate is of another kind";

	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	if (!HeapTupleIsValid(tuple))
		return "an aggregate is gone";
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	if (form->aggfinalextra || IsPolymorphicType(form->aggtranstype))
		why_not = "an aggregate is polymorphic";
	switch (form->aggtransfn)
	{
		case F_ARRAY_AGG_TRANSFN:
		case F_ARRAY_AGG_ARRAY_TRANSFN:
		case F_JSON_AGG_TRANSFN:
		case F_JSONB_AGG_TRANSFN:
		case F_JSON_OBJECT_AGG_TRANSFN:
		case F_JSONB_OBJECT_AGG_TRANSFN:
		case F_RANGE_AGG_TRANSFN:
		case F_MULTIRANGE_AGG_TRANSFN:
			why_not = "an aggregate makes arrays, ranges or JSON";
			break;
	}
	ReleaseSysCache(tuple);
	return why_not;
}

const char *
MotAggregateWhyNot(const Agg *agg)
{
	List	   *aggrefs = NIL;

	if (agg->aggstrategy != AGG_PLAIN || agg->numCols > 0 || agg->groupingSets != NIL ||
		agg->chain != NIL)
		return "rows are grouped";
	if (agg->aggsplit != AGGSPLIT_SIMPLE)
		return "aggregation is split";
	(void) collect_aggrefs((Node *) agg->plan.targetlist, &aggrefs);
	(void) collect_aggrefs((Node *) agg->plan.qual, &aggrefs);
	foreach_node(Aggref, aggref, aggrefs)
	{
		const char *why_not = aggref_why_not(aggref);

		if (why_not != NULL)
			return why_not;
	}
	return NULL;
}

/* --------------------------------------------------------------- execution */

/* As nodeAgg.c's advance_transition_function; the arguments are in their places. */
void
MotAggregateCall(AggState *agg, AggStatePerTrans servers, AggStatePerGroup state)
{
	FunctionCallInfo fcinfo = servers->transfn_fcinfo;
	MemoryContext oldcxt;
	Datum		value;

	if (servers->transfn.fn_strict)
	{
		for (int i = 1; i <= servers->numTransInputs; i++)
			if (fcinfo->args[i].isnull)
				return;
		if (state->noTransValue)
		{
			MotWithin(agg->curaggcontext->ecxt_per_tuple_memory,
					  state->transValue = datumCopy(fcinfo->args[1].value, servers->transtypeByVal,
													servers->transtypeLen));
			state->transValueIsNull = state->noTransValue = false;
			return;
		}
		if (state->transValueIsNull)
			return;
	}
	oldcxt = MemoryContextSwitchTo(agg->tmpcontext->ecxt_per_tuple_memory);
	agg->curpertrans = servers;
	fcinfo->args[0].value = state->transValue;
	fcinfo->args[0].isnull = state->transValueIsNull;
	fcinfo->isnull = false;
	value = FunctionCallInvoke(fcinfo);
	agg->curpertrans = NULL;
	if (!servers->transtypeByVal && DatumGetPointer(value) != DatumGetPointer(state->transValue))
		value = ExecAggCopyTransValue(agg, servers, value, fcinfo->isnull,
									  state->transValue, state->transValueIsNull);
	state->transValue = value;
	state->transValueIsNull = fcinfo->isnull;
	MemoryContextSwitchTo(oldcxt);
}

/* Count or sum a value that is not null. */
static inline void
add(Transition *t, Datum value)
{
	AggStatePerGroup state = t->state;

	if (t->kind == MOT_AGGREGATE_COUNT)
		state->transValue = Int64GetDatum(DatumGetInt64(state->transValue) + 1);
	else
	{
		/* (the function does not check for overflow either) */
		int64		result = t->servers->transfn_oid == F_INT2_SUM ? DatumGetInt16(value) : DatumGetInt32(value);

		if (!state->transValueIsNull)
			result += DatumGetInt64(state->transValue);
		state->transValue = Int64GetDatum(result);
		state->transValueIsNull = state->noTransValue = false;
	}
}

static void
advance(AggregateNode *agg, Transition *t)
{
	ExprContext *econtext = agg->input;
	int			nargs = t->servers->numTransInputs;

	if (t->filter != NULL && !ExecQual(t->filter, econtext))
		return;
	if (t->kind != MOT_AGGREGATE_COUNT && t->kind != MOT_AGGREGATE_SUM)
	{
		NullableDatum *args = t->servers->transfn_fcinfo->args + 1;

		for (int i = 0; i < nargs; i++)
			args[i].value = ExecEvalExpr(t->args[i], econtext, &args[i].isnull);
		MotAggregateCall(agg->state, t->servers, t->state);
	}
	else
	{
		Datum		value = (Datum) 0;
		bool		isnull = false;

		if (nargs > 0)
			value = ExecEvalExpr(t->args[0], econtext, &isnull);
		if (!isnull)
			add(t, value);
	}
}

/* A transition whose arguments a row program has evaluated. */
static void
advance_compiled(void *arg)
{
	Transition *t = (Transition *) arg;
	AggregateNode *agg = t->agg;
	NullableDatum *args = t->servers->transfn_fcinfo->args + 1;

	for (int i = 0; i < t->servers->numTransInputs; i++)
	{
		args[i].value = agg->inputs[t->first_input + i];
		args[i].isnull = agg->inputs_null[t->first_input + i];
	}
	MotAggregateCall(agg->state, t->servers, t->state);
}

/* All rows from below, compiled.  False: not this time. */
static bool
aggregate_compiled(AggregateNode *agg)
{
	MotScan    *scan = agg->scan->scan;
	MotRowProgram *program = agg->program;
	MemoryContext oldcxt;

	if (program->function == NULL || !MotRowProgramBegin(program))
		return false;
	oldcxt = MemoryContextSwitchTo(agg->input->ecxt_per_tuple_memory);
	for (;;)
	{
		ResetExprContext(agg->input);
		if (!MotScanNext(scan, program->econtext))
			break;
		(void) MotRowProgramRun(program, scan->version);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(oldcxt);
	return true;
}

static void
aggregate_rows(AggregateNode *agg)
{
	MotNode    *outer = agg->node.outer;
	ExprContext *input = agg->input;
	TupleTableSlot *slot;

	while ((slot = outer->next(outer)) != NULL)
	{
		MemoryContext oldcxt;

		ResetExprContext(input);
		input->ecxt_outertuple = slot;
		oldcxt = MemoryContextSwitchTo(input->ecxt_per_tuple_memory);
		for (int i = 0; i < agg->state->numtrans; i++)
			advance(agg, &agg->transitions[i]);
		MemoryContextSwitchTo(oldcxt);
		CHECK_FOR_INTERRUPTS();
	}
}

/* As int128_to_numericvar and its like, which are the server's own. */
static Datum
wide_to_numeric(int128 sum)
{
	int64		low = (int64) sum;
	int64		high = (int64) (sum >> 64);
	Datum		base;
	Datum		upper;
	Datum		lower;

	if (likely(high == low >> 63))
		return NumericGetDatum(int64_to_numeric(low));

	/* (high * 2^32 + upper half of low) * 2^32 + lower half of low */
	base = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));
	upper = NumericGetDatum(int64_to_numeric((int64) ((uint64) low >> 32)));
	lower = NumericGetDatum(int64_to_numeric((int64) ((uint64) low & PG_UINT32_MAX)));
	upper = DirectFunctionCall2(numeric_add, upper,
								DirectFunctionCall2(numeric_mul, base,
													NumericGetDatum(int64_to_numeric(high))));
	return DirectFunctionCall2(numeric_add, lower, DirectFunctionCall2(numeric_mul, base, upper));
}

/* As numeric_poly_sum and numeric_poly_avg. */
static Datum
finish_wide(const MotSum *sum, bool average, bool *isnull)
{
	*isnull = sum->n == 0;
	if (*isnull)
		return (Datum) 0;
	if (!average)
		return wide_to_numeric(sum->sum);
	return DirectFunctionCall2(numeric_div, wide_to_numeric(sum->sum),
							   NumericGetDatum(int64_to_numeric(sum->n)));
}

static Datum
finish(AggregateNode *agg, AggStatePerAgg servers, bool *isnull)
{
	Transition *t = &agg->transitions[servers->transno];
	AggStatePerGroup state = t->state;

	LOCAL_FCINFO(fcinfo, 1);
	Datum		result;

	if (agg->compiled && t->kind == MOT_AGGREGATE_SUM_WIDE)
		return finish_wide(&agg->sums[servers->transno], servers->finalfn_oid != F_NUMERIC_POLY_SUM, isnull);
	*isnull = state->transValueIsNull;
	if (!OidIsValid(servers->finalfn_oid))
		return state->transValue;
	if (servers->finalfn.fn_strict && *isnull)
		return (Datum) 0;
	InitFunctionCallInfoData(*fcinfo, &servers->finalfn, 1, t->servers->aggCollation,
							 (Node *) agg->state, NULL);
	fcinfo->args[0].value = MakeExpandedObjectReadOnly(state->transValue, state->transValueIsNull, t->servers->transtypeLen);
	fcinfo->args[0].isnull = state->transValueIsNull;
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return result;
}

static TupleTableSlot *
next_of_aggregate(MotNode *node)
{
	AggregateNode *agg = (AggregateNode *) node;
	AggState   *state = agg->state;
	MemoryContext oldcxt;

	if (agg->done)
		return NULL;
	agg->done = true;

	ReScanExprContext(agg->memory);
	for (int i = 0; i < state->numtrans; i++)
	{
		const AggStatePerTrans servers = agg->transitions[i].servers;
		AggStatePerGroup each = &agg->states[i];

		each->transValueIsNull = each->noTransValue = servers->initValueIsNull;
		each->transValue = servers->initValue;
		if (!each->transValueIsNull && !servers->transtypeByVal)
			MotWithin(agg->memory->ecxt_per_tuple_memory,
					  each->transValue = datumCopy(each->transValue, false, servers->transtypeLen));
	}
	memset(agg->sums, 0, state->numtrans * sizeof(MotSum));

	agg->compiled = agg->program != NULL && aggregate_compiled(agg);
	if (!agg->compiled)
		aggregate_rows(agg);

	ResetExprContext(node->econtext);
	node->econtext->ecxt_outertuple = NULL;
	oldcxt = MemoryContextSwitchTo(node->econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < state->numaggs; i++)
		node->econtext->ecxt_aggvalues[i] = finish(agg, &state->peragg[i], &node->econtext->ecxt_aggnulls[i]);
	MemoryContextSwitchTo(oldcxt);
	if (node->qual != NULL && !ExecQual(node->qual, node->econtext))
		return NULL;
	return ExecProject(node->project);
}

static void
restart_aggregate(MotNode *node)
{
	((AggregateNode *) node)->done = false;
	node->outer->restart(node->outer);
}

/* ---------------------------------------------------------------- building */

/* What of a transition a row program can do by itself. */
MotRowAggregateKind
MotAggregateKind(Oid transfn)
{
	switch (transfn)
	{
		case F_INT8INC:
		case F_INT8INC_ANY:
			return MOT_AGGREGATE_COUNT;
		case F_INT2_SUM:
		case F_INT4_SUM:
			return MOT_AGGREGATE_SUM;
		case F_INT2_AVG_ACCUM:
		case F_INT4_AVG_ACCUM:
			return MOT_AGGREGATE_AVERAGE;
		case F_INT8_AVG_ACCUM:
			return MOT_AGGREGATE_SUM_WIDE;
		case F_FLOAT4PL:
		case F_FLOAT8PL:
			return MOT_AGGREGATE_SUM_FLOAT;
		case F_INT2LARGER:
		case F_INT4LARGER:
		case F_INT8LARGER:
		case F_OIDLARGER:
		case F_FLOAT4LARGER:
		case F_FLOAT8LARGER:
		case F_DATE_LARGER:
		case F_TIME_LARGER:
		case F_TIMESTAMP_LARGER:
		case F_TIMESTAMPTZ_LARGER:
		case F_CASHLARGER:
			return MOT_AGGREGATE_MAX;
		case F_INT2SMALLER:
		case F_INT4SMALLER:
		case F_INT8SMALLER:
		case F_OIDSMALLER:
		case F_FLOAT4SMALLER:
		case F_FLOAT8SMALLER:
		case F_DATE_SMALLER:
		case F_TIME_SMALLER:
		case F_TIMESTAMP_SMALLER:
		case F_TIMESTAMPTZ_SMALLER:
		case F_CASHSMALLER:
			return MOT_AGGREGATE_MIN;
		default:
			return MOT_AGGREGATE_CALL;
	}
}

static void
build_transition(AggregateNode *agg, Transition *t, AggStatePerTrans servers)
{
	PlanState  *ps = agg->node.ps;
	Aggref	   *aggref = servers->aggref;
	int			i = 0;

	t->agg = agg;
	t->servers = servers;
	t->args = palloc0(Max(1, list_length(aggref->args)) * sizeof(ExprState *));
	foreach_node(TargetEntry, tle, aggref->args)
		t->args[i++] = ExecInitExpr(tle->expr, ps);
	t->filter = aggref->aggfilter ? ExecInitQual(list_make1(aggref->aggfilter), ps) : NULL;
	t->kind = MotAggregateKind(servers->transfn_oid);
}

/* The scan's columns in the place of references to its output. */
Node *
MotResolveOuter(Node *node, void *targetlist)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
		return copyObject((Node *) list_nth_node(TargetEntry, (List *) targetlist,
												 ((Var *) node)->varattno - 1)->expr);
	return expression_tree_mutator(node, MotResolveOuter, targetlist);
}

/* A row program that has the scan's conditions and advances the aggregates. */
static void
build_program(MotStatement *st, AggregateNode *agg)
{
	MotScanNode *sn = (MotScanNode *) agg->node.outer;
	List	   *aggregates = NIL;
	int			ninputs = 0;

	if (!agg->node.outer->is_scan || sn->needs_tid)
		return;
	for (int i = 0; i < agg->state->numtrans; i++)
	{
		MotRowAggregate *aggregate = palloc0(sizeof(MotRowAggregate));
		const Aggref *aggref = agg->state->pertrans[i].aggref;

		foreach_node(TargetEntry, tle, aggref->args)
			aggregate->args = lappend(aggregate->args, MotResolveOuter((Node *) tle->expr, sn->targetlist));
		aggregate->filter = (Expr *) MotResolveOuter((Node *) aggref->aggfilter, sn->targetlist);
		aggregate->kind = agg->transitions[i].kind;
		aggregate->sum = i;
		aggregate->call = advance_compiled;
		aggregate->arg = &agg->transitions[i];
		aggregate->first_value = agg->transitions[i].first_input = ninputs;
		ninputs += list_length(aggregate->args);
		aggregates = lappend(aggregates, aggregate);
	}
	agg->scan = sn;
	agg->inputs = palloc0((ninputs + 1) * sizeof(Datum));
	agg->inputs_null = palloc0((ninputs + 1) * sizeof(bool));
	agg->program = MotRowProgramMake(st, ((Scan *) sn->fss->ss.ps.plan)->scanrelid,
									 sn->fss->ss.ps.scandesc, sn->quals, NIL, aggregates,
									 agg->inputs, agg->inputs_null, sn->node.econtext);
	if (agg->program == NULL)
		return;
	agg->program->context.states = agg->states;
	agg->program->context.sums = agg->sums;

	/* (the scan does nothing by itself then) */
	st->programs = list_delete_ptr(st->programs, sn->program);
	sn->program = NULL;
}

MotNode *
MotAggregateBuild(MotStatement *st, Agg *plan)
{
	MotNode    *node = MotServersBuild(st, &plan->plan, sizeof(AggregateNode), NULL);
	AggregateNode *agg = (AggregateNode *) node;
	AggState   *state = agg->state = (AggState *) node->ps;

	foreach_node(Aggref, aggref, state->aggs)
		if (aggref->aggdistinct != NIL)
		return node;
	node->next = next_of_aggregate;
	node->restart = restart_aggregate;
	node->econtext = state->ss.ps.ps_ExprContext;
	node->qual = state->ss.ps.qual;
	node->project = state->ss.ps.ps_ProjInfo;
	agg->input = state->tmpcontext;
	agg->memory = state->curaggcontext = state->aggcontexts[0];
	agg->transitions = palloc0(Max(1, state->numtrans) * sizeof(Transition));
	agg->states = palloc0(Max(1, state->numtrans) * sizeof(AggStatePerGroupData));
	agg->sums = palloc0(Max(1, state->numtrans) * sizeof(MotSum));
	for (int i = 0; i < state->numtrans; i++)
	{
		agg->transitions[i].state = &agg->states[i];
		build_transition(agg, &agg->transitions[i], &state->pertrans[i]);
	}
	build_program(st, agg);
	return node;
}
