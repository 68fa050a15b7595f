/*-------------------------------------------------------------------------
 *
 * test_refused.c
 *	  Memory of the region is out, at each place at which a change asks for
 *	  some: it says so, is taken back, and done again when there is memory it
 *	  gives what it would have given at once.  Commit and rollback ask for none.
 *
 *-------------------------------------------------------------------------
 */
#include "txn_store.h"
#include <limits.h>

/* how many pieces are granted (the linker has the engine's requests pass by here) */
static int	granted = INT_MAX;
static bool once;				/* one is refused, which nobody notices */

extern void *__real_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why);
extern void *__wrap_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why);

void *
__wrap_mot_alloc(mot_cache *cache, mot_pool *pool, size_t size, mot_purpose purpose, int *why)
{
	if (granted == 0)
	{
		if (once)
			granted = INT_MAX;
		return NULL;
	}
	if (granted != INT_MAX)
		granted--;
	return __real_mot_alloc(cache, pool, size, purpose, why);
}

#define ROWS 300
#define KINDS 7
#define CHANGES (KINDS * 60)

/* change number i; those of one kind are often neighbours, as in statements that change many */
static mot_status
one_change(mot_session *s, unsigned i)
{
	mot_view	v = {mot_snapshot_held(s), i + 1, NULL, false};
	unsigned	kind = i / 4 % KINDS;
	uint64_t	id = 1 + i * 7 % ROWS;
	mot_row    *row;
	const mot_version *seen;
	mot_status	status;
	mot_mark	mark;

	switch (kind)
	{
		case 0:
			return insert(&st, s, v.command, 10000 + i, (int64_t) i);
		case 1:					/* the value of others, too */
			return insert(&st, s, v.command, 20000 - i, 10);
		case 2:
			return update(&st, s, &v, v.command, id, (int64_t) i);
		case 3:					/* no key changes */
			if (get(&st, s, &v, id, &row, &seen) == NULL)
				return MOT_NOT_FOUND;
			return update_row(&st, s, &v, v.command, row, seen, id,
							  ((const record *) mot_version_data(seen))->value);
		case 4:					/* another name */
			if (get(&st, s, &v, id, &row, &seen) == NULL)
				return MOT_NOT_FOUND;
			return update_row(&st, s, &v, v.command, row, seen, 30000 + i, 20);
		case 5:
			return delete_id(&st, s, &v, v.command - i % 4, id);
		default:				/* a name that was another row's */
			mark = mot_txn_mark(s);
			status = delete_id(&st, s, &v, v.command, id);
			if (status == MOT_OK)
				status = insert(&st, s, v.command, id, (int64_t) i);
			if (status != MOT_OK)
				mot_txn_rollback_to(s, mark);
			return status;
	}
}

typedef struct result
{
	int64_t		sum;
	uint64_t	rows;
} result;

/* all changes, by one transaction; what there is then */
static result
all(mot_isolation level, bool refuse, bool commit)
{
	result		r;
	mot_view	v;
	unsigned	refused = 0;
	unsigned	most = 0;

	setup(true);
	fill(ROWS);
	(void) start(b, level);
	for (unsigned i = 0; i < CHANGES; i++)
	{
		unsigned	n = 0;
		mot_status	status;

		for (;;)
		{
			granted = refuse ? (int) (once ? i % 7 : n) : INT_MAX;
			status = one_change(b, i);
			granted = INT_MAX;
			if (status != MOT_NO_MEMORY)
				break;
			n++;
		}
		if (status != MOT_OK && status != MOT_NOT_FOUND)
			printf("# change %u: %s\n", i, mot_status_name(status));
		CHECK(status == MOT_OK || status == MOT_NOT_FOUND);
		refused += n;
		most = n > most ? n : most;
	}
	CHECK((refused > CHANGES) == (refuse && !once) && (refused > 0) == (refused > CHANGES));
	if (refused > 0)
		printf("# refused %u times, up to %u times a change\n", refused, most);

	if (refuse)
	{
		granted = 0;
		once = false;
	}
	if (commit)
	{
		CHECK(mot_txn_prepare(b) == MOT_OK);
		(void) mot_txn_commit(b);
	}
	else
		mot_txn_abort(b);
	granted = INT_MAX;
	end_view(b);
	v = begin_view(c, 0);
	r.sum = sum_scan(&st, c, &v, &r.rows);
	end_view(c);

	/* nobody holds any of them */
	v = start(c, MOT_READ_COMMITTED);
	for (uint64_t id = 1; id <= ROWS; id++)
		if (get(&st, c, &v, id, NULL, NULL) != NULL)
			CHECK(update(&st, c, &v, 1, id, 1) == MOT_OK);
	finish(c);
	teardown();
	return r;
}

static void
as_at_once(mot_isolation level)
{
	result		expected = all(level, false, true);

	CHECK(expected.rows > ROWS);
	for (int i = 0; i < 2; i++)
	{
		result		r;

		once = i == 1;
		r = all(level, true, true);
		CHECK(r.sum == expected.sum && r.rows == expected.rows);
		once = i == 1;
		r = all(level, true, false);
		CHECK(r.sum == (int64_t) 5 * ROWS * (ROWS + 1) && r.rows == ROWS);
	}
	once = false;
}

static void
read_committed(void)
{
	as_at_once(MOT_READ_COMMITTED);
}

static void
snapshot(void)
{
	as_at_once(MOT_SNAPSHOT);
}

static void
serializable(void)
{
	as_at_once(MOT_SERIALIZABLE);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(read_committed);
	RUN(snapshot);
	RUN(serializable);
	return test_end();
}
