/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  The executor's hash tables, as far as they are used without its nodes.
 *
 * From PostgreSQL 18 on an expression computes the hash of a join's row, and there are no
 * functions for each key to be called: joins are left to the server then.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_HASH_H
#define MOT_HASH_H

#include "postgres.h"

#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "executor/nodeHashjoin.h"

/* where the aggregates' states of a new group are */
#if PG_VERSION_NUM >= 180000
#define MotHashStatesNew(table, entry, size) TupleHashEntryGetAdditional(table, entry)
#define MotHashStates(table, entry) TupleHashEntryGetAdditional(table, entry)
#else
#define MotHashStatesNew(table, entry, size) ((entry)->additional = palloc(size))
#define MotHashStates(table, entry) ((entry)->additional)
#endif

/* a join's keys, as the outer rows have them */
#if PG_VERSION_NUM >= 180000
#define MOT_HASH_KEYS_KNOWN false
#define MotHashOuterKeys(node) NIL
#define MotHashFunction(table, i) ((FmgrInfo *) NULL)
#define MotHashFunctionOid(table, i) InvalidOid
#define MotHashCollation(table, i) InvalidOid
#define MotHashIsStrict(table, i) true
#else
#define MOT_HASH_KEYS_KNOWN true
#define MotHashOuterKeys(node) ((node)->hj_OuterHashKeys)
#define MotHashFunction(table, i) (&(table)->outer_hashfunctions[i])
#define MotHashFunctionOid(table, i) ((table)->outer_hashfunctions[i].fn_oid)
#define MotHashCollation(table, i) ((table)->collations[i])
#define MotHashIsStrict(table, i) ((table)->hashStrict[i])
#endif

/* from PostgreSQL 16 on the files of a join's batches are in memory of the table's */
#if PG_VERSION_NUM >= 160000
#define MotHashSaveTuple(tuple, hash, file, table) ExecHashJoinSaveTuple(tuple, hash, file, table)
#else
#define MotHashSaveTuple(tuple, hash, file, table) ExecHashJoinSaveTuple(tuple, hash, file)
#endif

#endif							/* MOT_HASH_H */
