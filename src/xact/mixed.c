/*-------------------------------------------------------------------------
 *
 * mixed.c
 *	  Transactions that change both heap and memory-optimized tables become
 *	  visible at once.
 *
 * The heap half of such a commit is visible to every PostgreSQL snapshot
 * taken after the server has taken its xid off the list of running ones; the
 * other half to every engine snapshot taken after its timestamp was drawn,
 * some instructions later.  A statement has a snapshot of each kind, taken
 * one after the other.  So a statement could see either half alone.
 *
 * Each process has a place in shared memory that says how far its latest
 * mixed commit has come:
 *
 *	PREPARED	from PRE_COMMIT on: the xid is about to be committed
 *	DRAWING		the timestamp is being drawn and the rows installed
 *	DONE		all of it is visible from the timestamp given
 *
 * Who takes an engine snapshot to go with a PostgreSQL snapshot S first waits
 * for commits that S sees and that are not DONE (that is a matter of
 * instructions: the server has finished with them).  Then it takes the
 * engine's snapshot E, and looks for commits that S does not see and whose
 * timestamp E includes.  If it finds one, S is a little too old: the caller
 * takes a newer one and tries again (moment.c, which is also about commits of
 * one kind only).  One that is found PREPARED after E was
 * taken will draw a later timestamp.
 *
 * At SERIALIZABLE the timestamp is drawn during prepare, long before the
 * commit record; such a commit counts as included until it is DONE.
 *
 * All that is only done when there are such commits.  For everybody else it
 * costs one look at two words that hardly ever change.
 *
 * A place keeps its latest commit's xid for as long as the server runs, so xids
 * here are 64 bits wide: with 32, one of two thousand million transactions ago
 * would be one of the future, which no snapshot ever sees.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "compat/compat.h"
#include "engine/port.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/snapmgr.h"
#include "xact/internal.h"

/* low bits of a place's word; the xid, with its epoch, is above them */
#define STATE_DONE		0
#define STATE_PREPARED	1
#define STATE_DRAWING	2
#define STATE_DRAWN		3		/* SERIALIZABLE: drawn, or about to be */
#define STATE_MASK		3

#define WORD(xid, state) ((uint64) (xid) << 2 | (state))
#define WORD_XID(word) ((word) >> 2)
#define WORD_STATE(word) ((word) & STATE_MASK)

typedef struct Place
{
	pg_atomic_uint64 word;
	pg_atomic_uint64 ts;		/* of the latest one that is DONE */
	pg_atomic_uint64 previous;	/* xid of the one before */
	char		pad[MOT_CACHE_LINE - 3 * sizeof(pg_atomic_uint64)];
} Place;

typedef struct Shared
{
	pg_atomic_uint64 newest;	/* youngest xid that ever was one */
	pg_atomic_uint32 active;	/* commits between PRE_COMMIT and DONE */
	pg_atomic_uint32 used;		/* places ever used: 0 .. used - 1 */
	char		pad[MOT_CACHE_LINE - sizeof(pg_atomic_uint64) - 2 * sizeof(pg_atomic_uint32)];
	Place		place[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

/* our place's word before the commit that is on its way; announced: there is one */
static uint64 word_before;
static bool announced = false;

static void announce(uint64 xid, bool drawing);
static void raise_to_xid(uint64 xid);
static pg_noinline void wait_for_visible(Snapshot snapshot);
static bool includes_invisible(Snapshot snapshot, uint64 xmin, mot_ts ts);
static uint64 widen(TransactionId xid, uint64 near);
static inline bool unseen(uint64 xid, Snapshot snapshot, uint64 xmin);

Size
MotXactShmemSize(void)
{
	return add_size(offsetof(Shared, place), mul_size(MotProcessSlots(), sizeof(Place)));
}

void
MotXactShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_circle", 1);
	RequestAddinShmemSpace(add_size(MotXactShmemSize(),
									add_size(MotCircleShmemSize(), MotOwedShmemSize())));
}

void
MotXactShmemInit(void)
{
	bool		found;

	MotCircleShmemInit();
	MotOwedShmemInit();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("mot mixed commits", MotXactShmemSize(), &found);
	if (!found)
	{
		pg_atomic_init_u32(&shared->active, 0);
		pg_atomic_init_u64(&shared->newest, 0);
		pg_atomic_init_u32(&shared->used, 0);
		for (int i = 0; i < MotProcessSlots(); i++)
		{
			pg_atomic_init_u64(&shared->place[i].word, WORD(0, STATE_DONE));
			pg_atomic_init_u64(&shared->place[i].ts, 0);
			pg_atomic_init_u64(&shared->place[i].previous, 0);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ---------------------------------------------------------------- writers */

/* In PRE_COMMIT, with an xid.  "drawing": the timestamp may be drawn from now on. */
void
MotMixedAnnounce(bool drawing)
{
	announce(U64FromFullTransactionId(GetTopFullTransactionId()), drawing);
}

static void
announce(uint64 xid, bool drawing)
{
	Place	   *place = &shared->place[MotMySlot()];
	uint32		used = pg_atomic_read_u32(&shared->used);

	while (used <= MotMySlot() &&
		   !pg_atomic_compare_exchange_u32(&shared->used, &used, MotMySlot() + 1))
		;
	raise_to_xid(xid);
	pg_atomic_fetch_add_u32(&shared->active, 1);

	word_before = pg_atomic_read_u64(&place->word);
	pg_atomic_write_u64(&place->previous, WORD_XID(word_before));
	pg_write_barrier();
	/* exchange: a full barrier, before the timestamp is drawn */
	pg_atomic_exchange_u64(&place->word, WORD(xid, drawing ? STATE_DRAWN : STATE_PREPARED));
	announced = true;
}

bool
MotMixedAnnounced(void)
{
	return announced;
}

static void
raise_to_xid(uint64 xid)
{
	uint64		newest = pg_atomic_read_u64(&shared->newest);

	while (newest < xid && !pg_atomic_compare_exchange_u64(&shared->newest, &newest, xid))
		;
}

/* In COMMIT, before the engine's commit draws the timestamp. */
void
MotMixedDraw(void)
{
	Place	   *place;
	uint64		word;

	if (!announced)
		return;
	place = &shared->place[MotMySlot()];
	word = pg_atomic_read_u64(&place->word);
	if (WORD_STATE(word) == STATE_PREPARED)
		/* exchange: a full barrier, as above */
		pg_atomic_exchange_u64(&place->word, WORD(WORD_XID(word), STATE_DRAWING));
}

void
MotMixedDone(mot_ts ts)
{
	Place	   *place;

	if (!announced)
		return;
	place = &shared->place[MotMySlot()];
	pg_atomic_write_u64(&place->ts, ts);
	pg_write_barrier();
	pg_atomic_write_u64(&place->word,
						WORD(WORD_XID(pg_atomic_read_u64(&place->word)), STATE_DONE));
	pg_atomic_fetch_sub_u32(&shared->active, 1);
	announced = false;
}

/* The transaction aborts, or has to wait before it can prepare. */
void
MotMixedWithdraw(void)
{
	if (!announced)
		return;
	pg_atomic_write_u64(&shared->place[MotMySlot()].word, word_before);
	pg_atomic_fetch_sub_u32(&shared->active, 1);
	announced = false;
}

/*
 * Replay: whoever applies the memory-optimized half of a commit whose heap
 * half has been replayed is its writer here.  No session of a standby has
 * commits of its own, so the process's place is free.
 */
void
MotMixedApplyBegin(TransactionId xid)
{
	announce(widen(xid, U64FromFullTransactionId(ReadNextFullTransactionId())), false);
	MotMixedDraw();
}

void
MotMixedApplyEnd(mot_ts ts)
{
	MotMixedDone(ts);
}

/* ---------------------------------------------------------------- readers */

/*
 * An engine snapshot that includes at least what "snapshot" does.  (Who reads
 * tables of one kind only need not know whether it includes more.)
 */
mot_ts
MotMixedTake(mot_session *session, Snapshot snapshot)
{
	/*
	 * a standby: this very snapshot may see a commit that has not been
	 * applied
	 */
	MotBeforeSnapshot(snapshot);
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0))
		wait_for_visible(snapshot);
	return mot_snapshot_take(session);
}

/*
 * One that is to be of the same moment as "snapshot", which was just computed
 * (see moment.c).  *stale: that moment has passed, or the engine's snapshot
 * includes a commit that "snapshot" does not.
 */
mot_ts
MotMixedTakeMoment(mot_session *session, Snapshot snapshot, bool *stale)
{
	mot_ts		ts;
	uint64		newest;
	uint64		xmin;

	MotBeforeSnapshot(snapshot);
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0))
		wait_for_visible(snapshot);

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	*stale = ShmemVariableCache->xactCompletionCount != snapshot->snapXactCompletionCount;
	ts = mot_snapshot_take(session);
	xmin = U64FromFullTransactionId(ShmemVariableCache->latestCompletedXid);
	LWLockRelease(ProcArrayLock);
	if (*stale)
		return ts;

	/* what we look at next must not be older than the clock's reading */
	pg_read_barrier();
	newest = pg_atomic_read_u64(&shared->newest);
	xmin = widen(snapshot->xmin, xmin);
	*stale = newest >= xmin && includes_invisible(snapshot, xmin, ts);
	return ts;
}

/* An xid's epoch, from that of one which is not far away: running or just completed ones. */
static uint64
widen(TransactionId xid, uint64 near)
{
	return near + (int64) (int32) (xid - (TransactionId) near);
}

/* xmin: the snapshot's */
static inline bool
unseen(uint64 xid, Snapshot snapshot, uint64 xmin)
{
	return xid >= xmin && XidInMVCCSnapshot((TransactionId) xid, snapshot);
}

/* Commits that the server has finished with are about to be installed. */
static pg_noinline void
wait_for_visible(Snapshot snapshot)
{
	uint32		used = pg_atomic_read_u32(&shared->used);

	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &shared->place[i];
		uint64		word = pg_atomic_read_u64(&place->word);
		unsigned	spins = 0;

		/* (who is not done is running, or was a moment ago) */
		if ((announced && i == MotMySlot()) || WORD_STATE(word) == STATE_DONE ||
			XidInMVCCSnapshot((TransactionId) WORD_XID(word), snapshot))
			continue;
		while (WORD_XID(word) == WORD_XID(pg_atomic_read_u64(&place->word)) &&
			   WORD_STATE(pg_atomic_read_u64(&place->word)) != STATE_DONE)
			MotBackoff(&spins);
	}
}

static bool
includes_invisible(Snapshot snapshot, uint64 xmin, mot_ts ts)
{
	uint32		used = pg_atomic_read_u32(&shared->used);

	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &shared->place[i];
		unsigned	spins = 0;

		/* our own, done: we applied it on a standby, perhaps just now */
		if (announced && i == MotMySlot())
			continue;
		for (;;)
		{
			uint64		word = pg_atomic_read_u64(&place->word);
			mot_ts		done_ts;
			uint64		previous;

			if (WORD_XID(word) == 0)
				break;
			if (WORD_STATE(word) == STATE_DRAWING)
			{
				MotBackoff(&spins);
				continue;
			}
			pg_read_barrier();
			done_ts = pg_atomic_read_u64(&place->ts);
			previous = pg_atomic_read_u64(&place->previous);
			pg_read_barrier();
			if (pg_atomic_read_u64(&place->word) != word)
				continue;

			/*
			 * Of a process that has done two since the snapshot was taken we
			 * know too little.
			 */
			if (unseen(previous, snapshot, xmin))
				return true;
			if (unseen(WORD_XID(word), snapshot, xmin) &&
				(WORD_STATE(word) == STATE_DRAWN ||
				 (WORD_STATE(word) == STATE_DONE && done_ts <= ts)))
				return true;
			break;
		}
	}
	return false;
}
