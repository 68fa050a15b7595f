/*-------------------------------------------------------------------------
 *
 * lots.c
 *	  Pages divided into lots, for pools that have little.
 *
 * A table with one row needs an object of this class and one of that, and
 * would take a page of 64 KB for each.  So the first pages of a pool are lots:
 * eighths of a page, which different pools have.  To its pool a lot is a page
 * like any other, only smaller: it has a descriptor, row bits, a place in the
 * directory, and a number, which is beyond those of pages.  What finds a
 * descriptor by an address sees from the page's own that it is divided
 * (mot_page_of).
 *
 * The page belongs to the system pool while it is divided, and is whole again
 * when its last lot has come back.  Pages with free lots are in a list for
 * each node; the bits of "free_count" say which are free.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

#define ALL_LOTS ((1u << MOT_LOTS) - 1)

/* a free lot on that node, or MOT_NO_PAGE: a page has to be divided */
static uint32_t
lot_take(mot_region *region, unsigned node)
{
	mot_lot_list *list = &region->state->lots[node];
	uint32_t	lot = MOT_NO_PAGE;

	mot_spin_lock(&list->lock);
	if (list->partial.head != 0)
	{
		uint32_t	page_no = list->partial.head - 1;
		mot_page   *page = &region->pages[page_no];
		unsigned	i = (unsigned) __builtin_ctz(page->free_count);

		page->free_count &= (uint16_t) ~(1u << i);
		if (page->free_count == 0)
			mot_partial_remove(region, &list->partial, page_no);
		lot = mot_lot_no(region, page_no, i);
	}
	mot_spin_unlock(&list->lock);
	return lot;
}

/* divide a page that was just taken; the caller gets its first lot */
static uint32_t
lots_begin(mot_region *region, uint32_t page_no, unsigned node)
{
	mot_lot_list *list = &region->state->lots[node];
	mot_page   *page = &region->pages[page_no];

	page->free_count = ALL_LOTS & ~1u;

	/*
	 * relaxed: who asks by an address of an object in a lot has got that from
	 * whoever took the lot; who asks by any address compares what it finds.
	 */
	atomic_store_explicit(&page->pool, NULL, memory_order_relaxed);
	/* release: as in acquire_page */
	atomic_store_explicit(&page->shape, MOT_SHAPE(MOT_LOT_SIZE, node, MOT_CLASS_LOTS),
						  memory_order_release);
	/* relaxed: a figure */
	atomic_fetch_add_explicit(&region->state->divided, 1, memory_order_relaxed);
	mot_spin_lock(&list->lock);
	mot_partial_push(region, &list->partial, page_no);
	mot_spin_unlock(&list->lock);
	return mot_lot_no(region, page_no, 0);
}

/*
 * A lot comes back.  If it was the last one in use of its page, the page is
 * whole again and the caller's: its number, else MOT_NO_PAGE.
 */
static uint32_t
lot_put(mot_region *region, uint32_t lot)
{
	uint32_t	page_no = mot_lot_page(region, lot);
	mot_page   *page = &region->pages[page_no];

	/* relaxed: it is divided as long as the lot is not back */
	uint64_t	shape = atomic_load_explicit(&page->shape, memory_order_relaxed);
	mot_lot_list *list = &region->state->lots[MOT_SHAPE_NODE(shape)];
	bool		whole;

	mot_spin_lock(&list->lock);
	if (page->free_count == 0)
		mot_partial_push(region, &list->partial, page_no);
	page->free_count |= (uint16_t) (1u << (lot - mot_lot_no(region, page_no, 0)));
	whole = page->free_count == ALL_LOTS;
	if (whole)
	{
		mot_partial_remove(region, &list->partial, page_no);
		/* release: as in release_page */
		atomic_store_explicit(&page->shape, 0, memory_order_release);
	}
	mot_spin_unlock(&list->lock);
	return whole ? page_no : MOT_NO_PAGE;
}

/* --------------------------------------------------------------- for a pool */

/* a lot; of a page that is divided already, or divided now */
uint32_t
mot_take_lot(mot_pool *pool, unsigned node, mot_purpose purpose, int *why)
{
	mot_region *region = pool->region;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);
	uint32_t	page_no;

	if (!mot_charge_group(pool, MOT_LOT_SIZE, purpose, why))
		return MOT_NO_PAGE;
	page_no = lot_take(region, node);
	if (page_no != MOT_NO_PAGE)
		return page_no;

	/* the page is the system pool's, and taken for this one */
	if (mot_charge_region(pool, MOT_PAGE_SIZE, purpose, why))
	{
		(void) mot_charge_group(system, MOT_PAGE_SIZE, purpose, NULL);
		page_no = mot_pages_take(region, system, node, 1);
		if (page_no != MOT_NO_PAGE)
			return lots_begin(region, page_no,
							  region->chunks[page_no / MOT_PAGES_PER_CHUNK].node);
		mot_uncharge(system, MOT_PAGE_SIZE);
		if (why)
			*why = 0;
	}
	mot_uncharge_group(pool, MOT_LOT_SIZE);
	return MOT_NO_PAGE;
}

void
mot_put_lot(mot_pool *pool, uint32_t lot, bool give_back)
{
	mot_region *region = pool->region;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);
	uint32_t	page_no = lot_put(region, lot);

	if (page_no != MOT_NO_PAGE)
	{
		mot_pages_put(region, system, page_no, 1, give_back);
		mot_uncharge(system, MOT_PAGE_SIZE);
	}
	mot_uncharge_group(pool, MOT_LOT_SIZE);
}
