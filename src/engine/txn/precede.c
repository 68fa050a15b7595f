/*-------------------------------------------------------------------------
 *
 * precede.c
 *	  SERIALIZABLE: a transaction whose reads do not stand any more, but which
 *	  comes before those who have changed what it read.
 *
 * Validation (validate.c) asks whether a transaction T can have the place in
 * the serial order that its number gives it.  If it cannot, it may have an earlier one:
 * let p be the first commit, after T's snapshot s, that changed anything T has read.
 * All that T has read is still so just before p.  Its writes are seen from its
 * number c on, as ever, and nobody else has changed those rows since s.  So what speaks against the
 * place just before p is only somebody who comes after it, and has read what
 * T writes without T's having written it.  That is what is asked here; T
 * commits if there is nobody, and fails otherwise.
 *
 * Everybody's place, in numbers: of who is validated, his number; of
 * who only reads, just after his snapshot; of who precedes, just before his p.
 * All dependencies between two transactions point to a greater place:
 *
 *	- From T to X, which has changed what T read (rw), or seen or replaced what T wrote: the
 *	  first has a number of p or more, the second one beyond c.  If X itself
 *	  precedes, its place is before its number; so T fails if anybody who is not in its
 *	  snapshot and has a number below c has preceded.
 *	- From X to T, because T has seen or replaced what X wrote: X's number is s or less.
 *	  (To find a key free, or taken, is to see what was done last with it, be it
 *	  behind the snapshot.  Who may have done so does not precede, nor does who
 *	  went back to a savepoint: it may have been told of such things by an error
 *	  (that its own change comes too late tells it of nothing but its failure).
 *	  Nor does who has looked at rows as they are now, for a foreign key, and
 *	  found them changed since s.)
 *	- From X to T, because X has read what T replaces (rw), or a range where T puts something:
 *	  X has a place before p, or T fails.  X is one of these:
 *		- Validated, with a number beyond c: it has seen what T wrote.
 *		- Validated, with a number below c: each session notes with which number
 *		  it last read a row, or a range of a table (by hashes), before it
 *		  has been judged.  T waits for the judgement of all with smaller
 *		  numbers, then looks.
 *		- One that only reads: it notes so, too, with its snapshot, when
 *		  it ends.  While it runs it shows its snapshot; nobody knows what it is
 *		  going to read, so T fails if that is between p and c.  (One
 *		  that is going to be validated is not known from it before its draw.)
 *		- One that precedes: its number is s or less, see above.
 *
 * So nobody fails because somebody precedes who would not have failed the
 * validation by itself.  And who precedes has run beside everybody whom it
 * passes, so a transaction that began after another had ended comes after it.
 *
 * Who shows a snapshot says that it is about to take one before it reads the clock,
 * and T looks after it has drawn from the clock, both in the one order of
 * sequentially consistent operations: T finds it, or its snapshot includes T.
 * (A host may leave T out of that while T waits, but not if T precedes; that it asks
 * when T has been judged, see mot_snapshot_only_waits.)
 *
 * A transaction that has read nothing new is judged as before; it pays
 * for the notes: a store for each row it has read, into memory of its own.
 *
 * What depends on tables of other kinds does not know of such places, so the
 * host says who may precede: who has touched nothing else (mot_txn_may_precede).
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/* in mot_slot.serial: a snapshot is being taken, of now or later */
#define SERIAL_TAKING UINT64_MAX

/* who has read more rows has read all */
#define MOST_NOTED 256

void
mot_serial_begin(mot_session *s)
{
	/* seq_cst: before the clock is read; see the head of this file */
	atomic_store(&s->slot->serial, SERIAL_TAKING);
	MOT_STOP_POINT("serial-taking");
}

void
mot_serial_begun(mot_session *s, mot_ts snapshot)
{
	MOT_STOP_POINT("serial-taken");
	/* release: what was noted of earlier transactions comes before */
	atomic_store_explicit(&s->slot->serial, snapshot, memory_order_release);
}

void
mot_serial_end(mot_session *s)
{
	/* release: what was noted of this transaction comes before */
	atomic_store_explicit(&s->slot->serial, 0, memory_order_release);
}

void
mot_txn_may_precede(mot_session *s)
{
	s->may_precede = true;
}

/* ------------------------------------------------------------------- notes */

/*
 * Where a row is noted, by several hashes: who has read the row has noted it in all these places
 * (Bloom, 1970)
 */
static inline unsigned
row_note(const mot_row *row, unsigned hash)
{
	return (unsigned) (((uint64_t) (uintptr_t) row >> 4) * UINT64_C(0x9E3779B97F4A7C15) >>
					   (64 - READ_NOTE_BITS * (hash + 1))) & ((1 << READ_NOTE_BITS) - 1);
}

static inline void
note(_Atomic uint64_t *at, mot_ts place)
{
	/*
	 * relaxed: what tells that we have been judged, or have ended, releases
	 * it
	 */
	atomic_store_explicit(at, place, memory_order_relaxed);
}

/*
 * All that the transaction has read was read as of "place": its number, or its snapshot.  slot: its
 * own, or its holder's
 */
void
mot_read_note(mot_session *s, mot_slot *slot, mot_ts place)
{
	const read_item *read = s->reads;
	const read_item *end = read + s->read_count;

	if (mot_unlikely(s->saw_newest || s->out_of_memory || s->read_count > MOST_NOTED))
	{
		note(&slot->read_any, place);
		return;
	}
	for (; read < end; read++)
		for (unsigned hash = 0; hash < READ_NOTE_HASHES; hash++)
			note(&slot->read_row[hash][row_note(read->row, hash)], place);
	for (uint64_t tables = s->ranges_of; tables != 0; tables &= tables - 1)
		note(&slot->read_range[__builtin_ctzll(tables)], place);
}

/* ----------------------------------------------------------------- judgement */

/*
 * A table that was made, emptied or stored anew after the snapshot, which finds
 * it empty: that is known from whoever did it.  (If that was no commit of the engine's, but comes
 * after one that changed what was read, the clock has moved as well.)
 */
static inline bool
is_newer(const mot_session *s, const mot_table *table)
{
	return atomic_load(&((mot_table *) table)->settled_at) > s->snapshot;
}

static bool
has_met_newer_table(const mot_session *s)
{
	bool		met = false;

	for (uint64_t i = 0; i < s->range_count; i++)
		met |= is_newer(s, s->ranges[i].index->table);
	for (uint64_t i = 0; i < s->whole_count; i++)
		met |= is_newer(s, s->whole[i]->table);
	for (uint64_t i = 0; i < s->pool_count; i++)
		met |= is_newer(s, s->pools[i].table);
	return met;
}

/* What does it write?  False: into a newer table, too. */
bool
mot_written(const mot_session *s, note_set *w)
{
	bool		newer = false;

	memset(w, 0, sizeof(*w));
	for (uint64_t i = 0; i < s->entries; i++)
	{
		const journal_entry *e = journal_at(s, i);
		const mot_table *table = NULL;

		switch (entry_kind(e))
		{
			case J_INSERT:
				table = (const mot_table *) (uintptr_t) e->a;
				w->ranges |= table_bit(table);
				break;
			case J_INSERT_ADD:
			case J_ADD:
				table = ((const mot_index *) (uintptr_t) e->a)->table;
				w->ranges |= table_bit(table);
				break;
			case J_UPDATE:
			case J_DELETE:
				table = (const mot_table *) (uintptr_t) e->a;
				for (unsigned hash = 0; hash < READ_NOTE_HASHES; hash++)
					w->rows[hash] |= UINT64_C(1) << row_note(entry_row(e), hash);
				break;
			case J_LOCK:
			case J_SHARE:
			case J_DROP:
				break;
		}
		newer |= table != NULL && is_newer(s, table);
	}
	return !newer;
}

/* wait until everybody with a number smaller than ours has been judged */
void
mot_judged_await(mot_session *s, mot_ts number)
{
	uint32_t	n = atomic_load(&s->engine->slots_used);

	for (uint32_t i = 0; i < n; i++)
	{
		mot_slot   *slot = &s->engine->slot[i];
		unsigned	spins = 0;

		while (slot != s->slot)
		{
			/*
			 * As in version_before (validate.c): after our own draw, so who
			 * is NONE now draws a greater number.  Acquire, both: what was
			 * noted is looked at after it.
			 */
			uint64_t	state = atomic_load_explicit(&slot->commit_state, memory_order_acquire);
			bool		judging = atomic_load_explicit(&slot->judging, memory_order_acquire);

			if (state == COMMIT_NONE || state > number ||
				(state != COMMIT_DRAWING && !judging))
				break;
			mot_backoff(&spins);
		}
	}
}

static bool
is_noted(_Atomic uint64_t *notes, uint64_t bits, mot_ts first)
{
	/* relaxed: see note() */
	for (; bits != 0; bits &= bits - 1)
		if (atomic_load_explicit(&notes[__builtin_ctzll(bits)], memory_order_relaxed) >= first)
			return true;
	return false;
}

/*
 * Has a transaction of this session that has been judged, or has ended, and comes at or after
 * "first" read what is written?
 */
bool
mot_has_read(mot_slot *slot, mot_ts first, const note_set *w)
{
	unsigned	hash = 0;

	/* relaxed: see note() */
	if (atomic_load_explicit(&slot->read_any, memory_order_relaxed) >= first ||
		is_noted(slot->read_range, w->ranges, first))
		return true;
	while (hash < READ_NOTE_HASHES && is_noted(slot->read_row[hash], w->rows[hash], first))
		hash++;
	return hash == READ_NOTE_HASHES;
}

/* Has, or may, this session's transaction that comes at or after "first" read what is written? */
static bool
is_in_the_way(mot_session *s, mot_slot *slot, mot_ts first, const note_set *w)
{
	/* seq_cst: after our draw; see the head of this file */
	uint64_t	serial = atomic_load(&slot->serial);

	MOT_STOP_POINT("precede-slot");
	if (serial >= first && (serial < s->commit_ts || serial == SERIAL_TAKING) &&

	/*
	 * Who has drawn is validated: with a smaller number he has been judged
	 * and his notes tell, with a greater one he sees us.  Acquire: they are
	 * read after it.
	 */
		atomic_load_explicit(&slot->commit_state, memory_order_acquire) == COMMIT_NONE)
		return true;

	return mot_has_read(slot, first, w);
}

/* Its reads do not stand as of its number.  May it precede those who changed them? */
bool
mot_txn_precedes(mot_session *s)
{
	mot_engine *e = s->engine;
	mot_ts		first;
	mot_ts		newest;
	uint32_t	n = atomic_load(&e->slots_used);
	note_set	w;

	if (!s->may_precede || s->saw_newest || has_met_newer_table(s) || !mot_written(s, &w))
		return false;

	/*
	 * At a hot place many fail because of one who has committed.  That is
	 * known without waiting for those who have not been judged.
	 */
	first = mot_read_first_change(s, true);
	for (uint32_t i = 0; i < n; i++)
		if (&e->slot[i] != s->slot && mot_has_read(&e->slot[i], first, &w))
			return false;
	mot_judged_await(s, s->commit_ts);
	first = mot_read_first_change(s, false);
	if (first <= s->snapshot || first >= s->commit_ts)
		return false;
	/* acquire: as of the judgements that were waited for */
	newest = atomic_load_explicit(&e->newest_preceding, memory_order_acquire);
	if (newest > s->snapshot)
		return false;
	n = atomic_load(&e->slots_used);
	for (uint32_t i = 0; i < n; i++)
		if (&e->slot[i] != s->slot && is_in_the_way(s, &e->slot[i], first, &w))
			return false;

	/*
	 * Judgements are made in the order of the numbers, here at least, so ours
	 * is the greatest.  Release: before our own is told.
	 */
	atomic_store_explicit(&e->newest_preceding, s->commit_ts, memory_order_release);
	return true;
}
