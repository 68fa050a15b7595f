/*-------------------------------------------------------------------------
 *
 * duplicate.c
 *	  Errors about duplicate keys, in the server's own words.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xact.h"
#include "relation/internal.h"
#include "xact/xact.h"

/* "(id)=(1)", or NULL if the user may not see the values */
static char *
describe_key(Relation indexrel, MotIndex *index, Datum *values, bool *isnull)
{
	Datum		key_values[INDEX_MAX_KEYS];
	bool		key_isnull[INDEX_MAX_KEYS];

	if (index->key->computed)
		(void) MotIndexCompute(index, values, isnull, key_values, key_isnull);
	for (int i = 0; i < index->key->ncolumns && !index->key->computed; i++)
	{
		key_values[i] = values[index->key->columns[i].attnum - 1];
		key_isnull[i] = isnull[index->key->columns[i].attnum - 1];
	}
	return BuildIndexValueDescription(indexrel, key_values, key_isnull);
}

void
MotRaiseDuplicate(Relation rel, MotIndex *index, Datum *values, bool *isnull)
{
	Relation	indexrel;
	char	   *key;

	/*
	 * A transaction that looked for the key first, or took it from a counter
	 * that somebody else has moved since, has not made a mistake: it came too
	 * late, and the server says so before it speaks of duplicates.
	 */
	if (IsolationUsesXactSnapshot())
	{
		mot_status	status = mot_txn_check(MotSession());

		if (status != MOT_OK)
			MotRaiseStatus(status, rel);
	}

	indexrel = index_open(index->indexoid, AccessShareLock);
	key = describe_key(indexrel, index, values, isnull);
	if (indexrel->rd_index->indisexclusion)
		ereport(ERROR,
				(errcode(ERRCODE_EXCLUSION_VIOLATION),
				 errmsg("conflicting key value violates exclusion constraint \"%s\"",
						RelationGetRelationName(indexrel)),
				 key ? errdetail("Key %s conflicts with existing key %s.", key, key) :
				 errdetail("Key conflicts with existing key."),
				 errtableconstraint(rel, RelationGetRelationName(indexrel))));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(indexrel)),
			 key ? errdetail("Key %s already exists.", key) : 0,
			 errtableconstraint(rel, RelationGetRelationName(indexrel))));
}

/* the same when an index is built */
void
MotRaiseNotUnique(Relation rel, MotIndex *index, Datum *values, bool *isnull)
{
	Relation	indexrel = index_open(index->indexoid, AccessShareLock);
	char	   *key = describe_key(indexrel, index, values, isnull);

	if (indexrel->rd_index->indisexclusion)
		ereport(ERROR,
				(errcode(ERRCODE_EXCLUSION_VIOLATION),
				 errmsg("could not create exclusion constraint \"%s\"", RelationGetRelationName(indexrel)),
				 key ? errdetail("Key %s conflicts with key %s.", key, key) :
				 errdetail("Key conflicts exist."),
				 errtableconstraint(rel, RelationGetRelationName(indexrel))));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(indexrel)),
			 key ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(rel, RelationGetRelationName(indexrel))));
}
