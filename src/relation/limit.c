/*-------------------------------------------------------------------------
 *
 * limit.c
 *	  Limits of memory: of a table, of a database, of a role.
 *
 * A foreign table has an option for it.  Which storage parameters an ordinary table may
 * have is a list in the server, so its limit is a security label, and so are those of
 * databases and roles:
 *
 *		SECURITY LABEL FOR mot ON TABLE t IS 'max_size=512MB'
 *		SECURITY LABEL FOR mot ON DATABASE d IS 'max_size=4GB'
 *		SECURITY LABEL FOR mot ON ROLE r IS 'max_size=1GB'
 *
 * A table's is the table's, whatever becomes of its rows: TRUNCATE, ALTER TABLE and SET ACCESS
 * METHOD, also to heap and back, keep it, pg_dump writes it, and it is in the catalogue of
 * standbys. Who owns a table labels it, as with an option.
 *
 * What stores all rows anew does so in a relation of the server's for a while, which then changes
 * places with the table.  Its name says whose it is, and so whose limit it has.
 *
 * The other labels are in a catalogue that all databases share, so any session can read
 * them.  The engine counts what a database's tables have together, and what a role's have
 * (engine/mot_quota.h), and has their limits in shared memory: the first to come to a table
 * learns what they are, and who sets one tells the engine as it commits, so that it holds for all
 * sessions from then on.  Whose a table is, its database only knows: who comes to it says so
 * (and soon after each start a worker, orphans.c), and who gives it to another role, as he commits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/defrem.h"
#include "commands/seclabel.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "relation/internal.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "xact/xact.h"

#define LABEL "max_size="

/* databases and roles whose labels this transaction has set; in TopTransactionContext */
typedef struct Labelled
{
	Oid			catalog;
	Oid			id;
	uint64		limit;			/* as it is to commit */
	struct Labelled *next;
} Labelled;

static Labelled *labelled = NULL;

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

static uint64
label_of(Oid catalog, Oid id)
{
	ObjectAddress object;
	const char *hint;
	double		bytes;
	char	   *label;

	ObjectAddressSet(object, catalog, id);
	label = GetSecurityLabel(&object, MOT_LABEL_PROVIDER);
	return label != NULL && parse_label(label, &bytes, &hint) ? (uint64) bytes : 0;
}

static void
note_label(Oid catalog, Oid id)
{
	Labelled   *l;

	for (l = labelled; l != NULL; l = l->next)
		if (l->catalog == catalog && l->id == id)
			return;
	l = MemoryContextAllocZero(TopTransactionContext, sizeof(Labelled));
	l->catalog = catalog;
	l->id = id;
	l->next = labelled;
	labelled = l;
}

/*
 * the server is about to set or (NULL) remove a label; it has seen to privileges, and locked the
 * table
 */
static void
check_label(const ObjectAddress *object, const char *label)
{
	char		kind = object->classId == RelationRelationId && object->objectSubId == 0 ?
	get_rel_relkind(object->objectId) : 0;
	const char *hint = NULL;
	double		bytes;
	Relation	rel;
	bool		shared = object->classId == DatabaseRelationId || object->classId == AuthIdRelationId;

	if (!shared && kind != RELKIND_RELATION && kind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("security labels of provider \"%s\" are for databases, roles, and tables with rows of their own", MOT_LABEL_PROVIDER),
				 kind == RELKIND_PARTITIONED_TABLE ? errhint("Label its partitions.") :
				 kind == RELKIND_FOREIGN_TABLE ? errhint("A foreign table has the option \"max_size\" instead.") : 0));
	if (label != NULL && !parse_label(label, &bytes, &hint))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid security label \"%s\" for provider \"%s\"", label, MOT_LABEL_PROVIDER),
				 hint ? errhint("%s", hint) :
				 shared ? errhint("It is an amount of memory that its tables may take, such as \"" LABEL "512MB\".") :
				 errhint("It is an amount of memory that the table may take, such as \"" LABEL "512MB\".")));
	if (shared)
	{
		note_label(object->classId, object->objectId);
		return;
	}

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
		return label_of(RelationRelationId, table_of(rel));
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

/* --------------------------------------------------- databases and roles */

mot_quota *
MotRoleHold(Oid role)
{
	mot_quota  *quota = mot_quota_hold(MotSession(), MOT_QUOTA_ROLE, role);

	if (quota == NULL)
		MotRaiseStatus(MOT_NO_MEMORY, NULL);
	return quota;
}

Oid
MotTableRole(const mot_table *table)
{
	mot_quota  *role = mot_table_quota(table, MOT_QUOTA_ROLE);
	mot_quota_report report = {.host_id = InvalidOid};

	if (role != NULL)
		mot_quota_report_get(role, &report);
	return report.host_id;
}

uint64
MotQuotaLabel(mot_quota_kind kind, Oid id)
{
	/* who has told the engine may not have told us yet */
	InvalidateCatalogSnapshot();
	return label_of(kind == MOT_QUOTA_DATABASE ? DatabaseRelationId : AuthIdRelationId, id);
}

/*
 * A label that is committed, but not told to the engine yet, is told after we have read it; one
 * that was told meanwhile is preferred to what we have read.
 */
static void
learn(mot_quota *quota)
{
	mot_quota_report report;
	uint64		changes;

	if (mot_quota_is_known(MotEngine, quota, &changes))
		return;
	mot_quota_report_get(quota, &report);
	mot_quota_learn(MotEngine, quota, changes, MotQuotaLabel(report.kind, report.host_id));
}

/* Rows may be added to the table: limits hold.  With a lock that keeps its owner as it is. */
void
MotLimitsApply(Relation rel, mot_table *table)
{
	Oid			role = MotTableRole(table);

	mot_table_set_limit(table, MotTableMaxSize(rel));
	/* an owner that this transaction has given it is so when it commits */
	if (!OidIsValid(role) ||
		(role != rel->rd_rel->relowner && !MotStorageChangedHere(MotStorageNumber(rel))))
		mot_table_put_role(table, MotRoleHold(rel->rd_rel->relowner), false);
	learn(mot_table_quota(table, MOT_QUOTA_DATABASE));
	learn(mot_table_quota(table, MOT_QUOTA_ROLE));
	mot_table_set_bounded(table);
}

/*
 * It counts for that owner, whom somebody has read without a lock, unless another one is known: who
 * gives the table away finds this one as he commits, or is found here.
 */
void
MotLimitsCount(mot_table *table, Oid owner)
{
	if (mot_table_quota(table, MOT_QUOTA_ROLE) == NULL)
		mot_table_put_role(table, MotRoleHold(owner), true);
}

void
MotLimitsCopy(mot_table *from, mot_table *to)
{
	Oid			role = MotTableRole(from);

	if (!OidIsValid(role))
		return;
	mot_table_put_role(to, MotRoleHold(role), false);
	learn(mot_table_quota(from, MOT_QUOTA_ROLE));
	mot_table_set_bounded(to);
}

/*
 * Whatever savepoints have left of it: the label as it is now.  The lock is that of SECURITY LABEL,
 * which ROLLBACK TO has let go of; so of two transactions that label, the second tells
 * the engine what is there when the first has.
 */
static void
read_labels(void)
{
	for (Labelled *l = labelled; l != NULL; l = l->next)
	{
		LockSharedObject(l->catalog, l->id, 0, ShareUpdateExclusiveLock);
		InvalidateCatalogSnapshot();
		l->limit = label_of(l->catalog, l->id);
	}
}

static void
tell_labels(void)
{
	if (MotEngine != NULL)
		for (Labelled *l = labelled; l != NULL; l = l->next)
			mot_quota_set(MotEngine, l->catalog == DatabaseRelationId ? MOT_QUOTA_DATABASE : MOT_QUOTA_ROLE, l->id, l->limit);
}

static void
xact_callback(XactEvent event, void *arg)
{
	if (likely(labelled == NULL))
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			read_labels();
			break;
		case XACT_EVENT_PRE_PREPARE:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that has set limits of memory-optimized tables"),
					 errhint("Use COMMIT, or do that in a transaction of its own.")));
			break;
		case XACT_EVENT_COMMIT:
			tell_labels();
			labelled = NULL;
			break;
		case XACT_EVENT_ABORT:
			labelled = NULL;
			break;
		default:
			break;
	}
}

void
MotLimitInit(void)
{
	register_label_provider(MOT_LABEL_PROVIDER, check_label);
	RegisterXactCallback(xact_callback, NULL);
}
