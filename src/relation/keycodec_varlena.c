/*-------------------------------------------------------------------------
 *
 * keycodec_varlena.c
 *	  Key encodings of strings, bit strings and network addresses.
 *
 * A string sorts before every longer one that begins with it, so the end of
 * its encoding has to sort before any byte that could follow: text, which
 * has no zero byte, ends with one; a bytea's zero bytes are escaped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "relation/keycodec_types.h"
#include "utils/inet.h"
#include "utils/varbit.h"

/* 0x00 becomes 0x00 0xFF, and 0x00 0x00 is the end */
static void
append_escaped(const uint8 *bytes, size_t len, MotKeyBuffer *buf)
{
	uint8	   *to;
	uint8	   *next;

	len = Min(len, MOT_KEY_VALUE_MAX);
	to = next = key_room(buf, 2 * len + 2);
	for (size_t i = 0; i < len; i++)
	{
		*next++ = bytes[i];
		if (bytes[i] == 0)
			*next++ = 0xFF;
	}
	*next++ = 0;
	*next++ = 0;
	buf->len += next - to;
}

static inline void
append_string(const MotKeyColumn *column, const char *bytes, size_t len, MotKeyBuffer *buf)
{
	if (unlikely(column->collated))
		MotKeyAppendCollated(column, bytes, len, buf);
	else
		key_put_string(buf, bytes, len);
}

/* text, varchar */
void
MotKeyAppendText(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);

	append_string(column, VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string), buf);
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
}

/* char(n): trailing blanks do not count */
void
MotKeyAppendBpchar(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	const char *bytes = VARDATA_ANY(string);
	size_t		len = VARSIZE_ANY_EXHDR(string);

	while (len > 0 && bytes[len - 1] == ' ')
		len--;
	append_string(column, bytes, len, buf);
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
}

void
MotKeyAppendName(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	const char *bytes = NameStr(*DatumGetName(value));

	key_put_string(buf, bytes, strnlen(bytes, NAMEDATALEN));
}

void
MotKeyAppendBytea(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);

	append_escaped((const uint8 *) VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string), buf);
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
}

/*
 * bit and varbit compare by their bytes (unused bits of the last one are
 * zero), then by length.  Strings with the same bytes differ at most in how
 * many bits of the last byte count.
 */
void
MotKeyAppendBit(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	VarBit	   *bits = DatumGetVarBitP(value);
	size_t		bytes = VARBITBYTES(bits);

	append_escaped(VARBITS(bits), bytes, buf);
	if (bytes > 0)
		key_put8(buf, (uint8) (VARBITLEN(bits) - (bytes - 1) * BITS_PER_BYTE));
	if ((Pointer) bits != DatumGetPointer(value))
		pfree(bits);
}

/*
 * inet and cidr compare by family, by network bits (a shorter network before
 * all within it), by the number of network bits, and then by host bits.
 *
 * Network bits padded with zero bits to the address's width, then their
 * number: of two networks one of which begins with the other, the padding
 * either differs from the longer one's further bits (which are greater), or
 * the number decides.  Then the bytes that hold host bits; how many these are
 * is known from what precedes, so that the encoding is prefix-free.
 */
void
MotKeyAppendInet(const MotKeyColumn *column, Datum value, MotKeyBuffer *buf)
{
	inet	   *address = DatumGetInetPP(value);
	const uint8 *bytes = ip_addr(address);
	size_t		size = ip_addrsize(address);
	unsigned	bits = ip_bits(address);
	size_t		whole = bits / BITS_PER_BYTE;
	uint8	   *to = key_room(buf, 2 + 2 * size);
	uint8	   *next = to;

	*next++ = ip_family(address);
	memcpy(next, bytes, whole);
	memset(next + whole, 0, size - whole);
	if (bits % BITS_PER_BYTE != 0)
		next[whole] = (uint8) (bytes[whole] & (0xFF << (BITS_PER_BYTE - bits % BITS_PER_BYTE)));
	next += size;
	*next++ = (uint8) bits;
	memcpy(next, bytes + whole, size - whole);
	next += size - whole;
	buf->len += next - to;

	if ((Pointer) address != DatumGetPointer(value))
		pfree(address);
}
