/*-------------------------------------------------------------------------
 *
 * txn.c
 *	  Transactions: begin, the commit protocol, abort (see undo.c).
 *
 * Commit, after Silo (section 4.4), with versions:
 *
 *	1. lock the rows of deferred changes in the order of their addresses,
 *	   each only if its newest version is still the one our snapshot saw
 *	2. announce DRAWING, draw the timestamp T from the clock, announce T
 *	3. (SERIALIZABLE) validate what was read, as of T; see also precede.c
 *	4. install: stamp every new version with T, take our name out of the heads
 *	5. queue what was superseded; announce NONE
 *
 * The lock of every changed row is held before T is drawn and until the row
 * has its version, so a reader whose snapshot includes T finds each such row
 * either done or held by somebody past the draw, and waits for it: a commit
 * is seen whole or not at all.  Steps 1 to 3 are prepare, which may fail;
 * 4 and 5 are commit, which needs no memory and cannot.  Below SERIALIZABLE
 * the draw is left to commit, so that the time between draw and install is as
 * short as can be.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

void
mot_txn_begin(mot_session *s, mot_isolation isolation, mot_ts snapshot, uint64_t host_id)
{
	mot_assert(!s->active);
	s->active = true;
	s->prepared = false;
	s->isolation = isolation;
	s->snapshot = snapshot;
	s->beyond = NULL;
	s->commit_ts = 0;
	s->writes = 0;
	s->validate = isolation == MOT_SERIALIZABLE;
	s->order_reads = false;
	s->out_of_memory = false;
	s->may_precede = s->saw_newest = s->learned = s->gave_back = false;
	s->keys_derive = false;
	/* release: whoever finds us holding a row reads at least this name */
	atomic_store_explicit(&s->slot->host_id, host_id, memory_order_release);
	if (mot_unlikely(s->validate))
	{
		/* relaxed: see slot_rests in engine.c */
		atomic_store_explicit(&s->slot->validates, true, memory_order_relaxed);
		mot_serial_begun(s, snapshot);
	}
}

void
mot_txn_set_beyond(mot_session *s, const mot_beyond *beyond)
{
	mot_assert(beyond == NULL || s->isolation != MOT_SERIALIZABLE);
	s->beyond = beyond;
}

void
mot_txn_set_host_id(mot_session *s, uint64_t host_id)
{
	/* release: as in begin */
	atomic_store_explicit(&s->slot->host_id, host_id, memory_order_release);
}

bool
mot_txn_active(const mot_session *s)
{
	return s->active;
}

bool
mot_txn_has_work(const mot_session *s)
{
	return s->entries > 0;
}

bool
mot_txn_has_writes(const mot_session *s)
{
	return s->writes > 0;
}

bool
mot_txn_defers(const mot_session *s)
{
	return s->deferred_count > 0;
}

/*
 * (who only reads is not validated: its place is that of its snapshot, unless
 * it knows of something that came later)
 */
bool
mot_txn_is_validated(const mot_session *s)
{
	return s->validate && (s->writes > 0 || s->order_reads || s->learned);
}

/* apart, so that nothing has to be saved on the usual way */
static __attribute__((noinline))
void
reads_finish(mot_session *s)
{
	/* of the others that was noted by prepare */
	if (s->prepared && !mot_txn_is_validated(s))
		mot_read_note(s, s->slot, s->snapshot);
	mot_serial_end(s);
	mot_read_clear(s);
	if (mot_unlikely(atomic_load_explicit(&s->slot->in_doubt, memory_order_relaxed)))
		atomic_store_explicit(&s->slot->in_doubt, false, memory_order_release);
	/* release: what was read is not looked at again */
	atomic_store_explicit(&s->slot->validates, false, memory_order_release);
}

static void
txn_finish(mot_session *s)
{
	mot_journal_clear(s);
	if (s->validate)
		reads_finish(s);
	mot_undurable_forget(s);
	if (s->published_by_commit)
		mot_snapshot_hold(s, MOT_TS_NONE);
	s->published_by_commit = false;
	s->active = false;
	s->prepared = false;
	s->validate = false;
	s->writes = 0;
	s->last_mark = 0;
	s->delete_table = NULL;
	s->grave = NULL;
}

/* The transaction goes on without the session, which remembers nothing of it (parcel.c). */
void
mot_txn_forget(mot_session *s)
{
	txn_finish(s);
	mot_owed_trim(s);
}

/* ---------------------------------------------------------------- deferred */

/*
 * Lock the row of a deferred change (its last journal entry is given) and
 * hang the deferred versions into its chain.  The entries then are like any
 * other's.
 */
mot_status
mot_txn_hang_in(mot_session *s, uint64_t last)
{
	journal_entry *e = journal_at(s, last);
	journal_entry *first = e;
	mot_row    *row = entry_row(e);
	mot_version *newest = (mot_version *) (uintptr_t) e->b;
	mot_version *oldest;
	mot_version *top;
	uint64_t	head = row_head(row);
	bool		locked = head_owner(head) == s->owner;

	if (!locked)
	{
		mot_status	status = mot_row_take(s, row, false, &head);

		if (status != MOT_OK)
			return status;
	}
	top = head_version(head);
	if (top == NULL || !session_sees(s, version_ts(top)))
	{
		if (!locked)
			atomic_store_explicit(&row->head, make_head(0, top), memory_order_release);
		return top == NULL || version_is_tombstone(top) ?
			MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED;
	}
	for (;;)
	{
		uint64_t	previous = first->c;

		first->what &= ~((uint64_t) JE_DEFERRED << 48);
		s->deferred_count--;
		first->c = 0;
		if (previous == 0)
			break;
		first = journal_at(s, previous - 1);
	}
	if (!locked)
		first->what |= (uint64_t) JE_LOCKED_HERE << 48;
	mot_count_shared(1);
	oldest = (mot_version *) (uintptr_t) first->b;
	if (version_link(top) & LINK_KEYED)
		for (mot_version *v = newest;; v = version_previous(v))
		{
			/* relaxed: still private */
			atomic_fetch_or_explicit(&v->link, LINK_KEYED, memory_order_relaxed);
			if (v == oldest)
				break;
		}
	/* relaxed: the head publishes it */
	atomic_store_explicit(&oldest->link,
						  make_link(top, (unsigned) (version_link(oldest) & LINK_BITS)),
						  memory_order_relaxed);
	atomic_store_explicit(&row->head,
						  make_head(s->owner, newest) | (row_head(row) & HEAD_FULL),
						  memory_order_release);
	/* it is there: this needs no memory */
	(void) mot_map_put(&s->deferred, (uint64_t) (uintptr_t) row, 0);
	return MOT_OK;
}

static int
by_address(const void *a, const void *b)
{
	uint64_t	x = ((const map_item *) a)->key;
	uint64_t	y = ((const map_item *) b)->key;

	return x < y ? -1 : x > y;
}

#define FEW_ROWS 16

static mot_status
lock_deferred(mot_session *s)
{
	map_item	few[FEW_ROWS];
	map_item   *rows = few;
	uint64_t	n = 0;
	mot_status	status = MOT_OK;

	if (s->deferred.used > FEW_ROWS)
	{
		rows = malloc(s->deferred.used * sizeof(map_item));
		if (rows == NULL)
			return MOT_NO_PRIVATE_MEMORY;
	}
	for (uint64_t i = 0; i < s->deferred.used; i++)
	{
		map_item	item = s->deferred.item[i];
		uint64_t	at = n;

		if (item.value == 0)
			continue;
		/* a few are sorted as they come */
		while (rows == few && at > 0 && few[at - 1].key > item.key)
		{
			few[at] = few[at - 1];
			at--;
		}
		rows[at] = item;
		n++;
	}
	if (rows != few)
		qsort(rows, n, sizeof(map_item), by_address);
	for (uint64_t i = 0; i < n && status == MOT_OK; i++)
		status = mot_txn_hang_in(s, rows[i].value - 1);
	if (rows != few)
		free(rows);
	return status;
}

/* ------------------------------------------------------------------ commit */

static void
draw_timestamp(mot_session *s)
{
	/*
	 * Our versions stay reachable by us, and index entries that we make stale
	 * keep their rows, until all that is owed has been queued: by a snapshot
	 * older than our timestamp.  A host at READ COMMITTED may hold none
	 * between its statements.  Exchange: a full barrier before the clock is
	 * moved; see mot_snapshot_take.
	 */
	if (mot_snapshot_held(s) == MOT_TS_NONE)
	{
		(void) atomic_exchange(&s->slot->published, s->clock_seen);
		s->published_by_commit = true;
	}

	/*
	 * Relaxed: the addition to the clock releases it, so DRAWING (or more) is
	 * seen by whoever sees the clock moved; see skip_uncommitted in row.c.
	 * (The timestamp below releases "judging".)
	 */
	atomic_store_explicit(&s->slot->judging, s->validate, memory_order_relaxed);
	atomic_store_explicit(&s->slot->commit_state, COMMIT_DRAWING, memory_order_relaxed);
	MOT_STOP_POINT("commit-drawing");

	/*
	 * seq_cst, so also release and acquire: of two that validate against each
	 * other, the later one here sees the earlier one's DRAWING.
	 */
	s->commit_ts = atomic_fetch_add(&s->engine->clock, 1) + 1;
	mot_count_shared(1);
	MOT_STOP_POINT("commit-drawn");
	/* release: not before DRAWING; who sees that waits for this */
	atomic_store_explicit(&s->slot->commit_state, s->commit_ts, memory_order_release);
}

mot_status
mot_txn_lock(mot_session *s)
{
	mot_status	status;

	if (mot_txn_is_validated(s) && s->out_of_memory)
		return MOT_NO_PRIVATE_MEMORY;
	if (mot_txn_is_validated(s))
		mot_prefetch_write(&s->engine->clock);	/* arrives while rows are
												 * locked */
	if (s->deferred_count != 0)
	{
		status = lock_deferred(s);
		if (status != MOT_OK)
			return status;
		mot_assert(s->deferred_count == 0);
		mot_map_clear(&s->deferred);
	}
	MOT_STOP_POINT("commit-locked");
	return MOT_OK;
}

mot_ts
mot_txn_draw(mot_session *s)
{
	mot_assert(s->deferred_count == 0);
	if (s->commit_ts == 0 && mot_txn_is_validated(s))
	{
		if (s->writes > 0)
			mot_undurable_bound(s);
		draw_timestamp(s);
	}
	return s->commit_ts;
}

/* with the number drawn; apart, so that nothing has to be saved on the usual way */
static __attribute__((noinline))
mot_status
judge(mot_session *s)
{
	mot_status	status = mot_txn_meets_kept(s) != 0 ? MOT_CONFLICT_KEPT : mot_read_validate(s, s->commit_ts);

	if ((status == MOT_CONFLICT_READ || status == MOT_CONFLICT_PHANTOM) && mot_txn_precedes(s))
		status = MOT_OK;
	if (status != MOT_OK)
	{
		/*
		 * Our locks are still held; but nobody waits any more for what will
		 * never be installed, or fails because of it.  Release: nothing of
		 * the validation comes after it.
		 */
		atomic_store_explicit(&s->slot->commit_state, COMMIT_NONE, memory_order_release);
		s->commit_ts = 0;
		return status;
	}
	mot_read_note(s, s->slot, s->commit_ts);
	/* release: as above */
	atomic_store_explicit(&s->slot->judging, false, memory_order_release);
	return MOT_OK;
}

mot_status
mot_txn_prepare(mot_session *s)
{
	mot_status	status;

	if (mot_likely(!s->validate && s->deferred_count == 0))
	{
		MOT_STOP_POINT("commit-locked");
		s->prepared = true;
		return MOT_OK;
	}
	if (mot_txn_is_validated(s) && s->out_of_memory)
		return MOT_NO_PRIVATE_MEMORY;
	if (s->commit_ts == 0)
	{
		status = mot_txn_lock(s);
		if (status != MOT_OK)
			return status;
	}
	if (mot_txn_draw(s) != 0)
	{
		status = judge(s);
		if (status != MOT_OK)
			return status;
	}
	s->prepared = true;
	return MOT_OK;
}

/* what a deferred change would find; without locking anything */
static mot_status
check_deferred(mot_session *s)
{
	for (uint64_t i = 0; i < s->deferred.used; i++)
	{
		const mot_row *row = (mot_row *) (uintptr_t) s->deferred.item[i].key;
		const mot_version *v;

		if (s->deferred.item[i].value == 0)
			continue;
		v = head_version(row_head(row));
		while (v != NULL && (version_ts(v) & TS_UNCOMMITTED))
			v = version_below(row, v);
		if (v == NULL || !session_sees(s, version_ts(v)))
			return v == NULL || version_is_tombstone(v) ? MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED;
	}
	return MOT_OK;
}

mot_status
mot_txn_check(mot_session *s)
{
	mot_status	status = MOT_OK;

	if (!s->active)
		return MOT_OK;
	if (s->deferred_count != 0)
		status = check_deferred(s);
	/* no timestamp yet: whoever is committing does so before us */
	if (status == MOT_OK && s->validate)
		status = mot_read_validate(s, MOT_TS_NONE);
	return status;
}

void
mot_txn_order_reads(mot_session *s)
{
	s->order_reads = true;
}

bool
mot_txn_next_change(const mot_session *s, uint64_t *pos, mot_change *change)
{
	while (*pos < s->entries)
	{
		journal_entry *e = journal_at(s, (*pos)++);
		mot_version *v = (mot_version *) (uintptr_t) e->b;

		mot_assert(!(entry_flags(e) & JE_DEFERRED));
		change->row = entry_row(e);
		switch (entry_kind(e))
		{
			case J_INSERT:
			case J_INSERT_ADD:
				change->kind = MOT_CHANGE_INSERT;
				change->table = entry_kind(e) == J_INSERT ? (mot_table *) (uintptr_t) e->a :
					((mot_index *) (uintptr_t) e->a)->table;
				change->before = NULL;
				change->after = &change->row->inlined;
				return true;
			case J_UPDATE:
			case J_DELETE:
				change->table = (mot_table *) (uintptr_t) e->a;
				change->before = version_below(change->row, v);
				change->kind = entry_kind(e) == J_UPDATE ? MOT_CHANGE_UPDATE : MOT_CHANGE_DELETE;
				change->after = entry_kind(e) == J_UPDATE ? v : NULL;
				return true;
			case J_LOCK:
			case J_SHARE:
			case J_ADD:
			case J_DROP:
				break;
		}
	}
	return false;
}

typedef struct table_count
{
	mot_table  *table;
	int64_t		inserts,
				updates,
				deletes;
} table_count;

/* apart, so that counting others saves nothing */
static __attribute__((noinline))
void
count_deletes(mot_session *s, const table_count *c)
{
	table_shard *shard = &c->table->shard[s->shard];

	/* relaxed: as below */
	atomic_fetch_add_explicit(&shard->deletes, (uint64_t) c->deletes, memory_order_relaxed);
	if (mot_pool_is_short(c->table->rows))
		s->relief |= RELIEF_SHORT;
}

static void
count_rows(mot_session *s, const table_count *c)
{
	table_shard *shard;

	if (c->table == NULL)
		return;
	shard = &c->table->shard[s->shard];
	mot_count_shared((c->inserts != c->deletes) + (c->inserts != 0) +
					 (c->updates != 0) + (c->deletes != 0));
	/* relaxed: statistics; several slots share a shard */
	if (c->inserts != c->deletes)
		atomic_fetch_add_explicit(&shard->rows, c->inserts - c->deletes, memory_order_relaxed);
	if (c->inserts != 0)
		atomic_fetch_add_explicit(&shard->inserts, (uint64_t) c->inserts, memory_order_relaxed);
	if (c->updates != 0)
		atomic_fetch_add_explicit(&shard->updates, (uint64_t) c->updates, memory_order_relaxed);
	if (c->deletes != 0)
		count_deletes(s, c);
}

static inline void
count_for(mot_session *s, table_count *c, mot_table *table)
{
	if (c->table != table)
	{
		count_rows(s, c);
		memset(c, 0, sizeof(*c));
		c->table = table;
	}
}

/* stamp a version and, if it is the row's top, let the row go */
static inline void
install(mot_row *row, mot_version *v, mot_ts ts)
{
	/*
	 * release: who sees the timestamp sees the version; then the same for the
	 * head
	 */
	atomic_store_explicit(&v->ts, ts, memory_order_release);
	mot_count_shared(2);
	if (head_version(row_head(row)) == v)
		atomic_store_explicit(&row->head, make_head(0, v), memory_order_release);
}

/*
 * A deleted row is owed, or joins its grave, which the first one brings into
 * the queue; lock held, so nobody sees it there before the last one is in.
 */
static inline void
owe_deleted(mot_session *s, mot_row *row, mot_version *tombstone, mot_ts ts)
{
	mot_grave  *grave;

	if (!version_is_shared(tombstone))
	{
		mot_owed_add_locked(s, OWED_ROW, row, ts);
		return;
	}
	grave = version_grave(tombstone);
	if (grave->first == NULL)
	{
		grave->first = row;
		mot_owed_add_locked(s, OWED_GRAVE, grave, ts);
	}
	else
	{
		mot_version *last = &grave->last->inlined;

		/* relaxed: nobody goes below this version any more, see mot_grave */
		atomic_store_explicit(&last->link,
							  make_link((mot_version *) (uintptr_t) row,
										(unsigned) (version_link(last) & LINK_BITS)),
							  memory_order_relaxed);
	}
	grave->last = row;
}

/* ts 0: it has locked rows, and drawn no number */
static inline void
tell_committed(mot_session *s, mot_ts ts)
{
	/*
	 * Release: all is installed; and the name is free for our next
	 * transaction.  The first one, relaxed, is seen by whoever sees the
	 * second.
	 */
	if (ts != 0)
		atomic_store_explicit(&s->slot->last_commit, ts, memory_order_relaxed);
	atomic_store_explicit(&s->slot->commit_state, COMMIT_NONE, memory_order_release);
}

mot_ts
mot_txn_commit(mot_session *s)
{
	mot_ts		ts;
	table_count c = {0};
	bool		owing = false;
	bool		deleting = false;
	uint64_t	entries;

	mot_assert(s->active && s->deferred_count == 0);
	if (s->entries == 0)
	{
		ts = s->commit_ts;
		if (ts != 0)
			tell_committed(s, ts);
		txn_finish(s);
		mot_add_to(&s->slot->commits, 1);
		return ts;
	}
	if (s->writes > 0)
	{
		if (s->commit_ts == 0)
			draw_timestamp(s);
	}
	ts = s->commit_ts;

	for (uint64_t i = 0; i < s->entries; i++)
	{
		journal_entry *e = journal_at(s, i);
		mot_row    *row = entry_row(e);
		mot_version *v = (mot_version *) (uintptr_t) e->b;

		switch (entry_kind(e))
		{
			case J_LOCK:
				/* a row changed later is let go by that change */
				if (!(version_ts(head_version(row_head(row))) & TS_UNCOMMITTED) &&
					head_owner(row_head(row)) == s->owner)
					atomic_store_explicit(&row->head, make_head(0, head_version(row_head(row))),
										  memory_order_release);
				break;
			case J_SHARE:
				mot_share_drop(s, e, false);
				break;
			case J_INSERT:
				install(row, &row->inlined, ts);
				count_for(s, &c, (mot_table *) (uintptr_t) e->a);
				c.inserts++;
				break;
			case J_INSERT_ADD:
				install(row, &row->inlined, ts);
				count_for(s, &c, ((mot_index *) (uintptr_t) e->a)->table);
				c.inserts++;
				break;
			case J_UPDATE:
				MOT_STOP_POINT("commit-install");
				install(row, v, ts);
				count_for(s, &c, (mot_table *) (uintptr_t) e->a);
				c.updates++;
				owing = true;
				break;
			case J_DELETE:
				/* (a shared tombstone is stamped once for each of its rows) */
				install(row, v, ts);
				count_for(s, &c, (mot_table *) (uintptr_t) e->a);
				c.deletes++;
				owing = deleting = true;
				break;
			case J_ADD:
				break;
			case J_DROP:
				owing = true;
				break;
		}
	}

	MOT_STOP_POINT("commit-installed");

	tell_committed(s, ts);
	count_rows(s, &c);

	if (owing)
		mot_spin_lock(&s->slot->owed.lock);
	for (uint64_t i = 0; i < s->entries; i++)
	{
		journal_entry *e = journal_at(s, i);
		mot_row    *row = entry_row(e);
		mot_version *old;

		switch (entry_kind(e))
		{
			case J_LOCK:
			case J_SHARE:
			case J_ADD:
				break;
			case J_INSERT:
			case J_INSERT_ADD:
				s->credit++;	/* was for an undo */
				break;
			case J_UPDATE:
				old = version_previous((mot_version *) (uintptr_t) e->b);
				owe_superseded(s, row, old, ts);
				break;
			case J_DELETE:
				/* what it superseded has the row's keys, and goes with it */
				break;
			case J_DROP:
				mot_owed_add_locked(s, OWED_ENTRY, (void *) (uintptr_t) e->b, ts);
				break;
		}
	}

	/*
	 * deleted rows last: their index entries must be gone before they are
	 * unmarked
	 */
	for (uint64_t i = 0; deleting && i < s->entries; i++)
	{
		journal_entry *e = journal_at(s, i);

		if (entry_kind(e) == J_DELETE)
			owe_deleted(s, entry_row(e), (mot_version *) (uintptr_t) e->b, ts);
	}
	if (owing)
		mot_spin_unlock(&s->slot->owed.lock);
	entries = s->entries;
	txn_finish(s);
	mot_add_to(&s->slot->commits, 1);
	mot_owed_after_commit(s, entries);
	return ts;
}

/* ------------------------------------------------------------------- abort */

void
mot_txn_abort(mot_session *s)
{
	if (!s->active)
		return;
	if (s->entries > 0)
		s->relief |= RELIEF_LARGE;
	mot_txn_undo(s, 0);
	/* release: everything is undone */
	atomic_store_explicit(&s->slot->commit_state, COMMIT_NONE, memory_order_release);
	txn_finish(s);
	mot_add_to(&s->slot->aborts, 1);
	mot_owed_trim(s);
}
