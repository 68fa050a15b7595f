/*-------------------------------------------------------------------------
 *
 * fdw.h
 *	  What the files of the foreign data wrapper share.
 *
 * Planning: plan.c turns the planner's own index paths into foreign paths;
 * quals.c says which clauses bound an index.  Execution:
 * operands.c and relation/keys.c make bounds from values; scan.c reads, with
 * union.c and tid.c for rarer ways; scroll.c has scans go both ways for
 * cursors that scroll; modify.c, conflict.c and direct.c write; rowlock.c locks rows for
 * SELECT ... FOR UPDATE and fetches them again for re-checks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_FDW_H
#define MOT_FDW_H

#include "mot.h"
#include "compat/explain.h"
#include "executor/tuptable.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "relation/keys.h"
#include "relation/relation.h"
#include "relation/slot.h"
#include "xact/xact.h"

/* ------------------------------------------------------------- planning */

/*
 * What planning knows of a table; RelOptInfo->fdw_private.
 *
 * derived/origin: a row comparison is not an index clause to the planner
 * unless the index is a btree, so its first column's comparison is added as a
 * clause of its own; "origin" has the RestrictInfo each one stands for.
 */
typedef struct MotPlanTable
{
	List	   *families;		/* one MotPlanIndex for each index */
	List	   *derived;
	List	   *origin;
} MotPlanTable;

typedef struct MotPlanIndex
{
	Oid			indexoid;
	Oid			opfamily[INDEX_MAX_KEYS];	/* the index's own */
	const MotKey *key;			/* NULL: the engine has no such index */
	bool		disordered;		/* see mot_index_disordered */
} MotPlanIndex;

#define MotPlanIndexIsOrdered(pindex, column) MotKeyColumnIsOrdered((pindex)->key, column, (pindex)->disordered)

typedef struct MotCondition
{
	MotConditionKind kind;
	int			column;			/* of the index, from 0 */
	int			strategy;
	List	   *valuetypes;		/* one for each value */
	List	   *values;			/* expressions */
	Node	   *clause;			/* as EXPLAIN shows it and re-checks use it */
	void	   *source;			/* the index clause (RestrictInfo, or a
								 * plan's) it was made from */
	bool		point;			/* fixes the column to single values */
	bool		lossy;			/* may let rows through that the clause would
								 * not */
} MotCondition;

typedef struct MotMatch
{
	List	   *conditions;		/* those that bound the scan, by column */
	List	   *enforced;		/* index clauses that need no filter */
	Bitmapset  *constant;		/* columns compared by equality with one value */
	Bitmapset  *inexact;		/* columns with such a comparison that is
								 * lossy */
} MotMatch;

extern void MotMatchClauses(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
							List *indexclauses, MotMatch *match);
extern MotCondition *MotMakeCondition(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
									  const MotPlanIndex *pindex, int column, Node *clause);
extern List *MotChooseConditions(const MotPlanIndex *pindex, List **bounding, MotMatch *match);
extern void MotDeriveRowClauses(PlannerInfo *root, RelOptInfo *rel);
extern MotPlanIndex *MotPlanIndexFor(RelOptInfo *rel, IndexOptInfo *index);

extern void MotGetForeignUpperPaths(PlannerInfo *root, UpperRelationKind stage,
									RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra);

/* plan.c */
extern void MotPlanInit(void);
extern void MotGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
extern void MotGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
extern ForeignScan *MotGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel, Oid relid,
									  ForeignPath *best_path, List *tlist, List *scan_clauses,
									  Plan *outer_plan);
extern List *MotPathArm(IndexPath *ipath);
extern List *MotReparameterize(PlannerInfo *root, List *fdw_private, RelOptInfo *child_rel);

/*
 * A plan's private list (ForeignScan->fdw_private) is integers:
 *
 *	MOT_PLAN_INDEX		oid of the index, 0: sequential, or by ctid if there is a condition
 *	MOT_PLAN_BACKWARD	read the index backwards
 *	MOT_PLAN_LOCK		lock rows as they are found, for this CmdType; or 0
 *	MOT_PLAN_NVALUES	of all conditions together
 *	MOT_PLAN_ARMS		how many index scans: more than one for OR (see union.c)
 *	MOT_PLAN_NCONDITIONS
 *	and for each condition: kind, column, strategy, number of values, their types
 *	for each further arm: oid of its index, number of conditions, and these
 *
 * fdw_exprs are the conditions' values in the same order, and behind them a
 * list of the conditions as expressions, for re-checks (one such list for each
 * arm, if there are several; then the filter is all there is to check).  It is
 * not in fdw_recheck_quals, because the executor would prepare it for every scan.
 * A direct modify has more behind that (see direct.c).
 */
#define MOT_PLAN_INDEX 0
#define MOT_PLAN_BACKWARD 1
#define MOT_PLAN_LOCK 2
#define MOT_PLAN_NVALUES 3
#define MOT_PLAN_ARMS 4
#define MOT_PLAN_NCONDITIONS 5

/* A plan's index scans while it is made. */
typedef struct MotPlanArms
{
	List	   *private;
	List	   *values;
	List	   *rechecks;		/* one list of conditions for each */
} MotPlanArms;

extern void MotPlanArm(MotPlanArms *arms, Oid indexoid, bool backward, const MotMatch *match);
extern ForeignScan *MotPlanOf(List *targetlist, List *filter, Index rti, MotPlanArms *arms);

/* the lists of fdw_exprs */
#define MotPlanList(plan, n) \
	((List *) list_nth((plan)->fdw_exprs, list_nth_int((plan)->fdw_private, MOT_PLAN_NVALUES) + (n)))
#define MOT_LIST_RECHECK 0
#define MOT_LIST_VALUES 1

/* ------------------------------------------------------------ execution */

extern MotKeys *MotKeysCreate(MotIndex *index, ForeignScan *plan, PlanState *parent,
							  int *at, int *value);

typedef enum MotScanPhase
{
	MOT_SCAN_START, MOT_SCAN_RUNNING, MOT_SCAN_DONE
} MotScanPhase;

/* A target's list (ModifyTable->fdwPrivLists): by whom rows are locked before triggers run */
#define MOT_LOCKED_LATER 0		/* when they are written: no row triggers */
#define MOT_LOCKED_BY_SCAN 1	/* which finds them (MOT_PLAN_LOCK) */
#define MOT_LOCKED_JOINED 2		/* as they come out of a join (joined.c) */

/* A scan: ForeignScanState->fdw_state, or the first part of it. */
typedef struct MotScan
{
	MotRelation *relation;
	mot_session *session;
	mot_view	view;
	MotScanPhase phase;
	MotKeys    *keys;			/* NULL: sequential */
	MotKeyCursor cursor;
	MotFoundRows *sorted;		/* instead of the cursor: see MotFoundSorted */
	int64		next_sorted;
	struct MotUnion *u;			/* of several arms, whose current one is
								 * "keys": see union.c */
	bool		by_tid;
	struct MotTids *tids;		/* if by_tid: see tid.c */
	mot_row    *row;			/* current */
	const mot_version *version;
	uint64		rows;			/* found, in all executions */
	uint64		starts;			/* of reading, in all executions */
	uint64		rows_counted;	/* of these, by MotScanCount */
	uint64		starts_counted;
	Relation	index;			/* its relation cache entry ... */
	uint64		index_generation;	/* ... as long as this is
									 * MotRelationGeneration */

	ForeignScanState *node;
	ExprState  *recheck;		/* what the bounds enforce, made when first
								 * needed */
	MotWriter  *writer;			/* if rows are locked as they are found ... */
	CmdType		operation;		/* ... for this */
	ExprState  *filter;			/* then the plan's, taken from the executor */
	mot_scan	table_scan;
} MotScan;

/* The current row, in the slot of the scan's node. */
static inline TupleTableSlot *
MotScanShow(MotScan *scan)
{
	TupleTableSlot *slot = scan->node->ss.ss_ScanTupleSlot;

	MotSlotShow(slot, scan->version);
	MotRowToTid(scan->session, scan->row, &slot->tts_tid);
	slot->tts_tableOid = scan->relation->relid;
	return slot;
}

extern void MotScanInit(MotScan *scan, ForeignScanState *node);
extern void MotScanAhead(MotScan *scan, ExprContext *econtext);
extern void MotScanAheadMore(MotScan *scan);
extern bool MotScanNext(MotScan *scan, ExprContext *econtext);
extern void MotScanPark(MotScan *scan);
extern void MotScanDropSorted(MotScan *scan);
extern ExprState *MotScanRecheck(MotScan *scan);
extern void MotScanCount(MotScan *scan);
extern bool MotScanLockRow(MotScan *scan, ExprContext *econtext, ExprState *filter);

extern void MotAddUnionPaths(PlannerInfo *root, RelOptInfo *rel);
extern void MotUnionInit(MotScan *scan, ForeignScan *plan);
extern void MotUnionRestart(MotScan *scan);
extern bool MotUnionNextArm(MotScan *scan);
extern bool MotUnionIsNew(MotScan *scan);

extern Node *MotTidValue(PlannerInfo *root, RelOptInfo *rel, Expr *clause);
extern RestrictInfo *MotTidRestriction(PlannerInfo *root, RelOptInfo *rel);
extern void MotTidsFill(MotScan *scan, ExprContext *econtext);
extern bool MotTidsNext(MotScan *scan);

/* scroll.c */
extern void MotScrollInit(void);

extern void MotBeginForeignScan(ForeignScanState *node, int eflags);
extern TupleTableSlot *MotIterateForeignScan(ForeignScanState *node);
extern bool MotRecheckForeignScan(ForeignScanState *node, TupleTableSlot *slot);
extern void MotReScanForeignScan(ForeignScanState *node);
extern void MotEndForeignScan(ForeignScanState *node);

/* What a modification of one table needs; ResultRelInfo->ri_FdwState. */
typedef struct MotModify
{
	MotRelation *relation;
	mot_session *session;
	MotWriter  *writer;
	ModifyTableState *mtstate;	/* NULL: COPY */
	mot_view	view;
	AttrNumber	ctid_attno;		/* in the subplan's rows */
	bool		locked;			/* rows come locked, in their newest version */
	bool		lock_joined;	/* ... from MotLockJoinedRow */
	bool		has_checks;		/* constraints, or a partition's bounds */
	OnConflictAction conflict;
	bool		duplicates;		/* the last row was one */
	TriggerDesc *triggers;		/* all of them */
	TriggerDesc *no_after;		/* the same without AFTER ROW triggers */
	int			users;			/* Begin calls not yet ended */
	TupleTableSlot *returned;	/* RETURNING asks for system columns, else
								 * NULL */
	struct MotCopyIn *copy;		/* COPY that writes in batches, else NULL */
	bool		copy_decided;	/* whether it does; true if it is no COPY */

	/*
	 * DO UPDATE that gives a few columns new values, and that nobody sees the
	 * row of: how, or NULL
	 */
	MotRowPatch *patch;
	ProjectionInfo *assign;		/* those values */
	int			nassigned;
	const AttrNumber *assigned;
	const bool *not_null;		/* of those columns */
} MotModify;

extern void MotAddForeignUpdateTargets(PlannerInfo *root, Index rtindex,
									   RangeTblEntry *target_rte, Relation target_relation);
extern List *MotPlanForeignModify(PlannerInfo *root, ModifyTable *plan,
								  Index resultRelation, int subplan_index);
extern void MotBeginForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
								  List *fdw_private, int subplan_index, int eflags);
extern TupleTableSlot *MotExecForeignInsert(EState *estate, ResultRelInfo *rinfo,
											TupleTableSlot *slot, TupleTableSlot *planSlot);
extern TupleTableSlot *MotExecForeignUpdate(EState *estate, ResultRelInfo *rinfo,
											TupleTableSlot *slot, TupleTableSlot *planSlot);
extern TupleTableSlot *MotExecForeignDelete(EState *estate, ResultRelInfo *rinfo,
											TupleTableSlot *slot, TupleTableSlot *planSlot);
extern void MotEndForeignModify(EState *estate, ResultRelInfo *rinfo);

/* joined.c: rows of a join are locked before row triggers run */
extern void MotWatchJoin(ModifyTableState *mtstate);
extern TupleTableSlot *MotLockJoinedRow(ResultRelInfo *rinfo, TupleTableSlot *planSlot);

extern void MotBeginForeignInsert(ModifyTableState *mtstate, ResultRelInfo *rinfo);
extern void MotEndForeignInsert(EState *estate, ResultRelInfo *rinfo);
extern void MotCheckRow(ResultRelInfo *rinfo, TupleTableSlot *slot, EState *estate);
extern void MotRefuseOwnChange(mot_session *session, const mot_view *view, mot_table *table,
							   mot_row *row, CmdType operation);
extern MotLockResult MotLockPlanned(MotWriter *writer, Relation rel, mot_table *table, const mot_view *view,
									CmdType operation, bool locked, Datum ctid, bool isnull,
									mot_row **row, const mot_version **current);
extern void MotHideAfterTriggers(MotModify *modify, ResultRelInfo *rinfo, bool hide);
extern ForeignScan *MotFindTargetScan(ModifyTable *plan, Index resultRelation, int subplan_index,
									  bool *topmost);

/* copy.c */
extern void MotCopyBegin(MotModify *modify, ResultRelInfo *rinfo);
extern void MotCopyRow(MotModify *modify, TupleTableSlot *slot);
extern void MotCopyEnd(MotModify *modify);

/* conflict.c */
extern TupleTableSlot *MotInsertOnConflict(MotModify *modify, EState *estate, ResultRelInfo *rinfo,
										   TupleTableSlot *slot);

/* direct.c */
extern bool MotPlanDirectModify(PlannerInfo *root, ModifyTable *plan,
								Index resultRelation, int subplan_index);
extern void MotBeginDirectModify(ForeignScanState *node, int eflags);
extern TupleTableSlot *MotIterateDirectModify(ForeignScanState *node);

/* rowlock.c */
extern mot_row_mode MotRowMarkMode(RowMarkType type);
extern MotLockWait MotLockWaitOf(LockWaitPolicy policy);
extern RowMarkType MotGetForeignRowMarkType(RangeTblEntry *rte, LockClauseStrength strength);
extern void MotRefetchForeignRow(EState *estate, ExecRowMark *erm, Datum rowid,
								 TupleTableSlot *slot, bool *updated);

/* explain.c */

/*
 * Set by statement/: how a statement is run when it is executed again and
 * again.  For EXPLAIN (VERBOSE).
 */
extern const char *(*MotExplainStatement) (const PlannedStmt *stmt);
extern void MotExplainForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
									List *fdw_private, int subplan_index, ExplainState *es);
extern void MotExplainForeignScan(ForeignScanState *node, ExplainState *es);

/* analyze.c */
extern bool MotAnalyzeForeignTable(Relation rel, AcquireSampleRowsFunc *func,
								   BlockNumber *totalpages);
extern void MotExecForeignTruncate(List *rels, DropBehavior behavior, bool restart_seqs);

#endif							/* MOT_FDW_H */
