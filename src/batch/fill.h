/*-------------------------------------------------------------------------
 *
 * fill.h
 *	  What an Agg node's input phase is made of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_BATCH_FILL_H
#define MOT_BATCH_FILL_H

#include "batch/batch.h"

#define MOT_MAX_STEPS 16

typedef enum MotFillKind
{
	CALL,						/* of the transition function */
	COUNT,
	SUM_INT2, SUM_INT4,			/* in bigint */
	AVG_INT2, AVG_INT4,			/* an array of number and sum */
	SUM_INT8,					/* and avg: a MotSum */
	SUM_NUMERIC,				/* and avg: a MotSum */
	SUM_FLOAT4, SUM_FLOAT8,
	MAX_INT2, MAX_INT4, MAX_INT8, MAX_OID, MAX_FLOAT4, MAX_FLOAT8,
	MIN_INT2, MIN_INT4, MIN_INT8, MIN_OID, MIN_FLOAT4, MIN_FLOAT8
} MotFillKind;

typedef struct MotArgument
{
	int			column;			/* of the input's row, from 0; -1: computed */
	int			place;			/* computed by machine code: among its
								 * outputs; or -1 */
	Expr	   *node;
	ExprState  *expr;
} MotArgument;

typedef struct MotTransition
{
	struct MotFill *fill;
	int			number;
	MotFillKind kind;
	AggStatePerTrans pertrans;
	ExprState  *filter;
	int			nargs;
	MotArgument *args;
	int			sum;			/* which MotSum of a group's, or -1 */
	int			nsteps;			/* 0: by the argument's expression */
	MotStep    *steps;
	int			digits;			/* behind the point, by the columns' types */
} MotTransition;

typedef struct MotFill
{
	AggState   *agg;
	bool		hashed;
	int			columns;		/* of the input's slot that are looked at: up
								 * to this one */
	Bitmapset  *wanted;			/* ... and which, from 0 */
	const Datum *values;		/* of the present row */
	const bool *nulls;
	int			nsums;
	MotGroups  *groups;
	MotTransition *transitions;
	uint64		taken;			/* rows so far */
	bool		full;			/* no more are for us */

	/* machine code, or why there is none */
	MotRowFunction function;
	MotRowContext context;
	const char *why_not;
	MotRows    *rows;			/* it takes the rows from here, or NULL: from
								 * a node */
	const mot_version *version; /* then: the present one */

	/* without groups */
	ExprContext *memory;		/* of states, as long as they are ours */
	AggStatePerGroup states;
	MotSum	   *sums;
} MotFill;

/* aggregate.c */
extern void MotFillFindGroup(MotFill *fill);
extern void MotFillShow(MotFill *fill);

/* transition.c */
extern void MotFillWant(MotFill *fill, int column);
extern void MotTransitionMake(MotFill *fill, int number);
extern void MotTransitionAdvance(MotTransition *t, AggStatePerGroup state, MotSum *sum);
extern void MotTransitionHandOver(MotTransition *t, AggStatePerGroup state, MotSum *sum);

/* compile.c */
extern void MotFillCompile(MotFill *fill);

#endif							/* MOT_BATCH_FILL_H */
