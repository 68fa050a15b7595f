/*-------------------------------------------------------------------------
 *
 * test_small.c
 *	  Many small tables: what each takes, that it grows as it fills, and that
 *	  all of it comes back.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"
#include "txn_util.h"

#define TABLES 5000

static store st[TABLES];

static uint64_t
taken(void)
{
	mot_memory_report r;

	mot_memory_report_get(st[0].engine, &r);
	return r.used_bytes;
}

/* a table with a key and so many rows, each inserted, updated and read */
static void
make_table(store *t, mot_session *s, uint32_t number, uint64_t rows)
{
	REQUIRE(mot_table_create(s, 1, 1000 + number, &t->table) == MOT_OK);
	REQUIRE(mot_index_create(s, t->table, 100000 + number, MOT_INDEX_UNIQUE, &t->by_id.index) == MOT_OK);
	mot_index_attach(t->by_id.index);
	t->by_id.matches = id_matches;
	t->by_id.exact = true;
	(void) mot_table_publish(t->engine, t->table);
	begin(s);
	for (uint64_t i = 0; i < rows; i++)
		REQUIRE(insert(t, s, 1, i, (int64_t) number) == MOT_OK);
	commit(s);
}

/* do all have their rows, by key, by a walk, and by where they are? */
static uint64_t
check_table(store *t, mot_session *s, int64_t number)
{
	mot_view	view = begin_view(s, 1);
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;
	uint64_t	n = 0;

	mot_scan_begin(s, &scan, t->table, &view);
	while (mot_scan_next(s, &scan, &row, &version))
	{
		const record *r = mot_version_data(version);
		mot_row    *found;
		const record *by_key = get(t, s, &view, r->id, &found, NULL);

		CHECK(r->value == number && by_key == r && found == row);
		CHECK(mot_row_by_number(s, t->table, mot_row_number(s, row)) == row);
		n++;
	}
	end_view(s);
	return n;
}

static void
tables_of_one_row(void)
{
	mot_session *s;
	uint64_t	before;
	uint64_t	each;

	store_create(&st[0], (size_t) 512 << 20, 4, MOT_ENGINE_PRIVATE, false);
	s = open_session(st[0].engine, 0);
	before = taken();
	for (uint32_t i = 1; i < TABLES; i++)
	{
		st[i].engine = st[0].engine;
		make_table(&st[i], s, i, 1);
	}
	each = (taken() - before) / (TABLES - 1);
	printf("# %llu bytes a table\n", (unsigned long long) each);
	CHECK(each <= 32 * 1024);
	for (uint32_t i = 1; i < TABLES; i += 7)
	{
		mot_table_stat stat;

		CHECK(check_table(&st[i], s, i) == 1);
		mot_table_stats(st[i].table, &stat);
		CHECK(stat.row_bytes == MOT_LOT_SIZE && stat.index_bytes == MOT_LOT_SIZE);
	}

	/* neighbours go, others stay as they are, and grow */
	for (uint32_t i = 1; i < TABLES; i += 2)
		mot_table_drop(s, st[i].table);
	drain(&st[0], s);
	for (uint32_t i = 2; i < TABLES; i += 2)
		CHECK(check_table(&st[i], s, i) == 1);
	begin(s);
	for (uint64_t i = 1; i < 20000; i++)
		REQUIRE(insert(&st[2], s, 1, i, 2) == MOT_OK);
	commit(s);
	CHECK(check_table(&st[2], s, 2) == 20000);
	for (uint32_t i = 4; i < TABLES; i += 2)
		CHECK(check_table(&st[i], s, i) == 1);
	for (uint32_t i = 2; i < TABLES; i += 2)
		mot_table_drop(s, st[i].table);
	drain(&st[0], s);
	mot_session_close(s);
	s = open_session(st[0].engine, 0);
	drain(&st[0], s);
	printf("# %lld bytes are left\n", (long long) (taken() - before));
	CHECK(taken() <= before + 16 * MOT_PAGE_SIZE);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

/* as many bytes as there are rows, about, from one to many */
static void
it_grows_as_it_fills(void)
{
	mot_session *s;
	uint64_t	before;

	memset(st, 0, sizeof(st));
	store_create(&st[0], (size_t) 512 << 20, 4, MOT_ENGINE_PRIVATE, false);
	s = open_session(st[0].engine, 0);
	before = taken();
	for (uint32_t i = 1; i <= 16; i++)
	{
		mot_table_stat stat;
		uint64_t	rows = UINT64_C(1) << i;

		st[i].engine = st[0].engine;
		make_table(&st[i], s, i, rows);
		mot_table_stats(st[i].table, &stat);
		CHECK(check_table(&st[i], s, i) == rows);
		CHECK(stat.row_bytes + stat.index_bytes <= 4 * MOT_LOT_SIZE + rows * 200);
	}
	CHECK(taken() - before <= (16 + 1) * 40 * 1024 + (UINT64_C(2) << 16) * 150);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

/* add keys to a row until that fails */
static mot_status
add_keys(store *t, mot_session *s, mot_row *row, uint64_t *n)
{
	mot_status	status;
	mot_row    *other;
	uint8_t		key[8];

	do
	{
		put_key(key, ++*n);
		status = mot_index_add(s, &t->by_id, row, key, 8, 0, &other);
	} while (status == MOT_OK);
	return status;
}

/* what keeps a table in lots from another one is said to be its limit only if it is */
static void
full_memory_is_no_full_table(void)
{
	mot_session *s;
	mot_row    *row;
	void	   *data;
	mot_table_stat stat;
	uint64_t	n = 1 << 20;
	uint64_t	bytes;

	memset(st, 0, sizeof(st));
	store_create(&st[0], (size_t) 16 << 20, 4, MOT_ENGINE_PRIVATE, false);
	s = open_session(st[0].engine, 0);
	st[1].engine = st[0].engine;
	make_table(&st[1], s, 1, 1);
	begin(s);
	/* (a limit has a reserve of its own, which takes that many rows) */
	for (int i = 0; i < 3000; i++)
		REQUIRE(mot_row_insert(s, st[1].table, 1, 5, sizeof(record), &row, &data) == MOT_OK);
	for (uint64_t i = 0; insert(&st[0], s, 1, i, 0) == MOT_OK; i++)
		;
	CHECK(add_keys(&st[0], s, row, &n) == MOT_NO_MEMORY);
	CHECK(add_keys(&st[1], s, row, &n) == MOT_NO_MEMORY);
	mot_table_stats(st[1].table, &stat);
	CHECK(stat.index_bytes < MOT_LOTS_MOST);
	bytes = stat.row_bytes + stat.index_bytes;
	mot_table_set_limit(st[1].table, bytes + MOT_PAGE_SIZE / 2 - MOT_GROUP_RESERVE / 2);
	CHECK(add_keys(&st[1], s, row, &n) == MOT_NO_MEMORY);
	mot_table_set_limit(st[1].table, bytes - MOT_GROUP_RESERVE / 2);
	CHECK(add_keys(&st[1], s, row, &n) == MOT_TABLE_FULL);
	mot_txn_abort(s);
	end_view(s);
	mot_session_close(s);
	mot_engine_destroy(st[0].engine);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(tables_of_one_row);
	RUN(it_grows_as_it_fills);
	RUN(full_memory_is_no_full_table);
	return test_end();
}
