/*-------------------------------------------------------------------------
 *
 * passed.c
 *	  Commits that recovery to a time has passed over, and the next start must not read.
 *
 * The server stops at a commit of its own that is later than the target; those of ours before
 * it that are later, too, have been passed over (rmgr.c), and lie in the log.  A checkpoint at the
 * end of recovery sees to it that nobody reads them again.  Where our tables are refused there is
 * none, and the log is kept from the older one on: then a file beside it says from where to where
 * commits do not count, for the next start, which may be one with mot.ignore_damaged, and for
 * standbys that are made of a copy.
 *
 * It holds in a history in which a timeline ends where it does: recovery may end before there is
 * another timeline, and begin anew with another target.  Where that ends may be just there, so it
 * removes what one before has left.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "storage/fd.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/file.h"
#include "wal/replay/replay.h"

#define FILE_MAGIC	UINT64CONST(0x314445535341504d) /* "MPASSED1" */
#define FILE_NAME	MOT_DIRECTORY "/passed"
#define NEW_NAME	FILE_NAME ".tmp"

typedef struct Passed
{
	uint64		magic;
	uint64		system_identifier;
	XLogRecPtr	from;
	XLogRecPtr	to;
	pg_crc32c	crc;
} Passed;

/* Recovery ends; what does not hold here would from now on, should the new timeline begin where it ends. */
void
MotPassedForget(void)
{
	uint64		size;

	if (MotReplay->passed_to == InvalidXLogRecPtr && MotFileSize(FILE_NAME, &size))
		(void) durable_unlink(FILE_NAME, ERROR);
}

/* Those from here on, to where recovery ends. */
void
MotPassedWrite(XLogRecPtr from, XLogRecPtr to)
{
	Passed		passed = {FILE_MAGIC, GetSystemIdentifier(), from, to, 0};
	int			fd;

	passed.crc = MotFileChecksum(&passed, offsetof(Passed, crc));
	fd = MotFileCreate(NEW_NAME, 0);
	MotFileWrite(fd, NEW_NAME, &passed, sizeof(passed), 0);
	MotFileSync(fd, NEW_NAME);
	MotFileClose(fd, NEW_NAME);
	(void) durable_rename(NEW_NAME, FILE_NAME, ERROR);
}

static bool
ends_at(TimeLineID tli, XLogRecPtr at)
{
	foreach_ptr(TimeLineHistoryEntry, entry, readTimeLineHistory(tli))
		if (entry->end == at)
		return true;
	return false;
}

/* A checkpoint at "lsn" is loaded, and log follows on the way to this timeline. */
void
MotPassedRead(XLogRecPtr lsn, TimeLineID tli)
{
	Passed		passed = {0};
	uint64		size;
	int			fd;

	MotReplay->passed_from = MotReplay->passed_to = InvalidXLogRecPtr;
	if (!MotFileSize(FILE_NAME, &size))
		return;
	fd = MotFileOpen(FILE_NAME, NULL);
	size = MotFileRead(fd, FILE_NAME, (char *) &passed, sizeof(passed), 0);
	(void) CloseTransientFile(fd);
	if (size < sizeof(passed) || passed.magic != FILE_MAGIC || passed.system_identifier != GetSystemIdentifier() ||
		!EQ_CRC32C(MotFileChecksum(&passed, offsetof(Passed, crc)), passed.crc))
		MotFileRaiseDamaged(FILE_NAME, 0, "the header does not fit");
	if (passed.to <= lsn || !ends_at(tli, passed.to))
		return;
	MotReplay->passed_from = passed.from;
	MotReplay->passed_to = passed.to;
}

bool
MotPassedOver(XLogRecPtr lsn)
{
	return lsn >= MotReplay->passed_from && lsn < MotReplay->passed_to;
}

/* Checkpoints older than that are not kept. */
void
MotPassedRemove(XLogRecPtr keep_from)
{
	if (MotReplay->passed_to <= keep_from)
		MotFileRemove(FILE_NAME);
}
