/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  A tuple slot that shows a row version in place.
 *
 * The server gives a foreign scan a slot for heap tuples.  Ours are not heap
 * tuples, and forming one per row would cost more than finding the row.  So
 * BeginForeignScan gives the slot these operations instead (the struct fits
 * in the one it replaces): it points at the version, in shared memory, and
 * columns are taken out of it when an expression asks for them, as many as it
 * asks for.  A version stays where it is until the executor ends, so nothing
 * is copied unless somebody materializes the slot.
 *
 * Rows have no xmin, cmin and cmax, since their transactions are not the
 * server's.  The server's own slots for heap tuples would show what happens to
 * lie where heap tuples have them; so if RETURNING asks for one, it gets a slot
 * of ours, which refuses.  It knows xmax, because by that INSERT ... ON
 * CONFLICT is asked what it did: 0 for a new row, as on heap tables.  The server's
 * ModifyTable has its own slots for ordinary tables, which are told (MotSlotChanged).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "access/xact.h"
#include "commands/copyfrom_internal.h"
#include "compat/calls.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "relation/rowcodec.h"
#include "relation/slot.h"
#include "replication/logicalworker.h"
#include "utils/expandeddatum.h"
#include "utils/rel.h"
#include "xact/xact.h"

typedef struct MotTupleSlot
{
	TupleTableSlot base;
	const mot_version *version; /* NULL: the columns are in the slot itself */
	char	   *data;			/* what materialized columns point into, or
								 * NULL */
	uint32		room;			/* there */
	bool		has_xmax;
	bool		fetched;		/* by a tuple id, see MotSlotFetched */
	TransactionId xmax;
	uint64		line;			/* COPY's, when it materialized the row */
} MotTupleSlot;

/* memory for columns that a slot keeps from one row to the next: COPY has a thousand slots */
#define ROOM_KEPT 1024

StaticAssertDecl(sizeof(MotTupleSlot) <= sizeof(HeapTupleTableSlot),
				 "a MOT slot must fit in the slot it replaces");

static void
mot_slot_init(TupleTableSlot *slot)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	mslot->version = NULL;
	mslot->data = NULL;
	mslot->room = 0;
	mslot->has_xmax = false;
	mslot->fetched = false;
	mslot->line = 0;
}

static void
mot_slot_release(TupleTableSlot *slot)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	if (mslot->data != NULL)
		pfree(mslot->data);
	mslot->data = NULL;
	mslot->room = 0;
}

static void
mot_slot_clear(TupleTableSlot *slot)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	mslot->has_xmax = false;
	if (unlikely(TTS_SHOULDFREE(slot)))
	{
		if (unlikely(mslot->room > ROOM_KEPT))
			mot_slot_release(slot);
		slot->tts_flags &= ~TTS_FLAG_SHOULDFREE;
	}
	mslot->version = NULL;
	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	ItemPointerSetInvalid(&slot->tts_tid);
}

static void
mot_slot_getsomeattrs(TupleTableSlot *slot, int natts)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	Assert(!TTS_EMPTY(slot));
	MotRowDeform(slot->tts_tupleDescriptor, mslot->version, natts,
				 slot->tts_values, slot->tts_isnull);
	slot->tts_nvalid = natts;
}

static inline bool
mot_slot_is_own(TupleTableSlot *slot)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	return mslot->version != NULL && mot_version_ts(mslot->version) == 0;
}

static Datum
mot_slot_getsysattr(TupleTableSlot *slot, int attnum, bool *isnull)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	if (attnum == MinTransactionIdAttributeNumber && mslot->fetched)
	{
		*isnull = false;
		return TransactionIdGetDatum(mot_slot_is_own(slot) ?
									 GetCurrentTransactionId() : FrozenTransactionId);
	}

	/*
	 * From 18 on a subscription asks who has changed a row last before it
	 * does; of what is frozen that is not known (GetTupleTransactionInfo)
	 */
	if (attnum == MinTransactionIdAttributeNumber && IsLogicalWorker() && !MotQueryRuns())
	{
		*isnull = false;
		return TransactionIdGetDatum(FrozenTransactionId);
	}
	if (attnum == MaxTransactionIdAttributeNumber && mslot->has_xmax)
	{
		*isnull = false;
		return TransactionIdGetDatum(mslot->xmax);
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("memory-optimized tables have no system columns but ctid and tableoid"),
			 mslot->has_xmax ?
			 errdetail("RETURNING knows xmax, too: it is not 0 for a row that ON CONFLICT updated or that was deleted.") : 0,
			 attnum != MaxTransactionIdAttributeNumber ?
			 errhint("To tell whether a row has changed, give it a column that every update changes, such as a version number.") : 0));
	return 0;					/* keep compiler quiet */
}

/* bytes that a column of the slot needs, behind so many; 0: it is a value in itself, or has none */
static inline Size
column_size(const TupleTableSlot *slot, int column, Size before, Size *start)
{
	Form_pg_attribute att = TupleDescAttr(slot->tts_tupleDescriptor, column);
	Datum		value = slot->tts_values[column];

	if (att->attbyval || slot->tts_isnull[column])
		return 0;
	*start = att_align_nominal(before, att->attalign);
	if (att->attlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return EOH_get_flat_size(DatumGetEOHP(value));
	return att_addlength_datum(0, att->attlen, value);
}

/* room for so much in all; what the columns before this one have there goes along */
static void
make_room(TupleTableSlot *slot, int column, Size used, Size size)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;
	Size		room = Max(size, Min(2 * (Size) mslot->room, MaxAllocSize));
	char	   *data = MemoryContextAlloc(slot->tts_mcxt, room);

	for (int i = 0; i < column; i++)
		if (!slot->tts_isnull[i] && !TupleDescAttr(slot->tts_tupleDescriptor, i)->attbyval)
			slot->tts_values[i] = PointerGetDatum(data + ((char *) DatumGetPointer(slot->tts_values[i]) - mslot->data));
	if (used != 0)
		memcpy(data, mslot->data, used);
	mot_slot_release(slot);
	mslot->data = data;
	mslot->room = (uint32) room;
}

/* the COPY that has called us, if it is one */
CopyFromState
MotRunningCopy(void)
{
	return error_context_stack == NULL || error_context_stack->callback != CopyFromErrorCallback ?
		NULL : (CopyFromState) error_context_stack->arg;
}

/*
 * Cut the slot's contents off from the version, or from whoever has made them, as a virtual slot
 * does.
 */
static void
mot_slot_materialize(TupleTableSlot *slot)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;
	int			natts = slot->tts_tupleDescriptor->natts;
	Size		used = 0;

	Assert(!TTS_EMPTY(slot));
	if (TTS_SHOULDFREE(slot))
		return;
	slot_getallattrs(slot);
	for (int i = 0; i < natts; i++)
	{
		Datum		value = slot->tts_values[i];
		Size		start;
		Size		size = column_size(slot, i, used, &start);

		if (size == 0)
			continue;
		if (unlikely(start + size > mslot->room))
			make_room(slot, i, used, start + size);
		used = start + size;
		if (TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
			EOH_flatten_into(DatumGetEOHP(value), mslot->data + start, size);
		else
			memcpy(mslot->data + start, DatumGetPointer(value), size);
		slot->tts_values[i] = PointerGetDatum(mslot->data + start);
	}
	slot->tts_flags |= TTS_FLAG_SHOULDFREE;
	mslot->version = NULL;
	if (MotRunningCopy() != NULL)
		mslot->line = MotRunningCopy()->cur_lineno;
}

/* COPY stores rows when it has read on: the line of one that it has materialized */
uint64
MotSlotLine(const TupleTableSlot *slot)
{
	return slot->tts_ops == &MotSlotOps ? ((const MotTupleSlot *) slot)->line : 0;
}

static HeapTuple
mot_slot_copy_heap_tuple(TupleTableSlot *slot)
{
	HeapTuple	tuple;

	Assert(!TTS_EMPTY(slot));
	slot_getallattrs(slot);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor,
							slot->tts_values, slot->tts_isnull);
	tuple->t_self = slot->tts_tid;
	tuple->t_tableOid = slot->tts_tableOid;
	return tuple;
}

static MinimalTuple
mot_slot_copy_minimal_tuple(MOT_MINIMAL_PARAMETERS)
{
	Assert(!TTS_EMPTY(slot));
	slot_getallattrs(slot);
	return MotFormMinimalTuple(slot->tts_tupleDescriptor,
							   slot->tts_values, slot->tts_isnull);
}

static void
mot_slot_copyslot(TupleTableSlot *dstslot, TupleTableSlot *srcslot)
{
	int			natts = srcslot->tts_tupleDescriptor->natts;

	mot_slot_clear(dstslot);
	slot_getallattrs(srcslot);
	memcpy(dstslot->tts_values, srcslot->tts_values, natts * sizeof(Datum));
	memcpy(dstslot->tts_isnull, srcslot->tts_isnull, natts * sizeof(bool));
	dstslot->tts_nvalid = natts;
	dstslot->tts_flags &= ~TTS_FLAG_EMPTY;
	/* (a subscription's worker changes the row by it) */
	dstslot->tts_tid = srcslot->tts_tid;
	mot_slot_materialize(dstslot);
}

const TupleTableSlotOps MotSlotOps = {
	.base_slot_size = sizeof(MotTupleSlot),
	.init = mot_slot_init,
	.release = mot_slot_release,
	.clear = mot_slot_clear,
	.getsomeattrs = mot_slot_getsomeattrs,
	.getsysattr = mot_slot_getsysattr,
	MOT_SLOT_MEMBERS(mot_slot_is_own)
	.materialize = mot_slot_materialize,
	.copyslot = mot_slot_copyslot,
	.get_heap_tuple = NULL,
	.get_minimal_tuple = NULL,
	.copy_heap_tuple = mot_slot_copy_heap_tuple,
	.copy_minimal_tuple = mot_slot_copy_minimal_tuple
};

/* Turn the (empty) heap tuple slot the server made into one of ours. */
void
MotSlotAdopt(TupleTableSlot *slot)
{
	Assert(TTS_EMPTY(slot));
	Assert(slot->tts_ops == &TTSOpsHeapTuple);
	*((const TupleTableSlotOps **) &slot->tts_ops) = &MotSlotOps;
	mot_slot_init(slot);
}

/* Show a version in an adopted slot. */
void
MotSlotShow(TupleTableSlot *slot, const mot_version *version)
{
	Assert(slot->tts_ops == &MotSlotOps);
	if (unlikely(TTS_SHOULDFREE(slot)))
		mot_slot_clear(slot);
	((MotTupleSlot *) slot)->version = version;
	((MotTupleSlot *) slot)->fetched = false;
	((MotTupleSlot *) slot)->has_xmax = false;
	slot->tts_nvalid = 0;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
}

/*
 * Put a version into a slot of any kind that is described by the table's row
 * type: its columns point into the version.
 */
void
MotSlotStore(TupleTableSlot *slot, const mot_version *version)
{
	ExecClearTuple(slot);
	MotRowDeform(slot->tts_tupleDescriptor, version,
				 slot->tts_tupleDescriptor->natts,
				 slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
}

/*
 * The row was asked for by its tuple id, so it is one that the server itself will look
 * at (foreign keys, ON CONFLICT): it asks whether this transaction has made it.
 */
void
MotSlotFetched(TupleTableSlot *slot)
{
	if (slot->tts_ops == &MotSlotOps)
		((MotTupleSlot *) slot)->fetched = true;
}

/* Do expressions ask the tables' own rows for more than ctid and tableoid? */
static bool
asks_system(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;

		return var->varattno < 0 && !IS_SPECIAL_VARNO(var->varno) &&
			var->varattno != SelfItemPointerAttributeNumber &&
			var->varattno != TableOidAttributeNumber;
	}
	return expression_tree_walker(node, asks_system, context);
}

bool
MotAsksSystem(List *expressions)
{
	return asks_system((Node *) expressions, NULL);
}

TupleTableSlot *
MotSlotReturned(EState *estate, Relation rel)
{
	TupleTableSlot *slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(rel), &TTSOpsHeapTuple);

	MotSlotAdopt(slot);
	return slot;
}

/*
 * The slot has a row that has been changed just now, which RETURNING may show.  "ended": a
 * version that was there has been locked and replaced by ON CONFLICT, or
 * deleted.  A heap table's xmax is then the transaction's number; transactions that change
 * only our tables have none.
 */
void
MotSlotChanged(TupleTableSlot *slot, bool ended)
{
	MotTupleSlot *mslot = (MotTupleSlot *) slot;

	if (slot->tts_ops != &MotSlotOps)
		return;
	mslot->has_xmax = true;
	mslot->xmax = InvalidTransactionId;
	if (ended)
	{
		mslot->xmax = GetCurrentTransactionIdIfAny();
		if (!TransactionIdIsValid(mslot->xmax))
			mslot->xmax = FrozenTransactionId;
	}
}

/*
 * Show RETURNING, which asks for system columns, a changed row in a slot of ours; see
 * MotSlotChanged.
 */
TupleTableSlot *
MotSlotReturn(TupleTableSlot *returned, TupleTableSlot *slot, bool ended)
{
	Assert(returned->tts_ops == &MotSlotOps);
	ExecCopySlot(returned, slot);
	returned->tts_tid = slot->tts_tid;
	returned->tts_tableOid = slot->tts_tableOid;
	MotSlotChanged(returned, ended);
	return returned;
}
