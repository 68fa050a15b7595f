/*-------------------------------------------------------------------------
 *
 * order.c
 *	  Keys whose bytes are to have an order that somebody else defines.
 *
 * The tree orders keys by their bytes.  Where these are sort keys of strings, made by a
 * library, the order that counts is what the same library says when it compares two strings, and it
 * has been wrong before that both are one.  So the host can say of an index (handle->in_order) that
 * two keys may be asked about, and each key that comes into the tree is compared with those on
 * both sides of it.  As soon as two of them are not in order the index is "disordered", for good:
 * it leads to the rows of a key as before, but what lies between two keys, or comes after
 * another, the host has to find out without it.
 *
 * A reader has to know that before it sees the row.  So the flag is set before the statement goes
 * on that adds the entry, and readers look at it after they have taken their snapshot.
 *
 * What follows of comparing neighbours: let an entry be placed when its own comparison is
 * over.  Of any two placed entries the flag is set, or they are in order.  Of the
 * two, the one that came into the tree later has found the other there.  If they were neighbours it
 * has compared them.  If something was between, it was compared with that: which
 * is placed by now, and the same is true of it and the other, which have fewer entries between
 * them; and order is transitive.  Entries that are gone again count as long as they were there:
 * nothing leaves the tree between its being added and being compared.  But an entry that is in the
 * tree and not placed yet must not be relied upon, since it may come to be the one that is out of
 * order, with what is beyond it on its wrong side.  So whoever meets such a neighbour compares with
 * it and goes on to the next one.  These are few: a session is adding one entry at a time, and says
 * so in its slot while it does.  All rows that a snapshot sees are placed.
 *
 * A bound that a reader brings along is compared in the same way, and is then in order with all
 * rows that its snapshot sees.  (One that is not is the reader's matter, and says nothing of the
 * index.)
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

bool
mot_index_disordered(const mot_index *index)
{
	/* acquire: whoever does not see it set has seen no row that came after */
	return atomic_load_explicit(&((mot_index *) index)->disordered, memory_order_acquire);
}

bool
mot_index_has_odd(const mot_index *index)
{
	/* acquire: as mot_index_disordered */
	return atomic_load_explicit(&((mot_index *) index)->odd, memory_order_acquire);
}

void
mot_index_note_odd(mot_session *s, mot_index *index)
{
	if (atomic_load_explicit(&index->odd_since, memory_order_relaxed))
		return;
	/* seq_cst: who does not find it set has a snapshot of that number at most */
	atomic_store(&index->odd, true);
	atomic_store(&index->odd_since, atomic_load(&s->engine->clock));
}

void
mot_index_set_disordered(mot_index *index)
{
	atomic_store(&index->disordered, true);
}

/* is an entry that leads to the row perhaps in the tree, and not compared yet? */
static bool
is_being_placed(mot_session *s, uint64_t value)
{
	mot_bundle *b = value & VALUE_BUNDLE ? value_bundle(value) : NULL;
	uint32_t	n = b ? bundle_used(b) : 1;

	for (uint32_t i = 0; i < n; i++)
	{
		mot_row    *r = b ? bundle_row(b, i) : value_row(value);
		unsigned	owner = r == NULL ? 0 : head_owner(row_head(r));

		/* acquire: what has been found to be out of order was said before */
		if (owner != 0 && owner != s->owner &&
			atomic_load_explicit(&s->engine->slot[owner - 1].places, memory_order_acquire))
			return true;
	}
	return false;
}

/* Is the key in order with those on one side of it? */
static bool
side_in_order(mot_session *s, const mot_index_handle *handle, const void *tkey, size_t tlen,
			  size_t len, bool below)
{
	mot_bound	bound = {MOT_BOUND_EXCLUSIVE, tkey, tlen};
	mot_tree_cursor cursor;
	const void *found;
	size_t		found_len;
	uint64_t	value;
	bool		in_order = true;
	bool		more = true;

	if (!mot_tree_cursor_open(&cursor, handle->index->tree, below ? NULL : &bound, below ? &bound : NULL,
							  below, NULL))
		return false;
	while (in_order && more && (value = mot_tree_cursor_next(&cursor, &found, &found_len)) != 0)
	{
		if (value & VALUE_TAIL)
			found_len -= KEY_TAIL;
		in_order = below ? handle->in_order(handle->arg, found, found_len, tkey, len) :
			handle->in_order(handle->arg, tkey, len, found, found_len);
		more = is_being_placed(s, value);
	}
	mot_tree_cursor_close(&cursor);
	return in_order;
}

/* "len" of the "tlen" bytes are the key, and what follows tells rows apart */
static bool
neighbours_in_order(mot_session *s, const mot_index_handle *handle, const void *tkey, size_t tlen, size_t len)
{
	return side_in_order(s, handle, tkey, tlen, len, true) && side_in_order(s, handle, tkey, tlen, len, false);
}

bool
mot_index_bound_in_order(mot_session *s, const mot_index_handle *handle, const void *key, size_t len)
{
	return neighbours_in_order(s, handle, key, len, len) && !mot_index_disordered(handle->index);
}

void
mot_order_begin(mot_session *s)
{
	/* seq_cst: seen by whoever finds the entry, see is_being_placed */
	atomic_store(&s->slot->places, true);
}

void
mot_order_end(mot_session *s, const mot_index_handle *handle, bool added, const void *tkey, size_t tlen, unsigned bits)
{
	if (added && !mot_index_disordered(handle->index) &&
		!neighbours_in_order(s, handle, tkey, tlen, bits & VALUE_TAIL ? tlen - KEY_TAIL : tlen))
		mot_index_set_disordered(handle->index);
	/* release: after what has been found */
	atomic_store_explicit(&s->slot->places, false, memory_order_release);
}
