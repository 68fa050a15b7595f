/*-------------------------------------------------------------------------
 *
 * test_ranges.c
 *	  SERIALIZABLE transactions that read ranges and absent keys which others
 *	  insert into: they fail for what has been committed there, and for nothing
 *	  else, and of those in a circle one gets through.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "txn_util.h"

static store st;

#define SESSIONS 8

static mot_session *session[SESSIONS];
static mot_view view[SESSIONS];

static void
setup(void)
{
	store_create(&st, 64 << 20, SESSIONS + 2, MOT_ENGINE_PRIVATE, true);
	for (unsigned i = 0; i < SESSIONS; i++)
		session[i] = open_session(st.engine, i + 1);
	begin(session[0]);
	for (uint64_t i = 1; i <= 20; i++)
		REQUIRE(insert(&st, session[0], 0, i * 100, (int64_t) i) == MOT_OK);
	commit(session[0]);
}

static void
teardown(void)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		mot_session_close(session[i]);
	mot_engine_destroy(st.engine);
}

static void
start(int i)
{
	view[i] = begin_view(session[i], 1);
	mot_txn_begin(session[i], MOT_SERIALIZABLE, view[i].snapshot, 7);
}

/* false: it has failed */
static bool
try_commit(int i)
{
	bool		good = mot_txn_prepare(session[i]) == MOT_OK;

	if (good)
		(void) mot_txn_commit(session[i]);
	else
		mot_txn_abort(session[i]);
	end_view(session[i]);
	return good;
}

/* rows of a range of an index, at most "limit"; the last one's id */
static int
read_range(int i, const mot_index_handle *handle, uint64_t low, uint64_t high, bool backward, int limit,
		   uint64_t *last)
{
	mot_cursor *c = malloc(mot_cursor_size());
	uint8_t		bytes[2][8];
	mot_bound	bounds[2] = {{MOT_BOUND_INCLUSIVE, bytes[0], 8}, {MOT_BOUND_INCLUSIVE, bytes[1], 8}};
	mot_row    *row;
	const mot_version *v;
	int			n = 0;

	put_key(bytes[0], low);
	put_key(bytes[1], high);
	REQUIRE(mot_cursor_open(session[i], c, &view[i], handle, &bounds[0], &bounds[1], backward) == MOT_OK);
	while (n < limit && mot_cursor_next(c, &row, &v))
	{
		n++;
		if (last != NULL)
			*last = ((const record *) mot_version_data(v))->id;
	}
	mot_cursor_close(c);
	free(c);
	return n;
}

#ifdef MOT_STOP_POINTS
static int	awaited;

/* somebody waits: for session 1 to be judged, which fails */
static void
let_on(const char *name)
{
	if (strcmp(name, "backoff") != 0)
		return;
	if (awaited++ == 0)
		mot_txn_abort(session[1]);
}

/* Who fails because of a commit does not wait until those before him have been judged. */
static void
failures_wait_for_nobody(void)
{
	const mot_index_handle *handle = &st.by_id;

	for (int committed = 0; committed < 2; committed++)
	{
		setup();
		for (int i = 0; i < 3; i++)
		{
			start(i);
			mot_txn_may_precede(session[i]);
			CHECK(read_range(i, handle, 1000, 2000, false, 100, NULL) == 11);
			CHECK(insert(&st, session[i], 0, 1001 + (uint64_t) i, 1) == MOT_OK);
		}
		if (committed)
			CHECK(try_commit(0));
		REQUIRE(mot_txn_lock(session[1]) == MOT_OK);
		REQUIRE(mot_txn_draw(session[1]) != 0);
		awaited = 0;
		mot_stop_point_handler = let_on;
		CHECK(try_commit(2) == !committed);
		mot_stop_point_handler = NULL;
		CHECK((awaited > 0) == !committed);
		if (awaited == 0)
			mot_txn_abort(session[1]);
		end_view(session[1]);
		if (!committed)
		{
			mot_txn_abort(session[0]);
			end_view(session[0]);
		}
		teardown();
	}
}
#endif

/* ------------------------------------------------------------------ circles */

/* what each of n does, and then all commit in some order */
typedef enum circle
{
	COUNT_AND_INSERT,			/* a range of the unique index */
	COUNT_BY_VALUE,				/* of the other one */
	GET_OR_CREATE,				/* one key */
	ABSENT_KEYS,				/* everybody inserts what the next one missed */
	SKEW,						/* everybody changes the row the next one read */
	SCAN_AND_INSERT,
	CIRCLES
} circle;

static uint64_t
circle_base(circle what, uint64_t round)
{
	return 10000 + ((uint64_t) what * 1000 + round) * 100;
}

/* MOT_BUSY: somebody else has the key */
static mot_status
take_part(circle what, int i, int n, uint64_t round)
{
	uint64_t	rows;
	uint64_t	base = circle_base(what, round);

	switch (what)
	{
		case COUNT_AND_INSERT:
			(void) read_range(i, &st.by_id, base, base + 99, round % 2, 1000, NULL);
			return insert(&st, session[i], 1, base + (uint64_t) i, 5);
		case COUNT_BY_VALUE:
			(void) read_range(i, &st.by_value, 0, 50, round % 2, 1000, NULL);
			return insert(&st, session[i], 1, base + (uint64_t) i, 30 + i);
		case GET_OR_CREATE:
			CHECK(get(&st, session[i], &view[i], base, NULL, NULL) == NULL);
			return insert(&st, session[i], 1, base, 1000);
		case ABSENT_KEYS:
			CHECK(get(&st, session[i], &view[i], base + (uint64_t) i, NULL, NULL) == NULL);
			return insert(&st, session[i], 1, base + (uint64_t) ((i + 1) % n), 1000);
		case SKEW:
			CHECK(get(&st, session[i], &view[i], 100 * (1 + (uint64_t) i), NULL, NULL) != NULL);
			return update(&st, session[i], &view[i], 1, 100 * (1 + (uint64_t) ((i + 1) % n)),
						  1000 + (int64_t) round);
		case SCAN_AND_INSERT:
			(void) sum_scan(&st, session[i], &view[i], &rows);
			return insert(&st, session[i], 1, base + (uint64_t) i, 1000);
		case CIRCLES:
			break;
	}
	return MOT_NOT_FOUND;
}

static void
circles(void)
{
	setup();
	for (circle what = 0; what < CIRCLES; what++)
		for (int n = 2; n <= SESSIONS; n *= 2)
			for (int round = 0; round < 20; round++)
			{
				bool		left[SESSIONS];
				int			committed = 0;
				int			first = (int) (test_random() % (unsigned) n);

				for (int i = 0; i < n; i++)
					start(i);
				for (int i = 0; i < n; i++)
				{
					mot_status	status = take_part(what, i, n, (uint64_t) round + 100 * (uint64_t) n);

					left[i] = status == MOT_OK;
					if (!left[i])
					{
						CHECK(status == MOT_BUSY || status == MOT_CONFLICT_CHANGED);
						mot_txn_abort(session[i]);
						end_view(session[i]);
					}
				}
				/* some give up of themselves: that harms nobody */
				if (round % 3 == 0)
					for (int i = 0; i < n; i++)
						if (left[i] && i != 0 && test_random() % 3 == 0)
						{
							mot_txn_abort(session[i]);
							end_view(session[i]);
							left[i] = false;
						}
				for (int i = 0; i < n; i++)
					if (left[(first + i) % n])
						committed += try_commit((first + i) % n);
				/* the first to try; of a ring of skews every second one can */
				CHECK(committed >= 1);
				if (what != SKEW && what != ABSENT_KEYS)
					CHECK(committed == 1);
				/* what is left of it goes */
				if (what == COUNT_BY_VALUE)
				{
					start(0);
					for (int i = 0; i < n; i++)
						(void) delete_id(&st, session[0], &view[0], 1,
										 circle_base(what, (uint64_t) (round + 100 * n)) + (uint64_t) i);
					CHECK(try_commit(0));
				}
			}
	teardown();
}

/* -------------------------------------------------------------- what counts */

static void
other_inserts(uint64_t id, bool and_stays)
{
	begin(session[1]);
	CHECK(insert(&st, session[1], 1, id, 7) == MOT_OK);
	if (and_stays)
		commit(session[1]);
	else
	{
		mot_txn_abort(session[1]);
		end_view(session[1]);
	}
}

/*
 * What was read in one node may be in another when it is read again, and that
 * one may have been read, too, at the version that it has: but for other keys.
 */
static void
split_between_two_reads(void)
{
	static bool there[300200];

	setup();
	begin(session[0]);
	for (uint64_t i = 1; i <= 3000; i++)
		REQUIRE(insert(&st, session[0], 0, 10000 + (i * 1237) % 3001 * 100, 9) == MOT_OK);
	commit(session[0]);
	for (int round = 0; round < 3000; round++)
	{
		uint64_t	id = 10000 + test_random() % 3000 * 100 + 1 + test_random() % 99;
		bool		stays = round % 8 != 0;

		start(0);
		(void) read_range(0, &st.by_id, id - 150, id, round % 2, 1000, NULL);
		if (there[id - 10000])
			stays = false;
		else
			other_inserts(id, stays);
		there[id - 10000] |= stays;
		(void) read_range(0, &st.by_id, id + 1, id + 900, round % 3, 1000, NULL);
		(void) read_range(0, &st.by_id, id - 900, id - 151, round % 5, 1000, NULL);
		CHECK(insert(&st, session[0], 0, 1000000 + (uint64_t) round, 900) == MOT_OK);
		CHECK(try_commit(0) == !stays);
	}
	teardown();
}

/* a cursor that was left early has read up to there */
static void
parts_of_ranges(void)
{
	uint64_t	last = 0;

	setup();
	for (int backward = 0; backward < 2; backward++)
	{
		uint64_t	near = backward ? 1998 : 101;

		start(0);
		CHECK(read_range(0, &st.by_id, 0, 9999, backward, 3, &last) == 3);
		CHECK(last == (uint64_t) (backward ? 1800 : 300));
		CHECK(insert(&st, session[0], 1, backward ? 5000 : 5001, 7) == MOT_OK);
		/* of others: beyond it, uncommitted, taken back */
		other_inserts(backward ? 1799 : 301, true);
		other_inserts(near, false);
		begin(session[2]);
		CHECK(insert(&st, session[2], 1, near + 1, 7) == MOT_OK);
		CHECK(mot_txn_check(session[0]) == MOT_OK);
		/* before it */
		other_inserts(near, true);
		CHECK(mot_txn_check(session[0]) == MOT_CONFLICT_PHANTOM);
		CHECK(!try_commit(0));
		mot_txn_abort(session[2]);
		end_view(session[2]);
	}

	/* a cursor that nobody closes, in a savepoint that fails */
	{
		mot_cursor *c = malloc(mot_cursor_size());
		mot_row    *row;
		const mot_version *v;
		mot_mark	mark;

		start(0);
		mark = mot_txn_mark(session[0]);
		REQUIRE(mot_cursor_open(session[0], c, &view[0], &st.by_id, NULL, NULL, false) == MOT_OK);
		CHECK(mot_cursor_next(c, &row, &v));
		CHECK(mot_cursor_next(c, &row, &v));
		mot_txn_rollback_to(session[0], mark);
		CHECK(insert(&st, session[0], 1, 5002, 7) == MOT_OK);
		other_inserts(103, true);
		CHECK(mot_txn_check(session[0]) == MOT_OK);
		other_inserts(99, true);
		CHECK(!try_commit(0));
		free(c);
	}

	/* a row may come and go */
	start(0);
	(void) read_range(0, &st.by_id, 0, 9999, false, 1000, NULL);
	CHECK(insert(&st, session[0], 1, 5003, 7) == MOT_OK);
	other_inserts(98, true);
	CHECK(mot_txn_check(session[0]) == MOT_CONFLICT_PHANTOM);
	begin(session[1]);
	view[1] = begin_view(session[1], 2);
	CHECK(delete_id(&st, session[1], &view[1], 2, 98) == MOT_OK);
	commit(session[1]);
	CHECK(try_commit(0));
	teardown();
}

/* more than is written down: then all of the index counts, but only what was committed */
static void
very_many(void)
{
	setup();
	for (int how = 0; how < 4; how++)
	{
		start(0);
		for (uint64_t i = 0; i < 40000; i++)
			if (how % 2 == 0)
				CHECK(get(&st, session[0], &view[0], 1000000 + 2 * i, NULL, NULL) == NULL);
			else
				(void) read_range(0, &st.by_id, 1000000 + 2 * i, 1000000 + 2 * i, false, 9, NULL);
		/* it inserts what it has missed, and others in between */
		for (uint64_t i = 0; i < 300; i++)
			CHECK(insert(&st, session[0], 1, 1000000 + 2 * i, 9) == MOT_OK);
		other_inserts(1000001, false);
		begin(session[1]);
		CHECK(insert(&st, session[1], 1, 1000003, 7) == MOT_OK);
		CHECK(mot_txn_check(session[0]) == MOT_OK);
		mot_txn_abort(session[1]);
		end_view(session[1]);
		if (how < 2)
		{
			other_inserts(1000000 + 2 * 39999, true);
			CHECK(!try_commit(0));
			start(0);
			CHECK(delete_id(&st, session[0], &view[0], 1, 1000000 + 2 * 39999) == MOT_OK);
			CHECK(try_commit(0));
		}
		else
		{
			CHECK(try_commit(0));
			start(0);
			for (uint64_t i = 0; i < 300; i++)
				CHECK(delete_id(&st, session[0], &view[0], 1, 1000000 + 2 * i) == MOT_OK);
			CHECK(try_commit(0));
		}
	}
	teardown();
}

/*
 * Random reads of a transaction, and random changes by others beside it, some of
 * them committed.  It fails exactly if something that it has read is not any more what it was.
 */
#define IDS 200

static void
nothing_more_and_nothing_less(void)
{
	uint64_t	now[IDS] = {0}; /* which change the row is of; 0: not there */
	uint64_t	changes = 0;
	int			fails = 0;

	setup();
	for (int round = 0; round < 3000; round++)
	{
		uint64_t	then[IDS];
		bool		read[IDS] = {false};
		bool		hit = false;
		uint64_t	base = 100000;

		start(0);
		memcpy(then, now, sizeof(now));
		for (int step = 0; step < 12; step++)
		{
			uint64_t	id = test_random() % IDS;
			uint64_t	to = id + test_random() % 20;
			uint64_t	last = 0;
			int			limit = test_random() % 2 ? 1000 : 1 + (int) (test_random() % 4);
			bool		backward = test_random() % 2;
			mot_status	status;
			int			n;

			if (to >= IDS)
				to = IDS - 1;
			switch (test_random() % 4)
			{
				case 0:
					CHECK((get(&st, session[0], &view[0], base + id, NULL, NULL) != NULL) == (then[id] != 0));
					read[id] = true;
					break;
				case 1:
					n = read_range(0, &st.by_id, base + id, base + to, backward, limit, &last);
					for (uint64_t i = id; i <= to; i++)
						if (n < limit || (backward ? base + i >= last : base + i <= last))
							read[i] = true;
					break;
				case 2:
					/* its own changes are no reason */
					CHECK(insert(&st, session[0], 0, base + IDS + (uint64_t) (round * 20 + step), 900) == MOT_OK);
					break;
				default:
					begin(session[1]);
					view[1] = begin_view(session[1], 1);
					status = now[id] != 0 ? delete_id(&st, session[1], &view[1], 1, base + id) :
						insert(&st, session[1], 1, base + id, 800);
					CHECK(status == MOT_OK);
					if (test_random() % 6 == 0)
					{
						commit(session[1]);
						now[id] = now[id] != 0 ? 0 : ++changes;
						break;
					}
					mot_txn_abort(session[1]);
					end_view(session[1]);
					break;
			}
		}
		CHECK(insert(&st, session[0], 0, base + IDS + (uint64_t) (round * 20 + 19), 900) == MOT_OK);
		for (int i = 0; i < IDS; i++)
			hit |= read[i] && now[i] != then[i];
		CHECK((mot_txn_check(session[0]) != MOT_OK) == hit);
		CHECK(try_commit(0) == !hit);
		fails += hit;
	}
	CHECK(fails > 50 && fails < 2700);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
#ifdef MOT_STOP_POINTS
	RUN(failures_wait_for_nobody);
#endif
	RUN(circles);
	RUN(split_between_two_reads);
	RUN(parts_of_ranges);
	RUN(very_many);
	RUN(nothing_more_and_nothing_less);
	return test_end();
}
