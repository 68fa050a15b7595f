/*-------------------------------------------------------------------------
 *
 * label.h
 *	  Labels: numbers between any two of which there is another one.
 *
 * What a column of an index has in place of a value whose order only its operator class's
 * function knows (ranked.h).  A label is a fraction: words of 32 bits, the first two always
 * there, none of the others the last if it is zero.  As bytes it is these two, then 0x01 and four
 * bytes for each of the others, then 0x00, so that bytes are ordered as numbers are and none is the
 * beginning of another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_LABEL_H
#define MOT_LABEL_H

#include "relation/keycodec.h"

#define MOT_LABEL_WORDS 200		/* more is an error: the index has to be built
								 * anew */

typedef struct MotLabel
{
	int			nwords;			/* 0: none */
	uint32		words[MOT_LABEL_WORDS];
} MotLabel;

/*
 * A label between two others; "lo" or "hi" NULL: beyond the other, at a distance.  Else half way;
 * or, the more values have come in this gap in ascending ("run" so many) or descending order (less
 * than 0), the nearer to the one that came last, so that a bit of the label goes with the first few
 * of a run only; also if no run is known, but the labels look like one.  False: there would be too
 * many words.
 */
extern bool MotLabelBetween(const MotLabel *lo, const MotLabel *hi, int run, MotLabel *result);

/* the same to bisect: half way, also to the end of all labels */
extern bool MotLabelMiddle(const MotLabel *lo, const MotLabel *hi, MotLabel *result);

/* of "n" labels that leave the same room everywhere, the one at place "i" (from 0) */
extern void MotLabelSpread(uint64 i, uint64 n, MotLabel *result);

extern int	MotLabelCompare(const MotLabel *a, const MotLabel *b);

/* its bytes, each inverted by "flip" */
extern void MotLabelAppend(const MotLabel *label, uint8 flip, MotKeyBuffer *buf);

/* how many bytes the label there has; 0: it is none */
extern size_t MotLabelTake(const uint8 *bytes, size_t len, uint8 flip, MotLabel *label);

#endif							/* MOT_LABEL_H */
