/*-------------------------------------------------------------------------
 *
 * islands_util.h
 *	  Machines, schemes and loads for the tests of src/islands.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ISLANDS_UTIL_H
#define ISLANDS_UTIL_H

#include <math.h>

#include "islands.h"
#include "test.h"

/* nodes with so many places each, all of them one step from each other */
static inline void
machine_make(isl_machine *machine, unsigned nodes, unsigned places_each, double byte_work)
{
	memset(machine, 0, sizeof(*machine));
	machine->nodes = nodes;
	machine->places = nodes * places_each;
	machine->byte_work = byte_work;
	machine->use_work = 1;
	machine->worth = 0.005;
	for (unsigned p = 0; p < machine->places; p++)
	{
		machine->place[p].node = (uint16_t) (p / places_each);
		machine->place[p].weight = 1;
	}
	for (unsigned a = 0; a < nodes; a++)
	{
		for (unsigned b = 0; b < nodes; b++)
			machine->distance[a][b] = a != b;
	}
}

/* a table of positions 0 .. 999, its ranges dealt out to places in turns */
static inline unsigned
scheme_table(isl_scheme *scheme, uint64_t key, unsigned ranges, unsigned places)
{
	isl_range	range[128];

	for (unsigned i = 0; i < ranges; i++)
	{
		range[i].low = i * 1000 / ranges;
		range[i].place = places == 0 ? ISL_NOWHERE : (uint16_t) (i % places);
	}
	REQUIRE(isl_scheme_add(scheme, key, 0, 1000, range, ranges));
	return scheme->tables - 1;
}

static inline unsigned
sub_of(const isl_scheme *scheme, unsigned table, uint64_t position)
{
	const isl_table *t = &scheme->table[table];

	return isl_sub_at(scheme->low, t->first, t->subs, position);
}

static inline unsigned
place_of(const isl_scheme *scheme, unsigned table, uint64_t position)
{
	return scheme->place[sub_of(scheme, table, position)];
}

/* so many transactions that read one row */
static inline void
run_one(isl_load *load, const isl_scheme *scheme, unsigned table, uint64_t position, double times)
{
	isl_item	item = {.sub = sub_of(scheme, table, position),.reads = 1};

	isl_load_transaction(load, &item, 1, times);
}

/* one transaction that changes rows at two places */
static inline void
run_pair(isl_load *load, const isl_scheme *scheme, unsigned ta, uint64_t a, unsigned tb, uint64_t b)
{
	isl_item	item[2] = {{.sub = sub_of(scheme, ta, a),.changes = 1}, {.sub = sub_of(scheme, tb, b),.changes = 1}};

	isl_load_transaction(load, item, 2, 1);
}

/* the actions, done on a list of ranges, must lead to the scheme that was decided */
static inline bool
actions_lead(const isl_scheme *now, const isl_scheme *next, const isl_decision *d)
{
	static isl_range range[ISL_MAX_SUBS];
	static isl_range wanted[ISL_MAX_SUBS];

	for (unsigned t = 0; t < now->tables; t++)
	{
		unsigned	n = isl_scheme_ranges(now, t, range);
		unsigned	m = isl_scheme_ranges(next, t, wanted);

		for (unsigned a = 0; a < d->actions; a++)
		{
			const isl_action *act = &d->action[a];
			unsigned	i = 0;

			if (act->table != t)
				continue;
			while (i < n && range[i].low < act->low)
				i++;
			if (act->kind == ISL_SPLIT)
			{
				if (i < n && range[i].low == act->low)
					return false;
				memmove(&range[i + 1], &range[i], (n - i) * sizeof(isl_range));
				range[i].low = act->low;
				range[i].place = range[i - 1].place;
				n++;
			}
			else if (i == n || range[i].low != act->low)
				return false;
			else if (act->kind == ISL_MOVE)
				range[i].place = act->place;
			else
			{
				if (i == 0 || range[i - 1].place != range[i].place)
					return false;
				memmove(&range[i], &range[i + 1], (n - i - 1) * sizeof(isl_range));
				n--;
			}
		}
		if (n != m)
			return false;
		for (unsigned i = 0; i < n; i++)
		{
			if (range[i].low != wanted[i].low || range[i].place != wanted[i].place)
				return false;
		}
	}
	return true;
}

#endif							/* ISLANDS_UTIL_H */
