/*-------------------------------------------------------------------------
 *
 * gate.c
 *	  The gate that lets a checkpoint draw its line between commits.
 *
 * A checkpoint is a log position C and a snapshot S, and every commit has to
 * be on the same side of both.  A commit inserts its record, and installs its
 * versions a little later; so the line must not be drawn between the two.
 *
 * Each process has a place in shared memory that says where it is:
 *
 *	OUT			nothing is in the log, and there is no timestamp
 *	DRAWN		its timestamp has been drawn (SERIALIZABLE, long before the
 *				commit), nothing is in the log
 *	LOGGED		mixed: its record is in the log, the server's commit record
 *				will decide; its timestamp may have been drawn, too
 *
 * and, besides, whether it is on its way from one of these to another:
 *
 *	IN			drawing; or inserting a record; or between the insertion and
 *				the installation of its versions
 *	STREAM		the same, and it may take long: there are many records
 *
 * The line is drawn when nobody is.  Who is LOGGED then is in doubt, and the
 * checkpoint keeps its record; whoever has drawn is left out of S, though its
 * number is not greater (mot_beyond).
 *
 * Nobody waits for anything while IN: not for a row, a lock, the disk or a
 * standby.  Between PRE_COMMIT and COMMIT the server may (for NOTIFY's lock,
 * temporary tables, SSI, other modules, its commit record's flush), so nobody
 * is IN from the one to the other.  (What needs many records has an xid, and is
 * LOGGED then.)  And a checkpoint that waits for streams does not keep others out
 * of the gate for longer than its patience lasts, but lets in who has come and
 * begins anew, more patiently.
 *
 * Who enters stores IN and then reads the gate; who closes stores CLOSED and
 * then reads the places.  Both with a full barrier between, so at least one
 * sees the other: a commit that does not see the gate closed is waited for.
 * (One that does says IN for a moment, and goes back to what it was.)
 * It costs a commit one exchange on a line of its own, and a read of a line
 * that is written by checkpoints only (compare the asymmetric locking of
 * RCU).  The gate is closed for as long as the commits on their way need.
 * Large ones need long, and would keep all others out that long: so first no
 * new ones of them are let in, until those on their way are through.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "compat/compat.h"
#include "compat/waitevent.h"
#include "engine/port.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/timestamp.h"
#include "wal/internal.h"
#include "xact/xact.h"

#define PLACE_OUT		0		/* at first */
#define PLACE_DRAWN		1
#define PLACE_LOGGED	2
#define PLACE_WHERE		3
#define PLACE_IN		4
#define PLACE_STREAM	8
#define PLACE_MOVING	(PLACE_IN | PLACE_STREAM)

#define GATE_OPEN		0		/* at first */
#define GATE_NO_STREAMS 1
#define GATE_CLOSED		2

/* how long streams are waited for at first, and how long others are let in then */
#define PATIENCE_MS 2000
#define RESPITE_MS 50

typedef struct Place
{
	pg_atomic_uint32 state;
	TransactionId xid;			/* of LOGGED; all written before the state */
	XLogRecPtr	start;
	XLogRecPtr	end;
	mot_ts		drawn;			/* 0: it is not */
	char		pad[MOT_CACHE_LINE - sizeof(pg_atomic_uint32) - sizeof(TransactionId) -
					2 * sizeof(XLogRecPtr) - sizeof(mot_ts)];
} Place;

typedef struct Gate
{
	pg_atomic_uint32 gate;
	pg_atomic_uint32 used;		/* places ever used: 0 .. used - 1 */
	ConditionVariable opened;
	char		pad[2 * MOT_CACHE_LINE - 2 * sizeof(pg_atomic_uint32) - sizeof(ConditionVariable)];
	Place		place[FLEXIBLE_ARRAY_MEMBER];
} Gate;

static Gate *gate = NULL;

static void enter_gate(bool stream, bool decided);
static void wait_opened(bool committed);

static void
init_gate(void)
{
	ConditionVariableInit(&gate->opened);
}

const MotShmem MotGateShmem = {"mot gate", (void **) &gate, offsetof(Gate, place), sizeof(Place), init_gate};

/* ----------------------------------------------------------------- commits */

static void
enter(uint32 moving, uint32 where, bool decided)
{
	Place	   *mine = &gate->place[MotMySlot()];
	uint32		limit = moving == PLACE_STREAM ? GATE_NO_STREAMS : GATE_CLOSED;

	for (;;)
	{
		/* exchange: a full barrier between our word and the gate's */
		pg_atomic_exchange_u32(&mine->state, where | moving);
		if (likely(pg_atomic_read_u32(&gate->gate) < limit))
			return;
		pg_atomic_write_u32(&mine->state, where);
		wait_opened(decided || where == PLACE_LOGGED);
	}
}

/*
 * The gate is closed for an instant only, but "no streams" can last.  In
 * PRE_COMMIT whoever waits can be interrupted; later the server holds
 * interrupts back.
 *
 * When the postmaster has died we end here; not in order, though, if the
 * transaction is committed, because it would be aborted then.
 */
static void
wait_opened(bool committed)
{
	if (committed && !PostmasterIsAlive())
		_exit(2);
	ConditionVariablePrepareToSleep(&gate->opened);
	if (pg_atomic_read_u32(&gate->gate) != GATE_OPEN)
	{
		if (!committed)
		{
			MotTimeWait();
			(void) ConditionVariableTimedSleep(&gate->opened, 10, MotWaitEvent(MOT_FOR_GATE));
			MotTimeWaitOver();
		}
		else
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, 10, MotWaitEvent(MOT_FOR_GATE));
			ResetLatch(MyLatch);
		}
	}
	ConditionVariableCancelSleep();
}

/*
 * Before a timestamp is drawn at SERIALIZABLE, before a record is inserted,
 * and before what was logged or drawn is installed.  stream: there will be
 * pieces.  Nothing happens if we are in already.
 */
void
MotGateEnter(bool stream)
{
	enter_gate(stream, false);
}

/* The same for what is not this process's transaction, and is committed or aborted already. */
void
MotGateEnterDecided(void)
{
	enter_gate(false, true);
}

static void
enter_gate(bool stream, bool decided)
{
	Place	   *mine = &gate->place[MotMySlot()];
	uint32		state = pg_atomic_read_u32(&mine->state);
	uint32		used;

	if (state & PLACE_MOVING)
		return;
	if (state == PLACE_OUT)
	{
		mine->drawn = 0;
		used = pg_atomic_read_u32(&gate->used);
		while (used <= MotMySlot() &&
			   !pg_atomic_compare_exchange_u32(&gate->used, &used, MotMySlot() + 1))
			;
	}
	enter(stream ? PLACE_STREAM : PLACE_IN, state, decided);
}

/* The timestamp has been drawn. */
void
MotGateDrawn(mot_ts ts)
{
	Place	   *mine = &gate->place[MotMySlot()];

	Assert(pg_atomic_read_u32(&mine->state) == (PLACE_OUT | PLACE_IN));
	mine->drawn = ts;
	/* what it says is there before it says so */
	pg_write_barrier();
	pg_atomic_write_u32(&mine->state, PLACE_DRAWN);
}

/* The mixed transaction's redo is in the log, its first record at start, its last one up to end. */
void
MotGateLogged(TransactionId xid, XLogRecPtr start, XLogRecPtr end)
{
	Place	   *mine = &gate->place[MotMySlot()];

	Assert(pg_atomic_read_u32(&mine->state) & PLACE_MOVING);
	mine->xid = xid;
	mine->start = start;
	mine->end = end;
	/* as above */
	pg_write_barrier();
	pg_atomic_write_u32(&mine->state, PLACE_LOGGED);
}

/* Installed, or given up. */
void
MotGateLeave(void)
{
	if (MyProc == NULL || gate == NULL)
		return;
	/* what was installed, or undone, is there before the place says so */
	pg_write_barrier();
	pg_atomic_write_u32(&gate->place[MotMySlot()].state, PLACE_OUT);
}

/* -------------------------------------------------------------- checkpoints */

static bool
streams_on_their_way(void)
{
	uint32		used = pg_atomic_read_u32(&gate->used);

	for (uint32 i = 0; i < used; i++)
		if (pg_atomic_read_u32(&gate->place[i].state) & PLACE_STREAM)
			return true;
	return false;
}

/* Let in no more of them, and wait for those that are. */
static void
wait_streams(void)
{
	long		patience = PATIENCE_MS;
	TimestampTz began = GetCurrentTimestamp();

	/* exchange, here and below: a full barrier between our word and theirs */
	pg_atomic_exchange_u32(&gate->gate, GATE_NO_STREAMS);
	while (streams_on_their_way())
	{
		long		nap = 1;

		if (TimestampDifferenceExceeds(began, GetCurrentTimestamp(), patience))
		{
			MotGateOpen();
			nap = RESPITE_MS;
		}
		(void) WaitLatch(NULL, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, nap, MotWaitEvent(MOT_FOR_GATE_CLOSE));
		CHECK_FOR_INTERRUPTS();
		if (nap == RESPITE_MS)
		{
			patience *= 2;
			began = GetCurrentTimestamp();
			pg_atomic_exchange_u32(&gate->gate, GATE_NO_STREAMS);
		}
	}
}

/*
 * Close the gate and tell what the line leaves out; the lists are palloc'd.
 * Until the gate is opened again (MotGateOpen) interrupts are held, and the
 * caller must not do more than take a snapshot and what fails in no way.
 */
void
MotGateClose(MotGateLine *line)
{
	uint32		used;

	line->in_doubt = palloc(MotProcessSlots() * sizeof(MotInDoubtRange));
	line->drawn = palloc(MotProcessSlots() * sizeof(mot_ts));
	line->nin_doubt = line->ndrawn = 0;
	PG_TRY();
	{
		wait_streams();
	}
	PG_CATCH();
	{
		MotGateOpen();
		PG_RE_THROW();
	}
	PG_END_TRY();

	HOLD_INTERRUPTS();
	pg_atomic_exchange_u32(&gate->gate, GATE_CLOSED);
	used = pg_atomic_read_u32(&gate->used);
	for (uint32 i = 0; i < used; i++)
	{
		unsigned	spins = 0;

		while (pg_atomic_read_u32(&gate->place[i].state) & PLACE_MOVING)
			MotBackoff(&spins);
	}

	/* what they did is seen from here on */
	pg_memory_barrier();
	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &gate->place[i];

		/* (moving, it is about to see that the gate is closed) */
		uint32		where = pg_atomic_read_u32(&place->state) & PLACE_WHERE;

		if (where == PLACE_LOGGED)
		{
			MotInDoubtRange *range = &line->in_doubt[line->nin_doubt++];

			range->xid = place->xid;
			range->start = place->start;
			range->end = place->end;
		}
		if (where != PLACE_OUT && place->drawn != 0)
			line->drawn[line->ndrawn++] = place->drawn;
	}
	line->lsn = GetXLogInsertRecPtr();
}

void
MotGateOpen(void)
{
	bool		closed = pg_atomic_read_u32(&gate->gate) == GATE_CLOSED;

	pg_atomic_exchange_u32(&gate->gate, GATE_OPEN);
	ConditionVariableBroadcast(&gate->opened);
	if (closed)
		RESUME_INTERRUPTS();
}
