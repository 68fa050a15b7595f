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

/*
 * Could another module look at the plan states of a query that starts now?
 * The arguments are the caller's own hooks of ExecutorStart, Run, Finish and
 * End.
 */
extern bool MotModulesLookAtPlans(const void *start, const void *run, const void *finish,
								  const void *end);

#endif							/* MOT_MODULES_H */
