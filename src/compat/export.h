/*-------------------------------------------------------------------------
 *
 * export.h
 *	  Functions that SQL calls are visible outside the module.
 *
 * The module hides its symbols.  From PostgreSQL 16 on PG_FUNCTION_INFO_V1
 * makes an exception for the function that it is about; before, it does so
 * only for the function's description.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_EXPORT_H
#define MOT_EXPORT_H

#include "postgres.h"

#include "fmgr.h"

#if PG_VERSION_NUM < 160000
#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(funcname) \
extern PGDLLEXPORT Datum funcname(PG_FUNCTION_ARGS); \
extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, funcname) (void); \
const Pg_finfo_record * \
CppConcat(pg_finfo_, funcname) (void) \
{ \
	static const Pg_finfo_record my_finfo = {1}; \
	return &my_finfo; \
} \
extern int no_such_variable
#endif

#endif							/* MOT_EXPORT_H */
