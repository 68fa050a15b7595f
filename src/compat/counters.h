/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  Counters of the whole server since they were reset.
 *
 * From PostgreSQL 18 on they are cumulative statistics of the server's: they survive a clean
 * stop and begin anew after a crash.  Before, they begin anew at each start.
 *
 * Who counts goes on to do so in memory of its own, from zero at each start, and knows nothing of
 * this: what there was before, less what there was at the reset, is added to it by who looks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COUNTERS_H
#define MOT_COUNTERS_H

#include "postgres.h"

#include "datatype/timestamp.h"

/*
 * as many as will ever be needed: the server's file of statistics is of no use with fewer or more
 */
#define MOT_COUNTERS 64

typedef struct MotCounters
{
	uint64		n[MOT_COUNTERS];
	TimestampTz since;
} MotCounters;

/* in _PG_init; count adds what there has been since the server's start */
extern void MotCountersInit(void (*count) (uint64 *n));
extern void MotCountersShmemRequest(void);
extern void MotCountersShmemInit(void);

extern void MotCountersGet(MotCounters *counters);
extern void MotCountersReset(void);

#endif							/* MOT_COUNTERS_H */
