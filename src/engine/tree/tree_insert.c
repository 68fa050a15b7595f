/*-------------------------------------------------------------------------
 *
 * tree_insert.c
 *	  Adding a key to the Masstree: to a node with room, or by making a layer
 *	  where it parts from another, or from a link's skip.  (By splitting a full
 *	  node: tree_split.c.)
 *
 * Each way first locks and allocates all it needs, then changes the tree and
 * cannot fail.  While it allocates, the nodes are locked but not dirty:
 * readers go on.  See tree_node.h.
 *
 *-------------------------------------------------------------------------
 */
#include "tree/tree_insert.h"

/* ------------------------------------------------------------------ nodes */

/*
 * New nodes are filled with relaxed stores: nobody sees them before a release
 * store of a pointer to them.
 */
mot_border *
mot_new_border(mot_tree *tree, mot_tree_context *ctx, mot_purpose purpose)
{
	mot_border *b = mot_alloc(ctx->cache, tree->pool, sizeof(mot_border), purpose, &ctx->why);

	if (b == NULL)
		return NULL;
	memset((void *) b, 0, sizeof(mot_border));
	mot_set(b->n.version, MOT_V_BORDER);
	mot_set(b->permutation, MOT_PERMUTATION_EMPTY);
	return b;
}

mot_interior *
mot_new_interior(mot_tree *tree, mot_tree_context *ctx, mot_purpose purpose)
{
	mot_interior *in = mot_alloc(ctx->cache, tree->pool, sizeof(mot_interior), purpose, &ctx->why);

	if (in == NULL)
		return NULL;
	memset((void *) in, 0, sizeof(mot_interior));
	for (int i = 0; i < MOT_INTERIOR_WIDTH; i++)
		mot_set(in->key[i], MOT_NO_KEY);
	return in;
}

mot_tree *
mot_tree_create(mot_tree_context *ctx, mot_pool *pool)
{
	/*
	 * as large as a node: it is the only one of its kind, and would have a
	 * page for itself
	 */
	mot_tree   *tree = mot_alloc(ctx->cache, pool, sizeof(mot_border), MOT_FOR_CHANGE, &ctx->why);
	mot_border *b;

	if (tree == NULL)
		return NULL;
	tree->pool = pool;
	b = mot_new_border(tree, ctx, MOT_FOR_CHANGE);
	if (b == NULL)
	{
		mot_free(ctx->cache, tree);
		return NULL;
	}
	mot_set(b->n.version, MOT_V_BORDER | MOT_V_ROOT);
	mot_set(tree->longest, 0);
	mot_set(tree->rightmost, NULL);
	mot_publish(tree->root, &b->n); /* release: the root is ready */
	return tree;
}

/* --------------------------------------------------------------- suffixes */

/*
 * A block for "count" suffixes of "bytes" in all.  It gets room for as many
 * more of the same length as the node may get, within reason.
 */
mot_suffixes *
mot_new_suffixes(mot_tree *tree, mot_tree_context *ctx, int count, size_t bytes, bool exact,
				 mot_purpose purpose)
{
	size_t		spare = 0;
	mot_suffixes *block;

	if (!exact)
	{
		size_t		limit = bytes / 2 > 1024 ? bytes / 2 : 1024;

		spare = bytes / (size_t) count * (size_t) (MOT_BORDER_WIDTH - count);
		if (spare > limit)
			spare = limit;
	}
	block = mot_alloc(ctx->cache, tree->pool, sizeof(mot_suffixes) + bytes + spare, purpose,
					  &ctx->why);
	if (block == NULL && spare > 0)
	{
		spare = 0;
		block = mot_alloc(ctx->cache, tree->pool, sizeof(mot_suffixes) + bytes, purpose, &ctx->why);
	}
	if (block == NULL)
		return NULL;
	block->capacity = (uint32_t) (mot_usable_size(ctx->region, block) - sizeof(mot_suffixes));
	if (block->capacity > (UINT32_C(1) << 18) - 1)
		block->capacity = (UINT32_C(1) << 18) - 1;
	block->used = 0;
	for (int i = 0; i < MOT_BORDER_WIDTH; i++)
		mot_set(block->at[i], 0);
	return block;
}

void
mot_put_suffix(mot_suffixes *block, int slot, const unsigned char *suffix, size_t len)
{
	mot_assert(len <= block->capacity - block->used);
	memcpy(block->data + block->used, suffix, len);
	/* release: who sees the length sees the bytes */
	mot_publish(block->at[slot], block->used << MOT_SUFFIX_LEN_BITS | (uint32_t) len);
	block->used += (uint32_t) len;
}

/* what was a suffix or a skip becomes a skip: its first "len" bytes */
static void
shorten_suffix(mot_suffixes *block, int slot, size_t len)
{
	uint32_t	at = mot_get(block->at[slot]);

	mot_assert(len <= mot_suffix_len(at));
	/* release: as all that readers of the node look at */
	mot_publish(block->at[slot], mot_suffix_offset(at) << MOT_SUFFIX_LEN_BITS | (uint32_t) len);
}

bool
mot_suffix_fits(const mot_border *b, size_t len)
{
	const mot_suffixes *block = mot_get(b->suffixes);

	return block && len <= block->capacity - block->used;
}

/* a block with what keys first..last-1 of a node have, and room for "len" bytes more */
mot_suffixes *
mot_copy_suffixes(mot_tree *tree, mot_tree_context *ctx, const mot_border *b, uint64_t perm,
				  int first, int last, size_t len, mot_purpose purpose)
{
	size_t		bytes = len;
	int			count = 1;
	mot_suffixes *block;

	for (int i = first; i < last; i++)
	{
		int			s = mot_perm_slot(perm, i);
		size_t		n;

		if (mot_has_bytes(mot_get(b->keylenx[s])))
		{
			mot_border_suffix(b, s, &n);
			bytes += n;
			count++;
		}
	}
	block = mot_new_suffixes(tree, ctx, count, bytes, false, purpose);
	if (block == NULL)
		return NULL;
	for (int i = first; i < last; i++)
	{
		int			s = mot_perm_slot(perm, i);

		if (mot_has_bytes(mot_get(b->keylenx[s])))
		{
			size_t		n;
			const unsigned char *suffix = mot_border_suffix(b, s, &n);

			mot_put_suffix(block, s, suffix, n);
		}
	}
	return block;
}

/* ------------------------------------------------------------- with room */

/*
 * Fill a slot that no key has.  Release: the reader of any of it sees that
 * the node is dirty (see tree_node.h), and of the value, what is behind it.
 */
static void
fill_slot(mot_border *b, int slot, uint64_t slice, int keylenx, uint64_t value)
{
	mot_publish(b->slice[slot], slice);
	mot_publish(b->keylenx[slot], (uint8_t) keylenx);
	mot_publish(b->value[slot], value);
}

/* the node is locked and marked, "block" is its new suffix block or NULL */
void
mot_add_here(mot_border *b, uint64_t perm, int position, uint64_t slice, int rank,
			 const unsigned char *suffix, size_t suffix_len, mot_suffixes *block, uint64_t value)
{
	int			slot = mot_perm_slot(perm, mot_perm_size(perm));

	if (rank == MOT_KEY_SUFFIX)
	{
		mot_put_suffix(block ? block : mot_get(b->suffixes), slot, suffix, suffix_len);
		if (block)
			mot_publish(b->suffixes, block);	/* release: the block is
												 * filled */
	}
	fill_slot(b, slot, slice, rank, value);
	/* release: the slot is filled */
	mot_publish(b->permutation, mot_perm_insert(perm, position));
}

static mot_tree_status
add_with_room(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
			  const unsigned char *suffix, size_t suffix_len, uint64_t value,
			  mot_purpose purpose, const mot_observer *observer)
{
	mot_border *b = place->node;
	mot_suffixes *old = NULL;
	mot_suffixes *block = NULL;
	uint64_t	version;

	if (place->rank == MOT_KEY_SUFFIX && !mot_suffix_fits(b, suffix_len))
	{
		old = mot_get(b->suffixes);
		block = mot_copy_suffixes(tree, ctx, b, place->perm, 0, mot_perm_size(place->perm),
								  suffix_len, purpose);
		if (block == NULL)
		{
			mot_unlock_node(&b->n);
			return MOT_TREE_NO_MEMORY;
		}
	}
	mot_mark_node(&b->n, MOT_V_INSERTING);
	MOT_STOP_POINT("tree-insert-marked");
	mot_add_here(b, place->perm, place->position, place->slice, place->rank, suffix, suffix_len,
				 block, value);
	version = mot_unlock_node(&b->n);
	if (old)
		mot_retire_object(ctx, old);
	if (observer)
		observer->moved(observer->arg, &b->n, mot_observed_version(place->version),
						mot_observed_version(version), NULL, 0);
	return MOT_TREE_OK;
}

/* ----------------------------------------------------------------- layers */

/*
 * what is left of an entry behind its first slices: a key's rest, or a link's skip and what it
 * links to
 */
typedef struct rest
{
	const unsigned char *bytes;
	size_t		len;
	bool		link;
	uint64_t	value;
} rest;

/* A link's skip goes before more bytes, which are not known here. */
static inline size_t
left_behind(const rest *r, size_t offset)
{
	return r->len - offset + (r->link ? 1 : 0);
}

static void
fill_layer_slot(mot_border *b, mot_suffixes *block, int slot, const rest *r, size_t offset)
{
	uint64_t	slice = mot_slice(r->bytes + offset, left_behind(r, offset));
	int			keylenx = mot_rank(left_behind(r, offset));

	/* the whole of a skip leads to the link, not here */
	mot_assert(!r->link || r->len > offset);
	if (r->link)
		keylenx = r->len - offset > 8 ? MOT_KEY_SKIP : MOT_KEY_LAYER;
	if (mot_has_bytes(keylenx))
		mot_put_suffix(block, slot, r->bytes + offset + 8, r->len - offset - 8);
	fill_slot(b, slot, slice, keylenx, r->value);
}

/*
 * A layer for two entries at the slice where they part; *skip is the length of
 * what they have in common before.  The suffix block is as small as can be:
 * most such layers never get a third key.  NULL: no memory.
 */
static mot_border *
make_layer(mot_tree *tree, mot_tree_context *ctx, const rest *r0, const rest *r1, size_t *skip,
		   mot_purpose purpose)
{
	size_t		offset = 0;
	uint64_t	slice0;
	uint64_t	slice1;
	int			rank0;
	int			rank1;
	size_t		bytes = 0;
	mot_suffixes *block = NULL;
	mot_border *b = mot_new_border(tree, ctx, purpose);

	if (b == NULL)
		return NULL;
	for (;; offset += 8)
	{
		slice0 = mot_slice(r0->bytes + offset, left_behind(r0, offset));
		slice1 = mot_slice(r1->bytes + offset, left_behind(r1, offset));
		rank0 = mot_rank(left_behind(r0, offset));
		rank1 = mot_rank(left_behind(r1, offset));
		if (slice0 != slice1 || rank0 != MOT_KEY_SUFFIX || rank1 != MOT_KEY_SUFFIX)
			break;
	}
	if (rank0 == MOT_KEY_SUFFIX)
		bytes += r0->len - offset - 8;
	if (rank1 == MOT_KEY_SUFFIX)
		bytes += r1->len - offset - 8;
	if (bytes > 0)
	{
		block = mot_new_suffixes(tree, ctx, 2, bytes, true, purpose);
		if (block == NULL)
		{
			mot_free(ctx->cache, b);
			return NULL;
		}
	}
	mot_set(b->n.version, MOT_V_BORDER | MOT_V_ROOT);
	mot_set(b->suffixes, block);
	fill_layer_slot(b, block, 0, r0, offset);
	fill_layer_slot(b, block, 1, r1, offset);
	mot_set(b->permutation,
			mot_perm_insert(mot_perm_insert(MOT_PERMUTATION_EMPTY, 0),
							slice0 < slice1 || (slice0 == slice1 && rank0 < rank1) ? 1 : 0));
	*skip = offset;
	return b;
}

/*
 * The place's entry is a key with another suffix, or a link that skips other
 * bytes: it goes into a new layer with the new key, and a link to that takes
 * its place.
 */
static mot_tree_status
add_in_layer(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
			 const unsigned char *suffix, size_t suffix_len, uint64_t value,
			 mot_purpose purpose, const mot_observer *observer)
{
	mot_border *b = place->node;
	int			slot = place->slot;
	rest		r0;
	rest		r1 = {suffix, suffix_len, false, value};
	mot_border *made;
	size_t		skip;
	uint64_t	version;

	r0.bytes = mot_border_suffix(b, slot, &r0.len);
	r0.link = mot_get(b->keylenx[slot]) == MOT_KEY_SKIP;
	r0.value = mot_get(b->value[slot]);
	made = make_layer(tree, ctx, &r0, &r1, &skip, purpose);
	if (made == NULL)
	{
		mot_unlock_node(&b->n);
		return MOT_TREE_NO_MEMORY;
	}

	/*
	 * Nobody believes what value, keylenx and bytes say together while the
	 * node is dirty.  Release: also what the new node contains.
	 */
	mot_mark_node(&b->n, MOT_V_INSERTING);
	mot_publish(b->value[slot], (uint64_t) (uintptr_t) made);
	MOT_STOP_POINT("tree-layer-linked");
	shorten_suffix(mot_get(b->suffixes), slot, skip);
	mot_publish(b->keylenx[slot], skip > 0 ? MOT_KEY_SKIP : MOT_KEY_LAYER);
	version = mot_unlock_node(&b->n);

	/* whoever observed a node now has to observe the one below it too */
	if (observer)
		observer->moved(observer->arg, &b->n, mot_observed_version(place->version),
						mot_observed_version(version), &made->n, MOT_V_BORDER);
	return MOT_TREE_OK;
}

mot_tree_status
mot_tree_add(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
			 const unsigned char *key, size_t len, uint64_t value,
			 mot_purpose purpose, const mot_observer *observer)
{
	const unsigned char *suffix = NULL;
	size_t		suffix_len = 0;
	uint64_t	longest = mot_get(tree->longest);

	if (place->rank == MOT_KEY_SUFFIX)
	{
		suffix = key + place->offset + 8;
		suffix_len = len - place->offset - 8;
	}

	/*
	 * Relaxed: a cursor opened after this insert has heard of it by some
	 * other way, which orders this too; for any other it does not matter.
	 */
	while (mot_unlikely(longest < len) &&
		   !atomic_compare_exchange_weak_explicit(&tree->longest, &longest, len,
												  memory_order_relaxed, memory_order_relaxed))
		;

	if (place->slot >= 0)
		return add_in_layer(tree, ctx, place, suffix, suffix_len, value, purpose, observer);
	if (mot_perm_size(place->perm) < MOT_BORDER_WIDTH)
		return add_with_room(tree, ctx, place, suffix, suffix_len, value, purpose, observer);
	return mot_tree_add_by_split(tree, ctx, place, suffix, suffix_len, value, purpose, observer);
}
