/*-------------------------------------------------------------------------
 *
 * test_hint.c
 *	  Hints where rows are: who has found or added a row leaves one, keys that
 *	  follow one another have their places side by side, rows are found by them
 *	  without the tree, and no answer depends on them.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"
#include "tree/tree_node.h"

#define ROWS 20000
#define STEP 3					/* of three numbers one is an id */

static store st;
static mot_session *s;

static const mot_hints *
hints(void)
{
	return &st.by_id.index->hints;
}

static _Atomic uint32_t *
hint_of(uint64_t id)
{
	uint8_t		key[8];

	put_key(key, id);
	return mot_hint(hints(), key, sizeof(key));
}

static uint32_t
line_of(const mot_row *row)
{
	return (uint32_t) (((uintptr_t) row - (uintptr_t) hints()->base) / MOT_CACHE_LINE);
}

static void
setup(void)
{
	store_create(&st, (size_t) 64 << 20, 2, MOT_ENGINE_PRIVATE, false);
	s = open_session(st.engine, 0);
	for (uint64_t i = 0; i < ROWS; i++)
	{
		begin(s);
		REQUIRE(insert(&st, s, 1, i * STEP, (int64_t) i) == MOT_OK);
		commit(s);
	}
}

static void
teardown(void)
{
	end_view(s);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

static void
numbers_lie_side_by_side(void)
{
	uint32_t	n;
	const		_Atomic uint32_t *first = mot_region_hints(st.engine->region, &n);

	CHECK(hints()->mask == n - 1 && (n & (n - 1)) == 0);
	for (uint64_t id = 1; id < 3 * (uint64_t) n; id += 1 + test_random() % 5)
	{
		uint32_t	here = (uint32_t) (hint_of(id) - first),
					next = (uint32_t) (hint_of(id + 1) - first);
		uint8_t		small[4] = {0x80, (uint8_t) (id >> 16), (uint8_t) (id >> 8), (uint8_t) id};
		uint8_t		after[4] = {0x80, (uint8_t) ((id + 1) >> 16), (uint8_t) ((id + 1) >> 8), (uint8_t) (id + 1)};

		CHECK(next == ((here + 1) & (n - 1)));
		CHECK(((mot_hint(hints(), small, 4) - first + 1) & (n - 1)) == mot_hint(hints(), after, 4) - first ||
			  (id & 0xffffff) == 0xffffff);
	}
	/* and keys of any length have a place */
	for (int i = 0; i < 100000; i++)
	{
		uint8_t		key[40];
		size_t		len = test_random() % (sizeof(key) + 1);

		for (size_t k = 0; k < len; k++)
			key[k] = (uint8_t) test_random();
		CHECK((size_t) (mot_hint(hints(), key, len) - first) < n);
	}
}

static void
who_finds_a_row_leaves_a_hint(void)
{
	mot_view	view = begin_view(s, 1);

	for (uint64_t i = 0; i < ROWS; i++)
	{
		uint64_t	id = i * STEP;
		uint32_t	added = atomic_load(hint_of(id));
		mot_row    *row;

		atomic_store(hint_of(id), 0);
		atomic_store(hint_of(id + 1), 0);
		REQUIRE(get(&st, s, &view, id, &row, NULL) != NULL);
		/* who added it did, too */
		CHECK(added == line_of(row));
		CHECK(atomic_load(hint_of(id)) == line_of(row));
		CHECK(get(&st, s, &view, id + 1, NULL, NULL) == NULL);
		CHECK(atomic_load(hint_of(id + 1)) == 0);
	}
	end_view(s);
}

/* or wrong hints would not be looked at any more */
static void
trust_hints(void)
{
	memset(s->hint_trust, HINT_TRUST_MAX, sizeof(s->hint_trust));
}

static bool
trusted(void)
{
	return s->hint_trust[hints()->trust] >= HINT_TRUST_HALF;
}

static void
rows_are_found_without_the_tree(void)
{
	mot_tree   *tree = st.by_id.index->tree;
	mot_view	view = begin_view(s, 1);
	mot_node   *root = atomic_load(&tree->root);

	for (uint64_t i = 0; i < ROWS; i++)
		REQUIRE(get(&st, s, &view, i * STEP, NULL, NULL) != NULL);
	trust_hints();
	atomic_store(&tree->root, NULL);
	for (uint64_t i = 0; i < ROWS; i++)
	{
		const record *r = get(&st, s, &view, i * STEP, NULL, NULL);

		CHECK(r != NULL && r->id == i * STEP);
	}
	atomic_store(&tree->root, root);

	/* whose key cannot be told from the row is looked up in the tree */
	st.by_id.exact = false;
	atomic_store(hint_of(0), atomic_load(hint_of(STEP)));
	CHECK(get(&st, s, &view, 0, NULL, NULL)->id == 0);
	st.by_id.exact = true;
	end_view(s);
}

/* for as long as most of them are wrong */
static void
wrong_hints_are_not_looked_at(void)
{
	mot_view	view = begin_view(s, 1);
	uint64_t	id = 0;

	trust_hints();
	for (int n = 0; n < 20; n++, id += STEP)
	{
		atomic_store(hint_of(id), 1);
		CHECK(get(&st, s, &view, id, NULL, NULL) != NULL);
	}
	CHECK(!trusted());
	/* nor are those of keys that are not there a reason to trust */
	for (int n = 0; n < 100; n++)
	{
		atomic_store(hint_of(1), atomic_load(hint_of(0)));
		CHECK(get(&st, s, &view, 1, NULL, NULL) == NULL);
	}
	CHECK(!trusted());
	for (int n = 0; n < 20; n++, id += STEP)
	{
		CHECK(get(&st, s, &view, id, NULL, NULL) != NULL);
		CHECK(get(&st, s, &view, id, NULL, NULL) != NULL);
	}
	CHECK(trusted());
	end_view(s);
}

/* a row that has another key now, or is gone, or has come back as another one */
static void
hints_of_changed_rows(void)
{
	mot_session *other = open_session(st.engine, 1);

	for (int round = 0; round < 200; round++)
	{
		uint64_t	id = test_random() % ROWS * STEP;
		mot_view	old = begin_view(other, 1);
		mot_view	view;
		mot_row    *row;
		const record *r;

		trust_hints();
		memset(other->hint_trust, HINT_TRUST_MAX, sizeof(other->hint_trust));
		REQUIRE(get(&st, other, &old, id, &row, NULL) != NULL);
		begin(s);
		view = begin_view(s, 1);
		switch (round % 3)
		{
			case 0:
				REQUIRE(delete_id(&st, s, &view, 1, id) == MOT_OK);
				break;
			case 1:
				REQUIRE(delete_id(&st, s, &view, 1, id) == MOT_OK);
				view.command = 2;
				REQUIRE(insert(&st, s, 2, id, -1) == MOT_OK);
				break;
			default:
				{
					mot_row    *mine;
					const mot_version *seen;

					REQUIRE(get(&st, s, &view, id, &mine, &seen) != NULL);
					REQUIRE(update_row(&st, s, &view, 1, mine, seen, id + 1, -1) == MOT_OK);
				}
		}

		/*
		 * the new one's is as wrong for the old snapshot as the old one's is
		 * for the new
		 */
		for (int look = 0; look < 4; look++)
		{
			atomic_store(hint_of(id), line_of(row));
			atomic_store(hint_of(id + 1), line_of(row));
			if (look == 2)
			{
				commit(s);
				view = begin_view(s, 1);
			}
			view.command = 3;
			r = get(&st, other, &old, id, NULL, NULL);
			CHECK(r != NULL && r->id == id && r->value >= 0);
			CHECK(get(&st, other, &old, id + 1, NULL, NULL) == NULL);
			r = get(&st, s, &view, id, NULL, NULL);
			CHECK(round % 3 == 1 ? r != NULL && r->id == id && r->value == -1 : r == NULL);
			r = get(&st, s, &view, id + 1, NULL, NULL);
			CHECK(round % 3 == 2 ? r != NULL && r->id == id + 1 && r->value == -1 : r == NULL);
		}
		end_view(s);
		end_view(other);

		/* as it was */
		begin(s);
		view = begin_view(s, 1);
		if (round % 3 != 0)
			REQUIRE(delete_id(&st, s, &view, 1, round % 3 == 1 ? id : id + 1) == MOT_OK);
		REQUIRE(insert(&st, s, 2, id, (int64_t) (id / STEP)) == MOT_OK);
		commit(s);
		drain(&st, s);
	}
	mot_session_close(other);
}

/*
 * A row that is hinted in vain is not waited for, and has not been seen, as little as one that is
 * not hinted.
 */
static void
wrong_hints_leave_no_trace(void)
{
	mot_session *other = open_session(st.engine, 1);
	uint64_t	id = 20 * STEP;
	uint64_t	changed = 21 * STEP;
	mot_view	view;
	mot_row    *row;
	const record *r;
	mot_ts		ts;

	/* committed, but not yet to be seen: who reads it waits */
	begin(other);
	view = begin_view(other, 1);
	REQUIRE(get(&st, other, &view, changed, &row, NULL) != NULL);
	REQUIRE(update(&st, other, &view, 1, changed, 7) == MOT_OK);
	REQUIRE(mot_txn_prepare(other) == MOT_OK);
	for (int looks = 0; looks < 2; looks++)
	{
		view = begin_view(s, 1);
		mot_txn_begin(s, MOT_READ_COMMITTED, view.snapshot, 8);
		trust_hints();
		atomic_store(hint_of(id), line_of(row));
		alarm(20);
		r = get(&st, s, &view, id, NULL, NULL);
		alarm(0);
		CHECK(r != NULL && r->id == id);
		ts = s->seen;
		/* the same for one that is not in the way */
		atomic_store(hint_of(id), line_of(row));
		CHECK(get(&st, s, &view, id, NULL, NULL) == r);
		CHECK(s->seen == ts);
		if (looks == 0)
		{
			(void) mot_txn_commit(other);
			end_view(other);
		}
		else
		{
			CHECK(get(&st, s, &view, changed, NULL, NULL)->value == 7);
			CHECK(s->seen > ts);
		}
		mot_txn_abort(s);
		end_view(s);
	}
	mot_session_close(other);
}

/* two rows may begin in one line */
static bool
number_matches(void *arg, const mot_version *version, const void *key, size_t len)
{
	(void) arg;
	return len == 8 && memcmp(mot_version_data(version), key, 8) == 0;
}

static void
small_rows_are_found_too(void)
{
	mot_table  *table;
	mot_index_handle handle = {.matches = number_matches,.exact = true};
	mot_view	view;
	mot_node   *root;
	uint8_t		key[8];
	mot_row    *row,
			   *other;
	const mot_version *version;
	void	   *data;

	REQUIRE(mot_table_create(s, 1, 200, &table) == MOT_OK);
	REQUIRE(mot_index_create(s, table, 201, MOT_INDEX_UNIQUE, &handle.index) == MOT_OK);
	mot_index_attach(handle.index);
	(void) mot_table_publish(st.engine, table);
	begin(s);
	for (uint64_t i = 0; i < 1000; i++)
	{
		put_key(key, i);
		REQUIRE(mot_row_insert(s, table, 1, 5, sizeof(key), &row, &data) == MOT_OK);
		memcpy(data, key, sizeof(key));
		REQUIRE(mot_index_add(s, &handle, row, key, sizeof(key), 0, &other) == MOT_OK);
	}
	commit(s);
	trust_hints();
	view = begin_view(s, 1);
	root = atomic_load(&handle.index->tree->root);
	atomic_store(&handle.index->tree->root, NULL);
	for (uint64_t i = 0; i < 1000; i++)
	{
		put_key(key, i);
		CHECK(mot_index_get(s, &view, &handle, key, sizeof(key), &row, &version) == MOT_OK);
		CHECK(memcmp(mot_version_data(version), key, sizeof(key)) == 0);
	}
	atomic_store(&handle.index->tree->root, root);
	end_view(s);
}

/* SERIALIZABLE: a row found by its hint has been read; one that was hinted in vain has not */
static void
reads_by_hint_are_validated(void)
{
	mot_session *other = open_session(st.engine, 1);

	for (int wrong = 0; wrong < 2; wrong++)
	{
		uint64_t	id = (uint64_t) (10 + wrong) * STEP;
		uint64_t	hinted = wrong ? id + STEP : id;
		mot_view	view = begin_view(s, 1);
		mot_node   *root;

		REQUIRE(get(&st, s, &view, id, NULL, NULL) != NULL);
		REQUIRE(get(&st, s, &view, hinted, NULL, NULL) != NULL);
		end_view(s);
		trust_hints();
		view = begin_view(s, 1);
		mot_txn_begin(s, MOT_SERIALIZABLE, view.snapshot, 8);
		root = atomic_load(&st.by_id.index->tree->root);
		if (!wrong)
			atomic_store(&st.by_id.index->tree->root, NULL);
		atomic_store(hint_of(id), atomic_load(hint_of(hinted)));
		CHECK(get(&st, s, &view, id, NULL, NULL) != NULL);
		atomic_store(&st.by_id.index->tree->root, root);
		change(&st, other, hinted, 1000 + wrong);
		/* (who only reads is never in anybody's way) */
		CHECK(update(&st, s, &view, 1, 40 * STEP, wrong) == MOT_OK);
		CHECK(mot_txn_prepare(s) == (wrong ? MOT_OK : MOT_CONFLICT_READ));
		if (wrong)
			(void) mot_txn_commit(s);
		else
			mot_txn_abort(s);
		end_view(s);
	}
	mot_session_close(other);
}

/* any other row's, any memory, and none at all */
static void
no_answer_depends_on_hints(void)
{
	uint32_t	n;
	_Atomic uint32_t *first = mot_region_hints(st.engine->region, &n);
	mot_view	view = begin_view(s, 1);

	for (int round = 0; round < 3; round++)
	{
		for (uint32_t i = 0; i < n; i++)
			atomic_store(&first[i], round == 0 ? 0 : round == 1 ? (uint32_t) test_random() :
						 atomic_load(&first[test_random() % n]));
		for (uint64_t id = 0; id < ROWS * STEP; id++)
		{
			uint8_t		key[8];
			mot_row    *row;
			const mot_version *version;
			bool		there = id % STEP == 0;
			const record *r;

			trust_hints();
			r = get(&st, s, &view, id, NULL, NULL);
			CHECK(there ? r != NULL && r->value == (int64_t) (id / STEP) : r == NULL);
			put_key(key, id);
			trust_hints();
			mot_index_ahead(&st.by_id, key, sizeof(key));
			if (id % 2)
				mot_index_ahead_more(&st.by_id, key, sizeof(key));
			CHECK(mot_index_get(s, &view, &st.by_id, key, sizeof(key), &row, &version) ==
				  (there ? MOT_OK : MOT_NOT_FOUND));
			CHECK(!there || mot_version_data(version) == (const void *) r);
		}
	}
	end_view(s);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	setup();
	RUN(numbers_lie_side_by_side);
	RUN(who_finds_a_row_leaves_a_hint);
	RUN(rows_are_found_without_the_tree);
	RUN(wrong_hints_are_not_looked_at);
	RUN(hints_of_changed_rows);
	RUN(no_answer_depends_on_hints);
	RUN(wrong_hints_leave_no_trace);
	RUN(small_rows_are_found_too);
	RUN(reads_by_hint_are_validated);
	teardown();
	return test_end();
}
