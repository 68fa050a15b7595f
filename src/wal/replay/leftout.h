/*-------------------------------------------------------------------------
 *
 * leftout.h
 *	  Tables that memory has no room for (leftout.c, leftlist.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_LEFTOUT_H
#define MOT_WAL_LEFTOUT_H

#include "wal/replay/apply.h"
#include "wal/checkpoint/checkpoint.h"

/* the part of a table in a checkpoint that is no rows but redo to be applied to them */
#define MOT_REDO_PART PG_UINT32_MAX

struct MotLeftOut
{
	Oid			dbid;
	Oid			relid;
	Oid			owner;			/* the table's oid, which locks are about */
	uint32		number;			/* of its directory; 0: not registered yet */
	uint64		records;		/* of its redo */
	uint64		redo_bytes;
	pg_crc32c	redo_crc;		/* of their headers, not finished */
	uint64		rows;			/* in its files */
	uint64		least;			/* memory that its rows take in any case */
	uint64		needed;			/* memory, as was found by trying; see
								 * MotLeftOutNeeds */
	uint64		had;			/* so much was not enough */
	TimestampTz tried;			/* to bring it back */
	int			wait_ms;		/* before that is tried again with as much */
	bool		to_sync;		/* its files may not be on the disk */
	bool		soon;			/* it is loaded anew, not for want of memory */
};

extern const MotShmem MotLeftOutShmem;
extern void MotLeftOutStart(void);
extern void MotLeftOutClear(void);
extern uint32 MotLeftOutNextNumber(void);

/* by anybody; relid invalid: any table of the database */
extern uint32 MotLeftOutCount(void);
extern bool MotLeftOutFind(Oid dbid, Oid relid, MotLeftOut *entry);
extern int	MotLeftOutList(MotLeftOut **list);

/*
 * Somebody may be about to truncate or drop it, or its database (redo does that with MotApplyLock):
 * false, and nothing is locked.  The locks are the session's.
 */
extern bool MotLeftOutLock(const MotLeftOut *entry);
extern void MotLeftOutUnlock(const MotLeftOut *entry);
extern void MotLeftOutForget(Oid dbid, Oid relid);
extern void MotLeftOutSynced(const MotLeftOut *entry);

/* by who loads: the table as the checkpoint in that directory has it; and all of them */
extern void MotLeftOutLoad(const char *directory, const MotManifestTable *table, uint64 needed);
extern int	MotLeftOutBringBack(bool all);
extern bool MotLeftOutTry(Oid dbid, Oid relid);
extern void MotLeftOutFailed(Oid dbid, Oid relid, uint64 had, uint64 needed);
extern uint64 MotLeftOutNeeds(const MotLeftOut *entry);
extern uint64 MotLeftOutNeeded(const mot_table *table, uint64 rows, uint32 nindexes);
extern void MotLeftOutReport(void);

/* by who applies redo, with MotApplyLock */
extern void MotLeftOutTable(mot_table *table, uint64 bytes);
extern void MotLeftOutEmpty(MotLeftOut *entry, Oid dbid, Oid relid, const void *definition, size_t len);
extern void MotLeftOutRegister(const MotLeftOut *entry);
extern void MotLeftOutWrite(MotLeftOut *entry, const char *ops, size_t len);

/* by who writes a checkpoint: the list is of its line */
extern void MotLeftOutCheckpoint(MotManifest *m, const MotLeftOut *list, int n, const char *directory);
extern void MotLeftOutSweep(void);

#endif							/* MOT_WAL_LEFTOUT_H */
