/*-------------------------------------------------------------------------
 *
 * test_parcel.c
 *	  Transactions that go on without their session: handed over to another
 *	  slot, taken out of their parcel there, committed or aborted.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

#define HOLDER 7
#define NAME UINT64_C(4711)

static store st;
static mot_session *a,
		   *b;

static void
setup_with(bool value_index)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, value_index);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	begin(b);
	(void) begin_view(b, 1);
	for (uint64_t id = 1; id <= 3000; id++)
		REQUIRE(insert(&st, b, 1, id, (int64_t) id * 10) == MOT_OK);
	commit(b);
	end_view(b);
}

static void
setup(void)
{
	setup_with(true);
}

static void
teardown(void)
{
	mot_session_close(a);
	mot_session_close(b);
	mot_engine_destroy(st.engine);
}

static int64_t
sum(mot_session *s, uint64_t upto)
{
	mot_view	v = begin_view(s, 1);
	int64_t		total = 0;

	for (uint64_t id = 1; id <= upto; id++)
	{
		const record *r = get(&st, s, &v, id, NULL, NULL);

		total += r != NULL ? r->value : 0;
	}
	end_view(s);
	return total;
}

/* a changes, inserts, deletes and locks rows, and hands all that over */
static mot_parcel *
hand_over(uint64_t changed)
{
	mot_session *holder = open_session(st.engine, HOLDER);
	mot_parcel *parcel = NULL;
	mot_view	v;
	mot_row    *row;
	const mot_version *seen;
	const mot_version *newest;

	begin(a);
	v = begin_view(a, 1);
	for (uint64_t id = 1; id <= changed; id++)
		CHECK(update(&st, a, &v, 1, id, -1) == MOT_OK);
	CHECK(delete_id(&st, a, &v, 1, changed + 1) == MOT_OK);
	CHECK(delete_id(&st, a, &v, 1, changed + 2) == MOT_OK);
	CHECK(insert(&st, a, 1, 5000, 1000000) == MOT_OK);
	REQUIRE(get(&st, a, &v, 2990, &row, &seen) != NULL);
	CHECK(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_SHARE, &newest) == MOT_OK);
	REQUIRE(get(&st, a, &v, 2991, &row, &seen) != NULL);
	CHECK(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest) == MOT_OK);
	end_view(a);
	REQUIRE(mot_txn_prepare(a) == MOT_OK);
	REQUIRE(mot_txn_pack(a, holder, &parcel) == MOT_OK);
	CHECK(mot_txn_active(a));
	mot_txn_hand_over(a, holder, parcel, NAME);
	CHECK(!mot_txn_active(a) && !mot_txn_active(holder));
	mot_session_close(holder);
	return parcel;
}

static void
is_held(uint64_t id, mot_row_mode mode, mot_status expected)
{
	mot_view	v = begin_view(b, 1);
	mot_row    *row;
	const mot_version *seen;
	const mot_version *newest;
	mot_status	status;

	begin(b);
	REQUIRE(get(&st, b, &v, id, &row, &seen) != NULL);
	status = mot_row_lock(b, &v, st.table, row, seen, mode, &newest);
	CHECK(status == expected);
	if (status == MOT_BUSY)
		CHECK(mot_session_holder(b).slot == HOLDER && mot_session_holder(b).host_id == NAME);
	mot_txn_abort(b);
	end_view(b);
}

static void
ends(bool commits, uint64_t changed)
{
	mot_parcel *parcel;
	mot_session *holder;
	int64_t		before;
	int64_t		after;

	setup();
	before = sum(b, 5000);
	after = before + 1000000 - (int64_t) (changed + 1 + changed + 2) * 10;
	for (uint64_t id = 1; id <= changed; id++)
		after += -1 - (int64_t) id * 10;
	parcel = hand_over(changed);

	/* the session goes on; nobody sees anything; all is held */
	CHECK(sum(a, 5000) == before && sum(b, 5000) == before);
	is_held(1, MOT_MODE_NO_KEY_UPDATE, MOT_BUSY);
	is_held(changed + 1, MOT_MODE_KEY_SHARE, MOT_BUSY);
	is_held(2990, MOT_MODE_NO_KEY_UPDATE, MOT_BUSY);
	is_held(2990, MOT_MODE_SHARE, MOT_OK);
	is_held(2991, MOT_MODE_KEY_SHARE, MOT_BUSY);
	is_held(2992, MOT_MODE_UPDATE, MOT_OK);
	begin(b);
	(void) begin_view(b, 1);
	CHECK(insert(&st, b, 1, 5000, 1) == MOT_BUSY);
	mot_txn_abort(b);
	end_view(b);
	(void) mot_reclaim_all(b);

	/* somebody is about to end it, and does not */
	holder = open_session(st.engine, HOLDER);
	REQUIRE(mot_txn_unpack(holder, parcel) == MOT_OK);
	mot_txn_forget(holder);
	mot_session_close(holder);
	CHECK(sum(b, 5000) == before);
	is_held(1, MOT_MODE_NO_KEY_UPDATE, MOT_BUSY);

	holder = open_session(st.engine, HOLDER);
	REQUIRE(mot_txn_unpack(holder, parcel) == MOT_OK);
	if (commits)
		CHECK(mot_txn_commit(holder) != 0);
	else
		mot_txn_abort(holder);
	mot_parcel_free(holder, parcel);
	mot_session_close(holder);
	CHECK(sum(b, 5000) == (commits ? after : before));
	is_held(1, MOT_MODE_UPDATE, MOT_OK);
	is_held(2990, MOT_MODE_UPDATE, MOT_OK);
	is_held(2991, MOT_MODE_UPDATE, MOT_OK);
	(void) mot_reclaim_all(b);
	(void) mot_reclaim_all(b);
	CHECK(mot_owed_items(st.engine) == 0);
	teardown();
}

/* it comes to nothing before it is handed over */
static void
discarded(void)
{
	mot_session *holder;
	mot_parcel *parcel = NULL;
	mot_view	v;

	setup();
	holder = open_session(st.engine, HOLDER);
	begin(a);
	v = begin_view(a, 1);
	CHECK(update(&st, a, &v, 1, 1, -1) == MOT_OK);
	end_view(a);
	REQUIRE(mot_txn_prepare(a) == MOT_OK);
	REQUIRE(mot_txn_pack(a, holder, &parcel) == MOT_OK);
	mot_parcel_discard(holder, parcel);
	mot_session_close(holder);
	mot_txn_abort(a);
	is_held(1, MOT_MODE_UPDATE, MOT_OK);
	teardown();
}

/* what is restored has run in the holder's session */
static void
restored(void)
{
	mot_session *holder;
	mot_parcel *parcel = NULL;
	mot_view	v;

	setup();
	holder = open_session(st.engine, HOLDER);
	begin(holder);
	v = begin_view(holder, 1);
	CHECK(update(&st, holder, &v, 1, 1, -1) == MOT_OK);
	CHECK(delete_id(&st, holder, &v, 1, 2) == MOT_OK);
	REQUIRE(mot_txn_pack(holder, holder, &parcel) == MOT_OK);
	mot_txn_hand_over(holder, holder, parcel, NAME);
	end_view(holder);
	mot_session_close(holder);
	is_held(1, MOT_MODE_NO_KEY_UPDATE, MOT_BUSY);
	holder = open_session(st.engine, HOLDER);
	REQUIRE(mot_txn_unpack(holder, parcel) == MOT_OK);
	CHECK(mot_txn_commit(holder) != 0);
	mot_parcel_free(holder, parcel);
	mot_session_close(holder);
	v = begin_view(b, 1);
	CHECK(get(&st, b, &v, 1, NULL, NULL)->value == -1 && get(&st, b, &v, 2, NULL, NULL) == NULL);
	end_view(b);
	teardown();
}

/* SERIALIZABLE: "s" reads one row and changes another */
static void
serial(mot_session *s, uint64_t read, uint64_t changed)
{
	mot_view	v = begin_view(s, 1);

	mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, 7);
	(void) get(&st, s, &v, read, NULL, NULL);
	if (changed > 3000)
		CHECK(insert(&st, s, 1, changed, 1) == MOT_OK);
	else
		CHECK(update(&st, s, &v, 1, changed, -1) == MOT_OK);
	CHECK(mot_txn_lock(s) == MOT_OK);
}

static void
serial_end(mot_session *s, mot_status expected)
{
	CHECK(mot_txn_prepare(s) == expected);
	if (expected == MOT_OK)
		CHECK(mot_txn_commit(s) != 0);
	else
		mot_txn_abort(s);
	end_view(s);
}

/*
 * What a prepared one has read stands until it is decided: read is a row's number, or that of one
 * that is not there.
 */
static void
keeps(uint64_t read, bool commits)
{
	mot_session *holder;
	mot_session *other;
	mot_parcel *parcel = NULL;
	uint64_t	beside = 10;
	mot_ts		ts = 0;

	setup_with(false);
	holder = open_session(st.engine, HOLDER);
	other = open_session(st.engine, HOLDER - 1);
	serial(a, read, 2);
	REQUIRE(mot_txn_keep_reads(a, holder, NAME) == MOT_OK);
	REQUIRE(mot_txn_pack(a, holder, &parcel) == MOT_OK);
	mot_txn_hand_over(a, holder, parcel, NAME);
	end_view(a);

	/*
	 * who changes it would fail, and is told for whom to wait; not who reads
	 * what it has changed
	 */
	serial(b, 5, read);
	CHECK(mot_txn_meets_kept(b) == NAME);
	serial_end(b, MOT_CONFLICT_KEPT);
	/* (a row's note may be another's, too) */
	for (serial(b, 2, beside); mot_txn_meets_kept(b) != 0 && beside < 100; serial(b, 2, ++beside))
		serial_end(b, MOT_CONFLICT_KEPT);
	serial_end(b, MOT_OK);

	/*
	 * nor can one be prepared that has read what this one has changed, or
	 * that changes what it has read
	 */
	for (int i = 0; i < 2; i++)
	{
		serial(b, i == 0 ? 2 : 5, i == 0 ? beside : read);
		CHECK(mot_txn_keep_reads(b, other, NAME) == (i == 0 ? MOT_CONFLICT_READ : MOT_CONFLICT_KEPT));
		mot_txn_abort(b);
		end_view(b);
		mot_reads_let_go(other, 0);
	}
	/* nor one whose reads do not stand */
	serial(b, beside, beside + 1);
	serial(a, 5, beside);
	serial_end(a, mot_txn_meets_kept(a) != 0 ? MOT_CONFLICT_KEPT : MOT_OK);
	CHECK(mot_txn_keep_reads(b, other, NAME) != MOT_OK);
	mot_txn_abort(b);
	end_view(b);
	mot_reads_let_go(other, 0);

	/*
	 * who began before it was committed, and writes what it has read, comes
	 * after it
	 */
	serial(b, 2, read);
	REQUIRE(mot_txn_unpack(holder, parcel) == MOT_OK);
	if (commits)
	{
		ts = mot_txn_commit(holder);
		CHECK(ts != 0);
	}
	else
		mot_txn_abort(holder);
	mot_reads_let_go(holder, ts);
	mot_parcel_free(holder, parcel);
	CHECK(mot_txn_meets_kept(b) == 0);
	mot_txn_may_precede(b);
	serial_end(b, commits ? MOT_CONFLICT_READ : MOT_OK);
	mot_session_close(holder);
	mot_session_close(other);
	teardown();
}

static void
kept(void)
{
	for (int commits = 0; commits < 2; commits++)
	{
		keeps(1, commits);
		keeps(4000, commits);
	}
}

#ifdef MOT_STOP_POINTS

static mot_session *giver,
		   *giver_holder;
static mot_parcel *given;
static bool given_commits;

/* it hands over, once, or has ended as well */
static void
give(const char *name)
{
	if (given == NULL || strcmp(name, "validate-owner") != 0)
		return;
	mot_stop_point_handler = NULL;
	mot_txn_hand_over(giver, giver_holder, given, NAME);
	if (given_commits)
	{
		mot_ts		ts;

		REQUIRE(mot_txn_unpack(giver_holder, given) == MOT_OK);
		ts = mot_txn_commit(giver_holder);
		CHECK(ts != 0);
		mot_reads_let_go(giver_holder, ts);
		mot_parcel_free(giver_holder, given);
	}
}

/*
 * Who is about to be prepared finds who has changed what it has read, also if that one hands over,
 * or ends, just now.
 */
static void
kept_given(void)
{
	for (int commits = 0; commits < 2; commits++)
	{
		mot_session *other;
		uint64_t	beside = 10;

		setup_with(false);
		giver = a;
		giver_holder = open_session(st.engine, HOLDER);
		other = open_session(st.engine, HOLDER - 1);
		given = NULL;
		given_commits = commits != 0;
		serial(a, 5, 1);
		REQUIRE(mot_txn_keep_reads(a, giver_holder, NAME) == MOT_OK);
		REQUIRE(mot_txn_pack(a, giver_holder, &given) == MOT_OK);
		/* (a row's note may be another's, too) */
		for (serial(b, 1, beside); mot_txn_meets_kept(b) != 0 && beside < 100; serial(b, 1, ++beside))
		{
			mot_txn_abort(b);
			end_view(b);
		}
		mot_stop_point_handler = give;
		CHECK(mot_txn_keep_reads(b, other, NAME) == MOT_CONFLICT_READ);
		CHECK(mot_stop_point_handler == NULL);
		mot_stop_point_handler = NULL;
		mot_txn_abort(b);
		end_view(b);
		end_view(a);
		mot_reads_let_go(other, 0);
		if (!given_commits)
		{
			REQUIRE(mot_txn_unpack(giver_holder, given) == MOT_OK);
			mot_txn_abort(giver_holder);
			mot_reads_let_go(giver_holder, 0);
			mot_parcel_free(giver_holder, given);
		}
		mot_session_close(giver_holder);
		mot_session_close(other);
		teardown();
	}
}

#endif

/* after a restart nobody knows what it was */
static void
kept_all(void)
{
	mot_session *holder;

	setup_with(false);
	holder = open_session(st.engine, HOLDER);
	mot_reads_keep_all(holder, NAME);
	serial(b, 1, 2);
	CHECK(mot_txn_meets_kept(b) == NAME);
	serial_end(b, MOT_CONFLICT_KEPT);
	(void) begin_view(b, 1);
	mot_txn_begin(b, MOT_SERIALIZABLE, mot_snapshot_held(b), 7);
	CHECK(mot_txn_meets_kept(b) == 0);
	CHECK(mot_txn_prepare(b) == MOT_OK);
	(void) mot_txn_commit(b);
	end_view(b);
	mot_reads_let_go(holder, 0);
	serial(b, 1, 2);
	serial_end(b, MOT_OK);
	mot_session_close(holder);
	teardown();
}

static void
committed(void)
{
	ends(true, 3);
	ends(true, 2500);
}

static void
rolled_back(void)
{
	ends(false, 3);
	ends(false, 2500);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(committed);
	RUN(rolled_back);
	RUN(discarded);
	RUN(restored);
	RUN(kept);
#ifdef MOT_STOP_POINTS
	RUN(kept_given);
#endif
	RUN(kept_all);
	return test_end();
}
