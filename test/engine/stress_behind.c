/*-------------------------------------------------------------------------
 *
 * stress_behind.c
 *	  An index that is made beside writers: they keep it from a moment on at
 *	  which none of them is under way, and what was there before is caught up with.
 *	  It has an entry for each row afterwards, and none besides.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "txn_util.h"

#define WRITERS 3
#define ROWS 200
#define VALUES 12
#define ROUNDS 12

static store st;

/* a transaction has it shared, who begins or drops an index alone */
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic bool stop;
static _Atomic uint64_t done;

static mot_status
one_change(mot_session *s, uint64_t *random, uint32_t command)
{
	mot_view	v = begin_view(s, command);
	uint64_t	id = 1 + test_random_from(random) % ROWS;
	int64_t		value = (int64_t) (test_random_from(random) % VALUES);
	unsigned	what = test_random_from(random) % 8;

	if (what < 5)
		return update(&st, s, &v, command, id, value);
	if (what == 5)
		return delete_id(&st, s, &v, command, id);
	return insert(&st, s, command, id, value);
}

static void *
writer(void *arg)
{
	uint64_t	random = (uint64_t) (uintptr_t) arg + test_seed;
	mot_session *s = open_session(st.engine, 2 + (unsigned) (uintptr_t) arg);

	while (!atomic_load(&stop))
	{
		mot_status	status = MOT_OK;
		unsigned	n = 1 + test_random_from(&random) % 4;

		pthread_rwlock_rdlock(&table_lock);
		begin(s);
		for (uint32_t command = 1; command <= n && status != MOT_BUSY; command++)
		{
			mot_mark	mark = mot_txn_mark(s);

			status = one_change(s, &random, command);
			if (test_random_from(&random) % 5 == 0)
				mot_txn_rollback_to(s, mark);
		}
		if (status == MOT_BUSY || test_random_from(&random) % 4 == 0)
		{
			mot_txn_abort(s);
			end_view(s);
		}
		else
			commit(s);
		pthread_rwlock_unlock(&table_lock);
		atomic_fetch_add(&done, 1);
		if (test_random_from(&random) % 8 == 0)
			sched_yield();
	}
	mot_session_close(s);
	return NULL;
}

static void
begin_index(mot_session *s)
{
	pthread_rwlock_wrlock(&table_lock);
	REQUIRE(mot_index_create(s, st.table, 102, MOT_INDEX_DERIVED, &st.by_value.index) == MOT_OK);
	mot_index_set_behind(st.by_value.index, true);
	mot_index_attach(st.by_value.index);
	mot_index_described(st.by_value.index);
	st.by_value.matches = value_matches;
	st.has_value_index = true;
	pthread_rwlock_unlock(&table_lock);
}

static void
catch_up(mot_session *s)
{
	mot_build	rows;
	mot_row    *row,
			   *other;
	const mot_version *version;
	unsigned	n = 0;

	(void) mot_snapshot_take(s);
	mot_build_rows(s, &rows, st.table, NULL);
	while (mot_build_next(&rows, &row, &version))
	{
		uint8_t		key[8];

		put_key(key, (uint64_t) ((const record *) mot_version_data(version))->value);
		if (++n % 16 == 0)
			usleep(50);
		CHECK(mot_index_catch_up(s, &st.by_value, row, key, 8, 0, true, &other) == MOT_OK);
	}
	end_view(s);
	mot_index_set_behind(st.by_value.index, false);
}

/* (nobody writes) */
static void
look(mot_session *s)
{
	mot_view	v;
	mot_index_stat stat;
	mot_cursor *c = malloc(mot_cursor_size());
	mot_entry	entry;
	uint64_t	entries = 0,
				rows,
				found;
	int64_t		sum;

	drain(&st, s);
	v = begin_view(s, 1);
	sum = sum_scan(&st, s, &v, &rows);
	CHECK(sum_index(s, &v, &st.by_value, false, &found) == sum);
	CHECK(found == rows);
	end_view(s);
	mot_index_stats(st.by_value.index, &stat);
	CHECK(stat.stale_entries == 0);
	REQUIRE(mot_entries_open(s, c, st.by_value.index, NULL, NULL, false) == MOT_OK);
	while (mot_entries_next(c, &entry))
		entries++;
	mot_cursor_close(c);
	CHECK(entries == rows);
	free(c);
}

static void
every_row_has_its_entry(void)
{
	pthread_t	thread[WRITERS];
	mot_session *s;

	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	s = open_session(st.engine, 0);
	begin(s);
	for (uint64_t id = 1; id <= ROWS; id++)
		CHECK(insert(&st, s, 1, id, (int64_t) (id % VALUES)) == MOT_OK);
	commit(s);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&thread[i], NULL, writer, (void *) i);
	for (int round = 0; round < ROUNDS; round++)
	{
		uint64_t	upto;

		begin_index(s);
		catch_up(s);
		upto = atomic_load(&done) + 200;
		while (atomic_load(&done) < upto)
			sched_yield();
		pthread_rwlock_wrlock(&table_lock);
		look(s);
		mot_index_drop(s, st.by_value.index);
		st.has_value_index = false;
		pthread_rwlock_unlock(&table_lock);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(every_row_has_its_entry);
	return test_end();
}
