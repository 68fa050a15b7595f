/*-------------------------------------------------------------------------
 *
 * label.c
 *	  Labels: numbers between any two of which there is another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "relation/keycodec_types.h"
#include "relation/label.h"

/* what is left between a label at the end and the next one beyond */
#define STEP (UINT64CONST(1) << 32)

/* a value of a long run takes that much of the gap: 1 of 2^(1 + 16) */
#define MAX_RUN 16

/* a run is seen by so many bits; so many are as good as one of it that is known */
#define SEEN_BITS 16
#define SEEN_STEP 8

#define MORE 0x01

static inline uint32
word(const MotLabel *label, int i)
{
	return label != NULL && i < label->nwords ? label->words[i] : 0;
}

static inline uint64
first_words(const MotLabel *label)
{
	return (uint64) word(label, 0) << 32 | word(label, 1);
}

/* "before" is followed by "count" numbers to choose from */
static uint64
choose(uint64 before, uint64 count, int run)
{
	if (run < 0)
		return before + count - ((count - 1) >> (1 + Min(-run, MAX_RUN)));
	return before + 1 + ((count - 1) >> (1 + Min(run, MAX_RUN)));
}

/*
 * The number is as short as can be: as long as the first words leave nothing to choose they are
 * those of "lo" (or of "hi", which then are greater by one), and the next word is looked at.
 */
static bool
between(const MotLabel *lo, const MotLabel *hi, bool bisect, int run, MotLabel *result)
{
	uint64		low = first_words(lo);
	uint64		high = first_words(hi);
	uint64		top = hi == NULL ? PG_UINT64_MAX : hi->nwords > 2 ? high : high - 1;
	uint64		ahead;			/* how far the words of "hi" so far are ahead
								 * of those of "lo" */

	if (low < top)
	{
		uint64		count = top - low;
		uint64		number;

		if (bisect || (lo != NULL && hi != NULL))
			number = choose(low, count, run);
		else if (lo == NULL && hi == NULL)
			number = UINT64CONST(1) << 63;
		else if (hi == NULL)
			number = low + Min(STEP, 1 + (count - 1) / 2);
		else
			number = top - Min(STEP - 1, (count - 1) / 2);
		result->words[0] = (uint32) (number >> 32);
		result->words[1] = (uint32) number;
		result->nwords = 2;
		return true;
	}
	ahead = hi == NULL ? 1 : high - low;

	for (int k = 2; k < MOT_LABEL_WORDS; k++)
	{
		low = word(lo, k);
		high = (ahead << 32) + word(hi, k);
		top = hi != NULL && hi->nwords > k + 1 ? high : high - 1;
		if (low < top)
		{
			uint64		number = choose(low, top - low, run);
			const MotLabel *begin = number < STEP ? lo : hi;

			for (int i = 0; i < k; i++)
				result->words[i] = word(begin, i);
			result->words[k] = (uint32) number;
			result->nwords = k + 1;
			while (result->nwords > 2 && result->words[result->nwords - 1] == 0)
				result->nwords--;
			return true;
		}
		ahead = high - low;
	}
	return false;
}

/* how many bits there are before the zeros at the end */
static int
length(const MotLabel *label)
{
	int			n = label->nwords;

	while (n > 0 && label->words[n - 1] == 0)
		n--;
	return n == 0 ? 0 : 32 * n - pg_rightmost_one_pos32(label->words[n - 1]);
}

/*
 * Who has not given the labels of a run himself (several sessions do in turn, or many runs) sees
 * it: the one of the neighbours that is the run's last has got longer and longer beside the other.
 * In other orders neighbours are as long, but for some bits.
 */
static int
seen_run(const MotLabel *lo, const MotLabel *hi)
{
	int			longer = lo == NULL || hi == NULL ? 0 : length(lo) - length(hi);

	return abs(longer) < SEEN_BITS ? 0 : longer / SEEN_STEP;
}

bool
MotLabelBetween(const MotLabel *lo, const MotLabel *hi, int run, MotLabel *result)
{
	int			seen = seen_run(lo, hi);

	return between(lo, hi, false, abs(seen) > abs(run) ? seen : run, result);
}

bool
MotLabelMiddle(const MotLabel *lo, const MotLabel *hi, MotLabel *result)
{
	return between(lo, hi, true, 0, result);
}

void
MotLabelSpread(uint64 i, uint64 n, MotLabel *result)
{
	/* a quarter is left at each end */
	uint64		room = PG_UINT64_MAX / 2;
	uint64		step = Min(room / Max(n, 1), STEP);
	uint64		number = PG_UINT64_MAX / 2 - step * (n / 2) + step * i;

	result->words[0] = (uint32) (number >> 32);
	result->words[1] = (uint32) number;
	result->nwords = 2;
}

int
MotLabelCompare(const MotLabel *a, const MotLabel *b)
{
	for (int i = 0; i < Max(a->nwords, b->nwords); i++)
		if (word(a, i) != word(b, i))
			return word(a, i) < word(b, i) ? -1 : 1;
	return 0;
}

static inline void
put_word(uint32 number, uint8 flip, MotKeyBuffer *buf)
{
	key_put32(buf, flip ? ~number : number);
}

void
MotLabelAppend(const MotLabel *label, uint8 flip, MotKeyBuffer *buf)
{
	put_word(label->words[0], flip, buf);
	put_word(label->words[1], flip, buf);
	for (int i = 2; i < label->nwords; i++)
	{
		key_put8(buf, MORE ^ flip);
		put_word(label->words[i], flip, buf);
	}
	key_put8(buf, flip);
}

size_t
MotLabelTake(const uint8 *bytes, size_t len, uint8 flip, MotLabel *label)
{
	size_t		at = 0;

	label->nwords = 0;
	while (label->nwords < MOT_LABEL_WORDS && len - at > sizeof(uint32))
	{
		uint32		number;

		memcpy(&number, bytes + at, sizeof(number));
		number = pg_ntoh32(number);
		label->words[label->nwords++] = flip ? ~number : number;
		at += sizeof(number);
		if (label->nwords < 2)
			continue;
		if ((bytes[at] ^ flip) == 0)
			return at + 1;
		if ((bytes[at] ^ flip) != MORE)
			return 0;
		at++;
	}
	return 0;
}
