/*-------------------------------------------------------------------------
 *
 * rehome.c
 *	  Pages that come to another node than the one whose chunk they are of.
 *
 * Rows do not change their address, so what is on the wrong node has its memory
 * moved under it: the kernel copies a page of the system and lets whoever touches
 * it meanwhile wait for that, some microseconds.  Then the page is the
 * other node's, too: what is freed in it is found there by the next who wants
 * memory of that node.
 *
 * A page's node is in its shape and says in which node's list of its class it
 * is.  It changes under the class locks of both nodes, taken in the order of
 * their numbers; who has read it without a lock looks again under the one that
 * it named (mot_pool_put).  What still lies in caches as the old node's is handed out
 * as such, once.
 *
 * The chunk stays what it was: the page is counted there, and goes back there when
 * it is empty, without its memory, so that the next one is the chunk's node's.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

/* (shapes are read relaxed all through this file: only the page's node changes, and under both locks) */
static void
set_node(mot_page *page, unsigned node)
{
	uint64_t	shape = mot_shape_of(page);

	/* release: as in acquire_page, for walkers, to whom nothing changes by it */
	atomic_store_explicit(&page->shape,
						  MOT_SHAPE(MOT_SHAPE_SIZE(shape), node, MOT_SHAPE_CLASS(shape)),
						  memory_order_release);
}

/* from one node's list of the class to another's */
static void
change_node(mot_region *region, mot_page *page, unsigned class, unsigned node)
{
	mot_pool   *pool = page->pool;
	uint32_t	page_no = (uint32_t) (page - region->pages);

	/* acquire: as in mot_pool_stats */
	mot_class_node *nodes = atomic_load_explicit(&pool->classes[class], memory_order_acquire);
	unsigned	old = MOT_SHAPE_NODE(mot_shape_of(page));
	mot_class_node *from = &nodes[old];
	mot_class_node *to = &nodes[node];
	int64_t		live;

	if (old == node)
		return;
	mot_spin_lock(old < node ? &from->lock : &to->lock);
	mot_spin_lock(old < node ? &to->lock : &from->lock);
	/* (somebody else may have been at it) */
	if (MOT_SHAPE_NODE(mot_shape_of(page)) == old)
	{
		live = (int64_t) region->classes[class].objects - page->free_count;
		mot_assert(live > 0);
		if (page->free_count > 0)
		{
			mot_partial_remove(region, &from->partial, page_no);
			mot_partial_push(region, &to->partial, page_no);
		}
		mot_add_to(&from->live, -live);
		mot_add_to(&to->live, live);
		set_node(page, node);
	}
	mot_spin_unlock(&to->lock);
	mot_spin_unlock(&from->lock);
}

mot_page_moved
mot_page_move(mot_region *region, void *object, unsigned node)
{
	uint64_t	shape;
	mot_page   *page = mot_page_of(region, object, &shape);
	uint32_t	page_no = (uint32_t) (page - region->pages);
	unsigned	class = MOT_SHAPE_CLASS(shape);
	bool		large = class == MOT_CLASS_LARGE;

	if (mot_is_lot(region, page_no) || region->huge || region->whole_chunks)
		return MOT_PAGE_STAYS;
	if (!mot_topology_move(&region->topology, node, mot_page_address(region, page_no),
						   large ? MOT_SHAPE_SIZE(shape) : MOT_PAGE_SIZE))
		return MOT_PAGE_REFUSED;
	MOT_STOP_POINT("page-moved");
	if (large)
		set_node(page, node);
	else
		change_node(region, page, class, node);
	return MOT_PAGE_MOVED;
}
