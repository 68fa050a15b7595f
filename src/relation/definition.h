/*-------------------------------------------------------------------------
 *
 * definition.h
 *	  A table's definition as bytes: what replay, loading and logging need to
 *	  know of it, without a catalogue.
 *
 * The bytes are kept with the engine's table (mot_table_definition), logged
 * with DDL, and written into checkpoints.  Decoding needs no catalogue and no
 * transaction: the columns' lengths and alignments, missing values, and for
 * each index its columns with the encoding by number.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_DEFINITION_H
#define MOT_DEFINITION_H

#include "mot.h"
#include "relation/relation.h"

typedef struct MotDefinition
{
	Oid			dbid;
	Oid			relid;			/* the storage's number, MotStorageNumber */
	Oid			owner;			/* the table's oid */
	bool		numbered;		/* an ordinary table's storage, see there */
	bool		unlogged;		/* its rows are neither in the log nor in
								 * checkpoints */
	char	   *name;			/* schema-qualified, for messages and the log
								 * only */
	TupleDesc	desc;			/* enough of it for MotRowDeform */
	bool		typmods;		/* desc has columns' type modifiers, too */
	int			nindexes;
	int			nbehind;		/* more of them behind those, which only rows
								 * that leave them have to know: see
								 * mot_index_set_behind */
	MotIndex   *indexes;		/* without the engine's, as far as this room
								 * goes */
	int			identity;		/* index by which rows are told apart: the
								 * primary key, else the first unique index of
								 * NOT NULL columns, else -1; beside writers,
								 * one with the same keys as before */
	uint64		max_size;		/* the table's own limit, 0: none */
	int			nconditions;	/* that the rows satisfy (conditions.c); -1:
								 * not known */
	uint64	   *conditions;
	uint64		stamp;			/* MotDefinitionStamp of the bytes */
	MotRowShape shape;			/* for MotDefinitionRowSize */
	MemoryContext cxt;
} MotDefinition;

/* From the catalogue as this transaction sees it; palloc'd. */
extern void *MotDefinitionEncode(Relation rel, size_t *len);

/* the same bytes for the table of the same number in another database; palloc'd */
extern void *MotDefinitionMove(const void *bytes, size_t len, Oid dbid);

/*
 * The same bytes, but what the rows have been checked for is not known; palloc'd.  For bytes
 * of another release of the server, which words what its catalogue says in another way.
 */
extern void *MotDefinitionUnconditional(const void *bytes, size_t len);

/* tells one definition from another: a hash that the bytes begin with */
extern uint64 MotDefinitionStamp(const void *bytes);

/* the oid of the table, from whole bytes */
extern Oid	MotDefinitionOwner(const void *bytes);
extern bool MotDefinitionIsUnlogged(const void *bytes);

/* In a context of its own under "parent".  Raises XX001 for bytes that make no sense. */
extern MotDefinition *MotDefinitionDecode(const void *bytes, size_t len, MemoryContext parent);
extern void MotDefinitionFree(MotDefinition *def);

/* An index of it, not attached yet, empty. */
extern mot_status MotDefinitionMakeIndex(mot_session *session, mot_table *table,
										 const MotIndex *def, mot_index **index);

/*
 * An engine table (unpublished) with its indexes, as the definition has it; "bytes" is to be its
 * stored one, if any.
 * Without its limit: what is loaded or replayed has had room before, and
 * MotRelationGet sets it.
 */
extern mot_status MotDefinitionMakeTable(mot_session *session, const MotDefinition *def,
										 const void *bytes, size_t len, mot_table **table);

/*
 * Do an index's keys look the same in both? (else it has been built anew)  Not "collations": by
 * whatever name they go, if their keys are the same, which the index's form tells.
 */
extern bool MotDefinitionSameIndex(const MotIndex *a, const MotIndex *b, bool collations);

/*
 * bytes of a row's data (WAL, checkpoints, copies); of two versions at once, which mostly have much
 * in common
 */
extern size_t MotDefinitionRowSize(const MotDefinition *def, const mot_version *version);
extern void MotDefinitionRowSizes(const MotDefinition *def, const mot_version *a, const mot_version *b,
								  size_t *size_a, size_t *size_b);

/*
 * rowkey.c: an empty index is built of a table's rows, or of those that "rows" comes to, by the key
 * of "keys"; "look" is called now and then.  If it returns true this returns MOT_NOT_FOUND, and the
 * index is not built.  What else is returned but MOT_OK is that there is no memory, or that two
 * rows have the same key.
 */
extern mot_status MotLoadIndex(mot_table *table, mot_index *index, MotIndex *keys,
							   bool (*look) (void *arg), void *arg);
extern mot_status MotFillIndex(mot_build *rows, mot_index *index, MotIndex *keys, bool full,
							   bool (*look) (void *arg), void *arg);

/* database.c: the tables there are, of a database or of all (InvalidOid); palloc'd */
extern mot_table **MotTables(Oid dbid, int *n);

#endif							/* MOT_DEFINITION_H */
