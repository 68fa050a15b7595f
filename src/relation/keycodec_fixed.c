/*-------------------------------------------------------------------------
 *
 * keycodec_fixed.c
 *	  Key encodings of fixed-width types.
 *
 * Being of one width they are prefix-free.  Each follows the comparison
 * function of its type's btree operator class.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "relation/keycodec_types.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

void
MotKeyAppendBool(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	key_put8(buf, DatumGetBool(value) ? 1 : 0);
}

/* "char" compares as an unsigned byte */
void
MotKeyAppendChar(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	key_put8(buf, (uint8) DatumGetChar(value));
}

void
MotKeyAppendInt2(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	key_put16(buf, (uint16) ((uint16) DatumGetInt16(value) ^ 0x8000));
}

/* oid and what is stored as one; enum labels */
void
MotKeyAppendUInt4(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	key_put32(buf, DatumGetUInt32(value));
}

/* pg_lsn, xid8 */
void
MotKeyAppendUInt8(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	key_put64(buf, DatumGetUInt64(value));
}

/*
 * Floats: IEEE 754 bits of non-negative numbers order as integers do, those
 * of negative ones the other way round.  PostgreSQL has one zero, and all
 * NaNs are equal and greater than everything else.
 */
void
MotKeyAppendFloat4(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	float4		number = DatumGetFloat4(value);
	uint32		bits;

	if (isnan(number))
		bits = UINT32_MAX;
	else
	{
		if (number == 0)
			number = 0;			/* not the negative one */
		memcpy(&bits, &number, sizeof(bits));
		bits = (bits & UINT32_C(0x80000000)) ? ~bits : bits | UINT32_C(0x80000000);
	}
	key_put32(buf, bits);
}

void
MotKeyAppendFloat8(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	float8		number = DatumGetFloat8(value);
	uint64		bits;

	if (isnan(number))
		bits = UINT64_MAX;
	else
	{
		if (number == 0)
			number = 0;
		memcpy(&bits, &number, sizeof(bits));
		bits = (bits & UINT64_C(0x8000000000000000)) ? ~bits : bits | UINT64_C(0x8000000000000000);
	}
	key_put64(buf, bits);
}

/* by the moment in UTC, then by zone */
void
MotKeyAppendTimeTz(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);

	key_put64(buf, key_flip64(time->time + time->zone * USECS_PER_SEC));
	key_put32(buf, key_flip32(time->zone));
}

/*
 * Intervals compare by their span, a month counting as 30 days and a day as
 * 24 hours; it takes more than 64 bits in microseconds.  So: whole days, then
 * microseconds within the day, each in 5 bytes (days stay below 2^37, a day
 * has less than 2^37 microseconds).
 */
#define INTERVAL_PART_BYTES 5
#define INTERVAL_DAYS_BIAS (INT64CONST(1) << 39)

void
MotKeyAppendInterval(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	const Interval *interval = DatumGetIntervalP(value);
	int64		days = interval->month * INT64CONST(30) + interval->day;
	int64		rest = interval->time % USECS_PER_DAY;
	uint64		part;

	days += interval->time / USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}

	part = pg_hton64((uint64) (days + INTERVAL_DAYS_BIAS));
	key_put_bytes(buf, (const char *) &part + sizeof(part) - INTERVAL_PART_BYTES, INTERVAL_PART_BYTES);
	part = pg_hton64((uint64) rest);
	key_put_bytes(buf, (const char *) &part + sizeof(part) - INTERVAL_PART_BYTES, INTERVAL_PART_BYTES);
}

/* by reference, as its bytes compare: uuid, both kinds of MAC address (most significant first) */
void
MotKeyAppendBytes(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	StaticAssertStmt(UUID_LEN == 16 && sizeof(macaddr) == 6 && sizeof(macaddr8) == 8, "these are nothing but bytes");
	key_put_bytes(buf, DatumGetPointer(value), column->width);
}

void
MotKeyAppendTid(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);

	key_put32(buf, ItemPointerGetBlockNumberNoCheck(tid));
	key_put16(buf, ItemPointerGetOffsetNumberNoCheck(tid));
}
