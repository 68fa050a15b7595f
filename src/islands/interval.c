/*-------------------------------------------------------------------------
 *
 * interval.c
 *	  How often somebody looks whether there is a better scheme.
 *
 * As in the paper: every second at first; twice as long, up to eight seconds,
 * each time that throughput was within a tenth of the mean of the last five
 * intervals; when it was not, one looks, and a change makes it a second again.
 * (What is within twice the standard error of throughput that was counted is no change.)
 *
 * Two things besides.  One looks until nothing better is found, or nothing that may be
 * better: a load that is steady from its beginning has no change that would tell.  And one looks at
 * the end of each longest interval, for work can move from one table to another at the same speed.
 *
 *-------------------------------------------------------------------------
 */
#include "islands.h"

#include <math.h>
#include <string.h>

#define STEADY 0.1
#define SURE 2					/* standard errors that are more than chance */

void
isl_interval_init(isl_interval *interval)
{
	memset(interval, 0, sizeof(*interval));
	interval->seconds = ISL_INTERVAL_MIN;
}

isl_why
isl_interval_passed(isl_interval *interval, double throughput, double counted)
{
	double		mean = 0;
	double		error = counted > 0 ? throughput / sqrt(counted) : 0;
	bool		steady;
	bool		longest;
	isl_why		why = interval->bettered ? ISL_UNSETTLED : ISL_CHANGED;

	for (unsigned i = 0; i < interval->known; i++)
		mean += interval->history[i];
	if (interval->known > 0)
		mean /= interval->known;
	steady = interval->known > 0 && fabs(throughput - mean) <= fmax(STEADY * mean, SURE * error);

	/* what was before a change says nothing of what comes after it */
	if (!steady)
		interval->known = interval->next = 0;
	interval->history[interval->next] = throughput;
	interval->next = (interval->next + 1) % ISL_HISTORY;
	if (interval->known < ISL_HISTORY)
		interval->known++;

	if (!steady)
	{
		interval->seconds = ISL_INTERVAL_MIN;
		interval->settled = false;
		interval->bettered = false;
		return why;
	}
	longest = interval->seconds == ISL_INTERVAL_MAX;
	if (!longest)
		interval->seconds *= 2;
	return !interval->settled ? ISL_UNSETTLED : longest ? ISL_LONGEST : ISL_NOT_NOW;
}

void
isl_interval_looked(isl_interval *interval, bool changed, bool unsure)
{
	interval->settled = !changed && !unsure;
	interval->bettered = changed;
	if (!changed)
		return;
	interval->seconds = ISL_INTERVAL_MIN;
	interval->known = interval->next = 0;
}
