/*-------------------------------------------------------------------------
 *
 * relief.c
 *	  Memory is short: what is owed is reclaimed first, and others are given a
 *	  moment to let go of it, before anybody fails for want of memory.
 *
 * A queue is worked off by one at a time.  Whoever does that without need (the maintenance
 * worker) leaves it to who waits for it, after the few items at hand: on a busy machine he may
 * take any time for the rest, and who has waited as long as he likes would take his snapshot
 * among keys that are still to go, and fill the gaps between them with nodes half full.
 *
 *-------------------------------------------------------------------------
 */
#include <time.h>

#include "internal.h"

/* milliseconds that who is short of memory gives others to let go of some */
#define PATIENCE_MS 50

/* and who reclaims, to come to an end or to give way, though his processor may be busy otherwise */
#define PATIENCE_RECLAIM_MS 1000

static bool
others_reclaim(mot_session *s)
{
	mot_engine *e = s->engine;
	uint32_t	n = atomic_load(&e->slots_used);

	/* relaxed: a hint */
	for (uint32_t i = 0; i < n; i++)
		if (atomic_load_explicit(&e->slot[i].reclaiming, memory_order_relaxed))
			return true;
	return false;
}

/* Others are waited for; who reclaims sees that. */
static void
nap(mot_session *s)
{
	const struct timespec ms = {0, 1000 * 1000};

	atomic_fetch_add_explicit(&s->engine->in_need, 1, memory_order_relaxed);
	nanosleep(&ms, NULL);
	atomic_fetch_sub_explicit(&s->engine->in_need, 1, memory_order_relaxed);
}

/*
 * Memory is full, and some of it is owed.  For how many milliseconds is there any
 * use in waiting for it?  None if it is our own snapshot that it is kept for.  (Who
 * reclaims is asked for last: his snapshot comes after he has said so.)
 */
static unsigned
others_hold_memory(mot_session *s)
{
	bool		kept = mot_engine_horizon(s->engine) < mot_snapshot_held(s);

	if (others_reclaim(s))
		return PATIENCE_RECLAIM_MS;
	return kept ? PATIENCE_MS : 0;
}

#define RELIEF_STEPS 64
#define IS_SHORT(used, max) ((used) > (max) / 8 * 7)

/*
 * What a large transaction has left, or what a statement needed that failed, may
 * be no more than two steps away; but of these two, one who already has a
 * snapshot can do only the first.  So they are done before the next one is taken,
 * if memory is short.  (New keys among those that are about to go would also leave
 * half-full nodes behind.)  What others are at is waited for.
 */
void
mot_relieve(mot_session *s)
{
	const mot_region *region = s->engine->region;
	bool		failed = (s->relief & RELIEF_SHORT) != 0;
	unsigned	naps = 0;
	uint64_t	left;

	s->relief = 0;
	for (int step = 0; step < RELIEF_STEPS; step++)
	{
		bool		busy;

		if (!failed && !IS_SHORT(mot_region_used(region), mot_region_max(region)))
			break;

		/*
		 * before the step, too: who is through since then has left it to the
		 * next one
		 */
		busy = others_reclaim(s);
		if (mot_reclaim_step_on(s, &left, false, false) && left > 0)
			continue;
		MOT_STOP_POINT("memory-not-found");
		if (left == 0 || !(busy || others_reclaim(s)) || naps++ == PATIENCE_RECLAIM_MS)
			break;
		nap(s);
		step--;
	}
}

/*
 * Memory is full.  Has anything been done about it, so that one should try again?
 * *tries: 0 the first time.  move_on: as in mot_session_alloc_freely.
 *
 * Somebody may be about to end a statement, or reclamation itself be interrupted
 * with a snapshot published.  We do not fail for that.
 */
bool
mot_make_room(mot_session *s, unsigned *tries, bool move_on)
{
	uint64_t	left;
	unsigned	before = others_hold_memory(s); /* as in mot_relieve */

	if (mot_reclaim_step_on(s, &left, move_on, false))
		return true;
	MOT_STOP_POINT("memory-not-found");
	/* what the last step began may be due in the next */
	if ((*tries)++ < 2)
		return true;
	if (left == 0 || (*tries > before && *tries > others_hold_memory(s)))
	{
		if (left > 0)
			s->relief |= RELIEF_SHORT;
		return false;
	}
	MOT_STOP_POINT("memory-awaited");
	nap(s);
	return true;
}

static inline void *
alloc(mot_session *s, mot_pool *pool, unsigned node, size_t size, mot_purpose purpose,
	  mot_status *status, bool move_on)
{
	unsigned	tries = 0;
	int			why = 0;
	void	   *p;

	if (mot_unlikely(s->use_reserve))
		purpose = MOT_FOR_DELETE;
	while ((p = node == MOT_ANY_NODE ? mot_alloc(s->cache, pool, size, purpose, &why) :
			mot_alloc_on(s->cache, pool, node, size, purpose, &why)) == NULL)
		if (!mot_make_room(s, &tries, move_on))
		{
			*status = mot_session_refused(s, pool, why);
			break;
		}
	return p;
}

void *
mot_session_alloc(mot_session *s, mot_pool *pool, size_t size,
				  mot_purpose purpose, mot_status *status)
{
	return alloc(s, pool, MOT_ANY_NODE, size, purpose, status, false);
}

void *
mot_session_alloc_freely(mot_session *s, mot_pool *pool, size_t size,
						 mot_purpose purpose, mot_status *status)
{
	return alloc(s, pool, MOT_ANY_NODE, size, purpose, status, true);
}

void *
mot_session_alloc_on(mot_session *s, mot_pool *pool, unsigned node, size_t size,
					 mot_purpose purpose, mot_status *status)
{
	return alloc(s, pool, node, size, purpose, status, true);
}
