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

#include "miscadmin.h"
#include "relation/keysort.h"
#include "utils/memutils.h"
#include "wal/checkpoint.h"
#include "xact/xact.h"

/* rows between two looks */
#define LOOK_EVERY 1024

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
	mot_session *session = MotSession();
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT index load",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	MemoryContext row_cxt = AllocSetContextCreate(cxt, "MOT index load row", ALLOCSET_DEFAULT_SIZES);
	Datum	   *values = palloc(Max(def->desc->natts, 1) * sizeof(Datum));
	bool	   *isnull = palloc(Max(def->desc->natts, 1) * sizeof(bool));
	MotKeyBuffer key;
	MotKeySort *sort;
	mot_build	build;
	mot_row    *row;
	mot_row    *other;
	const mot_version *version;
	mot_status	status = MOT_OK;
	uint64		n = 0;

	MotKeyBufferInit(&key, cxt);
	sort = MotKeySortBegin(session, index, maintenance_work_mem);

	MemoryContextSwitchTo(row_cxt);
	mot_build_rows(session, &build, table, NULL);
	while (status == MOT_OK && mot_build_next(&build, &row, &version))
	{
		bool		has_null;

		MotRowDeformBytes(def->desc, mot_version_host_bits(version), mot_version_data(version),
						  def->indexes[i].key->max_attnum, values, isnull);
		MotKeyBufferReset(&key);
		MotDefinitionKey(def, i, mot_version_host_bits(version), mot_version_data(version),
						 values, isnull, &key, &has_null);
		status = MotKeySortAdd(sort, row, key.data, key.len, has_null ? MOT_KEY_DISTINCT : 0);
		if (++n % LOOK_EVERY == 0)
		{
			MemoryContextReset(row_cxt);
			if (look(arg))
				status = MOT_NOT_FOUND;
		}
	}
	MemoryContextSwitchTo(cxt);
	if (status == MOT_OK)
		status = MotKeySortBuild(sort, true, look, arg, &other, &row);
	MotKeySortEnd(sort);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return status;
}
