/*-------------------------------------------------------------------------
 *
 * memory_util.h
 *	  What the tests of the engine's memory have in common: regions and pools
 *	  that are there or end the test, figures, and objects filled with a
 *	  pattern.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MEMORY_UTIL_H
#define MOT_MEMORY_UTIL_H

#include "memory/memory_internal.h"
#include "test.h"

#define MB ((size_t) 1 << 20)
#define ALL_NODES UINT32_MAX

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* what a test has allocated */
static void *objects[1024 * 1024];

static inline mot_region *
make_region(size_t size, unsigned caches, unsigned flags)
{
	char		err[200] = "";
	mot_region *region = mot_region_create(size, caches, 1000, flags, err, sizeof(err));

	if (region == NULL)
		printf("# %s\n", err);
	REQUIRE(region != NULL);
	return region;
}

static inline mot_pool *
make_pool(mot_region *region, mot_pool_kind kind)
{
	mot_pool   *pool = mot_pool_create(region, kind, NULL);

	REQUIRE(pool != NULL);
	return pool;
}

static inline uint64_t
page_bytes(mot_pool *pool)
{
	uint64_t	pages,
				live;

	mot_pool_stats(pool, &pages, &live);
	return pages;
}

static inline uint64_t
live_bytes(mot_pool *pool)
{
	uint64_t	pages,
				live;

	mot_pool_stats(pool, &pages, &live);
	return live;
}

static inline mot_memory_stat
stats(mot_region *region)
{
	mot_memory_stat stat;

	mot_memory_stats(region, ALL_NODES, &stat);
	return stat;
}

/* bytes of the chunks that are resident in this process */
static inline size_t
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
				to <= (unsigned long) region->data + region->max_bytes + region->hint_bytes;
		else if (inside && sscanf(line, "Rss: %lu kB", &kb) == 1)
			total += kb * 1024;
	}
	fclose(smaps);
	return total;
}

/* a pattern that says which object and how long, at its ends and in between */
static inline void
fill(void *object, size_t size, uint64_t tag)
{
	unsigned char *bytes = object;
	size_t		step = size > 4096 ? 1021 : 1;

	for (size_t i = 0; i < size; i += step)
		bytes[i] = (unsigned char) (tag * 31 + i);
	bytes[size - 1] = (unsigned char) tag;
}

static inline bool
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

/* the node that an object's memory is of */
static inline unsigned
node_of(const mot_region *region, const void *object)
{
	return region->chunks[(size_t) ((const char *) object - region->data) / MOT_CHUNK_SIZE].node;
}

static inline uint64_t
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

#endif							/* MOT_MEMORY_UTIL_H */
