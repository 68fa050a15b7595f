/*-------------------------------------------------------------------------
 *
 * session.c
 *	  This process's session with the engine.
 *
 * The session's slot is the process's number in the server's process array:
 * as long as a process has its PGPROC nobody else has that number.  So the
 * session has to be left before the PGPROC is, and after everything that a
 * dying backend still does in its transaction: its abort runs from a
 * before_shmem_exit callback, the PGPROC goes in the first registered, hence
 * last called on_shmem_exit callback, and ours lies between.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "compat/fence.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "xact/held.h"
#include "xact/internal.h"

mot_session *MotOpenSession = NULL;

static bool exit_registered = false;

static void
close_session(int code, Datum arg)
{
	mot_session *session = MotOpenSession;

	MotOpenSession = NULL;
	/* a wait that the process's end has ended */
	MotCircleLeave();
	if (session == NULL)
		return;
	mot_session_close(session);
	MotOwedTell();
}

mot_session *
MotSessionOpen(void)
{
	mot_engine *engine = MotEngineRequired();
	mot_session *session;

	if (MyProc == NULL)
		elog(ERROR, "a process without a PGPROC cannot use memory-optimized tables");

	/* once; the callback does nothing while there is no session */
	if (!exit_registered)
	{
		on_shmem_exit(close_session, (Datum) 0);
		exit_registered = true;
	}

	if (mot_session_open(engine, MotMySlot(), &session) != MOT_OK)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Could not open a session with the engine of memory-optimized tables.")));
	if (MotFenceJoin())
		mot_session_may_rest(session);
	MotHeldOpened(MotMySlot());
	MotOpenSession = session;
	return session;
}
