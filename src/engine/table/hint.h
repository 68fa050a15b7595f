/*-------------------------------------------------------------------------
 *
 * hint.h
 *	  Where rows are, guessed: so that a row is fetched along with the nodes
 *	  that lead to it.
 *
 * A look-up in a large index waits for memory again and again, because each
 * node says where the next one is, and the last one where the row is.  So
 * there is one table beside all trees: at a place that only index and key
 * decide stands the line of memory where the key's row was found last.
 *
 * It may be another key's, or of a row that is gone.  Hence nobody has to keep
 * the table right; its entries are stored without any lock by whoever has found
 * or added a row, it never grows, and no place in it belongs to anybody.
 *
 * A hint is used in two ways (index.c).  Where a row's key is cheaply told from
 * the row, the row is looked at first: if a row of the table is there at all
 * (rowmap.c), is visible and has the key, then it is the one, because a unique
 * key has one visible row; and nothing of the tree has been read.  Otherwise the
 * row is asked for while the nodes are on their way.
 *
 * A wrong hint costs the wait for a row in vain.  So each session counts, for
 * each index, how many of the last were right, and looks at rows first only
 * while most are: a table with more rows than the hints have room for, or whose
 * keys are mostly looked for in vain, is better searched at once.
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

#include "memory/memory.h"

#define HINT_SCATTER UINT64_C(0x9e3779b97f4a7c15)

/* what an index keeps of the table at hand */
typedef struct mot_hints
{
	_Atomic uint32_t *entry;	/* lines counted from "base"; 0: none */
	const char *base;
	uint32_t	mask;			/* there are so many entries and one */
	uint32_t	salt;			/* where the index's keys begin */
	unsigned	trust;			/* which of the session's counts is the
								 * index's */
} mot_hints;

/* of a session: shares of right ones, in 256ths */
#define HINT_TRUSTS 64			/* indexes with the same count do no harm */
#define HINT_TRUST_MAX 240
#define HINT_TRUST_HALF 128

/* over the last sixteen or so; ends at 15 and at HINT_TRUST_MAX */
static inline void
mot_hint_judge(uint8_t *trust, bool right)
{
	unsigned	t = *trust;

	*trust = (uint8_t) (right ? t + ((255 - t) >> 4) : t - (t >> 4));
}

static inline void
mot_hints_begin(mot_hints *hints, const mot_region *region, uint64_t index_number)
{
	uint32_t	entries;

	hints->entry = mot_region_hints(region, &entries);
	hints->base = mot_region_base(region);
	hints->mask = entries - 1;
	hints->salt = (uint32_t) (index_number * HINT_SCATTER >> 32);
	hints->trust = index_number % HINT_TRUSTS;
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
		low = mot_load_be32(k + len - 4);
		if (len >= 8)
		{
			high = mot_load_be32(k + len - 8);
			if (len > 8)
				high ^= (uint64_t) mot_load_be32(k) << 32 ^ (uint64_t) mot_load_be32(k + 4) << 16;
			low += (uint32_t) (high * HINT_SCATTER >> 32);
		}
	}
	else
		for (size_t i = 0; i < len; i++)
			low = low << 8 | k[i];
	return &hints->entry[(low + hints->salt) & hints->mask];
}

/* relaxed: a hint says nothing about other memory */
static inline uint32_t
mot_hint_line(const _Atomic uint32_t *hint)
{
	return atomic_load_explicit(hint, memory_order_relaxed);
}

/* ask for the lines the hint says: enough for the row and a short version of it */
static inline void
mot_hint_fetch(const mot_hints *hints, uint32_t line)
{
	const char *p = hints->base + (size_t) line * MOT_CACHE_LINE;

	if (line != 0)
	{
		mot_prefetch(p);
		mot_prefetch(p + MOT_CACHE_LINE);
	}
}

/* where a row is, as hints have it */
static inline uint32_t
mot_hint_of(const mot_hints *hints, const void *row)
{
	return (uint32_t) ((size_t) ((const char *) row - hints->base) / MOT_CACHE_LINE);
}

/* (In a region of more than 256 GB lines have the same number: a hint that is wrong.) */
static inline void
mot_hint_keep(const mot_hints *hints, _Atomic uint32_t *hint, const void *row)
{
	uint32_t	line = mot_hint_of(hints, row);

	/* stored only if it is new, lest the line wander between processors */
	if (mot_hint_line(hint) != line)
		atomic_store_explicit(hint, line, memory_order_relaxed);
}

#endif							/* MOT_HINT_H */
