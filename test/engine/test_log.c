/*-------------------------------------------------------------------------
 *
 * test_log.c
 *	  What the engine does for its host's log: the changes of a transaction,
 *	  commits that are not durable yet, descriptions of tables, tables that
 *	  are not settled.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

static store st;
static mot_session *a,
		   *b;

static mot_view
begin_at(mot_session *s, mot_isolation level)
{
	mot_view	v = begin_view(s, 1);

	mot_txn_begin(s, level, v.snapshot, 7);
	return v;
}

static void
setup(void)
{
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, true);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
}

static void
teardown(void)
{
	mot_session_close(a);
	mot_session_close(b);
	mot_engine_destroy(st.engine);
}

/* id and kind of each change, as a string */
static void
changes(mot_session *s, char *out)
{
	uint64_t	pos = 0;
	mot_change	c;

	*out = '\0';
	while (mot_txn_next_change(s, &pos, &c))
	{
		const mot_version *v = c.after ? c.after : c.before;
		const record *r = mot_version_data(v);

		CHECK(c.table == st.table);
		CHECK((c.before == NULL) == (c.kind == MOT_CHANGE_INSERT));
		CHECK((c.after == NULL) == (c.kind == MOT_CHANGE_DELETE));
		out += sprintf(out, "%c%d=%d ", "IUD"[c.kind], (int) r->id, (int) r->value);
	}
}

static void
changes_in_order(void)
{
	mot_isolation levels[] = {MOT_READ_COMMITTED, MOT_SNAPSHOT, MOT_SERIALIZABLE};

	for (int i = 0; i < 3; i++)
	{
		char text[	200];
		mot_view	v;
		mot_mark	mark;

		setup();
		v = begin_at(a, levels[i]);
		CHECK(insert(&st, a, 1, 1, 10) == MOT_OK);
		CHECK(insert(&st, a, 1, 2, 20) == MOT_OK);
		v.command = 2;
		CHECK(update(&st, a, &v, 2, 1, 11) == MOT_OK);
		mark = mot_txn_mark(a);
		v.command = 3;
		CHECK(update(&st, a, &v, 3, 2, 99) == MOT_OK);
		mot_txn_rollback_to(a, mark);
		CHECK(mot_txn_prepare(a) == MOT_OK);
		changes(a, text);
		CHECK(strcmp(text, "I1=10 I2=20 U1=11 ") == 0);
		(void) mot_txn_commit(a);
		end_view(a);

		v = begin_at(a, levels[i]);
		CHECK(update(&st, a, &v, 1, 2, 20) == MOT_OK);	/* no key changes:
														 * deferred */
		CHECK(delete_id(&st, a, &v, 1, 1) == MOT_OK);
		CHECK(mot_txn_prepare(a) == MOT_OK);
		changes(a, text);
		CHECK(strcmp(text, "U2=20 D1=11 ") == 0);
		(void) mot_txn_commit(a);
		end_view(a);
		teardown();
	}
}

/* who sees, or misses, what is not durable is told; nobody else is */
static void
undurable_commits(void)
{
	mot_view	v;

	setup();
	(void) begin_at(a, MOT_READ_COMMITTED);
	for (int id = 1; id <= 3; id++)
		CHECK(insert(&st, a, 1, (uint64_t) id, id * 10) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	(void) mot_txn_commit(a);
	end_view(a);
	(void) mot_session_needs(a);

	for (int level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
	{
		v = begin_at(a, (mot_isolation) level);
		CHECK(update(&st, a, &v, 1, 1, 100 + level) == MOT_OK);
		CHECK(mot_txn_prepare(a) == MOT_OK);
		mot_commit_announce(a, 5000);
		(void) mot_txn_commit(a);
		end_view(a);

		v = begin_view(b, 1);
		CHECK(get(&st, b, &v, 2, NULL, NULL) != NULL);
		CHECK(mot_session_needs(b) == 0);
		CHECK(get(&st, b, &v, 1, NULL, NULL)->value == 100 + level);
		CHECK(mot_session_needs(b) == 5000);
		CHECK(mot_session_needs(b) == 0);	/* forgotten */
		CHECK(get(&st, b, &v, 1, NULL, NULL) != NULL);
		end_view(b);
		mot_commit_durable(a);
		CHECK(mot_session_needs(b) == 0);
		CHECK(mot_session_needs(a) == 0);
	}

	/* a row deleted, with its entry reclaimed as soon as may be */
	v = begin_at(a, MOT_READ_COMMITTED);
	CHECK(delete_id(&st, a, &v, 1, 3) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	mot_commit_announce(a, 6000);
	(void) mot_txn_commit(a);
	end_view(a);
	for (int i = 0; i < 4; i++)
		(void) mot_reclaim_all(b);
	v = begin_view(b, 1);
	CHECK(get(&st, b, &v, 3, NULL, NULL) == NULL);
	CHECK(mot_session_needs(b) == 6000);
	end_view(b);
	mot_commit_durable(a);
	for (int i = 0; i < 4; i++)
		(void) mot_reclaim_all(b);
	{
		mot_memory_report r;

		mot_memory_report_get(st.engine, &r);
		CHECK(r.retired_objects == 0);
	}

	/* a duplicate is something seen, too */
	(void) begin_at(a, MOT_READ_COMMITTED);
	CHECK(insert(&st, a, 1, 9, 90) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	mot_commit_announce(a, 7000);
	(void) mot_txn_commit(a);
	end_view(a);
	(void) begin_at(b, MOT_READ_COMMITTED);
	CHECK(insert(&st, b, 1, 9, 91) == MOT_DUPLICATE);
	mot_txn_abort(b);
	CHECK(mot_session_needs(b) == 7000);
	end_view(b);
	mot_commit_durable(a);

	/* nothing announced at SERIALIZABLE: nothing stays behind */
	v = begin_at(a, MOT_SERIALIZABLE);
	CHECK(update(&st, a, &v, 1, 1, 1) == MOT_OK);
	CHECK(mot_txn_prepare(a) == MOT_OK);
	(void) mot_txn_commit(a);
	end_view(a);
	CHECK(mot_engine_horizon(st.engine) == mot_engine_clock(st.engine));
	teardown();
}

static void
definitions(void)
{
	mot_definition *d;
	size_t		len;
	char		big[100000];

	setup();
	CHECK(mot_table_definition(st.table, &len) == NULL && len == 0);
	CHECK(mot_definition_make(a, "one", 4, &d) == MOT_OK);
	mot_table_put_definition(a, st.table, d);
	CHECK(strcmp(mot_table_definition(st.table, &len), "one") == 0 && len == 4);
	memset(big, 'x', sizeof(big));
	CHECK(mot_definition_make(a, big, sizeof(big), &d) == MOT_OK);
	mot_table_put_definition(a, st.table, d);
	CHECK(memcmp(mot_table_definition(st.table, &len), big, sizeof(big)) == 0);
	CHECK(mot_definition_make(a, "x", 2, &d) == MOT_OK);
	mot_definition_discard(a, d);
	teardown();
}

static void
unsettled_tables(void)
{
	mot_table  *t,
			   *old = NULL;

	setup();
	CHECK(mot_table_is_settled(st.table, &old));
	CHECK(mot_table_create(a, 1, 100, &t) == MOT_OK);
	mot_table_set_unsettled(t, st.table);
	CHECK(mot_table_publish(st.engine, t) == st.table);
	CHECK(!mot_table_is_settled(t, &old) && old == st.table);
	mot_table_settle(t);
	CHECK(mot_table_is_settled(t, &old));
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(changes_in_order);
	RUN(undurable_commits);
	RUN(definitions);
	RUN(unsettled_tables);
	return test_end();
}
