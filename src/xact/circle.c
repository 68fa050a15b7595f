/*-------------------------------------------------------------------------
 *
 * circle.c
 *	  Transactions that wait for each other's rows.
 *
 * Above READ COMMITTED most rows are locked by COMMIT, in the order of their
 * addresses over all tables, so transactions that lock rows only then never
 * wait for each other in a circle.  But some rows are locked earlier, in the order in
 * which statements come to them: new ones, those whose keys change, and those
 * of SELECT FOR UPDATE.  So a COMMIT may have to wait for somebody who has such
 * a lock, and who waits, or will, for one of this transaction's.  On heap tables
 * the second to come would have waited in its statement, and failed when the
 * first one committed; nobody would have waited for the deadlock detector.
 * Here nobody does, either: whoever would close a circle gives up at once, and
 * the others get through.
 *
 * For that, each process says in shared memory which row it is about to wait
 * for, and who holds that.  That is done under a lock, along with the look whether
 * the holder waits for somebody who waits ... for us.  So the last one to come to
 * a circle sees it, and it alone: of each circle one gives up.  An entry counts
 * as long as the row is still held by the one it names: if not, its waiter is
 * about to wake up.
 *
 * At READ COMMITTED, circles of statements only are left to the server's detector,
 * as on heap tables; but not if somebody in it commits, or is of a higher level
 * and could just as well be tried again.  Circles that go through locks of
 * the server's are left to the detector, too; but a COMMIT has it look soon, and what
 * it finds is a serialization failure.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat/compat.h"
#include "storage/lwlock.h"
#include "xact/internal.h"

typedef struct Waiter
{
	const mot_row *row;			/* NULL: it does not wait */
	uint32		holder;			/* the row's, a process slot */
	bool		patient;		/* it could as well wait for the detector */
} Waiter;

static LWLock *lock = NULL;
static Waiter *waiters = NULL;

static void
init_lock(void)
{
	lock = &(GetNamedLWLockTranche("mot_circle"))->lock;
}

const MotShmem MotCircleShmem = {"mot waits for rows", (void **) &waiters, 0, sizeof(Waiter), init_lock};

/* Does the last wait to come close a circle in which somebody is not patient? */
static bool
closes_circle(uint32 me)
{
	bool		patient = true;
	uint32		at = me;

	for (int steps = 0; steps < MotProcessSlots(); steps++)
	{
		Waiter	   *w = &waiters[at];

		if (w->row == NULL || !mot_row_held_by(MotEngine, w->row, w->holder))
			return false;
		/* a prepared transaction waits for nobody */
		if (w->holder >= MotProcessSlots())
			return false;
		patient &= w->patient;
		at = w->holder;
		if (at == me)
			return !patient;
	}
	/* others' circle, which we have come to */
	return false;
}

/* We are about to wait for a row.  False: not to be done.  Otherwise MotCircleLeave follows. */
bool
MotCircleEnter(const mot_holder *holder)
{
	Waiter	   *mine = &waiters[MotMySlot()];
	bool		closed;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	mine->row = holder->row;
	mine->holder = holder->slot;
	mine->patient = !IsolationUsesXactSnapshot();
	closed = closes_circle(MotMySlot());
	if (closed)
		mine->row = NULL;
	LWLockRelease(lock);
	return !closed;
}

/* The wait is over, or an error or the process's end has ended it. */
void
MotCircleLeave(void)
{
	Waiter	   *mine = &waiters[MotMySlot()];

	if (mine->row == NULL)
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	mine->row = NULL;
	LWLockRelease(lock);
}
