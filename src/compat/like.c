/*-------------------------------------------------------------------------
 *
 * like.c
 *	  What CREATE TABLE ... LIKE brings.
 *
 * From PostgreSQL 18 on LIKE is for foreign tables, too, to which it brings no indexes: the
 * server knows of none that they could have.  Ours can, so those are added here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/comment.h"
#include "compat/like.h"
#include "parser/parse_utilcmd.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#if PG_VERSION_NUM >= 180000
static List *
clone_indexes(RangeVar *relation, TableLikeClause *like)
{
	/* (both are locked) */
	Relation	source = relation_open(like->relationOid, NoLock);
	Relation	table = relation_openrv(relation, NoLock);
	AttrMap    *map = build_attrmap_by_name(RelationGetDescr(table), RelationGetDescr(source), false);
	List	   *indexes = table->rd_rel->relkind == RELKIND_FOREIGN_TABLE ? RelationGetIndexList(source) : NIL;
	List	   *stmts = NIL;

	foreach_oid(oid, indexes)
	{
		Relation	index = index_open(oid, AccessShareLock);
		IndexStmt  *stmt = generateClonedIndexStmt(relation, index, map, NULL);

		if (like->options & CREATE_TABLE_LIKE_COMMENTS)
			stmt->idxcomment = GetComment(oid, RelationRelationId, 0);
		stmts = lappend(stmts, stmt);
		index_close(index, AccessShareLock);
	}
	table_close(table, NoLock);
	table_close(source, NoLock);
	return stmts;
}
#endif

List *
MotExpandTableLike(RangeVar *relation, TableLikeClause *like)
{
	List	   *stmts = expandTableLikeClause(relation, like);

#if PG_VERSION_NUM >= 180000
	if (like->options & CREATE_TABLE_LIKE_INDEXES)
		stmts = list_concat(stmts, clone_indexes(relation, like));
#endif
	return stmts;
}
