/*-------------------------------------------------------------------------
 *
 * loadroom.c
 *	  Tables that are loaded, and memory that may be short.
 *
 * What has no room (leftout.c) is not to be a matter of chance.  So tables are
 * begun in the order of their sizes, smaller ones first, but for those that
 * somebody waits for; and another one beside those that are on their way only if
 * all of them have room even if they need as much as they may.  One that finds
 * memory full is therefore alone, all smaller ones are there, and what it took
 * is free again when the next one begins.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wal/recovery/load.h"
#include "xact/xact.h"

/* what a table takes, however small it is */
#define MIN_BYTES ((uint64) 256 * 1024)

void
MotLoadEstimate(const PlannedTable *planned, LoadTable *table)
{
	int			nindexes = planned->from != NULL ? planned->def->nindexes : 0;
	uint64		rows = 0;
	uint64		bytes = 0;

	if (planned->from != NULL)
		for (int i = 0; i < planned->from->nfiles; i++)
		{
			const MotManifestFile *file = &planned->from->files[i];

			bytes += file->bytes;
			rows += file->rows;
			if (file->part == MOT_REDO_PART)
				continue;
			table->least += file->bytes;
			table->rows += file->rows;
		}
	/* keys are no longer than rows, and what is around them is less than this */
	table->most = (bytes + bytes / 4 + rows * 64) * (1 + nindexes) + MIN_BYTES;
	/* rows and definitions that the log has, whatever they are */
	if (planned->part != NULL)
		table->most += 4 * planned->part->bytes + table->most;
}

static uint64
room_now(void)
{
	mot_memory_report report;

	mot_memory_report_get(MotEngine, &report);
	return report.max_bytes - Min(report.used_bytes, report.max_bytes);
}

/* With the mutex: true if it has begun, or may now. */
static bool
begin_with_mutex(LoadShared *shared, uint32 number, uint64 room)
{
	LoadTable  *table = SHARED_TABLE(shared, number);

	if (pg_atomic_read_u32(&table->begun))
		return true;
	if (table->nitems > 0 || table->log_follows)
	{
		uint32		expected = 0;

		if (shared->nbegun > 0 && room < shared->most + table->most)
			return false;
		table->alone = shared->nbegun == 0;
		table->had = room;
		if (table->alone)
			shared->lone = number;
		else
			SHARED_TABLE(shared, shared->lone)->alone = false;
		if (table->alone && room < table->least && table->nitems > 0)
			(void) pg_atomic_compare_exchange_u32(&table->broken, &expected, NO_ROOM);
		shared->nbegun++;
		shared->most += table->most;
	}
	pg_atomic_write_u32(&table->begun, 1);
	return true;
}

/* One that is waited for, out of turn. */
bool
MotLoadBeginAsked(LoadShared *shared, uint32 number)
{
	uint64		room;
	bool		begun;

	if (pg_atomic_read_u32(&SHARED_TABLE(shared, number)->begun))
		return true;
	room = room_now();
	SpinLockAcquire(&shared->base.mutex);
	begun = begin_with_mutex(shared, number, room);
	SpinLockRelease(&shared->base.mutex);
	return begun;
}

/* As many as may be, in turn. */
void
MotLoadBegin(LoadShared *shared)
{
	uint64		room;

	if (pg_atomic_read_u32(&shared->begin) == shared->ntables)
		return;
	room = room_now();
	SpinLockAcquire(&shared->base.mutex);
	while (pg_atomic_read_u32(&shared->begin) < shared->ntables &&
		   begin_with_mutex(shared, pg_atomic_read_u32(&shared->begin), room))
		pg_atomic_fetch_add_u32(&shared->begin, 1);
	SpinLockRelease(&shared->base.mutex);
}

/* It is there; or not, and what it has taken is free again. */
void
MotLoadEnd(LoadShared *shared, uint32 number)
{
	LoadTable  *table = SHARED_TABLE(shared, number);
	uint32		broken = pg_atomic_read_u32(&table->broken);

	if ((broken == NO_ROOM || broken == CLASH) && table->table != NULL)
	{
		mot_session *session = MotSession();
		bool		held = mot_snapshot_held(session) != MOT_TS_NONE;

		table->needed = MotLeftOutNeeded(table->table, table->rows, table->nitems - table->nfiles);
		mot_table_discard(session, table->table);
		table->table = NULL;

		/* what it still owes is kept for nobody but us */
		mot_snapshot_hold(session, MOT_TS_NONE);
		(void) mot_reclaim_all(session);
		if (held)
			(void) mot_snapshot_take(session);
	}
	SpinLockAcquire(&shared->base.mutex);
	shared->nbegun--;
	shared->most -= table->most;
	SpinLockRelease(&shared->base.mutex);
}

/* ------------------------------------------------------- those without room */

/* (Indexes are made with a table that the same transaction makes.) */
static const char *
write_run(MotLeftOut *entry, const char *run, const char *end, const char *next)
{
	if (run < end)
		MotLeftOutWrite(entry, run, end - run);
	return next;
}

static void
keep_run(void *arg, XLogRecPtr lsn, const char *ops, size_t len)
{
	PlannedTable *planned = arg;
	const char *p = ops;
	const char *run;
	const char *before;
	const char *error = NULL;
	MotLeftOut	entry;
	MotOpData	op;

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	/* it can be the first operation only */
	if (MotRecordNext(&p, ops + len, &op, &error) && op.op == MOT_OP_CREATE)
	{
		MotLeftOutEmpty(&entry, planned->dbid, planned->relid, op.bytes, op.len);
		planned->made_by = lsn;
	}
	else
	{
		p = ops;
		if (!MotLeftOutFind(planned->dbid, planned->relid, &entry))
			MotRaiseDamage("redo at %X/%X is of a memory-optimized table that was not made", LSN_FORMAT_ARGS(lsn));
	}
	for (run = before = p; planned->made_by == lsn && MotRecordNext(&p, ops + len, &op, &error); before = p)
		if (op.op == MOT_OP_INDEX)
			run = write_run(&entry, run, before, p);
	(void) write_run(&entry, run, ops + len, NULL);
	MotLeftOutRegister(&entry);
	LWLockRelease(MotApplyLock);
}

/* One that whoever wrote the checkpoint had left out; there may be room now. */
bool
MotLoadKept(LoadShared *shared, uint32 number, MotSorted *sorted, PlannedTable *planned)
{
	LoadTable  *table = SHARED_TABLE(shared, number);

	MotLeftOutLoad(shared->directory, planned->from, table->least);
	if (planned->part != NULL)
		MotSortedRead(sorted, planned->part, keep_run, planned);
	return MotLeftOutTry(table->dbid, table->relid);
}

/*
 * Tables there was no room for, with what the log has for them; perhaps there
 * is now, for one that was not alone.
 */
void
MotLoadLeaveOut(LoadShared *shared, MotSorted *sorted, PlannedTable *planned_tables)
{
	for (uint32 i = 0; i < shared->ntables; i++)
	{
		LoadTable  *table = SHARED_TABLE(shared, i);
		PlannedTable *planned = &planned_tables[i];
		uint32		broken = pg_atomic_read_u32(&table->broken);

		if (broken != NO_ROOM && broken != CLASH)
			continue;
		if (planned->from != NULL)
			MotLeftOutLoad(shared->directory, planned->from, broken == CLASH ? table->least : Max(table->needed, table->least));
		if (planned->part != NULL)
			MotSortedRead(sorted, planned->part, keep_run, planned);
		/* (by one process it is no less than by several) */
		if (broken == NO_ROOM && table->alone && table->needed > table->had)
			MotLeftOutFailed(table->dbid, table->relid, table->had, table->needed);
	}
	if (MotLeftOutCount() > 0)
	{
		mot_snapshot_hold(MotSession(), MOT_TS_NONE);
		(void) MotLeftOutBringBack(true);
		MotLeftOutReport();
	}
}
