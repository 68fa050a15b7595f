/*-------------------------------------------------------------------------
 *
 * test_region.c
 *	  The engine's memory region, one property at a time: its sizes and its
 *	  reset, several NUMA nodes, and several processes.
 *
 * Objects and pools are in test_memory.c, rows in test_rowmap.c.  Processes appear here only where
 * their order does not matter; threads at random are for stress_memory.c.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <fcntl.h>
#include <sys/file.h>

#include "memory_util.h"

#define CHILDREN 4
#define EACH 20000				/* rows a child makes */

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
	double		start = test_work_seconds();
	char	   *object;

	region = make_region(largest, 5000, 0);
	printf("# a region of %zu GB created in %.1f ms\n", largest >> 30,
		   (test_work_seconds() - start) * 1e3);
	CHECK(test_work_seconds() - start < 1.0);
	CHECK(mot_region_max(region) == largest);
	pool = make_pool(region, MOT_POOL_ROWS);
	object = mot_alloc(mot_region_cache(region, 4999), pool, largest / 2, MOT_FOR_NEW_ROW, NULL);
	CHECK(object != NULL);
	object[0] = object[largest / 2 - 1] = 1;
	mot_row_mark(region, object);
	CHECK(count_rows(pool) == 1);
	CHECK(mot_alloc(mot_region_cache(region, 7), pool, 10, MOT_FOR_NEW_ROW, NULL) != NULL);
	mot_pool_destroy(pool);
	start = test_work_seconds();
	mot_region_reset(region);
	CHECK(test_work_seconds() - start < 1.0);
	mot_region_destroy(region);

	CHECK(mot_region_create(0, 1, 0, 0, err, sizeof(err)) == NULL);
	CHECK(err[0] != '\0');
	CHECK(mot_region_create(SIZE_MAX, 1, 0, 0, err, sizeof(err)) == NULL);
}

/* fill most of a region, in objects of two sizes; give it all back */
static void
use_region(mot_region *region)
{
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
	mot_pool   *other = make_pool(region, MOT_POOL_PLAIN);
	size_t		count = 0;
	char	   *object = mot_alloc(cache, other, 20 * MB, MOT_FOR_DELETE, NULL);

	REQUIRE(object != NULL);
	memset(object, 1, 20 * MB);
	while (count < sizeof(objects) / sizeof(objects[0]) && (objects[count] = mot_alloc(cache, pool, 300, MOT_FOR_NEW_ROW, NULL)) != NULL)
	{
		fill(objects[count], 300, count);
		mot_row_mark(region, objects[count]);
		count++;
	}
	REQUIRE(count * 300 > 20 * MB);
	CHECK(count_rows(pool) == count);
	mot_free(cache, object);
	for (size_t i = 0; i < count; i++)
	{
		CHECK(filled(objects[i], 300, i));
		mot_row_unmark(region, objects[i]);
		/* of the first, one in a thousand stays and holds its page */
		if (i % 1000 != 0 || i > 20000)
			mot_free(cache, objects[i]);
	}
	mot_cache_flush(cache);
	object = mot_alloc(cache, other, 30 * MB, MOT_FOR_DELETE, NULL);
	REQUIRE(object != NULL);
	memset(object, 2, 30 * MB);
	for (size_t i = 0; i <= 20000; i += 1000)
		CHECK(filled(objects[i], 300, i));
	mot_pool_destroy(pool);
	mot_pool_destroy(other);
	/* what is left is the engine's own, in two chunks */
	CHECK(mot_region_used(region) < MOT_CHUNK_SIZE / 2);
	CHECK(stats(region).chunk_bytes <= 2 * MOT_CHUNK_SIZE);
}

/* more than the machine has memory: one fails with a reason, one goes without and says why */
static void
huge_pages_that_are_not_there(void)
{
	size_t		much = (size_t) sysconf(_SC_PHYS_PAGES) * (size_t) sysconf(_SC_PAGESIZE) * 2;
	char		err[200] = "";
	mot_region *region;

	CHECK(mot_region_create(much, 1, 0, MOT_REGION_HUGE_ON, err, sizeof(err)) == NULL);
	CHECK(strstr(err, "in huge pages") != NULL);
	err[0] = '\0';
	region = mot_region_create(much, 1, 0, MOT_REGION_HUGE_TRY, err, sizeof(err));
	REQUIRE(region != NULL);
	CHECK(err[0] != '\0');
	CHECK(!mot_region_huge(region));
	mot_region_destroy(region);

	strcpy(err, "before");
	region = mot_region_create(64 * MB, 1, 0, 0, err, sizeof(err));
	REQUIRE(region != NULL);
	CHECK(err[0] == '\0');
	use_region(region);
	CHECK(stats(region).system_bytes <= 2 * MOT_CHUNK_SIZE);
	mot_region_destroy(region);
}

#define NR_HUGEPAGES "/proc/sys/vm/nr_hugepages"

/* the number of huge pages the system has, made so many more if we may; -1: we may not */
static int
change_huge_pages(int more)
{
	FILE	   *file = fopen(NR_HUGEPAGES, "r+");
	int			there = -1;

	if (file == NULL)
		return -1;
	if (fscanf(file, "%d", &there) == 1)
	{
		rewind(file);
		fprintf(file, "%d\n", there + more);
	}
	fclose(file);
	return there;
}

static void
huge_pages_that_are(void)
{
	char		err[200] = "";
	mot_region *region;
	int			lock = open(NR_HUGEPAGES, O_RDONLY);
	bool		added;

	/* others who test this add and take away one after another */
	if (lock >= 0)
		(void) flock(lock, LOCK_EX);
	added = change_huge_pages(40) >= 0;
	region = mot_region_create(64 * MB, 2, 0, MOT_REGION_HUGE_TRY, err, sizeof(err));
	REQUIRE(region != NULL);
	if (added)
		(void) change_huge_pages(-40);
	if (lock >= 0)
		close(lock);
	if (!mot_region_huge(region))
	{
		printf("# skipped: no 32 huge pages of 2 MB (vm.nr_hugepages): %s\n", err);
		mot_region_destroy(region);
		return;
	}
	CHECK(err[0] == '\0');
	CHECK((uintptr_t) region->data % (2 * MB) == 0);
	for (int round = 0; round < 3; round++)
	{
		CHECK(stats(region).system_bytes == 64 * MB);
		use_region(region);
		/* all of it is ours as long as the region stands */
		CHECK(stats(region).system_bytes == 64 * MB);
		if (round == 1)
			mot_region_reset(region);
	}
	mot_region_destroy(region);
}

/* memory goes back by whole chunks where the kernel makes huge pages of it */
static void
chunks_stay_whole(void)
{
	mot_region *region = make_region(64 * MB, 2, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pool = make_pool(region, MOT_POOL_PLAIN);
	void	   *object[3 * MOT_PAGES_PER_CHUNK];
	unsigned	objects_there = 3 * MOT_PAGES_PER_CHUNK;

	if (!region->whole_chunks)
		printf("# the kernel makes no huge pages of shared memory: pretending that it does\n");
	region->whole_chunks = true;

	for (unsigned i = 0; i < objects_there; i++)
	{
		object[i] = mot_alloc(cache, pool, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL);
		REQUIRE(object[i] != NULL);
		memset(object[i], 1, MOT_PAGE_SIZE);
	}
	CHECK(stats(region).system_bytes == stats(region).chunk_bytes);
	CHECK(resident(region) >= stats(region).page_bytes);

	/* of the chunks that become empty the memory goes, of others nothing */
	for (unsigned i = 0; i < objects_there; i += 2)
		mot_free(cache, object[i]);
	mot_cache_flush(cache);
	CHECK(stats(region).system_bytes == stats(region).chunk_bytes);
	CHECK(resident(region) >= 3 * MOT_CHUNK_SIZE);
	for (unsigned i = 1; i < objects_there; i += 2)
		mot_free(cache, object[i]);
	mot_pool_destroy(pool);
	CHECK(stats(region).chunk_bytes == 0);
	CHECK(stats(region).system_bytes == 0);
	CHECK(resident(region) == 0);
	use_region(region);
	CHECK(resident(region) <= 2 * MOT_CHUNK_SIZE);
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
		CHECK(mot_topology_node(&region->topology) == n);
		for (int i = 0; i < 1000; i++)
		{
			objects[count] = mot_alloc(mot_region_cache(region, n), pool, 256, MOT_FOR_NEW_ROW, NULL);
			REQUIRE(objects[count] != NULL);
			mot_row_mark(region, objects[count]);
			bad += node_of(region, objects[count]) != n;
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
		/* the first pages were lots, of which two are kept */
		CHECK(stat.page_bytes <= before[n] - 3 * MOT_PAGE_SIZE);
	}

	/* a process that moves takes memory where it is now */
	for (unsigned n = 0; n < 8; n++)
	{
		mot_topology_pretended_cpu = (int) (n * 2);
		for (int i = 0; i < 100; i++)
			objects[i] = mot_alloc(cache, pool, 256, MOT_FOR_NEW_ROW, NULL);
		CHECK(node_of(region, objects[99]) == n);
	}

	/* and one alone can use the memory of all */
	mot_topology_pretended_cpu = 6;
	count = 0;
	while (mot_alloc(cache, pool, 4000, MOT_FOR_DELETE, NULL))
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
		objects[count] = mot_alloc(cache, pool, MOT_CHUNK_SIZE, MOT_FOR_DELETE, NULL);
		if (objects[count] == NULL)
			break;
	}
	CHECK(count == chunks);
	for (size_t i = 0; i < count; i++)
		mot_free(cache, objects[i]);
	CHECK(stats(region).chunk_bytes == 0);
	CHECK(region->state->spans_assigned == 0);
	CHECK(mot_alloc(cache, pool, chunks * MOT_CHUNK_SIZE, MOT_FOR_DELETE, NULL) != NULL);
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
			left[i] = mot_alloc(cache, pool, 100, MOT_FOR_DELETE, NULL);
		for (int i = 0; i < 5; i++)
			mot_free(cache, left[i]);
		test_child_exit();
	}
	CHECK(test_child_ok(child));

	/* the slot's next owner gets just those, last freed first */
	for (int i = 4; i >= 0; i--)
		CHECK(mot_alloc(mot_region_cache(region, 1), pool, 100, MOT_FOR_DELETE, NULL) == left[i]);
	mot_region_destroy(region);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(regions_of_all_sizes);
	RUN(huge_pages_that_are_not_there);
	RUN(huge_pages_that_are);
	RUN(chunks_stay_whole);
	RUN(reset_makes_new);
	RUN(offsets_name_objects);
	RUN(eight_nodes);
	RUN(spans_of_chunks);
	RUN(processes_share);
	RUN(cache_outlives_its_process);
	return test_end();
}
