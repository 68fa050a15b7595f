/*-------------------------------------------------------------------------
 *
 * logical.h
 *	  A change as logical decoding is to find it: made in relation/logical.c, logged in
 *	  wal/decode.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_XACT_LOGICAL_H
#define MOT_XACT_LOGICAL_H

#include "mot.h"

typedef struct MotLogicalRow
{
	const void *data;			/* NULL: there is none */
	size_t		size;			/* without what lies behind the columns */
	unsigned	host_bits;
} MotLogicalRow;

typedef enum MotLogicalKind
{
	MOT_LOGICAL_INSERT = 1, MOT_LOGICAL_UPDATE, MOT_LOGICAL_DELETE
} MotLogicalKind;

typedef struct MotLogicalChange
{
	MotLogicalKind kind;
	MotLogicalRow before;		/* what REPLICA IDENTITY says */
	MotLogicalRow after;
} MotLogicalChange;

#endif							/* MOT_XACT_LOGICAL_H */
