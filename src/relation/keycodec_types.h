/*-------------------------------------------------------------------------
 *
 * keycodec_types.h
 *	  What the key codec's files share: room in a key buffer, and the
 *	  encodings of the single types.  For keycodec*.c only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYCODEC_TYPES_H
#define MOT_KEYCODEC_TYPES_H

#include "port/pg_bswap.h"
#include "relation/keycodec.h"

/*
 * The most bytes of a variable-width value worth encoding: with them the key
 * is too long already, so that what follows cannot matter.
 */
#define MOT_KEY_VALUE_MAX (MOT_MAX_KEY + 1)

/*
 * The encodings by number, as definitions in the log and in checkpoints name
 * them: a number is never given to another encoding.
 */
enum
{
	AS_BOOL = 1, AS_CHAR, AS_INT2, AS_INT4, AS_INT8, AS_UINT4, AS_UINT8, AS_TID, AS_FLOAT4, AS_FLOAT8,
	AS_NUMERIC, AS_TIMETZ, AS_INTERVAL, AS_UUID, AS_MACADDR, AS_MACADDR8, AS_INET, AS_BYTEA, AS_BIT,
	AS_TEXT, AS_BPCHAR, AS_NAME, AS_RANK
};

/*
 * the byte before a nullable column's value; "nulls first" is meant whether or not values descend
 */
#define MOT_KEY_NULL_FIRST 0x00
#define MOT_KEY_NOT_NULL 0x80
#define MOT_KEY_NULL_LAST 0xFF
#define MotKeyIsNullByte(byte) ((byte) != MOT_KEY_NOT_NULL)

/*
 * how long an encoding is that begins here; "flip" is 0xFF if its bytes are inverted, else 0; 0: it
 * makes no sense
 */
extern size_t MotKeyNumericLength(const uint8 *bytes, size_t len, uint8 flip);

/*
 * keycodec_collated.c: what MotKeyForm says of collations; the limit that a key exceeds, or 0; a
 * string of a column that is collated
 */
extern uint64 MotKeyCollatedForm(const MotKey *key);
extern size_t MotKeyExceeds(const MotKey *key, const uint8 *bytes, size_t len);
extern void MotKeyAppendCollated(const MotKeyColumn *column, const char *string, size_t len, MotKeyBuffer *buf);

extern void MotKeyBufferGrow(MotKeyBuffer *buf, size_t more);

/* where the next bytes go, with room for "more" of them; the caller adds to len what it wrote */
static inline uint8 *
key_room(MotKeyBuffer *buf, size_t more)
{
	if (unlikely(buf->size - buf->len < more))
		MotKeyBufferGrow(buf, more);
	return buf->data + buf->len;
}

static inline void
key_put_bytes(MotKeyBuffer *buf, const void *bytes, size_t len)
{
	memcpy(key_room(buf, len), bytes, len);
	buf->len += len;
}

/* a string, which has no zero byte, and one */
static inline void
key_put_string(MotKeyBuffer *buf, const char *string, size_t len)
{
	uint8	   *to;

	len = Min(len, MOT_KEY_VALUE_MAX);
	to = key_room(buf, len + 1);
	memcpy(to, string, len);
	to[len] = 0;
	buf->len += len + 1;
}

static inline void
key_put8(MotKeyBuffer *buf, uint8 value)
{
	*key_room(buf, 1) = value;
	buf->len += 1;
}

static inline void
key_put16(MotKeyBuffer *buf, uint16 value)
{
	value = pg_hton16(value);
	key_put_bytes(buf, &value, sizeof(value));
}

static inline void
key_put32(MotKeyBuffer *buf, uint32 value)
{
	value = pg_hton32(value);
	key_put_bytes(buf, &value, sizeof(value));
}

static inline void
key_put64(MotKeyBuffer *buf, uint64 value)
{
	value = pg_hton64(value);
	key_put_bytes(buf, &value, sizeof(value));
}

/* signed integers sort as unsigned ones with the sign bit flipped */
static inline uint32
key_flip32(int32 value)
{
	return (uint32) value ^ UINT32_C(0x80000000);
}

static inline uint64
key_flip64(int64 value)
{
	return (uint64) value ^ UINT64_C(0x8000000000000000);
}

#define MOT_KEY_APPEND(name) \
	extern void name(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)

/* keycodec_fixed.c */
MOT_KEY_APPEND(MotKeyAppendBool);
MOT_KEY_APPEND(MotKeyAppendChar);
MOT_KEY_APPEND(MotKeyAppendInt2);
MOT_KEY_APPEND(MotKeyAppendUInt4);
MOT_KEY_APPEND(MotKeyAppendUInt8);
MOT_KEY_APPEND(MotKeyAppendFloat4);
MOT_KEY_APPEND(MotKeyAppendFloat8);
MOT_KEY_APPEND(MotKeyAppendTimeTz);
MOT_KEY_APPEND(MotKeyAppendInterval);
MOT_KEY_APPEND(MotKeyAppendBytes);
MOT_KEY_APPEND(MotKeyAppendTid);

/* keycodec_varlena.c */
MOT_KEY_APPEND(MotKeyAppendText);
MOT_KEY_APPEND(MotKeyAppendBpchar);
MOT_KEY_APPEND(MotKeyAppendName);
MOT_KEY_APPEND(MotKeyAppendBytea);
MOT_KEY_APPEND(MotKeyAppendBit);
MOT_KEY_APPEND(MotKeyAppendInet);

/* keycodec_numeric.c */
MOT_KEY_APPEND(MotKeyAppendNumeric);

#undef MOT_KEY_APPEND

#endif							/* MOT_KEYCODEC_TYPES_H */
