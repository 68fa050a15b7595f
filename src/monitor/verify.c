/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  mot_verify(regclass): does what is in memory of a table agree with
 *	  itself?
 *
 * Writers are kept out by a share lock on the table, for as long as the
 * transaction lasts.  Then every row (as it is newest, changes of this
 * transaction included) has to have its entry in every index, every index has
 * to be sound as a tree and to have no other entries than those of rows, and
 * the table has to count as many rows as there are.
 *
 * Entries of deleted rows and of keys that a row had before are in order: they
 * await reclamation, which goes on while we look.  What it is just taking away
 * can look damaged.  So when something is found, we give it time and look
 * again, and report what was wrong every time.
 *
 * A standby's only writer is replay, which asks for no lock.  There a look that
 * finds something counts only if no transaction was replayed meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_index.h"
#include "compat/acl.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mot.h"
#include "relation/relation.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "wal/wal.h"
#include "xact/xact.h"

PG_FUNCTION_INFO_V1(mot_verify);

#define LOOKS		4			/* before something counts as damage */
#define LOOK_PAUSE	700000L		/* us; the maintenance worker reclaims every
								 * second */
#define BATCH		256			/* rows between two resets of memory */

/* what is found of the table (index NULL) or of one index */
typedef struct Finding
{
	Oid			oid;
	MotIndex   *index;
	int64		entries;
	int64		problems;
	char	   *first;			/* the first problem */

	/* indexes */
	int64		standing;		/* entries that are the key of their row */
	int64		stale;			/* the table's rows under an older key */
	int64		dead;			/* of rows that are deleted */
	uint8	   *last_key;		/* of the entry before */
	size_t		last_len;
} Finding;

typedef struct Verification
{
	Relation	rel;
	MotRelation *mr;
	mot_session *session;
	int			n;
	Finding    *found;			/* [0] the table, then indexes */
	MemoryContext result_cxt;
	MemoryContext row_cxt;
	MotKeyBuffer key;
	int64		rows;
} Verification;

static void look(Verification *v);
static bool look_at_rows(Verification *v);
static void look_at_index(Verification *v, Finding *f, bool nothing_owed);
static void look_at_entry(Verification *v, Finding *f, const mot_entry *entry);
static void problem(Verification *v, Finding *f, int64 count, const char *what);
static const char *row_name(Verification *v, const mot_row *row);
static Verification *begin(Relation rel);
static Relation open_table(Oid relid, bool standby);
static uint64 replayed_so_far(void);

Datum
mot_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		standby = RecoveryInProgress();
	Relation	rel;
	Verification *v;

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	rel = open_table(PG_GETARG_OID(0), standby);
	v = begin(rel);

	for (int i = 1;; i++)
	{
		uint64		replayed = standby ? replayed_so_far() : 0;
		bool		clean = true;

		look(v);
		for (int j = 0; j < v->n; j++)
			clean = clean && v->found[j].problems == 0;
		if (clean)
			break;
		if (i >= LOOKS)
		{
			if (!standby || replayed_so_far() == replayed)
				break;
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cannot verify \"%s\" while changes are being replayed",
							RelationGetRelationName(rel)),
					 errhint("Stop replay with pg_wal_replay_pause() meanwhile, or verify the table on the primary.")));
		}
		pg_usleep(LOOK_PAUSE);
		CHECK_FOR_INTERRUPTS();
	}

	for (int i = 0; i < v->n; i++)
	{
		Finding    *f = &v->found[i];
		Datum		values[4];
		bool		nulls[4] = {0};

		values[0] = ObjectIdGetDatum(f->oid);
		values[1] = Int64GetDatum(f->entries);
		values[2] = Int64GetDatum(f->problems);
		if (f->first != NULL)
			values[3] = CStringGetTextDatum(f->first);
		else
			nulls[3] = true;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	table_close(rel, NoLock);
	return (Datum) 0;
}

/*
 * A number that is another one when a transaction has been replayed, or
 * begun to be, since it was asked for before.
 */
static uint64
replayed_so_far(void)
{
	mot_memory_report report;

	MotReplayAwait();
	mot_memory_report_get(MotEngine, &report);
	return report.clock;
}

/*
 * The lock stays until the end of the transaction: the answer holds until then.
 * On a standby one may have no stronger one than readers; it keeps the table from
 * being dropped.
 */
static Relation
open_table(Oid relid, bool standby)
{
	Relation	rel;

	/* before waiting for the lock, and letting others wait */
	if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	rel = relation_open(relid, standby ? AccessShareLock : ShareLock);
	if (!MotIsMotTable(RelationGetRelid(rel)) && !MotIsOrdinary(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a memory-optimized table", RelationGetRelationName(rel))));
	return rel;
}

static Verification *
begin(Relation rel)
{
	Verification *v = palloc0(sizeof(Verification));
	List	   *oids;

	v->rel = rel;
	v->mr = MotRelationGet(rel);
	v->session = MotSession();
	v->result_cxt = CurrentMemoryContext;
	v->row_cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT verification", ALLOCSET_DEFAULT_SIZES);
	MotKeyBufferInit(&v->key, CurrentMemoryContext);

	oids = RelationGetIndexList(rel);
	v->n = 1 + list_length(oids);
	v->found = palloc0(v->n * sizeof(Finding));
	v->found[0].oid = RelationGetRelid(rel);
	foreach_oid(relid, oids)
	{
		Finding    *f = &v->found[1 + foreach_current_index(relid)];

		f->oid = relid;
		f->index = MotRelationIndex(v->mr, f->oid);
		f->last_key = palloc(MOT_MAX_KEY);
	}
	return v;
}

static bool
is_valid(Oid indexoid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	bool		valid = HeapTupleIsValid(tuple) && ((Form_pg_index) GETSTRUCT(tuple))->indisvalid;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return valid;
}

static void
look(Verification *v)
{
	bool		changed;
	uint64		owed;

	for (int i = 0; i < v->n; i++)
	{
		Finding    *f = &v->found[i];

		f->entries = f->problems = f->standing = f->stale = f->dead = 0;
		f->first = NULL;
	}

	/* before a snapshot of ours could be what keeps things owed */
	owed = mot_reclaim_all(v->session);

	(void) MotLooseView();
	changed = look_at_rows(v);
	for (int i = 1; i < v->n; i++)
	{
		if (v->found[i].index == NULL)
		{
			/* CREATE INDEX CONCURRENTLY has not come to its end */
			if (is_valid(v->found[i].oid))
				problem(v, &v->found[i], 1, "the index is in the catalogue, and not in memory");
		}
		else
			look_at_index(v, &v->found[i], owed == 0 && !changed);
	}
	MotLooseViewRelease();
}

/* true: this transaction has changed something */
static bool
look_at_rows(Verification *v)
{
	Finding    *table = &v->found[0];
	mot_build	scan;
	mot_row    *row;
	const mot_version *version;
	mot_table_stat stat;
	bool		own_changes = mot_txn_has_writes(v->session);
	MemoryContext oldcxt = MemoryContextSwitchTo(v->row_cxt);

	/*
	 * The walk of an index build: over the newest version of all rows, and it
	 * registers no reads.
	 */
	v->rows = 0;
	mot_build_rows(v->session, &scan, v->mr->table, NULL);
	while (mot_build_next(&scan, &row, &version))
	{
		int			natts = mot_version_host_bits(version) & MOT_ROW_NATTS_MASK;

		if (++v->rows % BATCH == 0)
		{
			MemoryContextReset(v->row_cxt);
			CHECK_FOR_INTERRUPTS();
		}
		if (natts > v->mr->desc->natts)
		{
			problem(v, table, 1, psprintf("row %s has %d columns, and the table %d",
										  row_name(v, row), natts, v->mr->desc->natts));
			continue;
		}
		for (int i = 1; i < v->n; i++)
		{
			Finding    *f = &v->found[i];
			unsigned	flags;

			if (f->index == NULL || mot_index_is_behind(f->index->handle.index))
				continue;
			flags = MotIndexKeyOf(f->index, version, &v->key);
			if (v->key.len > 0 && !mot_index_has_entry(v->session, f->index->handle.index, row, v->key.data, v->key.len,
													   flags))
				problem(v, f, 1, psprintf("row %s has no entry", row_name(v, row)));
		}
	}
	MemoryContextReset(v->row_cxt);
	MemoryContextSwitchTo(oldcxt);

	table->entries = v->rows;
	mot_table_stats(v->mr->table, &stat);
	if (!own_changes && stat.rows != v->rows)
		problem(v, table, 1, psprintf("the table counts " INT64_FORMAT " rows, and has " INT64_FORMAT,
									  stat.rows, v->rows));
	return own_changes;
}

static void
look_at_index(Verification *v, Finding *f, bool nothing_owed)
{
	mot_index  *index = f->index->handle.index;
	mot_cursor *cursor = palloc(mot_cursor_size());
	MemoryContext oldcxt;
	mot_index_stat stat;
	mot_entry	entry;
	char		what[256];
	int64		stale_allowed;
	int64		left;

	/* before the walk: the count falls when entries have gone */
	mot_index_stats(index, &stat);
	stale_allowed = stat.stale_entries;

	if (!mot_index_check(index, what, sizeof(what)))
		problem(v, f, 1, psprintf("the tree is damaged: %s", what));

	if (mot_entries_open(v->session, cursor, index, NULL, NULL, false) != MOT_OK)
		MotRaiseStatus(MOT_NO_PRIVATE_MEMORY, v->rel);
	f->last_len = SIZE_MAX;
	oldcxt = MemoryContextSwitchTo(v->row_cxt);
	PG_TRY();
	{
		while (mot_entries_next(cursor, &entry))
		{
			if (++f->entries % BATCH == 0)
			{
				MemoryContextReset(v->row_cxt);
				CHECK_FOR_INTERRUPTS();
			}
			look_at_entry(v, f, &entry);
		}
	}
	PG_FINALLY();
	{
		mot_cursor_close(cursor);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(v->row_cxt);
	pfree(cursor);

	if (f->standing > v->rows)
		problem(v, f, f->standing - v->rows, psprintf(INT64_FORMAT " entries stand for " INT64_FORMAT " rows",
													  f->standing, v->rows));
	if (f->stale > stale_allowed)
		problem(v, f, f->stale - stale_allowed,
				psprintf(INT64_FORMAT " entries are not their row's key, and " INT64_FORMAT " await removal",
						 f->stale, stale_allowed));
	left = f->dead + Min(f->stale, stale_allowed);
	if (nothing_owed && left > 0)
		problem(v, f, left, psprintf(INT64_FORMAT " entries of deleted rows or former keys await nothing", left));
}

static void
look_at_entry(Verification *v, Finding *f, const mot_entry *entry)
{
	const mot_version *version;
	int			order;

	/* the rows under one unique key come one after the other */
	order = f->last_len == SIZE_MAX ? -1 : memcmp(f->last_key, entry->key, Min(f->last_len, entry->len));
	if (order > 0 || (order == 0 && f->last_len > entry->len))
		problem(v, f, 1, psprintf("entry " INT64_FORMAT " is out of order", f->entries));
	f->last_len = Min(entry->len, MOT_MAX_KEY);
	memcpy(f->last_key, entry->key, f->last_len);

	if (entry->fault != NULL)
	{
		problem(v, f, 1, psprintf("entry " INT64_FORMAT " %s", f->entries, entry->fault));
		return;
	}
	version = mot_row_newest(v->session, entry->row);
	if (version == NULL)
	{
		f->dead++;
		return;
	}
	if ((mot_version_host_bits(version) & MOT_ROW_NATTS_MASK) > v->mr->desc->natts)
		return;					/* has been reported */

	(void) MotIndexKeyOf(f->index, version, &v->key);
	if (v->key.len == entry->len && memcmp(v->key.data, entry->key, entry->len) == 0)
		f->standing++;
	else
		f->stale++;
}

/* As the table's ctid shows it. */
static const char *
row_name(Verification *v, const mot_row *row)
{
	ItemPointerData tid;

	MotRowToTid(v->session, row, &tid);
	return psprintf("(%u,%u)", ItemPointerGetBlockNumber(&tid), ItemPointerGetOffsetNumber(&tid));
}

static void
problem(Verification *v, Finding *f, int64 count, const char *what)
{
	f->problems += count;
	if (f->first == NULL)
		f->first = MemoryContextStrdup(v->result_cxt, what);
}
