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
 *	DRAWN		the same at SERIALIZABLE; the timestamp has been drawn, or is
 *				about to be
 *	DRAWING		the timestamp is being drawn, if it has not been, and the rows
 *				installed
 *	DONE		all of it is visible from the timestamp given
 *
 * Who takes an engine snapshot to go with a PostgreSQL snapshot S first waits
 * for commits that S sees and that are not DONE (that is a matter of
 * instructions: the server has finished with them).  Then it takes the
 * engine's snapshot E, and looks for commits that S does not see and whose
 * timestamp E includes.  If it finds one, S is a little too old: the caller
 * takes a newer one and tries again (moment.c, which is also about commits of
 * one kind only).  One that is found PREPARED after E was
 * taken will draw a later timestamp.  (Of those that are prepared, for whatever time, their holders
 * tell, see prepared.c: what S sees of them is DONE first.)
 *
 * At SERIALIZABLE the timestamp is drawn during prepare, long before the
 * commit record, which may wait for a standby for as long as that is absent.
 * Heap tables have a list in each snapshot of those that were running then; so
 * does the engine's snapshot: who is found DRAWN after E was taken, with a
 * number that E includes, is left out of it for good (mot_beyond), together
 * with what heap tables have of it.  That is a state that there was: nobody has
 * seen anything of such a commit, so nothing else that E includes can have come
 * of it, and its client has not been told.  What it supersedes is there, since its
 * own snapshot keeps it until it is DONE, and ours has been published before we
 * look once more whether it still is DRAWN.  Commits that have drawn, and have
 * an xid for the standby's sake only, are in the list of places for that: ALONE,
 * and never DONE, because there is no other half to be compared with.
 *
 * A SERIALIZABLE reader cannot leave anybody out who has a smaller number: it
 * might see somebody with a greater one who has overwritten what that one has
 * read, and then it would have a place neither before nor after it.  But if nobody
 * has committed with a greater one by now, and none of them comes before one with a
 * smaller (precede.c), its snapshot may as well be of just before the least of
 * them, which the heap's does not see either.  A place before it must not be one
 * before somebody of whom the heap's snapshot tells: that is for the server to
 * say, see serial.c.  Otherwise it includes such commits, waits at their rows,
 * and reads one kind of tables only.
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
#include "access/xlog.h"
#include "compat/compat.h"
#include "engine/port.h"
#include "faults.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#include "xact/held.h"
#include "xact/internal.h"
#include "xact/workers.h"

/* low bits of a place's word; the xid, with its epoch, is above them */
#define STATE_DONE		0		/* at first, with an xid of 0 */
#define STATE_PREPARED	1
#define STATE_DRAWING	2
#define STATE_DRAWN		3
#define STATE_ALONE		4
#define STATE_MASK		7

#define WORD(xid, state) ((uint64) (xid) << 3 | (state))
#define WORD_XID(word) ((word) >> 3)
#define WORD_STATE(word) ((word) & STATE_MASK)

typedef struct Place
{
	pg_atomic_uint64 word;
	pg_atomic_uint64 ts;		/* of the latest one that is DONE */
	pg_atomic_uint64 previous;	/* xid of the one before */
	pg_atomic_uint64 drawn;		/* by one that is DRAWN or ALONE; 0: not yet */
	char		pad[MOT_CACHE_LINE - 4 * sizeof(pg_atomic_uint64)];
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
static bool others = false;		/* it is another process's transaction */

/* who is left out of the snapshot that is being taken; as many as there are places */
typedef struct DrawnPlace
{
	Place	   *place;
	uint64		word;
} DrawnPlace;

static DrawnPlace *drawn_places = NULL;

/* ... and of that of the SERIALIZABLE transaction which has begun last */
static TransactionId *left_out = NULL;
static uint32 nleft_out = 0;

/* who is included although he waits for a standby, and his other half cannot be seen */
static TransactionId awaited = InvalidTransactionId;

static void announce(uint64 xid, uint64 state);
static void raise_to_xid(uint64 xid);
static pg_noinline void wait_for_visible(Snapshot snapshot);
static pg_noinline MotTaken leave_out_drawn(mot_session *session, Snapshot snapshot, mot_ts ts, bool serial);
static bool includes_invisible(Snapshot snapshot, uint64 xmin, const MotTaken *taken);
static uint64 widen(TransactionId xid, uint64 near);

static const MotShmem mixed_shmem = {"mot mixed commits", (void **) &shared, offsetof(Shared, place), sizeof(Place)};

static const MotShmem *const shmem[] = {
	&mixed_shmem, &MotPreparedShmem, &MotCircleShmem, &MotOwedShmem, &MotExportShmem, &MotHeldShmem, &MotHintShmem,
	&MotWorkersShmem, &MotDecodedShmem, NULL
};

void
MotXactShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_circle", 1);
	MotWorkersShmemRequest();
	MotPreparedShmemRequest();
	MotShmemRequest(shmem);
}

void
MotXactShmemInit(void)
{
	MotShmemInit(shmem);
}

/* ---------------------------------------------------------------- writers */

/*
 * In PRE_COMMIT, with an xid.  "drawing": the timestamp is drawn now, and then
 * told by MotMixedDrawn; soon, since others wait for that.  "alone": so it is, and
 * nothing of the server's is changed.
 */
void
MotMixedAnnounce(bool drawing, bool alone)
{
	announce(U64FromFullTransactionId(GetTopFullTransactionId()),
			 alone ? STATE_ALONE : drawing ? STATE_DRAWN : STATE_PREPARED);
}

static void
announce(uint64 xid, uint64 state)
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
	pg_atomic_write_u64(&place->drawn, 0);
	pg_write_barrier();
	/* exchange: a full barrier, before the timestamp is drawn */
	pg_atomic_exchange_u64(&place->word, WORD(xid, state));
	announced = true;
	others = false;
}

/* MOT_TS_NONE: it changes nothing in the engine, and has no place among who does. */
void
MotMixedDrawn(mot_ts ts)
{
	if (announced)
		pg_atomic_write_u64(&shared->place[MotMySlot()].drawn, ts);
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

/* In COMMIT, before the engine's commit draws the timestamp, or installs. */
void
MotMixedDraw(void)
{
	Place	   *place;
	uint64		word;

	if (!announced)
		return;
	place = &shared->place[MotMySlot()];
	word = pg_atomic_read_u64(&place->word);
	if (WORD_STATE(word) == STATE_ALONE)
		MotMixedWithdraw();
	else
		/* exchange: a full barrier, as above */
		pg_atomic_exchange_u64(&place->word, WORD(WORD_XID(word), STATE_DRAWING));
	if (XLogLogicalInfoActive())
		MotDecodedCommits();

	/*
	 * nobody leaves us out any more: what is installed now may be the ground
	 * of what others commit
	 */
	pg_memory_barrier();
}

void
MotMixedDone(mot_ts ts)
{
	Place	   *place;

	if (!announced)
		return;
	place = &shared->place[MotMySlot()];
	if (XLogLogicalInfoActive() && ts != 0)
		MotDecodedCommitted(WORD_XID(pg_atomic_read_u64(&place->word)), ts, others);
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
 * Of one that this session did not run, and that is committed.  Replay: whoever
 * applies the memory-optimized half of a commit whose heap
 * half has been replayed is its writer here.  No session of a standby has
 * commits of its own, so the process's place is free.
 */
void
MotMixedApplyBegin(TransactionId xid)
{
	announce(widen(xid, U64FromFullTransactionId(ReadNextFullTransactionId())), STATE_PREPARED);
	others = true;
	MotMixedDraw();
}

/* ---------------------------------------------------------------- readers */

/*
 * An engine snapshot that includes at least what "snapshot" does.  (Who reads
 * tables of one kind only need not know whether it includes more.)  NULL: for
 * work that is no query, and no part of a serial order; what has been
 * installed by now.
 */
MotTaken
MotMixedTake(mot_session *session, Snapshot snapshot)
{
	MotTaken	taken;

	/*
	 * a standby: this very snapshot may see a commit that has not been
	 * applied
	 */
	MotTheLog->before_snapshot();
	if (unlikely(pg_atomic_read_u32(MotPreparedUsed) != 0))
		MotPreparedCatchUp(snapshot, false);
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0 && snapshot != NULL))
		wait_for_visible(snapshot);
	taken.ts = mot_snapshot_take(session);
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0) &&
		(snapshot == NULL || !IsolationIsSerializable()))
		return leave_out_drawn(session, snapshot, taken.ts, false);
	taken.beyond = NULL;
	return taken;
}

/*
 * The same without a snapshot, if there is no commit that one would be asked for.  False: there is, and
 * the engine's snapshot has perhaps been taken.
 */
bool
MotMixedTakeNone(mot_session *session, MotTaken *taken)
{
	MotTheLog->before_snapshot();
	if (unlikely(pg_atomic_read_u32(MotPreparedUsed) != 0 || pg_atomic_read_u32(&shared->active) != 0 ||
				 RecoveryInProgress()))
		return false;
	taken->ts = mot_snapshot_take(session);
	taken->beyond = NULL;
	/* (whose number is in the clock that was read has been counted before) */
	return likely(pg_atomic_read_u32(&shared->active) == 0);
}

/*
 * One that is to be of the same moment as "snapshot", which was just computed
 * (see moment.c).  *stale: that moment has passed, or the engine's snapshot
 * includes a commit that "snapshot" does not.
 */
MotTaken
MotMixedTakeMoment(mot_session *session, Snapshot snapshot, bool *stale)
{
	MotTaken	taken = {0, NULL};
	uint64		newest;
	uint64		xmin;

	nleft_out = 0;
	awaited = InvalidTransactionId;
	MotTheLog->before_snapshot();
	if (unlikely(pg_atomic_read_u32(MotPreparedUsed) != 0))
		MotPreparedCatchUp(snapshot, false);
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0))
		wait_for_visible(snapshot);

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	*stale = TransamVariables->xactCompletionCount != snapshot->snapXactCompletionCount;
	taken.ts = mot_snapshot_take(session);
	xmin = U64FromFullTransactionId(TransamVariables->latestCompletedXid);
	LWLockRelease(ProcArrayLock);
	if (*stale)
		return taken;

	/* what we look at next must not be older than the clock's reading */
	pg_read_barrier();
	if (unlikely(pg_atomic_read_u32(&shared->active) != 0))
		taken = leave_out_drawn(session, snapshot, taken.ts, IsolationIsSerializable());
	MOT_FAULT("moment-taken");
	newest = pg_atomic_read_u64(&shared->newest);
	xmin = widen(snapshot->xmin, xmin);
	*stale = newest >= xmin && includes_invisible(snapshot, xmin, &taken);
	return taken;
}

/* Whom the SERIALIZABLE transaction's snapshots leave out, although they have drawn. */
uint32
MotMixedLeftOut(const TransactionId **xids)
{
	*xids = left_out;
	return nleft_out;
}

/* If the latest snapshots are stale because somebody waits for a standby: who? */
TransactionId
MotMixedAwaited(void)
{
	return awaited;
}

void
MotForgetBeyond(const mot_beyond **beyond)
{
	if (*beyond != NULL)
		pfree(unconstify(mot_beyond *, *beyond));
	*beyond = NULL;
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
			WORD_STATE(word) == STATE_ALONE || XidInMVCCSnapshot((TransactionId) WORD_XID(word), snapshot))
			continue;
		while (WORD_XID(word) == WORD_XID(pg_atomic_read_u64(&place->word)) &&
			   WORD_STATE(pg_atomic_read_u64(&place->word)) != STATE_DONE)
			MotBackoff(&spins);
	}
}

/*
 * The number that a place's commit has drawn, if "snapshot" (or NULL) does not
 * see its xid; MOT_TS_NONE: there is no such commit.
 */
static mot_ts
drawn_unseen(Place *place, Snapshot snapshot, uint64 *word)
{
	unsigned	spins = 0;

	for (;;)
	{
		mot_ts		drawn;

		*word = pg_atomic_read_u64(&place->word);
		if ((WORD_STATE(*word) != STATE_DRAWN && WORD_STATE(*word) != STATE_ALONE) ||
			(snapshot != NULL && !XidInMVCCSnapshot((TransactionId) WORD_XID(*word), snapshot)))
			return MOT_TS_NONE;
		pg_read_barrier();
		drawn = pg_atomic_read_u64(&place->drawn);
		pg_read_barrier();
		if (drawn != 0 && pg_atomic_read_u64(&place->word) == *word)
			return drawn;
		MotBackoff(&spins);
	}
}

/*
 * What "snapshot" does not see, and has drawn a number that the engine's
 * includes, is left out; serial: if it can be.
 */
static pg_noinline MotTaken
leave_out_drawn(mot_session *session, Snapshot snapshot, mot_ts ts, bool serial)
{
	MotTaken	taken = {ts, NULL};
	uint32		used;
	mot_beyond *beyond = NULL;
	mot_ts	   *without = NULL;
	mot_ts		least;
	uint32		n;
	bool		stand;

	if (drawn_places == NULL)
		drawn_places = MemoryContextAlloc(TopMemoryContext, MotProcessSlots() * sizeof(DrawnPlace));

	/*
	 * the clock has been read before: who is found DRAWN had installed
	 * nothing then
	 */
	pg_read_barrier();
	used = pg_atomic_read_u32(&shared->used);
	do
	{
		n = 0;
		least = MOT_TS_NONE;
		stand = true;
		for (uint32 i = 0; i < used; i++)
		{
			Place	   *place = &shared->place[i];
			mot_ts		drawn;

			if (announced && i == MotMySlot())
				continue;
			drawn = drawn_unseen(place, snapshot, &drawn_places[n].word);
			if (drawn > ts)
				continue;
			if (beyond == NULL)
			{
				beyond = MemoryContextAlloc(TopTransactionContext,
											sizeof(mot_beyond) + used * sizeof(mot_ts));
				without = (mot_ts *) (beyond + 1);
			}
			without[n] = drawn;
			drawn_places[n++].place = place;
			least = Min(least, drawn);
		}
		if (n > 0)
			mot_snapshot_lower(session, least - 1);

		/* (a full barrier, if there was anything to lower) */
		pg_memory_barrier();
		for (uint32 i = 0; i < n; i++)
			stand &= pg_atomic_read_u64(&drawn_places[i].place->word) == drawn_places[i].word;
	} while (!stand);

	if (n > 0)
	{
		beyond->upto = ts;
		beyond->n = n;
		beyond->without = without;
		if (!serial)
		{
			taken.ts = least - 1;
			taken.beyond = beyond;
			return taken;
		}

		if (mot_snapshot_only_waits(session, beyond, least))
		{
			taken.ts = least - 1;
			if (left_out == NULL)
				left_out = MemoryContextAlloc(TopMemoryContext, MotProcessSlots() * sizeof(TransactionId));
			for (uint32 i = 0; i < n; i++)
				left_out[i] = (TransactionId) WORD_XID(drawn_places[i].word);
			nleft_out = n;
		}
	}
	if (beyond != NULL)
		pfree(beyond);
	return taken;
}

static inline bool
includes(const MotTaken *taken, mot_ts ts)
{
	return ts <= taken->ts || (taken->beyond != NULL && mot_beyond_sees(taken->beyond, ts));
}

static bool
includes_invisible(Snapshot snapshot, uint64 xmin, const MotTaken *taken)
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
			mot_ts		drawn;
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
			drawn = pg_atomic_read_u64(&place->drawn);
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
			if (!unseen(WORD_XID(word), snapshot, xmin))
				break;
			if (WORD_STATE(word) == STATE_DONE && includes(taken, done_ts))
				return true;
			if (WORD_STATE(word) == STATE_DRAWN && drawn != 0 && includes(taken, drawn))
			{
				if (((volatile PGPROC *) &ProcGlobal->allProcs[i])->wait_event_info == WAIT_EVENT_SYNC_REP)
					awaited = (TransactionId) WORD_XID(word);
				return true;
			}
			break;
		}
	}
	return false;
}

/* ------------------------------------------------- snapshots of logical decoding */

typedef struct Decoded
{
	Snapshot	snapshot;
	uint64		xmin;
} Decoded;

static bool
is_unseen(uint64 xid, void *arg)
{
	Decoded    *decoded = arg;

	return unseen(xid, decoded->snapshot, decoded->xmin);
}

/*
 * One that sees just what "snapshot" sees, which logical decoding has made (decoded.c); the
 * session has held one since before that.  *known: false if it cannot be told any more.
 */
MotTaken
MotMixedTakeDecoded(mot_session *session, Snapshot snapshot, bool *known)
{
	MotTaken	taken = {MOT_TS_NONE, NULL};
	mot_ts		held = mot_snapshot_held(session);
	Decoded		decoded = {snapshot, widen(snapshot->xmin, U64FromFullTransactionId(ReadNextFullTransactionId()))};
	uint32		used = pg_atomic_read_u32(&shared->used);
	mot_beyond *beyond;
	mot_ts	   *without;
	mot_ts		upto;

	*known = false;
	MotTheLog->before_snapshot();
	if (pg_atomic_read_u32(MotPreparedUsed) != 0)
		MotPreparedCatchUp(snapshot, false);

	/*
	 * the commit record is there, by which they are seen; the rest may wait
	 * for a standby
	 */
	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &shared->place[i];
		uint64		word = pg_atomic_read_u64(&place->word);

		while (WORD_STATE(word) != STATE_DONE && WORD_STATE(word) != STATE_ALONE && !is_unseen(WORD_XID(word), &decoded) &&
			   WORD_XID(pg_atomic_read_u64(&place->word)) == WORD_XID(word) &&
			   WORD_STATE(pg_atomic_read_u64(&place->word)) != STATE_DONE)
		{
			CHECK_FOR_INTERRUPTS();
			pg_usleep(100);
		}
	}
	upto = mot_snapshot_take(session);
	/* as in leave_out_drawn */
	pg_memory_barrier();

	used = pg_atomic_read_u32(&shared->used);
	beyond = MemoryContextAllocHuge(TopTransactionContext,
									sizeof(mot_beyond) + used * (MOT_DECODED_KEPT + 1) * sizeof(mot_ts));
	without = (mot_ts *) (beyond + 1);
	*beyond = (mot_beyond)
	{
		upto, 0, without
	};
	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &shared->place[i];
		uint64		word;
		mot_ts		drawn;
		unsigned	spins = 0;
		int			n;

		/* one that is PREPARED now will draw a later number */
		while (WORD_STATE(pg_atomic_read_u64(&place->word)) == STATE_DRAWING)
			MotBackoff(&spins);
		drawn = drawn_unseen(place, snapshot, &word);
		if (drawn <= upto)
			without[beyond->n++] = drawn;
		/* who was found DRAWN, or DONE, has written down what came before */
		pg_read_barrier();
		n = MotDecodedUnseen(i, upto, held, is_unseen, &decoded, &without[beyond->n]);
		if (n < 0)
		{
			pfree(beyond);
			return taken;
		}
		beyond->n += n;
	}
	taken.ts = upto;
	for (unsigned i = 0; i < beyond->n; i++)
		taken.ts = Min(taken.ts, without[i] - 1);
	if (beyond->n == 0)
		pfree(beyond);
	else
		taken.beyond = beyond;
	*known = taken.ts >= held || MotDecodedLower(session, taken.ts);
	return taken;
}
