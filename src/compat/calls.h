/*-------------------------------------------------------------------------
 *
 * calls.h
 *	  Calls of the server whose arguments differ between its versions.
 *
 * Each has the name of what it calls, with Mot before it, and takes what it needs in any
 * version.  They are macros, so that who includes this has to include only what he
 * calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_CALLS_H
#define MOT_CALLS_H

#include "compat/names.h"

/* ---------------------------------------------------------------- executor */

/* What of a plan an executor state of ours has to know. */
#if PG_VERSION_NUM >= 180000
#define MotEstatePlan(estate, stmt) \
	((estate)->es_range_table = (stmt)->rtable, \
	 (estate)->es_rteperminfos = (stmt)->permInfos, \
	 (estate)->es_unpruned_relids = (stmt)->unprunableRelids)
#elif PG_VERSION_NUM >= 160000
#define MotEstatePlan(estate, stmt) \
	((estate)->es_range_table = (stmt)->rtable, \
	 (estate)->es_rteperminfos = (stmt)->permInfos)
#else
#define MotEstatePlan(estate, stmt) ((estate)->es_range_table = (stmt)->rtable)
#endif

/* raises an error if the user may not do what the plan does */
#if PG_VERSION_NUM >= 160000
#define MotExecCheckPermissions(stmt) ((void) ExecCheckPermissions((stmt)->rtable, (stmt)->permInfos, true))
#define MotEvalPlanQualInit(epq, estate, plan, marks, param) EvalPlanQualInit(epq, estate, plan, marks, param, NIL)
#else
#define MotExecCheckPermissions(stmt) ((void) ExecCheckRTPerms((stmt)->rtable, true))
#define MotEvalPlanQualInit(epq, estate, plan, marks, param) EvalPlanQualInit(epq, estate, plan, marks, param)
#endif

/* rows of an execution: of the run at hand, and from 16 on of all its runs, which pg_stat_statements shows */
#if PG_VERSION_NUM >= 160000
#define MotProcessedNone(estate) ((estate)->es_processed = (estate)->es_total_processed = 0)
#define MotProcessedInAll(estate) ((estate)->es_total_processed += (estate)->es_processed)
#else
#define MotProcessedNone(estate) ((estate)->es_processed = 0)
#define MotProcessedInAll(estate) ((void) 0)
#endif

/* what ExecutorRun's hooks take, and hand on */
#if PG_VERSION_NUM >= 180000
#define MOT_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define MOT_RUN_ARGUMENTS query, direction, count
#define MotRunOnce(query) false
#else
#define MOT_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define MOT_RUN_ARGUMENTS query, direction, count, execute_once
#define MotRunOnce(query) (execute_once && (query)->already_executed)
#endif

/* BEFORE UPDATE triggers of a row of a foreign table */
#if PG_VERSION_NUM >= 180000
#define MotExecBRUpdateTriggers(estate, epq, rinfo, old, slot) \
	ExecBRUpdateTriggers(estate, epq, rinfo, NULL, old, slot, NULL, NULL, false)
#elif PG_VERSION_NUM >= 160000
#define MotExecBRUpdateTriggers(estate, epq, rinfo, old, slot) \
	ExecBRUpdateTriggers(estate, epq, rinfo, NULL, old, slot, NULL, NULL)
#else
#define MotExecBRUpdateTriggers(estate, epq, rinfo, old, slot) \
	ExecBRUpdateTriggers(estate, epq, rinfo, NULL, old, slot, NULL)
#endif

/* values by reference are copies, the caller's */
#if PG_VERSION_NUM >= 160000
#define MotTuplesortGetDatum(sort, value, isnull, abbreviated) \
	tuplesort_getdatum(sort, true, true, value, isnull, abbreviated)
#else
#define MotTuplesortGetDatum(sort, value, isnull, abbreviated) \
	tuplesort_getdatum(sort, true, value, isnull, abbreviated)
#endif

/* a slot's copy_minimal_tuple: what it takes but the slot */
#if PG_VERSION_NUM >= 180000
#define MOT_MINIMAL_PARAMETERS TupleTableSlot *slot, Size extra
#define MotFormMinimalTuple(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull, extra)
#else
#define MOT_MINIMAL_PARAMETERS TupleTableSlot *slot
#define MotFormMinimalTuple(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull)
#endif

/*
 * a slot's own members: bool own(TupleTableSlot *) says whether the current transaction has made the row
 * (before 17 its xmin is looked at)
 */
#if PG_VERSION_NUM >= 170000
#define MOT_SLOT_MEMBERS(own) .is_current_xact_tuple = own,
#else
#define MOT_SLOT_MEMBERS(own)
#endif

/* Does RETURNING say which of an updated row's versions it wants (OLD, NEW)? */
#if PG_VERSION_NUM >= 180000
#define MotVarIsOfVersion(var) ((var)->varreturningtype != VAR_RETURNING_DEFAULT)
#else
#define MotVarIsOfVersion(var) false
#endif

/* Does a range table entry stand for others of the same query (joins, what GROUP BY names)? */
#if PG_VERSION_NUM >= 180000
#define MotRteStandsForOthers(rte) ((rte)->rtekind == RTE_JOIN || (rte)->rtekind == RTE_GROUP)
#else
#define MotRteStandsForOthers(rte) ((rte)->rtekind == RTE_JOIN)
#endif

/* ----------------------------------------------------------------- planner */

#if PG_VERSION_NUM >= 170000
#define MotEstimateArrayLength(root, array) ((int) estimate_array_length(root, array))
#else
#define MotEstimateArrayLength(root, array) estimate_array_length(array)
#endif

/*
 * What is off is a last resort: it costs much more, or from 18 on counts as disabled, as
 * other paths made of it do.  (And up to 17 CURRENT OF costs as much, wherever it is evaluated.)
 */
#if PG_VERSION_NUM >= 180000
#define MotCostOfDisabled(disabled) 0
#define MotCostOfCurrentOf 0
#define MotPathIsDisabled(path) ((path)->disabled_nodes > 0)
#else
#define MotCostOfDisabled(disabled) ((disabled) ? disable_cost : 0)
#define MotCostOfCurrentOf disable_cost
#define MotPathIsDisabled(path) false
#endif

/* of a relation */
#if PG_VERSION_NUM >= 180000
#define MotCreateForeignScanPath(root, rel, rows, disabled, startup, total, pathkeys, outer, private) \
	create_foreignscan_path(root, rel, NULL, rows, disabled, startup, total, pathkeys, outer, NULL, NIL, private)
#elif PG_VERSION_NUM >= 170000
#define MotCreateForeignScanPath(root, rel, rows, disabled, startup, total, pathkeys, outer, private) \
	create_foreignscan_path(root, rel, NULL, rows, startup, total, pathkeys, outer, NULL, NIL, private)
#else
#define MotCreateForeignScanPath(root, rel, rows, disabled, startup, total, pathkeys, outer, private) \
	create_foreignscan_path(root, rel, NULL, rows, startup, total, pathkeys, outer, NULL, private)
#endif

/* a clause that says less than "rinfo", at the same place */
#if PG_VERSION_NUM >= 160000
#define MotMakeRestrictInfoLike(root, clause, rinfo) \
	make_restrictinfo(root, clause, (rinfo)->is_pushed_down, (rinfo)->has_clone, (rinfo)->is_clone, false, \
					  (rinfo)->security_level, (rinfo)->required_relids, (rinfo)->incompatible_relids, \
					  (rinfo)->outer_relids)
#define MotAdjustToChild(root, node, child) \
	adjust_appendrel_attrs_multilevel(root, node, child, (child)->top_parent)
#else
#define MotMakeRestrictInfoLike(root, clause, rinfo) \
	make_restrictinfo(root, clause, (rinfo)->is_pushed_down, (rinfo)->outerjoin_delayed, false, \
					  (rinfo)->security_level, (rinfo)->required_relids, (rinfo)->outer_relids, \
					  (rinfo)->nullable_relids)
#define MotAdjustToChild(root, node, child) \
	adjust_appendrel_attrs_multilevel(root, node, (child)->relids, (child)->top_parent_relids)
#endif

/* ----------------------------------------------------------------- indexes */

#if PG_VERSION_NUM >= 180000
#define MotGetPrimaryKeyIndex(rel) RelationGetPrimaryKeyIndex(rel, true)
#define MotIndexBeginScan(rel, index, snapshot) index_beginscan(rel, index, snapshot, NULL, 0, 0)
#else
#define MotGetPrimaryKeyIndex(rel) RelationGetPrimaryKeyIndex(rel)
#define MotIndexBeginScan(rel, index, snapshot) index_beginscan(rel, index, snapshot, 0, 0)
#endif

/* The catalogue's entries of an index, for which the caller has looked whether the table is in use. */
#if PG_VERSION_NUM >= 160000
#define MotDefineIndexUnbuilt(relid, stmt, check_rights) \
	DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1, true, check_rights, false, true, true)
#else
#define MotDefineIndexUnbuilt(relid, stmt, check_rights) \
	DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, true, check_rights, false, true, true)
#endif

/* what parse analysis has made of a table's constraints, without its keys */
#if PG_VERSION_NUM >= 180000
#define MotCreateConstraints(stmt) list_concat((stmt)->nnconstraints, (stmt)->constraints)
#else
#define MotCreateConstraints(stmt) ((stmt)->constraints)
#endif

/* a routine whose operators are ordered as btree's: what the server asks the method itself from 18 on */
#if PG_VERSION_NUM >= 180000
#define MotIndexAmIsOrdered(am) \
	((am)->amconsistentequality = (am)->amconsistentordering = true, \
	 (am)->amtranslatestrategy = bttranslatestrategy, \
	 (am)->amtranslatecmptype = bttranslatecmptype)
#else
#define MotIndexAmIsOrdered(am) ((void) 0)
#endif

/* Are strings ordered as their bytes? */
#if PG_VERSION_NUM >= 180000
#define MotCollationIsC(collation) (pg_newlocale_from_collation(collation)->collate_is_c)
#else
#define MotCollationIsC(collation) lc_collate_is_c(collation)
#endif

/* a range of an index is gone to, as EXPLAIN (ANALYZE) shows it */
#if PG_VERSION_NUM >= 180000
#define MotCountIndexSearch(scan) ((void) ((scan)->instrument != NULL && (scan)->instrument->nsearches++))
#else
#define MotCountIndexSearch(scan) ((void) (scan))
#endif

/* ------------------------------------------------------------- maintenance */

/* this very mode, whatever else is held */
#if PG_VERSION_NUM >= 170000
#define MotLockHeldByMe(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define MotLockHeldByMe(tag, mode) LockHeldByMe(tag, mode)
#endif

#if PG_VERSION_NUM >= 180000
#define MotVacUpdateRelstats(rel, pages, rows) \
	do { \
		bool		updated_; \
		vac_update_relstats(rel, pages, rows, 0, 0, (rel)->rd_rel->relhasindex, InvalidTransactionId, \
							InvalidMultiXactId, &updated_, &updated_, false); \
	} while (0)
#define MotReportVacuum(rel, rows, since) \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, rows, 0, since)
#define MotAnalyzeDelayPoint() vacuum_delay_point(true)
#else
#define MotVacUpdateRelstats(rel, pages, rows) \
	do { \
		bool		updated_; \
		vac_update_relstats(rel, pages, rows, 0, (rel)->rd_rel->relhasindex, InvalidTransactionId, \
							InvalidMultiXactId, &updated_, &updated_, false); \
	} while (0)
#define MotReportVacuum(rel, rows, since) \
	((void) (since), pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, rows, 0))
#define MotAnalyzeDelayPoint() vacuum_delay_point()
#endif

/* may the user vacuum it, or analyze (he is told if not) */
#if PG_VERSION_NUM >= 170000
#define MotMayVacuum(relid, form, options) vacuum_is_permitted_for_relation(relid, form, options)
#else
#define MotMayVacuum(relid, form, options) vacuum_is_relation_owner(relid, form, options)
#endif

/* what statistics count of a table or an index */
#if PG_VERSION_NUM >= 160000
#define MotCountScans(rel, scans, returned, fetched) \
	((rel)->pgstat_info->counts.numscans += (scans), \
	 (rel)->pgstat_info->counts.tuples_returned += (returned), \
	 (rel)->pgstat_info->counts.tuples_fetched += (fetched))
#else
#define MotCountScans(rel, scans, returned, fetched) \
	((rel)->pgstat_info->t_counts.t_numscans += (scans), \
	 (rel)->pgstat_info->t_counts.t_tuples_returned += (returned), \
	 (rel)->pgstat_info->t_counts.t_tuples_fetched += (fetched))
#endif

#if PG_VERSION_NUM >= 160000
#define MotCountUpdate(rel) pgstat_count_heap_update(rel, false, false)
#else
#define MotCountUpdate(rel) pgstat_count_heap_update(rel, false)
#endif

/* ---------------------------------------------- replication, recovery, wire */

/* what "old snapshot too old" wanted to know of a snapshot, as long as there was that */
#if PG_VERSION_NUM >= 180000
#define MotSnapshotTimes(target, source) ((void) 0)
#else
#define MotSnapshotTimes(target, source) \
	((target)->lsn = (source)->lsn, (target)->whenTaken = (source)->whenTaken)
#endif

/* background workers that the postmaster knows */
#if PG_VERSION_NUM >= 180000
#define MotWorkerIter dlist_iter
#define MotForEachWorker(iter) dlist_foreach(iter, &BackgroundWorkerList)
#define MotWorkerOf(iter) dlist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
#else
#define MotWorkerIter slist_iter
#define MotForEachWorker(iter) slist_foreach(iter, &BackgroundWorkerList)
#define MotWorkerOf(iter) slist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
#endif

#if PG_VERSION_NUM >= 170000
#define MotSlotCreate(name) ReplicationSlotCreate(name, false, RS_EPHEMERAL, false, false, false)
#define MotSendCountedText(buf, text, len) pq_sendcountedtext(buf, text, len)
#else
#define MotSlotCreate(name) ReplicationSlotCreate(name, false, RS_EPHEMERAL, false)
#define MotSendCountedText(buf, text, len) pq_sendcountedtext(buf, text, len, false)
#endif

/* invalidated by max_slot_wal_keep_size, or because nobody has used it for long: it keeps nothing */
#if PG_VERSION_NUM >= 160000
#define MotSlotIsInvalid(slot) \
	(XLogRecPtrIsInvalid((slot)->data.restart_lsn) || (slot)->data.invalidated != RS_INVAL_NONE)
#else
#define MotSlotIsInvalid(slot) XLogRecPtrIsInvalid((slot)->data.restart_lsn)
#endif

/* (also one that has been invalidated) */
#if PG_VERSION_NUM >= 180000
#define MotSlotAcquire(name) ReplicationSlotAcquire(name, true, false)
#else
#define MotSlotAcquire(name) ReplicationSlotAcquire(name, true)
#endif

/* queries of all databases whose snapshots are as old */
#if PG_VERSION_NUM >= 160000
#define MotConflictWithSnapshots(xid) \
	ResolveRecoveryConflictWithSnapshot(xid, false, (RelFileLocator) {InvalidOid, InvalidOid, InvalidRelFileNumber})
#define MotLocalBackend(i) pgstat_get_local_beentry_by_index(i)
#else
#define MotConflictWithSnapshots(xid) \
	ResolveRecoveryConflictWithSnapshot(xid, (RelFileNode) {InvalidOid, InvalidOid, InvalidOid})
#define MotLocalBackend(i) pgstat_fetch_stat_local_beentry(i)
#endif

#endif							/* MOT_CALLS_H */
