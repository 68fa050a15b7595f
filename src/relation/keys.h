/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Conditions on an index's columns, and the ranges of keys they make
 *	  (keys.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYS_H
#define MOT_KEYS_H

#include "mot.h"
#include "nodes/execnodes.h"
#include "relation/relation.h"

/* How a condition bounds an index. */
typedef enum MotConditionKind
{
	MOT_CONDITION_COMPARE,		/* column <strategy> value */
	MOT_CONDITION_ARRAY,		/* column = ANY (array) */
	MOT_CONDITION_NULL,			/* column IS NULL */
	MOT_CONDITION_NOT_NULL,
	MOT_CONDITION_ROW,			/* (column, next column ...) <strategy>
								 * (values) */
	MOT_CONDITION_TID			/* no index: ctid = value, = ANY (value) or
								 * CURRENT OF */
} MotConditionKind;


/* A comparison value: constants and parameters are read without an expression. */
typedef enum MotOperandKind
{
	MOT_OPERAND_CONST, MOT_OPERAND_EXTERN, MOT_OPERAND_EXEC, MOT_OPERAND_EXPR
} MotOperandKind;

typedef struct MotOperand
{
	MotOperandKind kind;
	Oid			valuetype;		/* the operator's type for it */
	int			paramid;
	Oid			paramtype;
	bool		isnull;
	bool		held;			/* see MotKeysHold */
	Datum		value;			/* as evaluated last; of a constant, always */
	ExprState  *expr;
} MotOperand;

/* encoded elements of an IN list, sorted and without duplicates */
typedef struct MotPoint
{
	uint8	   *data;
	size_t		len;
} MotPoint;

typedef struct MotPointList
{
	int			npoints;
	int			position;
	MotPoint   *points;
} MotPointList;

typedef struct MotKeyCondition
{
	MotConditionKind kind;
	int			column;
	StrategyNumber strategy;
	int			first;			/* its operands */
	int			noperands;
	MotPointList list;			/* MOT_CONDITION_ARRAY */
} MotKeyCondition;

typedef struct MotKeys
{
	MotIndex   *index;
	int			nconditions;
	int			noperands;
	int			npoints;		/* the first conditions, which fix columns to
								 * points */
	bool		get;			/* every column of a unique index has values:
								 * lookups */
	bool		backward;
	bool		known;			/* all values can be had as an execution
								 * starts, at no risk: a single look-up */
	bool		integers;		/* nothing but values of an integer key's
								 * columns, each of its type */
	MemoryContext list_cxt;		/* not NULL if there are IN lists; holds their
								 * elements */
	MotKeyCondition *conditions;
	MotOperand *operands;
	mot_bound	lower_bound;
	mot_bound	upper_bound;
	const uint64 *execution;	/* its number changes with each; or NULL */
	uint64		held_in;		/* execution whose held operands are there */
	uint64		made_in;		/* if "known": execution whose key is there */
	MotKeyBuffer lower;
	MotKeyBuffer upper;
} MotKeys;

/* for so many conditions and operands; the caller fills these in and says MotKeysComplete */
extern MotKeys *MotKeysAllocate(MotIndex *index, int nconditions, int noperands, bool backward);
extern void MotKeysComplete(MotKeys *keys);

/*
 * The statement's parameters stay as they are for an execution, however often
 * the scan starts anew: fetch those that are passed by value once.
 */
extern void MotKeysHold(MotKeys *keys, const uint64 *execution);
extern int	MotKeysCompare(const void *a, size_t alen, const void *b, size_t blen);
extern bool MotKeysFirst(MotKeys *keys, ExprContext *econtext);
extern bool MotKeysNext(MotKeys *keys, ExprContext *econtext);

#endif							/* MOT_KEYS_H */
