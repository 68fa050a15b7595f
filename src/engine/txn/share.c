/*-------------------------------------------------------------------------
 *
 * share.c
 *	  Row locks that several transactions can hold: FOR SHARE, FOR KEY SHARE.
 *
 * A row's head has room for one owner, and that is the writer's: his lock has
 * to cost one compare-and-swap.  Sharers are entries of a table beside it,
 * hashed by the row's address, which nobody looks into as long as there are
 * none at all.
 *
 * Four strengths exclude each other as in PostgreSQL (lock modes of tuples,
 * access/heap/README.tuplock):
 *
 *						key share	share	no key update	update
 *		key share			-		  -			-			  x
 *		share				-		  -			x			  x
 *		no key update		-		  x			x			  x
 *		update				x		  x			x			  x
 *
 * The lower two are owners of the head; HEAD_FULL in it tells "update" (DELETE,
 * change of a unique key, FOR UPDATE) from "no key update".
 *
 * Who takes the head does so first and then looks for sharers; who shares makes
 * his entry first and then looks at the head, both with a full barrier
 * between, so at least one sees the other.  The sharer does both under the
 * bucket's lock and takes his entry back if he has to wait, so an entry that
 * the owner finds there is one that counts, and not both give way.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

static share_bucket *
bucket_of(mot_engine *e, const mot_row *row)
{
	uint64_t	h = (uint64_t) (uintptr_t) row * UINT64_C(0x9e3779b97f4a7c15);

	return &e->share[h >> (64 - SHARE_BUCKET_BITS)];
}

static share *
find_own(const share_bucket *b, const mot_session *s, const mot_row *row)
{
	for (share *x = b->first; x != NULL; x = x->next)
		if (x->row == row && x->owner == s->owner)
			return x;
	return NULL;
}

/* mot_share_conflicts where rows are shared */
bool
mot_share_found(mot_session *s, mot_row *row, bool full)
{
	mot_engine *e = s->engine;
	share_bucket *b = bucket_of(e, row);
	bool		found = false;

	mot_spin_lock(&b->lock);
	for (share *x = b->first; x != NULL && !found; x = x->next)
		if (x->row == row && x->owner != s->owner && (full || !x->key_only))
		{
			found = true;
			s->holder.slot = x->owner - 1;
			/* its entry is there, so its transaction is: the name is right */
			s->holder.host_id = atomic_load_explicit(&e->slot[x->owner - 1].host_id,
													 memory_order_acquire);
			s->holder.row = row;
		}
	mot_spin_unlock(&b->lock);
	return found;
}

/* Has this transaction shared the row, and how? */
bool
mot_share_mine(mot_session *s, const mot_row *row, bool *key_only)
{
	share_bucket *b;
	const share *x;

	/* relaxed: our own entry has been counted by ourselves */
	if (atomic_load_explicit(&s->engine->shares, memory_order_relaxed) == 0)
		return false;
	b = bucket_of(s->engine, row);
	mot_spin_lock(&b->lock);
	x = find_own(b, s, row);
	if (x != NULL)
		*key_only = x->key_only;
	mot_spin_unlock(&b->lock);
	return x != NULL;
}

bool
mot_row_held(mot_session *s, const mot_row *row)
{
	bool		key_only;

	return s->active && (head_owner(row_head(row)) == s->owner || mot_share_mine(s, row, &key_only));
}

bool
mot_row_held_by(mot_engine *e, const mot_row *row, unsigned slot)
{
	share_bucket *b;
	bool		shared = false;

	if (head_owner(row_head(row)) == slot + 1)
		return true;
	/* seq_cst, as with the raise: an entry that was seen before is counted */
	if (atomic_load(&e->shares) == 0)
		return false;
	b = bucket_of(e, row);
	mot_spin_lock(&b->lock);
	for (const share *x = b->first; x != NULL && !shared; x = x->next)
		shared = x->row == row && x->owner == slot + 1;
	mot_spin_unlock(&b->lock);
	return shared;
}

/* Is the row's head owned by another transaction that excludes this sharer? */
static bool
owner_excludes(mot_session *s, mot_row *row, bool key_only)
{
	/* seq_cst: after our entry; see the head of this file */
	uint64_t	head = atomic_load(&row->head);
	unsigned	owner = head_owner(head);

	return owner != 0 && owner != s->owner && (!key_only || (head & HEAD_FULL));
}

/*
 * Share a row.  The journal has room for an entry.  MOT_BUSY: the owner is in
 * the way; mot_row_holder tells who that is.  *taken: this call made or
 * strengthened an entry.
 */
mot_status
mot_share_take(mot_session *s, mot_row *row, bool key_only, bool *taken)
{
	mot_engine *e = s->engine;
	share_bucket *b = bucket_of(e, row);
	mot_status	status = MOT_NO_MEMORY;
	share	   *mine = mot_session_alloc(s, e->pool, sizeof(share), MOT_FOR_CHANGE, &status);
	share	   *have;
	bool		excluded;
	journal_entry *j;

	*taken = false;
	if (mine == NULL)
		return status;
	mine->row = row;
	mine->owner = s->owner;
	mine->key_only = key_only;

	mot_spin_lock(&b->lock);
	have = find_own(b, s, row);
	if (have != NULL && (key_only || !have->key_only))
	{
		mot_spin_unlock(&b->lock);
		mot_free(s->cache, mine);
		return MOT_OK;
	}
	/* seq_cst, with the look at the head behind it */
	atomic_fetch_add(&e->shares, 1);
	if (have != NULL)
		have->key_only = false;
	else
	{
		mine->next = b->first;
		b->first = mine;
	}
	excluded = owner_excludes(s, row, key_only);
	if (excluded)
	{
		if (have != NULL)
			have->key_only = true;
		else
			b->first = mine->next;
	}
	if (excluded || have != NULL)
		atomic_fetch_sub(&e->shares, 1);
	mot_spin_unlock(&b->lock);

	if (excluded || have != NULL)
		mot_free(s->cache, mine);
	if (excluded)
		return MOT_BUSY;
	j = mot_journal_add(s);
	j->what = (uint64_t) J_SHARE << 48 | (uint64_t) (uintptr_t) row;
	j->a = (uint64_t) (uintptr_t) (have != NULL ? have : mine);
	j->b = 0;
	j->c = have != NULL;		/* strengthened only */
	*taken = true;
	return MOT_OK;
}

/* Undo what a journal entry says, or (at the end of the transaction) let go. */
void
mot_share_drop(mot_session *s, const journal_entry *j, bool undo)
{
	mot_engine *e = s->engine;
	share	   *x = (share *) (uintptr_t) j->a;
	share_bucket *b = bucket_of(e, entry_row(j));

	if (j->c != 0 && !undo)
		return;
	mot_spin_lock(&b->lock);
	if (j->c != 0)
		x->key_only = true;
	else
		for (share **p = &b->first; *p != NULL; p = &(*p)->next)
			if (*p == x)
			{
				*p = x->next;
				break;
			}
	mot_spin_unlock(&b->lock);
	if (j->c != 0)
		return;
	/* seq_cst: as with the raise */
	atomic_fetch_sub(&e->shares, 1);
	mot_free(s->cache, x);
}

/* The share is another slot's from now on. */
void
mot_share_give(mot_session *s, const journal_entry *j, unsigned owner)
{
	share	   *x = (share *) (uintptr_t) j->a;
	share_bucket *b = bucket_of(s->engine, entry_row(j));

	mot_spin_lock(&b->lock);
	x->owner = owner;
	mot_spin_unlock(&b->lock);
}
