/*-------------------------------------------------------------------------
 *
 * tree_node.h
 *	  Nodes of the Masstree, and what readers and writers do to one node.
 *
 * A tree is a trie of layers.  A layer is a B+-tree whose keys are the next
 * eight bytes of the key (a "slice", big-endian, padded with zeros) and, for
 * equal slices, the number of bytes that are left: 0 to 8, or "more", which
 * is rank 9.  An entry of rank 9 either has the rest of its one key in the
 * node's suffix block or links to a layer for all keys with these first
 * bytes.  Entries of one slice are always in one border node, so a node's
 * range is a range of slices.  No node stores its range: the separators in
 * its ancestors say it.
 *
 * There is a layer only where keys part.  Slices that all keys below a link
 * have in common behind its own are its "skip": their bytes stand in the
 * suffix block of the link's node, once, and the layer begins behind them.
 * So long keys that are alike for long take one node, not one for each eight
 * bytes.  A key that lacks bytes of the skip is none of the layer's, and one
 * that comes parts from it at some slice of the skip: there a layer is put in
 * between, with this key and a link with what is left of the skip behind.
 * The layer below stays as it is, since no node knows how deep it lies; who
 * is in it, or on the way, has compared the same bytes.  (Where keys go and a
 * layer is left with one link in it, it stays too, until that is gone.)
 *
 * Readers.  A node's version word has a counter of inserts, one of splits,
 * and "dirty" bits a writer sets before it changes what readers look at.  A
 * reader takes a version without dirty bits, reads, and takes the version
 * again: unless it is the same, what was read counts for nothing.  Going
 * from a parent to a child it takes the child's version before it checks the
 * parent's again, so at some moment both were true.  A border node reached
 * that way answers for the key as long as it has neither split nor been
 * deleted: a range only ever shrinks by splitting.  A reader that finds a
 * deleted node starts again from the top; whoever deleted it is about to
 * take it off its parent.
 *
 * Ordering of memory.  Writers store data with release, after the (relaxed)
 * store of the dirty bit; readers load data with acquire, before the
 * (relaxed) second load of the version.  Hence a reader that sees any new
 * data sees the dirty bit or a later version too.  There are no fences:
 * thread sanitizers do not understand them, and on x86 these loads and stores
 * are plain moves.
 *
 * What a slot of a border node holds never changes while the permutation has
 * the slot, but for the value; only under INSERTING is an empty slot filled, or
 * does an entry with a suffix or a skip become a link that skips no more than
 * the first of these bytes.  So a removal is one store of the permutation and
 * changes no version: a reader that has the old one was just before it.  Bytes
 * of suffixes and skips are appended to the block, and never changed; a block
 * without room is replaced by a copy.  They may therefore be read without any
 * lock, even by a cursor that left the node long ago: the block is retired, not
 * freed.
 *
 * Writers lock a border node, and its ancestors as far as a split or deletion
 * goes, from the bottom up.  All nodes of one split are held until the end:
 * then everything needed can be allocated before anything changes.
 *
 * What protects a field: the node's own lock protects everything in it but
 * "parent" (the parent's lock; a root's: its own), and "prev" (the lock of
 * the node it points to).  So a split need not lock the children it moves,
 * nor its right neighbour.
 *
 * Removal.  A border node that becomes empty is marked DELETED, leaves the
 * list of its siblings (this takes the left neighbour's lock), and leaves its
 * parent; a neighbour takes over its range, as the separator beside it goes.
 * A parent without children goes the same way.  But the leftmost border node
 * of a layer and all nodes above it, the "spine", stay as long as the layer:
 * a link to a layer may therefore point to any of them.  It points to the
 * root if it can: when the root splits it lags behind, readers climb by
 * "parent", and the next writer that comes along stores the root in it.
 *
 * When only an empty spine is left of a layer (not of the first one, which is
 * the tree), the link is taken out of the border node above and the spine is
 * marked DELETED and retired.  This is tried by whoever emptied the leftmost
 * node or took off the last other one, after giving up all locks: starting
 * from the top again it locks the upper border node and then the spine from
 * the bottom, and looks whether it is still empty.
 *
 * Lock order: border node of an upper layer; border node of a layer; its left
 * neighbours, going left; their ancestors, going up.
 *
 * An exclusive caller (mot_tree_context) goes through the same code, except
 * that locking is no atomic exchange and what it unlinks is freed at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TREE_NODE_H
#define MOT_TREE_NODE_H

#include "tree/tree.h"

#define MOT_BORDER_WIDTH	15	/* a permutation has room for so many */
#define MOT_INTERIOR_WIDTH	30	/* keys; fills 512 bytes */

/*
 * The version word.  The counter of inserts lies below that of splits and
 * carries into it: once in 2^26 inserts readers think the node has split.
 */
#define MOT_V_LOCK		UINT64_C(0x01)
#define MOT_V_INSERTING UINT64_C(0x02)
#define MOT_V_SPLITTING UINT64_C(0x04)	/* or being deleted */
#define MOT_V_DELETED	UINT64_C(0x08)
#define MOT_V_ROOT		UINT64_C(0x10)	/* of its layer */
#define MOT_V_BORDER	UINT64_C(0x20)
#define MOT_V_DIRTY		(MOT_V_INSERTING | MOT_V_SPLITTING)
#define MOT_V_ONE_INSERT (UINT64_C(1) << 6)
#define MOT_V_ONE_SPLIT (UINT64_C(1) << 32)

/* what observers are told: neither lock nor a change of root matters to them */
#define mot_observed_version(v) ((v) & ~(MOT_V_LOCK | MOT_V_ROOT))

/* keylenx of a border node's slot: 0 to 8 bytes of the slice, or */
#define MOT_KEY_SUFFIX	9		/* the rest is in the suffix block */
#define MOT_KEY_SKIP	10		/* a link: the value is a node of the layer's
								 * spine, the skip in the suffix block */
#define MOT_KEY_LAYER	11		/* a link without a skip */

#define mot_keylenx_rank(k) ((k) > MOT_KEY_SUFFIX ? MOT_KEY_SUFFIX : (k))
#define mot_is_link(k)		((k) >= MOT_KEY_SKIP)
#define mot_has_bytes(k)	((k) == MOT_KEY_SUFFIX || (k) == MOT_KEY_SKIP)

struct mot_node
{
	_Atomic uint64_t version;
	struct mot_interior *_Atomic parent;	/* NULL: a root that never split */
};

/*
 * Suffixes and skips of one border node's slots: "at" has offset and length
 * in one word, so that a reader never combines those of two keys.
 */
typedef struct mot_suffixes
{
	uint32_t	capacity;		/* bytes in data */
	uint32_t	used;			/* lock holder's */
	_Atomic uint32_t at[MOT_BORDER_WIDTH];
	unsigned char data[];
} mot_suffixes;

#define MOT_SUFFIX_LEN_BITS 13	/* MOT_KEY_MAX < 2^13; 15 such keys < 2^18 */
#define mot_suffix_offset(at) ((at) >> MOT_SUFFIX_LEN_BITS)
#define mot_suffix_len(at)	((at) & ((1u << MOT_SUFFIX_LEN_BITS) - 1))

typedef struct mot_border
{
	struct mot_node n;
	_Atomic uint64_t permutation;
	_Atomic uint8_t keylenx[16];	/* the last one only pads */
	_Atomic uint64_t slice[MOT_BORDER_WIDTH];
	_Atomic uint64_t value[MOT_BORDER_WIDTH];
	struct mot_border *_Atomic next;
	struct mot_border *_Atomic prev;
	mot_suffixes *_Atomic suffixes;
} mot_border;

typedef struct mot_interior
{
	struct mot_node n;
	_Atomic uint32_t keys;
	uint32_t	height;			/* above the children: 0: they are border
								 * nodes; never changes */
	_Atomic uint64_t key[MOT_INTERIOR_WIDTH];	/* child[i + 1] has slices >=
												 * key[i]; those behind the
												 * last are NO_KEY */
	mot_node   *_Atomic child[MOT_INTERIOR_WIDTH + 1];
} mot_interior;

_Static_assert(sizeof(mot_border) == 304, "a border node fills its size class");
_Static_assert(sizeof(mot_interior) == 512, "an interior node fills its size class");
_Static_assert(MOT_BORDER_WIDTH == 15, "the vectors of slots_of are for it");
_Static_assert(MOT_INTERIOR_WIDTH == 30, "mot_interior_child is written for it");

struct mot_tree
{
	mot_pool   *pool;
	mot_node   *_Atomic root;	/* of the spine of the first layer: may lag
								 * behind */
	_Atomic uint64_t longest;	/* no key ever inserted was longer */

	/*
	 * The first layer's last border node, or one that was, or NULL: where
	 * ascending keys go.  Whoever uses it checks that it is.
	 */
	mot_border *_Atomic rightmost;
};

/*
 * Where an interior node has no key.  Readers find their child by this, so the
 * child behind a key is there before the key.
 */
#define MOT_NO_KEY		UINT64_MAX

/* relaxed for fields the caller's lock protects; acquire and release: see above */
#define mot_get(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define mot_read(field) atomic_load_explicit(&(field), memory_order_acquire)
#define mot_set(field, x) atomic_store_explicit(&(field), (x), memory_order_relaxed)
#define mot_publish(field, x) atomic_store_explicit(&(field), (x), memory_order_release)

/* ------------------------------------------------------------ permutation */

/*
 * Bits 0-3: number of keys; then 15 slot numbers of four bits: first those of
 * the keys, in order, then the free ones.
 */
#define MOT_PERMUTATION_EMPTY UINT64_C(0xEDCBA98765432100)

static inline int
mot_perm_size(uint64_t perm)
{
	return (int) (perm & 15);
}

static inline int
mot_perm_slot(uint64_t perm, int i)
{
	return (int) (perm >> (4 * i + 4)) & 15;
}

/* take the first free slot in as key number i */
static inline uint64_t
mot_perm_insert(uint64_t perm, int i)
{
	int			size = mot_perm_size(perm);
	uint64_t	slot = (uint64_t) mot_perm_slot(perm, size);
	int			low = 4 * i + 4;	/* bits below stay */
	uint64_t	below = perm & ((UINT64_C(1) << low) - 1);
	uint64_t	middle = perm & ((UINT64_C(1) << (4 * size + 4)) - 1) & ~((UINT64_C(1) << low) - 1);
	uint64_t	above = 0;

	/* size is at most 14 here; 4 * size + 8 can be 64 */
	if (size < MOT_BORDER_WIDTH - 1)
		above = perm & ~((UINT64_C(1) << (4 * size + 8)) - 1);
	return (below | slot << low | middle << 4 | above) + 1;
}

/* make key number i's slot the first free one */
static inline uint64_t
mot_perm_remove(uint64_t perm, int i)
{
	int			size = mot_perm_size(perm);
	uint64_t	slot = (uint64_t) mot_perm_slot(perm, i);
	int			low = 4 * i + 4;
	int			high = 4 * size;	/* where the last key's slot is */
	uint64_t	below = perm & ((UINT64_C(1) << low) - 1);
	uint64_t	middle = 0;
	uint64_t	above = 0;

	if (high > low)
		middle = (perm >> 4) & ((UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1);
	if (size < MOT_BORDER_WIDTH)
		above = perm & ~((UINT64_C(1) << (high + 4)) - 1);
	return (below | middle | slot << high | above) - 1;
}

/* keep the first "size" keys */
static inline uint64_t
mot_perm_truncate(uint64_t perm, int size)
{
	return (perm & ~UINT64_C(15)) | (uint64_t) size;
}

/* ------------------------------------------------------------------- keys */

static inline uint64_t
mot_load_be64(const unsigned char *p)
{
	uint64_t	x;

	memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x;
}

static inline void
mot_store_be64(unsigned char *p, uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	memcpy(p, &x, 8);
}

/* the first eight of "left" bytes; loads overlap instead of looping */
static inline uint64_t
mot_slice(const unsigned char *p, size_t left)
{
	if (mot_likely(left >= 8))
		return mot_load_be64(p);
	if (left >= 4)
		return (uint64_t) mot_load_be32(p) << 32 | (uint64_t) mot_load_be32(p + left - 4) << (8 * (8 - left));
	if (left == 0)
		return 0;
	return (uint64_t) p[0] << 56 |
		(uint64_t) p[left / 2] << (56 - 8 * (left / 2)) |
		(uint64_t) p[left - 1] << (56 - 8 * (left - 1));
}

static inline int
mot_rank(size_t left)
{
	return left > 8 ? MOT_KEY_SUFFIX : (int) left;
}

/* memcmp order, the shorter first */
static inline int
mot_compare_bytes(const void *a, size_t alen, const void *b, size_t blen)
{
	size_t		n = alen < blen ? alen : blen;
	int			c = n ? memcmp(a, b, n) : 0;

	return c ? c : (alen > blen) - (alen < blen);
}

/* --------------------------------------------------------------- versions */

static inline bool
mot_is_border(uint64_t version)
{
	return (version & MOT_V_BORDER) != 0;
}

/* has the node's range shrunk between version "from" and version "to"? */
static inline bool
mot_has_split(uint64_t from, uint64_t to)
{
	return (from >> 32) != (to >> 32) || (to & MOT_V_DELETED) != 0;
}

static inline uint64_t
mot_stable_version(const mot_node *node)
{
	/* acquire: what is read next was written before or at this version */
	uint64_t	v = mot_read(node->version);
	unsigned	spins = 0;

	while (mot_unlikely(v & MOT_V_DIRTY))
	{
		mot_backoff(&spins);
		v = mot_read(node->version);
	}
	return v;
}

/* did the node change since version "v"?  A lock alone does not matter. */
static inline bool
mot_has_changed(const mot_node *node, uint64_t v)
{
	/* relaxed: the acquire loads of the data are before it */
	return ((mot_get(node->version) ^ v) & ~MOT_V_LOCK) != 0;
}

/* returns the version without the lock bit; it cannot be dirty */
static inline uint64_t
mot_lock_node(mot_node *node, bool exclusive)
{
	unsigned	spins = 0;
	uint64_t	v;

	if (exclusive)
	{
		v = mot_get(node->version);
		mot_set(node->version, v | MOT_V_LOCK);
		return v;
	}
	for (;;)
	{
		v = mot_get(node->version);
		/* acquire: we see all that the last holder did */
		if (!(v & MOT_V_LOCK) &&
			atomic_compare_exchange_weak_explicit(&node->version, &v, v | MOT_V_LOCK,
												  memory_order_acquire,
												  memory_order_relaxed))
			return v;
		mot_backoff(&spins);
	}
}

/*
 * The holder of the lock is about to change what readers look at.  Relaxed:
 * each of the changes is a release store.
 */
static inline void
mot_mark_node(mot_node *node, uint64_t bits)
{
	mot_set(node->version, mot_get(node->version) | bits);
}

/* count what was marked; returns the new version */
static inline uint64_t
mot_unlock_node(mot_node *node)
{
	uint64_t	v = mot_get(node->version);

	if (v & MOT_V_SPLITTING)
		v += MOT_V_ONE_SPLIT;
	else if (v & MOT_V_INSERTING)
		v += MOT_V_ONE_INSERT;
	v &= ~(MOT_V_LOCK | MOT_V_DIRTY);
	/* release: whoever sees this version sees what was done to the node */
	mot_publish(node->version, v);
	return v;
}

/* lock the parent of a node whose lock is held; NULL if it is a root */
static inline mot_interior *
mot_lock_parent(mot_node *node, bool exclusive)
{
	if (mot_get(node->version) & MOT_V_ROOT)
		return NULL;
	for (;;)
	{
		mot_interior *parent = mot_read(node->parent);

		MOT_STOP_POINT("tree-parent-read");
		mot_lock_node(&parent->n, exclusive);
		/* a split of the parent may have moved us meanwhile */
		if (mot_read(node->parent) == parent)
			return parent;
		mot_unlock_node(&parent->n);
	}
}

/* --------------------------------------------------------------- descents */

/*
 * Start loading the whole node at once: the lines of a border node, which may
 * begin anywhere in the first, or the eight of an interior one.
 */
static inline void
mot_prefetch_border(const void *node)
{
	const char *p = node;

	for (size_t i = 0; i < sizeof(mot_border); i += MOT_CACHE_LINE)
		mot_prefetch(p + i);
	mot_prefetch(p + sizeof(mot_border) - 1);
}

static inline void
mot_prefetch_interior(const void *node)
{
	const char *p = node;

	/* written out: a loop would take as many instructions again */
	mot_prefetch(p);
	mot_prefetch(p + 1 * MOT_CACHE_LINE);
	mot_prefetch(p + 2 * MOT_CACHE_LINE);
	mot_prefetch(p + 3 * MOT_CACHE_LINE);
	mot_prefetch(p + 4 * MOT_CACHE_LINE);
	mot_prefetch(p + 5 * MOT_CACHE_LINE);
	mot_prefetch(p + 6 * MOT_CACHE_LINE);
	mot_prefetch(p + 7 * MOT_CACHE_LINE);
}

/*
 * The child of an interior node with slices like this one: that behind as many
 * keys as are not greater, by halving the node's room for keys.  Nothing
 * depends on how many keys there are, so there is no branch to mispredict; and
 * a place is a number of bytes, from which a key and its child are one
 * instruction away.  Of both there should be few: how far the processor runs
 * ahead of a cache miss, so that the next one's wait begins, is a matter of
 * how many instructions lie in between.
 */
static inline mot_node *
mot_interior_child(const mot_interior *in, uint64_t slice)
{
#define KEY_AT(byte) mot_read(*(const _Atomic uint64_t *) ((const char *) in + (byte)))
	const size_t key = sizeof(uint64_t);
	const size_t first = offsetof(mot_interior, key);
	const size_t to_child = offsetof(mot_interior, child) - offsetof(mot_interior, key);
	size_t		at = first;
	size_t		last;

	mot_opaque(at);				/* or it would compute two places */
	at = KEY_AT(at + 14 * key) <= slice ? at + 15 * key : at;
	at = KEY_AT(at + 7 * key) <= slice ? at + 8 * key : at;
	at = KEY_AT(at + 3 * key) <= slice ? at + 4 * key : at;
	at = KEY_AT(at + 1 * key) <= slice ? at + 2 * key : at;
	last = KEY_AT(at) <= slice;
	mot_opaque(last);			/* or it would branch */
	at += last * key;

	/* only the greatest slice of all is not less than NO_KEY */
	if (mot_unlikely(slice == MOT_NO_KEY))
	{
		size_t		end = first + mot_read(in->keys) * key;

		at = at < end ? at : end;
	}
	return (mot_node *) (uintptr_t) KEY_AT(at + to_child);
#undef KEY_AT
}

/*
 * From a node of a layer's spine to the border node responsible for "slice".
 * Sets *root to the layer's root and *version to a version of the border node
 * at which it was responsible.  NULL: the layer or the node has been deleted,
 * and the caller starts from the top again.
 */
static inline mot_border *
mot_descend(mot_node **root, uint64_t slice, uint64_t *version)
{
	mot_node   *n;
	uint64_t	v;

again:
	n = *root;
	for (;;)
	{
		v = mot_stable_version(n);
		if (mot_unlikely(v & MOT_V_DELETED))
			return NULL;
		if (mot_likely(v & MOT_V_ROOT))
			break;
		n = (mot_node *) mot_read(n->parent);
	}
	*root = n;

	while (!mot_is_border(v))
	{
		mot_interior *in = (mot_interior *) n;
		mot_node   *child = mot_interior_child(in, slice);
		uint64_t	cv;

		if (in->height == 0)
			mot_prefetch_border(child);
		else
			mot_prefetch_interior(child);
		cv = mot_stable_version(child);
		if (mot_unlikely(mot_has_changed(n, v)))
		{
			uint64_t	now = mot_stable_version(n);

			if (mot_has_split(v, now))
				goto again;
			v = now;
			continue;
		}
		n = child;
		v = cv;
	}
	if (mot_unlikely(v & MOT_V_DELETED))
		return NULL;
	*version = v;
	return (mot_border *) n;
}

/*
 * Position of (slice, rank) among the keys of a border node: the number of
 * smaller ones.  *slot is the slot of an equal one, or -1.
 */
static inline int
mot_border_search(const mot_border *b, uint64_t perm, uint64_t slice, int rank, int *slot)
{
	int			n = mot_perm_size(perm);
	int			i;

	for (i = 0; i < n; i++)
	{
		int			s = mot_perm_slot(perm, i);
		uint64_t	there = mot_read(b->slice[s]);

		if (there < slice)
			continue;
		if (there == slice)
		{
			int			len = mot_read(b->keylenx[s]);
			int			r = mot_keylenx_rank(len);

			if (r < rank)
				continue;
			if (r == rank)
			{
				*slot = s;
				return i;
			}
		}
		break;
	}
	*slot = -1;
	return i;
}

/*
 * The suffix of a slot, which a reader must not believe before it has checked
 * the node's version (but may look at: the bytes are there).
 */
static inline const unsigned char *
mot_border_suffix(const mot_border *b, int slot, size_t *len)
{
	const mot_suffixes *block = mot_read(b->suffixes);
	uint32_t	at;

	if (mot_unlikely(block == NULL))
	{
		*len = 0;
		return NULL;
	}
	at = mot_read(block->at[slot]);
	*len = mot_suffix_len(at);
	return block->data + mot_suffix_offset(at);
}

/*
 * By how many bytes an entry of rank 9 leads a key on whose first of "left"
 * bytes are its slice: 0, if it is no link, or the key has not what it skips.
 * A reader checks the version before it believes that.
 */
static inline size_t
mot_link_length(const mot_border *b, int slot, int keylenx, const unsigned char *k, size_t left)
{
	const unsigned char *skip;
	size_t		len;

	if (mot_likely(keylenx == MOT_KEY_LAYER))
		return 8;
	if (keylenx != MOT_KEY_SKIP)
		return 0;
	skip = mot_border_suffix(b, slot, &len);
	return len < left - 8 && memcmp(skip, k + 8, len) == 0 ? 8 + len : 0;
}

/* ---------------------------------------------------- behind more than one */

/* a key's place, its border node locked */
typedef struct mot_place
{
	mot_border *node;
	uint64_t	version;		/* when it was locked, without the lock */
	uint64_t	perm;
	uint64_t	slice;
	int			rank;
	int			position;		/* in the permutation: where it is or would go */
	int			slot;			/* of an entry with this slice and rank, or -1 */
	bool		found;			/* that entry is the key (else its suffix or
								 * skip differs) */
	size_t		offset;			/* of the slice in the key */
} mot_place;

/*
 * Lock the border node that links to the layer of keys that begin with the
 * first "offset" bytes of key, which is longer (tree_get.c).  False, and no
 * lock: no such link.
 */
extern bool mot_tree_locate_link(mot_tree *tree, const mot_tree_context *ctx,
								 const unsigned char *key, size_t offset, mot_place *place);

/* add the key at a place where it is not; unlocks the node (tree_insert.c) */
extern mot_tree_status mot_tree_add(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
									const unsigned char *key, size_t len, uint64_t value,
									mot_purpose purpose, const mot_observer *observer);

/* take the key out of its place; unlocks the node (tree_remove.c) */
extern void mot_tree_take_out(mot_tree *tree, mot_tree_context *ctx, mot_place *place,
							  const unsigned char *key);

static inline void
mot_retire_object(mot_tree_context *ctx, void *object)
{
	if (ctx->exclusive)
		mot_free(ctx->cache, object);
	else
		ctx->retire(ctx->retire_arg, object);
}

#endif							/* MOT_TREE_NODE_H */
