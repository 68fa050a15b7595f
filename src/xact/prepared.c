/*-------------------------------------------------------------------------
 *
 * prepared.c
 *	  Transactions that PREPARE TRANSACTION has ended for their session.
 *
 * The server keeps such a transaction by its xid, and its locks by a PGPROC without a
 * process.  Its half in the engine is kept here: a holder for each, in shared memory,
 * with a slot of the engine's own behind those of processes, to which the
 * transaction's rows belong from then on, and the journal in a parcel
 * (engine/parcel.c).  What it has changed is in the log already, with its xid, as of
 * every transaction over both kinds of tables: whether it is prepared, committed or
 * aborted is the server's to say, and nobody else's.
 *
 *	PRE_PREPARE		rows are locked, the transaction's redo goes to the log, a holder is
 *					claimed, the journal packed.  All that can fail or wait
 *	(the server)	writes its record: it is prepared, as far as others and a crash are
 *					concerned.  Nobody can end it before this session has let go of it
 *	PREPARE			rows get their new owner; the vxid goes, so who waited for it tries
 *					again, and waits for the xid, whose lock the server keeps
 *	COMMIT PREPARED	by any session.  We hear of it as a utility statement: the holder is
 *					claimed and unpacked; the server commits; the rows are
 *					installed.  What became of it is asked of the commit log,
 *					whatever the statement has come to
 *
 * A subscription's worker (two_phase) does without statements: nobody tells us the identifier, nor that
 * the server has ended the transaction.  So a holder is an announcement that lasts: who takes
 * a snapshot that sees its xid, or has waited for its rows, settles it first, be it that
 * nobody is at it; otherwise he waits for that.  The worker itself does so with the end of its
 * own transaction, in which it has ended that one, and the maintenance worker when all these had
 * no occasion.  The same goes for one that the server has ended past us in another way (an identifier used
 * again in the same moment).
 *
 * A holder's number is of no interest to the server: statements have the identifier by
 * which we find the holder, which is in the redo, too.
 *
 * After a restart there is what checkpoint and log say of those whose fate is not
 * known, and the server knows which of them are prepared.  Before anybody can
 * change a row their changes are made once more, in the holder's slot, and so they
 * have their locks again (wal/prepared.c).  Until then a commit is applied as on a
 * standby.
 *
 * At SERIALIZABLE what it has read stays as it is from PRE_PREPARE on (engine/kept.c), and
 * its place is that of its end (serial.c).
 *
 * Storage that it has made, emptied or dropped comes with a parcel, too
 * (relation/handover.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "compat/compat.h"
#include "faults.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
#include "xact/internal.h"

typedef enum HolderState
{
	HOLDER_FREE,
	HOLDER_MADE,				/* by a session that prepares, or restored */
	HOLDER_KEEPS,
	HOLDER_ENDS					/* some session is at it */
} HolderState;

/* all under the lock, but who has claimed one has it for itself */
typedef struct Holder
{
	HolderState state;
	pg_atomic_uint32 xid;		/* may be looked at without; 0: none */
	mot_parcel *parcel;
	void	   *redo;			/* the log's */
	void	   *storage;		/* the participant's; NULL: none has changed */
	bool		keeps;			/* what it has read, at SERIALIZABLE */
	char		gid[GIDSIZE];
} Holder;

typedef struct Shared
{
	pg_atomic_uint32 used;		/* holders that are not free; MotPreparedUsed */
	pg_atomic_uint32 keeping;	/* ... and keep what was read */
	Holder		holder[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;
static LWLock *lock = NULL;
pg_atomic_uint32 *MotPreparedUsed = NULL;

/* PREPARE TRANSACTION has been said, with this identifier */
static char prepare_gid[GIDSIZE];
static bool prepares = false;
static bool prepare_had_xid;
static CommandId prepare_command;

/* what this session has claimed, from PRE_PREPARE to PREPARE, or while it restores one */
static Holder *mine = NULL;
static mot_session *mine_session = NULL;

/* ... and what it is about to end */
static Holder *ending = NULL;
static mot_session *ending_session = NULL;
static bool exit_registered = false;

/* how long one waits for a holder whose transaction has ended, or may not come to be prepared */
#define HOLDER_PATIENCE_MS 1000

static bool settle_decided(void);
static void settle_ending(void);
static void settle_at_exit(int code, Datum arg);

static void
init_holders(void)
{
	MotPreparedUsed = &shared->used;
	lock = &(GetNamedLWLockTranche("mot_prepared"))->lock;
}

MotShmem	MotPreparedShmem = {"mot prepared transactions", (void **) &shared, 0, 0, init_holders};

void
MotPreparedShmemRequest(void)
{
	RequestNamedLWLockTranche("mot_prepared", 1);
	MotPreparedShmem.size = add_size(offsetof(Shared, holder), mul_size(max_prepared_xacts, sizeof(Holder)));
}

/* ------------------------------------------------------------------ holders */

static mot_session *
open_slot(const Holder *holder)
{
	mot_session *session;

	if (mot_session_open(MotEngineRequired(), MotProcessSlots() + (unsigned) (holder - shared->holder),
						 &session) != MOT_OK)
		MotRaiseStatus(MOT_NO_PRIVATE_MEMORY, NULL);
	return session;
}

static void
set_state(Holder *holder, HolderState state)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	holder->state = state;
	LWLockRelease(lock);
}

static void
release(Holder *holder)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	holder->state = HOLDER_FREE;
	holder->parcel = NULL;
	holder->redo = NULL;
	holder->storage = NULL;
	holder->gid[0] = '\0';
	pg_atomic_write_u32(&holder->xid, InvalidTransactionId);
	LWLockRelease(lock);
	pg_atomic_fetch_sub_u32(&shared->used, 1);
}

/* Others who ask are told so from now on. */
static void
keep(Holder *holder)
{
	holder->keeps = true;
	/* a full barrier: see serial.c */
	pg_atomic_fetch_add_u32(&shared->keeping, 1);
}

/* Its transaction has ended; number: it has committed with that. */
static void
let_go(Holder *holder, mot_session *session, mot_ts number)
{
	if (!holder->keeps)
		return;
	mot_reads_let_go(session, number);
	holder->keeps = false;
	pg_atomic_fetch_sub_u32(&shared->keeping, 1);
}

bool
MotPreparedAnyKeeps(void)
{
	return shared != NULL && max_prepared_xacts > 0 && pg_atomic_read_u32(&shared->keeping) != 0;
}

/* of before a restart: nobody knows yet what they keep */
bool
MotPreparedAnyUnrestored(void)
{
	return shared != NULL && max_prepared_xacts > 0 && MotTheLog->unrestored();
}

/* without a statement, and so by a subscription's worker? */
bool
MotPreparedUnsaid(TransactionId xid)
{
	bool		unsaid = false;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < max_prepared_xacts && !unsaid; i++)
		unsaid = pg_atomic_read_u32(&shared->holder[i].xid) == xid && shared->holder[i].gid[0] == '\0';
	LWLockRelease(lock);
	return unsaid;
}

bool
MotPreparedKeeps(TransactionId xid)
{
	if (!MotPreparedAnyKeeps())
		return false;
	for (int i = 0; i < max_prepared_xacts; i++)
		if (pg_atomic_read_u32(&shared->holder[i].xid) == xid && shared->holder[i].keeps)
			return true;
	return false;
}

/* *passing: some holders are about to be free, or may be */
static Holder *
take_free(const char *gid, TransactionId xid, bool *passing)
{
	Holder	   *found = NULL;

	*passing = false;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < max_prepared_xacts && found == NULL; i++)
	{
		Holder	   *holder = &shared->holder[i];

		*passing |= holder->state != HOLDER_KEEPS;
		if (holder->state == HOLDER_FREE)
			found = holder;
	}
	if (found != NULL)
	{
		found->state = HOLDER_MADE;
		strlcpy(found->gid, gid, GIDSIZE);
		pg_atomic_write_u32(&found->xid, xid);
		pg_atomic_fetch_add_u32(&shared->used, 1);
	}
	LWLockRelease(lock);
	return found;
}

/*
 * As many as the server has; but one that it has done with may be ours still, for a moment, or longer if nobody has
 * told us.  (Who restores one holds what settling takes, and those before a restart have had room.)
 */
static Holder *
take_holder(const char *gid, TransactionId xid, bool settles)
{
	TimestampTz began = GetCurrentTimestamp();

	for (;;)
	{
		bool		passing;
		Holder	   *holder = take_free(gid, xid, &passing);

		if (holder != NULL)
			return holder;
		if (settles && settle_decided())
			continue;
		if (!passing || TimestampDifferenceExceeds(began, GetCurrentTimestamp(), HOLDER_PATIENCE_MS))
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("maximum number of prepared transactions reached"),
					 errhint("Increase max_prepared_transactions (currently %d).", max_prepared_xacts)));
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
}

/* (an empty identifier may be one that we have not been told) */
static bool
has_name(const Holder *holder, const char *gid)
{
	return strcmp(holder->gid, gid) == 0 && (gid[0] != '\0' || holder->keeps);
}

/*
 * One that keeps its transaction, to end it: by its identifier, or (NULL) its xid.  *other: there is
 * none, but another session has one with that identifier in hand, of this xid.
 */
static Holder *
claim(const char *gid, TransactionId xid, TransactionId *other)
{
	Holder	   *found = NULL;

	*other = InvalidTransactionId;
	if (pg_atomic_read_u32(&shared->used) == 0)
		return NULL;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < max_prepared_xacts && found == NULL; i++)
	{
		Holder	   *holder = &shared->holder[i];

		if (holder->state == HOLDER_FREE ||
			(gid != NULL ? !has_name(holder, gid) : pg_atomic_read_u32(&holder->xid) != xid))
			continue;
		if (holder->state == HOLDER_KEEPS)
			found = holder;
		else
			*other = pg_atomic_read_u32(&holder->xid);
	}
	if (found != NULL)
		found->state = HOLDER_ENDS;
	LWLockRelease(lock);
	return found;
}

/*
 * By its identifier, for a statement.  As the server says it of one that another session is at; but one that the
 * server has done with is about to be gone.
 */
static Holder *
claim_named(const char *gid)
{
	unsigned	spins = 0;

	for (;;)
	{
		TransactionId other;
		Holder	   *holder = claim(gid, InvalidTransactionId, &other);

		if (holder != NULL || !TransactionIdIsValid(other))
			return holder;
		if (TransactionIdIsInProgress(other))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("prepared transaction with identifier \"%s\" is busy", gid)));
		CHECK_FOR_INTERRUPTS();
		MotBackoff(&spins);
	}
}

/* -------------------------------------------------------------- the session */

/* A PREPARE TRANSACTION has been said; it goes on when the transaction ends. */
void
MotPreparedSaid(const char *gid)
{
	strlcpy(prepare_gid, gid, GIDSIZE);
	prepares = true;
	prepare_had_xid = TransactionIdIsValid(GetTopTransactionIdIfAny());
	prepare_command = GetCurrentCommandId(false);
}

/*
 * Has the transaction, perhaps, changed anything of the server's?  It has a number in any case,
 * which the server gives it before it asks us; before that deferred triggers have run.
 */
bool
MotPreparedChangesHeap(void)
{
	return !prepares || prepare_had_xid || GetCurrentCommandId(false) != prepare_command;
}

bool
MotPreparedIsSaid(void)
{
	return prepares;
}

/* In PRE_PREPARE, rows locked: all that may fail.  keeps: at SERIALIZABLE, what it has read has to stand. */
void
MotPreparedBegin(mot_session *session, bool keeps)
{
	TransactionId xid = GetTopTransactionId();

	mine = take_holder(prepares ? prepare_gid : "", xid, true);
	mine_session = open_slot(mine);
	if (keeps)
	{
		keep(mine);
		MotRaiseStatus(mot_txn_keep_reads(session, mine_session, MotHolderOfXid(xid)), NULL);
		MotSerialCheck(true);
		MOT_FAULT("prepare-kept");
	}
	MotRaiseStatus(mot_txn_pack(session, mine_session, &mine->parcel), NULL);
	MOT_FAULT("prepare-packed");
	mine->redo = MotTheLog->keep(session, prepare_gid, keeps);
	MOT_FAULT("prepare-logged");
	mine->storage = MotTheParticipant->pack();
}

/* In PREPARE, if there was a Begin: the server has prepared it. */
bool
MotPreparedDone(mot_session *session)
{
	if (mine == NULL)
		return false;
	MOT_FAULT("prepare-decided");
	mot_txn_hand_over(session, mine_session, mine->parcel, MotHolderOfXid(pg_atomic_read_u32(&mine->xid)));
	MOT_FAULT("prepare-handed");
	MotTheLog->kept(mine->redo);
	/* the slot is the next one's from then on */
	mot_session_close(mine_session);
	set_state(mine, HOLDER_KEEPS);
	mine = NULL;
	mine_session = NULL;
	MOT_FAULT("prepare-done");
	return true;
}

/* At the end of each transaction: what was claimed and did not come to anything. */
void
MotPreparedEnd(void)
{
	prepares = false;
	if (likely(mine == NULL))
		return;
	if (mine->redo != NULL)
		MotTheLog->drop(mine->redo);
	MotTheParticipant->discard(mine->storage);
	if (mine->parcel != NULL)
		mot_parcel_discard(mine_session, mine->parcel);
	let_go(mine, mine_session, 0);
	if (mine_session != NULL)
		mot_session_close(mine_session);
	release(mine);
	mine = NULL;
	mine_session = NULL;
}

/* -------------------------------------------------------------------- ends */

/*
 * The statement has done what it did.  Nothing of this may be interrupted, or fail: a
 * transaction that is committed has to become visible.
 */
static void
settle(Holder *holder, mot_session *session)
{
	TransactionId xid = pg_atomic_read_u32(&holder->xid);
	bool		committed;
	mot_ts		ts = 0;

	HOLD_INTERRUPTS();
	if (TransactionIdIsInProgress(xid))
	{
		/* (no such right, another database ...) */
		mot_txn_forget(session);
		mot_session_close(session);
		set_state(holder, HOLDER_KEEPS);
		RESUME_INTERRUPTS();
		return;
	}
	MOT_FAULT("prepared-decided");

	/*
	 * Who cannot read the commit log here leaves everybody without an answer,
	 * and a checkpoint waiting for it: recovery has one.
	 */
	START_CRIT_SECTION();
	committed = TransactionIdDidCommit(xid);
	END_CRIT_SECTION();
	MotTheLog->finish();
	if (committed)
	{
		MotMixedApplyBegin(xid);
		ts = mot_txn_commit(session);
		if (ts == 0 && holder->keeps)
			ts = mot_commit_draw(session);
		MotMixedDone(ts);
		MOT_FAULT("prepared-installed");
	}
	else
	{
		/* (as in finish_abort) */
		mot_txn_keys_derive(session, holder->storage == NULL);
		mot_txn_abort(session);
		MOT_FAULT("prepared-undone");
	}
	MotTheParticipant->end(holder->storage, committed);
	let_go(holder, session, ts);
	MotTheLog->finished(holder->redo);
	mot_parcel_free(session, holder->parcel);
	mot_session_close(session);
	release(holder);
	RESUME_INTERRUPTS();
	MOT_FAULT("prepared-over");
}

/* A claimed holder's transaction in its slot; what fails lets go of the holder. */
static mot_session *
unpack(Holder *holder)
{
	mot_session *session = NULL;
	mot_status	status;

	PG_TRY();
	{
		/* settle needs our own, and must not fail */
		(void) MotSession();
		session = open_slot(holder);
		status = mot_txn_unpack(session, holder->parcel);
		if (status != MOT_OK)
		{
			mot_session_close(session);
			MotRaiseStatus(status, NULL);
		}
	}
	PG_CATCH();
	{
		set_state(holder, HOLDER_KEEPS);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return session;
}

/* If its fate has been decided, and nobody is at it.  (Whoever commits has his own place in mixed.c.) */
static bool
settle_if_decided(TransactionId xid)
{
	TransactionId other;
	Holder	   *holder;

	if (TransactionIdIsInProgress(xid) || MotMixedAnnounced())
		return false;
	holder = claim(NULL, xid, &other);
	if (holder == NULL)
		return false;
	settle(holder, unpack(holder));
	return true;
}

static bool
settle_decided(void)
{
	bool		any = false;

	for (int i = 0; i < max_prepared_xacts; i++)
	{
		TransactionId xid = pg_atomic_read_u32(&shared->holder[i].xid);

		if (TransactionIdIsValid(xid))
			any |= settle_if_decided(xid);
	}
	return any;
}

/*
 * What "snapshot" sees of them, or (NULL) what has ended by now, has been installed when this returns; storage: of
 * those only that came with some.
 */
void
MotPreparedCatchUp(Snapshot snapshot, bool storage)
{
	for (int i = 0; i < max_prepared_xacts; i++)
	{
		Holder	   *holder = &shared->holder[i];
		TransactionId xid = pg_atomic_read_u32(&holder->xid);
		unsigned	spins = 0;

		/* (our own is not in our snapshots' lists) */
		if (!TransactionIdIsValid(xid) || holder == mine ||
			(snapshot != NULL ? XidInMVCCSnapshot(xid, snapshot) : TransactionIdIsInProgress(xid)))
			continue;
		/* of one that has ended that is what it was prepared with */
		if (storage && holder->storage == NULL)
			continue;
		MOT_FAULT("prepared-seen");
		while (pg_atomic_read_u32(&holder->xid) == xid && !settle_if_decided(xid))
		{
			CHECK_FOR_INTERRUPTS();
			MotBackoff(&spins);
		}
	}
	/* the engine's clock is read after this */
	pg_read_barrier();
}

/* For those who have no snapshot, and whom nobody waits for. */
void
MotPreparedServe(void)
{
	if (MotPreparedUsed != NULL && pg_atomic_read_u32(MotPreparedUsed) != 0)
		(void) settle_decided();
}

/* For whoever has a table to himself: the server has let go of the transaction's locks already. */
void
MotPreparedAwaitEnded(bool storage)
{
	if (MotPreparedUsed != NULL && unlikely(pg_atomic_read_u32(MotPreparedUsed) != 0))
		MotPreparedCatchUp(NULL, storage);
}

/* COMMIT PREPARED, ROLLBACK PREPARED: run does it. */
void
MotPreparedFinish(const char *gid, bool commit, void (*run) (void *arg), void *arg)
{
	Holder	   *holder;
	bool		unrestored;

	if (MotEngine == NULL || max_prepared_xacts == 0 || RecoveryInProgress())
	{
		run(arg);
		return;
	}
	/* those of before a restart may have to be restored first */
	unrestored = MotTheLog->restore(gid, commit);
	holder = claim_named(gid);
	if (holder == NULL)
	{
		run(arg);
		/* somebody may just have found that it has to be */
		if (unrestored)
			MotTheLog->await();
		if (pg_atomic_read_u32(&shared->used) != 0)
			(void) settle_decided();
		return;
	}
	if (!exit_registered)
	{
		before_shmem_exit(settle_at_exit, (Datum) 0);
		exit_registered = true;
	}
	ending_session = unpack(holder);
	ending = holder;
	PG_TRY();
	{
		/* (until this transaction ends, which is after theirs) */
		if (commit && holder->keeps)
			MotSerialEnter();
		HOLD_INTERRUPTS();
		MOT_FAULT("prepared-claimed");
		run(arg);
	}
	PG_CATCH();
	{
		/* it may have happened after the commit */
		MotCleansUp = true;
		settle_ending();
		MotCleansUp = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	settle_ending();
	RESUME_INTERRUPTS();
}

static void
settle_ending(void)
{
	Holder	   *holder = ending;

	ending = NULL;
	settle(holder, ending_session);
}

/* The process ends amid that (a FATAL error), before its own transaction is aborted. */
static void
settle_at_exit(int code, Datum arg)
{
	if (ending != NULL)
		settle_ending();
}

/* For who has found a row of its: wait until it has ended, and what it did is decided in the engine, too. */
void
MotPreparedWait(TransactionId xid)
{
	unsigned	spins = 0;

	XactLockTableWait(xid, NULL, NULL, XLTW_None);
	for (;;)
	{
		bool		there = false;

		for (int i = 0; i < max_prepared_xacts && !there; i++)
			there = pg_atomic_read_u32(&shared->holder[i].xid) == xid;
		if (!there)
			return;
		if (settle_decided())
			continue;
		CHECK_FOR_INTERRUPTS();
		MotBackoff(&spins);
	}
}

/* ----------------------------------------------------------------- restored */

/* Returns the session in which its changes are made once more. */
mot_session *
MotPreparedRestore(TransactionId xid, const char *gid)
{
	mine = take_holder(gid, xid, false);
	mine_session = open_slot(mine);
	return mine_session;
}

/* They have been: redo is the log's, storage the participant's. */
void
MotPreparedRestored(void *redo, bool keeps_reads, void *storage)
{
	mine->storage = storage;
	MotRaiseStatus(mot_txn_pack(mine_session, mine_session, &mine->parcel), NULL);
	mot_txn_hand_over(mine_session, mine_session, mine->parcel,
					  MotHolderOfXid(pg_atomic_read_u32(&mine->xid)));
	mine->redo = redo;
	if (keeps_reads)
	{
		keep(mine);
		mot_reads_keep_all(mine_session, MotHolderOfXid(pg_atomic_read_u32(&mine->xid)));
	}
	mot_session_close(mine_session);
	set_state(mine, HOLDER_KEEPS);
	mine = NULL;
	mine_session = NULL;
}

/* They could not be: they are undone. */
void
MotPreparedNotRestored(void)
{
	if (mine == NULL)
		return;
	/* by an error, perhaps */
	MotCleansUp = true;
	if (mine_session != NULL)
		mot_session_close(mine_session);
	MotTheParticipant->end(mine->storage, false);
	MotCleansUp = false;
	release(mine);
	mine = NULL;
	mine_session = NULL;
}
