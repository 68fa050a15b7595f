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
 * What such commits supersede must still be there.  A transaction that begins before it makes the
 * slot (CREATE_REPLICATION_SLOT ... USE_SNAPSHOT, as subscriptions do it) holds an engine snapshot
 * from then on, which is below all of them (MotSnapshotHeldEarly).
 *
 * A snapshot that is exported instead has no transaction of ours, and nobody tells us that a slot is being made.
 * The server itself holds what the snapshot will need by the slot's xmin, and then by the walsender's.
 * Whoever is not seen ends when the first of them is there already, and looks for them
 * when his commit record is there, and before his rows are installed, since what he supersedes
 * may go from then on: if he finds one, the engine keeps that further on
 * (mot_engine_keep), until there is none, which whoever commits next finds, or the maintenance worker.
 * Who imports the snapshot publishes what is kept as his own, while the walsender still has his.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "faults.h"
#include "port/atomics.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "xact/internal.h"

/* a commit's xid: it is another process's, committed some time before */
#define OTHERS (UINT64CONST(1) << 63)

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

typedef struct Shared
{
	slock_t		mutex;			/* of what the engine keeps */
	Commits		process[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

/* who has exported the snapshot that this transaction has imported */
static int	exporter = 0;

static void
init_mutex(void)
{
	SpinLockInit(&shared->mutex);
}

const MotShmem MotDecodedShmem = {"mot decoded commits", (void **) &shared, offsetof(Shared, process), sizeof(Commits), init_mutex};

/* does this walsender have a snapshot of data? */
static bool
has_snapshot(int pid)
{
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);

		if (proc->pid == pid)
			return OidIsValid(proc->databaseId) && TransactionIdIsValid(proc->xmin);
	}
	return false;
}

/*
 * Is a slot being made with a snapshot, or has a walsender one?  (Words are read without locks: what matters was
 * written under ProcArrayLock before who asks had it.  The walsender's is there before the slot's goes.)
 */
static bool
is_copied(void)
{
	for (int i = 0; i < max_replication_slots; i++)
	{
		volatile ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use && OidIsValid(slot->data.database) && TransactionIdIsValid(slot->effective_xmin))
			return true;
	}
	pg_read_barrier();
	for (int i = 0; i < max_wal_senders; i++)
	{
		volatile WalSnd *sender = &WalSndCtl->walsnds[i];
		int			pid = sender->pid;

		if (pid != 0 && sender->state == WALSNDSTATE_STARTUP && has_snapshot(pid))
			return true;
	}
	return false;
}

/* oldest: commits with greater numbers may be unseen; or MOT_TS_NONE */
static void
keep(mot_ts oldest)
{
	SpinLockAcquire(&shared->mutex);
	if (!is_copied())
		mot_engine_keep(MotEngine, MOT_TS_NONE);
	else if (oldest < mot_engine_kept(MotEngine))
		mot_engine_keep(MotEngine, oldest);
	SpinLockRelease(&shared->mutex);
}

/* The maintenance worker, now and then. */
void
MotDecodedServe(void)
{
	if (mot_engine_kept(MotEngine) != MOT_TS_NONE)
		keep(MOT_TS_NONE);
}

/*
 * This process is about to install a commit whose record has been written.  Its number is, or will be, greater than
 * the clock's of now, or than the snapshot that it has held since before it has drawn.
 */
void
MotDecodedCommits(void)
{
	mot_ts		oldest;

	if (likely(mot_engine_kept(MotEngine) == MOT_TS_NONE && !is_copied()))
		return;
	oldest = mot_engine_clock(MotEngine);
	keep(Min(oldest, mot_snapshot_held(MotSession())));
}

/* It has been installed; it has this xid. others: and is a prepared one, which this process has found committed */
void
MotDecodedCommitted(uint64 xid, mot_ts ts, bool others)
{
	Commits    *mine = &shared->process[MotMySlot()];
	uint64		n = pg_atomic_read_u64(&mine->n);
	Commit	   *commit = &mine->commit[n % MOT_DECODED_KEPT];

	MOT_FAULT("decoded-installed");

	/*
	 * who finds n raised must not take the old one for the new one, nor who
	 * has read before that
	 */
	pg_atomic_write_u64(&commit->xid, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&mine->n, n + 1);
	pg_write_barrier();
	pg_atomic_write_u64(&commit->ts, ts);
	pg_write_barrier();
	pg_atomic_write_u64(&commit->xid, others ? xid | OTHERS : xid);
	/* before it is said to be done */
	pg_write_barrier();
}

/*
 * A process's commits with numbers up to "upto" that are not seen, into "without" (of
 * MOT_DECODED_KEPT).  What it has done before a commit of its own is before that in the log,
 * so if this is seen that is; what it has found committed tells nothing of what came before, unless its number is one of
 * before the slot ("held").  Returns how many, or -1: some have been forgotten.
 */
int
MotDecodedUnseen(int process, mot_ts upto, mot_ts held, bool (*unseen) (uint64 xid, void *arg), void *arg, mot_ts *without)
{
	Commits    *theirs = &shared->process[process];
	uint64		n = pg_atomic_read_u64(&theirs->n);
	int			found = 0;
	bool		is;
	bool		sees = false;	/* all those before */

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
		is = !unseen(xid & ~OTHERS, arg);
		if (!is && ts <= upto)
			without[found++] = ts;
		sees = (xid & OTHERS) != 0 ? sees || ts <= held : is;
	}
	return found;
}

/* Publish "ts", while the walsender has its snapshot; MOT_TS_NONE: what is kept, or now. */
bool
MotDecodedLower(mot_session *session, mot_ts ts)
{
	bool		is = false;

	/* (the engine's clock and words, nothing that waits) */
	SpinLockAcquire(&shared->mutex);
	if (has_snapshot(exporter))
	{
		if (ts == MOT_TS_NONE)
		{
			(void) mot_snapshot_take(session);
			ts = mot_engine_kept(MotEngine);
		}
		if (ts != MOT_TS_NONE)
			mot_snapshot_lower(session, ts);
		is = true;
	}
	SpinLockRelease(&shared->mutex);
	return is;
}

/*
 * PostgreSQL's snapshot of this identifier has been imported: if a walsender has exported it, whose file
 * names it, what it needs is published.
 */
bool
MotDecodedImport(mot_session *session, const char *identifier)
{
	char		path[MAXPGPATH];
	char		line[64];
	FILE	   *file;
	bool		is = false;

	exporter = 0;
	snprintf(path, sizeof(path), "pg_snapshots/%s", identifier);
	file = AllocateFile(path, PG_BINARY_R);
	while (file != NULL && exporter == 0 && fgets(line, sizeof(line), file) != NULL)
		(void) sscanf(line, "pid:%d", &exporter);
	if (file != NULL)
		FreeFile(file);
	for (int i = 0; i < max_wal_senders && exporter != 0; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];

		SpinLockAcquire(&sender->mutex);
		is |= sender->pid == exporter;
		SpinLockRelease(&sender->mutex);
	}
	return is && MotDecodedLower(session, MOT_TS_NONE);
}
