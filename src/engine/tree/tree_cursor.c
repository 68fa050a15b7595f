/*-------------------------------------------------------------------------
 *
 * tree_cursor.c
 *	  Range scans of the Masstree, in either direction.  See tree_cursor.h
 *	  and tree_node.h.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "tree/tree_cursor.h"
#include "tree/tree_node.h"

_Static_assert(MOT_CURSOR_ENTRIES == MOT_BORDER_WIDTH, "a copy has room for a node");

/* positions before and behind all entries of a layer */
#define FIRST_RANK (-1)
#define LAST_RANK (MOT_KEY_SUFFIX + 1)

static void seek(mot_tree_cursor *c);
static bool find_again(mot_tree_cursor *c, size_t deepest);

/* ------------------------------------------------------------------ bounds */

/* what the bound at which a scan ends means for one layer */
typedef struct limit
{
	enum
	{
		LIMIT_NONE,				/* all keys of the layer are within */
		LIMIT_ALL,				/* all are beyond */
		LIMIT_WITHIN			/* it has to be compared with */
	}			kind;
	uint64_t	slice;
	int			rank;
	const unsigned char *rest;	/* of the bound, behind the slice */
	size_t		rest_len;
} limit;

static inline void
limit_of_layer(const mot_tree_cursor *c, limit *l)
{
	const unsigned char *bound = c->backward ? c->low : c->high;
	size_t		len = c->backward ? c->low_len : c->high_len;
	size_t		common = len < c->offset ? len : c->offset;
	int			cmp;

	l->kind = LIMIT_NONE;
	if (bound == NULL)
		return;
	cmp = common ? memcmp(c->key, bound, common) : 0;
	if (cmp == 0 && len > c->offset)
	{
		l->kind = LIMIT_WITHIN;
		l->slice = mot_slice(bound + c->offset, len - c->offset);
		l->rank = mot_rank(len - c->offset);
		if (l->rank == MOT_KEY_SUFFIX)
		{
			l->rest = bound + c->offset + 8;
			l->rest_len = len - c->offset - 8;
		}
		return;
	}

	/*
	 * equal and no longer: the layer's keys are greater than it (or equal, if
	 * it is empty)
	 */
	if (c->backward ? cmp < 0 : cmp >= 0)
		l->kind = LIMIT_ALL;
}

static inline bool
beyond_limit(const mot_tree_cursor *c, const limit *l, uint64_t slice, int keylenx,
			 const unsigned char *suffix, size_t suffix_len)
{
	int			rank = mot_keylenx_rank(keylenx);
	int			cmp;

	if (l->kind != LIMIT_WITHIN)
		return l->kind == LIMIT_ALL;
	if (slice != l->slice)
		cmp = slice < l->slice ? -1 : 1;
	else if (rank != l->rank)
		cmp = rank < l->rank ? -1 : 1;
	else if (mot_is_link(keylenx))
		return false;			/* the layer will see */
	else if (keylenx == MOT_KEY_SUFFIX)
		cmp = suffix ? mot_compare_bytes(suffix, suffix_len, l->rest, l->rest_len) : 0;
	else
		cmp = 0;
	return c->backward ? cmp < 0 : cmp >= 0;
}

/* ------------------------------------------------------------------ copies */

static inline mot_tree_copy *
copy_at(mot_tree_cursor *c, unsigned depth)
{
	return &c->copies[depth % 2];
}

/*
 * Copy what a border node has beyond the position.  False if it has split or
 * been deleted since version "v", at which the caller knows its range.
 */
static bool
copy_node(mot_tree_cursor *c, mot_border *b, uint64_t v)
{
	mot_tree_copy *copy = copy_at(c, c->depth);
	limit		l = {LIMIT_NONE, 0, 0, NULL, 0};
	uint64_t	now;

	/* the scan may need it soon; a prefetch of NULL does no harm */
	mot_prefetch_border(c->backward ? mot_read(b->prev) : mot_read(b->next));
	copy->offset = SIZE_MAX;
	limit_of_layer(c, &l);
	for (;;)
	{
		uint64_t	perm;
		int			size;
		int			count = 0;

		now = mot_stable_version(&b->n);
		if (mot_has_split(v, now))
			return false;
		perm = mot_read(b->permutation);
		size = mot_perm_size(perm);
		copy->last = l.kind == LIMIT_ALL;
		for (int i = 0; i < size && !copy->last; i++)
		{
			int			slot = mot_perm_slot(perm, c->backward ? size - 1 - i : i);
			uint64_t	slice = mot_read(b->slice[slot]);
			int			keylenx = mot_read(b->keylenx[slot]);
			const unsigned char *suffix = NULL;
			size_t		suffix_len = 0;

			if (slice == c->at_slice)
			{
				int			rank = mot_keylenx_rank(keylenx);

				if (c->backward ? rank >= c->at_rank : rank <= c->at_rank)
					continue;
			}
			else if (c->backward ? slice > c->at_slice : slice < c->at_slice)
				continue;
			if (mot_has_bytes(keylenx))
				suffix = mot_border_suffix(b, slot, &suffix_len);
			if (beyond_limit(c, &l, slice, keylenx, suffix, suffix_len))
			{
				copy->last = true;
				break;
			}
			copy->slice[count] = slice;
			copy->keylenx[count] = (uint8_t) keylenx;
			copy->value[count] = mot_read(b->value[slot]);
			if (mot_is_link(keylenx))
				mot_prefetch_border((void *) (uintptr_t) copy->value[count]);
			copy->suffix[count] = suffix;
			copy->suffix_len[count] = (uint16_t) suffix_len;
			count++;
		}
		if (mot_likely(!mot_has_changed(&b->n, now)))
		{
			copy->count = count;
			break;
		}
	}
	copy->offset = c->offset;
	copy->index = 0;
	copy->node = &b->n;
	copy->version = now;
	c->copy = copy;
	if (c->observer)
	{
		uint64_t	observed = mot_observed_version(now);

		if (c->observed_node != &b->n || c->observed_version != observed)
			c->observer->observe(c->observer->arg, &b->n, observed);
		c->observed_node = &b->n;
		c->observed_version = observed;
	}
	MOT_STOP_POINT("tree-cursor-copied");
	return true;
}

static inline void
position_at_start(mot_tree_cursor *c)
{
	c->at_slice = c->backward ? UINT64_MAX : 0;
	c->at_rank = c->backward ? LAST_RANK : FIRST_RANK;
}

/* back to the top: of copies that were made on another way none is used */
static inline void
to_first_layer(mot_tree_cursor *c)
{
	c->offset = 0;
	c->depth = 0;
	c->copies[0].offset = c->copies[1].offset = SIZE_MAX;
}

/* note where a layer hangs, and go down to it, by so many bytes of the key */
static inline void
push_layer(mot_tree_cursor *c, size_t step, mot_node *node, uint64_t version)
{
	if (c->depth < MOT_CURSOR_LEVELS)
	{
		c->level[c->depth].node = node;
		c->level[c->depth].version = version;
		c->level[c->depth].offset = c->offset;
	}
	c->depth++;
	c->offset += step;
}

/* the position: behind the entry that leads on along the key, in the layer at "offset" */
static inline void
position_behind(mot_tree_cursor *c, size_t offset)
{
	c->offset = offset;
	c->at_slice = mot_load_be64(c->key + offset);
	c->at_rank = MOT_KEY_SUFFIX;
}

/* the layer is done: on behind the entry that links to it.  False: the end. */
static bool
pop_layer(mot_tree_cursor *c)
{
	mot_tree_copy *copy;

	if (c->depth == 0)
		return false;
	c->depth--;
	c->started = true;
	copy = copy_at(c, c->depth);
	/* (not one of a layer below: its offset is greater) */
	if (copy->offset < c->offset)
	{
		position_behind(c, copy->offset);
		c->copy = copy;
		return true;
	}
	if (c->depth >= MOT_CURSOR_LEVELS)
		return find_again(c, c->offset - 1);
	position_behind(c, c->level[c->depth].offset);
	return copy_node(c, (mot_border *) c->level[c->depth].node, c->level[c->depth].version) ||
		find_again(c, c->offset);
}

/* into a layer, at its beginning (its end, if backward) */
static bool
enter_layer(mot_tree_cursor *c, size_t step, uint64_t value)
{
	mot_node   *root = (mot_node *) (uintptr_t) value;
	unsigned	spins = 0;

	push_layer(c, step, c->copy->node, c->copy->version);
	position_at_start(c);
	for (;;)
	{
		uint64_t	v;
		mot_border *b = mot_descend(&root, c->at_slice, &v);

		if (b == NULL)
		{
			/*
			 * a layer that is deleted was empty at some time since we copied
			 * the link
			 */
			if (mot_read(root->version) & MOT_V_DELETED)
				return pop_layer(c);
			/* else a border node is about to leave its parent */
			mot_backoff(&spins);
		}
		else if (copy_node(c, b, v))
			return true;
	}
}

/* ------------------------------------------------------------------- moves */

/*
 * The border node for the position, from the top: its place in the tree is
 * not known any more.  If the layer is gone meanwhile, or is deeper than asked
 * for, the position becomes that behind the slot from which the key leads on.
 * (If that has a link that leads elsewhere or too far, then what was there
 * before was gone in between, and the layer below is new.)
 */
static bool
find_again(mot_tree_cursor *c, size_t deepest)
{
	unsigned	spins = 0;
	mot_node   *root;
	size_t		target;

	if (!c->started)
	{
		seek(c);
		return true;
	}
	target = c->offset;
top:
	to_first_layer(c);
	root = mot_read(c->tree->root);
	for (;;)
	{
		bool		arrived = c->offset == target;
		uint64_t	slice = arrived ? c->at_slice : mot_load_be64(c->key + c->offset);
		uint64_t	v;
		mot_border *b;
		int			slot;
		size_t		step = 0;
		uint64_t	value = 0;

		b = mot_descend(&root, slice, &v);
		if (b == NULL)
		{
			mot_backoff(&spins);
			goto top;
		}
		if (arrived)
		{
			if (copy_node(c, b, v))
				return true;
			continue;
		}
		mot_border_search(b, mot_read(b->permutation), slice, MOT_KEY_SUFFIX, &slot);
		if (slot >= 0)
		{
			/* with one byte more no link is left out that ends there */
			step = mot_link_length(b, slot, mot_read(b->keylenx[slot]), c->key + c->offset,
								   deepest + 1 - c->offset);
			value = mot_read(b->value[slot]);
		}
		if (mot_has_changed(&b->n, v))
			continue;
		if (step == 0 || c->offset + step > deepest)
		{
			target = deepest = c->offset;
			position_behind(c, target);
			continue;
		}
		push_layer(c, step, &b->n, v);
		root = (mot_node *) (uintptr_t) value;
	}
}

/*
 * The first place of a scan: its lower bound, if forward, the end of the key
 * range below the upper one, if backward.
 */
static void
seek(mot_tree_cursor *c)
{
	const unsigned char *bound = c->backward ? c->high : c->low;
	size_t		len = c->backward ? c->high_len : c->low_len;
	unsigned	spins = 0;
	mot_node   *root;

top:
	to_first_layer(c);
	root = mot_read(c->tree->root);
	for (;;)
	{
		size_t		left = len - c->offset;
		size_t		n;
		int			rank = 0;
		uint64_t	v;
		mot_border *b;
		int			cmp;

		if (bound == NULL)
			position_at_start(c);
		else
		{
			/*
			 * forward the position lies before an equal key, backward behind
			 * the layer
			 */
			rank = mot_rank(left);
			c->at_slice = mot_slice(bound + c->offset, left);
			if (c->backward)
				c->at_rank = rank == MOT_KEY_SUFFIX ? LAST_RANK : rank;
			else
				c->at_rank = rank - 1;
		}
		b = mot_descend(&root, c->at_slice, &v);
		if (b == NULL)
		{
			mot_backoff(&spins);
			goto top;
		}
		if (!copy_node(c, b, v))
			continue;
		if (bound == NULL || rank != MOT_KEY_SUFFIX || c->copy->count == 0 ||
			c->copy->slice[0] != c->at_slice || mot_keylenx_rank(c->copy->keylenx[0]) != rank)
			return;

		/* the bound and this entry differ, if at all, behind the slice */
		n = c->copy->suffix_len[0];
		if (mot_is_link(c->copy->keylenx[0]) && n <= left - 8 &&
			(n == 0 || memcmp(c->copy->suffix[0], bound + c->offset + 8, n) == 0))
		{
			root = (mot_node *) (uintptr_t) c->copy->value[0];
			c->copy->index = 1;
			memcpy(c->key + c->offset, bound + c->offset, 8 + n);
			push_layer(c, 8 + n, c->copy->node, c->copy->version);
			continue;
		}
		/* all of a layer is on one side, if its skip differs or is longer */
		cmp = mot_compare_bytes(c->copy->suffix[0], n, bound + c->offset + 8, left - 8);
		if (c->backward ? cmp >= 0 : cmp < 0)
		{
			c->at_rank = MOT_KEY_SUFFIX;
			c->started = true;
			c->copy->index = 1;
		}
		return;
	}
}

/* to the next border node of the layer, or out of it.  False: the end. */
static bool
move_forward(mot_tree_cursor *c)
{
	unsigned	spins = 0;

	for (;;)
	{
		mot_border *b = (mot_border *) c->copy->node;
		uint64_t	v = mot_stable_version(&b->n);
		mot_border *next;
		uint64_t	next_v;

		/*
		 * if it has split, we go over what went right once more, behind our
		 * position
		 */
		if (v & MOT_V_DELETED)
			return find_again(c, c->offset);
		next = mot_read(b->next);
		if (next == NULL)
			return pop_layer(c);
		next_v = mot_stable_version(&next->n);
		/* it was next to us at that version: there is nothing between */
		if (!(next_v & MOT_V_DELETED) && !mot_has_changed(&b->n, v) && copy_node(c, next, next_v))
			return true;
		mot_backoff(&spins);
	}
}

static bool
move_backward(mot_tree_cursor *c)
{
	unsigned	spins = 0;

	for (;;)
	{
		mot_border *b = (mot_border *) c->copy->node;
		mot_border *prev;
		uint64_t	prev_v;

		/* if it has split, we are done with what is in the new node */
		if (mot_stable_version(&b->n) & MOT_V_DELETED)
			return find_again(c, c->offset);
		prev = mot_read(b->prev);
		if (prev == NULL)
			return pop_layer(c);
		prev_v = mot_stable_version(&prev->n);
		if (!(prev_v & MOT_V_DELETED) && mot_read(prev->next) == b &&
			!mot_has_changed(&prev->n, prev_v) && copy_node(c, prev, prev_v))
			return true;
		mot_backoff(&spins);
	}
}

/* ------------------------------------------------------------------ calls */

/*
 * The least byte string greater than all that begin with this one: without
 * its bytes 255 at the end, and the last one that is left increased.  Returns
 * its length; 0: there is none.
 */
static size_t
successor(unsigned char *bytes, size_t len)
{
	while (len > 0 && bytes[len - 1] == 255)
		len--;
	if (len > 0)
		bytes[len - 1]++;
	return len;
}

bool
mot_tree_cursor_open(mot_tree_cursor *c, const mot_tree *tree,
					 const mot_bound *lower, const mot_bound *upper,
					 bool backward, const mot_observer *observer)
{
	size_t		low_len = lower && lower->kind != MOT_BOUND_NONE ? lower->len : 0;
	size_t		high_len = upper && upper->kind != MOT_BOUND_NONE ? upper->len : 0;
	size_t		capacity = mot_get(tree->longest);
	unsigned char *p = c->bytes;

	/*
	 * Room for the longest key there is and for the bounds' slices, which a
	 * scan may follow; longer keys that come later are not seen.
	 */
	if (capacity < low_len)
		capacity = low_len;
	if (capacity < high_len)
		capacity = high_len;
	capacity += 24;

	c->allocated = NULL;
	if (capacity + low_len + high_len > MOT_CURSOR_BYTES)
	{
		p = c->allocated = malloc(capacity + low_len + high_len);
		if (p == NULL)
			return false;
	}
	c->key = p;
	c->key_capacity = capacity;
	p += capacity;

	c->tree = tree;
	c->observer = observer;
	c->backward = backward;
	c->positioned = c->started = c->done = false;
	c->copy = NULL;
	c->observed_node = NULL;
	c->observed_version = 0;

	/* prefixes become plain bounds: low <= key < high */
	c->low = NULL;
	c->low_len = 0;
	if (low_len > 0)
	{
		memcpy(p, lower->key, low_len);
		c->low = p;
		c->low_len = low_len;
		p += low_len;
	}
	if (lower && lower->kind == MOT_BOUND_EXCLUSIVE)
	{
		if (low_len > 0)
			c->low_len = successor((unsigned char *) c->low, low_len);
		c->done = c->low_len == 0;
	}

	c->high = NULL;
	c->high_len = 0;
	if (high_len > 0)
	{
		memcpy(p, upper->key, high_len);
		c->high = p;
		c->high_len = high_len;
		if (upper->kind == MOT_BOUND_INCLUSIVE)
		{
			c->high_len = successor(p, high_len);
			if (c->high_len == 0)
				c->high = NULL;
		}
	}
	else if (upper && upper->kind == MOT_BOUND_EXCLUSIVE)
		c->done = true;
	return true;
}

uint64_t
mot_tree_cursor_next(mot_tree_cursor *c, const void **key, size_t *len)
{
	if (c->done)
		return 0;
	if (!c->positioned)
	{
		c->positioned = true;
		seek(c);
	}
	for (;;)
	{
		mot_tree_copy *copy = c->copy;

		while (copy->index < copy->count)
		{
			int			i = copy->index++;
			uint64_t	slice = copy->slice[i];
			int			keylenx = copy->keylenx[i];
			size_t		n = c->offset;

			c->at_slice = slice;
			c->at_rank = mot_keylenx_rank(keylenx);
			c->started = true;

			/*
			 * too long for a cursor that was opened before there were such
			 * keys?
			 */
			if (mot_unlikely(n + 24 > c->key_capacity))
				continue;
			mot_store_be64(c->key + n, slice);
			if (keylenx >= MOT_KEY_SUFFIX)
			{
				size_t		suffix_len = copy->suffix_len[i];

				if (mot_unlikely(n + 8 + suffix_len > c->key_capacity))
					continue;
				if (suffix_len > 0)
					memcpy(c->key + n + 8, copy->suffix[i], suffix_len);
				n += 8 + suffix_len;
				if (mot_is_link(keylenx))
				{
					if (!enter_layer(c, n - c->offset, copy->value[i]))
						goto end;
					copy = c->copy;
					continue;
				}
			}
			else
				n += (size_t) keylenx;
			if (key)
				*key = c->key;
			if (len)
				*len = n;
			return copy->value[i];
		}
		if (copy->last || !(c->backward ? move_backward(c) : move_forward(c)))
			break;
	}
end:
	c->done = true;
	return 0;
}

void
mot_tree_cursor_close(mot_tree_cursor *c)
{
	free(c->allocated);
	c->allocated = NULL;
	c->done = true;
}
