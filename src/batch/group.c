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
 * Keys are kept as words, which short texts and most numbers fit into: then words are all
 * that is compared.  Machine code makes the same of a row (jit/keys.c), and comes
 * here only if a key is not of that kind, or the group is new.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "batch/batch.h"
#include "compat/calls.h"
#include "compat/hash.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/uuid.h"

typedef struct Key
{
	MotKeyKind	kind;
	int			column;			/* of the input's slot, from 0 */
	int			length;			/* attlen */
	int			words;			/* of a group's */
	int			k;				/* MOT_KEY_NUMBER */
	FmgrInfo	equal;			/* of what is not told by its words */
	FmgrInfo   *hash;
	Oid			collation;
} Key;

#define MAX_WORDS 2

/* a key as it is compared */
typedef struct Given
{
	uint64		words[MAX_WORDS];
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
	MotBuckets	table;
	int			nkeys;
	int			nwords;

	/* of the last search that has found none */
	Given	   *given;
	uint32		nulls;
	uint32		hash;
	uint32		at;

	TupleTableSlot *first;		/* shows a group's row in the server's table */
	AttrNumber *first_column;	/* where the keys are in it */
	Key			keys[FLEXIBLE_ARRAY_MEMBER];
};

static MotKeyKind
kind_of(Oid equal, Oid collation, int32 typmod)
{
	bool		bytewise = OidIsValid(collation) && get_collation_isdeterministic(collation);

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
			return MOT_KEY_WORD;
		case F_FLOAT4EQ:
			return MOT_KEY_FLOAT4;
		case F_FLOAT8EQ:
			return MOT_KEY_FLOAT8;
		case F_UUID_EQ:
			return MOT_KEY_UUID;
		case F_BYTEAEQ:
			return MOT_KEY_BYTES;
		case F_TEXTEQ:
			return bytewise ? MOT_KEY_BYTES : MOT_KEY_CALL;
		case F_BPCHAREQ:
			return bytewise ? MOT_KEY_PADDED : MOT_KEY_CALL;
		case F_NUMERIC_EQ:
			return typmod >= (int32) VARHDRSZ ? MOT_KEY_NUMBER : MOT_KEY_CALL;
		default:
			return MOT_KEY_CALL;
	}
}

/* How many words: two for what may be longer than one. */
static int
words_of(MotKeyKind kind, int32 typmod)
{
	if (kind == MOT_KEY_UUID)
		return 2;
	if (kind != MOT_KEY_BYTES && kind != MOT_KEY_PADDED)
		return 1;
	return typmod > (int32) VARHDRSZ &&
		(typmod - (int32) VARHDRSZ) * (int64) pg_database_encoding_max_length() < sizeof(uint64) ? 1 : 2;
}

/* Why does machine code not look for groups?  NULL: it does. */
const char *
MotKeysWhyNot(const AggState *agg)
{
	AggStatePerHash perhash = &agg->perhash[0];
	TupleDesc	desc = perhash->hashslot->tts_tupleDescriptor;

#ifdef WORDS_BIGENDIAN
	return "on this machine";
#endif
	for (int i = 0; i < perhash->numCols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, perhash->hashGrpColIdxHash[i] - 1);

		switch (kind_of(perhash->eqfuncoids[i], perhash->aggnode->grpCollations[i], att->atttypmod))
		{
			case MOT_KEY_FLOAT4:
			case MOT_KEY_FLOAT8:
			case MOT_KEY_CALL:
				return psprintf("of type %s", format_type_be(att->atttypid));
			default:
				break;
		}
	}
	return NULL;
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
	groups->first = MotMakeTupleTableSlot(desc, &TTSOpsMinimalTuple);
	groups->first_column = perhash->hashGrpColIdxHash;
	for (int i = 0; i < nkeys; i++)
	{
		Key		   *key = &groups->keys[i];
		Form_pg_attribute att = TupleDescAttr(desc, perhash->hashGrpColIdxHash[i] - 1);

		key->column = perhash->aggnode->grpColIdx[i] - 1;
		key->length = att->attlen;
		key->collation = perhash->aggnode->grpCollations[i];
		key->kind = kind_of(perhash->eqfuncoids[i], key->collation, att->atttypmod);
		key->words = words_of(key->kind, att->atttypmod);
		if (key->kind == MOT_KEY_NUMBER)
			key->k = MotDecimalPlaces(att->atttypmod);
		key->hash = &perhash->hashfunctions[i];
		if (key->kind == MOT_KEY_CALL || key->kind == MOT_KEY_NUMBER)
			fmgr_info(perhash->eqfuncoids[i], &key->equal);
		groups->nwords += key->words;
	}
	return groups;
}

/* The code is to look for groups itself; what columns the keys are is the caller's to say. */
void
MotGroupsAsk(const MotGroups *groups, MotRowRequest *request)
{
	for (int i = 0; i < groups->nkeys; i++)
	{
		MotRowKey  *key = palloc0(sizeof(MotRowKey));

		key->kind = groups->keys[i].kind;
		key->words = groups->keys[i].words;
		key->k = groups->keys[i].k;
		request->keys = lappend(request->keys, key);
	}
	request->groups = &groups->table;
	request->group_words = groups->nwords;
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
	groups->table.mask = 255;
	groups->table.buckets = MemoryContextAllocZero(groups->cxt, (groups->table.mask + 1) * sizeof(MotBucket));
}

void
MotGroupsEnd(MotGroups *groups)
{
	ExecClearTuple(groups->first);
	MemoryContextDelete(groups->cxt);
	groups->cxt = NULL;
	groups->table.buckets = NULL;
	groups->n = 0;
}

/* behind the keys: as many bytes as were asked for */
void *
MotGroupExtra(const MotGroups *groups, MotGroup *group)
{
	return &group->words[groups->nwords];
}

uint64
MotGroupsCount(const MotGroups *groups)
{
	return groups->n;
}

void
MotGroupsEach(MotGroups *groups, void (*visit) (MotGroup *group, void *arg), void *arg)
{
	for (uint32 i = 0; i <= groups->table.mask; i++)
		if (groups->table.buckets[i].group != NULL)
			visit(groups->table.buckets[i].group, arg);
}

static void
grow(MotGroups *groups)
{
	MotBuckets *table = &groups->table;
	uint32		mask = table->mask * 2 + 1;
	MotBucket  *buckets = MemoryContextAllocExtended(groups->cxt, (mask + (Size) 1) * sizeof(MotBucket),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (uint32 i = 0; i <= table->mask; i++)
		if (table->buckets[i].group != NULL)
		{
			uint32		at = table->buckets[i].hash & mask;

			while (buckets[at].group != NULL)
				at = (at + 1) & mask;
			buckets[at] = table->buckets[i];
		}
	pfree(table->buckets);
	table->buckets = buckets;
	table->mask = mask;
}

/* -------------------------------------------------------------------- keys */

static inline uint64
mix(uint64 hash, uint64 word)
{
	hash = (hash ^ word) * MOT_MIX_FACTOR;
	return hash ^ (hash >> MOT_MIX_SHIFT);
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

static inline uint64
mix_words(uint64 hash, const Key *key, const Given *given)
{
	hash = mix(hash, given->words[0]);
	return key->words > 1 ? mix(hash, given->words[1]) : hash;
}

/* Does it say all of the key?  Then it is odd, or its first byte; others are twice an address. */
static inline bool
is_whole(const Key *key, uint64 word)
{
	return key->kind == MOT_KEY_NUMBER ? (word & 1) != 0 : (*(const unsigned char *) &word & 1) != 0;
}

static inline uint64
take_bytes(const Key *key, Datum value, uint64 hash, Given *given)
{
	bytes_of(given, value, key->kind == MOT_KEY_PADDED);
	given->words[0] = given->words[1] = 0;
	if (given->size >= key->words * sizeof(uint64))
		return mix_bytes(hash, given->bytes, given->size);
	*(unsigned char *) given->words = (given->size + 1) << 1 | 1;
	memcpy((char *) given->words + 1, given->bytes, given->size);
	return mix_words(hash, key, given);
}

/* The key as it is compared, and the hash with it. */
static inline uint64
take(const Key *key, Datum value, uint64 hash, Given *given)
{
	MotDecimal	decimal;

	switch (key->kind)
	{
		case MOT_KEY_WORD:
			given->words[0] = word_of(value, key->length);
			return mix(hash, given->words[0]);
		case MOT_KEY_FLOAT4:
			{
				float4		number = DatumGetFloat4(value);

				/* (any NaN, and both zeros) */
				if (isnan(number))
					value = Float4GetDatum(get_float4_nan());
				else if (number == 0)
					value = Float4GetDatum(0);
				given->words[0] = word_of(value, sizeof(float4));
				return mix(hash, given->words[0]);
			}
		case MOT_KEY_FLOAT8:
			{
				float8		number = DatumGetFloat8(value);

				if (isnan(number))
					value = Float8GetDatum(get_float8_nan());
				else if (number == 0)
					value = Float8GetDatum(0);
				given->words[0] = value;
				return mix(hash, value);
			}
		case MOT_KEY_UUID:
			memcpy(given->words, DatumGetPointer(value), UUID_LEN);
			return mix_words(hash, key, given);
		case MOT_KEY_BYTES:
		case MOT_KEY_PADDED:
			return take_bytes(key, value, hash, given);
		case MOT_KEY_NUMBER:
			if (likely(MotDecimalRead(value, &decimal) && MotDecimalScale(&decimal, key->k) &&
					   decimal.m > PG_INT64_MIN / 2 && decimal.m < PG_INT64_MAX / 2))
			{
				given->words[0] = (uint64) (int64) decimal.m << 1 | 1;
				return mix(hash, given->words[0]);
			}
			given->words[0] = 0;
			/* FALLTHROUGH */
		case MOT_KEY_CALL:
			given->value = value;
			return mix(hash, DatumGetUInt32(FunctionCall1Coll(key->hash, key->collation, value)));
	}
	return hash;
}

static inline bool
same(Key *key, const Given *given, const uint64 *kept)
{
	Given		other;

	switch (key->kind)
	{
		case MOT_KEY_WORD:
		case MOT_KEY_FLOAT4:
		case MOT_KEY_FLOAT8:
			return given->words[0] == kept[0];
		case MOT_KEY_UUID:
			return given->words[0] == kept[0] && given->words[1] == kept[1];
		case MOT_KEY_BYTES:
		case MOT_KEY_PADDED:
			if (is_whole(key, given->words[0]) || is_whole(key, kept[0]))
				return given->words[0] == kept[0] && (key->words == 1 || given->words[1] == kept[1]);
			bytes_of(&other, (Datum) (kept[0] >> 1), key->kind == MOT_KEY_PADDED);
			return other.size == given->size && memcmp(other.bytes, given->bytes, other.size) == 0;
		case MOT_KEY_NUMBER:
			if (is_whole(key, given->words[0]) || is_whole(key, kept[0]))
				return given->words[0] == kept[0];
			return DatumGetBool(FunctionCall2Coll(&key->equal, key->collation, (Datum) (kept[0] >> 1), given->value));
		case MOT_KEY_CALL:
			return DatumGetBool(FunctionCall2Coll(&key->equal, key->collation, (Datum) kept[0], given->value));
	}
	return false;
}

static inline bool
is_group(MotGroups *groups, const MotGroup *group, const Given *given, uint32 nulls)
{
	const uint64 *words = group->words;

	if (group->nulls != nulls)
		return false;
	for (int i = 0; i < groups->nkeys; i++)
	{
		if ((nulls & ((uint32) 1 << i)) == 0 && !same(&groups->keys[i], &given[i], words))
			return false;
		words += groups->keys[i].words;
	}
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
	const MotBuckets *table = &groups->table;
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
			given[i].words[0] = given[i].words[1] = 1;
			hash = mix_words(hash, key, &given[i]);
		}
		else
			hash = take(key, values[key->column], hash, &given[i]);
	}
	folded = (uint32) pg_bswap64(hash);
	for (at = folded & table->mask; table->buckets[at].group != NULL; at = (at + 1) & table->mask)
		if (table->buckets[at].hash == folded && is_group(groups, table->buckets[at].group, given, nulls))
			return table->buckets[at].group;
	groups->nulls = nulls;
	groups->hash = folded;
	groups->at = at;
	return NULL;
}

/* The group that has not been found: of the row in "slot", which is its first. */
MotGroup *
MotGroupMake(MotGroups *groups, TupleTableSlot *slot)
{
	Size		size = offsetof(MotGroup, words) + groups->nwords * sizeof(uint64) + groups->extra;
	TupleHashEntry entry = make_entry(groups->agg, slot);
	MotGroup   *group = MemoryContextAllocZero(groups->cxt, size);
	uint64	   *words = group->words;

	initialize_states(groups->agg, entry);
	group->states = MotHashStates(groups->agg->perhash->hashtable, entry);
	group->nulls = groups->nulls;
	ExecStoreMinimalTuple(entry->firstTuple, groups->first, false);
	for (int i = 0; i < groups->nkeys; i++)
	{
		Key		   *key = &groups->keys[i];
		bool		isnull;

		memcpy(words, groups->given[i].words, key->words * sizeof(uint64));
		if ((group->nulls & ((uint32) 1 << i)) == 0 && key->kind >= MOT_KEY_BYTES &&
			(key->kind == MOT_KEY_CALL || !is_whole(key, words[0])))
		{
			words[0] = slot_getattr(groups->first, groups->first_column[i], &isnull);
			if (key->kind != MOT_KEY_CALL)
				words[0] <<= 1;
		}
		words += key->words;
	}
	groups->table.buckets[groups->at].group = group;
	groups->table.buckets[groups->at].hash = groups->hash;
	if (++groups->n > groups->table.mask / 2)
		grow(groups);
	return group;
}
