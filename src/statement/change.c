/*-------------------------------------------------------------------------
 *
 * change.c
 *	  INSERT, UPDATE and DELETE.
 *
 * INSERT computes its rows, one or those of a VALUES list, right into a slot
 * of the table's type, or takes them from nodes that read.  UPDATE and DELETE are what fdw/direct.c
 * does in one node of the executor: find, filter, lock, check again if somebody was faster,
 * compute, write; or, of a join's rows, what joined.c does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "commands/trigger.h"
#include "compat/calls.h"
#include "executor/nodeModifyTable.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "pgstat.h"
#include "statement/statement.h"
#include "table/table.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct MotChange
{
	CmdType		operation;
	bool		counts;			/* in the command's tag */
	int			nrequired;		/* 0: nothing to check; -1: there are more
								 * checks than NOT NULL */
	AttrNumber *required;		/* NOT NULL columns */
	bool		fires;			/* foreign keys hear of each row */
	bool		has_generated;	/* columns that INSERT computes from others */
	MotTable   *table;
	ResultRelInfo *rinfo;
	MotWriter  *writer;
	ExprContext *econtext;
	TupleTableSlot *row;		/* the new row; of DELETE the old one */
	ProjectionInfo *returning;
	TupleTableSlot *returned;	/* it asks for system columns, else NULL */

	/* RETURNING of a version where it lies, or NULL */
	MotRowProgram *returning_program;

	/* INSERT */
	ProjectionInfo *project;	/* the new row */
	ExprState  *constant_qual;
	int			nrows;
	int			next;
	MotModify  *conflict;		/* ON CONFLICT is the wrapper's; or NULL */
	MotNode    *source;			/* a query's rows, or NULL */
	TupleTableSlot *values;		/* of a VALUES list, or NULL */
	ExprState ***lists;
	ExprContext *values_context;

	/* UPDATE and DELETE */
	MotJoined  *joined;			/* of a plan's rows, or NULL: of a scan's */
	ForeignScanState *fss;
	MotScan    *scan;
	ExprState  *filter;
	int			ncolumns;		/* assigned */
	AttrNumber *columns;
	ProjectionInfo *assign;		/* but those that are fixed; or NULL */
	Datum	   *new_values;		/* of its slot */
	bool	   *new_isnull;
	Bitmapset  *dropped;		/* columns, which become null */
	int			nfixed;			/* the last so many are the same for each row */
	ExprState **fixed;
	bool		fixed_known;	/* in this execution */
	MotRowPatch *patch;			/* NULL: rows are made anew from all columns */
	bool	   *not_null;		/* of the columns assigned */
	MotRowProgram *filter_program;
	MotRowProgram *assign_program;
	bool		compiled_filter;	/* used in this execution */
	bool		compiled_assign;
	bool		compiled_returning;
} MotChange;

static void build_checks(MotChange *change, Relation rel);
static void build_triggers(MotStatement *st, MotChange *change, Relation rel);
static void build_insert(MotStatement *st, MotChange *change, ModifyTable *plan);
static void build_values(MotStatement *st, MotChange *change, ValuesScan *plan, PlanState *ps);
static void build_conflict(MotStatement *st, MotChange *change, ModifyTable *plan);
static void build_conflict_patch(MotChange *change, MotModify *modify, ModifyTable *plan, PlanState *ps);
static void build_direct(MotStatement *st, MotChange *change, ForeignScan *plan);
static void build_patch(MotChange *change);
static void build_assignments(MotStatement *st, MotChange *change, ForeignScan *plan, List *colnos);
static void build_returning(MotStatement *st, MotChange *change, ModifyTable *plan);
static TupleTableSlot *next_insert(MotStatement *st, MotChange *change);
static TupleTableSlot *next_joined(MotStatement *st, MotChange *change);
static TupleTableSlot *next_direct(MotStatement *st, MotChange *change);

/* ---------------------------------------------------------------- building */

void
MotChangeBuild(MotStatement *st, ModifyTable *plan)
{
	MotChange  *change = palloc0(sizeof(MotChange));
	Index		rti = linitial_int(plan->resultRelations);
	Relation	rel;

	change->operation = plan->operation;
	change->counts = plan->canSetTag;
	change->table = MotStatementTable(st, rti);
	rel = change->table->rel;
	build_checks(change, rel);
	change->has_generated = rel->rd_att->constr != NULL && rel->rd_att->constr->has_generated_stored;
	change->rinfo = makeNode(ResultRelInfo);
	InitResultRelInfo(change->rinfo, rel, rti, NULL, 0);
	change->writer = MotWriterBegin(rel, st->estate->es_snapshot, 0);
	change->econtext = CreateExprContext(st->estate);
	if (change->table->ordinary)
		build_triggers(st, change, rel);

	if (plan->operation == CMD_INSERT)
		build_insert(st, change, plan);
	else if (bms_is_empty(plan->fdwDirectModifyPlans))
	{
		change->joined = MotJoinedBuild(st, plan, change->rinfo, change->writer);
		change->row = MotJoinedRow(change->joined);
	}
	else
		build_direct(st, change, (ForeignScan *) outerPlan(plan));

	if (plan->plan.initPlan != NIL)
		(void) MotInitPlansBuild(st, &plan->plan,
								 MotParentCreate(st, T_ModifyTableState, sizeof(ModifyTableState),
												 (Plan *) plan, change->econtext));

	st->desc = ExecTypeFromTL(NIL);
	if (plan->returningLists != NIL)
		build_returning(st, change, plan);
	st->change = change;
}

static void
build_returning(MotStatement *st, MotChange *change, ModifyTable *plan)
{
	List	   *list = (List *) linitial(plan->returningLists);
	Index		rti = linitial_int(plan->resultRelations);
	ExprContext *econtext = CreateExprContext(st->estate);
	PlanState  *ps = MotParentCreate(st, T_ModifyTableState, sizeof(ModifyTableState),
									 (Plan *) plan, econtext);
	TupleTableSlot *slot;

	st->desc = ExecTypeFromTL(list);
	slot = MotResultSlot(st->desc);
	change->returning = ExecBuildProjectionInfo(list, econtext, slot, ps,
												change->row->tts_tupleDescriptor);
	if (MotAsksSystem(list))
	{
		change->returned = MotMakeTupleTableSlot(change->row->tts_tupleDescriptor, &TTSOpsHeapTuple);
		MotSlotAdopt(change->returned);
		return;
	}
	if (change->scan == NULL)
		return;
	change->returning_program = MotRowProgramMake(st, rti,
												  change->row->tts_tupleDescriptor,
												  NIL, get_tlist_exprs(list, true), NIL, slot->tts_values,
												  slot->tts_isnull, econtext);
}

/* What the server uses to fire triggers of foreign keys lasts as long as the program. */
static void
build_triggers(MotStatement *st, MotChange *change, Relation rel)
{
	ResultRelInfo *rinfo = change->rinfo;
	TriggerDesc *triggers = rinfo->ri_TrigDesc;
	TupleDesc	desc;

	/* as the executor: of a published table may be asked what it cannot do */
	CheckCmdReplicaIdentity(rel, change->operation);
	if (triggers == NULL)
		return;
	change->fires = change->operation == CMD_DELETE ? triggers->trig_delete_after_row :
		(change->operation == CMD_INSERT && triggers->trig_insert_after_row) || triggers->trig_update_after_row;
	desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	rinfo->ri_TrigOldSlot = MotMakeTupleTableSlot(desc, &MotSlotOps);
	rinfo->ri_TrigNewSlot = MotMakeTupleTableSlot(desc, &MotSlotOps);
	for (int i = 0; i < triggers->numtriggers; i++)
		fmgr_info(triggers->triggers[i].tgfoid, &rinfo->ri_TrigFunctions[i]);
	st->estate->es_opened_result_relations = list_make1(rinfo);
}

static void
build_checks(MotChange *change, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (rel->rd_rel->relispartition || (desc->constr != NULL && desc->constr->num_check > 0))
	{
		change->nrequired = -1;
		return;
	}
	if (desc->constr == NULL)
		return;
	change->required = palloc(Max(desc->natts, 1) * sizeof(AttrNumber));
	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attnotnull)
			change->required[change->nrequired++] = i + 1;
}

static void
build_insert(MotStatement *st, MotChange *change, ModifyTable *plan)
{
	Plan	   *child = outerPlan(plan);
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(change->table->rel));
	PlanState  *ps;

	change->row = MotMakeTupleTableSlot(desc, &TTSOpsVirtual);
	change->row->tts_tableOid = change->table->relid;
	ps = MotParentCreate(st, T_ResultState, sizeof(ResultState), child, change->econtext);
	if (IsA(child, ValuesScan))
		build_values(st, change, (ValuesScan *) child, ps);
	else if (!IsA(child, Result) || outerPlan(child) != NULL || child->initPlan != NIL)
		change->source = MotNodeBuild(st, child);
	else
	{
		change->nrows = 1;
		change->constant_qual = ExecInitQual((List *) ((Result *) child)->resconstantqual, ps);
	}
	if (plan->onConflictAction != ONCONFLICT_NONE)
		build_conflict(st, change, plan);
	if (change->source == NULL)
		change->project = ExecBuildProjectionInfo(child->targetlist, change->econtext, change->row, ps,
												  change->values ? change->values->tts_tupleDescriptor : NULL);
}

/* What the wrapper's INSERT ... ON CONFLICT (fdw/conflict.c) looks at. */
static void
build_conflict(MotStatement *st, MotChange *change, ModifyTable *plan)
{
	MotModify  *modify = palloc0(sizeof(MotModify));
	ResultRelInfo *rinfo = change->rinfo;
	TupleDesc	desc = change->row->tts_tupleDescriptor;
	ExprContext *econtext = CreateExprContext(st->estate);
	PlanState  *ps = MotParentCreate(st, T_ModifyTableState, sizeof(ModifyTableState),
									 (Plan *) plan, econtext);

	modify->relation = change->table->mr;
	modify->session = MotSession();
	modify->writer = change->writer;
	modify->mtstate = (ModifyTableState *) ps;
	modify->conflict = plan->onConflictAction;
	modify->copy_decided = true;
	rinfo->ri_onConflictArbiterIndexes = plan->arbiterIndexes;
	if (plan->onConflictAction == ONCONFLICT_UPDATE)
	{
		OnConflictActionState *state = makeNode(OnConflictActionState);

		CheckCmdReplicaIdentity(change->table->rel, CMD_UPDATE);
		rinfo->ri_onConflict = state;
		state->oc_Existing = MotMakeTupleTableSlot(desc, &MotSlotOps);
		state->oc_ProjSlot = MotMakeTupleTableSlot(desc, &TTSOpsVirtual);
		state->oc_ProjInfo = ExecBuildUpdateProjection(plan->onConflictSet, true,
													   plan->onConflictCols, desc, econtext,
													   state->oc_ProjSlot, ps);
		state->oc_WhereClause = ExecInitQual((List *) plan->onConflictWhere, ps);
		if (plan->returningLists == NIL && plan->withCheckOptionLists == NIL && !change->fires)
			build_conflict_patch(change, modify, plan, ps);
	}
	change->conflict = modify;
}

static void
build_conflict_patch(MotChange *change, MotModify *modify, ModifyTable *plan, PlanState *ps)
{
	List	   *targets = NIL;
	TupleTableSlot *slot;
	ListCell   *lc;
	ListCell   *lc2;

	change->columns = palloc(list_length(plan->onConflictSet) * sizeof(AttrNumber));
	forboth(lc, plan->onConflictSet, lc2, plan->onConflictCols)
	{
		TargetEntry *target = lfirst_node(TargetEntry, lc);

		targets = lappend(targets, makeTargetEntry(target->expr, change->ncolumns + 1, NULL, false));
		change->columns[change->ncolumns++] = lfirst_int(lc2);
	}
	/* (there are more if a sub-select gives several columns their values) */
	if (list_length(plan->onConflictSet) == change->ncolumns)
		build_patch(change);
	if (change->patch == NULL)
		return;
	slot = MotMakeTupleTableSlot(ExecTypeFromExprList(get_tlist_exprs(targets, true)), &TTSOpsVirtual);
	modify->assign = ExecBuildProjectionInfo(targets, ps->ps_ExprContext, slot, ps,
											 change->row->tts_tupleDescriptor);
	modify->patch = change->patch;
	modify->nassigned = change->ncolumns;
	modify->assigned = change->columns;
	modify->not_null = change->not_null;
}

static void
build_values(MotStatement *st, MotChange *change, ValuesScan *plan, PlanState *ps)
{
	List	   *first = (List *) linitial(plan->values_lists);
	int			ncolumns = list_length(first);
	int			i = 0;

	change->values_context = CreateExprContext(st->estate);
	change->values = MotMakeTupleTableSlot(ExecTypeFromExprList(first), &TTSOpsVirtual);
	change->nrows = list_length(plan->values_lists);
	change->lists = palloc(change->nrows * sizeof(ExprState **));
	foreach_ptr(List, list, plan->values_lists)
	{
		ListCell   *lc2;
		int			column = 0;

		change->lists[i] = palloc(ncolumns * sizeof(ExprState *));
		foreach(lc2, list)
			change->lists[i][column++] = ExecInitExpr((Expr *) lfirst(lc2), ps);
		i++;
	}
}

static void
build_direct(MotStatement *st, MotChange *change, ForeignScan *plan)
{
	int			nprivate = list_length(plan->fdw_private);
	ForeignScanState *fss = MotScanStateCreate(st, plan, change->econtext);
	TupleDesc	desc = fss->ss.ps.scandesc;

	change->fss = fss;
	change->scan = palloc0(sizeof(MotScan));
	fss->fdw_state = change->scan;
	MotScanInit(change->scan, fss);
	change->scan->writer = change->writer;
	change->scan->operation = change->operation;
	if (change->scan->keys != NULL && change->scan->u == NULL)
		MotKeysHold(change->scan->keys, &st->executions);
	MotStatementAhead(st, change->scan, change->econtext);
	change->filter = ExecInitQual(plan->scan.plan.qual, &fss->ss.ps);
	change->counts = list_nth_int(plan->fdw_private, nprivate - 1) != 0;
	change->row = fss->ss.ss_ScanTupleSlot;
	if (change->filter != NULL)
		change->filter_program = MotRowProgramMake(st, plan->scan.scanrelid, desc,
												   plan->scan.plan.qual, NIL,
												   NIL, NULL, NULL, change->econtext);
	if (change->operation == CMD_UPDATE)
	{
		int			ncolumns = list_nth_int(plan->fdw_private, nprivate - 2);
		List	   *colnos = list_copy_tail(plan->fdw_private, nprivate - 2 - ncolumns);

		colnos = list_truncate(colnos, ncolumns);
		change->row = MotMakeTupleTableSlot(desc, &TTSOpsVirtual);
		change->row->tts_tableOid = change->table->relid;
		build_assignments(st, change, plan, colnos);
		build_patch(change);
	}
}

static bool
is_not_of_server(Oid funcid, void *context)
{
	return funcid >= FirstNormalObjectId;
}

static bool
calls_others(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, CoerceToDomain) || check_functions_in_node(node, is_not_of_server, context))
		return true;
	return expression_tree_walker(node, calls_others, context);
}

/*
 * Is an assignment the same for every row, like the time of day, and worth
 * computing once?  (Functions of others may show how often they are called.)
 */
static bool
is_fixed(Expr *expr)
{
	return get_typbyval(exprType((Node *) expr)) &&
		contain_mutable_functions((Node *) expr) &&
		!contain_var_clause((Node *) expr) &&
		!contain_subplans((Node *) expr) &&
		!calls_others((Node *) expr, NULL);
}

/* UPDATE's assignments, of rows that are locked and pass; fixed ones come last */
static void
build_assignments(MotStatement *st, MotChange *change, ForeignScan *plan, List *colnos)
{
	PlanState  *ps = &change->fss->ss.ps;
	TupleDesc	desc = ps->scandesc;
	TupleTableSlot *slot;
	List	   *outputs = NIL;
	List	   *targets = NIL;
	List	   *fixed = NIL;
	ListCell   *lc;
	ListCell   *lc2;
	int			n = 0;

	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attisdropped)
			change->dropped = bms_add_member(change->dropped, i);

	change->ncolumns = list_length(colnos);
	change->columns = palloc(change->ncolumns * sizeof(AttrNumber));
	change->fixed = palloc(change->ncolumns * sizeof(ExprState *));
	forboth(lc, colnos, lc2, MotPlanList(plan, MOT_LIST_VALUES))
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc2)->expr;

		if (is_fixed(expr))
		{
			change->columns[change->ncolumns - ++change->nfixed] = lfirst_int(lc);
			change->fixed[change->nfixed - 1] = ExecInitExpr(expr, ps);
			fixed = lcons(expr, fixed);
			continue;
		}
		change->columns[n++] = lfirst_int(lc);
		outputs = lappend(outputs, expr);
		targets = lappend(targets, makeTargetEntry(expr, n, NULL, false));
	}

	slot = MotMakeTupleTableSlot(ExecTypeFromExprList(list_concat_copy(outputs, fixed)), &TTSOpsVirtual);
	change->new_values = slot->tts_values;
	change->new_isnull = slot->tts_isnull;
	if (outputs == NIL)
		return;
	change->assign = ExecBuildProjectionInfo(targets, change->econtext, slot, ps, desc);
	change->assign_program = MotRowProgramMake(st, plan->scan.scanrelid, desc, NIL, outputs, NIL,
											   change->new_values, change->new_isnull, change->econtext);
}

/*
 * The old row's bytes with new values in it, if no constraint but NOT NULL looks
 * at the new row.
 */
static void
build_patch(MotChange *change)
{
	Relation	rel = change->table->rel;
	TupleDesc	desc = RelationGetDescr(rel);

	if (rel->rd_rel->relispartition ||
		(desc->constr != NULL && (desc->constr->num_check > 0 || desc->constr->has_generated_stored)))
		return;
	change->not_null = palloc(change->ncolumns * sizeof(bool));
	for (int i = 0; i < change->ncolumns; i++)
	{
		if (bms_is_member(change->columns[i], change->table->mr->key_attnums))
			return;
		change->not_null[i] = TupleDescAttr(desc, change->columns[i] - 1)->attnotnull;
	}
	change->patch = MotRowPatchMake(desc, change->ncolumns, change->columns);
}

/* --------------------------------------------------------------- execution */

void
MotChangeStart(MotStatement *st)
{
	MotChange  *change = st->change;
	EState	   *estate = st->estate;

	change->rinfo->ri_RelationDesc = change->table->rel;
	if (change->fires && (estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) == 0)
		AfterTriggerBeginQuery();
	MotWriterStart(change->writer, change->table->rel, &st->view, estate->es_output_cid);
	change->next = 0;
	change->compiled_filter = change->compiled_assign = change->compiled_returning = false;
	change->fixed_known = false;
	if (change->scan != NULL)
	{
		change->fss->ss.ss_currentRelation = change->table->rel;
		change->scan->view = st->view;
		MotViewTable(change->scan->relation, &change->scan->view);
		MotReScanForeignScan(change->fss);
	}
	if (change->source != NULL)
		change->source->restart(change->source);
	if (change->joined != NULL)
		MotJoinedStart(change->joined);
}

/* rows gone through in all executions; "change" may be NULL */
uint64
MotChangeRows(const MotChange *change)
{
	return change != NULL && change->scan != NULL ? change->scan->rows : 0;
}

/* Is nothing called for a row that could look at the query's snapshot? (but the plan's expressions) */
bool
MotChangeIsBare(const MotChange *change)
{
	return !change->fires && (change->conflict == NULL || change->conflict->triggers == NULL) && change->nrequired >= 0 &&
		!change->has_generated && !change->table->mr->has_computed;
}

/*
 * Triggers of other tables are fired here, too: those whose rows the foreign keys' own
 * statements have changed (ON UPDATE CASCADE).  What the server opens for them, it leaves to the
 * end of the executor's state; ours goes on, so it is closed at once.
 */
void
MotChangeFinish(MotStatement *st)
{
	EState	   *estate = st->estate;
	List	   *slots = estate->es_tupleTable;

	if (!st->change->fires || (estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) != 0)
		return;
	estate->es_tupleTable = NIL;
	AfterTriggerEndQuery(estate);
	ExecResetTupleTable(estate->es_tupleTable, false);
	estate->es_tupleTable = slots;
	ExecCloseResultRelations(estate);
	estate->es_trig_target_relations = NIL;
}

void
MotChangeRest(MotStatement *st)
{
	MotChange  *change = st->change;

	ExecClearTuple(change->row);
	if (change->fires)
	{
		ExecClearTuple(change->rinfo->ri_TrigOldSlot);
		ExecClearTuple(change->rinfo->ri_TrigNewSlot);
	}
	if (change->returned != NULL)
		ExecClearTuple(change->returned);
	if (change->scan != NULL)
	{
		ExecClearTuple(change->fss->ss.ss_ScanTupleSlot);
		if (change->table->ordinary && change->table->rel != NULL)
			MotScanCount(change->scan);
		MotScanPark(change->scan);	/* and its writer */
	}
	else
		MotWriterRest(change->writer);
	if (change->joined != NULL)
		MotJoinedRest(change->joined);
}

/* "row" has all its columns in place */
static inline void
check_row(MotChange *change, TupleTableSlot *row, EState *estate)
{
	int			n = change->nrequired;

	for (int i = 0; i < n; i++)
		if (unlikely(row->tts_isnull[change->required[i] - 1]))
			n = -1;
	if (unlikely(n < 0))
		MotCheckRow(change->rinfo, row, estate);
}

/* The next row that RETURNING makes; NULL when all is done. */
TupleTableSlot *
MotChangeNext(MotStatement *st)
{
	MotChange  *change = st->change;

	if (change->operation == CMD_INSERT)
		return next_insert(st, change);
	return change->joined != NULL ? next_joined(st, change) : next_direct(st, change);
}

/* RETURNING's row of one that a slot has; "ended": see MotSlotReturn. */
static TupleTableSlot *
returning(MotChange *change, TupleTableSlot *row, bool ended)
{
	ExprContext *econtext = change->returning->pi_exprContext;

	ResetExprContext(econtext);
	if (unlikely(change->returned != NULL))
		row = MotSlotReturn(change->returned, row, ended);
	econtext->ecxt_scantuple = row;
	return ExecProject(change->returning);
}

/* RETURNING's row of a version, compiled. */
static TupleTableSlot *
returning_compiled(MotChange *change, const mot_version *version)
{
	MemoryContext cxt = change->returning->pi_exprContext->ecxt_per_tuple_memory;
	TupleTableSlot *slot = change->returning->pi_state.resultslot;

	MemoryContextReset(cxt);
	ExecClearTuple(slot);
	MotWithin(cxt, (void) MotRowProgramRun(change->returning_program, version));
	return ExecStoreVirtualTuple(slot);
}

static void
compute_values(MotChange *change, ExprState **expressions)
{
	ExprContext *econtext = change->values_context;
	TupleTableSlot *slot = change->values;
	int			ncolumns = slot->tts_tupleDescriptor->natts;
	MemoryContext oldcxt;

	ResetExprContext(econtext);
	ExecClearTuple(slot);
	oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < ncolumns; i++)
	{
		Datum		value = ExecEvalExpr(expressions[i], econtext, &slot->tts_isnull[i]);

		/* as the executor's node: it may be used more than once */
		slot->tts_values[i] = MakeExpandedObjectReadOnly(value, slot->tts_isnull[i],
														 TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen);
	}
	MemoryContextSwitchTo(oldcxt);
	ExecStoreVirtualTuple(slot);
	change->econtext->ecxt_scantuple = slot;
}

/* The next row to insert, into change->row; false: there are no more. */
static inline bool
compute_row(MotChange *change)
{
	TupleTableSlot *row = change->row;

	if (change->source != NULL)
	{
		TupleTableSlot *slot = change->source->next(change->source);
		int			natts = row->tts_tupleDescriptor->natts;

		if (slot == NULL)
			return false;
		slot_getsomeattrs(slot, natts);
		ExecClearTuple(row);
		memcpy(row->tts_values, slot->tts_values, natts * sizeof(Datum));
		memcpy(row->tts_isnull, slot->tts_isnull, natts * sizeof(bool));
		ExecStoreVirtualTuple(row);
		return true;
	}

	if (change->next == 0 && change->constant_qual != NULL &&
		!ExecQual(change->constant_qual, change->econtext))
		change->next = change->nrows;
	if (change->next >= change->nrows)
		return false;
	if (change->lists != NULL)
		compute_values(change, change->lists[change->next]);
	change->next++;
	ExecProject(change->project);
	return true;
}

/*
 * An ordinary table's row, which the slot shows and names, has been inserted, updated or deleted.
 */
static void
tell_change(MotChange *change, CmdType operation, TupleTableSlot *slot, EState *estate)
{
	Relation	rel = change->table->rel;
	mot_session *session = MotSession();
	ItemPointerData old;
	mot_row    *row;
	unsigned	changes;

	if (operation == CMD_INSERT)
		pgstat_count_heap_insert(rel, 1);
	else if (operation == CMD_UPDATE)
		MotCountUpdate(rel);
	else
		pgstat_count_heap_delete(rel);
	if (likely(!change->fires))
		return;
	if (operation == CMD_DELETE)
	{
		/* the slot has the id of what was deleted */
		ExecARDeleteTriggers(estate, change->rinfo, &slot->tts_tid, NULL, NULL, false);
		return;
	}
	row = MotTidToVersion(session, change->table->mr->table, &slot->tts_tid, &changes);
	changes = mot_version_changes(row, mot_row_newest(session, row));
	MotVersionToTid(session, row, changes, &slot->tts_tid);
	MotVersionToTid(session, row, changes - 1, &old);
	if (operation == CMD_INSERT)
		ExecARInsertTriggers(estate, change->rinfo, slot, NIL, NULL);
	else
		ExecARUpdateTriggers(estate, change->rinfo, NULL, NULL, &old, NULL, slot, NIL, NULL, false);
}

static TupleTableSlot *
next_insert(MotStatement *st, MotChange *change)
{
	EState	   *estate = st->estate;
	TupleTableSlot *row = change->row;

	for (;;)
	{
		mot_row    *stored;

		if (change->source == NULL && change->next >= change->nrows)
			return NULL;
		CHECK_FOR_INTERRUPTS();
		MotContextReset(GetPerTupleMemoryContext(estate));
		MotContextReset(change->econtext->ecxt_per_tuple_memory);
		if (!compute_row(change))
			return NULL;
		if (change->has_generated)
			ExecComputeStoredGenerated(change->rinfo, estate, row, CMD_INSERT);
		if (change->nrequired != 0)
			check_row(change, row, estate);

		if (change->conflict != NULL)
		{
			TupleTableSlot *result;

			MotContextReset(change->conflict->mtstate->ps.ps_ExprContext->ecxt_per_tuple_memory);
			result = MotInsertOnConflict(change->conflict, estate, change->rinfo, row);
			if (result == NULL)
				continue;
			if (change->table->ordinary)
				tell_change(change, result == row ? CMD_INSERT : CMD_UPDATE, result, estate);
			if (change->counts)
				estate->es_processed++;
			if (change->returning && change->table->ordinary)
			{
				unsigned	changes;

				stored = MotTidToVersion(MotSession(), change->table->mr->table, &result->tts_tid, &changes);
				MotStatementTid(change->table, stored, mot_row_newest(MotSession(), stored), &result->tts_tid);
			}
			if (change->returning)
				return returning(change, result, result != row);
			continue;
		}

		MotWithin(change->econtext->ecxt_per_tuple_memory,
				  stored = MotWriterInsert(change->writer, row->tts_values, row->tts_isnull));
		if (change->counts)
			estate->es_processed++;
		if (change->fires || change->returning)
			MotStatementTid(change->table, stored, mot_row_newest(MotSession(), stored), &row->tts_tid);
		if (change->table->ordinary)
			tell_change(change, CMD_INSERT, row, estate);
		if (change->returning)
			return returning(change, row, false);
	}
}

static TupleTableSlot *
next_joined(MotStatement *st, MotChange *change)
{
	TupleTableSlot *planned;

	while (MotJoinedNext(change->joined, &planned))
	{
		if (change->table->ordinary)
			tell_change(change, change->operation, change->row, st->estate);
		if (change->counts)
			st->estate->es_processed++;
		if (change->returning)
		{
			change->returning->pi_exprContext->ecxt_outertuple = planned;
			return returning(change, change->row, change->operation == CMD_DELETE);
		}
	}
	return NULL;
}

/* The new values of the locked row. */
static void
compute_new_values(MotChange *change)
{
	if (change->compiled_assign)
		(void) MotRowProgramRun(change->assign_program, change->scan->version);
	else if (change->assign != NULL)
	{
		/* all at once, if the rest will be asked for */
		if (change->patch == NULL)
			slot_getallattrs(change->fss->ss.ss_ScanTupleSlot);
		(void) ExecProject(change->assign);
	}
	if (likely(change->nfixed == 0 || change->fixed_known))
		return;
	for (int i = 0; i < change->nfixed; i++)
	{
		int			place = change->ncolumns - 1 - i;

		change->new_values[place] = ExecEvalExpr(change->fixed[i], change->econtext,
												 &change->new_isnull[place]);
	}
	change->fixed_known = true;
}

/* Write the new values over a copy of the row, if it is that simple. */
static bool
patch_row(MotChange *change)
{
	MotScan    *scan = change->scan;

	if (change->patch == NULL)
		return false;
	for (int i = 0; i < change->ncolumns; i++)
		if (change->new_isnull[i] && change->not_null[i])
			return false;
	return MotWriterPatch(scan->writer, scan->row, scan->version, change->patch,
						  change->new_values, change->new_isnull);
}

/* All columns of the new row. */
static TupleTableSlot *
compute_update(MotChange *change)
{
	TupleTableSlot *old = change->fss->ss.ss_ScanTupleSlot;
	TupleTableSlot *row = change->row;
	int			natts = row->tts_tupleDescriptor->natts;
	int			i = -1;

	/* what RETURNING had in it goes */
	ExecClearTuple(row);
	if (old->tts_nvalid == natts)
	{
		memcpy(row->tts_values, old->tts_values, natts * sizeof(Datum));
		memcpy(row->tts_isnull, old->tts_isnull, natts * sizeof(bool));
	}
	else
		MotRowDeform(row->tts_tupleDescriptor, change->scan->version, natts,
					 row->tts_values, row->tts_isnull);
	while ((i = bms_next_member(change->dropped, i)) >= 0)
		row->tts_isnull[i] = true;
	for (i = 0; i < change->ncolumns; i++)
	{
		row->tts_values[change->columns[i] - 1] = change->new_values[i];
		row->tts_isnull[change->columns[i] - 1] = change->new_isnull[i];
	}
	return ExecStoreVirtualTuple(row);
}

/* Update the locked row; what RETURNING looks at: a version, or (NULL) change->row */
static const mot_version *
update_row(MotChange *change, EState *estate)
{
	MotScan    *scan = change->scan;
	TupleTableSlot *row;

	compute_new_values(change);
	if (patch_row(change))
		return change->returning || change->fires ? mot_row_newest(scan->session, scan->row) : NULL;
	row = compute_update(change);
	if (change->nrequired != 0)
	{
		ResetPerTupleExprContext(estate);
		check_row(change, row, estate);
	}
	MotWriterUpdate(scan->writer, scan->row, scan->version, row->tts_values, row->tts_isnull);
	return NULL;
}

static inline bool
passes(MotChange *change)
{
	if (change->compiled_filter)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(change->econtext->ecxt_per_tuple_memory);
		bool		result = MotRowProgramRun(change->filter_program, change->scan->version);

		MemoryContextSwitchTo(oldcxt);
		return result;
	}
	return change->filter == NULL || ExecQual(change->filter, change->econtext);
}

static inline bool
begin_program(MotRowProgram *program)
{
	return program != NULL && program->function != NULL && MotRowProgramBegin(program);
}

/* The slot that shows the row just changed: a version, or else change->row. */
static TupleTableSlot *
changed_slot(MotChange *change, const mot_version *version)
{
	TupleTableSlot *slot = change->row;

	if (version != NULL)
	{
		slot = change->fss->ss.ss_ScanTupleSlot;
		MotSlotShow(slot, version);
	}
	MotStatementTid(change->table, change->scan->row, change->operation == CMD_DELETE ? version :
					mot_row_newest(change->scan->session, change->scan->row), &slot->tts_tid);
	return slot;
}

/* RETURNING's row of the row just changed. */
static TupleTableSlot *
returning_changed(MotChange *change, const mot_version *version)
{
	if (version != NULL && change->compiled_returning)
		return returning_compiled(change, version);
	return returning(change, changed_slot(change, version), change->operation == CMD_DELETE);
}

static TupleTableSlot *
next_direct(MotStatement *st, MotChange *change)
{
	EState	   *estate = st->estate;
	MotScan    *scan = change->scan;
	ExprContext *econtext = change->econtext;
	TupleTableSlot *slot = change->fss->ss.ss_ScanTupleSlot;

	if (!st->started)
	{
		st->started = true;
		change->compiled_filter = begin_program(change->filter_program);
		change->compiled_assign = begin_program(change->assign_program);
		change->compiled_returning = begin_program(change->returning_program);
	}
	for (;;)
	{
		const mot_version *version = NULL;
		MemoryContext oldcxt;
		bool		found;
		bool		locked;

		CHECK_FOR_INTERRUPTS();
		MotContextReset(econtext->ecxt_per_tuple_memory);
		MotWithin(econtext->ecxt_per_tuple_memory, found = MotScanNext(scan, econtext));
		if (!found)
			return NULL;

		MotSlotShow(slot, scan->version);
		MotStatementTid(change->table, scan->row, scan->version, &slot->tts_tid);
		econtext->ecxt_scantuple = slot;
		if (passes(change))
		{
			oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
			locked = MotScanLockRow(scan, econtext, change->filter);
			if (locked && change->operation == CMD_UPDATE)
				version = update_row(change, estate);
			else if (locked)
				MotWriterDelete(scan->writer, scan->row, version = scan->version, false);
			MemoryContextSwitchTo(oldcxt);

			if (locked)
			{
				if (change->counts)
					estate->es_processed++;
				if (change->table->ordinary)
					tell_change(change, change->operation,
								change->fires ? changed_slot(change, version) : slot, estate);
				if (change->returning)
					return returning_changed(change, version);
			}
		}
		if (MotScanIsDone(scan))
			return NULL;
	}
}
