/*-------------------------------------------------------------------------
 *
 * leftlist.c
 *	  The list of tables that memory has no room for (leftout.c).
 *
 * In shared memory, under a spinlock, and found by a hash table.  How many there
 * will be nobody knows: all tables of a server with more memory.  So the list
 * lies in a mapping of its own, made before the postmaster forks, of which only
 * what is used takes memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "catalog/pg_database.h"
#include "common/hashfn.h"
#include "storage/lock.h"
#include "storage/spin.h"
#include "wal/replay/leftout.h"

/* a power of two; as many buckets */
#define MAX_LEFT_OUT (1024 * 1024)

typedef struct Shared
{
	pg_atomic_uint32 n;			/* written under the mutex */
	slock_t		mutex;
	uint32		last_number;	/* under MotApplyLock */
} Shared;

/* in the mapping; numbers are of list[], 0: none, so the first is not used */
typedef struct Lists
{
	uint32		bucket[MAX_LEFT_OUT];
	uint32		next[MAX_LEFT_OUT + 1]; /* in the same bucket */
	MotLeftOut	list[MAX_LEFT_OUT + 1];
} Lists;

static Shared *shared = NULL;
static Lists *lists = NULL;

static void
init_lists(void)
{
	SpinLockInit(&shared->mutex);

	/* after a crash the postmaster begins with another one */
	if (lists != NULL)
		(void) munmap(lists, sizeof(Lists));
	lists = mmap(NULL, sizeof(Lists), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (lists == MAP_FAILED)
	{
		lists = NULL;
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map %zu bytes of shared memory: %m", sizeof(Lists))));
	}
}

const MotShmem MotLeftOutShmem = {"mot left out", (void **) &shared, sizeof(Shared), 0, init_lists};

/* ----------------------------------------------------------- with the mutex */

static uint32 *
bucket_of(Oid dbid, Oid relid)
{
	return &lists->bucket[hash_combine(murmurhash32(dbid), murmurhash32(relid)) & (MAX_LEFT_OUT - 1)];
}

/* relid invalid: any table of the database */
static uint32
find(Oid dbid, Oid relid)
{
	uint32		i;

	if (!OidIsValid(relid))
	{
		i = pg_atomic_read_u32(&shared->n);
		while (i > 0 && lists->list[i].dbid != dbid)
			i--;
		return i;
	}
	i = *bucket_of(dbid, relid);
	while (i != 0 && (lists->list[i].dbid != dbid || lists->list[i].relid != relid))
		i = lists->next[i];
	return i;
}

static void
unlink_entry(uint32 i)
{
	uint32	   *link = bucket_of(lists->list[i].dbid, lists->list[i].relid);

	while (*link != i)
		link = &lists->next[*link];
	*link = lists->next[i];
}

/* The last one takes its place. */
static void
forget(uint32 i)
{
	uint32		last = pg_atomic_read_u32(&shared->n);

	unlink_entry(i);
	if (i != last)
	{
		uint32	   *bucket = bucket_of(lists->list[last].dbid, lists->list[last].relid);

		unlink_entry(last);
		lists->list[i] = lists->list[last];
		lists->next[i] = *bucket;
		*bucket = i;
	}
	pg_atomic_write_u32(&shared->n, last - 1);
}

/* ------------------------------------------------------------------- anybody */

/* of a directory; with MotApplyLock */
uint32
MotLeftOutNextNumber(void)
{
	return ++shared->last_number;
}

void
MotLeftOutClear(void)
{
	SpinLockAcquire(&shared->mutex);
	while (pg_atomic_read_u32(&shared->n) > 0)
		forget(pg_atomic_read_u32(&shared->n));
	SpinLockRelease(&shared->mutex);
}

uint32
MotLeftOutCount(void)
{
	return pg_atomic_read_u32(&shared->n);
}

bool
MotLeftOutFind(Oid dbid, Oid relid, MotLeftOut *entry)
{
	uint32		i;

	if (likely(MotLeftOutCount() == 0))
		return false;
	SpinLockAcquire(&shared->mutex);
	i = find(dbid, relid);
	if (i != 0)
		*entry = lists->list[i];
	SpinLockRelease(&shared->mutex);
	return i != 0;
}

/* All of them, palloc'd. */
int
MotLeftOutList(MotLeftOut **list)
{
	int			max = MotLeftOutCount();
	int			n;

	for (;;)
	{
		*list = palloc_extended(Max(max, 1) * sizeof(MotLeftOut), MCXT_ALLOC_HUGE);
		SpinLockAcquire(&shared->mutex);
		n = pg_atomic_read_u32(&shared->n);
		if (n <= max)
			memcpy(*list, lists->list + 1, n * sizeof(MotLeftOut));
		SpinLockRelease(&shared->mutex);
		if (n <= max)
			return n;
		pfree(*list);
		max = n;
	}
}

static void
set_tags(const MotLeftOut *entry, LOCKTAG *database, LOCKTAG *table)
{
	SET_LOCKTAG_OBJECT(*database, InvalidOid, DatabaseRelationId, entry->dbid, 0);
	SET_LOCKTAG_RELATION(*table, entry->dbid, entry->owner);
}

bool
MotLeftOutLock(const MotLeftOut *entry)
{
	LOCKTAG		database;
	LOCKTAG		table;
	volatile bool locked = false;

	set_tags(entry, &database, &table);
	if (LockAcquire(&database, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	PG_TRY();
	{
		locked = LockAcquire(&table, ShareUpdateExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
	}
	PG_FINALLY();
	{
		/* (there may be no room for another lock, which is an error) */
		if (!locked)
			LockRelease(&database, RowExclusiveLock, true);
	}
	PG_END_TRY();
	return locked;
}

void
MotLeftOutUnlock(const MotLeftOut *entry)
{
	LOCKTAG		database;
	LOCKTAG		table;

	set_tags(entry, &database, &table);
	LockRelease(&table, ShareUpdateExclusiveLock, true);
	LockRelease(&database, RowExclusiveLock, true);
}

/* It has been truncated or dropped, or is back. */
void
MotLeftOutForget(Oid dbid, Oid relid)
{
	uint32		i;

	if (likely(MotLeftOutCount() == 0))
		return;
	SpinLockAcquire(&shared->mutex);
	if (OidIsValid(relid))
	{
		if ((i = find(dbid, relid)) != 0)
			forget(i);
	}
	else
		for (i = pg_atomic_read_u32(&shared->n); i > 0; i--)
			if (lists->list[i].dbid == dbid)
				forget(i);
	SpinLockRelease(&shared->mutex);
}

/* All that there is of it according to this is on the disk. */
void
MotLeftOutSynced(const MotLeftOut *entry)
{
	MotLeftOut *now;
	uint32		i;

	SpinLockAcquire(&shared->mutex);
	i = find(entry->dbid, entry->relid);
	now = &lists->list[i];
	if (i != 0 && now->number == entry->number && now->redo_bytes == entry->redo_bytes)
		now->to_sync = false;
	SpinLockRelease(&shared->mutex);
}

/* New, or changed. */
void
MotLeftOutRegister(const MotLeftOut *entry)
{
	uint32		i;
	bool		full = false;

	SpinLockAcquire(&shared->mutex);
	i = find(entry->dbid, entry->relid);
	if (i == 0)
	{
		i = pg_atomic_read_u32(&shared->n) + 1;
		full = i > MAX_LEFT_OUT;
		if (!full)
		{
			uint32	   *bucket = bucket_of(entry->dbid, entry->relid);

			lists->next[i] = *bucket;
			*bucket = i;
			pg_atomic_write_u32(&shared->n, i);
		}
	}
	if (!full)
		lists->list[i] = *entry;
	SpinLockRelease(&shared->mutex);
	if (full)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %d memory-optimized tables do not fit into memory", MAX_LEFT_OUT),
				 errhint("Increase mot.max_memory, and start the server again.")));
}
