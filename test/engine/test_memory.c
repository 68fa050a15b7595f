/*-------------------------------------------------------------------------
 *
 * test_memory.c
 *	  The engine's memory, one property at a time.
 *
 * The tests make regions of their own and check what the figures say and
 * what the kernel says (the resident size of the mapping) against what was
 * allocated.  Threads and timing are for stress_memory.c; here several
 * processes appear only where their order does not matter.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "memory_internal.h"
#include "test.h"

#define MB ((size_t) 1 << 20)
#define ALL_NODES UINT32_MAX

#define POOLS 100				/* small ones */
#define CACHES 20
#define CHILDREN 4
#define EACH 20000				/* rows a child makes */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static void *objects[1024 * 1024];

static mot_region *
make_region(size_t size, unsigned caches, unsigned flags)
{
	char		err[200] = "";
	mot_region *region = mot_region_create(size, caches, 1000, flags, err, sizeof(err));

	if (region == NULL)
		printf("# %s\n", err);
	REQUIRE(region != NULL);
	return region;
}

static mot_pool *
make_pool(mot_region *region, mot_pool_kind kind)
{
	mot_pool   *pool = mot_pool_create(region, kind, NULL);

	REQUIRE(pool != NULL);
	return pool;
}

static uint64_t
page_bytes(mot_pool *pool)
{
	uint64_t	pages,
				live;

	mot_pool_stats(pool, &pages, &live);
	return pages;
}

static uint64_t
live_bytes(mot_pool *pool)
{
	uint64_t	pages,
				live;

	mot_pool_stats(pool, &pages, &live);
	return live;
}

static mot_memory_stat
stats(mot_region *region)
{
	mot_memory_stat stat;

	mot_memory_stats(region, ALL_NODES, &stat);
	return stat;
}

/* bytes of the chunks that are resident in this process */
static size_t
resident(mot_region *region)
{
	FILE	   *smaps = fopen("/proc/self/smaps", "r");
	char		line[512];
	bool		inside = false;
	size_t		total = 0;

	REQUIRE(smaps != NULL);
	while (fgets(line, sizeof(line), smaps))
	{
		unsigned long from,
					to,
					kb;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from >= (unsigned long) region->data &&
				to <= (unsigned long) region->data + region->max_bytes;
		else if (inside && sscanf(line, "Rss: %lu kB", &kb) == 1)
			total += kb * 1024;
	}
	fclose(smaps);
	return total;
}

/* a pattern that says which object and how long, at its ends and in between */
static void
fill(void *object, size_t size, uint64_t tag)
{
	unsigned char *bytes = object;
	size_t		step = size > 4096 ? 1021 : 1;

	for (size_t i = 0; i < size; i += step)
		bytes[i] = (unsigned char) (tag * 31 + i);
	bytes[size - 1] = (unsigned char) tag;
}

static bool
filled(void *object, size_t size, uint64_t tag)
{
	unsigned char *bytes = object;
	size_t		step = size > 4096 ? 1021 : 1;

	if (bytes[size - 1] != (unsigned char) tag)
		return false;
	for (size_t i = 0; i < size - 1; i += step)
		if (bytes[i] != (unsigned char) (tag * 31 + i))
			return false;
	return true;
}

static uint64_t
count_rows(mot_pool *pool)
{
	uint64_t	rows = 0;
	mot_page_view view;

	for (uint64_t i = 0; i < mot_pool_directory_size(pool); i++)
		if (mot_pool_page(pool, i, &view))
			while (mot_page_next(pool, &view))
				rows++;
	return rows;
}

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
		CHECK(page_bytes(pool) == MOT_PAGE_SIZE);	/* the one that is kept */
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
		held[i].object = mot_alloc(cache, held[i].pool, held[i].size, MOT_FOR_CHANGE, NULL);
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
			objects[i] = mot_alloc(cache, pool, sizes[i], MOT_FOR_CHANGE, NULL);
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
	all = mot_alloc(cache, pool, 128 * MB, MOT_FOR_CHANGE, NULL);
	CHECK(all != NULL);
	CHECK(mot_alloc(cache, pool, 1, MOT_FOR_CHANGE, NULL) == NULL);
	mot_free(cache, all);
	CHECK(mot_alloc(cache, pool, 128 * MB + 1, MOT_FOR_CHANGE, NULL) == NULL);
	CHECK(mot_alloc(cache, pool, SIZE_MAX - 100, MOT_FOR_CHANGE, NULL) == NULL);
	CHECK(mot_alloc(cache, pool, 1, MOT_FOR_CHANGE, NULL) != NULL);
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
		CHECK(page_bytes(pools[p]) == MOT_PAGE_SIZE);

	/* the pages are side by side; the engine's own need a few */
	CHECK(stats(region).page_bytes <= (POOLS + 4) * MOT_PAGE_SIZE);
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

	/* two tables growing side by side, 32 MB each */
	for (size_t i = 0; i < 32 * MB / 512; i++)
	{
		void	   *x = mot_alloc(cache, a, 512, MOT_FOR_NEW_ROW, NULL);
		void	   *y = mot_alloc(cache, b, 512, MOT_FOR_CHANGE, NULL);

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
	CHECK(full.page_bytes - half.page_bytes >= 32 * MB);
	CHECK(full.chunk_bytes - half.chunk_bytes >= 30 * MB);
	CHECK(full.system_bytes - half.system_bytes >= 32 * MB);
	CHECK(rss_full - rss_half >= 32 * MB);

	mot_pool_destroy(b);
	CHECK(stats(region).page_bytes <= 16 * MOT_PAGE_SIZE);
	CHECK(stats(region).system_bytes <= 16 * MOT_PAGE_SIZE);
	CHECK(resident(region) <= ((flags & MOT_REGION_PRIVATE) ? 2 * MB : MB));
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
	CHECK(page_bytes(pool) == MOT_PAGE_SIZE);
	CHECK(stats(region).chunk_bytes <= 4 * MB);
	CHECK(resident(region) <= 9 * MB);

	/* and by another class of another pool they can be had */
	CHECK(mot_alloc(cache, make_pool(region, MOT_POOL_PLAIN), 200 * MB, MOT_FOR_CHANGE, NULL) != NULL);
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
		object = mot_alloc(cache, pool, 1 + test_random() % 3000, MOT_FOR_CHANGE, NULL);
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
			objects[i] = mot_alloc(caches[c], gone, 64, MOT_FOR_CHANGE, NULL);
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
			objects[count] = mot_alloc(caches[c], heir, 64, MOT_FOR_CHANGE, NULL);
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
	while ((object = mot_alloc(cache, versions, 128, MOT_FOR_CHANGE, &why)) != NULL)
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
			void	   *object = mot_alloc(cache, pools[p], size, MOT_FOR_CHANGE, NULL);

			REQUIRE(object != NULL);
			mot_free(cache, object);
		}
		mot_cache_flush(cache);
		CHECK(page_bytes(pools[p]) == 5 * MOT_PAGE_SIZE);
	}
	system = mot_region_used(region) - 40 * 5 * MOT_PAGE_SIZE;
	while (mot_alloc(cache, hungry, MOT_PAGE_SIZE, MOT_FOR_CHANGE, NULL))
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

	while ((objects[count] = mot_alloc(cache, pool, 4096, MOT_FOR_CHANGE, NULL)) != NULL)
		count++;
	CHECK(mot_alloc(cache, other, MOT_PAGE_SIZE, MOT_FOR_CHANGE, NULL) == NULL);
	for (size_t i = 0; i < count; i++)
		if (mot_object_page(region, objects[i]) == mot_object_page(region, objects[count / 2]) &&
			++freed > 0)
			objects[freed - 1] = objects[i];
	CHECK(freed == 16);
	for (int i = 0; i < freed; i++)
		mot_free(cache, objects[i]);
	CHECK(mot_alloc(cache, other, MOT_PAGE_SIZE, MOT_FOR_CHANGE, NULL) != NULL);
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
					objects[i] = mot_alloc(cache, pools[p], size, MOT_FOR_CHANGE, NULL);
				for (int i = 0; i < 40; i++)
					if (objects[i])
						mot_free(cache, objects[i]);
			}
	}
	cache = mot_region_cache(region, 3);
	last = make_pool(region, MOT_POOL_PLAIN);
	while (mot_alloc(cache, last, 512, MOT_FOR_CHANGE, NULL))
		count++;
	printf("# with %d full caches %zu of 64 MB can be used\n", CACHES, count * 512 / MB);
	CHECK(count * 512 > 48 * MB);

	for (unsigned c = 0; c < CACHES; c++)
		mot_cache_flush(mot_region_cache(region, c));
	while (mot_alloc(cache, last, 512, MOT_FOR_CHANGE, NULL))
		count++;
	CHECK(count * 512 > 62 * MB);
	mot_region_destroy(region);
}

/*---- the region ----*/

static void
regions_of_all_sizes(void)
{
#ifdef SANITIZED
	size_t		largest = (size_t) 4 << 30;
#else
	size_t		largest = (size_t) 4 << 40;
#endif
	char		err[200] = "";
	mot_region *region;
	mot_pool   *pool;
	double		start = test_seconds();
	char	   *object;

	region = make_region(largest, 5000, 0);
	printf("# a region of %zu GB created in %.1f ms\n", largest >> 30,
		   (test_seconds() - start) * 1e3);
	CHECK(test_seconds() - start < 1.0);
	CHECK(mot_region_max(region) == largest);
	pool = make_pool(region, MOT_POOL_ROWS);
	object = mot_alloc(mot_region_cache(region, 4999), pool, largest / 2, MOT_FOR_NEW_ROW, NULL);
	CHECK(object != NULL);
	object[0] = object[largest / 2 - 1] = 1;
	mot_row_mark(region, object);
	CHECK(count_rows(pool) == 1);
	CHECK(mot_alloc(mot_region_cache(region, 7), pool, 10, MOT_FOR_NEW_ROW, NULL) != NULL);
	mot_pool_destroy(pool);
	start = test_seconds();
	mot_region_reset(region);
	CHECK(test_seconds() - start < 1.0);
	mot_region_destroy(region);

	CHECK(mot_region_create(0, 1, 0, 0, err, sizeof(err)) == NULL);
	CHECK(err[0] != '\0');
	CHECK(mot_region_create(SIZE_MAX, 1, 0, 0, err, sizeof(err)) == NULL);

	/*
	 * no huge pages, as on most machines: one fails with a reason, one goes
	 * without
	 */
	err[0] = '\0';
	region = mot_region_create(64 * MB, 1, 0, MOT_REGION_HUGE_ON, err, sizeof(err));
	if (region)
		mot_region_destroy(region);
	else
		CHECK(strstr(err, "huge pages") != NULL);
	region = make_region(64 * MB, 1, MOT_REGION_HUGE_TRY);
	pool = make_pool(region, MOT_POOL_PLAIN);
	object = mot_alloc(mot_region_cache(region, 0), pool, 60 * MB, MOT_FOR_CHANGE, NULL);
	REQUIRE(object != NULL);
	memset(object, 1, 60 * MB);
	mot_pool_destroy(pool);
	mot_region_destroy(region);
}

static void
reset_makes_new(void)
{
	mot_region *region = make_region(64 * MB, 4, 0);
	char	   *header = mot_region_header(region);

	for (int round = 0; round < 3; round++)
	{
		mot_pool   *pool;
		size_t		count = 0;
		void	   *object;

		for (int i = 0; i < 1000; i++)
			CHECK(header[i] == 0);
		memset(header, 1, 1000);
		CHECK(mot_region_used(region) == 0);
		CHECK(stats(region).chunk_bytes == 0 && stats(region).system_bytes == 0);
		CHECK(resident(region) == 0);

		pool = make_pool(region, MOT_POOL_ROWS);
		CHECK(mot_pool_directory_size(pool) == 0);
		while ((object = mot_alloc(mot_region_cache(region, count % 4), pool, 200,
								   MOT_FOR_NEW_ROW, NULL)) != NULL)
		{
			memset(object, 1, 200);
			mot_row_mark(region, object);
			count++;
		}
		CHECK(count * 208 > 58 * MB);
		CHECK(count_rows(pool) == count);
		mot_region_reset(region);
	}
	mot_region_destroy(region);
}

static void
offsets_name_objects(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	void	   *object = mot_alloc(mot_region_cache(region, 0), pool, 100, MOT_FOR_NEW_ROW, NULL);
	uint64_t	offset = mot_region_offset(mot_region_base(region), object);

	CHECK(offset != 0 && offset % 16 == 0);
	CHECK((char *) mot_region_base(region) + offset == object);
	mot_region_destroy(region);
}

/*---- rows ----*/

static void
rows_are_walked_once(void)
{
	mot_region *region = make_region(256 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	size_t		count = 60000;
	mot_page_view view;
	size_t		marked = 0;
	uint64_t	directory;
	int			bad = 0;

	/* rows of all sizes, each beginning with a counter of visits */
	for (size_t i = 0; i < count; i++)
	{
		size_t		size = i % 1000 == 0 ? 40000 + test_random() % 200000 :
		8 + test_random() % 900;

		objects[i] = mot_alloc(cache, pool, size, MOT_FOR_NEW_ROW, NULL);
		REQUIRE(objects[i] != NULL);
		*(uint64_t *) objects[i] = 0;
		CHECK(mot_usable_size(region, objects[i]) >= 32);
		if (i % 3 != 0 || i % 1000 == 0)
		{
			uint32_t	before = mot_page_insert_counter(region, mot_object_page(region, objects[i]));

			mot_row_mark(region, objects[i]);
			bad += mot_page_insert_counter(region, mot_object_page(region, objects[i])) != before + 1;
		}
	}
	CHECK(bad == 0);
	for (uint64_t i = 0; i < mot_pool_directory_size(pool); i++)
		if (mot_pool_page(pool, i, &view))
		{
			uint64_t   *row;

			CHECK(view.insert_counter == mot_page_insert_counter(region, view.page_no));
			while ((row = mot_page_next(pool, &view)) != NULL)
			{
				bad += mot_object_page(region, row) != view.page_no;
				(*row)++;
			}
		}
	for (size_t i = 0; i < count; i++)
	{
		bool		is_row = i % 3 != 0 || i % 1000 == 0;

		bad += *(uint64_t *) objects[i] != is_row;
		bad += mot_row_marked(region, objects[i]) != is_row;
		marked += is_row;
	}
	CHECK(bad == 0);
	CHECK(count_rows(pool) == marked);

	/* pages leave and others take their entries */
	directory = mot_pool_directory_size(pool);
	for (size_t i = 0; i < count; i++)
	{
		if (mot_row_marked(region, objects[i]))
			mot_row_unmark(region, objects[i]);
		mot_free(cache, objects[i]);
	}
	mot_cache_flush(cache);
	CHECK(count_rows(pool) == 0);
	CHECK(page_bytes(pool) <= 64 * MOT_PAGE_SIZE);
	for (size_t i = 0; i < 20000; i++)
	{
		objects[i] = mot_alloc(cache, pool, 300, MOT_FOR_NEW_ROW, NULL);
		mot_row_mark(region, objects[i]);
	}
	CHECK(count_rows(pool) == 20000);
	CHECK(mot_pool_directory_size(pool) == directory);
	CHECK(mot_pool_joins(pool) > directory);
	mot_region_destroy(region);
}

/* a walker stands in a page while it leaves and comes back as another */
static void
walker_notices_a_page_gone(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	mot_pool   *thief = make_pool(region, MOT_POOL_ROWS);
	mot_page_view view,
				later;
	void	   *guard = mot_alloc(cache, pool, 64, MOT_FOR_NEW_ROW, NULL);
	void	   *row;
	bool		back = false;

	/* two pages of one class, of which one can leave and one is kept */
	for (int i = 0; i < 1024; i++)
		objects[i] = mot_alloc(cache, pool, 128, MOT_FOR_NEW_ROW, NULL);
	mot_cache_flush(cache);
	row = objects[1023];
	mot_row_mark(region, row);
	for (uint64_t i = 0; i < mot_pool_directory_size(pool); i++)
		if (mot_pool_page(pool, i, &view) &&
			view.page_no == mot_object_page(region, row))
			break;
	CHECK(view.object_size == 128 && view.objects == 512);

	mot_row_unmark(region, row);
	for (int i = 0; i < 1024; i++)
		mot_free(cache, objects[i]);
	mot_cache_flush(cache);
	(void) mot_pools_shrink(region);
	CHECK(mot_usable_size(region, row) == 0);

	/* another pool's rows in that page are none of the walker's */
	for (int i = 0; i < 2000 && !back; i++)
	{
		void	   *other = mot_alloc(cache, thief, 48, MOT_FOR_NEW_ROW, NULL);

		mot_row_mark(region, other);
		back = mot_object_page(region, other) == view.page_no;
	}
	CHECK(back);
	later = view;
	CHECK(mot_page_next(pool, &later) == NULL);

	/* nor its own pool's rows, of another size, once it has come back */
	mot_pool_destroy(thief);
	back = false;
	for (int i = 0; i < 2000; i++)
	{
		void	   *other = mot_alloc(cache, pool, 48, MOT_FOR_NEW_ROW, NULL);

		mot_row_mark(region, other);
		back |= mot_object_page(region, other) == view.page_no;
	}
	CHECK(back);
	later = view;
	CHECK(mot_page_next(pool, &later) == NULL);
	CHECK(count_rows(pool) == 2000);
	mot_row_mark(region, guard);
	CHECK(count_rows(pool) == 2001);
	mot_region_destroy(region);
}

/* rows that were never unmarked are not the next pool's */
static void
dropped_rows_leave_no_marks(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);

	for (int round = 0; round < 4; round++)
	{
		mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
		int			count = 100000;
		int			marked = 0;

		for (int i = 0; i < count; i++)
			objects[i] = mot_alloc(cache, pool, 64 + 32 * (size_t) round, MOT_FOR_NEW_ROW, NULL);
		CHECK(count_rows(pool) == 0);
		for (int i = 0; i < count; i++)
			if (mot_row_marked(region, objects[i]))
				marked++;
			else
				mot_row_mark(region, objects[i]);
		CHECK(marked == 0);
		CHECK(count_rows(pool) == (uint64_t) count);
		mot_pool_destroy(pool);
	}
	mot_region_destroy(region);
}

/*---- orders of events that are rare ----*/

#ifdef MOT_STOP_POINTS

/*
 * A thread of the test's that reaches the named point stops there until it
 * is let go; the test's own thread passes.
 */
static const char *stop_at;
static pthread_t stop_not;
static atomic_bool stopped;
static atomic_bool let_go;
static atomic_bool finished;

static void
stop_here(const char *name)
{
	if (stop_at == NULL || strcmp(name, stop_at) != 0 ||
		pthread_equal(pthread_self(), stop_not))
		return;
	atomic_store(&stopped, true);
	while (!atomic_load(&let_go))
		usleep(100);
}

static pthread_t
start_and_stop(const char *name, void *(*function) (void *), void *arg)
{
	pthread_t	thread;

	atomic_store(&stopped, false);
	atomic_store(&let_go, false);
	atomic_store(&finished, false);
	stop_at = name;
	stop_not = pthread_self();
	mot_stop_point_handler = stop_here;
	REQUIRE(pthread_create(&thread, NULL, function, arg) == 0);
	while (!atomic_load(&stopped))
		usleep(100);
	return thread;
}

static void *
free_and_tell(void *object)
{
	mot_region *region = ((mot_region **) object)[0];

	mot_free(mot_region_cache(region, 1), ((void **) object)[1]);
	atomic_store(&finished, true);
	return NULL;
}

static void *
flush_and_tell(void *region)
{
	mot_cache_flush(mot_region_cache(region, 1));
	atomic_store(&finished, true);
	return NULL;
}

static void *
destroy_and_tell(void *pool)
{
	mot_pool_destroy(pool);
	atomic_store(&finished, true);
	return NULL;
}

static void *
let_go_soon(void *arg)
{
	usleep(50 * 1000);
	atomic_store(&let_go, true);
	return arg;
}

/* the only free chunk is on its way back: who needs it gets it all the same */
static void
returning_chunk_is_waited_for(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	pthread_t	threads[2];
	void	   *args[2];
	size_t		count = 0;

	/* 31 pages of it are free and not charged, but in no list while it goes */
	while ((objects[count] = mot_alloc(cache, pool, MOT_PAGE_SIZE, MOT_FOR_CHANGE, NULL)) != NULL)
		count++;
	CHECK(count == 32 * 32);
	args[0] = region;
	args[1] = objects[500];
	for (size_t i = 0; i < count; i++)
		if (i != 500 && mot_object_page(region, objects[i]) / 32 ==
			mot_object_page(region, objects[500]) / 32)
			mot_free(cache, objects[i]);
	threads[0] = start_and_stop("chunk-returning", free_and_tell, args);
	CHECK(mot_region_used(region) <= 63 * MB);
	REQUIRE(pthread_create(&threads[1], NULL, let_go_soon, NULL) == 0);
	CHECK(mot_alloc(cache, pool, MOT_PAGE_SIZE, MOT_FOR_CHANGE, NULL) != NULL);
	CHECK(atomic_load(&let_go));
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	mot_stop_point_handler = NULL;
	mot_region_destroy(region);
}

/* a pool does not go while another process puts its cached objects back */
static void
destroy_waits_for_a_flush(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	mot_cache  *cache = mot_region_cache(region, 1);
	pthread_t	flusher,
				destroyer;

	mot_free(cache, mot_alloc(cache, pool, 64, MOT_FOR_CHANGE, NULL));
	flusher = start_and_stop("magazine-returning", flush_and_tell, region);
	REQUIRE(pthread_create(&destroyer, NULL, destroy_and_tell, pool) == 0);
	usleep(50 * 1000);
	CHECK(page_bytes(pool) == MOT_PAGE_SIZE);
	CHECK(!atomic_load(&finished));
	atomic_store(&let_go, true);
	pthread_join(flusher, NULL);
	pthread_join(destroyer, NULL);
	mot_stop_point_handler = NULL;
	CHECK(mot_region_used(region) <= 2 * MOT_PAGE_SIZE);
	mot_region_destroy(region);
}

/* and a flush that comes while it goes leaves its objects alone */
static void
flush_forgets_a_pool_that_goes(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	mot_cache  *cache = mot_region_cache(region, 0);
	pthread_t	destroyer;

	mot_free(cache, mot_alloc(cache, pool, 64, MOT_FOR_CHANGE, NULL));
	destroyer = start_and_stop("pool-destroy", destroy_and_tell, pool);
	CHECK(live_bytes(pool) > 0);
	mot_cache_flush(cache);
	CHECK(live_bytes(pool) > 0);
	CHECK(page_bytes(pool) == MOT_PAGE_SIZE);
	atomic_store(&let_go, true);
	pthread_join(destroyer, NULL);
	mot_stop_point_handler = NULL;
	CHECK(mot_region_used(region) <= 2 * MOT_PAGE_SIZE);
	mot_region_destroy(region);
}

/* a row marked, its page's counter not yet: the scan that missed it will know */
static void *
mark_and_tell(void *args)
{
	mot_row_mark(((mot_region **) args)[0], ((void **) args)[1]);
	atomic_store(&finished, true);
	return NULL;
}

static void
mark_comes_before_its_counter(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	mot_page_view before,
				between;
	void	   *args[2];
	pthread_t	marker;

	args[0] = region;
	args[1] = mot_alloc(mot_region_cache(region, 0), pool, 64, MOT_FOR_NEW_ROW, NULL);
	CHECK(mot_pool_page(pool, 0, &before));
	CHECK(mot_page_next(pool, &before) == NULL);
	marker = start_and_stop("row-marked", mark_and_tell, args);
	CHECK(mot_pool_page(pool, 0, &between));
	CHECK(mot_page_next(pool, &between) == args[1]);
	CHECK(between.insert_counter == before.insert_counter);
	atomic_store(&let_go, true);
	pthread_join(marker, NULL);
	mot_stop_point_handler = NULL;
	CHECK(mot_page_insert_counter(region, before.page_no) == before.insert_counter + 1);
	mot_region_destroy(region);
}

#endif							/* MOT_STOP_POINTS */

/*---- nodes ----*/

static void
eight_nodes(void)
{
	mot_region *region;
	mot_pool   *pool;
	mot_memory_stat stat;
	uint64_t	before[8];
	mot_cache  *cache;
	size_t		count = 0;
	int			bad = 0;

	setenv("HWLOC_SYNTHETIC", "node:8 core:2 pu:1", 1);
	region = make_region(64 * MB, 16, 0);
	unsetenv("HWLOC_SYNTHETIC");
	CHECK(mot_region_nodes(region) == 8);
	pool = make_pool(region, MOT_POOL_ROWS);

	/* each allocates on its own node */
	for (unsigned n = 0; n < 8; n++)
	{
		mot_topology_pretended_cpu = (int) (n * 2 + 1);
		CHECK(mot_region_current_node(region) == n);
		for (int i = 0; i < 1000; i++)
		{
			objects[count] = mot_alloc(mot_region_cache(region, n), pool, 256, MOT_FOR_NEW_ROW, NULL);
			REQUIRE(objects[count] != NULL);
			mot_row_mark(region, objects[count]);
			bad += region->chunks[mot_object_page(region, objects[count]) / 32].node != n;
			count++;
		}
		mot_memory_stats(region, n, &stat);
		CHECK(stat.page_bytes >= 4 * MOT_PAGE_SIZE && stat.page_bytes <= 6 * MOT_PAGE_SIZE);
		CHECK(stat.chunk_bytes == MOT_CHUNK_SIZE && stat.max_bytes == 0);
		before[n] = stat.page_bytes;
	}
	CHECK(bad == 0);
	CHECK(count_rows(pool) == 8000);

	/* one frees them all: they go home */
	mot_topology_pretended_cpu = 0;
	cache = mot_region_cache(region, 9);
	for (size_t i = 0; i < count; i++)
	{
		mot_row_unmark(region, objects[i]);
		mot_free(cache, objects[i]);
	}
	for (unsigned n = 0; n < 16; n++)
		mot_cache_flush(mot_region_cache(region, n));
	CHECK(live_bytes(pool) == 0);
	for (unsigned n = 0; n < 8; n++)
	{
		mot_memory_stats(region, n, &stat);
		CHECK(stat.page_bytes == before[n] - 3 * MOT_PAGE_SIZE);
	}

	/* a process that moves takes memory where it is now */
	for (unsigned n = 0; n < 8; n++)
	{
		mot_topology_pretended_cpu = (int) (n * 2);
		for (int i = 0; i < 100; i++)
			objects[i] = mot_alloc(cache, pool, 256, MOT_FOR_NEW_ROW, NULL);
		CHECK(region->chunks[mot_object_page(region, objects[99]) / 32].node == n);
	}

	/* and one alone can use the memory of all */
	mot_topology_pretended_cpu = 6;
	count = 0;
	while (mot_alloc(cache, pool, 4000, MOT_FOR_CHANGE, NULL))
		count++;
	CHECK(count * 4096 > 56 * MB);
	mot_pool_destroy(pool);
	CHECK(stats(region).page_bytes <= 24 * MOT_PAGE_SIZE);	/* the engine's, of any
															 * node */
	mot_topology_pretended_cpu = -1;
	mot_region_destroy(region);
}

/* a large region's chunks belong to nodes by spans; all of them can be had */
static void
spans_of_chunks(void)
{
	mot_region *region;
	mot_pool   *pool;
	mot_cache  *cache;
	size_t		chunks = 40000;
	size_t		count = 0;

	setenv("HWLOC_SYNTHETIC", "node:3 core:1 pu:1", 1);
	region = make_region(chunks * MOT_CHUNK_SIZE, 1, 0);
	unsetenv("HWLOC_SYNTHETIC");
	CHECK(region->span_shift == 3);
	pool = make_pool(region, MOT_POOL_PLAIN);
	cache = mot_region_cache(region, 0);
	for (;; count++)
	{
		mot_topology_pretended_cpu = (int) (count % 3);
		objects[count] = mot_alloc(cache, pool, MOT_CHUNK_SIZE, MOT_FOR_CHANGE, NULL);
		if (objects[count] == NULL)
			break;
	}
	CHECK(count == chunks);
	for (size_t i = 0; i < count; i++)
		mot_free(cache, objects[i]);
	CHECK(stats(region).chunk_bytes == 0);
	CHECK(region->state->spans_assigned == 0);
	CHECK(mot_alloc(cache, pool, chunks * MOT_CHUNK_SIZE, MOT_FOR_CHANGE, NULL) != NULL);
	mot_topology_pretended_cpu = -1;
	mot_region_destroy(region);
}

/*---- processes ----*/

static void
processes_share(void)
{
	mot_region *region = make_region(128 * MB, CHILDREN + 1, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	uint64_t  **lists = mot_region_header(region);
	uint64_t	seen[CHILDREN] = {0};
	pid_t		children[CHILDREN];
	mot_page_view view;
	int			bad = 0;

	fflush(stdout);
	for (uint64_t c = 0; c < CHILDREN; c++)
	{
		children[c] = fork();
		REQUIRE(children[c] >= 0);
		if (children[c] == 0)
		{
			mot_cache  *cache = mot_region_cache(region, (unsigned) c);
			uint64_t	rng = test_seed + c;

			for (uint64_t i = 0; i < EACH; i++)
			{
				size_t		size = 24 + test_random_from(&rng) % 400;
				uint64_t   *row = mot_alloc(cache, pool, size, MOT_FOR_NEW_ROW, NULL);

				REQUIRE(row != NULL);
				row[0] = c;
				row[1] = size;
				row[2] = (uint64_t) lists[c];	/* its rows, linked */
				lists[c] = row;
				mot_row_mark(region, row);
			}
			test_child_exit();
		}
	}
	for (int c = 0; c < CHILDREN; c++)
		CHECK(test_child_ok(children[c]));

	CHECK(count_rows(pool) == CHILDREN * EACH);
	for (uint64_t i = 0; i < mot_pool_directory_size(pool); i++)
		if (mot_pool_page(pool, i, &view))
		{
			uint64_t   *row;

			while ((row = mot_page_next(pool, &view)) != NULL)
			{
				bad += row[0] >= CHILDREN || row[1] > mot_usable_size(region, row);
				seen[row[0] % CHILDREN]++;
			}
		}
	CHECK(bad == 0);
	for (int c = 0; c < CHILDREN; c++)
		CHECK(seen[c] == EACH);

	/* others free them, all at a time, each the next one's */
	for (int c = 0; c < CHILDREN; c++)
	{
		children[c] = fork();
		REQUIRE(children[c] >= 0);
		if (children[c] == 0)
		{
			mot_cache  *cache = mot_region_cache(region, (unsigned) c);
			uint64_t   *next;

			for (uint64_t *row = lists[(c + 1) % CHILDREN]; row; row = next)
			{
				next = (uint64_t *) row[2];
				mot_row_unmark(region, row);
				mot_free(cache, row);
			}
			test_child_exit();
		}
	}
	for (int c = 0; c < CHILDREN; c++)
		CHECK(test_child_ok(children[c]));
	for (unsigned c = 0; c < CHILDREN; c++)
		mot_cache_flush(mot_region_cache(region, c));
	CHECK(count_rows(pool) == 0);
	CHECK(live_bytes(pool) == 0);
	mot_pool_destroy(pool);
	mot_region_destroy(region);
}

static void
cache_outlives_its_process(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	void	  **left = mot_region_header(region);
	pid_t		child;

	fflush(stdout);
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0)
	{
		mot_cache  *cache = mot_region_cache(region, 1);

		for (int i = 0; i < 5; i++)
			left[i] = mot_alloc(cache, pool, 100, MOT_FOR_CHANGE, NULL);
		for (int i = 0; i < 5; i++)
			mot_free(cache, left[i]);
		test_child_exit();
	}
	CHECK(test_child_ok(child));

	/* the slot's next owner gets just those, last freed first */
	for (int i = 4; i >= 0; i--)
		CHECK(mot_alloc(mot_region_cache(region, 1), pool, 100, MOT_FOR_CHANGE, NULL) == left[i]);
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
	RUN(regions_of_all_sizes);
	RUN(reset_makes_new);
	RUN(offsets_name_objects);
	RUN(rows_are_walked_once);
	RUN(walker_notices_a_page_gone);
	RUN(dropped_rows_leave_no_marks);
#ifdef MOT_STOP_POINTS
	RUN(returning_chunk_is_waited_for);
	RUN(destroy_waits_for_a_flush);
	RUN(flush_forgets_a_pool_that_goes);
	RUN(mark_comes_before_its_counter);
#endif
	RUN(eight_nodes);
	RUN(spans_of_chunks);
	RUN(processes_share);
	RUN(cache_outlives_its_process);
	RUN(time_of_alloc_and_free);
	return test_end();
}
