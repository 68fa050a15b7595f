/*-------------------------------------------------------------------------
 *
 * undo.c
 *	  Rollback, of a transaction or to a savepoint: the journal backwards.
 *
 * Versions come off their rows, and rows go, at once, and locks with them.  A
 * rollback of many changes does not go through the indexes, where each entry
 * would wait for memory: it leaves them to reclamation.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* a version that has been taken off again is freed when nobody can be standing on it */
static void
owe_undone(mot_session *s, mot_row *row, mot_version *v)
{
	if (version_is_shared(v))
	{
		if (--version_grave(v)->rows == 0)
			mot_owed_undone(s, OWED_OBJECT, v);
	}
	else if (v == &row->inlined)
		mot_owed_undone(s, OWED_INLINE, row);
	else
		mot_owed_undone(s, OWED_OBJECT, v);
}

/* the entry's key, if it has one that is elsewhere */
static inline void
release_key(mot_session *s, const journal_entry *e)
{
	if (entry_has_long_key(e))
		mot_journal_release_key(s, entry_key(e));
}

/* undo the last journal entry */
static void
undo_last(mot_session *s)
{
	journal_entry *e = journal_at(s, s->entries - 1);
	mot_row    *row = entry_row(e);
	mot_version *v = (mot_version *) (uintptr_t) e->b;

	MOT_STOP_POINT("undo");
	switch (entry_kind(e))
	{
		case J_LOCK:
			atomic_store_explicit(&row->head, make_head(0, head_version(row_head(row))),
								  memory_order_release);
			break;

		case J_SHARE:
			mot_share_drop(s, e, true);
			break;

		case J_INSERT_ADD:
			mot_index_undo_add(s, (mot_index *) (uintptr_t) e->a, row, entry_key(e), e->c);
			s->writes--;
			/* FALLTHROUGH */

		case J_INSERT:
			mot_row_unmark(s->engine->region, row);
			/* release: a scan that still holds the row finds no version in it */
			atomic_store_explicit(&row->head, 0, memory_order_release);
			mot_owed_undone(s, OWED_OBJECT, row);
			s->writes--;
			break;

		case J_UPDATE:
		case J_DELETE:
			s->writes--;
			if (entry_flags(e) & JE_DEFERRED)
			{
				/* never seen by anybody else */
				(void) mot_map_put(&s->deferred, (uint64_t) (uintptr_t) row, e->c);
				s->deferred_count--;
				owe_undone(s, row, v);	/* our own scans may point to it */
				break;
			}
			/* release: who takes the lock next sees the chain without v */
			atomic_store_explicit(&row->head,
								  entry_flags(e) & JE_LOCKED_HERE ?
								  make_head(0, version_below(row, v)) :
								  make_head(s->owner, version_below(row, v)) |
								  (row_head(row) & HEAD_FULL),
								  memory_order_release);
			owe_undone(s, row, v);
			break;

		case J_ADD:
			mot_index_undo_add(s, (mot_index *) (uintptr_t) e->a, row, entry_key(e), e->c);
			release_key(s, e);
			s->writes--;
			break;

		case J_DROP:

			/*
			 * the count of stale entries falls when nobody can be relying on
			 * it
			 */
			mot_owed_undone(s, OWED_ENTRY_DONE, (void *) (uintptr_t) e->b);
			s->writes--;
			break;
	}
	s->entries--;
}

/* a rollback of more than this leaves index entries to reclamation */
#define MANY_ENTRIES 1000

/* so many entries ahead the rows and versions are asked for */
#define UNDO_AHEAD 8

/*
 * Undo the last two journal entries, if these are the old and the new key of a
 * row that others have, without going down the index.  As after a commit both
 * keys lead to the row for a while, and who comes by one of them asks the row;
 * what was to drop the old one drops the new one.
 *
 * Nobody waits for a million changes to be taken back, then, as nobody waits
 * for a million old keys to be dropped.  If the process dies the server starts
 * anew, and with it the engine.
 */
static bool
undo_key_change(mot_session *s, mot_mark mark)
{
	journal_entry *add = journal_at(s, s->entries - 1);
	journal_entry *e;
	mot_row    *row = entry_row(add);
	index_drop *drop;
	mot_version *v;

	if (entry_kind(add) != J_ADD || s->entries < mark + 2)
		return false;
	e = journal_at(s, s->entries - 2);
	drop = (index_drop *) (uintptr_t) e->b;
	if (entry_kind(e) != J_DROP || entry_row(e) != row || e->a != add->a || !drop->stale ||
		mot_usable_size(s->engine->region, drop) < sizeof(index_drop) + add->c)
		return false;

	/*
	 * A row of our own goes at once, and must not be found by then.  One that
	 * has a version of ours even when a savepoint has been rolled back to
	 * would have others who want the key wait for us.
	 */
	v = version_below(row, head_version(row_head(row)));
	while (mark == 0 && v != NULL && (version_ts(v) & TS_UNCOMMITTED))
		v = version_below(row, v);
	if (v == NULL || (version_ts(v) & TS_UNCOMMITTED))
		return false;

	drop->len = (uint32_t) add->c;
	memcpy(drop->key, entry_key(add), add->c);
	release_key(s, add);
	drop->undone = true;
	/* relaxed: the row is let go after this, see may_have_other_keys */
	atomic_fetch_add_explicit(&s->engine->undone_entries, 1, memory_order_relaxed);
	mot_owed_undone(s, OWED_ENTRY, drop);
	s->writes -= 2;
	s->entries -= 2;
	return true;
}

static inline bool
index_derives(const mot_index *index)
{
	/* acquire: as in mot_row_leave_indexes, where it is looked at again */
	return (index->flags & MOT_INDEX_DERIVED) &&
		atomic_load_explicit(&((mot_index *) index)->described, memory_order_acquire);
}

/* they are owed, by the promise of one of them */
static void
owe_inserts(mot_session *s, mot_inserts *inserts)
{
	if (inserts == NULL)
		return;
	s->credit--;
	mot_owed_undone(s, OWED_INSERTS, inserts);
}

/*
 * Undo the insert of a row, which with its keys is what the journal ends with,
 * without going down the indexes either.  Whoever comes by one of its keys finds
 * a row without a version; it leaves the indexes as deleted rows do, by keys made
 * from what it had, together with others.
 */
static bool
undo_insert(mot_session *s, mot_mark mark, mot_inserts **others)
{
	uint64_t	first = s->entries - 1;
	journal_entry *e = journal_at(s, first);
	mot_row    *row = entry_row(e);
	mot_inserts *inserts = *others;
	mot_table  *table;

	while (entry_kind(e) == J_ADD && entry_row(e) == row && first > mark &&
		   index_derives((mot_index *) (uintptr_t) e->a))
		e = journal_at(s, --first);
	if (entry_row(e) != row || head_version(row_head(row)) != &row->inlined)
		return false;
	if (entry_kind(e) == J_INSERT_ADD && index_derives((mot_index *) (uintptr_t) e->a))
		table = ((mot_index *) (uintptr_t) e->a)->table;
	else if (entry_kind(e) == J_INSERT && first < s->entries - 1)
		table = (mot_table *) (uintptr_t) e->a;
	else
		return false;

	if (inserts == NULL || inserts->table != table || inserts->rows == GRAVE_ROWS)
	{
		owe_inserts(s, inserts);
		*others = inserts = mot_alloc(s->cache, table->versions, sizeof(mot_inserts),
									  MOT_FOR_CHANGE, NULL);
		if (inserts == NULL)
			return false;
		inserts->table = table;
		inserts->rows = 0;
	}
	while (s->entries > first)
	{
		e = journal_at(s, --s->entries);
		s->writes -= entry_kind(e) == J_INSERT_ADD ? 2 : 1;
		release_key(s, e);
	}
	s->credit++;
	inserts->row[inserts->rows++] = row;
	/* release: a scan that still holds the row finds no version in it */
	atomic_store_explicit(&row->head, 0, memory_order_release);
	return true;
}

static inline void
fetch_undo(const mot_session *s, mot_mark mark)
{
	const journal_entry *e;

	if (s->entries < mark + UNDO_AHEAD + 1)
		return;
	e = journal_at(s, s->entries - 1 - UNDO_AHEAD);
	switch (entry_kind(e))
	{
		case J_UPDATE:
		case J_DELETE:
		case J_DROP:
			mot_prefetch_write((void *) (uintptr_t) e->b);
			/* FALLTHROUGH */
		case J_INSERT:
		case J_INSERT_ADD:
		case J_LOCK:
			mot_prefetch_write(entry_row(e));
			break;
		case J_ADD:
		case J_SHARE:
			break;
	}
}

void
mot_txn_keys_derive(mot_session *s, bool derive)
{
	s->keys_derive = derive;
}

mot_mark
mot_txn_mark(mot_session *s)
{
	return s->last_mark = s->entries;
}

void
mot_txn_rollback_to(mot_session *s, mot_mark mark)
{
	/* an error may have told it of others' changes */
	s->saw_newest |= s->validate;
	mot_txn_take_back(s, mark);
}

void
mot_txn_take_back(mot_session *s, mot_mark mark)
{
	if (mot_unlikely(s->validate))
		mot_read_undone(s, mark);
	mot_txn_undo(s, mark);
}

/* what is not remembered: the transaction ends with it */
void
mot_txn_undo(mot_session *s, mot_mark mark)
{
	bool		published = mot_snapshot_held(s) == MOT_TS_NONE;

	/* undoing looks at tree nodes as any call does */
	if (published)
		(void) mot_snapshot_take(s);
	/* (it may go, or have lost rows that the next would follow) */
	s->delete_table = NULL;
	s->grave = NULL;
	if (s->entries > mark + MANY_ENTRIES)
	{
		mot_inserts *inserts = NULL;

		while (s->entries > mark)
		{
			fetch_undo(s, mark);
			if (!undo_key_change(s, mark) &&
				!(s->keys_derive && undo_insert(s, mark, &inserts)))
				undo_last(s);
		}
		owe_inserts(s, inserts);
		mot_owed_much(s);
	}
	while (s->entries > mark)
		undo_last(s);
	if (s->last_mark > s->entries)
		s->last_mark = s->entries;
	if (published)
		mot_snapshot_hold(s, MOT_TS_NONE);
}
