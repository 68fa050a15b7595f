/*-------------------------------------------------------------------------
 *
 * maintenance.h
 *	  The module's background workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MAINTENANCE_H
#define MOT_MAINTENANCE_H

/* registers the worker; called once by _PG_init */
extern void MotMaintenanceInit(void);

#endif							/* MOT_MAINTENANCE_H */
