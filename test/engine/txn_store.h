/*-------------------------------------------------------------------------
 *
 * txn_store.h
 *	  The store that tests of transactions have, and three sessions of it; at the
 *	  end all ways to its rows lead to the same, and nothing is owed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TXN_STORE_H
#define MOT_TXN_STORE_H

#include "txn_util.h"

static store st;
static mot_session *a,
		   *b,
		   *c;

static inline void
setup(bool value_index)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, value_index);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	c = open_session(st.engine, 3);
}

static inline void
teardown(void)
{
	uint64_t	rows;
	mot_view	v;
	mot_memory_report r;

	v = begin_view(c, MOT_COMMAND_MAX);
	(void) sum_scan(&st, c, &v, &rows);
	{
		uint64_t	by_id;

		(void) sum_index(c, &v, &st.by_id, false, &by_id);
		CHECK(by_id == rows);
		if (st.has_value_index)
		{
			(void) sum_index(c, &v, &st.by_value, true, &by_id);
			CHECK(by_id == rows);
		}
	}
	end_view(c);
	mot_session_close(a);
	mot_session_close(b);
	drain(&st, c);
	mot_memory_report_get(st.engine, &r);
	CHECK(r.retired_objects == 0);
	CHECK(st.by_id.index->stale == 0);
	mot_session_close(c);
	mot_engine_destroy(st.engine);
}

/* begin at a level with a fresh snapshot for SNAPSHOT and above */
static inline mot_view
start(mot_session *s, mot_isolation level)
{
	mot_view	v = begin_view(s, 1);

	mot_txn_begin(s, level, v.snapshot, 7);
	return v;
}

static inline mot_ts
finish(mot_session *s)
{
	mot_ts		ts;

	REQUIRE(mot_txn_prepare(s) == MOT_OK);
	ts = mot_txn_commit(s);
	end_view(s);
	return ts;
}

static inline void
fill(uint64_t n)
{
	(void) start(a, MOT_READ_COMMITTED);
	for (uint64_t i = 1; i <= n; i++)
		REQUIRE(insert(&st, a, 0, i, (int64_t) i * 10) == MOT_OK);
	finish(a);
}

#endif							/* MOT_TXN_STORE_H */
