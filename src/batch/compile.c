/*-------------------------------------------------------------------------
 *
 * compile.c
 *	  The input phase of an Agg node as machine code.
 *
 * One row program (statement/jit.h) does with a row all that is to be done: it
 * finds the row's columns and its group, or asks for that (group.c), and advances the group's
 * states where the server has them.  Rows of a sequential scan it reads where
 * they lie, and looks at the scan's conditions too; other nodes' rows, of joins above all,
 * as the slot has them.
 *
 * An aggregate whose transition is not an addition or a comparison is a call
 * of transition.c; so is a number of a form that the program has no code
 * for.  Conditions and arguments with parameters or sub-selects are the server's.
 *
 * Code is made for one execution, a millisecond or a few, and has to pay: more
 * rows than mot.jit_above_scanned.  The compiler itself takes some 20 milliseconds to be loaded,
 * once a session, which the rows of ten such executions pay for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/fill.h"
#include "compat/foreach.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "relation/slot.h"
#include "statement/statement.h"
#include "utils/rel.h"

int			mot_jit_above_scanned = 100000;

/* executions of so many rows that the compiler is loaded for */
#define LOADED_FOR 10

/* rows that would have had code if it had been there */
static double rows_before = 0;

/* Why is there no machine code for so many rows, if that is known beforehand? */
const char *
MotCodeWhyNot(double rows)
{
	const char *why_not;

	if (!mot_jit || mot_jit_above_scanned < 0)
		return "it is off";
	if (rows < mot_jit_above_scanned)
		return "few rows";
	if (!MotCompilerLoaded(&why_not) && why_not == NULL &&
		rows_before + rows < LOADED_FOR * (double) mot_jit_above_scanned)
		return "few rows so far in this session";
	return why_not;
}

/* The same, of an execution. */
const char *
MotCodeWhyNotNow(double rows)
{
	const char *why_not = MotCodeWhyNot(rows);

	if (why_not != NULL && rows >= mot_jit_above_scanned)
		rows_before += rows;
	return why_not;
}

/* What a program does not have, or cannot have for good. */
static bool
has_parameters(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	return expression_tree_walker(node, has_parameters, context);
}

bool
MotHasParameters(Node *node)
{
	return has_parameters(node, NULL);
}

/* rows that the node below is expected to hand out, or to look at */
static double
rows_expected(const AggState *agg)
{
	const PlanState *below = outerPlanState(&agg->ss.ps);

	return MotRowsCan(below) ? ((const ScanState *) below)->ss_currentRelation->rd_rel->reltuples : below->plan->plan_rows;
}

/* What EXPLAIN says of a node that is ours: "fill" is NULL if it has not been run. */
const char *
MotFillCodeWhyNot(const AggState *agg, const MotFill *fill)
{
	return fill != NULL ? fill->why_not : MotCodeWhyNot(rows_expected(agg));
}

/* --------------------------------------------------------------- the request */

typedef struct Building
{
	MotFill    *fill;
	List	   *targetlist;		/* of the scan below; NIL: columns are a
								 * slot's */
	int		   *position;		/* where columns are looked for */
	int			nvalues;		/* outputs so far */
} Building;

static Expr *
place(const Building *building, Expr *expr)
{
	return building->targetlist == NIL ? expr : (Expr *) MotResolveOuter((Node *) expr, building->targetlist);
}

static void
advance_one(void *arg)
{
	MotTransition *t = (MotTransition *) arg;
	MotFill    *fill = t->fill;
	MotSum	   *sums = (MotSum *) fill->context.sums;

	MotTransitionAdvance(t, &((AggStatePerGroup) fill->context.states)[t->number], &sums[Max(t->sum, 0)]);
}

/* ... whose filter and arguments are evaluated by the server's expressions */
static void
advance_by_server(void *arg)
{
	MotTransition *t = (MotTransition *) arg;

	MotFillShow(t->fill);
	if (t->filter == NULL || ExecQual(t->filter, t->fill->agg->tmpcontext))
		advance_one(t);
}

static MotRowAggregateKind
compiled_kind(const MotTransition *t)
{
	if (t->kind == SUM_NUMERIC)
		return t->nsteps > 0 ? MOT_AGGREGATE_SUM_DECIMAL : MOT_AGGREGATE_CALL;
	return t->kind == CALL ? MOT_AGGREGATE_CALL : MotAggregateKind(t->pertrans->transfn_oid);
}

static MotRowAggregate *
make_aggregate(Building *building, MotTransition *t)
{
	MotRowAggregate *aggregate = palloc0(sizeof(MotRowAggregate));
	const Aggref *aggref = t->pertrans->aggref;

	aggregate->arg = t;
	if (MotHasParameters((Node *) aggref->args) || MotHasParameters((Node *) aggref->aggfilter))
	{
		aggregate->kind = MOT_AGGREGATE_CALL;
		aggregate->call = advance_by_server;
		return aggregate;
	}
	aggregate->kind = compiled_kind(t);
	aggregate->call = advance_one;
	aggregate->filter = aggref->aggfilter ? place(building, aggref->aggfilter) : NULL;
	aggregate->sum = Max(t->sum, 0);
	aggregate->first_value = building->nvalues;
	aggregate->nsteps = t->nsteps;
	if (aggregate->kind == MOT_AGGREGATE_SUM_DECIMAL)
	{
		aggregate->steps = palloc(t->nsteps * sizeof(MotStep));
		memcpy(aggregate->steps, t->steps, t->nsteps * sizeof(MotStep));
		for (int i = 0; i < t->nsteps; i++)
			if (t->steps[i].kind == MOT_STEP_COLUMN)
			{
				aggregate->steps[i].var = (Var *) place(building, (Expr *) t->steps[i].var);
				aggregate->args = lappend(aggregate->args, aggregate->steps[i].var);
			}
		return aggregate;
	}
	for (int a = 0; a < t->nargs; a++)
	{
		if (aggregate->kind == MOT_AGGREGATE_CALL && t->args[a].column >= 0)
			continue;
		aggregate->args = lappend(aggregate->args, place(building, t->args[a].node));
		if (aggregate->kind == MOT_AGGREGATE_CALL)
			t->args[a].place = building->nvalues++;
	}
	return aggregate;
}

/* The code takes a slot's columns to be there, as far as it looks at any. */
static bool
want_columns(Node *node, void *context)
{
	MotFill    *fill = (MotFill *) context;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
		fill->columns = Max(fill->columns, ((Var *) node)->varattno);
	return expression_tree_walker(node, want_columns, context);
}

/* Where the code finds the keys, unless one of them is for group.c. */
static void
make_keys(const MotFill *fill, MotRowRequest *request, TupleDesc input, List *targetlist)
{
	const Agg  *plan = (const Agg *) fill->agg->ss.ps.plan;

	if (MotKeysWhyNot(fill->agg) != NULL)
		return;
	MotGroupsAsk(fill->groups, request);
	foreach_ptr(MotRowKey, key, request->keys)
	{
		AttrNumber	column = plan->grpColIdx[foreach_current_index(key)];
		Form_pg_attribute att = TupleDescAttr(input, column - 1);

		key->var = targetlist != NIL ? (Var *) list_nth_node(TargetEntry, targetlist, column - 1)->expr :
			makeVar(OUTER_VAR, column, att->atttypid, att->atttypmod, att->attcollation, 0);
	}
}

static void
find_group(void *fill)
{
	MotFillFindGroup((MotFill *) fill);
}

/* There is code: columns are looked for where it puts them. */
static void
settle(Building *building)
{
	MotFill    *fill = building->fill;

	if (fill->hashed)
		MotGroupsPlace(fill->groups, building->position);
	for (int i = 0; i < fill->agg->numtrans; i++)
	{
		MotTransition *t = &fill->transitions[i];

		for (int a = 0; a < t->nargs; a++)
			if (t->args[a].column >= 0)
				t->args[a].column = building->position[t->args[a].column];
		for (int step = 0; step < t->nsteps; step++)
			if (t->steps[step].kind == MOT_STEP_COLUMN)
				t->steps[step].column = building->position[t->steps[step].column];
	}
}

/* There is none. */
static void
give_up(MotFill *fill)
{
	for (int i = 0; i < fill->agg->numtrans; i++)
		for (int a = 0; a < fill->transitions[i].nargs; a++)
			fill->transitions[i].args[a].place = -1;
}

/* In the query's memory, which is the current one. */
void
MotFillCompile(MotFill *fill)
{
	PlanState  *below = outerPlanState(&fill->agg->ss.ps);
	MotRowRequest request = {0};
	Building	building = {fill};
	bool		in_place = MotRowsCan(below);
	MotRowCode *code;
	int			column = -1;

	fill->why_not = MotCodeWhyNotNow(rows_expected(fill->agg));
	if (fill->why_not != NULL)
		return;
	request.group = fill->hashed ? find_group : NULL;
	request.group_arg = fill;
	if (in_place)
	{
		building.targetlist = below->plan->targetlist;
		building.position = palloc0(Max(1, fill->columns) * sizeof(int));
		request.desc = RelationGetDescr(((ScanState *) below)->ss_currentRelation);
		request.varno = ((Scan *) below->plan)->scanrelid;
		request.quals = below->plan->qual;
		while ((column = bms_next_member(fill->wanted, column)) >= 0)
		{
			request.outputs = lappend(request.outputs, list_nth_node(TargetEntry, building.targetlist, column)->expr);
			building.position[column] = building.nvalues++;
		}
	}
	else
	{
		request.desc = ExecGetResultType(below);
		request.varno = OUTER_VAR;
		request.from_slot = true;
		for (int i = 0; i < fill->agg->numtrans; i++)
		{
			const Aggref *aggref = fill->transitions[i].pertrans->aggref;

			(void) want_columns((Node *) aggref->args, fill);
			(void) want_columns((Node *) aggref->aggfilter, fill);
		}
	}
	if (fill->hashed)
		make_keys(fill, &request, ExecGetResultType(below), building.targetlist);
	for (int i = 0; i < fill->agg->numtrans; i++)
		request.aggregates = lappend(request.aggregates, make_aggregate(&building, &fill->transitions[i]));

	code = MotRowCodeMake(&request, CurrentMemoryContext, &fill->why_not);
	if (code == NULL)
	{
		give_up(fill);
		return;
	}
	fill->function = code->function;
	fill->context.values = palloc0(Max(1, building.nvalues) * sizeof(Datum));
	fill->context.isnull = palloc0(Max(1, building.nvalues) * sizeof(bool));
	fill->context.private = code->private;
	if (in_place)
	{
		fill->rows = MotRowsMake(below);
		fill->values = fill->context.values;
		fill->nulls = fill->context.isnull;
		settle(&building);
	}
}
