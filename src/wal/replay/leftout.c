/*-------------------------------------------------------------------------
 *
 * leftout.c
 *	  Tables that memory has no room for.
 *
 * A server may find less memory than the one that wrote what it loads or
 * replays: mot.max_memory was lowered, a standby is smaller than its primary.
 * Then the server goes on without the tables that do not fit.  Such a table is
 * a directory of its own beside the checkpoints: its rows in files, as they were
 * in a checkpoint or in memory when it was left out, and the redo that has
 * come for it since, one transaction's after the other's.  Statements that need
 * it fail; TRUNCATE and DROP give it up, and that is all that can change it.
 *
 * Each checkpoint takes the files and the redo along (as a part of its own
 * number), so what lies before it is not needed for the table, neither log nor
 * older checkpoints.  The directory itself does not outlive a start, so nothing in it
 * is on the disk for certain before a checkpoint comes by: there can be tens of thousands.  What a
 * checkpoint has of redo stays as it is: there is only added to it.
 *
 * A table is brought back as tables are at a start: its files are loaded, its
 * indexes built, and it is brought forward by its redo (advance.c), out of everybody's sight.
 * So it needs what it needs at a start, and its rows are visible to every
 * snapshot, as if it had never been away.  That is tried when everything else has been loaded or
 * replayed, and whenever there is clearly more room than the last time.  How much it needs is
 * known for certain only when it is there, and what has gone may be kept by somebody's snapshot: so
 * with as much room as before it is tried, too, in longer and longer intervals.  While the
 * server is at work, it is not to take what is reserved for changes of what is there.
 *
 * The same way is taken for a table whose keys clash by its collations, as they are today: another
 * version of ICU takes strings for equal that were not, or makes keys that are too long.  It is
 * loaded with plain keys, and brought forward with them, and in the end each index is made as it
 * should be, if that can be done.  An index that keeps plain keys is found by its form
 * (MotKeyGivesWay).  So what had been stored is there, whatever the library, and at the next start
 * it is tried again.
 *
 * The list is in shared memory (leftlist.c).  Who applies redo adds to it
 * and to the files, with MotApplyLock; a commit takes from the list only, and the
 * directory goes after the next checkpoint, which may be at it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "relation/relation.h"
#include "storage/copydir.h"
#include "storage/fd.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"
#include "wal/recovery/sort.h"
#include "wal/replay/spill.h"
#include "xact/xact.h"

#define LEFT_OUT_DIRECTORY MOT_DIRECTORY "/" PG_TEMP_FILE_PREFIX "_left_out"
#define REDO_MAGIC 0x52544f4d

/* between two attempts to bring a table back into as much room: twice as long each time */
#define FIRST_WAIT_MS 5000
#define REPLAY_WAIT_MS 60000	/* replay has just found that there is no room */
#define LAST_WAIT_MS 300000

/* between two looks for tables of which to try that: there may be many */
#define LOOK_MS 500
static TimestampTz looked = 0;

/* rows between two looks for an interrupt */
#define BATCH 1024

/* an entry of an index, and its share of the nodes, as a guess */
#define KEY_BYTES 32

/* before the operations of a transaction */
typedef struct RedoHeader
{
	uint32		magic;
	pg_crc32c	crc;			/* of the operations */
	uint64		len;
} RedoHeader;

/* a table that is being brought back */
typedef struct Back
{
	MotLeftOut *entry;
	bool		all;			/* of the memory may be used */
	char	   *directory;
	MotManifestTable *from;
	MotDefinition *def;			/* of that */
	mot_table  *table;			/* NULL: not made yet */
	bool		clash;			/* not to be had with keys in the order of
								 * their collations */
	const char *redo;			/* NULL: not mapped */
} Back;

static void give_up(const MotLeftOut *entry);
static void put_off(const MotLeftOut *entry);
static bool try_entry(MotLeftOut *entry, bool all);
static bool bring_back(MotLeftOut *entry, bool all);
static bool bring_back_so(MotLeftOut *entry, bool all, bool plain, bool *clash);
static bool load_table(Back *back);
static mot_status load_index(Back *back, int i);
static bool mend_indexes(Back *back);
static mot_status load_rows_of(Back *back, MotManifestFile *file);
static void read_redo(void *arg, MotAdvanceVisit visit, void *advance);
static void report(const MotLeftOut *entry, const char *name);

/* -------------------------------------------------------------------- list */

/* Loading begins: what there was has been forgotten with the memory. */
void
MotLeftOutStart(void)
{
	struct stat st;

	MotLeftOutClear();
	if (stat(LEFT_OUT_DIRECTORY, &st) == 0)
		(void) rmtree(LEFT_OUT_DIRECTORY, true);
}

/* ------------------------------------------------------------------- files */

static char *
directory_of(const MotLeftOut *entry)
{
	return psprintf("%s/%u", LEFT_OUT_DIRECTORY, entry->number);
}

/*
 * Files of rows are not written to once they are complete, so a second name will do where there can
 * be one.
 */
static void
take_file(const char *from, const char *to)
{
	if (link(from, to) != 0)
	{
		copy_file(unconstify(char *, from), unconstify(char *, to));
		fsync_fname(to, false);
	}
}

/* Its directory, and the rest empty. */
static void
new_entry(MotLeftOut *entry, Oid dbid, Oid relid, Oid owner)
{
	char	   *directory;

	memset(entry, 0, sizeof(*entry));
	entry->dbid = dbid;
	entry->relid = relid;
	entry->owner = owner;
	entry->number = MotLeftOutNextNumber();
	INIT_CRC32C(entry->redo_crc);

	directory = directory_of(entry);
	if (MakePGDirectory(directory) != 0)
	{
		/* the first one */
		MotDirectoryMake();
		(void) MotFileMakeDirectory(LEFT_OUT_DIRECTORY, true);
		(void) MotFileMakeDirectory(directory, false);
	}
	pfree(directory);
}

/* What the files are that have its rows. */
static void
write_base(MotLeftOut *entry, MotManifestTable *table)
{
	MotManifest m = {.system_identifier = GetSystemIdentifier(),.ntables = 1,.tables = table};
	char	   *directory = directory_of(entry);

	entry->rows = table->rows;
	entry->least = 0;
	for (int i = 0; i < table->nfiles; i++)
		entry->least += table->files[i].bytes;
	/* of the checkpoint's directory, and of no use after a crash */
	MotManifestWrite(directory, &m, false);
	pfree(directory);
}

/* The rows of a table as they are now. */
static void
dump_table(MotLeftOut *entry, mot_table *table)
{
	mot_session *session = MotSession();
	mot_ts		held = mot_snapshot_held(session);
	mot_view	view = {mot_snapshot_take(session), 0, NULL};
	char	   *directory = directory_of(entry);
	MotManifestTable t = {.dbid = entry->dbid,.relid = entry->relid};
	MotManifestFile file;
	MotDefinition *def;
	MotRowFileWriter *w;
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;

	t.definition = unconstify(char *, (const char *) mot_table_definition(table, &t.definition_len));
	def = MotDefinitionDecode(t.definition, t.definition_len, CurrentMemoryContext);
	w = MotRowFileCreate(directory, entry->dbid, entry->relid, 0);
	mot_scan_begin(session, &scan, table, &view);
	while (mot_scan_next(session, &scan, &row, &version))
	{
		MotRowFileAppend(w, mot_version_host_bits(version), mot_version_data(version),
						 MotDefinitionRowSize(def, version));
		t.rows++;
	}
	MotRowFileClose(w, &file);
	entry->to_sync = true;
	t.nfiles = 1;
	t.files = &file;
	write_base(entry, &t);
	MotDefinitionFree(def);
	mot_snapshot_hold(session, held);
	pfree(directory);
}

/* ----------------------------------------------------------------- leaving out */

/* A table of a checkpoint that is being loaded. */
void
MotLeftOutLoad(const char *directory, const MotManifestTable *table, uint64 needed)
{
	MotManifestTable base = *table;
	MotLeftOut	entry;
	char	   *own;

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	new_entry(&entry, table->dbid, table->relid, MotDefinitionOwner(table->definition));
	own = directory_of(&entry);
	base.nfiles = 0;
	base.files = palloc(Max(table->nfiles, 1) * sizeof(MotManifestFile));
	for (int i = 0; i < table->nfiles; i++)
	{
		const MotManifestFile *f = &table->files[i];
		char	   *from = MotRowFilePath(directory, f->dbid, f->relid, f->part);
		char	   *to = MotRowFilePath(own, f->dbid, f->relid, f->part);

		if (f->part == MOT_REDO_PART)
		{
			/* there will be more, which is not this checkpoint's */
			copy_file(from, to);
			if (truncate(to, f->bytes) != 0)
				MotFileRaise("truncate file", to);
			entry.records = f->rows;
			entry.redo_bytes = f->bytes;
			entry.redo_crc = f->crc;
			entry.to_sync = true;
		}
		else
		{
			take_file(from, to);
			base.files[base.nfiles++] = *f;
		}
	}
	write_base(&entry, &base);
	entry.needed = needed;
	MotLeftOutRegister(&entry);
	LWLockRelease(MotApplyLock);
	pfree(base.files);
	pfree(own);
}

/*
 * A table that is there, of so many bytes: its rows to a file, and it goes.  0: not for want of
 * memory, so it may come back at once.
 */
void
MotLeftOutTable(mot_table *table, uint64 bytes)
{
	mot_session *session = MotSession();
	MotLeftOut	entry;
	size_t		len;
	const void *definition = mot_table_definition(table, &len);
	MotDefinition *def = MotDefinitionDecode(definition, len, CurrentMemoryContext);

	new_entry(&entry, mot_table_host_db(table), mot_table_host_id(table), def->owner);
	MOT_FAULT("left-out-table");
	dump_table(&entry, table);
	entry.needed = entry.had = bytes;
	entry.tried = GetCurrentTimestamp();
	entry.wait_ms = REPLAY_WAIT_MS;
	entry.soon = bytes == 0;
	MotLeftOutRegister(&entry);
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_table_drop(session, table);
	LWLockRelease(MotDirectoryLock);
	MotTellSessions(entry.dbid, entry.owner);
	if (bytes == 0)
		ereport(LOG,
				(errmsg("memory-optimized table \"%s\" is to be loaded anew, since a key clashes with another by its collation",
						def->name)));
	else
		report(&entry, def->name);
	MotDefinitionFree(def);
}

/* Those that are left out when a checkpoint has been loaded. */
void
MotLeftOutReport(void)
{
	MotLeftOut *list;
	int			n = MotLeftOutList(&list);

	for (int i = 0; i < n; i++)
	{
		char	   *directory = directory_of(&list[i]);
		MotManifestTable *t = &MotManifestRead(directory)->tables[0];
		MotDefinition *def = MotDefinitionDecode(t->definition, t->definition_len, CurrentMemoryContext);

		report(&list[i], def->name);
		MotDefinitionFree(def);
		pfree(directory);
	}
	pfree(list);
}

static void
report(const MotLeftOut *entry, const char *name)
{
	ereport(LOG,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("memory for memory-optimized tables is full: going on without table \"%s\"", name),
			 errdetail("Its OID is %u, that of its database %u; it needs about %llu kB.", entry->relid, entry->dbid,
					   (unsigned long long) (MotLeftOutNeeds(entry) / 1024)),
			 errhint("Its rows and what is changed in them are kept in files, and it is brought back when there is room: increase mot.max_memory and restart the server.")));
}

/* A table that was to be made: empty so far, what follows is to be redo.  Not registered. */
void
MotLeftOutEmpty(MotLeftOut *entry, Oid dbid, Oid relid, const void *definition, size_t len)
{
	MotManifestTable t = {.dbid = dbid,.relid = relid};

	new_entry(entry, dbid, relid, MotDefinitionOwner(definition));
	t.definition = unconstify(char *, (const char *) definition);
	t.definition_len = len;
	write_base(entry, &t);
}

/* Operations of a transaction, about to commit; they count once the entry is registered. */
void
MotLeftOutWrite(MotLeftOut *entry, const char *ops, size_t len)
{
	RedoHeader	header = {REDO_MAGIC, MotFileChecksum(ops, len), len};
	char	   *directory = directory_of(entry);
	char	   *path = MotRowFilePath(directory, entry->dbid, entry->relid, MOT_REDO_PART);

	MotSpillWrite(path, entry->redo_bytes, &header, sizeof(header));
	MotSpillWrite(path, entry->redo_bytes + sizeof(header), ops, len);
	COMP_CRC32C(entry->redo_crc, &header, sizeof(header));
	entry->redo_bytes += sizeof(header) + len;
	entry->to_sync = true;
	entry->records++;
	pfree(path);
	pfree(directory);
}

/* ------------------------------------------------------------- checkpoints */

/* its way to the disk begins */
static void
hand_over(const char *path)
{
	int			fd = MotFileOpen(path, NULL);

	pg_flush_data(fd, 0, 0);
	(void) CloseTransientFile(fd);
}

/* A table as the checkpoint is to have it. */
static void
describe(const MotLeftOut *entry, MotManifestTable *t)
{
	char	   *own = directory_of(entry);
	MotManifest *base = MotManifestRead(own);
	MotManifestFile *files = palloc((base->tables[0].nfiles + 1) * sizeof(MotManifestFile));

	*t = base->tables[0];
	memcpy(files, t->files, t->nfiles * sizeof(MotManifestFile));
	t->files = files;
	if (entry->records > 0)
	{
		MotManifestFile *f = &files[t->nfiles++];

		memset(f, 0, sizeof(*f));
		f->dbid = entry->dbid;
		f->relid = entry->relid;
		f->part = MOT_REDO_PART;
		f->rows = entry->records;
		f->bytes = entry->redo_bytes;
		f->crc = entry->redo_crc;
	}
	pfree(own);
}

/*
 * They go along; the list is theirs as of the line.  All begin their way to the
 * disk before one is waited for (see MotRowFileCloseLater).
 */
void
MotLeftOutCheckpoint(MotManifest *m, const MotLeftOut *list, int n, const char *directory)
{
	MotManifestTable *tables;

	if (n == 0)
		return;
	m->tables = repalloc_huge(m->tables, (m->ntables + n) * sizeof(MotManifestTable));
	tables = &m->tables[m->ntables];
	for (int i = 0; i < n; i++)
	{
		describe(&list[i], &tables[i]);
		for (int j = 0; j < tables[i].nfiles && list[i].to_sync; j++)
		{
			char	   *own = directory_of(&list[i]);
			char	   *path = MotRowFilePath(own, list[i].dbid, list[i].relid, tables[i].files[j].part);

			hand_over(path);
			pfree(path);
			pfree(own);
		}
	}
	for (int i = 0; i < n; i++)
	{
		const MotLeftOut *entry = &list[i];
		char	   *own = directory_of(entry);

		for (int j = 0; j < tables[i].nfiles; j++)
		{
			const MotManifestFile *f = &tables[i].files[j];
			char	   *path = MotRowFilePath(own, entry->dbid, entry->relid, f->part);
			char	   *to = MotRowFilePath(directory, entry->dbid, entry->relid, f->part);

			if (entry->to_sync)
				fsync_fname(path, false);
			take_file(path, to);
			m->bytes += f->bytes;
			pfree(path);
			pfree(to);
		}
		if (entry->to_sync)
			MotLeftOutSynced(entry);
		m->rows += tables[i].rows;
		pfree(own);
	}
	m->ntables += n;
}

static int
by_number(const void *a, const void *b)
{
	const MotLeftOut *x = a;
	const MotLeftOut *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Directories of tables that are not left out any more. */
void
MotLeftOutSweep(void)
{
	MotLeftOut *list;
	int			n;
	DIR		   *dir;
	struct dirent *de;
	struct stat st;

	if (stat(LEFT_OUT_DIRECTORY, &st) != 0)
		return;
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	n = MotLeftOutList(&list);
	qsort(list, n, sizeof(MotLeftOut), by_number);
	dir = AllocateDir(LEFT_OUT_DIRECTORY);
	while ((de = ReadDirExtended(dir, LEFT_OUT_DIRECTORY, LOG)) != NULL)
	{
		uint32		number = strtoul(de->d_name, NULL, 10);
		MotLeftOut	key = {.number = number};
		char		path[MAXPGPATH];

		if (number == 0 || bsearch(&key, list, n, sizeof(MotLeftOut), by_number) != NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", LEFT_OUT_DIRECTORY, de->d_name);
		(void) rmtree(path, true);
	}
	if (dir != NULL)
		FreeDir(dir);
	LWLockRelease(MotApplyLock);
	pfree(list);
}

/* ------------------------------------------------------------ bringing back */

/* by what files they have: that is the same each time */
static int
smaller_first(const void *a, const void *b)
{
	const MotLeftOut *x = a;
	const MotLeftOut *y = b;
	uint64		xbytes = x->least + x->redo_bytes;
	uint64		ybytes = y->least + y->redo_bytes;

	if (xbytes != ybytes)
		return xbytes < ybytes ? -1 : 1;
	if (x->dbid != y->dbid)
		return x->dbid < y->dbid ? -1 : 1;
	return x->relid < y->relid ? -1 : x->relid > y->relid;
}

static uint64
room_now(bool all)
{
	mot_memory_report report;
	uint64		limit;

	mot_memory_report_get(MotEngine, &report);
	limit = all ? report.max_bytes : report.max_bytes / 16 * 15;
	return limit - Min(report.used_bytes, limit);
}

static bool
worth_trying(const MotLeftOut *entry, bool all)
{
	uint64		room = room_now(all);

	if (room < entry->least)
		return false;
	return room > entry->had + entry->had / 16 ||
		(!all && TimestampDifferenceExceeds(entry->tried, GetCurrentTimestamp(), entry->wait_ms));
}

/*
 * Bring back what there is room for; all: in all of the memory.  By the process
 * that loads or that writes checkpoints.  Returns how many are back.
 */
int
MotLeftOutBringBack(bool all)
{
	MotLeftOut *list;
	int			n;
	int			back = 0;

	if (likely(MotLeftOutCount() == 0))
		return 0;
	if (!all && !TimestampDifferenceExceeds(looked, GetCurrentTimestamp(), LOOK_MS))
		return 0;
	looked = GetCurrentTimestamp();
	if (mot_engine_dropped(MotEngine) > 0)
		(void) mot_reclaim_all(MotSession());
	n = MotLeftOutList(&list);
	qsort(list, n, sizeof(MotLeftOut), smaller_first);
	for (int i = 0; i < n; i++)
		if (worth_trying(&list[i], all) && try_entry(&list[i], all))
			back++;
	pfree(list);
	return back;
}

/* This one, by who loads; false: it is still left out. */
bool
MotLeftOutTry(Oid dbid, Oid relid)
{
	MotLeftOut	entry;

	return MotLeftOutFind(dbid, relid, &entry) && worth_trying(&entry, true) && try_entry(&entry, true);
}

/* It did not fit into so much; what it needs is known better now. */
void
MotLeftOutFailed(Oid dbid, Oid relid, uint64 had, uint64 needed)
{
	MotLeftOut	entry;

	if (!MotLeftOutFind(dbid, relid, &entry))
		return;
	entry.had = had;
	entry.needed = Max(needed, entry.least);
	entry.wait_ms = Min(Max(2 * entry.wait_ms, FIRST_WAIT_MS), LAST_WAIT_MS);
	entry.tried = GetCurrentTimestamp();
	entry.soon = false;
	MotLeftOutRegister(&entry);
}

/*
 * As far as one knows: of a table that was made when there was no room, all rows are in its redo.
 */
uint64
MotLeftOutNeeds(const MotLeftOut *entry)
{
	return Max(entry->needed, entry->rows == 0 ? entry->redo_bytes : entry->least);
}

/* What a table of so many rows needs, about, of which there is a part. */
uint64
MotLeftOutNeeded(const mot_table *table, uint64 rows, uint32 nindexes)
{
	mot_table_stat stat;
	double		row_bytes;

	mot_table_stats(table, &stat);
	row_bytes = stat.row_bytes;
	if (stat.rows > 0 && stat.rows < rows)
		row_bytes = row_bytes / stat.rows * rows;
	return (uint64) row_bytes + Max(stat.index_bytes, nindexes * rows * KEY_BYTES);
}

static bool
try_entry(MotLeftOut *entry, bool all)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT left out", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	volatile bool lock = !MotRecovers() && MotWalCurrentState() == MOT_WAL_READY && !RecoveryInProgress();
	volatile bool back = false;
	const MotLeftOut locked = *entry;

	if (!lock || MotLeftOutLock(&locked))
	{
		PG_TRY();
		{
			LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
			if (MotLeftOutFind(entry->dbid, entry->relid, entry))
				back = bring_back(entry, all);
			LWLockRelease(MotApplyLock);
		}
		PG_CATCH();
		{
			bool		given_up = mot_ignore_damaged && geterrcode() == ERRCODE_DATA_CORRUPTED;

			LWLockReleaseAll();
			if (!given_up && (all || geterrcode() == ERRCODE_QUERY_CANCELED))
			{
				if (lock)
					MotLeftOutUnlock(&locked);
				PG_RE_THROW();
			}
			MemoryContextSwitchTo(cxt);

			/* redo may have made it anew meanwhile; others cannot have */
			LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
			if (given_up)
				give_up(entry);
			else
				put_off(entry);
			LWLockRelease(MotApplyLock);
		}
		PG_END_TRY();
		if (lock)
			MotLeftOutUnlock(&locked);
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return back;
}

/* Is it the one that it was? */
static bool
is_still_left_out(const MotLeftOut *entry)
{
	MotLeftOut	now;

	return MotLeftOutFind(entry->dbid, entry->relid, &now) && now.number == entry->number;
}

/* An error that says that its files are damaged, and mot.ignore_damaged is set. */
static void
give_up(const MotLeftOut *entry)
{
	ErrorData  *edata = CopyErrorData();

	FlushErrorState();
	if (!is_still_left_out(entry))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("memory-optimized table with OID %u of database with OID %u is damaged and not available", entry->relid, entry->dbid),
			 errdetail("%s.", edata->message)));
	MotStatePreserveNewest();
	MotStateDamage(entry->dbid, entry->relid, edata->message);
	MotLeftOutForget(entry->dbid, entry->relid);
}

/*
 * Its files are damaged, or cannot be read.  The server is at work, and goes on: the table stays
 * left out, and others are not to wait for it.
 */
static void
put_off(const MotLeftOut *entry)
{
	EmitErrorReport();
	FlushErrorState();
	if (is_still_left_out(entry))
		MotLeftOutFailed(entry->dbid, entry->relid, room_now(false), entry->needed);
}

/* What was begun is gone: nobody has seen it. */
static void
end_back(Back *back, bool discard)
{
	mot_session *session = MotSession();

	mot_session_use_reserve(session, false);
	if (back->redo != NULL)
		MotSpillUnmap(back->redo, back->entry->redo_bytes);
	back->redo = NULL;
	if (!discard)
		return;
	if (back->table != NULL)
		mot_table_discard(session, back->table);
	mot_snapshot_hold(session, MOT_TS_NONE);
	(void) mot_reclaim_all(session);
}

/* the definition may have come with the redo */
static void
set_limit(mot_table *table)
{
	size_t		len;
	const void *bytes = mot_table_definition(table, &len);

	mot_table_set_limit(table, MotDefinitionDecode(bytes, len, CurrentMemoryContext)->max_size);
}

/* true: there is to be no more of it in memory */
static bool
look(void *arg)
{
	const Back *back = arg;

	MOT_FAULT("left-out-look");
	MotEndWithServer();
	CHECK_FOR_INTERRUPTS();
	return !back->all && room_now(false) == 0;
}

static bool
bring_back(MotLeftOut *entry, bool all)
{
	bool		clash;

	if (bring_back_so(entry, all, false, &clash))
		return true;
	return clash && bring_back_so(entry, all, true, &clash);
}

/* plain: indexes as they have to be if collations are not what they were */
static bool
bring_back_so(MotLeftOut *entry, bool all, bool plain, bool *clash)
{
	mot_session *session = MotSession();
	bool		held = mot_snapshot_held(session) != MOT_TS_NONE;
	Back	   *back = palloc0(sizeof(Back));
	uint64		had = room_now(all);
	volatile bool done = false;

	back->entry = entry;
	back->all = all;
	back->directory = directory_of(entry);
	back->from = &MotManifestRead(back->directory)->tables[0];
	back->def = MotDefinitionDecode(back->from->definition, back->from->definition_len, CurrentMemoryContext);
	MOT_FAULT("left-out-back");
	(void) mot_snapshot_take(session);
	mot_session_use_reserve(session, true);
	*clash = false;
	PG_TRY();
	{
		MotKeysStayPlain = plain;
		done = load_table(back) &&
			(entry->records == 0 ||
			 MotAdvance(entry->dbid, entry->relid, &back->table, read_redo, look, back, &back->clash));
		MotKeysStayPlain = false;
		done = done && (!plain || mend_indexes(back));
		*clash = back->clash;
		if (!done && !back->clash)
			MotLeftOutFailed(entry->dbid, entry->relid, had,
							 back->table == NULL ? 0 : MotLeftOutNeeded(back->table, entry->rows, back->def->nindexes));
		MOT_FAULT("left-out-loaded");
		if (done)
			set_limit(back->table);
		end_back(back, !done);
	}
	PG_CATCH();
	{
		MotKeysStayPlain = false;
		MotCleansUp = true;
		end_back(back, true);
		MotCleansUp = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	mot_snapshot_hold(session, MOT_TS_NONE);
	if (held)
		(void) mot_snapshot_take(session);
	if (!done)
		return false;

	mot_load_done(back->table);
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	(void) mot_table_publish(MotEngine, back->table);
	LWLockRelease(MotDirectoryLock);
	MotLeftOutForget(entry->dbid, entry->relid);
	MotTellSessions(entry->dbid, entry->owner);
	MotStateTableLoaded();
	ereport(LOG,
			(errmsg("memory-optimized table with OID %u of database with OID %u is back in memory", entry->relid, entry->dbid)));
	return true;
}

/* false: memory is full */
static bool
load_table(Back *back)
{
	mot_status	status = MotDefinitionMakeTable(MotSession(), back->def, back->from->definition,
												back->from->definition_len, &back->table);

	for (int i = 0; i < back->from->nfiles && status == MOT_OK; i++)
		if (back->from->files[i].part != MOT_REDO_PART)
			status = load_rows_of(back, &back->from->files[i]);
	for (int i = 0; i < back->def->nindexes && status == MOT_OK && !back->clash; i++)
	{
		status = load_index(back, i);
		if (status == MOT_DUPLICATE && back->clash)
			return false;
	}
	/* not found: looking has told it to stop */
	if (status != MOT_OK && status != MOT_NO_MEMORY && status != MOT_NOT_FOUND)
		MotRaiseStatus(status, NULL);
	return status == MOT_OK;
}

/* Duplicate, and "clash": its keys cannot be as they should be. */
static mot_status
fill_index(Back *back, mot_index *index, MotIndex *keys)
{
	MemoryContext cxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile mot_status status = MOT_DUPLICATE;

	PG_TRY();
	{
		status = MotLoadIndex(back->table, index, keys, look, back);
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_PROGRAM_LIMIT_EXCEEDED || !MotKeyGivesWay(keys->key, false))
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();

		/* MotApplyLock is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		back->clash = true;
	}
	PG_END_TRY();
	back->clash |= status == MOT_DUPLICATE && MotKeyGivesWay(keys->key, true);
	return status;
}

static mot_status
load_index(Back *back, int i)
{
	MotIndex   *keys = &back->def->indexes[i];

	return fill_index(back, mot_table_index(back->table, keys->indexoid), keys);
}

/*
 * The table is there, with plain keys.  Which of its indexes can be what they should be?  false:
 * there is no memory to find that out.
 */
static bool
mend_indexes(Back *back)
{
	mot_session *session = MotSession();
	size_t		len;
	const void *bytes = mot_table_definition(back->table, &len);
	MotDefinition *def = MotDefinitionDecode(bytes, len, CurrentMemoryContext);

	for (int i = 0; i < def->nindexes; i++)
	{
		MotIndex   *keys = &def->indexes[i];
		mot_index  *plain = mot_table_index(back->table, keys->indexoid);
		mot_index  *index;
		mot_status	status;

		if (plain == NULL || keys->key == keys->plain)
			continue;
		status = MotDefinitionMakeIndex(session, back->table, keys, &index);
		if (status == MOT_OK)
		{
			back->clash = false;
			status = fill_index(back, index, keys);
			if (status == MOT_OK)
			{
				mot_index_drop(session, plain);
				mot_index_attach(index);
				mot_index_described(index);
				continue;
			}
			mot_index_drop(session, index);
		}
		if (!back->clash)
			return false;
		back->clash = false;
		MotIndexAdopt(keys, plain);
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 keys->key->blind ?
				 errmsg("index with OID %u of memory-optimized table \"%s\" can neither be read nor take new keys",
						keys->indexoid, def->name) :
				 errmsg("index with OID %u of memory-optimized table \"%s\" serves equality only", keys->indexoid, def->name),
				 errdetail("The library of its collation takes keys for equal that were not when they were stored, or makes keys that are too long: it is another version."),
				 errhint("The rows are there.  Delete those that are in the way and REINDEX; or drop the index, mend the rows and create it again; or start the server with the former version.")));
	}
	MotDefinitionFree(def);
	return true;
}

static mot_status
load_rows_of(Back *back, MotManifestFile *file)
{
	mot_session *session = MotSession();
	MotRowFileReader *reader = MotRowFileOpen(back->directory, file);
	unsigned	host_bits;
	const void *bytes;
	size_t		size;
	volatile mot_status status = MOT_OK;
	uint64		n = 0;

	PG_TRY();
	{
		while (status == MOT_OK && MotRowFileNext(reader, &host_bits, &bytes, &size))
		{
			mot_row    *row;
			void	   *data;

			status = mot_load_row(session, back->table, host_bits, size, &row, &data);
			if (status == MOT_OK)
				memcpy(data, bytes, size);
			if (++n % BATCH == 0 && look(back))
				status = MOT_NO_MEMORY;
		}
	}
	PG_FINALLY();
	{
		/* what fails is tried again and again */
		MotRowFileReaderClose(reader);
	}
	PG_END_TRY();
	return status;
}

/*
 * Its redo, one transaction's after the other's.  Nobody sees what becomes of the rows, so what
 * that leaves (nodes of indexes) is kept for no snapshot but our own.
 */
static void
read_redo(void *arg, MotAdvanceVisit visit, void *advance)
{
	Back	   *back = arg;
	const MotLeftOut *entry = back->entry;
	mot_session *session = MotSession();
	char	   *path = MotRowFilePath(back->directory, entry->dbid, entry->relid, MOT_REDO_PART);
	const char *start = back->redo = MotSpillMap(path, entry->redo_bytes);
	const char *p = start;
	const char *end = start + entry->redo_bytes;
	uint64		owed = mot_owed_items(MotEngine);
	pg_crc32c	total;

	INIT_CRC32C(total);
	for (uint64 i = 0; i < entry->records; i++)
	{
		RedoHeader	header = {0};

		if ((size_t) (end - p) >= sizeof(header))
			memcpy(&header, p, sizeof(header));
		p += sizeof(header);
		if (header.magic != REDO_MAGIC || p > end || header.len > (size_t) (end - p) ||
			!EQ_CRC32C(MotFileChecksum(p, header.len), header.crc))
			MotFileRaiseDamaged(path, p - start, "redo does not match its checksum");
		COMP_CRC32C(total, &header, sizeof(header));
		visit(advance, InvalidXLogRecPtr, p, header.len);
		p += header.len;
		if (mot_owed_items(MotEngine) > owed + BATCH)
		{
			mot_snapshot_hold(session, MOT_TS_NONE);
			owed = mot_reclaim_all(session);
			(void) mot_snapshot_take(session);
		}
	}
	if (p != end || !EQ_CRC32C(total, entry->redo_crc))
		MotRaiseDamage("checkpoint file \"%s\" is damaged: it is not the one that the manifest names", path);
	pfree(path);
}
