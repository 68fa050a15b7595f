/*-------------------------------------------------------------------------
 *
 * create_table.c
 *	  CREATE FOREIGN TABLE ... SERVER mot_server, and what mot.default_engine
 *	  makes of statements that create ordinary tables.
 *
 * Of a foreign table the keys and LIKE clauses are taken out, the server creates it, its
 * storage is made, then the keys follow as indexes and what LIKE brings as
 * statements of their own.
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

#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_compression.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "compat/compat.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_utilcmd.h"
#include "relation/relation.h"
#include "utils/acl.h"
#include "utils/guc.h"

typedef struct CreateWork
{
	CreateForeignTableStmt *stmt;
	List	   *keys;			/* IndexStmts */
	List	   *likes;			/* TableLikeClauses to expand afterwards */
	List	   *comments;		/* CommentStmts for columns that LIKE brought */
} CreateWork;

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

	if (access_method == NULL || *access_method != NULL || creating_extension || IsBinaryUpgrade ||
		relation->relpersistence != RELPERSISTENCE_PERMANENT || is_temporary(relation) ||
		MotSettingIsOfSession("default_table_access_method"))
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

/*
 * CREATE TABLE ... PARTITION OF a table whose default partition has MOT tables:
 * that table
 */
static Oid
narrowed_parent(const CreateStmt *stmt)
{
	Oid			parent;

	if (stmt->partbound == NULL || stmt->partbound->is_default || stmt->inhRelations == NIL)
		return InvalidOid;
	parent = MotDdlLookup(linitial_node(RangeVar, stmt->inhRelations));
	return MotPartitionConcerns(parent, InvalidOid) ? parent : InvalidOid;
}

/* another kind of table, as a partition beside a default one that has foreign MOT tables */
static bool
create_partition(const MotUtility *u, const CreateStmt *stmt)
{
	Oid			parent = OidIsValid(MotAmOid(true)) ? narrowed_parent(stmt) : InvalidOid;

	if (!OidIsValid(parent))
		return false;
	MotUtilityPass(u);
	MotPartitionCheck(parent, InvalidOid);
	return true;
}

static bool
is_mot_server(const char *name)
{
	ForeignServer *server = GetForeignServerByName(name, true);

	return server != NULL &&
		strcmp(GetForeignDataWrapper(server->fdwid)->fdwname, MOT_FDW_NAME) == 0;
}

/* ------------------------------------------------------------------- LIKE */

/*
 * The columns of a LIKE clause, as transformTableLikeClause makes them (which
 * refuses foreign tables).  The rest of it is left to expandTableLikeClause.
 */
static List *
like_columns(CreateWork *work, TableLikeClause *like)
{
	List	   *columns = NIL;
	Relation	source = relation_openrv(like->relation, AccessShareLock);
	RangeVar   *target = work->stmt->base.relation;
	AclResult	aclresult;

	switch (source->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_COMPOSITE_TYPE:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_PARTITIONED_TABLE:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("relation \"%s\" is invalid in LIKE clause",
							RelationGetRelationName(source)),
					 errdetail_relkind_not_supported(source->rd_rel->relkind)));
	}
	if (source->rd_rel->relkind == RELKIND_COMPOSITE_TYPE)
	{
		aclresult = pg_type_aclcheck(source->rd_rel->reltype, GetUserId(), ACL_USAGE);
		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, OBJECT_TYPE, RelationGetRelationName(source));
	}
	else
	{
		aclresult = pg_class_aclcheck(RelationGetRelid(source), GetUserId(), ACL_SELECT);
		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, get_relkind_objtype(source->rd_rel->relkind),
						   RelationGetRelationName(source));
	}

	for (int i = 0; i < RelationGetDescr(source)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(source), i);
		ColumnDef  *column;
		char	   *comment;

		if (att->attisdropped)
			continue;
		column = makeColumnDef(NameStr(att->attname), att->atttypid, att->atttypmod,
							   att->attcollation);
		column->is_not_null = att->attnotnull;
		if (att->atthasdef && att->attgenerated && (like->options & CREATE_TABLE_LIKE_GENERATED))
			column->generated = att->attgenerated;
		if (att->attidentity && (like->options & CREATE_TABLE_LIKE_IDENTITY))
		{
			Constraint *identity = makeNode(Constraint);

			identity->contype = CONSTR_IDENTITY;
			identity->generated_when = att->attidentity;
			identity->options = sequence_options(getIdentitySequence(RelationGetRelid(source),
																	 att->attnum, false));
			identity->location = -1;
			column->constraints = list_make1(identity);
		}
		if (like->options & CREATE_TABLE_LIKE_STORAGE)
			column->storage = att->attstorage;
		if ((like->options & CREATE_TABLE_LIKE_COMPRESSION) &&
			CompressionMethodIsValid(att->attcompression))
			column->compression = pstrdup(GetCompressionMethodName(att->attcompression));
		if ((like->options & CREATE_TABLE_LIKE_COMMENTS) &&
			(comment = GetComment(RelationGetRelid(source), RelationRelationId, att->attnum)) != NULL)
		{
			CommentStmt *stmt = makeNode(CommentStmt);

			stmt->objtype = OBJECT_COLUMN;
			stmt->object = (Node *) list_make2(makeString(pstrdup(target->relname)),
											   makeString(pstrdup(column->colname)));
			stmt->comment = comment;
			work->comments = lappend(work->comments, stmt);
		}
		columns = lappend(columns, column);
	}

	if (like->options & (CREATE_TABLE_LIKE_DEFAULTS | CREATE_TABLE_LIKE_GENERATED |
						 CREATE_TABLE_LIKE_CONSTRAINTS | CREATE_TABLE_LIKE_INDEXES |
						 CREATE_TABLE_LIKE_STATISTICS))
	{
		like->relationOid = RelationGetRelid(source);
		work->likes = lappend(work->likes, like);
	}

	/* keep the lock: nobody may change the source before the clause is done */
	relation_close(source, NoLock);
	return columns;
}

static void
expand_likes(CreateWork *work)
{
	List	   *elements = NIL;
	ListCell   *lc;

	foreach(lc, work->stmt->base.tableElts)
	{
		Node	   *element = lfirst(lc);

		if (IsA(element, TableLikeClause))
			elements = list_concat(elements, like_columns(work, (TableLikeClause *) element));
		else
			elements = lappend(elements, element);
	}
	work->stmt->base.tableElts = elements;
}

/* ------------------------------------------------------------------ create */

/* without keys and what LIKE brings; InvalidOid: IF NOT EXISTS, and it does */
static Oid
create_bare(const MotUtility *u, CreateForeignTableStmt *stmt)
{
	RangeVar   *relation = copyObject(stmt->base.relation);
	bool		if_not_exists = stmt->base.if_not_exists;
	Oid			existing = InvalidOid;
	Oid			relid;
	Relation	rel;
	bool		created;

	if (if_not_exists)
		(void) RangeVarGetAndCheckCreationNamespace(relation, NoLock, &existing);

	MotUtilityStep(u, (Node *) stmt);
	if (OidIsValid(existing))
		return InvalidOid;
	CommandCounterIncrement();

	/* parse analysis put the schema into the statement's own RangeVar */
	relid = RangeVarGetRelid(stmt->base.relation, NoLock, false);
	rel = table_open(relid, NoLock);

	/* IF NOT EXISTS: somebody else may have made it in the meantime */
	created = (rel->rd_createSubid != InvalidSubTransactionId);
	if (created)
		MotStorageCreateTable(rel);
	table_close(rel, NoLock);
	return created ? relid : InvalidOid;
}

static void
create_body(const MotUtility *u, void *arg)
{
	CreateWork *work = (CreateWork *) arg;
	RangeVar   *relation = work->stmt->base.relation;
	Oid			parent = narrowed_parent(&work->stmt->base);
	Oid			relid = create_bare(u, work->stmt);
	ListCell   *lc;

	if (!OidIsValid(relid))
		return;
	if (OidIsValid(parent))
		MotPartitionCheck(parent, InvalidOid);

	foreach(lc, work->keys)
	{
		IndexStmt  *index = lfirst_node(IndexStmt, lc);
		Oid			indexoid;
		ObjectAddress address;

		index->relation = copyObject(relation);
		EventTriggerAlterTableStart((Node *) index);
		indexoid = MotDefineIndex(relid, index, false, true);
		ObjectAddressSet(address, RelationRelationId, indexoid);
		EventTriggerCollectSimpleCommand(address, InvalidObjectAddress, (Node *) index);
		EventTriggerAlterTableEnd();
		CommandCounterIncrement();
	}

	foreach(lc, work->likes)
	{
		List	   *stmts = expandTableLikeClause(relation, lfirst_node(TableLikeClause, lc));
		ListCell   *lc2;

		foreach(lc2, stmts)
		{
			MotUtilityNested(u, lfirst(lc2));
			CommandCounterIncrement();
		}
	}
	foreach(lc, work->comments)
	{
		CommentStmt *comment = lfirst_node(CommentStmt, lc);

		/* now that the schema is known */
		if (relation->schemaname)
			comment->object = (Node *) lcons(makeString(pstrdup(relation->schemaname)),
											 (List *) comment->object);
		MotUtilityNested(u, (Node *) comment);
	}
}

/*
 * The primary key's columns are NOT NULL from the start where they are in the
 * statement; others (inherited ones) change when the key is made.
 */
static void
mark_primary(CreateWork *work)
{
	ListCell   *lc;
	ListCell   *lc2;
	ListCell   *lc3;

	foreach(lc, work->keys)
	{
		IndexStmt  *index = lfirst_node(IndexStmt, lc);

		if (!index->primary)
			continue;
		foreach(lc2, index->indexParams)
		{
			foreach(lc3, work->stmt->base.tableElts)
			{
				ColumnDef  *column = (ColumnDef *) lfirst(lc3);
				ListCell   *lc4;

				if (!IsA(column, ColumnDef) ||
					strcmp(column->colname, lfirst_node(IndexElem, lc2)->name) != 0)
					continue;
				column->is_not_null = true;
				/* NULL PRIMARY KEY is not taken for a contradiction */
				foreach(lc4, column->constraints)
				{
					if (lfirst_node(Constraint, lc4)->contype == CONSTR_NULL)
						column->constraints = foreach_delete_current(column->constraints, lc4);
				}
			}
		}
	}
}

static void
create_table(const MotUtility *u, CreateForeignTableStmt *stmt)
{
	CreateWork	work;

	memset(&work, 0, sizeof(work));
	work.stmt = stmt;

	/* (the schema says so: TEMPORARY is for ordinary tables) */
	if (is_temporary(stmt->base.relation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a temporary table cannot be memory-optimized")));
	(void) MotEngineRequired();
	work.keys = MotMergeKeys(MotTakeTableKeys(stmt->base.relation, &stmt->base.tableElts),
							 stmt->base.relation);

	expand_likes(&work);
	mark_primary(&work);
	MotUtilityWhole(u, create_body, &work);
}

bool
MotCreateForeignTable(const MotUtility *u, CreateForeignTableStmt *stmt)
{
	if (!is_mot_server(stmt->servername))
	{
		/* before the server complains of the keys */
		if (strcmp(stmt->servername, MOT_SERVER_NAME) == 0 && !OidIsValid(MotServerOid(true)))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("server \"%s\" does not exist in this database", MOT_SERVER_NAME),
					 errhint("Run CREATE EXTENSION mot.")));
		return create_partition(u, &stmt->base);
	}
	create_table(u, copyObject(stmt));
	return true;
}

bool
MotCreateTable(const MotUtility *u, CreateStmt *stmt)
{
	MotRefuseReferences(stmt->tableElts);
	return create_partition(u, stmt);
}
