/*-------------------------------------------------------------------------
 *
 * rowlock.c
 *	  SELECT ... FOR UPDATE and its kin, and rows fetched again by number.
 *
 * The server's LockRows node asks for each row to be locked when it comes out
 * of the plan.  A row that has changed since our snapshot is returned in its
 * newest version, and the server checks it again.
 *
 * The strengths exclude each other as heap's do (see engine/share.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "fdw/fdw.h"
#include "optimizer/planner.h"

/* as of any table with rows of its own */
RowMarkType
MotGetForeignRowMarkType(RangeTblEntry *rte, LockClauseStrength strength)
{
	RangeTblEntry plain = *rte;

	plain.relkind = RELKIND_RELATION;
	return select_rowmark_type(&plain, strength);
}

mot_row_mode
MotRowMarkMode(RowMarkType type)
{
	switch (type)
	{
		case ROW_MARK_KEYSHARE:
			return MOT_MODE_KEY_SHARE;
		case ROW_MARK_SHARE:
			return MOT_MODE_SHARE;
		case ROW_MARK_NOKEYEXCLUSIVE:
			return MOT_MODE_NO_KEY_UPDATE;
		default:
			return MOT_MODE_UPDATE;
	}
}

MotLockWait
MotLockWaitOf(LockWaitPolicy policy)
{
	return policy == LockWaitSkip ? MOT_LOCK_SKIP :
		policy == LockWaitError ? MOT_LOCK_NOWAIT_ERROR : MOT_LOCK_WAIT;
}

void
MotRefetchForeignRow(EState *estate, ExecRowMark *erm, Datum rowid,
					 TupleTableSlot *slot, bool *updated)
{
	mot_session *session = MotSession();
	mot_view	view = MotViewFor(estate->es_snapshot);
	MotRelation *relation = MotRelationGet(erm->relation);
	ItemPointer tid = (ItemPointer) DatumGetPointer(rowid);
	mot_row    *row;
	const mot_version *version = NULL;
	const mot_version *newest;
	MotWriter  *writer;
	MotLockResult result;

	*updated = false;
	ExecClearTuple(slot);

	row = MotTidToRow(session, relation->table, tid);
	if (row != NULL)
		version = mot_row_visible(session, &view, relation->table, row);
	if (version == NULL)
		return;

	if (RowMarkRequiresRowShareLock(erm->markType))
	{
		writer = (MotWriter *) erm->ermExtra;
		if (writer == NULL)
			MotWithin(estate->es_query_cxt,
					  writer = erm->ermExtra = MotWriterBegin(erm->relation, estate->es_snapshot, estate->es_output_cid));
		result = MotWriterLock(writer, row, version, MotRowMarkMode(erm->markType),
							   MotLockWaitOf(erm->waitPolicy), &newest);
		if (result == MOT_LOCKED_NEWER)
			version = newest;
		else if (result != MOT_LOCKED)
			return;
		*updated = result == MOT_LOCKED_NEWER;
	}

	MotSlotStore(slot, version);
	slot->tts_tableOid = erm->relid;
	MotRowToTid(session, row, &slot->tts_tid);
	erm->curCtid = slot->tts_tid;	/* for WHERE CURRENT OF */
}
