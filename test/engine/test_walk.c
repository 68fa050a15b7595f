/*-------------------------------------------------------------------------
 *
 * test_walk.c
 *	  Old snapshots read indexes whose keys have changed many times since.
 *
 * Each key that a row has had is an entry that leads down the row's chain to the
 * one version of the snapshot.  The first walk down a chain is as long as it is;
 * how many versions the others pass is counted where there are stop points.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

#define ROWS 20
#define CHANGES 500

static store st;
static mot_session *writer,
		   *reader;
static uint64_t passed;

#ifdef MOT_STOP_POINTS
static void
count(const char *name)
{
	passed += strcmp(name, "version-passed") == 0;
}
#endif

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	writer = open_session(st.engine, 1);
	reader = open_session(st.engine, 2);
	begin(writer);
	for (uint64_t id = 1; id <= ROWS; id++)
		REQUIRE(insert(&st, writer, 1, id, (int64_t) id) == MOT_OK);
	commit(writer);
}

static void
teardown(void)
{
	end_view(reader);
	mot_session_close(reader);
	mot_session_close(writer);
	mot_engine_destroy(st.engine);
}

/* each row gets CHANGES values that nothing has had, its last is id + base */
static void
change_all(int64_t base)
{
	for (int64_t n = CHANGES; n-- > 0;)
		for (uint64_t id = 1; id <= ROWS; id++)
			change(&st, writer, id, base + n * ROWS + (int64_t) id);
}

/* the sum of values that are base + 1 .. base + ROWS */
static int64_t
sum_from(int64_t base)
{
	return ROWS * base + ROWS * (ROWS + 1) / 2;
}

static int64_t
rest_of(mot_cursor *c, int n)
{
	int64_t		sum = 0;
	mot_row    *row;
	const mot_version *v;

	while (n-- > 0)
	{
		REQUIRE(mot_cursor_next(c, &row, &v));
		sum += ((const record *) mot_version_data(v))->value;
	}
	return sum;
}

static void
long_chains_are_walked_once(void)
{
	mot_view	old;
	uint64_t	n;

	setup();
	old = begin_view(reader, 1);
	change_all(1000000);
	/* and rows that the snapshot has not at all */
	begin(writer);
	for (uint64_t id = ROWS + 1; id <= 2 * ROWS; id++)
		REQUIRE(insert(&st, writer, 1, id, (int64_t) id) == MOT_OK);
	commit(writer);
	for (int64_t i = 0; i < CHANGES; i++)
		for (uint64_t id = ROWS + 1; id <= 2 * ROWS; id++)
			change(&st, writer, id, 2000000 + i * 2 * ROWS + (int64_t) id);

#ifdef MOT_STOP_POINTS
	mot_stop_point_handler = count;
#endif
	for (int backward = 0; backward < 2; backward++)
	{
		passed = 0;
		CHECK(sum_index(reader, &old, &st.by_value, backward, &n) == sum_from(0));
		CHECK(n == ROWS);
		/* whole chains once, and of each entry's no more than the top */
		CHECK(passed <= 2 * ROWS * CHANGES + 2 * ROWS * CHANGES * 33);
	}
#ifdef MOT_STOP_POINTS
	mot_stop_point_handler = NULL;
	CHECK(passed > 2 * ROWS * CHANGES);
#endif
	teardown();
}

/* a walk's end is a snapshot's: two are read in turns, and then a newer one */
static void
each_snapshot_has_its_own_ends(void)
{
	mot_cursor *one = malloc(mot_cursor_size());
	mot_cursor *two = malloc(mot_cursor_size());
	mot_view	old,
				newer;
	int64_t		sum_one = 0,
				sum_two = 0;
	uint64_t	n;

	setup();
	old = begin_view(reader, 1);
	change_all(1000000);
	newer = begin_view(reader, 1);
	mot_snapshot_hold(reader, old.snapshot);
	change_all(2000000);

	REQUIRE(mot_cursor_open(reader, one, &old, &st.by_value, NULL, NULL, false) == MOT_OK);
	REQUIRE(mot_cursor_open(reader, two, &newer, &st.by_value, NULL, NULL, true) == MOT_OK);
	for (int i = 0; i < ROWS; i++)
	{
		sum_one += rest_of(one, 1);
		sum_two += rest_of(two, 1);
	}
	CHECK(sum_one == sum_from(0));
	CHECK(sum_two == sum_from(1000000));
	CHECK(sum_index(reader, &old, &st.by_value, true, &n) == sum_from(0) && n == ROWS);
	mot_cursor_close(two);
	mot_cursor_close(one);
	end_view(reader);

	newer = begin_view(reader, 1);
	change_all(3000000);
	CHECK(sum_index(reader, &newer, &st.by_value, false, &n) == sum_from(2000000) && n == ROWS);
	free(one);
	free(two);
	teardown();
}

/* own changes above a long chain: a later command sees them, an earlier one does not */
static void
own_changes_come_first(void)
{
	mot_view	old,
				before,
				after;
	uint64_t	n;

	setup();
	old = begin_view(reader, 1);
	for (int64_t i = 0; i < CHANGES; i++)
		change(&st, writer, 1, 1000000 + i);
	mot_txn_begin(reader, MOT_READ_COMMITTED, old.snapshot, 1);
	before = begin_view(reader, 1);
	mot_snapshot_hold(reader, old.snapshot);
	CHECK(update(&st, reader, &before, 2, 1, 77) == MOT_OK);
	old.command = 1;
	after = old;
	after.command = 3;
	CHECK(sum_index(reader, &old, &st.by_value, false, &n) == sum_from(0) && n == ROWS);
	CHECK(sum_index(reader, &after, &st.by_value, false, &n) == sum_from(0) + 76 && n == ROWS);
	CHECK(sum_index(reader, &old, &st.by_value, true, &n) == sum_from(0) && n == ROWS);
	mot_txn_abort(reader);
	CHECK(sum_index(reader, &after, &st.by_value, false, &n) == sum_from(0) && n == ROWS);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(long_chains_are_walked_once);
	RUN(each_snapshot_has_its_own_ends);
	RUN(own_changes_come_first);
	return test_end();
}
