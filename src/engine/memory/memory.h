/*-------------------------------------------------------------------------
 *
 * memory.h
 *	  The engine's memory: one region, chunks, pages, pools, caches.
 *
 *	region	 one mapping at one address in every process, reserved before
 *			 the postmaster forks; pages are touched as they are used
 *	chunk	 2 MB of it, bound to one NUMA node when first handed out
 *	page	 64 KB of a chunk; belongs to at most one pool at a time
 *	pool	 the memory of one table's rows, one table's versions, one
 *			 index, or the engine itself: pages cut into objects of one size
 *			 class each; large objects are runs of whole pages (or chunks).
 *			 The first pages of a pool are lots, eighths of a page, so that
 *			 small tables take little; to a pool these are pages, too
 *	cache	 per process slot, a few free objects of the classes it uses;
 *			 filled from and flushed to the pools in batches, and when the
 *			 session is closed.  It lives in the region, so it survives its
 *			 process
 *
 * Page descriptors, and for pools of rows one bitmap word array per page
 * saying which objects are rows, lie outside the pages they describe and are
 * never unmapped: a scan may look at a page that has just gone elsewhere and
 * finds out from the descriptor (see mot_pool_scan_*).
 *
 * An object that others may still be reading is not freed here; reclaim.c
 * holds it until nobody can.  Freed objects go back to their page; a page
 * whose objects are all free goes back to the region, where any other pool
 * can take it; and a dropped pool returns all its pages, and the pages behind
 * them to the system (MADV_REMOVE), at once.
 *
 * Lock order: pool class lock -> pool page list lock -> region lock.  No lock
 * is held while another process may be waited for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MEMORY_H
#define MOT_MEMORY_H

#include <limits.h>

#include "port.h"

#define MOT_CHUNK_SIZE	((size_t) 2 << 20)
#define MOT_PAGE_SIZE	((size_t) 64 << 10)
#define MOT_PAGES_PER_CHUNK (MOT_CHUNK_SIZE / MOT_PAGE_SIZE)
#define MOT_ROW_MIN_SIZE 32		/* granularity of a row page's bitmap */
#define MOT_ROW_LOT_STEP 64		/* ... and of rows' sizes, in the first lots */

typedef struct mot_region mot_region;	/* lies at the start of the mapping */
typedef struct mot_pool mot_pool;	/* in the region */
typedef struct mot_cache mot_cache; /* in the region, one per process slot */

/* mot_region_create flags */
#define MOT_REGION_PRIVATE	1u	/* threads of one process only (tests,
								 * benchmarks): lets the kernel use
								 * transparent huge pages */
#define MOT_REGION_HUGE_TRY 2u	/* MAP_HUGETLB if it can be had */
#define MOT_REGION_HUGE_ON	4u	/* MAP_HUGETLB or fail */
#define MOT_REGION_POPULATE 8u	/* have memory behind the pages of grown pools
								 * when they are taken, not when they are
								 * touched: fewer page faults */

/*
 * Reserve address space for "max_memory" bytes of chunks plus descriptors and
 * "caches" caches, and "header_size" bytes for the caller behind the region's
 * own header (mot_region_header; zeroed).  Commits nothing, but huge pages.
 * Returns NULL and a message when the system refuses; a region without the
 * huge pages that were to be tried, and the reason as message.  The topology (nodes, which cpu is
 * on which) is read with hwloc; HWLOC_SYNTHETIC makes it anything.
 */
extern mot_region *mot_region_create(size_t max_memory, unsigned caches,
									 size_t header_size, unsigned flags,
									 char *err, size_t errlen);
extern void mot_region_destroy(mot_region *region);
extern bool mot_region_huge(const mot_region *region);

/* bytes that are in huge pages, if there are: the chunks and hints */
extern size_t mot_region_chunk_bytes(size_t max_memory);

/*
 * Back to the state mot_region_create left, memory returned to the system.
 * Nobody else may be using the region (the postmaster's restart after a crash).
 */
extern void mot_region_reset(mot_region *region);
extern void *mot_region_header(mot_region *region);
extern void *mot_region_base(const mot_region *region);
extern _Atomic uint32_t *mot_region_hints(const mot_region *region, uint32_t *entries);

/* smallest alignment-16 offset view of an address, for row identities */
static inline uint64_t
mot_region_offset(const void *base, const void *p)
{
	return (uint64_t) ((const char *) p - (const char *) base);
}

extern size_t mot_region_mapping_size(const mot_region *region);
extern unsigned mot_region_nodes(const mot_region *region);
extern mot_cache *mot_region_cache(mot_region *region, unsigned slot);

/*
 * What an allocation is for decides how near to full it may still succeed: what
 * makes room again must find room when nothing else does.  Free objects of pages
 * that the pool has already are handed out to anybody.
 *
 * Of the region, and beyond the limit of a table or quota (or 256 kB beyond, if that is
 * more; deletes do not ask for it).  Less of the region for bounded groups: see
 * mot_region_set_insert_limit.
 */
typedef enum mot_purpose
{
	MOT_FOR_NEW_ROW,			/* 15/16; nothing */
	MOT_FOR_NEW_KEY,			/* 31/32; 1/32.  Index nodes: rows that find
								 * room in pages that others have left find it
								 * in the index, too */
	MOT_FOR_CHANGE,				/* 63/64; 1/16.  Versions, their keys, and
								 * what is kept of their older ones */
	MOT_FOR_DELETE				/* all.  Tombstones, what is owed, and the
								 * memory's own bookkeeping */
} mot_purpose;

typedef enum mot_pool_kind
{
	MOT_POOL_PLAIN,				/* nobody enumerates its objects */
	MOT_POOL_ROWS				/* has a page directory and row bitmaps */
} mot_pool_kind;

/*
 * What the pools of one table have; and what the tables of a database, or a role's, have
 * together.  A quota's memory is never used for anything else.
 */
typedef struct mot_pool_quota
{
	_Atomic uint64_t bytes;		/* of groups that count in it */
	_Atomic uint64_t limit;		/* 0: none */
} mot_pool_quota;

#define MOT_GROUP_QUOTAS 2

typedef struct mot_pool_group
{
	_Atomic uint64_t bytes;		/* pages held by the group's pools */
	_Atomic uint64_t limit;		/* 0: none */
	_Atomic bool bounded;		/* false: quotas only count, as while rows
								 * come back that were there before */
	mot_spinlock lock;			/* a leaf: bytes are being counted, or go to
								 * another quota */
	mot_pool_quota *_Atomic quota[MOT_GROUP_QUOTAS];
} mot_pool_group;

/*
 * A new, empty pool; takes no page until it is used.  group: what it counts in, or NULL.
 * Returns NULL when memory is out.  Any process may create pools at any time.
 */
extern mot_pool *mot_pool_create(mot_region *region, mot_pool_kind kind,
								 mot_pool_group *group);
extern mot_pool_group *mot_pool_group_of(const mot_pool *pool);

/*
 * it counts in another quota (or none) from now on, or only if it counts in none (first); returns
 * the one in which it does not count any more, or not
 */
extern mot_pool_quota *mot_group_set_quota(mot_pool_group *group, unsigned i, mot_pool_quota *quota, bool first);

/* groups that are bounded get no pages for new rows beyond that; not more than 15/16 */
extern void mot_region_set_insert_limit(mot_region *region, uint64_t bytes);

/* is there less than a sixteenth left, of the region, the group or a quota, for new rows? */
extern bool mot_pool_is_short(const mot_pool *pool);

/*
 * how many bytes new rows may still take of the region, or of what else bounds them if that has
 * less
 */
extern uint64_t mot_pool_left(const mot_pool *pool);

/*
 * Objects that are not there, and the bytes of the pages or lots that a pool would have for them:
 * how many of each class, and in the last place the bytes of large ones.
 */
#define MOT_OBJECT_CLASSES 64
extern void mot_objects_add(const mot_region *region, double *objects, size_t size, double number);
extern double mot_objects_pages(const mot_region *region, const double *objects, double scale);

/*
 * Give everything back: pages to the region and to the system, the pool
 * itself too.  Nobody may use the pool or its objects any more (the caller
 * waited for readers); objects of it that lie in caches are forgotten there.
 */
extern void mot_pool_destroy(mot_pool *pool);

/*
 * An object of at least "size" bytes (1 byte to the region's size), 16-byte
 * aligned, contents undefined.  NULL when the region or the pool's group is
 * full for that purpose (*why: 0 region, 1 group, 2 and up its quotas, if why is not NULL).
 * Small objects come from the cache: no lock, no atomic, in the common case.
 * A cache is used by its owner only.  May be called concurrently with
 * anything but mot_pool_destroy of the same pool.
 */
extern void *mot_alloc(mot_cache *cache, mot_pool *pool, size_t size,
					   mot_purpose purpose, int *why);

/*
 * The same from a node's memory, if it has any; MOT_ANY_NODE: that of the cpu
 * the caller runs on, as mot_alloc has it.  What a process has ready of another
 * node is what its frees have gathered there, or comes in batches, too.
 */
#define MOT_ANY_NODE UINT_MAX
extern void *mot_alloc_on(mot_cache *cache, mot_pool *pool, unsigned node, size_t size,
						  mot_purpose purpose, int *why);

/* the node whose memory an object is in */
extern unsigned mot_object_node(const mot_region *region, const void *object);

/*
 * The page that an object is in, which lives as long as this lasts, belongs to another
 * node from now on, after its memory has been moved there; see rehome.c.
 */
typedef enum mot_page_moved
{
	MOT_PAGE_MOVED,
	MOT_PAGE_REFUSED,			/* the system would not */
	MOT_PAGE_STAYS				/* a lot, or memory in huge pages */
} mot_page_moved;

extern mot_page_moved mot_page_move(mot_region *region, void *object, unsigned node);

/* The object goes back to its pool.  Any process, whoever allocated it. */
extern void mot_free(mot_cache *cache, void *object);

/* bytes usable behind an object's address (its class's size) */
extern size_t mot_usable_size(const mot_region *region, const void *object);

/* the pool an object belongs to */
extern mot_pool *mot_object_pool(const mot_region *region, const void *object);

/* all cached objects back to their pools (memory is short, or the server idle) */
extern void mot_cache_flush(mot_cache *cache);

/* bytes of the objects in it; of others' caches exact while their owners rest */
extern uint64_t mot_cache_bytes(const mot_cache *cache);

/*
 * What to ask for, for a row of that size: as long as the pool has less
 * than half a page its rows are of few classes, so that they share lots, and lie in the order in
 * which they came.
 */
extern size_t mot_row_bytes(const mot_pool *pool, size_t size);

/*
 * Rows of a MOT_POOL_ROWS pool.  mot_row_mark says that an object now is a
 * row (release: whoever sees the mark sees the row's initialised header);
 * mot_row_unmark takes it off.  Both atomic, both by whoever allocated or
 * unlinks the row.  mot_row_mark also bumps the page's insert counter, which
 * phantom validation of sequential scans compares.
 */
extern void mot_row_mark(mot_region *region, void *object);
extern void mot_row_unmark(mot_region *region, void *object);
extern bool mot_row_marked(mot_region *region, const void *object);

/*
 * The marked row of this pool that begins at that offset from mot_region_base,
 * or NULL; or the first one that begins in so many bytes, if it is what is first
 * in them.  Any number will do.  Who has
 * published a snapshot before has the row for as long as that is published.
 */
extern void *mot_row_find(const mot_pool *pool, uint64_t offset);
extern void *mot_row_find_between(const mot_pool *pool, uint64_t offset, size_t width);

/* ask for what mot_row_find_between will look at, besides the row */
extern void mot_row_find_ahead(const mot_pool *pool, uint64_t offset);

/*
 * Walk over all marked rows, page by page in the order the pages came to the
 * pool.  Rows marked or unmarked meanwhile may or may not be seen; a row
 * marked before the walk began and not unmarked is seen exactly once.  The
 * caller holds a published snapshot, so no row it is shown is freed under it.
 * Pages are claimed by number, so several walkers can share the work: each
 * takes page_index values from a counter of the caller's.
 */
typedef _Atomic uint64_t mot_directory_entry;

typedef struct mot_page_view
{
	void	   *page;			/* address of the page or large object's first
								 * page */
	size_t		object_size;	/* distance of objects (whole run for a large
								 * row) */
	unsigned	objects;		/* how many fit */
	unsigned	next;			/* walker's position */
	uint32_t	insert_counter; /* page's insert counter when the walk entered */
	uint32_t	page_no;		/* for mot_page_insert_counter */
	uint64_t	index;			/* the directory entry's number */
	uint64_t	tenure;			/* what the directory entry said on entering:
								 * the walk of this page ends when it says
								 * otherwise */
	const mot_directory_entry *entry;
} mot_page_view;

/* number of directory entries now (grows only; entries may be holes) */
extern uint64_t mot_pool_directory_size(const mot_pool *pool);

/* enter directory entry i; false: a hole */
extern bool mot_pool_page(const mot_pool *pool, uint64_t i, mot_page_view *view);

/* next marked object of the page, or NULL */
extern void *mot_page_next(const mot_pool *pool, mot_page_view *view);
extern uint32_t mot_page_insert_counter(const mot_region *region, uint32_t page_no);

/* the page_no of the page an object lies in */
extern uint32_t mot_object_page(const mot_region *region, const void *object);

/*
 * How many pages ever joined the pool.  A row inserted into a page that
 * joined after a walk passed bumps no insert counter the walk has noted, but
 * it comes after the change of this number: phantom validation reads it
 * before the walk (or before the directory's size) and compares it at the
 * end.
 */
extern uint64_t mot_pool_joins(const mot_pool *pool);

/* did the page join after the pool's number of joins was this? */
extern bool mot_page_joined_after(const mot_page_view *view, uint64_t joins);

typedef struct mot_memory_stat
{
	uint64_t	max_bytes;		/* chunks' share of the region, this node: 0 =
								 * not split */
	uint64_t	chunk_bytes;	/* in chunks handed out */
	uint64_t	page_bytes;		/* in pages owned by pools */
	uint64_t	system_bytes;	/* touched and not given back to the system
								 * (at most) */
	uint64_t	descriptor_bytes;	/* overhead outside the chunks (touched,
									 * estimate) */
} mot_memory_stat;

/* node >= mot_region_nodes(): of all nodes together, max_bytes included */
extern void mot_memory_stats(const mot_region *region, unsigned node, mot_memory_stat *stat);

/* bytes of pages held, and of them bytes in live objects (cached ones count as live) */
extern void mot_pool_stats(const mot_pool *pool, uint64_t *page_bytes, uint64_t *object_bytes);
extern uint64_t mot_pool_objects(const mot_pool *pool);

/* the second of all pools, but for the one of the memory's own blocks */
extern uint64_t mot_region_object_bytes(const mot_region *region);
extern uint64_t mot_region_max(const mot_region *region);
extern uint64_t mot_region_used(const mot_region *region);	/* page bytes in pools */

#endif							/* MOT_MEMORY_H */
