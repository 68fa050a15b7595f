/*-------------------------------------------------------------------------
 *
 * parcel.c
 *	  Transactions that are prepared, and outlive the session they ran in.  See mot_parcel.h.
 *
 * What a transaction has done lies in the rows' chains and in the indexes; only
 * its journal is private.  So a transaction that is to wait for its end without a
 * process has its journal copied into the region (a parcel), and its rows are
 * given to another slot, which belongs to no process: the holder's.  Whoever is to
 * end it opens a session in that slot, takes the journal out of the parcel, and
 * commits or aborts as ever.
 *
 *	pack		the copy, and the holder's promises in its queue of what will be
 *				owed.  All that can fail; nobody else notices anything
 *	hand over	heads and shares get the holder's name.  Both slots are of
 *				transactions that have drawn nothing, and a head is looked at
 *				again by whoever has judged its owner; so who comes by sees the one
 *				or the other, and is told to wait for it
 *	unpack		the journal in the holder's session.  May fail, and be tried again
 *	put back	it was not to be ended after all
 *
 * Who restores such a transaction after a restart does what it did in the holder's
 * session itself: then there is nothing to be handed over.
 *
 * Nobody publishes a snapshot for it meanwhile.  It needs none: what it has
 * superseded stays the newest committed version of a row that nobody else can
 * change, entries lead to rows that cannot go, and the commit publishes one
 * before it draws.  (What one of SERIALIZABLE has read is seen to in kept.c.)
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* entries in one object of the region, and bytes of keys */
#define PARCEL_ENTRIES 1000
#define PARCEL_KEYS ((size_t) 32 * 1024)

typedef struct parcel_chunk
{
	struct parcel_chunk *next;
	uint32_t	used;
	journal_entry entry[];
} parcel_chunk;

typedef struct parcel_keys
{
	struct parcel_keys *next;
	size_t		used;
	size_t		size;
	uint8_t		bytes[];
} parcel_keys;

struct mot_parcel
{
	parcel_chunk *first;
	parcel_keys *keys;
	uint64_t	writes;
	uint64_t	promises;
};

/*
 * Places in the queue that commit or undo will use: as many as were promised for what the journal
 * has.
 */
static uint64_t
count_promises(const mot_session *s)
{
	uint64_t	n = 0;
	const mot_grave *grave = NULL;

	for (uint64_t i = 0; i < s->entries; i++)
	{
		const journal_entry *e = journal_at(s, i);
		const mot_version *v = (const mot_version *) (uintptr_t) e->b;

		switch (entry_kind(e))
		{
			case J_INSERT:
			case J_INSERT_ADD:
			case J_UPDATE:
			case J_DROP:
				n++;
				break;
			case J_DELETE:

				/*
				 * (one for all rows of a grave, which come without others
				 * between)
				 */
				if (!version_is_shared(v))
					n++;
				else if (version_grave(v) != grave)
				{
					grave = version_grave(v);
					n++;
				}
				break;
			case J_LOCK:
			case J_SHARE:
			case J_ADD:
				break;
		}
	}
	return n;
}

static void *
parcel_alloc(mot_session *s, size_t size, mot_status *status)
{
	*status = MOT_NO_MEMORY;
	return mot_session_alloc(s, s->engine->pool, size, MOT_FOR_CHANGE, status);
}

/* room for as much as is left of all keys, up to a bound */
static const void *
copy_key(mot_session *s, mot_parcel *p, const void *key, size_t len, size_t *left, mot_status *status)
{
	parcel_keys *k = p->keys;
	uint8_t    *to;

	if (k == NULL || k->size - k->used < len)
	{
		size_t		size = *left < PARCEL_KEYS ? *left : PARCEL_KEYS;

		if (size < len)
			size = len;
		k = parcel_alloc(s, sizeof(parcel_keys) + size, status);
		if (k == NULL)
			return NULL;
		k->next = p->keys;
		k->used = 0;
		k->size = size;
		p->keys = k;
	}
	to = k->bytes + k->used;
	memcpy(to, key, len);
	k->used += len;
	*left -= len;
	return to;
}

static mot_status
copy_entries(mot_session *s, mot_parcel *p)
{
	parcel_chunk **link = &p->first;
	parcel_chunk *chunk = NULL;
	size_t		key_bytes = 0;
	mot_status	status;

	for (uint64_t i = 0; i < s->entries; i++)
		if (entry_has_long_key(journal_at(s, i)))
			key_bytes += journal_at(s, i)->c;
	for (uint64_t i = 0; i < s->entries; i++)
	{
		journal_entry *to;

		if (chunk == NULL || chunk->used == PARCEL_ENTRIES)
		{
			uint64_t	n = s->entries - i < PARCEL_ENTRIES ? s->entries - i : PARCEL_ENTRIES;

			chunk = parcel_alloc(s, sizeof(parcel_chunk) + n * sizeof(journal_entry), &status);
			if (chunk == NULL)
				return status;
			chunk->next = NULL;
			chunk->used = 0;
			*link = chunk;
			link = &chunk->next;
		}
		to = &chunk->entry[chunk->used++];
		*to = *journal_at(s, i);
		if (entry_has_long_key(to))
		{
			const void *key = copy_key(s, p, entry_key(to), to->c, &key_bytes, &status);

			if (key == NULL)
				return status;
			to->b = (uint64_t) (uintptr_t) key;
		}
	}
	return MOT_OK;
}

void
mot_parcel_free(mot_session *s, mot_parcel *p)
{
	while (p->first != NULL)
	{
		parcel_chunk *chunk = p->first;

		p->first = chunk->next;
		mot_free(s->cache, chunk);
	}
	while (p->keys != NULL)
	{
		parcel_keys *keys = p->keys;

		p->keys = keys->next;
		mot_free(s->cache, keys);
	}
	mot_free(s->cache, p);
}

mot_status
mot_txn_pack(mot_session *s, mot_session *holder, mot_parcel **parcel)
{
	mot_status	status;
	mot_parcel *p;

	mot_assert(s->active && s->deferred_count == 0);
	mot_assert(holder == s || !holder->active);
	p = parcel_alloc(s, sizeof(mot_parcel), &status);
	if (p == NULL)
		return status;
	memset(p, 0, sizeof(mot_parcel));
	status = copy_entries(s, p);
	if (status == MOT_OK)
	{
		uint64_t	promises = count_promises(s);

		if (holder != s && !mot_owed_promise(holder, promises))
			status = MOT_NO_MEMORY;
		else
			p->promises = promises;
	}
	if (status != MOT_OK)
	{
		mot_parcel_free(s, p);
		return status;
	}
	p->writes = s->writes;
	*parcel = p;
	return MOT_OK;
}

void
mot_parcel_discard(mot_session *holder, mot_parcel *p)
{
	holder->credit += p->promises;
	mot_parcel_free(holder, p);
}

void
mot_txn_hand_over(mot_session *s, mot_session *holder, mot_parcel *p, uint64_t host_id)
{
	/* release: whoever finds the holder at a row reads at least this name */
	atomic_store_explicit(&holder->slot->host_id, host_id, memory_order_release);
	for (uint64_t i = 0; holder != s && i < s->entries; i++)
	{
		const journal_entry *e = journal_at(s, i);
		mot_row    *row = entry_row(e);
		uint64_t	head;

		switch (entry_kind(e))
		{
			case J_SHARE:
				mot_share_give(s, e, holder->owner);
				break;
			case J_ADD:
			case J_DROP:
				break;
			case J_LOCK:
			case J_INSERT:
			case J_INSERT_ADD:
			case J_UPDATE:
			case J_DELETE:
				head = row_head(row);
				if (head_owner(head) != s->owner)
					break;
				/* release: with the holder's name */
				atomic_store_explicit(&row->head,
									  (head & (((uint64_t) 1 << OWNER_SHIFT) - 1)) |
									  (uint64_t) holder->owner << OWNER_SHIFT,
									  memory_order_release);
				break;
		}
		MOT_STOP_POINT("hand-over");
	}
	if (holder != s)
		s->credit += p->promises;
	mot_txn_forget(s);
}

mot_status
mot_txn_unpack(mot_session *holder, mot_parcel *p)
{
	mot_assert(!holder->active && holder->entries == 0);
	for (parcel_chunk *chunk = p->first; chunk != NULL; chunk = chunk->next)
		for (uint32_t i = 0; i < chunk->used; i++)
		{
			if (!mot_journal_reserve(holder))
			{
				mot_journal_clear(holder);
				return MOT_NO_PRIVATE_MEMORY;
			}
			*mot_journal_add(holder) = chunk->entry[i];
		}
	/* (the name is as it was; what it has seen is of no interest any more) */
	mot_txn_begin(holder, MOT_READ_COMMITTED, holder->clock_seen,
				  atomic_load_explicit(&holder->slot->host_id, memory_order_relaxed));
	holder->writes = p->writes;
	holder->prepared = true;
	return MOT_OK;
}

/* ------------------------------------------------------------------- locks */

bool
mot_txn_next_lock(mot_session *s, uint64_t *pos, mot_lock *lock)
{
	while (*pos < s->entries)
	{
		const journal_entry *e = journal_at(s, (*pos)++);
		mot_row    *row = entry_row(e);
		bool		full = (row_head(row) & HEAD_FULL) != 0;

		switch (entry_kind(e))
		{
			case J_SHARE:

				/*
				 * (that of an earlier entry; or there is more of the row than
				 * a share)
				 */
				if (e->c != 0 || head_owner(row_head(row)) == s->owner)
					continue;
				lock->mode = ((const share *) (uintptr_t) e->a)->key_only ? MOT_MODE_KEY_SHARE : MOT_MODE_SHARE;
				break;
			case J_LOCK:
				lock->mode = full ? MOT_MODE_UPDATE : MOT_MODE_NO_KEY_UPDATE;
				break;
			case J_UPDATE:
				if (!(entry_flags(e) & JE_LOCKED_HERE) || !full)
					continue;
				lock->mode = MOT_MODE_UPDATE;
				break;
			case J_INSERT:
			case J_INSERT_ADD:
			case J_DELETE:
			case J_ADD:
			case J_DROP:
				continue;
		}
		lock->row = row;
		lock->table = mot_table_of_pool(mot_object_pool(s->engine->region, row));
		lock->version = mot_newest_committed(s, row);
		/* (a row of its own) */
		if (lock->version == NULL || version_is_tombstone(lock->version))
			continue;
		return true;
	}
	return false;
}
