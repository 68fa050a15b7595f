/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  The input phase of an Agg node.
 *
 * Rows are taken from the node below until there are no more, each one's group is
 * found (group.c), and its transition states are advanced.  States that are a
 * number, or two, are so where the server has them; sums of numeric and
 * bigint, whose states only numeric.c knows, are ours until the input has
 * ended (decimal.c); all other transition functions are called as nodeAgg.c
 * calls them.  Arguments that are columns are taken from the slot, those that
 * add and multiply numeric for a sum are computed by decimal.c, others by the
 * server's prepared expressions.
 *
 * Then the server's node is called, with nobody below it who has another row.  Without
 * groups it takes its states from what each aggregate begins with: which
 * for that call is what we have come to.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "batch/batch.h"
#include "catalog/pg_aggregate.h"
#include "executor/execExpr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* Of so many rows, are more than half the first of their group?  Then ours is a detour. */
#define ENOUGH_TO_TELL 20000

#define MAX_STEPS 16

typedef enum Kind
{
	CALL,						/* of the transition function */
	COUNT,
	SUM_INT2, SUM_INT4,			/* in bigint */
	AVG_INT2, AVG_INT4,			/* an array of number and sum */
	SUM_INT8,					/* and avg: a MotSum */
	SUM_NUMERIC,				/* and avg: a MotSum */
	SUM_FLOAT4, SUM_FLOAT8,
	MAX_INT2, MAX_INT4, MAX_INT8, MAX_OID, MAX_FLOAT4, MAX_FLOAT8,
	MIN_INT2, MIN_INT4, MIN_INT8, MIN_OID, MIN_FLOAT4, MIN_FLOAT8
} Kind;

typedef struct Argument
{
	int			column;			/* of the input's slot, from 0; -1: computed */
	ExprState  *expr;
} Argument;

/* A numeric argument as a program on a stack. */
typedef enum StepKind
{
	STEP_COLUMN, STEP_CONST, STEP_ADD, STEP_SUBTRACT, STEP_MULTIPLY
} StepKind;

typedef struct Step
{
	StepKind	kind;
	int			column;
	MotDecimal	constant;
} Step;

typedef struct Transition
{
	Kind		kind;
	AggStatePerTrans pertrans;
	ExprState  *filter;
	int			nargs;
	Argument   *args;
	int			sum;			/* which MotSum of a group's, or -1 */
	int			nsteps;			/* 0: by the argument's expression */
	Step	   *steps;
} Transition;

/* (as in numeric.c) */
typedef struct CountAndSum
{
	int64		count;
	int64		sum;
} CountAndSum;

typedef struct MotFill
{
	AggState   *agg;
	bool		hashed;
	int			columns;		/* of the input's slot that are looked at: up
								 * to this one */
	Bitmapset  *wanted;			/* ... and which, from 0 */
	MotRows    *rows;			/* where they come from, or NULL: from a node */
	const Datum *values;		/* of the present row */
	const bool *nulls;
	int			nsums;
	MotGroups  *groups;
	Transition *transitions;

	/* without groups */
	ExprContext *memory;		/* of states, as long as they are ours */
	AggStatePerGroup states;
	MotSum	   *sums;
} MotFill;

/* what the server's int2_avg_accum and int4_avg_accum take for granted */
#define COUNT_AND_SUM(value) ((CountAndSum *) ARR_DATA_PTR(DatumGetArrayTypeP(value)))

/* ---------------------------------------------------------------- may it be? */

static bool
has_subselects(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	return expression_tree_walker(node, has_subselects, context);
}

/* columns that are not within aggregates */
static bool
has_columns(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return true;
	if (IsA(node, Aggref))
		return false;
	return expression_tree_walker(node, has_columns, context);
}

const char *
MotFillWhyNot(const AggState *agg)
{
	const Agg  *plan = (const Agg *) agg->ss.ps.plan;

	if (plan->groupingSets != NIL || plan->chain != NIL || agg->num_hashes > 1)
		return "there are grouping sets";
	if (plan->aggstrategy != AGG_HASHED && plan->aggstrategy != AGG_PLAIN)
		return "rows come sorted by group";
	if (DO_AGGSPLIT_COMBINE(plan->aggsplit))
		return "it combines what workers have aggregated";
	if (plan->numCols > MOT_MAX_KEYS)
		return "it groups by many columns";
	for (int i = 0; i < agg->numtrans; i++)
	{
		const AggStatePerTrans pertrans = &agg->pertrans[i];
		const Aggref *aggref = pertrans->aggref;

		if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggdirectargs != NIL)
			return "an aggregate is of ordered or hypothetical sets";
		if (pertrans->numSortCols > 0)
			return "an aggregate has DISTINCT or ORDER BY";
		if (has_subselects((Node *) aggref->args, NULL) || has_subselects((Node *) aggref->aggfilter, NULL))
			return "sub-selects are evaluated for each row";
	}
	if (plan->aggstrategy == AGG_PLAIN &&
		(has_columns((Node *) plan->plan.targetlist, NULL) || has_columns((Node *) plan->plan.qual, NULL)))
		return "it shows columns of a row";
	if (outerPlan(plan)->plan_rows < MOT_BATCH_MIN_ROWS)
		return "few rows are expected";
	return NULL;
}

/* ---------------------------------------------------------------- building */

static Kind
kind_of(const AggStatePerTrans pertrans)
{
	/* another's may begin with another state */
	if (pertrans->aggref->aggfnoid >= FirstGenbkiObjectId)
		return CALL;
	switch (pertrans->transfn_oid)
	{
		case F_INT8INC:
		case F_INT8INC_ANY:
			return COUNT;
		case F_INT2_SUM:
			return SUM_INT2;
		case F_INT4_SUM:
			return SUM_INT4;
		case F_INT2_AVG_ACCUM:
			return AVG_INT2;
		case F_INT4_AVG_ACCUM:
			return AVG_INT4;
		case F_INT8_AVG_ACCUM:
			return SUM_INT8;
		case F_NUMERIC_AVG_ACCUM:
			return SUM_NUMERIC;
		case F_FLOAT4PL:
			return SUM_FLOAT4;
		case F_FLOAT8PL:
			return SUM_FLOAT8;
		case F_INT2LARGER:
			return MAX_INT2;
		case F_INT4LARGER:
		case F_DATE_LARGER:
			return MAX_INT4;
		case F_INT8LARGER:
		case F_TIME_LARGER:
		case F_TIMESTAMP_LARGER:
		case F_TIMESTAMPTZ_LARGER:
		case F_CASHLARGER:
			return MAX_INT8;
		case F_OIDLARGER:
			return MAX_OID;
		case F_FLOAT4LARGER:
			return MAX_FLOAT4;
		case F_FLOAT8LARGER:
			return MAX_FLOAT8;
		case F_INT2SMALLER:
			return MIN_INT2;
		case F_INT4SMALLER:
		case F_DATE_SMALLER:
			return MIN_INT4;
		case F_INT8SMALLER:
		case F_TIME_SMALLER:
		case F_TIMESTAMP_SMALLER:
		case F_TIMESTAMPTZ_SMALLER:
		case F_CASHSMALLER:
			return MIN_INT8;
		case F_OIDSMALLER:
			return MIN_OID;
		case F_FLOAT4SMALLER:
			return MIN_FLOAT4;
		case F_FLOAT8SMALLER:
			return MIN_FLOAT8;
		default:
			return CALL;
	}
}

/* the column of the input that an expression is, from 0; or -1 */
static int
column_of(Node *expr)
{
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	if (IsA(expr, Var) && ((Var *) expr)->varno == OUTER_VAR && ((Var *) expr)->varattno > 0)
		return ((Var *) expr)->varattno - 1;
	return -1;
}

static void
want(MotFill *fill, int column)
{
	fill->columns = Max(fill->columns, column + 1);
	fill->wanted = bms_add_member(fill->wanted, column);
}

/* Steps that compute a numeric; false: it has something else in it. */
static bool
make_steps(MotFill *fill, Transition *t, Node *expr)
{
	Step	   *step;
	int			column;

	if (t->nsteps >= MAX_STEPS)
		return false;
	if ((column = column_of(expr)) >= 0)
	{
		step = &t->steps[t->nsteps++];
		step->kind = STEP_COLUMN;
		step->column = column;
		want(fill, column);
		return true;
	}
	if (IsA(expr, Const) && !((Const *) expr)->constisnull)
	{
		step = &t->steps[t->nsteps++];
		step->kind = STEP_CONST;
		return MotDecimalRead(((Const *) expr)->constvalue, &step->constant);
	}
	if (IsA(expr, OpExpr) && list_length(((OpExpr *) expr)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) expr;
		StepKind	kind;

		switch (op->opfuncid)
		{
			case F_NUMERIC_ADD:
				kind = STEP_ADD;
				break;
			case F_NUMERIC_SUB:
				kind = STEP_SUBTRACT;
				break;
			case F_NUMERIC_MUL:
				kind = STEP_MULTIPLY;
				break;
			default:
				return false;
		}
		if (!make_steps(fill, t, linitial(op->args)) || !make_steps(fill, t, lsecond(op->args)) ||
			t->nsteps >= MAX_STEPS)
			return false;
		t->steps[t->nsteps++].kind = kind;
		return true;
	}
	return false;
}

static void
make_transition(MotFill *fill, Transition *t, AggStatePerTrans pertrans)
{
	PlanState  *ps = &fill->agg->ss.ps;
	Aggref	   *aggref = pertrans->aggref;
	ListCell   *lc;
	int			i = 0;

	t->pertrans = pertrans;
	t->kind = kind_of(pertrans);
	t->sum = t->kind == SUM_INT8 || t->kind == SUM_NUMERIC ? fill->nsums++ : -1;
	if (aggref->aggfilter != NULL)
		t->filter = ExecInitQual(list_make1(aggref->aggfilter), ps);
	t->nargs = pertrans->numTransInputs;
	Assert(t->nargs == list_length(aggref->args));
	t->args = palloc0(Max(1, t->nargs) * sizeof(Argument));
	foreach(lc, aggref->args)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		Argument   *arg = &t->args[i++];

		arg->column = column_of((Node *) expr);
		if (arg->column >= 0)
			want(fill, arg->column);
		else
			arg->expr = ExecInitExpr(expr, ps);
	}
	if (t->kind == SUM_NUMERIC)
	{
		t->steps = palloc0(MAX_STEPS * sizeof(Step));
		if (!make_steps(fill, t, (Node *) linitial_node(TargetEntry, aggref->args)->expr))
			t->nsteps = 0;
	}
}

/* The rows by machine code, if that pays: keys and arguments are where it puts them. */
static void
make_rows(MotFill *fill)
{
	int		   *position = palloc0(Max(1, fill->columns) * sizeof(int));

	fill->rows = MotRowsMake(outerPlanState(&fill->agg->ss.ps), fill->wanted, position);
	if (fill->rows == NULL)
		return;
	fill->values = fill->rows->values;
	fill->nulls = fill->rows->nulls;
	if (fill->hashed)
		MotGroupsPlace(fill->groups, position);
	for (int i = 0; i < fill->agg->numtrans; i++)
	{
		Transition *t = &fill->transitions[i];

		for (int a = 0; a < t->nargs; a++)
			if (t->args[a].column >= 0)
				t->args[a].column = position[t->args[a].column];
		for (int step = 0; step < t->nsteps; step++)
			if (t->steps[step].kind == STEP_COLUMN)
				t->steps[step].column = position[t->steps[step].column];
	}
}

/* In the query's memory. */
static MotFill *
make_fill(AggState *agg)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(agg->ss.ps.state->es_query_cxt);
	MotFill    *fill = palloc0(sizeof(MotFill));
	const Agg  *plan = (const Agg *) agg->ss.ps.plan;

	fill->agg = agg;
	fill->hashed = plan->aggstrategy == AGG_HASHED;
	fill->transitions = palloc0(Max(1, agg->numtrans) * sizeof(Transition));
	for (int i = 0; i < agg->numtrans; i++)
		make_transition(fill, &fill->transitions[i], &agg->pertrans[i]);
	if (fill->hashed)
	{
		for (int i = 0; i < plan->numCols; i++)
			want(fill, plan->grpColIdx[i] - 1);
		fill->groups = MotGroupsMake(agg, fill->nsums * sizeof(MotSum));
	}
	else
	{
		fill->memory = CreateExprContext(agg->ss.ps.state);
		fill->states = palloc0(Max(1, agg->numtrans) * sizeof(AggStatePerGroupData));
		fill->sums = palloc0(Max(1, fill->nsums) * sizeof(MotSum));
	}
	make_rows(fill);
	MemoryContextSwitchTo(oldcxt);
	return fill;
}

/* ---------------------------------------------------------------- one row */

static inline Datum
argument(MotFill *fill, const Argument *arg, bool *isnull)
{
	if (likely(arg->column >= 0))
	{
		*isnull = fill->nulls[arg->column];
		return fill->values[arg->column];
	}
	return ExecEvalExprSwitchContext(arg->expr, fill->agg->tmpcontext, isnull);
}

/* As nodeAgg.c's advance_transition_function; the arguments are in their places. */
static void
call(MotFill *fill, Transition *t, AggStatePerGroup state)
{
	AggState   *agg = fill->agg;
	AggStatePerTrans pertrans = t->pertrans;
	FunctionCallInfo fcinfo = pertrans->transfn_fcinfo;
	MemoryContext oldcxt;
	Datum		value;

	if (pertrans->transfn.fn_strict)
	{
		for (int i = 1; i <= t->nargs; i++)
			if (fcinfo->args[i].isnull)
				return;
		if (state->noTransValue)
		{
			oldcxt = MemoryContextSwitchTo(agg->curaggcontext->ecxt_per_tuple_memory);
			state->transValue = datumCopy(fcinfo->args[1].value, pertrans->transtypeByVal,
										  pertrans->transtypeLen);
			state->transValueIsNull = state->noTransValue = false;
			MemoryContextSwitchTo(oldcxt);
			return;
		}
		if (state->transValueIsNull)
			return;
	}
	oldcxt = MemoryContextSwitchTo(agg->tmpcontext->ecxt_per_tuple_memory);
	agg->curpertrans = pertrans;
	fcinfo->args[0].value = state->transValue;
	fcinfo->args[0].isnull = state->transValueIsNull;
	fcinfo->isnull = false;
	value = FunctionCallInvoke(fcinfo);
	agg->curpertrans = NULL;
	if (!pertrans->transtypeByVal && DatumGetPointer(value) != DatumGetPointer(state->transValue))
		value = ExecAggTransReparent(agg, pertrans, value, fcinfo->isnull,
									 state->transValue, state->transValueIsNull);
	state->transValue = value;
	state->transValueIsNull = fcinfo->isnull;
	MemoryContextSwitchTo(oldcxt);
}

/* A sum becomes the server's state. */
static void
hand_over(MotFill *fill, Transition *t, AggStatePerGroup state, MotSum *sum)
{
	MemoryContext oldcxt;

	if (sum->handed || !sum->seen)
		return;
	sum->handed = true;
	oldcxt = MemoryContextSwitchTo(fill->agg->curaggcontext->ecxt_per_tuple_memory);
	state->transValue = MotSumState(sum, t->kind == SUM_NUMERIC, fill->agg);
	state->transValueIsNull = state->noTransValue = false;
	MemoryContextSwitchTo(oldcxt);
}

/* False: it is not for us, or null (*isnull). */
static bool
compute(const MotFill *fill, const Transition *t, MotDecimal *result, bool *isnull)
{
	MotDecimal	stack[MAX_STEPS];
	int			n = 0;

	*isnull = false;
	for (int i = 0; i < t->nsteps; i++)
	{
		const Step *step = &t->steps[i];

		switch (step->kind)
		{
			case STEP_COLUMN:
				if (unlikely(fill->nulls[step->column]))
				{
					/*
					 * all operators are strict, and raise nothing for what we
					 * take
					 */
					*isnull = true;
					stack[n].m = stack[n].k = stack[n].dscale = 0;
					n++;
				}
				else if (!MotDecimalRead(fill->values[step->column], &stack[n++]))
					return false;
				break;
			case STEP_CONST:
				stack[n++] = step->constant;
				break;
			case STEP_MULTIPLY:
				n--;
				if (!MotDecimalMultiply(&stack[n - 1], &stack[n], &stack[n - 1]))
					return false;
				break;
			default:
				n--;
				if (!MotDecimalAdd(&stack[n - 1], &stack[n], step->kind == STEP_SUBTRACT, &stack[n - 1]))
					return false;
				break;
		}
	}
	*result = stack[0];
	return true;
}

static void
sum_numeric(MotFill *fill, Transition *t, AggStatePerGroup state, MotSum *sum)
{
	FunctionCallInfo fcinfo = t->pertrans->transfn_fcinfo;
	MotDecimal	decimal;
	bool		isnull;

	if (likely(!sum->handed))
	{
		sum->seen = true;
		if (likely(t->nsteps > 0))
		{
			if (likely(compute(fill, t, &decimal, &isnull) && (isnull || MotSumAdd(sum, &decimal))))
				return;
		}
		else
		{
			Datum		value = argument(fill, &t->args[0], &isnull);

			if (likely(isnull || (MotDecimalRead(value, &decimal) && MotSumAdd(sum, &decimal))))
				return;
			fcinfo->args[1].value = value;
			fcinfo->args[1].isnull = false;
			hand_over(fill, t, state, sum);
			call(fill, t, state);
			return;
		}
		hand_over(fill, t, state, sum);
	}
	fcinfo->args[1].value = argument(fill, &t->args[0], &fcinfo->args[1].isnull);
	call(fill, t, state);
}

static inline void
sum_int8(MotSum *sum, int64 value)
{
	sum->sum += value;
	sum->n++;
}

/* the first value as it is, then those that beat what there is */
#define EXTREME(op, to) \
	if (state->noTransValue) \
	{ \
		state->transValue = value; \
		state->transValueIsNull = state->noTransValue = false; \
	} \
	else if (!(to(state->transValue) op to(value))) \
		state->transValue = value

#define EXTREME_FLOAT(keeps, to) \
	if (state->noTransValue) \
	{ \
		state->transValue = value; \
		state->transValueIsNull = state->noTransValue = false; \
	} \
	else if (!keeps(to(state->transValue), to(value))) \
		state->transValue = value

/* Advance all of a group's states by the present row. */
static inline void
advance(MotFill *fill, AggStatePerGroup states, MotSum *sums)
{
	int			n = fill->agg->numtrans;

	for (int i = 0; i < n; i++)
	{
		Transition *t = &fill->transitions[i];
		AggStatePerGroup state = &states[i];
		Datum		value = (Datum) 0;
		bool		isnull = false;

		if (t->filter != NULL && !ExecQual(t->filter, fill->agg->tmpcontext))
			continue;
		if (t->kind == SUM_NUMERIC)
		{
			sum_numeric(fill, t, state, &sums[t->sum]);
			continue;
		}
		if (t->kind == CALL)
		{
			FunctionCallInfo fcinfo = t->pertrans->transfn_fcinfo;

			for (int a = 0; a < t->nargs; a++)
				fcinfo->args[a + 1].value = argument(fill, &t->args[a], &fcinfo->args[a + 1].isnull);
			call(fill, t, state);
			continue;
		}
		if (t->nargs > 0)
			value = argument(fill, &t->args[0], &isnull);
		if (t->kind == SUM_INT8)
			sums[t->sum].seen = true;
		if (isnull)
			continue;
		switch (t->kind)
		{
			case COUNT:
				state->transValue = Int64GetDatum(DatumGetInt64(state->transValue) + 1);
				break;
			case SUM_INT2:
			case SUM_INT4:
				{
					/* (its function does not check for overflow either) */
					int64		by = t->kind == SUM_INT2 ? DatumGetInt16(value) : DatumGetInt32(value);

					if (!state->transValueIsNull)
						by = (int64) ((uint64) by + (uint64) DatumGetInt64(state->transValue));
					state->transValue = Int64GetDatum(by);
					state->transValueIsNull = state->noTransValue = false;
					break;
				}
			case AVG_INT2:
			case AVG_INT4:
				{
					CountAndSum *pair = COUNT_AND_SUM(state->transValue);

					pair->count++;
					pair->sum += t->kind == AVG_INT2 ? DatumGetInt16(value) : DatumGetInt32(value);
					break;
				}
			case SUM_INT8:
				sum_int8(&sums[t->sum], DatumGetInt64(value));
				break;
			case SUM_FLOAT4:
				if (!state->noTransValue)
					value = Float4GetDatum(float4_pl(DatumGetFloat4(state->transValue), DatumGetFloat4(value)));
				state->transValue = value;
				state->transValueIsNull = state->noTransValue = false;
				break;
			case SUM_FLOAT8:
				if (!state->noTransValue)
					value = Float8GetDatum(float8_pl(DatumGetFloat8(state->transValue), DatumGetFloat8(value)));
				state->transValue = value;
				state->transValueIsNull = state->noTransValue = false;
				break;
			case MAX_INT2:
				EXTREME(>, DatumGetInt16);
				break;
			case MAX_INT4:
				EXTREME(>, DatumGetInt32);
				break;
			case MAX_INT8:
				EXTREME(>, DatumGetInt64);
				break;
			case MAX_OID:
				EXTREME(>, DatumGetObjectId);
				break;
			case MAX_FLOAT4:
				EXTREME_FLOAT(float4_gt, DatumGetFloat4);
				break;
			case MAX_FLOAT8:
				EXTREME_FLOAT(float8_gt, DatumGetFloat8);
				break;
			case MIN_INT2:
				EXTREME(<, DatumGetInt16);
				break;
			case MIN_INT4:
				EXTREME(<, DatumGetInt32);
				break;
			case MIN_INT8:
				EXTREME(<, DatumGetInt64);
				break;
			case MIN_OID:
				EXTREME(<, DatumGetObjectId);
				break;
			case MIN_FLOAT4:
				EXTREME_FLOAT(float4_lt, DatumGetFloat4);
				break;
			case MIN_FLOAT8:
				EXTREME_FLOAT(float8_lt, DatumGetFloat8);
				break;
			case CALL:
			case SUM_NUMERIC:
				break;
		}
	}
}

/* ---------------------------------------------------------------- all rows */

static void
hand_over_all(MotFill *fill, AggStatePerGroup states, MotSum *sums)
{
	for (int i = 0; i < fill->agg->numtrans; i++)
		if (fill->transitions[i].sum >= 0)
			hand_over(fill, &fill->transitions[i], &states[i], &sums[fill->transitions[i].sum]);
}

static void
hand_over_group(MotGroup *group, void *arg)
{
	MotFill    *fill = (MotFill *) arg;

	hand_over_all(fill, group->states, MotGroupExtra(group, ((Agg *) fill->agg->ss.ps.plan)->numCols));
}

/* As hash_agg_check_limits: has the server's table become as large as it may? */
static bool
is_full(const AggState *agg)
{
	return agg->hash_ngroups_current > agg->hash_ngroups_limit ||
		MemoryContextMemAllocated(agg->hash_metacxt, true) +
		MemoryContextMemAllocated(agg->hashcontext->ecxt_per_tuple_memory, true) > agg->hash_mem_limit;
}

/* The next row, its columns there as far as they are looked at. */
static inline TupleTableSlot *
next_row(MotFill *fill, PlanState *below)
{
	TupleTableSlot *slot;

	ResetExprContext(fill->agg->tmpcontext);
	CHECK_FOR_INTERRUPTS();
	if (fill->rows != NULL)
	{
		slot = MotRowsNext(fill->rows, fill->agg->tmpcontext);
		if (slot == NULL)
			return NULL;
	}
	else
	{
		slot = ExecProcNode(below);
		if (TupIsNull(slot))
			return NULL;
		slot_getsomeattrs(slot, fill->columns);
		fill->values = slot->tts_values;
		fill->nulls = slot->tts_isnull;
	}
	fill->agg->tmpcontext->ecxt_outertuple = slot;
	return slot;
}

/* False: there are more rows, and the server's node is to take them in. */
static bool
fill_groups(MotFill *fill, PlanState *below)
{
	AggState   *agg = fill->agg;
	int			nkeys = ((Agg *) agg->ss.ps.plan)->numCols;
	MemoryContext rows = agg->tmpcontext->ecxt_per_tuple_memory;
	TupleTableSlot *slot;
	uint64		n = 0;
	bool		more = false;

	agg->current_set = 0;
	agg->curaggcontext = agg->hashcontext;
	MotGroupsStart(fill->groups);
	while (!more && (slot = next_row(fill, below)) != NULL)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(rows);
		bool		isnew;
		MotGroup   *group = MotGroupFind(fill->groups, slot, fill->values, fill->nulls, &isnew);

		MemoryContextSwitchTo(oldcxt);
		advance(fill, group->states, MotGroupExtra(group, nkeys));
		n++;
		if (unlikely(isnew))
			more = is_full(agg) || (n > ENOUGH_TO_TELL && MotGroupsCount(fill->groups) > n / 2);
	}
	if (fill->nsums > 0)
		MotGroupsEach(fill->groups, hand_over_group, fill);
	MotGroupsEnd(fill->groups);
	ResetExprContext(agg->tmpcontext);
	return !more;
}

static void
fill_plain(MotFill *fill, PlanState *below)
{
	AggState   *agg = fill->agg;
	TupleTableSlot *slot;

	ReScanExprContext(fill->memory);
	agg->current_set = 0;
	agg->curaggcontext = fill->memory;
	memset(fill->sums, 0, fill->nsums * sizeof(MotSum));
	for (int i = 0; i < agg->numtrans; i++)
	{
		AggStatePerTrans pertrans = &agg->pertrans[i];
		MemoryContext oldcxt = MemoryContextSwitchTo(fill->memory->ecxt_per_tuple_memory);

		fill->states[i].transValue = pertrans->initValueIsNull ? pertrans->initValue :
			datumCopy(pertrans->initValue, pertrans->transtypeByVal, pertrans->transtypeLen);
		fill->states[i].transValueIsNull = fill->states[i].noTransValue = pertrans->initValueIsNull;
		MemoryContextSwitchTo(oldcxt);
	}
	while ((slot = next_row(fill, below)) != NULL)
		advance(fill, fill->states, fill->sums);
	hand_over_all(fill, fill->states, fill->sums);
	ResetExprContext(agg->tmpcontext);
}

/* ----------------------------------------------------------- the server's node */

static TupleTableSlot *
no_more(PlanState *ps)
{
	return NULL;
}

/* The server's node, when the rows below have all been taken. */
static TupleTableSlot *
finish(MotTakenNode *taken, PlanState *below)
{
	ExecProcNodeMtd was = below->ExecProcNode;
	TupleTableSlot *result;

	below->ExecProcNode = no_more;
	PG_TRY();
	{
		result = taken->below(taken->ps);
	}
	PG_FINALLY();
	{
		below->ExecProcNode = was;
	}
	PG_END_TRY();
	return result;
}

static void
exchange_initial(MotFill *fill)
{
	for (int i = 0; i < fill->agg->numtrans; i++)
	{
		AggStatePerTrans pertrans = &fill->agg->pertrans[i];
		AggStatePerGroup state = &fill->states[i];
		Datum		value = pertrans->initValue;
		bool		isnull = pertrans->initValueIsNull;

		pertrans->initValue = state->transValue;
		pertrans->initValueIsNull = state->transValueIsNull;
		state->transValue = value;
		state->transValueIsNull = isnull;
	}
}

/* An Agg node's function. */
TupleTableSlot *
MotFillAgg(PlanState *ps)
{
	MotTakenNode *taken = MotTakenFind(ps);
	AggState   *agg = (AggState *) ps;
	PlanState  *below = outerPlanState(ps);
	MotFill    *fill;
	TupleTableSlot *result;

	if (agg->agg_done || agg->table_filled)
		return taken->below(ps);
	if (taken->fill == NULL)
		taken->fill = make_fill(agg);
	fill = taken->fill;
	if (fill->rows != NULL)
		MotRowsStart(fill->rows);

	if (fill->hashed)
		return fill_groups(fill, below) ? finish(taken, below) : taken->below(ps);

	fill_plain(fill, below);
	exchange_initial(fill);
	PG_TRY();
	{
		result = finish(taken, below);
	}
	PG_FINALLY();
	{
		exchange_initial(fill);
	}
	PG_END_TRY();
	return result;
}
