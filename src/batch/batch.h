/*-------------------------------------------------------------------------
 *
 * batch.h
 *	  Grouping and joining many rows: the input phase of the server's aggregate
 *	  nodes, and looking rows up in its hash joins.
 *
 * A report goes through many rows and hands out few.  Of what the server's Agg
 * node does for each row, most is finding the group (a slot is filled, hash and
 * comparison functions are called through their prepared expressions) and calling
 * transition functions that are an addition.  So nodes above memory-optimized
 * tables get their input phase from us: we pull the rows, find each one's group
 * by the bytes of its keys, and add up in machine words.  All that comes
 * after is the server's: its node is called when the input has been taken in, and finds its own
 * hash table filled with transition states as its own functions would have left them.
 * So HAVING, final functions, partial aggregates of parallel workers, sub-queries,
 * rescans and EXPLAIN (ANALYZE) are as ever.
 *
 *	takeover.c	which nodes, and what EXPLAIN (VERBOSE) says of them
 *	aggregate.c	the input phase of an Agg node
 *	transition.c	an aggregate's transition
 *	compile.c	keys and transitions by machine code
 *	rows.c		scans: rows where they lie, conditions by machine code
 *	group.c		from a row's keys to its group
 *	probe.c		hash joins: looking rows up in the server's table
 *	decimal.c	numeric as integers; sums of it, and back to the server's states
 *
 * Rows are taken one by one, in the server's order, as to what is evaluated: filter, keys,
 * then each aggregate's FILTER and arguments.  So what is evaluated raises the
 * same error at the same row, and functions with side effects have them in the same order.
 *
 * Memory: a group is made in the server's table at once, and the server's limits
 * are asked for each new one.  When they are reached, our states become the
 * server's, and its own node goes on with the next row, as if it had taken in
 * all before; what it spills is its matter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_BATCH_H
#define MOT_BATCH_H

#include "mot.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "statement/jit.h"

/* fewer rows than these, by the plan, are left to the server's nodes */
#define MOT_BATCH_MIN_ROWS 100

/* A node that has been taken over. */
typedef struct MotTakenNode
{
	struct MotTakenNode *next;
	PlanState  *ps;
	ExecProcNodeMtd below;		/* the server's own function */
	bool		hidden;			/* below a node that shows other rows: WHERE
								 * CURRENT OF does not ask for its own */
	struct MotFill *fill;		/* made when rows are asked for first */
	struct MotProbe *probe;		/* likewise */
	struct MotRows *rows;		/* likewise */
	MemoryContextCallback gone;
} MotTakenNode;

/* takeover.c */
extern MotTakenNode *MotTakenFind(PlanState *ps);

/* aggregate.c */
extern const char *MotFillWhyNot(const AggState *agg);
extern TupleTableSlot *MotFillAgg(PlanState *ps);

/* compile.c */
extern int	mot_jit_above_scanned;

extern const char *MotCodeWhyNot(double rows);
extern const char *MotCodeWhyNotNow(double rows);
extern bool MotHasParameters(Node *node);
extern const char *MotFillCodeWhyNot(const AggState *agg, const struct MotFill *fill);

/* rows.c */
typedef struct MotRows MotRows;

extern bool MotRowsCan(const PlanState *ps);
extern MotRows *MotRowsMake(PlanState *ps);
extern void MotRowsStart(MotRows *rows);
extern const mot_version *MotRowsNext(MotRows *rows);
extern TupleTableSlot *MotRowsShow(MotRows *rows, const mot_version *version);
extern bool MotRowsAreOurs(const PlanState *ps);
extern const char *MotRowsWhyNot(const PlanState *ps);
extern TupleTableSlot *MotRowsScan(PlanState *ps);
extern const char *MotRowsCodeWhyNot(const PlanState *ps, const MotRows *rows);

/* probe.c */
extern Var *MotVarOf(Node *expr, int varno);
extern const char *MotProbeWhyNot(const HashJoinState *node);
extern TupleTableSlot *MotProbeHashJoin(PlanState *ps);
extern const char *MotProbeCodeWhyNot(HashJoinState *node, struct MotProbe *probe);

/* group.c */
typedef struct MotGroups MotGroups;

#define MOT_MAX_KEYS 32

extern const char *MotKeysWhyNot(const AggState *agg);
extern MotGroups *MotGroupsMake(AggState *agg, Size extra);
extern void MotGroupsAsk(const MotGroups *groups, MotRowRequest *request);
extern void MotGroupsStart(MotGroups *groups);
extern void MotGroupsEnd(MotGroups *groups);
extern void MotGroupsPlace(MotGroups *groups, const int *position);
extern MotGroup *MotGroupFind(MotGroups *groups, const Datum *values, const bool *isnull);
extern MotGroup *MotGroupMake(MotGroups *groups, TupleTableSlot *slot);
extern void MotGroupsEach(MotGroups *groups, void (*visit) (MotGroup *group, void *arg), void *arg);
extern uint64 MotGroupsCount(const MotGroups *groups);
extern void *MotGroupExtra(const MotGroups *groups, MotGroup *group);

/* decimal.c */

extern bool MotDecimalRead(Datum value, MotDecimal *decimal);
extern int	MotDecimalPlaces(int32 typmod);
extern bool MotDecimalScale(MotDecimal *decimal, int k);
extern bool MotDecimalMultiply(const MotDecimal *a, const MotDecimal *b, MotDecimal *result);
extern bool MotDecimalAdd(const MotDecimal *a, const MotDecimal *b, bool subtract, MotDecimal *result);
extern PGFunction MotDecimalFunction(Oid funcid);
extern bool MotSumAdd(MotSum *sum, const MotDecimal *decimal);
extern Datum MotSumState(const MotSum *sum, bool numeric, AggState *agg);

#endif							/* MOT_BATCH_H */
