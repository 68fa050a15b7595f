/*-------------------------------------------------------------------------
 *
 * mot_parcel.h
 *	  The part of mot_engine.h for a host whose transactions may wait for their end
 *	  without their session (two-phase commit).
 *
 * After mot_txn_prepare, or keep_reads.  A transaction goes to a slot of its
 * own, "holder" being a session opened there, which may be closed meanwhile
 * without ending it.
 *
 *	pack		copies into the region what the session knows of it; may fail for
 *				want of memory.  discard: it is not handed over after all
 *	hand_over	it is the holder's from now on, under this name, and none of the
 *				session's
 *	unpack		by a holder's session opened anew: mot_txn_commit or mot_txn_abort follows, or
 *				forget.  May fail for want of private memory
 *	free		after its end
 *
 * SERIALIZABLE, if it has changed anything, here or elsewhere:
 *
 *	keep_reads	instead of mot_txn_prepare, rows locked: what it has read stands now, and
 *				nobody who is validated changes it until it is let go, however
 *				this turns out
 *	keep_all	the same in a holder's session, of everything that there is
 *	let_go		after its end: with the number that it was committed with, or 0
 *	meets_kept	whom would a transaction's changes come upon?  His name, or 0.  Before
 *				it draws the host waits for him, or it is going to fail
 *
 * A transaction that has run in the holder's session is packed and handed over by
 * naming that twice.
 *
 * And for one whose snapshots come from another server's log, or outlive a promotion: what is kept
 * for those to come (mot_engine_keep), and what only those before see (behind.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PARCEL_H
#define MOT_PARCEL_H

typedef struct mot_parcel mot_parcel;

extern mot_status mot_txn_pack(mot_session *session, mot_session *holder, mot_parcel **parcel);
extern void mot_parcel_discard(mot_session *holder, mot_parcel *parcel);
extern void mot_txn_hand_over(mot_session *session, mot_session *holder, mot_parcel *parcel,
							  uint64_t host_id);
extern mot_status mot_txn_unpack(mot_session *holder, mot_parcel *parcel);
extern void mot_txn_forget(mot_session *holder);
extern void mot_parcel_free(mot_session *session, mot_parcel *parcel);

extern mot_status mot_txn_keep_reads(mot_session *session, mot_session *holder, uint64_t host_id);
extern void mot_reads_keep_all(mot_session *holder, uint64_t host_id);
extern void mot_reads_let_go(mot_session *holder, mot_ts number);
extern uint64_t mot_txn_meets_kept(mot_session *session);

/*
 * The locks of a prepared transaction that its changes do not imply, for the host's log:
 * rows that were only locked, or changed but locked more strongly than for CHANGE.
 * version: the newest that is committed.  pos starts at 0.
 */
typedef struct mot_lock
{
	mot_table  *table;
	mot_row    *row;
	const mot_version *version;
	mot_row_mode mode;
} mot_lock;

extern bool mot_txn_next_lock(mot_session *session, uint64_t *pos, mot_lock *lock);

/*
 * What snapshots from this one on need is kept for sessions that will lower theirs to it, or
 * MOT_TS_NONE. By somebody whose own is not newer; or it is the clock of now, and what is kept is
 * what commits supersede that draw their numbers later.  The host sees to it that one does so at a
 * time.
 */
extern void mot_engine_keep(mot_engine *engine, mot_ts oldest);
extern mot_ts mot_engine_kept(const mot_engine *engine);

/* what has been superseded up to now; and is that out of all indexes?  See behind.c */
extern void mot_engine_leave_behind(mot_engine *engine);
extern bool mot_engine_left_behind(mot_session *session);

#endif							/* MOT_PARCEL_H */
