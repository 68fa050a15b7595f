/*-------------------------------------------------------------------------
 *
 * write.c
 *	  Changing rows: locks, new versions, tombstones.
 *
 * At READ COMMITTED a row's lock is taken when the row is touched: one
 * compare-and-swap that puts the owner into the row's head.  The new version is
 * then hung on top of the chain, marked uncommitted; commit only has to stamp
 * it and take the owner out.
 *
 * At the higher levels the lock is taken at commit (Silo), so that nobody
 * waits for a client: the new version stays in the journal, found through
 * the map of deferred rows, until prepare locks the row and hangs it in.
 * Changes that touch index entries (inserts, and updates of key columns) take
 * the row's lock at once at every level: uniqueness is decided on what can be
 * seen in the row.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

mot_status
mot_conflict(mot_session *s, mot_status status)
{
	int			i = (int) status - (int) MOT_CONFLICT_CHANGED;

	/* relaxed: only we write it, statistics read it */
	atomic_fetch_add_explicit(&s->slot->conflicts[i], 1, memory_order_relaxed);
	return status;
}

/*
 * Take the lock of a row for this transaction.  MOT_OK: *head is the head
 * before (owner 0), the row is ours.  MOT_BUSY: held by another transaction.
 */
mot_status
mot_row_take(mot_session *s, mot_row *row, uint64_t *head)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	h = row_head(row);
		unsigned	owner = head_owner(h);

		MOT_STOP_POINT("row-take");
		if (owner == 0)
		{
			/*
			 * acquire: we see the version under the lock; release is not
			 * needed, the version was published by whoever stored it.
			 */
			if (atomic_compare_exchange_weak_explicit(&row->head, &h,
													  h | (uint64_t) s->owner << OWNER_SHIFT,
													  memory_order_acq_rel,
													  memory_order_relaxed))
			{
				mot_count_shared(1);
				*head = h;
				return MOT_OK;
			}
			continue;
		}
		mot_assert(owner != s->owner);
		{
			mot_slot   *slot = &s->engine->slot[owner - 1];
			uint64_t	host = atomic_load_explicit(&slot->host_id, memory_order_acquire);

			/* the holder's name was read while it held the row */
			if (row_head(row) != h)
				continue;
			/* past its draw: it lets go in a moment */
			if (spins < 1024 && atomic_load(&slot->commit_state) != COMMIT_NONE)
			{
				mot_backoff(&spins);
				continue;
			}
			s->holder.slot = owner - 1;
			s->holder.host_id = host;
			s->holder.row = row;
			/* relaxed: statistics */
			atomic_fetch_add_explicit(&s->slot->waits, 1, memory_order_relaxed);
			return MOT_BUSY;
		}
	}
}

static void
row_release(mot_session *s, mot_row *row)
{
	uint64_t	h = row_head(row);

	(void) s;
	mot_assert(head_owner(h) == s->owner);

	/*
	 * release: a version we took off again is not reachable for the next
	 * owner
	 */
	atomic_store_explicit(&row->head, h & PTR_MASK, memory_order_release);
}

static journal_entry *
journal_row(mot_session *s, journal_kind kind, unsigned flags, const mot_row *row)
{
	journal_entry *e = mot_journal_add(s);

	e->what = (uint64_t) ((unsigned) kind | flags) << 48 | (uint64_t) (uintptr_t) row;
	e->a = e->b = e->c = 0;
	return e;
}

mot_status
mot_row_lock(mot_session *s, const mot_view *view, mot_table *table,
			 mot_row *row, const mot_version *seen, bool now,
			 const mot_version **newest)
{
	uint64_t	head;
	mot_version *v;
	mot_version *own;
	bool		taken = false;
	mot_status	status;

	(void) table;
	mot_assert(s->active);
	s->lock_to_return = false;
	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;

	head = row_head(row);
	own = mot_own_newest(s, row, head);
	if (own != NULL)
	{
		if ((version_ts(own) & ~TS_UNCOMMITTED) >= view->command)
		{
			*newest = version_is_tombstone(own) ? NULL : own;
			return MOT_SELF_CHANGED;
		}
		if (version_is_tombstone(own))
			return MOT_DELETED;
		*newest = own;
		return MOT_OK;
	}

	if (head_owner(head) != s->owner)
	{
		if (s->isolation != MOT_READ_COMMITTED)
		{
			/*
			 * the first committer wins: no need to wait to find out that we
			 * lost
			 */
			v = head_version(head);
			if (v != NULL && !(version_ts(v) & TS_UNCOMMITTED) &&
				version_ts(v) > view->snapshot)
				return mot_conflict(s, version_is_tombstone(v) ? MOT_CONFLICT_DELETED :
									MOT_CONFLICT_CHANGED);
			if (!now)
			{
				*newest = seen;
				return MOT_OK;	/* locked by prepare */
			}
		}
		status = mot_row_take(s, row, &head);
		if (status != MOT_OK)
			return status;
		taken = true;
	}
	MOT_STOP_POINT("row-locked");
	v = head_version(head);
	if (v != NULL)
		session_saw(s, version_ts(v));
	if (v == NULL || version_is_tombstone(v) || version_ts(v) != version_ts(seen))
	{
		bool		gone = v == NULL || version_is_tombstone(v);

		if (s->isolation != MOT_READ_COMMITTED && v != NULL && version_ts(v) > view->snapshot)
			status = mot_conflict(s, gone ? MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED);
		else if (gone)
			status = MOT_DELETED;
		else
			status = MOT_CHANGED;
		if (status != MOT_CHANGED)
		{
			if (taken)
				row_release(s, row);
			return status;
		}
	}
	else
		status = MOT_OK;
	if (taken)
	{
		(void) journal_row(s, J_LOCK, JE_LOCKED_HERE, row);
		s->lock_to_return = true;
	}
	*newest = v;
	return status;
}

void
mot_row_unlock(mot_session *s, mot_row *row)
{
	journal_entry *e;

	/* a lock that the transaction had before, it keeps */
	if (!s->lock_to_return || s->entries == 0)
		return;
	s->lock_to_return = false;
	e = journal_at(s, s->entries - 1);
	if (entry_kind(e) == J_LOCK && entry_row(e) == row)
	{
		row_release(s, row);
		s->entries--;
		if (s->last_mark > s->entries)
			s->last_mark = s->entries;
	}
}

bool
mot_row_is_locked(mot_session *s, const mot_row *row)
{
	unsigned	owner = head_owner(row_head(row));

	return owner != 0 && owner != s->owner;
}

/* ----------------------------------------------------------------- inserts */

static mot_row *
row_new(mot_session *s, mot_table *table, size_t size, mot_status *status)
{
	mot_row    *row;
	size_t		bytes = ROW_OVERHEAD + size;

	if (bytes < MOT_ROW_MIN_SIZE)
		bytes = MOT_ROW_MIN_SIZE;
	row = mot_session_alloc(s, table->rows, bytes, MOT_FOR_NEW_ROW, status);
	return row;
}

mot_status
mot_row_insert(mot_session *s, mot_table *table, uint32_t command,
			   unsigned host_bits, size_t size, mot_row **result, void **data)
{
	mot_status	status = MOT_NO_MEMORY;
	mot_row    *row;
	journal_entry *e;

	mot_assert(s->active);
	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;
	if (!mot_owed_promise(s, 1))	/* for the row, should it be undone */
		return MOT_NO_MEMORY;
	row = row_new(s, table, size, &status);
	if (row == NULL)
	{
		s->credit++;
		return status;
	}
	/* relaxed: marking the row, or an index entry, publishes it */
	atomic_store_explicit(&row->inlined.link, make_link(NULL, host_bits << LINK_HOST_SHIFT | LINK_FITS),
						  memory_order_relaxed);
	atomic_store_explicit(&row->inlined.ts, TS_UNCOMMITTED | command, memory_order_relaxed);
	atomic_store_explicit(&row->head, make_head(s->owner, &row->inlined), memory_order_release);
	mot_row_mark(s->engine->region, row);
	if (s->validate)
		mot_read_own_insert(s, table, row);

	e = journal_row(s, J_INSERT, JE_LOCKED_HERE, row);
	e->a = (uint64_t) (uintptr_t) table;
	s->writes++;
	*result = row;
	*data = version_bytes(&row->inlined);
	return MOT_OK;
}

mot_status
mot_load_row(mot_session *s, mot_table *table, unsigned host_bits, size_t size,
			 mot_row **result, void **data)
{
	mot_status	status = MOT_NO_MEMORY;
	mot_row    *row = row_new(s, table, size, &status);
	table_shard *shard = &table->shard[s->owner % TABLE_SHARDS];

	if (row == NULL)
		return status;
	atomic_store_explicit(&row->inlined.link, make_link(NULL, host_bits << LINK_HOST_SHIFT | LINK_FITS),
						  memory_order_relaxed);
	atomic_store_explicit(&row->inlined.ts, TS_LOADED, memory_order_relaxed);
	atomic_store_explicit(&row->head, make_head(0, &row->inlined), memory_order_release);
	mot_row_mark(s->engine->region, row);
	/* relaxed: statistics */
	atomic_fetch_add_explicit(&shard->rows, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&shard->inserts, 1, memory_order_relaxed);
	*result = row;
	*data = version_bytes(&row->inlined);
	return MOT_OK;
}

void
mot_unload_row(mot_session *s, mot_table *table, mot_row *row)
{
	table_shard *shard = &table->shard[s->owner % TABLE_SHARDS];

	mot_row_unmark(s->engine->region, row);
	mot_free(s->cache, row);
	atomic_fetch_sub_explicit(&shard->rows, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&shard->inserts, 1, memory_order_relaxed);
}

/* ---------------------------------------------------------------- versions */

/*
 * Memory for a version of "size" bytes: the row's own room if it is free and
 * we hold the lock (else another writer might use it too), or an object.
 */
static mot_version *
version_new(mot_session *s, mot_table *table, mot_row *row, bool locked,
			size_t size, unsigned *bits, mot_status *status)
{
	size_t		room = mot_usable_size(s->engine->region, row) - ROW_OVERHEAD;

	if (size <= room)
	{
		*bits |= LINK_FITS;
		/* acquire: reclamation let go of the room before it said so */
		if (locked &&
			atomic_load_explicit(&row->inlined.ts, memory_order_acquire) == TS_FREE)
			return &row->inlined;
	}
	return mot_session_alloc(s, table->versions, sizeof(mot_version) + size,
							 MOT_FOR_CHANGE, status);
}

/*
 * Put a new version on top of the row, or into the journal if the lock is
 * deferred.  room and promises were made by the caller.
 */
static mot_status
version_push(mot_session *s, mot_table *table, mot_row *row, uint32_t command,
			 unsigned bits, size_t size, journal_kind kind, bool lock_now,
			 void **data)
{
	mot_status	status = MOT_NO_MEMORY;
	uint64_t	head;
	bool		locked;
	bool		took = false;
	uint64_t	deferred = 0;
	mot_version *v;
	journal_entry *e;

	mot_assert(s->active);
	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;
	head = row_head(row);
	locked = head_owner(head) == s->owner;
	if (!locked && s->deferred_count != 0)
		deferred = mot_map_get(&s->deferred, (uint64_t) (uintptr_t) row);
	if (!locked && lock_now)
	{
		if (deferred != 0)
		{
			/* what was deferred is hung in now, too */
			status = mot_txn_hang_in(s, deferred - 1);
			if (status != MOT_OK)
				return status;
			head = row_head(row);
		}
		else
		{
			mot_version *top;

			status = mot_row_take(s, row, &head);
			if (status != MOT_OK)
				return status;
			took = true;
			top = head_version(head);
			if (top == NULL || version_ts(top) > s->snapshot)
			{
				row_release(s, row);
				return mot_conflict(s, top == NULL || version_is_tombstone(top) ?
									MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED);
			}
		}
		locked = true;
		status = MOT_NO_MEMORY;
	}
	if (!mot_owed_promise(s, kind == J_DELETE ? 3 : 1))
	{
		if (took)
			row_release(s, row);
		return MOT_NO_MEMORY;
	}
	v = version_new(s, table, row, locked, size, &bits, &status);
	if (v == NULL)
	{
		s->credit += kind == J_DELETE ? 3 : 1;
		if (took)
			row_release(s, row);
		return status;
	}

	if (locked)
	{
		/* an immediately preceding lock entry becomes this change's */
		e = s->entries > s->last_mark ? journal_at(s, s->entries - 1) : NULL;
		if (e == NULL || entry_kind(e) != J_LOCK || entry_row(e) != row)
			e = journal_row(s, kind, took ? JE_LOCKED_HERE : 0, row);
		else
			e->what = (uint64_t) ((unsigned) kind | JE_LOCKED_HERE) << 48 |
				(uint64_t) (uintptr_t) row;
		bits |= (unsigned) version_link(head_version(head)) & LINK_KEYED;
		/* relaxed: the store to the head publishes them */
		atomic_store_explicit(&v->link, make_link(head_version(head), bits), memory_order_relaxed);
		atomic_store_explicit(&v->ts, TS_UNCOMMITTED | command, memory_order_relaxed);
		atomic_store_explicit(&row->head, make_head(s->owner, v), memory_order_release);
	}
	else
	{
		const mot_version *below = deferred != 0 ?
		(mot_version *) (uintptr_t) journal_at(s, deferred - 1)->b : NULL;

		if (!mot_map_put(&s->deferred, (uint64_t) (uintptr_t) row, s->entries + 1))
		{
			s->credit += kind == J_DELETE ? 3 : 1;
			mot_free(s->cache, v);
			return MOT_NO_PRIVATE_MEMORY;
		}
		e = journal_row(s, kind, JE_DEFERRED, row);
		e->c = deferred;
		s->deferred_count++;

		/*
		 * a first deferred version's link is completed by prepare, under the
		 * lock
		 */
		atomic_store_explicit(&v->link, make_link(below, bits), memory_order_relaxed);
		atomic_store_explicit(&v->ts, TS_UNCOMMITTED | command, memory_order_relaxed);
	}
	e->a = (uint64_t) (uintptr_t) table;
	e->b = (uint64_t) (uintptr_t) v;
	s->writes++;
	if (data != NULL)
		*data = version_bytes(v);
	return MOT_OK;
}

mot_status
mot_row_update(mot_session *s, mot_table *table, mot_row *row, uint32_t command,
			   unsigned host_bits, size_t size, bool key_change, void **data)
{
	return version_push(s, table, row, command,
						host_bits << LINK_HOST_SHIFT | (key_change ? LINK_KEYED : 0), size,
						J_UPDATE, key_change, data);
}

mot_status
mot_row_delete(mot_session *s, mot_table *table, mot_row *row, uint32_t command)
{
	return version_push(s, table, row, command, LINK_TOMBSTONE, 0, J_DELETE, false, NULL);
}
