/*-------------------------------------------------------------------------
 *
 * build.c
 *	  The program of a plan.
 *
 * The program has an executor state of its own, because callers (SPI, portals,
 * pg_stat_statements) look at queryDesc->estate, and expressions and
 * constraints want one; but none of the server's nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "portability/instr_time.h"
#include "statement/statement.h"
#include "utils/memutils.h"

static bool open_tables(MotStatement *st);
static void build(MotStatement *st, QueryDesc *query);

/*
 * In st->cxt.  False: it can't be run (st->why_not), or an error is better
 * left to the executor.
 */
bool
MotProgramBuild(MotStatement *st, QueryDesc *query)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(st->cxt);
	instr_time	begin,
				end;
	bool		ok;

	INSTR_TIME_SET_CURRENT(begin);
	st->operation = query->operation;
	st->userid = GetUserId();
	st->params_compile = query->params ? query->params->paramCompile : NULL;
	st->reads_others = MotReadsOthers(st->plan);
	st->exec_cxt = AllocSetContextCreate(st->cxt, "MOT statement execution", ALLOCSET_SMALL_SIZES);

	/* the first that the executor would raise */
	MotExecCheckPermissions(st->plan);
	ok = open_tables(st);
	if (ok)
	{
		MotQueryBegins(query, 0);
		build(st, query);
		MotSubselectsBuilt(st);
		/* (what rechecks rows of joins is the server's) */
		st->bare &= !st->reads_others && st->initplans == NIL && st->parents == NIL &&
			st->estate->es_rowmarks == NULL && (st->change == NULL || MotChangeIsBare(st->change));
		foreach_ptr(MotScanNode, sn, st->scans)
			MotScanPark(sn->scan);
		if (st->change != NULL)
			MotChangeRest(st);
		if (st->lock != NULL)
			MotLockRest(st);
		MotQueryEnds(query);
		for (int i = 0; i < st->ntables; i++)
		{
			relation_close(st->tables[i].rel, NoLock);
			st->tables[i].rel = NULL;
			st->estate->es_relations[st->tables[i].rti - 1] = NULL;
		}
		st->estate->es_range_table = NIL;
		st->estate->es_param_list_info = NULL;
	}
	MemoryContextSwitchTo(oldcxt);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, begin);
	st->build_ms = INSTR_TIME_GET_MILLISEC(end);
	return ok;
}

/* If an execution looks up a single row by parameters, it is what it waits for. */
void
MotStatementAhead(MotStatement *st, MotScan *scan, ExprContext *econtext)
{
	if (scan->keys != NULL && scan->u == NULL && scan->keys->known)
	{
		st->ahead = scan;
		st->ahead_econtext = econtext;
	}
}

MotTable *
MotStatementTable(MotStatement *st, Index rti)
{
	for (int i = 0; i < st->ntables; i++)
		if (st->tables[i].rti == rti)
			return &st->tables[i];
	elog(ERROR, "no table for range table entry %u", rti);
	return NULL;				/* keep compiler quiet */
}

/* which of the range table are read or written, and not only named */
void
MotPlanTables(const Plan *plan, Bitmapset **rtis)
{
	if (plan == NULL)
		return;
	check_stack_depth();
	if (IsA(plan, ForeignScan))
		*rtis = bms_add_member(*rtis, ((const ForeignScan *) plan)->scan.scanrelid);
	else if (IsA(plan, SubqueryScan))
		MotPlanTables(((const SubqueryScan *) plan)->subplan, rtis);
	else if (IsA(plan, ModifyTable))
		*rtis = bms_add_member(*rtis, linitial_int(((const ModifyTable *) plan)->resultRelations));
	MotPlanTables(outerPlan(plan), rtis);
	MotPlanTables(innerPlan(plan), rtis);
}

static bool
open_tables(MotStatement *st)
{
	Bitmapset  *rtis = NULL;
	int			rti = -1;

	MotPlanTables(st->run->planTree, &rtis);
	foreach_ptr(Plan, subplan, st->run->subplans)
		MotPlanTables(subplan, &rtis);
	st->tables = palloc0(Max(1, bms_num_members(rtis)) * sizeof(MotTable));
	while ((rti = bms_next_member(rtis, rti)) >= 0)
	{
		MotTable   *table = &st->tables[st->ntables];

		table->rti = rti;
		table->relid = rt_fetch(rti, st->plan->rtable)->relid;

		/* locked by whoever got the plan out of its cache, or planned it */
		table->rel = relation_open(table->relid, NoLock);
		table->ordinary = MotIsOrdinary(table->rel);
		st->ntables++;
		if (IsA(st->run->planTree, ModifyTable) && st->why_not == NULL &&
			rti == linitial_int(((ModifyTable *) st->run->planTree)->resultRelations))
			st->why_not = MotTargetWhyNot(table->rel, (ModifyTable *) st->run->planTree);
		table->mr = MotRelationGet(table->rel);
		table->built = table->mr->built;
	}
	if (st->why_not == NULL)
		return true;
	for (int i = 0; i < st->ntables; i++)
		relation_close(st->tables[i].rel, NoLock);
	return false;
}

/*
 * A scan whose rows go up as they are need not have columns that only the
 * executor's nodes above would look at: ctid for LockRows, and what an index
 * orders by.  (What is computed may fail.)  The plan is the cache's: what changes is copied.
 */
static Plan *
without_junk(Plan *plan)
{
	List	   *kept = NIL;
	Plan	   *copy;

	if (!IsA(plan, Limit) && !IsA(plan, ForeignScan) &&
		!(IsA(plan, LockRows) && MotLocksScan((LockRows *) plan)))
		return plan;
	foreach_node(TargetEntry, tle, plan->targetlist)
	{
		if (tle->resjunk && !IsA(tle->expr, Var))
			return plan;
		if (tle->resjunk)
			continue;
		kept = lappend(kept, tle);
		if (tle->resno != list_length(kept))
			return plan;		/* (junk is behind the rest) */
	}
	copy = MotPlanCopy(plan);
	if (outerPlan(plan) != NULL)
	{
		copy->lefttree = without_junk(outerPlan(plan));
		if (copy->lefttree == outerPlan(plan))
			return plan;
	}
	copy->targetlist = kept;
	return copy;
}

static void
build(MotStatement *st, QueryDesc *query)
{
	Plan	   *plan = st->run->planTree;
	EState	   *estate = makeNode(EState);
	MotNode    *node;

	st->estate = estate;
	estate->es_direction = ForwardScanDirection;
	estate->es_query_cxt = st->cxt;
	estate->es_snapshot = query->snapshot;
	estate->es_plannedstmt = unconstify(PlannedStmt *, st->plan);
	MotEstatePlan(estate, st->plan);
	estate->es_range_table_size = list_length(st->plan->rtable);
	estate->es_relations = palloc0(estate->es_range_table_size * sizeof(Relation));
	for (int i = 0; i < st->ntables; i++)
		estate->es_relations[st->tables[i].rti - 1] = st->tables[i].rel;
	estate->es_param_list_info = query->params;
	estate->es_sourceText = query->sourceText;
	if (st->plan->paramExecTypes != NIL)
		estate->es_param_exec_vals = palloc0(list_length(st->plan->paramExecTypes) *
											 sizeof(ParamExecData));
	MotSubselectsBuild(st);

	if (IsA(plan, ModifyTable))
	{
		MotChangeBuild(st, (ModifyTable *) plan);
		if (st->plan->hasReturning)
			st->sender = MotSenderMake(st->desc);
		return;
	}

	plan = without_junk(plan);
	st->root = MotNodeBuild(st, plan);
	st->desc = ExecTypeFromTL(plan->targetlist);
	foreach_node(TargetEntry, tle, plan->targetlist)
		if (tle->resjunk)
	{
		st->junk = ExecInitJunkFilter(plan->targetlist,
									  MotMakeTupleTableSlot(NULL, &TTSOpsVirtual));
		st->desc = st->junk->jf_cleanTupType;
		break;
	}
	st->sender = MotSenderMake(st->desc);
	node = st->root;
	while (IsA(plan, Limit) || IsA(plan, LockRows))
	{
		plan = outerPlan(plan);
		node = node->outer;
	}
	if (node->is_scan)
	{
		st->cursor = (MotScanNode *) node;
		MotStatementAhead(st, st->cursor->scan, node->econtext);
	}
}
