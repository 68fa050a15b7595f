/*-------------------------------------------------------------------------
 *
 * tree_cursor.h
 *	  The range cursor of the Masstree, for callers that embed it.
 *
 * A cursor works on a copy of one border node's entries, taken at one
 * version, in the order of the scan and cut at the bound where the scan ends.
 * Of suffixes and skips it has addresses: their bytes never change, and blocks
 * that are replaced are only retired.  (So a cursor must not be used again
 * after its own process changed the tree as an exclusive caller, which frees
 * at once.)
 * There are two copies, for layers at even and at odd depth: on the way back
 * from a layer, the copy above it is usually still there.
 *
 * If others put a layer in between, where somewhere above the cursor there was
 * a skip, then all that is in it came after the cursor: it may be passed by.
 *
 * Its position is that of the last entry it took from a copy: the bytes above
 * the layer are in the key buffer, slice and rank beside it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TREE_CURSOR_H
#define MOT_TREE_CURSOR_H

#include "tree/tree.h"

#define MOT_CURSOR_ENTRIES 15	/* of a border node */
#define MOT_CURSOR_LEVELS 8		/* of layers above to which it can go back
								 * directly */
#define MOT_CURSOR_BYTES 384	/* key and bounds; more are allocated */

typedef struct mot_tree_copy
{
	size_t		offset;			/* of the layer's slices in the key; SIZE_MAX:
								 * no copy */
	int			index;			/* next entry to take */
	int			count;
	bool		last;			/* the bound lies in this node: nothing behind
								 * it */
	mot_node   *node;
	uint64_t	version;
	uint64_t	slice[MOT_CURSOR_ENTRIES];
	uint64_t	value[MOT_CURSOR_ENTRIES];
	uint8_t		keylenx[MOT_CURSOR_ENTRIES];
	uint16_t	suffix_len[MOT_CURSOR_ENTRIES];
	const unsigned char *suffix[MOT_CURSOR_ENTRIES];
} mot_tree_copy;

struct mot_tree_cursor
{
	const mot_tree *tree;
	const mot_observer *observer;
	bool		backward;
	bool		positioned;		/* the scan has begun */
	bool		started;		/* the position is that of an entry, not yet
								 * of a bound */
	bool		done;

	mot_tree_copy *copy;		/* the one in use, of the layer at "offset" */
	mot_tree_copy copies[2];

	/* the position */
	size_t		offset;			/* of the layer's slices in the key */
	unsigned	depth;			/* layers above it */
	uint64_t	at_slice;
	int			at_rank;

	struct
	{
		mot_node   *node;
		uint64_t	version;
		size_t		offset;
	}			level[MOT_CURSOR_LEVELS];

	mot_node   *observed_node;	/* not to say the same again and again */
	uint64_t	observed_version;

	/* keys from low to below high; a missing high is none */
	const unsigned char *low;
	size_t		low_len;
	const unsigned char *high;
	size_t		high_len;
	unsigned char *key;
	size_t		key_capacity;
	void	   *allocated;
	unsigned char bytes[MOT_CURSOR_BYTES];
};

#endif							/* MOT_TREE_CURSOR_H */
