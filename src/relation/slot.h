/*-------------------------------------------------------------------------
 *
 * slot.h
 *	  Tuple slots that show row versions in place (slot.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SLOT_H
#define MOT_SLOT_H

#include "mot.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

extern const TupleTableSlotOps MotSlotOps;

extern void MotSlotAdopt(TupleTableSlot *slot);
extern void MotSlotShow(TupleTableSlot *slot, const mot_version *version);
extern void MotSlotStore(TupleTableSlot *slot, const mot_version *version);
extern void MotSlotFetched(TupleTableSlot *slot);
extern void MotSlotChanged(TupleTableSlot *slot, bool ended);
extern uint64 MotSlotLine(const TupleTableSlot *slot);
extern struct CopyFromStateData *MotRunningCopy(void);	/* or NULL */
extern bool MotAsksSystem(List *expressions);
extern TupleTableSlot *MotSlotReturned(EState *estate, Relation rel);
extern TupleTableSlot *MotSlotReturn(TupleTableSlot *returned, TupleTableSlot *slot, bool ended);

#endif							/* MOT_SLOT_H */
