/*-------------------------------------------------------------------------
 *
 * test_txn.c
 *	  Units of the engine's transactions, single-threaded: several sessions
 *	  take turns, so every interleaving here is exact.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_store.h"

static int64_t
value_of(mot_session *s, uint64_t id)
{
	mot_view	v = begin_view(s, MOT_COMMAND_MAX);
	const record *r = get(&st, s, &v, id, NULL, NULL);
	int64_t		value = r ? r->value : -1;

	if (!mot_txn_active(s))
		end_view(s);
	return value;
}

static void
own_changes_by_command(void)
{
	mot_view	v;

	setup(true);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 1, 10) == MOT_OK);
	v.command = 1;
	CHECK(get(&st, a, &v, 1, NULL, NULL) == NULL);	/* this command's own
													 * insert */
	v.command = 2;
	CHECK(get(&st, a, &v, 1, NULL, NULL) != NULL);
	CHECK(update(&st, a, &v, 2, 1, 20) == MOT_OK);
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 10);
	CHECK(update(&st, a, &v, 2, 1, 30) == MOT_SELF_CHANGED);
	v.command = 3;
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 20);
	CHECK(value_of(b, 1) == -1);
	CHECK(delete_id(&st, a, &v, 3, 1) == MOT_OK);
	v.command = 4;
	CHECK(get(&st, a, &v, 1, NULL, NULL) == NULL);
	CHECK(insert(&st, a, 4, 1, 50) == MOT_OK);
	finish(a);
	CHECK(value_of(b, 1) == 50);
	teardown();
}

static void
snapshots_see_one_state(void)
{
	mot_view	v,
				w;

	setup(true);
	fill(10);
	v = begin_view(b, 0);
	w = start(a, MOT_READ_COMMITTED);
	CHECK(update(&st, a, &w, 1, 3, 1000) == MOT_OK);
	CHECK(delete_id(&st, a, &w, 1, 4) == MOT_OK);
	CHECK(insert(&st, a, 1, 11, 5) == MOT_OK);
	CHECK(get(&st, b, &v, 3, NULL, NULL)->value == 30);
	finish(a);
	drain(&st, c);
	CHECK(get(&st, b, &v, 3, NULL, NULL)->value == 30);
	CHECK(get(&st, b, &v, 4, NULL, NULL)->value == 40);
	CHECK(get(&st, b, &v, 11, NULL, NULL) == NULL);
	{
		uint64_t	n;

		CHECK(sum_scan(&st, b, &v, &n) == 550 && n == 10);
		CHECK(sum_index(b, &v, &st.by_id, false, &n) == 550 && n == 10);
		CHECK(sum_index(b, &v, &st.by_value, true, &n) == 550 && n == 10);
	}
	end_view(b);
	CHECK(value_of(b, 3) == 1000);
	CHECK(value_of(b, 4) == -1);
	CHECK(value_of(b, 11) == 5);
	teardown();
}

static void
read_committed_waits_and_rechecks(void)
{
	mot_view	v,
				w;
	mot_row    *row = NULL;
	const mot_version *seen = NULL,
			   *newest;

	setup(false);
	fill(3);
	v = start(a, MOT_READ_COMMITTED);
	w = start(b, MOT_READ_COMMITTED);
	CHECK(update(&st, a, &v, 1, 1, 11) == MOT_OK);
	CHECK(get(&st, b, &w, 1, &row, &seen)->value == 10);
	CHECK(mot_row_lock(b, &w, st.table, row, seen, MOT_MODE_CHANGE, &newest) == MOT_BUSY);
	CHECK(mot_session_holder(b).slot == 1 && mot_session_holder(b).host_id == 7);
	finish(a);
	CHECK(mot_row_lock(b, &w, st.table, row, seen, MOT_MODE_CHANGE, &newest) == MOT_CHANGED);
	CHECK(((const record *) mot_version_data(newest))->value == 11);
	mot_row_unlock(b, row);
	CHECK(!mot_txn_has_work(b));
	v = start(a, MOT_READ_COMMITTED);
	CHECK(delete_id(&st, a, &v, 1, 1) == MOT_OK);
	finish(a);
	CHECK(mot_row_lock(b, &w, st.table, row, seen, MOT_MODE_CHANGE, &newest) == MOT_DELETED);
	finish(b);
	teardown();
}

static void
first_committer_wins(void)
{
	mot_view	v,
				w;

	setup(false);
	fill(3);
	for (int level = MOT_SNAPSHOT; level <= MOT_SERIALIZABLE; level++)
	{
		v = start(a, (mot_isolation) level);
		w = start(b, (mot_isolation) level);
		/* neither waits for the other's client */
		CHECK(update(&st, a, &v, 1, 1, 100 + level) == MOT_OK);
		CHECK(update(&st, b, &w, 1, 1, 200) == MOT_OK);
		CHECK(mot_txn_check(b) == MOT_OK);
		finish(a);
		CHECK(mot_txn_check(b) == MOT_CONFLICT_CHANGED);
		CHECK(mot_txn_prepare(b) == MOT_CONFLICT_CHANGED);
		mot_txn_abort(b);
		end_view(b);
		CHECK(value_of(c, 1) == 100 + level);
		w = start(b, (mot_isolation) level);
		v = start(a, MOT_READ_COMMITTED);
		CHECK(update(&st, a, &v, 1, 2, 5) == MOT_OK);
		finish(a);
		CHECK(update(&st, b, &w, 1, 2, 6) == MOT_CONFLICT_CHANGED);
		mot_txn_abort(b);
		end_view(b);
	}
	/* own deferred changes, several commands, savepoint in between */
	v = start(a, MOT_SNAPSHOT);
	CHECK(update(&st, a, &v, 1, 3, 301) == MOT_OK);
	CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 30); /* this command's own
														 * change */
	v.command = 2;
	CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 301);
	{
		mot_mark	mark = mot_txn_mark(a);

		CHECK(update(&st, a, &v, 2, 3, 302) == MOT_OK);
		v.command = 3;
		CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 302);
		mot_txn_rollback_to(a, mark);
	}
	CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 301);
	CHECK(update(&st, a, &v, 3, 3, 303) == MOT_OK);
	CHECK(value_of(b, 3) == 30);
	finish(a);
	CHECK(value_of(b, 3) == 303);
	teardown();
}

/*
 * A checkpoint's: a has drawn, b commits after it, c's snapshot has b's changes
 * and not a's, whether a has installed them by then or not; nothing is
 * reclaimed under it.
 */
static void
snapshot_without_who_has_drawn(void)
{
	for (int installed = 0; installed <= 1; installed++)
	{
		mot_view	v,
					w;
		mot_ts		drawn,
					upto;
		mot_beyond	beyond;
		uint64_t	rows;

		setup(true);
		fill(4);
		v = start(a, MOT_SERIALIZABLE);
		CHECK(update(&st, a, &v, 1, 1, 11) == MOT_OK);
		CHECK(delete_id(&st, a, &v, 1, 2) == MOT_OK);
		CHECK(insert(&st, a, 1, 5, 55) == MOT_OK);
		REQUIRE(mot_txn_lock(a) == MOT_OK);
		drawn = mot_txn_draw(a);
		CHECK(drawn != 0 && mot_txn_draw(a) == drawn);
		CHECK(mot_txn_prepare(a) == MOT_OK);

		w = start(b, MOT_READ_COMMITTED);
		CHECK(update(&st, b, &w, 1, 3, 33) == MOT_OK);
		CHECK(delete_id(&st, b, &w, 1, 4) == MOT_OK);
		CHECK(insert(&st, b, 1, 6, 66) == MOT_OK);
		CHECK(finish(b) > drawn);

		upto = mot_snapshot_take(c);
		CHECK(upto > drawn);
		mot_snapshot_lower(c, drawn - 1);
		beyond = (mot_beyond)
		{
			upto, 1, &drawn
		};
		v = (mot_view)
		{
			drawn - 1, MOT_COMMAND_MAX, &beyond, false
		};

		if (installed)
			CHECK(mot_txn_commit(a) == drawn);
		/* later than the snapshot */
		w = start(b, MOT_READ_COMMITTED);
		CHECK(update(&st, b, &w, 1, 3, 333) == MOT_OK);
		finish(b);
		(void) mot_reclaim_all(b);

		CHECK(sum_scan(&st, c, &v, &rows) == 10 + 20 + 33 + 66 && rows == 4);
		CHECK(get(&st, c, &v, 1, NULL, NULL)->value == 10);
		CHECK(get(&st, c, &v, 2, NULL, NULL)->value == 20);
		CHECK(get(&st, c, &v, 3, NULL, NULL)->value == 33);
		CHECK(get(&st, c, &v, 4, NULL, NULL) == NULL);
		CHECK(get(&st, c, &v, 5, NULL, NULL) == NULL);
		end_view(c);
		if (!installed)
			CHECK(mot_txn_commit(a) == drawn);
		end_view(a);
		CHECK(value_of(c, 1) == 11 && value_of(c, 3) == 333);
		teardown();
	}
}

static void
install_b(void)
{
	if (mot_txn_active(b))
		(void) mot_txn_commit(b);
}

/*
 * REPEATABLE READ with such a snapshot: whoever else has drawn is waited for,
 * what lies beyond can be changed, and what is left out can not.
 */
static void
changes_without_who_has_drawn(void)
{
	for (int keyed = 0; keyed <= 1; keyed++)
	{
		mot_view	v;
		mot_ts		drawn;
		mot_beyond	beyond;

		setup(keyed);
		fill(5);
		v = start(a, MOT_SERIALIZABLE);
		CHECK(update(&st, a, &v, 1, 1, 11) == MOT_OK);
		REQUIRE(mot_txn_lock(a) == MOT_OK);
		drawn = mot_txn_draw(a);
		CHECK(mot_txn_prepare(a) == MOT_OK);
		v = start(b, MOT_READ_COMMITTED);
		CHECK(update(&st, b, &v, 1, 3, 33) == MOT_OK);
		CHECK(finish(b) > drawn);
		v = start(b, MOT_SERIALIZABLE);
		CHECK(update(&st, b, &v, 1, 4, 44) == MOT_OK);
		REQUIRE(mot_txn_lock(b) == MOT_OK);
		CHECK(mot_txn_draw(b) > drawn);
		CHECK(mot_txn_prepare(b) == MOT_OK);

		beyond = (mot_beyond)
		{
			mot_snapshot_take(c), 1, &drawn
		};
		mot_snapshot_lower(c, drawn - 1);
		v = (mot_view)
		{
			drawn - 1, 1, &beyond, false
		};
		mot_txn_begin(c, MOT_SNAPSHOT, v.snapshot, 7);
		mot_txn_set_beyond(c, &beyond);
		CHECK(get(&st, c, &v, 1, NULL, NULL)->value == 10);
		CHECK(get(&st, c, &v, 3, NULL, NULL)->value == 33);
		mot_row_wait_hook = install_b;
		CHECK(get(&st, c, &v, 4, NULL, NULL)->value == 44);
		mot_row_wait_hook = NULL;
		CHECK(!mot_txn_active(b));
		end_view(b);

		CHECK(update(&st, c, &v, 1, 3, 34) == MOT_OK);
		CHECK(update(&st, c, &v, 1, 4, 45) == MOT_OK);
		CHECK(mot_txn_check(c) == MOT_OK);
		if (keyed)
		{
			CHECK(update(&st, c, &v, 1, 1, 12) == MOT_BUSY);
			CHECK(mot_txn_commit(a) == drawn);
			CHECK(finish(c) > drawn);
		}
		else
		{
			CHECK(update(&st, c, &v, 1, 1, 12) == MOT_OK);
			CHECK(mot_txn_commit(a) == drawn);
			CHECK(mot_txn_check(c) == MOT_CONFLICT_CHANGED);
			CHECK(mot_txn_lock(c) == MOT_CONFLICT_CHANGED);
			mot_txn_abort(c);
			end_view(c);
		}
		end_view(a);
		CHECK(value_of(c, 1) == 11 && value_of(c, 3) == (keyed ? 34 : 33) && value_of(c, 4) == (keyed ? 45 : 44));
		teardown();
	}
}

static void
write_skew_fails(void)
{
	mot_view	v,
				w;
	mot_status	x,
				y;

	setup(false);
	fill(2);
	v = start(a, MOT_SERIALIZABLE);
	w = start(b, MOT_SERIALIZABLE);
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value + get(&st, a, &v, 2, NULL, NULL)->value == 30);
	CHECK(get(&st, b, &w, 1, NULL, NULL)->value + get(&st, b, &w, 2, NULL, NULL)->value == 30);
	CHECK(update(&st, a, &v, 1, 1, 0) == MOT_OK);
	CHECK(update(&st, b, &w, 1, 2, 0) == MOT_OK);
	x = mot_txn_prepare(a);
	CHECK(x == MOT_OK);
	y = mot_txn_prepare(b);		/* a has drawn an earlier timestamp and holds
								 * row 1 */
	CHECK(y == MOT_CONFLICT_READ);
	mot_txn_abort(b);
	end_view(b);
	(void) mot_txn_commit(a);
	end_view(a);
	/* a plain row lock of another transaction does not spoil a read */
	v = start(a, MOT_SERIALIZABLE);
	CHECK(get(&st, a, &v, 2, NULL, NULL) != NULL);
	CHECK(update(&st, a, &v, 1, 1, 77) == MOT_OK);
	w = start(b, MOT_READ_COMMITTED);
	CHECK(update(&st, b, &w, 1, 2, 88) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	(void) mot_txn_commit(a);
	end_view(a);
	finish(b);
	teardown();
}

static void
phantoms_fail(void)
{
	mot_view	v,
				w;
	uint64_t	n;

	setup(true);
	fill(5);
	for (int how = 0; how < 3; how++)
	{
		v = start(a, MOT_SERIALIZABLE);
		if (how == 0)
			(void) sum_index(a, &v, &st.by_value, false, &n);
		else if (how == 1)
			CHECK(get(&st, a, &v, (uint64_t) (50 + how), NULL, NULL) == NULL);
		else
			(void) sum_scan(&st, a, &v, &n);
		CHECK(insert(&st, a, 1, (uint64_t) (100 + how), 1) == MOT_OK);
		w = start(b, MOT_READ_COMMITTED);
		(void) w;
		CHECK(insert(&st, b, 1, (uint64_t) (50 + how), 500) == MOT_OK);
		finish(b);
		CHECK(mot_txn_prepare(a) == MOT_CONFLICT_PHANTOM);
		mot_txn_abort(a);
		end_view(a);
	}
	/* its own inserts do not spoil its reads */
	v = start(a, MOT_SERIALIZABLE);
	(void) sum_index(a, &v, &st.by_id, false, &n);
	for (uint64_t i = 0; i < 200; i++)
		CHECK(insert(&st, a, 1, 1000 + i, 3) == MOT_OK);
	finish(a);
	/* nor do those of others that have not committed, or never will */
	v = start(a, MOT_SERIALIZABLE);
	(void) sum_scan(&st, a, &v, &n);
	(void) start(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, b, 1, 3000, 3) == MOT_OK);
	mot_txn_abort(b);
	end_view(b);
	w = start(b, MOT_SERIALIZABLE);
	(void) sum_scan(&st, b, &w, &n);
	CHECK(insert(&st, b, 1, 3000, 3) == MOT_OK);
	CHECK(insert(&st, a, 1, 3001, 3) == MOT_OK);
	finish(a);
	CHECK(mot_txn_prepare(b) == MOT_CONFLICT_PHANTOM);
	mot_txn_abort(b);
	end_view(b);
	/* pages may join the table, unless others insert there */
	for (int how = 0; how < 2; how++)
	{
		v = start(a, MOT_SERIALIZABLE);
		(void) sum_scan(&st, a, &v, &n);
		for (uint64_t i = 0; i < 2000; i++)
			CHECK(insert(&st, a, 1, 10000 + (uint64_t) how * 10000 + i, 3) == MOT_OK);
		CHECK(mot_txn_check(a) == MOT_OK);
		if (how == 1)
		{
			(void) start(b, MOT_READ_COMMITTED);
			for (uint64_t i = 0; i < 2000; i++)
				CHECK(insert(&st, b, 1, 30000 + i, 3) == MOT_OK);
			finish(b);
			CHECK(mot_txn_check(a) == MOT_CONFLICT_PHANTOM);
			CHECK(mot_txn_prepare(a) == MOT_CONFLICT_PHANTOM);
			mot_txn_abort(a);
			end_view(a);
		}
		else
			finish(a);
	}
	/* a read-only one never fails */
	v = start(a, MOT_SERIALIZABLE);
	(void) sum_scan(&st, a, &v, &n);
	(void) start(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, b, 1, 5000, 1) == MOT_OK);
	finish(b);
	finish(a);
	teardown();
}

static void
unique_keys(void)
{
	mot_view	v;

	setup(true);
	fill(3);
	(void) start(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 2, 5) == MOT_DUPLICATE);
	CHECK(insert(&st, a, 1, 9, 5) == MOT_OK);
	(void) start(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, b, 1, 9, 6) == MOT_BUSY);
	finish(a);
	CHECK(insert(&st, b, 1, 9, 6) == MOT_DUPLICATE);
	finish(b);
	/* deleted and inserted again while an old snapshot looks on */
	v = begin_view(c, 0);
	for (int i = 0; i < 10; i++)
	{
		mot_view	w = start(a, MOT_READ_COMMITTED);

		CHECK(delete_id(&st, a, &w, 1, 9) == MOT_OK);
		finish(a);
		(void) start(b, MOT_READ_COMMITTED);
		CHECK(insert(&st, b, 1, 9, 100 + i) == MOT_OK);
		CHECK(insert(&st, b, 1, 9, 100 + i) == MOT_DUPLICATE);
		finish(b);
		CHECK(get(&st, c, &v, 9, NULL, NULL)->value == 5);
		CHECK(value_of(b, 9) == 100 + i);
	}
	end_view(c);
	drain(&st, c);
	CHECK(value_of(b, 9) == 109);
	teardown();
}

/*
 * who else has the value, in the index that takes any: asked when the own entry is there; id 0: no
 * row of our own
 */
static mot_status
rivals(mot_session *s, mot_view v, uint64_t id, int64_t value, uint64_t *rival)
{
	mot_row    *own = NULL,
			   *other = NULL;
	uint8_t		key[8];
	mot_status	status;

	v.command = MOT_COMMAND_MAX;
	if (id != 0)
		REQUIRE(get(&st, s, &v, id, &own, NULL) != NULL);
	put_key(key, (uint64_t) value);
	status = mot_index_rivals(s, &st.by_value, own, key, 8, &other);
	*rival = status != MOT_DUPLICATE ? 0 : ((const record *) mot_version_data(mot_row_newest(s, other)))->id;
	return status;
}

static void
keys_with_rivals(void)
{
	mot_view	v,
				w;
	uint64_t	rival;

	setup(true);
	fill(2);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(rivals(a, v, 0, 77, &rival) == MOT_OK);
	CHECK(rivals(a, v, 0, 20, &rival) == MOT_DUPLICATE && rival == 2);
	CHECK(insert(&st, a, 1, 3, 10) == MOT_OK);
	CHECK(rivals(a, v, 3, 10, &rival) == MOT_DUPLICATE && rival == 1);

	/* of two who add the same each meets the other */
	w = start(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 5, 50) == MOT_OK);
	CHECK(rivals(a, v, 5, 50, &rival) == MOT_OK);
	CHECK(insert(&st, b, 1, 6, 50) == MOT_OK);
	CHECK(rivals(a, v, 5, 50, &rival) == MOT_BUSY && mot_session_holder(a).slot == 2);
	CHECK(rivals(b, w, 6, 50, &rival) == MOT_BUSY && mot_session_holder(b).slot == 1);
	mot_txn_abort(b);
	end_view(b);
	CHECK(rivals(a, v, 5, 50, &rival) == MOT_OK);
	finish(a);

	/* a key that may come back, and has gone then */
	w = start(b, MOT_READ_COMMITTED);
	CHECK(update(&st, b, &w, 1, 2, 25) == MOT_OK);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 7, 20) == MOT_OK);
	CHECK(rivals(a, v, 7, 20, &rival) == MOT_BUSY);
	CHECK(rivals(a, v, 0, 25, &rival) == MOT_BUSY);
	finish(b);
	CHECK(rivals(a, v, 7, 20, &rival) == MOT_OK);
	CHECK(rivals(a, v, 0, 25, &rival) == MOT_DUPLICATE && rival == 2);

	/* rows of our own are rivals, deleted ones are not */
	CHECK(insert(&st, a, 1, 9, 20) == MOT_OK);
	CHECK(rivals(a, v, 9, 20, &rival) == MOT_DUPLICATE && rival == 7);
	v.command = 3;
	CHECK(delete_id(&st, a, &v, 2, 7) == MOT_OK);
	CHECK(rivals(a, v, 9, 20, &rival) == MOT_OK);
	finish(a);
	teardown();
}

static void
keys_that_move(void)
{
	mot_view	v,
				old;
	mot_row    *row = NULL;
	const mot_version *seen = NULL;

	setup(true);
	fill(3);
	old = begin_view(c, 0);
	/* 1 -> 7, and back, with claims of the same row piling up on key 1 */
	for (int i = 0; i < 5; i++)
	{
		v = start(a, MOT_READ_COMMITTED);
		CHECK(get(&st, a, &v, 1, &row, &seen) != NULL);
		CHECK(update_row(&st, a, &v, 1, row, seen, 7, 10) == MOT_OK);
		v.command = 2;
		CHECK(get(&st, a, &v, 1, NULL, NULL) == NULL);
		CHECK(get(&st, a, &v, 7, NULL, NULL) != NULL);
		finish(a);
		v = start(b, MOT_SNAPSHOT);
		CHECK(get(&st, b, &v, 7, &row, &seen) != NULL);
		CHECK(get(&st, b, &v, 1, NULL, NULL) == NULL);
		CHECK(update_row(&st, b, &v, 1, row, seen, 1, 10) == MOT_OK);
		finish(b);
		CHECK(get(&st, c, &old, 1, NULL, NULL) != NULL);
		CHECK(get(&st, c, &old, 7, NULL, NULL) == NULL);
	}
	/* another row takes a key that was left */
	v = start(a, MOT_READ_COMMITTED);
	CHECK(get(&st, a, &v, 1, &row, &seen) != NULL);
	CHECK(update_row(&st, a, &v, 1, row, seen, 8, 10) == MOT_OK);
	(void) start(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, b, 1, 1, 4) == MOT_BUSY);
	finish(a);
	CHECK(insert(&st, b, 1, 1, 4) == MOT_OK);
	finish(b);
	CHECK(value_of(a, 1) == 4);
	CHECK(value_of(a, 8) == 10);
	CHECK(get(&st, c, &old, 1, NULL, NULL)->value == 10);
	/* undone moves leave nothing behind */
	v = start(a, MOT_READ_COMMITTED);
	CHECK(get(&st, a, &v, 2, &row, &seen) != NULL);
	CHECK(update_row(&st, a, &v, 1, row, seen, 20, 21) == MOT_OK);
	mot_txn_abort(a);
	end_view(a);
	CHECK(value_of(a, 2) == 20);
	CHECK(value_of(a, 20) == -1);
	/* a moved row deleted while its mover idles: no entry may dangle */
	v = start(b, MOT_READ_COMMITTED);
	CHECK(delete_id(&st, b, &v, 1, 8) == MOT_OK);
	finish(b);
	end_view(c);
	(void) mot_reclaim(b, 0);
	(void) mot_reclaim(b, 0);
	{
		uint64_t	n;

		v = begin_view(c, 0);
		(void) sum_index(c, &v, &st.by_id, false, &n);
		CHECK(n == 3);
		end_view(c);
	}
	teardown();
}

static void
savepoints(void)
{
	mot_view	v;
	mot_mark	m1,
				m2;
	mot_row    *row = NULL;
	const mot_version *seen = NULL,
			   *newest;

	setup(true);
	fill(5);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(get(&st, a, &v, 1, &row, &seen) != NULL);
	CHECK(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest) == MOT_OK);
	m1 = mot_txn_mark(a);
	CHECK(update(&st, a, &v, 1, 1, 111) == MOT_OK);
	CHECK(update(&st, a, &v, 1, 2, 222) == MOT_OK);
	m2 = mot_txn_mark(a);
	v.command = 2;
	CHECK(update(&st, a, &v, 2, 1, 112) == MOT_OK);
	CHECK(delete_id(&st, a, &v, 2, 2) == MOT_OK);
	CHECK(insert(&st, a, 2, 77, 1) == MOT_OK);
	mot_txn_rollback_to(a, m2);
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 111);
	CHECK(get(&st, a, &v, 2, NULL, NULL)->value == 222);
	CHECK(get(&st, a, &v, 77, NULL, NULL) == NULL);
	mot_txn_rollback_to(a, m1);
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 10);
	/* a lock taken before stays when a later request is taken back */
	CHECK(get(&st, a, &v, 1, &row, &seen) != NULL);
	CHECK(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest) == MOT_OK);
	mot_row_unlock(a, row);
	/* row 2's lock went with the savepoint, row 1's was taken before it */
	{
		mot_view	w = start(b, MOT_READ_COMMITTED);

		CHECK(update(&st, b, &w, 1, 1, 5) == MOT_BUSY);
		CHECK(update(&st, b, &w, 1, 2, 5) == MOT_OK);
		finish(b);
	}
	finish(a);
	CHECK(value_of(a, 1) == 10);
	CHECK(value_of(a, 2) == 5);
	teardown();
}

/*
 * SERIALIZABLE: to read what one has written oneself is to read the version
 * that it was made from, whatever becomes of the writing.
 */
static void
own_versions_read(void)
{
	mot_view	v,
				w;
	mot_mark	m;

	for (int how = 0; how < 4; how++)
		for (int change = 0; change < 3; change++)
			for (int other = 0; other < 3; other++)
			{
				bool		back = how & 1;
				bool		at_once = how & 2;	/* a change of keys locks, as
												 * a delete does */
				bool		deleted = change == 1;
				bool		changed = false;

				setup(at_once);
				fill(5);
				v = start(a, MOT_SERIALIZABLE);
				m = mot_txn_mark(a);
				CHECK(deleted ? delete_id(&st, a, &v, 1, 1) == MOT_OK :
					  update(&st, a, &v, 1, 1, 111) == MOT_OK);
				if (change == 2)
					CHECK(insert(&st, a, 1, 9, 99) == MOT_OK);
				v.command = 2;
				/* another row in between: only two reads in a row are one */
				CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 30);
				CHECK((get(&st, a, &v, 1, NULL, NULL) == NULL) == deleted);
				if (change == 2)
					CHECK(get(&st, a, &v, 9, NULL, NULL)->value == 99);
				CHECK(get(&st, a, &v, 3, NULL, NULL)->value == 30);
				CHECK(mot_txn_check(a) == MOT_OK);
				if (back)
				{
					mot_txn_rollback_to(a, m);
					CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 10);
					CHECK(get(&st, a, &v, 9, NULL, NULL) == NULL);
					CHECK(mot_txn_check(a) == MOT_OK);
				}
				CHECK(update(&st, a, &v, 2, 4, 44) == MOT_OK);
				if (other != 0)
				{
					mot_status	status;

					/* somebody else changes that row, or a third one */
					w = start(b, MOT_READ_COMMITTED);
					status = update(&st, b, &w, 1, other == 1 ? 1 : 5, 1000);
					CHECK(status == ((at_once || deleted) && !back && other == 1 ? MOT_BUSY : MOT_OK));
					finish(b);
					changed = other == 1 && status == MOT_OK;
				}
				if (!changed)
				{
					CHECK(mot_txn_check(a) == MOT_OK);
					finish(a);
					CHECK(value_of(b, 4) == 44);
				}
				else
				{
					mot_status	status = back ? MOT_CONFLICT_READ : MOT_CONFLICT_CHANGED;

					CHECK(mot_txn_check(a) == status);
					CHECK(mot_txn_prepare(a) == status);
					mot_txn_abort(a);
					end_view(a);
				}
				teardown();
			}
}

static void
versions_move_back_inline(void)
{
	mot_view	v;
	mot_row    *row = NULL;
	const mot_version *seen = NULL;

	setup(false);
	fill(1);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(update(&st, a, &v, 1, 1, 11) == MOT_OK);
	finish(a);
	v = begin_view(b, 0);
	CHECK(get(&st, b, &v, 1, &row, &seen)->value == 11);
	CHECK(seen != &row->inlined);
	end_view(b);
	drain(&st, c);
	v = begin_view(b, 0);
	CHECK(get(&st, b, &v, 1, &row, &seen)->value == 11);
	CHECK(seen == &row->inlined);
	CHECK(mot_version_host_bits(seen) == 5);
	end_view(b);
	teardown();
}

/* the row's host bits, which are no matter to anybody here, tell which bytes it has */
static mot_status
amend(mot_session *s, mot_row *row, const mot_version *seen)
{
	return mot_row_amend(s, st.table, row, seen, mot_version_host_bits(seen) + 1, mot_version_data(seen),
						 sizeof(record), NULL, NULL);
}

static void
other_bytes_are_no_change(void)
{
	mot_view	v,
				w;
	mot_row    *row = NULL;
	const mot_version *seen = NULL,
			   *now = NULL;
	uint64_t	bytes;

	setup(false);
	fill(1);
	drain(&st, c);
	bytes = mot_object_bytes(st.engine);

	/* of who has read it, and goes on to change it: nobody has come first */
	v = start(a, MOT_SERIALIZABLE);
	CHECK(get(&st, a, &v, 1, &row, &seen)->value == 10);
	w = begin_view(b, 0);
	CHECK(amend(b, row, seen) == MOT_OK);
	CHECK(amend(b, row, seen) == MOT_CHANGED);
	CHECK(get(&st, b, &w, 1, NULL, &now)->value == 10);
	CHECK(now != seen && mot_version_same(now, seen) && mot_version_host_bits(now) == 6);
	CHECK(update_row(&st, a, &v, 1, row, seen, 1, 11) == MOT_OK);
	/* the lock waits for the commit, and so it is there once more */
	CHECK(amend(b, row, now) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	CHECK(get(&st, b, &w, 1, NULL, &now)->value == 10 && mot_version_host_bits(now) == 7);
	CHECK(amend(b, row, now) == MOT_BUSY);
	CHECK(mot_session_holder(b).row == row);
	CHECK(amend(a, row, now) == MOT_SELF_CHANGED);
	mot_txn_abort(a);
	end_view(a);
	CHECK(get(&st, b, &w, 1, NULL, &now)->value == 10 && mot_version_host_bits(now) == 7);

	/* a deleted one has its last bytes, and takes all of them along */
	end_view(b);
	drain(&st, c);
	w = begin_view(b, 0);
	CHECK(get(&st, b, &w, 1, NULL, &now)->value == 10 && now == &row->inlined && mot_version_host_bits(now) == 7);
	CHECK(mot_object_bytes(st.engine) == bytes);
	CHECK(amend(b, row, now) == MOT_OK);
	v = start(a, MOT_SNAPSHOT);
	CHECK(delete_id(&st, a, &v, 1, 1) == MOT_OK);
	finish(a);
	end_view(b);
	drain(&st, c);
	CHECK(mot_owed_items(st.engine) == 0 && mot_object_bytes(st.engine) < bytes);
	teardown();
}

/* who has rows that are not committed, of those at which another one is */
static void
scan_finds_writers(void)
{
	mot_view	v,
				w;
	mot_scan	scan;
	mot_holder	holder;
	unsigned	from[4] = {0};

	setup(true);
	fill(5);
	v = start(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 100, 1) == MOT_OK);
	CHECK(insert(&st, a, 1, 101, 1) == MOT_OK);
	w = start(b, MOT_READ_COMMITTED);
	CHECK(update(&st, b, &w, 1, 1, 20) == MOT_OK);
	/* what goes is nothing to wait for, nor is what is locked, or one's own */
	CHECK(delete_id(&st, b, &w, 1, 2) == MOT_OK);
	/* ... but what is new may come back */
	w.command = 3;
	CHECK(update(&st, b, &w, 2, 4, 40) == MOT_OK && delete_id(&st, b, &w, 3, 4) == MOT_OK);
	v = start(c, MOT_READ_COMMITTED);
	CHECK(update(&st, c, &v, 1, 3, 30) == MOT_OK);
	mot_scan_begin(c, &scan, st.table, &v);
	while (mot_scan_held(c, &scan, &holder))
	{
		REQUIRE(holder.slot < 4);
		from[holder.slot]++;
		CHECK(mot_row_held_by(st.engine, holder.row, holder.slot));
	}
	CHECK(from[a->owner - 1] == 2 && from[b->owner - 1] == 2 && from[c->owner - 1] == 0);
	finish(a);
	mot_txn_abort(b);
	end_view(b);
	mot_scan_begin(c, &scan, st.table, &v);
	CHECK(!mot_scan_held(c, &scan, &holder));
	finish(c);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(own_changes_by_command);
	RUN(other_bytes_are_no_change);
	RUN(snapshots_see_one_state);
	RUN(read_committed_waits_and_rechecks);
	RUN(first_committer_wins);
	RUN(snapshot_without_who_has_drawn);
	RUN(changes_without_who_has_drawn);
	RUN(write_skew_fails);
	RUN(phantoms_fail);
	RUN(unique_keys);
	RUN(keys_with_rivals);
	RUN(keys_that_move);
	RUN(savepoints);
	RUN(own_versions_read);
	RUN(versions_move_back_inline);
	RUN(scan_finds_writers);
	return test_end();
}
