/*-------------------------------------------------------------------------
 *
 * quota.c
 *	  What the tables of a database, or of a role, have together, and may have.
 *
 * The bytes are counted where pages are: memory/charge.c.  Here is who counts in what.
 * A quota that nobody counts in any more is kept for another database or role, since
 * whoever looks at figures does so without a lock.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

struct mot_quota
{
	mot_pool_quota memory;
	/* engine's quota lock: */
	mot_quota_kind kind;
	uint32_t	host_id;
	uint32_t	users;
	uint64_t	changes;		/* of the limit, ever */
	bool		known;			/* the limit is */
	mot_quota  *next;			/* in its bucket, or of the spare ones */
};

static mot_quota **
bucket_of(mot_engine *e, mot_quota_kind kind, uint32_t host_id)
{
	uint64_t	h = ((uint64_t) kind << 32 | host_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &e->quota[h >> 56];
}

_Static_assert(QUOTA_BUCKETS == 1 << 8, "bucket_of takes eight bits");

static mot_quota *
find(mot_engine *e, mot_quota_kind kind, uint32_t host_id)
{
	mot_quota  *q = *bucket_of(e, kind, host_id);

	while (q != NULL && (q->kind != kind || q->host_id != host_id))
		q = q->next;
	return q;
}

static void
add_spare(mot_engine *e, mot_quota *q)
{
	q->next = e->spare_quotas;
	e->spare_quotas = q;
}

/* a spare one is that quota from now on */
static mot_quota *
begin(mot_engine *e, mot_quota_kind kind, uint32_t host_id)
{
	mot_quota **bucket = bucket_of(e, kind, host_id);
	mot_quota  *q = e->spare_quotas;

	e->spare_quotas = q->next;
	q->kind = kind;
	q->host_id = host_id;
	q->users = 0;
	q->known = false;
	/* relaxed: figures, see charge.c */
	atomic_store_explicit(&q->memory.limit, 0, memory_order_relaxed);
	q->next = *bucket;
	*bucket = q;
	return q;
}

mot_quota *
mot_quota_hold(mot_session *s, mot_quota_kind kind, uint32_t host_id)
{
	mot_engine *e = s->engine;
	mot_status	status;
	mot_quota  *made = NULL;
	mot_quota  *q;

	for (;;)
	{
		mot_spin_lock(&e->quota_lock);
		if (made != NULL)
			add_spare(e, made);
		q = find(e, kind, host_id);
		if (q == NULL && e->spare_quotas != NULL)
			q = begin(e, kind, host_id);
		if (q != NULL)
			q->users++;
		mot_spin_unlock(&e->quota_lock);
		if (q != NULL)
			return q;
		made = mot_session_alloc(s, e->pool, sizeof(mot_quota), MOT_FOR_DELETE, &status);
		if (made == NULL)
			return NULL;
		memset(made, 0, sizeof(*made));
	}
}

void
mot_quota_release(mot_engine *e, mot_quota *quota)
{
	mot_spin_lock(&e->quota_lock);
	if (--quota->users == 0)
	{
		mot_quota **p = bucket_of(e, quota->kind, quota->host_id);

		mot_assert(atomic_load(&quota->memory.bytes) == 0);
		while (*p != quota)
			p = &(*p)->next;
		*p = quota->next;
		add_spare(e, quota);
	}
	mot_spin_unlock(&e->quota_lock);
}

/* ------------------------------------------------------------------ tables */

void
mot_table_set_limit(mot_table *t, uint64_t bytes)
{
	atomic_store(&t->group.limit, bytes);
}

void
mot_table_set_bounded(mot_table *t)
{
	atomic_store(&t->group.bounded, true);
}

static void
put(mot_table *t, mot_quota_kind kind, mot_quota *quota, bool first)
{
	mot_pool_quota *old = mot_group_set_quota(&t->group, kind, quota != NULL ? &quota->memory : NULL, first);

	if (old != NULL)
		mot_quota_release(t->engine, (mot_quota *) old);
}

_Static_assert(offsetof(mot_quota, memory) == 0 && MOT_GROUP_QUOTAS > MOT_QUOTA_ROLE, "a group's quotas are these");

void
mot_table_put_role(mot_table *t, mot_quota *quota, bool first)
{
	put(t, MOT_QUOTA_ROLE, quota, first);
}

/* of a table that is being made */
bool
mot_table_enter_quotas(mot_session *s, mot_table *t)
{
	mot_quota  *q = mot_quota_hold(s, MOT_QUOTA_DATABASE, t->host_db);

	if (q != NULL)
		put(t, MOT_QUOTA_DATABASE, q, false);
	return q != NULL;
}

/* it has nothing any more */
void
mot_table_leave_quotas(mot_table *t)
{
	put(t, MOT_QUOTA_DATABASE, NULL, false);
	put(t, MOT_QUOTA_ROLE, NULL, false);
}

mot_quota *
mot_table_quota(const mot_table *t, mot_quota_kind kind)
{
	return (mot_quota *) atomic_load(&((mot_table *) t)->group.quota[kind]);
}

/* ------------------------------------------------------------------ limits */

static void
set_limit(mot_quota *q, uint64_t limit)
{
	q->changes++;
	q->known = true;
	/* relaxed: a new limit holds for whoever sees it */
	atomic_store_explicit(&q->memory.limit, limit, memory_order_relaxed);
}

bool
mot_quota_is_known(mot_engine *e, const mot_quota *q, uint64_t *changes)
{
	bool		known;

	mot_spin_lock(&e->quota_lock);
	known = q->known;
	*changes = q->changes;
	mot_spin_unlock(&e->quota_lock);
	return known;
}

void
mot_quota_learn(mot_engine *e, mot_quota *q, uint64_t changes, uint64_t limit)
{
	mot_spin_lock(&e->quota_lock);
	if (q->changes == changes)
		set_limit(q, limit);
	mot_spin_unlock(&e->quota_lock);
}

void
mot_quota_set(mot_engine *e, mot_quota_kind kind, uint32_t host_id, uint64_t limit)
{
	mot_quota  *q;

	mot_spin_lock(&e->quota_lock);
	q = find(e, kind, host_id);
	if (q != NULL)
		set_limit(q, limit);
	mot_spin_unlock(&e->quota_lock);
}

void
mot_engine_set_insert_reserve(mot_engine *e, double part)
{
	mot_region_set_insert_limit(e->region, (uint64_t) ((1 - part) * (double) mot_region_max(e->region)));
}

/* ----------------------------------------------------------------- reports */

void
mot_quota_report_get(const mot_quota *quota, mot_quota_report *report)
{
	mot_quota  *q = (mot_quota *) quota;

	report->kind = q->kind;
	report->host_id = q->host_id;
	/* relaxed: figures */
	report->bytes = atomic_load_explicit(&q->memory.bytes, memory_order_relaxed);
	report->limit = atomic_load_explicit(&q->memory.limit, memory_order_relaxed);
}

bool
mot_quota_find(mot_engine *e, mot_quota_kind kind, uint32_t host_id, mot_quota_report *report)
{
	const mot_quota *q;

	mot_spin_lock(&e->quota_lock);
	q = find(e, kind, host_id);
	if (q != NULL)
		mot_quota_report_get(q, report);
	mot_spin_unlock(&e->quota_lock);
	return q != NULL;
}

/* why an allocation of the pool failed, as mot_alloc says it */
mot_status
mot_session_refused(mot_session *s, const mot_pool *pool, int why)
{
	mot_pool_group *group = mot_pool_group_of(pool);

	if (why == 0)
		return MOT_NO_MEMORY;
	s->full = why > 1 ? (const mot_quota *) atomic_load(&group->quota[why - 2]) : NULL;
	return MOT_TABLE_FULL;
}

bool
mot_session_full(const mot_session *s, mot_quota_report *report)
{
	if (s->full == NULL)
		return false;
	mot_quota_report_get(s->full, report);
	return true;
}
