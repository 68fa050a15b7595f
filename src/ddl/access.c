/*-------------------------------------------------------------------------
 *
 * access.c
 *	  The object-access hook: storage goes when its catalogue entry goes, and
 *	  the log hears of definitions that change.
 *
 * OAT_DROP sees every way a table or an index can be dropped: by name, with
 * its schema, owner, server or extension, by CASCADE, or with a column.  The
 * storage layer makes it happen at commit.  Columns come by OAT_POST_CREATE
 * and go by OAT_DROP; everything else about a table is OAT_POST_ALTER (its
 * options have a class of their own, and so have constraints and partitions).
 * And a new database is heard of here, and a trigger.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_database.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "compat/notnull.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "relation/relation.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/reltrigger.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static object_access_hook_type prev_object_access = NULL;

/*
 * A constraint comes, perhaps not visible yet, or is validated; or NOT NULL goes (how others go:
 * MotAlterFinish).
 */
static void
constraint_changed(Oid constraint, bool goes)
{
	Relation	pg_constraint = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			relid = InvalidOid;
	bool		not_null = false;

	ScanKeyInit(&key, Anum_pg_constraint_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(constraint));
	scan = systable_beginscan(pg_constraint, ConstraintOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		/*
		 * (one that is not valid goes before its column, which then looks as
		 * if rows had been looked at)
		 */
		not_null = goes ? MotNotNullDropped(tuple) || (MotIsNotNull(tuple) && !form->convalidated) : MotIsNotNull(tuple);
		if (not_null || (!goes && form->contype == CONSTRAINT_CHECK))
			relid = form->conrelid;
	}
	systable_endscan(scan);
	table_close(pg_constraint, AccessShareLock);

	if (OidIsValid(relid) && (MotIsMotTable(relid) || (not_null && MotIsOrdinaryTable(relid))))
		MotStorageDefinitionChanged(relid);
}

/* ... those of the tables below, whom the server locks like this as well */
static void
tree_changed(Oid relid, LOCKMODE lockmode)
{
	if (MotTablesBelow(relid, lockmode) == NIL)
		return;
	foreach_oid(oid, MotTablesBelow(relid, AccessExclusiveLock))
		MotStorageDefinitionChanged(oid);
}

/*
 * A partitioned table gets a partition, or loses one.  Before one comes the server locks all that
 * is below the default partition, but perhaps later than this.
 */
static void
partition_changed(Oid partition, Oid parent)
{
	Oid			others;
	bool		comes;

	if (get_rel_relkind(parent) != RELKIND_PARTITIONED_TABLE)
		return;
	comes = MotPartitionComes(parent, partition);
	tree_changed(partition, NoLock);
	others = get_default_partition_oid(parent);
	if (!OidIsValid(others) || others == partition)
		return;
	if (comes)
		LockRelationOid(others, AccessExclusiveLock);
	tree_changed(others, comes ? AccessExclusiveLock : NoLock);
}

static Oid
file_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			number;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	number = ((Form_pg_class) GETSTRUCT(tuple))->relfilenode;
	ReleaseSysCache(tuple);
	return number;
}

/*
 * (An index of our access method can also be a failed one on a heap table.)  Of none of ours there
 * is a concurrent way, see drop.c: its table or its name has changed hands since.
 */
static void
drop_index(Oid indexoid, bool concurrently)
{
	Oid			relid = IndexGetRelation(indexoid, true);

	if (!OidIsValid(relid))
		return;
	if (concurrently && (MotIsMotTable(relid) || MotIsOrdinaryTable(relid)))
		MotDdlRefuseReplaced(get_rel_name(indexoid), "DROP INDEX");
	if (MotIsMotTable(relid))
		MotStorageDropIndex(relid, indexoid);
	else if (MotIsOrdinaryTable(relid))
		MotStorageDropIndex(file_of(relid), indexoid);
}

/* a condition may name these of a row's system columns (bits), and no others */
static void
check_system_columns(Node *when, int row, int bits)
{
	Bitmapset  *columns = NULL;
	int			column = -1;

	pull_varattnos(when, row, &columns);
	while ((column = bms_next_member(columns, column)) >= 0 && column + FirstLowInvalidHeapAttributeNumber < 0)
		if ((bits & (1 << -(column + FirstLowInvalidHeapAttributeNumber))) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("trigger's WHEN condition cannot reference system columns of a memory-optimized table"),
					 errhint("To tell whether a row has changed, give it a column that every update changes, such as a version number.")));
}

/*
 * OLD.xmin and its like rows have not; nor, of foreign tables, ctid when they are handed to
 * triggers.  Of what an ordinary table's statement has written xmax is known.
 */
void
MotCheckTrigger(const char *condition, bool ordinary)
{
	Node	   *when = stringToNode(condition);
	int			bits = 1 << -TableOidAttributeNumber;

	if (ordinary)
		bits |= 1 << -SelfItemPointerAttributeNumber;
	check_system_columns(when, PRS2_OLD_VARNO, bits);
	if (ordinary)
		bits |= 1 << -MaxTransactionIdAttributeNumber;
	check_system_columns(when, PRS2_NEW_VARNO, bits);
}

void
MotCheckTriggers(Relation rel)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		if (rel->trigdesc->triggers[i].tgqual != NULL)
			MotCheckTrigger(rel->trigdesc->triggers[i].tgqual, MotIsOrdinary(rel));
}

/* (that of a partitioned table is created for each partition, too) */
static void
trigger_created(Oid trigger)
{
	Relation	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(trigger));
	scan = systable_beginscan(pg_trigger, TriggerOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Oid			relid = ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid;
		bool		ordinary = MotIsOrdinaryTable(relid) && get_rel_relkind(relid) == RELKIND_RELATION;
		bool		isnull;
		Datum		when = heap_getattr(tuple, Anum_pg_trigger_tgqual, RelationGetDescr(pg_trigger), &isnull);

		if (!isnull && (ordinary || MotIsMotTable(relid)))
			MotCheckTrigger(TextDatumGetCString(when), ordinary);
	}
	systable_endscan(scan);
	table_close(pg_trigger, AccessShareLock);
}

static void
mot_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class_id, object_id, sub_id, arg);

	if (class_id == ConstraintRelationId &&
		(access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP))
		constraint_changed(object_id, access == OAT_DROP);
	if (class_id == TriggerRelationId && access == OAT_POST_CREATE)
		trigger_created(object_id);
	if (class_id == DatabaseRelationId && access == OAT_POST_CREATE)
		MotDatabaseComes(object_id);
	if (class_id == DatabaseRelationId && access == OAT_DROP)
		MotDatabaseGoes(object_id);
	if (class_id == InheritsRelationId && access == OAT_POST_ALTER)
		partition_changed(object_id, ((ObjectAccessPostAlter *) arg)->auxiliary_id);
	if (class_id != RelationRelationId &&
		(class_id != ForeignTableRelationId || access != OAT_POST_ALTER))
		return;
	if (access == OAT_POST_ALTER || (sub_id != 0 && (access == OAT_DROP || access == OAT_POST_CREATE)))
	{
		if (MotIsOrdinaryTable(object_id) ||
			(get_rel_relkind(object_id) == RELKIND_FOREIGN_TABLE && MotIsMotTable(object_id)))
			MotStorageDefinitionChanged(object_id);
		return;
	}
	if (access != OAT_DROP)
		return;

	switch (get_rel_relkind(object_id))
	{
		case RELKIND_FOREIGN_TABLE:
			if (MotIsMotTable(object_id))
				MotStorageDropTable(object_id);
			break;
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
			if (MotIsOrdinaryTable(object_id))
				MotStorageDropLost(file_of(object_id));
			break;
		case RELKIND_INDEX:
			drop_index(object_id, (((ObjectAccessDrop *) arg)->dropflags & PERFORM_DELETION_CONCURRENTLY) != 0);
			break;
		default:
			break;
	}
}

void
MotAccessInit(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = mot_object_access;
}
