/*-------------------------------------------------------------------------
 *
 * decimal.c
 *	  Numeric as integers, and sums of it.
 *
 * A numeric is digits of base 10000.  Those of money and quantities have a few,
 * so they are an integer of 128 bits over a power of 10000, and sums, differences and products
 * of such are exact, as numeric's are: the same number, and the digits that are
 * shown behind the point follow the same rules (the greater of two, of products their sum).  What
 * is longer, NaN and the infinities are the server's functions' matter.
 *
 * The transition states of sum and avg are known to numeric.c only, but it
 * takes them from parallel workers in serialized form: so ours become the
 * server's through its own functions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"
#include "compat/calls.h"
#include "libpq/pqformat.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#define BASE 10000
#define MAX_K 8					/* fractional digits of base 10000 */
#define MAX_DIGITS 6			/* of a value: below 10^24, 80 bits */
#define SUM_DIGITS 10			/* of 128 bits */
#define MAX_DSCALE 0x3FFF		/* numeric rounds products to it */

#define NUMERIC_POSITIVE 0x0000
#define NUMERIC_NEGATIVE 0x4000

/* header word of a stored numeric (see relation/keycodec_numeric.c) */
#define HEADER_KIND_MASK 0xC000
#define HEADER_LONG_NEGATIVE 0x4000
#define HEADER_LONG_SCALE_MASK 0x3FFF
#define HEADER_SHORT 0x8000
#define HEADER_SPECIAL 0xC000
#define HEADER_SHORT_NEGATIVE 0x2000
#define HEADER_SHORT_SCALE_MASK 0x1F80
#define HEADER_SHORT_SCALE_SHIFT 7
#define HEADER_SHORT_WEIGHT_SIGN 0x0040
#define HEADER_SHORT_WEIGHT_MASK 0x003F

static const int64 powers[] = {1, BASE, (int64) BASE * BASE, (int64) BASE * BASE * BASE, (int64) BASE * BASE * BASE * BASE};

/* a packed datum's words need not be aligned */
static inline uint16
word_at(const char *bytes, int i)
{
	uint16		word;

	memcpy(&word, bytes + i * sizeof(word), sizeof(word));
	return word;
}

/* m * 10000^by; false: it does not fit */
static bool
scale_up(int128 * m, int by)
{
	while (by > 0)
	{
		int			step = Min(by, (int) lengthof(powers) - 1);

		if (__builtin_mul_overflow(*m, (int128) powers[step], m))
			return false;
		by -= step;
	}
	return true;
}

/* False: it is for the server's functions. */
bool
MotDecimalRead(Datum value, MotDecimal *decimal)
{
	const char *varlena = DatumGetPointer(value);
	const char *words;
	int			nwords;
	uint16		header;
	int			weight;
	int			ndigits;
	bool		negative;
	int128		m;

	if (VARATT_IS_1B(varlena) && !VARATT_IS_1B_E(varlena))
	{
		words = VARDATA_1B(varlena);
		nwords = (VARSIZE_1B(varlena) - VARHDRSZ_SHORT) / sizeof(uint16);
	}
	else if (VARATT_IS_4B_U(varlena))
	{
		words = VARDATA(varlena);
		nwords = (VARSIZE(varlena) - VARHDRSZ) / sizeof(uint16);
	}
	else
		return false;

	header = word_at(words, 0);
	if ((header & HEADER_KIND_MASK) == HEADER_SHORT)
	{
		negative = (header & HEADER_SHORT_NEGATIVE) != 0;
		decimal->dscale = (header & HEADER_SHORT_SCALE_MASK) >> HEADER_SHORT_SCALE_SHIFT;
		weight = header & HEADER_SHORT_WEIGHT_MASK;
		if (header & HEADER_SHORT_WEIGHT_SIGN)
			weight |= ~HEADER_SHORT_WEIGHT_MASK;
		words += sizeof(uint16);
		ndigits = nwords - 1;
	}
	else if ((header & HEADER_KIND_MASK) == HEADER_SPECIAL)
		return false;
	else
	{
		negative = (header & HEADER_KIND_MASK) == HEADER_LONG_NEGATIVE;
		decimal->dscale = header & HEADER_LONG_SCALE_MASK;
		weight = (int16) word_at(words, 1);
		words += 2 * sizeof(uint16);
		ndigits = nwords - 2;
	}

	if (ndigits == 0)
	{
		decimal->m = 0;
		decimal->k = 0;
		return true;
	}
	decimal->k = ndigits - 1 - weight;
	if (ndigits > MAX_DIGITS || weight >= MAX_DIGITS || decimal->k > MAX_K)
		return false;
	if (likely(ndigits <= 4))
	{
		int64		small = 0;

		for (int i = 0; i < ndigits; i++)
			small = small * BASE + word_at(words, i);
		m = small;
	}
	else
	{
		m = 0;
		for (int i = 0; i < ndigits; i++)
			m = m * BASE + word_at(words, i);
	}
	for (; decimal->k < 0; decimal->k++)
		m *= BASE;
	decimal->m = negative ? -m : m;
	return true;
}

/* As the server stores it; false: that is for the server's functions. */
static bool
write_decimal(const MotDecimal *decimal, Datum *result)
{
	bool		negative = decimal->m < 0;
	uint128		m = negative ? -(uint128) decimal->m : (uint128) decimal->m;
	uint16		digits[SUM_DIGITS]; /* the last first */
	int			n = 0;
	int			zeros = 0;		/* at the end, which are not stored */
	int			weight;
	char	   *varlena;
	uint16	   *words;

	if (decimal->dscale > HEADER_SHORT_SCALE_MASK >> HEADER_SHORT_SCALE_SHIFT)
		return false;
	for (; m > PG_UINT64_MAX; m /= BASE)
		digits[n++] = (uint16) (m % BASE);
	for (uint64 rest = (uint64) m; rest > 0; rest /= BASE)
		digits[n++] = (uint16) (rest % BASE);
	while (zeros < n && digits[zeros] == 0)
		zeros++;
	weight = n == 0 ? 0 : n - 1 - decimal->k;

	varlena = palloc(VARHDRSZ + (1 + n - zeros) * sizeof(uint16));
	SET_VARSIZE(varlena, VARHDRSZ + (1 + n - zeros) * sizeof(uint16));
	words = (uint16 *) VARDATA(varlena);
	*words++ = HEADER_SHORT | (negative ? HEADER_SHORT_NEGATIVE : 0) |
		(decimal->dscale << HEADER_SHORT_SCALE_SHIFT) |
		(weight < 0 ? HEADER_SHORT_WEIGHT_SIGN : 0) | (weight & HEADER_SHORT_WEIGHT_MASK);
	while (n > zeros)
		*words++ = digits[--n];
	*result = PointerGetDatum(varlena);
	return true;
}

/* Digits of base 10000 behind the point of numeric(p, s), whose "typmod" is not -1. */
int
MotDecimalPlaces(int32 typmod)
{
	/* as numeric_typmod_scale, which is below 0 for tens and hundreds */
	return (Max(0, (((typmod - (int32) VARHDRSZ) & 0x7ff) ^ 1024) - 1024) + 3) / 4;
}

/* The same number over 10000^k; false: it is not one, or does not fit. */
bool
MotDecimalScale(MotDecimal *decimal, int k)
{
	if (decimal->k > k || !scale_up(&decimal->m, k - decimal->k))
		return false;
	decimal->k = k;
	return true;
}

bool
MotDecimalMultiply(const MotDecimal *a, const MotDecimal *b, MotDecimal *result)
{
	int128		product;

	if (a->k + b->k > MAX_K || a->dscale + b->dscale > MAX_DSCALE)
		return false;

	/*
	 * (stored where a factor is, the compiler's test would look at half of
	 * it)
	 */
	if (likely(a->m == (int64) a->m && b->m == (int64) b->m))
		product = a->m * (int64) b->m;
	else if (__builtin_mul_overflow(a->m, b->m, &product))
		return false;
	result->m = product;
	result->k = a->k + b->k;
	result->dscale = a->dscale + b->dscale;
	return true;
}

bool
MotDecimalAdd(const MotDecimal *a, const MotDecimal *b, bool subtract, MotDecimal *result)
{
	int128		x = a->m;
	int128		y = b->m;
	int			k = Max(a->k, b->k);

	if (!scale_up(&x, k - a->k) || !scale_up(&y, k - b->k) ||
		(subtract ? __builtin_sub_overflow(x, y, &result->m) : __builtin_add_overflow(x, y, &result->m)))
		return false;
	result->k = k;
	result->dscale = Max(a->dscale, b->dscale);
	return true;
}

/* ------------------------------------- the server's functions of short ones */

typedef enum Operation
{
	ADD, SUBTRACT, MULTIPLY
} Operation;

static inline bool
compute(FunctionCallInfo fcinfo, Operation operation, Datum *result)
{
	MotDecimal	a;
	MotDecimal	b;

	return MotDecimalRead(PG_GETARG_DATUM(0), &a) && MotDecimalRead(PG_GETARG_DATUM(1), &b) &&
		(operation == MULTIPLY ? MotDecimalMultiply(&a, &b, &a) : MotDecimalAdd(&a, &b, operation == SUBTRACT, &a)) &&
		write_decimal(&a, result);
}

static Datum
add(PG_FUNCTION_ARGS)
{
	Datum		result;

	return compute(fcinfo, ADD, &result) ? result : numeric_add(fcinfo);
}

static Datum
subtract(PG_FUNCTION_ARGS)
{
	Datum		result;

	return compute(fcinfo, SUBTRACT, &result) ? result : numeric_sub(fcinfo);
}

static Datum
multiply(PG_FUNCTION_ARGS)
{
	Datum		result;

	return compute(fcinfo, MULTIPLY, &result) ? result : numeric_mul(fcinfo);
}

static Datum
from_int4(PG_FUNCTION_ARGS)
{
	MotDecimal	decimal = {PG_GETARG_INT32(0), 0, 0};
	Datum		result;

	(void) write_decimal(&decimal, &result);
	return result;
}

/*
 * A function that returns what the server's does, byte by byte, and sooner if its arguments have few
 * digits.  NULL: there is none.
 */
PGFunction
MotDecimalFunction(Oid funcid)
{
	switch (funcid)
	{
		case F_NUMERIC_ADD:
			return add;
		case F_NUMERIC_SUB:
			return subtract;
		case F_NUMERIC_MUL:
			return multiply;
		case F_NUMERIC_INT4:
			return from_int4;
		default:
			return NULL;
	}
}

/* False: it does not fit, and nothing has been added. */
bool
MotSumAdd(MotSum *sum, const MotDecimal *decimal)
{
	int128		m = decimal->m;
	int128		result = sum->sum;
	int			k = sum->k;

	if (unlikely(decimal->k != k))
	{
		if (decimal->k < k ? !scale_up(&m, k - decimal->k) : !scale_up(&result, decimal->k - k))
			return false;
		k = Max(k, decimal->k);
	}
	if (unlikely(__builtin_add_overflow(result, m, &result)))
		return false;
	sum->sum = result;
	sum->k = k;
	sum->n++;
	if (likely(decimal->dscale == sum->max_scale))
		sum->max_scale_count++;
	else if (decimal->dscale > sum->max_scale)
	{
		sum->max_scale = decimal->dscale;
		sum->max_scale_count = 1;
	}
	return true;
}

/*
 * The server's state of sum and avg: of "numeric" that of numeric_avg_accum, else
 * that of int8_avg_accum.  In CurrentMemoryContext, which is that of the aggregate's states.
 */
Datum
MotSumState(const MotSum *sum, bool numeric, AggState *agg)
{
	LOCAL_FCINFO(fcinfo, 2);
	StringInfoData buf;
	uint16		digits[SUM_DIGITS];
	bool		negative = sum->sum < 0;
	uint128		rest = negative ? -(uint128) sum->sum : (uint128) sum->sum;
	int			n = 0;
	Datum		state;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, sum->n);
	if (MOT_INTEGER_SUMS_ARE_BINARY && !numeric)
	{
		pq_sendint64(&buf, (uint64) (sum->sum >> 64));
		pq_sendint64(&buf, (uint64) sum->sum);
	}
	else
	{
		/* the sum, as numericvar_serialize has it */
		for (; rest != 0; rest /= BASE)
			digits[n++] = rest % BASE;
		pq_sendint32(&buf, n);
		pq_sendint32(&buf, n == 0 ? 0 : n - 1 - sum->k);
		pq_sendint32(&buf, negative ? NUMERIC_NEGATIVE : NUMERIC_POSITIVE);
		pq_sendint32(&buf, sum->max_scale);
		for (int i = n - 1; i >= 0; i--)
			pq_sendint16(&buf, digits[i]);
	}
	if (numeric)
	{
		pq_sendint32(&buf, sum->max_scale);
		pq_sendint64(&buf, sum->max_scale_count);
		/* NaN and the infinities are not among ours */
		for (int i = 0; i < 3; i++)
			pq_sendint64(&buf, 0);
	}

	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, (Node *) agg, NULL);
	fcinfo->args[0].value = PointerGetDatum(pq_endtypsend(&buf));
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = (Datum) 0;
	fcinfo->args[1].isnull = true;
	state = numeric ? numeric_avg_deserialize(fcinfo) : int8_avg_deserialize(fcinfo);
	pfree(DatumGetPointer(fcinfo->args[0].value));
	return state;
}
