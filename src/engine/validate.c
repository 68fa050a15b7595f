/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  SERIALIZABLE: what a transaction read, and whether it still stands.
 *
 * Silo's validation, on versions.  With the write set locked and the commit
 * timestamp T drawn, a transaction may commit at T if everything it read would
 * read the same at T:
 *
 *	- every row it looked at still has the version it saw (or none, for a row
 *	  it found invisible), and nobody who holds the row commits before T.  The
 *	  holder's commit state tells: not drawn means later than T, so a plain
 *	  row lock harms nobody
 *	- every border node it took an answer from has the version it had, so
 *	  no key has come to a range it read (own inserts are carried forward);
 *	  or it was deleted, as one is that has become empty, and the node that
 *	  took over its range has the version that it had before
 *	- every page a sequential scan went over has had no insert, and no page
 *	  has joined the table; or else what was inserted in those pages is not
 *	  committed before T
 *
 * Then all such transactions are serial in the order of their timestamps, and
 * a snapshot, which sees the commits up to a timestamp, is a point in that
 * order: transactions that only read need none of this.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

static bool
array_room(mot_session *s, void **array, uint64_t *size, uint64_t count, size_t width)
{
	uint64_t	n;
	void	   *p;

	if (count < *size)
		return true;
	n = *size ? *size * 2 : 256;
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
	if (array_room(s, (void **) &s->reads, &s->read_size, s->read_count, sizeof(read_item)))
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
		v = version_previous(v);
	return v != NULL && !version_is_tombstone(v) ? version_ts(v) : 0;
}

void
mot_read_page(mot_session *s, const mot_table *table, const mot_page_view *page)
{
	page_item  *item;

	if (!array_room(s, (void **) &s->pages, &s->page_size, s->page_count, sizeof(page_item)))
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
	if (!array_room(s, (void **) &s->pools, &s->pool_size, s->pool_count, sizeof(pool_item)))
		return;
	s->pools[s->pool_count].table = table;
	s->pools[s->pool_count].joins = mot_pool_joins(table->rows);
	s->pool_count++;
}

/* --------------------------------------------------------------- node set */

/* how much is looked at for nodes that were deleted; beyond it a transaction fails, needlessly perhaps */
#define MOVES_MAX 4096
#define VISITS_MAX 1000

/* the map's value: version + 1, so that 0 stays "absent"; NODE_SPOILT never validates */
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

static void
node_moved(void *arg, const mot_node *node, uint64_t from, uint64_t to,
		   const mot_node *sibling, uint64_t sibling_version)
{
	mot_session *s = arg;
	address_map *nodes = &s->nodes;
	uint64_t	key = (uint64_t) (uintptr_t) node;
	bool		known = false;
	move_item  *last = s->move_count > 0 ? &s->moves[s->move_count - 1] : NULL;

	/*
	 * They are kept: the node may be, or become, the heir of one that was
	 * observed.  Keys often come in order, so one after the other goes to the
	 * same node.  Of a transaction that fills a table some are forgotten; at
	 * worst it fails though it need not.
	 */
	if (last != NULL && last->node == node && last->to == from && last->sibling == NULL)
	{
		last->to = to;
		last->sibling = sibling;
		last->sibling_version = sibling_version;
	}
	else if (s->move_count < MOVES_MAX &&
			 array_room(s, (void **) &s->moves, &s->move_size, s->move_count, sizeof(move_item)))
		s->moves[s->move_count++] = (move_item)
	{
		node, from, to, sibling, sibling_version
	};

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
}

/* -------------------------------------------------------------- validation */

static bool
read_stands(mot_session *s, const read_item *item)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	head = row_head(item->row);
		unsigned	owner = head_owner(head);
		mot_version *v = head_version(head);

		MOT_STOP_POINT("validate-row");
		if (owner != 0 && owner != s->owner)
		{
			/*
			 * After our own draw: if we see NONE, the holder's draw comes
			 * later (see draw_timestamp).  Acquire: the head is read again
			 * after it.
			 */
			uint64_t	state = atomic_load_explicit(&s->engine->slot[owner - 1].commit_state,
													 memory_order_acquire);

			if (row_head(item->row) != head)
				continue;
			if (state == COMMIT_DRAWING)
			{
				mot_backoff(&spins);
				continue;
			}
			if (state != COMMIT_NONE && state < s->commit_ts &&
				v != NULL && (version_ts(v) & TS_UNCOMMITTED))
				return false;
		}
		while (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
			v = version_previous(v);
		if (v == NULL)
			return item->ts == 0;

		/*
		 * A row found deleted or invisible was recorded with 0: it must still
		 * be a tombstone, or not there.  (Of what we have written ourselves
		 * the version below was recorded, see mot_read_base.)
		 */
		if (item->ts == 0)
			return version_is_tombstone(v);
		return version_ts(v) == item->ts;
	}
}

/*
 * A page has had inserts since it was scanned.  Have any of them been
 * committed before us, by somebody else?  Rows of transactions that may still
 * fail, or come later, are no reason to fail; our own are none either.
 */
static bool
page_stands(mot_session *s, const mot_table *table, mot_page_view *page)
{
	mot_view	view = {s->snapshot, 0};
	mot_row    *row;

	while ((row = mot_page_next(table->rows, page)) != NULL)
	{
		const mot_version *seen = mot_row_visible(s, &view, (mot_table *) (uintptr_t) table, row);
		read_item	item = {row, seen != NULL ? version_ts(seen) : 0};

		if (!read_stands(s, &item))
			return false;
	}
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

/*
 * Has nobody but ourselves inserted into a node since it had that version, or
 * into its heirs?  "made": the version is that of a node which we have made.
 * "visits" bounds the work, since nodes can be met again and again.
 */
static bool
node_stands(mot_session *s, const mot_node *node, uint64_t version, bool made, int *visits)
{
	for (;;)
	{
		if (--*visits < 0)
			return false;
		for (uint64_t i = 0; i < s->move_count; i++)
		{
			const move_item *move = &s->moves[i];

			if (move->node != node)
				continue;

			/*
			 * The version may be one of several that were passed in a row, or
			 * that of a layer which was made with another one below it; that
			 * is gone if the node became the other's heir at this version.
			 */
			if (move->from == move->to ? version != move->from || !made :
				version < move->from || version >= move->to)
				continue;
			version = move->to;
			if (move->sibling != NULL && !node_stands(s, move->sibling, move->sibling_version, true, visits))
				return false;
		}
		if (mot_node_version(node) == version)
			return true;
		if (!mot_node_heir(node, version, &node, &version))
			return false;
		made = false;
	}
}

static mot_status
all_stand(mot_session *s)
{
	int			visits = VISITS_MAX;

	for (uint64_t i = 0; i < s->read_count; i++)
		if (!read_stands(s, &s->reads[i]))
			return MOT_CONFLICT_READ;
	MOT_STOP_POINT("validate-nodes");
	for (uint64_t i = 0; i < s->nodes.used; i++)
	{
		const map_item *known = &s->nodes.item[i];

		const mot_node *node = (const mot_node *) (uintptr_t) known->key;
		uint64_t	version;

		if (mot_node_version(node) + 1 == known->value)
			continue;

		/*
		 * Deleted, by whoever reclaimed what it had last?  Then what comes to
		 * its range comes to its heir.
		 */
		if (!mot_node_heir(node, known->value - 1, &node, &version) ||
			!node_stands(s, node, version, false, &visits))
			return MOT_CONFLICT_PHANTOM;
	}
	if (s->pool_count > 0)
	{
		bool		stands;

		s->validate = false;	/* looking again is no reading */
		stands = pages_stand(s);
		s->validate = true;
		if (!stands)
			return MOT_CONFLICT_PHANTOM;
	}
	return MOT_OK;
}

mot_status
mot_read_validate(mot_session *s)
{
	mot_status	status;

	s->validating = true;
	status = all_stand(s);
	s->validating = false;
	return status;
}

void
mot_read_clear(mot_session *s)
{
	s->read_count = s->move_count = s->page_count = s->pool_count = 0;
	mot_map_clear(&s->nodes);
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
	free(s->moves);
	free(s->pages);
	free(s->pools);
	mot_map_free(&s->nodes);
}
