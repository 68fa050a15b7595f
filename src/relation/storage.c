/*-------------------------------------------------------------------------
 *
 * storage.c
 *	  Tables and indexes of the engine as transactions see them.
 *
 * The engine knows nothing of transactional DDL, and needs not: whoever
 * creates, empties or drops a table or an index holds a lock that keeps
 * everybody else from looking.  What is new is there at once; what is old
 * stays, out of the directory, until the transaction commits.  A list of
 * what has been done says what has to go at the end, or to be put back.
 *
 * At commit, old indexes go before old tables (which take their indexes
 * along).  At abort the list is undone from the youngest entry to the oldest,
 * so that each step finds what it left.
 *
 * The log asks for the sum of it (MotStorageChanges) when the transaction is
 * about to commit.  The tables' new definitions are made then, while memory
 * may still be short, and put in place by the commit.
 *
 * Definitions that rows have made stale are stored anew along with those: see renew.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/xact.h"
#include "faults.h"
#include "miscadmin.h"
#include "relation/definition.h"
#include "relation/pending.h"
#include "catalog/storage.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "xact/xact.h"

/* youngest first; in TopTransactionContext */
static Pending *pending = NULL;

static Defined *defined = NULL;

static void storage_sub_abort(int level);
static mot_index *make_index(Relation rel, mot_table *table, Oid indexoid, bool unique);

/* ----------------------------------------------------------- pending list */

/* an entry, not in the list yet: made first, so that nothing can fail after the deed */
static Pending *
new_pending(PendingKind kind, Oid relid)
{
	Pending    *p = MemoryContextAllocZero(TopTransactionContext, sizeof(Pending));

	(void) MotSession();
	MotCheckWritable();
	p->kind = kind;
	p->dbid = MyDatabaseId;
	p->relid = relid;
	p->level = GetCurrentTransactionNestLevel();
	return p;
}

static void
push_pending(Pending *p)
{
	p->older = pending;
	pending = p;
	MotRelationForgetTable(p->relid);
}

/* Does the log have to be told that it goes, though it is not in memory? */
static bool
is_missing(Oid dbid, Oid number)
{
	return dbid == MyDatabaseId && MotRelationMissing != NULL && MotRelationMissing(dbid, number) &&
		get_rel_relkind(number) != RELKIND_FOREIGN_TABLE;
}

/*
 * Ordinary tables' storage goes with the files that the server will delete as
 * it commits: those of dropped tables, and what TRUNCATE or ALTER TABLE has
 * replaced.  (What it would delete at abort, we have in our own list.)
 */
static void
note_dropped_files(void)
{
	RelFileLocator *nodes;
	int			n = smgrGetPendingDeletes(true, &nodes);

	for (int i = 0; i < n; i++)
	{
		mot_table  *table = nodes[i].dbOid == MyDatabaseId ?
		mot_table_find(MotEngine, nodes[i].dbOid, nodes[i].relNumber) : NULL;
		bool		noted = false;
		Pending    *p;

		/* a foreign table may have the number of some heap table's file */
		if (table != NULL ? !mot_table_is_numbered(table) : !is_missing(nodes[i].dbOid, nodes[i].relNumber))
			continue;
		for (p = pending; p != NULL && !noted; p = p->older)
			noted = p->kind == TABLE_DROPPED && p->relid == nodes[i].relNumber && p->table == table;
		if (noted)
			continue;
		p = new_pending(TABLE_DROPPED, nodes[i].relNumber);
		p->table = table;
		push_pending(p);
	}
	if (n > 0)
		pfree(nodes);
}

static bool
storage_pending(void)
{
	/* (nothing of what a transaction that fails has dropped will go) */
	if (MotEngine != NULL && IsTransactionState())
		note_dropped_files();
	return pending != NULL;
}

/* Locks are about the table's oid, which is not that of storage that has been made for another table. */
bool
MotPendingShared(const Pending *p)
{
	mot_table  *table = mot_table_find(MotEngine, p->dbid, p->relid);

	return MotDefinitionIsShared(table != NULL ? mot_table_owner(table) : p->relid);
}

static void
storage_define(mot_session *session)
{
	Pending    *p;

	if (unlikely(MotRelationsSuspect) && session != NULL && mot_txn_has_writes(session))
		MotDefinitionsRenew(session);

	/* (an ordinary table's definition has no conditions) */
	for (p = pending; p != NULL; p = p->older)
		if ((p->kind == TABLE_DEFINED || p->kind == INDEX_CREATED || p->kind == INDEX_CAUGHT_UP) &&
			p->dbid == MyDatabaseId && MotPendingShared(p))
			break;
	if (likely(p == NULL))
		return;
	MotDefinitionsLock(ExclusiveLock);
}

/*
 * A transaction that builds an index uses it at once.  Others may come to it
 * when the server has committed, some instructions before the transaction's
 * rows and all this: until then it serves no snapshot.
 */
static void
storage_prepare(void)
{
	for (Pending *p = pending; p != NULL; p = p->older)
		if (p->built)
			mot_index_set_valid_from(p->index, MOT_TS_NONE);
}

static bool
storage_loaded(void)
{
	for (Pending *p = pending; p != NULL; p = p->older)
		if (p->rewritten)
			return true;
	return false;
}

static void
storage_born(mot_ts ts)
{
	for (Pending *p = pending; p != NULL; p = p->older)
		if (p->rewritten)
			mot_table_set_born(p->table, ts, p->refuse_older);
}

void
MotPendingCommit(mot_session *session, Pending *list, Defined *definitions)
{
	bool		published = mot_snapshot_held(session) == MOT_TS_NONE;

	/*
	 * Before the definitions: who makes keys by those (mot_index_key_hook)
	 * must not take an index that is gone for one that has its name now. With
	 * a snapshot, so that none is destroyed before the last look at it.
	 */
	if (published)
		(void) mot_snapshot_take(session);
	for (Pending *p = list; p != NULL; p = p->older)
		if (p->kind == INDEX_DROPPED)
			mot_index_drop(session, p->index);
	for (Defined *d = definitions; d != NULL; d = d->next)
	{
		if (d->role != NULL)
			mot_table_put_role(d->table, d->role, false);
		if (d->definition == NULL)
			continue;
		mot_table_put_definition(session, d->table, d->definition);
		mot_table_set_owner(d->table, d->owner, mot_table_is_numbered(d->table));
	}
	for (Pending *p = list; p != NULL; p = p->older)
	{
		if (p->built)
			mot_index_set_valid_from(p->index, mot_engine_clock(MotEngine));
		if (p->kind == INDEX_CREATED)
			mot_index_described(p->index);
	}
	if (published)
		mot_snapshot_hold(session, MOT_TS_NONE);
	for (Pending *p = list; p != NULL; p = p->older)
		if (p->kind == TABLE_CREATED || p->kind == TABLE_REPLACED)
			mot_table_settle(p->table);
	MOT_FAULT("ddl-settled");
	for (Pending *p = list; p != NULL; p = p->older)
	{
		if (p->kind == TABLE_DROPPED && p->table != NULL)
			mot_table_drop(session, p->table);
		else if (p->kind == TABLE_REPLACED)
			mot_table_drop(session, p->old_table);
		for (int i = 0; i < p->ntables; i++)
			mot_table_drop(session, p->tables[i]);
	}
}

static void
storage_commit(void)
{
	if (pending != NULL)
	{
		MOT_FAULT("ddl-commit");
		LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
		MotPendingCommit(MotSession(), pending, defined);
		defined = NULL;
		LWLockRelease(MotDirectoryLock);

		for (Pending *p = pending; p != NULL; p = p->older)
			MotRelationForgetTable(p->relid);
		pending = NULL;
	}
	MotRelationEndXact();
}

static void
storage_abort(void)
{
	if (defined != NULL)
		MotDefinedDiscard(MotSession(), defined);
	defined = NULL;
	storage_sub_abort(0);
	MotRelationEndXact();
}

static void
storage_sub_commit(int level)
{
	for (Pending *p = pending; p != NULL && p->level >= level; p = p->older)
		p->level = level - 1;
}

/* At SERIALIZABLE, before others can change what has been read in what goes with a savepoint. */
static void
read_instead(int level)
{
	mot_session *session = MotSession();

	for (Pending *p = pending; p != NULL && p->level >= level; p = p->older)
	{
		if (p->kind == INDEX_CREATED)
			mot_txn_read_instead(session, mot_index_table(p->index), NULL, p->index);
		else if (p->copied != NULL)
			mot_txn_read_instead(session, p->copied, p->table, NULL);
	}
}

static void
storage_sub_abort(int level)
{
	if (pending == NULL || pending->level < level)
		return;

	if (level > 0)
		read_instead(level);
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	while (pending != NULL && pending->level >= level)
	{
		MotPendingUndo(pending);
		MotRelationForgetTable(pending->relid);
		pending = pending->older;
	}
	LWLockRelease(MotDirectoryLock);
}

void
MotPendingUndo(Pending *p)
{
	mot_session *session = MotSession();

	switch (p->kind)
	{
		case TABLE_CREATED:
			mot_table_drop(session, p->table);
			break;
		case TABLE_DEFINED:
			if (p->turned)
				mot_table_set_owner(p->table, p->relid, false);
			break;
		case TABLE_DROPPED:
		case DATABASE_DROPPED:
		case INDEX_LEFT_OUT:
			break;
		case TABLE_REPLACED:
			(void) mot_table_publish(MotEngine, p->old_table);
			mot_table_drop(session, p->table);
			break;
		case INDEX_CREATED:
			/* others may know it, but nobody writes */
			if (mot_index_is_behind(p->index))
				MotTellSessions(p->dbid, mot_table_owner(mot_index_table(p->index)));
			mot_index_drop(session, p->index);
			break;
		case INDEX_CAUGHT_UP:
			mot_index_set_behind(p->index, true);
			break;
		case INDEX_DROPPED:
			mot_index_attach(p->index);
			break;
	}
}

/* ------------------------------------------------- PREPARE TRANSACTION */

static bool
storage_portable(void)
{
	return MotPendingPortable(pending);
}

static void *
storage_pack(void)
{
	return pending == NULL ? NULL : MotPendingPack(pending, defined);
}

/* The parcel has it from now on. */
static void
storage_handed(void)
{
	for (; pending != NULL; pending = pending->older)
		MotRelationForgetTable(pending->relid);
	defined = NULL;
}

static const MotXactParticipant participant = {
	storage_define, storage_prepare, storage_loaded, storage_born, storage_commit, storage_abort, storage_sub_commit, storage_sub_abort, storage_pending,
	storage_portable, storage_pack, MotPendingDiscard, storage_handed, MotPendingEnd
};

void
MotStorageInit(void)
{
	MotTheParticipant = &participant;
}

/* ----------------------------------------------------------------- tables */

/* An empty table, with an index for each that the catalogue has, takes the place of what there is (if anything). */
static void
replace_table(Relation rel, Oid tablespace, Oid number)
{
	MotDefinition def = {MyDatabaseId, number, RelationGetRelid(rel), MotIsOrdinary(rel)};
	List	   *defs = MotIndexDefs(rel);
	Pending    *p = new_pending(TABLE_CREATED, number);
	mot_status	status;

	MotPreparedAwaitEnded(false);

	/*
	 * who takes away what others have read has a place among them: see
	 * serial.c
	 */
	if (XactIsoLevel == XACT_SERIALIZABLE && rel->rd_createSubid == InvalidSubTransactionId)
		(void) MotBeginWrite();

	/* the definition that the number is of is of this transaction */
	p->fresh = MotIsOrdinary(rel) || rel->rd_createSubid != InvalidSubTransactionId;
	p->tablespace = tablespace;
	def.indexes = palloc0(Max(list_length(defs), 1) * sizeof(MotIndex));
	foreach_ptr(MotIndexDef, made, defs)
	{
		Relation	indexrel = index_open(made->oid, AccessShareLock);

		/* (of those behind, nobody has said that what they are of is unique) */
		if (!made->behind)
		{
			MotIndex   *index = &def.indexes[def.nindexes++];

			index->indexoid = made->oid;
			index->unique = made->unique;
			index->key = index->plain = MotKeyCreate(rel, indexrel);
		}
		index_close(indexrel, AccessShareLock);
	}
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = MotDefinitionMakeTable(MotSession(), &def, NULL, 0, &p->table);
	if (status == MOT_OK)
	{
		/* nothing is missing in its indexes */
		mot_load_done(p->table);
		MotPendingPublish(p);
		push_pending(p);
	}
	LWLockRelease(MotDirectoryLock);
	pfree(def.indexes);
	list_free_deep(defs);

	MotRaiseStatus(status, rel);
}

/*
 * The new table can be found from now on, by us; to everybody else what was
 * there before the transaction is still the table.
 */
void
MotPendingPublish(Pending *p)
{
	mot_table  *settled;

	p->old_table = mot_table_find(MotEngine, p->dbid, p->relid);
	settled = p->old_table;
	if (settled != NULL)
		(void) mot_table_is_settled(p->old_table, &settled);
	mot_table_set_unsettled(p->table, settled);
	(void) mot_table_publish(MotEngine, p->table);
	if (p->old_table != NULL)
		p->kind = TABLE_REPLACED;
}

void
MotStorageAddTable(mot_table *table)
{
	Pending    *p = new_pending(TABLE_CREATED, mot_table_host_id(table));

	p->dbid = mot_table_host_db(table);
	p->fresh = true;
	p->table = table;
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	MotPendingPublish(p);
	push_pending(p);
	LWLockRelease(MotDirectoryLock);
}

/*
 * Both kinds of numbers come from one counter of the server's, but only of its
 * own kind each is sure not to be in use when that has gone round.
 */
void
MotStorageCreateTable(Relation rel, Oid tablespace, Oid number)
{
	mot_table  *other;

	(void) MotSession();
	other = mot_table_find(MotEngine, MyDatabaseId, number);
	if (other != NULL && (MotIsOrdinary(rel) || mot_table_is_numbered(other)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("number %u is in use for the rows of another memory-optimized table", number),
				 errhint("Repeat the command, which then takes another number.")));
	replace_table(rel, tablespace, number);
}

void
MotStorageTruncate(Relation rel)
{
	/* other sessions have to look the table up again */
	CacheInvalidateRelcache(rel);
	replace_table(rel, MotIsOrdinary(rel) ? rel->rd_locator.spcOid : InvalidOid, MotStorageNumber(rel));
}

/*
 * A definition whose table recovery could not bring back is without one; but
 * the log may have to be told that it goes.
 */
void
MotStorageDropTable(Oid relid)
{
	Pending    *p;

	if (MotEngine == NULL)
		return;
	p = new_pending(TABLE_DROPPED, relid);
	MotPreparedAwaitEnded(false);
	p->table = mot_table_find(MotEngine, MyDatabaseId, relid);
	push_pending(p);
}

/*
 * An ordinary table's storage goes with its file; but where there is none, nobody would know at
 * commit that the file was one of ours, and a standby may have it.
 */
void
MotStorageDropLost(Oid number)
{
	if (MotEngine != NULL && MotRelationAbsent(number) && MotRelationLost(MyDatabaseId, number))
		MotStorageDropTable(number);
}

/*
 * Is it noted, at this level of nesting or deeper, that the table has new storage, or (without
 * "storage") that its definition will be stored anew?
 */
static bool
is_noted(Oid relid, int level, bool storage)
{
	for (Pending *p = pending; p != NULL && p->level >= level; p = p->older)
		if (p->relid == relid && p->dbid == MyDatabaseId &&
			(p->kind == TABLE_CREATED || p->kind == TABLE_REPLACED || (p->kind == TABLE_DEFINED && !storage)))
			return true;
	return false;
}

/* (indexes that come and go are known to compare.c) */
bool
MotStorageChangedHere(Oid relid)
{
	return is_noted(relid, 0, false);
}

/*
 * A table whose definition is about to change.  While tables are loaded it may be still to come, and
 * would come as it was.
 */
static mot_table *
find_loaded(Oid number)
{
	mot_table  *table;

	MotPreparedAwaitEnded(false);
	table = mot_table_find(MotEngine, MyDatabaseId, number);
	if (table != NULL || MotRelationAwaitLoaded == NULL)
		return table;
	MotRelationAwaitLoaded(MyDatabaseId, number);
	return mot_table_find(MotEngine, MyDatabaseId, number);
}

/* The catalogue is just being changed, but what the server knows of it is not yet. */
void
MotStorageDefinitionChanged(Oid relid)
{
	Relation	rel;
	Oid			number;

	if (MotEngine == NULL)
		return;
	rel = relation_open(relid, NoLock);
	number = MotStorageNumber(rel);
	if (!MotStorageChangedHere(number))
	{
		mot_table  *table = find_loaded(number);

		if (table != NULL && rel->rd_createSubid == InvalidSubTransactionId)
			(void) MotDefinitionCheck(rel, table, true);

		/* what one that is left out is kept in has the definition that it had */
		if (table == NULL && MotRelationLeftOut != NULL && MotRelationLeftOut(MyDatabaseId, number))
			(void) MotRelationAwait(MyDatabaseId, number);	/* raises */
	}
	MotStorageDefinitionStale(rel);
	relation_close(rel, NoLock);
}

void
MotStorageDefinitionStale(Relation rel)
{
	Oid			number = MotStorageNumber(rel);

	if (!is_noted(number, GetCurrentTransactionNestLevel(), false))
		push_pending(new_pending(TABLE_DEFINED, number));
}

/*
 * A foreign table is an ordinary one from now on: its number is that of a file, with
 * which it goes.
 */
void
MotStorageTurnOrdinary(Relation rel)
{
	Pending    *p = new_pending(TABLE_DEFINED, RelationGetRelid(rel));

	p->turned = true;
	p->table = MotRelationTable(rel);
	push_pending(p);
	mot_table_set_owner(p->table, p->relid, true);
}

void
MotStorageRewritten(Oid relid, mot_table *copied, bool refuse_older)
{
	Assert(pending != NULL && pending->relid == relid &&
		   (pending->kind == TABLE_CREATED || pending->kind == TABLE_REPLACED));
	pending->rewritten = true;
	pending->copied = copied;
	pending->refuse_older = refuse_older;
}

bool
MotStorageIsNew(Oid relid)
{
	return is_noted(relid, GetCurrentTransactionNestLevel(), true);
}

/* ---------------------------------------------------------------- indexes */

void
MotStorageCreateIndex(Relation rel, Relation indexrel)
{
	MotRelation *mr = MotRelationGet(rel);
	Oid			indexoid = RelationGetRelid(indexrel);
	Pending    *p = new_pending(INDEX_CREATED, MotStorageNumber(rel));
	MotIndex   *index;
	mot_table  *settled;
	bool		anew = false;

	/* before anything is made: refuses types without an encoding */
	index = palloc0(sizeof(MotIndex));
	MotIndexDescribe(index, mr, mr->desc, rel, indexrel, NULL);

	/* found attached: an empty table was made just now, with this index */
	p->index = mot_table_index(mr->table, indexoid);
	if (p->index != NULL && (index->key->computed || mot_index_is_behind(p->index) ||
							 mot_index_is_unique(p->index) != index->unique ||
							 (MotKeyForm(index->key) & ~mot_index_form(p->index) & MOT_FORM_COLLATED) != 0))
	{
		/*
		 * REINDEX: what functions say may be something else now, or it could
		 * not be built concurrently, or was to take a deferrable key's place,
		 * or its keys could not be collated
		 */
		MotStorageDropIndex(p->relid, indexoid);
		mr = MotRelationGet(rel);
		p->index = NULL;
		anew = true;
	}
	if (p->index != NULL)
	{
		/* (or there is nothing to be built anew: it is right as it is) */
		if (MotIsOrdinary(rel))
			return;
		push_pending(p);
		return;
	}
	if (index->key->computed)
		MotComputeIndex(rel, index, false, anew);

	p->index = make_index(rel, mr->table, indexoid, index->unique);
	mot_index_set_form(p->index, MotKeyForm(index->key));
	p->built = true;
	push_pending(p);
	index->handle.index = p->index;
	MotIndexBuild(rel, index, false);

	/* older snapshots do not use it */
	mot_index_set_valid_from(p->index, mot_engine_clock(MotEngine));

	/* all that anybody could see in a table of our own is in it */
	if (!mot_table_is_settled(mr->table, &settled))
		mot_index_set_valid_from(p->index, 0);

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_index_attach(p->index);
	LWLockRelease(MotDirectoryLock);
	MotRelationForgetTable(MotStorageNumber(rel));
}

static Pending *
begin_index(Relation rel, Relation indexrel, MotIndex *index, bool unique)
{
	MotRelation *mr = MotRelationGet(rel);
	Pending    *p = new_pending(INDEX_CREATED, MotStorageNumber(rel));

	MotIndexDescribe(index, mr, mr->desc, rel, indexrel, NULL);
	p->index = index->handle.index = make_index(rel, mr->table, RelationGetRelid(indexrel), unique);
	push_pending(p);
	return p;
}

/* The index, if there were no writers; it is built for its duplicates, and what its functions raise, only. */
void
MotStorageTryIndex(Relation rel, Relation indexrel)
{
	MotIndex	index = {0};
	Pending    *p = begin_index(rel, indexrel, &index, MotIndexIsUnique(indexrel));

	MotIndexBuild(rel, &index, index.key->computed);
	Assert(pending == p);
	pending = p->older;
	mot_index_drop(MotSession(), p->index);
}

void
MotStorageBeginIndex(Relation rel, Relation indexrel, bool unique)
{
	MotIndex	index = {0};
	Pending    *p = begin_index(rel, indexrel, &index, unique);

	mot_index_set_form(p->index, MotIndexFormBeside(index.relation, index.key));
	mot_index_set_behind(p->index, true);
	mot_index_set_valid_from(p->index, MOT_TS_NONE);
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_index_attach(p->index);
	LWLockRelease(MotDirectoryLock);
	MotRelationForgetTable(MotStorageNumber(rel));
}

void
MotStorageCatchUpIndex(Relation rel, Relation indexrel)
{
	MotIndex   *index = MotRelationIndex(MotRelationGet(rel), RelationGetRelid(indexrel));
	Pending    *p;

	if (index == NULL)
		elog(ERROR, "index \"%s\" is not there", RelationGetRelationName(indexrel));
	if (!mot_index_is_behind(index->handle.index))
		return;
	if (index->key->computed)
		MotComputeIndex(rel, index, true, false);
	MotIndexCatchUp(rel, index);

	p = new_pending(INDEX_CAUGHT_UP, MotStorageNumber(rel));
	p->index = index->handle.index;
	p->built = true;
	push_pending(p);
	mot_index_set_behind(p->index, false);
}

/* several sessions may create indexes of one table at a time */
static mot_index *
make_index(Relation rel, mot_table *table, Oid indexoid, bool unique)
{
	mot_index  *index;
	mot_status	status;

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = mot_index_create(MotSession(), table, indexoid,
							  MOT_INDEX_DERIVED | (unique ? MOT_INDEX_UNIQUE : 0), &index);
	LWLockRelease(MotDirectoryLock);

	if (status == MOT_TOO_LARGE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("memory-optimized table \"%s\" cannot have more than %d indexes",
						RelationGetRelationName(rel), MOT_MAX_INDEXES)));
	MotRaiseStatus(status, rel);
	return index;
}

void
MotStorageDropIndex(Oid number, Oid indexoid)
{
	mot_table  *table;
	mot_index  *index;
	Pending    *p;

	if (MotEngine == NULL)
		return;
	table = find_loaded(number);
	index = table != NULL ? mot_table_index(table, indexoid) : NULL;
	if (table == NULL && MotRelationLeftOut != NULL && MotRelationLeftOut(MyDatabaseId, number))
		push_pending(new_pending(INDEX_LEFT_OUT, number));
	if (index == NULL)
		return;					/* never built */

	p = new_pending(INDEX_DROPPED, number);
	p->index = index;
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_index_detach(index);
	LWLockRelease(MotDirectoryLock);
	push_pending(p);
}

bool
MotStorageIndexDropped(mot_table *table, Oid indexoid)
{
	for (Pending *p = pending; p != NULL; p = p->older)
		if (p->kind == INDEX_DROPPED && mot_index_table(p->index) == table &&
			mot_index_host_id(p->index) == indexoid)
			return true;
	return false;
}

void
MotStorageDropTables(Oid dbid, mot_table **tables, int n)
{
	Pending    *p = new_pending(DATABASE_DROPPED, InvalidOid);

	p->dbid = dbid;
	p->ntables = n;
	p->tables = MemoryContextAlloc(TopTransactionContext, n * sizeof(mot_table *));
	memcpy(p->tables, tables, n * sizeof(mot_table *));
	push_pending(p);
}

/* ------------------------------------------------------------ for the log */

static void
add_change(MotStorageChange *change, const Pending *p)
{
	switch (p->kind)
	{
		case TABLE_REPLACED:
			change->gone = lappend(change->gone, p->old_table);
			/* FALLTHROUGH */
		case TABLE_CREATED:
			change->created = true;
			change->tablespace = p->tablespace;
			change->fresh |= p->fresh;
			change->table = p->table;
			list_free(change->new_indexes);
			change->new_indexes = NIL;
			break;
		case TABLE_DROPPED:
			if (p->table != NULL)
				change->gone = lappend(change->gone, p->table);
			change->created = false;
			change->dropped = true;
			change->table = NULL;
			break;
		case INDEX_CREATED:
		case INDEX_CAUGHT_UP:
			if (!change->created && !mot_index_is_behind(p->index))
				change->new_indexes = list_append_unique_oid(change->new_indexes,
															 mot_index_host_id(p->index));
			break;
		case INDEX_DROPPED:
			change->new_indexes = list_delete_oid(change->new_indexes,
												  mot_index_host_id(p->index));
			break;
		case TABLE_DEFINED:
			break;
		case INDEX_LEFT_OUT:
			change->lost_index = true;
			break;
		case DATABASE_DROPPED:
			change->database = true;
			change->dropped = true;
			break;
	}
}

static Defined *
push_defined(mot_table *table)
{
	Defined    *d = MemoryContextAllocZero(TopTransactionContext, sizeof(Defined));

	d->table = table;
	d->next = defined;
	defined = d;
	return d;
}

/* What there is in the end; false: nothing that anybody has to be told. */
static bool
complete_change(MotStorageChange *change)
{
	const void *bytes;
	size_t		len;

	if (change->dropped)
		return !change->fresh;

	if (change->table == NULL)
		change->table = mot_table_find(MotEngine, change->dbid, change->relid);

	/*
	 * the catalogue does not matter; but an index that goes alone would come
	 * back with it
	 */
	if (change->table == NULL && change->lost_index)
		(void) MotRelationAwait(change->dbid, change->relid);	/* raises */
	if (change->table == NULL)
		return false;

	bytes = mot_table_definition(change->table, &len);
	if (change->dbid != MyDatabaseId)
	{
		/* made from another definition, which it has already */
		change->definition = bytes;
		change->definition_len = len;
	}
	else
	{
		Oid			relid = mot_table_owner(change->table);
		Relation	rel;

		/* what was made for ALTER TABLE has changed hands */
		if (OidIsValid(change->tablespace))
			relid = RelidByRelfilenumber(change->tablespace, change->relid);
		if (!OidIsValid(relid))
			elog(ERROR, "storage %u of a memory-optimized table is not in the catalogue", change->relid);
		rel = relation_open(relid, AccessShareLock);
		change->owner = relid;

		MotIndexesDropDead(rel, change->table);
		/* ALTER TABLE ... OWNER TO: see limit.c */
		if (MotTableRole(change->table) != rel->rd_rel->relowner)
			push_defined(change->table)->role = MotRoleHold(rel->rd_rel->relowner);
		/* what is stored now must not take over what nobody has looked at */
		(void) MotDefinitionCheck(rel, change->table, false);
		change->definition = MotDefinitionEncode(rel, &change->definition_len);
		relation_close(rel, NoLock);
	}
	if (change->created)
		return true;
	if (change->new_indexes == NIL && bytes != NULL &&
		MotDefinitionStamp(bytes) == MotDefinitionStamp(change->definition))
		return false;

	/*
	 * (one that is given up, and still there: the next start has not got it,
	 * and would take this for damage)
	 */
	if (MotRelationMissing != NULL && MotRelationMissing(change->dbid, change->relid))
		(void) MotRelationAwait(change->dbid, change->relid);	/* raises */
	return true;
}

/*
 * Called once, when the transaction is about to commit and nothing more can
 * happen to storage.
 */
List *
MotStorageChanges(void)
{
	List	   *oldest_first = NIL;
	List	   *changes = NIL;
	ListCell   *lc;

	for (Pending *p = pending; p != NULL; p = p->older)
		oldest_first = lcons(p, oldest_first);

	foreach_ptr(Pending, p, oldest_first)
	{
		MotStorageChange *change = NULL;

		foreach_ptr(MotStorageChange, other, changes)
		{
			if (other->dbid == p->dbid && other->relid == p->relid)
				change = other;
		}
		if (change == NULL)
		{
			change = palloc0(sizeof(MotStorageChange));
			change->dbid = p->dbid;
			change->relid = p->relid;
			changes = lappend(changes, change);
		}
		add_change(change, p);
	}
	list_free(oldest_first);

	foreach(lc, changes)
	{
		MotStorageChange *change = lfirst(lc);

		if (!complete_change(change))
			changes = foreach_delete_current(changes, lc);
		else if (change->definition != NULL && change->dbid == MyDatabaseId)
		{
			Defined    *d = push_defined(change->table);

			d->owner = change->owner;
			MotRaiseStatus(mot_definition_make(MotSession(), change->definition, change->definition_len, &d->definition), NULL);
		}
	}
	return changes;
}

void
MotDefinedDiscard(mot_session *session, const Defined *list)
{
	for (const Defined *d = list; d != NULL; d = d->next)
	{
		if (d->definition != NULL)
			mot_definition_discard(session, d->definition);
		if (d->role != NULL)
			mot_quota_release(MotEngine, d->role);
	}
}
