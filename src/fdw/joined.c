/*-------------------------------------------------------------------------
 *
 * joined.c
 *	  UPDATE and DELETE with row triggers and a join: rows are locked before
 *	  their triggers run.
 *
 * Row triggers have to see the newest version of a row, and run once for it,
 * also if the join finds the row several times.  The server fires BEFORE
 * triggers of a heap table between locking the row and changing it; those of a
 * foreign table it fires before the wrapper hears of the row at all.  So the
 * rows are locked a step earlier, as they come out of the join: here, between
 * the ModifyTable node and the plan below it.  A row that this command has
 * changed already is left out; one that somebody else has changed is checked
 * again, and what EvalPlanQual makes of its newest version goes on in its
 * place.  (Without a join the scan does that by itself; see MOT_PLAN_LOCK.)
 *
 * A plan node does not know the node above it, and has no room for anything of
 * ours, so the nodes that are watched are in a list.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fdw/fdw.h"
#include "miscadmin.h"

typedef struct Watched
{
	PlanState  *subplan;
	ExecProcNodeMtd next_row;	/* the subplan's own */
	ModifyTableState *mtstate;
	MemoryContextCallback gone;
	struct Watched *next;
} Watched;

static Watched *watched = NULL;

static ResultRelInfo *
target_of(ModifyTableState *mtstate, TupleTableSlot *slot)
{
	ResultRelInfo *rinfo = mtstate->resultRelInfo;

	if (AttributeNumberIsValid(mtstate->mt_resultOidAttno))
	{
		bool		isnull;
		Datum		relid = ExecGetJunkAttribute(slot, mtstate->mt_resultOidAttno, &isnull);

		if (isnull)
			elog(ERROR, "tableoid is NULL");

		/*
		 * not into its cache: ModifyTable knows by that what it looked up
		 * last
		 */
		rinfo = ExecLookupResultRelByOid(mtstate, DatumGetObjectId(relid), false, false);
	}
	if (rinfo->ri_FdwRoutine == NULL ||
		rinfo->ri_FdwRoutine->BeginForeignModify != MotBeginForeignModify)
		return NULL;
	return ((MotModify *) rinfo->ri_FdwState)->lock_joined ? rinfo : NULL;
}

static TupleTableSlot *
next_row_locked(PlanState *subplan)
{
	Watched    *w = watched;

	while (w->subplan != subplan)
		w = w->next;
	for (;;)
	{
		TupleTableSlot *slot = w->next_row(subplan);
		ResultRelInfo *rinfo;

		if (TupIsNull(slot))
			return slot;
		rinfo = target_of(w->mtstate, slot);
		if (rinfo == NULL)
			return slot;
		/* the row's partners in the join are in it, for EvalPlanQual */
		EvalPlanQualSetSlot(&w->mtstate->mt_epqstate, slot);
		slot = MotLockJoinedRow(rinfo, slot);
		if (slot != NULL)
			return slot;
		CHECK_FOR_INTERRUPTS();
	}
}

static void
forget(void *arg)
{
	for (Watched **p = &watched; *p != NULL; p = &(*p)->next)
		if (*p == arg)
		{
			*p = (*p)->next;
			break;
		}
}

/*
 * The rows of mtstate's plan are to be locked before it gets them; may be called for each of its
 * targets.
 */
void
MotWatchJoin(ModifyTableState *mtstate)
{
	PlanState  *subplan = outerPlanState(mtstate);
	Watched    *w;

	if (subplan->ExecProcNodeReal == next_row_locked)
		return;
	w = MemoryContextAlloc(mtstate->ps.state->es_query_cxt, sizeof(Watched));
	w->subplan = subplan;
	w->next_row = subplan->ExecProcNodeReal;
	w->mtstate = mtstate;
	w->next = watched;
	w->gone.func = forget;
	w->gone.arg = w;
	MemoryContextRegisterResetCallback(mtstate->ps.state->es_query_cxt, &w->gone);
	watched = w;
	subplan->ExecProcNodeReal = next_row_locked;
}
