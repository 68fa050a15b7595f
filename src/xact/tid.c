/*-------------------------------------------------------------------------
 *
 * tid.c
 *	  Rows as ctids and back.
 *
 * The engine numbers rows with 47 bits; a ctid has 32 bits of block number
 * and 16 of offset.  Offset 0 means "invalid" and the values above 0xfff0
 * have meanings of their own, so 15 bits of the number, plus one, go there.
 *
 * Memory is never so large that numbers need all 47.  What is above them says,
 * for ordinary tables, which version of the row is meant: the server hands
 * AFTER triggers a row's old and new version by nothing but their ctids.
 * Versions that others can see have no number of their own, and need none: 0 is
 * the version that whoever asks sees; n is what the n-th change of this
 * transaction made of it; and the highest value, the newest version, which the
 * transaction has found when it locked the row or looked for a key (at READ COMMITTED
 * that may be newer than what its snapshot sees).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "xact/internal.h"

#define OFFSET_BITS 15
#define OFFSET_MASK ((1 << OFFSET_BITS) - 1)

static inline void
from_number(uint64 number, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (number >> OFFSET_BITS), (OffsetNumber) ((number & OFFSET_MASK) + 1));
}

/* false: it is none of ours */
static inline bool
to_number(ItemPointer tid, uint64 *number)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	*number = (uint64) ItemPointerGetBlockNumberNoCheck(tid) << OFFSET_BITS | (offset - 1);
	return offset != InvalidOffsetNumber && offset <= OFFSET_MASK + 1;
}

void
MotRowToTid(mot_session *session, const mot_row *row, ItemPointer tid)
{
	from_number(mot_row_number(session, row), tid);
}

mot_row *
MotTidToRow(mot_session *session, mot_table *table, ItemPointer tid)
{
	uint64		number;

	return to_number(tid, &number) ? mot_row_by_number(session, table, number) : NULL;
}

static unsigned
number_bits(void)
{
	static unsigned bits = 0;

	if (unlikely(bits == 0))
		bits = mot_row_number_bits(MotEngine);
	return bits;
}

/* the highest value there is room for */
static uint64
locked_changes(void)
{
	return (UINT64CONST(1) << (47 - number_bits())) - 1;
}

/*
 * changes: of this transaction, of which the version is the outcome (0: it is
 * committed), or MOT_TID_LOCKED.
 */
void
MotVersionToTid(mot_session *session, const mot_row *row, unsigned changes, ItemPointer tid)
{
	uint64		number = mot_row_number(session, row);
	uint64		locked = locked_changes();
	uint64		n = changes == MOT_TID_LOCKED ? locked : changes;

	if (unlikely(changes != MOT_TID_LOCKED && n >= locked))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a transaction can change a row of a memory-optimized table at most " UINT64_FORMAT " times",
						locked - 1)));
	from_number(number | n << number_bits(), tid);
}

mot_row *
MotTidToVersion(mot_session *session, mot_table *table, ItemPointer tid, unsigned *changes)
{
	uint64		number;
	uint64		n;

	if (!to_number(tid, &number))
		return NULL;
	n = number >> number_bits();
	*changes = n == locked_changes() ? MOT_TID_LOCKED : (unsigned) n;
	return mot_row_by_number(session, table, number & ((UINT64CONST(1) << number_bits()) - 1));
}

/* Ids up to this one: are there any of rows that this transaction has changed? */
bool
MotTidOfChanges(ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << OFFSET_BITS >> number_bits() != 0;
}
