/*-------------------------------------------------------------------------
 *
 * owed.c
 *	  What all queues owe, for those who only look: figures, and each item.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

uint64_t
mot_owed_added(mot_engine *e)
{
	uint32_t	n = atomic_load(&e->slots_used);
	uint64_t	added = 0;

	/* relaxed: a figure */
	for (uint32_t i = 0; i < n; i++)
		added += atomic_load_explicit(&e->slot[i].owed.added, memory_order_relaxed);
	return added;
}

/* memory that an item stands for, for each that it counts for */
static size_t
item_bytes(const mot_region *region, uint64_t what)
{
	const void *object = (const void *) (uintptr_t) (what & ~UINT64_C(15));

	switch ((owed_kind) (what & 15))
	{
		case OWED_INLINE:
			return mot_usable_size(region, object) - offsetof(mot_row, inlined);
		case OWED_GRAVE:
		case OWED_GRAVE_MEMORY:
			return mot_usable_size(region, ((const mot_grave *) object)->first);
		case OWED_INSERTS:
		case OWED_INSERTS_MEMORY:
			return mot_usable_size(region, ((const mot_inserts *) object)->row[0]);
		default:
			return mot_usable_size(region, object);
	}
}

/* looked at in each queue, from its end: few, since a commit may be waiting for its lock */
#define SAMPLE_ITEMS 8

uint64_t
mot_owed_item_bytes(mot_engine *e)
{
	uint32_t	n = atomic_load(&e->slots_used);
	uint64_t	bytes = 0;
	uint64_t	weight = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		owed_queue *q = &e->slot[i].owed;
		uint64_t	count = atomic_load_explicit(&q->count, memory_order_relaxed);	/* relaxed: a figure */
		uint64_t	sum = 0;
		uint64_t	looked = 0;
		owed_block *b;

		if (count == 0)
			continue;
		/* what is in the queue is there as long as we have the lock */
		mot_spin_lock(&q->lock);
		b = q->list[OWED_SEEN].tail;
		for (uint32_t j = b == NULL ? 0 : b->used; b != NULL && j > b->first && looked < SAMPLE_ITEMS; looked++)
			sum += item_bytes(e->region, b->item[--j].what) + sizeof(owed_item);
		mot_spin_unlock(&q->lock);
		if (looked == 0)
			continue;
		bytes += count * (sum / looked);
		weight += count;
	}
	return weight == 0 ? 0 : bytes / weight;
}

/*
 * Show "visit" everything that any queue has.  False if some queue is being
 * worked off at the moment: then there are items that cannot be seen.
 */
bool
mot_owed_visit(mot_session *s, void (*visit) (void *arg, owed_kind kind, void *object), void *arg)
{
	mot_engine *e = s->engine;
	uint32_t	n = atomic_load(&e->slots_used);
	bool		complete = true;

	for (uint32_t i = 0; i < n && complete; i++)
	{
		owed_queue *q = &e->slot[i].owed;

		mot_spin_lock(&q->lock);
		complete = !q->working;
		for (int l = 0; complete && l < 2; l++)
			for (owed_block *b = q->list[l].head; b != NULL; b = b->next)
				for (uint32_t j = b->first; j < b->used; j++)
					visit(arg, (owed_kind) (b->item[j].what & 15),
						  (void *) (uintptr_t) (b->item[j].what & ~UINT64_C(15)));
		mot_spin_unlock(&q->lock);
	}
	return complete;
}
