/*-------------------------------------------------------------------------
 *
 * export.c
 *	  Exported snapshots (pg_export_snapshot, pg_dump --jobs).
 *
 * The server writes a snapshot that is exported into a file, and takes care that its xmin is held
 * for as long as the exporting transaction lasts.  What goes with it here is that
 * transaction's engine snapshot, which a REPEATABLE READ transaction has from its first query on:
 * so at the end of a query that has exported (XactHasExportedSnapshots) it is put into shared
 * memory, until the transaction ends.  A snapshot's identifier begins with the virtual transaction
 * id of who exported it, by which the importer finds it.
 *
 * The importer publishes the engine snapshot as its own, and looks then whether the
 * exporter's entry is still there: that is cleared before the exporter's snapshot
 * is let go of, so whoever reclaims has seen one of the two (mot_snapshot_lower has him look
 * again).  The server does the same with xmin, in ProcArrayInstallImportedXmin.
 *
 * Not exported are engine snapshots of single statements, at READ COMMITTED, since
 * nothing holds them; nor is one that is of another moment than PostgreSQL's (snapshot.c).
 * SERIALIZABLE importers take their own: what they read is validated as of
 * the moment at which the engine was told that they begin.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "storage/spin.h"
#include "xact/internal.h"

/* one with more that lies beyond it is not exported */
#define TEXT_SIZE 512

typedef struct Exported
{
	slock_t		mutex;
	uint64		vxid;			/* 0: there is none */
	char		words[TEXT_SIZE];	/* MotTakenWrite */
} Exported;

static Exported *shared = NULL; /* by slot */
static bool told = false;		/* ours is there */

static void
init_mutexes(void)
{
	for (int i = 0; i < MotProcessSlots(); i++)
		SpinLockInit(&shared[i].mutex);
}

const MotShmem MotExportShmem = {"mot exported snapshots", (void **) &shared, 0, sizeof(Exported), init_mutexes};

/* At the end of a query or a utility statement, at REPEATABLE READ and up. */
void
MotExportTell(void)
{
	Exported   *mine;
	StringInfoData words;

	if (told || MotSnapshotStale() || MotTransactionTaken().ts == MOT_TS_NONE)
		return;
	initStringInfo(&words);
	MotTakenWrite(&words, MotTransactionTaken());
	if (words.len < TEXT_SIZE)
	{
		mine = &shared[MotMySlot()];
		SpinLockAcquire(&mine->mutex);
		mine->vxid = MotMyVirtualXact();
		strlcpy(mine->words, words.data, TEXT_SIZE);
		SpinLockRelease(&mine->mutex);
		told = true;
	}
	pfree(words.data);
}

/* The transaction ends, and still holds its snapshot. */
void
MotExportForget(void)
{
	Exported   *mine = &shared[MotMySlot()];

	if (!told)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->vxid = 0;
	SpinLockRelease(&mine->mutex);
	told = false;
}

/* words: NULL or of TEXT_SIZE bytes */
static bool
is_of(Exported *exported, uint64 vxid, char *words)
{
	bool		is;

	SpinLockAcquire(&exported->mutex);
	is = exported->vxid == vxid;
	if (is && words != NULL)
		strlcpy(words, exported->words, TEXT_SIZE);
	SpinLockRelease(&exported->mutex);
	return is;
}

/*
 * PostgreSQL's snapshot of this identifier has been imported: the engine snapshot that goes with
 * it, published, or MOT_TS_NONE if none was exported.  Raises 55000, as the server does, if the
 * exporter has just ended.
 */
MotTaken
MotExportFind(const char *identifier)
{
	MotTaken	taken = {MOT_TS_NONE, NULL};
	char		words[TEXT_SIZE];
	uint32		process;
	uint32		lxid;
	uint64		vxid;

	if (sscanf(identifier, "%08X-%08X-", &process, &lxid) != 2)
		return taken;
	vxid = (uint64) process << 32 | lxid;
	for (int i = 0; i < MotProcessSlots(); i++)
		if (is_of(&shared[i], vxid, words))
		{
			taken = MotTakenRead(words, TopTransactionContext);
			mot_snapshot_lower(MotSession(), taken.ts);
			/* (the lock is a full barrier on both sides) */
			if (is_of(&shared[i], vxid, NULL))
				return taken;
			mot_snapshot_hold(MotSession(), MOT_TS_NONE);
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("could not import the requested snapshot"),
					 errdetail("The source transaction is not running anymore.")));
		}
	return taken;
}
