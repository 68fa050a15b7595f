/*-------------------------------------------------------------------------
 *
 * test_entries.c
 *	  What is verified of an index (verify.c): each entry is told, with its row, and whether a
 *	  row's entry is there; and how many lie within bounds.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

enum
{
	ROWS = 3000,
	ALIKE = 100					/* of one value */
};

static void
fill(store *st, mot_session **s)
{
	store_create(st, (size_t) 64 << 20, 2, MOT_ENGINE_PRIVATE, true);
	*s = open_session(st->engine, 0);
	begin(*s);
	for (uint64_t i = 0; i < ROWS; i++)
		REQUIRE(insert(st, *s, 1, i, (int64_t) (i / ALIKE)) == MOT_OK);
	commit(*s);
}

/* another id */
static mot_status
rename_row(store *st, mot_session *s, const mot_view *view, uint64_t id, uint64_t new_id)
{
	mot_row    *row;
	const mot_version *seen;
	const record *r = get(st, s, view, id, &row, &seen);

	REQUIRE(r != NULL);
	return update_row(st, s, view, 1, row, seen, new_id, r->value);
}

static uint64_t
key_number(const uint8_t *key)
{
	uint64_t	n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | key[i];
	return n;
}

static bool
has(store *st, mot_session *s, const mot_index_handle *handle, uint64_t id, uint64_t n)
{
	mot_view	view = begin_view(s, 2);
	mot_row    *row;
	uint8_t		key[8];
	bool		found;

	REQUIRE(get(st, s, &view, id, &row, NULL) != NULL);
	put_key(key, n);
	found = mot_index_has_entry(s, handle->index, row, key, 8, 0);
	end_view(s);
	return found;
}

/* entries: how many, those of wrong rows or out of order, and what the first fault says */
static uint64_t
look(mot_session *s, const mot_index_handle *handle, bool by_id, uint64_t *wrong, const char **fault)
{
	mot_cursor *c = malloc(mot_cursor_size());
	mot_entry	entry;
	uint64_t	n = 0;
	uint64_t	last = 0;

	(void) begin_view(s, 2);
	*wrong = 0;
	*fault = NULL;
	REQUIRE(c != NULL && mot_entries_open(s, c, handle->index, NULL, NULL, false) == MOT_OK);
	while (mot_entries_next(c, &entry))
	{
		const record *r;
		uint64_t	number;

		n++;
		if (entry.row == NULL)
		{
			if (*fault == NULL)
				*fault = entry.fault;
			continue;
		}
		if (entry.fault != NULL && *fault == NULL)
			*fault = entry.fault;
		r = mot_version_data(mot_row_newest(s, entry.row));
		number = key_number(entry.key);
		*wrong += entry.len != 8 || number < last || number != (by_id ? r->id : (uint64_t) r->value);
		last = number;
	}
	mot_cursor_close(c);
	free(c);
	end_view(s);
	return n;
}

static void
entries_and_their_rows(void)
{
	store		st;
	mot_session *s;
	uint64_t	wrong;
	const char *fault;

	fill(&st, &s);
	CHECK(look(s, &st.by_id, true, &wrong, &fault) == ROWS && wrong == 0 && fault == NULL);
	CHECK(look(s, &st.by_value, false, &wrong, &fault) == ROWS && wrong == 0 && fault == NULL);
	CHECK(has(&st, s, &st.by_id, 7, 7));
	CHECK(!has(&st, s, &st.by_id, 7, 8));
	CHECK(!has(&st, s, &st.by_id, 7, ROWS));
	CHECK(has(&st, s, &st.by_value, 2 * ALIKE + 1, 2));
	CHECK(!has(&st, s, &st.by_value, 2 * ALIKE + 1, 3));
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

/* two rows at one key: one that has it, one that an older snapshot still finds there */
static void
entries_of_older_keys(void)
{
	store		st;
	mot_session *s;
	mot_session *reader;
	mot_view	view;
	uint64_t	wrong;
	const char *fault;

	fill(&st, &s);
	reader = open_session(st.engine, 1);
	(void) begin_view(reader, 2);
	begin(s);
	view = begin_view(s, 1);
	REQUIRE(update(&st, s, &view, 1, 7, ROWS) == MOT_OK);
	commit(s);
	CHECK(has(&st, s, &st.by_value, 7, 0) && has(&st, s, &st.by_value, 7, ROWS));

	begin(s);
	view = begin_view(s, 1);
	REQUIRE(rename_row(&st, s, &view, 7, ROWS + 7) == MOT_OK);
	REQUIRE(insert(&st, s, 2, 7, 0) == MOT_OK);
	commit(s);
	CHECK(has(&st, s, &st.by_id, 7, 7));
	CHECK(has(&st, s, &st.by_id, ROWS + 7, 7) && has(&st, s, &st.by_id, ROWS + 7, ROWS + 7));
	CHECK(!has(&st, s, &st.by_id, 8, 7) && !has(&st, s, &st.by_id, 7, ROWS + 7));
	CHECK(look(s, &st.by_id, true, &wrong, &fault) == ROWS + 2 && wrong == 1 && fault == NULL);
	end_view(reader);
	mot_session_close(reader);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

static unsigned
count(mot_session *s, const mot_index_handle *handle, uint64_t from, uint64_t to, unsigned most)
{
	uint8_t		low[8];
	uint8_t		high[8];
	mot_bound	lower = {MOT_BOUND_INCLUSIVE, low, 8};
	mot_bound	upper = {MOT_BOUND_EXCLUSIVE, high, 8};

	put_key(low, from);
	put_key(high, to);
	return mot_entries_count(s, handle->index, &lower, &upper, most);
}

static void
entries_counted(void)
{
	store		st;
	mot_session *s;
	mot_view	view;
	mot_bound	none = {MOT_BOUND_NONE, NULL, 0};

	fill(&st, &s);
	CHECK(mot_snapshot_held(s) == MOT_TS_NONE);
	CHECK(count(s, &st.by_id, 100, 150, 1000) == 50);
	CHECK(count(s, &st.by_id, 100, 150, 50) == 50 && count(s, &st.by_id, 100, 150, 49) == 49);
	CHECK(count(s, &st.by_id, 100, 150, 0) == 0 && count(s, &st.by_id, 150, 100, 1000) == 0);
	CHECK(count(s, &st.by_id, ROWS - 5, ROWS + 5, 1000) == 5);
	CHECK(count(s, &st.by_value, 3, 5, 1000) == 2 * ALIKE);
	CHECK(mot_entries_count(s, st.by_value.index, &none, &none, 2 * ROWS) == ROWS);
	CHECK(mot_snapshot_held(s) == MOT_TS_NONE);

	/* what nobody sees counts as well, and whoever has a snapshot keeps it */
	begin(s);
	view = begin_view(s, 1);
	REQUIRE(update(&st, s, &view, 1, 7, 3) == MOT_OK);
	CHECK(count(s, &st.by_value, 3, 4, 1000) == ALIKE + 1 && count(s, &st.by_value, 0, 1, 1000) == ALIKE);
	CHECK(mot_snapshot_held(s) != MOT_TS_NONE);
	commit(s);
	mot_session_close(s);
	mot_engine_destroy(st.engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(entries_and_their_rows);
	RUN(entries_of_older_keys);
	RUN(entries_counted);
	return test_end();
}
