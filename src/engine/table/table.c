/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Tables and indexes as objects: creation, directory, dropping.
 *
 * A table is two pools (rows, versions), an index one more, so dropping is
 * giving back pools.  What is dropped waits on a list until the horizon has
 * passed it and no queue holds anything older (items there may name its
 * objects); then its pages go, all at once.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

static void unpublish(mot_engine *e, mot_table *t);

static mot_status
table_create(mot_session *s, uint32_t host_db, uint32_t host_id, mot_table **table)
{
	mot_engine *e = s->engine;
	mot_status	status = MOT_NO_MEMORY;
	mot_table  *t;
	void	   *memory;

	memory = mot_session_alloc(s, e->pool, sizeof(mot_table) + MOT_CACHE_LINE,
							   MOT_FOR_NEW_ROW, &status);
	if (memory == NULL)
		return status;
	t = (mot_table *) MOT_ALIGN_UP((uintptr_t) memory, MOT_CACHE_LINE);
	memset(t, 0, sizeof(*t));
	t->memory = memory;
	t->host_db = host_db;
	t->host_id = host_id;
	atomic_init(&t->owner, host_id);
	atomic_init(&t->numbered, false);
	t->engine = e;
	/* relaxed: only uniqueness matters */
	t->serial = atomic_fetch_add_explicit(&e->next_serial, 1, memory_order_relaxed);
	mot_spin_init(&t->index_lock);
	mot_spin_init(&t->group.lock);
	if (!mot_table_enter_quotas(s, t))
	{
		mot_free(s->cache, memory);
		return MOT_NO_MEMORY;
	}
	t->rows = mot_pool_create(e->region, MOT_POOL_ROWS, &t->group);
	t->versions = mot_pool_create(e->region, MOT_POOL_PLAIN, &t->group);
	if (t->rows == NULL || t->versions == NULL)
	{
		if (t->rows != NULL)
			mot_pool_destroy(t->rows);
		if (t->versions != NULL)
			mot_pool_destroy(t->versions);
		mot_table_leave_quotas(t);
		mot_free(s->cache, memory);
		return MOT_NO_MEMORY;
	}
	*table = t;
	return MOT_OK;
}

mot_status
mot_table_create(mot_session *s, uint32_t host_db, uint32_t host_id, mot_table **table)
{
	mot_status	status = table_create(s, host_db, host_id, table);

	/* what was dropped may only be waiting for somebody to look after it */
	if (status == MOT_NO_MEMORY)
	{
		(void) mot_reclaim_all(s);
		status = table_create(s, host_db, host_id, table);
	}
	return status;
}

/* the table's next index from place *i on, and behind it; NULL at the end */
static mot_index *
next_index(mot_table *t, uint32_t *i)
{
	while (*i < atomic_load(&t->index_count))
	{
		mot_index  *index = atomic_load(&t->index[(*i)++]);

		if (index != NULL)
			return index;
	}
	return NULL;
}

/* it goes when the horizon has reached the stamp; what is owed of it before that */
static void
drop_as_of(mot_session *s, mot_table *t, mot_ts stamp)
{
	mot_engine *e = s->engine;
	mot_index  *index;

	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
		atomic_store_explicit(&index->dropped, true, memory_order_relaxed);
	mot_spin_lock(&e->dropped_lock);
	t->dropped_stamp = stamp;
	t->next = e->dropped_tables;
	e->dropped_tables = t;
	atomic_fetch_add(&e->dropped_count, 1);
	mot_spin_unlock(&e->dropped_lock);
}

void
mot_table_drop(mot_session *s, mot_table *t)
{
	mot_ts		stamp;

	unpublish(s->engine, t);
	stamp = mot_owed_stamp(s);
	drop_as_of(s, t, stamp);

	/*
	 * a session that only makes and drops tables commits nothing that moves
	 * the clock
	 */
	mot_clock_advance(s->engine, stamp);
}

void
mot_table_discard(mot_session *s, mot_table *t)
{
	mot_engine *e = s->engine;

	/* it waits for its indexes that have gone before */
	mot_spin_lock(&e->dropped_lock);
	for (mot_index *i = e->dropped_indexes; i != NULL; i = i->next)
		if (i->table == t)
			i->dropped_stamp = 0;
	mot_spin_unlock(&e->dropped_lock);
	drop_as_of(s, t, 0);
	mot_dropped_destroy(s, 0);
}

static void
index_destroy(mot_session *s, mot_index *index)
{
	mot_pool_destroy(index->pool);
	mot_free(s->cache, index);
}

static void
table_destroy(mot_session *s, mot_table *t)
{
	mot_index  *index;

	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
		index_destroy(s, index);
	mot_pool_destroy(t->versions);
	mot_pool_destroy(t->rows);
	mot_table_leave_quotas(t);
	if (atomic_load(&t->definition) != NULL)
		mot_free(s->cache, atomic_load(&t->definition));
	if (atomic_load(&t->places) != NULL)
		mot_free(s->cache, atomic_load(&t->places));
	mot_free(s->cache, t->memory);
}

/* ----------------------------------------------------------------- dropped */

typedef struct dropped_set
{
	const mot_engine *engine;
	mot_table  *tables;
	mot_index  *indexes;
} dropped_set;

static void
mark_still_owed(void *arg, owed_kind kind, void *object)
{
	dropped_set *set = arg;
	const mot_index *index = NULL;
	const mot_pool *pool = NULL;
	mot_index  *mine;

	if (kind == OWED_ENTRY || kind == OWED_ENTRY_DONE)
		index = ((index_drop *) object)->index;
	else
		pool = mot_object_pool(set->engine->region, object);
	for (mot_table *t = set->tables; t != NULL; t = t->next)
	{
		if (pool == t->rows || pool == t->versions || (index != NULL && index->table == t))
			t->still_owed = true;
		for (uint32_t i = 0; (mine = next_index(t, &i)) != NULL;)
			if (pool == mine->pool)
				t->still_owed = true;
	}
	for (mot_index *i = set->indexes; i != NULL; i = i->next)
		if (i == index || i->pool == pool)
			i->still_owed = true;
}

/* take the list's members due by "horizon" off it */
static void
take_due(mot_engine *e, mot_ts horizon, dropped_set *set)
{
	memset(set, 0, sizeof(*set));
	set->engine = e;
	mot_spin_lock(&e->dropped_lock);
	for (mot_index **p = &e->dropped_indexes; *p != NULL;)
	{
		mot_index  *index = *p;

		if (index->dropped_stamp <= horizon)
		{
			*p = index->next;
			index->next = set->indexes;
			set->indexes = index;
			index->still_owed = false;
		}
		else
			p = &index->next;
	}
	for (mot_table **p = &e->dropped_tables; *p != NULL;)
	{
		mot_table  *t = *p;

		if (t->dropped_stamp <= horizon)
		{
			*p = t->next;
			t->next = set->tables;
			set->tables = t;
			t->still_owed = false;
		}
		else
			p = &t->next;
	}
	mot_spin_unlock(&e->dropped_lock);
}

/*
 * Destroy what was dropped before "horizon" and is named by no queue.  Second
 * steps have later stamps than their first ones, so the stamps alone do not
 * tell.  A table waits for its indexes that were dropped before, whoever is at
 * them: their pools count their bytes in it.
 */
void
mot_dropped_destroy(mot_session *s, mot_ts horizon)
{
	mot_engine *e = s->engine;
	dropped_set set;
	bool		complete;
	mot_index  *index;
	mot_table  *t;

	take_due(e, horizon, &set);
	if (set.tables == NULL && set.indexes == NULL)
		return;
	complete = mot_owed_visit(s, mark_still_owed, &set);
	while ((index = set.indexes) != NULL)
	{
		set.indexes = index->next;
		if (complete && !index->still_owed)
		{
			t = index->table;
			index_destroy(s, index);
			/* seq_cst: who finds it gone may give back the table */
			atomic_fetch_sub(&t->dropped_indexes, 1);
			atomic_fetch_sub(&e->dropped_count, 1);
			continue;
		}
		mot_spin_lock(&e->dropped_lock);
		index->next = e->dropped_indexes;
		e->dropped_indexes = index;
		mot_spin_unlock(&e->dropped_lock);
	}
	while ((t = set.tables) != NULL)
	{
		set.tables = t->next;
		if (complete && !t->still_owed && atomic_load(&t->dropped_indexes) == 0)
		{
			table_destroy(s, t);
			atomic_fetch_sub(&e->dropped_count, 1);
			continue;
		}
		mot_spin_lock(&e->dropped_lock);
		t->next = e->dropped_tables;
		e->dropped_tables = t;
		mot_spin_unlock(&e->dropped_lock);
	}
}

/* --------------------------------------------------------------- directory */

static mot_table **
bucket_of(mot_engine *e, uint32_t host_db, uint32_t host_id)
{
	uint64_t	h = ((uint64_t) host_db << 32 | host_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &e->bucket[h >> 54];
}

_Static_assert(DIRECTORY_BUCKETS == 1 << 10, "bucket_of takes ten bits");

mot_table *
mot_table_find(mot_engine *e, uint32_t host_db, uint32_t host_id)
{
	mot_table  *t;

	mot_spin_lock(&e->directory_lock);
	for (t = *bucket_of(e, host_db, host_id); t != NULL; t = t->next)
		if (t->host_db == host_db && t->host_id == host_id)
			break;
	mot_spin_unlock(&e->directory_lock);
	return t;
}

static mot_table *
directory_remove(mot_engine *e, uint32_t host_db, uint32_t host_id, const mot_table *only)
{
	mot_table **p = bucket_of(e, host_db, host_id);

	for (; *p != NULL; p = &(*p)->next)
	{
		mot_table  *t = *p;

		if (t->host_db == host_db && t->host_id == host_id && (only == NULL || t == only))
		{
			*p = t->next;
			t->next = NULL;
			return t;
		}
	}
	return NULL;
}

mot_table *
mot_table_publish(mot_engine *e, mot_table *t)
{
	mot_table  *old;
	mot_table **bucket = bucket_of(e, t->host_db, t->host_id);

	mot_spin_lock(&e->directory_lock);
	old = directory_remove(e, t->host_db, t->host_id, NULL);
	t->next = *bucket;
	*bucket = t;
	mot_spin_unlock(&e->directory_lock);
	return old;
}

static void
unpublish(mot_engine *e, mot_table *t)
{
	mot_spin_lock(&e->directory_lock);
	(void) directory_remove(e, t->host_db, t->host_id, t);
	mot_spin_unlock(&e->directory_lock);
}

void
mot_table_each(mot_engine *e, void (*visit) (void *arg, mot_table *table), void *arg)
{
	mot_spin_lock(&e->directory_lock);
	for (int i = 0; i < DIRECTORY_BUCKETS; i++)
		for (mot_table *t = e->bucket[i]; t != NULL; t = t->next)
			visit(arg, t);
	mot_spin_unlock(&e->directory_lock);
}

/* the table that a pool of rows belongs to */
mot_table *
mot_table_of_pool(const mot_pool *rows)
{
	return (mot_table *) (uintptr_t) ((char *) mot_pool_group_of(rows) - offsetof(mot_table, group));
}

uint32_t
mot_table_host_db(const mot_table *t)
{
	return t->host_db;
}

uint32_t
mot_table_host_id(const mot_table *t)
{
	return t->host_id;
}

/* relaxed: these are for the host, and order nothing */
void
mot_table_set_owner(mot_table *t, uint32_t owner, bool numbered)
{
	atomic_store_explicit(&t->owner, owner, memory_order_relaxed);
	atomic_store_explicit(&t->numbered, numbered, memory_order_relaxed);
}

bool
mot_table_is_numbered(const mot_table *t)
{
	return atomic_load_explicit(&((mot_table *) t)->numbered, memory_order_relaxed);
}

uint32_t
mot_table_owner(const mot_table *t)
{
	return atomic_load_explicit(&((mot_table *) t)->owner, memory_order_relaxed);
}

uint64_t
mot_table_serial(const mot_table *t)
{
	return t->serial;
}

/* ------------------------------------------------------------- definitions */

mot_status
mot_definition_make(mot_session *s, const void *bytes, size_t len, mot_definition **result)
{
	mot_status	status = MOT_NO_MEMORY;
	mot_definition *d = mot_session_alloc(s, s->engine->pool, sizeof(mot_definition) + len,
										  MOT_FOR_NEW_ROW, &status);

	if (d == NULL)
		return status;
	d->len = len;
	memcpy(d->bytes, bytes, len);
	*result = d;
	return MOT_OK;
}

void
mot_definition_discard(mot_session *s, mot_definition *d)
{
	mot_free(s->cache, d);
}

void
mot_table_put_definition(mot_session *s, mot_table *t, mot_definition *d)
{
	/* release: its bytes are there; acquire: for whoever frees the old one */
	mot_definition *old = atomic_exchange_explicit(&t->definition, d, memory_order_acq_rel);
	mot_index  *index;

	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
		mot_index_described(index);
	if (old != NULL)
		mot_owed_retire_as(s, OWED_SEEN, old);
}

const void *
mot_table_definition(const mot_table *t, size_t *len)
{
	/* acquire: pairs with put */
	mot_definition *d = atomic_load_explicit(&((mot_table *) t)->definition, memory_order_acquire);

	*len = d != NULL ? d->len : 0;
	return d != NULL ? d->bytes : NULL;
}

void
mot_table_set_unsettled(mot_table *t, mot_table *replaces)
{
	atomic_store(&t->replaces, replaces);
	/* seq_cst: whoever finds it unsettled finds what it replaces */
	atomic_store(&t->unsettled, true);
}

void
mot_table_settle(mot_table *t)
{
	/* before anybody else can come to it; see precede.c */
	atomic_store(&t->settled_at, atomic_load(&t->engine->clock));
	atomic_store(&t->unsettled, false);
	atomic_store(&t->replaces, NULL);
}

bool
mot_table_is_settled(const mot_table *t, mot_table **replaces)
{
	if (!atomic_load(&((mot_table *) t)->unsettled))
		return true;
	*replaces = atomic_load(&((mot_table *) t)->replaces);
	return false;
}

mot_ts
mot_commit_draw(mot_session *s)
{
	mot_ts		ts = atomic_fetch_add(&s->engine->clock, 1) + 1;

	/* release: the host tells of the commit after this */
	atomic_store_explicit(&s->slot->last_commit, ts, memory_order_release);
	return ts;
}

void
mot_table_set_born(mot_table *t, mot_ts ts, bool refuse_older)
{
	atomic_store(&t->refuse_older, refuse_older);
	atomic_store(&t->born, ts);
}

mot_ts
mot_table_born(const mot_table *t, bool *refuse_older)
{
	*refuse_older = atomic_load(&((mot_table *) t)->refuse_older);
	return atomic_load(&((mot_table *) t)->born);
}

void
mot_table_stats(const mot_table *table, mot_table_stat *stat)
{
	mot_table  *t = (mot_table *) table;
	mot_index  *index;
	uint64_t	pages,
				used;

	memset(stat, 0, sizeof(*stat));
	for (int i = 0; i < TABLE_SHARDS; i++)
	{
		/* relaxed: statistics */
		stat->rows += atomic_load_explicit(&t->shard[i].rows, memory_order_relaxed);
		stat->inserts += atomic_load_explicit(&t->shard[i].inserts, memory_order_relaxed);
		stat->updates += atomic_load_explicit(&t->shard[i].updates, memory_order_relaxed);
		stat->deletes += atomic_load_explicit(&t->shard[i].deletes, memory_order_relaxed);
	}
	mot_pool_stats(t->rows, &pages, &used);
	stat->row_bytes = pages;
	stat->used_bytes = used;
	mot_pool_stats(t->versions, &pages, &used);
	stat->row_bytes += pages;
	stat->used_bytes += used;
	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
	{
		mot_pool_stats(index->pool, &pages, &used);
		stat->index_bytes += pages;
	}
}

uint64_t
mot_table_objects(const mot_table *table)
{
	return mot_pool_objects(table->rows) + mot_pool_objects(table->versions);
}

/* ----------------------------------------------------------------- indexes */

static mot_status
index_create(mot_session *s, mot_table *t, uint32_t host_id,
			 unsigned flags, mot_index **result)
{
	mot_engine *e = s->engine;
	mot_status	status = MOT_NO_MEMORY;
	mot_index  *index;

	if (mot_table_index_count(t) >= MOT_MAX_INDEXES)
		return MOT_TOO_LARGE;
	index = mot_session_alloc(s, e->pool, sizeof(mot_index), MOT_FOR_NEW_ROW, &status);
	if (index == NULL)
		return status;
	memset(index, 0, sizeof(*index));
	index->table = t;
	index->host_id = host_id;
	index->flags = flags;
	index->made = mot_engine_clock(e);
	atomic_init(&index->valid_from, index->made);
	index->pool = mot_pool_create(e->region, MOT_POOL_PLAIN, &t->group);
	mot_hints_begin(&index->hints, e->region, host_id);
	if (index->pool != NULL)
		index->tree = mot_tree_create(&s->tree, index->pool);
	if (index->tree == NULL)
	{
		status = MOT_NO_MEMORY;
		if (index->pool != NULL)
		{
			status = mot_session_refused(s, index->pool, s->tree.why);
			mot_pool_destroy(index->pool);
		}
		mot_free(s->cache, index);
		return status;
	}
	mot_spin_lock(&t->index_lock);
	/* relaxed: changed under the lock only; release: it is initialised */
	atomic_store_explicit(&index->sibling,
						  atomic_load_explicit(&t->indexes, memory_order_relaxed),
						  memory_order_relaxed);
	atomic_store_explicit(&t->indexes, index, memory_order_release);
	mot_spin_unlock(&t->index_lock);
	*result = index;
	return MOT_OK;
}

mot_status
mot_index_create(mot_session *s, mot_table *t, uint32_t host_id,
				 unsigned flags, mot_index **result)
{
	mot_status	status = index_create(s, t, host_id, flags, result);

	if (status == MOT_NO_MEMORY || status == MOT_TABLE_FULL)
	{
		(void) mot_reclaim_all(s);
		status = index_create(s, t, host_id, flags, result);
	}
	return status;
}

void
mot_index_described(mot_index *index)
{
	/* release: not before the definition that does so */
	atomic_store_explicit(&index->described, true, memory_order_release);
}

void
mot_index_set_behind(mot_index *index, bool behind)
{
	/*
	 * relaxed, both: set while nobody writes; who sees too late that it is
	 * not looks in vain
	 */
	atomic_store_explicit(&index->behind, behind, memory_order_relaxed);
}

bool
mot_index_is_behind(const mot_index *index)
{
	return atomic_load_explicit(&((mot_index *) index)->behind, memory_order_relaxed);
}

void
mot_index_attach(mot_index *index)
{
	mot_table  *t = index->table;
	uint32_t	n,
				i;

	mot_spin_lock(&t->index_lock);
	n = atomic_load(&t->index_count);
	for (i = 0; i < n; i++)
		if (atomic_load(&t->index[i]) == NULL)
			break;
	mot_assert(i < MOT_MAX_INDEXES);
	/* seq_cst, both: the count covers an entry only when it is there */
	atomic_store(&t->index[i], index);
	if (i == n)
		atomic_store(&t->index_count, n + 1);
	mot_spin_unlock(&t->index_lock);
}

void
mot_index_detach(mot_index *index)
{
	mot_table  *t = index->table;

	mot_spin_lock(&t->index_lock);
	for (uint32_t i = 0, n = atomic_load(&t->index_count); i < n; i++)
		if (atomic_load(&t->index[i]) == index)
			atomic_store(&t->index[i], NULL);
	mot_spin_unlock(&t->index_lock);
}

void
mot_index_drop(mot_session *s, mot_index *index)
{
	mot_engine *e = s->engine;
	mot_table  *t = index->table;
	mot_index  *_Atomic * link = &t->indexes;
	mot_index  *other;
	mot_ts		stamp;

	mot_index_detach(index);
	/* out of the list; its own link leads who stands on it to the rest */
	mot_spin_lock(&t->index_lock);
	/* relaxed: as when it came in */
	while ((other = atomic_load_explicit(link, memory_order_relaxed)) != index)
		link = &other->sibling;
	atomic_store_explicit(link, atomic_load_explicit(&index->sibling, memory_order_relaxed),
						  memory_order_release);
	mot_spin_unlock(&t->index_lock);

	/*
	 * release: who sees a definition that is put after this sees this, see
	 * mot_row_leave_indexes
	 */
	atomic_store_explicit(&index->dropped, true, memory_order_release);
	mot_spin_lock(&e->dropped_lock);
	index->dropped_stamp = stamp = mot_owed_stamp(s);
	index->next = e->dropped_indexes;
	e->dropped_indexes = index;
	atomic_fetch_add(&t->dropped_indexes, 1);
	atomic_fetch_add(&e->dropped_count, 1);
	mot_spin_unlock(&e->dropped_lock);
	mot_clock_advance(e, stamp);
}

mot_index *
mot_table_index(const mot_table *table, uint32_t host_id)
{
	mot_table  *t = (mot_table *) table;

	for (uint32_t i = 0, n = atomic_load(&t->index_count); i < n; i++)
	{
		mot_index  *index = atomic_load(&t->index[i]);

		if (index != NULL && index->host_id == host_id)
			return index;
	}
	return NULL;
}

unsigned
mot_table_index_count(const mot_table *table)
{
	mot_table  *t = (mot_table *) table;
	unsigned	count = 0;

	for (uint32_t i = 0, n = atomic_load(&t->index_count); i < n; i++)
		if (atomic_load(&t->index[i]) != NULL)
			count++;
	return count;
}

mot_index *
mot_table_index_at(const mot_table *table, unsigned nth)
{
	mot_table  *t = (mot_table *) table;
	mot_index  *index;

	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
		if (nth-- == 0)
			break;
	return index;
}

/* before anybody else can come to the index */
void
mot_index_set_form(mot_index *index, uint64_t form)
{
	index->form = form;
}

uint64_t
mot_index_form(const mot_index *index)
{
	return index->form;
}

uint32_t
mot_index_host_id(const mot_index *index)
{
	return index->host_id;
}

bool
mot_index_is_unique(const mot_index *index)
{
	return (index->flags & MOT_INDEX_UNIQUE) != 0;
}

mot_table *
mot_index_table(const mot_index *index)
{
	return index->table;
}

mot_ts
mot_index_valid_from(const mot_index *index)
{
	/* relaxed: whoever may use the index has been told of it otherwise */
	return atomic_load_explicit(&((mot_index *) index)->valid_from, memory_order_relaxed);
}

void
mot_index_set_valid_from(mot_index *index, mot_ts ts)
{
	/* relaxed: as above; and in between either value is true */
	atomic_store_explicit(&index->valid_from, ts, memory_order_relaxed);
}

void
mot_load_done(mot_table *t)
{
	mot_index  *index;

	for (uint32_t i = 0; (index = next_index(t, &i)) != NULL;)
		mot_index_set_valid_from(index, 0);
}

void
mot_index_stats(const mot_index *index, mot_index_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	mot_pool_stats(index->pool, &stat->bytes, &stat->used_bytes);
	stat->stale_entries = atomic_load_explicit(&((mot_index *) index)->stale, memory_order_relaxed);
}
