/*-------------------------------------------------------------------------
 *
 * returning.c
 *	  RETURNING OLD of an INSERT that has updated a row.
 *
 * To the executor (18) a row that a foreign data wrapper has inserted has no older
 * version, so OLD is null.  Ours may have come upon one, by ON CONFLICT DO UPDATE.  So a
 * projection of ours stands before the executor's: it puts the older version in its
 * place and then has the executor's do the work.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/returning.h"
#include "executor/executor.h"
#include "utils/memutils.h"

#if PG_VERSION_NUM >= 180000
typedef struct Returning
{
	ProjectionInfo front;		/* what the executor sees */
	ProjectionInfo *behind;		/* its own */
	TupleTableSlot *old;		/* of the row in hand, or NULL: inserted */
} Returning;

static Datum
project(ExprState *state, ExprContext *econtext, bool *isnull)
{
	Returning  *returning = (Returning *) ((char *) state - offsetof(Returning, front.pi_state));
	ExprState  *behind = &returning->behind->pi_state;

	/* (they say which of the versions there are) */
	behind->flags = state->flags;
	if (returning->old != NULL)
	{
		econtext->ecxt_oldtuple = returning->old;
		behind->flags &= ~EEO_FLAG_OLD_IS_NULL;
		returning->old = NULL;
	}
	return behind->evalfunc(behind, econtext, isnull);
}

void
MotReturningOld(ResultRelInfo *rinfo, TupleTableSlot *old)
{
	ProjectionInfo *projection = rinfo->ri_projectReturning;
	Returning  *returning = (Returning *) projection;

	if (projection == NULL || !(projection->pi_state.flags & EEO_FLAG_HAS_OLD))
		return;
	if (projection->pi_state.evalfunc != project)
	{
		returning = MemoryContextAllocZero(GetMemoryChunkContext(projection), sizeof(Returning));
		returning->front.type = T_ProjectionInfo;
		returning->front.pi_exprContext = projection->pi_exprContext;
		returning->front.pi_state.type = T_ExprState;
		returning->front.pi_state.flags = projection->pi_state.flags;
		returning->front.pi_state.resultslot = projection->pi_state.resultslot;
		returning->front.pi_state.evalfunc = project;
		returning->behind = projection;
		rinfo->ri_projectReturning = &returning->front;
	}
	/* (the version may go with the change) */
	ExecMaterializeSlot(old);
	returning->old = old;
}
#else
void
MotReturningOld(ResultRelInfo *rinfo, TupleTableSlot *old)
{
}
#endif
