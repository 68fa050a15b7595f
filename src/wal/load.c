/*-------------------------------------------------------------------------
 *
 * load.c
 *	  The newest checkpoint back into memory.
 *
 * All tables are made first, out of their definitions.  Then this process and
 * its helpers take the row files one after the other; a table with several
 * files is filled by several processes at a time.  When the last file of a
 * table is in, the table goes into the directory, and (if there is no log to
 * be applied to it) who waits for it goes on.
 *
 * What follows is the log from the checkpoint's position to "upto": what the
 * server's own redo is not going to show us.
 *
 * Damage is an error that names file and position.  With mot.ignore_damaged
 * the table is marked and left out; should the log be incomplete, all of
 * them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "postmaster/startup.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wal/leftout.h"
#include "wal/spill.h"
#include "xact/xact.h"

/* rows between two looks whether to stop */
#define LOAD_BATCH 512

/* what may be the matter with a table */
#define DAMAGED 1
#define NO_ROOM 2

typedef struct LoadTable
{
	mot_table  *table;
	Oid			dbid;
	Oid			relid;
	Size		definition;		/* offset in the segment */
	Size		definition_len;
	bool		shared;			/* several files */
	MotManifestTable *source;	/* for the leader */
	pg_atomic_uint32 files_left;
	pg_atomic_uint32 broken;
	char		why[160];		/* by whoever set broken first */
} LoadTable;

typedef struct LoadItem
{
	uint32		table;
	MotManifestFile file;
} LoadItem;

typedef struct LoadShared
{
	MotHelpersShared base;
	char		directory[MAXPGPATH];
	pg_atomic_uint64 rows;
	pg_atomic_uint64 bytes;
	pg_atomic_uint64 tables;
	pg_atomic_uint32 full;		/* there was no memory for some table */
	uint64		rows_total;
	pid_t		leader_pid;
	uint32		ntables;
	Size		tables_at;		/* offsets */
	Size		items_at;
} LoadShared;

#define SHARED_TABLE(shared, i) ((LoadTable *) ((char *) (shared) + (shared)->tables_at) + (i))
#define SHARED_ITEM(shared, i) ((LoadItem *) ((char *) (shared) + (shared)->items_at) + (i))

/* a process's idea of the table it is loading */
typedef struct Loader
{
	uint32		number;
	MotRowFileReader *reader;	/* NULL: no file is open */
	MotDefinition *def;
	mot_index_handle *handles;
	int			max_attnum;
	Datum	   *values;
	bool	   *isnull;
	MotKeyBuffer key;
	MemoryContext cxt;			/* of all that */
	MemoryContext row_cxt;
} Loader;

/* what was loaded, in the process that leads */
static char loaded_directory[MAXPGPATH];

/* progress, there, too */
static TimestampTz load_began;
static TimestampTz next_report;

static void load_checkpoint(MotManifest *m, const char *directory);
static LoadShared *plan_load(MotManifest *m, const char *directory, dsm_segment **segment);
static int	smaller_first(const void *a, const void *b);
static void load_item(LoadShared *shared, LoadItem *item, Loader *loader);
static void raise_status(LoadShared *shared, mot_status status) pg_attribute_noreturn();
static void load_rows(LoadShared *shared, LoadItem *item, Loader *loader);
static void prepare_loader(Loader *loader, LoadShared *shared, uint32 number);
static void load_index(Loader *loader, LoadShared *shared, int i, mot_row *row, unsigned flags,
					   mot_session *session);
static void table_loaded(LoadShared *shared, LoadTable *table);
static void report_progress(LoadShared *shared);
static void ignore_broken(LoadShared *shared);
static void leave_out(LoadShared *shared);
static void read_log(MotManifest *m, XLogRecPtr upto, TimeLineID tli);
static void replay_one(void *arg, XLogReaderState *record);
static void note_damaged(void *arg, mot_table *table);
static void log_too_short(XLogRecPtr end, XLogRecPtr lsn, const char *directory);
static void set_recovery(const MotManifest *m);
static void load_newest(MotManifest *m, const char *directory, XLogRecPtr upto, TimeLineID tli);

void
MotLoad(XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT load",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	MotManifest *m;
	char	   *directory = NULL;

	if (!MotStateClaimLoad())
	{
		if (MotWalCurrentState() == MOT_WAL_REFUSED)
			MotStateRaiseRefusal();
		MemoryContextSwitchTo(oldcxt);
		MemoryContextDelete(cxt);
		return;
	}

	load_began = GetCurrentTimestamp();
	MotSpillBegin();
	MotLeftOutStart();
	MOT_FAULT("load-begin");
	m = MotManifestNewest(MotRecovers() ? recoveryTargetTLI : tli, &directory);
	set_recovery(m);
	if (m != NULL)
		load_newest(m, directory, upto, tli);
	if (!AmStartupProcess() && !RecoveryInProgress())
		MotReplayEnd();
	MOT_FAULT("load-end");
	MotStateLoadDone(MOT_WAL_READY);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
}

static void
load_newest(MotManifest *m, const char *directory, XLogRecPtr upto, TimeLineID tli)
{
	mot_session *session = MotSession();
	LWLock	   *lock;
	MotRecoveryStat *stat = MotRecoveryShared(&lock);
	bool		log_follows;
	long		secs;
	int			usecs;
	uint64		rows;

	/*
	 * A final checkpoint, and nobody has written since: no log belongs to it.
	 * The server may even have run without us in between.
	 */
	log_follows = !m->final || MotOpenMarkerExists();
	MotStateSetComplete(!log_follows);
	MotStateInSteps(!log_follows && !MotRecovers());

	ereport(LOG,
			(errmsg("loading memory-optimized tables from checkpoint \"%s\"", directory)));
	(void) mot_snapshot_take(session);
	load_checkpoint(m, directory);
	if (m->nindoubt > 0)
	{
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		for (int i = 0; i < m->nindoubt; i++)
			MotInDoubtAdd(m->indoubt[i].xid, m->indoubt[i].lsn, m->indoubt[i].ops, m->indoubt[i].len);
		LWLockRelease(MotApplyLock);
	}
	mot_snapshot_hold(session, MOT_TS_NONE);

	strlcpy(loaded_directory, directory, MAXPGPATH);
	MOT_FAULT("load-log");
	MotTrailBegin(m->lsn);
	if (log_follows && upto > m->lsn)
		read_log(m, upto, tli);
	MotTrailLoaded();
	if (!AmStartupProcess() && !RecoveryInProgress())
		MotLoadCheckEnd(upto);

	if (!log_follows && !MotRecovers() && MotStatePreserved() == InvalidXLogRecPtr)
		MotCheckpointRemember(m, directory);

	TimestampDifference(load_began, GetCurrentTimestamp(), &secs, &usecs);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	stat->load_seconds = secs + usecs / 1000000.0;
	rows = stat->rows_loaded;
	LWLockRelease(lock);
	ereport(LOG,
			(errmsg("loaded memory-optimized tables: %d tables, %llu rows, %ld.%03d s", m->ntables,
					(unsigned long long) rows, secs, usecs / 1000)));
}

static void
set_recovery(const MotManifest *m)
{
	LWLock	   *lock;
	MotRecoveryStat *stat = MotRecoveryShared(&lock);
	MotCheckpointStat *checkpoint = MotCheckpointShared(&lock);

	LWLockAcquire(lock, LW_EXCLUSIVE);
	memset(stat, 0, sizeof(*stat));
	if (m != NULL)
	{
		stat->checkpoint_lsn = m->lsn;
		stat->tables_total = m->ntables;
		checkpoint->checkpoint_lsn = m->lsn;
		checkpoint->redo_lsn = m->redo;
		checkpoint->rows = m->rows;
		checkpoint->bytes = m->bytes;
		checkpoint->finished_at = m->time;
	}
	LWLockRelease(lock);
}

/* -------------------------------------------------------------- the leader */

static void
load_checkpoint(MotManifest *m, const char *directory)
{
	dsm_segment *segment;
	LoadShared *shared = plan_load(m, directory, &segment);
	MotHelpers *helpers;

	helpers = MotHelpersBegin(&shared->base, segment, mot_load_workers);
	if (AmStartupProcess())
		begin_startup_progress_phase();
	next_report = log_startup_progress_interval > 0 ?
		TimestampTzPlusMilliseconds(load_began, log_startup_progress_interval) : DT_NOEND;

	PG_TRY();
	{
		/* those without rows */
		for (uint32 i = 0; i < shared->ntables; i++)
			if (pg_atomic_read_u32(&SHARED_TABLE(shared, i)->files_left) == 0)
				table_loaded(shared, SHARED_TABLE(shared, i));
		MotLoadItems(&shared->base);
		while (!MotHelpersDone(helpers) && MotHelpersRunning(helpers) > 0)
		{
			pg_usleep(5000);
			if (!PostmasterIsAlive())
				proc_exit(1);
			CHECK_FOR_INTERRUPTS();
			report_progress(shared);
		}
		MotHelpersEnd(helpers);
		ignore_broken(shared);
		leave_out(shared);
	}
	PG_CATCH();
	{
		MotHelpersAbandon(helpers);
		PG_RE_THROW();
	}
	PG_END_TRY();

	report_progress(shared);
	dsm_detach(segment);
}

static int
smaller_first(const void *a, const void *b)
{
	const MotManifestTable *x = *(MotManifestTable *const *) a;
	const MotManifestTable *y = *(MotManifestTable *const *) b;

	if (x->rows != y->rows)
		return x->rows < y->rows ? -1 : 1;
	return 0;
}

/*
 * What is to be done, and the tables, empty.  Small tables come first: they are
 * back at once, and the files of large ones are what can be shared out at
 * the end.
 */
static LoadShared *
plan_load(MotManifest *m, const char *directory, dsm_segment **segment)
{
	mot_session *session = MotSession();
	MotManifestTable **order = palloc(Max(m->ntables, 1) * sizeof(MotManifestTable *));
	LoadShared *shared;
	Size		size = MAXALIGN(sizeof(LoadShared));
	Size		definitions;
	uint32		nitems = 0;

	for (int i = 0; i < m->ntables; i++)
	{
		order[i] = &m->tables[i];
		size += MAXALIGN(m->tables[i].definition_len);
		nitems += m->tables[i].nfiles;
	}
	qsort(order, m->ntables, sizeof(MotManifestTable *), smaller_first);
	definitions = MAXALIGN(sizeof(LoadShared));

	*segment = dsm_create(size + MAXALIGN(m->ntables * sizeof(LoadTable)) +
						  MAXALIGN(nitems * sizeof(LoadItem)), 0);
	shared = dsm_segment_address(*segment);
	memset(shared, 0, sizeof(LoadShared));
	shared->base.job = MOT_JOB_LOAD;
	shared->base.nitems = nitems;
	strlcpy(shared->directory, directory, MAXPGPATH);
	pg_atomic_init_u64(&shared->rows, 0);
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u64(&shared->tables, 0);
	pg_atomic_init_u32(&shared->full, 0);
	shared->leader_pid = MyProcPid;
	shared->rows_total = m->rows;
	shared->ntables = m->ntables;
	shared->tables_at = size;
	shared->items_at = size + MAXALIGN(m->ntables * sizeof(LoadTable));

	nitems = 0;
	for (int i = 0; i < m->ntables; i++)
	{
		MotManifestTable *from = order[i];
		LoadTable  *to = SHARED_TABLE(shared, i);
		MotDefinition *def;
		mot_status	status;

		memset(to, 0, sizeof(LoadTable));
		to->dbid = from->dbid;
		to->relid = from->relid;
		to->definition = definitions;
		to->definition_len = from->definition_len;
		memcpy((char *) shared + definitions, from->definition, from->definition_len);
		definitions += MAXALIGN(from->definition_len);
		to->shared = from->nfiles > 1;
		to->source = from;
		pg_atomic_init_u32(&to->files_left, from->nfiles);
		pg_atomic_init_u32(&to->broken, 0);

		/* left out by who wrote this */
		if (from->nfiles > 0 && from->files[from->nfiles - 1].part == MOT_REDO_PART)
		{
			pg_atomic_write_u32(&to->broken, NO_ROOM);
			pg_atomic_write_u32(&to->files_left, PG_UINT32_MAX);
			continue;
		}

		def = MotDefinitionDecode(from->definition, from->definition_len, CurrentMemoryContext);
		mot_session_use_reserve(session, true);
		status = MotDefinitionMakeTable(session, def, from->definition, from->definition_len, &to->table);
		mot_session_use_reserve(session, false);
		MotDefinitionFree(def);
		if (status == MOT_NO_MEMORY)
		{
			to->table = NULL;
			pg_atomic_write_u32(&to->broken, NO_ROOM);
			pg_atomic_write_u32(&to->files_left, PG_UINT32_MAX);
			continue;
		}
		if (status != MOT_OK)
			MotRaiseStatus(status, NULL);

		for (int j = 0; j < from->nfiles; j++)
		{
			LoadItem   *item = SHARED_ITEM(shared, nitems++);

			item->table = i;
			item->file = from->files[j];
		}
	}
	/* without those of tables that are left out */
	shared->base.nitems = nitems;
	return shared;
}

/* Tables there was no room for; perhaps there is now, for one or the other. */
static void
leave_out(LoadShared *shared)
{
	mot_session *session = MotSession();

	for (uint32 i = 0; i < shared->ntables; i++)
	{
		LoadTable  *table = SHARED_TABLE(shared, i);
		uint64		needed = 0;

		if (pg_atomic_read_u32(&table->broken) != NO_ROOM)
			continue;
		for (int j = 0; j < table->source->nfiles; j++)
			needed += table->source->files[j].bytes;
		if (table->table != NULL)
		{
			mot_table_stat stat;

			mot_table_stats(table->table, &stat);
			needed = Max(needed, stat.row_bytes + stat.index_bytes);
			mot_table_drop(session, table->table);
		}
		MotLeftOutLoad(shared->directory, table->source, needed);
	}
	if (MotLeftOutCount() > 0)
	{
		/* what has been loaded in vain is kept for nobody */
		mot_snapshot_hold(session, MOT_TS_NONE);
		(void) mot_reclaim_all(session);
		(void) MotLeftOutBringBack(true);
		MotLeftOutReport();
	}
}

/* Tables that were damaged; only with mot.ignore_damaged. */
static void
ignore_broken(LoadShared *shared)
{
	mot_session *session = MotSession();

	for (uint32 i = 0; i < shared->ntables; i++)
	{
		LoadTable  *table = SHARED_TABLE(shared, i);
		LWLock	   *lock;
		MotRecoveryStat *stat = MotRecoveryShared(&lock);

		if (pg_atomic_read_u32(&table->broken) != DAMAGED)
			continue;
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("memory-optimized table with OID %u of database with OID %u is damaged and not available",
						table->relid, table->dbid),
				 errdetail("%s.", table->why)));
		MotStateDamage(table->dbid, table->relid, table->why);
		mot_table_drop(session, table->table);
		LWLockAcquire(lock, LW_SHARED);
		MotStatePreserve(stat->checkpoint_lsn);
		LWLockRelease(lock);
	}
}

static void
report_progress(LoadShared *shared)
{
	unsigned long long rows = pg_atomic_read_u64(&shared->rows);
	unsigned long long total = shared->rows_total;
	LWLock	   *lock;
	MotRecoveryStat *stat = MotRecoveryShared(&lock);

	LWLockAcquire(lock, LW_EXCLUSIVE);
	stat->rows_loaded = rows;
	stat->bytes_loaded = pg_atomic_read_u64(&shared->bytes);
	stat->tables_loaded = pg_atomic_read_u64(&shared->tables);
	LWLockRelease(lock);

	if (AmStartupProcess())
	{
		ereport_startup_progress("loading memory-optimized tables, elapsed time: %ld.%02d s, %llu of %llu rows",
								 rows, total);
	}
	else if (GetCurrentTimestamp() >= next_report)
	{
		long		secs;
		int			usecs;

		TimestampDifference(load_began, GetCurrentTimestamp(), &secs, &usecs);
		ereport(LOG,
				(errmsg("loading memory-optimized tables, elapsed time: %ld.%02d s, %llu of %llu rows",
						secs, usecs / 10000, rows, total)));
		next_report = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), log_startup_progress_interval);
	}
}

/* ------------------------------------------------------ everybody at work */

void
MotLoadItems(MotHelpersShared *base)
{
	LoadShared *shared = (LoadShared *) base;
	Loader		loader = {.number = PG_UINT32_MAX};
	int			i;

	/* what another server, or we before, had in all of the memory */
	mot_session_use_reserve(MotSession(), true);
	while ((i = MotHelpersNext(base)) >= 0)
	{
		load_item(shared, SHARED_ITEM(shared, i), &loader);
		if (!MotHelpersStop(base))
			MotHelpersItemDone(base);
	}
	mot_session_use_reserve(MotSession(), false);
	if (loader.cxt != NULL)
		MemoryContextDelete(loader.cxt);
}

static void
load_item(LoadShared *shared, LoadItem *item, Loader *loader)
{
	LoadTable  *table = SHARED_TABLE(shared, item->table);
	MemoryContext oldcxt = CurrentMemoryContext;

	PG_TRY();
	{
		MOT_FAULT("load-file");
		if (loader->number != item->table)
			prepare_loader(loader, shared, item->table);
		if (pg_atomic_read_u32(&table->broken) == 0)
			load_rows(shared, item, loader);
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		uint32		expected = 0;

		MemoryContextSwitchTo(oldcxt);
		edata = CopyErrorData();
		if (loader->reader != NULL)
			MotRowFileReaderClose(loader->reader);
		loader->reader = NULL;
		if (edata->sqlerrcode == ERRCODE_OUT_OF_MEMORY && pg_atomic_read_u32(&shared->full) != 0)
			(void) pg_atomic_compare_exchange_u32(&table->broken, &expected, NO_ROOM);
		else if (!mot_ignore_damaged || edata->sqlerrcode == ERRCODE_OUT_OF_MEMORY)
		{
			/* the leader raises it, with a hint that fits */
			if (edata->hint == NULL)
				edata->hint = MOT_DAMAGE_HINT;
			FlushErrorState();
			MotHelpersFail(&shared->base, edata);
			return;
		}
		else if (pg_atomic_compare_exchange_u32(&table->broken, &expected, DAMAGED))
			strlcpy(table->why, edata->message, sizeof(table->why));
		FlushErrorState();
		FreeErrorData(edata);
	}
	PG_END_TRY();

	if (!MotHelpersStop(&shared->base) &&
		pg_atomic_sub_fetch_u32(&table->files_left, 1) == 0 &&
		pg_atomic_read_u32(&table->broken) == 0)
		table_loaded(shared, table);
}

static void
table_loaded(LoadShared *shared, LoadTable *table)
{
	MOT_FAULT("load-table");
	mot_load_done(table->table);
	(void) mot_table_publish(MotEngine, table->table);
	pg_atomic_fetch_add_u64(&shared->tables, 1);
	MotStateTableLoaded();
}

static void
prepare_loader(Loader *loader, LoadShared *shared, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(shared, number);
	MemoryContext oldcxt;

	if (loader->cxt != NULL)
		MemoryContextDelete(loader->cxt);
	loader->number = PG_UINT32_MAX;
	loader->cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT loader", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(loader->cxt);
	loader->row_cxt = AllocSetContextCreate(loader->cxt, "MOT loader row", ALLOCSET_DEFAULT_SIZES);
	loader->def = MotDefinitionDecode((char *) shared + table->definition, table->definition_len,
									  loader->cxt);
	loader->values = palloc(Max(loader->def->desc->natts, 1) * sizeof(Datum));
	loader->isnull = palloc(Max(loader->def->desc->natts, 1) * sizeof(bool));
	loader->handles = palloc0(Max(loader->def->nindexes, 1) * sizeof(mot_index_handle));
	MotKeyBufferInit(&loader->key, loader->cxt);
	loader->max_attnum = 0;
	for (int i = 0; i < loader->def->nindexes; i++)
	{
		MotDefinitionIndex *index = &loader->def->indexes[i];

		/*
		 * No key check: rows have one version, so every entry stands for its
		 * row's key.
		 */
		loader->handles[i].index = mot_table_index(table->table, index->indexoid);
		if (loader->handles[i].index == NULL)
			elog(ERROR, "index %u of memory-optimized table %u was not made", index->indexoid, table->relid);
		loader->max_attnum = Max(loader->max_attnum, index->key->max_attnum);
	}
	loader->number = number;
	MemoryContextSwitchTo(oldcxt);
}

static void
load_rows(LoadShared *shared, LoadItem *item, Loader *loader)
{
	LoadTable  *table = SHARED_TABLE(shared, item->table);
	mot_session *session = MotSession();
	unsigned	shared_flag = table->shared ? MOT_LOAD_SHARED : 0;
	bool		leader = shared->leader_pid == MyProcPid;
	MotRowFileReader *reader = MotRowFileOpen(shared->directory, &item->file);
	MemoryContext oldcxt = MemoryContextSwitchTo(loader->row_cxt);
	unsigned	host_bits;
	const void *bytes;
	size_t		size;
	uint64		n = 0;
	uint64		nbytes = 0;

	loader->reader = reader;
	while (MotRowFileNext(reader, &host_bits, &bytes, &size))
	{
		mot_row    *row;
		void	   *data;
		mot_status	status;

		status = mot_load_row(session, table->table, host_bits, size, &row, &data);
		if (unlikely(status != MOT_OK))
			raise_status(shared, status);
		memcpy(data, bytes, size);

		if (loader->max_attnum > 0)
			MotRowDeformBytes(loader->def->desc, host_bits, data, loader->max_attnum,
							  loader->values, loader->isnull);
		for (int i = 0; i < loader->def->nindexes; i++)
			load_index(loader, shared, i, row, shared_flag, session);

		nbytes += size;
		if (++n % LOAD_BATCH == 0)
		{
			MemoryContextReset(loader->row_cxt);
			pg_atomic_fetch_add_u64(&shared->rows, LOAD_BATCH);
			if (leader)
			{
				CHECK_FOR_INTERRUPTS();
				report_progress(shared);
			}
			if (MotHelpersStop(&shared->base))
				break;
		}
	}
	pg_atomic_fetch_add_u64(&shared->rows, n % LOAD_BATCH);
	pg_atomic_fetch_add_u64(&shared->bytes, nbytes);
	MemoryContextReset(loader->row_cxt);
	MemoryContextSwitchTo(oldcxt);
	MotRowFileReaderClose(reader);
	loader->reader = NULL;
}

static void
load_index(Loader *loader, LoadShared *shared, int i, mot_row *row, unsigned flags,
		   mot_session *session)
{
	mot_row    *other;
	bool		has_null;
	mot_status	status;

	MotKeyBufferReset(&loader->key);
	MotDefinitionKey(loader->def, i, loader->values, loader->isnull, &loader->key, &has_null);
	status = mot_load_key(session, &loader->handles[i], row, loader->key.data, loader->key.len,
						  flags | (has_null ? MOT_KEY_DISTINCT : 0), &other);
	if (likely(status == MOT_OK))
		return;
	if (status == MOT_DUPLICATE)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("checkpoint \"%s\" has two rows of memory-optimized table \"%s\" with the same key of index with OID %u",
						shared->directory, loader->def->name, loader->def->indexes[i].indexoid)));
	raise_status(shared, status);
}

/* memory that is full is not private memory that is */
static void
raise_status(LoadShared *shared, mot_status status)
{
	if (status == MOT_NO_MEMORY)
		pg_atomic_write_u32(&shared->full, 1);
	MotRaiseStatus(status, NULL);
	pg_unreachable();
}

/* -------------------------------------------------------------------- log */

static void
replay_one(void *arg, XLogReaderState *record)
{
	MotReplayRecord(record);
}

static void
read_log(MotManifest *m, XLogRecPtr upto, TimeLineID tli)
{
	MemoryContext oldcxt = CurrentMemoryContext;

	PG_TRY();
	{
		/* in a backup of a standby: trail.c */
		if (!AmStartupProcess() || !ArchiveRecoveryRequested || MotLogIsHere(m->lsn, tli) ||
			!MotTrailRead(m->lsn, upto, replay_one, NULL))
			MotReadLog(m->lsn, upto, tli, replay_one, NULL);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (!mot_ignore_damaged)
			PG_RE_THROW();
		MemoryContextSwitchTo(oldcxt);
		edata = CopyErrorData();
		FlushErrorState();
		LWLockReleaseAll();
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("%s", edata->message),
				 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.")));
		MotStatePreserve(m->lsn);
		MotReplayForget();
		MotLoadGiveUp(edata->message);
	}
	PG_END_TRY();
}

/*
 * A checkpoint is written when the log up to its position is durable.  Should
 * the log end before, nevertheless, it is damaged, and what was loaded is
 * ahead of all other tables.  What is logged from now on would be taken for
 * older than the checkpoint, too.
 */
void
MotLoadCheckEnd(XLogRecPtr end)
{
	LWLock	   *lock;
	MotRecoveryStat *stat = MotRecoveryShared(&lock);
	MotCheckpointStat *checkpoint = MotCheckpointShared(&lock);
	XLogRecPtr	lsn = stat->checkpoint_lsn;

	if (lsn == InvalidXLogRecPtr || MotLogReaches(end, lsn))
		return;
	log_too_short(end, lsn, loaded_directory);

	MotDirectoryPutAside(loaded_directory, ERROR);
	MotStateSetComplete(false);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	stat->checkpoint_lsn = InvalidXLogRecPtr;
	memset(checkpoint, 0, sizeof(*checkpoint));
	LWLockRelease(lock);
}

static void
log_too_short(XLogRecPtr end, XLogRecPtr lsn, const char *directory)
{
	char	   *message = psprintf("log ends at %X/%X, before checkpoint \"%s\" of memory-optimized tables at %X/%X",
								   LSN_FORMAT_ARGS(end), directory, LSN_FORMAT_ARGS(lsn));

	ereport(mot_ignore_damaged ? WARNING : ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("%s", message),
			 mot_ignore_damaged ?
			 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.") :
			 errdetail("The log is damaged or incomplete where it ends."),
			 errhint("Restore the log from the archive, or the server from a backup; mot.ignore_damaged starts it without the tables.")));
	MotLoadGiveUp(message);
}

typedef struct AllTables
{
	int			n;
	int			max;
	mot_table **tables;
} AllTables;

static void
note_damaged(void *arg, mot_table *table)
{
	AllTables  *all = arg;

	if (all->n < all->max)
		all->tables[all->n] = table;
	all->n++;
}

/* The log has a gap: every table may lack changes. */
void
MotLoadGiveUp(const char *why)
{
	mot_session *session = MotSession();
	AllTables	all = {0};
	MotLeftOut *left;
	int			nleft;

	if (mot_txn_active(session))
		mot_txn_abort(session);
	mot_table_each(MotEngine, note_damaged, &all);
	all.max = all.n;
	all.n = 0;
	all.tables = palloc(Max(all.max, 1) * sizeof(mot_table *));
	mot_table_each(MotEngine, note_damaged, &all);
	for (int i = 0; i < Min(all.n, all.max); i++)
	{
		MotStateDamage(mot_table_host_db(all.tables[i]), mot_table_host_id(all.tables[i]), why);
		mot_table_drop(session, all.tables[i]);
	}
	nleft = MotLeftOutList(&left);
	for (int i = 0; i < nleft; i++)
	{
		MotStateDamage(left[i].dbid, left[i].relid, why);
		MotLeftOutForget(left[i].dbid, left[i].relid);
	}
}
