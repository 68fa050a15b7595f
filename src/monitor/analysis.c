/*-------------------------------------------------------------------------
 *
 * analysis.c
 *	  What the view mot_stat_workers shows: parallel workers beside transactions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "mot.h"
#include "utils/tuplestore.h"
#include "xact/workers.h"

PG_FUNCTION_INFO_V1(mot_stat_get_workers);

Datum
mot_stat_get_workers(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotWorkersStat stat;
	MotHint		hint;
	Datum		values[9];
	bool		nulls[9] = {0};

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	/* while no parallel query runs nobody else does */
	(void) MotHintLook(MOT_HINT_WATCH);
	MotHintGet(&hint);
	MotWorkersStatGet(&stat);
	values[0] = Float8GetDatum(hint.processors);
	values[1] = Float8GetDatum(hint.hint);
	values[2] = Int32GetDatum(hint.active);
	values[3] = Int32GetDatum(hint.blocked);
	values[4] = Int32GetDatum(stat.most);
	values[5] = Int32GetDatum(stat.running);
	values[6] = Int32GetDatum(stat.parked);
	values[7] = Int64GetDatum((int64) stat.asked);
	values[8] = Int64GetDatum((int64) stat.granted);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}
