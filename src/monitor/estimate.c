/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  mot_estimate(regclass): the memory that a table would take, or takes.
 *
 * Rows are formed as they would be stored, and keys as indexes would have them, and the
 * engine says what becomes of them (engine/estimate.c).  A small table is read as a
 * whole; of a larger one as many blocks as ANALYZE would read, whose rows all count, and
 * of which so many, drawn evenly, stand for all in the indexes.
 *
 * What ALTER TABLE ... SET ACCESS METHOD mot would refuse of indexes is refused here.
 *
 * Functions in indexes are called as the server calls them in a table's maintenance: in
 * the name of its owner, without what that could do to the session.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_inherits.h"
#include "common/pg_prng.h"
#include "compat/acl.h"
#include "compat/attribute.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mot.h"
#include "relation/keycodec.h"
#include "relation/relation.h"
#include "relation/rowcodec.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mot_estimate);

#define BATCH 1024

typedef struct EstimatedIndex
{
	Relation	rel;
	MotKey	   *key;
	bool		unique;
	IndexInfo  *info;			/* of one that is computed */
	mot_sorted_entry *entries;	/* of the sample's rows; no bytes: it has none */
	MotKeyBuffer buf;			/* the key of the row at hand; empty: none */
	unsigned	flags;
} EstimatedIndex;

typedef struct Estimate
{
	Relation	rel;
	TupleDesc	desc;
	MotRowShape shape;
	double		fraction;		/* of the table that is read */
	int			room;			/* rows of the sample */
	MemoryContext cxt;
	MemoryContext row_cxt;
	EState	   *estate;
	TupleTableSlot *slot;
	int			nindexes;
	EstimatedIndex *indexes;
	bool		computes;		/* some index is computed */
	pg_prng_state random;

	uint64		rows;
	double		columns;		/* bytes of them, and of tails */
	mot_row_estimate stored;
} Estimate;

/* ------------------------------------------------------------------ indexes */

static void
open_index(Estimate *e, EstimatedIndex *index, Oid oid)
{
	index->rel = index_open(oid, AccessShareLock);
	if (e->rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE)
		MotRequireBtree(e->rel, index->rel);
	index->key = MotKeyCreateFor(e->rel, index->rel);
	index->unique = MotIndexIsUnique(index->rel);
	if (index->key->computed)
	{
		index->info = BuildIndexInfo(index->rel);
		e->computes = true;
	}
	index->entries = palloc0((Size) e->room * sizeof(mot_sorted_entry));
	MotKeyBufferInit(&index->buf, e->cxt);
}

/* The key of the row in the slot; in the memory of the row at hand. */
static void
form_key(Estimate *e, EstimatedIndex *index)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	MotKeyBufferReset(&index->buf);
	index->flags = 0;
	if (index->info == NULL)
	{
		index->flags = MotKeyFromRow(index->key, e->slot->tts_values, e->slot->tts_isnull, &index->buf);
		return;
	}
	GetPerTupleExprContext(e->estate)->ecxt_scantuple = e->slot;
	if (index->info->ii_Predicate != NIL)
	{
		if (index->info->ii_PredicateState == NULL)
			index->info->ii_PredicateState = ExecPrepareQual(index->info->ii_Predicate, e->estate);
		if (!ExecQual(index->info->ii_PredicateState, GetPerTupleExprContext(e->estate)))
			return;
	}
	FormIndexDatum(index->info, e->slot, e->estate, values, isnull);
	index->flags = MotKeyFromRow(index->key, values, isnull, &index->buf);
}

static void
keep_key(Estimate *e, EstimatedIndex *index, int i)
{
	mot_sorted_entry *entry = &index->entries[i];
	bool		distinct = index->unique && !(index->flags & MOT_KEY_DISTINCT);
	char	   *bytes;

	if (entry->bytes != NULL)
		pfree(unconstify(void *, entry->bytes));
	entry->bytes = NULL;
	if (index->buf.len == 0)
		return;
	bytes = MemoryContextAlloc(e->cxt, MOT_ENTRY_MAX - MOT_MAX_KEY + index->buf.len);
	memcpy(bytes, index->buf.data, index->buf.len);
	entry->bytes = bytes;
	entry->len = mot_entry_estimated(bytes, index->buf.len, distinct,
									 (e->columns + (double) e->rows * MOT_ESTIMATED_HEAD) / e->fraction);
}

static int
compare_entries(const void *a, const void *b)
{
	const mot_sorted_entry *x = a;
	const mot_sorted_entry *y = b;
	int			order;

	/* those of rows that have none come last */
	if (x->bytes == NULL || y->bytes == NULL)
		return (x->bytes == NULL) - (y->bytes == NULL);
	order = memcmp(x->bytes, y->bytes, Min(x->len, y->len));
	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* -------------------------------------------------------------------- rows */

/* of the row at hand, whose computed keys have been formed */
static size_t
tail_size(Estimate *e)
{
	size_t		size = sizeof(MotTail);

	for (int i = 0; i < e->nindexes; i++)
		if (e->indexes[i].info != NULL && e->indexes[i].buf.len > 0)
			size += INTALIGN(offsetof(MotTailEntry, key) + e->indexes[i].buf.len);
	return size > sizeof(MotTail) ? MAXALIGN(size) : 0;
}

/* which one of the sample's it becomes, or -1 */
static int
place_in_sample(Estimate *e)
{
	uint64		place = e->rows < (uint64) e->room ? e->rows : pg_prng_uint64_range(&e->random, 0, e->rows);

	return place < (uint64) e->room ? (int) place : -1;
}

static void
add_row(Estimate *e, HeapTuple tuple, TupleDesc read)
{
	Datum	   *values = e->slot->tts_values;
	bool	   *isnull = e->slot->tts_isnull;
	int			place = place_in_sample(e);
	size_t		size;
	unsigned	host_bits;

	/* columns that are dropped, or virtual, are nulls of the row */
	ExecClearTuple(e->slot);
	for (int i = 0, n = 0; i < e->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(e->desc, i);

		isnull[i] = true;
		values[i] = (Datum) 0;
		if (!att->attisdropped && !MotIsVirtualColumn(att))
			values[i] = SPI_getbinval(tuple, read, ++n, &isnull[i]);
	}
	MotRowFetch(e->desc, values, isnull);
	ExecStoreVirtualTuple(e->slot);

	(void) MotRowMeasure(&e->shape, values, isnull, &size, &host_bits);
	for (int i = 0; i < e->nindexes; i++)
		if (place >= 0 || e->indexes[i].info != NULL)
			form_key(e, &e->indexes[i]);
	if (e->computes)
		size += tail_size(e);
	for (int i = 0; place >= 0 && i < e->nindexes; i++)
		keep_key(e, &e->indexes[i], place);
	mot_row_estimate_add(&e->stored, size);
	e->columns += (double) size;
	e->rows++;
}

static char *
query_of(Estimate *e)
{
	StringInfoData query;
	const char *separator = "SELECT ";

	initStringInfo(&query);
	for (int i = 0; i < e->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(e->desc, i);

		if (att->attisdropped || MotIsVirtualColumn(att))
			continue;
		appendStringInfo(&query, "%s%s", separator, quote_identifier(NameStr(att->attname)));
		separator = ", ";
	}
	appendStringInfo(&query, "%s FROM ONLY %s", *separator == 'S' ? separator : "",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(e->rel)),
												RelationGetRelationName(e->rel)));
	if (e->fraction < 1)
		appendStringInfo(&query, " TABLESAMPLE pg_catalog.system (%.17g) REPEATABLE (0)", 100 * e->fraction);
	return query.data;
}

static void
read_rows(Estimate *e)
{
	SPIParseOpenOptions options = {.read_only = true};
	Portal		portal;
	MemoryContext oldcxt;

	SPI_connect();
	portal = SPI_cursor_parse_open(NULL, query_of(e), &options);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, BATCH);
		if (SPI_processed == 0)
			break;
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			oldcxt = MemoryContextSwitchTo(e->row_cxt);
			add_row(e, SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
			MemoryContextSwitchTo(oldcxt);
			MemoryContextReset(e->row_cxt);
			ResetPerTupleExprContext(e->estate);
		}
		SPI_freetuptable(SPI_tuptable);
		CHECK_FOR_INTERRUPTS();
	}
	SPI_cursor_close(portal);
	SPI_finish();
}

/* ------------------------------------------------------------------ answers */

static void
put(ReturnSetInfo *rsinfo, Oid table, Oid object, const char *part, double entries, double bytes)
{
	Datum		values[] = {
		ObjectIdGetDatum(table), ObjectIdGetDatum(object), CStringGetTextDatum(part),
		Int64GetDatum((int64) rint(entries)), Int64GetDatum((int64) rint(bytes))
	};
	bool		nulls[lengthof(values)] = {0};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
answer(Estimate *e, ReturnSetInfo *rsinfo)
{
	Oid			relid = RelationGetRelid(e->rel);
	double		rows = (double) e->rows / e->fraction;
	double		columns = e->columns / e->fraction;
	double		heads = rows * MOT_ESTIMATED_HEAD;
	double		pages = mot_row_estimate_bytes(&e->stored, 1 / e->fraction);
	int			sample = (int) Min(e->rows, (uint64) e->room);

	put(rsinfo, relid, relid, "columns", rows, columns);
	put(rsinfo, relid, relid, "heads", rows, heads);
	put(rsinfo, relid, relid, "rounding", rows, Max(0, pages - columns - heads));
	for (int i = 0; i < e->nindexes; i++)
	{
		EstimatedIndex *index = &e->indexes[i];
		int			n = 0;
		double		total;

		qsort(index->entries, sample, sizeof(mot_sorted_entry), compare_entries);
		while (n < sample && index->entries[n].bytes != NULL)
			n++;
		total = sample > 0 ? rows * n / sample : 0;
		put(rsinfo, relid, RelationGetRelid(index->rel), "index", total,
			mot_index_estimate(MotEngine, index->entries, n, total));
	}
}

/* may the user know what is in all rows? */
static void
check_rights(Oid relid)
{
	AclResult	result;

	if (object_ownercheck(RelationRelationId, relid, GetUserId()))
		return;
	result = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);
	if (result == ACLCHECK_OK && check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		result = ACLCHECK_NO_PRIV;
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(relid)), get_rel_name(relid));
}

static void
estimate_table(Oid relid, int sample, ReturnSetInfo *rsinfo)
{
	Estimate	e = {.room = sample,.fraction = 1};
	Oid			user;
	int			context;
	int			nest = NewGUCNestLevel();
	MemoryContext oldcxt;
	List	   *oids;

	e.cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT estimate", ALLOCSET_DEFAULT_SIZES);
	e.row_cxt = AllocSetContextCreate(e.cxt, "MOT estimate's row", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(e.cxt);
	e.rel = table_open(relid, AccessShareLock);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(e.rel->rd_rel->relowner, context | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);

	e.desc = RelationGetDescr(e.rel);
	MotRowShapeInit(&e.shape, e.desc);
	if (e.rel->rd_tableam != NULL)
	{
		BlockNumber blocks = RelationGetNumberOfBlocks(e.rel);

		if (blocks > (BlockNumber) sample)
			e.fraction = (double) sample / blocks;
	}
	e.estate = CreateExecutorState();
	e.slot = MakeSingleTupleTableSlot(e.desc, &TTSOpsVirtual);
	pg_prng_seed(&e.random, 1);
	mot_row_estimate_begin(MotEngine, &e.stored);
	oids = RelationGetIndexList(e.rel);
	e.indexes = palloc0(Max(list_length(oids), 1) * sizeof(EstimatedIndex));
	foreach_oid(oid, oids)
		open_index(&e, &e.indexes[e.nindexes++], oid);

	read_rows(&e);
	answer(&e, rsinfo);

	ExecDropSingleTupleTableSlot(e.slot);
	FreeExecutorState(e.estate);
	for (int i = 0; i < e.nindexes; i++)
		index_close(e.indexes[i].rel, AccessShareLock);
	AtEOXact_GUC(false, nest);
	SetUserIdAndSecContext(user, context);
	table_close(e.rel, AccessShareLock);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(e.cxt);
}

Datum
mot_estimate(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	int			sample = PG_GETARG_INT32(1);
	char		kind = get_rel_relkind(relid);

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	if (sample < 1000 || sample > 1000000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of rows to look at must be between 1000 and 1000000")));
	if (kind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW && kind != RELKIND_PARTITIONED_TABLE &&
		!(kind == RELKIND_FOREIGN_TABLE && MotIsMotTable(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table that could be memory-optimized", get_rel_name(relid))));
	check_rights(relid);

	if (kind != RELKIND_PARTITIONED_TABLE)
		estimate_table(relid, sample, (ReturnSetInfo *) fcinfo->resultinfo);
	else
		foreach_oid(leaf, find_all_inheritors(relid, AccessShareLock, NULL))
	{
		kind = get_rel_relkind(leaf);
		if (kind != RELKIND_RELATION && !(kind == RELKIND_FOREIGN_TABLE && MotIsMotTable(leaf)))
			continue;
		check_rights(leaf);
		estimate_table(leaf, sample, (ReturnSetInfo *) fcinfo->resultinfo);
	}
	return (Datum) 0;
}
