/*-------------------------------------------------------------------------
 *
 * collation.c
 *	  What the catalogue says of a collation.
 *
 * ICU's rules come with 16; with 17 ICU's locale has another column.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "compat/collation.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#if PG_VERSION_NUM >= 170000
#define ANUM_COLLATION_LOCALE Anum_pg_collation_colllocale
#define ANUM_DATABASE_LOCALE Anum_pg_database_datlocale
#else
#define ANUM_COLLATION_LOCALE Anum_pg_collation_colliculocale
#define ANUM_DATABASE_LOCALE Anum_pg_database_daticulocale
#endif

#if PG_VERSION_NUM >= 160000
#define ANUM_COLLATION_RULES Anum_pg_collation_collicurules
#define ANUM_DATABASE_RULES Anum_pg_database_daticurules
#else
#define ANUM_COLLATION_RULES 0
#define ANUM_DATABASE_RULES 0
#endif

static char *
get_text(int cache, HeapTuple tuple, int attnum)
{
	bool		isnull;
	Datum		value;

	if (attnum == 0)
		return NULL;
	value = SysCacheGetAttr(cache, tuple, (AttrNumber) attnum, &isnull);
	return isnull ? NULL : TextDatumGetCString(value);
}

bool
MotCollationRead(Oid collation, MotCollationSource *source)
{
	bool		own = collation == DEFAULT_COLLATION_OID;
	int			cache = own ? DATABASEOID : COLLOID;
	Oid			oid = own ? MyDatabaseId : collation;
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(oid));

	memset(source, 0, sizeof(*source));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for %s %u", own ? "database" : "collation", oid);
	source->provider = own ? ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider :
		((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	source->deterministic = own || ((Form_pg_collation) GETSTRUCT(tuple))->collisdeterministic;
	if (source->provider == COLLPROVIDER_LIBC)
		source->locale = get_text(cache, tuple, own ? Anum_pg_database_datcollate : Anum_pg_collation_collcollate);
	else if (source->provider == COLLPROVIDER_ICU)
	{
		source->locale = get_text(cache, tuple, own ? ANUM_DATABASE_LOCALE : ANUM_COLLATION_LOCALE);
		source->rules = get_text(cache, tuple, own ? ANUM_DATABASE_RULES : ANUM_COLLATION_RULES);
	}
	ReleaseSysCache(tuple);
	return source->locale != NULL;
}
