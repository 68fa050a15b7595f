/*-------------------------------------------------------------------------
 *
 * node.c
 *	  Reading: scans, nested loops, LIMIT, sub-queries of FROM.
 *
 * As the executor's nodes do it, row for row, without what these do for cases
 * that we leave to them.  A scan is the wrapper's (fdw/scan.c): it gets a
 * ForeignScanState to look at, and needs no more of the executor than that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/tlist.h"
#include "statement/statement.h"

typedef struct MotPlainColumn
{
	int			offset;			/* behind a row's beginning */
	int16		length;
	bool		byval;
} MotPlainColumn;

struct MotPlain
{
	int			upto;			/* columns that a row has to have */
	int			ncolumns;
	MotPlainColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

typedef struct LimitNode
{
	MotNode		node;
	ExprState  *offset_expr;
	ExprState  *count_expr;
	bool		computed;
	bool		all;			/* no limit */
	int64		offset;
	int64		count;
	int64		position;
} LimitNode;

typedef struct JoinNode
{
	MotNode		node;
	JoinType	type;
	bool		single_match;
	bool		need_outer;
	bool		matched;
	ExprState  *joinqual;
	TupleTableSlot *null_inner;
	List	   *params;			/* NestLoopParams */
} JoinNode;

static MotNode *build_scan(MotStatement *st, ForeignScan *plan);
static MotNode *build_join(MotStatement *st, NestLoop *plan);
static MotNode *build_limit(MotStatement *st, Limit *plan);
static MotNode *build_subquery(MotStatement *st, SubqueryScan *plan);

static MotNode *
build_node(MotStatement *st, Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			return build_scan(st, (ForeignScan *) plan);
		case T_NestLoop:
			return build_join(st, (NestLoop *) plan);
		case T_Agg:
			return MotAggregateBuild(st, (Agg *) plan);
		case T_Limit:
			return build_limit(st, (Limit *) plan);
		case T_LockRows:
			return MotLockBuild(st, (LockRows *) plan);
		case T_Sort:
			return MotSortBuild(st, (Sort *) plan);
		case T_Unique:
			return MotUniqueBuild(st, (Unique *) plan);
		case T_Material:
		case T_Result:
			return MotServersBuild(st, plan, sizeof(MotNode), NULL);
		case T_Memoize:
			/* what it would remember is here as soon */
			return MotNodeBuild(st, outerPlan(plan));
		case T_SubqueryScan:
			return build_subquery(st, (SubqueryScan *) plan);
		default:
			elog(ERROR, "plan node of type %d cannot be run", (int) nodeTag(plan));
	}
	return NULL;				/* keep compiler quiet */
}

MotNode *
MotNodeBuild(MotStatement *st, Plan *plan)
{
	MotNode    *node = build_node(st, plan);

	if (plan->initPlan != NIL)
		MotNodeInitPlans(node, plan);
	return node;
}

/*
 * what all nodes have but scans; "outer" may be NULL, and "size" is that of a structure that begins
 * with a node
 */
MotNode *
MotNodeMake(MotStatement *st, Size size, TupleTableSlot *(*next) (MotNode *node), void (*restart) (MotNode *node),
			Plan *outer)
{
	MotNode    *node = palloc0(size);

	node->statement = st;
	node->next = next;
	node->restart = restart;
	if (outer != NULL)
		node->outer = MotNodeBuild(st, outer);
	return node;
}

/* "restart" of a node that has nothing of its own to begin anew */
void
MotNodeRestart(MotNode *node)
{
	if (node->outer != NULL)
		node->outer->restart(node->outer);
}

/* What expressions take for the node they belong to. */
PlanState *
MotParentCreate(MotStatement *st, NodeTag tag, Size size, Plan *plan, ExprContext *econtext)
{
	PlanState  *ps = palloc0(size);

	ps->type = tag;
	ps->plan = plan;
	ps->state = st->estate;
	ps->ps_ExprContext = econtext;
	if (st->plan->subplans != NIL)
		st->parents = lappend(st->parents, ps);
	return ps;
}

/* Where the node's expressions are evaluated, and what they take for it. */
void
MotNodeContext(MotNode *node, NodeTag tag, Size size, Plan *plan)
{
	node->econtext = CreateExprContext(node->statement->estate);
	node->ps = MotParentCreate(node->statement, tag, size, plan, node->econtext);
}

/* The node's target list, into a slot of its own. */
static void
make_projection(MotNode *node, Plan *plan)
{
	TupleTableSlot *slot = MotResultSlot(ExecTypeFromTL(plan->targetlist));

	node->project = ExecBuildProjectionInfo(plan->targetlist, node->econtext, slot, node->ps,
											node->ps->scandesc);
}

/* ------------------------------------------------------------------ scans */

/*
 * A scan's state for the wrapper, with a slot that shows rows in place.
 */
ForeignScanState *
MotScanStateCreate(MotStatement *st, ForeignScan *plan, ExprContext *econtext)
{
	MotTable   *table = MotStatementTable(st, plan->scan.scanrelid);
	ForeignScanState *fss = (ForeignScanState *)
	MotParentCreate(st, T_ForeignScanState, sizeof(ForeignScanState), (Plan *) plan, econtext);
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(table->rel));

	fss->ss.ss_currentRelation = table->rel;
	fss->ss.ss_ScanTupleSlot = MotMakeTupleTableSlot(desc, &TTSOpsHeapTuple);
	fss->ss.ss_ScanTupleSlot->tts_tableOid = table->relid;
	MotSlotAdopt(fss->ss.ss_ScanTupleSlot);
	fss->ss.ps.scandesc = desc;
	return fss;
}

/* Are ctid or tableoid asked for? */
static bool
has_system_columns(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varattno < 0;
	return expression_tree_walker(node, has_system_columns, context);
}

/* Is the target list the table's row as it is? */
static bool
is_whole_row(List *targetlist, Index varno, TupleDesc desc)
{
	int			i = 0;

	if (list_length(targetlist) != desc->natts)
		return false;
	foreach_node(TargetEntry, tle, targetlist)
	{
		Var		   *var = (Var *) tle->expr;
		Form_pg_attribute att = TupleDescAttr(desc, i++);

		if (!IsA(var, Var) || var->varno != varno || var->varattno != i || att->attisdropped ||
			var->vartype != att->atttypid ||
			(var->vartypmod != att->atttypmod && var->vartypmod != -1))
			return false;
	}
	return true;
}

static TupleTableSlot *
next_compiled(MotNode *node)
{
	MotScanNode *sn = (MotScanNode *) node;
	MotScan    *scan = sn->scan;
	ExprContext *econtext = node->econtext;
	MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	TupleTableSlot *slot = node->project != NULL ? node->project->pi_state.resultslot :
	sn->fss->ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	for (;;)
	{
		ResetExprContext(econtext);
		if (!MotScanNext(scan, econtext))
		{
			ExecClearTuple(sn->fss->ss.ss_ScanTupleSlot);
			slot = NULL;
			break;
		}
		if (MotRowProgramRun(sn->program, scan->version))
		{
			if (node->project != NULL)
				ExecStoreVirtualTuple(slot);
			else
				MotSlotShow(slot, scan->version);
			break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(oldcxt);
	return slot;
}

/*
 * The outputs of a scan without a filter, if they are nothing but columns that
 * lie at the same place in all rows without nulls.
 */
static MotPlain *
make_plain(List *targetlist, Index varno, TupleDesc desc)
{
	MotPlain   *plain = palloc(offsetof(MotPlain, columns) +
							   list_length(targetlist) * sizeof(MotPlainColumn));

	plain->ncolumns = plain->upto = 0;
	foreach_node(TargetEntry, tle, targetlist)
	{
		Var		   *var = (Var *) tle->expr;
		MotPlainColumn *column = &plain->columns[plain->ncolumns++];
		Form_pg_attribute att = NULL;
		size_t		off = 0;

		if (!IsA(var, Var) || var->varno != varno || var->varattno <= 0)
			return NULL;
		for (int i = 0; i < var->varattno; i++)
		{
			att = TupleDescAttr(desc, i);
			if (att->attlen <= 0 || att->attisdropped)
				return NULL;
			off = att_align_nominal(off, att->attalign);
			column->offset = off;
			off += att->attlen;
		}
		if (var->vartype != att->atttypid)
			return NULL;
		column->length = att->attlen;
		column->byval = att->attbyval;
		plain->upto = Max(plain->upto, var->varattno);
	}
	return plain;
}

/* The next row, its columns taken from where they lie. */
static TupleTableSlot *
next_plain(MotNode *node)
{
	MotScanNode *sn = (MotScanNode *) node;
	const MotPlain *plain = sn->plain;
	MotScan    *scan = sn->scan;
	ExprContext *econtext = node->econtext;
	TupleTableSlot *slot = sn->fss->ss.ss_ScanTupleSlot;
	TupleTableSlot *result = node->project->pi_state.resultslot;
	unsigned	host_bits;
	bool		found;

	MotContextReset(econtext->ecxt_per_tuple_memory);
	MotWithin(econtext->ecxt_per_tuple_memory, found = MotScanNext(scan, econtext));
	if (!TTS_EMPTY(slot))
		ExecClearTuple(slot);
	if (!found)
		return NULL;

	host_bits = mot_version_host_bits(scan->version);
	if (unlikely((host_bits & MOT_ROW_HAS_NULLS) != 0 ||
				 (host_bits & MOT_ROW_NATTS_MASK) < plain->upto))
	{
		MotSlotShow(slot, scan->version);
		econtext->ecxt_scantuple = slot;
		return ExecProject(node->project);
	}
	ExecClearTuple(result);
	for (int i = 0; i < plain->ncolumns; i++)
	{
		const MotPlainColumn *column = &plain->columns[i];

		result->tts_values[i] = fetch_att((const char *) mot_version_data(scan->version) + column->offset,
										  column->byval, column->length);
		result->tts_isnull[i] = false;
	}
	return ExecStoreVirtualTuple(result);
}

static TupleTableSlot *
next_of_scan(MotNode *node)
{
	MotScanNode *sn = (MotScanNode *) node;
	MotScan    *scan = sn->scan;
	ExprContext *econtext = node->econtext;
	TupleTableSlot *slot = sn->fss->ss.ss_ScanTupleSlot;

	/* whoever asks for rows, one after another, has this for all of them */
	CHECK_FOR_INTERRUPTS();
	if (sn->first)
	{
		sn->compiled = sn->program != NULL && sn->program->function != NULL &&
			MotRowProgramBegin(sn->program);

		/* a sub-select may have been evaluated before the next row */
		sn->first = sn->program != NULL && sn->program->waits;
	}
	if (sn->compiled)
		return next_compiled(node);
	if (sn->plain != NULL)
		return next_plain(node);

	MotContextReset(econtext->ecxt_per_tuple_memory);
	for (;;)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		bool		found = MotScanNext(scan, econtext);

		MemoryContextSwitchTo(oldcxt);
		if (!found)
		{
			ExecClearTuple(slot);
			return NULL;
		}
		MotSlotShow(slot, scan->version);
		if (unlikely(sn->needs_tid))
		{
			/* (CREATE TABLE AS puts its own table into the slot) */
			slot->tts_tableOid = sn->table->relid;
			MotStatementTid(sn->table, scan->row, scan->version, &slot->tts_tid);
		}
		econtext->ecxt_scantuple = slot;
		if (node->qual == NULL || ExecQual(node->qual, econtext))
			return node->project ? ExecProject(node->project) : slot;
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
	}
}

TupleTableSlot *
MotScanNodeAgain(MotScanNode *sn)
{
	MotNode    *node = &sn->node;
	ExprContext *econtext = node->econtext;
	TupleTableSlot *slot = sn->fss->ss.ss_ScanTupleSlot;

	MotSlotShow(slot, sn->scan->version);
	slot->tts_tableOid = sn->table->relid;
	MotStatementTid(sn->table, sn->scan->row, sn->scan->version, &slot->tts_tid);
	econtext->ecxt_scantuple = slot;
	if ((node->qual != NULL && !ExecQual(node->qual, econtext)) ||
		!ExecQual(MotScanRecheck(sn->scan), econtext))
		return NULL;
	return node->project ? ExecProject(node->project) : slot;
}

static void
restart_scan(MotNode *node)
{
	MotScanNode *sn = (MotScanNode *) node;

	sn->first = true;
	MotReScanForeignScan(sn->fss);
}

static MotNode *
build_scan(MotStatement *st, ForeignScan *plan)
{
	MotScanNode *sn = palloc0(sizeof(MotScanNode));
	MotNode    *node = &sn->node;
	ForeignScanState *fss;

	node->statement = st;
	node->is_scan = true;
	node->next = next_of_scan;
	node->restart = restart_scan;
	node->econtext = CreateExprContext(st->estate);
	sn->fss = fss = MotScanStateCreate(st, plan, node->econtext);
	sn->table = MotStatementTable(st, plan->scan.scanrelid);
	node->ps = &fss->ss.ps;
	sn->needs_tid = has_system_columns((Node *) plan->scan.plan.targetlist, NULL) ||
		has_system_columns((Node *) plan->scan.plan.qual, NULL);

	sn->targetlist = plan->scan.plan.targetlist;
	sn->quals = plan->scan.plan.qual;
	sn->scan = palloc0(sizeof(MotScan));
	fss->fdw_state = sn->scan;
	MotScanInit(sn->scan, fss);
	if (sn->scan->keys != NULL && sn->scan->u == NULL)
		MotKeysHold(sn->scan->keys, &st->executions);
	node->qual = ExecInitQual(plan->scan.plan.qual, node->ps);
	if (!is_whole_row(plan->scan.plan.targetlist, plan->scan.scanrelid, fss->ss.ps.scandesc))
		make_projection(node, (Plan *) plan);
	if (!sn->needs_tid && node->project != NULL && node->qual == NULL)
		sn->plain = make_plain(plan->scan.plan.targetlist, plan->scan.scanrelid, fss->ss.ps.scandesc);
	if (!sn->needs_tid && (node->project != NULL || node->qual != NULL))
	{
		TupleTableSlot *slot = node->project != NULL ? node->project->pi_state.resultslot : NULL;
		List	   *outputs = slot != NULL ? get_tlist_exprs(plan->scan.plan.targetlist, true) : NIL;

		sn->program = MotRowProgramMake(st, plan->scan.scanrelid, fss->ss.ps.scandesc,
										plan->scan.plan.qual, outputs, NIL,
										slot != NULL ? slot->tts_values : NULL,
										slot != NULL ? slot->tts_isnull : NULL, node->econtext);
	}
	st->scans = lappend(st->scans, sn);
	return node;
}

/* ------------------------------------------------------------------ joins */

static TupleTableSlot *
next_of_join(MotNode *node)
{
	JoinNode   *join = (JoinNode *) node;
	ExprContext *econtext = node->econtext;

	ResetExprContext(econtext);
	for (;;)
	{
		TupleTableSlot *inner;

		CHECK_FOR_INTERRUPTS();
		if (join->need_outer)
		{
			TupleTableSlot *outer = node->outer->next(node->outer);

			if (outer == NULL)
				return NULL;
			econtext->ecxt_outertuple = outer;
			join->need_outer = false;
			join->matched = false;
			foreach_ptr(NestLoopParam, param, join->params)
			{
				ParamExecData *prm = &econtext->ecxt_param_exec_vals[param->paramno];

				prm->value = slot_getattr(outer, param->paramval->varattno, &prm->isnull);
				if (unlikely(node->statement->hashed != NIL))
					MotParamChanged(node->statement, param->paramno);
			}
			node->inner->restart(node->inner);
		}

		inner = node->inner->next(node->inner);
		if (inner == NULL)
		{
			join->need_outer = true;
			if (!join->matched && (join->type == JOIN_LEFT || join->type == JOIN_ANTI))
			{
				econtext->ecxt_innertuple = join->null_inner;
				if (node->qual == NULL || ExecQual(node->qual, econtext))
					return ExecProject(node->project);
			}
			continue;
		}
		econtext->ecxt_innertuple = inner;
		if (join->joinqual == NULL || ExecQual(join->joinqual, econtext))
		{
			join->matched = true;
			if (join->type == JOIN_ANTI)
			{
				join->need_outer = true;
				continue;
			}
			if (join->single_match)
				join->need_outer = true;
			if (node->qual == NULL || ExecQual(node->qual, econtext))
				return ExecProject(node->project);
		}
		ResetExprContext(econtext);
	}
}

static void
restart_join(MotNode *node)
{
	((JoinNode *) node)->need_outer = true;
	((JoinNode *) node)->matched = false;
	node->outer->restart(node->outer);
}

static MotNode *
build_join(MotStatement *st, NestLoop *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(JoinNode), next_of_join, restart_join, outerPlan(plan));
	JoinNode   *join = (JoinNode *) node;

	node->inner = MotNodeBuild(st, innerPlan(plan));
	MotNodeContext(node, T_NestLoopState, sizeof(NestLoopState), (Plan *) plan);
	node->qual = ExecInitQual(plan->join.plan.qual, node->ps);
	make_projection(node, (Plan *) plan);
	join->type = plan->join.jointype;
	join->single_match = plan->join.inner_unique || plan->join.jointype == JOIN_SEMI;
	join->joinqual = ExecInitQual(plan->join.joinqual, node->ps);
	join->null_inner = MotMakeTupleTableSlot(ExecTypeFromTL(innerPlan(plan)->targetlist),
											 &TTSOpsVirtual);
	ExecStoreAllNullTuple(join->null_inner);
	join->params = plan->nestParams;
	return node;
}

/* ------------------------------------------------------------------ LIMIT */

static void
compute_limits(LimitNode *limit)
{
	ExprContext *econtext = limit->node.econtext;
	PlanState  *below = limit->node.outer->ps;
	bool		isnull;
	Datum		value;

	limit->offset = 0;
	limit->count = 0;
	limit->all = true;
	limit->position = 0;
	ResetExprContext(econtext);
	if (limit->offset_expr)
	{
		value = ExecEvalExprSwitchContext(limit->offset_expr, econtext, &isnull);
		if (!isnull)
		{
			limit->offset = DatumGetInt64(value);
			if (limit->offset < 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE),
						 errmsg("OFFSET must not be negative")));
		}
	}
	if (limit->count_expr)
	{
		value = ExecEvalExprSwitchContext(limit->count_expr, econtext, &isnull);
		if (!isnull)
		{
			limit->all = false;
			limit->count = DatumGetInt64(value);
			if (limit->count < 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
						 errmsg("LIMIT must not be negative")));
		}
	}
	limit->computed = true;
	if (below != NULL && IsA(below, SortState))
		ExecSetTupleBound(limit->all || limit->count > PG_INT64_MAX - limit->offset ? -1 :
						  limit->count + limit->offset, below);
}

static TupleTableSlot *
next_of_limit(MotNode *node)
{
	LimitNode  *limit = (LimitNode *) node;
	TupleTableSlot *slot;

	if (!limit->computed)
	{
		compute_limits(limit);
		if (!limit->all && limit->count == 0)
			return NULL;
		while (limit->position < limit->offset)
		{
			CHECK_FOR_INTERRUPTS();
			if (node->outer->next(node->outer) == NULL)
			{
				/* nothing more from below */
				limit->all = false;
				limit->count = 0;
				return NULL;
			}
			limit->position++;
		}
	}
	if (!limit->all && limit->position - limit->offset >= limit->count)
		return NULL;
	slot = node->outer->next(node->outer);
	if (slot == NULL)
	{
		limit->all = false;
		limit->count = 0;
		return NULL;
	}
	limit->position++;
	return slot;
}

static void
restart_limit(MotNode *node)
{
	((LimitNode *) node)->computed = false;
	node->outer->restart(node->outer);
}

static MotNode *
build_limit(MotStatement *st, Limit *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(LimitNode), next_of_limit, restart_limit, outerPlan(plan));
	LimitNode  *limit = (LimitNode *) node;

	MotNodeContext(node, T_LimitState, sizeof(LimitState), (Plan *) plan);
	limit->offset_expr = ExecInitExpr((Expr *) plan->limitOffset, node->ps);
	limit->count_expr = ExecInitExpr((Expr *) plan->limitCount, node->ps);
	return node;
}

/* ------------------------------------------------------- queries in FROM */

static TupleTableSlot *
next_of_subquery(MotNode *node)
{
	ExprContext *econtext = node->econtext;
	TupleTableSlot *slot;

	while ((slot = node->outer->next(node->outer)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (node->qual == NULL || ExecQual(node->qual, econtext))
			return ExecProject(node->project);
	}
	return NULL;
}

static MotNode *
build_subquery(MotStatement *st, SubqueryScan *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(MotNode), next_of_subquery, MotNodeRestart, plan->subplan);

	MotNodeContext(node, T_SubqueryScanState, sizeof(SubqueryScanState), (Plan *) plan);
	node->ps->scandesc = ExecTypeFromTL(plan->subplan->targetlist);
	node->qual = ExecInitQual(plan->scan.plan.qual, node->ps);
	make_projection(node, (Plan *) plan);
	return node;
}
