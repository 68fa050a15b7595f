/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  Pools: pages cut into objects of size classes, and large objects.
 *
 * A page of a pool holds objects of one class side by side, with nothing
 * else in it.  What is known about it is in its descriptor: how many objects
 * are free, a list of those that were freed (threaded through them) and how
 * many were ever handed out; so a page's memory is touched only as far as it
 * is used.  Pages with free objects are in a list for each class and node.
 *
 * A page whose objects are all free leaves the pool, except that each class
 * keeps one such page on each node, lest a table that swings around a page's
 * boundary take and return a page again and again.  When the region is short
 * mot_pools_shrink collects those too.
 *
 * An object of more than 32 KB is a run of pages by itself: its first page's
 * descriptor stands for all, and there is no list but the pool's.
 *
 * The order of a page's coming: limits are charged, the page is taken, its
 * descriptor filled in, and it joins the pool's list and directory; and of
 * its going the reverse.  So a page that a walker finds in the directory has
 * a descriptor that says what it is.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "memory/memory_internal.h"

static const uint16_t objects_per_page[] = {
	113, 102, 91, 81, 72, 64, 56, 50, 45, 40, 36, 32, 28, 25, 22, 20,
	18, 16, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2
};

static mot_class_node *class_nodes(mot_pool *pool, unsigned class);
static unsigned take_from_list(mot_region *region, mot_class_node *cn,
							   unsigned class, void **out, unsigned want);
static mot_page *acquire_page(mot_pool *pool, unsigned class, unsigned node,
							  size_t size, mot_purpose purpose, int *why);
static void release_page(mot_pool *pool, uint32_t page_no);
static bool join_pool(mot_pool *pool, uint32_t page_no);
static void leave_pool(mot_pool *pool, uint32_t page_no);
static void keep_page(mot_pool *pool, mot_class_node *cn, uint32_t page_no);
static void unkeep_page(mot_pool *pool, mot_class_node *cn);
static void pool_shrink(mot_pool *pool);
static void destroy_pages(mot_pool *pool);

static inline uint32_t
number_of(const mot_region *region, const mot_page *page)
{
	return (uint32_t) (page - region->pages);
}

/*---- the region's tables and the system pool ----*/

void
mot_classes_init(mot_region *region, size_t magazine_bytes)
{
	unsigned	class;

	for (class = 0; class < MOT_CLASS_LARGE; class++)
	{
		mot_size_class *sc = &region->classes[class];

		if (class < MOT_SMALL_CLASSES)
			sc->size = (class + 1) * MOT_SMALL_STEP;
		else
			sc->size = (uint32_t) MOT_ALIGN_DOWN(MOT_PAGE_SIZE / objects_per_page[class - MOT_SMALL_CLASSES],
												 MOT_SMALL_STEP);
		sc->objects = (uint32_t) (MOT_PAGE_SIZE / sc->size);
		sc->lot_objects = (uint32_t) (MOT_LOT_SIZE / sc->size);

		/*
		 * An offset within a page, in 16 bytes, is less than 4096; times this
		 * and shifted right by 32 it is divided exactly.  Only rows need it,
		 * and they have at least 32 bytes.
		 */
		if (sc->size >= MOT_ROW_MIN_SIZE)
			sc->reciprocal = (uint32_t) ((UINT64_C(1) << 32) / (sc->size / MOT_SMALL_STEP)) + 1;

		sc->cached = 0;
		if (sc->size <= 4096 && magazine_bytes / sc->size >= 2)
			sc->cached = (uint32_t) (magazine_bytes / sc->size);
	}
	/* one object a run, and its reciprocal of zero makes its number zero */
	region->classes[MOT_CLASS_LARGE].objects = 1;

	class = MOT_SMALL_CLASSES;
	for (size_t i = 0; i <= MOT_CLASS_MAX_SIZE / MOT_CLASS_LOOKUP; i++)
	{
		while (class < MOT_CLASS_LARGE - 1 &&
			   region->classes[class].size < i * MOT_CLASS_LOOKUP + 1)
			class++;
		region->class_of[i] = (uint8_t) class;
	}
}

/*
 * The system pool of a new or reset region.  Its class blocks have their
 * place in the region: it is where those of all other pools come from.
 */
void
mot_pool_start(mot_region *region)
{
	mot_pool   *pool = mot_pool_slot(region, MOT_SYSTEM_POOL);

	/* relaxed all: nobody else has the region yet */
	pool->region = region;
	pool->kind = MOT_POOL_PLAIN;
	pool->min_size = 1;
	for (unsigned c = 0; c < MOT_CLASSES; c++)
		atomic_store_explicit(&pool->classes[c],
							  region->system_classes + c * region->topology.nodes,
							  memory_order_relaxed);
	region->state->last_pool_id = 1;
	atomic_store_explicit(&region->state->pools_high, 1, memory_order_relaxed);
	atomic_store_explicit(&pool->id, 1, memory_order_relaxed);
}

/*---- pools ----*/

mot_pool *
mot_pool_create(mot_region *region, mot_pool_kind kind, mot_pool_group *group)
{
	mot_region_state *state = region->state;
	uint32_t	slot = 0;
	uint64_t	id;
	mot_pool   *pool;

	mot_spin_lock(&state->pool_lock);
	if (state->pool_free != 0)
	{
		slot = state->pool_free - 1;
		state->pool_free = mot_pool_slot(region, slot)->next_free;
	}
	else
	{
		/* relaxed: written under the lock */
		slot = atomic_load_explicit(&state->pools_high, memory_order_relaxed);
		if (slot == region->pool_count)
		{
			mot_spin_unlock(&state->pool_lock);
			return NULL;
		}
		atomic_store_explicit(&state->pools_high, slot + 1, memory_order_relaxed);
	}
	id = ++state->last_pool_id;
	mot_spin_unlock(&state->pool_lock);

	/*
	 * Under the guard: mot_pools_shrink looks at every slot.  relaxed: the
	 * guard orders these for it, and the caller hands the pool to others.
	 */
	pool = mot_pool_slot(region, slot);
	mot_spin_lock(&pool->guard);
	pool->region = region;
	pool->group = group;
	pool->kind = kind;
	pool->min_size = kind == MOT_POOL_ROWS ? MOT_ROW_MIN_SIZE : 1;
	pool->first_page = 0;
	pool->hole = 0;
	pool->next_free = 0;
	atomic_store_explicit(&pool->page_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->large_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->kept, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->directory_size, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->joins, 0, memory_order_relaxed);
	for (unsigned c = 0; c < MOT_CLASSES; c++)
		atomic_store_explicit(&pool->classes[c], NULL, memory_order_relaxed);
	for (unsigned b = 0; b < MOT_DIRECTORY_BLOCKS; b++)
		atomic_store_explicit(&pool->directory[b], NULL, memory_order_relaxed);
	memset(pool->nodes, 0, region->topology.nodes * sizeof(mot_pool_node));
	atomic_store_explicit(&pool->id, id, memory_order_relaxed);
	mot_spin_unlock(&pool->guard);
	return pool;
}

mot_pool_group *
mot_pool_group_of(const mot_pool *pool)
{
	return pool->group;
}

void
mot_pool_destroy(mot_pool *pool)
{
	mot_region *region = pool->region;
	mot_region_state *state = region->state;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);
	size_t		block_size = region->topology.nodes * sizeof(mot_class_node);

	/*
	 * Caches that hold objects of the pool may be about to flush them: they
	 * do so under the guard, and not any more once the id is gone.
	 */
	mot_spin_lock(&pool->guard);
	atomic_store_explicit(&pool->id, 0, memory_order_relaxed);
	mot_spin_unlock(&pool->guard);

	MOT_STOP_POINT("pool-destroy");

	/* relaxed: from here on the pool is ours alone, till the slot is free */
	atomic_fetch_sub_explicit(&state->kept,
							  atomic_load_explicit(&pool->kept, memory_order_relaxed),
							  memory_order_relaxed);
	atomic_store_explicit(&pool->kept, 0, memory_order_relaxed);
	destroy_pages(pool);
	mot_directory_destroy(pool);
	for (unsigned c = 0; c < MOT_CLASSES; c++)
	{
		void	   *block = atomic_load_explicit(&pool->classes[c], memory_order_relaxed);

		if (block)
			mot_pool_put(system, mot_class_of(region, block_size), &block, 1);
	}

	mot_spin_lock(&state->pool_lock);
	pool->next_free = state->pool_free;
	state->pool_free = (uint32_t) (((char *) pool - region->pools) / region->pool_stride) + 1;
	mot_spin_unlock(&state->pool_lock);
}

/* all pages back, a chunk's at a time, and the memory behind them */
static void
destroy_pages(mot_pool *pool)
{
	mot_region *region = pool->region;
	uint32_t	link = pool->first_page;
	uint32_t	chunk_no = MOT_NO_CHUNK;
	uint32_t	mask = 0;

	while (link != 0)
	{
		uint32_t	page_no = link - 1;
		mot_page   *page = &region->pages[page_no];
		uint64_t	shape = mot_shape_of(page);
		size_t		count = 1;

		link = page->list_next;
		if (pool->kind == MOT_POOL_ROWS)
			mot_row_bits_clear(region, page_no,
							   mot_page_objects(region, page_no, MOT_SHAPE_CLASS(shape)));
		if (MOT_SHAPE_CLASS(shape) == MOT_CLASS_LARGE)
			count = MOT_SHAPE_SIZE(shape) / MOT_PAGE_SIZE;
		/* relaxed: the page's next taker orders it by the node lock */
		atomic_store_explicit(&page->shape, 0, memory_order_relaxed);

		if (mot_is_lot(region, page_no))
		{
			mot_put_lot(pool, page_no, true);
			continue;
		}
		if (count > 1)
		{
			mot_pages_put(region, pool, page_no, count, true);
			continue;
		}
		if (page_no / MOT_PAGES_PER_CHUNK != chunk_no)
		{
			if (mask != 0)
				mot_pages_put_mask(region, pool, chunk_no, mask, true);
			chunk_no = page_no / MOT_PAGES_PER_CHUNK;
			mask = 0;
		}
		mask |= UINT32_C(1) << page_no % MOT_PAGES_PER_CHUNK;
	}
	if (mask != 0)
		mot_pages_put_mask(region, pool, chunk_no, mask, true);
	mot_uncharge(pool, atomic_load_explicit(&pool->page_bytes, memory_order_relaxed));
}

void
mot_pool_stats(const mot_pool *pool, uint64_t *page_bytes, uint64_t *object_bytes)
{
	const mot_region *region = pool->region;

	/* relaxed: figures, of no one moment */
	*page_bytes = atomic_load_explicit(&pool->page_bytes, memory_order_relaxed);
	*object_bytes = atomic_load_explicit(&pool->large_bytes, memory_order_relaxed);
	for (unsigned c = 0; c < MOT_CLASS_LARGE; c++)
	{
		/* acquire: the block was zeroed before it was hung up here */
		mot_class_node *nodes = atomic_load_explicit(&pool->classes[c], memory_order_acquire);

		for (unsigned n = 0; nodes && n < region->topology.nodes; n++)
			*object_bytes += region->classes[c].size *
				atomic_load_explicit(&nodes[n].live, memory_order_relaxed);
	}
}

/* live objects, but for large ones */
uint64_t
mot_pool_objects(const mot_pool *pool)
{
	uint64_t	objects = 0;

	for (unsigned c = 0; c < MOT_CLASS_LARGE; c++)
	{
		/* acquire, relaxed: as above */
		mot_class_node *nodes = atomic_load_explicit(&pool->classes[c], memory_order_acquire);

		for (unsigned n = 0; nodes && n < pool->region->topology.nodes; n++)
			objects += atomic_load_explicit(&nodes[n].live, memory_order_relaxed);
	}
	return objects;
}

uint64_t
mot_region_object_bytes(const mot_region *region)
{
	uint64_t	sum = 0;
	uint64_t	pages;
	uint64_t	objects;

	/* relaxed both: figures; a slot that was a pool once may be looked at */
	for (uint32_t i = 0; i < atomic_load_explicit(&region->state->pools_high, memory_order_relaxed); i++)
	{
		const mot_pool *pool = mot_pool_slot(region, i);

		if (i == MOT_SYSTEM_POOL || atomic_load_explicit(&pool->id, memory_order_relaxed) == 0)
			continue;
		mot_pool_stats(pool, &pages, &objects);
		sum += objects;
	}
	return sum;
}

/*---- objects that might be there ----*/

void
mot_objects_add(const mot_region *region, double *objects, size_t size, double number)
{
	unsigned	class = mot_class_of(region, size);

	objects[class] += class == MOT_CLASS_LARGE ? number * (double) MOT_ALIGN_UP(size, MOT_PAGE_SIZE) : number;
}

double
mot_objects_pages(const mot_region *region, const double *objects, double scale)
{
	double		lots = 0;
	double		pages = 0;

	for (unsigned c = 0; c < MOT_CLASS_LARGE; c++)
	{
		const mot_size_class *sc = &region->classes[c];
		double		number = ceil(objects[c] * scale);

		if (number == 0)
			continue;
		lots += sc->size > MOT_LOT_MAX_OBJECT ? MOT_LOTS_MOST : ceil(number / sc->lot_objects) * MOT_LOT_SIZE;
		pages += ceil(number / sc->objects) * MOT_PAGE_SIZE;
	}
	return (lots < MOT_LOTS_MOST ? lots : pages) + objects[MOT_CLASS_LARGE] * scale;
}

/*---- objects ----*/

/*
 * Up to "want" objects of a class, at least one unless memory is out; from
 * that node's pages if it can be.  Which they are goes to the end of "out"
 * first, so that a magazine hands out ascending addresses.  Returns how many,
 * in out[0 .. n-1].
 */
unsigned
mot_pool_take(mot_pool *pool, unsigned class, unsigned node,
			  mot_purpose purpose, void **out, unsigned want, int *why)
{
	mot_region *region = pool->region;
	mot_class_node *nodes = class_nodes(pool, class);
	mot_class_node *cn;
	mot_page   *page;
	unsigned	got;
	unsigned	page_node;

	if (nodes == NULL)
	{
		if (why)
			*why = 0;
		return 0;
	}

	/* the lock is held while a page is taken, so that only one is */
	cn = &nodes[node];
	mot_spin_lock(&cn->lock);
	got = take_from_list(region, cn, class, out, want);
	if (got > 0)
	{
		mot_spin_unlock(&cn->lock);
		return got;
	}
	page = acquire_page(pool, class, node, region->classes[class].size, purpose, why);
	if (page)
	{
		page_node = MOT_SHAPE_NODE(mot_shape_of(page));
		if (page_node != node)
		{
			mot_spin_unlock(&cn->lock);
			cn = &nodes[page_node];
			mot_spin_lock(&cn->lock);
		}
		mot_partial_push(region, &cn->partial, number_of(region, page));
		got = take_from_list(region, cn, class, out, want);
		mot_spin_unlock(&cn->lock);
		return got;
	}
	mot_spin_unlock(&cn->lock);

	/* no page to be had: other nodes' pages may have room */
	for (unsigned n = 1; n < region->topology.nodes && got == 0; n++)
	{
		cn = &nodes[(node + n) % region->topology.nodes];
		mot_spin_lock(&cn->lock);
		got = take_from_list(region, cn, class, out, want);
		mot_spin_unlock(&cn->lock);
	}
	return got;
}

/* class lock held */
static unsigned
take_from_list(mot_region *region, mot_class_node *cn, unsigned class,
			   void **out, unsigned want)
{
	const mot_size_class *sc = &region->classes[class];
	unsigned	got = 0;

	while (got < want && cn->partial.head != 0)
	{
		uint32_t	page_no = cn->partial.head - 1;
		mot_page   *page = &region->pages[page_no];
		char	   *start = mot_page_address(region, page_no);

		mot_assert(page->free_count > 0 &&
				   MOT_SHAPE_CLASS(mot_shape_of(page)) == class);
		if (cn->empty == page_no + 1)
			unkeep_page(page->pool, cn);
		while (got < want && page->free_count > 0)
		{
			if (page->free)
			{
				out[got] = page->free;
				page->free = *(void **) page->free;
			}
			else
				out[got] = start + (size_t) page->carved++ * sc->size;
			got++;
			page->free_count--;
		}
		if (page->free_count == 0)
			mot_partial_remove(region, &cn->partial, page_no);
	}

	for (unsigned i = 0, j = got; i + 1 < j; i++)
	{
		void	   *swap = out[i];

		out[i] = out[--j];
		out[j] = swap;
	}

	mot_add_to(&cn->live, got);
	return got;
}

/* objects of one class of the pool go back to their pages */
void
mot_pool_put(mot_pool *pool, unsigned class, void **objects, unsigned count)
{
	mot_region *region = pool->region;
	mot_class_node *nodes;
	mot_class_node *cn = NULL;
	uint32_t	released = 0;

	/* acquire: as in mot_pool_stats; it is there since something was taken */
	nodes = atomic_load_explicit(&pool->classes[class], memory_order_acquire);

	/* what will be written, so that it is not waited for with the lock held */
	for (unsigned i = 0; i < count; i++)
	{
		uint64_t	shape;

		__builtin_prefetch(mot_page_of(region, objects[i], &shape), 1);
		__builtin_prefetch(objects[i], 1);
	}

	for (unsigned i = 0; i < count; i++)
	{
		uint64_t	shape;
		mot_page   *page = mot_page_of(region, objects[i], &shape);
		uint32_t	page_no = number_of(region, page);
		mot_class_node *home = &nodes[MOT_SHAPE_NODE(shape)];
		unsigned	per_page = mot_page_objects(region, page_no, class);

		mot_assert(page->pool == pool && MOT_SHAPE_CLASS(shape) == class);
		while (home != cn)
		{
			if (cn)
				mot_spin_unlock(&cn->lock);
			cn = home;
			mot_spin_lock(&cn->lock);

			/*
			 * it may have gone to another node before we had the lock, see
			 * rehome.c
			 */
			home = &nodes[MOT_SHAPE_NODE(mot_shape_of(page))];
		}

		*(void **) objects[i] = page->free;
		page->free = objects[i];
		mot_assert(page->free_count < per_page);
		if (page->free_count++ == 0)
			mot_partial_push(region, &cn->partial, page_no);
		mot_add_to(&cn->live, -1);

		if (page->free_count == per_page)
		{
			mot_partial_remove(region, &cn->partial, page_no);
			if (cn->empty == 0)
				keep_page(pool, cn, page_no);
			else
			{
				/* in no list and without objects: nobody else has it */
				page->partial_next = released;
				released = page_no + 1;
			}
		}
	}
	if (cn)
		mot_spin_unlock(&cn->lock);

	while (released != 0)
	{
		uint32_t	page_no = released - 1;

		released = region->pages[page_no].partial_next;
		release_page(pool, page_no);
	}
}

void *
mot_pool_take_large(mot_pool *pool, size_t size, unsigned node,
					mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;
	mot_page   *page;

	if (size > region->max_bytes)
	{
		if (why)
			*why = 0;
		return NULL;
	}
	size = MOT_ALIGN_UP(size, MOT_PAGE_SIZE);
	page = acquire_page(pool, MOT_CLASS_LARGE, node, size, purpose, why);
	if (page == NULL)
		return NULL;
	page->free_count = 0;
	/* relaxed: a figure */
	atomic_fetch_add_explicit(&pool->large_bytes, size, memory_order_relaxed);
	return mot_page_address(region, number_of(region, page));
}

void
mot_pool_put_large(mot_pool *pool, void *object)
{
	mot_region *region = pool->region;
	uint64_t	shape;
	mot_page   *page = mot_page_of(region, object, &shape);

	/* relaxed: a figure */
	atomic_fetch_sub_explicit(&pool->large_bytes, MOT_SHAPE_SIZE(shape), memory_order_relaxed);
	release_page(pool, number_of(region, page));
}

/* the class's state on every node; made when first needed */
static mot_class_node *
class_nodes(mot_pool *pool, unsigned class)
{
	mot_region *region = pool->region;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);
	size_t		size = region->topology.nodes * sizeof(mot_class_node);
	mot_class_node *nodes;
	mot_class_node *found = NULL;
	void	   *block;

	/* acquire: the block was zeroed before it was hung up here */
	nodes = atomic_load_explicit(&pool->classes[class], memory_order_acquire);
	if (mot_likely(nodes != NULL))
		return nodes;

	if (mot_pool_take(system, mot_class_of(region, size), 0, MOT_FOR_DELETE,
					  &block, 1, NULL) == 0)
		return NULL;
	memset(block, 0, size);
	/* release: for the acquire above; acquire: for what another one made */
	if (atomic_compare_exchange_strong_explicit(&pool->classes[class], &found, block,
												memory_order_acq_rel,
												memory_order_acquire))
		return block;
	mot_pool_put(system, mot_class_of(region, size), &block, 1);
	return found;
}

/*---- pages of a pool ----*/

/*
 * Where a pool's next page is a lot: pages of several classes are few objects
 * in most small tables.
 */
static bool
wants_lot(const mot_pool *pool, unsigned class, size_t size)
{
	/* relaxed: a little more or less does not matter */
	return class != MOT_CLASS_LARGE && size <= MOT_LOT_MAX_OBJECT &&
		atomic_load_explicit(&pool->page_bytes, memory_order_relaxed) < MOT_LOTS_MOST;
}

size_t
mot_row_bytes(const mot_pool *pool, size_t size)
{
	if (size < MOT_ROW_MIN_SIZE)
		size = MOT_ROW_MIN_SIZE;
	/* relaxed: as above */
	if (size <= MOT_LOT_MAX_OBJECT &&
		atomic_load_explicit(&pool->page_bytes, memory_order_relaxed) < MOT_LOTS_MOST / 2)
		size = MOT_ALIGN_UP(size, MOT_ROW_LOT_STEP);
	return size;
}

/* a page, for a large object a run of them, or a lot */
static uint32_t
take_pages(mot_pool *pool, unsigned node, size_t count, mot_purpose purpose, int *why)
{
	uint32_t	page_no;

	if (!mot_charge(pool, count * MOT_PAGE_SIZE, purpose, why))
		return MOT_NO_PAGE;
	page_no = mot_pages_take(pool->region, pool, node, count);
	if (page_no == MOT_NO_PAGE)
	{
		mot_uncharge(pool, count * MOT_PAGE_SIZE);
		if (why)
			*why = 0;
	}
	return page_no;
}

static void
put_pages(mot_pool *pool, uint32_t page_no, size_t count, bool give_back)
{
	if (mot_is_lot(pool->region, page_no))
	{
		mot_put_lot(pool, page_no, give_back);
		return;
	}
	mot_pages_put(pool->region, pool, page_no, count, give_back);
	mot_uncharge(pool, count * MOT_PAGE_SIZE);
}

/* the same charged and joined */
static mot_page *
acquire_page(mot_pool *pool, unsigned class, unsigned node, size_t size,
			 mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;
	size_t		count = class == MOT_CLASS_LARGE ? size / MOT_PAGE_SIZE : 1;
	uint32_t	page_no;
	uint32_t	whole;
	mot_page   *page;

	if (wants_lot(pool, class, size))
		page_no = mot_take_lot(pool, node, purpose, why);
	else
		page_no = take_pages(pool, node, count, purpose, why);
	if (page_no == MOT_NO_PAGE)
		return NULL;
	whole = mot_is_lot(region, page_no) ? mot_lot_page(region, page_no) : page_no;

	page = &region->pages[page_no];
	/* relaxed: the shape publishes it */
	atomic_store_explicit(&page->pool, pool, memory_order_relaxed);
	/* relaxed: it does not change while the pool is in use */
	page->pool_id = atomic_load_explicit(&pool->id, memory_order_relaxed);
	page->free = NULL;
	page->free_count = (uint16_t) mot_page_objects(region, page_no, class);
	page->carved = 0;

	/*
	 * release: a walker that reads this shape by way of an outdated directory
	 * entry then also reads that the entry is outdated (mot_pool_page).
	 */
	atomic_store_explicit(&page->shape,
						  MOT_SHAPE(size, region->chunks[whole / MOT_PAGES_PER_CHUNK].node,
									class),
						  memory_order_release);

	if (!join_pool(pool, page_no))
	{
		atomic_store_explicit(&page->shape, 0, memory_order_release);
		put_pages(pool, page_no, count, false);
		if (why)
			*why = 0;
		return NULL;
	}
	return page;
}

/* the page has no objects and is in no list but the pool's */
static void
release_page(mot_pool *pool, uint32_t page_no)
{
	mot_region *region = pool->region;
	mot_page   *page = &region->pages[page_no];
	uint64_t	shape = mot_shape_of(page);
	size_t		count = 1;
	bool		moved;

	if (MOT_SHAPE_CLASS(shape) == MOT_CLASS_LARGE)
		count = MOT_SHAPE_SIZE(shape) / MOT_PAGE_SIZE;
	/* memory that was moved is not its chunk's node's: it goes back */
	moved = !mot_is_lot(region, page_no) &&
		MOT_SHAPE_NODE(shape) != region->chunks[page_no / MOT_PAGES_PER_CHUNK].node;

	leave_pool(pool, page_no);
	MOT_STOP_POINT("page-left-pool");
	/* release: comes after the directory entry's end, as in acquire_page */
	atomic_store_explicit(&page->shape, 0, memory_order_release);
	/* relaxed: without a shape there is no pool */
	atomic_store_explicit(&page->pool, NULL, memory_order_relaxed);
	put_pages(pool, page_no, count, moved);
}

static bool
join_pool(mot_pool *pool, uint32_t page_no)
{
	mot_region *region = pool->region;
	mot_page   *page = &region->pages[page_no];

	mot_spin_lock(&pool->list_lock);
	if (pool->kind == MOT_POOL_ROWS && !mot_directory_join(pool, page_no))
	{
		mot_spin_unlock(&pool->list_lock);
		return false;
	}
	page->list_prev = 0;
	page->list_next = pool->first_page;
	if (pool->first_page != 0)
		region->pages[pool->first_page - 1].list_prev = page_no + 1;
	pool->first_page = page_no + 1;
	mot_spin_unlock(&pool->list_lock);
	return true;
}

static void
leave_pool(mot_pool *pool, uint32_t page_no)
{
	mot_region *region = pool->region;
	mot_page   *page = &region->pages[page_no];

	mot_spin_lock(&pool->list_lock);
	if (pool->kind == MOT_POOL_ROWS)
		mot_directory_leave(pool, page_no);
	if (page->list_prev != 0)
		region->pages[page->list_prev - 1].list_next = page->list_next;
	else
		pool->first_page = page->list_next;
	if (page->list_next != 0)
		region->pages[page->list_next - 1].list_prev = page->list_prev;
	mot_spin_unlock(&pool->list_lock);
}

/* the list's lock is held, here and below */
void
mot_partial_push(mot_region *region, mot_page_list *list, uint32_t page_no)
{
	mot_page   *page = &region->pages[page_no];

	page->partial_prev = 0;
	page->partial_next = list->head;
	if (list->head != 0)
		region->pages[list->head - 1].partial_prev = page_no + 1;
	else
		list->tail = page_no + 1;
	list->head = page_no + 1;
}

static void
partial_append(mot_region *region, mot_page_list *list, uint32_t page_no)
{
	mot_page   *page = &region->pages[page_no];

	page->partial_next = 0;
	page->partial_prev = list->tail;
	if (list->tail != 0)
		region->pages[list->tail - 1].partial_next = page_no + 1;
	else
		list->head = page_no + 1;
	list->tail = page_no + 1;
}

void
mot_partial_remove(mot_region *region, mot_page_list *list, uint32_t page_no)
{
	mot_page   *page = &region->pages[page_no];

	if (page->partial_prev != 0)
		region->pages[page->partial_prev - 1].partial_next = page->partial_next;
	else
		list->head = page->partial_next;
	if (page->partial_next != 0)
		region->pages[page->partial_next - 1].partial_prev = page->partial_prev;
	else
		list->tail = page->partial_prev;
}

/* (a class's, here and below) */
/* an empty page stays, to be used when all others are full */
static void
keep_page(mot_pool *pool, mot_class_node *cn, uint32_t page_no)
{
	partial_append(pool->region, &cn->partial, page_no);
	cn->empty = page_no + 1;
	/* relaxed: hints for mot_pools_shrink, which looks under the lock */
	atomic_fetch_add_explicit(&pool->kept, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&pool->region->state->kept, 1, memory_order_relaxed);
}

static void
unkeep_page(mot_pool *pool, mot_class_node *cn)
{
	cn->empty = 0;
	atomic_fetch_sub_explicit(&pool->kept, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&pool->region->state->kept, 1, memory_order_relaxed);
}

/*
 * Memory is short: the empty pages that pools keep go back to the region.
 * True if there were any.  No lock may be held.
 */
bool
mot_pools_shrink(mot_region *region)
{
	mot_region_state *state = region->state;
	uint32_t	slots;

	/* relaxed: hints; a page kept at this moment is missed, and may be */
	if (atomic_load_explicit(&state->kept, memory_order_relaxed) == 0)
		return false;
	slots = atomic_load_explicit(&state->pools_high, memory_order_relaxed);
	for (uint32_t s = 0; s < slots; s++)
	{
		mot_pool   *pool = mot_pool_slot(region, s);

		if (atomic_load_explicit(&pool->kept, memory_order_relaxed) == 0)
			continue;
		/* the pool may be going: not while we hold its guard */
		mot_spin_lock(&pool->guard);
		if (atomic_load_explicit(&pool->id, memory_order_relaxed) != 0)
			pool_shrink(pool);
		mot_spin_unlock(&pool->guard);
	}
	return true;
}

static void
pool_shrink(mot_pool *pool)
{
	mot_region *region = pool->region;

	for (unsigned c = 0; c < MOT_CLASS_LARGE; c++)
	{
		/* acquire: as in mot_pool_stats */
		mot_class_node *nodes = atomic_load_explicit(&pool->classes[c], memory_order_acquire);

		for (unsigned n = 0; nodes && n < region->topology.nodes; n++)
		{
			mot_class_node *cn = &nodes[n];
			uint32_t	link;

			mot_spin_lock(&cn->lock);
			link = cn->empty;
			if (link != 0)
			{
				unkeep_page(pool, cn);
				mot_partial_remove(region, &cn->partial, link - 1);
			}
			mot_spin_unlock(&cn->lock);
			if (link != 0)
				release_page(pool, link - 1);
		}
	}
}
