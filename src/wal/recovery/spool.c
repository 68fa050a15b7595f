/*-------------------------------------------------------------------------
 *
 * spool.c
 *	  Transactions of a standby that wait for their tables to be loaded.
 *
 * While a checkpoint is loaded on a standby (standby.c), replay goes on: a
 * transaction that it has put together, and of which it knows that it is committed, is not
 * applied but appended here, by whoever finds that out and with MotApplyLock, in
 * the very order in which it would have been applied.  One process, which has
 * loaded the tables, takes them out at the other end.
 *
 * Why not leave them where they are, in the log: which of them count is known
 * when they are replayed.  Later the commit log may have been truncated,
 * the target of recovery passed, or the first pieces of a transaction be in the memory of
 * another process.
 *
 * The spool is a row of files of equal size, mapped by those who write and
 * read it.  A transaction that is large lies in a file of its own, mostly the
 * one in which its pieces have been put together: that gets another name, nothing is copied.
 * Like all files of spill.c they are of use to this run of the server only, and
 * removed as soon as they are empty.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "maintenance.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "storage/fd.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"
#include "wal/recovery/spool.h"

#define FILE_SIZE	((Size) 16 * 1024 * 1024)
#define LARGE_SIZE	((Size) 1024 * 1024)	/* more than that lies in a file
											 * of its own */
#define ENTRY_MAGIC 0x4c4f4f50
#define END_MAGIC	0x444e454c	/* the rest is in the next file */

#define FILE_SUFFIX ".spool"

/* before the bytes of a transaction, which begin at the next place that is aligned */
typedef struct Entry
{
	uint32		magic;
	TransactionId xid;
	XLogRecPtr	lsn;
	uint64		len;
	bool		in_file;		/* of its own */
} Entry;

#define ENTRY_SIZE MAXALIGN(sizeof(Entry))

/*
 * how far replay may be ahead when applying has begun, and what it is let do then: see
 * MotSpoolThrottle
 */
#define AHEAD_BYTES ((uint64) 16 * 1024 * 1024)

/* the file that this process has mapped to write to, and which it is */
static char *map = NULL;
static uint32 mapped;

/* this is the process that applies what is spooled */
bool		MotSpoolApplies = false;

static bool complained = false;

bool
MotSpooling(void)
{
	return pg_atomic_read_u32(&MotReplay->spooling) != 0;
}

void
MotSpoolBegin(void)
{
	MotReplay->spool_file = 0;
	MotReplay->spool_used = FILE_SIZE;	/* of none */
	pg_atomic_write_u64(&MotReplay->spool_added, 0);
	pg_atomic_write_u64(&MotReplay->spool_applied, 0);
	pg_atomic_write_u64(&MotReplay->spool_before, PG_UINT64_MAX);
	pg_write_barrier();
	pg_atomic_write_u32(&MotReplay->spooling, 1);
}

/* With MotApplyLock, by who has found it empty. */
void
MotSpoolEnd(void)
{
	pg_atomic_write_u32(&MotReplay->spooling, 0);
	MotSpoolApplies = false;
}

/* ----------------------------------------------------------------- writing */

static char *
file_path(uint32 number)
{
	return MotSpillPath("%08X" FILE_SUFFIX, number);
}

static char *
own_path(XLogRecPtr lsn)
{
	return MotSpillPath("%08X%08X" FILE_SUFFIX, LSN_FORMAT_ARGS(lsn));
}

static void
unmap(void)
{
	if (map != NULL)
		(void) munmap(map, FILE_SIZE);
	map = NULL;
}

/* Once, until it works again; errno says why. */
static void
complain(const char *path)
{
	if (!complained)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write to file \"%s\": %m", path),
				 errdetail("Replay waits until memory-optimized tables are loaded, or there is room on the disk.")));
	complained = true;
}

/* false: the disk is full */
static bool
open_map(uint32 number, bool new)
{
	char	   *path = file_path(number);

	unmap();
	map = MotSpillMapFile(path, FILE_SIZE, new);
	if (map == NULL && MotSpillIsFull(errno))
		complain(path);
	else if (map == NULL)
		MotFileRaise("write to file", path);
	mapped = number;
	pfree(path);
	return map != NULL;
}

/* Room for so many bytes more, in this file or in another one; false: the disk is full. */
static bool
map_for(Size size)
{
	uint32		number = MotReplay->spool_file;
	uint64		used = MotReplay->spool_used;

	if (MOT_FAULT_SKIPS("standby-full"))
	{
		errno = ENOSPC;
		complain("spool");
		return false;
	}
	if (used + size <= FILE_SIZE)
		return (map != NULL && mapped == number) || open_map(number, false);
	if (number > 0 && used + ENTRY_SIZE <= FILE_SIZE)
	{
		Entry		end = {.magic = END_MAGIC};

		if ((map == NULL || mapped != number) && !open_map(number, false))
			return false;
		memcpy(map + used, &end, sizeof(end));
	}
	if (!open_map(number + 1, true))
		return false;
	MotReplay->spool_file = number + 1;
	MotReplay->spool_used = 0;
	return true;
}

/*
 * Instead of being applied: with MotApplyLock.  path: a file of spill.c's that has these
 * operations, and has another name afterwards; NULL: none.  false: nothing was done,
 * since the disk is full.
 */
bool
MotSpoolAdd(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid, const char *path)
{
	Entry		entry = {ENTRY_MAGIC, xid, lsn, len, false};
	Size		size;

	entry.in_file = len > 0 && (path != NULL || len > LARGE_SIZE);
	size = ENTRY_SIZE + (entry.in_file ? 0 : MAXALIGN(len));
	if (!map_for(size))
		return false;
	if (entry.in_file)
	{
		char	   *own = own_path(lsn);

		if (path != NULL)
			(void) MotFileRename(path, own, ERROR);
		else if (!MotSpillWriteIfRoom(own, 0, ops, len))
		{
			complain(own);
			MotFileRemove(own);
			pfree(own);
			return false;
		}
		pfree(own);
	}
	else if (len > 0)
		memcpy(map + MotReplay->spool_used + ENTRY_SIZE, ops, len);
	memcpy(map + MotReplay->spool_used, &entry, sizeof(entry));
	MotReplay->spool_used += size;
	pg_atomic_fetch_add_u64(&MotReplay->spool_added, ENTRY_SIZE + len);
	complained = false;

	/* sessions do this once in a while only */
	if (!AmStartupProcess())
		unmap();
	return true;
}

/* -------------------------------------------------------------- who waits */

/*
 * The disk is full, or memory; whoever loads will make room, or be done.  Before
 * the server is open there is nobody who loads; then that is for us to do.
 */
void
MotSpoolWait(void)
{
	if (AmStartupProcess())
	{
		if (MotWalCurrentState() == MOT_WAL_UNLOADED && !MotStandbyWorkerComes())
			MotStandbyLoadHere();
		ProcessStartupProcInterrupts();
		pg_usleep(20000L);
		return;
	}
	MotNap(20, MOT_FOR_REPLAY);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Tables are loaded, and what is spooled is being applied.  From now on replay may add half of what
 * is taken out, and a little; else, if it were faster, there would be no end to it. Applied as it
 * comes, it would have to wait for all of it.
 */
void
MotSpoolThrottle(void)
{
	if (likely(!MotSpooling()))
	{
		unmap();
		return;
	}
	for (;;)
	{
		uint64		before = pg_atomic_read_u64(&MotReplay->spool_before);

		if (before == PG_UINT64_MAX || !MotSpooling() || MotWalCurrentState() != MOT_WAL_LOADING ||
			pg_atomic_read_u64(&MotReplay->spool_added) - before <=
			pg_atomic_read_u64(&MotReplay->spool_applied) / 2 + AHEAD_BYTES)
			return;
		ProcessStartupProcInterrupts();
		pg_usleep(1000L);
	}
}

/* ----------------------------------------------------------------- reading */

void
MotSpoolReadBegin(MotSpoolReader *reader)
{
	reader->file = 1;
	reader->used = 0;
	reader->map = NULL;
	MotSpoolApplies = true;
	pg_atomic_write_u64(&MotReplay->spool_before, pg_atomic_read_u64(&MotReplay->spool_added));
}

/*
 * With MotApplyLock: is there nothing more?  Else, how many bytes; and as far as that may be read
 * without.
 */
uint64
MotSpoolReadable(MotSpoolReader *reader)
{
	reader->to_file = MotReplay->spool_file;
	reader->to_used = MotReplay->spool_used;
	return pg_atomic_read_u64(&MotReplay->spool_added) - pg_atomic_read_u64(&MotReplay->spool_applied);
}

static void
close_file(MotSpoolReader *reader, bool remove)
{
	if (reader->map != NULL)
		(void) munmap(reader->map, FILE_SIZE);
	reader->map = NULL;
	if (remove)
	{
		char	   *path = file_path(reader->file);

		MotFileRemove(path);
		pfree(path);
	}
}

/* The next one of those that may be read; it is good until MotSpoolDone.  false: there is none. */
bool
MotSpoolNext(MotSpoolReader *reader)
{
	Entry		entry;

	for (;;)
	{
		if (reader->file > reader->to_file ||
			(reader->file == reader->to_file && reader->used >= reader->to_used))
			return false;
		if (reader->used + ENTRY_SIZE <= FILE_SIZE)
		{
			if (reader->map == NULL)
			{
				char	   *path = file_path(reader->file);

				reader->map = MotSpillMap(path, FILE_SIZE);
				pfree(path);
			}
			memcpy(&entry, reader->map + reader->used, sizeof(entry));
			if (entry.magic == ENTRY_MAGIC)
				break;
			if (entry.magic != END_MAGIC)
				elog(ERROR, "spool of memory-optimized tables is damaged in file %u at offset %llu",
					 reader->file, (unsigned long long) reader->used);
		}
		close_file(reader, true);
		reader->file++;
		reader->used = 0;
	}

	reader->len = entry.len;
	reader->lsn = entry.lsn;
	reader->xid = entry.xid;
	reader->own = entry.in_file ? own_path(entry.lsn) : NULL;
	reader->ops = entry.in_file ? MotSpillMap(reader->own, entry.len) : reader->map + reader->used + ENTRY_SIZE;
	reader->size = ENTRY_SIZE + (entry.in_file ? 0 : MAXALIGN(entry.len));
	return true;
}

/* It has been applied. */
void
MotSpoolDone(MotSpoolReader *reader)
{
	if (reader->own != NULL)
	{
		MotSpillUnmap(reader->ops, reader->len);
		MotFileRemove(reader->own);
		pfree(reader->own);
	}
	reader->used += reader->size;
	pg_atomic_fetch_add_u64(&MotReplay->spool_applied, ENTRY_SIZE + reader->len);
}

void
MotSpoolReadEnd(MotSpoolReader *reader)
{
	close_file(reader, reader->to_file > 0);
}

/* Loading has failed, and said so: nobody will read them, and with the lock nobody is at them. */
void
MotSpoolForget(void)
{
	DIR		   *dir;
	struct dirent *de;

	MotSpoolApplies = false;
	if (!MotSpooling())
		return;
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	dir = AllocateDir(MOT_SPILL_DIRECTORY);
	while (dir != NULL && (de = ReadDirExtended(dir, MOT_SPILL_DIRECTORY, LOG)) != NULL)
	{
		size_t		len = strlen(de->d_name);

		if (len > strlen(FILE_SUFFIX) && strcmp(de->d_name + len - strlen(FILE_SUFFIX), FILE_SUFFIX) == 0)
		{
			char	   *path = MotSpillPath("%s", de->d_name);

			MotFileRemove(path);
			pfree(path);
		}
	}
	if (dir != NULL)
		FreeDir(dir);
	LWLockRelease(MotApplyLock);
}
