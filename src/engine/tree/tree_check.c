/*-------------------------------------------------------------------------
 *
 * tree_check.c
 *	  A check of everything tree_node.h says about a tree at rest.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tree/tree_node.h"

typedef struct check
{
	char	   *err;
	size_t		errlen;
	bool		ok;
	const mot_border *last;		/* of this layer, the border node to the left */
	size_t		offset;			/* of the layer */
} check;

static bool check_layer(check *c, mot_node *link, size_t offset);

static bool
__attribute__((format(printf, 3, 4)))
fail(check *c, const void *node, const char *format,...)
{
	char		what[160];
	va_list		args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (c->ok && c->err)
		snprintf(c->err, c->errlen, "node %p at offset %zu: %s", node, c->offset, what);
	c->ok = false;
	return false;
}

static bool
check_version(check *c, const mot_node *n, bool root)
{
	uint64_t	v = mot_read(n->version);

	if (v & (MOT_V_LOCK | MOT_V_DIRTY))
		return fail(c, n, "left locked or dirty: %016" PRIx64, v);
	if (v & MOT_V_DELETED)
		return fail(c, n, "deleted, but can be reached");
	if (((v & MOT_V_ROOT) != 0) != root)
		return fail(c, n, root ? "the root does not say so" : "another node says it is root");
	return true;
}

/* slices from low to high - 1; high_open: there is no upper end */
static bool
check_border(check *c, const mot_border *b, uint64_t low, uint64_t high, bool high_open)
{
	uint64_t	perm = mot_read(b->permutation);
	const mot_suffixes *block = mot_read(b->suffixes);
	int			size = mot_perm_size(perm);
	unsigned	seen = 0;
	uint64_t	before = 0;
	int			before_rank = -1;

	for (int i = 0; i < MOT_BORDER_WIDTH; i++)
		seen |= 1u << mot_perm_slot(perm, i);
	if (seen != (1u << MOT_BORDER_WIDTH) - 1)
		return fail(c, b, "permutation %016" PRIx64, perm);
	if (mot_read(b->prev) != c->last)
		return fail(c, b, "its left neighbour is another");
	if (c->last && mot_read(c->last->next) != b)
		return fail(c, b, "its left neighbour does not know it");
	if (size == 0 && c->last)
		return fail(c, b, "empty, but not the leftmost");
	c->last = b;

	for (int i = 0; i < size; i++)
	{
		int			slot = mot_perm_slot(perm, i);
		uint64_t	slice = mot_read(b->slice[slot]);
		int			keylenx = mot_read(b->keylenx[slot]);
		int			rank = mot_keylenx_rank(keylenx);

		if (keylenx > MOT_KEY_LAYER)
			return fail(c, b, "slot %d has length %d", slot, keylenx);
		if (i > 0 && (slice < before || (slice == before && rank <= before_rank)))
			return fail(c, b, "keys %d and %d are not in order", i - 1, i);
		if (slice < low || (!high_open && slice >= high))
			return fail(c, b, "slice %016" PRIx64 " of key %d is out of its range", slice, i);
		if (keylenx < 8 && (slice & (UINT64_MAX >> (8 * keylenx))) != 0)
			return fail(c, b, "slice %016" PRIx64 " has more than %d bytes", slice, keylenx);
		if (mot_read(b->value[slot]) == 0)
			return fail(c, b, "slot %d has no value", slot);
		if (mot_has_bytes(keylenx))
		{
			uint32_t	at = block ? mot_read(block->at[slot]) : 0;

			if (mot_suffix_len(at) == 0 || mot_suffix_offset(at) + mot_suffix_len(at) > block->used)
				return fail(c, b, "slot %d has no suffix", slot);
			if (keylenx == MOT_KEY_SKIP && mot_suffix_len(at) % 8 != 0)
				return fail(c, b, "slot %d skips %u bytes", slot, mot_suffix_len(at));
		}
		before = slice;
		before_rank = rank;
	}
	for (int i = 0; i < size; i++)
	{
		int			slot = mot_perm_slot(perm, i);
		int			keylenx = mot_read(b->keylenx[slot]);
		check		saved = *c;

		if (mot_is_link(keylenx))
		{
			size_t		skip = 0;

			if (keylenx == MOT_KEY_SKIP)
				mot_border_suffix(b, slot, &skip);
			if (!check_layer(c, (mot_node *) (uintptr_t) mot_read(b->value[slot]), c->offset + 8 + skip))
				return false;
			*c = saved;
		}
	}
	return true;
}

/* "height" is the node's above the border nodes, found on the way down the spine */
static bool
check_node(check *c, mot_node *n, const mot_interior *parent, int height,
		   uint64_t low, uint64_t high, bool high_open)
{
	const mot_interior *in = (const mot_interior *) n;
	unsigned	keys;

	if (!check_version(c, n, parent == NULL))
		return false;
	if (parent && mot_read(n->parent) != parent)
		return fail(c, n, "its parent is another");
	if (mot_is_border(mot_read(n->version)) != (height == 0))
		return fail(c, n, "at the wrong height");
	if (height == 0)
		return check_border(c, (const mot_border *) n, low, high, high_open);

	if (in->height != (uint32_t) height - 1)
		return fail(c, n, "says it is %u above the border nodes, not %d", in->height + 1, height);
	keys = mot_read(in->keys);
	if (keys > MOT_INTERIOR_WIDTH)
		return fail(c, n, "%u keys", keys);
	for (unsigned i = keys; i < MOT_INTERIOR_WIDTH; i++)
		if (mot_read(in->key[i]) != MOT_NO_KEY)
			return fail(c, n, "something is left at key %u of %u", i, keys);
	for (unsigned i = 0; i <= keys; i++)
	{
		bool		first = i == 0;
		bool		last = i == keys;
		uint64_t	from = first ? low : mot_read(in->key[i - 1]);
		uint64_t	to = last ? high : mot_read(in->key[i]);

		if (from < low || (!high_open && from >= high))
			return fail(c, n, "separator %u is out of its range", i);
		if (!first && !last && from >= to)
			return fail(c, n, "separators %u and %u are not in order", i - 1, i);
		if (!check_node(c, mot_read(in->child[i]), in, height - 1, from, to, last && high_open))
			return false;
	}
	return true;
}

static bool
check_layer(check *c, mot_node *link, size_t offset)
{
	mot_node   *root = link;
	mot_node   *n;
	int			height = 0;

	c->offset = offset;
	c->last = NULL;
	while (!(mot_read(root->version) & MOT_V_ROOT))
	{
		if (mot_read(root->version) & MOT_V_DELETED)
			return fail(c, root, "deleted, but linked to");
		root = (mot_node *) mot_read(root->parent);
		if (root == NULL)
			return fail(c, link, "no root above it");
	}
	for (n = root; !mot_is_border(mot_read(n->version)); n = mot_read(((mot_interior *) n)->child[0]))
		height++;
	/* the link has to be to a node of the spine */
	for (n = root; n != link; n = mot_read(((mot_interior *) n)->child[0]))
		if (mot_is_border(mot_read(n->version)))
			return fail(c, link, "linked to, but not in the spine");

	if (!check_node(c, root, NULL, height, 0, 0, true))
		return false;
	if (mot_read(c->last->next) != NULL)
		return fail(c, c->last, "the last one has a right neighbour");
	if (offset > 0 && mot_read(c->last->prev) == NULL && mot_perm_size(mot_read(c->last->permutation)) == 0)
		return fail(c, c->last, "its layer is empty");
	return true;
}

bool
mot_tree_check(const mot_tree *tree, char *err, size_t errlen)
{
	check		c = {.err = err,.errlen = errlen,.ok = true};

	if (err && errlen > 0)
		err[0] = '\0';
	return check_layer(&c, mot_read(tree->root), 0);
}
