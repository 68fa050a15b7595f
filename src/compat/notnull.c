/*-------------------------------------------------------------------------
 *
 * notnull.c
 *	  NOT NULL of a table's column as a constraint with a row of its own.
 *
 * That is how it is from PostgreSQL 18 on.  The hook that tells of changes hears of such a
 * constraint before the column's own row is seen to have changed, and of the
 * table only afterwards, if at all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_constraint.h"
#include "compat/notnull.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"

#if PG_VERSION_NUM >= 180000
const char *
MotInheritsNotNull(const AlterTableCmd *cmd)
{
	ATAlterConstraint *alter;

	if (cmd->subtype != AT_AlterConstraint)
		return NULL;
	alter = castNode(ATAlterConstraint, cmd->def);
	return alter->alterInheritability && !alter->noinherit ? alter->conname : NULL;
}

bool
MotIsNotNull(HeapTuple constraint)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(constraint);

	return form->contype == CONSTRAINT_NOTNULL && OidIsValid(form->conrelid);
}

/*
 * Before ALTER TABLE drops the constraint it takes attnotnull away, which this
 * command has not seen yet.  Whoever drops the column or the table does not.
 */
bool
MotNotNullDropped(HeapTuple constraint)
{
	Relation	pg_attribute;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		dropped;

	if (!MotIsNotNull(constraint))
		return false;
	pg_attribute = table_open(AttributeRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(((Form_pg_constraint) GETSTRUCT(constraint))->conrelid));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber, F_INT2EQ,
				Int16GetDatum(extractNotNullColumn(constraint)));
	scan = systable_beginscan(pg_attribute, AttributeRelidNumIndexId, true, SnapshotSelf, 2, keys);
	tuple = systable_getnext(scan);
	dropped = HeapTupleIsValid(tuple) && !((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	systable_endscan(scan);
	table_close(pg_attribute, AccessShareLock);
	return dropped;
}
#else
bool
MotIsNotNull(HeapTuple constraint)
{
	return false;
}

bool
MotNotNullDropped(HeapTuple constraint)
{
	return false;
}
#endif
