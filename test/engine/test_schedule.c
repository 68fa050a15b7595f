/*-------------------------------------------------------------------------
 *
 * test_schedule.c
 *	  Small transactions in every interleaving, against a sequential model.
 *
 * Two or three transactions of a few operations each run under the scheduler
 * of schedule.h, which stops them at every stop point of the engine.  Each
 * notes what its operations returned and when they began and ended.  The
 * model is a list of commits in the order of their timestamps; a state is
 * what the first n of them made.  Then, with own changes on top,
 *
 *	SERIALIZABLE	a transaction that committed changes returned what the state
 *					just before it gives: the order of timestamps is serial.  One
 *					that changed nothing returned what one state gives
 *	SNAPSHOT		every transaction returned what one state gives, and of those
 *					that committed nobody changed a row that somebody else had
 *					changed since that state
 *	READ COMMITTED	each operation returned what some state gives that was
 *					newest while it ran; changes started from the state just
 *					before the own commit (no lost update)
 *
 * where a state is one that the clock allows: no newer than what had begun to
 * commit, no older than what had ended (for transactions that failed, too).
 * Two rules are PostgreSQL's own.  Whether a key is free is decided on the
 * newest rows at every level, so with one snapshot a transaction can insert
 * a key that its snapshot still shows, and then sees two rows.  And at READ
 * COMMITTED a change whose row was deleted or moved meanwhile changes nothing,
 * even if the same commit put another row in its place.
 * Afterwards all ways to read the table agree with the last state, and when
 * everything is reclaimed nothing is left over.
 *
 * Needs a library with stop points (-DMOT_STOP_POINTS).
 * Each set of transactions runs in all schedules without preemptions, then in
 * all with at most one, two, ..., as long as these are not more than
 * MOT_SCHEDULE_LIMIT (300; a long run takes 20000), and
 * MOT_SCHEDULE_SECONDS is how long random transactions are tried (5).
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

#if defined(MOT_STOP_POINTS) && !defined(__SANITIZE_THREAD__)

#include <sys/prctl.h>

#include "schedule.h"
#include "txn_util.h"

#define KEYS	4				/* 0 .. 3; the first two exist at first */
#define OPS		4
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
static bool reclaiming;			/* the actor after the last one reclaims */
static mot_isolation level;
static bool value_index;
static bool with_remains;		/* the index still has entries of deleted rows */
static mot_session *keeper;		/* whose snapshot keeps them */
static uint64_t now;			/* counts what is noted */

/* --------------------------------------------------------------- the actors */

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
		mot_scan_begin(s, &scan, st.table, view, NULL);
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
add_entry(int me, result *r, const mot_index_handle *handle, mot_row *row, uint64_t n, const mot_view *view)
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
		if (level != MOT_READ_COMMITTED)
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
	if (!add_entry(me, r, &st.by_id, row, (uint64_t) op->key, view) ||
		(value_index && !add_entry(me, r, &st.by_value, row, (uint64_t) r->made, view)))
	{
		mot_txn_rollback_to(s, mark);
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
						return MOT_MODE_UPDATE;

		case NO_KEY_LOCK:
			return MOT_MODE_NO_KEY_UPDATE;
		case SHARE:
			return MOT_MODE_SHARE;
		case KEY_SHARE:
			return MOT_MODE_KEY_SHARE;
		case DELETE:
			return MOT_MODE_DELETE;
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
			return add_entry(me, r, &st.by_value, r->other, (uint64_t) r->made, view);
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
		put_key(key, old.id);
		REQUIRE(mot_index_drop_entry(s, &st.by_id, row, key, 8, 0) == MOT_OK);
		put_key(key, (uint64_t) old.value);
		if (value_index)
			REQUIRE(mot_index_drop_entry(s, &st.by_value, row, key, 8, 0) == MOT_OK);
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
		if (!add_entry(me, r, &st.by_id, row, (uint64_t) to, view))
		{
			mot_txn_rollback_to(s, mark);
			return !t->failed;
		}
	}
	if (value_index && r->made != old.value)
	{
		put_key(key, (uint64_t) old.value);
		REQUIRE(mot_index_drop_entry(s, &st.by_value, row, key, 8, 0) == MOT_OK);
		if (!add_entry(me, r, &st.by_value, row, (uint64_t) r->made, view))
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
	mot_view	view = {0, 0};
	mot_mark	mark = 0;
	mot_status	status;
	result		ignored;
	result	   *r = &ignored;

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

/* ---------------------------------------------------------------- the model */

static transaction *commits[SCHEDULE_ACTORS];
static int	commit_count;
static state states[SCHEDULE_ACTORS + 1];	/* states[n]: after n commits */
static state first_state;

/* what an operation of a kept program does to a state */
static void
apply(const operation *op, const result *r, state *s)
{
	if (r->outcome !=DONE)
		return;
	switch (op->kind)
	{
		case INSERT:
		case UPSERT:
		case UPDATE:
		case ADD:
			s->value[op->key] = r->made;
			break;
		case DELETE:
			s->value[op->key] = ABSENT;
			break;
		case MOVE:
			s->value[op->key] = ABSENT;
			s->value[op->to] = r->made;
			break;
		default:
			break;
	}
}

/* has it brought a new row? */
static bool
inserts(const operation *op, const result *r)
{
	return r->outcome == DONE &&
		(op->kind == INSERT || (op->kind == UPSERT && r->seen.value[0] == ABSENT));
}

/* would the operation return this on that state? */
static bool
returns(const operation *op, const result *r, const state *s)
{
	int64_t		value = s->value[op->key];

	switch (op->kind)
	{
		case GET:
			return r->seen.value[0] == value;
		case SCAN:
		case SCAN_BY_ID:
		case SCAN_BY_VALUE:
			return memcmp(&r->seen, s, sizeof(state)) == 0;
		case INSERT:
			return (r->outcome == DUPLICATE) == (value != ABSENT);
		case MOVE:
			if (r->outcome == DUPLICATE)
				return value != ABSENT && s->value[op->to] != ABSENT;
			if (r->outcome == DONE && s->value[op->to] != ABSENT)
				return false;
			break;
		case SAVEPOINT:
		case UNDO:
			return true;
		default:
			break;
	}
	return r->outcome == NONE ? value == ABSENT : r->seen.value[0] == value;
}

/*
 * All operations of a transaction, on a state of before it.  With one snapshot
 * that is not where the transaction takes effect: what follows the insert of
 * a key that the snapshot still shows is not judged.
 */
static bool
runs_on(const transaction *t, const state *before, bool snapshot)
{
	state		s = *before;
	state		saved = s;

	for (int i = 0; i < t->done; i++)
	{
		const operation *op = &t->program.op[i];

		if (op->kind == SAVEPOINT)
			saved = s;
		else if (op->kind == UNDO)
			s = saved;
		else if (snapshot && t->result[i].outcome == DONE &&
				 ((inserts(op, &t->result[i]) && s.value[op->key] != ABSENT) ||
				  (op->kind == MOVE && s.value[op->to] != ABSENT)))
			return true;
		else if (!returns(op, &t->result[i], &s))
			return false;
		apply(op, &t->result[i], &s);
	}
	return true;
}

/*
 * The state after a transaction; "changed": which keys' rows, of those that
 * were there before it, it has changed or deleted.
 */
static void
changes(const transaction *t, bool *changed, state *s)
{
	state		saved = *s;
	bool		saved_changed[KEYS] = {0};
	bool		own[KEYS] = {0};	/* rows it has inserted, or moved there */
	bool		saved_own[KEYS] = {0};

	memset(changed, 0, KEYS * sizeof(bool));
	for (int i = 0; i < t->done; i++)
	{
		const operation *op = &t->program.op[i];

		if (op->kind == SAVEPOINT)
		{
			saved = *s;
			memcpy(saved_changed, changed, sizeof(saved_changed));
			memcpy(saved_own, own, sizeof(own));
		}
		else if (op->kind == UNDO)
		{
			*s = saved;
			memcpy(changed, saved_changed, sizeof(saved_changed));
			memcpy(own, saved_own, sizeof(own));
		}
		else if (op->kind >= INSERT && t->result[i].outcome == DONE)
		{
			if (inserts(op, &t->result[i]))
				own[op->key] = true;
			else if (!own[op->key])
				changed[op->key] = true;
			if (op->kind == MOVE)
				own[op->to] = true;
			if (op->kind == MOVE || op->kind == DELETE)
				own[op->key] = false;
			apply(op, &t->result[i], s);
		}
	}
}

/* is there a free place in the state for every key that the transaction leaves behind as new? */
static bool
keys_are_free(const transaction *t, const state *before)
{
	state		s = *before;
	state		saved = s;

	for (int i = 0; i < t->done; i++)
	{
		const operation *op = &t->program.op[i];

		if (op->kind == SAVEPOINT)
			saved = s;
		else if (op->kind == UNDO)
			s = saved;
		else if (t->result[i].outcome == DONE &&
				 ((inserts(op, &t->result[i]) && s.value[op->key] != ABSENT) ||
				  (op->kind == MOVE && s.value[op->to] != ABSENT)))
			return false;
		apply(op, &t->result[i], &s);
	}
	return true;
}

/* the states that may be newest at some time from "from" to "until" */
static void
possible_states(uint64_t from, uint64_t until, int *oldest, int *newest)
{
	*oldest = *newest = 0;
	for (int i = 0; i < commit_count; i++)
	{
		if (commits[i]->ended < from)
			*oldest = i + 1;
		if (commits[i]->commit_began < until)
			*newest = i + 1;
	}
}

static int
my_commit(const transaction *t)
{
	for (int i = 0; i < commit_count; i++)
		if (commits[i] == t)
			return i;
	return -1;
}

static bool
snapshot_is_right(const transaction *t)
{
	int			oldest,
				newest;
	int			mine = my_commit(t);
	bool		changed[KEYS];
	bool		others[KEYS];
	state		s;

	if (level == MOT_SERIALIZABLE && mine >= 0)
		return runs_on(t, &states[mine], false);
	if (mine >= 0 && !keys_are_free(t, &states[mine]))
		return false;
	possible_states(t->began, t->snapshot_taken, &oldest, &newest);
	for (int n = oldest; n <= newest; n++)
	{
		bool		good = runs_on(t, &states[n], true);

		s = states[n];
		changes(t, changed, &s);
		for (int i = n; good && i < mine; i++)
		{
			s = states[i];
			changes(commits[i], others, &s);
			for (int k = 0; k < KEYS; k++)
				good &= !(changed[k] && others[k]);
		}
		if (good)
			return true;
	}
	return false;
}

static bool
operation_is_right(const transaction *t, int n, const bool *own, const state *mine)
{
	const operation *op = &t->program.op[n];
	const result *r = &t->result[n];
	int			oldest,
				newest;

	possible_states(r->began, r->ended, &oldest, &newest);
	for (int i = oldest; i <= newest; i++)
	{
		state		s = states[i];

		for (int k = 0; k < KEYS; k++)
			if (own[k])
				s.value[k] = mine->value[k];
		if (returns(op, r, &s))
			return true;
		/* it may have seen the row in one state and the other key in the next */
		if (op->kind == MOVE && r->outcome == DUPLICATE && s.value[op->to] != ABSENT)
			return true;
		if (i < newest && op->kind >= LOCK &&op->kind != INSERT && r->outcome == NONE)
		{
			bool		changed[KEYS];

			changes(commits[i], changed, &s);
			if (changed[op->key])
				return true;
		}
	}
	return false;
}

static bool
read_committed_is_right(const transaction *t)
{
	bool		own[KEYS] = {0};
	bool		saved_own[KEYS] = {0};
	int			commit = my_commit(t);
	state		mine = commit >= 0 ? states[commit] : first_state;
	state		saved = mine;

	for (int i = 0; i < t->done; i++)
	{
		const operation *op = &t->program.op[i];
		const result *r = &t->result[i];

		if (op->kind == SAVEPOINT)
		{
			memcpy(saved_own, own, sizeof(own));
			saved = mine;
			continue;
		}
		if (op->kind == UNDO)
		{
			memcpy(own, saved_own, sizeof(own));
			mine = saved;
			continue;
		}
		if (!operation_is_right(t, i, own, &mine))
			return false;
		if (op->kind >= INSERT && r->outcome == DONE)
		{
			/* what is changed is locked until commit, or ROLLBACK TO */
			if (commit >= 0 && undone_by(t, i) < 0 && !returns(op, r, &mine))
				return false;
			own[op->key] = true;
			if (op->kind == MOVE)
				own[op->to] = true;
			apply(op, r, &mine);
		}
	}
	return true;
}

/*
 * What one transaction locks nobody else changes until it ends, or goes back
 * to before.  Who changes rows has locked them when he is prepared.
 */
static bool
locks_were_held(const transaction *t)
{
	for (int n = 0; n < t->done; n++)
	{
		const operation *op = &t->program.op[n];
		int			undo = undone_by(t, n);
		uint64_t	until = undo >= 0 ? t->result[undo].began : t->release_began;

		if (op->kind < LOCK ||op->kind > KEY_SHARE || t->result[n].outcome !=DONE)
			continue;
		for (int i = 0; i < commit_count; i++)
			for (int k = 0; commits[i] != t && k < commits[i]->done; k++)
			{
				const transaction *other = commits[i];
				const operation *o = &other->program.op[k];

				if (o->kind > INSERT && o->key == op->key && (op->kind != KEY_SHARE || o->kind >= DELETE) &&
					o->kind <= MOVE && other->result[k].outcome == DONE && !inserts(o, &other->result[k]) &&
					undone_by(other, k) < 0 &&
					other->prepared > t->result[n].ended && other->prepared < until)
					return false;
			}
	}
	return true;
}

/* ------------------------------------------------------------ before, after */

static void
prepare(void)
{
	now = 0;
	if (st.engine == NULL)
		store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, value_index);
	else
	{
		mot_engine_reset(st.engine);
		store_tables(&st, value_index);
	}
	for (int i = 0; i < SCHEDULE_ACTORS; i++)
		session[i] = open_session(st.engine, (unsigned) i + 1);
	(void) mot_snapshot_take(session[0]);
	mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
	for (int k = 0; k < KEYS; k++)
	{
		first_state.value[k] = k < 2 ? 10 + k : ABSENT;
		if (k < 2)
			REQUIRE(insert(&st, session[0], 0, (uint64_t) k, 10 + k) == MOT_OK);
	}
	(void) mot_txn_commit(session[0]);
	keeper = open_session(st.engine, SCHEDULE_ACTORS + 1);
	for (int n = 0; with_remains && n < 3; n++)
	{
		/* one row has had key 3, two have had key 2 */
		mot_view	view = begin_view(session[0], MOT_COMMAND_MAX);

		mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
		REQUIRE(insert(&st, session[0], 0, n == 0 ? 3 : 2, 50 + n) == MOT_OK);
		(void) mot_txn_commit(session[0]);
		view = begin_view(session[0], MOT_COMMAND_MAX);
		(void) mot_snapshot_take(keeper);
		mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
		REQUIRE(delete_id(&st, session[0], &view, 0, n == 0 ? 3 : 2) == MOT_OK);
		(void) mot_txn_commit(session[0]);
	}
	mot_snapshot_hold(session[0], MOT_TS_NONE);
	for (int i = 0; i < txns; i++)
	{
		program		p = txn[i].program;

		memset(&txn[i], 0, sizeof(txn[i]));
		txn[i].program = p;
	}
}

static void
print_state(const char *what, const state *s)
{
	printf("#   %s:", what);
	for (int k = 0; k < KEYS; k++)
		printf(" %lld", (long long) s->value[k]);
	printf("\n");
}

static void
print_transactions(void)
{
	static const char *const level_name[] = {"READ COMMITTED", "SNAPSHOT", "SERIALIZABLE"};

	printf("# at %s%s%s\n", level_name[level], value_index ? ", with an index of values" : "",
		   with_remains ? ", with remains of deleted rows" : "");
	for (int i = 0; i < txns; i++)
	{
		const transaction *t = &txn[i];

		printf("# %c: %s (%s), timestamp %llu, %llu to %llu, commit began %llu\n", 'A' + i,
			   t->failed ? "failed" : "committed", mot_status_name(t->why), (unsigned long long) t->ts,
			   (unsigned long long) t->began, (unsigned long long) t->ended, (unsigned long long) t->commit_began);
		for (int n = 0; n < t->program.ops; n++)
		{
			const operation *op = &t->program.op[n];
			const result *r = &t->result[n];

			printf("#   %s %d", op_name[op->kind], op->key);
			if (op->kind == MOVE)
				printf(" to %d", op->to);
			if (n < t->done)
			{
				printf(": %s, made %lld, saw", r->outcome == DONE ? "done" : r->outcome == NONE ? "none" : "duplicate",
					   (long long) r->made);
				for (int k = 0; k < (op->kind >= SCAN && op->kind <= SCAN_BY_VALUE ? KEYS : 1); k++)
					printf(" %lld", (long long) r->seen.value[k]);
				printf(" (%llu to %llu)", (unsigned long long) r->began, (unsigned long long) r->ended);
			}
			printf("\n");
		}
	}
	for (int i = 0; i <= commit_count; i++)
		print_state("state", &states[i]);
}

static bool
everything_is_right(void)
{
	mot_view	view;
	mot_memory_report report;
	state		seen;
	bool		changed[KEYS];

	commit_count = 0;
	for (int i = 0; i < txns; i++)
		if (txn[i].ts != 0)
		{
			int			n = commit_count++;

			for (; n > 0 && commits[n - 1]->ts > txn[i].ts; n--)
				commits[n] = commits[n - 1];
			commits[n] = &txn[i];
		}
	states[0] = first_state;
	for (int i = 0; i < commit_count; i++)
	{
		states[i + 1] = states[i];
		changes(commits[i], changed, &states[i + 1]);
	}
	for (int i = 0; i < txns; i++)
	{
		if (txn[i].failed && level == MOT_READ_COMMITTED && txn[i].why != MOT_BUSY)
		{
			printf("# a transaction failed at READ COMMITTED\n");
			return false;
		}
		if (txn[i].waited_for_nothing)
		{
			printf("# transaction %c waited where nothing was in its way\n", 'A' + i);
			return false;
		}
		if (!locks_were_held(&txn[i]))
		{
			printf("# what transaction %c had locked was changed\n", 'A' + i);
			return false;
		}
		if (txn[i].saw_twice && (level == MOT_READ_COMMITTED || (level == MOT_SERIALIZABLE && !txn[i].failed)))
		{
			printf("# transaction %c saw a key twice\n", 'A' + i);
			return false;
		}
		if (!(level == MOT_READ_COMMITTED ? read_committed_is_right(&txn[i]) : snapshot_is_right(&txn[i])))
		{
			printf("# transaction %c is not right\n", 'A' + i);
			return false;
		}
	}
	view = begin_view(session[0], MOT_COMMAND_MAX);
	for (op_kind kind = SCAN; kind <= SCAN_BY_VALUE; kind++)
		if (!do_scan(0, &view, kind, &seen) || memcmp(&seen, &states[commit_count], sizeof(seen)) != 0)
		{
			print_state(op_name[kind], &seen);
			return false;
		}
	end_view(session[0]);
	end_view(keeper);
	drain(&st, session[0]);
	mot_memory_report_get(st.engine, &report);
	if (report.retired_objects != 0 || st.by_id.index->stale != 0 ||
		(value_index && st.by_value.index->stale != 0))
	{
		printf("# left over: %llu objects, %lld stale entries\n", (unsigned long long) report.retired_objects,
			   (long long) st.by_id.index->stale);
		return false;
	}
	return true;
}

static bool
verify(void)
{
	bool		right = everything_is_right();

	if (!right)
		print_transactions();
	CHECK(right);
	for (int i = 0; i < SCHEDULE_ACTORS; i++)
		mot_session_close(session[i]);
	mot_session_close(keeper);
	return right;
}

static uint64_t runs_made;

static uint64_t limit;			/* of schedules */

/* false: these were not all */
static bool
explore(int most_preemptions, uint64_t most)
{
	uint64_t	runs = schedule_explore(txns + reclaiming, act, most_preemptions, most, prepare, verify);

	runs_made += runs;
	return runs < most;
}

/* ----------------------------------------------------------------- programs */

/* "u0 g1" is: update key 0, get key 1; see parse() for the letters */
static void
parse(const char *text, program *p)
{
	static const char letters[] = "gSIVlnhkipuadmso";

	p->ops = 0;
	for (; *text; text ++)
	{
		const char *found = strchr(letters, *text);
		operation  *op;

		if (*text == ' ')
			continue;
		REQUIRE(found != NULL && p->ops < OPS);
		op = &p->op[p->ops++];
		op->kind = (op_kind) (found - letters);
		op->key = op->to = 0;
		if (strchr("glnhkipuadm", *text))
			op->key = *++text -'0';
		if (op->kind == MOVE)
			op->to = *++text -'0';
	}
}

static void
try(const char *a, const char *b, const char *c, bool index, int most_preemptions)
{
	parse(a, &txn[0].program);
	parse(b, &txn[1].program);
	txns = c ? 3 : 2;
	if (c)
		parse(c, &txn[2].program);
	value_index = index;
	for (level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
		for (int n = 0; n <= most_preemptions; n++)
			if (!explore(n, limit))
				break;
}

static void
report_runs(void)
{
	printf("# %llu schedules\n", (unsigned long long) runs_made);
	runs_made = 0;
}

static void
lost_updates(void)
{
	try("a0", "a0", NULL, false, 4);
	try("g0 a0", "g0 a0", NULL, false, 3);
	try("a0 a1", "a1 a0", NULL, false, 3);
	try("a0", "a0", NULL, true, 3);
	try("l0 a0", "l0 a0", NULL, false, 3);
	try("h0 a0", "h0 a0", NULL, false, 2);
	try("h0", "a0", "h0 g0", false, 2);
	try("k0 a0", "k0 m02", NULL, false, 2);
	try("k0 a0", "d0", "k0", false, 2);

	/*
	 * whoever shares the key must not be shown a change that its transaction
	 * has changed again
	 */
	try("k0", "u0 u0", NULL, false, 2);
	try("a0", "a0", "a0", false, 2);
	report_runs();
}

static void
row_locks(void)
{
	/*
	 * of all strengths, before a change and after it, alone and beside each
	 * other
	 */
	try("n0 g0", "h0 g0", "k0", false, 2);
	try("h0 a0", "k0 a0", NULL, false, 2);
	try("h0 h0 a0", "h0 d0", NULL, false, 2);
	try("k0 h0 l0", "k0 a0", NULL, false, 2);
	try("n0 l0", "k0 g0", NULL, false, 2);
	try("a0 l0 g0", "a0", NULL, false, 2);
	try("a0 l0 g0", "k0 a0", NULL, true, 2);
	try("a0 h0 g0", "d0", NULL, false, 2);
	try("h0 a1", "h1 a0", NULL, false, 2);
	try("h0 h1", "m02 m10", NULL, false, 2);
	try("h0", "h0", "a0", false, 2);
	report_runs();

	/* let go of by ROLLBACK TO, but not what was held before */
	try("s h0 o g1", "a0", NULL, false, 2);
	try("h0 s l0 o", "h0 a0", NULL, false, 2);
	try("k0 s h0 o", "a0", "d0", false, 1);
	try("s a0 l0 o", "a0", NULL, false, 2);
	try("a0 s l0 o", "a0", NULL, false, 2);
	try("h0 s a0 o", "h0 a0", NULL, false, 2);
	try("l0 s d0 o", "k0 a0", NULL, true, 1);
	report_runs();
}

static void
upserts(void)
{
	try("p2", "p2", NULL, false, 3);
	try("p2 p2", "p2 g2", NULL, true, 2);
	try("p0", "d0", NULL, false, 3);
	try("p0", "d0 i0", NULL, false, 2);
	try("p2", "m02", NULL, false, 2);
	try("p0", "m02", NULL, true, 2);
	try("s p2 o p2", "p2", NULL, false, 2);
	try("p2 p3", "p3 p2", NULL, false, 2);
	try("p2", "p2", "p2", false, 2);
	try("p0", "k0 g0", "a0", false, 1);
	report_runs();
}

static void
dirty_reads_and_skew(void)
{
	try("a0 a1", "g0 g1", NULL, false, 3);
	try("a0 a1", "S", NULL, true, 3);
	try("a0 a1", "I", NULL, false, 3);
	try("i2 i3", "V", NULL, true, 3);
	try("d0 i2", "S I", NULL, true, 2);
	try("m02 m10", "I V", NULL, true, 2);
	try("s a0 o a1", "g0 g1", NULL, false, 2);
	report_runs();
}

static void
write_skew(void)
{
	try("g1 a0", "g0 a1", NULL, false, 4);
	try("g0 g1 a0", "g0 g1 a1", NULL, false, 3);
	try("S i2", "S i3", NULL, false, 3);
	try("I i2", "I i3", NULL, true, 2);
	try("V a0", "V a1", NULL, true, 2);
	try("g2 i3", "g3 i2", NULL, false, 3);
	try("S d0", "S d1", NULL, false, 2);
	try("g1 a0", "g0 a1", "g0 g1", false, 2);
	report_runs();
}

static void
unique_keys(void)
{
	try("i2", "i2", NULL, false, 4);
	try("i2 d2", "i2", NULL, false, 3);
	try("d0 i0", "i0", NULL, false, 3);
	try("d0 i0", "d0 i0", NULL, true, 2);
	try("m02", "i2", NULL, false, 3);
	try("m02", "m12", NULL, false, 3);
	try("m02 m10", "i0", NULL, false, 2);
	try("m02 m20", "i2 d2", NULL, true, 2);
	try("s i2 o", "i2", NULL, false, 3);
	try("d0", "i0", "g0", false, 2);
	try("i2", "i2", "i2", false, 2);
	report_runs();
}

/* an entry that is there already hides a new key from the tree's versions */
static void
keys_of_deleted_rows(void)
{
	with_remains = true;
	try("g3 a0", "g0 i3", NULL, false, 3);
	try("g2 a0", "g0 i2", NULL, false, 3);
	try("I a0", "g0 i3", NULL, false, 2);
	try("V a0", "g0 i2", NULL, true, 2);
	try("S a0", "g0 i2", NULL, false, 2);
	try("i2", "i2", NULL, false, 3);
	try("i3 d3", "i3", "g3", false, 2);
	try("m02", "i2", NULL, true, 2);
	with_remains = false;
	report_runs();
}

static void
beside_reclamation(void)
{
	reclaiming = true;
	try("a0", "g0 g0", NULL, false, 2);
	try("d0 i0", "I", NULL, true, 2);
	try("m02", "g0 g2", NULL, true, 2);
	try("i2 d2", "V", NULL, true, 2);
	try("s i2 o", "S", NULL, false, 2);
	try("a0", "a0", NULL, true, 2);
	reclaiming = false;
	report_runs();
}

static void
any_transactions(void)
{
	static const char *const some[] = {
		"g0", "g1", "g2", "S", "I", "V", "l0", "l1", "n0", "h0", "h1", "k0", "k1", "i0", "i2", "i3", "p0", "p2", "p3", "u0", "u1", "a0", "a1", "a2", "d0", "d1", "d2",
		"m02", "m01", "m12", "m20", "s i2 o", "s a0 o", "s d0 o", "s h0 o", "s l0 o", "s p2 o"
	};
	const char *seconds = getenv("MOT_SCHEDULE_SECONDS");
	double		until = test_seconds() + (seconds ? atof(seconds) : 5);
	char text[	3][64];

	while (test_seconds() < until && atomic_load(&test_failed_checks) == 0)
	{
		bool		index = test_random() % 2;
		int			n = test_random() % 3 ? 2 : 3;

		for (int t = 0; t < n; t++)
		{
			int			left = n == 2 ? 3 : 2;

			text[		t][0] = '\0';

			for (int i = (int) (test_random() % (unsigned) left); i >= 0 && left > 0; i--)
			{
				const char *op = some[test_random() % (sizeof(some) / sizeof(some[0]))];

				if (op[0] == 's' && text[t][0] != '\0')
					op = "a0";
				strcat(strcat(text[t], op), " ");
				left -= op[0] == 's' ? 3 : 1;
			}
		}
		reclaiming = test_random() % 4 == 0;
		parse(text[0], &txn[0].program);
		parse(text[1], &txn[1].program);
		if (n == 3)
			parse(text[2], &txn[2].program);
		txns = n;
		value_index = index;
		with_remains = test_random() % 2;
		level = (mot_isolation) (test_random() % 3);
		(void) (explore(1, limit / 4 + 1) && explore(2, limit / 4 + 1));
	}
	reclaiming = with_remains = false;
	report_runs();
}

int
main(int argc, char **argv)
{
	const char *l = getenv("MOT_SCHEDULE_LIMIT");

	test_begin(argc, argv);
	limit = l ? strtoull(l, NULL, 0) : 300;

	/*
	 * every run starts with fresh memory; huge pages would be zeroed for
	 * nothing
	 */
	(void) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	schedule.given_up = print_transactions;
	RUN(lost_updates);
	RUN(row_locks);
	RUN(upserts);
	RUN(dirty_reads_and_skew);
	RUN(write_skew);
	RUN(unique_keys);
	RUN(keys_of_deleted_rows);
	RUN(beside_reclamation);
	RUN(any_transactions);
	mot_engine_destroy(st.engine);
	return test_end();
}

#else

int
main(void)
{
	printf("ok 1 - schedules # SKIP needs stop points, and one thread\n1..1\n");
	return 0;
}

#endif
