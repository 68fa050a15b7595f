/*-------------------------------------------------------------------------
 *
 * loadindex.c
 *	  An index of a table whose rows have been loaded.
 *
 * Rows lie in files in no order of any key, so entries would be looked for a
 * place one by one.  They are sorted first (relation/keysort.c), in as much
 * private memory as CREATE INDEX would have (maintenance_work_mem) and
 * temporary files.  The index is as small as can be, so that what had room
 * before has room again, however the index came to be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "relation/definition.h"
#include "relation/keysort.h"
#include "xact/xact.h"

/* the definition's key of this number */
typedef struct RowKeys
{
	const MotDefinition *def;
	int			i;
	Datum	   *values;
	bool	   *isnull;
} RowKeys;

static unsigned
append_key(void *arg, const mot_version *version, MotKeyBuffer *key)
{
	RowKeys    *keys = arg;
	bool		has_null;

	MotDefinitionVersionKey(keys->def, keys->i, version, keys->values, keys->isnull, key, &has_null);
	return has_null ? MOT_KEY_DISTINCT : 0;
}

mot_status
MotFillIndex(mot_build *rows, mot_index *index, const MotDefinition *def, int i, bool full,
			 bool (*look) (void *arg), void *arg)
{
	RowKeys		keys = {def, i};
	mot_row    *row;
	mot_row    *other;
	mot_status	status;

	keys.values = palloc(Max(def->desc->natts, 1) * sizeof(Datum));
	keys.isnull = palloc(Max(def->desc->natts, 1) * sizeof(bool));
	status = MotKeySortRows(rows, index, full, append_key, &keys, look, arg, &other, &row);
	pfree(keys.values);
	pfree(keys.isnull);
	return status;
}

/*
 * Number i of the definition, in an index that is empty, of a table that nobody
 * else can see.  "look" is called now and then; if it returns true this returns
 * MOT_NOT_FOUND, and the index is not built.  What else is returned but MOT_OK is that
 * there is no memory, or that two rows have the same key.
 */
mot_status
MotLoadIndex(mot_table *table, mot_index *index, const MotDefinition *def, int i,
			 bool (*look) (void *arg), void *arg)
{
	mot_build	rows;

	mot_build_rows(MotSession(), &rows, table, NULL);
	return MotFillIndex(&rows, index, def, i, true, look, arg);
}
