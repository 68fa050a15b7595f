/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  Between the files of xact/ only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_XACT_INTERNAL_H
#define MOT_XACT_INTERNAL_H

#include "xact/xact.h"

/* session.c: the session if it is open, else NULL */
extern mot_session *MotOpenSession;

/* snapshot.c */
extern void MotSnapshotInit(void);
extern void MotSnapshotSubCommit(int level);
extern void MotSnapshotSubAbort(int level);
extern void MotSnapshotEndXact(bool commit);
extern mot_ts MotTransactionSnapshotTs(void);	/* MOT_TS_NONE: none yet */

/* transaction.c */
extern void MotTransactionBegin(mot_session *session);

/* wait.c: MotRaiseStatus has reported that memory is out */
extern bool MotMemoryWasShort;

#endif							/* MOT_XACT_INTERNAL_H */
