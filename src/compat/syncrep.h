/*-------------------------------------------------------------------------
 *
 * syncrep.h
 *	  Are there synchronous standbys to wait for?
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SYNCREP_H
#define MOT_SYNCREP_H

#include "postgres.h"

extern bool MotSyncStandbysDefined(void);

#endif							/* MOT_SYNCREP_H */
