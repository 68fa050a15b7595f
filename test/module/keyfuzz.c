/*-------------------------------------------------------------------------
 *
 * keyfuzz.c
 *	  Key encodings of values that nobody thought of, against the server's own comparison.
 *
 *	mot_key_fuzz(index, rounds, seed)	how many values there were
 *
 * The index is a btree on one column of an ordinary table, whose rows are what one begins with.
 * In each round the binary form of a value is changed, and, if the type's receive function takes
 * it, the new value is encoded and held against others by the index's comparison; some of these are
 * kept to be changed further.  An error names both values and their keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "compat/tableam.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "relation/keycodec_types.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(mot_key_fuzz);

#define KEPT	512				/* values to be changed, and to be held
								 * against */
#define MOST_BYTES 3000			/* of a value's binary form */
#define AGAINST 8				/* others, besides the one it was made of */

typedef struct Value
{
	Datum		datum;
	bytea	   *sent;			/* binary form */
	uint8	   *key;
	size_t		key_len;
} Value;

typedef struct KeyFuzz
{
	Relation	heap;
	Relation	index;
	MotKey	   *key;
	Form_pg_attribute att;
	FmgrInfo	receive;
	FmgrInfo	send;
	Oid			io_param;
	FmgrInfo   *compare;
	pg_prng_state random;
	MemoryContext cxt;
	int			n;
	Value		kept[KEPT];
} KeyFuzz;

static uint64
below(KeyFuzz *f, uint64 n)
{
	return pg_prng_uint64_range(&f->random, 0, n - 1);
}

/* in the current context; false: its key is too long */
static bool
encode(KeyFuzz *f, Datum datum, Value *value)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool fits = true;
	MotKeyBuffer *buf = palloc(sizeof(MotKeyBuffer));
	bool		isnull = false;

	value->datum = datum;
	value->sent = DatumGetByteaP(FunctionCall1(&f->send, datum));
	MotKeyBufferInit(buf, NULL);
	PG_TRY();
	{
		(void) MotKeyFromRow(f->key, &datum, &isnull, buf);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		if (geterrcode() != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			PG_RE_THROW();
		FlushErrorState();
		fits = false;
	}
	PG_END_TRY();
	value->key = buf->data;
	value->key_len = buf->len;
	return fits;
}

static char *
hex(const void *bytes, size_t len)
{
	char	   *text = palloc(2 * len + 1);

	hex_encode(bytes, len, text);
	text[		2 * len] = '\0';
	return text;
}

static void
report(KeyFuzz *f, const Value *a, const Value *b, const char *what)
{
	elog(ERROR, "%s: values %s and %s, keys %s and %s", what,
		 hex(VARDATA(a->sent), VARSIZE(a->sent) - VARHDRSZ), hex(VARDATA(b->sent), VARSIZE(b->sent) - VARHDRSZ),
		 hex(a->key, a->key_len), hex(b->key, b->key_len));
}

static void
hold_against(KeyFuzz *f, const Value *a, const Value *b)
{
	int			theirs = DatumGetInt32(FunctionCall2Coll(f->compare, f->index->rd_indcollation[0], a->datum, b->datum));
	size_t		common = Min(a->key_len, b->key_len);
	int			ours = memcmp(a->key, b->key, common);

	if (ours == 0 && a->key_len != b->key_len)
		report(f, a, b, "one key begins with the other");
	if ((ours == 0) != (theirs == 0))
		report(f, a, b, "keys are not equal where values are");
	if (f->key->columns[0].descending)
		ours = -ours;
	if ((f->key->columns[0].ordered || f->key->columns[0].collated) && (ours < 0) != (theirs < 0))
		report(f, a, b, "keys have another order than values");
}

/* bytes of a value are changed */
static void
mutate(KeyFuzz *f, StringInfo bytes)
{
	static const uint8 telling[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff, ' ', 'a'};

	for (uint64 n = 1 + below(f, 4); n > 0; n--)
	{
		uint64		at = bytes->len > 0 ? below(f, bytes->len) : 0;
		uint8		byte = below(f, 2) ? telling[below(f, lengthof(telling))] : (uint8) below(f, 256);

		switch (below(f, 6))
		{
			case 0:				/* one less */
				if (bytes->len == 0)
					break;
				memmove(bytes->data + at, bytes->data + at + 1, bytes->len - at - 1);
				bytes->len--;
				break;
			case 1:				/* one more, or several of it */
				for (uint64 more = below(f, 8) == 0 ? 1 + below(f, 40) : 1; more > 0; more--)
				{
					appendStringInfoChar(bytes, 0);
					memmove(bytes->data + at + 1, bytes->data + at, bytes->len - at - 1);
					bytes->data[at] = (char) byte;
				}
				break;
			case 2:				/* of another value */
				if (f->n > 0)
				{
					const bytea *other = f->kept[below(f, f->n)].sent;
					uint64		len = Min((uint64) VARSIZE(other) - VARHDRSZ, bytes->len - at);

					memcpy(bytes->data + at, VARDATA(other), len);
				}
				break;
			case 3:				/* a bit */
				if (bytes->len > 0)
					bytes->data[at] ^= (char) (1 << below(f, 8));
				break;
			case 4:				/* the next, or the one before */
				if (bytes->len > 0)
					bytes->data[at] += below(f, 2) ? 1 : -1;
				break;
			default:
				if (bytes->len > 0)
					bytes->data[at] = (char) byte;
		}
	}
	bytes->data[bytes->len] = '\0';
}

/* false: it is none of the type's */
static bool
receive(KeyFuzz *f, StringInfo bytes, Datum *datum)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool taken = true;

	PG_TRY();
	{
		*datum = ReceiveFunctionCall(&f->receive, bytes, f->io_param, f->att->atttypmod);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		taken = false;
	}
	PG_END_TRY();
	return taken && bytes->cursor == bytes->len;
}

static void
keep(KeyFuzz *f, const Value *value)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(f->cxt);
	Value	   *place = &f->kept[f->n < KEPT ? f->n++ : (int) below(f, KEPT)];

	if (place->sent != NULL)
	{
		if (!f->att->attbyval)
			pfree(DatumGetPointer(place->datum));
		pfree(place->sent);
		pfree(place->key);
	}
	place->datum = datumCopy(value->datum, f->att->attbyval, f->att->attlen);
	place->sent = (bytea *) DatumGetPointer(datumCopy(PointerGetDatum(value->sent), false, -1));
	place->key = memcpy(palloc(value->key_len), value->key, value->key_len);
	place->key_len = value->key_len;
	MemoryContextSwitchTo(oldcxt);
}

static void
begin(KeyFuzz *f)
{
	TupleTableSlot *slot = table_slot_create(f->heap, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	TableScanDesc scan = MotTableBeginScan(f->heap, snapshot);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		Datum		datum = slot_getattr(slot, 1, &isnull);
		Value		value;

		if (!isnull && encode(f, datum, &value))
			keep(f, &value);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	if (f->n == 0)
		elog(ERROR, "there is no value to begin with");
}

/* one value more, or none */
static bool
one_round(KeyFuzz *f)
{
	const Value *from = &f->kept[below(f, f->n)];
	StringInfoData bytes;
	Datum		datum;
	Value		value;

	initStringInfo(&bytes);
	appendBinaryStringInfo(&bytes, VARDATA(from->sent), VARSIZE(from->sent) - VARHDRSZ);
	mutate(f, &bytes);
	if (bytes.len > MOST_BYTES || !receive(f, &bytes, &datum) || !encode(f, datum, &value))
		return false;
	hold_against(f, &value, from);
	hold_against(f, from, &value);
	for (int i = 0; i < AGAINST; i++)
		hold_against(f, &value, &f->kept[below(f, f->n)]);
	if (below(f, 4) == 0)
		keep(f, &value);
	return true;
}

Datum
mot_key_fuzz(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int64		rounds = PG_GETARG_INT64(1);
	KeyFuzz    *f = palloc0(sizeof(KeyFuzz));
	MemoryContext round_cxt = AllocSetContextCreate(CurrentMemoryContext, "key fuzzing", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt;
	int64		taken = 0;
	Oid			function;
	bool		varlena;

	f->heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	f->index = index_open(indexoid, AccessShareLock);
	f->key = MotKeyCreate(f->heap, f->index);
	f->att = TupleDescAttr(RelationGetDescr(f->heap), 0);
	f->cxt = CurrentMemoryContext;
	getTypeBinaryInputInfo(f->att->atttypid, &function, &f->io_param);
	fmgr_info(function, &f->receive);
	getTypeBinaryOutputInfo(f->att->atttypid, &function, &varlena);
	fmgr_info(function, &f->send);
	f->compare = index_getprocinfo(f->index, 1, BTORDER_PROC);
	pg_prng_seed(&f->random, (uint64) PG_GETARG_INT64(2));

	oldcxt = MemoryContextSwitchTo(round_cxt);
	begin(f);
	for (int64 i = 0; i < rounds; i++)
	{
		MemoryContextReset(round_cxt);
		CHECK_FOR_INTERRUPTS();
		taken += one_round(f);
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(round_cxt);
	index_close(f->index, AccessShareLock);
	table_close(f->heap, AccessShareLock);
	PG_RETURN_INT64(taken);
}
