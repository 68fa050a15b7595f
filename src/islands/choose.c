/*-------------------------------------------------------------------------
 *
 * choose.c
 *	  A decision: the best of what the searches find, new ranges, and the actions
 *	  that lead there.
 *
 * Three beginnings are tried: the scheme as it is, all tables laid out over the
 * places one after another, and each table over all places.  What moves no more
 * than it must is preferred, since rows that are moved cost, and a scheme that is hardly
 * better than the one that there is stays undone; so does one that may only seem
 * better: what half of the transactions call for is tried on the other half.
 *
 * Ranges are cut anew whether anything moves or not.  A range ends where the
 * place changes, and where it has had enough work: so what is hot comes into
 * small ranges, whose sub-ranges show more of it the next time, and cold neighbours
 * become one.
 *
 *-------------------------------------------------------------------------
 */
#include "islands.h"

#include <stdlib.h>
#include <string.h>

#define SURE			2		/* standard errors that a gain has to be more
								 * than */
#define WORTH_OF_COST	0.1		/* a better scheme has a cost lower by this
								 * part of it */
#define ANOTHER			0.05	/* another beginning than the present one has
								 * to be better by this part of its cost */
#define RANGES_A_PLACE	4		/* there is work for so many, at least */

#define MAX_RANGES (ISL_MAX_SUBS / 2)

/* the least cost, in "search"; is anything lost that has to go somewhere? */
static isl_cost
find_best(isl_search *search, const isl_scheme *now, uint16_t *best)
{
	isl_cost	least = {0, 0};

	for (int begin = 0; begin < 3; begin++)
	{
		isl_cost	cost;

		isl_search_set(search, now->place);
		if (begin > 0)
			isl_search_fill(search, begin == 2);
		isl_search_rescue(search);
		isl_search_balance(search);
		isl_search_gather(search);
		cost = isl_search_cost(search);
		if (begin == 0 || isl_cost_all(cost) < isl_cost_all(least) * (1 - ANOTHER))
		{
			least = cost;
			memcpy(best, isl_search_get(search), now->subs * sizeof(uint16_t));
		}
	}
	return least;
}

static bool
is_worth(const isl_machine *machine, double gain, double before, double work)
{
	return gain > WORTH_OF_COST * before && gain > machine->worth * work;
}

/* Is what one half of the load finds better for the other half, too? */
static bool
is_sure(const isl_machine *machine, const isl_scheme *now, const isl_load *load, uint16_t *place)
{
	isl_search *search = isl_search_begin(machine, now, &load->half[0]);
	double		error;
	double		gain;
	bool		sure;

	if (search == NULL)
		return false;
	(void) find_best(search, now, place);
	isl_search_end(search);
	search = isl_search_begin(machine, now, &load->half[1]);
	if (search == NULL)
		return false;
	gain = isl_search_gain(search, now->place, place, &error);
	sure = gain > SURE * error;
	isl_search_end(search);
	return sure;
}

/* is something at a place that is not there (any more)? */
static bool
has_lost(const isl_machine *machine, const isl_scheme *scheme)
{
	for (unsigned i = 0; i < scheme->subs; i++)
	{
		unsigned	place = scheme->place[i];

		if (place != ISL_NOWHERE && (place >= machine->places || machine->place[place].weight <= 0))
			return true;
	}
	return false;
}

/* a table's ranges by the places of its present sub-ranges; false: there are too many */
static bool
cut_ranges(const isl_scheme *now, const isl_table *table, const uint16_t *place, const double *work,
		   double enough, isl_range *range, unsigned *n, bool *finer)
{
	double		sum = 0;

	*n = 0;
	for (unsigned i = table->first; i < table->first + table->subs; i++)
	{
		bool		last = i + 1 == table->first + table->subs;

		if (i == table->first || place[i] != place[i - 1] || (sum > 0 && sum + work[i] > enough))
		{
			if (*n == MAX_RANGES)
				return false;
			range[*n].low = now->low[i];
			range[*n].place = place[i];
			(*n)++;
			sum = 0;
		}
		sum += work[i];
		/* too hot to be one of ten, and one of several so far */
		if (work[i] > enough && !(now->starts[i] && (last || now->starts[i + 1])))
			*finer = true;
	}
	return true;
}

static bool
make_next(const isl_scheme *now, const uint16_t *place, const double *work, double enough,
		  isl_scheme *next, isl_range *range, bool *finer)
{
	next->tables = next->subs = 0;
	*finer = false;
	for (unsigned t = 0; t < now->tables; t++)
	{
		const isl_table *table = &now->table[t];
		unsigned	n;

		if (!cut_ranges(now, table, place, work, enough, range, &n, finer) ||
			!isl_scheme_add(next, table->key, table->from, table->to, range, n))
			return false;
	}
	return true;
}

static void
act(isl_decision *d, isl_action_kind kind, unsigned table, uint64_t low, unsigned place)
{
	if (d->actions < ISL_MAX_ACTIONS)
		d->action[d->actions++] = (isl_action)
	{
		kind, (uint16_t) table, (uint16_t) place, low
	};
}

/* the range that holds a position */
static bool
starts_at(const isl_scheme *scheme, unsigned table, uint64_t low)
{
	const isl_table *t = &scheme->table[table];
	unsigned	sub = isl_sub_at(scheme->low, t->first, t->subs, low);

	return scheme->low[sub] == low && scheme->starts[sub];
}

static unsigned
place_at(const isl_scheme *scheme, unsigned table, uint64_t low)
{
	const isl_table *t = &scheme->table[table];

	return scheme->place[isl_sub_at(scheme->low, t->first, t->subs, low)];
}

/*
 * every range there is now or will be is split off, then each goes to its place, then neighbours
 * are merged
 */
static void
list_actions(const isl_scheme *now, const isl_scheme *next, isl_decision *d)
{
	static const isl_action_kind order[] = {ISL_SPLIT, ISL_MOVE, ISL_MERGE};

	for (unsigned step = 0; step < 6; step++)
	{
		isl_action_kind kind = order[step / 2];
		const isl_scheme *of = step % 2 ? now : next;
		const isl_scheme *other = step % 2 ? next : now;

		for (unsigned t = 0; t < of->tables; t++)
		{
			for (unsigned i = of->table[t].first; i < of->table[t].first + of->table[t].subs; i++)
			{
				uint64_t	low = of->low[i];
				unsigned	from = place_at(now, t, low);
				unsigned	to = place_at(next, t, low);
				bool		both = starts_at(other, t, low);

				if (!of->starts[i])
					continue;
				if (kind == ISL_MOVE && from != to && (of == next || !both))
					act(d, kind, t, low, to);
				if (kind == ISL_SPLIT && of == next && !both)
					act(d, kind, t, low, from);
				if (kind == ISL_MERGE && of == now && !both)
					act(d, kind, t, low, to);
			}
		}
	}
}

bool
isl_decide(const isl_machine *machine, const isl_scheme *now, const isl_load *load,
		   isl_scheme *next, isl_decision *decision)
{
	isl_search *search = isl_search_begin(machine, now, &load->all);
	uint16_t   *place = calloc(now->subs + 1, sizeof(uint16_t));
	uint16_t   *half = calloc(now->subs + 1, sizeof(uint16_t));
	isl_range  *range = calloc(MAX_RANGES, sizeof(isl_range));
	double		weight = 0;
	double		enough;

	memset(decision, 0, sizeof(*decision));
	if (search == NULL || place == NULL || half == NULL || range == NULL)
	{
		if (search != NULL)
			isl_search_end(search);
		free(place);
		free(half);
		free(range);
		return false;
	}
	decision->work = load->all.all_work;
	for (unsigned p = 0; p < machine->places; p++)
		weight += machine->place[p].weight > 0;
	decision->before = isl_search_cost(search);
	decision->after = find_best(search, now, place);

	if (weight > 0 && has_lost(machine, now))
		decision->moves = true;
	else if (is_worth(machine, isl_cost_all(decision->before) - isl_cost_all(decision->after),
					  isl_cost_all(decision->before), decision->work))
	{
		decision->moves = is_sure(machine, now, load, half);
		decision->unsure = !decision->moves;
	}
	if (!decision->moves)
	{
		decision->after = decision->before;
		memcpy(place, now->place, now->subs * sizeof(uint16_t));
	}

	/* without work a table is one range for each place it is at */
	enough = weight > 0 ? decision->work / (weight * RANGES_A_PLACE) : decision->work;
	while (!make_next(now, place, load->all.work, enough, next, range, &decision->finer))
	{
		if (enough > decision->work)
		{
			/* places change too often for that many: as it was */
			*next = *now;
			decision->moves = decision->finer = false;
			decision->after = decision->before;
			break;
		}
		enough = enough > 0 ? 2 * enough : 1;
	}
	list_actions(now, next, decision);
	isl_search_end(search);
	free(place);
	free(half);
	free(range);
	return true;
}
