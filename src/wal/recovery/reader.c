/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Our own reading of the server's log.
 *
 * Between a checkpoint of ours and the place where the server's redo begins
 * lie records that nobody will show us; and after a clean shutdown there is no
 * redo at all.  So we read them here, as the server's recovery does: a segment
 * is looked for on the timelines of the history, the newest first (a segment
 * with a switch in it was copied to the new timeline, and the old one's file
 * may have been renamed since), and where the server recovers from an
 * archive, there too.
 *
 * What is not there, or makes no sense, before the end that the caller names
 * is a refusal with the file and the position: never a silent gap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogarchive.h"
#include "access/xlogrecovery.h"
#include "compat/calls.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/startup.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"
#include "wal/file.h"
#include "wal/internal.h"

typedef struct LogFile
{
	XLogRecPtr	to;				/* nothing from here on */
	List	   *history;		/* of TimeLineHistoryEntry, newest first */
	int			fd;				/* -1: none */
	XLogSegNo	segno;			/* of fd */
	TimeLineID	tli;
	bool		at_end;			/* more was asked for than there is up to "to" */
} LogFile;

/* where a restored segment is kept while it is read; the server's own is RECOVERYXLOG */
#define RESTORED_NAME "MOTXLOG"

#define LOG_HINT \
	"Restore the segment from the archive, or the server from a backup; mot.ignore_damaged starts it without the tables."

/* records between two looks for an interrupt */
#define BATCH 1024

static void refuse(LogFile *log, XLogRecPtr at, const char *why) pg_attribute_noreturn();

/* ---------------------------------------------------------------- segments */

static void
close_segment(LogFile *log)
{
	if (log->fd >= 0)
		(void) close(log->fd);
	log->fd = -1;
}

/*
 * The timelines to look on.  Recovery may be on its way to a younger timeline
 * than the one it is on, and have segments of that only.
 */
static List *
history_of(TimeLineID tli)
{
	if (MotRecovers() && recoveryTargetTLI > tli)
	{
		List	   *history = readTimeLineHistory(recoveryTargetTLI);

		if (tliInHistory(tli, history))
			return history;
	}
	return readTimeLineHistory(tli);
}

static void
open_segment(LogFile *log, XLogSegNo segno)
{
	char		path[MAXPGPATH];
	char		name[MAXFNAMELEN];
	TimeLineID	newest = 0;

	close_segment(log);
	for (int source = 0; source < 2; source++)
	{
		/* only the startup process knows whether there is an archive */
		if (source == 1 && !(AmStartupProcess() && ArchiveRecoveryRequested &&
							 recoveryRestoreCommand != NULL && recoveryRestoreCommand[0] != '\0'))
			break;

		foreach_ptr(TimeLineHistoryEntry, entry, log->history)
		{
			XLogSegNo	first = 0;

			/* a timeline has the segments from the one in which it began */
			if (!XLogRecPtrIsInvalid(entry->begin))
				XLByteToSeg(entry->begin, first, wal_segment_size);
			if (segno < first)
				continue;
			if (newest == 0)
				newest = entry->tli;

			XLogFileName(name, entry->tli, segno, wal_segment_size);
			if (source == 0)
				snprintf(path, MAXPGPATH, XLOGDIR "/%s", name);
			else if (!RestoreArchivedFile(path, name, RESTORED_NAME, wal_segment_size, false))
				continue;

			log->fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
			if (log->fd < 0 && errno != ENOENT)
				MotFileRaise("open file", path);
			if (source == 1)
				(void) unlink(path);
			if (log->fd >= 0)
			{
				log->segno = segno;
				log->tli = entry->tli;
				return;
			}
		}
	}

	XLogFileName(name, newest, segno, wal_segment_size);
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_FILE),
			 errmsg("log segment %s, which memory-optimized tables need for recovery, is missing", name),
			 errdetail("The log is needed up to %X/%X.", LSN_FORMAT_ARGS(log->to)),
			 errhint(LOG_HINT)));
}

bool
MotLogIsHere(XLogRecPtr at, TimeLineID tli)
{
	XLogSegNo	segno;

	XLByteToSeg(at, segno, wal_segment_size);
	foreach_ptr(TimeLineHistoryEntry, entry, history_of(tli))
	{
		char		path[MAXPGPATH];

		XLogFilePath(path, entry->tli, segno, wal_segment_size);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------- pages */

static int
read_page(XLogReaderState *reader, XLogRecPtr page, int wanted, XLogRecPtr target, char *buffer)
{
	LogFile    *log = reader->private_data;
	XLogSegNo	segno;
	ssize_t		n;

	if (page + wanted > log->to)
	{
		log->at_end = true;
		return -1;
	}
	log->at_end = false;

	XLByteToSeg(page, segno, wal_segment_size);
	if (log->fd < 0 || log->segno != segno)
		open_segment(log, segno);

	pgstat_report_wait_start(WAIT_EVENT_WAL_READ);
	n = pg_pread(log->fd, buffer, XLOG_BLCKSZ, (off_t) XLogSegmentOffset(page, wal_segment_size));
	pgstat_report_wait_end();
	if (n != XLOG_BLCKSZ)
	{
		char		name[MAXFNAMELEN];
		int			saved_errno = errno;

		XLogFileName(name, log->tli, segno, wal_segment_size);
		errno = saved_errno;
		if (n < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read from log segment %s, offset %u: %m",
							name, (unsigned) XLogSegmentOffset(page, wal_segment_size))));
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read from log segment %s, offset %u: read %d of %d",
						name, (unsigned) XLogSegmentOffset(page, wal_segment_size), (int) n, XLOG_BLCKSZ),
				 errhint(LOG_HINT)));
	}

	reader->seg.ws_tli = log->tli;
	return (int) Min((XLogRecPtr) XLOG_BLCKSZ, log->to - page);
}

bool
MotLogReaches(XLogRecPtr end, XLogRecPtr to)
{
	return end >= to ||
		(end % XLOG_BLCKSZ == 0 && to - end <= SizeOfXLogLongPHD);
}

static void
read_records(LogFile *log, XLogReaderState *reader, XLogRecPtr from,
			 void (*visit) (void *arg, XLogReaderState *record), void *arg)
{
	XLogRecPtr	end;
	uint64		n = 0;

	/*
	 * "from" need not be the very place where a record begins: it can be that
	 * of a page's header before it
	 */
	end = MotXLogFindNextRecord(reader, from);
	if (XLogRecPtrIsInvalid(end))
	{
		if (log->at_end && MotLogReaches(from, log->to))
			return;
		refuse(log, from, reader->errormsg_buf[0] != '\0' ? reader->errormsg_buf :
			   "no record follows");
	}
	XLogBeginRead(reader, end);

	while (end < log->to)
	{
		char	   *why = NULL;

		if (XLogReadRecord(reader, &why) == NULL)
		{
			if (log->at_end && MotLogReaches(end, log->to))
				return;
			refuse(log, end, why != NULL ? why : "the record goes on behind the end of the log");
		}
		end = reader->EndRecPtr;

		if (XLogRecGetRmid(reader) == mot_resource_manager_id &&
			(XLogRecGetInfo(reader) & MOT_XLOG_KIND) != MOT_XLOG_CHANGES)
			visit(arg, reader);

		if (++n % BATCH == 0)
		{
			MOT_FAULT("read-log");
			if (AmStartupProcess())
				ProcessStartupProcInterrupts();
			else
			{
				MotEndWithServer();
				CHECK_FOR_INTERRUPTS();
			}
		}
	}
}

void
MotReadLog(XLogRecPtr from, XLogRecPtr to, TimeLineID tli,
		   void (*visit) (void *arg, XLogReaderState *record), void *arg)
{
	LogFile		log = {.to = to,.fd = -1};
	MemoryContext cxt;
	MemoryContext oldcxt;
	XLogReaderState *reader;

	if (from >= to)
		return;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT log reader", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	log.history = history_of(tli);
	reader = XLogReaderAllocate(wal_segment_size, NULL,
								XL_ROUTINE(.page_read = read_page,.segment_open = NULL,
										   .segment_close = NULL), &log);
	if (reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reading processor.")));
	MemoryContextSwitchTo(oldcxt);

	PG_TRY();
	{
		read_records(&log, reader, from, visit, arg);
	}
	PG_FINALLY();
	{
		close_segment(&log);
		XLogReaderFree(reader);
	}
	PG_END_TRY();
	MemoryContextDelete(cxt);
}

static void
refuse(LogFile *log, XLogRecPtr at, const char *why)
{
	char		name[MAXFNAMELEN];
	char		last[MAXFNAMELEN];
	XLogSegNo	segno;

	/* that of the record's beginning, and the one that was being read */
	XLByteToSeg(at, segno, wal_segment_size);
	XLogFileName(name, tliOfPointInHistory(at, log->history), segno, wal_segment_size);
	XLogFileName(last, log->tli, log->segno, wal_segment_size);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("log that memory-optimized tables need for recovery is damaged at %X/%X in segment %s",
					LSN_FORMAT_ARGS(at), name),
			 log->fd >= 0 && log->segno != segno ?
			 errdetail("%s.  What begins there was read as far as segment %s.  The log is needed up to %X/%X.",
					   why, last, LSN_FORMAT_ARGS(log->to)) :
			 errdetail("%s.  The log is needed up to %X/%X.", why, LSN_FORMAT_ARGS(log->to)),
			 errhint(LOG_HINT)));
}
