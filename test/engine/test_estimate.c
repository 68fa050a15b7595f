/*-------------------------------------------------------------------------
 *
 * test_estimate.c
 *	  What a table is estimated to take (estimate.c), beside what it takes: its rows, and trees
 *	  that are built of the same entries, all of them or a sample.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"
#include "test_tree.h"

static uint64_t state;

/* is one within so many per cent of the other, and pages that are not full? */
static bool
near(const char *what, double estimated, double found, double percent, int pages)
{
	double		off = found * percent / 100 + pages * (double) MOT_PAGE_SIZE;

	if (estimated >= found - off && estimated <= found + off)
		return true;
	printf("# %s: %.0f bytes estimated, %.0f found\n", what, estimated, found);
	return false;
}

static void
rows_of_a_table(void)
{
	store		st;
	mot_session *s;
	mot_row_estimate e;
	mot_table_stat stat;

	store_create(&st, (size_t) 64 << 20, 2, MOT_ENGINE_PRIVATE, true);
	s = open_session(st.engine, 0);
	mot_row_estimate_begin(st.engine, &e);
	CHECK(mot_row_estimate_bytes(&e, 1) == 0);
	begin(s);
	for (int i = 0; i < 30000; i++)
	{
		REQUIRE(insert(&st, s, 1, (uint64_t) i, i / 3) == MOT_OK);
		mot_row_estimate_add(&e, sizeof(record));
	}
	commit(s);
	mot_table_stats(st.table, &stat);
	CHECK(near("rows", mot_row_estimate_bytes(&e, 1), (double) stat.row_bytes, 3, 1));
	/* a sample's stand for as many as there are */
	CHECK(near("twice the rows", mot_row_estimate_bytes(&e, 2), 2 * mot_row_estimate_bytes(&e, 1), 1, 1));
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

/* the row's number goes behind a key that others may have */
static void
keys_of_entries(void)
{
	uint8_t		key[32] = "abcdefgh";
	uint8_t		next[32] = "abcdefgh";

	CHECK(mot_entry_estimated(key, 8, true, 96) == 8);
	CHECK(mot_entry_estimated(key, 8, false, 96) == 8 + KEY_TAIL);
	CHECK(memcmp(key, "abcdefgh", 8) == 0);
	CHECK(mot_entry_estimated(next, 8, false, 96 + MOT_ESTIMATED_HEAD) == 8 + KEY_TAIL);
	CHECK(memcmp(key, next, 8 + KEY_TAIL) < 0);
}

/* a tree of these keys, in bytes of pages */
static double
built(const model_key *keys, size_t n)
{
	fixture		f;
	mot_tree_build *b = malloc(mot_tree_build_size());
	uint64_t	before;
	uint64_t	pages;
	uint64_t	objects;

	REQUIRE(b != NULL);
	fixture_begin(&f, 256 << 20, 1);
	f.ctx.exclusive = true;
	REQUIRE(mot_tree_build_begin(b, f.tree, &f.ctx, false, NULL, NULL));
	for (size_t i = 0; i < n; i++)
		REQUIRE(mot_tree_build_add(b, keys[i].bytes, keys[i].len, keys[i].value, &before) == MOT_TREE_OK);
	REQUIRE(mot_tree_build_end(b) == MOT_TREE_OK);
	f.ctx.exclusive = false;
	mot_cache_flush(f.ctx.cache);
	mot_pool_stats(f.pool, &pages, &objects);
	fixture_end(&f);
	free(b);
	return (double) pages;
}

/* ... and of every so manieth of them, as it is estimated */
static double
estimated(mot_engine *engine, const model_key *keys, size_t n, size_t step)
{
	mot_sorted_entry *entries = calloc(n + 1, sizeof(*entries));
	size_t		m = 0;
	double		bytes;

	REQUIRE(entries != NULL);
	for (size_t i = 0; i < n; i += step, m++)
		entries[m] = (mot_sorted_entry)
	{
		keys[i].bytes, keys[i].len, 0
	};
	bytes = mot_index_estimate(engine, entries, m, (double) n);
	free(entries);
	return bytes;
}

static void
trees_of_every_shape(void)
{
	char		err[200];
	mot_engine *engine = mot_engine_create((size_t) 64 << 20, 1, MOT_ENGINE_PRIVATE, err, sizeof(err));

	REQUIRE(engine != NULL);
	CHECK(estimated(engine, NULL, 0, 1) > 0);
	for (int shape = 0; shape < KEY_SHAPES; shape++)
	{
		size_t		n = 200000;
		model_key  *keys = random_keys(&state, n, shape);
		char		what[40];

		n = model_sort(keys, n);
		for (size_t i = 0; i < n; i++)
			keys[i].value = (i + 1) << 4;
		snprintf(what, sizeof(what), "shape %d, %zu keys", shape, n);

		/*
		 * (in many layers each of the smallest nodes is somewhat fuller, or
		 * less full)
		 */
		CHECK(near(what, estimated(engine, keys, n, 1), built(keys, n), shape < 8 ? 8 : 25, 4));

		/*
		 * a sample cannot tell how many others part behind what is alike;
		 * digits and random bytes do early
		 */
		if (shape == 2 || shape == 6)
			CHECK(near(what, estimated(engine, keys, n, 10), built(keys, n), 25, 4));
		model_free(keys, n);
	}
	mot_engine_destroy(engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	state = test_seed;

	RUN(rows_of_a_table);
	RUN(keys_of_entries);
	RUN(trees_of_every_shape);
	return test_end();
}
