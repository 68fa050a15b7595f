/*-------------------------------------------------------------------------
 *
 * test_left_behind.c
 *	  When older versions have left the indexes, and the raw entries within bounds.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

static store st;
static mot_session *a,
		   *b;

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	begin(a);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(insert(&st, a, 1, i, (int64_t) i) == MOT_OK);
	commit(a);
}

static void
teardown(void)
{
	mot_session_close(a);
	mot_session_close(b);
	mot_engine_destroy(st.engine);
}

/* how many entries the index has; "last": its last one's key begins with this byte */
static int
entries(mot_session *s, const mot_index *index, bool backward, int *first_byte)
{
	mot_cursor *c = malloc(mot_cursor_size());
	mot_entry	entry;
	int			n = 0;

	REQUIRE(mot_entries_open(s, c, index, NULL, NULL, backward) == MOT_OK);
	while (mot_entries_next(c, &entry))
		if (n++ == 0)
			*first_byte = ((const unsigned char *) entry.key)[entry.len - 1];
	mot_cursor_close(c);
	free(c);
	return n;
}

static void
an_older_snapshot_keeps_them(void)
{
	mot_view	v;
	int			first;

	setup();
	CHECK(mot_engine_left_behind(a));	/* nothing has been said */

	(void) begin_view(b, 1);
	begin(a);
	v = begin_view(a, 1);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(delete_id(&st, a, &v, 1, i) == MOT_OK);
	commit(a);
	mot_engine_leave_behind(st.engine);
	CHECK(!mot_engine_left_behind(a));
	CHECK(!mot_engine_left_behind(a));
	(void) begin_view(a, 1);
	CHECK(entries(a, st.by_id.index, false, &first) == 10);
	CHECK(first == 0);
	CHECK(entries(a, st.by_id.index, true, &first) == 10);
	CHECK(first == 9);
	end_view(a);

	end_view(b);
	CHECK(mot_engine_left_behind(a));
	(void) begin_view(a, 1);
	CHECK(entries(a, st.by_id.index, false, &first) == 5);
	CHECK(first == 5);
	end_view(a);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(an_older_snapshot_keeps_them);
	return test_end();
}
