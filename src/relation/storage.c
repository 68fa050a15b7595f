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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "xact/xact.h"

typedef enum PendingKind
{
	TABLE_CREATED,				/* abort: goes */
	TABLE_DROPPED,				/* commit: goes */
	TABLE_REPLACED,				/* commit: old goes; abort: old comes back,
								 * new goes */
	INDEX_CREATED,				/* abort: goes */
	INDEX_DROPPED				/* detached; commit: goes; abort: comes back */
} PendingKind;

typedef struct Pending
{
	PendingKind kind;
	Oid			relid;
	mot_table  *table;			/* the new one of TABLE_REPLACED */
	mot_table  *old_table;
	mot_index  *index;
	int			level;			/* transaction nesting level */
	struct Pending *older;
} Pending;

/* youngest first; in TopTransactionContext */
static Pending *pending = NULL;

/* rows between two looks for an interrupt, and resets of the build's memory */
#define BUILD_BATCH 1024

static void storage_commit(void);
static void storage_abort(void);
static void storage_sub_commit(int level);
static void storage_sub_abort(int level);
static bool storage_pending(void);
static Pending *new_pending(PendingKind kind, Oid relid);
static void push_pending(Pending *p);
static void undo(Pending *p);
static mot_index *make_index(Relation rel, mot_table *table, Oid indexoid, bool unique);
static void build_index(Relation rel, MotIndex *index);
static void collect_database(void *arg, mot_table *table);

static const MotXactParticipant participant = {
	storage_commit, storage_abort, storage_sub_commit, storage_sub_abort, storage_pending
};

void
MotStorageInit(void)
{
	MotXactSetParticipant(&participant);
}

/* ----------------------------------------------------------- pending list */

/* an entry, not in the list yet: made first, so that nothing can fail after the deed */
static Pending *
new_pending(PendingKind kind, Oid relid)
{
	Pending    *p = MemoryContextAllocZero(TopTransactionContext, sizeof(Pending));

	MotCheckWritable();
	p->kind = kind;
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

static bool
storage_pending(void)
{
	return pending != NULL;
}

static void
storage_commit(void)
{
	if (pending != NULL)
	{
		mot_session *session = MotSession();

		LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
		for (Pending *p = pending; p != NULL; p = p->older)
			if (p->kind == INDEX_DROPPED)
				mot_index_drop(session, p->index);
		for (Pending *p = pending; p != NULL; p = p->older)
		{
			if (p->kind == TABLE_DROPPED)
				mot_table_drop(session, p->table);
			else if (p->kind == TABLE_REPLACED)
				mot_table_drop(session, p->old_table);
		}
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
	storage_sub_abort(0);
	MotRelationEndXact();
}

static void
storage_sub_commit(int level)
{
	for (Pending *p = pending; p != NULL && p->level >= level; p = p->older)
		p->level = level - 1;
}

static void
storage_sub_abort(int level)
{
	if (pending == NULL || pending->level < level)
		return;

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	while (pending != NULL && pending->level >= level)
	{
		undo(pending);
		MotRelationForgetTable(pending->relid);
		pending = pending->older;
	}
	LWLockRelease(MotDirectoryLock);
}

static void
undo(Pending *p)
{
	mot_session *session = MotSession();

	switch (p->kind)
	{
		case TABLE_CREATED:
			mot_table_drop(session, p->table);
			break;
		case TABLE_DROPPED:
			break;
		case TABLE_REPLACED:
			(void) mot_table_publish(MotEngine, p->old_table);
			mot_table_drop(session, p->table);
			break;
		case INDEX_CREATED:
			mot_index_drop(session, p->index);
			break;
		case INDEX_DROPPED:
			mot_index_attach(p->index);
			break;
	}
}

/* ----------------------------------------------------------------- tables */

/* An empty table takes the place of what there is (if anything). */
static void
replace_table(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	List	   *defs = MotIndexDefs(rel);
	Pending    *p = new_pending(TABLE_CREATED, relid);
	mot_status	status;

	(void) MotSession();
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = MotTableMake(rel, defs, &p->table);
	if (status == MOT_OK)
	{
		p->old_table = mot_table_publish(MotEngine, p->table);
		if (p->old_table != NULL)
			p->kind = TABLE_REPLACED;
		push_pending(p);
	}
	LWLockRelease(MotDirectoryLock);
	list_free_deep(defs);

	MotRaiseStatus(status, rel);
}

void
MotStorageCreateTable(Relation rel)
{
	replace_table(rel);
}

void
MotStorageTruncate(Relation rel)
{
	/* other sessions have to look the table up again */
	CacheInvalidateRelcache(rel);
	replace_table(rel);
}

void
MotStorageDropTable(Oid relid)
{
	mot_table  *table;
	Pending    *p;

	if (MotEngine == NULL)
		return;
	table = mot_table_find(MotEngine, MyDatabaseId, relid);
	if (table == NULL)
		return;					/* never touched since the restart */

	(void) MotSession();
	p = new_pending(TABLE_DROPPED, relid);
	p->table = table;
	push_pending(p);
}

bool
MotStorageIsNew(Oid relid)
{
	int			level = GetCurrentTransactionNestLevel();

	for (Pending *p = pending; p != NULL && p->level >= level; p = p->older)
		if (p->relid == relid &&
			(p->kind == TABLE_CREATED || p->kind == TABLE_REPLACED))
			return true;
	return false;
}

/* ---------------------------------------------------------------- indexes */

void
MotStorageCreateIndex(Relation rel, Relation indexrel)
{
	MotRelation *mr = MotRelationGet(rel);
	Oid			indexoid = RelationGetRelid(indexrel);
	Pending    *p = new_pending(INDEX_CREATED, RelationGetRelid(rel));
	MotIndex   *index;

	/* before anything is made: refuses types without an encoding */
	index = palloc0(sizeof(MotIndex));
	MotIndexDescribe(index, mr, rel, indexrel, NULL, CurrentMemoryContext);

	/* found attached: an empty table was made just now, with this index */
	p->index = mot_table_index(mr->table, indexoid);
	if (p->index != NULL)
	{
		push_pending(p);
		return;
	}

	p->index = make_index(rel, mr->table, indexoid, index->unique);
	push_pending(p);
	index->handle.index = p->index;
	build_index(rel, index);

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_index_attach(p->index);
	LWLockRelease(MotDirectoryLock);
	MotRelationForgetTable(RelationGetRelid(rel));
}

/* several sessions may create indexes of one table at a time */
static mot_index *
make_index(Relation rel, mot_table *table, Oid indexoid, bool unique)
{
	mot_index  *index;
	mot_status	status;

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = mot_index_create(MotSession(), table, indexoid,
							  unique ? MOT_INDEX_UNIQUE : 0, &index);
	LWLockRelease(MotDirectoryLock);

	if (status == MOT_TOO_LARGE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("memory-optimized table \"%s\" cannot have more than %d indexes",
						RelationGetRelationName(rel), MOT_MAX_INDEXES)));
	MotRaiseStatus(status, rel);
	return index;
}

/* A key for every row as it is now; older snapshots do not use the index. */
static void
build_index(Relation rel, MotIndex *index)
{
	mot_session *session;
	TupleDesc	desc = index->relation->desc;
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT index build",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	mot_build	build;
	MotKeyBuffer key;
	mot_row    *row;
	mot_row    *other;
	const mot_version *version;
	uint64		n = 0;

	MotKeyBufferInit(&key, CurrentMemoryContext);
	(void) MotLooseView();
	session = MotSession();
	mot_build_begin(session, &build, index->handle.index);

	oldcxt = MemoryContextSwitchTo(cxt);
	while (mot_build_next(&build, &row, &version))
	{
		bool		has_null;
		mot_status	status;

		MotRowDeform(desc, version, index->key->max_attnum, values, isnull);
		MotKeyBufferReset(&key);
		MotKeyFromRow(index->key, values, isnull, &key, &has_null);
		status = mot_build_add(&build, row, key.data, key.len,
							   has_null ? MOT_KEY_DISTINCT : 0, &other);
		if (status == MOT_DUPLICATE)
			MotRaiseNotUnique(rel, index, values, isnull);
		if (unlikely(status != MOT_OK))
			MotRaiseStatus(status, rel);

		if (++n % BUILD_BATCH == 0)
		{
			MemoryContextReset(cxt);
			CHECK_FOR_INTERRUPTS();
		}
	}
	MemoryContextSwitchTo(oldcxt);
	mot_build_end(&build);

	MotLooseViewRelease();
	MemoryContextDelete(cxt);
}

void
MotStorageDropIndex(Oid relid, Oid indexoid)
{
	mot_table  *table;
	mot_index  *index;
	Pending    *p;

	if (MotEngine == NULL)
		return;
	table = mot_table_find(MotEngine, MyDatabaseId, relid);
	index = table != NULL ? mot_table_index(table, indexoid) : NULL;
	if (index == NULL)
		return;					/* never built */

	(void) MotSession();
	p = new_pending(INDEX_DROPPED, relid);
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

/* -------------------------------------------------------------- databases */

typedef struct DatabaseTables
{
	Oid			dbid;
	int			n;
	int			max;
	mot_table **tables;
} DatabaseTables;

static void
collect_database(void *arg, mot_table *table)
{
	DatabaseTables *db = arg;

	if (mot_table_host_db(table) != db->dbid)
		return;
	if (db->n < db->max)
		db->tables[db->n] = table;
	db->n++;
}

void
MotStorageDropDatabase(Oid dbid)
{
	mot_session *session;
	DatabaseTables db = {dbid, 0, 0, NULL};

	if (MotEngine == NULL)
		return;
	session = MotSession();

	/* nothing can be allocated in the visit, so count first */
	mot_table_each(MotEngine, collect_database, &db);
	if (db.n == 0)
		return;
	db.max = db.n;
	db.n = 0;
	db.tables = palloc(db.max * sizeof(mot_table *));
	mot_table_each(MotEngine, collect_database, &db);

	/* nobody is connected to that database, so the number is the same */
	for (int i = 0; i < Min(db.n, db.max); i++)
		mot_table_drop(session, db.tables[i]);
	pfree(db.tables);
}
