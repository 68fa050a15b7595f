/*-------------------------------------------------------------------------
 *
 * bench_txn.c
 *	  Transactions in the engine alone: 10 reads and 2 read-modify-writes over
 *	  a million rows of 100 bytes by an 8-byte key, with one thread and with
 *	  two, at SERIALIZABLE (Silo's validation) and READ COMMITTED; read-only
 *	  transactions; bytes per row and per index entry; and how many writes to
 *	  shared cache lines a transaction makes.
 *
 *	  bench_txn [rows [seconds a figure [choice]]]
 *
 * Keys are drawn in three ways: "uniform"; "zipf" (0.99), where the n-th most
 * popular row has key n, which is how ccbench draws them and so what the aims
 * for Zipf compare with; and "zipf apart", the same popularity spread over
 * the whole table as YCSB's scrambled generator does, so that popular rows
 * share neither index nodes nor cache lines.  All keys are drawn before the
 * clock starts.  An aborted transaction is tried again with the same keys.
 *
 * The aims are ccbench's Silo (one version a row, no snapshots) on this class
 * of machine.  A choice runs only the figures whose name contains it, such as
 * "serializable uniform 1".
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

#define ROW_BYTES 100
#define READS 10
#define WRITES 2
#define MAX_THREADS 2

static mot_engine *engine;
static mot_table *table;
static mot_index_handle by_key;
static uint64_t rows = 1000000;
static double seconds = 2;
static const char *choice = "";
static atomic_bool stop;
static pthread_barrier_t ready;

typedef enum pattern
{
	UNIFORM,
	ZIPF,
	ZIPF_APART
} pattern;

static const char *const pattern_name[] = {"uniform", "zipf", "zipf apart"};

/* M/s of SERIALIZABLE transactions, by pattern and threads; 0: none */
static const double aim[][MAX_THREADS] = {{0.20, 0.40}, {0.39, 0.67}, {0, 0}};

typedef struct work
{
	pthread_t	thread;
	unsigned	slot;
	pattern		keys;
	bool		read_only;
	mot_isolation level;
	uint64_t	commits;
	uint64_t	aborts;
	uint64_t	shared_writes;
	double		cpu;			/* seconds of processor time */
	uint32_t   *picks;			/* rows to touch, drawn beforehand */
	uint32_t	next_pick;
} work;

#define PICKS (1u << 20)

static double zipf_zetan,
			zipf_eta,
			zipf_alpha,
			zipf_half;

/* Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994 */
static void
zipf_init(double theta)
{
	double		zeta2 = 1 + pow(0.5, theta);

	for (uint64_t i = 1; i <= rows; i++)
		zipf_zetan += pow(1.0 / (double) i, theta);
	zipf_alpha = 1 / (1 - theta);
	zipf_eta = (1 - pow(2.0 / (double) rows, 1 - theta)) / (1 - zeta2 / zipf_zetan);
	zipf_half = 1 + pow(0.5, theta);
}

static inline uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state +=UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t
pick(const work *w, uint64_t *random)
{
	double		u,
				uz;
	uint64_t	rank;

	if (w->keys == UNIFORM)
		return next_random(random) % rows;
	u = (double) (next_random(random) >> 11) / 9007199254740992.0;
	uz = u * zipf_zetan;
	if (uz < 1)
		rank = 0;
	else if (uz < zipf_half)
		rank = 1;
	else
		rank = (uint64_t) ((double) rows * pow(zipf_eta * u - zipf_eta + 1, zipf_alpha));
	if (w->keys == ZIPF)
		return rank % rows;
	return (rank * UINT64_C(0x9e3779b97f4a7c15)) % rows;
}

static inline uint64_t
next_pick(work *w)
{
	return w->picks[w->next_pick++ % PICKS];
}

/*
 * Big-endian, in one store: eight stores of a byte cannot be forwarded to the
 * index's load of eight, which would wait for everything before them.
 */
static inline void
put_key(uint8_t *key, uint64_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	n = __builtin_bswap64(n);
#endif
	memcpy(key, &n, sizeof(n));
}

static bool
transaction (mot_session *s, work *w)
{
	mot_view	view;
	uint8_t		key[8];
	mot_row    *row;
	const mot_version *version,
			   *newest;
	uint64_t	sum = 0;
	mot_status	status = MOT_OK;

	view.snapshot = mot_snapshot_take(s);
	view.command = 1;
	mot_txn_begin(s, w->level, view.snapshot, w->slot);
	for (int i = 0; i < READS; i++)
	{
		put_key(key, next_pick(w));
		if (mot_index_get(s, &view, &by_key, key, 8, &row, &version) == MOT_OK)
			sum += *(const uint64_t *) mot_version_data(version);
	}
	for (int i = 0; !w->read_only && i < WRITES && status == MOT_OK; i++)
	{
		void	   *data;

		put_key(key, next_pick(w));
		if (mot_index_get(s, &view, &by_key, key, 8, &row, &version) != MOT_OK)
			abort();
		status = mot_row_lock(s, &view, table, row, version, MOT_MODE_CHANGE, &newest);
		if (status == MOT_SELF_CHANGED)
		{
			status = MOT_OK;
			continue;
		}
		if (status == MOT_CHANGED)
			status = MOT_OK;
		if (status == MOT_OK)
			status = mot_row_update(s, table, row, 1, 0, ROW_BYTES, false, &data);
		if (status == MOT_OK)
		{
			memcpy(data, mot_version_data(newest), ROW_BYTES);
			*(uint64_t *) data += sum + 1;
		}
	}
	if (status == MOT_OK)
		status = mot_txn_prepare(s);
	if (status == MOT_OK)
		(void) mot_txn_commit(s);
	else
		mot_txn_abort(s);
	mot_snapshot_hold(s, MOT_TS_NONE);
	return status == MOT_OK;
}

/* of this thread: the machine may be doing other things, too */
static double
processor_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static double
wall_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static void *
run(void *arg)
{
	work	   *w = arg;
	uint64_t	random = 42 + w->slot;
	mot_session *s;

	if (mot_session_open(engine, w->slot, &s) != MOT_OK)
		abort();
	w->picks = malloc(PICKS * sizeof(*w->picks));
	if (w->picks == NULL)
		abort();
	for (uint32_t i = 0; i < PICKS; i++)
		w->picks[i] = (uint32_t) pick(w, &random);
	pthread_barrier_wait(&ready);
	w->cpu = processor_time();
#ifdef MOT_COUNT_SHARED
	mot_shared_writes = 0;
#endif
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
	{
		uint32_t	first = w->next_pick;

		if (transaction (s, w))
			w->commits++;
		else
		{
			w->aborts++;
			w->next_pick = first;
		}
	}
#ifdef MOT_COUNT_SHARED
	w->shared_writes = mot_shared_writes;
#endif
	w->cpu = processor_time() - w->cpu;
	free(w->picks);
	mot_session_close(s);
	return NULL;
}

static void
measure(const char *name, mot_isolation level, pattern keys, bool read_only, unsigned threads)
{
	work		w[MAX_THREADS];
	char		title[80];
	uint64_t	commits = 0,
				aborts = 0;
	double		rate = 0,
				cpu = 0,
				wall;

	snprintf(title, sizeof(title), "%s %s %u", name, pattern_name[keys], threads);
	if (strstr(title, choice) == NULL)
		return;
	memset(w, 0, sizeof(w));
	atomic_store(&stop, false);
	pthread_barrier_init(&ready, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++)
	{
		w[i].slot = i + 1;
		w[i].keys = keys;
		w[i].level = level;
		w[i].read_only = read_only;
		pthread_create(&w[i].thread, NULL, run, &w[i]);
	}
	pthread_barrier_wait(&ready);
	wall = wall_time();
	usleep((useconds_t) (seconds * 1e6));
	atomic_store(&stop, true);
	wall = wall_time() - wall;
	for (unsigned i = 0; i < threads; i++)
	{
		pthread_join(w[i].thread, NULL);
		commits += w[i].commits;
		aborts += w[i].aborts;
		rate += (double) w[i].commits / w[i].cpu;
		cpu += w[i].cpu;
	}
	pthread_barrier_destroy(&ready);
	printf("%-13s %-10s %u thread%s  %.3f M/s (%.3f wall)  %5.0f ns each  aborts %5.2f %%", name, pattern_name[keys],
		   threads, threads == 1 ? " " : "s", rate / 1e6, (double) commits / wall / 1e6,
		   cpu * 1e9 / (double) (commits + 1),
		   100.0 * (double) aborts / (double) (commits + aborts + 1));
#ifdef MOT_COUNT_SHARED
	printf("  shared-line writes %.2f",
		   (double) (w[0].shared_writes) / (double) (w[0].commits + w[0].aborts + 1));
#endif
	if (level == MOT_SERIALIZABLE && !read_only && aim[keys][threads - 1] > 0)
		printf("  aim %.2f: %s", aim[keys][threads - 1],
			   rate / 1e6 >= aim[keys][threads - 1] ? "reached" : "missed");
	printf("\n");
	fflush(stdout);
}

static void
load(void)
{
	mot_session *s;
	mot_table_stat ts;
	mot_index_stat is;
	mot_row    *row,
			   *other;
	void	   *data;
	uint8_t		key[8];

	if (mot_session_open(engine, 0, &s) != MOT_OK ||
		mot_table_create(s, 1, 1, &table) != MOT_OK ||
		mot_index_create(s, table, 2, MOT_INDEX_UNIQUE, &by_key.index) != MOT_OK)
		abort();
	mot_index_attach(by_key.index);
	(void) mot_snapshot_take(s);
	for (uint64_t i = 0; i < rows; i++)
	{
		put_key(key, i);
		if (mot_load_row(s, table, 0, ROW_BYTES, &row, &data) != MOT_OK)
			abort();
		memset(data, 0, ROW_BYTES);
		if (mot_load_key(s, &by_key, row, key, 8, 0, &other) != MOT_OK)
			abort();
	}
	mot_snapshot_hold(s, MOT_TS_NONE);
	mot_table_stats(table, &ts);
	mot_index_stats(by_key.index, &is);
	printf("%llu rows of %d bytes: %.1f bytes a row, %.1f bytes an index entry\n",
		   (unsigned long long) rows, ROW_BYTES,
		   (double) ts.row_bytes / (double) rows, (double) is.bytes / (double) rows);
	mot_session_close(s);
}

int
main(int argc, char **argv)
{
	char		err[200];

	if (argc > 1)
		rows = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		seconds = atof(argv[2]);
	if (argc > 3)
		choice = argv[3];
	engine = mot_engine_create((size_t) 4 << 30, 8, MOT_ENGINE_PRIVATE, err, sizeof(err));
	if (engine == NULL)
	{
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	load();
	zipf_init(0.99);
	printf("%d reads + %d read-modify-writes a transaction, or %d reads; M/s: million commits in a second\n"
		   "of processor time of each thread, against which the aims (ccbench's Silo) are held\n",
		   READS, WRITES, READS);
	for (int keys = UNIFORM; keys <= ZIPF_APART; keys++)
		for (unsigned threads = 1; threads <= MAX_THREADS; threads++)
		{
			measure("serializable", MOT_SERIALIZABLE, (pattern) keys, false, threads);
			measure("committed", MOT_READ_COMMITTED, (pattern) keys, false, threads);
			measure("read-only", MOT_SERIALIZABLE, (pattern) keys, true, threads);
		}
	return 0;
}
