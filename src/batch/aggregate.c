/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  The input phase of an Agg node.
 *
 * Rows are taken from the node below until there are no more, each one's group is
 * found (group.c), and its transition states are advanced: of many rows by machine code
 * (compile.c), else by functions (transition.c).
 *
 * Then the server's node is called, with nobody below it who has another row.  Without
 * groups it takes its states from what each aggregate begins with: which
 * for that call is what we have come to.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/fill.h"
#include "catalog/pg_aggregate.h"
#include "compat/hash.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Of so many rows, are more than half the first of their group?  Then ours is a detour. */
#define ENOUGH_TO_TELL 20000

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
		/* (whether it sorts, or gets sorted rows) */
		if (aggref->aggorder != NIL || aggref->aggdistinct != NIL)
			return "an aggregate has DISTINCT or ORDER BY";
		if (has_subselects((Node *) aggref->args, NULL) || has_subselects((Node *) aggref->aggfilter, NULL))
			return "sub-selects are evaluated for each row";
	}
	if (plan->aggstrategy == AGG_PLAIN &&
		(has_columns((Node *) plan->plan.targetlist, NULL) || has_columns((Node *) plan->plan.qual, NULL)))
		return "it shows columns of a row";
	if (outerPlan(plan)->plan_rows < MOT_BATCH_MIN_ROWS)
		return "few rows are expected";

	/*
	 * (what finds that out on the way has taken in ENOUGH_TO_TELL for
	 * nothing)
	 */
	if (plan->aggstrategy == AGG_HASHED && plan->numGroups > outerPlan(plan)->plan_rows / 2)
		return "few rows of a group are expected";
	return NULL;
}

/* ---------------------------------------------------------------- building */

/* In the query's memory. */
static MotFill *
make_fill(AggState *agg)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(agg->ss.ps.state->es_query_cxt);
	MotFill    *fill = palloc0(sizeof(MotFill));
	const Agg  *plan = (const Agg *) agg->ss.ps.plan;

	fill->agg = agg;
	fill->hashed = plan->aggstrategy == AGG_HASHED;
	fill->transitions = palloc0(Max(1, agg->numtrans) * sizeof(MotTransition));
	for (int i = 0; i < agg->numtrans; i++)
		MotTransitionMake(fill, i);
	if (fill->hashed)
	{
		for (int i = 0; i < plan->numCols; i++)
			MotFillWant(fill, plan->grpColIdx[i] - 1);
		fill->groups = MotGroupsMake(agg, fill->nsums * sizeof(MotSum));
	}
	else
	{
		fill->memory = CreateExprContext(agg->ss.ps.state);
		fill->states = palloc0(Max(1, agg->numtrans) * sizeof(AggStatePerGroupData));
		fill->sums = palloc0(Max(1, fill->nsums) * sizeof(MotSum));
	}
	MotFillCompile(fill);
	MemoryContextSwitchTo(oldcxt);
	return fill;
}

/* ---------------------------------------------------------------- all rows */

static void
hand_over_all(MotFill *fill, AggStatePerGroup states, MotSum *sums)
{
	for (int i = 0; i < fill->agg->numtrans; i++)
		if (fill->transitions[i].sum >= 0)
			MotTransitionHandOver(&fill->transitions[i], &states[i], &sums[fill->transitions[i].sum]);
}

static void
hand_over_group(MotGroup *group, void *arg)
{
	MotFill    *fill = (MotFill *) arg;

	hand_over_all(fill, group->states, MotGroupExtra(fill->groups, group));
}

/* As hash_agg_check_limits: has the server's table become as large as it may? */
static bool
is_full(const AggState *agg)
{
	return agg->hash_ngroups_current > agg->hash_ngroups_limit || MotHashAggMemory(agg) > agg->hash_mem_limit;
}

/* The present row, for expressions and as a group's first. */
void
MotFillShow(MotFill *fill)
{
	if (fill->rows != NULL)
		fill->agg->tmpcontext->ecxt_outertuple = MotRowsShow(fill->rows, fill->version);
}

/* The present row's group: its states are those of "context". */
void
MotFillFindGroup(MotFill *fill)
{
	AggState   *agg = fill->agg;
	MotGroup   *group = MotGroupFind(fill->groups, fill->values, fill->nulls);

	if (unlikely(group == NULL))
	{
		MotFillShow(fill);
		group = MotGroupMake(fill->groups, agg->tmpcontext->ecxt_outertuple);
		fill->full = is_full(agg) ||
			(fill->taken > ENOUGH_TO_TELL && MotGroupsCount(fill->groups) > fill->taken / 2);
	}
	fill->context.states = group->states;
	fill->context.sums = MotGroupExtra(fill->groups, group);
}

/* A row's way without machine code. */
static void
take_in(MotFill *fill)
{
	AggStatePerGroup states;
	MotSum	   *sums;

	if (fill->hashed)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(fill->agg->tmpcontext->ecxt_per_tuple_memory);

		MotFillFindGroup(fill);
		MemoryContextSwitchTo(oldcxt);
	}
	states = fill->context.states;
	sums = fill->context.sums;
	for (int i = 0; i < fill->agg->numtrans; i++)
	{
		MotTransition *t = &fill->transitions[i];

		if (t->filter == NULL || ExecQual(t->filter, fill->agg->tmpcontext))
			MotTransitionAdvance(t, &states[i], &sums[Max(t->sum, 0)]);
	}
	fill->taken++;
}

/* Rows that the code itself reads. */
static void
take_rows(MotFill *fill)
{
	ExprContext *econtext = fill->agg->tmpcontext;
	MemoryContext oldcxt;

	MotRowsStart(fill->rows);
	oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	while (!fill->full && (fill->version = MotRowsNext(fill->rows)) != NULL)
	{
		ResetExprContext(econtext);
		CHECK_FOR_INTERRUPTS();
		fill->taken += fill->function((const char *) mot_version_data(fill->version), mot_version_host_bits(fill->version),
									  &fill->context);
	}
	MemoryContextSwitchTo(oldcxt);
}

/* ... and those of a node. */
static void
take_slots(MotFill *fill, PlanState *below)
{
	ExprContext *econtext = fill->agg->tmpcontext;
	TupleTableSlot *slot;

	while (!fill->full)
	{
		ResetExprContext(econtext);
		CHECK_FOR_INTERRUPTS();
		slot = ExecProcNode(below);
		if (TupIsNull(slot))
			break;
		slot_getsomeattrs(slot, fill->columns);
		econtext->ecxt_outertuple = slot;
		fill->values = slot->tts_values;
		fill->nulls = slot->tts_isnull;
		if (fill->function != NULL)
		{
			MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

			fill->context.row_isnull = slot->tts_isnull;
			fill->taken += fill->function((const char *) slot->tts_values, 0, &fill->context);
			MemoryContextSwitchTo(oldcxt);
		}
		else
			take_in(fill);
	}
}

static void
take_all(MotFill *fill, PlanState *below)
{
	fill->taken = 0;
	fill->full = false;
	if (fill->rows != NULL)
		take_rows(fill);
	else
		take_slots(fill, below);
	ResetExprContext(fill->agg->tmpcontext);
}

/* False: there are more rows, and the server's node is to take them in. */
static bool
fill_groups(MotFill *fill, PlanState *below)
{
	AggState   *agg = fill->agg;

	agg->current_set = 0;
	agg->curaggcontext = agg->hashcontext;
	MotGroupsStart(fill->groups);
	take_all(fill, below);
	if (fill->nsums > 0)
		MotGroupsEach(fill->groups, hand_over_group, fill);
	MotGroupsEnd(fill->groups);
	return !fill->full;
}

static void
fill_plain(MotFill *fill, PlanState *below)
{
	AggState   *agg = fill->agg;

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
	fill->context.states = fill->states;
	fill->context.sums = fill->sums;
	take_all(fill, below);
	hand_over_all(fill, fill->states, fill->sums);
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
