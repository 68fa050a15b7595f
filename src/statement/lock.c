/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  SELECT ... FOR UPDATE, FOR SHARE and their like, of one table's rows.
 *
 * The executor's LockRows fetches each row again by its ctid.  Ours has just
 * been found by the scan below, which still has it.  If somebody has committed
 * a newer version meanwhile, that is what counts at READ COMMITTED: it has to
 * satisfy everything, and is what is handed out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "statement/statement.h"

typedef struct LockNode
{
	MotNode		node;
	MotScanNode *scan;
	MotTable   *table;
	MotWriter  *writer;
	mot_row_mode mode;
	MotLockWait wait;
} LockNode;

static TupleTableSlot *
next_of_lock(MotNode *node)
{
	LockNode   *lock = (LockNode *) node;
	MotScan    *scan = lock->scan->scan;
	TupleTableSlot *slot;

	while ((slot = node->outer->next(node->outer)) != NULL)
	{
		const mot_version *newest;

		CHECK_FOR_INTERRUPTS();
		switch (MotWriterLock(lock->writer, scan->row, scan->version, lock->mode, lock->wait, &newest))
		{
			case MOT_LOCKED:
				return slot;
			case MOT_LOCKED_NEWER:
				scan->version = newest;
				slot = MotScanNodeAgain(lock->scan);
				if (slot != NULL)
					return slot;
				break;
			case MOT_LOCK_GONE:
			case MOT_LOCK_SELF:
			case MOT_LOCK_WOULD_BLOCK:
				break;
		}
	}
	return NULL;
}

static void
restart_lock(MotNode *node)
{
	node->outer->restart(node->outer);
}

/* Only a scan's rows, and each of them by one lock. */
const char *
MotLockWhyNot(const LockRows *plan, const PlannedStmt *stmt)
{
	PlanRowMark *mark;

	if (list_length(plan->rowMarks) != 1 || list_length(stmt->rowMarks) != 1 ||
		!IsA(outerPlan(plan), ForeignScan))
		return "rows of a join are locked";
	mark = linitial_node(PlanRowMark, plan->rowMarks);
	if (mark->isParent || mark->rti != mark->prti || !RowMarkRequiresRowShareLock(mark->markType) ||
		mark->rti != ((ForeignScan *) outerPlan(plan))->scan.scanrelid)
		return "rows are locked in another way";
	return NULL;
}

void
MotLockStart(MotStatement *st)
{
	LockNode   *lock = (LockNode *) st->lock;

	MotWriterStart(lock->writer, lock->table->rel, &st->view, st->estate->es_output_cid);
}

void
MotLockRest(MotStatement *st)
{
	MotWriterRest(((LockNode *) st->lock)->writer);
}

MotNode *
MotLockBuild(MotStatement *st, LockRows *plan)
{
	LockNode   *lock = palloc0(sizeof(LockNode));
	MotNode    *node = &lock->node;
	PlanRowMark *mark = linitial_node(PlanRowMark, plan->rowMarks);

	node->statement = st;
	node->next = next_of_lock;
	node->restart = restart_lock;
	node->outer = MotNodeBuild(st, outerPlan(plan));
	lock->scan = (MotScanNode *) node->outer;
	lock->table = MotStatementTable(st, mark->rti);
	lock->writer = MotWriterBegin(lock->table->rel, st->estate->es_snapshot, 0);
	lock->mode = MotRowMarkMode(mark->markType);
	lock->wait = mark->waitPolicy == LockWaitSkip ? MOT_LOCK_SKIP :
		mark->waitPolicy == LockWaitError ? MOT_LOCK_NOWAIT_ERROR : MOT_LOCK_WAIT;
	st->lock = node;
	return node;
}
