/*-------------------------------------------------------------------------
 *
 * decoded.c
 *	  Snapshots that logical decoding has made: the initial copy of a subscription.
 *
 * Who makes a logical slot gets a snapshot of the place in the log where the slot's changes begin
 * (SnapBuildInitialSnapshot): it sees the transactions whose commit records lie before that, by
 * xid, whatever the order was in which they ended.  A copy made with it, and the slot's
 * changes, are all that there is, with nothing lost and nothing twice.  So the engine
 * snapshot that goes with it has to leave out just those commits that it does not see; that
 * there are a few of them by the time when it is asked for, is to be expected.
 *
 * Where the log is decoded all that changes ordinary tables has an xid.  Each process
 * writes down the numbers of its latest commits; what the snapshot does not see of them is beyond
 * the engine's snapshot (mot_beyond).  If one process has had so many that the first of them are
 * forgotten, the snapshot cannot be had, which is an error; a subscription tries again.
 *
 * What such commits supersede must still be there.  The transaction with whose
 * snapshot is copied begins before the slot is made (CREATE_REPLICATION_SLOT ... USE_SNAPSHOT, as
 * subscriptions do it), and holds an engine snapshot from then on, which is below all of them
 * (MotSnapshotHoldEarly).  A snapshot that is exported instead has no such transaction: who imports it
 * may read memory-optimized tables if nobody has committed since.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "port/atomics.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/fd.h"
#include "storage/spin.h"
#include "utils/snapmgr.h"
#include "xact/internal.h"

typedef struct Commit
{
	pg_atomic_uint64 xid;
	pg_atomic_uint64 ts;
} Commit;

typedef struct Commits
{
	pg_atomic_uint64 n;			/* so many have been written down */
	Commit		commit[MOT_DECODED_KEPT];	/* the latest */
} Commits;

static Commits *shared = NULL;

const MotShmem MotDecodedShmem = {"mot decoded commits", (void **) &shared, 0, sizeof(Commits)};

/* This process has installed a commit that has an xid. */
void
MotDecodedCommitted(uint64 xid, mot_ts ts)
{
	Commits    *mine = &shared[MotMySlot()];
	uint64		n = pg_atomic_read_u64(&mine->n);
	Commit	   *commit = &mine->commit[n % MOT_DECODED_KEPT];

	/* who finds n raised must not take the old one for the new one, nor who has read before that */
	pg_atomic_write_u64(&commit->xid, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&mine->n, n + 1);
	pg_write_barrier();
	pg_atomic_write_u64(&commit->ts, ts);
	pg_write_barrier();
	pg_atomic_write_u64(&commit->xid, xid);
	/* before it is said to be done */
	pg_write_barrier();
}

/*
 * A process's commits with numbers up to "upto" that are not seen, into "without" (of
 * MOT_DECODED_KEPT).  A process's later commits are behind its earlier ones in the log,
 * so if one is seen those before it are (but for a prepared one's that it has found decided).
 * Returns how many, or -1: some have been forgotten.
 */
int
MotDecodedUnseen(int process, mot_ts upto, bool (*unseen) (uint64 xid, void *arg), void *arg, mot_ts *without)
{
	Commits    *theirs = &shared[process];
	uint64		n = pg_atomic_read_u64(&theirs->n);
	int			found = 0;
	bool		sees = true;

	for (uint64 back = 1; back <= n; back++)
	{
		Commit	   *commit = &theirs->commit[(n - back) % MOT_DECODED_KEPT];
		uint64		xid;
		mot_ts		ts;

		if (back > MOT_DECODED_KEPT)
			return sees ? found : -1;
		do
		{
			/* 0: it is being written down */
			xid = pg_atomic_read_u64(&commit->xid);
			pg_read_barrier();
			ts = pg_atomic_read_u64(&commit->ts);
			pg_read_barrier();
		} while (xid == 0 || pg_atomic_read_u64(&commit->xid) != xid);
		/* has its place been taken by a later one? */
		if (pg_atomic_read_u64(&theirs->n) > n - back + MOT_DECODED_KEPT)
			return -1;
		sees = !unseen(xid, arg);
		if (!sees && ts <= upto)
			without[found++] = ts;
	}
	return found;
}

/* Has a walsender exported the snapshot of this identifier?  Its file names the process. */
bool
MotDecodedExported(const char *identifier)
{
	char		path[MAXPGPATH];
	char		line[64];
	FILE	   *file;
	int			pid = 0;
	bool		is = false;

	snprintf(path, sizeof(path), "pg_snapshots/%s", identifier);
	file = AllocateFile(path, PG_BINARY_R);
	while (file != NULL && pid == 0 && fgets(line, sizeof(line), file) != NULL)
		(void) sscanf(line, "pid:%d", &pid);
	if (file != NULL)
		FreeFile(file);
	for (int i = 0; i < max_wal_senders && pid != 0; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];

		SpinLockAcquire(&sender->mutex);
		is |= sender->pid == pid;
		SpinLockRelease(&sender->mutex);
	}
	return is;
}
