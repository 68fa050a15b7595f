/*-------------------------------------------------------------------------
 *
 * test_tree.c
 *	  The Masstree by one thread, compared with a sorted array.
 *
 *-------------------------------------------------------------------------
 */
#include "test_tree.h"

#define REGION_BYTES ((size_t) 64 << 20)

/* inserts, removals, updates at random; the whole tree is compared now and then */
static void
random_changes(int shape, size_t n, int rounds, bool exclusive)
{
	fixture		f;
	model_key  *keys = random_keys(&test_random_state, n, shape);

	n = model_sort(keys, n);
	fixture_begin(&f, REGION_BYTES, 1);
	f.ctx.exclusive = exclusive;
	for (int round = 0; round < rounds; round++)
	{
		/* from mostly inserting to mostly removing */
		unsigned share = (unsigned) (test_random() % 101);

		for (size_t i = 0; i < n; i++)
		{
			model_key  *k = &keys[test_random() % n];
			uint64_t	desired = test_random() % 100 < share ? test_random() | 1 : 0;
			uint64_t	expected = test_random() % 8 ? k->value : test_random();
			uint64_t	actual = 7;
			mot_tree_status status;

			status = mot_tree_cas(f.tree, &f.ctx, k->bytes, k->len, expected, desired,
								  &actual, MOT_FOR_CHANGE, NULL);
			CHECK(actual == k->value);
			CHECK(status == (expected == k->value ? MOT_TREE_OK : MOT_TREE_MISMATCH));
			if (expected == k->value)
				k->value = desired;
		}
		CHECK(model_equal(&f, keys, n));
		fixture_drain(&f);
	}
	fixture_end(&f);
	model_free(keys, n);
}

static void
random_model(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
		for (size_t n = 5; n <= 5000; n *= 10)
			random_changes(shape, n, n < 1000 ? 40 : 12, false);
}

static void
random_model_exclusive(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
		random_changes(shape, 1000, 20, true);
}

/* every length around the slices' ends, the same bytes and others, in all orders */
static void
key_lengths(void)
{
	static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20, 23, 24, 25, 63, 64, 65, 255, 256, 1000, 4095, 4096, MOT_KEY_MAX - 1, MOT_KEY_MAX
	};
	static const char fill[] = {'\0', 'a', '\377'};
	size_t		n = 0;
	model_key  *keys = calloc(3 * sizeof(lengths) / sizeof(lengths[0]), sizeof(model_key));
	fixture		f;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int k = 0; k < 3; k++)
		{
			keys[n].len = lengths[i];
			keys[n].bytes = malloc(lengths[i] + 1);
			memset(keys[n].bytes, fill[k], lengths[i]);
			n++;
		}
	n = model_sort(keys, n);
	CHECK(n == 3 * sizeof(lengths) / sizeof(lengths[0]) - 2);

	fixture_begin(&f, REGION_BYTES, 1);
	for (int round = 0; round < 12; round++)
	{
		/* ascending, descending, or shuffled */
		size_t	   *order = calloc(n, sizeof(size_t));

		for (size_t i = 0; i < n; i++)
		{
			size_t		j = round % 4 == 0 ? i : (size_t) (test_random() % (i + 1));

			order[i] = order[j];
			order[j] = round % 4 == 1 ? n - 1 - i : i;
		}
		for (size_t i = 0; i < n; i++)
		{
			model_key  *k = &keys[order[i]];

			k->value = i + 1;
			CHECK(tree_insert(&f, k->bytes, k->len, k->value, NULL) == MOT_TREE_OK);
			CHECK(tree_insert(&f, k->bytes, k->len, 5, NULL) == MOT_TREE_MISMATCH);
		}
		CHECK(model_equal(&f, keys, n));
		for (size_t i = 0; i < n; i++)
		{
			model_key  *k = &keys[order[round % 3 == 0 ? n - 1 - i : i]];

			k->value = 0;
			CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_OK);
			CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_MISMATCH);
			if (i % 16 == 0)
				CHECK(model_equal(&f, keys, n));
		}
		CHECK(model_equal(&f, keys, n));
		fixture_drain(&f);
		free(order);
	}
	fixture_end(&f);
	model_free(keys, n);
}

/*
 * Slices around the least and the greatest there can be, in trees with
 * interior nodes: readers find their child by what stands for "no key", and
 * that is the greatest slice.  Half of the keys come and go again and again,
 * so that interior nodes split, shrink and are filled again.
 */
static void
ends_of_the_range(void)
{
	const size_t side = 2000;
	size_t		n = 0;
	model_key  *keys = calloc(2 * side + 40, sizeof(model_key));
	fixture		f;

	for (size_t i = 0; i < 2 * side + 36; i++)
	{
		model_key  *k = &keys[n++];

		k->bytes = malloc(16);
		if (i < 2 * side)
		{
			uint64_t	slice = i < side ? i : UINT64_MAX - (i - side);

			k->len = 8;
			for (int b = 0; b < 8; b++)
				k->bytes[b] = (unsigned char) (slice >> (56 - 8 * b));
			continue;
		}
		/* the same slices in other lengths */
		k->len = (i - 2 * side) % 18;
		if (k->len >= 8)
			k->len++;			/* 8 is there */
		if (k->len > 16)
			k->len = 16;
		memset(k->bytes, i < 2 * side + 18 ? 0 : 255, 16);
	}
	n = model_sort(keys, n);
	for (int descending = 0; descending < 2; descending++)
	{
		fixture_begin(&f, REGION_BYTES, 1);
		for (size_t i = 0; i < n; i++)
		{
			model_key  *k = &keys[descending ? n - 1 - i : i];

			k->value = i + 1;
			CHECK(tree_insert(&f, k->bytes, k->len, k->value, NULL) == MOT_TREE_OK);
		}
		CHECK(model_equal(&f, keys, n));
		for (int round = 0; round < 6; round++)
		{
			uint64_t	less = test_random() % 3 + 2;

			for (size_t i = 0; i < n; i++)
			{
				model_key  *k = &keys[i];

				/* in runs, so that nodes become empty */
				if ((i / 64 * UINT64_C(0x9e3779b97f4a7c15) >> 32) % less == 0 && k->value != 0)
				{
					CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_OK);
					k->value = 0;
				}
			}
			CHECK(model_equal(&f, keys, n));
			for (size_t i = 0; i < n; i++)
			{
				model_key  *k = &keys[(i * 1597) % n];

				if (k->value == 0)
				{
					k->value = (uint64_t) (k - keys) + 1;
					CHECK(tree_insert(&f, k->bytes, k->len, k->value, NULL) == MOT_TREE_OK);
				}
			}
			CHECK(model_equal(&f, keys, n));
			fixture_drain(&f);
		}
		fixture_end(&f);
		for (size_t i = 0; i < n; i++)
			keys[i].value = 0;
	}
	model_free(keys, n);
}

/*
 * A node of 15 keys splits at each position, with every run of equal slices
 * in it: slices differ in one byte, equal ones in their lengths.  "Run": the
 * last three keys that came before are those just below, in order.
 */
static void
split_at(fixture *f, int first_equal, int equal, int position, bool run, bool alone)
{
	model_key	keys[64];
	size_t		n = 0;
	size_t		order[16];

	f->tree = mot_tree_create(&f->ctx, f->pool);
	REQUIRE(f->tree != NULL);
	for (int i = 0; i < 16; i++)
	{
		bool		is_equal = i >= first_equal && i < first_equal + equal;
		unsigned char *k = calloc(1, 16);

		k[0] = (unsigned char) (100 + (is_equal ? first_equal : i));
		keys[n].bytes = k;
		keys[n].len = is_equal && equal > 1 ? (size_t) (i - first_equal) + 1 : 4;
		keys[n].value = 0;
		n++;
	}
	/* neighbours on both sides, or the only node */
	for (int i = 0; i < 24 && !alone; i++)
	{
		keys[n].bytes = calloc(1, 16);
		keys[n].bytes[0] = (unsigned char) (i < 12 ? i : 200 + i);
		keys[n].len = 3;
		keys[n].value = 0;
		n++;
	}
	/* the neighbours first, then all but one */
	for (size_t i = 16; i < n; i++)
	{
		keys[i].value = i + 1;
		tree_insert(f, keys[i].bytes, keys[i].len, i + 1, NULL);
	}
	for (int i = 0, at = 0, behind = run ? 12 : 15; i < 16; i++)
	{
		if (i == position)
			order[15] = (size_t) i;
		else if (run && i >= position - 3 && i < position)
			order[behind++] = (size_t) i;
		else
			order[at++] = (size_t) i;
	}
	for (size_t i = 0; i < 16; i++)
	{
		size_t		j = order[i];

		keys[j].value = j + 1;
		CHECK(tree_insert(f, keys[j].bytes, keys[j].len, j + 1, NULL) == MOT_TREE_OK);
	}
	CHECK(tree_is_sound(f->tree));
	n = model_sort(keys, n);
	CHECK(model_equal(f, keys, n));
	for (size_t i = 0; i < n; i++)
		free(keys[i].bytes);
}

static void
split_positions(void)
{
	fixture		f;

	fixture_begin(&f, REGION_BYTES, 1);
	for (int equal = 1; equal <= 10; equal++)
		for (int first = 0; first + equal <= 16; first++)
			for (int position = 0; position < 16; position++)
				for (int alone = 0; alone < 2; alone++)
				{
					split_at(&f, first, equal, position, false, alone);
					if (position >= 3 && position < 15)
						split_at(&f, first, equal, position, true, alone);
				}
	fixture_end(&f);
}

/* a sequence of integers fills its nodes */
static void
sequences(void)
{
	for (int descending = 0; descending < 2; descending++)
	{
		fixture		f;
		uint64_t	n = 200000;
		tree_stat	stat;
		uint64_t	pages;
		uint64_t	objects;

		fixture_begin(&f, REGION_BYTES, 1);
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	x = __builtin_bswap64(descending ? n - i : i + 1);

			CHECK(tree_insert(&f, &x, 8, i + 1, NULL) == MOT_TREE_OK);
		}
		tree_stats(f.tree, &stat);
		mot_cache_flush(f.ctx.cache);
		mot_pool_stats(f.pool, &pages, &objects);
		printf("# %s: %.2f bytes per key in pages, %.2f in nodes\n",
			   descending ? "descending" : "ascending",
			   (double) pages / (double) n, (double) objects / (double) n);
		CHECK(stat.keys == n && stat.layers == 1 && stat.suffix_bytes == 0);
		if (!descending)
		{
			CHECK(stat.border_nodes == (n + 14) / 15);
			CHECK((double) objects / (double) n <= 21.5);
			CHECK((double) (pages - 4 * MOT_PAGE_SIZE) / (double) n <= 21.5);
		}
		CHECK(tree_is_sound(f.tree));
		fixture_end(&f);
	}
}

/* so do many that grow side by side, and keys in no order fill them as ever */
static void
runs_side_by_side(void)
{
	for (int shape = 0; shape < 3; shape++)
	{
		fixture		f;
		uint64_t	n = 200000;
		uint64_t	groups = shape == 1 ? 10 : 1000;
		tree_stat	stat;
		double		fill;

		fixture_begin(&f, REGION_BYTES, 1);
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	x = (i % groups) << 32 | (i / groups);

			/* the groups in any order, in order, or none */
			if (shape == 0)
				x = (i * UINT64_C(7919) % groups) << 32 | (i / groups);
			else if (shape == 2)
				x = test_random();
			x = __builtin_bswap64(x);
			CHECK(tree_insert(&f, &x, 8, i + 1, NULL) == MOT_TREE_OK);
		}
		tree_stats(f.tree, &stat);
		fill = (double) stat.keys / (double) stat.border_nodes;
		printf("# %s: %.2f keys a border node\n",
			   shape == 2 ? "no order" : shape == 1 ? "10 runs" : "1000 runs", fill);
		CHECK(stat.keys == n);
		CHECK(fill >= (shape == 2 ? 10.0 : shape == 1 ? 14.9 : 13.0));
		CHECK(tree_is_sound(f.tree));
		fixture_end(&f);
	}
}

/* fill, and remove in many orders down to nothing: only a spine is left */
static void
remove_to_empty(void)
{
	for (int shape = 0; shape < KEY_SHAPES; shape++)
		for (int order = 0; order < 5; order++)
		{
			fixture		f;
			size_t		n = order < 2 ? 2000 : 4000;
			model_key  *keys = random_keys(&test_random_state, n, shape);
			tree_stat	stat;
			uint64_t	base;

			n = model_sort(keys, n);
			fixture_begin(&f, REGION_BYTES, 1);
			base = fixture_bytes(&f);
			for (int round = 0; round < 3; round++)
			{
				size_t		step = (size_t) (test_random() % n) | 1;
				size_t		at = 0;

				while (n % step == 0 && step > 1)
					step += 2;
				for (size_t i = 0; i < n; i++)
				{
					at = (at + step) % n;
					if (keys[at].value == 0)
						tree_insert(&f, keys[at].bytes, keys[at].len, at + 1, NULL);
					keys[at].value = at + 1;
				}
				for (size_t i = 0; i < n; i++)
					if (keys[i].value == 0)
					{
						tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL);
						keys[i].value = i + 1;
					}
				CHECK(model_equal(&f, keys, n));
				for (size_t i = 0; i < n; i++)
				{
					size_t		left = n - i;
					size_t		j;

					switch (order)
					{
						case 0: /* ascending */
							j = i;
							break;
						case 1: /* descending */
							j = left - 1;
							break;
						case 2: /* from the middle outwards */
							j = (n / 2 + (i & 1 ? n - (i + 1) / 2 : i / 2)) % n;
							break;
						default:	/* at random */
							j = (size_t) (test_random() % n);
							while (keys[j].value == 0)
								j = (j + 1) % n;
					}
					if (keys[j].value == 0)
						continue;
					CHECK(tree_remove(&f, keys[j].bytes, keys[j].len) == MOT_TREE_OK);
					keys[j].value = 0;
					if (i % 500 == 0)
						CHECK(model_equal(&f, keys, n));
				}
				for (size_t j = 0; j < n; j++)
					if (keys[j].value)
					{
						CHECK(tree_remove(&f, keys[j].bytes, keys[j].len) == MOT_TREE_OK);
						keys[j].value = 0;
					}
				fixture_drain(&f);
				CHECK(model_equal(&f, keys, n));
				tree_stats(f.tree, &stat);
				CHECK(stat.keys == 0 && stat.border_nodes == 1 && stat.layers == 1 &&
					  stat.interior_nodes <= 4);
				/* the spine, and perhaps the last node's suffixes */
				CHECK(fixture_bytes(&f) <= base + 4 * 512 + 8192);
			}
			fixture_end(&f);
			model_free(keys, n);
		}
}

/* all kinds of bounds, both directions, bounds that are keys, prefixes, neither */
static void
bounds(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
	{
		fixture		f;
		size_t		n = shape < 0 ? 2000 : 300;
		model_key  *keys = random_keys(&test_random_state, n, shape);

		n = model_sort(keys, n);
		fixture_begin(&f, REGION_BYTES, 1);
		for (size_t i = 0; i < n; i++)
			if (test_random() % 4)
			{
				keys[i].value = i + 1;
				tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL);
			}
		for (int i = 0; i < 3000; i++)
		{
			unsigned char bytes[2][512];
			mot_bound	bound[2];

			for (int b = 0; b < 2; b++)
			{
				model_key  *k = &keys[test_random() % n];

				bound[b].kind = (mot_bound_kind) (test_random() % 8 == 0 ? MOT_BOUND_NONE :
												  test_random() % 2 ? MOT_BOUND_INCLUSIVE : MOT_BOUND_EXCLUSIVE);
				bound[b].len = k->len;
				memcpy(bytes[b], k->bytes, k->len);
				bound[b].key = bytes[b];
				switch (test_random() % 4)
				{
					case 0:
						bound[b].len = (size_t) (test_random() % (k->len + 1));
						break;
					case 1:
						if (k->len > 0)
							bytes[b][test_random() % k->len] += (unsigned char) (test_random() % 2 ? 1 : -1);
						break;
					case 2:
						bytes[b][bound[b].len++] = (unsigned char) (test_random() % 2 ? 0 : 255);
						break;
					default:
						break;
				}
			}
			/* often both bounds the same: all keys with a prefix */
			if (test_random() % 3 == 0)
				bound[1] = bound[0];
			if (!model_scan_equal(f.tree, keys, n, &bound[0], &bound[1], false) ||
				!model_scan_equal(f.tree, keys, n, &bound[0], &bound[1], true))
			{
				printf("# shape %d, kinds %d %d, lengths %zu %zu\n", shape, bound[0].kind, bound[1].kind,
					   bound[0].len, bound[1].len);
				CHECK(!"scan as the model says");
				break;
			}
		}
		fixture_end(&f);
		model_free(keys, n);
	}
}

/*
 * Between two steps of a scan keys come and go.  Those that stay are seen
 * once, in order; those seen were there at some time.
 */
static void
scans_while_changing(void)
{
	for (int round = 0; round < 200; round++)
	{
		fixture		f;
		size_t		n = 400;
		model_key  *keys = random_keys(&test_random_state, n, round % (KEY_SHAPES + 1) - 1);
		bool		backward = test_random() % 2;
		unsigned	busy = 1 + (unsigned) (test_random() % 30);
		mot_tree_cursor c;
		const void *key;
		size_t		len;
		size_t		seen = 0;
		unsigned char last[512];
		size_t		last_len = 0;
		uint64_t	value;
		size_t		stay = 0;
		size_t		stayed = 0;
		size_t		from;

		n = model_sort(keys, n);
		fixture_begin(&f, REGION_BYTES, 1);
		for (size_t i = 0; i < n; i++)
		{
			/* every other key stays in the tree */
			keys[i].value = i % 2 == 0 || test_random() % 2 ? i + 1 : 0;
			if (keys[i].value)
				tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL);
			stay += i % 2 == 0;
		}
		REQUIRE(mot_tree_cursor_open(&c, f.tree, NULL, NULL, backward, NULL));
		while ((value = mot_tree_cursor_next(&c, &key, &len)) != 0)
		{
			size_t		i = value - 1;

			CHECK(i < n && len == keys[i].len && memcmp(key, keys[i].bytes, len) == 0);
			if (seen++ > 0)
				CHECK(backward ? key_compare(key, len, last, last_len) < 0 : key_compare(key, len, last, last_len) > 0);
			stayed += i % 2 == 0;
			memcpy(last, key, len);
			last_len = len;
			if (test_random() % 3)
				continue;
			/* near the cursor, so that its nodes split and disappear */
			from = i < 30 ? 0 : (i - 30) & ~(size_t) 1;
			for (unsigned j = 0; j < busy && n > 1; j++)
			{
				size_t		x = from + (size_t) (test_random() % 60) / 2 * 2 + 1;
				model_key  *k;

				if (x >= n)
					continue;
				k = &keys[x];
				if (k->value)
				{
					CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_OK);
					k->value = 0;
				}
				else
				{
					CHECK(tree_insert(&f, k->bytes, k->len, x + 1, NULL) == MOT_TREE_OK);
					k->value = x + 1;
				}
			}
		}
		CHECK(stayed == stay);
		mot_tree_cursor_close(&c);
		CHECK(model_equal(&f, keys, n));
		fixture_end(&f);
		model_free(keys, n);
	}
}

/* how many allocations are granted; the linker has the engine's pass by here */
static int	granted = INT_MAX;

extern void *__real_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why);
extern void *__wrap_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why);

void *
__wrap_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why)
{
	if (granted == 0)
		return NULL;
	granted--;
	return __real_mot_alloc(cache, pool, size, purpose, why);
}

/* whichever allocation of an insert is refused, the tree is as before, has lost nothing, and goes on */
static void
memory_exhaustion(void)
{
	for (int shape = 0; shape < KEY_SHAPES; shape++)
	{
		fixture		f;
		size_t		n = 10000;
		model_key  *keys = random_keys(&test_random_state, n, shape);
		int			failed = 0;
		int			most = 0;

		n = model_sort(keys, n);
		for (size_t i = n - 1; i > 0; i--)
		{
			size_t		j = (size_t) (test_random() % (i + 1));
			model_key	k = keys[i];

			keys[i] = keys[j];
			keys[j] = k;
		}
		fixture_begin(&f, REGION_BYTES, 1);
		for (size_t i = 0; i < n; i++)
		{
			uint64_t	bytes = fixture_bytes(&f);

			for (int grant = 0; keys[i].value == 0; grant++)
			{
				mot_tree_status status;

				granted = grant;
				status = tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL);
				granted = INT_MAX;
				if (status == MOT_TREE_OK)
				{
					keys[i].value = i + 1;
					break;
				}
				REQUIRE(status == MOT_TREE_NO_MEMORY);
				CHECK(mot_tree_get(f.tree, keys[i].bytes, keys[i].len, NULL) == 0);
				CHECK(fixture_bytes(&f) == bytes);
				if (failed++ % 64 == 0)
					CHECK(tree_is_sound(f.tree));
				if (grant >= most)
					most = grant + 1;
			}
		}
		/* removing needs none */
		granted = 0;
		for (size_t i = 0; i < n; i += 3)
		{
			CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
			keys[i].value = 0;
		}
		granted = INT_MAX;
		for (size_t i = 0; i < n; i += 3)
		{
			CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
			keys[i].value = i + 1;
		}
		qsort(keys, n, sizeof(model_key), model_compare);
		CHECK(model_equal(&f, keys, n));
		CHECK(failed > 0);
		printf("# shape %d: %zu keys, %d times without memory, an insert takes up to %d pieces\n", shape, n, failed, most);
		fixture_end(&f);
		model_free(keys, n);
	}
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(random_model);
	RUN(random_model_exclusive);
	RUN(key_lengths);
	RUN(ends_of_the_range);
	RUN(split_positions);
	RUN(sequences);
	RUN(runs_side_by_side);
	RUN(remove_to_empty);
	RUN(bounds);
	RUN(scans_while_changing);
	RUN(memory_exhaustion);
	return test_end();
}
