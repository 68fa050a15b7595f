/*-------------------------------------------------------------------------
 *
 * logical.c
 *	  What logical decoding is to find of a table's changes.
 *
 * The redo record of a transaction names rows by their keys and says which bytes
 * differ; whoever decodes the log has no tables to make rows of that, and meets it when the
 * transaction commits, behind all that it did to heap tables.  So where the server logs heap
 * tables' changes for decoding (wal_level = logical), those of ordinary tables are logged as they
 * are made, too, each with all that it takes to show it (wal/decode.c), under the xid of the
 * subtransaction that makes it.
 *
 * What of the old row is logged is what REPLICA IDENTITY says, as heap does it
 * (ExtractReplicaIdentity): all of it, or its key if that changes, or nothing.
 *
 * Tables whose rows are stored anew (ALTER TABLE) have no changes, and nor have foreign
 * tables, temporary and unlogged ones.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "relation/internal.h"
#include "utils/datum.h"
#include "xact/xact.h"

static bool
is_logged(Relation rel)
{
	return RelationIsLogicallyLogged(rel) && rel->rd_rel->relrewrite == InvalidOid;
}

static MotLogicalRow
version_row(const MotWriter *writer, const mot_version *version)
{
	unsigned	host_bits = mot_version_host_bits(version);
	const void *data = mot_version_data(version);

	return (MotLogicalRow)
	{
		data, MotRowColumnsSize(writer->mr->desc, host_bits, data), host_bits & ~MOT_ROW_HAS_TAIL
	};
}

/* its key's columns, the others null */
static MotLogicalRow
key_row(const MotWriter *writer, const Bitmapset *key, Datum *values, bool *isnull)
{
	TupleDesc	desc = writer->mr->desc;
	size_t		size;
	unsigned	host_bits;
	void	   *data;

	for (int i = 0; i < desc->natts; i++)
		isnull[i] |= !bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, key);
	(void) MotRowMeasure(&writer->mr->shape, values, isnull, &size, &host_bits);
	data = palloc(size);
	MotRowFill(&writer->mr->shape, values, isnull, host_bits, size, data);
	return (MotLogicalRow)
	{
		data, size, host_bits
	};
}

/*
 * do the columns of the key have other values than before?  (a stored text may have a shorter
 * header)
 */
static bool
key_changes(TupleDesc desc, const Bitmapset *key, const Datum *before, const bool *wasnull,
			const Datum *values, const bool *isnull)
{
	int			member = -1;

	while ((member = bms_next_member(key, member)) >= 0)
	{
		int			i = member + FirstLowInvalidHeapAttributeNumber - 1;
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i] || wasnull[i])
		{
			if (isnull[i] != wasnull[i])
				return true;
		}
		else if (!datum_image_eq(values[i], before[i], att->attbyval, att->attlen))
			return true;
	}
	return false;
}

void
MotLogicalBefore(MotWriter *writer, const mot_version *old, const Datum *values, const bool *isnull, bool deletion)
{
	Relation	rel = writer->rel;
	TupleDesc	desc = writer->mr->desc;
	char		identity = rel->rd_rel->relreplident;
	Bitmapset  *key;
	Datum	   *before;
	bool	   *wasnull;

	writer->before.data = NULL;
	if (!is_logged(rel) || identity == REPLICA_IDENTITY_NOTHING)
		return;
	if (identity == REPLICA_IDENTITY_FULL)
	{
		MotLogicalRow row = version_row(writer, old);

		/* a copy: the version's place may be the new one's */
		row.data = memcpy(MemoryContextAllocHuge(CurrentMemoryContext, row.size), row.data, row.size);
		writer->before = row;
		return;
	}
	if (!deletion && values == NULL)
		return;					/* no key of any index */
	key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);
	if (bms_is_empty(key))
		return;
	before = palloc(desc->natts * sizeof(Datum));
	wasnull = palloc(desc->natts * sizeof(bool));
	MotRowDeform(desc, old, desc->natts, before, wasnull);
	if (deletion || key_changes(desc, key, before, wasnull, values, isnull))
		writer->before = key_row(writer, key, before, wasnull);
	bms_free(key);
	pfree(before);
	pfree(wasnull);
}

static void
log_change(MotWriter *writer, MotLogicalKind kind, MotLogicalRow after)
{
	MotLogicalChange change = {kind, writer->before, after};

	MotLogChanges(&writer->rel->rd_locator, &change, 1);
	if (writer->before.data != NULL)
		pfree(unconstify(void *, writer->before.data));
	writer->before.data = NULL;
}

void
MotLogicalInsert(MotWriter *writer, mot_row *row)
{
	writer->before.data = NULL;
	if (is_logged(writer->rel))
		log_change(writer, MOT_LOGICAL_INSERT,
				   version_row(writer, mot_row_newest(writer->session, row)));
}

void
MotLogicalUpdate(MotWriter *writer, unsigned host_bits, const void *data, size_t size)
{
	MotLogicalRow row = {data, size, host_bits & ~MOT_ROW_HAS_TAIL};

	if (!is_logged(writer->rel))
		return;
	if ((host_bits & MOT_ROW_HAS_TAIL) != 0)
		row.size = MotRowColumnsSize(writer->mr->desc, host_bits, data);
	log_change(writer, MOT_LOGICAL_UPDATE, row);
}

void
MotLogicalDelete(MotWriter *writer)
{
	static const MotLogicalRow none = {NULL};

	if (is_logged(writer->rel))
		log_change(writer, MOT_LOGICAL_DELETE, none);
}

void
MotLogicalInserts(MotWriter *writer, const MotBatch *batch)
{
	int			n = MotBatchRows(batch);
	MotLogicalChange *changes;

	if (!is_logged(writer->rel))
		return;
	changes = palloc0(n * sizeof(MotLogicalChange));
	for (int i = 0; i < n; i++)
	{
		changes[i].kind = MOT_LOGICAL_INSERT;
		changes[i].after = version_row(writer, mot_row_newest(writer->session, MotBatchRow(batch, i)));
	}
	MotLogChanges(&writer->rel->rd_locator, changes, n);
	pfree(changes);
}
