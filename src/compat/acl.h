/*-------------------------------------------------------------------------
 *
 * acl.h
 *	  What a user may do with an object, as PostgreSQL 16 and later ask it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ACL_H
#define MOT_ACL_H

#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"

#if PG_VERSION_NUM < 160000
static inline bool
object_ownercheck(Oid classid, Oid objectid, Oid roleid)
{
	switch (classid)
	{
		case RelationRelationId:
			return pg_class_ownercheck(objectid, roleid);
		case DatabaseRelationId:
			return pg_database_ownercheck(objectid, roleid);
		case NamespaceRelationId:
			return pg_namespace_ownercheck(objectid, roleid);
		case TypeRelationId:
			return pg_type_ownercheck(objectid, roleid);
	}
	elog(ERROR, "unexpected object class %u", classid);
	return false;				/* keep compiler quiet */
}

static inline AclResult
object_aclcheck(Oid classid, Oid objectid, Oid roleid, AclMode mode)
{
	switch (classid)
	{
		case DatabaseRelationId:
			return pg_database_aclcheck(objectid, roleid, mode);
		case NamespaceRelationId:
			return pg_namespace_aclcheck(objectid, roleid, mode);
		case ProcedureRelationId:
			return pg_proc_aclcheck(objectid, roleid, mode);
	}
	elog(ERROR, "unexpected object class %u", classid);
	return ACLCHECK_NO_PRIV;	/* keep compiler quiet */
}
#endif

#endif							/* MOT_ACL_H */
