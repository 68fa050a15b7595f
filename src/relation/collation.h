/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  The order of strings, without a catalogue: sort keys, and comparing.
 *
 * Keys of an index are made wherever rows come, go or are looked for: in the
 * startup process, in helpers that load and in the maintenance worker too, none of which has a
 * database.  So a column's definition has the collation's name as its provider knows it, and
 * here the provider is asked by that: newlocale() and strxfrm_l(), or ICU.  What they
 * answer is what they say today: it is kept in indexes, which are made anew at each start, and
 * goes into no log and no checkpoint.  So another library, or another definition of the
 * locale, does no harm at the next start.
 *
 * While the server runs, the order must be one.  A process that begins later may find other locale
 * files than those which the indexes were made by.  So a collation has a fingerprint, a hash of the
 * sort keys of a few strings, which is kept with each index, and a process whose own is another one
 * refuses to work with that index (keycodec_collated.c).
 *
 * ICU promises that sort keys are ordered as strings compare, and the
 * server sorts by them.  Of glibc it is not believed (see TRUST_STRXFRM in the server's varlena.c):
 * keys of these collations are compared with their neighbours by strcoll_l() as they come into an
 * index (engine/order.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_COLLATION_H
#define MOT_COLLATION_H

#include "mot.h"
#include "lib/stringinfo.h"
#include "relation/keycodec.h"

/* one for each name, for the life of the process */
typedef struct MotCollation
{
	char		provider;
	bool		deterministic;
	bool		trusted;		/* sort keys have the strings' order */
	const char *locale;
	const char *rules;			/* or NULL */
	int			encoding;		/* of strings */
} MotCollation;

/* of the catalogue's collation; NULL: there is nothing to go by but the bytes */
extern const MotCollation *MotCollationOf(Oid collation);

/*
 * as bytes of a definition; the read one is checked by the caller for where it ends.  NULL: damaged
 */
extern void MotCollationWrite(const MotCollation *collation, StringInfo to);
extern const MotCollation *MotCollationTake(const char **from, const char *end);

/* can the provider be asked?  If not, and "raise", that is an error, else a warning. */
extern bool MotCollationOpen(const MotCollation *collation, bool raise);
extern uint32 MotCollationFingerprint(const MotCollation *collation);

/*
 * Append the sort key, which has no zero byte, and a zero byte.  One of a collation that is not
 * trusted is cut at so many bytes: strings that differ behind are then in no certain order.  All
 * such columns of a key share MOT_SORT_KEY_MAX, which leaves room for what heap has room for,
 * whatever the library answers.
 */
#define MOT_SORT_KEY_MAX 4096
extern void MotCollationAppend(const MotCollation *collation, const char *string, size_t len, size_t most,
							   MotKeyBuffer *buf);

/* as the server compares strings of a deterministic collation of libc's */
extern int	MotCollationCompare(const MotCollation *collation, const char *a, size_t a_len, const char *b, size_t b_len);

#endif							/* MOT_COLLATION_H */
