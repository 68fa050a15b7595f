/*-------------------------------------------------------------------------
 *
 * tid.c
 *	  Rows as ctids and back.
 *
 * The engine numbers rows with 47 bits; a ctid has 32 bits of block number
 * and 16 of offset.  Offset 0 means "invalid" and the values above 0xfff0
 * have meanings of their own, so 15 bits of the number, plus one, go there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "xact/internal.h"

#define OFFSET_BITS 15
#define OFFSET_MASK ((1 << OFFSET_BITS) - 1)

void
MotRowToTid(mot_session *session, const mot_row *row, ItemPointer tid)
{
	uint64		number = mot_row_number(session, row);

	ItemPointerSet(tid, (BlockNumber) (number >> OFFSET_BITS),
				   (OffsetNumber) ((number & OFFSET_MASK) + 1));
}

mot_row *
MotTidToRow(mot_session *session, mot_table *table, ItemPointer tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	uint64		number;

	if (offset == InvalidOffsetNumber || offset > OFFSET_MASK + 1)
		return NULL;
	number = (uint64) ItemPointerGetBlockNumberNoCheck(tid) << OFFSET_BITS | (offset - 1);
	return mot_row_by_number(session, table, number);
}
