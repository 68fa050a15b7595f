/*-------------------------------------------------------------------------
 *
 * owed.c
 *	  Who wakes the maintenance worker, and when.
 *
 * The worker looks once a second for what backends owe to reclamation.  What a
 * large transaction leaves, committed or rolled back, should not wait that long,
 * and nobody's next statement should have to see to it.  The engine says that
 * there is much; the worker is woken when our snapshot has gone, for which it
 * would have to wait.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/atomics.h"
#include "xact/internal.h"

typedef struct Shared
{
	pg_atomic_uint64 latch;		/* the worker's, a PGPROC's; or 0 */
	pg_atomic_uint32 asked;		/* since the worker looked last */
} Shared;

static Shared *shared = NULL;
static bool much = false;		/* owed by our transaction */

static void
much_owed(void)
{
	much = true;
}

static void
init_hook(void)
{
	mot_owed_much_hook = much_owed;
}

const MotShmem MotOwedShmem = {"mot maintenance", (void **) &shared, sizeof(Shared), 0, init_hook};

/* A transaction or subtransaction has ended, and let go of its snapshot. */
void
MotOwedTell(void)
{
	Latch	   *latch;

	if (likely(!much))
		return;
	much = false;
	/* exchange: a full barrier between what is owed and the look at the latch */
	if (pg_atomic_exchange_u32(&shared->asked, 1) != 0)
		return;
	latch = (Latch *) (uintptr_t) pg_atomic_read_u64(&shared->latch);
	/* setting it after its process has gone does no harm */
	if (latch != NULL)
		SetLatch(latch);
}

/* The worker: this latch wakes me; NULL: I am going. */
void
MotOwedServe(Latch *latch)
{
	pg_atomic_write_u64(&shared->latch, (uint64) (uintptr_t) latch);
}

/* The worker: has there been much since I asked last? */
bool
MotOwedAsked(void)
{
	return pg_atomic_exchange_u32(&shared->asked, 0) != 0;
}
