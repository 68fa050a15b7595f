/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  Between the files of xact/ only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_XACT_INTERNAL_H
#define MOT_XACT_INTERNAL_H

#include "compat/calls.h"
#include "executor/executor.h"
#include "xact/xact.h"

/*
 * An engine snapshot: as in a view.  What lies beyond is allocated in the
 * transaction's memory, and whoever has taken it may forget it before.
 */
typedef struct MotTaken
{
	mot_ts		ts;
	const mot_beyond *beyond;
} MotTaken;

/* snapshot.c */
extern void MotSnapshotInit(void);
extern void MotSnapshotSubCommit(int level);
extern void MotSnapshotSubAbort(int level);
extern void MotSnapshotEndXact(bool commit);
extern MotTaken MotTransactionTaken(void);	/* MOT_TS_NONE: none yet */
extern bool MotSnapshotImported;	/* SET TRANSACTION SNAPSHOT */
extern bool MotSnapshotHeldEarly(void);
extern MotTaken MotTakenFor(Snapshot snapshot);
extern bool MotPlanMayRead(const PlannedStmt *plan);
extern bool MotPlanNamesOrdinary(const PlannedStmt *plan);
extern bool MotSnapshotStale(void);
extern void MotSnapshotAdopt(Snapshot snapshot, MotTaken taken);

/* export.c */
extern const MotShmem MotExportShmem;
extern void MotExportTell(void);
extern void MotExportForget(void);
extern MotTaken MotExportFind(const char *identifier);

/* decoded.c */
#define MOT_DECODED_KEPT 1024	/* commits of a process that are known */
extern const MotShmem MotDecodedShmem;
extern void MotDecodedCommits(void);
extern void MotDecodedCommitted(uint64 xid, mot_ts ts, bool others);
extern int	MotDecodedUnseen(int process, mot_ts upto, mot_ts held, bool (*unseen) (uint64 xid, void *arg), void *arg,
							 mot_ts *without);
extern bool MotDecodedImport(mot_session *session, const char *identifier);
extern bool MotDecodedLower(mot_session *session, mot_ts ts);
extern void MotDecodedServe(void);

/* fair.c: a SERIALIZABLE transaction is about to take its snapshot; has committed changes */
extern void MotFairBegin(void);
extern void MotFairCommitted(void);

/* parallel.c */
extern void MotParallelInit(void);
extern void MotParallelRun(ExecutorRun_hook_type below, MOT_RUN_PARAMETERS);
extern bool MotParallelFollows(void);
extern void MotParallelFollow(Snapshot snapshot);

/* an engine snapshot as text: its number, and what lies beyond that, if anything */
extern void MotTakenWrite(StringInfo text, MotTaken taken);
extern MotTaken MotTakenRead(const char *text, MemoryContext cxt);

/* transaction.c */
extern void MotTransactionBegin(mot_session *session);
extern bool MotWorkersSeeAll(void);

/* mixed.c; at most one announced commit a process */
extern void MotMixedAnnounce(bool drawing, bool alone);
extern uint32 MotMixedLeftOut(const TransactionId **xids);
extern TransactionId MotMixedAwaited(void);
extern void MotMixedDrawn(mot_ts ts);
extern bool MotMixedAnnounced(void);
extern void MotMixedDraw(void);
extern void MotMixedWithdraw(void);
extern MotTaken MotMixedTake(mot_session *session, Snapshot snapshot);
extern bool MotMixedTakeNone(mot_session *session, MotTaken *taken);
extern MotTaken MotMixedTakeMoment(mot_session *session, Snapshot snapshot, bool *stale);
extern MotTaken MotMixedTakeDecoded(mot_session *session, Snapshot snapshot, bool *known);
extern void MotForgetBeyond(const mot_beyond **beyond);

/* prepared.c */
extern pg_atomic_uint32 *MotPreparedUsed;	/* whether there are any */
extern void MotPreparedCatchUp(Snapshot snapshot, bool storage);
extern MotShmem MotPreparedShmem;
extern void MotPreparedShmemRequest(void);
extern bool MotPreparedIsSaid(void);
extern bool MotPreparedUnsaid(TransactionId xid);
extern bool MotPreparedChangesHeap(void);
extern void MotPreparedBegin(mot_session *session, bool keeps);
extern bool MotPreparedDone(mot_session *session);
extern void MotPreparedEnd(void);
extern void MotPreparedWait(TransactionId xid);
extern bool MotPreparedAnyKeeps(void);
extern bool MotPreparedAnyUnrestored(void);
extern bool MotPreparedKeeps(TransactionId xid);

/* moment.c */
extern MotTaken MotMomentQuery(mot_session *session, Snapshot snapshot);
extern bool MotMomentTransaction(mot_session *session, Snapshot query_snapshot, bool used, MotTaken *taken);

/* circle.c: who waits for whose rows */
extern const MotShmem MotCircleShmem;

/* owed.c */
extern const MotShmem MotOwedShmem;
extern void MotOwedTell(void);
extern bool MotCircleEnter(const mot_holder *holder);
extern void MotCircleLeave(void);

/* serial.c: SERIALIZABLE over both kinds of tables */
extern bool MotSerialTouchesHeap(void);
extern void MotSerialEnter(void);
extern void MotSerialCheck(bool keeps); /* in the section, the engine's
										 * transaction prepared; or at PREPARE
										 * TRANSACTION, its reads kept */
extern void MotSerialAwaitPrepared(mot_session *session);
extern void MotSerialBefore(void);
extern bool MotSerialBecomesSafe(void);

/* late.c: a query at REPEATABLE READ or above has been started */
extern void MotLateWatch(QueryDesc *query);

/*
 * wait.c: what waiters wait for.  Take: the lock that stands for what the
 * current subtransaction does; released with it, or before it commits.
 */
extern uint64 MotTakeSubxactLock(void);
extern void MotReleaseSubxactLock(uint64 id);

/* how the engine calls a prepared transaction that holds rows */
extern uint64 MotHolderOfXid(TransactionId xid);
extern TransactionId MotXidOfHolder(uint64 id);

extern void MotWaitInit(void);

/* MotRaiseStatus has reported that memory is out */
extern bool MotMemoryWasShort;

extern void MotRaiseDependency(mot_event event, const char *detail) pg_attribute_noreturn();

#endif							/* MOT_XACT_INTERNAL_H */
