/*-------------------------------------------------------------------------
 *
 * access.c
 *	  The object-access hook: storage goes when its catalogue entry goes, and
 *	  the log hears of definitions that change.
 *
 * OAT_DROP sees every way a table or an index can be dropped: by name, with
 * its schema, owner, server or extension, by CASCADE, or with a column.  The
 * storage layer makes it happen at commit.  Columns come by OAT_POST_CREATE
 * and go by OAT_DROP; everything else about a table is OAT_POST_ALTER (its
 * options have a class of their own).
 *
 *-------------------------------------------------------------------------
 */
#include "ddl/ddl.h"

#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_table.h"
#include "relation/relation.h"
#include "utils/lsyscache.h"

static object_access_hook_type prev_object_access = NULL;

static void
mot_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class_id, object_id, sub_id, arg);

	if (class_id != RelationRelationId &&
		(class_id != ForeignTableRelationId || access != OAT_POST_ALTER))
		return;
	if (access == OAT_POST_ALTER || (sub_id != 0 && (access == OAT_DROP || access == OAT_POST_CREATE)))
	{
		if (get_rel_relkind(object_id) == RELKIND_FOREIGN_TABLE && MotIsMotTable(object_id))
			MotStorageDefinitionChanged(object_id);
		return;
	}
	if (access != OAT_DROP)
		return;

	switch (get_rel_relkind(object_id))
	{
		case RELKIND_FOREIGN_TABLE:
			if (MotIsMotTable(object_id))
				MotStorageDropTable(object_id);
			break;
		case RELKIND_INDEX:
			if (MotDdlIsMotIndex(object_id))
			{
				Oid			relid = IndexGetRelation(object_id, true);

				/*
				 * an index of the access method can also be a failed one on a
				 * heap table
				 */
				if (OidIsValid(relid) && MotIsMotTable(relid))
					MotStorageDropIndex(relid, object_id);
			}
			break;
		default:
			break;
	}
}

void
MotAccessInit(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = mot_object_access;
}
