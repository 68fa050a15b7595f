/*-------------------------------------------------------------------------
 *
 * tree_split.c
 *	  Adding a key to a full border node of the Masstree, which splits it,
 *	  and its ancestors as far as they are full.  See tree_node.h.
 *
 *-------------------------------------------------------------------------
 */
#include "tree/tree_insert.h"

/* where the keys of a run in ascending or descending order go */
typedef enum split_kind
{
	SPLIT_MIDDLE,
	SPLIT_APPEND,				/* the new key is the layer's last, or that of
								 * a run: nothing else moves right */
	SPLIT_PREPEND				/* it is the first: everything else moves
								 * right */
} split_kind;

typedef struct split
{
	split_kind	kind;
	bool		exclusive;
	int			fulls;
	mot_interior *full[MOT_MAX_HEIGHT]; /* ancestors that split, from below,
										 * locked */
	mot_interior *fresh[MOT_MAX_HEIGHT];	/* their right halves */
	mot_interior *top;			/* the ancestor with room, locked; NULL: the
								 * root splits */
	mot_interior *root;			/* then, the new root */
	mot_border *right;
	mot_suffixes *right_block;
	mot_suffixes *left_block;	/* if the new key has a suffix and goes left */
	mot_suffixes *old_block;	/* which that one replaces */
} split;

/* the keys of the full node and the new one, in order */
typedef struct split_entries
{
	const mot_border *b;
	const mot_place *place;
} split_entries;

/* slot of entry i, or -1 for the new one */
static inline int
entry_slot(const split_entries *e, int i)
{
	if (i == e->place->position)
		return -1;
	return mot_perm_slot(e->place->perm, i < e->place->position ? i : i - 1);
}

static inline uint64_t
entry_slice(const split_entries *e, int i)
{
	int			slot = entry_slot(e, i);

	return slot < 0 ? e->place->slice : mot_get(e->b->slice[slot]);
}

/*
 * Is the new key one of an ascending run: did the latest three of the full
 * node come just before it, in order?  Slots are filled one after another, as
 * far as none was removed, so those three have the last slots; keys in random
 * order look like that once in 3000 times.  Runs are inside of a layer where
 * keys ascend within groups (a district's orders), and when several processes
 * load parts of a table: without this they would leave every node half empty
 * behind them.
 */
static inline bool
is_run(uint64_t perm, int position)
{
	return position >= 3 &&
		mot_perm_slot(perm, position - 1) == MOT_BORDER_WIDTH - 1 &&
		mot_perm_slot(perm, position - 2) == MOT_BORDER_WIDTH - 2 &&
		mot_perm_slot(perm, position - 3) == MOT_BORDER_WIDTH - 3;
}

/*
 * How many entries stay left.  Entries of one slice stay together; there are
 * at most ten of them, so somewhere two neighbours differ.
 */
static int
split_point(const split_entries *e, split_kind *kind)
{
	int			position = e->place->position;
	int			want = (MOT_BORDER_WIDTH + 1) / 2;

	*kind = SPLIT_MIDDLE;
	if (position == MOT_BORDER_WIDTH &&
		(mot_get(e->b->next) == NULL || is_run(e->place->perm, position)))
	{
		want = MOT_BORDER_WIDTH;
		*kind = SPLIT_APPEND;
	}
	else if (position == 0 && mot_get(e->b->prev) == NULL)
	{
		want = 1;
		*kind = SPLIT_PREPEND;
	}
	else if (is_run(e->place->perm, position))
		want = position + 1;	/* what is not of the run moves out of its way */
	for (int d = 0;; d++)
	{
		mot_assert(d <= MOT_BORDER_WIDTH);
		if (want - d >= 1 && entry_slice(e, want - d - 1) != entry_slice(e, want - d))
			return want - d;
		if (want + d <= MOT_BORDER_WIDTH && entry_slice(e, want + d - 1) != entry_slice(e, want + d))
			return want + d;
	}
}

/* ------------------------------------------- what can fail comes at first */

static void
unlock_ancestors(split *s)
{
	for (int i = 0; i < s->fulls; i++)
	{
		mot_unlock_node(&s->full[i]->n);
		if (s->fresh[i])
			mot_unlock_node(&s->fresh[i]->n);
	}
	if (s->top)
		mot_unlock_node(&s->top->n);
}

static void
lock_ancestors(split *s, mot_border *b)
{
	mot_node   *n = &b->n;

	s->fulls = 0;
	while ((s->top = mot_lock_parent(n, s->exclusive)) != NULL)
	{
		if (mot_get(s->top->keys) < MOT_INTERIOR_WIDTH)
			break;
		mot_assert(s->fulls < MOT_MAX_HEIGHT);
		s->fresh[s->fulls] = NULL;
		s->full[s->fulls++] = s->top;
		n = &s->top->n;
	}
}

static void
free_new(mot_tree_context *ctx, split *s)
{
	for (int i = 0; i < s->fulls; i++)
	{
		if (s->fresh[i])
			mot_free(ctx->cache, s->fresh[i]);
		s->fresh[i] = NULL;
	}
	if (s->root)
		mot_free(ctx->cache, s->root);
	if (s->right)
		mot_free(ctx->cache, s->right);
	if (s->right_block)
		mot_free(ctx->cache, s->right_block);
	if (s->left_block)
		mot_free(ctx->cache, s->left_block);
}

static bool
allocate(mot_tree *tree, mot_tree_context *ctx, split *s, const split_entries *e, int stay,
		 size_t suffix_len, mot_purpose purpose)
{
	size_t		bytes = 0;
	int			count = 0;

	s->right = mot_new_border(tree, ctx, purpose);
	if (s->right == NULL)
		return false;
	for (int i = stay; i <= MOT_BORDER_WIDTH; i++)
	{
		int			slot = entry_slot(e, i);
		size_t		n = suffix_len;

		if (slot >= 0)
		{
			if (!mot_has_bytes(mot_get(e->b->keylenx[slot])))
				continue;
			mot_border_suffix(e->b, slot, &n);
		}
		else if (e->place->rank != MOT_KEY_SUFFIX)
			continue;
		bytes += n;
		count++;
	}
	if (count > 0)
	{
		s->right_block = mot_new_suffixes(tree, ctx, count, bytes, false, purpose);
		if (s->right_block == NULL)
			return false;
	}
	if (e->place->position < stay && e->place->rank == MOT_KEY_SUFFIX &&
		!mot_suffix_fits(e->b, suffix_len))
	{
		s->left_block = mot_copy_suffixes(tree, ctx, e->b, e->place->perm, 0, stay - 1,
										  suffix_len, purpose);
		if (s->left_block == NULL)
			return false;
		s->old_block = mot_get(e->b->suffixes);
	}
	for (int i = 0; i < s->fulls; i++)
	{
		s->fresh[i] = mot_new_interior(tree, ctx, purpose);
		if (s->fresh[i] == NULL)
			return false;
		/* its children find it before its own parent does */
		mot_set(s->fresh[i]->n.version, MOT_V_LOCK);
		s->fresh[i]->height = s->full[i]->height;
	}
	if (s->top == NULL)
	{
		s->root = mot_new_interior(tree, ctx, purpose);
		if (s->root == NULL)
			return false;
		mot_set(s->root->n.version, MOT_V_ROOT);
		s->root->height = s->fulls > 0 ? s->full[s->fulls - 1]->height + 1 : 0;
	}
	return true;
}

/* --------------------------------------------- what others see comes then */

static unsigned
child_index(const mot_interior *in, const mot_node *child)
{
	unsigned	i = 0;

	while (mot_get(in->child[i]) != child)
	{
		mot_assert(i < mot_get(in->keys));
		i++;
	}
	return i;
}

/* "in" has room and is marked: add a child to the right of another one */
static void
insert_child(mot_interior *in, const mot_node *left, uint64_t separator, mot_node *child)
{
	unsigned	n = mot_get(in->keys);
	unsigned	at = child_index(in, left);

	mot_publish(child->parent, in);

	/*
	 * Release: readers of any of it see that the node is dirty.  Each key
	 * after the child behind it: who sees one more key finds a child there.
	 */
	for (unsigned i = n; i > at; i--)
	{
		mot_publish(in->child[i + 1], mot_get(in->child[i]));
		mot_publish(in->key[i], mot_get(in->key[i - 1]));
	}
	mot_publish(in->child[at + 1], child);
	mot_publish(in->key[at], separator);
	mot_publish(in->keys, n + 1);
}

/* the same for one without room: part of its children go to "fresh" */
static uint64_t
split_interior(mot_interior *in, mot_interior *fresh, split_kind kind, const mot_node *left,
			   uint64_t separator, mot_node *child)
{
	uint64_t	key[MOT_INTERIOR_WIDTH + 1];
	mot_node   *node[MOT_INTERIOR_WIDTH + 2];
	unsigned	at = child_index(in, left);
	unsigned	stay = MOT_INTERIOR_WIDTH / 2;	/* keys; the next one goes up */
	unsigned	i;

	if (kind == SPLIT_APPEND && at == MOT_INTERIOR_WIDTH)
		stay = MOT_INTERIOR_WIDTH;
	else if (kind == SPLIT_PREPEND && at == 0)
		stay = 0;

	node[0] = mot_get(in->child[0]);
	for (i = 0; i < MOT_INTERIOR_WIDTH; i++)
	{
		key[i + (i >= at)] = mot_get(in->key[i]);
		node[i + 1 + (i >= at)] = mot_get(in->child[i + 1]);
	}
	key[at] = separator;
	node[at + 1] = child;

	/* the new node first: a moved child whose lock is held may look at it */
	for (i = stay + 1; i <= MOT_INTERIOR_WIDTH; i++)
		mot_set(fresh->key[i - stay - 1], key[i]);
	for (i = stay + 1; i <= MOT_INTERIOR_WIDTH + 1; i++)
		mot_set(fresh->child[i - stay - 1], node[i]);
	mot_set(fresh->keys, MOT_INTERIOR_WIDTH - stay);

	/* release: the new node is filled; or that "in" is dirty */
	for (i = stay + 1; i <= MOT_INTERIOR_WIDTH + 1; i++)
		mot_publish(node[i]->parent, fresh);
	if (at < stay)
	{
		mot_publish(child->parent, in);
		for (i = stay; i > at; i--)
		{
			mot_publish(in->child[i], node[i]);
			mot_publish(in->key[i - 1], key[i - 1]);
		}
	}
	for (i = stay; i < MOT_INTERIOR_WIDTH; i++)
		mot_publish(in->key[i], MOT_NO_KEY);
	mot_publish(in->keys, stay);
	return key[stay];
}

/* the new border node's entries; nobody else sees it yet */
static void
fill_right(split *s, const split_entries *e, int stay,
		   const unsigned char *suffix, size_t suffix_len, uint64_t value)
{
	mot_border *right = s->right;
	int			n = 0;

	mot_set(right->suffixes, s->right_block);
	for (int i = stay; i <= MOT_BORDER_WIDTH; i++, n++)
	{
		int			slot = entry_slot(e, i);
		int			keylenx = e->place->rank;
		const unsigned char *bytes = suffix;
		size_t		len = suffix_len;

		if (slot < 0)
		{
			mot_set(right->slice[n], e->place->slice);
			mot_set(right->value[n], value);
		}
		else
		{
			keylenx = mot_get(e->b->keylenx[slot]);
			mot_set(right->slice[n], mot_get(e->b->slice[slot]));
			mot_set(right->value[n], mot_get(e->b->value[slot]));
			if (mot_has_bytes(keylenx))
				bytes = mot_border_suffix(e->b, slot, &len);
		}
		mot_set(right->keylenx[n], (uint8_t) keylenx);
		if (mot_has_bytes(keylenx))
			mot_put_suffix(s->right_block, n, bytes, len);
	}
	mot_set(right->permutation, mot_perm_truncate(MOT_PERMUTATION_EMPTY, n));
}

/* hang the new nodes into the locked and marked ancestors */
static void
add_to_ancestors(split *s, mot_border *b)
{
	mot_node   *left = &b->n;
	mot_node   *right = &s->right->n;
	uint64_t	separator = mot_get(s->right->slice[0]);

	for (int i = 0; i < s->fulls; i++)
	{
		separator = split_interior(s->full[i], s->fresh[i], s->kind, left, separator, right);
		left = &s->full[i]->n;
		right = &s->fresh[i]->n;
	}
	if (s->top)
	{
		insert_child(s->top, left, separator, right);
		return;
	}

	mot_set(s->root->child[0], left);
	mot_set(s->root->child[1], right);
	mot_set(s->root->key[0], separator);
	mot_set(s->root->keys, 1);
	/* release: the new root is ready for who climbs to it */
	mot_publish(right->parent, s->root);
	mot_publish(left->parent, s->root);
	/* relaxed: it is dirty, so nobody climbs before it is unlocked */
	mot_set(left->version, mot_get(left->version) & ~MOT_V_ROOT);
}

mot_tree_status
mot_tree_add_by_split(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
					  const unsigned char *suffix, size_t suffix_len, uint64_t value,
					  mot_purpose purpose, const mot_observer *observer)
{
	mot_border *b = place->node;
	split_entries e = {b, place};
	split		s;
	int			stay;
	uint64_t	kept;
	mot_border *next;
	uint64_t	version;

	s.exclusive = ctx->exclusive;
	s.root = NULL;
	s.right = NULL;
	s.right_block = s.left_block = s.old_block = NULL;
	stay = split_point(&e, &s.kind);
	lock_ancestors(&s, b);
	MOT_STOP_POINT("tree-split-locked");
	if (!allocate(tree, ctx, &s, &e, stay, suffix_len, purpose))
	{
		free_new(ctx, &s);
		unlock_ancestors(&s);
		mot_unlock_node(&b->n);
		return MOT_TREE_NO_MEMORY;
	}

	fill_right(&s, &e, stay, suffix, suffix_len, value);
	next = mot_get(b->next);
	mot_set(s.right->prev, b);
	mot_set(s.right->next, next);
	mot_set(s.right->n.version, MOT_V_BORDER | MOT_V_LOCK);

	mot_mark_node(&b->n, MOT_V_SPLITTING);
	for (int i = 0; i < s.fulls; i++)
		mot_mark_node(&s.full[i]->n, MOT_V_SPLITTING);
	if (s.top)
		mot_mark_node(&s.top->n, MOT_V_INSERTING);

	add_to_ancestors(&s, b);
	MOT_STOP_POINT("tree-split-added");
	/* release: the new node is ready */
	if (next)
		mot_publish(next->prev, s.right);
	mot_publish(b->next, s.right);
	if (place->position < stay)
	{
		kept = mot_perm_truncate(place->perm, stay - 1);
		mot_add_here(b, kept, place->position, place->slice, place->rank, suffix, suffix_len,
					 s.left_block, value);
	}
	else
		mot_publish(b->permutation, mot_perm_truncate(place->perm, stay));

	/*
	 * While the new node is locked, so that who deletes it comes after.
	 * Release: the node is ready.
	 */
	if (next == NULL && place->offset == 0)
		mot_publish(tree->rightmost, s.right);
	version = mot_unlock_node(&b->n);
	mot_unlock_node(&s.right->n);
	unlock_ancestors(&s);
	if (s.old_block)
		mot_retire_object(ctx, s.old_block);
	if (observer)
		observer->moved(observer->arg, &b->n, mot_observed_version(place->version),
						mot_observed_version(version), &s.right->n, MOT_V_BORDER);
	return MOT_TREE_OK;
}
