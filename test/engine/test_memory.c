/*-------------------------------------------------------------------------
 *
 * test_memory.c
 *	  The engine's memory, one property at a time: objects of all sizes,
 *	  pools, and what happens when memory is short.
 *
 * The tests make regions of their own and check what the figures say and
 * what the kernel says (the resident size of the mapping) against what was
 * allocated.  Threads are for stress_memory.c; the region as a whole, and
 * processes that share it, are in test_region.c.
 *
 *-------------------------------------------------------------------------
 */
#include "memory_util.h"

#define POOLS 100				/* small ones */
#define CACHES 20

/*---- sizes ----*/

static void
size_classes_fit(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	unsigned	before = 0;
	int			bad = 0;

	for (size_t size = 1; size <= MOT_CLASS_MAX_SIZE; size++)
	{
		unsigned	class = mot_class_of(region, size);
		size_t		actual = region->classes[class].size;

		bad += class < before || class >= MOT_CLASS_LARGE;
		bad += actual < size || actual % 16 != 0;
		bad += class > 0 && region->classes[class - 1].size >= size;
		/* little is lost behind a page's last object */
		bad += MOT_PAGE_SIZE - actual * region->classes[class].objects > MOT_PAGE_SIZE / 64;
		/* and behind an object of up to 8 KB */
		bad += size > 16 && size <= 8192 && actual - size > (size / 7 > 16 ? size / 7 : 16);
		before = class;
	}
	CHECK(bad == 0);
	CHECK(mot_class_of(region, 0) == 0);
	CHECK(mot_class_of(region, MOT_CLASS_MAX_SIZE + 1) == MOT_CLASS_LARGE);

	/* the number of an object in its page, as rows' bitmaps need it */
	for (unsigned c = 1; c < MOT_CLASS_LARGE; c++)
		for (uint64_t i = 0; i < region->classes[c].objects; i++)
			bad += (i * region->classes[c].size / 16 * region->classes[c].reciprocal) >> 32 != i;
	CHECK(bad == 0);
	mot_region_destroy(region);
}

static void
pages_are_filled(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);

	for (size_t size = 16; size <= 32768; size *= 2)
	{
		mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
		size_t		count = 2 * MOT_PAGE_SIZE / size;
		int			bad = 0;

		for (size_t i = 0; i < count; i++)
		{
			objects[i] = mot_alloc(cache, pool, size, MOT_FOR_NEW_ROW, NULL);
			REQUIRE(objects[i] != NULL);
			bad += (uintptr_t) objects[i] % 16 != 0;
			bad += mot_usable_size(region, objects[i]) != size;
			bad += mot_object_pool(region, objects[i]) != pool;
			fill(objects[i], size, i);
		}
		for (size_t i = 0; i < count; i++)
			bad += !filled(objects[i], size, i);
		CHECK(bad == 0);
		CHECK(page_bytes(pool) == 2 * MOT_PAGE_SIZE);
		CHECK(live_bytes(pool) == 2 * MOT_PAGE_SIZE);

		for (size_t i = 0; i < count; i++)
			mot_free(cache, objects[i]);
		mot_cache_flush(cache);
		CHECK(live_bytes(pool) == 0);
		/* the one that is kept, if it is not a lot */
		CHECK(page_bytes(pool) == MOT_PAGE_SIZE || page_bytes(pool) == MOT_LOT_SIZE);
		mot_pool_destroy(pool);
	}
	mot_region_destroy(region);
}

static void
any_size_any_order(void)
{
	mot_region *region = make_region(256 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pools[4];
	static struct
	{
		void	   *object;
		size_t		size;
		mot_pool   *pool;
	}			held[5000];
	int			bad = 0;

	memset(held, 0, sizeof(held));
	for (int p = 0; p < 4; p++)
		pools[p] = make_pool(region, p % 2 ? MOT_POOL_ROWS : MOT_POOL_PLAIN);
	for (int round = 0; round < 60000; round++)
	{
		unsigned	i = test_random() % 5000;

		if (held[i].object)
		{
			bad += !filled(held[i].object, held[i].size, i);
			bad += mot_usable_size(region, held[i].object) < held[i].size;
			bad += mot_object_pool(region, held[i].object) != held[i].pool;
			mot_free(cache, held[i].object);
			held[i].object = NULL;
			continue;
		}
		held[i].size = 1 + test_random() % ((size_t) 16 << test_random() % 14);
		held[i].pool = pools[test_random() % 4];
		held[i].object = mot_alloc(cache, held[i].pool, held[i].size, MOT_FOR_DELETE, NULL);
		if (held[i].object)
			fill(held[i].object, held[i].size, i);
	}
	CHECK(bad == 0);
	for (int i = 0; i < 5000; i++)
		if (held[i].object)
			mot_free(cache, held[i].object);
	mot_cache_flush(cache);
	for (int p = 0; p < 4; p++)
	{
		CHECK(live_bytes(pools[p]) == 0);
		mot_pool_destroy(pools[p]);
	}
	CHECK(stats(region).page_bytes <= 16 * MOT_PAGE_SIZE);	/* the system pool's */
	mot_region_destroy(region);
}

static void
large_objects(void)
{
	static const size_t sizes[] = {
		32769, 40000, 65536, 65537, 300000, 1 << 20, 2 << 20, (2 << 20) + 1,
		2200000, 4 << 20, 5000001, 30 << 20
	};
	mot_region *region = make_region(128 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	size_t		count = sizeof(sizes) / sizeof(sizes[0]);
	uint64_t	expected = 0;
	void	   *all;

	for (int round = 0; round < 3; round++)
	{
		for (size_t i = 0; i < count; i++)
		{
			objects[i] = mot_alloc(cache, pool, sizes[i], MOT_FOR_DELETE, NULL);
			REQUIRE(objects[i] != NULL);
			expected += MOT_ALIGN_UP(sizes[i], MOT_PAGE_SIZE);
			CHECK(mot_usable_size(region, objects[i]) == MOT_ALIGN_UP(sizes[i], MOT_PAGE_SIZE));
			CHECK(mot_object_pool(region, objects[i]) == pool);
			fill(objects[i], sizes[i], i);
		}
		CHECK(page_bytes(pool) == expected);
		CHECK(live_bytes(pool) == expected);
		for (size_t i = 0; i < count; i++)
			CHECK(filled(objects[i], sizes[i], i));
		for (size_t i = 0; i < count; i++)
			mot_free(cache, objects[(i * 5 + (size_t) round) % count]);
		expected = 0;
		CHECK(page_bytes(pool) == 0);
		CHECK(stats(region).chunk_bytes == 0);
		CHECK(resident(region) == 0);
	}

	/* one object as large as the region, and nothing beside it */
	all = mot_alloc(cache, pool, 128 * MB, MOT_FOR_DELETE, NULL);
	CHECK(all != NULL);
	CHECK(mot_alloc(cache, pool, 1, MOT_FOR_DELETE, NULL) == NULL);
	mot_free(cache, all);
	CHECK(mot_alloc(cache, pool, 128 * MB + 1, MOT_FOR_DELETE, NULL) == NULL);
	CHECK(mot_alloc(cache, pool, SIZE_MAX - 100, MOT_FOR_DELETE, NULL) == NULL);
	CHECK(mot_alloc(cache, pool, 1, MOT_FOR_DELETE, NULL) != NULL);
	mot_region_destroy(region);
}

/*---- pools ----*/

static void
small_pools_cost_little(void)
{
	mot_region *region = make_region(256 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pools[POOLS];
	uint64_t	nothing = stats(region).page_bytes;

	for (int p = 0; p < POOLS; p++)
		pools[p] = make_pool(region, MOT_POOL_ROWS);
	CHECK(stats(region).page_bytes == nothing);
	for (int p = 0; p < POOLS; p++)
		for (int i = 0; i < 10; i++)
			REQUIRE(mot_alloc(cache, pools[p], 100, MOT_FOR_NEW_ROW, NULL) != NULL);
	for (int p = 0; p < POOLS; p++)
		CHECK(page_bytes(pools[p]) == MOT_LOT_SIZE);

	/* the lots are side by side; the engine's own need a few */
	CHECK(stats(region).page_bytes <= (POOLS / MOT_LOTS + 5) * MOT_PAGE_SIZE);
	CHECK(stats(region).chunk_bytes <= 4 * MOT_CHUNK_SIZE);
	for (int p = 0; p < POOLS; p++)
		mot_pool_destroy(pools[p]);
	CHECK(stats(region).page_bytes <= 4 * MOT_PAGE_SIZE);
	CHECK(stats(region).chunk_bytes <= MOT_CHUNK_SIZE);
	mot_region_destroy(region);
}

static void
dropped_pool_returns_chunks(unsigned flags)
{
	mot_region *region = make_region(256 * MB, 1, flags);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *a = make_pool(region, MOT_POOL_ROWS);
	mot_pool   *b = make_pool(region, MOT_POOL_PLAIN);
	mot_memory_stat full,
				half;
	size_t		rss_full,
				rss_half;

	/*
	 * pages that belong to neither, or hold others' chunks where those go
	 * back whole
	 */
	size_t		rest = region->whole_chunks ? 8 * MB : MB;

	/* two tables growing side by side, 32 MB each */
	for (size_t i = 0; i < 32 * MB / 512; i++)
	{
		void	   *x = mot_alloc(cache, a, 512, MOT_FOR_NEW_ROW, NULL);
		void	   *y = mot_alloc(cache, b, 512, MOT_FOR_DELETE, NULL);

		REQUIRE(x != NULL && y != NULL);
		memset(x, 1, 512);
		memset(y, 2, 512);
		mot_row_mark(region, x);
	}
	full = stats(region);
	rss_full = resident(region);
	CHECK(page_bytes(a) >= 32 * MB && page_bytes(a) <= 33 * MB);
	CHECK(rss_full >= 64 * MB);

	mot_pool_destroy(a);
	half = stats(region);
	rss_half = resident(region);
	/* but for the pages of which both had lots */
	CHECK(full.page_bytes - half.page_bytes >= 32 * MB - 2 * MOT_PAGE_SIZE);
	CHECK(full.chunk_bytes - half.chunk_bytes >= 30 * MB);
	CHECK(full.system_bytes - half.system_bytes >= (region->whole_chunks ? 28 : 32) * MB - 2 * MOT_PAGE_SIZE);
	CHECK(rss_full - rss_half >= (region->whole_chunks ? 28 : 32) * MB - 2 * MOT_PAGE_SIZE);

	mot_pool_destroy(b);
	CHECK(stats(region).page_bytes <= 16 * MOT_PAGE_SIZE);
	CHECK(stats(region).system_bytes <= rest);
	CHECK(resident(region) <= ((flags & MOT_REGION_PRIVATE) ? 2 * MB : rest));
	mot_region_destroy(region);
}

static void
memory_goes_back_shared(void)
{
	dropped_pool_returns_chunks(0);
}

static void
memory_goes_back_private(void)
{
	dropped_pool_returns_chunks(MOT_REGION_PRIVATE);
}

static void
freed_rows_go_back(void)
{
	mot_region *region = make_region(256 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	size_t		count = 64 * MB / 256;

	for (size_t i = 0; i < count; i++)
	{
		objects[i] = mot_alloc(cache, pool, 256, MOT_FOR_NEW_ROW, NULL);
		REQUIRE(objects[i] != NULL);
		memset(objects[i], 1, 256);
	}
	CHECK(resident(region) >= 64 * MB);
	for (size_t i = 0; i < count; i++)
		mot_free(cache, objects[i]);
	mot_cache_flush(cache);
	CHECK(page_bytes(pool) <= MOT_PAGE_SIZE);
	CHECK(stats(region).chunk_bytes <= 4 * MB);
	CHECK(resident(region) <= 9 * MB);

	/* and by another class of another pool they can be had */
	CHECK(mot_alloc(cache, make_pool(region, MOT_POOL_PLAIN), 200 * MB, MOT_FOR_DELETE, NULL) != NULL);
	mot_region_destroy(region);
}

static void
pools_come_and_go(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *first = make_pool(region, MOT_POOL_PLAIN);
	uint64_t	last = atomic_load(&first->id);
	int			bad = 0;

	for (int i = 0; i < 2000; i++)
	{
		mot_pool   *pool = make_pool(region, i % 2 ? MOT_POOL_ROWS : MOT_POOL_PLAIN);
		uint64_t	id = atomic_load(&pool->id);
		void	   *object;

		bad += id <= last;
		last = id;
		object = mot_alloc(cache, pool, 1 + test_random() % 3000, MOT_FOR_DELETE, NULL);
		REQUIRE(object != NULL);
		if (i % 3 == 0)
			mot_free(cache, object);
		mot_pool_destroy(pool);
	}
	CHECK(bad == 0);
	CHECK(atomic_load(&region->state->pools_high) == 3);	/* system, first, and
															 * one more */
	CHECK(page_bytes(first) == 0);
	CHECK(stats(region).page_bytes <= 4 * MOT_PAGE_SIZE);
	CHECK(stats(region).chunk_bytes <= MOT_CHUNK_SIZE);
	mot_region_destroy(region);
}

static void
destroyed_pool_in_other_caches(void)
{
	mot_region *region = make_region(64 * MB, 3, 0);
	mot_cache  *caches[3];
	mot_pool   *gone = make_pool(region, MOT_POOL_PLAIN);
	mot_pool   *heir;
	size_t		count = 0;
	int			bad = 0;

	for (unsigned c = 0; c < 3; c++)
	{
		caches[c] = mot_region_cache(region, c);
		for (int i = 0; i < 8; i++)
			objects[i] = mot_alloc(caches[c], gone, 64, MOT_FOR_DELETE, NULL);
		for (int i = 0; i < 8; i++)
			mot_free(caches[c], objects[i]);
	}
	mot_pool_destroy(gone);

	/* the same slot, the same pages, the same class */
	heir = make_pool(region, MOT_POOL_PLAIN);
	CHECK(heir == gone);
	for (unsigned c = 0; c < 3; c++)
		for (int i = 0; i < 1000; i++)
		{
			objects[count] = mot_alloc(caches[c], heir, 64, MOT_FOR_DELETE, NULL);
			REQUIRE(objects[count] != NULL);
			fill(objects[count], 64, count);
			count++;
		}
	for (unsigned c = 0; c < 3; c++)
		mot_cache_flush(caches[c]);
	CHECK(live_bytes(heir) == count * 64);
	for (size_t i = 0; i < count; i++)
		bad += !filled(objects[i], 64, i);
	CHECK(bad == 0);
	for (size_t i = 0; i < count; i++)
		mot_free(caches[i % 3], objects[i]);
	for (unsigned c = 0; c < 3; c++)
		mot_cache_flush(caches[c]);
	CHECK(live_bytes(heir) == 0);
	mot_region_destroy(region);
}

/*---- limits ----*/

static void
exhaustion_and_recovery(void)
{
	mot_region *region = make_region(64 * MB, 20, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *rows = make_pool(region, MOT_POOL_ROWS);
	mot_pool   *versions = make_pool(region, MOT_POOL_PLAIN);
	size_t		count = 0,
				more = 0,
				again = 0;
	int			why = 7;
	void	   *object;

	/* new rows up to the high-water mark */
	while ((object = mot_alloc(cache, rows, 128, MOT_FOR_NEW_ROW, &why)) != NULL)
		objects[count++] = object;
	CHECK(why == 0);
	CHECK(mot_region_used(region) <= MOT_HIGH_WATER(64 * MB));
	CHECK(mot_region_used(region) > MOT_HIGH_WATER(64 * MB) - MB);
	CHECK(count * 128 > 58 * MB);
	CHECK(mot_alloc(cache, rows, 128, MOT_FOR_NEW_ROW, NULL) == NULL);

	/* changes up to the end */
	while ((object = mot_alloc(cache, versions, 128, MOT_FOR_DELETE, &why)) != NULL)
		objects[count + more++] = object;
	CHECK(why == 0);
	CHECK(mot_region_used(region) == 64 * MB);
	CHECK(more * 128 > 3 * MB);

	/* what is freed can be had, below the mark by new rows too */
	for (size_t i = 0; i < more; i++)
		mot_free(cache, objects[count + i]);
	for (size_t i = 0; i < count / 2; i++)
		mot_free(cache, objects[i]);
	while ((object = mot_alloc(cache, versions, 1000, MOT_FOR_NEW_ROW, NULL)) != NULL)
		again++;
	CHECK(again * 1000 > 28 * MB);

	/*
	 * a freed object is the next one's, page or no page, though above the
	 * mark
	 */
	mot_free(cache, objects[count - 1]);
	mot_cache_flush(cache);
	CHECK(mot_alloc(cache, rows, 128, MOT_FOR_NEW_ROW, NULL) == objects[count - 1]);
	mot_region_destroy(region);
}

static void
kept_pages_serve_when_short(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pools[40];
	mot_pool   *hungry = make_pool(region, MOT_POOL_PLAIN);
	uint64_t	system;
	size_t		pages = 0;

	/* forty pools that keep an empty page each of five classes */
	for (int p = 0; p < 40; p++)
	{
		pools[p] = make_pool(region, MOT_POOL_PLAIN);
		for (size_t size = 64; size <= 1024; size *= 2)
		{
			void	   *object = mot_alloc(cache, pools[p], size, MOT_FOR_DELETE, NULL);

			REQUIRE(object != NULL);
			mot_free(cache, object);
		}
		mot_cache_flush(cache);
		CHECK(page_bytes(pools[p]) == 5 * MOT_LOT_SIZE);
	}
	system = mot_region_used(region) - 40 * 5 * MOT_LOT_SIZE;
	while (mot_alloc(cache, hungry, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL))
		pages++;
	CHECK(pages * MOT_PAGE_SIZE + system >= 64 * MB - MOT_PAGE_SIZE);
	for (int p = 0; p < 40; p++)
		CHECK(page_bytes(pools[p]) == 0);
	mot_region_destroy(region);
}

/* a page of which some objects lie in the caller's own cache */
static void
cached_objects_serve_when_short(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	mot_pool   *other = make_pool(region, MOT_POOL_PLAIN);
	size_t		count = 0;
	int			freed = 0;

	while ((objects[count] = mot_alloc(cache, pool, 4096, MOT_FOR_DELETE, NULL)) != NULL)
		count++;
	CHECK(mot_alloc(cache, other, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL) == NULL);
	for (size_t i = 0; i < count; i++)
		if (mot_object_page(region, objects[i]) == mot_object_page(region, objects[count / 2]) &&
			++freed > 0)
			objects[freed - 1] = objects[i];
	CHECK(freed == 16);
	for (int i = 0; i < freed; i++)
		mot_free(cache, objects[i]);
	CHECK(mot_alloc(cache, other, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL) != NULL);
	mot_region_destroy(region);
}

static void
group_limit(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool_group *group = mot_region_header(region);
	mot_pool   *a,
			   *b,
			   *other;
	size_t		count = 0;
	int			why = 7;
	void	   *object;

	CHECK(atomic_load(&group->bytes) == 0);
	atomic_store(&group->limit, 4 * MB + 1000);
	a = mot_pool_create(region, MOT_POOL_ROWS, group);
	b = mot_pool_create(region, MOT_POOL_PLAIN, group);
	other = make_pool(region, MOT_POOL_ROWS);
	REQUIRE(a != NULL && b != NULL);
	while ((object = mot_alloc(cache, count % 2 ? a : b, 256, MOT_FOR_NEW_ROW, &why)) != NULL)
		objects[count++] = object;
	CHECK(why == 1);
	CHECK(atomic_load(&group->bytes) == 4 * MB);
	CHECK(page_bytes(a) + page_bytes(b) == 4 * MB);
	CHECK(count >= 4 * MB / 256 - 600);
	CHECK(mot_alloc(cache, a, MB, MOT_FOR_NEW_ROW, &why) == NULL && why == 1);
	CHECK(mot_alloc(cache, other, 256, MOT_FOR_NEW_ROW, NULL) != NULL);

	/* a raised limit holds at once; a dropped pool leaves room */
	atomic_store(&group->limit, 5 * MB);
	CHECK(mot_alloc(cache, a, MB, MOT_FOR_NEW_ROW, NULL) != NULL);
	mot_pool_destroy(a);
	CHECK(atomic_load(&group->bytes) == page_bytes(b));
	mot_pool_destroy(b);
	CHECK(atomic_load(&group->bytes) == 0);
	mot_region_destroy(region);
}

static void
many_caches_leave_memory(void)
{
	mot_region *region = make_region(64 * MB, CACHES, 0);
	mot_pool   *pools[10];
	mot_pool   *last;
	size_t		count = 0;
	mot_cache  *cache;

	/* every cache holds as many objects of as many classes as it will */
	for (int p = 0; p < 10; p++)
		pools[p] = make_pool(region, MOT_POOL_PLAIN);
	for (unsigned c = 0; c < CACHES; c++)
	{
		cache = mot_region_cache(region, c);
		for (int p = 0; p < 10; p++)
			for (size_t size = 16; size <= 4096; size *= 2)
			{
				for (int i = 0; i < 40; i++)
					objects[i] = mot_alloc(cache, pools[p], size, MOT_FOR_DELETE, NULL);
				for (int i = 0; i < 40; i++)
					if (objects[i])
						mot_free(cache, objects[i]);
			}
	}
	cache = mot_region_cache(region, 3);
	last = make_pool(region, MOT_POOL_PLAIN);
	while (mot_alloc(cache, last, 512, MOT_FOR_DELETE, NULL))
		count++;
	printf("# with %d full caches %zu of 64 MB can be used\n", CACHES, count * 512 / MB);
	CHECK(count * 512 > 48 * MB);

	for (unsigned c = 0; c < CACHES; c++)
		mot_cache_flush(mot_region_cache(region, c));
	while (mot_alloc(cache, last, 512, MOT_FOR_DELETE, NULL))
		count++;
	CHECK(count * 512 > 62 * MB);
	mot_region_destroy(region);
}

/*---- time ----*/

static void
time_of_alloc_and_free(void)
{
	mot_region *region = make_region(512 * MB, 20, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	size_t		count = 500000;
	double		start,
				alloc,
				release,
				mark,
				walk;

	for (size_t i = 0; i < 1000; i++)
		objects[i] = mot_alloc(cache, pool, 128, MOT_FOR_NEW_ROW, NULL);
	for (size_t i = 0; i < 1000; i++)
		mot_free(cache, objects[i]);
	start = test_seconds();
	for (size_t i = 0; i < 4 * count; i++)
		mot_free(cache, mot_alloc(cache, pool, 128, MOT_FOR_NEW_ROW, NULL));
	printf("# %.1f ns for alloc and free of one object\n",
		   (test_seconds() - start) / (4.0 * (double) count) * 1e9);

	/* memory is touched before it is timed */
	for (int round = 0; round < 2; round++)
	{
		start = test_seconds();
		for (size_t i = 0; i < count; i++)
		{
			objects[i] = mot_alloc(cache, pool, 128, MOT_FOR_NEW_ROW, NULL);
			if (round == 0)
				memset(objects[i], 0, 128);
		}
		alloc = test_seconds() - start;
		start = test_seconds();
		for (size_t i = 0; i < count; i++)
			mot_row_mark(region, objects[i]);
		mark = test_seconds() - start;
		start = test_seconds();
		CHECK(count_rows(pool) == count);
		walk = test_seconds() - start;
		for (size_t i = 0; i < count; i++)
			mot_row_unmark(region, objects[i]);

		/* from each page something stays, so that no page leaves */
		start = test_seconds();
		for (size_t i = 0; i < count; i++)
			if (i % 512 != 100)
				mot_free(cache, objects[i]);
		release = test_seconds() - start;
		for (size_t i = 0; i < count; i++)
			if (i % 512 == 100 && round > 0)
				mot_free(cache, objects[i]);
		printf("# round %d, %zu rows of 128 bytes: alloc %.1f ns, mark %.1f ns, walk %.1f ns, free %.1f ns\n",
			   round, count, alloc * 1e9 / (double) count, mark * 1e9 / (double) count,
			   walk * 1e9 / (double) count, release * 1e9 / (double) count);
	}
	mot_region_destroy(region);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(size_classes_fit);
	RUN(pages_are_filled);
	RUN(any_size_any_order);
	RUN(large_objects);
	RUN(small_pools_cost_little);
	RUN(memory_goes_back_shared);
	RUN(memory_goes_back_private);
	RUN(freed_rows_go_back);
	RUN(pools_come_and_go);
	RUN(destroyed_pool_in_other_caches);
	RUN(exhaustion_and_recovery);
	RUN(kept_pages_serve_when_short);
	RUN(cached_objects_serve_when_short);
	RUN(group_limit);
	RUN(many_caches_leave_memory);
	RUN(time_of_alloc_and_free);
	return test_end();
}
