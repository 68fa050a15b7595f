/*-------------------------------------------------------------------------
 *
 * test_host.c
 *	  The host's own bytes, and tables that are loaded and then stamped.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_util.h"

static store st;
static mot_session *a,
		   *b;

static int
rows_seen(mot_session *s, mot_ts snapshot)
{
	mot_view	view = {snapshot, MOT_COMMAND_MAX, NULL, false};
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;
	int			n = 0;

	mot_scan_begin(s, &scan, st.table, &view);
	while (mot_scan_next(s, &scan, &row, &version))
		n++;
	return n;
}

static void
a_stamped_load_is_seen_by_newer_snapshots_only(void)
{
	mot_ts		before,
				stamp,
				after;

	before = mot_snapshot_take(b);
	for (uint64_t id = 1; id <= 500; id++)
	{
		mot_row    *row,
				   *other;
		record	   *data;
		uint8_t		key[8];

		REQUIRE(mot_load_row(a, st.table, 0, sizeof(record), &row, (void **) &data) == MOT_OK);
		memset(data, 0, sizeof(*data));
		data->id = id;
		put_key(key, id);
		REQUIRE(mot_load_key(a, &st.by_id, row, key, 8, 0, &other) == MOT_OK);
	}
	CHECK(rows_seen(b, before) == 500);

	stamp = mot_load_stamp(a, st.table);
	CHECK(stamp > before);
	CHECK(rows_seen(b, before) == 0);
	after = mot_snapshot_take(a);
	CHECK(after >= stamp);
	CHECK(rows_seen(a, after) == 500);
	mot_snapshot_hold(a, MOT_TS_NONE);
	mot_snapshot_hold(b, MOT_TS_NONE);
}

static void
host_bytes_come_and_go(void)
{
	mot_memory_report before,
				with,
				after;
	mot_status	status;
	char	   *small,
			   *large;

	mot_memory_report_get(st.engine, &before);
	small = mot_host_alloc(a, 1, true, &status);
	REQUIRE(small != NULL && status == MOT_OK);
	large = mot_host_alloc(a, 8 << 20, true, &status);
	REQUIRE(large != NULL && status == MOT_OK);
	memset(large, 'x', 8 << 20);
	mot_memory_report_get(st.engine, &with);
	CHECK(with.used_bytes >= before.used_bytes + (8 << 20));

	/* by another session than the one that asked for them */
	mot_host_free(b, large);
	mot_host_free(b, small);
	mot_memory_report_get(st.engine, &after);
	CHECK(after.used_bytes < with.used_bytes);

	CHECK(mot_host_alloc(a, (size_t) 1 << 40, true, &status) == NULL);
	CHECK(status == MOT_NO_MEMORY);
}

/* fill the region with rows, as far as it goes for this session */
static uint64_t
fill(mot_session *s)
{
	uint64_t	n = 0;

	for (;;)
	{
		mot_row    *row;
		void	   *data;
		mot_status	status = mot_load_row(s, st.table, 0, 8000, &row, &data);

		if (status != MOT_OK)
		{
			CHECK(status == MOT_NO_MEMORY);
			return n;
		}
		n++;
	}
}

static void
what_is_not_needed_leaves_the_reserve(void)
{
	mot_status	status;
	void	   *needed;

	CHECK(fill(a) > 1000);
	CHECK(mot_host_alloc(a, 128 << 10, false, &status) == NULL);
	CHECK(status == MOT_NO_MEMORY);
	needed = mot_host_alloc(a, 128 << 10, true, &status);
	REQUIRE(needed != NULL);
	mot_host_free(a, needed);
}

static void
replay_may_use_the_reserve(void)
{
	CHECK(fill(a) == 0);
	mot_session_use_reserve(a, true);
	CHECK(fill(a) > 100);
	mot_session_use_reserve(a, false);
	CHECK(fill(a) == 0);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	RUN(a_stamped_load_is_seen_by_newer_snapshots_only);
	RUN(host_bytes_come_and_go);
	RUN(what_is_not_needed_leaves_the_reserve);
	RUN(replay_may_use_the_reserve);
	return test_end();
}
