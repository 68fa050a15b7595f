/*-------------------------------------------------------------------------
 *
 * durability.c
 *	  The views mot_stat_checkpoint and mot_stat_recovery.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "wal/wal.h"

PG_FUNCTION_INFO_V1(mot_stat_get_checkpoint);
PG_FUNCTION_INFO_V1(mot_stat_get_recovery);
PG_FUNCTION_INFO_V1(mot_stat_get_left_out);

/* no position is null */
static void
put_lsn(Datum *values, bool *nulls, int i, XLogRecPtr lsn)
{
	values[i] = LSNGetDatum(lsn);
	nulls[i] = XLogRecPtrIsInvalid(lsn);
}

Datum
mot_stat_get_checkpoint(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotCheckpointStat stat;
	Datum		values[9];
	bool		nulls[9] = {0};

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	MotCheckpointStatGet(&stat);
	put_lsn(values, nulls, 0, stat.checkpoint_lsn);
	put_lsn(values, nulls, 1, stat.redo_lsn);
	values[2] = Int64GetDatum((int64) stat.rows);
	values[3] = Int64GetDatum((int64) stat.bytes);
	values[4] = Float8GetDatum(stat.seconds);
	values[5] = TimestampTzGetDatum(stat.finished_at);
	nulls[5] = stat.finished_at == 0;
	values[6] = Int64GetDatum((int64) stat.completed);
	values[7] = Int64GetDatum((int64) stat.failed);
	nulls[8] = stat.last_error[0] == '\0';
	/* it names files and tables of any database */
	if (!nulls[8])
		values[8] = CStringGetTextDatum(has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ?
										stat.last_error : "<insufficient privilege>");
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

Datum
mot_stat_get_recovery(PG_FUNCTION_ARGS)
{
	static const char *const states[] = {"waiting", "loading", "ready", "refused"};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotRecoveryStat stat;
	Datum		values[11];
	bool		nulls[11] = {0};

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	MotRecoveryStatGet(&stat);
	values[0] = CStringGetTextDatum(states[stat.state]);
	put_lsn(values, nulls, 1, stat.checkpoint_lsn);
	put_lsn(values, nulls, 2, stat.replayed_lsn);
	values[3] = Int64GetDatum((int64) stat.tables_total);
	values[4] = Int64GetDatum((int64) stat.tables_loaded);
	values[5] = Int64GetDatum((int64) stat.rows_loaded);
	values[6] = Int64GetDatum((int64) stat.bytes_loaded);
	values[7] = Float8GetDatum(stat.load_seconds);
	values[8] = Int64GetDatum((int64) stat.records_applied);
	values[9] = Int64GetDatum((int64) stat.in_doubt);
	values[10] = Int64GetDatum((int64) stat.damaged_tables);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

Datum
mot_stat_get_left_out(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotLeftOutStat *stats;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	n = MotLeftOutStatGet(&stats);
	for (int i = 0; i < n; i++)
	{
		Datum		values[5];
		bool		nulls[5] = {0};

		values[0] = ObjectIdGetDatum(stats[i].dbid);
		values[1] = ObjectIdGetDatum(stats[i].relid);
		values[2] = Int64GetDatum((int64) stats[i].rows);
		values[3] = Int64GetDatum((int64) stats[i].redo_bytes);
		values[4] = Int64GetDatum((int64) stats[i].needed);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
