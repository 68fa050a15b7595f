/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  Whole statements on MOT tables, run without the server's executor.
 *
 * The server's executor needs longer to start and end than the engine needs
 * to find a row.  A plan that is executed again and again, and is of a shape
 * we know, is therefore made into a program of our own once, and from then on
 * our hooks run that in the executor's place.
 *
 *	table.c		which plans are known; when a program is made, used, thrown
 *				away; what happens to it when transactions end
 *	shape.c		may a plan be run here, and if not, why not?
 *	ordinary.c	plans of ordinary tables
 *	build.c		the program of a plan: nodes and prepared expressions
 *	node.c		reading: scans, nested loops, LIMIT
 *	result.c	the slot for rows that a node computes
 *	sort.c		ORDER BY and DISTINCT
 *	lock.c		FOR UPDATE and its like
 *	subselect.c	EXISTS, scalar sub-selects and their like; nodes that are the server's
 *	aggregate.c	aggregates without grouping
 *	change.c	INSERT, UPDATE and DELETE
 *	joined.c	UPDATE and DELETE of rows that a join finds
 *	recheck.c	rows of joins whose tables' rows have changed meanwhile
 *	compiled.c	what is evaluated for each row, as machine code
 *	send.c		rows to the client
 *	remember.c	plans of statements that nobody has prepared
 *	constants.c	... and what they are without their constants
 *	run.c		the executor's hooks
 *	stat.c		what can be seen of it all
 *	jit.h		the seam to the compiler, a library of its own
 *
 * Tiers.  A plan's first executions go through the server's executor.  Then tier 1 runs the
 * program with the server's prepared expressions.  Tier 2 is the same program
 * with machine code for what is done with each row.
 *
 * The rule for all of it: the same answer, or the same error, as the ordinary
 * path.  Whenever somebody could see the difference (EXPLAIN, instrumentation,
 * modules that look at plan states, cursors that go backwards, triggers) the
 * statement is left to that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_STATEMENT_H
#define MOT_STATEMENT_H

#include "mot.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "fdw/fdw.h"
#include "nodes/plannodes.h"
#include "statement/jit.h"

typedef struct MotStatement MotStatement;
typedef struct MotNode MotNode;

/*
 * Reading: each node hands out one row after the other, NULL when there are no more;
 * what it hands out is good until it is asked again or restarted.
 */
struct MotNode
{
	MotStatement *statement;
	TupleTableSlot *(*next) (MotNode *node);
	void		(*restart) (MotNode *node); /* parameters may have changed */
	void		(*rest) (MotNode *node);	/* if it is in "kept": rows go */
	PlanState  *ps;				/* what expressions take for their node */
	ExprContext *econtext;
	ProjectionInfo *project;	/* NULL: rows are handed on as they are */
	ExprState  *qual;
	MotNode    *outer;
	MotNode    *inner;
	bool		is_scan;		/* a MotScanNode */
	List	   *initplans;		/* SubPlanStates; if there are any, "restart"
								 * is that of subselect.c */
	void		(*restart_itself) (MotNode *node);
};

/*
 * What is evaluated for each row of one table; see compiled.c.  "function" is
 * NULL if it is not compiled.
 */
typedef struct MotRowProgram
{
	MotRowFunction function;
	MotRowContext context;
	Datum	   *params;
	bool	   *params_isnull;
	bool	   *params_held;	/* do not change within an execution */
	const uint64 *execution;	/* of the statement: its number */
	uint64		held_in;		/* that in which they were fetched */
	ExprContext *econtext;		/* where parameters are */
	bool		waits;			/* could not begin: a sub-select comes first */
	MotRowCode *code;
	bool		tried;			/* to compile it */
	MotRowRequest request;
} MotRowProgram;

/* Outputs that are plain columns of a row; see node.c. */
typedef struct MotPlain MotPlain;

/* A scan; its fdw_state is the wrapper's. */
typedef struct MotScanNode
{
	MotNode		node;
	ForeignScanState *fss;
	MotScan    *scan;
	struct MotTable *table;
	bool		needs_tid;		/* expressions ask for ctid or tableoid */
	MotRowProgram *program;		/* conditions and target list, or NULL */
	bool		compiled;		/* it is used in this execution */
	MotPlain   *plain;			/* otherwise; or NULL */
	List	   *targetlist;
	List	   *quals;
	bool		first;			/* no row has been asked for since the restart */
} MotScanNode;

typedef enum MotStatementState
{
	MOT_STATEMENT_COUNTING,		/* left to the executor so far */
	MOT_STATEMENT_UNFIT,		/* always; see why_not */
	MOT_STATEMENT_READY,
	MOT_STATEMENT_RUNNING
} MotStatementState;

typedef struct MotTable
{
	Index		rti;
	Oid			relid;
	bool		ordinary;
	Relation	rel;			/* while running; the reference is ours, see
								 * run.c */
	Relation	known;			/* what it was at st->generation */
	MotRelation *mr;			/* when the program was made ... */
	uint64		built;			/* ... and what it was then */
} MotTable;

struct MotStatement
{
	const PlannedStmt *plan;	/* hash key */
	const PlannedStmt *run;		/* what the program is of, see ordinary.c */
	MotStatementState state;
	const char *why_not;		/* UNFIT */
	int			seen;			/* executions before the program was made */
	uint64		executions;		/* of its programs */
	uint64		asked;			/* executions, but not those of programs that
								 * were at hand */
	uint64		heat;			/* how much it has been used lately */
	uint64		heated;			/* ... when that was counted: all uses */
	uint64		query_id;
	char	   *text;
	double		build_ms;

	/* the program; from here on all is zero if there is none */
	MemoryContext cxt;			/* all of it */
	MemoryContext exec_cxt;		/* of one execution */
	CmdType		operation;
	uint64		uses;			/* executions */
	uint64		messages;		/* of the client for which it was used, until
								 * it is compiled */
	TimestampTz last_message;
	const char *why_not_compiled;	/* tier 2 */
	bool		row_subselects; /* some are evaluated for each row */
	double		compile_ms;
	size_t		code_bytes;
	int			compiled;		/* row programs with machine code */
	bool		compile_tried;	/* all of it */
	uint64		compile_after;	/* so many uses, if not */
	List	   *programs;		/* MotRowPrograms */
	bool		stale;			/* not to be used again */
	bool		gone;			/* the plan has been freed while it ran */
	Oid			userid;
	ParamCompileHook params_compile;
	bool		reads_others;	/* or may: not only memory-optimized tables */
	bool		bare;			/* nothing in it would miss a QueryDesc or a
								 * snapshot */
	mot_view	view;			/* of the present execution */
	uint64		permitted;		/* permissions were checked at this time */
	uint64		generation;		/* tables were as they were (see
								 * MotRelationGeneration) */
	int			ntables;
	MotTable   *tables;
	EState	   *estate;
	TupleDesc	desc;
	JunkFilter *junk;
	MotNode    *root;
	struct MotSender *sender;	/* NULL: rows to a client go through the
								 * server's receiver */
	MotScan    *ahead;			/* whose row is fetched ahead, or NULL */
	ExprContext *ahead_econtext;
	List	   *scans;			/* MotScanNodes */
	struct MotChange *change;	/* not a SELECT */
	MotNode    *lock;			/* FOR UPDATE and its like, or NULL */
	List	   *kept;			/* nodes that keep rows */
	List	   *parents;		/* PlanStates, if there are sub-selects */
	List	   *initplans;		/* SubPlanStates: evaluated once */
	List	   *hashed;			/* SubPlanStates whose hash tables depend on
								 * parameters */
	MotScanNode *cursor;		/* what WHERE CURRENT OF looks at, or NULL */

	/* running */
	MotStatement *below;		/* the one that was running before */
	QueryDesc  *query;
	int			level;
	int			run_level;		/* of the ExecutorRun we are in; 0: in none */
	bool		started;		/* fetched from */
	bool		ended;			/* no more rows */
};

/* table.c */
extern bool mot_jit;
extern int	mot_jit_prepare_above;
extern MotStatement *MotStatementRunning;	/* the youngest */

extern void MotStatementTableInit(void);
extern MotStatement *MotStatementFor(QueryDesc *query);
extern MotStatement *MotStatementAtHand(const PlannedStmt *plan, ParamListInfo params);
extern void MotStatementEnter(MotStatement *st, QueryDesc *query);
extern void MotStatementLeave(MotStatement *st);
extern void MotStatementDiscard(MotStatement *st);
extern void MotStatementEach(void (*visit) (MotStatement *st, void *arg), void *arg);
extern uint64 MotPermissionsTime;	/* goes up when somebody's may have
									 * changed */

/* shape.c */
extern const char *MotWhyNot(const PlannedStmt *plan, bool *bare);
extern const char *MotTargetWhyNot(Relation rel, const ModifyTable *plan);

/* ordinary.c */
extern Plan *MotPlanCopy(Plan *plan);
extern bool MotPlanIsOurs(const PlannedStmt *stmt, bool ordinary);
extern const PlannedStmt *MotPlanTranslate(const PlannedStmt *stmt);
extern bool MotForeignKeysOnly(Relation rel);

/* build.c */
extern bool MotProgramBuild(MotStatement *st, QueryDesc *query);
extern void MotPlanTables(const Plan *plan, Bitmapset **rtis);

/* node.c */
extern MotNode *MotNodeBuild(MotStatement *st, Plan *plan);
extern MotNode *MotNodeMake(MotStatement *st, Size size, TupleTableSlot *(*next) (MotNode *node),
							void (*restart) (MotNode *node), Plan *outer);
extern void MotNodeRestart(MotNode *node);
extern PlanState *MotParentCreate(MotStatement *st, NodeTag tag, Size size, Plan *plan, ExprContext *econtext);
extern ForeignScanState *MotScanStateCreate(MotStatement *st, ForeignScan *plan, ExprContext *econtext);
extern void MotNodeContext(MotNode *node, NodeTag tag, Size size, Plan *plan);
extern void MotStatementAhead(MotStatement *st, MotScan *scan, ExprContext *econtext);
extern MotTable *MotStatementTable(MotStatement *st, Index rti);

/* what the scan makes of the version that it has now; NULL: it does not pass any more */
extern TupleTableSlot *MotScanNodeAgain(MotScanNode *sn);

/* result.c */
extern TupleTableSlot *MotResultSlot(TupleDesc desc);

/* lock.c */
extern bool MotLocksScan(const LockRows *plan);
extern MotNode *MotLockBuild(MotStatement *st, LockRows *plan);
extern void MotLockStart(MotStatement *st);
extern void MotLockRest(MotStatement *st);

/* subselect.c */
extern MotNode *MotServersBuild(MotStatement *st, Plan *plan, Size size, MotNode *outer);
extern void MotServersAnew(MotNode *node);
extern void MotSubselectsBuild(MotStatement *st);
extern void MotSubselectsBuilt(MotStatement *st);
extern void MotParamChanged(MotStatement *st, int param);
extern List *MotInitPlansBuild(MotStatement *st, Plan *plan, PlanState *ps);
extern void MotNodeInitPlans(MotNode *node, Plan *plan);
extern void MotSubselectsStart(MotStatement *st);
extern void MotSubselectsRest(MotStatement *st);

/* sort.c */
extern MotNode *MotSortBuild(MotStatement *st, Sort *plan);
extern MotNode *MotUniqueBuild(MotStatement *st, Unique *plan);

/* aggregate.c */
extern const char *MotAggregateWhyNot(const Agg *agg);
extern MotNode *MotAggregateBuild(MotStatement *st, Agg *plan);
extern Node *MotResolveOuter(Node *node, void *targetlist);
extern MotRowAggregateKind MotAggregateKind(Oid transfn);
extern void MotAggregateCall(AggState *agg, struct AggStatePerTransData *transition, struct AggStatePerGroupData *state);

/* change.c */
extern void MotChangeBuild(MotStatement *st, ModifyTable *plan);
extern void MotChangeStart(MotStatement *st);
extern void MotChangeFinish(MotStatement *st);
extern void MotChangeRest(MotStatement *st);
extern uint64 MotChangeRows(const struct MotChange *change);
extern bool MotChangeIsBare(const struct MotChange *change);
extern TupleTableSlot *MotChangeNext(MotStatement *st); /* RETURNING's next row */

/* joined.c */
typedef struct MotJoined MotJoined;
extern Plan *MotJoinedPlan(const ModifyTable *plan);
extern MotJoined *MotJoinedBuild(MotStatement *st, ModifyTable *plan, ResultRelInfo *rinfo,
								 MotWriter *writer);
extern TupleTableSlot *MotJoinedRow(MotJoined *joined);
extern void MotJoinedStart(MotJoined *joined);
extern void MotJoinedRest(MotJoined *joined);
extern bool MotJoinedNext(MotJoined *joined, TupleTableSlot **planned);

/* recheck.c */
typedef struct MotRecheck MotRecheck;
extern MotRecheck *MotRecheckMake(MotStatement *st, List *row_marks, int param, List **locked);
extern const char *MotRecheckWhyNot(const Plan *plan, List *row_marks, const PlannedStmt *stmt);
extern void MotRecheckStart(MotRecheck *recheck);
extern void MotRecheckRest(MotRecheck *recheck);
extern void MotRecheckPut(MotRecheck *recheck, MotTable *table, mot_row *row, const mot_version *version);
extern TupleTableSlot *MotRecheckRow(MotRecheck *recheck, TupleTableSlot *was);

/* compiled.c */
extern int	mot_jit_above;
extern void MotCompiledInit(void);
extern MotRowProgram *MotRowProgramMake(MotStatement *st, Index varno, TupleDesc desc, List *quals,
										List *outputs, List *aggregates, Datum *values,
										bool *isnull, ExprContext *econtext);
extern bool MotRowProgramBegin(MotRowProgram *program);
extern void MotStatementCompile(MotStatement *st);
extern bool MotCompilerLoaded(const char **why_not);
extern const MotJitProvider *MotCompiler(const char **why_not);
extern void MotRowCodeRelease(MotRowCode *code);
extern MotRowCode *MotRowCodeMake(const MotRowRequest *request, MemoryContext cxt, const char **why_not);
extern void MotStatementRelease(MotStatement *st);
extern char *MotStatementDump(MotStatement *st);

/* does the row pass? */
static inline bool
MotRowProgramRun(MotRowProgram *program, const mot_version *version)
{
	return program->function((const char *) mot_version_data(version),
							 mot_version_host_bits(version), &program->context);
}

/* send.c */
typedef struct MotSender MotSender;
extern MotSender *MotSenderMake(TupleDesc desc);
extern bool MotTypeIsPlain(Oid type);
extern bool MotSenderFormats(MotSender *sender, const int16 *formats, int n);
extern bool MotSenderBegins(MotSender *sender, QueryDesc *query);
extern void MotSenderRow(MotSender *sender, TupleTableSlot *slot);
extern void MotSenderEnds(void);
extern void MotSenderFails(void);

/* run.c */
extern void MotStatementCloseTables(MotStatement *st);
extern const char *MotStatementsWhyNot(void);

/* set when a statement of ours has run by the executor's hooks; who looks at it resets it */
extern bool MotStatementRan;

extern MotStatement *MotStatementBare(const PlannedStmt *plan, ParamListInfo params);
extern bool MotStatementRunBare(MotStatement *st, ParamListInfo params, const char *text, uint64 most,
								DestReceiver *receiver, uint64 *rows);

/* stat.c */
extern void MotStatementStatInit(void);

/*
 * A row's tuple id.  The server asks ordinary tables for the very version that this
 * transaction has made of it (xact/tid.c).
 */
static inline void
MotStatementTid(const MotTable *table, mot_row *row, const mot_version *version, ItemPointer tid)
{
	if (unlikely(table->ordinary && version != NULL && mot_version_ts(version) == 0))
		MotVersionToTid(MotSession(), row, mot_version_changes(row, version), tid);
	else
		MotRowToTid(MotSession(), row, tid);
}

/* Have all rows been handed out?  False: that is known when the next one is asked for. */
static inline bool
MotScanIsDone(const MotScan *scan)
{
	return scan->phase == MOT_SCAN_DONE && scan->u == NULL;
}

/* MemoryContextReset, of one that mostly has nothing */
static inline void
MotContextReset(MemoryContext cxt)
{
	if (unlikely(!cxt->isReset || cxt->firstchild != NULL))
		MemoryContextReset(cxt);
}

/* 0: left to the executor, 1: run here, 2: with machine code */
static inline int
MotStatementTier(const MotStatement *st)
{
	return st->cxt == NULL ? 0 : st->compiled > 0 ? 2 : 1;
}

#endif							/* MOT_STATEMENT_H */
