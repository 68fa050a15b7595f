/*-------------------------------------------------------------------------
 *
 * charge.c
 *	  What pools may have of the region, and tables of their own limits.
 *
 * Pages are counted before they are taken and after they are given back, so
 * neither the region nor a group of pools ever has more than it may.  How much
 * that is depends on what the memory is for: see mot_purpose.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

/* how many bytes of pages the region may have with another one for that purpose */
static uint64_t
region_limit(const mot_region *region, mot_purpose purpose)
{
	uint64_t	reserve = region->max_bytes - region->high_water;

	switch (purpose)
	{
		case MOT_FOR_NEW_ROW:
			return region->high_water;
		case MOT_FOR_NEW_KEY:
			return region->max_bytes - reserve / 2;
		case MOT_FOR_CHANGE:
			return region->max_bytes - reserve / 4;
		case MOT_FOR_DELETE:
			break;
	}
	return region->max_bytes;
}

static uint64_t
group_limit(const mot_pool_group *group, mot_purpose purpose)
{
	/* relaxed: a new limit holds for whoever sees it */
	uint64_t	limit = atomic_load_explicit(&((mot_pool_group *) group)->limit, memory_order_relaxed);
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
	/* relaxed, all: figures */
	uint64_t	limit = pool->group ?
	atomic_load_explicit(&pool->group->limit, memory_order_relaxed) : 0;

	if (mot_region_used(pool->region) > MOT_HIGH_WATER(pool->region->high_water))
		return true;
	return limit != 0 &&
		atomic_load_explicit(&pool->group->bytes, memory_order_relaxed) > MOT_HIGH_WATER(limit);
}

uint64_t
mot_pool_left(const mot_pool *pool)
{
	/* relaxed, all: figures */
	uint64_t	used = mot_region_used(pool->region);
	uint64_t	left = pool->region->high_water > used ? pool->region->high_water - used : 0;
	uint64_t	limit = pool->group ?
	atomic_load_explicit(&pool->group->limit, memory_order_relaxed) : 0;

	if (limit != 0)
	{
		used = atomic_load_explicit(&pool->group->bytes, memory_order_relaxed);
		if (used > limit)
			used = limit;
		if (limit - used < left)
			left = limit - used;
	}
	return left;
}

/* relaxed: the counter is all that is at stake; pages have their own locks */
static bool
raise_to(_Atomic uint64_t *counter, uint64_t bytes, uint64_t limit)
{
	uint64_t	old = atomic_load_explicit(counter, memory_order_relaxed);

	do
	{
		if (bytes > limit || old > limit - bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(counter, &old, old + bytes,
													memory_order_relaxed,
													memory_order_relaxed));
	return true;
}

/* count bytes of pages against the region and the group, or refuse */
bool
mot_charge(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;

	if (!raise_to(&region->state->used, bytes, region_limit(region, purpose)))
	{
		if (why)
			*why = 0;
		return false;
	}
	if (!mot_charge_group(pool, bytes, purpose, why))
	{
		atomic_fetch_sub_explicit(&region->state->used, bytes, memory_order_relaxed);
		return false;
	}
	return true;
}

/* against the group alone: the region has counted them before */
bool
mot_charge_group(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why)
{
	mot_pool_group *group = pool->group;

	if (group)
	{
		if (!raise_to(&group->bytes, bytes, group_limit(group, purpose)))
		{
			if (why)
				*why = 1;
			return false;
		}
	}
	/* relaxed: a figure */
	atomic_fetch_add_explicit(&pool->page_bytes, bytes, memory_order_relaxed);
	return true;
}

void
mot_uncharge(mot_pool *pool, uint64_t bytes)
{
	mot_uncharge_group(pool, bytes);
	/* relaxed: as in raise_to; the pages are back already */
	atomic_fetch_sub_explicit(&pool->region->state->used, bytes, memory_order_relaxed);
}

void
mot_uncharge_group(mot_pool *pool, uint64_t bytes)
{
	/* relaxed: as in raise_to */
	atomic_fetch_sub_explicit(&pool->page_bytes, bytes, memory_order_relaxed);
	if (pool->group)
		atomic_fetch_sub_explicit(&pool->group->bytes, bytes, memory_order_relaxed);
}
