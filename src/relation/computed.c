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
 * tails, by updates that change nothing else.
 *
 * CREATE INDEX CONCURRENTLY does so beside writers, to none of whom that may be a change: a
 * version gets its entry where it is and keeps its number (mot_row_amend), row by row, with
 * a record of its own.  A tail that has an entry which no index asks for does no harm, so
 * nothing is taken back should the index come to nothing.  Writers compute anew whatever they
 * store meanwhile (computes_beside), and have the row before they look what it was: then it stays as it is.  A row
 * that somebody has is waited for, as he may give it back as it was.
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
#include "utils/memutils.h"
#include "xact/xact.h"

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

bool
MotIndexComputeKey(MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key, bool *has_null)
{
	Datum		key_values[INDEX_MAX_KEYS];
	bool		key_isnull[INDEX_MAX_KEYS];

	if (!MotIndexCompute(index, values, isnull, key_values, key_isnull))
		return false;
	MotKeyBufferReset(key);
	MotKeyFromRow(index->key, key_values, key_isnull, key, has_null);
	return true;
}

/* an entry behind what there is; its key is set down in "key" meanwhile */
static void
add_entry(StringInfo tail, MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	MotTailEntry entry = {index->indexoid};
	bool		has_null;

	if (!MotIndexComputeKey(index, values, isnull, key, &has_null))
		return;
	entry.len = (uint16) key->len;
	entry.has_null = has_null;
	appendBinaryStringInfoNT(tail, (char *) &entry, offsetof(MotTailEntry, key));
	appendBinaryStringInfoNT(tail, (char *) key->data, key->len);
	while (tail->len % sizeof(int32) != 0)
		appendStringInfoCharMacro(tail, 0);
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

/* The tail of a row that is about to be stored, into writer->tail. */
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
			if (mr->indexes[i].key->computed)
				add_entry(&tail, &mr->indexes[i], values, isnull, &key);
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

/* The row's tail with another entry of the index, or none; false: it is as it was. */
static bool
change_tail(StringInfo tail, const MotTail *old, MotIndex *index, const Datum *values, const bool *isnull,
			MotKeyBuffer *key)
{
	const MotTailEntry *had = MotTailFind(old, index->indexoid);
	const MotTailEntry *entry = NULL;
	const MotTailEntry *has;

	resetStringInfo(tail);
	begin_tail(tail);
	while ((entry = MotTailNext(old, entry)) != NULL)
		if (entry != had)
			appendBinaryStringInfoNT(tail, (char *) entry, INTALIGN(offsetof(MotTailEntry, key) + entry->len));
	add_entry(tail, index, values, isnull, key);
	end_tail(tail);
	has = tail->len == 0 ? NULL : MotTailFind((MotTail *) tail->data, index->indexoid);
	if (has == NULL || had == NULL)
		return has != had;
	return has->len != had->len || memcmp(has->key, had->key, had->len) != 0;
}

static unsigned
bits_with_tail(const mot_version *version, StringInfo tail)
{
	unsigned	bits = mot_version_host_bits(version);

	return tail->len > 0 ? bits | MOT_ROW_HAS_TAIL : bits & ~MOT_ROW_HAS_TAIL;
}

/* the row as it is, but for its tail */
static void
store_tail(MotWriter *writer, mot_row *row, const mot_version *version, StringInfo tail)
{
	size_t		size = MotRowColumnsSize(writer->mr->desc, mot_version_host_bits(version), mot_version_data(version));
	const mot_version *newest;
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status;
	void	   *data;

	if (MotWriterLock(writer, row, version, MOT_MODE_NO_KEY_UPDATE, MOT_LOCK_WAIT, &newest) != MOT_LOCKED)
		elog(ERROR, "a row of table \"%s\" is changed while an index is built", RelationGetRelationName(writer->rel));
	while ((status = mot_row_update(writer->session, writer->mr->table, row, writer->command,
									bits_with_tail(version, tail), size + tail->len, MOT_KEYS_CHANGE, &data)) == MOT_BUSY)
		MotWaitForHolder(writer->rel, &wait);
	MotWaitDone(writer->rel, &wait);
	MotRaiseStatus(status, writer->rel);
	memcpy(data, mot_version_data(version), size);
	memcpy((char *) data + size, tail->data, tail->len);
}

/* All rows say what the index, which is about to be built, has of them. */
void
MotComputeIndex(Relation rel, MotIndex *index)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT computed keys", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	MotWriter  *writer = MotWriterBegin(rel, NULL, GetCurrentCommandId(true));
	TupleDesc	desc = index->relation->desc;
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	MotKeyBuffer key;
	StringInfoData tail;
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	uint64		n = 0;

	MotWriterLocate(writer);
	/* what this command has stored as well */
	writer->view.command = MOT_COMMAND_MAX;
	MotKeyBufferInit(&key, CurrentMemoryContext);
	initStringInfo(&tail);
	oldcxt = MemoryContextSwitchTo(cxt);
	mot_build_rows(writer->session, &build, index->relation->table, NULL);
	while (mot_build_next(&build, &row, &version))
	{
		MotRowDeform(desc, version, desc->natts, values, isnull);
		if (change_tail(&tail, MotRowTail(desc, mot_version_host_bits(version), mot_version_data(version)),
						index, values, isnull, &key))
			store_tail(writer, row, version, &tail);
		if (++n % BATCH == 0)
		{
			MemoryContextReset(cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	MotWriterEnd(writer);
}

/* what one row after the other takes */
typedef struct Beside
{
	Relation	rel;
	MotIndex   *index;
	Datum	   *values;
	bool	   *isnull;
	MotKeyBuffer key;
	StringInfoData tail;
	StringInfoData bytes;
} Beside;

/* The row's newest version says what the index has of it, whoever is at it. */
static void
amend_row(Beside *b, mot_row *row)
{
	MotRelation *mr = b->index->relation;
	MotWait		wait = MOT_WAIT_INIT;
	mot_status	status = MOT_CHANGED;
	const mot_version *version;

	while (status != MOT_OK && (version = mot_row_newest(MotSession(), row)) != NULL)
	{
		const MotTail *old = MotRowTail(mr->desc, mot_version_host_bits(version), mot_version_data(version));
		size_t		size = MotRowColumnsSize(mr->desc, mot_version_host_bits(version), mot_version_data(version));

		/* the statement that stored it has done so */
		if (MotTailFind(old, b->index->indexoid) != NULL)
			break;
		MotRowDeform(mr->desc, version, mr->desc->natts, b->values, b->isnull);
		if (!change_tail(&b->tail, old, b->index, b->values, b->isnull, &b->key))
			break;
		resetStringInfo(&b->bytes);
		appendBinaryStringInfoNT(&b->bytes, mot_version_data(version), size);
		appendBinaryStringInfoNT(&b->bytes, b->tail.data, b->tail.len);
		status = MotAmendRow(mr->table, row, version, size, bits_with_tail(version, &b->tail),
							 b->bytes.data, b->bytes.len);
		if (status == MOT_BUSY)
			MotWaitForHolder(b->rel, &wait);
		else if (status != MOT_CHANGED)
			MotRaiseStatus(status, b->rel);
	}
	MotWaitDone(b->rel, &wait);
}

/* The same beside writers, all of whom keep the index. */
void
MotComputeBeside(Relation rel, MotIndex *index)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT computed keys", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	int			natts = index->relation->desc->natts;
	Beside		b = {rel, index, palloc(natts * sizeof(Datum)), palloc(natts * sizeof(bool))};
	mot_build	build;
	mot_row    *row;
	const mot_version *version;
	uint64		n = 0;

	MotKeyBufferInit(&b.key, CurrentMemoryContext);
	initStringInfo(&b.tail);
	initStringInfo(&b.bytes);
	/* what is read of a row stays where it is while we are at it */
	(void) MotLooseView();
	mot_build_rows(MotSession(), &build, index->relation->table, NULL);
	oldcxt = MemoryContextSwitchTo(cxt);
	while (mot_build_next(&build, &row, &version))
	{
		MOT_FAULT("index-compute");
		amend_row(&b, row);
		if (++n % BATCH == 0)
		{
			MemoryContextReset(cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
	MotLooseViewRelease();
	MemoryContextDelete(cxt);
}
