/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  What can be seen of procedures as machine code: mot_stat_procedures.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "procedure/procedure.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mot_stat_get_procedures);
PGDLLEXPORT Datum mot_stat_get_procedures(PG_FUNCTION_ARGS);

#define COLUMNS 11

static void
put_procedure(MotProcedure *procedure, void *arg)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) arg;
	const MotProcedureCode *code = procedure->code;
	const char *why_not = procedure->why_not != NULL ? procedure->why_not : procedure->why_not_now;
	const char *interpreted = NULL;
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS] = {0};

	if (why_not == NULL && MotProcedurePluginIsOther())
		why_not = "there is another plugin of PL/pgSQL";
	values[0] = ObjectIdGetDatum(procedure->oid);
	values[1] = Int64GetDatum((int64) procedure->executions);
	values[2] = Int64GetDatum((int64) procedure->compiled_executions);
	if (code == NULL)
		for (int i = 3; i <= 6; i++)
			nulls[i] = true;
	else
	{
		foreach_ptr(MotSite, site, code->sites)
			if (site->why_not != NULL && interpreted == NULL)
			interpreted = site->why_not;
		values[3] = Int32GetDatum(code->statements);
		values[4] = Int32GetDatum(code->left);
		values[5] = Int32GetDatum(list_length(code->sites));
		values[6] = Int32GetDatum(list_length(code->sites) - list_length(code->compiled));
	}
	values[7] = Float8GetDatum(procedure->compile_ms);
	values[8] = Int64GetDatum(code != NULL ? (int64) code->code->code_bytes : 0);
	nulls[9] = why_not == NULL;
	if (why_not != NULL)
		values[9] = CStringGetTextDatum(why_not);
	nulls[10] = interpreted == NULL;
	if (interpreted != NULL)
		values[10] = CStringGetTextDatum(interpreted);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* This session's functions. */
Datum
mot_stat_get_procedures(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	MotProcedureEach(put_procedure, fcinfo->resultinfo);
	return (Datum) 0;
}
