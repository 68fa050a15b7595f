/*-------------------------------------------------------------------------
 *
 * test_tree_ahead.c
 *	  Look-ups in the Masstree that begin ahead of their time: whatever
 *	  happens to the tree in between, the answer is that of the moment when
 *	  they end, and so is the node that observers are told.
 *
 *-------------------------------------------------------------------------
 */
#include "test_tree.h"
#include "tree/tree_node.h"

#define REGION_BYTES ((size_t) 64 << 20)

static void
put(fixture *f, model_key *k, uint64_t value)
{
	CHECK(tree_insert(f, k->bytes, k->len, value, NULL) == MOT_TREE_OK);
	k->value = value;
}

static void
drop(fixture *f, model_key *k)
{
	CHECK(tree_remove(f, k->bytes, k->len) == MOT_TREE_OK);
	k->value = 0;
}

/* some changes, near the key in most cases, so that its nodes split and go */
static void
disturb(fixture *f, model_key *keys, size_t n, size_t at)
{
	uint64_t	changes = test_random() % 4 == 0 ? test_random() % 100 : test_random() % 3;
	bool		inserting = test_random() % 2;

	while (changes-- > 0)
	{
		size_t		i = test_random() % 4 == 0 ? test_random() % n : (at + test_random() % 40) % n;

		if (keys[i].value == 0 && inserting)
			put(f, &keys[i], 1 + test_random() % 1000);
		else if (keys[i].value != 0 && !inserting)
			drop(f, &keys[i]);
	}
}

typedef struct seen
{
	const mot_node *node;
	uint64_t	version;
	int			count;
} seen;

static void
see(void *arg, const mot_node *node, uint64_t version)
{
	seen	   *s = arg;

	s->node = node;
	s->version = version;
	s->count++;
}

static void
steps(int shape, size_t n, int rounds)
{
	fixture		f;
	model_key  *keys = random_keys(&test_random_state, n, shape);
	size_t		kept = 0;

	n = model_sort(keys, n);
	fixture_begin(&f, REGION_BYTES, 1);
	for (size_t i = 0; i < n; i++)
	{
		keys[i].value = 0;
		if (test_random() % 2)
			put(&f, &keys[i], i + 1);
	}
	for (int round = 0; round < rounds; round++)
	{
		size_t		i = test_random() % n;
		model_key  *k = &keys[i];
		bool		disturbed = test_random() % 2;
		mot_ahead	ahead;
		uint64_t	value;
		const mot_node *b;
		mot_node   *root;
		seen		mine = {NULL, 0, 0};
		seen		now = {NULL, 0, 0};
		mot_observer my_observer = {see, NULL, &mine};
		mot_observer observer = {see, NULL, &now};

		mot_tree_get_begin(f.tree, k->bytes, k->len, &ahead);
		if (disturbed)
			disturb(&f, keys, n, i);

		/* where nothing has changed it must not begin at the root again */
		root = atomic_load(&f.tree->root);
		if (!disturbed && ahead.border != NULL)
			atomic_store(&f.tree->root, NULL);
		value = mot_tree_get_finish(f.tree, k->bytes, k->len, &ahead, &my_observer);
		atomic_store(&f.tree->root, root);
		CHECK(value == k->value);
		CHECK(mot_tree_get(f.tree, k->bytes, k->len, &observer) == value);
		CHECK(mine.count == 1 && mine.node == now.node && mine.version == now.version);
		/* (whether it was of use) */
		b = ahead.border;
		kept += b != NULL && b == mine.node;
		if (round % 64 == 0)
			fixture_drain(&f);
	}
	CHECK(model_equal(&f, keys, n));
	/* (keys of up to eight bytes:) or it would be good for nothing */
	CHECK(n < 100 || shape != 1 || kept > (size_t) rounds / 2);
	fixture_end(&f);
	model_free(keys, n);
}

/* most of the time a border node is all there is */
static void
small(void)
{
	for (int shape = 0; shape < KEY_SHAPES; shape++)
		steps(shape, 12, 3000);
}

static void
large(void)
{
	for (int shape = 0; shape < KEY_SHAPES; shape++)
		steps(shape, 3000, 20000);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(small);
	RUN(large);
	return test_end();
}
