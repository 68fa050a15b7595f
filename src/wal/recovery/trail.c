/*-------------------------------------------------------------------------
 *
 * trail.c
 *	  On a standby, our records since its newest checkpoint, kept beside it.
 *
 * A base backup of a standby begins at its newest restartpoint, and gets the
 * log from there on.  Restartpoints wait for nobody, so the checkpoint of ours
 * that the backup copies can be older; and the log between the two, which this
 * standby has kept, is not in the backup.  So replay notes every record of
 * ours in files in our directory, which backups copy, too.  They are read
 * instead of log that is not there; see load.c.
 *
 * A file is a header and entries, in a mapping, so that noting one costs next
 * to nothing; behind them it is zero.  The header says, twice, one after the
 * other, how far the entries go.  Whoever copies the file gets that first, and
 * so all the entries that it promises; what comes behind them may be half
 * written, and is not needed, being later than where the backup began.  Before,
 * what makes no sense is damage.  Nothing is flushed: a standby that starts
 * again has the log, and notes anew what it reads of it.
 *
 * A new file is begun when there is a new checkpoint; those before it go when
 * it is old enough for all checkpoints that are kept.  Each names the one
 * before it, so that one that is missing is noticed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog_internal.h"
#include "format.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/spill.h"

#define FILE_MAGIC	UINT64CONST(0x314c49415254544d) /* "MTTRAIL1" */
#define FILE_NAME	UINT64CONST(0x00ffffffffffffff)
#define FILE_FORMAT(magic) ((int) ((magic) >> 56) - '0')
#define ENTRY_MAGIC	0x544e454d
#define SUFFIX		".trail"
#define NEW_NAME	MOT_DIRECTORY "/new" SUFFIX
#define NAME_DIGITS	16
#define MAP_SIZE	((Size) 256 * 1024 * 1024)	/* of a file, at most */
#define STEP		((Size) 1024 * 1024)	/* of its growth */

typedef struct FileHeader
{
	uint64		magic;
	uint64		system_identifier;
	XLogRecPtr	start;			/* all from here on, up to the next file */
	XLogRecPtr	previous;		/* where the one before it starts */
	pg_crc32c	crc;
} FileHeader;

/* behind the header: how far the entries go */
typedef struct Reach
{
	struct
	{
		XLogRecPtr	upto;
		XLogRecPtr	inverted;
	}			told[2];
} Reach;

#define REACH_OFFSET	MAXALIGN(sizeof(FileHeader))
#define ENTRIES_OFFSET	(REACH_OFFSET + MAXALIGN(sizeof(Reach)))

typedef struct Entry
{
	uint32		magic;
	uint32		len;			/* bytes behind it */
	XLogRecPtr	start;
	XLogRecPtr	end;
	TransactionId xid;
	uint32		info;
	pg_crc32c	data_crc;
	pg_crc32c	crc;			/* of all before it */
} Entry;

/* the file that is being written, in the startup process */
static int	fd = -1;
static char *map = NULL;
static Size allocated;
static Size used;
static XLogRecPtr file_start;
static XLogRecPtr upto;			/* end of the last record noted */
static XLogRecPtr seen;			/* checkpoint for which the file was begun */
static int	turn;				/* of the header's two */
static bool noting = false;
static bool loading = false;	/* the file has its temporary name */

/* ------------------------------------------------------------------ files */

static char *
trail_path(XLogRecPtr start)
{
	return psprintf(MOT_DIRECTORY "/%08X%08X" SUFFIX, LSN_FORMAT_ARGS(start));
}

static bool
parse_name(const char *name, XLogRecPtr *start)
{
	uint32		hi,
				lo;

	if (strlen(name) != NAME_DIGITS + strlen(SUFFIX) ||
		strspn(name, "0123456789ABCDEF") != NAME_DIGITS ||
		strcmp(name + NAME_DIGITS, SUFFIX) != 0 || sscanf(name, "%08X%08X", &hi, &lo) != 2)
		return false;
	*start = (uint64) hi << 32 | lo;
	return true;
}

static int
older_first(const ListCell *a, const ListCell *b)
{
	XLogRecPtr	x = *(XLogRecPtr *) lfirst(a);
	XLogRecPtr	y = *(XLogRecPtr *) lfirst(b);

	return x < y ? -1 : x > y;
}

/* where they start, oldest first */
static List *
list_trails(void)
{
	List	   *list = NIL;
	DIR		   *dir = AllocateDir(MOT_DIRECTORY);
	struct dirent *de;

	if (dir == NULL && errno == ENOENT)
		return NIL;
	while ((de = ReadDirExtended(dir, MOT_DIRECTORY, LOG)) != NULL)
	{
		XLogRecPtr	start;

		if (parse_name(de->d_name, &start))
		{
			XLogRecPtr *p = palloc(sizeof(XLogRecPtr));

			*p = start;
			list = lappend(list, p);
		}
	}
	if (dir != NULL)
		FreeDir(dir);
	list_sort(list, older_first);
	return list;
}

/* Those that no checkpoint from keep_from on needs; PG_UINT64_MAX: all. */
void
MotTrailRemove(XLogRecPtr keep_from)
{
	List	   *list = list_trails();

	for (int i = 0; i < list_length(list); i++)
	{
		bool		last = i + 1 == list_length(list);

		if (keep_from == PG_UINT64_MAX || (!last && *(XLogRecPtr *) list_nth(list, i + 1) <= keep_from))
		{
			char	   *path = trail_path(*(XLogRecPtr *) list_nth(list, i));

			MotFileRemove(path);
			pfree(path);
		}
	}
	list_free_deep(list);
}

/* ----------------------------------------------------------------- writing */

static void
end_file(void)
{
	if (map != NULL)
		(void) munmap(map, MAP_SIZE);
	if (fd >= 0)
		(void) close(fd);
	map = NULL;
	fd = -1;
}

/* Without it a standby is as good; only a backup of it may need its log. */
static void
give_up(const char *what)
{
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not %s a file in \"%s\" for records of memory-optimized tables: %m", what, MOT_DIRECTORY),
			 errdetail("A base backup of this standby may need log from before it.")));
	end_file();
	(void) unlink(NEW_NAME);
	MotTrailRemove(PG_UINT64_MAX);
	noting = false;
}

static bool
make_room(Size size)
{
	while (used + size > allocated)
	{
		int			error = MotSpillAllocate(fd, allocated, STEP);

		if (error != 0)
		{
			errno = error;
			give_up("extend");
			return false;
		}
		allocated += STEP;
	}
	return true;
}

/* The entries go as far as that. */
static void
tell(XLogRecPtr reached)
{
	Reach	   *reach = (Reach *) (map + REACH_OFFSET);

	pg_write_barrier();
	turn = 1 - turn;
	reach->told[turn].upto = reached;
	reach->told[turn].inverted = ~reached;
	pg_write_barrier();
}

static bool
begin_file(const char *path, XLogRecPtr start, XLogRecPtr previous)
{
	FileHeader	header = {FILE_MAGIC, GetSystemIdentifier(), start, previous, 0};

	header.crc = MotFileChecksum(&header, offsetof(FileHeader, crc));

	fd = BasicOpenFile(path, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
	{
		give_up("create");
		return false;
	}
	map = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
	{
		map = NULL;
		give_up("map");
		return false;
	}
	allocated = used = 0;
	file_start = start;
	if (!make_room(ENTRIES_OFFSET))
		return false;
	used = ENTRIES_OFFSET;
	tell(start);
	tell(start);
	memcpy(map, &header, sizeof(header));
	return true;
}

/* A standby loads the checkpoint at "from"; what is read of the log is noted, too. */
void
MotTrailBegin(XLogRecPtr from)
{
	if (!AmStartupProcess() || !ArchiveRecoveryRequested)
		return;
	seen = upto = from;
	loading = true;
	noting = begin_file(NEW_NAME, from, InvalidXLogRecPtr);
}

/* It has been loaded: what there was before is not needed any more. */
void
MotTrailLoaded(void)
{
	char	   *path;

	loading = false;
	if (!noting)
		return;
	MotTrailRemove(PG_UINT64_MAX);
	path = trail_path(file_start);
	if (rename(NEW_NAME, path) != 0)
		give_up("rename");
	pfree(path);
}

void
MotTrailNote(XLogReaderState *record)
{
	XLogRecPtr	newest;
	Entry		entry = {0};
	Size		size;

	if (!noting)
		return;
	entry.magic = ENTRY_MAGIC;
	entry.len = XLogRecGetDataLen(record);
	entry.start = record->ReadRecPtr;
	entry.end = record->EndRecPtr;
	entry.xid = XLogRecGetXid(record);
	entry.info = XLogRecGetInfo(record);
	entry.data_crc = MotFileChecksum(XLogRecGetData(record), entry.len);
	entry.crc = MotFileChecksum(&entry, offsetof(Entry, crc));
	size = sizeof(entry) + MAXALIGN(entry.len);

	newest = MotCheckpointShared()->checkpoint_lsn;
	if (!loading && (newest != seen || used + size > MAP_SIZE))
	{
		char	   *path = trail_path(upto);

		/* a long record may have been all there was in the file */
		if (upto != file_start)
		{
			end_file();
			noting = begin_file(path, upto, file_start);
		}
		seen = newest;
		pfree(path);
	}
	if (!noting || used + size > MAP_SIZE || !make_room(size))
	{
		if (noting)
		{
			errno = EFBIG;
			give_up("extend");
		}
		return;
	}
	memcpy(map + used + sizeof(entry), XLogRecGetData(record), entry.len);
	memcpy(map + used, &entry, sizeof(entry));
	used += size;
	upto = record->EndRecPtr;
	tell(upto);
}

/* ----------------------------------------------------------------- reading */

static char *
read_file(XLogRecPtr start, Size *size, FileHeader *header)
{
	char	   *path = trail_path(start);
	uint64		length;
	int			file = MotFileOpen(path, &length);
	char	   *bytes = MemoryContextAllocHuge(CurrentMemoryContext, length + 1);

	*size = MotFileRead(file, path, bytes, length, 0);
	CloseTransientFile(file);
	if (*size < ENTRIES_OFFSET)
		MotFileRaiseDamaged(path, *size, "the file ends here");
	memcpy(header, bytes, sizeof(FileHeader));
	if (!EQ_CRC32C(MotFileChecksum(header, offsetof(FileHeader, crc)), header->crc) || header->start != start ||
		header->system_identifier != GetSystemIdentifier() ||
		(header->magic & FILE_NAME) != (FILE_MAGIC & FILE_NAME))
		MotFileRaiseDamaged(path, 0, "the header does not fit");
	if (header->magic != FILE_MAGIC)
		MotRaiseFormat(psprintf("checkpoint file \"%s\"", path), FILE_FORMAT(header->magic), FILE_FORMAT(FILE_MAGIC));
	return bytes;
}

/* as a reader of the log would have it */
static void
visit_entry(const Entry *entry, const char *data, void (*visit) (void *arg, XLogReaderState *record))
{
	XLogReaderState reader = {0};
	DecodedXLogRecord *record = palloc0(sizeof(DecodedXLogRecord));

	record->header.xl_xid = entry->xid;
	record->header.xl_info = (uint8) entry->info;
	record->header.xl_rmid = (RmgrId) mot_resource_manager_id;
	record->lsn = entry->start;
	record->next_lsn = entry->end;
	record->max_block_id = -1;
	record->main_data = unconstify(char *, data);
	record->main_data_len = entry->len;
	reader.record = record;
	reader.ReadRecPtr = entry->start;
	reader.EndRecPtr = entry->end;
	visit(NULL, &reader);
	pfree(record);
}

static void
read_entries(XLogRecPtr start, const char *bytes, const char *end, XLogRecPtr from, XLogRecPtr to,
			 void (*visit) (void *arg, XLogReaderState *record))
{
	const char *p = bytes + ENTRIES_OFFSET;
	XLogRecPtr	reached = start;
	XLogRecPtr	promised = InvalidXLogRecPtr;
	Reach		reach;

	memcpy(&reach, bytes + REACH_OFFSET, sizeof(reach));
	for (int i = 0; i < 2; i++)
		if (reach.told[i].upto == ~reach.told[i].inverted)
			promised = Max(promised, reach.told[i].upto);
	if (promised < start)
		MotFileRaiseDamaged(trail_path(start), REACH_OFFSET, "how far it goes cannot be told");

	for (;;)
	{
		Entry		entry;
		const char *data = p + sizeof(Entry);
		bool		good;

		good = p + sizeof(Entry) <= end;
		if (good)
		{
			memcpy(&entry, p, sizeof(entry));
			good = entry.magic == ENTRY_MAGIC &&
				EQ_CRC32C(MotFileChecksum(&entry, offsetof(Entry, crc)), entry.crc);
		}
		if (good && entry.start >= to)
			return;
		good = good && entry.len <= (Size) (end - data) &&
			EQ_CRC32C(MotFileChecksum(data, entry.len), entry.data_crc);
		if (!good)
		{
			if (reached >= promised || reached >= to)
				return;
			MotFileRaiseDamaged(trail_path(start), p - bytes, "a record does not make sense");
		}
		if (entry.start >= from)
			visit_entry(&entry, data, visit);
		reached = entry.end;
		p = data + MAXALIGN(entry.len);
	}
}

/*
 * All records of [from, to), in order; false: the files do not go back as far,
 * or there are none.
 */
bool
MotTrailRead(XLogRecPtr from, XLogRecPtr to, void (*visit) (void *arg, XLogReaderState *record))
{
	List	   *list = list_trails();
	XLogRecPtr	previous = InvalidXLogRecPtr;
	int			first = -1;

	for (int i = 0; i < list_length(list); i++)
		if (*(XLogRecPtr *) list_nth(list, i) <= from)
			first = i;
	if (first < 0)
		return false;

	for (int i = first; i < list_length(list); i++)
	{
		XLogRecPtr	start = *(XLogRecPtr *) list_nth(list, i);
		FileHeader	header;
		Size		size;
		char	   *bytes;

		if (start >= to && i > first)
			break;
		bytes = read_file(start, &size, &header);
		if (i > first && header.previous != previous)
			MotFileRaiseDamaged(trail_path(start), 0, "the file before it is missing");
		read_entries(start, bytes, bytes + size, from, to, visit);
		previous = start;
		pfree(bytes);
	}
	return true;
}
