/*-------------------------------------------------------------------------
 *
 * durable.c
 *	  Commits that can be seen before they are durable.
 *
 * Silo and its kin release a transaction's locks before its log record is on
 * disk (early lock release): the lock on a hot row is then held for
 * microseconds instead of a disk's flush.  Whoever reads such a row must not
 * tell anybody before the record is durable, or a crash could take back what
 * was told.  A writer need not care: its own record comes later in the log.
 * So each slot shows the commit of its own that is on its way, and a session
 * remembers the newest timestamp that it has seen (one comparison a row); at
 * its end a transaction looks for slots that show something not newer.
 *
 * A slot's word is a lower bound of the timestamp, stored before that is
 * drawn.  Nobody can have seen the commit before its word was there, and the
 * count of such words is raised before and lowered after, so who finds it
 * zero need not look further.
 *
 * What a commit deleted could be reclaimed, and then nobody would find
 * anything with a timestamp there: the horizon stays below such commits.
 *
 * Idea: Johnson et al., "Aether: a scalable approach to logging" (VLDB 2010),
 * section 3; controlled lock violation (Graefe et al., SIGMOD 2013) for the
 * readers.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

void
mot_commit_announce(mot_session *s, uint64_t position)
{
	mot_slot   *slot = s->slot;

	if (!s->announced)
		atomic_fetch_add(&s->engine->undurable, 1);
	s->announced = true;
	atomic_store_explicit(&slot->undurable_position, position, memory_order_relaxed);

	mot_undurable_bound(s);
	mot_count_shared(2);
}

/*
 * Before the timestamp is drawn: at SERIALIZABLE that is in prepare, before
 * the host knows a position; if it never announces one, the commit's end takes
 * the word back.
 */
void
mot_undurable_bound(mot_session *s)
{
	mot_slot   *slot = s->slot;

	if (atomic_load_explicit(&slot->undurable_ts, memory_order_relaxed) != 0)
		return;

	/*
	 * Relaxed both: the clock may have moved on, this is a lower bound; and
	 * drawing the timestamp releases the word, for mot_engine_horizon, which
	 * reads the clock first, and so before the versions are installed.
	 */
	atomic_store_explicit(&slot->undurable_ts,
						  atomic_load_explicit(&s->engine->clock, memory_order_relaxed) + 1,
						  memory_order_relaxed);
}

/* the transaction has ended, and nothing was announced */
void
mot_undurable_forget(mot_session *s)
{
	if (!s->announced && atomic_load_explicit(&s->slot->undurable_ts, memory_order_relaxed) != 0)
		/* release: after everything the transaction did */
		atomic_store_explicit(&s->slot->undurable_ts, 0, memory_order_release);
}

void
mot_commit_durable(mot_session *s)
{
	mot_slot   *slot = s->slot;

	if (!s->announced)
		return;
	s->announced = false;
	/* seq_cst, both: the count falls after the word has gone */
	atomic_store(&slot->undurable_ts, 0);
	atomic_fetch_sub(&s->engine->undurable, 1);
	mot_count_shared(2);
}

uint64_t
mot_session_needs(mot_session *s)
{
	mot_engine *e = s->engine;
	mot_ts		seen = s->seen;
	uint64_t	position = 0;

	s->seen = 0;

	/*
	 * seq_cst: we have seen a version only after its commit had raised the
	 * count
	 */
	if (seen == 0 || atomic_load(&e->undurable) == 0)
		return 0;
	for (uint32_t i = 0, n = atomic_load(&e->slots_used); i < n; i++)
	{
		mot_slot   *slot = &e->slot[i];
		mot_ts		ts = atomic_load(&slot->undurable_ts);
		uint64_t	p;

		if (ts == 0 || ts > seen || slot == s->slot)
			continue;
		/* stored before the timestamp, or a later commit's: more than needed */
		p = atomic_load_explicit(&slot->undurable_position, memory_order_relaxed);
		if (p > position)
			position = p;
	}
	return position;
}
