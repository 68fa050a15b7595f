/*-------------------------------------------------------------------------
 *
 * behind.c
 *	  When have older versions left the indexes?
 *
 * A host may give keys whose order is right only among versions that somebody can see together.
 * Where such keys come by replay, older versions beside them, which only snapshots from before
 * still see, may be out of order.  Before the host gives keys of its own it says that all which is
 * superseded by then is left behind, and asks until that is out of the indexes: as soon as nobody
 * has a snapshot that old it is seen to here.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

void
mot_engine_leave_behind(mot_engine *e)
{
	atomic_store(&e->behind, mot_engine_clock(e));
}

bool
mot_engine_left_behind(mot_session *s)
{
	mot_engine *e = s->engine;
	uint64_t	behind = atomic_load(&e->behind);
	uint32_t	n = atomic_load(&e->slots_used);

	if (mot_likely(behind == 0))
		return true;
	if (mot_engine_horizon(e) < behind)
		return false;
	(void) mot_reclaim_all(s);
	for (uint32_t i = 0; i < n; i++)
		if (mot_queue_front_stamp(s, &e->slot[i].owed) <= behind)
			return false;
	(void) atomic_compare_exchange_strong(&e->behind, &behind, 0);
	return true;
}
