/*-------------------------------------------------------------------------
 *
 * test_build.c
 *	  Trees built from sorted keys, beside such as got their keys one by one:
 *	  the same to all who look, no larger, and as good for what comes then.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"
#include "test_tree.h"

static uint64_t state;

static bool
no_more(void *arg)
{
	++*(int *) arg;
	return false;
}

/* all keys at once; the status of what went wrong, if anything did */
static mot_tree_status
build(fixture *f, const model_key *keys, size_t n, bool full)
{
	mot_tree_build *b = malloc(mot_tree_build_size());
	mot_tree_status status = MOT_TREE_OK;
	int			asked = 0;
	uint64_t	before;

	REQUIRE(b != NULL);
	f->ctx.exclusive = true;
	if (!mot_tree_build_begin(b, f->tree, &f->ctx, full, no_more, &asked))
		status = MOT_TREE_NO_MEMORY;
	for (size_t i = 0; i < n && status == MOT_TREE_OK; i++)
		status = mot_tree_build_add(b, keys[i].bytes, keys[i].len, keys[i].value, &before);
	if (status == MOT_TREE_OK)
		status = mot_tree_build_end(b);
	REQUIRE((status == MOT_TREE_NO_MEMORY) == (asked > 0));
	f->ctx.exclusive = false;
	free(b);
	return status;
}

static void
set_values(model_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i].value = (test_random_from(&state) >> 8 | 1) << 4;
}

/* is the tree no larger than one that the same keys were put into in their order? */
static bool
small_enough(fixture *f, const model_key *keys, size_t n)
{
	fixture		other;
	tree_stat	built;
	tree_stat	grown;
	uint64_t	bytes;
	uint64_t	others;

	fixture_begin(&other, 256 << 20, 1);
	for (size_t i = 0; i < n; i++)
		REQUIRE(tree_insert(&other, keys[i].bytes, keys[i].len, keys[i].value, NULL) == MOT_TREE_OK);
	fixture_drain(&other);
	tree_stats(f->tree, &built);
	tree_stats(other.tree, &grown);
	bytes = fixture_bytes(f);
	others = fixture_bytes(&other);
	fixture_end(&other);
	if (built.border_nodes <= grown.border_nodes && built.interior_nodes <= grown.interior_nodes &&
		built.layers == grown.layers && bytes <= others)
		return true;
	printf("# nodes %llu and %llu, %llu bytes; grown: %llu and %llu, %llu\n",
		   (unsigned long long) built.border_nodes, (unsigned long long) built.interior_nodes,
		   (unsigned long long) bytes, (unsigned long long) grown.border_nodes,
		   (unsigned long long) grown.interior_nodes, (unsigned long long) others);
	return false;
}

/* half of the keys go, others come, in any order */
static bool
lives_on(fixture *f, model_key *keys, size_t n, const model_key *others, size_t m)
{
	for (size_t i = 0; i < n; i++)
	{
		size_t		j = test_random_from(&state) % n;

		if (keys[j].value != 0 && test_random_from(&state) % 2)
		{
			REQUIRE(tree_remove(f, keys[j].bytes, keys[j].len) == MOT_TREE_OK);
			keys[j].value = 0;
		}
		if (i < m)
		{
			const model_key *k = &others[test_random_from(&state) % m];

			if (mot_tree_get(f->tree, k->bytes, k->len, NULL) == 0)
				REQUIRE(tree_insert(f, k->bytes, k->len, 16, NULL) == MOT_TREE_OK);
		}
	}
	for (size_t i = 0; i < m; i++)
		if (mot_tree_get(f->tree, others[i].bytes, others[i].len, NULL) == 16)
			REQUIRE(tree_remove(f, others[i].bytes, others[i].len) == MOT_TREE_OK);
	fixture_drain(f);
	return model_equal(f, keys, n);
}

static void
every_shape(void)
{
	for (int shape = -1; shape < KEY_SHAPES; shape++)
	{
		for (int size = 0; size < 6; size++)
		{
			static const size_t sizes[] = {0, 1, 2, 16, 700, 20000};
			fixture		f;
			size_t		n = sizes[size];
			size_t		m = n;
			model_key  *keys = random_keys(&state, n, shape);
			model_key  *others = random_keys(&state, m, shape);
			bool		full = size % 2 == 1;
			size_t		foreign = 0;

			n = model_sort(keys, n);
			m = model_sort(others, m);
			/* of the others only those that are not among the keys */
			for (size_t i = 0; i < m; i++)
			{
				if (n > 0 && bsearch(&others[i], keys, n, sizeof(model_key), model_compare))
					free(others[i].bytes);
				else
					others[foreign++] = others[i];
			}
			m = foreign;
			set_values(keys, n);

			fixture_begin(&f, 256 << 20, 1);
			CHECK(build(&f, keys, n, full) == MOT_TREE_OK);
			CHECK(model_equal(&f, keys, n));
			if (full && n > 0)
				CHECK(small_enough(&f, keys, n));
			CHECK(lives_on(&f, keys, n, others, m));
			fixture_end(&f);
			model_free(keys, n);
			model_free(others, m);
		}
	}
}

/* keys that are the same for as long as keys can be, and end one after the other */
static void
as_long_as_can_be(void)
{
	fixture		f;
	size_t		n = 0;
	model_key  *keys = calloc(2 * MOT_KEY_MAX + 2, sizeof(model_key));

	REQUIRE(keys != NULL);
	for (size_t len = 0; len <= MOT_KEY_MAX; len += len < 40 || len > MOT_KEY_MAX - 40 ? 1 : 7)
	{
		for (int last = 0; last < 2; last++)
		{
			model_key  *k = &keys[n++];

			k->len = len;
			k->bytes = malloc(len + 1);
			REQUIRE(k->bytes != NULL);
			memset(k->bytes, 'p', len);
			if (len > 0)
				k->bytes[len - 1] = (unsigned char) ('p' + last);
		}
	}
	n = model_sort(keys, n);
	set_values(keys, n);
	fixture_begin(&f, 256 << 20, 1);
	CHECK(build(&f, keys, n, true) == MOT_TREE_OK);
	CHECK(model_equal(&f, keys, n));
	CHECK(small_enough(&f, keys, n));
	fixture_end(&f);
	model_free(keys, n);
}

/* ten entries of each slice, so that no node ends where it would like to */
static void
ten_of_each_slice(void)
{
	fixture		f;
	size_t		n = 0;
	model_key  *keys = calloc(20000, sizeof(model_key));

	REQUIRE(keys != NULL);
	for (int i = 0; i < 2000; i++)
	{
		for (size_t len = 8 - (size_t) (i % 9); len <= 9; len++)
		{
			model_key  *k = &keys[n++];

			k->len = len;
			k->bytes = calloc(1, len + 1);
			REQUIRE(k->bytes != NULL);
			/* the first bytes tell slices apart, where there are some */
			for (size_t j = 0; j < len && j < 2; j++)
				k->bytes[j] = (unsigned char) (i >> (8 * (1 - j)));
		}
	}
	n = model_sort(keys, n);
	set_values(keys, n);
	for (int full = 0; full < 2; full++)
	{
		fixture_begin(&f, 256 << 20, 1);
		CHECK(build(&f, keys, n, full) == MOT_TREE_OK);
		CHECK(model_equal(&f, keys, n));
		fixture_end(&f);
	}
	model_free(keys, n);
}

static void
order_is_looked_at(void)
{
	static const char *const keys[] = {"", "a", "abcdefgh", "abcdefghi", "abcdefghij", "abcdefghijklmnopq"};
	mot_tree_build *b = malloc(mot_tree_build_size());
	fixture		f;
	uint64_t	before = 0;
	int			asked = 0;

	REQUIRE(b != NULL);
	fixture_begin(&f, 64 << 20, 1);
	f.ctx.exclusive = true;
	REQUIRE(mot_tree_build_begin(b, f.tree, &f.ctx, true, no_more, &asked));
	for (uint64_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
	{
		CHECK(mot_tree_build_add(b, keys[i], strlen(keys[i]), (i + 1) << 4, &before) == MOT_TREE_OK);
		CHECK(mot_tree_build_add(b, keys[i], strlen(keys[i]), 77, &before) == MOT_TREE_MISMATCH);
		CHECK(before == (i + 1) << 4);
		if (i > 0)
			CHECK(mot_tree_build_add(b, keys[i - 1], strlen(keys[i - 1]), 77, &before) == MOT_TREE_MISMATCH);
	}
	CHECK(mot_tree_build_end(b) == MOT_TREE_OK);
	for (uint64_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK(mot_tree_get(f.tree, keys[i], strlen(keys[i]), NULL) == (i + 1) << 4);
	CHECK(tree_is_sound(f.tree));
	f.ctx.exclusive = false;
	fixture_end(&f);
	free(b);
}

/* whenever memory ends, the tree is empty, and its pool gives back all */
static void
out_of_memory(void)
{
	size_t		n = 30000;
	model_key  *keys = random_keys(&state, n, -1);
	int			failed = 0;

	n = model_sort(keys, n);
	set_values(keys, n);
	for (uint64_t pages = 0; pages < 60; pages += 3)
	{
		fixture		f;
		mot_tree_status status;

		fixture_begin(&f, 64 << 20, 1);
		atomic_store(&f.group.limit, atomic_load(&f.group.bytes) + pages * MOT_PAGE_SIZE);
		status = build(&f, keys, n, false);
		if (status == MOT_TREE_NO_MEMORY)
		{
			failed++;
			CHECK(mot_tree_get(f.tree, keys[0].bytes, keys[0].len, NULL) == 0);
			CHECK(tree_is_sound(f.tree));
		}
		else
			CHECK(model_equal(&f, keys, n));
		mot_cache_flush(f.ctx.cache);
		mot_pool_destroy(f.pool);
		CHECK(mot_region_used(f.region) == 0 || atomic_load(&f.group.bytes) == 0);
		f.pool = mot_pool_create(f.region, MOT_POOL_PLAIN, &f.group);
		fixture_end(&f);
	}
	CHECK(failed > 5);
	model_free(keys, n);
}

/* --------------------------------------------------------------- of a table */

static store st;

typedef struct owned_entry
{
	uint8_t		bytes[16];
	size_t		len;
	uint64_t	value;
} owned_entry;

static int
entry_compare(const void *a, const void *b)
{
	const owned_entry *x = a;
	const owned_entry *y = b;

	return key_compare(x->bytes, x->len, y->bytes, y->len);
}

static mot_status
fill(mot_session *s, mot_index *index, owned_entry *entries, size_t n, mot_row **other)
{
	mot_fill   *f = malloc(mot_fill_size());
	mot_status	status;

	REQUIRE(f != NULL);
	qsort(entries, n, sizeof(owned_entry), entry_compare);
	status = mot_fill_begin(s, f, index, false);
	for (size_t i = 0; i < n && status == MOT_OK; i++)
	{
		mot_sorted_entry e = {entries[i].bytes, entries[i].len, entries[i].value};

		status = mot_fill_add(f, &e, other);
	}
	if (status == MOT_OK)
		status = mot_fill_end(f);
	free(f);
	return status;
}

static void
indexes_of_a_table(void)
{
	enum
	{
	ROWS = 5000};
	owned_entry *unique = calloc(ROWS + 1, sizeof(owned_entry));
	owned_entry *plain = calloc(ROWS + 1, sizeof(owned_entry));
	mot_session *s;
	mot_index  *by_id;
	mot_index  *by_value;
	mot_row    *row;
	mot_row    *other = NULL;
	mot_row    *first = NULL;
	mot_view	view = {0, 0, NULL, false};
	const mot_version *version;
	mot_cursor *cursor = malloc(mot_cursor_size());
	const mot_bound none = {MOT_BOUND_NONE, NULL, 0};
	uint64_t	n = 0;
	int64_t		last = -1;

	store_create(&st, 64 << 20, 4, MOT_ENGINE_PRIVATE, false);
	s = open_session(st.engine, 0);
	(void) mot_snapshot_take(s);
	REQUIRE(mot_index_create(s, st.table, 200, MOT_INDEX_UNIQUE, &by_id) == MOT_OK);
	REQUIRE(mot_index_create(s, st.table, 201, 0, &by_value) == MOT_OK);
	for (uint64_t i = 0; i <= ROWS; i++)
	{
		mot_sorted_entry e;
		uint8_t		key[8];
		uint8_t		buffer[MOT_ENTRY_MAX];
		record	   *data;

		REQUIRE(mot_load_row(s, st.table, 0, sizeof(record), &row, (void **) &data) == MOT_OK);
		memset(data, 0, sizeof(*data));
		data->id = i == ROWS ? 0 : i * 7919 % ROWS;
		data->value = (int64_t) (data->id / 9);
		if (data->id == 0 && i < ROWS)
			first = row;
		put_key(key, data->id);
		/* every tenth key has a null in it, as it were */
		REQUIRE(mot_entry_form(s, by_id, row, key, 8, data->id % 10 == 3 ? MOT_KEY_DISTINCT : 0, buffer, &e) == MOT_OK);
		memcpy(unique[i].bytes, e.bytes, e.len);
		unique[i].len = e.len;
		unique[i].value = e.value;
		CHECK(e.value >> 48 == 0 && mot_entry_row(e.value) == row);
		put_key(key, (uint64_t) data->value);
		REQUIRE(mot_entry_form(s, by_value, row, key, 8, 0, buffer, &e) == MOT_OK);
		memcpy(plain[i].bytes, e.bytes, e.len);
		plain[i].len = e.len;
		plain[i].value = e.value;
		REQUIRE(mot_entry_form(s, by_value, row, buffer, MOT_MAX_KEY + 1, 0, buffer, &e) == MOT_TOO_LARGE);
	}

	/* the last row has the first one's key */
	qsort(unique, ROWS + 1, sizeof(owned_entry), entry_compare);
	CHECK(fill(s, by_id, unique, ROWS + 1, &other) == MOT_DUPLICATE);
	CHECK(other == mot_entry_row(unique[0].value) || other == mot_entry_row(unique[1].value));
	CHECK(other == first || other == row);
	mot_index_drop(s, by_id);
	(void) mot_reclaim_all(s);

	REQUIRE(mot_index_create(s, st.table, 200, MOT_INDEX_UNIQUE, &by_id) == MOT_OK);
	CHECK(fill(s, by_id, unique + 1, ROWS, &other) == MOT_OK);
	CHECK(fill(s, by_value, plain, ROWS + 1, &other) == MOT_OK);
	mot_index_attach(by_id);
	mot_index_attach(by_value);
	CHECK(mot_index_check(by_id, NULL, 0) && mot_index_check(by_value, NULL, 0));

	view.snapshot = mot_snapshot_take(s);
	view.command = MOT_COMMAND_MAX;
	for (uint64_t i = 0; i < ROWS; i++)
	{
		mot_index_handle h = {.index = by_id};
		uint8_t		key[8];
		mot_status	status;

		put_key(key, i);
		status = mot_index_get(s, &view, &h, key, 8, &row, &version);
		if (i % 10 == 3)
			CHECK(status == MOT_NOT_FOUND);
		else
			CHECK(status == MOT_OK && ((const record *) mot_version_data(version))->id == i);
	}
	{
		mot_index_handle h = {.index = by_value};

		REQUIRE(mot_cursor_open(s, cursor, &view, &h, &none, &none, false) == MOT_OK);
		while (mot_cursor_next(cursor, &row, &version))
		{
			const record *r = mot_version_data(version);

			CHECK(r->value >= last);
			last = r->value;
			n++;
		}
		mot_cursor_close(cursor);
	}
	CHECK(n == ROWS + 1);

	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
	free(cursor);
	free(unique);
	free(plain);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	state = test_seed;

	RUN(every_shape);
	RUN(as_long_as_can_be);
	RUN(ten_of_each_slice);
	RUN(order_is_looked_at);
	RUN(out_of_memory);
	RUN(indexes_of_a_table);
	return test_end();
}
