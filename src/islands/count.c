/*-------------------------------------------------------------------------
 *
 * count.c
 *	  Schemes of ranges, and what sessions count by them.
 *
 * Counting is cheap and loses rather than waits: one transaction in several is
 * written down, and what there is no room for is only counted as lost.  How many are
 * left out between two is drawn without regard to what they do, so what clients do
 * in turns makes no difference.  Nothing is ever cleared by another process: a new
 * scheme has a new generation, and each session clears its own counts when it
 * meets that.
 *
 *-------------------------------------------------------------------------
 */
#include "islands.h"

#include <string.h>

/* an item: [ the first of its transaction 1 | changes 8 | reads 11 | sub-range 12 ] */
#define SUB_BITS	12
#define READ_BITS	11
#define CHANGE_BITS	8
#define MAX_READS	((1U << READ_BITS) - 1)
#define MAX_CHANGES	((1U << CHANGE_BITS) - 1)
#define FIRST		(1U << 31)

_Static_assert(ISL_MAX_SUBS <= 1 << SUB_BITS, "sub-ranges have their bits");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define from_big64(x) __builtin_bswap64(x)
#define from_big32(x) __builtin_bswap32(x)
#else
#define from_big64(x) (x)
#define from_big32(x) (x)
#endif

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
isl_scheme_ranges(const isl_scheme *scheme, unsigned table, isl_range *range)
{
	const isl_table *t = &scheme->table[table];
	unsigned	n = 0;

	for (unsigned sub = t->first; sub < t->first + t->subs; sub++)
	{
		if (!scheme->starts[sub])
			continue;
		range[n].low = scheme->low[sub];
		range[n++].place = scheme->place[sub];
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
	SET(counts->items, 0);
	counts->every = ISL_EVERY;
	/* release: who sees the generation sees empty counts */
	atomic_store_explicit(&counts->generation, generation, memory_order_release);
}

/* items of one transaction; one that has too many rows for its bits becomes several */
static unsigned
encode(const isl_transaction *t, uint32_t *item, unsigned room)
{
	unsigned	n = 0;

	for (uint32_t i = 0; i < t->touched; i++)
	{
		uint32_t	reads = t->item[i].reads;
		uint32_t	changes = t->item[i].changes;

		do
		{
			uint32_t	r = reads < MAX_READS ? reads : MAX_READS;
			uint32_t	c = changes < MAX_CHANGES ? changes : MAX_CHANGES;

			if (n == room)
				return 0;
			item[n] = c << (SUB_BITS + READ_BITS) | r << SUB_BITS | t->item[i].sub | (n == 0 ? FIRST : 0);
			n++;
			reads -= r;
			changes -= c;
		} while (reads > 0 || changes > 0);
	}
	return n;
}

static isl_item
decode(uint32_t item)
{
	return (isl_item)
	{
		.sub = item & ((1U << SUB_BITS) - 1),
			.reads = item >> SUB_BITS & MAX_READS,
			.changes = item >> (SUB_BITS + READ_BITS) & MAX_CHANGES
	};
}

/*
 * Every second transaction goes.  Who adds up meanwhile may see one twice: they
 * stand for as many as all do, so that makes little difference.
 */
static void
halve(isl_counts *counts)
{
	uint32_t	n = GET(counts->items);
	uint32_t	kept = 0;
	bool		keep = true;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	item = GET(counts->item[i]);

		if (item & FIRST)
			keep = !keep;
		if (keep)
			SET(counts->item[kept++], item);
	}
	SET(counts->items, kept);
	counts->every *= 2;
}

void
isl_counts_add(isl_counts *counts, const isl_transaction *t)
{
	uint32_t	item[ISL_LOG / 2];
	unsigned	n = encode(t, item, ISL_LOG / 2);

	SET(counts->transactions, GET(counts->transactions) + counts->left_out + 1);
	if (n == 0 || t->lost > 0)
		SET(counts->lost, GET(counts->lost) + t->lost + (n == 0));
	while (GET(counts->items) + n > ISL_LOG)
		halve(counts);
	for (unsigned i = 0; i < n; i++)
		SET(counts->item[GET(counts->items) + i], item[i]);
	/* release: who sees the number sees the items */
	atomic_store_explicit(&counts->items, GET(counts->items) + n, memory_order_release);
}

uint32_t
isl_counts_leave_out(isl_counts *counts)
{
	/* any number up to twice what is left out on average */
	counts->random = counts->random * UINT32_C(1664525) + UINT32_C(1013904223);
	counts->left_out = (uint32_t) ((uint64_t) counts->random * (2 * counts->every - 1) >> 32);
	return counts->left_out;
}

/* what is there, and how many transactions that is */
static unsigned
copy_items(const isl_counts *counts, uint32_t *item, unsigned *transactions)
{
	/* acquire: the items were written before their number */
	uint32_t	n = atomic_load_explicit(&counts->items, memory_order_acquire);

	*transactions = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		item[i] = GET(counts->item[i]);
		*transactions += item[i] >> 31;
	}
	return n;
}

static uint32_t
work_of(isl_item item)
{
	return item.reads * ISL_WORK_READ + item.changes * ISL_WORK_CHANGE;
}

unsigned
isl_counts_places(const isl_counts *counts, const isl_scheme *scheme, double *work)
{
	uint32_t	item[ISL_LOG];
	unsigned	transactions;
	unsigned	n = copy_items(counts, item, &transactions);

	memset(work, 0, (ISL_MAX_PLACES + 1) * sizeof(double));
	for (unsigned i = 0; i < n; i++)
	{
		isl_item	it = decode(item[i]);
		unsigned	place = scheme->place[it.sub];

		work[place < ISL_MAX_PLACES ? place : ISL_MAX_PLACES] += work_of(it);
	}
	return transactions;
}

/* ------------------------------------------------------------------ trace */

void
isl_trace_pair(isl_trace *trace, unsigned a, unsigned b, double bytes)
{
	unsigned	greater = a > b ? a : b;
	unsigned	lesser = a > b ? b : a;
	uint32_t	at = (((uint32_t) greater << 16 | lesser) * UINT32_C(2654435761)) >> 16;

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

static void
add_transaction(isl_trace *trace, const isl_item *item, unsigned n, double weight)
{
	double		all_work = 0;
	double		all_bytes = 0;

	for (unsigned i = 0; i < n; i++)
	{
		double		work = weight * work_of(item[i]);
		double		bytes = weight * (item[i].reads * ISL_BYTES_READ + item[i].changes * ISL_BYTES_CHANGE);

		trace->work[item[i].sub] += work;
		all_work += work;
		if (item[i].sub == item[0].sub)
			continue;
		isl_trace_pair(trace, item[0].sub, item[i].sub, bytes);
		all_bytes += bytes;
	}
	trace->counted++;
	trace->transactions += weight;
	trace->all_work += all_work;
	trace->all_bytes += all_bytes;
	trace->squares_work += all_work * all_work;
	trace->squares_bytes += all_bytes * all_bytes;
}

void
isl_load_clear(isl_load *load)
{
	memset(load, 0, sizeof(*load));
}

void
isl_load_transaction(isl_load *load, const isl_item *item, unsigned items, double weight)
{
	/* (in no turns that anybody else may have) */
	unsigned	half = load->all.counted * UINT32_C(2654435761) >> 31;

	add_transaction(&load->half[half], item, items, weight);
	add_transaction(&load->all, item, items, weight);
}

bool
isl_load_add(isl_load *load, const isl_counts *counts, uint64_t generation)
{
	uint32_t	item[ISL_LOG];
	isl_item	of_one[ISL_LOG];
	unsigned	transactions;
	unsigned	n;
	double		weight;

	/*
	 * acquire: of this generation, so what was counted before it has been
	 * cleared
	 */
	if (atomic_load_explicit(&counts->generation, memory_order_acquire) != generation)
		return false;
	load->all.lost += GET(counts->lost);
	n = copy_items(counts, item, &transactions);
	weight = transactions > 0 ? (double) GET(counts->transactions) / transactions : 0;
	for (unsigned i = 0, of = 0; i < n; i++)
	{
		of_one[of++] = decode(item[i]);
		if (i + 1 == n || (item[i + 1] & FIRST))
		{
			isl_load_transaction(load, of_one, of, weight);
			of = 0;
		}
	}
	return true;
}
