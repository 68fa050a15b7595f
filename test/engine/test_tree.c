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
		unsigned	share = (unsigned) (test_random() % 101);

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

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(random_model);
	RUN(random_model_exclusive);
	return test_end();
}
