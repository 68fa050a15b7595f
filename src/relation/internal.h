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

/* relation.c */
extern void MotRelationForgetTable(Oid relid);	/* engine objects have
												 * changed: look them up again */
extern void MotRelationEndXact(void);

/* "index" stays where it is: its address is the key check's argument */
extern void MotIndexDescribe(MotIndex *index, MotRelation *mr, Relation rel, Relation indexrel,
							 mot_index *engine_index, MemoryContext cxt);

/* The definition's indexes, as a list of MotIndexDef. */
typedef struct MotIndexDef
{
	Oid			oid;
	bool		unique;
	bool		is_new;			/* made in this transaction */
} MotIndexDef;

extern List *MotIndexDefs(Relation rel);

/*
 * New engine table of a definition, with an empty index for each index that
 * the catalogue has (a list of MotIndexDef); not published.
 */
extern mot_status MotTableMake(Relation rel, List *indexes, mot_table **table);

/* storage.c */
extern void MotStorageInit(void);
extern bool MotStorageIndexDropped(mot_table *table, Oid indexoid); /* in this transaction */

#endif							/* MOT_RELATION_INTERNAL_H */
