/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows of scans.
 *
 * A sequential scan of an ordinary table, or of a foreign one, that is taken over hands out the
 * same rows in the same order as its own function; but a row is looked at where
 * it lies, by machine code for the conditions if there are many rows
 * (mot.jit_above_scanned), and is shown without its tuple id unless somebody asks for that.
 * Where the scan has come to is the server's node's own, so each row may be asked of either.
 *
 * An aggregate right above such a scan takes versions from here itself, and has its own
 * code for them (compile.c).  Scans whose rows are counted (EXPLAIN ANALYZE)
 * are left to be nodes then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "batch/batch.h"
#include "fdw/fdw.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "relation/relation.h"
#include "relation/slot.h"
#include "statement/statement.h"
#include "table/table.h"
#include "utils/rel.h"

struct MotRows
{
	ScanState  *ss;
	bool		foreign;
	bool		tid;			/* somebody may ask for it */
	MotRowFunction function;	/* conditions, or NULL: by the server's
								 * expressions, if any */
	MotRowContext context;
	const char *why_not;
	int			waits;			/* rows to come before there is code */
};

/* Whoever takes a row or two only, as a join may before it has code of its own, needs none. */
#define ROWS_BEFORE 50

static bool
is_ours(const PlanState *ps)
{
	return IsA(ps, SeqScanState) &&
		MotIsOrdinaryTable(RelationGetRelid(((const ScanState *) ps)->ss_currentRelation)) &&
		((const ScanState *) ps)->ss_ScanTupleSlot->tts_ops == &MotSlotOps;
}

/* Is it a scan whose versions are all that its node above asks for? */
bool
MotRowsCan(const PlanState *ps)
{
	ListCell   *lc;

	if (!is_ours(ps) || ps->ps_ProjInfo != NULL || ps->instrument != NULL || MotHasParameters((Node *) ps->plan->qual))
		return false;
	foreach(lc, ps->plan->targetlist)
	{
		if (!IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return false;
	}
	return true;
}

/* In the query's memory. */
MotRows *
MotRowsMake(PlanState *ps)
{
	MotRows    *rows = palloc0(sizeof(MotRows));

	rows->ss = (ScanState *) ps;
	return rows;
}

/* Before the first row of an execution: as ExecProcNode and SeqNext do it. */
void
MotRowsStart(MotRows *rows)
{
	ScanState  *ss = rows->ss;

	if (ss->ps.chgParam != NULL)
		ExecReScan(&ss->ps);
	if (ss->ss_currentScanDesc == NULL)
		ss->ss_currentScanDesc = MotTableBeginScan(ss->ss_currentRelation, ss->ps.state->es_snapshot);
}

/* NULL: there are no more. */
const mot_version *
MotRowsNext(MotRows *rows)
{
	return MotScanVersion(rows->ss->ss_currentScanDesc, rows->ss->ss_ScanTupleSlot);
}

TupleTableSlot *
MotRowsShow(MotRows *rows, const mot_version *version)
{
	MotSlotShow(rows->ss->ss_ScanTupleSlot, version);
	return rows->ss->ss_ScanTupleSlot;
}

/* ------------------------------------------------------------------- nodes */

const char *
MotRowsWhyNot(const PlanState *ps)
{
	if (ps->plan->plan_rows < MOT_BATCH_MIN_ROWS &&
		((const ScanState *) ps)->ss_currentRelation->rd_rel->reltuples < MOT_BATCH_MIN_ROWS)
		return "few rows are expected";
	return NULL;
}

/* Is it one that can be taken over? */
bool
MotRowsAreOurs(const PlanState *ps)
{
	const ForeignScanState *foreign;

	if (!IsA(ps, ForeignScanState))
		return is_ours(ps);
	foreign = (const ForeignScanState *) ps;
	return foreign->fdwroutine->IterateForeignScan == MotIterateForeignScan &&
		((const ForeignScan *) ps->plan)->operation == CMD_SELECT &&
		((const Scan *) ps->plan)->scanrelid > 0;
}

static bool
has_system_columns(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varattno <= 0;
	return expression_tree_walker(node, has_system_columns, context);
}

/*
 * Why conditions have no machine code, if that is known beforehand; "now" they are to be evaluated.
 */
static const char *
code_why_not(const PlanState *ps, bool now)
{
	double		rows = ((const ScanState *) ps)->ss_currentRelation->rd_rel->reltuples;

	if (ps->plan->qual == NIL)
		return "there are no conditions";
	if (MotHasParameters((Node *) ps->plan->qual))
		return "its conditions have parameters";
	return now ? MotCodeWhyNotNow(rows) : MotCodeWhyNot(rows);
}

static MotRows *
make_node(PlanState *ps, bool hidden)
{
	MotRows    *rows = MotRowsMake(ps);

	rows->foreign = IsA(ps, ForeignScanState);
	rows->tid = !hidden || has_system_columns((Node *) ps->plan->targetlist, NULL) ||
		has_system_columns((Node *) ps->plan->qual, NULL);
	rows->why_not = code_why_not(ps, true);
	if (rows->why_not == NULL)
		rows->waits = ROWS_BEFORE;
	return rows;
}

static void
compile(MotRows *rows)
{
	PlanState  *ps = &rows->ss->ps;
	MemoryContext oldcxt = MemoryContextSwitchTo(ps->state->es_query_cxt);
	MotRowRequest request = {0};
	MotRowCode *code;

	request.desc = RelationGetDescr(rows->ss->ss_currentRelation);
	request.varno = ((Scan *) ps->plan)->scanrelid;
	request.quals = ps->plan->qual;
	code = MotRowCodeMake(&request, CurrentMemoryContext, &rows->why_not);
	if (code != NULL)
	{
		rows->function = code->function;
		rows->context.private = code->private;
	}
	MemoryContextSwitchTo(oldcxt);
}

/* The next version, or NULL. */
static inline const mot_version *
next_version(MotRows *rows, TupleTableSlot *slot)
{
	ScanState  *ss = rows->ss;

	if (rows->foreign)
	{
		MotScan    *scan = (MotScan *) ((ForeignScanState *) ss)->fdw_state;
		MemoryContext oldcxt = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);
		bool		found = MotScanNext(scan, ss->ps.ps_ExprContext);

		MemoryContextSwitchTo(oldcxt);
		return found ? scan->version : NULL;
	}
	return MotScanVersion(ss->ss_currentScanDesc, slot);
}

static inline void
show(MotRows *rows, TupleTableSlot *slot, const mot_version *version)
{
	if (likely(!rows->tid))
	{
		MotSlotShow(slot, version);
		slot->tts_tableOid = RelationGetRelid(rows->ss->ss_currentRelation);
	}
	else if (rows->foreign)
		(void) MotScanShow((MotScan *) ((ForeignScanState *) rows->ss)->fdw_state);
	else
		MotScanShowRow(rows->ss->ss_currentScanDesc, slot);
}

/* A scan node's function: as ExecScan, forwards. */
TupleTableSlot *
MotRowsScan(PlanState *ps)
{
	MotTakenNode *taken = MotTakenFind(ps);
	MotRows    *rows = taken->rows;
	ScanState  *ss = (ScanState *) ps;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	ExprContext *econtext = ps->ps_ExprContext;
	const mot_version *version;

	if (!ScanDirectionIsForward(ps->state->es_direction))
		return taken->below(ps);
	if (unlikely(rows == NULL))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(ps->state->es_query_cxt);

		rows = taken->rows = make_node(ps, taken->hidden);
		MemoryContextSwitchTo(oldcxt);
	}
	if (rows->foreign && ((MotScan *) ((ForeignScanState *) ss)->fdw_state)->writer != NULL)
		return taken->below(ps);
	if (unlikely(!rows->foreign && ss->ss_currentScanDesc == NULL))
		MotRowsStart(rows);

	ResetExprContext(econtext);
	while ((version = next_version(rows, slot)) != NULL)
	{
		bool		passes = true;

		/* for each row, as ExecScan does it: whoever takes them may not */
		CHECK_FOR_INTERRUPTS();
		if (unlikely(rows->waits > 0) && --rows->waits == 0)
			compile(rows);
		if (rows->function != NULL)
		{
			MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

			passes = rows->function((const char *) mot_version_data(version), mot_version_host_bits(version),
									&rows->context);
			MemoryContextSwitchTo(oldcxt);
		}
		if (passes)
		{
			show(rows, slot, version);
			econtext->ecxt_scantuple = slot;
			if (rows->function == NULL && ps->qual != NULL)
				passes = ExecQual(ps->qual, econtext);
			if (passes)
				return ps->ps_ProjInfo != NULL ? ExecProject(ps->ps_ProjInfo) : slot;
		}
		InstrCountFiltered1(ps, 1);
		ResetExprContext(econtext);
	}
	ExecClearTuple(slot);
	return ps->ps_ProjInfo != NULL ? ExecClearTuple(ps->ps_ProjInfo->pi_state.resultslot) : slot;
}

/* What EXPLAIN says of a node that is ours: "rows" is NULL if it has not been run. */
const char *
MotRowsCodeWhyNot(const PlanState *ps, const MotRows *rows)
{
	if (rows != NULL && rows->waits > 0)
		return "few rows so far";
	return rows != NULL ? rows->why_not : code_why_not(ps, false);
}
