/*-------------------------------------------------------------------------
 *
 * jit.c
 *	  The compiler seen from SQL, for its tests.
 *
 * The extension's script declares none of these; sql/jit_expressions.sql does.
 * A query is a SELECT from one memory-optimized table.  Its plan's conditions
 * and outputs are evaluated for every row of the table, by compiled code and
 * by the executor's expressions, errors included.
 *
 *	mot_jit_compare(query, variadic parameters)
 *							"equal: 3 of 5 rows pass, 1 error", or the first
 *							difference, or "declined: why"
 *	mot_jit_installed()		is there a compiler?
 *	mot_jit_scatter()		from now on this session has room near what is mapped for single
 *							pages only, and for more 4 GB away: code and its constants lie
 *							as far from each other as beside large shared memory.  How many
 *							such pages there are
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "access/table.h"
#include "access/xact.h"
#include "compat/calls.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "relation/relation.h"
#include "statement/jit.h"
#include "storage/fd.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "xact/xact.h"

PG_FUNCTION_INFO_V1(mot_jit_compare);
PG_FUNCTION_INFO_V1(mot_jit_installed);
PG_FUNCTION_INFO_V1(mot_jit_scatter);

/* a query, ready to be evaluated in both ways */
typedef struct Test
{
	Relation	rel;
	mot_session *session;
	mot_view	view;
	MotRelation *mr;
	MotRowRequest request;
	MotRowCode *code;
	const char *why_not;
	MotRowContext context;		/* of the compiled program */
	ExprContext *econtext;		/* of the executor's expressions */
	ExprState  *qual;
	List	   *outputs;		/* ExprStates */
	TupleTableSlot *slot;
	MemoryContext row_cxt;
} Test;

/* what one way made of a row */
typedef struct Outcome
{
	bool		passes;
	Datum	   *values;
	bool	   *isnull;
	char	   *error;			/* NULL: none */
} Outcome;

static MotJitProvider *
provider(void)
{
	static MotJitProvider functions;

	if (functions.compile == NULL)
	{
		functions.sooner = MotCompilerSooner;
		((MotJitProviderInit) load_external_function(MOT_JIT_LIBRARY, MOT_JIT_INIT_FUNCTION, true, NULL)) (&functions);
	}
	return &functions;
}

Datum
mot_jit_installed(PG_FUNCTION_ARGS)
{
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), "%s/mot_jit%s", pkglib_path, DLSUFFIX);
	PG_RETURN_BOOL(access(path, R_OK) == 0);
}

static bool
find_params(Node *node, List **params)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		*params = list_append_unique(*params, node);
	return expression_tree_walker(node, find_params, params);
}

/* parameters from argument "first" on */
static Test *
begin_test(FunctionCallInfo fcinfo, int first)
{
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Test	   *test = palloc0(sizeof(Test));
	Datum	   *values = NULL;
	bool	   *nulls = NULL;
	Oid		   *types = NULL;
	int			nparams = 0;
	ParamListInfo params;
	List	   *parsed;
	PlannedStmt *planned;
	Plan	   *plan;
	ListCell   *lc;
	int			i = 0;

	if (PG_NARGS() > first)
		nparams = extract_variadic_args(fcinfo, first, true, &values, &types, &nulls);

	parsed = pg_parse_query(query);
	if (list_length(parsed) != 1)
		elog(ERROR, "the query must be one statement");
	parsed = pg_analyze_and_rewrite_fixedparams(linitial(parsed), query, types, Max(nparams, 0), NULL);
	planned = MotPgPlanQuery(linitial(parsed), query, 0, NULL);
	plan = planned->planTree;
	if (!IsA(plan, ForeignScan))
		elog(ERROR, "the query does not scan one memory-optimized table");

	test->request.varno = ((ForeignScan *) plan)->scan.scanrelid;
	test->rel = table_open(rt_fetch(test->request.varno, planned->rtable)->relid, AccessShareLock);
	test->mr = MotRelationGet(test->rel);
	test->session = MotSession();
	test->view = MotViewFor(GetActiveSnapshot());
	test->request.desc = test->mr->desc;
	test->request.quals = plan->qual;
	foreach(lc, plan->targetlist)
		test->request.outputs = lappend(test->request.outputs, lfirst_node(TargetEntry, lc)->expr);
	find_params((Node *) plan->qual, &test->request.params);
	find_params((Node *) test->request.outputs, &test->request.params);
	test->request.statement = query;

	test->code = provider()->compile(&test->request, &test->why_not);

	/* the same parameters for both ways */
	params = makeParamList(Max(nparams, 0));
	for (i = 0; i < nparams; i++)
	{
		params->params[i].value = values[i];
		params->params[i].isnull = nulls[i];
		params->params[i].ptype = types[i];
		params->params[i].pflags = PARAM_FLAG_CONST;
	}
	{
		int			n = list_length(test->request.params);
		Datum	   *param_values = palloc0(sizeof(Datum) * (n + 1));
		bool	   *param_nulls = palloc0(sizeof(bool) * (n + 1));

		foreach(lc, test->request.params)
		{
			Param	   *param = lfirst_node(Param, lc);

			param_values[foreach_current_index(lc)] = values[param->paramid - 1];
			param_nulls[foreach_current_index(lc)] = nulls[param->paramid - 1];
		}
		test->context.params = param_values;
		test->context.params_isnull = param_nulls;
	}
	test->context.values = palloc0(sizeof(Datum) * (list_length(test->request.outputs) + 1));
	test->context.isnull = palloc0(sizeof(bool) * (list_length(test->request.outputs) + 1));
	test->context.private = test->code ? test->code->private : NULL;

	test->slot = MakeSingleTupleTableSlot(RelationGetDescr(test->rel), &TTSOpsVirtual);
	test->econtext = CreateStandaloneExprContext();
	test->econtext->ecxt_param_list_info = params;
	test->econtext->ecxt_scantuple = test->slot;
	test->qual = ExecInitQual(test->request.quals, NULL);
	foreach(lc, test->request.outputs)
		test->outputs = lappend(test->outputs, ExecInitExpr(lfirst(lc), NULL));
	test->row_cxt = AllocSetContextCreate(CurrentMemoryContext, "mot jit test row", ALLOCSET_DEFAULT_SIZES);
	return test;
}

static void
end_test(Test *test)
{
	if (test->code)
		provider()->release(test->code);
	FreeExprContext(test->econtext, true);
	ExecDropSingleTupleTableSlot(test->slot);
	table_close(test->rel, AccessShareLock);
}

static bool
run_compiled(Test *test, const mot_version *version)
{
	return test->code->function(mot_version_data(version), mot_version_host_bits(version), &test->context);
}

static bool
run_executor(Test *test, const mot_version *version, Datum *values, bool *isnull)
{
	ListCell   *lc;
	int			i = 0;

	ExecClearTuple(test->slot);
	MotRowDeform(test->mr->desc, version, test->mr->desc->natts, test->slot->tts_values, test->slot->tts_isnull);
	ExecStoreVirtualTuple(test->slot);
	if (!ExecQual(test->qual, test->econtext))
		return false;
	foreach(lc, test->outputs)
	{
		values[i] = ExecEvalExpr((ExprState *) lfirst(lc), test->econtext, &isnull[i]);
		i++;
	}
	return true;
}

/* One way for one row, in a subtransaction, for an error ends it. */
static Outcome
try_row(Test *test, const mot_version *version, bool compiled)
{
	int			n = list_length(test->request.outputs);
	MemoryContext oldcxt = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	Outcome		result = {0};
	volatile bool passes = false;

	result.values = palloc0(sizeof(Datum) * (n + 1));
	result.isnull = palloc0(sizeof(bool) * (n + 1));
	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		MemoryContextSwitchTo(test->row_cxt);
		test->econtext->ecxt_per_tuple_memory = test->row_cxt;
		if (compiled)
		{
			passes = run_compiled(test, version);
			memcpy(result.values, test->context.values, sizeof(Datum) * n);
			memcpy(result.isnull, test->context.isnull, sizeof(bool) * n);
		}
		else
			passes = run_executor(test, version, result.values, result.isnull);
		MemoryContextSwitchTo(oldcxt);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(test->row_cxt);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		result.error = psprintf("%s %s%s%s", unpack_sql_state(error->sqlerrcode), error->message,
								error->detail ? ": " : "", error->detail ? error->detail : "");
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);
	CurrentResourceOwner = oldowner;
	result.passes = passes;
	return result;
}

static char *
describe_value(Oid type, Datum value, bool isnull)
{
	Oid			function;
	bool		varlena;

	if (isnull)
		return "null";
	getTypeOutputInfo(type, &function, &varlena);
	return OidOutputFunctionCall(function, value);
}

static char *
describe_outcome(Test *test, Outcome *outcome, int column)
{
	if (outcome->error)
		return psprintf("error %s", outcome->error);
	if (!outcome->passes)
		return "does not pass";
	if (column < 0)
		return "passes";
	return describe_value(exprType(list_nth(test->request.outputs, column)),
						  outcome->values[column], outcome->isnull[column]);
}

/* what is in a Datum beside a short value is anybody's: hashtext() of 16 leaves no sign there */
static Datum
clean(Datum value, int16 typlen, bool typbyval)
{
	Datum		bytes = 0;

	if (!typbyval)
		return value;
	store_att_byval(&bytes, value, typlen);
	return fetch_att(&bytes, true, typlen);
}

/* -1: equal but for nothing; otherwise the column that differs, or natts for the rest */
static bool
same_outcome(Test *test, Outcome *a, Outcome *b, int *column)
{
	ListCell   *lc;

	*column = -1;
	if ((a->error == NULL) != (b->error == NULL))
		return false;
	if (a->error)
		return strcmp(a->error, b->error) == 0;
	if (a->passes != b->passes)
		return false;
	if (!a->passes)
		return true;
	foreach(lc, test->request.outputs)
	{
		int			i = foreach_current_index(lc);
		Oid			type = exprType(lfirst(lc));
		int16		typlen;
		bool		typbyval;

		*column = i;
		get_typlenbyval(type, &typlen, &typbyval);
		if (a->isnull[i] != b->isnull[i])
			return false;
		if (!a->isnull[i] &&
			!datum_image_eq(clean(a->values[i], typlen, typbyval), clean(b->values[i], typlen, typbyval), typbyval, typlen))
			return false;
	}
	return true;
}

Datum
mot_jit_compare(PG_FUNCTION_ARGS)
{
	Test	   *test = begin_test(fcinfo, 1);
	char	   *result = NULL;
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;
	int			rows = 0;
	int			passed = 0;
	int			errors = 0;

	if (test->code == NULL)
	{
		result = psprintf("declined: %s", test->why_not);
		end_test(test);
		PG_RETURN_TEXT_P(cstring_to_text(result));
	}

	mot_scan_begin(test->session, &scan, test->mr->table, &test->view);
	while (result == NULL && mot_scan_next(test->session, &scan, &row, &version))
	{
		Outcome		compiled = try_row(test, version, true);
		Outcome		expected = try_row(test, version, false);
		int			column;

		rows++;
		if (expected.error)
			errors++;
		else if (expected.passes)
			passed++;
		if (!same_outcome(test, &compiled, &expected, &column))
			result = psprintf("different in row %d, column %d: compiled %s, executor %s", rows, column + 1,
							  describe_outcome(test, &compiled, column), describe_outcome(test, &expected, column));
		MemoryContextReset(test->row_cxt);
	}
	end_test(test);
	if (result == NULL)
		result = psprintf("equal: %d of %d rows pass, %d errors", passed, rows, errors);
	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/* Addresses that nothing will be mapped at, at "at" or wherever there is room. */
static uintptr_t
take(uintptr_t at, size_t size)
{
	void	   *got = mmap((void *) at, size, PROT_NONE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (got == MAP_FAILED)
		elog(ERROR, "could not map %zu bytes: %m", size);
	return (uintptr_t) got;
}

#define SCATTERED 200			/* pages: more than there will be programs */

Datum
mot_jit_scatter(PG_FUNCTION_ARGS)
{
	size_t		page = sysconf(_SC_PAGESIZE);
	size_t		size = UINT64CONST(4) << 30;
	uintptr_t	end = take(0, size) + size;
	uintptr_t	(*gaps)[2] = palloc(1000 * sizeof(*gaps));
	int			n = 0;
	int			left = 0;
	FILE	   *maps = AllocateFile("/proc/self/maps", "r");
	char		line[1024];

	if (maps == NULL)
		elog(ERROR, "could not open /proc/self/maps: %m");
	/* (what is below the stack is for it to grow into) */
	while (fgets(line, sizeof(line), maps) != NULL && strstr(line, "[stack]") == NULL && n < 1000)
	{
		unsigned long from;
		unsigned long to;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= end)
			continue;
		if (from > end)
		{
			gaps[n][0] = end;
			gaps[n++][1] = from;
		}
		end = to;
	}
	FreeFile(maps);

	/*
	 * the kernel looks for room from the top: single pages, as long as there
	 * are any
	 */
	while (--n >= 0)
	{
		uintptr_t	at = gaps[n][1] - page;

		for (; at > gaps[n][0] && left < SCATTERED; at -= 2 * page, left++)
			take(at - page, page);
		if (at > gaps[n][0])
			take(gaps[n][0], at - gaps[n][0]);
	}
	PG_RETURN_INT32(left);
}
