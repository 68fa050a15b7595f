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
 * its own transaction, and flushes as far as that commit; and waits for
 * standbys if that commit asked for it.  (The engine's durable.c keeps the
 * books.)
 *
 * Everything else is as in RecordTransactionCommit and its callees (xact.c):
 * synchronous_commit, commit_delay (in XLogFlush), the WAL writer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "utils/resowner.h"
#include "wal/internal.h"
#include "xact/xact.h"

#define FLAG_REPLICATED 1u		/* that commit waits for standbys, too */

/* this transaction's own record; 0: none, or the server has flushed it */
static XLogRecPtr own_record = 0;
static bool own_announced = false;

static void release_callback(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg);
static pg_noinline void transaction_released(bool isCommit);
static pg_noinline void settle(XLogRecPtr own, XLogRecPtr seen, unsigned flags);
static void wait_for_standbys(XLogRecPtr lsn);

void
MotDurableInit(void)
{
	RegisterResourceReleaseCallback(release_callback, NULL);
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
		mot_commit_announce(session, lsn, SyncRepRequested() ? FLAG_REPLICATED : 0);
		own_announced = true;
	}
}

/* called some ten times for every transaction: most have to cost nothing */
static void
release_callback(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && isTopLevel)
		transaction_released(isCommit);
}

static pg_noinline void
transaction_released(bool isCommit)
{
	mot_session *session = MotSessionOpened();
	XLogRecPtr	own = own_record;
	XLogRecPtr	seen;
	unsigned	flags;

	if (session == NULL)
		return;
	seen = mot_session_needs(session, &flags);
	/* a failure tells nothing of what was seen */
	if (!isCommit)
		return;
	own_record = 0;
	if (own != 0 || seen != 0)
		settle(own, seen, flags);
}

static pg_noinline void
settle(XLogRecPtr own, XLogRecPtr seen, unsigned flags)
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
		SyncRepWaitForLSN(own, true);
	if (seen != 0 && (flags & FLAG_REPLICATED))
		wait_for_standbys(seen);
	if (own_announced)
		mot_commit_durable(MotSessionOpened());
	own_announced = false;
}

/*
 * Somebody else's commit: its wait is ours, whatever this session's setting
 * says of its own commits.
 */
static void
wait_for_standbys(XLogRecPtr lsn)
{
	int			saved = synchronous_commit;

	if (synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
	{
		synchronous_commit = SYNCHRONOUS_COMMIT_REMOTE_FLUSH;
		assign_synchronous_commit(synchronous_commit, NULL);
	}
	SyncRepWaitForLSN(lsn, true);
	if (synchronous_commit != saved)
	{
		synchronous_commit = saved;
		assign_synchronous_commit(synchronous_commit, NULL);
	}
}
