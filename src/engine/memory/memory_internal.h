/*-------------------------------------------------------------------------
 *
 * memory_internal.h
 *	  What the files behind memory.h share.
 *
 *	topology.c	nodes of the machine, which cpu is on which, binding
 *	region.c	the mapping and its layout, reset, giving back, statistics
 *	pages.c		chunks of 2 MB, pages of 64 KB, runs of either
 *	lots.c		pages divided into eight, for small pools
 *	pool.c		pools: objects of size classes in pages, large objects
 *	charge.c	what they may have: of the region, of tables' limits and of quotas
 *	cache.c		magazines of free objects per process slot
 *	rowmap.c	row bitmaps, page directories, walks
 *	rehome.c	pages that come to another node
 *
 * The mapping consists of
 *
 *		mot_region		what creation decided; never changes
 *		control			counters, descriptors, caches, pools: an area that is
 *						valid when all zero, so creation and reset need not
 *						write any of it
 *		data			the chunks, and behind them the hints: in huge pages,
 *						too, if there are some
 *
 * Numbers of chunks, pages, pools and directory entries that lie in the
 * control area as links are stored plus one, so that zero means none.
 *
 * Locks, in the order in which they nest:
 *
 *		pool guard		pool exists (taken by who does not know: see cache.c)
 *		class lock		one class of one pool on one node
 *		list lock		a pool's page list and directory
 *		(class and list lock of the system pool, which has no directory)
 *		node lock		a node's chunk lists, its chunks' page bitmaps
 *		chunk lock		which chunks are in use
 *		pool slot lock	which pools are in use (a leaf)
 *		group lock		what a table's pools have (a leaf)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MEMORY_INTERNAL_H
#define MOT_MEMORY_INTERNAL_H

#include "memory/memory.h"
#include "memory/topology.h"

#define MOT_NO_PAGE UINT32_MAX
#define MOT_NO_CHUNK UINT32_MAX

/* new rows get no page that would bring the region above this share of it */
#define MOT_HIGH_WATER(max) ((max) / 16 * 15)

/* the changes of a group or quota may exceed its limit by at least so much */
#define MOT_GROUP_RESERVE ((uint64_t) 256 << 10)

/*---- size classes (pool.c) ----*/

/*
 * 16-byte steps to 512 bytes, then the sizes of which 113, 102, 91, ... 2 fill
 * a page, then runs of whole pages.
 */
#define MOT_CLASSES MOT_OBJECT_CLASSES	/* 63 in use and the last for runs */
#define MOT_CLASS_LARGE 63
#define MOT_CLASS_LOTS 64		/* of no object: the page is divided (lots.c) */
#define MOT_SMALL_STEP 16
#define MOT_SMALL_MAX 512
#define MOT_SMALL_CLASSES (MOT_SMALL_MAX / MOT_SMALL_STEP)
#define MOT_CLASS_MAX_SIZE ((size_t) 32 << 10)
#define MOT_CLASS_LOOKUP 64		/* step of the lookup table above 512 bytes */

typedef struct mot_size_class
{
	uint32_t	size;			/* bytes of an object */
	uint32_t	objects;		/* how many fill a page */
	uint32_t	lot_objects;	/* or a lot */
	uint32_t	reciprocal;		/* of size / 16, scaled by 2^32, rounded up */
	uint32_t	cached;			/* how many a magazine may hold; 0: not cached */
} mot_size_class;

/*---- chunks and pages (pages.c) ----*/

typedef struct mot_chunk
{
	uint32_t	free;			/* bit per page: belongs to nobody */
	uint32_t	touched;		/* bit per page: may have memory behind it */
	uint32_t	prev;			/* the shared list, or its pool's own list; in */
	uint32_t	next;			/* either while some page is free */
	uint32_t	owned_prev;		/* the node's list of pools' own chunks, while */
	uint32_t	owned_next;		/* some page is free */
	mot_pool   *owner;			/* the pool whose own chunk it is, or NULL */
	uint32_t	node;
} mot_chunk;

/*
 * A page's descriptor.  "shape" and "insert_counter" are read by walkers at
 * any time; the rest belongs to the class lock, the list lock, or to nobody
 * because it stays as it is while an object of the page is allocated.
 */
typedef struct mot_page
{
	_Atomic uint64_t shape;		/* object size, node, class; 0: in no pool */
	mot_pool   *_Atomic pool;	/* constant while in a pool */
	uint64_t	pool_id;		/* likewise */
	void	   *free;			/* class lock: list of freed objects */
	uint16_t	free_count;		/* class lock: freed or never used */
	uint16_t	carved;			/* class lock: objects handed out ever */
	uint32_t	partial_prev;	/* class lock: pages with free objects; or */
	uint32_t	partial_next;	/* lots' lock: with free lots */
	uint32_t	list_prev;		/* list lock: all pages of the pool */
	uint32_t	list_next;
	uint32_t	entry;			/* list lock: directory entry */
	_Atomic uint32_t insert_counter;	/* rows ever marked; never reset */
} mot_page;

/* pages with something free, by number plus one */
typedef struct mot_page_list
{
	uint32_t	head;
	uint32_t	tail;
} mot_page_list;

/*
 * A lot is an eighth of a page, and in all else a page (lots.c).  The first
 * pages of a pool are lots, until it has as much as a page, if their objects
 * are so small that several fit.
 */
#define MOT_LOTS 8
#define MOT_LOT_SIZE (MOT_PAGE_SIZE / MOT_LOTS)
#define MOT_LOT_MAX_OBJECT (MOT_LOT_SIZE / 4)
#define MOT_LOTS_MOST MOT_PAGE_SIZE

#define MOT_SHAPE(size, node, class) \
	((uint64_t) (size) << 16 | (uint64_t) (node) << 8 | (uint64_t) (class))
#define MOT_SHAPE_SIZE(shape) ((size_t) ((shape) >> 16))
#define MOT_SHAPE_NODE(shape) ((unsigned) ((shape) >> 8) & 0xff)
#define MOT_SHAPE_CLASS(shape) ((unsigned) (shape) & 0xff)

typedef struct mot_node
{
	MOT_CACHE_ALIGNED mot_spinlock lock;
	uint32_t	shared;			/* chunks any pool takes pages of */
	uint32_t	owned;			/* chunks that are some pool's own */
	/* written under the lock, read by statistics without */
	_Atomic uint64_t chunks;	/* handed out */
	_Atomic uint64_t pages;		/* in pools */
	_Atomic uint64_t touched;	/* may have memory behind them */
	_Atomic uint64_t dirty;		/* of them, in no pool */
	/* chunk lock */
	MOT_CACHE_ALIGNED uint32_t span_hint;
	uint32_t	span_free;		/* free chunks in the node's spans */
} mot_node;

extern uint32_t mot_pages_take(mot_region *region, mot_pool *pool,
							   unsigned node, size_t count);
extern void mot_pages_put(mot_region *region, mot_pool *pool, uint32_t page,
						  size_t count, bool give_back);
extern void mot_pages_put_mask(mot_region *region, mot_pool *pool,
							   uint32_t chunk_no, uint32_t mask, bool give_back);

/*---- lots (lots.c) ----*/

extern uint32_t mot_take_lot(mot_pool *pool, unsigned node, mot_purpose purpose, int *why);
extern void mot_put_lot(mot_pool *pool, uint32_t lot, bool give_back);

/*---- the region (region.c) ----*/

/* divided pages with free lots, of one node */
typedef struct mot_lot_list
{
	MOT_CACHE_ALIGNED mot_spinlock lock;
	mot_page_list partial;
} mot_lot_list;

/* the zeroed control area begins with this */
typedef struct mot_region_state
{
	_Atomic uint64_t used;		/* bytes of pages in pools */
	_Atomic uint64_t insert_limit;	/* 0: the high water */
	_Atomic uint64_t row_pages; /* pages ever taken by pools of rows, about */
	_Atomic uint32_t returning; /* times chunks left all lists to go back */
	_Atomic uint32_t returned;	/* times they arrived */
	_Atomic uint32_t kept;		/* empty pages that pools keep */

	MOT_CACHE_ALIGNED mot_spinlock chunk_lock;
	uint32_t	chunks_used;
	uint32_t	span_hint;		/* no unassigned span below */
	uint32_t	spans_assigned;
	_Atomic uint32_t chunk_peak;	/* most chunks ever in use at a time */

	MOT_CACHE_ALIGNED mot_spinlock pool_lock;
	uint32_t	pool_free;		/* list of free slots */
	uint64_t	last_pool_id;
	_Atomic uint32_t pools_high;	/* slots ever used */

	mot_node	nodes[MOT_MAX_NODES];
	mot_lot_list lots[MOT_MAX_NODES];
	_Atomic uint64_t divided;	/* pages ever divided */
} mot_region_state;

typedef struct mot_class_node mot_class_node;

struct mot_region
{
	void	   *mapping;		/* what to unmap */
	size_t		mapping_size;
	char	   *control;		/* the zeroed area */
	size_t		control_size;
	char	   *data;			/* the chunks */
	size_t		max_bytes;		/* of data */
	size_t		high_water;		/* limit for new rows, at most */
	uint32_t	chunk_count;
	uint32_t	page_count;		/* numbers from there on are lots' */
	unsigned	flags;
	bool		huge;			/* data is MAP_HUGETLB: nothing is given back */
	bool		whole_chunks;	/* a chunk has memory behind all of it, or
								 * none: huge pages of either kind */
	unsigned	cache_count;
	uint32_t	pool_count;		/* slots */
	size_t		pool_stride;
	unsigned	span_shift;		/* chunks of a span, as a power of two */
	uint32_t	span_count;
	size_t		dirty_pages;	/* free pages a node may keep touched */

	/* parts of the control area */
	mot_region_state *state;
	char	   *header;
	mot_class_node *system_classes;
	uint64_t   *chunk_map;		/* bit per chunk: in use */
	uint32_t   *span_used;		/* chunks in use of each span */
	uint8_t    *span_node;		/* its node plus one, or 0 */
	mot_cache  *caches;
	char	   *pools;
	mot_chunk  *chunks;
	mot_page   *pages;			/* and lots, if any of these was ever used */
	_Atomic uint64_t *row_bits; /* MOT_ROW_WORDS of each page, then of each
								 * lot */
	_Atomic uint32_t *hints;	/* see hint.h */
	uint32_t	hint_count;		/* a power of two */
	size_t		hint_bytes;		/* of the mapping, whole chunks */

	mot_size_class classes[MOT_CLASSES];
	uint8_t		class_of[(MOT_CLASS_MAX_SIZE / MOT_CLASS_LOOKUP) + 1];

	mot_topology topology;
};

/* hugepages.c */
extern bool mot_huge_map(char *at, size_t length, int share);
extern bool mot_huge_transparent(void);

extern bool mot_region_give_back(mot_region *region, void *start, size_t length);
extern void mot_region_populate(mot_region *region, void *start, size_t length);

/* numbers of lots, by their page's and back */
static inline uint32_t
mot_lot_no(const mot_region *region, uint32_t page_no, unsigned i)
{
	return region->page_count + page_no * MOT_LOTS + i;
}

static inline bool
mot_is_lot(const mot_region *region, uint32_t page_no)
{
	return mot_unlikely(page_no >= region->page_count);
}

static inline uint32_t
mot_lot_page(const mot_region *region, uint32_t lot)
{
	return (lot - region->page_count) / MOT_LOTS;
}

/*
 * The shape of an allocated object's page.  relaxed: it was set before the
 * object was handed out, by whoever did or under a lock taken since.
 */
static inline uint64_t
mot_shape_of(const mot_page *page)
{
	return atomic_load_explicit(&page->shape, memory_order_relaxed);
}

/* the page, or lot, that an object is in, and its shape */
static inline mot_page *
mot_page_of(const mot_region *region, const void *address, uint64_t *shape)
{
	size_t		offset = (size_t) ((const char *) address - region->data);
	mot_page   *page = &region->pages[offset / MOT_PAGE_SIZE];

	/* relaxed, both: whoever has the object knows what its page is */
	*shape = atomic_load_explicit(&page->shape, memory_order_relaxed);
	if (mot_unlikely(MOT_SHAPE_CLASS(*shape) == MOT_CLASS_LOTS))
	{
		page = &region->pages[region->page_count + offset / MOT_LOT_SIZE];
		*shape = atomic_load_explicit(&page->shape, memory_order_relaxed);
	}
	return page;
}

static inline char *
mot_page_address(const mot_region *region, uint32_t page_no)
{
	if (mot_is_lot(region, page_no))
		return region->data + (size_t) (page_no - region->page_count) * MOT_LOT_SIZE;
	return region->data + (size_t) page_no * MOT_PAGE_SIZE;
}

/* how many objects of a class fill it */
static inline uint32_t
mot_page_objects(const mot_region *region, uint32_t page_no, unsigned class)
{
	const mot_size_class *sc = &region->classes[class];

	return mot_is_lot(region, page_no) ? sc->lot_objects : sc->objects;
}

static inline char *
mot_chunk_address(const mot_region *region, uint32_t chunk_no)
{
	return region->data + (size_t) chunk_no * MOT_CHUNK_SIZE;
}

/*---- pools (pool.c) ----*/

/* one class of one pool on one node */
struct mot_class_node
{
	MOT_CACHE_ALIGNED mot_spinlock lock;
	mot_page_list partial;		/* pages with free objects */
	uint32_t	empty;			/* the one of them that is kept though empty */
	_Atomic uint64_t live;		/* objects handed out; written under the lock */
};

/* what a pool has on one node; node lock */
typedef struct mot_pool_node
{
	uint32_t	own;			/* its own chunks that have free pages */
	_Atomic uint32_t pages;		/* written under the lock, looked at without */
} mot_pool_node;

/* directory block k holds MOT_DIRECTORY_FIRST << k entries */
#define MOT_DIRECTORY_FIRST 16
#define MOT_DIRECTORY_BLOCKS 29

/*
 * A pool's slot is never used for anything else, so that its guard can be
 * taken and its id looked at by someone who remembers a pool that may be gone.
 */
struct mot_pool
{
	MOT_CACHE_ALIGNED _Atomic uint64_t id;	/* 0: slot is free; never reused */
	mot_region *region;
	mot_pool_group *group;
	mot_pool_kind kind;
	uint32_t	min_size;
	_Atomic uint64_t page_bytes;
	_Atomic uint64_t large_bytes;
	_Atomic uint32_t kept;		/* empty pages kept */
	mot_spinlock guard;

	MOT_CACHE_ALIGNED mot_spinlock list_lock;
	uint32_t	first_page;		/* list of all pages */
	uint32_t	hole;			/* list of directory entries to reuse */
	uint32_t	next_free;		/* pool slot lock: list of free slots */
	_Atomic uint64_t directory_size;
	_Atomic uint64_t joins;

	mot_class_node *_Atomic classes[MOT_CLASSES];
	mot_directory_entry *_Atomic directory[MOT_DIRECTORY_BLOCKS];
	mot_pool_node nodes[];		/* as many as the region has */
};

static inline mot_pool *
mot_pool_slot(const mot_region *region, uint32_t slot)
{
	return (mot_pool *) (region->pools + (size_t) slot * region->pool_stride);
}

/* slot 0 is the engine's own: class blocks, directory blocks */
#define MOT_SYSTEM_POOL 0

/* the class an object of that size falls into, or MOT_CLASS_LARGE */
static inline unsigned
mot_class_of(const mot_region *region, size_t size)
{
	unsigned	class;

	if (mot_likely(size <= MOT_SMALL_MAX))
		return (unsigned) ((size + MOT_SMALL_STEP - 1) / MOT_SMALL_STEP) - (size != 0);
	if (size > MOT_CLASS_MAX_SIZE)
		return MOT_CLASS_LARGE;
	/* the smallest class that holds the table step's first size, or the next */
	class = region->class_of[(size - 1) / MOT_CLASS_LOOKUP];
	while (region->classes[class].size < size)
		class++;
	return class;
}

extern void mot_classes_init(mot_region *region, size_t magazine_bytes);
extern void mot_pool_start(mot_region *region);
extern unsigned mot_pool_take(mot_pool *pool, unsigned class, unsigned node,
							  mot_purpose purpose, void **out, unsigned want,
							  int *why);
extern void mot_pool_put(mot_pool *pool, unsigned class, void **objects,
						 unsigned count);
extern void *mot_pool_take_large(mot_pool *pool, size_t size, unsigned node,
								 mot_purpose purpose, int *why);
extern void mot_pool_put_large(mot_pool *pool, void *object);
extern bool mot_pools_shrink(mot_region *region);
extern void mot_partial_push(mot_region *region, mot_page_list *list, uint32_t page_no);
extern void mot_partial_remove(mot_region *region, mot_page_list *list, uint32_t page_no);
extern bool mot_charge(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why);
extern bool mot_charge_region(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why);
extern void mot_uncharge_region(mot_region *region, uint64_t bytes);
extern bool mot_charge_group(mot_pool *pool, uint64_t bytes, mot_purpose purpose, int *why);
extern void mot_uncharge(mot_pool *pool, uint64_t bytes);
extern void mot_uncharge_group(mot_pool *pool, uint64_t bytes);

/*---- caches (cache.c) ----*/

extern size_t mot_cache_stride(void);
extern size_t mot_cache_magazines(void);

/*---- row maps (rowmap.c) ----*/

#define MOT_ROW_WORDS (MOT_PAGE_SIZE / MOT_ROW_MIN_SIZE / 64)
#define MOT_LOT_WORDS (MOT_ROW_WORDS / MOT_LOTS)

/* list lock held */
extern bool mot_directory_join(mot_pool *pool, uint32_t page_no);
extern void mot_directory_leave(mot_pool *pool, uint32_t page_no);

/* nobody else uses the pool */
extern void mot_directory_destroy(mot_pool *pool);
extern void mot_row_bits_clear(mot_region *region, uint32_t page_no,
							   unsigned objects);

#endif							/* MOT_MEMORY_INTERNAL_H */
