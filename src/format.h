/*-------------------------------------------------------------------------
 *
 * format.h
 *	  Formats of what outlives a run of the server: where the number of each
 *	  is, when it is raised, and what is read.
 *
 *	what					its number is							now		read
 *	a record of the log		its first byte (wal/record.h)			2		1, 2
 *	a checkpoint			in the first word of its manifest, for	3		1 to 3
 *							all files beside it (wal/manifest.c)
 *	a standby's trail		in the first word of the file (trail.c)	1		1
 *	a definition			in its first word (definition.c), for	5		1 to 5
 *							the rows and keys that it describes
 *
 * Files of spill.c, the spool and the directory of tables that are left out are
 * of use to one run only, and have no number.
 *
 * A number is raised by the first change since a release by which something is
 * written that the release would not read, or read as something else.  Who
 * raises that of definitions raises that of records as well, so that an older
 * standby stops in front of the record instead of in it.  An operation
 * (MotOp) keeps its meaning for ever: one that is to be different has another
 * code.  So operations of an older record may be copied into a checkpoint, and
 * lie beside newer ones.
 *
 * Only the newest format is written.  What its predecessor writes is read by
 * each release, at least, and comes from test/fixtures in the tests.  The first
 * checkpoint makes all of it new, but for definitions, which are as they were
 * until their table is altered: their older formats are read for ever.
 *
 * What begins with a number that is not known is refused by MotRaiseFormat, with
 * the number and those that are known.  That is no damage: mot.ignore_damaged
 * does not go on without it.  A server that finds it at a start serves heap tables,
 * and files and log stay as they are; a standby pauses in front of it, and
 * is read meanwhile (rmgr.c).  An older release than these numbers' says of a
 * newer manifest that it is damaged, and refuses it, too.
 *
 * Bytes are in the order and alignment of the machine.  The server itself takes
 * no data directory of another kind of machine; for files that were put into one the
 * manifest says of which kind they are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_FORMAT_H
#define MOT_FORMAT_H

#include "compat/names.h"

/* tells this from damage */
#define MOT_FORMAT_ERRCODE ERRCODE_FEATURE_NOT_SUPPORTED

/* "what" (a name with its place) is of format "found"; those up to "newest" are read */
extern void MotRaiseFormat(const char *what, int found, int newest) pg_attribute_noreturn();

#endif							/* MOT_FORMAT_H */
