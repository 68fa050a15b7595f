/*-------------------------------------------------------------------------
 *
 * workers.h
 *	  How many parallel workers there are, and which of them go on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WORKERS_H
#define MOT_WORKERS_H

#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/proc.h"

/* mot.analytics_hint */
extern bool mot_analytics_hint;

typedef struct MotHint
{
	double		processors;
	double		hint;			/* of them free, on average */
	double		room;			/* for workers, those that run included */
	int			active;			/* processes */
	int			blocked;		/* that wait, but for clients or for something
								 * to do */
} MotHint;

/* hint.c */
#define MOT_HINT_WATCH 20000	/* microseconds: the watchdog's */
extern const struct MotShmem MotHintShmem;
extern int64 MotMicroseconds(void);
extern bool MotHintLook(int64 after);
extern void MotHintGet(MotHint *hint);
extern void MotHintPretend(double processors, double room);

/* workers.c */
extern void MotWorkersShmemRequest(void);
extern struct MotShmem MotWorkersShmem;
extern void MotWorkersInit(void);
extern bool MotIsWorkerOfOurs(const volatile PGPROC *proc);
extern int	MotWorkersRunning(void);

typedef struct MotWorkersStat
{
	int			running;
	int			parked;
	int			most;			/* mot.analytics_share of the processors */
	uint64		asked;			/* workers planned, since the start */
	uint64		granted;
} MotWorkersStat;

extern void MotWorkersStatGet(MotWorkersStat *stat);

/*
 * A leader is about to run a plan with workers; NULL: over no ordinary tables.  Returns what to
 * give to the second, behind it.
 */
extern bool MotWorkersLead(PlanState *plan);
extern void MotWorkersLed(bool before);

/*
 * A worker begins a query of that kind.  Of its leader's queries that run, one within a function of
 * the other, the inner one's level is higher.
 */
extern void MotWorkersEnter(int level);

/*
 * Somebody who takes part in a parallel scan is between two of its pages, of which "next" deals
 * out the next one.  Workers may be parked here.  over: there was none left.
 */
extern void MotWorkersPause(pg_atomic_uint64 *next, uint64 pages);
extern void MotWorkersOver(void);

#endif							/* MOT_WORKERS_H */
