/*-------------------------------------------------------------------------
 *
 * test_order.c
 *	  Keys that come to stand on the wrong side of each other, with one between
 *	  them that is in the tree and has not been compared yet.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

static store st;
static _Atomic bool held;
static _Atomic bool entered;
static _Thread_local bool slow;
static int64_t ranks[100];

static bool
in_order(void *arg, const void *lesser, size_t lesser_len, const void *greater, size_t greater_len)
{
	(void) arg;
	REQUIRE(lesser_len == 8 && greater_len == 8);
	atomic_store(&entered, true);
	while (slow && atomic_load(&held))
		sched_yield();
	return ranks[((const uint8_t *) lesser)[7]] <= ranks[((const uint8_t *) greater)[7]];
}

static void
add(unsigned slot, uint64_t id)
{
	mot_session *s = open_session(st.engine, slot);

	begin(s);
	CHECK(insert(&st, s, 1, id, 0) == MOT_OK);
	commit(s);
	mot_session_close(s);
}

static void *
add_slowly(void *arg)
{
	slow = true;
	add(1, (uint64_t) (uintptr_t) arg);
	return NULL;
}

static void
start(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	st.by_id.in_order = in_order;
	for (int i = 0; i < 100; i++)
		ranks[i] = i;
}

/* 20 is in order with 30, and 10 with neither */
static void
what_is_being_placed_is_passed(void)
{
	pthread_t	thread;
	mot_session *s;
	uint8_t		key[8];

	start();
	ranks[10] = 100;
	ranks[20] = 5;
	add(2, 10);
	CHECK(!mot_index_disordered(st.by_id.index));
	atomic_store(&held, true);
	atomic_store(&entered, false);
	pthread_create(&thread, NULL, add_slowly, (void *) (uintptr_t) 20);
	while (!atomic_load(&entered))
		sched_yield();
	CHECK(!mot_index_disordered(st.by_id.index));

	/* likewise a bound, which says nothing of the index */
	s = open_session(st.engine, 3);
	(void) begin_view(s, 1);
	put_key(key, 30);
	CHECK(!mot_index_bound_in_order(s, &st.by_id, key, 8));
	CHECK(!mot_index_disordered(st.by_id.index));
	end_view(s);
	mot_session_close(s);

	add(2, 30);
	CHECK(mot_index_disordered(st.by_id.index));
	atomic_store(&held, false);
	pthread_join(thread, NULL);
	mot_engine_destroy(st.engine);
}

/* what is taken back has been compared, and so has what is loaded one by one */
static void
neighbours_are_compared(void)
{
	mot_session *s;

	start();
	for (uint64_t id = 1; id < 50; id += 2)
		add(2, id);
	CHECK(!mot_index_disordered(st.by_id.index));
	ranks[20] = 90;
	s = open_session(st.engine, 1);
	begin(s);
	CHECK(insert(&st, s, 1, 22, 0) == MOT_OK);
	CHECK(!mot_index_disordered(st.by_id.index));
	CHECK(insert(&st, s, 1, 20, 0) == MOT_OK);
	CHECK(mot_index_disordered(st.by_id.index));
	mot_txn_abort(s);
	end_view(s);
	mot_session_close(s);
	CHECK(mot_index_disordered(st.by_id.index));
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(what_is_being_placed_is_passed);
	RUN(neighbours_are_compared);
	return test_end();
}
