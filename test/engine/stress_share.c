/*-------------------------------------------------------------------------
 *
 * stress_share.c
 *	  Rows locked in all strengths by several threads at a time: who is in
 *	  must be allowed to be there, together with everybody else.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

#define THREADS 4
#define ROWS 3
#define ROUNDS 6000

static store st;

/* inside[row][strength]: threads that hold it so: key share, share, no key update, update */
static _Atomic int inside[ROWS + 1][4];
static const mot_row_mode mode_of[4] = {
	MOT_MODE_KEY_SHARE, MOT_MODE_SHARE, MOT_MODE_NO_KEY_UPDATE, MOT_MODE_UPDATE
};
static const bool excludes[4][4] = {
	{false, false, false, true},
	{false, false, true, true},
	{false, true, true, true},
	{true, true, true, true}
};
static _Atomic uint64_t granted[4];

static void
enter(uint64_t row, int strength, const bool *mine)
{
	atomic_fetch_add(&inside[row][strength], 1);
	for (int other = 0; other < 4; other++)
		if (excludes[strength][other])
			CHECK(atomic_load(&inside[row][other]) - (mine[other] ? 1 : 0) -
				  (other == strength ? 1 : 0) == 0);
}

static void *
worker(void *arg)
{
	uint64_t	random = (uint64_t) (uintptr_t) arg + test_seed;
	mot_session *s = open_session(st.engine, 1 + (unsigned) (uintptr_t) arg);

	for (int i = 0; i < ROUNDS; i++)
	{
		mot_view	v = begin_view(s, 1);
		bool		held[ROWS + 1][4] = {{false}};
		int			locks = 1 + (int) (test_random_from(&random) % 3);
		mot_mark	mark = 0;

		mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 7);
		for (int n = 0; n < locks; n++)
		{
			uint64_t	id = 1 + test_random_from(&random) % ROWS;
			int			strength = (int) (test_random_from(&random) % 4);
			mot_row    *row;
			const mot_version *seen,
					   *newest;
			bool		have = false;

			REQUIRE(get(&st, s, &v, id, &row, &seen) != NULL);
			for (int k = strength; k < 4; k++)
				have |= held[id][k];
			if (mot_row_lock(s, &v, st.table, row, seen, mode_of[strength], &newest) != MOT_OK)
				continue;
			atomic_fetch_add(&granted[strength], 1);
			if (!have)
			{
				enter(id, strength, held[id]);
				held[id][strength] = true;
			}
			else if (test_random_from(&random) % 4 == 0)
				mot_row_unlock(s, row); /* had it before: keeps it */
		}
		if (test_random_from(&random) % 4 == 0)
			sched_yield();
		for (int row = 1; row <= ROWS; row++)
			for (int k = 0; k < 4; k++)
				if (held[row][k])
					atomic_fetch_sub(&inside[row][k], 1);
		switch (test_random_from(&random) % 3)
		{
			case 0:
				mot_txn_abort(s);
				break;
			case 1:
				mot_txn_rollback_to(s, mark);
				/* FALLTHROUGH */
			default:
				CHECK(mot_txn_prepare(s) == MOT_OK);
				(void) mot_txn_commit(s);
		}
		end_view(s);
	}
	mot_session_close(s);
	return NULL;
}

static void
strengths_exclude_each_other(void)
{
	pthread_t	thread[THREADS];
	mot_session *s;
	mot_view	v;

	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	s = open_session(st.engine, 0);
	v = begin_view(s, 1);
	mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 7);
	for (uint64_t id = 1; id <= ROWS; id++)
		CHECK(insert(&st, s, 1, id, 0) == MOT_OK);
	CHECK(mot_txn_prepare(s) == MOT_OK);
	(void) mot_txn_commit(s);
	end_view(s);

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, worker, (void *) i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int k = 0; k < 4; k++)
		CHECK(atomic_load(&granted[k]) > 0);
	CHECK(atomic_load(&st.engine->shares) == 0);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(strengths_exclude_each_other);
	return test_end();
}
