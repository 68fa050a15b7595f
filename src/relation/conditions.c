/*-------------------------------------------------------------------------
 *
 * conditions.c
 *	  What the catalogue says that a table's rows satisfy.
 *
 * Valid CHECK constraints, its own and those of its columns' domains, and the
 * bounds of the partitions that the table is or lies in; of a default partition
 * also those of all beside it, whose rows it must not have.  The planner relies
 * on them: a row that is not within its partition's bounds is found by no query
 * that names its key.  Whoever adds one while mot is loaded has the rows looked
 * at; without it nobody does, so definitions (definition.h) keep those that the
 * rows have been checked for, each as a hash of what the catalogue says about it.
 * Partitions beside a default one and constraints are hashed with their oids:
 * they can go without a word to the table, by way of a domain or without mot, and
 * the next one of the same text is another one.  Where in a command something was
 * said is no part of it.
 *
 * That does not tell what goes and comes again as the same: a domain's NOT NULL, the
 * bounds of a partition that is detached and attached once more.  What rows
 * have come in between, nobody knows.  So a definition may say more than the
 * catalogue only as long as no row has come since: whoever commits rows to a
 * table stores the definition anew if that is so (renew.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "relation/internal.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* what is hashed: a CHECK's expression; bounds that rows lie within, or outside of */
#define A_CHECK		0
#define WITHIN		1
#define OUTSIDE		2
#define NOT_NULL	3			/* a domain is */

#define LOCATION	" :location "	/* a blank within a name or constant is
									 * written with a backslash */

static List *
add(List *conditions, int kind, Oid object, const char *text, const char *name)
{
	MotRowCondition *condition = palloc(sizeof(MotRowCondition));
	StringInfoData buf;
	const char *location;

	initStringInfo(&buf);
	while ((location = strstr(text, LOCATION)) != NULL)
	{
		appendBinaryStringInfo(&buf, text, (int) (location - text));
		text = location + strlen(LOCATION);
		text	  +=strspn(text, "-0123456789");
	}
	appendStringInfoString(&buf, text);
	condition->hash = hash_bytes_extended((const unsigned char *) buf.data, buf.len,
										  ((uint64) kind << 32) + object);
	pfree(buf.data);
	condition->name = name;
	return lappend(conditions, condition);
}

/* a domain, and what it is made from; all of these are added to *domains */
static List *
add_domain(List *conditions, List **domains, Oid typid)
{
	Relation	pg_constraint = table_open(ConstraintRelationId, AccessShareLock);

	while (get_typtype(typid) == TYPTYPE_DOMAIN)
	{
		HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(typid));
		Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);
		char	   *name = pstrdup(NameStr(type->typname));
		ScanKeyData key;
		SysScanDesc scan;

		*domains = list_append_unique_oid(*domains, typid);
		if (type->typnotnull)
			conditions = add(conditions, NOT_NULL, typid, "", name);
		ScanKeyInit(&key, Anum_pg_constraint_contypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(typid));
		scan = systable_beginscan(pg_constraint, ConstraintTypidIndexId, true, NULL, 1, &key);
		typid = type->typbasetype;
		ReleaseSysCache(tuple);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		{
			Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);
			bool		isnull;
			Datum		datum = heap_getattr(tuple, Anum_pg_constraint_conbin,
											 RelationGetDescr(pg_constraint), &isnull);

			if (form->contype == CONSTRAINT_CHECK && form->convalidated && !isnull)
				conditions = add(conditions, A_CHECK, form->oid, TextDatumGetCString(datum),
								 pstrdup(NameStr(form->conname)));
		}
		systable_endscan(scan);
	}
	table_close(pg_constraint, AccessShareLock);
	return conditions;
}

/* as the catalogue has them; NULL: none yet */
static char *
bounds_of(Oid partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
	char	   *bounds = NULL;
	Datum		datum;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (!isnull)
		bounds = TextDatumGetCString(datum);
	ReleaseSysCache(tuple);
	return bounds;
}

static List *
add_bounds(List *conditions, Oid parent, Oid partition)
{
	char	   *bounds = bounds_of(partition);

	if (bounds == NULL)
		return conditions;
	conditions = add(conditions, WITHIN, parent, bounds, NULL);
	if (get_default_partition_oid(parent) != partition)
		return conditions;
	foreach_oid(oid, find_inheritance_children(parent, NoLock))
	{
		if (oid != partition && (bounds = bounds_of(oid)) != NULL)
			conditions = add(conditions, OUTSIDE, oid, bounds, NULL);
	}
	return conditions;
}

List *
MotConditions(Relation rel, List **domains)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;
	List	   *conditions = NIL;

	*domains = NIL;
	for (int i = 0; constr != NULL && i < constr->num_check; i++)
		if (constr->check[i].ccvalid && constr->check[i].ccbin != NULL)
			conditions = add(conditions, A_CHECK,
							 get_relation_constraint_oid(RelationGetRelid(rel), constr->check[i].ccname, false),
							 constr->check[i].ccbin, constr->check[i].ccname);
	for (int i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		/* (built-in types are none) */
		if (!att->attisdropped && att->atttypid >= FirstNormalObjectId &&
			get_typtype(att->atttypid) == TYPTYPE_DOMAIN)
			conditions = add_domain(conditions, domains, att->atttypid);
	}
	if (rel->rd_rel->relispartition)
	{
		Oid			partition = RelationGetRelid(rel);

		foreach_oid(oid, get_partition_ancestors(partition))
		{
			conditions = add_bounds(conditions, oid, partition);
			partition = oid;
		}
	}
	return conditions;
}
