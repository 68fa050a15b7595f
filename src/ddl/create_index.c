/*-------------------------------------------------------------------------
 *
 * create_index.c
 *	  CREATE INDEX on a MOT table, and the indexes behind its keys.
 *
 * Checks of what an index in memory cannot be, then DefineIndex for the catalogue
 * with access method mot, and the engine index built by MotStorageCreateIndex.
 * Never btree: the planner and the executor would open a btree file.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/attribute.h"
#include "compat/calls.h"
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "parser/parse_utilcmd.h"
#include "relation/relation.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static void
check_shape(Relation rel, IndexStmt *stmt)
{
	if (stmt->excludeOpNames)
		MotRefuseExclusion(RelationGetRelationName(rel));
	if (stmt->accessMethod != NULL &&
		strcmp(stmt->accessMethod, MOT_AM_NAME) != 0 &&
		strcmp(stmt->accessMethod, DEFAULT_INDEX_TYPE) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" is not supported on memory-optimized table \"%s\"",
						stmt->accessMethod, RelationGetRelationName(rel)),
				 errhint("Leave USING out: indexes of memory-optimized tables are ordered and serve equality and ranges.")));
	if (stmt->whereClause)
		MotRefuse(RelationGetRelationName(rel), "partial indexes", "Create the index without WHERE.");
	if (stmt->indexIncludingParams)
		MotRefuseIncluded(RelationGetRelationName(rel));
	if (stmt->deferrable || stmt->initdeferred)
		MotRefuseDeferrable(RelationGetRelationName(rel));
	if (stmt->nulls_not_distinct)
		MotRefuse(RelationGetRelationName(rel), "keys with NULLS NOT DISTINCT",
				  "Declare the columns NOT NULL, or leave NULLS NOT DISTINCT out.");

	/* storage parameters of btree do no harm; others are mistakes */
	foreach_node(DefElem, option, stmt->options)
	{
		if (strcmp(option->defname, "fillfactor") != 0 &&
			strcmp(option->defname, "deduplicate_items") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unrecognized parameter \"%s\"", option->defname)));
	}
	/* rows in memory have no tablespace, but a wrong name is still a mistake */
	if (stmt->tableSpace)
		(void) get_tablespace_oid(stmt->tableSpace, false);
}

/*
 * DDL written for ordinary tables names btree's operator classes, which are
 * always in the search path.  Ours of the same names are in the extension's
 * schema, which need not be (pg_dump's scripts have an empty one).
 */
static List *
own_opclass(List *name, Oid am)
{
	HeapTuple	tuple;
	List	   *ours;

	if (name == NIL || OidIsValid(get_opclass_oid(am, name, true)) ||
		!OidIsValid(get_opclass_oid(BTREE_AM_OID, name, true)))
		return name;

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(GetDefaultOpClass(INT4OID, am)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "access method %s has no operator class for integer", MOT_AM_NAME);
	ours = list_make2(makeString(get_namespace_name(((Form_pg_opclass) GETSTRUCT(tuple))->opcnamespace)),
					  llast(name));
	ReleaseSysCache(tuple);
	return OidIsValid(get_opclass_oid(am, ours, true)) ? ours : name;
}

/*
 * What of the columns the server does not look for; what is wrong with others, it says itself.
 * Returns them.
 */
static Bitmapset *
check_columns(Relation rel, IndexStmt *stmt)
{
	Bitmapset  *columns = NULL;

	foreach_node(IndexElem, elem, stmt->indexParams)
	{
		AttrNumber	attnum;
		Form_pg_attribute att;
		Node	   *expr = elem->expr;

		while (expr && IsA(expr, CollateExpr))
			expr = (Node *) ((CollateExpr *) expr)->arg;
		if (elem->name != NULL)
			attnum = get_attnum(RelationGetRelid(rel), elem->name);
		else if (IsA(expr, Var) && ((Var *) expr)->varattno != InvalidAttrNumber)
			attnum = ((Var *) expr)->varattno;	/* "(column)" */
		else
			MotRefuse(RelationGetRelationName(rel), "indexes on expressions",
					  "Add a generated column (GENERATED ALWAYS AS (...) STORED) and index that.");
		elem->opclass = own_opclass(elem->opclass, MotAmOid(false));
		if (attnum <= 0 || MotIsVirtualColumn(TupleDescAttr(RelationGetDescr(rel), attnum - 1)))
			continue;
		columns = bms_add_member(columns, attnum);

		att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
		if (!MotKeyTypeSupported(att->atttypid))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of type %s cannot be indexed in memory-optimized table \"%s\"",
							NameStr(att->attname), format_type_be(att->atttypid),
							RelationGetRelationName(rel)),
					 errdetail("There is no order-preserving encoding for the type."),
					 errhint("Index a column of another type, such as a generated one.")));
	}
	return columns;
}

/*
 * A primary key's columns become NOT NULL first (and their rows are checked).  Nobody
 * has the index open then, which would look like a query that is using it; nor the table.
 */
static void
prepare_primary_key(Oid relid, Bitmapset *columns)
{
	Relation	rel = table_open(relid, NoLock);
	List	   *cmds = NIL;
	List	   *altered;

	/* before the columns change: this is the better message */
	if (OidIsValid(MotGetPrimaryKeyIndex(rel)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				 errmsg("multiple primary keys for table \"%s\" are not allowed",
						RelationGetRelationName(rel))));
	for (int attnum = -1; (attnum = bms_next_member(columns, attnum)) >= 0;)
	{
		if (!MotAttributeNotNull(RelationGetDescr(rel), attnum - 1))
		{
			AlterTableCmd *cmd = makeNode(AlterTableCmd);

			cmd->subtype = AT_SetNotNull;
			cmd->name = get_attname(relid, attnum, false);
			cmds = lappend(cmds, cmd);
		}
	}
	table_close(rel, NoLock);
	if (cmds == NIL)
		return;
	altered = MotAlterBegin(relid, cmds, true, AccessExclusiveLock, NULL);
	AlterTableInternal(relid, cmds, true);
	CommandCounterIncrement();
	MotAlterFinish(altered, NULL);
}

/*
 * The catalogue's entries are made by the server's own DefineIndex.  It asks what kind of table
 * this is and refuses foreign ones, so for that moment the relation cache calls it an ordinary
 * table with a file (those without are the catalogue's own, whose files it looks for when all it
 * has is no longer good): until DefineIndex, having looked, asks the access method what it can.
 * (The lock, which it will have again, sees to it that the entry is not made anew before.)
 */
static Relation shown = NULL;

void
MotShowAsItIs(void)
{
	if (shown == NULL)
		return;
	shown->rd_rel->relkind = RELKIND_FOREIGN_TABLE;
	shown->rd_rel->relfilenode = InvalidOid;
	shown = NULL;
}

static Oid
make_entries(Oid relid, IndexStmt *stmt, bool check_rights)
{
	ObjectAddress address;
	Relation	rel = table_open(relid, ShareLock);

	stmt->accessMethod = pstrdup(MOT_AM_NAME);
	stmt->options = NIL;
	stmt->tableSpace = NULL;
	stmt->reset_default_tblspc = true;
	stmt->concurrent = false;
	PG_TRY();
	{
		shown = rel;
		rel->rd_rel->relkind = RELKIND_RELATION;
		rel->rd_rel->relfilenode = relid;
		address = MotDefineIndexUnbuilt(relid, stmt, check_rights);
	}
	PG_FINALLY();
	{
		MotShowAsItIs();
	}
	PG_END_TRY();
	table_close(rel, NoLock);
	return address.objectId;
}

Oid
MotDefineIndex(Oid relid, IndexStmt *stmt, bool check_rights)
{
	Relation	rel = table_open(relid, NoLock);
	Bitmapset  *columns;
	Oid			indexoid;

	CheckTableNotInUse(rel, "CREATE INDEX");
	check_shape(rel, stmt);
	columns = check_columns(rel, stmt);
	table_close(rel, NoLock);

	/* (what is no column of the table, the server says) */
	if (stmt->primary && bms_num_members(columns) == list_length(stmt->indexParams))
		prepare_primary_key(relid, columns);
	indexoid = make_entries(relid, stmt, check_rights);
	if (OidIsValid(indexoid))
	{
		Relation	index = index_open(indexoid, NoLock);

		rel = table_open(relid, NoLock);
		MotStorageCreateIndex(rel, index);
		index_close(index, NoLock);
		table_close(rel, NoLock);
		CommandCounterIncrement();
	}
	return indexoid;
}

void
MotRebuildIndex(Relation rel, Oid indexoid)
{
	Relation	index;

	MotStorageDropIndex(RelationGetRelid(rel), indexoid);
	index = index_open(indexoid, AccessExclusiveLock);
	MotStorageCreateIndex(rel, index);
	index_close(index, NoLock);
	CacheInvalidateRelcache(rel);
}

/* -------------------------------------------------------- USING INDEX */

/*
 * ALTER TABLE ... ADD CONSTRAINT ... PRIMARY KEY / UNIQUE USING INDEX, as
 * transformIndexConstraint and ATExecAddIndexConstraint have it for btrees.
 */
void
MotAdoptIndex(Oid relid, Constraint *constraint)
{
	Relation	rel = table_open(relid, NoLock);
	bool		primary = (constraint->contype == CONSTR_PRIMARY);
	Oid			indexoid;
	Relation	index;
	Form_pg_index form;
	IndexInfo  *info;
	Bitmapset  *columns = NULL;
	char	   *name;

	indexoid = get_relname_relid(constraint->indexname, RelationGetNamespace(rel));
	if (!OidIsValid(indexoid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index \"%s\" does not exist", constraint->indexname)));
	index = index_open(indexoid, AccessShareLock);
	form = index->rd_index;

	if (OidIsValid(get_index_constraint(indexoid)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is already associated with a constraint",
						constraint->indexname)));
	if (form->indrelid != relid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" does not belong to table \"%s\"",
						constraint->indexname, RelationGetRelationName(rel))));
	if (!form->indisunique)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a unique index", constraint->indexname),
				 errdetail("Cannot create a primary key or unique constraint using such an index.")));
	if (constraint->deferrable || constraint->initdeferred)
		MotRefuseDeferrable(RelationGetRelationName(rel));

	for (int i = 0; i < form->indnatts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel),
											  form->indkey.values[i] - 1);

		if (get_index_column_opclass(indexoid, i + 1) != GetDefaultOpClass(att->atttypid, index->rd_rel->relam) ||
			att->attcollation != index->rd_indcollation[i] ||
			index->rd_indoption[i] != 0)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("index \"%s\" column number %d does not have default sorting behavior",
							constraint->indexname, i + 1),
					 errdetail("Cannot create a primary key or unique constraint using such an index.")));
		columns = bms_add_member(columns, form->indkey.values[i]);
	}
	info = BuildIndexInfo(index);

	name = constraint->conname ? constraint->conname : constraint->indexname;
	if (strcmp(name, constraint->indexname) != 0)
	{
		ereport(NOTICE,
				(errmsg("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"%s\" to \"%s\"",
						constraint->indexname, name)));
		RenameRelationInternal(indexoid, name, false, true);
	}
	if (primary)
	{
		index_close(index, NoLock);
		table_close(rel, NoLock);
		prepare_primary_key(relid, columns);
		rel = table_open(relid, NoLock);
		index = index_open(indexoid, NoLock);
	}
	(void) index_constraint_create(rel, indexoid, InvalidOid, info, name,
								   primary ? CONSTRAINT_PRIMARY : CONSTRAINT_UNIQUE,
								   INDEX_CONSTR_CREATE_UPDATE_INDEX |
								   INDEX_CONSTR_CREATE_REMOVE_OLD_DEPS |
								   (primary ? INDEX_CONSTR_CREATE_MARK_AS_PRIMARY : 0),
								   allowSystemTableMods, false);
	index_close(index, NoLock);
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/* ------------------------------------------------------------ statement */

static void
create_index_body(const MotUtility *u, void *arg)
{
	IndexStmt  *stmt = (IndexStmt *) arg;
	Oid			relid;
	Oid			indexoid;
	ObjectAddress address;

	/*
	 * Stronger than heap's ShareLock: readers go on, writers wait, and so
	 * does a second CREATE INDEX, since the engine builds one index of a
	 * table at a time.
	 */
	relid = RangeVarGetRelidExtended(stmt->relation, ShareRowExclusiveLock, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	if (!MotIsMotTable(relid))
		MotDdlRefuseReplaced(stmt->relation->relname, "CREATE INDEX");
	stmt = transformIndexStmt(relid, stmt, u->query_string);

	EventTriggerAlterTableStart(u->pstmt->utilityStmt);
	indexoid = MotDefineIndex(relid, stmt, true);
	ObjectAddressSet(address, RelationRelationId, indexoid);
	EventTriggerCollectSimpleCommand(address, InvalidObjectAddress, u->pstmt->utilityStmt);
	EventTriggerAlterTableEnd();
}

bool
MotCreateIndex(const MotUtility *u, IndexStmt *stmt)
{
	if (!MotDdlNamesMotTable(stmt->relation))
	{
		/* a heap table LIKE one of ours gets heap's kind of index */
		if (stmt->transformed && strcmp(stmt->accessMethod, MOT_AM_NAME) == 0)
		{
			stmt = copyObject(stmt);
			stmt->accessMethod = pstrdup(DEFAULT_INDEX_TYPE);
			MotUtilityRun(u, (Node *) stmt);
			return true;
		}
		return false;
	}
	if (stmt->concurrent)
	{
		PreventInTransactionBlock(MotUtilityIsTopLevel(u), "CREATE INDEX CONCURRENTLY");
		ereport(NOTICE,
				(errmsg("the index of memory-optimized table \"%s\" is built while writers wait",
						stmt->relation->relname)));
	}
	MotUtilityWhole(u, create_index_body, copyObject(stmt));
	return true;
}
