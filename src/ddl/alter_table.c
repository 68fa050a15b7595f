/*-------------------------------------------------------------------------
 *
 * alter_table.c
 *	  ALTER TABLE and ALTER FOREIGN TABLE on MOT tables (and on tables that
 *	  have MOT tables below them), ALTER DOMAIN and ALTER TYPE where rows of
 *	  MOT tables depend on them, REASSIGN OWNED.
 *
 * Key constraints are taken out and made here; what means nothing to a table
 * in memory is left out; the rest goes to the server, with alter_rows.c
 * before and after it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat/acl.h"
#include "ddl/ddl.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "commands/tablespace.h"
#include "compat/generated.h"
#include "compat/notnull.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "relation/relation.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* ALTER TABLE taken apart */
typedef struct AlterWork
{
	AlterTableStmt *stmt;		/* private copy */
	Oid			relid;			/* locked */
	List	   *cmds;			/* for the server */
	List	   *later;			/* for it after that, and after keys */
	List	   *keys;			/* TakenKey */
} AlterWork;

/* a key that was taken out */
typedef struct TakenKey
{
	Node	   *key;			/* IndexStmt, or Constraint for USING INDEX */
	const char *column;			/* it comes only if such a column does ... */
	AttrNumber	before;			/* ... in this one's place */
} TakenKey;

static bool
has_command(List *cmds, AlterTableType subtype)
{
	foreach_node(AlterTableCmd, cmd, cmds)
		if (cmd->subtype == subtype)
		return true;
	return false;
}

/* ADD COLUMN of one that is there, and does not go just before, nor might with others */
static bool
column_stays(const List *cmds, const AlterTableCmd *add, Oid relid)
{
	const char *name = castNode(ColumnDef, add->def)->colname;

	if (get_attnum(relid, name) == InvalidAttrNumber)
		return false;
	foreach_node(AlterTableCmd, cmd, cmds)
		if (cmd->behavior == DROP_CASCADE || (cmd->subtype == AT_DropColumn && strcmp(cmd->name, name) == 0))
		return false;
	return true;
}

/* The server changes the type of no others, whatever else the statement does. */
static bool
is_own_column(Oid relid, const char *name)
{
	HeapTuple	tuple = SearchSysCacheAttName(relid, name);
	bool		own;

	if (!HeapTupleIsValid(tuple))
		return false;
	own = ((Form_pg_attribute) GETSTRUCT(tuple))->attinhcount == 0;
	ReleaseSysCache(tuple);
	return own;
}

/*
 * Does what is done to a constraint go to the tables below, which have it, too, because this one
 * has it?  Not what the server refuses, or finds done.
 */
static bool
constraint_goes_below(Oid relid, const AlterTableCmd *cmd)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_relation_constraint_oid(relid, cmd->name, true)));
	Form_pg_constraint form;
	bool		below;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	below = !form->connoinherit && (form->contype == CONSTRAINT_CHECK || MotIsNotNull(tuple)) &&
		(cmd->subtype == AT_DropConstraint ? form->coninhcount == 0 : !form->convalidated);
	ReleaseSysCache(tuple);
	return below;
}

/*
 * ALTER CONSTRAINT ... INHERIT: also with ONLY, which the server does not look at there.  (What
 * others of the statement make of the constraint first is not known.)
 */
static bool
starts_inheriting(Oid relid, const List *cmds, const AlterTableCmd *cmd)
{
	const char *name = MotInheritsNotNull(cmd);
	HeapTuple	tuple;
	bool		already;

	if (name == NULL || list_length(cmds) > 1)
		return name != NULL;
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_relation_constraint_oid(relid, name, true)));
	if (!HeapTupleIsValid(tuple))
		return false;
	already = !((Form_pg_constraint) GETSTRUCT(tuple))->connoinherit;
	ReleaseSysCache(tuple);
	return !already;
}

/*
 * Does it go to the tables below, and changes what their rows or indexes are?  Those the server will
 * lock as it locks the table.
 */
bool
MotAlterGoesBelow(const List *cmds, bool inh, Oid relid)
{
	if (!OidIsValid(MotAmOid(true)) || !has_subclass(relid))
		return false;
	foreach_node(AlterTableCmd, cmd, cmds)
	{
		Constraint *constraint;

		if (starts_inheriting(relid, cmds, cmd))
			return true;
		if (!inh)
			continue;
		switch (cmd->subtype)
		{
			case AT_SetNotNull:
			case AT_DropNotNull:
				return true;
			case AT_AlterColumnType:
				if (is_own_column(relid, cmd->name))
					return true;
				break;
			case AT_AddColumn:
				if (!column_stays(cmds, cmd, relid))
					return true;
				break;
			case AT_ValidateConstraint:
			case AT_DropConstraint:
				if (constraint_goes_below(relid, cmd))
					return true;
				break;
			case AT_AddConstraint:
				constraint = castNode(Constraint, cmd->def);
				if (constraint->contype == CONSTR_PRIMARY ||
					((constraint->contype == CONSTR_CHECK || constraint->contype == CONSTR_NOTNULL) &&
					 !constraint->is_no_inherit))
					return true;
				break;
			default:
				if (MotSetsExpression(cmd))
					return true;
				break;
		}
	}
	return false;
}

/* (its schema may get another name meanwhile, and another of its own name come earlier in the path) */
void
MotAlterQualify(RangeVar *relation, Oid relid)
{
	relation->schemaname = get_namespace_name(get_rel_namespace(relid));
}

/* -------------------------------------------------------- rows as values */

/* the types made from a type, and the columns that are of it: a list of ObjectAddress */
static List *
type_users(Oid typeoid)
{
	Relation	pg_depend = table_open(DependRelationId, AccessShareLock);
	List	   *users = NIL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(TypeRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(typeoid));
	scan = systable_beginscan(pg_depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == TypeRelationId ||
			(form->classid == RelationRelationId && form->objsubid > 0))
		{
			ObjectAddress *user = palloc(sizeof(ObjectAddress));

			ObjectAddressSubSet(*user, form->classid, form->objid, form->objsubid);
			users = lappend(users, user);
		}
	}
	systable_endscan(scan);
	table_close(pg_depend, AccessShareLock);
	return users;
}

/*
 * A column that stores values of the type (or of one made from it) in a MOT
 * table: the server looks only at tables with files when it decides whether a
 * composite type may be altered.
 */
static void
refuse_stored_type(Oid typeoid, const char *name)
{
	check_stack_depth();
	foreach_ptr(ObjectAddress, user, type_users(typeoid))
	{
		if (user->classId == TypeRelationId)
			refuse_stored_type(user->objectId, name);
		else if (MotIsMotTable(user->objectId))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot alter type \"%s\" because column \"%s.%s\" uses it",
							name, get_rel_name(user->objectId),
							get_attname(user->objectId, user->objectSubId, false))));
		else if (get_rel_relkind(user->objectId) == RELKIND_COMPOSITE_TYPE)
			refuse_stored_type(get_rel_type_id(user->objectId), name);
	}
}

/* ------------------------------------------------------------- sorting out */

static void
take_key(AlterWork *work, Node *node, const char *column, AttrNumber before)
{
	TakenKey   *taken = palloc(sizeof(TakenKey));

	taken->key = node;
	taken->column = column;
	taken->before = before;
	work->keys = lappend(work->keys, taken);
}

static void
take_constraint(AlterWork *work, AlterTableCmd *cmd)
{
	Constraint *constraint = castNode(Constraint, cmd->def);

	switch (constraint->contype)
	{
		case CONSTR_PRIMARY:
		case CONSTR_UNIQUE:
		case CONSTR_FOREIGN:
		case CONSTR_EXCLUSION:
			take_key(work, constraint->indexname != NULL ? (Node *) constraint :
					 (Node *) MotConstraintToIndex(work->stmt->relation, constraint), NULL, InvalidAttrNumber);
			break;
		default:
			work->cmds = lappend(work->cmds, cmd);
			break;
	}
}

/* Does the same statement add a column of that name already? */
static bool
is_added_before(const List *cmds, const AlterTableCmd *add)
{
	foreach_node(AlterTableCmd, cmd, cmds)
	{
		if (cmd == add)
			break;
		if (cmd->subtype == AT_AddColumn &&
			strcmp(castNode(ColumnDef, cmd->def)->colname, castNode(ColumnDef, add->def)->colname) == 0)
			return true;
	}
	return false;
}

/* the column's keys come with the column or not at all */
static void
take_column(AlterWork *work, Oid relid, AlterTableCmd *cmd)
{
	ColumnDef  *column = castNode(ColumnDef, cmd->def);

	work->cmds = lappend(work->cmds, cmd);
	/* (the server does not look at the rest either) */
	if (column_stays(work->stmt->cmds, cmd, relid))
		return;
	foreach_ptr(Node, key, MotTakeColumnKeys(work->stmt->relation, column))
	{
		if (!cmd->missing_ok)
			take_key(work, key, NULL, InvalidAttrNumber);
		else if (!is_added_before(work->stmt->cmds, cmd))
			take_key(work, key, column->colname, get_attnum(relid, column->colname));
	}
}

static void
notice_ignored(RangeVar *relation, const char *what)
{
	ereport(NOTICE,
			(errmsg("%s has no effect on memory-optimized table \"%s\"",
					what, relation->relname)));
}

/* (the server has these last, too, and some of them in the order in which they are given) */
static void
take_other(AlterWork *work, AlterTableCmd *cmd)
{
	bool		last;

	switch (cmd->subtype)
	{
		case AT_ColumnDefault:
			last = cmd->def != NULL;
			break;
		case AT_AddIdentity:
		case AT_SetIdentity:
		case AT_AddInherit:
		case AT_DropInherit:
		case AT_ValidateConstraint:
		case AT_AlterConstraint:
		case AT_ChangeOwner:
			last = true;
			break;
		default:
			last = false;
			break;
	}
	if (last)
		work->later = lappend(work->later, cmd);
	else
		work->cmds = lappend(work->cmds, cmd);
}

static void
take_commands(AlterWork *work, Oid relid)
{
	RangeVar   *relation = work->stmt->relation;

	foreach_node(AlterTableCmd, cmd, work->stmt->cmds)
	{
		switch (cmd->subtype)
		{
			case AT_AddConstraint:
				take_constraint(work, cmd);
				break;
			case AT_AddColumn:
				take_column(work, relid, cmd);
				break;

			case AT_SetRelOptions:
			case AT_ResetRelOptions:
			case AT_DropCluster:
			case AT_SetLogged:
				break;			/* nothing to do, nothing lost */
			case AT_SetUnLogged:
				notice_ignored(relation, "SET UNLOGGED");
				break;
			case AT_SetTableSpace:
				(void) get_tablespace_oid(cmd->name, false);
				notice_ignored(relation, "SET TABLESPACE");
				break;
			case AT_ReplicaIdentity:
				if (castNode(ReplicaIdentityStmt, cmd->def)->identity_type != REPLICA_IDENTITY_DEFAULT)
					ereport(ERROR,
							(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							 errmsg("REPLICA IDENTITY is not supported on memory-optimized table \"%s\"",
									relation->relname),
							 errdetail("Memory-optimized tables take no part in logical replication.")));
				break;
			case AT_ClusterOn:
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot cluster memory-optimized table \"%s\"", relation->relname),
						 errdetail("Its rows have no order in memory to improve.")));
				break;
			default:
				take_other(work, cmd);
				break;
		}
	}
}

/* ---------------------------------------------------------------- running */

static void
run_commands(const MotUtility *u, AlterWork *work, Oid relid, List *cmds, LOCKMODE lockmode)
{
	AlterTableStmt *stmt;
	List	   *altered;
	Relation	rel;

	if (cmds == NIL)
		return;

	/* as the server will, but before indexes are taken away */
	rel = relation_open(relid, NoLock);
	CheckTableNotInUse(rel, "ALTER TABLE");
	relation_close(rel, NoLock);

	altered = MotAlterBegin(relid, cmds, work->stmt->relation->inh, lockmode, u->query_string);
	stmt = makeNode(AlterTableStmt);
	stmt->relation = copyObject(work->stmt->relation);
	MotAlterQualify(stmt->relation, relid);
	stmt->cmds = cmds;
	stmt->objtype = work->stmt->objtype;
	stmt->missing_ok = false;
	MotUtilityStep(u, (Node *) stmt);
	CommandCounterIncrement();
	MotAlterFinish(altered, u->pstmt->utilityStmt);
}

static void
run_key(const MotUtility *u, Oid relid, Node *key)
{
	EventTriggerAlterTableStart(u->pstmt->utilityStmt);
	EventTriggerAlterTableRelid(relid);
	if (IsA(key, Constraint))
		MotAdoptIndex(relid, (Constraint *) key);
	else
	{
		ObjectAddress address;

		ObjectAddressSet(address, RelationRelationId,
						 MotDefineIndex(relid, (IndexStmt *) key, true));
		EventTriggerCollectSimpleCommand(address, InvalidObjectAddress, key);
	}
	EventTriggerAlterTableEnd();
	CommandCounterIncrement();
}

static void
alter_table_body(const MotUtility *u, void *arg)
{
	AlterWork  *work = (AlterWork *) arg;
	Oid			relid = work->relid;
	LOCKMODE	lockmode = AlterTableGetLockLevel(work->stmt->cmds);

	LockRelationOid(relid, lockmode);

	if (MotIsMotTable(relid))
		take_commands(work, relid);
	else
	{
		foreach_node(AlterTableCmd, cmd, work->stmt->cmds)
			take_other(work, cmd);
	}

	/*
	 * One statement if possible.  But an added column is filled as ADD COLUMN
	 * says, not as SET DEFAULT in the same statement does, nor as an identity
	 * column is; and some want a primary key's columns NOT NULL.
	 */
	if (work->keys == NIL &&
		!(has_command(work->cmds, AT_AddColumn) &&
		  (has_command(work->later, AT_ColumnDefault) || has_command(work->later, AT_AddIdentity))))
	{
		work->cmds = list_concat(work->cmds, work->later);
		work->later = NIL;
	}
	run_commands(u, work, relid, work->cmds, lockmode);

	foreach_ptr(TakenKey, taken, work->keys)
	{
		if (taken->column == NULL || get_attnum(relid, taken->column) != taken->before)
			run_key(u, relid, taken->key);
	}
	run_commands(u, work, relid, work->later, lockmode);
}

static void
say_missing(const MotUtility *u, void *arg)
{
	ereport(NOTICE,
			(errmsg("relation \"%s\" does not exist, skipping",
					castNode(AlterTableStmt, u->pstmt->utilityStmt)->relation->relname)));
}

/* (the server would look for itself, and find what has come meanwhile) */
bool
MotAlterMissing(const MotUtility *u, AlterTableStmt *stmt)
{
	/*
	 * (CONCURRENTLY, in a transaction, is an error of a table that is not
	 * there, too)
	 */
	if (!OidIsValid(MotAmOid(true)) || has_command(stmt->cmds, AT_DetachPartition))
		return false;
	MotUtilityWhole(u, say_missing, NULL);
	return true;
}

bool
MotAlterTable(const MotUtility *u, AlterTableStmt *stmt, Oid relid)
{
	AlterWork	work;

	if (!OidIsValid(MotAmOid(true)) || stmt->objtype == OBJECT_INDEX ||
		stmt->objtype == OBJECT_SEQUENCE || stmt->objtype == OBJECT_VIEW)
		return false;
	/* stored values of the table's row type would have to be read otherwise */
	if (has_command(stmt->cmds, AT_AlterColumnType) && OidIsValid(get_rel_type_id(relid)))
		refuse_stored_type(get_rel_type_id(relid), stmt->relation->relname);
	if (stmt->objtype == OBJECT_TYPE)
		return false;

	foreach_node(AlterTableCmd, cmd, stmt->cmds)
	{
		/* (ours can have none at all) */
		if ((cmd->subtype == AT_AddConstraint || cmd->subtype == AT_AddColumn) && !MotIsMotTable(relid))
			MotRefuseReferences(list_make1(cmd->def));
		/* these come alone, by the grammar; see partition.c */
		if (cmd->subtype == AT_AttachPartition || cmd->subtype == AT_DetachPartition ||
			cmd->subtype == AT_DetachPartitionFinalize)
			return false;
	}
	if (!MotIsMotTable(relid) &&
		(!MotAlterGoesBelow(stmt->cmds, stmt->relation->inh, relid) || MotTablesBelow(relid, NoLock) == NIL))
		return false;

	memset(&work, 0, sizeof(work));
	work.stmt = copyObject(stmt);
	work.relid = relid;

	MotUtilityWhole(u, alter_table_body, &work);
	return true;
}

/* ---------------------------------------------------------------- domains */

/*
 * Rows of MOT tables with columns of a domain (or of one made from it) that
 * has just become stricter.
 */
static void
check_domain_users(Oid domain, List *constraints, bool notnull)
{
	check_stack_depth();
	foreach_ptr(ObjectAddress, user, type_users(domain))
	{
		if (user->classId == TypeRelationId)
		{
			if (get_typtype(user->objectId) == TYPTYPE_DOMAIN)
				check_domain_users(user->objectId, constraints, notnull);
			else
				refuse_stored_type(user->objectId, format_type_be(domain));
		}
		else if (MotIsMotTable(user->objectId))
		{
			Relation	rel = relation_open(user->objectId, ShareLock);
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), user->objectSubId - 1);

			if (!att->attisdropped && att->atttypid == domain)
				MotRewriteRows(rel, RelationGetDescr(rel), NIL, false, NULL,
							   MotDomainChecks(constraints, notnull, user->objectSubId));
			relation_close(rel, NoLock);
		}
	}
}

/*
 * the tables that have columns of the domain, or of one made from it, in the order in which the
 * server comes to them
 */
static List *
domain_relations(Oid domain)
{
	List	   *relations = NIL;

	check_stack_depth();
	foreach_ptr(ObjectAddress, user, type_users(domain))
	{
		if (user->classId != TypeRelationId)
			relations = list_append_unique_oid(relations, user->objectId);
		else if (get_typtype(user->objectId) == TYPTYPE_DOMAIN)
			relations = list_concat_unique_oid(relations, domain_relations(user->objectId));
	}
	return relations;
}

/*
 * Before the server does: MOT tables' definitions will say that their rows have been
 * checked, and they are locked where heap tables would be.  So all that the
 * server will lock (get_rels_with_domain) is locked here, in its order.  What it lets go at
 * once, like parents of partitions, it would come back for, and may not get
 * any more from one who waits for a partition: that is kept until it has been
 * there.  Returned.
 */
static List *
lock_domain_relations(Oid domain)
{
	List	   *relations = domain_relations(domain);
	List	   *passing = NIL;
	ListCell   *lc;

	foreach(lc, relations)
		if (MotIsMotTable(lfirst_oid(lc)))
		break;
	if (lc == NULL)
		return NIL;
	foreach_oid(relid, relations)
	{
		char		relkind;

		LockRelationOid(relid, ShareLock);
		relkind = get_rel_relkind(relid);
		if (MotIsMotTable(relid))
			MotStorageDefinitionChanged(relid);
		else if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW)
			passing = lappend_oid(passing, relid);
	}
	return passing;
}

static void
name_domain(AlterDomainStmt *stmt, Oid domain)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
	Form_pg_type type;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type \"%s\" does not exist", NameListToString(stmt->typeName))));
	type = (Form_pg_type) GETSTRUCT(tuple);
	stmt->typeName = list_make2(makeString(get_namespace_name(type->typnamespace)),
								makeString(pstrdup(NameStr(type->typname))));
	ReleaseSysCache(tuple);
}

/* Does it allow no nulls?  *place: where it says so in the catalogue. */
static bool
is_not_null(Oid domain, ItemPointer place)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
	bool		result = HeapTupleIsValid(tuple) && ((Form_pg_type) GETSTRUCT(tuple))->typnotnull;

	ItemPointerSetInvalid(place);
	if (!HeapTupleIsValid(tuple))
		return false;
	*place = tuple->t_self;
	ReleaseSysCache(tuple);
	return result;
}

/* (as a constraint from 17 on) */
static bool
gives_not_null(const AlterDomainStmt *stmt)
{
	return stmt->subtype == 'O' ||
		(stmt->subtype == 'C' && castNode(Constraint, stmt->def)->contype == CONSTR_NOTNULL);
}

static void
alter_domain_body(const MotUtility *u, void *arg)
{
	AlterDomainStmt *stmt = (AlterDomainStmt *) arg;
	TypeName   *name = makeTypeNameFromNameList(copyObject(stmt->typeName));
	Oid			domain = typenameTypeId(NULL, name);
	List	   *before = MotValidChecks(InvalidOid, domain);
	const char *constraint = stmt->subtype == 'C' ? castNode(Constraint, stmt->def)->conname : stmt->name;
	bool		notnull = gives_not_null(stmt);
	ItemPointerData was;
	ItemPointerData is;
	bool		there = is_not_null(domain, &was) && notnull;
	List	   *constraints;
	List	   *passing = NIL;

	/*
	 * not for what the server will say is not there, or is already: that
	 * waits for nobody
	 */
	if (object_ownercheck(TypeRelationId, domain, GetUserId()) && !there &&
		(constraint == NULL || OidIsValid(get_domain_constraint_oid(domain, constraint, true)) == (stmt->subtype == 'V')))
		passing = lock_domain_relations(domain);

	/*
	 * it may have been given another name while those were waited for, and
	 * another one its
	 */
	if (LookupTypeNameOid(NULL, name, true) != domain)
		name_domain(stmt, domain);
	MotUtilityStep(u, (Node *) stmt);
	CommandCounterIncrement();
	/* (somebody may have just taken it away) */
	if (there && is_not_null(domain, &is) && !ItemPointerEquals(&is, &was))
	{
		passing = lock_domain_relations(domain);
		there = false;
	}
	foreach_oid(oid, passing)
		UnlockRelationOid(oid, ShareLock);

	/* VALIDATE looks again at one that is valid, as the server does */
	constraints = list_difference_oid(MotValidChecks(InvalidOid, domain), before);
	if (stmt->subtype == 'V')
		constraints = list_append_unique_oid(constraints, get_domain_constraint_oid(domain, stmt->name, false));
	notnull &= !there;
	if (constraints != NIL || notnull)
		check_domain_users(domain, constraints, notnull);
}

bool
MotAlterDomain(const MotUtility *u, AlterDomainStmt *stmt)
{
	if (!OidIsValid(MotAmOid(true)))
		return false;
	switch (stmt->subtype)
	{
		case 'O':				/* SET NOT NULL */
		case 'V':				/* VALIDATE CONSTRAINT */
			break;
		case 'C':				/* ADD CONSTRAINT */
			if (castNode(Constraint, stmt->def)->skip_validation)
				return false;
			break;
		default:
			return false;
	}
	MotUtilityWhole(u, alter_domain_body, copyObject(stmt));
	return true;
}

/* ---------------------------------------------------------- REASSIGN OWNED */

bool
MotReassignOwned(const MotUtility *u, ReassignOwnedStmt *stmt)
{
	if (!OidIsValid(MotAmOid(true)))
		return false;
	MotUtilityPass(u);

	/*
	 * the indexes follow their tables, which are locked; others' tables are
	 * nothing to us
	 */
	foreach_oid(oid, MotListTables())
	{
		Relation	rel;

		if (!MotIsLocked(oid, AccessExclusiveLock))
			continue;
		rel = table_open(oid, NoLock);
		MotIndexesFollowOwner(rel);
		table_close(rel, NoLock);
	}
	CommandCounterIncrement();
	return true;
}
