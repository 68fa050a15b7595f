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
 * (A table without a key tells its rows apart by their content only: content.c.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"

static HTAB *targets = NULL;

/* those begun */
static MotTarget *begun = NULL;

/* ------------------------------------------------------------- definitions */

static void
begin_target(MotTarget *target)
{
	const void *bytes;
	size_t		len;
	MotLeftOut	entry;

	target->table = mot_table_find(MotEngine, target->key.dbid, target->key.relid);
	target->left_out = MotLeftOutFind(target->key.dbid, target->key.relid, &entry);
	target->damaged = target->created = target->wanted = target->dropped = target->defined = false;
	target->definition = NULL;
	target->new_indexes = target->old_indexes = NIL;
	target->emptied = false;
	target->files = NULL;
	target->redo = NULL;
	target->begun = true;
	target->next_begun = begun;
	begun = target;
	if (target->left_out)
		return;
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
	MotContentBegin(target);

	/*
	 * what fitted where it was done has to fit here; MotReplayEnd puts the
	 * limit back
	 */
	mot_table_set_limit(target->table, 0);
}

MotTarget *
MotTargetGet(Oid dbid, Oid relid)
{
	MotTargetKey key = {dbid, relid};
	MotTarget  *target;
	bool		found;

	if (targets == NULL)
		targets = MotHashCreate("MOT tables in replay", 64, sizeof(MotTargetKey), sizeof(MotTarget), TopMemoryContext);

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
	MotTargetFree(target);

	target->cxt = cxt;
	target->def = def;
	target->bytes = copy;
	target->len = len;
	target->nindexes = def->nindexes;
	target->indexes = def->indexes;
	target->max_attnum = 0;
	for (int i = 0; i < def->nindexes; i++)
		target->max_attnum = Max(target->max_attnum, def->indexes[i].key->max_attnum);
	target->old_values = palloc(Max(target->max_attnum, 1) * sizeof(Datum));
	target->old_isnull = palloc(Max(target->max_attnum, 1) * sizeof(bool));
	target->new_values = palloc(Max(target->max_attnum, 1) * sizeof(Datum));
	target->new_isnull = palloc(Max(target->max_attnum, 1) * sizeof(bool));
	MotKeyBufferInit(&target->old_key, cxt);
	MotKeyBufferInit(&target->new_key, cxt);
	MemoryContextSwitchTo(oldcxt);
}

void
MotTargetResolve(MotTarget *target)
{
	for (int i = 0; i < target->nindexes; i++)
		MotTargetResolveIndex(target, i, target->table == NULL ? NULL :
							  mot_table_index(target->table, target->def->indexes[i].indexoid));
}

void
MotTargetResolveIndex(MotTarget *target, int i, mot_index *index)
{
	target->indexes[i].handle.index = index;
	if (index != NULL)
		MotIndexAdopt(&target->indexes[i], index);
}

/* is one of its indexes one that gives way to another version of its collation (MotKeyGivesWay)? */
bool
MotTargetGivesWay(const MotTarget *target, bool duplicate)
{
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL && MotKeyGivesWay(target->indexes[i].key, duplicate))
			return true;
	return false;
}

int
MotTargetIndexAt(const MotTarget *target, Oid indexoid)
{
	for (int i = 0; i < target->nindexes; i++)
		if (target->def->indexes[i].indexoid == indexoid)
			return i;
	return -1;
}

/* what is cached of it */
void
MotTargetFree(MotTarget *target)
{
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
		bool		gone = target->table == NULL || target->created || target->dropped ||
		target->damaged || target->left_out;

		begun = target->next_begun;
		target->begun = target->left_out = false;
		MotContentLeave(target, gone);
		if (gone || target->defined)
		{
			MotTargetFree(target);
			(void) hash_search(targets, &target->key, HASH_REMOVE, NULL);
		}
	}
}

/* ------------------------------------------------------------------- keys */

void
MotTargetDeform(MotTarget *target, unsigned host_bits, const void *row,
				Datum *values, bool *isnull)
{
	*(values == target->old_values ? &target->old_tail : &target->new_tail) =
		MotRowTail(target->def->desc, host_bits, row);
	MotRowDeformBytes(target->def->desc, host_bits, row, target->max_attnum, values, isnull);
}

static unsigned
encode_key(const MotTarget *target, int index, const MotTail *tail, const Datum *values, const bool *isnull,
		   MotKeyBuffer *key)
{
	MotKeyBufferReset(key);
	return MotKeyOfRow(target->def->indexes[index].key, tail, values, isnull, key);
}

unsigned
MotTargetOldKey(MotTarget *target, int index)
{
	return encode_key(target, index, target->old_tail, target->old_values, target->old_isnull, &target->old_key);
}

unsigned
MotTargetNewKey(MotTarget *target, int index)
{
	return encode_key(target, index, target->new_tail, target->new_values, target->new_isnull, &target->new_key);
}

/*
 * Are the keys of the old and the new row (as deformed) different?  If so they
 * are in old_key and new_key.
 */
bool
MotTargetKeysDiffer(MotTarget *target, int index)
{
	const MotKey *key = target->def->indexes[index].key;
	bool		differs = key->computed;

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

/* ----------------------------------------------------------------- the end */

/*
 * Replay is over: tables get their limits (mot.max_size) back, and what only
 * replay needed goes.
 */
void
MotTargetsEnd(mot_session *session)
{
	int			n;
	mot_table **tables = MotTables(InvalidOid, &n);

	(void) mot_snapshot_take(session);
	for (int i = 0; i < n; i++)
	{
		MotTarget  *target = MotTargetGet(mot_table_host_db(tables[i]), mot_table_host_id(tables[i]));

		if (target->table == NULL)
			continue;
		/* (one that is damaged has not been looked at) */
		if (target->def != NULL)
			mot_table_set_limit(target->table, target->def->max_size);
		MotContentLeave(target, true);
	}
	MotTargetsForget();
	mot_snapshot_hold(session, MOT_TS_NONE);
	pfree(tables);
}
