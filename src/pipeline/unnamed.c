/*-------------------------------------------------------------------------
 *
 * unnamed.c
 *	  Which is the unnamed statement?
 *
 * The server keeps it to itself.  But it is saved like all others, so when a Parse has been answered the
 * youngest plan source that has been saved is the one that was parsed; and one without a name was
 * analyzed in a memory context of its own, by whose name it is told from others.  It goes without a word
 * (Close, a simple query), so before a pipeline is read it is looked for among those that are saved.  If
 * that leaves any doubt, pipelines are left to the server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/ilist.h"
#include "pipeline/pipeline.h"
#include "tcop/cmdtag.h"

#define LOOK_AT 64				/* saved sources at most */

static const dlist_node *all = NULL;	/* the list of those that are saved:
										 * its head */
static CachedPlanSource *unnamed = NULL;
static bool doubtful = false;	/* there may be one that we do not know */

/*
 * The list is found by saving one more, which becomes its last: after the last comes the head.
 */
static bool
find_list(void)
{
	CachedPlanSource *mine;

	if (all != NULL)
		return true;
	if (!IsTransactionState())
		return false;
	mine = CreateCachedPlan(NULL, "", CMDTAG_UNKNOWN);
	CompleteCachedPlan(mine, NIL, NULL, NULL, 0, NULL, NULL, 0, true);
	SaveCachedPlan(mine);
	all = mine->node.next;
	DropCachedPlan(mine);
	return true;
}

static inline CachedPlanSource *
source_of(const dlist_node *node)
{
	return (CachedPlanSource *) ((char *) node - offsetof(CachedPlanSource, node));
}

static bool
has_no_name(const CachedPlanSource *source)
{
	return source->query_context != NULL && strcmp(source->query_context->name, "unnamed prepared statement") == 0;
}

/* ParseComplete has been sent. */
void
MotUnnamedParsed(void)
{
	CachedPlanSource *source;

	if (!find_list())
	{
		doubtful = true;
		return;
	}
	source = source_of(all->prev);
	Assert(all->prev != all && source->magic == CACHEDPLANSOURCE_MAGIC && source->is_saved);
	if (has_no_name(source))
	{
		unnamed = source;
		doubtful = false;
	}
	else if (source == unnamed)
		unnamed = NULL;			/* it had gone, and this is in its place */
}

/* Is it certain which one it is, or that there is none? */
bool
MotUnnamedIsKnown(void)
{
	const dlist_node *node;

	if (doubtful || unnamed == NULL)
		return !doubtful;
	node = all->prev;
	for (int n = 0; node != all; node = node->prev)
	{
		if (source_of(node) == unnamed)
			return has_no_name(unnamed);	/* (or it has been analyzed anew,
											 * or another one is in its place) */
		if (++n == LOOK_AT)
			return false;
	}
	unnamed = NULL;
	return true;
}

/* NULL: there is none. */
CachedPlanSource *
MotUnnamed(void)
{
	return unnamed;
}
