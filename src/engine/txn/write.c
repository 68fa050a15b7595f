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
 * Changes that touch index entries (inserts, updates of key columns, and deletes,
 * which free all keys) take the row's lock at once at every level: uniqueness is
 * decided on what can be seen in the row, and who wants the key waits.  So do
 * all others of a host that asks for it (MOT_LOCK_NOW).
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/*
 * The row is held by the transaction that its head h named: who is it?
 * MOT_OK: it has gone, or is just letting go; look again.
 */
static mot_status
row_holder(mot_session *s, mot_row *row, uint64_t h, unsigned *spins)
{
	mot_slot   *slot = &s->engine->slot[head_owner(h) - 1];
	uint64_t	host = atomic_load_explicit(&slot->host_id, memory_order_acquire);
	bool		amends = atomic_load_explicit(&slot->amends, memory_order_acquire);
	bool		key_only;

	/* the holder's name was read while it held the row, and how it does */
	if (row_head(row) != h)
		return MOT_OK;
	if (amends)
	{
		mot_backoff(spins);
		return MOT_OK;
	}

	/*
	 * Nobody can own what we share, if that excludes him: he is about to find
	 * our entry, gives way, and will wait for us.
	 */
	if (mot_share_mine(s, row, &key_only) && ((h & HEAD_FULL) || !key_only))
	{
		mot_backoff(spins);
		return MOT_OK;
	}
	/* past its draw: it lets go in a moment */
	if (*spins < INSTALL_SPINS && atomic_load(&slot->commit_state) != COMMIT_NONE)
	{
		mot_backoff(spins);
		return MOT_OK;
	}
	s->holder.slot = head_owner(h) - 1;
	s->holder.host_id = host;
	s->holder.row = row;
	return MOT_BUSY;
}

/*
 * Take the lock of a row for this transaction.  MOT_OK: *head is the head
 * before (owner 0), the row is ours.  MOT_BUSY: held or shared by another
 * transaction.  full: with strength "update", else "no key update".
 */
mot_status
mot_row_take(mot_session *s, mot_row *row, bool full, uint64_t *head)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	h = row_head(row);
		unsigned	owner = head_owner(h);

		MOT_STOP_POINT("row-take");
		if (owner == 0)
		{
			/* (a look before, so as not to show up as owner in vain) */
			if (mot_share_conflicts(s, row, full))
				return MOT_BUSY;

			MOT_STOP_POINT("row-free");

			/*
			 * seq_cst: we see the version under the lock, and sharers who did
			 * not see us (see share.c)
			 */
			if (atomic_compare_exchange_weak(&row->head, &h,
											 h | (uint64_t) s->owner << OWNER_SHIFT |
											 (full ? HEAD_FULL : 0)))
			{
				mot_count_shared(1);
				*head = h;
				MOT_STOP_POINT("row-taken");
				if (mot_unlikely(mot_share_conflicts(s, row, full)))
				{
					atomic_store_explicit(&row->head, h, memory_order_release);
					return MOT_BUSY;
				}
				return MOT_OK;
			}
			continue;
		}
		mot_assert(owner != s->owner);
		if (row_holder(s, row, h, &spins) == MOT_BUSY)
			return MOT_BUSY;
	}
}

/*
 * The row is ours, and is to be so with strength "update".  MOT_BUSY: sharers
 * of its key are in the way, and nothing has changed.
 */
static mot_status
row_strengthen(mot_session *s, mot_row *row)
{
	uint64_t	h = row_head(row);

	if (h & HEAD_FULL)
		return MOT_OK;
	/* exchange: a full barrier before the look for sharers */
	(void) atomic_exchange(&row->head, h | HEAD_FULL);
	if (mot_likely(!mot_share_conflicts(s, row, true)))
		return MOT_OK;
	atomic_store_explicit(&row->head, h, memory_order_release);
	return MOT_BUSY;
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
	atomic_store_explicit(&row->head, make_head(0, head_version(h)), memory_order_release);
}

static journal_entry *
journal_row(mot_session *s, journal_kind kind, unsigned flags, const mot_row *row)
{
	journal_entry *e = mot_journal_add(s);

	e->what = (uint64_t) ((unsigned) kind | flags) << 48 | (uint64_t) (uintptr_t) row;
	e->a = e->b = e->c = 0;
	return e;
}

static inline bool
mode_shares(mot_row_mode mode)
{
	return mode == MOT_MODE_SHARE || mode == MOT_MODE_KEY_SHARE;
}

/*
 * Get the right that "mode" asks for.  *taken: there is an entry in the journal for it, or has to
 * be one.
 */
static mot_status
row_acquire(mot_session *s, mot_row *row, mot_row_mode mode, bool *taken)
{
	bool		full = mode == MOT_MODE_UPDATE;
	unsigned	spins = 0;
	uint64_t	head;
	mot_status	status;

	*taken = false;
	if (head_owner(row_head(row)) == s->owner)
		return full ? row_strengthen(s, row) : MOT_OK;
	if (!mode_shares(mode))
	{
		status = mot_row_take(s, row, full, &head);
		*taken = status == MOT_OK;
		return status;
	}
	for (;;)
	{
		status = mot_share_take(s, row, mode == MOT_MODE_KEY_SHARE, taken);
		if (status != MOT_BUSY)
			return status;
		head = row_head(row);
		if (head_owner(head) == 0)
			continue;
		status = row_holder(s, row, head, &spins);
		if (status == MOT_BUSY)
			return status;
	}
}

/* give back what row_acquire took for this call */
static void
row_give_back(mot_session *s, mot_row *row, mot_row_mode mode)
{
	if (mode_shares(mode))
	{
		mot_share_drop(s, journal_at(s, s->entries - 1), true);
		s->entries--;
	}
	else
		row_release(s, row);
}

mot_status
mot_row_lock(mot_session *s, const mot_view *view, mot_table *table,
			 mot_row *row, const mot_version *seen, mot_row_mode mode,
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
		/* a change whose lock was deferred so far gets it now */
		if (mode != MOT_MODE_CHANGE && head_owner(head) != s->owner)
		{
			status = mot_txn_hang_in(s, mot_map_get(&s->deferred, (uint64_t) (uintptr_t) row) - 1);
			if (status != MOT_OK)
				return status;
			head = row_head(row);
		}
		/* a change of ours so far let others share the key */
		if (mode == MOT_MODE_UPDATE && head_owner(head) == s->owner)
		{
			status = row_strengthen(s, row);
			if (status != MOT_OK)
				return status;
		}
		*newest = own;
		return MOT_OK;
	}

	if (head_owner(head) != s->owner && s->isolation != MOT_READ_COMMITTED)
	{
		/*
		 * the first committer wins: no need to wait to find out that we lost
		 */
		v = head_version(head);
		if (v != NULL && !(version_ts(v) & TS_UNCOMMITTED) && !mot_view_sees(view, version_ts(v)))
		{
			if (version_is_tombstone(v))
				return MOT_CONFLICT_DELETED;
			/* (what is wanted of the key only is the caller's to judge) */
			if (mode != MOT_MODE_KEY_SHARE)
				return MOT_CONFLICT_CHANGED;
		}
		if (mode == MOT_MODE_CHANGE)
		{
			*newest = seen;
			return MOT_OK;		/* locked by prepare */
		}
	}
	status = row_acquire(s, row, mode, &taken);
	if (status != MOT_OK)
		return status;
	MOT_STOP_POINT("row-locked");
	/* who shares the key only may find the owner's change on top */
	v = mot_newest_committed(s, row);
	if (v != NULL)
		session_saw(s, version_ts(v));
	if (v == NULL || version_is_tombstone(v) || version_ts(v) != version_ts(seen))
	{
		bool		gone = v == NULL || version_is_tombstone(v);

		if (s->isolation != MOT_READ_COMMITTED && v != NULL && !mot_view_sees(view, version_ts(v)) &&
			(gone || mode != MOT_MODE_KEY_SHARE))
			status = gone ? MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED;
		else if (gone)
			status = MOT_DELETED;
		else
			status = MOT_CHANGED;
		if (status != MOT_CHANGED)
		{
			if (taken)
				row_give_back(s, row, mode);
			return status;
		}
	}
	else
		status = MOT_OK;
	if (taken)
	{
		if (!mode_shares(mode))
			(void) journal_row(s, J_LOCK, JE_LOCKED_HERE, row);
		s->lock_to_return = true;
	}
	*newest = v;
	return status;
}

mot_status
mot_row_share(mot_session *s, mot_row *row)
{
	bool		taken;

	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;
	return row_acquire(s, row, MOT_MODE_SHARE, &taken);
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
	if ((entry_kind(e) == J_LOCK || entry_kind(e) == J_SHARE) && entry_row(e) == row)
	{
		row_give_back(s, row, entry_kind(e) == J_SHARE ? MOT_MODE_SHARE : MOT_MODE_CHANGE);
		if (entry_kind(e) == J_LOCK)
			s->entries--;
		if (s->last_mark > s->entries)
			s->last_mark = s->entries;
	}
}

/* ----------------------------------------------------------------- inserts */

static mot_row *
row_new(mot_session *s, mot_table *table, size_t size, mot_status *status)
{
	size_t		bytes = mot_row_bytes(table->rows, ROW_OVERHEAD + size);

	if (mot_unlikely(s->placed != NULL))
		return mot_session_alloc_on(s, table->rows, mot_session_placed(s, table), bytes,
									MOT_FOR_NEW_ROW, status);
	return mot_session_alloc_freely(s, table->rows, bytes, MOT_FOR_NEW_ROW, status);
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
	table_shard *shard = &table->shard[s->shard];

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

mot_status
mot_load_change(mot_session *s, mot_row *row, unsigned host_bits, size_t size, void **data)
{
	mot_assert(head_version(row_head(row)) == &row->inlined);
	if (size > mot_usable_size(s->engine->region, row) - ROW_OVERHEAD)
		return MOT_TOO_LARGE;
	/* relaxed: publishing the table makes it seen */
	atomic_store_explicit(&row->inlined.link, make_link(NULL, host_bits << LINK_HOST_SHIFT | LINK_FITS),
						  memory_order_relaxed);
	*data = version_bytes(&row->inlined);
	return MOT_OK;
}

void
mot_unload_row(mot_session *s, mot_table *table, mot_row *row)
{
	table_shard *shard = &table->shard[s->shard];

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
	mot_purpose purpose;

	if (size <= room)
	{
		*bits |= LINK_FITS;
		/* acquire: reclamation let go of the room before it said so */
		if (locked &&
			atomic_load_explicit(&row->inlined.ts, memory_order_acquire) == TS_FREE)
			return &row->inlined;
	}
	purpose = *bits & LINK_TOMBSTONE ? MOT_FOR_DELETE : MOT_FOR_CHANGE;

	/*
	 * Relaxed: only whether.  (Its place is where the row is: that is known
	 * here, and the row is where it belongs, or comes there.)
	 */
	if (mot_unlikely(atomic_load_explicit(&table->places, memory_order_relaxed) != NULL))
		return mot_session_alloc_on(s, table->versions, mot_object_node(s->engine->region, row),
									sizeof(mot_version) + size, purpose, status);
	return mot_session_alloc_freely(s, table->versions, sizeof(mot_version) + size, purpose, status);
}

/* is everybody's snapshot at least that new?  Asked again and again, it looks now and then only. */
static bool
below_horizon(mot_session *s, mot_ts ts)
{
	/* relaxed: it only grows */
	if (ts <= atomic_load_explicit(&s->engine->horizon, memory_order_relaxed))
		return true;
	return s->horizon_looks++ % 64 == 0 && ts <= mot_engine_horizon(s->engine);
}

/*
 * The tombstone that this command's deletes of this table share, for a row whose
 * newest version is "top", or NULL: it needs one for itself.  So does the
 * first row of a command, which mostly is the only one.
 */
static mot_version *
grave_join(mot_session *s, mot_table *table, const mot_row *row, const mot_version *top,
		   uint32_t command)
{
	mot_grave  *grave = s->grave;
	mot_status	status;

	if (s->delete_table != table || s->delete_command != command)
	{
		s->delete_table = table;
		s->delete_command = command;
		s->horizon_looks = 0;
		s->grave = NULL;
		return NULL;
	}
	if (top != &row->inlined || (version_ts(top) & TS_UNCOMMITTED) ||
		!below_horizon(s, version_ts(top)))
		return NULL;
	if (grave == NULL || grave->rows == GRAVE_ROWS)
	{
		if (!mot_owed_promise(s, 1))
			return NULL;
		grave = mot_session_alloc(s, table->versions, sizeof(mot_grave), MOT_FOR_DELETE, &status);
		if (grave == NULL)
		{
			s->credit++;
			return NULL;
		}
		/* relaxed: the store to a head publishes them */
		atomic_store_explicit(&grave->tombstone.ts, TS_UNCOMMITTED | command, memory_order_relaxed);
		atomic_store_explicit(&grave->tombstone.link, make_link(NULL, LINK_TOMBSTONE | LINK_SHARED),
							  memory_order_relaxed);
		grave->table = table;
		grave->first = grave->last = NULL;
		grave->rows = 0;
		s->grave = grave;
	}
	grave->rows++;
	return &grave->tombstone;
}

/*
 * Put a new version on top of the row, or into the journal if the lock is
 * deferred.  room and promises were made by the caller.
 */
static mot_status
version_push(mot_session *s, mot_table *table, mot_row *row, uint32_t command,
			 unsigned bits, size_t size, journal_kind kind, bool lock_now,
			 bool full, void **data)
{
	mot_status	status = MOT_NO_MEMORY;
	uint64_t	head;
	bool		locked;
	bool		took = false;
	uint64_t	deferred = 0;
	mot_version *v = NULL;
	bool		shared;
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

			status = mot_row_take(s, row, full, &head);
			if (status != MOT_OK)
				return status;
			took = true;
			top = head_version(head);
			if (top == NULL || !session_sees(s, version_ts(top)))
			{
				row_release(s, row);
				return top == NULL || version_is_tombstone(top) ?
					MOT_CONFLICT_DELETED : MOT_CONFLICT_CHANGED;
			}
		}
		locked = true;
	}
	if (locked && full && !took)
	{
		status = row_strengthen(s, row);
		if (status != MOT_OK)
			return status;
	}
	if (kind == J_DELETE && deferred == 0 && (bits & LINK_MOVED) == 0)
		v = grave_join(s, table, row, head_version(head), command);
	shared = v != NULL;
	if (!shared)
	{
		status = MOT_NO_MEMORY;
		if (mot_owed_promise(s, 1))
		{
			v = version_new(s, table, row, locked, size, &bits, &status);
			if (v == NULL)
				s->credit++;
		}
		if (v == NULL)
		{
			if (took)
				row_release(s, row);
			return status;
		}
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
		if (!shared)
		{
			bits |= (unsigned) version_link(head_version(head)) & LINK_KEYED;
			/* relaxed: the store to the head publishes them */
			atomic_store_explicit(&v->link, make_link(head_version(head), bits),
								  memory_order_relaxed);
			atomic_store_explicit(&v->ts, TS_UNCOMMITTED | command, memory_order_relaxed);
		}
		atomic_store_explicit(&row->head, make_head(s->owner, v) | (row_head(row) & HEAD_FULL),
							  memory_order_release);
	}
	else
	{
		const mot_version *below = deferred != 0 ?
		(mot_version *) (uintptr_t) journal_at(s, deferred - 1)->b : NULL;

		if (!mot_map_put(&s->deferred, (uint64_t) (uintptr_t) row, s->entries + 1))
		{
			s->credit++;
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
			   unsigned host_bits, size_t size, unsigned changes, void **data)
{
	bool		keys = (changes & (MOT_KEYS_CHANGE | MOT_UNIQUE_KEYS_CHANGE)) != 0;

	return version_push(s, table, row, command,
						host_bits << LINK_HOST_SHIFT | (keys ? LINK_KEYED : 0), size,
						J_UPDATE, keys || (changes & MOT_LOCK_NOW) != 0, (changes & MOT_UNIQUE_KEYS_CHANGE) != 0, data);
}

mot_status
mot_row_delete(mot_session *s, mot_table *table, mot_row *row, uint32_t command)
{
	return version_push(s, table, row, command, LINK_TOMBSTONE, 0, J_DELETE, true, true, NULL);
}

mot_status
mot_row_move_away(mot_session *s, mot_table *table, mot_row *row, uint32_t command)
{
	return version_push(s, table, row, command, LINK_TOMBSTONE | LINK_MOVED, 0, J_DELETE, true, true, NULL);
}

/* ------------------------------------------------------------ other bytes */

mot_status
mot_row_amend(mot_session *s, mot_table *table, mot_row *row, const mot_version *seen,
			  unsigned host_bits, const void *data, size_t size, void (*log) (void *arg), void *arg)
{
	mot_version *old = (mot_version *) (uintptr_t) seen;
	unsigned	bits = host_bits << LINK_HOST_SHIFT | ((unsigned) version_link(seen) & LINK_KEYED);
	unsigned	spins = 0;
	uint64_t	head = 0;
	mot_status	status = MOT_NO_MEMORY;
	mot_version *copy;

	mot_assert(mot_snapshot_held(s) != MOT_TS_NONE && !version_is_tombstone(seen));
	if (!mot_owed_promise(s, 1))
		return MOT_NO_MEMORY;
	copy = version_new(s, table, row, false, size, &bits, &status);
	if (copy == NULL)
	{
		s->credit++;
		return status;
	}
	memcpy(version_bytes(copy), data, size);
	/* relaxed, both: the store to the head publishes them */
	atomic_store_explicit(&copy->link, make_link(version_previous(seen), bits), memory_order_relaxed);
	atomic_store_explicit(&copy->ts, version_ts(seen), memory_order_relaxed);

	/*
	 * release of the exchange: who finds us at the row knows that it is for a
	 * moment
	 */
	atomic_store_explicit(&s->slot->amends, true, memory_order_relaxed);
	do
	{
		head = row_head(row);
		if (head_owner(head) == s->owner)
			status = MOT_SELF_CHANGED;
		else if (head_owner(head) != 0)
			status = row_holder(s, row, head, &spins);
		else
			status = head_version(head) == old ? MOT_OK : MOT_CHANGED;
	} while (status == MOT_OK &&
			 (head_owner(head) != 0 ||
			  !atomic_compare_exchange_strong(&row->head, &head, make_head(s->owner, old))));
	if (status == MOT_OK)
	{
		MOT_STOP_POINT("row-amended");
		if (log != NULL)
			log(arg);
		/* release: with its bytes */
		atomic_store_explicit(&row->head, make_head(0, copy), memory_order_release);
	}
	/* release: whoever finds this has found the row let go */
	atomic_store_explicit(&s->slot->amends, false, memory_order_release);
	if (status != MOT_OK)
	{
		s->credit++;
		mot_free(s->cache, copy);
		return status;
	}
	mot_spin_lock(&s->slot->owed.lock);
	owe_superseded(s, row, old, mot_owed_stamp(s));
	mot_spin_unlock(&s->slot->owed.lock);
	return MOT_OK;
}
