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
#endif

#endif							/* MOT_NAMES_H */
