/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  Allocation: magazines of free objects for each process slot.
 *
 * A cache is a small set-associative table of magazines.  A magazine belongs
 * to one class of one pool on one node, and holds a few free objects; taking
 * one and leaving one is an array access, without lock or atomic, since a
 * cache has one owner.  An empty magazine is half filled from the pool, and
 * of a full one the older half goes back, so the class lock is taken once in
 * many operations.  Objects of other nodes have magazines apart, in which
 * frees gather until they go home together.
 *
 * A magazine that is needed for another class gives its objects back.  Then,
 * and in mot_cache_flush, the pool may have been dropped, even be going at
 * this moment.  So a magazine names its pool by the id that is never used
 * again as well as by address; a pool's slot stays a pool's slot for ever;
 * and under the slot's guard, if it still has that id, it will not go until
 * the guard is released.  If not, the objects are simply forgotten: the pool
 * has returned the pages they are in.  Where the caller itself uses the pool
 * it cannot go, and no guard is taken.
 *
 * The cache lies in the region.  What a process leaves in it that does not come
 * to close its session the slot's next owner finds.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

#define SETS 32
#define WAYS 4
#define MAGAZINE_OBJECTS 30

typedef struct mot_magazine
{
	mot_pool   *pool;
	uint32_t	count;
	uint32_t	limit;			/* most it may hold, by its class */
	void	   *objects[MAGAZINE_OBJECTS];
} mot_magazine;

struct mot_cache
{
	/* set by whoever asks for the cache, always to the same */
	MOT_CACHE_ALIGNED mot_region *_Atomic region;
	uint32_t	node;			/* ours when last looked */
	uint32_t	victim;			/* which way goes next */
	uint64_t	keys[SETS][WAYS];	/* 0: magazine not in use */
	mot_magazine magazines[SETS][WAYS];
};

/* pool ids are below 2^52 for as long as anybody can count */
#define KEY(pool_id, class, node) \
	((uint64_t) (pool_id) << 12 | (uint64_t) (class) << 6 | (uint64_t) (node))
#define KEY_POOL(key) ((key) >> 12)
#define KEY_CLASS(key) ((unsigned) ((key) >> 6) & 63)

static void *alloc_slow(mot_cache *cache, mot_pool *pool, unsigned node, unsigned class,
						size_t size, mot_purpose purpose, int *why);
static void *refill(mot_cache *cache, mot_pool *pool, unsigned node, unsigned class,
					mot_purpose purpose, int *why);
static void free_slow(mot_cache *cache, mot_page *page, unsigned class,
					  uint64_t key, void *object);
static mot_magazine *new_magazine(mot_cache *cache, mot_pool *pool, uint64_t key,
								  unsigned limit);
static void empty_magazine(mot_magazine *mag, uint64_t key);

size_t
mot_cache_stride(void)
{
	return MOT_ALIGN_UP(sizeof(mot_cache), MOT_CACHE_LINE);
}

size_t
mot_cache_magazines(void)
{
	return SETS * WAYS;
}

mot_cache *
mot_region_cache(mot_region *region, unsigned slot)
{
	mot_cache  *cache;

	mot_assert(slot < region->cache_count);
	cache = (mot_cache *) ((char *) region->caches + slot * mot_cache_stride());
	/* relaxed: the same whoever writes it */
	atomic_store_explicit(&cache->region, region, memory_order_relaxed);
	return cache;
}

static inline unsigned
set_of(uint64_t key)
{
	return (unsigned) ((key * UINT64_C(0x9e3779b97f4a7c15)) >> 59) % SETS;
}

static inline mot_magazine *
find_magazine(mot_cache *cache, uint64_t key)
{
	unsigned	set = set_of(key);

	for (unsigned way = 0; way < WAYS; way++)
		if (cache->keys[set][way] == key)
			return &cache->magazines[set][way];
	return NULL;
}

/* node: MOT_ANY_NODE, or the same as "near", where a magazine may be */
static inline __attribute__((always_inline))
void *
alloc(mot_cache *cache, mot_pool *pool, unsigned near, unsigned node, size_t size,
	  mot_purpose purpose, int *why)
{
	unsigned	class;
	mot_magazine *mag;

	if (size < pool->min_size)
		size = pool->min_size;
	class = mot_class_of(pool->region, size);

	/* relaxed: the id does not change while we use the pool */
	mag = find_magazine(cache, KEY(atomic_load_explicit(&pool->id, memory_order_relaxed),
								   class, near));
	if (mot_likely(mag != NULL && mag->count > 0))
		return mag->objects[--mag->count];
	return alloc_slow(cache, pool, node, class, size, purpose, why);
}

void *
mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose,
		  int *why)
{
	return alloc(cache, pool, cache->node, MOT_ANY_NODE, size, purpose, why);
}

void *
mot_alloc_on(mot_cache *cache, mot_pool *pool, unsigned node, size_t size,
			 mot_purpose purpose, int *why)
{
	return alloc(cache, pool, node, node, size, purpose, why);
}

void
mot_free(mot_cache *cache, void *object)
{
	/* relaxed: set before the cache was ours */
	mot_region *region = atomic_load_explicit(&cache->region, memory_order_relaxed);
	uint64_t	shape;
	mot_page   *page = mot_page_of(region, object, &shape);
	unsigned	class = MOT_SHAPE_CLASS(shape);
	uint64_t	key = KEY(page->pool_id, class, MOT_SHAPE_NODE(shape));
	mot_magazine *mag = find_magazine(cache, key);

	mot_assert(shape != 0);
	mot_assert(page->pool->kind != MOT_POOL_ROWS || !mot_row_marked(region, object));
	if (mot_likely(mag != NULL && mag->count < mag->limit))
		mag->objects[mag->count++] = object;
	else
		free_slow(cache, page, class, key, object);
}

void
mot_cache_flush(mot_cache *cache)
{
	for (unsigned set = 0; set < SETS; set++)
		for (unsigned way = 0; way < WAYS; way++)
			empty_magazine(&cache->magazines[set][way], cache->keys[set][way]);
}

/*
 * Bytes of objects that the cache holds, of pools that still exist.  Others'
 * caches may be looked at, at any time; the sum is right while their owners rest.
 */
uint64_t
mot_cache_bytes(const mot_cache *cache)
{
	/* relaxed: set by whoever got the cache; none so far, and it is empty */
	const mot_region *region = atomic_load_explicit(&((mot_cache *) cache)->region,
													memory_order_relaxed);
	uint64_t	bytes = 0;

	for (unsigned i = 0; region && i < SETS * WAYS; i++)
	{
		const mot_magazine *mag = &cache->magazines[i / WAYS][i % WAYS];
		uint64_t	key = cache->keys[i / WAYS][i % WAYS];

		/* relaxed: of those that rest it does not change */
		if (mag->count > 0 &&
			atomic_load_explicit(&mag->pool->id, memory_order_relaxed) == KEY_POOL(key))
			bytes += (uint64_t) mag->count * region->classes[KEY_CLASS(key)].size;
	}
	return bytes;
}

size_t
mot_usable_size(const mot_region *region, const void *object)
{
	uint64_t	shape;

	(void) mot_page_of(region, object, &shape);
	return MOT_SHAPE_SIZE(shape);
}

unsigned
mot_object_node(const mot_region *region, const void *object)
{
	uint64_t	shape;

	(void) mot_page_of(region, object, &shape);
	return MOT_SHAPE_NODE(shape);
}

mot_pool *
mot_object_pool(const mot_region *region, const void *object)
{
	uint64_t	shape;

	return mot_page_of(region, object, &shape)->pool;
}

/* not in the magazine: from the pool, if need be after giving back what we hold */
static void *
alloc_slow(mot_cache *cache, mot_pool *pool, unsigned node, unsigned class, size_t size,
		   mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;

	for (int attempt = 0;; attempt++)
	{
		void	   *object;

		if (class == MOT_CLASS_LARGE)
			object = mot_pool_take_large(pool, size, node == MOT_ANY_NODE ?
										 mot_topology_node(&region->topology) : node,
										 purpose, why);
		else
			object = refill(cache, pool, node, class, purpose, why);
		if (object || attempt > 0)
			return object;
		mot_cache_flush(cache);
		(void) mot_pools_shrink(region);
	}
}

static void *
refill(mot_cache *cache, mot_pool *pool, unsigned node, unsigned class,
	   mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;
	unsigned	limit = region->classes[class].cached;
	bool		here = node == MOT_ANY_NODE;
	void	   *object;
	uint64_t	key;
	mot_magazine *mag;

	if (here)
		node = mot_topology_node(&region->topology);
	if (limit == 0)
	{
		if (mot_pool_take(pool, class, node, purpose, &object, 1, why) == 0)
			return NULL;
		return object;
	}

	/* the process may have moved to another node, and have a magazine there */
	if (here)
		cache->node = node;
	key = KEY(atomic_load_explicit(&pool->id, memory_order_relaxed), class, node);
	mag = find_magazine(cache, key);
	if (mag == NULL)
		mag = new_magazine(cache, pool, key, limit);
	if (mag->count == 0)
		mag->count = mot_pool_take(pool, class, node, purpose, mag->objects,
								   (mag->limit + 1) / 2, why);
	return mag->count > 0 ? mag->objects[--mag->count] : NULL;
}

static void
free_slow(mot_cache *cache, mot_page *page, unsigned class, uint64_t key,
		  void *object)
{
	mot_pool   *pool = page->pool;
	mot_magazine *mag;
	unsigned	half;

	if (class == MOT_CLASS_LARGE)
	{
		mot_pool_put_large(pool, object);
		return;
	}
	if (pool->region->classes[class].cached == 0)
	{
		mot_pool_put(pool, class, &object, 1);
		return;
	}

	mag = find_magazine(cache, key);
	if (mag == NULL)
		mag = new_magazine(cache, pool, key, pool->region->classes[class].cached);
	if (mag->count == mag->limit)
	{
		/* the older ones go: the newer ones are in the processor's cache */
		half = (mag->count + 1) / 2;
		mot_pool_put(pool, class, mag->objects, half);
		mag->count -= half;
		memmove(mag->objects, mag->objects + half, mag->count * sizeof(void *));
	}
	mag->objects[mag->count++] = object;
}

/* a magazine for that key: one not in use, an empty one, or whoever's turn it is */
static mot_magazine *
new_magazine(mot_cache *cache, mot_pool *pool, uint64_t key, unsigned limit)
{
	unsigned	set = set_of(key);
	unsigned	way;
	mot_magazine *mag;

	for (way = 0; way < WAYS; way++)
		if (cache->magazines[set][way].count == 0)
			break;
	if (way == WAYS)
		way = cache->victim++ % WAYS;

	mag = &cache->magazines[set][way];
	empty_magazine(mag, cache->keys[set][way]);
	cache->keys[set][way] = key;
	mag->pool = pool;
	mag->limit = limit < MAGAZINE_OBJECTS ? limit : MAGAZINE_OBJECTS;
	return mag;
}

/* its objects go back to the pool they are of, if that still exists */
static void
empty_magazine(mot_magazine *mag, uint64_t key)
{
	mot_pool   *pool = mag->pool;

	if (mag->count == 0)
		return;
	mot_spin_lock(&pool->guard);
	MOT_STOP_POINT("magazine-returning");
	/* relaxed: it is changed under the guard */
	if (atomic_load_explicit(&pool->id, memory_order_relaxed) == KEY_POOL(key))
		mot_pool_put(pool, KEY_CLASS(key), mag->objects, mag->count);
	mot_spin_unlock(&pool->guard);
	mag->count = 0;
}
