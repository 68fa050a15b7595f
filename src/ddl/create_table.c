/*-------------------------------------------------------------------------
 *
 * create_table.c
 *	  CREATE FOREIGN TABLE ... SERVER mot_server, and what mot.default_engine
 *	  makes of statements that create ordinary tables.
 *
 * Of a foreign table the keys and LIKE clauses are taken out, the server creates it, its
 * storage is made, then the keys follow as indexes and what LIKE brings as
 * statements of their own, as the server's parse analysis has them for ordinary tables.
 *
 * mot.default_engine = mot puts USING mot into CREATE TABLE, CREATE TABLE AS and
 * SELECT INTO that name no access method.  Unlike default_table_access_method
 * it passes over what is not to be in memory because a database's tables are: temporary and
 * unlogged tables, materialized views and tables of an extension's script.  Who has set
 * default_table_access_method in the session decides by that: so does a dump,
 * whose heap tables stay heap tables.  An extension's tables stay heap tables in
 * any case, unless its script says otherwise: its functions may go to them by
 * heap's own routines (pg_cron's do).
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "compat/calls.h"
#include "compat/compat.h"
#include "compat/like.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "parser/parse_utilcmd.h"
#include "relation/relation.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

static bool
is_temporary(const RangeVar *relation)
{
	return relation->relpersistence == RELPERSISTENCE_TEMP ||
		isTempNamespace(RangeVarGetCreationNamespace(relation));
}

/* --------------------------------------------------------- mot.default_engine */

/* where a statement that makes a table says with which access method, or NULL */
static char **
access_method_of(Node *stmt, RangeVar **relation)
{
	if (IsA(stmt, ExplainStmt))
		stmt = castNode(Query, ((ExplainStmt *) stmt)->query)->utilityStmt;
	if (stmt != NULL && IsA(stmt, CreateStmt) && ((CreateStmt *) stmt)->partspec == NULL)
	{
		*relation = ((CreateStmt *) stmt)->relation;
		return &((CreateStmt *) stmt)->accessMethod;
	}
	if (stmt != NULL && IsA(stmt, CreateTableAsStmt) && ((CreateTableAsStmt *) stmt)->objtype == OBJECT_TABLE)
	{
		*relation = ((CreateTableAsStmt *) stmt)->into->rel;
		return &((CreateTableAsStmt *) stmt)->into->accessMethod;
	}
	return NULL;
}

PlannedStmt *
MotUseDefaultEngine(PlannedStmt *pstmt)
{
	RangeVar   *relation;
	char	  **access_method = access_method_of(pstmt->utilityStmt, &relation);

	/* (the session's own setting, or its client's, is not overruled) */
	if (access_method == NULL || *access_method != NULL || creating_extension || IsBinaryUpgrade ||
		relation->relpersistence != RELPERSISTENCE_PERMANENT || is_temporary(relation) ||
		MotSettingFind("default_table_access_method")->source >= PGC_S_CLIENT)
		return pstmt;
	if (!OidIsValid(get_table_am_oid(MOT_TABLE_AM_NAME, true)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"%s\" does not exist in this database", MOT_TABLE_AM_NAME),
				 errhint("Run CREATE EXTENSION mot, or SET mot.default_engine = heap.")));
	pstmt = copyObject(pstmt);
	*access_method_of(pstmt->utilityStmt, &relation) = pstrdup(MOT_TABLE_AM_NAME);
	return pstmt;
}

bool
MotExtensionScript(const MotUtility *u)
{
	int			nest;

	if (strcmp(default_table_access_method, MOT_TABLE_AM_NAME) != 0)
		return false;
	nest = NewGUCNestLevel();
	(void) set_config_option("default_table_access_method", DEFAULT_TABLE_ACCESS_METHOD, PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	MotUtilityPass(u);
	AtEOXact_GUC(true, nest);
	return true;
}

/* ------------------------------------------------------------------ create */

/*
 * Are the type's values the same in another version of the server?  Those that are numbers of
 * what pg_upgrade makes anew, or of the server's own catalogues, are not, nor is aclitem of 15.
 */
static bool
is_same_elsewhere(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);
	TupleDesc	desc;
	bool		same = base >= FirstNormalObjectId;

	if (OidIsValid(element))
		return is_same_elsewhere(element);
	if (type_is_multirange(base))
		base = get_multirange_range(base);
	if (type_is_range(base))
		return is_same_elsewhere(get_range_subtype(base));
	if (!type_is_rowtype(base) || base == RECORDOID)
		return base != REGPROCOID && base != REGPROCEDUREOID && base != REGOPEROID && base != REGOPERATOROID &&
			base != REGCOLLATIONOID && base != REGCONFIGOID && base != REGDICTIONARYOID &&
			base != REGNAMESPACEOID && base != ACLITEMOID;
	desc = lookup_rowtype_tupdesc(base, -1);
	for (int i = 0; i < desc->natts; i++)
		same &= TupleDescAttr(desc, i)->attisdropped || is_same_elsewhere(TupleDescAttr(desc, i)->atttypid);
	ReleaseTupleDesc(desc);
	return same;
}

/* pg_upgrade refuses such columns, and looks for them in ordinary tables only. */
static void
refuse_other_elsewhere(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && !is_same_elsewhere(att->atttypid))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of memory-optimized table \"%s\" is of type %s, which pg_upgrade cannot take over",
							NameStr(att->attname), RelationGetRelationName(rel), format_type_be(att->atttypid)),
					 errhint("In the old cluster, drop the column or change its type to text.")));
	}
}

/*
 * The table by itself, as parse analysis has left it of the statement.  It goes there
 * once more, so it has nothing left to be made of: what stood with a column is in other
 * statements now, or in the column.  InvalidOid: IF NOT EXISTS, and it does.
 */
static Oid
create_bare(const MotUtility *u, const CreateForeignTableStmt *stmt, const CreateStmt *analyzed)
{
	CreateForeignTableStmt *bare = copyObject((CreateForeignTableStmt *) stmt);
	Oid			relid;
	Relation	rel;
	bool		created;

	foreach_node(ColumnDef, column, analyzed->tableElts)
		column->constraints = NIL;
	bare->base.relation = analyzed->relation;
	bare->base.tableElts = list_concat(analyzed->tableElts, MotCreateConstraints(analyzed));
	MotUtilityStep(u, (Node *) bare);
	CommandCounterIncrement();
	relid = RangeVarGetRelid(analyzed->relation, NoLock, false);
	rel = table_open(relid, NoLock);

	/* IF NOT EXISTS: somebody else may have made it in the meantime */
	created = (rel->rd_createSubid != InvalidSubTransactionId);
	if (created && IsBinaryUpgrade)
		refuse_other_elsewhere(rel);
	if (created)
		MotStorageCreateTable(rel, InvalidOid, relid);
	/* a partition's came before it was known to be one of ours */
	if (created)
		MotCheckTriggers(rel);
	table_close(rel, NoLock);
	return created ? relid : InvalidOid;
}

/*
 * The statement is analyzed as if it made an ordinary table, since keys and LIKE are refused for
 * foreign ones: they become statements of their own, which follow.
 */
static void
create_body(const MotUtility *u, void *arg)
{
	CreateForeignTableStmt *stmt = (CreateForeignTableStmt *) arg;
	CreateStmt *plain = makeNode(CreateStmt);
	List	   *stmts;

	*plain = *(CreateStmt *) copyObject(&stmt->base);
	NodeSetTag(plain, T_CreateStmt);
	stmts = transformCreateStmt(plain, u->query_string);
	while (stmts != NIL)
	{
		Node	   *one = (Node *) linitial(stmts);

		stmts = list_delete_first(stmts);
		if (IsA(one, CreateStmt))
		{
			if (!OidIsValid(create_bare(u, stmt, (CreateStmt *) one)))
				return;
		}
		else if (IsA(one, TableLikeClause))
			stmts = list_concat(MotExpandTableLike(plain->relation, (TableLikeClause *) one), stmts);
		else
			MotUtilityNested(u, one);
		CommandCounterIncrement();
	}
}

bool
MotCreateForeignTable(const MotUtility *u, CreateForeignTableStmt *stmt)
{
	ForeignServer *server = GetForeignServerByName(stmt->servername, true);

	/* before the server complains of the keys */
	if (server == NULL && strcmp(stmt->servername, MOT_SERVER_NAME) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist in this database", MOT_SERVER_NAME),
				 errhint("Run CREATE EXTENSION mot.")));
	if (server == NULL || strcmp(GetForeignDataWrapper(server->fdwid)->fdwname, MOT_FDW_NAME) != 0)
		return false;

	/* (the schema says so: TEMPORARY is for ordinary tables) */
	if (is_temporary(stmt->base.relation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a temporary table cannot be memory-optimized")));
	(void) MotEngineRequired();
	MotUtilityWhole(u, create_body, stmt);
	return true;
}
