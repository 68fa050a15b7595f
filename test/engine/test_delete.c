/*-------------------------------------------------------------------------
 *
 * test_delete.c
 *	  Deletes: what they take until they are reclaimed, that a full memory can be
 *	  emptied, and that rows which share a tombstone come back as they were.
 *
 *-------------------------------------------------------------------------
 */
#include "tree_stat.h"
#include "txn_util.h"

static store st;
static mot_session *a,
		   *b,
		   *c;

static void
setup(size_t memory, bool value_index)
{
	store_create(&st, memory, 8, MOT_ENGINE_PRIVATE, value_index);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
}

static void
teardown(void)
{
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

static uint64_t
used(void)
{
	mot_memory_report r;

	mot_memory_report_get(st.engine, &r);
	return r.used_bytes;
}

static uint64_t
retired(void)
{
	mot_memory_report r;

	mot_memory_report_get(st.engine, &r);
	return r.retired_objects;
}

static void
fill(uint64_t from, uint64_t to)
{
	begin(a);
	for (uint64_t i = from; i < to; i++)
		REQUIRE(insert(&st, a, 1, i, (int64_t) (i * 7)) == MOT_OK);
	commit(a);
}

/* delete every row found by a scan of ours, so many by each command; how many */
static uint64_t
delete_all(mot_session *s, uint64_t each, mot_status *status)
{
	mot_view	v = begin_view(s, 1);
	mot_scan	scan;
	mot_row    *row;
	const mot_version *seen,
			   *newest;
	uint64_t	n = 0;

	mot_scan_begin(s, &scan, st.table, &v);
	while (mot_scan_next(s, &scan, &row, &seen))
	{
		*status = mot_row_lock(s, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest);
		if (*status == MOT_OK)
			*status = mot_row_delete(s, st.table, row, (uint32_t) (1 + n / each));
		if (*status != MOT_OK)
			break;
		n++;
	}
	return n;
}

static uint64_t
visible(mot_session *s, const mot_view *v)
{
	uint64_t	by_scan,
				by_id;

	(void) sum_scan(&st, s, v, &by_scan);
	(void) sum_index(s, v, &st.by_id, false, &by_id);
	CHECK(by_scan == by_id);
	if (st.has_value_index)
	{
		uint64_t	by_value;

		(void) sum_index(s, v, &st.by_value, true, &by_value);
		CHECK(by_value == by_id);
	}
	return by_scan;
}

static uint64_t
entries(const mot_index_handle *handle)
{
	tree_stat	stat;

	tree_stats(handle->index->tree, &stat);
	return stat.keys;
}

#define ROWS 100000

/*
 * Delete all rows while somebody holds a snapshot; what that takes, a row, at
 * its most.  changed: the rows have been changed, and before that somebody has
 * taken another snapshot, so that their newest versions lie elsewhere and are
 * not below everybody's snapshot.
 */
static double
delete_cost(bool changed, uint64_t each, mot_isolation level)
{
	mot_view	older = {.snapshot = 0};
	mot_view	v;
	uint64_t	before,
				most;
	mot_status	status = MOT_OK;

	setup(256 << 20, true);
	fill(0, ROWS);
	drain(&st, b);
	if (changed)
	{
		older = begin_view(c, 1);
		begin(a);
		v = begin_view(a, 1);
		for (uint64_t i = 0; i < ROWS; i++)
			REQUIRE(update(&st, a, &v, 1, i, (int64_t) i * 11) == MOT_OK);
		commit(a);
	}
	before = used();
	v = begin_view(b, 1);
	mot_txn_begin(a, level, mot_snapshot_take(a), 7);
	CHECK(delete_all(a, each, &status) == ROWS);
	CHECK(status == MOT_OK);
	most = used();
	commit(a);
	if (used() > most)
		most = used();
	CHECK(retired() >= ROWS);

	/* they are there for those who saw them, by every index, and then nowhere */
	CHECK(visible(b, &v) == ROWS);
	if (changed)
	{
		CHECK(visible(c, &older) == ROWS);
		end_view(c);
	}
	(void) mot_reclaim_all(c);
	CHECK(visible(b, &v) == ROWS);
	end_view(b);
	v = begin_view(c, 1);
	CHECK(visible(c, &v) == 0);
	end_view(c);
	drain(&st, c);
	CHECK(retired() == 0);
	CHECK(entries(&st.by_id) == 0);
	CHECK(entries(&st.by_value) == 0);
	fill(0, 1000);
	teardown();
	return (double) (most - before) / ROWS;
}

static void
a_delete_takes_little(void)
{
	double		many = delete_cost(false, ROWS, MOT_READ_COMMITTED);
	double		deferred = delete_cost(false, ROWS, MOT_SNAPSHOT);
	double		single = delete_cost(false, 1, MOT_READ_COMMITTED);
	double		changed = delete_cost(true, ROWS, MOT_READ_COMMITTED);

	printf("# bytes for each deleted row: %.1f by one command, %.1f if locked at commit, "
		   "%.1f one by one, %.1f with older readers\n", many, deferred, single, changed);
	CHECK(many <= 2);
	CHECK(deferred <= 2);
	CHECK(single <= 48);
	CHECK(changed <= 48);
}

/* rolled back, whole or to a savepoint, all is as it was, and nothing is kept */
static void
deletes_are_taken_back(void)
{
	mot_view	v;
	mot_mark	mark;
	uint64_t	before;
	mot_status	status;

	setup(64 << 20, true);
	fill(0, 2000);
	drain(&st, b);
	before = mot_object_bytes(st.engine);
	for (int level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
		for (int whole = 0; whole < 2; whole++)
		{
			mot_txn_begin(a, level, mot_snapshot_take(a), 7);
			mark = mot_txn_mark(a);
			CHECK(delete_all(a, 1000, &status) == 2000);
			v = begin_view(a, 5);
			CHECK(visible(a, &v) == 0);
			v.command = 2;
			CHECK(visible(a, &v) == 1000);
			v.command = 1;
			CHECK(visible(a, &v) == 2000);
			if (whole)
				mot_txn_abort(a);
			else
			{
				mot_txn_rollback_to(a, mark);
				v.command = 9;
				CHECK(visible(a, &v) == 2000);
				commit(a);
			}
			end_view(a);
			v = begin_view(b, 1);
			CHECK(visible(b, &v) == 2000);
			end_view(b);
			drain(&st, b);
			CHECK(retired() == 0);
			CHECK(mot_object_bytes(st.engine) == before);
		}

	/* of one command's rows some, then the command goes on */
	begin(a);
	v = begin_view(a, 1);
	for (uint64_t i = 0; i < 600; i++)
		CHECK(delete_id(&st, a, &v, 1, i) == MOT_OK);
	mark = mot_txn_mark(a);
	for (uint64_t i = 600; i < 1200; i++)
		CHECK(delete_id(&st, a, &v, 1, i) == MOT_OK);
	mot_txn_rollback_to(a, mark);
	for (uint64_t i = 1000; i < 1500; i++)
		CHECK(delete_id(&st, a, &v, 1, i) == MOT_OK);
	commit(a);
	v = begin_view(b, 1);
	CHECK(visible(b, &v) == 900);
	CHECK(get(&st, b, &v, 599, NULL, NULL) == NULL);
	CHECK(get(&st, b, &v, 600, NULL, NULL) != NULL);
	CHECK(get(&st, b, &v, 999, NULL, NULL) != NULL);
	CHECK(get(&st, b, &v, 1499, NULL, NULL) == NULL);
	end_view(b);
	drain(&st, b);
	CHECK(retired() == 0);
	CHECK(entries(&st.by_id) == 900);
	CHECK(entries(&st.by_value) == 900);
	fill(0, 600);
	teardown();
}

/* a row made, changed and deleted in one transaction, others changed before they are deleted */
static void
rows_of_many_shapes_are_deleted(void)
{
	mot_view	v;
	uint64_t	before = 0;

	setup(64 << 20, true);
	for (int round = 0; round < 4; round++)
	{
		bool		again = round % 2 == 0;
		mot_view	old;

		if (again)
			fill(0, 1000);
		old = begin_view(b, 1);
		begin(a);
		v = begin_view(a, 1);
		for (uint64_t i = 0; i < 1000; i += 3)
			CHECK(update(&st, a, &v, 1, i, (int64_t) i + round) == MOT_OK);
		for (uint64_t i = 5000; i < 5100; i++)
			CHECK(insert(&st, a, 1, i, (int64_t) i) == MOT_OK);
		v.command = 2;
		for (uint64_t i = 5000; i < 5100; i += 2)
			CHECK(update(&st, a, &v, 2, i, (int64_t) i * 2) == MOT_OK);
		v.command = 3;
		for (uint64_t i = 0; i < 1000; i++)
			CHECK(delete_id(&st, a, &v, 3, i) == MOT_OK);
		for (uint64_t i = 5000; i < 5100; i++)
			CHECK(delete_id(&st, a, &v, 3, i) == MOT_OK);
		v.command = 4;
		CHECK(visible(a, &v) == 0);
		/* the keys are free again */
		if (again)
			for (uint64_t i = 0; i < 1000; i++)
				CHECK(insert(&st, a, 4, i, (int64_t) i) == MOT_OK);
		commit(a);
		CHECK(visible(b, &old) == 1000);
		(void) mot_reclaim_all(c);
		CHECK(visible(b, &old) == 1000);
		end_view(b);
		drain(&st, b);
		CHECK(retired() == 0);
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == (again ? 1000 : 0));
		end_view(c);

		/* (the trees keep some inner nodes) */
		if (!again)
		{
			CHECK(entries(&st.by_id) == 0);
			CHECK(entries(&st.by_value) == 0);
			CHECK(before == 0 || mot_object_bytes(st.engine) == before);
			before = mot_object_bytes(st.engine);
		}
	}
	teardown();
}

static bool know;

static bool
record_key_if_known(const mot_index *index, const mot_version *version, void *key, size_t *len, unsigned *flags)
{
	return know && record_key(index, version, key, len, flags);
}

/* as long as keys cannot be made rows stay, and nothing else is held up */
static void
rows_wait_for_their_keys(void)
{
	mot_view	v;
	mot_status	status;

	setup(64 << 20, true);
	fill(0, 1000);
	drain(&st, b);
	mot_index_key_hook = record_key_if_known;
	know = false;
	begin(a);
	v = begin_view(a, 1);
	CHECK(delete_id(&st, a, &v, 1, 0) == MOT_OK);
	commit(a);
	begin(a);
	CHECK(delete_all(a, 1000, &status) == 999);
	commit(a);
	drain(&st, b);
	CHECK(retired() == 1000);
	CHECK(entries(&st.by_id) == 1000);

	/* an index is dropped meanwhile, another made */
	mot_index_drop(b, st.by_value.index);
	st.has_value_index = false;
	REQUIRE(mot_index_create(b, st.table, 103, MOT_INDEX_DERIVED, &st.by_value.index) == MOT_OK);
	mot_index_attach(st.by_value.index);
	drain(&st, b);
	CHECK(retired() == 1000);
	fill(0, 10);
	know = true;
	drain(&st, b);
	CHECK(retired() == 0);
	CHECK(entries(&st.by_id) == 10);
	v = begin_view(b, 1);
	CHECK(visible(b, &v) == 10);
	end_view(b);
	teardown();
}

/*
 * Memory that is full, even of what changes may take, can be emptied by one
 * transaction.
 */
static void
full_memory_can_be_emptied(void)
{
	for (int limited = 0; limited < 2; limited++)
		for (int level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
		{
			uint64_t	rows[2] = {0};

			setup(64 << 20, true);
			if (limited)
				mot_table_set_limit(st.table, 16 << 20);
			for (int round = 0; round < 2; round++)
			{
				mot_status	status = MOT_OK;
				mot_view	v;
				uint64_t	changed = 0;

				while (status == MOT_OK)
				{
					begin(a);
					for (int i = 0; i < 100 && status == MOT_OK; i++)
					{
						status = insert(&st, a, 1, rows[round], (int64_t) rows[round]);
						rows[round] += status == MOT_OK;
					}
					commit(a);
				}
				CHECK(status == (limited ? MOT_TABLE_FULL : MOT_NO_MEMORY));
				/* then changes, with somebody who sees the old versions */
				v = begin_view(b, 1);
				mot_txn_begin(a, MOT_READ_COMMITTED, mot_snapshot_take(a), 7);
				v.snapshot = mot_snapshot_held(a);
				for (status = MOT_OK; status == MOT_OK && changed < rows[round]; changed++)
					status = update(&st, a, &v, 1, changed, -1);
				CHECK(status == (limited ? MOT_TABLE_FULL : MOT_NO_MEMORY));
				CHECK(changed > 1000);
				commit(a);
				end_view(b);
				drain(&st, b);

				mot_txn_begin(a, level, mot_snapshot_take(a), 7);
				CHECK(delete_all(a, rows[round], &status) == rows[round]);
				CHECK(status == MOT_OK);
				commit(a);
				/* whoever needs room makes it */
				if (round == 0)
					continue;
				drain(&st, b);
				CHECK(retired() == 0);
				CHECK(used() < 4 << 20);
			}
			printf("# %lu rows, and %lu after they were deleted\n", rows[0], rows[1]);
			CHECK(rows[1] > rows[0] / 10 * 9);
			teardown();
		}
}

/*
 * what comes while somebody reads goes when he has read: versions, and the pages that they were in
 */
static void
memory_of_a_long_reader_comes_back(void)
{
	mot_view	old;
	uint64_t	before,
				most;

	setup(256 << 20, false);
	fill(0, 20000);
	drain(&st, b);
	before = used();
	old = begin_view(b, 1);
	for (uint64_t n = 0; n < 200000; n++)
		change(&st, a, test_random() % 20000, (int64_t) n);
	most = used();
	CHECK(visible(b, &old) == 20000);
	CHECK(most > before + (12 << 20));
	end_view(b);
	drain(&st, b);
	CHECK(retired() == 0);
	printf("# %lu kB before, %lu kB with a reader, %lu kB after\n", before / 1024, most / 1024, used() / 1024);
	/* (a page for each of some objects that sessions keep ready) */
	mot_cache_flush(a->cache);
	mot_cache_flush(b->cache);
	CHECK(used() < before + (1 << 20));
	teardown();
}

/* many changes of a key: taking them back does not go through the index */
static void
changes_of_keys_are_taken_back_at_once(void)
{
	const uint64_t rows = 100000;
	mot_view	v;
	uint64_t	before;
	uint64_t	kept;
	uint64_t	objects = 0;

	setup(256 << 20, true);
	fill(0, rows);
	drain(&st, b);
	kept = used();
	for (int whole = 0; whole < 2; whole++)
	{
		clock_t		start;
		mot_mark	mark;
		mot_row    *row;

		before = entries(&st.by_value);
		CHECK(before == rows);
		begin(a);
		v = begin_view(a, 1);
		mark = mot_txn_mark(a);
		for (uint64_t i = 0; i < rows; i++)
			REQUIRE(update(&st, a, &v, 1, i, (int64_t) (i * 7 + 1)) == MOT_OK);
		/* some twice, some of new rows, some deleted */
		v.command = 2;
		for (uint64_t i = 0; i < 1000; i++)
		{
			REQUIRE(update(&st, a, &v, 2, i, (int64_t) (i * 7 + 2)) == MOT_OK);
			REQUIRE(insert(&st, a, 1, rows + i, -1) == MOT_OK);
			REQUIRE(update(&st, a, &v, 2, rows + i, -2) == MOT_OK);
			REQUIRE(delete_id(&st, a, &v, 2, 2000 + i) == MOT_OK);
		}
		start = clock();
		if (whole)
			mot_txn_abort(a);
		else
			mot_txn_rollback_to(a, mark);
		printf("# %.0f ns for each of %lu changes\n", (double) (clock() - start) / CLOCKS_PER_SEC * 1e9 / rows, rows);
		v.command = 3;
		CHECK(visible(a, &v) == rows);
		CHECK(entries(&st.by_value) >= 2 * rows);
		if (!whole)
			commit(a);
		end_view(a);

		/* others change and delete the same rows, and take the keys */
		v = begin_view(b, 1);
		CHECK(visible(b, &v) == rows);
		end_view(b);
		begin(b);
		v = begin_view(b, 1);
		REQUIRE(get(&st, b, &v, 1, &row, NULL) != NULL);
		for (uint64_t i = 0; i < 2000; i++)
		{
			CHECK(delete_id(&st, b, &v, 1, i) == MOT_OK);
			CHECK(insert(&st, b, 1, i, (int64_t) (i * 7)) == MOT_OK);
		}
		for (uint64_t i = 3000; i < 4000; i++)
		{
			CHECK(update(&st, b, &v, 1, i, (int64_t) (i * 7 + 1)) == MOT_OK);
			CHECK(update(&st, b, &v, 1, i, (int64_t) (i * 7)) == MOT_OK || true);
		}
		commit(b);
		for (int i = 0; i < 4; i++)
			(void) mot_reclaim(b, 0);	/* not what a owes */
		CHECK(mot_row_marked(st.engine->region, row));
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == rows);
		end_view(c);
		drain(&st, c);
		CHECK(retired() == 0);
		CHECK(entries(&st.by_value) == rows);
		CHECK(entries(&st.by_id) == rows);

		/*
		 * (nodes of the index that were split for the new keys stay, half
		 * full)
		 */
		CHECK(used() < kept + (16 << 20));
		CHECK(objects == 0 || mot_object_bytes(st.engine) == objects);
		objects = mot_object_bytes(st.engine);
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == rows);
		end_view(c);
	}
	teardown();
}

static void
move_ids(mot_view *v, uint32_t command, uint64_t rows, uint64_t from, uint64_t to)
{
	v->command = command;
	for (uint64_t i = 0; i < rows; i++)
	{
		mot_row    *row;
		const mot_version *seen;

		REQUIRE(get(&st, a, v, i + from, &row, &seen) != NULL);
		REQUIRE(update_row(&st, a, v, command, row, seen, i + to, 5) == MOT_OK);
	}
}

/* the same for unique keys, which others want before reclamation has got to their entries */
static void
unique_keys_are_taken_back_at_once(void)
{
	const uint64_t rows = 3000;

	setup(64 << 20, false);
	fill(0, rows);
	for (int savepoint = 0; savepoint < 2; savepoint++)
	{
		mot_view	v;
		mot_mark	mark = 0;
		mot_row    *row;

		/*
		 * all get another key, some yet another; a third has been changed
		 * before
		 */
		begin(a);
		v = begin_view(a, 1);
		for (uint64_t i = 0; savepoint && i < rows / 3; i++)
			REQUIRE(update(&st, a, &v, 1, i, 5) == MOT_OK);
		if (savepoint)
			mark = mot_txn_mark(a);
		move_ids(&v, 2, rows, 0, 10000);
		move_ids(&v, 3, rows / 2, 10000, 20000);
		if (savepoint)
			mot_txn_rollback_to(a, mark);
		else
			mot_txn_abort(a);
		end_view(a);
		CHECK(entries(&st.by_id) > rows + rows / 2);

		/* the keys are free, and those of before are not */
		begin(b);
		for (uint64_t i = 0; i < rows; i++)
		{
			CHECK(insert(&st, b, 1, i + 10000, 6) == MOT_OK);
			if (i < rows / 2)
				CHECK(insert(&st, b, 1, i + 20000, 6) == MOT_OK);
			else
				CHECK(insert(&st, b, 1, i, 6) == MOT_DUPLICATE);
		}
		commit(b);
		if (savepoint)
			commit(a);
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == 2 * rows + rows / 2);
		CHECK(get(&st, c, &v, 0, NULL, NULL)->value == (savepoint ? 5 : 0));
		CHECK(get(&st, c, &v, 10000, NULL, NULL)->value == 6);
		end_view(c);

		/* rows under both go, but not before all that leads to them */
		begin(b);
		v = begin_view(b, 1);
		REQUIRE(get(&st, b, &v, 1, &row, NULL) != NULL);
		for (uint64_t i = 0; i < rows; i++)
		{
			CHECK(delete_id(&st, b, &v, 1, i) == MOT_OK);
			CHECK(delete_id(&st, b, &v, 1, i + 10000) == MOT_OK);
			if (i < rows / 2)
				CHECK(delete_id(&st, b, &v, 1, i + 20000) == MOT_OK);
		}
		commit(b);
		for (int i = 0; i < 4; i++)
			(void) mot_reclaim(b, 0);	/* not what a owes */
		CHECK(mot_row_marked(st.engine->region, row));
		fill(0, rows);
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == rows);
		CHECK(get(&st, c, &v, 10001, NULL, NULL) == NULL);
		end_view(c);
		drain(&st, c);
		CHECK(retired() == 0);
		CHECK(entries(&st.by_id) == rows);
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == rows);
		end_view(c);
	}
	teardown();
}

static unsigned much_owed;

static void
note_much_owed(void)
{
	much_owed++;
}

/* many rows that were inserted: taking them back does not go through the indexes */
static void
inserts_are_taken_back_at_once(void)
{
	const uint64_t rows = 100000;

	setup(256 << 20, true);
	mot_owed_much_hook = note_much_owed;
	fill(0, 1000);
	drain(&st, b);

	/*
	 * how: 0 a transaction, 1 to a savepoint, 2 the same without leave to
	 * make keys anew
	 */
	for (int how = 0; how < 3; how++)
	{
		uint64_t	objects = mot_object_bytes(st.engine);
		mot_view	v,
					old;
		mot_mark	mark;
		clock_t		start;
		mot_row    *row;
		unsigned	noted;

		begin(a);
		mot_txn_keys_derive(a, how < 2);
		v = begin_view(a, 1);
		REQUIRE(insert(&st, a, 1, 1000, 7000) == MOT_OK);
		mark = mot_txn_mark(a);
		for (uint64_t i = 0; i < rows; i++)
			REQUIRE(insert(&st, a, 2, 1000000 + i * 7919 % 100003, (int64_t) (test_random() % 1000000)) == MOT_OK);
		/* some are changed, also by their keys, or deleted; and some before */
		v.command = 3;
		for (uint64_t i = 0; i < 1000; i++)
		{
			(void) update(&st, a, &v, 3, 1000000 + i, -5);
			(void) delete_id(&st, a, &v, 3, 1002000 + i);
			REQUIRE(update(&st, a, &v, 3, i, -6) == MOT_OK);
		}
		REQUIRE(get(&st, a, &v, 1010000, &row, NULL) != NULL);
		old = begin_view(c, 1);
		noted = much_owed;
		start = clock();
		if (how == 0)
			mot_txn_abort(a);
		else
			mot_txn_rollback_to(a, mark);
		printf("# %.0f ns for each of %lu rows\n", (double) (clock() - start) / CLOCKS_PER_SEC * 1e9 / (double) rows, rows);
		CHECK(much_owed == noted + 1);
		if (how > 0)
			commit(a);
		else
			end_view(a);
		if (how < 2)
			CHECK(entries(&st.by_id) > rows && mot_row_marked(st.engine->region, row));
		else
			CHECK(entries(&st.by_id) < 2000 && !mot_row_marked(st.engine->region, row));

		/* nobody sees them, and their keys are free */
		CHECK(visible(c, &old) == 1000);
		end_view(c);
		begin(b);
		v = begin_view(b, 1);
		CHECK(visible(b, &v) == 1000 + (how > 0));
		for (uint64_t i = 0; i < rows; i += 100)
		{
			CHECK(get(&st, b, &v, 1000000 + i * 7919 % 100003, NULL, NULL) == NULL);
			CHECK(insert(&st, b, 1, 1000000 + i * 7919 % 100003, 3) == MOT_OK);
		}
		commit(b);
		drain(&st, c);
		CHECK(retired() == 0);
		CHECK(entries(&st.by_id) == 2000 + (how > 0));
		CHECK(entries(&st.by_value) == 2000 + (how > 0));
		v = begin_view(c, 1);
		CHECK(visible(c, &v) == 2000 + (how > 0));
		end_view(c);

		/* all as it was */
		begin(a);
		v = begin_view(a, 1);
		for (uint64_t i = 0; i < rows; i += 100)
			CHECK(delete_id(&st, a, &v, 1, 1000000 + i * 7919 % 100003) == MOT_OK);
		if (how > 0)
			CHECK(delete_id(&st, a, &v, 1, 1000) == MOT_OK);
		commit(a);
		drain(&st, c);
		CHECK(retired() == 0);
		printf("# %lu bytes of objects, and then %lu\n", objects, mot_object_bytes(st.engine));
	}
	mot_owed_much_hook = NULL;
	teardown();
}

/*
 * somebody who has an old snapshot looks at another page, time and again, while what is owed is
 * seen to
 */
static void
look_on(mot_session *s, mot_view *v)
{
	for (int i = 0; i < 3; i++)
	{
		mot_scan	scan;
		mot_row    *row;
		const mot_version *version;

		mot_scan_begin(s, &scan, st.table, v);
		REQUIRE(mot_scan_next(s, &scan, &row, &version));
		drain(&st, c);
	}
}

/*
 * rows, changed keys and versions that were never committed wait for no snapshot, only for who may
 * be looking at them
 */
static void
what_failed_is_back_at_once(void)
{
	const uint64_t rows = 20000;
	mot_cursor *cursor = malloc(mot_cursor_size());
	mot_view	old;
	uint64_t	before;

	setup(256 << 20, true);
	fill(0, rows);
	drain(&st, c);
	/* how: 0 a reader who goes on, 1 one who has a cursor in an index */
	for (int how = 0; how < 2; how++)
	{
		mot_row    *row;
		const mot_version *version;
		mot_view	v;

		old = begin_view(b, 1);
		change(&st, a, 1, how);
		CHECK(visible(b, &old) == rows);
		if (how == 1)
		{
			REQUIRE(mot_cursor_open(b, cursor, &old, &st.by_value, NULL, NULL, false) == MOT_OK);
			for (int i = 0; i < 10; i++)
				REQUIRE(mot_cursor_next(cursor, &row, &version));
		}
		drain(&st, c);
		before = retired();
		CHECK(before > 0);
		begin(a);
		v = begin_view(a, 1);
		for (uint64_t i = 0; i < rows; i++)
		{
			REQUIRE(insert(&st, a, 1, rows + i, 5) == MOT_OK);
			REQUIRE(update(&st, a, &v, 1, i, (int64_t) i) == MOT_OK);
		}
		mot_txn_abort(a);
		end_view(a);
		CHECK(retired() > before + rows);
		drain(&st, c);
		CHECK(retired() > before + rows);
		if (how == 1)
		{
			look_on(b, &old);
			CHECK(retired() > before + rows);
			for (uint64_t i = 10; i < rows; i++)
				REQUIRE(mot_cursor_next(cursor, &row, &version));
			REQUIRE(!mot_cursor_next(cursor, &row, &version));
			mot_cursor_close(cursor);
		}
		look_on(b, &old);
		CHECK(retired() <= before);
		CHECK(entries(&st.by_id) == rows);
		CHECK(visible(b, &old) == rows);
		CHECK(get(&st, b, &old, 1, NULL, NULL)->value == (how == 0 ? 7 : 0));
		end_view(b);
	}
	free(cursor);
	teardown();
}

/* a statement has the room of what was deleted before it, also of what it unlinks itself */
static void
what_was_deleted_makes_room_at_once(void)
{
	const uint64_t rows = 120000;

	setup(24 << 20, true);
	for (int round = 0; round < 3; round++)
	{
		mot_status	status = MOT_OK;

		fill(0, rows);
		begin(a);
		CHECK(delete_all(a, UINT64_MAX, &status) == rows);
		commit(a);
	}
	fill(0, rows);
	CHECK(entries(&st.by_value) <= 2 * rows);
	teardown();
}

/*
 * Of one command's deletes some are rows that go on elsewhere: who waited for them is told
 * apart from those who waited for others, however each came by its tombstone.
 */
static void
rows_that_move_away_are_told_apart(void)
{
	const uint64_t rows = 1200;
	const mot_version *seen,
			   *newest;
	mot_row    *row;
	mot_status	status;

	setup(64 << 20, true);
	fill(0, rows);
	for (int level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
		for (int undo = 1; undo >= 0; undo--)
		{
			mot_view	older = begin_view(c, 1);
			mot_view	v;

			mot_txn_begin(a, level, mot_snapshot_take(a), 7);
			v = begin_view(a, 1);
			for (uint64_t i = 0; i < rows; i++)
			{
				REQUIRE(get(&st, a, &v, i, &row, &seen) != NULL);
				REQUIRE(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest) == MOT_OK);
				REQUIRE((i % 3 == 0 ? mot_row_move_away : mot_row_delete) (a, st.table, row, 1) == MOT_OK);
			}
			CHECK(visible(a, &v) == rows);
			v.command = 2;
			CHECK(visible(a, &v) == 0);
			if (undo)
				mot_txn_abort(a);
			else
				REQUIRE(mot_txn_prepare(a) == MOT_OK && mot_txn_commit(a) != 0);
			end_view(a);

			mot_txn_begin(c, MOT_READ_COMMITTED, older.snapshot, 7);
			for (uint64_t i = 0; i < rows; i++)
			{
				REQUIRE(get(&st, c, &older, i, &row, &seen) != NULL);
				status = mot_row_lock(c, &older, st.table, row, seen, MOT_MODE_CHANGE, &newest);
				CHECK(status == (undo ? MOT_OK : MOT_DELETED));
				CHECK(mot_row_moved_away(c, row) == (!undo && i % 3 == 0));
			}
			commit(c);
			drain(&st, b);
			CHECK(retired() == 0);
			CHECK(entries(&st.by_id) == (undo ? rows : 0));
			if (!undo)
				fill(0, rows);
		}
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(a_delete_takes_little);
	RUN(deletes_are_taken_back);
	RUN(rows_of_many_shapes_are_deleted);
	RUN(rows_wait_for_their_keys);
	RUN(full_memory_can_be_emptied);
	RUN(memory_of_a_long_reader_comes_back);
	RUN(changes_of_keys_are_taken_back_at_once);
	RUN(unique_keys_are_taken_back_at_once);
	RUN(inserts_are_taken_back_at_once);
	RUN(what_failed_is_back_at_once);
	RUN(what_was_deleted_makes_room_at_once);
	RUN(rows_that_move_away_are_told_apart);
	return test_end();
}
