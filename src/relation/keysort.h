/*-------------------------------------------------------------------------
 *
 * keysort.h
 *	  Index entries of rows that are there already, put in order, and the index
 *	  made of them.
 *
 * Entries are kept in private memory up to maintenance_work_mem, and in temporary
 * files beyond.  Needs neither transaction nor catalogue.  An error anywhere leaves
 * nothing behind but memory, which goes with the context current at the call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYSORT_H
#define MOT_KEYSORT_H

#include "relation/keycodec.h"

/*
 * An index of the rows that "rows" comes to, with keys as "key" has them.  key_of appends a row's
 * key, and says what flags of mot_load_key it has; the memory it leaves behind goes. Returns
 * MOT_TOO_LARGE, what mot_fill_add and the others return (MOT_DUPLICATE: *other and *another have
 * the same key), or MOT_NOT_FOUND if "look", which is called now and then to look for interrupts,
 * returns true, and so stops it.
 */
typedef unsigned (*MotKeyOfVersion) (void *arg, const mot_version *version, MotKeyBuffer *key);
extern mot_status MotKeySortRows(mot_build *rows, mot_index *index, bool full,
								 const MotKey *key, MotKeyOfVersion key_of, void *key_arg,
								 bool (*look) (void *arg), void *arg,
								 mot_row **other, mot_row **another);

/* a "look" for those who may raise an error at an interrupt */
extern bool MotKeySortInterrupts(void *arg);

#endif							/* MOT_KEYSORT_H */
