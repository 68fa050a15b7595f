/*-------------------------------------------------------------------------
 *
 * test_rest.c
 *	  Sessions that keep a snapshot and rest: what was rolled back does not wait
 *	  for them, unless something leads from them to it.
 *
 *-------------------------------------------------------------------------
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "txn_util.h"

#define ROWS 3000

static store st;
static mot_session *a,
		   *b,
		   *c;
static bool b_rests;
static bool fence_works;
static mot_cursor *opens;		/* b goes on and opens it after the fence, and
								 * rests */
static mot_view opens_as;
static bool fenced;
static uint64_t baseline;

static bool
rests(unsigned slot)
{
	static const mot_bound none = {MOT_BOUND_NONE, NULL, 0};

	if (slot == 2 && opens != NULL && fenced)
	{
		REQUIRE(mot_cursor_open(b, opens, &opens_as, &st.by_id, &none, &none, false) == MOT_OK);
		opens = NULL;
	}
	return slot == 2 && b_rests;
}

static bool
fence(void)
{
	fenced = true;
	return fence_works;
}

static void
reclaim(void)
{
	for (int i = 0; i < 4; i++)
		(void) mot_reclaim_all(c);
}

static void
fail_at_much(void)
{
	mot_view	v;

	begin(a);
	v = begin_view(a, 1);
	for (uint64_t id = 1; id <= ROWS; id++)
		REQUIRE(insert(&st, a, 1, 1000000 + id, (int64_t) id) == MOT_OK);
	for (uint64_t id = 1; id <= 100; id++)
		REQUIRE(update(&st, a, &v, 1, 1000 * id, -(int64_t) id) == MOT_OK);
	mot_txn_abort(a);
	end_view(a);
	reclaim();
}

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
	mot_session_may_rest(b);
	mot_rests_hook = rests;
	mot_fence_hook = fence;
	b_rests = fence_works = true;
	begin(a);
	for (uint64_t id = 1; id <= 100; id++)
		REQUIRE(insert(&st, a, 1, 1000 * id, (int64_t) id) == MOT_OK);
	commit(a);
	/* once, so that the indexes' nodes are there */
	fail_at_much();
	baseline = mot_object_bytes(st.engine);
}

static void
teardown(void)
{
	mot_rests_hook = NULL;
	mot_fence_hook = NULL;
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

/* is what a rollback leaves behind gone? */
static bool
all_comes_back(void)
{
	uint64_t	now;

	fail_at_much();
	now = mot_object_bytes(st.engine);
	CHECK(now == baseline || now > baseline + ROWS * 24);
	return now == baseline;
}

static mot_view
snapshot_of_b(mot_isolation isolation)
{
	mot_view	v = begin_view(b, 1);
	uint64_t	rows;

	mot_txn_begin(b, isolation, v.snapshot, 2);
	CHECK(sum_scan(&st, b, &v, &rows) == 5050 && rows == 100);
	return v;
}

static void
who_rests_holds_nothing_that_failed(void)
{
	mot_view	v;
	uint64_t	rows;

	setup();
	v = snapshot_of_b(MOT_SNAPSHOT);
	CHECK(all_comes_back());

	/* who works does; then it comes back when he rests again, or goes on */
	b_rests = false;
	CHECK(!all_comes_back());
	b_rests = true;
	CHECK(all_comes_back());

	/* what his snapshot shows stays */
	change(&st, a, 5000, 77);
	change(&st, a, 5000, 78);
	begin(a);
	{
		mot_view	w = begin_view(a, 1);

		CHECK(delete_id(&st, a, &w, 1, 6000) == MOT_OK);
	}
	commit(a);
	reclaim();
	CHECK(sum_scan(&st, b, &v, &rows) == 5050 && rows == 100);
	CHECK(get(&st, b, &v, 6000, NULL, NULL)->value == 6);
	mot_txn_abort(b);
	end_view(b);
	teardown();
}

static void
no_fence_no_rest(void)
{
	setup();
	(void) snapshot_of_b(MOT_SNAPSHOT);
	fence_works = false;
	CHECK(!all_comes_back());
	/* the second steps come later */
	for (int i = 0; i < 3; i++)
	{
		mot_session_move_on(b);
		reclaim();
	}
	CHECK(mot_object_bytes(st.engine) == baseline);
	mot_txn_abort(b);
	end_view(b);
	teardown();
}

static void
what_leads_somewhere_holds(void)
{
	static const mot_bound none = {MOT_BOUND_NONE, NULL, 0};
	mot_cursor *cursor = malloc(mot_cursor_size());
	mot_view	v;
	mot_row    *row;
	const mot_version *version;

	REQUIRE(cursor != NULL);
	setup();
	v = snapshot_of_b(MOT_SNAPSHOT);
	REQUIRE(mot_cursor_open(b, cursor, &v, &st.by_id, &none, &none, false) == MOT_OK);
	CHECK(mot_cursor_next(cursor, &row, &version));
	CHECK(!all_comes_back());
	mot_cursor_close(cursor);
	CHECK(all_comes_back());

	mot_txn_abort(b);
	end_view(b);

	(void) snapshot_of_b(MOT_SERIALIZABLE);
	CHECK(!all_comes_back());
	mot_txn_abort(b);
	end_view(b);
	CHECK(all_comes_back());
	teardown();
	free(cursor);
}

/* What a serializable transaction has read it keeps also when it goes on to build an index. */
static void
who_has_read_and_builds_holds(void)
{
	mot_build	build;
	mot_row    *row;
	const mot_version *version;

	setup();
	(void) snapshot_of_b(MOT_SERIALIZABLE);
	CHECK(!all_comes_back());
	for (int i = 0; i < 3; i++)
	{
		mot_build_rows(b, &build, st.table, NULL);
		while (mot_build_next(&build, &row, &version))
			continue;
		reclaim();
	}
	CHECK(mot_object_bytes(st.engine) > baseline);
	mot_txn_abort(b);
	end_view(b);
	CHECK(all_comes_back());
	teardown();
}

/*
 * Just as it is looked at, a session goes on and rests again: what it came to
 * before the fence it may still have, and then has told so.
 */
static void
who_goes_on_and_rests_again_holds(void)
{
	mot_cursor *cursor = malloc(mot_cursor_size());
	mot_row    *row;
	const mot_version *version;
	unsigned	rows = 0;

	REQUIRE(cursor != NULL);
	setup();
	opens_as = snapshot_of_b(MOT_SNAPSHOT);
	fenced = false;
	opens = cursor;
	CHECK(!all_comes_back());
	REQUIRE(opens == NULL);
	while (mot_cursor_next(cursor, &row, &version))
		rows++;
	CHECK(rows == 100);
	mot_cursor_close(cursor);
	CHECK(all_comes_back());
	mot_txn_abort(b);
	end_view(b);
	teardown();
	free(cursor);
}

/* --------------------------------------------------------------- in earnest */

#define READERS 3
#define ROUNDS 400

static _Atomic bool resting[8];
static _Atomic unsigned working;

static bool
really_rests(unsigned slot)
{
	/* relaxed: the fence is what orders it */
	return atomic_load_explicit(&resting[slot], memory_order_relaxed);
}

/* (the thread sanitizer does not know this kind of fence) */
static bool
real_fence(void)
{
#ifdef __SANITIZE_THREAD__
	return false;
#else
	return syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
#endif
}

static void *
read_and_rest(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);

	mot_session_may_rest(s);
	for (int i = 0; i < ROUNDS; i++)
	{
		mot_view	v = begin_view(s, 1);

		mot_txn_begin(s, MOT_SNAPSHOT, v.snapshot, slot);
		for (int j = 0; j < 5; j++)
		{
			uint64_t	rows;

			CHECK(sum_scan(&st, s, &v, &rows) == 5050 && rows == 100);
			for (uint64_t id = 1; id <= 100; id++)
				CHECK(get(&st, s, &v, 1000 * id, NULL, NULL)->value == (int64_t) id);
			CHECK(get(&st, s, &v, 1000000 + (uint64_t) j, NULL, NULL) == NULL);
			atomic_store_explicit(&resting[slot], true, memory_order_release);
			if ((i + j) % 3 == 0)
				usleep(100);
			/* as who is told by the system that there is something to do */
			atomic_store_explicit(&resting[slot], false, memory_order_relaxed);
			atomic_signal_fence(memory_order_seq_cst);
		}
		mot_txn_abort(s);
		end_view(s);
	}
	mot_session_close(s);
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* Readers that rest for moments, beside failing changes and reclamation. */
static void
resting_for_moments(void)
{
	pthread_t	reader[READERS];
	uint64_t	failures = 0;

	setup();
	mot_session_close(b);
#ifndef __SANITIZE_THREAD__
	if (syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0)
		printf("# no fences to be had here\n");
#endif
	mot_rests_hook = really_rests;
	mot_fence_hook = real_fence;
	atomic_store(&working, READERS);
	for (unsigned i = 0; i < READERS; i++)
		REQUIRE(pthread_create(&reader[i], NULL, read_and_rest, (void *) (uintptr_t) (4 + i)) == 0);
	while (atomic_load(&working) != 0)
	{
		mot_view	v;

		begin(a);
		v = begin_view(a, 1);
		for (uint64_t id = 0; id < 300; id++)
			REQUIRE(insert(&st, a, 1, 1000000 + id, (int64_t) id) == MOT_OK);
		for (uint64_t id = 1; id <= 100; id++)
			REQUIRE(update(&st, a, &v, 1, 1000 * id, -(int64_t) id) == MOT_OK);
		mot_txn_abort(a);
		end_view(a);
		(void) mot_reclaim_all(c);
		failures++;
	}
	for (unsigned i = 0; i < READERS; i++)
		REQUIRE(pthread_join(reader[i], NULL) == 0);
	printf("# %llu times\n", (unsigned long long) failures);
	reclaim();
	b = open_session(st.engine, 2);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(who_rests_holds_nothing_that_failed);
	RUN(no_fence_no_rest);
	RUN(what_leads_somewhere_holds);
	RUN(who_has_read_and_builds_holds);
	RUN(who_goes_on_and_rests_again_holds);
	RUN(resting_for_moments);
	return test_end();
}
