/*-------------------------------------------------------------------------
 *
 * test_count.c
 *	  Positions, schemes of ranges, and counting by them.
 *
 *-------------------------------------------------------------------------
 */
#include "islands_util.h"

static isl_scheme scheme;
static isl_counts counts;
static isl_trace trace;

static void
positions_order_as_keys(void)
{
	uint8_t		a[12] = "aaaabbbbcccc";
	uint8_t		b[12] = "aaaabbbbccdc";

	CHECK(isl_position(a, 12, a, 0) == isl_position(b, 12, a, 0));
	CHECK(isl_position(a, 12, a, 4) < isl_position(b, 12, a, 4));
	CHECK(isl_position((const uint8_t *) "\x80\0\0\7", 4, NULL, 0) == UINT64_C(0x8000000700000000));
	/* who parts before that is first or last */
	CHECK(isl_position((const uint8_t *) "aaa", 3, a, 4) == 0);
	CHECK(isl_position((const uint8_t *) "aa0abbbb", 8, a, 4) == 0);
	CHECK(isl_position((const uint8_t *) "ab", 2, a, 4) == UINT64_MAX);
	/* keys of any length, byte by byte */
	for (unsigned len = 0; len <= 12; len++)
	{
		static const uint8_t key[12] = {0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 9, 10, 11, 12};

		for (unsigned skip = 0; skip <= len; skip++)
		{
			uint64_t	position = 0;

			for (unsigned i = skip; i < skip + 8; i++)
				position = position << 8 | (i < len ? key[i] : 0);
			CHECK(isl_position(key, len, key, skip) == position);
		}
	}

	for (int i = 0; i < 10000; i++)
	{
		uint8_t		key[2][10];
		int			order;
		uint64_t	p,
					q;

		for (int k = 0; k < 2; k++)
		{
			for (int j = 0; j < 10; j++)
				key[k][j] = (uint8_t) (test_random() % 3);
		}
		order = memcmp(key[0], key[1], 10);
		p = isl_position(key[0], 10, (const uint8_t *) "\1\1", 2);
		q = isl_position(key[1], 10, (const uint8_t *) "\1\1", 2);
		CHECK(p == q || (p < q) == (order < 0));
	}
}

static void
ranges_are_cut_in_ten(void)
{
	isl_range	range[2] = {{0, 3}, {500, 1}};
	isl_range	back[4];

	memset(&scheme, 0, sizeof(scheme));
	CHECK(isl_scheme_add(&scheme, 7, 100, 1500, range, 2));
	CHECK(scheme.subs == 20 && scheme.table[0].subs == 20);
	/* 0 itself is the first one's, rows begin at 100 */
	CHECK(scheme.low[0] == 0 && scheme.low[1] == 140 && scheme.low[9] == 460);
	CHECK(scheme.low[10] == 500 && scheme.low[19] == 1400);
	CHECK(isl_scheme_ranges(&scheme, 0, back, 4) == 2);
	CHECK(back[0].place == 3 && back[1].place == 1 && back[1].low == 500);
	CHECK(sub_of(&scheme, 0, 0) == 0 && sub_of(&scheme, 0, 139) == 0 && sub_of(&scheme, 0, 140) == 1);
	CHECK(sub_of(&scheme, 0, 499) == 9 && sub_of(&scheme, 0, 500) == 10 && sub_of(&scheme, 0, UINT64_MAX) == 19);

	/* too narrow for ten; and another table beside it */
	CHECK(isl_scheme_add(&scheme, 8, 5, 9, range, 1));
	CHECK(scheme.table[1].subs == 1 && scheme.table[1].first == 20);
	CHECK(isl_scheme_find(&scheme, 8) == 1 && isl_scheme_find(&scheme, 9) == -1);
}

static void
scheme_says_when_it_is_full(void)
{
	isl_range	range[100] = {{0, 0}};
	unsigned	n = 0;

	memset(&scheme, 0, sizeof(scheme));
	for (unsigned i = 0; i < 100; i++)
		range[i].low = i * 10000;
	while (isl_scheme_add(&scheme, n, 0, 1000000, range, 100))
		n++;
	CHECK(n == ISL_MAX_SUBS / 1000 && scheme.tables == n && scheme.subs == n * 1000);
	while (isl_scheme_add(&scheme, n, 0, 1000000, range, 1))
		n++;
	CHECK(scheme.tables == 13);
}

static void
keys_in_common_become_fewer(void)
{
	isl_range	range[3] = {{0, 0}, {UINT64_C(0x1122334455667788), 1}, {UINT64_C(0x1122334455667799), 2}};
	unsigned	n = 3;

	isl_ranges_widen(range, &n, (const uint8_t *) "\xaa", 1);
	CHECK(n == 2 && range[0].low == 0 && range[0].place == 0);
	CHECK(range[1].low == UINT64_C(0xaa11223344556677) && range[1].place == 1);
}

static void
transactions_are_counted(void)
{
	isl_transaction t = {.generation = 5};

	memset(&scheme, 0, sizeof(scheme));
	scheme_table(&scheme, 1, 1, 1);
	scheme_table(&scheme, 2, 1, 1);
	isl_counts_clear(&counts, 5);
	isl_touch(&t, sub_of(&scheme, 0, 250), ISL_WORK_READ, ISL_BYTES_READ);
	isl_touch(&t, sub_of(&scheme, 1, 950), ISL_WORK_CHANGE, ISL_BYTES_CHANGE);
	isl_touch(&t, sub_of(&scheme, 0, 260), ISL_WORK_READ, ISL_BYTES_READ);
	CHECK(t.touched == 2);
	for (int i = 0; i < 3; i++)
		isl_counts_add(&counts, &t);

	isl_trace_clear(&trace);
	CHECK(!isl_trace_add(&trace, &counts, 4));
	CHECK(isl_trace_add(&trace, &counts, 5));
	CHECK(isl_trace_add(&trace, &counts, 5));	/* another session, the same */
	CHECK(trace.transactions == 6 && trace.lost == 0);
	CHECK(trace.work[2] == 6 * 2 * ISL_WORK_READ && trace.work[19] == 6 * ISL_WORK_CHANGE);
	CHECK(trace.pairs == 1);
	for (unsigned i = 0; i < ISL_MAX_PAIRS; i++)
	{
		if (trace.pair[i].a != 0)
			CHECK(trace.pair[i].a == 19 && trace.pair[i].b == 2 && trace.pair[i].bytes == 6 * ISL_BYTES_CHANGE);
	}
	isl_counts_clear(&counts, 6);
	isl_trace_clear(&trace);
	CHECK(isl_trace_add(&trace, &counts, 6) && trace.transactions == 0 && trace.pairs == 0 && trace.work[2] == 0);
}

/* nothing waits or grows: what there is no room for is counted */
static void
memory_is_bounded(void)
{
	isl_transaction t = {.generation = 1};
	uint64_t	pairs = 0;

	isl_counts_clear(&counts, 1);
	for (unsigned i = 0; i < 40; i++)
		isl_touch(&t, i * 7, 1, 1);
	CHECK(t.touched == ISL_TOUCHED && t.lost == 8);
	isl_counts_add(&counts, &t);
	CHECK(atomic_load(&counts.lost) == 8);

	isl_counts_clear(&counts, 1);
	for (unsigned i = 0; i < 20000; i++)
	{
		isl_transaction two = {.generation = 1};

		isl_touch(&two, (unsigned) (test_random() % ISL_MAX_SUBS), 1, 1);
		isl_touch(&two, (unsigned) (test_random() % ISL_MAX_SUBS), 1, 1);
		if (two.touched == 2)
			pairs++;
		isl_counts_add(&counts, &two);
	}
	isl_trace_clear(&trace);
	CHECK(isl_trace_add(&trace, &counts, 1));
	CHECK(trace.pairs > ISL_PAIRS / 4 * 3 && trace.pairs <= ISL_PAIRS);
	for (unsigned i = 0; i < ISL_MAX_PAIRS; i++)
		pairs -= (uint64_t) trace.pair[i].bytes;
	CHECK(pairs == trace.lost);

	isl_trace_clear(&trace);
	for (unsigned i = 0; i < 40000; i++)
		isl_trace_pair(&trace, (unsigned) (test_random() % ISL_MAX_SUBS), (unsigned) (test_random() % ISL_MAX_SUBS), 1);
	CHECK(trace.pairs == ISL_MAX_PAIRS / 4 * 3 && trace.lost > 20000);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(positions_order_as_keys);
	RUN(ranges_are_cut_in_ten);
	RUN(scheme_says_when_it_is_full);
	RUN(keys_in_common_become_fewer);
	RUN(transactions_are_counted);
	RUN(memory_is_bounded);
	return test_end();
}
