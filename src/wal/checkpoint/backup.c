/*-------------------------------------------------------------------------
 *
 * backup.c
 *	  Which checkpoint may a running base backup still need?
 *
 * A backup copies the data directory file by file.  The checkpoint that was
 * the newest when it began is the one it is sure to get whole, if that is left
 * alone until it has finished; the log that comes with the backup brings it
 * forward.
 *
 * Backups by the replication protocol show in the server's progress
 * reporting, from before they ask for their checkpoint.  Those between
 * pg_backup_start() and pg_backup_stop() show nowhere outside their session;
 * so each session that calls the first notes that in shared memory, and looks
 * at the end of its transactions whether it is still at it.
 *
 * pg_rewind copies the files of a running source by a list that it makes first,
 * and announces itself nowhere: it is known by how it makes the list, and is at
 * it until its session ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/objectaccess.h"
#include "compat/calls.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/ipc.h"
#include "utils/backend_status.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "wal/checkpoint/checkpoint.h"

typedef struct Shared
{
	pg_atomic_uint32 used;		/* slots ever used: 0 .. used - 1 */
	pg_atomic_uint32 pid[FLEXIBLE_ARRAY_MEMBER];	/* by slot; 0: no backup */
} Shared;

/* in the worker: backups it knows of, and what each of them keeps */
typedef struct Backup
{
	int			pid;
	XLogRecPtr	keep_from;
	bool		seen;
} Backup;

static Shared *shared = NULL;
static List *backups = NIL;
static bool noted = false;
static bool lists_files = false;
static bool exit_registered = false;
static object_access_hook_type prev_object_access = NULL;

const MotShmem MotBackupShmem = {"mot backups", (void **) &shared, offsetof(Shared, pid), sizeof(pg_atomic_uint32)};

/* ---------------------------------------------------------------- sessions */

static void
note(bool running)
{
	uint32		used = pg_atomic_read_u32(&shared->used);

	while (used <= MotMySlot() &&
		   !pg_atomic_compare_exchange_u32(&shared->used, &used, MotMySlot() + 1))
		;
	/* exchange: a full barrier, the worker's look comes before or after */
	pg_atomic_exchange_u32(&shared->pid[MotMySlot()], running ? MyProcPid : 0);
	noted = running;
}

static void
at_exit(int code, Datum arg)
{
	if (noted)
		note(false);
}

static void
xact_callback(XactEvent event, void *arg)
{
	if (noted && !lists_files && (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT) &&
		get_backup_status() == SESSION_BACKUP_NONE)
		note(false);
}

static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class_id, object_id, sub_id, arg);

	if (access != OAT_FUNCTION_EXECUTE || MyProc == NULL)
		return;

	/*
	 * (pg_rewind has made its session read only, as few do who list
	 * directories by these three arguments)
	 */
	if (object_id == F_PG_LS_DIR_TEXT_BOOL_BOOL && DefaultXactReadOnly)
		lists_files = true;

	/*
	 * before the function runs, so before the backup's checkpoint, or the
	 * list
	 */
	if ((object_id == F_PG_BACKUP_START || lists_files) && !noted)
	{
		if (!exit_registered)
		{
			before_shmem_exit(at_exit, (Datum) 0);
			RegisterXactCallback(xact_callback, NULL);
			exit_registered = true;
		}
		note(true);
	}
}

void
MotBackupInit(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
}

/* ------------------------------------------------------------------ worker */

static void
see(int pid, XLogRecPtr newest)
{
	Backup	   *new;

	foreach_ptr(Backup, backup, backups)
	{
		if (backup->pid == pid)
		{
			backup->seen = true;
			return;
		}
	}
	new = MemoryContextAlloc(TopMemoryContext, sizeof(Backup));
	new->pid = pid;
	new->keep_from = newest;
	new->seen = true;
	MotWithin(TopMemoryContext, backups = lappend(backups, new));
}

XLogRecPtr
MotBackupKeepFrom(XLogRecPtr newest)
{
	XLogRecPtr	keep_from = PG_UINT64_MAX;
	ListCell   *lc;
	int			n;

	foreach_ptr(Backup, backup, backups)
		backup->seen = false;

	pgstat_clear_backend_activity_snapshot();
	n = pgstat_fetch_stat_numbackends();
	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *local = MotLocalBackend(i);

		if (local != NULL && local->backendStatus.st_progress_command == PROGRESS_COMMAND_BASEBACKUP)
			see(local->backendStatus.st_procpid, newest);
	}
	pgstat_clear_backend_activity_snapshot();
	for (uint32 i = 0; i < pg_atomic_read_u32(&shared->used); i++)
	{
		uint32		pid = pg_atomic_read_u32(&shared->pid[i]);

		if (pid != 0)
			see((int) pid, newest);
	}

	foreach(lc, backups)
	{
		Backup	   *backup = lfirst(lc);

		if (!backup->seen)
		{
			pfree(backup);
			backups = foreach_delete_current(backups, lc);
		}
		else
			keep_from = Min(keep_from, backup->keep_from);
	}
	return keep_from;
}
