/*-------------------------------------------------------------------------
 *
 * group.c
 *	  From a row's keys to its group.
 *
 * Beside the server's hash table there is one of ours, which leads from the
 * keys' own bytes to the states of a group that is in the server's.  Equal is what the
 * type's equality says: that is asked where it is not a matter of bytes.
 * A group that is not there yet is made in the server's table first, by the
 * server's function, with all columns that it keeps of a group's first row; by-reference
 * keys of ours point into that row.
 *
 * Floating-point keys are taken as one of their equals: -0 as 0, any NaN as
 * the same.  Of char(n) trailing blanks do not count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "batch/batch.h"
#include "compat/hash.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"

typedef enum KeyKind
{
	KEY_WORD,					/* equal if the bits are */
	KEY_FLOAT4,
	KEY_FLOAT8,
	KEY_BYTES,					/* text and its like: equal if the bytes are */
	KEY_PADDED,					/* char(n) */
	KEY_CALL					/* the type's functions are called */
} KeyKind;

typedef struct Key
{
	KeyKind		kind;
	int			column;			/* of the input's slot, from 0 */
	int			length;			/* attlen */
	FmgrInfo	equal;			/* KEY_CALL */
	FmgrInfo   *hash;
	Oid			collation;
} Key;

typedef struct Bucket
{
	uint32		hash;
	MotGroup   *group;			/* NULL: free */
} Bucket;

/* a key as it is compared */
typedef struct Given
{
	Datum		value;
	const char *bytes;
	Size		size;
} Given;

struct MotGroups
{
	AggState   *agg;
	MemoryContext cxt;			/* of a fill; NULL: between two */
	Size		extra;
	uint64		n;
	uint32		mask;
	Bucket	   *buckets;
	int			nkeys;

	/* of the last search that has found none */
	Given	   *given;
	uint32		nulls;
	uint32		hash;
	uint32		at;

	TupleTableSlot *first;		/* shows a group's row in the server's table */
	AttrNumber *first_column;	/* where the keys are in it */
	Key			keys[FLEXIBLE_ARRAY_MEMBER];
};

static KeyKind
kind_of(Oid equal, Oid collation)
{
	switch (equal)
	{
		case F_BOOLEQ:
		case F_CHAREQ:
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_OIDEQ:
		case F_DATE_EQ:
		case F_TIME_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
		case F_CASH_EQ:
		case F_ENUM_EQ:
			return KEY_WORD;
		case F_FLOAT4EQ:
			return KEY_FLOAT4;
		case F_FLOAT8EQ:
			return KEY_FLOAT8;
		case F_BYTEAEQ:
			return KEY_BYTES;
		case F_TEXTEQ:
			return OidIsValid(collation) && get_collation_isdeterministic(collation) ? KEY_BYTES : KEY_CALL;
		case F_BPCHAREQ:
			return OidIsValid(collation) && get_collation_isdeterministic(collation) ? KEY_PADDED : KEY_CALL;
		default:
			return KEY_CALL;
	}
}

/* In the query's memory. */
MotGroups *
MotGroupsMake(AggState *agg, Size extra)
{
	AggStatePerHash perhash = &agg->perhash[0];
	int			nkeys = perhash->numCols;
	MotGroups  *groups = palloc0(offsetof(MotGroups, keys) + nkeys * sizeof(Key));
	TupleDesc	desc = perhash->hashslot->tts_tupleDescriptor;

	groups->agg = agg;
	groups->extra = MAXALIGN(extra);
	groups->nkeys = nkeys;
	groups->given = palloc0(Max(1, nkeys) * sizeof(Given));
	groups->first = MakeTupleTableSlot(desc, &TTSOpsMinimalTuple);
	groups->first_column = perhash->hashGrpColIdxHash;
	for (int i = 0; i < nkeys; i++)
	{
		Key		   *key = &groups->keys[i];

		key->column = perhash->aggnode->grpColIdx[i] - 1;
		key->length = TupleDescAttr(desc, perhash->hashGrpColIdxHash[i] - 1)->attlen;
		key->collation = perhash->aggnode->grpCollations[i];
		key->kind = kind_of(perhash->eqfuncoids[i], key->collation);
		key->hash = &perhash->hashfunctions[i];
		if (key->kind == KEY_CALL)
			fmgr_info(perhash->eqfuncoids[i], &key->equal);
	}
	return groups;
}

/* Keys will be somewhere else than where the slot has them. */
void
MotGroupsPlace(MotGroups *groups, const int *position)
{
	for (int i = 0; i < groups->nkeys; i++)
		groups->keys[i].column = position[groups->keys[i].column];
}

/* An execution begins: no groups.  Their memory counts as the server's table does. */
void
MotGroupsStart(MotGroups *groups)
{
	groups->cxt = AllocSetContextCreate(groups->agg->hashcontext->ecxt_per_tuple_memory,
										"MOT groups", ALLOCSET_DEFAULT_SIZES);
	groups->n = 0;
	groups->mask = 255;
	groups->buckets = MemoryContextAllocZero(groups->cxt, (groups->mask + 1) * sizeof(Bucket));
}

void
MotGroupsEnd(MotGroups *groups)
{
	ExecClearTuple(groups->first);
	MemoryContextDelete(groups->cxt);
	groups->cxt = NULL;
	groups->buckets = NULL;
	groups->n = 0;
}

uint64
MotGroupsCount(const MotGroups *groups)
{
	return groups->n;
}

void
MotGroupsEach(MotGroups *groups, void (*visit) (MotGroup *group, void *arg), void *arg)
{
	for (uint32 i = 0; i <= groups->mask; i++)
		if (groups->buckets[i].group != NULL)
			visit(groups->buckets[i].group, arg);
}

static void
grow(MotGroups *groups)
{
	uint32		mask = groups->mask * 2 + 1;
	Bucket	   *buckets = MemoryContextAllocExtended(groups->cxt, (mask + (Size) 1) * sizeof(Bucket),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (uint32 i = 0; i <= groups->mask; i++)
		if (groups->buckets[i].group != NULL)
		{
			uint32		at = groups->buckets[i].hash & mask;

			while (buckets[at].group != NULL)
				at = (at + 1) & mask;
			buckets[at] = groups->buckets[i];
		}
	pfree(groups->buckets);
	groups->buckets = buckets;
	groups->mask = mask;
}

/* -------------------------------------------------------------------- keys */

static inline uint64
mix(uint64 hash, uint64 word)
{
	hash = (hash ^ word) * UINT64CONST(0x9E3779B97F4A7C15);
	return hash ^ (hash >> 29);
}

static inline uint64
mix_bytes(uint64 hash, const char *bytes, Size size)
{
	uint64		word = 0;

	hash = mix(hash, size);
	for (; size > sizeof(word); size -= sizeof(word), bytes += sizeof(word))
	{
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, bytes, size);
	return mix(hash, word);
}

/* only the bits that are the type's */
static inline Datum
word_of(Datum value, int length)
{
	switch (length)
	{
		case 1:
			return (uint8) value;
		case 2:
			return (uint16) value;
		case 4:
			return (uint32) value;
		default:
			return value;
	}
}

static inline void
bytes_of(Given *given, Datum value, bool padded)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);

	given->value = PointerGetDatum(text);
	given->bytes = VARDATA_ANY(text);
	given->size = VARSIZE_ANY_EXHDR(text);
	while (padded && given->size > 0 && given->bytes[given->size - 1] == ' ')
		given->size--;
}

/* The key as it is compared, and the hash with it. */
static inline uint64
take(const Key *key, Datum value, uint64 hash, Given *given)
{
	switch (key->kind)
	{
		case KEY_WORD:
			given->value = word_of(value, key->length);
			return mix(hash, given->value);
		case KEY_FLOAT4:
			{
				float4		number = DatumGetFloat4(value);

				/* (any NaN, and both zeros) */
				if (isnan(number))
					value = Float4GetDatum(get_float4_nan());
				else if (number == 0)
					value = Float4GetDatum(0);
				given->value = word_of(value, sizeof(float4));
				return mix(hash, given->value);
			}
		case KEY_FLOAT8:
			{
				float8		number = DatumGetFloat8(value);

				if (isnan(number))
					value = Float8GetDatum(get_float8_nan());
				else if (number == 0)
					value = Float8GetDatum(0);
				given->value = value;
				return mix(hash, value);
			}
		case KEY_BYTES:
		case KEY_PADDED:
			bytes_of(given, value, key->kind == KEY_PADDED);
			return mix_bytes(hash, given->bytes, given->size);
		case KEY_CALL:
			given->value = value;
			return mix(hash, DatumGetUInt32(FunctionCall1Coll(key->hash, key->collation, value)));
	}
	return hash;
}

static inline bool
same(Key *key, const Given *given, Datum kept)
{
	Given		other;

	switch (key->kind)
	{
		case KEY_WORD:
		case KEY_FLOAT4:
		case KEY_FLOAT8:
			return given->value == kept;
		case KEY_BYTES:
		case KEY_PADDED:
			bytes_of(&other, kept, key->kind == KEY_PADDED);
			return other.size == given->size && memcmp(other.bytes, given->bytes, other.size) == 0;
		case KEY_CALL:
			return DatumGetBool(FunctionCall2Coll(&key->equal, key->collation, kept, given->value));
	}
	return false;
}

static inline bool
is_group(MotGroups *groups, const MotGroup *group, const Given *given, uint32 nulls)
{
	if (group->nulls != nulls)
		return false;
	for (int i = 0; i < groups->nkeys; i++)
		if ((nulls & ((uint32) 1 << i)) == 0 && !same(&groups->keys[i], &given[i], group->keys[i]))
			return false;
	return true;
}

/* ------------------------------------------------------------------ groups */

/* As nodeAgg.c's prepare_hash_slot, lookup_hash_entries and initialize_hash_entry. */
static TupleHashEntry
make_entry(AggState *agg, TupleTableSlot *slot)
{
	AggStatePerHash perhash = &agg->perhash[0];
	TupleTableSlot *hashslot = perhash->hashslot;
	TupleHashEntry entry;
	bool		isnew;

	slot_getsomeattrs(slot, perhash->largestGrpColIdx);
	ExecClearTuple(hashslot);
	for (int i = 0; i < perhash->numhashGrpCols; i++)
	{
		int			column = perhash->hashGrpColIdxInput[i] - 1;

		hashslot->tts_values[i] = slot->tts_values[column];
		hashslot->tts_isnull[i] = slot->tts_isnull[column];
	}
	ExecStoreVirtualTuple(hashslot);
	entry = LookupTupleHashEntry(perhash->hashtable, hashslot, &isnew, NULL);
	if (!isnew)
		elog(ERROR, "a group is there already");
	agg->hash_ngroups_current++;
	return entry;
}

static void
initialize_states(AggState *agg, TupleHashEntry entry)
{
	MemoryContext oldcxt;
	AggStatePerGroup states;

	if (agg->numtrans == 0)
		return;
	oldcxt = MemoryContextSwitchTo(agg->hashcontext->ecxt_per_tuple_memory);
	states = MotHashStatesNew(agg->perhash->hashtable, entry, sizeof(AggStatePerGroupData) * agg->numtrans);
	for (int i = 0; i < agg->numtrans; i++)
	{
		AggStatePerTrans pertrans = &agg->pertrans[i];

		states[i].transValue = pertrans->initValue;
		if (!pertrans->initValueIsNull)
			states[i].transValue = datumCopy(pertrans->initValue, pertrans->transtypeByVal,
											 pertrans->transtypeLen);
		states[i].transValueIsNull = states[i].noTransValue = pertrans->initValueIsNull;
	}
	MemoryContextSwitchTo(oldcxt);
}

/*
 * The group of a row whose keys are among "values", or NULL: then it can be made.
 * CurrentMemoryContext is reset after each row.
 */
MotGroup *
MotGroupFind(MotGroups *groups, const Datum *values, const bool *isnull)
{
	Given	   *given = groups->given;
	uint64		hash = 0;
	uint32		nulls = 0;
	uint32		at;
	uint32		folded;

	for (int i = 0; i < groups->nkeys; i++)
	{
		Key		   *key = &groups->keys[i];

		if (unlikely(isnull[key->column]))
		{
			nulls |= (uint32) 1 << i;
			hash = mix(hash, 1);
		}
		else
			hash = take(key, values[key->column], hash, &given[i]);
	}
	folded = (uint32) (hash >> 32);
	for (at = folded & groups->mask; groups->buckets[at].group != NULL; at = (at + 1) & groups->mask)
		if (groups->buckets[at].hash == folded && is_group(groups, groups->buckets[at].group, given, nulls))
			return groups->buckets[at].group;
	groups->nulls = nulls;
	groups->hash = folded;
	groups->at = at;
	return NULL;
}

/* The group that has not been found: of the row in "slot", which is its first. */
MotGroup *
MotGroupMake(MotGroups *groups, TupleTableSlot *slot)
{
	Size		size = offsetof(MotGroup, keys) + groups->nkeys * sizeof(Datum) + groups->extra;
	TupleHashEntry entry = make_entry(groups->agg, slot);
	MotGroup   *group = MemoryContextAllocZero(groups->cxt, size);

	initialize_states(groups->agg, entry);
	group->states = MotHashStates(groups->agg->perhash->hashtable, entry);
	group->nulls = groups->nulls;
	ExecStoreMinimalTuple(entry->firstTuple, groups->first, false);
	for (int i = 0; i < groups->nkeys; i++)
	{
		Key		   *key = &groups->keys[i];
		bool		isnull;

		if (key->kind == KEY_WORD || key->kind == KEY_FLOAT4 || key->kind == KEY_FLOAT8)
			group->keys[i] = groups->given[i].value;
		else
			group->keys[i] = slot_getattr(groups->first, groups->first_column[i], &isnull);
	}
	groups->buckets[groups->at].group = group;
	groups->buckets[groups->at].hash = groups->hash;
	if (++groups->n > groups->mask / 2)
		grow(groups);
	return group;
}
