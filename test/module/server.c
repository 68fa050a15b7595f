/*-------------------------------------------------------------------------
 *
 * server.c
 *	  What tests ask of a server, and do to it, that SQL cannot.
 *
 *	mot_test_object_bytes()		of the engine's memory, in objects
 *	mot_test_put_back(table)	see there
 *	mot_test_advance_xid(n)		see there; in a build with MOT_FAULTS
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "fmgr.h"
#include "mot.h"
#include "relation/relation.h"
#include "storage/lwlock.h"
#include "utils/relcache.h"

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
