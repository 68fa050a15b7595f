/*-------------------------------------------------------------------------
 *
 * fair.c
 *	  SERIALIZABLE: who gets through often lets others begin.
 *
 * Of transactions that meet at a hot place the first to commit wins, and that is mostly
 * who began first after the last commit: the one who has just won.  The others learn of it
 * when they come to their own commit, and then begin behind him, in the same order each
 * time, if nothing stirs them.
 *
 * So after some commits, if twice as many transactions of others have failed meanwhile, a session
 * begins its next one a little later: by an eighth of what the last one took, which puts others
 * before it, and costs it a sixtieth of its time.  What the client takes between the two counts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/waitevent.h"
#include "engine/mot_engine.h"
#include "engine/mot_report.h"
#include "pgstat.h"
#include "utils/timestamp.h"
#include "xact/internal.h"

#define COMMITS 8
/* microseconds that nobody waits longer, so that it need not be interrupted */
#define LONGEST 10000

static unsigned commits = 0;
static uint64 failed_before = 0;	/* in all sessions */
static TimestampTz begun;
static TimestampTz not_before = 0;

void
MotFairBegin(void)
{
	begun = GetCurrentTimestamp();
	/* (a clock that is put back keeps nobody) */
	if (likely(not_before <= begun) || not_before - begun > LONGEST)
		return;
	pgstat_report_wait_start(MotWaitEvent(MOT_FOR_FAIRNESS));
	pg_usleep(not_before - begun);
	pgstat_report_wait_end();
	begun = GetCurrentTimestamp();
}

void
MotFairCommitted(void)
{
	mot_txn_counts counts;
	uint64		failed;

	if (likely(++commits % COMMITS != 0))
		return;
	mot_txn_counts_get(MotEngine, &counts);
	failed = counts.events[MOT_EVENT_READ] + counts.events[MOT_EVENT_PHANTOM];
	if (failed - failed_before >= 2 * COMMITS)
	{
		TimestampTz now = GetCurrentTimestamp();

		not_before = now + Min((now - begun) / 8, LONGEST);
	}
	failed_before = failed;
}
