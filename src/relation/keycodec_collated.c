/*-------------------------------------------------------------------------
 *
 * keycodec_collated.c
 *	  Keys of strings in their collation's order.
 *
 * A string is encoded as its sort key, which has no zero byte, and a zero byte; behind them, unless
 * the collation is nondeterministic, come its own bytes and another zero byte.  So strings with
 * different sort keys are ordered by these; those with the same one, which the collation takes for
 * equal, are ordered by their bytes, as varstr_cmp() has it, and keys are equal where bytes are. No
 * encoding is the beginning of another one, and a key's columns can be told apart. Strings that a
 * nondeterministic collation takes for equal have one key.
 *
 * All that outlives the server's run has the plain form: names of rows in the log
 * (record.h) and the tails of rows.  The collated form follows from it and from what the
 * collation is today, in any process.
 *
 * Whether an index is collated is a bit of its form (mot_index_form), set by whoever makes it: if a
 * locale cannot be opened when rows are loaded, the index is a plain one, and serves equality.
 * Beside the bit is the fingerprint of the collations: who has another one would not find what the
 * others put there.
 *
 * The order of collations that are not trusted is checked as keys come into the tree
 * (engine/order.c): two keys are compared by the first column in which they differ, by strcoll_l()
 * if it is of such a collation, for which both strings are in the keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "relation/collation.h"
#include "relation/keycodec_types.h"
#include "relation/label.h"
#include "utils/inet.h"

/* of a form: above the bit that says that there are collations */
#define FINGERPRINT_SHIFT 33

void
MotKeyAppendCollated(const MotKeyColumn *column, const char *string, size_t len, MotKeyBuffer *buf)
{
	MotCollationAppend(column->collation_order, string, len, column->sort_key_max, buf);
	if (column->collation_order->deterministic)
		key_put_string(buf, string, len);
}

/* whoever loads a table wants it so for now (wal/leftout.c) */
bool		MotKeysStayPlain = false;

/* ------------------------------------------------------------------- forms */

uint64
MotKeyCollatedForm(const MotKey *key)
{
	uint32		hash = 0;

	if (!key->collated)
		return 0;
	for (int i = 0; i < key->ncolumns; i++)
		if (key->columns[i].collated)
			hash = hash_combine(hash, MotCollationFingerprint(key->columns[i].collation_order));
	return MOT_FORM_COLLATED | (uint64) hash << FINGERPRINT_SHIFT;
}

static bool
is_nondeterministic(const MotKey *key)
{
	for (int i = 0; i < key->ncolumns; i++)
		if (key->columns[i].collation_order != NULL && !key->columns[i].collation_order->deterministic)
			return true;
	return false;
}

bool
MotKeyGivesWay(const MotKey *key, bool duplicate)
{
	return key->collated && (!duplicate || is_nondeterministic(key));
}

static void
set_collated(MotKey *key, bool collated)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		MotKeyColumn *column = &key->columns[i];

		if (column->collation_order != NULL)
			column->collated = column->ordered = collated;
	}
	MotKeySummarize(key);
	key->blind = !collated && is_nondeterministic(key);
}

void
MotKeyOpenCollations(MotKey *key, bool raise)
{
	bool		all = raise || !MotKeysStayPlain;

	for (int i = 0; i < key->ncolumns && all; i++)
	{
		const MotKeyColumn *column = &key->columns[i];

		if (column->collation_order != NULL)
			all &= MotCollationOpen(column->collation_order, raise);
	}
	set_collated(key, all);
}

void
MotKeyAdoptCollations(MotKey *key, uint64 form)
{
	if ((form & MOT_FORM_COLLATED) == 0)
	{
		set_collated(key, false);
		return;
	}
	if (!key->collated)
		MotKeyOpenCollations(key, true);
	if (MotKeyCollatedForm(key) != (form & ~MOT_FORM_NULLABLE))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("collation of an index is not what it was when the server was started"),
				 errdetail("The index with OID %u was made by another version of the collation than this session finds.",
						   key->indexoid),
				 errhint("Restart the server: its indexes are made anew then.")));
}

MotKey *
MotKeyPlain(MotKey *key)
{
	size_t		size = offsetof(MotKey, columns) + key->ncolumns * sizeof(MotKeyColumn);
	bool		any = false;
	MotKey	   *plain;

	for (int i = 0; i < key->ncolumns; i++)
		any |= key->columns[i].collation_order != NULL;
	if (!any)
		return key;
	plain = memcpy(palloc(size), key, size);
	set_collated(plain, false);
	plain->blind = false;		/* it is for names */
	return plain;
}

bool
MotKeyColumnIsOrdered(const MotKey *key, int column, bool disordered)
{
	const MotKeyColumn *c = &key->columns[column];

	return c->ordered && !(disordered && c->collated && !c->collation_order->trusted);
}

/* ----------------------------------------------------------------- columns */

static size_t
string_length(const uint8 *bytes, size_t len, uint8 flip)
{
	const uint8 *end = memchr(bytes, flip, len);

	return end == NULL ? 0 : end - bytes + 1;
}

/* see append_escaped */
static size_t
escaped_length(const uint8 *bytes, size_t len, uint8 flip)
{
	for (size_t i = 0; i + 1 < len; i++)
	{
		if (bytes[i] != flip)
			continue;
		i++;
		if ((bytes[i] ^ flip) == 0)
			return i + 1;
	}
	return 0;
}

/* see MotKeyAppendInet */
static size_t
inet_length(const uint8 *bytes, size_t len, uint8 flip)
{
	size_t		size = len > 0 && (bytes[0] ^ flip) == PGSQL_AF_INET ? 4 : 16;
	size_t		whole;

	if (len < 2 + size)
		return 0;
	whole = (bytes[1 + size] ^ flip) / BITS_PER_BYTE;
	return whole > size ? 0 : 2 + size + size - whole;
}

/* a label and a value (ranked.c) */
static size_t
ranked_length(const uint8 *bytes, size_t len, uint8 flip)
{
	MotLabel	label;
	size_t		n = MotLabelTake(bytes, len, flip, &label);

	if (n == 0 || len < n + 2)
		return 0;
	return n + 2 + ((size_t) (bytes[n] ^ flip) << 8 | (bytes[n + 1] ^ flip));
}

/*
 * How many of these bytes are the column's; *null byte included.  0: it does not end here.  Of
 * a collated string, *string is where its own bytes begin, and else 0.
 */
static size_t
column_length(const MotKeyColumn *column, bool collated, const uint8 *bytes, size_t len, size_t *string)
{
	uint8		flip = column->descending ? 0xFF : 0;
	size_t		before = column->nullable ? 1 : 0;
	size_t		more;

	*string = 0;
	if (len < before)
		return 0;
	if (column->nullable && MotKeyIsNullByte(bytes[0]))
		return 1;
	bytes += before;
	len -= before;
	switch (column->encoding)
	{
		case AS_NUMERIC:
			more = MotKeyNumericLength(bytes, len, flip);
			break;
		case AS_INET:
			more = inet_length(bytes, len, flip);
			break;
		case AS_BYTEA:
			more = escaped_length(bytes, len, flip);
			break;
		case AS_BIT:
			more = escaped_length(bytes, len, flip);
			/* an empty one is nothing but its end */
			if (more > 2)
				more++;
			break;
		case AS_TEXT:
		case AS_BPCHAR:
		case AS_NAME:
			more = string_length(bytes, len, flip);
			if (more > 0 && collated && column->collation_order->deterministic)
			{
				size_t		own = string_length(bytes + more, len - more, flip);

				if (own == 0)
					return 0;
				*string = before + more;
				more += own;
			}
			break;
		case AS_RANK:
			more = ranked_length(bytes, len, flip);
			break;
		default:
			more = column->width;
			break;
	}
	return more == 0 || more > len ? 0 : before + more;
}

size_t
MotKeyColumnLength(const MotKeyColumn *column, const uint8 *bytes, size_t len)
{
	size_t		string;

	return column_length(column, column->collated, bytes, len, &string);
}

/*
 * What fits today has to fit at the next start, by whatever library, or if the locale is missing
 * today.  So sort keys that are cut count as if they were of full length.
 */
size_t
MotKeyExceeds(const MotKey *key, const uint8 *bytes, size_t len)
{
	size_t		plain = len;
	size_t		at = 0;

	for (int i = 0; i < key->ncolumns && key->compared; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		size_t		string;
		size_t		n = column_length(column, column->collated, bytes + at, len - at, &string);

		if (n == 0)
			break;
		if (string > 0 && !column->collation_order->trusted)
			plain -= string - (column->nullable ? 1 : 0);
		at += n;
	}
	return plain > key->most ? key->most : len > MOT_MAX_KEY ? MOT_MAX_KEY : 0;
}

bool
MotKeyFromPlain(const MotKey *key, const uint8 *plain, size_t len, MotKeyBuffer *buf)
{
	MotKeyBufferReset(buf);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		size_t		string;
		size_t		n = column_length(column, false, plain, len, &string);
		size_t		before = column->nullable ? 1 : 0;

		if (n == 0)
			return false;
		if (!column->collated || n <= before)
			MotKeyBufferAppend(buf, plain, n);
		else
		{
			size_t		start;
			char	   *bytes = palloc(n - before);

			MotKeyBufferAppend(buf, plain, before);
			for (size_t j = before; j < n; j++)
				bytes[j - before] = (char) (column->descending ? ~plain[j] : plain[j]);
			start = buf->len;
			/* (without the zero byte) */
			MotKeyAppendCollated(column, bytes, n - before - 1, buf);
			for (size_t j = start; column->descending && j < buf->len; j++)
				buf->data[j] = (uint8) ~buf->data[j];
			pfree(bytes);
		}
		plain += n;
		len -= n;
	}
	return len == 0 && buf->len <= MOT_MAX_KEY;
}

/* --------------------------------------------------------------- comparing */

/*
 * The strings' bytes, which end with a zero byte that may be inverted, as the collation compares
 * them.
 */
static int
compare_strings(const MotKeyColumn *column, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len)
{
	uint8		a_fixed[256];
	uint8		b_fixed[256];
	uint8	   *a_bytes = unconstify(uint8 *, a);
	uint8	   *b_bytes = unconstify(uint8 *, b);
	int			result;

	if (column->descending)
	{
		a_bytes = a_len <= sizeof(a_fixed) ? a_fixed : palloc(a_len);
		b_bytes = b_len <= sizeof(b_fixed) ? b_fixed : palloc(b_len);
		for (size_t i = 0; i < a_len; i++)
			a_bytes[i] = (uint8) ~a[i];
		for (size_t i = 0; i < b_len; i++)
			b_bytes[i] = (uint8) ~b[i];
	}
	result = MotCollationCompare(column->collation_order, (char *) a_bytes, a_len, (char *) b_bytes, b_len);
	if (column->descending)
	{
		if (a_bytes != a_fixed)
			pfree(a_bytes);
		if (b_bytes != b_fixed)
			pfree(b_bytes);
		return result < 0 ? 1 : result > 0 ? -1 : 0;
	}
	return result;
}

int
MotKeyCompareValues(const MotKey *key, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len)
{
	int			cmp;

	for (int i = 0; i < key->ncolumns && key->compared && a_len > 0 && b_len > 0; i++)
	{
		const MotKeyColumn *column = &key->columns[i];
		size_t		a_string;
		size_t		b_string;
		size_t		a_n = column_length(column, column->collated, a, a_len, &a_string);
		size_t		b_n = column_length(column, column->collated, b, b_len, &b_string);

		if (a_n == 0 || b_n == 0)
			break;
		if (a_n != b_n || memcmp(a, b, a_n) != 0)
		{
			if (column->collated && !column->collation_order->trusted && a_string > 0 && b_string > 0)
				return compare_strings(column, a + a_string, a_n - a_string - 1, b + b_string, b_n - b_string - 1);
			break;
		}
		a += a_n;
		a_len -= a_n;
		b += b_n;
		b_len -= b_n;
	}
	cmp = memcmp(a, b, Min(a_len, b_len));
	if (cmp != 0)
		return cmp;
	return a_len < b_len ? -1 : a_len > b_len;
}

/* Called by the engine in the middle of its work, so nothing may be raised from here. */
bool
MotKeyInOrder(const MotKey *key, const void *lesser, size_t lesser_len, const void *greater, size_t greater_len)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool result = false;

	PG_TRY();
	{
		result = MotKeyCompareValues(key, lesser, lesser_len, greater, greater_len) <= 0;
	}
	PG_CATCH();
	{
		/* what the caller holds is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		/* (there is no memory: then it is not known) */
		MemoryContextSwitchTo(oldcxt);
		FlushErrorState();
	}
	PG_END_TRY();
	return result;
}
