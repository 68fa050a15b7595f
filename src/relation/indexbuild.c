/*-------------------------------------------------------------------------
 *
 * indexbuild.c
 *	  An index of the rows that are there: CREATE INDEX, and what ALTER TABLE
 *	  has stored anew.
 *
 * Keys are sorted first, and the tree is built from its leaves (keysort.c).
 * Duplicates raise what heap raises.  What is built beside writers is not sorted:
 * they have put keys into it already (mot_index_set_behind).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "faults.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "relation/keysort.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "xact/xact.h"

/* rows between two looks for an interrupt, and resets of the build's memory */
#define BUILD_BATCH 1024

/* whose keys are made */
typedef struct RowKeys
{
	Relation	rel;
	MotIndex   *index;
	bool		compute;
} RowKeys;

static void check_unique(RowKeys *keys, const mot_view *view);

/* two rows have the same key */
static void
raise_not_unique(Relation rel, MotIndex *index, const mot_view *view, mot_row *row)
{
	const mot_version *version = mot_row_newest(MotSession(), row);

	/* beside writers it may have been deleted since */
	if (version == NULL)
		version = mot_row_visible(MotSession(), view, index->relation->table, row);
	if (version == NULL)
		elog(ERROR, "a row of table \"%s\" is gone while an index is built", RelationGetRelationName(rel));
	MotRaiseNotUnique(rel, index, version);
}

void
MotRaiseNulls(Relation rel, AttrNumber attnum)
{
	ereport(ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("column \"%s\" of relation \"%s\" contains null values",
					NameStr(TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attname),
					RelationGetRelationName(rel)),
			 errtablecol(rel, attnum)));
}

static unsigned
append_key(void *arg, const mot_version *version, MotKeyBuffer *key)
{
	RowKeys    *keys = arg;
	MotIndex   *index = keys->index;

	MotRowDeform(index->desc, version, MotIndexColumns(index), index->check_values, index->check_isnull);
	if (keys->compute)
		return MotIndexComputeKey(index, index->check_values, index->check_isnull, key);
	/* ADD PRIMARY KEY has it built before the server looks for nulls */
	for (int i = 0; i < index->key->ncolumns; i++)
	{
		AttrNumber	attnum = index->key->columns[i].attnum;

		if (unlikely(!index->key->columns[i].nullable && index->check_isnull[attnum - 1]))
			MotRaiseNulls(keys->rel, attnum);
	}
	return MotKeyOfRow(index->key, MotVersionTail(index->desc, version), index->check_values, index->check_isnull, key);
}

/* A key for every row as it is now.  The keys are sorted first: see keysort.c. */
void
MotIndexBuild(Relation rel, MotIndex *index, bool compute)
{
	mot_view	view = MotLooseView();
	RowKeys		keys = {rel, index, compute};
	mot_build	build;
	mot_row    *row;
	mot_row    *other;
	mot_status	status;

	mot_build_begin(MotSession(), &build, index->handle.index);
	status = MotKeySortRows(&build, index->handle.index, false, index->key, append_key, &keys,
							MotKeySortInterrupts, NULL, &other, &row);
	if (status == MOT_DUPLICATE)
		raise_not_unique(rel, index, &view, row);
	MotRaiseStatus(status, rel);
	if (index->deferrable)
		check_unique(&keys, &view);
	MotLooseViewRelease();
}

/* A key for every row that has been there before the writers began to keep the index. */
void
MotIndexCatchUp(Relation rel, MotIndex *index)
{
	mot_session *session;
	RowKeys		keys = {rel, index, false};
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT index build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	MotKeyBuffer key;
	mot_build	rows;
	mot_row    *row;
	mot_row    *other;
	const mot_version *version;
	mot_status	status;
	uint64		n = 0;

	MotKeyBufferInit(&key, CurrentMemoryContext);
	/* no entry that a row leaves from now on is dropped before we are through */
	(void) MotLooseView();
	session = MotSession();
	mot_build_rows(session, &rows, index->relation->table, NULL);
	oldcxt = MemoryContextSwitchTo(cxt);
	while (mot_build_next(&rows, &row, &version))
	{
		unsigned	flags;

		MOT_FAULT("index-catch-up");
		MotKeyBufferReset(&key);
		flags = append_key(&keys, version, &key);
		while ((status = mot_index_catch_up(session, &index->handle, row, key.data, key.len,
											flags, index->unique, &other)) == MOT_BUSY)
			MotWaitForKey(rel);
		if (status == MOT_DUPLICATE)
			MotRaiseNotUnique(rel, index, version);
		MotRaiseStatus(status, rel);
		if (++n % BUILD_BATCH == 0)
		{
			MemoryContextReset(cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
	MotLooseViewRelease();
	MemoryContextDelete(cxt);
}

/* The engine does not ask that of a deferrable key, which has just been built. */
static void
check_unique(RowKeys *keys, const mot_view *view)
{
	mot_session *session = MotSession();
	mot_cursor *cursor = palloc(mot_cursor_size());
	MotKeyBuffer last;
	MotKeyBuffer key;
	mot_entry	entry;
	mot_row    *twice = NULL;

	MotKeyBufferInit(&last, CurrentMemoryContext);
	MotKeyBufferInit(&key, CurrentMemoryContext);
	MotRaiseStatus(mot_entries_open(session, cursor, keys->index->handle.index, NULL, NULL, false), keys->rel);
	while (twice == NULL && mot_entries_next(cursor, &entry))
	{
		if (entry.len == last.len && memcmp(entry.key, last.data, last.len) == 0)
		{
			MotKeyBufferReset(&key);
			if (append_key(keys, mot_row_newest(session, entry.row), &key) == 0)
				twice = entry.row;
		}
		MotKeyBufferSet(&last, entry.key, entry.len);
	}
	mot_cursor_close(cursor);
	if (twice != NULL)
		raise_not_unique(keys->rel, keys->index, view, twice);
}

/*
 * REINDEX CONCURRENTLY has come to an end before its last step: nobody keeps the
 * index any more, and the definition is about to forget it.
 */
void
MotIndexesDropDead(Relation rel, mot_table *table)
{
	for (unsigned i = MotIsOrdinary(rel) ? mot_table_index_count(table) : 0; i-- > 0;)
	{
		mot_index  *index = mot_table_index_at(table, i);
		HeapTuple	tuple = index == NULL ? NULL :
		SearchSysCache1(INDEXRELID, ObjectIdGetDatum(mot_index_host_id(index)));

		if (!HeapTupleIsValid(tuple))
			continue;
		if (!((Form_pg_index) GETSTRUCT(tuple))->indislive)
			MotStorageDropIndex(MotStorageNumber(rel), mot_index_host_id(index));
		ReleaseSysCache(tuple);
	}
}

/* (As it is new, it has all that anybody could see in the table.) */
void
MotStorageFillIndexes(Relation rel)
{
	MotRelation *mr = MotRelationGet(rel);

	Assert(MotStorageIsNew(MotStorageNumber(rel)));
	for (int i = 0; i < mr->nindexes; i++)
		MotIndexBuild(rel, &mr->indexes[i], false);
}

/*
 * ALTER TABLE of an ordinary table has been done: have indexes that the server has only given
 * another name, or whose column may be null now, which their keys have no
 * place for, or that are deferrable now, built (anew).
 */
void
MotStorageMendIndexes(Relation rel)
{
	List	   *oids = RelationGetIndexList(rel);

	foreach_oid(oid, oids)
	{
		Relation	indexrel = index_open(oid, AccessShareLock);
		mot_index  *index;
		MotKey	   *key;

		if (!indexrel->rd_index->indisvalid)
		{
			index_close(indexrel, AccessShareLock);
			continue;
		}
		index = mot_table_index(MotRelationGet(rel)->table, oid);
		key = MotKeyCreate(rel, indexrel);
		if (index == NULL || (MotKeyForm(key) & ~mot_index_form(index) & (MOT_FORM_NULLABLE | MOT_FORM_COLLATED)) != 0 ||
			mot_index_is_unique(index) != MotIndexIsUnique(indexrel))
		{
			if (index != NULL)
			{
				MotStorageDropIndex(MotStorageNumber(rel), oid);
				MotRelationForgetTable(MotStorageNumber(rel));
			}
			MotStorageCreateIndex(rel, indexrel);
		}
		index_close(indexrel, AccessShareLock);
	}
	list_free(oids);
}
