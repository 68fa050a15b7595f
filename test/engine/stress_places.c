/*-------------------------------------------------------------------------
 *
 * stress_places.c
 *	  Rows and versions that are moved between (pretended) nodes all the time,
 *	  under everybody.
 *
 *	  owners	 insert, change and delete rows, each its own, at every isolation
 *				 level, and know what has to be there; at SERIALIZABLE they read others' rows, too
 *	  readers	 keep a snapshot and what it showed them by address: it shows the
 *				 same afterwards, and the bytes are what they were
 *	  movers	 two, with other places each time
 *	  sweeper	 reclaims for everybody
 *
 * In the end nothing is left of anything.  Seconds as the argument (default 3).
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "memory/memory_internal.h"
#include "txn_util.h"

#define OWNERS 3
#define IDS 12000				/* an owner's are those that leave its number */
#define RANGES 16

static store st;
static atomic_bool stop;
static atomic_ullong commits,
			failures,
			looks,
			versions,
			pages;
static int64_t model[IDS];		/* 0: there is no such row; written by its
								 * owner */

static void
wander(uint64_t *random)
{
	mot_topology_pretended_cpu = (int) (test_random_from(random) % 8);
}

static void
end(mot_session *s, bool commit_it)
{
	if (!commit_it)
		mot_txn_abort(s);
	mot_snapshot_hold(s, MOT_TS_NONE);
}

/* one change of a row of its own; true: the row is "value" now, if it commits */
static bool
change_own(mot_session *s, const mot_view *v, uint64_t id, int64_t value)
{
	const record *r = get(&st, s, v, id, NULL, NULL);

	CHECK((r == NULL ? 0 : r->value) == model[id]);
	if (r == NULL)
		return insert(&st, s, 1, id, value) == MOT_OK;
	return (value == 0 ? delete_id(&st, s, v, 1, id) : update(&st, s, v, 1, id, value)) == MOT_OK;
}

static void *
owner(void *arg)
{
	unsigned	me = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, me + 1);
	uint64_t	random = test_seed + me;

	while (!atomic_load(&stop))
	{
		mot_isolation level = (mot_isolation) (test_random_from(&random) % 3);
		uint64_t	id = test_random_from(&random) % (IDS / OWNERS) * OWNERS + me;
		int64_t		value = test_random_from(&random) % 4 == 0 ? 0 : (int64_t) (test_random_from(&random) % 1000000 + 1);
		mot_view	v;
		bool		done;

		if (test_random_from(&random) % 64 == 0)
			wander(&random);
		if (level == MOT_SERIALIZABLE)
			mot_serial_begin(s);
		v = begin_view(s, 1);
		mot_txn_begin(s, level, v.snapshot, me);
		mot_txn_may_precede(s);
		if (level == MOT_SERIALIZABLE)
			(void) get(&st, s, &v, test_random_from(&random) % IDS, NULL, NULL);
		if (model[id] == 0 && value == 0)
			value = 1;
		done = change_own(s, &v, id, value);

		/*
		 * its rows are nobody else's, so only what it has read of others can
		 * be in its way
		 */
		CHECK(done);
		done = done && test_random_from(&random) % 16 != 0;
		if (done)
		{
			mot_status	status;

			while ((status = mot_txn_prepare(s)) == MOT_BUSY)
				sched_yield();
			CHECK(status == MOT_OK || level == MOT_SERIALIZABLE);
			done = status == MOT_OK;
			if (done)
			{
				(void) mot_txn_commit(s);
				model[id] = value;
			}
		}
		end(s, done);
		atomic_fetch_add(done ? &commits : &failures, 1);
	}
	mot_session_close(s);
	return NULL;
}

#define KEPT 256

static void *
reader(void *arg)
{
	mot_session *s = open_session(st.engine, (unsigned) (uintptr_t) arg);

	while (!atomic_load(&stop))
	{
		static _Thread_local const record *kept[KEPT];
		static _Thread_local record copy[KEPT];
		mot_view	v = begin_view(s, 0);
		uint64_t	rows,
					again;
		int64_t		sum = 0;
		mot_scan	scan;
		mot_row    *row;
		const mot_version *version;

		rows = 0;
		mot_scan_begin(s, &scan, st.table, &v);
		while (mot_scan_next(s, &scan, &row, &version))
		{
			const record *r = mot_version_data(version);

			if (rows < KEPT)
			{
				kept[rows] = r;
				copy[rows] = *r;
			}
			sum += r->value;
			rows++;
		}
		for (int i = 0; i < 3; i++)
		{
			usleep(3000);
			CHECK(sum_scan(&st, s, &v, &again) == sum && again == rows);
			CHECK(sum_index(s, &v, &st.by_id, i % 2, &again) == sum && again == rows);
			for (uint64_t n = 0; n < rows && n < KEPT; n++)
				CHECK(memcmp(kept[n], &copy[n], sizeof(record)) == 0);
		}
		end_view(s);
		atomic_fetch_add(&looks, 1);
	}
	mot_session_close(s);
	return NULL;
}

static void *
mover(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (!atomic_load(&stop))
	{
		mot_table_place places[RANGES];
		mot_place_move move = {0};
		bool		more = true;

		wander(&random);
		for (unsigned i = 0; i < RANGES; i++)
			put_place(&places[i], i * (IDS / RANGES), test_random_from(&random) % 4);
		(void) mot_snapshot_take(s);
		CHECK(mot_table_places_set(s, st.table, 0, places, RANGES) == MOT_OK);
		end_view(s);
		while (more && !atomic_load(&stop))
		{
			(void) mot_snapshot_take(s);
			more = mot_table_places_move(s, st.table, 200, &move) == MOT_MOVE_MORE;
			end_view(s);
		}
		atomic_fetch_add(&versions, move.versions);
		atomic_fetch_add(&pages, move.pages);
		(void) mot_reclaim(s, 0);
	}
	mot_session_close(s);
	return NULL;
}

static void *
sweeper(void *arg)
{
	mot_session *s = open_session(st.engine, (unsigned) (uintptr_t) arg);

	while (!atomic_load(&stop))
	{
		(void) mot_reclaim_all(s);
		mot_session_flush(s);
		usleep(2000);
	}
	mot_session_close(s);
	return NULL;
}

/* of all but the index, which may keep a node or two */
static uint64_t
object_bytes(void)
{
	mot_index_stat stat;

	mot_index_stats(st.by_id.index, &stat);
	return mot_object_bytes(st.engine) - stat.used_bytes;
}

static double seconds = 3;

static void
moving_all_the_time(void)
{
	void	   *(*const work[]) (void *) = {owner, owner, owner, reader, mover, mover, sweeper};
	pthread_t	thread[7];
	mot_session *s;
	mot_view	v;
	uint64_t	bytes;

	setenv("HWLOC_SYNTHETIC", "node:4 core:1 pu:2", 1);
	store_create(&st, 128 << 20, 16, MOT_ENGINE_PRIVATE, false);
	unsetenv("HWLOC_SYNTHETIC");
	s = open_session(st.engine, 15);
	bytes = object_bytes();
	for (unsigned i = 0; i < 7; i++)
		REQUIRE(pthread_create(&thread[i], NULL, work[i],
							   (void *) (uintptr_t) (i < OWNERS ? i : i + 1)) == 0);
	usleep((useconds_t) (seconds * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < 7; i++)
		pthread_join(thread[i], NULL);
	printf("# %llu commits, %llu failures, %llu looks; %llu versions and %llu pages moved\n",
		   (unsigned long long) commits, (unsigned long long) failures, (unsigned long long) looks,
		   (unsigned long long) versions, (unsigned long long) pages);
	CHECK(commits > 100 && versions > 0 && pages > 0);

	for (uint64_t id = 0; id < IDS; id++)
	{
		const record *r;

		begin(s);
		v = begin_view(s, 1);
		r = get(&st, s, &v, id, NULL, NULL);
		CHECK((r == NULL ? 0 : r->value) == model[id]);
		if (r != NULL)
			CHECK(delete_id(&st, s, &v, 1, id) == MOT_OK);
		commit(s);
	}
	(void) mot_snapshot_take(s);
	CHECK(mot_table_places_set(s, st.table, 0, NULL, 0) == MOT_OK);
	end_view(s);
	drain(&st, s);
	for (unsigned i = 0; i < 16; i++)
	{
		CHECK(atomic_load(&st.engine->slot[i].owed.lost) == 0);
		mot_cache_flush(mot_region_cache(st.engine->region, i));
	}
	CHECK(mot_owed_items(st.engine) == 0);
	CHECK(mot_table_objects(st.table) == 0);
	CHECK(object_bytes() == bytes);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	if (argc > 1)
		seconds = atof(argv[1]);
	RUN(moving_all_the_time);
	return test_end();
}
