/*-------------------------------------------------------------------------
 *
 * tree_remove.c
 *	  Taking a key out of the Masstree, and nodes and layers that become
 *	  empty by that.  See tree_node.h; nothing here needs memory.
 *
 *-------------------------------------------------------------------------
 */
#include "tree/tree_insert.h"

/* mark a locked node; its readers and writers start again from the top */
static inline void
mark_deleted(mot_node *node)
{
	mot_mark_node(node, MOT_V_SPLITTING | MOT_V_DELETED);
}

static void
retire_border(mot_tree *tree, mot_tree_context *ctx, mot_border *b)
{
	mot_suffixes *block = mot_get(b->suffixes);
	mot_border *hint = b;

	/*
	 * relaxed: it is set under the node's lock, which we have had since;
	 * nobody takes it up after this
	 */
	if (mot_get(tree->rightmost) == b)
		atomic_compare_exchange_strong_explicit(&tree->rightmost, &hint, NULL,
												memory_order_relaxed, memory_order_relaxed);

	if (block)
		mot_retire_object(ctx, block);
	mot_retire_object(ctx, b);
}

/*
 * Take a locked border node that is not its layer's leftmost out of the list
 * of siblings.  Returns its left neighbour, which is unlocked again.
 */
static mot_border *
unlink_sibling(mot_border *b, bool exclusive)
{
	for (;;)
	{
		mot_border *left = mot_read(b->prev);

		MOT_STOP_POINT("tree-left-read");
		mot_lock_node(&left->n, exclusive);
		/* it may have split or been deleted while we waited */
		if (mot_read(b->prev) == left)
		{
			mot_border *right = mot_get(b->next);

			/*
			 * Our lock protects right->prev, that of the left neighbour
			 * left->next.  Release: the neighbours' contents go with the
			 * links.
			 */
			if (right)
				mot_publish(right->prev, left);
			mot_publish(left->next, right);
			mot_unlock_node(&left->n);
			return left;
		}
		mot_unlock_node(&left->n);
	}
}

/*
 * Take a child out of a locked interior node that has others.  The separator
 * that goes with it is that on its left, or on its right if it is the first:
 * so the neighbour on that side takes its range over.
 */
static void
remove_child(mot_interior *in, const mot_node *child)
{
	unsigned	n = mot_get(in->keys);
	unsigned	at = 0;

	while (mot_get(in->child[at]) != child)
	{
		mot_assert(at < n);
		at++;
	}
	mot_mark_node(&in->n, MOT_V_INSERTING);
	/* release: readers of any of it see that the node is dirty */
	for (unsigned i = at ? at - 1 : 0; i + 1 < n; i++)
		mot_publish(in->key[i], mot_get(in->key[i + 1]));
	mot_publish(in->key[n - 1], MOT_NO_KEY);
	for (unsigned i = at; i < n; i++)
		mot_publish(in->child[i], mot_get(in->child[i + 1]));
	mot_publish(in->keys, n - 1);
}

/*
 * A locked border node has become empty.  Unlocks it, and deletes it unless
 * it is its layer's leftmost.  Returns whether the layer may now be empty.
 */
static bool
border_emptied(mot_tree *tree, mot_tree_context *ctx, mot_border *b)
{
	mot_border *left;
	mot_node   *child = &b->n;
	mot_interior *gone[MOT_MAX_HEIGHT];
	int			gones = 0;

	if (mot_read(b->prev) == NULL)
	{
		bool		alone = mot_get(b->next) == NULL;

		mot_unlock_node(&b->n);
		return alone;
	}

	mark_deleted(&b->n);
	MOT_STOP_POINT("tree-remove-marked");
	left = unlink_sibling(b, ctx->exclusive);
	MOT_STOP_POINT("tree-remove-unlinked");
	for (;;)
	{
		mot_interior *parent = mot_lock_parent(child, ctx->exclusive);

		/* a node that is not in the spine is no root */
		mot_assert(parent != NULL);
		if (mot_get(parent->keys) > 0)
		{
			remove_child(parent, child);
			mot_unlock_node(child);
			mot_unlock_node(&parent->n);
			break;
		}
		/* its only child: it goes too */
		mark_deleted(&parent->n);
		mot_unlock_node(child);
		child = &parent->n;
		mot_assert(gones < MOT_MAX_HEIGHT);
		gone[gones++] = parent;
	}
	retire_border(tree, ctx, b);
	for (int i = 0; i < gones; i++)
		mot_retire_object(ctx, gone[i]);

	/*
	 * The neighbour may be deleted by now, but not freed.  Whoever emptied it
	 * tried to remove the layer; if we were in the way, then we see it empty:
	 * it looked at one of our ancestors before we locked that.
	 */
	return mot_read(left->prev) == NULL && mot_read(left->next) == NULL &&
		mot_perm_size(mot_read(left->permutation)) == 0;
}

/*
 * If the layer of keys that begin with the first *offset bytes of "key" has
 * none, remove it.  Returns whether by this the layer above it, that at the
 * new *offset, may have become empty.
 */
static bool
remove_layer(mot_tree *tree, mot_tree_context *ctx, const unsigned char *key, size_t *offset)
{
	mot_place	place;
	mot_border *upper;
	mot_border *b;
	mot_node   *n;
	mot_interior *above;
	mot_interior *spine[MOT_MAX_HEIGHT];
	int			height = 0;
	bool		empty;
	bool		more = false;

	if (!mot_tree_locate_link(tree, ctx, key, *offset, &place))
		return false;
	*offset = place.offset;
	upper = place.node;

	/* the first child of a node of the spine is always the same */
	n = (mot_node *) (uintptr_t) mot_get(upper->value[place.slot]);
	while (!mot_is_border(mot_get(n->version)))
		n = mot_read(((mot_interior *) n)->child[0]);
	b = (mot_border *) n;

	mot_lock_node(&b->n, ctx->exclusive);
	empty = mot_perm_size(mot_get(b->permutation)) == 0 && mot_get(b->next) == NULL;
	while (empty && (above = mot_lock_parent(n, ctx->exclusive)) != NULL)
	{
		mot_assert(height < MOT_MAX_HEIGHT);
		spine[height++] = above;
		/* other children: keys came, or somebody is about to take them off */
		empty = mot_get(above->keys) == 0;
		n = &above->n;
	}

	if (empty)
	{
		/* readers that still have the link find the nodes deleted */
		mark_deleted(&b->n);
		for (int i = 0; i < height; i++)
			mark_deleted(&spine[i]->n);
		MOT_STOP_POINT("tree-layer-marked");
		place.perm = mot_perm_remove(place.perm, place.position);
		mot_publish(upper->permutation, place.perm);
	}
	mot_unlock_node(&b->n);
	for (int i = 0; i < height; i++)
		mot_unlock_node(&spine[i]->n);
	if (empty && mot_perm_size(place.perm) == 0)
		more = border_emptied(tree, ctx, upper);
	else
		mot_unlock_node(&upper->n);

	/* no lock is held any more: retiring may take its time */
	if (empty)
	{
		retire_border(tree, ctx, b);
		for (int i = 0; i < height; i++)
			mot_retire_object(ctx, spine[i]);
	}
	return more;
}

void
mot_tree_take_out(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
				  const unsigned char *key)
{
	mot_border *b = place->node;
	size_t		offset = place->offset;
	uint64_t	perm = mot_perm_remove(place->perm, place->position);
	bool		more;

	/* release: nothing is published by it, but readers load it with acquire */
	mot_publish(b->permutation, perm);
	if (mot_perm_size(perm) > 0)
	{
		mot_unlock_node(&b->n);
		return;
	}
	/* layer by layer upwards, as long as they become empty */
	more = border_emptied(tree, ctx, b);
	while (more && offset > 0)
	{
		MOT_STOP_POINT("tree-layer-emptied");
		more = remove_layer(tree, ctx, key, &offset);
	}
}
