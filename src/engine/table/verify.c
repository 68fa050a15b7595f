/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  What a host needs to verify a table: the structure of an index, its raw
 *	  entries, and whether a row has a certain entry.
 *
 * Nobody may be writing to the table, but reclamation goes on, and takes
 * entries of dead rows and old keys away while we look.  What is found wrong
 * is therefore only believed when it is found again: see monitor/verify.c.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

bool
mot_index_check(const mot_index *index, char *err, size_t errlen)
{
	return mot_tree_check(index->tree, err, errlen);
}

mot_status
mot_entries_open(mot_session *s, mot_cursor *c, const mot_index *index,
				 const mot_bound *lower, const mot_bound *upper, bool backward)
{
	memset(c, 0, sizeof(*c));
	c->session = s;
	c->handle.index = (mot_index *) index;
	if (!mot_tree_cursor_open(&c->tree, index->tree, lower, upper, backward, NULL))
		return MOT_NO_PRIVATE_MEMORY;
	mot_cursor_opened(s, c);
	return MOT_OK;
}

unsigned
mot_entries_count(mot_session *s, const mot_index *index,
				  const mot_bound *lower, const mot_bound *upper, unsigned most)
{
	bool		held = mot_snapshot_held(s) != MOT_TS_NONE;
	mot_tree_cursor c;
	unsigned	n = 0;

	if (!mot_tree_cursor_open(&c, index->tree, lower, upper, false, NULL))
		return most;
	/* (nodes that are retired meanwhile are to stay) */
	if (!held)
		(void) mot_snapshot_take(s);
	while (n < most && mot_tree_cursor_next(&c, NULL, NULL) != 0)
		n++;
	mot_tree_cursor_close(&c);
	if (!held)
		mot_snapshot_hold(s, MOT_TS_NONE);
	return n;
}

/* The row of an entry's value, if it is one of the table's. */
static mot_row *
own_row(const mot_index *index, uint64_t address)
{
	uint64_t	base = (uint64_t) (uintptr_t) mot_region_base(index->table->engine->region);

	if (address < base)
		return NULL;
	return mot_row_find(index->table->rows, address - base);
}

/* what the tail of a tree key says the row's number is */
static uint64_t
tail_number(const void *tail)
{
	const uint8_t *bytes = tail;
	uint64_t	number = 0;

	for (int i = 0; i < KEY_TAIL; i++)
		number = number << 8 | bytes[i];
	return number;
}

bool
mot_entries_next(mot_cursor *c, mot_entry *entry)
{
	const mot_index *index = c->handle.index;

	entry->fault = NULL;
	for (;;)
	{
		uint64_t	value;

		if (c->bundle != NULL)
		{
			while (c->place < atomic_load_explicit(&c->bundle->used, memory_order_acquire))
			{
				uint64_t	address = atomic_load_explicit(&c->bundle->item[c->place++].row,
														   memory_order_acquire);

				if (address == 0)
					continue;
				entry->key = c->key;
				entry->len = c->len;
				entry->row = own_row(index, address);
				if (entry->row == NULL)
					entry->fault = "leads to something that is no row of the table";
				return true;
			}
			c->bundle = NULL;
		}

		value = mot_tree_cursor_next(&c->tree, &c->key, &c->len);
		if (value == 0)
			return false;
		entry->key = c->key;
		entry->len = c->len;
		entry->row = NULL;
		if (value & VALUE_TAIL)
		{
			if (c->len < KEY_TAIL)
			{
				entry->fault = "has a key too short for a row number";
				return true;
			}
			c->len -= KEY_TAIL;
			entry->len = c->len;
		}
		else if (!(index->flags & MOT_INDEX_UNIQUE))
		{
			entry->fault = "has no row number in a non-unique index";
			return true;
		}
		if (value & VALUE_BUNDLE)
		{
			c->bundle = (mot_bundle *) (uintptr_t) (value & ~(uint64_t) VALUE_BITS);
			c->place = 0;
			if (atomic_load_explicit(&c->bundle->used, memory_order_acquire) > c->bundle->places)
			{
				c->bundle = NULL;
				entry->fault = "leads to a damaged list of rows";
				return true;
			}
			continue;
		}
		entry->row = own_row(index, value & ~(uint64_t) VALUE_BITS);
		if (entry->row == NULL)
			entry->fault = "leads to something that is no row of the table";
		else if ((value & VALUE_TAIL) &&
				 tail_number((const char *) c->key + c->len) != mot_row_number(c->session, entry->row))
			entry->fault = "has another row's number in its key";
		return true;
	}
}

bool
mot_index_has_entry(mot_session *s, const mot_index *index, mot_row *row,
					const void *key, size_t len, unsigned flags)
{
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];

	if (len > MOT_MAX_KEY)
		return false;
	if (!(index->flags & MOT_INDEX_UNIQUE) || (flags & MOT_KEY_DISTINCT))
	{
		uint64_t	number = mot_row_number(s, row);

		memcpy(buf, key, len);
		for (int i = KEY_TAIL - 1; i >= 0; i--, number >>= 8)
			buf[len + i] = (uint8_t) number;
		key = buf;
		len += KEY_TAIL;
	}
	return mot_value_has(mot_tree_get(index->tree, key, len, NULL), row);
}
