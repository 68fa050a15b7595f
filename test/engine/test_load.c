/*-------------------------------------------------------------------------
 *
 * test_load.c
 *	  Several sessions load one table, and build its indexes.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

#define LOADERS 4
#define EACH 20000

static store st;

/* rows dealt out in runs, as pages of a table are */
static void *
loader(void *arg)
{
	unsigned	me = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, me + 1);

	(void) mot_snapshot_take(s);
	for (uint64_t i = 0; i < EACH; i++)
	{
		uint64_t	run = (i / 100) * LOADERS + me;
		mot_row    *row;
		record	   *data;

		REQUIRE(mot_load_row(s, st.table, 0, sizeof(record), &row, (void **) &data) == MOT_OK);
		memset(data, 0, sizeof(*data));
		data->id = 1 + run * 100 + i % 100;
		data->value = (int64_t) (data->id / 5);
	}
	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_session_close(s);
	return NULL;
}

typedef struct entry
{
	uint8_t		bytes[16];
	size_t		len;
	uint64_t	value;
} entry;

static int
compare(const void *a, const void *b)
{
	const entry *x = a;
	const entry *y = b;
	int			c = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* then each of the indexes by one of them */
static void *
builder(void *arg)
{
	unsigned	me = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, me + 1);
	mot_index  *index = me ? st.by_value.index : st.by_id.index;
	entry	   *entries = calloc(LOADERS * EACH, sizeof(entry));
	mot_fill   *fill = malloc(mot_fill_size());
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	size_t		n = 0;

	REQUIRE(entries != NULL && fill != NULL);
	(void) mot_snapshot_take(s);
	mot_build_rows(s, &build, st.table, NULL);
	while (mot_build_next(&build, &row, &version))
	{
		const record *r = mot_version_data(version);
		uint8_t		key[8];
		uint8_t		buffer[MOT_ENTRY_MAX];
		mot_sorted_entry e;

		put_key(key, me ? (uint64_t) r->value : r->id);
		REQUIRE(n < LOADERS * EACH);
		REQUIRE(mot_entry_form(s, index, row, key, 8, 0, buffer, &e) == MOT_OK);
		memcpy(entries[n].bytes, e.bytes, e.len);
		entries[n].len = e.len;
		entries[n++].value = e.value;
	}
	qsort(entries, n, sizeof(entry), compare);
	REQUIRE(mot_fill_begin(s, fill, index, true) == MOT_OK);
	for (size_t i = 0; i < n; i++)
	{
		mot_sorted_entry e = {entries[i].bytes, entries[i].len, entries[i].value};

		REQUIRE(mot_fill_add(fill, &e, &row) == MOT_OK);
	}
	REQUIRE(mot_fill_end(fill) == MOT_OK);
	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_session_close(s);
	free(fill);
	free(entries);
	return NULL;
}

static void
loaders_share_a_table(void)
{
	pthread_t	thread[LOADERS];
	mot_session *s = open_session(st.engine, 0);
	mot_view	view;
	mot_cursor *cursor = malloc(mot_cursor_size());
	const mot_bound none = {MOT_BOUND_NONE, NULL, 0};
	const mot_version *version;
	mot_row    *row;
	uint64_t	n = 0;
	int64_t		last = 0;
	mot_table_stat stat;
	char		err[200] = "";

	for (uintptr_t i = 0; i < LOADERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, loader, (void *) i) == 0);
	for (int i = 0; i < LOADERS; i++)
		pthread_join(thread[i], NULL);
	for (uintptr_t i = 0; i < 2; i++)
		REQUIRE(pthread_create(&thread[i], NULL, builder, (void *) i) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	mot_load_done(st.table);

	CHECK(mot_index_valid_from(st.by_id.index) == 0);
	mot_table_stats(st.table, &stat);
	CHECK(stat.rows == LOADERS * EACH);

	view = begin_view(s, 1);
	for (uint64_t id = 1; id <= LOADERS * EACH; id++)
	{
		const record *r = get(&st, s, &view, id, NULL, NULL);

		REQUIRE(r != NULL && r->id == id && r->value == (int64_t) (id / 5));
	}
	REQUIRE(mot_cursor_open(s, cursor, &view, &st.by_value, &none, &none, false) == MOT_OK);
	while (mot_cursor_next(cursor, &row, &version))
	{
		const record *r = mot_version_data(version);

		REQUIRE(r->value >= last);
		last = r->value;
		n++;
	}
	mot_cursor_close(cursor);
	CHECK(n == LOADERS * EACH);
	end_view(s);
	CHECK(mot_tree_check(st.by_id.index->tree, err, sizeof(err)));
	CHECK(mot_tree_check(st.by_value.index->tree, err, sizeof(err)));
	free(cursor);
	mot_session_close(s);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	store_create(&st, 128 << 20, LOADERS + 1, MOT_ENGINE_PRIVATE, true);
	RUN(loaders_share_a_table);
	return test_end();
}
