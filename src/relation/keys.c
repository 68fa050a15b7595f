/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  From a scan's conditions and their values to bounds of the index.
 *
 * A scan is a list of ranges, mostly one: the columns with an IN list give one
 * range for each combination of their elements, in key order, so that the
 * rows of all ranges together are in key order, too.  So do enums whose keys are not in their order
 * (enumerated.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/nodeSubplan.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "relation/collation.h"
#include "relation/enumerated.h"
#include "relation/keys.h"
#include "relation/ranked.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "xact/xact.h"

static bool make_bounds(MotKeys *keys);
static bool has_one_value(const MotKeys *keys);
static bool has_range(MotKeys *keys);
static bool next_points(MotKeys *keys, bool later);

/* All in one piece of memory: most scans are short. */
MotKeys *
MotKeysAllocate(MotIndex *index, int nconditions, int noperands, bool backward)
{
	MotKeys    *keys;

	keys = palloc(MAXALIGN(sizeof(MotKeys)) +
				  MAXALIGN(nconditions * sizeof(MotKeyCondition)) +
				  noperands * sizeof(MotOperand));
	keys->index = index;
	keys->backward = backward;
	keys->nconditions = nconditions;
	keys->conditions = (MotKeyCondition *) ((char *) keys + MAXALIGN(sizeof(MotKeys)));
	keys->operands = (MotOperand *) ((char *) keys->conditions +
									 MAXALIGN(nconditions * sizeof(MotKeyCondition)));
	keys->noperands = 0;
	return keys;
}

/* What follows from the conditions. */
void
MotKeysComplete(MotKeys *keys)
{
	const MotKey *key = keys->index->key;

	/* (the planner knows: this plan is older) */
	if (unlikely(key->blind))
		MotRaiseBlindIndex(keys->index);
	keys->npoints = 0;
	keys->list_cxt = NULL;
	keys->get = keys->index->unique && !key->ranked;
	keys->view = NULL;
	keys->gap = false;
	keys->in_turn = false;
	keys->enumerated = -1;
	keys->turns = NULL;
	keys->execution = NULL;
	keys->known = false;
	keys->integers = key->all_inline;
	MotKeyBufferInit(&keys->lower, CurrentMemoryContext);
	MotKeyBufferInit(&keys->upper, CurrentMemoryContext);

	for (int i = 0; i < keys->nconditions; i++)
	{
		MotKeyCondition *condition = &keys->conditions[i];

		if (condition->kind == MOT_CONDITION_NULL ||
			condition->kind == MOT_CONDITION_ARRAY ||
			(condition->kind == MOT_CONDITION_COMPARE &&
			 condition->strategy == BTEqualStrategyNumber &&
			 !MotKeyConvertIsLossy(key->columns[condition->column].typid,
								   keys->operands[condition->first].valuetype)))
			keys->npoints++;
		if (condition->kind == MOT_CONDITION_NULL)
			keys->get = false;
		keys->integers &= condition->kind == MOT_CONDITION_COMPARE &&
			condition->strategy == BTEqualStrategyNumber && condition->noperands == 1 &&
			keys->operands[condition->first].valuetype == key->columns[condition->column].typid;
		if (condition->kind == MOT_CONDITION_ARRAY && keys->list_cxt == NULL)
			keys->list_cxt = AllocSetContextCreate(CurrentMemoryContext,
												   "mot index array keys",
												   ALLOCSET_SMALL_SIZES);
	}
	if (keys->npoints < key->ncolumns)
		keys->get = false;
	for (int i = key->ncolumns - 1; i >= keys->npoints && key->enumerated; i--)
		if (key->columns[i].enumerated)
			keys->enumerated = i;
	keys->watched = key->compared && !has_one_value(keys);
	keys->astray = false;
}

/* Has each column by whose collation keys are compared one value? */
static bool
has_one_value(const MotKeys *keys)
{
	const MotKey *key = keys->index->key;

	for (int i = 0; i < key->ncolumns; i++)
		if (key->columns[i].collated && !key->columns[i].collation_order->trusted &&
			(i >= keys->npoints || keys->conditions[i].kind == MOT_CONDITION_ARRAY))
			return false;
	return true;
}

void
MotKeysHold(MotKeys *keys, const uint64 *execution)
{
	keys->known = keys->get && keys->list_cxt == NULL;
	for (int i = 0; i < keys->noperands; i++)
	{
		MotOperand *operand = &keys->operands[i];

		operand->held = operand->kind == MOT_OPERAND_EXTERN && get_typbyval(operand->paramtype);
		keys->known &= operand->held || operand->kind == MOT_OPERAND_CONST;
	}
	keys->execution = execution;
	keys->held_in = keys->made_in = ~UINT64CONST(0);
}

static void
eval_operand(MotOperand *operand, ExprContext *econtext)
{
	switch (operand->kind)
	{
		case MOT_OPERAND_CONST:
			break;
		case MOT_OPERAND_EXTERN:
			{
				ParamListInfo params = econtext->ecxt_param_list_info;
				ParamExternData *prm;
				ParamExternData workspace;

				if (params == NULL || operand->paramid <= 0 || operand->paramid > params->numParams)
					prm = NULL;
				else if (params->paramFetch != NULL)
					prm = params->paramFetch(params, operand->paramid, false, &workspace);
				else
					prm = &params->params[operand->paramid - 1];
				if (prm == NULL || !OidIsValid(prm->ptype))
					ereport(ERROR,
							(errcode(ERRCODE_UNDEFINED_OBJECT),
							 errmsg("no value found for parameter %d", operand->paramid)));
				if (prm->ptype != operand->paramtype)
					ereport(ERROR,
							(errcode(ERRCODE_DATATYPE_MISMATCH),
							 errmsg("type of parameter %d (%s) does not match that when preparing the plan (%s)",
									operand->paramid,
									format_type_be(prm->ptype),
									format_type_be(operand->paramtype))));
				operand->value = prm->value;
				operand->isnull = prm->isnull;
				break;
			}
		case MOT_OPERAND_EXEC:
			{
				ParamExecData *prm = &econtext->ecxt_param_exec_vals[operand->paramid];

				if (unlikely(prm->execPlan != NULL))
					ExecSetParamPlan(prm->execPlan, econtext);
				operand->value = prm->value;
				operand->isnull = prm->isnull;
				break;
			}
		case MOT_OPERAND_EXPR:
			operand->value = ExecEvalExpr(operand->expr, econtext, &operand->isnull);
			break;
	}
}

/*
 * Make the comparison value one of the column's type.  The strategy may
 * change with it (a < 1.5 is a <= 1 for an integer).
 */
static inline MotKeyCompare
convert(const MotKeyColumn *column, Oid valuetype, Datum value,
		StrategyNumber *strategy, Datum *result)
{
	if (valuetype == column->typid)
	{
		*result = value;
		return MOT_KEY_USE;
	}
	return MotKeyConvert(column, valuetype, value, strategy, result);
}

int
MotComparePoints(const void *a, const void *b)
{
	const MotPoint *pa = (const MotPoint *) a;
	const MotPoint *pb = (const MotPoint *) b;
	int			cmp = memcmp(pa->data, pb->data, Min(pa->len, pb->len));

	if (cmp != 0)
		return cmp;
	return pa->len < pb->len ? -1 : pa->len > pb->len;
}

/* of an enum */
static int
compare_enums(const void *a, const void *b, void *column)
{
	return MotEnumCompare(column, ((const MotPoint *) a)->data, ((const MotPoint *) b)->data);
}

/* the same of values that have no bytes */
typedef struct ValueOrder
{
	MotIndex   *index;
	int			column;
} ValueOrder;

static int
compare_values(const void *a, const void *b, void *arg)
{
	const ValueOrder *order = arg;
	int			cmp = MotRankCompare(order->index, order->column,
									 ((const MotPoint *) a)->value, ((const MotPoint *) b)->value);

	return order->index->key->columns[order->column].descending ? (cmp < 0) - (cmp > 0) : cmp;
}

static MotPoint
copy_point(MemoryContext cxt, const MotKeyBuffer *buf)
{
	MotPoint	point = {MemoryContextAlloc(cxt, Max(1, buf->len)), buf->len, 0};

	memcpy(point.data, buf->data, buf->len);
	return point;
}

/* Encode an IN list's elements; false if there is none. */
static bool
encode_list(MotKeys *keys, MotKeyCondition *condition)
{
	MotOperand *operand = &keys->operands[condition->first];
	const MotKeyColumn *column = &keys->index->key->columns[condition->column];
	MotPointList *list = &condition->list;
	ArrayType  *array;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *elements;
	bool	   *nulls;
	int			nelements;
	int			n = 0;
	int			i;
	MotKeyBuffer buf;

	if (operand->isnull)
		return false;
	array = DatumGetArrayTypeP(operand->value);
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval, typalign,
					  &elements, &nulls, &nelements);

	list->points = palloc(Max(1, nelements) * sizeof(MotPoint));
	MotKeyBufferInit(&buf, CurrentMemoryContext);
	for (i = 0; i < nelements; i++)
	{
		StrategyNumber strategy = BTEqualStrategyNumber;
		Datum		value;

		if (nulls[i])
			continue;
		if (convert(column, operand->valuetype, elements[i], &strategy, &value) != MOT_KEY_USE)
			continue;
		MotKeyBufferReset(&buf);
		if (column->ranked)
		{
			list->points[n++].value = value;
			continue;
		}
		MotKeyAppendColumn(column, value, false, &buf);
		list->points[n++] = copy_point(CurrentMemoryContext, &buf);
	}
	if (n == 0)
		return false;

	if (column->ranked)
	{
		ValueOrder	order = {keys->index, condition->column};

		qsort_arg(list->points, n, sizeof(MotPoint), compare_values, &order);
		list->npoints = (int) qunique_arg(list->points, n, sizeof(MotPoint), compare_values, &order);
	}
	else
	{
		if (column->enumerated)
			qsort_arg(list->points, n, sizeof(MotPoint), compare_enums, unconstify(MotKeyColumn *, column));
		else
			qsort(list->points, n, sizeof(MotPoint), MotComparePoints);
		list->npoints = (int) qunique(list->points, n, sizeof(MotPoint), MotComparePoints);
	}
	list->position = keys->backward ? list->npoints - 1 : 0;
	return true;
}

/* Evaluate the conditions' values; false if no row can satisfy them. */
bool
MotKeysFirst(MotKeys *keys, ExprContext *econtext)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	bool		possible = true;
	bool		held = keys->execution != NULL && keys->held_in == *keys->execution;
	int			i;

	keys->twice = NULL;
	if (keys->known && keys->made_in == *keys->execution)
		return keys->lower.len > 0;

	/* (after the snapshot was taken: see mot_index_disordered) */
	keys->astray = unlikely(keys->watched) && mot_index_disordered(keys->index->handle.index);

	/* the values are needed for more than one range: keep them */
	if (keys->list_cxt)
	{
		MemoryContextReset(keys->list_cxt);
		MemoryContextSwitchTo(keys->list_cxt);
	}
	for (i = 0; i < keys->noperands; i++)
		if (!held || !keys->operands[i].held)
			eval_operand(&keys->operands[i], econtext);
	if (keys->execution != NULL)
		keys->held_in = *keys->execution;
	if (keys->list_cxt)
	{
		for (i = 0; i < keys->nconditions && possible; i++)
		{
			if (keys->conditions[i].kind == MOT_CONDITION_ARRAY)
				possible = encode_list(keys, &keys->conditions[i]);
		}
	}
	keys->in_turn = keys->enumerated >= 0 && !keys->astray && MotEnumsAreOdd(keys);
	possible = possible && ((make_bounds(keys) && has_range(keys)) || next_points(keys, false));
	MemoryContextSwitchTo(oldcxt);
	if (keys->known)
	{
		keys->made_in = *keys->execution;
		if (!possible)
			MotKeyBufferReset(&keys->lower);
	}
	return possible;
}

/* The bounds have been made: of enums to be taken in turn, is there a range within? */
static bool
has_range(MotKeys *keys)
{
	/* (a bound may have gone astray) */
	keys->in_turn &= !keys->astray;
	return likely(!keys->in_turn) || keys->gap || keys->view == NULL || MotTurnsFirst(keys);
}

/* The next combination of points, like an odometer: the last column turns fastest. */
static bool
turn_points(MotKeys *keys)
{
	for (int i = keys->npoints - 1; i >= 0; i--)
	{
		MotPointList *list = &keys->conditions[i].list;

		if (keys->conditions[i].kind != MOT_CONDITION_ARRAY)
			continue;
		if (keys->backward)
		{
			if (--list->position >= 0)
				return true;
			list->position = list->npoints - 1;
		}
		else
		{
			if (++list->position < list->npoints)
				return true;
			list->position = 0;
		}
	}
	return false;
}

/* The next one that has a range; "later": rows have been handed out in the index's order. */
static bool
next_points(MotKeys *keys, bool later)
{
	bool		astray = keys->astray;
	bool		possible;

	do
	{
		if (keys->list_cxt == NULL || !turn_points(keys))
			return false;
		possible = make_bounds(keys);
		if (unlikely(keys->astray && !astray && later))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("an index was found not to have its collation's order while it was read"),
					 errhint("The transaction might succeed if retried.")));
	} while (!possible || !has_range(keys));
	return true;
}

/* The next range, if there is one. */
bool
MotKeysNext(MotKeys *keys)
{
	if (unlikely(keys->in_turn) && !keys->gap && keys->view != NULL && MotTurnsNext(keys))
		return true;
	return next_points(keys, true);
}

/*
 * Is (data, len, kind) a tighter lower (upper) bound than "bound"?  Both are
 * prefixes of keys and may have different numbers of columns.
 */
static bool
is_tighter(const mot_bound *bound, const MotKeyBuffer *buf, mot_bound_kind kind, bool lower)
{
	size_t		common;
	int			cmp;

	if (bound->kind == MOT_BOUND_NONE)
		return true;
	common = Min(bound->len, buf->len);
	cmp = memcmp(buf->data, bound->key, common);
	if (cmp != 0)
		return lower ? cmp > 0 : cmp < 0;
	if (buf->len == bound->len)
		return kind == MOT_BOUND_EXCLUSIVE;
	if (buf->len > bound->len)
		return bound->kind != MOT_BOUND_EXCLUSIVE;
	return kind == MOT_BOUND_EXCLUSIVE;
}

static void
set_bound(MotKeys *keys, const MotKeyBuffer *buf, mot_bound_kind kind, bool lower)
{
	mot_bound  *bound = lower ? &keys->lower_bound : &keys->upper_bound;
	MotKeyBuffer *target = lower ? &keys->lower : &keys->upper;

	if (!is_tighter(bound, buf, kind, lower))
		return;
	MotKeyBufferSet(target, buf->data, buf->len);
	bound->kind = kind;
	bound->key = target->data;
	bound->len = target->len;
}

/* Add one column's conditions behind the points; false: no row satisfies them. */
static bool
make_range(MotKeys *keys)
{
	const MotKey *key = keys->index->key;
	const MotKeyColumn *column = &key->columns[keys->conditions[keys->npoints].column];
	size_t		prefix = keys->lower.len;
	MotKeyBuffer buf;
	int			i;

	/* all values that are not null */
	MotKeyBufferInit(&buf, CurrentMemoryContext);
	MotKeyBufferAppend(&buf, keys->lower.data, prefix);
	keys->lower_bound.kind = keys->upper_bound.kind = MOT_BOUND_NONE;
	if (MotKeyAppendNullByte(column, false, &buf) || prefix > 0)
	{
		set_bound(keys, &buf, MOT_BOUND_INCLUSIVE, true);
		set_bound(keys, &buf, MOT_BOUND_INCLUSIVE, false);
	}

	for (i = keys->npoints; i < keys->nconditions; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];
		StrategyNumber strategy = condition->strategy;
		bool		greater;
		bool		complete = true;
		bool		fits;
		mot_bound_kind kind;
		int			n;

		if (condition->kind == MOT_CONDITION_NOT_NULL || (keys->in_turn && column->enumerated))
			continue;

		buf.len = prefix;
		for (n = 0; n < condition->noperands; n++)
		{
			const MotOperand *operand = &keys->operands[condition->first + n];
			StrategyNumber converted = condition->strategy;
			MotKeyCompare compare;
			Datum		value;

			if (operand->isnull)
			{
				if (n == 0)
					return false;
				complete = false;
				break;
			}
			compare = convert(&key->columns[condition->column + n], operand->valuetype,
							  operand->value, &converted, &value);
			if (n == 0)
			{
				if (compare == MOT_KEY_NONE)
					return false;
				if (compare == MOT_KEY_ALL)
				{
					complete = false;
					break;
				}
				strategy = converted;
			}
			else if (compare != MOT_KEY_USE || converted != condition->strategy)
			{
				complete = false;
				break;
			}
			MotKeyAppendColumn(&key->columns[condition->column + n], value, false, &buf);
			if (converted != condition->strategy && condition->noperands > 1)
			{
				/*
				 * the value fell between two of the column's: the rest cannot
				 * matter
				 */
				n++;
				break;
			}
		}
		if (n == 0)
			continue;			/* every value satisfies it */

		fits = MotKeyFitBound(&buf);
		if (unlikely(keys->watched) &&
			(!fits || !mot_index_bound_in_order(MotSession(), &keys->index->handle, buf.data, buf.len)))
		{
			keys->astray = true;
			return true;
		}
		if (strategy == BTEqualStrategyNumber)
		{
			/* an equality that is checked again: a range from value to value */
			set_bound(keys, &buf, MOT_BOUND_INCLUSIVE, true);
			set_bound(keys, &buf, MOT_BOUND_INCLUSIVE, false);
			continue;
		}
		greater = (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber);
		kind = (complete && (strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber)) ?
			MOT_BOUND_EXCLUSIVE : MOT_BOUND_INCLUSIVE;
		set_bound(keys, &buf, kind, greater != column->descending);
	}
	return true;
}

/* The values one after the other; false if one is null. */
static bool
put_integers(MotKeys *keys)
{
	const MotKeyColumn *columns = keys->index->key->columns;
	uint8	   *to = keys->lower.data;

	for (int i = 0; i < keys->npoints; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];
		const MotOperand *operand = &keys->operands[condition->first];

		if (operand->isnull)
			return false;
		to = MotKeyPutInteger(&columns[condition->column], operand->value, to);
	}
	keys->lower.len = to - keys->lower.data;
	return true;
}

/* Make the bounds of the present range; false if it is surely empty. */
static bool
make_bounds(MotKeys *keys)
{
	const MotKey *key = keys->index->key;
	int			i;

	if (likely(keys->integers))
	{
		if (!put_integers(keys))
			return false;
		goto made;
	}

	keys->gap = false;
	MotKeyBufferReset(&keys->lower);
	for (i = 0; i < keys->npoints; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];
		const MotKeyColumn *column = &key->columns[condition->column];

		switch (condition->kind)
		{
			case MOT_CONDITION_COMPARE:
				{
					const MotOperand *operand = &keys->operands[condition->first];
					StrategyNumber strategy = BTEqualStrategyNumber;
					Datum		value;

					if (operand->isnull ||
						convert(column, operand->valuetype, operand->value,
								&strategy, &value) != MOT_KEY_USE)
						return false;
					if (!column->ranked)
						MotKeyAppendColumn(column, value, false, &keys->lower);
					else if (!MotRankPoint(keys, condition->column, value))
						return true;
					break;
				}
			case MOT_CONDITION_NULL:
				if (!column->nullable)
					return false;
				MotKeyAppendColumn(column, (Datum) 0, true, &keys->lower);
				break;
			case MOT_CONDITION_ARRAY:
				{
					const MotPoint *point = &condition->list.points[condition->list.position];

					if (!column->ranked)
						MotKeyBufferAppend(&keys->lower, point->data, point->len);
					else if (!MotRankPoint(keys, condition->column, point->value))
						return true;
					break;
				}
			default:
				elog(ERROR, "condition of kind %d is no point", condition->kind);
		}
	}

	/* a value longer than any key */
	if (!MotKeyFitBound(&keys->lower))
		return false;

	if (keys->npoints < keys->nconditions && key->columns[keys->conditions[keys->npoints].column].ranked)
		return MotRankRange(keys, keys->conditions[keys->npoints].column);
	if (keys->npoints < keys->nconditions && likely(!keys->astray))
	{
		size_t		len = keys->lower.len;

		if (!make_range(keys))
			return false;
		if (likely(!keys->astray))
			return true;
		/* (what bounds have been made begin with it) */
		keys->lower.len = len;
	}

made:
	/* a prefix: both bounds are the same bytes */
	keys->lower_bound.kind = keys->lower.len > 0 ? MOT_BOUND_INCLUSIVE : MOT_BOUND_NONE;
	keys->lower_bound.key = keys->lower.data;
	keys->lower_bound.len = keys->lower.len;
	keys->upper_bound = keys->lower_bound;
	return true;
}

/* ------------------------------------------------------------------- cursors */

void
MotKeyCursorClose(void *arg)
{
	MotKeyCursor *c = arg;

	if (c->open)
	{
		c->open = false;
		mot_cursor_close(c->cursor);
	}
}

void
MotKeyCursorOpen(MotKeyCursor *c, MemoryContext cxt, mot_session *session, const mot_view *view,
				 MotKeys *keys, Relation rel)
{
	mot_status	status;

	if (c->cursor == NULL)
	{
		c->cursor = MemoryContextAlloc(cxt, mot_cursor_size());
		c->cleanup.func = MotKeyCursorClose;
		c->cleanup.arg = c;
		MemoryContextRegisterResetCallback(cxt, &c->cleanup);
	}
	status = mot_cursor_open(session, c->cursor, view, &keys->index->handle,
							 &keys->lower_bound, &keys->upper_bound, keys->backward);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, rel);
	c->open = true;
	c->rows = 0;
}

/* ---------------------------------------------------------- rows put down */

void
MotFoundGrow(MotFoundRows *found)
{
	found->size = Max(64, 2 * found->size);
	found->rows = found->rows == NULL ? MemoryContextAlloc(found->cxt, found->size * sizeof(MotFound)) :
		repalloc_huge(found->rows, found->size * sizeof(MotFound));
}

typedef struct SortedRow
{
	MotPoint	key;			/* must be first: see compare_rows */
	MotFound	found;
} SortedRow;

/* one that goes on until a "next" returns false */
typedef struct RowSource
{
	mot_session *session;
	mot_scan	scan;			/* of the table; or */
	MotKeyCursor cursor;		/* of the keys' ranges */
	const mot_view *view;
	MotKeys    *keys;
} RowSource;

static bool
source_next(RowSource *source, mot_row **row, const mot_version **version)
{
	if (source->keys == NULL)
		return mot_scan_next(source->session, &source->scan, row, version);
	while (!mot_cursor_next(source->cursor.cursor, row, version))
	{
		MotKeyCursorClose(&source->cursor);
		if (!MotKeysNext(source->keys))
			return false;
		MotKeyCursorOpen(&source->cursor, NULL, source->session, source->view, source->keys, NULL);
	}
	return true;
}

static int
compare_rows(const void *a, const void *b, void *key)
{
	const MotPoint *pa = (const MotPoint *) a;
	const MotPoint *pb = (const MotPoint *) b;

	return MotKeyCompareOrdered(key, pa->data, pa->len, pb->data, pb->len);
}

static void
copy_item(MotRankItem *item, MotIndex *index, const Datum *values, const bool *isnull, MemoryContext cxt)
{
	int			n = index->key->ncolumns;
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);

	memset(item, 0, sizeof(*item));
	item->values = palloc(n * sizeof(Datum));
	item->isnull = memcpy(palloc(n * sizeof(bool)), isnull, n * sizeof(bool));
	for (int i = 0; i < n; i++)
		if (!isnull[i])
			item->values[i] = MotRankCopy(index, i, values[i]);
	MemoryContextSwitchTo(oldcxt);
}

void
MotFoundSorted(MotFoundRows *found, mot_session *session, mot_table *table, const mot_view *view,
			   MotIndex *index, MotKeys *keys, MotRowPasses passes, void *arg)
{
	bool		ranked = index->key->ranked;
	Size		size = offsetof(MotKey, columns) + index->key->ncolumns * sizeof(MotKeyColumn);
	MotKey	   *key = memcpy(MemoryContextAlloc(found->cxt, size), index->key, size);
	RowSource  *source = MemoryContextAllocZero(found->cxt, sizeof(RowSource));
	mot_row    *row;
	const mot_version *version;
	MotKeyBuffer buf;
	SortedRow  *sorted = NULL;
	MotRankItem *items = NULL;
	int64		n = 0;
	int64		room = 0;

	key->width = -1;
	key->all_inline = false;
	for (int i = 0; i < key->ncolumns; i++)
		key->columns[i].nullable = true;
	MotKeyBufferInit(&buf, found->cxt);
	source->session = session;
	source->view = view;
	source->keys = keys;
	if (keys == NULL)
		mot_scan_begin(session, &source->scan, table, view);
	else
		MotKeyCursorOpen(&source->cursor, found->cxt, session, view, keys, NULL);
	while (source_next(source, &row, &version))
	{
		Datum	   *values;
		bool	   *isnull;
		Datum		computed[INDEX_MAX_KEYS];
		bool		computed_isnull[INDEX_MAX_KEYS];

		CHECK_FOR_INTERRUPTS();
		if (!passes(arg, version, &values, &isnull) ||
			(key->computed && !MotIndexCompute(index, values, isnull, computed, computed_isnull)))
			continue;
		if (n == room)
		{
			room = Max(64, 2 * room);
			sorted = sorted == NULL ? MemoryContextAlloc(found->cxt, room * sizeof(SortedRow)) :
				repalloc_huge(sorted, room * sizeof(SortedRow));
			if (ranked)
				items = items == NULL ? MemoryContextAlloc(found->cxt, room * sizeof(MotRankItem)) :
					repalloc_huge(items, room * sizeof(MotRankItem));
		}
		if (ranked)
		{
			copy_item(&items[n], index, computed, computed_isnull, found->cxt);
			items[n].row = row;
			items[n++].version = version;
			continue;
		}
		MotKeyBufferReset(&buf);
		(void) MotKeyFromRow(key, key->computed ? computed : values, key->computed ? computed_isnull : isnull, &buf);
		sorted[n].found.row = row;
		sorted[n].found.version = version;
		sorted[n++].key = copy_point(found->cxt, &buf);
	}
	if (ranked)
	{
		MotRankAll(index, items, n, found->cxt);
		/* (their keys come first) */
		if (key->enumerated)
			qsort_arg(items, n, sizeof(MotRankItem), compare_rows, key);
		for (int64 i = 0; i < n; i++)
			MotFoundAdd(found, items[i].row, items[i].version);
		return;
	}
	if (n > 1)
		qsort_arg(sorted, n, sizeof(SortedRow), compare_rows, key);
	for (int64 i = 0; i < n; i++)
		MotFoundAdd(found, sorted[i].found.row, sorted[i].found.version);
}
