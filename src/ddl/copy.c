/*-------------------------------------------------------------------------
 *
 * copy.c
 *	  COPY on MOT tables: COPY t TO, which the server refuses for foreign
 *	  tables, and COPY t FROM ... FREEZE, which it does not understand there.
 *
 * COPY FREEZE has the heap's rules: the table was created or truncated by
 * this very subtransaction, and no snapshot or cursor could see its rows too
 * early.  The rows are then loaded without concurrency control.  What cannot be
 * is refused before the client is asked for the first row.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

/* -------------------------------------------------------------------- TO */

/*
 * COPY t (columns) TO as COPY (SELECT columns FROM ONLY t) TO: the columns
 * that COPY would take, so no generated ones.
 */
static void
copy_to(const MotUtility *u, CopyStmt *stmt)
{
	Relation	rel = table_openrv(stmt->relation, AccessShareLock);
	List	   *attnums;
	SelectStmt *select = makeNode(SelectStmt);
	RangeVar   *from = makeRangeVar(get_namespace_name(RelationGetNamespace(rel)),
									pstrdup(RelationGetRelationName(rel)), -1);

	/* what the server would not have copied, or not like this */
	if (!MotIsMotTable(RelationGetRelid(rel)))
		MotDdlRefuseReplaced(stmt->relation->relname, "COPY");
	attnums = CopyGetAttnums(RelationGetDescr(rel), rel, stmt->attlist);
	foreach_int(attnum, attnums)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
		ColumnRef  *column = makeNode(ColumnRef);
		ResTarget  *target = makeNode(ResTarget);

		column->fields = list_make1(makeString(pstrdup(NameStr(att->attname))));
		column->location = -1;
		target->val = (Node *) column;
		target->location = -1;
		select->targetList = lappend(select->targetList, target);
	}
	from->inh = false;
	select->fromClause = list_make1(from);

	/* keep the lock, so that nothing changes before the query runs */
	table_close(rel, NoLock);

	stmt->relation = NULL;
	stmt->attlist = NIL;
	stmt->query = (Node *) select;
	MotUtilityRun(u, (Node *) stmt);
}

/* ---------------------------------------------------------------- FREEZE */

/* take the option out; was it on? */
static bool
take_freeze(CopyStmt *stmt)
{
	List	   *rest = NIL;
	bool		freeze = false;
	int			seen = 0;

	foreach_node(DefElem, option, stmt->options)
	{
		if (strcmp(option->defname, "freeze") == 0)
		{
			freeze = defGetBoolean(option);
			seen++;
		}
		else
			rest = lappend(rest, option);
	}
	/* given twice: let the server complain */
	if (seen == 1)
		stmt->options = rest;
	return freeze && seen == 1;
}

static void
copy_freeze(const MotUtility *u, CopyStmt *stmt)
{
	Relation	rel = table_openrv(stmt->relation, RowExclusiveLock);
	Oid			relid = RelationGetRelid(rel);
	Oid			outer = MotLoadRelid;

	InvalidateCatalogSnapshot();
	if (!ThereAreNoPriorRegisteredSnapshots() || !ThereAreNoReadyPortals())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot perform COPY FREEZE because of prior transaction activity")));
	if (!MotStorageIsNew(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction")));
	table_close(rel, NoLock);

	PG_TRY();
	{
		MotLoadRelid = relid;
		MotUtilityRun(u, (Node *) stmt);
	}
	PG_FINALLY();
	{
		MotLoadRelid = outer;
	}
	PG_END_TRY();
}

bool
MotCopy(const MotUtility *u, CopyStmt *stmt)
{
	Oid			relid = stmt->relation != NULL ? MotDdlLookup(stmt->relation) : InvalidOid;
	bool		ours = OidIsValid(relid) && MotIsMotTable(relid);
	CopyStmt   *copy;

	/*
	 * FREEZE into a partitioned table the server refuses, too, but only after
	 * that
	 */
	if (!OidIsValid(relid) ||
		(!ours && (!stmt->is_from || stmt->options == NIL ||
				   get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE ||
				   MotTablesBelow(relid, NoLock) == NIL)))
		return false;
	copy = copyObject(stmt);
	if (!copy->is_from)
		copy_to(u, copy);
	else if (!take_freeze(copy))
		return false;
	else if (ours)
		copy_freeze(u, copy);
	else
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot perform COPY FREEZE on a partitioned table")));
	return true;
}
