/*-------------------------------------------------------------------------
 *
 * runtime.c
 *	  What a procedure's code calls: what the interpreter does otherwise, by
 *	  the functions that it gives its plugin.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/calls.h"
#include "procedure/procedure.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

/*
 * Are the plans of all that is machine code still right?  Without a snapshot, after
 * COMMIT, the interpreter takes one with the next expression: so it has to do that one.
 */
bool
MotProcedureRecheck(MotFrame *frame)
{
	MotProcedureCode *code = frame->code;
	uint64		changes = MotPlanChanges;

	if (code->stale || !ActiveSnapshotSet())
		return false;
	if (code->compiled == NIL)
		return true;
	if (code->checked == changes)
	{
		/*
		 * DISCARD PLANS tells nobody, a search path neither, but they are the
		 * same for all
		 */
		if (!MotSiteIsRight(linitial(code->compiled)))
			code->stale = true;
	}
	else if (!MotFunctionsAreClosed(code->functions))
		code->stale = true;
	else
	{
		foreach_ptr(MotSite, site, code->compiled)
		{
			if (!MotSiteIsRight(site))
			{
				code->stale = true;
				break;
			}
		}
	}
	if (code->stale)
		return false;
	code->checked = changes;
	frame->seen = changes;
	return true;
}

/*
 * An expression that failed stays in use until the transaction ends, and the interpreter evaluates
 * it as a query meanwhile, which shows in the context of its next error.
 */
bool
MotProcedureIsBusy(MotFrame *frame, const void *mark)
{
	const PLpgSQL_expr *expr = mark;

	return expr->expr_simple_in_use && expr->expr_simple_lxid == MotLocalTransaction();
}

static inline PLpgSQL_execstate *
estate_of(const MotFrame *frame)
{
	return (PLpgSQL_execstate *) frame->estate;
}

/* An error has come: if it was in an expression, that fails as the interpreter's would have. */
void
MotProcedureFails(MotFrame *frame)
{
	PLpgSQL_expr *expr = unconstify(void *, frame->evaluating);

	if (expr == NULL)
		return;

	/*
	 * what is prepared of it, perhaps in another transaction, is not looked
	 * at any more
	 */
	expr->expr_simple_in_use = true;
	expr->expr_simple_lxid = MotLocalTransaction();

	/*
	 * The interpreter has its plan until the transaction ends.  Else the
	 * query's may be made anew meanwhile, in the same place, and be taken for
	 * this one later.
	 */
	if (expr->expr_simple_plan_lxid == MotLocalTransaction())
		return;
	if (CachedPlanIsSimplyValid(expr->expr_simple_plansource, expr->expr_simple_plan,
								estate_of(frame)->simple_eval_resowner))
		expr->expr_simple_plan_lxid = MotLocalTransaction();
	else
		expr->expr_simple_expr = NULL;
}

/* The interpreter evaluates the expression and assigns it.  Anything may have happened then. */
static void
interpret(MotFrame *frame, MotSite *site, PLpgSQL_datum *target)
{
	if (site->unplanned)
		frame->code->procedure->unplanned_hits++;
	frame->seen = 0;
	MotProcedurePlugin.assign_expr(estate_of(frame), target, site->expr);
}

void
MotProcedureAssign(MotFrame *frame, MotSite *site)
{
	interpret(frame, site, estate_of(frame)->datums[site->target]);
}

/*
 * An expression's plan, made anew if need be.  Then the interpreter must not know the one that it
 * has any more, as in exec_eval_simple_expr(): the new one may lie in the same place.
 */
static CachedPlan *
plan_of(MotFrame *frame, PLpgSQL_expr *expr)
{
	Expr	   *simple = expr->expr_simple_expr;
	CachedPlan *plan;

	EnsurePortalSnapshotExists();
	if (simple != NULL && !MotProcedureIsBusy(frame, expr) &&
		!CachedPlanIsSimplyValid(expr->expr_simple_plansource, expr->expr_simple_plan, NULL))
	{
		if (expr->expr_simple_plan_lxid == MotLocalTransaction())
			ReleaseCachedPlan(expr->expr_simple_plan, estate_of(frame)->simple_eval_resowner);
		expr->expr_simple_expr = NULL;
		expr->expr_simple_plan = NULL;
		expr->expr_simple_plan_lxid = InvalidLocalTransactionId;
	}
	MotWithin(estate_of(frame)->eval_econtext->ecxt_per_tuple_memory, plan = SPI_plan_get_cached_plan(expr->plan));
	/* (it has no plan, so it looks at this one) */
	expr->expr_simple_expr = simple;
	return plan;
}

/*
 * What a CASE tests: the variable gets the type that the expression has now, which is another one
 * when its operators are.
 */
void
MotProcedureAssignTested(MotFrame *frame, MotSite *site)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	PLpgSQL_var *var = (PLpgSQL_var *) estate->datums[site->target];
	CachedPlan *plan = plan_of(frame, site->expr);

	if (plan != NULL)
	{
		const CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(site->expr->plan));
		Form_pg_attribute column = TupleDescAttr(source->resultDesc, 0);

		ReleaseCachedPlan(plan, CurrentResourceOwner);
		if (var->datatype->typoid != column->atttypid || var->datatype->atttypmod != column->atttypmod)
			var->datatype = MotProcedureType(estate, column->atttypid, column->atttypmod, estate->datum_context);
	}
	MotProcedureAssign(frame, site);
}

/* A variable that nobody else knows; not of a kind that plans are made for. */
static void
interpret_as(MotFrame *frame, MotSite *site, PLpgSQL_type *type, PLpgSQL_var *var)
{
	MemSet(var, 0, sizeof(PLpgSQL_var));
	var->dtype = PLPGSQL_DTYPE_PROMISE;
	var->promise = PLPGSQL_PROMISE_NONE;
	var->dno = -1;
	var->refname = "(unnamed)";
	var->datatype = type;
	var->isnull = true;
	interpret(frame, site, (PLpgSQL_datum *) var);
}

/* a condition */
bool
MotProcedureTest(MotFrame *frame, MotSite *site)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	PLpgSQL_var var;

	interpret_as(frame, site, ((PLpgSQL_var *) estate->datums[estate->found_varno])->datatype, &var);
	return !var.isnull && DatumGetBool(var.value);
}

/* a bound of a loop, whose variable is the target */
void
MotProcedureBound(MotFrame *frame, MotSite *site)
{
	PLpgSQL_var var;

	interpret_as(frame, site, ((PLpgSQL_var *) estate_of(frame)->datums[site->target])->datatype, &var);
	frame->slots[site->slot].value = var.value;
	frame->slots[site->slot].isnull = var.isnull;
}

/* what has been evaluated into the slot */
void
MotProcedurePut(MotFrame *frame, MotSite *site)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	const NullableDatum *slot = &frame->slots[site->slot];
	PLpgSQL_var *var = (PLpgSQL_var *) estate->datums[site->target];
	const PLpgSQL_type *type = var->datatype;

	if (MotValueIsFinal(var, site->same_type, site->type, site->typmod) &&
		(slot->isnull || !MotValueIsElsewhere(slot->value, type->typbyval, type->typlen)))
		MotVariableSet(var, slot->isnull ? (Datum) 0 : MotValueCopy(slot->value, type->typbyval, type->typlen, estate->datum_context),
					   slot->isnull);
	else
	{
		/* casts and domains may call anything */
		if (!site->same_type)
			frame->seen = 0;
		MotProcedurePlugin.assign_value(estate, (PLpgSQL_datum *) var, slot->value, slot->isnull,
										site->type, site->typmod);
	}
	MotProcedureClean(frame, NULL);
}

void
MotProcedureClean(MotFrame *frame, void *unused)
{
	ResetExprContext(estate_of(frame)->eval_econtext);
}

/*
 * A variable becomes null, whatever it is declared as: when its block begins, or a CASE has used
 * it.
 */
void
MotProcedureForget(MotFrame *frame, PLpgSQL_datum *datum)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	PLpgSQL_var *var = (PLpgSQL_var *) estate->datums[datum->dno];

	if (var->dtype == PLPGSQL_DTYPE_REC)
	{
		frame->seen = 0;
		MotProcedurePlugin.assign_value(estate, (PLpgSQL_datum *) var, (Datum) 0, true, UNKNOWNOID, -1);
		return;
	}
	if (var->freeval)
	{
		if (DatumIsReadWriteExpandedObject(var->value, var->isnull, var->datatype->typlen))
			DeleteExpandedObject(var->value);
		else
			pfree(DatumGetPointer(var->value));
	}
	var->value = (Datum) 0;
	var->isnull = true;
	var->freeval = false;
	var->promise = PLPGSQL_PROMISE_NONE;
}

void
MotProcedureSetFound(MotFrame *frame, bool found)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	PLpgSQL_var *var = (PLpgSQL_var *) estate->datums[estate->found_varno];

	var->value = BoolGetDatum(found);
	var->isnull = false;
}

/* A domain may not take nulls. */
void
MotProcedureRefuseNull(MotFrame *frame, PLpgSQL_datum *datum)
{
	PLpgSQL_execstate *estate = estate_of(frame);

	frame->seen = 0;
	MotProcedurePlugin.assign_value(estate, estate->datums[datum->dno], (Datum) 0, true, UNKNOWNOID, -1);
}

void
MotProcedureReturnVariable(MotFrame *frame, PLpgSQL_datum *datum)
{
	PLpgSQL_execstate *estate = estate_of(frame);
	const PLpgSQL_var *var = (const PLpgSQL_var *) estate->datums[datum->dno];

	estate->retval = var->value;
	estate->retisnull = var->isnull;
	estate->rettype = var->datatype->typoid;
}

/* ----------------------------------------------------------------- errors */

void
MotProcedureNullBound(MotFrame *frame, const char *which)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s of FOR loop cannot be null", which)));
}

void
MotProcedureCheckStep(MotFrame *frame, const MotSite *site)
{
	if (DatumGetInt32(frame->slots[site->slot].value) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("BY value of FOR loop must be greater than zero")));
}

void
MotProcedureCaseNotFound(MotFrame *frame, void *unused)
{
	ereport(ERROR,
			(errcode(ERRCODE_CASE_NOT_FOUND),
			 errmsg("case not found"),
			 errhint("CASE statement is missing ELSE part.")));
}
