/*-------------------------------------------------------------------------
 *
 * generated.h
 *	  What ALTER TABLE has to know of generated columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_GENERATED_H
#define MOT_GENERATED_H

#include "compat/attribute.h"
#include "nodes/parsenodes.h"
#include "rewrite/rewriteHandler.h"

/* ALTER COLUMN ... SET EXPRESSION (17) */
#if PG_VERSION_NUM >= 170000
#define MotSetsExpression(cmd) ((cmd)->subtype == AT_SetExpression)
#else
#define MotSetsExpression(cmd) false
#endif

/* a condition on a row, with what virtual columns (18) stand for in their place */
#if PG_VERSION_NUM >= 180000
#define MotExpandVirtualColumns(node, rel) expand_generated_columns_in_expr(node, rel, 1)
#else
#define MotExpandVirtualColumns(node, rel) (node)
#endif

#endif							/* MOT_GENERATED_H */
