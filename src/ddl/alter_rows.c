/*-------------------------------------------------------------------------
 *
 * alter_rows.c
 *	  ALTER TABLE's effect on the rows and indexes of MOT tables.
 *
 * For a foreign table the server changes the catalogue and leaves the rows
 * alone: they would be unreadable after ALTER COLUMN TYPE, without their
 * default after ADD COLUMN, unchecked after SET NOT NULL or ADD CHECK.  Here
 * the catalogue before and after is compared, and what the difference asks of
 * the rows is done; so it does not matter by which command, or by recursion
 * from which parent, a table was changed.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/comment.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "compat/calls.h"
#include "compat/generated.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "parser/parse_utilcmd.h"
#include "relation/relation.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* an index that had to go for ALTER COLUMN TYPE and comes back afterwards */
typedef struct SavedIndex
{
	IndexStmt  *stmt;
	char	   *constraint_comment;
} SavedIndex;

typedef struct AlteredRel
{
	Oid			relid;
	TupleDesc	old;
	List	   *checks;			/* oids of the check constraints that held
								 * before */
	List	   *values;			/* MotNewValue for columns whose type changes */
	bool		rewrite;		/* ... and not just by name */
	Bitmapset  *recomputed;		/* columns whose expression changes */
	List	   *saved;			/* SavedIndex */
} AlteredRel;

List *
MotTablesBelow(Oid relid, LOCKMODE lockmode)
{
	List	   *tables = NIL;

	if (!OidIsValid(MotAmOid(true)))
		return NIL;
	foreach_oid(oid, find_all_inheritors(relid, lockmode, NULL))
	{
		if (MotIsMotTable(oid))
			tables = lappend_oid(tables, oid);
	}
	return tables;
}

List *
MotValidChecks(Oid relid, Oid domain)
{
	List	   *result = NIL;
	Relation	pg_constraint = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, OidIsValid(domain) ? Anum_pg_constraint_contypid : Anum_pg_constraint_conrelid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(OidIsValid(domain) ? domain : relid));
	scan = systable_beginscan(pg_constraint,
							  OidIsValid(domain) ? ConstraintTypidIndexId : ConstraintRelidTypidNameIndexId,
							  true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->contype == CONSTRAINT_CHECK && form->convalidated)
			result = lappend_oid(result, form->oid);
	}
	systable_endscan(scan);
	table_close(pg_constraint, AccessShareLock);
	return result;
}

MotRowCheck *
MotConstraintCheck(Oid constraintoid)
{
	MotRowCheck *check = palloc0(sizeof(MotRowCheck));
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraintoid));
	Datum		datum;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraintoid);
	datum = SysCacheGetAttr(CONSTROID, tuple, Anum_pg_constraint_conbin, &isnull);
	if (isnull)
		elog(ERROR, "null conbin for constraint %u", constraintoid);
	check->name = pstrdup(NameStr(((Form_pg_constraint) GETSTRUCT(tuple))->conname));
	check->expr = (Expr *) stringToNode(TextDatumGetCString(datum));

	ReleaseSysCache(tuple);
	return check;
}

List *
MotDomainChecks(List *constraints, bool notnull, AttrNumber attnum)
{
	List	   *checks = notnull ? list_make1(palloc0(sizeof(MotRowCheck))) : NIL;

	foreach_oid(oid, constraints)
		checks = lappend(checks, MotConstraintCheck(oid));
	foreach_ptr(MotRowCheck, check, checks)
		check->domain = attnum;
	return checks;
}

/* --------------------------------------------------- ALTER COLUMN TYPE, before */

/*
 * As ATColumnChangeRequiresRewrite: false if the new type only looks at the
 * same bytes with other eyes.
 */
static bool
needs_rewrite(Node *expr, AttrNumber attnum)
{
	for (;;)
	{
		if (IsA(expr, Var) && ((Var *) expr)->varattno == attnum)
			return false;
		else if (IsA(expr, RelabelType))
			expr = (Node *) ((RelabelType *) expr)->arg;
		else if (IsA(expr, CoerceToDomain) &&
				 !MotDomainHasConstraints(((CoerceToDomain *) expr)->resulttype))
			expr = (Node *) ((CoerceToDomain *) expr)->arg;
		else
			return true;
	}
}

/*
 * The expression that computes the new value, as ATPrepAlterColumnType makes
 * it for heap tables.  NULL: something is wrong that the server will complain
 * about.
 */
static Expr *
type_change(Relation rel, Form_pg_attribute att, ColumnDef *def, const char *query_string)
{
	ParseState *pstate = make_parsestate(NULL);
	ParseNamespaceItem *nsitem;
	Node	   *expr;
	Oid			type;
	int32		typmod;

	pstate->p_sourcetext = query_string;
	nsitem = addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL, false, true);
	addNSItemToQuery(pstate, nsitem, false, true, true);

	if (def->raw_default && att->attgenerated)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_DEFINITION),
				 errmsg("cannot specify USING when altering type of generated column"),
				 errdetail("Column \"%s\" is a generated column.", NameStr(att->attname))));

	typenameTypeIdAndMod(pstate, def->typeName, &type, &typmod);
	if (def->raw_default)
		expr = transformExpr(pstate, copyObject(def->raw_default), EXPR_KIND_ALTER_COL_TRANSFORM);
	else
		expr = (Node *) makeVar(1, att->attnum, att->atttypid, att->atttypmod,
								att->attcollation, 0);
	expr = coerce_to_target_type(pstate, expr, exprType(expr), type, typmod,
								 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
	if (expr == NULL)
	{
		if (def->raw_default)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("result of USING clause for column \"%s\" cannot be cast automatically to type %s",
							NameStr(att->attname), format_type_be(type)),
					 errhint("You might need to add an explicit cast.")));
		else
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" cannot be cast automatically to type %s",
							NameStr(att->attname), format_type_be(type)),
					 !att->attgenerated ?
					 errhint("You might need to specify \"USING %s::%s\".",
							 quote_identifier(NameStr(att->attname)),
							 format_type_with_typemod(type, typmod)) : 0));
	}
	assign_expr_collations(pstate, expr);
	expr = MotExpandVirtualColumns(expr, rel);
	free_parsestate(pstate);
	return expression_planner((Expr *) expr);
}

/* remember an index as a statement, and drop it */
static SavedIndex *
save_index(Relation rel, Oid indexoid)
{
	SavedIndex *saved = palloc0(sizeof(SavedIndex));
	RangeVar   *name = makeRangeVar(get_namespace_name(RelationGetNamespace(rel)),
									pstrdup(RelationGetRelationName(rel)), -1);
	Relation	index = index_open(indexoid, AccessExclusiveLock);
	Oid			constraintoid;
	ObjectAddress address;
	int			i = 0;

	saved->stmt = generateClonedIndexStmt(name, index, NULL, &constraintoid);
	saved->stmt->idxname = pstrdup(RelationGetRelationName(index));
	saved->stmt->idxcomment = GetComment(indexoid, RelationRelationId, 0);

	/*
	 * the column's own collation follows the column, as pg_get_indexdef has
	 * it
	 */
	foreach_node(IndexElem, elem, saved->stmt->indexParams)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel),
											  index->rd_index->indkey.values[i] - 1);

		if (index->rd_indcollation[i] == att->attcollation)
			elem->collation = NIL;
		i++;
	}
	index_close(index, NoLock);

	if (OidIsValid(constraintoid))
	{
		saved->constraint_comment = GetComment(constraintoid, ConstraintRelationId, 0);
		ObjectAddressSet(address, ConstraintRelationId, constraintoid);
	}
	else
		ObjectAddressSet(address, RelationRelationId, indexoid);
	performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
	return saved;
}

/* the indexes that any of these columns are part of */
static List *
indexes_with(Relation rel, Bitmapset *attnums)
{
	List	   *result = NIL;

	foreach_oid(indexoid, RelationGetIndexList(rel))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
		Form_pg_index form;
		bool		any = false;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for index %u", indexoid);
		form = (Form_pg_index) GETSTRUCT(tuple);
		for (int i = 0; i < form->indnatts; i++)
			any |= bms_is_member(form->indkey.values[i], attnums);
		if (any)
			result = lappend_oid(result, indexoid);
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * The server would try to make the column's indexes again by itself, and fail
 * because it is a foreign table.
 */
static void
save_indexes(AlteredRel *altered, Relation rel, AttrNumber attnum)
{
	foreach_oid(indexoid, indexes_with(rel, bms_make_singleton(attnum)))
		altered->saved = lappend(altered->saved, save_index(rel, indexoid));
}

static void
prepare_type_change(AlteredRel *altered, Relation rel, AlterTableCmd *cmd,
					const char *query_string)
{
	AttrNumber	attnum = get_attnum(altered->relid, cmd->name);
	MotNewValue *value;

	/*
	 * the server's error is the right one; and of a virtual column rows have
	 * nothing
	 */
	if (attnum <= 0 ||
		(MotIsVirtualColumn(TupleDescAttr(altered->old, attnum - 1)) &&
		 castNode(ColumnDef, cmd->def)->raw_default == NULL))
		return;

	value = palloc0(sizeof(MotNewValue));
	value->attnum = attnum;
	value->expr = type_change(rel, TupleDescAttr(altered->old, attnum - 1),
							  castNode(ColumnDef, cmd->def), query_string);
	altered->values = lappend(altered->values, value);
	if (needs_rewrite((Node *) value->expr, attnum))
		altered->rewrite = true;
	save_indexes(altered, rel, attnum);
}

static void
prepare_expression(AlteredRel *altered, Relation rel, AlterTableCmd *cmd)
{
	AttrNumber	attnum = get_attnum(altered->relid, cmd->name);

	if (attnum <= 0)
		return;
	altered->recomputed = bms_add_member(altered->recomputed, attnum);
	save_indexes(altered, rel, attnum);
}

List *
MotAlterBegin(Oid relid, List *cmds, bool inh, LOCKMODE lockmode, const char *query_string)
{
	List	   *altered_rels = NIL;
	bool		below = MotAlterGoesBelow(cmds, inh, relid);
	List	   *tables = below ? MotTablesBelow(relid, lockmode) : list_make1_oid(relid);
	bool		mixed = below && list_length(tables) < list_length(find_all_inheritors(relid, NoLock, NULL));

	foreach_oid(oid, tables)
	{
		AlteredRel *altered = palloc0(sizeof(AlteredRel));
		Relation	rel = table_open(oid, NoLock);

		altered->relid = oid;
		altered->old = CreateTupleDescCopyConstr(RelationGetDescr(rel));
		altered->checks = MotValidChecks(oid, InvalidOid);
		foreach_node(AlterTableCmd, cmd, cmds)
		{
			if (cmd->subtype == AT_AlterColumnType)
				prepare_type_change(altered, rel, cmd, query_string);
			else if (MotSetsExpression(cmd))
				prepare_expression(altered, rel, cmd);
		}
		table_close(rel, NoLock);
		altered_rels = lappend(altered_rels, altered);
	}
	foreach_node(AlterTableCmd, cmd, cmds)
	{
		ColumnDef  *def = (ColumnDef *) cmd->def;

		if (cmd->subtype != AT_AlterColumnType)
			continue;
		/* the server does not see USING, which the other tables would need */
		if (mixed && def->raw_default)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("ALTER COLUMN TYPE with USING is not supported where memory-optimized and other tables inherit from each other"),
					 errhint("Use ALTER COLUMN TYPE without USING, or take the tables apart with NO INHERIT first.")));
		def->raw_default = NULL;
	}
	return altered_rels;
}

/* ----------------------------------------------------------------- after */

/* the value an added or recomputed column has in rows that were there, or NULL for null */
static MotNewValue *
added_value(Relation rel, Form_pg_attribute att)
{
	MotNewValue *value;
	Node	   *expr = MotIsVirtualColumn(att) ? NULL : build_column_default(rel, att->attnum);

	if (expr == NULL && MotDomainHasConstraints(att->atttypid))
	{
		/* let the domain say what it thinks of null */
		int32		typmod = att->atttypmod;
		Oid			base = getBaseTypeAndTypmod(att->atttypid, &typmod);

		expr = coerce_to_target_type(NULL,
									 (Node *) makeNullConst(base, typmod, get_typcollation(base)),
									 base, att->atttypid, att->atttypmod,
									 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
	}
	if (expr == NULL)
		return NULL;
	value = palloc0(sizeof(MotNewValue));
	value->attnum = att->attnum;
	value->expr = expression_planner((Expr *) expr);
	value->generated = (att->attgenerated == ATTRIBUTE_GENERATED_STORED);
	return value;
}

/* Would the server store the rows of a heap table anew?  As in ATExecAddColumn. */
static bool
heap_rewrites(const AlteredRel *altered, TupleDesc desc, List *values)
{
	if (altered->rewrite)
		return true;
	foreach_ptr(MotNewValue, value, values)
	{
		if (value->generated || contain_volatile_functions((Node *) value->expr) ||
			MotDomainHasConstraints(TupleDescAttr(desc, value->attnum - 1)->atttypid))
			return true;
	}
	return false;
}

static void
finish_rows(AlteredRel *altered, Relation rel, Node *stmt)
{
	TupleDesc	new = RelationGetDescr(rel);
	List	   *values = NIL;
	List	   *valid = MotValidChecks(altered->relid, InvalidOid);
	List	   *checks = NIL;
	Bitmapset  *notnull = NULL; /* every NOT NULL column */
	Bitmapset  *nullability = NULL; /* columns whose NOT NULL came or went */
	bool		verify = false;

	if (altered->rewrite)
	{
		foreach_ptr(MotNewValue, value, altered->values)
		{
			if (!TupleDescAttr(new, value->attnum - 1)->attisdropped)
				values = lappend(values, value);
		}
	}
	for (int i = 0; i < new->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(new, i);
		bool		was = i < altered->old->natts && MotAttributeNotNull(altered->old, i);
		bool		is = MotAttributeNotNull(new, i);

		if (att->attisdropped)
			continue;
		if (is)
			notnull = bms_add_member(notnull, att->attnum);
		if (is && (!was || bms_is_member(att->attnum, altered->recomputed)))
			verify = true;
		if (i < altered->old->natts && is != was)
			nullability = bms_add_member(nullability, att->attnum);
		if (i >= altered->old->natts || bms_is_member(att->attnum, altered->recomputed))
		{
			MotNewValue *value = added_value(rel, att);

			if (value)
				values = lappend(values, value);
		}
	}

	/*
	 * constraints that come, the access hook sees; by those that are gone
	 * nobody goes any more
	 */
	if (list_difference_oid(altered->checks, valid) != NIL)
		MotStorageDefinitionChanged(altered->relid);
	foreach_oid(oid, valid)
	{
		if (!list_member_oid(altered->checks, oid))
			checks = lappend(checks, MotConstraintCheck(oid));
	}

	if (values != NIL && stmt)
		EventTriggerTableRewrite(stmt, altered->relid,
								 altered->rewrite ? AT_REWRITE_COLUMN_REWRITE : AT_REWRITE_DEFAULT_VAL);
	if (values != NIL || checks != NIL || verify)
		MotRewriteRows(rel, altered->old, values, !heap_rewrites(altered, new, values), notnull,
					   checks);

	/* the byte that says null or not is in the keys of nullable columns only */
	if (nullability != NULL && values == NIL)
	{
		foreach_oid(oid, indexes_with(rel, nullability))
			MotRebuildIndex(rel, oid);
	}
}

/* the server gives the indexes of a heap table to its new owner, not those of a foreign table */
void
MotIndexesFollowOwner(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);

	foreach_oid(oid, indexes)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
		bool		other;

		if (!HeapTupleIsValid(tuple))
			continue;
		other = ((Form_pg_class) GETSTRUCT(tuple))->relowner != rel->rd_rel->relowner;
		ReleaseSysCache(tuple);
		if (other)
			ATExecChangeOwner(oid, rel->rd_rel->relowner, true, AccessExclusiveLock);
	}
	list_free(indexes);
}

void
MotAlterFinish(List *altered_rels, Node *stmt)
{
	foreach_ptr(AlteredRel, altered, altered_rels)
	{
		Relation	rel = table_open(altered->relid, NoLock);

		finish_rows(altered, rel, stmt);
		MotIndexesFollowOwner(rel);
		table_close(rel, NoLock);
		CommandCounterIncrement();

		foreach_ptr(SavedIndex, saved, altered->saved)
		{
			Oid			indexoid = MotDefineIndex(altered->relid, saved->stmt, false);

			if (saved->constraint_comment)
				CreateComments(get_index_constraint(indexoid), ConstraintRelationId, 0,
							   saved->constraint_comment);
			CommandCounterIncrement();
		}
	}
}
