/*-------------------------------------------------------------------------
 *
 * test_interval.c
 *	  How long the intervals are, and when one looks for a better scheme.
 *
 *-------------------------------------------------------------------------
 */
#include "islands_util.h"

static isl_interval iv;

/* as the paper's run: 1, 2, 4, 8, 8 ... */
static void
steady_doubles_to_eight(void)
{
	isl_interval_init(&iv);
	CHECK(iv.seconds == 1);
	CHECK(isl_interval_passed(&iv, 1000));	/* nothing is known */
	isl_interval_looked(&iv, false);
	CHECK(!isl_interval_passed(&iv, 1050) && iv.seconds == 2);
	CHECK(!isl_interval_passed(&iv, 970) && iv.seconds == 4);
	CHECK(!isl_interval_passed(&iv, 1000) && iv.seconds == 8);
	CHECK(isl_interval_passed(&iv, 1000) && iv.seconds == 8);	/* looks all the same */
	isl_interval_looked(&iv, false);
	CHECK(isl_interval_passed(&iv, 1000) && iv.seconds == 8);
}

static void
change_comes_back_to_one(void)
{
	isl_interval_init(&iv);
	for (int i = 0; i < 10; i++)
	{
		if (isl_interval_passed(&iv, 1000))
			isl_interval_looked(&iv, false);
	}
	CHECK(iv.seconds == 8);
	CHECK(isl_interval_passed(&iv, 850) && iv.seconds == 1);
	isl_interval_looked(&iv, false);

	/* up as well as down, from what it is now */
	CHECK(!isl_interval_passed(&iv, 860) && iv.seconds == 2);
	CHECK(isl_interval_passed(&iv, 1000) && iv.seconds == 1);
}

/* within a tenth of the mean of the last five, not of the last one */
static void
mean_is_of_the_last_five(void)
{
	isl_interval_init(&iv);
	(void) isl_interval_passed(&iv, 1000);
	isl_interval_looked(&iv, false);
	for (int i = 0; i < 4; i++)
		(void) isl_interval_passed(&iv, 1000);
	CHECK(iv.seconds == 8);

	/*
	 * creeps: each is within a tenth of the one before, and at last of no
	 * mean
	 */
	(void) isl_interval_passed(&iv, 1080);
	CHECK(iv.seconds == 8);
	(void) isl_interval_passed(&iv, 1150);
	CHECK(iv.seconds == 1);
}

static void
repartitioning_starts_over(void)
{
	isl_interval_init(&iv);
	CHECK(isl_interval_passed(&iv, 1000));
	isl_interval_looked(&iv, true);
	CHECK(iv.seconds == 1);

	/*
	 * what it brought is not held against what was before, and is looked at
	 * again
	 */
	CHECK(isl_interval_passed(&iv, 2000));
	isl_interval_looked(&iv, false);
	CHECK(!isl_interval_passed(&iv, 2000) && iv.seconds == 2);
}

static void
idle_is_steady(void)
{
	isl_interval_init(&iv);
	CHECK(isl_interval_passed(&iv, 0));
	isl_interval_looked(&iv, false);
	CHECK(!isl_interval_passed(&iv, 0) && iv.seconds == 2);
	CHECK(isl_interval_passed(&iv, 10) && iv.seconds == 1);
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
	return test_end();
}
