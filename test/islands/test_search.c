/*-------------------------------------------------------------------------
 *
 * test_search.c
 *	  The two costs, the two searches and decisions: the paper's examples, and what
 *	  must be so for any load.
 *
 *-------------------------------------------------------------------------
 */
#include "islands_util.h"

static isl_machine machine;
static isl_scheme scheme;
static isl_scheme next;
static isl_load load;
static isl_decision decision;

static void
begin(void)
{
	memset(&scheme, 0, sizeof(scheme));
	isl_load_clear(&load);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * (1 + fabs(a) + fabs(b));
}

/* RU = sum |work at c - mean|; TS = (distinct sockets - 1) x distance x bytes */
static void
costs_are_the_paper_s(void)
{
	isl_cost	cost;

	begin();
	machine_make(&machine, 2, 2, 1);
	machine.distance[0][1] = machine.distance[1][0] = 3;
	scheme_table(&scheme, 1, 4, 4);
	load.all.work[sub_of(&scheme, 0, 0)] = 40;
	load.all.work[sub_of(&scheme, 0, 300)] = 20;
	load.all.work[sub_of(&scheme, 0, 900)] = 20;
	isl_trace_pair(&load.all, sub_of(&scheme, 0, 0), sub_of(&scheme, 0, 300), 1000);	/* one socket: costs
																						 * nothing */
	isl_trace_pair(&load.all, sub_of(&scheme, 0, 0), sub_of(&scheme, 0, 900), 10);
	cost = isl_cost_of(&machine, &scheme, &load.all);
	/* 40, 20, 0, 20 at four cores */
	CHECK(near(cost.use, 20 + 0 + 20 + 0));
	CHECK(near(cost.sync, 1 * 3 * 10));

	/* a core that can do twice as much has twice the share */
	machine.place[0].weight = 2;
	cost = isl_cost_of(&machine, &scheme, &load.all);
	CHECK(near(cost.use, 8 + 4 + 16 + 4));
}

/* what is nowhere is everywhere */
static void
nowhere_costs_the_mean(void)
{
	isl_cost	cost;

	begin();
	machine_make(&machine, 4, 1, 1);
	scheme_table(&scheme, 1, 1, 0);
	load.all.work[0] = 100;
	load.all.work[5] = 60;
	isl_trace_pair(&load.all, 0, 5, 8);
	cost = isl_cost_of(&machine, &scheme, &load.all);
	CHECK(near(cost.use, 0) && near(cost.sync, 8 * 0.75));

	/* so is what is at a place that is lost */
	memset(scheme.place, 0, sizeof(scheme.place));
	machine.place[0].weight = 0;
	cost = isl_cost_of(&machine, &scheme, &load.all);
	CHECK(near(cost.use, 0) && near(cost.sync, 8 * 2.0 / 3));
}

/*
 * The paper's first example: a transaction reads a row of A and the row of B
 * that depends on it.  Partitions of both are spread over cores; rows that go together
 * must come to one socket, and each core gets its share.
 */
static void
dependent_tables_meet(void)
{
	unsigned	apart = 0;

	begin();
	machine_make(&machine, 4, 2, 0.001);
	scheme_table(&scheme, 1, 8, 8);
	{
		/* B lies the other way round */
		isl_range	range[8];

		for (unsigned i = 0; i < 8; i++)
		{
			range[i].low = i * 125;
			range[i].place = (uint16_t) (7 - i);
		}
		REQUIRE(isl_scheme_add(&scheme, 2, 0, 1000, range, 8));
	}
	for (unsigned i = 0; i < 1000; i++)
		run_pair(&load, &scheme, 0, i, 1, i);
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(decision.moves);
	CHECK(decision.before.sync > 0 && decision.after.sync < 0.05 * decision.before.sync);
	CHECK(decision.after.use < 0.05 * decision.work);
	for (unsigned i = 0; i < 1000; i++)
		apart += machine.place[place_of(&next, 0, i)].node != machine.place[place_of(&next, 1, i)].node;
	CHECK(apart < 50);
	CHECK(actions_lead(&scheme, &next, &decision));
}

/* half of the requests go to a fifth of the data: it gets more places, the rest fewer */
static void
skew_is_spread(void)
{
	double		work[8] = {0};

	begin();
	machine_make(&machine, 8, 1, 0.001);
	scheme_table(&scheme, 1, 8, 8);
	for (int round = 0; round < 4; round++)
	{
		isl_load_clear(&load);
		for (unsigned i = 0; i < 10000; i++)
		{
			unsigned	p = (unsigned) (i % 2 ? test_random() % 200 : 200 + test_random() % 800);

			run_one(&load, &scheme, 0, p, 1);
		}
		REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
		if (round == 0)
			CHECK(decision.moves && decision.after.use < decision.before.use / 3);
		CHECK(actions_lead(&scheme, &next, &decision));
		scheme = next;
	}
	for (unsigned i = 0; i < 10000; i++)
		work[place_of(&scheme, 0, i % 2 ? i % 200 : 200 + i % 800)] += 1;
	for (int p = 0; p < 8; p++)
		CHECK(work[p] > 900 && work[p] < 1600);
}

/* one row that is hot comes into a range of its own, in a few steps */
static void
hot_spot_is_found(void)
{
	begin();
	machine_make(&machine, 2, 1, 0.001);
	scheme_table(&scheme, 1, 1, 1);
	for (int round = 0; round < 5; round++)
	{
		isl_load_clear(&load);
		for (unsigned i = 0; i < 1000; i++)
		{
			run_one(&load, &scheme, 0, 333, 0.5);
			run_one(&load, &scheme, 0, test_random() % 1000, 0.5);
		}
		REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
		scheme = next;
	}
	CHECK(place_of(&scheme, 0, 333) != place_of(&scheme, 0, 900));
	CHECK(place_of(&scheme, 0, 100) == place_of(&scheme, 0, 900));
	CHECK(decision.after.use < 0.2 * decision.work);
}

/* two tables, each used by its own transactions, two rows at a time: a node each */
static void
tables_of_two_groups_part(void)
{
	begin();
	machine_make(&machine, 2, 1, 0.001);
	scheme_table(&scheme, 1, 1, 0);
	scheme_table(&scheme, 2, 1, 0);
	for (unsigned i = 0; i < 5000; i++)
	{
		unsigned	table = i % 2;

		run_pair(&load, &scheme, table, test_random() % 1000, table, test_random() % 1000);
	}
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(decision.moves && near(decision.after.sync, 0));
	for (unsigned i = 1; i < 1000; i++)
		CHECK(place_of(&next, 0, i) == place_of(&next, 0, 0) && place_of(&next, 1, i) == place_of(&next, 1, 0));
	CHECK(place_of(&next, 0, 0) != place_of(&next, 1, 0));
	CHECK(actions_lead(&scheme, &next, &decision));

	/* and once it is so, nothing moves any more */
	scheme = next;
	isl_load_clear(&load);
	for (unsigned i = 0; i < 5000; i++)
		run_pair(&load, &scheme, i % 2, test_random() % 1000, i % 2, test_random() % 1000);
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(!decision.moves);
}

/* a table that nobody works on stays where it is */
static void
idle_tables_stay(void)
{
	begin();
	machine_make(&machine, 4, 1, 0.001);
	scheme_table(&scheme, 1, 4, 1);
	scheme_table(&scheme, 2, 4, 4);
	for (unsigned i = 0; i < 1000; i++)
		run_one(&load, &scheme, 0, i, 1);
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(decision.moves);
	for (unsigned i = 0; i < 1000; i++)
		CHECK(place_of(&next, 1, i) == place_of(&scheme, 1, i));
}

static void
lost_place_is_left(void)
{
	begin();
	machine_make(&machine, 8, 1, 0.001);
	scheme_table(&scheme, 1, 8, 8);
	for (unsigned i = 0; i < 1000; i++)
		run_one(&load, &scheme, 0, i, 1);
	machine.place[3].weight = 0;
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(decision.moves);
	for (unsigned i = 0; i < next.subs; i++)
		CHECK(next.place[i] != 3 && next.place[i] < 8);
	CHECK(decision.after.use < 0.2 * decision.work);
	CHECK(actions_lead(&scheme, &next, &decision));

	/* even if nobody works */
	isl_load_clear(&load);
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	for (unsigned i = 0; i < next.subs; i++)
		CHECK(next.place[i] != 3);

	/* nowhere to go: nothing is done */
	for (unsigned p = 0; p < 8; p++)
		machine.place[p].weight = 0;
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	CHECK(!decision.moves && actions_lead(&scheme, &next, &decision));
}

/* a load drawn at random */
static void
random_load(void)
{
	unsigned	nodes = 1 + (unsigned) (test_random() % 8);
	unsigned	tables = 1 + (unsigned) (test_random() % 6);

	begin();
	machine_make(&machine, nodes, 1 + (unsigned) (test_random() % 4), 0.0001 * (double) (1 + test_random() % 100));
	for (unsigned p = 0; p < machine.places; p++)
		machine.place[p].weight = p > 0 && test_random() % 8 == 0 ? 0 : 1 + (double) (test_random() % 3);
	for (unsigned a = 0; a < nodes; a++)
	{
		for (unsigned b = 0; b < a; b++)
			machine.distance[a][b] = machine.distance[b][a] = 1 + (double) (test_random() % 3);
	}
	for (unsigned t = 0; t < tables; t++)
		scheme_table(&scheme, t, 1 + (unsigned) (test_random() % 10),
					 test_random() % 4 == 0 ? 0 : machine.places);
	for (unsigned i = 0; i < 1000; i++)
	{
		unsigned	ta = (unsigned) (test_random() % tables);
		unsigned	tb = (unsigned) (test_random() % tables);
		uint64_t	a = test_random() % 1000 * (test_random() % 1000) / 1000;

		run_pair(&load, &scheme, ta, a, tb, test_random() % 3 ? a : test_random() % 1000);
	}
}

/* what each step says it gains it has gained */
static void
searches_never_raise_the_cost(void)
{
	for (int round = 0; round < 100; round++)
	{
		isl_search *s;
		double		cost;

		random_load();
		REQUIRE((s = isl_search_begin(&machine, &scheme, &load.all)) != NULL);
		if (round % 2)
			isl_search_fill(s, round % 4 == 1);
		isl_search_rescue(s);
		for (unsigned i = 0; i < scheme.subs; i++)
			CHECK(isl_search_get(s)[i] < machine.places && machine.place[isl_search_get(s)[i]].weight > 0);
		for (int step = 0; step < 4; step++)
		{
			static isl_scheme there;

			cost = isl_cost_all(isl_search_cost(s));
			if (step % 2)
				isl_search_gather(s);
			else
				isl_search_balance(s);
			CHECK(isl_cost_all(isl_search_cost(s)) <= cost * (1 + 1e-9));

			/* the same, from the beginning */
			there = scheme;
			memcpy(there.place, isl_search_get(s), there.subs * sizeof(uint16_t));
			CHECK(near(isl_cost_all(isl_cost_of(&machine, &there, &load.all)), isl_cost_all(isl_search_cost(s))));
		}
		isl_search_end(s);
	}
}

static void
decisions_hold(void)
{
	static isl_scheme again;
	static isl_decision same;

	for (int round = 0; round < 100; round++)
	{
		bool		lost = false;

		random_load();
		for (unsigned i = 0; i < scheme.subs; i++)
			lost |= scheme.place[i] != ISL_NOWHERE && machine.place[scheme.place[i]].weight <= 0;
		REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
		REQUIRE(isl_decide(&machine, &scheme, &load, &again, &same));
		CHECK(memcmp(&decision, &same, sizeof(same)) == 0);
		CHECK(next.subs == again.subs && memcmp(next.place, again.place, next.subs * sizeof(uint16_t)) == 0);
		CHECK(actions_lead(&scheme, &next, &decision));
		CHECK(lost || isl_cost_all(decision.after) <= isl_cost_all(decision.before) * (1 + 1e-9));
		if (!decision.moves)
			continue;
		for (unsigned i = 0; i < next.subs; i++)
			CHECK(next.place[i] < machine.places && machine.place[next.place[i]].weight > 0);
	}
}

/*
 * a load that is even, of which only few transactions were counted: whatever seems better is chance
 */
static void
chance_moves_nothing(void)
{
	unsigned	moves = 0;
	unsigned	seems = 0;

	for (int round = 0; round < 200; round++)
	{
		unsigned	n = 25U << round % 8;

		begin();
		machine_make(&machine, 8, 1, 0.001);
		scheme_table(&scheme, 1, 8, 8);
		scheme_table(&scheme, 2, 8, 8);
		for (unsigned i = 0; i < n; i++)
			run_pair(&load, &scheme, 0, test_random() % 1000, 1, test_random() % 1000);
		REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
		CHECK(!decision.moves || !decision.unsure);
		moves += decision.moves;
		seems += decision.unsure;
	}
	printf("# of 200 it seems to be worth it %u times, and is done %u times\n", seems + moves, moves);
	CHECK(seems > 100 && moves <= 4);
}

/* what is much better is seen in few */
static void
few_are_enough_for_much(void)
{
	unsigned	moves = 0;

	for (int round = 0; round < 100; round++)
	{
		begin();
		machine_make(&machine, 8, 1, 0.001);
		scheme_table(&scheme, 1, 8, 8);
		for (unsigned i = 0; i < 200; i++)
		{
			uint64_t	keys = test_random() % 2 ? 200 : 1000;

			run_one(&load, &scheme, 0, test_random() % keys, 8);
		}
		REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
		moves += decision.moves;
	}
	printf("# of 100 it is done %u times\n", moves);
	CHECK(moves > 95);
}

/* the standard error is that of what the gain comes to when it is counted again and again */
static void
error_is_what_it_says(void)
{
	double		sum = 0;
	double		squares = 0;
	double		errors = 0;
	double		true_gain;
	unsigned	rounds = 400;
	uint16_t	after[ISL_MAX_SUBS];
	double		error;

	machine_make(&machine, 4, 1, 0.001);
	for (unsigned round = 0; round <= rounds; round++)
	{
		unsigned	n = round < rounds ? 1000 : 1000000;
		isl_search *s;
		double		gain;

		begin();
		scheme_table(&scheme, 1, 4, 4);
		for (unsigned i = 0; i < n; i++)
		{
			uint64_t	keys = test_random() % 2 ? 200 : 1000;
			uint64_t	a = test_random() % keys;

			run_pair(&load, &scheme, 0, a, 0, (a + 300) % 1000);
		}
		for (unsigned i = 0; i < scheme.subs; i++)
			after[i] = (uint16_t) (i < 4 ? i : scheme.place[i]);
		REQUIRE((s = isl_search_begin(&machine, &scheme, &load.all)) != NULL);
		gain = isl_search_gain(s, scheme.place, after, &error) / n;
		isl_search_end(s);
		if (round == rounds)
			true_gain = gain;
		else
		{
			sum += gain;
			squares += gain * gain;
			errors += error / n;
		}
	}
	sum /= rounds;
	errors /= rounds;
	squares = sqrt(squares / rounds - sum * sum);
	printf("# gain %.4f (%.4f of many), standard error %.4f, seen %.4f\n", sum, true_gain, errors, squares);
	CHECK(fabs(sum - true_gain) < 0.5 * errors && errors > 0.8 * squares && errors < 3 * squares);
}

/* as many as there can be: it still ends, and soon */
static void
large_schemes_are_decided(void)
{
	double		began = test_seconds();

	begin();
	machine_make(&machine, 8, 10, 0.001);
	for (unsigned t = 0; t < 4; t++)
		scheme_table(&scheme, t, 80, 80);
	for (unsigned i = 0; i < 100000; i++)
	{
		uint64_t	p = test_random() % 1000;
		unsigned	t = (unsigned) (test_random() % 4);

		run_pair(&load, &scheme, 0, p, t, test_random() % 4 ? p : test_random() % 1000);
	}
	REQUIRE(isl_decide(&machine, &scheme, &load, &next, &decision));
	printf("# %u sub-ranges, %u pairs: %.0f ms\n", scheme.subs, load.all.pairs, 1000 * (test_seconds() - began));
	CHECK(isl_cost_all(decision.after) <= isl_cost_all(decision.before));
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(costs_are_the_paper_s);
	RUN(nowhere_costs_the_mean);
	RUN(dependent_tables_meet);
	RUN(skew_is_spread);
	RUN(hot_spot_is_found);
	RUN(tables_of_two_groups_part);
	RUN(idle_tables_stay);
	RUN(lost_place_is_left);
	RUN(searches_never_raise_the_cost);
	RUN(decisions_hold);
	RUN(chance_moves_nothing);
	RUN(few_are_enough_for_much);
	RUN(error_is_what_it_says);
	RUN(large_schemes_are_decided);
	return test_end();
}
