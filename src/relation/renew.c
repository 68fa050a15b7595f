/*-------------------------------------------------------------------------
 *
 * renew.c
 *	  Stored definitions that say more of their tables' rows than the catalogue.
 *
 * A domain's NOT NULL goes, a partition beside a default one is detached: no
 * table is told, or nobody was there to be told, mot not being loaded.  The
 * stored definition (definition.h) still says of the rows what they were
 * checked for, and that does no harm as long as no others come.  But then the
 * same may be put back without mot, and nobody would look at them again
 * (conditions.c).  So a transaction that has put rows into such a table stores its
 * definition anew, as the catalogue has it, with its rows: one is
 * in the log, and in force, if and only if the other is.  Whether it has to is asked when it
 * commits, after the last row: whatever let a row in, an invalidation has
 * told this process of it by then.
 *
 * Few transactions have to ask (MotRelationsSuspect): those that have learned of
 * an invalidation of a table with conditions, or of its domains, or opened a table that was
 * stale already, or begun to write to one.  What is stale and only read, or not
 * looked at any more, costs nobody anything.
 *
 * It does not have the table for itself, nor do some commands that bring
 * conditions: ALTER DOMAIN, VALIDATE CONSTRAINT.  These commit one after the other,
 * from before the first looks at the catalogue until its transaction has
 * ended, so that none stores what it has missed of another's.  Nobody waits for
 * them but who finds the catalogue ahead of what is stored.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "compat/calls.h"
#include "faults.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "utils/hsearch.h"
#include "utils/relcache.h"
#include "xact/xact.h"

/* the transaction has written to the table: is what is stored of it stale? */
static void
renew_definition(mot_table *table)
{
	Relation	rel;

	if (mot_table_is_numbered(table) || mot_table_host_db(table) != MyDatabaseId ||
		MotStorageChangedHere(mot_table_host_id(table)))
		return;
	/* (not there: dropped by this very transaction) */
	rel = RelationIdGetRelation(mot_table_owner(table));
	if (rel == NULL)
		return;
	if (MotRelationGet(rel)->stale)
	{
		MotStorageDefinitionStale(rel);
		/* others need not do it once more */
		CacheInvalidateRelcache(rel);
	}
	RelationClose(rel);
}

/*
 * The transaction is about to commit rows, and perhaps some of their tables' definitions are stale.
 */
void
MotDefinitionsRenew(mot_session *session)
{
	HASHCTL		ctl = {.keysize = sizeof(mot_table *),.entrysize = sizeof(mot_table *),.hcxt = CurrentMemoryContext};
	HTAB	   *seen = hash_create("MOT tables written", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	mot_table  *last = NULL;
	uint64		pos = 0;
	mot_change	change;

	MOT_FAULT("renew-definitions");
	while (mot_txn_next_change(session, &pos, &change))
	{
		bool		found;

		if (change.table == last)
			continue;
		last = change.table;
		(void) hash_search(seen, &last, HASH_ENTER, &found);
		if (!found)
			renew_definition(last);
	}
	hash_destroy(seen);
	MotRelationsSuspect = false;
}

/*
 * Exclusive: stays until the transaction ends; what others have stored is in the
 * catalogue for it.  Share: only to have waited for them.
 */
void
MotDefinitionsLock(LOCKMODE mode)
{
	LOCKTAG		tag;

	/* (the server has no such locks of what is in pg_class) */
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId, InvalidOid, 1);
	MotTimeWait();
	(void) LockAcquire(&tag, mode, false, false);
	MotTimeWaitOver();
	if (mode == ShareLock)
		(void) LockRelease(&tag, mode, false);
	AcceptInvalidationMessages();
}

bool
MotIsLocked(Oid relid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, IsSharedRelation(relid) ? InvalidOid : MyDatabaseId, relid);
	return MotLockHeldByMe(&tag, mode);
}

/* False: the transaction has the table for itself, so nobody else stores a definition of it. */
bool
MotDefinitionIsShared(Oid relid)
{
	static const LOCKMODE modes[] = {AccessExclusiveLock, ShareRowExclusiveLock, ExclusiveLock};

	for (int i = 0; i < (int) lengthof(modes); i++)
		if (MotIsLocked(relid, modes[i]))
			return false;
	return true;
}
