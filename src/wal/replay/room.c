/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Memory for redo that is applied.
 *
 * Versions that nobody can see any more are freed before a transaction, as soon
 * as there are many: replay has no other time for it, and nobody else does it.
 * When memory is full nevertheless, the transaction is undone, and then, in this
 * order: what is owed is freed, without the snapshot that the transaction had;
 * readers of a standby are waited for and cancelled; and the largest tables
 * are left out (leftout.c), or not made if the transaction makes them.  Small ones go
 * several at a time, and down to the last one: that heap tables are served does not
 * depend on what ours need.
 *
 * On a standby a session that finds a transaction of both kinds committed applies
 * it, and cannot make room: nobody but the startup process may take the locks for that, which
 * sleeps while no log comes.  So it asks the worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlogrecovery.h"
#include "compat/calls.h"
#include "compat/compat.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "storage/lock.h"
#include "storage/standby.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* items that come to be owed between two rounds of reclamation, and what the last one left */
#define RECLAIM_ITEMS 1024
static uint64 owed = 0;

/* how often room was made for the transaction at hand */
static int	rounds = 0;

#define MAX_ROUNDS 20

/* this is the worker */
static bool worker = false;

/*
 * milliseconds that a session naps for that while the worker gets nowhere, and naps of 10 ms of the
 * worker for readers, once for a transaction
 */
#define SESSION_WAIT 10000
#define WORKER_NAPS 100

/* how long a checkpoint, whose snapshot keeps memory full, is waited for: naps of 10 ms */
#define CHECKPOINT_NAPS 6000
static int	naps = 0;

/*
 * what is left out at a time has at least so much, and twice as much each time for the same
 * transaction
 */
#define LEAST_BYTES ((uint64) 256 * 1024)
static uint64 least_bytes = LEAST_BYTES;

/*
 * of a transaction that found no room: the tables that it has made, and those that it is not to
 * make
 */
typedef struct Noted
{
	MotTargetKey key;
	uint64		bytes;
	bool		made;
} Noted;

static Noted *noted = NULL;
static int	nnoted = 0;
static int	max_noted = 0;
static HTAB *not_to_make = NULL;

/* the table whose keys clash by its collations, if that was the matter */
static Noted clash;
static MotTargetKey not_made;	/* the last one of those */

static void leave_out(void);
static void leave_out_clash(void);
static bool leave_out_table(const Noted *which);
static void do_without(const Noted *which);

/* ----------------------------------------------------------- a transaction */

void
MotRoomBefore(void)
{
	if (mot_owed_items(MotEngine) >= owed + RECLAIM_ITEMS)
		(void) MotRoomReclaim();
}

void
MotRoomTry(void)
{
	nnoted = 0;
	clash.key.relid = InvalidOid;
}

void
MotRoomNote(const MotTargetKey *key, mot_table *table)
{
	mot_table_stat stat;

	if (nnoted == max_noted)
	{
		max_noted = Max(2 * max_noted, 64);
		noted = noted == NULL ? MemoryContextAlloc(TopMemoryContext, max_noted * sizeof(Noted)) :
			repalloc_huge(noted, max_noted * sizeof(Noted));
	}
	memset(&stat, 0, sizeof(stat));
	if (table != NULL)
		mot_table_stats(table, &stat);
	noted[nnoted].key = *key;
	noted[nnoted].bytes = stat.row_bytes + stat.index_bytes;
	noted[nnoted].made = true;
	nnoted++;
}

void
MotRoomClash(const MotTarget *target)
{
	clash.key = target->key;
	clash.bytes = 0;
	clash.made = target->created || target->table == NULL;
}

bool
MotRoomNotToMake(const MotTargetKey *key)
{
	return not_to_make != NULL && hash_search(not_to_make, key, HASH_FIND, NULL) != NULL;
}

bool
MotRoomIsForClash(const MotTargetKey *key)
{
	return not_made.relid == key->relid && not_made.dbid == key->dbid;
}

void
MotRoomWasThere(void)
{
	rounds = naps = 0;
	least_bytes = LEAST_BYTES;
	if (not_to_make != NULL)
		hash_destroy(not_to_make);
	not_to_make = NULL;
}

/* Free all that can be freed, and what that leaves to be freed in turn.  Was there any? */
bool
MotRoomReclaim(void)
{
	uint64		before = mot_owed_items(MotEngine);
	uint64		left = before;

	for (int i = 0; i < 4 && left > 0; i++)
		left = mot_reclaim_all(MotSession());
	owed = left;
	return left < before;
}

void
MotRoomInWorker(void)
{
	worker = true;
}

/* ------------------------------------------------- sessions and the worker */

static void
nap_for_room(void)
{
	MotNap(10, MOT_FOR_ROOM);
	/* whoever is cancelled begins anew the next time */
	if (INTERRUPTS_PENDING_CONDITION())
		naps = 0;
	CHECK_FOR_INTERRUPTS();
}

/*
 * By a session, which may itself be the one that needs what there is, or have a lock on the
 * largest table.  (A nap is followed by another attempt, which may take much longer.)
 */
static void
ask_for_room(void)
{
	static TimestampTz since;
	static uint32 made;
	uint32		now = pg_atomic_read_u32(&MotReplay->room_made);

	if (naps++ == 0 || now != made)
		since = GetCurrentTimestamp();
	made = now;
	if (!RecoveryInProgress() || TimestampDifferenceExceeds(since, GetCurrentTimestamp(), SESSION_WAIT))
	{
		naps = 0;
		MotApplyRaiseMemory(MOT_NO_MEMORY, InvalidXLogRecPtr, NULL);
	}
	pg_atomic_write_u32(&MotReplay->room_wanted, 1);
	MotStateAskWorker();
	nap_for_room();
}

/* By the worker, in a transaction: sessions wait for room to apply what is committed. */
void
MotRoomForSessions(void)
{
	if (pg_atomic_exchange_u32(&MotReplay->room_wanted, 0) == 0)
		return;
	rounds = naps = 0;
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtSettle(false);
	LWLockRelease(MotApplyLock);
}

/* ------------------------------------------------------------------ readers */

/*
 * On a standby queries can be what keeps memory full, of versions that only
 * they can see.  New ones come while we make room, so not for ever.
 */
static bool
readers_hold_memory(void)
{
	return AmStartupProcess() && HotStandbyActive() && rounds < MAX_ROUNDS &&
		mot_engine_horizon(MotEngine) < mot_engine_clock(MotEngine);
}

/*
 * As for rows of heap tables that replay is about to remove: those who might
 * still need them are waited for as long as max_standby_streaming_delay says,
 * and then cancelled.  If nobody does, or there are new ones again and again, it
 * is a table's turn.
 */
static void
make_room(void)
{
	TransactionId xid = XidFromFullTransactionId(ReadNextFullTransactionId());

	/* whoever loads has the memory, and the tables */
	if (MotSpooling() && !MotSpoolApplies)
	{
		MotSpoolWait();
		return;
	}
	/* a session that applies what a standby has in doubt makes none itself */
	if (!MotRecovers() && !(worker && RecoveryInProgress()) && MotWalCurrentState() != MOT_WAL_LOADING)
	{
		ask_for_room();
		return;
	}
	if (OidIsValid(clash.key.relid))
	{
		leave_out_clash();
		return;
	}
	while (worker && naps < WORKER_NAPS && mot_engine_horizon(MotEngine) < mot_engine_clock(MotEngine))
	{
		naps++;
		nap_for_room();
		/* else it would be undone once more */
		if (MotRoomReclaim())
			return;
	}
	if (!readers_hold_memory())
	{
		if (!worker)
			rounds = naps = 0;
		leave_out();
		return;
	}
	if (MotStateIs(MOT_IS_CHECKPOINTING) && naps++ < CHECKPOINT_NAPS)
	{
		pg_usleep(10000);
		(void) MotRoomReclaim();
		ProcessStartupProcInterrupts();
		return;
	}
	if (rounds++ == 0)
		ereport(LOG,
				(errmsg("replay waits for memory that is full of old versions of memory-optimized rows"),
				 errdetail("Queries on this standby may still need them.")));
	/* no snapshot's xmin is younger than the next xid */
	MotConflictWithSnapshots(xid);
	(void) MotRoomReclaim();
	ProcessStartupProcInterrupts();
}

void
MotApplyMakeRoom(bool locked)
{
	if (locked)
		LWLockRelease(MotApplyLock);
	make_room();
	if (locked)
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
}

/* ------------------------------------------------------------------ tables */

static int
larger_first(const void *a, const void *b)
{
	const Noted *x = a;
	const Noted *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* It goes and comes back with plain keys, and the transaction's changes (leftout.c). */
static void
leave_out_clash(void)
{
	if (clash.made)
	{
		not_made = clash.key;
		do_without(&clash);
	}
	else if (!leave_out_table(&clash) && worker)
		nap_for_room();			/* somebody reads it */
	clash.key.relid = InvalidOid;
}

/* The transaction at hand is not to make this one. */
static void
do_without(const Noted *which)
{
	bool		found;

	if (not_to_make == NULL)
		not_to_make = MotHashCreate("MOT tables not to be made", 64, sizeof(MotTargetKey), sizeof(MotTargetKey),
									TopMemoryContext);
	(void) hash_search(not_to_make, &which->key, HASH_ENTER, &found);
	if (which == &clash)
		return;
	ereport(LOG,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("memory for memory-optimized tables is full: going on without a table that replay has come to"),
			 errdetail("Its OID is %u, that of its database %u.", which->key.relid, which->key.dbid),
			 errhint("Its rows and what is changed in them are kept in files, and it is brought back when there is room: increase mot.max_memory and restart the server.")));
}

/*
 * The largest tables go, of those there are and those that the transaction at hand makes.
 * How much it still needs nobody knows: twice as much each time, so that it has not to
 * be begun anew for each of many.  false: there are none.
 */
static bool
leave_out_largest(Noted *tables, int n)
{
	uint64		without = 0;
	bool		any = false;

	qsort(tables, n, sizeof(Noted), larger_first);
	for (int i = 0; i < n && (!any || without < least_bytes); i++)
	{
		if (tables[i].made)
			do_without(&tables[i]);
		else if (!leave_out_table(&tables[i]))
			continue;
		without += tables[i].bytes;
		any = true;
		pg_atomic_fetch_add_u32(&MotReplay->room_made, 1);
	}
	least_bytes *= 2;
	nnoted = 0;
	return any;
}

static void
leave_out(void)
{
	int			n;
	mot_table **tables = MotTables(InvalidOid, &n);
	Noted	   *all = palloc_extended((n + nnoted + 1) * sizeof(Noted), MCXT_ALLOC_HUGE);

	for (int i = 0; i < n; i++)
	{
		mot_table_stat stat;

		mot_table_stats(tables[i], &stat);
		all[i].key.dbid = mot_table_host_db(tables[i]);
		all[i].key.relid = mot_table_host_id(tables[i]);
		all[i].bytes = stat.row_bytes + stat.index_bytes;
		all[i].made = false;
	}
	for (int i = 0; i < nnoted; i++)
		all[n++] = noted[i];
	if (!leave_out_largest(all, n))
		MotApplyRaiseMemory(MOT_NO_MEMORY, InvalidXLogRecPtr, NULL);
	pfree(all);
	pfree(tables);
	(void) MotRoomReclaim();
}

/*
 * Those who read it on a standby go first, as before it is truncated.  Who waits
 * for that is the startup process; the worker leaves out what nobody reads.
 */
static bool
leave_out_table(const Noted *which)
{
	bool		readers = RecoveryInProgress() && MotWalCurrentState() == MOT_WAL_READY &&
	(!AmStartupProcess() || HotStandbyActive());
	mot_table  *volatile table = mot_table_find(MotEngine, which->key.dbid, which->key.relid);
	LOCKTAG		tag;

	/* (one that is still being made, nobody can have locked) */
	SET_LOCKTAG_RELATION(tag, which->key.dbid, table != NULL ? mot_table_owner(table) : which->key.relid);
	if (readers && AmStartupProcess())
		(void) LockAcquire(&tag, AccessExclusiveLock, true, false);
	else if (readers)
	{
		volatile LockAcquireResult result = LOCKACQUIRE_NOT_AVAIL;

		/*
		 * the server refuses such locks to everybody but who replays, on
		 * behalf of which this is
		 */
		PG_TRY();
		{
			InRecovery = true;
			result = LockAcquire(&tag, AccessExclusiveLock, true, true);
		}
		PG_FINALLY();
		{
			InRecovery = false; /* also if the lock table is full */
		}
		PG_END_TRY();
		if (result == LOCKACQUIRE_NOT_AVAIL)
			return false;
	}
	PG_TRY();
	{
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		table = mot_table_find(MotEngine, which->key.dbid, which->key.relid);
		if (table != NULL)
			MotLeftOutTable(table, which->bytes);
		LWLockRelease(MotApplyLock);
	}
	PG_FINALLY();
	{
		if (readers)
			(void) LockRelease(&tag, AccessExclusiveLock, true);
	}
	PG_END_TRY();
	return table != NULL;
}

/* An operation of a table that is left out: in this memory, up to a piece's size. */
void
MotRoomKeep(MotTarget *target, MemoryContext cxt, const char *raw, size_t len)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);

	if (target->files == NULL)
	{
		target->files = palloc0(sizeof(MotLeftOut));
		if (!MotLeftOutFind(target->key.dbid, target->key.relid, target->files))
			elog(ERROR, "memory-optimized table %u is not left out", target->key.relid);
	}
	if (target->redo == NULL)
	{
		target->redo = palloc0(sizeof(StringInfoData));
		initStringInfo(target->redo);
	}
	if (target->redo->len + len > MOT_PIECE_SIZE)
		MotRoomKeepRest(target);
	if (len > MOT_PIECE_SIZE)
		MotLeftOutWrite(target->files, raw, len);
	else
		appendBinaryStringInfo(target->redo, raw, (int) len);
	MemoryContextSwitchTo(oldcxt);
}

/* before commit, too */
void
MotRoomKeepRest(MotTarget *target)
{
	if (!target->left_out || target->redo == NULL || target->redo->len == 0)
		return;
	MotLeftOutWrite(target->files, target->redo->data, target->redo->len);
	resetStringInfo(target->redo);
}

/* The transaction is committed, so this counts. */
void
MotRoomKeepDone(MotTarget *target)
{
	if (target->left_out && target->files != NULL)
		MotLeftOutRegister(target->files);
}
