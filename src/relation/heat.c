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

void
MotRelationTouchedRows(MotRelation *mr, const mot_version *version, unsigned rows, bool change)
{
	MotIslandsSeen *seen = &mr->islands;
	MotIndex   *index = mr->indexes;

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
	(void) MotIndexKeyOf(index, version, &index->check_buffer);
	MotIslandsTouch(seen, index->check_buffer.data, index->check_buffer.len, rows, change);
}
