/*-------------------------------------------------------------------------
 *
 * rowmap.c
 *	  Which objects of a pool are rows: bitmaps, page directories, walks.
 *
 * Every page has a bitmap outside of it, with a bit for each object that is a
 * row at present.  It is all zero while the page is in no pool of rows: rows
 * are unmarked long before they are freed, and a dropped pool's pages are
 * cleared.
 *
 * A pool of rows has a directory of its pages, for walks: blocks of growing
 * size that are never moved, so an entry is found by number and read without
 * a lock.  An entry is a page's number and, above it, a number that is new
 * whenever a page joins, together the page's tenure; or it is a hole, which
 * the next page to join will fill.
 *
 * A walker must not show a row of a page that has left, nor take the bits of
 * a page cut into objects of another size for its own, nor show a row twice
 * because its page has moved to an entry further on.  So it remembers the
 * tenure on entering, and for each word of the bitmap it reads the word first
 * (acquire) and the entry again after it.  If the entry still says the same,
 * the bit belongs to that tenure: had the page left before the bit was set,
 * then the entry was changed before that, and whoever sees the bit sees the
 * change.  A row that was shown is not freed before the walk ends (the
 * walker's snapshot), so its page keeps its entry until then: no other entry
 * can show it.  And a row marked before the walk began holds its page where
 * it is, so it is not missed.
 *
 *-------------------------------------------------------------------------
 */
#include "memory/memory_internal.h"

/* an entry: tenure's number above, page number plus one below; hole: below 0 */
#define ENTRY(number, page_no) ((uint64_t) (number) << 32 | ((uint64_t) (page_no) + 1))
#define ENTRY_LINK(entry) ((uint32_t) (entry))
#define HOLE(next) ((uint64_t) (next) << 32)
#define HOLE_NEXT(entry) ((uint32_t) ((entry) >> 32))

static mot_directory_entry *find_entry(const mot_pool *pool, uint64_t i);
static mot_directory_entry *add_block(mot_pool *pool, unsigned block);

/* block k begins at entry (2^k - 1) * MOT_DIRECTORY_FIRST */
static inline unsigned
block_of(uint64_t i, uint64_t *within)
{
	unsigned	block = 63 - (unsigned) __builtin_clzll(i / MOT_DIRECTORY_FIRST + 1);

	*within = i - ((UINT64_C(1) << block) - 1) * MOT_DIRECTORY_FIRST;
	return block;
}

static inline size_t
block_size(unsigned block)
{
	return ((size_t) MOT_DIRECTORY_FIRST << block) * sizeof(mot_directory_entry);
}

static inline _Atomic uint64_t *
page_bits(const mot_region *region, uint32_t page_no)
{
	return region->row_bits + (size_t) page_no * MOT_ROW_WORDS;
}

static inline _Atomic uint64_t *
lot_bits(const mot_region *region, uint32_t lot)
{
	return page_bits(region, region->page_count) + (size_t) (lot - region->page_count) * MOT_LOT_WORDS;
}

static inline _Atomic uint64_t *
row_bits(const mot_region *region, uint32_t page_no)
{
	return mot_is_lot(region, page_no) ? lot_bits(region, page_no) : page_bits(region, page_no);
}

/* which bit is an object's; its page's insert counter on the way */
static inline _Atomic uint64_t *
row_bit(const mot_region *region, const void *object, uint64_t *bit, mot_page **page)
{
	size_t		offset = (size_t) ((const char *) object - region->data);
	uint32_t	page_no = (uint32_t) (offset / MOT_PAGE_SIZE);
	size_t		within = offset & (MOT_PAGE_SIZE - 1);
	_Atomic uint64_t *bits = page_bits(region, page_no);
	uint64_t	shape;
	unsigned	index;

	/* relaxed, both: as in mot_page_of */
	*page = &region->pages[page_no];
	shape = atomic_load_explicit(&(*page)->shape, memory_order_relaxed);
	if (mot_unlikely(MOT_SHAPE_CLASS(shape) == MOT_CLASS_LOTS))
	{
		page_no = region->page_count + (uint32_t) (offset / MOT_LOT_SIZE);
		within = offset & (MOT_LOT_SIZE - 1);
		bits = lot_bits(region, page_no);
		*page = &region->pages[page_no];
		shape = atomic_load_explicit(&(*page)->shape, memory_order_relaxed);
	}
	index = (unsigned) ((within / MOT_SMALL_STEP *
						 region->classes[MOT_SHAPE_CLASS(shape)].reciprocal) >> 32);
	*bit = UINT64_C(1) << index % 64;
	return bits + index / 64;
}

void
mot_row_mark(mot_region *region, void *object)
{
	mot_page   *page;
	uint64_t	bit;
	_Atomic uint64_t *word = row_bit(region, object, &bit, &page);

	/* release: who sees the bit sees the row's header */
	atomic_fetch_or_explicit(word, bit, memory_order_release);

	MOT_STOP_POINT("row-marked");

	/*
	 * After the bit, and release: a scan that read the counter after this saw
	 * the bit, and one that did not see the bit will find the counter changed
	 * when it validates.
	 */
	atomic_fetch_add_explicit(&page->insert_counter, 1, memory_order_release);
}

void
mot_row_unmark(mot_region *region, void *object)
{
	mot_page   *page;
	uint64_t	bit;
	_Atomic uint64_t *word = row_bit(region, object, &bit, &page);

	/* relaxed: the row stays readable for who still sees the bit */
	atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

bool
mot_row_marked(mot_region *region, const void *object)
{
	mot_page   *page;
	uint64_t	bit;
	_Atomic uint64_t *word = row_bit(region, object, &bit, &page);

	/* acquire: as a walk would see it */
	return (atomic_load_explicit(word, memory_order_acquire) & bit) != 0;
}

/* "offset" from the region's base to one from its pages; false: it is none of a page */
static inline bool
offset_of_page(const mot_region *region, uint64_t *offset)
{
	*offset -= (uint64_t) (region->data - (const char *) mot_region_base(region));
	return *offset < (uint64_t) region->chunk_count * MOT_CHUNK_SIZE;
}

/*
 * The first row that begins in "width" bytes at an offset that may be anything:
 * it comes from a number that a user may have made up, or from a hint.  Shape
 * and bit are read from descriptors that are always there.
 *
 * The page can leave the pool after its shape was read and get another one's
 * rows.  Each row's mark is followed by the page's insert counter, which is
 * never reset: if that has not moved, and the page is the pool's still, then
 * so was the bit.  (And the row stays from there on: it was marked when the
 * caller's snapshot was published.)
 */
static void *find_row_in_lot(const mot_pool *pool, uint64_t offset, size_t width);

static inline __attribute__((always_inline))
void *
find_row_in(const mot_pool *pool, uint64_t offset, size_t width, bool lot)
{
	const mot_region *region = pool->region;
	size_t		from = offset & ((lot ? MOT_LOT_SIZE : MOT_PAGE_SIZE) - 1);
	uint32_t	page_no = lot ? region->page_count + (uint32_t) (offset / MOT_LOT_SIZE) :
	(uint32_t) (offset / MOT_PAGE_SIZE);
	const mot_page *page = &region->pages[page_no];

	for (;;)
	{
		/* acquire: read before the shape and the bit are */
		uint32_t	counter = atomic_load_explicit(&page->insert_counter, memory_order_acquire);

		/* acquire: the pool was set before the shape */
		uint64_t	shape = atomic_load_explicit(&page->shape, memory_order_acquire);
		const mot_size_class *sc = &region->classes[MOT_SHAPE_CLASS(shape)];
		size_t		size = MOT_SHAPE_SIZE(shape);
		size_t		index;
		uint64_t	word;

		/* (no pool has a divided page) */
		if (shape == 0 ||
			atomic_load_explicit(&page->pool, memory_order_relaxed) != pool)
			return !lot && MOT_SHAPE_CLASS(shape) == MOT_CLASS_LOTS ?
				find_row_in_lot(pool, offset, width) : NULL;
		MOT_STOP_POINT("row-page-seen");

		/* (a large object's reciprocal makes it the first) */
		index = ((from + size - 1) / MOT_SMALL_STEP * sc->reciprocal) >> 32;
		if (index * size < from || index * size >= from + width)
			return NULL;
		/* acquire: as a walk would see it, and read before what follows */
		word = atomic_load_explicit(&(lot ? lot_bits(region, page_no) :
									  page_bits(region, page_no))[index / 64], memory_order_acquire);
		if (!(word >> index % 64 & 1))
			return NULL;

		MOT_STOP_POINT("row-bit-seen");

		/* acquire: the row is read after this */
		if (mot_likely(atomic_load_explicit(&page->insert_counter, memory_order_acquire) == counter &&
					   atomic_load_explicit(&page->shape, memory_order_acquire) == shape &&
					   atomic_load_explicit(&page->pool, memory_order_acquire) == pool))
			return region->data + (offset - from) + index * size;
	}
}

/* a row that stays is in the same lot, which stays one */
static __attribute__((noinline))
void *
find_row_in_lot(const mot_pool *pool, uint64_t offset, size_t width)
{
	return find_row_in(pool, offset, width, true);
}

void *
mot_row_find_between(const mot_pool *pool, uint64_t offset, size_t width)
{
	if (!offset_of_page(pool->region, &offset))
		return NULL;
	return find_row_in(pool, offset, width, false);
}

void *
mot_row_find(const mot_pool *pool, uint64_t offset)
{
	return mot_row_find_between(pool, offset, 1);
}

void
mot_row_find_ahead(const mot_pool *pool, uint64_t offset)
{
	const mot_region *region = pool->region;

	if (offset_of_page(region, &offset))
	{
		uint32_t	page_no = (uint32_t) (offset / MOT_PAGE_SIZE);

		mot_prefetch(&region->pages[page_no]);
		/* rows of 128 bytes and more have all their bits in the first line */
		mot_prefetch(row_bits(region, page_no));
	}
}

void
mot_row_bits_clear(mot_region *region, uint32_t page_no, unsigned objects)
{
	_Atomic uint64_t *bits = row_bits(region, page_no);

	/* relaxed: the page's next taker orders it by the node lock */
	for (unsigned word = 0; word < (objects + 63) / 64; word++)
		atomic_store_explicit(&bits[word], 0, memory_order_relaxed);
}

/*---- the directory ----*/

uint64_t
mot_pool_directory_size(const mot_pool *pool)
{
	/* acquire: the entries below are there */
	return atomic_load_explicit(&pool->directory_size, memory_order_acquire);
}

uint64_t
mot_pool_joins(const mot_pool *pool)
{
	/* acquire: pairs with mot_directory_join */
	return atomic_load_explicit(&pool->joins, memory_order_acquire);
}

bool
mot_page_joined_after(const mot_page_view *view, uint64_t joins)
{
	/* the difference, as the numbers in entries wrap around */
	return (int32_t) ((uint32_t) (view->tenure >> 32) - (uint32_t) joins) > 0;
}

/* list lock held; false: no memory for the directory */
bool
mot_directory_join(mot_pool *pool, uint32_t page_no)
{
	mot_region *region = pool->region;
	mot_page   *page = &region->pages[page_no];
	mot_directory_entry *entry;
	uint64_t	size;
	uint64_t	joins;

	/* relaxed where we only read what the list lock protects */
	size = atomic_load_explicit(&pool->directory_size, memory_order_relaxed);
	if (pool->hole != 0)
	{
		page->entry = pool->hole - 1;
		entry = find_entry(pool, page->entry);
		pool->hole = HOLE_NEXT(atomic_load_explicit(entry, memory_order_relaxed));
	}
	else
	{
		uint64_t	within;
		unsigned	block = block_of(size, &within);
		mot_directory_entry *entries =
		atomic_load_explicit(&pool->directory[block], memory_order_relaxed);

		if (entries == NULL)
			entries = add_block(pool, block);
		if (entries == NULL)
			return false;
		page->entry = (uint32_t) size;
		entry = &entries[within];
		size++;
	}

	joins = atomic_load_explicit(&pool->joins, memory_order_relaxed) + 1;
	/* release: comes before any row of the page is marked */
	atomic_store_explicit(&pool->joins, joins, memory_order_release);
	/* release: who sees the entry sees the page's shape */
	atomic_store_explicit(entry, ENTRY(joins, page_no), memory_order_release);
	/* release: who sees the size finds the entry's block */
	atomic_store_explicit(&pool->directory_size, size, memory_order_release);
	/* relaxed: a figure */
	atomic_fetch_add_explicit(&region->state->row_pages, 1, memory_order_relaxed);
	return true;
}

/* list lock held */
void
mot_directory_leave(mot_pool *pool, uint32_t page_no)
{
	uint32_t	i = pool->region->pages[page_no].entry;

	/*
	 * release is not needed for the hole itself; that it comes before all
	 * that happens to the page later is the locks' work.
	 */
	atomic_store_explicit(find_entry(pool, i), HOLE(pool->hole), memory_order_relaxed);
	pool->hole = i + 1;
}

void
mot_directory_destroy(mot_pool *pool)
{
	mot_region *region = pool->region;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);

	for (unsigned b = 0; b < MOT_DIRECTORY_BLOCKS; b++)
	{
		/* relaxed: the pool is the caller's alone */
		void	   *entries = atomic_load_explicit(&pool->directory[b], memory_order_relaxed);
		unsigned	class = mot_class_of(region, block_size(b));

		if (entries == NULL)
			break;
		if (class == MOT_CLASS_LARGE)
			mot_pool_put_large(system, entries);
		else
			mot_pool_put(system, class, &entries, 1);
	}
}

static mot_directory_entry *
find_entry(const mot_pool *pool, uint64_t i)
{
	uint64_t	within;
	unsigned	block = block_of(i, &within);

	mot_assert(i < mot_pool_directory_size(pool));
	/* acquire: the block was zeroed before it was hung up here */
	return atomic_load_explicit(&pool->directory[block], memory_order_acquire) + within;
}

static mot_directory_entry *
add_block(mot_pool *pool, unsigned block)
{
	mot_region *region = pool->region;
	mot_pool   *system = mot_pool_slot(region, MOT_SYSTEM_POOL);
	size_t		size = block_size(block);
	unsigned	class = mot_class_of(region, size);
	unsigned	node = mot_topology_node(&region->topology);
	void	   *entries = NULL;

	if (class == MOT_CLASS_LARGE)
		entries = mot_pool_take_large(system, size, node, MOT_FOR_DELETE, NULL);
	else
		(void) mot_pool_take(system, class, node, MOT_FOR_DELETE, &entries, 1, NULL);
	if (entries == NULL)
		return NULL;
	memset(entries, 0, size);
	/* release: for find_entry's acquire */
	atomic_store_explicit(&pool->directory[block], entries, memory_order_release);
	return entries;
}

/*---- walks ----*/

bool
mot_pool_page(const mot_pool *pool, uint64_t i, mot_page_view *view)
{
	const mot_region *region = pool->region;
	mot_directory_entry *entry = find_entry(pool, i);

	/*
	 * acquire: the page's shape as it was set before the page joined, or
	 * later
	 */
	uint64_t	tenure = atomic_load_explicit(entry, memory_order_acquire);
	uint32_t	page_no = ENTRY_LINK(tenure) - 1;
	const mot_page *page;
	uint64_t	shape;

	if (ENTRY_LINK(tenure) == 0)
		return false;
	page = &region->pages[page_no];

	/*
	 * acquire: a shape set in a later tenure brings with it that the entry
	 * has changed, so the second look at the entry tells.
	 */
	shape = atomic_load_explicit(&page->shape, memory_order_acquire);
	/* acquire: read before the bits */
	view->insert_counter = atomic_load_explicit(&page->insert_counter, memory_order_acquire);
	/* relaxed: after the two above */
	if (atomic_load_explicit(entry, memory_order_relaxed) != tenure)
		return false;

	view->page = mot_page_address(region, page_no);
	view->object_size = MOT_SHAPE_SIZE(shape);
	view->objects = mot_page_objects(region, page_no, MOT_SHAPE_CLASS(shape));
	view->next = 0;
	view->page_no = page_no;
	view->index = i;
	view->tenure = tenure;
	view->entry = entry;
	return true;
}

void *
mot_page_next(const mot_pool *pool, mot_page_view *view)
{
	_Atomic uint64_t *bits = row_bits(pool->region, view->page_no);

	while (view->next < view->objects)
	{
		/*
		 * acquire: a marked row's header, and the entry as it was then or
		 * later
		 */
		uint64_t	word = atomic_load_explicit(&bits[view->next / 64], memory_order_acquire);
		unsigned	index;

		word &= UINT64_MAX << view->next % 64;
		if (word == 0)
		{
			view->next = (view->next / 64 + 1) * 64;
			continue;
		}
		/* relaxed: the acquire above keeps it behind the word */
		if (atomic_load_explicit(view->entry, memory_order_relaxed) != view->tenure)
		{
			view->next = view->objects;
			break;
		}
		index = view->next / 64 * 64 + (unsigned) __builtin_ctzll(word);
		view->next = index + 1;
		return (char *) view->page + index * view->object_size;
	}
	return NULL;
}

uint32_t
mot_page_insert_counter(const mot_region *region, uint32_t page_no)
{
	/* acquire: pairs with mot_row_mark */
	return atomic_load_explicit(&region->pages[page_no].insert_counter, memory_order_acquire);
}

uint32_t
mot_object_page(const mot_region *region, const void *object)
{
	uint64_t	shape;

	return (uint32_t) (mot_page_of(region, object, &shape) - region->pages);
}
