/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  LOCK TABLE on MOT tables.
 *
 * The server refuses foreign tables, and below a view it passes over them.
 * So those that are named are locked here, and of a view, once the server has
 * locked what it knows of, those that it, or a view in it, is about.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* a view being gone through */
typedef struct LockView
{
	LOCKMODE	mode;
	bool		nowait;
	Oid			user;			/* whose privileges count */
	List	   *views;			/* this one and those it is in */
} LockView;

static void lock_view(Oid viewoid, LOCKMODE mode, bool nowait, List *above);

/* privileges as LockTableAclCheck wants them */
static void
check_privileges(Oid relid, LOCKMODE mode, Oid user, const char *name)
{
	AclMode		mask;
	AclResult	aclresult;

	if (mode == AccessShareLock)
		mask = ACL_SELECT;
	else if (mode == RowExclusiveLock)
		mask = ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE;
	else
		mask = ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE;
	aclresult = pg_class_aclcheck(relid, user, mask);
	if (aclresult != ACLCHECK_OK)
		aclcheck_error(aclresult, OBJECT_FOREIGN_TABLE, name);
}

static void
check_lock(const RangeVar *name, Oid relid, Oid old_relid, void *arg)
{
	if (!OidIsValid(relid))
		return;
	if (!MotIsMotTable(relid))
		MotDdlRefuseReplaced(name->relname, "LOCK TABLE");
	check_privileges(relid, *(LOCKMODE *) arg, GetUserId(), name->relname);
}

static void
lock_relation(Oid relid, LOCKMODE mode, bool nowait)
{
	if (!nowait)
		LockRelationOid(relid, mode);
	else if (!ConditionalLockRelationOid(relid, mode))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on relation \"%s\"", get_rel_name(relid))));
}

static void
lock_children(Oid relid, LOCKMODE mode, bool nowait)
{
	foreach_oid(child, find_all_inheritors(relid, NoLock, NULL))
	{
		if (child == relid)
			continue;
		lock_relation(child, mode, nowait);
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(child)))
			UnlockRelationOid(child, mode);
	}
}

/* ------------------------------------------------------------------- views */

static bool
lock_view_walker(Node *node, void *arg)
{
	LockView   *view = (LockView *) arg;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, lock_view_walker, arg);

	foreach_node(RangeTblEntry, rte, ((Query *) node)->rtable)
	{
		if (rte->rtekind != RTE_RELATION)
			continue;
		if (rte->relkind == RELKIND_VIEW)
		{
			/* (a view's own entries are among them) */
			if (!list_member_oid(view->views, rte->relid))
				lock_view(rte->relid, view->mode, view->nowait, view->views);
		}
		else if (MotIsMotTable(rte->relid))
		{
			check_privileges(rte->relid, view->mode, view->user, get_rel_name(rte->relid));
			lock_relation(rte->relid, view->mode, view->nowait);
			if (rte->inh)
				lock_children(rte->relid, view->mode, view->nowait);
		}
	}
	return query_tree_walker((Query *) node, lock_view_walker, arg, QTW_IGNORE_JOINALIASES);
}

/* as the server's LockViewRecurse; it has locked the view, and those in it */
static void
lock_view(Oid viewoid, LOCKMODE mode, bool nowait, List *above)
{
	Relation	rel = table_open(viewoid, NoLock);
	LockView	view;

	check_stack_depth();
	view.mode = mode;
	view.nowait = nowait;
	view.user = RelationHasSecurityInvoker(rel) ? GetUserId() : rel->rd_rel->relowner;
	view.views = lappend_oid(list_copy(above), viewoid);
	(void) lock_view_walker((Node *) get_view_query(rel), &view);
	table_close(rel, NoLock);
}

/* --------------------------------------------------------------- statement */

/*
 * The server has locked it: only now it is known what it is.  Another of that name may have come
 * earlier in the search path since: then it is what the name meant before, or is not known.
 */
static void
lock_if_view(const LockStmt *stmt, const RangeVar *name, Oid before)
{
	Oid			relid = MotDdlLookup(name);

	if (!MotIsLocked(relid, stmt->mode))
		relid = before;
	if (!MotIsLocked(relid, stmt->mode))
		MotDdlRefuseReplaced(name->relname, "LOCK TABLE");
	if (get_rel_relkind(relid) == RELKIND_VIEW)
		lock_view(relid, stmt->mode, stmt->nowait, NIL);
}

bool
MotLockTable(const MotUtility *u, LockStmt *stmt)
{
	ListCell   *lc;
	ListCell   *before;
	List	   *relids = NIL;

	if (!OidIsValid(MotAmOid(true)))
		return false;
	foreach(lc, stmt->relations)
	{
		Oid			relid = MotDdlLookup((RangeVar *) lfirst(lc));

		if (OidIsValid(relid) && (MotIsMotTable(relid) || get_rel_relkind(relid) == RELKIND_VIEW))
			break;
		relids = lappend_oid(relids, relid);
	}
	/* (pg_dump names thousands in one) */
	if (lc == NULL)
	{
		MotUtilityPass(u);
		forboth(lc, stmt->relations, before, relids)
			lock_if_view(stmt, (RangeVar *) lfirst(lc), lfirst_oid(before));
		return true;
	}

	RequireTransactionBlock(MotUtilityIsTopLevel(u), "LOCK TABLE");
	if (stmt->mode > RowExclusiveLock)
	{
		/* as ClassifyUtilityCommandAsReadOnly */
		PreventCommandIfReadOnly("LOCK TABLE");
		PreventCommandDuringRecovery("LOCK TABLE");
	}

	/* one after the other, in the order given, and looked at at once */
	foreach_ptr(RangeVar, name, stmt->relations)
	{
		if (MotDdlNamesMotTable(name))
		{
			Oid			relid = RangeVarGetRelidExtended(name, stmt->mode,
														 stmt->nowait ? RVR_NOWAIT : 0,
														 check_lock, &stmt->mode);

			if (name->inh && has_subclass(relid))
				lock_children(relid, stmt->mode, stmt->nowait);
		}
		else
		{
			/* what the server can lock */
			LockStmt   *one = makeNode(LockStmt);
			Oid			meant = MotDdlLookup(name);

			one->relations = list_make1(copyObject(name));
			one->mode = stmt->mode;
			one->nowait = stmt->nowait;
			MotUtilityRun(u, (Node *) one);
			lock_if_view(stmt, name, meant);
		}
	}
	return true;
}
