/*-------------------------------------------------------------------------
 *
 * decide.c
 *	  The maintenance worker's part: adds up what sessions have counted, looks for
 *	  a better scheme, and has it take effect.  See measure.h.
 *
 * At the end of each interval there is a new scheme, for counting begins anew:
 * tables come and go, and reach from where to where, so ranges are cut anew.
 * Whether anything is to be placed elsewhere is asked when the interval's rule
 * says so (interval.c).
 *
 * The scheme says where ranges had better live.  Under "on" that is told to the
 * engine as well; under "advise" it goes on as if it had been.
 *
 * Tables are those of all databases that have a key and a row; of more than
 * there is room for, those with the most changes and rows.  All tables that
 * are looked at stay there until this is over, because of the snapshot held.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "islands/measure.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* a session belongs to a node on which it has this part of its work */
#define HOME 0.6

#define MAX_CANDIDATES 1024		/* tables that are considered */

typedef struct Candidate
{
	mot_table  *table;
	uint64		serial;
	double		weight;
} Candidate;

/* how a table reaches from where to where, just now */
typedef struct Extent
{
	uint32		skip;
	uint8		common[MOT_ISLANDS_COMMON];
	uint64		from;
	uint64		to;
} Extent;

static isl_machine machine;
static bool real;				/* not only pretended */
static Candidate candidates[MAX_CANDIDATES];
static int	ncandidates;

/* too large for a stack */
static isl_trace *trace = NULL;
static isl_scheme *actual;
static isl_scheme *next;
static MotIslandsScheme *fresh;
static isl_decision *decision;

static void begin(void);
/* so few transactions in an interval are chance, and no reason to cut or move anything */
#define FEW 200

static void step(mot_session *session, const mot_view *view, double seconds, bool changed);
static void add_up(uint64 generation, const isl_scheme *scheme);
static void find_home(MotIslandsSlot *slot, const isl_counts *counts, const isl_scheme *scheme);
static void visit(void *arg, mot_table *table);
static int	compare_candidates(const void *a, const void *b);
static mot_table *table_of(uint64 serial);
static void make_fresh(mot_session *session, const mot_view *view, const MotIslandsScheme *old,
					   const isl_scheme *ranges);
static bool find_extent(mot_session *session, const mot_view *view, mot_index *index, Extent *extent);
static void publish(uint64 generation);
static void as_it_is(const MotIslandsScheme *old);
static void share_heat(const isl_scheme *old);
static void remember(const MotIslandsScheme *old, isl_why why, double milliseconds);

void
MotIslandsStep(mot_session *session)
{
	static TimestampTz last = 0;	/* when the interval began */
	TimestampTz now = GetCurrentTimestamp();
	double		seconds = (now - last) / (double) USECS_PER_SEC;
	mot_view	view = {.command = MOT_COMMAND_MAX};
	bool		changed;

	if (!MotIslandsCounting)
	{
		last = 0;
		return;
	}
	if (trace == NULL)
		begin();
	changed = MotIslandsLook(&machine, real);
	/* rounds are a second long, more or less */
	if (last != 0 && !changed && seconds < MotIslands->interval.seconds - 0.5)
		return;
	view.snapshot = mot_snapshot_take(session);
	ncandidates = 0;
	mot_table_each(MotEngine, visit, NULL);
	qsort(candidates, ncandidates, sizeof(Candidate), compare_candidates);
	step(session, &view, last == 0 ? 0 : seconds, changed);
	mot_snapshot_hold(session, MOT_TS_NONE);
	last = now;
}

/* an interval of so many seconds has passed (0: nothing has been counted, or long ago), or nodes have come or gone */
static void
step(mot_session *session, const mot_view *view, double seconds, bool changed)
{
	/* relaxed: nobody else writes it */
	uint64		generation = atomic_load_explicit(&MotIslands->generation, memory_order_relaxed);
	const MotIslandsScheme *old = &MotIslands->scheme[generation % 2];
	isl_why		why = ISL_NOT_NOW;
	instr_time	began;
	instr_time	took;

	if (generation == 0 || seconds == 0)
	{
		isl_interval_init(&MotIslands->interval);
		make_fresh(session, view, old, generation == 0 ? NULL : &old->scheme);
		publish(generation + 1);
		return;
	}
	add_up(generation, &old->scheme);
	why = isl_interval_passed(&MotIslands->interval, trace->transactions / seconds);
	if (trace->transactions < FEW)
		why = ISL_NOT_NOW;
	if (changed)
		why = ISL_LOST;
	if (why == ISL_NOT_NOW)
	{
		make_fresh(session, view, old, &old->scheme);
		publish(generation + 1);
		return;
	}

	INSTR_TIME_SET_CURRENT(began);
	if (!isl_decide(&machine, &old->scheme, trace, next, decision))
	{
		decision->moves = false;
		*next = old->scheme;
	}
	INSTR_TIME_SET_CURRENT(took);
	INSTR_TIME_SUBTRACT(took, began);
	isl_interval_looked(&MotIslands->interval, decision->moves);
	as_it_is(old);
	if (decision->moves)
		remember(old, why, INSTR_TIME_GET_MILLISEC(took));
	make_fresh(session, view, old, next);
	share_heat(&old->scheme);
	publish(generation + 1);
}

static void
begin(void)
{
	MemoryContext cxt = TopMemoryContext;

	actual = MemoryContextAllocZero(cxt, sizeof(isl_scheme));
	next = MemoryContextAllocZero(cxt, sizeof(isl_scheme));
	fresh = MemoryContextAllocZero(cxt, sizeof(MotIslandsScheme));
	decision = MemoryContextAllocZero(cxt, sizeof(isl_decision));
	real = MotIslandsMachine(&machine);
	trace = MemoryContextAllocZero(cxt, sizeof(isl_trace));
}

/* ---------------------------------------------------------------- counting */

static void
add_up(uint64 generation, const isl_scheme *scheme)
{
	isl_trace_clear(trace);
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MotProcessSlots(); i++)
	{
		MotIslandsSlot *slot = &MotIslands->slot[i];
		isl_counts *counts = slot->counts;

		/* who has done nothing stays where he is */
		if (counts != NULL && isl_trace_add(trace, counts, generation))
			find_home(slot, counts, scheme);
	}
	MotIslands->lost = trace->lost;
	LWLockRelease(MotIslands->lock);
}

/* a session's node, by the work it has done */
static void
find_home(MotIslandsSlot *slot, const isl_counts *counts, const isl_scheme *scheme)
{
	double		work[ISL_MAX_NODES] = {0};
	double		total = 0;
	uint16		home = MOT_ISLANDS_HOMELESS;

	for (uint32 s = 0; s < scheme->subs; s++)
	{
		/* relaxed: a figure */
		uint32		n = atomic_load_explicit(&counts->work[s], memory_order_relaxed);

		total += n;
		if (scheme->place[s] < machine.places)
			work[scheme->place[s]] += n;
	}
	for (unsigned n = 0; n < machine.places; n++)
		if (work[n] > HOME * total)
			home = n;
	/* relaxed: no order is needed */
	if (total > 0)
		atomic_store_explicit(&slot->home, home, memory_order_relaxed);
}

/* ----------------------------------------------------------------- schemes */

static void
visit(void *arg, mot_table *table)
{
	mot_table  *replaces;
	mot_table_stat stat;
	Candidate  *c = &candidates[ncandidates];

	if (ncandidates == MAX_CANDIDATES || mot_table_index_count(table) == 0 ||
		!mot_table_is_settled(table, &replaces))
		return;
	mot_table_stats(table, &stat);
	if (stat.rows <= 0)
		return;
	c->table = table;
	c->serial = mot_table_serial(table);
	c->weight = (double) stat.rows + stat.inserts + stat.updates + stat.deletes;
	ncandidates++;
}

static int
compare_candidates(const void *a, const void *b)
{
	const Candidate *x = a;
	const Candidate *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* a table's ranges before, as positions that leave out "skip" bytes; 0: it is new */
static unsigned
old_ranges(const MotIslandsScheme *old, const isl_scheme *ranges, uint64 serial, Extent *extent, isl_range *range)
{
	int			t = ranges == NULL ? -1 : isl_scheme_find(ranges, serial);
	const MotIslandsTable *o;
	unsigned	n;

	if (t < 0)
		return 0;
	o = &old->table[isl_scheme_find(&old->scheme, serial)];
	n = isl_scheme_ranges(ranges, t, range, ISL_MAX_SUBS);
	if (memcmp(o->common, extent->common, Min(o->skip, extent->skip)) != 0)
		return 0;
	if (o->skip > extent->skip)
		isl_ranges_widen(range, &n, o->common + extent->skip, Min(o->skip - extent->skip, 8));
	else
	{
		/* they need not leave out more than they did */
		extent->skip = o->skip;
	}
	return n;
}

/* ranges that were told to the engine, by a worker before us perhaps */
static unsigned
engine_ranges(const mot_table *table, const Extent *extent, isl_range *range)
{
	unsigned	skip;
	unsigned	n = MotIslandsPlaced(table, &skip, range);

	return n > 0 && skip == extent->skip ? n : 0;
}

static mot_table *
table_of(uint64 serial)
{
	for (int c = 0; c < ncandidates; c++)
		if (candidates[c].serial == serial)
			return candidates[c].table;
	return NULL;
}

/* The scheme "fresh" of the tables that there are, with the ranges that they had. */
static void
make_fresh(mot_session *session, const mot_view *view, const MotIslandsScheme *old, const isl_scheme *ranges)
{
	static isl_range range[ISL_MAX_SUBS];

	fresh->scheme.tables = fresh->scheme.subs = 0;
	for (int i = 0; i < ncandidates && fresh->scheme.tables < ISL_MAX_TABLES; i++)
	{
		mot_table  *table = candidates[i].table;
		mot_index  *index = mot_table_index_at(table, 0);
		MotIslandsTable *t = &fresh->table[fresh->scheme.tables];
		Extent		extent;
		unsigned	n;

		if (index == NULL || !find_extent(session, view, index, &extent))
			continue;
		n = old_ranges(old, ranges, candidates[i].serial, &extent, range);
		if (n == 0)
			n = engine_ranges(table, &extent, range);
		if (n == 0)
		{
			range[0].low = 0;
			range[0].place = ISL_NOWHERE;
			n = 1;
		}
		t->database = mot_table_host_db(table);
		t->relid = mot_table_owner(table);
		t->index = mot_index_host_id(index);
		t->skip = extent.skip;
		memcpy(t->common, extent.common, sizeof(t->common));
		(void) isl_scheme_add(&fresh->scheme, candidates[i].serial, extent.from, extent.to, range, n);
		if (mot_islands == MOT_ISLANDS_ON)
			MotIslandsPlace(session, table, t, &fresh->scheme, fresh->scheme.tables - 1);
	}
}

/* the key of the first or the last row that can be seen */
static bool
end_key(mot_session *session, const mot_view *view, mot_index *index, bool last, uint8 *key, size_t *len)
{
	mot_index_handle handle = {.index = index};
	mot_bound	none = {.kind = MOT_BOUND_NONE};
	mot_cursor *cursor = palloc(mot_cursor_size());
	mot_row    *row;
	const mot_version *version;
	unsigned	flags;
	bool		found = false;

	if (mot_cursor_open(session, cursor, view, &handle, &none, &none, last) == MOT_OK)
	{
		found = mot_cursor_next(cursor, &row, &version) && mot_index_key_hook != NULL &&
			mot_index_key_hook(index, version, key, len, &flags);
		mot_cursor_close(cursor);
	}
	pfree(cursor);
	return found && *len > 0;
}

/*
 * Eight bytes say where a key is, so what all keys begin with is left out; but for
 * four bytes of it, so that it is not another number each time that the table
 * has grown.
 */
#define KEPT_COMMON 4

static bool
find_extent(mot_session *session, const mot_view *view, mot_index *index, Extent *extent)
{
	static uint8 first[MOT_MAX_KEY];
	static uint8 last[MOT_MAX_KEY];
	size_t		first_len;
	size_t		last_len;
	size_t		common = 0;

	if (view->snapshot < mot_index_valid_from(index) ||
		!end_key(session, view, index, false, first, &first_len) ||
		!end_key(session, view, index, true, last, &last_len))
		return false;
	while (common < Min(first_len, last_len) && first[common] == last[common])
		common++;
	extent->skip = common > KEPT_COMMON ? Min(common - KEPT_COMMON, MOT_ISLANDS_COMMON) : 0;
	if (first_len == last_len && first_len <= 8)
		extent->skip = 0;
	memset(extent->common, 0, sizeof(extent->common));
	memcpy(extent->common, first, Min(first_len, sizeof(extent->common)));
	extent->from = isl_position(first, first_len, extent->common, extent->skip);
	extent->to = isl_position(last, last_len, extent->common, extent->skip);
	if (extent->to < extent->from)
		extent->to = extent->from;
	return true;
}

static void
publish(uint64 generation)
{
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	MotIslands->scheme[generation % 2] = *fresh;
	/* release: who sees the generation sees its scheme */
	atomic_store_explicit(&MotIslands->generation, generation, memory_order_release);
	LWLockRelease(MotIslands->lock);
}

/* -------------------------------------------------------------- decisions */

/* what is now: costs with rows where the engine has been told to put them */
static void
as_it_is(const MotIslandsScheme *old)
{
	static isl_range range[ISL_MAX_SUBS];
	isl_cost	cost;
	double		work = Max(decision->work, 1);

	*actual = old->scheme;
	for (uint32 t = 0; t < old->scheme.tables; t++)
	{
		const isl_table *table = &old->scheme.table[t];
		const mot_table *there = table_of(table->key);
		unsigned	skip;
		unsigned	n = there == NULL ? 0 : MotIslandsPlaced(there, &skip, range);
		unsigned	r = 0;

		for (uint32 s = table->first; s < table->first + table->subs; s++)
		{
			while (r + 1 < n && range[r + 1].low <= old->scheme.low[s])
				r++;
			actual->place[s] = n == 0 ? ISL_NOWHERE : range[r].place;
		}
	}
	cost = isl_cost_of(&machine, actual, trace);
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	MotIslands->before.use = cost.use / work;
	MotIslands->before.sync = cost.sync / work;
	MotIslands->after.use = decision->after.use / work;
	MotIslands->after.sync = decision->after.sync / work;
	LWLockRelease(MotIslands->lock);
}

/* Each range's part of the work, for those that are now in "fresh". */
static void
share_heat(const isl_scheme *old)
{
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	memset(MotIslands->heat, 0, sizeof(MotIslands->heat));
	for (uint32 t = 0; t < fresh->scheme.tables; t++)
	{
		const isl_table *table = &fresh->scheme.table[t];
		int			o = isl_scheme_find(old, table->key);

		if (o < 0)
			continue;
		for (uint32 s = old->table[o].first; s < old->table[o].first + old->table[o].subs; s++)
		{
			unsigned	at = isl_sub_at(fresh->scheme.low, table->first, table->subs, old->low[s]);

			while (!fresh->scheme.starts[at])
				at--;
			MotIslands->heat[at] += trace->work[s] / Max(decision->work, 1);
		}
	}
	LWLockRelease(MotIslands->lock);
}

static void
remember(const MotIslandsScheme *old, isl_why why, double milliseconds)
{
	MotIslandsDecision *d;
	double		work = Max(decision->work, 1);

	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	d = &MotIslands->decision[MotIslands->decisions % MOT_ISLANDS_DECISIONS];
	memset(d, 0, sizeof(*d));
	d->at = GetCurrentTimestamp();
	d->why = why;
	d->done = mot_islands == MOT_ISLANDS_ON;
	d->milliseconds = milliseconds;
	d->before.use = decision->before.use / work;
	d->before.sync = decision->before.sync / work;
	d->after.use = decision->after.use / work;
	d->after.sync = decision->after.sync / work;
	for (unsigned i = 0; i < decision->actions; i++)
	{
		const isl_action *a = &decision->action[i];
		const MotIslandsTable *t = &old->table[a->table];

		d->count[a->kind]++;
		/* what is only cut otherwise is of no interest */
		if (a->kind != ISL_MOVE || d->actions == MOT_ISLANDS_ACTIONS)
			continue;
		d->action[d->actions].action = *a;
		d->action[d->actions].database = t->database;
		d->action[d->actions].relid = t->relid;
		d->action[d->actions].skip = t->skip;
		memcpy(d->action[d->actions].common, t->common, sizeof(t->common));
		d->actions++;
	}
	MotIslands->decisions++;
	LWLockRelease(MotIslands->lock);
}
