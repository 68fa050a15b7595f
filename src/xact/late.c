/*-------------------------------------------------------------------------
 *
 * late.c
 *	  Errors of heap tables that are a lost race in memory-optimized ones.
 *
 * At REPEATABLE READ and SERIALIZABLE others may change a row behind a
 * transaction's back; it hears of that when it commits, and sees nothing of
 * it before.  But unique indexes look beyond snapshots: a number taken from
 * a counter that somebody else has moved since is a duplicate in the table
 * that it is for.  Reporting that would blame the application; it is a
 * serialization failure, and may be tried again.  For memory-optimized tables
 * duplicate.c says so.  Here the same is done for heap tables: a statement
 * that writes one has its errors looked at before they go on.
 *
 * There is no hook for that on the way of every statement, only a wrapper
 * around the nodes that write, put there when such a statement starts.  COPY
 * and deferred constraints go without.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/execnodes.h"
#include "xact/internal.h"

/* what the server put there: the same function for all nodes of this kind */
static ExecProcNodeMtd modify_table = NULL;

static TupleTableSlot *
modify_table_watched(PlanState *node)
{
	TupleTableSlot *volatile slot = NULL;

	PG_TRY();
	{
		slot = modify_table(node);
	}
	PG_CATCH();
	{
		int			code = geterrcode();
		mot_status	status = MOT_OK;

		if ((code == ERRCODE_UNIQUE_VIOLATION || code == ERRCODE_EXCLUSION_VIOLATION) && MotOpenSession != NULL)
			status = mot_txn_check(MotOpenSession);
		if (status == MOT_OK)
			PG_RE_THROW();
		FlushErrorState();
		MotRaiseStatus(status, NULL);
	}
	PG_END_TRY();
	return slot;
}

static void
watch(PlanState *node)
{
	ModifyTableState *modify;

	if (node == NULL || !IsA(node, ModifyTableState))
		return;
	modify = castNode(ModifyTableState, node);
	if (modify->resultRelInfo->ri_RelationDesc->rd_rel->relkind == RELKIND_FOREIGN_TABLE ||
		node->ExecProcNodeReal == modify_table_watched)
		return;
	modify_table = node->ExecProcNodeReal;
	node->ExecProcNodeReal = modify_table_watched;
}

/* A query has been started. */
void
MotLateWatch(QueryDesc *query)
{
	watch(query->planstate);
	foreach_ptr(PlanState, node, query->estate->es_auxmodifytables)
		watch(node);
}
