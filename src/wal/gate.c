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
 *	OUT			not committing
 *	IN			between its first record and its versions
 *	STREAM		the same, and it may take long: there are many records
 *	LOGGED		mixed: its record is in the log, the server's commit record
 *				will decide; it enters once more to install
 *	DRAWN		the same, but its timestamp has been drawn already
 *				(SERIALIZABLE): snapshots from now on include it, and whoever
 *				reads its rows waits for its fate.  It is not in doubt.
 *
 * Who enters stores IN and then reads the gate; who closes stores CLOSED and
 * then reads the places.  Both with a full barrier between, so at least one
 * sees the other: a commit that does not see the gate closed is waited for.
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
#include "engine/port.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"
#include "wal/internal.h"
#include "xact/xact.h"

#define PLACE_OUT		0
#define PLACE_IN		1
#define PLACE_STREAM	2
#define PLACE_LOGGED	3
#define PLACE_DRAWN		4

#define GATE_OPEN		0
#define GATE_NO_STREAMS 1
#define GATE_CLOSED		2

typedef struct Place
{
	pg_atomic_uint32 state;
	TransactionId xid;			/* of LOGGED; written before the state */
	XLogRecPtr	start;
	XLogRecPtr	end;
	char		pad[MOT_CACHE_LINE - sizeof(pg_atomic_uint32) - sizeof(TransactionId) -
					2 * sizeof(XLogRecPtr)];
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

static void wait_opened(bool committed);
static void enter(uint32 state, uint32 outside);

Size
MotGateShmemSize(void)
{
	return add_size(offsetof(Gate, place), mul_size(MotProcessSlots(), sizeof(Place)));
}

void
MotGateShmemInit(void)
{
	bool		found;

	gate = ShmemInitStruct("mot gate", MotGateShmemSize(), &found);
	if (found)
		return;
	pg_atomic_init_u32(&gate->gate, GATE_OPEN);
	pg_atomic_init_u32(&gate->used, 0);
	ConditionVariableInit(&gate->opened);
	for (int i = 0; i < MotProcessSlots(); i++)
		pg_atomic_init_u32(&gate->place[i].state, PLACE_OUT);
}

/* ----------------------------------------------------------------- commits */

static void
enter(uint32 state, uint32 outside)
{
	Place	   *mine = &gate->place[MotMySlot()];
	uint32		limit = state == PLACE_STREAM ? GATE_NO_STREAMS : GATE_CLOSED;

	for (;;)
	{
		/* exchange: a full barrier between our word and the gate's */
		pg_atomic_exchange_u32(&mine->state, state);
		if (likely(pg_atomic_read_u32(&gate->gate) < limit))
			return;
		pg_atomic_write_u32(&mine->state, outside);
		wait_opened(outside != PLACE_OUT);
	}
}

/*
 * The gate is closed for an instant only, but "no streams" can last.  There
 * is nothing to be interrupted: at commit interrupts are held.
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
			(void) ConditionVariableTimedSleep(&gate->opened, 10, PG_WAIT_EXTENSION);
		else
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, 10, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
	}
	ConditionVariableCancelSleep();
}

/*
 * Before a commit's first record is inserted, at SERIALIZABLE before its
 * timestamp is drawn.  stream: there will be pieces.  Nothing happens if we
 * are in already.
 */
void
MotGateEnter(bool stream)
{
	Place	   *mine = &gate->place[MotMySlot()];
	uint32		used;

	if (pg_atomic_read_u32(&mine->state) != PLACE_OUT)
		return;
	used = pg_atomic_read_u32(&gate->used);
	while (used <= MotMySlot() &&
		   !pg_atomic_compare_exchange_u32(&gate->used, &used, MotMySlot() + 1))
		;
	enter(stream ? PLACE_STREAM : PLACE_IN, PLACE_OUT);
}

/* The mixed transaction's redo is in the log, its first record at start, its last one up to end. */
void
MotGateLogged(TransactionId xid, XLogRecPtr start, XLogRecPtr end, bool drawn)
{
	Place	   *mine = &gate->place[MotMySlot()];

	Assert(pg_atomic_read_u32(&mine->state) == PLACE_IN ||
		   pg_atomic_read_u32(&mine->state) == PLACE_STREAM);
	mine->xid = xid;
	mine->start = start;
	mine->end = end;
	/* what it says is there before it says so */
	pg_write_barrier();
	pg_atomic_write_u32(&mine->state, drawn ? PLACE_DRAWN : PLACE_LOGGED);
}

/* The server has committed it: in again, to install. */
void
MotGateInstall(void)
{
	Place	   *mine = &gate->place[MotMySlot()];
	uint32		state = pg_atomic_read_u32(&mine->state);

	if (state == PLACE_LOGGED || state == PLACE_DRAWN)
		enter(PLACE_IN, state);
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

/*
 * Close the gate; returns C.  in_doubt: palloc'd list of mixed transactions
 * whose records start before C and that are not installed.  Until the gate is
 * opened again (MotGateOpen) interrupts are held, and the caller must not do
 * more than take a snapshot and what fails in no way.
 */
XLogRecPtr
MotGateClose(MotInDoubtRange **in_doubt, int *n)
{
	MotInDoubtRange *list = palloc(MotProcessSlots() * sizeof(MotInDoubtRange));
	XLogRecPtr	lsn;
	uint32		used;

	/* exchange, here and below: a full barrier between our word and theirs */
	pg_atomic_exchange_u32(&gate->gate, GATE_NO_STREAMS);
	PG_TRY();
	{
		used = pg_atomic_read_u32(&gate->used);
		for (uint32 i = 0; i < used; i++)
			while (pg_atomic_read_u32(&gate->place[i].state) == PLACE_STREAM)
			{
				CHECK_FOR_INTERRUPTS();
				pg_usleep(1000);
				if (!PostmasterIsAlive())
					proc_exit(1);
			}
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
		uint32		state;

		while ((state = pg_atomic_read_u32(&gate->place[i].state)) == PLACE_IN ||
			   state == PLACE_STREAM)
			MotBackoff(&spins);
	}

	/* what they did is seen from here on */
	pg_memory_barrier();
	*n = 0;
	for (uint32 i = 0; i < used; i++)
	{
		Place	   *place = &gate->place[i];

		if (pg_atomic_read_u32(&place->state) != PLACE_LOGGED)
			continue;
		list[*n].xid = place->xid;
		list[*n].start = place->start;
		list[*n].end = place->end;
		(*n)++;
	}
	lsn = GetXLogInsertRecPtr();
	*in_doubt = list;
	return lsn;
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
