/*-------------------------------------------------------------------------
 *
 * datetime.h
 *	  Dates and timestamps as each other, where they may be out of range.
 *
 * "overflow" is 0, or else says on which side of all timestamps the result would be.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_DATETIME_H
#define MOT_DATETIME_H

#include "postgres.h"

#include "utils/date.h"
#include "utils/timestamp.h"

#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"

#define MOT_DATETIME(name, function, type) \
static inline Timestamp \
name(type value, int *overflow) \
{ \
	ErrorSaveContext context = {T_ErrorSaveContext}; \
	Timestamp	result = function(value, (Node *) &context); \
	\
	*overflow = !context.error_occurred ? 0 : value < 0 ? -1 : 1; \
	return result; \
}

MOT_DATETIME(MotDateToTimestamp, date2timestamp_safe, DateADT)
MOT_DATETIME(MotDateToTimestamptz, date2timestamptz_safe, DateADT)
MOT_DATETIME(MotTimestampToTimestamptz, timestamp2timestamptz_safe, Timestamp)
#else
#define MotDateToTimestamp(value, overflow) date2timestamp_opt_overflow(value, overflow)
#define MotDateToTimestamptz(value, overflow) date2timestamptz_opt_overflow(value, overflow)
#define MotTimestampToTimestamptz(value, overflow) timestamp2timestamptz_opt_overflow(value, overflow)
#endif

#endif							/* MOT_DATETIME_H */
