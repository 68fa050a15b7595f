/*-------------------------------------------------------------------------
 *
 * enumerated.h
 *	  Enums in indexes without labels: their order, where that of the keys' bytes is another.
 *
 * In such a key an enum's value is its oid.  The server gives values even oids, of which the lesser one comes first,
 * and an odd one to a value that ALTER TYPE puts where no such oid is to be had; it compares by that, too (enum.c).
 * So keys are in the order of their bytes as long as none has an odd oid.  The first one that has is
 * remembered with the index, before its row can be seen (mot_index_has_odd).
 *
 * From then on a scan that does not fix all enums to values takes these in turn: it finds out which ones the rows
 * that it sees have, puts them in order, and makes a range of each; where columns before have several values, for each of
 * these.  The same is done where a bound is odd.  What it finds are values that two rows
 * of the view have, or a row and a bound, and their order to each other never changes, however the type
 * is altered, beside the scan or between two of a plan.  So nothing depends on when a session
 * hears of that, and neither plans nor keys have to be made anew.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ENUMERATED_H
#define MOT_ENUMERATED_H

#include "relation/keys.h"

/* Is an odd oid in the key? */
extern bool MotKeyIsOdd(const MotKey *key, const uint8 *bytes, size_t len);

/* Keys in the order of their values, enums included. */
extern int	MotKeyCompareOrdered(const MotKey *key, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len);

/* The same of one column's bytes. */
extern int	MotEnumCompare(const MotKeyColumn *column, const uint8 *a, const uint8 *b);

/* (keys.c) Are the enums behind the points to be taken in turn?  After operands were evaluated. */
extern bool MotEnumsAreOdd(const MotKeys *keys);

/*
 * The first range of those within the bounds, which have no condition on an enum; false: there is none.  Then the
 * next ones.
 */
extern bool MotTurnsFirst(MotKeys *keys);
extern bool MotTurnsNext(MotKeys *keys);

#endif							/* MOT_ENUMERATED_H */
