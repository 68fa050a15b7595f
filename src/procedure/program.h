/*-------------------------------------------------------------------------
 *
 * program.h
 *	  A procedure's body as a list of small steps, which the compiler makes
 *	  machine code of.
 *
 * The steps are what is left of PL/pgSQL's statements when it is known what each has to do: they
 * know places in memory, expressions and functions of ours, not variables and statements.
 * Variables stay where the interpreter has them, so that it can take over between any two
 * statements.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PROCEDURE_PROGRAM_H
#define MOT_PROCEDURE_PROGRAM_H

#include "postgres.h"

#include "nodes/primnodes.h"

/* One activation of a procedure. */
typedef struct MotFrame
{
	void	   *estate;			/* PL/pgSQL's */
	char	   *variables;		/* of this activation; places count from here */
	uint64		seen;			/* plans were right when MotPlanChanges was
								 * this */
	const void *evaluating;		/* what "mark" of its expression is, while
								 * code is in one */
	void	   *next;			/* the statement that the interpreter is to do */
	void	   *action;			/* the function's own body, until it is put
								 * back */
	void	   *err_var;		/* PL/pgSQL's, when code was left */
	MemoryContext memory;		/* of a statement in SQL; NULL: there was none */
	int32		resume;			/* where to go on: 0 is the beginning */
	struct MotProcedureCode *code;
	NullableDatum slots[FLEXIBLE_ARRAY_MEMBER]; /* what is kept between steps */
} MotFrame;

typedef enum MotBase
{
	MOT_BASE_FRAME, MOT_BASE_ESTATE, MOT_BASE_VARIABLES
} MotBase;

typedef struct MotPlace
{
	MotBase		base;
	int			offset;			/* bytes */
} MotPlace;

typedef enum MotDoKind
{
	MOT_DO_LABEL,				/* control may come here */
	MOT_DO_JUMP,
	MOT_DO_STORE,				/* "address" at "value" */
	MOT_DO_STORE_PLACE,			/* ... the address of "other" */
	MOT_DO_STORE_FLAG,			/* ... the byte "number" */
	MOT_DO_STORE_WORD,			/* ... the 32 bits "number" */
	MOT_DO_INTERRUPTS,			/* look for them */
	MOT_DO_CHECK,				/* may "expr" be evaluated here now?  No: to
								 * "label" */
	MOT_DO_EVALUATE,			/* "expr": its Datum to "value", its null flag
								 * to "other" */
	MOT_DO_UNLESS,				/* "expr" is not true: to "label" */
	MOT_DO_UNLESS_CALL,			/* "address"(frame, argument) is false: to
								 * "label" */
	MOT_DO_UNLESS_NULL,			/* the flag at "value" is not set: to "label" */
	MOT_DO_CALL,				/* "address"(frame, argument) */
	MOT_DO_PASSED,				/* the int32 at "value" is beyond that at
								 * "other", in the direction of "number": to
								 * "label" */
	MOT_DO_ADVANCE,				/* the int32 at "value" by that at "other", in
								 * the direction of "number"; no room for the
								 * sum: to "label" */
	MOT_DO_COPY_INT,			/* the int32 at "other" as a Datum to "value" */
	MOT_DO_LEAVE				/* return "number"; SUSPENDED: and go on after
								 * it next time */
} MotDoKind;

/* what a procedure's code returns */
#define MOT_PROCEDURE_ENDED 0	/* without RETURN */
#define MOT_PROCEDURE_RETURNS 1
#define MOT_PROCEDURE_SUSPENDED 2	/* frame->next is to be done, then the
									 * code called again */

typedef struct MotDo
{
	MotDoKind	kind;
	int			label;
	int			number;
	int			expr;			/* of the request's */
	MotPlace	value;
	MotPlace	other;
	const void *address;
	const void *argument;
} MotDo;

typedef struct MotProcedureExpr
{
	Expr	   *expr;			/* its Params are variables, their ids from 1 */
	bool		keep;			/* what it has allocated, for what comes next */
	const bool *busy;			/* it may be in use: see "is_busy" */
	const void *mark;
} MotProcedureExpr;

#define MOT_NO_VARIABLE PG_INT32_MIN

typedef struct MotProcedureRequest
{
	int			ndo;
	MotDo	   *dos;
	int			nlabels;
	int			nexprs;
	MotProcedureExpr *exprs;
	int			nvariables;
	int		   *value_offsets;	/* of variable i, from frame->variables
								 * (either way) */
	int		   *isnull_offsets;
	int			econtext_offset;	/* of the execution state's ExprContext */
	const uint64 *changes;
	bool		(*recheck) (MotFrame *frame);
	bool		(*is_busy) (MotFrame *frame, const void *mark);
	int			declined;		/* out: the expression that cannot be
								 * compiled, or -1 */
} MotProcedureRequest;

typedef int32 (*MotProcedureFunction) (MotFrame *frame);

#endif							/* MOT_PROCEDURE_PROGRAM_H */
