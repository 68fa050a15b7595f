/*-------------------------------------------------------------------------
 *
 * act.c
 *	  Where decisions meet the engine (engine/mot_places.h): it is told where ranges
 *	  live, rows that are elsewhere are moved, sessions keep to the node of their work, and
 *	  nodes that have gone are noticed.
 *
 * Rows are moved by the maintenance worker, a few milliseconds at a time, as long as
 * there are tables whose places have changed since they were last gone through.  A
 * worker that takes the place of another one goes through all that have places.
 *
 * When that is not wanted any more, tables have no places any more, and rows stay where they are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "islands/measure.h"
#include "miscadmin.h"
#include "portability/instr_time.h"

#define ROWS_AT_ONCE 1000
#define MOVE_MS 10.0			/* in one turn */

/* tables to be gone through, by their serial numbers */
typedef struct Pending
{
	uint64		serial;
	mot_place_move move;
} Pending;

static Pending pending[ISL_MAX_TABLES];
static int	npending = 0;

static enum
{
	UNKNOWN,					/* what a worker before us has told the engine
								 * is there still */
	ACTS,
	RESTS						/* no table has places */
}			state = UNKNOWN;

/* from its beginning; false: too many are waiting */
static bool
go_through(uint64 serial)
{
	int			i = 0;

	while (i < npending && pending[i].serial != serial)
		i++;
	if (i == ISL_MAX_TABLES)
		return false;
	if (i == npending)
		npending++;
	memset(&pending[i], 0, sizeof(Pending));
	pending[i].serial = serial;
	return true;
}

unsigned
MotIslandsPlaced(const mot_table *table, unsigned *skip, isl_range *range)
{
	mot_table_place place[MOT_MAX_PLACES];
	unsigned	n = mot_table_places_get(table, skip, place);

	for (unsigned i = 0; i < n; i++)
	{
		range[i].low = place[i].low;
		range[i].place = place[i].node;
	}
	return n;
}

/* Ranges of a scheme's table; neighbours on one node are one to the engine. */
void
MotIslandsPlace(mot_session *session, mot_table *table, const MotIslandsTable *as,
				const isl_scheme *scheme, unsigned number)
{
	const isl_table *t = &scheme->table[number];
	mot_table_place place[MOT_MAX_PLACES];
	mot_table_place before[MOT_MAX_PLACES];
	uint32		placed_by = mot_table_placed_by(table);
	unsigned	skip;
	unsigned	n = 0;

	for (uint32 s = t->first; s < t->first + t->subs; s++)
	{
		if (scheme->place[s] == ISL_NOWHERE)
		{
			/* places by another key say nothing of this one */
			if (placed_by != 0 && placed_by != as->index)
				(void) mot_table_places_set(session, table, 0, NULL, 0);
			return;
		}
		if (n > 0 && place[n - 1].node == scheme->place[s])
			continue;
		/* too many: they stay where they are, until there are fewer */
		if (n == MOT_MAX_PLACES)
			return;
		memset(&place[n], 0, sizeof(mot_table_place));
		place[n].low = scheme->low[s];
		place[n++].node = scheme->place[s];
	}
	/* (an index that has been made anew is another one) */
	if (mot_table_places_get(table, &skip, before) == n && skip == as->skip &&
		placed_by == as->index)
	{
		unsigned	i = 0;

		while (i < n && before[i].low == place[i].low && before[i].node == place[i].node)
			i++;
		if (i == n)
			return;
	}

	/*
	 * without memory for it nothing changes, and it is tried again the next
	 * time
	 */
	if (go_through(t->key))
		(void) mot_table_places_set(session, table, as->skip, place, n);
}

/* tables that have places */
typedef struct Placed
{
	int			n;
	mot_table  *table[ISL_MAX_TABLES];
} Placed;

static void
find_placed(void *arg, mot_table *table)
{
	Placed	   *placed = arg;

	if (placed->n < ISL_MAX_TABLES && mot_table_placed_by(table) != 0)
		placed->table[placed->n++] = table;
}

static void
set_state(mot_session *session)
{
	bool		acts = mot_islands == MOT_ISLANDS_ON;
	Placed		placed;

	if (state == (acts ? ACTS : RESTS))
		return;
	if (!acts)
		npending = 0;
	/* what is found stays until the snapshot is let go of */
	(void) mot_snapshot_take(session);
	do
	{
		placed.n = 0;
		mot_table_each(MotEngine, find_placed, &placed);
		for (int i = 0; i < placed.n; i++)
		{
			if (acts)
				(void) go_through(mot_table_serial(placed.table[i]));
			else
				(void) mot_table_places_set(session, placed.table[i], 0, NULL, 0);
		}
	} while (!acts && placed.n > 0);
	mot_snapshot_hold(session, MOT_TS_NONE);
	state = acts ? ACTS : RESTS;
}

typedef struct Wanted
{
	uint64		serial;
	mot_table  *table;
} Wanted;

static void
find_table(void *arg, mot_table *table)
{
	Wanted	   *wanted = arg;

	if (mot_table_serial(table) == wanted->serial)
		wanted->table = table;
}

bool
MotIslandsMove(mot_session *session)
{
	Wanted		wanted = {0};
	Pending    *last;
	instr_time	began;
	instr_time	now;
	mot_move_end end = MOT_MOVE_DONE;

	set_state(session);
	if (npending == 0)
		return false;
	last = &pending[npending - 1];
	INSTR_TIME_SET_CURRENT(began);
	/* a table that is found stays until the snapshot is let go of */
	(void) mot_snapshot_take(session);
	wanted.serial = last->serial;
	mot_table_each(MotEngine, find_table, &wanted);
	do
	{
		if (wanted.table != NULL)
			end = mot_table_places_move(session, wanted.table, ROWS_AT_ONCE, &last->move);
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, began);
	} while (end == MOT_MOVE_MORE && INSTR_TIME_GET_MILLISEC(now) < MOVE_MS && !InterruptPending);
	mot_snapshot_hold(session, MOT_TS_NONE);

	if (end == MOT_MOVE_DONE)
		npending--;
	else if (end == MOT_MOVE_WAITS)
	{
		/* it goes on in the next round, behind the others */
		Pending		waits = *last;

		memmove(pending + 1, pending, (npending - 1) * sizeof(Pending));
		pending[0] = waits;
	}
	return npending > 0 && end != MOT_MOVE_WAITS;
}

/* The session's process goes to the node of its work, or where it likes. */
void
MotIslandsKeep(mot_session *session, uint16 node)
{
	if (mot_process_keep_to(MotEngine, node == MOT_ISLANDS_HOMELESS ? MOT_NODE_ANY : node) && session != NULL)
		mot_session_settle(session);
}

/* Nodes without a processor that we may use can do nothing.  True: others than the last time. */
bool
MotIslandsLook(isl_machine *machine, bool real)
{
	static double weight[ISL_MAX_PLACES];
	static bool known = false;
	uint64		alive;
	bool		changed = false;

	/* a machine that is pretended has all it says */
	if (!real || machine->places < 2)
		return false;
	if (!known)
	{
		for (unsigned p = 0; p < machine->places; p++)
			weight[p] = machine->place[p].weight;
		known = true;
	}
	(void) mot_machine_look(MotEngine);
	alive = mot_nodes_alive(MotEngine);
	for (unsigned p = 0; p < machine->places; p++)
	{
		double		now = (alive >> p) & 1 ? Max(weight[p], 1) : 0;

		changed |= (now > 0) != (machine->place[p].weight > 0);
		machine->place[p].weight = now;
	}
	return changed;
}
