/*-------------------------------------------------------------------------
 *
 * transition.c
 *	  An aggregate's transition.
 *
 * States that are a number, or two, are advanced as the server has them; sums of numeric and
 * bigint, whose states only numeric.c knows, are ours until the input has
 * ended (decimal.c); all other transition functions are called as nodeAgg.c
 * calls them.  Arguments that are columns are taken from the row, those that
 * add and multiply numeric for a sum are computed by decimal.c, others by the
 * server's prepared expressions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "batch/fill.h"
#include "catalog/pg_aggregate.h"
#include "statement/statement.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/fmgroids.h"

/* (as in numeric.c) */
typedef struct CountAndSum
{
	int64		count;
	int64		sum;
} CountAndSum;

/* what the server's int2_avg_accum and int4_avg_accum take for granted */
#define COUNT_AND_SUM(value) ((CountAndSum *) ARR_DATA_PTR(DatumGetArrayTypeP(value)))

/* ---------------------------------------------------------------- building */

static const struct
{
	Oid			function;
	MotFillKind kind;
}			kinds[] = {
	{F_INT8INC, COUNT},
	{F_INT8INC_ANY, COUNT},
	{F_INT2_SUM, SUM_INT2},
	{F_INT4_SUM, SUM_INT4},
	{F_INT2_AVG_ACCUM, AVG_INT2},
	{F_INT4_AVG_ACCUM, AVG_INT4},
	{F_INT8_AVG_ACCUM, SUM_INT8},
	{F_NUMERIC_AVG_ACCUM, SUM_NUMERIC},
	{F_FLOAT4PL, SUM_FLOAT4},
	{F_FLOAT8PL, SUM_FLOAT8},
	{F_INT2LARGER, MAX_INT2},
	{F_INT4LARGER, MAX_INT4},
	{F_DATE_LARGER, MAX_INT4},
	{F_INT8LARGER, MAX_INT8},
	{F_TIME_LARGER, MAX_INT8},
	{F_TIMESTAMP_LARGER, MAX_INT8},
	{F_TIMESTAMPTZ_LARGER, MAX_INT8},
	{F_CASHLARGER, MAX_INT8},
	{F_OIDLARGER, MAX_OID},
	{F_FLOAT4LARGER, MAX_FLOAT4},
	{F_FLOAT8LARGER, MAX_FLOAT8},
	{F_INT2SMALLER, MIN_INT2},
	{F_INT4SMALLER, MIN_INT4},
	{F_DATE_SMALLER, MIN_INT4},
	{F_INT8SMALLER, MIN_INT8},
	{F_TIME_SMALLER, MIN_INT8},
	{F_TIMESTAMP_SMALLER, MIN_INT8},
	{F_TIMESTAMPTZ_SMALLER, MIN_INT8},
	{F_CASHSMALLER, MIN_INT8},
	{F_OIDSMALLER, MIN_OID},
	{F_FLOAT4SMALLER, MIN_FLOAT4},
	{F_FLOAT8SMALLER, MIN_FLOAT8}
};

static MotFillKind
kind_of(const AggStatePerTrans pertrans)
{
	/* another's may begin with another state */
	if (pertrans->aggref->aggfnoid >= FirstGenbkiObjectId)
		return CALL;
	for (int i = 0; i < lengthof(kinds); i++)
		if (kinds[i].function == pertrans->transfn_oid)
			return kinds[i].kind;
	return CALL;
}

/* the column of the input that an expression is, from 0; or -1 */
static int
column_of(Node *expr)
{
	Var		   *var = MotVarOf(expr, OUTER_VAR);

	return var != NULL ? var->varattno - 1 : -1;
}

void
MotFillWant(MotFill *fill, int column)
{
	fill->columns = Max(fill->columns, column + 1);
	fill->wanted = bms_add_member(fill->wanted, column);
}

/* Steps that compute a numeric; false: it has something else in it. */
static bool
make_steps(MotFill *fill, MotTransition *t, Node *expr)
{
	MotStep    *step;
	int			column;

	if (t->nsteps >= MOT_MAX_STEPS)
		return false;
	if ((column = column_of(expr)) >= 0)
	{
		step = &t->steps[t->nsteps++];
		step->kind = MOT_STEP_COLUMN;
		step->column = column;
		step->var = MotVarOf(expr, OUTER_VAR);
		MotFillWant(fill, column);
		return true;
	}
	if (IsA(expr, Const) && !((Const *) expr)->constisnull)
	{
		step = &t->steps[t->nsteps++];
		step->kind = MOT_STEP_CONST;
		return MotDecimalRead(((Const *) expr)->constvalue, &step->constant);
	}
	if (IsA(expr, OpExpr) && list_length(((OpExpr *) expr)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) expr;
		MotStepKind kind;

		switch (op->opfuncid)
		{
			case F_NUMERIC_ADD:
				kind = MOT_STEP_ADD;
				break;
			case F_NUMERIC_SUB:
				kind = MOT_STEP_SUBTRACT;
				break;
			case F_NUMERIC_MUL:
				kind = MOT_STEP_MULTIPLY;
				break;
			default:
				return false;
		}
		if (!make_steps(fill, t, linitial(op->args)) || !make_steps(fill, t, lsecond(op->args)) ||
			t->nsteps >= MOT_MAX_STEPS)
			return false;
		t->steps[t->nsteps++].kind = kind;
		return true;
	}
	return false;
}

/*
 * Digits of base 10000 behind the point of whatever the steps come to, by the columns' types; -1:
 * they do not say.  Machine code adds to sums of that form.
 */
static int
digits_of(const MotTransition *t)
{
	int			stack[MOT_MAX_STEPS];
	int			n = 0;

	for (int i = 0; i < t->nsteps; i++)
	{
		const MotStep *step = &t->steps[i];

		switch (step->kind)
		{
			case MOT_STEP_COLUMN:
				if (step->var->vartypmod < (int32) VARHDRSZ)
					return -1;
				stack[n++] = MotDecimalPlaces(step->var->vartypmod);
				break;
			case MOT_STEP_CONST:
				stack[n++] = step->constant.k;
				break;
			case MOT_STEP_MULTIPLY:
				n--;
				stack[n - 1] += stack[n];
				break;
			default:
				n--;
				stack[n - 1] = Max(stack[n - 1], stack[n]);
				break;
		}
	}
	return n == 1 ? stack[0] : -1;
}

void
MotTransitionMake(MotFill *fill, int number)
{
	MotTransition *t = &fill->transitions[number];
	AggStatePerTrans pertrans = &fill->agg->pertrans[number];
	PlanState  *ps = &fill->agg->ss.ps;
	Aggref	   *aggref = pertrans->aggref;
	ListCell   *lc;
	int			i = 0;

	t->fill = fill;
	t->number = number;
	t->pertrans = pertrans;
	t->kind = kind_of(pertrans);
	t->sum = t->kind == SUM_INT8 || t->kind == SUM_NUMERIC ? fill->nsums++ : -1;
	if (aggref->aggfilter != NULL)
		t->filter = ExecInitQual(list_make1(aggref->aggfilter), ps);
	t->nargs = pertrans->numTransInputs;
	Assert(t->nargs == list_length(aggref->args));
	t->args = palloc0(Max(1, t->nargs) * sizeof(MotArgument));
	foreach(lc, aggref->args)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		MotArgument *arg = &t->args[i++];

		arg->node = expr;
		arg->place = -1;
		arg->column = column_of((Node *) expr);
		if (arg->column >= 0)
			MotFillWant(fill, arg->column);
		else
			arg->expr = ExecInitExpr(expr, ps);
	}
	if (t->kind == SUM_NUMERIC)
	{
		t->steps = palloc0(MOT_MAX_STEPS * sizeof(MotStep));
		if (!make_steps(fill, t, (Node *) linitial_node(TargetEntry, aggref->args)->expr))
			t->nsteps = 0;
		t->digits = digits_of(t);
	}
}

/* ---------------------------------------------------------------- one row */

static inline Datum
argument(MotFill *fill, const MotArgument *arg, bool *isnull)
{
	if (likely(arg->column >= 0))
	{
		*isnull = fill->nulls[arg->column];
		return fill->values[arg->column];
	}
	if (arg->place >= 0)
	{
		*isnull = fill->context.isnull[arg->place];
		return fill->context.values[arg->place];
	}
	MotFillShow(fill);
	return ExecEvalExprSwitchContext(arg->expr, fill->agg->tmpcontext, isnull);
}

/* A sum becomes the server's state. */
void
MotTransitionHandOver(MotTransition *t, AggStatePerGroup state, MotSum *sum)
{
	AggState   *agg = t->fill->agg;
	MemoryContext oldcxt;

	if (sum->handed || !sum->seen)
		return;
	sum->handed = true;
	oldcxt = MemoryContextSwitchTo(agg->curaggcontext->ecxt_per_tuple_memory);
	state->transValue = MotSumState(sum, t->kind == SUM_NUMERIC, agg);
	state->transValueIsNull = state->noTransValue = false;
	MemoryContextSwitchTo(oldcxt);
}

/* False: it is not for us, or null (*isnull). */
static bool
compute(const MotFill *fill, const MotTransition *t, MotDecimal *result, bool *isnull)
{
	MotDecimal	stack[MOT_MAX_STEPS];
	int			n = 0;

	*isnull = false;
	for (int i = 0; i < t->nsteps; i++)
	{
		const MotStep *step = &t->steps[i];

		switch (step->kind)
		{
			case MOT_STEP_COLUMN:
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
			case MOT_STEP_CONST:
				stack[n++] = step->constant;
				break;
			case MOT_STEP_MULTIPLY:
				n--;
				if (!MotDecimalMultiply(&stack[n - 1], &stack[n], &stack[n - 1]))
					return false;
				break;
			default:
				n--;
				if (!MotDecimalAdd(&stack[n - 1], &stack[n], step->kind == MOT_STEP_SUBTRACT, &stack[n - 1]))
					return false;
				break;
		}
	}
	*result = stack[0];
	return true;
}

static void
sum_numeric(MotFill *fill, MotTransition *t, AggStatePerGroup state, MotSum *sum)
{
	FunctionCallInfo fcinfo = t->pertrans->transfn_fcinfo;
	MotDecimal	decimal;
	bool		isnull;

	if (likely(!sum->handed))
	{
		if (!sum->seen)
			sum->k = Max(0, t->digits);
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
			MotTransitionHandOver(t, state, sum);
			MotAggregateCall(fill->agg, t->pertrans, state);
			return;
		}
		MotTransitionHandOver(t, state, sum);
	}
	fcinfo->args[1].value = argument(fill, &t->args[0], &fcinfo->args[1].isnull);
	MotAggregateCall(fill->agg, t->pertrans, state);
}

/* the first value as it is, then those that beat what there is */
#define EXTREME(keeps) \
	if (state->noTransValue) \
	{ \
		state->transValue = value; \
		state->transValueIsNull = state->noTransValue = false; \
	} \
	else if (!(keeps)) \
		state->transValue = value

/* Advance a state by the present row, which has passed the aggregate's filter. */
void
MotTransitionAdvance(MotTransition *t, AggStatePerGroup state, MotSum *sum)
{
	MotFill    *fill = t->fill;
	Datum		value = (Datum) 0;
	bool		isnull = false;

	if (t->kind == SUM_NUMERIC)
	{
		sum_numeric(fill, t, state, sum);
		return;
	}
	if (t->kind == CALL)
	{
		FunctionCallInfo fcinfo = t->pertrans->transfn_fcinfo;

		for (int a = 0; a < t->nargs; a++)
			fcinfo->args[a + 1].value = argument(fill, &t->args[a], &fcinfo->args[a + 1].isnull);
		MotAggregateCall(fill->agg, t->pertrans, state);
		return;
	}
	if (t->nargs > 0)
		value = argument(fill, &t->args[0], &isnull);
	if (t->kind == SUM_INT8)
		sum->seen = true;
	if (isnull)
		return;
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
			sum->sum += DatumGetInt64(value);
			sum->n++;
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
			EXTREME(DatumGetInt16(state->transValue) > DatumGetInt16(value));
			break;
		case MAX_INT4:
			EXTREME(DatumGetInt32(state->transValue) > DatumGetInt32(value));
			break;
		case MAX_INT8:
			EXTREME(DatumGetInt64(state->transValue) > DatumGetInt64(value));
			break;
		case MAX_OID:
			EXTREME(DatumGetObjectId(state->transValue) > DatumGetObjectId(value));
			break;
		case MAX_FLOAT4:
			EXTREME(float4_gt(DatumGetFloat4(state->transValue), DatumGetFloat4(value)));
			break;
		case MAX_FLOAT8:
			EXTREME(float8_gt(DatumGetFloat8(state->transValue), DatumGetFloat8(value)));
			break;
		case MIN_INT2:
			EXTREME(DatumGetInt16(state->transValue) < DatumGetInt16(value));
			break;
		case MIN_INT4:
			EXTREME(DatumGetInt32(state->transValue) < DatumGetInt32(value));
			break;
		case MIN_INT8:
			EXTREME(DatumGetInt64(state->transValue) < DatumGetInt64(value));
			break;
		case MIN_OID:
			EXTREME(DatumGetObjectId(state->transValue) < DatumGetObjectId(value));
			break;
		case MIN_FLOAT4:
			EXTREME(float4_lt(DatumGetFloat4(state->transValue), DatumGetFloat4(value)));
			break;
		case MIN_FLOAT8:
			EXTREME(float8_lt(DatumGetFloat8(state->transValue), DatumGetFloat8(value)));
			break;
		case CALL:
		case SUM_NUMERIC:
			break;
	}
}
