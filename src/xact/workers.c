/*-------------------------------------------------------------------------
 *
 * workers.c
 *	  How many parallel workers a query on ordinary tables has, and which go on.
 *
 * The planner says how many a plan is worth.  How many there are is decided
 * when Gather starts them, by the concurrency hint (hint.c): as many as processors are free,
 * and all of these queries together at most mot.analytics_share of the processors.  The Gather
 * that gets fewer does what it does when the server has no more: the leader does the rest.
 * (Gather's own function is called with a copy of its plan that asks for fewer.)
 *
 * While they run, somebody else may need the processors, or need them no more.  So a worker
 * asks between two pages, each millisecond, which is its morsel, whether there is room for it; if
 * not it parks, with nothing in its hands: pages are dealt out one by one, so what it does not take
 * others do.  A query that is large enough to live to see the hint rise starts all the workers that
 * the share allows, and those that exceed the hint park before their first page.
 *
 * Nobody ever waits for a worker that is parked:
 *
 *	- a barrier (of a Parallel Hash's build, say) has others wait at the end of a
 *	  scan, and whoever finds that the scan has no more pages wakes the workers parked in it;
 *	- the leader that has enough rows (LIMIT) detaches from the queues, which wakes them, and waits;
 *	- all other ways to wait for a worker in the middle of its scan (a hash table that is to
 *	  grow) come to this: a worker is parked only as long as somebody else of its query
 *	  is active, its leader or a worker.  It looks for that each time it is woken, and every 5 ms.
 *
 * So a query has at least one process that goes on, however little room there is.  If that is
 * not the leader (parallel_leader_participation = off), it is a worker.  (Workers of a query that a
 * function of another one runs have the same leader: that one's do nothing for them.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "compat/waitevent.h"
#include "executor/execParallel.h"
#include "miscadmin.h"
#include "mot.h"
#include "nodes/nodeFuncs.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/guc.h"
#include "xact/workers.h"

#define MORSEL_US 1000
#define LOOK_US 2000			/* those who run look as often */
#define PARKED_MS 5				/* is the query going on? */

/*
 * estimated cost below Gather from which a query may see the hint rise: about a tenth of a second
 */
#define LARGE_COST 20000

#define TRANCHE "mot_parked"

typedef struct Place
{
	int			process;		/* number + 1; 0: free */
	int			leader;
	int			level;			/* of its query, among the leader's */
	bool		parked;
} Place;

typedef struct Shared
{
	slock_t		mutex;			/* of the places: held for a walk through them */
	pg_atomic_uint64 asked;
	pg_atomic_uint64 granted;
	int			nplaces;
	Place	   *place;
	/* by number of the process: is it leading such a query? */
	bool	   *leading;
} Shared;

bool		mot_analytics_hint = true;
static double mot_analytics_share = 0.75;

static Shared *shared = NULL;
static Place *mine = NULL;		/* in a worker */
static int64 morsel = 0;		/* when ours began */

/* Gather's functions */
static ExecProcNodeMtd gather = NULL;
static ExecProcNodeMtd gather_merge = NULL;

void
MotWorkersInit(void)
{
	DefineCustomBoolVariable("mot.analytics_hint",
							 "Parallel queries on memory-optimized tables have as many workers as processors are free.",
							 "Off: as many as the plan says, if the server has them.",
							 &mot_analytics_hint,
							 true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("mot.analytics_share",
							 "Part of the processors that parallel workers of queries on memory-optimized tables may use.",
							 "0 is no workers, 1 all processors.",
							 &mot_analytics_share,
							 0.75, 0, 1,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

#define PLACES_OFFSET MAXALIGN(sizeof(Shared))

static void
init_workers(void)
{
	SpinLockInit(&shared->mutex);
	shared->nplaces = max_worker_processes;
	shared->place = (Place *) ((char *) shared + PLACES_OFFSET);
	shared->leading = (bool *) (shared->place + shared->nplaces);
}

MotShmem	MotWorkersShmem = {"mot workers", (void **) &shared, 0, sizeof(bool), init_workers};

void
MotWorkersShmemRequest(void)
{
	/*
	 * for its name only, which a worker that is parked shows as what it waits
	 * for
	 */
	RequestNamedLWLockTranche(TRANCHE, 1);
	MotWorkersShmem.size = add_size(PLACES_OFFSET, mul_size(max_worker_processes, sizeof(Place)));
}

/* ------------------------------------------------------------- who is there */

static inline PGPROC *
process(int number)
{
	return &ProcGlobal->allProcs[number];
}

static inline bool
is_active(int number)
{
	return ((volatile PGPROC *) process(number))->wait_event_info == 0;
}

bool
MotIsWorkerOfOurs(const volatile PGPROC *proc)
{
	const PGPROC *leader = proc->lockGroupLeader;

	return leader != NULL && leader != proc && shared->leading[leader - ProcGlobal->allProcs];
}

/* Workers that are not parked; *parked: those that are. */
static int
count(int *parked)
{
	int			running = 0;

	*parked = 0;
	SpinLockAcquire(&shared->mutex);
	for (int i = 0; i < shared->nplaces; i++)
		if (shared->place[i].process != 0)
		{
			if (shared->place[i].parked)
				(*parked)++;
			else
				running++;
		}
	SpinLockRelease(&shared->mutex);
	return running;
}

int
MotWorkersRunning(void)
{
	int			parked;

	return count(&parked);
}

/* the share's bound on all workers */
static int
most(const MotHint *hint)
{
	if (mot_analytics_share <= 0)
		return 0;
	return Max(1, (int) (mot_analytics_share * hint->processors + 0.001));
}

void
MotWorkersStatGet(MotWorkersStat *stat)
{
	MotHint		hint;

	MotHintGet(&hint);
	stat->most = most(&hint);
	stat->running = count(&stat->parked);
	stat->asked = pg_atomic_read_u64(&shared->asked);
	stat->granted = pg_atomic_read_u64(&shared->granted);
}

/* So many of those that are parked have a look; of one leader, or of all (-1) */
static void
wake(int leader, int n)
{
	for (int i = 0; i < shared->nplaces && n > 0; i++)
	{
		/* setting the latch of somebody else who has come there does no harm */
		volatile Place *place = &shared->place[i];
		int			number = place->process - 1;

		if (number >= 0 && place->parked && (leader < 0 || place->leader == leader))
		{
			SetLatch(&process(number)->procLatch);
			n--;
		}
	}
}

/* ----------------------------------------------------------------- leaders */

/* How many of these workers may be started now? */
static int
grant(int asked, Cost cost)
{
	MotHint		hint;
	int			granted;
	int			running;
	int			parked;
	int			bound;

	(void) MotHintLook(0);
	MotHintGet(&hint);
	bound = most(&hint);
	running = count(&parked);
	granted = Min((int) (hint.hint + 0.5), bound - running);
	if (cost >= LARGE_COST)
		granted = Max(granted, bound - running - parked);
	granted = Max(0, Min(granted, asked));
	pg_atomic_fetch_add_u64(&shared->asked, asked);
	pg_atomic_fetch_add_u64(&shared->granted, granted);
	return granted;
}

/* as if the plan asked for so many */
static TupleTableSlot *
run_with(PlanState *ps, int workers)
{
	Plan	   *plan = ps->plan;
	TupleTableSlot *slot;
	union
	{
		Gather		gather;
		GatherMerge merge;
	}			other;

	if (IsA(plan, Gather))
	{
		other.gather = *(Gather *) plan;
		other.gather.num_workers = workers;
		ps->plan = &other.gather.plan;
		slot = gather(ps);
	}
	else
	{
		other.merge = *(GatherMerge *) plan;
		other.merge.num_workers = workers;
		ps->plan = &other.merge.plan;
		slot = gather_merge(ps);
	}
	ps->plan = plan;
	return slot;
}

/*
 * One that has begun without workers, and so without anything shared, has none when it
 * begins again: the nodes below have begun their own scans, which they would forget.
 */
static TupleTableSlot *
run_alone(PlanState *ps)
{
	return run_with(ps, 0);
}

/* the first call, and the first one after a rescan */
static TupleTableSlot *
begin(PlanState *ps, int asked, ParallelExecutorInfo *pei)
{
	int			granted = grant(asked, outerPlan(ps->plan)->total_cost);

	/* what is shared has been made, for so many; who starts none is to say so */
	if (pei != NULL)
	{
		pei->pcxt->nworkers_to_launch = Min(pei->pcxt->nworkers, granted);
		granted = asked;
	}
	else if (granted == 0)
	{
		if (ps->ExecProcNode == ps->ExecProcNodeReal)
			ps->ExecProcNode = run_alone;
		ps->ExecProcNodeReal = run_alone;
	}
	return run_with(ps, granted);
}

static TupleTableSlot *
run_gather(PlanState *ps)
{
	GatherState *node = (GatherState *) ps;
	Gather	   *plan = (Gather *) ps->plan;

	if (likely(node->initialized) || plan->single_copy || !ps->state->es_use_parallel_mode)
		return gather(ps);
	return begin(ps, plan->num_workers, node->pei);
}

static TupleTableSlot *
run_gather_merge(PlanState *ps)
{
	GatherMergeState *node = (GatherMergeState *) ps;

	if (likely(node->initialized) || !ps->state->es_use_parallel_mode)
		return gather_merge(ps);
	return begin(ps, ((GatherMerge *) ps->plan)->num_workers, node->pei);
}

static void
stand_before(PlanState *ps, ExecProcNodeMtd ours, ExecProcNodeMtd *servers)
{
	if (ps->ExecProcNodeReal == ours || ps->ExecProcNodeReal == run_alone)
		return;
	*servers = ps->ExecProcNodeReal;
	if (ps->ExecProcNode == ps->ExecProcNodeReal)
		ps->ExecProcNode = ours;
	ps->ExecProcNodeReal = ours;
}

static bool
find_gathers(PlanState *ps, void *context)
{
	if (IsA(ps, GatherState))
		stand_before(ps, run_gather, &gather);
	else if (IsA(ps, GatherMergeState))
		stand_before(ps, run_gather_merge, &gather_merge);
	return planstate_tree_walker(ps, find_gathers, context);
}

bool
MotWorkersLead(PlanState *plan)
{
	bool		before = shared->leading[MotMySlot()];

	if (mot_analytics_hint && plan != NULL)
		(void) find_gathers(plan, NULL);
	shared->leading[MotMySlot()] = plan != NULL;
	return before;
}

/* (who never comes to this, because of an error, comes to the next query) */
void
MotWorkersLed(bool before)
{
	shared->leading[MotMySlot()] = before;
}

/* ----------------------------------------------------------------- workers */

static void
leave(int code, Datum arg)
{
	int			leader = mine->leader;

	SpinLockAcquire(&shared->mutex);
	mine->process = 0;
	SpinLockRelease(&shared->mutex);
	mine = NULL;
	wake(leader, INT_MAX);
}

void
MotWorkersEnter(int level)
{
	if (mine != NULL || !MotIsWorkerOfOurs(MyProc))
		return;
	SpinLockAcquire(&shared->mutex);
	for (int i = 0; i < shared->nplaces && mine == NULL; i++)
		if (shared->place[i].process == 0)
		{
			mine = &shared->place[i];
			mine->process = MotMySlot() + 1;
			mine->leader = MyProc->lockGroupLeader - ProcGlobal->allProcs;
			mine->level = level;
			mine->parked = false;
		}
	SpinLockRelease(&shared->mutex);
	if (mine != NULL)
		on_shmem_exit(leave, (Datum) 0);
}

/* How many workers more than those that are active, but for "except", have room? */
static int
room_left(const MotHint *hint, const Place *except)
{
	int			room = Min((int) (hint->room + 0.5), most(hint));

	for (int i = 0; i < shared->nplaces; i++)
	{
		volatile Place *place = &shared->place[i];
		int			number = place->process - 1;

		if (place != except && number >= 0 && !place->parked && is_active(number))
			room--;
	}
	return room;
}

/*
 * Is somebody else of our query active?  A leader that runs another one inside of it waits for that
 * one's workers, and ours go on when these have: but not the other way round.
 */
static bool
others_go_on(void)
{
	if (is_active(mine->leader))
		return true;
	for (int i = 0; i < shared->nplaces; i++)
	{
		volatile Place *place = &shared->place[i];
		int			number = place->process - 1;

		if (place != mine && number >= 0 && place->leader == mine->leader && place->level >= mine->level &&
			!place->parked && is_active(number))
			return true;
	}
	return false;
}

/*
 * Is there room for this worker?  If so, or if the query does not go on otherwise, it is not
 * parked when this returns.
 */
static bool
go_on(pg_atomic_uint64 *next, uint64 pages)
{
	MotHint		hint;
	bool		goes;

	MotHintGet(&hint);
	SpinLockAcquire(&shared->mutex);
	goes = room_left(&hint, mine) > 0 || pg_atomic_read_u64(next) >= pages || !others_go_on();
	mine->parked = !goes;
	SpinLockRelease(&shared->mutex);
	return goes;
}

static void
park(pg_atomic_uint64 *next, uint64 pages)
{
	int			wait = 1;

	while (!go_on(next, pages))
	{
		int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
									   wait, MotWaitEvent(MOT_FOR_PROCESSOR));

		/*
		 * Who has detached from our queue sets the latch, and waits for us an
		 * instant later: so we look again soon.
		 */
		if ((events & WL_LATCH_SET) != 0)
		{
			ResetLatch(MyLatch);
			wait = 1;
		}
		else
			wait = Min(2 * wait, PARKED_MS);
		CHECK_FOR_INTERRUPTS();
		(void) MotHintLook(MOT_HINT_WATCH);
	}
}

void
MotWorkersPause(pg_atomic_uint64 *next, uint64 pages)
{
	int64		now;

	if (!mot_analytics_hint)
		return;
	now = MotMicroseconds();
	if (now - morsel < MORSEL_US)
		return;
	if (MotHintLook(LOOK_US))
	{
		MotHint		hint;

		MotHintGet(&hint);
		wake(-1, room_left(&hint, NULL));
	}
	if (mine != NULL)
	{
		park(next, pages);
		now = MotMicroseconds();
	}
	morsel = now;
}

void
MotWorkersOver(void)
{
	wake(mine != NULL ? mine->leader : (int) MotMySlot(), INT_MAX);
}
