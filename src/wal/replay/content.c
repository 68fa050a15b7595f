/*-------------------------------------------------------------------------
 *
 * content.c
 *	  Where the rows of a table without a key are, by their content.
 *
 * The log names such a row by all its bytes.  So that finding one is not a
 * walk over the table, replay has a hash table of the rows' contents, made when
 * it is first needed and removed when replay ends.  It lies in a file (see
 * spill.c), because memory may hold just the rows and nothing else; all who
 * apply redo map it, under MotApplyLock, and keep it up to date.
 *
 * An entry is a row's number and a few bits of its hash.  What an entry
 * leads to is compared, so one that leads nowhere does no harm.  But each row
 * has its entry: if a transaction is undone, or has grown out of the file, the file
 * goes, and the next who needs it makes another one.  Equal rows are found at
 * the front of their chain, and taken out there, however many there are.
 *
 * Without a file (the disk may be full), rows are looked for one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/fd.h"
#include "wal/replay/apply.h"
#include "wal/replay/replay.h"
#include "wal/replay/spill.h"

/* a table with fewer rows is walked over */
#define SMALL_TABLE 64

#define NUMBER_BITS 47
#define NUMBER_MASK ((UINT64CONST(1) << NUMBER_BITS) - 1)

typedef struct Entry
{
	uint64		what;			/* the row's number, and above it bits of the
								 * hash */
	uint32		next;			/* in the chain, or free: number + 1 */
	uint32		unused;
} Entry;

typedef struct MotContentMap
{
	uint64		serial;			/* of the table */
	uint32		buckets;		/* a power of two */
	uint32		size;			/* entries there is room for */
	uint32		used;			/* that were ever in use */
	uint32		free;			/* of them; number + 1 */
	uint32		changing;		/* in a transaction that has not ended */
	uint32		gone;			/* there is another file by now, or none */
	uint32		heads[];		/* of chains: number + 1; then the entries */
} MotContentMap;

static inline Entry *
entries(MotContentMap *map)
{
	return (Entry *) &map->heads[map->buckets];
}

static inline uint64
describe(uint64 number, uint64 hash)
{
	return number | (hash & ~NUMBER_MASK);
}

static uint64
content_hash(unsigned host_bits, const void *row, size_t size)
{
	return hash_bytes_extended(row, (int) size, host_bits);
}

/* ------------------------------------------------------------------- files */

static char *
map_path(const MotTarget *target)
{
	return MotSpillPath("%u.%u.content", target->key.dbid, target->key.relid);
}

static void
open_map(MotTarget *target)
{
	MotContent *content = &target->content;
	char	   *path = map_path(target);
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size >= (off_t) sizeof(MotContentMap))
	{
		content->map = MotSpillMapFile(path, st.st_size, false);
		content->size = st.st_size;
	}
	pfree(path);
}

static void
close_map(MotTarget *target)
{
	if (target->content.map != NULL)
		(void) munmap(target->content.map, target->content.size);
	target->content.map = NULL;
}

static void
remove_map(MotTarget *target)
{
	char	   *path = map_path(target);

	target->content.map->gone = 1;
	close_map(target);
	MotFileRemove(path);
	pfree(path);
	if (MotReplay->contents > 0)
		MotReplay->contents--;
}

/* Room for so many rows, and then some; false: there is none. */
static bool
make_map(MotTarget *target, uint64 rows)
{
	MotContent *content = &target->content;
	uint64		size = Max(rows + rows / 4, 1024);
	uint32		buckets;
	Size		bytes;
	char	   *path;

	if (size >= PG_UINT32_MAX / 2)
		return false;
	buckets = pg_nextpower2_32((uint32) size);
	bytes = offsetof(MotContentMap, heads) + buckets * sizeof(uint32) + size * sizeof(Entry);

	path = map_path(target);
	content->map = MotSpillMapFile(path, bytes, true);
	if (content->map == NULL)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not make file \"%s\": %m", path),
				 errdetail("Replay looks for rows of memory-optimized table \"%s\", which has no key, one by one.",
						   MotTargetName(target))));
	pfree(path);
	if (content->map == NULL)
		return false;

	content->size = bytes;
	content->map->serial = mot_table_serial(target->table);
	content->map->buckets = buckets;
	content->map->size = (uint32) size;
	MotReplay->contents++;
	return true;
}

/* ------------------------------------------------------------ transactions */

/*
 * A transaction comes to the table; what others have left of the file, or of the table, may be of
 * no use.
 */
void
MotContentBegin(MotTarget *target)
{
	MotContent *content = &target->content;

	if (content->map != NULL && content->map->gone)
		close_map(target);
	if (MotReplay->contents == 0)
		return;
	if (content->map == NULL)
		open_map(target);
	if (content->map != NULL &&
		(content->map->changing || content->map->serial != mot_table_serial(target->table)))
		remove_map(target);
}

void
MotContentLeave(MotTarget *target, bool gone)
{
	MotContent *content = &target->content;

	content->unusable = false;
	if (gone && content->map == NULL && MotReplay->contents > 0)
		open_map(target);
	if (content->map == NULL)
		return;
	if (gone && !content->map->gone)
		remove_map(target);
	else
	{
		content->map->changing = 0;

		/* sessions do this once in a while only */
		if (gone || (IsUnderPostmaster && !AmStartupProcess() && !AmBackgroundWorkerProcess()))
			close_map(target);
	}
}

/* -------------------------------------------------------------------- rows */

static bool
insert(MotContentMap *map, uint64 number, uint64 hash)
{
	uint32	   *head = &map->heads[hash & (map->buckets - 1)];
	Entry	   *entry;
	uint32		i;

	if (map->free != 0)
	{
		i = map->free - 1;
		map->free = entries(map)[i].next;
	}
	else if (map->used < map->size)
		i = map->used++;
	else
		return false;

	entry = &entries(map)[i];
	entry->what = describe(number, hash);
	entry->next = *head;
	*head = i + 1;
	return true;
}

/* The rows as they are now, changes of the transaction at hand included. */
static void
build_map(mot_session *session, MotTarget *target)
{
	MotContent *content = &target->content;
	uint64		room = 0;
	bool		all;

	do
	{
		mot_table_stat stat;
		mot_build	build;
		mot_row    *row;
		const mot_version *version;

		if (content->map != NULL)
			remove_map(target);
		mot_table_stats(target->table, &stat);
		room = Max(2 * room, stat.rows > 0 ? (uint64) stat.rows : 0);
		if (!make_map(target, room))
		{
			content->unusable = true;
			return;
		}
		content->map->changing = 1;
		all = true;
		mot_build_rows(session, &build, target->table, NULL);
		while (all && mot_build_next(&build, &row, &version))
			all = insert(content->map, mot_row_number(session, row),
						 content_hash(mot_version_host_bits(version), mot_version_data(version),
									  MotDefinitionRowSize(target->def, version)));
	} while (!all);
}

/* Before a row is looked for: make the file if there is none and the table is not small. */
void
MotContentPrepare(mot_session *session, MotTarget *target)
{
	mot_table_stat stat;

	if (target->content.map != NULL || target->content.unusable)
		return;
	mot_table_stats(target->table, &stat);
	if (stat.rows >= SMALL_TABLE)
		build_map(session, target);
}

static bool
is_this(const MotTarget *target, const mot_version *version, const MotOpData *op)
{
	return mot_version_host_bits(version) == op->old_host_bits &&
		MotDefinitionRowSize(target->def, version) == op->old_len &&
		memcmp(mot_version_data(version), op->old_bytes, op->old_len) == 0;
}

/*
 * Any row with this content that "fits" (NULL: any at all); for prepared transactions, which have
 * rows while others are looked for.
 */
bool
MotContentChoose(mot_session *session, const mot_view *view, MotTarget *target, const MotOpData *op,
				 bool (*fits) (void *arg, mot_row *row, const mot_version *version), void *arg,
				 mot_row **row, const mot_version **version)
{
	MotContentMap *map = target->content.map;
	mot_scan	scan;

	if (map != NULL)
	{
		uint64		hash = content_hash(op->old_host_bits, op->old_bytes, op->old_len);
		uint32		next = map->heads[hash & (map->buckets - 1)];

		while (next != 0)
		{
			Entry	   *entry = &entries(map)[next - 1];

			next = entry->next;
			if (entry->what != describe(entry->what & NUMBER_MASK, hash))
				continue;
			*row = mot_row_by_number(session, target->table, entry->what & NUMBER_MASK);
			if (*row == NULL)
				continue;
			*version = mot_row_visible(session, view, target->table, *row);
			if (*version != NULL && is_this(target, *version, op) &&
				(fits == NULL || fits(arg, *row, *version)))
				return true;
		}
		return false;
	}

	mot_scan_begin(session, &scan, target->table, view);
	while (mot_scan_next(session, &scan, row, version))
		if (is_this(target, *version, op) &&
			(fits == NULL || fits(arg, *row, *version)))
			return true;
	return false;
}

/* bytes before the tail */
static size_t
columns_size(const MotTarget *target, unsigned host_bits, const char *row, size_t size)
{
	const char *tail = (const char *) MotRowTail(target->def->desc, host_bits, row);

	return tail != NULL ? tail - row : size;
}

/*
 * the same columns, and all entries of the old tail in the new one; *more: bytes that it has
 * besides
 */
static bool
has_got_entries(const MotTarget *target, unsigned old_host_bits, const char *old, size_t old_size,
				unsigned host_bits, const char *row, size_t size, size_t *more)
{
	size_t		columns = columns_size(target, old_host_bits, old, old_size);
	const MotTail *old_tail = MotRowTail(target->def->desc, old_host_bits, old);
	const MotTail *tail = MotRowTail(target->def->desc, host_bits, row);
	const MotTailEntry *entry = NULL;

	if (((host_bits ^ old_host_bits) & ~MOT_ROW_HAS_TAIL) != 0 || size < old_size ||
		columns_size(target, host_bits, row, size) != columns || memcmp(old, row, columns) != 0)
		return false;
	while ((entry = MotTailNext(old_tail, entry)) != NULL)
	{
		const MotTailEntry *has = MotTailFind(tail, entry->indexoid);

		if (has == NULL || has->len != entry->len || memcmp(has->key, entry->key, entry->len) != 0)
			return false;
	}
	*more = size - old_size;
	return true;
}

/*
 * The row that an operation is about, which changes or deletes it; *amended: it has more entries in
 * its tail than it had then.
 *
 * A row that gets entries in place (logger_amend) may be in the checkpoint as it was afterwards.
 * So of rows that were equal fewer may be left without them than the log knows of.  If none is
 * left, who gives them to one finds that done (*row: NULL), and for others any row will do that has
 * more: the one with least, so that none is left with less than it has to have.
 */
bool
MotContentFind(mot_session *session, const mot_view *view, MotTarget *target, const MotOpData *op,
			   mot_row **row, const mot_version **version, bool *amended)
{
	mot_row    *found = NULL;
	mot_scan	scan;
	char	   *old;
	char	   *new = NULL;
	size_t		more;
	size_t		least = SIZE_MAX;

	*amended = false;
	if (MotContentChoose(session, view, target, op, NULL, NULL, row, version))
		return true;
	*amended = true;
	/* (a copy: aligned) */
	old = memcpy(MemoryContextAllocHuge(CurrentMemoryContext, op->old_len), op->old_bytes, op->old_len);
	if (op->op == MOT_OP_UPDATE)
	{
		new = MemoryContextAllocHuge(CurrentMemoryContext, op->new_len);
		if (!MotRecordPatch(op, old, op->old_len, new) || !MotRedoIsWhole(target, op->host_bits, new, op->new_len))
			return false;
	}
	*row = NULL;
	if (new == NULL || !has_got_entries(target, op->old_host_bits, old, op->old_len,
										op->host_bits, new, op->new_len, &more))
	{
		mot_scan_begin(session, &scan, target->table, view);
		while (mot_scan_next(session, &scan, row, version))
			if (has_got_entries(target, op->old_host_bits, old, op->old_len, mot_version_host_bits(*version),
								mot_version_data(*version), MotDefinitionRowSize(target->def, *version), &more) &&
				more < least)
			{
				least = more;
				found = *row;
			}
		*row = found;
		if (found == NULL)
			return false;
		*version = mot_row_visible(session, view, target->table, found);
	}
	pfree(old);
	if (new != NULL)
		pfree(new);
	return true;
}

void
MotContentAdd(mot_session *session, MotTarget *target, mot_row *row,
			  unsigned host_bits, const void *bytes, size_t size)
{
	MotContentMap *map = target->content.map;

	if (map == NULL)
		return;
	map->changing = 1;
	if (!insert(map, mot_row_number(session, row), content_hash(host_bits, bytes, size)))
		build_map(session, target); /* with this row */
}

void
MotContentDrop(mot_session *session, MotTarget *target, mot_row *row,
			   unsigned host_bits, const void *bytes, size_t size)
{
	MotContentMap *map = target->content.map;
	uint64		hash;
	uint64		what;
	uint32	   *link;

	if (map == NULL)
		return;
	map->changing = 1;
	hash = content_hash(host_bits, bytes, size);
	what = describe(mot_row_number(session, row), hash);
	link = &map->heads[hash & (map->buckets - 1)];
	while (*link != 0)
	{
		uint32		i = *link - 1;
		Entry	   *entry = &entries(map)[i];

		if (entry->what == what)
		{
			*link = entry->next;
			entry->next = map->free;
			map->free = i + 1;
			return;
		}
		link = &entry->next;
	}
}
