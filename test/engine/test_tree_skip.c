/*-------------------------------------------------------------------------
 *
 * test_tree_skip.c
 *	  Keys of the Masstree that are alike for long: links that skip what all
 *	  keys below have in common, and layers put in between where one parts
 *	  from that.  Everywhere it can part, below it and above, and at each end;
 *	  and how little memory it takes.
 *
 *-------------------------------------------------------------------------
 */
#include "test_tree.h"

#define REGION_BYTES ((size_t) 64 << 20)

/* a key of "len" bytes 'm', but with byte "at" (none: len) another */
static model_key
key_of(size_t len, size_t at, int byte)
{
	model_key	k = {malloc(len + 1), len, 0};

	REQUIRE(k.bytes != NULL);
	memset(k.bytes, 'm', len);
	if (at < len)
		k.bytes[at] = (unsigned char) byte;
	return k;
}

static bool
present_equal(fixture *f, const model_key *keys, size_t n)
{
	if (!model_equal(f, keys, n))
		return false;
	/* each key as a bound, either way */
	for (size_t i = 0; i < n; i++)
		for (int kind = MOT_BOUND_INCLUSIVE; kind <= MOT_BOUND_EXCLUSIVE; kind++)
		{
			mot_bound	b = {(mot_bound_kind) kind, keys[i].bytes, keys[i].len};

			if (!model_scan_equal(f->tree, keys, n, &b, NULL, false) ||
				!model_scan_equal(f->tree, keys, n, &b, NULL, true) ||
				!model_scan_equal(f->tree, keys, n, NULL, &b, false) ||
				!model_scan_equal(f->tree, keys, n, NULL, &b, true) ||
				!model_scan_equal(f->tree, keys, n, &b, &b, false) ||
				!model_scan_equal(f->tree, keys, n, &b, &b, true))
				return false;
		}
	return true;
}

#define ALIKE 61				/* bytes of the two that make the skip */

/* two keys with a skip above them; a third and a fourth that part from it anywhere, in any way */
static void
everywhere(void)
{
	fixture		f;

	fixture_begin(&f, REGION_BYTES, 1);
	for (size_t third = 0; third <= ALIKE + 8; third++)
		for (int how = 0; how < 3; how++)
			for (size_t fourth = 0; fourth <= ALIKE + 8; fourth += 1 + test_random() % 3)
			{
				int			other_how = (int) (test_random() % 3);
				model_key	keys[4];
				size_t		n;
				unsigned	order = (unsigned) (test_random() % 24);

				keys[0] = key_of(ALIKE + 10, ALIKE, 'a');
				keys[1] = key_of(ALIKE + 20, ALIKE, 'z');
				/* it ends there; it is less there, or greater */
				keys[2] = how == 0 ? key_of(third, third, 0) : key_of(ALIKE + 15, third, how == 1 ? 0 : 255);
				keys[3] = other_how == 0 ? key_of(fourth, fourth, 0) :
					key_of(ALIKE + 16, fourth, other_how == 1 ? 0 : 255);

				f.tree = mot_tree_create(&f.ctx, f.pool);
				REQUIRE(f.tree != NULL);
				for (unsigned i = 0; i < 4; i++)
				{
					CHECK(mot_tree_get(f.tree, keys[i].bytes, keys[i].len, NULL) == 0 || i == 3);
					if (tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK)
						keys[i].value = i + 1;
				}
				/* the same key twice? */
				n = keys[3].value ? 4 : 3;
				if (n == 3)
					free(keys[3].bytes);
				qsort(keys, n, sizeof(model_key), model_compare);
				CHECK(present_equal(&f, keys, n));
				/* and away with them, in any order */
				for (size_t i = 0; i < n; i++)
				{
					model_key  *k;
					size_t		j = order % (n - i);

					order /= (unsigned) (n - i);
					for (k = keys; k->value == 0 || j > 0; k++)
						if (k->value != 0)
							j--;
					CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_OK);
					k->value = 0;
					CHECK(model_equal(&f, keys, n));
				}
				fixture_drain(&f);
				for (size_t i = 0; i < n; i++)
					free(keys[i].bytes);
			}
	fixture_end(&f);
}

/*
 * a skip as long as can be, split at each of its slices in any order, and deeper than a cursor
 * remembers
 */
static void
split_again_and_again(void)
{
	for (int round = 0; round < 6; round++)
	{
		fixture		f;
		size_t		n = 0;
		size_t		longest = round < 3 ? 8 * 30 : MOT_KEY_MAX;
		size_t		step = round < 3 ? 8 : 8 * 41;
		model_key  *keys = calloc(2 + 2 * MOT_KEY_MAX / 8, sizeof(model_key));

		keys[n++] = key_of(longest, longest - 1, 'a');
		keys[n++] = key_of(longest, longest - 1, 'z');
		for (size_t at = 4; at < longest - 8; at += step)
		{
			keys[n++] = key_of(at + 20 < longest ? at + 20 : longest, at, 'a');
			keys[n++] = key_of(at + 20 < longest ? at + 20 : longest, at, 'z');
		}
		/* down, up, or in any order */
		for (size_t i = 2; i < n; i++)
		{
			size_t		j = round % 3 == 0 ? i : round % 3 == 1 ? n + 1 - i : 2 + (size_t) (test_random() % (n - 2));
			model_key	k = keys[i];

			if (round % 3 == 1 && j <= i)
				break;
			keys[i] = keys[j];
			keys[j] = k;
		}
		fixture_begin(&f, REGION_BYTES, 1);
		for (size_t i = 0; i < n; i++)
		{
			keys[i].value = i + 1;
			CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
		}
		n = model_sort(keys, n);
		CHECK(present_equal(&f, keys, n));
		for (size_t i = 0; i < n; i++)
		{
			model_key  *k = &keys[(i * 31) % n];

			if (k->value == 0)
				continue;
			k->value = 0;
			CHECK(tree_remove(&f, k->bytes, k->len) == MOT_TREE_OK);
			if (i % 8 == 0)
				CHECK(model_equal(&f, keys, n));
		}
		fixture_end(&f);
		model_free(keys, n);
	}
}

/*
 * A cursor stands somewhere in the layer below a skip, or in one below that,
 * and the skip is split above it, in one place or in many; the layer then goes,
 * or stays, or comes again with other skips.
 */
static void
under_a_cursor(void)
{
	for (int backward = 0; backward < 2; backward++)
		for (int stop = 1; stop < 30; stop++)
			for (int what = 0; what < 24; what++)
			{
				fixture		f;
				model_key	keys[30];
				unsigned char last[600];
				size_t		last_len = 0;
				mot_tree_cursor c;
				const void *key;
				size_t		len;
				uint64_t	value;
				int			seen = 0;
				int			more = 0;
				size_t		first_gone = what % 4 == 0 ? 30 : what % 4 == 1 ? 10 : 5;

				fixture_begin(&f, REGION_BYTES, 1);

				/*
				 * one before and one behind; in between keys that part at
				 * 200, some of them later, or all: then there are two nodes
				 */
				for (size_t i = 0; i < 30; i++)
				{
					keys[i] = i == 0 ? key_of(40, 20, 'a') : i == 29 ? key_of(40, 20, 'z') : key_of(300, 200, 'a');
					if (i > 0 && i < 29)
					{
						keys[i].bytes[200] = (unsigned char) ('A' + (what < 12 ? i / 7 : i));
						keys[i].bytes[i % 7 * 13 + 205] = 'n';
					}
				}
				qsort(keys, 30, sizeof(model_key), model_compare);
				for (size_t i = 0; i < 30; i++)
				{
					keys[i].value = i + 1;
					CHECK(tree_insert(&f, keys[i].bytes, keys[i].len, i + 1, NULL) == MOT_TREE_OK);
				}
				REQUIRE(mot_tree_cursor_open(&c, f.tree, NULL, NULL, backward, NULL));
				while ((value = mot_tree_cursor_next(&c, &key, &len)) != 0)
				{
					if (seen++ > 0)
						CHECK((key_compare(last, last_len, key, len) < 0) == !backward);
					memcpy(last, key, len);
					last_len = len;
					/* (what goes may be among what the cursor has copied) */
					CHECK(mot_tree_get(f.tree, key, len, NULL) == value ||
						  (value <= 30 && key_compare(key, len, keys[value - 1].bytes, keys[value - 1].len) == 0));
					/* those that stay are seen one after the other */
					if (value <= 30)
					{
						if (seen > stop)
							more++;
						else
							CHECK(value == (uint64_t) (backward ? 31 - seen : seen));
					}
					if (seen != stop)
						continue;
					for (size_t at = 30; at < 200; at += what % 12 < 4 ? 300 : what % 12 < 8 ? 100 : 8)
						for (int side = 0; side < 2; side++)
						{
							model_key	k = key_of(290, at, side ? 'z' : 'a');

							CHECK(tree_insert(&f, k.bytes, k.len, 100 + at, NULL) == MOT_TREE_OK);
							free(k.bytes);
						}

					/*
					 * all but the outermost go, or the later half; and come
					 * back otherwise
					 */
					for (size_t i = first_gone; i < 29; i++)
						CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
					if (what % 4 == 2)
						for (size_t i = 1; i < 5; i++)
							CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
					if (what % 4 == 3)
					{
						for (size_t i = 1; i < 5; i++)
							CHECK(tree_remove(&f, keys[i].bytes, keys[i].len) == MOT_TREE_OK);
						CHECK(tree_insert(&f, keys[12].bytes, keys[12].len, 1000, NULL) == MOT_TREE_OK);
						keys[12].bytes[290] = 'o';
						CHECK(tree_insert(&f, keys[12].bytes, keys[12].len, 1000, NULL) == MOT_TREE_OK);
						keys[12].bytes[290] = 'm';
					}
					CHECK(tree_is_sound(f.tree));
				}
				/* of those that stayed all the time none is left out */
				for (size_t i = 0; i < 30; i++)
				{
					bool		stayed = what % 4 == 0 || i == 0 || i == 29 ||
					(what % 4 == 1 && i < first_gone);

					if (stayed && (backward ? 30 - i > (size_t) stop : i + 1 > (size_t) stop))
						more--;
				}
				CHECK(more >= 0);
				mot_tree_cursor_close(&c);
				fixture_end(&f);
				for (size_t i = 0; i < 30; i++)
					free(keys[i].bytes);
			}
}

/*
 * what n keys with so many in each group take, against what they are long: a group's keys part
 * after "alike" bytes
 */
static double
share		(size_t n, size_t group, size_t alike)
{
	fixture		f;
	uint64_t	base;
	uint64_t	bytes = 0;
	uint64_t	used;
	char	   *key = malloc(alike + 64);
	tree_stat	stat;

	REQUIRE(key != NULL);
	memset(key, 'p', alike + 64);
	fixture_begin(&f, 256 << 20, 1);
	base = fixture_bytes(&f);
	for (size_t i = 0; i < n; i++)
	{
		size_t		len = alike + (size_t) sprintf(key + alike, "%06zu", i);

		/* each group's own beginning */
		sprintf(key, "%06zu", i / group * 7919 % 1000003);
		key[6] = 'p';
		CHECK(tree_insert(&f, key, len, i + 1, NULL) == MOT_TREE_OK);
		bytes += len;
	}
	fixture_drain(&f);
	CHECK(tree_is_sound(f.tree));
	tree_stats(f.tree, &stat);
	/* no more layers than there are places where keys part */
	CHECK(stat.keys == n && stat.layers <= n);
	used = fixture_bytes(&f) - base;
	printf("# %zu keys, %zu in each group, alike for %zu bytes: %.2f bytes a byte of theirs\n",
		   n, group, alike, (double) used / (double) bytes);
	fixture_end(&f);
	free(key);
	return (double) used / (double) bytes;
}

static void
sizes(void)
{
	CHECK(share (1000, 1000, 8000) < 0.05);
	CHECK(share (1000, 10, 8000) < 0.5);
	CHECK(share (1000, 2, 8000) < 2.0);
	CHECK(share (1000, 2, 2000) < 2.0);
	CHECK(share (10000, 2, 140) < 3.0);
	CHECK(share (10000, 50, 140) < 1.0);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(everywhere);
	RUN(split_again_and_again);
	RUN(under_a_cursor);
	RUN(sizes);
	return test_end();
}
