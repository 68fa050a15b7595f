/*-------------------------------------------------------------------------
 *
 * pending.h
 *	  Between storage.c and handover.c: what has to be done to storage when a
 *	  transaction ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_RELATION_PENDING_H
#define MOT_RELATION_PENDING_H

#include "relation/internal.h"

typedef enum PendingKind
{
	TABLE_CREATED,				/* abort: goes */
	TABLE_DROPPED,				/* commit: goes */
	TABLE_REPLACED,				/* commit: old goes; abort: old comes back,
								 * new goes */
	INDEX_CREATED,				/* abort: goes */
	INDEX_CAUGHT_UP,			/* abort: it is behind again */
	INDEX_DROPPED,				/* detached; commit: goes; abort: comes back */
	INDEX_LEFT_OUT,				/* dropped, of a table that is not in memory */
	TABLE_DEFINED,				/* its definition in the catalogue has changed */
	DATABASE_DROPPED			/* commit: all its tables go */
} PendingKind;

typedef struct Pending
{
	PendingKind kind;
	Oid			dbid;
	Oid			relid;			/* the storage's number, MotStorageNumber */
	Oid			tablespace;		/* of an ordinary table's */
	bool		fresh;			/* of TABLE_CREATED: so is its definition */
	mot_table  *table;			/* the new one of TABLE_REPLACED; NULL: there
								 * was none to be dropped */
	mot_table  *old_table;
	mot_index  *index;
	bool		built;			/* of both: from rows */
	bool		rewritten;		/* of the first and third: its rows were
								 * loaded */
	bool		refuse_older;
	mot_table  *copied;			/* ... from it, which is no read of it */
	bool		turned;			/* of TABLE_DEFINED: into an ordinary table */
	int			ntables;		/* of DATABASE_DROPPED */
	mot_table **tables;
	int			level;			/* transaction nesting level */
	struct Pending *older;
} Pending;

/* made for the commit, in TopTransactionContext */
typedef struct Defined
{
	mot_table  *table;
	mot_definition *definition; /* NULL: as it is */
	Oid			owner;
	mot_quota  *role;			/* in which it is to count; NULL: as it does */
	struct Defined *next;
} Defined;

/* storage.c, under MotDirectoryLock; nothing of it can fail.  Undone from the youngest on. */
extern void MotPendingCommit(mot_session *session, Pending *list, Defined *definitions);
extern void MotPendingUndo(Pending *p);
extern void MotPendingPublish(Pending *p);
extern bool MotPendingShared(const Pending *p);
extern void MotDefinedDiscard(mot_session *session, const Defined *list);

/* handover.c: of a prepared transaction, in the region */
extern bool MotPendingPortable(const Pending *list);
extern void *MotPendingPack(const Pending *list, const Defined *definitions);
extern void MotPendingEnd(void *parcel, bool committed);

#endif							/* MOT_RELATION_PENDING_H */
