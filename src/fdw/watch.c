/*-------------------------------------------------------------------------
 *
 * watch.c
 *	  Plans for which something is kept: who hears of their end, and what is
 *	  kept no longer when there are too many.
 *
 * A callback on the memory of a plan says when it goes.  It cannot be taken
 * back, so a plan gets one only, however often what is kept for it is thrown
 * away and made anew; which plans have one is known by their address, for just
 * as long as they are there.
 *
 * If more plans are executed than something may be kept for, the least used
 * go, some at a time.  By use, not by time: a session that goes through more
 * statements than that in a circle would otherwise throw each away shortly
 * before it comes again, and one that asks each question once would throw away
 * those that it asks all the time.  Use long ago counts half as much with each
 * time that something has to go.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fdw/fdw.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#define MAX_WATCHERS 2

typedef struct Watched
{
	const PlannedStmt *plan;	/* hash key */
	MotPlanGone gone[MAX_WATCHERS];
} Watched;

static HTAB *watched_plans = NULL;

static void
plan_gone(void *arg)
{
	const PlannedStmt *plan = arg;
	Watched    *entry = hash_search(watched_plans, &plan, HASH_FIND, NULL);
	Watched		watched;

	if (entry == NULL)
		return;
	watched = *entry;
	(void) hash_search(watched_plans, &plan, HASH_REMOVE, NULL);
	for (int i = 0; i < MAX_WATCHERS; i++)
		if (watched.gone[i] != NULL)
			watched.gone[i] (plan);
}

void
MotPlanWatch(const PlannedStmt *plan, MotPlanGone gone)
{
	Watched    *watched;
	bool		found;

	if (watched_plans == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(PlannedStmt *);
		ctl.entrysize = sizeof(Watched);
		ctl.hcxt = TopMemoryContext;
		watched_plans = hash_create("MOT plans", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	watched = hash_search(watched_plans, &plan, HASH_FIND, NULL);
	if (watched == NULL)
	{
		MemoryContext cxt = GetMemoryChunkContext(unconstify(PlannedStmt *, plan));
		MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

		/* the entry first: without it the callback would do nothing */
		watched = hash_search(watched_plans, &plan, HASH_ENTER, &found);
		memset(watched->gone, 0, sizeof(watched->gone));
		callback->func = plan_gone;
		callback->arg = unconstify(PlannedStmt *, plan);
		MemoryContextRegisterResetCallback(cxt, callback);
	}
	for (int i = 0; i < MAX_WATCHERS; i++)
	{
		if (watched->gone[i] == gone)
			return;
		if (watched->gone[i] == NULL)
		{
			watched->gone[i] = gone;
			return;
		}
	}
	Assert(false);
}

static uint64
heat(MotPlanUse *use, uint64 total)
{
	use->heat = use->heat / 2 + (total - use->counted);
	use->counted = total;
	return use->heat;
}

static int
compare_heats(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* "go" of those that are not running are forgotten: the coldest. */
void
MotPlanMakeRoom(HTAB *plans, int go, MotPlanUseOf use_of, void (*forget) (void *entry))
{
	uint64	   *heats = palloc(hash_get_num_entries(plans) * sizeof(uint64));
	HASH_SEQ_STATUS status;
	MotPlanUse *use;
	void	   *entry;
	uint64		total;
	uint64		limit;
	int			n = 0;

	hash_seq_init(&status, plans);
	while ((entry = hash_seq_search(&status)) != NULL)
		if ((use = use_of(entry, &total)) != NULL)
			heats[n++] = heat(use, total);
	go = Min(go, n);
	qsort(heats, n, sizeof(uint64), compare_heats);
	limit = go > 0 ? heats[go - 1] : 0;
	pfree(heats);

	/* all that are colder, and as many of those that are as cold as it takes */
	for (int as_cold = 0; as_cold <= 1; as_cold++)
	{
		hash_seq_init(&status, plans);
		while ((entry = hash_seq_search(&status)) != NULL)
		{
			use = use_of(entry, &total);
			if (use == NULL || go == 0 || (as_cold ? use->heat != limit : use->heat >= limit))
				continue;
			forget(entry);
			go--;
		}
	}
}
