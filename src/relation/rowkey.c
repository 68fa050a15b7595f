/*-------------------------------------------------------------------------
 *
 * rowkey.c
 *	  Index keys of stored rows, by their bytes: with a catalogue, for indexes of
 *	  MotRelation, and without one, for those of a definition.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "relation/keysort.h"
#include "xact/xact.h"

/* Where the columns begin if the key's integers each lie in their place; else NULL. */
static inline const char *
fixed_columns(const MotIndex *index, const mot_version *version)
{
	unsigned	host_bits = mot_version_host_bits(version);
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	const char *base = mot_version_data(version);

	/* (a row that was stored before a column was added does not have it) */
	if (unlikely(stored < index->key->max_attnum))
		return NULL;
	if (unlikely((host_bits & MOT_ROW_HAS_NULLS) != 0))
	{
		if (MotRowNotNull((const uint8 *) base, stored) < index->key->max_attnum)
			return NULL;
		base += MAXALIGN(BITMAPLEN(stored));
	}
	return base;
}

unsigned
MotIndexKeyOf(const MotIndex *index, const mot_version *version, MotKeyBuffer *key)
{
	const char *base = index->offsets == NULL ? NULL : fixed_columns(index, version);

	MotKeyBufferReset(key);
	if (likely(base != NULL))
	{
		MotKeyFromFixed(index->key, base, index->offsets, key);
		return 0;
	}
	if (index->key->computed)
		return MotKeyOfRow(index->key, MotVersionTail(index->desc, version), NULL, NULL, key);
	MotRowDeform(index->desc, version, index->key->max_attnum, index->check_values, index->check_isnull);
	return MotKeyFromRow(index->key, index->check_values, index->check_isnull, key);
}

void
MotIndexNameOf(const MotIndex *index, const mot_version *version, MotKeyBuffer *name)
{
	if (likely(index->plain == index->key))
	{
		(void) MotIndexKeyOf(index, version, name);
		return;
	}
	MotKeyBufferReset(name);
	MotRowDeform(index->desc, version, index->plain->max_attnum, index->check_values, index->check_isnull);
	(void) MotKeyFromRow(index->plain, index->check_values, index->check_isnull, name);
}

/* --------------------------------------------------------------- key check */

/*
 * Is a version's key the entry's?  Called by the engine in the middle of its work, so nothing may
 * be raised from here.  Keys of fixed width are made without allocating anything and
 * cannot fail.
 */
static bool
matches(void *arg, const mot_version *version, const void *key, size_t len)
{
	MotIndex   *index = arg;

	(void) MotIndexKeyOf(index, version, &index->check_buffer);
	return index->check_buffer.len == len &&
		memcmp(index->check_buffer.data, key, len) == 0;
}

static bool
matches_integers(void *arg, const mot_version *version, const void *key, size_t len)
{
	const MotIndex *index = arg;
	const char *base = fixed_columns(index, version);

	if (unlikely(base == NULL))
		return matches(arg, version, key, len);
	return len == (size_t) index->key->width && MotKeyIsOfFixed(index->key, base, index->offsets, key);
}

/* it has been stored with the row */
static bool
matches_computed(void *arg, const mot_version *version, const void *key, size_t len)
{
	const MotIndex *index = arg;
	const MotTailEntry *entry = MotTailFind(MotVersionTail(index->desc, version), index->indexoid);

	return entry != NULL && entry->len == len && memcmp(entry->key, key, len) == 0;
}

/*
 * Keys of other types may have to be decompressed, and then an error is
 * possible.  A query is cancelled as soon as it is out of the engine; replay goes on.
 */
static bool
matches_or_fails(void *arg, const mot_version *version, const void *key, size_t len)
{
	const MotIndex *index = arg;
	MemoryContext oldcxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool result = true;

	PG_TRY();
	{
		result = matches(arg, version, key, len);
	}
	PG_CATCH();
	{
		/* what the caller holds is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		MotErrorLog(oldcxt, "could not make a key of index with OID %u", index->indexoid);
		if (index->relation != NULL)
			QueryCancelPending = InterruptPending = true;
	}
	PG_END_TRY();
	return result;
}

static bool
in_order(void *arg, const void *lesser, size_t lesser_len, const void *greater, size_t greater_len)
{
	const MotIndex *index = arg;

	return MotKeyInOrder(index->key, lesser, lesser_len, greater, greater_len);
}

void
MotIndexAdopt(MotIndex *index, const mot_index *made)
{
	if (index->key != index->plain)
		MotKeyAdoptCollations(index->key, mot_index_form(made));
	index->handle.in_order = index->key->compared ? in_order : NULL;
}

void
MotIndexComplete(MotIndex *index, TupleDesc desc)
{
	const MotKey *key = index->key;

	index->desc = desc;
	index->offsets = MotKeyOffsets(key, desc);
	index->handle.matches = index->offsets != NULL ? matches_integers :
		key->width >= 0 ? matches : key->computed ? matches_computed : matches_or_fails;
	index->handle.arg = index;
	index->handle.in_order = key->compared ? in_order : NULL;
	index->check_values = palloc(desc->natts * sizeof(Datum));
	index->check_isnull = palloc(desc->natts * sizeof(bool));
	MotKeyBufferInit(&index->check_buffer, CurrentMemoryContext);
}

/* ------------------------------------------------- indexes of rows that are there */

static unsigned
key_of(void *arg, const mot_version *version, MotKeyBuffer *key)
{
	return MotIndexKeyOf(arg, version, key);
}

mot_status
MotFillIndex(mot_build *rows, mot_index *index, MotIndex *keys, bool full, bool (*look) (void *arg), void *arg)
{
	mot_row    *row;
	mot_row    *other;

	MotIndexAdopt(keys, index);
	return MotKeySortRows(rows, index, full, keys->key, key_of, keys, look, arg, &other, &row);
}

/*
 * Rows lie in files in no order of any key, so entries would be looked for a
 * place one by one: they are sorted first.  The index is as small as can be, so that what had
 * room before has room again, however the index came to be.
 */
mot_status
MotLoadIndex(mot_table *table, mot_index *index, MotIndex *keys, bool (*look) (void *arg), void *arg)
{
	mot_build	rows;

	mot_build_rows(MotSession(), &rows, table, NULL);
	return MotFillIndex(&rows, index, keys, true, look, arg);
}
