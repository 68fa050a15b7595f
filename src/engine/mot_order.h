/*-------------------------------------------------------------------------
 *
 * mot_order.h
 *	  The part of mot_engine.h for a host whose keys have an order that their bytes
 *	  have not, or may come not to have: sort keys of strings, and enums (order.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ORDER_H
#define MOT_ORDER_H

/*
 * Have two keys been found not to be in order?  Then that remains so.  Asked after the
 * snapshot was taken, it is known of all that the snapshot sees.  A bound is compared
 * in the same way: false is returned if it, or any key, is not in order (order.c).
 */
extern bool mot_index_disordered(const mot_index *index);
extern void mot_index_set_disordered(mot_index *index);
extern bool mot_index_bound_in_order(mot_session *session, const mot_index_handle *handle,
									 const void *key, size_t len);

/*
 * Has a key been added with MOT_KEY_ODD?  Of all that a snapshot sees it is known, asked after that
 * was taken.  If the first one comes later, a SERIALIZABLE transaction that has looked at ranges is
 * judged by all of the index: the key may belong to them.
 */
extern bool mot_index_has_odd(const mot_index *index);

#endif							/* MOT_ORDER_H */
