/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  SELECT ... FOR UPDATE, FOR SHARE and their like.
 *
 * The executor's LockRows fetches each row again by its ctid.  If rows come
 * straight from a scan, the one to be locked has just been found by it.  If
 * somebody has committed a newer version meanwhile, that is what counts at READ
 * COMMITTED: it has to satisfy everything, and is what is handed out.
 *
 * Rows of a join, or sorted ones, have the ctids of all their tables' rows.
 * Newer versions are left to recheck.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "statement/statement.h"

/* a table that is locked */
typedef struct LockedTable
{
	MotTable   *table;
	MotWriter  *writer;
	mot_row_mode mode;
	MotLockWait wait;

	/* of a join */
	ExecAuxRowMark *mark;
	mot_row    *row;
	const mot_version *version;
} LockedTable;

typedef struct LockNode
{
	MotNode		node;
	int			ntables;
	LockedTable *tables;
	MotScanNode *scan;			/* right below; or NULL */
	MotRecheck *recheck;		/* otherwise */
} LockNode;

/* ------------------------------------------------------------- of a scan */

static TupleTableSlot *
next_of_scan_lock(MotNode *node)
{
	LockNode   *lock = (LockNode *) node;
	LockedTable *table = lock->tables;
	MotScan    *scan = lock->scan->scan;
	TupleTableSlot *slot;

	while ((slot = node->outer->next(node->outer)) != NULL)
	{
		const mot_version *newest;
		MotLockResult result;

		CHECK_FOR_INTERRUPTS();
		result = MotWriterLock(table->writer, scan->row, scan->version, table->mode, table->wait, &newest);
		if (result == MOT_LOCKED)
			return slot;
		if (result != MOT_LOCKED_NEWER)
			continue;
		scan->version = newest;
		slot = MotScanNodeAgain(lock->scan);
		if (slot != NULL)
			return slot;
	}
	return NULL;
}

/* ------------------------------------------------------------- of a join */

/* One table's row of the plan's row; false: that is skipped. */
static bool
lock_row(MotStatement *st, LockedTable *table, TupleTableSlot *slot, bool *changed)
{
	ExecRowMark *erm = table->mark->rowmark;
	mot_session *session = MotSession();
	const mot_version *newest;
	MotLockResult result;
	unsigned	changes;
	bool		isnull;
	Datum		tid = slot_getattr(slot, table->mark->ctidAttNo, &isnull);

	if (isnull)
		elog(ERROR, "ctid is NULL");
	erm->ermActive = true;
	table->row = MotTidToVersion(session, table->table->mr->table, (ItemPointer) DatumGetPointer(tid), &changes);
	if (table->row == NULL)
		return false;
	table->version = mot_row_visible(session, &st->view, table->table->mr->table, table->row);
	if (table->version == NULL)
		return false;
	result = MotWriterLock(table->writer, table->row, table->version, table->mode, table->wait, &newest);
	if (result == MOT_LOCKED_NEWER)
	{
		table->version = newest;
		*changed = true;
	}
	else if (result != MOT_LOCKED)
		return false;

	/* for WHERE CURRENT OF */
	MotStatementTid(table->table, table->row, table->version, &erm->curCtid);
	return true;
}

static TupleTableSlot *
next_of_join_lock(MotNode *node)
{
	LockNode   *lock = (LockNode *) node;

	for (;;)
	{
		TupleTableSlot *slot = node->outer->next(node->outer);
		bool		changed = false;
		int			i;

		if (slot == NULL)
			return NULL;
		CHECK_FOR_INTERRUPTS();
		for (i = 0; i < lock->ntables; i++)
			if (!lock_row(node->statement, &lock->tables[i], slot, &changed))
				break;
		if (i < lock->ntables)
			continue;
		if (!changed)
			return slot;

		for (i = 0; i < lock->ntables; i++)
		{
			LockedTable *table = &lock->tables[i];

			MotRecheckPut(lock->recheck, table->table, table->row, table->version);
		}
		slot = MotRecheckRow(lock->recheck, slot);
		if (slot != NULL)
			return slot;
	}
}

/* ----------------------------------------------------------------- shared */

void
MotLockStart(MotStatement *st)
{
	LockNode   *lock = (LockNode *) st->lock;

	for (int i = 0; i < lock->ntables; i++)
		MotWriterStart(lock->tables[i].writer, lock->tables[i].table->rel, &st->view,
					   st->estate->es_output_cid);
	if (lock->recheck != NULL)
		MotRecheckStart(lock->recheck);
}

void
MotLockRest(MotStatement *st)
{
	LockNode   *lock = (LockNode *) st->lock;

	for (int i = 0; i < lock->ntables; i++)
		MotWriterRest(lock->tables[i].writer);
	if (lock->recheck != NULL)
		MotRecheckRest(lock->recheck);
}

static void
build_table(MotStatement *st, LockedTable *table, Index rti, RowMarkType type, LockWaitPolicy wait)
{
	table->table = MotStatementTable(st, rti);
	table->writer = MotWriterBegin(table->table->rel, st->estate->es_snapshot, 0);
	table->mode = MotRowMarkMode(type);
	table->wait = MotLockWaitOf(wait);
}

/* Are the rows those of one scan, right below? */
bool
MotLocksScan(const LockRows *plan)
{
	return IsA(outerPlan(plan), ForeignScan) && list_length(plan->rowMarks) == 1 &&
		RowMarkRequiresRowShareLock(linitial_node(PlanRowMark, plan->rowMarks)->markType) &&
		linitial_node(PlanRowMark, plan->rowMarks)->rti ==
		((ForeignScan *) outerPlan(plan))->scan.scanrelid;
}

MotNode *
MotLockBuild(MotStatement *st, LockRows *plan)
{
	MotNode    *node = MotNodeMake(st, sizeof(LockNode), next_of_join_lock, MotNodeRestart, outerPlan(plan));
	LockNode   *lock = (LockNode *) node;
	List	   *marks = NIL;

	lock->tables = palloc0(list_length(plan->rowMarks) * sizeof(LockedTable));
	if (MotLocksScan(plan))
	{
		PlanRowMark *mark = linitial_node(PlanRowMark, plan->rowMarks);

		node->next = next_of_scan_lock;
		lock->scan = (MotScanNode *) node->outer;
		build_table(st, &lock->tables[lock->ntables++], mark->rti, mark->markType, mark->waitPolicy);
	}
	else
	{
		lock->recheck = MotRecheckMake(st, plan->rowMarks, plan->epqParam, &marks);
		foreach_ptr(ExecAuxRowMark, aux, marks)
		{
			lock->tables[lock->ntables].mark = aux;
			build_table(st, &lock->tables[lock->ntables++], aux->rowmark->rti, aux->rowmark->markType,
						aux->rowmark->waitPolicy);
		}
	}
	st->lock = node;
	return node;
}
