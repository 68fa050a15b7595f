/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Tables as the applier of redo sees them: by definition, not catalogue.
 *
 * The startup process has no catalogue.  What it has to know of a table is in
 * the definition that the engine keeps with it; taken apart once and cached,
 * as long as table and definition are the same.  (The bytes are compared:
 * another process may have applied a change of the definition.)
 *
 * A table without a key tells its rows apart by their content only.  So that
 * finding one is not a walk over the table, the engine is given an index on
 * a hash of the content, which nobody else knows of.  It is kept up to date
 * by all appliers, and goes when replay ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/pg_bswap.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "wal/apply.h"

/* a table with fewer rows is walked over */
#define SMALL_TABLE 64

static HTAB *targets = NULL;

/* those begun */
static MotTarget *begun = NULL;

static void begin_target(MotTarget *target);
static void forget_definition(MotTarget *target);
static bool content_matches(void *arg, const mot_version *version, const void *key, size_t len);
static bool is_this(const MotTarget *target, const mot_version *version,
					unsigned host_bits, const void *old, size_t size);
static void content_close(MotTarget *target);
static void put_hash(uint8 *key, uint64 hash);

/* ------------------------------------------------------------- definitions */

MotTarget *
MotTargetGet(Oid dbid, Oid relid)
{
	MotTargetKey key = {dbid, relid};
	MotTarget  *target;
	bool		found;

	if (targets == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(MotTargetKey);
		ctl.entrysize = sizeof(MotTarget);
		ctl.hcxt = TopMemoryContext;
		targets = hash_create("MOT tables in replay", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}

	target = hash_search(targets, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset(target, 0, sizeof(MotTarget));
		target->key = key;
	}
	if (!target->begun)
		begin_target(target);
	return target;
}

static void
begin_target(MotTarget *target)
{
	const void *bytes;
	size_t		len;

	target->table = mot_table_find(MotEngine, target->key.dbid, target->key.relid);
	target->damaged = target->created = target->dropped = target->defined = false;
	target->definition = NULL;
	target->new_indexes = target->old_indexes = NIL;
	memset(&target->content.handle, 0, sizeof(target->content.handle));
	target->begun = true;
	target->next_begun = begun;
	begun = target;
	if (MotStateIsDamaged(target->key.dbid, target->key.relid))
	{
		target->damaged = true;
		return;
	}
	if (target->table == NULL)
		return;

	bytes = mot_table_definition(target->table, &len);
	if (bytes == NULL)
	{
		target->table = NULL;
		return;
	}
	if (target->def == NULL || target->serial != mot_table_serial(target->table) ||
		target->len != len || memcmp(target->bytes, bytes, len) != 0)
	{
		MotTargetDefine(target, bytes, len);
		target->serial = mot_table_serial(target->table);
	}
	MotTargetResolve(target);

	/*
	 * what fitted where it was done has to fit here; MotReplayEnd puts the
	 * limit back
	 */
	mot_table_set_limit(target->table, 0);
}

/* From now on this is the definition; bytes are copied. */
void
MotTargetDefine(MotTarget *target, const char *bytes, size_t len)
{
	MemoryContext cxt = AllocSetContextCreate(TopMemoryContext, "MOT table in replay",
											  ALLOCSET_SMALL_SIZES);
	MotDefinition *def;
	MemoryContext oldcxt;
	char	   *copy;

	def = MotDefinitionDecode(bytes, len, cxt);
	oldcxt = MemoryContextSwitchTo(cxt);
	copy = palloc(Max(len, 1));
	memcpy(copy, bytes, len);
	forget_definition(target);

	target->cxt = cxt;
	target->def = def;
	target->bytes = copy;
	target->len = len;
	target->nindexes = def->nindexes;
	target->indexes = palloc0(Max(def->nindexes, 1) * sizeof(MotTargetIndex));
	target->max_attnum = 0;
	for (int i = 0; i < def->nindexes; i++)
	{
		MotTargetIndex *index = &target->indexes[i];

		MotDefinitionMatchInit(&index->match, def, i);
		index->handle.matches = MotDefinitionMatches;
		index->handle.arg = &index->match;
		target->max_attnum = Max(target->max_attnum, def->indexes[i].key->max_attnum);
	}
	target->old_values = palloc(Max(target->max_attnum, 1) * sizeof(Datum));
	target->old_isnull = palloc(Max(target->max_attnum, 1) * sizeof(bool));
	target->new_values = palloc(Max(target->max_attnum, 1) * sizeof(Datum));
	target->new_isnull = palloc(Max(target->max_attnum, 1) * sizeof(bool));
	MotKeyBufferInit(&target->old_key, cxt);
	MotKeyBufferInit(&target->new_key, cxt);
	target->content.cursor = palloc0(mot_cursor_size());
	MemoryContextSwitchTo(oldcxt);
}

void
MotTargetResolve(MotTarget *target)
{
	for (int i = 0; i < target->nindexes; i++)
		target->indexes[i].handle.index = target->table == NULL ? NULL :
			mot_table_index(target->table, target->def->indexes[i].indexoid);

	target->content.handle.index = target->table == NULL ? NULL :
		mot_table_index(target->table, MOT_CONTENT_INDEX);
	target->content.handle.matches = content_matches;
	target->content.handle.arg = target;
}

static void
forget_definition(MotTarget *target)
{
	content_close(target);
	if (target->cxt != NULL)
		MemoryContextDelete(target->cxt);
	target->cxt = NULL;
	target->def = NULL;
	target->nindexes = 0;
}

const char *
MotTargetName(const MotTarget *target)
{
	if (target->def != NULL && target->def->name != NULL)
		return target->def->name;
	return psprintf("%u/%u", target->key.dbid, target->key.relid);
}

void
MotTargetsEach(void (*visit) (MotTarget *target))
{
	for (MotTarget *target = begun; target != NULL; target = target->next_begun)
		visit(target);
}

/* Definitions of tables that a transaction has changed are looked at again. */
void
MotTargetsForget(void)
{
	while (begun != NULL)
	{
		MotTarget  *target = begun;

		begun = target->next_begun;
		target->begun = false;
		content_close(target);
		if (target->table == NULL || target->created || target->dropped ||
			target->defined || target->damaged)
		{
			forget_definition(target);
			(void) hash_search(targets, &target->key, HASH_REMOVE, NULL);
		}
	}
}

/* ------------------------------------------------------------------- keys */

void
MotTargetDeform(const MotTarget *target, unsigned host_bits, const void *row,
				Datum *values, bool *isnull)
{
	MotRowDeformBytes(target->def->desc, host_bits, row, target->max_attnum, values, isnull);
}

static unsigned
encode_key(const MotTarget *target, int index, const Datum *values, const bool *isnull, MotKeyBuffer *key)
{
	bool		has_null;

	MotKeyBufferReset(key);
	MotDefinitionKey(target->def, index, values, isnull, key, &has_null);
	return has_null ? MOT_KEY_DISTINCT : 0;
}

unsigned
MotTargetOldKey(MotTarget *target, int index)
{
	return encode_key(target, index, target->old_values, target->old_isnull, &target->old_key);
}

unsigned
MotTargetNewKey(MotTarget *target, int index)
{
	return encode_key(target, index, target->new_values, target->new_isnull, &target->new_key);
}

/*
 * Are the keys of the old and the new row (as deformed) different?  If so they
 * are in old_key and new_key.
 */
bool
MotTargetKeysDiffer(MotTarget *target, int index)
{
	const MotKey *key = target->def->indexes[index].key;
	bool		differs = false;

	for (int i = 0; i < key->ncolumns && !differs; i++)
	{
		int			column = key->columns[i].attnum - 1;
		Form_pg_attribute att = TupleDescAttr(target->def->desc, column);

		if (target->old_isnull[column] || target->new_isnull[column])
			differs = target->old_isnull[column] != target->new_isnull[column];
		else
			differs = !datumIsEqual(target->old_values[column], target->new_values[column],
									att->attbyval, att->attlen);
	}
	if (!differs)
		return false;

	(void) MotTargetOldKey(target, index);
	(void) MotTargetNewKey(target, index);
	return target->old_key.len != target->new_key.len ||
		memcmp(target->old_key.data, target->new_key.data, target->old_key.len) != 0;
}

/* ----------------------------------------------------------------- content */

uint64
MotContentHash(unsigned host_bits, const void *row, size_t size)
{
	return hash_bytes_extended(row, (int) size, host_bits);
}

static void
put_hash(uint8 *key, uint64 hash)
{
	hash = pg_hton64(hash);
	memcpy(key, &hash, MOT_CONTENT_KEY);
}

static bool
content_matches(void *arg, const mot_version *version, const void *key, size_t len)
{
	MotTarget  *target = arg;
	uint8		mine[MOT_CONTENT_KEY];

	put_hash(mine, MotContentHash(mot_version_host_bits(version), mot_version_data(version),
								  MotRowDataSize(target->def->desc, version)));
	return len == MOT_CONTENT_KEY && memcmp(mine, key, len) == 0;
}

/*
 * Make the index if there is none and the table is not small.  (Of a table
 * that has all the indexes it may have, rows are looked for one by one.)
 */
mot_status
MotContentPrepare(mot_session *session, MotTarget *target)
{
	MotContent *content = &target->content;
	mot_table_stat stat;
	mot_index  *index;
	mot_build	build;
	mot_row    *row;
	mot_row    *other;
	const mot_version *version;
	mot_status	status;

	if (content->handle.index != NULL)
		return MOT_OK;
	mot_table_stats(target->table, &stat);
	if (stat.rows < SMALL_TABLE)
		return MOT_OK;

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = mot_index_create(session, target->table, MOT_CONTENT_INDEX, 0, &index);
	LWLockRelease(MotDirectoryLock);
	if (status == MOT_TOO_LARGE)
		return MOT_OK;
	if (status != MOT_OK)
		return status;

	mot_build_begin(session, &build, index);
	while (mot_build_next(&build, &row, &version))
	{
		uint8		key[MOT_CONTENT_KEY];

		put_hash(key, MotContentHash(mot_version_host_bits(version), mot_version_data(version),
									 MotRowDataSize(target->def->desc, version)));
		status = mot_build_add(&build, row, key, sizeof(key), 0, &other);
		if (status != MOT_OK)
		{
			mot_index_drop(session, index);
			return status;
		}
	}
	mot_build_end(&build);

	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	mot_index_attach(index);
	LWLockRelease(MotDirectoryLock);
	content->handle.index = index;
	return MOT_OK;
}

static void
content_close(MotTarget *target)
{
	if (target->content.open)
		mot_cursor_close(target->content.cursor);
	target->content.open = false;
}

static bool
is_this(const MotTarget *target, const mot_version *version,
		unsigned host_bits, const void *old, size_t size)
{
	return mot_version_host_bits(version) == host_bits &&
		MotRowDataSize(target->def->desc, version) == size &&
		memcmp(mot_version_data(version), old, size) == 0;
}

/*
 * Any row with this content.  A transaction that changes many equal rows has
 * us asked for the same content again and again; so the cursor stays where it
 * is, behind the rows that are gone.
 */
bool
MotContentFind(mot_session *session, const mot_view *view, MotTarget *target,
			   unsigned host_bits, const void *old, size_t size,
			   mot_row **row, const mot_version **version)
{
	MotContent *content = &target->content;
	uint8		key[MOT_CONTENT_KEY];
	bool		fresh;

	if (content->handle.index == NULL)
	{
		mot_scan	scan;

		mot_scan_begin(session, &scan, target->table, view, NULL);
		while (mot_scan_next(session, &scan, row, version))
			if (is_this(target, *version, host_bits, old, size))
				return true;
		return false;
	}

	put_hash(key, MotContentHash(host_bits, old, size));
	fresh = !content->open || memcmp(key, content->key, sizeof(key)) != 0;
	for (;;)
	{
		if (fresh)
		{
			mot_bound	bound = {MOT_BOUND_INCLUSIVE, content->key, sizeof(content->key)};

			content_close(target);
			memcpy(content->key, key, sizeof(key));
			if (mot_cursor_open(session, content->cursor, view, &content->handle,
								&bound, &bound, false) != MOT_OK)
				return false;
			content->open = true;
		}
		while (mot_cursor_next(content->cursor, row, version))
			if (is_this(target, *version, host_bits, old, size))
				return true;
		if (fresh)
			return false;
		/* there may be newer ones before the place where it was */
		fresh = true;
	}
}

mot_status
MotContentAdd(mot_session *session, MotTarget *target, mot_row *row,
			  unsigned host_bits, const void *bytes, size_t size)
{
	uint8		key[MOT_CONTENT_KEY];
	mot_row    *other;

	if (target->content.handle.index == NULL)
		return MOT_OK;
	put_hash(key, MotContentHash(host_bits, bytes, size));
	return mot_index_add(session, &target->content.handle, row, key, sizeof(key), 0, &other);
}

mot_status
MotContentDrop(mot_session *session, MotTarget *target, mot_row *row,
			   unsigned host_bits, const void *bytes, size_t size)
{
	uint8		key[MOT_CONTENT_KEY];

	if (target->content.handle.index == NULL)
		return MOT_OK;
	put_hash(key, MotContentHash(host_bits, bytes, size));
	return mot_index_drop_entry(session, &target->content.handle, row, key, sizeof(key), 0);
}

/* ----------------------------------------------------------------- the end */

typedef struct AllTables
{
	int			n;
	int			max;
	mot_table **table;
} AllTables;

static void
collect_table(void *arg, mot_table *table)
{
	AllTables  *all = arg;

	if (all->n < all->max)
		all->table[all->n] = table;
	all->n++;
}

/*
 * Replay is over: tables get their limits (mot.max_size) back, and lose what
 * only replay needed.
 */
void
MotTargetsEnd(mot_session *session)
{
	AllTables	all = {0, 0, NULL};

	/*
	 * nothing can be allocated in the visit, so count first; nobody adds or
	 * drops any now
	 */
	mot_table_each(MotEngine, collect_table, &all);
	all.max = all.n;
	all.n = 0;
	all.table = palloc(Max(all.max, 1) * sizeof(mot_table *));
	mot_table_each(MotEngine, collect_table, &all);

	(void) mot_snapshot_take(session);
	for (int i = 0; i < Min(all.n, all.max); i++)
	{
		MotTarget  *target = MotTargetGet(mot_table_host_db(all.table[i]),
										  mot_table_host_id(all.table[i]));

		if (target->table == NULL)
			continue;
		mot_table_set_limit(target->table, target->def->max_size);
		if (target->content.handle.index != NULL)
		{
			LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
			mot_index_drop(session, target->content.handle.index);
			LWLockRelease(MotDirectoryLock);
		}
	}
	MotTargetsForget();
	mot_snapshot_hold(session, MOT_TS_NONE);
	pfree(all.table);
}
