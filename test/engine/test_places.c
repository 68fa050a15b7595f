/*-------------------------------------------------------------------------
 *
 * test_places.c
 *	  Ranges of a table on nodes: new rows, versions, the mover, and processes
 *	  that keep to a node's cpus.  The nodes are pretended.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>

#include "memory/memory_internal.h"
#include "txn_util.h"

#define NODES 4
#define ROWS 20000				/* ids below this; a quarter of them a node */

/*
 * How many rows can stay elsewhere: of each page that two ranges share the fewer, and
 * how they lie in pages depends on what else has taken memory.
 */
#define MOST_ASTRAY ((NODES - 1) * MOT_PAGE_SIZE / (ROW_OVERHEAD + sizeof(record)) / 2)

static store st;
static mot_session *a,
		   *b,
		   *keeper;

/* id's range, of four even ones */
static unsigned
node_of_id(uint64_t id)
{
	return (unsigned) (id / (ROWS / NODES));
}

/* four ranges; that of id i lives on node_of_id(i) + shift */
static void
place_table(unsigned shift)
{
	mot_table_place places[NODES];

	for (unsigned i = 0; i < NODES; i++)
	{
		places[i].low = i * (ROWS / NODES);
		places[i].node = (uint16_t) ((i + shift) % NODES);
	}
	(void) mot_snapshot_take(a);
	CHECK(mot_table_places_set(a, st.table, 0, places, NODES) == MOT_OK);
	end_view(a);
}

static void
setup(void)
{
	setenv("HWLOC_SYNTHETIC", "node:4 core:1 pu:2", 1);
	store_create(&st, 128 << 20, 8, MOT_ENGINE_PRIVATE, false);
	unsetenv("HWLOC_SYNTHETIC");
	a = open_session(st.engine, 1);
	b = open_session(st.engine, 2);
	keeper = open_session(st.engine, 7);
	mot_topology_pretended_cpu = 0;
}

static void
teardown(void)
{
	mot_session_close(a);
	mot_session_close(b);
	mot_session_close(keeper);
	mot_engine_destroy(st.engine);
	mot_topology_pretended_cpu = -1;
}

static void
fill(void)
{
	begin(a);
	for (uint64_t id = 0; id < ROWS; id++)
		REQUIRE(insert(&st, a, 0, id, (int64_t) id) == MOT_OK);
	commit(a);
}

typedef struct where
{
	uint64_t	rows[NODES];	/* by the distance of a row from node_of_id */
	uint64_t	versions[NODES];	/* those outside of rows */
	uint64_t	count;
	int64_t		sum;
} where;

static where
look(void)
{
	where		w = {{0}, {0}, 0, 0};
	mot_view	v = begin_view(b, 0);
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;

	mot_scan_begin(b, &scan, st.table, &v);
	while (mot_scan_next(b, &scan, &row, &version))
	{
		const record *r = mot_version_data(version);
		unsigned	version_node;
		unsigned	node = mot_row_node(b, row, &version_node);

		w.rows[(node + NODES - node_of_id(r->id)) % NODES]++;
		if (version != &row->inlined)
			w.versions[(version_node + NODES - node_of_id(r->id)) % NODES]++;
		w.count++;
		w.sum += r->value;
	}
	end_view(b);
	return w;
}

static mot_place_move
move_all(mot_session *s)
{
	mot_place_move move = {0};
	bool		more;

	do
	{
		(void) mot_snapshot_take(s);
		more = mot_table_places_move(s, st.table, 1000, &move) == MOT_MOVE_MORE;
		end_view(s);
	} while (more);
	return move;
}

static void
places_are_taken_as_a_whole(void)
{
	mot_table_place places[MOT_MAX_PLACES + 1];
	mot_table_place got[MOT_MAX_PLACES];
	unsigned	skip;

	setup();
	(void) mot_snapshot_take(a);
	CHECK(mot_engine_nodes(st.engine) == NODES);
	CHECK(mot_table_places_get(st.table, &skip, got) == 0 && skip == 0);
	CHECK(mot_table_placed_by(st.table) == 0);
	for (unsigned i = 0; i <= MOT_MAX_PLACES; i++)
		put_place(&places[i], i * 10, i % NODES);
	CHECK(mot_table_places_set(a, st.table, 3, places, MOT_MAX_PLACES + 1) == MOT_TOO_LARGE);
	CHECK(mot_table_places_set(a, st.table, 3, places + 1, 3) == MOT_TOO_LARGE);
	places[2].low = 10;
	CHECK(mot_table_places_set(a, st.table, 3, places, 3) == MOT_TOO_LARGE);
	places[2].low = 20;
	places[2].node = NODES;
	CHECK(mot_table_places_set(a, st.table, 3, places, 3) == MOT_TOO_LARGE);
	places[2].node = 2;
	CHECK(mot_table_places_set(a, st.table, 3, places, MOT_MAX_PLACES) == MOT_OK);
	CHECK(mot_table_places_get(st.table, &skip, got) == MOT_MAX_PLACES && skip == 3);
	CHECK(memcmp(places, got, sizeof(got)) == 0);
	CHECK(mot_table_placed_by(st.table) == 101);
	CHECK(mot_places_node(mot_table_places(st.table), "xyz\0\0\0\0\0\0\0\011", 11) == 0);
	CHECK(mot_places_node(mot_table_places(st.table), "xyz\0\0\0\0\0\0\0\012", 11) == 1);
	CHECK(mot_places_node(mot_table_places(st.table), "xyz\377", 4) == (MOT_MAX_PLACES - 1) % NODES);
	CHECK(mot_places_node(mot_table_places(st.table), "x", 1) == 0);
	CHECK(mot_table_places_set(a, st.table, 0, NULL, 0) == MOT_OK);
	CHECK(mot_table_placed_by(st.table) == 0);
	end_view(a);
	drain(&st, b);
	CHECK(mot_owed_items(st.engine) == 0);
	teardown();
}

static void
new_rows_and_versions_are_where_they_belong(void)
{
	mot_view	old;
	where		w;

	setup();
	place_table(0);
	fill();
	w = look();
	CHECK(w.count == ROWS && w.rows[0] == ROWS);

	/* the rows' own room is in use as long as anybody may look at it */
	old = begin_view(b, 0);
	for (uint64_t id = 0; id < ROWS; id += 7)
		change(&st, a, id, -1);
	CHECK(get(&st, b, &old, 7, NULL, NULL)->value == 7);
	end_view(b);
	w = look();
	CHECK(w.count == ROWS && w.rows[0] == ROWS);
	CHECK(w.versions[0] == (ROWS + 6) / 7);

	/* what is not said for this table is not minded */
	begin(a);
	{
		mot_row    *row;
		void	   *data;
		unsigned	node;

		a->placed = (const mot_table *) (uintptr_t) 64;
		a->place = 3;
		REQUIRE(mot_row_insert(a, st.table, 0, 0, sizeof(record), &row, &data) == MOT_OK);
		CHECK(mot_row_node(a, row, &node) == 0 && a->placed == NULL);
	}
	mot_txn_abort(a);
	end_view(a);
	teardown();
}

static void
what_lies_elsewhere_is_moved(void)
{
	mot_place_move move;
	mot_view	old;
	where		w;
	uint64_t	bytes;

	setup();
	fill();
	w = look();
	CHECK(w.rows[0] == ROWS / NODES);	/* all on node 0 */
	old = begin_view(b, 0);
	for (uint64_t id = 0; id < ROWS; id += 7)
		change(&st, a, id, (int64_t) id);
	CHECK(get(&st, b, &old, 7, NULL, NULL)->value == 7);
	place_table(0);
	move = move_all(a);
	printf("# %llu rows, %llu versions, %llu pages moved; away %llu\n", (unsigned long long) move.rows,
		   (unsigned long long) move.versions, (unsigned long long) move.pages, (unsigned long long) move.away);
	/* three of four had to go */
	CHECK(move.rows == ROWS && move.skipped == 0);
	CHECK(move.versions > ROWS / 7 * 7 / 10);
	/* what b has seen is there for it still */
	CHECK(get(&st, b, &old, 7, NULL, NULL)->value == 7);
	end_view(b);
	w = look();
	CHECK(w.count == ROWS && w.sum == (int64_t) ROWS * (ROWS - 1) / 2);
	CHECK(w.rows[0] == ROWS - move.away);

	/*
	 * but for the pages that two ranges share, and the first ones, which are
	 * lots
	 */
	CHECK(move.away <= MOST_ASTRAY);
	CHECK(w.versions[0] == (ROWS + 6) / 7);

	/*
	 * a second time there is nothing to do; and nothing is lost on the way
	 * round
	 */
	drain(&st, b);
	bytes = mot_object_bytes(st.engine);
	for (unsigned shift = 1; shift <= NODES; shift++)
	{
		place_table(shift);
		(void) move_all(a);
		drain(&st, b);
		w = look();
		CHECK(w.rows[shift % NODES] >= ROWS - ROWS / 8);
		CHECK(w.count == ROWS && w.sum == (int64_t) ROWS * (ROWS - 1) / 2);
	}
	move = move_all(a);
	CHECK(move.versions == 0 && move.pages == 0);
	drain(&st, b);
	CHECK(mot_owed_items(st.engine) == 0);
	CHECK(mot_object_bytes(st.engine) == bytes);

	/* all goes, and all of it comes back */
	for (uint64_t id = 0; id < ROWS; id++)
	{
		mot_view	v;

		begin(a);
		v = begin_view(a, 1);
		CHECK(delete_id(&st, a, &v, 1, id) == MOT_OK);
		commit(a);
	}
	drain(&st, b);
	mot_session_flush(a);
	mot_session_flush(b);
	CHECK(mot_table_objects(st.table) == 0);
	fill();
	w = look();
	CHECK(w.count == ROWS && w.rows[0] == ROWS);
	teardown();
}

/* by row and page: what is freed in pages that have moved is found by who wants memory there */
static void
moved_pages_are_the_nodes_own(void)
{
	where		w;

	setup();
	fill();
	place_table(0);
	(void) move_all(a);
	/* every other row makes room for another one */
	for (uint64_t id = 0; id < ROWS; id += 2)
	{
		mot_view	v;

		begin(a);
		v = begin_view(a, 1);
		CHECK(delete_id(&st, a, &v, 1, id) == MOT_OK);
		commit(a);
	}
	drain(&st, b);
	mot_session_flush(a);
	mot_session_flush(b);
	begin(a);
	for (uint64_t id = 0; id < ROWS; id += 2)
		REQUIRE(insert(&st, a, 0, id, (int64_t) id) == MOT_OK);
	commit(a);
	w = look();
	CHECK(w.count == ROWS && w.rows[0] >= ROWS - MOST_ASTRAY);
	teardown();
}

/* a version that its row has no room for */
#define WIDE 20000
#define WIDE_ROWS 2000

static void
widen(uint64_t id)
{
	mot_view	v;
	mot_row    *row;
	const mot_version *seen,
			   *newest;
	record		r;
	void	   *data;

	begin(a);
	v = begin_view(a, 1);
	r = *get(&st, a, &v, id, &row, &seen);
	REQUIRE(mot_row_lock(a, &v, st.table, row, seen, MOT_MODE_CHANGE, &newest) == MOT_OK);
	REQUIRE(mot_row_update(a, st.table, row, 1, 5, WIDE, false, &data) == MOT_OK);
	memset(data, 0, WIDE);
	*(record *) data = r;
	commit(a);
}

static mot_move_end
move_once(mot_place_move *move)
{
	mot_move_end end;

	(void) mot_snapshot_take(b);
	while ((end = mot_table_places_move(b, st.table, 100, move)) == MOT_MOVE_MORE)
		;
	end_view(b);
	return end;
}

/* what is moved beside an old snapshot is twice there: no more of it than memory can bear */
static void
wide_versions_do_not_fill_memory(void)
{
	mot_region *region;
	mot_place_move move = {0};
	mot_place_move first;
	uint64_t	used,
				left;
	where		w;

	setup();
	region = st.engine->region;
	begin(a);
	for (uint64_t i = 0; i < WIDE_ROWS; i++)
		REQUIRE(insert(&st, a, 0, i * (ROWS / WIDE_ROWS), 1) == MOT_OK);
	commit(a);
	for (uint64_t i = 0; i < WIDE_ROWS; i++)
		widen(i * (ROWS / WIDE_ROWS));
	(void) begin_view(keeper, 0);
	place_table(0);
	used = mot_region_used(region);
	left = mot_pool_left(st.table->versions);
	CHECK(move_once(&move) == MOT_MOVE_WAITS);
	first = move;
	printf("# %llu bytes used, %llu left, %llu more for %llu versions\n", (unsigned long long) used, (unsigned long long) left,
		   (unsigned long long) (mot_region_used(region) - used), (unsigned long long) move.versions);
	CHECK(move.versions > 0 && move.versions * WIDE <= left / 64);
	/* and the rest of a page on each node */
	CHECK(mot_region_used(region) - used <= left / 64 + NODES * 4 * MOT_PAGE_SIZE);

	/* as long as that is so, there is no more of it */
	(void) mot_reclaim_all(a);
	CHECK(move_once(&move) == MOT_MOVE_WAITS && move.versions == first.versions && move.next == first.next);

	/* a table that has hardly any room left has what it has */
	mot_table_set_limit(st.table, atomic_load(&st.table->group.bytes) + (1 << 20));
	memset(&move, 0, sizeof(move));
	CHECK(move_once(&move) == MOT_MOVE_DONE && move.versions == 0 && move.skipped > WIDE_ROWS / 2);
	mot_table_set_limit(st.table, 0);

	/* nobody looks back any more: all of it, bit by bit */
	end_view(keeper);
	memset(&move, 0, sizeof(move));
	for (int i = 0; i < 1000 && move_once(&move) == MOT_MOVE_WAITS; i++)
		(void) mot_reclaim_all(a);
	w = look();
	CHECK(move.next == 0 && w.versions[0] == WIDE_ROWS && w.count == WIDE_ROWS && w.sum == WIDE_ROWS);
	drain(&st, b);
	CHECK(mot_owed_items(st.engine) == 0);
	teardown();
}

static void
move_one(uint64_t id, bool expected)
{
	mot_view	v = begin_view(b, 0);
	mot_row    *row;
	uint64_t	head;
	mot_place_move move = {0};

	(void) get(&st, b, &v, id, &row, NULL);
	head = row_head(row);
	end_view(b);
	(void) mot_snapshot_take(b);
	(void) mot_table_places_move(b, st.table, 1000000, &move);
	end_view(b);
	CHECK((row_head(row) != head) == expected);
}

/* a version of row id that lies outside of it, as long as somebody may look at the one before */
static void
put_outside(uint64_t id, int64_t value)
{
	(void) begin_view(keeper, 0);
	change(&st, a, id, value);
}

static void
rows_that_are_held_are_left_alone(void)
{
	mot_view	v;

	setup();
	fill();
	put_outside(ROWS - 1, 5);
	place_table(0);
	begin(a);
	v = begin_view(a, 1);
	CHECK(update(&st, a, &v, 1, ROWS - 1, 6) == MOT_OK);
	move_one(ROWS - 1, false);
	mot_txn_abort(a);
	end_view(a);
	move_one(ROWS - 1, true);
	v = begin_view(b, 0);
	CHECK(get(&st, b, &v, ROWS - 1, NULL, NULL)->value == 5);
	end_view(b);
	end_view(keeper);
	teardown();
}

/* what was read stands if it has only been moved, and not if it has been changed as well */
static void
serializable_reads_stand(void)
{
	setup();
	fill();
	for (int changed = 0; changed < 2; changed++)
		for (int newer = 0; newer < 2; newer++)
		{
			mot_view	v;
			const record *r;
			mot_status	status;

			place_table(NODES);
			put_outside(ROWS - 1, 5);
			mot_serial_begin(a);
			v = begin_view(a, 1);
			mot_txn_begin(a, MOT_SERIALIZABLE, v.snapshot, 1);
			mot_txn_may_precede(a);
			r = get(&st, a, &v, ROWS - 1, NULL, NULL);
			CHECK(r->value == 5);
			if (newer)
			{
				/*
				 * as a foreign key's check looks: it has been there all the
				 * time
				 */
				mot_view	later = {mot_engine_clock(st.engine), 1, NULL, false};

				CHECK(get(&st, a, &later, ROWS - 1, NULL, NULL) == r);
			}
			CHECK(update(&st, a, &v, 1, 0, 9) == MOT_OK);
			move_one(ROWS - 1, true);
			CHECK(get(&st, a, &v, ROWS - 1, NULL, NULL)->value == 5);
			CHECK(!a->saw_newest);
			if (changed)
			{
				mot_session *c = open_session(st.engine, 3);

				/*
				 * so that it can have no earlier place: who comes after has
				 * read what it writes
				 */
				mot_serial_begin(c);
				v = begin_view(c, 1);
				mot_txn_begin(c, MOT_SERIALIZABLE, v.snapshot, 1);
				CHECK(get(&st, c, &v, 0, NULL, NULL) != NULL);
				CHECK(update(&st, c, &v, 1, ROWS - 1, 6) == MOT_OK);
				commit(c);
				mot_session_close(c);
			}
			for (int i = 0; i < 3; i++)
				(void) mot_reclaim_all(b);
			/* zero copy: it is there as long as our snapshot */
			CHECK(r->value == 5 && r->id == ROWS - 1);
			status = mot_txn_prepare(a);
			CHECK(status == (changed ? MOT_CONFLICT_READ : MOT_OK));
			if (status == MOT_OK)
				(void) mot_txn_commit(a);
			else
				mot_txn_abort(a);
			end_view(a);
			end_view(keeper);
			drain(&st, b);
			/* away again */
			place_table(1);
			(void) move_all(a);
			drain(&st, b);
		}
	teardown();
}

/* (a transaction's own, and those of one commit that is not its last, are told apart by address) */
static void
versions_are_the_same_by_number(void)
{
	mot_view	v;
	const mot_version *before,
			   *after;
	mot_row    *row;

	setup();
	fill();
	put_outside(ROWS - 1, 5);
	place_table(0);
	v = begin_view(a, 1);
	(void) get(&st, a, &v, ROWS - 1, &row, &before);
	move_one(ROWS - 1, true);
	(void) get(&st, a, &v, ROWS - 1, &row, &after);
	CHECK(before != after && mot_version_same(before, after));
	CHECK(!mot_version_same(before, NULL) && mot_version_same(NULL, NULL));
	end_view(a);
	change(&st, b, ROWS - 1, 6);
	v = begin_view(a, 1);
	(void) get(&st, a, &v, ROWS - 1, &row, &before);
	CHECK(!mot_version_same(before, after));
	end_view(a);
	end_view(keeper);
	teardown();
}

/* ------------------------------------------------------------- at the moment */

#ifdef MOT_STOP_POINTS
static const char *stop_at;
static void (*meanwhile) (void);

static void
stop_here(const char *name)
{
	void		(*now) (void) = meanwhile;

	if (now != NULL && strcmp(name, stop_at) == 0)
	{
		meanwhile = NULL;
		now();
	}
}

static void
change_it(void)
{
	change(&st, a, ROWS - 1, 7);
}

/* taken and let go: what was copied is still what is there */
static void
hold_it_for_a_moment(void)
{
	mot_view	v;

	begin(a);
	v = begin_view(a, 1);
	CHECK(update(&st, a, &v, 1, ROWS - 1, 8) == MOT_OK);
	mot_txn_abort(a);
	end_view(a);
	for (int i = 0; i < 3; i++)
		(void) mot_reclaim_all(a);
}

static void
delete_it(void)
{
	mot_view	v;

	begin(a);
	v = begin_view(a, 1);
	CHECK(delete_id(&st, a, &v, 1, ROWS - 1) == MOT_OK);
	commit(a);
	for (int i = 0; i < 3; i++)
		(void) mot_reclaim_all(a);
}

static void
while_it_is_copied(const char *point, void (*what) (void), int64_t value)
{
	uint64_t	bytes;
	mot_view	v;
	const record *r;

	setup();
	fill();
	drain(&st, b);
	bytes = mot_object_bytes(st.engine);
	put_outside(ROWS - 1, 5);
	place_table(0);
	stop_at = point;
	meanwhile = what;
	mot_stop_point_handler = stop_here;
	(void) move_all(b);
	CHECK(meanwhile == NULL);
	mot_stop_point_handler = NULL;
	v = begin_view(a, 1);
	r = get(&st, a, &v, ROWS - 1, NULL, NULL);
	CHECK(value < 0 ? r == NULL : r != NULL && r->value == value);
	end_view(a);
	end_view(keeper);
	(void) mot_snapshot_take(a);
	CHECK(mot_table_places_set(a, st.table, 0, NULL, 0) == MOT_OK);
	end_view(a);
	drain(&st, b);
	CHECK(mot_owed_items(st.engine) == 0);
	/* nothing is left of any copy, once the row has its own room again */
	if (value >= 0)
	{
		change(&st, a, ROWS - 1, 10);
		drain(&st, b);
		CHECK(mot_object_bytes(st.engine) == bytes);
	}
	else
		CHECK(mot_object_bytes(st.engine) < bytes);
	teardown();
}

static void
others_come_in_between(void)
{
	while_it_is_copied("version-copied", change_it, 7);
	while_it_is_copied("version-copied", hold_it_for_a_moment, 5);
	while_it_is_copied("version-copied", delete_it, -1);
	while_it_is_copied("version-moved", change_it, 7);
	while_it_is_copied("version-moved", hold_it_for_a_moment, 5);
	while_it_is_copied("version-moved", delete_it, -1);
}
#endif

/* ----------------------------------------------------------- nobody is stopped */

static atomic_bool stop;
static atomic_ullong worst,
			done;

static uint64_t
microseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static void *
worker(void *arg)
{
	unsigned	slot = (unsigned) (uintptr_t) arg;
	mot_session *s = open_session(st.engine, slot);
	uint64_t	random = test_seed + slot;

	mot_topology_pretended_cpu = (int) slot % 8;
	while (!atomic_load(&stop))
	{
		uint64_t	from = microseconds();
		uint64_t	took;
		uint64_t	before = atomic_load(&worst);
		mot_status	status;
		mot_view	v;

		begin(s);
		v = begin_view(s, 1);
		status = update(&st, s, &v, 1, test_random_from(&random) % ROWS, 1);
		if (status == MOT_OK)
			commit(s);
		else
		{
			mot_txn_abort(s);
			end_view(s);
		}
		took = microseconds() - from;
		while (took > before && !atomic_compare_exchange_weak(&worst, &before, took))
			;
		atomic_fetch_add(&done, 1);
	}
	mot_session_close(s);
	return NULL;
}

static void
eighty_actions_stop_nobody(void)
{
	pthread_t	thread[2];
	mot_table_place places[40];
	uint64_t	from,
				actions = 0,
				took;
	double		worked;
	mot_place_move move = {0};

	setup();
	fill();
	atomic_store(&stop, false);
	for (unsigned i = 0; i < 2; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker, (void *) (uintptr_t) (i + 3)) == 0);

	/*
	 * split into 40 ranges one by one, then merge them again, each time on
	 * other nodes
	 */
	from = microseconds();
	worked = test_work_seconds();
	for (unsigned n = 1; n <= 80; n++)
	{
		unsigned	ranges = n <= 40 ? n : 81 - n;

		for (unsigned i = 0; i < ranges; i++)
			put_place(&places[i], i * (ROWS / ranges), (i + n) % NODES);
		(void) mot_snapshot_take(a);
		CHECK(mot_table_places_set(a, st.table, 0, places, ranges) == MOT_OK);
		end_view(a);
		actions++;
	}
	took = microseconds() - from;
	worked = test_work_seconds() - worked;
	/* and everything comes to where the last one says */
	for (bool more = true; more;)
	{
		(void) mot_snapshot_take(a);
		more = mot_table_places_move(a, st.table, 2000, &move) == MOT_MOVE_MORE;
		end_view(a);
	}
	printf("# %llu actions on %d rows took %llu us, and moving what they meant %llu us (%llu versions, %llu pages)\n",
		   (unsigned long long) actions, ROWS, (unsigned long long) took,
		   (unsigned long long) (microseconds() - from - took),
		   (unsigned long long) move.versions, (unsigned long long) move.pages);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("# beside it %llu transactions; the longest took %llu us\n",
		   (unsigned long long) done, (unsigned long long) worst);
	CHECK(worked < 0.2);

	/*
	 * (the longest, and how long they took, is at the mercy of the machine:
	 * the actions themselves take no lock)
	 */
	teardown();
}

/* ------------------------------------------------------------------ processors */

static unsigned
allowed(cpu_set_t *set)
{
	REQUIRE(sched_getaffinity(0, sizeof(*set), set) == 0);
	return (unsigned) CPU_COUNT(set);
}

static void
allow(const cpu_set_t *set)
{
	REQUIRE(sched_setaffinity(0, sizeof(*set), set) == 0);
}

/*
 * Each of the cpus we may use is a node's, as far as eight nodes go; others have none that we may
 * use.
 */
static void
processes_keep_to_nodes_softly(void)
{
	cpu_set_t	all,
				some,
				now;
	unsigned	n = allowed(&all);
	unsigned	first = 0;
	unsigned	second;

	setenv("HWLOC_SYNTHETIC", "node:64 core:1 pu:1", 1);
	store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, false);
	unsetenv("HWLOC_SYNTHETIC");

	while (first < CPU_SETSIZE && !CPU_ISSET(first, &all))
		first++;
	second = first + 1;
	while (second < CPU_SETSIZE && !CPU_ISSET(second, &all))
		second++;
	if (n < 2 || second >= 64 || CPU_ISSET(63, &all))
	{
		printf("# this machine has no two cpus for it\n");
		mot_engine_destroy(st.engine);
		return;
	}
	CHECK(mot_nodes_alive(st.engine) == UINT64_MAX);
	CHECK(mot_machine_look(st.engine));
	CHECK(!mot_machine_look(st.engine));
	CHECK((mot_nodes_alive(st.engine) >> first & 1) && (mot_nodes_alive(st.engine) >> second & 1));
	CHECK(!(mot_nodes_alive(st.engine) >> 63));

	/* there, elsewhere, nowhere, and back */
	CHECK(mot_process_keep_to(st.engine, first));
	CHECK(allowed(&now) == 1 && CPU_ISSET(first, &now));
	CHECK(mot_process_keep_to(st.engine, second));
	CHECK(allowed(&now) == 1 && CPU_ISSET(second, &now));
	CHECK(!mot_process_keep_to(st.engine, 63));
	CHECK(allowed(&now) == n && CPU_EQUAL(&now, &all));
	CHECK(mot_process_keep_to(st.engine, first));
	CHECK(!mot_process_keep_to(st.engine, MOT_NODE_ANY));
	CHECK(allowed(&now) == n && CPU_EQUAL(&now, &all));

	/* one that has fewer of its own stays within these */
	CPU_ZERO(&some);
	CPU_SET(first, &some);
	allow(&some);
	CHECK(!mot_process_keep_to(st.engine, second));
	CHECK(allowed(&now) == 1 && CPU_ISSET(first, &now));
	CHECK(mot_process_keep_to(st.engine, first));
	CHECK(!mot_process_keep_to(st.engine, MOT_NODE_ANY));
	CHECK(allowed(&now) == 1 && CPU_ISSET(first, &now));
	allow(&all);

	/* a cpu goes, and with it the node: who kept to it runs where all do */
	CHECK(mot_process_keep_to(st.engine, first));
	CPU_ZERO(&some);
	CPU_SET(second, &some);
	allow(&some);
	CHECK(mot_machine_look(st.engine));
	CHECK(!(mot_nodes_alive(st.engine) >> first & 1) && (mot_nodes_alive(st.engine) >> second & 1));
	CHECK(!mot_process_keep_to(st.engine, first));
	CHECK(allowed(&now) == 1 && CPU_ISSET(second, &now));
	CHECK(mot_process_keep_to(st.engine, second));

	/* it comes back: who kept elsewhere meanwhile has it again, too */
	{
		cpu_set_t	kept;

		(void) allowed(&kept);
		allow(&all);
		CHECK(mot_machine_look(st.engine));
		allow(&kept);
	}
	CHECK(!mot_process_keep_to(st.engine, MOT_NODE_ANY));
	CHECK(allowed(&now) == n && CPU_EQUAL(&now, &all));
	allow(&all);
	mot_engine_destroy(st.engine);
}

/* A node that is gone has memory still, and what is placed there goes on. */
static void
a_node_without_processors_costs_its_share(void)
{
	where		w;

	setup();
	place_table(0);
	fill();
	/* its ranges go to the others, and what it had follows */
	{
		mot_table_place places[NODES];

		for (unsigned i = 0; i < NODES; i++)
			put_place(&places[i], i * (ROWS / NODES), i == 3 ? 0 : i);
		(void) mot_snapshot_take(a);
		CHECK(mot_table_places_set(a, st.table, 0, places, NODES) == MOT_OK);
		end_view(a);
	}
	(void) move_all(a);
	w = look();
	CHECK(w.count == ROWS && w.rows[1] >= ROWS / NODES - MOST_ASTRAY);	/* 3's, on 0 */
	CHECK(w.rows[0] + w.rows[1] >= ROWS - MOST_ASTRAY);
	begin(a);
	REQUIRE(insert(&st, a, 0, ROWS, 1) == MOT_OK);
	commit(a);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(places_are_taken_as_a_whole);
	RUN(new_rows_and_versions_are_where_they_belong);
	RUN(what_lies_elsewhere_is_moved);
	RUN(moved_pages_are_the_nodes_own);
	RUN(wide_versions_do_not_fill_memory);
	RUN(rows_that_are_held_are_left_alone);
	RUN(serializable_reads_stand);
	RUN(versions_are_the_same_by_number);
#ifdef MOT_STOP_POINTS
	RUN(others_come_in_between);
#endif
	RUN(eighty_actions_stop_nobody);
	RUN(processes_keep_to_nodes_softly);
	RUN(a_node_without_processors_costs_its_share);
	return test_end();
}
