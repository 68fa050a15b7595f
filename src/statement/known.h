/*-------------------------------------------------------------------------
 *
 * known.h
 *	  Plans that need not be asked for; see known.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KNOWN_H
#define MOT_KNOWN_H

#include "nodes/plannodes.h"
#include "storage/lock.h"
#include "utils/plancache.h"

typedef struct MotPlanLock
{
	Oid			relid;
	LOCKMODE	mode;
} MotPlanLock;

/* Of one statement; all zero to begin with, but "cxt". */
typedef struct MotKnownPlan
{
	MemoryContext cxt;			/* as long as this lives */
	CachedPlanSource *source;
	CachedPlan *plan;			/* NULL: not known */
	int			generation;		/* of the source then */
	LocalTransactionId transaction; /* which has locked its tables ... */
	uint64		undone;			/* ... when so many subtransactions had been
								 * undone */
	int			nlocks;
	int			maxlocks;
	int			nquerys;		/* so many are of the query, the others of the
								 * plan only */
	MotPlanLock *locks;
} MotKnownPlan;

extern bool MotPlanIsKnown(MotKnownPlan *known, CachedPlanSource *source, ParamListInfo params);
extern CachedPlan *MotPlanGet(MotKnownPlan *known, CachedPlanSource *source, ParamListInfo params, ResourceOwner owner);

/* Its only statement. */
static inline PlannedStmt *
MotKnownStatement(const MotKnownPlan *known)
{
	return linitial_node(PlannedStmt, known->plan->stmt_list);
}

#endif							/* MOT_KNOWN_H */
