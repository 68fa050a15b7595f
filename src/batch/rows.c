/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows of a sequential scan, by machine code.
 *
 * An aggregate right above the scan of a large ordinary table gets its rows from here
 * instead of from the scan's node: a row program (statement/jit.h) looks at a version where it lies, says
 * whether it passes the scan's conditions, and loads the columns that keys and
 * arguments use.  The scan's slot shows the version all the same, for
 * expressions and for what is kept of a group's first row.  The scan is the
 * server's node's own, so that can go on with the next row at any time.
 *
 * Code is made for one execution, and has to pay: there must be conditions (columns
 * alone are found as fast without it), and more rows than
 * mot.jit_above_scanned.  Scans whose rows are counted
 * (EXPLAIN ANALYZE) are left to their nodes, as are conditions with parameters
 * or sub-selects.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "batch/batch.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "relation/relation.h"
#include "relation/slot.h"
#include "statement/statement.h"
#include "table/table.h"
#include "utils/rel.h"

int			mot_jit_above_scanned = 1000000;

/* what a program does not have, or cannot have for good */
static bool
has_parameters(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	return expression_tree_walker(node, has_parameters, context);
}

/*
 * The rows of "ps", if they are to be had by machine code: or NULL.  "columns" are those of its
 * output that are looked at, from 0; position[] says where each of them will be.
 * In the query's memory.
 */
MotRows *
MotRowsMake(PlanState *ps, const Bitmapset *columns, int *position)
{
	SeqScanState *node = (SeqScanState *) ps;
	Relation	rel;
	Scan	   *plan;
	MotRowRequest request = {0};
	const char *why_not;
	MotRowCode *code;
	MotRows    *rows;
	int			column = -1;
	int			n = 0;

	if (mot_jit_above_scanned < 0 || !IsA(ps, SeqScanState) || ps->plan->qual == NIL ||
		ps->ps_ProjInfo != NULL || ps->instrument != NULL)
		return NULL;
	rel = node->ss.ss_currentRelation;
	plan = (Scan *) ps->plan;
	if (!MotIsOrdinaryTable(RelationGetRelid(rel)) || rel->rd_rel->reltuples < mot_jit_above_scanned ||
		node->ss.ss_ScanTupleSlot->tts_ops != &MotSlotOps || has_parameters((Node *) plan->plan.qual, NULL))
		return NULL;

	while ((column = bms_next_member(columns, column)) >= 0)
	{
		TargetEntry *output = list_nth_node(TargetEntry, plan->plan.targetlist, column);

		if (!IsA(output->expr, Var))
			return NULL;
		request.outputs = lappend(request.outputs, output->expr);
		position[column] = n++;
	}
	request.desc = RelationGetDescr(rel);
	request.varno = plan->scanrelid;
	request.quals = plan->plan.qual;
	code = MotRowCodeMake(&request, ps->state->es_query_cxt, &why_not);
	if (code == NULL)
		return NULL;

	rows = palloc0(sizeof(MotRows));
	rows->node = node;
	rows->values = palloc0(Max(1, n) * sizeof(Datum));
	rows->nulls = palloc0(Max(1, n) * sizeof(bool));
	rows->function = code->function;
	rows->context.values = rows->values;
	rows->context.isnull = rows->nulls;
	rows->context.private = code->private;
	return rows;
}

/* Before the first row of an execution: as ExecProcNode and SeqNext do it. */
void
MotRowsStart(MotRows *rows)
{
	ScanState  *ss = &rows->node->ss;

	if (ss->ps.chgParam != NULL)
		ExecReScan(&ss->ps);
	if (ss->ss_currentScanDesc == NULL)
		ss->ss_currentScanDesc = table_beginscan(ss->ss_currentRelation, ss->ps.state->es_snapshot, 0, NULL);
}

/* The next row that passes, or NULL; what is computed for it is in "memory". */
TupleTableSlot *
MotRowsNext(MotRows *rows, ExprContext *memory)
{
	TableScanDesc scan = rows->node->ss.ss_currentScanDesc;
	TupleTableSlot *slot = rows->node->ss.ss_ScanTupleSlot;
	MemoryContext oldcxt = MemoryContextSwitchTo(memory->ecxt_per_tuple_memory);
	const mot_version *version;

	while ((version = MotScanVersion(scan, slot)) != NULL)
	{
		if (rows->function((const char *) mot_version_data(version), mot_version_host_bits(version),
						   &rows->context))
			break;
		ResetExprContext(memory);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(oldcxt);
	if (version == NULL)
		return NULL;
	MotSlotShow(slot, version);
	return slot;
}
