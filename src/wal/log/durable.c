/*-------------------------------------------------------------------------
 *
 * durable.c
 *	  After the commit: the log up to it is made durable.
 *
 * A memory-only transaction is installed before its record is flushed (see
 * wal.h), and its locks are released before that, too: the flush comes when
 * the server's resource owner has let go of the transaction's locks, which
 * is the last the server has us do before it goes on to report success.  So
 * who waited for one of our rows goes on while we wait for the disk, and its
 * record may even be flushed together with ours.
 *
 * Whoever read such a row in the meantime finds that out here, at the end of
 * its own transaction, and flushes as far as that commit.  (The engine's
 * durable.c keeps the books.)
 *
 * A disk's flush is short and ends by itself.  A synchronous standby may be
 * absent for days; what waits for one is neither shown to anybody nor are its
 * locks released, as with heap tables.  Such a commit is given an xid, so it is
 * the server's commit record that waits, before we install (xact/transaction.c).
 * Only who found no standbys configured then, but does now, waits here.
 *
 * Everything else is as in RecordTransactionCommit and its callees (xact.c):
 * synchronous_commit, commit_delay (in XLogFlush), the WAL writer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "compat/syncrep.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "utils/resowner.h"
#include "wal/internal.h"
#include "xact/xact.h"

/* this transaction's own record; 0: none, or the server has flushed it */
static XLogRecPtr own_record = 0;
static bool own_announced = false;

/* Will the server's commit wait for a standby?  As SyncRepWaitForLSN finds out. */
bool
MotDurableWaits(void)
{
	return SyncRepRequested() && MotSyncStandbysDefined();
}

/*
 * In COMMIT, between the insertion of the record that ends at lsn and the
 * installation of what it says.
 */
void
MotDurableNote(mot_session *session, XLogRecPtr lsn)
{
	own_record = lsn;
	if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF)
	{
		mot_commit_announce(session, lsn);
		own_announced = true;
	}
}

static pg_noinline void
settle(XLogRecPtr own, XLogRecPtr seen)
{
	/* as the server: what is lost here would have to be taken back */
	START_CRIT_SECTION();
	if (own != 0)
	{
		MOT_FAULT("commit-flush");
		if (own_announced)
			XLogFlush(own);
		else
			MotAsyncCommitted(own);
		XactLastRecEnd = 0;
		XactLastCommitEnd = own;
	}
	if (seen != 0 && !(own_announced && seen <= own))
		XLogFlush(seen);
	END_CRIT_SECTION();

	MOT_FAULT("commit-flushed");
	if (own_announced)
	{
		mot_commit_durable(MotOpenSession);
		SyncRepWaitForLSN(own, true);
	}
	own_announced = false;
}

static pg_noinline void
transaction_released(bool isCommit)
{
	mot_session *session = MotOpenSession;
	XLogRecPtr	own = own_record;
	XLogRecPtr	seen;

	if (session == NULL)
		return;
	seen = mot_session_needs(session);
	/* a failure tells nothing of what was seen */
	if (!isCommit)
		return;
	own_record = 0;
	if (own != 0 || seen != 0)
		settle(own, seen);
}

/* called some ten times for every transaction: most have to cost nothing */
static void
release_callback(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && isTopLevel)
		transaction_released(isCommit);
}

void
MotDurableInit(void)
{
	RegisterResourceReleaseCallback(release_callback, NULL);
}
