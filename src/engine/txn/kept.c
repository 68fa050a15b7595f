/*-------------------------------------------------------------------------
 *
 * kept.c
 *	  SERIALIZABLE: what a prepared transaction has read stays as it is.  See mot_parcel.h.
 *
 * A transaction T that is prepared gets its number at its end, which may be in a week;
 * and by then it cannot fail any more.  So what it has read has to stand until
 * then: it is validated when it is prepared, and from then on nobody who is validated
 * himself commits a change of it.  The host has such a one wait until T is decided,
 * before he draws.  (Readers do not wait: they come before T.)
 *
 * What T has read is known by the notes that each slot has for others who precede
 * (precede.c): those in its holder's slot say KEPT, a place beyond all, until T has
 * drawn its number c, and then c.  They are coarse, so that some wait who need not; and they keep
 * no memory.  After a restart what T has read is not known any more: it is everything.
 *
 * Let W be who changes what T has read.  T notes, counts itself, and reads the clock; W
 * draws from the clock, and reads the count; all in the one order of sequentially
 * consistent operations.
 *
 *	- W drew before T read the clock: T finds W DRAWING, or with its number, waits for
 *	  its judgement, and fails if what it has read was changed.
 *	- W drew later: W finds the count, and the notes, and fails.  (It has waited before,
 *	  so this is for who notes between W's waiting and its drawing.)
 *	- W is prepared as well: it does not look again when it draws.  So it says so
 *	  (in_doubt), and counts, before it looks whether somebody keeps what it changes; T does the
 *	  same before it looks at the rows that it has read.  At least one of the two finds the
 *	  other, and fails; so does a T that comes later.
 *
 * When T has drawn c, somebody with a smaller number may not have looked yet; so the notes
 * say KEPT until all those have been judged.
 *
 * Then T is as one that was validated with c: all that it has read is so just before c, and
 * everything else is as validate.c and precede.c say.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

#define KEPT MOT_TS_NONE

static mot_slot *
keeper_of(mot_session *s, const mot_slot *but)
{
	mot_engine *e = s->engine;
	uint32_t	n;
	note_set	w;

	/* seq_cst: after our draw, if there was one */
	if (mot_likely(atomic_load(&e->keepers) == 0))
		return NULL;
	(void) mot_written(s, &w);
	if ((w.rows[0] | w.ranges) == 0)
		return NULL;
	n = atomic_load(&e->slots_used);
	for (uint32_t i = 0; i < n; i++)
	{
		mot_slot   *slot = &e->slot[i];

		/* acquire: as of the notes */
		if (slot != but && atomic_load_explicit(&slot->in_doubt, memory_order_acquire) &&
			mot_has_read(slot, KEPT, &w))
			return slot;
	}
	return NULL;
}

uint64_t
mot_txn_meets_kept(mot_session *s)
{
	mot_slot   *slot = keeper_of(s, NULL);

	/* acquire: as of its notes */
	return slot == NULL ? 0 : atomic_load_explicit(&slot->host_id, memory_order_acquire);
}

/* what the notes say is there */
static void
count_in(mot_slot *slot, mot_engine *e)
{
	/* release: with the notes */
	atomic_store_explicit(&slot->in_doubt, true, memory_order_release);
	/* seq_cst: see the head of this file */
	atomic_fetch_add(&e->keepers, 1);
}

mot_status
mot_txn_keep_reads(mot_session *s, mot_session *holder, uint64_t host_id)
{
	mot_engine *e = s->engine;
	mot_status	status = MOT_CONFLICT_KEPT;

	mot_assert(s->active && s->validate && s->deferred_count == 0 && holder != s);
	/* release: who finds the notes reads at least this name */
	atomic_store_explicit(&holder->slot->host_id, host_id, memory_order_release);
	/* release: before the count; our rows are the holder's a little later */
	atomic_store_explicit(&s->slot->in_doubt, true, memory_order_release);
	mot_read_note(s, holder->slot, KEPT);
	count_in(holder->slot, e);
	MOT_STOP_POINT("kept-noted");
	/* seq_cst: see the head of this file */
	(void) atomic_load(&e->clock);
	if (keeper_of(s, holder->slot) != NULL)
		return status;
	if (s->out_of_memory)
		return MOT_NO_PRIVATE_MEMORY;
	s->keeps = true;
	s->met_in_doubt = false;
	status = mot_read_validate(s, MOT_TS_NONE);
	s->keeps = false;
	return status == MOT_OK && s->met_in_doubt ? MOT_CONFLICT_READ : status;
}

void
mot_reads_keep_all(mot_session *holder, uint64_t host_id)
{
	mot_slot   *slot = holder->slot;

	/* release: as above */
	atomic_store_explicit(&slot->host_id, host_id, memory_order_release);
	/* relaxed: counting in releases it */
	atomic_store_explicit(&slot->read_any, KEPT, memory_order_relaxed);
	count_in(slot, holder->engine);
}

static void
let_go_of(_Atomic uint64_t *at, mot_ts number)
{
	/*
	 * relaxed: nobody else writes it; and who reads the old one takes it for
	 * more
	 */
	if (atomic_load_explicit(at, memory_order_relaxed) == KEPT)
		atomic_store_explicit(at, number, memory_order_relaxed);
}

void
mot_reads_let_go(mot_session *holder, mot_ts number)
{
	mot_slot   *slot = holder->slot;

	if (number == 0)
		number = mot_engine_clock(holder->engine);
	else
		mot_judged_await(holder, number);
	let_go_of(&slot->read_any, number);
	for (unsigned i = 0; i < 1 << READ_NOTE_BITS; i++)
	{
		for (unsigned hash = 0; hash < READ_NOTE_HASHES; hash++)
			let_go_of(&slot->read_row[hash][i], number);
		let_go_of(&slot->read_range[i], number);
	}
	/* release: the notes are a number's again */
	atomic_store_explicit(&slot->in_doubt, false, memory_order_release);
	atomic_fetch_sub(&holder->engine->keepers, 1);
}
