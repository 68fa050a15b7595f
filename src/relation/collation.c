/*-------------------------------------------------------------------------
 *
 * collation.c
 *	  The order of strings, without a catalogue.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <locale.h>

#ifdef USE_ICU
#include <unicode/ucol.h>
#include <unicode/ustring.h>
#endif

#include "catalog/pg_collation.h"
#include "common/hashfn.h"
#include "compat/collation.h"
#include "mb/pg_wchar.h"
#include "relation/collation.h"
#include "relation/keycodec_types.h"
#include "utils/memutils.h"

/* of a definition */
#define COLLATION_DETERMINISTIC 0x01
#define COLLATION_RULES 0x02

/* strings this long are taken apart without allocating */
#define SHORT_STRING 512

typedef struct Known
{
	MotCollation collation;		/* must be first */
	locale_t	locale;			/* when it has been opened ... */
#ifdef USE_ICU
	UCollator  *icu;			/* ... or this */
#endif
	uint32		fingerprint;	/* 0: not known yet */
	struct Known *next;
} Known;

static Known *known_ones = NULL;

/* ------------------------------------------------------------------- names */

static bool
is_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const MotCollation *
know(const MotCollation *like)
{
	Known	   *known;

	for (known = known_ones; known != NULL; known = known->next)
		if (known->collation.provider == like->provider &&
			known->collation.deterministic == like->deterministic &&
			known->collation.encoding == like->encoding &&
			is_same(known->collation.locale, like->locale) &&
			is_same(known->collation.rules, like->rules))
			return &known->collation;
	known = MemoryContextAllocZero(TopMemoryContext, sizeof(Known));
	known->collation = *like;
	known->collation.trusted = like->provider == COLLPROVIDER_ICU;
	known->collation.locale = MemoryContextStrdup(TopMemoryContext, like->locale);
	if (like->rules != NULL)
		known->collation.rules = MemoryContextStrdup(TopMemoryContext, like->rules);
	known->next = known_ones;
	known_ones = known;
	return &known->collation;
}

const MotCollation *
MotCollationOf(Oid collation)
{
	MotCollationSource source;
	MotCollation like = {0};

	if (!MotCollationRead(collation, &source))
		return NULL;
#ifdef USE_ICU
	/* others would need a converter of ICU's */
	if (source.provider == COLLPROVIDER_ICU && GetDatabaseEncoding() != PG_UTF8)
		return NULL;
#else
	if (source.provider == COLLPROVIDER_ICU)
		return NULL;
#endif
	like.provider = source.provider;
	like.deterministic = source.deterministic;
	like.locale = source.locale;
	like.rules = source.rules;
	like.encoding = GetDatabaseEncoding();
	return know(&like);
}

static void
write_string(StringInfo to, const char *string)
{
	uint32		len = (uint32) strlen(string);

	appendBinaryStringInfo(to, (char *) &len, sizeof(len));
	appendBinaryStringInfo(to, string, (int) len);
}

void
MotCollationWrite(const MotCollation *collation, StringInfo to)
{
	int32		encoding = collation->encoding;

	appendStringInfoChar(to, collation->provider);
	appendStringInfoChar(to, (char) ((collation->deterministic ? COLLATION_DETERMINISTIC : 0) |
									 (collation->rules != NULL ? COLLATION_RULES : 0)));
	appendBinaryStringInfo(to, (char *) &encoding, sizeof(encoding));
	write_string(to, collation->locale);
	if (collation->rules != NULL)
		write_string(to, collation->rules);
}

static char *
take_string(const char **from, const char *end)
{
	uint32		len;
	char	   *string;

	if (end - *from < (ptrdiff_t) sizeof(len))
		return NULL;
	memcpy(&len, *from, sizeof(len));
	*from += sizeof(len);
	if (end - *from < (ptrdiff_t) len || memchr(*from, 0, len) != NULL)
		return NULL;
	string = pnstrdup(*from, len);
	*from += len;
	return string;
}

const MotCollation *
MotCollationTake(const char **from, const char *end)
{
	MotCollation like = {0};
	int32		encoding;
	int			flags;

	if (end - *from < (ptrdiff_t) (2 + sizeof(encoding)))
		return NULL;
	like.provider = (*from)[0];
	flags = (*from)[1];
	memcpy(&encoding, *from + 2, sizeof(encoding));
	*from += 2 + sizeof(encoding);
	if ((like.provider != COLLPROVIDER_LIBC && like.provider != COLLPROVIDER_ICU) || !PG_VALID_ENCODING(encoding))
		return NULL;
	like.encoding = encoding;
	like.deterministic = (flags & COLLATION_DETERMINISTIC) != 0;
	like.locale = take_string(from, end);
	if (like.locale != NULL && (flags & COLLATION_RULES) != 0)
		like.rules = take_string(from, end);
	if (like.locale == NULL || ((flags & COLLATION_RULES) != 0 && like.rules == NULL))
		return NULL;
	return know(&like);
}

/* --------------------------------------------------------------------- ICU */

#ifdef USE_ICU

/* Into "fixed", which has so much room, or into memory of its own. */
static UChar *
to_uchars(const char *string, size_t len, UChar * fixed, int32 room, int32 *ulen)
{
	UErrorCode	status = U_ZERO_ERROR;
	UChar	   *result = fixed;

	/* no string has more of them than bytes */
	if (len > (size_t) room)
		result = palloc_extended(Max(len, 1) * sizeof(UChar), MCXT_ALLOC_HUGE);
	u_strFromUTF8(result, (int32) Max(len, (size_t) room), ulen, string, (int32) len, &status);
	if (U_FAILURE(status))
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("conversion of a string for ICU failed: %s", u_errorName(status))));
	return result;
}

/* As the server makes it: pg_ucol_open(), make_icu_collator(). */
static UCollator *
open_icu(const MotCollation *collation, const char **why)
{
	UErrorCode	status = U_ZERO_ERROR;
	UCollator  *icu = ucol_open(collation->locale, &status);

	if (U_SUCCESS(status) && collation->rules != NULL)
	{
		int32		len;
		int32		own_len;
		const		UChar *rules = ucol_getRules(icu, &len);
		UChar	   *own = to_uchars(collation->rules, strlen(collation->rules), NULL, 0, &own_len);
		UChar	   *all = palloc((len + own_len + 1) * sizeof(UChar));

		memcpy(all, rules, len * sizeof(UChar));
		memcpy(all + len, own, own_len * sizeof(UChar));
		ucol_close(icu);
		icu = ucol_openRules(all, len + own_len, UCOL_DEFAULT, UCOL_DEFAULT_STRENGTH, NULL, &status);
		pfree(own);
		pfree(all);
	}
#ifdef MOT_FAULTS

	/*
	 * another version, which takes more strings for equal, or makes longer
	 * keys: see collations_icu.pl
	 */
	if (U_SUCCESS(status) && getenv("MOT_TEST_ICU") != NULL)
		ucol_setStrength(icu, strcmp(getenv("MOT_TEST_ICU"), "coarse") == 0 ? UCOL_PRIMARY : UCOL_IDENTICAL);
#endif
	*why = u_errorName(status);
	return U_FAILURE(status) ? NULL : icu;
}

static void
append_icu(const Known *known, const char *string, size_t len, MotKeyBuffer *buf)
{
	UChar		fixed[SHORT_STRING];
	int32		ulen;
	UChar	   *uchars = to_uchars(string, len, fixed, SHORT_STRING, &ulen);
	int32		room = (int32) Min(2 * len + 16, MOT_KEY_VALUE_MAX);
	int32		size;

	for (;;)
	{
		/* with the zero byte; of one for which there is no room, too */
		size = ucol_getSortKey(known->icu, uchars, ulen, key_room(buf, room), room);
		if (size <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
					 errmsg("ICU made no sort key of a string")));
		if (size <= room)
			break;
		room = size;
	}
	/* one that long is no key; a bound is cut there */
	buf->len += Min(size, MOT_KEY_VALUE_MAX);
	buf->data[buf->len - 1] = 0;
	if (uchars != fixed)
		pfree(uchars);
}

#endif							/* USE_ICU */

/* -------------------------------------------------------------------- libc */

/* strings as libc takes them */
static const char *
terminated(const char *string, size_t len, char *fixed)
{
	char	   *copy = len < SHORT_STRING ? fixed : palloc_extended(len + 1, MCXT_ALLOC_HUGE);

	memcpy(copy, string, len);
	copy[len] = 0;
	return copy;
}

static void
append_libc(const Known *known, const char *string, size_t len, size_t most, MotKeyBuffer *buf)
{
	char		fixed[SHORT_STRING];
	const char *copy;
	size_t		room;
	size_t		size;

#ifdef MOT_FAULTS

	/*
	 * a sort key that strcoll_l() does not agree with: see
	 * test/t/collations.pl
	 */
	static const char lie[] = "lie:";

	if (len > strlen(lie) && memcmp(string, lie, strlen(lie)) == 0)
	{
		string += strlen(lie);
		len -= strlen(lie);
	}
#endif

	/*
	 * one that long is no key, and not relied upon as a bound: it may have
	 * hundreds of MB
	 */
	len = Min(len, MOT_KEY_VALUE_MAX);
	room = 8 * len + 16;
	copy = terminated(string, len, fixed);
	while ((size = strxfrm_l((char *) key_room(buf, room), copy, room, known->locale)) >= room)
		room = size + 1;
	buf->len += Min(size, most) + 1;
	buf->data[buf->len - 1] = 0;
	if (copy != fixed)
		pfree(unconstify(char *, copy));
}

int
MotCollationCompare(const MotCollation *collation, const char *a, size_t a_len, const char *b, size_t b_len)
{
	const Known *known = (const Known *) collation;
	char		a_fixed[SHORT_STRING];
	char		b_fixed[SHORT_STRING];
	const char *a_copy;
	const char *b_copy;
	int			result;

	if (a_len == b_len && memcmp(a, b, a_len) == 0)
		return 0;
	a_copy = terminated(a, a_len, a_fixed);
	b_copy = terminated(b, b_len, b_fixed);
	result = strcoll_l(a_copy, b_copy, known->locale);
	if (result == 0)
		result = strcmp(a_copy, b_copy);
	if (a_copy != a_fixed)
		pfree(unconstify(char *, a_copy));
	if (b_copy != b_fixed)
		pfree(unconstify(char *, b_copy));
	return result;
}

/* ------------------------------------------------------------------ opened */

bool
MotCollationOpen(const MotCollation *collation, bool raise)
{
	Known	   *known = (Known *) collation;
	const char *why = NULL;
	bool		open;

#ifdef USE_ICU
	if (collation->provider == COLLPROVIDER_ICU)
	{
		if (known->icu == NULL)
			known->icu = open_icu(collation, &why);
		open = known->icu != NULL;
	}
	else
#endif
	{
		if (known->locale == NULL && collation->provider == COLLPROVIDER_LIBC)
			known->locale = newlocale(LC_COLLATE_MASK, collation->locale, NULL);
		open = known->locale != NULL;
	}
	if (!open)
		ereport(raise ? ERROR : WARNING,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("could not open locale \"%s\" for the keys of an index", collation->locale),
				 why != NULL ? errdetail_internal("%s", why) : 0));
	return open;
}

void
MotCollationAppend(const MotCollation *collation, const char *string, size_t len, size_t most, MotKeyBuffer *buf)
{
	const Known *known = (const Known *) collation;

#ifdef USE_ICU
	if (collation->provider == COLLPROVIDER_ICU)
	{
		append_icu(known, string, len, buf);
		return;
	}
#endif
	append_libc(known, string, len, most, buf);
}

uint32
MotCollationFingerprint(const MotCollation *collation)
{
	Known	   *known = (Known *) collation;
	MotKeyBuffer buf;

	if (known->fingerprint != 0)
		return known->fingerprint;
	MotKeyBufferInit(&buf, CurrentMemoryContext);
	for (char c = ' '; c < 0x7f; c++)
	{
		/* alone, and in company */
		char		strings[2][4] = {{c}, {'a', c, 'B', '2'}};

		MotCollationAppend(collation, strings[0], 1, MOT_SORT_KEY_MAX, &buf);
		MotCollationAppend(collation, strings[1], sizeof(strings[1]), MOT_SORT_KEY_MAX, &buf);
	}
	if (collation->encoding == PG_UTF8)
	{
		/* accents, Chinese, Japanese, Korean, Cyrillic, Greek */
		static const char others[] =
		"\303\244\303\204a\303\251\303\250\303\252\303\253\303\261\303\266\303"
		"\274\303\237\303\270\305\202\304\215\305\276\304\261\304\221\303\276\344"
		"\270\255\346\226\207\346\227\245\346\234\254\355\225\234\352\265\255\321"
		"\217\320\266\316\251\317\200";

		MotCollationAppend(collation, others, strlen(others), MOT_SORT_KEY_MAX, &buf);
	}
	known->fingerprint = Max(hash_bytes(buf.data, (int) buf.len), 1);
	if (buf.data != buf.fixed)
		pfree(buf.data);
	return known->fingerprint;
}
