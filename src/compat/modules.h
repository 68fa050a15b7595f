/*-------------------------------------------------------------------------
 *
 * modules.h
 *	  Other modules with hooks in the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MODULES_H
#define MOT_MODULES_H

#include "postgres.h"

#include "executor/executor.h"

/* Could one look at the plan states of a query that starts now? */
extern bool MotModulesLookAtPlans(void);

/* What statements are run by if it is of this module; does another one watch them? */
extern ExecutorRun_hook_type MotModulesRun;

static inline bool
MotModulesWatch(void)
{
	return unlikely(ExecutorRun_hook != MotModulesRun);
}

#endif							/* MOT_MODULES_H */
