/*-------------------------------------------------------------------------
 *
 * rewrite.c
 *	  What ALTER TABLE's third phase does for heap tables: walk the rows,
 *	  check them, and store them anew where a column's form or value changed.
 *
 * The rows are the newest ones, whatever snapshot the transaction has: the
 * lock that it holds came later than that.  And looking at them is no reading
 * of the transaction's, to be validated at SERIALIZABLE, unless it reads what has
 * been stored and takes it back (MotStorageRewritten).
 *
 * Afterwards they are this transaction's own: it sees them all, and who has an
 * older snapshot none, as after those of heap's commands that store rows anew.
 *
 * They are put aside in a tuplestore, the table is emptied and loaded
 * again, and its indexes are built when all rows are there, from sorted keys
 * as by CREATE INDEX.  All of that is undone with the transaction, since the storage is.
 * The catalogue describes the rows as they will be, so functions called
 * meanwhile must not look at them.
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "access/xact.h"
#include "compat/generated.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "relation/relation.h"
#include "utils/tuplestore.h"
#include "xact/xact.h"

/* what a domain asks for, in the server's words */
static void
check_domain(Relation rel, TupleTableSlot *slot, const MotRowCheck *check, ExprContext *econtext)
{
	int			i = check->domain - 1;
	const char *column = NameStr(TupleDescAttr(RelationGetDescr(rel), i)->attname);

	econtext->domainValue_datum = slot->tts_values[i];
	econtext->domainValue_isNull = slot->tts_isnull[i];
	if (check->expr == NULL && slot->tts_isnull[i])
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("column \"%s\" of table \"%s\" contains null values",
						column, RelationGetRelationName(rel)),
				 errtablecol(rel, check->domain)));
	if (!ExecCheck(check->state, econtext))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("column \"%s\" of table \"%s\" contains values that violate the new constraint",
						column, RelationGetRelationName(rel)),
				 errtablecol(rel, check->domain)));
}

static void
check_row(Relation rel, TupleTableSlot *slot, Bitmapset *notnull, List *checks,
		  ExprContext *econtext)
{
	int			attnum = -1;

	while ((attnum = bms_next_member(notnull, attnum)) >= 0)
	{
		if (slot->tts_isnull[attnum - 1])
			MotRaiseNulls(rel, attnum);
	}

	econtext->ecxt_scantuple = slot;
	foreach_ptr(MotRowCheck, check, checks)
	{
		if (check->domain)
			check_domain(rel, slot, check, econtext);
		else if (ExecCheck(check->state, econtext))
			continue;
		else if (check->notnull)
			MotRaiseNulls(rel, check->notnull);
		else if (check->name)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("check constraint \"%s\" of relation \"%s\" is violated by some row",
							check->name, RelationGetRelationName(rel)),
					 errtableconstraint(rel, check->name)));
		else
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 check->default_partition ?
					 errmsg("updated partition constraint for default partition \"%s\" would be violated by some row",
							check->default_partition) :
					 errmsg("partition constraint of relation \"%s\" is violated by some row",
							RelationGetRelationName(rel)),
					 errtable(rel)));
	}
}

static void
eval_values(List *values, bool generated, TupleTableSlot *from, TupleTableSlot *to,
			ExprContext *econtext)
{
	econtext->ecxt_scantuple = from;
	foreach_ptr(MotNewValue, value, values)
	{
		if (value->generated == generated)
			to->tts_values[value->attnum - 1] =
				ExecEvalExpr(value->state, econtext, &to->tts_isnull[value->attnum - 1]);
	}
}

/* rows have nothing for virtual columns, so NOT NULL of these is a condition like any other */
static List *
virtual_notnull(TupleDesc desc, Bitmapset **notnull)
{
	List	   *checks = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		MotRowCheck *check;
		NullTest   *test;

		if (!MotIsVirtualColumn(att) || !bms_is_member(att->attnum, *notnull))
			continue;
		*notnull = bms_del_member(*notnull, att->attnum);
		test = makeNode(NullTest);
		test->arg = (Expr *) makeVar(1, att->attnum, att->atttypid, att->atttypmod,
									 att->attcollation, 0);
		test->nulltesttype = IS_NOT_NULL;
		test->location = -1;
		check = palloc0(sizeof(MotRowCheck));
		check->notnull = att->attnum;
		check->expr = (Expr *) test;
		checks = lappend(checks, check);
	}
	return checks;
}

void
MotRewriteRows(Relation rel, TupleDesc old, List *values, bool refuse_older, Bitmapset *notnull,
			   List *checks)
{
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	TupleTableSlot *oldslot = MakeSingleTupleTableSlot(old, &TTSOpsVirtual);
	TupleTableSlot *newslot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	Tuplestorestate *store = NULL;
	mot_table  *table = MotRelationGet(rel)->table;
	mot_view	view;
	mot_build	walk;
	mot_row    *row;
	const mot_version *version;
	Oid			rewriting = InvalidOid;

	foreach_ptr(MotNewValue, value, values)
	{
		value->state = ExecInitExpr(value->expr, NULL);
	}
	checks = list_concat(virtual_notnull(desc, &notnull), checks);
	foreach_ptr(MotRowCheck, check, checks)
	{
		check->state = ExecPrepareExpr((Expr *) MotExpandVirtualColumns((Node *) check->expr, rel),
									   estate);
	}
	if (values != NIL)
		store = tuplestore_begin_heap(false, false, maintenance_work_mem);

	view = MotLooseView();
	mot_build_rows(MotSession(), &walk, table, &view);
	if (values != NIL)
		rewriting = MotRelationRewriting(RelationGetRelid(rel));
	PG_TRY();
	{
		while (mot_build_next(&walk, &row, &version))
		{
			MemoryContext oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));

			CHECK_FOR_INTERRUPTS();
			ExecClearTuple(oldslot);
			MotRowDeform(old, version, old->natts, oldslot->tts_values, oldslot->tts_isnull);
			oldslot->tts_tableOid = RelationGetRelid(rel);
			ExecStoreVirtualTuple(oldslot);

			ExecClearTuple(newslot);
			memcpy(newslot->tts_values, oldslot->tts_values, old->natts * sizeof(Datum));
			memcpy(newslot->tts_isnull, oldslot->tts_isnull, old->natts * sizeof(bool));
			for (int i = 0; i < desc->natts; i++)
			{
				if (i >= old->natts || TupleDescAttr(desc, i)->attisdropped)
				{
					newslot->tts_values[i] = (Datum) 0;
					newslot->tts_isnull[i] = true;
				}
			}
			newslot->tts_tableOid = RelationGetRelid(rel);
			eval_values(values, false, oldslot, newslot, econtext);
			ExecStoreVirtualTuple(newslot);
			eval_values(values, true, newslot, newslot, econtext);

			check_row(rel, newslot, notnull, checks, econtext);
			if (store)
				tuplestore_puttupleslot(store, newslot);

			MemoryContextSwitchTo(oldcxt);
			ResetExprContext(econtext);
		}
	}
	PG_FINALLY();
	{
		if (values != NIL)
			(void) MotRelationRewriting(rewriting);
	}
	PG_END_TRY();
	MotLooseViewRelease();

	ExecDropSingleTupleTableSlot(oldslot);
	ExecDropSingleTupleTableSlot(newslot);
	FreeExecutorState(estate);

	if (store)
	{
		MotStorageTruncate(rel);
		MotStorageRewritten(RelationGetRelid(rel), table, refuse_older);
		CommandCounterIncrement();
		MotBatchLoad(rel, store, desc);
		MotStorageFillIndexes(rel);
		tuplestore_end(store);
	}
}
