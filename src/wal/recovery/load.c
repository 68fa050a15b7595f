/*-------------------------------------------------------------------------
 *
 * load.c
 *	  The newest checkpoint back into memory.
 *
 * All tables are made first, out of their definitions.  Then this process and
 * its helpers take the row files one after the other, those of tables that
 * somebody waits for first; a table with several files is filled by several
 * processes at a time.  When the last file of a table is in, its indexes are
 * items to be taken, too (MotLoadIndex).  When they are built, this process
 * applies the table's part of the log, if there is any (advance.c).  Then the
 * table goes into the directory, and who waits for it goes on.
 *
 * Memory may be short: which tables are begun beside which, and what becomes of those
 * that have no room, is in loadroom.c.
 *
 * Damage is an error that names file and position.  With mot.ignore_damaged
 * the table is marked and left out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog_internal.h"
#include "machine/machine.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "postmaster/startup.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wal/recovery/load.h"
#include "xact/xact.h"

/* rows between two looks whether to stop */
#define LOAD_BATCH 512

/* instead of an item: there are no more, or none can be taken yet */
#define NO_ITEM (-1)
#define ITEM_LATER (-2)

/* what only the leader knows */
typedef struct Lead
{
	LoadShared *shared;
	MotSorted  *sorted;			/* NULL: log follows later, or none does */
	PlannedTable *planned;		/* by number */
	bool	   *finished;		/* by number */
	MotSortedPart *part;		/* of the one that is being finished */
	uint32		nfinished;		/* of those that wait for the leader */
	uint32		first;			/* tables before it are finished, or do not
								 * wait */
} Lead;

/* a process's idea of the table it is loading */
typedef struct Loader
{
	uint32		number;
	MotDefinition *def;
	MotRowFileReader *reader;	/* NULL: no file is open */
	MemoryContext cxt;			/* of def */
} Loader;

/* progress, in the process that leads */
static TimestampTz load_began;
static TimestampTz next_report;

static LoadShared *plan_load(Lead *lead, MotManifest *m, const char *directory, dsm_segment **segment);
static void lead_load(Lead *lead);
static int	next_to_finish(Lead *lead);
static bool to_finish(Lead *lead, uint32 number);
static void finish_table(Lead *lead, uint32 number);
static void read_part(void *arg, MotAdvanceVisit visit, void *advance);
static bool look(void *arg);
static int	take_item(LoadShared *shared);
static int	take_of(LoadShared *shared, uint32 number);
static void note_asked(LoadShared *shared);
static void load_item(LoadShared *shared, int i, Loader *loader);
static void load_rows(LoadShared *shared, LoadItem *item, Loader *loader);
static void prepare_loader(Loader *loader, LoadShared *shared, uint32 number);
static void load_index(LoadShared *shared, LoadItem *item, Loader *loader);
static bool look_at_work(void *arg);
static void rows_loaded(LoadShared *shared, LoadTable *table);
static void table_loaded(LoadShared *shared, LoadTable *table);
static void report_progress(LoadShared *shared);
static void ignore_broken(LoadShared *shared);
static void raise_status(LoadShared *shared, mot_status status) pg_attribute_noreturn();

/* -------------------------------------------------------------- the leader */

void
MotLoadCheckpoint(MotManifest *m, const char *directory, MotSorted *sorted)
{
	Lead		lead = {.sorted = sorted};
	dsm_segment *segment;
	LoadShared *shared;

	load_began = GetCurrentTimestamp();
	shared = lead.shared = plan_load(&lead, m, directory, &segment);

	/* the worker goes from one transaction to the next (checkpoint.c) */
	dsm_pin_mapping(segment);
	MotHelpersBegin(&shared->base, segment, MotHelpersToLoad());
	MotMachinePlace(0);
	if (AmStartupProcess())
		begin_startup_progress_phase();
	next_report = log_startup_progress_interval > 0 ?
		TimestampTzPlusMilliseconds(load_began, log_startup_progress_interval) : DT_NOEND;

	PG_TRY();
	{
		/* those without rows */
		for (uint32 i = 0; i < shared->ntables; i++)
			if (SHARED_TABLE(shared, i)->nitems == 0 &&
				(pg_atomic_read_u32(&SHARED_TABLE(shared, i)->broken) == 0 || SHARED_TABLE(shared, i)->log_follows))
				rows_loaded(shared, SHARED_TABLE(shared, i));
		lead_load(&lead);
		MotHelpersEnd(&shared->base);
		ignore_broken(shared);
		MotLoadLeaveOut(shared, lead.sorted, lead.planned);
	}
	PG_CATCH();
	{
		MotMachineLeave();
		MotHelpersAbandon(&shared->base);
		dsm_detach(segment);
		PG_RE_THROW();
	}
	PG_END_TRY();

	MotMachineLeave();
	report_progress(shared);
	dsm_detach(segment);
}

static int
smaller_first(const void *a, const void *b)
{
	const PlannedTable *x = a;
	const PlannedTable *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	if (x->dbid != y->dbid)
		return x->dbid < y->dbid ? -1 : 1;
	return x->relid < y->relid ? -1 : x->relid > y->relid;
}

/* The tables there are, or will be, in the order in which they are loaded. */
static void
plan_tables(Lead *lead, MotManifest *m, uint32 *ntables)
{
	MotSortedPart **parts = NULL;
	int			nparts = 0;
	uint32		n = 0;

	if (lead->sorted != NULL)
		parts = MotSortedParts(lead->sorted, &nparts);
	lead->planned = palloc0((m->ntables + nparts + 1) * sizeof(PlannedTable));
	for (int i = 0; i < m->ntables; i++)
	{
		MotManifestTable *from = &m->tables[i];
		PlannedTable *p = &lead->planned[n++];

		p->dbid = from->dbid;
		p->relid = from->relid;
		p->from = from;
		if (nparts > 0)
			p->part = MotSortedFind(lead->sorted, from->dbid, from->relid);
		if (p->part != NULL)
		{
			p->part->planned = true;
			p->weight = p->part->bytes;
			if (p->part->anew)
				p->from = NULL;
		}
		if (p->from != NULL)
			for (int j = 0; j < from->nfiles; j++)
				p->weight += from->files[j].bytes;
	}
	for (int i = 0; i < nparts; i++)
	{
		PlannedTable *p;

		if (parts[i]->planned)
			continue;
		p = &lead->planned[n++];
		p->dbid = parts[i]->dbid;
		p->relid = parts[i]->relid;
		p->part = parts[i];
		p->weight = parts[i]->bytes;
	}
	qsort(lead->planned, n, sizeof(PlannedTable), smaller_first);
	lead->finished = palloc0(Max(n, 1) * sizeof(bool));
	*ntables = n;
}

/*
 * What is to be done, and the tables, empty.  Small tables come first: they are
 * back at once, and the files of large ones are what can be shared out at
 * the end.
 */
static LoadShared *
plan_load(Lead *lead, MotManifest *m, const char *directory, dsm_segment **segment)
{
	mot_session *session = MotSession();
	LoadShared *shared;
	Size		size = MAXALIGN(sizeof(LoadShared));
	Size		definitions = size;
	uint32		ntables;
	uint32		nitems = 0;

	plan_tables(lead, m, &ntables);
	for (uint32 i = 0; i < ntables; i++)
	{
		PlannedTable *planned = &lead->planned[i];

		if (planned->from == NULL)
			continue;
		planned->def = MotDefinitionDecode(planned->from->definition, planned->from->definition_len,
										   CurrentMemoryContext);
		size += MAXALIGN(planned->from->definition_len);
		if (planned->from->nfiles > 0)
			nitems += planned->from->nfiles + planned->def->nindexes;
	}

	*segment = dsm_create(size + MAXALIGN(ntables * sizeof(LoadTable)) +
						  MAXALIGN(nitems * sizeof(LoadItem)) + MAXALIGN(ntables * sizeof(uint32)), 0);
	shared = dsm_segment_address(*segment);
	memset(shared, 0, sizeof(LoadShared));
	shared->base.job = MOT_JOB_LOAD;
	shared->base.nitems = nitems;
	strlcpy(shared->directory, directory, MAXPGPATH);
	shared->leader_pid = MyProcPid;
	shared->rows_total = m->rows;
	shared->ntables = ntables;
	shared->tables_at = size;
	shared->items_at = size + MAXALIGN(ntables * sizeof(LoadTable));
	shared->asked_at = shared->items_at + MAXALIGN(nitems * sizeof(LoadItem));

	nitems = 0;
	for (uint32 i = 0; i < ntables; i++)
	{
		PlannedTable *planned = &lead->planned[i];
		MotManifestTable *from = planned->from;
		LoadTable  *to = SHARED_TABLE(shared, i);
		mot_status	status;

		memset(to, 0, sizeof(LoadTable));
		to->dbid = planned->dbid;
		to->relid = planned->relid;
		to->log_follows = planned->part != NULL;
		to->first_item = nitems;
		to->nfiles = from != NULL ? from->nfiles : 0;
		to->nitems = to->nfiles > 0 ? to->nfiles + planned->def->nindexes : 0;
		pg_atomic_init_u32(&to->files_left, to->nfiles);
		pg_atomic_init_u32(&to->items_left, to->nitems);
		MotLoadEstimate(planned, to);
		if (from == NULL)
			continue;

		to->definition = definitions;
		to->definition_len = from->definition_len;
		memcpy((char *) shared + definitions, from->definition, from->definition_len);
		definitions += MAXALIGN(from->definition_len);

		/* left out by who wrote this */
		if (from->nfiles > 0 && from->files[from->nfiles - 1].part == MOT_REDO_PART)
		{
			to->kept = to->log_follows = true;
			to->nitems = 0;
			MotDefinitionFree(planned->def);
			continue;
		}

		mot_session_use_reserve(session, true);
		status = MotDefinitionMakeTable(session, planned->def, from->definition, from->definition_len,
										&to->table);
		mot_session_use_reserve(session, false);
		MotDefinitionFree(planned->def);
		if (status == MOT_NO_MEMORY)
		{
			to->table = NULL;
			pg_atomic_write_u32(&to->broken, NO_ROOM);
			to->nitems = 0;
			continue;
		}
		if (status != MOT_OK)
			MotRaiseStatus(status, NULL);

		for (uint32 j = 0; j < to->nitems; j++)
		{
			LoadItem   *item = SHARED_ITEM(shared, nitems++);

			item->table = i;
			item->index = (int) j - (int) to->nfiles;
			if (j < to->nfiles)
			{
				item->index = -1;
				item->file = from->files[j];
			}
		}
	}
	/* without those of tables that are left out */
	shared->base.nitems = nitems;
	return shared;
}

/*
 * The leader works as the helpers do, and in between finishes tables that wait
 * for that.
 */
static void
lead_load(Lead *lead)
{
	LoadShared *shared = lead->shared;
	Loader		loader = {.number = PG_UINT32_MAX};

	/* what another server, or we before, had in all of the memory */
	mot_session_use_reserve(MotSession(), true);
	while (!MotHelpersStop(&shared->base))
	{
		int			i;

		look(lead);
		MotCheckpointGiveWay();
		if ((i = next_to_finish(lead)) >= 0)
			finish_table(lead, i);
		else if ((i = take_item(shared)) >= 0)
			load_item(shared, i, &loader);
		else if (MotHelpersDone(&shared->base) && pg_atomic_read_u32(&shared->waiting) == lead->nfinished)
			break;
		else if (!MotHelpersDone(&shared->base) && pg_atomic_read_u32(&shared->base.running) == 0)
			break;				/* somebody has gone: MotHelpersEnd says so */
		else
			pg_usleep(1000);
	}
	mot_session_use_reserve(MotSession(), false);
	if (loader.cxt != NULL)
		MemoryContextDelete(loader.cxt);
}

/*
 * A table that has all its rows, and log that is still to be applied: one that is waited for, else
 * the smallest; -1: none.
 */
static int
next_to_finish(Lead *lead)
{
	LoadShared *shared = lead->shared;
	uint32		nasked;

	if (pg_atomic_read_u32(&shared->waiting) == lead->nfinished)
		return -1;
	note_asked(shared);
	nasked = pg_atomic_read_u32(&shared->nasked);
	/* what the count covers was written before it */
	pg_read_barrier();
	for (uint32 i = 0; i < nasked; i++)
	{
		uint32		number = SHARED_ASKED(shared)[i];

		if (to_finish(lead, number) && MotLoadBeginAsked(shared, number))
			return number;
	}
	MotLoadBegin(shared);
	while (lead->first < shared->ntables &&
		   (lead->finished[lead->first] || !SHARED_TABLE(shared, lead->first)->log_follows))
		lead->first++;
	for (uint32 number = lead->first; number < shared->ntables; number++)
		if (to_finish(lead, number) && pg_atomic_read_u32(&SHARED_TABLE(shared, number)->begun))
			return number;
	return -1;
}

static bool
to_finish(Lead *lead, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(lead->shared, number);

	return !lead->finished[number] && table->log_follows &&
		(table->nitems == 0 || pg_atomic_read_u32(&table->items_left) == 0);
}

static void
finish_table(Lead *lead, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(lead->shared, number);
	uint32		broken = pg_atomic_read_u32(&table->broken);
	bool		clash = false;

	/* acquire: all of its rows, whoever loaded them */
	pg_read_barrier();
	lead->finished[number] = true;
	lead->nfinished++;
	lead->part = lead->planned[number].part;
	MOT_FAULT("load-advance");
	if (table->kept)
	{
		if (MotLoadKept(lead->shared, number, lead->sorted, &lead->planned[number]))
			pg_atomic_fetch_add_u64(&lead->shared->tables, 1);
	}
	else if ((broken == 0 || broken == WHOLE) &&
			 MotAdvance(table->dbid, table->relid, &table->table, read_part, look, lead, &clash))
	{
		MOT_FAULT("load-advanced");
		table_loaded(lead->shared, table);
	}
	else if (broken != DAMAGED && broken != CLASH)
		pg_atomic_write_u32(&table->broken, clash ? CLASH : NO_ROOM);
	MotLoadEnd(lead->shared, number);
	/* (both have given it up) */
	mot_session_use_reserve(MotSession(), true);
}

static void
read_part(void *arg, MotAdvanceVisit visit, void *advance)
{
	Lead	   *lead = arg;

	MotSortedRead(lead->sorted, lead->part, visit, advance);
}

/* Every now and then: is there something else to be done? */
static bool
look(void *arg)
{
	Lead	   *lead = arg;

	if (AmStartupProcess())
		ProcessStartupProcInterrupts();
	else
		CHECK_FOR_INTERRUPTS();
	MotCheckpointLook();
	report_progress(lead->shared);
	return false;
}

/* Tables that were damaged; only with mot.ignore_damaged. */
static void
ignore_broken(LoadShared *shared)
{
	mot_session *session = MotSession();

	for (uint32 i = 0; i < shared->ntables; i++)
	{
		LoadTable  *table = SHARED_TABLE(shared, i);
		MotRecoveryStat *stat = MotRecoveryShared();

		if (pg_atomic_read_u32(&table->broken) != DAMAGED)
			continue;
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("memory-optimized table with OID %u of database with OID %u is damaged and not available",
						table->relid, table->dbid),
				 errdetail("%s.", table->why)));
		MotStateDamage(table->dbid, table->relid, table->why);
		mot_table_drop(session, table->table);
		LWLockAcquire(MotStatLock, LW_SHARED);
		MotStatePreserve(stat->checkpoint_lsn);
		LWLockRelease(MotStatLock);
	}
}

static void
report_progress(LoadShared *shared)
{
	unsigned long long rows = pg_atomic_read_u64(&shared->rows);
	unsigned long long total = shared->rows_total;
	MotRecoveryStat *stat = MotRecoveryShared();

	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	stat->rows_loaded = rows;
	stat->bytes_loaded = pg_atomic_read_u64(&shared->bytes);
	stat->tables_loaded = pg_atomic_read_u64(&shared->tables);
	LWLockRelease(MotStatLock);

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

/*
 * Others are at the files of which a helper is to build the indexes.  False: it
 * need not wait, since nobody is there to be helped.
 */
static bool
helper_waits(LoadShared *shared)
{
	if (ShutdownRequestPending || kill(shared->leader_pid, 0) != 0)
		return false;
	pg_usleep(1000);
	return true;
}

void
MotLoadItems(MotHelpersShared *base)
{
	LoadShared *shared = (LoadShared *) base;
	Loader		loader = {.number = PG_UINT32_MAX};
	int			i;

	/* what another server, or we before, had in all of the memory */
	mot_session_use_reserve(MotSession(), true);
	while ((i = take_item(shared)) >= 0 || (i == ITEM_LATER && helper_waits(shared)))
		if (i >= 0)
			load_item(shared, i, &loader);
	mot_session_use_reserve(MotSession(), false);
	if (loader.cxt != NULL)
		MemoryContextDelete(loader.cxt);
}

/*
 * A row file that nobody has taken yet: of a table that is waited for, else of the smallest; -1:
 * there is none.
 */
static int
take_item(LoadShared *shared)
{
	uint32		nasked;
	uint32		begun;
	int			item;
	bool		later;

	if (MotHelpersStop(&shared->base))
		return NO_ITEM;
	note_asked(shared);
	nasked = pg_atomic_read_u32(&shared->nasked);
	/* what the count covers was written before it */
	pg_read_barrier();
	for (uint32 i = 0; i < nasked; i++)
		if (MotLoadBeginAsked(shared, SHARED_ASKED(shared)[i]) &&
			(item = take_of(shared, SHARED_ASKED(shared)[i])) >= 0)
			return item;

	MotLoadBegin(shared);
	begun = pg_atomic_read_u32(&shared->begin);
	later = begun < shared->ntables;
	for (uint32 number = pg_atomic_read_u32(&shared->first); number < begun; number++)
	{
		uint32		first = number;

		item = take_of(shared, number);
		if (item >= 0)
			return item;
		if (item == ITEM_LATER)
			later = true;
		else
			(void) pg_atomic_compare_exchange_u32(&shared->first, &first, number + 1);
	}
	return later ? ITEM_LATER : NO_ITEM;
}

static int
take_of(LoadShared *shared, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(shared, number);
	uint32		n = pg_atomic_read_u32(&table->taken);

	do
	{
		if (n >= table->nitems)
			return NO_ITEM;
		/* the indexes are of all rows */
		if (n >= table->nfiles && pg_atomic_read_u32(&table->files_left) > 0)
			return ITEM_LATER;
	} while (!pg_atomic_compare_exchange_u32(&table->taken, &n, n + 1));
	return (int) (table->first_item + n);
}

/* Tables that sessions wait for go to the end of the list, each once. */
static void
note_asked(LoadShared *shared)
{
	Oid			dbid;
	Oid			relid;

	while (MotStateTakeAsked(&dbid, &relid))
	{
		for (uint32 i = 0; i < shared->ntables; i++)
		{
			LoadTable  *table = SHARED_TABLE(shared, i);
			uint32		n;

			if (table->relid != relid || table->dbid != dbid)
				continue;
			if (pg_atomic_exchange_u32(&table->asked, 1) != 0)
				break;
			SpinLockAcquire(&shared->base.mutex);
			n = pg_atomic_read_u32(&shared->nasked);
			SHARED_ASKED(shared)[n] = i;
			/* before the count that covers it */
			pg_write_barrier();
			pg_atomic_write_u32(&shared->nasked, n + 1);
			SpinLockRelease(&shared->base.mutex);
			break;
		}
	}
}

static void
load_item(LoadShared *shared, int i, Loader *loader)
{
	LoadItem   *item = SHARED_ITEM(shared, i);
	LoadTable  *table = SHARED_TABLE(shared, item->table);
	MemoryContext oldcxt = CurrentMemoryContext;

	PG_TRY();
	{
		if (item->index < 0)
			MOT_FAULT("load-file");
		else
			MOT_FAULT("load-index");
		if (loader->number != item->table)
			prepare_loader(loader, shared, item->table);
		if (pg_atomic_read_u32(&table->broken) != 0)
			;					/* the others of its items need not be done */
		else if (item->index < 0)
			load_rows(shared, item, loader);
		else
			load_index(shared, item, loader);
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
		else if (item->index >= 0 && loader->number == item->table && edata->sqlerrcode == ERRCODE_PROGRAM_LIMIT_EXCEEDED &&
				 MotKeyGivesWay(loader->def->indexes[item->index].key, false))
			(void) pg_atomic_compare_exchange_u32(&table->broken, &expected, CLASH);
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

	if (MotHelpersStop(&shared->base))
		return;
	if (item->index < 0)
		(void) pg_atomic_sub_fetch_u32(&table->files_left, 1);
	if (pg_atomic_sub_fetch_u32(&table->items_left, 1) == 0)
	{
		uint32		expected = 0;
		bool		whole = pg_atomic_compare_exchange_u32(&table->broken, &expected, WHOLE);

		if (whole || table->log_follows)
			rows_loaded(shared, table);
		if (!table->log_follows)
			MotLoadEnd(shared, item->table);
	}
	MotHelpersItemDone(&shared->base);
}

/* That was its last file.  The leader sees to it, whole or not, if there is log. */
static void
rows_loaded(LoadShared *shared, LoadTable *table)
{
	if (table->log_follows)
		pg_atomic_fetch_add_u32(&shared->waiting, 1);
	else
		table_loaded(shared, table);
}

/* It is complete (or dropped). */
static void
table_loaded(LoadShared *shared, LoadTable *table)
{
	MOT_FAULT("load-table");
	ereport(DEBUG1,
			(errmsg_internal("memory-optimized table with OID %u of database with OID %u is complete",
							 table->relid, table->dbid)));
	if (table->table != NULL)
	{
		mot_load_done(table->table);
		(void) mot_table_publish(MotEngine, table->table);
	}
	pg_atomic_fetch_add_u64(&shared->tables, 1);
	MotStateTableLoaded();
}

static void
prepare_loader(Loader *loader, LoadShared *shared, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(shared, number);

	if (loader->cxt != NULL)
		MemoryContextDelete(loader->cxt);
	loader->number = PG_UINT32_MAX;
	loader->cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT loader", ALLOCSET_DEFAULT_SIZES);
	loader->def = MotDefinitionDecode((char *) shared + table->definition, table->definition_len,
									  loader->cxt);
	loader->number = number;
}

static void
load_rows(LoadShared *shared, LoadItem *item, Loader *loader)
{
	LoadTable  *table = SHARED_TABLE(shared, item->table);
	mot_session *session = MotSession();
	MotRowFileReader *reader = MotRowFileOpen(shared->directory, &item->file);
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

		nbytes += size;
		if (++n % LOAD_BATCH == 0)
		{
			pg_atomic_fetch_add_u64(&shared->rows, LOAD_BATCH);
			if (look_at_work(shared))
				break;
		}
	}
	pg_atomic_fetch_add_u64(&shared->rows, n % LOAD_BATCH);
	pg_atomic_fetch_add_u64(&shared->bytes, nbytes);
	MotRowFileReaderClose(reader);
	loader->reader = NULL;
}

static void
load_index(LoadShared *shared, LoadItem *item, Loader *loader)
{
	mot_table  *table = SHARED_TABLE(shared, item->table)->table;
	Oid			indexoid = loader->def->indexes[item->index].indexoid;
	mot_index  *index = mot_table_index(table, indexoid);
	mot_status	status;

	if (index == NULL)
		elog(ERROR, "index %u of memory-optimized table \"%s\" was not made", indexoid, loader->def->name);
	/* acquire: all of its rows, whoever loaded them */
	pg_read_barrier();
	status = MotLoadIndex(table, index, &loader->def->indexes[item->index], look_at_work, shared);
	if (status == MOT_DUPLICATE && MotKeyGivesWay(loader->def->indexes[item->index].key, true))
	{
		uint32		expected = 0;

		(void) pg_atomic_compare_exchange_u32(&SHARED_TABLE(shared, item->table)->broken, &expected, CLASH);
		return;
	}
	if (status == MOT_DUPLICATE)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("checkpoint \"%s\" has two rows of memory-optimized table \"%s\" with the same key of index with OID %u",
						shared->directory, loader->def->name, indexoid)));
	if (status != MOT_OK && status != MOT_NOT_FOUND)
		raise_status(shared, status);
}

/* true: stop */
static bool
look_at_work(void *arg)
{
	LoadShared *shared = arg;

	if (shared->leader_pid == MyProcPid)
	{
		CHECK_FOR_INTERRUPTS();
		MotCheckpointLook();
		report_progress(shared);
	}
	return MotHelpersStop(&shared->base);
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
