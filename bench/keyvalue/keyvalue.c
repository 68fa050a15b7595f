/*-------------------------------------------------------------------------
 *
 * keyvalue.c
 *	  The command line, the threads and what they count:
 *
 *	  keyvalue load PLACE records|pairs N
 *	  keyvalue run PLACE a|b|c|d|e|f|get|set N CLIENTS SECONDS [PIPELINE]
 *
 * PLACE is postgres:DATABASE, reached as libpq's environment says, or
 * redis:SOCKET.  N are the records or pairs as they were loaded.  The letters
 * are YCSB's core workloads: operations, proportions and distributions as in
 * its files, a read-modify-write being a read and then an update, as there;
 * get and set are of keys drawn uniformly, PIPELINE of them a round trip.
 *
 * Each client first works for a tenth of the time, which does not count.  Then
 * it prints operations a second (those of pipelines one by one), how many they
 * were, and the time that half of them, and 99 of 100, did not exceed.  At
 * the end there have to be as many records as were loaded and inserted.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "keyvalue.h"

#define MAX_CLIENTS 1000
#define SEED 20111021

/* of times: 16 steps to the double */
#define STEPS 16
#define BUCKETS (64 * STEPS)

/* what is done, in percent */
typedef struct workload
{
	const char *name;
	kind		what;
	bool		newest;			/* which are read: the newest, or any */
	int			read;
	int			update;
	int			insert;
	int			scan;
	int			modify;
} workload;

static const workload workloads[] = {
	{.name = "a",.read = 50,.update = 50},
	{.name = "b",.read = 95,.update = 5},
	{.name = "c",.read = 100},
	{.name = "d",.read = 95,.insert = 5,.newest = true},
	{.name = "e",.scan = 95,.insert = 5},
	{.name = "f",.read = 50,.modify = 50},
	{.name = "get",.what = PAIRS,.read = 100},
	{.name = "set",.what = PAIRS,.update = 100},
};

typedef enum phase
{
	WARMING,
	COUNTING,
	ENDING
} phase;

typedef struct client
{
	pthread_t	thread;
	generator	g;
	store	   *s;
	_Atomic uint64_t inserting; /* this one or a later one, if it is */
	uint64_t	operations;
	uint64_t	inserted;
	uint64_t	times[BUCKETS];
} client;

static const store_methods *methods;
static const char *place;
static const workload *work;
static uint64_t loaded;
static int	clients;
static int	depth = 1;
static client *all;
static _Atomic uint64_t next_record;
static atomic_int current_phase;
static pthread_barrier_t ready;

void
die(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	fprintf(stderr, "keyvalue: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

static uint64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* ----------------------------------------------------------- operations */

/* Records up to this one have been inserted by whoever was to do it. */
static uint64_t
acknowledged(void)
{
	uint64_t	n = atomic_load(&next_record);

	for (int i = 0; i < clients; i++)
	{
		uint64_t	from = atomic_load(&all[i].inserting);

		if (from < n)
			n = from;
	}
	return n;
}

/* one of the records, as the workload chooses them */
static void
draw_record(client *c, key *k)
{
	record_key(k, work->newest ? latest(&c->g, acknowledged()) : scrambled_zipfian(&c->g, loaded));
}

static void
insert_record(client *c)
{
	value		fields[FIELDS];
	key			k;

	/* before the number is taken, so that nobody sees it as neither */
	atomic_store(&c->inserting, atomic_load(&next_record));
	record_key(&k, atomic_fetch_add(&next_record, 1));
	for (int i = 0; i < FIELDS; i++)
		make_value(&c->g, &fields[i], &k);
	methods->insert(c->s, &k, fields);
	atomic_store(&c->inserting, UINT64_MAX);
	c->inserted++;
}

static void
update_record(client *c, const key *k)
{
	value		v;

	make_value(&c->g, &v, k);
	methods->update(c->s, k, uniform(&c->g, FIELDS), &v);
}

static void
do_record(client *c)
{
	int			percent = uniform(&c->g, 100);
	key			k;

	if ((percent -= work->insert) < 0)
	{
		insert_record(c);
		return;
	}
	draw_record(c, &k);
	if ((percent -= work->read) < 0)
		methods->read(c->s, &k);
	else if ((percent -= work->update) < 0)
		update_record(c, &k);
	else if ((percent -= work->scan) < 0)
		methods->scan(c->s, &k, 1 + uniform(&c->g, MAX_SCAN));
	else
	{
		methods->read(c->s, &k);
		update_record(c, &k);
	}
}

/* each from its own part of all of them, so that they ascend */
static void
do_pairs(client *c)
{
	key			keys[MAX_PIPELINE];
	value		values[MAX_PIPELINE];

	for (int i = 0; i < depth; i++)
	{
		uint64_t	low = loaded * i / depth;

		pair_key(&keys[i], low + uniform(&c->g, loaded * (i + 1) / depth - low));
		if (work->update)
			make_value(&c->g, &values[i], &keys[i]);
	}
	if (work->update)
		methods->set(c->s, depth, keys, values);
	else
		methods->get(c->s, depth, keys);
}

/* -------------------------------------------------------------- threads */

/* times up to 2^(k/16) nanoseconds are in bucket k */
static int
bucket_of(uint64_t time)
{
	int			bits;

	if (time < STEPS)
		return time;
	bits = 63 - __builtin_clzll(time);
	return bits * STEPS + (time >> (bits - 4)) - STEPS;
}

static double
bucket_time(int bucket)
{
	if (bucket < STEPS)
		return bucket;
	return (double) (UINT64_C(1) << (bucket / STEPS)) * (STEPS + bucket % STEPS + 0.5) / STEPS;
}

static void *
run_client(void *argument)
{
	client	   *c = argument;
	uint64_t	before;
	uint64_t	after;

	c->s = methods->open(place);
	pthread_barrier_wait(&ready);
	before = now();
	for (;;)
	{
		phase		p = atomic_load_explicit(&current_phase, memory_order_relaxed);

		if (p == ENDING)
			break;
		if (work->what == RECORDS)
			do_record(c);
		else
			do_pairs(c);
		after = now();
		if (p == COUNTING)
		{
			c->operations += depth;
			c->times[bucket_of(after - before)]++;
		}
		before = after;
	}
	methods->close(c->s);
	return NULL;
}

/* microseconds that this part of all round trips did not exceed */
static double
percentile(double part)
{
	uint64_t	sum[BUCKETS] = {0};
	uint64_t	n = 0;
	uint64_t	so_far = 0;

	for (int i = 0; i < clients; i++)
	{
		for (int b = 0; b < BUCKETS; b++)
		{
			sum[b] += all[i].times[b];
			n += all[i].times[b];
		}
	}
	for (int b = 0; b < BUCKETS; b++)
	{
		so_far += sum[b];
		if (so_far > 0 && so_far >= part * n)
			return bucket_time(b) / 1000;
	}
	return 0;
}

static uint64_t
count_records(void)
{
	store	   *s = methods->open(place);
	uint64_t	n = methods->count(s, work->what);

	methods->close(s);
	return n;
}

static void
run(double seconds)
{
	uint64_t	operations = 0;
	uint64_t	inserted = 0;
	uint64_t	start;
	uint64_t	end;
	uint64_t	found = count_records();

	if (found != loaded)
		die("%" PRIu64 " there, not %" PRIu64, found, loaded);
	atomic_store(&next_record, loaded);
	all = calloc(clients, sizeof(client));
	pthread_barrier_init(&ready, NULL, clients + 1);
	for (int i = 0; i < clients; i++)
	{
		generator_init(&all[i].g, (now() << 10) + i);
		atomic_store(&all[i].inserting, UINT64_MAX);
		if (pthread_create(&all[i].thread, NULL, run_client, &all[i]) != 0)
			die("no more threads");
	}
	pthread_barrier_wait(&ready);
	usleep(seconds * 1e5);
	start = now();
	atomic_store(&current_phase, COUNTING);
	usleep(seconds * 1e6);
	end = now();
	atomic_store(&current_phase, ENDING);
	for (int i = 0; i < clients; i++)
	{
		pthread_join(all[i].thread, NULL);
		operations += all[i].operations;
		inserted += all[i].inserted;
	}
	found = count_records();
	if (found != loaded + inserted)
		die("%" PRIu64 " loaded, %" PRIu64 " inserted, %" PRIu64 " there", loaded, inserted, found);
	printf("rate %.1f\noperations %" PRIu64 "\ninserted %" PRIu64 "\np50 %.1f\np99 %.1f\n",
		   operations / ((end - start) / 1e9), operations, inserted, percentile(0.50), percentile(0.99));
}

/* the same rows for every store */
static void
load(kind what, uint64_t n)
{
	store	   *s = methods->open(place);
	generator	g;
	key			k;
	value		fields[FIELDS];

	generator_init(&g, SEED);
	methods->load_begin(s, what);
	for (uint64_t i = 0; i < n; i++)
	{
		if (what == RECORDS)
			record_key(&k, i);
		else
			pair_key(&k, i);
		for (int j = 0; j < (what == RECORDS ? FIELDS : 1); j++)
			make_value(&g, &fields[j], &k);
		methods->load_row(s, what, &k, fields);
	}
	methods->load_end(s, what);
	if (methods->count(s, what) != n)
		die("not all are there after loading");
	methods->close(s);
}

/* --------------------------------------------------------- command line */

static void
usage(void)
{
	fprintf(stderr, "usage: keyvalue load PLACE records|pairs N\n"
			"       keyvalue run PLACE a|b|c|d|e|f|get|set N CLIENTS SECONDS [PIPELINE]\n");
	exit(2);
}

static void
choose_place(const char *argument)
{
	if (strncmp(argument, "postgres:", 9) == 0)
		methods = &postgres_store;
	else if (strncmp(argument, "redis:", 6) == 0)
		methods = &redis_store;
	else
		usage();
	place = strchr(argument, ':') + 1;
}

int
main(int argc, char **argv)
{
	if (argc < 5)
		usage();
	choose_place(argv[2]);
	loaded = strtoull(argv[4], NULL, 10);
	if (loaded == 0)
		usage();
	if (strcmp(argv[1], "load") == 0 && argc == 5)
	{
		if (strcmp(argv[3], "records") != 0 && strcmp(argv[3], "pairs") != 0)
			usage();
		load(strcmp(argv[3], "records") == 0 ? RECORDS : PAIRS, loaded);
		return 0;
	}
	if (strcmp(argv[1], "run") != 0 || argc < 7 || argc > 8)
		usage();
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
	{
		if (strcmp(argv[3], workloads[i].name) == 0)
			work = &workloads[i];
	}
	clients = atoi(argv[5]);
	if (argc == 8)
		depth = atoi(argv[7]);
	if (work == NULL || clients < 1 || clients > MAX_CLIENTS || atof(argv[6]) <= 0 ||
		depth < 1 || depth > MAX_PIPELINE || (depth > 1 && work->what == RECORDS) || loaded < (uint64_t) depth)
		usage();
	run(atof(argv[6]));
	return 0;
}
