/*-------------------------------------------------------------------------
 *
 * create_table_as.c
 *	  CREATE TABLE AS and SELECT INTO where mot.default_engine (or USING mot)
 *	  makes the table a MOT table.
 *
 * As ExecCreateTableAs: the query runs into a receiver that creates the table
 * when it learns the columns, and loads the rows.  EXPLAIN ANALYZE of such a
 * statement makes its own receiver inside the server, and a heap table.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/table.h"
#include "access/xact.h"
#include "commands/createas.h"
#include "commands/event_trigger.h"
#include "commands/prepare.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct IntoReceiver
{
	DestReceiver pub;
	const MotUtility *u;
	IntoClause *into;
	Relation	rel;			/* once it exists */
	MotWriter  *writer;
	MotBatch   *batch;
	MemoryContext rowcxt;
} IntoReceiver;

/* ------------------------------------------------------------ the table */

static ColumnDef *
make_column(const char *name, Oid type, int32 typmod, Oid collation, ListCell **names,
			List *colnames)
{
	ColumnDef  *column;

	if (*names)
	{
		name = strVal(lfirst(*names));
		*names = lnext(colnames, *names);
	}
	column = makeColumnDef(name, type, typmod, collation);
	if (!OidIsValid(column->collOid) && type_is_collatable(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("no collation was derived for column \"%s\" with collatable type %s",
						name, format_type_be(type)),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	return column;
}

static Oid
create_table(const MotUtility *u, IntoClause *into, List *columns, ListCell *names)
{
	CreateStmt *stmt = makeNode(CreateStmt);

	if (names != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("too many column names were specified")));
	stmt->relation = into->rel;
	stmt->tableElts = columns;
	stmt->oncommit = ONCOMMIT_NOOP;
	return MotCreateBareTable(u, MotMakeForeign(stmt));
}

/* -------------------------------------------------------- the receiver */

static void
into_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	IntoReceiver *into = (IntoReceiver *) self;
	ListCell   *names = list_head(into->into->colNames);
	List	   *columns = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		columns = lappend(columns, make_column(NameStr(att->attname), att->atttypid,
											   att->atttypmod, att->attcollation,
											   &names, into->into->colNames));
	}
	into->rel = table_open(create_table(into->u, into->into, columns, names),
						   AccessExclusiveLock);
	if (!into->into->skipData)
	{
		into->writer = MotWriterBegin(into->rel, GetActiveSnapshot(), GetCurrentCommandId(true));
		into->batch = MotBatchBegin(into->writer, true, NULL);
		into->rowcxt = AllocSetContextCreate(CurrentMemoryContext, "mot row",
											 ALLOCSET_DEFAULT_SIZES);
	}
}

static bool
into_receive(TupleTableSlot *slot, DestReceiver *self)
{
	IntoReceiver *into = (IntoReceiver *) self;

	if (into->writer)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(into->rowcxt);

		/* at once: the query's functions may look at the table, as at heap's */
		slot_getallattrs(slot);
		MotBatchAdd(into->batch, slot->tts_values, slot->tts_isnull, 0);
		MotBatchWrite(into->batch);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(into->rowcxt);
	}
	return true;
}

static void
into_shutdown(DestReceiver *self)
{
	IntoReceiver *into = (IntoReceiver *) self;

	if (into->writer)
	{
		MotBatchEnd(into->batch);
		MotWriterEnd(into->writer);
		MemoryContextDelete(into->rowcxt);
		into->writer = NULL;
	}
	if (into->rel)
		table_close(into->rel, NoLock);
	into->rel = NULL;
}

static void
into_destroy(DestReceiver *self)
{
	pfree(self);
}

static DestReceiver *
make_receiver(const MotUtility *u, IntoClause *clause)
{
	IntoReceiver *into = palloc0(sizeof(IntoReceiver));

	into->pub.receiveSlot = into_receive;
	into->pub.rStartup = into_startup;
	into->pub.rShutdown = into_shutdown;
	into->pub.rDestroy = into_destroy;
	into->pub.mydest = DestIntoRel;
	into->u = u;
	into->into = clause;
	return (DestReceiver *) into;
}

/* ----------------------------------------------------------- the statement */

static void
create_empty(const MotUtility *u, IntoClause *into, List *targets)
{
	ListCell   *names = list_head(into->colNames);
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) target->expr;

		if (!target->resjunk)
			columns = lappend(columns, make_column(target->resname, exprType(expr),
												   exprTypmod(expr), exprCollation(expr),
												   &names, into->colNames));
	}
	(void) create_table(u, into, columns, names);
}

static void
run_query(const MotUtility *u, Query *query, IntoClause *into, DestReceiver *dest)
{
	List	   *rewritten = QueryRewrite(query);
	PlannedStmt *plan;
	QueryDesc  *desc;

	if (list_length(rewritten) != 1)
		elog(ERROR, "unexpected rewrite result for CREATE TABLE AS SELECT");
	plan = pg_plan_query(linitial_node(Query, rewritten), u->query_string,
						 CURSOR_OPT_PARALLEL_OK, u->params);

	/* see the results of anything that planning has run */
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	desc = CreateQueryDesc(plan, u->query_string, GetActiveSnapshot(), InvalidSnapshot,
						   dest, u->params, u->query_env, 0);
	ExecutorStart(desc, GetIntoRelEFlags(into));
	ExecutorRun(desc, ForwardScanDirection, 0L, true);
	if (u->qc)
		SetQueryCompletion(u->qc, CMDTAG_SELECT, desc->estate->es_processed);
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();
}

static void
create_table_as_body(const MotUtility *u, void *arg)
{
	CreateTableAsStmt *stmt = (CreateTableAsStmt *) arg;
	Query	   *query = castNode(Query, stmt->query);
	DestReceiver *dest;

	if (CreateTableAsRelExists(stmt))
		return;
	(void) MotEngineRequired();

	dest = make_receiver(u, stmt->into);
	if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExecuteStmt))
	{
		ParseState *pstate = make_parsestate(NULL);

		pstate->p_sourcetext = u->query_string;
		pstate->p_queryEnv = u->query_env;
		ExecuteQuery(pstate, castNode(ExecuteStmt, query->utilityStmt), stmt->into,
					 u->params, dest, u->qc);
		free_parsestate(pstate);
	}
	else if (stmt->into->skipData)
		create_empty(u, stmt->into, query->targetList);
	else
		run_query(u, query, stmt->into, dest);
	dest->rDestroy(dest);
}

bool
MotCreateTableAs(const MotUtility *u, CreateTableAsStmt *stmt)
{
	if (stmt->objtype != OBJECT_TABLE ||
		!MotDefaultEngineTakes(stmt->into->rel, stmt->into->onCommit, stmt->into->accessMethod))
		return false;
	MotUtilityWhole(u, create_table_as_body, copyObject(stmt));
	return true;
}
