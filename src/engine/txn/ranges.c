/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  SERIALIZABLE: what a transaction has looked for in indexes.
 *
 * A border node's version says that nothing has come to the node, for the
 * price of one load.  That it has changed says little: somebody has put a key
 * beside what was asked for, or has not committed, or never will.  So what was
 * asked for is written down, too: the keys that were not found, and of each
 * range its bounds and the last key that was reached.  If a node has changed,
 * the index is asked once more (validate.c says what counts then).  A key
 * that was found needs neither: as long as its row has the version that was
 * seen, the key leads to it.
 *
 * How far a cursor has come is written down with each entry that it returns,
 * because some are never closed: those that an error ends, whose transaction goes
 * on in a savepoint's outside.
 *
 * All entries are looked at again, also those of nodes that have not changed:
 * that a node has the version at which it was read says nothing about a range that was
 * read before, when its keys were in another node.
 *
 * Where an index's keys are in order until the first odd one comes (mot_index_has_odd), a range that was
 * looked at before says nothing of odd keys: those can belong to it wherever they are.  So if that was after
 * our snapshot all of the index counts.
 *
 * An index that a savepoint has made, and a copy of a table, go with it, and so do the locks that kept
 * others from changing the table.  They would tell nobody of what has come since: all of the table counts then,
 * if anything has been read there.
 *
 * What is written down is bounded.  Beyond the bound it is only which
 * indexes were asked, and each of them is asked for all that it has: what
 * others have inserted anywhere in it then counts.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

/* for ranges and the bytes of their keys, in each of the two arrays */
#define RANGES_MAX	(1u << 15)
#define BYTES_MAX	(2u << 20)

/* Room for "len" bytes behind those in use.  False: none. */
static bool
bytes_room(mot_session *s, size_t len)
{
	size_t		size = s->range_bytes_size ? s->range_bytes_size : 1024;
	uint8_t    *bytes;

	if (s->range_bytes_size - s->range_bytes_used >= len)
		return true;
	while (size - s->range_bytes_used < len)
		size *= 2;
	bytes = realloc(s->range_bytes, size);
	if (bytes == NULL)
		return false;
	s->range_bytes = bytes;
	s->range_bytes_size = size;
	return true;
}

static range_key
keep_key(mot_session *s, const void *key, size_t len)
{
	range_key	kept = {(uint32_t) s->range_bytes_used, (uint32_t) len};

	if (len > 0)
		memcpy(s->range_bytes + s->range_bytes_used, key, len);
	s->range_bytes_used += len;
	return kept;
}

/* All of an index counts from now on. */
static void
whole_index(mot_session *s, mot_index *index)
{
	for (uint64_t i = 0; i < s->whole_count; i++)
		if (s->whole[i] == index)
			return;
	if (mot_array_room(s, (void **) &s->whole, &s->whole_size, s->whole_count, sizeof(mot_index *), 16))
		s->whole[s->whole_count++] = index;
}

/* A new item, and room for "len" bytes of keys; NULL: not needed, or not to be had. */
static range_item *
new_item(mot_session *s, mot_index *index, size_t len)
{
	if (s->range_count >= RANGES_MAX || s->range_bytes_used + len > BYTES_MAX)
	{
		whole_index(s, index);
		return NULL;
	}
	if (!mot_array_room(s, (void **) &s->ranges, &s->range_size, s->range_count, sizeof(range_item), 16))
		return NULL;
	if (!bytes_room(s, len))
	{
		s->out_of_memory = true;
		return NULL;
	}
	s->ranges[s->range_count].index = index;
	return &s->ranges[s->range_count++];
}

/* A whole key was looked up and is not there. */
void
mot_range_absent(mot_session *s, mot_index *index, const void *key, size_t len)
{
	range_item *item = new_item(s, index, len);

	if (item == NULL)
		return;
	item->kind = RANGE_KEY;
	item->low = keep_key(s, key, len);
}

/* A cursor was opened: the number by which it says how far it comes, or 0. */
uint64_t
mot_range_open(mot_session *s, mot_index *index, const mot_bound *lower, const mot_bound *upper,
			   bool backward)
{
	size_t		low_len = lower != NULL && lower->kind != MOT_BOUND_NONE ? lower->len : 0;
	size_t		high_len = upper != NULL && upper->kind != MOT_BOUND_NONE ? upper->len : 0;
	range_item *item = new_item(s, index, low_len + high_len);

	s->ranges_of |= table_bit(index->table);
	if (item == NULL)
		return 0;
	item->kind = backward ? RANGE_BACKWARD : RANGE_FORWARD;
	item->come = RANGE_NOWHERE;
	item->low_kind = lower != NULL ? lower->kind : MOT_BOUND_NONE;
	item->high_kind = upper != NULL ? upper->kind : MOT_BOUND_NONE;
	item->low = keep_key(s, low_len ? lower->key : NULL, low_len);
	item->high = keep_key(s, high_len ? upper->key : NULL, high_len);
	item->room = 0;
	return s->range_base + s->range_count;
}

static inline range_item *
range_numbered(mot_session *s, uint64_t range)
{
	/* (a cursor may outlive the transaction that opened it) */
	return range <= s->range_base ? NULL : &s->ranges[range - s->range_base - 1];
}

/* The cursor returns the entry of this key, as the tree has it. */
void
mot_range_reached(mot_session *s, uint64_t range, const void *key, size_t len)
{
	range_item *item = range_numbered(s, range);

	if (item == NULL)
		return;
	if (mot_unlikely(len > item->room))
	{
		size_t		room = (len > 2 * item->room ? len : 2 * item->room) + 8;

		/* without room for its end, the range is taken for one without */
		if (s->range_bytes_used + room > BYTES_MAX || !bytes_room(s, room))
		{
			item->come = RANGE_ENDED;
			item->room = UINT32_MAX;
			return;
		}
		item->reached.at = (uint32_t) s->range_bytes_used;
		item->room = (uint32_t) room;
		s->range_bytes_used += room;
	}
	if (item->come == RANGE_ENDED)
		return;
	memcpy(s->range_bytes + item->reached.at, key, len);
	item->reached.len = (uint32_t) len;
	item->come = RANGE_SOMEWHERE;
}

/* The cursor has said that there is nothing more. */
void
mot_range_ended(mot_session *s, uint64_t range)
{
	range_item *item = range_numbered(s, range);

	if (item != NULL)
		item->come = RANGE_ENDED;
}

/* -------------------------------------------------------------- taken back */

static inline bool
is_of(const mot_index *asked, const mot_table *copy, const mot_index *index)
{
	return asked == index || (copy != NULL && asked->table == copy);
}

/* (A row that has been found by a key is all that says so.) */
static bool
has_read(mot_session *s, const mot_table *copy, const mot_index *index)
{
	for (uint64_t i = 0; i < s->range_count; i++)
		if (is_of(s->ranges[i].index, copy, index))
			return true;
	for (uint64_t i = 0; i < s->whole_count; i++)
		if (is_of(s->whole[i], copy, index))
			return true;
	if (copy == NULL)
		return false;
	for (uint64_t i = 0; i < s->pool_count; i++)
		if (s->pools[i].table == copy)
			return true;
	for (uint64_t i = 0; i < s->read_count; i++)
		if (mot_row_find(copy->rows, mot_region_offset(mot_region_base(s->engine->region), s->reads[i].row)) != NULL)
			return true;
	return false;
}

/*
 * An index shows what the transaction's snapshot does; a copy has the rows as they were when it was made,
 * and as they still are.
 */
void
mot_txn_read_instead(mot_session *s, mot_table *table, const mot_table *copy, const mot_index *index)
{
	mot_view	view = {s->snapshot, MOT_COMMAND_MAX, s->beyond, false};
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;

	if (!mot_txn_active(s) || !s->validate || !has_read(s, copy, index))
		return;
	if (copy != NULL)
		view = (mot_view)
	{
		mot_engine_clock(s->engine), MOT_COMMAND_MAX, NULL, false
	};
	mot_scan_begin(s, &scan, table, &view);
	while (mot_scan_next(s, &scan, &row, &version))
		;
}

/* ---------------------------------------------------------------- again */

static bool
value_stands(mot_session *s, uint64_t value)
{
	mot_bundle *b;

	if (!(value & VALUE_BUNDLE))
		return mot_row_stands(s, value_row(value));
	b = value_bundle(value);
	for (uint32_t i = 0, n = bundle_used(b); i < n; i++)
	{
		mot_row    *row = bundle_row(b, i);

		if (row != NULL && !mot_row_stands(s, row))
			return false;
	}
	return true;
}

/* Did all bounds include what keys they were meant to?  See the head of this file. */
static inline bool
is_ordered(const mot_session *s, const mot_index *index)
{
	/*
	 * relaxed: of keys that count it was said before their commit's number
	 * was drawn
	 */
	mot_ts		since = atomic_load_explicit(&((mot_index *) index)->odd_since, memory_order_relaxed);

	return mot_likely(since == 0) || since < s->snapshot;
}

bool
mot_ranges_ordered(const mot_session *s)
{
	for (uint64_t i = 0; i < s->range_count; i++)
		if (!is_ordered(s, s->ranges[i].index))
			return false;
	for (uint64_t i = 0; i < s->whole_count; i++)
		if (!is_ordered(s, s->whole[i]))
			return false;
	return true;
}

/* Bounds NULL: none. */
static mot_status
range_stands(mot_session *s, const mot_index *index, const mot_bound *low, const mot_bound *high)
{
	mot_tree_cursor c;
	mot_status	status = MOT_OK;
	uint64_t	value;

	if (!mot_tree_cursor_open(&c, index->tree, low, high, false, NULL))
		return MOT_NO_PRIVATE_MEMORY;
	while (status == MOT_OK && (value = mot_tree_cursor_next(&c, NULL, NULL)) != 0)
		if (!value_stands(s, value))
			status = MOT_CONFLICT_PHANTOM;
	mot_tree_cursor_close(&c);
	return status;
}

static mot_status
item_stands(mot_session *s, const range_item *item)
{
	const uint8_t *bytes = s->range_bytes;
	mot_bound	low = {item->low_kind, bytes + item->low.at, item->low.len};
	mot_bound	high = {item->high_kind, bytes + item->high.at, item->high.len};
	uint64_t	value;

	if (item->kind == RANGE_KEY)
	{
		value = mot_tree_get(item->index->tree, bytes + item->low.at, item->low.len, NULL);
		return value == 0 || value_stands(s, value) ? MOT_OK : MOT_CONFLICT_PHANTOM;
	}
	if (item->come == RANGE_NOWHERE)
		return MOT_OK;
	if (mot_unlikely(!is_ordered(s, item->index)))
		return range_stands(s, item->index, NULL, NULL);
	if (item->come == RANGE_SOMEWHERE)
		*(item->kind == RANGE_FORWARD ? &high : &low) = (mot_bound)
	{
		MOT_BOUND_INCLUSIVE, bytes + item->reached.at, item->reached.len
	};
	return range_stands(s, item->index, &low, &high);
}

/* Ask for all of it once more. */
mot_status
mot_ranges_stand(mot_session *s)
{
	mot_status	status = MOT_OK;

	for (uint64_t i = 0; i < s->range_count && status == MOT_OK; i++)
		status = item_stands(s, &s->ranges[i]);
	for (uint64_t i = 0; i < s->whole_count && status == MOT_OK; i++)
		status = range_stands(s, s->whole[i], NULL, NULL);
	return status;
}

void
mot_ranges_clear(mot_session *s)
{
	s->range_base += s->range_count;
	s->range_count = s->whole_count = s->range_bytes_used = 0;
	if (s->range_size > 1024 || s->range_bytes_size > 65536)
		mot_ranges_free(s);
}

void
mot_ranges_free(mot_session *s)
{
	free(s->ranges);
	free(s->range_bytes);
	free(s->whole);
	s->ranges = NULL;
	s->range_bytes = NULL;
	s->whole = NULL;
	s->range_size = s->range_bytes_size = s->whole_size = 0;
	s->range_count = s->range_bytes_used = s->whole_count = 0;
}
