/*-------------------------------------------------------------------------
 *
 * tree_insert.h
 *	  What tree_insert.c, tree_split.c and tree_build.c share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TREE_INSERT_H
#define MOT_TREE_INSERT_H

#include "tree/tree_node.h"

/* a full interior node has 31 children, and a tree less than 2^64 nodes */
#define MOT_MAX_HEIGHT 20

/* as deep as two keys can be alike */
#define MOT_MAX_LAYERS (MOT_KEY_MAX / 8 + 1)

extern mot_border *mot_new_border(mot_tree *tree, mot_tree_context *ctx, mot_purpose purpose);
extern mot_interior *mot_new_interior(mot_tree *tree, mot_tree_context *ctx, mot_purpose purpose);
extern mot_suffixes *mot_new_suffixes(mot_tree *tree, mot_tree_context *ctx, int count,
									  size_t bytes, bool exact, mot_purpose purpose);
extern void mot_put_suffix(mot_suffixes *block, int slot, const unsigned char *suffix, size_t len);
extern bool mot_suffix_fits(const mot_border *b, size_t len);
extern mot_suffixes *mot_copy_suffixes(mot_tree *tree, mot_tree_context *ctx, const mot_border *b,
									   uint64_t perm, int first, int last, size_t len,
									   mot_purpose purpose);
extern void mot_add_here(mot_border *b, uint64_t perm, int position, uint64_t slice, int rank,
						 const unsigned char *suffix, size_t suffix_len, mot_suffixes *block,
						 uint64_t value);
extern mot_tree_status mot_tree_add_by_split(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
											 const unsigned char *suffix, size_t suffix_len,
											 uint64_t value, mot_purpose purpose,
											 const mot_observer *observer);

#endif							/* MOT_TREE_INSERT_H */
