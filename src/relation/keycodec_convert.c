/*-------------------------------------------------------------------------
 *
 * keycodec_convert.c
 *	  Comparing a key column with a value of another type.
 *
 * The operator families of integers, floats, dates with timestamps and text
 * with name have operators between their types.  A key holds only the
 * column's own type, so the other value is replaced by one of that type, and
 * where there is none that is the same, by the nearest below or above and the
 * comparison that then gives the same answers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "compat/datetime.h"
#include "parser/parse_coerce.h"
#include "pgtime.h"
#include "relation/keycodec_types.h"
#include "utils/builtins.h"

/*
 * "column <strategy> value" where no value of the column's type is "value", and "near" is the
 * greatest that is less ("below"), or the least that is greater
 */
static MotKeyCompare
use_near(StrategyNumber *strategy, Datum near, bool below, Datum *result)
{
	if (*strategy == BTEqualStrategyNumber)
		return MOT_KEY_NONE;
	if (*strategy == BTLessStrategyNumber || *strategy == BTLessEqualStrategyNumber)
		*strategy = below ? BTLessEqualStrategyNumber : BTLessStrategyNumber;
	else
		*strategy = below ? BTGreaterStrategyNumber : BTGreaterEqualStrategyNumber;
	*result = near;
	return MOT_KEY_USE;
}

/* -------------------------------------------------------------- integers */

static bool
get_integer(Oid typid, Datum value, int64 *number)
{
	switch (typid)
	{
		case INT2OID:
			*number = DatumGetInt16(value);
			return true;
		case INT4OID:
			*number = DatumGetInt32(value);
			return true;
		case INT8OID:
			*number = DatumGetInt64(value);
			return true;
		default:
			return false;
	}
}

static MotKeyCompare
convert_integer(Oid typid, int64 number, const StrategyNumber *strategy, Datum *result)
{
	int64		min = typid == INT2OID ? PG_INT16_MIN : PG_INT32_MIN;
	int64		max = typid == INT2OID ? PG_INT16_MAX : PG_INT32_MAX;

	if (typid == INT8OID)
		*result = Int64GetDatum(number);
	else if (number >= min && number <= max)
		*result = typid == INT2OID ? Int16GetDatum((int16) number) : Int32GetDatum((int32) number);
	else
	{
		bool		less = *strategy == BTLessStrategyNumber || *strategy == BTLessEqualStrategyNumber;

		if (*strategy == BTEqualStrategyNumber)
			return MOT_KEY_NONE;
		return less == (number > max) ? MOT_KEY_ALL : MOT_KEY_NONE;
	}
	return MOT_KEY_USE;
}

/* ---------------------------------------------------------------- floats */

static MotKeyCompare
convert_to_float4(float8 number, StrategyNumber *strategy, Datum *result)
{
	/* the nearest one; beyond the range, infinity */
	float4		nearest = (float4) number;

	if (isnan(number) || (float8) nearest == number)
	{
		*result = Float4GetDatum(nearest);
		return MOT_KEY_USE;
	}
	return use_near(strategy, Float4GetDatum(nearest), (float8) nearest < number, result);
}

/* ---------------------------------------------------- dates and timestamps */

/*
 * The local times that a moment can have: one, but near a change of the
 * zone's offset as many as there are offsets in effect within a few days.
 *
 * A timestamp is compared with a timestamptz by taking it for local time
 * (DetermineTimeZoneOffset), which near a change of offset is neither
 * monotonic nor one to one: in New York 02:30 and 03:30 of the day in spring
 * that has no 02:30 are one moment, and 02:45 is later than 03:15.  But
 * whatever offset is taken for a local time is in effect within two days of
 * the moment that results.  So with "first" and "last" the least and greatest
 * of our moment's local times, local times before first are earlier than it,
 * those after last are later, and equal ones are among the local times found.
 */
#define LOCAL_TIMES_MAX 8
#define LOCAL_WINDOW (3 * SECS_PER_DAY)

typedef struct LocalTimes
{
	int			count;
	int64		first;
	int64		last;
	int64		times[LOCAL_TIMES_MAX];
} LocalTimes;

static void
add_local_time(LocalTimes *local, int64 time)
{
	for (int i = 0; i < local->count; i++)
		if (local->times[i] == time)
			return;
	if (local->count == LOCAL_TIMES_MAX)
		elog(ERROR, "too many time zone offsets within a few days");
	if (local->count == 0 || time < local->first)
		local->first = time;
	if (local->count == 0 || time > local->last)
		local->last = time;
	local->times[local->count++] = time;
}

static void
find_local_times(TimestampTz moment, LocalTimes *local)
{
	pg_time_t	from = timestamptz_to_time_t(moment) - LOCAL_WINDOW;
	pg_time_t	to = from + 2 * LOCAL_WINDOW;

	local->count = 0;
	for (;;)
	{
		long int	before;
		long int	after;
		int			before_isdst;
		int			after_isdst;
		pg_time_t	boundary;
		int			found = pg_next_dst_boundary(&from, &before, &before_isdst, &boundary,
												 &after, &after_isdst, session_timezone);

		if (found < 0)
			before = 0;			/* the server, too, then takes UTC */
		add_local_time(local, moment + before * USECS_PER_SEC);
		if (found <= 0 || boundary > to)
			return;
		add_local_time(local, moment + after * USECS_PER_SEC);
		from = boundary;
	}
}

/* a date column against local time in microseconds, as date_cmp_timestamp has it */
static MotKeyCompare
date_against_local(int64 local, StrategyNumber *strategy, Datum *result)
{
	int64		day = local / USECS_PER_DAY;

	if (local % USECS_PER_DAY < 0)
		day--;
	*result = DateADTGetDatum((DateADT) day);
	if (day * USECS_PER_DAY == local)
		return MOT_KEY_USE;
	return use_near(strategy, *result, true, result);
}

static MotKeyCompare
convert_timestamp_to_date(Timestamp timestamp, StrategyNumber *strategy, Datum *result)
{
	if (TIMESTAMP_IS_NOBEGIN(timestamp))
		*result = DateADTGetDatum(DATEVAL_NOBEGIN);
	else if (TIMESTAMP_IS_NOEND(timestamp))
		*result = DateADTGetDatum(DATEVAL_NOEND);
	else
		return date_against_local(timestamp, strategy, result);
	return MOT_KEY_USE;
}

/* is this local time, of a timestamp or a date column, taken for that moment? */
static bool
local_is_moment(Oid typid, int64 time, TimestampTz moment)
{
	int			overflow;
	TimestampTz taken;

	if (!IS_VALID_TIMESTAMP(time))
		return false;
	if (typid == TIMESTAMPOID)
		taken = MotTimestampToTimestamptz(time, &overflow);
	else if (time % USECS_PER_DAY == 0)
		taken = MotDateToTimestamptz((DateADT) (time / USECS_PER_DAY), &overflow);
	else
		return false;
	return overflow == 0 && taken == moment;
}

/* a date or timestamp column against a timestamptz */
static MotKeyCompare
convert_timestamptz_to_local(Oid typid, TimestampTz moment, StrategyNumber *strategy, Datum *result)
{
	LocalTimes	local;
	int64		time;

	if (TIMESTAMP_NOT_FINITE(moment))
	{
		/* both infinities are the same in either timestamp type */
		if (typid == DATEOID)
			return convert_timestamp_to_date(moment, strategy, result);
		*result = TimestampGetDatum(moment);
		return MOT_KEY_USE;
	}

	find_local_times(moment, &local);
	switch (*strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			time = local.last;
			break;
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			time = local.first;
			break;
		default:
			{
				int			matching = 0;

				time = local.first;
				for (int i = 0; i < local.count; i++)
					if (local_is_moment(typid, local.times[i], moment))
					{
						matching++;
						time = local.times[i];
					}
				if (matching == 0)
					return MOT_KEY_NONE;
				if (matching > 1)
					return MOT_KEY_ALL;
				break;
			}
	}

	if (typid == DATEOID)
	{
		/*
		 * dates beyond timestamp's range are later than any moment, even
		 * where it is that date already
		 */
		return date_against_local(Min(time, END_TIMESTAMP - 1), strategy, result);
	}
	*result = TimestampGetDatum(time);
	return MOT_KEY_USE;
}

/* a timestamp or timestamptz column against a value converted to its type, with overflow as the server's
 * conversions report it */
static MotKeyCompare
timestamp_with_overflow(Timestamp timestamp, int overflow, StrategyNumber *strategy, Datum *result)
{
	if (overflow != 0)
		return use_near(strategy, TimestampGetDatum(overflow > 0 ? DT_NOEND : DT_NOBEGIN), overflow < 0, result);
	*result = TimestampGetDatum(timestamp);
	return MOT_KEY_USE;
}

/* -------------------------------------------------------- text and name */

static MotKeyCompare
convert_text_to_name(Datum value, StrategyNumber *strategy, Datum *result)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	size_t		len = VARSIZE_ANY_EXHDR(string);
	Name		name = palloc0(NAMEDATALEN);

	memcpy(NameStr(*name), VARDATA_ANY(string), Min(len, NAMEDATALEN - 1));
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
	*result = NameGetDatum(name);

	/* no name lies between a longer string and what of it fits into a name */
	if (len >= NAMEDATALEN)
		return use_near(strategy, *result, true, result);
	return MOT_KEY_USE;
}

/* ----------------------------------------------------------------- entry */

MotKeyCompare
MotKeyConvert(const MotKeyColumn *column, Oid valuetype, Datum value,
			  StrategyNumber *strategy, Datum *result)
{
	Oid			typid = column->typid;
	int64		number;
	int			overflow;

	if (valuetype == typid || !OidIsValid(valuetype))
	{
		*result = value;
		return MOT_KEY_USE;
	}

	switch (typid)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			if (get_integer(valuetype, value, &number))
				return convert_integer(typid, number, strategy, result);
			break;

		case FLOAT4OID:
			if (valuetype == FLOAT8OID)
				return convert_to_float4(DatumGetFloat8(value), strategy, result);
			break;

		case FLOAT8OID:
			if (valuetype == FLOAT4OID)
			{
				*result = Float8GetDatum((float8) DatumGetFloat4(value));
				return MOT_KEY_USE;
			}
			break;

		case DATEOID:
			if (valuetype == TIMESTAMPOID)
				return convert_timestamp_to_date(DatumGetTimestamp(value), strategy, result);
			if (valuetype == TIMESTAMPTZOID)
				return convert_timestamptz_to_local(typid, DatumGetTimestampTz(value), strategy, result);
			break;

		case TIMESTAMPOID:
			if (valuetype == DATEOID)
			{
				Timestamp	timestamp = MotDateToTimestamp(DatumGetDateADT(value), &overflow);

				return timestamp_with_overflow(timestamp, overflow, strategy, result);
			}
			if (valuetype == TIMESTAMPTZOID)
				return convert_timestamptz_to_local(typid, DatumGetTimestampTz(value), strategy, result);
			break;

		case TIMESTAMPTZOID:
			if (valuetype == DATEOID)
			{
				TimestampTz timestamp = MotDateToTimestamptz(DatumGetDateADT(value), &overflow);

				return timestamp_with_overflow(timestamp, overflow, strategy, result);
			}
			if (valuetype == TIMESTAMPOID)
			{
				TimestampTz timestamp = MotTimestampToTimestamptz(DatumGetTimestamp(value), &overflow);

				return timestamp_with_overflow(timestamp, overflow, strategy, result);
			}
			break;

		case NAMEOID:
			if (IsBinaryCoercible(valuetype, TEXTOID))
				return convert_text_to_name(value, strategy, result);
			break;

		case TEXTOID:
			if (valuetype == NAMEOID)
			{
				const char *name = NameStr(*DatumGetName(value));

				*result = PointerGetDatum(cstring_to_text_with_len(name, strnlen(name, NAMEDATALEN)));
				return MOT_KEY_USE;
			}
			break;
	}

	/* varchar for text, cidr for inet, an enum for anyenum */
	if (IsBinaryCoercible(valuetype, typid) || IsBinaryCoercible(typid, valuetype))
	{
		*result = value;
		return MOT_KEY_USE;
	}

	elog(ERROR, "no comparison of key column type %u with a value of type %u", typid, valuetype);
	return MOT_KEY_NONE;		/* keep compiler quiet */
}

/*
 * A change of the session's time zone after planning must not matter, nor how
 * near to a change of offset a value is: it is the pair of types that counts.
 */
bool
MotKeyConvertIsLossy(Oid columntype, Oid valuetype)
{
	return (columntype == DATEOID || columntype == TIMESTAMPOID) && valuetype == TIMESTAMPTZOID;
}
