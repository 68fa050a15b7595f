/*-------------------------------------------------------------------------
 *
 * keycodec_numeric.c
 *	  The key encoding of numeric, of any precision.
 *
 * A numeric is digits of base 10000, the first of them worth 10000^weight,
 * and a sign.  With leading and trailing zero digits taken off, the greater
 * weight makes the greater magnitude, then the first digit that differs; how
 * many decimals are displayed does not count.  So a positive number is
 *
 *	- one byte for the weight; weights far from zero have a byte that says so
 *	  and two more
 *	- each digit doubled, in two bytes, plus one if another digit follows
 *	  (thus 0.5 before 0.5001, and the end is known without an end mark)
 *
 * and a negative one is its magnitude's encoding with all bytes inverted.
 *
 * The server keeps the type's layout to itself (numeric.c), but it is what is
 * on disk, so it stays.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "relation/keycodec_types.h"

/* header word of a stored numeric */
#define HEADER_KIND_MASK 0xC000
#define HEADER_LONG_NEGATIVE 0x4000
#define HEADER_SHORT 0x8000
#define HEADER_SPECIAL 0xC000
#define HEADER_SPECIAL_MASK 0xF000
#define HEADER_POSITIVE_INFINITY 0xD000
#define HEADER_NEGATIVE_INFINITY 0xF000
#define HEADER_SHORT_NEGATIVE 0x2000
#define HEADER_SHORT_WEIGHT_SIGN 0x0040
#define HEADER_SHORT_WEIGHT_MASK 0x003F

/* first byte of the encoding; of a negative number, its inverse */
#define FIRST_ZERO 0x80
#define FIRST_SMALL_WEIGHT 0x81
#define FIRST_WEIGHT_ZERO 0x92
#define FIRST_LARGE_WEIGHT 0xF7
#define FIRST_INFINITY 0xF8
#define FIRST_NAN 0xFF
#define MIN_BYTE_WEIGHT (FIRST_SMALL_WEIGHT + 1 - FIRST_WEIGHT_ZERO)
#define MAX_BYTE_WEIGHT (FIRST_LARGE_WEIGHT - 1 - FIRST_WEIGHT_ZERO)

/* a packed datum's words need not be aligned */
static inline uint16
word_at(const char *bytes, size_t i)
{
	uint16		word;

	memcpy(&word, bytes + i * sizeof(word), sizeof(word));
	return word;
}

static void
append_finite(const char *words, size_t nwords, MotKeyBuffer *buf)
{
	uint16		header = word_at(words, 0);
	size_t		first;			/* digits are words first .. end - 1 */
	size_t		end = nwords;
	int			weight;
	bool		negative;
	uint16		flip;

	if ((header & HEADER_KIND_MASK) == HEADER_SHORT)
	{
		first = 1;
		negative = (header & HEADER_SHORT_NEGATIVE) != 0;
		weight = header & HEADER_SHORT_WEIGHT_MASK;
		if (header & HEADER_SHORT_WEIGHT_SIGN)
			weight -= HEADER_SHORT_WEIGHT_MASK + 1;
	}
	else
	{
		first = 2;
		negative = (header & HEADER_KIND_MASK) == HEADER_LONG_NEGATIVE;
		weight = (int16) word_at(words, 1);
	}

	/* the server stores no such zeros, but the encoding must not depend on it */
	while (first < end && word_at(words, first) == 0)
	{
		first++;
		weight--;
	}
	while (first < end && word_at(words, end - 1) == 0)
		end--;

	if (first >= end)
	{
		key_put8(buf, FIRST_ZERO);
		return;
	}

	flip = negative ? 0xFFFF : 0;
	if (weight >= MIN_BYTE_WEIGHT && weight <= MAX_BYTE_WEIGHT)
		key_put8(buf, (uint8) ((FIRST_WEIGHT_ZERO + weight) ^ flip));
	else
	{
		key_put8(buf, (uint8) ((weight < 0 ? FIRST_SMALL_WEIGHT : FIRST_LARGE_WEIGHT) ^ flip));
		key_put16(buf, (uint16) ((weight - PG_INT16_MIN) ^ flip));
	}

	if (end - first > MOT_KEY_VALUE_MAX)
		end = first + MOT_KEY_VALUE_MAX;	/* it is too long for a key anyway */
	for (size_t i = first; i < end; i++)
		key_put16(buf, (uint16) ((word_at(words, i) * 2 + (i + 1 < end)) ^ flip));
}

void
MotKeyAppendNumeric(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	struct varlena *number = PG_DETOAST_DATUM_PACKED(value);
	const char *words = VARDATA_ANY(number);
	uint16		header = word_at(words, 0);

	if ((header & HEADER_KIND_MASK) == HEADER_SPECIAL)
		key_put8(buf, (header & HEADER_SPECIAL_MASK) == HEADER_POSITIVE_INFINITY ? FIRST_INFINITY :
				 (header & HEADER_SPECIAL_MASK) == HEADER_NEGATIVE_INFINITY ? (uint8) ~FIRST_INFINITY : FIRST_NAN);
	else
		append_finite(words, VARSIZE_ANY_EXHDR(number) / sizeof(uint16), buf);

	if ((Pointer) number != DatumGetPointer(value))
		pfree(number);
}

size_t
MotKeyNumericLength(const uint8 *bytes, size_t len, uint8 flip)
{
	uint8		first = len > 0 ? bytes[0] ^ flip : 0;
	size_t		at = 1;
	uint8		low;

	if (first == FIRST_ZERO || first == FIRST_INFINITY || first == FIRST_NAN || first == (uint8) ~FIRST_INFINITY)
		return Min(len, 1);
	if (first < FIRST_ZERO)
	{
		first = (uint8) ~first;
		flip = (uint8) ~flip;
	}
	if (first == FIRST_SMALL_WEIGHT || first == FIRST_LARGE_WEIGHT)
		at += sizeof(uint16);
	do
	{
		if (len < at + sizeof(uint16))
			return 0;
		low = bytes[at + 1] ^ flip;
		at += sizeof(uint16);
	} while (low & 1);
	return at;
}
