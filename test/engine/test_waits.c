/*-------------------------------------------------------------------------
 *
 * test_waits.c
 *	  Commits that have drawn their number and wait, for a standby that is not
 *	  there: who need not wait with them.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

static store st;
static mot_session *a,
		   *b,
		   *c;
static unsigned waits;
static mot_ts drawn;

/* who waits nevertheless is let go on, and it is noted */
static void
install_a(void)
{
	waits++;
	if (mot_txn_active(a))
	{
		CHECK(mot_txn_commit(a) == drawn);
		end_view(a);
	}
}

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
	waits = 0;
	mot_row_wait_hook = install_a;
	begin(b);
	(void) begin_view(b, 1);
	for (uint64_t id = 1; id <= 4; id++)
		REQUIRE(insert(&st, b, 1, id, (int64_t) id * 10) == MOT_OK);
	commit(b);
	end_view(b);
}

static void
teardown(void)
{
	mot_row_wait_hook = NULL;
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

/* a changes row 1 twice, draws, and waits */
static void
draw_a(void)
{
	mot_view	v = {mot_snapshot_take(a), 1, NULL, false};

	mot_txn_begin(a, MOT_SERIALIZABLE, v.snapshot, 1);
	CHECK(update(&st, a, &v, 1, 1, 11) == MOT_OK);
	v.command = 2;
	CHECK(update(&st, a, &v, 2, 1, 12) == MOT_OK);
	REQUIRE(mot_txn_lock(a) == MOT_OK);
	drawn = mot_txn_draw(a);
	CHECK(mot_txn_prepare(a) == MOT_OK);
}

static int64_t
value(const mot_version *v)
{
	return ((const record *) mot_version_data(v))->value;
}

/*
 * Who shares the row's key, and asks for its newest version, is shown that below the
 * commit which waits, if he keeps it alive; otherwise he waits.
 */
static void
newest_below_who_waits(void)
{
	for (int after = 0; after <= 1; after++)
	{
		mot_view	v;
		mot_row    *row;
		const mot_version *seen;
		const mot_version *newest;

		setup();
		if (!after)
			v = begin_view(c, 1);
		draw_a();
		if (after)
			v = begin_view(c, 1);
		mot_txn_begin(c, MOT_READ_COMMITTED, v.snapshot, 3);
		if (!after)
		{
			CHECK(get(&st, c, &v, 1, &row, &seen)->value == 10);
			CHECK(mot_row_lock(c, &v, st.table, row, seen, MOT_MODE_KEY_SHARE, &newest) == MOT_OK);
			CHECK(newest == seen && mot_row_newest(c, row) == seen);
			CHECK(waits == 0);
			install_a();
			CHECK(value(mot_row_newest(c, row)) == 12 && value(seen) == 10);
		}
		else
		{
			CHECK(get(&st, c, &v, 1, &row, &seen)->value == 12);
			CHECK(waits == 1 && !mot_txn_active(a));
		}
		commit(c);
		end_view(c);
		teardown();
	}
}

#ifdef MOT_STOP_POINTS
static unsigned looks;

static void
count_looks(const char *name)
{
	looks += strcmp(name, "backoff") == 0;
}
#endif

/* Who may not share a row that is held by a commit which waits hears of that soon. */
static void
busy_with_who_waits(void)
{
	mot_view	v;
	mot_row    *row;
	const mot_version *seen;
	const mot_version *newest;

	setup();
	v = begin_view(c, 1);
	mot_txn_begin(c, MOT_READ_COMMITTED, v.snapshot, 3);
	CHECK(get(&st, c, &v, 1, &row, &seen)->value == 10);
	draw_a();
#ifdef MOT_STOP_POINTS
	looks = 0;
	mot_stop_point_handler = count_looks;
#endif
	CHECK(mot_row_lock(c, &v, st.table, row, seen, MOT_MODE_SHARE, &newest) == MOT_BUSY);
	CHECK(mot_session_holder(c).row == row);
	CHECK(insert(&st, c, 1, 1, 5) == MOT_BUSY);
#ifdef MOT_STOP_POINTS
	mot_stop_point_handler = NULL;
	CHECK(looks <= 300);
#endif
	CHECK(waits == 0);
	mot_txn_abort(c);
	end_view(c);
	install_a();
	teardown();
}

/* is what has been left out all there is between two numbers? */
static void
nothing_but_who_waits(void)
{
	mot_beyond	beyond;
	mot_view	v;
	mot_row    *row;
	const mot_version *seen;
	const mot_version *newest;

	setup();
	draw_a();
	beyond = (mot_beyond)
	{
		mot_snapshot_take(c), 1, &drawn
	};
	CHECK(mot_snapshot_only_waits(c, &beyond, drawn));
	CHECK(!mot_snapshot_only_waits(c, &beyond, 1));

	/* drawn later */
	begin(b);
	v = begin_view(b, 1);
	CHECK(update(&st, b, &v, 1, 2, 22) == MOT_OK);
	REQUIRE(mot_txn_lock(b) == MOT_OK);
	CHECK(mot_snapshot_only_waits(c, &beyond, drawn));
	commit(b);
	end_view(b);
	CHECK(!mot_snapshot_only_waits(c, &beyond, drawn));

	/* the same session then locks a row, and changes nothing */
	begin(b);
	v = begin_view(b, 1);
	REQUIRE(get(&st, b, &v, 3, &row, &seen) != NULL);
	CHECK(mot_row_lock(b, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest) == MOT_OK);
	commit(b);
	end_view(b);
	CHECK(!mot_snapshot_only_waits(c, &beyond, drawn));
	install_a();
	end_view(c);
	teardown();
}

/*
 * Who waits comes before a commit that changed what it has read (precede.c); so nobody
 * sees that without it.
 */
static void
comes_before_what_is_seen(void)
{
	mot_beyond	beyond;
	mot_view	v;
	mot_view	changes;

	setup();
	v = begin_view(a, 1);
	mot_txn_begin(a, MOT_SERIALIZABLE, v.snapshot, 1);
	CHECK(get(&st, a, &v, 1, NULL, NULL)->value == 10);
	CHECK(update(&st, a, &v, 1, 2, 21) == MOT_OK);
	begin(b);
	changes = begin_view(b, 1);
	CHECK(update(&st, b, &changes, 1, 1, 11) == MOT_OK);
	commit(b);
	end_view(b);
	mot_txn_may_precede(a);
	REQUIRE(mot_txn_lock(a) == MOT_OK);
	drawn = mot_txn_draw(a);
	beyond = (mot_beyond)
	{
		mot_snapshot_take(c), 1, &drawn
	};
	/* nobody knows yet */
	CHECK(!mot_snapshot_only_waits(c, &beyond, drawn));
	CHECK(mot_txn_prepare(a) == MOT_OK);
	CHECK(!mot_snapshot_only_waits(c, &beyond, drawn));
	install_a();
	end_view(c);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(newest_below_who_waits);
	RUN(busy_with_who_waits);
	RUN(nothing_but_who_waits);
	RUN(comes_before_what_is_seen);
	return test_end();
}
