/*-------------------------------------------------------------------------
 *
 * index.c
 *	  Index entries: keys to rows, uniqueness, and entries that outlive
 *	  their key.
 *
 * A unique index has one tree entry per key, a non-unique one a tree entry
 * per key and row (the row's number follows the key).  Deleting a row, or
 * changing its key, leaves the entry where it is, because older snapshots
 * still find the row by it; it is dropped when nobody can need it.  So at any
 * time several rows may stand under one unique key, at most one of them live
 * for any snapshot: the entry's value then is a bundle of rows.
 *
 * Adding to a unique index looks at the rows already there.  A row that is
 * live and has the key is a duplicate; one that another transaction is
 * changing makes the caller wait; dead ones and those that moved to another key
 * are passed over, and the new row joins them.  That looking happens without a
 * lock; the join then happens under the tree's node lock, only if the entry is
 * still as it was looked at (same value, and for a bundle the same change
 * count).  Whoever could make one of the rows live again must itself join the
 * entry first, and that changes it.
 *
 * The old key of a changed row is kept until its entry is dropped.  Those of a
 * deleted row are not: it may have many, and is mostly not alone.  When it is
 * out of everybody's sight they are made anew from its last version, by the host.
 *
 * A look-up by a whole unique key does not have to begin in the tree: see hint.h.
 *
 * Bundles are changed in place under the node lock, by atomic stores, since
 * readers look at them without; a full one is replaced by a larger one.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* the key as the tree has it: followed by the row's number where rows tell entries apart */
size_t
mot_index_tree_key(mot_session *s, const mot_index *index, mot_row *row, const void *key,
				   size_t len, unsigned flags, uint8_t *buf, const void **result, unsigned *bits)
{
	uint64_t	number;

	order_note(s, index, flags);
	if ((index->flags & MOT_INDEX_UNIQUE) && !(flags & MOT_KEY_DISTINCT))
	{
		*result = key;
		*bits = 0;
		return len;
	}
	number = mot_row_number(s, row);
	memcpy(buf, key, len);
	for (int i = 0; i < KEY_TAIL; i++)
		buf[len + i] = (uint8_t) (number >> (8 * (KEY_TAIL - 1 - i)));
	*result = buf;
	*bits = VALUE_TAIL;
	return len + KEY_TAIL;
}

/* ------------------------------------------------------------------ reading */

static inline bool
entry_stands(const mot_index_handle *handle, const mot_version *version,
			 const void *key, size_t len)
{
	/* acquire: see OWED_ENTRY_DONE in reclaim.c */
	if (mot_likely(atomic_load_explicit(&handle->index->stale, memory_order_acquire) == 0) ||
		handle->matches == NULL)
		return true;
	return handle->matches(handle->arg, version, key, len);
}

/*
 * The hinted row, if it is the one with the key: a row of the table, which the
 * view sees, with that key, for there is no other such one.  Of the one that is,
 * SERIALIZABLE needs no node (as long as the row has this version, the key leads
 * to it).  One that is not must leave no trace: nothing is recorded of it, and
 * nothing waited for.  So rows that somebody holds, or has changed after the
 * snapshot, are left to the way by the tree.
 */
typedef enum hint_found
{
	HINT_RIGHT, HINT_WRONG, HINT_UNDECIDED
} hint_found;

static inline hint_found
hinted(mot_session *s, const mot_view *view, const mot_index_handle *handle, uint32_t line,
	   const void *key, size_t len, mot_row **row, const mot_version **version)
{
	const mot_pool *rows = handle->index->table->rows;
	uint64_t	from = (uint64_t) line * MOT_CACHE_LINE;
	uint64_t	end = from + MOT_CACHE_LINE;
	hint_found	result = HINT_WRONG;

	/* two small ones may begin in a line */
	while (from < end)
	{
		mot_row    *r = mot_row_find_between(rows, from, end - from);
		uint64_t	head;
		mot_version *v;

		if (mot_unlikely(r == NULL))
			break;
		head = row_head(r);
		v = head_version(head);
		if (mot_unlikely(head_owner(head) != 0 || v == NULL || version_ts(v) > view->snapshot))
			result = HINT_UNDECIDED;
		else if (mot_likely(!version_is_tombstone(v) &&
							handle->matches(handle->arg, v, key, len)))
		{
			session_saw_commit(s, version_ts(v));
			row_was_read(s, view, r, v);
			*row = r;
			*version = v;
			return HINT_RIGHT;
		}
		from = mot_region_offset(handle->index->hints.base, r) + MOT_ROW_MIN_SIZE;
	}
	return result;
}

/* Are rows of this index looked at before its tree? */
static inline bool
trusts_hints(const mot_session *s, const mot_index_handle *handle)
{
	return handle->exact && s->hint_trust[handle->index->hints.trust] >= HINT_TRUST_HALF;
}

/* the first of an entry's rows, but one, that the view sees with its key */
static inline mot_row *
first_visible(mot_session *s, const mot_view *view, const mot_index_handle *handle, uint64_t value,
			  const void *key, size_t len, const mot_row *but, const mot_version **version)
{
	mot_bundle *b = NULL;
	uint32_t	n = 1;

	if (mot_unlikely(value & VALUE_BUNDLE))
	{
		b = value_bundle(value);
		n = bundle_used(b);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		mot_row    *r = b == NULL ? value_row(value) : bundle_row(b, i);
		const mot_version *v;

		if (r == NULL || r == but)
			continue;
		v = row_visible(s, view, r);
		if (v != NULL && entry_stands(handle, v, key, len))
		{
			*version = v;
			return r;
		}
	}
	return NULL;
}

mot_status
mot_index_get(mot_session *s, const mot_view *view, const mot_index_handle *handle,
			  const void *key, size_t len, mot_row **row, const mot_version **version)
{
	mot_index  *index = handle->index;
	_Atomic uint32_t *hint = mot_hint(&index->hints, key, len);
	uint32_t	line = mot_hint_line(hint);
	uint8_t    *trust = &s->hint_trust[index->hints.trust];
	bool		judged = false;
	uint64_t	value;
	mot_row    *r;

	mot_hint_fetch(&index->hints, line);
	/* (deferred changes are known by their rows only) */
	if (mot_likely(line != 0 && trusts_hints(s, handle) && s->deferred_count == 0))
	{
		hint_found	found = hinted(s, view, handle, line, key, len, row, version);

		judged = found != HINT_UNDECIDED;
		if (mot_likely(judged))
			mot_hint_judge(trust, found == HINT_RIGHT);
		if (mot_likely(found == HINT_RIGHT))
			return MOT_OK;
	}
	value = mot_tree_get(index->tree, key, len, session_noter(s));
	MOT_STOP_POINT("index-found");
	r = value == 0 ? NULL : first_visible(s, view, handle, value, key, len, NULL, version);
	if (mot_likely(r != NULL))
	{
		const mot_version *another;

		if (!judged && line != 0)
			mot_hint_judge(trust, line == mot_hint_of(&index->hints, r));
		mot_hint_keep(&index->hints, hint, r);
		*row = r;
		return mot_unlikely(value & VALUE_BUNDLE) && mot_index_is_unique(index) &&
			first_visible(s, view, handle, value, key, len, r, &another) != NULL ? MOT_AND_ANOTHER : MOT_OK;
	}
	/* (of one that is there the row's version is enough) */
	if (mot_unlikely(s->validate) && !view->aside)
		mot_read_absent(s, index, key, len);
	return MOT_NOT_FOUND;
}

mot_status
mot_index_get_other(mot_session *s, const mot_view *view, const mot_index_handle *handle,
					const void *key, size_t len, const mot_row *first,
					mot_row **row, const mot_version **version)
{
	uint64_t	value = mot_tree_get(handle->index->tree, key, len, session_noter(s));
	mot_row    *r = value == 0 ? NULL : first_visible(s, view, handle, value, key, len, first, version);

	if (r == NULL)
		return MOT_NOT_FOUND;
	*row = r;
	return MOT_OK;
}

void
mot_index_ahead(const mot_index_handle *handle, const void *key, size_t len)
{
	mot_prefetch(mot_hint(&handle->index->hints, key, len));
}

void
mot_index_ahead_more(const mot_index_handle *handle, const void *key, size_t len)
{
	const mot_index *index = handle->index;
	uint32_t	line = mot_hint_line(mot_hint(&index->hints, key, len));

	mot_hint_fetch(&index->hints, line);
	mot_row_find_ahead(index->table->rows, (uint64_t) line * MOT_CACHE_LINE);
}

void
mot_cursor_opened(mot_session *s, mot_cursor *c)
{
	c->generation = s->cursor_generation;
	s->open_cursors++;
	/* relaxed, and before we are seen to rest: see slot_rests in engine.c */
	atomic_store_explicit(&s->slot->has_cursors, true, memory_order_relaxed);
	mot_fence(memory_order_release);
}

mot_status
mot_cursor_open(mot_session *s, mot_cursor *c, const mot_view *view,
				const mot_index_handle *handle,
				const mot_bound *lower, const mot_bound *upper, bool backward)
{
	c->session = s;
	c->view = *view;
	c->handle = *handle;
	c->bundle = NULL;
	c->key = NULL;
	c->len = 0;
	c->range = mot_unlikely(s->validate) && !view->aside ?
		mot_range_open(s, handle->index, lower, upper, backward) : 0;
	if (!mot_tree_cursor_open(&c->tree, handle->index->tree, lower, upper, backward,
							  view->aside ? NULL : session_observer(s)))
		return MOT_NO_PRIVATE_MEMORY;
	mot_cursor_opened(s, c);
	return MOT_OK;
}

bool
mot_cursor_next(mot_cursor *c, mot_row **row, const mot_version **version)
{
	for (;;)
	{
		mot_row    *r;
		const mot_version *v;

		if (mot_unlikely(c->bundle != NULL))
		{
			if (c->place >= bundle_used(c->bundle))
			{
				c->bundle = NULL;
				continue;
			}
			r = bundle_row(c->bundle, c->place++);
			if (r == NULL)
				continue;
		}
		else
		{
			uint64_t	value = mot_tree_cursor_next(&c->tree, &c->key, &c->len);

			if (value == 0)
			{
				if (c->range != 0)
					mot_range_ended(c->session, c->range);
				return false;
			}
			if (mot_unlikely(c->range != 0))
				mot_range_reached(c->session, c->range, c->key, c->len);
			if (value & VALUE_TAIL)
				c->len -= KEY_TAIL;
			if (value & VALUE_BUNDLE)
			{
				c->bundle = value_bundle(value);
				c->place = 0;
				continue;
			}
			r = value_row(value);
		}
		v = row_visible(c->session, &c->view, r);
		if (v != NULL && entry_stands(&c->handle, v, c->key, c->len))
		{
			*row = r;
			*version = v;
			return true;
		}
	}
}

void
mot_cursor_close(mot_cursor *c)
{
	mot_session *s = c->session;

	mot_tree_cursor_close(&c->tree);
	if (c->generation == s->cursor_generation && --s->open_cursors == 0)
	{
		if (mot_unlikely(s->walked.used != 0))
			mot_map_clear(&s->walked);
		/* relaxed: as above */
		atomic_store_explicit(&s->slot->has_cursors, false, memory_order_relaxed);
	}
}

size_t
mot_cursor_size(void)
{
	return sizeof(mot_cursor);
}

/* ------------------------------------------------- joining and leaving entries */

typedef struct join_request
{
	uint64_t	expected;
	uint32_t	changes;		/* of the expected bundle */
	mot_row    *row;
	mot_bundle *spare;			/* used if the value must become a (larger)
								 * bundle */
	bool		spare_used;
	bool		done;
	bool		once;			/* not if it is there already */
	bool		insert;			/* a row that was not there has joined: who
								 * looked the key up before, or the range,
								 * must notice */
} join_request;

static void
bundle_put(mot_bundle *b, mot_row *row, uint32_t claims)
{
	uint32_t	used = atomic_load_explicit(&b->used, memory_order_relaxed);

	for (uint32_t i = 0; i < used; i++)
	{
		uint64_t	r = atomic_load_explicit(&b->item[i].row, memory_order_relaxed);

		if (r == (uint64_t) (uintptr_t) row)
		{
			atomic_fetch_add_explicit(&b->item[i].claims, claims, memory_order_relaxed);
			return;
		}
	}
	/* places given up are not filled again: a reader may stand on them */
	atomic_store_explicit(&b->item[used].claims, claims, memory_order_relaxed);
	atomic_store_explicit(&b->item[used].row, (uint64_t) (uintptr_t) row, memory_order_relaxed);
	/* release: see bundle_used */
	atomic_store_explicit(&b->used, used + 1, memory_order_release);
}

static bool
bundle_has(mot_bundle *b, const mot_row *row)
{
	for (uint32_t i = 0, n = bundle_used(b); i < n; i++)
		if (bundle_row(b, i) == row)
			return true;
	return false;
}

/* runs under the tree's node lock */
static uint64_t
join_entry(void *arg, uint64_t value)
{
	join_request *j = arg;

	if (value != j->expected)
		return value;
	if (!(value & VALUE_BUNDLE))
	{
		j->insert = value_row(value) != j->row;
		bundle_put(j->spare, value_row(value), 1);
		bundle_put(j->spare, j->row, 1);
	}
	else
	{
		mot_bundle *b = value_bundle(value);

		if (atomic_load_explicit(&b->changes, memory_order_relaxed) != j->changes)
			return value;
		j->insert = !bundle_has(b, j->row);
		if (j->once && !j->insert)
		{
			j->done = true;
			return value;
		}
		if (bundle_used(b) < b->places || !j->insert)
		{
			atomic_fetch_add_explicit(&b->changes, 1, memory_order_relaxed);
			bundle_put(b, j->row, 1);
			j->done = true;
			return value;
		}
		for (uint32_t i = 0; i < b->places; i++)
			if (bundle_row(b, i) != NULL)
				bundle_put(j->spare, bundle_row(b, i),
						   atomic_load_explicit(&b->item[i].claims, memory_order_relaxed));
		bundle_put(j->spare, j->row, 1);
	}
	j->spare_used = j->done = true;
	return (uint64_t) (uintptr_t) j->spare | VALUE_BUNDLE | (value & VALUE_TAIL);
}

typedef struct leave_request
{
	mot_row    *row;
	mot_bundle *freed;			/* a bundle that is no longer the value */
} leave_request;

/* runs under the tree's node lock */
static uint64_t
leave_entry(void *arg, uint64_t value)
{
	leave_request *l = arg;
	mot_bundle *b;
	uint32_t	rows = 0;
	uint32_t	single = 0;

	if (!(value & VALUE_BUNDLE))
		return value_row(value) == l->row ? 0 : value;
	b = value_bundle(value);
	atomic_fetch_add_explicit(&b->changes, 1, memory_order_relaxed);
	for (uint32_t i = 0, n = bundle_used(b); i < n; i++)
	{
		mot_row    *r = bundle_row(b, i);

		if (r == NULL)
			continue;
		/* relaxed: claims are only looked at under the node lock */
		if (r == l->row &&
			atomic_fetch_sub_explicit(&b->item[i].claims, 1, memory_order_relaxed) == 1)
		{
			atomic_store_explicit(&b->item[i].row, 0, memory_order_relaxed);
			continue;
		}
		rows++;
		single = i;
	}
	if (rows == 0)
	{
		l->freed = b;
		return 0;
	}
	if (rows == 1 && atomic_load_explicit(&b->item[single].claims, memory_order_relaxed) == 1)
	{
		l->freed = b;
		return (uint64_t) (uintptr_t) bundle_row(b, single) | (value & VALUE_TAIL);
	}
	return value;
}

/* take one claim of the row off an entry; *freed: a bundle to be freed after a grace period */
void
mot_index_take_claim(mot_session *s, mot_index *index, mot_row *row,
					 const void *key, size_t len, mot_bundle **freed)
{
	leave_request l = {row, NULL};

	(void) mot_tree_change(index->tree, &s->tree, key, len, leave_entry, &l, NULL, NULL);
	*freed = l.freed;
}

static void
leave(mot_session *s, mot_index *index, mot_row *row, const void *key, size_t len)
{
	mot_bundle *freed;

	mot_index_take_claim(s, index, row, key, len, &freed);
	if (freed != NULL)
		mot_owed_retire(s, freed);
}

bool		(*mot_index_key_hook) (const mot_index *index, const mot_version *version,
								   void *key, size_t *len, unsigned *flags) = NULL;

/*
 * A row that was deleted as of "ts", or whose insert was undone then, leaves the
 * table's indexes, with the keys of "version".  False: the keys
 * cannot be made for now.  What has been taken out already is not found the next
 * time, and that does no harm: the row has no other business there.
 */
bool
mot_row_leave_indexes(mot_session *s, mot_table *table, mot_row *row,
					  const mot_version *version, mot_ts ts)
{
	uint8_t		key[MOT_MAX_KEY];
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];

	/*
	 * acquire: an index is initialised before it is in the list.  One that
	 * leaves it meanwhile is there as long as our snapshot is published.
	 */
	for (mot_index *index = atomic_load_explicit(&table->indexes, memory_order_acquire);
		 index != NULL;
		 index = atomic_load_explicit(&index->sibling, memory_order_acquire))
	{
		const void *tkey;
		size_t		len;
		unsigned	flags;
		unsigned	bits;

		/* what is made later is made of rows that are there */
		if (!(index->flags & MOT_INDEX_DERIVED) || index->made >= ts)
			continue;

		/*
		 * The definition says how the keys of the indexes it knows are made.
		 * When it is put, an index of the same name that it does not mean has
		 * been dropped.  acquire, both: the first makes the definition be
		 * seen that says how, the second is looked at after it was used.
		 */
		if (!atomic_load_explicit(&index->described, memory_order_acquire) ||
			!mot_index_key_hook(index, version, key, &len, &flags))
		{
			if (atomic_load_explicit(&index->dropped, memory_order_acquire))
				continue;
			return false;
		}
		if (len == 0 || atomic_load_explicit(&index->dropped, memory_order_acquire))
			continue;
		len = mot_index_tree_key(s, index, row, key, len, flags, buf, &tkey, &bits);
		leave(s, index, row, tkey, len);
	}
	return true;
}

/* an add is undone: nobody but us ever saw the row under this key */
void
mot_index_undo_add(mot_session *s, mot_index *index, mot_row *row, const void *key, size_t len)
{
	if (!atomic_load_explicit(&index->dropped, memory_order_relaxed))
		leave(s, index, row, key, len);
}

/* --------------------------------------------------------------- uniqueness */

/* MOT_OK: this row does not stand in the way of another one with the key */
static mot_status
rival_check(mot_session *s, const mot_index_handle *handle, mot_row *r,
			const void *key, size_t len)
{
	unsigned	spins = 0;

	for (;;)
	{
		uint64_t	head = row_head(r);
		unsigned	owner = head_owner(head);
		mot_version *v = mot_own_newest(s, r, head);
		bool		free;

		MOT_STOP_POINT("rival-seen");
		if (v == NULL)
		{
			v = head_version(head);
			if (v != NULL && owner != 0 && owner != s->owner &&
				(version_ts(v) & TS_UNCOMMITTED))
			{
				uint64_t	host = atomic_load_explicit(&s->engine->slot[owner - 1].host_id,
														memory_order_acquire);

				if (row_head(r) != head)
					continue;

				/*
				 * acquire: as in skip_uncommitted; being installed is a
				 * matter of instructions
				 */
				if (spins < INSTALL_SPINS &&
					atomic_load_explicit(&s->engine->slot[owner - 1].commit_state,
										 memory_order_acquire) != COMMIT_NONE)
				{
					mot_backoff(&spins);
					continue;
				}
				s->holder.slot = owner - 1;
				s->holder.host_id = host;
				s->holder.row = r;
				return MOT_BUSY;
			}
			/* what we read must have been the row's state, not one just left */
			if (row_head(r) != head)
				continue;
		}
		if (v == NULL)
			return MOT_OK;
		session_saw(s, version_ts(v));
		free = version_is_tombstone(v) || !entry_stands(handle, v, key, len);
		if (mot_unlikely(s->validate) && !(version_ts(v) & TS_UNCOMMITTED))
		{
			if (version_ts(v) > s->snapshot)
				s->saw_newest = s->learned = true;
			/* in the way of a key: this has been read */
			if (!free)
				mot_read_record(s, r, version_ts(v));
		}
		s->rival_ts = mot_version_ts(v);
		return free ? MOT_OK : MOT_DUPLICATE;
	}
}

mot_ts
mot_rival_ts(const mot_session *s)
{
	return s->rival_ts;
}

static mot_status
rivals_check(mot_session *s, const mot_index_handle *handle, uint64_t value, mot_row *row,
			 const void *key, size_t len, mot_row **other)
{
	mot_bundle *b = value & VALUE_BUNDLE ? value_bundle(value) : NULL;
	uint32_t	n = b ? bundle_used(b) : 1;

	for (uint32_t i = 0; i < n; i++)
	{
		mot_row    *r = b ? bundle_row(b, i) : value_row(value);
		mot_status	status;

		if (r == NULL || r == row || (row == NULL && mot_own_newest(s, r, row_head(r)) != NULL))
			continue;
		status = rival_check(s, handle, r, key, len);
		if (status != MOT_OK)
		{
			*other = r;
			return status;
		}
	}
	return MOT_OK;
}

mot_status
mot_index_rivals(mot_session *s, const mot_index_handle *handle, mot_row *row,
				 const void *key, size_t len, mot_row **other)
{
	mot_bound	bound = {MOT_BOUND_INCLUSIVE, key, len};
	mot_tree_cursor cursor;
	mot_status	status = MOT_OK;
	uint64_t	value;
	const void *found;
	size_t		found_len;

	/*
	 * Of two who add the same key and then look for each other at least one
	 * must see the other: the entry that was added is seen before what is
	 * looked at now.
	 */
	mot_fence(memory_order_seq_cst);
	if (!mot_tree_cursor_open(&cursor, handle->index->tree, &bound, &bound, false, NULL))
		return MOT_NO_PRIVATE_MEMORY;
	while (status == MOT_OK && (value = mot_tree_cursor_next(&cursor, &found, &found_len)) != 0)
		status = rivals_check(s, handle, value, row, key, len, other);
	mot_tree_cursor_close(&cursor);
	return status;
}

/* room for one more than the value has now, or NULL */
static mot_bundle *
bundle_new(mot_session *s, mot_index *index, uint64_t value, mot_status *status)
{
	uint32_t	places = value & VALUE_BUNDLE ? 2 * value_bundle(value)->places : 4;
	size_t		size = offsetof(mot_bundle, item) + places * sizeof(bundle_item);
	mot_bundle *b = mot_session_alloc(s, index->pool, size, MOT_FOR_CHANGE, status);

	if (b != NULL)
	{
		memset(b, 0, size);
		b->places = places;
	}
	return b;
}

/* what a key of the row is for, when it comes to that */
static mot_purpose
key_purpose(const mot_session *s, const mot_row *row)
{
	const mot_version *own = head_version(row_head(row));

	if (s->use_reserve)
		return MOT_FOR_DELETE;
	/* of a row that was there before */
	if (own != NULL && (version_ts(own) & TS_UNCOMMITTED) && version_previous(own) != NULL)
		return MOT_FOR_CHANGE;
	return MOT_FOR_NEW_KEY;
}

bool
mot_value_has(uint64_t value, const mot_row *row)
{
	return value & VALUE_BUNDLE ? bundle_has(value_bundle(value), row) : value_row(value) == row;
}

/*
 * Add key -> row to the tree; the journal is the caller's.  "unique": look at
 * the rows that have the key.  "once": mot_index_catch_up.
 */
static mot_status
entry_add(mot_session *s, const mot_index_handle *handle, mot_tree_context *ctx,
		  mot_row *row, const void *key, size_t len, unsigned bits, bool unique, bool once,
		  mot_row **other)
{
	mot_index  *index = handle->index;
	uint64_t	plain = (uint64_t) (uintptr_t) row | bits;
	mot_purpose purpose = MOT_FOR_NEW_KEY;
	unsigned	tries = 0;

	for (;;)
	{
		join_request join = {0};
		uint64_t	value = 0;
		bool		there;
		mot_status	status;
		mot_tree_status st;

		order_begin(s, handle);
		st = mot_tree_cas(index->tree, ctx, key, len, 0, plain, &value,
						  purpose, session_observer(s));
		order_end(s, handle, st == MOT_TREE_OK, key, len, bits);
		if (st == MOT_TREE_OK)
		{
			/* only whole keys are looked up alone */
			if (bits == 0)
				mot_hint_keep(&index->hints, mot_hint(&index->hints, key, len), row);
			return MOT_OK;
		}
		if (st == MOT_TREE_NO_MEMORY)
		{
			mot_purpose entitled = key_purpose(s, row);

			if (entitled != purpose)
			{
				purpose = entitled;
				continue;
			}
			/* nothing that we have found is kept */
			if (mot_make_room(s, &tries, true))
				continue;
			return mot_session_refused(s, index->pool, ctx->why);
		}

		/*
		 * the key is there; if the row has it already, nobody need have asked
		 * who else has
		 */
		there = once && mot_value_has(value, row);
		if (there && !unique)
			return MOT_OK;
		join.expected = value;
		join.row = row;
		join.once = once;
		if (value & VALUE_BUNDLE)
			join.changes = atomic_load_explicit(&value_bundle(value)->changes,
												memory_order_acquire);
		if (unique)
		{
			status = rivals_check(s, handle, value, row, key, len, other);

			/*
			 * Who has deleted the row since it was read needs no entry, and
			 * who has given it another key has seen to it.
			 */
			if (status == MOT_DUPLICATE && once)
			{
				status = rival_check(s, handle, row, key, len);
				if (status == MOT_OK)
					return MOT_OK;
			}
			if (status != MOT_OK)
				return status;
			/* it may be free only since the snapshot */
			s->saw_newest = true;
		}
		if (there)
			return MOT_OK;
		MOT_STOP_POINT("index-before-join");
		join.spare = bundle_new(s, index, value, &status);
		if (join.spare == NULL)
			return status;
		if (!mot_owed_promise(s, 1))
		{
			mot_free(s->cache, join.spare);
			return MOT_NO_MEMORY;
		}
		(void) mot_tree_change(index->tree, ctx, key, len, join_entry, &join, &join.insert,
							   session_observer(s));
		if (join.spare_used && (value & VALUE_BUNDLE))
			mot_owed_undone(s, OWED_OBJECT, value_bundle(value));
		else
			s->credit++;
		if (!join.spare_used)
			mot_free(s->cache, join.spare);
		if (join.done)
			return MOT_OK;
	}
}

/*
 * The drop that has just been noted for the row's old key is to have room for
 * the new one, should the change be taken back (see undo_key_change).  If it
 * cannot have it, that goes through the index.
 */
static void
keep_room(mot_session *s, journal_entry *e, const mot_index *index, const mot_row *row, size_t len)
{
	index_drop *drop = (index_drop *) (uintptr_t) e->b;
	index_drop *wider;

	if (drop->row != row || drop->index != index ||
		mot_usable_size(s->engine->region, drop) >= sizeof(index_drop) + len)
		return;
	wider = mot_alloc(s->cache, s->engine->pool, sizeof(index_drop) + len, MOT_FOR_CHANGE, NULL);
	if (wider == NULL)
		return;
	memcpy(wider, drop, sizeof(index_drop) + drop->len);
	mot_free(s->cache, drop);
	e->b = (uint64_t) (uintptr_t) wider;
}

mot_status
mot_index_add(mot_session *s, const mot_index_handle *handle, mot_row *row,
			  const void *key, size_t len, unsigned flags, mot_row **other)
{
	mot_index  *index = handle->index;
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];
	const void *tkey;
	size_t		tlen;
	unsigned	bits;
	uint64_t	stored = 0;
	mot_status	status;
	journal_entry *e;

	if (mot_unlikely(len == 0))
		return MOT_OK;
	if (len > MOT_MAX_KEY)
		return MOT_TOO_LARGE;
	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;
	tlen = mot_index_tree_key(s, index, row, key, len, flags, buf, &tkey, &bits);
	if (tlen <= sizeof(stored))
		memcpy(&stored, tkey, tlen);
	else
	{
		const void *copy = mot_journal_key(s, tkey, tlen);

		if (copy == NULL)
			return MOT_NO_PRIVATE_MEMORY;
		stored = (uint64_t) (uintptr_t) copy;
	}
	status = entry_add(s, handle, &s->tree, row, tkey, tlen, bits, bits == 0, false, other);
	if (status != MOT_OK)
	{
		if (tlen > sizeof(stored))
			mot_journal_release_key(s, (const void *) (uintptr_t) stored);
		return status;
	}

	/* a small key's entry goes into that of its row: loads write half as much */
	e = s->entries > s->last_mark ? journal_at(s, s->entries - 1) : NULL;
	if (e != NULL && tlen <= sizeof(stored) &&
		entry_kind(e) == J_INSERT && entry_row(e) == row)
		e->what = (uint64_t) (J_INSERT_ADD | JE_LOCKED_HERE) << 48 | (uint64_t) (uintptr_t) row;
	else
	{
		if (e != NULL && entry_kind(e) == J_DROP)
			keep_room(s, e, index, row, tlen);
		e = mot_journal_add(s);
		e->what = (uint64_t) J_ADD << 48 | (uint64_t) (uintptr_t) row;
	}
	e->a = (uint64_t) (uintptr_t) index;
	e->b = stored;
	e->c = tlen;
	s->writes++;
	return MOT_OK;
}

/* An entry that no transaction takes back. */
static inline mot_status
add_unjournaled(mot_session *s, const mot_index_handle *handle, mot_tree_context *tree, mot_row *row,
				const void *key, size_t len, unsigned flags, bool check, bool behind, mot_row **other)
{
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];
	const void *tkey;
	size_t		tlen;
	unsigned	bits;

	if (mot_unlikely(len == 0))
		return MOT_OK;
	if (len > MOT_MAX_KEY)
		return MOT_TOO_LARGE;
	tlen = mot_index_tree_key(s, handle->index, row, key, len, flags, buf, &tkey, &bits);
	return entry_add(s, handle, tree, row, tkey, tlen, bits, check && bits == 0, behind, other);
}

mot_status
mot_index_catch_up(mot_session *s, const mot_index_handle *handle, mot_row *row,
				   const void *key, size_t len, unsigned flags, bool check, mot_row **other)
{
	return add_unjournaled(s, handle, &s->tree, row, key, len, flags, check, true, other);
}

mot_status
mot_index_drop_entry(mot_session *s, const mot_index_handle *handle, mot_row *row,
					 const void *key, size_t len, unsigned flags)
{
	mot_index  *index = handle->index;
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];
	const void *tkey = "";
	size_t		tlen = 0;
	unsigned	bits;
	mot_status	status = MOT_NO_MEMORY;
	mot_version *own = mot_own_newest(s, row, row_head(row));
	bool		stale = own != NULL && !version_is_tombstone(own);
	index_drop *drop;
	journal_entry *e;

	/* (of one that comes into the index, older versions are to be asked) */
	if (mot_unlikely(len == 0) && !stale)
		return MOT_OK;
	if (len > MOT_MAX_KEY)
		return MOT_TOO_LARGE;
	if (!mot_journal_reserve(s))
		return MOT_NO_PRIVATE_MEMORY;
	if (!mot_owed_promise(s, 1))
		return MOT_NO_MEMORY;
	if (mot_likely(len != 0))
		tlen = mot_index_tree_key(s, index, row, key, len, flags, buf, &tkey, &bits);
	drop = mot_session_alloc(s, s->engine->pool, sizeof(index_drop) + tlen,
							 MOT_FOR_CHANGE, &status);
	if (drop == NULL)
	{
		s->credit++;
		return status;
	}
	drop->index = index;
	drop->row = row;
	drop->bundle = NULL;
	drop->undone = false;
	drop->len = (uint32_t) tlen;

	/* (of a deleted row's entry nobody has to ask: the row says it is) */
	drop->stale = stale;
	memcpy(drop->key, tkey, tlen);
	if (stale)
		/* seq_cst: counted before our new entry or our commit can be seen */
		atomic_fetch_add(&index->stale, 1);
	e = mot_journal_add(s);
	e->what = (uint64_t) J_DROP << 48 | (uint64_t) (uintptr_t) row;
	e->a = (uint64_t) (uintptr_t) index;
	e->b = (uint64_t) (uintptr_t) drop;
	e->c = 0;
	s->writes++;
	return MOT_OK;
}

/* --------------------------------------------------------------------- loads */

mot_status
mot_load_key(mot_session *s, const mot_index_handle *handle, mot_row *row,
			 const void *key, size_t len, unsigned flags, mot_row **other)
{
	return add_unjournaled(s, handle, &s->tree_exclusive, row, key, len, flags, true, false, other);
}

void
mot_unload_key(mot_session *s, const mot_index_handle *handle, mot_row *row,
			   const void *key, size_t len, unsigned flags)
{
	uint8_t		buf[MOT_MAX_KEY + KEY_TAIL];
	const void *tkey;
	size_t		tlen;
	unsigned	bits;
	leave_request l = {row, NULL};

	if (len == 0)
		return;
	tlen = mot_index_tree_key(s, handle->index, row, key, len, flags, buf, &tkey, &bits);
	(void) mot_tree_change(handle->index->tree, &s->tree_exclusive, tkey, tlen, leave_entry, &l, NULL, NULL);
	if (l.freed != NULL)
		mot_free(s->cache, l.freed);
}
