/*-------------------------------------------------------------------------
 *
 * search.c
 *	  The two costs, and the two greedy searches for a scheme with lower ones.
 *
 * First the partitioning: places are filled with sub-ranges, in the order of
 * their keys, up to each place's share (all tables one after another, or each table
 * by itself over all places, which is the paper's first placement); then
 * single sub-ranges go to the least used place while that helps
 * (isl_search_balance).  Then the placement: for each pair of sub-ranges that
 * transactions use together, the most costly first, one of them goes to the other's
 * node, or changes places with one that is there (isl_search_gather).  Each step is
 * taken only if the sum of both costs falls, so neither search raises it.
 *
 * What a step would change is known without going through all pairs: for each
 * sub-range and node it is kept what its pairs would cost if it were there
 * ("pull"), and a step brings that up to date for its neighbours only.
 *
 * Everything goes in the order of numbers, so the same trace has the same
 * outcome.
 *
 *-------------------------------------------------------------------------
 */
#include "islands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_GAIN	0.0002		/* a step's, in parts of all work: less is not
								 * worth a range */
#define PASSES		8			/* over the pairs */
#define PASS_PAIRS	2048		/* the most costly ones */

typedef struct edge
{
	uint32_t	other;
	double		weight;			/* work, over distance 1 */
} edge;

typedef struct heavy
{
	uint32_t	a,
				b;
	double		weight;
} heavy;

struct isl_search
{
	const isl_machine *machine;
	const isl_scheme *scheme;
	const double *work;
	double		lump_work;		/* of a transaction that was counted, weighed
								 * by itself: variance of a unit */
	double		lump_sync;
	unsigned	subs;
	unsigned	nodes;			/* and one more: nowhere */
	double		distance[ISL_MAX_NODES + 1][ISL_MAX_NODES + 1];
	double		weight;			/* of all places */
	double		total;			/* work */
	double		least;			/* gain of a step */
	double		use[ISL_MAX_PLACES];
	double		nowhere;		/* work that is at no place */
	uint16_t   *place;
	uint32_t   *first;			/* of a sub-range's edges; one more than there
								 * are */
	edge	   *edges;
	double	   *pull;			/* [sub][node] */
	heavy	   *pairs;			/* by weight */
	unsigned	npairs;
};

static bool
place_is_there(const isl_machine *machine, unsigned place)
{
	return place < machine->places && machine->place[place].weight > 0;
}

static unsigned
node_of(const isl_search *s, unsigned place)
{
	return place_is_there(s->machine, place) ? s->machine->place[place].node : s->nodes;
}

static double *
pulls(const isl_search *s, unsigned sub)
{
	return s->pull + (size_t) sub * (s->nodes + 1);
}

/* what is nowhere is as far away as nodes that are there are on average, itself included */
static void
measure_distances(isl_search *s)
{
	const isl_machine *m = s->machine;
	double		part[ISL_MAX_NODES] = {0};
	double		mean = 0;

	for (unsigned p = 0; p < m->places; p++)
	{
		s->weight += m->place[p].weight;
		part[m->place[p].node] += m->place[p].weight;
	}
	for (unsigned a = 0; a < s->nodes; a++)
	{
		double		sum = 0;

		for (unsigned b = 0; b < s->nodes; b++)
		{
			s->distance[a][b] = m->distance[a][b];
			if (s->weight > 0)
				sum += m->distance[a][b] * part[b] / s->weight;
		}
		s->distance[a][s->nodes] = s->distance[s->nodes][a] = sum;
		if (s->weight > 0)
			mean += sum * part[a] / s->weight;
	}
	s->distance[s->nodes][s->nodes] = mean;
}

static int
by_weight(const void *x, const void *y)
{
	const heavy *a = x;
	const heavy *b = y;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return a->b < b->b ? -1 : a->b > b->b;
}

/* pairs as a list by weight, and each sub-range's edges */
static void
read_pairs(isl_search *s, const isl_trace *trace)
{
	uint32_t   *at;

	for (unsigned i = 0; i < ISL_MAX_PAIRS; i++)
	{
		const isl_pair *p = &trace->pair[i];

		if (p->a == 0 || p->a >= s->subs)
			continue;
		s->pairs[s->npairs++] = (heavy)
		{
			p->a, p->b, p->bytes * s->machine->byte_work
		};
		s->first[p->a + 1]++;
		s->first[p->b + 1]++;
	}
	qsort(s->pairs, s->npairs, sizeof(heavy), by_weight);

	for (unsigned i = 0; i < s->subs; i++)
		s->first[i + 1] += s->first[i];
	/* first[] serves as the place of the next one, and is put back */
	at = s->first;
	for (unsigned i = 0; i < s->npairs; i++)
	{
		heavy	   *p = &s->pairs[i];

		s->edges[at[p->a]++] = (edge)
		{
			p->b, p->weight
		};
		s->edges[at[p->b]++] = (edge)
		{
			p->a, p->weight
		};
	}
	memmove(at + 1, at, s->subs * sizeof(uint32_t));
	at[0] = 0;
}

isl_search *
isl_search_begin(const isl_machine *machine, const isl_scheme *scheme, const isl_trace *trace)
{
	isl_search *s = calloc(1, sizeof(isl_search));
	unsigned	n = scheme->subs;

	if (s == NULL)
		return NULL;
	s->machine = machine;
	s->scheme = scheme;
	s->work = trace->work;
	s->lump_work = trace->all_work > 0 ? trace->squares_work / trace->all_work : 0;
	s->lump_sync = trace->all_bytes > 0 ? trace->squares_bytes / trace->all_bytes * machine->byte_work : 0;
	s->subs = n;
	s->nodes = machine->nodes;
	s->place = calloc(n + 1, sizeof(uint16_t));
	s->first = calloc(n + 2, sizeof(uint32_t));
	s->edges = calloc(2 * trace->pairs + 1, sizeof(edge));
	s->pairs = calloc(trace->pairs + 1, sizeof(heavy));
	s->pull = calloc((size_t) (n + 1) * (s->nodes + 1), sizeof(double));
	if (s->place == NULL || s->first == NULL || s->edges == NULL || s->pairs == NULL || s->pull == NULL)
	{
		isl_search_end(s);
		return NULL;
	}
	measure_distances(s);
	for (unsigned i = 0; i < n; i++)
		s->total += s->work[i];
	s->least = s->total * LEAST_GAIN;
	read_pairs(s, trace);
	isl_search_set(s, scheme->place);
	return s;
}

void
isl_search_end(isl_search *s)
{
	free(s->place);
	free(s->first);
	free(s->edges);
	free(s->pairs);
	free(s->pull);
	free(s);
}

/* ------------------------------------------------------------------ costs */

void
isl_search_set(isl_search *s, const uint16_t *place)
{
	memset(s->use, 0, sizeof(s->use));
	s->nowhere = 0;
	for (unsigned i = 0; i < s->subs; i++)
	{
		s->place[i] = place_is_there(s->machine, place[i]) ? place[i] : ISL_NOWHERE;
		if (s->place[i] == ISL_NOWHERE)
			s->nowhere += s->work[i];
		else
			s->use[s->place[i]] += s->work[i];
	}
	for (unsigned i = 0; i < s->subs; i++)
	{
		double	   *pull = pulls(s, i);

		memset(pull, 0, (s->nodes + 1) * sizeof(double));
		for (uint32_t e = s->first[i]; e < s->first[i + 1]; e++)
		{
			unsigned	there = node_of(s, s->place[s->edges[e].other]);

			for (unsigned n = 0; n <= s->nodes; n++)
				pull[n] += s->edges[e].weight * s->distance[n][there];
		}
	}
}

const uint16_t *
isl_search_get(const isl_search *s)
{
	return s->place;
}

/* a place's work above its share of what is at places at all */
static double
above(const isl_search *s, unsigned place)
{
	return s->use[place] - (s->total - s->nowhere) * s->machine->place[place].weight / s->weight;
}

static double
use_cost(const isl_search *s)
{
	double		sum = 0;

	if (s->weight <= 0)
		return 0;
	for (unsigned p = 0; p < s->machine->places; p++)
		sum += fabs(above(s, p));
	return sum * s->machine->use_work;
}

isl_cost
isl_search_cost(const isl_search *s)
{
	isl_cost	cost = {.use = use_cost(s)};

	for (unsigned i = 0; i < s->npairs; i++)
	{
		const heavy *p = &s->pairs[i];

		cost.sync += p->weight * s->distance[node_of(s, s->place[p->a])][node_of(s, s->place[p->b])];
	}
	return cost;
}

isl_cost
isl_cost_of(const isl_machine *machine, const isl_scheme *scheme, const isl_trace *trace)
{
	isl_search *s = isl_search_begin(machine, scheme, trace);
	isl_cost	cost = {0, 0};

	if (s != NULL)
	{
		cost = isl_search_cost(s);
		isl_search_end(s);
	}
	return cost;
}

/*
 * How uneven work is at each place, but for what chance makes of it: that has a variance, too,
 * which is in the square of what is seen.
 */
static double
surely_uneven(const isl_search *s, double *sign)
{
	double		sum = 0;

	for (unsigned p = 0; p < s->machine->places; p++)
	{
		double		seen = s->weight > 0 ? above(s, p) : 0;
		double		square = seen * seen - s->use[p] * s->lump_work;

		sign[p] = square <= 0 ? 0 : seen > 0 ? 1 : -1;
		sum += square <= 0 ? 0 : sqrt(square);
	}
	return sum * s->machine->use_work;
}

/*
 * The gain is a sum over what transactions do, of which those that were counted
 * are drawn by chance: each unit of work that changes what it costs by so
 * much adds that squared, as often as it came in one lump, to its variance.
 */
double
isl_search_gain(isl_search *s, const uint16_t *before, const uint16_t *after, double *error)
{
	double		sign[2][ISL_MAX_PLACES];
	double		gain;
	double		variance = 0;

	isl_search_set(s, after);
	gain = -surely_uneven(s, sign[1]);
	isl_search_set(s, before);
	gain += surely_uneven(s, sign[0]);
	for (unsigned i = 0; i < s->subs; i++)
	{
		double		change = place_is_there(s->machine, before[i]) ? sign[0][before[i]] : 0;

		if (place_is_there(s->machine, after[i]))
			change -= sign[1][after[i]];
		change *= s->machine->use_work;
		variance += s->work[i] * s->lump_work * change * change;
	}
	for (unsigned i = 0; i < s->npairs; i++)
	{
		const heavy *p = &s->pairs[i];
		double		change = s->distance[node_of(s, before[p->a])][node_of(s, before[p->b])];

		change -= s->distance[node_of(s, after[p->a])][node_of(s, after[p->b])];
		gain += p->weight * change;
		variance += p->weight * s->lump_sync * change * change;
	}
	*error = sqrt(variance);
	return gain;
}

/* ------------------------------------------------------------------ steps */

static void
put(isl_search *s, unsigned sub, unsigned place)
{
	unsigned	from = node_of(s, s->place[sub]);
	unsigned	to = node_of(s, place);

	if (s->place[sub] == ISL_NOWHERE)
		s->nowhere -= s->work[sub];
	else
		s->use[s->place[sub]] -= s->work[sub];
	s->place[sub] = (uint16_t) place;
	s->use[place] += s->work[sub];
	if (from == to)
		return;
	for (uint32_t e = s->first[sub]; e < s->first[sub + 1]; e++)
	{
		double	   *pull = pulls(s, s->edges[e].other);

		for (unsigned n = 0; n <= s->nodes; n++)
			pull[n] += s->edges[e].weight * (s->distance[n][to] - s->distance[n][from]);
	}
}

/* how RU changes if so much work goes from one place to another; both are places */
static double
use_change(const isl_search *s, unsigned from, unsigned to, double work)
{
	double		a = above(s, from);
	double		b = above(s, to);

	if (from == to)
		return 0;
	return (fabs(a - work) - fabs(a) + fabs(b + work) - fabs(b)) * s->machine->use_work;
}

static double
sync_change(const isl_search *s, unsigned sub, unsigned node)
{
	const double *pull = pulls(s, sub);

	return pull[node] - pull[node_of(s, s->place[sub])];
}

static double
weight_between(const isl_search *s, unsigned a, unsigned b)
{
	for (uint32_t e = s->first[a]; e < s->first[a + 1]; e++)
	{
		if (s->edges[e].other == b)
			return s->edges[e].weight;
	}
	return 0;
}

/* the place with the most to spare, of one node or (node < 0) of all; ISL_NOWHERE: there is none */
static unsigned
least_used(const isl_search *s, int node)
{
	unsigned	best = ISL_NOWHERE;

	for (unsigned p = 0; p < s->machine->places; p++)
	{
		if (!place_is_there(s->machine, p) || (node >= 0 && s->machine->place[p].node != node))
			continue;
		if (best == ISL_NOWHERE || above(s, p) < above(s, best))
			best = p;
	}
	return best;
}

/* --------------------------------------------------------------- searches */

static unsigned
next_place(const isl_search *s, unsigned place)
{
	do
		place++;
	while (place < s->machine->places && !place_is_there(s->machine, place));
	return place;
}

static double
work_of(const isl_search *s, const isl_table *table)
{
	double		sum = 0;

	for (unsigned i = table->first; i < table->first + table->subs; i++)
		sum += s->work[i];
	return sum;
}

/*
 * a table's sub-ranges, in their order, to places up to their shares of "total"; goes on where the
 * last one came to
 */
typedef struct filling
{
	unsigned	place;
	double		filled;
	double share;
} filling;

static void
fill(isl_search *s, const isl_table *table, double total, filling *f)
{
	for (unsigned i = table->first; i < table->first + table->subs; i++)
	{
		/* half of it is beyond: it is the next place's */
		while (f->filled + s->work[i] / 2 > f->share &&next_place(s, f->place) < s->machine->places)
		{
			f->place = next_place(s, f->place);
			f->share +=total * s->machine->place[f->place].weight / s->weight;
		}
		f->filled += s->work[i];
		put(s, i, f->place);
	}
}

static filling
fill_begin(const isl_search *s, double total)
{
	filling		f = {.place = next_place(s, (unsigned) -1)};

	f.share = total * s->machine->place[f.place].weight / s->weight;
	return f;
}

/* tables that nobody works on stay where they are: whoever will has not said with what */
void
isl_search_fill(isl_search *s, bool by_table)
{
	filling		f;

	if (s->weight <= 0)
		return;
	f = fill_begin(s, s->total);
	for (unsigned t = 0; t < s->scheme->tables; t++)
	{
		const isl_table *table = &s->scheme->table[t];
		double		work = work_of(s, table);

		if (work <= 0)
			continue;
		if (by_table)
			f = fill_begin(s, work);
		fill(s, table, by_table ? work : s->total, &f);
	}
}

/* where it costs least */
static unsigned
best_place(const isl_search *s, unsigned sub)
{
	unsigned	best = ISL_NOWHERE;
	double		least = 0;

	for (unsigned n = 0; n < s->nodes; n++)
	{
		unsigned	place = least_used(s, (int) n);
		double		cost;

		if (place == ISL_NOWHERE)
			continue;
		cost = pulls(s, sub)[n] +
			(fabs(above(s, place) + s->work[sub]) - fabs(above(s, place))) * s->machine->use_work;
		if (best == ISL_NOWHERE || cost < least)
		{
			best = place;
			least = cost;
		}
	}
	return best;
}

/* the heaviest first; those without work where the one before is */
void
isl_search_rescue(isl_search *s)
{
	for (;;)
	{
		unsigned	found = s->subs;

		for (unsigned i = 0; i < s->subs; i++)
		{
			if (s->place[i] == ISL_NOWHERE && s->work[i] > 0 &&
				(found == s->subs || s->work[i] > s->work[found]))
				found = i;
		}
		if (found == s->subs || s->weight <= 0)
			break;
		put(s, found, best_place(s, found));
	}
	for (unsigned t = 0; t < s->scheme->tables && s->weight > 0; t++)
	{
		const isl_table *table = &s->scheme->table[t];

		for (unsigned i = table->first; i < table->first + table->subs; i++)
		{
			if (s->place[i] == ISL_NOWHERE)
				put(s, i, i > table->first ? s->place[i - 1] : best_place(s, i));
		}
	}
}

void
isl_search_balance(isl_search *s)
{
	for (unsigned steps = 0; steps < 2 * s->subs; steps++)
	{
		unsigned	to = least_used(s, -1);
		unsigned	best = s->subs;
		double		gain = -s->least;

		if (to == ISL_NOWHERE)
			return;
		for (unsigned i = 0; i < s->subs; i++)
		{
			double		change;

			if (s->work[i] <= 0 || s->place[i] == ISL_NOWHERE || above(s, s->place[i]) <= 0)
				continue;
			change = use_change(s, s->place[i], to, s->work[i]);
			if (change >= 0)
				continue;
			change += sync_change(s, i, s->machine->place[to].node);
			if (change < gain)
			{
				best = i;
				gain = change;
			}
		}
		if (best == s->subs)
			return;
		put(s, best, to);
	}
}

/* "sub" to the node, alone or in exchange for one that is there, whatever lowers the cost most */
static bool
bring(isl_search *s, unsigned sub, unsigned node)
{
	unsigned	from = s->place[sub];
	unsigned	to = least_used(s, (int) node);
	unsigned	partner = s->subs;
	double		sync = sync_change(s, sub, node);
	double		gain = -s->least;
	double		change;

	if (from == ISL_NOWHERE || to == ISL_NOWHERE || sync >= 0)
		return false;
	change = use_change(s, from, to, s->work[sub]) + sync;
	if (change < gain)
		gain = change;
	else
		to = ISL_NOWHERE;

	for (unsigned i = 0; i < s->subs; i++)
	{
		double		other;

		if (s->place[i] == ISL_NOWHERE || s->machine->place[s->place[i]].node != node)
			continue;
		change = use_change(s, from, s->place[i], s->work[sub] - s->work[i]) + sync;
		if (change >= gain)
			continue;
		other = sync_change(s, i, node_of(s, from));
		if (change + other >= gain)
			continue;
		/* what the two have with each other stays as it was */
		change += other + 2 * weight_between(s, i, sub) * s->distance[node][node_of(s, from)];
		if (change < gain)
		{
			gain = change;
			partner = i;
		}
	}
	if (partner < s->subs)
		to = s->place[partner];
	if (to == ISL_NOWHERE)
		return false;
	put(s, sub, to);
	if (partner < s->subs)
		put(s, partner, from);
	return true;
}

void
isl_search_gather(isl_search *s)
{
	bool		better = true;

	for (unsigned pass = 0; pass < PASSES && better; pass++)
	{
		better = false;
		for (unsigned i = 0; i < s->npairs && i < PASS_PAIRS; i++)
		{
			const heavy *p = &s->pairs[i];
			unsigned	a = node_of(s, s->place[p->a]);
			unsigned	b = node_of(s, s->place[p->b]);

			if (a == b || a == s->nodes || b == s->nodes)
				continue;
			if (bring(s, p->a, b) || bring(s, p->b, a))
				better = true;
		}
	}
}
