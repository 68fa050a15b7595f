/*-------------------------------------------------------------------------
 *
 * procedure.h
 *	  Functions and procedures in PL/pgSQL as machine code.
 *
 * The server tells a plugin of PL/pgSQL when a function begins, and before each statement.  That is
 * our way in: when a function that has code begins, the interpreter is given another body for this
 * one activation, of statements that do nothing.  Before the first of them we run the code.  What
 * the code does not do itself it hands to the interpreter, statement by statement, and is called
 * again after it.
 *
 *	plugin.c		which functions are known, have code, and how they run
 *	translate.c		the program of a function's body (program.h)
 *	left.c			which statements are the interpreter's
 *	expression.c	which expressions may be machine code
 *	query.c			statements in SQL, without SPI
 *	call.c			a client's CALL, whatever becomes of the procedure
 *	runtime.c		what code calls: what the interpreter does otherwise
 *	stat.c			what can be seen of it (mot_stat_procedures)
 *
 * The rule for all of it: what can be seen is what the interpreter alone would show: values,
 * errors and their context, variables wherever a statement can look at them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PROCEDURE_H
#define MOT_PROCEDURE_H

#include "mot.h"
#include "compat/interpreter.h"
#include "procedure/program.h"
#include "statement/known.h"
#include "statement/statement.h"
#include "utils/datum.h"

/* An expression in a function's body, where it stands. */
typedef struct MotSite
{
	PLpgSQL_expr *expr;
	int			target;			/* dno of the variable that gets the value;
								 * -1: none */
	int			slot;			/* of the frame: of a bound, or of a value to
								 * be assigned */
	Oid			type;			/* the expression's */
	int32		typmod;
	const char *why_not;		/* it is not machine code */
	bool		unplanned;		/* ... because it had no plan then */
	bool		same_type;		/* as the target's, which is one of the
								 * server's scalar ones */
	int			number;			/* of the request's expressions */

	/* what it was compiled from; see MotSiteIsRight */
	CachedPlanSource *source;
	CachedPlan *plan;
	int			generation;
} MotSite;

#define MOT_QUERY_TARGETS 64

/* A statement in SQL that is executed without SPI, if nothing speaks against it then. */
typedef struct MotQuery
{
	PLpgSQL_expr *expr;
	bool		performs;		/* PERFORM */
	bool		strict;
	int			ntargets;		/* variables that the first row goes to */
	int		   *targets;		/* dnos */
	bool	   *plain;			/* they are of the server's scalar types */
	MotKnownPlan known;
} MotQuery;

/* What is compiled of a function, for as long as its plans are right. */
typedef struct MotProcedureCode
{
	MemoryContext cxt;
	struct MotProcedure *procedure;
	MotRowCode *code;
	MotProcedureFunction function;
	int			nslots;
	int			statements;		/* of the body ... */
	int			left;			/* ... and how many are left to the
								 * interpreter */
	List	   *sites;			/* all, MotSites */
	List	   *compiled;		/* those that are machine code */
	List	   *functions;		/* oids of what these call */
	uint64		checked;		/* plans were right when MotPlanChanges was
								 * this */
	bool		stale;			/* a plan is not right any more */
	int			base;			/* dno of the variable whose address the
								 * others' count from */
	List	   *declined;		/* PLpgSQL_exprs that the compiler has
								 * declined ... */
	List	   *why_declined;	/* ... and why */
	struct MotProcedureCode *older; /* may be running still */
} MotProcedureCode;

typedef struct MotProcedure
{
	PLpgSQL_function *function; /* hash key */
	Oid			oid;
	const char *why_not;		/* never, NULL: it may have code */
	const char *why_not_now;	/* it was tried in vain */
	uint64		executions;		/* all */
	uint64		compiled_executions;
	uint64		compile_at;		/* executions */
	double		compile_ms;
	uint64		unplanned_hits; /* of sites that had no plan */
	MotProcedureCode *code;		/* NULL: none */

	/* the body that the interpreter is given; see plugin.c */
	PLpgSQL_stmt_block top;
	PLpgSQL_stmt_loop loop;
	PLpgSQL_stmt_block step;
	PLpgSQL_stmt_block nothing;
	PLpgSQL_stmt_return leave;
	PLpgSQL_stmt_exit ended;
	PLpgSQL_stmt_raise lost;
} MotProcedure;

/* plugin.c */
extern PLpgSQL_plugin MotProcedurePlugin;
extern bool MotProcedurePluginIsOther(void);
extern void MotProcedureEach(void (*visit) (MotProcedure *procedure, void *arg), void *arg);

/* translate.c */
extern PLpgSQL_type *MotProcedureType(const PLpgSQL_execstate *estate, Oid typoid, int32 typmod, MemoryContext cxt);
extern MotProcedureRequest *MotProcedureTranslate(MotProcedureCode *code, PLpgSQL_execstate *estate,
												  const char **why_not);

/* left.c */
extern bool MotStatementIsLeft(PLpgSQL_stmt *stmt, PLpgSQL_execstate *estate);
extern const char *MotStatementLabel(PLpgSQL_stmt *stmt, bool *loops);
extern bool MotExitLeadsTo(const PLpgSQL_stmt_exit *stmt, const char *label, bool loops);

/* expression.c */
extern void MotSiteLook(MotSite *site, PLpgSQL_execstate *estate);
extern bool MotSiteIsRight(const MotSite *site);
extern bool MotListFunctions(Node *node, void *functions);
extern bool MotFunctionsAreClosed(const List *functions);
extern bool MotVariableIsPlain(const PLpgSQL_datum *datum);

/* query.c */
extern bool MotProcedureQuery(MotFrame *frame, MotQuery *query);

/* runtime.c */
extern bool MotProcedureRecheck(MotFrame *frame);
extern bool MotProcedureIsBusy(MotFrame *frame, const void *mark);
extern void MotProcedureFails(MotFrame *frame);
extern void MotProcedureAssign(MotFrame *frame, MotSite *site);
extern void MotProcedureAssignTested(MotFrame *frame, MotSite *site);
extern bool MotProcedureTest(MotFrame *frame, MotSite *site);
extern void MotProcedureBound(MotFrame *frame, MotSite *site);
extern void MotProcedurePut(MotFrame *frame, MotSite *site);
extern void MotProcedureClean(MotFrame *frame, void *unused);
extern void MotProcedureForget(MotFrame *frame, PLpgSQL_datum *datum);
extern void MotProcedureRefuseNull(MotFrame *frame, PLpgSQL_datum *datum);
extern void MotProcedureReturnVariable(MotFrame *frame, PLpgSQL_datum *datum);
extern void MotProcedureSetFound(MotFrame *frame, bool found);
extern void MotProcedureNullBound(MotFrame *frame, const char *which);
extern void MotProcedureCheckStep(MotFrame *frame, const MotSite *site);
extern void MotProcedureCaseNotFound(MotFrame *frame, void *unused);

/*
 * Is a value of this type, null or not, just what a variable takes, which is one of the server's
 * scalar types if "plain"?
 */
static inline bool
MotValueIsFinal(const PLpgSQL_var *var, bool plain, Oid type, int32 typmod)
{
	return plain && !var->notnull && var->datatype->typoid == type &&
		(var->datatype->atttypmod == -1 || var->datatype->atttypmod == typmod);
}

/* Is a value not where its pointer leads? (it is the interpreter's to fetch) */
static inline bool
MotValueIsElsewhere(Datum value, bool byval, int len)
{
	return !byval && len == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(value));
}

static inline Datum
MotValueCopy(Datum value, bool byval, int len, MemoryContext cxt)
{
	MemoryContext oldcxt;

	if (byval)
		return value;
	oldcxt = MemoryContextSwitchTo(cxt);
	value = datumCopy(value, false, len);
	MemoryContextSwitchTo(oldcxt);
	return value;
}

/* Such a variable gets such a value, which is a copy in the activation's memory. */
static inline void
MotVariableSet(PLpgSQL_var *var, Datum value, bool isnull)
{
	if (var->freeval)
		pfree(DatumGetPointer(var->value));
	var->value = isnull ? (Datum) 0 : value;
	var->isnull = isnull;
	var->freeval = !var->datatype->typbyval && !isnull;
}

#endif							/* MOT_PROCEDURE_H */
