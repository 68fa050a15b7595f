/*-------------------------------------------------------------------------
 *
 * rmgr.c
 *	  Our resource manager: what the server calls when it replays our
 *	  records, or shows them.
 *
 * After a crash the server shows us our records, and we pass them by: they are
 * read again when the server serves heap tables, or at the end of its recovery
 * if the log could be removed before (load.c).
 *
 * In recovery from an archive and on a standby they are applied as they come,
 * after what we have read ourselves of what lies before the server's redo (reader.c);
 * as long as tables are being loaded, they are spooled (standby.c).
 * Records before the checkpoint that was loaded are passed over.
 *
 * A large transaction comes in pieces.  They are kept in a file (spill.c), one
 * behind the other, until the last one tells what becomes of them.
 *
 * Recovery to a point in time: a record of ours that is a commit has its time,
 * but the server does not look at it.  We do, and pass over what is later; the
 * server stops at its own next commit (the checkpoint worker of a server on which
 * only memory-optimized tables change sees to it that there is one).  In the
 * same way recovery_min_apply_delay is for us to heed.
 *
 * What is damaged refuses our tables, also when they have been served: heap tables are replayed on,
 * as long as the slot keeps the log for the next start.
 *
 * A record of a format that we do not know (format.h), from a primary with a newer
 * version, stops replay: as where a standby's settings are too small for its primary, who reads
 * goes on, until somebody resumes replay or restarts the server.
 *
 * Its ID is a setting, as only who runs the modules of a server knows which of them have
 * the same one.  It is in each record, so whoever replays must have the same, and so
 * has each start that finds log (recover.c).
 *
 * What is there for logical decoding (decode.c) is passed by, always.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "catalog/pg_database.h"
#include "compat/compat.h"
#include "format.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "relation/relation.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/standby.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"
#include "wal/recovery/spool.h"
#include "xact/xact.h"

/* a transaction of which the last piece is still to come */
typedef struct Stream
{
	struct Stream *next;
	XLogRecPtr	start;			/* of its first piece */
	size_t		len;
	char	   *path;
	char	   *kept;			/* the disk is full: in this process's memory */
	size_t		size;			/* of that */
} Stream;

static Stream *streams = NULL;

/* where transactions go instead of being applied */
void		(*MotReplayInto) (const char *ops, size_t len, XLogRecPtr lsn) = NULL;

/* after a crash: where redo began, and the last record of ours that was passed by */
static XLogRecPtr redo_from = InvalidXLogRecPtr;
static XLogRecPtr passed_by = InvalidXLogRecPtr;

/* a commit later than the recovery target has been seen */
static bool past_target = false;

/* operations that a description names before it only counts */
#define DESCRIBED 6
#define DESCRIBED_KEY 16

static void pause_before_unknown(XLogReaderState *record);
static void do_or_refuse(void (*what) (XLogReaderState *record), XLogReaderState *record);
static bool log_is_kept(void);
static void refuse(const ErrorData *edata);
static void give_up_all(const char *why);
static List *end_readers(void);
static void let_in(List *databases);
static void decide(XLogReaderState *record);
static void delay_commit(XLogReaderState *record);
static void recover_later(void);
static void replay(XLogReaderState *record);
static bool later_than_target(TimestampTz time);

int			mot_resource_manager_id = MOT_RMGR_ID;

/* ---------------------------------------------------------------- streams */

static Stream *
find_stream(XLogRecPtr start)
{
	Stream	   *stream = streams;

	while (stream != NULL && stream->start != start)
		stream = stream->next;
	return stream;
}

/* NULL: it is missing, and that is ignored */
static Stream *
required_stream(XLogReaderState *record, XLogRecPtr start)
{
	Stream	   *stream = find_stream(start);

	if (stream == NULL)
	{
		char	   *why = psprintf("redo of memory-optimized tables at %X/%X goes on what began at %X/%X, which was not read",
								   LSN_FORMAT_ARGS(record->ReadRecPtr), LSN_FORMAT_ARGS(start));

		/*
		 * (once tables are served, not before those who have read them are
		 * ended: give_up_all)
		 */
		if (!mot_ignore_damaged ||
			(MotWalCurrentState() == MOT_WAL_READY && (XLogRecGetInfo(record) & MOT_XLOG_KIND) != MOT_XLOG_PIECE))
			MotRaiseDamage("%s", why);

		/* whatever it changed, and of all that is there nobody knows what */
		if ((XLogRecGetInfo(record) & MOT_XLOG_KIND) != MOT_XLOG_PIECE)
		{
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("%s", why),
					 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.")));
			MotLoadGiveUp(why);
		}
		pfree(why);
	}
	return stream;
}

static Stream *
begin_stream(XLogRecPtr start)
{
	Stream	   *stream = MemoryContextAllocZero(TopMemoryContext, sizeof(Stream));

	MotWithin(TopMemoryContext, stream->path = MotSpillPath("%08X%08X.pieces", LSN_FORMAT_ARGS(start)));
	stream->start = start;
	stream->next = streams;
	streams = stream;
	MotReplay->streams++;
	return stream;
}

/* A full disk is no reason to be without the tables, as long as there is memory. */
static void
keep_piece(Stream *stream, const char *ops, size_t len)
{
	if (stream->kept == NULL)
	{
		stream->size = Max(2 * (stream->len + len), 1024);
		stream->kept = MemoryContextAllocHuge(TopMemoryContext, stream->size);
		if (stream->len > 0)
		{
			const void *written = MotSpillMap(stream->path, stream->len);

			memcpy(stream->kept, written, stream->len);
			MotSpillUnmap(written, stream->len);
		}
		MotFileRemove(stream->path);
	}
	else if (stream->len + len > stream->size)
	{
		stream->size = 2 * (stream->len + len);
		stream->kept = repalloc_huge(stream->kept, stream->size);
	}
	memcpy(stream->kept + stream->len, ops, len);
}

/* One piece after the other: what OP_LONG announces then lies behind it. */
static void
append_piece(Stream *stream, const char *ops, size_t len)
{
	if (stream->kept != NULL || !MotSpillWriteIfRoom(stream->path, stream->len, ops, len))
		keep_piece(stream, ops, len);
	stream->len += len;
}

/* (in doubt, the file has another name by now) */
static void
end_stream(Stream *stream)
{
	Stream	  **link = &streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	if (stream->kept != NULL)
		pfree(stream->kept);
	else
		MotFileRemove(stream->path);
	pfree(stream->path);
	pfree(stream);
	MotReplay->streams--;
}

void
MotReplayForget(void)
{
	while (streams != NULL)
		end_stream(streams);
}

/* ------------------------------------------------------------------- redo */

/* Recovery begins: what the newest checkpoint has, and what lies between it and here. */
static void
replay_startup(void)
{
	XLogRecPtr	start;
	TimeLineID	tli;

	past_target = MotReplay->past_target = false;
	start = GetXLogReplayRecPtr(&tli);
	if (!ArchiveRecoveryRequested)
	{
		redo_from = start;
		passed_by = InvalidXLogRecPtr;
		return;
	}
	if (MotEngine == NULL)
		return;					/* said in the log; a record for it will stop
								 * us */
	MotStandbyBegin(start, tli);
}

static void
replay_cleanup(void)
{
	TimeLineID	tli;

	if (!ArchiveRecoveryRequested)
	{
		recover_later();
		return;
	}
	if (MotEngine == NULL)
		return;
	MOT_FAULT("replay-end");
	MotLoadCheckEnd(GetXLogReplayRecPtr(&tli));

	/*
	 * (it may have been handed over just now, and what is in doubt may be
	 * damaged)
	 */
	if (!past_target && MotSpooling())
		do_or_refuse(decide, NULL);
	if (!past_target && MotStandbyEndsLater(GetXLogReplayRecPtr(&tli)))
	{
		MOT_FAULT("replay-ended");
		MOT_FAULT("replay-over");
		return;
	}
	MotStandbyAwait();
	/* what is in doubt may be damaged, too */
	do_or_refuse(decide, NULL);
	if (MotWalCurrentState() == MOT_WAL_REFUSED)
	{
		/*
		 * The next start finds what this one has found; but then there must
		 * be nothing in the log that it should not read.
		 */
		if (past_target)
			MotStateRaiseRefusal();
		decide(NULL);
		return;
	}
	MotReplayEnd();
	MOT_FAULT("replay-ended");
	/* what was passed over is in the log, and must not be read again */
	MotCheckpointRecoveryEnd(past_target);
	past_target = MotReplay->past_target = false;
	MOT_FAULT("replay-over");
}

/*
 * The server has recovered from a crash.  The worker does the rest; but where
 * nobody keeps the log for it (the server's checkpoint comes next), or there
 * will be no worker, it is done now.
 */
static void
recover_later(void)
{
	TimeLineID	tli;
	XLogRecPtr	end = GetXLogReplayRecPtr(&tli);
	XLogRecPtr	from;

	MOT_FAULT("replay-end");
	if (!MotLoadLater(redo_from, passed_by, end, &from))
	{
		if (MotEngine == NULL && passed_by == InvalidXLogRecPtr)
			return;
		(void) MotEngineRequired();
		MotLoad(from, end, tli);
		MotLoadCheckEnd(end);
		MotReplayEnd();
		MotCheckpointRecoveryEnd(from != InvalidXLogRecPtr);
	}
	MOT_FAULT("replay-ended");
	MOT_FAULT("replay-over");
}

static void
replay_redo(XLogReaderState *record)
{
	if ((XLogRecGetInfo(record) & MOT_XLOG_KIND) == MOT_XLOG_CHANGES)
		return;
	if (ArchiveRecoveryRequested)
	{
		pause_before_unknown(record);
		delay_commit(record);
		MotReplayOrRefuse(record);
	}
	else if ((XLogRecGetInfo(record) & MOT_XLOG_KIND) != MOT_XLOG_START)
		passed_by = record->ReadRecPtr;
}

/*
 * As the server does for settings (RecoveryRequiresIntParameter).  The caller raises what there is
 * to say.
 */
static void
pause_before_unknown(XLogReaderState *record)
{
	MotRecordHeader header;
	int			format;
	bool		told = false;

	(void) MotRecordGetHeader(XLogRecGetData(record), XLogRecGetDataLen(record), &header, &format);
	if (likely(format <= MOT_RECORD_FORMAT) || !HotStandbyActive())
		return;
	ereport(WARNING,
			(errcode(MOT_FORMAT_ERRCODE),
			 errmsg("recovery has paused: redo of memory-optimized tables at %X/%X is of format %d, and this version of mot reads formats 1 to %d",
					LSN_FORMAT_ARGS(record->ReadRecPtr), format, MOT_RECORD_FORMAT),
			 errdetail("If recovery is unpaused, the server will shut down."),
			 errhint("Install the version of mot that the primary has, or a newer one, and restart the server.")));
	SetRecoveryPause(true);
	while (GetRecoveryPauseState() != RECOVERY_NOT_PAUSED)
	{
		if (!told && IsPromoteSignaled() && CheckPromoteSignal())
		{
			ereport(WARNING,
					(errcode(MOT_FORMAT_ERRCODE),
					 errmsg("promotion is not possible: recovery has paused before redo of memory-optimized tables of an unknown format")));
			told = true;
		}
		(void) WaitLatch(NULL, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 100, WAIT_EVENT_RECOVERY_PAUSE);
		ProcessStartupProcInterrupts();
	}
}

/* What is damaged keeps our tables from being read, and nothing else from being replayed. */
void
MotReplayOrRefuse(XLogReaderState *record)
{
	do_or_refuse(MotReplayRecord, record);
}

static void
do_or_refuse(void (*what) (XLogReaderState *record), XLogReaderState *record)
{
	MemoryContext cxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		damages = MotStateDamages();

	PG_TRY();
	{
		what(record);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (!MotErrorIsDamage())
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		LWLockReleaseAll();
		InterruptHoldoffCount = holdoff;
		if (!MotStateIs(MOT_IS_REFUSED) && !mot_ignore_damaged && !log_is_kept())
			PG_RE_THROW();
		if (mot_ignore_damaged && !MotStateIs(MOT_IS_REFUSED))
		{
			FlushErrorState();
			give_up_all(edata->message);
		}
		else
		{
			EmitErrorReport();
			FlushErrorState();
			if (!MotStateIs(MOT_IS_REFUSED))
				refuse(edata);
		}
		FreeErrorData(edata);
	}
	PG_END_TRY();
	/* (with mot.ignore_damaged) */
	if (unlikely(MotStateDamages() != damages) && MotWalCurrentState() == MOT_WAL_READY)
	{
		List	   *databases = end_readers();

		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
		MotApplyDropGivenUp();
		LWLockRelease(MotApplyLock);
		let_in(databases);
	}
}

/* Else the log would go with the server's next restartpoint, and with it what can still be recovered. */
static bool
log_is_kept(void)
{
	MotCheckpointStat before;
	MotCheckpointStat now;

	/* (a new one may come meanwhile, which moves the slot) */
	MotCheckpointStatGet(&now);
	do
	{
		before = now;
		if (before.checkpoint_lsn != InvalidXLogRecPtr && MotSlotKeeps(before.checkpoint_lsn))
			return true;
		MotCheckpointStatGet(&now);
	} while (now.checkpoint_lsn != before.checkpoint_lsn);
	return false;
}

/*
 * From here on nothing of ours is applied, and no checkpoint written: the next start finds what this
 * one has found.  Whoever loads does not know; that is refused when it is done.
 */
static void
refuse(const ErrorData *edata)
{
	List	   *databases = NIL;
	bool		ready;

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	ready = MotWalCurrentState() == MOT_WAL_READY;
	if (ready)
	{
		/* until they have ended they meet the same, if it is committed */
		LWLockRelease(MotApplyLock);
		databases = end_readers();
		LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	}
	MotStateRefuse(edata->sqlerrcode, edata->message, edata->hint);
	if (ready)
		MotStateLoadDone();
	LWLockRelease(MotApplyLock);
	ereport(LOG,
			(errmsg("replay goes on without memory-optimized tables")));
	let_in(databases);
}

/* With mot.ignore_damaged, if nobody knows of which table it is. */
static void
give_up_all(const char *why)
{
	List	   *databases = MotWalCurrentState() == MOT_WAL_READY ? end_readers() : NIL;
	MotCheckpointStat stat;

	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("%s", why),
			 errdetail("Going on without any memory-optimized table, as mot.ignore_damaged says.")));
	MotCheckpointStatGet(&stat);
	MotStatePreserve(stat.checkpoint_lsn);
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotInDoubtForgetFailed();
	MotLoadGiveUp(why);
	LWLockRelease(MotApplyLock);
	let_in(databases);
}

/*
 * Sessions that may have read our tables must not go on to read them as of now beside heap tables of
 * later: as where a database is dropped, they are ended.  Returns the databases, which let nobody in.
 */
static List *
end_readers(void)
{
	List	   *databases = NIL;
	int			n;
	mot_table **tables;

	if (!InHotStandby)
		return NIL;
	tables = MotTables(InvalidOid, &n);
	for (int i = 0; i < n; i++)
		databases = list_append_unique_oid(databases, mot_table_host_db(tables[i]));
	pfree(tables);
	foreach_oid(dbid, databases)
		LockSharedObjectForSession(DatabaseRelationId, dbid, 0, AccessExclusiveLock);
	foreach_oid(dbid, databases)
		ResolveRecoveryConflictWithDatabase(dbid);
	return databases;
}

static void
let_in(List *databases)
{
	foreach_oid(dbid, databases)
		UnlockSharedObjectForSession(DatabaseRelationId, dbid, 0, AccessExclusiveLock);
	list_free(databases);
}

/* Replay is over: there is no more log, so what is still in doubt will never be committed. */
static void
decide(XLogReaderState *record)
{
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotReplayForget();
	MotInDoubtSettle(true);
	LWLockRelease(MotApplyLock);
}

const char *
MotRecordOpen(XLogReaderState *record, MotRecordHeader *header, size_t *len)
{
	const char *data = XLogRecGetData(record);
	size_t		total = XLogRecGetDataLen(record);
	int			format;
	size_t		behind = MotRecordGetHeader(data, total, header, &format);

	if (unlikely(format > MOT_RECORD_FORMAT))
		MotRaiseFormat(psprintf("redo of memory-optimized tables at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr)),
					   format, MOT_RECORD_FORMAT);
	if (unlikely(behind == 0))
		MotRedoRaiseDamaged(record->ReadRecPtr, "too short");
	*len = total - behind;
	return data + behind;
}

/*
 * As the server does before it replays a commit of its own (recoveryApplyDelay).  It would pause
 * after that; we cannot tell it to, so whoever asks for a pause meanwhile has it here.
 */
static void
delay_commit(XLogReaderState *record)
{
	MotRecordHeader header;
	int			format;

	/* (what cannot be read is refused when it is applied) */
	if (recovery_min_apply_delay <= 0 || !reachedConsistency ||
		(XLogRecGetInfo(record) & MOT_XLOG_KIND) != MOT_XLOG_COMMIT ||
		MotRecordGetHeader(XLogRecGetData(record), XLogRecGetDataLen(record), &header, &format) == 0 ||
		format > MOT_RECORD_FORMAT)
		return;
	while (!PromoteIsTriggered() && !(IsPromoteSignaled() && CheckPromoteSignal()) && !MotPromoteFileExists())
	{
		long		wait = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														   TimestampTzPlusMilliseconds(header.time, recovery_min_apply_delay));

		if (wait <= 0 && GetRecoveryPauseState() == RECOVERY_NOT_PAUSED)
			return;

		/* the latch that promotion sets is the server's own */
		(void) WaitLatch(NULL, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, wait <= 0 ? 100 : Min(wait, 100),
						 WAIT_EVENT_RECOVERY_APPLY_DELAY);
		/* the delay may change, too */
		ProcessStartupProcInterrupts();
	}
}

void
MotReplayRecord(XLogReaderState *record)
{
	MotRecoveryStat *stat;

	/* raises what there is to say if memory could not be reserved */
	(void) MotEngineRequired();

	stat = MotRecoveryShared();
	if (record->ReadRecPtr < stat->checkpoint_lsn)
		return;

	/*
	 * A server begins to write.  Restartpoints wait for nobody: from here on,
	 * the log is needed back to the checkpoint that was loaded, even should
	 * that be a final one; where there is none, back to here.
	 */
	if ((XLogRecGetInfo(record) & MOT_XLOG_KIND) == MOT_XLOG_START && MotRecovers() && !MotStateIs(MOT_IS_REFUSED))
	{
		if (stat->checkpoint_lsn != InvalidXLogRecPtr)
		{
			MotOpenMarkerSet();
			MotStateSet(MOT_IS_COMPLETE, false);
		}
		else if (ArchiveRecoveryRequested)
		{
			MotTrailBegin(MotCheckpointWrite(false, false));
			MotTrailLoaded();
		}
	}
	MotTrailNote(record);
	MotSpoolThrottle();

	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	replay(record);
	MotReplay->upto = record->EndRecPtr;
	LWLockRelease(MotApplyLock);

	LWLockAcquire(MotStatLock, LW_EXCLUSIVE);
	stat->replayed_lsn = record->EndRecPtr;
	stat->records_applied++;
	stat->in_doubt = MotInDoubtCount();
	LWLockRelease(MotStatLock);
}

static void
replay(XLogReaderState *record)
{
	uint8		kind = XLogRecGetInfo(record) & MOT_XLOG_KIND;
	XLogRecPtr	lsn = record->ReadRecPtr;
	MotRecordHeader header;
	size_t		len;
	const char *ops = MotRecordOpen(record, &header, &len);
	Stream	   *stream = NULL;
	const char *mapped = NULL;

	if (kind == MOT_XLOG_START)
	{
		MotReplayForget();
		if (MotReplayInto == NULL)
			MotInDoubtStart(ops, len);
		return;
	}

	/* (while the log is sorted there is nothing to be applied to) */
	if (MotReplayInto == NULL)
		MotInDoubtSettle(false);
	switch (kind)
	{
		case MOT_XLOG_PIECE:
			MOT_FAULT("replay-piece");
			if (header.stream == InvalidXLogRecPtr)
				stream = begin_stream(lsn);
			else
				stream = required_stream(record, header.stream);
			if (stream != NULL)
				append_piece(stream, ops, len);
			return;

		case MOT_XLOG_FORGET:
			/* unknown: its pieces were before the checkpoint */
			stream = find_stream(header.stream);
			if (stream != NULL)
				end_stream(stream);
			return;

		case MOT_XLOG_COMMIT:
		case MOT_XLOG_MIXED:
			if (header.stream != InvalidXLogRecPtr)
			{
				stream = required_stream(record, header.stream);
				if (stream == NULL)
					return;
				append_piece(stream, ops, len);
				len = stream->len;
				if (stream->kept != NULL)
					ops = stream->kept;
				else if ((kind == MOT_XLOG_COMMIT || MotReplayInto != NULL) && len > 0)
					ops = mapped = MotSpillMap(stream->path, len);
			}
			if (MotReplayInto != NULL)
			{
				if (kind == MOT_XLOG_MIXED)
					MOT_FAULT("replay-doubt");
				if (kind == MOT_XLOG_COMMIT || TransactionIdDidCommit(XLogRecGetXid(record)))
				{
					if (kind == MOT_XLOG_MIXED)
						MOT_FAULT("replay-settle");
					MotReplayInto(ops, len, lsn);
					MOT_FAULT("replay-applied");
				}
				else if (kind == MOT_XLOG_MIXED && MotRecordIsPrepared(ops, len))
					MotInDoubtAdd(XLogRecGetXid(record), lsn, ops, len);
			}
			else if (kind == MOT_XLOG_MIXED && stream != NULL && stream->kept == NULL)
				MotInDoubtAddFile(XLogRecGetXid(record), lsn, stream->path, len);
			else if (kind == MOT_XLOG_MIXED)
				MotInDoubtAdd(XLogRecGetXid(record), lsn, ops, len);
			else if (!later_than_target(header.time))
			{
				while (!MotReplayCommitted(ops, len, lsn, InvalidTransactionId, mapped != NULL ? stream->path : NULL))
				{
					MotApplyMakeRoom(true);
					MotInDoubtSettle(false);
				}
				MOT_FAULT("replay-applied");

				/* whoever committed may be waiting for us to have done it */
				if (AmStartupProcess() && (XLogRecGetInfo(record) & MOT_XLOG_REPLY))
					XLogRequestWalReceiverReply();
			}
			if (mapped != NULL)
				MotSpillUnmap(mapped, len);
			if (stream != NULL)
				end_stream(stream);
			return;

		default:
			MotRedoRaiseDamaged(lsn, "unknown kind %u", kind);
	}
}

bool
MotReplayCommitted(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid, const char *path)
{
	if (unlikely(MotStateIs(MOT_IS_REFUSED)))
		return true;			/* nobody will ever apply it */
	if (unlikely(MotSpooling()))
		return MotSpoolAdd(ops, len, lsn, xid, path);
	return MotApply(ops, len, lsn, xid);
}

/* Whoever is let in can write. */
void
MotReplayEnd(void)
{
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	MotReplayForget();
	MotInDoubtSettle(true);
	MotTargetsEnd(MotSession());
	/* older versions that a standby's readers see: see relation/ranked.h */
	mot_engine_leave_behind(MotEngine);
	LWLockRelease(MotApplyLock);
	(void) MotLeftOutBringBack(true);
	LWLockAcquire(MotApplyLock, LW_EXCLUSIVE);
	/* (what may be prepared lies there) */
	if (MotInDoubtCount() == 0)
		MotSpillBegin();
	MotReplay->contents = 0;
	mot_session_flush(MotSession());
	LWLockRelease(MotApplyLock);
}

static bool
later_than_target(TimestampTz time)
{
	if (!past_target && AmStartupProcess() && ArchiveRecoveryRequested &&
		recoveryTarget == RECOVERY_TARGET_TIME &&
		(recoveryTargetInclusive ? time > recoveryTargetTime : time >= recoveryTargetTime))
		past_target = MotReplay->past_target = true;
	return past_target;
}

/* ------------------------------------------------------------ descriptions */

static const char *
replay_identify(uint8 info)
{
	static const char *const names[MOT_XLOG_KIND + 1] = {
		[MOT_XLOG_COMMIT] = "COMMIT",
		[MOT_XLOG_MIXED] = "MIXED",
		[MOT_XLOG_PIECE] = "PIECE",
		[MOT_XLOG_FORGET] = "FORGET",
		[MOT_XLOG_START] = "START",
		[MOT_XLOG_CHANGES] = "CHANGES"
	};

	return names[info & MOT_XLOG_KIND];
}

static void
describe_identity(StringInfo buf, const MotOpData *op)
{
	if (op->key == NULL)
	{
		appendStringInfo(buf, " row of %zu bytes", op->old_len);
		return;
	}
	appendStringInfoString(buf, " key \\x");
	for (size_t i = 0; i < Min(op->key_len, DESCRIBED_KEY); i++)
		appendStringInfo(buf, "%02x", (unsigned char) op->key[i]);
	if (op->key_len > DESCRIBED_KEY)
		appendStringInfoString(buf, "...");
}

static void
describe_one(StringInfo buf, const MotOpData *op, Oid dbid, Oid relid)
{
	static const char *const names[] = {
		[MOT_OP_CREATE] = "create",
		[MOT_OP_DEFINE] = "define",
		[MOT_OP_INDEX] = "index",
		[MOT_OP_DROP] = "drop",
		[MOT_OP_DROP_DATABASE] = "drop database",
		[MOT_OP_INSERT] = "insert",
		[MOT_OP_UPDATE] = "update",
		[MOT_OP_DELETE] = "delete",
		[MOT_OP_LOCK] = "lock"
	};

	if (op->op >= lengthof(names) || names[op->op] == NULL)
		return;
	appendStringInfo(buf, "; %s ", names[op->op]);
	if (op->op == MOT_OP_DROP_DATABASE)
		appendStringInfo(buf, "%u", op->dbid);
	else
		appendStringInfo(buf, "%u/%u", dbid, relid);
	if (op->op == MOT_OP_INDEX)
		appendStringInfo(buf, " %u", op->oid);
	else if (op->op == MOT_OP_UPDATE || op->op == MOT_OP_DELETE || op->op == MOT_OP_LOCK)
		describe_identity(buf, op);
	if (op->op == MOT_OP_INSERT || op->op == MOT_OP_UPDATE)
		appendStringInfo(buf, ", %zu bytes", op->op == MOT_OP_INSERT ? op->len : op->segments_len);
}

static void
describe_operations(StringInfo buf, const char *ops, size_t len)
{
	const char *end = ops + len;
	const char *error = NULL;
	MotOpData	op;
	Oid			dbid = InvalidOid;
	Oid			relid = InvalidOid;
	int			n = 0;

	while (MotRecordNext(&ops, end, &op, &error))
	{
		if (op.op == MOT_OP_TABLE)
		{
			dbid = op.dbid;
			relid = op.oid;
			continue;
		}
		if (MOT_OP_IS_PREPARED(op.op))
		{
			appendStringInfo(buf, "; prepared \"%.*s\"", (int) op.len, op.bytes);
			continue;
		}
		if (n++ < DESCRIBED)
			describe_one(buf, &op, dbid, relid);
	}
	if (n > DESCRIBED)
		appendStringInfo(buf, "; %d more", n - DESCRIBED);

	/* the rest of a long operation is in the next piece */
	if (error != NULL)
		appendStringInfo(buf, "; %zu bytes of another", (size_t) (end - ops));
}

static void
replay_desc(StringInfo buf, XLogReaderState *record)
{
	uint8		kind = XLogRecGetInfo(record) & MOT_XLOG_KIND;
	const char *data = XLogRecGetData(record);
	size_t		len = XLogRecGetDataLen(record);
	MotRecordHeader header;
	int			format;
	size_t		behind;

	if (kind == MOT_XLOG_CHANGES)
	{
		MotDecodeDescribe(buf, data, len);
		return;
	}
	behind = MotRecordGetHeader(data, len, &header, &format);
	if (behind == 0)
		appendStringInfo(buf, "format %d", format);
	if (kind == MOT_XLOG_START || behind == 0)
		return;
	data += behind;
	len -= behind;

	appendStringInfo(buf, "stream %X/%X", LSN_FORMAT_ARGS(header.stream));
	if (kind == MOT_XLOG_FORGET)
		return;
	/* a later piece may begin in the middle of an operation */
	if (header.stream != InvalidXLogRecPtr)
		appendStringInfo(buf, "; %zu bytes", len);
	else
		describe_operations(buf, data, len);
}

/* ------------------------------------------------------------ what we are */

static RmgrData rmgr = {
	.rm_name = "mot",
	.rm_redo = replay_redo,
	.rm_desc = replay_desc,
	.rm_identify = replay_identify,
	.rm_startup = replay_startup,
	.rm_cleanup = replay_cleanup,
	.rm_decode = MotDecode
};

void
MotRmgrInit(void)
{
	DefineCustomIntVariable("mot.resource_manager_id",
							"ID of the resource manager of memory-optimized tables in the write-ahead log.",
							"It has to be the same on all standbys.",
							&mot_resource_manager_id,
							MOT_RMGR_ID, RM_MIN_CUSTOM_ID, RM_MAX_CUSTOM_ID,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	if (RmgrIdExists(mot_resource_manager_id))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("resource manager of memory-optimized tables cannot have ID %d", mot_resource_manager_id),
				 errdetail("Another module in shared_preload_libraries has a resource manager \"%s\" with that ID.",
						   GetRmgr(mot_resource_manager_id).rm_name),
				 errhint("Set mot.resource_manager_id to another number from %d to %d, the same on all standbys.",
						 RM_MIN_CUSTOM_ID, RM_MAX_CUSTOM_ID)));
	RegisterCustomRmgr(mot_resource_manager_id, &rmgr);
	MotRelationCatchUp = MotInDoubtCatchUp;
}
