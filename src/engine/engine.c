/*-------------------------------------------------------------------------
 *
 * engine.c
 *	  The engine as a whole: creation, sessions, snapshots, reports.
 *
 * A session publishes an old reading of the clock before it reads the clock
 * for its snapshot, and then that: reclamation reads the clock first and the
 * published snapshots after, so either it finds ours or its horizon is not
 * newer than what we read.  Both need the one total order of sequentially
 * consistent operations.
 *
 * A session may publish something older than what it has published if somebody
 * else's publication keeps the horizon below that; see mot_snapshot_lower.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "internal.h"

#ifdef MOT_STOP_POINTS
void		(*mot_stop_point_handler) (const char *name);
#endif

#ifdef MOT_COUNT_SHARED
_Thread_local uint64_t mot_shared_writes;
#endif

static void
engine_init(mot_engine *e, mot_region *region, unsigned slots)
{
	e->region = region;
	e->slots = slots;
	atomic_store(&e->clock, TS_FIRST);
	atomic_store(&e->horizon, TS_FIRST);
	atomic_store(&e->kept, MOT_TS_NONE);
	atomic_store(&e->next_serial, 1);
	mot_spin_init(&e->directory_lock);
	mot_spin_init(&e->dropped_lock);
	mot_spin_init(&e->quota_lock);
	for (int i = 0; i < 1 << SHARE_BUCKET_BITS; i++)
		mot_spin_init(&e->share[i].lock);
	/* the region is empty: there is room */
	e->pool = mot_pool_create(region, MOT_POOL_PLAIN, NULL);
}

mot_engine *
mot_engine_create(size_t max_memory, unsigned slots, unsigned flags,
				  char *err, size_t errlen)
{
	mot_region *region;
	mot_engine *e;
	unsigned	rflags = MOT_REGION_POPULATE;

	if (flags & MOT_ENGINE_PRIVATE)
		rflags |= MOT_REGION_PRIVATE;
	if (flags & MOT_ENGINE_HUGE_TRY)
		rflags |= MOT_REGION_HUGE_TRY;
	if (flags & MOT_ENGINE_HUGE_ON)
		rflags |= MOT_REGION_HUGE_ON;
	region = mot_region_create(max_memory, slots,
							   sizeof(mot_engine) + slots * sizeof(mot_slot),
							   rflags, err, errlen);
	if (region == NULL)
		return NULL;
	e = mot_region_header(region);
	engine_init(e, region, slots);
	return e;
}

size_t
mot_engine_huge_pages(size_t max_memory)
{
	return mot_region_chunk_bytes(max_memory) / MOT_HUGE_PAGE_SIZE;
}

bool
mot_engine_huge(const mot_engine *e)
{
	return mot_region_huge(e->region);
}

void
mot_engine_destroy(mot_engine *e)
{
	mot_region_destroy(e->region);
}

void
mot_engine_reset(mot_engine *e)
{
	mot_region *region = e->region;
	unsigned	slots = e->slots;

	mot_region_reset(region);
	e = mot_region_header(region);
	memset(e, 0, sizeof(mot_engine) + slots * sizeof(mot_slot));
	engine_init(e, region, slots);
}

mot_ts
mot_engine_clock(const mot_engine *e)
{
	return atomic_load_explicit(&((mot_engine *) e)->clock, memory_order_acquire);
}

unsigned
mot_engine_dropped(const mot_engine *e)
{
	return atomic_load(&((mot_engine *) e)->dropped_count);
}

/* how often the slots are looked at again because of mot_snapshot_lower */
#define HORIZON_TRIES 4

mot_ts
mot_engine_horizon(mot_engine *e)
{
	mot_ts		unlinked;

	return mot_engine_horizons(e, &unlinked);
}

/* *unlinked: who holds a snapshot may have moved on since */
mot_ts
mot_engine_horizons(mot_engine *e, mot_ts *unlinked)
{
	/* seq_cst throughout: see the head of this file */
	mot_ts		oldest = atomic_load(&e->clock);
	uint32_t	n = atomic_load(&e->slots_used);
	uint64_t	lowered;
	mot_ts		known;

	*unlinked = oldest;
	for (int tries = 0;; tries++)
	{
		lowered = atomic_load(&e->lowered);
		known = atomic_load(&e->kept);
		oldest = known < oldest ? known : oldest;
		for (uint32_t i = 0; i < n; i++)
		{
			mot_ts		ts = atomic_load(&e->slot[i].published);
			mot_ts		moved_on = atomic_load(&e->slot[i].moved_on);
			mot_ts		undurable = atomic_load(&e->slot[i].undurable_ts);

			/* a slot never opened has zero bytes there; open marks it */
			if (ts < oldest && atomic_load_explicit(&e->slot[i].open, memory_order_relaxed))
				oldest = ts;
			if (ts < *unlinked && moved_on < *unlinked &&
				atomic_load_explicit(&e->slot[i].open, memory_order_relaxed))
				*unlinked = ts > moved_on ? ts : moved_on;
			/* what it deleted must still be found: see durable.c */
			if (undurable != 0 && undurable - 1 < oldest)
				oldest = undurable - 1;
		}
		if (mot_likely(atomic_load(&e->lowered) == lowered))
			break;
		/* relaxed: what was one stays one */
		if (tries == HORIZON_TRIES)
			return atomic_load_explicit(&e->horizon, memory_order_relaxed);
	}
	known = atomic_load_explicit(&e->horizon, memory_order_relaxed);
	while (known < oldest &&
		   !atomic_compare_exchange_weak_explicit(&e->horizon, &known, oldest,
												  memory_order_relaxed,
												  memory_order_relaxed))
		;
	return oldest;
}

bool		(*mot_rests_hook) (unsigned slot) = NULL;
bool		(*mot_fence_hook) (void) = NULL;

/*
 * Relaxed, all: what a session wrote before the fence is seen.  Whether it rests is
 * looked at first (acquire, and what says that something leads from it comes before,
 * release): it may have gone on and come to rest again just now, with a cursor whose
 * place it found before the fence.
 */
static bool
slot_rests(const mot_slot *slot, unsigned i)
{
	if (!atomic_load_explicit(&((mot_slot *) slot)->may_rest, memory_order_relaxed) ||
		!mot_rests_hook(i))
		return false;
	mot_fence(memory_order_acquire);
	return !atomic_load_explicit(&((mot_slot *) slot)->has_cursors, memory_order_relaxed) &&
		!atomic_load_explicit(&((mot_slot *) slot)->validates, memory_order_relaxed);
}

/*
 * "upto", or the oldest moment at which somebody moved on last.  *rest: sessions that
 * rest are among them; or, if "rested", are none of them.
 */
static mot_ts
moved_on_horizon(mot_engine *e, mot_ts upto, bool rested, bool *rest)
{
	uint32_t	n = atomic_load(&e->slots_used);

	*rest = false;
	/* seq_cst: see the head of this file */
	for (uint32_t i = 0; i < n; i++)
	{
		mot_slot   *slot = &e->slot[i];
		mot_ts		ts = atomic_load(&slot->published);
		mot_ts		moved_on = atomic_load(&slot->moved_on);

		if (!atomic_load_explicit(&slot->open, memory_order_relaxed) || ts >= upto || moved_on >= upto)
			continue;
		if (slot_rests(slot, i))
		{
			*rest = true;
			if (rested)
				continue;
		}
		upto = ts > moved_on ? ts : moved_on;
	}
	return upto;
}

/*
 * mot_engine_horizons has told "unlinked": how far is it, as who rests leads nowhere?
 *
 * The clock is read before the fence, and what was unlinked by then was so before
 * that.  Who is found at rest after the fence did not go on before it, or has come
 * to rest again: its looks at anything are over (a system call lies between), or
 * will come after the fence.
 */
mot_ts
mot_engine_rest_horizon(mot_engine *e, mot_ts unlinked)
{
	mot_ts		now = atomic_load(&e->clock);
	bool		rest;

	if (unlinked >= now || mot_rests_hook == NULL)
		return unlinked;
	(void) moved_on_horizon(e, now, false, &rest);
	if (!rest || !mot_fence_hook())
		return unlinked;
	now = moved_on_horizon(e, now, true, &rest);
	return now > unlinked ? now : unlinked;
}

/* ---------------------------------------------------------------- sessions */

mot_status
mot_session_open(mot_engine *e, unsigned slot, mot_session **session)
{
	mot_session *s;
	uint32_t	used;

	mot_assert(slot < e->slots);
	s = calloc(1, sizeof(mot_session));
	if (s == NULL)
		return MOT_NO_PRIVATE_MEMORY;
	s->engine = e;
	s->slot = &e->slot[slot];
	s->cache = mot_region_cache(e->region, slot);
	s->owner = s->self = slot + 1;
	mot_session_settle(s);
	s->tree.cache = s->cache;
	s->tree.region = e->region;
	s->tree.retire = mot_owed_retire;
	s->tree.retire_arg = s;
	s->tree_exclusive = s->tree;
	s->tree_exclusive.exclusive = true;
	mot_read_init(s);
	memset(s->hint_trust, HINT_TRUST_MAX, sizeof(s->hint_trust));
	s->clock_seen = mot_engine_clock(e);

	atomic_store(&s->slot->may_rest, false);
	atomic_store(&s->slot->has_cursors, false);
	atomic_store(&s->slot->validates, false);
	atomic_store(&s->slot->places, false);
	atomic_store(&s->slot->published, MOT_TS_NONE);
	atomic_store(&s->slot->commit_state, COMMIT_NONE);
	atomic_store(&s->slot->serial, 0);
	atomic_store(&s->slot->open, 1);
	used = atomic_load(&e->slots_used);
	while (used < slot + 1 &&
		   !atomic_compare_exchange_weak(&e->slots_used, &used, slot + 1))
		;
	*session = s;
	return MOT_OK;
}

/* what a session that closes leaves in its queue */
#define WORTH_TELLING 64

void
mot_session_close(mot_session *s)
{
	if (s->active)
		mot_txn_abort(s);
	mot_commit_durable(s);

	/*
	 * Whoever reclaims meanwhile may find our snapshot in its way, and would
	 * not hear of the rest.
	 */
	if (mot_reclaim(s, 0) > WORTH_TELLING)
		mot_owed_much(s);

	/*
	 * what is still owed stays in the slot's queue, promises unused are taken
	 * back
	 */
	mot_spin_lock(&s->slot->owed.lock);
	s->slot->owed.promised -= s->credit;
	mot_spin_unlock(&s->slot->owed.lock);
	mot_serial_end(s);
	atomic_store_explicit(&s->slot->published, MOT_TS_NONE, memory_order_release);
	mot_journal_free(s);
	mot_map_free(&s->walked);
	mot_read_free(s);

	/*
	 * Who comes to the slot next may be somebody else, or nobody, while
	 * memory is full.
	 */
	mot_cache_flush(s->cache);
	free(s);
}

/* apart, so that nothing has to be saved on the usual way */
static __attribute__((noinline))
mot_ts
relieve_and_take(mot_session *s)
{
	mot_relieve(s);
	return mot_snapshot_take(s);
}

mot_ts
mot_snapshot_take(mot_session *s)
{
	mot_engine *e = s->engine;
	_Atomic uint64_t *published = &s->slot->published;
	mot_ts		now;

	if (atomic_load_explicit(published, memory_order_relaxed) != MOT_TS_NONE)
		return atomic_load(&e->clock);
	if (mot_unlikely(s->relief != 0))
		return relieve_and_take(s);

	/*
	 * Exchange: a full barrier between publishing and reading the clock. What
	 * is published first need only be some value that the clock has had; the
	 * last one we know spares waiting for the clock's cache line before the
	 * barrier, and what comes after does not wait.
	 */
	(void) atomic_exchange(published, s->clock_seen);
	MOT_STOP_POINT("snapshot-published");
	now = atomic_load(&e->clock);
	s->clock_seen = now;
	/* release: what we did under earlier snapshots comes before this one */
	atomic_store_explicit(published, now, memory_order_release);
	return now;
}

/*
 * Who draws says so before he adds to the clock, which our caller has read; who
 * is through writes his number down before he says that.  (Of a session that has
 * committed again we know too little.)
 *
 * One of those who wait may have a place before its number, and somebody whom we
 * see come after it (precede.c).  That is known once they have been judged; who has
 * not been then, finds us when he looks.
 */
bool
mot_snapshot_only_waits(mot_session *s, const mot_beyond *without, mot_ts from)
{
	uint32_t	n = atomic_load(&s->engine->slots_used);

	for (uint32_t i = 0; i < n; i++)
	{
		mot_slot   *slot = &s->engine->slot[i];
		unsigned	spins = 0;

		for (;;)
		{
			/* acquire: as in skip_uncommitted (row.c) */
			uint64_t	state = atomic_load_explicit(&slot->commit_state, memory_order_acquire);

			/* acquire: what a judgement has noted is looked at after it */
			bool		judging = atomic_load_explicit(&slot->judging, memory_order_acquire);

			if (slot == s->slot || state == COMMIT_NONE ||
				(state != COMMIT_DRAWING &&
				 (state < from || state > without->upto || (!mot_beyond_sees(without, state) && !judging))))
				break;
			if (spins == INSTALL_SPINS)
				return false;
			mot_backoff(&spins);
		}
		/* relaxed: the acquire above keeps it behind that */
		if (atomic_load_explicit(&slot->last_commit, memory_order_relaxed) >= from)
			return false;
	}
	/* relaxed: as above */
	return atomic_load_explicit(&s->engine->newest_preceding, memory_order_relaxed) < from;
}

/* of cursors that an error has left open nothing is protected any more */
static __attribute__((noinline))
void
forget_cursors(mot_session *s)
{
	s->open_cursors = 0;
	s->cursor_generation++;
	mot_map_clear(&s->walked);
	atomic_store_explicit(&s->slot->has_cursors, false, memory_order_relaxed);
}

void
mot_snapshot_hold(mot_session *s, mot_ts oldest)
{
	if (mot_unlikely(s->open_cursors != 0) && oldest == MOT_TS_NONE)
		forget_cursors(s);
	/* release: all our reads of the memory let go come before */
	atomic_store_explicit(&s->slot->published, oldest, memory_order_release);
}

/*
 * Nothing that was unlinked before now is waited for any more on our account (see
 * reclaim.c), unless we have a cursor in an index, or keep what SERIALIZABLE has
 * read.
 *
 * Acquire, by way of seq_cst: who reads a clock value finds unlinked what was so
 * when it was that (mot_owed_stamp).  From then on that remains true, whatever
 * the session does.
 */
void
mot_session_move_on(mot_session *s)
{
	mot_ts		now;

	if (mot_snapshot_held(s) == MOT_TS_NONE || s->open_cursors != 0 || s->validate)
		return;
	now = atomic_load(&s->engine->clock);
	s->clock_seen = now;
	/* release: all our reads of what we leave behind come before */
	atomic_store_explicit(&s->slot->moved_on, now, memory_order_release);
}

void
mot_session_may_rest(mot_session *s)
{
	atomic_store(&s->slot->may_rest, true);
}

/*
 * Reclamation may have passed our slot before this, and come to that of the
 * commit which has kept the memory so far after it has ended.  Then it sees
 * that somebody has done this meanwhile, and looks at all slots again.
 * (seq_cst: see the head of this file.)
 */
void
mot_snapshot_lower(mot_session *s, mot_ts oldest)
{
	if (mot_snapshot_held(s) <= oldest)
		return;
	atomic_store(&s->slot->published, oldest);
	atomic_fetch_add(&s->engine->lowered, 1);
}

/*
 * (as above: the caller's own publication goes after this, or his draw, and who reads the clock
 * behind that finds what is kept)
 */
void
mot_engine_keep(mot_engine *e, mot_ts oldest)
{
	atomic_store(&e->kept, oldest);
	atomic_fetch_add(&e->lowered, 1);
}

mot_ts
mot_engine_kept(const mot_engine *e)
{
	return atomic_load_explicit(&((mot_engine *) e)->kept, memory_order_acquire);
}

void
mot_session_follow(mot_session *s, unsigned slot, mot_ts snapshot)
{
	s->self = slot + 1;
	mot_snapshot_lower(s, snapshot);
}

mot_ts
mot_snapshot_held(const mot_session *s)
{
	return atomic_load_explicit(&s->slot->published, memory_order_relaxed);
}

mot_holder
mot_session_holder(const mot_session *s)
{
	return s->holder;
}

/* ----------------------------------------------------------------- reports */

const char *
mot_status_name(mot_status status)
{
	static const char *const name[] = {
		"ok", "not found", "and another", "no memory", "table full", "no private memory",
		"duplicate", "busy", "changed", "deleted", "self changed",
		"conflict: row changed", "conflict: row deleted",
		"conflict: read changed", "conflict: phantom", "conflict: kept", "too large"
	};

	return (unsigned) status < sizeof(name) / sizeof(name[0]) ? name[status] : "unknown";
}

void
mot_memory_report_get(mot_engine *e, mot_memory_report *r)
{
	mot_memory_stat stat;
	uint64_t	objects;

	memset(r, 0, sizeof(*r));
	r->nodes = mot_region_nodes(e->region);
	r->max_bytes = mot_region_max(e->region);
	r->used_bytes = mot_region_used(e->region);
	mot_memory_stats(e->region, r->nodes, &stat);	/* totals */
	r->system_bytes = stat.system_bytes;
	r->descriptor_bytes = stat.descriptor_bytes;
	mot_pool_stats(e->pool, &r->engine_bytes, &objects);
	r->retired_objects = mot_owed_items(e);
	r->clock = mot_engine_clock(e);
	r->horizon = mot_engine_horizon(e);
}

uint64_t
mot_owed_items(mot_engine *e)
{
	uint32_t	n = atomic_load(&e->slots_used);
	uint64_t	items = 0;

	/* relaxed: a figure */
	for (uint32_t i = 0; i < n; i++)
		items += atomic_load_explicit(&e->slot[i].owed.count, memory_order_relaxed);
	return items;
}

uint64_t
mot_object_bytes(mot_engine *e)
{
	uint64_t	bytes = mot_region_object_bytes(e->region);

	for (unsigned i = 0; i < e->slots; i++)
	{
		owed_queue *q = &e->slot[i].owed;
		const owed_block *any = NULL;
		uint64_t	blocks = 0;

		mot_spin_lock(&q->lock);
		for (int l = 0; l < 2; l++)
			for (owed_block *b = q->list[l].head; b != NULL; b = b->next)
			{
				blocks++;
				any = b;
			}
		if (blocks > 0)
			bytes -= blocks * mot_usable_size(e->region, any);
		mot_spin_unlock(&q->lock);
		bytes -= mot_cache_bytes(mot_region_cache(e->region, i));
	}
	return bytes;
}

void
mot_node_report_get(mot_engine *e, unsigned node, mot_node_report *r)
{
	mot_memory_stat stat;

	mot_memory_stats(e->region, node, &stat);
	r->chunk_bytes = stat.chunk_bytes;
	r->page_bytes = stat.page_bytes;
}

unsigned
mot_slots_used(mot_engine *e)
{
	return atomic_load(&e->slots_used);
}

mot_ts
mot_slot_snapshot(mot_engine *e, unsigned slot)
{
	/* relaxed: statistics.  (A slot never opened has zero bytes.) */
	if (!atomic_load_explicit(&e->slot[slot].open, memory_order_relaxed))
		return MOT_TS_NONE;
	return atomic_load_explicit(&e->slot[slot].published, memory_order_relaxed);
}

void
mot_count_event(mot_session *s, mot_event event)
{
	/* relaxed: only we write it, statistics read it */
	atomic_fetch_add_explicit(&s->slot->events[event], 1, memory_order_relaxed);
}

void
mot_txn_counts_get(mot_engine *e, mot_txn_counts *c)
{
	uint32_t	n = atomic_load(&e->slots_used);

	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < n; i++)
	{
		mot_slot   *slot = &e->slot[i];

		/* relaxed: statistics */
		c->commits += atomic_load_explicit(&slot->commits, memory_order_relaxed);
		c->aborts += atomic_load_explicit(&slot->aborts, memory_order_relaxed);
		for (int event = 0; event < MOT_EVENTS; event++)
			c->events[event] += atomic_load_explicit(&slot->events[event], memory_order_relaxed);
	}
}
