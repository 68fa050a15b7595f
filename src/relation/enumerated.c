/*-------------------------------------------------------------------------
 *
 * enumerated.c
 *	  Enums in indexes without labels: see enumerated.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "relation/enumerated.h"
#include "relation/keycodec_types.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
#include "xact/xact.h"

#define VALUE_MAX (1 + sizeof(Oid))

/* rows that are looked at in one go */
#define LOOK 8

/* what keys have in an enum's column, null byte included */
typedef struct Value
{
	uint8		len;
	uint8		bytes[VALUE_MAX];
	int			place;			/* in the order of bytes */
} Value;

/* one enum whose values are taken in turn, among keys with the same columns before */
typedef struct Turn
{
	const MotKeyColumn *column;
	int			number;			/* of the column */
	bool		alone;			/* all keys in the bounds have the same
								 * columns before */
	bool		begun;
	mot_bound	lower;
	mot_bound	upper;
	MotKeyBuffer lower_bytes;
	MotKeyBuffer upper_bytes;
	MotKeyBuffer before;		/* those columns */
	int			nfound;
	int			nvalues;
	int			room;
	int			at;
	Value	   *values;
} Turn;

struct MotTurns
{
	MemoryContext cxt;
	MemoryContext row_cxt;		/* reset for each row that is looked at */
	mot_cursor *cursor;
	MotKeyBuffer found;			/* the key of a row */
	MotKeyBuffer bound;
	int			level;			/* the turn that goes on next */
	int			nturns;
	Turn		turns[FLEXIBLE_ARRAY_MEMBER];
};

/* ---------------------------------------------------------------- comparing */

static bool
is_null(const MotKeyColumn *column, const uint8 *bytes)
{
	return column->nullable && MotKeyIsNullByte(bytes[0]);
}

static Oid
oid_of(const MotKeyColumn *column, const uint8 *bytes)
{
	uint32		oid;

	memcpy(&oid, bytes + (column->nullable ? 1 : 0), sizeof(oid));
	oid = pg_ntoh32(oid);
	return column->descending ? ~oid : oid;
}

static int
compare_oids(const MotKeyColumn *column, Oid a, Oid b)
{
	if (((a | b) & 1) == 0)
		return a < b ? -1 : a > b;
	return compare_values_of_enum(lookup_type_cache(column->typid, 0), a, b);
}

int
MotEnumCompare(const MotKeyColumn *column, const uint8 *a, const uint8 *b)
{
	int			cmp;

	if (is_null(column, a) || is_null(column, b))
		return (int) a[0] - (int) b[0];
	cmp = compare_oids(column, oid_of(column, a), oid_of(column, b));
	return column->descending ? (cmp < 0) - (cmp > 0) : cmp;
}

bool
MotKeyIsOdd(const MotKey *key, const uint8 *bytes, size_t len)
{
	for (int i = 0; key->enumerated && i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		size_t		n = MotKeyColumnLength(column, bytes, len);

		if (n == 0)
			break;
		if (column->enumerated && !is_null(column, bytes) && (oid_of(column, bytes) & 1) != 0)
			return true;
		bytes += n;
		len -= n;
	}
	return false;
}

int
MotKeyCompareOrdered(const MotKey *key, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len)
{
	size_t		at = 0;

	for (int i = 0; key->enumerated && i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		size_t		a_n = MotKeyColumnLength(column, a + at, a_len - at);
		size_t		b_n = MotKeyColumnLength(column, b + at, b_len - at);

		if (a_n == 0 || b_n == 0)
			break;
		if (a_n != b_n || memcmp(a + at, b + at, a_n) != 0)
		{
			if (column->enumerated)
				return MotEnumCompare(column, a + at, b + at);
			break;
		}
		at += a_n;
	}
	return MotKeyCompareValues(key, a, a_len, b, b_len);
}

/* --------------------------------------------------------------- conditions */

bool
MotEnumsAreOdd(const MotKeys *keys)
{
	if (mot_index_has_odd(keys->index->handle.index))
		return true;
	for (int i = keys->npoints; i < keys->nconditions; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];

		if (condition->column == keys->enumerated && condition->noperands > 0 &&
			!keys->operands[condition->first].isnull &&
			(DatumGetObjectId(keys->operands[condition->first].value) & 1) != 0)
			return true;
	}
	return false;
}

/* does a value of the column behind the points satisfy the conditions on it? */
static bool
satisfies(const MotKeys *keys, const MotKeyColumn *column, const uint8 *bytes)
{
	for (int i = keys->npoints; i < keys->nconditions; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];
		const MotOperand *operand;
		int			cmp;

		if (is_null(column, bytes))
			return false;
		if (condition->noperands == 0)
			continue;
		operand = &keys->operands[condition->first];
		if (operand->isnull)
			return false;
		cmp = compare_oids(column, oid_of(column, bytes), DatumGetObjectId(operand->value));
		if (!MotStrategyHolds(condition->strategy, cmp))
			return false;
	}
	return true;
}

/* -------------------------------------------------------------------- turns */

static int
compare_values(const void *a, const void *b, void *arg)
{
	return MotEnumCompare(arg, ((const Value *) a)->bytes, ((const Value *) b)->bytes);
}

/* So many of the first (last) rows in the bounds that the view sees. */
static int
look(MotKeys *keys, const mot_bound *lower, const mot_bound *upper, bool last, int most, const mot_version **versions)
{
	struct MotTurns *turns = keys->turns;
	mot_row    *row;
	int			n = 0;
	mot_status	status;

	CHECK_FOR_INTERRUPTS();
	status = mot_cursor_open(MotSession(), turns->cursor, keys->view, &keys->index->handle, lower, upper, last);
	MotRaiseStatus(status, NULL);
	while (n < most && mot_cursor_next(turns->cursor, &row, &versions[n]))
		n++;
	mot_cursor_close(turns->cursor);
	return n;
}

/* one's key */
static void
find_key(MotKeys *keys, const mot_version *version)
{
	struct MotTurns *turns = keys->turns;

	MemoryContextReset(turns->row_cxt);
	MotWithin(turns->row_cxt, (void) MotIndexKeyOf(keys->index, version, &turns->found));
}

/* how many bytes of the key that was found stand before a column */
static size_t
length_before(const MotKeys *keys, int column)
{
	const MotKeyBuffer *found = &keys->turns->found;
	size_t		at = 0;

	for (int i = 0; i < column; i++)
		at += MotKeyColumnLength(&keys->index->key->columns[i], found->data + at, found->len - at);
	return at;
}

static mot_bound
bound_at(const MotKeyBuffer *buf, mot_bound_kind kind)
{
	mot_bound	bound = {kind, buf->data, buf->len};

	return bound;
}

static mot_bound
keep_bound(const mot_bound *bound, MotKeyBuffer *buf)
{
	MotKeyBufferSet(buf, bound->key, bound->kind == MOT_BOUND_NONE ? 0 : bound->len);
	return bound_at(buf, bound->kind);
}

static void
begin_turn(Turn *turn, const mot_bound *lower, const mot_bound *upper)
{
	turn->lower = keep_bound(lower, &turn->lower_bytes);
	turn->upper = keep_bound(upper, &turn->upper_bytes);
	turn->begun = false;
	turn->nvalues = turn->at = 0;
}

static void
add_value(MotKeys *keys, Turn *turn, const uint8 *bytes, size_t len)
{
	Value	   *value;
	int			place = turn->nfound++;

	Assert(len > 0 && len <= VALUE_MAX);
	if (turn->number == keys->npoints && !satisfies(keys, turn->column, bytes))
		return;
	if (turn->nvalues == turn->room)
	{
		turn->room = Max(8, 2 * turn->room);
		turn->values = turn->values == NULL ? MemoryContextAlloc(keys->turns->cxt, turn->room * sizeof(Value)) :
			repalloc(turn->values, turn->room * sizeof(Value));
	}
	value = &turn->values[turn->nvalues++];
	value->len = (uint8) len;
	value->place = place;
	memcpy(value->bytes, bytes, len);
}

/* The next columns before the enum that there are, and its values among their keys; false: there are no more. */
static bool
next_group(MotKeys *keys, Turn *turn)
{
	struct MotTurns *turns = keys->turns;
	mot_bound	lower = turn->lower;
	mot_bound	upper = turn->upper;
	const mot_version *versions[LOOK];
	int			n;

	if (turn->begun && turn->alone)
		return false;
	if (!turn->alone)
	{
		if (turn->begun)
			*(keys->backward ? &upper : &lower) = bound_at(&turn->before, MOT_BOUND_EXCLUSIVE);
		if (look(keys, &lower, &upper, keys->backward, 1, versions) == 0)
			return false;
		find_key(keys, versions[0]);
		MotKeyBufferSet(&turn->before, turns->found.data, length_before(keys, turn->number));
		lower = upper = bound_at(&turn->before, MOT_BOUND_INCLUSIVE);
	}
	turn->begun = true;
	turn->nvalues = turn->nfound = turn->at = 0;
	turns->bound.len = 0;
	/* most values have few rows: a bit more than the next one is looked at */
	do
	{
		n = look(keys, &lower, &upper, false, LOOK, versions);
		for (int i = 0; i < n; i++)
		{
			size_t		before;
			size_t		len;

			find_key(keys, versions[i]);
			before = length_before(keys, turn->number);
			len = before + MotKeyColumnLength(turn->column, turns->found.data + before, turns->found.len - before);
			if (len == turns->bound.len && memcmp(turns->found.data, turns->bound.data, len) == 0)
				continue;
			if (turn->alone)
				MotKeyBufferSet(&turn->before, turns->found.data, before);
			MotKeyBufferSet(&turns->bound, turns->found.data, len);
			add_value(keys, turn, turns->found.data + before, len - before);
		}
		lower = bound_at(&turns->bound, MOT_BOUND_EXCLUSIVE);
	} while (n == LOOK);
	if (turn->nvalues > 1)
		qsort_arg(turn->values, turn->nvalues, sizeof(Value), compare_values, unconstify(MotKeyColumn *, turn->column));
	return true;
}

static const Value *
value_at(const MotKeys *keys, const Turn *turn, int at)
{
	return &turn->values[keys->backward ? turn->nvalues - 1 - at : at];
}

static mot_bound
bound_of(const Turn *turn, const Value *value, MotKeyBuffer *buf)
{
	MotKeyBufferSet(buf, turn->before.data, turn->before.len);
	MotKeyBufferAppend(buf, value->bytes, value->len);
	return bound_at(buf, MOT_BOUND_INCLUSIVE);
}

bool
MotTurnsNext(MotKeys *keys)
{
	struct MotTurns *turns = keys->turns;
	int			step = keys->backward ? -1 : 1;

	while (turns->level >= 0)
	{
		Turn	   *turn = &turns->turns[turns->level];

		if (turn->at < turn->nvalues)
		{
			bool		innermost = turns->level + 1 == turns->nturns;
			const Value *from = value_at(keys, turn, turn->at++);
			const Value *to = from;

			/* (those whose keys are in order need not be taken one by one) */
			while (innermost && turn->at < turn->nvalues &&
				   value_at(keys, turn, turn->at)->place == to->place + step)
				to = value_at(keys, turn, turn->at++);
			keys->lower_bound = bound_of(turn, keys->backward ? to : from, &keys->lower);
			keys->upper_bound = bound_of(turn, keys->backward ? from : to, &keys->upper);
			if (innermost)
				return true;
			turns->level++;
			begin_turn(turn + 1, &keys->lower_bound, &keys->upper_bound);
		}
		else if (!next_group(keys, turn))
			turns->level--;
	}
	return false;
}

static struct MotTurns *
make_turns(MotKeys *keys)
{
	const MotKey *key = keys->index->key;
	MemoryContext cxt = AllocSetContextCreate(GetMemoryChunkContext(keys), "MOT enums in turn", ALLOCSET_SMALL_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	struct MotTurns *turns = palloc0(offsetof(struct MotTurns, turns) + key->ncolumns * sizeof(Turn));
	int			fixed = keys->npoints;

	turns->cxt = cxt;
	turns->row_cxt = AllocSetContextCreate(cxt, "MOT key of a row", ALLOCSET_SMALL_SIZES);
	turns->cursor = palloc(mot_cursor_size());
	MotKeyBufferInit(&turns->found, cxt);
	MotKeyBufferInit(&turns->bound, cxt);
	for (int i = keys->enumerated; i < key->ncolumns; i++)
	{
		Turn	   *turn = &turns->turns[turns->nturns];

		if (!key->columns[i].enumerated)
			continue;
		turns->nturns++;
		turn->column = &key->columns[i];
		turn->number = i;
		turn->alone = i == fixed;
		MotKeyBufferInit(&turn->lower_bytes, cxt);
		MotKeyBufferInit(&turn->upper_bytes, cxt);
		MotKeyBufferInit(&turn->before, cxt);
		fixed = i + 1;
	}
	MemoryContextSwitchTo(oldcxt);
	return turns;
}

bool
MotTurnsFirst(MotKeys *keys)
{
	if (keys->turns == NULL)
		keys->turns = make_turns(keys);
	keys->turns->level = 0;
	begin_turn(&keys->turns->turns[0], &keys->lower_bound, &keys->upper_bound);
	return MotTurnsNext(keys);
}
