/*-------------------------------------------------------------------------
 *
 * bench_tree.c
 *	  How fast the Masstree is, per core, and how large.
 *
 *		bench_tree [keys [threads]]
 *
 * Keys are 8-byte integers in random order and in sequence, and 10-byte
 * decimal strings in random order (as kohler/masstree-beta's rw1 test has).
 * Each thread works on its share of the keys.  Time is that of the processor,
 * so that others on the machine disturb less.
 *
 * "put" is the concurrent path, all threads into one tree.  "build" is the one
 * that nobody else may look at (tree_build.c): each thread has a tree of its
 * own, of its share, as processes that load tables have an index each.  The keys
 * are sorted before; "sort, build" has the time of that (qsort) as well.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../test/engine/tree_stat.h"
#include "tree/tree_cursor.h"

#define MAX_THREADS 64

static uint64_t keys = 5000000;
static int	threads = 1;

static mot_region *region;
static mot_tree *tree;

typedef enum shape
{
	RANDOM_INTEGERS, SEQUENTIAL_INTEGERS, DECIMALS
} shape;

static const char *const shape_name[] = {"8-byte integers, random order", "8-byte integers, in sequence",
"10-byte decimals, random order"};

typedef struct worker
{
	int			number;
	shape shape;
	int			phase;
	pthread_t	thread;
	mot_tree_context ctx;
	uint64_t	done;
	double		seconds;
	mot_pool   *own;			/* of the tree it builds */
	mot_tree   *built;
	double		sorting;		/* seconds of it */
	void	  **retired;
	size_t		retireds;
	size_t		retired_room;
} worker;

static pthread_barrier_t barrier;

static double
cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

static void
die(const char *what)
{
	fprintf(stderr, "bench_tree: %s\n", what);
	exit(1);
}

/* a bijection of 64 bits: different numbers, different keys */
static inline uint64_t
scatter(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x7fb5d329728ea185);
	x ^= x >> 27;
	x *= UINT64_C(0x81dadef4bc2dd44d);
	return x ^ x >> 33;
}

static inline size_t
make_key(shape s, uint64_t i, unsigned char *key)
{
	uint64_t	x;

	if (s == DECIMALS)
	{
		/* random like rw1's; duplicates are rare and do not matter */
		x = scatter(i) % UINT64_C(2147483648);
		for (int j = 9; j >= 0; j--, x /= 10)
			key[j] = (unsigned char) ('0' + x % 10);
		return 10;
	}
	x = __builtin_bswap64(s == RANDOM_INTEGERS ? scatter(i) : i);
	memcpy(key, &x, 8);
	return 8;
}

/* kept to the end of the phase */
static void
retire(void *arg, void *object)
{
	worker	   *w = arg;

	if (w->retireds == w->retired_room)
	{
		w->retired_room = w->retired_room ? 2 * w->retired_room : 4096;
		w->retired = realloc(w->retired, w->retired_room * sizeof(void *));
		if (w->retired == NULL)
			die("no memory");
	}
	w->retired[w->retireds++] = object;
}

enum
{
	PUT, GET, SCAN, REMOVE, BUILD, PHASES
};

static const char *const phase_name[] = {"put", "get", "scan of 100", "remove", "build"};

typedef struct sorted_key
{
	unsigned char key[16];		/* zeros behind it */
	uint64_t	value;
} sorted_key;

static int
compare_keys(const void *a, const void *b)
{
	return memcmp(((const sorted_key *) a)->key, ((const sorted_key *) b)->key, sizeof(((sorted_key *) 0)->key));
}

static bool
no_more_memory(void *arg)
{
	(void) arg;
	return false;
}

static void
build(worker *w, uint64_t from, uint64_t to)
{
	size_t		n = (size_t) (to - from);
	size_t		len = 0;
	sorted_key *sorted = calloc(n, sizeof(*sorted));
	mot_tree_build *b = malloc(mot_tree_build_size());
	bool		in_order = true;
	double		start;

	w->built = mot_tree_create(&w->ctx, w->own);
	if (sorted == NULL || b == NULL || w->built == NULL)
		die("no memory");
	for (size_t i = 0; i < n; i++)
	{
		len = make_key(w->shape, from + i, sorted[i].key);
		sorted[i].value = from + i + 1;
	}

	start = cpu_seconds();
	for (size_t i = 1; i < n && in_order; i++)
		in_order = compare_keys(&sorted[i - 1], &sorted[i]) <= 0;
	if (!in_order)
		qsort(sorted, n, sizeof(*sorted), compare_keys);
	w->sorting = cpu_seconds() - start;

	start = cpu_seconds();
	if (!mot_tree_build_begin(b, w->built, &w->ctx, false, no_more_memory, NULL))
		die("region full");
	for (size_t i = 0; i < n; i++)
	{
		uint64_t	before;

		/* (of duplicates the first) */
		if (mot_tree_build_add(b, sorted[i].key, len, sorted[i].value, &before) == MOT_TREE_NO_MEMORY)
			die("region full");
	}
	if (mot_tree_build_end(b) != MOT_TREE_OK)
		die("region full");
	w->seconds = cpu_seconds() - start;
	w->done = n;
	for (size_t i = 0; i < n; i += 1000)
		if (mot_tree_get(w->built, sorted[i].key, len, NULL) == 0)
			die("built key not found");
	free(b);
	free(sorted);
}

static void
run_phase(worker *w, uint64_t from, uint64_t to)
{
	unsigned char key[16];
	size_t		len;
	uint64_t	actual;

	switch (w->phase)
	{
		case PUT:
			for (uint64_t i = from; i < to; i++)
			{
				len = make_key(w->shape, i, key);
				if (mot_tree_cas(tree, &w->ctx, key, len, 0, i + 1, &actual, MOT_FOR_NEW_ROW, NULL) == MOT_TREE_NO_MEMORY)
					die("region full");
			}
			w->done = to - from;
			break;
		case GET:
			/* not in the order in which they came */
			for (uint64_t i = from; i < to; i++)
			{
				uint64_t	j = w->shape == SEQUENTIAL_INTEGERS ? i : from + scatter(i) % (to - from);

				len = make_key(w->shape, j, key);
				if (mot_tree_get(tree, key, len, NULL) == 0)
					die("key not found");
			}
			w->done = to - from;
			break;
		case SCAN:
			w->done = (to - from) / 50;
			for (uint64_t i = 0; i < w->done; i++)
			{
				mot_tree_cursor c;
				mot_bound	lower = {MOT_BOUND_INCLUSIVE, key, 0};

				lower.len = make_key(w->shape, from + scatter(i) % (to - from), key);
				if (!mot_tree_cursor_open(&c, tree, &lower, NULL, false, NULL))
					die("no memory");
				for (int n = 0; n < 100; n++)
					if (mot_tree_cursor_next(&c, NULL, NULL) == 0)
						break;
				mot_tree_cursor_close(&c);
			}
			break;
		default:
			for (uint64_t i = from; i < to; i++)
			{
				len = make_key(w->shape, i, key);
				/* duplicates have been removed already */
				mot_tree_cas(tree, &w->ctx, key, len, i + 1, 0, &actual, MOT_FOR_CHANGE, NULL);
				if (actual != 0 && actual != i + 1)
					mot_tree_cas(tree, &w->ctx, key, len, actual, 0, &actual, MOT_FOR_CHANGE, NULL);
			}
			w->done = to - from;
			break;
	}
}

static void *
work(void *arg)
{
	worker	   *w = arg;
	double		start;
	uint64_t	from = keys * (uint64_t) w->number / (uint64_t) threads;
	uint64_t	to = keys * (uint64_t) (w->number + 1) / (uint64_t) threads;

	pthread_barrier_wait(&barrier);
	if (w->phase == BUILD)
		build(w, from, to);
	else
	{
		start = cpu_seconds();
		run_phase(w, from, to);
		w->seconds = cpu_seconds() - start;
	}
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < w->retireds; i++)
		mot_free(w->ctx.cache, w->retired[i]);
	w->retireds = 0;
	mot_cache_flush(w->ctx.cache);
	return NULL;
}

int
main(int argc, char **argv)
{
	static worker workers[MAX_THREADS];
	char		err[200];

	if (argc > 1)
		keys = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		threads = atoi(argv[2]);
	if (keys < 1000 || threads < 1 || threads > MAX_THREADS)
		die("usage: bench_tree [keys [threads]]");
	printf("%llu keys, %d thread%s; millions a second and core\n", (unsigned long long) keys, threads,
		   threads > 1 ? "s" : "");

	for (shape s = RANDOM_INTEGERS; s <= DECIMALS; s++)
	{
		mot_pool   *pool;
		tree_stat	stat;
		uint64_t	pages;
		uint64_t	objects;
		double		put_rate = 0;

		region = mot_region_create((size_t) keys * 200 + ((size_t) 256 << 20), (unsigned) threads, 0,
								   MOT_REGION_PRIVATE, err, sizeof(err));
		if (region == NULL)
			die(err);
		pool = mot_pool_create(region, MOT_POOL_PLAIN, NULL);
		printf("%s\n", shape_name[s]);
		pthread_barrier_init(&barrier, NULL, (unsigned) threads);
		for (int i = 0; i < threads; i++)
		{
			worker	   *w = &workers[i];

			w->number = i;
			w->shape = s;
			w->ctx.region = region;
			w->ctx.cache = mot_region_cache(region, (unsigned) i);
			w->ctx.retire = retire;
			w->ctx.retire_arg = w;
		}
		tree = mot_tree_create(&workers[0].ctx, pool);
		if (tree == NULL)
			die("no memory");
		for (int phase = 0; phase < PHASES; phase++)
		{
			double		rate = 0;
			double		sorted_rate = 0;

			for (int i = 0; i < threads; i++)
			{
				workers[i].phase = phase;
				if (phase == BUILD && (workers[i].own = mot_pool_create(region, MOT_POOL_PLAIN, NULL)) == NULL)
					die("no memory");
				if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
					die("no thread");
			}
			for (int i = 0; i < threads; i++)
			{
				pthread_join(workers[i].thread, NULL);
				rate += (double) workers[i].done / workers[i].seconds / threads;
				sorted_rate += (double) workers[i].done / (workers[i].seconds + workers[i].sorting) / threads;
			}
			if (phase == PUT)
				put_rate = rate;
			printf("  %-12s %8.3f", phase_name[phase], rate * 1e-6);
			if (phase == BUILD)
				printf(", %.2f times put\n  %-12s %8.3f, %.2f times put", rate / put_rate, "sort, build",
					   sorted_rate * 1e-6, sorted_rate / put_rate);
			printf("\n");
			if (phase == PUT)
			{
				tree_stats(tree, &stat);
				mot_pool_stats(pool, &pages, &objects);
			}
		}
		printf("  %.2f bytes a key in pages, %.2f in objects; %llu layers, %.1f keys a border node\n",
			   (double) pages / (double) stat.keys, (double) objects / (double) stat.keys,
			   (unsigned long long) stat.layers, (double) stat.keys / (double) stat.border_nodes);
		for (int i = 0; i < threads; i++)
			mot_pool_destroy(workers[i].own);
		mot_pool_destroy(pool);
		mot_region_destroy(region);
	}
	return 0;
}
