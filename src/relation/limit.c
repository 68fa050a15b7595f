/*-------------------------------------------------------------------------
 *
 * limit.c
 *	  A table's own limit of memory.
 *
 * A foreign table has an option for it.  Which storage parameters an ordinary table may
 * have is a list in the server, so its limit is a security label:
 *
 *		SECURITY LABEL FOR mot ON TABLE t IS 'max_size=512MB'
 *
 * It is the table's, whatever becomes of its rows: TRUNCATE, ALTER TABLE and SET ACCESS
 * METHOD, also to heap and back, keep it, pg_dump writes it, and it is in the catalogue of standbys.
 * Who owns a table labels it, as with an option.
 *
 * What stores all rows anew does so in a relation of the server's for a while, which then changes
 * places with the table.  Its name says whose it is, and so whose limit it has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/seclabel.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define LABEL "max_size="

/* false: it is none */
static bool
parse_size(const char *value, double *bytes, const char **hint)
{
	return parse_real(value, bytes, GUC_UNIT_BYTE, hint) && *bytes >= 0 && *bytes < (double) PG_INT64_MAX;
}

static bool
parse_label(const char *label, double *bytes, const char **hint)
{
	return strncmp(label, LABEL, strlen(LABEL)) == 0 && parse_size(label + strlen(LABEL), bytes, hint);
}

/* the server is about to set or (NULL) remove a label; it has seen to privileges, and locked the table */
static void
check_label(const ObjectAddress *object, const char *label)
{
	char		kind = object->classId == RelationRelationId && object->objectSubId == 0 ?
	get_rel_relkind(object->objectId) : 0;
	const char *hint = NULL;
	double		bytes;
	Relation	rel;

	if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("security labels of provider \"%s\" are for tables with rows of their own", MOT_LABEL_PROVIDER),
				 kind == RELKIND_PARTITIONED_TABLE ? errhint("Label its partitions.") :
				 kind == RELKIND_FOREIGN_TABLE ? errhint("A foreign table has the option \"max_size\" instead.") : 0));
	if (label != NULL && !parse_label(label, &bytes, &hint))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid security label \"%s\" for provider \"%s\"", label, MOT_LABEL_PROVIDER),
				 hint ? errhint("%s", hint) :
				 errhint("It is an amount of memory that the table may take, such as \"" LABEL "512MB\".")));

	rel = relation_open(object->objectId, NoLock);
	if (MotIsOrdinary(rel))
	{
		/*
		 * definitions change while nobody writes; of a table that is not in
		 * memory it stays as it is
		 */
		LockRelation(rel, ShareRowExclusiveLock);
		if (MotRelationMissing == NULL || !MotRelationMissing(MyDatabaseId, MotStorageNumber(rel)))
			MotStorageDefinitionChanged(object->objectId);
		CacheInvalidateRelcache(rel);
	}
	relation_close(rel, NoLock);
}

/* the table that a relation's rows are for */
static Oid
table_of(Relation rel)
{
	Oid			relid;
	char		rest;

	if (rel->rd_createSubid != InvalidSubTransactionId &&
		sscanf(RelationGetRelationName(rel), "pg_temp_%u%c", &relid, &rest) == 1 &&
		get_rel_namespace(relid) == RelationGetNamespace(rel))
		return relid;
	return RelationGetRelid(rel);
}

uint64
MotTableMaxSize(Relation rel)
{
	const char *hint;
	double		bytes = 0;

	if (MotIsOrdinary(rel))
	{
		ObjectAddress object;
		char	   *label;

		ObjectAddressSet(object, RelationRelationId, table_of(rel));
		label = GetSecurityLabel(&object, MOT_LABEL_PROVIDER);
		return label != NULL && parse_label(label, &bytes, &hint) ? (uint64) bytes : 0;
	}
	/* as the wrapper's validator has let them through */
	foreach_node(DefElem, def, GetForeignTable(RelationGetRelid(rel))->options)
	{
		if (strcmp(def->defname, "max_size") == 0)
			(void) parse_size(defGetString(def), &bytes, &hint);
	}
	return (uint64) bytes;
}

/* A foreign table has become an ordinary one. */
void
MotTableKeepMaxSize(Oid relid, const char *value)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, relid);
	SetSecurityLabel(&object, MOT_LABEL_PROVIDER, psprintf(LABEL "%s", value));
}

void
MotLimitInit(void)
{
	register_label_provider(MOT_LABEL_PROVIDER, check_label);
}
