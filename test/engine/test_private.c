/*-------------------------------------------------------------------------
 *
 * test_private.c
 *	  A process's own memory is out, at each place at which a transaction asks
 *	  for some: its statement or its commit says so, what it did is undone, and
 *	  nothing is left of it.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_store.h"

/* of the calls from now on this one finds none (see the Makefile); 0: all find some */
static unsigned out_at = 0;

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t n, size_t size);
extern void *__real_realloc(void *p, size_t size);
extern void *__wrap_malloc(size_t size);
extern void *__wrap_calloc(size_t n, size_t size);
extern void *__wrap_realloc(void *p, size_t size);

static bool
is_out(void)
{
	return out_at > 0 && --out_at == 0;
}

void *
__wrap_malloc(size_t size)
{
	return is_out() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_out() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return is_out() ? NULL : __real_realloc(p, size);
}

#define ROWS 400

/* reads, ranges, keys that are not there, and changes of all kinds */
static mot_status
work(mot_session *s, mot_cursor *cursor, const mot_view *v)
{
	mot_status	status;
	mot_row    *row;
	const mot_version *version;
	uint8_t		low[8];
	uint8_t		high[8];
	static const uint8_t longer[2000] = {1};
	mot_bound	from = {MOT_BOUND_INCLUSIVE, low, 8};
	mot_bound	to = {MOT_BOUND_INCLUSIVE, high, 8};

	for (uint64_t i = 1; i <= ROWS; i++)
	{
		put_key(low, i * 3);
		put_key(high, i * 3 + 5);
		status = mot_index_get(s, v, &st.by_id, low, 8, &row, &version);
		if (status != MOT_OK && status != MOT_NOT_FOUND)
			return status;
		status = mot_cursor_open(s, cursor, v, &st.by_id, &from, &to, false);
		if (status != MOT_OK)
			return status;
		while (mot_cursor_next(cursor, &row, &version))
			;
		mot_cursor_close(cursor);
	}
	/* a bound that a cursor has no room for in itself */
	to.key = longer;
	to.len = sizeof(longer);
	status = mot_cursor_open(s, cursor, v, &st.by_id, &from, &to, true);
	if (status != MOT_OK)
		return status;
	mot_cursor_close(cursor);
	for (uint64_t i = 1; i <= ROWS; i++)
	{
		status = insert(&st, s, 1, 10000 + i, (int64_t) i);
		if (status == MOT_OK)
			status = i % 3 == 0 ? delete_id(&st, s, v, 1, i) : update(&st, s, v, 1, i, (int64_t) (i * 7));
		if (status != MOT_OK)
			return status;
	}
	return mot_txn_prepare(s);
}

/* false: call number nth was not reached, and all of it was done */
static bool
out(mot_isolation level, unsigned nth)
{
	mot_cursor *cursor = malloc(mot_cursor_size());
	mot_status	status;
	mot_view	v;
	uint64_t	rows;
	bool		reached;

	setup(true);
	fill(ROWS);
	v = start(b, level);
	out_at = nth;
	status = work(b, cursor, &v);
	reached = out_at == 0;
	out_at = 0;
	if (reached)
	{
		if (status != MOT_NO_PRIVATE_MEMORY)
			printf("# call %u: %s\n", nth, mot_status_name(status));
		CHECK(status == MOT_NO_PRIVATE_MEMORY);
		mot_txn_abort(b);
	}
	else
	{
		CHECK(status == MOT_OK);
		(void) mot_txn_commit(b);
	}
	end_view(b);
	v = begin_view(c, 0);
	CHECK((sum_scan(&st, c, &v, &rows) == (int64_t) 5 * ROWS * (ROWS + 1)) == reached);
	CHECK(rows == (reached ? ROWS : 2 * ROWS - ROWS / 3));
	end_view(c);

	/* and the session can go on */
	v = start(b, level);
	CHECK(insert(&st, b, 1, 99999, 1) == MOT_OK);
	finish(b);
	free(cursor);
	teardown();
	return reached;
}

static void
everywhere(mot_isolation level, unsigned least)
{
	unsigned	nth = 1;

	while (nth < 1000 && out(level, nth))
		nth++;
	CHECK(nth > least && nth < 1000);
	printf("# %u calls\n", nth - 1);
}

static void
read_committed(void)
{
	everywhere(MOT_READ_COMMITTED, 3);
}

static void
snapshot(void)
{
	everywhere(MOT_SNAPSHOT, 3);
}

static void
serializable(void)
{
	everywhere(MOT_SERIALIZABLE, 20);
}

/* a session is refused, and its place is free for the next one */
static void
sessions(void)
{
	mot_session *s;

	setup(false);
	out_at = 1;
	CHECK(mot_session_open(st.engine, 4, &s) == MOT_NO_PRIVATE_MEMORY);
	CHECK(mot_session_open(st.engine, 4, &s) == MOT_OK);
	mot_session_close(s);
	teardown();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(read_committed);
	RUN(snapshot);
	RUN(serializable);
	RUN(sessions);
	return test_end();
}
