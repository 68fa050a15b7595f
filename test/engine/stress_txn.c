/*-------------------------------------------------------------------------
 *
 * stress_txn.c
 *	  Concurrent transactions on one table, checked by what must always hold.
 *
 *	  movers	 move money between accounts at every isolation level, and rows
 *				 between keys; the sum over all accounts never changes
 *	  churners	 delete a row and insert its key again
 *	  watchers	 sum up by the sequential scan and by either index, forward and
 *				 backward, in one snapshot: every way must give the one sum and
 *				 the same number of rows
 *	  pairs		 at SERIALIZABLE, withdraw from either of two accounts whose
 *				 sum may not fall below zero (write skew)
 *	  sweeper	 reclaims for everybody
 *	  placer	 says anew, again and again, on which of four (pretended) nodes
 *				 ranges of keys live, and moves rows and versions there
 *
 * And on another: receipts are counted in the current batch, batches are
 * closed by going on to the next, and auditors look at the last closed one:
 * all at SERIALIZABLE, where nobody ever finds one changed that had been seen closed,
 * though those who count may come before who closes (precede.c).
 *
 * Who changes waits while half of the memory is used, for who reads and has not been
 * let onto a processor: full memory is other tests' matter.
 *
 * Seconds as the argument (default 3).
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "tree_stat.h"
#include "txn_util.h"

#define ACCOUNTS 200
#define PAIRS 20				/* ids from PAIR_BASE, two each */
#define PAIR_BASE 100000
#define START 1000
#define MEMORY (UINT64_C(256) << 20)

static store st;
static atomic_bool stop;
static atomic_ullong commits,
			conflicts,
			sums;

static void
nap(void)
{
	sched_yield();
}

/* is there more to be done by who changes? */
static bool
go_on(void)
{
	while (!atomic_load(&stop) && mot_region_used(st.engine->region) > MEMORY / 2)
		usleep(1000);
	return !atomic_load(&stop);
}

static void
give_up(mot_session *s, mot_status status)
{
	mot_txn_abort(s);
	mot_snapshot_hold(s, MOT_TS_NONE);
	if (status != MOT_BUSY)
		atomic_fetch_add(&conflicts, 1);
	nap();
}

/* a snapshot for a transaction that may be SERIALIZABLE */
static mot_view
begin_serial(mot_session *s)
{
	mot_serial_begin(s);
	return begin_view(s, 1);
}

/* end a transaction whose work succeeded */
static bool
end_txn(mot_session *s)
{
	mot_status	status;
	int			tries = 0;

	mot_txn_may_precede(s);
	while ((status = mot_txn_prepare(s)) == MOT_BUSY && tries++ < 100)
		nap();
	if (status != MOT_OK)
	{
		give_up(s, status);
		return false;
	}
	mot_txn_commit(s);
	mot_snapshot_hold(s, MOT_TS_NONE);
	atomic_fetch_add(&commits, 1);
	return true;
}

/* change an account by "amount" relative to its newest value */
static mot_status
add_to(mot_session *s, const mot_view *view, uint32_t command, uint64_t id, int64_t amount)
{
	mot_mark	mark = mot_txn_mark(s);
	mot_row    *row,
			   *other;
	const mot_version *seen,
			   *newest;
	record		old;
	void	   *data;
	uint8_t		key[8];
	mot_status	status;

	if (get(&st, s, view, id, &row, &seen) == NULL)
		return MOT_NOT_FOUND;
	status = mot_row_lock(s, view, st.table, row, seen, MOT_MODE_CHANGE, &newest);
	if (status != MOT_OK && status != MOT_CHANGED)
		return status;
	old = *(const record *) mot_version_data(newest);
	if (old.id != id)			/* moved away meanwhile */
	{
		mot_row_unlock(s, row);
		return MOT_NOT_FOUND;
	}
	status = mot_row_update(s, st.table, row, command, 5, sizeof(record), true, &data);
	if (status == MOT_OK)
	{
		memcpy(data, &old, sizeof(record));
		((record *) data)->value += amount;
		put_key(key, (uint64_t) old.value);
		status = mot_index_drop_entry(s, &st.by_value, row, key, 8, 0);
	}
	if (status == MOT_OK)
	{
		put_key(key, (uint64_t) (old.value + amount));
		status = mot_index_add(s, &st.by_value, row, key, 8, 0, &other);
	}
	if (status != MOT_OK)
		mot_txn_rollback_to(s, mark);
	return status;
}

static void *
mover(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (go_on())
	{
		mot_isolation level = (mot_isolation) (test_random_from(&random) % 3);
		uint64_t	from = 1 + test_random_from(&random) % ACCOUNTS;
		uint64_t	to = 1 + test_random_from(&random) % ACCOUNTS;
		mot_view	v = level == MOT_SERIALIZABLE ? begin_serial(s) : begin_view(s, 1);
		mot_status	status;

		if (from == to)
		{
			mot_serial_end(s);
			mot_snapshot_hold(s, MOT_TS_NONE);
			continue;
		}
		mot_txn_begin(s, level, v.snapshot, slot);
		status = add_to(s, &v, 1, from, -3);
		if (status == MOT_OK && test_random_from(&random) % 8 == 0)
		{
			mot_mark	mark = mot_txn_mark(s);

			v.command = 2;
			(void) add_to(s, &v, 2, to, 12345);
			mot_txn_rollback_to(s, mark);
		}
		v.command = 3;
		if (level == MOT_READ_COMMITTED)
			v.snapshot = mot_snapshot_take(s);
		if (status == MOT_OK)
			status = add_to(s, &v, 3, to, 3);
		if (status != MOT_OK)
			give_up(s, status);
		else if (test_random_from(&random) % 16 == 0)
			give_up(s, MOT_BUSY);
		else
			(void) end_txn(s);
	}
	mot_session_close(s);
	return NULL;
}

/* moves rows to other keys and back, deletes and re-inserts keys */
static void *
churner(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (go_on())
	{
		uint64_t	id = 1 + test_random_from(&random) % ACCOUNTS;
		mot_view	v = {mot_snapshot_take(s), 1, NULL, false};
		mot_row    *row;
		const mot_version *seen;
		mot_status	status = MOT_NOT_FOUND;

		mot_txn_begin(s, (mot_isolation) (test_random_from(&random) % 2), v.snapshot, slot);
		if (get(&st, s, &v, id, &row, &seen) != NULL)
		{
			record		r = *(const record *) mot_version_data(seen);
			const mot_version *newest;

			status = mot_row_lock(s, &v, st.table, row, seen, MOT_MODE_UPDATE, &newest);
			if (status == MOT_OK)
			{
				if (test_random_from(&random) % 2)
				{
					status = delete_id(&st, s, &v, 1, id);
					if (status == MOT_OK)
						status = insert(&st, s, 2, id, r.value);
				}
				else
				{
					/*
					 * to a far key, and back within the transaction or never
					 * (undone)
					 */
					status = update_row(&st, s, &v, 1, row, seen, id + 1000, r.value);
					v.command = 2;
					if (status == MOT_OK && get(&st, s, &v, id + 1000, &row, &seen) != NULL)
						status = update_row(&st, s, &v, 2, row, seen, id, r.value);
					else if (status == MOT_OK)
						CHECK(!"own moved row not found");
				}
			}
		}
		if (status != MOT_OK)
			give_up(s, status);
		else
			(void) end_txn(s);
	}
	mot_session_close(s);
	return NULL;
}

static void *
pair_worker(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (go_on())
	{
		uint64_t	id = PAIR_BASE + 2 * (test_random_from(&random) % PAIRS);
		uint64_t	side = test_random_from(&random) % 2;
		mot_view	v = begin_serial(s);
		const record *x,
				   *y;
		mot_status	status = MOT_OK;

		mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, slot);
		x = get(&st, s, &v, id, NULL, NULL);
		y = get(&st, s, &v, id + 1, NULL, NULL);
		REQUIRE(x != NULL && y != NULL);
		CHECK(x->value + y->value >= 0);
		if (x->value + y->value >= 1)
			status = update(&st, s, &v, 1, id + side, (side ? y : x)->value - 1);
		else
			status = update(&st, s, &v, 1, id + side, (side ? y : x)->value + 5);
		if (status != MOT_OK)
			give_up(s, status);
		else
			(void) end_txn(s);
	}
	mot_session_close(s);
	return NULL;
}

static void *
watcher(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);

	while (!atomic_load(&stop))
	{
		mot_view	v = {mot_snapshot_take(s), 1, NULL, false};
		uint64_t	n0,
					n;
		int64_t		sum = 0;
		mot_scan	scan;
		mot_row    *row;
		const mot_version *version;

		n0 = 0;
		mot_scan_begin(s, &scan, st.table, &v);
		while (mot_scan_next(s, &scan, &row, &version))
		{
			const record *r = mot_version_data(version);

			if (r->id < PAIR_BASE)
			{
				sum += r->value;
				CHECK(r->id >= 1 && r->id <= ACCOUNTS);
			}
			n0++;
		}
		CHECK(sum == (int64_t) ACCOUNTS * START);
		CHECK(n0 == ACCOUNTS + 2 * PAIRS);
		(void) sum_index(s, &v, &st.by_id, false, &n);
		CHECK(n == n0);
		(void) sum_index(s, &v, &st.by_id, true, &n);
		CHECK(n == n0);
		(void) sum_index(s, &v, &st.by_value, false, &n);
		CHECK(n == n0);
		(void) sum_index(s, &v, &st.by_value, true, &n);
		CHECK(n == n0);
		for (uint64_t id = 1; id <= ACCOUNTS; id += 7)
			CHECK(get(&st, s, &v, id, NULL, NULL) != NULL);
		mot_snapshot_hold(s, MOT_TS_NONE);
		atomic_fetch_add(&sums, 1);
		nap();
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
		usleep(2000);
	}
	mot_session_close(s);
	return NULL;
}

static atomic_ullong moved,
			amended;

/* some rows get other bytes, which are the same */
static void
amend(mot_session *s, uint64_t *random)
{
	mot_build	rows;
	mot_row    *row;
	const mot_version *v;

	(void) mot_snapshot_take(s);
	mot_build_rows(s, &rows, st.table, NULL);
	while (mot_build_next(&rows, &row, &v))
		if (test_random_from(random) % 4 == 0 && (v = mot_row_newest(s, row)) != NULL)
		{
			mot_status	status = mot_row_amend(s, st.table, row, v, mot_version_host_bits(v), mot_version_data(v),
											   sizeof(record), NULL, NULL);

			CHECK(status == MOT_OK || status == MOT_CHANGED || status == MOT_BUSY);
			if (status == MOT_OK)
				atomic_fetch_add(&amended, 1);
		}
	mot_snapshot_hold(s, MOT_TS_NONE);
}

static void *
placer(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (!atomic_load(&stop))
	{
		mot_table_place places[8];
		mot_place_move move = {0};
		bool		more = true;

		for (unsigned i = 0; i < 8; i++)
			put_place(&places[i], i * ACCOUNTS / 8, test_random_from(&random) % 4);
		(void) mot_snapshot_take(s);
		CHECK(mot_table_places_set(s, st.table, 0, places, 8) == MOT_OK);
		mot_snapshot_hold(s, MOT_TS_NONE);
		for (int round = 0; round < 20; round += !more)
		{
			(void) mot_snapshot_take(s);
			more = mot_table_places_move(s, st.table, 50, &move) == MOT_MOVE_MORE;
			mot_snapshot_hold(s, MOT_TS_NONE);
			amend(s, &random);
			nap();
		}
		atomic_fetch_add(&moved, move.versions + move.pages);
	}
	mot_session_close(s);
	return NULL;
}

/* on a machine of four nodes, whose cpus the threads get as they ask for memory */
static void
create(bool value_index)
{
	setenv("HWLOC_SYNTHETIC", "node:4 core:1 pu:2", 1);
	store_create(&st, MEMORY, 16, MOT_ENGINE_PRIVATE, value_index);
	unsetenv("HWLOC_SYNTHETIC");
}

static double seconds = 3;

/* ------------------------------------------------------------------ batches */

#define BATCHES 100000			/* ids of their rows: from 1; 0 is the number
								 * of the current one */

static _Atomic int64_t seen_closed[BATCHES];
static atomic_ullong late,
			audits;

static mot_status
count_receipt(mot_session *s, const mot_view *v, uint64_t batch)
{
	const record *r = get(&st, s, v, batch, NULL, NULL);

	return r == NULL ? insert(&st, s, 1, batch, 1) : update(&st, s, v, 1, batch, r->value + 1);
}

static void *
counter(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (!atomic_load(&stop))
	{
		mot_view	v = begin_serial(s);
		uint64_t	batch;
		mot_status	status;

		mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, slot);
		batch = (uint64_t) get(&st, s, &v, 0, NULL, NULL)->value;
		if (test_random_from(&random) % 2)
			nap();
		status = count_receipt(s, &v, batch);
		if (test_random_from(&random) % 2)
			nap();
		if (status != MOT_OK)
			give_up(s, status);
		else if (end_txn(s))
		{
			mot_view	after = begin_view(s, 1);

			if ((uint64_t) get(&st, s, &after, 0, NULL, NULL)->value > batch)
				atomic_fetch_add(&late, 1);
			mot_snapshot_hold(s, MOT_TS_NONE);
		}
	}
	mot_session_close(s);
	return NULL;
}

static void *
closer(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);

	while (!atomic_load(&stop))
	{
		mot_view	v = begin_serial(s);
		int64_t		batch;
		mot_status	status;

		mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, slot);
		batch = get(&st, s, &v, 0, NULL, NULL)->value;
		status = batch < BATCHES - 1 ? update(&st, s, &v, 1, 0, batch + 1) : MOT_BUSY;
		if (status != MOT_OK)
			give_up(s, status);
		else
			(void) end_txn(s);
		nap();
	}
	mot_session_close(s);
	return NULL;
}

static void *
auditor(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	while (!atomic_load(&stop))
	{
		mot_view	v = begin_serial(s);
		const record *r;
		int64_t		batch;
		int64_t		found;
		int64_t		known = 0;

		mot_txn_begin(s, MOT_SERIALIZABLE, v.snapshot, slot);
		batch = get(&st, s, &v, 0, NULL, NULL)->value - 1;
		if (test_random_from(&random) % 2)
			nap();
		r = batch > 0 ? get(&st, s, &v, (uint64_t) batch, NULL, NULL) : NULL;
		/* 0: nobody has seen it closed */
		found = 1 + (r == NULL ? 0 : r->value);
		/* at times it writes as well, and may fail */
		if (test_random_from(&random) % 4 == 0 &&
			insert(&st, s, 1, BATCHES * slot + atomic_load(&audits), 0) == MOT_OK)
		{
			if (!end_txn(s))
				continue;
		}
		else
		{
			REQUIRE(mot_txn_prepare(s) == MOT_OK);
			(void) mot_txn_commit(s);
			mot_snapshot_hold(s, MOT_TS_NONE);
		}
		if (batch > 0 && !atomic_compare_exchange_strong(&seen_closed[batch], &known, found))
			CHECK(known == found);
		atomic_fetch_add(&audits, 1);
		for (int naps = (int) (test_random_from(&random) % 8); naps > 0; naps--)
			nap();
	}
	mot_session_close(s);
	return NULL;
}

static void
closed_batches(void)
{
	void	   *(*const work[]) (void *) = {counter, counter, counter, closer, auditor, auditor, sweeper, placer};
	pthread_t	thread[8];
	mot_session *s;
	mot_view	v;
	int			closed = 0;

	create(false);
	s = open_session(st.engine, 1);
	begin(s);
	REQUIRE(insert(&st, s, 0, 0, 1) == MOT_OK);
	commit(s);
	atomic_store(&stop, false);
	for (unsigned i = 0; i < 8; i++)
		REQUIRE(pthread_create(&thread[i], NULL, work[i], (void *) (uintptr_t) (i + 2)) == 0);
	usleep((useconds_t) (seconds * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	v = begin_view(s, 1);
	for (uint64_t batch = 1; batch < BATCHES; batch++)
	{
		const record *r = get(&st, s, &v, batch, NULL, NULL);
		int64_t		known = atomic_load(&seen_closed[batch]);

		closed += known != 0;
		CHECK(known == 0 || known == 1 + (r == NULL ? 0 : r->value));
	}
	printf("# %llu audits of %d batches; of all that counted %llu ended after their batch was closed\n",
		   (unsigned long long) audits, closed, (unsigned long long) late);
	CHECK(closed > 0);
	end_view(s);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

static void
everything_at_once(void)
{
	void	   *(*const work[]) (void *) = {mover, mover, churner, churner, pair_worker, pair_worker, watcher, sweeper,
	placer};
	pthread_t	thread[9];
	mot_session *s;
	mot_memory_report r;
	mot_view	v;
	uint64_t	n;

	create(true);
	s = open_session(st.engine, 1);
	v.snapshot = mot_snapshot_take(s);
	mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 1);
	for (uint64_t i = 1; i <= ACCOUNTS; i++)
		REQUIRE(insert(&st, s, 0, i, START) == MOT_OK);
	for (uint64_t i = 0; i < 2 * PAIRS; i++)
		REQUIRE(insert(&st, s, 0, PAIR_BASE + i, 10) == MOT_OK);
	mot_txn_commit(s);
	mot_snapshot_hold(s, MOT_TS_NONE);

	for (unsigned i = 0; i < 9; i++)
		REQUIRE(pthread_create(&thread[i], NULL, work[i], (void *) (uintptr_t) (i + 2)) == 0);
	usleep((useconds_t) (seconds * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < 9; i++)
		pthread_join(thread[i], NULL);
	printf("# %llu commits, %llu conflicts, %llu sums, %llu versions and pages moved, %llu versions amended\n",
		   (unsigned long long) commits, (unsigned long long) conflicts, (unsigned long long) sums,
		   (unsigned long long) moved, (unsigned long long) amended);
	CHECK(commits > 100 && sums > 0 && moved > 0 && amended > 0);
	(void) mot_snapshot_take(s);
	CHECK(mot_table_places_set(s, st.table, 0, NULL, 0) == MOT_OK);
	mot_snapshot_hold(s, MOT_TS_NONE);

	/* at rest: nothing owed, nothing stale, nothing lost, one version a row */
	drain(&st, s);
	mot_memory_report_get(st.engine, &r);
	CHECK(r.retired_objects == 0);
	CHECK(st.by_id.index->stale == 0);
	CHECK(st.by_value.index->stale == 0);
	for (unsigned i = 0; i < 16; i++)
		CHECK(atomic_load(&st.engine->slot[i].owed.lost) == 0);
	{
		tree_stat	stat;
		char		err[200];

		tree_stats(st.by_id.index->tree, &stat);
		CHECK(stat.keys == ACCOUNTS + 2 * PAIRS);
		tree_stats(st.by_value.index->tree, &stat);
		CHECK(stat.keys == ACCOUNTS + 2 * PAIRS);
		if (!mot_tree_check(st.by_id.index->tree, err, sizeof(err)) ||
			!mot_tree_check(st.by_value.index->tree, err, sizeof(err)))
		{
			printf("# %s\n", err);
			CHECK(!"a tree is damaged");
		}
	}
	v.snapshot = mot_snapshot_take(s);
	(void) sum_scan(&st, s, &v, &n);
	CHECK(n == ACCOUNTS + 2 * PAIRS);
	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	if (argc > 1)
		seconds = atof(argv[1]);
	RUN(everything_at_once);
	RUN(closed_batches);
	return test_end();
}
