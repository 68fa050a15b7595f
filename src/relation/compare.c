/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  Is a table what its definition in the catalogue says?
 *
 * Rows are read by the catalogue's columns and found by its indexes.  But
 * while mot was not loaded nobody kept ALTER from changing the definition, or
 * DROP from removing an index, and the rows stayed as they were: a column that
 * has become text would be read far beyond the row.  So a table's definition
 * of its own, which is stored with it (definition.h), is compared with the
 * catalogue's before rows are looked at, and a table that is something else is
 * refused.
 *
 * Some differences can be lived with: a column more, of which the rows have
 * nothing, or fewer, or an index fewer; a CHECK constraint or a partition's
 * bounds, if the rows satisfy them.  But log and checkpoints go by the
 * stored definition, so that has to be brought up to date first, which REINDEX
 * TABLE does, after it has looked at the rows.  TRUNCATE and DROP do not look at rows, and work on
 * any.
 *
 * What a transaction has changed itself is stored when it commits; until then
 * there is nothing to compare.  What another one has just changed may already be
 * in the catalogue and not be stored yet, if it did not need the table for itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xlog.h"
#include "compat/attribute.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef enum Difference
{
	NONE,
	MINOR,						/* can be taken over */
	WRONG						/* rows or keys are something else */
} Difference;

/* the worst so far, and what it is */
typedef struct Findings
{
	Difference	difference;
	char	   *detail;
	List	   *dropped;		/* indexes that the catalogue has not any more */
	bool		unchecked;		/* the catalogue says of rows what they have
								 * not been checked for */
	MotDefinitionState state;
} Findings;

static void
note(Findings *findings, Difference difference, char *detail)
{
	if (difference <= findings->difference)
		return;
	findings->difference = difference;
	findings->detail = detail;
}

static void
compare_columns(Findings *findings, const MotDefinition *def, Relation rel)
{
	TupleDesc	stored = def->desc;
	TupleDesc	desc = RelationGetDescr(rel);

	if (stored->natts > desc->natts)
		note(findings, WRONG, psprintf(_("It has %d columns, its rows have been stored with %d."),
									   desc->natts, stored->natts));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute now = TupleDescAttr(desc, i);
		Form_pg_attribute then = i < stored->natts ? TupleDescAttr(stored, i) : NULL;

		/* (types may have defaults, too) */
		if (then == NULL && !now->attisdropped &&
			(now->atthasdef || get_typdefault(now->atttypid) != NULL))
			note(findings, WRONG, psprintf(_("Column \"%s\" has been added with a default or generated values, which the rows do not have."),
										   NameStr(now->attname)));
		if (then == NULL && !now->attisdropped)
			note(findings, MINOR, psprintf(_("Column \"%s\" has been added."), NameStr(now->attname)));
		if (then != NULL && now->attisdropped && !then->attisdropped)
			note(findings, MINOR, psprintf(_("Column %d has been dropped."), i + 1));
		if (then != NULL &&
			(now->attlen != then->attlen || now->attalign != then->attalign ||
			 (!now->attisdropped &&
			  (then->attisdropped || now->atttypid != then->atttypid || now->attbyval != then->attbyval))))
			note(findings, WRONG, psprintf(_("Column \"%s\" is of type %s, but its values have been stored as %s."),
										   NameStr(now->attname), format_type_be(now->atttypid), format_type_be(then->atttypid)));
		if (now->attisdropped)
			continue;

		/*
		 * (of an ordinary table the server changes it with nothing but a look
		 * at the rows)
		 */
		if (then != NULL && def->typmods && !MotIsOrdinary(rel) && now->atttypmod != then->atttypmod)
			note(findings, WRONG, psprintf(_("Column \"%s\" is of type %s, but its values have been stored as %s."),
										   NameStr(now->attname), format_type_with_typemod(now->atttypid, now->atttypmod),
										   format_type_with_typemod(then->atttypid, then->atttypmod)));
		if (MotAttributeNotNull(desc, i) && (then == NULL || !then->attnotnull))
			note(findings, WRONG, psprintf(_("Column \"%s\" is NOT NULL, but the rows have not been checked for that."),
										   NameStr(now->attname)));
		if (!MotAttributeNotNull(desc, i) && then != NULL && then->attnotnull)
			note(findings, MINOR, psprintf(_("Column \"%s\" is not NOT NULL any more."), NameStr(now->attname)));
	}
}

/*
 * An index that only the catalogue has is being made, and will be in the
 * definition when that has committed: without mot there can be none.
 */
static void
compare_indexes(Findings *findings, const MotDefinition *stored, Relation rel, mot_table *table)
{
	List	   *defs = MotIndexDefs(rel);

	for (int i = 0; i < stored->nindexes; i++)
	{
		MotIndex	now = {stored->indexes[i].indexoid};
		Relation	indexrel;
		ListCell   *lc;

		foreach(lc, defs)
			if (((MotIndexDef *) lfirst(lc))->oid == now.indexoid)
			break;
		/* (REINDEX CONCURRENTLY has not come to an end yet) */
		if (lc == NULL && MotIsOrdinary(rel))
			continue;
		if (lc == NULL && MotStorageIndexDropped(table, now.indexoid))
			continue;
		if (lc == NULL)
		{
			note(findings, MINOR, psprintf(_("The index with OID %u has been dropped."), now.indexoid));
			findings->dropped = lappend_oid(findings->dropped, now.indexoid);
			continue;
		}
		indexrel = index_open(now.indexoid, AccessShareLock);
		/* (a key may have become deferrable in this transaction) */
		now.unique = MotIsOrdinary(rel) ? stored->indexes[i].unique : indexrel->rd_index->indisunique;
		now.key = MotIndexKey(rel, indexrel, mot_table_index(table, now.indexoid));
		if (!MotDefinitionSameIndex(&stored->indexes[i], &now, false))
			note(findings, WRONG, psprintf(_("The keys of index \"%s\" are others now."),
										   RelationGetRelationName(indexrel)));
		index_close(indexrel, AccessShareLock);
	}
	list_free_deep(defs);
}

static int
by_value(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

static bool
is_among(uint64 hash, const uint64 *sorted, int n)
{
	return n > 0 && bsearch(&hash, sorted, n, sizeof(uint64), by_value) != NULL;
}

/* conditions may have gone meanwhile, but none may have come */
static void
compare_conditions(Findings *findings, const MotDefinition *stored, List *conditions)
{
	uint64	   *now = palloc(Max(list_length(conditions), 1) * sizeof(uint64));

	qsort(stored->conditions, stored->nconditions, sizeof(uint64), by_value);
	foreach_ptr(MotRowCondition, condition, conditions)
	{
		now[foreach_current_index(condition)] = condition->hash;
		if (is_among(condition->hash, stored->conditions, stored->nconditions))
			continue;
		findings->state.stale = true;
		findings->unchecked = true;
		if (condition->name != NULL)
			note(findings, MINOR, psprintf(_("The rows have not been checked for \"%s\"."), condition->name));
		else
			note(findings, MINOR, pstrdup(_("The rows have not been checked for the bounds of partitions.")));
	}
	qsort(now, list_length(conditions), sizeof(uint64), by_value);
	for (int i = 0; i < stored->nconditions && !findings->state.stale; i++)
		findings->state.stale = !is_among(stored->conditions[i], now, list_length(conditions));
}

/* the stored definition, copied: others may replace it as soon as the lock is gone */
void *
MotDefinitionCopyStored(mot_table *table, size_t *len)
{
	const void *bytes;
	void	   *copy = NULL;

	LWLockAcquire(MotDirectoryLock, LW_SHARED);
	bytes = mot_table_definition(table, len);
	if (bytes != NULL)
		copy = memcpy(palloc(*len), bytes, *len);
	LWLockRelease(MotDirectoryLock);
	return copy;
}

static void
compare(Findings *findings, Relation rel, mot_table *table)
{
	size_t		len;
	void	   *bytes = MotDefinitionCopyStored(table, &len);
	size_t		now_len;
	void	   *now;
	List	   *conditions = NIL;
	MotDefinition *stored;

	memset(findings, 0, sizeof(*findings));
	/* made by this transaction, and not stored yet */
	if (bytes == NULL)
		return;
	findings->state.stamp = MotDefinitionStamp(bytes);
	if (!MotIsOrdinary(rel))
		conditions = MotConditions(rel, &findings->state.domains);
	findings->state.conditional = conditions != NIL;

	/* nearly always they are the same to the letter */
	now = MotDefinitionEncode(rel, &now_len);
	if (findings->state.stamp == MotDefinitionStamp(now))
		return;
	stored = MotDefinitionDecode(bytes, len, CurrentMemoryContext);
	compare_columns(findings, stored, rel);
	compare_indexes(findings, stored, rel, table);
	if (stored->nconditions < 0 || MotIsOrdinary(rel))
		return;
	findings->state.conditional |= stored->nconditions > 0;
	compare_conditions(findings, stored, conditions);
}

static void
raise(Relation rel, const Findings *findings)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("definition of memory-optimized table \"%s\" has been changed while mot was not loaded",
					RelationGetRelationName(rel)),
			 errdetail_internal("%s", findings->detail),
			 findings->difference == MINOR ?
			 errhint("REINDEX TABLE takes the change over.") :
			 errhint("Start the server without mot in shared_preload_libraries and change it back, or give the rows up with TRUNCATE or DROP TABLE.")));
}

/* Raises if the table is not what the catalogue says. */
MotDefinitionState
MotDefinitionCheck(Relation rel, mot_table *table, bool wait)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	Findings	findings = {NONE};

	if (MotStorageChangedHere(MotStorageNumber(rel)))
	{
		/* (what comes of that is not known yet) */
		findings.state.conditional = true;
		return findings.state;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT definitions", ALLOCSET_SMALL_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	compare(&findings, rel, table);
	if (findings.difference != NONE && wait && !RecoveryInProgress())
	{
		MotDefinitionsLock(ShareLock);
		compare(&findings, rel, table);
	}
	if (findings.difference != NONE)
		raise(rel, &findings);
	MemoryContextSwitchTo(oldcxt);
	findings.state.domains = list_copy(findings.state.domains);
	MemoryContextDelete(cxt);
	return findings.state;
}

uint64
MotDefinitionStored(mot_table *table)
{
	const void *bytes;
	size_t		len;
	uint64		stamp;

	LWLockAcquire(MotDirectoryLock, LW_SHARED);
	bytes = mot_table_definition(table, &len);
	stamp = bytes != NULL ? MotDefinitionStamp(bytes) : 0;
	LWLockRelease(MotDirectoryLock);
	return stamp;
}

/*
 * The caller has locked the table against everybody: let what can be taken
 * over of the catalogue's definition be the table's.  True if it says things
 * of the rows for which the caller has to check them.
 */
bool
MotDefinitionTakeOver(Relation rel)
{
	Oid			relid = MotStorageNumber(rel);
	mot_table  *table;
	Findings	findings;

	if (MotStorageChangedHere(relid))
		return false;
	table = MotRelationTable(rel);
	compare(&findings, rel, table);
	if (findings.difference == WRONG)
		raise(rel, &findings);
	if (findings.difference == NONE && !findings.state.stale)
		return false;
	foreach_oid(oid, findings.dropped)
		MotStorageDropIndex(relid, oid);
	MotStorageDefinitionStale(rel);
	return findings.unchecked;
}
