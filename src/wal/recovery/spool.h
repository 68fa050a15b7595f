/*-------------------------------------------------------------------------
 *
 * spool.h
 *	  A standby that loads while it replays: spool.c, standby.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_SPOOL_H
#define MOT_WAL_SPOOL_H

#include "wal/internal.h"

/* ------------------------------------------------------------------ spool.c */

typedef struct MotSpoolReader
{
	uint32		file;
	uint64		used;
	uint32		to_file;		/* so far may be read */
	uint64		to_used;
	char	   *map;
	char	   *own;			/* the current one's file, if it has one */
	Size		size;			/* of the current one, in the spool */
	const char *ops;			/* ... and what it is */
	size_t		len;
	XLogRecPtr	lsn;
	TransactionId xid;
} MotSpoolReader;

extern bool MotSpooling(void);	/* what is committed goes there */
extern void MotSpoolBegin(void);
extern void MotSpoolEnd(void);
extern bool MotSpoolAdd(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid, const char *path);
extern void MotSpoolWait(void);
extern bool MotSpoolApplies;	/* this process does, and is not to wait for
								 * itself */
extern void MotSpoolThrottle(void);
extern void MotSpoolForget(void);

extern void MotSpoolReadBegin(MotSpoolReader *reader);
extern uint64 MotSpoolReadable(MotSpoolReader *reader);
extern bool MotSpoolNext(MotSpoolReader *reader);
extern void MotSpoolDone(MotSpoolReader *reader);
extern void MotSpoolReadEnd(MotSpoolReader *reader);

/* ---------------------------------------------------------------- standby.c */

/* by the postmaster, when workers have been registered */
extern void MotStandbyLookForWorker(void);

/* rm_startup of an archive recovery, at this position: load, or have it loaded */
extern void MotStandbyBegin(XLogRecPtr upto, TimeLineID tli);

/* the worker: true if there is nothing left for it to load */
extern bool MotStandbyLoads(void);
extern void MotStandbyLoad(void);
extern void MotStandbyLoadHere(void);
extern void MotLoadRefuse(ErrorData *edata);
extern bool MotStandbyWorkerComes(void);
extern bool MotStandbyEndsLater(XLogRecPtr end);
extern void MotStandbyAwait(void);

/* recover.c, for these */
extern void MotRecoverCheckLog(const MotManifest *m);
extern void MotRecoverBegin(const MotManifest *m, const char *directory);
extern void MotRecoverLog(MotManifest *m, XLogRecPtr from, XLogRecPtr upto, TimeLineID tli);
extern void MotRecoverDone(const MotManifest *m, TimestampTz began);

#endif							/* MOT_WAL_SPOOL_H */
