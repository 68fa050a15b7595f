/*-------------------------------------------------------------------------
 *
 * stress_tree.c
 *	  The Masstree by several threads: writers insert and remove overlapping
 *	  sets of keys, readers and cursors check that what is always there is
 *	  always found, and scanned once and in order.
 *
 * Arguments: seconds for each shape of keys, number of writers, of readers.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "test_tree.h"

#define MAX_THREADS 32
#define BATCHES 64				/* retired objects wait in batches */
#define BATCH 256

static double seconds = 0.7;
static int	writers = 2;
static int	readers = 2;

static fixture f;

/* ----------------------------------------------------------------- epochs */

/*
 * As simple as can be: a thread publishes the global epoch while it is at
 * work; what was retired at epoch e is freed when all that are at work have
 * published a later one.  All seq_cst: this is not what is being tested.
 */
static _Atomic uint64_t epoch;
static _Atomic uint64_t published[MAX_THREADS]; /* 0: not at work */

typedef struct worker
{
	int			number;
	uint64_t	random;
	pthread_t	thread;
	mot_tree_context ctx;
	struct
	{
		uint64_t	epoch;
		int			count;
		void	   *object[BATCH];
	}			batch[BATCHES];
	unsigned	first;			/* batches first..last - 1 are waiting, last
								 * is being filled */
	unsigned	last;
	uint64_t	done;
} worker;

static worker workers[MAX_THREADS];

static uint64_t
oldest_epoch(void)
{
	uint64_t	oldest = atomic_load(&epoch);

	for (int i = 0; i < MAX_THREADS; i++)
	{
		uint64_t	e = atomic_load(&published[i]);

		if (e != 0 && e < oldest)
			oldest = e;
	}
	return oldest;
}

static void
free_batches(worker *w, bool all)
{
	uint64_t	oldest = all ? UINT64_MAX : oldest_epoch();

	while (w->first != w->last && w->batch[w->first % BATCHES].epoch < oldest)
	{
		for (int i = 0; i < w->batch[w->first % BATCHES].count; i++)
		{
			void	   *object = w->batch[w->first % BATCHES].object[i];

			/* whoever still looks at it shall notice */
			memset(object, 0x5a, mot_usable_size(f.region, object));
			mot_free(w->ctx.cache, object);
		}
		w->first++;
	}
}

static void
close_batch(worker *w)
{
	w->batch[w->last % BATCHES].epoch = atomic_fetch_add(&epoch, 1);
	w->last++;
	w->batch[w->last % BATCHES].count = 0;
}

static void
stress_retire(void *arg, void *object)
{
	worker	   *w = arg;

	REQUIRE(w->batch[w->last % BATCHES].count < BATCH);
	w->batch[w->last % BATCHES].object[w->batch[w->last % BATCHES].count++] = object;
}

static void
enter(worker *w)
{
	atomic_store(&published[w->number], atomic_load(&epoch));
}

static void
leave(worker *w)
{
	unsigned	spins = 0;

	atomic_store(&published[w->number], 0);
	/* an operation retires far less than what is left */
	if (w->batch[w->last % BATCHES].count < BATCH / 2)
		return;
	close_batch(w);
	free_batches(w, false);
	while (w->last - w->first >= BATCHES - 1)
	{
		mot_backoff(&spins);
		free_batches(w, false);
	}
}

/* ---------------------------------------------------------------- threads */

static model_key *keys;
static size_t key_count;
static atomic_bool stop;

/*
 * Keys whose number is a multiple of three are always there.  The others come
 * and go: a value is the key's number with the writer's above it, and all
 * writers work on all of them, so that an insert may find the key there and a
 * removal find it gone or with another value.
 */
#define ALWAYS(i) ((i) % 3 == 0)
#define VALUE(i, who) ((uint64_t) (i) + 1 + ((uint64_t) (who) << 32))
#define VALUE_KEY(v) ((size_t) ((v) & UINT32_MAX) - 1)

static void *
writer(void *arg)
{
	worker	   *w = arg;
	size_t		window = 0;

	while (!atomic_load(&stop))
	{
		/*
		 * bursts of inserting or removing in a part, so that nodes come and
		 * go
		 */
		size_t		from = (size_t) (test_random_from(&w->random) % key_count);
		size_t		width = 1 + (size_t) (test_random_from(&w->random) % (window++ % 4 ? 300 : key_count));
		bool		inserting = test_random_from(&w->random) % 2;

		for (size_t n = 0; n < width; n++)
		{
			size_t		i = (from + n) % key_count;
			model_key  *k = &keys[i];
			uint64_t	actual;
			mot_tree_status status;

			if (test_random_from(&w->random) % 16 == 0)
				i = (size_t) (test_random_from(&w->random) % key_count), k = &keys[i];
			enter(w);
			if (ALWAYS(i))
			{
				/* only its value changes */
				if (n % 4 == 0)
				{
					uint64_t	expected = mot_tree_get(f.tree, k->bytes, k->len, NULL);

					CHECK(VALUE_KEY(expected) == i);
					status = mot_tree_cas(f.tree, &w->ctx, k->bytes, k->len, expected,
										  VALUE(i, w->number), &actual, MOT_FOR_CHANGE, NULL);
					CHECK(status != MOT_TREE_NO_MEMORY && VALUE_KEY(actual) == i);
				}
			}
			else if (inserting)
			{
				status = mot_tree_cas(f.tree, &w->ctx, k->bytes, k->len, 0, VALUE(i, w->number),
									  &actual, MOT_FOR_CHANGE, NULL);
				CHECK(status == MOT_TREE_OK ? actual == 0 : VALUE_KEY(actual) == i);
				if (status == MOT_TREE_OK)
					w->done++;
			}
			else
			{
				uint64_t	expected = mot_tree_get(f.tree, k->bytes, k->len, NULL);

				if (expected)
				{
					CHECK(VALUE_KEY(expected) == i);
					status = mot_tree_cas(f.tree, &w->ctx, k->bytes, k->len, expected, 0,
										  &actual, MOT_FOR_CHANGE, NULL);
					CHECK(status == (actual == expected ? MOT_TREE_OK : MOT_TREE_MISMATCH));
					if (status == MOT_TREE_OK)
						w->done--;
				}
			}
			leave(w);
		}
	}
	return NULL;
}

static void
scan(worker *w)
{
	mot_tree_cursor c;
	bool		backward = test_random_from(&w->random) % 2;
	size_t		i = (size_t) (test_random_from(&w->random) % key_count);
	int			most = 1 + (int) (test_random_from(&w->random) % 3000);
	mot_bound	bound = {MOT_BOUND_INCLUSIVE, keys[i].bytes, keys[i].len};
	const void *key;
	size_t		len;
	uint64_t	value;
	bool		whole = test_random_from(&w->random) % 4 == 0;

	if (whole)
		i = backward ? key_count - 1 : 0;
	else
	{
		/* all keys with this prefix belong to the range */
		while (backward && i + 1 < key_count && bound_compare(&keys[i + 1], &bound) == 0)
			i++;
	}
	if (!mot_tree_cursor_open(&c, f.tree, whole || backward ? NULL : &bound,
							  whole || !backward ? NULL : &bound, backward, NULL))
		return;
	while ((value = mot_tree_cursor_next(&c, &key, &len)) != 0 && most-- > 0)
	{
		size_t		j = VALUE_KEY(value);

		/* from i on nothing that is always there may be left out, up to j */
		REQUIRE(j < key_count);
		CHECK(len == keys[j].len && memcmp(key, keys[j].bytes, len) == 0);
		CHECK(backward ? j <= i : j >= i);
		for (; backward ? i > j : i < j; backward ? i-- : i++)
			if (ALWAYS(i))
			{
				printf("# key %zu was left out before %zu, %s\n", i, j, backward ? "backward" : "forward");
				CHECK(!ALWAYS(i));
			}
		/* the next one has to be another */
		if (backward)
		{
			if (i == 0)
			{
				CHECK(mot_tree_cursor_next(&c, NULL, NULL) == 0);
				mot_tree_cursor_close(&c);
				w->done++;
				return;
			}
			i--;
		}
		else
			i++;
	}
	if (value == 0)
		for (; backward ? i < key_count : i < key_count; backward ? i-- : i++)
			CHECK(!ALWAYS(i));
	mot_tree_cursor_close(&c);
	w->done++;
}

static void *
reader(void *arg)
{
	worker	   *w = arg;

	while (!atomic_load(&stop))
	{
		enter(w);
		for (int n = 0; n < 200; n++)
		{
			size_t		i = (size_t) (test_random_from(&w->random) % key_count);
			uint64_t	value = mot_tree_get(f.tree, keys[i].bytes, keys[i].len, NULL);

			CHECK(value ? VALUE_KEY(value) == i : !ALWAYS(i));
		}
		scan(w);
		leave(w);
	}
	return NULL;
}

/* ------------------------------------------------------------------- tests */

static void
stress(int shape, size_t n)
{
	int			threads = writers + readers;
	uint64_t	base;
	uint64_t	inserts = 0;
	uint64_t	scans = 0;
	double		until;
	tree_stat	stat;
	size_t		present = 0;

	keys = random_keys(&test_random_state, n, shape);
	key_count = model_sort(keys, n);
	fixture_begin(&f, (size_t) 256 << 20, MAX_THREADS + 1);
	base = fixture_bytes(&f);
	for (size_t i = 0; i < key_count; i += 3)
		CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, VALUE(i, 0), NULL) == MOT_TREE_OK);

	atomic_store(&stop, false);
	atomic_store(&epoch, 1);
	for (int i = 0; i < threads; i++)
	{
		worker	   *w = &workers[i];

		memset((void *) w, 0, sizeof(*w));
		w->number = i;
		w->random = test_random();
		w->ctx = f.ctx;
		w->ctx.cache = mot_region_cache(f.region, (unsigned) i + 1);
		w->ctx.retire = stress_retire;
		w->ctx.retire_arg = w;
		REQUIRE(pthread_create(&w->thread, NULL, i < writers ? writer : reader, w) == 0);
	}
	until = test_seconds() + seconds;
	while (test_seconds() < until)
		usleep(10000);
	atomic_store(&stop, true);
	for (int i = 0; i < threads; i++)
	{
		pthread_join(workers[i].thread, NULL);
		if (i >= writers)
			scans += workers[i].done;
		else
			inserts += workers[i].done; /* less what it removed */
	}

	CHECK(tree_is_sound(f.tree));
	for (size_t i = 0; i < key_count; i++)
	{
		keys[i].value = mot_tree_get(f.tree, keys[i].bytes, keys[i].len, NULL);
		CHECK(keys[i].value ? VALUE_KEY(keys[i].value) == i : !ALWAYS(i));
		present += keys[i].value != 0;
	}
	CHECK(present == (key_count + 2) / 3 + inserts);
	CHECK(model_equal(&f, keys, key_count));

	/* and down to nothing */
	for (size_t i = 0; i < key_count; i++)
		if (keys[i].value)
			CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
	CHECK(tree_is_sound(f.tree));
	tree_stats(f.tree, &stat);
	CHECK(stat.keys == 0 && stat.border_nodes == 1 && stat.layers == 1);
	for (int i = 0; i < threads; i++)
	{
		close_batch(&workers[i]);
		free_batches(&workers[i], true);
		mot_cache_flush(workers[i].ctx.cache);
	}
	fixture_drain(&f);
	printf("# shape %d: %zu keys, %llu scans, %llu bytes left of an empty tree's %llu\n", shape, key_count,
		   (unsigned long long) scans, (unsigned long long) fixture_bytes(&f), (unsigned long long) base);
	CHECK(fixture_bytes(&f) <= base + stat.interior_nodes * 512 + 8192);
	fixture_end(&f);
	model_free(keys, key_count);
}

static void
small_sets(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
		stress(shape, 150);
}

static void
large_sets(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
		stress(shape, 6000);
}

/*
 * No key is always there: layers and the whole tree become empty and fill
 * again all the time.  Each writer owns some keys and knows what it left.
 */
static void *
owner(void *arg)
{
	worker	   *w = arg;

	while (!atomic_load(&stop))
	{
		unsigned share = test_random_from(&w->random) % 3 ? 30 : 90;

		for (int n = 0; n < 100; n++)
		{
			size_t		i = (size_t) (test_random_from(&w->random) % key_count);
			model_key  *k;
			uint64_t	desired;
			uint64_t	actual;

			i = i - i % (size_t) writers + (size_t) w->number;
			if (i >= key_count)
				continue;
			k = &keys[i];
			desired = test_random_from(&w->random) % 100 < share ? VALUE(i, n) : 0;

			enter(w);
			CHECK(mot_tree_cas(f.tree, &w->ctx, k->bytes, k->len, k->value, desired, &actual,
							   MOT_FOR_CHANGE, NULL) == MOT_TREE_OK);
			CHECK(actual == k->value);
			CHECK(mot_tree_get(f.tree, k->bytes, k->len, NULL) == desired);
			leave(w);
			k->value = desired;
			w->done++;
		}
	}
	return NULL;
}

static void
owned_keys(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
	{
		double		until = test_seconds() + seconds;
		uint64_t	changes = 0;

		keys = random_keys(&test_random_state, 60, shape);
		key_count = model_sort(keys, 60);
		fixture_begin(&f, (size_t) 64 << 20, MAX_THREADS + 1);
		atomic_store(&stop, false);
		atomic_store(&epoch, 1);
		for (int i = 0; i < writers; i++)
		{
			worker	   *w = &workers[i];

			memset((void *) w, 0, sizeof(*w));
			w->number = i;
			w->random = test_random();
			w->ctx = f.ctx;
			w->ctx.cache = mot_region_cache(f.region, (unsigned) i + 1);
			w->ctx.retire = stress_retire;
			w->ctx.retire_arg = w;
			REQUIRE(pthread_create(&w->thread, NULL, owner, w) == 0);
		}
		while (test_seconds() < until)
			usleep(10000);
		atomic_store(&stop, true);
		for (int i = 0; i < writers; i++)
		{
			pthread_join(workers[i].thread, NULL);
			changes += workers[i].done;
		}
		CHECK(model_equal(&f, keys, key_count));
		for (int i = 0; i < writers; i++)
		{
			close_batch(&workers[i]);
			free_batches(&workers[i], true);
			mot_cache_flush(workers[i].ctx.cache);
		}
		printf("# shape %d: %zu keys, %llu changes\n", shape, key_count, (unsigned long long) changes);
		fixture_end(&f);
		model_free(keys, key_count);
	}
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atof(argv[1]);
	if (argc > 2)
		writers = atoi(argv[2]);
	if (argc > 3)
		readers = atoi(argv[3]);
	test_begin(argc, argv);
	REQUIRE(writers > 0 && readers >= 0 && writers + readers <= MAX_THREADS);
	RUN(small_sets);
	RUN(large_sets);
	RUN(owned_keys);
	return test_end();
}
