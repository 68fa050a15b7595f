/*-------------------------------------------------------------------------
 *
 * keysort.h
 *	  Index entries of rows that are there already, put in order, and the index
 *	  made of them.
 *
 * Begin, Add for each row (in any order), Build, End.  Entries are kept in
 * private memory up to "work_mem" kilobytes, and in temporary files beyond.
 * Needs neither transaction nor catalogue.  An error anywhere leaves nothing
 * behind but the sort's memory, which goes with the context current at Begin.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_KEYSORT_H
#define MOT_KEYSORT_H

#include "mot.h"

typedef struct MotKeySort MotKeySort;

extern MotKeySort *MotKeySortBegin(mot_session *session, mot_index *index, int work_mem);

/* flags as of mot_load_key; MOT_TOO_LARGE */
extern mot_status MotKeySortAdd(MotKeySort *sort, mot_row *row, const void *key, size_t len,
								unsigned flags);

/*
 * What mot_fill_add and the others return; MOT_DUPLICATE: *other and
 * *another have the same key.  "look" is called now and then, to look for
 * interrupts; if it returns true the build stops and returns MOT_NOT_FOUND.
 */
extern mot_status MotKeySortBuild(MotKeySort *sort, bool full, bool (*look) (void *arg), void *arg,
								  mot_row **other, mot_row **another);
extern void MotKeySortEnd(MotKeySort *sort);

/* a "look" for those who may raise an error at an interrupt */
extern bool MotKeySortInterrupts(void *arg);

#endif							/* MOT_KEYSORT_H */
