/*-------------------------------------------------------------------------
 *
 * test_rowmap.c
 *	  Walking the rows in the engine's memory, and finding one by where it is;
 *	  and orders of events that are rare, also of caches and pools that go.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "memory_util.h"

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
/* by any offset: what begins there, or in that line, if it is a row of the pool */
static void
rows_are_found_where_they_begin(void)
{
	mot_region *region = make_region(64 * MB, 1, 0);
	mot_cache  *cache = mot_region_cache(region, 0);
	mot_pool   *pools[2] = {make_pool(region, MOT_POOL_ROWS), make_pool(region, MOT_POOL_ROWS)};
	char	   *base = mot_region_base(region);
	size_t		span = 40 * MB;
	void	  **first[2] = {calloc(span / 64, sizeof(void *)), calloc(span / 64, sizeof(void *))};
	char	   *lowest = NULL;
	size_t		count = 20000;
	uint64_t	bad = 0;

	for (size_t i = 0; i < count; i++)
	{
		size_t		size = i % 500 == 0 ? 40000 + test_random() % 200000 : 8 + test_random() % 900;

		objects[i] = mot_alloc(cache, pools[i % 2], size, MOT_FOR_NEW_ROW, NULL);
		REQUIRE(objects[i] != NULL);
		if (lowest == NULL || (char *) objects[i] < lowest)
			lowest = objects[i];
	}
	lowest -= (uintptr_t) lowest % MOT_CHUNK_SIZE;
	for (size_t i = 0; i < count; i++)
	{
		size_t		line = (size_t) ((char *) objects[i] - lowest) / 64;

		REQUIRE(line < span / 64);
		if (i % 3 != 0)
			mot_row_mark(region, objects[i]);
		/* what begins first in the line, row or not */
		if (first[i % 2][line] == NULL || objects[i] < first[i % 2][line])
			first[i % 2][line] = objects[i];
	}
	for (int p = 0; p < 2; p++)
	{
		for (size_t line = 0; line < span / 64; line++)
		{
			void	   *there = first[p][line];
			void	   *found = mot_row_find_between(pools[p], (uint64_t) (lowest - base) + line * 64, 64);

			bad += found != (there != NULL && mot_row_marked(region, there) ? there : NULL);
		}
		for (size_t i = 0; i < count; i++)
		{
			uint64_t	offset = (uint64_t) ((char *) objects[i] - base);

			bad += mot_row_find(pools[p], offset) != (i % 2 == (size_t) p && i % 3 != 0 ? objects[i] : NULL);
			bad += mot_row_find(pools[p], offset + 16) != NULL;
		}
	}
	for (size_t i = 0; i < 1000000; i++)
	{
		uint64_t	any = test_random() >> test_random() % 64;
		void	   *row = mot_row_find(pools[0], any);
		void	   *in_line = mot_row_find_between(pools[1], any & ~(uint64_t) 63, 64);

		bad += row != NULL && (row != base + any || !mot_row_marked(region, row));
		bad += in_line != NULL && !mot_row_marked(region, in_line);
		mot_row_find_ahead(pools[0], any);
	}
	CHECK(bad == 0);
	free(first[0]);
	free(first[1]);
	mot_region_destroy(region);
}

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
	for (int i = 0; i < 4000 && !back; i++)
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
	for (int i = 0; i < 4000; i++)
	{
		void	   *other = mot_alloc(cache, pool, 48, MOT_FOR_NEW_ROW, NULL);

		mot_row_mark(region, other);
		back |= mot_object_page(region, other) == view.page_no;
	}
	CHECK(back);
	later = view;
	CHECK(mot_page_next(pool, &later) == NULL);
	CHECK(count_rows(pool) == 4000);
	mot_row_mark(region, guard);
	CHECK(count_rows(pool) == 4001);
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
	while ((objects[count] = mot_alloc(cache, pool, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL)) != NULL)
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
	CHECK(mot_alloc(cache, pool, MOT_PAGE_SIZE, MOT_FOR_DELETE, NULL) != NULL);
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

	mot_free(cache, mot_alloc(cache, pool, 64, MOT_FOR_DELETE, NULL));
	flusher = start_and_stop("magazine-returning", flush_and_tell, region);
	REQUIRE(pthread_create(&destroyer, NULL, destroy_and_tell, pool) == 0);
	usleep(50 * 1000);
	CHECK(page_bytes(pool) == MOT_PAGE_SIZE / 8);	/* a lot */
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

	mot_free(cache, mot_alloc(cache, pool, 64, MOT_FOR_DELETE, NULL));
	destroyer = start_and_stop("pool-destroy", destroy_and_tell, pool);
	CHECK(live_bytes(pool) > 0);
	mot_cache_flush(cache);
	CHECK(live_bytes(pool) > 0);
	CHECK(page_bytes(pool) == MOT_PAGE_SIZE / 8);
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

/*
 * Somebody looks whether there is a row, and the page goes: to another pool,
 * which has a row at that place, and then back again, without one.
 */
static atomic_int arrivals;
static atomic_int admitted;

static void
stop_finder(const char *name)
{
	int			n;

	if (pthread_equal(pthread_self(), stop_not) ||
		(strcmp(name, "row-page-seen") != 0 && strcmp(name, "row-bit-seen") != 0))
		return;
	n = atomic_fetch_add(&arrivals, 1) + 1;
	while (atomic_load(&admitted) < n)
		usleep(100);
}

static void
wait_for_arrival(int n)
{
	while (atomic_load(&arrivals) < n)
		usleep(100);
}

typedef struct finder
{
	mot_pool   *pool;
	uint64_t	offset;
	void	   *found;
} finder;

static void *
find_in_line(void *arg)
{
	finder	   *f = arg;

	f->found = mot_row_find_between(f->pool, f->offset, 64);
	return NULL;
}

static void
finder_notices_a_page_gone(void)
{
	for (int back = 0; back < 2; back++)
	{
		mot_region *region = make_region(64 * MB, 2, 0);
		mot_cache  *cache = mot_region_cache(region, 0);
		mot_pool   *pool = make_pool(region, MOT_POOL_ROWS);
		mot_pool   *other = make_pool(region, MOT_POOL_ROWS);
		void	   *row = mot_alloc(cache, pool, 200, MOT_FOR_NEW_ROW, NULL);
		finder		f = {pool, mot_region_offset(mot_region_base(region), row) & ~(uint64_t) 63, NULL};
		pthread_t	thread;

		mot_row_mark(region, row);
		CHECK(mot_row_find_between(pool, f.offset, 64) == row);
		atomic_store(&arrivals, 0);
		atomic_store(&admitted, 0);
		stop_not = pthread_self();
		mot_stop_point_handler = stop_finder;
		REQUIRE(pthread_create(&thread, NULL, find_in_line, &f) == 0);
		wait_for_arrival(1);
		mot_pool_destroy(pool);
		REQUIRE(mot_alloc(cache, other, 200, MOT_FOR_NEW_ROW, NULL) == row);
		mot_row_mark(region, row);
		atomic_store(&admitted, 1);
		wait_for_arrival(2);
		if (back)
		{
			mot_pool_destroy(other);
			while (make_pool(region, MOT_POOL_ROWS) != pool)
				;
			REQUIRE(mot_alloc(cache, pool, 200, MOT_FOR_NEW_ROW, NULL) == row);
		}
		atomic_store(&admitted, 100);
		pthread_join(thread, NULL);
		mot_stop_point_handler = NULL;
		CHECK(f.found == NULL);
		mot_region_destroy(region);
	}
}

#endif							/* MOT_STOP_POINTS */

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(rows_are_walked_once);
	RUN(rows_are_found_where_they_begin);
	RUN(walker_notices_a_page_gone);
	RUN(dropped_rows_leave_no_marks);
#ifdef MOT_STOP_POINTS
	RUN(returning_chunk_is_waited_for);
	RUN(destroy_waits_for_a_flush);
	RUN(flush_forgets_a_pool_that_goes);
	RUN(mark_comes_before_its_counter);
	RUN(finder_notices_a_page_gone);
#endif
	return test_end();
}
