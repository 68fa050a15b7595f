/*-------------------------------------------------------------------------
 *
 * ranked.h
 *	  Columns of indexes whose values have no encoding: their rank as a label.
 *
 * Arrays, jsonb, citext, records and whatever else comes with a btree operator class are ordered by
 * a function that only a session can call.  In the key such a column has a label (label.h), and
 * behind it the value that was given it first.  Keys with the same columns before have labels in
 * the order of these values, equal ones where the function says that values are equal: so the
 * bytes' order is the operator class's, and the tree, replay, checkpoints, loading, standbys and
 * reclamation know nothing of it.  A ranked key is a computed one (computed.c): it is stored with
 * the row.
 *
 * A writer finds a value's place among the index's entries by bisecting the labels, comparing with
 * the values that entries have, and takes the label of an equal one, or makes one between its
 * neighbours.  All entries count, whosoever they are: of rows that are not committed, of older
 * versions.  So any two entries that are in the tree at one time are in order.  For that a table's
 * ranks have a lock, which is held from the search until the entry is in the tree.  It is one of
 * the lock manager's, as comparison functions may do anything.  Nobody who has it waits for another
 * transaction: a row whose key somebody else may have is taken back, he is waited for, and it all
 * begins anew, because the label may be another's by then (writer.c).
 *
 * Readers look for their bounds without a lock, in the same way, among the entries of rows that
 * their view sees. These stay as long as it does, so the place that is found is right for the whole
 * scan, whoever comes between.  Nothing else may be asked on a standby, where versions that the
 * primary has forgotten are still seen by older snapshots, beside entries whose labels were given
 * after.  Where nothing is equal the bound is the whole gap, which SERIALIZABLE transactions so
 * have read.  Only who looks for rows that are not committed (a dirty snapshot) asks all entries.
 *
 * A server that has been promoted has such older versions in its indexes as well, and a writer's
 * labels are to be in order with all entries: so the first one waits until transactions that began
 * before the promotion have ended, and reclamation has taken out what only they saw
 * (engine/behind.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_RANKED_H
#define MOT_RANKED_H

#include "relation/keys.h"
#include "relation/label.h"

/* how the columns of an index compare, those that are ranked; in CurrentMemoryContext */
extern struct MotRanking *MotRankingOf(Relation index, const MotKey *key);

/* the table's ranks are nobody else's */
extern void MotRankLock(Relation rel);
extern void MotRankUnlock(Relation rel);

/* A new row's key into "key" (reset first), with ranks: under the lock.  Flags for the engine. */
extern unsigned MotRankKey(MotIndex *index, const Datum *values, const bool *isnull, MotKeyBuffer *key);

/* as values of a ranked column are ordered */
extern int	MotRankCompare(MotIndex *index, int column, Datum a, Datum b);

/*
 * Bounds (keys.c).  Behind keys->lower: the column's value; false: there is none, and the bounds
 * are the gap.  And the conditions on the column behind the points; false: no row satisfies them.
 */
extern bool MotRankPoint(MotKeys *keys, int column, Datum value);
extern bool MotRankRange(MotKeys *keys, int column);

/* Values without keys: they are put in order, and given keys with new labels. */
typedef struct MotRankItem
{
	MotPoint	key;
	Datum	   *values;			/* of the index's columns */
	bool	   *isnull;
	bool		same;			/* private */
	mot_row    *row;			/* the caller's */
	const mot_version *version;
} MotRankItem;

/* a value of a column of the index, ranked or not; palloc'd if need be */
extern Datum MotRankCopy(MotIndex *index, int column, Datum value);
extern void MotRankAll(MotIndex *index, MotRankItem *items, int64 n, MemoryContext cxt);

#endif							/* MOT_RANKED_H */
