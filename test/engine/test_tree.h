/*-------------------------------------------------------------------------
 *
 * test_tree.h
 *	  What the tests of the Masstree share: a tree in a region of its own, a
 *	  sorted array to compare it with, keys of many shapes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TEST_TREE_H
#define MOT_TEST_TREE_H

#include "test.h"
#include "tree/tree_cursor.h"
#include "tree_stat.h"

/* ------------------------------------------------------------------- tree */

/* retired objects are kept until drain() */
typedef struct fixture
{
	mot_region *region;
	mot_pool   *pool;
	mot_pool_group group;
	mot_tree_context ctx;
	mot_tree   *tree;
	void	  **retired;
	size_t		retireds;
	size_t		retired_room;
} fixture;

static void
fixture_retire(void *arg, void *object)
{
	fixture    *f = arg;

	if (f->retireds == f->retired_room)
	{
		f->retired_room = f->retired_room ? 2 * f->retired_room : 1024;
		f->retired = realloc(f->retired, f->retired_room * sizeof(void *));
		REQUIRE(f->retired != NULL);
	}
	f->retired[f->retireds++] = object;
}

static inline void
fixture_drain(fixture *f)
{
	/* what would a reader see that still looked? */
	for (size_t i = 0; i < f->retireds; i++)
	{
		memset(f->retired[i], 0x5a, mot_usable_size(f->region, f->retired[i]));
		mot_free(f->ctx.cache, f->retired[i]);
	}
	f->retireds = 0;
}

static inline void
fixture_begin(fixture *f, size_t bytes, unsigned caches)
{
	char		err[200] = "";

	memset((void *) f, 0, sizeof(*f));
	f->region = mot_region_create(bytes, caches, 0, MOT_REGION_PRIVATE, err, sizeof(err));
	if (f->region == NULL)
		printf("# %s\n", err);
	REQUIRE(f->region != NULL);
	f->pool = mot_pool_create(f->region, MOT_POOL_PLAIN, &f->group);
	REQUIRE(f->pool != NULL);
	f->ctx.region = f->region;
	f->ctx.cache = mot_region_cache(f->region, 0);
	f->ctx.retire = fixture_retire;
	f->ctx.retire_arg = f;
	f->tree = mot_tree_create(&f->ctx, f->pool);
	REQUIRE(f->tree != NULL);
}

static inline uint64_t
fixture_bytes(fixture *f)
{
	uint64_t	pages;
	uint64_t	objects;

	mot_cache_flush(f->ctx.cache);
	mot_pool_stats(f->pool, &pages, &objects);
	return objects;
}

static inline void
fixture_end(fixture *f)
{
	fixture_drain(f);
	free(f->retired);
	mot_cache_flush(f->ctx.cache);
	mot_pool_destroy(f->pool);
	mot_region_destroy(f->region);
}

static inline bool
tree_is_sound(const mot_tree *tree)
{
	char		err[256];

	if (mot_tree_check(tree, err, sizeof(err)))
		return true;
	printf("# %s\n", err);
	return false;
}

static inline mot_tree_status
tree_insert(fixture *f, const void *key, size_t len, uint64_t value, const mot_observer *observer)
{
	uint64_t	actual = 99;

	return mot_tree_cas(f->tree, &f->ctx, key, len, 0, value, &actual, MOT_FOR_CHANGE, observer);
}

static uint64_t
answer_zero(void *arg, uint64_t value)
{
	(void) arg;
	(void) value;
	return 0;
}

static inline mot_tree_status
tree_remove(fixture *f, const void *key, size_t len)
{
	return mot_tree_change(f->tree, &f->ctx, key, len, answer_zero, NULL, NULL, NULL);
}

/* ------------------------------------------------------------------ model */

typedef struct model_key
{
	unsigned char *bytes;
	size_t		len;
	uint64_t	value;			/* 0: absent */
} model_key;

static inline int
key_compare(const void *a, size_t alen, const void *b, size_t blen)
{
	size_t		n = alen < blen ? alen : blen;
	int			c = n ? memcmp(a, b, n) : 0;

	return c ? c : (alen > blen) - (alen < blen);
}

static int
model_compare(const void *a, const void *b)
{
	const model_key *x = a;
	const model_key *y = b;

	return key_compare(x->bytes, x->len, y->bytes, y->len);
}

/* sorts the keys, and drops duplicates */
static inline size_t
model_sort(model_key *keys, size_t n)
{
	size_t		out = 0;

	qsort(keys, n, sizeof(model_key), model_compare);
	for (size_t i = 0; i < n; i++)
	{
		if (out > 0 && model_compare(&keys[out - 1], &keys[i]) == 0)
			free(keys[i].bytes);
		else
			keys[out++] = keys[i];
	}
	return out;
}

static inline void
model_free(model_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(keys[i].bytes);
	free(keys);
}

/* how a key compares with a bound's prefix */
static inline int
bound_compare(const model_key *k, const mot_bound *bound)
{
	size_t		n = k->len < bound->len ? k->len : bound->len;

	return key_compare(k->bytes, n, bound->key, bound->len);
}

static inline bool
model_in_range(const model_key *k, const mot_bound *lower, const mot_bound *upper)
{
	int			c;

	if (lower && lower->kind != MOT_BOUND_NONE)
	{
		c = bound_compare(k, lower);
		if (c < 0 || (c == 0 && lower->kind == MOT_BOUND_EXCLUSIVE))
			return false;
	}
	if (upper && upper->kind != MOT_BOUND_NONE)
	{
		c = bound_compare(k, upper);
		if (c > 0 || (c == 0 && upper->kind == MOT_BOUND_EXCLUSIVE))
			return false;
	}
	return true;
}

/* does a scan say just what the model says? */
static inline bool
model_scan_equal(const mot_tree *tree, const model_key *keys, size_t n,
				 const mot_bound *lower, const mot_bound *upper, bool backward)
{
	mot_tree_cursor c;
	const void *key;
	size_t		len;
	uint64_t	value;
	bool		ok = true;

	REQUIRE(mot_tree_cursor_open(&c, tree, lower, upper, backward, NULL));
	for (size_t i = 0; i < n && ok; i++)
	{
		const model_key *k = &keys[backward ? n - 1 - i : i];

		if (k->value == 0 || !model_in_range(k, lower, upper))
			continue;
		value = mot_tree_cursor_next(&c, &key, &len);
		ok = value == k->value && len == k->len && (len == 0 || memcmp(key, k->bytes, len) == 0);
	}
	ok = ok && mot_tree_cursor_next(&c, &key, &len) == 0 && mot_tree_cursor_next(&c, NULL, NULL) == 0;
	mot_tree_cursor_close(&c);
	return ok;
}

static inline bool
model_equal(fixture *f, const model_key *keys, size_t n)
{
	tree_stat	stat;
	size_t		present = 0;

	for (size_t i = 0; i < n; i++)
	{
		present += keys[i].value != 0;
		if (mot_tree_get(f->tree, keys[i].bytes, keys[i].len, NULL) != keys[i].value)
			return false;
	}
	tree_stats(f->tree, &stat);
	return stat.keys == present && tree_is_sound(f->tree) &&
		model_scan_equal(f->tree, keys, n, NULL, NULL, false) &&
		model_scan_equal(f->tree, keys, n, NULL, NULL, true);
}

/* ------------------------------------------------------------------- keys */

/* shapes that exercise slices, lengths, suffixes, layers and skips; "shape" 0 to 9 */
static inline size_t
random_key(uint64_t *state, int shape, unsigned char *key)
{
	uint64_t	r = test_random_from(state);
	size_t		len;

	switch (shape)
	{
		case 0:					/* few byte values, any short length */
			len = r % 21;
			for (size_t i = 0; i < len; i++)
				key[i] = (unsigned char) "\0a\377b"[test_random_from(state) % 4];
			return len;
		case 1:					/* integers */
			for (int i = 0; i < 8; i++)
				key[i] = (unsigned char) (r % 5000 >> (8 * (7 - i)));
			return 8;
		case 2:					/* decimal strings */
			return (size_t) sprintf((char *) key, "%010d", (int) (r % 100000));
		case 3:					/* long, alike for long */
			len = 1 + (size_t) (r % 12) * 7;
			memset(key, 'x', len);
			key[len - 1] = (unsigned char) ('a' + (r >> 32) % 4);
			return len;
		case 4:					/* two slices, many of them the same */
			memcpy(key, "customer", 8);
			len = 8 + r % 9;
			for (size_t i = 8; i < len; i++)
				key[i] = (unsigned char) (test_random_from(state) % 3);
			return len;
		case 5:					/* zero bytes only */
			len = r % 40;
			memset(key, 0, len);
			return len;
		case 6:					/* random bytes */
			len = r % 30;
			for (size_t i = 0; i < len; i++)
				key[i] = (unsigned char) test_random_from(state);
			return len;
		case 7:					/* long suffixes */
			len = 10 + r % 300;
			memset(key, 0, len);
			sprintf((char *) key, "%04d", (int) ((r >> 20) % 1000));
			return len;
		case 8:					/* alike but for one byte, anywhere, and their
								 * ends */
			len = 1 + r % 400;
			memset(key, 'x', len);
			if (r >> 32 & 3)
				key[(r >> 34) % len] = (unsigned char) "\0wy\377"[test_random_from(state) % 4];
			return len;
		default:				/* groups, alike for longer or shorter, and
								 * within them one or a few keys */
			len = 8 + r % 40 * 9;
			memset(key, 'g', len);
			key[3] = (unsigned char) (r % 40);
			if ((r >> 32) % 8 == 0)
				key[(r >> 36) % len] ^= 1;
			len += (size_t) sprintf((char *) key + len, "%d", (int) ((r >> 20) % 4));
			return len;
	}
}

#define KEY_SHAPES 10

static inline model_key *
random_keys(uint64_t *state, size_t n, int shape)
{
	model_key  *keys = calloc(n, sizeof(model_key));
	unsigned char key[512];

	REQUIRE(keys != NULL);
	for (size_t i = 0; i < n; i++)
	{
		keys[i].len = random_key(state, shape >= 0 ? shape : (int) (test_random_from(state) % KEY_SHAPES), key);
		keys[i].bytes = malloc(keys[i].len + 1);
		REQUIRE(keys[i].bytes != NULL);
		memcpy(keys[i].bytes, key, keys[i].len);
	}
	return keys;
}

#endif							/* MOT_TEST_TREE_H */
