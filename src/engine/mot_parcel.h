/*-------------------------------------------------------------------------
 *
 * mot_parcel.h
 *	  The part of mot_engine.h for a host whose transactions may wait for their end
 *	  without their session (two-phase commit).
 *
 * Not those of SERIALIZABLE, and after mot_txn_prepare.  A transaction goes to a slot of its
 * own, "holder" being a session opened there, which may be closed meanwhile
 * without ending it.
 *
 *	pack		copies into the region what the session knows of it; may fail for
 *				want of memory.  discard: it is not handed over after all
 *	hand_over	it is the holder's from now on, under this name, and none of the
 *				session's
 *	unpack		by a holder's session opened anew: mot_txn_commit or mot_txn_abort follows, or
 *				put_back.  May fail for want of private memory
 *	free		after its end
 *
 * A transaction that has run in the holder's session is packed and handed over by
 * naming that twice.
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
extern void mot_txn_put_back(mot_session *holder);
extern void mot_parcel_free(mot_session *session, mot_parcel *parcel);

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

#endif							/* MOT_PARCEL_H */
