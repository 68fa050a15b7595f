/*-------------------------------------------------------------------------
 *
 * test_load.c
 *	  Several sessions load one table.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

#define LOADERS 4
#define EACH 20000

static store st;
static _Atomic int duplicates;

static mot_status
load(mot_session *s, uint64_t id, int64_t value)
{
	mot_row    *row,
			   *other;
	record	   *data;
	uint8_t		key[8];
	mot_status	status;

	REQUIRE(mot_load_row(s, st.table, 0, sizeof(record), &row, (void **) &data) == MOT_OK);
	memset(data, 0, sizeof(*data));
	data->id = id;
	data->value = value;
	put_key(key, id);
	status = mot_load_key(s, &st.by_id, row, key, 8, MOT_LOAD_SHARED, &other);
	if (status != MOT_OK)
	{
		mot_unload_row(s, st.table, row);
		return status;
	}
	put_key(key, (uint64_t) value);
	REQUIRE(mot_load_key(s, &st.by_value, row, key, 8, MOT_LOAD_SHARED, &other) == MOT_OK);
	return MOT_OK;
}

/* rows dealt out in runs, as pages of a table are; and one key that all of them bring */
static void *
loader(void *arg)
{
	unsigned	me = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, me + 1);

	(void) mot_snapshot_take(s);
	for (uint64_t i = 0; i < EACH; i++)
	{
		uint64_t	run = (i / 100) * LOADERS + me;
		uint64_t	id = 1 + run * 100 + i % 100;

		REQUIRE(load(s, id, (int64_t) (id / 5)) == MOT_OK);
		if (i == EACH / 2 && load(s, UINT64_MAX, 0) == MOT_DUPLICATE)
			atomic_fetch_add(&duplicates, 1);
	}
	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_session_close(s);
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
	mot_load_done(st.table);

	CHECK(atomic_load(&duplicates) == LOADERS - 1);
	CHECK(mot_index_valid_from(st.by_id.index) == 0);
	mot_table_stats(st.table, &stat);
	CHECK(stat.rows == LOADERS * EACH + 1);

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
	CHECK(n == LOADERS * EACH + 1);
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
