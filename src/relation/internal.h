/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  Between the files of relation/ only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_RELATION_INTERNAL_H
#define MOT_RELATION_INTERNAL_H

#include "relation/relation.h"
#include "storage/lock.h"
#include "xact/logical.h"

/* relation.c */
extern void MotRelationEndXact(void);

/* perhaps the transaction has written to tables whose stored definition is stale: see renew.c */
extern bool MotRelationsSuspect;

/* "index" stays where it is: its address is the key check's argument */
extern void MotIndexDescribe(MotIndex *index, MotRelation *mr, TupleDesc desc, Relation rel, Relation indexrel,
							 mot_index *engine_index);

/* rowkey.c: what follows from its key and the rows' description; in CurrentMemoryContext */
extern void MotIndexComplete(MotIndex *index, TupleDesc desc);

/* the codec of an index's keys as it is there (NULL: as it will be) */
extern MotKey *MotIndexKey(Relation rel, Relation indexrel, mot_index *engine_index);

/* The definition's indexes, as a list of MotIndexDef. */
typedef struct MotIndexDef
{
	Oid			oid;
	bool		unique;
	bool		behind;			/* see mot_index_set_behind; these come last */
} MotIndexDef;

extern List *MotIndexDefs(Relation rel);

/* limit.c */
extern void MotLimitInit(void);
extern uint64 MotTableMaxSize(Relation rel);	/* the table's own limit, 0:
												 * none */
extern void MotLimitsApply(Relation rel, mot_table *table);
extern void MotLimitsCount(mot_table *table, Oid owner);
extern void MotLimitsCopy(mot_table *from, mot_table *to);	/* as owner of both */
extern mot_quota *MotRoleHold(Oid role);
extern Oid	MotTableRole(const mot_table *table);	/* for which it counts; 0:
													 * for nobody yet */

/* relation.c: the engine's table, which has not been compared with the catalogue yet */
extern mot_table *MotRelationTable(Relation rel);

/* conditions.c: what the catalogue says that the table's rows satisfy, a list of these */
typedef struct MotRowCondition
{
	uint64		hash;
	const char *name;			/* of a constraint; NULL: a partition's bounds */
} MotRowCondition;

/* *domains: the columns' */
extern List *MotConditions(Relation rel, List **domains);

/*
 * compare.c: raises if the table is not what the catalogue says.  "wait": who is just
 * storing another definition is waited for.
 */
typedef struct MotDefinitionState
{
	uint64		stamp;			/* of the stored definition; 0: there is none
								 * yet */
	bool		conditional;	/* it, or the catalogue, has conditions */
	bool		stale;			/* and they are not the same */
	List	   *domains;		/* see MotConditions */
} MotDefinitionState;

extern MotDefinitionState MotDefinitionCheck(Relation rel, mot_table *table, bool wait);
extern uint64 MotDefinitionStored(mot_table *table);	/* its stamp, or 0 */
extern void *MotDefinitionCopyStored(mot_table *table, size_t *len);
extern bool MotDefinitionNamesBy(mot_table *table, Oid indexoid);

/* renew.c */
extern void MotDefinitionsRenew(mot_session *session);
extern void MotDefinitionsLock(LOCKMODE mode);	/* of those who store
												 * definitions without having
												 * their table for themselves */
extern bool MotDefinitionIsShared(Oid relid);

/* storage.c */
extern void MotStorageInit(void);
extern bool MotStorageChangedHere(Oid relid);	/* table or definition, by
												 * this transaction */

/*
 * A key for every row as it is now ("compute": its tail does not have it).  Raises 23505 and 23502.
 */
extern void MotIndexBuild(Relation rel, MotIndex *index, bool compute);
extern uint64 MotIndexFormBeside(const MotRelation *mr, const MotKey *key);
extern void MotIndexCatchUp(Relation rel, MotIndex *index);
extern void MotIndexesDropDead(Relation rel, mot_table *table);

extern void MotStorageDefinitionStale(Relation rel);	/* to be stored anew,
														 * whatever it is now */
extern void MotStorageAddTable(mot_table *table);	/* a complete one, of any
													 * database */
extern void MotStorageDropTables(Oid dbid, mot_table **tables, int n);	/* a database's */
extern bool MotStorageIndexDropped(mot_table *table, Oid indexoid); /* in this transaction */

/* derive.c */
extern void MotDeriveInit(void);

/* duplicate.c */
extern void MotRaiseNotUnique(Relation rel, MotIndex *index, const mot_version *version) pg_attribute_noreturn();

/* writer.c; per statement and target table */
struct MotWriter
{
	Relation	rel;
	MotRelation *mr;
	mot_session *session;
	mot_view	view;
	uint32		command;
	bool		loose;			/* the view is a loose one of ours */
	Datum	   *flat;			/* values with out-of-line ones fetched */
	MemoryContext flat_cxt;		/* where those are; reset with the next row */
	Datum	   *old_values;		/* columns of the old version up to the last
								 * key column */
	bool	   *old_isnull;
	MotKeyBuffer key;
	MotKeyBuffer old_key;
	StringInfoData tail;		/* of the row that is stored */
	bool		ranks;			/* the table's ranks are ours, for its keys */
	const MotTail *old_tail;	/* of the old version */
	MotLogicalRow before;		/* of the row that is changed: see logical.c */
};

extern void MotWriterRefresh(MotWriter *writer);
extern void MotWriterLocate(MotWriter *writer);
extern void MotWriterExpectLog(MotWriter *writer, size_t bytes);
extern void MotWriterEndXact(void);
extern Datum *MotWriterMeasure(MotWriter *writer, Datum *values, const bool *isnull, const mot_version *old,
							   size_t *size, unsigned *host_bits);
extern void MotWriterFill(MotWriter *writer, const Datum *values, const bool *isnull,
						  unsigned host_bits, size_t size, void *data);

/*
 * a row without its index entries; and with its ranked ones, but those that are taken (one bit
 * each; *stored: its values)
 */
extern mot_row *MotWriterStoreRow(MotWriter *writer, const Datum *values, const bool *isnull, size_t size,
								  unsigned host_bits);
extern mot_row *MotWriterStoreRanked(MotWriter *writer, Datum *values, const bool *isnull, Datum **stored,
									 uint64 *taken);

/* its key in an index; the second one waits, and raises */
extern mot_status MotWriterTryKey(MotWriter *writer, MotIndex *index, mot_row *row, const Datum *values,
								  const bool *isnull, mot_row **other);
extern void MotWriterAddKeyOrRaise(MotWriter *writer, MotIndex *index, mot_row *row, Datum *values, bool *isnull);

/*
 * a version's columns, and its tail, as the writer's old ones; and their key (into old_key), flags
 * for the engine
 */
extern void MotWriterDeformOld(MotWriter *writer, const mot_version *old);
extern unsigned MotWriterOldKey(MotWriter *writer, MotIndex *index);

static inline const MotTail *
MotWriterTail(const MotWriter *writer)
{
	return writer->tail.len == 0 ? NULL : (const MotTail *) writer->tail.data;
}

/*
 * logical.c: only with XLogLogicalInfoActive().  Before a row is changed ("values" are its new
 * ones, NULL: no index's columns are); and when that is done.
 */
extern void MotLogicalBefore(MotWriter *writer, const mot_version *old, const Datum *values, const bool *isnull,
							 bool deletion);
extern void MotLogicalUpdate(MotWriter *writer, unsigned host_bits, const void *data, size_t size);
extern void MotLogicalDelete(MotWriter *writer);
extern void MotLogicalInserts(MotWriter *writer, const MotBatch *batch);

/* computed.c */
extern void MotWriterCompute(MotWriter *writer, const Datum *values, const bool *isnull);
extern void MotComputeIndex(Relation rel, MotIndex *index, bool beside, bool anew); /* beside: writers;
																					 * anew: REINDEX */

#endif							/* MOT_RELATION_INTERNAL_H */
