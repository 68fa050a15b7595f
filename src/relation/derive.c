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
#include "faults.h"
#include "islands/measure.h"
#include "miscadmin.h"
#include "relation/definition.h"
#include "relation/internal.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#define PLACES 16

typedef struct Known
{
	uint64		serial;			/* of the table; 0: nothing here */
	MotDefinition *def;
	bool		failed;			/* and that has been reported */
} Known;

static Known places[PLACES];
static MemoryContext scratch = NULL;	/* of one key */

static bool make_key(const mot_index *index, const mot_version *version,
					 void *key, size_t *len, unsigned *flags);
static bool try_key(const mot_index *index, const mot_version *version,
					void *key, size_t *len, unsigned *flags);
static MotIndex *find_index(const mot_index *index);
static uint32 key_number(const mot_index *index);

void
MotDeriveInit(void)
{
	mot_index_key_hook = make_key;
	MotIslandsKey = key_number;
}

/*
 * Called by the engine in the middle of its work, so nothing may be raised from
 * here, no cancellation either.  What fails is put off, and tried again the next time.
 */
static bool
make_key(const mot_index *index, const mot_version *version,
		 void *key, size_t *len, unsigned *flags)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	uint32		holdoff;
	volatile bool done = false;

	/*
	 * an error could not be caught, by who is going, or would be taken for
	 * the one that was
	 */
	if (proc_exit_inprogress || MotCleansUp)
		return false;
	HOLD_INTERRUPTS();
	holdoff = InterruptHoldoffCount;
	PG_TRY();
	{
		done = try_key(index, version, key, len, flags);
	}
	PG_CATCH();
	{
		const mot_table *table = mot_index_table(index);
		Known	   *known = &places[mot_table_serial(table) % PLACES];

		/* what is held is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		MemoryContextSwitchTo(oldcxt);
		if (known->failed)
			FlushErrorState();
		else
			MotErrorLog(oldcxt, "could not make an index key of a deleted row of memory-optimized table %u of database %u",
						mot_table_host_id(table), mot_table_host_db(table));
		known->failed = true;
	}
	PG_END_TRY();
	if (scratch != NULL)
		MemoryContextReset(scratch);
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(oldcxt);
	return done;
}

static bool
try_key(const mot_index *index, const mot_version *version,
		void *key, size_t *len, unsigned *flags)
{
	MotIndex   *known = find_index(index);

	if (known == NULL)
		return false;
	MOT_FAULT("deleted-key");
	MotIndexAdopt(known, index);
	MemoryContextSwitchTo(scratch);
	*flags = MotIndexKeyOf(known, version, &known->check_buffer);
	Assert(known->check_buffer.len <= MOT_MAX_KEY);
	memcpy(key, known->check_buffer.data, known->check_buffer.len);
	*len = known->check_buffer.len;
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
	if (scratch == NULL)
		scratch = AllocSetContextCreate(TopMemoryContext, "MOT keys of deleted rows", ALLOCSET_SMALL_SIZES);
	if (known->def != NULL)
		MotDefinitionFree(known->def);
	memset(known, 0, sizeof(*known));
	MotWithin(scratch, known->def = MotDefinitionDecode(bytes, len, TopMemoryContext));
	known->serial = serial;
	return known;
}

/* NULL: none is known */
static MotIndex *
find_index(const mot_index *index)
{
	Known	   *known = know(mot_index_table(index));

	for (int i = 0; known != NULL && i < known->def->nindexes + known->def->nbehind; i++)
		if (known->def->indexes[i].indexoid == mot_index_host_id(index))
			return &known->def->indexes[i];
	return NULL;
}

/* What the keys are made of.  (Expressions are not compared: each such index is another.) */
static uint32
key_number(const mot_index *index)
{
	MotIndex   *known = find_index(index);
	const MotKey *key;
	uint32		number;

	if (known == NULL)
		return 0;
	key = known->key;
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
