/*-------------------------------------------------------------------------
 *
 * subselect.c
 *	  Where the server takes rows from programs: sub-selects (EXISTS, scalar ones, ARRAY,
 *	  and those of IN, ANY and ALL), and nodes of its own.
 *
 * The server's expressions evaluate a sub-select by asking a plan state for
 * rows (executor/nodeSubplan.c).  They get one here whose rows are a program's:
 * the least that can be asked and started over, which is what a custom scan's
 * state is.  So whatever is to be known about sub-selects (nulls, how many
 * rows there may be, when one is evaluated anew) stays in one place.
 *
 * Those that depend on nothing around them are evaluated when the first
 * expression asks for their value, once an execution (InitPlans).  If one is
 * inside another that does depend on something, it is due again whenever that
 * starts over.
 *
 * The server's own nodes do what is seldom asked for, or takes long: they sort, keep what a
 * join reads again and again, and more.  They are made once, like all of the program, and
 * start over with each execution.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/calls.h"
#include "executor/nodeSubplan.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "statement/statement.h"
#include "utils/tuplestore.h"

typedef struct SubselectState
{
	CustomScanState css;		/* must be first */
	MotNode    *node;
	bool		started;
} SubselectState;

static TupleTableSlot *
next_of_subselect(PlanState *ps)
{
	SubselectState *state = (SubselectState *) ps;
	MotNode    *node = state->node;

	/* what lasts longer than a row goes with the execution */
	MemoryContext oldcxt = MemoryContextSwitchTo(node->statement->exec_cxt);
	TupleTableSlot *slot;

	if (!state->started)
	{
		state->started = true;
		node->restart(node);
	}
	slot = node->next(node);
	MemoryContextSwitchTo(oldcxt);
	return slot;
}

static void
forget_hash_table(SubPlanState *subplan)
{
	subplan->hashtable = subplan->hashnulls = NULL;
	MotSubPlanHashesReset(subplan);
}

/*
 * A parameter has another value: a hash table of what depends on it is not good any
 * more.  In the executor the nodes tell each other when they start over; we know all
 * that can depend on anything.  The table goes, instead of being marked, because how
 * that is done differs between the server's minor versions.
 */
void
MotParamChanged(MotStatement *st, int param)
{
	foreach_node(SubPlanState, subplan, st->hashed)
	{
		if (subplan->hashtable == NULL ||
			!bms_is_member(param, subplan->planstate->plan->extParam))
			continue;
		forget_hash_table(subplan);
		MemoryContextReset(subplan->planstate->state->es_query_cxt);
	}
}

static void
restart_subselect(CustomScanState *css)
{
	SubselectState *state = (SubselectState *) css;
	MotStatement *st = state->node->statement;
	int			param = -1;

	if (st->hashed != NIL)
		while ((param = bms_next_member(css->ss.ps.chgParam, param)) >= 0)
			MotParamChanged(st, param);
	state->started = false;
}

static void
begin_subselect(CustomScanState *css, EState *estate, int eflags)
{
	((SubselectState *) css)->node = linitial(((CustomScan *) css->ss.ps.plan)->custom_private);
	css->ss.ps.ExecProcNode = next_of_subselect;
	css->ss.ps.resultopsfixed = false;
}

static const CustomExecMethods methods = {
	.CustomName = "MOT sub-select",
	.BeginCustomScan = begin_subselect,
	.ReScanCustomScan = restart_subselect,
};

static Node *
create_subselect(CustomScan *plan)
{
	SubselectState *state = palloc0(sizeof(SubselectState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &methods;
	return (Node *) state;
}

/* The server's node, which takes the rows of the program's node below. */
static PlanState *
make_servers(MotNode *node, Plan *plan)
{
	static const CustomScanMethods scan_methods = {"MOT sub-select", create_subselect};
	MotStatement *st = node->statement;
	PlanState  *ps;

	plan = MotPlanCopy(plan);
	plan->initPlan = NIL;		/* see MotNodeInitPlans */
	if (node->outer != NULL)
	{
		CustomScan *below = makeNode(CustomScan);

		below->custom_scan_tlist = outerPlan(plan)->targetlist;
		foreach_node(TargetEntry, tle, below->custom_scan_tlist)
			below->scan.plan.targetlist = lappend(below->scan.plan.targetlist,
												  makeTargetEntry((Expr *) makeVarFromTargetEntry(INDEX_VAR, tle),
																  tle->resno, NULL, tle->resjunk));
		below->custom_private = list_make1(node->outer);
		below->methods = &scan_methods;
		outerPlan(plan) = &below->scan.plan;
	}
	/* a join starts over what is kept */
	ps = ExecInitNode(plan, st->estate, IsA(plan, Material) ? EXEC_FLAG_REWIND : 0);
	if (ps->ps_ProjInfo != NULL)
		ps->ps_ProjInfo->pi_state.resultslot = MotResultSlot(ps->ps_ResultTupleDesc);
	if (st->plan->subplans != NIL)
		st->parents = lappend(st->parents, ps);
	return ps;
}

static TupleTableSlot *
next_of_servers(MotNode *node)
{
	TupleTableSlot *slot;

	MotWithin(node->statement->exec_cxt, slot = ExecProcNode(node->ps));
	return TupIsNull(slot) ? NULL : slot;
}

/* To restart: what is kept goes, too. */
void
MotServersAnew(MotNode *node)
{
	MaterialState *material = (MaterialState *) node->ps;

	ExecReScan(node->ps);
	if (IsA(material, MaterialState) && material->tuplestorestate != NULL)
	{
		tuplestore_end(material->tuplestorestate);
		material->tuplestorestate = NULL;
		material->eof_underlying = false;
		ExecReScan(outerPlanState(material));
	}
}

static void
restart_servers(MotNode *node)
{
	ExecReScan(node->ps);
}

/*
 * A node of the server's; "size" is that of a structure that begins with a node, "outer" has its rows,
 * or NULL: the plan's does.
 */
MotNode *
MotServersBuild(MotStatement *st, Plan *plan, Size size, MotNode *outer)
{
	/* what depends on parameters is read anew */
	MotNode    *node = MotNodeMake(st, size, next_of_servers,
								   bms_is_empty(plan->extParam) ? restart_servers : MotServersAnew,
								   outer == NULL ? outerPlan(plan) : NULL);

	if (outer != NULL)
		node->outer = outer;
	node->ps = make_servers(node, plan);
	if (IsA(plan, Material))
	{
		node->rest = MotServersAnew;
		st->kept = lappend(st->kept, node);
	}
	return node;
}

/* The statement's sub-selects, before anything that has them in expressions. */
void
MotSubselectsBuild(MotStatement *st)
{
	EState	   *estate;

	if (st->plan->subplans == NIL)
		return;

	/* so that hash tables are made in the memory of an execution */
	estate = makeNode(EState);
	memcpy(estate, st->estate, sizeof(EState));
	estate->es_query_cxt = st->exec_cxt;

	foreach_ptr(Plan, plan, st->run->subplans)
	{
		SubselectState *state = NULL;

		/* (the planner drops one of two alternatives) */
		if (plan != NULL)
		{
			MotNode    *node = MotNodeBuild(st, plan);

			state = (SubselectState *)
				MotParentCreate(st, T_CustomScanState, sizeof(SubselectState), plan, NULL);
			state->css.ss.ps.state = estate;
			state->css.methods = &methods;
			state->css.ss.ps.ExecProcNode = next_of_subselect;
			state->node = node;
		}
		st->estate->es_subplanstates = lappend(st->estate->es_subplanstates, state);
	}
}

static void
arm(SubPlanState *initplan)
{
	ParamExecData *params = initplan->planstate->state->es_param_exec_vals;

	foreach_int(param, initplan->subplan->setParam)
	{
		params[param].execPlan = initplan;
		MotParamChanged(((SubselectState *) initplan->planstate)->node->statement, param);
	}
	((SubselectState *) initplan->planstate)->started = false;
}

static void
restart_with_initplans(MotNode *node)
{
	foreach_ptr(SubPlanState, initplan, node->initplans)
	{
		if (!bms_is_empty(initplan->planstate->plan->extParam))
			arm(initplan);
	}
	node->restart_itself(node);
}

/* A plan's sub-selects that are evaluated once; "ps" for their expressions. */
List *
MotInitPlansBuild(MotStatement *st, Plan *plan, PlanState *ps)
{
	List	   *initplans = NIL;

	foreach_node(SubPlan, subplan, plan->initPlan)
		initplans = lappend(initplans, ExecInitSubPlan(subplan, ps));
	st->initplans = list_concat(st->initplans, initplans);
	return initplans;
}

/* Those of a node, which restarts when what they depend on may have changed. */
void
MotNodeInitPlans(MotNode *node, Plan *plan)
{
	MotStatement *st = node->statement;
	PlanState  *ps = node->ps;

	if (ps == NULL)
		ps = MotParentCreate(st, T_ResultState, sizeof(ResultState), plan, CreateExprContext(st->estate));
	node->initplans = MotInitPlansBuild(st, plan, ps);
	node->restart_itself = node->restart;
	node->restart = restart_with_initplans;
}

/* When all is built: hash tables of what depends on parameters. */
void
MotSubselectsBuilt(MotStatement *st)
{
	foreach_ptr(PlanState, parent, st->parents)
		foreach_node(SubPlanState, subplan, parent->subPlan)
	{
		PlanState  *ps = subplan->planstate;
		EState	   *estate;

		if (!subplan->subplan->useHashTable || bms_is_empty(ps->plan->extParam))
			continue;
		st->hashed = lappend(st->hashed, subplan);

		/* memory that goes with the table */
		if (ps->state->es_query_cxt != st->exec_cxt)
			continue;			/* two expressions have the same sub-select */
		estate = makeNode(EState);
		memcpy(estate, ps->state, sizeof(EState));
		estate->es_query_cxt = AllocSetContextCreate(st->cxt, "MOT sub-select's hash table",
													 ALLOCSET_SMALL_SIZES);
		ps->state = estate;
	}
}

/* A new execution. */
void
MotSubselectsStart(MotStatement *st)
{
	foreach_ptr(SubPlanState, initplan, st->initplans)
		arm(initplan);
}

/*
 * The hash tables of IN and its like go with the execution, whose memory they
 * are in; the next one makes them anew.
 */
void
MotSubselectsRest(MotStatement *st)
{
	foreach_ptr(PlanState, parent, st->parents)
		foreach_node(SubPlanState, subplan, parent->subPlan)
	{
		if (MotSubPlanHashes(subplan) != NULL)
			forget_hash_table(subplan);
	}
	foreach_node(SubPlanState, hashed, st->hashed)
		MemoryContextReset(hashed->planstate->state->es_query_cxt);
}
