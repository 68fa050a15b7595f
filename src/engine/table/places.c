/*-------------------------------------------------------------------------
 *
 * places.c
 *	  On which node ranges of a table live.  See mot_places.h.
 *
 * A table's places are one object that never changes: a change puts another one
 * in its stead, and the old one goes as a definition does, when every snapshot is
 * newer.  So whoever has a snapshot, as anybody has who inserts or moves,
 * may look at what he finds; and nobody is stopped by a change.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

const mot_places *
mot_table_places(const mot_table *t)
{
	/* acquire: its members, which were written before the release in set */
	return atomic_load_explicit(&((mot_table *) t)->places, memory_order_acquire);
}

unsigned
mot_engine_nodes(const mot_engine *e)
{
	return mot_region_nodes(e->region);
}

static bool
in_order(const mot_engine *e, const mot_table_place *places, unsigned n)
{
	if (n > MOT_MAX_PLACES || places[0].low != 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (places[i].node >= mot_engine_nodes(e) || (i > 0 && places[i].low <= places[i - 1].low))
			return false;
	return true;
}

mot_status
mot_table_places_set(mot_session *s, mot_table *t, unsigned skip, const mot_table_place *places, unsigned n)
{
	mot_engine *e = s->engine;
	mot_index  *index = mot_table_index_at(t, 0);
	mot_places *new = NULL;
	mot_places *old;

	if (n > 0)
	{
		mot_status	status = MOT_NO_MEMORY;

		if (index == NULL)
			return MOT_NOT_FOUND;
		if (!in_order(e, places, n))
			return MOT_TOO_LARGE;
		new = mot_session_alloc(s, e->pool, sizeof(mot_places) + n * sizeof(mot_table_place),
								MOT_FOR_NEW_ROW, &status);
		if (new == NULL)
			return status;
		new->index = mot_index_host_id(index);
		new->skip = skip;
		new->n = n;
		memcpy(new->place, places, n * sizeof(mot_table_place));
	}

	/*
	 * release: who finds them finds what they say; acquire: for whoever frees
	 * the old ones
	 */
	old = atomic_exchange_explicit(&t->places, new, memory_order_acq_rel);
	if (old != NULL)
		mot_owed_retire_as(s, OWED_SEEN, old);
	return MOT_OK;
}

unsigned
mot_table_places_get(const mot_table *t, unsigned *skip, mot_table_place *places)
{
	const mot_places *p = mot_table_places(t);

	*skip = p != NULL ? p->skip : 0;
	if (p == NULL)
		return 0;
	if (places != NULL)
		memcpy(places, p->place, p->n * sizeof(mot_table_place));
	return p->n;
}

uint32_t
mot_table_placed_by(const mot_table *t)
{
	const mot_places *p = mot_table_places(t);

	return mot_likely(p == NULL) ? 0 : p->index;
}

unsigned
mot_places_node(const mot_places *p, const void *key, size_t len)
{
	uint64_t	position = mot_key_position(key, len, p->skip);
	unsigned	low = 0;
	unsigned	high = p->n;

	/* the last one that does not begin above it; the first begins at 0 */
	while (high - low > 1)
	{
		unsigned	mid = (low + high) / 2;

		if (p->place[mid].low <= position)
			low = mid;
		else
			high = mid;
	}
	return p->place[low].node;
}

void
mot_row_place(mot_session *s, const mot_table *t, const void *key, size_t len)
{
	const mot_places *p = mot_table_places(t);

	if (p == NULL)
		return;
	s->placed = t;
	s->place = mot_places_node(p, key, len);
}

/*
 * the node for a new row of a session that has said something of a place, or MOT_ANY_NODE; asked
 * once
 */
unsigned
mot_session_placed(mot_session *s, const mot_table *t)
{
	bool		here = s->placed == t;

	s->placed = NULL;
	return here ? s->place : MOT_ANY_NODE;
}

unsigned
mot_row_node(mot_session *s, const mot_row *row, unsigned *version_node)
{
	const mot_version *v = head_version(row_head(row));

	*version_node = mot_object_node(s->engine->region, v != NULL ? (const void *) v : row);
	return mot_object_node(s->engine->region, row);
}
