/*-------------------------------------------------------------------------
 *
 * tree_get.c
 *	  Finding a key in the Masstree: for a reader, and for a writer that
 *	  wants the border node locked.  See tree_node.h.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define COMPARE_VECTORS
#endif

#include "tree/tree_node.h"

uint64_t
mot_node_version(const mot_node *node)
{
	/*
	 * Acquire: a committing transaction that finds the version unchanged must
	 * not have its later loads before this one.
	 */
	return mot_observed_version(mot_read(node->version));
}

/* which slots hold this slice, every second bit; those of free slots may be among them */
static inline uint32_t
slots_of(const mot_border *b, uint64_t slice)
{
	uint32_t	equal = 0;

#ifdef COMPARE_VECTORS

	/*
	 * Two at a time, so to the processor two loads of eight bytes, each as
	 * good as the atomic one: a slice does not change while its slot is in
	 * the permutation, and the caller checks the node's version.  (The last
	 * pair's second half is a value.)  Halves of slices are compared, and
	 * packed to a byte each; both must be equal.
	 */
	const		__m128i *pair = (const __m128i *) (const void *) b->slice;
	const		__m128i key = _mm_set1_epi64x((long long) slice);
	__m128i		low,
				high;
	uint32_t	halves;

#define PAIR(i) _mm_cmpeq_epi32(_mm_loadu_si128(pair + (i)), key)
	low = _mm_packs_epi16(_mm_packs_epi32(PAIR(0), PAIR(1)), _mm_packs_epi32(PAIR(2), PAIR(3)));
	high = _mm_packs_epi16(_mm_packs_epi32(PAIR(4), PAIR(5)), _mm_packs_epi32(PAIR(6), PAIR(7)));
#undef PAIR
	halves = (uint32_t) _mm_movemask_epi8(low) | (uint32_t) _mm_movemask_epi8(high) << 16;

	/*
	 * the compiler must not load the version before these; this processor
	 * does not
	 */
	atomic_signal_fence(memory_order_acquire);

	/*
	 * bits 0, 2, 4, ... of "equal" stand for slots; the last pair's second
	 * half is none
	 */
	equal = halves & (halves >> 1) & 0x15555555;
#else
#pragma GCC unroll 15
	for (int i = MOT_BORDER_WIDTH - 1; i >= 0; i--)
		equal = equal << 2 | (mot_read(b->slice[i]) == slice);
#endif
	return equal;
}

/*
 * The slot of (slice, rank) alone, or -1.  Without a branch that depends on
 * where it is: a mispredicted one would keep the processor from running ahead
 * to the row, and to the next look-up, while the node's lines are on their way.
 * (Not inline: the compiler would keep all the addresses in registers.)
 */
static __attribute__((noinline))
int
border_find(const mot_border *b, uint64_t perm, uint64_t slice, int rank)
{
	const uint64_t ones = UINT64_C(0x1111111111111111);
	uint32_t	equal = slots_of(b, slice);
	uint64_t	nibbles;
	int			slot;

	if (equal == 0)
		return -1;
	if (mot_unlikely((equal & (equal - 1)) != 0))
	{
		/* keys of several lengths, or what free slots were left with */
		(void) mot_border_search(b, perm, slice, rank, &slot);
		return slot;
	}
	slot = __builtin_ctz(equal) / 2;

	/* the slot's place in the permutation: the lowest nibble to become zero */
	nibbles = (perm >> 4) ^ ((uint64_t) slot * ones);
	nibbles = (nibbles - ones) & ~nibbles & (ones << 3);
	if (__builtin_ctzll(nibbles) / 4 >= mot_perm_size(perm) ||
		mot_keylenx_rank(mot_read(b->keylenx[slot])) != rank)
		return -1;
	return slot;
}

/* mot_tree_get for any key, however often it has to look */
static __attribute__((noinline))
uint64_t
get_patiently(const mot_tree *tree, const void *key, size_t len, const mot_observer *observer)
{
	const unsigned char *k = key;
	size_t		left;
	unsigned	spins = 0;
	mot_node   *root;

top:
	k = key;
	left = len;
	root = mot_read(tree->root);
	for (;;)
	{
		uint64_t	slice = mot_slice(k, left);
		int			rank = mot_rank(left);
		mot_border *b;
		uint64_t	v;
		uint64_t	value;
		size_t		step;
		int			slot;

descend:
		b = mot_descend(&root, slice, &v);
		if (mot_unlikely(b == NULL))
		{
			mot_backoff(&spins);
			goto top;
		}
search:
		value = 0;
		step = 0;
		slot = border_find(b, mot_read(b->permutation), slice, rank);
		if (slot >= 0)
		{
			value = mot_read(b->value[slot]);
			if (rank == MOT_KEY_SUFFIX)
			{
				int			keylenx = mot_read(b->keylenx[slot]);

				if (keylenx == MOT_KEY_SUFFIX)
				{
					size_t		suffix_len;
					const unsigned char *suffix = mot_border_suffix(b, slot, &suffix_len);

					if (suffix_len != left - 8 || memcmp(suffix, k + 8, suffix_len) != 0)
						value = 0;
				}
				else if ((step = mot_link_length(b, slot, keylenx, k, left)) == 0)
					value = 0;
			}
		}
		MOT_STOP_POINT("tree-get-read");
		if (mot_unlikely(mot_has_changed(&b->n, v)))
		{
			uint64_t	now = mot_stable_version(&b->n);

			if (mot_has_split(v, now))
				goto descend;
			v = now;
			goto search;
		}
		if (step == 0)
		{
			if (observer)
				observer->observe(observer->arg, &b->n, mot_observed_version(v));
			return value;
		}
		root = (mot_node *) (uintptr_t) value;
		mot_prefetch_border(root);	/* most layers have one node */
		k += step;
		left -= step;
	}
}

/*
 * The value of a short key in the border node that is responsible for it at version v; false:
 * changed.
 */
static inline bool
get_here(const mot_border *b, uint64_t v, uint64_t slice, size_t len,
		 const mot_observer *observer, uint64_t *value)
{
	int			slot = border_find(b, mot_read(b->permutation), slice, (int) len);

	*value = slot >= 0 ? mot_read(b->value[slot]) : 0;
	MOT_STOP_POINT("tree-get-read");
	if (mot_unlikely(mot_has_changed(&b->n, v)))
		return false;
	if (observer)
		observer->observe(observer->arg, &b->n, mot_observed_version(v));
	return true;
}

uint64_t
mot_tree_get(const mot_tree *tree, const void *key, size_t len, const mot_observer *observer)
{
	/* the usual case: a short key, and nobody changes the node meanwhile */
	if (mot_likely(len <= 8))
	{
		uint64_t	slice = mot_slice(key, len);
		mot_node   *root = mot_read(tree->root);
		uint64_t	v;
		mot_border *b = mot_descend(&root, slice, &v);

		uint64_t	value;

		if (mot_likely(b != NULL && get_here(b, v, slice, len, observer, &value)))
			return value;
	}
	return get_patiently(tree, key, len, observer);
}

/*
 * A link says "from", but the root of its layer has become "to".  It may be
 * that this is no more the newest: then the next writer comes along.
 */
static void
mend_link(mot_tree *tree, const mot_tree_context *ctx, mot_border *upper, uint64_t version,
		  int slot, mot_node *from, mot_node *to)
{
	if (upper == NULL)
	{
		/* release: readers of the new root see its contents */
		atomic_compare_exchange_strong_explicit(&tree->root, &from, to,
												memory_order_release, memory_order_relaxed);
		return;
	}

	/*
	 * The slot still has the link if nothing was inserted, and if it was
	 * removed since, then nobody looks at it.  Readers may go either way, so
	 * the version stays.
	 */
	if (mot_lock_node(&upper->n, ctx->exclusive) == (version & ~MOT_V_LOCK))
		mot_publish(upper->value[slot], (uint64_t) (uintptr_t) to);
	mot_unlock_node(&upper->n);
}

/*
 * Keys that ascend need no descent: if the slice is not below a key of the
 * layer's last border node, it belongs there, for that node's range has no
 * end.  NULL: the hint is of no use.
 */
static inline mot_border *
try_rightmost(const mot_tree *tree, uint64_t slice, uint64_t *version)
{
	mot_border *b = mot_read(tree->rightmost);
	uint64_t	v;
	uint64_t	perm;
	int			n;

	if (b == NULL)
		return NULL;
	/* acquire: as in mot_stable_version, but a hint is not waited for */
	v = mot_read(b->n.version);
	if ((v & (MOT_V_DIRTY | MOT_V_DELETED)) || mot_read(b->next) != NULL)
		return NULL;
	perm = mot_read(b->permutation);
	n = mot_perm_size(perm);
	if (n == 0 || slice < mot_read(b->slice[mot_perm_slot(perm, n - 1)]))
		return NULL;
	if (mot_has_changed(&b->n, v))
		return NULL;
	*version = v;
	return b;
}

/*
 * Lock the border node where the key is or would be.  "target" is the offset
 * of the layer to whose link to go; SIZE_MAX to stop at none.
 */
static inline void
locate(mot_tree *tree, const mot_tree_context *ctx, const unsigned char *key, size_t len,
	   size_t target, mot_place *place)
{
	unsigned	spins = 0;
	mot_border *upper;
	uint64_t	upper_version;
	int			upper_slot;
	mot_node   *root;

top:
	place->offset = 0;
	upper = NULL;
	upper_version = 0;
	upper_slot = 0;
	root = mot_read(tree->root);
	for (;;)
	{
		const unsigned char *k = key + place->offset;
		size_t		left = len - place->offset;
		mot_node   *link = root;
		mot_border *b;
		uint64_t	v;
		uint64_t	perm;
		size_t		step;
		int			slot;

		place->slice = mot_slice(k, left);
		place->rank = mot_rank(left);
		if (place->offset == 0 && (b = try_rightmost(tree, place->slice, &v)) != NULL)
			goto found;
descend:
		b = mot_descend(&root, place->slice, &v);
		if (mot_unlikely(b == NULL))
		{
			mot_backoff(&spins);
			goto top;
		}
		if (mot_unlikely(link != root))
		{
			mend_link(tree, ctx, upper, upper_version, upper_slot, link, root);
			link = root;
		}

found:
		perm = mot_read(b->permutation);
		place->position = mot_border_search(b, perm, place->slice, place->rank, &slot);
		if (slot >= 0 && place->rank == MOT_KEY_SUFFIX &&
			(step = mot_link_length(b, slot, mot_read(b->keylenx[slot]), k, left)) != 0 &&
			place->offset + step < target)
		{
			/* down a layer, if that was true */
			mot_node   *below = (mot_node *) (uintptr_t) mot_read(b->value[slot]);

			if (mot_has_changed(&b->n, v))
				goto descend;
			upper = b;
			upper_version = v;
			upper_slot = slot;
			root = below;
			place->offset += step;
			continue;
		}

		MOT_STOP_POINT("tree-insert-located");
		place->node = b;
		place->version = mot_lock_node(&b->n, ctx->exclusive);
		if (mot_unlikely(mot_has_split(v, place->version)))
		{
			mot_unlock_node(&b->n);
			goto descend;
		}
		place->perm = mot_get(b->permutation);
		if (((place->version ^ v) & ~MOT_V_LOCK) != 0 || place->perm != perm)
			place->position = mot_border_search(b, place->perm, place->slice, place->rank, &slot);
		place->slot = slot;
		place->found = slot >= 0;
		if (slot >= 0 && place->rank == MOT_KEY_SUFFIX)
		{
			int			keylenx = mot_get(b->keylenx[slot]);
			size_t		suffix_len;
			const unsigned char *suffix;

			step = mot_link_length(b, slot, keylenx, k, left);
			if (step != 0 && place->offset + step < target)
			{
				/* it has come to lead on since we looked */
				mot_unlock_node(&b->n);
				goto descend;
			}
			if (target != SIZE_MAX)
				place->found = place->offset + step == target;
			else
			{
				suffix = mot_border_suffix(b, slot, &suffix_len);
				place->found = keylenx == MOT_KEY_SUFFIX && suffix_len == left - 8 &&
					memcmp(suffix, k + 8, suffix_len) == 0;
			}
		}
		return;
	}
}

bool
mot_tree_locate_link(mot_tree *tree, const mot_tree_context *ctx,
					 const unsigned char *key, size_t offset, mot_place *place)
{
	/* (with one byte more there is no link that ends behind the target) */
	locate(tree, ctx, key, offset + 1, offset, place);
	if (place->found)
		return true;
	mot_unlock_node(&place->node->n);
	return false;
}

mot_tree_status
mot_tree_cas(mot_tree *tree, mot_tree_context *ctx, const void *key, size_t len,
			 uint64_t expected, uint64_t desired, uint64_t *actual, mot_purpose purpose,
			 const mot_observer *observer)
{
	mot_place	place;
	mot_border *b;

	mot_assert(len <= MOT_KEY_MAX);
	locate(tree, ctx, key, len, SIZE_MAX, &place);
	b = place.node;
	*actual = place.found ? mot_get(b->value[place.slot]) : 0;
	if (*actual != expected || expected == desired)
	{
		mot_unlock_node(&b->n);
		return *actual == expected ? MOT_TREE_OK : MOT_TREE_MISMATCH;
	}
	if (expected == 0)
		return mot_tree_add(tree, ctx, &place, key, len, desired, purpose, observer);
	if (desired == 0)
	{
		mot_tree_take_out(tree, ctx, &place, key);
		return MOT_TREE_OK;
	}
	/* release: who gets the value sees what the caller put behind it */
	mot_publish(b->value[place.slot], desired);
	mot_unlock_node(&b->n);
	return MOT_TREE_OK;
}

mot_tree_status
mot_tree_change(mot_tree *tree, mot_tree_context *ctx, const void *key, size_t len,
				uint64_t (*change) (void *arg, uint64_t value), void *arg,
				const bool *insert, const mot_observer *observer)
{
	mot_place	place;
	mot_border *b;
	uint64_t	before;
	uint64_t	after;

	if (len > MOT_KEY_MAX)
		return MOT_TREE_MISMATCH;
	locate(tree, ctx, key, len, SIZE_MAX, &place);
	b = place.node;
	if (!place.found)
	{
		mot_unlock_node(&b->n);
		return MOT_TREE_MISMATCH;
	}
	before = mot_get(b->value[place.slot]);
	after = change(arg, before);
	if (after == 0)
	{
		mot_tree_take_out(tree, ctx, &place, key);
		return MOT_TREE_OK;
	}
	if (after != before)
		mot_publish(b->value[place.slot], after);	/* release: as above */
	if (insert && *insert)
	{
		uint64_t	version;

		/*
		 * Marked only now: a reader that has just read the node at its old
		 * version has observed that, whether it finds what is new or not.
		 */
		mot_mark_node(&b->n, MOT_V_INSERTING);
		version = mot_unlock_node(&b->n);
		if (observer)
			observer->moved(observer->arg, &b->n, mot_observed_version(place.version),
							mot_observed_version(version), NULL, 0);
		return MOT_TREE_OK;
	}
	mot_unlock_node(&b->n);
	return MOT_TREE_OK;
}
