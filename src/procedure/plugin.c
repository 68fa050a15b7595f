/*-------------------------------------------------------------------------
 *
 * plugin.c
 *	  Which functions in PL/pgSQL are known, have code, and how they run.
 *
 * plpgsql_exec_function() calls a plugin's func_beg and then exec_toplevel_block() with the
 * function's body (func->action), which first calls stmt_beg.  So func_beg can put another body
 * there, and stmt_beg put the function's own back before anybody else can see it:
 *
 *		top:	BEGIN
 *					first;					what "first" is, says stmt_beg of "top"
 *				END
 *		loop:	LOOP
 *					next;					... of "top", or of "step"
 *					step: BEGIN END;
 *				END LOOP
 *
 * In stmt_beg of "top" the code runs.  If it has come to the end, "first" is a RETURN, else "loop",
 * and "next" the statement that the interpreter has to do; in stmt_beg of "step" the code goes on
 * after it.  The statements are the function's own, so lines and texts are as ever, and what they
 * raise unwinds what is on the stack then: the interpreter, none of ours.
 *
 * The two places in these lists are set just before the interpreter reads them, so that activations
 * share them.  After that a place has a statement that fails, for another plugin could have taken
 * our place meanwhile.  (One that is there from the start has all functions to itself.)
 *
 * RETURN as machine code has stored its value already.  The RETURN that is done in its place must
 * not touch that; so while it is, the function pretends to return a set, whose rows are there.
 *
 * Nothing tells when an activation ends with an error: a frame belongs to the activation's memory,
 * and code is thrown away only when there is no other activation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "fmgr.h"
#include "procedure/procedure.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define CACHE_SIZE 256			/* a power of two */
#define MAX_WAIT 10000			/* executions until it is compiled anew, at
								 * most */

static bool jit_procedures = false;
static int	jit_procedures_above = 100;

static PLpgSQL_plugin **plugin;
static HTAB *procedures = NULL;
static MemoryContext procedures_cxt = NULL;
static MotProcedure *cache[CACHE_SIZE];

static void func_beg(PLpgSQL_execstate *estate, PLpgSQL_function *func);
static void stmt_beg(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt);
static void stmt_end(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt);

PLpgSQL_plugin MotProcedurePlugin = {
	.func_beg = func_beg,
	.stmt_beg = stmt_beg,
	.stmt_end = stmt_end
};

/* The first time that somebody wants it.  It stays then: somebody's function may be running. */
static void
assign_setting(bool value, void *extra)
{
	if (value && *plugin == NULL)
		*plugin = &MotProcedurePlugin;
}

void
MotProcedureInit(void)
{
	plugin = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");
	DefineCustomBoolVariable("mot.jit_procedures",
							 "Compiles functions and procedures in PL/pgSQL to machine code.",
							 NULL,
							 &jit_procedures, false, PGC_USERSET, 0, NULL, assign_setting, NULL);
	DefineCustomIntVariable("mot.jit_procedures_above_executions",
							"Executions after which a function in PL/pgSQL is compiled to machine code.",
							"-1 never compiles.",
							&jit_procedures_above, 100, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}

/* -------------------------------------------------------------- functions */

static void
make_table(void)
{
	procedures_cxt = AllocSetContextCreate(TopMemoryContext, "MOT procedures", ALLOCSET_DEFAULT_SIZES);
	procedures = MotHashCreate("MOT procedures", 64, sizeof(PLpgSQL_function *), sizeof(MotProcedure), procedures_cxt);
	MotWatchPlans(NULL, NULL);
}

static inline MotProcedure **
cached(const PLpgSQL_function *func)
{
	return &cache[(((uintptr_t) func * UINT64CONST(0x9E3779B97F4A7C15)) >> 40) & (CACHE_SIZE - 1)];
}

static void
release(MotProcedureCode *code)
{
	while (code != NULL)
	{
		MotProcedureCode *older = code->older;

		MotRowCodeRelease(code->code);
		MemoryContextDelete(code->cxt);
		code = older;
	}
}

/* Its memory goes: nobody executes it. */
static void
function_gone(void *arg)
{
	PLpgSQL_function *func = arg;
	MotProcedure *procedure = hash_search(procedures, &func, HASH_FIND, NULL);

	if (procedure == NULL)
		return;
	release(procedure->code);
	if (*cached(func) == procedure)
		*cached(func) = NULL;
	(void) hash_search(procedures, &func, HASH_REMOVE, NULL);
}

/* Why is it never compiled? */
static const char *
why_never(const PLpgSQL_function *func)
{
	if (func->fn_is_trigger != PLPGSQL_NOT_TRIGGER)
		return "it is a trigger's function";
	if (func->fn_retset)
		return "it returns a set";
	return NULL;
}

static void
make_body(MotProcedure *procedure)
{
	const PLpgSQL_stmt_block *action = procedure->function->action;

	procedure->top.cmd_type = PLPGSQL_STMT_BLOCK;
	procedure->top.lineno = action->lineno;
	procedure->loop.cmd_type = PLPGSQL_STMT_LOOP;
	procedure->step.cmd_type = PLPGSQL_STMT_BLOCK;
	procedure->nothing.cmd_type = PLPGSQL_STMT_BLOCK;
	procedure->leave.cmd_type = PLPGSQL_STMT_RETURN;
	procedure->leave.retvarno = -1;
	procedure->ended.cmd_type = PLPGSQL_STMT_EXIT;
	procedure->ended.is_exit = true;
	procedure->lost.cmd_type = PLPGSQL_STMT_RAISE;
	procedure->lost.elog_level = ERROR;
	procedure->lost.message = "another plugin of PL/pgSQL has been loaded while a function was running";
	procedure->top.body = list_make1(&procedure->lost);
	procedure->loop.body = list_make2(&procedure->lost, &procedure->step);
}

static pg_noinline MotProcedure *
find_or_make(PLpgSQL_function *func)
{
	MotProcedure *procedure;

	if (procedures == NULL)
		make_table();
	procedure = hash_search(procedures, &func, HASH_FIND, NULL);
	if (procedure == NULL)
	{
		MemoryContextCallback *callback = MemoryContextAlloc(func->fn_cxt, sizeof(MemoryContextCallback));

		procedure = hash_search(procedures, &func, HASH_ENTER, NULL);
		MemSet((char *) procedure + sizeof(func), 0, sizeof(MotProcedure) - sizeof(func));
		procedure->oid = func->fn_oid;
		procedure->why_not = why_never(func);
		procedure->compile_at = jit_procedures_above;
		callback->func = function_gone;
		callback->arg = func;
		MemoryContextRegisterResetCallback(func->fn_cxt, callback);
		MotWithin(func->fn_cxt, make_body(procedure));
	}
	*cached(func) = procedure;
	return procedure;
}

void
MotProcedureEach(void (*visit) (MotProcedure *procedure, void *arg), void *arg)
{
	if (procedures == NULL)
		return;
	foreach_hash(MotProcedure, procedure, procedures)
		visit(procedure, arg);
}

/* Is there another plugin, which has all functions to itself? */
bool
MotProcedurePluginIsOther(void)
{
	return *plugin != NULL && *plugin != &MotProcedurePlugin;
}

/* -------------------------------------------------------------- compiling */

static void
compile(MotProcedure *procedure, PLpgSQL_execstate *estate)
{
	MemoryContext cxt = AllocSetContextCreate(procedures_cxt, "MOT procedure", ALLOCSET_SMALL_SIZES);
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "MOT procedure's program", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(work);
	MotProcedureCode *code = MemoryContextAllocZero(cxt, sizeof(MotProcedureCode));
	const char *why_not;
	const MotJitProvider *compiler = MotCompiler(&why_not);

	code->cxt = cxt;
	code->procedure = procedure;
	while (compiler != NULL)
	{
		MotProcedureRequest *request = MotProcedureTranslate(code, estate, &why_not);

		if (request == NULL)
			break;
		code->code = compiler->compile_procedure(request, &why_not);
		if (code->code != NULL || request->declined < 0)
			break;
		/* without that expression */
		foreach_ptr(MotSite, site, code->sites)
			if (site->number == request->declined)
		{
			code->declined = lappend(code->declined, site->expr);
			code->why_declined = lappend(code->why_declined, MemoryContextStrdup(cxt, why_not));
		}
	}
	MemoryContextSwitchTo(oldcxt);

	code->declined = code->why_declined = NIL;
	procedure->compile_at = procedure->executions + Min(Max(procedure->executions, 1), MAX_WAIT);
	procedure->unplanned_hits = 0;
	if (code->code == NULL)
	{
		MotWithin(procedure->function->fn_cxt,
				  procedure->why_not_now = pstrdup(why_not != NULL ? why_not : "the compiler declined"));
		MemoryContextDelete(cxt);
		MemoryContextDelete(work);
		return;
	}
	MemoryContextDelete(work);
	procedure->why_not_now = NULL;
	procedure->compile_ms += code->code->compile_ms;
	code->function = (MotProcedureFunction) (uintptr_t) code->code->function;
	code->older = procedure->code;
	procedure->code = code;
}

/* The code that an activation that begins now may run; NULL: none. */
static MotProcedureCode *
code_for(MotProcedure *procedure, PLpgSQL_execstate *estate)
{
	MotProcedureCode *code = procedure->code;

	if (code != NULL && code->older != NULL && MotFunctionUses(procedure->function) == 1)
	{
		release(code->older);
		code->older = NULL;
	}
	if ((code == NULL || code->stale || procedure->unplanned_hits > 0) &&
		jit_procedures_above >= 0 && procedure->executions >= procedure->compile_at)
	{
		if (code != NULL && MotFunctionUses(procedure->function) == 1)
		{
			release(code);
			procedure->code = NULL;
		}
		compile(procedure, estate);
		code = procedure->code;
	}
	return code == NULL || code->stale ? NULL : code;
}

/* ---------------------------------------------------------------- running */

static void
func_beg(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	MotProcedure *procedure;
	MotProcedureCode *code;
	MotFrame   *frame;

	/* (code blocks come once, and parallel workers are new each time) */
	if (!jit_procedures || *plugin != &MotProcedurePlugin || !OidIsValid(func->fn_oid) || IsParallelWorker())
		return;
	procedure = *cached(func);
	if (procedure == NULL || procedure->function != func)
		procedure = find_or_make(func);
	if (procedure->why_not != NULL)
		return;
	code = code_for(procedure, estate);
	procedure->executions++;
	if (code == NULL)
		return;
	procedure->compiled_executions++;

	frame = MemoryContextAlloc(estate->datum_context, offsetof(MotFrame, slots) + code->nslots * sizeof(NullableDatum));
	frame->estate = estate;
	frame->variables = (char *) estate->datums[code->base];
	frame->next = NULL;
	frame->memory = NULL;
	frame->resume = 0;
	frame->code = code;
	estate->plugin_info = frame;
	/* from here to stmt_beg nothing can fail */
	frame->action = func->action;
	func->action = &procedure->top;
}

/* Run the code; the statement that the interpreter has to do then. */
static PLpgSQL_stmt *
run(MotProcedure *procedure, MotFrame *frame, PLpgSQL_execstate *estate)
{
	volatile int32 how;

	frame->seen = 0;			/* anything may have happened */
	frame->evaluating = NULL;
	PG_TRY();
	{
		how = frame->code->function(frame);
	}
	PG_CATCH();
	{
		MotProcedureFails(frame);
		PG_RE_THROW();
	}
	PG_END_TRY();
	frame->err_var = estate->err_var;
	/* what we hand over would come to nobody who knows it */
	if (unlikely(*plugin != &MotProcedurePlugin))
	{
		frame->next = NULL;
		return (PLpgSQL_stmt *) &procedure->lost;
	}
	switch (how)
	{
		case MOT_PROCEDURE_SUSPENDED:
			return frame->next;
		case MOT_PROCEDURE_RETURNS:
			frame->next = NULL;
			procedure->leave.lineno = estate->err_stmt->lineno;
			return (PLpgSQL_stmt *) &procedure->leave;
		default:
			frame->next = NULL;
			return (PLpgSQL_stmt *) &procedure->ended;
	}
}

static void
stmt_beg(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	MotFrame   *frame = estate->plugin_info;
	MotProcedure *procedure;

	if (frame == NULL || frame->estate != estate)
		return;
	procedure = frame->code->procedure;
	if (stmt == (PLpgSQL_stmt *) &procedure->step)
		linitial(procedure->loop.body) = run(procedure, frame, estate);
	else if (stmt == frame->next)
	{
		linitial(procedure->loop.body) = &procedure->lost;
		frame->next = NULL;
	}
	else if (stmt == (PLpgSQL_stmt *) &procedure->top)
	{
		PLpgSQL_stmt *next;

		procedure->function->action = frame->action;
		next = run(procedure, frame, estate);
		if (frame->next != NULL)
		{
			linitial(procedure->loop.body) = next;
			next = (PLpgSQL_stmt *) &procedure->loop;
		}
		else if (next == (PLpgSQL_stmt *) &procedure->ended)
			next = (PLpgSQL_stmt *) &procedure->nothing;
		linitial(procedure->top.body) = next;
	}
	else if (stmt == (PLpgSQL_stmt *) &procedure->leave)
		estate->retisset = true;
}

static void
stmt_end(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	MotFrame   *frame = estate->plugin_info;

	if (frame == NULL || frame->estate != estate)
		return;
	if (stmt == (PLpgSQL_stmt *) &frame->code->procedure->leave)
		estate->retisset = false;
	else if (stmt == (PLpgSQL_stmt *) &frame->code->procedure->step)
		/* which a block takes away, but this one is none of the function's */
		estate->err_var = frame->err_var;
}
