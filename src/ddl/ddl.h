/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  What the files of src/ddl share.
 *
 * A MOT table is a foreign table with real catalogue indexes on it.  The
 * server knows how to create, alter and drop both, but not together: it
 * refuses keys on foreign tables, and ALTER TABLE does not touch their rows.
 * So one utility hook takes the statements that concern MOT tables apart,
 * lets the server do what it can, and does the rest around that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_DDL_H
#define MOT_DDL_H

#include "mot.h"

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/utility.h"
#include "utils/rel.h"

/* the arguments of the hook */
typedef struct MotUtility
{
	PlannedStmt *pstmt;
	const char *query_string;
	bool		read_only_tree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *query_env;
	DestReceiver *dest;
	QueryCompletion *qc;
	bool	   *progress;		/* to be told that some is left to be ended;
								 * NULL: it is ended here */
} MotUtility;

#define MotUtilityIsTopLevel(u) ((u)->context == PROCESS_UTILITY_TOPLEVEL)

/* ---------------------------------------------------------------- utility.c */

/* The statement as it came, or "stmt" (a private copy) in its place. */
extern void MotUtilityPass(const MotUtility *u);
extern void MotUtilityRun(const MotUtility *u, Node *stmt);

/*
 * "stmt" as one step of a statement that we take apart; straight to the server, or through all
 * hooks again
 */
extern void MotUtilityStep(const MotUtility *u, Node *stmt);
extern void MotUtilityNested(const MotUtility *u, Node *stmt);

/*
 * Run "body" as the body of the whole statement: what standard_ProcessUtility
 * does around a statement (read-only checks, event triggers, a command
 * counter increment) is done here.
 */
typedef void (*MotUtilityBody) (const MotUtility *u, void *arg);
extern void MotUtilityWhole(const MotUtility *u, MotUtilityBody body, void *arg);

/* the relation a name means now, unlocked; InvalidOid if there is none */
extern Oid	MotDdlLookup(const RangeVar *relation);
extern void MotDdlRefuseReplaced(const char *relation, const char *command) pg_attribute_noreturn();
extern bool MotDdlNamesMotTable(const RangeVar *relation);

/* the same for an index: is it of the access method? */
extern bool MotDdlIsMotIndex(Oid indexoid);

/* ------------------------------------------------------- create_table.c etc. */

/* Each returns false if the statement is none of ours. */
extern bool MotCreateForeignTable(const MotUtility *u, CreateForeignTableStmt *stmt);
extern bool MotCreateIndex(const MotUtility *u, IndexStmt *stmt);
extern bool MotAlterDomain(const MotUtility *u, AlterDomainStmt *stmt);
extern bool MotReassignOwned(const MotUtility *u, ReassignOwnedStmt *stmt);
extern bool MotDrop(const MotUtility *u, DropStmt *stmt);
extern bool MotDropDatabase(const MotUtility *u, DropdbStmt *stmt);
extern bool MotCreateDatabase(const MotUtility *u, CreatedbStmt *stmt);
extern bool MotVacuum(const MotUtility *u, VacuumStmt *stmt);
extern bool MotReindex(const MotUtility *u, ReindexStmt *stmt);
extern bool MotRepack(const MotUtility *u, RepackStmt * stmt);
extern bool MotLockTable(const MotUtility *u, LockStmt *stmt);
extern bool MotCopy(const MotUtility *u, CopyStmt *stmt);

/* ALTER TABLE, of what is locked */
extern bool MotAlterTable(const MotUtility *u, AlterTableStmt *stmt, Oid relid);
extern bool MotAlterMissing(const MotUtility *u, AlterTableStmt *stmt);
extern bool MotAlterGoesBelow(const List *cmds, bool inh, Oid relid);

/* the name by which the server finds a locked table */
extern void MotAlterQualify(RangeVar *relation, Oid relid);

/* CREATE and ALTER EXTENSION, with heap as their script's default */
extern bool MotExtensionScript(const MotUtility *u);

/* mot.default_engine = mot: the statement itself, or a copy that says USING mot */
extern PlannedStmt *MotUseDefaultEngine(PlannedStmt *pstmt);

/* ------------------------------------------------------------------- keys.c */

/*
 * Take PRIMARY KEY and UNIQUE out of a column: IndexStmts; or what such a constraint
 * is.  Raise for what a MOT table cannot have (FOREIGN KEY, EXCLUDE, deferrable keys).
 */
extern List *MotTakeColumnKeys(const RangeVar *relation, ColumnDef *column);
extern IndexStmt *MotConstraintToIndex(const RangeVar *relation, Constraint *constraint);

/* what a foreign table's keys and indexes cannot be */
extern void MotRefuse(const char *table, const char *what, const char *hint) pg_attribute_noreturn();
extern void MotRefuseDeferrable(const char *table) pg_attribute_noreturn();
extern void MotRefuseExclusion(const char *table) pg_attribute_noreturn();
extern void MotRefuseIncluded(const char *table) pg_attribute_noreturn();

/* FOREIGN KEY of a heap table that points at a MOT table */
extern void MotRefuseReferences(List *elements);

/* ----------------------------------------------------------- create_index.c */

/*
 * Catalogue entries and engine index for a (transformed) IndexStmt; the
 * caller holds the lock.  InvalidOid if IF NOT EXISTS found one.
 */
extern Oid	MotDefineIndex(Oid relid, IndexStmt *stmt, bool check_rights);

extern void MotShowAsItIs(void);	/* somebody asks the access method */

/* ADD CONSTRAINT ... USING INDEX */
extern void MotAdoptIndex(Oid relid, Constraint *constraint);

/* empty the engine index and build it again, after something in its key's form changed */
extern void MotRebuildIndex(Relation rel, Oid indexoid);

/* ------------------------------------------------------- alter_rows.c */

/*
 * What an ALTER TABLE may change under the rows of MOT tables is found by
 * comparing before and after: MotAlterBegin remembers the MOT tables that
 * it goes to (inh: not ONLY; the caller has locked the table), and takes away indexes that ALTER
 * COLUMN TYPE would trip over; MotAlterFinish rewrites or checks their rows
 * and puts the indexes back.
 */
extern List *MotAlterBegin(Oid relid, List *cmds, bool inh, LOCKMODE lockmode, const char *query_string);
extern void MotIndexesFollowOwner(Relation rel);
extern void MotAlterFinish(List *altered, Node *stmt);	/* the statement, for
														 * event triggers */

/* the MOT tables among a table and those below it */
extern List *MotTablesBelow(Oid relid, LOCKMODE lockmode);

/* ---------------------------------------------------------------- rewrite.c */

/* a new value for a column, from the old row (or, if generated, from the new one) */
typedef struct MotNewValue
{
	AttrNumber	attnum;
	Expr	   *expr;			/* planned */
	bool		generated;
	ExprState  *state;
} MotNewValue;

/* something every row has to satisfy */
typedef struct MotRowCheck
{
	char	   *name;			/* of a check constraint; NULL: the
								 * partition's bound, or another's: */
	char	   *default_partition;	/* ... which has become narrower: its name */
	AttrNumber	notnull;		/* a virtual column without nulls */
	AttrNumber	domain;			/* a column, whose domain asks for it */
	Expr	   *expr;			/* (NULL, of a domain: no nulls) */
	ExprState  *state;
} MotRowCheck;

/* oids of the validated check constraints of a table, or of a domain; the other is InvalidOid */
extern List *MotValidChecks(Oid relid, Oid domain);

/* the condition of a table's or domain's check constraint (alter_rows.c) */
extern MotRowCheck *MotConstraintCheck(Oid constraintoid);

/*
 * Walk all rows of a MOT table, in the form "old" describes.  values: list of
 * MotNewValue; if there are any, the rows are stored anew (refuse_older: and
 * whoever has an older snapshot is refused, see MotViewTable).  Afterwards every
 * row has non-null values in the columns of notnull (attnum) and satisfies
 * the checks (list of MotRowCheck), or an error was raised.
 */
extern void MotRewriteRows(Relation rel, TupleDesc old, List *values, bool refuse_older,
						   Bitmapset *notnull, List *checks);

/*
 * the same for constraints of a domain (oids), and not to be null, as a condition on one of its
 * columns
 */
extern List *MotDomainChecks(List *constraints, bool notnull, AttrNumber attnum);

/* -------------------------------------------------------------- partition.c */

/* CREATE TABLE ... PARTITION OF */
extern bool MotPartitionIsMade(Node *stmt);

/*
 * Run a statement, and if it gives a partitioned table a partition look at the rows of MOT tables
 * whom that concerns.
 */
extern void MotPartitionAround(Node *stmt, void (*run) (const MotUtility *u, Oid altered), const MotUtility *u, Oid altered);

/* A partition comes, or (false) goes, or is nobody's who looks. */
extern bool MotPartitionComes(Oid parent, Oid partition);

/* --------------------------------------------------------------- database.c */

/* a database has its entry in the catalogue, and no files yet */
extern void MotDatabaseComes(Oid dbid);

/* one is locked, to be dropped */
extern void MotDatabaseGoes(Oid dbid);

/* ------------------------------------------------------------ maintenance.c */

/* all MOT tables of this database, as oids */
extern List *MotListTables(void);

/* ----------------------------------------------------------------- access.c */

extern void MotAccessInit(void);

/* what the condition of a MOT table's trigger, or of each that it has, may not name */
extern void MotCheckTrigger(const char *condition, bool ordinary);
extern void MotCheckTriggers(Relation rel);

#endif							/* MOT_DDL_H */
