/*-------------------------------------------------------------------------
 *
 * ranked.c
 *	  Columns of indexes whose values have no encoding: see ranked.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tupmacs.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "relation/enumerated.h"
#include "relation/keycodec_types.h"
#include "relation/ranked.h"
#include "storage/lock.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "xact/xact.h"

/* what tells the lock on a table's ranks from those that the server may have on it */
#define RANKS_SUBID 0x6d6f

/* between two looks whether older versions have gone */
#define BEHIND_WAIT_US 5000

/*
 * labels that this session has given, by their hashes: how many came before in the same gap, in
 * order
 */
#define RECENT 256

typedef struct Recent
{
	uint64		label;
	uint64		above;			/* its neighbours then; 0: none */
	uint64		below;
	int			ascends;
	int			descends;
} Recent;

/* of one column */
typedef struct Ranked
{
	FmgrInfo	compare;
	Oid			collation;
	int16		typlen;
	bool		typbyval;
	Recent		recent[RECENT];
} Ranked;

typedef struct MotRanking
{
	int			ncolumns;
	Ranked		column[FLEXIBLE_ARRAY_MEMBER];
} MotRanking;

struct MotRanking *
MotRankingOf(Relation index, const MotKey *key)
{
	MotRanking *ranking = palloc0(offsetof(MotRanking, column) + key->ncolumns * sizeof(Ranked));

	ranking->ncolumns = key->ncolumns;
	for (int i = 0; i < ranking->ncolumns; i++)
	{
		Ranked	   *ranked = &ranking->column[i];
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

		ranked->typlen = att->attlen;
		ranked->typbyval = att->attbyval;
		if (!key->columns[i].ranked)
			continue;
		fmgr_info_cxt(index_getprocid(index, i + 1, BTORDER_PROC), &ranked->compare, CurrentMemoryContext);
		ranked->collation = index->rd_indcollation[i];
	}
	return ranking;
}

Datum
MotRankCopy(MotIndex *index, int column, Datum value)
{
	const Ranked *ranked = &index->ranking->column[column];

	return datumCopy(value, ranked->typbyval, ranked->typlen);
}

/* ----------------------------------------------------------------- the lock */

static LOCKTAG
ranks_tag(Relation rel)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId, RelationGetRelid(rel), RANKS_SUBID);
	return tag;
}

void
MotRankLock(Relation rel)
{
	LOCKTAG		tag = ranks_tag(rel);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	while (unlikely(!mot_engine_left_behind(MotSession())))
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(BEHIND_WAIT_US);
	}
}

void
MotRankUnlock(Relation rel)
{
	LOCKTAG		tag = ranks_tag(rel);

	(void) LockRelease(&tag, ExclusiveLock, false);
}

/* ------------------------------------------------------------------ values */

/*
 * a value's bytes, in front of them how many; one that is too long for a key is cut, and refused by
 * the key's length
 */
static void
append_value(const Ranked *ranked, Datum value, uint8 flip, MotKeyBuffer *buf)
{
	char		fixed[sizeof(Datum)];
	const char *bytes;
	size_t		len;
	size_t		start = buf->len;
	struct varlena *flat = NULL;

	if (ranked->typlen == -1)
	{
		flat = PG_DETOAST_DATUM_PACKED(value);
		bytes = VARDATA_ANY(flat);
		len = Min(VARSIZE_ANY_EXHDR(flat), MOT_KEY_VALUE_MAX);
	}
	else if (ranked->typbyval)
	{
		store_att_byval(fixed, value, ranked->typlen);
		bytes = fixed;
		len = ranked->typlen;
	}
	else
	{
		bytes = DatumGetPointer(value);
		len = ranked->typlen;
	}
	key_put16(buf, (uint16) len);
	key_put_bytes(buf, bytes, len);
	for (size_t i = start; flip != 0 && i < buf->len; i++)
		buf->data[i] ^= flip;
	if (flat != NULL && (Pointer) flat != DatumGetPointer(value))
		pfree(flat);
}

/* the value of such bytes, behind its length; palloc'd */
static Datum
value_of(const Ranked *ranked, const uint8 *bytes, size_t len, uint8 flip)
{
	size_t		header = ranked->typlen == -1 ? VARHDRSZ : 0;
	char	   *value = palloc(header + Max(len, 1));

	for (size_t i = 0; i < len; i++)
		value[header + i] = (char) (bytes[i] ^ flip);
	if (header > 0)
		SET_VARSIZE(value, header + len);
	return ranked->typbyval ? fetch_att(value, true, ranked->typlen) : PointerGetDatum(value);
}

static int
compare(Ranked *ranked, Datum a, Datum b)
{
	return DatumGetInt32(FunctionCall2Coll(&ranked->compare, ranked->collation, a, b));
}

int
MotRankCompare(MotIndex *index, int column, Datum a, Datum b)
{
	return compare(&index->ranking->column[column], a, b);
}

/* ------------------------------------------------------------------ search */

/* where a value is, or would be */
typedef struct Place
{
	bool		found;
	MotLabel	at;				/* if so */
	MotKeyBuffer bytes;			/* and what the column has */
	MotLabel	lo;				/* else the neighbours, or none */
	MotLabel	hi;
} Place;

typedef struct Search
{
	MotIndex   *index;
	Ranked	   *ranked;
	uint8		flip;
	mot_session *session;
	const mot_view *view;		/* NULL: all entries */
	mot_cursor *cursor;
	const uint8 *prefix;		/* the columns before, and the byte that says
								 * that the value is not null */
	size_t		prefix_len;
	MotKeyBuffer lower;
	MotKeyBuffer upper;
	MotLabel	at;				/* of the entry that was found */
	MotKeyBuffer bytes;
	Datum		value;
} Search;

static mot_bound
make_bound(Search *s, MotKeyBuffer *buf, const MotLabel *label, bool inclusive)
{
	mot_bound	bound = {label->nwords == 0 || inclusive ? MOT_BOUND_INCLUSIVE : MOT_BOUND_EXCLUSIVE};

	MotKeyBufferSet(buf, s->prefix, s->prefix_len);
	if (label->nwords > 0)
		MotLabelAppend(label, s->flip, buf);
	bound.key = buf->data;
	bound.len = buf->len;
	return bound;
}

static void
raise_damaged(const Search *s)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("a key of index with OID %u makes no sense", s->index->indexoid),
			 errhint("REINDEX it.")));
}

static void
take_entry(Search *s, const uint8 *key, size_t len)
{
	size_t		at = s->prefix_len;
	size_t		n = len < at ? 0 : MotLabelTake(key + at, len - at, s->flip, &s->at);
	uint16		value_len;

	if (n == 0 || len < at + n + sizeof(value_len))
		raise_damaged(s);
	memcpy(&value_len, key + at + n, sizeof(value_len));
	value_len = pg_ntoh16(value_len);
	if (s->flip != 0)
		value_len = ~value_len;
	n += sizeof(value_len);
	if (len < at + n + value_len)
		raise_damaged(s);
	MotKeyBufferSet(&s->bytes, key + at, n + value_len);
	s->value = value_of(s->ranked, key + at + n, value_len, s->flip);
}

/*
 * The first (last) entry, by labels, from one label on (if not "inclusive": behind it) up to before
 * the other.
 */
static bool
probe(Search *s, const MotLabel *from, bool inclusive, const MotLabel *to, bool last)
{
	bool		flipped = s->flip != 0;
	mot_bound	lower = make_bound(s, &s->lower, flipped ? to : from, !flipped && inclusive);
	mot_bound	upper = make_bound(s, &s->upper, flipped ? from : to, flipped && inclusive);
	mot_status	status;
	bool		found = false;

	CHECK_FOR_INTERRUPTS();
	if (s->view == NULL)
	{
		mot_entry	entry;

		status = mot_entries_open(s->session, s->cursor, s->index->handle.index, &lower, &upper, last != flipped);
		if (status == MOT_OK)
		{
			found = mot_entries_next(s->cursor, &entry);
			if (found)
				take_entry(s, entry.key, entry.len);
			mot_cursor_close(s->cursor);
		}
	}
	else
	{
		mot_row    *row;
		const mot_version *version;

		status = mot_cursor_open(s->session, s->cursor, s->view, &s->index->handle, &lower, &upper, last != flipped);
		if (status == MOT_OK)
		{
			found = mot_cursor_next(s->cursor, &row, &version);
			mot_cursor_close(s->cursor);
		}
		if (found)
		{
			const MotTailEntry *entry = MotTailFind(MotVersionTail(s->index->desc, version), s->index->indexoid);

			if (entry == NULL)
				raise_damaged(s);
			take_entry(s, entry->key, entry->len);
		}
	}
	MotRaiseStatus(status, NULL);
	return found;
}

/*
 * All that was compared with stays where it is as long as it is in the tree, and what is in the
 * tree is in order.  So of what was there all the time nothing equal, and nothing on the wrong
 * side, is passed by.
 */
static void
find(MotIndex *index, int column, const MotKeyBuffer *prefix, Datum value, mot_session *session,
	 const mot_view *view, Place *place)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT rank", ALLOCSET_SMALL_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	Search	   *s = palloc0(sizeof(Search));
	MotLabel   *middle = palloc(sizeof(MotLabel));
	bool		last = true;

	s->index = index;
	s->ranked = &index->ranking->column[column];
	s->flip = index->key->columns[column].descending ? 0xFF : 0;
	s->session = session;
	s->view = view;
	s->cursor = palloc(mot_cursor_size());
	s->prefix = prefix->data;
	s->prefix_len = prefix->len;
	MotKeyBufferInit(&s->lower, cxt);
	MotKeyBufferInit(&s->upper, cxt);
	MotKeyBufferInit(&s->bytes, cxt);

	place->found = false;
	place->lo.nwords = place->hi.nwords = 0;
	for (;;)
	{
		const MotLabel *lo = &place->lo;
		const MotLabel *hi = &place->hi;
		int			cmp;

		/* the greatest one first: many values are greater than all there are */
		if (last)
		{
			if (!probe(s, lo, false, hi, true))
				break;
		}
		else
		{
			if (!MotLabelMiddle(lo->nwords > 0 ? lo : NULL, hi->nwords > 0 ? hi : NULL, middle))
				break;
			if (!probe(s, middle, true, hi, false) && !probe(s, lo, false, middle, true))
				break;
		}
		cmp = compare(s->ranked, value, s->value);
		if (cmp == 0)
		{
			place->found = true;
			place->at = s->at;
			MotKeyBufferSet(&place->bytes, s->bytes.data, s->bytes.len);
			break;
		}
		if (cmp < 0)
			place->hi = s->at;
		else
			place->lo = s->at;
		if (last && cmp > 0)
			break;
		last = false;
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
}

static Place *
new_place(void)
{
	Place	   *place = palloc(sizeof(Place));

	MotKeyBufferInit(&place->bytes, CurrentMemoryContext);
	return place;
}

static void
free_place(Place *place)
{
	if (place->bytes.data != place->bytes.fixed)
		pfree(place->bytes.data);
	pfree(place);
}

/* -------------------------------------------------------------------- keys */

static inline uint64
hash_label(const MotLabel *label)
{
	return label == NULL ? 0 :
		hash_bytes_extended((const unsigned char *) label->words, label->nwords * sizeof(uint32), 0) | 1;
}

/* what is known of the label that the last value of a run may have */
static inline const Recent *
recent_one(const Ranked *ranked, uint64 label)
{
	const Recent *recent = &ranked->recent[label / 2 % RECENT];

	return label != 0 && recent->label == label ? recent : NULL;
}

/*
 * A new label.  Values often come in order, several such runs beside each other: then each is a
 * neighbour of the one before, and its neighbour on the other side stays the same.
 */
static bool
give(Ranked *ranked, const MotLabel *lo, const MotLabel *hi, MotLabel *label)
{
	Recent		new = {0};
	const Recent *before;

	new.below = hash_label(lo);
	new.above = hash_label(hi);
	before = recent_one(ranked, new.below);
	if (before != NULL && before->above == new.above)
		new.ascends = before->ascends + 1;
	before = recent_one(ranked, new.above);
	if (before != NULL && before->below == new.below)
		new.descends = before->descends + 1;
	if (!MotLabelBetween(lo, hi, new.ascends >= new.descends ? new.ascends : -new.descends, label))
		return false;
	new.label = hash_label(label);
	ranked->recent[new.label / 2 % RECENT] = new;
	return true;
}

/* The column of a value that is not null, behind the byte that says so. */
static void
append_rank(MotIndex *index, int column, Datum value, MotKeyBuffer *key)
{
	Ranked	   *ranked = &index->ranking->column[column];
	uint8		flip = index->key->columns[column].descending ? 0xFF : 0;
	Place	   *place = new_place();

	find(index, column, key, value, MotSession(), NULL, place);
	if (place->found)
		MotKeyBufferAppend(key, place->bytes.data, place->bytes.len);
	else
	{
		const MotLabel *lo = place->lo.nwords > 0 ? &place->lo : NULL;
		const MotLabel *hi = place->hi.nwords > 0 ? &place->hi : NULL;

		if (!give(ranked, lo, hi, &place->at))
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("no place is left for a value between two others in index \"%s\"",
							get_rel_name(index->indexoid)),
					 errhint("REINDEX makes room.")));
		MotLabelAppend(&place->at, flip, key);
		append_value(ranked, value, flip, key);
	}
	free_place(place);
}

unsigned
MotRankKey(MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	const MotKey *k = index->key;
	bool		any_null = false;

	MotKeyBufferReset(key);
	for (int i = 0; i < k->ncolumns; i++)
	{
		any_null |= isnull[i];
		if (isnull[i] || !k->columns[i].ranked)
			MotKeyAppendColumn(&k->columns[i], values[i], isnull[i], key);
		else
		{
			(void) MotKeyAppendNullByte(&k->columns[i], false, key);
			append_rank(index, i, values[i], key);
		}
	}
	MotKeyRefuseLong(k, key->len);
	return (any_null && !k->nulls_equal ? MOT_KEY_DISTINCT : 0) |
		(MotKeyIsOdd(k, key->data, key->len) ? MOT_KEY_ODD : 0);
}

/* ------------------------------------------------------------------ bounds */

/* what is behind one label (or at it) and before another */
static void
set_bounds(MotKeys *keys, int column, const MotLabel *from, bool from_inclusive, const MotLabel *to, bool to_inclusive)
{
	uint8		flip = keys->index->key->columns[column].descending ? 0xFF : 0;
	const MotLabel *low = flip ? to : from;
	const MotLabel *high = flip ? from : to;

	MotKeyBufferSet(&keys->upper, keys->lower.data, keys->lower.len);
	keys->lower_bound.kind = low->nwords == 0 || (flip ? to_inclusive : from_inclusive) ?
		MOT_BOUND_INCLUSIVE : MOT_BOUND_EXCLUSIVE;
	keys->upper_bound.kind = high->nwords == 0 || (flip ? from_inclusive : to_inclusive) ?
		MOT_BOUND_INCLUSIVE : MOT_BOUND_EXCLUSIVE;
	if (low->nwords > 0)
		MotLabelAppend(low, flip, &keys->lower);
	if (high->nwords > 0)
		MotLabelAppend(high, flip, &keys->upper);
	keys->lower_bound.key = keys->lower.data;
	keys->lower_bound.len = keys->lower.len;
	keys->upper_bound.key = keys->upper.data;
	keys->upper_bound.len = keys->upper.len;
}

bool
MotRankPoint(MotKeys *keys, int column, Datum value)
{
	Place	   *place = new_place();
	bool		found;

	(void) MotKeyAppendNullByte(&keys->index->key->columns[column], false, &keys->lower);
	find(keys->index, column, &keys->lower, value, MotSession(), keys->view, place);
	found = place->found;
	if (found)
		MotKeyBufferAppend(&keys->lower, place->bytes.data, place->bytes.len);
	else
	{
		set_bounds(keys, column, &place->lo, false, &place->hi, false);
		keys->gap = true;
	}
	free_place(place);
	return found;
}

bool
MotRankRange(MotKeys *keys, int column)
{
	Place	   *place = new_place();
	MotLabel	from = {0};
	MotLabel	to = {0};
	bool		from_inclusive = false;
	bool		to_inclusive = false;
	bool		possible = true;

	(void) MotKeyAppendNullByte(&keys->index->key->columns[column], false, &keys->lower);
	for (int i = keys->npoints; i < keys->nconditions && possible; i++)
	{
		const MotKeyCondition *condition = &keys->conditions[i];
		const MotOperand *operand = &keys->operands[condition->first];
		StrategyNumber strategy = condition->strategy;

		if (condition->kind != MOT_CONDITION_COMPARE)
			continue;
		possible = !operand->isnull;
		if (!possible)
			break;
		find(keys->index, column, &keys->lower, operand->value, MotSession(), keys->view, place);
		if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		{
			const MotLabel *label = place->found ? &place->at : &place->lo;
			bool		inclusive = place->found && strategy == BTGreaterEqualStrategyNumber;
			int			cmp = label->nwords == 0 ? -1 : from.nwords == 0 ? 1 : MotLabelCompare(label, &from);

			if (cmp > 0 || (cmp == 0 && !inclusive))
			{
				from = *label;
				from_inclusive = inclusive;
			}
		}
		else
		{
			const MotLabel *label = place->found ? &place->at : &place->hi;
			bool		inclusive = place->found && strategy == BTLessEqualStrategyNumber;
			int			cmp = label->nwords == 0 ? 1 : to.nwords == 0 ? -1 : MotLabelCompare(label, &to);

			if (cmp < 0 || (cmp == 0 && !inclusive))
			{
				to = *label;
				to_inclusive = inclusive;
			}
		}
	}
	free_place(place);
	if (possible)
		set_bounds(keys, column, &from, from_inclusive, &to, to_inclusive);
	return possible;
}

/* ------------------------------------------------------------------- builds */

/* What has the same columns before the one that is ranked now is put in order by that. */
typedef struct Order
{
	Ranked	   *ranked;			/* NULL: by the keys so far only */
	int			column;
	MemoryContext cxt;			/* of comparisons */
	uint64		comparisons;
} Order;

static int
compare_items(const void *a, const void *b, void *arg)
{
	const MotRankItem *x = a;
	const MotRankItem *y = b;
	Order	   *order = arg;
	MemoryContext oldcxt;
	int			cmp = MotComparePoints(&x->key, &y->key);

	if (cmp != 0 || order->ranked == NULL)
		return cmp;
	if (x->isnull[order->column] || y->isnull[order->column])
		return (int) y->isnull[order->column] - (int) x->isnull[order->column];
	if (++order->comparisons % 1024 == 0)
	{
		MemoryContextReset(order->cxt);
		CHECK_FOR_INTERRUPTS();
	}
	oldcxt = MemoryContextSwitchTo(order->cxt);
	cmp = compare(order->ranked, x->values[order->column], y->values[order->column]);
	MemoryContextSwitchTo(oldcxt);
	return cmp;
}

/* "buf" becomes the item's key */
static void
keep_key(MotRankItem *item, const MotKeyBuffer *buf, MemoryContext cxt)
{
	if (item->key.data != NULL)
		pfree(item->key.data);
	item->key.data = MemoryContextAlloc(cxt, Max(buf->len, 1));
	memcpy(item->key.data, buf->data, buf->len);
	item->key.len = buf->len;
}

/* Items that are in order, with the same columns before: the column's labels. */
static void
label_group(MotIndex *index, int column, MotRankItem *items, int64 n, Order *order, MotKeyBuffer *buf, MemoryContext cxt)
{
	const MotKeyColumn *c = &index->key->columns[column];
	Ranked	   *ranked = order->ranked;
	uint8		flip = c->descending ? 0xFF : 0;
	int64		different = 0;
	int64		first = 0;
	uint64		place = 0;

	while (first < n && items[first].isnull[column])
		first++;
	for (int64 i = first; i < n; i++)
	{
		items[i].same = i > first && compare_items(&items[i - 1], &items[i], order) == 0;
		different += !items[i].same;
	}
	for (int64 i = 0; i < n; i++)
	{
		MotRankItem *item = &items[i];

		MotKeyBufferReset(buf);
		if (i > first && item->same)
		{
			/* (that has its column already) */
			MotKeyBufferAppend(buf, items[i - 1].key.data, items[i - 1].key.len);
			keep_key(item, buf, cxt);
			continue;
		}
		MotKeyBufferAppend(buf, item->key.data, item->key.len);
		(void) MotKeyAppendNullByte(c, i < first, buf);
		if (i >= first)
		{
			MotLabel	label;

			MotLabelSpread(place++, different, &label);
			MotLabelAppend(&label, flip, buf);
			append_value(ranked, item->values[column], flip, buf);
		}
		keep_key(item, buf, cxt);
	}
}

void
MotRankAll(MotIndex *index, MotRankItem *items, int64 n, MemoryContext cxt)
{
	const MotKey *key = index->key;
	Order		order = {NULL};
	MotKeyBuffer buf;

	order.cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT comparisons", ALLOCSET_DEFAULT_SIZES);
	MotKeyBufferInit(&buf, cxt);
	for (int c = 0; c < key->ncolumns; c++)
	{
		if (!key->columns[c].ranked)
		{
			for (int64 i = 0; i < n; i++)
			{
				MotKeyBufferSet(&buf, items[i].key.data, items[i].key.len);
				MotKeyAppendColumn(&key->columns[c], items[i].values[c], items[i].isnull[c], &buf);
				keep_key(&items[i], &buf, cxt);
			}
			continue;
		}
		order.ranked = &index->ranking->column[c];
		order.column = c;
		qsort_arg(items, n, sizeof(MotRankItem), compare_items, &order);
		for (int64 first = 0, i = 1; i <= n; i++)
		{
			if (i < n && MotComparePoints(&items[first].key, &items[i].key) == 0)
				continue;
			label_group(index, c, &items[first], i - first, &order, &buf, cxt);
			first = i;
		}
	}
	order.ranked = NULL;
	qsort_arg(items, n, sizeof(MotRankItem), compare_items, &order);
	MemoryContextDelete(order.cxt);
}
