/*-------------------------------------------------------------------------
 *
 * test_quota.c
 *	  What several tables may have together, and what new rows leave for changes.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <unistd.h>

#include "memory/memory_internal.h"
#include "txn_util.h"

#define DATABASE 1
#define TABLES 4

static store st[TABLES];
static mot_session *s;

static mot_quota_report
report(mot_quota_kind kind, uint32_t id)
{
	mot_quota_report r = {0};

	REQUIRE(mot_quota_find(st[0].engine, kind, id, &r));
	CHECK(r.kind == kind && r.host_id == id);
	return r;
}

static uint64_t
group_bytes(const store *t)
{
	return atomic_load(&t->table->group.bytes);
}

static void
make_table(store *t, uint32_t number, uint32_t role)
{
	mot_quota  *q;

	t->engine = st[0].engine;
	REQUIRE(mot_table_create(s, DATABASE, number, &t->table) == MOT_OK);
	REQUIRE(mot_index_create(s, t->table, number * 100 + 1, MOT_INDEX_UNIQUE | MOT_INDEX_DERIVED, &t->by_id.index) == MOT_OK);
	mot_index_attach(t->by_id.index);
	mot_index_described(t->by_id.index);
	t->by_id.matches = id_matches;
	t->by_id.exact = true;
	(void) mot_table_publish(t->engine, t->table);
	CHECK(mot_table_quota(t->table, MOT_QUOTA_ROLE) == NULL);
	q = mot_quota_hold(s, MOT_QUOTA_ROLE, role);
	REQUIRE(q != NULL);
	mot_table_put_role(t->table, q, false);
	CHECK(mot_table_quota(t->table, MOT_QUOTA_ROLE) == q);
}

/* rows until one is refused, or there are "to"; the last answer */
static mot_status
fill(store *t, uint64_t *n, uint64_t to)
{
	mot_status	status = MOT_OK;

	while (*n < to && status == MOT_OK)
	{
		begin(s);
		for (int i = 0; i < 1000 && *n < to && (status = insert(t, s, 1, *n, 0)) == MOT_OK; i++)
			++* n;
		commit(s);
	}
	return status;
}

static void
setup(void)
{
	memset(st, 0, sizeof(st));
	store_create(&st[0], 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	s = open_session(st[0].engine, 1);
	for (uint32_t i = 1; i < TABLES; i++)
		make_table(&st[i], 100 + i, 7);
}

static void
check_sums(void)
{
	uint64_t	sum = 0;

	for (int i = 1; i < TABLES; i++)
		sum += group_bytes(&st[i]);
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes + report(MOT_QUOTA_ROLE, 8).bytes == sum);
	CHECK(report(MOT_QUOTA_DATABASE, DATABASE).bytes == sum + group_bytes(&st[0]));
}

static void
give(store *t, uint32_t role)
{
	mot_quota  *q = mot_quota_hold(s, MOT_QUOTA_ROLE, role);

	REQUIRE(q != NULL);
	mot_table_put_role(t->table, q, false);
}

static void
tables_are_limited_together(void)
{
	uint64_t	limit = 8 << 20;
	uint64_t	n[TABLES] = {0};
	mot_quota_report full;
	mot_quota  *other;
	mot_view	v;

	setup();
	other = mot_quota_hold(s, MOT_QUOTA_ROLE, 8);
	mot_quota_set(st[0].engine, MOT_QUOTA_ROLE, 7, limit);
	/* nobody has come to it: it only counts */
	CHECK(fill(&st[1], &n[1], 200000) == MOT_OK);
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes > limit && report(MOT_QUOTA_ROLE, 7).limit == limit);
	check_sums();

	mot_table_set_bounded(st[2].table);
	CHECK(fill(&st[2], &n[2], 1000) == MOT_TABLE_FULL);
	REQUIRE(mot_session_full(s, &full));
	CHECK(full.kind == MOT_QUOTA_ROLE && full.host_id == 7 && full.limit == limit && full.bytes > limit);
	check_sums();

	/* another role's quota has room */
	give(&st[1], 8);
	check_sums();
	/* whose it is was said before */
	mot_table_put_role(st[1].table, mot_quota_hold(s, MOT_QUOTA_ROLE, 7), true);
	CHECK(mot_table_quota(st[1].table, MOT_QUOTA_ROLE) == other);
	check_sums();
	CHECK(fill(&st[2], &n[2], 200000) == MOT_TABLE_FULL);
	CHECK(n[2] > 50000 && report(MOT_QUOTA_ROLE, 7).bytes > limit - (128 << 10));
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes <= limit + limit / 32);
	mot_table_set_bounded(st[3].table);
	CHECK(fill(&st[3], &n[3], 2000) == MOT_TABLE_FULL);

	/* changes may have a sixteenth more, deletes what they need */
	v = begin_view(s, 1);
	mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 7);
	for (uint64_t i = 0; i < 2000; i++)
		REQUIRE(update(&st[2], s, &v, 1, i, 1) == MOT_OK);
	commit(s);
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes <= limit + limit / 16);
	check_sums();

	/* the table's own limit is still its own, and none lets all in */
	mot_table_set_limit(st[3].table, 64 << 10);
	mot_quota_set(st[0].engine, MOT_QUOTA_ROLE, 7, 0);
	CHECK(fill(&st[3], &n[3], 20000) == MOT_TABLE_FULL && !mot_session_full(s, &full));
	CHECK(fill(&st[2], &n[2], n[2] + 1000) == MOT_OK);

	/* a database's */
	mot_quota_set(st[0].engine, MOT_QUOTA_DATABASE, DATABASE, 1 << 20);
	CHECK(fill(&st[2], &n[2], n[2] + 10000) == MOT_TABLE_FULL);
	CHECK(mot_session_full(s, &full) && full.kind == MOT_QUOTA_DATABASE && full.limit == 1 << 20);

	/* what was dropped counts as long as somebody needs it */
	(void) mot_snapshot_take(s);
	mot_table_drop(s, st[2].table);
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes > limit / 2);
	mot_snapshot_hold(s, MOT_TS_NONE);
	while (mot_reclaim_all(s) > 0)
		;
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes == group_bytes(&st[3]));
	mot_quota_release(st[0].engine, other);
	mot_table_drop(s, st[1].table);
	mot_table_drop(s, st[3].table);
	while (mot_reclaim_all(s) > 0)
		;
	CHECK(!mot_quota_find(st[0].engine, MOT_QUOTA_ROLE, 7, &full) && !mot_quota_find(st[0].engine, MOT_QUOTA_ROLE, 8, &full));
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

static void
a_late_reader_of_limits_has_no_effect(void)
{
	mot_quota  *q;
	uint64_t	changes;

	setup();
	q = mot_table_quota(st[1].table, MOT_QUOTA_ROLE);
	CHECK(!mot_quota_is_known(st[0].engine, q, &changes));
	mot_quota_set(st[0].engine, MOT_QUOTA_ROLE, 7, 2 << 20);
	mot_quota_learn(st[0].engine, q, changes, 1 << 20);
	CHECK(mot_quota_is_known(st[0].engine, q, &changes) && report(MOT_QUOTA_ROLE, 7).limit == 2 << 20);
	mot_quota_learn(st[0].engine, q, changes, 3 << 20);
	CHECK(report(MOT_QUOTA_ROLE, 7).limit == 3 << 20);
	/* of one that is not there nothing is kept; it begins anew */
	mot_quota_set(st[0].engine, MOT_QUOTA_ROLE, 9, 1 << 20);
	for (int i = 1; i < TABLES; i++)
		give(&st[i], 9);
	q = mot_table_quota(st[1].table, MOT_QUOTA_ROLE);
	CHECK(!mot_quota_is_known(st[0].engine, q, &changes) && report(MOT_QUOTA_ROLE, 9).limit == 0);
	give(&st[1], 7);
	q = mot_table_quota(st[1].table, MOT_QUOTA_ROLE);
	CHECK(!mot_quota_is_known(st[0].engine, q, &changes) && report(MOT_QUOTA_ROLE, 7).limit == 0);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

static void
new_rows_leave_a_reserve(void)
{
	uint64_t	n[TABLES] = {0};
	mot_memory_report r;
	mot_view	v;

	setup();
	mot_engine_set_insert_reserve(st[0].engine, 0.75);
	mot_table_set_bounded(st[1].table);
	CHECK(fill(&st[1], &n[1], 2000000) == MOT_NO_MEMORY);
	mot_memory_report_get(st[0].engine, &r);
	CHECK(r.used_bytes > 15 << 20 && r.used_bytes <= (16 << 20) + (2 << 20));
	/* what comes back does not ask, nor do changes */
	CHECK(fill(&st[2], &n[2], 50000) == MOT_OK);
	v = begin_view(s, 1);
	mot_txn_begin(s, MOT_READ_COMMITTED, v.snapshot, 7);
	for (uint64_t i = 0; i < 50000; i++)
		REQUIRE(update(&st[1], s, &v, 1, i, 1) == MOT_OK);
	commit(s);
	CHECK(fill(&st[1], &n[1], 2000000) == MOT_NO_MEMORY);
	/* less than the engine's own is not to be had */
	mot_engine_set_insert_reserve(st[0].engine, 0);
	CHECK(fill(&st[1], &n[1], 2000000) == MOT_NO_MEMORY);
	mot_memory_report_get(st[0].engine, &r);
	CHECK(r.used_bytes > 58 << 20 && r.used_bytes <= (64 << 20) / 32 * 31);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

/* ------------------------------------------------ owners change meanwhile */

#define ROUNDS 300

static _Atomic bool stop;

static void *
fill_and_empty(void *arg)
{
	unsigned	number = (unsigned) (uintptr_t) arg;
	store	   *t = &st[number];
	mot_session *mine = open_session(t->engine, 1 + number);

	for (int round = 0; !atomic_load(&stop); round++)
	{
		mot_view	v;

		begin(mine);
		for (uint64_t i = 0; i < 3000; i++)
			REQUIRE(insert(t, mine, 1, i, 0) == MOT_OK);
		commit(mine);
		v = begin_view(mine, 1);
		mot_txn_begin(mine, MOT_READ_COMMITTED, v.snapshot, 7);
		for (uint64_t i = 0; i < 3000; i++)
			REQUIRE(delete_id(t, mine, &v, 1, i) == MOT_OK);
		commit(mine);
		(void) mot_reclaim_all(mine);
	}
	mot_session_close(mine);
	return NULL;
}

static void
owners_change_while_pages_come_and_go(void)
{
	pthread_t	thread[TABLES];
	mot_quota  *held[2];

	setup();
	for (uint32_t i = 0; i < 2; i++)
		REQUIRE((held[i] = mot_quota_hold(s, MOT_QUOTA_ROLE, 7 + i)) != NULL);
	atomic_store(&stop, false);
	for (uintptr_t i = 1; i < TABLES; i++)
		REQUIRE(pthread_create(&thread[i], NULL, fill_and_empty, (void *) i) == 0);
	for (int round = 0; round < ROUNDS; round++)
	{
		give(&st[1 + round % (TABLES - 1)], 7 + (uint32_t) round / (TABLES - 1) % 2);
		usleep(500);
	}
	atomic_store(&stop, true);
	for (int i = 1; i < TABLES; i++)
		REQUIRE(pthread_join(thread[i], NULL) == 0);
	check_sums();
	CHECK(group_bytes(&st[1]) > 0);
	for (int i = 1; i < TABLES; i++)
		mot_table_drop(s, st[i].table);
	while (mot_reclaim_all(s) > 0)
		;
	CHECK(report(MOT_QUOTA_ROLE, 7).bytes == 0 && report(MOT_QUOTA_ROLE, 8).bytes == 0);
	CHECK(report(MOT_QUOTA_DATABASE, DATABASE).bytes == group_bytes(&st[0]));
	for (int i = 0; i < 2; i++)
		mot_quota_release(st[0].engine, held[i]);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(tables_are_limited_together);
	RUN(a_late_reader_of_limits_has_no_effect);
	RUN(new_rows_leave_a_reserve);
	RUN(owners_change_while_pages_come_and_go);
	return test_end();
}
