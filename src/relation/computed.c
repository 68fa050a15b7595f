/*-------------------------------------------------------------------------
 *
 * computed.c
 *	  Indexes whose keys are not columns: on expressions, and partial ones.
 *
 * What such an index has of a row is computed once, by the statement that stores the
 * row, and stored with it, behind its columns (MotTail in rowcodec.h).  Whoever
 * needs a key afterwards, in whatever process, finds it there: replay, checkpoints, tables
 * that are loaded or left out, reclamation of deleted rows.  None of them could
 * call a function.  A row that has no entry for an index is not in it.
 *
 * So an index that is made of rows which are there gives those that are to be in it other
 * tails, by updates that change nothing else.  What the transaction's snapshot does not show, since
 * it is older, is no update's to change: it would be the transaction's own then, which it sees.
 * Such a version gets its entry as beside writers, see below.
 *
 * CREATE INDEX CONCURRENTLY does so beside writers, to none of whom that may be a change: a
 * version gets its entry where it is and keeps its number (mot_row_amend), row by row, with
 * a record of its own.  A tail that has an entry which no index asks for does no harm, so
 * nothing is taken back should the index come to nothing.  Writers compute anew whatever they
 * store meanwhile (computes_beside), and have the row before they look what it was: then it stays
 * as it is.  A row that somebody has is waited for, as he may give it back as it was.
 *
 * Functions in expressions may do anything, also change the same table; what is
 * used to compute is not at hand for others meanwhile, and they make themselves
 * another.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "compat/compat.h"
#include "executor/executor.h"
#include "faults.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "relation/ranked.h"
#include "storage/lock.h"
#include "tcop/pquery.h"
#include "utils/evtcache.h"
#include "utils/memutils.h"
#include "xact/xact.h"

/* of the lock's tag; no table has so many columns (nor is it RANKS_SUBID) */
#define TAILS_SUBID 0x6d74

/* rows between two looks for an interrupt, and resets of memory */
#define BATCH 1024

/* of an index, for a transaction, whose memory it is in, and who may call the functions */
typedef struct MotEvaluation
{
	Oid			userid;
	IndexInfo  *info;
	EState	   *estate;
	TupleTableSlot *slot;
} MotEvaluation;

static MotEvaluation *
begin(MotIndex *index)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(TopTransactionContext);
	MotEvaluation *e = palloc(sizeof(MotEvaluation));
	Relation	indexrel = index_open(index->indexoid, AccessShareLock);

	e->userid = GetUserId();
	e->info = BuildIndexInfo(indexrel);
	index_close(indexrel, AccessShareLock);
	e->estate = CreateExecutorState();
	e->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(index->relation->desc), &TTSOpsVirtual);
	MemoryContextSwitchTo(oldcxt);
	return e;
}

bool
MotIndexCompute(MotIndex *index, const Datum *values, const bool *isnull, Datum *key_values, bool *key_isnull)
{
	MotEvaluation *e = index->evaluation;
	ExprContext *econtext;
	MemoryContext oldcxt;
	bool		is_in = true;

	/*
	 * another transaction's has gone with it, and another index's may be in
	 * its place
	 */
	if (e == NULL || index->evaluated_in != MotMyVirtualXact() || e->userid != GetUserId())
		e = begin(index);
	index->evaluation = NULL;
	econtext = GetPerTupleExprContext(e->estate);
	ResetExprContext(econtext);
	oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	ExecClearTuple(e->slot);
	memcpy(e->slot->tts_values, values, e->slot->tts_tupleDescriptor->natts * sizeof(Datum));
	memcpy(e->slot->tts_isnull, isnull, e->slot->tts_tupleDescriptor->natts * sizeof(bool));
	ExecStoreVirtualTuple(e->slot);
	econtext->ecxt_scantuple = e->slot;
	if (e->info->ii_Predicate != NIL)
	{
		if (e->info->ii_PredicateState == NULL)
			e->info->ii_PredicateState = ExecPrepareQual(e->info->ii_Predicate, e->estate);
		is_in = ExecQual(e->info->ii_PredicateState, econtext);
	}
	if (is_in)
		FormIndexDatum(e->info, e->slot, e->estate, key_values, key_isnull);
	MemoryContextSwitchTo(oldcxt);
	index->evaluation = e;
	index->evaluated_in = MotMyVirtualXact();
	return is_in;
}

unsigned
MotIndexComputeKey(MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	Datum		key_values[INDEX_MAX_KEYS];
	bool		key_isnull[INDEX_MAX_KEYS];

	MotKeyBufferReset(key);
	return MotIndexCompute(index, values, isnull, key_values, key_isnull) ?
		MotKeyFromRow(index->key, key_values, key_isnull, key) : 0;
}

/* an entry behind what there is; no bytes: it has none */
static void
put_entry(StringInfo tail, Oid indexoid, unsigned flags, const uint8 *key, size_t len)
{
	MotTailEntry entry = {indexoid};

	if (len == 0)
		return;
	entry.has_null = (flags & MOT_KEY_DISTINCT) != 0;
	entry.len = (uint16) len;
	appendBinaryStringInfoNT(tail, (char *) &entry, offsetof(MotTailEntry, key));
	appendBinaryStringInfoNT(tail, (const char *) key, (int) len);
	while (tail->len % sizeof(int32) != 0)
		appendStringInfoCharMacro(tail, 0);
}

/* its key is set down in "key" meanwhile */
static void
add_entry(StringInfo tail, MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	unsigned	flags = MotIndexComputeKey(index, values, isnull, key);

	put_entry(tail, index->indexoid, flags, key->data, key->len);
}

/*
 * Entries with ranks come last: what computes may do anything, also store rows in the same table,
 * so it is all called before the ranks are ours.  False: it has done something to the table, and
 * they are not.
 */
static bool
add_ranked(StringInfo tail, MotRelation *mr, Relation rel, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	struct RankedRow
	{
		bool		is_in;
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
	}		   *rows = palloc(mr->nindexes * sizeof(*rows));
	uint64		built = mr->built;

	for (int i = 0; i < mr->nindexes && mr->built == built; i++)
		if (mr->indexes[i].key->ranked)
			rows[i].is_in = MotIndexCompute(&mr->indexes[i], values, isnull, rows[i].values, rows[i].isnull);
	if (mr->built == built)
		MotRankLock(rel);
	else
	{
		pfree(rows);
		return false;
	}
	for (int i = 0; i < mr->nindexes && mr->built == built; i++)
	{
		MotIndex   *index = &mr->indexes[i];

		if (index->key->ranked && rows[i].is_in)
		{
			unsigned	flags = MotRankKey(index, rows[i].values, rows[i].isnull, key);

			put_entry(tail, index->indexoid, flags, key->data, key->len);
		}
	}
	pfree(rows);
	return true;
}

static void
begin_tail(StringInfo tail)
{
	MotTail		head = {0};

	appendBinaryStringInfoNT(tail, (char *) &head, sizeof(head));
}

/* no bytes: it has no entry */
static void
end_tail(StringInfo tail)
{
	if (tail->len == sizeof(MotTail))
	{
		resetStringInfo(tail);
		return;
	}
	while (tail->len % MAXIMUM_ALIGNOF != 0)
		appendStringInfoCharMacro(tail, 0);
	((MotTail *) tail->data)->size = tail->len;
}

/*
 * The tail of a row that is about to be stored, into writer->tail.  With ranks the table's are ours
 * then.
 */
void
MotWriterCompute(MotWriter *writer, const Datum *values, const bool *isnull)
{
	MotWriter	was = *writer;
	StringInfoData tail;
	MotKeyBuffer key;
	uint64		built;

	initStringInfo(&tail);
	MotKeyBufferInit(&key, CurrentMemoryContext);
	do
	{
		MotRelation *mr = writer->mr;

		built = mr->built;
		resetStringInfo(&tail);
		begin_tail(&tail);
		for (int i = 0; i < mr->nindexes && mr->built == built; i++)
			if (mr->indexes[i].key->computed && !mr->indexes[i].key->ranked)
				add_entry(&tail, &mr->indexes[i], values, isnull, &key);
		if (writer->ranks)
			MotRankUnlock(was.rel);
		writer->ranks = mr->has_ranked && mr->built == built && add_ranked(&tail, mr, was.rel, values, isnull, &key);
		end_tail(&tail);

		/* what was called may have used the writer, or made an index */
		writer->rel = was.rel;
		writer->view = was.view;
		writer->command = was.command;
		writer->loose = was.loose;
		MotWriterRefresh(writer);
	} while (writer->mr->built != built);
	resetStringInfo(&writer->tail);
	appendBinaryStringInfoNT(&writer->tail, tail.data, tail.len);
	pfree(tail.data);
	if (key.data != key.fixed)
		pfree(key.data);
}

/* ------------------------------------------------------------------- builds */

/* what one row after the other takes */
typedef struct Tails
{
	const MotRankItem *item;	/* the row's, with its key, if that has ranks */
	Relation	rel;
	MotIndex   *index;
	MotWriter  *writer;			/* NULL: beside writers, all of whom keep the
								 * index */
	bool		anew;			/* rows have had entries of it */
	MotKeyBuffer key;
	StringInfoData tail;
	StringInfoData bytes;
} Tails;

static unsigned
rank_flags(const MotIndex *index, const MotRankItem *item)
{
	for (int i = 0; i < index->key->ncolumns && !index->key->nulls_equal; i++)
		if (item->isnull[i])
			return MOT_KEY_DISTINCT;
	return 0;
}

/* The row's tail with another entry of the index, or none; false: it is as it was. */
static bool
change_tail(Tails *t, const mot_version *version)
{
	MotIndex   *index = t->index;
	const MotTail *old = MotVersionTail(index->desc, version);
	const MotTailEntry *had = MotTailFind(old, index->indexoid);
	const MotTailEntry *entry = NULL;
	const MotTailEntry *has;

	/* (beside writers: the statement that stored it has done so) */
	if (t->writer == NULL && had != NULL)
		return false;
	MotRowDeform(index->desc, version, index->desc->natts, index->check_values, index->check_isnull);
	resetStringInfo(&t->tail);
	begin_tail(&t->tail);
	while ((entry = MotTailNext(old, entry)) != NULL)
		if (entry != had)
			appendBinaryStringInfoNT(&t->tail, (char *) entry, INTALIGN(offsetof(MotTailEntry, key) + entry->len));
	if (!index->key->ranked)
		add_entry(&t->tail, index, index->check_values, index->check_isnull, &t->key);
	else if (t->item != NULL)
		put_entry(&t->tail, index->indexoid, rank_flags(index, t->item), t->item->key.data, t->item->key.len);
	end_tail(&t->tail);
	has = t->tail.len == 0 ? NULL : MotTailFind((MotTail *) t->tail.data, index->indexoid);
	if (has == NULL || had == NULL)
		return has != had;
	return has->len != had->len || memcmp(has->key, had->key, had->len) != 0;
}

/* the row as it is, but for its tail */
static unsigned
add_tail(Tails *t, const mot_version *version, size_t *columns)
{
	unsigned	bits = mot_version_host_bits(version);

	*columns = MotRowColumnsSize(t->index->desc, bits, mot_version_data(version));
	resetStringInfo(&t->bytes);
	appendBinaryStringInfoNT(&t->bytes, mot_version_data(version), *columns);
	appendBinaryStringInfoNT(&t->bytes, t->tail.data, t->tail.len);
	return t->tail.len > 0 ? bits | MOT_ROW_HAS_TAIL : bits & ~MOT_ROW_HAS_TAIL;
}

/*
 * A version that the transaction's snapshot does not show keeps its number.  Nothing takes back what
 * it gets; so where it is of an index that is there, and stays if the transaction fails, that fails.
 */
static void
amend_newer(Tails *t, mot_row *row, const mot_version *version)
{
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status = t->anew ? MOT_CONFLICT_CHANGED : MOT_CHANGED;
	size_t		columns;
	unsigned	bits = add_tail(t, version, &columns);
	const mot_version *newest;

	while (status == MOT_CHANGED || status == MOT_BUSY)
	{
		if (status == MOT_BUSY)
			MotWaitForHolder(t->rel, &wait);
		/* (it may lie elsewhere by now) */
		newest = mot_row_newest(MotSession(), row);
		if (newest == NULL || !mot_version_same(newest, version))
			elog(ERROR, "a row of table \"%s\" is changed while an index is built", RelationGetRelationName(t->rel));
		status = MotAmendRow(t->index->relation->table, row, newest, columns, bits, t->bytes.data, t->bytes.len);
	}
	MotWaitDone(t->rel, &wait);
	/* (a foreign key's check has it locked) */
	MotRaiseStatus(status == MOT_SELF_CHANGED ? MOT_CONFLICT_CHANGED : status, t->rel);
}

/*
 * Is such a command all that the transaction does, so that it will see nothing of what it has made
 * its own?  (Only portals of the simple protocol are not shown, and have no name: those of EXECUTE
 * have.  Behind another one a pipeline may go on.  Background workers, pg_cron's for one, run several
 * commands that way in one transaction, and no block.  Event triggers run, too, of REINDEX from 17 on.)
 */
bool
MotCommandIsLast(CommandTag tag)
{
	return MyBackendType != B_BG_WORKER && !IsTransactionBlock() && ActivePortal != NULL && !ActivePortal->visible &&
		ActivePortal->name[0] == '\0' && ActivePortal->commandTag == tag && EventCacheLookup(EVT_DDLCommandEnd) == NIL;
}

static void
update_row(Tails *t, mot_row *row, const mot_version *version)
{
	MotWriter  *writer = t->writer;
	const mot_version *newest;
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status;
	size_t		columns;
	unsigned	bits;
	void	   *data;

	if (!change_tail(t, version))
		return;

	if (unlikely(MotTransactionMisses(mot_version_ts(version))) && !(t->anew && MotCommandIsLast(CMDTAG_REINDEX)))
	{
		amend_newer(t, row, version);
		return;
	}
	bits = add_tail(t, version, &columns);
	if (MotWriterLock(writer, row, version, MOT_MODE_NO_KEY_UPDATE, MOT_LOCK_WAIT, &newest) != MOT_LOCKED)
		elog(ERROR, "a row of table \"%s\" is changed while an index is built", RelationGetRelationName(t->rel));
	while ((status = mot_row_update(writer->session, writer->mr->table, row, writer->command,
									bits, t->bytes.len, MOT_KEYS_CHANGE, &data)) == MOT_BUSY)
		MotWaitForHolder(t->rel, &wait);
	MotWaitDone(t->rel, &wait);
	MotRaiseStatus(status, t->rel);
	memcpy(data, t->bytes.data, t->bytes.len);
}

/* The row's newest version says what the index has of it, whoever is at it. */
static void
amend_row(Tails *t, mot_row *row)
{
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status = MOT_CHANGED;
	const mot_version *version;

	MOT_FAULT("index-compute");
	while (status != MOT_OK && (version = mot_row_newest(MotSession(), row)) != NULL && change_tail(t, version))
	{
		size_t		columns;
		unsigned	bits = add_tail(t, version, &columns);

		status = MotAmendRow(t->index->relation->table, row, version, columns, bits, t->bytes.data, t->bytes.len);
		if (status == MOT_BUSY)
			MotWaitForHolder(t->rel, &wait);
		else if (status != MOT_CHANGED)
			MotRaiseStatus(status, t->rel);
	}
	MotWaitDone(t->rel, &wait);
}

/*
 * Ranks are given to all rows together: their values are put in order first.  (Values that are
 * columns stay where they are; a snapshot is published.)
 */
static MotRankItem *
rank_rows(MotIndex *index, int64 *n)
{
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	MotRankItem *items = NULL;
	int64		room = 0;
	int			ncolumns = index->key->ncolumns;
	Relation	indexrel = index_open(index->indexoid, AccessShareLock);

	*n = 0;
	mot_build_rows(MotSession(), &build, index->relation->table, NULL);
	while (mot_build_next(&build, &row, &version))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		MotRankItem *item;

		CHECK_FOR_INTERRUPTS();
		if (*n == room)
		{
			room = Max(64, 2 * room);
			items = items == NULL ? palloc_extended(room * sizeof(MotRankItem), MCXT_ALLOC_HUGE) :
				repalloc_huge(items, room * sizeof(MotRankItem));
		}
		item = &items[(*n)++];
		memset(item, 0, sizeof(*item));
		item->row = row;
		item->version = version;
		MotRowDeform(index->desc, version, index->desc->natts, index->check_values, index->check_isnull);
		if (!MotIndexCompute(index, index->check_values, index->check_isnull, values, isnull))
			continue;
		item->values = palloc(ncolumns * sizeof(Datum));
		item->isnull = palloc(ncolumns * sizeof(bool));
		memcpy(item->isnull, isnull, ncolumns * sizeof(bool));
		for (int i = 0; i < ncolumns; i++)
			item->values[i] = isnull[i] || indexrel->rd_index->indkey.values[i] != 0 ? values[i] :
				MotRankCopy(index, i, values[i]);
	}
	index_close(indexrel, AccessShareLock);
	return items;
}

/* All rows say what the index, which is about to be built, has of them. */
static void
compute_ranked(Tails *t, MemoryContext cxt)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	MemoryContext row_cxt = AllocSetContextCreate(cxt, "MOT row", ALLOCSET_DEFAULT_SIZES);
	int64		n;
	int64		nin = 0;
	MotRankItem *items = rank_rows(t->index, &n);

	/* those that are not in it have no values: they come last */
	for (int64 i = 0; i < n; i++)
		if (items[i].values != NULL)
		{
			MotRankItem item = items[nin];

			items[nin++] = items[i];
			items[i] = item;
		}
	MotRankAll(t->index, items, nin, cxt);
	MemoryContextSwitchTo(row_cxt);
	for (int64 i = 0; i < n; i++)
	{
		t->item = i < nin ? &items[i] : NULL;
		if (t->item != NULL)
			MotKeyRefuseLong(t->index->key, t->item->key.len);
		update_row(t, items[i].row, items[i].version);
		if (i % BATCH == 0)
		{
			MemoryContextReset(row_cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
}

void
MotComputeIndex(Relation rel, MotIndex *index, bool beside, bool anew)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT computed keys", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	Tails		t = {.rel = rel,.index = index,.anew = anew};
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	uint64		n = 0;

	if (beside)
		(void) MotLooseView();	/* what is read of a row stays where it is
								 * while we are at it */
	else
	{
		LOCKTAG		tag;

		/*
		 * Until the transaction ends: CREATE INDEX keeps writers out, but not
		 * another one (pg_restore --jobs makes several of a table side by
		 * side), which gives the same rows other tails.
		 */
		SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId, RelationGetRelid(rel), TAILS_SUBID);
		(void) LockAcquire(&tag, ExclusiveLock, false, false);
		t.writer = MotWriterBegin(rel, NULL, GetCurrentCommandId(true));
		MotWriterLocate(t.writer);
		/* what this command has stored as well */
		t.writer->view.command = MOT_COMMAND_MAX;
	}
	MotKeyBufferInit(&t.key, CurrentMemoryContext);
	initStringInfo(&t.tail);
	initStringInfo(&t.bytes);
	if (index->key->ranked)
	{
		compute_ranked(&t, cxt);
		MemoryContextDelete(cxt);
		MotWriterEnd(t.writer);
		return;
	}
	oldcxt = MemoryContextSwitchTo(cxt);
	mot_build_rows(MotSession(), &build, index->relation->table, NULL);
	while (mot_build_next(&build, &row, &version))
	{
		if (beside)
			amend_row(&t, row);
		else
			update_row(&t, row, version);
		if (++n % BATCH == 0)
		{
			MemoryContextReset(cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	if (beside)
		MotLooseViewRelease();
	else
		MotWriterEnd(t.writer);
}
