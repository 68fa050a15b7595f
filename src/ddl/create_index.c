/*-------------------------------------------------------------------------
 *
 * create_index.c
 *	  CREATE INDEX on a MOT table, and the indexes behind its keys.
 *
 * DefineIndex refuses foreign tables, so this is its counterpart: checks,
 * index_create() for the catalogue with access method mot, and the engine
 * index built by MotStorageCreateIndex.  Never btree: the planner and the
 * executor would open a btree file.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "compat/attribute.h"
#include "compat/calls.h"
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "commands/tablespace.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_utilcmd.h"
#include "relation/relation.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static void
check_shape(Relation rel, IndexStmt *stmt)
{
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
		MotRefuse(RelationGetRelationName(rel), "included columns",
				  "Create the index without INCLUDE: every lookup reaches the whole row in memory anyway.");
	if (stmt->excludeOpNames)
		MotRefuseExclusion(RelationGetRelationName(rel));
	if (stmt->deferrable || stmt->initdeferred)
		MotRefuseDeferrable(RelationGetRelationName(rel));
	if (stmt->nulls_not_distinct)
		MotRefuse(RelationGetRelationName(rel), "keys with NULLS NOT DISTINCT",
				  "Declare the columns NOT NULL, or leave NULLS NOT DISTINCT out.");

	if (list_length(stmt->indexParams) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("must specify at least one column")));
	if (list_length(stmt->indexParams) > INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("cannot use more than %d columns in an index", INDEX_MAX_KEYS)));

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

/* -------------------------------------------------------------- names */

/* as ChooseIndexColumnNames */
static List *
column_names(List *params)
{
	List	   *result = NIL;

	foreach_node(IndexElem, elem, params)
	{
		const char *origname = elem->indexcolname ? elem->indexcolname : elem->name;
		char		name[NAMEDATALEN];

		strlcpy(name, origname, NAMEDATALEN);
		for (int i = 1;; i++)
		{
			char		suffix[32];
			int			len;
			ListCell   *lc2;

			foreach(lc2, result)
			{
				if (strcmp(name, (char *) lfirst(lc2)) == 0)
					break;
			}
			if (lc2 == NULL)
				break;
			snprintf(suffix, sizeof(suffix), "%d", i);
			len = pg_mbcliplen(origname, strlen(origname), NAMEDATALEN - 1 - strlen(suffix));
			memcpy(name, origname, len);
			strcpy(name + len, suffix);
		}
		result = lappend(result, pstrdup(name));
	}
	return result;
}

/* as ChooseIndexName */
static char *
choose_name(Relation rel, IndexStmt *stmt, List *colnames)
{
	StringInfoData columns;

	if (stmt->primary)
		return ChooseRelationName(RelationGetRelationName(rel), NULL, "pkey",
								  RelationGetNamespace(rel), true);

	initStringInfo(&columns);
	foreach_ptr(char, colname, colnames)
	{
		if (columns.len > 0)
			appendStringInfoChar(&columns, '_');
		appendStringInfoString(&columns, colname);
		if (columns.len >= NAMEDATALEN)
			break;
	}
	return ChooseRelationName(RelationGetRelationName(rel), columns.data,
							  stmt->isconstraint ? "key" : "idx",
							  RelationGetNamespace(rel), stmt->isconstraint);
}

/*
 * DDL written for ordinary tables names btree's operator classes, which are
 * always in the search path.  Ours of the same names are in the extension's
 * schema, which need not be (pg_dump's scripts have an empty one).
 */
static List *
own_opclass(List *name, Oid am)
{
	Oid			theirs;
	HeapTuple	tuple;
	List	   *ours;

	if (name == NIL || OidIsValid(get_opclass_oid(am, name, true)))
		return name;
	theirs = get_opclass_oid(BTREE_AM_OID, name, true);
	if (!OidIsValid(theirs))
		return name;

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(GetDefaultOpClass(INT4OID, am)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "access method %s has no operator class for integer", MOT_AM_NAME);
	ours = list_make1(makeString(get_namespace_name(((Form_pg_opclass) GETSTRUCT(tuple))->opcnamespace)));
	ReleaseSysCache(tuple);

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(theirs));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for opclass %u", theirs);
	ours = lappend(ours, makeString(pstrdup(NameStr(((Form_pg_opclass) GETSTRUCT(tuple))->opcname))));
	ReleaseSysCache(tuple);

	return OidIsValid(get_opclass_oid(am, ours, true)) ? ours : name;
}

/* ------------------------------------------------------------ columns */

static void
resolve_columns(Relation rel, IndexStmt *stmt, IndexInfo *info,
				Oid *collations, Oid *classes, int16 *options)
{
	int			i = 0;

	foreach_node(IndexElem, elem, stmt->indexParams)
	{
		AttrNumber	attnum;
		Form_pg_attribute att;
		Node	   *expr = elem->expr;

		while (expr && IsA(expr, CollateExpr))
			expr = (Node *) ((CollateExpr *) expr)->arg;
		if (elem->name != NULL)
		{
			attnum = get_attnum(RelationGetRelid(rel), elem->name);
			if (attnum == InvalidAttrNumber)
				ereport(ERROR,
						(errcode(ERRCODE_UNDEFINED_COLUMN),
						 stmt->isconstraint ?
						 errmsg("column \"%s\" named in key does not exist", elem->name) :
						 errmsg("column \"%s\" does not exist", elem->name)));
		}
		else if (IsA(expr, Var) && ((Var *) expr)->varattno != InvalidAttrNumber)
			attnum = ((Var *) expr)->varattno;	/* "(column)" */
		else
			MotRefuse(RelationGetRelationName(rel), "indexes on expressions",
					  "Add a generated column (GENERATED ALWAYS AS (...) STORED) and index that.");
		if (attnum < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("index creation on system columns is not supported")));
		att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

		if (MotIsVirtualColumn(att))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("indexes on virtual generated columns are not supported")));
		if (!MotKeyTypeSupported(att->atttypid))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of type %s cannot be indexed in memory-optimized table \"%s\"",
							NameStr(att->attname), format_type_be(att->atttypid),
							RelationGetRelationName(rel)),
					 errdetail("There is no order-preserving encoding for the type."),
					 errhint("Index a column of another type, such as a generated one.")));

		collations[i] = elem->expr ? exprCollation(elem->expr) : att->attcollation;
		if (elem->collation)
			collations[i] = get_collation_oid(elem->collation, false);
		if (type_is_collatable(att->atttypid))
		{
			if (!OidIsValid(collations[i]))
				ereport(ERROR,
						(errcode(ERRCODE_INDETERMINATE_COLLATION),
						 errmsg("could not determine which collation to use for index expression"),
						 errhint("Use the COLLATE clause to set the collation explicitly.")));
			if (!get_collation_isdeterministic(collations[i]))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("column \"%s\" has a nondeterministic collation and cannot be indexed in memory-optimized table \"%s\"",
								NameStr(att->attname), RelationGetRelationName(rel)),
						 errhint("Give the index column a deterministic collation with COLLATE.")));
		}
		else if (OidIsValid(collations[i]))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("collations are not supported by type %s",
							format_type_be(att->atttypid))));

		classes[i] = ResolveOpClass(own_opclass(elem->opclass, info->ii_Am),
									att->atttypid, MOT_AM_NAME, info->ii_Am);
		if (elem->opclassopts)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("operator classes of access method \"%s\" have no options",
							MOT_AM_NAME)));

		options[i] = 0;
		if (elem->ordering == SORTBY_DESC)
			options[i] |= INDOPTION_DESC;
		if (elem->nulls_ordering == SORTBY_NULLS_FIRST ||
			(elem->nulls_ordering == SORTBY_NULLS_DEFAULT && elem->ordering == SORTBY_DESC))
			options[i] |= INDOPTION_NULLS_FIRST;

		info->ii_IndexAttrNumbers[i] = attnum;
		i++;
	}
}

/*
 * A primary key's columns become NOT NULL first (and their rows are checked).  Nobody
 * has the index open then, which would look like a query that is using it; nor the table.
 */
static Relation
prepare_primary_key(Relation rel, IndexInfo *info, IndexStmt *stmt)
{
	Oid			relid = RelationGetRelid(rel);
	List	   *cmds = NIL;
	List	   *altered;

	/* before the columns change: this is the better message */
	if (OidIsValid(MotGetPrimaryKeyIndex(rel)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				 errmsg("multiple primary keys for table \"%s\" are not allowed",
						RelationGetRelationName(rel))));
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel),
											  info->ii_IndexAttrNumbers[i] - 1);

		if (!MotAttributeNotNull(RelationGetDescr(rel), info->ii_IndexAttrNumbers[i] - 1))
		{
			AlterTableCmd *cmd = makeNode(AlterTableCmd);

			cmd->subtype = AT_SetNotNull;
			cmd->name = pstrdup(NameStr(att->attname));
			cmds = lappend(cmds, cmd);
		}
	}
	table_close(rel, NoLock);
	if (cmds != NIL)
	{
		altered = MotAlterBegin(relid, cmds, AccessExclusiveLock, NULL);
		AlterTableInternal(relid, cmds, true);
		CommandCounterIncrement();
		MotAlterFinish(altered, NULL);
	}
	rel = table_open(relid, NoLock);
	index_check_primary_key(rel, info, true, stmt);
	return rel;
}

Oid
MotDefineIndex(Oid relid, IndexStmt *stmt, bool check_rights)
{
	Relation	rel = table_open(relid, NoLock);
	int			natts;
	IndexInfo  *info;
	Oid		   *collations;
	Oid		   *classes;
	int16	   *options;
	List	   *colnames;
	char	   *name;
	bits16		flags = INDEX_CREATE_SKIP_BUILD;
	Oid			indexoid;
	Oid			constraintoid;

	CheckTableNotInUse(rel, "CREATE INDEX");
	if (check_rights)
	{
		AclResult	aclresult = object_aclcheck(NamespaceRelationId, RelationGetNamespace(rel),
												GetUserId(), ACL_CREATE);

		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, OBJECT_SCHEMA,
						   get_namespace_name(RelationGetNamespace(rel)));
	}
	check_shape(rel, stmt);

	natts = list_length(stmt->indexParams);
	info = MotMakeIndexInfo(natts, MotAmOid(false), stmt->unique);
	collations = (Oid *) palloc(natts * sizeof(Oid));
	classes = (Oid *) palloc(natts * sizeof(Oid));
	options = (int16 *) palloc(natts * sizeof(int16));
	resolve_columns(rel, stmt, info, collations, classes, options);

	if (stmt->primary)
	{
		rel = prepare_primary_key(rel, info, stmt);
		flags |= INDEX_CREATE_IS_PRIMARY;
	}

	colnames = column_names(stmt->indexParams);
	name = stmt->idxname ? stmt->idxname : choose_name(rel, stmt, colnames);
	if (stmt->isconstraint)
		flags |= INDEX_CREATE_ADD_CONSTRAINT;
	if (stmt->if_not_exists)
		flags |= INDEX_CREATE_IF_NOT_EXISTS;

	indexoid = MotIndexCreate(rel, name, info, colnames, collations, classes, options,
							  flags, allowSystemTableMods, !check_rights, &constraintoid);
	if (OidIsValid(indexoid))
	{
		Relation	index = index_open(indexoid, NoLock);

		MotStorageCreateIndex(rel, index);
		index_close(index, NoLock);
		if (stmt->idxcomment)
			CreateComments(indexoid, RelationRelationId, 0, stmt->idxcomment);
		CommandCounterIncrement();
	}
	table_close(rel, NoLock);
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
	Datum		datum;
	bool		isnull;
	oidvector  *classes;
	IndexInfo  *info;
	IndexStmt  *stmt;
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
	/* deferrable is refused by this */
	stmt = MotConstraintToIndex(makeRangeVar(NULL, RelationGetRelationName(rel), -1), constraint);

	datum = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indclass, &isnull);
	Assert(!isnull);
	classes = (oidvector *) DatumGetPointer(datum);
	for (int i = 0; i < form->indnatts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel),
											  form->indkey.values[i] - 1);

		if (classes->values[i] != GetDefaultOpClass(att->atttypid, index->rd_rel->relam) ||
			att->attcollation != index->rd_indcollation[i] ||
			index->rd_indoption[i] != 0)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("index \"%s\" column number %d does not have default sorting behavior",
							constraint->indexname, i + 1),
					 errdetail("Cannot create a primary key or unique constraint using such an index.")));
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
		rel = prepare_primary_key(rel, info, stmt);
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
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("relation \"%s\" was replaced while CREATE INDEX waited for it",
						stmt->relation->relname),
				 errhint("Run the statement again.")));
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
