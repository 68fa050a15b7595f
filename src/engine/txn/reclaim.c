/*-------------------------------------------------------------------------
 *
 * reclaim.c
 *	  Deferred reclamation: what a commit, a rollback or the index leaves
 *	  behind is queued and freed when nobody can be using it.
 *
 * There is one clock and one horizon for both questions that memory raises:
 *
 *	- a version superseded by commit T is invisible to every snapshot >= T
 *	- an object unlinked while the clock stood at R cannot be reached by
 *	  anybody who published a snapshot after the clock moved to R + 1
 *
 * so an item is due when the horizon (the oldest published snapshot, or the
 * clock) has reached its stamp: T, or R + 1.  If nobody commits, reclamation
 * itself moves the clock on.  This is epoch-based reclamation with commit
 * numbers for epochs.
 *
 * The second horizon may be ahead of the first.  A checkpoint, or a long query,
 * keeps an old snapshot, but it only looks at rows one at a time: of what that
 * snapshot does not show it knows nothing between two calls.  It says so
 * (mot_session_move_on), and what is unlinked does not wait for its snapshot then.
 * Of a session that rests, as its client has nothing for it to do, that can be seen
 * from outside (mot_rests_hook).
 * That is what was never committed, rolled back that is, and the memory of what
 * nobody could see when it was unlinked.  So each slot has two lists, of what
 * is or may be seen, and of what is unlinked.
 *
 * Every slot has a queue.  Its owner appends; the owner, or anybody else who
 * takes its lock, works off the front: a maintenance worker does that for
 * sessions that are idle or gone, and a session that runs out of memory does it
 * for all.  Things that take two steps (a deleted row first leaves the indexes and
 * the scans, and is freed after another round) put their second step into the queue
 * the first came from, in the room of that.
 *
 * The rows that a command deletes are owed many at a time, see mot_grave, and no
 * key of theirs is kept: their last version has them, and the host makes them
 * from that (mot_index_key_hook) when they are needed.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* ------------------------------------------------------------------ queue */

static void
list_add_block(owed_list *l, owed_block *b)
{
	b->next = NULL;
	b->first = b->used = 0;
	if (l->tail == NULL)
		l->head = l->tail = b;
	else
		l->last->next = b;
	l->last = b;
	l->room += OWED_BLOCK_ITEMS;
}

static bool
list_grow(mot_session *s, owed_list *l)
{
	owed_block *b = mot_alloc(s->cache, s->engine->pool, sizeof(owed_block),
							  MOT_FOR_DELETE, NULL);

	if (b == NULL)
		return false;
	list_add_block(l, b);
	return true;
}

/* is there room for what is unlinked?  If need be a block that no promise needs any more */
static bool
unlinked_room(mot_session *s, owed_queue *q)
{
	owed_list  *l = &q->list[OWED_UNLINKED];
	owed_list  *seen = &q->list[OWED_SEEN];

	if (mot_likely(l->room > 0))
		return true;
	if (seen->room >= q->promised + OWED_RESERVE + OWED_BLOCK_ITEMS && seen->tail->next != NULL)
	{
		owed_block *b = seen->tail->next;

		seen->tail->next = b->next;
		if (seen->last == b)
			seen->last = seen->tail;
		seen->room -= OWED_BLOCK_ITEMS;
		list_add_block(l, b);
		return true;
	}
	return list_grow(s, l);
}

/* what an item counts for */
static inline uint64_t
item_weight(uint64_t what)
{
	const void *object = (const void *) (uintptr_t) (what & ~UINT64_C(15));

	if (mot_likely((what & 15) < OWED_GRAVE))
		return 1;
	if ((what & 15) < OWED_INSERTS)
		return ((const mot_grave *) object)->rows;
	return ((const mot_inserts *) object)->rows;
}

static void
queue_append(owed_queue *q, owed_list *l, uint64_t what, mot_ts stamp)
{
	owed_block *b = l->tail;

	mot_assert(l->room > 0);
	if (b->used == OWED_BLOCK_ITEMS)
		b = l->tail = b->next;
	b->item[b->used].what = what;
	b->item[b->used].stamp = stamp;
	b->used++;
	l->room--;
	if (mot_likely((what & 15) < OWED_ENTRY))
	{
		mot_add_to(&q->count, 1);
		return;
	}
	mot_add_to(&q->count, (int64_t) item_weight(what));
	if ((what & 15) == OWED_ENTRY && l->entries++ == 0)
		l->entries_from = stamp;
}

/*
 * An item that was taken off the front of the list "from" has a second step, or is put off; or
 * from is NULL, and nobody has promised room for it.  "to": where it belongs; what is unlinked may
 * also stay with what is seen, and take longer.  Its place has come to the end of the list with the
 * rest of its block, if there is no room otherwise, or is still at the front.
 */
static void
queue_unpromised(mot_session *s, owed_queue *q, owed_list *from, owed_sight to,
				 uint64_t what, mot_ts stamp)
{
	owed_block *b = from != NULL ? from->head : NULL;
	owed_list  *seen = &q->list[OWED_SEEN];

	if (to == OWED_UNLINKED && unlinked_room(s, q))
		queue_append(q, &q->list[OWED_UNLINKED], what, stamp);
	else if (mot_likely(seen->room > q->promised) || list_grow(s, seen))
		queue_append(q, seen, what, stamp);
	else if (b != NULL && b->first > 0)
	{
		b->item[--b->first] = (owed_item)
		{
			what, stamp
		};
		mot_add_to(&q->count, (int64_t) item_weight(what));
	}
	else
		/* relaxed: a figure */
		atomic_fetch_add_explicit(&q->lost, 1, memory_order_relaxed);
}

/* front item, or NULL; emptied blocks are freed or used again */
static owed_item *
list_front(mot_session *s, owed_queue *q, owed_list *l)
{
	owed_list  *seen = &q->list[OWED_SEEN];

	while (l->head != NULL)
	{
		owed_block *b = l->head;

		if (b->first < b->used)
			return &b->item[b->first];
		if (b == l->tail)
		{
			/* all done: the block starts over */
			l->room += b->used;
			b->first = b->used = 0;
			return NULL;
		}
		l->head = b->next;
		/* if room for what is promised is short, the block is for that */
		if (seen->room < q->promised + OWED_RESERVE)
			list_add_block(seen, b);
		else
			mot_free(s->cache, b);
	}
	return NULL;
}

static bool
queue_promise(mot_session *s, uint64_t items)
{
	owed_queue *q = &s->slot->owed;
	bool		ok = true;

	mot_spin_lock(&q->lock);
	while (ok && q->list[OWED_SEEN].room < q->promised + items + OWED_RESERVE)
		ok = list_grow(s, &q->list[OWED_SEEN]);
	if (ok)
		q->promised += items;
	mot_spin_unlock(&q->lock);
	return ok;
}

bool
mot_owed_promise(mot_session *s, uint64_t items)
{
	unsigned	tries = 0;

	if (mot_likely(s->credit >= items))
	{
		s->credit -= items;
		return true;
	}
	/* some more at once, so that the lock is rarely taken */
	while (!queue_promise(s, items + 32))
		if (!mot_make_room(s, &tries, false))
			return false;
	s->credit += 32;
	return true;
}

/* promises a session keeps for its next transaction */
#define CREDIT_KEPT 1024

/*
 * Give back the room that a large transaction was promised and turned out not
 * to need: the promises, and the empty blocks that stood ready for them.
 */
void
mot_owed_trim(mot_session *s)
{
	owed_queue *q = &s->slot->owed;
	owed_list  *l = &q->list[OWED_SEEN];
	owed_block *b;
	owed_block *rest;
	uint64_t	room;

	if (mot_likely(s->credit <= CREDIT_KEPT))
		return;
	mot_spin_lock(&q->lock);
	q->promised -= s->credit - CREDIT_KEPT;
	s->credit = CREDIT_KEPT;
	b = l->tail;
	room = OWED_BLOCK_ITEMS - b->used;
	while (b->next != NULL && room < q->promised + OWED_RESERVE)
	{
		b = b->next;
		room += OWED_BLOCK_ITEMS;
	}
	rest = b->next;
	b->next = NULL;
	l->last = b;
	l->room = room;
	mot_spin_unlock(&q->lock);
	while (rest != NULL)
	{
		b = rest;
		rest = b->next;
		mot_free(s->cache, b);
	}
}

mot_ts
mot_owed_stamp(mot_session *s)
{
	/*
	 * seq_cst: the unlinking stores come before this in the one order, so who
	 * reads a later clock value finds the thing unlinked.
	 */
	return atomic_load(&s->engine->clock) + 1;
}

/* a place promised with mot_owed_promise is used; lock held */
void
mot_owed_add_locked(mot_session *s, owed_kind kind, void *object, mot_ts stamp)
{
	owed_queue *q = &s->slot->owed;

	mot_assert(q->promised > 0);
	q->promised--;
	mot_add_to(&q->added, mot_likely(kind < OWED_GRAVE) ? 1 : ((const mot_grave *) object)->rows);
	queue_append(q, &q->list[OWED_SEEN], (uint64_t) (uintptr_t) object | kind, stamp);
}

/* what was unlinked just now, and is in no snapshot; of a place promised, too */
void
mot_owed_undone(mot_session *s, owed_kind kind, void *object)
{
	owed_queue *q = &s->slot->owed;
	mot_ts		stamp = mot_owed_stamp(s);

	mot_spin_lock(&q->lock);
	mot_assert(q->promised > 0);
	q->promised--;
	queue_append(q, &q->list[unlinked_room(s, q) ? OWED_UNLINKED : OWED_SEEN],
				 (uint64_t) (uintptr_t) object | kind, stamp);
	mot_spin_unlock(&q->lock);
}

/*
 * Objects nobody promised room for: nodes that the tree unlinked.  If need be
 * they use the reserve, which every promise refills.  OWED_SEEN: others may keep
 * them as long as their snapshot.
 */
void
mot_owed_retire_as(mot_session *s, owed_sight sight, void *object)
{
	owed_queue *q = &s->slot->owed;
	mot_ts		stamp = mot_owed_stamp(s);

	mot_spin_lock(&q->lock);
	queue_unpromised(s, q, NULL, sight, (uint64_t) (uintptr_t) object | OWED_OBJECT, stamp);
	mot_spin_unlock(&q->lock);
}

void
mot_owed_retire(void *session, void *object)
{
	mot_owed_retire_as(session, OWED_UNLINKED, object);
}

/* lowest stamp of the items not yet performed, MOT_TS_NONE if there are none */
mot_ts
mot_queue_front_stamp(mot_session *s, owed_queue *q)
{
	mot_ts		stamp = MOT_TS_NONE;

	mot_spin_lock(&q->lock);
	for (int i = 0; i < 2; i++)
	{
		owed_item  *front = list_front(s, q, &q->list[i]);

		if (front != NULL && front->stamp < stamp)
			stamp = front->stamp;
	}
	if (q->working)
		stamp = 0;
	mot_spin_unlock(&q->lock);
	return stamp;
}

/* ------------------------------------------------------------------- items */

/* the inlined version itself is current, or went with its row's deletion */
static bool
inline_is_part_of_deletion(const mot_row *row, const mot_version *newest)
{
	return newest == &row->inlined ||
		(newest != NULL && version_below(row, newest) == &row->inlined);
}

/*
 * The row's own room is nobody's any more.  If the newest version lies
 * elsewhere, is committed, unlocked and has been so since the change that
 * vacated the room, or is below everybody's snapshot, it moves in; a row that
 * changes often is left alone: its next version will use the room.  Returns the
 * version moved from, or NULL.
 *
 * (Rows that were changed time and again beside a long reader would each keep
 * their last version elsewhere for good, and each such version a whole page.)
 */
static mot_version *
settle_inline(mot_session *s, mot_row *row, mot_ts stamp)
{
	uint64_t	head = row_head(row);
	mot_version *v = head_version(head);

	if (head_owner(head) == 0 && v != NULL && v != &row->inlined)
	{
		mot_ts		ts = version_ts(v);
		uint64_t	link = version_link(v);

		/* relaxed: it only grows */
		if ((link & LINK_FITS) &&
			(ts <= stamp ||
			 ts <= atomic_load_explicit(&s->engine->horizon, memory_order_relaxed)))
		{
			size_t		need = mot_usable_size(s->engine->region, v);
			size_t		room = mot_usable_size(s->engine->region, row) - offsetof(mot_row, inlined);

			atomic_store_explicit(&row->inlined.link, link, memory_order_relaxed);
			memcpy(version_bytes(&row->inlined), version_bytes(v),
				   (need < room ? need : room) - sizeof(mot_version));
			/* relaxed, both: the release below publishes them */
			atomic_store_explicit(&row->inlined.ts, ts, memory_order_relaxed);
			if (atomic_compare_exchange_strong_explicit(&row->head, &head,
														make_head(0, &row->inlined),
														memory_order_release,
														memory_order_relaxed))
				return v;
		}
	}
	/* release: a writer who finds the room free may overwrite it */
	atomic_store_explicit(&row->inlined.ts, TS_FREE, memory_order_release);
	return NULL;
}

/*
 * Has every other list taken out the index entries that it owed up to "stamp"?
 * A row whose keys changed may have old ones that wait in another slot's queue.
 * The stamp at the front of a list does not tell: second steps put in by others
 * while a commit was being installed have later stamps than that commit's
 * entries, which come behind them.
 */
static bool
others_are_past(mot_session *s, const owed_list *mine, mot_ts stamp)
{
	mot_engine *e = s->engine;
	uint32_t	n = atomic_load(&e->slots_used);
	bool		past = true;

	for (uint32_t i = 0; i < n && past; i++)
	{
		owed_queue *q = &e->slot[i].owed;

		mot_spin_lock(&q->lock);
		for (int j = 0; j < 2; j++)
		{
			const owed_list *l = &q->list[j];

			if (l != mine && l->entries != 0 && l->entries_from <= stamp)
				past = false;
		}
		mot_spin_unlock(&q->lock);
	}
	return past;
}

/*
 * May other entries than those of its last version lead to a deleted row?  Of
 * changes that were taken back its versions do not tell, but there are hardly
 * ever any.
 */
static inline bool
may_have_other_keys(const mot_session *s, const mot_row *row, const mot_version *tombstone)
{
	/*
	 * It was raised before the row was let go for whoever has deleted it.
	 * Acquire: who finds it lowered finds the entry gone.
	 */
	return tombstone_is_keyed(row, tombstone) ||
		atomic_load_explicit(&s->engine->undone_entries, memory_order_acquire) != 0;
}

static inline mot_row *
next_in_grave(const mot_grave *grave, const mot_row *row)
{
	return row == grave->last ? NULL : (mot_row *) (uintptr_t) version_previous(&row->inlined);
}

/*
 * Do what an item asks for.  Returns the item that follows it (second steps),
 * or 0.  Called without the queue's lock: the item is off the queue, its
 * place kept.
 */
static uint64_t
item_perform(mot_session *s, const owed_list *l, uint64_t what, mot_ts stamp)
{
	owed_kind	kind = (owed_kind) (what & 15);
	void	   *object = (void *) (uintptr_t) (what & ~UINT64_C(15));

	MOT_STOP_POINT("reclaim-item");
	switch (kind)
	{
		case OWED_OBJECT:
			mot_free(s->cache, object);
			return 0;

		case OWED_INLINE:
			{
				mot_version *moved = settle_inline(s, object, stamp);

				return moved ? (uint64_t) (uintptr_t) moved | OWED_OBJECT : 0;
			}

		case OWED_ROW:
			{
				const mot_version *tombstone = head_version(row_head(object));
				mot_table  *table = mot_table_of_pool(mot_object_pool(s->engine->region, object));

				if (may_have_other_keys(s, object, tombstone) && !others_are_past(s, l, stamp))
					return what;
				if (!mot_row_leave_indexes(s, table, object, version_below(object, tombstone), stamp))
					return what;
			}
			MOT_STOP_POINT("reclaim-unmark-row");
			mot_row_unmark(s->engine->region, object);
			return (uint64_t) (uintptr_t) object | OWED_ROW_MEMORY;

		case OWED_GRAVE:
			{
				mot_grave  *grave = object;
				bool		past = false;

				/*
				 * one put off is gone through again from its beginning, which
				 * does no harm
				 */
				for (mot_row *row = grave->first; row != NULL; row = next_in_grave(grave, row))
				{
					if (!past && may_have_other_keys(s, row, &grave->tombstone))
					{
						if (!others_are_past(s, l, stamp))
							return what;
						past = true;
					}
					if (!mot_row_leave_indexes(s, grave->table, row, &row->inlined, stamp))
						return what;
					mot_row_unmark(s->engine->region, row);
				}
				return (uint64_t) (uintptr_t) grave | OWED_GRAVE_MEMORY;
			}

		case OWED_INSERTS:
			{
				mot_inserts *inserts = object;

				for (uint32_t i = 0; i < inserts->rows; i++)
				{
					mot_row    *row = inserts->row[i];

					if (!mot_row_leave_indexes(s, inserts->table, row, &row->inlined, stamp))
						return what;
					mot_row_unmark(s->engine->region, row);
				}
				return (uint64_t) (uintptr_t) inserts | OWED_INSERTS_MEMORY;
			}

		case OWED_INSERTS_MEMORY:
			{
				mot_inserts *inserts = object;

				for (uint32_t i = 0; i < inserts->rows; i++)
					mot_free(s->cache, inserts->row[i]);
				mot_free(s->cache, inserts);
				return 0;
			}

		case OWED_GRAVE_MEMORY:
			{
				mot_grave  *grave = object;
				mot_row    *next;

				for (mot_row *row = grave->first; row != NULL; row = next)
				{
					next = next_in_grave(grave, row);
					mot_free(s->cache, row);
				}
				mot_free(s->cache, grave);
				return 0;
			}

		case OWED_ROW_MEMORY:
			{
				mot_row    *row = object;
				mot_version *newest = head_version(row_head(row));

				/*
				 * Another slot's queue may still hold an OWED_INLINE for this
				 * row; it writes to the row, so the row waits for it.
				 */
				if (!inline_is_part_of_deletion(row, newest) &&
					version_ts(&row->inlined) != TS_FREE)
					return what;
				if (newest != NULL)
				{
					mot_version *last = version_below(row, newest);

					if (last != NULL && last != &row->inlined)
						mot_free(s->cache, last);
					if (newest != &row->inlined)
						mot_free(s->cache, newest);
				}
				mot_free(s->cache, row);
				return 0;
			}

		case OWED_ENTRY:
			{
				index_drop *drop = object;

				/*
				 * the index's memory is there until no queue can name it; a
				 * row that was not in it has nothing there
				 */
				if (drop->len != 0 && !atomic_load_explicit(&drop->index->dropped, memory_order_relaxed))
					mot_index_take_claim(s, drop->index, drop->row, drop->key,
										 drop->len, &drop->bundle);
				/* release: see may_have_other_keys */
				if (drop->undone)
					atomic_fetch_sub_explicit(&s->engine->undone_entries, 1, memory_order_release);
				return (uint64_t) (uintptr_t) drop | OWED_ENTRY_DONE;
			}

		case OWED_ENTRY_DONE:
			{
				index_drop *drop = object;

				/*
				 * release: whoever finds the count at zero finds the entry
				 * gone
				 */
				if (drop->stale)
					atomic_fetch_sub_explicit(&drop->index->stale, 1, memory_order_release);
				if (drop->bundle != NULL)
					mot_free(s->cache, drop->bundle);
				mot_free(s->cache, drop);
				return 0;
			}
	}
	return 0;
}

/* move the clock to "stamp" if it stands just before it: items wait for it and nobody commits */
void
mot_clock_advance(mot_engine *e, mot_ts stamp)
{
	uint64_t	now = atomic_load(&e->clock);

	if (stamp != MOT_TS_NONE && now + 1 == stamp)
		(void) atomic_compare_exchange_strong(&e->clock, &now, stamp);
}

/* Relaxed: a hint.  Who is in need looks again and again. */
static inline bool
is_to_give_way(const mot_session *s)
{
	return s->gives_way && atomic_load_explicit(&s->engine->in_need, memory_order_relaxed) != 0;
}

/*
 * Work off the front of a list, up to "most" items due by "horizon"; returns
 * how many came further.  Nobody else does; so the order of the list is that in
 * which its items are performed (a row's index entries go before the row).
 */
static uint64_t
list_work(mot_session *s, owed_queue *q, owed_sight sight, mot_ts horizon, uint64_t most)
{
	owed_list  *l = &q->list[sight];
	uint64_t	came_further = 0;
	uint64_t	done = 0;
	uint64_t	weight = 0;		/* of the items at hand */
	unsigned	n = 0;
	uint64_t	entries = 0;
	mot_ts		entries_upto = 0;

	for (;;)
	{
		owed_item  *front;
		owed_item	item[16];

		/* take some off the front, keeping their room spoken for */
		mot_spin_lock(&q->lock);
		mot_add_to(&q->count, -(int64_t) weight);	/* the last ones are done */
		n = 0;
		weight = 0;
		l->entries -= entries;
		if (entries != 0)		/* the owner puts them in in order */
			l->entries_from = entries_upto;
		entries = 0;
		while (n < 16 && weight < GRAVE_ROWS && done < most && !is_to_give_way(s) &&
			   (front = list_front(s, q, l)) != NULL && front->stamp <= horizon)
		{
			uint64_t	counts = item_weight(front->what);

			item[n++] = *front;
			l->head->first++;
			done += counts;
			weight += counts;
		}
		mot_spin_unlock(&q->lock);
		if (n == 0)
			break;
		for (unsigned i = 0; i < n; i++)
			mot_prefetch((void *) (uintptr_t) (item[i].what & ~UINT64_C(15)));
		for (unsigned i = 0; i < n; i++)
		{
			uint64_t	next = item_perform(s, l, item[i].what, item[i].stamp);

			if (mot_unlikely((item[i].what & 15) == OWED_ENTRY))
			{
				entries++;
				entries_upto = item[i].stamp;
			}
			if (next == 0)
			{
				came_further++;
				continue;
			}
			mot_spin_lock(&q->lock);
			if (next == item[i].what)
				/* a thing put off keeps its stamp */
				queue_unpromised(s, q, l, sight, next, item[i].stamp);
			else
			{
				came_further++;

				/*
				 * (a version that has moved into its row was seen, by its
				 * address)
				 */
				queue_unpromised(s, q, l,
								 (item[i].what & 15) == OWED_INLINE ? OWED_SEEN : OWED_UNLINKED,
								 next, mot_owed_stamp(s));
			}
			mot_spin_unlock(&q->lock);
		}
	}
	return came_further;
}

/*
 * Work off a queue, up to "budget" items of either list (0: all that are due).
 * Returns what is left in it; adds to *performed how many came further.
 */
static uint64_t
queue_work(mot_session *s, owed_queue *q, const mot_ts *horizon, unsigned budget, uint64_t *performed)
{
	/* relaxed: a hint */
	uint64_t	most = atomic_load_explicit(&q->count, memory_order_relaxed);
	bool		busy;

	if (most == 0)
		return 0;
	if (is_to_give_way(s))
		return most;
	/* what is put off is not looked at twice in a call */
	if (budget != 0 && budget < most)
		most = budget;
	mot_spin_lock(&q->lock);
	busy = q->working;
	q->working = true;
	mot_spin_unlock(&q->lock);
	if (busy)
		return atomic_load_explicit(&q->count, memory_order_relaxed);
	for (int i = 0; i < 2; i++)
		*performed += list_work(s, q, (owed_sight) i, horizon[i], most);
	mot_spin_lock(&q->lock);
	q->working = false;
	mot_spin_unlock(&q->lock);
	return atomic_load_explicit(&q->count, memory_order_relaxed);
}

/*
 * Reclamation reads rows and trees as any reader does, so it needs a
 * published snapshot while it works; if the session has none, it publishes
 * the horizon's own clock reading for the while.  Returns whether; the horizons
 * by owed_sight.
 */
static bool
work_begin(mot_session *s, bool gives_way, mot_ts *horizon)
{
	bool		published = mot_snapshot_held(s) == MOT_TS_NONE;

	/* (taking one would do that, and say in the end that nobody reclaims) */
	if (published && s->relief != 0)
		mot_relieve(s);
	s->gives_way = gives_way;

	/*
	 * Relaxed: publishing is a barrier.  Who finds our snapshot finds what it
	 * is for, however long we are kept from going on: see others_hold_memory.
	 */
	atomic_store_explicit(&s->slot->reclaiming, true, memory_order_relaxed);
	if (published)
		(void) mot_snapshot_take(s);
	horizon[OWED_SEEN] = mot_engine_horizons(s->engine, &horizon[OWED_UNLINKED]);
	return published;
}

static void
work_end(mot_session *s, bool published)
{
	if (published)
		mot_snapshot_hold(s, MOT_TS_NONE);
	/* relaxed: as above */
	atomic_store_explicit(&s->slot->reclaiming, false, memory_order_relaxed);
	s->gives_way = false;
}

uint64_t
mot_reclaim(mot_session *s, unsigned budget)
{
	owed_queue *q = &s->slot->owed;
	bool		published;
	mot_ts		horizon[2];
	uint64_t	performed = 0;
	uint64_t	left;

	if (atomic_load_explicit(&q->count, memory_order_relaxed) == 0)
		return 0;
	mot_clock_advance(s->engine, mot_queue_front_stamp(s, q));
	published = work_begin(s, true, horizon);
	left = queue_work(s, q, horizon, budget, &performed);
	work_end(s, published);
	return left;
}

/* at most so many items of a list in a step */
#define STEP_ITEMS 16384

bool
mot_reclaim_step_on(mot_session *s, uint64_t *left, bool move_on, bool gives_way)
{
	mot_engine *e = s->engine;
	uint32_t	n = atomic_load(&e->slots_used);
	uint32_t	dropped = atomic_load(&e->dropped_count);
	uint64_t	performed = 0;
	bool		published;
	mot_ts		horizon[2];

	mot_clock_advance(e, mot_engine_clock(e) + 1);
	if (move_on)
		mot_session_move_on(s);
	published = work_begin(s, gives_way, horizon);
	horizon[OWED_UNLINKED] = mot_engine_rest_horizon(e, horizon[OWED_UNLINKED]);
	*left = 0;
	for (uint32_t i = 0; i < n; i++)
		*left += queue_work(s, &e->slot[i].owed, horizon, STEP_ITEMS, &performed);
	work_end(s, published);
	if (dropped != 0)
		mot_dropped_destroy(s, horizon[OWED_SEEN]);
	return performed > 0 || atomic_load(&e->dropped_count) < dropped;
}

bool
mot_reclaim_step(mot_session *s, uint64_t *left)
{
	return mot_reclaim_step_on(s, left, false, true);
}

uint64_t
mot_reclaim_all(mot_session *s)
{
	uint64_t	left = 0;
	uint64_t	steps = 3;

	/*
	 * the next steps do the second parts of the first; and others go on
	 * making work
	 */
	for (uint64_t step = 0; step < steps; step++)
	{
		bool		more = mot_reclaim_step_on(s, &left, false, false);

		if (step == 0)
			steps += 2 * (left / STEP_ITEMS);
		if ((left == 0 && atomic_load(&s->engine->dropped_count) == 0) || (!more && step >= 2))
			break;
	}
	return left;
}

/* changes of a transaction whose leavings are worth a look before the next one */
#define LARGE 1000

void		(*mot_owed_much_hook) (void) = NULL;

/* a large transaction, or part of one, has ended: somebody should see to that soon */
void
mot_owed_much(mot_session *s)
{
	s->relief |= RELIEF_LARGE;
	if (mot_owed_much_hook != NULL)
		mot_owed_much_hook();
}

/* now and then, after a commit; the first look costs a few instructions */
void
mot_owed_after_commit(mot_session *s, uint64_t entries)
{
	if (mot_unlikely(entries > LARGE))
	{
		mot_owed_trim(s);
		mot_owed_much(s);
	}
	if (++s->since_reclaim < 32)
		return;
	s->since_reclaim = 0;
	if (atomic_load_explicit(&s->slot->owed.count, memory_order_relaxed) > 32)
		(void) mot_reclaim(s, 512);
}
