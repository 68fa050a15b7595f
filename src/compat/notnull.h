/*-------------------------------------------------------------------------
 *
 * notnull.h
 *	  NOT NULL of a table's column as a constraint with a row of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_NOTNULL_H
#define MOT_NOTNULL_H

#include "postgres.h"

#include "access/htup.h"
#include "nodes/parsenodes.h"

/* ALTER CONSTRAINT ... INHERIT, which the children's columns get (18): its name, or NULL */
#if PG_VERSION_NUM >= 180000
extern const char *MotInheritsNotNull(const AlterTableCmd *cmd);
#else
#define MotInheritsNotNull(cmd) ((const char *) NULL)
#endif

/* of a row of pg_constraint */
extern bool MotIsNotNull(HeapTuple constraint);

/* ... that is about to be dropped: by itself, and not with its column or table? */
extern bool MotNotNullDropped(HeapTuple constraint);

#endif							/* MOT_NOTNULL_H */
