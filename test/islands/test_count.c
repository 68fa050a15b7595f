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
static isl_load load;

static void
positions_order_as_keys(void)
{
	uint8_t		a[12] = {'a', 'a', 'a', 'a', 'b', 'b', 'b', 'b', 'c', 'c', 'c', 'c'};
	uint8_t		b[12] = {'a', 'a', 'a', 'a', 'b', 'b', 'b', 'b', 'c', 'c', 'd', 'c'};

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
	CHECK(isl_scheme_ranges(&scheme, 0, back) == 2);
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
	double		work[ISL_MAX_PLACES + 1];
	isl_range	range = {0, 3};

	memset(&scheme, 0, sizeof(scheme));
	scheme_table(&scheme, 1, 1, 1);
	REQUIRE(isl_scheme_add(&scheme, 2, 0, 1000, &range, 1));
	isl_counts_clear(&counts, 5);
	isl_touch(&t, sub_of(&scheme, 0, 250), 1, false);
	isl_touch(&t, sub_of(&scheme, 1, 950), 1, true);
	isl_touch(&t, sub_of(&scheme, 0, 260), 1, false);
	CHECK(t.touched == 2);
	for (int i = 0; i < 3; i++)
		isl_counts_add(&counts, &t);
	CHECK(isl_counts_places(&counts, &scheme, work) == 3);
	CHECK(work[0] == 3 * 2 * ISL_WORK_READ && work[3] == 3 * ISL_WORK_CHANGE);
	/* and one that stands for two others, too */
	counts.left_out = 2;
	isl_counts_add(&counts, &t);

	isl_load_clear(&load);
	CHECK(!isl_load_add(&load, &counts, 4));
	CHECK(isl_load_add(&load, &counts, 5));
	CHECK(isl_load_add(&load, &counts, 5)); /* another session, the same */
	CHECK(load.all.transactions == 12 && load.all.counted == 8 && load.all.lost == 0);
	CHECK(load.half[0].counted + load.half[1].counted == 8 && load.half[0].counted > 2 && load.half[1].counted > 2);
	CHECK(load.all.work[2] == 12 * 2 * ISL_WORK_READ && load.all.work[19] == 12 * ISL_WORK_CHANGE);
	CHECK(load.all.pairs == 1);
	for (unsigned i = 0; i < ISL_MAX_PAIRS; i++)
	{
		const isl_pair *p = &load.all.pair[i];

		if (p->a != 0)
			CHECK(p->a == 19 && p->b == 2 && p->bytes == 12 * ISL_BYTES_CHANGE);
	}
	isl_counts_clear(&counts, 6);
	isl_load_clear(&load);
	CHECK(isl_load_add(&load, &counts, 6) && load.all.transactions == 0 && load.all.pairs == 0 && load.all.work[2] == 0);
}

/* many rows of one sub-range are as many, whatever an item has room for */
static void
large_ones_are_whole(void)
{
	isl_transaction t = {.generation = 1};

	isl_counts_clear(&counts, 1);
	counts.left_out = 0;
	isl_touch(&t, 4095, 100000, false);
	isl_touch(&t, 4095, 1000, true);
	isl_touch(&t, 0, 3000, true);
	isl_counts_add(&counts, &t);
	isl_load_clear(&load);
	CHECK(isl_load_add(&load, &counts, 1) && load.all.counted == 1 && load.all.pairs == 1);
	CHECK(load.all.work[4095] == 100000 * ISL_WORK_READ + 1000 * ISL_WORK_CHANGE);
	CHECK(load.all.work[0] == 3000 * ISL_WORK_CHANGE && load.all.all_bytes == 3000 * ISL_BYTES_CHANGE);
}

/* clients do things in turns, of any length: each gets its part, whether the log has room or not */
static void
sample_is_like_all(void)
{
	for (unsigned kinds = 2; kinds <= 17; kinds++)
	{
		unsigned	counted = 0;
		uint32_t	left_out = 0;
		unsigned	n = 4000000;

		isl_counts_clear(&counts, 1);
		counts.random = kinds;
		counts.left_out = 0;
		isl_load_clear(&load);
		for (unsigned i = 0; i < n; i++)
		{
			isl_transaction t = {.generation = 1};

			if (left_out > 0)
			{
				left_out--;
				continue;
			}
			isl_touch(&t, i % kinds, 1, false);
			isl_counts_add(&counts, &t);
			left_out = isl_counts_leave_out(&counts);
			counted++;
			/* an interval is over now and then */
			if (counts.every > 64)
			{
				CHECK(isl_load_add(&load, &counts, 1));
				isl_counts_clear(&counts, 1);
			}
		}
		CHECK(isl_load_add(&load, &counts, 1));
		CHECK(counted < n / ISL_EVERY && load.all.counted > 20000);
		CHECK(fabs(load.all.transactions - n) < 1000);
		for (unsigned k = 0; k < kinds; k++)
		{
			double		part = (double) n / kinds;

			CHECK(fabs(load.all.work[k] - part) < 6 * part / sqrt((double) load.all.counted / kinds));
		}
	}
	/* one in eight while there is room */
	isl_counts_clear(&counts, 1);
	{
		double		sum = 0;

		for (int i = 0; i < 100000; i++)
			sum += isl_counts_leave_out(&counts) + 1;
		CHECK(fabs(sum / 100000 - ISL_EVERY) < 0.1);
	}
}

/* nothing waits or grows: what there is no room for is counted */
static void
memory_is_bounded(void)
{
	isl_transaction t = {.generation = 1};

	isl_counts_clear(&counts, 1);
	counts.left_out = 0;
	for (unsigned i = 0; i < 40; i++)
		isl_touch(&t, i * 7, 1, false);
	CHECK(t.touched == ISL_TOUCHED && t.lost == 8);
	isl_counts_add(&counts, &t);
	CHECK(atomic_load(&counts.lost) == 8);

	/* one that is too long is lost, and alone */
	t.touched = 1;
	t.lost = 0;
	t.item[0].changes = 1000000;
	isl_counts_add(&counts, &t);
	CHECK(atomic_load(&counts.lost) == 9 && counts.every == ISL_EVERY);
	t.item[0].changes = 200000;
	for (unsigned i = 0; i < 100; i++)
		isl_counts_add(&counts, &t);
	isl_load_clear(&load);
	CHECK(isl_load_add(&load, &counts, 1) && load.all.counted > 0 && atomic_load(&counts.items) <= ISL_LOG);
	/* those in the log stand for them all */
	CHECK(fabs(load.all.transactions - 102) < 0.001);

	isl_load_clear(&load);
	for (unsigned i = 0; i < 40000; i++)
		isl_trace_pair(&load.all, (unsigned) (test_random() % ISL_MAX_SUBS), (unsigned) (test_random() % ISL_MAX_SUBS), 1);
	CHECK(load.all.pairs == ISL_MAX_PAIRS / 4 * 3 && load.all.lost > 20000);
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
	RUN(large_ones_are_whole);
	RUN(sample_is_like_all);
	RUN(memory_is_bounded);
	return test_end();
}
