/*-------------------------------------------------------------------------
 *
 * names.h
 *	  Names that differ between server versions.
 *
 * What a later server calls otherwise is called by its later name here, and an earlier
 * server's is given that.  (mot.h includes this.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_NAMES_H
#define MOT_NAMES_H

#include "postgres.h"

#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "utils/relfilenumbermap.h"
#include "varatt.h"
#else
#include "storage/relfilenode.h"
#include "utils/relfilenodemap.h"

typedef RelFileNode RelFileLocator;
typedef Oid RelFileNumber;
#define InvalidRelFileNumber InvalidOid
#define spcOid spcNode
#define dbOid dbNode
#define relNumber relNode
#define rd_locator rd_node
#define rd_newRelfilelocatorSubid rd_newRelfilenodeSubid
#define relation_set_new_filelocator relation_set_new_filenode
#define table_relation_set_new_filelocator table_relation_set_new_filenode
#define RelidByRelfilenumber RelidByRelfilenode
#define ExecAggCopyTransValue ExecAggTransReparent
#endif

/* PG_TEMP_FILE_PREFIX */
#if PG_VERSION_NUM >= 170000
#include "common/file_utils.h"
#else
#include "storage/fd.h"

#define AmBackgroundWorkerProcess() IsBackgroundWorker
#define TransamVariables ShmemVariableCache
#define INVALID_PROC_NUMBER InvalidBackendId
#endif

#ifndef pg_attribute_noreturn
#define pg_attribute_noreturn() __attribute__((noreturn))
#endif

#if PG_VERSION_NUM < 180000
#define ProcessStartupProcInterrupts HandleStartupProcInterrupts
typedef int16 CompareType;
#define COMPARE_GT BTGreaterStrategyNumber
#endif

/* CLUSTER and VACUUM FULL have become REPACK; ON CONFLICT has an action more */
#if PG_VERSION_NUM < 190000
#define RepackStmt ClusterStmt
#define T_RepackStmt T_ClusterStmt
#define PROGRESS_COMMAND_REPACK PROGRESS_COMMAND_CLUSTER
#define PROGRESS_REPACK_PHASE PROGRESS_CLUSTER_PHASE
#define PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP
#define PROGRESS_REPACK_HEAP_TUPLES_INSERTED PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
#define PROGRESS_REPACK_TOTAL_HEAP_BLKS PROGRESS_CLUSTER_TOTAL_HEAP_BLKS
#define PROGRESS_REPACK_HEAP_BLKS_SCANNED PROGRESS_CLUSTER_HEAP_BLKS_SCANNED
#define OnConflictActionState OnConflictSetState
#define T_OnConflictActionState T_OnConflictSetState
#define query_instr totaltime
#define PG_SIG_IGN SIG_IGN
#define CHECKPOINT_FAST CHECKPOINT_IMMEDIATE
#endif

/* whose changes are applied by this process, or 0 */
#if PG_VERSION_NUM >= 190000
#define MotReplicationOrigin() (replorigin_xact_state.origin)
#else
#define MotReplicationOrigin() (replorigin_session_origin)
#endif

#endif							/* MOT_NAMES_H */
