/*-------------------------------------------------------------------------
 *
 * count.c
 *	  Schemes of ranges, and what sessions count by them.
 *
 * Counting is cheap and loses rather than waits: work is a cell for each
 * sub-range, pairs are a small hash table in which whoever finds no place in
 * a few steps is only counted as lost.  Nothing is ever cleared by
 * another process: a new scheme has a new generation, and each session
 * clears its own counts when it meets that.
 *
 *-------------------------------------------------------------------------
 */
#include "islands.h"

#include <string.h>

#define PROBES 8				/* places where a session's pair may be */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define from_big64(x) __builtin_bswap64(x)
#define from_big32(x) __builtin_bswap32(x)
#else
#define from_big64(x) (x)
#define from_big32(x) (x)
#endif

static uint32_t
pair_hash(uint32_t pair)
{
	return (pair * UINT32_C(2654435761)) >> 16;
}

/* ---------------------------------------------------------------- scheme */

/* one range [low, high), cut evenly as far as there are rows */
static bool
cut(isl_scheme *scheme, const isl_table *table, uint64_t low, uint64_t high, uint16_t place)
{
	uint64_t	from = low > table->from ? low : table->from;
	uint64_t	to = high < table->to ? high : table->to;
	uint64_t	step = to > from ? (to - from) / ISL_SUBRANGES : 0;
	unsigned	subs = step > 0 ? ISL_SUBRANGES : 1;

	if (scheme->subs + subs > ISL_MAX_SUBS)
		return false;
	for (unsigned i = 0; i < subs; i++)
	{
		unsigned	sub = scheme->subs++;

		scheme->low[sub] = i == 0 ? low : from + i * step;
		scheme->place[sub] = place;
		scheme->starts[sub] = i == 0;
	}
	return true;
}

bool
isl_scheme_add(isl_scheme *scheme, uint64_t key, uint64_t from, uint64_t to,
			   const isl_range *range, unsigned ranges)
{
	isl_table  *table = &scheme->table[scheme->tables];

	if (scheme->tables == ISL_MAX_TABLES)
		return false;
	table->key = key;
	table->from = from;
	table->to = to;
	table->first = scheme->subs;
	for (unsigned i = 0; i < ranges; i++)
	{
		uint64_t	low = i == 0 ? 0 : range[i].low;
		uint64_t	high = i + 1 < ranges ? range[i + 1].low : UINT64_MAX;

		if (!cut(scheme, table, low, high, range[i].place))
		{
			scheme->subs = table->first;
			return false;
		}
	}
	table->subs = scheme->subs - table->first;
	scheme->tables++;
	return true;
}

int
isl_scheme_find(const isl_scheme *scheme, uint64_t key)
{
	for (unsigned t = 0; t < scheme->tables; t++)
	{
		if (scheme->table[t].key == key)
			return (int) t;
	}
	return -1;
}

unsigned
isl_scheme_ranges(const isl_scheme *scheme, unsigned table, isl_range *range, unsigned room)
{
	const isl_table *t = &scheme->table[table];
	unsigned	n = 0;

	for (unsigned sub = t->first; sub < t->first + t->subs; sub++)
	{
		if (!scheme->starts[sub])
			continue;
		if (n < room)
		{
			range[n].low = scheme->low[sub];
			range[n].place = scheme->place[sub];
		}
		n++;
	}
	return n;
}

void
isl_ranges_widen(isl_range *range, unsigned *ranges, const uint8_t *bytes, unsigned fewer)
{
	unsigned	n = 0;

	for (unsigned i = 0; i < *ranges; i++)
	{
		uint64_t	low = range[i].low;

		for (unsigned b = fewer; i > 0 && b > 0; b--)
			low = (low >> 8) | ((uint64_t) bytes[b - 1] << 56);
		/* two that are the same now: the first one's place is both's */
		if (n > 0 && low <= range[n - 1].low)
			continue;
		range[n].low = low;
		range[n].place = range[i].place;
		n++;
	}
	*ranges = n;
}

uint64_t
isl_position(const uint8_t *key, size_t len, const uint8_t *common, unsigned skip)
{
	uint64_t	position = 0;
	unsigned	bits = 64;

	if (skip > 0)
	{
		size_t		n = len < skip ? len : skip;
		int			order = memcmp(key, common, n);

		/* it parts from the others before: first or last */
		if (order < 0 || (order == 0 && len < skip))
			return 0;
		if (order > 0)
			return UINT64_MAX;
	}
	key += skip;
	len -= skip;
	/* most keys have eight bytes, or four */
	if (len >= 8)
	{
		memcpy(&position, key, 8);
		return from_big64(position);
	}
	if (len >= 4)
	{
		uint32_t	four;

		memcpy(&four, key, 4);
		position = (uint64_t) from_big32(four) << 32;
		bits = 32;
		key += 4;
		len -= 4;
	}
	for (; len > 0; len--)
		position |= (uint64_t) *key++ << (bits -= 8);
	return position;
}

/* --------------------------------------------------------------- counting */

/* relaxed, here and below: one writer, and readers who want to know about how much it is */
#define GET(x)		atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, v)	atomic_store_explicit(&(x), (v), memory_order_relaxed)

void
isl_counts_clear(isl_counts *counts, uint64_t generation)
{
	/*
	 * of no generation meanwhile, so that nobody takes old numbers for new
	 * ones
	 */
	atomic_store_explicit(&counts->generation, 0, memory_order_release);
	SET(counts->transactions, 0);
	SET(counts->lost, 0);
	for (unsigned i = 0; i < counts->top; i++)
		SET(counts->work[i], 0);
	for (unsigned i = 0; i < ISL_PAIRS && counts->pairs > 0; i++)
	{
		SET(counts->pair[i].pair, 0);
		SET(counts->pair[i].bytes, 0);
	}
	counts->top = counts->pairs = 0;
	/* release: who sees the generation sees empty counts */
	atomic_store_explicit(&counts->generation, generation, memory_order_release);
}

static void
count_pair(isl_counts *counts, uint32_t a, uint32_t b, uint32_t bytes)
{
	uint32_t	pair = a > b ? a << 16 | b : b << 16 | a;
	uint32_t	at = pair_hash(pair);

	for (unsigned i = 0; i < PROBES; i++, at++)
	{
		isl_pair_count *cell = &counts->pair[at % ISL_PAIRS];
		uint32_t	there = GET(cell->pair);

		if (there == 0)
		{
			SET(cell->pair, pair);
			counts->pairs++;
		}
		if (there == 0 || there == pair)
		{
			SET(cell->bytes, GET(cell->bytes) + bytes);
			return;
		}
	}
	SET(counts->lost, GET(counts->lost) + 1);
}

void
isl_counts_add(isl_counts *counts, const isl_transaction *t)
{
	SET(counts->transactions, GET(counts->transactions) + 1);
	if (t->lost > 0)
		SET(counts->lost, GET(counts->lost) + t->lost);
	for (uint32_t i = 0; i < t->touched; i++)
	{
		uint32_t	sub = t->item[i].sub;

		if (sub >= counts->top)
			counts->top = sub + 1;
		SET(counts->work[sub], GET(counts->work[sub]) + t->item[i].work);
		if (i > 0)
			count_pair(counts, t->item[0].sub, sub, t->item[i].bytes);
	}
}

/* ------------------------------------------------------------------ trace */

void
isl_trace_clear(isl_trace *trace)
{
	memset(trace, 0, sizeof(*trace));
}

void
isl_trace_pair(isl_trace *trace, unsigned a, unsigned b, double bytes)
{
	unsigned	greater = a > b ? a : b;
	unsigned	lesser = a > b ? b : a;
	uint32_t	at = pair_hash((uint32_t) greater << 16 | lesser);

	if (greater == lesser)
		return;
	/* not more than three quarters full, so that searches stay short */
	for (;; at++)
	{
		isl_pair   *p = &trace->pair[at % ISL_MAX_PAIRS];

		if (p->a == 0)
		{
			if (trace->pairs >= ISL_MAX_PAIRS / 4 * 3)
			{
				trace->lost++;
				return;
			}
			p->a = (uint16_t) greater;
			p->b = (uint16_t) lesser;
			trace->pairs++;
		}
		if (p->a == greater && p->b == lesser)
		{
			p->bytes += bytes;
			return;
		}
	}
}

bool
isl_trace_add(isl_trace *trace, const isl_counts *counts, uint64_t generation)
{
	/*
	 * acquire: of this generation, so what was counted before it has been
	 * cleared
	 */
	if (atomic_load_explicit(&counts->generation, memory_order_acquire) != generation)
		return false;
	trace->transactions += GET(counts->transactions);
	trace->lost += GET(counts->lost);
	for (unsigned i = 0; i < ISL_MAX_SUBS; i++)
		trace->work[i] += GET(counts->work[i]);
	for (unsigned i = 0; i < ISL_PAIRS; i++)
	{
		uint32_t	pair = GET(counts->pair[i].pair);

		if (pair != 0)
			isl_trace_pair(trace, pair >> 16, pair & 0xffff, GET(counts->pair[i].bytes));
	}
	return true;
}
