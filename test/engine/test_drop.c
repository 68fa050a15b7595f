/*-------------------------------------------------------------------------
 *
 * test_drop.c
 *	  A dropped table or index stays in memory as long as a queue names
 *	  anything of it, wherever in the queue that is.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

static store st;				/* keeps the queues and the clock going */
static store gone;				/* is dropped */
static mot_session *a,
		   *b,
		   *c;

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);

	memset(&gone, 0, sizeof(gone));
	gone.engine = st.engine;
	REQUIRE(mot_table_create(a, 1, 200, &gone.table) == MOT_OK);
	REQUIRE(mot_index_create(a, gone.table, 201, MOT_INDEX_UNIQUE, &gone.by_id.index) == MOT_OK);
	REQUIRE(mot_index_create(a, gone.table, 202, 0, &gone.by_value.index) == MOT_OK);
	mot_index_attach(gone.by_id.index);
	mot_index_attach(gone.by_value.index);
	gone.by_id.matches = id_matches;
	gone.by_value.matches = value_matches;
	gone.has_value_index = true;
	(void) mot_table_publish(st.engine, gone.table);

	begin(a);
	for (uint64_t i = 0; i < 10; i++)
	{
		CHECK(insert(&st, a, 1, i, 1) == MOT_OK);
		CHECK(insert(&gone, a, 1, i, (int64_t) i) == MOT_OK);
	}
	commit(a);
	drain(&st, c);
}

static void
delete_all(mot_session *s)
{
	mot_view	v;

	begin(s);
	v = begin_view(s, 1);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(delete_id(&gone, s, &v, 1, i) == MOT_OK);
	commit(s);
}

/*
 * Session a owes rows of the dropped table and, behind them, things that
 * a's newer commits left; a snapshot lets the first go and not the second.
 * What a then puts at the end of its queue is behind those.
 */
static void
drop_and_check(void)
{
	mot_memory_report r;

	change(&st, a, 1, 2);
	(void) begin_view(c, 0);
	change(&st, a, 1, 3);
	(void) mot_reclaim(a, 0);
	mot_memory_report_get(st.engine, &r);
	CHECK(r.retired_objects > 0);
	for (int i = 0; i < 3; i++)
	{
		(void) mot_reclaim_all(c);
		CHECK(atomic_load(&st.engine->dropped_count) == 1);
	}
	end_view(c);
	drain(&st, c);
	CHECK(atomic_load(&st.engine->dropped_count) == 0);
	mot_memory_report_get(st.engine, &r);
	CHECK(r.retired_objects == 0);
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

/* a deleted row is freed in two steps, the second with a stamp of its own */
static void
second_steps_are_waited_for(void)
{
	setup();
	delete_all(a);
	mot_table_drop(a, gone.table);
	drop_and_check();
}

/* a row whose keys changed waits for the old entries in another queue */
static void
rows_put_off_are_waited_for(void)
{
	mot_view	v;

	setup();
	begin(b);
	v = begin_view(b, 1);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(update(&gone, b, &v, 1, i, 100 + (int64_t) i) == MOT_OK);
	commit(b);
	delete_all(a);
	mot_table_drop(a, gone.table);
	drop_and_check();
}

/* the same for an index: entries that a queue still has to take from it */
static void
index_entries_are_waited_for(void)
{
	setup();
	delete_all(a);
	mot_index_drop(a, gone.by_value.index);
	drop_and_check();
}

/*
 * nothing commits and nobody reclaims but who is short of memory: there is always room for one more
 */
static void
tables_come_and_go_without_commits(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	a = open_session(st.engine, 1);
	for (int i = 0; i < 2000; i++)
	{
		mot_table  *table;
		mot_index  *index[3];
		mot_row    *row;
		void	   *data;

		(void) begin_view(a, 0);
		REQUIRE(mot_table_create(a, 1, 200, &table) == MOT_OK);
		for (int j = 0; j < 3; j++)
		{
			REQUIRE(mot_index_create(a, table, 201 + j, 0, &index[j]) == MOT_OK);
			mot_index_attach(index[j]);
		}
		REQUIRE(mot_load_row(a, table, 0, 100, &row, &data) == MOT_OK);
		memset(data, 0, 100);
		if (i % 2)
			mot_index_drop(a, index[1]);
		mot_table_drop(a, table);
		end_view(a);
	}
	mot_session_close(a);
	mot_engine_destroy(st.engine);
}

/*
 * one that nobody knows of goes at once, whoever has a snapshot, but not before what is owed of it
 */
static void
discarded_at_once(void)
{
	mot_memory_report before,
				after;
	mot_table  *table;
	mot_index  *index[2];
	mot_row    *row;
	void	   *data;

	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
	(void) begin_view(c, 0);
	(void) begin_view(a, 0);
	mot_memory_report_get(st.engine, &before);
	for (int i = 0; i < 20; i++)
	{
		REQUIRE(mot_table_create(a, 1, 200, &table) == MOT_OK);
		for (int j = 0; j < 2; j++)
		{
			REQUIRE(mot_index_create(a, table, 201 + j, 0, &index[j]) == MOT_OK);
			mot_index_attach(index[j]);
		}
		/* (both have rows of it at hand, which are nobody's afterwards) */
		for (int n = 0; n < 2000; n++)
		{
			REQUIRE(mot_load_row(n % 2 ? a : b, table, 0, 1000, &row, &data) == MOT_OK);
			memset(data, 0, 1000);
		}
		if (i % 2)
			mot_index_drop(a, index[1]);
		mot_table_discard(a, table);
		CHECK(atomic_load(&st.engine->dropped_count) == 0);
	}
	mot_memory_report_get(st.engine, &after);
	CHECK(after.used_bytes < before.used_bytes + (4 << 20));
	end_view(a);
	end_view(c);
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

#ifdef MOT_STOP_POINTS
static bool discards;
static bool stopped;

/* a gives back an index; meanwhile b is done with the table */
static void
drop_table_meanwhile(const char *name)
{
	if (strcmp(name, "pool-destroy") != 0 || stopped)
		return;
	stopped = true;
	if (discards)
		mot_table_discard(b, gone.table);
	else
		mot_table_drop(b, gone.table);
	(void) mot_reclaim_all(b);
	CHECK(atomic_load(&st.engine->dropped_count) == 2);
}

/* a table waits for its index, also when somebody else is about to give that back */
static void
table_waits_for_index(void)
{
	for (int i = 0; i < 2; i++)
	{
		discards = i != 0;
		stopped = false;
		setup();
		mot_index_drop(a, gone.by_value.index);
		mot_stop_point_handler = drop_table_meanwhile;
		(void) mot_reclaim_all(a);
		mot_stop_point_handler = NULL;
		CHECK(stopped);
		drain(&st, c);
		(void) mot_reclaim_all(c);
		CHECK(atomic_load(&st.engine->dropped_count) == 0);
		mot_session_close(a);
		mot_session_close(b);
		mot_session_close(c);
		mot_engine_destroy(st.engine);
	}
}
#endif

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(second_steps_are_waited_for);
	RUN(rows_put_off_are_waited_for);
	RUN(index_entries_are_waited_for);
	RUN(tables_come_and_go_without_commits);
	RUN(discarded_at_once);
#ifdef MOT_STOP_POINTS
	RUN(table_waits_for_index);
#endif
	return test_end();
}
