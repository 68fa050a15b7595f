/*-------------------------------------------------------------------------
 *
 * build.c
 *	  Indexes for rows that are there already: the walk over the rows, and
 *	  entries that come in order.
 *
 * Entries in no order are looked for a place one after the other, which in a
 * large index waits for memory each time.  So the host sorts them, in private
 * memory and files, neither of which is known here: it is given each entry as
 * the tree will have it, bytes and a value, and gives them back in the bytes'
 * order.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* ----------------------------------------------------------------- the walk */

void
mot_build_begin(mot_session *s, mot_build *b, mot_index *index)
{
	mot_build_rows(s, b, index->table, NULL);
	b->index = index;
}

void
mot_build_rows(mot_session *s, mot_build *b, mot_table *table, const mot_view *view)
{
	mot_view	aside = {mot_engine_clock(s->engine), MOT_COMMAND_MAX, NULL, false};

	if (view != NULL)
		aside = *view;
	/* building an index reads nothing on the user's behalf */
	aside.aside = true;
	b->session = s;
	b->index = NULL;
	mot_scan_begin(s, &b->scan, table, &aside);
}

bool
mot_build_next(mot_build *b, mot_row **row, const mot_version **version)
{
	return mot_scan_next(b->session, &b->scan, row, version);
}

void
mot_build_end(mot_build *b)
{
	mot_index_set_valid_from(b->index, mot_engine_clock(b->session->engine));
}

/* ------------------------------------------------------------ sorted entries */

_Static_assert(MOT_ENTRY_MAX >= MOT_MAX_KEY + KEY_TAIL, "an entry is a key and its tail");

mot_status
mot_entry_form(mot_session *s, const mot_index *index, mot_row *row, const void *key, size_t len,
			   unsigned flags, void *buffer, mot_sorted_entry *entry)
{
	unsigned	bits;

	if (len > MOT_MAX_KEY)
		return MOT_TOO_LARGE;
	entry->len = mot_index_tree_key(s, index, row, key, len, flags, buffer, &entry->bytes, &bits);
	entry->value = (uint64_t) (uintptr_t) row | bits;
	return MOT_OK;
}

mot_row *
mot_entry_row(uint64_t value)
{
	return (mot_row *) (uintptr_t) (value & ~(uint64_t) VALUE_BITS);
}

struct mot_fill
{
	mot_session *session;
	mot_index  *index;
	mot_tree_build *tree;
};

#define FILL_SIZE MOT_ALIGN_UP(sizeof(mot_fill), 16)

size_t
mot_fill_size(void)
{
	return FILL_SIZE + mot_tree_build_size();
}

static bool
make_room(void *arg)
{
	(void) mot_reclaim_all(arg);
	return true;
}

static mot_status
refused(mot_fill *fill)
{
	return mot_session_refused(fill->session, fill->index->pool, fill->session->tree_exclusive.why);
}

mot_status
mot_fill_begin(mot_session *s, mot_fill *fill, mot_index *index, bool full)
{
	fill->session = s;
	fill->index = index;
	fill->tree = (mot_tree_build *) ((char *) fill + FILL_SIZE);
	return mot_tree_build_begin(fill->tree, index->tree, &s->tree_exclusive, full, make_room, s) ?
		MOT_OK : refused(fill);
}

mot_status
mot_fill_add(mot_fill *fill, const mot_sorted_entry *entry, mot_row **other)
{
	mot_index  *index = fill->index;
	uint64_t	before;

	switch (mot_tree_build_add(fill->tree, entry->bytes, entry->len, entry->value, &before))
	{
		case MOT_TREE_OK:
			break;
		case MOT_TREE_MISMATCH:
			*other = mot_entry_row(before);
			return MOT_DUPLICATE;
		case MOT_TREE_NO_MEMORY:
			return refused(fill);
	}
	/* only whole keys are looked up alone */
	if (!(entry->value & VALUE_TAIL))
		mot_hint_keep(&index->hints, mot_hint(&index->hints, entry->bytes, entry->len),
					  mot_entry_row(entry->value));
	return MOT_OK;
}

mot_status
mot_fill_end(mot_fill *fill)
{
	return mot_tree_build_end(fill->tree) == MOT_TREE_OK ? MOT_OK : refused(fill);
}
