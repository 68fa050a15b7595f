/*-------------------------------------------------------------------------
 *
 * pages.c
 *	  Chunks of 2 MB and pages of 64 KB, and contiguous runs of either.
 *
 * A chunk is unused, or cut into pages, or part of a large run.  Which chunks
 * are in use is one bitmap under the chunk lock; single chunks are taken from
 * the low end of the region and runs from the high end, so that the space
 * between stays in one piece.  Chunks belong to a node by spans: neighbouring
 * chunks, only one in a region of up to 16 GB, that are bound to the node
 * that took the first of them, until all of them are unused again.  (Binding
 * each chunk of a terabyte by itself would leave a process with more mappings
 * than the kernel allows.)
 *
 * A chunk cut into pages has a bit for each page that is free and is in a
 * list while it has one.  Small pools take pages from chunks that all share.
 * A pool that has 2 MB on a node takes whole chunks of its own there, so that
 * when it is dropped whole chunks come free.  Its free pages are its own only
 * as long as there are others: when memory is short a chunk with free pages
 * stops being anybody's own.
 *
 * Memory goes back to the system with whole chunks, with pages whose pool is
 * dropped, and with pages freed beyond the few that a node keeps touched.  A
 * page is given back before it is put on a list, so nobody can have taken it;
 * a whole empty chunk is in no list while it is given back, and is counted
 * as returning: who finds nothing else looks again when it is there.
 * With huge pages memory goes back with whole chunks only, or not at all.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

/* a pool with this many pages on a node takes chunks of its own */
#define OWN_CHUNK_PAGES MOT_PAGES_PER_CHUNK

/* look for a run in so many chunks before taking a new one */
#define FIT_TRIES 16

#define ALL_PAGES UINT32_MAX	/* free mask of an empty chunk */

static uint32_t node_take(mot_region *region, mot_pool *pool, unsigned node,
						  unsigned count);
static uint32_t node_steal(mot_region *region, mot_pool *pool, unsigned node,
						   unsigned count);
static uint32_t list_fit(mot_region *region, uint32_t head, unsigned count,
						 unsigned tries, int *bit);
static int	fit(const mot_chunk *chunk, unsigned count);
static uint32_t use_pages(mot_region *region, mot_pool *pool, uint32_t chunk_no,
						  int bit, unsigned count);
static void link_chunk(mot_region *region, uint32_t chunk_no);
static void unlink_chunk(mot_region *region, uint32_t chunk_no);
static void start_chunk(mot_region *region, uint32_t chunk_no, mot_pool *owner,
						unsigned node);
static uint32_t take_run(mot_region *region, mot_pool *pool, unsigned node,
						 size_t count);
static void put_run(mot_region *region, mot_pool *pool, uint32_t page,
					size_t count);
static uint32_t grab_chunk(mot_region *region, unsigned node);
static uint32_t grab_chunks(mot_region *region, unsigned node, uint32_t count);
static void release_chunks(mot_region *region, uint32_t first, uint32_t count);
static bool give_back_mask(mot_region *region, uint32_t chunk_no, uint32_t mask);

/*
 * A pool that has this many pages will use the next one up: its memory is
 * had with one call to the system, not with a page fault for every 4 KB.
 */
#define GROWN_POOL 32

static inline uint32_t
run_mask(int bit, unsigned count)
{
	return (count == 32 ? ALL_PAGES : (UINT32_C(1) << count) - 1) << bit;
}

/*
 * "count" contiguous pages, on that node if it has them, for that pool.  The
 * first one's number, or MOT_NO_PAGE.  More than a chunk is whole chunks and,
 * of the last, its first pages; the others of that chunk are for anybody.
 */
uint32_t
mot_pages_take(mot_region *region, mot_pool *pool, unsigned node, size_t count)
{
	unsigned	nodes = region->topology.nodes;
	unsigned	spins = 0;

	for (;;)
	{
		uint32_t	page = MOT_NO_PAGE;
		uint32_t	returned;

		/*
		 * Read before looking.  acquire: a chunk that is counted as returned
		 * is in the map for us.
		 */
		returned = atomic_load_explicit(&region->state->returned, memory_order_acquire);
		if (count > MOT_PAGES_PER_CHUNK)
			page = take_run(region, pool, node, count);
		else
		{
			for (unsigned n = 0; n < nodes && page == MOT_NO_PAGE; n++)
				page = node_take(region, pool, (node + n) % nodes, (unsigned) count);
			for (unsigned n = 0; n < nodes && page == MOT_NO_PAGE; n++)
				page = node_steal(region, pool, (node + n) % nodes, (unsigned) count);
		}
		if (page != MOT_NO_PAGE)
		{
			/* relaxed: a few pages more or less do not matter */
			if (count <= MOT_PAGES_PER_CHUNK &&
				atomic_load_explicit(&pool->nodes[node].pages, memory_order_relaxed) >= GROWN_POOL)
				mot_region_populate(region, mot_page_address(region, page),
									count * MOT_PAGE_SIZE);
			return page;
		}

		/*
		 * Nothing.  That holds unless a chunk was on its way back when we
		 * began, or left its list since.  acquire: no chunk that we missed in
		 * a list is missed here (it was counted under that list's lock).
		 */
		if (atomic_load_explicit(&region->state->returning, memory_order_acquire) ==
			returned)
			return MOT_NO_PAGE;
		mot_backoff(&spins);
	}
}

/* the run of pages that mot_pages_take gave goes back */
void
mot_pages_put(mot_region *region, mot_pool *pool, uint32_t page, size_t count,
			  bool give_back)
{
	if (count > MOT_PAGES_PER_CHUNK)
		put_run(region, pool, page, count);
	else
		mot_pages_put_mask(region, pool, page / MOT_PAGES_PER_CHUNK,
						   run_mask(page % MOT_PAGES_PER_CHUNK, (unsigned) count),
						   give_back);
}

/* pages of one chunk go back, from that pool; with their memory if asked to */
void
mot_pages_put_mask(mot_region *region, mot_pool *pool, uint32_t chunk_no,
				   uint32_t mask, bool give_back)
{
	mot_region_state *state = region->state;
	mot_chunk  *chunk = &region->chunks[chunk_no];
	mot_node   *node = &state->nodes[chunk->node];
	int			count = __builtin_popcount(mask);
	uint32_t	left;

	/* relaxed: a few pages more or less kept touched do not matter */
	if (!give_back &&
		atomic_load_explicit(&node->dirty, memory_order_relaxed) + (unsigned) count >
		region->dirty_pages)
		give_back = true;

	/* they are still ours: nobody else looks at them */
	if (give_back)
		give_back = give_back_mask(region, chunk_no, mask);

	mot_spin_lock(&node->lock);
	if (chunk->free != 0)
		unlink_chunk(region, chunk_no);
	chunk->free |= mask;
	pool->nodes[chunk->node].pages -= (uint32_t) count;
	mot_add_to(&node->pages, -count);
	if (give_back)
	{
		chunk->touched &= ~mask;
		mot_add_to(&node->touched, -count);
	}
	else
		mot_add_to(&node->dirty, count);

	if (chunk->free != ALL_PAGES)
	{
		link_chunk(region, chunk_no);
		mot_spin_unlock(&node->lock);
		return;
	}

	/* empty: into nobody's list, and to the system */
	left = chunk->touched;
	chunk->owner = NULL;
	chunk->free = 0;
	chunk->touched = 0;
	mot_add_to(&node->chunks, -1);
	mot_add_to(&node->touched, -__builtin_popcount(left));
	mot_add_to(&node->dirty, -__builtin_popcount(left));
	/* relaxed: the lock's release publishes it to who finds the chunk gone */
	atomic_fetch_add_explicit(&state->returning, 1, memory_order_relaxed);
	mot_spin_unlock(&node->lock);

	MOT_STOP_POINT("chunk-returning");
	if (left != 0)
		(void) give_back_mask(region, chunk_no, left);
	release_chunks(region, chunk_no, 1);
	/* release: the chunk is in the map again for who sees the number */
	atomic_fetch_add_explicit(&state->returned, 1, memory_order_release);
}

/* from the pool's own chunks, the shared ones, or a new one */
static uint32_t
node_take(mot_region *region, mot_pool *pool, unsigned node, unsigned count)
{
	mot_node   *nd = &region->state->nodes[node];
	mot_pool_node *mine = &pool->nodes[node];
	bool		own;
	uint32_t	chunk_no;
	uint32_t	page = MOT_NO_PAGE;
	int			bit = 0;

	mot_spin_lock(&nd->lock);
	own = mine->pages >= OWN_CHUNK_PAGES;
	chunk_no = list_fit(region, mine->own, count, FIT_TRIES, &bit);
	if (chunk_no == MOT_NO_CHUNK && !own)
		chunk_no = list_fit(region, nd->shared, count, FIT_TRIES, &bit);
	if (chunk_no == MOT_NO_CHUNK)
	{
		chunk_no = grab_chunk(region, node);
		if (chunk_no != MOT_NO_CHUNK)
		{
			mot_add_to(&nd->chunks, 1);
			start_chunk(region, chunk_no, own ? pool : NULL, node);
		}
		bit = 0;
	}
	if (chunk_no == MOT_NO_CHUNK)
		chunk_no = list_fit(region, mine->own, count, UINT32_MAX, &bit);
	if (chunk_no == MOT_NO_CHUNK)
		chunk_no = list_fit(region, nd->shared, count, UINT32_MAX, &bit);
	if (chunk_no != MOT_NO_CHUNK)
		page = use_pages(region, pool, chunk_no, bit, count);
	mot_spin_unlock(&nd->lock);
	return page;
}

/* from another pool's own chunk, which becomes a shared one */
static uint32_t
node_steal(mot_region *region, mot_pool *pool, unsigned node, unsigned count)
{
	mot_node   *nd = &region->state->nodes[node];
	uint32_t	page = MOT_NO_PAGE;

	mot_spin_lock(&nd->lock);
	for (uint32_t link = nd->owned; link != 0;)
	{
		mot_chunk  *chunk = &region->chunks[link - 1];
		int			bit = fit(chunk, count);

		if (bit >= 0)
		{
			unlink_chunk(region, link - 1);
			chunk->owner = NULL;
			link_chunk(region, link - 1);
			page = use_pages(region, pool, link - 1, bit, count);
			break;
		}
		link = chunk->owned_next;
	}
	mot_spin_unlock(&nd->lock);
	return page;
}

/* the first chunk of a list, among so many, with room for a run */
static uint32_t
list_fit(mot_region *region, uint32_t head, unsigned count, unsigned tries, int *bit)
{
	for (uint32_t link = head; link != 0 && tries > 0; tries--)
	{
		mot_chunk  *chunk = &region->chunks[link - 1];

		*bit = fit(chunk, count);
		if (*bit >= 0)
			return link - 1;
		link = chunk->next;
	}
	return MOT_NO_CHUNK;
}

/* where in the chunk "count" free pages lie side by side, or -1 */
static int
fit(const mot_chunk *chunk, unsigned count)
{
	uint32_t	starts = chunk->free;

	/* a page with memory behind it is cheaper than one without */
	if (count == 1 && (chunk->free & chunk->touched) != 0)
		starts = chunk->free & chunk->touched;

	/* leave the bits at which "length" free pages begin, length growing */
	for (unsigned length = 1; length < count && starts != 0;)
	{
		unsigned	step = count - length < length ? count - length : length;

		starts &= starts >> step;
		length += step;
	}
	return starts == 0 ? -1 : __builtin_ctz(starts);
}

/* node lock held; a chunk just taken, of free pages, into its list */
static void
start_chunk(mot_region *region, uint32_t chunk_no, mot_pool *owner, unsigned node)
{
	mot_chunk  *chunk = &region->chunks[chunk_no];

	chunk->free = ALL_PAGES;
	chunk->touched = 0;
	chunk->owner = owner;
	chunk->node = node;
	if (region->whole_chunks)
	{
		chunk->touched = ALL_PAGES;
		mot_add_to(&region->state->nodes[node].touched, MOT_PAGES_PER_CHUNK);
		mot_add_to(&region->state->nodes[node].dirty, MOT_PAGES_PER_CHUNK);
	}
	link_chunk(region, chunk_no);
}

/* node lock held; take these pages of a chunk that is in its list */
static uint32_t
use_pages(mot_region *region, mot_pool *pool, uint32_t chunk_no, int bit,
		  unsigned count)
{
	mot_chunk  *chunk = &region->chunks[chunk_no];
	mot_node   *node = &region->state->nodes[chunk->node];
	uint32_t	mask = run_mask(bit, count);
	int			dirty = __builtin_popcount(mask & chunk->touched);

	if (chunk->free == mask)
		unlink_chunk(region, chunk_no);
	chunk->free &= ~mask;
	chunk->touched |= mask;
	pool->nodes[chunk->node].pages += count;
	mot_add_to(&node->pages, (int) count);
	mot_add_to(&node->touched, (int) count - dirty);
	mot_add_to(&node->dirty, -dirty);
	return chunk_no * MOT_PAGES_PER_CHUNK + (unsigned) bit;
}

/* node lock held */
static void
link_chunk(mot_region *region, uint32_t chunk_no)
{
	mot_chunk  *chunk = &region->chunks[chunk_no];
	mot_node   *node = &region->state->nodes[chunk->node];
	uint32_t   *head = chunk->owner ? &chunk->owner->nodes[chunk->node].own : &node->shared;

	chunk->prev = 0;
	chunk->next = *head;
	if (*head != 0)
		region->chunks[*head - 1].prev = chunk_no + 1;
	*head = chunk_no + 1;

	if (chunk->owner)
	{
		chunk->owned_prev = 0;
		chunk->owned_next = node->owned;
		if (node->owned != 0)
			region->chunks[node->owned - 1].owned_prev = chunk_no + 1;
		node->owned = chunk_no + 1;
	}
}

/* node lock held */
static void
unlink_chunk(mot_region *region, uint32_t chunk_no)
{
	mot_chunk  *chunk = &region->chunks[chunk_no];
	mot_node   *node = &region->state->nodes[chunk->node];
	uint32_t   *head = chunk->owner ? &chunk->owner->nodes[chunk->node].own : &node->shared;

	if (chunk->prev != 0)
		region->chunks[chunk->prev - 1].next = chunk->next;
	else
		*head = chunk->next;
	if (chunk->next != 0)
		region->chunks[chunk->next - 1].prev = chunk->prev;

	if (chunk->owner)
	{
		if (chunk->owned_prev != 0)
			region->chunks[chunk->owned_prev - 1].owned_next = chunk->owned_next;
		else
			node->owned = chunk->owned_next;
		if (chunk->owned_next != 0)
			region->chunks[chunk->owned_next - 1].owned_prev = chunk->owned_prev;
	}
}

/* more than a chunk: neighbouring chunks, of the last only what is needed */
static uint32_t
take_run(mot_region *region, mot_pool *pool, unsigned node, size_t count)
{
	mot_node   *nd = &region->state->nodes[node];
	uint32_t	whole = (uint32_t) (count / MOT_PAGES_PER_CHUNK);
	unsigned	rest = count % MOT_PAGES_PER_CHUNK;
	uint32_t	chunks = whole + (rest != 0);
	uint32_t	first = grab_chunks(region, node, chunks);

	if (first == MOT_NO_CHUNK)
		return MOT_NO_PAGE;

	for (uint32_t c = first; c < first + whole; c++)
	{
		mot_chunk  *chunk = &region->chunks[c];

		chunk->free = 0;
		chunk->touched = ALL_PAGES;
		chunk->owner = NULL;
		chunk->node = node;
	}

	mot_spin_lock(&nd->lock);
	mot_add_to(&nd->chunks, chunks);
	mot_add_to(&nd->pages, (int64_t) whole * (int64_t) MOT_PAGES_PER_CHUNK);
	mot_add_to(&nd->touched, (int64_t) whole * (int64_t) MOT_PAGES_PER_CHUNK);
	pool->nodes[node].pages += whole * (uint32_t) MOT_PAGES_PER_CHUNK;
	if (rest != 0)
	{
		start_chunk(region, first + whole, NULL, node);
		(void) use_pages(region, pool, first + whole, 0, rest);
	}
	mot_spin_unlock(&nd->lock);
	return first * (uint32_t) MOT_PAGES_PER_CHUNK;
}

static void
put_run(mot_region *region, mot_pool *pool, uint32_t page, size_t count)
{
	mot_region_state *state = region->state;
	uint32_t	first = page / MOT_PAGES_PER_CHUNK;
	uint32_t	whole = (uint32_t) (count / MOT_PAGES_PER_CHUNK);
	unsigned	rest = count % MOT_PAGES_PER_CHUNK;
	unsigned	node = region->chunks[first].node;
	mot_node   *nd = &state->nodes[node];
	int64_t		pages = (int64_t) whole * (int64_t) MOT_PAGES_PER_CHUNK;

	/* see mot_pages_put_mask for the order of things */
	atomic_fetch_add_explicit(&state->returning, 1, memory_order_relaxed);
	(void) mot_region_give_back(region, mot_chunk_address(region, first),
								(size_t) whole * MOT_CHUNK_SIZE);
	mot_spin_lock(&nd->lock);
	mot_add_to(&nd->chunks, -(int64_t) whole);
	mot_add_to(&nd->pages, -pages);
	mot_add_to(&nd->touched, -pages);
	pool->nodes[node].pages -= (uint32_t) pages;
	mot_spin_unlock(&nd->lock);
	release_chunks(region, first, whole);
	atomic_fetch_add_explicit(&state->returned, 1, memory_order_release);

	if (rest != 0)
		mot_pages_put_mask(region, pool, first + whole, run_mask(0, rest), true);
}

/* memory behind the pages of a mask back to the system, run by run */
static bool
give_back_mask(mot_region *region, uint32_t chunk_no, uint32_t mask)
{
	bool		given = true;

	while (mask != 0)
	{
		int			bit = __builtin_ctz(mask);
		uint32_t	above = ~(mask >> bit);
		unsigned	count = above == 0 ? 32 : (unsigned) __builtin_ctz(above);

		/* the bits shifted in at the top end the run at the chunk's end */
		given &= mot_region_give_back(region,
									  mot_chunk_address(region, chunk_no) +
									  (size_t) bit * MOT_PAGE_SIZE,
									  count * MOT_PAGE_SIZE);
		mask &= ~run_mask(bit, count);
	}
	return given;
}

/*---- which chunks are in use; under the chunk lock ----*/

static inline bool
chunk_used(const mot_region *region, uint32_t chunk_no)
{
	return (region->chunk_map[chunk_no / 64] >> (chunk_no % 64)) & 1;
}

static inline uint32_t
span_chunks(const mot_region *region, uint32_t span)
{
	uint32_t	first = span << region->span_shift;
	uint32_t	size = UINT32_C(1) << region->span_shift;

	return region->chunk_count - first < size ? region->chunk_count - first : size;
}

static void
mark_used(mot_region *region, uint32_t chunk_no, unsigned node)
{
	mot_region_state *state = region->state;
	uint32_t	span = chunk_no >> region->span_shift;

	region->chunk_map[chunk_no / 64] |= UINT64_C(1) << (chunk_no % 64);
	if (region->span_node[span] == 0)
	{
		region->span_node[span] = (uint8_t) (node + 1);
		state->spans_assigned++;
		state->nodes[node].span_free += span_chunks(region, span);
		mot_topology_bind(&region->topology, node,
						  mot_chunk_address(region, span << region->span_shift),
						  span_chunks(region, span) * MOT_CHUNK_SIZE);
	}
	region->span_used[span]++;
	state->nodes[region->span_node[span] - 1].span_free--;
	state->chunks_used++;
	/* relaxed: a figure, and written under the lock only */
	if (state->chunks_used > atomic_load_explicit(&state->chunk_peak, memory_order_relaxed))
		atomic_store_explicit(&state->chunk_peak, state->chunks_used, memory_order_relaxed);
}

/* an unused chunk of the node's spans, or of a span that has no node yet */
static uint32_t
grab_chunk(mot_region *region, unsigned node)
{
	mot_region_state *state = region->state;
	mot_node   *nd = &state->nodes[node];
	uint32_t	span = region->span_count;
	uint32_t	chunk_no = MOT_NO_CHUNK;

	mot_spin_lock(&state->chunk_lock);
	if (nd->span_free > 0)
	{
		span = nd->span_hint;
		while (region->span_node[span] != node + 1 ||
			   region->span_used[span] == span_chunks(region, span))
			span = span + 1 == region->span_count ? 0 : span + 1;
		nd->span_hint = span;
	}
	else if (state->spans_assigned < region->span_count)
	{
		span = state->span_hint;
		while (region->span_node[span] != 0)
			span++;
		state->span_hint = span;
		nd->span_hint = span;
	}
	if (span < region->span_count)
	{
		chunk_no = span << region->span_shift;
		while (chunk_used(region, chunk_no))
			chunk_no++;
		mark_used(region, chunk_no, node);
	}
	mot_spin_unlock(&state->chunk_lock);
	return chunk_no;
}

/* "count" neighbouring chunks, the highest there are */
static uint32_t
grab_chunks(mot_region *region, unsigned node, uint32_t count)
{
	mot_region_state *state = region->state;
	uint32_t	first = MOT_NO_CHUNK;
	uint32_t	length = 0;

	mot_spin_lock(&state->chunk_lock);
	if (count <= region->chunk_count - state->chunks_used)
	{
		for (uint32_t c = region->chunk_count; c > 0;)
		{
			/* a word of the map at a time where it is all used */
			if (c % 64 == 0 && region->chunk_map[c / 64 - 1] == UINT64_MAX)
			{
				c -= 64;
				length = 0;
				continue;
			}
			c--;
			length = chunk_used(region, c) ? 0 : length + 1;
			if (length == count)
			{
				first = c;
				break;
			}
		}
	}
	if (first != MOT_NO_CHUNK)
		for (uint32_t c = first; c < first + count; c++)
			mark_used(region, c, node);
	mot_spin_unlock(&state->chunk_lock);
	return first;
}

static void
release_chunks(mot_region *region, uint32_t first, uint32_t count)
{
	mot_region_state *state = region->state;

	mot_spin_lock(&state->chunk_lock);
	for (uint32_t c = first; c < first + count; c++)
	{
		uint32_t	span = c >> region->span_shift;
		mot_node   *node = &state->nodes[region->span_node[span] - 1];

		region->chunk_map[c / 64] &= ~(UINT64_C(1) << (c % 64));
		node->span_free++;
		if (--region->span_used[span] == 0)
		{
			node->span_free -= span_chunks(region, span);
			region->span_node[span] = 0;
			state->spans_assigned--;
			if (span < state->span_hint)
				state->span_hint = span;
		}
	}
	state->chunks_used -= count;
	mot_spin_unlock(&state->chunk_lock);
}
