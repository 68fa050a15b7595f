/*-------------------------------------------------------------------------
 *
 * utility.c
 *	  The utility hook: sends statements that concern MOT tables to their
 *	  files and everything else straight on.
 *
 * The first test of every kind of statement is cheap and says no for a
 * database without MOT tables.  Statement trees can belong to cached plans,
 * so whatever changes one works on a copy.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "procedure/call.h"
#include "relation/relation.h"
#include "statement/statement.h"
#include "tcop/cmdtag.h"
#include "utils/backend_progress.h"
#include "utils/evtcache.h"
#include "utils/syscache.h"
#include "xact/xact.h"

static ProcessUtility_hook_type prev_process_utility = NULL;

static void
next_utility(const MotUtility *u, PlannedStmt *pstmt, bool read_only_tree)
{
	(prev_process_utility ? prev_process_utility : standard_ProcessUtility)
		(pstmt, u->query_string, read_only_tree, u->context, u->params, u->query_env, u->dest, u->qc);
}

void
MotUtilityPass(const MotUtility *u)
{
	next_utility(u, u->pstmt, u->read_only_tree);
}

void
MotUtilityRun(const MotUtility *u, Node *stmt)
{
	PlannedStmt *pstmt = makeNode(PlannedStmt);

	memcpy(pstmt, u->pstmt, sizeof(PlannedStmt));
	pstmt->utilityStmt = stmt;
	next_utility(u, pstmt, false);
}

/* as ProcessUtilitySlow wraps the statements it makes itself */
static PlannedStmt *
wrap_step(const MotUtility *u, Node *stmt)
{
	PlannedStmt *pstmt = makeNode(PlannedStmt);

	pstmt->commandType = CMD_UTILITY;
	pstmt->canSetTag = false;
	pstmt->utilityStmt = stmt;
	pstmt->stmt_location = u->pstmt->stmt_location;
	pstmt->stmt_len = u->pstmt->stmt_len;
	return pstmt;
}

void
MotUtilityStep(const MotUtility *u, Node *stmt)
{
	MotUtility	step = {wrap_step(u, stmt), u->query_string, false, PROCESS_UTILITY_SUBCOMMAND, u->params, NULL, None_Receiver};

	MotUtilityPass(&step);
}

void
MotUtilityNested(const MotUtility *u, Node *stmt)
{
	ProcessUtility(wrap_step(u, stmt), u->query_string, false,
				   PROCESS_UTILITY_SUBCOMMAND, u->params, NULL, None_Receiver, NULL);
}

void
MotUtilityWhole(const MotUtility *u, MotUtilityBody body, void *arg)
{
	Node	   *stmt = u->pstmt->utilityStmt;
	const char *tag = GetCommandTagName(CreateCommandTag(stmt));
	bool		complete = (u->context != PROCESS_UTILITY_SUBCOMMAND);
	bool		cleanup;

	check_stack_depth();
	PreventCommandIfReadOnly(tag);
	PreventCommandIfParallelMode(tag);
	PreventCommandDuringRecovery(tag);

	cleanup = complete && EventTriggerBeginCompleteQuery();
	PG_TRY();
	{
		if (complete)
			EventTriggerDDLCommandStart(stmt);
		body(u, arg);
		if (complete)
		{
			EventTriggerSQLDrop(stmt);
			EventTriggerDDLCommandEnd(stmt);
		}
	}
	PG_FINALLY();
	{
		if (cleanup)
			EventTriggerEndCompleteQuery();
	}
	PG_END_TRY();

	CommandCounterIncrement();
}

Oid
MotDdlLookup(const RangeVar *relation)
{
	return RangeVarGetRelid(relation, NoLock, true);
}

/* It was one of ours before it was locked, or was none. */
void
MotDdlRefuseReplaced(const char *relation, const char *command)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("relation \"%s\" was replaced while %s waited for it", relation, command),
			 errhint("Run the statement again.")));
}

bool
MotDdlNamesMotTable(const RangeVar *relation)
{
	Oid			relid = MotDdlLookup(relation);

	return OidIsValid(relid) && MotIsMotTable(relid);
}

bool
MotDdlIsMotIndex(Oid indexoid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		result = form->relkind == RELKIND_INDEX &&
			OidIsValid(form->relam) && form->relam == MotAmOid(true);
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * COMMENT ON TABLE, SECURITY LABEL ON TABLE and ALTER EXTENSION ... ADD TABLE
 * want FOREIGN TABLE to be said; a MOT table answers to TABLE too.
 */
static bool
retarget(const MotUtility *u)
{
	Node	   *stmt = copyObject(u->pstmt->utilityStmt);
	ObjectType *type;
	Node	   *object;

	switch (nodeTag(stmt))
	{
		case T_CommentStmt:
			type = &((CommentStmt *) stmt)->objtype;
			object = ((CommentStmt *) stmt)->object;
			break;
		case T_SecLabelStmt:
			type = &((SecLabelStmt *) stmt)->objtype;
			object = ((SecLabelStmt *) stmt)->object;
			break;
		default:
			type = &castNode(AlterExtensionContentsStmt, stmt)->objtype;
			object = castNode(AlterExtensionContentsStmt, stmt)->object;
			break;
	}
	if (*type != OBJECT_TABLE || !MotDdlNamesMotTable(makeRangeVarFromNameList(castNode(List, object))))
		return false;
	*type = OBJECT_FOREIGN_TABLE;
	MotUtilityRun(u, stmt);
	return true;
}

static void
pass_on(void *arg)
{
	MotUtilityPass(arg);
}

/* Two-phase commit: see xact/prepared.c. */
static bool
transaction_statement(const MotUtility *u, const TransactionStmt *stmt)
{
	switch (stmt->kind)
	{
		case TRANS_STMT_PREPARE:
			MotPreparedSaid(stmt->gid);
			return false;
		case TRANS_STMT_COMMIT_PREPARED:
		case TRANS_STMT_ROLLBACK_PREPARED:
			MotPreparedFinish(stmt->gid, stmt->kind == TRANS_STMT_COMMIT_PREPARED, pass_on, unconstify(MotUtility *, u));
			return true;
		default:
			return false;
	}
}

/* a client's CALL, in its cheaper form */
static bool
call(const MotUtility *u)
{
	PlannedStmt *pstmt;
	CallStmt   *evaluated;

	if (!u->read_only_tree || !MotCallIsClients(u->pstmt))
		return false;
	/* (a copy: modules whose hooks are after ours may scribble on it) */
	pstmt = makeNode(PlannedStmt);
	memcpy(pstmt, u->pstmt, sizeof(PlannedStmt));
	MotCallKeepPlan(u->pstmt);
	evaluated = mot_jit ? MotCallEvaluated(castNode(CallStmt, pstmt->utilityStmt), u->params) : NULL;
	if (evaluated != NULL)
		pstmt->utilityStmt = (Node *) evaluated;
	next_utility(u, pstmt, evaluated == NULL);
	return true;
}

static bool
dispatch(const MotUtility *u)
{
	Node	   *stmt = u->pstmt->utilityStmt;

	switch (nodeTag(stmt))
	{
		case T_CreateStmt:
			MotRefuseReferences(((CreateStmt *) stmt)->tableElts);
			return false;
		case T_CreateForeignTableStmt:
			return MotCreateForeignTable(u, (CreateForeignTableStmt *) stmt);
		case T_IndexStmt:
			return MotCreateIndex(u, (IndexStmt *) stmt);
		case T_AlterTableStmt:	/* IF EXISTS, or it is read-only */
			return !XactReadOnly && MotAlterMissing(u, (AlterTableStmt *) stmt);
		case T_AlterDomainStmt:
			return MotAlterDomain(u, (AlterDomainStmt *) stmt);
		case T_ReassignOwnedStmt:
			return MotReassignOwned(u, (ReassignOwnedStmt *) stmt);
		case T_CallStmt:
			return call(u);
		case T_ExecuteStmt:
			MotCallForgetPlan(((ExecuteStmt *) stmt)->name);
			return false;
		case T_TransactionStmt:
			return transaction_statement(u, (TransactionStmt *) stmt);
		case T_DropStmt:
			return MotDrop(u, (DropStmt *) stmt);
		case T_DropdbStmt:
			return MotDropDatabase(u, (DropdbStmt *) stmt);
		case T_CreatedbStmt:
			return MotCreateDatabase(u, (CreatedbStmt *) stmt);
		case T_VacuumStmt:
			return MotVacuum(u, (VacuumStmt *) stmt);
		case T_ReindexStmt:
			return MotReindex(u, (ReindexStmt *) stmt);
		case T_RepackStmt:
			return MotRepack(u, (RepackStmt *) stmt);
		case T_LockStmt:
			return MotLockTable(u, (LockStmt *) stmt);
		case T_CopyStmt:
			return MotCopy(u, (CopyStmt *) stmt);
		case T_CreateExtensionStmt:
		case T_AlterExtensionStmt:
			return MotExtensionScript(u);
		case T_CommentStmt:
		case T_SecLabelStmt:
		case T_AlterExtensionContentsStmt:
			return retarget(u);
		default:
			return false;
	}
}

/*
 * What ALTER TABLE changes is told by what it changes, so that has to be locked: as long as it is
 * waited for, its name may be given to another table, and others may come below it.  From then on
 * it is called by its schema, too, since another of that name may come before it in the search path.
 * (What is read-only the server refuses.)
 */
static PlannedStmt *
lock_altered(PlannedStmt *pstmt, Oid *relid)
{
	AlterTableStmt *stmt = castNode(AlterTableStmt, pstmt->utilityStmt);
	LOCKMODE	lockmode;

	*relid = InvalidOid;
	if (XactReadOnly || !OidIsValid(MotAmOid(true)))
		return pstmt;
	lockmode = AlterTableGetLockLevel(stmt->cmds);
	*relid = AlterTableLookupRelation(stmt, lockmode);
	if (!OidIsValid(*relid))
		return pstmt;
	if (MotAlterGoesBelow(stmt->cmds, stmt->relation->inh, *relid))
		(void) find_all_inheritors(*relid, lockmode, NULL);
	pstmt = copyObject(pstmt);
	MotAlterQualify(castNode(AlterTableStmt, pstmt->utilityStmt)->relation, *relid);
	return pstmt;
}

/* ordinary tables among those that ALTER TABLE has changed: it has them to itself */
static void
mend_indexes(Oid relid)
{
	List	   *relids;

	/* what is only seen with the next command has been */
	CommandCounterIncrement();
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return;
	relids = find_all_inheritors(relid, NoLock, NULL);
	foreach_oid(oid, relids)
	{
		Relation	rel;

		if (!MotIsLocked(oid, AccessExclusiveLock))
			continue;
		rel = try_relation_open(oid, NoLock);
		if (rel == NULL)
			continue;
		if (MotIsOrdinary(rel))
			MotStorageMendIndexes(rel);
		else if (rel->rd_rel->relkind == RELKIND_RELATION)
			MotIndexesPutBack(rel);
		relation_close(rel, NoLock);
	}
	list_free(relids);
}

/* Does it, or might it, store rows of ours anew? */
static bool
stores_rows(const AlterTableStmt *stmt, Oid relid, bool *leaves)
{
	bool		comes = false;

	*leaves = false;
	foreach_node(AlterTableCmd, cmd, stmt->cmds)
	{
		if (cmd->subtype != AT_SetAccessMethod)
			continue;
		comes = cmd->name != NULL && strcmp(cmd->name, MOT_TABLE_AM_NAME) == 0;
		*leaves = !comes;
	}
	return comes || MotIsOrdinaryTable(relid);
}

/* SET ACCESS METHOD mot (which may be the default one) of a table that has triggers */
static void
check_triggers(const AlterTableStmt *stmt, Oid relid)
{
	foreach_node(AlterTableCmd, cmd, stmt->cmds)
	{
		Relation	rel;

		if (cmd->subtype != AT_SetAccessMethod)
			continue;
		rel = table_open(relid, NoLock);
		if (MotIsOrdinary(rel))
			MotCheckTriggers(rel);
		table_close(rel, NoLock);
	}
}

static void
alter(const MotUtility *u, Oid relid)
{
	AlterTableStmt *stmt = castNode(AlterTableStmt, u->pstmt->utilityStmt);
	int			depth = MotAlterTableDepth++;
	bool		leaves;
	bool		shown = depth == 0 && stores_rows(stmt, relid, &leaves);

	if (shown)
	{
		MotAlterShows = relid;
		MotAlterLeaves = leaves;
	}
	PG_TRY();
	{
		if (!MotAlterTable(u, stmt, relid))
			MotUtilityPass(u);
		check_triggers(stmt, relid);
	}
	PG_FINALLY();
	{
		MotAlterTableDepth = depth;
		if (shown)
			MotAlterShows = InvalidOid;
	}
	PG_END_TRY();
	if (shown && u->progress != NULL)
		*u->progress = true;
	else if (shown)
		pgstat_progress_end_command();
}

static void
run(const MotUtility *u, Oid altered)
{
	if (OidIsValid(altered))
		alter(u, altered);
	else if (!dispatch(u))
		MotUtilityPass(u);
}

static void
process(MotUtility *u)
{
	Oid			altered = InvalidOid;

	if (IsA(u->pstmt->utilityStmt, AlterTableStmt))
		u->pstmt = lock_altered(u->pstmt, &altered);
	MotPartitionAround(u->pstmt->utilityStmt, run, u, altered);
	if (OidIsValid(altered))
		mend_indexes(altered);
}

static void
process_inside(const MotUtility *u, void *arg)
{
	MotUtility	inside = *u;

	inside.context = PROCESS_UTILITY_SUBCOMMAND;
	inside.progress = (bool *) arg;
	process(&inside);
}

/*
 * Is there something around the server's work that event triggers are not to come between?  What
 * they do as the statement begins can give its names to others, and has to wait for no lock; and
 * what they find as it ends is to be checked and mended.  (A module whose hook is below ours may want
 * to be around its own event triggers: pgaudit's fail outside.)
 */
static bool
has_event_triggers(const MotUtility *u)
{
	Node	   *stmt = u->pstmt->utilityStmt;

	if (u->context == PROCESS_UTILITY_SUBCOMMAND || MotUtilityBelow)
		return false;
	if (IsA(stmt, AlterTableStmt))
	{
		AlterTableCmd *cmd = linitial_node(AlterTableCmd, ((AlterTableStmt *) stmt)->cmds);

		/* (that one commits in between) */
		if (cmd->subtype == AT_DetachPartition && castNode(PartitionCmd, cmd->def)->concurrent)
			return false;
	}
	else if (!MotPartitionIsMade(stmt))
		return false;

	/*
	 * (not of others: who has looked into a catalogue has a snapshot, for
	 * which CREATE INDEX CONCURRENTLY would wait as long as a CHECKPOINT
	 * takes)
	 */
	if (!OidIsValid(MotAmOid(true)))
		return false;
	return EventCacheLookup(EVT_DDLCommandStart) != NIL || EventCacheLookup(EVT_DDLCommandEnd) != NIL ||
		EventCacheLookup(EVT_SQLDrop) != NIL;
}

static void
mot_process_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
					ProcessUtilityContext context, ParamListInfo params,
					QueryEnvironment *query_env, DestReceiver *dest, QueryCompletion *qc)
{
	MotUtility	u = {pstmt, query_string, read_only_tree, context, params, query_env, dest, qc};
	bool		progress = false;

	/*
	 * a failed transaction may not look at catalogues, and runs nothing of
	 * these
	 */
	if (!IsTransactionState())
	{
		MotUtilityPass(&u);
		return;
	}
	if (mot_default_engine == MOT_DEFAULT_MOT)
		u.pstmt = MotUseDefaultEngine(pstmt);
	if (MotUtilityIsTopLevel(&u))
		MotReindexes = IsA(pstmt->utilityStmt, ReindexStmt);
	if (has_event_triggers(&u))
		MotUtilityWhole(&u, process_inside, &progress);
	else
		process(&u);
	if (progress)
		pgstat_progress_end_command();
}

void
MotDdlInit(void)
{
	MotAccessInit();
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = mot_process_utility;
}
