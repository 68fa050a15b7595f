/*-------------------------------------------------------------------------
 *
 * charge.c
 *	  What pools may have: of the region, of tables' own limits, and of what several
 *	  tables may have together.
 *
 * Pages are counted before they are taken and after they are given back, so
 * neither the region nor a group of pools nor a quota ever has more than it may.  How much
 * that is depends on what the memory is for: see mot_purpose.
 *
 * All that is written here is written once for a page, or a lot.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

/*
 * relaxed, here and below: counters and limits order nothing; a new limit holds for whoever sees it
 */
static inline uint64_t
load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit((_Atomic uint64_t *) counter, memory_order_relaxed);
}

static inline bool
is_bounded(const mot_pool_group *group)
{
	return group != NULL && atomic_load_explicit(&((mot_pool_group *) group)->bounded, memory_order_relaxed);
}

/* NULL: none, or it does not bind */
static inline mot_pool_quota *
binding_quota(const mot_pool_group *group, unsigned i)
{
	mot_pool_quota *quota = is_bounded(group) ?
	atomic_load_explicit(&((mot_pool_group *) group)->quota[i], memory_order_relaxed) : NULL;

	return quota != NULL && load(&quota->limit) != 0 ? quota : NULL;
}

/* how many bytes of pages the region may have when new rows of the group's have got theirs */
static uint64_t
insert_limit(const mot_region *region, const mot_pool_group *group)
{
	uint64_t	limit = is_bounded(group) ? load(&region->state->insert_limit) : 0;

	return limit != 0 ? limit : region->high_water;
}

void
mot_region_set_insert_limit(mot_region *region, uint64_t bytes)
{
	atomic_store_explicit(&region->state->insert_limit,
						  bytes < region->high_water ? bytes : region->high_water, memory_order_relaxed);
}

/* how many bytes of pages the region may have with another one for that purpose */
static uint64_t
region_limit(const mot_region *region, const mot_pool_group *group, mot_purpose purpose)
{
	uint64_t	reserve = region->max_bytes - region->high_water;

	switch (purpose)
	{
		case MOT_FOR_NEW_ROW:
			return insert_limit(region, group);
		case MOT_FOR_NEW_KEY:
			return insert_limit(region, group) + reserve / 2;
		case MOT_FOR_CHANGE:
			return region->max_bytes - reserve / 4;
		case MOT_FOR_DELETE:
			break;
	}
	return region->max_bytes;
}

/* of a group or quota */
static uint64_t
limit_for(uint64_t limit, mot_purpose purpose)
{
	uint64_t	reserve = limit / 16 > MOT_GROUP_RESERVE ? limit / 16 : MOT_GROUP_RESERVE;

	if (limit == 0 || purpose == MOT_FOR_DELETE)
		return UINT64_MAX;
	if (purpose == MOT_FOR_NEW_ROW)
		return limit;
	return limit + (purpose == MOT_FOR_NEW_KEY ? reserve / 2 : reserve);
}

bool
mot_pool_is_short(const mot_pool *pool)
{
	const mot_pool_group *group = pool->group;

	if (mot_region_used(pool->region) > MOT_HIGH_WATER(insert_limit(pool->region, group)))
		return true;
	if (group == NULL)
		return false;
	if (load(&group->limit) != 0 && load(&group->bytes) > MOT_HIGH_WATER(load(&group->limit)))
		return true;
	for (unsigned i = 0; i < MOT_GROUP_QUOTAS; i++)
	{
		const mot_pool_quota *quota = binding_quota(group, i);

		if (quota != NULL && load(&quota->bytes) > MOT_HIGH_WATER(load(&quota->limit)))
			return true;
	}
	return false;
}

static uint64_t
least(uint64_t left, uint64_t used, uint64_t limit)
{
	uint64_t	here = limit > used ? limit - used : 0;

	return here < left ? here : left;
}

uint64_t
mot_pool_left(const mot_pool *pool)
{
	const mot_pool_group *group = pool->group;
	uint64_t	left = least(UINT64_MAX, mot_region_used(pool->region), insert_limit(pool->region, group));

	if (group != NULL && load(&group->limit) != 0)
		left = least(left, load(&group->bytes), load(&group->limit));
	for (unsigned i = 0; i < MOT_GROUP_QUOTAS; i++)
	{
		const mot_pool_quota *quota = binding_quota(group, i);

		if (quota != NULL)
			left = least(left, load(&quota->bytes), load(&quota->limit));
	}
	return left;
}

/* pages have their own locks */
static bool
raise_to(_Atomic uint64_t *counter, uint64_t bytes, uint64_t limit)
{
	uint64_t	old = load(counter);

	do
	{
		if (bytes > limit || old > limit - bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(counter, &old, old + bytes,
													memory_order_relaxed,
													memory_order_relaxed));
	return true;
}

static void
lower(_Atomic uint64_t *counter, uint64_t bytes)
{
	atomic_fetch_sub_explicit(counter, bytes, memory_order_relaxed);
}

/* count bytes of pages against the region, the group and its quotas, or refuse */
bool
mot_charge(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why)
{
	if (!mot_charge_region(pool, bytes, purpose, why))
		return false;
	if (!mot_charge_group(pool, bytes, purpose, why))
	{
		mot_uncharge_region(pool->region, bytes);
		return false;
	}
	return true;
}

/* against the region alone */
bool
mot_charge_region(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;

	if (raise_to(&region->state->used, bytes, region_limit(region, pool->group, purpose)))
		return true;
	if (why)
		*why = 0;
	return false;
}

/* with the group's lock: of it, and of the first of its quotas */
static void
lower_group(mot_pool_group *group, unsigned quotas, uint64_t bytes)
{
	lower(&group->bytes, bytes);
	for (unsigned i = 0; i < quotas; i++)
	{
		mot_pool_quota *quota = atomic_load_explicit(&group->quota[i], memory_order_relaxed);

		if (quota != NULL)
			lower(&quota->bytes, bytes);
	}
}

/* with the group's lock; 0: done, else why not */
static int
charge_group(mot_pool_group *group, uint64_t bytes, mot_purpose purpose)
{
	unsigned	i;

	if (!raise_to(&group->bytes, bytes, limit_for(load(&group->limit), purpose)))
		return 1;
	for (i = 0; i < MOT_GROUP_QUOTAS; i++)
	{
		mot_pool_quota *quota = atomic_load_explicit(&group->quota[i], memory_order_relaxed);

		if (quota != NULL &&
			!raise_to(&quota->bytes, bytes,
					  limit_for(is_bounded(group) ? load(&quota->limit) : 0, purpose)))
			break;
	}
	if (i == MOT_GROUP_QUOTAS)
		return 0;
	lower_group(group, i, bytes);
	return 2 + (int) i;
}

/* against the group and its quotas: the region has counted them */
bool
mot_charge_group(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why)
{
	mot_pool_group *group = pool->group;

	if (group)
	{
		int			refused;

		mot_spin_lock(&group->lock);
		refused = charge_group(group, bytes, purpose);
		mot_spin_unlock(&group->lock);
		if (refused)
		{
			if (why)
				*why = refused;
			return false;
		}
	}
	atomic_fetch_add_explicit(&pool->page_bytes, bytes, memory_order_relaxed);
	return true;
}

void
mot_uncharge(mot_pool *pool, uint64_t bytes)
{
	mot_uncharge_group(pool, bytes);
	mot_uncharge_region(pool->region, bytes);
}

/* the pages are back already */
void
mot_uncharge_region(mot_region *region, uint64_t bytes)
{
	lower(&region->state->used, bytes);
}

void
mot_uncharge_group(mot_pool *pool, uint64_t bytes)
{
	mot_pool_group *group = pool->group;

	lower(&pool->page_bytes, bytes);
	if (group == NULL)
		return;
	mot_spin_lock(&group->lock);
	lower_group(group, MOT_GROUP_QUOTAS, bytes);
	mot_spin_unlock(&group->lock);
}

mot_pool_quota *
mot_group_set_quota(mot_pool_group *group, unsigned i, mot_pool_quota *quota, bool first)
{
	mot_pool_quota *old;
	uint64_t	bytes;

	mot_spin_lock(&group->lock);
	old = atomic_load_explicit(&group->quota[i], memory_order_relaxed);
	if (first && old != NULL)
	{
		mot_spin_unlock(&group->lock);
		return quota;
	}
	bytes = load(&group->bytes);
	if (old != NULL)
		lower(&old->bytes, bytes);
	if (quota != NULL)
		atomic_fetch_add_explicit(&quota->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&group->quota[i], quota, memory_order_relaxed);
	mot_spin_unlock(&group->lock);
	return old;
}
