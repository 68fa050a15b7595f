/*-------------------------------------------------------------------------
 *
 * test_hint.c
 *	  Hints where rows are: who has found or added a row leaves one, keys that
 *	  follow one another have their places side by side, and no answer depends
 *	  on them.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

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
	const _Atomic uint32_t *first = mot_region_hints(st.engine->region, &n);

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
			mot_ahead	ahead;
			mot_row    *row;
			const mot_version *version;
			bool		there = id % STEP == 0;
			const record *r = get(&st, s, &view, id, NULL, NULL);

			CHECK(there ? r != NULL && r->value == (int64_t) (id / STEP) : r == NULL);
			put_key(key, id);
			mot_index_ahead(&st.by_id, key, sizeof(key), &ahead);
			CHECK(mot_index_get(s, &view, &st.by_id, key, sizeof(key), &ahead, &row, &version) ==
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
	RUN(no_answer_depends_on_hints);
	teardown();
	return test_end();
}
