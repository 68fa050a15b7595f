/*-------------------------------------------------------------------------
 *
 * subselect.c
 *	  Sub-selects: EXISTS, scalar ones, ARRAY, and those of IN, ANY and ALL.
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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/nodeSubplan.h"
#include "nodes/extensible.h"
#include "statement/statement.h"

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
restart_subselect(CustomScanState *css)
{
	((SubselectState *) css)->started = false;
}

static const CustomExecMethods methods = {
	.CustomName = "MOT sub-select",
	.ReScanCustomScan = restart_subselect,
};

/* The statement's sub-selects, before anything that has them in expressions. */
void
MotSubselectsBuild(MotStatement *st)
{
	EState	   *estate;
	ListCell   *lc;

	if (st->plan->subplans == NIL)
		return;

	/* so that hash tables are made in the memory of an execution */
	estate = makeNode(EState);
	memcpy(estate, st->estate, sizeof(EState));
	estate->es_query_cxt = st->exec_cxt;

	foreach(lc, st->plan->subplans)
	{
		Plan	   *plan = (Plan *) lfirst(lc);
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
	ListCell   *lc;

	foreach(lc, initplan->subplan->setParam)
		params[lfirst_int(lc)].execPlan = initplan;
	((SubselectState *) initplan->planstate)->started = false;
}

static void
restart_with_initplans(MotNode *node)
{
	ListCell   *lc;

	foreach(lc, node->initplans)
	{
		SubPlanState *initplan = (SubPlanState *) lfirst(lc);

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
	ListCell   *lc;

	foreach(lc, plan->initPlan)
		initplans = lappend(initplans, ExecInitSubPlan(lfirst_node(SubPlan, lc), ps));
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
		ps = MotParentCreate(st, T_ResultState, sizeof(ResultState), plan, MotContextCreate(st));
	node->initplans = MotInitPlansBuild(st, plan, ps);
	node->restart_itself = node->restart;
	node->restart = restart_with_initplans;
}

/* A new execution. */
void
MotSubselectsStart(MotStatement *st)
{
	ListCell   *lc;

	foreach(lc, st->initplans)
		arm((SubPlanState *) lfirst(lc));
}

/*
 * The hash tables of IN and its like go with the execution, whose memory they
 * are in; the next one makes them anew.
 */
void
MotSubselectsRest(MotStatement *st)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, st->parents)
		foreach(lc2, ((PlanState *) lfirst(lc))->subPlan)
	{
		SubPlanState *subplan = lfirst_node(SubPlanState, lc2);

		if (subplan->hashtablecxt == NULL)
			continue;
		subplan->hashtable = subplan->hashnulls = NULL;
		MemoryContextReset(subplan->hashtablecxt);
		MemoryContextReset(subplan->hashtempcxt);
	}
}

/* What of a sub-select's use can't be done here. */
const char *
MotSubselectWhyNot(const SubPlan *subplan)
{
	if (subplan->subLinkType == CTE_SUBLINK)
		return "there are WITH queries";
	return NULL;
}

/*
 * What turns out when all is built.  A hash table of what depends on parameters from
 * further out would have to be made anew with each of their values, which nobody
 * tells it.
 */
const char *
MotSubselectsWhyNot(const MotStatement *st)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, st->parents)
		foreach(lc2, ((PlanState *) lfirst(lc))->subPlan)
	{
		const SubPlanState *subplan = lfirst_node(SubPlanState, lc2);

		if (subplan->subplan->useHashTable && !bms_is_empty(subplan->planstate->plan->extParam))
			return "a hashed sub-select depends on what is around another one";
	}
	return NULL;
}
