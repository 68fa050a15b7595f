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
 * Which two these are is told by the object-access hook, when the server has locked what it
 * has been named: before that the names, and the default partition, can change.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "utils/partcache.h"

/* a partition that a statement makes, or attaches; of nothing yet, until it has come */
typedef struct NewPartition
{
	Oid			parent;
	Oid			partition;
} NewPartition;

/* what the statement makes that is running; NULL: it is none of these */
static NewPartition *adding = NULL;

bool
MotPartitionComes(Oid parent, Oid partition)
{
	if (adding == NULL || OidIsValid(adding->parent))
		return false;
	adding->parent = parent;
	adding->partition = partition;
	return true;
}

/*
 * Every row below a table has to satisfy what the partitioned table asks of
 * it now.  (What the relation cache knows of the tables below may be older.)
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

static void
check_new(const NewPartition *made, bool attached)
{
	Oid			others;

	CommandCounterIncrement();
	others = get_default_partition_oid(made->parent);
	if (attached && MotTablesBelow(made->partition, NoLock) != NIL)
		check_tree(made->partition, false, true);
	if (OidIsValid(others) && others != made->partition && MotTablesBelow(others, NoLock) != NIL)
		check_tree(others, true, attached);
}

bool
MotPartitionIsMade(Node *stmt)
{
	return (IsA(stmt, CreateStmt) || IsA(stmt, CreateForeignTableStmt)) && ((CreateStmt *) stmt)->partbound != NULL;
}

/* (ATTACH PARTITION comes alone, by the grammar) */
void
MotPartitionAround(Node *stmt, void (*run) (const MotUtility *u, Oid altered), const MotUtility *u, Oid altered)
{
	bool		attaches = IsA(stmt, AlterTableStmt) &&
	linitial_node(AlterTableCmd, ((AlterTableStmt *) stmt)->cmds)->subtype == AT_AttachPartition;
	bool		adds = attaches || MotPartitionIsMade(stmt);
	NewPartition *outer = adding;
	NewPartition made = {InvalidOid, InvalidOid};

	if (!adds && outer == NULL)
	{
		run(u, altered);
		return;
	}

	/*
	 * (an outer statement may go on when one in an event trigger's function
	 * has failed)
	 */
	PG_TRY();
	{
		adding = adds ? &made : NULL;
		run(u, altered);
	}
	PG_FINALLY();
	{
		adding = outer;
	}
	PG_END_TRY();
	if (OidIsValid(made.parent))
		check_new(&made, attaches);
}
