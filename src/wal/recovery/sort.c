/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  The log since the checkpoint, sorted by table.
 *
 * After a crash tables come back one by one, those that somebody waits for
 * first; each has to be complete before anybody sees it.  So the log is read
 * once, from the checkpoint to the end of the server's own recovery, and what
 * it says of each table is put aside, in order: its part.
 *
 * By then the server's recovery is over, so the commit log knows what has
 * become of each mixed transaction; what was not committed never will be and is left
 * out here.  What several tables have of one transaction is applied at
 * different times; nobody sees it half done, because nobody sees a table before
 * all of its part is applied.
 *
 * What is dropped, or takes the place of what there was (CREATE), makes all
 * that came before it void: it is forgotten, and need not even be loaded.
 *
 * Parts lie in one file, in extents, as buffers fill up.  The file has no name:
 * it goes with the process.  Where the disk is full it is in memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/transam.h"
#include "storage/fd.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "wal/replay/apply.h"
#include "wal/replay/replay.h"
#include "wal/recovery/sort.h"
#include "wal/replay/spill.h"

#define FILE_NAME MOT_SPILL_DIRECTORY "/sorted"

/* a part's buffer, at first and at most; and all of them together */
#define BUFFER_FIRST 512
#define BUFFER_SIZE (64 * 1024)
#define BUFFERS_SIZE ((size_t) 32 * 1024 * 1024)

/* operations of one transaction that are kept in one piece */
#define RUN_SIZE (64 * 1024)

typedef struct MotSortedExtent
{
	off_t		offset;
	size_t		len;
} MotSortedExtent;

/* before each run of operations */
typedef struct RunHeader
{
	XLogRecPtr	lsn;
	uint64		len;
} RunHeader;

struct MotSorted
{
	MemoryContext cxt;
	HTAB	   *parts;
	const MotManifest *manifest;
	int			fd;				/* -1: nothing written */
	bool		in_memory;		/* the disk was full */
	off_t		written;
	size_t		buffered;
	uint64		transactions;
};

/* what replay of records leads to, while the log is sorted */
static MotSorted *sorting = NULL;

/* ------------------------------------------------------------------- parts */

/*
 * The disk is full (errno): what has been written, and what comes, is kept in a
 * file that has none.  false: it is not for that, or there is no memory either;
 * errno is as it was.
 */
static bool
go_on_in_memory(MotSorted *sorted)
{
	int			save_errno = errno;
	char	   *block;
	off_t		at = 0;
	int			fd;

	if (sorted->in_memory || !MotSpillIsFull(errno) ||
		(fd = memfd_create("mot sorted log", MFD_CLOEXEC)) < 0)
	{
		errno = save_errno;
		return false;
	}
	block = palloc(BUFFER_SIZE);
	while (at < sorted->written)
	{
		ssize_t		n = pg_pread(sorted->fd, block, Min(BUFFER_SIZE, sorted->written - at), at);

		if (n <= 0 || pg_pwrite(fd, block, n, at) != n)
			break;
		at += n;
	}
	pfree(block);
	if (at < sorted->written)
	{
		(void) close(fd);
		errno = save_errno;
		return false;
	}
	if (sorted->fd >= 0)
		(void) close(sorted->fd);
	sorted->fd = fd;
	sorted->in_memory = true;
	ereport(LOG,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("the log of memory-optimized tables is sorted in memory, for want of room on the disk")));
	return true;
}

/* false: errno says why not */
static bool
write_bytes(const MotSorted *sorted, const char *bytes, size_t len)
{
	if (!sorted->in_memory && MOT_FAULT_SKIPS("load-sort"))
	{
		errno = ENOSPC;
		return false;
	}
	return MotWriteAll(sorted->fd, bytes, len, sorted->written);
}

static void
write_extent(MotSorted *sorted, MotSortedPart *part, const char *bytes, size_t len)
{
	MotSortedExtent *last = part->nextents > 0 ? &part->extents[part->nextents - 1] : NULL;

	if (sorted->fd < 0 && !sorted->in_memory)
	{
		MotSpillDirectory();
		sorted->fd = BasicOpenFile(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
		if (sorted->fd >= 0)
			(void) unlink(FILE_NAME);
		else if (!go_on_in_memory(sorted))
			MotFileRaise("create file", FILE_NAME);
	}
	while (!write_bytes(sorted, bytes, len))
	{
		/* of these nothing is taken along */
		if (!go_on_in_memory(sorted))
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write file \"%s\": %m", FILE_NAME),
					 errdetail("The log of memory-optimized tables is sorted there when they are recovered."),
					 errhint("Make room on the disk, and restart the server.")));
	}

	if (last != NULL && last->offset + (off_t) last->len == sorted->written)
		last->len += len;
	else
	{
		if (part->nextents == part->max_extents)
		{
			part->max_extents = Max(2 * part->max_extents, 4);
			part->extents = part->extents == NULL ?
				MemoryContextAlloc(sorted->cxt, part->max_extents * sizeof(MotSortedExtent)) :
				repalloc_huge(part->extents, part->max_extents * sizeof(MotSortedExtent));
		}
		part->extents[part->nextents].offset = sorted->written;
		part->extents[part->nextents].len = len;
		part->nextents++;
	}
	sorted->written += len;
}

static void
flush_part(MotSorted *sorted, MotSortedPart *part)
{
	if (part->used == 0)
		return;
	write_extent(sorted, part, part->buffer, part->used);
	sorted->buffered -= part->used;
	part->used = 0;
}

static void
flush_all(MotSorted *sorted)
{
	foreach_hash(MotSortedPart, part, sorted->parts)
	{
		flush_part(sorted, part);
		if (part->buffer != NULL)
			pfree(part->buffer);
		part->buffer = NULL;
		part->size = 0;
	}
}

static void
add_bytes(MotSorted *sorted, MotSortedPart *part, const void *bytes, size_t len)
{
	if (part->used + len > part->size && part->size < BUFFER_SIZE)
	{
		size_t		size = Max(part->size, BUFFER_FIRST);

		while (size < part->used + len && size < BUFFER_SIZE)
			size *= 2;
		part->buffer = part->buffer == NULL ? MemoryContextAlloc(sorted->cxt, size) :
			repalloc(part->buffer, size);
		part->size = size;
	}
	if (part->used + len > part->size)
		flush_part(sorted, part);
	if (len > part->size)
	{
		write_extent(sorted, part, bytes, len);
		return;
	}
	memcpy(part->buffer + part->used, bytes, len);
	part->used += len;
	sorted->buffered += len;
	if (sorted->buffered > BUFFERS_SIZE)
		flush_all(sorted);
}

static void
add_run(MotSorted *sorted, MotSortedPart *part, XLogRecPtr lsn, const char *ops, size_t len)
{
	RunHeader	header = {lsn, len};

	add_bytes(sorted, part, &header, sizeof(header));
	add_bytes(sorted, part, ops, len);
	part->bytes += len;
}

static MotSortedPart *
get_part(MotSorted *sorted, Oid dbid, Oid relid)
{
	MotTargetKey key = {dbid, relid};
	bool		found;
	MotSortedPart *part = hash_search(sorted->parts, &key, HASH_ENTER, &found);

	if (!found)
	{
		memset(part, 0, sizeof(MotSortedPart));
		part->dbid = dbid;
		part->relid = relid;
	}
	return part;
}

/* What there was of the table is void.  (Its place in the file is lost.) */
static void
forget(MotSorted *sorted, MotSortedPart *part)
{
	sorted->buffered -= part->used;
	part->used = 0;
	part->nextents = 0;
	part->bytes = 0;
	part->anew = true;
}

static void
forget_database(MotSorted *sorted, Oid dbid)
{
	for (int i = 0; i < sorted->manifest->ntables; i++)
		if (sorted->manifest->tables[i].dbid == dbid)
			(void) get_part(sorted, dbid, sorted->manifest->tables[i].relid);
	foreach_hash(MotSortedPart, part, sorted->parts)
		if (part->dbid == dbid)
		forget(sorted, part);
}

/* ----------------------------------------------------------------- sorting */

static void
free_sorted(void *arg)
{
	MotSorted  *sorted = arg;

	if (sorted->fd >= 0)
		(void) close(sorted->fd);
	sorted->fd = -1;
}

static void
sort_transaction(const char *ops, size_t len, XLogRecPtr lsn)
{
	MotSorted  *sorted = sorting;
	const char *p = ops;
	const char *end = ops + len;
	const char *run = ops;		/* operations of "part" not added yet */
	const char *error = NULL;
	MotSortedPart *part = NULL;
	MotOpData	op;

	for (;;)
	{
		const char *before = p;
		bool		more = MotRecordNext(&p, end, &op, &error);

		if (part != NULL && before > run &&
			(!more || op.op == MOT_OP_TABLE || op.op == MOT_OP_DROP_DATABASE ||
			 op.op == MOT_OP_CREATE || op.op == MOT_OP_DROP || before - run >= RUN_SIZE))
		{
			add_run(sorted, part, lsn, run, before - run);
			run = before;
		}
		if (!more)
			break;

		switch (op.op)
		{
			case MOT_OP_TABLE:
				part = get_part(sorted, op.dbid, op.oid);
				run = p;
				break;
			case MOT_OP_DROP_DATABASE:
				forget_database(sorted, op.dbid);
				part = NULL;
				break;
			case MOT_OP_PREPARED:
			case MOT_OP_PREPARED_READS:
				break;
			default:
				if (part == NULL)
					error = "no table is named";
				else if (op.op == MOT_OP_DROP)
				{
					MOT_FAULT("replay-drop");
					forget(sorted, part);
					run = p;
				}
				else if (op.op == MOT_OP_CREATE)
					forget(sorted, part);
				break;
		}
		if (error != NULL)
			break;
	}
	if (error != NULL)
		MotRedoRaiseDamaged(lsn, "%s", error);
	sorted->transactions++;
}

static void
sort_one(void *arg, XLogReaderState *record)
{
	MotReplayRecord(record);
}

MotSorted *
MotSortLog(const MotManifest *m, XLogRecPtr from, XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT sorted log",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));
	MotSorted  *sorted = MemoryContextAllocZero(cxt, sizeof(MotSorted));

	sorted->cxt = cxt;
	sorted->parts = MotHashCreate("MOT sorted log", 256, sizeof(MotTargetKey), sizeof(MotSortedPart), cxt);
	sorted->manifest = m;
	sorted->fd = -1;

	/* the file goes with the memory, whatever happens */
	callback->func = free_sorted;
	callback->arg = sorted;
	MemoryContextRegisterResetCallback(cxt, callback);

	sorting = sorted;
	MotReplayInto = sort_transaction;
	PG_TRY();
	{
		for (int i = 0; i < m->nindoubt; i++)
		{
			const MotManifestInDoubt *doubt = &m->indoubt[i];

			/*
			 * (one that is prepared may be committed at any time; then it is
			 * applied when all tables are there)
			 */
			if (TransactionIdDidCommit(doubt->xid))
				sort_transaction(doubt->ops, doubt->len, doubt->lsn);
			else if (MotRecordIsPrepared(doubt->ops, doubt->len))
			{
				LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
				MotInDoubtAdd(doubt->xid, doubt->lsn, doubt->ops, doubt->len);
				LWLockRelease(MotApplyLock);
			}
		}
		if (upto > from)
			MotReadLog(from, upto, tli, sort_one, NULL);
	}
	PG_FINALLY();
	{
		MotReplayInto = NULL;
		sorting = NULL;
		MotReplayForget();
	}
	PG_END_TRY();
	flush_all(sorted);
	return sorted;
}

/* ----------------------------------------------------------------- reading */

typedef struct PartReader
{
	const MotSorted *sorted;
	const MotSortedPart *part;
	uint32		extent;
	size_t		at;				/* in the extent */
} PartReader;

/* the next len bytes; false: the end */
static bool
read_bytes(PartReader *r, char *bytes, size_t len)
{
	while (len > 0)
	{
		const MotSortedExtent *e = &r->part->extents[r->extent];
		size_t		n;

		if (r->extent == r->part->nextents)
			return false;
		n = Min(len, e->len - r->at);
		if (MotFileRead(r->sorted->fd, FILE_NAME, bytes, n, e->offset + r->at) < n)
			elog(ERROR, "file \"%s\" ends too early", FILE_NAME);
		bytes += n;
		len -= n;
		r->at += n;
		if (r->at == e->len)
		{
			r->extent++;
			r->at = 0;
		}
	}
	return true;
}

void
MotSortedRead(MotSorted *sorted, const MotSortedPart *part,
			  void (*visit) (void *arg, XLogRecPtr lsn, const char *ops, size_t len),
			  void *arg)
{
	PartReader	r = {sorted, part, 0, 0};
	size_t		size = 2 * RUN_SIZE;
	char	   *ops = palloc(size);
	RunHeader	header;

	while (read_bytes(&r, (char *) &header, sizeof(header)))
	{
		if (header.len > size)
		{
			pfree(ops);
			size = header.len;
			ops = MemoryContextAllocHuge(CurrentMemoryContext, size);
		}
		if (!read_bytes(&r, ops, header.len))
			elog(ERROR, "file \"%s\" ends too early", FILE_NAME);
		visit(arg, header.lsn, ops, header.len);
	}
	pfree(ops);
}

MotSortedPart **
MotSortedParts(MotSorted *sorted, int *n)
{
	MotSortedPart **parts = palloc((hash_get_num_entries(sorted->parts) + 1) * sizeof(MotSortedPart *));

	*n = 0;
	foreach_hash(MotSortedPart, part, sorted->parts)
		parts[(*n)++] = part;
	return parts;
}

MotSortedPart *
MotSortedFind(MotSorted *sorted, Oid dbid, Oid relid)
{
	MotTargetKey key = {dbid, relid};

	return hash_search(sorted->parts, &key, HASH_FIND, NULL);
}

uint64
MotSortedTransactions(MotSorted *sorted)
{
	return sorted->transactions;
}

void
MotSortFree(MotSorted *sorted)
{
	MemoryContextDelete(sorted->cxt);
}
