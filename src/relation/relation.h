/*-------------------------------------------------------------------------
 *
 * relation.h
 *	  What a process knows of a MOT table: its engine table, its indexes,
 *	  their key codecs; cached, and rebuilt when the catalogue changes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_RELATION_H
#define MOT_RELATION_H

#include "mot.h"
#include "islands/measure.h"
#include "relation/keycodec.h"
#include "relation/rowcodec.h"
#include "tcop/cmdtag.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/tuplestore.h"

typedef struct MotIndex
{
	Oid			indexoid;
	bool		unique;			/* see MotIndexIsUnique */
	bool		deferrable;		/* a key that is checked later */
	Bitmapset  *identifies;		/* the columns that FOR KEY SHARE keeps as
								 * they are */
	mot_index_handle handle;	/* engine index and the key check (arg = this) */
	MotKey	   *key;
	MotKey	   *plain;			/* a definition's: the same, if strings are
								 * not collated */
	struct MotRelation *relation;	/* NULL: a definition's index */
	TupleDesc	desc;			/* of the table's rows */
	struct MotEvaluation *evaluation;	/* see computed.c ... */
	uint64		evaluated_in;	/* ... which transaction's it is */
	struct MotRanking *ranking; /* see ranked.h; NULL: it has no such column */
	uint32	   *offsets;		/* of the key's columns in rows without nulls,
								 * if all are integers; or NULL */
	Datum	   *check_values;	/* scratch of MotIndexKeyOf */
	bool	   *check_isnull;
	MotKeyBuffer check_buffer;	/* of the key check, and of who does nothing
								 * else with the index while he needs a key */
} MotIndex;

/*
 * rowkey.c: a stored row's key into "key" (reset first), no bytes: it is not in the index; flags
 * for the engine
 */
extern unsigned MotIndexKeyOf(const MotIndex *index, const mot_version *version, MotKeyBuffer *key);

/* the same as the log names rows: the plain key */
extern void MotIndexNameOf(const MotIndex *index, const mot_version *version, MotKeyBuffer *name);

/*
 * Of a definition's index: its keys are collated, or not, as those of the engine's are.  Before
 * keys are made or looked for.
 */
extern void MotIndexAdopt(MotIndex *index, const mot_index *made);

typedef struct MotRelation
{
	Oid			relid;			/* hash key */
	Oid			number;			/* of its storage */
	bool		valid;			/* false: rebuild at the next MotRelationGet */
	mot_table  *table;
	uint64		serial;			/* mot_table_serial when it was looked up */
	mot_ts		born;			/* see MotViewTable */
	bool		refuse_older;
	uint64		stamp;			/* of the stored definition that was compared
								 * with the catalogue's: */
	bool		conditional;	/* there are conditions */
	bool		stale;			/* which are not the same, see conditions.c */
	bool		domains;		/* columns are of domains */
	uint64		built;			/* another number each time that what follows
								 * was made anew */
	TupleDesc	desc;			/* own copy */
	MotRowShape shape;
	AttrNumber	max_key_attnum; /* highest column any index uses */
	Bitmapset  *key_attnums;	/* columns any index uses (attnum, no offset) */
	int			nindexes;
	MotIndex   *indexes;
	Bitmapset  *computed_attnums;	/* columns that computed keys and
									 * predicates are of; key_attnums has
									 * them, too */
	bool		has_computed;
	bool		has_ranked;
	bool		computes_beside;	/* one of them is made beside writers: see
									 * computed.c */
	struct MotWriter *writer;	/* see MotWriterShared; or NULL */
	MotIslandsSeen islands;		/* where it is counted */
	uint64		indexes_seen;	/* MotRelationGeneration when the access
								 * method last saw to them ... */
	int			nentries;		/* ... and their relation cache entries */
	int			maxentries;
	Relation   *entries;
	MemoryContext cxt;			/* of everything above that is pointed to */
} MotRelation;

/* Is it a foreign table of server mot_server (any server of wrapper mot_fdw)? */
extern bool MotIsMotTable(Oid relid);	/* by syscache; false for anything
										 * else, or a missing relation */

/*
 * Ordinary tables, of the access method: the table access method's room says
 * what its routine is.
 */
extern const struct TableAmRoutine *MotTableAm;
extern bool MotIsOrdinary(Relation rel);
extern bool MotIsOrdinaryTable(Oid relid);	/* quick */

/* has this process locked it in this very mode, whatever else it has? */
extern bool MotIsLocked(Oid relid, LOCKMODE mode);

/*
 * A sequential scan is priced for this many rows at least.  A cached plan can
 * outlive the few rows a table had when it was made; choosing the index when
 * it makes no difference yet costs nothing.
 */
#define MOT_MIN_SEQUENTIAL_ROWS 200

/* indexcost.c: an access method's amcostestimate, and what is not known yet */
struct PlannerInfo;
struct IndexPath;
struct RelOptInfo;
extern void MotIndexCost(struct PlannerInfo *root, struct IndexPath *path, double loop_count,
						 double *startup_cost, double *total_cost, double *selectivity,
						 double *correlation, double *pages);
extern double MotPlannedTuples(Relation rel);
extern double MotPlannedUnknown(Relation rel, int32 *attr_widths, double tuples);
extern double MotCostUnknownRange(List *clauses, double rows);
extern void MotCostUnknownLimit(struct RelOptInfo *output_rel, void *extra);

/*
 * What the engine and the log call a table's storage: a foreign table's oid; of
 * an ordinary table the number that the server gives its file (TRUNCATE and ALTER TABLE give
 * it another one).
 */
extern Oid	MotStorageNumber(Relation rel);

extern Oid	MotAmOid(bool missing_ok);

/*
 * The cache entry of an open MOT table (any lock).  If the engine has no
 * table for it yet (after a restart), it is waited for; one that recovery did
 * not bring back is an error.  The pointer is good until the next call that may
 * process invalidations; executor nodes look it up at Begin and keep it
 * pinned by the lock on the table (an entry is only rebuilt in place by
 * MotRelationGet, never freed while somebody can hold it; what the rebuilding
 * replaces, such as the array of indexes, stays until the transaction ends).
 */
extern MotRelation *MotRelationGet(Relation rel);

/* Plans and caches of all sessions that know the table forget it, at once. */
extern void MotTellSessions(Oid dbid, Oid relid);
extern void MotRelationForgetTable(Oid number); /* engine objects have
												 * changed: look them up again */
extern Oid	MotRelationRewriting(Oid relid);

/*
 * Goes up whenever what is known of any table may not be true any more.  As
 * long as it has not, entries are where and what they were, and so are the
 * relations of tables that have one: the server frees these only when it is
 * told that they have changed, and tells us then, too, before anything else
 * is done.
 */
extern uint64 MotRelationGeneration;

/* Likewise with all that plans depend on (once somebody has called MotWatchPlans). */
extern uint64 MotPlanChanges;

/*
 * ALTER TABLE that stores rows anew does so as one who makes and fills a table:
 * as on heap, whoever has an older snapshot finds it empty afterwards.  Where
 * heap need not store them anew (ADD COLUMN with a constant default) its older
 * snapshots see what they have seen; here they are refused (40001).  So a view
 * has to be made one of the table before it is used to look for rows: then it
 * sees nothing that has been committed.
 */
extern void MotViewBeforeTable(const MotRelation *mr, mot_view *view);

static inline void
MotViewTable(const MotRelation *mr, mot_view *view)
{
	if (unlikely(view->snapshot < mr->born))
		MotViewBeforeTable(mr, view);
}

/* so many rows about this one were read or changed: for mot.islands, see heat.c */
extern void MotRelationTouchedRows(MotRelation *mr, const mot_version *version, unsigned rows, bool change);

static inline void
MotRelationTouched(MotRelation *mr, const mot_version *version, unsigned rows, bool change)
{
	if (unlikely(MotIslandsCounting))
		MotRelationTouchedRows(mr, version, rows, change);
}

/*
 * the same, if MotIslandsCounting, for one row after the other of a range: those between are like
 * the first of each few
 */
#define MOT_TOUCHED_TOGETHER 8

static inline void
MotRelationTouchedNext(MotRelation *mr, const mot_version *version, uint64 row)
{
	if (row % MOT_TOUCHED_TOGETHER == 0)
		MotRelationTouchedRows(mr, version, row == 0 ? 1 : MOT_TOUCHED_TOGETHER, false);
}

extern MotIndex *MotRelationIndex(MotRelation *mr, Oid indexoid);	/* NULL if there is none */

/* Does the engine see to it that keys are unique?  (Not of those that are deferrable.) */
extern bool MotIndexIsUnique(Relation indexrel);
extern void MotRequireBtree(Relation rel, Relation indexrel);

/*
 * computed.c: an index's columns of a row, of which these are all columns; good until the
 * next call.  False: the row does not satisfy the predicate.
 */
extern bool MotIndexCompute(MotIndex *index, const Datum *values, const bool *isnull,
							Datum *key_values, bool *key_isnull);

/* the same as its key into "key" (reset first; no bytes: false); flags for the engine */
extern unsigned MotIndexComputeKey(MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key);

/* how many of the row's columns an index's keys are made from, here */
static inline int
MotIndexColumns(const MotIndex *index)
{
	return index->key->computed ? index->desc->natts : index->key->max_attnum;
}

/*
 * Write paths shared by the wrapper's modify, COPY, direct modify and upsert.
 * They lock, wait, keep indexes and raise errors (23505 with PostgreSQL's own
 * message and DETAIL "Key (id)=(1) already exists.").
 */
typedef struct MotWriter MotWriter; /* per statement and target table;
									 * palloc'd */

extern MotWriter *MotWriterBegin(Relation rel, Snapshot snapshot, CommandId cid);
extern void MotWriterEnd(MotWriter *writer);

/*
 * A writer that is used for several executions, one after the other: rest
 * instead of end, then start instead of begin.  The table must be as it was
 * (MotRelation's "built" says so).
 */
extern void MotWriterRest(MotWriter *writer);
extern void MotWriterStart(MotWriter *writer, Relation rel, const mot_view *view, CommandId cid);

/* one of the relation's own, for changes that come one by one; the view is no matter for inserts */
extern MotWriter *MotWriterShared(Relation rel, const mot_view *view, CommandId cid);

/* insert values (natts of the table's descriptor); the row inserted, for RETURNING's ctid */
extern mot_row *MotWriterInsert(MotWriter *writer, Datum *values, bool *isnull);

/*
 * As insert, but a duplicate key (of the index in "arbiters", a list of index
 * oids; NIL: any) is not an error: returns NULL with *conflict the row that has
 * the key (waits for running transactions first).
 */
extern mot_row *MotWriterInsertOrFind(MotWriter *writer, List *arbiters, Datum *values, bool *isnull,
									  mot_row **conflict, mot_ts *conflict_ts, MotIndex **index);

/*
 * The row that has the key of the first of the arbiters, if a look-up tells: as the writer's view
 * sees it, and not changed since.  NULL: there may be one even so.
 */
extern mot_row *MotWriterFind(MotWriter *writer, List *arbiters, const Datum *values, const bool *isnull,
							  mot_ts *found_ts);

/*
 * The same in steps: the row without its keys, and a key.  False: another row
 * has it, or (*busy) may have it when its transaction commits; with "raise" that is
 * waited for, and an error.
 */
extern mot_row *MotWriterStore(MotWriter *writer, Datum *values, bool *isnull);
extern bool MotWriterAddKey(MotWriter *writer, MotIndex *index, mot_row *row, bool raise, bool *busy);
extern void MotLogicalInsert(MotWriter *writer, mot_row *row);	/* it has all its keys;
																 * with
																 * XLogLogicalInfoActive() */

/*
 * Of a deferrable key: has no other row the key of this one, and will none?  "raise": waits, and
 * raises.
 */
extern bool MotWriterKeyIsUnique(MotWriter *writer, MotIndex *index, mot_row *row, bool raise);

typedef enum MotLockResult
{
	MOT_LOCKED,					/* unchanged since seen: go ahead */
	MOT_LOCKED_NEWER,			/* locked, but *newest differs from seen:
								 * re-check */
	MOT_LOCK_GONE,				/* deleted by somebody who committed: skip it */
	MOT_LOCK_SELF,				/* changed by this transaction in this or a
								 * later command: skip it */
	MOT_LOCK_WOULD_BLOCK		/* only with nowait/skip */
} MotLockResult;

typedef enum MotLockWait
{
	MOT_LOCK_WAIT, MOT_LOCK_NOWAIT_ERROR, MOT_LOCK_SKIP,
	MOT_LOCK_WAIT_CONFLICT		/* ON CONFLICT: one that has moved to another
								 * partition is gone, not an error */
} MotLockWait;

extern MotLockResult MotWriterLock(MotWriter *writer, mot_row *row, const mot_version *seen,
								   mot_row_mode mode, MotLockWait wait,
								   const mot_version **newest);

extern void MotRaiseOwnChange(bool deletion) pg_attribute_noreturn();

/*
 * old: the version the new values were computed from (locked); true: a deferrable key has changed
 */
extern bool MotWriterUpdate(MotWriter *writer, mot_row *row, const mot_version *old,
							Datum *values, bool *isnull);

/*
 * The same for a few columns of which none is in an index: their new values.
 * False: nothing has been done, and it has to be done in the ordinary way.
 */
extern bool MotWriterPatch(MotWriter *writer, mot_row *row, const mot_version *old,
						   MotRowPatch *patch, const Datum *values, const bool *isnull);
extern void MotWriterDelete(MotWriter *writer, mot_row *row, const mot_version *old, bool moves);

/*
 * Rows set aside, to be written together: see batch.c.  Each comes with a
 * number of the caller's; while rows are written, *current (if not NULL) is
 * the number of the one that an error is about.  To load is to write without
 * concurrency control, into a table made by this transaction, under its
 * exclusive lock.
 */
typedef enum MotBatchMode
{
	MOT_BATCH_INSERT,
	MOT_BATCH_INSERT_SLOTS,		/* values that stay until they are written */
	MOT_BATCH_LOAD,
	MOT_BATCH_LOAD_ROWS			/* their keys come with MotStorageFillIndexes */
} MotBatchMode;

#define MOT_BATCH_ROWS 1000		/* at most; as heap's multi-insert */
#define MOT_BATCH_BYTES 65535	/* full then; one row may be larger */
typedef struct MotBatch MotBatch;	/* palloc'd */

extern MotBatch *MotBatchBegin(MotWriter *writer, MotBatchMode mode, uint64 *current);
extern size_t MotBatchAdd(MotBatch *batch, Datum *values, bool *isnull, uint64 number); /* the row's size */
extern int	MotBatchRows(const MotBatch *batch);
extern bool MotBatchFull(const MotBatch *batch);

/*
 * And empty it.  If a key is taken, and "index" is not NULL, that is not raised: the result is
 * the number (MotBatchAdd's) of the first row in trouble, or -1.
 */
extern int64 MotBatchWrite(MotBatch *batch, MotIndex **index);
extern mot_row *MotBatchRow(const MotBatch *batch, int n);	/* as written last, from
															 * 0 */
extern void MotBatchEnd(MotBatch *batch);

/* all rows of a tuplestore */
extern void MotBatchLoad(Relation rel, Tuplestorestate *store, TupleDesc desc);

/*
 * COPY FREEZE: the utility hook checks the rules (MotStorageIsNew among them),
 * takes the option out and names the table here while that COPY runs; the
 * wrapper then loads its rows.  InvalidOid otherwise.
 */
extern Oid	MotLoadRelid;

extern void MotRaiseBlindIndex(const MotIndex *index) pg_attribute_noreturn();
extern void MotRaiseNulls(Relation rel, AttrNumber attnum); /* NOT NULL comes */
extern void MotRaiseDuplicate(Relation rel, MotIndex *index, Datum *values, bool *isnull) pg_attribute_noreturn();

/*
 * Transactional storage.  All take the table open with AccessExclusiveLock
 * (create index: at least ShareLock).  What is created vanishes if the
 * (sub)transaction aborts; what is dropped goes at commit.
 */
extern void MotStorageDropTable(Oid relid);
extern void MotStorageDropLost(Oid number);
extern void MotStorageTruncate(Relation rel);

/* a new, empty storage; an ordinary table's old one goes when the server drops its file */
extern void MotStorageCreateTable(Relation rel, Oid tablespace, Oid number);

/* the catalogue says since just now that the foreign table is an ordinary one */
extern void MotStorageTurnOrdinary(Relation rel);

/*
 * it has just been emptied, and is loaded again; see MotViewTable.  copied: with this one's rows,
 * which the transaction has not read by that
 */
extern void MotStorageRewritten(Oid relid, mot_table *copied, bool refuse_older);
extern void MotStorageCreateIndex(Relation rel, Relation index);	/* builds it; raises
																	 * 23505 "could not
																	 * create unique index" */

/*
 * CREATE INDEX CONCURRENTLY: an index that writers keep from the transaction's end on, which
 * has begun while nobody wrote; and, in a later one that began when no other writers were
 * left, its entries of rows that were there.  Raises as MotStorageCreateIndex.
 */
extern void MotStorageTryIndex(Relation rel, Relation index);	/* raises for duplicates */
extern void MotStorageBeginIndex(Relation rel, Relation index, bool unique);
extern void MotStorageCatchUpIndex(Relation rel, Relation index);
extern void MotStorageFillIndexes(Relation rel);	/* all of them, empty so
													 * far, of a table that
													 * this subtransaction has
													 * loaded; raises the same */
extern void MotStorageDropIndex(Oid number, Oid indexoid);

/*
 * the table of an ALTER TABLE that shows its progress, rows that it has stored; does it go to
 * another access method?
 */
extern Oid	MotAlterShows;
extern bool MotReindexes;		/* the session's statement is REINDEX */
extern int64 MotAlterRows;
extern bool MotAlterLeaves;

extern void (*MotIndexesPutBack) (Relation rel);	/* set by table/: it is a
													 * heap table now */
extern void MotStorageMendIndexes(Relation rel);	/* ordinary tables */

/* computed.c: is a command of this kind all that the transaction does? */
extern bool MotCommandIsLast(CommandTag tag);

/* did the current subtransaction (or a committed child of it) create or truncate the table? */
extern bool MotStorageIsNew(Oid relid);

/*
 * What this transaction has done to tables, for the log: one call for each
 * table touched, in the order of their first touch, as it is now.  created:
 * its rows have to be logged whole (a new storage, also by TRUNCATE and
 * rewriting); dropped: it goes; else the definition may have changed (indexes
 * made or dropped, columns, options).
 */
typedef struct MotStorageChange
{
	Oid			relid;			/* the storage's number */
	Oid			tablespace;		/* of a new one of an ordinary table's; else
								 * InvalidOid */
	Oid			owner;			/* the table's oid; 0 if dropped */
	Oid			dbid;			/* another database's, in CREATE DATABASE */
	bool		database;		/* the whole of it goes; no relid */
	bool		created;
	bool		dropped;
	bool		fresh;			/* private */
	bool		lost_index;		/* private */
	mot_table  *table;			/* as it is now; NULL if dropped */
	List	   *new_indexes;	/* oids */
	List	   *gone;			/* storage (mot_table) that it had before:
								 * changes of rows in that count no more */
	const void *definition;		/* see definition.h; NULL if dropped */
	size_t		definition_len;
	void	   *decoded;		/* the log's */
} MotStorageChange;

extern List *MotStorageChanges(void);	/* palloc'd; once, at PRE_COMMIT */

/* of a prepared transaction, by who makes it again after a restart: see handover.c */
extern mot_status MotStorageRestore(mot_session *session, void **parcel, Oid dbid, Oid number, mot_table *table);
extern void MotStorageRestored(void *parcel);
extern void MotPendingDiscard(void *parcel);	/* or it could not be: the
												 * list alone */

/* columns, options or the name have changed without new storage */
extern void MotStorageDefinitionChanged(Oid relid);

/* limit.c: a foreign table with that limit, as its option says it, has become an ordinary one */
extern void MotTableKeepMaxSize(Oid relid, const char *value);

/* what the catalogue says that a database's, or role's, tables may have together; 0: no limit */
extern uint64 MotQuotaLabel(mot_quota_kind kind, Oid id);

/* what has been changed while mot was not loaded, where that can be; see compare.c */
extern bool MotDefinitionTakeOver(Relation rel);

/*
 * Set by wal/: is the table still to come (recovery)?  Waits, or raises.
 * MotRelationGet calls it when the engine has no table for a definition; if it
 * returns false there is none, and that is an error.
 */
extern bool (*MotRelationAwait) (Oid dbid, Oid relid);

/* Likewise for who changes a definition: whether the table can be used at all does not matter. */
extern void (*MotRelationAwaitLoaded) (Oid dbid, Oid relid);

/* Is the table (relid invalid: any of the database) not there because memory has no room for it? */
extern bool (*MotRelationLeftOut) (Oid dbid, Oid relid);

/* It has been made anew, or dropped: whatever was wrong with it is over. */
extern void (*MotRelationHealed) (Oid dbid, Oid relid);

/* Or for that or because it is damaged?  No number: is any of the database? */
extern bool (*MotRelationMissing) (Oid dbid, Oid relid);

/* Have all tables come that there are, and not this one? */
extern bool (*MotRelationLost) (Oid dbid, Oid relid);

/* It is not there, nor is a prepared transaction that ends about to bring it. */
extern bool MotRelationAbsent(Oid number);

/*
 * It cannot be read, for any of these reasons: who goes through a whole database passes it by.  (In
 * single-user mode that is so of each.)
 */
extern bool MotRelationUnreadable(Relation rel);

/*
 * Set by wal/: on a standby, definitions that the catalogue shows have to be
 * the engine's, too.  Called whenever an entry is about to be (re)built.
 */
extern void (*MotRelationCatchUp) (void);

/*
 * Has whoever keeps something made from a plan told, for the session's life,
 * of changes that may make it wrong: of one relation (InvalidOid: of any), and
 * of functions, types, operators, servers, roles and databases.
 */
extern void MotWatchPlans(RelcacheCallbackFunction relation_changed, SyscacheCallbackFunction catalog_changed);
extern bool MotIsOtherDatabase(int cacheid, uint32 hash);

extern void MotStorageDropDatabase(Oid dbid);

/* orphans.c: tables that no catalogue knows; true: they have gone, do not ask again */
extern bool MotOrphansLook(void);

/*
 * All tables of a database for a new one, rows and all; nobody may be
 * connected to either.  Check: are there any, and can they be copied?  Raises
 * if some can't.
 */
extern bool MotStorageCheckDatabase(Oid dbid, const char *name);
extern void MotStorageCopyDatabase(Oid from, Oid to);
extern bool MotStorageHasTables(Oid dbid);	/* waits until recovery is done */

#endif							/* MOT_RELATION_H */
