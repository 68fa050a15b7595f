/*-------------------------------------------------------------------------
 *
 * schedule_model.h
 *	  The sequential model that test_schedule.c holds its actors against.
 *
 * The commits in the order of their timestamps, the states that each of them
 * made, and, for each isolation level, whether what a transaction's
 * operations returned can come from states that the level and the clock
 * allow.  The rules are in test_schedule.c's first comment.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SCHEDULE_MODEL_H
#define MOT_SCHEDULE_MODEL_H

#include "schedule_actors.h"

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

/*
 * Has it taken a key and given it back?  That the key was free then says nothing
 * of the snapshot, or of the newest state before the commit: somebody else may have
 * taken it afterwards and committed before.
 */
static bool
gave_key_back(const transaction *t, int n)
{
	const operation *op = &t->program.op[n];

	return undone_by(t, n) >= 0 &&
		(inserts(op, &t->result[n]) || (op->kind == MOVE && t->result[n].outcome == DONE));
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
		/* whose key it is, the snapshot need not show */
		else if (!(snapshot && (gave_key_back(t, i) || (op->caught && t->result[i].outcome == DUPLICATE))) &&
				 !returns(op, &t->result[i], &s))
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
		else if (t->result[i].outcome == DONE && !gave_key_back(t, i) &&
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

/*
 * Can what is left be done one after another, beginning with this state, so
 * that each returns what it did, and the last one leaves the last state
 * behind?  Who began after another had ended comes after it.
 */
static bool
serial_from(const state *before, unsigned left)
{
	if (left == 0)
		return memcmp(before, &states[commit_count], sizeof(state)) == 0;
	for (int i = 0; i < txns; i++)
	{
		bool		changed[KEYS];
		bool		first = (left & 1u << i) != 0;
		state		s = *before;

		for (int k = 0; k < txns; k++)
			first &= !(left & 1u << k) || txn[k].ended > txn[i].began;
		if (!first || !runs_on(&txn[i], before, false))
			continue;
		changes(&txn[i], changed, &s);
		if (serial_from(&s, left & ~(1u << i)))
			return true;
	}
	return false;
}

static bool
serial_order_exists(void)
{
	unsigned	committed = 0;

	for (int i = 0; i < txns; i++)
		if (!txn[i].failed)
			committed |= 1u << i;
	return serial_from(&states[0], committed);
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

#endif							/* MOT_SCHEDULE_MODEL_H */
