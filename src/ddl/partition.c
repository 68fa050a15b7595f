/*-------------------------------------------------------------------------
 *
 * partition.c
 *	  Rows of MOT tables that a new partition concerns.
 *
 * When a partitioned table gets a partition, by ATTACH or by CREATE TABLE ...
 * PARTITION OF, the rows of two tables have to be looked at: those that come
 * along must be within the partition's bounds, and those of the default
 * partition must not be.  A row that is where it does not belong is found by
 * no query that names its key.  The server looks at heap tables; foreign
 * tables it passes over, wherever they are below the two.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

Oid
MotPartitionParent(Node *stmt, Oid *partition)
{
	Oid			parent = InvalidOid;
	Oid			others;

	*partition = InvalidOid;
	if (IsA(stmt, CreateStmt) || IsA(stmt, CreateForeignTableStmt))
	{
		const CreateStmt *create = (const CreateStmt *) stmt;

		if (create->partbound != NULL && !create->partbound->is_default && create->inhRelations != NIL)
			parent = MotDdlLookup(linitial_node(RangeVar, create->inhRelations));
	}
	else if (IsA(stmt, AlterTableStmt))
	{
		/* (it comes alone, by the grammar) */
		AlterTableCmd *cmd = linitial_node(AlterTableCmd, ((AlterTableStmt *) stmt)->cmds);

		if (cmd->subtype == AT_AttachPartition)
		{
			parent = MotDdlLookup(((AlterTableStmt *) stmt)->relation);

			/*
			 * as the server will, and with the parent locked: see
			 * lock_altered
			 */
			*partition = RangeVarGetRelid(castNode(PartitionCmd, cmd->def)->name,
										  XactReadOnly ? NoLock : AccessExclusiveLock, true);
		}
	}
	if (!OidIsValid(parent) || get_rel_relkind(parent) != RELKIND_PARTITIONED_TABLE)
		return InvalidOid;
	others = get_default_partition_oid(parent);
	if ((OidIsValid(*partition) && MotTablesBelow(*partition, NoLock) != NIL) ||
		(OidIsValid(others) && MotTablesBelow(others, NoLock) != NIL))
		return parent;
	return InvalidOid;
}

/*
 * Every row below a table has to satisfy what the partitioned table asks of it
 * now.  (What the relation cache knows of the tables below may be older.)
 */
static void
check_tree(Oid relid, bool is_default, bool attached)
{
	Relation	root = table_open(relid, AccessExclusiveLock);
	List	   *qual = RelationGetPartitionQual(root);

	/* (the server has locked them all) */
	foreach_oid(oid, qual != NIL ? MotTablesBelow(relid, AccessExclusiveLock) : NIL)
	{
		Relation	rel = table_open(oid, NoLock);
		MotRowCheck *check = palloc0(sizeof(MotRowCheck));

		check->expr = make_ands_explicit(map_partition_varattnos(copyObject(qual), 1, rel, root));
		if (is_default)
			check->default_partition = pstrdup(RelationGetRelationName(attached ? rel : root));
		MotRewriteRows(rel, RelationGetDescr(rel), NIL, false, NULL, list_make1(check));
		table_close(rel, NoLock);
	}
	table_close(root, NoLock);
}

void
MotPartitionCheck(Oid parent, Oid partition)
{
	bool		attached = OidIsValid(partition);
	Oid			others;

	CommandCounterIncrement();
	others = get_default_partition_oid(parent);
	if (attached)
		check_tree(partition, false, true);
	if (OidIsValid(others) && others != partition)
		check_tree(others, true, attached);
}
