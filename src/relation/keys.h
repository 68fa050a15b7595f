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
	Datum		value;			/* of a ranked column, which has its bytes
								 * only within those before */
} MotPoint;

extern int	MotComparePoints(const void *a, const void *b); /* as the index orders
															 * keys */

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
	bool		watched;		/* rows' order, or a range, is that of a
								 * collation that is not trusted ... */
	bool		astray;			/* ... and not to be had from the index: the
								 * ranges are of the points only, and rows are
								 * to be looked at and sorted */
	bool		gap;			/* the bounds are what is between two values */
	bool		in_turn;		/* an enum's values are, see enumerated.h */
	int			enumerated;		/* the first enum behind the points, or -1 */
	struct MotTurns *turns;		/* made when first needed */
	bool		integers;		/* nothing but values of an integer key's
								 * columns, each of its type */
	const mot_view *view;		/* of a ranked index: whose rows have places
								 * for bounds (NULL: all); of enums: whose
								 * values are taken in turn (NULL: what else
								 * bounds is one range) */
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
	mot_row    *twice;			/* of "get": a row that has the key of
								 * another, which comes next */
} MotKeys;

/* for so many conditions and operands; the caller fills these in and says MotKeysComplete */
extern MotKeys *MotKeysAllocate(MotIndex *index, int nconditions, int noperands, bool backward);
extern void MotKeysComplete(MotKeys *keys);

/*
 * The statement's parameters stay as they are for an execution, however often
 * the scan starts anew: fetch those that are passed by value once.
 */
extern void MotKeysHold(MotKeys *keys, const uint64 *execution);

/*
 * The cursor of a range: it can own memory that is not the server's, which goes with "cxt" at the
 * latest.
 */
typedef struct MotKeyCursor
{
	mot_cursor *cursor;			/* made when first needed */
	bool		open;
	uint64		rows;			/* since then, while they are counted for
								 * mot.islands */
	MemoryContextCallback cleanup;
} MotKeyCursor;

extern void MotKeyCursorOpen(MotKeyCursor *c, MemoryContext cxt, mot_session *session, const mot_view *view,
							 MotKeys *keys, Relation rel);
extern void MotKeyCursorClose(void *c);

/* Rows that a scan has put down. */
typedef struct MotFound
{
	mot_row    *row;
	const mot_version *version;
} MotFound;

typedef struct MotFoundRows
{
	MemoryContext cxt;			/* of all that there is */
	int64		n;
	int64		size;
	MotFound   *rows;
} MotFoundRows;

extern void MotFoundGrow(MotFoundRows *found);

static inline void
MotFoundAdd(MotFoundRows *found, mot_row *row, const mot_version *version)
{
	if (unlikely(found->n == found->size))
		MotFoundGrow(found);
	found->rows[found->n].row = row;
	found->rows[found->n++].version = version;
}

/*
 * An index that was built after a snapshot was taken has no entries for the older versions that
 * this sees, and a plan may use the index all the same, and rely on its order.  Then the whole
 * table is read, and the rows that satisfy the conditions are sorted by the keys they have in that
 * snapshot.  Among them can be nulls in columns that have become NOT NULL since, of which index and
 * bounds know nothing.
 *
 * The same goes for an index that is found not to be in its collation's order (keys->astray): of
 * that the rows of the points are read (keys not NULL, after MotKeysFirst).
 *
 * "passes" says whether a row satisfies the conditions, and what its columns are, as far
 * as the index's are concerned.
 */
typedef bool (*MotRowPasses) (void *arg, const mot_version *version, Datum **values, bool **isnull);
extern void MotFoundSorted(MotFoundRows *found, mot_session *session, mot_table *table, const mot_view *view,
						   MotIndex *index, MotKeys *keys, MotRowPasses passes, void *arg);

/* does a value that compares so with another satisfy "value <strategy> other"? */
static inline bool
MotStrategyHolds(StrategyNumber strategy, int cmp)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return cmp < 0;
		case BTLessEqualStrategyNumber:
			return cmp <= 0;
		case BTEqualStrategyNumber:
			return cmp == 0;
		case BTGreaterEqualStrategyNumber:
			return cmp >= 0;
		default:
			return cmp > 0;
	}
}

extern bool MotKeysFirst(MotKeys *keys, ExprContext *econtext);
extern bool MotKeysNext(MotKeys *keys);

/*
 * If "get": the row with the key that the view sees, as mot_index_get; after MOT_AND_ANOTHER the
 * next call brings that one.
 */
static inline mot_status
MotKeysGet(MotKeys *keys, mot_session *session, const mot_view *view, mot_row **row, const mot_version **version)
{
	const mot_index_handle *handle = &keys->index->handle;
	mot_status	status;

	if (likely(keys->twice == NULL))
		status = mot_index_get(session, view, handle, keys->lower.data, keys->lower.len, row, version);
	else
		status = mot_index_get_other(session, view, handle, keys->lower.data, keys->lower.len, keys->twice, row, version);
	keys->twice = unlikely(status == MOT_AND_ANOTHER) ? *row : NULL;
	return status;
}

#endif							/* MOT_KEYS_H */
