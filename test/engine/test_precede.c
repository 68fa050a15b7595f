/*-------------------------------------------------------------------------
 *
 * test_precede.c
 *	  SERIALIZABLE: who comes before somebody who has changed what it read, since
 *	  that one has read nothing of what it writes.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

#define ROWS 2000

static store st;
static mot_session *a,
		   *b;

static mot_view
begin_serializable(mot_session *s)
{
	mot_view	v;

	mot_serial_begin(s);
	v = begin_view(s, 1);
	mot_serial_begun(s, v.snapshot);
	mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, 1);
	mot_txn_may_precede(s);
	return v;
}

static bool
end_serializable(mot_session *s)
{
	bool		stands = mot_txn_prepare(s) == MOT_OK;

	if (stands)
		(void) mot_txn_commit(s);
	else
		mot_txn_abort(s);
	mot_serial_end(s);
	end_view(s);
	return stands;
}

/* a reads one row, changes another; b, meanwhile, changes the first, reads "seen"; does a commit? */
static bool
precedes(uint64_t read, uint64_t written, uint64_t seen, int64_t round)
{
	mot_view	of_a = begin_serializable(a);
	mot_view	of_b;

	CHECK(get(&st, a, &of_a, read, NULL, NULL) != NULL);
	of_b = begin_serializable(b);
	CHECK(get(&st, b, &of_b, seen, NULL, NULL) != NULL);
	CHECK(update(&st, b, &of_b, 1, read, round) == MOT_OK);
	CHECK(end_serializable(b));
	CHECK(update(&st, a, &of_a, 1, written, round) == MOT_OK);
	return end_serializable(a);
}

/*
 * Which rows were read is known by hashes.  What hashes share may fail somebody without
 * need, but that has to be rare, in small transactions at least.
 */
static void
other_rows_are_told_apart(void)
{
	unsigned	without_need = 0;

	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	begin(b);
	(void) begin_view(b, 1);
	for (uint64_t id = 0; id < ROWS; id++)
		REQUIRE(insert(&st, b, 1, id, 0) == MOT_OK);
	commit(b);
	end_view(b);
	for (uint64_t id = 0; id < ROWS; id++)
	{
		uint64_t	written = (id + 1 + id * 7 % (ROWS - 2)) % ROWS;
		uint64_t	seen = (written + 1) % ROWS;

		if (seen == id)
			continue;
		without_need += !precedes(id, written, seen, (int64_t) id);
		/* what b has seen is always known */
		CHECK(!precedes(id, written, written, -1));
	}
	CHECK(without_need <= 3);
	mot_session_close(a);
	mot_session_close(b);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(other_rows_are_told_apart);
	return test_end();
}
