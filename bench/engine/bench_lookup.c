/*-------------------------------------------------------------------------
 *
 * bench_lookup.c
 *	  What a look-up by key costs beyond its instructions: among few rows,
 *	  which the processor's caches hold, and among many, with small pages and
 *	  with huge ones.
 *
 *	  bench_lookup [rows [keys a figure]]
 *
 * Rows are of 100 bytes, by a key of 4 bytes.  "apart" is look-ups that do not
 * depend on one another, so that the processor runs ahead into the next one;
 * "after" is a look-up whose key depends on the row before, so that it cannot.
 * "between": as apart, with as much memory touched in between as a statement
 * of the server does.  "ahead": as between, but what it needs is asked for before.
 * The best of several rounds is told, in nanoseconds of processor time; small and
 * huge pages take turns.
 *
 * For counting instructions and lines (callgrind), "bench_lookup ROWS KEYS
 * KIND" runs one of the four once, with small pages.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

#define ROW_BYTES 100
#define ROUNDS 7
#define BETWEEN_BYTES (48 * 1024)
#define BETWEEN_LINES 40

typedef enum kind
{
	APART, AFTER, BETWEEN, AHEAD, KINDS
} kind;

static const char *const kind_name[] = {"apart", "after", "between", "ahead"};

typedef struct store
{
	mot_engine *engine;
	mot_session *session;
	mot_table  *table;
	mot_index_handle by_key;
	uint64_t	rows;
} store;

static uint64_t keys = 400000;
static uint8_t *between;

static double
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static void
die(const char *what)
{
	fprintf(stderr, "bench_lookup: %s\n", what);
	exit(1);
}

static inline void
put_key(uint8_t *key, uint32_t n)
{
	n = __builtin_bswap32(n ^ 0x80000000u);
	memcpy(key, &n, sizeof(n));
}

static bool
has_key(void *arg, const mot_version *version, const void *key, size_t len)
{
	(void) arg;
	(void) len;
	return memcmp(mot_version_data(version), key, 4) == 0;
}

static bool
load(store *s, uint64_t rows, unsigned flags)
{
	char		err[200];
	mot_row    *row,
			   *other;
	void	   *data;
	uint8_t		key[4];

	s->rows = rows;
	s->engine = mot_engine_create((size_t) rows * 250 + ((size_t) 64 << 20), 8, flags, err, sizeof(err));
	if (s->engine == NULL)
		return false;
	if (mot_session_open(s->engine, 0, &s->session) != MOT_OK ||
		mot_table_create(s->session, 1, 1, &s->table) != MOT_OK ||
		mot_index_create(s->session, s->table, 2, MOT_INDEX_UNIQUE, &s->by_key.index) != MOT_OK)
		die("no table");
	mot_index_attach(s->by_key.index);
	s->by_key.matches = has_key;
	s->by_key.exact = true;
	(void) mot_snapshot_take(s->session);
	for (uint64_t i = 0; i < rows; i++)
	{
		put_key(key, (uint32_t) i);
		if (mot_load_row(s->session, s->table, 0, ROW_BYTES, &row, &data) != MOT_OK)
			die("no row");
		memset(data, 1, ROW_BYTES);
		memcpy(data, key, sizeof(key));
		if (mot_load_key(s->session, &s->by_key, row, key, 4, 0, &other) != MOT_OK)
			die("no key");
	}
	mot_snapshot_hold(s->session, MOT_TS_NONE);
	return true;
}

/* some of what a statement touches; each line depends on the one before */
static inline void
work(uint64_t *sum, uint64_t random, int from, int until)
{
	for (int line = from; line < until; line++)
		*sum += between[(*sum * 64 + (unsigned) line * 1216 + (random >> 40)) % BETWEEN_BYTES]++;
}

/* the sum is used, so that nothing is left out */
static double
measure(store *s, kind what, uint64_t *sum)
{
	uint64_t	random = 42;
	double		start;
	mot_view	view;

	view.snapshot = mot_snapshot_take(s->session);
	view.command = 1;
	start = cpu_ns();
	for (uint64_t i = 0; i < keys; i++)
	{
		mot_row    *row;
		const mot_version *version;
		uint8_t		key[4];

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (what == AFTER)
			random += *sum & 1;
		put_key(key, (uint32_t) (((random >> 32) * s->rows) >> 32));
		if (what == AHEAD)
		{
			mot_index_ahead(&s->by_key, key, 4);
			work(sum, random, 0, BETWEEN_LINES / 3);
			mot_index_ahead_more(&s->by_key, key, 4);
			work(sum, random, BETWEEN_LINES / 3, BETWEEN_LINES);
		}
		else if (what == BETWEEN)
			work(sum, random, 0, BETWEEN_LINES);
		if (mot_index_get(s->session, &view, &s->by_key, key, 4, &row, &version) != MOT_OK)
			die("not found");
		*sum += ((const uint32_t *) mot_version_data(version))[2];
	}
	start = cpu_ns() - start;
	mot_snapshot_hold(s->session, MOT_TS_NONE);
	return start / (double) keys;
}

static void
compare(uint64_t rows, uint64_t *sum)
{
	store		small,
				huge;
	bool		has_huge;
	double		best[2][KINDS];

	if (!load(&small, rows, 0))
		die("no memory");
	has_huge = load(&huge, rows, MOT_ENGINE_HUGE_ON);
	for (int round = 0; round < ROUNDS; round++)
		for (kind what = APART; what < KINDS; what++)
			for (int h = 0; h <= has_huge; h++)
			{
				double		ns = measure(h ? &huge : &small, what, sum);

				if (round == 0 || ns < best[h][what])
					best[h][what] = ns;
			}
	printf("%llu rows\n", (unsigned long long) rows);
	for (kind what = APART; what < KINDS; what++)
	{
		printf("  %-8s small pages %7.1f ns", kind_name[what], best[0][what]);
		if (has_huge)
			printf("   huge pages %7.1f ns", best[1][what]);
		printf("\n");
	}
	if (!has_huge)
		printf("  (no huge pages: vm.nr_hugepages)\n");
	mot_session_close(small.session);
	mot_engine_destroy(small.engine);
	if (has_huge)
	{
		mot_session_close(huge.session);
		mot_engine_destroy(huge.engine);
	}
}

int
main(int argc, char **argv)
{
	uint64_t	rows = 2000000;
	uint64_t	sum = 0;

	if (argc > 1)
		rows = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		keys = strtoull(argv[2], NULL, 0);
	between = calloc(1, BETWEEN_BYTES);
	if (between == NULL || rows < 1000)
		die("usage: bench_lookup [rows [keys a figure [kind]]]");
	if (argc > 3)
	{
		store		small;

		if (!load(&small, rows, 0))
			die("no memory");
		for (kind what = APART; what < KINDS; what++)
			if (strcmp(argv[3], kind_name[what]) == 0)
				printf("%.1f ns\n", measure(&small, what, &sum));
	}
	else
	{
		compare(1000, &sum);
		compare(rows, &sum);
	}
	return sum == 1;			/* never */
}
