/*-------------------------------------------------------------------------
 *
 * test_small.c
 *	  Many small tables: what each takes, that it grows as it fills, and that
 *	  all of it comes back.
 *
 *-------------------------------------------------------------------------
 */
#include "memory_internal.h"
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

	mot_scan_begin(s, &scan, t->table, &view, NULL);
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

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(tables_of_one_row);
	RUN(it_grows_as_it_fills);
	return test_end();
}
