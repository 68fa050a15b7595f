/*-------------------------------------------------------------------------
 *
 * compiled.c
 *	  Row programs: what a statement does with each row, as machine code once
 *	  it has proved hot.
 *
 * A statement's nodes say what they evaluate for each row when the statement's
 * program is made.  Nothing is done with that until the statement has been
 * executed often; then the compiler's library is loaded, if there is one, and
 * asked.  What it declines is evaluated by prepared expressions as before, and
 * so is an execution whose parameters cannot be had beforehand without side
 * effects or errors that the statement itself might not meet.
 *
 * The code belongs to the session, and goes with the program it is of.  If
 * all code takes more than mot.jit_memory, nothing more is compiled until some
 * of it has gone.  Compiling makes the execution that it happens in wait: a
 * row program takes a few milliseconds at most, because the compiler declines
 * long ones, and of several programs of a statement those that would make it
 * longer are left to the executions after it.
 *
 * Code has to pay.  For one row it saves some twenty to a hundred nanoseconds,
 * where the same is done with one row after the other.  Between two messages of
 * a client the processor has done other things; then a session's own code, which
 * no other session shares, has to come from memory each time, and costs more
 * than it saves (5 % of pgbench's transaction, and 4 % of TPC-C's procedures,
 * measured).  So a statement is compiled only if it goes through more than
 * mot.jit_above_rows rows between two messages, in one execution or in many.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "statement/statement.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

/*
 * milliseconds of compiling after which an execution is to begin (unless all is to be compiled at
 * once)
 */
#define MAX_PAUSE_MS 3.0

static const char no_compiler[] = "there is no compiler (mot_jit is not installed)";

static const char enough[] = "there is enough code already (mot.jit_memory)";

static const char few_rows[] = "few rows are gone through for a client's message (mot.jit_above_rows)";

int			mot_jit_above = 10000;
static int	jit_above_rows = 50;
static int	jit_memory = 64 * 1024; /* kB */

/* the library: not looked for, not there, or loaded */
static enum
{
	LIBRARY_UNKNOWN, LIBRARY_MISSING, LIBRARY_LOADED
}			library = LIBRARY_UNKNOWN;

PGFunction	(*MotCompilerSooner) (Oid funcid) = NULL;

static MotJitProvider provider;

void
MotCompiledInit(void)
{
	DefineCustomIntVariable("mot.jit_above_executions",
							"Executions without the executor after which a statement is compiled to machine code.",
							"-1 never compiles.",
							&mot_jit_above, 10000, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mot.jit_above_rows",
							"Rows that a statement has to go through for a client's message, on average, to be compiled.",
							"In one execution or, in a function, in many.",
							&jit_above_rows, 50, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mot.jit_memory",
							"Memory for the machine code of a session's statements.",
							NULL,
							&jit_memory, 64 * 1024, 0, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
}

/* -------------------------------------------------------------- requests */

static bool
collect_params(Node *node, List **params)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
	{
		foreach_ptr(Param, param, *params)
		{
			if (param->paramkind == ((Param *) node)->paramkind &&
				param->paramid == ((Param *) node)->paramid)
				return false;
		}
		*params = lappend(*params, node);
		return false;
	}
	return expression_tree_walker(node, collect_params, params);
}

/*
 * "values" and "isnull" are where the outputs go.  In the statement's memory.
 * NULL: there are sub-selects in it.
 */
MotRowProgram *
MotRowProgramMake(MotStatement *st, Index varno, TupleDesc desc, List *quals, List *outputs,
				  List *aggregates, Datum *values, bool *isnull, ExprContext *econtext)
{
	MotRowProgram *program;
	MotRowRequest *request;
	int			nparams;
	List	   *expressions = list_make2(quals, outputs);

	foreach_ptr(MotRowAggregate, aggregate, aggregates)
		expressions = lappend(lappend(expressions, aggregate->args), aggregate->filter);
	if (contain_subplans((Node *) expressions))
	{
		st->row_subselects = true;
		return NULL;
	}

	program = palloc0(sizeof(MotRowProgram));
	request = &program->request;
	request->desc = desc;
	request->varno = varno;
	request->quals = quals;
	request->outputs = outputs;
	request->aggregates = aggregates;
	request->statement = st->text;
	(void) collect_params((Node *) expressions, &request->params);
	nparams = list_length(request->params);
	program->params = palloc0(Max(1, nparams) * sizeof(Datum));
	program->params_isnull = palloc0(Max(1, nparams) * sizeof(bool));
	program->params_held = palloc0(Max(1, nparams) * sizeof(bool));
	nparams = 0;
	foreach_ptr(Param, param, request->params)
	{
		program->params_held[nparams++] = param->paramkind == PARAM_EXTERN &&
			get_typbyval(param->paramtype);
	}
	program->execution = &st->executions;
	program->held_in = ~UINT64CONST(0);
	program->context.params = program->params;
	program->context.params_isnull = program->params_isnull;
	program->context.values = values;
	program->context.isnull = isnull;
	program->econtext = econtext;
	st->programs = lappend(st->programs, program);
	return program;
}

/* -------------------------------------------------------------- compiling */

/* Has this session loaded it?  *why_not: NULL, or why it cannot. */
bool
MotCompilerLoaded(const char **why_not)
{
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), "%s/mot_jit%s", pkglib_path, DLSUFFIX);
	*why_not = library == LIBRARY_LOADED || (library == LIBRARY_UNKNOWN && access(path, R_OK) == 0) ?
		NULL : no_compiler;
	return library == LIBRARY_LOADED;
}

static bool
load_library(void)
{
	const char *why_not;

	if (MotCompilerLoaded(&why_not))
		return true;
	library = LIBRARY_MISSING;	/* also if it cannot be loaded */
	if (why_not != NULL)
		return false;
	provider.sooner = MotCompilerSooner;
	((MotJitProviderInit) load_external_function(MOT_JIT_LIBRARY, MOT_JIT_INIT_FUNCTION,
												 true, NULL)) (&provider);
	library = LIBRARY_LOADED;
	return true;
}

/* Of the program so far. */
static uint64
rows_gone_through(const MotStatement *st)
{
	uint64		rows = MotChangeRows(st->change);

	foreach_ptr(MotScanNode, sn, st->scans)
		rows += sn->scan->rows;
	return rows;
}

/* Its executions for one message of the client are together. */
static bool
pays(const MotStatement *st)
{
	return mot_jit_above == 0 || jit_above_rows == 0 ||
		rows_gone_through(st) / Max(st->messages, 1) > (uint64) jit_above_rows;
}

/* The statement has been executed often. */
void
MotStatementCompile(MotStatement *st)
{
	MemoryContext oldcxt;
	double		spent = 0;

	st->compile_tried = true;
	st->why_not_compiled = NULL;
	if (st->row_subselects)
		st->why_not_compiled = "sub-selects are evaluated for each row";
	if (st->programs == NIL)
	{
		if (!st->row_subselects)
			st->why_not_compiled = "nothing is computed from rows";
		return;
	}
	if (!pays(st))
	{
		st->why_not_compiled = few_rows;
		st->compile_tried = false;
		st->compile_after = st->uses + mot_jit_above;
		return;
	}
	if (!load_library())
	{
		st->why_not_compiled = no_compiler;
		return;
	}

	oldcxt = MemoryContextSwitchTo(st->cxt);
	foreach_ptr(MotRowProgram, program, st->programs)
	{
		const char *why_not = NULL;

		if (program->tried)
			continue;
		if (spent > MAX_PAUSE_MS && mot_jit_above > 0)
		{
			/* the rest in the next execution */
			st->compile_tried = false;
			break;
		}
		if (provider.bytes() / 1024 >= (size_t) jit_memory)
		{
			/* a look now and then whether there is less */
			st->why_not_compiled = enough;
			st->compile_tried = false;
			st->compile_after = st->uses + 1000;
			break;
		}
		program->tried = true;
		program->code = provider.compile(&program->request, &why_not);
		if (program->code != NULL)
		{
			program->context.private = program->code->private;
			program->function = program->code->function;
			spent += program->code->compile_ms;
			st->code_bytes += program->code->code_bytes;
			st->compiled++;
		}
		else if (st->why_not_compiled == NULL)
			st->why_not_compiled = why_not != NULL ? why_not : "the compiler declined";
	}
	st->compile_ms += spent;
	MemoryContextSwitchTo(oldcxt);
}

void
MotRowCodeRelease(MotRowCode *code)
{
	provider.release(code);
}

static void
release_code(void *code)
{
	MotRowCodeRelease(code);
}

/*
 * Machine code for a query that is no statement of ours, or NULL; it goes with "cxt",
 * the current context or one around it.
 */
MotRowCode *
MotRowCodeMake(const MotRowRequest *request, MemoryContext cxt, const char **why_not)
{
	MotRowCode *code;
	MemoryContextCallback *gone;

	*why_not = "mot.jit_above_executions is -1";
	if (mot_jit_above < 0 || MotCompiler(why_not) == NULL)
		return NULL;
	gone = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));
	code = provider.compile(request, why_not);
	if (code == NULL)
	{
		if (*why_not == NULL)
			*why_not = "the compiler declined";
		return NULL;
	}
	gone->func = release_code;
	gone->arg = code;
	MemoryContextRegisterResetCallback(cxt, gone);
	return code;
}

/* The compiler, if there is one and it may make more code; else NULL, and why. */
const MotJitProvider *
MotCompiler(const char **why_not)
{
	*why_not = no_compiler;
	if (!load_library())
		return NULL;
	*why_not = enough;
	return provider.bytes() / 1024 < (size_t) jit_memory ? &provider : NULL;
}

/* The statement's program goes. */
void
MotStatementRelease(MotStatement *st)
{
	foreach_ptr(MotRowProgram, program, st->programs)
		if (program->code != NULL)
		provider.release(program->code);
}

/* The intermediate representation of what is compiled of a statement, or NULL. */
char *
MotStatementDump(MotStatement *st)
{
	StringInfoData buf;

	if (st->compiled == 0)
		return NULL;
	initStringInfo(&buf);
	foreach_ptr(MotRowProgram, program, st->programs)
	{
		char	   *text = program->code != NULL ? provider.dump(program->code) : NULL;

		if (text !=NULL)
			appendStringInfoString(&buf, text);
	}
	return buf.data;
}

/* ------------------------------------------------------------- execution */

/*
 * Fetch the parameters: those of the statement that are passed by value once an
 * execution, for they stay as they are.  False: not this time, or not before the sub-select
 * that one of them stands for has been evaluated (program->waits).  Called
 * before the first row and whenever a join's parameters have changed.
 */
bool
MotRowProgramBegin(MotRowProgram *program)
{
	ExprContext *econtext = program->econtext;
	ParamListInfo params = econtext->ecxt_param_list_info;
	bool		held = program->held_in == *program->execution;
	int			i = 0;

	program->waits = false;
	foreach_ptr(Param, param, program->request.params)
	{
		if (held && program->params_held[i])
		{
			i++;
			continue;
		}
		if (param->paramkind == PARAM_EXEC)
		{
			ParamExecData *prm = &econtext->ecxt_param_exec_vals[param->paramid];

			if (unlikely(prm->execPlan != NULL))
			{
				program->waits = true;
				return false;
			}
			program->params[i] = prm->value;
			program->params_isnull[i] = prm->isnull;
		}
		else
		{
			ParamExternData *prm;
			ParamExternData workspace;

			if (param->paramkind != PARAM_EXTERN || params == NULL ||
				param->paramid <= 0 || param->paramid > params->numParams)
				return false;
			if (params->paramFetch != NULL)
				prm = params->paramFetch(params, param->paramid, true, &workspace);
			else
				prm = &params->params[param->paramid - 1];
			if (prm == NULL || prm->ptype != param->paramtype)
				return false;
			program->params[i] = prm->value;
			program->params_isnull[i] = prm->isnull;
		}
		i++;
	}
	program->held_in = *program->execution;
	return true;
}
