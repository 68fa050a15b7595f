/*-------------------------------------------------------------------------
 *
 * test_interval.c
 *	  How long the intervals are, and when one looks for a better scheme.
 *
 *-------------------------------------------------------------------------
 */
#include "islands_util.h"

static isl_interval iv;

/* throughput that is known for sure */
static isl_why
passed(double throughput)
{
	return isl_interval_passed(&iv, throughput, 1e9);
}

/* as the paper's run: 1, 2, 4, 8, 8 ... */
static void
steady_doubles_to_eight(void)
{
	isl_interval_init(&iv);
	CHECK(iv.seconds == 1);
	CHECK(passed(1000));		/* nothing is known */
	isl_interval_looked(&iv, false, false);
	CHECK(!passed(1050) && iv.seconds == 2);
	CHECK(!passed(970) && iv.seconds == 4);
	CHECK(!passed(1000) && iv.seconds == 8);
	CHECK(passed(1000) && iv.seconds == 8); /* looks all the same */
	isl_interval_looked(&iv, false, false);
	CHECK(passed(1000) && iv.seconds == 8);
}

static void
change_comes_back_to_one(void)
{
	isl_interval_init(&iv);
	for (int i = 0; i < 10; i++)
	{
		if (passed(1000))
			isl_interval_looked(&iv, false, false);
	}
	CHECK(iv.seconds == 8);
	CHECK(passed(850) && iv.seconds == 1);
	isl_interval_looked(&iv, false, false);

	/* up as well as down, from what it is now */
	CHECK(!passed(860) && iv.seconds == 2);
	CHECK(passed(1000) && iv.seconds == 1);
}

/* within a tenth of the mean of the last five, not of the last one */
static void
mean_is_of_the_last_five(void)
{
	isl_interval_init(&iv);
	(void) passed(1000);
	isl_interval_looked(&iv, false, false);
	for (int i = 0; i < 4; i++)
		(void) passed(1000);
	CHECK(iv.seconds == 8);

	/*
	 * creeps: each is within a tenth of the one before, and at last of no
	 * mean
	 */
	(void) passed(1080);
	CHECK(iv.seconds == 8);
	(void) passed(1150);
	CHECK(iv.seconds == 1);
}

static void
repartitioning_starts_over(void)
{
	isl_interval_init(&iv);
	CHECK(passed(1000));
	isl_interval_looked(&iv, true, false);
	CHECK(iv.seconds == 1);

	/*
	 * what it brought is not held against what was before, and is looked at
	 * again
	 */
	CHECK(passed(2000) == ISL_UNSETTLED);
	isl_interval_looked(&iv, false, false);
	CHECK(!passed(2000) && iv.seconds == 2);
	CHECK(passed(1000) == ISL_CHANGED);
}

static void
idle_is_steady(void)
{
	isl_interval_init(&iv);
	CHECK(passed(0));
	isl_interval_looked(&iv, false, false);
	CHECK(!passed(0) && iv.seconds == 2);
	CHECK(passed(10) && iv.seconds == 1);
}

/* what is within two standard errors is no change: of 100 transactions a fifth */
static void
few_counts_are_no_change(void)
{
	isl_interval_init(&iv);
	(void) passed(1000);
	isl_interval_looked(&iv, false, false);
	CHECK(!isl_interval_passed(&iv, 1200, 100) && iv.seconds == 2);
	CHECK(!isl_interval_passed(&iv, 950, 100) && iv.seconds == 4);
	CHECK(isl_interval_passed(&iv, 1400, 100) == ISL_CHANGED && iv.seconds == 1);
	isl_interval_looked(&iv, false, false);
	CHECK(isl_interval_passed(&iv, 1200, 10000) == ISL_CHANGED);
}

/* who is not sure looks again, after a longer time each */
static void
unsure_looks_again(void)
{
	isl_interval_init(&iv);
	CHECK(passed(1000) == ISL_CHANGED);
	for (unsigned seconds = 2; seconds <= 8; seconds *= 2)
	{
		isl_interval_looked(&iv, false, true);
		CHECK(passed(1000) == ISL_UNSETTLED && iv.seconds == seconds);
	}
	isl_interval_looked(&iv, false, true);
	CHECK(passed(1000) == ISL_UNSETTLED && iv.seconds == 8);
	isl_interval_looked(&iv, false, false);
	CHECK(passed(1000) == ISL_LONGEST);
	isl_interval_looked(&iv, true, false);
	CHECK(iv.seconds == 1);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(steady_doubles_to_eight);
	RUN(change_comes_back_to_one);
	RUN(mean_is_of_the_last_five);
	RUN(repartitioning_starts_over);
	RUN(idle_is_steady);
	RUN(few_counts_are_no_change);
	RUN(unsure_looks_again);
	return test_end();
}
