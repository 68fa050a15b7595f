/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  What the views mot_stat_* show: tables and memory, transactions, parallel
 *	  workers beside them, checkpoints and recovery.
 *
 * The functions give numbers and oids; the views, in the extension's script,
 * join them with the catalogue.  Tables are shown of the session's own database
 * only, as by the server's statistics views; of others there are sums.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "compat/acl.h"
#include "compat/counters.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mot.h"
#include "relation/definition.h"
#include "relation/relation.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "wal/replay/leftout.h"
#include "xact/held.h"
#include "xact/workers.h"
#include "xact/xact.h"

PG_FUNCTION_INFO_V1(mot_stat_get_tables);
PG_FUNCTION_INFO_V1(mot_stat_get_all_tables);
PG_FUNCTION_INFO_V1(mot_stat_get_quota);
PG_FUNCTION_INFO_V1(mot_stat_get_indexes);
PG_FUNCTION_INFO_V1(mot_stat_get_memory);
PG_FUNCTION_INFO_V1(mot_stat_get_nodes);
PG_FUNCTION_INFO_V1(mot_stat_get_transactions);
PG_FUNCTION_INFO_V1(mot_stat_get_snapshots);
PG_FUNCTION_INFO_V1(mot_stat_get_workers);
PG_FUNCTION_INFO_V1(mot_stat_get_checkpoint);
PG_FUNCTION_INFO_V1(mot_stat_get_recovery);
PG_FUNCTION_INFO_V1(mot_stat_get_left_out);
PG_FUNCTION_INFO_V1(mot_stat_reset);

/*
 * places among the server's counters, where older files of statistics have them, too: new ones come
 * last
 */
typedef enum Counted
{
	COUNTED_COMMITS,
	COUNTED_ABORTS,
	COUNTED_CHECKPOINTS,
	COUNTED_CHECKPOINTS_FAILED,
	COUNTED_WORKERS_ASKED,
	COUNTED_WORKERS_GRANTED,
	COUNTED_EVENTS
} Counted;

StaticAssertDecl(COUNTED_EVENTS + MOT_EVENTS <= MOT_COUNTERS, "there are too many counters");

static void count(uint64 *n);

void
MotMonitorInit(void)
{
	MotCountersInit(count);
}

static Datum
bytes(uint64 n)
{
	return Int64GetDatum((int64) n);
}

/* a row of the result; nulls: NULL if it has none */
static void
put_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		none[16] = {0};

	Assert(rsinfo->setDesc->natts <= lengthof(none));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls != NULL ? nulls : none);
}

/* may the user see what others do? */
static bool
sees_all(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* ---------------------------------------------------------- tables, memory */

typedef void (*ShowTable) (FunctionCallInfo fcinfo, mot_table *table);

/* Those of a database (InvalidOid: of all).  What goes meanwhile stays while a snapshot is published. */
static Datum
show_tables(FunctionCallInfo fcinfo, Oid dbid, ShowTable show)
{
	mot_session *session = MotSession();
	mot_ts		held = mot_snapshot_held(session);

	InitMaterializedSRF(fcinfo, 0);
	(void) mot_snapshot_take(session);
	PG_TRY();
	{
		int			n;
		mot_table **tables = MotTables(dbid, &n);

		for (int i = 0; i < n; i++)
			show(fcinfo, tables[i]);
	}
	PG_FINALLY();
	{
		mot_snapshot_hold(session, held);
	}
	PG_END_TRY();
	return (Datum) 0;
}

static mot_table_stat
stat_of(mot_table *table)
{
	mot_table_stat stat;

	mot_table_stats(table, &stat);
	return stat;
}

static void
show_table(FunctionCallInfo fcinfo, mot_table *table)
{
	mot_table_stat stat = stat_of(table);
	Datum		values[] = {
		ObjectIdGetDatum(mot_table_owner(table)), Int64GetDatum(stat.rows),
		bytes(stat.row_bytes), bytes(stat.used_bytes), bytes(stat.index_bytes),
		bytes(stat.inserts), bytes(stat.updates), bytes(stat.deletes)
	};

	put_row(fcinfo, values, NULL);
}

Datum
mot_stat_get_tables(PG_FUNCTION_ARGS)
{
	return show_tables(fcinfo, MyDatabaseId, show_table);
}

static void
show_indexes(FunctionCallInfo fcinfo, mot_table *table)
{
	mot_index  *index;

	/* (one may go while we count) */
	for (unsigned i = 0; (index = mot_table_index_at(table, i)) != NULL; i++)
	{
		mot_index_stat stat;
		Datum		values[6];

		/* one that only replay knows of */
		if (!OidIsValid(mot_index_host_id(index)))
			continue;
		mot_index_stats(index, &stat);
		values[0] = ObjectIdGetDatum(mot_table_owner(table));
		values[1] = ObjectIdGetDatum(mot_index_host_id(index));
		values[2] = BoolGetDatum(mot_index_is_unique(index));
		values[3] = bytes(stat.bytes);
		values[4] = bytes(stat.used_bytes);
		values[5] = Int64GetDatum(stat.stale_entries);
		put_row(fcinfo, values, NULL);
	}
}

Datum
mot_stat_get_indexes(PG_FUNCTION_ARGS)
{
	return show_tables(fcinfo, MyDatabaseId, show_indexes);
}

/*
 * Whose tables these are is known to their own database only.  As pg_database_size(), it tells of
 * databases to which the user may connect.
 */
static void
show_any_table(FunctionCallInfo fcinfo, mot_table *table)
{
	Oid			dbid = mot_table_host_db(table);
	mot_table_stat stat = stat_of(table);
	Datum		values[] = {
		ObjectIdGetDatum(dbid), Int64GetDatum(stat.rows), bytes(stat.row_bytes), bytes(stat.index_bytes)
	};

	/* (one that is just being dropped has no privileges any more) */
	if (sees_all() || (SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(dbid)) &&
					   object_aclcheck(DatabaseRelationId, dbid, GetUserId(), ACL_CONNECT) == ACLCHECK_OK))
		put_row(fcinfo, values, NULL);
}

Datum
mot_stat_get_all_tables(PG_FUNCTION_ARGS)
{
	return show_tables(fcinfo, InvalidOid, show_any_table);
}

/*
 * What counts for a database (of pg_database) or a role, and may.  Of roles it is of all databases,
 * and so for those who see what the role does.
 */
Datum
mot_stat_get_quota(PG_FUNCTION_ARGS)
{
	bool		database = PG_GETARG_OID(0) == DatabaseRelationId;
	Oid			id = PG_GETARG_OID(1);
	mot_quota_kind kind = database ? MOT_QUOTA_DATABASE : MOT_QUOTA_ROLE;
	uint64		limit = MotQuotaLabel(kind, id);
	mot_quota_report report;
	Datum		values[2];
	bool		nulls[2];

	InitMaterializedSRF(fcinfo, 0);
	nulls[0] = !mot_quota_find(MotEngineRequired(), kind, id, &report) ||
		!(sees_all() || (database ? object_aclcheck(DatabaseRelationId, id, GetUserId(), ACL_CONNECT) == ACLCHECK_OK :
						 has_privs_of_role(GetUserId(), id)));
	values[0] = nulls[0] ? (Datum) 0 : bytes(report.bytes);
	nulls[1] = limit == 0;
	values[1] = bytes(limit);
	put_row(fcinfo, values, nulls);
	return (Datum) 0;
}

/* sums over all databases: how much of the region is rows, and how much indexes */
static void
add_table_bytes(void *arg, mot_table *table)
{
	mot_table_stat *sum = arg;
	mot_table_stat stat;

	mot_table_stats(table, &stat);
	sum->rows += stat.rows;
	sum->row_bytes += stat.row_bytes;
	sum->index_bytes += stat.index_bytes;
}

Datum
mot_stat_get_memory(PG_FUNCTION_ARGS)
{
	mot_memory_report report;
	mot_table_stat sum = {0};
	Datum	   *nodes;
	Datum		values[12];

	InitMaterializedSRF(fcinfo, 0);
	mot_memory_report_get(MotEngineRequired(), &report);
	mot_table_each(MotEngine, add_table_bytes, &sum);

	nodes = palloc(Max(report.nodes, 1) * sizeof(Datum));
	for (unsigned i = 0; i < report.nodes; i++)
	{
		mot_node_report node;

		mot_node_report_get(MotEngine, i, &node);
		nodes[i] = bytes(node.page_bytes);
	}

	values[0] = bytes(report.max_bytes);
	values[1] = bytes(report.used_bytes);
	values[2] = Int64GetDatum(sum.rows);
	values[3] = bytes(sum.row_bytes);
	values[4] = bytes(sum.index_bytes);
	values[5] = bytes(report.engine_bytes);
	values[6] = bytes(report.descriptor_bytes);
	values[7] = bytes(report.system_bytes);
	values[8] = PointerGetDatum(construct_array(nodes, report.nodes, INT8OID, 8,
												FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[9] = bytes(report.retired_objects);
	values[10] = bytes(report.clock);
	values[11] = bytes(report.horizon);
	put_row(fcinfo, values, NULL);
	return (Datum) 0;
}

Datum
mot_stat_get_nodes(PG_FUNCTION_ARGS)
{
	mot_memory_report report;

	InitMaterializedSRF(fcinfo, 0);
	mot_memory_report_get(MotEngineRequired(), &report);
	for (unsigned i = 0; i < report.nodes; i++)
	{
		mot_node_report node;
		Datum		values[3];

		mot_node_report_get(MotEngine, i, &node);
		values[0] = Int32GetDatum(i);
		values[1] = bytes(node.chunk_bytes);
		values[2] = bytes(node.page_bytes);
		put_row(fcinfo, values, NULL);
	}
	return (Datum) 0;
}

static void
count(uint64 *n)
{
	mot_txn_counts txns;
	MotCheckpointStat checkpoint;
	MotWorkersStat workers;

	if (MotEngine == NULL)
		return;
	mot_txn_counts_get(MotEngine, &txns);
	MotCheckpointStatGet(&checkpoint);
	MotWorkersStatGet(&workers);
	n[COUNTED_COMMITS] += txns.commits;
	n[COUNTED_ABORTS] += txns.aborts;
	n[COUNTED_CHECKPOINTS] += checkpoint.completed;
	n[COUNTED_CHECKPOINTS_FAILED] += checkpoint.failed;
	n[COUNTED_WORKERS_ASKED] += workers.asked;
	n[COUNTED_WORKERS_GRANTED] += workers.granted;
	for (int event = 0; event < MOT_EVENTS; event++)
		n[COUNTED_EVENTS + event] += txns.events[event];
}

Datum
mot_stat_reset(PG_FUNCTION_ARGS)
{
	(void) MotEngineRequired();
	MotCountersReset();
	PG_RETURN_VOID();
}

Datum
mot_stat_get_transactions(PG_FUNCTION_ARGS)
{
	/* in the order of the view's columns */
	static const int counted[] = {
		COUNTED_COMMITS, COUNTED_ABORTS,
		COUNTED_EVENTS + MOT_EVENT_WAIT, COUNTED_EVENTS + MOT_EVENT_DEADLOCK,
		COUNTED_EVENTS + MOT_EVENT_CHANGED, COUNTED_EVENTS + MOT_EVENT_DELETED,
		COUNTED_EVENTS + MOT_EVENT_READ, COUNTED_EVENTS + MOT_EVENT_PHANTOM,
		COUNTED_EVENTS + MOT_EVENT_MIXED, COUNTED_EVENTS + MOT_EVENT_HELD,
		COUNTED_EVENTS + MOT_EVENT_SNAPSHOT
	};
	MotCounters counters;
	Datum		values[lengthof(counted) + 1];

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	MotCountersGet(&counters);
	for (int i = 0; i < lengthof(counted); i++)
		values[i] = bytes(counters.n[counted[i]]);
	values[lengthof(counted)] = TimestampTzGetDatum(counters.since);
	put_row(fcinfo, values, NULL);
	return (Datum) 0;
}

Datum
mot_stat_get_snapshots(PG_FUNCTION_ARGS)
{
	mot_memory_report report;
	unsigned	n;

	InitMaterializedSRF(fcinfo, 0);
	n = Min(mot_slots_used(MotEngineRequired()), ProcGlobal->allProcCount);
	mot_memory_report_get(MotEngine, &report);
	for (unsigned i = 0; i < n; i++)
	{
		mot_ts		snapshot = mot_slot_snapshot(MotEngine, i);
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		int			pid = proc->pid;
		Oid			role = proc->roleId;
		TimestampTz since;
		Datum		values[5];
		bool		nulls[5] = {0};

		/* pid 0: it has just gone */
		if (snapshot == MOT_TS_NONE || pid == 0)
			continue;
		values[0] = Int32GetDatum(pid);
		values[1] = bytes(snapshot);
		/* it may be one of now, taken after the clock was read */
		values[2] = bytes(report.clock - Min(snapshot, report.clock));
		values[4] = bytes(MotHeldBytes(i, snapshot, &since));
		values[3] = Float8GetDatum(since == 0 ? 0 : Max(0, GetCurrentTimestamp() - since) / 1000000.0);

		/*
		 * whose snapshot it is, is for those who see others in
		 * pg_stat_activity
		 */
		nulls[0] = !sees_all() && !(OidIsValid(role) && has_privs_of_role(GetUserId(), role));
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

Datum
mot_stat_get_workers(PG_FUNCTION_ARGS)
{
	MotCounters counters;
	MotWorkersStat stat;
	MotHint		hint;
	Datum		values[9];

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	/* while no parallel query runs nobody else does */
	(void) MotHintLook(MOT_HINT_WATCH);
	MotHintGet(&hint);
	MotWorkersStatGet(&stat);
	MotCountersGet(&counters);
	values[0] = Float8GetDatum(hint.processors);
	values[1] = Float8GetDatum(hint.hint);
	values[2] = Int32GetDatum(hint.active);
	values[3] = Int32GetDatum(hint.blocked);
	values[4] = Int32GetDatum(stat.most);
	values[5] = Int32GetDatum(stat.running);
	values[6] = Int32GetDatum(stat.parked);
	values[7] = bytes(counters.n[COUNTED_WORKERS_ASKED]);
	values[8] = bytes(counters.n[COUNTED_WORKERS_GRANTED]);
	put_row(fcinfo, values, NULL);
	return (Datum) 0;
}

/* -------------------------------------------------------------- durability */

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
	MotCheckpointStat stat;
	MotCounters counters;
	Datum		values[9];
	bool		nulls[9] = {0};

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	MotCheckpointStatGet(&stat);
	MotCountersGet(&counters);
	put_lsn(values, nulls, 0, stat.checkpoint_lsn);
	put_lsn(values, nulls, 1, stat.redo_lsn);
	values[2] = bytes(stat.rows);
	values[3] = bytes(stat.bytes);
	values[4] = Float8GetDatum(stat.seconds);
	values[5] = TimestampTzGetDatum(stat.finished_at);
	nulls[5] = stat.finished_at == 0;
	values[6] = bytes(counters.n[COUNTED_CHECKPOINTS]);
	values[7] = bytes(counters.n[COUNTED_CHECKPOINTS_FAILED]);
	/* it names files and tables of any database */
	values[8] = CStringGetTextDatum(sees_all() ? stat.last_error : "<insufficient privilege>");
	nulls[8] = stat.last_error[0] == '\0';
	put_row(fcinfo, values, nulls);
	return (Datum) 0;
}

Datum
mot_stat_get_recovery(PG_FUNCTION_ARGS)
{
	static const char *const states[] = {"waiting", "loading", "ready", "refused"};
	MotRecoveryStat stat;
	Datum		values[11];
	bool		nulls[11] = {0};

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	MotRecoveryStatGet(&stat);
	values[0] = CStringGetTextDatum(states[stat.state]);
	put_lsn(values, nulls, 1, stat.checkpoint_lsn);
	put_lsn(values, nulls, 2, stat.replayed_lsn);
	values[3] = bytes(stat.tables_total);
	values[4] = bytes(stat.tables_loaded);
	values[5] = bytes(stat.rows_loaded);
	values[6] = bytes(stat.bytes_loaded);
	values[7] = Float8GetDatum(stat.load_seconds);
	values[8] = bytes(stat.records_applied);
	values[9] = bytes(stat.in_doubt);
	values[10] = bytes(stat.damaged_tables);
	put_row(fcinfo, values, nulls);
	return (Datum) 0;
}

/* tables that memory has no room for */
Datum
mot_stat_get_left_out(PG_FUNCTION_ARGS)
{
	MotLeftOut *left;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	(void) MotEngineRequired();
	n = MotLeftOutList(&left);
	for (int i = 0; i < n; i++)
	{
		Datum		values[] = {
			ObjectIdGetDatum(left[i].dbid), ObjectIdGetDatum(left[i].relid),
			bytes(left[i].rows), bytes(left[i].redo_bytes), bytes(MotLeftOutNeeds(&left[i]))
		};

		put_row(fcinfo, values, NULL);
	}
	return (Datum) 0;
}
