/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Memory for redo that is applied.
 *
 * Versions that nobody can see any more are freed before a transaction, as soon
 * as there are many: replay has no other time for it, and nobody else does it.
 * When memory is full nevertheless, the transaction is undone, and then, in this
 * order: what is owed is freed, without the snapshot that the transaction had;
 * readers of a standby are waited for and cancelled; and the largest table
 * is left out (leftout.c), or not made if the transaction makes it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "storage/lock.h"
#include "storage/standby.h"
#include "utils/memutils.h"
#include "wal/leftout.h"
#include "wal/replay.h"
#include "xact/xact.h"

/* items that come to be owed between two rounds of reclamation, and what the last one left */
#define RECLAIM_ITEMS 1024
static uint64 owed = 0;

/* how often room was made for the transaction at hand */
static int	rounds = 0;

#define MAX_ROUNDS 20

/* how long a checkpoint, whose snapshot keeps memory full, is waited for: naps of 10 ms */
#define CHECKPOINT_NAPS 6000
static int	naps = 0;

/* a table with less is not worth leaving out */
#define LEAST_BYTES (256 * 1024)

/* of a transaction that found no room: its largest table, as far as it came, and those that it is not to make */
static MotTargetKey largest_key;
static uint64 largest_bytes = 0;
static bool largest_made = false;
static List *not_to_make = NIL;

static bool readers_hold_memory(void);
static void leave_out(void);
static void leave_out_table(Oid dbid, Oid relid, uint64 bytes);

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
	largest_bytes = 0;
}

void
MotRoomNote(const MotTargetKey *key, mot_table *table, bool made)
{
	mot_table_stat stat;

	mot_table_stats(table, &stat);
	if (stat.row_bytes + stat.index_bytes > largest_bytes)
	{
		largest_bytes = stat.row_bytes + stat.index_bytes;
		largest_key = *key;
		largest_made = made;
	}
}

bool
MotRoomNotToMake(const MotTargetKey *key)
{
	ListCell   *lc;

	foreach(lc, not_to_make)
		if (memcmp(lfirst(lc), key, sizeof(MotTargetKey)) == 0)
		return true;
	return false;
}

void
MotRoomWasThere(void)
{
	rounds = naps = 0;
	list_free_deep(not_to_make);
	not_to_make = NIL;
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

/* A session that applies what a standby has in doubt cannot. */
bool
MotRoomCanBeMade(void)
{
	return MotRecovers() || MotWalCurrentState() == MOT_WAL_LOADING;
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
void
MotApplyMakeRoom(void)
{
	TransactionId xid = XidFromFullTransactionId(ReadNextFullTransactionId());
	RelFileNode every_database = {InvalidOid, InvalidOid, InvalidOid};

	if (!readers_hold_memory())
	{
		rounds = naps = 0;
		leave_out();
		return;
	}
	if (MotStateIsCheckpointing() && naps++ < CHECKPOINT_NAPS)
	{
		pg_usleep(10000);
		(void) MotRoomReclaim();
		HandleStartupProcInterrupts();
		return;
	}
	if (rounds++ == 0)
		ereport(LOG,
				(errmsg("replay waits for memory that is full of old versions of memory-optimized rows"),
				 errdetail("Queries on this standby may still need them.")));
	/* no snapshot's xmin is younger than the next xid */
	ResolveRecoveryConflictWithSnapshot(xid, every_database);
	(void) MotRoomReclaim();
	HandleStartupProcInterrupts();
}

/* ------------------------------------------------------------------ tables */

/* The largest table of all. */
typedef struct Largest
{
	Oid			dbid;
	Oid			relid;
	uint64		bytes;
} Largest;

static void
look_for_largest(void *arg, mot_table *table)
{
	Largest    *largest = arg;
	mot_table_stat stat;

	mot_table_stats(table, &stat);
	if (stat.row_bytes + stat.index_bytes > largest->bytes)
	{
		largest->bytes = stat.row_bytes + stat.index_bytes;
		largest->dbid = mot_table_host_db(table);
		largest->relid = mot_table_host_id(table);
	}
}

/*
 * The transaction at hand is to leave out the largest table that it makes,
 * which nobody knows of, so anybody may do that.  false: there is none.
 */
bool
MotRoomDoWithout(void)
{
	MemoryContext oldcxt;
	MotTargetKey *key;

	if (!largest_made || largest_bytes < LEAST_BYTES)
		return false;
	oldcxt = MemoryContextSwitchTo(TopMemoryContext);
	key = palloc(sizeof(MotTargetKey));
	*key = largest_key;
	not_to_make = lappend(not_to_make, key);
	MemoryContextSwitchTo(oldcxt);
	largest_bytes = 0;
	ereport(LOG,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("memory for memory-optimized tables is full: going on without a table that replay has come to"),
			 errdetail("Its OID is %u, that of its database %u.", key->relid, key->dbid),
			 errhint("Its rows and what is changed in them are kept in files, and it is brought back when there is room: increase mot.max_memory and restart the server.")));
	return true;
}

static void
leave_out(void)
{
	Largest		largest = {0};

	mot_table_each(MotEngine, look_for_largest, &largest);
	if (Max(largest.bytes, largest_bytes) < LEAST_BYTES)
		MotApplyRaiseMemory(MOT_NO_MEMORY, InvalidXLogRecPtr, NULL);

	if (largest_bytes < largest.bytes)
		leave_out_table(largest.dbid, largest.relid, largest.bytes);
	else if (!largest_made)
		leave_out_table(largest_key.dbid, largest_key.relid, largest_bytes);
	else
		(void) MotRoomDoWithout();
	largest_bytes = 0;
}

/* Those who read it on a standby go first, as before it is truncated. */
static void
leave_out_table(Oid dbid, Oid relid, uint64 bytes)
{
	bool		readers = AmStartupProcess() && HotStandbyActive();
	mot_table  *table;
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, dbid, relid);
	if (readers)
		(void) LockAcquire(&tag, AccessExclusiveLock, true, false);
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	table = mot_table_find(MotEngine, dbid, relid);
	if (table != NULL)
		MotLeftOutTable(table, bytes);
	LWLockRelease(MotApplyLock);
	if (readers)
		(void) LockRelease(&tag, AccessExclusiveLock, true);
	(void) MotRoomReclaim();
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
