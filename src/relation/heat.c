/*-------------------------------------------------------------------------
 *
 * heat.c
 *	  Tells islands/ which rows are worked on.
 *
 * A row's position is taken from the row itself, by the key of the table's
 * first index, whichever way the row was found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "relation/internal.h"
#include "utils/memutils.h"

static void form_key(MotRelation *mr, MotIndex *index, const mot_version *version);

void
MotRelationTouchedRows(MotRelation *mr, const mot_version *version, unsigned rows, bool change)
{
	MotIslandsSeen *seen = &mr->islands;
	MotIndex   *index = mr->indexes;
	MotKeyBuffer *buf;
	unsigned	host_bits;

	if (version == NULL || mr->nindexes == 0 || !MotIslandsWatches(seen, mr->serial))
		return;
	for (int i = 0; mot_index_host_id(index->handle.index) != seen->index; i++, index++)
	{
		if (i + 1 == mr->nindexes)
			return;
	}

	/*
	 * (computed ones lie behind the row, where an old version may not have
	 * them)
	 */
	if (index->key->computed)
		return;
	buf = &index->check_buffer;
	MotKeyBufferReset(buf);
	host_bits = mot_version_host_bits(version);
	if (likely(index->offsets != NULL && (host_bits & MOT_ROW_HAS_NULLS) == 0 &&
			   (int) (host_bits & MOT_ROW_NATTS_MASK) >= index->key->max_attnum))
		MotKeyFromFixed(index->key, mot_version_data(version), index->offsets, buf);
	else
		form_key(mr, index, version);
	MotIslandsTouch(seen, buf->data, buf->len, rows, change);
}

static void
form_key(MotRelation *mr, MotIndex *index, const mot_version *version)
{
	static MemoryContext scratch = NULL;
	MemoryContext oldcxt;
	bool		has_null;

	if (scratch == NULL)
		scratch = AllocSetContextCreate(TopMemoryContext, "MOT positions of rows", ALLOCSET_SMALL_SIZES);
	oldcxt = MemoryContextSwitchTo(scratch);
	MotRowDeform(mr->desc, version, index->key->max_attnum, index->check_values, index->check_isnull);
	MotKeyFromRow(index->key, index->check_values, index->check_isnull, &index->check_buffer, &has_null);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(scratch);
}
