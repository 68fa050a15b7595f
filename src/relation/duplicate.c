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
#include "utils/lsyscache.h"
#include "xact/xact.h"

static void raise_duplicate(Relation rel, MotIndex *index, Datum *values, bool *isnull,
							bool building) pg_attribute_noreturn();

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

/* "building": an index of rows that are there */
static void
raise_duplicate(Relation rel, MotIndex *index, Datum *values, bool *isnull, bool building)
{
	Relation	indexrel = index_open(index->indexoid, AccessShareLock);
	const char *name = RelationGetRelationName(indexrel);
	char	   *key = describe_key(indexrel, index, values, isnull);

	if (indexrel->rd_index->indisexclusion)
		ereport(ERROR,
				(errcode(ERRCODE_EXCLUSION_VIOLATION),
				 building ? errmsg("could not create exclusion constraint \"%s\"", name) :
				 errmsg("conflicting key value violates exclusion constraint \"%s\"", name),
				 key && building ? errdetail("Key %s conflicts with key %s.", key, key) :
				 key ? errdetail("Key %s conflicts with existing key %s.", key, key) :
				 building ? errdetail("Key conflicts exist.") :
				 errdetail("Key conflicts with existing key."),
				 errtableconstraint(rel, name)));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 building ? errmsg("could not create unique index \"%s\"", name) :
			 errmsg("duplicate key value violates unique constraint \"%s\"", name),
			 key && building ? errdetail("Key %s is duplicated.", key) :
			 key ? errdetail("Key %s already exists.", key) :
			 building ? errdetail("Duplicate keys exist.") : 0,
			 errtableconstraint(rel, name)));
}

void
MotRaiseDuplicate(Relation rel, MotIndex *index, Datum *values, bool *isnull)
{
	/*
	 * A transaction that looked for the key first, or took it from a counter
	 * that somebody else has moved since, has not made a mistake: it came too
	 * late, and the server says so before it speaks of duplicates.
	 */
	if (IsolationUsesXactSnapshot())
		MotRaiseStatus(mot_txn_check(MotSession()), rel);
	raise_duplicate(rel, index, values, isnull, false);
}

/*
 * Who would need an index that has plain keys, of strings that may be equal all the same
 * (keycodec.h).
 */
void
MotRaiseBlindIndex(const MotIndex *index)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" can neither be read nor take new keys", get_rel_name(index->indexoid)),
			 errdetail("The library of its collation takes keys for equal that were not when they were stored, or makes keys that are too long: it is another version."),
			 errhint("Delete the rows that are in the way and REINDEX; or drop the index, mend the rows and create it again; or start the server with the former version.")));
}

void
MotRaiseNotUnique(Relation rel, MotIndex *index, const mot_version *version)
{
	MotRowDeform(index->desc, version, MotIndexColumns(index), index->check_values, index->check_isnull);
	raise_duplicate(rel, index, index->check_values, index->check_isnull, true);
}
