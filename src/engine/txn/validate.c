/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  SERIALIZABLE: what a transaction read, and whether it still stands.
 *
 * Silo's validation, on versions.  With the write set locked and the commit
 * timestamp T drawn, a transaction may commit at T if everything it read would
 * read the same at T:
 *
 *	- every row it looked at has, just before T, the version it saw (or none,
 *	  for a row it found invisible)
 *	- no row that has come to a range it read, or to a key it did not find,
 *	  would be found there at T.  Border nodes tell cheaply that nothing has
 *	  come (own inserts are carried forward); if one has changed, the ranges
 *	  are read again (ranges.c)
 *	- the same for pages that a sequential scan went over and that have had
 *	  inserts, and for those that have joined the table
 *
 * What counts in a row just before T is what has been committed with a smaller
 * number, or is about to be: its holder's commit state tells.  Nothing else does.
 * Not drawn means later than T, so neither a lock nor an uncommitted insert harms
 * anybody, let alone one that was rolled back; and a greater number means later,
 * too, installed or not.
 *
 * (One that may not, may perhaps commit at an earlier place: see precede.c.)
 *
 * Keys are looked at as they are now.  That one was taken, which an error tells a
 * transaction that goes on in a savepoint's outside, has been read like any other row;
 * that one was free is as good as read, too, if the insert is taken back (else it
 * is known from the insert).
 *
 * Then all such transactions are serial in the order of their timestamps, and
 * a snapshot, which sees the commits up to a timestamp, is a point in that
 * order: transactions that only read need none of this, unless they have
 * learned of something behind their snapshot.  For let W have written
 * what R read another version of, or would have found.
 *
 *	- T(W) < T(R): W held the row, and its entries were in the indexes, before it
 *	  announced DRAWING, which came before it drew, which came before R drew
 *	  (one counter), and R looks after that.  So R finds the node changed, and
 *	  the entry; and the row either has W's version, or W as its holder, DRAWING
 *	  or drawn.  R fails.
 *	- T(R) < T(W): R comes before W and need not see it.  If W has read what R
 *	  writes, W fails, by the same argument.
 *
 * So of two that exclude each other, the one with the greater number fails, never
 * both.  R waits for the number of one who is DRAWING (instructions), and for
 * the judgement of one with a smaller number, rather than fail because of one
 * that fails itself.  Such waits lead to smaller numbers only, so they end; and
 * whoever has the smallest of all fails only because of what is committed.  So
 * in each circle one gets through, and whoever is alone always does.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

/* Is there room for one more of an array's members?  least: so many at first. */
bool
mot_array_room(mot_session *s, void **array, uint64_t *size, uint64_t count, size_t width, uint64_t least)
{
	uint64_t	n;
	void	   *p;

	if (count < *size)
		return true;
	n = *size ? *size * 2 : least;
	p = realloc(*array, n * width);
	if (p == NULL)
	{
		s->out_of_memory = true;
		return false;
	}
	*array = p;
	*size = n;
	return true;
}

/* mot_read_record without room in the array */
void
mot_read_record_more(mot_session *s, mot_row *row, mot_ts ts)
{
	if (mot_array_room(s, (void **) &s->reads, &s->read_size, s->read_count, sizeof(read_item), 256))
		mot_read_record(s, row, ts);
}

/*
 * What has a transaction read of others' that looked at a row which it has
 * changed itself, or which is invisible?  The version that its own is made
 * from; it may yet take its own back (a savepoint), and have read that version
 * none the less.  That is what its snapshot shows, since of a row that somebody
 * has changed behind it nobody makes a version.  0: there is none, or the row is
 * invisible.
 */
mot_ts
mot_read_base(mot_session *s, const mot_view *view, mot_row *row)
{
	uint64_t	head = row_head(row);
	const mot_version *v;

	if (mot_own_newest(s, row, head) == NULL)
		return 0;
	v = head_version(head);
	while (v != NULL && version_ts(v) > view->snapshot)
		v = version_below(row, v);
	return v != NULL && !version_is_tombstone(v) ? version_ts(v) : 0;
}

/*
 * A view that is newer than the transaction's snapshot (a foreign key's check has such a
 * one) has shown this version of a row, or none: is that what the snapshot shows?
 */
void
mot_read_newer(mot_session *s, const mot_view *view, mot_row *row, const mot_version *v)
{
	mot_view	old = *view;

	old.snapshot = s->snapshot;
	if (!mot_version_same(mot_version_visible(s, &old, row), v))
		s->saw_newest = s->learned = true;
}

/*
 * Keys that the transaction found free are given back with what it has done since
 * the mark: it has read that nobody had them.
 */
void
mot_read_undone(mot_session *s, mot_mark mark)
{
	for (uint64_t i = mark; i < s->entries; i++)
	{
		const journal_entry *e = journal_at(s, i);
		const mot_index *index = (const mot_index *) (uintptr_t) e->a;

		if ((entry_kind(e) != J_ADD && entry_kind(e) != J_INSERT_ADD) || !(index->flags & MOT_INDEX_UNIQUE))
			continue;
		s->gave_back = true;
		s->ranges_of |= table_bit(index->table);
		mot_range_absent(s, (mot_index *) index, entry_key(e), e->c);
	}
}

void
mot_read_page(mot_session *s, const mot_table *table, const mot_page_view *page)
{
	page_item  *item;

	if (!mot_array_room(s, (void **) &s->pages, &s->page_size, s->page_count, sizeof(page_item), 256))
		return;
	item = &s->pages[s->page_count++];
	item->table = table;
	item->index = page->index;
	item->page_no = page->page_no;
	item->counter = page->insert_counter;
}

void
mot_read_pool(mot_session *s, const mot_table *table)
{
	s->ranges_of |= table_bit(table);
	if (!mot_array_room(s, (void **) &s->pools, &s->pool_size, s->pool_count, sizeof(pool_item), 256))
		return;
	s->pools[s->pool_count].table = table;
	s->pools[s->pool_count].joins = mot_pool_joins(table->rows);
	s->pool_count++;
}

/* --------------------------------------------------------------- node set */

/* the map's value: version + 1, so that 0 stays "absent"; NODE_SPOILT never is a node's */
#define NODE_SPOILT UINT64_MAX

/*
 * A small set is just written down, one node perhaps several times; a large
 * one has each node but those first ones once.
 */
static void
observe_node(void *arg, const mot_node *node, uint64_t version)
{
	mot_session *s = arg;
	address_map *nodes = &s->nodes;
	uint64_t	key = (uint64_t) (uintptr_t) node;
	uint64_t	known;

	if (mot_likely(nodes->used < MAP_SMALL && nodes->used < nodes->room))
	{
		map_item   *item = &nodes->item[nodes->used++];

		item->key = key;
		item->value = version + 1;
		return;
	}
	known = mot_map_get(nodes, key);
	if (known == version + 1)
		return;
	if (!mot_map_put(nodes, key, known == 0 ? version + 1 : NODE_SPOILT))
		s->out_of_memory = true;
}

/* a look-up of one key has come to this node; what becomes of that is not known yet */
static void
note_node(void *arg, const mot_node *node, uint64_t version)
{
	mot_session *s = arg;

	s->noted = node;
	s->noted_version = version;
}

/* the key that was looked up last is not in the index */
void
mot_read_absent(mot_session *s, mot_index *index, const void *key, size_t len)
{
	s->ranges_of |= table_bit(index->table);
	observe_node(s, s->noted, s->noted_version);
	mot_range_absent(s, index, key, len);
}

static void
node_moved(void *arg, const mot_node *node, uint64_t from, uint64_t to,
		   const mot_node *sibling, uint64_t sibling_version)
{
	mot_session *s = arg;
	address_map *nodes = &s->nodes;
	uint64_t	key = (uint64_t) (uintptr_t) node;
	bool		known = false;

	for (uint64_t i = 0; i < nodes->used && i < MAP_SMALL; i++)
		if (nodes->item[i].key == key && nodes->item[i].value == from + 1)
		{
			nodes->item[i].value = to + 1;
			known = true;
		}
	/* it is there: this needs no memory */
	if (nodes->used > MAP_SMALL && mot_map_get(nodes, key) == from + 1)
		known = mot_map_put(nodes, key, to + 1);
	if (known && sibling != NULL &&
		!mot_map_put(nodes, (uint64_t) (uintptr_t) sibling, sibling_version + 1))
		s->out_of_memory = true;
}

void
mot_read_init(mot_session *s)
{
	s->observer.observe = observe_node;
	s->observer.moved = node_moved;
	s->observer.arg = s;
	s->noter.observe = note_node;
	s->noter.arg = s;
}

/* Has nobody but ourselves put a key into a node that was read? */
bool
mot_read_nodes_stand(mot_session *s)
{
	/* (of keys that were given back no nodes are known) */
	if (s->gave_back)
		return false;
	for (uint64_t i = 0; i < s->nodes.used; i++)
	{
		const map_item *known = &s->nodes.item[i];

		if (mot_node_version((const mot_node *) (uintptr_t) known->key) + 1 != known->value)
			return false;
	}
	return true;
}

/* -------------------------------------------------------------- validation */

/*
 * What of a chain our snapshot shows; "v" is the newest before our commit, and
 * "number" that of its commit if it is not installed yet.  What came in between
 * has changed what we read, or may have.
 */
static const mot_version *
shown_of(mot_session *s, const mot_row *row, const mot_version *v, mot_ts number)
{
	mot_ts		ts;

	while (v != NULL && (ts = version_ts(v)) > s->snapshot)
	{
		if (ts & TS_UNCOMMITTED)
			ts = number;
		if (ts < s->first_change)
			s->first_change = ts;
		v = version_below(row, v);
	}
	return v;
}

/*
 * The version that a row has just before our commit: that of whoever commits
 * earlier, installed or not, or NULL if there is none.  Of our own changes it is
 * what lies below.  *shown: that which our snapshot shows.
 */
static const mot_version *
version_before(mot_session *s, mot_row *row, const mot_version **shown)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	head = row_head(row);
		unsigned	owner = head_owner(head);
		const mot_version *v = head_version(head);

		MOT_STOP_POINT("validate-row");
		if (owner != 0 && owner != s->owner && v != NULL && (version_ts(v) & TS_UNCOMMITTED))
		{
			mot_slot   *slot = &s->engine->slot[owner - 1];

			/*
			 * After our own draw: if we see NONE, the holder's draw comes
			 * later (see draw_timestamp), or it never commits.  Acquire,
			 * both: what follows is read after it.
			 */
			uint64_t	state = atomic_load_explicit(&slot->commit_state, memory_order_acquire);
			bool		judging = atomic_load_explicit(&slot->judging, memory_order_acquire);

			/*
			 * Acquire: who is not in doubt any more has given the row to
			 * another slot before that, or has ended; and that is looked at
			 * behind this.
			 */
			bool		in_doubt = mot_unlikely(s->keeps) &&
			atomic_load_explicit(&slot->in_doubt, memory_order_acquire);

			MOT_STOP_POINT("validate-owner");
			/* the one that holds the row has said this */
			if (row_head(row) != head)
				continue;
			if (mot_unlikely(in_doubt))
				s->met_in_doubt = true;
			/* (DRAWING is less than any timestamp) */
			if (state != COMMIT_NONE && state < s->valid_at)
			{
				if (state != COMMIT_DRAWING && !judging)
				{
					*shown = state <= s->snapshot ? v : shown_of(s, row, v, state);
					return v;
				}
				if (!s->hasty)
				{
					mot_backoff(&spins);
					continue;
				}
				s->passed_by = true;
			}
		}

		/*
		 * Whoever commits later may be done already.  What it superseded is
		 * there: our snapshot is published.
		 */
		while (v != NULL && ((version_ts(v) & TS_UNCOMMITTED) || version_ts(v) > s->valid_at))
			v = version_below(row, v);
		*shown = shown_of(s, row, v, MOT_TS_NONE);
		return v;
	}
}

static bool
read_stands(mot_session *s, const read_item *item)
{
	uint64_t	head = row_head(item->row);
	const mot_version *v = head_version(head);
	const mot_version *shown;

	/* nobody has touched it, as nearly always */
	if (mot_likely(head_owner(head) == 0 && v != NULL && version_ts(v) == item->ts))
		return true;
	v = version_before(s, item->row, &shown);
	if (s->all_changes)
		return true;

	/*
	 * A row found deleted or invisible was recorded with 0: it must still be
	 * a tombstone, or not there.  (Of what we have written ourselves the
	 * version below was recorded, see mot_read_base.)
	 */
	if (item->ts == 0)
		return v == NULL || version_is_tombstone(v);
	return v != NULL && version_ts(v) == item->ts;
}

/* Is a row, which we may not have known of, what it is in our snapshot? */
bool
mot_row_stands(mot_session *s, mot_row *row)
{
	const mot_version *shown;
	const mot_version *v = version_before(s, row, &shown);

	/* (it may have come and gone) */
	return v == shown || s->all_changes ||
		(version_is_tombstone(v) && (shown == NULL || version_is_tombstone(shown)));
}

/* A page has had inserts since it was scanned. */
static bool
page_stands(mot_session *s, const mot_table *table, mot_page_view *page)
{
	mot_row    *row;

	while ((row = mot_page_next(table->rows, page)) != NULL)
		if (!mot_row_stands(s, row))
			return false;
	return true;
}

/* the pages that sequential scans went over, and those that joined behind their backs */
static bool
pages_stand(mot_session *s)
{
	const mot_region *region = s->engine->region;
	address_map walked = {0};
	bool		stands = true;
	mot_page_view page;

	for (uint64_t i = 0; i < s->page_count && stands; i++)
	{
		const page_item *item = &s->pages[i];
		uint64_t	key = (uint64_t) item->page_no << 4;

		if (mot_page_insert_counter(region, item->page_no) == item->counter ||
			mot_map_get(&walked, key) != 0)
			continue;

		/*
		 * A page that has left had no row that could matter to our snapshot;
		 * what has come in its place has joined.  Without memory for the map
		 * it is walked again.
		 */
		if (mot_pool_page(item->table->rows, item->index, &page) && page.page_no == item->page_no)
			stands = page_stands(s, item->table, &page);
		(void) mot_map_put(&walked, key, 1);
	}
	for (uint64_t i = 0; i < s->pool_count && stands; i++)
	{
		const pool_item *item = &s->pools[i];
		const mot_pool *pool = item->table->rows;
		uint64_t	entries;

		if (mot_pool_joins(pool) == item->joins)
			continue;
		entries = mot_pool_directory_size(pool);
		for (uint64_t n = 0; n < entries && stands; n++)
			if (mot_pool_page(pool, n, &page) && mot_page_joined_after(&page, item->joins))
				stands = page_stands(s, item->table, &page);
	}
	mot_map_free(&walked);
	return stands;
}

static mot_status
all_stand(mot_session *s)
{
	for (uint64_t i = 0; i < s->read_count; i++)
		if (!read_stands(s, &s->reads[i]))
			return MOT_CONFLICT_READ;
	MOT_STOP_POINT("validate-nodes");
	if (!mot_read_nodes_stand(s) || mot_unlikely(!mot_ranges_ordered(s)))
	{
		mot_status	status = mot_ranges_stand(s);

		if (status != MOT_OK)
			return status;
	}
	return pages_stand(s) ? MOT_OK : MOT_CONFLICT_PHANTOM;
}

/* As far as is known without waiting for anybody; *passed_by: somebody was not asked. */
static mot_status
all_stand_hastily(mot_session *s, bool *passed_by)
{
	mot_status	status;

	s->hasty = true;
	s->passed_by = false;
	status = all_stand(s);
	s->hasty = false;
	*passed_by = s->passed_by;
	return status;
}

/*
 * Does what was read stand, as of a commit with this number?  Who fails because
 * of what is known already waits for nobody, and nobody for him for long.
 */
mot_status
mot_read_validate(mot_session *s, mot_ts ts)
{
	bool		passed_by;
	mot_status	status;

	mot_assert(s->validate);
	s->valid_at = ts;
	status = all_stand_hastily(s, &passed_by);
	return status == MOT_OK && passed_by ? all_stand(s) : status;
}

/*
 * It does not, as of our number: the first commit that changed anything of
 * it, or may have.  Somebody whose number lies between the snapshot and ours.
 * "hastily": the first that is known without waiting, which may not be it.
 */
mot_ts
mot_read_first_change(mot_session *s, bool hastily)
{
	mot_status	status;
	bool		passed_by;

	s->first_change = MOT_TS_NONE;
	s->all_changes = true;
	status = hastily ? all_stand_hastily(s, &passed_by) : all_stand(s);
	s->all_changes = false;
	/* (without memory for looking it is not known) */
	return status == MOT_OK ? s->first_change : 0;
}

void
mot_read_clear(mot_session *s)
{
	s->ranges_of = 0;
	s->read_count = s->page_count = s->pool_count = 0;
	mot_map_clear(&s->nodes);
	mot_ranges_clear(s);
	if (s->read_size > 65536)
	{
		free(s->reads);
		s->reads = NULL;
		s->read_size = 0;
	}
}

void
mot_read_free(mot_session *s)
{
	mot_read_clear(s);
	free(s->reads);
	mot_ranges_free(s);
	free(s->pages);
	free(s->pools);
	mot_map_free(&s->nodes);
}
