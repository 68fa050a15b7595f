/*-------------------------------------------------------------------------
 *
 * concurrently.c
 *	  CREATE INDEX and REINDEX CONCURRENTLY of ordinary tables.
 *
 * The server does it in transactions of its own: one that makes the index's entry
 * in the catalogue, one that builds it, and one, when nobody is left who does not
 * keep the index, that looks for rows which it lacks.
 *
 * What a writer takes from an index must have been put there, so at some moment all
 * of them begin to keep it, and none is under way then: the second transaction makes the
 * index, empty, under a lock that it has for as long as its commit takes.  It does not stand
 * in the queue for that lock while somebody writes for long, for everybody else
 * would stand behind it: it waits for who is writing without one, then for the lock,
 * some milliseconds, and if in vain, once more, each time twice as long.
 *
 * The third transaction goes through the rows beside the writers (mot_index_catch_up).
 *
 * What REINDEX builds to take a deferrable key's place is none until it does, says the catalogue
 * (of some releases).  To the engine it is not unique from the beginning; the key that is still
 * there, and its trigger, see to that. So an index is to us what it was made as (MotIndexDefs),
 * also the old one, which the catalogue calls a key of the other kind as soon as its place is
 * taken.
 *
 * Ranks (ranked.h) are given to all rows together, so an index with such is built while writers
 * wait, as soon as it has the lock.
 *
 * Other keys that are computed are stored with the rows: the third transaction gives them to those
 * that do not have them, which changes no row (MotComputeIndex).
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/genam.h"
#include "access/xact.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/resowner.h"

/* how long others may wait behind us at first */
#define FIRST_WAIT_MS 10

/* Is "name" what the server calls the copy of an index? */
static bool
is_name_of_copy(const char *name, const char *original)
{
	const char *label = strrchr(name, '_');

	return label != NULL && strncmp(label, "_ccnew", 6) == 0 && strspn(label + 6, "0123456789") == strlen(label + 6) &&
		strcmp(makeObjectName(original, NULL, label + 1), name) == 0;
}

/*
 * REINDEX CONCURRENTLY has made a unique index: is it to take the place of one that is not
 * deferrable?  Nothing but its name says which one that is, before 15.19.
 */
static bool
remade_is_immediate(Relation rel, Relation index)
{
	List	   *oids = RelationGetIndexList(rel);
	bool		any = !index->rd_index->indimmediate;
	bool		immediate = false;
	bool		deferrable = any;

	foreach_oid(oid, oids)
	{
		Relation	other = index_open(oid, AccessShareLock);

		any |= !other->rd_index->indimmediate;
		if (other->rd_index->indisunique &&
			is_name_of_copy(RelationGetRelationName(index), RelationGetRelationName(other)))
		{
			immediate |= other->rd_index->indimmediate;
			deferrable |= !other->rd_index->indimmediate;
		}
		index_close(other, AccessShareLock);
	}
	list_free(oids);
	if (!any)
		return true;
	/* (long names differ where they are cut off) */
	if (immediate == deferrable)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not tell whose place index \"%s\" of memory-optimized table \"%s\" is to take",
						RelationGetRelationName(index), RelationGetRelationName(rel)),
				 errhint("Reindex without CONCURRENTLY.")));
	return immediate;
}

/* false: nobody let us have it for so long */
static bool
try_lock(Relation rel, int ms)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool locked = false;
	char		value[16];

	snprintf(value, sizeof(value), "%d", ms);
	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		/* (as long as the subtransaction is) */
		(void) set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
		LockRelation(rel, ShareLock);
		ReleaseCurrentSubTransaction();
		locked = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcxt);
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);
	CurrentResourceOwner = owner;
	return locked;
}

static void
lock_out_writers(Relation rel)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, RelationGetRelid(rel));
	for (int ms = FIRST_WAIT_MS;; ms = Min(2 * ms, INT_MAX / 2))
	{
		WaitForLockers(tag, ShareLock, true);
		if (try_lock(rel, ms))
			break;
		CHECK_FOR_INTERRUPTS();
	}
	/* whoever comes to the table now is told of the index */
	CacheInvalidateRelcache(rel);
}

void
MotTableBeginIndex(Relation rel, Relation index, struct IndexInfo *info)
{
	bool		unique = info->ii_Unique && (!MotReindexes || remade_is_immediate(rel, index));

	if (MotKeyCreate(rel, index)->ranked)
	{
		lock_out_writers(rel);
		MotStorageCreateIndex(rel, index);
		return;
	}

	/* what is refused now keeps nobody from anything: nobody knows the index */
	if (unique || info->ii_Expressions != NIL || info->ii_Predicate != NIL)
		MotStorageTryIndex(rel, index);
	lock_out_writers(rel);
	MotStorageBeginIndex(rel, index, unique);
}

void
MotTableCatchUpIndex(Relation rel, Relation index, struct IndexInfo *info, Snapshot snapshot,
					 struct ValidateIndexState *state)
{
	MotStorageCatchUpIndex(rel, index);
}
