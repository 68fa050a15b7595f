/*-------------------------------------------------------------------------
 *
 * checkpoint_write.c
 *	  Writing a checkpoint.
 *
 * 1. The line: while the gate is closed (on a standby: while nothing is
 *	  applied), the position C, the snapshot S, the list of tables with their
 *	  definitions, and which mixed transactions are in doubt.
 * 2. The rows as S sees them, by helpers, beside the running load.  The leader's
 *	  session holds S; helpers only look through it.
 * 3. The records in doubt, out of the log; those of prepared transactions have been copied with
 *	  the line, since their log may have gone.
 * 4. The log up to C is made durable: what the checkpoint contains must not be
 *	  lost from the log behind which it stands.
 * 5. The manifest, and the directory gets its name.
 * 6. The log before C, and older checkpoints, may go.
 *
 * An unlogged table has no files: after a start it is empty.
 *
 * A table that nobody has changed since the last checkpoint of this process is
 * not written again: its files get a second name in the new directory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"
#include "xact/xact.h"

#define PART_BYTES	(64 * 1024 * 1024)	/* of rows in one file, more or less */
#define MAX_PARTS	100000
#define WRITE_BATCH 256			/* rows between two looks whether to stop, or
								 * to pause */
#define WRITE_BATCH_BYTES (256 * 1024)	/* the same */

/* no helper has come by then: the leader does the work */
#define HELPER_PATIENCE_MS 1000

/* a table as it is at C */
typedef struct Source
{
	mot_table  *table;
	Oid			dbid;
	Oid			relid;
	uint64		serial;
	uint64		changes;		/* committed so far: tells whether there were
								 * any since */
	uint64		row_bytes;
	const char *definition;
	size_t		definition_len;
	bool		reused;
	int			nfiles;
	MotManifestFile *files;		/* once written */
} Source;

typedef struct Sources
{
	int			n;
	int			max;
	Source	   *source;
	int			nleft;			/* tables left out */
	MotLeftOut *left;
} Sources;

/*
 * S: the number to read with; and, if some had drawn their timestamps without
 * having installed anything, what lies beyond it, up to "upto" but for these
 * (see mot_beyond).
 */
typedef struct Cut
{
	mot_ts		snapshot;
	mot_ts		upto;
	uint32		nwithout;
	mot_ts	   *without;
} Cut;

typedef struct WriteItem
{
	mot_table  *table;
	uint32		source;
	Oid			dbid;
	Oid			relid;
	Size		definition;		/* offset in the segment */
	Size		definition_len;
	uint32		part;
	uint64		first_page;
	uint64		end_page;
	bool		written;		/* there were rows */
	MotManifestFile file;
} WriteItem;

typedef struct WriteShared
{
	MotHelpersShared base;
	MotPace		pace;
	char		directory[MAXPGPATH];
	mot_ts		snapshot;
	mot_ts		upto;
	uint32		nwithout;
	Size		without_at;
	Size		items_at;
} WriteShared;

#define SHARED_ITEM(shared, i) ((WriteItem *) ((char *) (shared) + (shared)->items_at) + (i))

/* what this process wrote last; in a context of its own */
static MemoryContext last_cxt = NULL;
static Sources last = {0};
static char *last_directory = NULL;

/* the records in doubt */
typedef struct Doubt
{
	MotInDoubtRange range;
	MotManifestInDoubt *out;
	char	   *path;			/* where they are put together */
} Doubt;

typedef struct Doubts
{
	int			n;
	int			max;
	MotManifestInDoubt *out;
} Doubts;

static XLogRecPtr write_checkpoint(bool final, bool helpers);
static void draw_line(MotManifest *m, Sources *sources, Cut *cut, MotGateLine *line);
static void collect_doubts(MotManifest *m, uint32 n);
static void leave_out_damaged(MotManifestInDoubt *out);
static void draw_line_standby(MotManifest *m, Sources *sources, Cut *cut);
static void visit_table(void *arg, mot_table *table);
static void write_rows(MotManifest *m, Sources *sources, const Cut *cut, const char *directory,
					   bool helpers, bool hurry);
static bool reuse(Source *source, const char *directory);
static WriteShared *plan_write(Sources *sources, const Cut *cut, const char *directory,
							   dsm_segment **segment);
static bool write_item(WriteShared *shared, WriteItem *item, MotDefinition *def);
static void items_done(MotHelpersShared *base, int *n);
static void read_doubt(MotManifest *m, MotInDoubtRange *ranges, int nranges);
static void visit_doubt(void *arg, XLogReaderState *record);
static void copy_doubt(void *arg, TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len, bool mapped);
static void flush_log(XLogRecPtr lsn);
static void remember(const Sources *sources, const char *directory);
static void note_done(const MotManifest *m, TimestampTz began, int nfiles, int nreused);

XLogRecPtr
MotCheckpointWrite(bool final, bool helpers)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT checkpoint",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	volatile XLogRecPtr lsn = InvalidXLogRecPtr;

	MotStateBeginCheckpoint();
	PG_TRY();
	{
		lsn = write_checkpoint(final, helpers);
	}
	PG_FINALLY();
	{
		MotStateEndCheckpoint();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return lsn;
}

static XLogRecPtr
write_checkpoint(bool final, bool helpers)
{
	mot_session *session = MotSession();
	bool		standby = RecoveryInProgress();
	TimestampTz began = GetCurrentTimestamp();
	MotManifest m = {0};
	Sources		sources = {0};
	MotGateLine line = {0};
	Cut			cut = {0};
	int			nfiles = 0;
	int			nreused = 0;
	char	   *volatile directory = NULL;
	char	   *named;
	volatile XLogRecPtr lsn;

	MOT_FAULT("checkpoint-begin");
	m.system_identifier = GetSystemIdentifier();
	m.final = final;
	m.time = began;
	if (standby)
		draw_line_standby(&m, &sources, &cut);
	else
		draw_line(&m, &sources, &cut, &line);
	m.redo = GetRedoRecPtr();
	lsn = m.lsn;
	MOT_FAULT("checkpoint-line");

	PG_TRY();
	{
		named = MotCheckpointDirectory(m.tli, m.lsn, false);

		/* nothing was logged since the last one, so nothing has changed */
		if ((!final || standby) && access(named, F_OK) == 0)
			lsn = InvalidXLogRecPtr;
		else
		{
			directory = MotDirectoryBegin(m.tli, m.lsn);
			write_rows(&m, &sources, &cut, directory, helpers,
					   final || AmStartupProcess() || MotStateIs(MOT_IS_ASKED));
			if (line.nin_doubt > 0)
				read_doubt(&m, line.in_doubt, line.nin_doubt);
			flush_log(m.lsn);
			m.preserve = MotStatePreserved();
			MOT_FAULT("checkpoint-manifest");
			MotManifestWrite(directory, &m, true);
			MOT_FAULT("checkpoint-rename");
			MotDirectoryFinish(m.tli, m.lsn);
			MOT_FAULT("checkpoint-renamed");
			remember(&sources, named);
		}
	}
	PG_CATCH();
	{
		/*
		 * room on a full disk is given back at once; helpers are not at work
		 * any more
		 */
		mot_snapshot_hold(session, MOT_TS_NONE);
		if (directory != NULL && access(directory, F_OK) == 0)
			MotDirectoryRemove(directory);
		PG_RE_THROW();
	}
	PG_END_TRY();
	mot_snapshot_hold(session, MOT_TS_NONE);

	if (lsn == InvalidXLogRecPtr)
		lsn = m.lsn;
	else
	{
		for (int i = 0; i < sources.n; i++)
		{
			nfiles += sources.source[i].nfiles;
			if (sources.source[i].reused)
				nreused += sources.source[i].nfiles;
		}
		MotStateSet(MOT_IS_COMPLETE, final);
		note_done(&m, began, nfiles, nreused);
	}
	return lsn;
}

/* ---------------------------------------------------------------- the line */

static void
make_room(Sources *sources)
{
	sources->n = 0;
	sources->max = 0;
	mot_table_each(MotEngine, visit_table, sources);
	sources->max = sources->n + 256;
	sources->n = 0;
	sources->source = palloc0(sources->max * sizeof(Source));
}

/* nothing can be allocated, nor can much be done, while the directory is locked */
static void
visit_table(void *arg, mot_table *table)
{
	Sources    *sources = arg;
	mot_table  *replaces;

	/*
	 * what a transaction has made that is not committed stands for what was
	 * there
	 */
	while (table != NULL && !mot_table_is_settled(table, &replaces))
		table = replaces;

	/*
	 * one that redo did not fit (mot.ignore_damaged), of a prepared
	 * transaction, would be taken for whole by the next start; it is healed
	 * inside the gate
	 */
	if (table == NULL || MotStateIsDamaged(mot_table_host_db(table), mot_table_host_id(table)))
		return;
	if (sources->n < sources->max)
	{
		Source	   *s = &sources->source[sources->n];

		s->table = table;
		s->definition = mot_table_definition(table, &s->definition_len);
	}
	sources->n++;
}

static void
collect(Sources *sources)
{
	sources->n = 0;
	mot_table_each(MotEngine, visit_table, sources);
	sources->nleft = MotLeftOutList(&sources->left);
	for (int i = 0; i < Min(sources->n, sources->max); i++)
	{
		Source	   *s = &sources->source[i];
		mot_table_stat stat;

		s->dbid = mot_table_host_db(s->table);
		s->relid = mot_table_host_id(s->table);
		s->serial = mot_table_serial(s->table);
		mot_table_stats(s->table, &stat);
		s->changes = stat.inserts + stat.updates + stat.deletes;
		s->row_bytes = stat.row_bytes;
	}
}

static void
draw_line(MotManifest *m, Sources *sources, Cut *cut, MotGateLine *line)
{
	mot_session *session = MotSession();
	bool		locked;
	uint32		ndoubts = 0;

	do
	{
		make_room(sources);
		MotGateClose(line);
		m->lsn = line->lsn;
		cut->upto = cut->snapshot = mot_snapshot_take(session);
		cut->nwithout = line->ndrawn;
		cut->without = line->drawn;
		for (int i = 0; i < line->ndrawn; i++)
			cut->snapshot = Min(cut->snapshot, line->drawn[i] - 1);
		mot_snapshot_lower(session, cut->snapshot);
		collect(sources);

		/* (who has this lock may wait for the gate) */
		locked = LWLockConditionalAcquire(MotApplyLock, LW_EXCLUSIVE);
		if (locked)
			ndoubts = MotInDoubtMark();
		MOT_FAULT("checkpoint-gate");
		MotGateOpen();
		if (locked && sources->n > sources->max)
			LWLockRelease(MotApplyLock);
		else if (!locked)
		{
			MotReplayAwait();
			CHECK_FOR_INTERRUPTS();
		}
	} while (!locked || sources->n > sources->max);
	m->tli = GetWALInsertionTimeLine();

	/* who was marked stays as long as the lock is held */
	collect_doubts(m, ndoubts);
	LWLockRelease(MotApplyLock);
}

/* Those in the list that are marked. */
static void
collect_doubts(MotManifest *m, uint32 n)
{
	Doubts		doubts = {0};

	doubts.max = n;
	doubts.out = palloc0(Max(doubts.max, 1) * sizeof(MotManifestInDoubt));
	MotInDoubtEach(copy_doubt, &doubts);
	m->nindoubt = doubts.n;
	m->indoubt = doubts.out;
}

/*
 * What has been replayed counts as applied only together with our own
 * records: the lock keeps the one who applies them from going on.
 */
static void
draw_line_standby(MotManifest *m, Sources *sources, Cut *cut)
{
	mot_session *session = MotSession();
	XLogRecPtr	replayed;

	for (;;)
	{
		make_room(sources);
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		if (MotReplay->past_target && !AmStartupProcess())
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("recovery has passed over commits that are later than its target")));
		if (MotStateIs(MOT_IS_REFUSED))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("redo of memory-optimized tables has been refused")));
		if (MotReplay->streams == 0)
		{
			MotInDoubtSettle(false);
			collect(sources);
			if (sources->n <= sources->max)
				break;
		}
		LWLockRelease(MotApplyLock);
		MotNap(10, MOT_FOR_REPLAY);
		CHECK_FOR_INTERRUPTS();
	}
	cut->snapshot = mot_snapshot_take(session);
	replayed = GetXLogReplayRecPtr(&m->tli);

	/*
	 * the server's pointer moves when a record is done, ours when our part of
	 * it is
	 */
	m->lsn = Max(replayed, MotReplay->upto);
	collect_doubts(m, MotInDoubtMark());

	/*
	 * Who writes the log has these and changes them; so who starts from here
	 * is to know them, also without mot.ignore_damaged.
	 */
	m->ngiven_up = MotStateDamagedList(&m->given_up);
	LWLockRelease(MotApplyLock);
}

/*
 * Without what it does to tables that the checkpoint has not, since they are damaged: the next start
 * would take it for damage again, or could not hold what is prepared.  What makes one anew stays,
 * and what comes behind that.
 */
static void
leave_out_damaged(MotManifestInDoubt *out)
{
	const char *p = out->ops;
	const char *end = p + out->len;
	const char *raw = p;
	const char *table = NULL;	/* named, and nothing of it kept yet */
	size_t		table_len = 0;
	List	   *anew = NIL;
	bool		damaged = false;
	const char *error = NULL;
	char	   *kept;
	size_t		len = 0;
	MotOpData	op;
	MotTargetKey key = {0};

	if (MotStateDamages() == 0)
		return;
	kept = MemoryContextAllocHuge(CurrentMemoryContext, Max(out->len, 1));
	for (; MotRecordNext(&p, end, &op, &error); raw = p)
	{
		if (op.op == MOT_OP_TABLE)
		{
			table = raw;
			table_len = p - raw;
			key.dbid = op.dbid;
			key.relid = op.oid;
			damaged = MotStateIsDamaged(op.dbid, op.oid);
			foreach_ptr(MotTargetKey, one, anew)
				damaged &= one->dbid != key.dbid || one->relid != key.relid;
			continue;
		}
		if (damaged && (op.op == MOT_OP_CREATE || op.op == MOT_OP_DROP))
		{
			damaged = false;
			anew = lappend(anew, memcpy(palloc(sizeof(key)), &key, sizeof(key)));
		}
		if (damaged)
			continue;
		if (table_len > 0)
			memcpy(kept + len, table, table_len);
		len += table_len;
		table_len = 0;
		memcpy(kept + len, raw, p - raw);
		len += p - raw;
	}
	/* (what cannot be taken apart is for who reads it to say) */
	if (error != NULL)
		return;
	out->ops = kept;
	out->len = len;
}

static void
copy_doubt(void *arg, TransactionId xid, XLogRecPtr lsn, const char *ops, size_t len, bool mapped)
{
	Doubts	   *doubts = arg;
	MotManifestInDoubt *out;

	if (doubts->n >= doubts->max)
		elog(ERROR, "more transactions in doubt than were counted");
	out = &doubts->out[doubts->n++];
	out->xid = xid;
	out->lsn = lsn;
	out->len = len;
	if (mapped)
	{
		out->ops = unconstify(char *, ops);
		MotSpillUnmapLater(CurrentMemoryContext, ops, len);
	}
	else
		out->ops = memcpy(palloc(Max(len, 1)), ops, len);
	leave_out_damaged(out);
}

/* -------------------------------------------------------------------- rows */

static void
write_rows(MotManifest *m, Sources *sources, const Cut *cut, const char *directory, bool use_helpers,
		   bool hurry)
{
	dsm_segment *segment;
	WriteShared *shared;
	uint64		bytes = 0;
	TimestampTz asked = GetCurrentTimestamp();
	int			nhelpers = use_helpers ? MotHelpersToWrite() : 0;

	for (int i = 0; i < sources->n; i++)
	{
		if (sources->source[i].definition == NULL)
			elog(ERROR, "memory-optimized table with OID %u has no definition", sources->source[i].relid);
		sources->source[i].reused = reuse(&sources->source[i], directory);
	}

	shared = plan_write(sources, cut, directory, &segment);
	for (int i = 0; i < sources->n; i++)
		bytes += sources->source[i].reused ? 0 : sources->source[i].row_bytes;
	MotPaceBegin(&shared->pace, bytes, use_helpers ? Min(nhelpers, shared->base.nitems) : 1, hurry);
	shared->base.gently = !hurry;
	MotHelpersBegin(&shared->base, segment, nhelpers);
	PG_TRY();
	{
		/*
		 * Who closes the gate must not be of low priority, and a priority
		 * cannot be raised again: so the leader leaves the work to helpers
		 * that have lowered theirs, if they come.  If somebody waits, nobody
		 * does that, and all do the work.
		 */
		while (!MotHelpersDone(&shared->base))
		{
			if (hurry || shared->base.asked == 0 ||
				(pg_atomic_read_u32(&shared->base.running) == 0 &&
				 TimestampDifferenceExceeds(asked, GetCurrentTimestamp(), HELPER_PATIENCE_MS)))
			{
				MotWriteItems(&shared->base);
				break;
			}
			MotNap(2, MOT_FOR_HELPERS);
			CHECK_FOR_INTERRUPTS();
			MotPaceAttend(&shared->pace);
		}
		MotHelpersEnd(&shared->base);
	}
	PG_CATCH();
	{
		MotHelpersAbandon(&shared->base);
		PG_RE_THROW();
	}
	PG_END_TRY();

	/* items of a table follow one another, in the order of their parts */
	for (uint32 i = 0; i < shared->base.nitems; i++)
	{
		WriteItem  *item = SHARED_ITEM(shared, i);
		Source	   *s = &sources->source[item->source];

		if (!item->written)
			continue;
		if (s->files == NULL)
			s->files = palloc((shared->base.nitems - i) * sizeof(MotManifestFile));
		s->files[s->nfiles++] = item->file;
	}
	dsm_detach(segment);

	m->ntables = sources->n;
	m->tables = palloc0(Max(sources->n, 1) * sizeof(MotManifestTable));
	for (int i = 0; i < sources->n; i++)
	{
		Source	   *s = &sources->source[i];
		MotManifestTable *t = &m->tables[i];

		t->dbid = s->dbid;
		t->relid = s->relid;
		t->definition = unconstify(char *, s->definition);
		t->definition_len = s->definition_len;
		t->nfiles = s->nfiles;
		t->files = s->files;
		for (int j = 0; j < s->nfiles; j++)
		{
			t->rows += s->files[j].rows;
			m->bytes += s->files[j].bytes;
		}
		m->rows += t->rows;
	}
	MotLeftOutCheckpoint(m, sources->left, sources->nleft, directory);
}

/* The same table with the same rows as at the last checkpoint: its files will do. */
static bool
reuse(Source *source, const char *directory)
{
	for (int i = 0; i < last.n; i++)
	{
		Source	   *old = &last.source[i];

		if (old->serial != source->serial)
			continue;
		if (old->changes != source->changes || old->definition_len != source->definition_len ||
			memcmp(old->definition, source->definition, old->definition_len) != 0)
			return false;
		for (int j = 0; j < old->nfiles; j++)
		{
			char	   *from = MotRowFilePath(last_directory, old->dbid, old->relid, old->files[j].part);
			char	   *to = MotRowFilePath(directory, old->dbid, old->relid, old->files[j].part);
			int			failed = link(from, to);

			pfree(from);
			if (failed)
			{
				/* no such thing on this file system, perhaps: write it anew */
				for (int k = 0; k < j; k++)
					(void) unlink(MotRowFilePath(directory, old->dbid, old->relid, old->files[k].part));
				return false;
			}
			pfree(to);
		}
		source->nfiles = old->nfiles;
		source->files = palloc(Max(old->nfiles, 1) * sizeof(MotManifestFile));
		memcpy(source->files, old->files, old->nfiles * sizeof(MotManifestFile));
		return true;
	}
	return false;
}

/*
 * A file for about PART_BYTES of pages: neighbours stay together, so what is in key order stays
 * that.
 */
static WriteShared *
plan_write(Sources *sources, const Cut *cut, const char *directory, dsm_segment **segment)
{
	mot_session *session = MotSession();
	mot_view	view = {cut->snapshot, 0, NULL};
	WriteShared *shared;
	Size		size = MAXALIGN(sizeof(WriteShared));
	Size		definition = size;
	uint64	   *pages = palloc0(Max(sources->n, 1) * sizeof(uint64));
	uint32	   *parts = palloc0(Max(sources->n, 1) * sizeof(uint32));
	uint32		nitems = 0;

	for (int i = 0; i < sources->n; i++)
	{
		Source	   *s = &sources->source[i];
		mot_scan	scan;

		if (s->reused || MotDefinitionIsUnlogged(s->definition))
			continue;
		mot_scan_begin(session, &scan, s->table, &view);
		pages[i] = scan.pages;
		parts[i] = (uint32) Min(Min(s->row_bytes / PART_BYTES + 1, pages[i]), MAX_PARTS);
		nitems += parts[i];
		size += MAXALIGN(s->definition_len);
	}
	*segment = dsm_create(size + MAXALIGN(nitems * sizeof(WriteItem)) + cut->nwithout * sizeof(mot_ts), 0);
	shared = dsm_segment_address(*segment);
	memset(shared, 0, size + nitems * sizeof(WriteItem));
	shared->base.job = MOT_JOB_WRITE;
	shared->base.nitems = nitems;
	shared->snapshot = cut->snapshot;
	shared->items_at = size;
	shared->upto = cut->upto;
	shared->nwithout = cut->nwithout;
	shared->without_at = size + MAXALIGN(nitems * sizeof(WriteItem));
	if (cut->nwithout > 0)
		memcpy((char *) shared + shared->without_at, cut->without, cut->nwithout * sizeof(mot_ts));
	strlcpy(shared->directory, directory, MAXPGPATH);

	nitems = 0;
	for (int i = 0; i < sources->n; i++)
	{
		Source	   *s = &sources->source[i];

		if (parts[i] == 0)
			continue;
		memcpy((char *) shared + definition, s->definition, s->definition_len);
		for (uint32 part = 0; part < parts[i]; part++)
		{
			WriteItem  *item = SHARED_ITEM(shared, nitems++);

			item->table = s->table;
			item->source = i;
			item->dbid = s->dbid;
			item->relid = s->relid;
			item->definition = definition;
			item->definition_len = s->definition_len;
			item->part = part;
			item->first_page = pages[i] * part / parts[i];
			item->end_page = pages[i] * (part + 1) / parts[i];
		}
		definition += MAXALIGN(s->definition_len);
	}
	return shared;
}

/* Everybody at work. */
void
MotWriteItems(MotHelpersShared *base)
{
	WriteShared *shared = (WriteShared *) base;
	MemoryContext oldcxt = CurrentMemoryContext;
	MotDefinition *def = NULL;
	Size		definition = 0;
	int			written = 0;	/* items, of which files may not be on the
								 * disk yet */
	int			i;

	MOT_FAULT("checkpoint-items");
	PG_TRY();
	{
		MotPaceJoin(&shared->pace);
		while ((i = MotHelpersNext(base)) >= 0)
		{
			WriteItem  *item = SHARED_ITEM(shared, i);

			if (def != NULL && definition != item->definition)
			{
				MotDefinitionFree(def);
				def = NULL;
			}
			if (def == NULL)
			{
				def = MotDefinitionDecode((char *) shared + item->definition, item->definition_len, oldcxt);
				definition = item->definition;
			}
			MOT_FAULT("checkpoint-rows");
			written++;
			if (!write_item(shared, item, def))
				items_done(base, &written);
		}
		items_done(base, &written);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MotRowFilesForget();
		edata = MotErrorTake(oldcxt);
		MotHelpersFail(base, edata);
		FreeErrorData(edata);
	}
	PG_END_TRY();
	if (def != NULL)
		MotDefinitionFree(def);
}

/* Files are on the disk before their items count as done. */
static void
items_done(MotHelpersShared *base, int *n)
{
	MotRowFilesSync();
	for (; *n > 0; (*n)--)
		if (!MotHelpersStop(base))
			MotHelpersItemDone(base);
}

/* false: enough of files that are not on the disk yet */
static bool
write_item(WriteShared *shared, WriteItem *item, MotDefinition *def)
{
	mot_session *session = MotSession();
	mot_beyond	beyond = {shared->upto, shared->nwithout, (mot_ts *) ((char *) shared + shared->without_at)};
	mot_view	view = {shared->snapshot, 0, shared->nwithout > 0 ? &beyond : NULL};
	MotRowFileWriter *volatile w = NULL;
	volatile bool more = true;
	const mot_version *version;
	mot_row    *row;
	mot_scan	scan;
	Size		size;
	uint64		bytes = 0;		/* since the last look */
	uint64		n = 0;

	PG_TRY();
	{
		mot_scan_begin(session, &scan, item->table, &view);
		scan.next_page = item->first_page;
		scan.pages = item->end_page;
		while (mot_scan_next(session, &scan, &row, &version))
		{
			if (unlikely(w == NULL))
				w = MotRowFileCreate(shared->directory, item->dbid, item->relid, item->part);
			size = MotDefinitionRowSize(def, version);
			MotRowFileAppend(w, mot_version_host_bits(version), mot_version_data(version), size);
			bytes += size;
			if (++n % WRITE_BATCH == 0 || bytes >= WRITE_BATCH_BYTES)
			{
				if (MotHelpersStop(&shared->base))
					break;
				MotPacePause(&shared->pace, bytes, &shared->base);
				bytes = 0;
			}
		}
		if (w != NULL)
		{
			more = MotRowFileCloseLater(w, &item->file);
			w = NULL;
			item->written = true;
		}
	}
	PG_CATCH();
	{
		if (w != NULL)
			MotRowFileAbandon(w);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return more;
}

/* ---------------------------------------------------------------- in doubt */

static void
read_doubt(MotManifest *m, MotInDoubtRange *ranges, int nranges)
{
	/* behind those that are in the list */
	m->indoubt = repalloc(m->indoubt, (m->nindoubt + nranges) * sizeof(MotManifestInDoubt));
	memset(m->indoubt + m->nindoubt, 0, nranges * sizeof(MotManifestInDoubt));
	for (int i = 0; i < nranges; i++)
	{
		Doubt		doubt = {.range = ranges[i],.out = &m->indoubt[m->nindoubt + i]};

		doubt.path = MotSpillPath("%08X%08X.line", LSN_FORMAT_ARGS(ranges[i].start));
		doubt.out->xid = ranges[i].xid;
		flush_log(ranges[i].end);
		MotReadLog(ranges[i].start, ranges[i].end, m->tli, visit_doubt, &doubt);
		if (doubt.out->lsn == InvalidXLogRecPtr)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("redo of memory-optimized tables was not found at %X/%X",
							LSN_FORMAT_ARGS(ranges[i].start))));
		if (doubt.out->len > 0)
		{
			doubt.out->ops = MotSpillMap(doubt.path, doubt.out->len);
			MotSpillUnmapLater(CurrentMemoryContext, doubt.out->ops, doubt.out->len);
			MotFileRemove(doubt.path);
		}
		pfree(doubt.path);
	}
	m->nindoubt += nranges;
}

/* The record, or its pieces, put together one behind the other. */
static void
visit_doubt(void *arg, XLogReaderState *record)
{
	Doubt	   *doubt = arg;
	MotManifestInDoubt *out = doubt->out;
	MotRecordHeader header;
	uint8		kind = XLogRecGetInfo(record) & MOT_XLOG_KIND;
	const char *ops;
	size_t		len;

	if (kind != MOT_XLOG_PIECE && kind != MOT_XLOG_MIXED)
		return;
	ops = MotRecordOpen(record, &header, &len);
	if (record->ReadRecPtr != doubt->range.start && header.stream != doubt->range.start)
		return;
	MotSpillWrite(doubt->path, out->len, ops, len);
	out->len += len;
	if (kind == MOT_XLOG_MIXED)
		out->lsn = record->ReadRecPtr;
}

/* ------------------------------------------------------------------ the end */

/*
 * On a standby this sees to it that the server, once restarted, does not let
 * anybody in before it has replayed as far as the checkpoint has come.
 *
 * A position right behind a page's header is where the next record will
 * start; nothing has been written up to there yet.
 */
static void
flush_log(XLogRecPtr lsn)
{
	if (XLogSegmentOffset(lsn, wal_segment_size) == SizeOfXLogLongPHD)
		lsn -= SizeOfXLogLongPHD;
	else if (lsn % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		lsn -= SizeOfXLogShortPHD;
	XLogFlush(lsn);
}

static void
remember(const Sources *sources, const char *directory)
{
	MemoryContext oldcxt;

	if (last_cxt == NULL)
		last_cxt = AllocSetContextCreate(TopMemoryContext, "MOT last checkpoint", ALLOCSET_DEFAULT_SIZES);
	else
		MemoryContextReset(last_cxt);
	memset(&last, 0, sizeof(last));
	oldcxt = MemoryContextSwitchTo(last_cxt);
	last_directory = pstrdup(directory);
	last.source = palloc(Max(sources->n, 1) * sizeof(Source));
	for (int i = 0; i < sources->n; i++)
	{
		Source	   *s = &last.source[i];

		*s = sources->source[i];
		s->definition = memcpy(palloc(Max(s->definition_len, 1)), s->definition, s->definition_len);
		s->files = palloc(Max(s->nfiles, 1) * sizeof(MotManifestFile));
		memcpy(s->files, sources->source[i].files, s->nfiles * sizeof(MotManifestFile));
	}
	last.n = sources->n;
	MemoryContextSwitchTo(oldcxt);
}

/*
 * The tables as they were loaded, and the files that have their rows.  To be
 * called before anybody can change one.
 */
void
MotCheckpointRemember(const MotManifest *m, const char *directory)
{
	Sources		sources = {0};

	sources.source = palloc0(Max(m->ntables, 1) * sizeof(Source));
	for (int i = 0; i < m->ntables; i++)
	{
		MotManifestTable *t = &m->tables[i];
		Source	   *s = &sources.source[sources.n];
		mot_table  *table = mot_table_find(MotEngine, t->dbid, t->relid);
		mot_table_stat stat;

		if (table == NULL || (t->nfiles > 0 && t->files[t->nfiles - 1].part == MOT_REDO_PART))
			continue;
		mot_table_stats(table, &stat);
		s->serial = mot_table_serial(table);
		s->changes = stat.inserts + stat.updates + stat.deletes;
		s->dbid = t->dbid;
		s->relid = t->relid;
		s->definition = t->definition;
		s->definition_len = t->definition_len;
		s->nfiles = t->nfiles;
		s->files = t->files;
		sources.n++;
	}
	remember(&sources, directory);
	pfree(sources.source);
}

/* What is not needed any more goes; statistics and the server's log. */
static void
note_done(const MotManifest *m, TimestampTz began, int nfiles, int nreused)
{
	MotCheckpointStat *stat = MotCheckpointShared();
	XLogRecPtr	previous;
	long		secs;
	int			usecs;

	TimestampDifference(began, GetCurrentTimestamp(), &secs, &usecs);
	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	previous = stat->checkpoint_lsn;
	stat->checkpoint_lsn = m->lsn;
	stat->redo_lsn = m->redo;
	stat->rows = m->rows;
	stat->bytes = m->bytes;
	stat->seconds = secs + usecs / 1000000.0;
	stat->completed++;
	stat->finished_at = GetCurrentTimestamp();
	LWLockRelease(MotStatLock);

	if (!AmStartupProcess())
		MotSlotKeep(m->lsn);
	MotManifestRemoveOthers(Min(m->lsn, MotBackupKeepFrom(previous != InvalidXLogRecPtr ? previous : m->lsn)));
	MotLeftOutSweep();
	MOT_FAULT("checkpoint-removed");

	if (log_checkpoints)
		ereport(LOG,
				(errmsg("checkpoint of memory-optimized tables complete: wrote %d tables, %llu rows, %llu kB in %d files (%d of them unchanged); "
						"%d in doubt; total=%ld.%03d s; lsn=%X/%X, redo lsn=%X/%X",
						m->ntables, (unsigned long long) m->rows, (unsigned long long) (m->bytes / 1024),
						nfiles, nreused, m->nindoubt, secs, usecs / 1000,
						LSN_FORMAT_ARGS(m->lsn), LSN_FORMAT_ARGS(m->redo))));
}
