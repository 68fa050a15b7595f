/*-------------------------------------------------------------------------
 *
 * held.h
 *	  What snapshots keep in memory, and who is ended for it (held.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_HELD_H
#define MOT_HELD_H

#include "datatype/timestamp.h"
#include "engine/mot_engine.h"
#include "port/atomics.h"

extern const struct MotShmem MotHeldShmem;
extern void MotHeldInit(void);

/*
 * This process's session has been opened; this worker follows that one; a leader is about to have
 * workers.
 */
extern void MotHeldOpened(unsigned slot);
extern void MotHeldLead(void);

/* The maintenance worker's round, if it is time; returns milliseconds to the next one. */
extern long MotHeldServe(void);

/*
 * For statistics: what this snapshot of a slot's session keeps, and since when that is known (0:
 * not yet).
 */
extern uint64 MotHeldBytes(unsigned slot, mot_ts snapshot, TimestampTz *since);

/* more than this is too much for this session's snapshot; what it is, as of the last round */
extern uint64 MotHeldLimit;
extern pg_atomic_uint64 *MotHeldMine;
extern void MotHeldTooMuch(void);

/*
 * To be called where a statement begins, and now and then between two of its rows; may raise 40001.
 */
#define MOT_HELD_ROWS 1024

static inline void
MotHeldCheck(void)
{
	if (unlikely(pg_atomic_read_u64(MotHeldMine) > MotHeldLimit))
		MotHeldTooMuch();
}

#endif							/* MOT_HELD_H */
