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

/*
 * rows of an execution: of the run at hand, and from 16 on of all its runs, which
 * pg_stat_statements shows
 */
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
#define MotExecutorRun(query, count) ExecutorRun(query, ForwardScanDirection, count)
#else
#define MOT_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define MOT_RUN_ARGUMENTS query, direction, count, execute_once
#define MotRunOnce(query) (execute_once && (query)->already_executed)
#define MotExecutorRun(query, count) ExecutorRun(query, ForwardScanDirection, count, true)
#endif

/*
 * What is measured of a whole query: from 19 on a module says in advance what it wants, and whoever
 * starts the query has it ready.
 */
#if PG_VERSION_NUM >= 190000
#define MotQueryIsMeasured(query) unlikely((query)->query_instr_options != 0)
#define MotQueryInstrument(query) InstrAlloc((query)->query_instr_options)
#define MotInstrStart(instr) InstrStart(instr)
#define MotInstrStop(instr, rows) InstrStop(instr)
#else
#define MotQueryIsMeasured(query) false
#define MotQueryInstrument(query) NULL
#define MotInstrStart(instr) InstrStartNode(instr)
#define MotInstrStop(instr, rows) InstrStopNode(instr, rows)
#endif

/* flags say what the server may take for granted of the rows that a slot shows: nothing */
#if PG_VERSION_NUM >= 190000
#define MotMakeTupleTableSlot(desc, ops) MakeTupleTableSlot(desc, ops, 0)
#else
#define MotMakeTupleTableSlot(desc, ops) MakeTupleTableSlot(desc, ops)
#endif

/* where the hash tables of a sub-select are; NULL: it has none */
#if PG_VERSION_NUM >= 190000
#define MotSubPlanHashes(subplan) ((subplan)->tuplesContext)
#define MotSubPlanHashesReset(subplan) MemoryContextReset((subplan)->tuplesContext)
#else
#define MotSubPlanHashes(subplan) ((subplan)->hashtablecxt)
#define MotSubPlanHashesReset(subplan) \
	(MemoryContextReset((subplan)->hashtablecxt), MemoryContextReset((subplan)->hashtempcxt))
#endif

/* ON CONFLICT DO SELECT */
#if PG_VERSION_NUM >= 190000
#define MotConflictSelects(plan) ((plan)->onConflictAction == ONCONFLICT_SELECT)
#else
#define MotConflictSelects(plan) false
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
 * a slot's own members: bool own(TupleTableSlot *) says whether the current transaction has made
 * the row (before 17 its xmin is looked at)
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

/* Is a sum of 64-bit integers serialized as 128 bits (19), and not as a decimal number? */
#define MOT_INTEGER_SUMS_ARE_BINARY (PG_VERSION_NUM >= 190000)

/* what analysis of a query has found of its constants is nobody's to change */
#if PG_VERSION_NUM >= 190000
#define MotJumbleState const JumbleState
#else
#define MotJumbleState JumbleState
#endif

/* COPY's format */
#if PG_VERSION_NUM >= 190000
#define MotCopyIsBinary(options) ((options).format == COPY_FORMAT_BINARY)
#else
#define MotCopyIsBinary(options) ((options).binary)
#endif

/* ----------------------------------------------------------------- planner */

#if PG_VERSION_NUM >= 190000
#define MotPgPlanQuery(query, string, options, params) pg_plan_query(query, string, options, params, NULL)
#else
#define MotPgPlanQuery(query, string, options, params) pg_plan_query(query, string, options, params)
#endif

/* a plan that only says what it is of: who executes it has another one */
#if PG_VERSION_NUM >= 160000
#define MotPlanWithoutPermissions(stmt) ((stmt)->permInfos = NIL)
#else
#define MotPlanWithoutPermissions(stmt) ((void) 0)
#endif

/* what planner_hook takes, and hands on */
#if PG_VERSION_NUM >= 190000
#define MOT_PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursor_options, ParamListInfo params, ExplainState *es
#define MOT_PLANNER_ARGUMENTS parse, query_string, cursor_options, params, es
#else
#define MOT_PLANNER_PARAMETERS Query *parse, const char *query_string, int cursor_options, ParamListInfo params
#define MOT_PLANNER_ARGUMENTS parse, query_string, cursor_options, params
#endif

/*
 * The hook that is called when the planner has learned of a table, and its indexes: what it takes,
 * and hands on.  (From 19 on it is called for all that a query reads, and what is no table has no
 * oid.)
 */
#if PG_VERSION_NUM >= 190000
#define MotRelationInfoHook build_simple_rel_hook
#define MotRelationInfoHookType build_simple_rel_hook_type
#define MOT_RELATION_INFO_PARAMETERS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define MOT_RELATION_INFO_ARGUMENTS root, rel, rte
#define MotRelationInfoOid() ((rte)->rtekind == RTE_RELATION ? (rte)->relid : InvalidOid)
#define MotRelationInfoInherits() ((rte)->inh)
#else
#define MotRelationInfoHook get_relation_info_hook
#define MotRelationInfoHookType get_relation_info_hook_type
#define MOT_RELATION_INFO_PARAMETERS PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define MOT_RELATION_INFO_ARGUMENTS root, relid, inhparent, rel
#define MotRelationInfoOid() (relid)
#define MotRelationInfoInherits() (inhparent)
#endif

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
#if PG_VERSION_NUM >= 190000
#define MotIndexBeginScan(rel, index, snapshot) index_beginscan(rel, index, snapshot, NULL, 0, 0, SO_NONE)
#else
#define MotIndexBeginScan(rel, index, snapshot) index_beginscan(rel, index, snapshot, NULL, 0, 0)
#endif
#else
#define MotGetPrimaryKeyIndex(rel) RelationGetPrimaryKeyIndex(rel)
#define MotIndexBeginScan(rel, index, snapshot) index_beginscan(rel, index, snapshot, 0, 0)
#endif

/*
 * The catalogue's entries of an index, for which the caller has looked whether the table is in use.
 */
#if PG_VERSION_NUM >= 190000
#define MotDefineIndexUnbuilt(relid, stmt, check_rights) \
	DefineIndex(NULL, relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1, true, check_rights, false, true, true)
#elif PG_VERSION_NUM >= 160000
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

/*
 * a routine whose operators are ordered as btree's: what the server asks the method itself from 18
 * on
 */
#if PG_VERSION_NUM >= 180000
#define MotIndexAmIsOrdered(am) \
	((am)->amconsistentequality = (am)->amconsistentordering = true, \
	 (am)->amtranslatestrategy = bttranslatestrategy, \
	 (am)->amtranslatecmptype = bttranslatecmptype)
#else
#define MotIndexAmIsOrdered(am) ((void) 0)
#endif

/* Does the server keep the routine that an access method gives it (19), or a copy? */
#define MOT_INDEX_ROUTINE_IS_KEPT (PG_VERSION_NUM >= 190000)

/* a range of an index is gone to, as EXPLAIN (ANALYZE) shows it */
#if PG_VERSION_NUM >= 180000
#define MotCountIndexSearch(scan) ((void) ((scan)->instrument != NULL && (scan)->instrument->nsearches++))
#else
#define MotCountIndexSearch(scan) ((void) (scan))
#endif

/* ------------------------------------------------------------- maintenance */

/* the table of CLUSTER, or REPACK (19); NULL: all */
#if PG_VERSION_NUM >= 190000
#define MotRepackRelation(stmt) ((stmt)->relation != NULL ? (stmt)->relation->relation : NULL)
#define MotRepackVerb(stmt) ((stmt)->command == REPACK_COMMAND_REPACK ? "repack" : "cluster")
#else
#define MotRepackRelation(stmt) ((stmt)->relation)
#define MotRepackVerb(stmt) "cluster"
#endif

#if PG_VERSION_NUM >= 190000
#define MotDomainHasConstraints(type) DomainHasConstraints(type, NULL)
#else
#define MotDomainHasConstraints(type) DomainHasConstraints(type)
#endif

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
#if PG_VERSION_NUM >= 190000
#define MotReportVacuum(rel, rows, since) pgstat_report_vacuum(rel, rows, 0, since)
#else
#define MotReportVacuum(rel, rows, since) \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, rows, 0, since)
#endif
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

#if PG_VERSION_NUM >= 190000
#define MotSlotCreate(name) ReplicationSlotCreate(name, false, RS_EPHEMERAL, false, false, false, false)
#elif PG_VERSION_NUM >= 170000
#define MotSlotCreate(name) ReplicationSlotCreate(name, false, RS_EPHEMERAL, false, false, false)
#endif
#if PG_VERSION_NUM >= 170000
#define MotSendCountedText(buf, text, len) pq_sendcountedtext(buf, text, len)
#else
#define MotSlotCreate(name) ReplicationSlotCreate(name, false, RS_EPHEMERAL, false)
#define MotSendCountedText(buf, text, len) pq_sendcountedtext(buf, text, len, false)
#endif

/*
 * A slot that a process which ends has marked as in use.  From 19 on the mark is a process's
 * number, which another process may get; and that drops, at an error or its end, what it finds to
 * be its own.  So the number is the last one, which nobody gets (all auxiliary processes at once
 * would have to be there).
 */
#if PG_VERSION_NUM >= 190000
#define MOT_NOBODY ((ProcNumber) (MotProcessSlots() - 1))
#define MotSlotInUse(slot) ((slot)->active_proc != INVALID_PROC_NUMBER)
#define MotSlotMark(slot) ((slot)->active_proc = MOT_NOBODY)
#define MotSlotIsMarkedBy(slot, pid) ((void) (pid), (slot)->active_proc == MOT_NOBODY)
#define MotSlotUnmark(slot) ((slot)->active_proc = INVALID_PROC_NUMBER)
#else
#define MotSlotInUse(slot) ((slot)->active_pid != 0)
#define MotSlotMark(slot) ((slot)->active_pid = MyProcPid)
#define MotSlotIsMarkedBy(slot, pid) ((slot)->active_pid == (pid))
#define MotSlotUnmark(slot) ((slot)->active_pid = 0)
#endif

/* the first record from a place on (what is wrong there the reader knows, too) */
#if PG_VERSION_NUM >= 190000
#define MotXLogFindNextRecord(reader, from) XLogFindNextRecord(reader, from, &(char *) {NULL})
#else
#define MotXLogFindNextRecord(reader, from) XLogFindNextRecord(reader, from)
#endif

/*
 * invalidated by max_slot_wal_keep_size, or because nobody has used it for long: it keeps nothing
 */
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

/* a client's, by its Execute */
#if PG_VERSION_NUM >= 180000
#define MotRunPortal(portal, rows, receiver, qc) PortalRun(portal, rows, true, receiver, receiver, qc)
#else
#define MotRunPortal(portal, rows, receiver, qc) PortalRun(portal, rows, true, true, receiver, receiver, qc)
#endif

/* 0: none (whoever asks includes storage/proc.h) */
#if PG_VERSION_NUM >= 170000
#define MotTransactionTimeout() TransactionTimeout
#else
#define MotTransactionTimeout() 0
#endif

/* this session's transaction, for as long as it lasts (whoever asks includes storage/proc.h) */
#if PG_VERSION_NUM >= 170000
#define MotLocalTransaction() (MyProc->vxid.lxid)
#else
#define MotLocalTransaction() (MyProc->lxid)
#endif

#endif							/* MOT_CALLS_H */
