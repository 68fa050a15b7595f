/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  Aggregates without grouping.
 *
 * The server's own transition and final functions do the work, as its Agg
 * node has them do it; counts and sums of integers, whose functions are an
 * addition, are added up here.  Only the server's own aggregates are taken:
 * their functions ask their caller for a memory context and nothing else, so
 * that an AggState with little in it is enough.  With DISTINCT, values are
 * sorted first and then taken without repetition, as there.
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
#include "catalog/objectaccess.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat/acl.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "statement/statement.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"

typedef enum TransitionKind
{
	TRANSITION_CALL,			/* the function is called */
	TRANSITION_COUNT,			/* count(*), count(expression) */
	TRANSITION_SUM				/* sum of int2 or int4 */
} TransitionKind;

typedef struct AggregateNode AggregateNode;

typedef struct Transition
{
	AggregateNode *agg;
	TransitionKind kind;
	MotRowAggregateKind compiled_kind;
	int			nargs;
	int			first_input;
	ExprState  *filter;
	ExprState **args;
	bool		strict;
	bool		byval;
	int16		len;
	bool		arg_int2;		/* TRANSITION_SUM */
	Datum		initial;
	bool		initial_null;
	FmgrInfo	finfo;
	FunctionCallInfo fcinfo;

	/* DISTINCT, of one argument */
	bool		distinct;
	Oid			sort_type;
	Oid			sort_operator;
	Oid			sort_collation;
	bool		nulls_first;
	FmgrInfo	equal;
	bool		sort_byval;
	Tuplesortstate *sort;

	Datum		value;
	bool		isnull;
	bool		none;			/* no value yet, and the first is to be taken
								 * as it is */
} Transition;

typedef struct Final
{
	int			transition;
	bool		call;
	bool		average;		/* of MOT_AGGREGATE_SUM_WIDE; otherwise the
								 * sum */
	FmgrInfo	finfo;
	int			nargs;
	Oid			collation;
	bool		byval;
	int16		len;
} Final;

struct AggregateNode
{
	MotNode		node;
	bool		done;
	AggState   *aggstate;
	ExprContext *input;			/* of each row from below */
	ExprContext *memory;		/* of transition values */
	int			ntransitions;
	Transition *transitions;
	int			nfinals;
	Final	   *finals;
	bool		distinct;		/* some transition is */

	/* straight from a scan's rows, when compiled */
	MotScanNode *scan;
	MotRowProgram *program;		/* the scan's conditions, all arguments */
	Datum	   *inputs;
	bool	   *inputs_null;
	MotRowState *states;
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

/* As nodeAgg.c's advance_transition_function. */
static void
call_transition(AggregateNode *agg, Transition *t)
{
	FunctionCallInfo fcinfo = t->fcinfo;
	MemoryContext memory = agg->memory->ecxt_per_tuple_memory;
	Datum		value;

	if (t->strict)
	{
		for (int i = 1; i <= t->nargs; i++)
			if (fcinfo->args[i].isnull)
				return;
		if (t->none)
		{
			MotWithin(memory, t->value = datumCopy(fcinfo->args[1].value, t->byval, t->len));
			t->isnull = t->none = false;
			return;
		}
		if (t->isnull)
			return;
	}

	fcinfo->args[0].value = t->value;
	fcinfo->args[0].isnull = t->isnull;
	fcinfo->isnull = false;
	value = FunctionCallInvoke(fcinfo);
	if (!t->byval && DatumGetPointer(value) != DatumGetPointer(t->value))
	{
		/* what it made goes with the row: keep a copy */
		if (!fcinfo->isnull)
			MotWithin(memory, value = datumCopy(value, t->byval, t->len));
		else
			value = (Datum) 0;
		if (!t->isnull)
			pfree(DatumGetPointer(t->value));
	}
	t->value = value;
	t->isnull = fcinfo->isnull;
}

/* Count or sum a value that is not null. */
static inline void
add(Transition *t, Datum value)
{
	if (t->kind == TRANSITION_COUNT)
		t->value = Int64GetDatum(DatumGetInt64(t->value) + 1);
	else
	{
		/* (the function does not check for overflow either) */
		int64		result = t->arg_int2 ? DatumGetInt16(value) : DatumGetInt32(value);

		if (!t->isnull)
			result += DatumGetInt64(t->value);
		t->value = Int64GetDatum(result);
		t->isnull = false;
	}
}

/* A value for DISTINCT; null is none to functions that want no nulls. */
static inline void
keep_distinct(Transition *t, Datum value, bool isnull)
{
	if (!isnull || !t->strict)
		tuplesort_putdatum(t->sort, value, isnull);
}

static void
begin_distinct(AggregateNode *agg)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(agg->node.statement->exec_cxt);

	for (int i = 0; i < agg->ntransitions; i++)
	{
		Transition *t = &agg->transitions[i];

		if (t->distinct)
			t->sort = tuplesort_begin_datum(t->sort_type, t->sort_operator, t->sort_collation,
											t->nulls_first, work_mem, NULL, TUPLESORT_NONE);
	}
	MemoryContextSwitchTo(oldcxt);
}

/* As nodeAgg.c's process_ordered_aggregate_single. */
static void
take_distinct(AggregateNode *agg, Transition *t)
{
	MemoryContext input = agg->input->ecxt_per_tuple_memory;
	Datum		value;
	Datum		abbreviated = (Datum) 0;
	Datum		last = (Datum) 0;
	Datum		last_abbreviated = (Datum) 0;
	bool		isnull;
	bool		last_isnull = false;
	bool		any = false;

	tuplesort_performsort(t->sort);
	while (MotTuplesortGetDatum(t->sort, &value, &isnull, &abbreviated))
	{
		MemoryContext oldcxt;
		bool		same;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(agg->input);
		oldcxt = MemoryContextSwitchTo(input);
		same = any && isnull == last_isnull &&
			(isnull || (abbreviated == last_abbreviated &&
						DatumGetBool(FunctionCall2Coll(&t->equal, t->fcinfo->fncollation, last, value))));
		if (!same && t->kind == TRANSITION_CALL)
		{
			t->fcinfo->args[1].value = value;
			t->fcinfo->args[1].isnull = isnull;
			call_transition(agg, t);
		}
		else if (!same && !isnull)
			add(t, value);
		MemoryContextSwitchTo(oldcxt);

		/* by-reference values are ours */
		if (same)
		{
			if (!t->sort_byval && !isnull)
				pfree(DatumGetPointer(value));
			continue;
		}
		if (any && !t->sort_byval && !last_isnull)
			pfree(DatumGetPointer(last));
		last = value;
		last_abbreviated = abbreviated;
		last_isnull = isnull;
		any = true;
	}
	if (any && !t->sort_byval && !last_isnull)
		pfree(DatumGetPointer(last));
	tuplesort_end(t->sort);
	t->sort = NULL;
}

static void
advance(AggregateNode *agg, Transition *t)
{
	ExprContext *econtext = agg->input;

	if (t->filter != NULL && !ExecQual(t->filter, econtext))
		return;
	if (t->distinct)
	{
		bool		isnull;
		Datum		value = ExecEvalExpr(t->args[0], econtext, &isnull);

		keep_distinct(t, value, isnull);
	}
	else if (t->kind == TRANSITION_CALL)
	{
		for (int i = 0; i < t->nargs; i++)
			t->fcinfo->args[i + 1].value = ExecEvalExpr(t->args[i], econtext,
														&t->fcinfo->args[i + 1].isnull);
		call_transition(agg, t);
	}
	else
	{
		Datum		value = (Datum) 0;
		bool		isnull = false;

		if (t->nargs > 0)
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

	if (t->distinct)
	{
		keep_distinct(t, agg->inputs[t->first_input], agg->inputs_null[t->first_input]);
		return;
	}
	for (int i = 0; i < t->nargs; i++)
	{
		t->fcinfo->args[i + 1].value = agg->inputs[t->first_input + i];
		t->fcinfo->args[i + 1].isnull = agg->inputs_null[t->first_input + i];
	}
	call_transition(agg, t);
}

static void
begin_states(AggregateNode *agg)
{
	for (int i = 0; i < agg->ntransitions; i++)
	{
		Transition *t = &agg->transitions[i];
		MotRowState *state = &agg->states[i];

		memset(state, 0, sizeof(MotRowState));
		state->isnull = t->isnull;
		if (t->compiled_kind == MOT_AGGREGATE_COUNT)
			state->value = t->value;
	}
}

static void
end_states(AggregateNode *agg)
{
	for (int i = 0; i < agg->ntransitions; i++)
	{
		Transition *t = &agg->transitions[i];

		if (t->compiled_kind == MOT_AGGREGATE_CALL || t->compiled_kind == MOT_AGGREGATE_SUM_WIDE)
			continue;
		t->value = agg->states[i].value;
		t->isnull = t->none = agg->states[i].isnull;
	}
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
	begin_states(agg);
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
	end_states(agg);
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
		for (int i = 0; i < agg->ntransitions; i++)
			advance(agg, &agg->transitions[i]);
		MemoryContextSwitchTo(oldcxt);
		CHECK_FOR_INTERRUPTS();
	}
}

/* As int128_to_numericvar and its like, which are the server's own. */
static Datum
wide_to_numeric(const MotRowState *state)
{
	int64		low = DatumGetInt64(state->value);
	Datum		base;
	Datum		upper;
	Datum		lower;

	if (likely(state->high == low >> 63))
		return NumericGetDatum(int64_to_numeric(low));

	/* (high * 2^32 + upper half of low) * 2^32 + lower half of low */
	base = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));
	upper = NumericGetDatum(int64_to_numeric((int64) ((uint64) low >> 32)));
	lower = NumericGetDatum(int64_to_numeric((int64) ((uint64) low & PG_UINT32_MAX)));
	upper = DirectFunctionCall2(numeric_add, upper,
								DirectFunctionCall2(numeric_mul, base,
													NumericGetDatum(int64_to_numeric(state->high))));
	return DirectFunctionCall2(numeric_add, lower, DirectFunctionCall2(numeric_mul, base, upper));
}

/* As numeric_poly_sum, numeric_poly_avg and int8_avg. */
static Datum
finish_wide(const MotRowState *state, bool average, bool *isnull)
{
	*isnull = state->count == 0;
	if (*isnull)
		return (Datum) 0;
	if (!average)
		return wide_to_numeric(state);
	return DirectFunctionCall2(numeric_div, wide_to_numeric(state),
							   NumericGetDatum(int64_to_numeric(state->count)));
}

static Datum
finish(AggregateNode *agg, Final *f, bool *isnull)
{
	Transition *t = &agg->transitions[f->transition];

	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
	Datum		result;

	if (agg->compiled && t->compiled_kind == MOT_AGGREGATE_SUM_WIDE)
		return finish_wide(&agg->states[f->transition], f->average, isnull);
	if (!f->call)
	{
		*isnull = t->isnull;
		return t->value;
	}
	InitFunctionCallInfoData(*fcinfo, &f->finfo, f->nargs, f->collation,
							 (Node *) agg->aggstate, NULL);
	fcinfo->args[0].value = MakeExpandedObjectReadOnly(t->value, t->isnull, t->len);
	fcinfo->args[0].isnull = t->isnull;
	if (f->finfo.fn_strict && t->isnull)
	{
		*isnull = true;
		return (Datum) 0;
	}
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return result;
}

static TupleTableSlot *
next_of_aggregate(MotNode *node)
{
	AggregateNode *agg = (AggregateNode *) node;
	MemoryContext oldcxt;

	if (agg->done)
		return NULL;
	agg->done = true;

	ReScanExprContext(agg->memory);
	for (int i = 0; i < agg->ntransitions; i++)
	{
		Transition *t = &agg->transitions[i];

		t->isnull = t->none = t->initial_null;
		t->value = t->initial;
		if (!t->initial_null && !t->byval)
			MotWithin(agg->memory->ecxt_per_tuple_memory, t->value = datumCopy(t->initial, t->byval, t->len));
	}

	if (agg->distinct)
		begin_distinct(agg);
	agg->compiled = agg->program != NULL && aggregate_compiled(agg);
	if (!agg->compiled)
		aggregate_rows(agg);
	for (int i = 0; agg->distinct && i < agg->ntransitions; i++)
		if (agg->transitions[i].distinct)
			take_distinct(agg, &agg->transitions[i]);

	ResetExprContext(node->econtext);
	node->econtext->ecxt_outertuple = NULL;
	oldcxt = MemoryContextSwitchTo(node->econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < agg->nfinals; i++)
		node->econtext->ecxt_aggvalues[i] = finish(agg, &agg->finals[i],
												   &node->econtext->ecxt_aggnulls[i]);
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

static void
check_permission(Oid funcid, Oid userid)
{
	AclResult	result = object_aclcheck(ProcedureRelationId, funcid, userid, ACL_EXECUTE);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(funcid));
	InvokeFunctionExecuteHook(funcid);
}

static Oid
function_owner(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", funcid);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* What of a transition a row program can do by itself. */
static MotRowAggregateKind
compiled_kind(Oid transfn)
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
build_distinct(AggregateNode *agg, Transition *t, Aggref *aggref)
{
	SortGroupClause *clause = linitial_node(SortGroupClause, aggref->aggdistinct);
	Node	   *arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	int16		len;

	t->distinct = agg->distinct = true;
	t->compiled_kind = MOT_AGGREGATE_CALL;
	t->sort_type = exprType(arg);
	t->sort_operator = clause->sortop;
	t->sort_collation = exprCollation(arg);
	t->nulls_first = clause->nulls_first;
	fmgr_info(get_opcode(clause->eqop), &t->equal);
	get_typlenbyval(t->sort_type, &len, &t->sort_byval);
}

static void
build_transition(AggregateNode *agg, Transition *t, Aggref *aggref, Form_pg_aggregate form,
				 HeapTuple tuple)
{
	PlanState  *ps = agg->node.ps;
	Datum		initial;
	bool		isnull;
	int			i = 0;

	t->nargs = list_length(aggref->args);
	t->args = palloc0(Max(1, t->nargs) * sizeof(ExprState *));
	foreach_node(TargetEntry, tle, aggref->args)
		t->args[i++] = ExecInitExpr(tle->expr, ps);
	t->filter = aggref->aggfilter ? ExecInitQual(list_make1(aggref->aggfilter), ps) : NULL;
	get_typlenbyval(aggref->aggtranstype, &t->len, &t->byval);

	check_permission(form->aggtransfn, function_owner(aggref->aggfnoid));
	fmgr_info(form->aggtransfn, &t->finfo);
	t->strict = t->finfo.fn_strict;
	t->fcinfo = palloc0(SizeForFunctionCallInfo(t->nargs + 1));
	InitFunctionCallInfoData(*t->fcinfo, &t->finfo, t->nargs + 1, aggref->inputcollid,
							 (Node *) agg->aggstate, NULL);

	initial = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval, &isnull);
	t->initial_null = isnull;
	if (!isnull)
	{
		Oid			typinput,
					typioparam;
		char	   *start = TextDatumGetCString(initial);

		getTypeInputInfo(aggref->aggtranstype, &typinput, &typioparam);
		t->initial = OidInputFunctionCall(typinput, start, typioparam, -1);
	}

	switch (form->aggtransfn)
	{
		case F_INT8INC:
		case F_INT8INC_ANY:
			t->kind = TRANSITION_COUNT;
			break;
		case F_INT2_SUM:
		case F_INT4_SUM:
			t->kind = TRANSITION_SUM;
			t->arg_int2 = form->aggtransfn == F_INT2_SUM;
			break;
		default:
			t->kind = TRANSITION_CALL;
	}
	t->agg = agg;
	t->compiled_kind = compiled_kind(form->aggtransfn);
	if (aggref->aggdistinct != NIL)
		build_distinct(agg, t, aggref);
}

static void
build_final(AggregateNode *agg, Final *f, Aggref *aggref, Form_pg_aggregate form)
{
	f->transition = aggref->aggtransno;
	f->call = OidIsValid(form->aggfinalfn);
	f->nargs = 1;
	f->collation = aggref->inputcollid;
	get_typlenbyval(aggref->aggtype, &f->len, &f->byval);
	if (f->call)
	{
		check_permission(form->aggfinalfn, function_owner(aggref->aggfnoid));
		fmgr_info(form->aggfinalfn, &f->finfo);
	}
	switch (form->aggfinalfn)
	{
		case F_NUMERIC_POLY_SUM:
			f->average = false;
			break;
		case F_NUMERIC_POLY_AVG:
		case F_INT8_AVG:
			f->average = true;
			break;
		default:
			if (agg->transitions[f->transition].compiled_kind == MOT_AGGREGATE_SUM_WIDE)
				agg->transitions[f->transition].compiled_kind = MOT_AGGREGATE_CALL;
	}
}

/* The scan's columns in the place of references to its output. */
static Node *
resolve_outer(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
		return copyObject((Node *) list_nth_node(TargetEntry, (List *) context,
												 ((Var *) node)->varattno - 1)->expr);
	return expression_tree_mutator(node, resolve_outer, context);
}

/* A row program that has the scan's conditions and advances the aggregates. */
static void
build_program(MotStatement *st, AggregateNode *agg, List *aggrefs)
{
	MotScanNode *sn = (MotScanNode *) agg->node.outer;
	List	   *aggregates = NIL;
	int			ninputs = 0;

	if (!agg->node.outer->is_scan || sn->needs_tid)
		return;
	for (int i = 0; i < agg->ntransitions; i++)
	{
		MotRowAggregate *aggregate = palloc0(sizeof(MotRowAggregate));

		foreach_node(Aggref, aggref, aggrefs)
		{
			if (aggref->aggtransno != i)
				continue;
			foreach_node(TargetEntry, tle, aggref->args)
				aggregate->args = lappend(aggregate->args,
										  resolve_outer((Node *) tle->expr,
														sn->targetlist));
			aggregate->filter = (Expr *) resolve_outer((Node *) aggref->aggfilter, sn->targetlist);
			break;
		}
		aggregate->kind = agg->transitions[i].compiled_kind;
		aggregate->call = advance_compiled;
		aggregate->arg = &agg->transitions[i];
		aggregate->first_value = agg->transitions[i].first_input = ninputs;
		ninputs += list_length(aggregate->args);
		aggregates = lappend(aggregates, aggregate);
	}
	agg->scan = sn;
	agg->inputs = palloc0((ninputs + 1) * sizeof(Datum));
	agg->inputs_null = palloc0((ninputs + 1) * sizeof(bool));
	agg->states = palloc0((agg->ntransitions + 1) * sizeof(MotRowState));
	agg->program = MotRowProgramMake(st, ((Scan *) sn->fss->ss.ps.plan)->scanrelid,
									 sn->fss->ss.ps.scandesc, sn->quals, NIL, aggregates,
									 agg->inputs, agg->inputs_null, sn->node.econtext);
	if (agg->program == NULL)
		return;
	agg->program->context.states = agg->states;

	/* (the scan does nothing by itself then) */
	st->programs = list_delete_ptr(st->programs, sn->program);
	sn->program = NULL;
}

MotNode *
MotAggregateBuild(MotStatement *st, Agg *plan, MotNode *outer)
{
	AggregateNode *agg = palloc0(sizeof(AggregateNode));
	MotNode    *node = &agg->node;
	List	   *aggrefs = NIL;

	node->statement = st;
	node->next = next_of_aggregate;
	node->restart = restart_aggregate;
	node->outer = outer;
	MotNodeContext(node, T_AggState, sizeof(AggState), (Plan *) plan);
	agg->aggstate = (AggState *) node->ps;
	agg->input = CreateExprContext(st->estate);
	agg->memory = CreateExprContext(st->estate);
	agg->aggstate->curaggcontext = agg->memory;
	agg->aggstate->tmpcontext = agg->input;

	(void) collect_aggrefs((Node *) plan->plan.targetlist, &aggrefs);
	(void) collect_aggrefs((Node *) plan->plan.qual, &aggrefs);
	foreach_node(Aggref, aggref, aggrefs)
	{
		agg->nfinals = Max(agg->nfinals, aggref->aggno + 1);
		agg->ntransitions = Max(agg->ntransitions, aggref->aggtransno + 1);
	}
	agg->finals = palloc0(Max(1, agg->nfinals) * sizeof(Final));
	agg->transitions = palloc0(Max(1, agg->ntransitions) * sizeof(Transition));
	node->econtext->ecxt_aggvalues = palloc0(Max(1, agg->nfinals) * sizeof(Datum));
	node->econtext->ecxt_aggnulls = palloc0(Max(1, agg->nfinals) * sizeof(bool));

	foreach_node(Aggref, aggref, aggrefs)
	{
		HeapTuple	tuple;
		Form_pg_aggregate form;

		check_permission(aggref->aggfnoid, st->userid);
		tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
		form = (Form_pg_aggregate) GETSTRUCT(tuple);
		if (agg->transitions[aggref->aggtransno].args == NULL)
			build_transition(agg, &agg->transitions[aggref->aggtransno], aggref, form, tuple);
		build_final(agg, &agg->finals[aggref->aggno], aggref, form);
		ReleaseSysCache(tuple);
	}

	node->qual = ExecInitQual(plan->plan.qual, node->ps);
	MotNodeProject(node, (Plan *) plan);
	build_program(st, agg, aggrefs);
	return node;
}
