/*-------------------------------------------------------------------------
 *
 * to_table.c
 *	  mot_to_table(): a foreign table of mot_server becomes an ordinary one.
 *
 * No row moves.  The table keeps its oid, so whatever refers to it in the catalogue
 * (constraints, defaults, sequences, triggers, privileges, comments, statistics,
 * views, partitions) stays as it is; and its storage keeps its number,
 * which is that oid: the file of the ordinary table is given the same one
 * (src/ddl/README.md).  What changes is what kind of relation the catalogue says
 * it is, and that its indexes are btrees.  The server refreshes the kind that stored
 * queries have noted whenever it rewrites them (AcquireRewriteLocks).
 *
 * The relation cache must have nothing of the table to hold on to: it keeps an index's access
 * method for what was made in the transaction.  So such a table is refused, and the indexes keep
 * their files, in which nothing is but, from now on, a btree's first page. It stays there if the
 * transaction fails, and nobody minds.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "relation/relation.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(mot_to_table);

/* ------------------------------------------------------------ what stands in the way */

static void
check_new(Relation rel, const char *name)
{
	if (rel->rd_createSubid != InvalidSubTransactionId || rel->rd_newRelfilelocatorSubid != InvalidSubTransactionId)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make an ordinary table of \"%s\" in the transaction that has made \"%s\"",
						name, RelationGetRelationName(rel)),
				 errhint("Commit first.")));
}

static void
check_obstacles(Relation rel, List *indexes)
{
	const char *name = RelationGetRelationName(rel);

	/* each partition but foreign ones has its part of them */
	if (rel->rd_rel->relispartition)
	{
		Relation	parent = table_open(get_partition_parent(RelationGetRelid(rel), false), AccessShareLock);

		if (RelationGetIndexList(parent) != NIL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot make an ordinary table of partition \"%s\" because \"%s\" has indexes",
							name, RelationGetRelationName(parent)),
					 errhint("Detach the partition first, and attach it again afterwards.")));
		table_close(parent, NoLock);
	}

	check_new(rel, name);
	foreach_oid(oid, indexes)
	{
		Relation	index = index_open(oid, AccessExclusiveLock);

		CheckTableNotInUse(index, "make an ordinary table with");
		check_new(index, name);
		index_close(index, NoLock);
	}
}

/* --------------------------------------------------------------- the catalogue */

static HeapTuple
copy_of(int cache, Oid oid)
{
	HeapTuple	tuple = SearchSysCacheCopy1(cache, ObjectIdGetDatum(oid));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for %u", oid);
	return tuple;
}

static void
change_index(Relation pg_class, Oid indexoid)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = copy_of(INDEXRELID, indexoid);
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	oidvector  *classes;
	bool		isnull;

	/* (the column is there: no index of ours has none) */
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull));
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		HeapTuple	old = SearchSysCache1(CLAOID, ObjectIdGetDatum(classes->values[i]));
		Oid			btree = InvalidOid;

		if (HeapTupleIsValid(old))
		{
			btree = GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(BTREE_AM_OID),
									NameGetDatum(&((Form_pg_opclass) GETSTRUCT(old))->opcname),
									ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
			ReleaseSysCache(old);
		}
		if (!OidIsValid(btree))
			elog(ERROR, "operator class %u of index \"%s\" is none of btree's", classes->values[i], get_rel_name(indexoid));
		classes->values[i] = btree;
	}
	/* on btree's there is none, since they are built in */
	deleteDependencyRecordsForClass(RelationRelationId, indexoid, OperatorClassRelationId, DEPENDENCY_NORMAL);
	CatalogTupleUpdate(pg_index, &tuple->t_self, tuple);
	table_close(pg_index, RowExclusiveLock);

	tuple = copy_of(RELOID, indexoid);
	((Form_pg_class) GETSTRUCT(tuple))->relam = BTREE_AM_OID;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
}

static void
change_table(Relation pg_class, Oid relid)
{
	Relation	pg_foreign_table = table_open(ForeignTableRelationId, RowExclusiveLock);
	HeapTuple	tuple = copy_of(FOREIGNTABLEREL, relid);
	Form_pg_class form;
	ObjectAddress table;
	ObjectAddress am;

	ObjectAddressSet(table, RelationRelationId, relid);
	ObjectAddressSet(am, AccessMethodRelationId, get_table_am_oid(MOT_TABLE_AM_NAME, false));
	deleteDependencyRecordsForSpecific(RelationRelationId, relid, DEPENDENCY_NORMAL, ForeignServerRelationId,
									   ((Form_pg_foreign_table) GETSTRUCT(tuple))->ftserver);
	recordDependencyOn(&table, &am, DEPENDENCY_NORMAL);
	/* (there is but one option) */
	foreach_node(DefElem, option, GetForeignTable(relid)->options)
		MotTableKeepMaxSize(relid, defGetString(option));
	CatalogTupleDelete(pg_foreign_table, &tuple->t_self);
	table_close(pg_foreign_table, RowExclusiveLock);

	tuple = copy_of(RELOID, relid);
	form = (Form_pg_class) GETSTRUCT(tuple);
	form->relkind = RELKIND_RELATION;
	form->relam = am.objectId;
	form->relfilenode = relid;
	form->relreplident = REPLICA_IDENTITY_DEFAULT;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
}

/* -------------------------------------------------------------------- files */

/*
 * opened anew each time: whoever looks at catalogues or waits may be told that it has gone, and
 * closes it
 */
static SMgrRelation
file_of(Oid relid)
{
	RelFileLocator node = {MyDatabaseTableSpace, MyDatabaseId, relid};

	return smgropen(node, INVALID_PROC_NUMBER);
}

static bool
file_is_somebodys(Oid relid)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	SnapshotData dirty;
	bool		found;

	InitDirtySnapshot(dirty);
	ScanKeyInit(&keys[0], Anum_pg_class_reltablespace, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(InvalidOid));
	ScanKeyInit(&keys[1], Anum_pg_class_relfilenode, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_class, ClassTblspcRelfilenodeIndexId, true, &dirty, 2, keys);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return found || smgrnblocks(file_of(relid), MAIN_FORKNUM) > 0;
}

/*
 * There is a file already if this has been tried and rolled back: it goes with the
 * next checkpoint; or if the server has crashed then: it would stay for ever.
 */
static void
clear_file(Oid relid, bool locked)
{
	if (!smgrexists(file_of(relid), MAIN_FORKNUM))
		return;
	RequestCheckpoint(CHECKPOINT_FAST | CHECKPOINT_FORCE | CHECKPOINT_WAIT);
	/* (nobody else is just making it) */
	if (locked && smgrexists(file_of(relid), MAIN_FORKNUM) && !file_is_somebodys(relid))
	{
		SMgrRelation file = file_of(relid);

		smgrdounlinkall(&file, 1, true);
	}
}

/*
 * As a permanent table's, but for one thing: with wal_level = minimal the server would take it for
 * a file that is not logged because it is new, and its relation cache entry does not say so.
 */
static void
create_file(Oid relid)
{
	RelFileLocator node = {MyDatabaseTableSpace, MyDatabaseId, relid};

	if (smgrexists(file_of(relid), MAIN_FORKNUM))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("number %u of memory-optimized table \"%s\" is in use for another relation's file",
						relid, get_rel_name(relid)),
				 errhint("Copy the table's rows to a new one.")));
	smgrclose(RelationCreateStorage(node, RELPERSISTENCE_UNLOGGED, true));
	log_smgrcreate(&node, MAIN_FORKNUM);
}

/* The planner reads it.  (There can be one from before: not tried for the first time.) */
static void
write_first_page(Oid indexoid)
{
	Relation	index = index_open(indexoid, NoLock);
	bool		allequalimage = _bt_allequalimage(index, false);
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM, RelationGetNumberOfBlocks(index) == 0 ? P_NEW : BTREE_METAPAGE,
											RBM_ZERO_AND_LOCK, NULL);

	START_CRIT_SECTION();
	_bt_initmetapage(BufferGetPage(buffer), P_NONE, 0, allequalimage);
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	index_close(index, NoLock);
}

Datum
mot_to_table(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel;
	Relation	pg_class;
	List	   *indexes;

	PreventCommandIfReadOnly("mot_to_table()");
	PreventCommandIfParallelMode("mot_to_table()");
	PreventCommandDuringRecovery("mot_to_table()");

	/*
	 * before waiting for the lock, and letting others wait; and again, when
	 * nobody can change it
	 */
	for (int i = 0; i < 2; i++)
	{
		char	   *name = get_rel_name(relid);

		if (name == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("relation with OID %u does not exist", relid)));
		if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
			aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), name);
		if (!MotIsMotTable(relid))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a memory-optimized foreign table", name)));
		clear_file(relid, i > 0);
		if (i == 0)
			LockRelationOid(relid, AccessExclusiveLock);
	}

	rel = relation_open(relid, NoLock);
	CheckTableNotInUse(rel, "make an ordinary table of");

	/*
	 * waits for it if need be, and looks whether it is what the catalogue
	 * says
	 */
	(void) MotRelationGet(rel);
	indexes = RelationGetIndexList(rel);
	check_obstacles(rel, indexes);
	relation_close(rel, NoLock);

	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	create_file(relid);
	change_table(pg_class, relid);
	foreach_oid(oid, indexes)
		change_index(pg_class, oid);
	table_close(pg_class, RowExclusiveLock);
	CommandCounterIncrement();

	rel = relation_open(relid, NoLock);
	MotStorageTurnOrdinary(rel);
	foreach_oid(oid, indexes)
		write_first_page(oid);
	MotStorageMendIndexes(rel);
	InvokeObjectPostAlterHook(RelationRelationId, relid, 0);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}
