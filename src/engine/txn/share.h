/*-------------------------------------------------------------------------
 *
 * share.h
 *	  The table of rows that several transactions can hold.  See share.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SHARE_H
#define MOT_SHARE_H

#include "mot_engine.h"
#include "port.h"

/* a row that a transaction shares; see share.c */
typedef struct share
{
	struct share *next;
	mot_row    *row;
	uint32_t	owner;
	bool		key_only;
} share;

typedef struct share_bucket
{
	mot_spinlock lock;
	share	   *first;
} share_bucket;

#define SHARE_BUCKET_BITS 12

#endif							/* MOT_SHARE_H */
