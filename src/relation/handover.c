/*-------------------------------------------------------------------------
 *
 * handover.c
 *	  Storage of prepared transactions, which others end.
 *
 * Tables and indexes are in the region, at one address for all; only the list of what
 * has to be done to them at the end is the process's own (storage.c).  So PREPARE
 * TRANSACTION copies it to the region, and whoever ends the transaction goes by the copy.
 * Until then what is new stays unsettled, as while its transaction ran, and the locks of
 * the server's prepared transaction keep everybody away from it.  Those go when the server
 * has ended it, some instructions before this is done: who finds unsettled storage, or is
 * about to change some, waits for that (MotPreparedAwaitEnded).
 *
 * After a restart replay makes anew what is to be new, and a list like it
 * (MotStorageRestore).
 *
 * Only of tables that come or go as a whole: of an index or a definition that is made for
 * rows that stay, there would be two until the end, for all that come to the table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "relation/pending.h"
#include "relation/relation.h"
#include "xact/xact.h"

typedef struct Parcel
{
	Pending    *pending;		/* youngest first */
	Defined    *defined;
} Parcel;

void		(*MotRelationHealed) (Oid dbid, Oid relid) = NULL;

/* Does the table come or go as a whole? */
static bool
is_whole(const Pending *list, Oid relid)
{
	for (const Pending *p = list; p != NULL; p = p->older)
		if (p->relid == relid &&
			(p->kind == TABLE_CREATED || p->kind == TABLE_REPLACED || p->kind == TABLE_DROPPED))
			return true;
	return false;
}

bool
MotPendingPortable(const Pending *list)
{
	for (const Pending *p = list; p != NULL; p = p->older)
	{
		if (p->dbid != MyDatabaseId)
			return false;
		switch (p->kind)
		{
			case TABLE_CREATED:
			case TABLE_REPLACED:
				/* rows that are not the transaction's own */
				if (p->rewritten)
					return false;
				break;
			case TABLE_DROPPED:
				/* it is not in memory */
				if (p->table == NULL)
					return false;
				break;
			case INDEX_CREATED:
			case INDEX_DROPPED:
			case TABLE_DEFINED:
				if (p->turned || !is_whole(list, p->relid) || MotPendingShared(p))
					return false;
				break;
			case INDEX_CAUGHT_UP:
			case INDEX_LEFT_OUT:
			case DATABASE_DROPPED:
				return false;
		}
	}
	return true;
}

/* ----------------------------------------------------------------- parcels */

/* NULL: there is no room */
static Parcel *
new_parcel(mot_session *session)
{
	mot_status	status;
	Parcel	   *parcel = mot_host_alloc(session, sizeof(Parcel), true, &status);

	if (parcel != NULL)
		memset(parcel, 0, sizeof(Parcel));
	return parcel;
}

static void *
copy_of(mot_session *session, const void *from, size_t size, mot_status *status)
{
	void	   *copy = mot_host_alloc(session, size, true, status);

	return copy != NULL ? memcpy(copy, from, size) : NULL;
}

void *
MotPendingPack(const Pending *list, const Defined *definitions)
{
	mot_session *session = MotSession();
	mot_status	status = MOT_NO_MEMORY;
	Parcel	   *parcel = new_parcel(session);
	Pending   **pending;
	Defined   **defined;

	if (parcel == NULL)
		MotRaiseStatus(status, NULL);
	for (pending = &parcel->pending; list != NULL; list = list->older, pending = &(*pending)->older)
		if ((*pending = copy_of(session, list, sizeof(Pending), &status)) == NULL)
			goto full;
	*pending = NULL;
	for (defined = &parcel->defined; definitions != NULL; definitions = definitions->next, defined = &(*defined)->next)
		if ((*defined = copy_of(session, definitions, sizeof(Defined), &status)) == NULL)
			goto full;
	*defined = NULL;
	return parcel;

full:
	MotPendingDiscard(parcel);
	MotRaiseStatus(status, NULL);
	return NULL;				/* not reached */
}

/* Only the copy goes: what it says is to be done by somebody else. */
void
MotPendingDiscard(void *arg)
{
	Parcel	   *parcel = arg;
	mot_session *session;

	if (parcel == NULL)
		return;
	session = MotSession();
	while (parcel->pending != NULL)
	{
		Pending    *p = parcel->pending;

		parcel->pending = p->older;
		mot_host_free(session, p);
	}
	while (parcel->defined != NULL)
	{
		Defined    *d = parcel->defined;

		parcel->defined = d->next;
		mot_host_free(session, d);
	}
	mot_host_free(session, parcel);
}

/* By whoever ends the transaction, after its rows, and within the gate. */
void
MotPendingEnd(void *arg, bool committed)
{
	Parcel	   *parcel = arg;
	mot_session *session;

	if (parcel == NULL)
		return;
	session = MotSession();
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	if (committed)
		MotPendingCommit(session, parcel->pending, parcel->defined);
	else
	{
		MotDefinedDiscard(session, parcel->defined);
		for (Pending *p = parcel->pending; p != NULL; p = p->older)
			MotPendingUndo(p);
	}
	LWLockRelease(MotDirectoryLock);
	for (Pending *p = parcel->pending; p != NULL; p = p->older)
	{
		/* one that could not be recovered may be whole again, being new */
		if (committed)
			MotRelationHealed(p->dbid, p->relid);
		MotRelationForgetTable(p->relid);
	}
	MotPendingDiscard(parcel);
}

/* ---------------------------------------------------------- after a restart */

/*
 * table: new storage of that number, which nobody knows yet; NULL: what there is goes.  *parcel:
 * of those before; NULL: this is the first.
 */
mot_status
MotStorageRestore(mot_session *session, void **parcel, Oid dbid, Oid number, mot_table *table)
{
	mot_status	status;
	Parcel	   *made = *parcel != NULL ? *parcel : new_parcel(session);
	Pending    *p;

	if (made == NULL)
		return MOT_NO_MEMORY;
	*parcel = made;
	p = mot_host_alloc(session, sizeof(Pending), true, &status);
	if (p == NULL)
		return status;
	memset(p, 0, sizeof(Pending));
	p->kind = table != NULL ? TABLE_CREATED : TABLE_DROPPED;
	p->dbid = dbid;
	p->relid = number;
	p->table = table;
	p->older = made->pending;
	made->pending = p;
	return MOT_OK;
}

/* All have been: they are as their transaction has left them. */
void
MotStorageRestored(void *arg)
{
	Parcel	   *parcel = arg;

	if (parcel == NULL)
		return;
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	for (Pending *p = parcel->pending; p != NULL; p = p->older)
	{
		if (p->kind == TABLE_CREATED)
			MotPendingPublish(p);
		else
			p->table = mot_table_find(MotEngine, p->dbid, p->relid);
	}
	LWLockRelease(MotDirectoryLock);
}
