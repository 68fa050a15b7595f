/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  What can be seen of statements: mot_stat_jit, and a line in EXPLAIN
 *	  (VERBOSE).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/explain.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "statement/remember.h"
#include "statement/statement.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mot_stat_get_jit);
PG_FUNCTION_INFO_V1(mot_jit_dump);
PGDLLEXPORT Datum mot_stat_get_jit(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum mot_jit_dump(PG_FUNCTION_ARGS);

#define JIT_COLUMNS 12

/* A plan tree's nodes, the outermost first. */
static const char *
name_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
			return "aggregate";
		case T_Limit:
			return "limit";
		case T_LockRows:
			return "lock";
		case T_Sort:
			return "sort";
		case T_Unique:
			return "distinct";
		case T_Result:
			return "result";
		case T_Material:
			return "keep";
		case T_ValuesScan:
			return "values";
		case T_ModifyTable:
			return ((const ModifyTable *) plan)->operation == CMD_INSERT ? "insert" :
				((const ModifyTable *) plan)->operation == CMD_UPDATE ? "update" : "delete";
		default:
			return "?";
	}
}

static void
add_tree(StringInfo buf, const Plan *plan, const PlannedStmt *stmt)
{
	if (plan == NULL)
		return;
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			{
				const ForeignScan *scan = (const ForeignScan *) plan;
				Oid			indexoid = (Oid) list_nth_int(scan->fdw_private, MOT_PLAN_INDEX);
				char	   *name = get_rel_name(rt_fetch(scan->scan.scanrelid, stmt->rtable)->relid);
				char	   *index = OidIsValid(indexoid) ? get_rel_name(indexoid) : NULL;

				appendStringInfo(buf, "scan %s", name ? name : "?");
				if (index != NULL)
					appendStringInfo(buf, " by %s", index);
				return;
			}
		case T_NestLoop:
			appendStringInfoString(buf, "join (");
			add_tree(buf, outerPlan(plan), stmt);
			appendStringInfoString(buf, ", ");
			add_tree(buf, innerPlan(plan), stmt);
			appendStringInfoChar(buf, ')');
			return;
		case T_Memoize:
			add_tree(buf, outerPlan(plan), stmt);
			return;
		case T_SubqueryScan:
			appendStringInfoString(buf, "query, ");
			add_tree(buf, ((const SubqueryScan *) plan)->subplan, stmt);
			return;
		default:
			appendStringInfoString(buf, name_of(plan));
			break;
	}
	if (outerPlan(plan) != NULL)
	{
		appendStringInfoString(buf, ", ");
		add_tree(buf, outerPlan(plan), stmt);
	}
}

static void
add_shape(StringInfo buf, const PlannedStmt *stmt)
{
	add_tree(buf, stmt->planTree, stmt);
	foreach_ptr(Plan, subplan, stmt->subplans)
	{
		if (subplan == NULL)
			continue;
		appendStringInfoString(buf, "; sub-select: ");
		add_tree(buf, subplan, stmt);
	}
}

static void
put_statement(MotStatement *st, void *arg)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) arg;
	Datum		values[JIT_COLUMNS] = {0};
	bool		nulls[JIT_COLUMNS] = {0};
	StringInfoData shape;

	/*
	 * not looked at so far (but one that fails each time has lost its program
	 * and is shown)
	 */
	if (st->text == NULL && st->why_not == NULL)
		return;

	values[0] = Int64GetDatum((int64) st->query_id);
	nulls[0] = st->query_id == 0;
	nulls[1] = st->text == NULL;
	if (st->text !=NULL)
		values[1] = CStringGetTextDatum(st->text);
	values[2] = Int32GetDatum(MotStatementTier(st));
	initStringInfo(&shape);
	if (st->state != MOT_STATEMENT_UNFIT)
		add_shape(&shape, st->run);
	nulls[3] = shape.len == 0;
	values[3] = CStringGetTextDatum(shape.data);
	values[4] = Int64GetDatum((int64) st->executions);
	values[5] = Float8GetDatum(st->build_ms);
	values[6] = Float8GetDatum(st->compile_ms);
	values[7] = Int64GetDatum((int64) st->code_bytes);
	values[8] = Int64GetDatum(st->cxt != NULL ? (int64) MemoryContextMemAllocated(st->cxt, true) : 0);
	nulls[9] = st->why_not == NULL;
	if (st->why_not != NULL)
		values[9] = CStringGetTextDatum(st->why_not);
	nulls[10] = st->why_not_compiled == NULL;
	if (st->why_not_compiled != NULL)
		values[10] = CStringGetTextDatum(st->why_not_compiled);
	values[11] = Int64GetDatum((int64) MotRememberedUses(st->plan));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* This session's statements. */
Datum
mot_stat_get_jit(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	MotStatementEach(put_statement, fcinfo->resultinfo);
	return (Datum) 0;
}

typedef struct Dump
{
	const char *part;
	StringInfoData text;
} Dump;

static void
dump_statement(MotStatement *st, void *arg)
{
	Dump	   *dump = (Dump *) arg;
	char	   *text;

	if (st->text == NULL || strstr(st->text, dump->part) == NULL ||
		(text = MotStatementDump(st)) == NULL)
		return;
	appendStringInfoString(&dump->text, text);
}

/*
 * For those who develop it: the intermediate representation of what is
 * compiled of this session's statements whose text has a part; null if that
 * is nothing.
 */
Datum
mot_jit_dump(PG_FUNCTION_ARGS)
{
	Dump		dump;

	dump.part = text_to_cstring(PG_GETARG_TEXT_PP(0));
	initStringInfo(&dump.text);
	MotStatementEach(dump_statement, &dump);
	if (dump.text.len == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text_with_len(dump.text.data, dump.text.len));
}

/* For EXPLAIN: how the statement would be run when it is executed often. */
static const char *
explain_statement(const PlannedStmt *stmt)
{
	const char *why_not = MotStatementsWhyNot();

	stmt = MotPlanTranslate(stmt);
	if (why_not == NULL)
		why_not = MotWhyNot(stmt, NULL);
	if (why_not == NULL && IsA(stmt->planTree, ModifyTable))
	{
		const ModifyTable *plan = (const ModifyTable *) stmt->planTree;
		Relation	rel = RelationIdGetRelation(rt_fetch(linitial_int(plan->resultRelations),
														 stmt->rtable)->relid);

		why_not = MotTargetWhyNot(rel, plan);
		RelationClose(rel);
	}
	return why_not == NULL ? "without the executor" : psprintf("by the executor (%s)", why_not);
}

/* (of foreign tables the wrapper says it, at its nodes) */
static const char *
explain_plan(const PlannedStmt *stmt)
{
	return MotEngine != NULL && MotPlanIsOurs(stmt, true) ? explain_statement(stmt) : NULL;
}

void
MotStatementStatInit(void)
{
	MotExplainStatement = explain_statement;
	MotExplainPlan = explain_plan;
}
