/*-------------------------------------------------------------------------
 *
 * procedure.c
 *	  For sql/procedures.sql: another plugin of PL/pgSQL.
 *
 *	mot_other_plugin(boolean)	one that does nothing takes the place of what is there, or gives
 *								it back
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/export.h"
#include "compat/interpreter.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(mot_other_plugin);
PGDLLEXPORT Datum mot_other_plugin(PG_FUNCTION_ARGS);

Datum
mot_other_plugin(PG_FUNCTION_ARGS)
{
	static PLpgSQL_plugin other;
	static PLpgSQL_plugin *before;
	PLpgSQL_plugin **plugin = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");

	if (PG_GETARG_BOOL(0) && *plugin != &other)
	{
		before = *plugin;
		*plugin = &other;
	}
	else if (!PG_GETARG_BOOL(0) && *plugin == &other)
		*plugin = before;
	PG_RETURN_VOID();
}
