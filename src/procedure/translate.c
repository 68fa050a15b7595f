/*-------------------------------------------------------------------------
 *
 * translate.c
 *	  The program of a procedure's body.
 *
 * Each statement does here what pl_exec.c does with it, in the same order, and leaves in the
 * execution state what an error's context is made of: the statement (err_stmt), the variable that
 * is being initialized (err_var), the phase (err_text).  Where EXIT, CONTINUE and RETURN lead is
 * known, so they are jumps; on the way out of a FOR loop FOUND is set, as the interpreter does it.
 *
 * What is not translated here (left.c) is handed to the interpreter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_coerce.h"
#include "procedure/procedure.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* steps of a body; a longer one takes too long to compile */
#define MAX_STEPS 5000

/* what EXIT and CONTINUE may refer to */
typedef struct Scope
{
	struct Scope *outer;
	const char *label;
	bool		loops;
	bool		sets_found;
	PLpgSQL_stmt *stmt;
	int			exit;			/* labels of steps */
	int			next;
} Scope;

typedef struct Translation
{
	MotProcedureCode *code;
	PLpgSQL_execstate *estate;
	MotProcedureRequest *request;
	int			room;			/* for steps */
	int			exprs_room;
	Scope	   *scope;
} Translation;

static void translate_list(Translation *t, List *stmts, PLpgSQL_stmt *parent);

/* ----------------------------------------------------------------- places */

#define IN_ESTATE(member) ((MotPlace) {MOT_BASE_ESTATE, offsetof(PLpgSQL_execstate, member)})
#define IN_SLOT(i, member) ((MotPlace) {MOT_BASE_FRAME, \
	offsetof(MotFrame, slots) + (i) * sizeof(NullableDatum) + offsetof(NullableDatum, member)})

static MotPlace
variable_place(const Translation *t, int dno, size_t member)
{
	char	   *base = (char *) t->estate->datums[t->code->base];

	return (MotPlace)
	{
		MOT_BASE_VARIABLES, (int) ((char *) t->estate->datums[dno] - base + member)
	};
}

#define IN_VARIABLE(t, dno, member) variable_place(t, dno, offsetof(PLpgSQL_var, member))

/* ------------------------------------------------------------------ steps */

static MotDo *
step(Translation *t, MotDoKind kind)
{
	MotProcedureRequest *request = t->request;
	MotDo	   *result;

	if (request->ndo == t->room)
	{
		t->room *= 2;
		request->dos = repalloc(request->dos, t->room * sizeof(MotDo));
	}
	result = &request->dos[request->ndo++];
	MemSet(result, 0, sizeof(MotDo));
	result->kind = kind;
	return result;
}

static int
new_label(Translation *t)
{
	return t->request->nlabels++;
}

static void
put_label(Translation *t, int label)
{
	step(t, MOT_DO_LABEL)->label = label;
}

static void
jump(Translation *t, int label)
{
	step(t, MOT_DO_JUMP)->label = label;
}

static void
store(Translation *t, MotPlace value, const void *address)
{
	MotDo	   *s = step(t, MOT_DO_STORE);

	s->value = value;
	s->address = address;
}

static void
store_flag(Translation *t, MotPlace value, bool flag)
{
	MotDo	   *s = step(t, MOT_DO_STORE_FLAG);

	s->value = value;
	s->number = flag;
}

#define CALL(t, function, argument_) do_call(t, MOT_DO_CALL, (const void *) (function), argument_)

static MotDo *
do_call(Translation *t, MotDoKind kind, const void *function, const void *argument)
{
	MotDo	   *s = step(t, kind);

	s->address = function;
	s->argument = argument;
	return s;
}

static void
unless_null(Translation *t, MotPlace flag, int label)
{
	MotDo	   *s = step(t, MOT_DO_UNLESS_NULL);

	s->value = flag;
	s->label = label;
}

static void
leave(Translation *t, int how, const void *stmt)
{
	MotDo	   *s = step(t, MOT_DO_LEAVE);

	s->number = how;
	s->address = stmt;
}

static void
at_statement(Translation *t, PLpgSQL_stmt *stmt)
{
	store(t, IN_ESTATE(err_stmt), stmt);
}

/* ------------------------------------------------------------ expressions */

static MotSite *
site_of(Translation *t, PLpgSQL_expr *expr, int target)
{
	MotSite    *site = MemoryContextAllocZero(t->code->cxt, sizeof(MotSite));

	site->expr = expr;
	site->target = target;
	site->number = -1;
	MotSiteLook(site, t->estate);
	foreach_ptr(PLpgSQL_expr, declined, t->code->declined)
		if (declined == expr && site->why_not == NULL)
		site->why_not = list_nth(t->code->why_declined, foreach_current_index(declined));
	MotWithin(t->code->cxt, t->code->sites = lappend(t->code->sites, site));
	return site;
}

static void
leave_site(MotSite *site, const char *why_not)
{
	if (site->why_not == NULL)
		site->why_not = why_not;
}

/*
 * The site's expression, or what has been made of it, is to be machine code; control goes to
 * "label" if the interpreter has to do it this time.
 */
static void
check(Translation *t, MotSite *site, Expr *expr, bool keep, int label)
{
	MotProcedureRequest *request = t->request;
	MotProcedureExpr *e;
	MotDo	   *s;

	if (request->nexprs == t->exprs_room)
	{
		t->exprs_room *= 2;
		request->exprs = repalloc(request->exprs, t->exprs_room * sizeof(MotProcedureExpr));
	}
	site->number = request->nexprs++;
	MotWithin(t->code->cxt, t->code->compiled = lappend(t->code->compiled, site));
	MotWithin(t->code->cxt, (void) MotListFunctions((Node *) expr, &t->code->functions));
	e = &request->exprs[site->number];
	e->expr = expr;
	e->keep = keep;
	e->busy = &site->expr->expr_simple_in_use;
	e->mark = site->expr;
	s = step(t, MOT_DO_CHECK);
	s->expr = site->number;
	s->label = label;
}

static void
evaluate(Translation *t, MotSite *site, MotPlace value, MotPlace isnull)
{
	MotDo	   *s = step(t, MOT_DO_EVALUATE);

	s->expr = site->number;
	s->value = value;
	s->other = isnull;
}

static Expr *
copy_of(const MotSite *site)
{
	return copyObject(site->expr->expr_simple_expr);
}

static int
new_slot(Translation *t)
{
	return t->code->nslots++;
}

/*
 * The expression as a variable's type, by a cast that cannot fail: if it did, the interpreter would
 * be done with the expression, which can be seen.  NULL: there is none.
 */
static Expr *
cast_to(const MotSite *site, Oid type)
{
	Oid			funcid;

	if (site->type == type)
		return copy_of(site);
	if (find_coercion_pathway(type, site->type, COERCION_PLPGSQL, &funcid) != COERCION_PATH_FUNC)
		return NULL;
	switch (funcid)
	{
		case F_INT4_INT2:
		case F_INT8_INT2:
		case F_INT8_INT4:
		case F_FLOAT4_INT2:
		case F_FLOAT4_INT4:
		case F_FLOAT4_INT8:
		case F_FLOAT8_INT2:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
		case F_FLOAT8_FLOAT4:
			return (Expr *) makeFuncExpr(funcid, type, list_make1(copy_of(site)), InvalidOid, InvalidOid,
										 COERCE_IMPLICIT_CAST);
		default:
			return NULL;
	}
}

/* A variable := an expression; "interpret" if code cannot. */
static void
assign(Translation *t, PLpgSQL_expr *expr, int dno, void (*interpret) (MotFrame *, MotSite *))
{
	PLpgSQL_var *var = (PLpgSQL_var *) t->estate->datums[dno];
	MotSite    *site = site_of(t, expr, dno);
	bool		plain = MotVariableIsPlain((PLpgSQL_datum *) var);
	Expr	   *value = NULL;
	int			otherwise;
	int			done;

	if (site->why_not != NULL)
	{
		CALL(t, interpret, site);
		return;
	}
	otherwise = new_label(t);
	done = new_label(t);
	site->same_type = plain && var->datatype->typoid == site->type;
	if (plain && var->datatype->typbyval && !var->notnull &&
		(var->datatype->atttypmod == -1 || (site->same_type && var->datatype->atttypmod == site->typmod)))
		value = cast_to(site, var->datatype->typoid);
	if (value != NULL)
	{
		check(t, site, value, false, otherwise);
		evaluate(t, site, IN_VARIABLE(t, dno, value), IN_VARIABLE(t, dno, isnull));
	}
	else
	{
		site->slot = new_slot(t);
		check(t, site, copy_of(site), true, otherwise);
		evaluate(t, site, IN_SLOT(site->slot, value), IN_SLOT(site->slot, isnull));
		CALL(t, MotProcedurePut, site);
	}
	jump(t, done);
	put_label(t, otherwise);
	CALL(t, interpret, site);
	put_label(t, done);
}

/* Go on if the condition is true, else at "label". */
static void
unless(Translation *t, PLpgSQL_expr *expr, int label)
{
	MotSite    *site = site_of(t, expr, -1);
	MotDo	   *s;
	int			otherwise;
	int			done;

	if (site->why_not == NULL && site->type != BOOLOID)
		leave_site(site, "it is not of type boolean");
	if (site->why_not != NULL)
	{
		do_call(t, MOT_DO_UNLESS_CALL, MotProcedureTest, site)->label = label;
		return;
	}
	otherwise = new_label(t);
	done = new_label(t);
	check(t, site, copy_of(site), false, otherwise);
	s = step(t, MOT_DO_UNLESS);
	s->expr = site->number;
	s->label = label;
	jump(t, done);
	put_label(t, otherwise);
	do_call(t, MOT_DO_UNLESS_CALL, MotProcedureTest, site)->label = label;
	put_label(t, done);
}

/* ------------------------------------------------------------- statements */

static void
set_found(Translation *t, bool found)
{
	int			dno = t->estate->found_varno;

	store(t, IN_VARIABLE(t, dno, value), (const void *) (uintptr_t) BoolGetDatum(found));
	store_flag(t, IN_VARIABLE(t, dno, isnull), false);
}

static void
enter(Translation *t, Scope *scope, PLpgSQL_stmt *stmt)
{
	scope->outer = t->scope;
	scope->label = MotStatementLabel(stmt, &scope->loops);
	scope->sets_found = stmt->cmd_type == PLPGSQL_STMT_FORI;
	scope->stmt = stmt;
	scope->exit = new_label(t);
	scope->next = new_label(t);
	t->scope = scope;
}

/* every label has a place, whether somebody goes there or not */
static void
leave_scope(Translation *t)
{
	t->scope = t->scope->outer;
}

static void
translate_exit(Translation *t, PLpgSQL_stmt_exit *stmt)
{
	int			stay = new_label(t);
	Scope	   *scope;

	if (stmt->cond != NULL)
		unless(t, stmt->cond, stay);
	for (scope = t->scope; scope != NULL; scope = scope->outer)
	{
		if (MotExitLeadsTo(stmt, scope->label, scope->loops))
			break;
		if (scope->sets_found)
			set_found(t, true);
	}
	if (scope == NULL)
		elog(ERROR, "EXIT or CONTINUE leads nowhere");	/* the parser has seen
														 * to that */
	at_statement(t, scope->stmt);
	jump(t, stmt->is_exit ? scope->exit : scope->next);
	put_label(t, stay);
}

static void
translate_if(Translation *t, PLpgSQL_stmt_if *stmt)
{
	int			done = new_label(t);
	int			otherwise = new_label(t);

	unless(t, stmt->cond, otherwise);
	translate_list(t, stmt->then_body, (PLpgSQL_stmt *) stmt);
	jump(t, done);
	put_label(t, otherwise);
	foreach_ptr(PLpgSQL_if_elsif, elsif, stmt->elsif_list)
	{
		otherwise = new_label(t);
		unless(t, elsif->cond, otherwise);
		translate_list(t, elsif->stmts, (PLpgSQL_stmt *) stmt);
		jump(t, done);
		put_label(t, otherwise);
	}
	translate_list(t, stmt->else_body, (PLpgSQL_stmt *) stmt);
	put_label(t, done);
}

/* as plpgsql_build_datatype makes it, as far as a variable that is no record needs it */
PLpgSQL_type *
MotProcedureType(const PLpgSQL_execstate *estate, Oid typoid, int32 typmod, MemoryContext cxt)
{
	PLpgSQL_type *type = MemoryContextAllocZero(cxt, sizeof(PLpgSQL_type));

	type->typname = MemoryContextStrdup(cxt, format_type_be(typoid));
	type->typoid = typoid;
	type->ttype = type_is_rowtype(typoid) ? PLPGSQL_TTYPE_REC : PLPGSQL_TTYPE_SCALAR;
	get_typlenbyval(typoid, &type->typlen, &type->typbyval);
	type->typtype = get_typtype(typoid);
	type->typisarray = type->typlen == -1 && get_typstorage(typoid) != TYPSTORAGE_PLAIN &&
		OidIsValid(get_base_element_type(typoid));
	type->collation = get_typcollation(typoid);
	if (OidIsValid(type->collation) && OidIsValid(estate->func->fn_input_collation))
		type->collation = estate->func->fn_input_collation;
	type->atttypmod = typmod;
	return type;
}

static void
translate_case(Translation *t, PLpgSQL_stmt_case *stmt)
{
	int			done = new_label(t);
	PLpgSQL_var *tested = stmt->t_expr != NULL ? (PLpgSQL_var *) t->estate->datums[stmt->t_varno] : NULL;
	PLpgSQL_type *before = tested != NULL ? tested->datatype : NULL;

	if (tested != NULL)
	{
		MotSite		site = {.expr = stmt->t_expr};

		/*
		 * the interpreter gives the variable the expression's type; here it
		 * has that until all is translated that is in the statement
		 */
		MotSiteLook(&site, t->estate);
		tested->datatype = MotProcedureType(t->estate, site.type, site.typmod, t->code->cxt);
		store(t, IN_VARIABLE(t, stmt->t_varno, datatype), tested->datatype);
		assign(t, stmt->t_expr, stmt->t_varno, MotProcedureAssignTested);
	}
	foreach_ptr(PLpgSQL_case_when, when, stmt->case_when_list)
	{
		int			otherwise = new_label(t);

		unless(t, when->expr, otherwise);
		if (tested != NULL)
			CALL(t, MotProcedureForget, t->estate->func->datums[stmt->t_varno]);
		translate_list(t, when->stmts, (PLpgSQL_stmt *) stmt);
		jump(t, done);
		put_label(t, otherwise);
	}
	if (tested != NULL)
		CALL(t, MotProcedureForget, t->estate->func->datums[stmt->t_varno]);
	if (!stmt->have_else)
		CALL(t, MotProcedureCaseNotFound, NULL);
	translate_list(t, stmt->else_stmts, (PLpgSQL_stmt *) stmt);
	put_label(t, done);
	if (tested != NULL)
		tested->datatype = before;
}

/* LOOP, or WHILE, which has a condition. */
static void
translate_loop(Translation *t, PLpgSQL_stmt *stmt, PLpgSQL_expr *cond, List *body)
{
	Scope		scope;

	enter(t, &scope, stmt);
	put_label(t, scope.next);
	if (cond != NULL)
		unless(t, cond, scope.exit);
	translate_list(t, body, stmt);
	jump(t, scope.next);
	put_label(t, scope.exit);
	leave_scope(t);
}

/* A bound, as the loop's variable is one: in a slot. */
static int
bound(Translation *t, PLpgSQL_stmt_fori *stmt, PLpgSQL_expr *expr, const char *which)
{
	MotSite    *site = site_of(t, expr, stmt->var->dno);
	int			slot = new_slot(t);
	int			done = new_label(t);
	Expr	   *value = NULL;

	site->slot = slot;
	if (site->why_not == NULL && (value = cast_to(site, INT4OID)) == NULL)
		leave_site(site, "it is not an integer");
	if (site->why_not == NULL)
	{
		int			otherwise = new_label(t);
		int			evaluated = new_label(t);

		check(t, site, value, false, otherwise);
		evaluate(t, site, IN_SLOT(slot, value), IN_SLOT(slot, isnull));
		jump(t, evaluated);
		put_label(t, otherwise);
		CALL(t, MotProcedureBound, site);
		put_label(t, evaluated);
	}
	else
		CALL(t, MotProcedureBound, site);
	unless_null(t, IN_SLOT(slot, isnull), done);
	CALL(t, MotProcedureNullBound, which);
	put_label(t, done);
	return slot;
}

static void
translate_fori(Translation *t, PLpgSQL_stmt_fori *stmt)
{
	Scope		scope;
	int			again = new_label(t);
	int			never = new_label(t);
	int			done = new_label(t);
	int			value = bound(t, stmt, stmt->lower, "lower bound");
	int			end = bound(t, stmt, stmt->upper, "upper bound");
	int			by;
	int			direction = stmt->reverse ? -1 : 1;
	MotDo	   *s;

	if (stmt->step != NULL)
	{
		by = bound(t, stmt, stmt->step, "BY value");
		CALL(t, MotProcedureCheckStep, llast(t->code->sites));
	}
	else
	{
		by = new_slot(t);
		store(t, IN_SLOT(by, value), (const void *) (uintptr_t) Int32GetDatum(1));
	}

	s = step(t, MOT_DO_PASSED);
	s->value = IN_SLOT(value, value);
	s->other = IN_SLOT(end, value);
	s->number = direction;
	s->label = never;

	enter(t, &scope, (PLpgSQL_stmt *) stmt);
	put_label(t, again);
	s = step(t, MOT_DO_COPY_INT);
	s->value = IN_VARIABLE(t, stmt->var->dno, value);
	s->other = IN_SLOT(value, value);
	store_flag(t, IN_VARIABLE(t, stmt->var->dno, isnull), false);
	translate_list(t, stmt->body, (PLpgSQL_stmt *) stmt);

	put_label(t, scope.next);
	s = step(t, MOT_DO_ADVANCE);
	s->value = IN_SLOT(value, value);
	s->other = IN_SLOT(by, value);
	s->number = direction;
	s->label = scope.exit;
	s = step(t, MOT_DO_PASSED);
	s->value = IN_SLOT(value, value);
	s->other = IN_SLOT(end, value);
	s->number = direction;
	s->label = scope.exit;
	jump(t, again);

	put_label(t, scope.exit);
	set_found(t, true);
	jump(t, done);
	put_label(t, never);
	set_found(t, false);
	put_label(t, done);
	leave_scope(t);
}

/* A statement in SQL: here, or by the interpreter if it cannot be this time. */
static void
translate_query(Translation *t, PLpgSQL_stmt *stmt)
{
	MotQuery   *query = MemoryContextAllocZero(t->code->cxt, sizeof(MotQuery));
	int			otherwise = new_label(t);
	int			done = new_label(t);

	query->known.cxt = t->code->cxt;
	if (stmt->cmd_type == PLPGSQL_STMT_PERFORM)
	{
		query->expr = ((PLpgSQL_stmt_perform *) stmt)->expr;
		query->performs = true;
	}
	else
	{
		PLpgSQL_stmt_execsql *sql = (PLpgSQL_stmt_execsql *) stmt;

		query->expr = sql->sqlstmt;
		query->strict = sql->strict;
		if (sql->into)
		{
			query->ntargets = ((PLpgSQL_row *) sql->target)->nfields;
			query->targets = ((PLpgSQL_row *) sql->target)->varnos;
			query->plain = MemoryContextAlloc(t->code->cxt, query->ntargets * sizeof(bool));
			for (int i = 0; i < query->ntargets; i++)
				query->plain[i] = MotVariableIsPlain(t->estate->datums[query->targets[i]]);
		}
	}
	do_call(t, MOT_DO_UNLESS_CALL, MotProcedureQuery, query)->label = otherwise;
	jump(t, done);
	put_label(t, otherwise);
	leave(t, MOT_PROCEDURE_SUSPENDED, stmt);
	put_label(t, done);
}

static void
translate_return(Translation *t, PLpgSQL_stmt_return *stmt)
{
	PLpgSQL_execstate *estate = t->estate;
	MotSite    *site;
	MotDo	   *s;
	int			otherwise;

	if (stmt->retvarno >= 0)
	{
		if (estate->retistuple || estate->datums[stmt->retvarno]->dtype != PLPGSQL_DTYPE_VAR)
		{
			t->code->left++;
			leave(t, MOT_PROCEDURE_SUSPENDED, stmt);
			return;
		}
		CALL(t, MotProcedureReturnVariable, estate->func->datums[stmt->retvarno]);
		leave(t, MOT_PROCEDURE_RETURNS, NULL);
		return;
	}
	if (stmt->expr == NULL)
	{
		bool		is_void = estate->fn_rettype == VOIDOID && estate->func->fn_prokind != PROKIND_PROCEDURE;

		store(t, IN_ESTATE(retval), NULL);
		store_flag(t, IN_ESTATE(retisnull), !is_void);
		s = step(t, MOT_DO_STORE_WORD);
		s->value = IN_ESTATE(rettype);
		s->number = is_void ? VOIDOID : InvalidOid;
		leave(t, MOT_PROCEDURE_RETURNS, NULL);
		return;
	}
	site = site_of(t, stmt->expr, -1);
	if (estate->retistuple)
		leave_site(site, "the function returns a row");
	if (site->why_not != NULL)
	{
		t->code->left++;
		leave(t, MOT_PROCEDURE_SUSPENDED, stmt);
		return;
	}
	otherwise = new_label(t);
	check(t, site, copy_of(site), true, otherwise);
	evaluate(t, site, IN_ESTATE(retval), IN_ESTATE(retisnull));
	s = step(t, MOT_DO_STORE_WORD);
	s->value = IN_ESTATE(rettype);
	s->number = site->type;
	leave(t, MOT_PROCEDURE_RETURNS, NULL);
	put_label(t, otherwise);
	leave(t, MOT_PROCEDURE_SUSPENDED, stmt);
}

/* what a block declares */
static void
initialize(Translation *t, PLpgSQL_stmt_block *block)
{
	if (block->n_initvars == 0)
	{
		/* it may be left over from a block that failed in one with handlers */
		store(t, IN_ESTATE(err_var), NULL);
		return;
	}
	store(t, IN_ESTATE(err_text), "during statement block local variable initialization");
	for (int i = 0; i < block->n_initvars; i++)
	{
		int			dno = block->initvarnos[i];
		PLpgSQL_variable *variable = (PLpgSQL_variable *) t->estate->datums[dno];
		MotDo	   *s = step(t, MOT_DO_STORE_PLACE);

		s->value = IN_ESTATE(err_var);
		s->other = variable_place(t, dno, 0);
		if (variable->dtype == PLPGSQL_DTYPE_VAR)
		{
			PLpgSQL_var *var = (PLpgSQL_var *) variable;

			if (var->datatype->typbyval)
			{
				store(t, IN_VARIABLE(t, dno, value), NULL);
				store_flag(t, IN_VARIABLE(t, dno, isnull), true);
			}
			else
				CALL(t, MotProcedureForget, t->estate->func->datums[dno]);
			if (var->default_val == NULL && var->datatype->typtype == TYPTYPE_DOMAIN)
				CALL(t, MotProcedureRefuseNull, t->estate->func->datums[dno]);
		}
		else if (variable->default_val == NULL)
			CALL(t, MotProcedureForget, t->estate->func->datums[dno]);
		if (variable->default_val != NULL)
			assign(t, variable->default_val, dno, MotProcedureAssign);
	}
	store(t, IN_ESTATE(err_var), NULL);
	store(t, IN_ESTATE(err_text), NULL);
}

static void
translate_block(Translation *t, PLpgSQL_stmt_block *block)
{
	Scope		scope;

	enter(t, &scope, (PLpgSQL_stmt *) block);
	initialize(t, block);
	translate_list(t, block->body, (PLpgSQL_stmt *) block);
	put_label(t, scope.next);
	put_label(t, scope.exit);
	leave_scope(t);
}

static void
translate_statement(Translation *t, PLpgSQL_stmt *stmt)
{
	check_stack_depth();
	switch (stmt->cmd_type)
	{
		case PLPGSQL_STMT_BLOCK:
			translate_block(t, (PLpgSQL_stmt_block *) stmt);
			break;
		case PLPGSQL_STMT_ASSIGN:
			assign(t, ((PLpgSQL_stmt_assign *) stmt)->expr, ((PLpgSQL_stmt_assign *) stmt)->varno, MotProcedureAssign);
			break;
		case PLPGSQL_STMT_IF:
			translate_if(t, (PLpgSQL_stmt_if *) stmt);
			break;
		case PLPGSQL_STMT_CASE:
			translate_case(t, (PLpgSQL_stmt_case *) stmt);
			break;
		case PLPGSQL_STMT_LOOP:
			translate_loop(t, stmt, NULL, ((PLpgSQL_stmt_loop *) stmt)->body);
			break;
		case PLPGSQL_STMT_WHILE:
			translate_loop(t, stmt, ((PLpgSQL_stmt_while *) stmt)->cond, ((PLpgSQL_stmt_while *) stmt)->body);
			break;
		case PLPGSQL_STMT_FORI:
			translate_fori(t, (PLpgSQL_stmt_fori *) stmt);
			break;
		case PLPGSQL_STMT_EXIT:
			translate_exit(t, (PLpgSQL_stmt_exit *) stmt);
			break;
		case PLPGSQL_STMT_PERFORM:
		case PLPGSQL_STMT_EXECSQL:
			translate_query(t, stmt);
			break;
		case PLPGSQL_STMT_RETURN:
			translate_return(t, (PLpgSQL_stmt_return *) stmt);
			break;
		default:
			break;
	}
}

static void
translate_list(Translation *t, List *stmts, PLpgSQL_stmt *parent)
{
	if (stmts == NIL)
	{
		step(t, MOT_DO_INTERRUPTS);
		return;
	}
	foreach_ptr(PLpgSQL_stmt, stmt, stmts)
	{
		t->code->statements++;
		/* also of what is left: interrupts may come before it begins */
		at_statement(t, stmt);
		if (stmt->cmd_type != PLPGSQL_STMT_RETURN && MotStatementIsLeft(stmt, t->estate))
		{
			t->code->left++;
			leave(t, MOT_PROCEDURE_SUSPENDED, stmt);
			continue;
		}
		step(t, MOT_DO_INTERRUPTS);
		translate_statement(t, stmt);
	}
	at_statement(t, parent);
}

/*
 * In the current context, sites in the code's.  NULL, and *why_not: it cannot be, or it would be no
 * use.
 */
MotProcedureRequest *
MotProcedureTranslate(MotProcedureCode *code, PLpgSQL_execstate *estate, const char **why_not)
{
	PLpgSQL_stmt_block *block = code->procedure->function->action;
	MotProcedureRequest *request = palloc0(sizeof(MotProcedureRequest));
	Translation t = {code, estate, request, 64, 16, NULL};

	if (MotStatementIsLeft((PLpgSQL_stmt *) block, estate))
	{
		*why_not = block->exceptions != NULL ? "its outermost block handles exceptions" :
			"EXIT or CONTINUE leads out of a statement that is left to the interpreter";
		return NULL;
	}
	code->statements = code->left = 0;
	code->sites = code->compiled = code->functions = NIL;
	code->nslots = 0;
	code->base = estate->found_varno;
	request->dos = palloc(t.room * sizeof(MotDo));
	request->exprs = palloc(t.exprs_room * sizeof(MotProcedureExpr));
	request->changes = &MotPlanChanges;
	request->recheck = MotProcedureRecheck;
	request->is_busy = MotProcedureIsBusy;
	request->econtext_offset = offsetof(PLpgSQL_execstate, eval_econtext);
	request->nvariables = estate->ndatums;
	request->value_offsets = palloc(estate->ndatums * sizeof(int));
	request->isnull_offsets = palloc(estate->ndatums * sizeof(int));
	for (int i = 0; i < estate->ndatums; i++)
	{
		request->value_offsets[i] = estate->datums[i]->dtype == PLPGSQL_DTYPE_VAR ?
			IN_VARIABLE(&t, i, value).offset : MOT_NO_VARIABLE;
		request->isnull_offsets[i] = IN_VARIABLE(&t, i, isnull).offset;
	}

	at_statement(&t, (PLpgSQL_stmt *) block);
	translate_block(&t, block);
	leave(&t, MOT_PROCEDURE_ENDED, NULL);
	if (request->ndo > MAX_STEPS)
	{
		*why_not = "its body is too long";
		return NULL;
	}
	if (code->left == code->statements)
	{
		*why_not = "all its statements are left to the interpreter";
		return NULL;
	}
	return request;
}
