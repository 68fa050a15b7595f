/*-------------------------------------------------------------------------
 *
 * server.c
 *	  What tests ask of a server, and do to it, that SQL cannot.
 *
 *	mot_test_object_bytes()		of the engine's memory, in objects
 *	mot_test_put_back(table)	see there
 *	mot_test_only_owner(table)	see there
 *	mot_test_advance_xid(n)		see there; in a build with MOT_FAULTS
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "mot.h"
#include "relation/relation.h"
#include "storage/lwlock.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(mot_test_object_bytes);

Datum
mot_test_object_bytes(PG_FUNCTION_ARGS)
{
	return Int64GetDatum((int64) mot_object_bytes(MotEngineRequired()));
}

/*
 * Take the routines out of an ordinary table's indexes, as if the server had made their
 * relation cache entries anew and told nobody.
 */
PG_FUNCTION_INFO_V1(mot_test_put_back);

Datum
mot_test_put_back(PG_FUNCTION_ARGS)
{
	Relation	rel = RelationIdGetRelation(PG_GETARG_OID(0));

	MotIndexesPutBack(rel);
	RelationClose(rel);
	PG_RETURN_VOID();
}

/*
 * Only the owner has privileges on the table any more, from the transaction's next command on: which
 * functions that change catalogs may leave to whoever comes next.
 */
PG_FUNCTION_INFO_V1(mot_test_only_owner);

Datum
mot_test_only_owner(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, PG_GETARG_DATUM(0));
	Datum		values[Natts_pg_class] = {0};
	bool		isnull[Natts_pg_class] = {0};
	bool		replaced[Natts_pg_class] = {0};

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "no table %u", PG_GETARG_OID(0));
	isnull[Anum_pg_class_relacl - 1] = replaced[Anum_pg_class_relacl - 1] = true;
	tuple = heap_modify_tuple(tuple, RelationGetDescr(rel), values, isnull, replaced);
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	table_close(rel, RowExclusiveLock);
	PG_RETURN_INT32(1);
}

#ifdef MOT_FAULTS

/*
 * As if so many transactions more had taken an xid, and a few: the next one is
 * the first in its page of the commit log, which the server then makes.
 */
PG_FUNCTION_INFO_V1(mot_test_advance_xid);

Datum
mot_test_advance_xid(PG_FUNCTION_ARGS)
{
	const uint64 page = BLCKSZ * 4;
	uint64		next;

	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	LWLockAcquire(XidGenLock, LW_EXCLUSIVE);
	next = U64FromFullTransactionId(TransamVariables->nextXid) + PG_GETARG_INT64(0);
	next = (next / page + 1) * page;
	if ((TransactionId) next == 0)
		next += page;
	TransamVariables->nextXid = FullTransactionIdFromU64(next);
	TransamVariables->latestCompletedXid = FullTransactionIdFromU64(next - 1);
	LWLockRelease(XidGenLock);
	LWLockRelease(ProcArrayLock);
	PG_RETURN_VOID();
}

#endif							/* MOT_FAULTS */
