/*-------------------------------------------------------------------------
 *
 * move.c
 *	  Rows and versions that are not on the node where their table's places say
 *	  they belong come there.
 *
 * A version is moved as reclamation moves one into its row (settle_inline): it is
 * copied, bytes, link and number, and one compare-and-swap puts the copy in its
 * place as the newest version of its row, if nobody holds the row.  (That takes
 * the row's lock, and lets it go, at once.)  Whoever reads the row finds the one
 * or the other, and they do not differ in anything that he could ask for:
 *
 *	snapshots		the number is the same, and what lies below is
 *	SERIALIZABLE	remembers numbers, not addresses (validate.c, precede.c)
 *	scans, cursors	what they have handed out stays as long as a snapshot that
 *	and the host	is old enough: the old one is owed as what may be seen, as of
 *					now.  Who compares versions does so by mot_version_same
 *	writers			have the row's lock and are left alone; who takes it just now
 *					has read the head again
 *	undo			leads to what was below when the lock was taken
 *	an older owner	who owes the version owes it from its row's chain, so what
 *					is moved is owed by who moved it, and once
 *
 * That the head has been the same all the time is what the swap takes for granted
 * from its being the same at the end: a version's memory is not used again while we
 * have the snapshot that we had before we read it.
 *
 * Only newest versions are moved: the others go soon.  A tombstone leads
 * nowhere, and what is below it belongs to it.
 *
 * Rows have one address for life.  Their pages are moved (rehome.c), when most
 * rows of a page belong to one other node; the rest of its rows live
 * where they are, and their versions of some age on their own node.
 *
 * What has been copied stays until nobody can see it, which beside an old snapshot
 * may be long, and rows may be wide.  So that nobody lacks memory for it, a mover
 * owes no more bytes than a small part of what is left, and waits when it does; what it
 * owes that is due does not count, as whoever lacks memory frees that first.  A version
 * that is too much by itself is left where it is, as all are when memory is full.
 *
 * Nothing of this is logged, and nothing of it outlives the engine.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"
#include "memory/topology.h"

/*
 * what a mover may owe before it waits for reclamation: so many versions, and this part of the
 * memory that is left
 */
#define MOST_OWED 16384
#define PART_OWED 64

/* a version of so many bytes counts as one row more */
#define BYTES_OF_ROW 256

typedef struct mover
{
	mot_session *session;
	mot_table  *table;
	const mot_places *places;
	const mot_index *index;
	mot_place_move *move;
	int64_t		budget;
	uint64_t	room;			/* bytes it may owe */
	bool		waits;			/* as it owes that */
	uint32_t	wanted[MOT_MAX_NODES];	/* the page's rows, by where they
										 * belong */
} mover;

/* the version gets a copy on that node in its place; false: not now */
static bool
move_version(mover *m, mot_row *row, uint64_t head, unsigned node)
{
	mot_session *s = m->session;
	mot_region *region = s->engine->region;
	mot_version *v = head_version(head);
	size_t		size = mot_usable_size(region, v);
	mot_version *copy;

	if (size > m->room)
		return false;
	m->waits = s->moved_bytes > m->room - size;
	if (m->waits || !mot_owed_promise(s, 1))
		return false;
	m->budget -= (int64_t) (size / BYTES_OF_ROW);
	/* (it takes none of what is kept for changes) */
	copy = mot_alloc_on(s->cache, m->table->versions, node, size, MOT_FOR_NEW_ROW, NULL);
	if (copy != NULL && mot_object_node(region, copy) == node)
	{
		memcpy(version_bytes(copy), version_bytes(v), size - sizeof(mot_version));
		/* relaxed, both: the release below publishes them */
		atomic_store_explicit(&copy->link, version_link(v), memory_order_relaxed);
		atomic_store_explicit(&copy->ts, version_ts(v), memory_order_relaxed);
		MOT_STOP_POINT("version-copied");
		if (atomic_compare_exchange_strong_explicit(&row->head, &head, make_head(0, copy),
													memory_order_release, memory_order_relaxed))
		{
			MOT_STOP_POINT("version-moved");
			s->moved_bytes += size;
			s->moved_stamp = mot_owed_stamp(s);
			mot_spin_lock(&s->slot->owed.lock);
			mot_owed_add_locked(s, OWED_OBJECT, v, s->moved_stamp);
			mot_spin_unlock(&s->slot->owed.lock);
			return true;
		}
	}
	if (copy != NULL)
		mot_free(s->cache, copy);
	s->credit++;
	return false;
}

/*
 * where the row belongs, if that can be told: it has a version that is nobody's to change just now
 */
static bool
wanted_node(mover *m, uint64_t head, unsigned *node)
{
	const mot_version *v = head_version(head);
	uint8_t		key[MOT_MAX_KEY];
	size_t		len;
	unsigned	flags;

	if (head_owner(head) != 0 || v == NULL || version_is_tombstone(v) ||
		!mot_index_key_hook(m->index, v, key, &len, &flags))
		return false;
	*node = mot_places_node(m->places, key, len);
	return true;
}

static void
look_at_row(mover *m, mot_row *row)
{
	mot_region *region = m->session->engine->region;
	uint64_t	head = row_head(row);
	const mot_version *v = head_version(head);
	unsigned	node;

	m->move->rows++;
	m->budget--;
	if (!wanted_node(m, head, &node))
	{
		m->move->skipped++;
		return;
	}
	m->wanted[node]++;
	if (v == &row->inlined || mot_object_node(region, v) == node)
		return;
	if (move_version(m, row, head, node))
		m->move->versions++;
	else
		m->move->skipped++;
}

/* "any": a row of the page */
static void
look_at_page(mover *m, mot_row *any, uint32_t rows)
{
	mot_region *region = m->session->engine->region;
	unsigned	nodes = mot_region_nodes(region);
	unsigned	node = mot_object_node(region, any);
	unsigned	most = 0;

	for (unsigned n = 1; n < nodes; n++)
		if (m->wanted[n] > m->wanted[most])
			most = n;
	if (most != node && m->wanted[most] > rows / 2)
		switch (mot_page_move(region, any, most))
		{
			case MOT_PAGE_MOVED:
				m->move->pages++;
				node = most;
				break;
			case MOT_PAGE_REFUSED:
				m->move->refused++;
				break;
			case MOT_PAGE_STAYS:
				break;
		}
	for (unsigned n = 0; n < nodes; n++)
		if (n != node)
			m->move->away += m->wanted[n];
}

/* false: it waits, and this page is looked at again */
static bool
move_page(mover *m, uint64_t i)
{
	const mot_pool *pool = m->table->rows;
	mot_page_view page;
	mot_row    *row;
	mot_row    *any = NULL;
	uint32_t	rows = 0;

	if (!mot_pool_page(pool, i, &page))
		return true;
	memset(m->wanted, 0, sizeof(m->wanted));
	while (!m->waits && (row = mot_page_next(pool, &page)) != NULL)
	{
		look_at_row(m, row);
		any = row;
		rows++;
	}
	if (any != NULL && !m->waits)
		look_at_page(m, any, rows);
	return !m->waits;
}

/* bytes that it may owe; what is due is owed no more */
static uint64_t
room_to_owe(mot_session *s, const mot_table *t)
{
	if (s->moved_bytes > 0 && mot_engine_horizon(s->engine) >= s->moved_stamp)
		s->moved_bytes = 0;
	return mot_pool_left(t->versions) / PART_OWED;
}

mot_move_end
mot_table_places_move(mot_session *s, mot_table *t, unsigned budget, mot_place_move *move)
{
	mover		m = {.session = s,.table = t,.places = mot_table_places(t),.move = move,.budget = budget};
	mot_table  *replaces;

	mot_assert(mot_snapshot_held(s) != MOT_TS_NONE);

	/* rows of one that is still being loaded are not all written */
	if (m.places != NULL && mot_table_is_settled(t, &replaces))
		m.index = mot_table_index(t, m.places->index);
	/* acquire: the definition that knows it */
	if (m.index == NULL || !(m.index->flags & MOT_INDEX_DERIVED) ||
		!atomic_load_explicit(&((mot_index *) m.index)->described, memory_order_acquire))
	{
		move->next = 0;
		return MOT_MOVE_DONE;
	}
	m.room = room_to_owe(s, t);
	while (move->next < mot_pool_directory_size(t->rows))
	{
		/* relaxed: a figure, and our own */
		if (atomic_load_explicit(&s->slot->owed.count, memory_order_relaxed) > MOST_OWED)
			return MOT_MOVE_WAITS;
		if (m.budget <= 0)
			return MOT_MOVE_MORE;
		if (!move_page(&m, move->next))
			return MOT_MOVE_WAITS;
		move->next++;
	}
	move->next = 0;
	return MOT_MOVE_DONE;
}
