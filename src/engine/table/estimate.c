/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  What a table would take that is not there: the arithmetic of docs/memory.md.
 *
 * A row is its head, a version and its bytes, rounded up to a size class, and classes fill pages.
 *
 * Of an index it takes the nodes of its tree, which are counted as they would be built
 * (tree_build.c): two neighbours among the entries part in one layer, where both have
 * an entry (or the link to a layer below).  So a layer at some depth has one entry more than
 * neighbours that part in it, and how many part there is the difference of two counts: of first
 * bytes of entries that go as far as behind the slice, and as far as before it.  Of all
 * entries these are counted; of a sample they are estimated as ANALYZE does numbers of distinct
 * values (Haas and Stokes), and how they are spread over layers by chance.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"
#include "tree/tree_node.h"

/* as builds fill nodes that writers will add to */
#define BORDER_FILL		(MOT_BORDER_WIDTH - 1)
#define INTERIOR_FILL	(MOT_INTERIOR_WIDTH - 2)

/*
 * what a build leaves free in most suffix blocks: the room for one more, and what lengths differ by
 */
#define SPARE_SUFFIX(bytes) ((bytes) / BORDER_FILL + (bytes) / 32)

_Static_assert(sizeof(((mot_row_estimate *) 0)->objects) == MOT_OBJECT_CLASSES * sizeof(double), "each class has its place");
_Static_assert(ROW_OVERHEAD == MOT_ESTIMATED_HEAD, "as the host is told");

/* -------------------------------------------------------------------- rows */

void
mot_row_estimate_begin(mot_engine *engine, mot_row_estimate *estimate)
{
	memset(estimate, 0, sizeof(*estimate));
	estimate->engine = engine;
}

void
mot_row_estimate_add(mot_row_estimate *estimate, size_t size)
{
	size_t		bytes = ROW_OVERHEAD + size;

	mot_objects_add(estimate->engine->region, estimate->objects, bytes < MOT_ROW_MIN_SIZE ? MOT_ROW_MIN_SIZE : bytes, 1);
}

double
mot_row_estimate_bytes(const mot_row_estimate *estimate, double scale)
{
	return mot_objects_pages(estimate->engine->region, estimate->objects, scale);
}

/* ----------------------------------------------------------------- indexes */

/* as mot_index_tree_key has it */
size_t
mot_entry_estimated(void *key, size_t len, bool unique, double before)
{
	uint64_t	number = (uint64_t) before >> 4;

	if (unique)
		return len;
	for (int i = 0; i < KEY_TAIL; i++)
		((uint8_t *) key)[len + i] = (uint8_t) (number >> (8 * (KEY_TAIL - 1 - i)));
	return len + KEY_TAIL;
}

/* where two entries part: the offset of the slice */
static size_t
alike(const mot_sorted_entry *a, const mot_sorted_entry *b)
{
	size_t		n = a->len < b->len ? a->len : b->len;
	size_t		same = 0;

	while (same + 8 <= n && memcmp((const char *) a->bytes + same, (const char *) b->bytes + same, 8) == 0)
		same += 8;
	/* a slice that is either's last is no layer's */
	return same == n && same > 0 ? same - 8 : same;
}

/* first bytes of entries, up to some depth: how many different ones there are */
typedef struct prefixes
{
	double		distinct;
	double		alone;			/* that one entry only has */
	double		layers;			/* where entries part in the slice behind */
} prefixes;

/*
 * An entry that has no more bytes is alone.  Of a sample, prefixes that several of its
 * entries have are taken to be all that are frequent, and what is left of the estimate to be rare.
 */
static prefixes
prefixes_of(const mot_sorted_entry *entries, size_t n, size_t depth, double total)
{
	prefixes	p;
	double		whole = 0;
	double		longer = 0;
	double		once = 0;
	double		often = 0;
	double		layers = 0;
	bool		parts_here = false;
	size_t		first = 0;
	double		scale = total / (double) n;
	double		rare;

	for (size_t i = 0; i < n; i++)
	{
		bool		last = i + 1 == n || entries[i].value < depth;

		parts_here |= i + 1 < n && entries[i].value == depth;
		if (!last)
			continue;
		if (i > first)
		{
			often++;
			longer += (double) (i - first + 1);
			layers += parts_here;
		}
		else if (entries[i].len <= depth)
			whole++;
		else
		{
			once++;
			longer++;
		}
		first = i + 1;
		parts_here = false;
	}
	whole *= scale;
	if (scale <= 1 || longer == 0)
	{
		p.distinct = whole + once + often;
		p.alone = whole + once;
		p.layers = layers;
		return p;
	}

	rare = longer * (once + often) / (longer - once + once / scale) - often;
	if (rare < once)
		rare = once;
	if (rare > once * scale)
		rare = once * scale;

	/*
	 * that others have them, too, is chance; then they part here as the
	 * frequent do
	 */
	once = rare > 0 ? rare * exp(1 - once * scale / rare) : 0;
	if (often > 0)
		layers += (rare - once) * layers / often;
	p.distinct = whole + rare + often;
	p.alone = whole + once;
	p.layers = layers;
	return p;
}

/*
 * Suffix blocks of layers at that depth, in which so many entries end, and so many nodes lie: each
 * is as large as what neighbours among the entries there have behind the slice.  Of a sample in
 * which none ends there all are taken.
 */
static void
add_suffixes(const mot_region *region, double *nodes, const mot_sorted_entry *entries, size_t n, size_t depth,
			 bool all, double ends, double borders)
{
	double		sizes[MOT_OBJECT_CLASSES] = {0};
	size_t		per_node = borders < ends ? (size_t) (ends / borders + 0.5) : 1;
	size_t		in_node = 0;
	double		bytes = 0;
	double		found = 0;
	size_t		before = 0;

	for (size_t i = 0; i < n; i++)
	{
		size_t		behind = i + 1 < n ? entries[i].value : 0;
		size_t		at = before > behind ? before : behind;

		before = behind;
		if (at == depth || all)
		{
			found++;
			in_node++;
			if (entries[i].len > depth + 8)
				bytes += (double) (entries[i].len - depth - 8);
		}
		if (in_node == per_node || (i + 1 == n && in_node > 0))
		{
			if (bytes > 0)
				mot_objects_add(region, sizes, (size_t) (sizeof(mot_suffixes) + bytes + SPARE_SUFFIX(bytes)), 1);
			in_node = 0;
			bytes = 0;
		}
	}
	if (found == 0 && !all)
		add_suffixes(region, nodes, entries, n, depth, true, ends, borders);
	else
		for (int c = 0; c < MOT_OBJECT_CLASSES; c++)
			nodes[c] += sizes[c] * ends / found;
}

double
mot_index_estimate(mot_engine *engine, mot_sorted_entry *entries, size_t n, double total)
{
	const mot_region *region = engine->region;
	double		nodes[MOT_OBJECT_CLASSES] = {0};
	size_t		deepest = 0;
	prefixes	here = {1, 0, 1};

	if (n == 0)
	{
		/* the root */
		mot_objects_add(region, nodes, sizeof(mot_border), 1);
		return mot_objects_pages(region, nodes, 1);
	}
	/* from the next one, from now on */
	for (size_t i = 0; i + 1 < n; i++)
	{
		entries[i].value = alike(&entries[i], &entries[i + 1]);
		if (entries[i].value > deepest)
			deepest = entries[i].value;
	}

	for (size_t depth = 0; depth <= deepest; depth += 8)
	{
		bool		last = depth == deepest;
		prefixes	below = prefixes_of(entries, n, depth + 8, total);
		double		in_layers;
		double		borders;
		double		ends;

		/* how deep others of a sample go is not known */
		if (last)
			below.distinct = below.alone = total;
		in_layers = below.distinct - (here.distinct - here.layers);
		borders = here.layers;
		if (in_layers > here.layers * BORDER_FILL)
			borders = in_layers / BORDER_FILL + (here.layers > 1 ? here.layers / 2 : 0);
		mot_objects_add(region, nodes, sizeof(mot_border), ceil(borders));
		for (double level = borders; level > here.layers * 1.5;)
		{
			level = ceil(level / INTERIOR_FILL);
			if (level < here.layers)
				level = here.layers;
			mot_objects_add(region, nodes, sizeof(mot_interior), level);
		}

		/* entries that end in these layers */
		ends = (total - here.alone) - (last ? 0 : total - below.alone);
		if (ends >= 1)
			add_suffixes(region, nodes, entries, n, depth, false, ends, borders);
		here = below;
	}
	return mot_objects_pages(region, nodes, 1);
}
