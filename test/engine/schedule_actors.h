/*-------------------------------------------------------------------------
 *
 * schedule_actors.h
 *	  What test_schedule.c runs: small transactions, as its actors run them.
 *
 * A program is a few operations; a transaction is a program together with what
 * its operations returned and when (in ticks of "now") they began and ended.
 * An actor runs one, waits as a host does on MOT_BUSY, and notes whether
 * there was something to wait for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SCHEDULE_ACTORS_H
#define MOT_SCHEDULE_ACTORS_H

#include "schedule.h"
#include "txn_util.h"

#define KEYS	4				/* 0 .. 3; the first two exist at first */
#define OPS		6
#define ABSENT	(-1)

typedef enum op_kind
{
	GET,
	SCAN,
	SCAN_BY_ID,
	SCAN_BY_VALUE,
	LOCK	   ,				/* the first that locks */
				NO_KEY_LOCK,
				SHARE,
				KEY_SHARE,
				INSERT,			/* the first that changes */
				UPSERT,			/* INSERT, or else ADD */
				UPDATE,
				ADD,
				DELETE,
				MOVE,
				SAVEPOINT,
				UNDO
} op_kind;

static const char *const op_name[] = {
	"get", "scan", "scan by id", "scan by value", "lock", "lock no key", "share", "share key", "insert", "upsert",
	"update", "add", "delete", "move", "savepoint", "undo"
};

typedef struct operation
{
	op_kind		kind;
	int			key;
	int			to;				/* of MOVE */
	bool		caught;			/* INSERT: a duplicate ends nothing, in a
								 * savepoint */
} operation;

typedef struct program
{
	int			ops;
	operation	op[OPS];
} program;

typedef struct state
{
	int64_t		value[KEYS];
} state;

typedef enum outcome
{
	DONE, NONE, DUPLICATE
} outcome;

typedef struct result
{
	outcome outcome;
	state		seen;			/* GET, LOCK: [0]; scans: all; changes: [0]
								 * what they started from */
	int64_t		made;			/* new value of INSERT, UPDATE, ADD */
	mot_row    *other;			/* DUPLICATE: whose key it is */
	bool		found_newer;	/* READ COMMITTED: worked on a newer version
								 * than its snapshot's, or waited */
	uint64_t	began,
				ended;
} result;

typedef struct transaction
{
	program program;
	result result[OPS];
	int			done;			/* operations */
	bool		failed;
	mot_status	why;
	bool		running;
	bool		saw_twice;		/* one key in a scan */
	mot_ts		ts;				/* 0: changed nothing */
	uint64_t	began,
				snapshot_taken,
				commit_began,
				prepared,		/* so everything that it changes is locked */
				release_began,	/* everything that it locked was locked until
								 * then */
				ended;
	int			at;				/* operation that is going on; "done": the end */
	bool		waited_for_nothing;
} transaction;

static store st;
static mot_session *session[SCHEDULE_ACTORS];
static transaction txn[SCHEDULE_ACTORS];
static int	txns;
static bool no_deadlock;		/* these programs cannot have one */
static bool reclaiming;			/* the actor after the last one reclaims */
static mot_isolation level;
static bool value_index;
static bool with_remains;		/* the index still has entries of deleted rows */
static mot_session *keeper;		/* whose snapshot keeps them */
static uint64_t now;			/* counts what is noted */

typedef struct waiting_for
{
	int			actor;
	uint64_t	began;
} waiting_for;

static bool
has_ended(void *arg)
{
	waiting_for *w = arg;

	return !txn[w->actor].running || txn[w->actor].began != w->began;
}

/*
 * Does the first operation need a lock, or a key, that the second has?  As in
 * share.c; a change of a unique key or of none is no "update".  (Whose row it
 * is is not looked at: keys wander.)
 */
static bool
excludes(const operation *wants, const operation *has)
{
	static const int strength[] = {
		[LOCK] = 4,[NO_KEY_LOCK] = 3,[SHARE] = 2,[KEY_SHARE] = 1,
		[INSERT] = 4,[UPSERT] = 4,[UPDATE] = 3,[ADD] = 3,[DELETE] = 4,[MOVE] = 4,[UNDO] = 0
	};

	return strength[wants->kind] != 0 && strength[has->kind] != 0 &&
		strength[wants->kind] + strength[has->kind] > 4;
}

/* the UNDO that took this operation back, or -1 */
static int
undone_by(const transaction *t, int n)
{
	int			savepoint = -1;

	for (int i = 0; i < t->done; i++)
		if (t->program.op[i].kind == SAVEPOINT)
			savepoint = i;
		else if (t->program.op[i].kind == UNDO && i > n && savepoint < n)
			return i;
	return -1;
}

static bool
may_wait(const transaction *t, const transaction *other)
{
	/* with one snapshot it is only now that a change of before gets its lock */
	for (int i = 0; i < t->program.ops && i <= t->at; i++)
		for (int k = 0; k < other->program.ops && k <= other->at; k++)
			if ((i == t->at || t->program.op[i].kind >= INSERT) &&undone_by(other, k) < 0 &&
				excludes(&t->program.op[i], &other->program.op[k]))
				return true;
	return false;
}

/* as the host does on MOT_BUSY; false: a deadlock, and we are to give up */
static bool
wait_for_holder(int me)
{
	mot_holder	holder = mot_session_holder(session[me]);
	waiting_for w = {(int) holder.host_id, txn[holder.host_id].began};

	txn[me].waited_for_nothing |= txn[holder.host_id].running && !may_wait(&txn[me], &txn[holder.host_id]);
	return schedule_wait(has_ended, &w);
}

#define FAIL(status) \
	do { \
		t->failed = true; \
		t->why = (status); \
		return false; \
	} while (0)

/* MOT_BUSY of this call is waited for; what is left is in "status" */
#define CALL(call) \
	while ((status = (call)) == MOT_BUSY) \
	{ \
		r->found_newer = true; \
		if (!wait_for_holder(me)) \
			FAIL(MOT_BUSY); \
	}

static bool
do_scan(int me, const mot_view *view, op_kind kind, state *seen)
{
	mot_session *s = session[me];
	mot_row    *row;
	const mot_version *v;
	mot_scan	scan;
	mot_cursor *c = kind == SCAN ? NULL : malloc(mot_cursor_size());
	bool		sound = true;

	for (int k = 0; k < KEYS; k++)
		seen->value[k] = ABSENT;
	if (kind == SCAN)
		mot_scan_begin(s, &scan, st.table, view);
	else
		REQUIRE(mot_cursor_open(s, c, view, kind == SCAN_BY_ID || !value_index ? &st.by_id : &st.by_value,
								NULL, NULL, kind == SCAN_BY_VALUE) == MOT_OK);
	while (c ? mot_cursor_next(c, &row, &v) : mot_scan_next(s, &scan, &row, &v))
	{
		const record *r = mot_version_data(v);

		sound &= r->id < KEYS && seen->value[r->id] == ABSENT;
		if (r->id < KEYS)
			seen->value[r->id] = r->value;
		schedule_point("row");
	}
	if (c)
		mot_cursor_close(c);
	free(c);
	return sound;
}

/* the new entry of an index; false: given up, or a duplicate (told by the outcome) */
static bool
add_entry(int me, result *r, const mot_index_handle *handle, mot_row *row, uint64_t n, const mot_view *view, bool caught)
{
	transaction *t = &txn[me];
	mot_status	status;
	mot_row    *other = NULL;
	uint8_t		key[8];

	put_key(key, n);
	CALL(mot_index_add(session[me], handle, row, key, 8, 0, &other));
	if (status == MOT_DUPLICATE)
	{
		r->outcome = DUPLICATE;
		r->other = other;
		/* with one snapshot, what it does not show cannot be acted on */
		if (level != MOT_READ_COMMITTED && !caught)
		{
			const mot_version *v = mot_row_visible(session[me], view, st.table, other);
			const mot_version *newest = mot_row_newest(session[me], other);

			if (v == NULL || v != newest)
				FAIL(MOT_DUPLICATE);
		}
		return false;
	}
	REQUIRE(status == MOT_OK);
	return true;
}

static bool
do_insert(int me, const mot_view *view, const operation *op, result *r, uint32_t command)
{
	mot_session *s = session[me];
	mot_mark	mark = mot_txn_mark(s);
	mot_row    *row;
	void	   *data;

	REQUIRE(mot_row_insert(s, st.table, command, 0, sizeof(record), &row, &data) == MOT_OK);
	memset(data, 0, sizeof(record));
	((record *) data)->id = (uint64_t) op->key;
	((record *) data)->value = r->made;
	r->seen.value[0] = ABSENT;
	schedule_point("inserted");
	if (!add_entry(me, r, &st.by_id, row, (uint64_t) op->key, view, op->caught) ||
		(value_index && !add_entry(me, r, &st.by_value, row, (uint64_t) r->made, view, false)))
	{
		/* ON CONFLICT takes it back of its own accord, an exception is caught */
		(op->caught ? mot_txn_rollback_to : mot_txn_take_back) (s, mark);
		return !txn[me].failed;
	}
	return true;
}

static mot_row_mode
mode_of(op_kind kind)
{
	switch (kind)
	{
			case LOCK:
			case		DELETE:
						return MOT_MODE_UPDATE;

		case NO_KEY_LOCK:
			return MOT_MODE_NO_KEY_UPDATE;
		case SHARE:
			return MOT_MODE_SHARE;
		case KEY_SHARE:
			return MOT_MODE_KEY_SHARE;
		default:
			return MOT_MODE_CHANGE;
	}
}

/*
 * INSERT ... ON CONFLICT DO UPDATE: the row that is in the way is changed in its
 * newest version, seen by our snapshot or not (with one snapshot, add_entry
 * has failed if not).
 */
static bool
do_upsert(int me, const mot_view *view, const operation *op, result *r, uint32_t command)
{
	transaction *t = &txn[me];
	mot_session *s = session[me];
	int64_t		inserted = r->made;
	mot_status	status;

	for (;;)
	{
		const mot_version *seen,
				   *newest;
		record		old;
		void	   *data;

		r->outcome = DONE;
		r->made = inserted;
		if (!do_insert(me, view, op, r, command))
			return false;
		if (r->outcome == DONE)
			return true;
		r->outcome = DONE;
		schedule_point("duplicate");
		seen = mot_row_newest(s, r->other);
		if (seen == NULL)
			continue;
		CALL(mot_row_lock(s, view, st.table, r->other, seen, MOT_MODE_CHANGE, &newest));
		if (status == MOT_DELETED)
			continue;
		if (status != MOT_OK && status != MOT_CHANGED)
			FAIL(status);
		old = *(const record *) mot_version_data(newest);
		if (old.id != (uint64_t) op->key)
		{
			mot_row_unlock(s, r->other);
			continue;
		}
		r->seen.value[0] = old.value;
		r->made = old.value + 1000;
		schedule_point("locked");
		CALL(mot_row_update(s, st.table, r->other, command, 0, sizeof(record),
							value_index ? MOT_KEYS_CHANGE : 0, &data));
		if (status != MOT_OK)
			FAIL(status);
		memset(data, 0, sizeof(record));
		((record *) data)->id = old.id;
		((record *) data)->value = r->made;
		if (value_index)
		{
			uint8_t		key[8];

			put_key(key, (uint64_t) old.value);
			REQUIRE(mot_index_drop_entry(s, &st.by_value, r->other, key, 8, 0) == MOT_OK);
			return add_entry(me, r, &st.by_value, r->other, (uint64_t) r->made, view, false);
		}
		return true;
	}
}

static bool
do_change(int me, const mot_view *view, const operation *op, result *r, uint32_t command)
{
	transaction *t = &txn[me];
	mot_session *s = session[me];
	mot_mark	mark = mot_txn_mark(s);
	mot_row    *row;
	const mot_version *seen,
			   *newest;
	record		old;
	uint8_t		key[8];
	void	   *data;
	mot_status	status;
	int			to = op->kind == MOVE ? op->to : op->key;

	if (get(&st, s, view, (uint64_t) op->key, &row, &seen) == NULL)
	{
		r->outcome = NONE;
		return true;
	}
	CALL(mot_row_lock(s, view, st.table, row, seen, mode_of(op->kind), &newest));
	if (status == MOT_DELETED)
	{
		r->outcome = NONE;
		return true;
	}
	if (status != MOT_OK && status != MOT_CHANGED)
		FAIL(status);
	if (status == MOT_CHANGED && op->kind == KEY_SHARE && level != MOT_READ_COMMITTED)
	{
		/* as the host does: only the key matters */
		if (((const record *) mot_version_data(newest))->id != ((const record *) mot_version_data(seen))->id)
			FAIL(MOT_CONFLICT_CHANGED);
		newest = seen;
		status = MOT_OK;
	}
	old = *(const record *) mot_version_data(newest);
	r->found_newer |= status == MOT_CHANGED;
	if (old.id != (uint64_t) op->key)
	{
		/* it is another's row now */
		mot_row_unlock(s, row);
		r->outcome = NONE;
		return true;
	}
	r->seen.value[0] = old.value;
	if (op->kind < INSERT)
		return true;
	schedule_point("locked");
	if (op->kind == DELETE)
	{
		CALL(mot_row_delete(s, st.table, row, command));
		if (status != MOT_OK)
			FAIL(status);
		return true;
	}
	if (op->kind == ADD)
		r->made = old.value + 1000;
	else if (op->kind == MOVE)
		r->made = old.value;
	CALL(mot_row_update(s, st.table, row, command, 0, sizeof(record),
						(value_index && r->made != old.value ? MOT_KEYS_CHANGE : 0) |
						(to != op->key ? MOT_UNIQUE_KEYS_CHANGE : 0), &data));
	if (status != MOT_OK)
		FAIL(status);
	memset(data, 0, sizeof(record));
	((record *) data)->id = (uint64_t) to;
	((record *) data)->value = r->made;
	if (to != op->key)
	{
		put_key(key, old.id);
		REQUIRE(mot_index_drop_entry(s, &st.by_id, row, key, 8, 0) == MOT_OK);
		schedule_point("dropped");
		if (!add_entry(me, r, &st.by_id, row, (uint64_t) to, view, false))
		{
			mot_txn_rollback_to(s, mark);
			return !t->failed;
		}
	}
	if (value_index && r->made != old.value)
	{
		put_key(key, (uint64_t) old.value);
		REQUIRE(mot_index_drop_entry(s, &st.by_value, row, key, 8, 0) == MOT_OK);
		if (!add_entry(me, r, &st.by_value, row, (uint64_t) r->made, view, false))
			return false;
	}
	return true;
}

static bool
do_operation(int me, const mot_view *view, const operation *op, result *r, uint32_t command)
{
	switch (op->kind)
	{
		case GET:
			{
				const record *found = get(&st, session[me], view, (uint64_t) op->key, NULL, NULL);

				r->seen.value[0] = found ? found->value : ABSENT;
				return true;
			}
		case SCAN:
		case SCAN_BY_ID:
		case SCAN_BY_VALUE:
			txn[me].saw_twice |= !do_scan(me, view, op->kind, &r->seen);
			return true;
		case INSERT:
			return do_insert(me, view, op, r, command);
		case UPSERT:
			return do_upsert(me, view, op, r, command);
		default:
			return do_change(me, view, op, r, command);
	}
}

static bool
do_transaction(int me)
{
	transaction *t = &txn[me];
	mot_session *s = session[me];
	mot_view	view = {0, 0, NULL, false};
	mot_mark	mark = 0;
	mot_status	status;
	result		ignored;
	result	   *r = &ignored;

	if (level == MOT_SERIALIZABLE)
		mot_serial_begin(s);
	if (level != MOT_READ_COMMITTED)
		view.snapshot = mot_snapshot_take(s);
	t->snapshot_taken = ++now;
	mot_txn_begin(s, level, view.snapshot, (uint64_t) me);
	for (int i = 0; i < t->program.ops; i++)
	{
		const operation *op = &t->program.op[i];

		r = &t->result[i];
		t->at = i;
		schedule_point("operation");
		r->began = ++now;
		r->made = (me + 1) * 100 + i;
		if (op->kind == SAVEPOINT)
			mark = mot_txn_mark(s);
		else if (op->kind == UNDO)
			mot_txn_rollback_to(s, mark);
		else
		{
			if (level == MOT_READ_COMMITTED)
				view.snapshot = mot_snapshot_take(s);
			view.command = (uint32_t) i + 1;
			if (!do_operation(me, &view, op, r, (uint32_t) i + 1))
				return false;
			if (level == MOT_READ_COMMITTED)
				mot_snapshot_hold(s, MOT_TS_NONE);
		}
		r->ended = ++now;
		t->done++;
	}
	schedule_point("operation");
	if (level == MOT_READ_COMMITTED)
		(void) mot_snapshot_take(s);
	t->commit_began = ++now;
	t->at = t->program.ops;
	mot_txn_may_precede(s);
	CALL(mot_txn_prepare(s));
	if (status != MOT_OK)
		FAIL(status);
	t->prepared = ++now;
	schedule_point("prepared");
	t->release_began = ++now;
	t->ts = mot_txn_commit(s);
	return true;
}

static void
act(int me)
{
	transaction *t = &txn[me];

	if (me == txns)
	{
		for (int i = 0; i < 2; i++)
		{
			schedule_point("operation");
			(void) mot_reclaim_all(session[me]);
		}
		return;
	}
	t->began = ++now;
	t->running = true;
	if (!do_transaction(me))
	{
		schedule_point("operation");
		t->release_began = ++now;
		mot_txn_abort(session[me]);
	}
	mot_snapshot_hold(session[me], MOT_TS_NONE);
	t->running = false;
	t->ended = ++now;
}

#endif							/* MOT_SCHEDULE_ACTORS_H */
