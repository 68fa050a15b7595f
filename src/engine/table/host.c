/*-------------------------------------------------------------------------
 *
 * host.c
 *	  What the engine does for its host's own bookkeeping: bytes in the
 *	  region, and rows that a replayed load has brought.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

void *
mot_host_alloc(mot_session *s, size_t size, bool needed, mot_status *status)
{
	*status = MOT_OK;
	return mot_session_alloc(s, s->engine->pool, size, needed ? MOT_FOR_DELETE : MOT_FOR_NEW_ROW, status);
}

void
mot_host_free(mot_session *s, void *bytes)
{
	mot_free(s->cache, bytes);
}

void
mot_session_use_reserve(mot_session *s, bool use)
{
	s->use_reserve = use;
}

void
mot_session_flush(mot_session *s)
{
	mot_cache_flush(s->cache);
}

/*
 * The clock moves first: a snapshot taken from now on is entitled to the
 * rows, and whoever has an older one is not.
 */
mot_ts
mot_load_stamp(mot_session *s, mot_table *table)
{
	mot_ts		ts = atomic_fetch_add(&s->engine->clock, 1) + 1;
	uint64_t	pages = mot_pool_directory_size(table->rows);

	for (uint64_t i = 0; i < pages; i++)
	{
		mot_page_view page;
		mot_row    *row;

		if (!mot_pool_page(table->rows, i, &page))
			continue;
		while ((row = mot_page_next(table->rows, &page)) != NULL)
		{
			uint64_t	loaded = TS_LOADED;

			/* relaxed: publishing the table makes it seen */
			(void) atomic_compare_exchange_strong_explicit(&row->inlined.ts, &loaded, ts,
														   memory_order_relaxed,
														   memory_order_relaxed);
		}
	}
	return ts;
}
