/*-------------------------------------------------------------------------
 *
 * tree_stat.h
 *	  What a Masstree consists of, counted node by node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TREE_STAT_H
#define MOT_TREE_STAT_H

#include <string.h>

#include "tree/tree_node.h"

typedef struct tree_stat
{
	uint64_t	keys;
	uint64_t	border_nodes;
	uint64_t	interior_nodes;
	uint64_t	layers;
	uint64_t	suffix_bytes;
} tree_stat;

static inline void count_layer(mot_node *root, tree_stat *stat);

/*
 * One version of a node's contents is copied before anything below is looked
 * at.  Nodes may be missed or counted twice when others change the tree.
 */
static inline void
count_border(const mot_border *b, tree_stat *stat)
{
	mot_node   *below[MOT_BORDER_WIDTH];
	int			layers;
	int			size;
	uint64_t	bytes;
	uint64_t	v;

	do
	{
		uint64_t	perm;

		v = mot_stable_version(&b->n);
		perm = mot_read(b->permutation);
		size = mot_perm_size(perm);
		layers = 0;
		bytes = 0;
		for (int i = 0; i < size; i++)
		{
			int			slot = mot_perm_slot(perm, i);
			int			keylenx = mot_read(b->keylenx[slot]);
			size_t		len;

			if (mot_is_link(keylenx))
				below[layers++] = (mot_node *) (uintptr_t) mot_read(b->value[slot]);
			if (mot_has_bytes(keylenx))
			{
				mot_border_suffix(b, slot, &len);
				bytes += len;
			}
		}
	} while (mot_has_changed(&b->n, v));

	stat->border_nodes++;
	stat->keys += (uint64_t) (size - layers);
	stat->suffix_bytes += bytes;
	for (int i = 0; i < layers; i++)
		count_layer(below[i], stat);
}

static inline void
count_node(const mot_node *n, tree_stat *stat)
{
	const mot_interior *in = (const mot_interior *) n;
	mot_node   *child[MOT_INTERIOR_WIDTH + 1];
	unsigned	keys;
	uint64_t	v;

	if (mot_is_border(mot_get(n->version)))
	{
		count_border((const mot_border *) n, stat);
		return;
	}
	do
	{
		v = mot_stable_version(n);
		keys = mot_read(in->keys);
		for (unsigned i = 0; i <= keys; i++)
			child[i] = mot_read(in->child[i]);
	} while (mot_has_changed(n, v));

	stat->interior_nodes++;
	for (unsigned i = 0; i <= keys; i++)
		count_node(child[i], stat);
}

static inline void
count_layer(mot_node *root, tree_stat *stat)
{
	uint64_t	v = mot_stable_version(root);

	while (!(v & (MOT_V_ROOT | MOT_V_DELETED)))
	{
		root = (mot_node *) mot_read(root->parent);
		v = mot_stable_version(root);
	}
	if (v & MOT_V_DELETED)
		return;
	stat->layers++;
	count_node(root, stat);
}

/* Walks the whole tree (concurrent changes make the figures approximate). */
static inline void
tree_stats(const mot_tree *tree, tree_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	count_layer(mot_read(tree->root), stat);
}

#endif							/* MOT_TREE_STAT_H */
