/*-------------------------------------------------------------------------
 *
 * stress_memory.c
 *	  The engine's memory under threads, for as many seconds as are asked for.
 *
 *		stress_memory [seconds [threads]]
 *
 * Workers allocate, check and free objects of several pools, hand them to
 * each other, insert and delete rows, drop and recreate a pool that the others
 * use (and whose objects stay behind in their caches), and flush their caches.
 * Every object carries its address, size and pool, written when allocated and
 * checked when freed, so that an object handed out twice shows.
 *
 * Walkers go over the pools of rows meanwhile.  Each row that a walker is
 * shown must be a row of that pool and not have been freed (deleted rows wait
 * for the walks that began before), none may be shown twice, and the rows
 * that are there all the time must be shown every time.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "memory/memory_internal.h"
#include "test.h"

#define WALKERS 2
#define MAX_WORKERS 16
#define ROW_POOLS 2
#define PLAIN_POOLS 3
#define HELD 2000				/* objects a worker holds */
#define PERMANENT 3000			/* rows of each pool that stay */
#define EXCHANGE 64

#define MAGIC UINT64_C(0x6d6f742d6f626a21)

/* the head of every object; walkers read rows while they change */
typedef struct stress_object
{
	_Atomic uint64_t magic;		/* MAGIC ^ address, 0 when freed */
	_Atomic uint64_t pool;
	_Atomic uint32_t size;
	_Atomic uint32_t permanent; /* its number plus one */
	_Atomic uint32_t shown[WALKERS];	/* last walk it was shown in */
} stress_object;

typedef struct limbo_row
{
	stress_object *row;
	uint64_t	since;
} limbo_row;

static mot_region *region;
static mot_pool *row_pools[ROW_POOLS];
static mot_pool *plain_pools[PLAIN_POOLS];
static unsigned workers = 4;
static atomic_bool stop;
static atomic_ullong operations;
static atomic_ullong walks;
static atomic_ullong refusals;

/* grace periods: a walk publishes the epoch it began in */
static _Atomic uint64_t epoch = 1;
static _Atomic uint64_t walking[WALKERS];

/* objects given by one worker to any other */
static _Atomic(stress_object *) exchange[EXCHANGE];

/* a pool that comes and goes: users hold the lock shared */
static pthread_rwlock_t temporary_lock = PTHREAD_RWLOCK_INITIALIZER;
static mot_pool *temporary;
static atomic_uint temporary_used;

static stress_object *
make(mot_cache *cache, mot_pool *pool, size_t size, uint32_t permanent)
{
	stress_object *o = mot_alloc(cache, pool, size, MOT_FOR_DELETE, NULL);

	if (o == NULL)
	{
		atomic_fetch_add(&refusals, 1);
		return NULL;
	}
	memset((char *) o + sizeof(stress_object), (int) size, size - sizeof(stress_object));
	atomic_store_explicit(&o->magic, MAGIC ^ (uintptr_t) o, memory_order_relaxed);
	atomic_store_explicit(&o->pool, (uintptr_t) pool, memory_order_relaxed);
	atomic_store_explicit(&o->size, (uint32_t) size, memory_order_relaxed);
	atomic_store_explicit(&o->permanent, permanent, memory_order_relaxed);
	for (int w = 0; w < WALKERS; w++)
		atomic_store_explicit(&o->shown[w], 0, memory_order_relaxed);
	return o;
}

static void
check(stress_object *o, mot_pool *pool)
{
	uint32_t	size = atomic_load_explicit(&o->size, memory_order_relaxed);
	unsigned char *bytes = (unsigned char *) o;

	CHECK(atomic_load_explicit(&o->magic, memory_order_relaxed) == (MAGIC ^ (uintptr_t) o));
	CHECK(mot_usable_size(region, o) >= size);
	CHECK(mot_object_pool(region, o) == (mot_pool *) (uintptr_t) o->pool);
	CHECK(pool == NULL || mot_object_pool(region, o) == pool);
	for (size_t i = sizeof(stress_object); i < size; i += 64)
		CHECK(bytes[i] == (unsigned char) size);
	CHECK(size == sizeof(stress_object) || bytes[size - 1] == (unsigned char) size);
}

static void
discard(mot_cache *cache, stress_object *o)
{
	check(o, NULL);
	atomic_store_explicit(&o->magic, 0, memory_order_relaxed);
	mot_free(cache, o);
}

static size_t
some_size(uint64_t *rng)
{
	uint64_t	r = test_random_from(rng);

	if (r % 1000 == 0)
		return 32768 + (r >> 20) % (3 << 20);
	if (r % 50 == 0)
		return sizeof(stress_object) + (r >> 20) % 30000;
	return sizeof(stress_object) + (r >> 20) % 400;
}

/* rows deleted before every walk that still goes on began */
static void
reclaim(mot_cache *cache, limbo_row *queue, unsigned *count)
{
	uint64_t	oldest = UINT64_MAX;
	unsigned	kept = 0;

	for (int w = 0; w < WALKERS; w++)
	{
		uint64_t	began = atomic_load(&walking[w]);

		if (began != 0 && began < oldest)
			oldest = began;
	}
	for (unsigned i = 0; i < *count; i++)
	{
		if (queue[i].since < oldest)
			discard(cache, queue[i].row);
		else
			queue[kept++] = queue[i];
	}
	*count = kept;
}

static void
use_temporary(mot_cache *cache, uint64_t *rng)
{
	stress_object *some[40];
	int			count = 0;

	if (test_random_from(rng) % 20 == 0)
	{
		pthread_rwlock_wrlock(&temporary_lock);
		mot_pool_destroy(temporary);
		temporary = mot_pool_create(region, MOT_POOL_PLAIN, NULL);
		REQUIRE(temporary != NULL);
		pthread_rwlock_unlock(&temporary_lock);
		atomic_fetch_add(&temporary_used, 1);
		return;
	}
	pthread_rwlock_rdlock(&temporary_lock);
	for (int i = 0; i < 40; i++)
	{
		some[count] = make(cache, temporary, sizeof(stress_object) + (size_t) (i % 5) * 64, 0);
		if (some[count])
			count++;
	}
	/* most go into the cache, and stay there when the pool is dropped */
	for (int i = 0; i < count; i++)
		if (i % 4 != 0)
			discard(cache, some[i]);
	pthread_rwlock_unlock(&temporary_lock);
}

static void *
worker(void *arg)
{
	unsigned	self = (unsigned) (uintptr_t) arg;
	mot_cache  *cache = mot_region_cache(region, self);
	stress_object **held = calloc(HELD, sizeof(*held));
	stress_object **rows = calloc(HELD, sizeof(*rows));
	limbo_row  *queue = calloc(HELD * 4, sizeof(*queue));
	unsigned	waiting = 0;
	uint64_t	rng = test_seed + self;
	uint64_t	done = 0;

	mot_topology_pretended_cpu = (int) self;
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
	{
		uint64_t	r = test_random_from(&rng);
		unsigned	i = (unsigned) (r >> 32) % HELD;

		done++;
		switch (r % 16)
		{
			case 0:
			case 1:
			case 2:
			case 3:
			case 4:
			case 5:
				if (held[i])
				{
					discard(cache, held[i]);
					held[i] = NULL;
				}
				else
					held[i] = make(cache, plain_pools[(r >> 8) % PLAIN_POOLS],
								   some_size(&rng), 0);
				break;
			case 6:
			case 7:
				if (held[i])
				{
					held[i] = atomic_exchange(&exchange[(r >> 8) % EXCHANGE], held[i]);
					if (held[i])
						check(held[i], NULL);
				}
				break;
			case 8:
				if (r >> 40 == 0 || (r >> 8) % 64 == 0)
					mot_cache_flush(cache);
				break;
			case 9:
				if ((r >> 8) % 16 == 0)
					use_temporary(cache, &rng);
				break;
			case 10:
				if ((r >> 8) % 256 == 0)
				{
					/* everything goes: pages become empty */
					for (unsigned h = 0; h < HELD; h++)
						if (held[h])
						{
							discard(cache, held[h]);
							held[h] = NULL;
						}
					mot_pools_shrink(region);
				}
				break;
			default:
				if (rows[i])
				{
					if (waiting == HELD * 4)
						reclaim(cache, queue, &waiting);
					if (waiting == HELD * 4)
						break;
					mot_row_unmark(region, rows[i]);
					queue[waiting].row = rows[i];

					/*
					 * after the unmark: a walk that begins later does not see
					 * it
					 */
					queue[waiting++].since = atomic_fetch_add(&epoch, 1);
					rows[i] = NULL;
					if (waiting % 256 == 0)
						reclaim(cache, queue, &waiting);
				}
				else
				{
					rows[i] = make(cache, row_pools[(r >> 8) % ROW_POOLS],
								   some_size(&rng), 0);
					if (rows[i])
						mot_row_mark(region, rows[i]);
				}
				break;
		}
	}

	/* walkers may still be at it */
	atomic_fetch_add(&operations, done);
	for (unsigned h = 0; h < HELD; h++)
		if (held[h])
			discard(cache, held[h]);
	for (unsigned h = 0; h < HELD; h++)
		if (rows[h])
		{
			mot_row_unmark(region, rows[h]);
			while (waiting == HELD * 4)
			{
				sched_yield();
				reclaim(cache, queue, &waiting);
			}
			queue[waiting].row = rows[h];
			queue[waiting++].since = atomic_fetch_add(&epoch, 1);
		}
	while (waiting > 0)
	{
		sched_yield();
		reclaim(cache, queue, &waiting);
	}
	mot_cache_flush(cache);
	free(held);
	free(rows);
	free(queue);
	return NULL;
}

static void *
walker(void *arg)
{
	unsigned	self = (unsigned) (uintptr_t) arg;
	uint32_t	walk = 0;
	uint64_t	rng = test_seed ^ self;
	static bool found[WALKERS][PERMANENT];

	while (!atomic_load_explicit(&stop, memory_order_relaxed))
	{
		mot_pool   *pool = row_pools[test_random_from(&rng) % ROW_POOLS];
		mot_page_view view;
		unsigned	permanent = 0;
		uint64_t	size;

		/*
		 * The epoch is published before anything is read, and read again:
		 * nobody missed us who unmarked a row that we can still see.
		 */
		for (;;)
		{
			uint64_t	now = atomic_load(&epoch);

			atomic_store(&walking[self], now);
			if (atomic_load(&epoch) == now)
				break;
		}
		walk++;
		memset(found[self], 0, sizeof(found[self]));
		size = mot_pool_directory_size(pool);
		for (uint64_t i = 0; i < size; i++)
		{
			stress_object *row;

			if (!mot_pool_page(pool, i, &view))
				continue;
			while ((row = mot_page_next(pool, &view)) != NULL)
			{
				uint32_t	number;

				CHECK(atomic_load_explicit(&row->magic, memory_order_relaxed) ==
					  (MAGIC ^ (uintptr_t) row));
				CHECK(atomic_load_explicit(&row->pool, memory_order_relaxed) ==
					  (uintptr_t) pool);
				CHECK(atomic_load_explicit(&row->size, memory_order_relaxed) <= view.object_size);
				CHECK(atomic_exchange_explicit(&row->shown[self], walk,
											   memory_order_relaxed) != walk);
				number = atomic_load_explicit(&row->permanent, memory_order_relaxed);
				if (number != 0)
				{
					CHECK(!found[self][number - 1]);
					found[self][number - 1] = true;
					permanent++;
				}
			}
		}
		CHECK(permanent == PERMANENT);
		atomic_store(&walking[self], 0);
		atomic_fetch_add(&walks, 1);
	}
	return NULL;
}

static double seconds = 3;

static void
memory_under_threads(void)
{
	pthread_t	threads[MAX_WORKERS + WALKERS];
	char		err[200];
	mot_cache  *cache;
	uint64_t	pages,
				live,
				expected;
	uint64_t	rng = test_seed;

	/* small enough to be full now and then, on several nodes */
	setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:1", 1);
	region = mot_region_create((size_t) 96 << 20, workers + 1, 0, 0, err, sizeof(err));
	unsetenv("HWLOC_SYNTHETIC");
	REQUIRE(region != NULL);
	cache = mot_region_cache(region, workers);
	for (int p = 0; p < ROW_POOLS; p++)
		row_pools[p] = mot_pool_create(region, MOT_POOL_ROWS, NULL);
	for (int p = 0; p < PLAIN_POOLS; p++)
		plain_pools[p] = mot_pool_create(region, MOT_POOL_PLAIN, NULL);
	temporary = mot_pool_create(region, MOT_POOL_PLAIN, NULL);

	/* permanent rows lie scattered among those that come and go */
	for (int p = 0; p < ROW_POOLS; p++)
		for (uint32_t i = 0; i < PERMANENT; i++)
		{
			stress_object *row = make(cache, row_pools[p],
									  sizeof(stress_object) + test_random_from(&rng) % 400, i + 1);

			REQUIRE(row != NULL);
			mot_row_mark(region, row);
		}

	atomic_store(&stop, false);
	for (unsigned t = 0; t < workers; t++)
		REQUIRE(pthread_create(&threads[t], NULL, worker, (void *) (uintptr_t) t) == 0);
	for (unsigned w = 0; w < WALKERS; w++)
		REQUIRE(pthread_create(&threads[workers + w], NULL, walker, (void *) (uintptr_t) w) == 0);
	usleep((useconds_t) (seconds * 1e6));
	atomic_store(&stop, true);
	for (unsigned t = 0; t < workers + WALKERS; t++)
		pthread_join(threads[t], NULL);

	for (int e = 0; e < EXCHANGE; e++)
		if (exchange[e])
			discard(cache, atomic_load(&exchange[e]));
	mot_cache_flush(cache);
	for (int p = 0; p < PLAIN_POOLS; p++)
	{
		mot_pool_stats(plain_pools[p], &pages, &live);
		CHECK(live == 0);
		mot_pool_destroy(plain_pools[p]);
	}
	mot_pool_destroy(temporary);
	for (int p = 0; p < ROW_POOLS; p++)
	{
		uint64_t	rows = 0;
		mot_page_view view;

		expected = 0;
		for (uint64_t i = 0; i < mot_pool_directory_size(row_pools[p]); i++)
			if (mot_pool_page(row_pools[p], i, &view))
				while (mot_page_next(row_pools[p], &view))
				{
					rows++;
					expected += view.object_size;
				}
		CHECK(rows == PERMANENT);
		mot_pool_stats(row_pools[p], &pages, &live);
		CHECK(live == expected);
		mot_pool_destroy(row_pools[p]);
	}
	CHECK(mot_region_used(region) <= 32 * MOT_PAGE_SIZE);
	CHECK(atomic_load(&region->state->kept) <= 32);
	printf("# %llu operations, %llu walks, %u pools dropped in use, %llu refusals\n",
		   (unsigned long long) atomic_load(&operations),
		   (unsigned long long) atomic_load(&walks), atomic_load(&temporary_used),
		   (unsigned long long) atomic_load(&refusals));
	mot_region_destroy(region);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	if (argc > 1)
		seconds = atof(argv[1]);
	if (argc > 2)
		workers = (unsigned) atoi(argv[2]);
	if (workers < 1 || workers > MAX_WORKERS)
		workers = MAX_WORKERS;
	RUN(memory_under_threads);
	return test_end();
}
