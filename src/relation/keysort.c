/*-------------------------------------------------------------------------
 *
 * keysort.c
 *	  Index entries of rows that are there already, put in order, and the index
 *	  made of them.
 *
 * An entry is bytes, compared as memcmp does, and a value of 48 bits
 * (mot_entry_form).  The server's tuplesort would call a comparison for each
 * pair of them and a copy for each; here the bytes are the order, so they are
 * dealt out by their bytes instead.
 *
 * An item has eight bytes of its entry at hand, the "slice", as a number.  Items
 * are dealt out in place by the first byte in which their slices differ, then
 * each share by the next such byte; small shares are sorted by insertion.  What
 * has the whole slice in common is sorted again, by its next one: that is loaded
 * into the items only then.  Entries of up to sixteen bytes are in their item,
 * the others in blocks of memory beside.  What is in order already, as keys
 * that ascend with the rows are, is found to be so and left alone.
 *
 * When the memory is full the items go, in order, into a temporary file: a
 * run.  In the end the runs are merged.  There are never more runs than there
 * is memory for their buffers; if there would be, they are merged into one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "relation/keysort.h"
#include "storage/buffile.h"
#include "utils/memutils.h"
#include "xact/xact.h"

/* entries this long are in their item */
#define INLINE_BYTES 16

/* shares of so many items are not dealt out any more */
#define SMALL_SHARE 24

/*
 * items or entries between two looks for interrupts; rows between two, and resets of their memory
 */
#define LOOK_EVERY 4096
#define ROWS_BETWEEN_LOOKS 1024

#define BLOCK_SIZE (256 * 1024)
#define RUN_BUFFER (32 * 1024)
#define MIN_RUNS 16

typedef struct KeyItem
{
	uint64		slice;			/* eight of the bytes, as a big-endian number
								 * that ends in zeros */
	uint64		more;			/* if inlined: the other eight; else a pointer
								 * to all bytes */
	uint64		what;			/* value, length and flag */
} KeyItem;

/* of "what": above the value the length, and whether slice and more have changed places */
#define LENGTH_SHIFT 48
#define LENGTH_MASK 0x3fff
#define SWAPPED (UINT64CONST(1) << 62)

#define item_length(item) ((size_t) ((item)->what >> LENGTH_SHIFT) & LENGTH_MASK)
#define item_value(item) ((item)->what & ((UINT64CONST(1) << LENGTH_SHIFT) - 1))
#define item_bytes(item) ((const unsigned char *) (uintptr_t) (item)->more)

StaticAssertDecl(MOT_ENTRY_MAX <= LENGTH_MASK, "an entry's length fits");
StaticAssertDecl(RUN_BUFFER >= MOT_ENTRY_MAX + sizeof(uint64), "so does an entry into a buffer");

/* entries in order, in a file: for each its length and value, and its bytes */
typedef struct Run
{
	BufFile    *file;
	char	   *buffer;			/* while it is read */
	size_t		next;			/* in the buffer */
	size_t		filled;
	mot_sorted_entry entry;		/* the first that has not been taken */
	uint64		slice;
} Run;

typedef struct MotKeySort
{
	mot_session *session;
	mot_index  *index;
	MemoryContext cxt;			/* of the sort */
	MemoryContext block_cxt;	/* of the blocks */
	bool		in_xact;		/* the transaction closes files, else we do */
	Size		budget;
	KeyItem    *items;
	Size		nitems;
	Size		room;
	Size		block_bytes;
	unsigned char *block;		/* what is free of the last one */
	Size		block_left;
	Run		   *runs;
	int			nruns;
	int			max_runs;
	MemoryContextCallback callback;
	bool		(*look) (void *arg);
	void	   *look_arg;
	unsigned	since_look;
} MotKeySort;

typedef mot_status (*TakeEntry) (MotKeySort *sort, const mot_sorted_entry *entry, void *arg);

static void write_run(MotKeySort *sort);
static mot_status merge_runs(MotKeySort *sort, int nruns, TakeEntry take, void *arg);

static inline uint64
load_slice(const unsigned char *bytes, size_t left)
{
	uint64		x = 0;

	if (likely(left >= 8))
		memcpy(&x, bytes, 8);
	else
		memcpy(&x, bytes, left);
	return pg_ntoh64(x);
}

/* the entry of an item; "buffer" has room for one that is inlined */
static inline void
item_entry(const KeyItem *item, unsigned char *buffer, mot_sorted_entry *entry)
{
	entry->len = item_length(item);
	entry->value = item_value(item);
	if (entry->len <= INLINE_BYTES)
	{
		bool		swapped = (item->what & SWAPPED) != 0;
		uint64		first = pg_hton64(swapped ? item->more : item->slice);
		uint64		second = pg_hton64(swapped ? item->slice : item->more);

		memcpy(buffer, &first, 8);
		memcpy(buffer + 8, &second, 8);
		entry->bytes = buffer;
	}
	else
		entry->bytes = item_bytes(item);
}

/* ---------------------------------------------------------------- collecting */

static void
close_runs(void *arg)
{
	MotKeySort *sort = arg;

	for (int i = 0; i < sort->nruns; i++)
		BufFileClose(sort->runs[i].file);
	sort->nruns = 0;
}

static MotKeySort *
begin_sort(mot_session *session, mot_index *index)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT key sort",
											  ALLOCSET_DEFAULT_SIZES);
	MotKeySort *sort = MemoryContextAllocZero(cxt, sizeof(MotKeySort));

	sort->session = session;
	sort->index = index;
	sort->cxt = cxt;
	sort->block_cxt = AllocSetContextCreate(cxt, "MOT long keys", ALLOCSET_DEFAULT_SIZES);
	sort->budget = (Size) maintenance_work_mem * 1024;
	sort->room = 1024;
	sort->items = MemoryContextAlloc(cxt, sort->room * sizeof(KeyItem));
	sort->max_runs = Max(sort->budget / (RUN_BUFFER + BLCKSZ), MIN_RUNS);
	/* (after an error that would be one more: what is buffered is written) */
	sort->in_xact = IsTransactionState();
	if (!sort->in_xact)
	{
		sort->callback.func = close_runs;
		sort->callback.arg = sort;
		MemoryContextRegisterResetCallback(cxt, &sort->callback);
	}
	return sort;
}

/* memory for long entries; all of it goes when a run has been written */
static unsigned char *
reserve_bytes(MotKeySort *sort, size_t len)
{
	unsigned char *result;

	if (sort->block_left < len)
	{
		/* as large as half of all there has been, lest a few keys take much */
		Size		size = Max(MOT_ENTRY_MAX, Min(BLOCK_SIZE, sort->block_bytes));

		sort->block = MemoryContextAlloc(sort->block_cxt, size);
		sort->block_left = size;
		sort->block_bytes += size;
	}
	result = sort->block;
	sort->block += len;
	sort->block_left -= len;
	return result;
}

/* room for one more item: by more memory, or a run */
static void
make_room(MotKeySort *sort)
{
	Size		most = sort->budget > sort->block_bytes ?
	(sort->budget - sort->block_bytes) / sizeof(KeyItem) : 0;

	if (sort->nitems == sort->room && sort->room < most)
	{
		sort->room = Min(2 * sort->room, most);
		sort->items = repalloc_huge(sort->items, sort->room * sizeof(KeyItem));
	}
	else
		write_run(sort);
}

static mot_status
add_entry(MotKeySort *sort, mot_row *row, const void *key, size_t len, unsigned flags)
{
	unsigned char buffer[MOT_ENTRY_MAX];
	mot_sorted_entry entry;
	KeyItem    *item;
	mot_status	status;

	/* none */
	if (len == 0)
		return MOT_OK;
	status = mot_entry_form(sort->session, sort->index, row, key, len, flags, buffer, &entry);
	if (unlikely(status != MOT_OK))
		return status;
	if (unlikely(sort->nitems == sort->room ||
				 (sort->block_bytes + sort->nitems * sizeof(KeyItem) >= sort->budget &&
				  sort->nitems >= 1024)))
		make_room(sort);

	item = &sort->items[sort->nitems];
	item->what = entry.value | (uint64) entry.len << LENGTH_SHIFT;
	item->slice = load_slice(entry.bytes, entry.len);
	if (entry.len > INLINE_BYTES)
	{
		unsigned char *bytes = reserve_bytes(sort, entry.len);

		memcpy(bytes, entry.bytes, entry.len);
		item->more = (uint64) (uintptr_t) bytes;
	}
	else
		item->more = entry.len > 8 ? load_slice((const unsigned char *) entry.bytes + 8, entry.len - 8) : 0;
	sort->nitems++;
	return MOT_OK;
}

/* ------------------------------------------------------------------ sorting */

/* entries that have all bytes before "depth" in common, and whose slices are those there */
static inline int
compare_items(const KeyItem *a, const KeyItem *b, size_t depth)
{
	size_t		alen = item_length(a);
	size_t		blen = item_length(b);
	int			c;

	if (a->slice != b->slice)
		return a->slice < b->slice ? -1 : 1;
	if (alen > depth + 8 && blen > depth + 8)
	{
		bool		ain = alen <= INLINE_BYTES;
		bool		bin = blen <= INLINE_BYTES;

		/* inlined, it goes on only if this is its first slice */
		if (!ain && !bin)
		{
			c = memcmp(item_bytes(a) + depth + 8, item_bytes(b) + depth + 8,
					   Min(alen, blen) - depth - 8);
			if (c != 0)
				return c;
		}
		else
		{
			uint64		amore = ain ? a->more : load_slice(item_bytes(a) + 8, alen - 8);
			uint64		bmore = bin ? b->more : load_slice(item_bytes(b) + 8, blen - 8);

			if (amore != bmore)
				return amore < bmore ? -1 : 1;
		}
	}
	return alen < blen ? -1 : alen > blen;
}

static void
insertion_sort(KeyItem *a, Size n, size_t depth)
{
	for (Size i = 1; i < n; i++)
	{
		KeyItem		item = a[i];
		Size		j = i;

		for (; j > 0 && compare_items(&item, &a[j - 1], depth) < 0; j--)
			a[j] = a[j - 1];
		a[j] = item;
	}
}

/* deal items out, in place, by the byte of their slices at "shift" */
static pg_noinline void
deal_out(KeyItem *a, Size n, int shift)
{
	Size		next[256] = {0};
	Size		end[256];
	Size		sum = 0;

	for (Size i = 0; i < n; i++)
		next[(a[i].slice >> shift) & 255]++;
	for (int b = 0; b < 256; b++)
	{
		Size		count = next[b];

		next[b] = sum;
		sum += count;
		end[b] = sum;
	}
	for (int b = 0; b < 256; b++)
	{
		while (next[b] < end[b])
		{
			KeyItem		item = a[next[b]];
			unsigned	to = (item.slice >> shift) & 255;

			/* follow the circle of those that are in each other's place */
			while (to != (unsigned) b)
			{
				KeyItem		swap = a[next[to]];

				a[next[to]++] = item;
				item = swap;
				to = (item.slice >> shift) & 255;
			}
			a[next[b]++] = item;
		}
	}
}

static int
by_length(const void *a, const void *b)
{
	size_t		alen = item_length((const KeyItem *) a);
	size_t		blen = item_length((const KeyItem *) b);

	return alen < blen ? -1 : alen > blen;
}

/*
 * The slices are all the same: entries that end with them come first, the
 * shorter ones before the longer ones, and the others get their next slice.
 * Returns how many end.
 */
static Size
next_slices(KeyItem *a, Size n, size_t depth)
{
	Size		ended = 0;

	for (Size i = 0; i < n; i++)
	{
		KeyItem		item = a[i];
		size_t		len = item_length(&item);

		if (len <= depth + 8)
		{
			a[i] = a[ended];
			a[ended++] = item;
		}
		else if (len <= INLINE_BYTES)
		{
			/* of an entry of two slices the first is done with */
			Assert(depth == 0);
			a[i].slice = item.more;
			a[i].more = item.slice;
			a[i].what |= SWAPPED;
		}
		else
			a[i].slice = load_slice(item_bytes(&item) + depth + 8, len - depth - 8);
	}
	if (ended > 1)
		qsort(a, ended, sizeof(KeyItem), by_length);
	return ended;
}

/*
 * Recursion is into all shares but the largest, so it is not deep, however
 * long the entries are.
 */
static void
sort_items(KeyItem *a, Size n, size_t depth)
{
	while (n > SMALL_SHARE)
	{
		uint64		differ = 0;
		bool		ordered = true;
		int			shift = 0;
		Size		largest = 0;
		Size		largest_at = 0;

		for (Size i = 1; i < n; i++)
		{
			differ |= a[i].slice ^ a[0].slice;
			ordered &= a[i - 1].slice <= a[i].slice;
		}
		if (differ == 0)
		{
			Size		ended = next_slices(a, n, depth);

			a += ended;
			n -= ended;
			depth += 8;
			continue;
		}
		CHECK_FOR_INTERRUPTS();
		if (!ordered)
		{
			shift = pg_leftmost_one_pos64(differ) / 8 * 8;
			deal_out(a, n, shift);
		}

		/* shares: runs of the same slice as far as they are ordered by it */
		for (Size i = 0, j; i < n; i = j)
		{
			for (j = i + 1; j < n && a[j].slice >> shift == a[i].slice >> shift;)
				j++;
			if (j - i > largest)
			{
				if (largest > 1)
					sort_items(a + largest_at, largest, depth);
				largest = j - i;
				largest_at = i;
			}
			else if (j - i > 1)
				sort_items(a + i, j - i, depth);
		}
		a += largest_at;
		n = largest;
	}
	insertion_sort(a, n, depth);
}

/* --------------------------------------------------------------------- runs */

static BufFile *
new_run(MotKeySort *sort)
{
	if (sort->runs == NULL)
		sort->runs = MemoryContextAllocZero(sort->cxt, (sort->max_runs + 1) * sizeof(Run));
	Assert(sort->nruns <= sort->max_runs);
	sort->runs[sort->nruns].file = BufFileCreateTemp(!sort->in_xact);
	return sort->runs[sort->nruns++].file;
}

static mot_status
write_entry(MotKeySort *sort, const mot_sorted_entry *entry, void *file)
{
	uint64		what = entry->value | (uint64) entry->len << LENGTH_SHIFT;

	BufFileWrite(file, &what, sizeof(what));
	BufFileWrite(file, unconstify(void *, entry->bytes), entry->len);
	return MOT_OK;
}

static void
write_run(MotKeySort *sort)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(sort->cxt);
	BufFile    *file;

	if (sort->nruns == sort->max_runs)
	{
		file = new_run(sort);
		(void) merge_runs(sort, sort->max_runs, write_entry, file);
		while (sort->nruns > 1)
		{
			BufFileClose(sort->runs[sort->nruns - 2].file);
			sort->runs[sort->nruns - 2].file = file;
			sort->nruns--;
		}
	}

	sort_items(sort->items, sort->nitems, 0);
	file = new_run(sort);
	for (Size i = 0; i < sort->nitems; i++)
	{
		unsigned char buffer[INLINE_BYTES];
		mot_sorted_entry entry;

		item_entry(&sort->items[i], buffer, &entry);
		(void) write_entry(sort, &entry, file);
	}
	sort->nitems = 0;
	MemoryContextReset(sort->block_cxt);
	sort->block_bytes = 0;
	sort->block_left = 0;
	MemoryContextSwitchTo(oldcxt);
}

/* ------------------------------------------------------------------ merging */

static void
run_fetch(Run *run)
{
	size_t		rest = run->filled - run->next;

	memmove(run->buffer, run->buffer + run->next, rest);
	run->next = 0;
	run->filled = rest + BufFileRead(run->file, run->buffer + rest, RUN_BUFFER - rest);
}

/* false: that was all */
static bool
run_next(Run *run)
{
	uint64		what;

	if (run->filled - run->next < sizeof(what))
	{
		run_fetch(run);
		if (run->filled == 0)
			return false;
		if (run->filled < sizeof(what))
			elog(ERROR, "a temporary file of index entries ends too early");
	}
	memcpy(&what, run->buffer + run->next, sizeof(what));
	run->entry.len = (what >> LENGTH_SHIFT) & LENGTH_MASK;
	run->entry.value = what & ((UINT64CONST(1) << LENGTH_SHIFT) - 1);
	if (run->filled - run->next < sizeof(what) + run->entry.len)
	{
		run_fetch(run);
		if (run->filled < sizeof(what) + run->entry.len)
			elog(ERROR, "a temporary file of index entries ends too early");
	}
	run->entry.bytes = run->buffer + run->next + sizeof(what);
	run->slice = load_slice(run->entry.bytes, run->entry.len);
	run->next += sizeof(what) + run->entry.len;
	return true;
}

/* (the server's heaps have the greatest at the top) */
static int
by_entry(Datum a, Datum b, void *arg)
{
	const Run  *x = (const Run *) DatumGetPointer(a);
	const Run  *y = (const Run *) DatumGetPointer(b);
	int			c;

	if (x->slice != y->slice)
		return x->slice < y->slice ? 1 : -1;
	c = memcmp(x->entry.bytes, y->entry.bytes, Min(x->entry.len, y->entry.len));
	if (c == 0)
		c = x->entry.len < y->entry.len ? -1 : x->entry.len > y->entry.len;
	return c < 0 ? 1 : c > 0 ? -1 : 0;
}

/* true: stop */
static inline bool
time_to_stop(MotKeySort *sort)
{
	return ++sort->since_look % LOOK_EVERY == 0 && sort->look != NULL && sort->look(sort->look_arg);
}

/* give all entries of so many runs, in order, to "take", as long as it says MOT_OK */
static mot_status
merge_runs(MotKeySort *sort, int nruns, TakeEntry take, void *arg)
{
	binaryheap *heap = binaryheap_allocate(nruns, by_entry, NULL);
	mot_status	status = MOT_OK;

	for (int i = 0; i < nruns; i++)
	{
		Run		   *run = &sort->runs[i];

		if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not rewind a temporary file of index entries")));
		run->buffer = palloc(RUN_BUFFER);
		run->next = run->filled = 0;
		if (run_next(run))
			binaryheap_add_unordered(heap, PointerGetDatum(run));
	}
	binaryheap_build(heap);
	while (!binaryheap_empty(heap) && status == MOT_OK)
	{
		Run		   *run = (Run *) DatumGetPointer(binaryheap_first(heap));

		status = time_to_stop(sort) ? MOT_NOT_FOUND : take(sort, &run->entry, arg);
		if (run_next(run))
			binaryheap_replace_first(heap, PointerGetDatum(run));
		else
			(void) binaryheap_remove_first(heap);
	}
	for (int i = 0; i < nruns; i++)
		pfree(sort->runs[i].buffer);
	binaryheap_free(heap);
	return status;
}

/* ----------------------------------------------------------------- the index */

typedef struct Filler
{
	mot_fill   *fill;
	mot_row   **other;
	mot_row   **another;
	const MotKey *compared;		/* by a collation that is not trusted, or NULL */
	MotKeyBuffer last;			/* then the key before */
} Filler;

static mot_status
fill_entry(MotKeySort *sort, const mot_sorted_entry *entry, void *arg)
{
	Filler	   *filler = arg;
	mot_status	status;

	if (unlikely(filler->compared != NULL))
	{
		/*
		 * (what tells rows apart stands behind the keys, and nobody asks for
		 * it)
		 */
		if (filler->last.len > 0 && !mot_index_disordered(sort->index) &&
			!MotKeyInOrder(filler->compared, filler->last.data, filler->last.len, entry->bytes, entry->len))
			mot_index_set_disordered(sort->index);
		MotKeyBufferSet(&filler->last, entry->bytes, entry->len);
	}
	status = mot_fill_add(filler->fill, entry, filler->other);

	if (unlikely(status == MOT_DUPLICATE))
		*filler->another = mot_entry_row(entry->value);
	return status;
}

static mot_status
fill_index(MotKeySort *sort, bool full, const MotKey *compared, mot_row **other, mot_row **another)
{
	Filler		filler = {NULL, other, another, compared};
	mot_status	status;

	if (sort->nruns > 0)
	{
		if (sort->nitems > 0)
			write_run(sort);
		/* the buffers take its place */
		pfree(sort->items);
		sort->items = NULL;
		sort->room = 0;
	}
	else
		sort_items(sort->items, sort->nitems, 0);

	MotKeyBufferInit(&filler.last, sort->cxt);
	filler.fill = palloc(mot_fill_size());
	status = mot_fill_begin(sort->session, filler.fill, sort->index, full);
	if (status == MOT_OK && sort->nruns > 0)
		status = merge_runs(sort, sort->nruns, fill_entry, &filler);
	for (Size i = 0; i < sort->nitems && status == MOT_OK; i++)
	{
		unsigned char buffer[INLINE_BYTES];
		mot_sorted_entry entry;

		item_entry(&sort->items[i], buffer, &entry);
		status = time_to_stop(sort) ? MOT_NOT_FOUND : fill_entry(sort, &entry, &filler);
	}
	if (status == MOT_OK)
		status = mot_fill_end(filler.fill);
	pfree(filler.fill);
	return status;
}

mot_status
MotKeySortRows(mot_build *rows, mot_index *index, bool full, const MotKey *by, MotKeyOfVersion key_of, void *key_arg,
			   bool (*look) (void *arg), void *arg, mot_row **other, mot_row **another)
{
	MotKeySort *sort = begin_sort(MotSession(), index);
	MemoryContext row_cxt = AllocSetContextCreate(sort->cxt, "MOT index build row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(row_cxt);
	MotKeyBuffer key;
	mot_row    *row;
	const mot_version *version;
	mot_status	status = MOT_OK;
	uint64		n = 0;

	MotKeyBufferInit(&key, sort->cxt);
	while (status == MOT_OK && mot_build_next(rows, &row, &version))
	{
		unsigned	flags;

		MotKeyBufferReset(&key);
		flags = key_of(key_arg, version, &key);
		status = add_entry(sort, row, key.data, key.len, flags);
		if (++n % ROWS_BETWEEN_LOOKS == 0)
		{
			MemoryContextReset(row_cxt);
			if (look(arg))
				status = MOT_NOT_FOUND;
		}
	}
	MemoryContextSwitchTo(sort->cxt);
	sort->look = look;			/* (not before: runs that are merged on the
								 * way are merged to the end) */
	sort->look_arg = arg;
	if (status == MOT_OK)
		status = fill_index(sort, full, by->compared ? by : NULL, other, another);
	if (sort->in_xact)
		close_runs(sort);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(sort->cxt);
	return status;
}

bool
MotKeySortInterrupts(void *arg)
{
	CHECK_FOR_INTERRUPTS();
	return false;
}
