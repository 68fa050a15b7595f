/*-------------------------------------------------------------------------
 *
 * test_txn_memory.c
 *	  What transactions, tables and loads take, and give back.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_store.h"

static void
memory_runs_out_and_comes_back(void)
{
	mot_view	v;
	mot_status	status = MOT_OK;
	uint64_t	n = 0,
				rows;
	mot_memory_report r;

	setup(true);
	(void) start(a, MOT_READ_COMMITTED);
	while (n < 10000000 && (status = insert(&st, a, 1, n + 1, (int64_t) n)) == MOT_OK)
		n++;
	CHECK(status == MOT_NO_MEMORY);
	printf("# %llu rows fit into 64 MB\n", (unsigned long long) n);

	/*
	 * the transaction that met the limit goes on; so do updates and deletes
	 * of others
	 */
	finish(a);
	v = start(b, MOT_READ_COMMITTED);
	for (uint64_t i = 1; i <= 1000; i++)
		CHECK(update(&st, b, &v, 1, i, (int64_t) i - 1) == MOT_OK);
	for (uint64_t i = 1001; i <= 2000; i++)
		CHECK(delete_id(&st, b, &v, 1, i) == MOT_OK);
	finish(b);
	v = begin_view(b, 0);
	(void) sum_scan(&st, b, &v, &rows);
	CHECK(rows == n - 1000);
	end_view(b);
	for (uint64_t from = 2001; from <= n; from += 10000)
	{
		v = start(b, MOT_READ_COMMITTED);
		for (uint64_t i = from; i < from + 10000 && i <= n; i++)
			CHECK(delete_id(&st, b, &v, 1, i) == MOT_OK);
		finish(b);
		drain(&st, c);
	}
	drain(&st, c);
	mot_memory_report_get(st.engine, &r);
	printf("# after deleting all but 1000: %llu bytes used\n", (unsigned long long) r.used_bytes);
	CHECK(r.used_bytes < (16u << 20));
	(void) start(a, MOT_READ_COMMITTED);
	for (uint64_t i = 0; i < n / 2; i++)
		if (insert(&st, a, 1, 100000000 + i, 1) != MOT_OK)
		{
			CHECK(!"no room again");
			break;
		}
	mot_txn_abort(a);
	end_view(a);
	teardown();
}

/* What a session that is gone had at hand is whose turn it is, not its slot's next owner's. */
static void
departed_sessions_have_nothing_at_hand(void)
{
	uint64_t	n = 0,
				before;

	setup(true);
	(void) start(a, MOT_READ_COMMITTED);
	for (uint64_t i = 0; i < 100; i++)
		CHECK(insert(&st, a, 1, i, 1) == MOT_OK);
	mot_txn_abort(a);
	end_view(a);
	drain(&st, a);
	mot_session_close(a);

	/*
	 * a transaction's own bookkeeping goes with it, and makes room for more
	 * rows
	 */
	do
	{
		before = n;
		(void) start(b, MOT_READ_COMMITTED);
		while (insert(&st, b, 1, 1000 + n, 1) == MOT_OK)
			n++;
		finish(b);
	} while (n > before);
	a = open_session(st.engine, 1);
	(void) start(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 1, 1) == MOT_NO_MEMORY);
	finish(a);
	CHECK(n > 100000);
	teardown();
}

static void
dropped_tables_give_their_memory_back(void)
{
	mot_view	v;
	mot_memory_report r0,
				r1;
	uint64_t	rows;

	setup(true);
	drain(&st, c);
	mot_memory_report_get(st.engine, &r0);
	for (int round = 0; round < 12; round++)
	{
		store		other = st;

		REQUIRE(mot_table_create(a, 1, 200, &other.table) == MOT_OK);
		REQUIRE(mot_index_create(a, other.table, 201, MOT_INDEX_UNIQUE, &other.by_id.index) == MOT_OK);
		mot_index_attach(other.by_id.index);
		other.has_value_index = false;
		(void) mot_table_publish(st.engine, other.table);
		CHECK(mot_table_find(st.engine, 1, 200) == other.table);
		CHECK(mot_table_index(other.table, 201) == other.by_id.index);
		(void) start(a, MOT_READ_COMMITTED);
		for (uint64_t i = 0; i < 20000; i++)
			CHECK(insert(&other, a, 1, i, 1) == MOT_OK);
		finish(a);
		v = start(b, MOT_READ_COMMITTED);
		for (uint64_t i = 0; i < 20000; i += 2)
			CHECK(i % 3 ? update(&other, b, &v, 1, i, 2) == MOT_OK :
				  delete_id(&other, b, &v, 1, i) == MOT_OK);
		finish(b);
		v = begin_view(c, 0);
		(void) sum_scan(&other, c, &v, &rows);
		CHECK(rows == 20000 - 3334);

		/*
		 * dropped while queues still name its objects, and a snapshot looks
		 * on
		 */
		mot_table_drop(a, other.table);
		CHECK(mot_table_find(st.engine, 1, 200) == NULL);
		(void) mot_reclaim_all(b);
		(void) sum_scan(&other, c, &v, &rows);
		CHECK(rows == 20000 - 3334);
		end_view(c);
		drain(&st, b);

		/*
		 * the engine keeps some pages of its own, but not more each time.
		 * (Which pages the free objects that sessions have at hand are of is
		 * chance.)
		 */
		mot_session_flush(a);
		mot_session_flush(b);
		mot_session_flush(c);
		mot_memory_report_get(st.engine, &r1);
		if (round == 0)
			r0 = r1;
		CHECK(r1.used_bytes <= r0.used_bytes);
	}
	CHECK(r0.used_bytes < (2 << 20));
	CHECK(atomic_load(&st.engine->dropped_count) == 0);
	teardown();
}

/*
 * A row deleted just before its table is dropped: the second step of freeing
 * it has a later stamp than the table.
 */
static void
second_steps_before_dropped_tables(void)
{
	mot_memory_report r;

	setup(true);
	for (int n = 1; n <= 40; n++)
	{
		store		other = st;
		mot_view	v;

		REQUIRE(mot_table_create(a, 1, 200, &other.table) == MOT_OK);
		REQUIRE(mot_index_create(a, other.table, 201, MOT_INDEX_UNIQUE, &other.by_id.index) == MOT_OK);
		mot_index_attach(other.by_id.index);
		other.has_value_index = false;
		(void) start(a, MOT_READ_COMMITTED);
		for (uint64_t i = 0; i < (uint64_t) n; i++)
			CHECK(insert(&other, a, 1, i, 1) == MOT_OK);
		finish(a);
		v = start(b, MOT_READ_COMMITTED);
		for (uint64_t i = 0; i < (uint64_t) n; i++)
			CHECK(delete_id(&other, b, &v, 1, i) == MOT_OK);
		(void) mot_txn_commit(b);
		mot_table_drop(a, other.table);
		end_view(b);
		drain(&st, c);
		CHECK(atomic_load(&st.engine->dropped_count) == 0);
		mot_memory_report_get(st.engine, &r);
		CHECK(r.retired_objects == 0);
	}
	teardown();
}

static void
bulk_load_and_build(void)
{
	mot_row    *row,
			   *other;
	void	   *data;
	const mot_version *v;
	uint8_t		key[8];
	mot_view	view;
	mot_build	build;
	mot_index  *index;
	uint64_t	n,
				rows;

	setup(false);
	(void) begin_view(a, 0);
	for (uint64_t i = 1; i <= 5000; i++)
	{
		REQUIRE(mot_load_row(a, st.table, 5, sizeof(record), &row, &data) == MOT_OK);
		memset(data, 0, sizeof(record));
		((record *) data)->id = i;
		((record *) data)->value = (int64_t) (i % 100);
		put_key(key, i);
		CHECK(mot_load_key(a, &st.by_id, row, key, 8, 0, &other) == MOT_OK);
	}
	REQUIRE(mot_load_row(a, st.table, 5, sizeof(record), &row, &data) == MOT_OK);
	put_key(key, 17);
	CHECK(mot_load_key(a, &st.by_id, row, key, 8, 0, &other) == MOT_DUPLICATE);
	mot_unload_row(a, st.table, row);
	REQUIRE(mot_index_create(a, st.table, 102, 0, &index) == MOT_OK);
	st.by_value.index = index;
	st.by_value.matches = value_matches;
	mot_build_begin(a, &build, index);
	for (n = 0; mot_build_next(&build, &row, &v); n++)
	{
		put_key(key, (uint64_t) ((const record *) mot_version_data(v))->value);
		CHECK(mot_load_key(a, &st.by_value, row, key, 8, 0, &other) == MOT_OK);
	}
	mot_build_end(&build);
	CHECK(n == 5000);
	mot_index_attach(index);
	st.has_value_index = true;
	end_view(a);
	view = begin_view(b, 0);
	CHECK(mot_index_valid_from(index) <= view.snapshot);
	CHECK(sum_index(b, &view, &st.by_value, false, &rows) == 5000 / 100 * 4950 && rows == 5000);
	end_view(b);
	{
		mot_table_stat stat;

		mot_table_stats(st.table, &stat);
		CHECK(stat.rows == 5000);
	}
	teardown();
}

static void
row_numbers(void)
{
	mot_view	v;
	mot_row    *row = NULL;

	setup(false);
	fill(100);
	v = begin_view(a, 0);
	CHECK(get(&st, a, &v, 50, &row, NULL) != NULL);
	CHECK(mot_row_by_number(a, st.table, mot_row_number(a, row)) == row);
	CHECK(mot_row_by_number(a, st.table, mot_row_number(a, row) + 1) == NULL);
	CHECK(mot_row_by_number(a, st.table, 0) == NULL);
	CHECK(mot_row_by_number(a, st.table, (UINT64_C(1) << 47) - 1) == NULL);
	end_view(a);
	teardown();
}

static void
large_rows(void)
{
	mot_row    *row;
	void	   *data;
	size_t		size = 9u << 20;
	uint64_t	sum = 0;
	mot_scan	scan;
	mot_view	v;
	const mot_version *version;

	setup(false);
	(void) start(a, MOT_READ_COMMITTED);
	for (int i = 0; i < 3; i++)
	{
		REQUIRE(mot_row_insert(a, st.table, 1, 0, size, &row, &data) == MOT_OK);
		memset(data, i + 1, size);
	}
	finish(a);
	v = begin_view(b, 0);
	mot_scan_begin(b, &scan, st.table, &v);
	while (mot_scan_next(b, &scan, &row, &version))
		sum += ((const uint8_t *) mot_version_data(version))[size - 1];
	CHECK(sum == 6);
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

/* Insert, change, roll back and delete; then nothing is left of it, to the byte. */
static uint64_t
come_and_go(uint64_t from)
{
	mot_mark	mark;
	mot_view	v = start(a, MOT_READ_COMMITTED);

	for (uint64_t i = 0; i < 500; i++)
		CHECK(insert(&st, a, 1, from + i * 7 % 500, (int64_t) i) == MOT_OK);
	finish(a);
	v = start(b, MOT_READ_COMMITTED);
	for (uint64_t i = 0; i < 500; i += 3)
		CHECK(update(&st, b, &v, 1, from + i, (int64_t) (i + from)) == MOT_OK);
	mark = mot_txn_mark(b);
	CHECK(insert(&st, b, 1, from + 1000, 1) == MOT_OK);
	CHECK(update(&st, b, &v, 1, from + 1, -1) == MOT_OK);
	mot_txn_rollback_to(b, mark);
	finish(b);
	v = start(a, MOT_READ_COMMITTED);
	for (uint64_t i = 0; i < 500; i += 5)
		CHECK(delete_id(&st, a, &v, 1, from + i) == MOT_OK);
	end_view(a);
	mot_txn_abort(a);
	v = start(c, MOT_READ_COMMITTED);
	for (uint64_t i = 0; i < 500; i++)
		CHECK(delete_id(&st, c, &v, 1, from + i) == MOT_OK);
	CHECK(mot_object_bytes(st.engine) > 500 * sizeof(record));
	finish(c);
	drain(&st, b);
	return mot_object_bytes(st.engine);
}

static void
nothing_is_left(void)
{
	uint64_t	before;
	void	   *kept;

	setup(true);
	before = come_and_go(0);	/* trees keep a root of a certain height */
	for (uint64_t i = 0; i < 20; i++)
		CHECK(come_and_go(i * 100) == before);
	kept = mot_alloc(a->cache, st.engine->pool, 100, MOT_FOR_CHANGE, NULL);
	CHECK(mot_object_bytes(st.engine) == before + mot_usable_size(st.engine->region, kept));
	mot_free(a->cache, kept);
	CHECK(mot_object_bytes(st.engine) == before);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(memory_runs_out_and_comes_back);
	RUN(departed_sessions_have_nothing_at_hand);
	RUN(dropped_tables_give_their_memory_back);
	RUN(second_steps_before_dropped_tables);
	RUN(bulk_load_and_build);
	RUN(row_numbers);
	RUN(large_rows);
	RUN(nothing_is_left);
	return test_end();
}
