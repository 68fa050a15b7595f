/*-------------------------------------------------------------------------
 *
 * handler.c
 *	  The foreign data wrapper's entry points: its handler, and the validator
 *	  of its options.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "fdw/fdw.h"
#include "fmgr.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(mot_fdw_handler);
PG_FUNCTION_INFO_V1(mot_fdw_validator);

PGDLLEXPORT Datum mot_fdw_handler(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum mot_fdw_validator(PG_FUNCTION_ARGS);

void
MotFdwInit(void)
{
	MotPlanInit();
	MotScrollInit();
}

/*
 * No ExecForeignBatchInsert.  For it the server copies each row twice, as the
 * table's and as the plan's, which costs more (by a fifth of INSERT ...
 * SELECT's instructions, into a table with one key) than batches save.  Nor
 * would it be right: a volatile function anywhere in the query, or in a CHECK
 * constraint, has to find the rows inserted before, as it does in a heap
 * table.  COPY has its own batches: see copy.c.
 *
 * No IsForeignScanParallelSafe: the leader scans.
 */
Datum
mot_fdw_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = MotGetForeignRelSize;
	routine->GetForeignPaths = MotGetForeignPaths;
	routine->GetForeignPlan = MotGetForeignPlan;
	routine->GetForeignUpperPaths = MotGetForeignUpperPaths;
	routine->ReparameterizeForeignPathByChild = MotReparameterize;

	routine->BeginForeignScan = MotBeginForeignScan;
	routine->IterateForeignScan = MotIterateForeignScan;
	routine->RecheckForeignScan = MotRecheckForeignScan;
	routine->ReScanForeignScan = MotReScanForeignScan;
	routine->EndForeignScan = MotEndForeignScan;

	routine->AddForeignUpdateTargets = MotAddForeignUpdateTargets;
	routine->PlanForeignModify = MotPlanForeignModify;
	routine->BeginForeignModify = MotBeginForeignModify;
	routine->ExecForeignInsert = MotExecForeignInsert;
	routine->ExecForeignUpdate = MotExecForeignUpdate;
	routine->ExecForeignDelete = MotExecForeignDelete;
	routine->EndForeignModify = MotEndForeignModify;
	routine->BeginForeignInsert = MotBeginForeignInsert;
	routine->EndForeignInsert = MotEndForeignInsert;

	routine->PlanDirectModify = MotPlanDirectModify;
	routine->BeginDirectModify = MotBeginDirectModify;
	routine->IterateDirectModify = MotIterateDirectModify;
	routine->EndDirectModify = MotEndForeignScan;

	routine->GetForeignRowMarkType = MotGetForeignRowMarkType;
	routine->RefetchForeignRow = MotRefetchForeignRow;

	routine->ExplainForeignScan = MotExplainForeignScan;
	routine->ExplainDirectModify = MotExplainForeignScan;
	routine->ExplainForeignModify = MotExplainForeignModify;

	routine->AnalyzeForeignTable = MotAnalyzeForeignTable;
	routine->ExecForeignTruncate = MotExecForeignTruncate;

	PG_RETURN_POINTER(routine);
}

/*
 * Options.  The only one is a table's max_size: an amount of memory, "512MB",
 * that its rows and indexes may take.
 */
Datum
mot_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);

	foreach_ptr(DefElem, def, options)
	{
		if (catalog == ForeignTableRelationId && strcmp(def->defname, "max_size") == 0)
		{
			const char *hint = NULL;
			double		bytes;

			if (!parse_real(defGetString(def), &bytes, GUC_UNIT_BYTE, &hint) || bytes < 0)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
						 errmsg("invalid value for option \"%s\": \"%s\"",
								def->defname, defGetString(def)),
						 hint ? errhint("%s", hint) : 0));
			continue;
		}
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", def->defname),
				 catalog == ForeignTableRelationId ?
				 errhint("Valid options in this context are: %s", "max_size") :
				 errhint("There are no valid options in this context.")));
	}
	PG_RETURN_VOID();
}
