/*-------------------------------------------------------------------------
 *
 * derive.c
 *	  Index keys of deleted rows, for the engine.
 *
 * A row leaves its table's indexes when nobody can see it any more, long after
 * the statement that deleted it, and in any process: the maintenance worker has no
 * database, and who commits next may be connected to another one.  So the keys
 * are made by the table's definition (definition.h), without a catalogue.
 *
 * A process keeps the definitions it has needed last.  There are few tables that
 * it reclaims rows of at a time, and a definition is decoded in microseconds, so
 * there is a place for a table's number to be in and no more to it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "islands/measure.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "utils/memutils.h"

#define PLACES 16

typedef struct Known
{
	uint64		serial;			/* of the table; 0: nothing here */
	MotDefinition *def;
	Datum	   *values;
	bool	   *isnull;
	MotKeyBuffer buffer;
	bool		failed;			/* and that has been reported */
} Known;

static Known places[PLACES];
static MemoryContext scratch = NULL;	/* of one key */

static bool make_key(const mot_index *index, const mot_version *version,
					 void *key, size_t *len, unsigned *flags);
static bool try_key(const mot_index *index, const mot_version *version,
					void *key, size_t *len, unsigned *flags);
static Known *know(const mot_table *table);
static void learn(Known *known, uint64 serial, const void *bytes, size_t len);
static void forget(Known *known);
static int	find_index(const MotDefinition *def, const mot_index *index);
static uint32 key_number(const mot_index *index);

void
MotDeriveInit(void)
{
	mot_index_key_hook = make_key;
	MotIslandsKey = key_number;
}

/*
 * Called by the engine in the middle of its work, so nothing may be raised from
 * here.  What fails is put off, and tried again the next time.
 */
static bool
make_key(const mot_index *index, const mot_version *version,
		 void *key, size_t *len, unsigned *flags)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	volatile bool done = false;

	PG_TRY();
	{
		done = try_key(index, version, key, len, flags);
	}
	PG_CATCH();
	{
		const mot_table *table = mot_index_table(index);
		Known	   *known = &places[mot_table_serial(table) % PLACES];

		MemoryContextSwitchTo(oldcxt);
		if (!known->failed)
		{
			ErrorData  *edata = CopyErrorData();

			FlushErrorState();
			ereport(LOG,
					(errcode(edata->sqlerrcode),
					 errmsg("could not make an index key of a deleted row of memory-optimized table %u of database %u: %s",
							mot_table_host_id(table), mot_table_host_db(table), edata->message)));
			FreeErrorData(edata);
			known->failed = true;
		}
		else
			FlushErrorState();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);
	return done;
}

static bool
try_key(const mot_index *index, const mot_version *version,
		void *key, size_t *len, unsigned *flags)
{
	Known	   *known;
	int			i;
	bool		has_null;

	if (scratch == NULL)
		scratch = AllocSetContextCreate(TopMemoryContext, "MOT keys of deleted rows",
										ALLOCSET_SMALL_SIZES);
	known = know(mot_index_table(index));
	if (known == NULL)
		return false;
	i = find_index(known->def, index);
	if (i < 0)
		return false;

	MemoryContextSwitchTo(scratch);
	MotDefinitionVersionKey(known->def, i, version, known->values, known->isnull,
							&known->buffer, &has_null);
	Assert(known->buffer.len <= MOT_MAX_KEY);
	memcpy(key, known->buffer.data, known->buffer.len);
	*len = known->buffer.len;
	*flags = has_null ? MOT_KEY_DISTINCT : 0;
	MemoryContextReset(scratch);
	return true;
}

/* NULL: the table has no definition yet */
static Known *
know(const mot_table *table)
{
	uint64		serial = mot_table_serial(table);
	Known	   *known = &places[serial % PLACES];
	size_t		len;
	const void *bytes = mot_table_definition(table, &len);

	if (bytes == NULL)
		return NULL;
	if (likely(known->serial == serial && known->def->stamp == MotDefinitionStamp(bytes)))
		return known;
	forget(known);
	learn(known, serial, bytes, len);
	return known;
}

static void
learn(Known *known, uint64 serial, const void *bytes, size_t len)
{
	MotDefinition *def;
	int			natts;

	MemoryContextSwitchTo(scratch);
	def = MotDefinitionDecode(bytes, len, TopMemoryContext);
	known->def = def;
	natts = Max(def->desc->natts, 1);
	known->values = MemoryContextAlloc(def->cxt, natts * sizeof(Datum));
	known->isnull = MemoryContextAlloc(def->cxt, natts * sizeof(bool));
	MotKeyBufferInit(&known->buffer, def->cxt);
	/* last: if any of this raises, it is not known */
	known->serial = serial;
}

static void
forget(Known *known)
{
	MotDefinition *def = known->def;

	memset(known, 0, sizeof(*known));
	if (def != NULL)
		MotDefinitionFree(def);
}

static int
find_index(const MotDefinition *def, const mot_index *index)
{
	uint32		oid = mot_index_host_id(index);

	for (int i = 0; i < def->nindexes + def->nbehind; i++)
		if (def->indexes[i].indexoid == oid)
			return i;
	return -1;
}

/* What the keys are made of.  (Expressions are not compared: each such index is another.) */
static uint32
key_number(const mot_index *index)
{
	Known	   *known = know(mot_index_table(index));
	int			i = known == NULL ? -1 : find_index(known->def, index);
	const MotKey *key;
	uint32		number;

	if (i < 0)
		return 0;
	key = known->def->indexes[i].key;
	number = key->computed ? mot_index_host_id(index) : 0;
	for (int c = 0; c < key->ncolumns; c++)
	{
		const MotKeyColumn *column = &key->columns[c];

		number = hash_combine(number, murmurhash32(column->attnum));
		number = hash_combine(number, murmurhash32(column->encoding << 3 | column->nullable << 2 |
												   column->descending << 1 | column->nulls_first));
	}
	return number;
}
