/*-------------------------------------------------------------------------
 *
 * test_tree_observer.c
 *	  What the Masstree tells observers: a transaction's node set stays valid
 *	  under its own inserts, and no insert of others into what it has read
 *	  goes unnoticed.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"
#include "test_tree.h"

#define REGION_BYTES ((size_t) 64 << 20)
#define SET_MAX 20000

/* a node set as a transaction keeps it */
typedef struct node_set
{
	struct
	{
		const mot_node *node;
		uint64_t	version;
	}			entry[SET_MAX];
	int			count;
	mot_observer observer;
} node_set;

static void
set_observe(void *arg, const mot_node *node, uint64_t version)
{
	node_set   *set = arg;

	REQUIRE(set->count < SET_MAX);
	set->entry[set->count].node = node;
	set->entry[set->count++].version = version;
}

static void
set_moved(void *arg, const mot_node *node, uint64_t from, uint64_t to,
		  const mot_node *sibling, uint64_t sibling_version)
{
	node_set   *set = arg;
	bool		had = false;

	for (int i = 0; i < set->count; i++)
		if (set->entry[i].node == node && set->entry[i].version == from)
		{
			set->entry[i].version = to;
			had = true;
		}
	if (had && sibling)
		set_observe(set, sibling, sibling_version);
}

static void
set_begin(node_set *set)
{
	set->count = 0;
	set->observer.observe = set_observe;
	set->observer.moved = set_moved;
	set->observer.arg = set;
}

static bool
set_valid(const node_set *set)
{
	for (int i = 0; i < set->count; i++)
		if (mot_node_version(set->entry[i].node) != set->entry[i].version)
			return false;
	return true;
}

static uint64_t
answer_other(void *arg, uint64_t value)
{
	(void) arg;
	return value + 2;
}

static void
gets(void)
{
	static node_set set;
	fixture		f;

	fixture_begin(&f, REGION_BYTES, 1);
	set_begin(&set);

	/* absent: the node where it would be */
	CHECK(mot_tree_get(f.tree, "a", 1, &set.observer) == 0);
	CHECK(set.count == 1 && set_valid(&set));
	CHECK(tree_insert(&f, "b", 1, 1, NULL) == MOT_TREE_OK);
	CHECK(!set_valid(&set));

	/* present: the node where it is; changes and removals do not matter */
	set_begin(&set);
	CHECK(mot_tree_get(f.tree, "b", 1, &set.observer) == 1);
	CHECK(set.count == 1 && set_valid(&set));
	CHECK(mot_tree_change(f.tree, &f.ctx, "b", 1, answer_other, NULL, NULL, NULL) == MOT_TREE_OK);
	CHECK(set_valid(&set));
	CHECK(tree_remove(&f, "b", 1) == MOT_TREE_OK);
	CHECK(set_valid(&set));
	/* but putting it back does */
	CHECK(tree_insert(&f, "b", 1, 1, NULL) == MOT_TREE_OK);
	CHECK(!set_valid(&set));

	/* a failed insert changes nothing */
	set_begin(&set);
	CHECK(mot_tree_get(f.tree, "b", 1, &set.observer) == 1);
	CHECK(tree_insert(&f, "b", 1, 1, NULL) == MOT_TREE_MISMATCH);
	CHECK(set_valid(&set));
	fixture_end(&f);
}

/* a key becomes a link to a layer: the upper node changes, the new one is told */
static void
layers(void)
{
	static node_set set;
	static node_set other;
	char		key[100];
	fixture		f;

	for (int alike = 8; alike < 90; alike += 5)
	{
		fixture_begin(&f, REGION_BYTES, 1);
		memset(key, 'k', sizeof(key));
		CHECK(tree_insert(&f, key, 99, 1, NULL) == MOT_TREE_OK);

		set_begin(&set);
		set_begin(&other);
		key[alike] = 'j';
		CHECK(mot_tree_get(f.tree, key, 95, &set.observer) == 0);
		CHECK(mot_tree_get(f.tree, key, 95, &other.observer) == 0);
		/* somebody's own insert makes the layers */
		CHECK(tree_insert(&f, key, 97, 2, &set.observer) == MOT_TREE_OK);
		CHECK(set_valid(&set) && set.count == 2);
		CHECK(!set_valid(&other));
		/* and another's of the key that was looked for is noticed */
		CHECK(tree_insert(&f, key, 95, 3, NULL) == MOT_TREE_OK);
		CHECK(!set_valid(&set));
		CHECK(tree_is_sound(f.tree));

		/* a layer that was read and goes away is noticed, too */
		set_begin(&set);
		CHECK(mot_tree_get(f.tree, key, 96, &set.observer) == 0);
		key[alike] = 'k';
		CHECK(tree_remove(&f, key, 99) == MOT_TREE_OK);
		key[alike] = 'j';
		CHECK(tree_remove(&f, key, 97) == MOT_TREE_OK);
		CHECK(set_valid(&set));
		CHECK(tree_remove(&f, key, 95) == MOT_TREE_OK);
		CHECK(!set_valid(&set));
		fixture_end(&f);
	}
}

/*
 * a key that is absent because it has not what a link skips: the node with the link is what was
 * read
 */
static void
skips(void)
{
	static node_set set;
	static node_set other;
	static node_set below;
	char		key[100];
	fixture		f;

	for (int at = 0; at < 80; at += 3)
	{
		fixture_begin(&f, REGION_BYTES, 1);
		memset(key, 'k', sizeof(key));
		CHECK(tree_insert(&f, key, 97, 1, NULL) == MOT_TREE_OK);
		CHECK(tree_insert(&f, key, 99, 2, NULL) == MOT_TREE_OK);
		set_begin(&set);
		set_begin(&other);
		set_begin(&below);
		CHECK(mot_tree_get(f.tree, key, 98, &below.observer) == 0);
		key[at] = 'j';
		CHECK(mot_tree_get(f.tree, key, 98, &set.observer) == 0);
		CHECK(mot_tree_get(f.tree, key, 98, &other.observer) == 0);
		CHECK(set.count == 1);
		/* what comes below is of no interest, nor what goes */
		key[at] = 'k';
		CHECK(tree_insert(&f, key, 100, 3, &below.observer) == MOT_TREE_OK);
		CHECK(tree_remove(&f, key, 97) == MOT_TREE_OK);
		CHECK(set_valid(&set) && set_valid(&other) && set_valid(&below));

		/*
		 * one's own insert puts a layer in between; who looked below it is
		 * not disturbed
		 */
		key[at] = 'j';
		CHECK(tree_insert(&f, key, 97, 4, &set.observer) == MOT_TREE_OK);
		CHECK(set_valid(&set) && set.count == (at < 8 ? 1 : 2));
		CHECK(set_valid(&below) && !set_valid(&other));
		/* another's of the key that was looked for is noticed */
		CHECK(tree_insert(&f, key, 98, 5, NULL) == MOT_TREE_OK);
		CHECK(!set_valid(&set));
		CHECK(tree_is_sound(f.tree));
		fixture_end(&f);
	}
}

/*
 * Random reads and scans of a transaction, then its own inserts, under which
 * the set stays valid; then one insert of another into what it read.
 */
static void
transactions(void)
{
	static node_set set;

	for (int round = 0; round < 1500; round++)
	{
		int			shape = round % (KEY_SHAPES + 1) - 1;
		size_t		n = 5 + (size_t) (test_random() % 400);
		model_key  *keys = random_keys(&test_random_state, n, shape);
		bool	   *read = calloc(n, sizeof(bool));
		int			own = (int) (test_random() % 100);
		size_t		reads = 0;
		fixture		f;

		n = model_sort(keys, n);
		fixture_begin(&f, 4 << 20, 1);
		for (size_t i = 0; i < n; i++)
			if (test_random() % 3 == 0)
			{
				keys[i].value = i + 1;
				CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
			}

		set_begin(&set);
		for (int i = 0; i < 5; i++)
		{
			size_t		k = (size_t) (test_random() % n);

			CHECK(mot_tree_get(f.tree, keys[k].bytes, keys[k].len, &set.observer) == keys[k].value);
			read[k] = true;
		}
		for (int i = 0; i < 3; i++)
		{
			model_key  *a = &keys[test_random() % n];
			model_key  *b = &keys[test_random() % n];
			mot_bound	low = {MOT_BOUND_INCLUSIVE, a->bytes, a->len};
			mot_bound	high = {MOT_BOUND_INCLUSIVE, b->bytes, b->len};
			mot_tree_cursor c;

			if (test_random() % 4 == 0)
				high.kind = MOT_BOUND_EXCLUSIVE;
			if (test_random() % 4 == 0)
				low.kind = MOT_BOUND_EXCLUSIVE;
			REQUIRE(mot_tree_cursor_open(&c, f.tree, &low, &high, test_random() % 2, &set.observer));
			while (mot_tree_cursor_next(&c, NULL, NULL))
				;
			mot_tree_cursor_close(&c);
			for (size_t k = 0; k < n; k++)
				if (model_in_range(&keys[k], &low, &high))
					read[k] = true;
		}
		CHECK(set_valid(&set));
		for (int i = 0; i < own; i++)
		{
			size_t		k = (size_t) (test_random() % n);

			if (keys[k].value)
				continue;
			keys[k].value = k + 1;
			CHECK(tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, &set.observer) == MOT_TREE_OK);
		}
		CHECK(set_valid(&set));

		for (size_t i = 0; i < n; i++)
			reads += read[i] && keys[i].value == 0;
		if (reads > 0)
		{
			size_t		k = (size_t) (test_random() % n);

			while (!read[k] || keys[k].value)
				k = (k + 1) % n;
			/* it may also come and go: its insert has to be noticed */
			CHECK(tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, NULL) == MOT_TREE_OK);
			if (round % 2)
				CHECK(tree_remove(&f, keys[k].bytes, keys[k].len) == MOT_TREE_OK);
			CHECK(!set_valid(&set));
		}
		fixture_end(&f);
		free(read);
		model_free(keys, n);
	}
}

/* nodes that others delete: what they had is either noticed or watched elsewhere */
static void
deletions(void)
{
	static node_set set;

	for (int round = 0; round < 1500; round++)
	{
		int			shape = round % (KEY_SHAPES + 1) - 1;
		size_t		n = 5 + (size_t) (test_random() % 400);
		model_key  *keys = random_keys(&test_random_state, n, shape);
		mot_tree_cursor c;
		size_t		from;
		size_t		k;
		fixture		f;

		n = model_sort(keys, n);
		fixture_begin(&f, 4 << 20, 1);
		for (size_t i = 0; i < n; i++)
		{
			keys[i].value = i + 1;
			CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
		}
		/* a scan of all, stopped on its way to let nodes disappear */
		set_begin(&set);
		REQUIRE(mot_tree_cursor_open(&c, f.tree, NULL, NULL, test_random() % 2, &set.observer));
		for (size_t i = test_random() % n; i > 0; i--)
			mot_tree_cursor_next(&c, NULL, NULL);
		from = (size_t) (test_random() % n);
		for (size_t i = from; i < n && i < from + 60; i++)
		{
			CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
			keys[i].value = 0;
		}
		while (mot_tree_cursor_next(&c, NULL, NULL))
			;
		mot_tree_cursor_close(&c);
		k = from + (size_t) (test_random() % (n - from < 60 ? n - from : 60));
		CHECK(tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, NULL) == MOT_TREE_OK);
		CHECK(!set_valid(&set));
		fixture_end(&f);
		model_free(keys, n);
	}
}

/*
 * Nodes become empty and are deleted under a transaction that has read them,
 * by whoever reclaims what was deleted long ago, with its own inserts before
 * and after.  A key of another's that comes to what it read must show.  This is
 * the node set of the engine's transactions.
 */
static void
reclaimed(void)
{
	for (int round = 0; round < 2000; round++)
	{
		int			shape = round % (KEY_SHAPES + 1) - 1;
		size_t		n = 5 + (size_t) (test_random() % (round % 2 ? 60 : 400));
		model_key  *keys = random_keys(&test_random_state, n, shape);
		bool	   *read = calloc(n, sizeof(bool));
		int			steps = (int) (test_random() % 400);
		bool		emptied = test_random() % 2;
		size_t		reads = 0;
		static mot_session s;
		fixture		f;

		n = model_sort(keys, n);
		fixture_begin(&f, 4 << 20, 1);
		memset(&s, 0, sizeof(s));
		mot_read_init(&s);
		for (size_t i = 0; i < n; i++)
			if (test_random() % 4 != 0)
			{
				keys[i].value = i + 1;
				CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
			}
		for (int i = 0; i < steps; i++)
		{
			size_t		k = (size_t) (test_random() % n);

			if (i % 40 == 0)
			{
				model_key  *other = &keys[test_random() % n];
				mot_bound	low = {MOT_BOUND_INCLUSIVE, keys[k].bytes, keys[k].len};
				mot_bound	high = {MOT_BOUND_INCLUSIVE, other->bytes, other->len};
				mot_tree_cursor c;

				REQUIRE(mot_tree_cursor_open(&c, f.tree, &low, &high, test_random() % 2, &s.observer));
				while (mot_tree_cursor_next(&c, NULL, NULL))
					;
				mot_tree_cursor_close(&c);
				for (size_t j = 0; j < n; j++)
					if (model_in_range(&keys[j], &low, &high))
						read[j] = true;
			}
			else if (i % 10 == 0)
			{
				CHECK(mot_tree_get(f.tree, keys[k].bytes, keys[k].len, &s.observer) == keys[k].value);
				read[k] = true;
			}
			else if (keys[k].value)
			{
				CHECK(tree_remove(&f, keys[k].bytes, keys[k].len) == MOT_TREE_OK);
				keys[k].value = 0;
			}
			else if (!emptied || i % 8 == 0)
			{
				keys[k].value = k + 1;
				CHECK(tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, &s.observer) == MOT_TREE_OK);
			}
		}
		for (size_t i = 0; i < n; i++)
			reads += read[i] && keys[i].value == 0;
		if (reads > 0)
		{
			size_t		k = (size_t) (test_random() % n);

			while (!read[k] || keys[k].value)
				k = (k + 1) % n;
			CHECK(tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, NULL) == MOT_TREE_OK);
			if (round % 3 == 0)
				CHECK(tree_remove(&f, keys[k].bytes, keys[k].len) == MOT_TREE_OK);
			/* ours come after it: they carry nothing forward */
			for (int i = 0; i < 5; i++)
			{
				k = (size_t) (test_random() % n);
				(void) tree_insert(&f, keys[k].bytes, keys[k].len, k + 1, &s.observer);
			}
			CHECK(!mot_read_nodes_stand(&s));
		}
		mot_read_free(&s);
		fixture_end(&f);
		free(read);
		model_free(keys, n);
	}
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(gets);
	RUN(layers);
	RUN(skips);
	RUN(transactions);
	RUN(deletions);
	RUN(reclaimed);
	return test_end();
}
