/*-------------------------------------------------------------------------
 *
 * writer_steps.c
 *	  Rows that may come to nothing: INSERT ... ON CONFLICT, and what is stored first and
 *	  gets its keys one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "relation/internal.h"
#include "relation/ranked.h"
#include "utils/lsyscache.h"
#include "xact/xact.h"

mot_row *
MotWriterStore(MotWriter *writer, Datum *values, bool *isnull)
{
	uint64		taken;

	return MotWriterStoreRanked(writer, values, isnull, &values, &taken);
}

/* add_key's row is one that has been stored, and its values the writer's old ones */
static void
take_key(MotWriter *writer, const mot_version *version)
{
	MotWriterDeformOld(writer, version);
	if (!writer->mr->has_computed)
		return;
	resetStringInfo(&writer->tail);
	if (writer->old_tail != NULL)
		appendBinaryStringInfoNT(&writer->tail, (const char *) writer->old_tail, writer->old_tail->size);
}

bool
MotWriterKeyIsUnique(MotWriter *writer, MotIndex *index, mot_row *row, bool raise)
{
	const mot_version *version = mot_row_newest(writer->session, row);
	mot_status	status;
	mot_row    *other;

	if (version == NULL)
		return true;
	MotWriterLocate(writer);
	MotWriterDeformOld(writer, version);
	if (MotWriterOldKey(writer, index) != 0 || writer->old_key.len == 0)
		return true;
	while ((status = mot_index_rivals(writer->session, &index->handle, row, writer->old_key.data,
									  writer->old_key.len, &other)) == MOT_BUSY && raise)
		MotWaitForKey(writer->rel);
	if (status == MOT_DUPLICATE && raise)
		MotRaiseDuplicate(writer->rel, index, writer->old_values, writer->old_isnull);
	if (status != MOT_OK && status != MOT_BUSY && status != MOT_DUPLICATE)
		MotRaiseStatus(status, writer->rel);
	return status == MOT_OK;
}

/*
 * A key that the row has been stored with (MotWriterStoreRanked), unless it was taken: then it may
 * have a place no more.
 */
static bool
add_ranked_later(MotWriter *writer, MotIndex *index, mot_row *row, bool raise)
{
	unsigned	flags;
	mot_status	status;
	mot_row    *other;

	MotKeyBufferReset(&writer->key);
	flags = MotKeyOfRow(index->key, MotWriterTail(writer), NULL, NULL, &writer->key);
	if (writer->key.len == 0 ||
		mot_index_has_entry(writer->session, index->handle.index, row, writer->key.data, writer->key.len, flags))
		return true;
	if (!raise)
		return false;
	do
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		bool		same;

		if (!MotIndexCompute(index, writer->old_values, writer->old_isnull, values, isnull))
			elog(ERROR, "a row is not in index \"%s\" any more", get_rel_name(index->indexoid));
		MotRankLock(writer->rel);
		(void) MotRankKey(index, values, isnull, &writer->old_key);
		same = writer->old_key.len == writer->key.len &&
			memcmp(writer->old_key.data, writer->key.data, writer->key.len) == 0;
		status = !same ? MOT_CONFLICT_CHANGED :
			mot_index_add(writer->session, &index->handle, row, writer->key.data, writer->key.len, flags, &other);
		MotRankUnlock(writer->rel);
		if (status == MOT_BUSY)
			MotWaitForKey(writer->rel);
	} while (status == MOT_BUSY);
	if (status == MOT_DUPLICATE)
		MotRaiseDuplicate(writer->rel, index, writer->old_values, writer->old_isnull);
	MotRaiseStatus(status, writer->rel);
	return true;
}

bool
MotWriterAddKey(MotWriter *writer, MotIndex *index, mot_row *row, bool raise, bool *busy)
{
	const mot_version *version = mot_row_newest(writer->session, row);
	mot_status	status;
	mot_row    *other;

	MotWriterLocate(writer);
	if (version == NULL)
		elog(ERROR, "a row is gone while it is inserted");
	take_key(writer, version);
	*busy = false;
	if (unlikely(index->key->ranked))
		return add_ranked_later(writer, index, row, raise);
	if (raise)
	{
		MotWriterAddKeyOrRaise(writer, index, row, writer->old_values, writer->old_isnull);
		return true;
	}
	status = MotWriterTryKey(writer, index, row, writer->old_values, writer->old_isnull, &other);
	if (status == MOT_OK)
		return true;
	*busy = status == MOT_BUSY;
	if (status != MOT_BUSY && status != MOT_DUPLICATE)
		MotRaiseStatus(status, writer->rel);
	return false;
}

mot_row *
MotWriterFind(MotWriter *writer, List *arbiters, const Datum *values, const bool *isnull, mot_ts *found_ts)
{
	MotIndex   *index = NULL;
	mot_row    *row;
	const mot_version *version;

	/* (at SERIALIZABLE it would be a read) */
	if (IsolationUsesXactSnapshot())
		return NULL;
	MotWriterLocate(writer);
	if (unlikely(writer->view.snapshot < writer->mr->born))
		return NULL;
	for (int i = 0; i < writer->mr->nindexes && index == NULL; i++)
		if (writer->mr->indexes[i].unique && list_member_oid(arbiters, writer->mr->indexes[i].indexoid))
			index = &writer->mr->indexes[i];
	if (index == NULL || index->key->computed || index->key->blind)
		return NULL;
	MotKeyBufferReset(&writer->key);
	if (MotKeyOfRow(index->key, NULL, values, isnull, &writer->key) != 0 || writer->key.len == 0 ||
		mot_index_get(writer->session, &writer->view, &index->handle, writer->key.data, writer->key.len,
					  &row, &version) != MOT_OK ||
		!mot_version_same(mot_row_newest(writer->session, row), version))
		return NULL;
	*found_ts = mot_version_ts(version);
	return row;
}

mot_row *
MotWriterInsertOrFind(MotWriter *writer, List *arbiters, Datum *values, bool *isnull,
					  mot_row **conflict, mot_ts *conflict_ts, MotIndex **conflict_index)
{
	Datum	   *given = values;
	bool		measured = false;
	size_t		size;
	unsigned	host_bits;

	MotWriterLocate(writer);

	for (;;)
	{
		MotRelation *mr;
		mot_mark	mark;
		mot_row    *row;
		mot_status	status = MOT_OK;

		if (!measured || unlikely(writer->mr->has_ranked))
			values = MotWriterMeasure(writer, given, isnull, NULL, &size, &host_bits);
		measured = true;
		mr = writer->mr;
		mark = mot_txn_mark(writer->session);
		row = MotWriterStoreRow(writer, values, isnull, size, host_bits);

		/*
		 * the arbiters first: the others' violations count only if those have
		 * none
		 */
		for (int pass = 0; pass < 2 && status == MOT_OK; pass++)
		{
			for (int i = 0; i < mr->nindexes && status == MOT_OK; i++)
			{
				MotIndex   *index = &mr->indexes[i];
				bool		arbiter = index->unique &&
				(arbiters == NIL || list_member_oid(arbiters, index->indexoid));

				if (arbiter != (pass == 0))
					continue;

				*conflict_index = index;
				status = MotWriterTryKey(writer, index, row, values, isnull, conflict);
				if (status == MOT_DUPLICATE && !arbiter)
					MotRaiseDuplicate(writer->rel, index, values, isnull);
			}
		}

		if (status != MOT_OK)
		{
			if (status != MOT_DUPLICATE && status != MOT_BUSY)
				MotRaiseStatus(status, writer->rel);
			mot_txn_take_back(writer->session, mark);
		}
		if (unlikely(writer->ranks))
			MotRankUnlock(writer->rel);
		writer->ranks = false;
		if (status == MOT_OK)
		{
			if (unlikely(XLogLogicalInfoActive()))
				MotLogicalInsert(writer, row);
			return row;
		}
		if (status == MOT_DUPLICATE)
		{
			*conflict_ts = mot_rival_ts(writer->session);
			return NULL;
		}

		MotWaitForKey(writer->rel);
		MotWriterLocate(writer);
	}
}
