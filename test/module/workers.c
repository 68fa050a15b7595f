/*-------------------------------------------------------------------------
 *
 * workers.c
 *	  The concurrency hint as tests want it; only they declare this.
 *
 *	mot_test_processors(processors, room)
 *							so many processors there are, and so many of them
 *							for parallel workers; processors < 0: what is true
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "mot.h"
#include "xact/workers.h"

PG_FUNCTION_INFO_V1(mot_test_processors);

Datum
mot_test_processors(PG_FUNCTION_ARGS)
{
	(void) MotEngineRequired();
	MotHintPretend(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1));
	PG_RETURN_VOID();
}
