/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  The executor's hash tables, as far as they are used without its nodes.
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

/* of an aggregate's table: what the server's limit is compared with */
#if PG_VERSION_NUM >= 190000
#define MotHashAggMemory(agg) \
	(MemoryContextMemAllocated((agg)->hash_metacxt, true) + \
	 MemoryContextMemAllocated((agg)->hash_tuplescxt, true) + \
	 MemoryContextMemAllocated((agg)->hashcontext->ecxt_per_tuple_memory, true))
#elif PG_VERSION_NUM >= 180000
#define MotHashAggMemory(agg) \
	(MemoryContextMemAllocated((agg)->hash_metacxt, true) + \
	 MemoryContextMemAllocated((agg)->hash_tablecxt, true) + \
	 MemoryContextMemAllocated((agg)->hashcontext->ecxt_per_tuple_memory, true))
#else
#define MotHashAggMemory(agg) \
	(MemoryContextMemAllocated((agg)->hash_metacxt, true) + \
	 MemoryContextMemAllocated((agg)->hashcontext->ecxt_per_tuple_memory, true))
#endif

/* a hash function by the name of the one that gives the same for the same bits */
#if PG_VERSION_NUM >= 180000
#define MotHashesAs(function) \
	((function) == F_HASHDATE ? F_HASHINT4 : (function) == F_TIMESTAMPTZ_HASH ? F_TIMESTAMP_HASH : (function))
#else
#define MotHashesAs(function) (function)
#endif

/*
 * joins that show rows of the table: those that have no partner (16), each that has one once (18)
 */
#if PG_VERSION_NUM >= 160000
#define MotIsRightAnti(jointype) ((jointype) == JOIN_RIGHT_ANTI)
#else
#define MotIsRightAnti(jointype) false
#endif
#if PG_VERSION_NUM >= 180000
#define MotIsRightSemi(jointype) ((jointype) == JOIN_RIGHT_SEMI)
#else
#define MotIsRightSemi(jointype) false
#endif

/*
 * Does a join put rows with null keys aside, to show them when it has been through the others (19)?
 * Then what comes behind the last outer row of a batch is the server's node to know.
 */
#define MOT_HASH_KEEPS_NULLS (PG_VERSION_NUM >= 190000)

/* from PostgreSQL 16 on the files of a join's batches are in memory of the table's */
#if PG_VERSION_NUM >= 160000
#define MotHashSaveTuple(tuple, hash, file, table) ExecHashJoinSaveTuple(tuple, hash, file, table)
#else
#define MotHashSaveTuple(tuple, hash, file, table) ExecHashJoinSaveTuple(tuple, hash, file)
#endif

#endif							/* MOT_HASH_H */
