/*-------------------------------------------------------------------------
 *
 * tree_build.c
 *	  A Masstree built from its keys in order, from the bottom up.
 *
 * Nobody else has the tree.  Each key goes behind the last one: to the last
 * border node of a layer, and when that is full, a new one is hung behind it,
 * into the interior nodes along the layer's right edge.  So nothing is
 * searched, moved (but for what is said below) or looked at again, and all
 * nodes are full but the last of each level.
 *
 * In which layer a key belongs depends on its neighbours: it is as deep as
 * the slices that it has in common with the one before or behind, whichever
 * are more.  So each key waits until the next one is known.  Open are the
 * layers where keys have parted, from the first one down to that where the
 * waiting key parted from its predecessor.  If the next key is alike for
 * longer, a layer is opened below, however far; then the waiting key is put
 * into the innermost layer, and those that the next one does not belong to
 * are closed.  The link to a closed layer is put into the one above, which it
 * is the last entry of; only now it is known how much it skips, for if the
 * two keys part in between, a layer is opened for them there at first.
 *
 * Entries of one slice have to be in one border node.  There may be ten: ranks
 * 0 to 9.  If a node is full when one more comes, those before it move along;
 * they have no suffixes and are no links, because whoever has is the last one
 * of its slice.
 *
 * If memory runs out, what has been built is part of the pool, but not of the
 * tree; whoever builds gives back the pool.
 *
 *-------------------------------------------------------------------------
 */
#include "tree/tree_insert.h"

/* of an open layer, its right edge */
typedef struct build_layer
{
	size_t		offset;			/* of its slices in the keys */
	mot_border *last;
	int			size;			/* entries of that one */
	int			height;			/* levels of interior nodes */
	mot_interior *right[MOT_MAX_HEIGHT];	/* from below */
} build_layer;

struct mot_tree_build
{
	mot_tree   *tree;
	mot_tree_context *ctx;
	bool		(*more_memory) (void *arg);
	void	   *arg;
	int			border_fill;
	unsigned	interior_fill;

	/* the key that waits: */
	bool		waiting;
	uint64_t	value;
	size_t		len;
	size_t		longest;		/* of all keys */
	unsigned char key[MOT_KEY_MAX];

	int			top;			/* the innermost open layer */
	build_layer layer[MOT_MAX_LAYERS];
};

size_t
mot_tree_build_size(void)
{
	return sizeof(mot_tree_build);
}

/* ------------------------------------------------------------------ nodes */

static mot_border *
new_border(mot_tree_build *build)
{
	mot_border *b = mot_new_border(build->tree, build->ctx, MOT_FOR_NEW_KEY);

	if (mot_unlikely(b == NULL) && build->more_memory(build->arg))
		b = mot_new_border(build->tree, build->ctx, MOT_FOR_NEW_KEY);
	return b;
}

static mot_interior *
new_interior(mot_tree_build *build, int level)
{
	mot_interior *in = mot_new_interior(build->tree, build->ctx, MOT_FOR_NEW_KEY);

	if (mot_unlikely(in == NULL) && build->more_memory(build->arg))
		in = mot_new_interior(build->tree, build->ctx, MOT_FOR_NEW_KEY);
	if (in != NULL)
		in->height = (uint32_t) level;
	return in;
}

/* room for a suffix of so many bytes in the layer's last node */
static bool
suffix_room(mot_tree_build *build, const build_layer *layer, size_t len)
{
	mot_border *b = layer->last;
	mot_suffixes *old = mot_get(b->suffixes);
	uint64_t	perm = mot_get(b->permutation);
	mot_suffixes *block;

	if (mot_suffix_fits(b, len))
		return true;
	block = mot_copy_suffixes(build->tree, build->ctx, b, perm, 0, layer->size, len, MOT_FOR_NEW_KEY);
	if (block == NULL && build->more_memory(build->arg))
		block = mot_copy_suffixes(build->tree, build->ctx, b, perm, 0, layer->size, len, MOT_FOR_NEW_KEY);
	if (block == NULL)
		return false;
	mot_set(b->suffixes, block);
	if (old != NULL)
		mot_free(build->ctx->cache, old);
	return true;
}

/* nothing more comes to this node: its suffixes need no room to spare, if there is much */
static void
trim_suffixes(mot_tree_build *build, mot_border *b)
{
	mot_suffixes *old = mot_get(b->suffixes);
	int			size = mot_perm_size(mot_get(b->permutation));
	mot_suffixes *block;

	if (old == NULL || old->capacity - old->used <= 64 + old->used / 8)
		return;
	block = mot_new_suffixes(build->tree, build->ctx, size, old->used, true, MOT_FOR_NEW_KEY);
	if (block == NULL)
		return;
	for (int i = 0; i < size; i++)
	{
		if (mot_has_bytes(mot_get(b->keylenx[i])))
		{
			size_t		len;
			const unsigned char *suffix = mot_border_suffix(b, i, &len);

			mot_put_suffix(block, i, suffix, len);
		}
	}
	mot_set(b->suffixes, block);
	mot_free(build->ctx->cache, old);
}

/* the node comes behind "left", the last of the border nodes, in the interior nodes above */
static bool
add_child(mot_tree_build *build, build_layer *layer, uint64_t separator,
		  mot_node *left, mot_node *child)
{
	for (int level = 0;; level++)
	{
		mot_interior *in;
		mot_interior *fresh;
		unsigned	keys;

		if (level == layer->height)
		{
			mot_assert(level < MOT_MAX_HEIGHT);
			in = new_interior(build, level);
			if (in == NULL)
				return false;
			mot_set(in->child[0], left);
			mot_set(left->parent, in);
			layer->right[layer->height++] = in;
		}
		in = layer->right[level];
		keys = mot_get(in->keys);
		if (keys < build->interior_fill)
		{
			mot_set(in->key[keys], separator);
			mot_set(in->child[keys + 1], child);
			mot_set(in->keys, keys + 1);
			mot_set(child->parent, in);
			return true;
		}

		fresh = new_interior(build, level);
		if (fresh == NULL)
			return false;
		mot_set(fresh->child[0], child);
		mot_set(child->parent, fresh);
		layer->right[level] = fresh;
		left = &in->n;
		child = &fresh->n;
	}
}

/* -------------------------------------------------------------- the layers */

static bool
open_layer(mot_tree_build *build, size_t offset)
{
	build_layer *layer = &build->layer[build->top + 1];

	layer->offset = offset;
	layer->last = new_border(build);
	layer->size = 0;
	layer->height = 0;
	if (layer->last == NULL)
		return false;
	build->top++;
	return true;
}

/* the innermost layer is complete; its root */
static mot_node *
close_layer(mot_tree_build *build)
{
	build_layer *layer = &build->layer[build->top--];
	mot_node   *root = layer->height > 0 ? &layer->right[layer->height - 1]->n : &layer->last->n;

	trim_suffixes(build, layer->last);
	mot_set(root->version, mot_get(root->version) | MOT_V_ROOT);
	return root;
}

/* a new last border node, to which entries from "stay" on move */
static bool
next_border(mot_tree_build *build, build_layer *layer, uint64_t slice, int stay)
{
	mot_border *b = layer->last;
	mot_border *fresh = new_border(build);
	int			n = 0;

	if (fresh == NULL)
		return false;
	for (int i = stay; i < layer->size; i++, n++)
	{
		mot_set(fresh->slice[n], mot_get(b->slice[i]));
		mot_set(fresh->keylenx[n], mot_get(b->keylenx[i]));
		mot_set(fresh->value[n], mot_get(b->value[i]));
	}
	mot_set(fresh->permutation, mot_perm_truncate(MOT_PERMUTATION_EMPTY, n));
	mot_set(b->permutation, mot_perm_truncate(MOT_PERMUTATION_EMPTY, stay));
	mot_set(fresh->prev, b);
	mot_set(b->next, fresh);
	trim_suffixes(build, b);
	layer->last = fresh;
	layer->size = n;
	return add_child(build, layer, slice, &b->n, &fresh->n);
}

/* behind all that the layer has */
static bool
add_entry(mot_tree_build *build, build_layer *layer, uint64_t slice, int keylenx,
		  uint64_t value, const unsigned char *suffix, size_t suffix_len)
{
	int			size = layer->size;
	mot_border *b = layer->last;

	if (size >= build->border_fill &&
		(size == MOT_BORDER_WIDTH || mot_get(b->slice[size - 1]) != slice))
	{
		int			stay = size;

		while (stay > 0 && mot_get(b->slice[stay - 1]) == slice)
			stay--;
		mot_assert(stay > 0);
		if (!next_border(build, layer, slice, stay))
			return false;
		b = layer->last;
		size = layer->size;
	}
	if (mot_has_bytes(keylenx))
	{
		if (!suffix_room(build, layer, suffix_len))
			return false;
		mot_put_suffix(mot_get(b->suffixes), size, suffix, suffix_len);
	}
	mot_set(b->slice[size], slice);
	mot_set(b->keylenx[size], (uint8_t) keylenx);
	mot_set(b->value[size], value);
	layer->size = size + 1;
	mot_set(b->permutation, mot_perm_truncate(MOT_PERMUTATION_EMPTY, layer->size));
	return true;
}

/* The waiting key, which parts from its successor in the slice at this offset. */
static bool
place(mot_tree_build *build, size_t alike)
{
	build_layer *layer = &build->layer[build->top];
	const unsigned char *p;
	size_t		left;
	int			rank;

	if (layer->offset < alike)
	{
		if (!open_layer(build, alike))
			return false;
		layer++;
	}
	p = build->key + layer->offset;
	left = build->len - layer->offset;
	rank = mot_rank(left);
	if (!add_entry(build, layer, mot_slice(p, left), rank, build->value,
				   rank == MOT_KEY_SUFFIX ? p + 8 : NULL, rank == MOT_KEY_SUFFIX ? left - 8 : 0))
		return false;

	while (layer->offset > alike)
	{
		size_t		below = layer->offset;
		mot_node   *root = close_layer(build);

		if (build->layer[build->top].offset < alike && !open_layer(build, alike))
			return false;
		layer = &build->layer[build->top];
		p = build->key + layer->offset;
		left = below - layer->offset;
		if (!add_entry(build, layer, mot_load_be64(p), left > 8 ? MOT_KEY_SKIP : MOT_KEY_LAYER,
					   (uint64_t) (uintptr_t) root, p + 8, left - 8))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------ the interface */

bool
mot_tree_build_begin(mot_tree_build *build, mot_tree *tree, mot_tree_context *ctx, bool full,
					 bool (*more_memory) (void *arg), void *arg)
{
	build->tree = tree;
	build->ctx = ctx;
	build->more_memory = more_memory;
	build->arg = arg;
	build->border_fill = full ? MOT_BORDER_WIDTH : MOT_BORDER_WIDTH - 1;
	build->interior_fill = full ? MOT_INTERIOR_WIDTH : MOT_INTERIOR_WIDTH - 2;
	build->waiting = false;
	build->longest = 0;
	build->top = -1;
	return open_layer(build, 0);
}

mot_tree_status
mot_tree_build_add(mot_tree_build *build, const void *key, size_t len, uint64_t value,
				   uint64_t *before)
{
	if (build->waiting)
	{
		const unsigned char *k = key;
		size_t		n = build->len < len ? build->len : len;
		size_t		same = 0;
		size_t		alike;

		while (same + 8 <= n && mot_load_be64(build->key + same) == mot_load_be64(k + same))
			same += 8;
		if (mot_compare_bytes(build->key + same, build->len - same, k + same, len - same) >= 0)
		{
			*before = build->value;
			return MOT_TREE_MISMATCH;
		}
		/* a slice that is either's last is no layer's */
		alike = same == n && same > 0 ? same - 8 : same;
		if (!place(build, alike))
			return MOT_TREE_NO_MEMORY;
		memcpy(build->key + same, k + same, len - same);
	}
	else
		memcpy(build->key, key, len);
	build->waiting = true;
	build->len = len;
	build->value = value;
	if (len > build->longest)
		build->longest = len;
	return MOT_TREE_OK;
}

mot_tree_status
mot_tree_build_end(mot_tree_build *build)
{
	mot_tree   *tree = build->tree;
	mot_node   *old = mot_get(tree->root);
	mot_border *last;
	mot_node   *root;

	if (build->waiting && !place(build, 0))
		return MOT_TREE_NO_MEMORY;
	mot_assert(build->top == 0);
	last = build->layer[0].last;
	root = close_layer(build);
	mot_set(tree->longest, build->longest);
	mot_set(tree->rightmost, root == &last->n ? NULL : last);
	mot_publish(tree->root, root);	/* release: the root is ready */
	mot_free(build->ctx->cache, old);
	return MOT_TREE_OK;
}
