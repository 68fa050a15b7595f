/*-------------------------------------------------------------------------
 *
 * left.c
 *	  Which of a procedure's statements are left to the interpreter.
 *
 * Those that are not translated are, as a whole, with all statements inside.  If one of these may
 * lead out of it, by EXIT or CONTINUE, so is what is around it, up to where that leads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "procedure/procedure.h"

/* what EXIT and CONTINUE may refer to */
typedef struct Around
{
	const struct Around *outer;
	const char *label;
	bool		loops;
} Around;

static bool must_leave(PLpgSQL_stmt *stmt, PLpgSQL_execstate *estate);

/* The lists of statements in a statement, one after the other. */
static List *
bodies_of(PLpgSQL_stmt *stmt)
{
	List	   *bodies = NIL;

	switch (stmt->cmd_type)
	{
		case PLPGSQL_STMT_BLOCK:
			{
				PLpgSQL_stmt_block *block = (PLpgSQL_stmt_block *) stmt;

				bodies = list_make1(block->body);
				if (block->exceptions != NULL)
					foreach_ptr(PLpgSQL_exception, exception, block->exceptions->exc_list)
						bodies = lappend(bodies, exception->action);
				break;
			}
		case PLPGSQL_STMT_IF:
			bodies = list_make2(((PLpgSQL_stmt_if *) stmt)->then_body, ((PLpgSQL_stmt_if *) stmt)->else_body);
			foreach_ptr(PLpgSQL_if_elsif, elsif, ((PLpgSQL_stmt_if *) stmt)->elsif_list)
				bodies = lappend(bodies, elsif->stmts);
			break;
		case PLPGSQL_STMT_CASE:
			bodies = list_make1(((PLpgSQL_stmt_case *) stmt)->else_stmts);
			foreach_ptr(PLpgSQL_case_when, when, ((PLpgSQL_stmt_case *) stmt)->case_when_list)
				bodies = lappend(bodies, when->stmts);
			break;
		case PLPGSQL_STMT_LOOP:
			bodies = list_make1(((PLpgSQL_stmt_loop *) stmt)->body);
			break;
		case PLPGSQL_STMT_WHILE:
			bodies = list_make1(((PLpgSQL_stmt_while *) stmt)->body);
			break;
		case PLPGSQL_STMT_FORI:
			bodies = list_make1(((PLpgSQL_stmt_fori *) stmt)->body);
			break;
		case PLPGSQL_STMT_FORS:
		case PLPGSQL_STMT_FORC:
		case PLPGSQL_STMT_DYNFORS:
			bodies = list_make1(((PLpgSQL_stmt_forq *) stmt)->body);
			break;
		case PLPGSQL_STMT_FOREACH_A:
			bodies = list_make1(((PLpgSQL_stmt_foreach_a *) stmt)->body);
			break;
		default:
			break;
	}
	return bodies;
}

/* NULL: it has none; *loops: is it a loop? */
const char *
MotStatementLabel(PLpgSQL_stmt *stmt, bool *loops)
{
	*loops = true;
	switch (stmt->cmd_type)
	{
		case PLPGSQL_STMT_BLOCK:
			*loops = false;
			return ((PLpgSQL_stmt_block *) stmt)->label;
		case PLPGSQL_STMT_LOOP:
			return ((PLpgSQL_stmt_loop *) stmt)->label;
		case PLPGSQL_STMT_WHILE:
			return ((PLpgSQL_stmt_while *) stmt)->label;
		case PLPGSQL_STMT_FORI:
			return ((PLpgSQL_stmt_fori *) stmt)->label;
		case PLPGSQL_STMT_FORS:
		case PLPGSQL_STMT_FORC:
		case PLPGSQL_STMT_DYNFORS:
			return ((PLpgSQL_stmt_forq *) stmt)->label;
		case PLPGSQL_STMT_FOREACH_A:
			return ((PLpgSQL_stmt_foreach_a *) stmt)->label;
		default:
			*loops = false;
			return NULL;
	}
}

/* Does EXIT or CONTINUE lead here? */
bool
MotExitLeadsTo(const PLpgSQL_stmt_exit *stmt, const char *label, bool loops)
{
	if (stmt->label == NULL)
		return loops;
	return label != NULL && strcmp(label, stmt->label) == 0 && (loops || stmt->is_exit);
}

/* Is there an EXIT or CONTINUE in it that leads further out than "around"? */
static bool
leads_out(PLpgSQL_stmt *stmt, const Around *around)
{
	Around		mine = {0};

	if (stmt->cmd_type == PLPGSQL_STMT_EXIT)
	{
		for (; around != NULL; around = around->outer)
			if (MotExitLeadsTo((PLpgSQL_stmt_exit *) stmt, around->label, around->loops))
				return false;
		return true;
	}
	mine.outer = around;
	mine.label = MotStatementLabel(stmt, &mine.loops);
	foreach_ptr(List, body, bodies_of(stmt))
		foreach_ptr(PLpgSQL_stmt, inner, body)
		if (leads_out(inner, &mine))
		return true;
	return false;
}

/* The type of what is tested is known only when it has been evaluated. */
static bool
can_test(PLpgSQL_stmt_case *stmt, PLpgSQL_execstate *estate)
{
	MotSite		site = {.expr = stmt->t_expr};

	if (stmt->t_expr == NULL)
		return true;
	MotSiteLook(&site, estate);
	return site.why_not == NULL;
}

/* Only rows go to variables, and what is to be said of parameters is the interpreter's. */
static bool
can_execute(PLpgSQL_stmt_execsql *stmt, PLpgSQL_execstate *estate)
{
	const PLpgSQL_row *row = (const PLpgSQL_row *) stmt->target;

	if (!stmt->into)
		return true;
	if (estate->func->print_strict_params || row->dtype != PLPGSQL_DTYPE_ROW || row->nfields == 0 ||
		row->nfields > MOT_QUERY_TARGETS)
		return false;
	for (int i = 0; i < row->nfields; i++)
		if (estate->datums[row->varnos[i]]->dtype != PLPGSQL_DTYPE_VAR)
			return false;
	return true;
}

/* Is it left to the interpreter, for whatever reason? */
bool
MotStatementIsLeft(PLpgSQL_stmt *stmt, PLpgSQL_execstate *estate)
{
	switch (stmt->cmd_type)
	{
		case PLPGSQL_STMT_BLOCK:
			return ((PLpgSQL_stmt_block *) stmt)->exceptions != NULL || must_leave(stmt, estate);
		case PLPGSQL_STMT_CASE:
			return !can_test((PLpgSQL_stmt_case *) stmt, estate) || must_leave(stmt, estate);
		case PLPGSQL_STMT_IF:
		case PLPGSQL_STMT_LOOP:
		case PLPGSQL_STMT_WHILE:
		case PLPGSQL_STMT_FORI:
			return must_leave(stmt, estate);
		case PLPGSQL_STMT_ASSIGN:
		case PLPGSQL_STMT_EXIT:
		case PLPGSQL_STMT_PERFORM:
			return false;
		case PLPGSQL_STMT_EXECSQL:
			return !can_execute((PLpgSQL_stmt_execsql *) stmt, estate);
		default:
			return true;
	}
}

/* Is there a statement in it that is left, and leads out of itself? */
static bool
must_leave(PLpgSQL_stmt *stmt, PLpgSQL_execstate *estate)
{
	foreach_ptr(List, body, bodies_of(stmt))
		foreach_ptr(PLpgSQL_stmt, inner, body)
		if (MotStatementIsLeft(inner, estate) && leads_out(inner, NULL))
		return true;
	return false;
}
