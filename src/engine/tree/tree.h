/*-------------------------------------------------------------------------
 *
 * tree.h
 *	  A Masstree: a trie of B+-trees over 8-byte key slices.
 *
 * After Mao, Kohler and Morris, "Cache craftiness for fast multicore
 * key-value storage" (EuroSys 2012); the reference implementation is
 * kohler/masstree-beta.  Keys are byte strings of 0 to MOT_KEY_MAX bytes,
 * ordered by memcmp and then by length; a key holds one non-zero 64-bit
 * value.  Nothing here knows about rows.
 *
 * Readers write nothing shared: they check node version words.  Writers lock
 * single nodes, bottom up, hand over hand.  Nodes and layers that become
 * empty are unlinked and freed through the retire callback, when no reader
 * that could still see them is left.
 *
 * Whoever calls (reader or writer) holds a published snapshot (mot_engine.h),
 * so that retired nodes it can reach are not freed under it.
 *
 * Phantom protection (Silo, section 4.6): a reader may ask to be told every
 * border node it took an answer from together with that node's version; an
 * insert reports how its own changes moved the versions of nodes, so that a
 * transaction can carry its own inserts forward in its node set.  Inserting
 * a key into a node, splitting it and deleting it change the version;
 * removing a key and changing a value do not.  So a version that has changed
 * is no more than a reason to look again: a node is deleted by whoever reclaims
 * its last key, and an insert may be one that is never committed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TREE_H
#define MOT_TREE_H

#include "memory/memory.h"
#include "mot_engine.h"

#define MOT_KEY_MAX 8191

typedef struct mot_tree mot_tree;	/* in the region, from mot_tree_create */
typedef struct mot_node mot_node;

/*
 * What a call needs from its process: where to allocate, and how to give
 * nodes back.  retire(arg, object) must never fail: it frees "object" with
 * mot_free once nobody can be reading it.  One context per process or thread.
 */
typedef struct mot_tree_context
{
	mot_cache  *cache;
	mot_region *region;
	void		(*retire) (void *arg, void *object);
	void	   *retire_arg;
	int			why;			/* as mot_alloc says it, after
								 * MOT_TREE_NO_MEMORY */
	bool		exclusive;		/* the caller holds the whole tree
								 * exclusively: no reader, no other writer
								 * (bulk load, index build, recovery): locks,
								 * version bumps and fences are skipped, nodes
								 * are freed at once */
} mot_tree_context;

/* node observations: called for every border node an answer came from */
typedef struct mot_observer
{
	void		(*observe) (void *arg, const mot_node *node, uint64_t version);
	void		(*moved) (void *arg, const mot_node *node, uint64_t from, uint64_t to,
						  const mot_node *sibling, uint64_t sibling_version);

	/*
	 * moved: our own insert took node from version "from" to "to"; if it
	 * split, "sibling" (else NULL) is a new node that now holds part of what
	 * node held, at "sibling_version": whoever had observed node at "from"
	 * now replaces that by the two.
	 */
	void	   *arg;
} mot_observer;

/* current version of a node as observers are told it; a locked-and-dirty node
 * returns a value that equals no observed one.  "mine": nodes this caller has
 * locked do not occur (no lock outlives a call). */
extern uint64_t mot_node_version(const mot_node *node);

/* A new empty tree in "pool", or NULL when memory is out. */
extern mot_tree *mot_tree_create(mot_tree_context *ctx, mot_pool *pool);

/* Trees are dropped by destroying their pool: there is no destroy. */

/* The value at key, or 0.  observer may be NULL. */
extern uint64_t mot_tree_get(const mot_tree *tree, const void *key, size_t len,
							 const mot_observer *observer);

/*
 * Compare and swap under the key's node lock: if the key's value is
 * "expected" (0: key absent) it becomes "desired" (0: key is removed);
 * *actual gets the value found either way.
 */
typedef enum mot_tree_status
{
	MOT_TREE_OK,
	MOT_TREE_MISMATCH,			/* *actual differs from expected; nothing
								 * changed */
	MOT_TREE_NO_MEMORY			/* nothing changed */
} mot_tree_status;

extern mot_tree_status mot_tree_cas(mot_tree *tree, mot_tree_context *ctx,
									const void *key, size_t len,
									uint64_t expected, uint64_t desired,
									uint64_t *actual, mot_purpose purpose,
									const mot_observer *observer);

/*
 * Change the value of an existing key under its node lock: change(arg, value)
 * returns the new value (the same: nothing happens; 0: the key is removed).
 * It runs under a spinlock: short, no call that waits or allocates.  An absent
 * key returns MOT_TREE_MISMATCH and change is not called.  Never needs memory.
 *
 * *insert (may be NULL) is looked at after change: if it is true, more can now
 * be found under the key than before, which counts as an insert: the node's
 * version moves on, and observer (may be NULL) is told of it.
 */
extern mot_tree_status mot_tree_change(mot_tree *tree, mot_tree_context *ctx,
									   const void *key, size_t len,
									   uint64_t (*change) (void *arg, uint64_t value),
									   void *arg, const bool *insert,
									   const mot_observer *observer);

/*
 * Building an empty tree that nobody else has from its keys in ascending order
 * (tree_build.c), in private memory of mot_tree_build_size() bytes.  "full": all
 * nodes are filled; otherwise with a little room.  more_memory is called when
 * memory is out: true means that it may be tried again.
 *
 * add: MOT_TREE_MISMATCH if the key is not greater than the one before, whose
 * value *before gets; nothing has happened then.  After MOT_TREE_NO_MEMORY the
 * tree is still empty, and its pool is to be given back.  end: now the tree has
 * the keys.
 */
typedef struct mot_tree_build mot_tree_build;

extern size_t mot_tree_build_size(void);
extern bool mot_tree_build_begin(mot_tree_build *build, mot_tree *tree, mot_tree_context *ctx,
								 bool full, bool (*more_memory) (void *arg), void *arg);
extern mot_tree_status mot_tree_build_add(mot_tree_build *build, const void *key, size_t len,
										  uint64_t value, uint64_t *before);
extern mot_tree_status mot_tree_build_end(mot_tree_build *build);

/*
 * Range cursor.  Bounds are prefixes: with a bound of n bytes, keys are
 * compared by their first n bytes only (a shorter key by all it has, and then
 * less than the bound).  MOT_BOUND_NONE: no bound on that side.  INCLUSIVE:
 * keys whose prefix equals the bound belong to the range; EXCLUSIVE: not.
 *
 * The cursor may be left and resumed while the snapshot stays published: it
 * re-finds its place by the last key when its node changed, so it returns
 * every key that was in the range all the time exactly once, in order; keys
 * inserted or removed meanwhile may or may not be seen.  The bytes of the
 * bounds are copied.  The caller's cursor struct is private memory; close
 * only frees the key buffer (malloc) if one was needed.
 */
/* mot_bound: see mot_engine.h */
typedef struct mot_tree_cursor mot_tree_cursor; /* tree_cursor.h has it */

/* false: out of (private) memory */
extern bool mot_tree_cursor_open(mot_tree_cursor *cursor, const mot_tree *tree,
								 const mot_bound *lower, const mot_bound *upper,
								 bool backward, const mot_observer *observer);

/*
 * next value, or 0 at the end.  *key, *len (may be NULL) point into the cursor, until the next call
 */
extern uint64_t mot_tree_cursor_next(mot_tree_cursor *cursor, const void **key, size_t *len);
extern void mot_tree_cursor_close(mot_tree_cursor *cursor);

/*
 * Check every invariant (order, permutations, parents, sibling links, slices,
 * no deleted node reachable) of a tree at rest.  False and a message if one
 * does not hold.
 */
extern bool mot_tree_check(const mot_tree *tree, char *err, size_t errlen);

#endif							/* MOT_TREE_H */
