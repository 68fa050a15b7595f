/*-------------------------------------------------------------------------
 *
 * relation.c
 *	  What a process knows of a MOT table.
 *
 * The cache is keyed by the table's oid and lives as long as the process.
 * Relcache invalidation marks an entry; MotRelationGet rebuilds it in place
 * when somebody asks next.  The entry itself then stays where it is, and what
 * it pointed to stays until the transaction ends: a
 * query further up the stack may have kept an index.  (It may do so only
 * while it holds a lock on the table, so what it kept still describes the
 * engine's objects: those go under an exclusive lock.)  Entries that are
 * still invalid when the transaction ends are freed whole, which is how
 * dropped tables leave.
 *
 * After a restart, tables come back one after the other; who needs one waits
 * for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_am.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "relation/internal.h"
#include "relation/ranked.h"
#include "storage/sinval.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "xact/xact.h"

void		(*MotRelationCatchUp) (void) = NULL;

bool		(*MotRelationAwait) (Oid dbid, Oid relid) = NULL;
void		(*MotRelationAwaitLoaded) (Oid dbid, Oid relid) = NULL;
bool		(*MotRelationLeftOut) (Oid dbid, Oid relid) = NULL;
bool		(*MotRelationMissing) (Oid dbid, Oid relid) = NULL;
bool		(*MotRelationLost) (Oid dbid, Oid relid) = NULL;

static HTAB *cache = NULL;
static MotRelation *last_used = NULL;
static bool any_invalid = false;
static uint32 database_hash;	/* of pg_database's row of ours */

/* who has called MotWatchPlans */
typedef struct Watcher
{
	RelcacheCallbackFunction relation_changed;
	SyscacheCallbackFunction catalog_changed;
} Watcher;

static Watcher watchers[2];
static int	nwatchers = 0;

/* the table whose rows are being written anew, in another form than they have */
static Oid	rewriting = InvalidOid;
uint64		MotRelationGeneration = 1;
uint64		MotPlanChanges = 1;
const struct TableAmRoutine *MotTableAm = NULL;
void		(*MotIndexesPutBack) (Relation rel) = NULL;
Oid			MotAlterShows = InvalidOid;
int64		MotAlterRows;
bool		MotAlterLeaves;
bool		MotReindexes;

bool		MotRelationsSuspect = false;

/* the hash values of the domains that columns of tables in the cache are of */
static List *domain_hashes = NIL;

static void make_cache(void);
static void relcache_callback(Datum arg, Oid relid);
static void type_callback(Datum arg, int cacheid, uint32 hash);
static void rebuild(MotRelation *mr, Relation rel);
static bool unchanged(MotRelation *mr, Relation rel, mot_table *table, List *defs);
static void describe(MotRelation *mr, Relation rel, mot_table *table, List *defs);

/* descriptions made so far: tells an old one from a new one at the same address */
static uint64 times_built = 0;

void
MotRelationInit(void)
{
	MotStorageInit();
	MotDeriveInit();
	MotLimitInit();
	MotOrdinaryTable = MotIsOrdinaryTable;
}

/* -------------------------------------------------------------- catalogue */

bool
MotIsMotTable(Oid relid)
{
	HeapTuple	tup;
	Oid			serverid;
	Oid			fdwid;

	tup = SearchSysCache1(FOREIGNTABLEREL, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tup))
		return false;
	serverid = ((Form_pg_foreign_table) GETSTRUCT(tup))->ftserver;
	ReleaseSysCache(tup);

	tup = SearchSysCache1(FOREIGNSERVEROID, ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tup))
		return false;
	fdwid = ((Form_pg_foreign_server) GETSTRUCT(tup))->srvfdw;
	ReleaseSysCache(tup);

	return fdwid == get_foreign_data_wrapper_oid(MOT_FDW_NAME, true);
}

bool
MotIsOrdinary(Relation rel)
{
	return MotTableAm != NULL && rel->rd_tableam == MotTableAm;
}

/*
 * Asked for each table of each query that starts, also by those who have no
 * table of ours: so answers are remembered until something changes.
 */
bool
MotIsOrdinaryTable(Oid relid)
{
	static struct
	{
		Oid			relid;
		bool		ordinary;
		uint64		generation;
	}			known[64];
	int			i = relid % lengthof(known);
	HeapTuple	tup;

	if (likely(known[i].relid == relid && known[i].generation == MotRelationGeneration && cache != NULL))
		return known[i].ordinary;
	if (relid < FirstNormalObjectId)
		return false;
	if (cache == NULL)
		make_cache();

	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tup))
		return false;
	known[i].ordinary = OidIsValid(((Form_pg_class) GETSTRUCT(tup))->relam) &&
		((Form_pg_class) GETSTRUCT(tup))->relam == get_table_am_oid(MOT_TABLE_AM_NAME, true);
	ReleaseSysCache(tup);
	known[i].relid = relid;
	/* not before: looking may have brought an invalidation */
	known[i].generation = MotRelationGeneration;
	return known[i].ordinary;
}

Oid
MotStorageNumber(Relation rel)
{
	return MotIsOrdinary(rel) ? rel->rd_locator.relNumber : RelationGetRelid(rel);
}

Oid
MotAmOid(bool missing_ok)
{
	return get_index_am_oid(MOT_AM_NAME, missing_ok);
}

/* of an ordinary table, or one that is to be */
void
MotRequireBtree(Relation rel, Relation indexrel)
{
	if (indexrel->rd_rel->relam != BTREE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support indexes of memory-optimized table \"%s\"",
						get_am_name(indexrel->rd_rel->relam), RelationGetRelationName(rel)),
				 errhint("Use USING btree; such a table's indexes are in memory, too.")));
}

/*
 * an exclusion constraint's operators are all "=": a btree has no other that is its own commutator
 */
bool
MotIndexIsUnique(Relation indexrel)
{
	return indexrel->rd_index->indimmediate &&
		(indexrel->rd_index->indisunique || indexrel->rd_index->indisexclusion);
}

List *
MotIndexDefs(Relation rel)
{
	List	   *oids = RelationGetIndexList(rel);
	mot_table  *table = mot_table_find(MotEngine, MyDatabaseId, MotStorageNumber(rel));
	List	   *defs = NIL;
	List	   *behind = NIL;

	foreach_oid(relid, oids)
	{
		/* the lock on the table keeps the index from going away */
		Relation	index = index_open(relid, AccessShareLock);
		mot_index  *made = table != NULL ? mot_table_index(table, relid) : NULL;
		MotIndexDef *def;

		/*
		 * one that could not be built, or is not yet (CREATE INDEX
		 * CONCURRENTLY makes it valid long after), or is about to be refused
		 */
		if (MotIsOrdinary(rel) &&
			(index->rd_rel->relam != BTREE_AM_OID ||
			 (!index->rd_index->indisvalid && made == NULL)))
		{
			index_close(index, AccessShareLock);
			continue;
		}
		def = palloc(sizeof(MotIndexDef));

		def->oid = RelationGetRelid(index);

		/*
		 * an index that is there remains what it was made as: see
		 * concurrently.c
		 */
		def->unique = made != NULL && MotIsOrdinary(rel) ? mot_index_is_unique(made) : MotIndexIsUnique(index);
		def->behind = made != NULL && mot_index_is_behind(made);
		if (def->behind)
			behind = lappend(behind, def);
		else
			defs = lappend(defs, def);
		index_close(index, AccessShareLock);
	}
	list_free(oids);
	return list_concat(defs, behind);
}

/* ------------------------------------------------------------------ cache */

MotRelation *
MotRelationGet(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	MotRelation *mr;
	bool		found;

	if (likely(last_used != NULL && last_used->relid == relid && last_used->valid))
		return last_used;

	(void) MotSession();		/* raises if there is no engine */
	if (cache == NULL)
		make_cache();

	mr = hash_search(cache, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(mr, 0, sizeof(MotRelation));
		mr->relid = relid;
	}
	if (!mr->valid)
		rebuild(mr, rel);
	last_used = mr;
	return mr;
}

static void
invalidate(MotRelation *mr)
{
	mr->valid = false;
	any_invalid = true;
}

/*
 * From now on nobody (no function that the rewriting calls) can have the table;
 * InvalidOid: again.  Returns what it was before.
 */
Oid
MotRelationRewriting(Oid relid)
{
	Oid			before = rewriting;
	MotRelation *mr = OidIsValid(relid) ? hash_search(cache, &relid, HASH_FIND, NULL) : NULL;

	rewriting = relid;
	if (mr != NULL)
		invalidate(mr);
	return before;
}

MotIndex *
MotRelationIndex(MotRelation *mr, Oid indexoid)
{
	for (int i = 0; i < mr->nindexes; i++)
		if (mr->indexes[i].indexoid == indexoid)
			return &mr->indexes[i];
	return NULL;
}

static void
make_cache(void)
{
	cache = MotHashCreate("MOT tables", 64, sizeof(Oid), sizeof(MotRelation), TopMemoryContext);
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(TYPEOID, type_callback, (Datum) 0);
}

static void
plan_relation_changed(Datum arg, Oid relid)
{
	MotPlanChanges++;
	for (int i = 0; i < nwatchers; i++)
		watchers[i].relation_changed(arg, relid);
}

static void
plan_catalog_changed(Datum arg, int cacheid, uint32 hash)
{
	MotPlanChanges++;
	for (int i = 0; i < nwatchers && cacheid != NAMESPACEOID; i++)
		watchers[i].catalog_changed(arg, cacheid, hash);
}

/*
 * What plans and privileges depend on, besides tables: pg_amproc because programs have looked up
 * what they compare with, pg_database because its owner is the member of pg_database_owner.
 * Schemas count only for MotPlanChanges (what is not planned again has its names resolved).  The
 * server has room for ten callbacks of relations, of all modules, so all who watch share one.  NULL:
 * somebody looks at MotPlanChanges only.
 */
void
MotWatchPlans(RelcacheCallbackFunction relation_changed, SyscacheCallbackFunction catalog_changed)
{
	static const int caches[] = {PROCOID, TYPEOID, OPEROID, AMOPOPID, AMPROCNUM, FOREIGNSERVEROID, AUTHOID,
	AUTHMEMROLEMEM, DATABASEOID, NAMESPACEOID};
	static bool registered = false;

	if (relation_changed != NULL)
	{
		Assert(nwatchers < (int) lengthof(watchers));
		watchers[nwatchers++] = (Watcher)
		{
			relation_changed, catalog_changed
		};
	}
	if (registered)
		return;
	registered = true;
	database_hash = GetSysCacheHashValue1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	CacheRegisterRelcacheCallback(plan_relation_changed, (Datum) 0);
	for (int i = 0; i < (int) lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], plan_catalog_changed, (Datum) 0);
}

/* for "catalog_changed": is it about another database's row? */
bool
MotIsOtherDatabase(int cacheid, uint32 hash)
{
	return cacheid == DATABASEOID && hash != 0 && hash != database_hash;
}

static void
relcache_callback(Datum arg, Oid relid)
{
	MotRelationGeneration++;
	if (OidIsValid(relid))
	{
		MotRelation *mr = hash_search(cache, &relid, HASH_FIND, NULL);

		if (mr != NULL)
		{
			invalidate(mr);
			MotRelationsSuspect |= mr->conditional;
		}
	}
	else
	{
		foreach_hash(MotRelation, mr, cache)
		{
			invalidate(mr);
			MotRelationsSuspect |= mr->conditional;
		}
	}
}

/* Conditions may have come or gone with a domain: nobody tells the tables. */
static void
type_callback(Datum arg, int cacheid, uint32 hash)
{
	if (domain_hashes == NIL || (hash != 0 && !list_member_int(domain_hashes, (int) hash)))
		return;
	MotRelationGeneration++;
	foreach_hash(MotRelation, mr, cache)
		if (mr->domains)
	{
		invalidate(mr);
		MotRelationsSuspect = true;
	}
}

static void
take_state(MotRelation *mr, MotDefinitionState state)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(TopMemoryContext);

	foreach_oid(oid, state.domains)
		domain_hashes = list_append_unique_int(domain_hashes,
											   (int) GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(oid)));
	MemoryContextSwitchTo(oldcxt);
	mr->domains = state.domains != NIL;
	list_free(state.domains);
	mr->stamp = state.stamp;
	mr->conditional = state.conditional;
	mr->stale = state.stale;
	MotRelationsSuspect |= state.stale;
}

void
MotTellSessions(Oid dbid, Oid relid)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = dbid;
	message.rc.relId = relid;
	SendSharedInvalidMessages(&message, 1);
}

/* by the storage's number */
void
MotRelationForgetTable(Oid number)
{
	if (cache == NULL)
		return;
	relcache_callback((Datum) 0, number);
	foreach_hash(MotRelation, mr, cache)
		if (mr->number == number)
		invalidate(mr);
}

/*
 * At the end of a transaction no query is running that could have kept
 * anything of an entry.
 */
void
MotRelationEndXact(void)
{
	MotWriterEndXact();
	if (any_invalid)
	{
		foreach_hash(MotRelation, mr, cache)
		{
			if (mr->valid)
				continue;
			if (mr->cxt != NULL)
				MemoryContextDelete(mr->cxt);
			(void) hash_search(cache, &mr->relid, HASH_REMOVE, NULL);
		}
		any_invalid = false;
		last_used = NULL;
	}
}

static void
rebuild(MotRelation *mr, Relation rel)
{
	if (unlikely(mr->relid == rewriting))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot access table \"%s\" while its rows are being rewritten",
						RelationGetRelationName(rel))));

	/* first, so that an invalidation that comes while we read is not lost */
	mr->valid = true;
	mr->number = MotStorageNumber(rel);

	PG_TRY();
	{
		List	   *defs;
		mot_table  *table;

		/*
		 * what the invalidation was about has been committed, but perhaps not
		 * been applied yet
		 */
		if (MotRelationCatchUp != NULL)
			MotRelationCatchUp();

		table = MotRelationTable(rel);
		defs = MotIndexDefs(rel);

		/*
		 * what replay brings has had room elsewhere; it sets the table's
		 * limit at its end
		 */
		if (!RecoveryInProgress())
			MotLimitsApply(rel, table);
		if (!unchanged(mr, rel, table, defs))
		{
			MotDefinitionState state = MotDefinitionCheck(rel, table, true);

			describe(mr, rel, table, defs);
			take_state(mr, state);
		}
		else if (mr->conditional || mr->stamp != MotDefinitionStored(table))
			take_state(mr, MotDefinitionCheck(rel, table, true));
		list_free_deep(defs);
	}
	PG_CATCH();
	{
		invalidate(mr);
		MotRelationGeneration++;
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* Does the entry describe the table as it is? (most invalidations are about something else) */
static bool
unchanged(MotRelation *mr, Relation rel, mot_table *table, List *defs)
{
	int			n = 0;

	if (mr->cxt == NULL || mr->table != table ||
		mr->serial != mot_table_serial(table) ||
		!equalTupleDescs(mr->desc, RelationGetDescr(rel)))
		return false;

	foreach_ptr(MotIndexDef, def, defs)
	{
		mot_index  *index = mot_table_index(table, def->oid);

		if (index == NULL)
			continue;
		if (n >= mr->nindexes || mr->indexes[n].indexoid != def->oid ||
			mr->indexes[n].handle.index != index)
			return false;
		n++;
	}
	return n == mr->nindexes;
}

/*
 * As the catalogue has it.  The relation cache's copy is ready for the planner: to make it,
 * functions of the index's owner are called to see what they say of constants.
 */
static Node *
stored_tree(Relation indexrel, AttrNumber attnum)
{
	bool		isnull;
	Datum		tree = SysCacheGetAttr(INDEXRELID, indexrel->rd_indextuple, attnum, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(tree));
}

/* the columns of a computed key and its predicate; of a whole row: all */
static Bitmapset *
add_computed(Bitmapset *attnums, Relation indexrel, int natts)
{
	Bitmapset  *used = NULL;
	int			attno = -1;

	pull_varattnos(stored_tree(indexrel, Anum_pg_index_indexprs), 1, &used);
	pull_varattnos(stored_tree(indexrel, Anum_pg_index_indpred), 1, &used);
	for (int i = 0; i < indexrel->rd_index->indnkeyatts; i++)
		if (indexrel->rd_index->indkey.values[i] > 0)
			attnums = bms_add_member(attnums, indexrel->rd_index->indkey.values[i]);
	while ((attno = bms_next_member(used, attno)) >= 0)
	{
		if (attno + FirstLowInvalidHeapAttributeNumber > 0)
			attnums = bms_add_member(attnums, attno + FirstLowInvalidHeapAttributeNumber);
		else
			attnums = bms_add_range(attnums, 1, natts);
	}
	return attnums;
}

static void
describe(MotRelation *mr, Relation rel, mot_table *table, List *defs)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT table",
											  ALLOCSET_SMALL_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	MotRelation new = {mr->relid, mr->number};

	new.conditional = mr->conditional;
	new.islands = mr->islands;
	new.cxt = cxt;
	new.table = table;
	new.serial = mot_table_serial(table);
	new.born = mot_table_born(table, &new.refuse_older);
	new.built = ++times_built;
	new.desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	MotRowShapeInit(&new.shape, new.desc);
	new.indexes = palloc0(Max(list_length(defs), 1) * sizeof(MotIndex));

	foreach_ptr(MotIndexDef, def, defs)
	{
		mot_index  *engine_index = mot_table_index(table, def->oid);
		MotIndex   *index;
		Relation	indexrel;

		/* in the catalogue, but not built yet: our own CREATE INDEX is at it */
		if (engine_index == NULL)
			continue;

		index = &new.indexes[new.nindexes++];
		indexrel = index_open(def->oid, AccessShareLock);
		MotIndexDescribe(index, mr, new.desc, rel, indexrel, engine_index);
		if (index->key->computed)
		{
			new.has_computed = true;
			new.has_ranked |= index->key->ranked;
			new.computes_beside |= mot_index_is_behind(engine_index);
			new.computed_attnums = add_computed(new.computed_attnums, indexrel, new.desc->natts);
		}
		index_close(indexrel, AccessShareLock);

		new.max_key_attnum = Max(new.max_key_attnum, index->key->max_attnum);
		for (int i = 0; i < index->key->ncolumns && !index->key->computed; i++)
			new.key_attnums = bms_add_member(new.key_attnums, index->key->columns[i].attnum);
	}

	if (new.has_computed)
		new.max_key_attnum = new.desc->natts;
	new.key_attnums = bms_add_members(new.key_attnums, new.computed_attnums);

	/* swap; whoever holds the old parts has them until the transaction ends */
	MemoryContextSwitchTo(oldcxt);
	if (mr->cxt != NULL)
		MemoryContextSetParent(mr->cxt, TopTransactionContext);
	MemoryContextSetParent(cxt, TopMemoryContext);
	new.valid = mr->valid;
	*mr = new;
}

MotKey *
MotIndexKey(Relation rel, Relation indexrel, mot_index *engine_index)
{
	return engine_index == NULL ? MotKeyCreate(rel, indexrel) :
		MotKeyCreateAs(rel, indexrel, mot_index_form(engine_index));
}

/* the form of a new one: that of those which it may take the place of, see MotDefinitionEncode */
uint64
MotIndexFormBeside(const MotRelation *mr, const MotKey *key)
{
	uint64		form = MotKeyForm(key);

	for (int i = 0; i < mr->nindexes; i++)
	{
		const MotKey *other = mr->indexes[i].key;
		bool		same = other->ncolumns == key->ncolumns && !other->computed;

		for (int j = 0; j < key->ncolumns && same; j++)
			same = other->columns[j].attnum == key->columns[j].attnum;
		if (same)
			form |= MotKeyForm(other) & MOT_FORM_NULLABLE;
	}
	return form;
}

/*
 * The columns that FOR KEY SHARE keeps as they are: those of a unique key, deferrable or not, of
 * columns; and of an exclusion constraint where the log may name rows by them (definition.c), as it
 * does those that a prepared transaction has locked.  It does not while it names them by the primary
 * key, which does not go beside others.
 */
static Bitmapset *
identifies(const MotIndex *index, Relation rel, Relation indexrel, const mot_index *engine_index)
{
	bool		kept = !index->key->functional && (indexrel->rd_index->indisunique || index->unique);
	Bitmapset  *columns = NULL;

	if (kept && !indexrel->rd_index->indisunique)
	{
		Oid			primary = InvalidOid;

		kept = !index->key->computed;
		for (int i = 0; i < index->key->ncolumns && kept; i++)
			kept = MotAttributeNotNull(RelationGetDescr(rel), index->key->columns[i].attnum - 1);
		if (kept && engine_index != NULL)
			primary = MotGetPrimaryKeyIndex(rel);
		kept &= !OidIsValid(primary) || !MotDefinitionNamesBy(mot_index_table(engine_index), primary);
	}
	for (int i = 0; i < index->key->ncolumns && kept; i++)
		columns = bms_add_member(columns, indexrel->rd_index->indkey.values[i]);
	return columns;
}

void
MotIndexDescribe(MotIndex *index, MotRelation *mr, TupleDesc desc, Relation rel, Relation indexrel,
				 mot_index *engine_index)
{
	index->indexoid = RelationGetRelid(indexrel);
	index->unique = engine_index != NULL && MotIsOrdinary(rel) ? mot_index_is_unique(engine_index) :
		MotIndexIsUnique(indexrel);
	index->deferrable = !indexrel->rd_index->indimmediate;
	index->evaluation = NULL;
	index->key = index->plain = MotIndexKey(rel, indexrel, engine_index);
	index->identifies = identifies(index, rel, indexrel, engine_index);
	index->ranking = index->key->ranked ? MotRankingOf(indexrel, index->key) : NULL;
	index->relation = mr;
	index->handle.index = engine_index;
	/* cheap, and it cannot fail */
	index->handle.exact = index->key->width >= 0 || index->key->computed;
	MotIndexComplete(index, desc);
}

/* -------------------------------------------------------- the engine's table */

/*
 * Somebody else's definition: the table is there, or on its way (recovery), or
 * lost, which is an error and never an empty table.
 */
mot_table *
MotRelationTable(Relation rel)
{
	Oid			relid = MotStorageNumber(rel);
	mot_table  *table;
	mot_table  *replaces;

	/* (also what is settled: an index may have to be put back) */
	MotPreparedAwaitEnded(true);
	table = mot_table_find(MotEngine, MyDatabaseId, relid);

	/* made or emptied by this transaction, which holds the lock for that */
	if (table != NULL && !mot_table_is_settled(table, &replaces))
		return table;

	/* a definition made in this transaction: its storage goes with it */
	if (table == NULL && rel->rd_createSubid != InvalidSubTransactionId && !MotIsOrdinary(rel))
	{
		MotStorageCreateTable(rel, InvalidOid, relid);
		return mot_table_find(MotEngine, MyDatabaseId, relid);
	}
	if (MotRelationAwait == NULL || MotRelationAwait(MyDatabaseId, relid))
		table = mot_table_find(MotEngine, MyDatabaseId, relid);
	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("memory-optimized table \"%s\" has no storage", RelationGetRelationName(rel)),
				 errdetail("Neither a checkpoint nor the log had its rows."),
				 errhint("Restore it from a backup; TRUNCATE gives it empty storage, DROP TABLE removes it.")));
	return table;
}

bool
MotRelationAbsent(Oid number)
{
	if (MotRelationLost == NULL || mot_table_find(MotEngineRequired(), MyDatabaseId, number) != NULL)
		return false;
	MotPreparedAwaitEnded(true);
	return mot_table_find(MotEngine, MyDatabaseId, number) == NULL;
}

bool
MotRelationUnreadable(Relation rel)
{
	Oid			number = MotStorageNumber(rel);

	if (!MotRelationAbsent(number))
		return false;
	if (!IsUnderPostmaster)
		return true;
	MotRelationAwaitLoaded(MyDatabaseId, number);
	return MotRelationMissing(MyDatabaseId, number) || MotRelationLost(MyDatabaseId, number);
}

void
MotViewBeforeTable(const MotRelation *mr, mot_view *view)
{
	if (mot_view_sees(view, mr->born))
		return;
	if (mr->refuse_older)
	{
		mot_count_event(MotSession(), MOT_EVENT_SNAPSHOT);
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent ALTER TABLE"),
				 errdetail("The rows of memory-optimized table \"%s\" have been stored anew since the transaction's snapshot was taken.",
						   get_rel_name(mr->relid)),
				 errhint("The transaction might succeed if retried.")));
	}
	view->snapshot = 0;
	view->beyond = NULL;
}
