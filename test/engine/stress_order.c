/*-------------------------------------------------------------------------
 *
 * stress_order.c
 *	  Keys whose bytes are mostly, and not always, in the order that counts: whoever is
 *	  told that an index is in order finds its rows in order, and those beyond a bound
 *	  that is, beside writers that add keys which are not.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

#define WRITERS 3
#define READERS 2
#define IDS 3000
#define ROUNDS 40
#define LIAR 61					/* each so-manieth id is out of order */

static store st;
static _Atomic bool stop;
static _Atomic bool lie;
static _Atomic uint64_t looked;
static _Atomic uint64_t found_out;

/* what counts */
static uint64_t
rank_of(uint64_t id)
{
	return id % LIAR != 0 ? id * 2 : (id * 7919 % IDS) * 2 + 1;
}

static uint64_t
id_of(const void *key)
{
	const uint8_t *bytes = key;
	uint64_t	id = 0;

	for (int i = 0; i < 8; i++)
		id = id << 8 | bytes[i];
	return id;
}

/* (it takes its time now and then, when an entry is in the tree and has not been compared) */
static bool
in_order(void *arg, const void *lesser, size_t lesser_len, const void *greater, size_t greater_len)
{
	static _Thread_local unsigned calls = 0;

	(void) arg;
	REQUIRE(lesser_len == 8 && greater_len == 8 && memcmp(lesser, greater, 8) < 0);
	if (++calls % 16 == 0)
		usleep(20);
	return rank_of(id_of(lesser)) <= rank_of(id_of(greater));
}

static void *
writer(void *arg)
{
	uint64_t	random = (uint64_t) (uintptr_t) arg * 31 + test_seed + 1;
	mot_session *s = open_session(st.engine, 2 + (unsigned) (uintptr_t) arg);

	while (!atomic_load(&stop))
	{
		mot_status	status = MOT_OK;
		unsigned	n = 1 + test_random_from(&random) % 4;

		begin(s);
		for (uint32_t command = 1; command <= n && status != MOT_BUSY; command++)
		{
			mot_view	v = begin_view(s, command);
			uint64_t	id = 1 + test_random_from(&random) % (IDS - 1);

			if (id % LIAR == 0 && !atomic_load(&lie))
				continue;
			status = test_random_from(&random) % 3 == 0 ? delete_id(&st, s, &v, command, id) :
				insert(&st, s, command, id, 0);
		}
		if (status == MOT_BUSY || test_random_from(&random) % 4 == 0)
		{
			mot_txn_abort(s);
			end_view(s);
		}
		else
			commit(s);
	}
	mot_session_close(s);
	return NULL;
}

/* rows from behind "id" on, and whether they are in order */
static uint64_t
count_behind(mot_session *s, const mot_view *view, uint64_t id, bool *ordered)
{
	mot_cursor *c = malloc(mot_cursor_size());
	uint8_t		key[8];
	mot_bound	lower = {MOT_BOUND_EXCLUSIVE, key, 8};
	mot_row    *row;
	const mot_version *v;
	uint64_t	last = 0;
	uint64_t	n = 0;

	put_key(key, id);
	*ordered = true;
	REQUIRE(mot_cursor_open(s, c, view, &st.by_id, &lower, NULL, false) == MOT_OK);
	while (mot_cursor_next(c, &row, &v))
	{
		uint64_t	rank = rank_of(((const record *) mot_version_data(v))->id);

		*ordered &= rank >= last;
		last = rank;
		n++;
	}
	mot_cursor_close(c);
	free(c);
	return n;
}

static void *
reader(void *arg)
{
	uint64_t	random = (uint64_t) (uintptr_t) arg * 17 + test_seed + 5;
	mot_session *s = open_session(st.engine, 2 + WRITERS + (unsigned) (uintptr_t) arg);

	while (!atomic_load(&stop))
	{
		mot_view	v = begin_view(s, 1);
		uint64_t	bound = 1 + test_random_from(&random) % (IDS - 1);
		bool		ordered;
		bool		expected = !mot_index_disordered(st.by_id.index);
		uint8_t		key[8];
		mot_scan	scan;
		mot_row    *row;
		const mot_version *version;
		uint64_t	behind = 0;

		(void) count_behind(s, &v, 0, &ordered);
		CHECK(ordered || !expected);
		put_key(key, bound);
		if (mot_index_bound_in_order(s, &st.by_id, key, 8))
		{
			mot_scan_begin(s, &scan, st.table, &v);
			while (mot_scan_next(s, &scan, &row, &version))
			{
				uint64_t	id = ((const record *) mot_version_data(version))->id;

				behind += id != bound && rank_of(id) > rank_of(bound);
			}
			CHECK(count_behind(s, &v, bound, &ordered) == behind);
			CHECK(ordered);
			atomic_fetch_add(&looked, 1);
		}
		else if (bound % LIAR != 0 && !mot_index_disordered(st.by_id.index))
			CHECK(atomic_load(&lie));
		end_view(s);
		/* of what has been told nothing is taken back */
		CHECK(expected || mot_index_disordered(st.by_id.index));
	}
	mot_session_close(s);
	return NULL;
}

static void
order_is_known(void)
{
	for (int round = 0; round < ROUNDS; round++)
	{
		pthread_t	thread[WRITERS + READERS];
		uint64_t	upto;

		store_create(&st, 64 << 20, 10, MOT_ENGINE_PRIVATE, false);
		st.by_id.in_order = in_order;
		atomic_store(&stop, false);
		atomic_store(&lie, false);
		for (uintptr_t i = 0; i < WRITERS + READERS; i++)
			pthread_create(&thread[i], NULL, i < WRITERS ? writer : reader, (void *) (i < WRITERS ? i : i - WRITERS));
		upto = atomic_load(&looked) + 40;
		while (atomic_load(&looked) < upto)
			usleep(200);
		CHECK(!mot_index_disordered(st.by_id.index));
		atomic_store(&lie, true);
		for (int i = 0; i < 2000 && !mot_index_disordered(st.by_id.index); i++)
			usleep(100);
		atomic_fetch_add(&found_out, mot_index_disordered(st.by_id.index));
		usleep(1000);
		atomic_store(&stop, true);
		for (int i = 0; i < WRITERS + READERS; i++)
			pthread_join(thread[i], NULL);
		mot_engine_destroy(st.engine);
	}
	CHECK(atomic_load(&found_out) > 0);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(order_is_known);
	return test_end();
}
