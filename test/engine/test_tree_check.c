/*-------------------------------------------------------------------------
 *
 * test_tree_check.c
 *	  mot_tree_check finds what is wrong with a tree, says what, and nothing
 *	  else: each invariant is broken, in one field, and mended again.
 *
 *-------------------------------------------------------------------------
 */
#include "test_tree.h"
#include "tree/tree_node.h"

#define REGION_BYTES ((size_t) 64 << 20)

static bool
complains(const mot_tree *tree, const char *what)
{
	char		err[256];

	if (mot_tree_check(tree, err, sizeof(err)))
		return false;
	if (strstr(err, what) != NULL && !mot_tree_check(tree, NULL, 0))
		return true;
	printf("# %s\n", err);
	return false;
}

/* with another value in this field */
#define BROKEN(tree, field, value, what) \
	do { \
		__typeof__((field) + 0) was = (field); \
		(field) = (value); \
		CHECK(complains(tree, what)); \
		(field) = (__typeof__((field) + 0)) was; \
		CHECK(tree_is_sound(tree)); \
	} while (0)

/* the slot of key number i */
static int
slot_of(const mot_border *b, int i)
{
	return mot_perm_slot(mot_get(b->permutation), i);
}

static mot_border *
leftmost(mot_node *n)
{
	while (!mot_is_border(mot_get(n->version)))
		n = mot_get(((mot_interior *) n)->child[0]);
	return (mot_border *) n;
}

/* a first layer of several heights */
static void
nodes(void)
{
	fixture		f;
	mot_node   *top;
	mot_node   *below;
	mot_interior *root;
	mot_interior *in;
	mot_border *first;
	mot_border *second;
	mot_border *last;
	int			size;

	fixture_begin(&f, REGION_BYTES, 1);
	for (uint64_t i = 0; i < 10000; i++)
	{
		unsigned char key[8];

		mot_store_be64(key, i << 32);
		CHECK(tree_insert(&f, key, 8, i + 1, NULL) == MOT_TREE_OK);
	}
	CHECK(tree_is_sound(f.tree));
	top = mot_get(f.tree->root);
	while (mot_get(top->parent) != NULL)
		top = (mot_node *) mot_get(top->parent);
	root = (mot_interior *) top;
	REQUIRE(!mot_is_border(mot_get(top->version)) && root->height > 0 && mot_get(root->keys) > 1);
	below = mot_get(root->child[1]);
	in = (mot_interior *) below;
	first = leftmost(top);
	second = mot_get(first->next);
	for (last = second; mot_get(last->next) != NULL; last = mot_get(last->next))
		;
	size = mot_perm_size(mot_get(second->permutation));
	REQUIRE(size > 2 && mot_get(in->keys) > 2);

	/* versions and links */
	BROKEN(f.tree, second->n.version, was | MOT_V_LOCK, "left locked or dirty");
	BROKEN(f.tree, below->version, was | MOT_V_SPLITTING, "left locked or dirty");
	BROKEN(f.tree, second->n.version, was | MOT_V_DELETED, "deleted, but can be reached");
	BROKEN(f.tree, below->version, was | MOT_V_ROOT, "another node says it is root");
	BROKEN(f.tree, top->version, was & ~MOT_V_ROOT, "no root above it");
	BROKEN(f.tree, f.tree->root, &second->n, "linked to, but not in the spine");
	mot_set(f.tree->root, &first->n);
	BROKEN(f.tree, first->n.version, was | MOT_V_DELETED, "deleted, but linked to");
	BROKEN(f.tree, second->n.parent, root, "its parent is another");
	BROKEN(f.tree, below->version, was | MOT_V_BORDER, "at the wrong height");
	BROKEN(f.tree, second->prev, NULL, "its left neighbour is another");
	BROKEN(f.tree, first->next, mot_get(second->next), "its left neighbour does not know it");
	BROKEN(f.tree, last->next, first, "the last one has a right neighbour");

	/* interior nodes */
	BROKEN(f.tree, in->height, was + 1, "above the border nodes, not 1");
	BROKEN(f.tree, in->keys, MOT_INTERIOR_WIDTH + 1, ": 31 keys");
	BROKEN(f.tree, in->keys, was - 1, "something is left at key");
	BROKEN(f.tree, in->key[0], MOT_NO_KEY - 1, "separator 1 is out of its range");
	BROKEN(f.tree, in->key[1], mot_get(in->key[0]), "separators 0 and 1 are not in order");

	/* border nodes */
	BROKEN(f.tree, second->permutation, (was & ~UINT64_C(0xf0)) | (was >> 4 & 0xf0), "permutation");
	BROKEN(f.tree, second->permutation, mot_perm_truncate(was, 0), "empty, but not the leftmost");
	BROKEN(f.tree, second->keylenx[slot_of(second, 0)], MOT_KEY_LAYER + 1, "has length 12");
	BROKEN(f.tree, second->slice[slot_of(second, 1)], mot_get(second->slice[slot_of(second, 0)]),
		   "keys 0 and 1 are not in order");
	BROKEN(f.tree, second->slice[slot_of(second, size - 1)], UINT64_MAX, "is out of its range");
	BROKEN(f.tree, second->keylenx[slot_of(second, size - 1)], 3, "has more than 3 bytes");
	BROKEN(f.tree, second->value[slot_of(second, 1)], 0, "has no value");
	fixture_end(&f);
}

/* suffixes, skips, and the layers below links */
static void
layers(void)
{
	static const char *const keys[] = {
		"a long key with nobody beside it",
		"in a layer of their own: one",
		"in a layer of two",
		"skipped: what they have in common is longer than a slice: one",
		"skipped: what they have in common is longer than a slice: two"
	};
	fixture		f;
	mot_border *b;
	mot_border *lower;
	int			skip;

	fixture_begin(&f, REGION_BYTES, 1);
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK(tree_insert(&f, keys[i], strlen(keys[i]), i + 1, NULL) == MOT_TREE_OK);
	CHECK(tree_is_sound(f.tree));
	b = leftmost(mot_get(f.tree->root));
	REQUIRE(mot_perm_size(mot_get(b->permutation)) == 3);
	skip = slot_of(b, 2);
	REQUIRE(mot_get(b->keylenx[slot_of(b, 0)]) == MOT_KEY_SUFFIX && mot_get(b->keylenx[skip]) == MOT_KEY_SKIP);
	lower = leftmost((mot_node *) (uintptr_t) mot_get(b->value[skip]));

	BROKEN(f.tree, b->suffixes->at[slot_of(b, 0)], 0, "has no suffix");
	BROKEN(f.tree, b->suffixes->used, 1, "has no suffix");
	BROKEN(f.tree, b->suffixes->at[skip], was - 1, "bytes");
	BROKEN(f.tree, lower->value[slot_of(lower, 0)], 0, "has no value");
	BROKEN(f.tree, lower->permutation, mot_perm_truncate(was, 0), "its layer is empty");
	fixture_end(&f);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv);
	RUN(nodes);
	RUN(layers);
	return test_end();
}
