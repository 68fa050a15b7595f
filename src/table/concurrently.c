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
 * Keys that are computed are stored with the rows, all of which are written for that; so such
 * an index is built by the second transaction, and writers wait until it has committed.
 *
 *-------------------------------------------------------------------------
 */
#include "table/table.h"

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/resowner.h"

/* how long others may wait behind us at first */
#define FIRST_WAIT_MS 10

/*
 * REINDEX CONCURRENTLY builds what takes a deferrable key's place as if it were none, so
 * the engine would come to see to it that keys are unique at once.
 */
static void
refuse_deferrable(Relation rel, Relation index)
{
	List	   *oids = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, oids)
	{
		Relation	other = index_open(lfirst_oid(lc), AccessShareLock);
		Form_pg_index form = other->rd_index;

		if (!form->indimmediate && form->indnkeyatts == index->rd_index->indnkeyatts &&
			memcmp(form->indkey.values, index->rd_index->indkey.values, form->indnkeyatts * sizeof(int16)) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot build index \"%s\" concurrently beside deferrable key \"%s\" of memory-optimized table \"%s\"",
							RelationGetRelationName(index), RelationGetRelationName(other), RelationGetRelationName(rel)),
					 errhint("Build it without CONCURRENTLY.")));
		index_close(other, AccessShareLock);
	}
	list_free(oids);
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
	bool		computed = info->ii_Expressions != NIL || info->ii_Predicate != NIL;

	if (info->ii_Unique)
		refuse_deferrable(rel, index);
	/* what is refused now keeps nobody from anything: nobody knows the index */
	if (info->ii_Unique && !computed)
		MotStorageTryIndex(rel, index);
	lock_out_writers(rel);
	if (computed)
		MotStorageCreateIndex(rel, index);
	else
		MotStorageBeginIndex(rel, index);
}

void
MotTableCatchUpIndex(Relation rel, Relation index, struct IndexInfo *info, Snapshot snapshot,
					 struct ValidateIndexState *state)
{
	MotStorageCatchUpIndex(rel, index);
}
