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

#include <math.h>

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

/*
 * so few transactions that were counted in an interval are chance, and no reason to
 * cut or move anything
 */
#define FEW 25

typedef struct Candidate
{
	mot_table  *table;
	uint64		serial;
	double		weight;
} Candidate;

/* how a table reaches from where to where, just now */
typedef struct Extent
{
	uint32		key;			/* MotIslandsKey */
	uint32		skip;
	uint8		common[MOT_ISLANDS_COMMON];
	uint64		from;
	uint64		to;
	uint8		first[MOT_MAX_KEY]; /* keys */
	uint8		last[MOT_MAX_KEY];
	size_t		first_len;
	size_t		last_len;
} Extent;

/*
 * Where the ranges were of a table that is not there any more.  It may be back soon: empty
 * as it has been truncated, or stored anew, which has another serial number.
 */
typedef struct Gone
{
	MotIslandsTable table;
	unsigned	n;
	isl_range	range[MOT_MAX_PLACES];
} Gone;

static Gone gone[ISL_MAX_TABLES];
static unsigned forgotten = 0;	/* the next one to be */

static isl_machine machine;
static bool real;				/* not only pretended */
static Candidate candidates[MAX_CANDIDATES];
static int	ncandidates;

/* too large for a stack */
static isl_load *load = NULL;
static isl_scheme *actual;
static isl_scheme *next;
static MotIslandsScheme *fresh;
static isl_decision *decision;

static void begin(void);
static void step(mot_session *session, const mot_view *view, double seconds, bool changed);
static void add_up(uint64 generation, const isl_scheme *scheme);
static void find_home(MotIslandsSlot *slot, const isl_counts *counts, const isl_scheme *scheme);
static void visit(void *arg, mot_table *table);
static int	compare_candidates(const void *a, const void *b);
static void make_fresh(mot_session *session, const mot_view *view, const MotIslandsScheme *old,
					   const isl_scheme *ranges);
static void set_positions(Extent *extent);
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

	if (mot_islands == MOT_ISLANDS_OFF)
	{
		last = 0;
		return;
	}
	if (load == NULL)
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

/*
 * an interval of so many seconds has passed (0: nothing has been counted, or long ago), or nodes
 * have come or gone
 */
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
	why = isl_interval_passed(&MotIslands->interval, load->all.transactions / seconds, load->all.counted);
	if (load->all.counted < FEW)
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
	if (!isl_decide(&machine, &old->scheme, load, next, decision))
	{
		decision->moves = false;
		*next = old->scheme;
	}
	INSTR_TIME_SET_CURRENT(took);
	INSTR_TIME_SUBTRACT(took, began);
	isl_interval_looked(&MotIslands->interval, decision->moves, decision->unsure);
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
	load = MemoryContextAllocZero(cxt, sizeof(isl_load));
}

/* ---------------------------------------------------------------- counting */

static void
add_up(uint64 generation, const isl_scheme *scheme)
{
	isl_load_clear(load);
	LWLockAcquire(MotIslands->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MotProcessSlots(); i++)
	{
		MotIslandsSlot *slot = &MotIslands->slot[i];
		isl_counts *counts = slot->counts;

		/* who has done nothing stays where he is */
		if (counts != NULL && isl_load_add(load, counts, generation))
			find_home(slot, counts, scheme);
	}
	LWLockRelease(MotIslands->lock);
}

/*
 * a session's node, by the work it has done; while that is too little to be sure it is what it was
 */
static void
find_home(MotIslandsSlot *slot, const isl_counts *counts, const isl_scheme *scheme)
{
	double		work[ISL_MAX_PLACES + 1];
	double		total = 0;
	unsigned	transactions = isl_counts_places(counts, scheme, work);
	double		error = transactions > 0 ? 0.5 / sqrt(transactions) : 0;
	uint16		home = 0;
	double		part;

	for (unsigned n = 0; n <= ISL_MAX_PLACES; n++)
	{
		total += work[n];
		if (n < machine.places && work[n] > work[home])
			home = n;
	}
	if (total == 0)
		return;
	part = work[home] / total;
	/* relaxed: no order is needed */
	if (part > HOME + 2 * error)
		atomic_store_explicit(&slot->home, home, memory_order_relaxed);
	else if (part < HOME - 2 * error)
		atomic_store_explicit(&slot->home, MOT_ISLANDS_HOMELESS, memory_order_relaxed);
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

static mot_table *
table_of(uint64 serial)
{
	for (int c = 0; c < ncandidates; c++)
		if (candidates[c].serial == serial)
			return candidates[c].table;
	return NULL;
}

static Gone *
find_gone(Oid database, Oid relid)
{
	for (int i = 0; i < ISL_MAX_TABLES; i++)
		if (gone[i].n > 0 && gone[i].table.database == database && gone[i].table.relid == relid)
			return &gone[i];
	return NULL;
}

/* tables that the scheme before has, and that are not there now */
static void
remember_gone(const MotIslandsScheme *old, const isl_scheme *ranges, isl_range *range)
{
	for (uint32 t = 0; t < ranges->tables; t++)
	{
		uint64		serial = ranges->table[t].key;
		const MotIslandsTable *o = &old->table[isl_scheme_find(&old->scheme, serial)];
		unsigned	n = isl_scheme_ranges(ranges, t, range);
		Gone	   *g;

		/*
		 * (those of no place, or of more than the engine takes, are of no
		 * use)
		 */
		if (table_of(serial) != NULL || n > MOT_MAX_PLACES || range[0].place == ISL_NOWHERE)
			continue;
		g = find_gone(o->database, o->relid);
		if (g == NULL)
			g = &gone[forgotten++ % ISL_MAX_TABLES];
		g->table = *o;
		g->n = n;
		memcpy(g->range, range, n * sizeof(isl_range));
	}
}

/*
 * a table's ranges before, as positions that leave out "skip" bytes; 0: it is new, or by another
 * key
 */
static unsigned
old_ranges(const MotIslandsScheme *old, const isl_scheme *ranges, const mot_table *table, Extent *extent, isl_range *range)
{
	uint64		serial = mot_table_serial(table);
	int			t = ranges == NULL ? -1 : isl_scheme_find(ranges, serial);
	const Gone *g = t >= 0 ? NULL : find_gone(mot_table_host_db(table), mot_table_owner(table));
	const MotIslandsTable *was;
	unsigned	n;

	if (t >= 0)
	{
		was = &old->table[isl_scheme_find(&old->scheme, serial)];
		n = isl_scheme_ranges(ranges, t, range);
	}
	else if (g != NULL)
	{
		was = &g->table;
		n = g->n;
		memcpy(range, g->range, n * sizeof(isl_range));
	}
	else
		return 0;
	if (was->key != extent->key || memcmp(was->common, extent->common, Min(was->skip, extent->skip)) != 0)
		return 0;
	if (was->skip > extent->skip)
		isl_ranges_widen(range, &n, was->common + extent->skip, Min(was->skip - extent->skip, 8));
	else
	{
		/* they need not leave out more than they did */
		extent->skip = was->skip;
		set_positions(extent);
	}
	return n;
}

/* ranges that were told to the engine, by a worker before us perhaps */
static unsigned
engine_ranges(const mot_table *table, const mot_index *index, const Extent *extent, isl_range *range)
{
	unsigned	skip;
	unsigned	n = MotIslandsPlaced(table, &skip, range);

	return n > 0 && skip == extent->skip && mot_table_placed_by(table) == mot_index_host_id(index) ? n : 0;
}

/* The scheme "fresh" of the tables that there are, with the ranges that they had. */
static void
make_fresh(mot_session *session, const mot_view *view, const MotIslandsScheme *old, const isl_scheme *ranges)
{
	static isl_range range[ISL_MAX_SUBS];
	static Extent extent;

	if (ranges != NULL)
		remember_gone(old, ranges, range);
	fresh->scheme.tables = fresh->scheme.subs = 0;
	for (int i = 0; i < ncandidates && fresh->scheme.tables < ISL_MAX_TABLES; i++)
	{
		mot_table  *table = candidates[i].table;
		mot_index  *index = mot_table_index_at(table, 0);
		MotIslandsTable *t = &fresh->table[fresh->scheme.tables];
		unsigned	n;

		if (index == NULL || !find_extent(session, view, index, &extent))
			continue;
		n = old_ranges(old, ranges, table, &extent, range);
		if (n == 0)
			n = engine_ranges(table, index, &extent, range);
		if (n == 0)
		{
			range[0].low = 0;
			range[0].place = ISL_NOWHERE;
			n = 1;
		}
		t->database = mot_table_host_db(table);
		t->relid = mot_table_owner(table);
		t->index = mot_index_host_id(index);
		t->key = extent.key;
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

static void
set_positions(Extent *extent)
{
	extent->from = isl_position(extent->first, extent->first_len, extent->common, extent->skip);
	extent->to = isl_position(extent->last, extent->last_len, extent->common, extent->skip);
	if (extent->to < extent->from)
		extent->to = extent->from;
}

static bool
find_extent(mot_session *session, const mot_view *view, mot_index *index, Extent *extent)
{
	size_t		common = 0;
	size_t		shorter;

	if (view->snapshot < mot_index_valid_from(index) ||
		!end_key(session, view, index, false, extent->first, &extent->first_len) ||
		!end_key(session, view, index, true, extent->last, &extent->last_len))
		return false;
	extent->key = MotIslandsKey(index);
	shorter = Min(extent->first_len, extent->last_len);
	while (common < shorter && extent->first[common] == extent->last[common])
		common++;
	extent->skip = common > KEPT_COMMON ? Min(common - KEPT_COMMON, MOT_ISLANDS_COMMON) : 0;
	if (extent->first_len == extent->last_len && shorter <= 8)
		extent->skip = 0;
	memset(extent->common, 0, sizeof(extent->common));
	memcpy(extent->common, extent->first, Min(extent->first_len, sizeof(extent->common)));
	set_positions(extent);
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
	cost = isl_cost_of(&machine, actual, &load->all);
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
			MotIslands->heat[at] += load->all.work[s] / Max(decision->work, 1);
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
