/*-------------------------------------------------------------------------
 *
 * hint.h
 *	  Where rows are, guessed: so that a row is fetched along with the nodes
 *	  that lead to it.
 *
 * A look-up in a large index waits for memory again and again, because each
 * node says where the next one is, and the last one where the row is.  So
 * there is one table beside all trees: at a place that only index and key
 * decide stands the line of memory where the key's row was found last.  The
 * row is asked for while the nodes are on their way.
 *
 * Nothing else is done with a hint.  It may be another key's, or of a row that
 * is gone: then a line is fetched in vain.  Hence nobody has to keep the table
 * right; its entries are stored without any lock by whoever has found or added
 * a row, it never grows, and no place in it belongs to anybody.
 *
 * Places of keys that follow one another do so, too, as long as they are
 * numbers: sixteen entries share a line, which ascending keys fill one after
 * the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_HINT_H
#define MOT_HINT_H

#include <string.h>

#include "memory.h"

#define HINT_SCATTER UINT64_C(0x9e3779b97f4a7c15)

/* what an index keeps of the table at hand */
typedef struct mot_hints
{
	_Atomic uint32_t *entry;	/* lines counted from "base"; 0: none */
	const char *base;
	uint32_t	mask;			/* there are so many entries and one */
	uint32_t	salt;			/* where the index's keys begin */
} mot_hints;

static inline void
mot_hints_begin(mot_hints *hints, const mot_region *region, uint64_t index_number)
{
	uint32_t	entries;

	hints->entry = mot_region_hints(region, &entries);
	hints->base = mot_region_base(region);
	hints->mask = entries - 1;
	hints->salt = (uint32_t) (index_number * HINT_SCATTER >> 32);
}

/* four bytes of a key, as its order has them */
static inline uint32_t
mot_hint_number(const unsigned char *p)
{
	uint32_t	x;

	memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap32(x);
#endif
	return x;
}

/*
 * The entry for a key.  Its last four bytes are taken as a number; the four
 * before them, and the first eight of a longer key, say only where such numbers
 * begin.  (Five to seven bytes are those of short strings: their first ones say
 * nothing, nor do those in the middle of long keys.)
 */
static inline _Atomic uint32_t *
mot_hint(const mot_hints *hints, const void *key, size_t len)
{
	const unsigned char *k = key;
	uint64_t	high = 0;
	uint32_t	low = 0;

	if (mot_likely(len >= 4))
	{
		low = mot_hint_number(k + len - 4);
		if (len >= 8)
		{
			high = mot_hint_number(k + len - 8);
			if (len > 8)
				high ^= (uint64_t) mot_hint_number(k) << 32 ^ (uint64_t) mot_hint_number(k + 4) << 16;
			low += (uint32_t) (high * HINT_SCATTER >> 32);
		}
	}
	else
		for (size_t i = 0; i < len; i++)
			low = low << 8 | k[i];
	return &hints->entry[(low + hints->salt) & hints->mask];
}

/* ask for the lines the hint says: enough for the row and a short version of it */
static inline void
mot_hint_fetch(const mot_hints *hints, const _Atomic uint32_t *hint)
{
	/* relaxed: see above */
	uint32_t	line = atomic_load_explicit(hint, memory_order_relaxed);
	const char *p = hints->base + (size_t) line * MOT_CACHE_LINE;

	if (line != 0)
	{
		mot_prefetch(p);
		mot_prefetch(p + MOT_CACHE_LINE);
	}
}

/* (In a region of more than 256 GB lines have the same number: a hint that is wrong.) */
static inline void
mot_hint_keep(const mot_hints *hints, _Atomic uint32_t *hint, const void *row)
{
	uint32_t	line = (uint32_t) ((size_t) ((const char *) row - hints->base) / MOT_CACHE_LINE);

	/* stored only if it is new, lest the line wander between processors */
	if (atomic_load_explicit(hint, memory_order_relaxed) != line)
		atomic_store_explicit(hint, line, memory_order_relaxed);
}

#endif							/* MOT_HINT_H */
