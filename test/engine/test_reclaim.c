/*-------------------------------------------------------------------------
 *
 * test_reclaim.c
 *	  What a commit leaves behind, while it is being installed and after.
 *
 * The moment looked at is the one between a commit's versions being installed
 * and its debts being queued: others already change the same rows, and
 * reclamation works.  It is a named stop point, where the other sessions' parts
 * are played; without stop points in the build there is nothing to be tested.
 *
 *-------------------------------------------------------------------------
 */
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "txn_util.h"

#ifdef MOT_STOP_POINTS

static store st;
static mot_session *a,
		   *b,
		   *c;
static void (*meanwhile) (void);

static void
delete_one(mot_session *s, uint64_t id)
{
	mot_view	v;

	begin(s);
	v = begin_view(s, 1);
	CHECK(delete_id(&st, s, &v, 1, id) == MOT_OK);
	commit(s);
}

/* from the tenth on */
static void
delete_ids(mot_session *s, uint64_t n)
{
	mot_view	v;
	mot_status	status = MOT_OK;

	begin(s);
	v = begin_view(s, 1);
	for (uint64_t i = 10; i < 10 + n && status == MOT_OK; i++)
		status = delete_id(&st, s, &v, 1, i);
	CHECK(status == MOT_OK);
	commit(s);
}

static uint64_t
owed(void)
{
	mot_memory_report r;

	mot_memory_report_get(st.engine, &r);
	return r.retired_objects;
}

/* once */
static void
stop_here(const char *name)
{
	void		(*now) (void) = meanwhile;

	if (now == NULL || strcmp(name, "commit-installed") != 0)
		return;
	meanwhile = NULL;
	now();
}

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
	begin(a);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(insert(&st, a, 1, i, (int64_t) i) == MOT_OK);
	commit(a);
	drain(&st, c);
	CHECK(owed() == 0);
	mot_stop_point_handler = stop_here;
}

static void
teardown(void)
{
	CHECK(meanwhile == NULL);	/* it was reached */
	mot_stop_point_handler = NULL;
	drain(&st, c);
	CHECK(owed() == 0);
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

static void
supersede_and_reclaim(void)
{
	change(&st, b, 1, 1001);
	for (int i = 0; i < 4; i++)
		(void) mot_reclaim_all(c);

	/* the version that a is still about to look at */
	CHECK(owed() > 0);
}

/*
 * a READ COMMITTED transaction between its statements and its end, no snapshot published by the
 * host
 */
static void
own_versions_stay_until_the_commit_is_over(void)
{
	mot_view	v;

	setup();
	begin(a);
	v = begin_view(a, 1);
	CHECK(update(&st, a, &v, 1, 1, 101) == MOT_OK);
	end_view(a);
	REQUIRE(mot_txn_prepare(a) == MOT_OK);
	meanwhile = supersede_and_reclaim;
	(void) mot_txn_commit(a);
	CHECK(mot_snapshot_held(a) == MOT_TS_NONE);
	teardown();
}

static void
delete_and_do_first_steps(void)
{
	delete_one(b, 1);
	(void) mot_reclaim_all(c);
}

/*
 * a changes a key, b deletes the row, and what a owes for the old key comes to
 * stand behind second steps with later stamps: b's row has to wait for it.
 */
static void
rows_wait_for_old_keys_behind_later_stamps(void)
{
	mot_view	v;
	mot_row    *row;
	uint64_t	left = 0;

	setup();
	delete_one(a, 5);			/* has second steps */
	begin(a);
	v = begin_view(a, 1);
	CHECK(get(&st, a, &v, 1, &row, NULL) != NULL);
	CHECK(update(&st, a, &v, 1, 1, 101) == MOT_OK);
	REQUIRE(mot_txn_prepare(a) == MOT_OK);
	meanwhile = delete_and_do_first_steps;
	(void) mot_txn_commit(a);
	end_view(a);

	for (int i = 0; i < 6; i++)
		left = mot_reclaim(b, 0);
	CHECK(left > 0);
	(void) begin_view(c, 1);
	CHECK(mot_row_by_number(c, st.table, mot_row_number(c, row)) == row);
	end_view(c);

	for (int i = 0; i < 6; i++)
		(void) mot_reclaim(a, 0);
	for (int i = 0; i < 6; i++)
		left = mot_reclaim(b, 0);
	CHECK(left == 0);
	teardown();
}

static void
let_go(const char *name)
{
	if (strcmp(name, "memory-awaited") == 0)
		end_view(c);
}

/* how many of so many rows find room */
static uint64_t
insert_more(uint64_t from, uint64_t most)
{
	uint64_t	n = 0;

	begin(a);
	while (n < most && insert(&st, a, 1, from + n, (int64_t) (from + n)) == MOT_OK)
		n++;
	commit(a);
	return n;
}

/* memory is full; what makes room is kept for a snapshot that goes in a moment */
static void
room_that_is_about_to_come_is_waited_for(void)
{
	uint64_t	n;

	setup();
	CHECK(insert_more(10, 1000000) > 4000);

	(void) begin_view(c, 1);	/* keeps what is deleted */
	delete_ids(b, 4000);

	/* as long as it does not go, there is none */
	n = insert_more(1000000, 100000);
	CHECK(n < 100000);
	mot_stop_point_handler = let_go;
	CHECK(insert_more(1000000 + n, 100000) > 1000);
	CHECK(mot_snapshot_held(c) == MOT_TS_NONE);
	teardown();
}

static _Thread_local bool is_slow;
static _Atomic bool begun;

/* somebody who reclaims on a busy machine */
static void
be_slow(const char *name)
{
	if (!is_slow || strcmp(name, "reclaim-item") != 0)
		return;
	atomic_store(&begun, true);
	(void) usleep(50000);
}

static void *
reclaim_slowly(void *session)
{
	uint64_t	left;

	is_slow = true;
	(void) mot_reclaim_step(session, &left);
	return NULL;
}

/* all that is owed is in one queue, and somebody is at it who has no need of the memory */
static void
who_is_in_need_takes_over(void)
{
	pthread_t	slow;
	uint64_t	n = 0;
	uint64_t	again = 0;
	uint64_t	more;

	setup();
	while ((more = insert_more(10 + n, 4096)) > 0)
		n += more;
	delete_ids(a, n);
	end_view(a);

	/* by himself he would take seconds */
	CHECK(n > 200 * 256);
	mot_stop_point_handler = be_slow;
	REQUIRE(pthread_create(&slow, NULL, reclaim_slowly, c) == 0);
	while (!atomic_load(&begun))
		(void) usleep(100);
	CHECK(owed() > n / 2);

	/* before the next snapshot is taken all has gone */
	(void) begin_view(a, 1);
	CHECK(owed() == 0);
	end_view(a);
	REQUIRE(pthread_join(slow, NULL) == 0);
	for (uint64_t i = 0; (more = insert_more(10 + i, 4096)) > 0; i += more)
		again += more;
	CHECK(again > n * 95 / 100);
	teardown();
}

static pthread_t other;
static _Atomic bool ends;
static int	looks;				/* after so many without success he is through */

static void
end_in_between(const char *name)
{
	if (is_slow && strcmp(name, "reclaim-item") == 0)
	{
		atomic_store(&begun, true);
		while (!atomic_load(&ends))
			(void) usleep(100);
	}
	if (!is_slow && strcmp(name, "memory-not-found") == 0 && --looks == 0)
	{
		atomic_store(&ends, true);
		REQUIRE(pthread_join(other, NULL) == 0);
	}
}

/* all that is owed is in one queue, and somebody is at it */
static void
others_are_at_it(int without_success)
{

	setup();
	CHECK(insert_more(10, 1000000) > 4000);
	delete_ids(b, 4000);
	end_view(b);

	atomic_store(&begun, false);
	atomic_store(&ends, false);
	looks = without_success;
	mot_stop_point_handler = end_in_between;
	REQUIRE(pthread_create(&other, NULL, reclaim_slowly, c) == 0);
	while (!atomic_load(&begun))
		(void) usleep(100);
}

/* just when one who looked in vain, as the other was at it, asks whether there is one */
static void
who_is_through_in_between_has_been_waited_for(void)
{
	mot_session *d;
	mot_status	status = MOT_OK;

	others_are_at_it(3);
	d = open_session(st.engine, 4);
	begin(d);
	(void) begin_view(d, 1);
	for (uint64_t i = 1000000; looks > 0 && status == MOT_OK; i++)
		status = insert(&st, d, 1, i, 1);
	CHECK(status == MOT_OK);
	commit(d);
	end_view(d);
	CHECK(looks <= 0);
	mot_session_close(d);
	teardown();

	/* before the next snapshot is taken, likewise */
	others_are_at_it(INT_MAX);
	CHECK(insert_more(1000000, 1000000) < 1000000);
	looks = 1;
	(void) begin_view(a, 1);
	CHECK(looks <= 0);
	CHECK(owed() == 0);
	end_view(a);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(who_is_through_in_between_has_been_waited_for);
	RUN(who_is_in_need_takes_over);
	RUN(room_that_is_about_to_come_is_waited_for);
	RUN(own_versions_stay_until_the_commit_is_over);
	RUN(rows_wait_for_old_keys_behind_later_stamps);
	return test_end();
}

#else							/* !MOT_STOP_POINTS */

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	printf("# without stop points\n");
	return test_end();
}

#endif							/* MOT_STOP_POINTS */
