/*-------------------------------------------------------------------------
 *
 * region.c
 *	  The region: one mapping, its layout, giving memory back, statistics.
 *
 * Address space is reserved once, before the postmaster forks, so that every
 * process has the region at one address.  It is made of two mappings side by
 * side: ordinary memory for the region's own bookkeeping, and the chunks,
 * which may be huge pages.  Nothing is committed (MAP_NORESERVE) and nothing
 * is written but the first pages: all descriptors are valid when zero, which
 * is what untouched memory reads as, so a terabyte is created as fast as a
 * megabyte, and reset is dropping the memory behind the control area.
 *
 * Reserved huge pages are the exception: they are taken when mapped and never
 * given back.  See hugepages.c.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "memory/memory_internal.h"

/* parts of the control area begin on a page of their own */
#define PART_ALIGN 4096

/* at most this many spans, so at most about as many mappings when bound */
#define MAX_SPANS 8192

/* pool slots: at least, and at most one for each page */
#define MIN_POOLS 65536
#define MAX_POOLS (1u << 20)

/* bytes of a class a magazine may hold, and the share all caches may */
#define MAGAZINE_MAX_BYTES (16 * 1024)
#define MAGAZINE_MIN_BYTES (2 * 1024)
#define CACHES_SHARE 8

/* entries of the table of hints: one for so many bytes of chunks, or up to twice as many */
#define HINT_SHARE 256
#define HINT_MAX (UINT32_C(1) << 31)

/* free pages a node keeps memory behind, in bytes: at most, and share */
#define DIRTY_MAX_BYTES ((size_t) 8 << 20)
#define DIRTY_SHARE 32

static size_t place(size_t *offset, size_t bytes);
static uint32_t hint_count(size_t bytes);
static void lay_out(mot_region *region, size_t header_size);
static void set_limits(mot_region *region);
static bool map_data(mot_region *region, char *at, char *err, size_t errlen);

mot_region *
mot_region_create(size_t max_memory, unsigned caches, size_t header_size,
				  unsigned flags, char *err, size_t errlen)
{
	mot_region	plan;
	mot_region *region;
	size_t		fixed = MOT_ALIGN_UP(sizeof(mot_region), PART_ALIGN);
	size_t		data_at;
	char	   *mapping;
	char	   *start;
	int share = (flags & MOT_REGION_PRIVATE) ? MAP_PRIVATE : MAP_SHARED;

	if (errlen > 0)
		err[0] = '\0';
	memset(&plan, 0, sizeof(plan));
	plan.chunk_count = (uint32_t) (max_memory / MOT_CHUNK_SIZE);
	if (max_memory < MOT_CHUNK_SIZE ||
		max_memory / MOT_PAGE_SIZE >= (MOT_NO_PAGE - 1) / (1 + MOT_LOTS))
	{
		snprintf(err, errlen, "%zu bytes are too few or too many for a memory region",
				 max_memory);
		return NULL;
	}
	plan.max_bytes = (size_t) plan.chunk_count * MOT_CHUNK_SIZE;
	plan.page_count = plan.chunk_count * (uint32_t) MOT_PAGES_PER_CHUNK;
	plan.flags = flags;
	plan.cache_count = caches;
	mot_topology_read(&plan.topology);
	set_limits(&plan);
	lay_out(&plan, header_size);

	/* address space for everything, with room to align the chunks */
	data_at = MOT_ALIGN_UP(fixed + plan.control_size, MOT_CHUNK_SIZE);
	plan.mapping_size = data_at + plan.max_bytes + plan.hint_bytes + MOT_CHUNK_SIZE;
	mapping = mmap(NULL, plan.mapping_size, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapping == MAP_FAILED)
	{
		snprintf(err, errlen, "could not reserve %zu bytes of address space: %s",
				 plan.mapping_size, strerror(errno));
		return NULL;
	}
	plan.mapping = mapping;
	start = (char *) MOT_ALIGN_UP((uintptr_t) mapping, MOT_CHUNK_SIZE);

	if (mmap(start, fixed + plan.control_size, PROT_READ | PROT_WRITE,
			 share |MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED ||
		!map_data(&plan, start + data_at, err, errlen))
	{
		snprintf(err, errlen, "could not map %zu bytes of memory%s: %s",
				 plan.max_bytes + plan.hint_bytes,
				 (flags & MOT_REGION_HUGE_ON) ? " in huge pages" : "",
				 strerror(errno));
		munmap(mapping, plan.mapping_size);
		return NULL;
	}

	region = (mot_region *) start;
	*region = plan;

	/* the plan's parts are offsets so far */
	region->control = start + fixed;
	region->data = start + data_at;
	region->hints = (void *) (region->data + region->max_bytes);
#define LOCATE(part) \
	region->part = (void *) (region->control + (uintptr_t) region->part)
	LOCATE(state);
	LOCATE(header);
	LOCATE(system_classes);
	LOCATE(chunk_map);
	LOCATE(span_used);
	LOCATE(span_node);
	LOCATE(caches);
	LOCATE(pools);
	LOCATE(chunks);
	LOCATE(pages);
	LOCATE(row_bits);
#undef LOCATE

	mot_pool_start(region);
	return region;
}

void
mot_region_destroy(mot_region *region)
{
	munmap(region->mapping, region->mapping_size);
}

void
mot_region_reset(mot_region *region)
{
	mot_region_give_back(region, region->data, region->max_bytes + region->hint_bytes);

	/*
	 * Memory that the system does not take (it may be locked) is zeroed by
	 * hand.  The kernel gives back all or nothing of one mapping, so there is
	 * no half-zeroed state to care for: what it dropped reads as zero too.
	 */
	if (madvise(region->control, region->control_size,
				(region->flags & MOT_REGION_PRIVATE) ? MADV_DONTNEED : MADV_REMOVE) != 0)
		memset(region->control, 0, region->control_size);
	mot_pool_start(region);
}

void *
mot_region_header(mot_region *region)
{
	return region->header;
}

/* chunks never lie at the base, so no object has the offset zero */
void *
mot_region_base(const mot_region *region)
{
	return (void *) region;
}

/* the table of hints, and how many entries it has: a power of two */
_Atomic uint32_t *
mot_region_hints(const mot_region *region, uint32_t *entries)
{
	*entries = region->hint_count;
	return region->hints;
}

size_t
mot_region_mapping_size(const mot_region *region)
{
	return region->mapping_size;
}

unsigned
mot_region_nodes(const mot_region *region)
{
	return region->topology.nodes;
}

uint64_t
mot_region_max(const mot_region *region)
{
	return region->max_bytes;
}

uint64_t
mot_region_used(const mot_region *region)
{
	/* relaxed: a figure, nothing is read through it */
	return atomic_load_explicit(&region->state->used, memory_order_relaxed);
}

void
mot_memory_stats(const mot_region *region, unsigned node, mot_memory_stat *stat)
{
	mot_region_state *state = region->state;
	unsigned	first = node,
				last = node;

	memset(stat, 0, sizeof(*stat));
	if (node >= region->topology.nodes)
	{
		uint64_t	chunks;
		uint64_t	row_pages;

		first = 0;
		last = region->topology.nodes - 1;
		stat->max_bytes = region->max_bytes;

		/*
		 * Descriptors stay touched once they were: those of the most chunks
		 * ever in use, and the bitmaps of pages of rows, of which we count
		 * how many were ever taken; of pages ever divided those of their
		 * lots.  Of the hints we take the share of those chunks to be in use.
		 */
		chunks = atomic_load_explicit(&state->chunk_peak, memory_order_relaxed);
		row_pages = atomic_load_explicit(&state->row_pages, memory_order_relaxed);
		if (row_pages > chunks * MOT_PAGES_PER_CHUNK)
			row_pages = chunks * MOT_PAGES_PER_CHUNK;
		stat->descriptor_bytes = sizeof(mot_region) + sizeof(mot_region_state) +
			atomic_load_explicit(&state->pools_high, memory_order_relaxed) * region->pool_stride +
			chunks * (sizeof(mot_chunk) + MOT_PAGES_PER_CHUNK * sizeof(mot_page)) +
			row_pages * MOT_ROW_WORDS * sizeof(uint64_t) +
			atomic_load_explicit(&state->divided, memory_order_relaxed) *
			(MOT_LOTS * sizeof(mot_page) + MOT_ROW_WORDS * sizeof(uint64_t)) +
			chunks * region->hint_count / region->chunk_count * sizeof(uint32_t);
	}

	/* relaxed all: figures that need not belong to one moment */
	for (unsigned n = first; n <= last; n++)
	{
		mot_node   *nd = &state->nodes[n];

		stat->chunk_bytes += MOT_CHUNK_SIZE *
			atomic_load_explicit(&nd->chunks, memory_order_relaxed);
		stat->page_bytes += MOT_PAGE_SIZE *
			atomic_load_explicit(&nd->pages, memory_order_relaxed);
		stat->system_bytes += MOT_PAGE_SIZE *
			atomic_load_explicit(&nd->touched, memory_order_relaxed);
	}
	if (region->huge && stat->max_bytes != 0)
		stat->system_bytes = region->max_bytes;
}

/* is memory in huge pages reserved for it? */
bool
mot_region_huge(const mot_region *region)
{
	return region->huge;
}

/*
 * Drop the memory behind part of the chunks; it reads as zero when touched
 * again.  False if the system did not take it.
 */
bool
mot_region_give_back(mot_region *region, void *start, size_t length)
{
	bool		alone = (region->flags & MOT_REGION_PRIVATE) != 0;
	int			save_errno = errno;
	bool		given;

	if (region->huge || (region->whole_chunks && length % MOT_CHUNK_SIZE != 0))
		return false;
	given = madvise(start, length, alone ? MADV_DONTNEED : MADV_REMOVE) == 0;
	errno = save_errno;
	return given;
}

/*
 * Have memory behind these pages now.  Only a matter of speed: where the
 * system cannot do it (Linux before 5.14), or has none, page faults will.
 */
void
mot_region_populate(mot_region *region, void *start, size_t length)
{
#ifdef MADV_POPULATE_WRITE
	int			save_errno = errno;

	/* private memory comes in huge pages, by one fault each */
	if (!region->huge && (region->flags & MOT_REGION_POPULATE) &&
		!(region->flags & MOT_REGION_PRIVATE))
		(void) madvise(start, length, MADV_POPULATE_WRITE);
	errno = save_errno;
#else
	(void) region;
	(void) start;
	(void) length;
#endif
}

static uint32_t
hint_count(size_t bytes)
{
	uint32_t	count = 1;

	while (count <= bytes / HINT_SHARE / 2 && count < HINT_MAX)
		count *= 2;
	return count;
}

size_t
mot_region_chunk_bytes(size_t max_memory)
{
	size_t		bytes = MOT_ALIGN_DOWN(max_memory, MOT_CHUNK_SIZE);

	return bytes + MOT_ALIGN_UP(hint_count(bytes) * sizeof(uint32_t), MOT_CHUNK_SIZE);
}

/* sizes of caches, spans and so on, by the size of the region */
static void
set_limits(mot_region *region)
{
	size_t		pages = region->max_bytes / MOT_PAGE_SIZE;
	size_t		magazine;

	region->high_water = MOT_HIGH_WATER(region->max_bytes);
	region->pool_stride = MOT_ALIGN_UP(sizeof(mot_pool) +
									   region->topology.nodes * sizeof(mot_pool_node),
									   MOT_CACHE_LINE);
	region->pool_count = (uint32_t) (pages < MIN_POOLS ? MIN_POOLS :
									 pages > MAX_POOLS ? MAX_POOLS : pages);

	region->hint_count = hint_count(region->max_bytes);
	region->hint_bytes = MOT_ALIGN_UP(region->hint_count * sizeof(uint32_t), MOT_CHUNK_SIZE);

	while (((size_t) region->chunk_count >> region->span_shift) > MAX_SPANS)
		region->span_shift++;
	region->span_count = ((region->chunk_count - 1) >> region->span_shift) + 1;

	region->dirty_pages = region->max_bytes / DIRTY_SHARE;
	if (region->dirty_pages > DIRTY_MAX_BYTES)
		region->dirty_pages = DIRTY_MAX_BYTES;
	region->dirty_pages /= MOT_PAGE_SIZE;

	/* all magazines of all caches, full: an eighth of the region at most */
	magazine = region->max_bytes / CACHES_SHARE / mot_cache_magazines() /
		(region->cache_count ? region->cache_count : 1);
	if (magazine > MAGAZINE_MAX_BYTES)
		magazine = MAGAZINE_MAX_BYTES;
	if (magazine < MAGAZINE_MIN_BYTES)
		magazine = MAGAZINE_MIN_BYTES;
	mot_classes_init(region, magazine);
}

/* offsets of the control area's parts, in place of their addresses */
static void
lay_out(mot_region *region, size_t header_size)
{
	size_t		end = 0;
	size_t		chunks = region->chunk_count;
	size_t		pages = chunks * MOT_PAGES_PER_CHUNK;

	region->state = (void *) place(&end, sizeof(mot_region_state));
	region->header = (void *) place(&end, header_size);
	region->system_classes = (void *)
		place(&end, MOT_CLASSES * region->topology.nodes * sizeof(mot_class_node));
	region->chunk_map = (void *) place(&end, (chunks + 63) / 64 * sizeof(uint64_t));
	region->span_used = (void *) place(&end, region->span_count * sizeof(uint32_t));
	region->span_node = (void *) place(&end, region->span_count);
	region->caches = (void *) place(&end, region->cache_count * mot_cache_stride());
	region->pools = (void *) place(&end, region->pool_count * region->pool_stride);
	region->chunks = (void *) place(&end, chunks * sizeof(mot_chunk));
	/* those of lots are touched only where a page is divided */
	region->pages = (void *) place(&end, pages * (1 + MOT_LOTS) * sizeof(mot_page));
	region->row_bits = (void *) place(&end, 2 * pages * MOT_ROW_WORDS * sizeof(uint64_t));
	region->control_size = end;
}

static size_t
place(size_t *offset, size_t bytes)
{
	size_t		at = *offset;

	*offset = MOT_ALIGN_UP(at + bytes, PART_ALIGN);
	return at;
}

static bool
map_data(mot_region *region, char *at, char *err, size_t errlen)
{
	int share = (region->flags & MOT_REGION_PRIVATE) ? MAP_PRIVATE : MAP_SHARED;
	size_t		bytes = region->max_bytes + region->hint_bytes;

	if (region->flags & (MOT_REGION_HUGE_TRY | MOT_REGION_HUGE_ON))
	{
		if (mot_huge_map(at, bytes, share))
		{
			region->huge = true;
			region->whole_chunks = true;
			return true;
		}
		if (region->flags & MOT_REGION_HUGE_ON)
			return false;
		snprintf(err, errlen, "%s", strerror(errno));
	}
	if (mmap(at, bytes, PROT_READ | PROT_WRITE,
			 share |MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;

	/* shared memory takes the advice only where the administrator lets it */
	region->whole_chunks = madvise(at, bytes, MADV_HUGEPAGE) == 0 &&
		!(region->flags & MOT_REGION_PRIVATE) && mot_huge_transparent();
	return true;
}
