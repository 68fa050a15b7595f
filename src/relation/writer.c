/*-------------------------------------------------------------------------
 *
 * writer.c
 *	  The write paths: insert, lock, update, delete.
 *
 * Shared by everything that changes rows of a MOT table.  What is raised from
 * here leaves the change half done; the transaction or subtransaction aborts
 * then and takes it back.
 *
 * A unique key is checked by adding the index entry: the engine answers that
 * a live row has the key, or that it depends on a transaction still running.
 * For that one we wait with our own row in place, as heap does; only
 * INSERT ... ON CONFLICT takes its row back before it waits, so that two of
 * them cannot deadlock over rows that neither would keep.
 *
 * Of a table with ranked keys (ranked.h) no other transaction is waited for while they have their
 * place but no entry: the row is taken back then, and all begins anew.
 *
 * Values are compared before keys are made: most updates change no key
 * column, and then no index is touched.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "compat/compat.h"
#include "compat/modules.h"
#include "executor/instrument.h"
#include "faults.h"
#include "relation/internal.h"
#include "relation/ranked.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "xact/xact.h"

static void drop_key(MotWriter *writer, MotIndex *index, mot_row *row);
static Datum *measure_columns(MotWriter *writer, Datum *values, const bool *isnull,
							  size_t *size, unsigned *host_bits);
static void make_tail(MotWriter *writer, const Datum *values, const bool *isnull, const mot_version *old);
static bool keys_differ(MotWriter *writer, MotIndex *index, const Datum *values, const bool *isnull);
static bool looks_changed(MotWriter *writer, const Bitmapset *columns, const Datum *values, const bool *isnull);
static bool column_changed(MotWriter *writer, AttrNumber attnum,
						   const Datum *values, const bool *isnull);

/* without a view */
static MotWriter *
new_writer(MotRelation *mr)
{
	MotWriter  *writer = palloc0(sizeof(MotWriter));

	writer->session = MotSession();
	MotKeyBufferInit(&writer->key, CurrentMemoryContext);
	MotKeyBufferInit(&writer->old_key, CurrentMemoryContext);
	writer->mr = mr;
	writer->old_values = palloc(mr->desc->natts * sizeof(Datum));
	writer->old_isnull = palloc(mr->desc->natts * sizeof(bool));
	if (mr->has_computed)
		initStringInfo(&writer->tail);
	return writer;
}

MotWriter *
MotWriterBegin(Relation rel, Snapshot snapshot, CommandId cid)
{
	MotWriter  *writer = new_writer(MotRelationGet(rel));
	bool		loose = !MotSnapshotRunning(snapshot);
	mot_view	view = loose ? MotLooseView() : MotViewFor(snapshot);

	MotWriterStart(writer, rel, &view, cid);
	writer->loose = loose;
	return writer;
}

/* between two executions of a statement */
void
MotWriterRest(MotWriter *writer)
{
	if (writer->loose)
		MotLooseViewRelease();
	writer->loose = false;
	writer->rel = NULL;
}

/* the next one, whose view is known */
void
MotWriterStart(MotWriter *writer, Relation rel, const mot_view *view, CommandId cid)
{
	MotRelationsSuspect |= writer->mr->stale;
	writer->rel = rel;
	writer->loose = false;
	writer->view = *view;
	writer->view.command = cid;
	writer->command = cid;
}

/*
 * The server tells of ordinary tables' rows one by one, and of no beginning or
 * end.  So the relation keeps a writer, as long as it is the same.
 */
MotWriter *
MotWriterShared(Relation rel, const mot_view *view, CommandId cid)
{
	MotRelation *mr = MotRelationGet(rel);
	MotWriter  *writer = mr->writer;

	if (unlikely(writer == NULL))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(mr->cxt);

		writer = new_writer(mr);
		mr->writer = writer;
		MemoryContextSwitchTo(oldcxt);
	}
	MotWriterStart(writer, rel, view, cid);
	return writer;
}

void
MotWriterEnd(MotWriter *writer)
{
	if (writer->loose)
		MotLooseViewRelease();
	if (writer->flat_cxt != NULL)
		MemoryContextDelete(writer->flat_cxt);
}

/*
 * Before each change: a trigger or function may have made an index in
 * between, or emptied the table.
 */
void
MotWriterRefresh(MotWriter *writer)
{
	if (unlikely(!writer->mr->valid))
		writer->mr = MotRelationGet(writer->rel);
}

void
MotWriterLocate(MotWriter *writer)
{
	writer->session = MotBeginWrite();
	MotWriterRefresh(writer);
}

/* ----------------------------------------------------------------- values */

/*
 * The row's size and host bits.  Returns the values to store: the caller's,
 * or a copy in which those that live elsewhere (another table's out-of-line
 * storage, expanded objects) are brought here.  The caller's array stays as
 * it is; what we fetch goes with the next row.
 */
Datum *
MotWriterMeasure(MotWriter *writer, Datum *values, const bool *isnull, const mot_version *old,
				 size_t *size, unsigned *host_bits)
{
	writer->ranks = false;
	if (unlikely(writer->mr->has_computed || writer->tail.len > 0))
		make_tail(writer, values, isnull, old);
	values = measure_columns(writer, values, isnull, size, host_bits);
	if (unlikely(writer->tail.len > 0))
	{
		*size += writer->tail.len;
		*host_bits |= MOT_ROW_HAS_TAIL;
	}
	return values;
}

/* As computed, or as the old version has it if nothing has changed that it is of. */
static void
make_tail(MotWriter *writer, const Datum *values, const bool *isnull, const mot_version *old)
{
	int			attnum = -1;
	bool		changed = old == NULL || writer->mr->computes_beside;

	/* the relation may have got such indexes since the writer began */
	if (writer->tail.data == NULL)
		MotWithin(GetMemoryChunkContext(writer), initStringInfo(&writer->tail));
	if (!writer->mr->has_computed)
	{
		resetStringInfo(&writer->tail);
		return;
	}
	if (old != NULL)
		MotWriterDeformOld(writer, old);
	while (!changed && (attnum = bms_next_member(writer->mr->computed_attnums, attnum)) >= 0)
		changed = column_changed(writer, attnum, values, isnull);
	if (changed)
	{
		MotWriterCompute(writer, values, isnull);
		return;
	}
	resetStringInfo(&writer->tail);
	if (writer->old_tail != NULL)
		appendBinaryStringInfoNT(&writer->tail, (const char *) writer->old_tail, writer->old_tail->size);
}

void
MotWriterFill(MotWriter *writer, const Datum *values, const bool *isnull,
			  unsigned host_bits, size_t size, void *data)
{
	MotRowFill(&writer->mr->shape, values, isnull, host_bits, size, data);
	if (unlikely(writer->tail.len > 0))
		memcpy((char *) data + size - writer->tail.len, writer->tail.data, writer->tail.len);
}

static Datum *
measure_columns(MotWriter *writer, Datum *values, const bool *isnull,
				size_t *size, unsigned *host_bits)
{
	TupleDesc	desc = writer->mr->desc;

	if (likely(MotRowMeasure(&writer->mr->shape, values, isnull, size, host_bits)))
		return values;

	if (writer->flat_cxt == NULL)
	{
		MemoryContext owner = GetMemoryChunkContext(writer);

		writer->flat_cxt = AllocSetContextCreate(owner, "MOT row", ALLOCSET_DEFAULT_SIZES);
		writer->flat = MemoryContextAlloc(owner, desc->natts * sizeof(Datum));
	}
	MemoryContextReset(writer->flat_cxt);
	memcpy(writer->flat, values, desc->natts * sizeof(Datum));

	MotWithin(writer->flat_cxt, MotRowFetch(desc, writer->flat, isnull));
	(void) MotRowMeasure(&writer->mr->shape, writer->flat, isnull, size, host_bits);
	return writer->flat;
}

/* -------------------------------------------------------------------- log */

/*
 * The log is written at commit, but who counts what a statement writes there
 * (pg_stat_statements) looks when the statement ends.  So it is counted beforehand, about;
 * the transaction's end takes that back, for what has been written then is counted by who writes
 * it.
 */
static uint64 expected_log = 0;

#define LOG_OF_CHANGE 16		/* what it is, and the row's key */

void
MotWriterExpectLog(MotWriter *writer, size_t bytes)
{
	if (!MotModulesWatch() || writer->rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return;
	pgWalUsage.wal_bytes += bytes + LOG_OF_CHANGE;
	expected_log += bytes + LOG_OF_CHANGE;
}

void
MotWriterEndXact(void)
{
	pgWalUsage.wal_bytes -= expected_log;
	expected_log = 0;
}

/* ----------------------------------------------------------------- insert */

mot_row *
MotWriterInsert(MotWriter *writer, Datum *values, bool *isnull)
{
	uint64		taken;
	mot_row    *row = MotWriterStoreRanked(writer, values, isnull, &values, &taken);

	for (int i = 0; i < writer->mr->nindexes; i++)
		if (likely(!writer->mr->indexes[i].key->ranked))
			MotWriterAddKeyOrRaise(writer, &writer->mr->indexes[i], row, values, isnull);
		else if ((taken & UINT64CONST(1) << i) != 0)
			MotRaiseDuplicate(writer->rel, &writer->mr->indexes[i], values, isnull);
	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalInsert(writer, row);
	return row;
}

/* its key in this index says on which node it is to live */
static void
place_row(MotWriter *writer, Oid indexoid, const Datum *values, const bool *isnull)
{
	MotIndex   *index = MotRelationIndex(writer->mr, indexoid);

	if (index == NULL)
		return;
	MotKeyBufferReset(&writer->key);
	(void) MotKeyOfRow(index->key, MotWriterTail(writer), values, isnull, &writer->key);
	mot_row_place(writer->session, writer->mr->table, writer->key.data, writer->key.len);
}

/* the row without its index entries */
mot_row *
MotWriterStoreRow(MotWriter *writer, const Datum *values, const bool *isnull,
				  size_t size, unsigned host_bits)
{
	Oid			placed_by = mot_table_placed_by(writer->mr->table);
	mot_row    *row;
	void	   *data;
	mot_status	status;

	if (unlikely(placed_by != InvalidOid))
		place_row(writer, placed_by, values, isnull);
	status = mot_row_insert(writer->session, writer->mr->table, writer->command,
							host_bits, size, &row, &data);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
	MotWriterFill(writer, values, isnull, host_bits, size, data);
	if (unlikely(MotIslandsCounting))
		MotRelationTouched(writer->mr, mot_row_newest(writer->session, row), 1, true);
	MotWriterExpectLog(writer, size);
	return row;
}

mot_status
MotWriterTryKey(MotWriter *writer, MotIndex *index, mot_row *row,
				const Datum *values, const bool *isnull, mot_row **other)
{
	unsigned	flags;

	if (MOT_FAULT_SKIPS("damage-entry-missing"))
		return MOT_OK;
	if (unlikely(index->key->blind) && index->unique)
		MotRaiseBlindIndex(index);
	MotKeyBufferReset(&writer->key);
	flags = MotKeyOfRow(index->key, MotWriterTail(writer), values, isnull, &writer->key);
	return mot_index_add(writer->session, &index->handle, row, writer->key.data, writer->key.len, flags, other);
}

/*
 * The row's ranked keys, of the indexes in "which" (one bit each); old ones are those of the
 * version that MotWriterDeformOld took apart. *taken: those that other rows have.  False: somebody
 * may have one, so all since the mark was taken back, and he has been waited for.
 */
static bool
add_ranked_keys(MotWriter *writer, mot_mark mark, mot_row *row, const Datum *values, const bool *isnull,
				uint64 which, bool drops, uint64 *taken)
{
	MotRelation *mr = writer->mr;
	mot_status	status = MOT_OK;

	*taken = 0;
	for (int i = 0; i < mr->nindexes && status != MOT_BUSY; i++)
	{
		mot_row    *other;

		if (!mr->indexes[i].key->ranked || (which & UINT64CONST(1) << i) == 0)
			continue;
		if (drops)
			drop_key(writer, &mr->indexes[i], row);
		status = MotWriterTryKey(writer, &mr->indexes[i], row, values, isnull, &other);
		if (status == MOT_DUPLICATE)
			*taken |= UINT64CONST(1) << i;
		else if (status != MOT_BUSY)
			MotRaiseStatus(status, writer->rel);
	}
	if (status == MOT_BUSY)
		mot_txn_take_back(writer->session, mark);
	if (writer->ranks)
		MotRankUnlock(writer->rel);
	writer->ranks = false;
	if (status != MOT_BUSY)
		return true;
	MotWaitForKey(writer->rel);
	MotWriterLocate(writer);
	return false;
}

/* The row with its ranked keys, but those that are taken; *stored: its values. */
mot_row *
MotWriterStoreRanked(MotWriter *writer, Datum *values, const bool *isnull, Datum **stored, uint64 *taken)
{
	for (;;)
	{
		mot_mark	mark;
		mot_row    *row;
		size_t		size;
		unsigned	host_bits;

		MotWriterLocate(writer);
		*stored = MotWriterMeasure(writer, values, isnull, NULL, &size, &host_bits);
		mark = mot_txn_mark(writer->session);
		row = MotWriterStoreRow(writer, *stored, isnull, size, host_bits);
		if (likely(!writer->ranks) ||
			add_ranked_keys(writer, mark, row, *stored, isnull, ~UINT64CONST(0), false, taken))
			return row;
	}
}

void
MotWriterAddKeyOrRaise(MotWriter *writer, MotIndex *index, mot_row *row,
					   Datum *values, bool *isnull)
{
	mot_row    *other;
	mot_status	status;

	while ((status = MotWriterTryKey(writer, index, row, values, isnull, &other)) == MOT_BUSY)
		MotWaitForKey(writer->rel);

	if (status == MOT_DUPLICATE)
		MotRaiseDuplicate(writer->rel, index, values, isnull);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
}

/* ------------------------------------------------------------------- lock */

/*
 * FOR KEY SHARE of a row that has changed since our snapshot is about its
 * unique keys; as long as these are the same the snapshot's version will do.
 */
static bool
same_unique_keys(MotWriter *writer, const mot_version *seen, const mot_version *newest)
{
	MotRelation *mr = writer->mr;
	Datum	   *values = palloc(mr->desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(mr->desc->natts * sizeof(bool));
	bool		same = true;

	MotWriterDeformOld(writer, seen);
	MotRowDeform(mr->desc, newest, mr->max_key_attnum, values, isnull);
	for (int i = 0; i < mr->nindexes && same; i++)
		same = !looks_changed(writer, mr->indexes[i].identifies, values, isnull);
	pfree(values);
	pfree(isnull);
	return same;
}

MotLockResult
MotWriterLock(MotWriter *writer, mot_row *row, const mot_version *seen,
			  mot_row_mode mode, MotLockWait waiting,
			  const mot_version **newest)
{
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status;
	bool		waited = false;

	writer->session = MotBeginWrite();
	for (;;)
	{
		status = mot_row_lock(writer->session, &writer->view, writer->mr->table, row, seen,
							  mode, newest);
		if (likely(status != MOT_BUSY))
			break;
		if (waiting == MOT_LOCK_SKIP)
			return MOT_LOCK_WOULD_BLOCK;
		if (waiting == MOT_LOCK_NOWAIT_ERROR)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("could not obtain lock on row in relation \"%s\"",
							RelationGetRelationName(writer->rel))));
		MotWaitForHolder(writer->rel, &wait);
		waited = true;
	}
	MotWaitDone(writer->rel, &wait);

	switch (status)
	{
		case MOT_OK:
			return MOT_LOCKED;
		case MOT_CHANGED:
			if (mode == MOT_MODE_KEY_SHARE)
			{
				/*
				 * who has waited goes on with what came of it, as on heap
				 * tables
				 */
				if (!waited && same_unique_keys(writer, seen, *newest))
					return MOT_LOCKED;
				if (IsolationUsesXactSnapshot())
					MotRaiseStatus(MOT_CONFLICT_CHANGED, writer->rel);
			}
			return MOT_LOCKED_NEWER;
		case MOT_DELETED:
			/* that it is gone would not be true */
			if (unlikely(mot_row_moved_away(writer->session, row)) && waiting != MOT_LOCK_WAIT_CONFLICT)
				ereport(ERROR,
						(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						 errmsg("tuple to be locked was already moved to another partition due to concurrent update")));
			return MOT_LOCK_GONE;
		case MOT_SELF_CHANGED:
			return MOT_LOCK_SELF;
		case MOT_CONFLICT_DELETED:
			if (mot_row_moved_away(writer->session, row))
				status = MOT_CONFLICT_CHANGED;
			/* FALLTHROUGH */
		default:
			MotRaiseStatus(status, writer->rel);
	}
	return MOT_LOCKED;			/* not reached */
}

/* ------------------------------------------------------- update and delete */

void
MotWriterDeformOld(MotWriter *writer, const mot_version *old)
{
	MotRowDeform(writer->mr->desc, old, writer->mr->max_key_attnum,
				 writer->old_values, writer->old_isnull);
	if (unlikely(writer->mr->has_computed))
		writer->old_tail =
			MotRowTail(writer->mr->desc, mot_version_host_bits(old), mot_version_data(old));
}

/* of the version that MotWriterDeformOld took apart; flags for the engine */
unsigned
MotWriterOldKey(MotWriter *writer, MotIndex *index)
{
	MotKeyBufferReset(&writer->old_key);
	return MotKeyOfRow(index->key, writer->old_tail, writer->old_values, writer->old_isnull, &writer->old_key);
}

/*
 * Bytes that differ may be equal to the operator class still (1.0 and 1.00);
 * that is found out when the keys are made.
 */
static bool
column_changed(MotWriter *writer, AttrNumber attnum, const Datum *values, const bool *isnull)
{
	int			i = attnum - 1;
	Form_pg_attribute att = TupleDescAttr(writer->mr->desc, i);

	if (isnull[i] || writer->old_isnull[i])
		return isnull[i] != writer->old_isnull[i];
	if (values[i] == writer->old_values[i])
		return false;
	if (att->attbyval)
		return true;
	return !datumIsEqual(values[i], writer->old_values[i], false, att->attlen);
}

/* bytes of the columns that have another value */
static size_t
news(MotWriter *writer, const mot_version *old, const Datum *values, const bool *isnull)
{
	TupleDesc	desc = writer->mr->desc;
	size_t		n = 0;

	MotRowDeform(desc, old, desc->natts, writer->old_values, writer->old_isnull);
	for (int i = 0; i < desc->natts; i++)
		if (!isnull[i] && column_changed(writer, i + 1, values, isnull))
			n += datumGetSize(values[i], TupleDescAttr(desc, i)->attbyval, TupleDescAttr(desc, i)->attlen);
	return n;
}

/*
 * Is one of these columns different to whoever looks at it?  (1.00 instead of 1.0 is the same key,
 * but FOR KEY SHARE keeps what is there, and ON UPDATE CASCADE has to come to all who refer to it.)
 */
static bool
looks_changed(MotWriter *writer, const Bitmapset *columns, const Datum *values, const bool *isnull)
{
	int			attnum = -1;

	while ((attnum = bms_next_member(columns, attnum)) >= 0)
	{
		int			i = attnum - 1;
		Form_pg_attribute att = TupleDescAttr(writer->mr->desc, i);

		if (column_changed(writer, attnum, values, isnull) &&
			(isnull[i] || writer->old_isnull[i] ||
			 !datum_image_eq(values[i], writer->old_values[i], att->attbyval, att->attlen)))
			return true;
	}
	return false;
}

static bool
key_columns_changed(MotWriter *writer, MotIndex *index, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < index->key->ncolumns && !index->key->computed; i++)
		if (column_changed(writer, index->key->columns[i].attnum, values, isnull))
			return true;
	return index->key->computed;
}

/* the entry of the version that MotWriterDeformOld took apart goes */
static void
drop_key(MotWriter *writer, MotIndex *index, mot_row *row)
{
	unsigned	flags;
	mot_status	status;

	if (MOT_FAULT_SKIPS("damage-entry-stays"))
		return;
	flags = MotWriterOldKey(writer, index);
	/* what is dropped must have been there */
	if (unlikely(mot_index_is_behind(index->handle.index)))
	{
		mot_row    *other;

		status = mot_index_catch_up(writer->session, &index->handle, row, writer->old_key.data, writer->old_key.len,
									flags, false, &other);
		if (unlikely(status != MOT_OK))
			MotRaiseStatus(status, writer->rel);
	}
	status = mot_index_drop_entry(writer->session, &index->handle, row,
								  writer->old_key.data, writer->old_key.len, flags);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
}

/* Some of an index's columns have changed: do the old and the new values make different keys? */
static bool
keys_differ(MotWriter *writer, MotIndex *index, const Datum *values, const bool *isnull)
{
	MotKeyBufferReset(&writer->key);
	(void) MotKeyOfRow(index->key, MotWriterTail(writer), values, isnull, &writer->key);
	(void) MotWriterOldKey(writer, index);
	return writer->key.len != writer->old_key.len ||
		memcmp(writer->key.data, writer->old_key.data, writer->key.len) != 0;
}

void
MotRaiseOwnChange(bool deletion)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 deletion ?
			 errmsg("tuple to be deleted was already modified by an operation triggered by the current command") :
			 errmsg("tuple to be updated was already modified by an operation triggered by the current command"),
			 errhint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")));
}

/*
 * The new values of a row are computed after "old" was found to be its newest
 * version.  A function that changes the same row meanwhile (one that only says
 * that it changes nothing, or one in a constraint) would have its change lost, and
 * the entries of its keys left behind, for ever.
 */
static void
refuse_own_change(MotWriter *writer, mot_row *row, const mot_version *old, bool deletion)
{
	const mot_version *newest;

	/* of a row not yet locked, others may commit newer versions */
	if (IsolationUsesXactSnapshot())
	{
		mot_view	later = writer->view;

		later.command = MOT_COMMAND_MAX;
		newest = mot_row_visible(writer->session, &later, writer->mr->table, row);
	}
	else
		newest = mot_row_newest(writer->session, row);
	if (!mot_version_same(newest, old))
		MotRaiseOwnChange(deletion);
}

/* has anything been changed since our command began? */
static inline bool
commands_between(const MotWriter *writer)
{
	return unlikely(GetCurrentCommandId(false) != writer->command);
}

/*
 * Rows get entries in their tails (MotComputeIndex), or this one has got some since it was
 * read, which may have been before all had theirs: the same version in another place.
 */
static inline bool
is_amended(const MotWriter *writer, mot_row *row, const mot_version *old)
{
	const mot_version *newest;

	if (likely(!writer->mr->has_computed))
		return false;
	if (writer->mr->computes_beside)
		return true;
	newest = mot_row_newest(writer->session, row);
	return newest != NULL && newest != old && mot_version_ts(newest) == mot_version_ts(old);
}

/*
 * Above READ COMMITTED, is the row to be locked now, and not at commit?
 * postgres_fdw commits on one server after the other, at REPEATABLE READ; it
 * must not be told that there was a conflict when others have committed.  Nor
 * must it have told them when there is one here, where it is that brings them
 * the rest of this transaction: it does that before commit comes to us.
 */
static unsigned
locks_now(void)
{
	static uint64 looked = 0;
	static bool several_servers;

	if (likely(!IsolationUsesXactSnapshot()))
		return 0;
	if (looked != MotMyVirtualXact())
	{
		several_servers = strcmp(application_name, "postgres_fdw") == 0 ||
			SearchSysCacheExists1(FOREIGNDATAWRAPPERNAME, CStringGetDatum("postgres_fdw"));
		looked = MotMyVirtualXact();
	}
	return mot_early_locks || several_servers ? MOT_LOCK_NOW : 0;
}

/* Will it need ranks?  Then it is not to wait for the row while it has them. */
static inline bool
ranks_change(MotWriter *writer, const mot_version *old, const Datum *values, const bool *isnull)
{
	int			attnum = -1;
	bool		changed = false;

	if (likely(!writer->mr->has_ranked))
		return false;
	MotWriterDeformOld(writer, old);
	while (!changed && (attnum = bms_next_member(writer->mr->computed_attnums, attnum)) >= 0)
		changed = column_changed(writer, attnum, values, isnull);
	return changed;
}

bool
MotWriterUpdate(MotWriter *writer, mot_row *row, const mot_version *old,
				Datum *values, bool *isnull)
{
	MotWait		wait = MOT_WAIT_INIT;
	Datum	   *given = values;
	bool		deferrable;
	MotRelation *mr;
	uint64		changed;		/* one bit for each index */
	uint64		taken;
	unsigned	host_bits;
	size_t		size;
	void	   *data;
	mot_status	status;

	MotWriterLocate(writer);
	if (unlikely(is_amended(writer, row, old)) || unlikely(ranks_change(writer, old, values, isnull)))
	{
		const mot_version *newest;

		/* from now on it gets none */
		if (MotWriterLock(writer, row, old, MOT_MODE_NO_KEY_UPDATE, MOT_LOCK_WAIT, &newest) == MOT_LOCKED)
			old = newest;
	}
	do
	{
		unsigned	changes = 0;
		mot_mark	mark;

		changed = taken = 0;
		deferrable = false;
		values = MotWriterMeasure(writer, given, isnull, old, &size, &host_bits);
		mr = writer->mr;
		if (commands_between(writer))
			refuse_own_change(writer, row, old, false);

		if (mr->nindexes > 0)
		{
			int			attnum = -1;
			bool		any = false;

			MotWriterDeformOld(writer, old);
			while (!any && (attnum = bms_next_member(mr->key_attnums, attnum)) >= 0)
				any = column_changed(writer, attnum, values, isnull);
			for (int i = 0; any && i < mr->nindexes; i++)
			{
				/* as in a heap table, which stores all keys anew then */
				deferrable |= mr->indexes[i].deferrable;
				if (!key_columns_changed(writer, &mr->indexes[i], values, isnull))
					continue;
				if (keys_differ(writer, &mr->indexes[i], values, isnull))
				{
					changed |= UINT64CONST(1) << i;
					changes |= mr->indexes[i].identifies ? MOT_UNIQUE_KEYS_CHANGE : MOT_KEYS_CHANGE;
				}
				else if (looks_changed(writer, mr->indexes[i].identifies, values, isnull))
					changes |= MOT_UNIQUE_KEYS_CHANGE;
			}
		}

		if (unlikely(XLogLogicalInfoActive()))
			MotLogicalBefore(writer, old, values, isnull, false);
		mark = mot_txn_mark(writer->session);
		while ((status = mot_row_update(writer->session, mr->table, row, writer->command,
										host_bits, size, changes | locks_now(), &data)) == MOT_BUSY && !writer->ranks)
			MotWaitForHolder(writer->rel, &wait);
		if (unlikely(status == MOT_BUSY))
		{
			MotRankUnlock(writer->rel);
			MotWaitForHolder(writer->rel, &wait);
			continue;
		}
		MotWaitDone(writer->rel, &wait);
		if (unlikely(status != MOT_OK))
			MotRaiseStatus(status, writer->rel);
		MotWriterFill(writer, values, isnull, host_bits, size, data);
		if (unlikely(writer->ranks) &&
			!add_ranked_keys(writer, mark, row, values, isnull, changed, true, &taken))
			status = MOT_BUSY;
	} while (status == MOT_BUSY);
	MotRelationTouched(mr, old, 1, true);
	if (MotModulesWatch())
		MotWriterExpectLog(writer, news(writer, old, values, isnull));

	for (int i = 0; changed != 0; i++, changed >>= 1)
	{
		if ((changed & 1) == 0)
			continue;
		if (unlikely(mr->indexes[i].key->ranked))
		{
			if ((taken & UINT64CONST(1) << i) != 0)
				MotRaiseDuplicate(writer->rel, &mr->indexes[i], values, isnull);
			continue;
		}
		drop_key(writer, &mr->indexes[i], row);
		MotWriterAddKeyOrRaise(writer, &mr->indexes[i], row, values, isnull);
	}
	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalUpdate(writer, host_bits, data, size);
	return deferrable;
}

bool
MotWriterPatch(MotWriter *writer, mot_row *row, const mot_version *old,
			   MotRowPatch *patch, const Datum *values, const bool *isnull)
{
	MotWait		wait = MOT_WAIT_INIT;
	unsigned	host_bits;
	size_t		size;
	void	   *data;
	mot_status	status;

	MotWriterLocate(writer);
	if (commands_between(writer))
		refuse_own_change(writer, row, old, false);
	if (unlikely(is_amended(writer, row, old)) ||
		!MotRowPatchMeasure(patch, old, values, isnull, &size, &host_bits))
		return false;
	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalBefore(writer, old, NULL, NULL, false);
	while ((status = mot_row_update(writer->session, writer->mr->table, row, writer->command,
									host_bits, size, locks_now(), &data)) == MOT_BUSY)
		MotWaitForHolder(writer->rel, &wait);
	MotWaitDone(writer->rel, &wait);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
	MotRowPatchFill(patch, size, data);
	MotRelationTouched(writer->mr, old, 1, true);
	if (MotModulesWatch())
		MotWriterExpectLog(writer, MotRowPatchNews(patch, size));
	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalUpdate(writer, host_bits, data, size);
	return true;
}

void
MotWriterDelete(MotWriter *writer, mot_row *row, const mot_version *old, bool moves)
{
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status;

	MotWriterLocate(writer);
	if (commands_between(writer))
		refuse_own_change(writer, row, old, true);

	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalBefore(writer, old, NULL, NULL, true);
	/* it leaves the indexes by itself, see derive.c */
	while ((status = (moves ? mot_row_move_away : mot_row_delete) (writer->session, writer->mr->table, row,
																   writer->command)) == MOT_BUSY)
		MotWaitForHolder(writer->rel, &wait);
	MotWaitDone(writer->rel, &wait);
	if (unlikely(status != MOT_OK))
		MotRaiseStatus(status, writer->rel);
	MotRelationTouched(writer->mr, old, 1, true);
	MotWriterExpectLog(writer, 0);
	if (unlikely(XLogLogicalInfoActive()))
		MotLogicalDelete(writer);
}
