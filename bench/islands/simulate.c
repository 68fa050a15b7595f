/*-------------------------------------------------------------------------
 *
 * simulate.c
 *	  The paper's figures of adaptation, on a machine that is not here.
 *
 * bench/islands/simulate TRACES SCENARIO prints what happens as JSON.  Traces
 * are of real runs (record).  Three machines of eight islands replay the same
 * transactions:
 *
 *	naive	  rows are anywhere and sessions, too: nothing is placed
 *	static	  each table is cut into eight equal ranges, one an island, for good;
 *			  a transaction runs on the island of its first row
 *	adaptive  begins like that; src/islands counts, and decides at the end of its
 *			  intervals where ranges go, with the same code as in the server
 *
 * A transaction takes its island's processors some time for itself and for each
 * row, and more for each line that comes from another island.  Clients are many, and
 * wait for no pause: what is done in a second is what the busiest island lets be
 * done.  Rearranging stops all work for as long as it took in the paper (200 ms for
 * 80 actions).
 *
 * Beside it lines that several islands write are followed: how often a
 * transaction writes one that another island has written last, by what it is.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "islands.h"

/*
 * The machine: 8 sockets of 10 cores, the paper's.  Their links make a twisted cube,
 * in which no two are more than two links apart.  What a line takes that another
 * core has changed, by how far that is, in cycles of 2.13 GHz, is as measured on such
 * a machine (8 Xeon E7-8867L) by David, Guerraoui and Trigonakis, "Everything
 * you always wanted to know about synchronization but were afraid to ask", SOSP
 * 2013, table 2: 109 within a socket, 289 over one link, 400 over two.
 */
#define ISLANDS 8
#define CORES 10
#define GHZ 2.13
static const double line_ns[3] = {109 / GHZ, 289 / GHZ, 400 / GHZ};

/*
 * The engine without a server, as bench-engine has it within a factor of two:
 * begin and commit, a row read, a row changed; lines of each that matter (border node,
 * row, version; head, version, and those again for installing it).
 */
#define TRANSACTION_NS 1000.0
#define READ_NS 300.0
#define CHANGE_NS (ISL_WORK_CHANGE * READ_NS)
#define READ_LINES 3
#define CHANGE_LINES 6

#define ACTION_SECONDS (0.2 / 80)
#define TICK 0.25				/* seconds */
#define SAMPLE 8000			/* transactions that stand for a tick's */
#define SESSIONS (ISLANDS * CORES)
#define ALIKE ISL_EVERY			/* a session does as many more of each that it
								 * counts or leaves out: far fewer than in truth */
#define BACK 0.95				/* of where a phase ends: throughput is back */

#define MAX_TICKS 1000
#define MAX_TABLES 16
#define MAX_ROWS 24
#define BLOCKS 8				/* a trace of few warehouses stands for so many
								 * times as many */

typedef struct transaction
{
	unsigned	rows;
	struct
	{
		uint8_t		table;
		bool		change;
		uint16_t	at;
	}			row[MAX_ROWS];
} transaction;

typedef struct workload
{
	bool		blocks;
	unsigned	n;
	transaction *all;
} workload;

typedef enum kind
{
	NAIVE, STATIC, ADAPTIVE, KINDS
} kind;

static const char *const kind_name[KINDS] = {"naive", "static", "adaptive"};

/* lines that are written, by what they are */
typedef enum line
{
	LINE_CLOCK, LINE_LOGGED, LINE_STATISTICS, LINE_ROW, LINES
} line;

static const char *const line_name[LINES] = {"clock", "durability", "statistics", "rows"};

/*
 * A table's counters are in 16 lines (TABLE_SHARDS), of which each node has its
 * own (mot_session_settle); naive: as they would be by session.
 */
#define STATISTICS_SHARDS 16

typedef struct system
{
	kind		kind;
	isl_machine machine;
	isl_scheme	scheme;
	isl_counts	counts[SESSIONS];
	int			left_out[SESSIONS]; /* still to be */
	isl_interval interval;
	double		interval_began;
	double		done;			/* transactions in it */
	double		pause;			/* seconds to come in which nothing is done */
	uint64_t	generation;
	uint64_t	random;
	unsigned	decisions;
	struct
	{
		double		at;
		unsigned	actions;
		unsigned	moves;
	}			decision[100];
	double		throughput[MAX_TICKS];

	/* who wrote last, and how often that was somebody else */
	uint8_t		clock;
	uint8_t		logged;			/* commits that are not durable yet: up, and
								 * down some time later */
	uint8_t		statistics[MAX_TABLES][STATISTICS_SHARDS];
	uint8_t		row[MAX_TABLES][65536];
	uint64_t	taken[LINES];
	uint64_t	transactions;
} system_;

typedef struct phase
{
	double		at;
	const char *what;
	workload   *load;
	bool		skewed;
	int			lost;			/* an island that is gone, or -1 */
} phase;

/* of all traces; "common": all transactions use all of it */
static unsigned tables;
static char table_name[MAX_TABLES][32];
static bool common[MAX_TABLES];

static workload mix,
			update,
			destination,
			tpcc;
static isl_load counted;
static isl_scheme next;
static isl_decision decision;

static uint64_t
draw(uint64_t *state)
{
	uint64_t	z = (*state +=UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* ----------------------------------------------------------------- traces */

static unsigned
table_number(const char *name)
{
	for (unsigned t = 0; t < tables; t++)
		if (strcmp(table_name[t], name) == 0)
			return t;
	if (tables == MAX_TABLES)
		exit(1);
	snprintf(table_name[tables], sizeof(table_name[0]), "%s", name);
	common[tables] = strcmp(name, "item") == 0;
	return tables++;
}

static void
read_load(workload *load, const char *directory, const char *name)
{
	static char buffer[65536];
	char		command[1024];
	FILE	   *file;
	unsigned	room = 0;
	unsigned	number[MAX_TABLES];
	unsigned	numbers = 0;

	snprintf(command, sizeof(command), "gzip -cd '%s/%s.gz'", directory, name);
	if ((file = popen(command, "r")) == NULL || fgets(buffer, sizeof(buffer), file) == NULL)
	{
		fprintf(stderr, "simulate: no trace %s\n", name);
		exit(1);
	}
	(void) strtok(buffer, " \n");
	for (const char *table; (table = strtok(NULL, " \n")) != NULL && numbers < MAX_TABLES;)
		number[numbers++] = table_number(table);
	load->blocks = strcmp(name, "tpcc") == 0;
	while (fgets(buffer, sizeof(buffer), file) != NULL)
	{
		transaction *t;

		if (load->n == room)
		{
			room = room ? 2 * room : 1024;
			load->all = realloc(load->all, room * sizeof(transaction));
			if (load->all == NULL)
				exit(1);
		}
		t = &load->all[load->n];
		t->rows = 0;
		for (char *item = strtok(buffer, " \n"); item != NULL && t->rows < MAX_ROWS; item = strtok(NULL, " \n"))
		{
			unsigned	table;
			unsigned	at;
			char		what;

			if (sscanf(item, "%u.%4x%c", &table, &at, &what) != 3 || table >= numbers)
				continue;
			t->row[t->rows].table = (uint8_t) number[table];
			t->row[t->rows].at = (uint16_t) at;
			t->row[t->rows].change = what == 'C';
			t->rows++;
		}
		load->n += t->rows > 0;
	}
	if (pclose(file) != 0 || load->n == 0)
		exit(1);
}

/* ---------------------------------------------------------------- machine */

static unsigned hops[ISLANDS][ISLANDS];

/* a cube in which two edges of one face are crossed */
static void
make_cube(void)
{
	for (unsigned a = 0; a < ISLANDS; a++)
		for (unsigned b = 0; b < ISLANDS; b++)
		{
			unsigned	d = a ^ b;
			bool		edge = d == 1 || d == 2 || d == 4;

			if ((a & 4) && (b & 4) && d == 1)
				edge = false;
			if ((a & 4) && (b & 4) && d == 3)
				edge = true;
			hops[a][b] = a == b ? 0 : edge ? 1 : 2;
		}
}

static void
system_begin(system_ * s, kind k)
{
	isl_range	range[ISLANDS];

	memset(s, 0, sizeof(*s));
	s->kind = k;
	s->random = 1;
	s->generation = 1;
	s->machine.nodes = s->machine.places = ISLANDS;
	s->machine.use_work = 1;
	s->machine.worth = 0.02;
	s->machine.byte_work = (line_ns[1] - line_ns[0]) / 64 / READ_NS;
	for (unsigned a = 0; a < ISLANDS; a++)
	{
		s->machine.place[a].node = (uint16_t) a;
		s->machine.place[a].weight = CORES;
		for (unsigned b = 0; b < ISLANDS; b++)
			s->machine.distance[a][b] = (line_ns[hops[a][b]] - line_ns[0]) / (line_ns[1] - line_ns[0]);
		range[a].low = a * (65536 / ISLANDS);
		range[a].place = (uint16_t) a;
	}
	for (unsigned i = 0; i < SESSIONS; i++)
	{
		isl_counts_clear(&s->counts[i], s->generation);
		s->counts[i].random = i;
	}
	for (unsigned t = 0; t < tables; t++)
		(void) isl_scheme_add(&s->scheme, t + 1, 0, 65536, range, ISLANDS);
	isl_interval_init(&s->interval);
}

/* where a row lives */
static unsigned
home_of(const system_ * s, unsigned table, unsigned at, unsigned *sub)
{
	const isl_table *t = &s->scheme.table[table];
	uint64_t	hash = (uint64_t) table << 32 | at;

	*sub = isl_sub_at(s->scheme.low, t->first, t->subs, at);
	return s->kind == NAIVE ? (unsigned) (draw(&hash) % ISLANDS) : s->scheme.place[*sub];
}

static bool
is_there(const system_ * s, unsigned island)
{
	return s->machine.place[island].weight > 0;
}

static unsigned
anywhere(system_ * s)
{
	unsigned	island;

	do
		island = (unsigned) (draw(&s->random) % ISLANDS);
	while (!is_there(s, island));
	return island;
}

static void
write_line(system_ * s, uint8_t *last, unsigned island, line what)
{
	/* 0: nobody has written it yet */
	s->taken[what] += *last != 0 && *last != island + 1;
	*last = (uint8_t) (island + 1);
}

/* one transaction: so many nanoseconds, of one of "island"'s cores */
static double
run(system_ * s, const workload *load, const transaction *t, bool skewed, unsigned *island)
{
	double		ns = TRANSACTION_NS;
	bool		squeeze = skewed && draw(&s->random) % 2 == 0;
	unsigned	block = (unsigned) (draw(&s->random) % BLOCKS);
	unsigned	core = (unsigned) (draw(&s->random) % CORES);
	bool		changes = false;
	isl_transaction touched = {.generation = s->generation};
	unsigned	sub;
	unsigned	session;

	for (unsigned i = 0; i < t->rows; i++)
	{
		unsigned	table = t->row[i].table;
		bool		change = t->row[i].change;
		unsigned	at = t->row[i].at;
		unsigned	home;

		if (!common[table])
		{
			/* half of the requests go to the first fifth of the data */
			if (load->blocks)
				at = (at + block * 65536) / BLOCKS;
			if (squeeze)
				at /= 5;
		}
		home = home_of(s, table, at, &sub);
		if (i == 0)
			*island = s->kind == NAIVE || !is_there(s, home) ? anywhere(s) : home;
		ns += (change ? CHANGE_NS : READ_NS) +
			(change ? CHANGE_LINES : READ_LINES) * (line_ns[hops[*island][home]] - line_ns[0]);
		isl_touch(&touched, sub, 1, change);
		if (change)
		{
			write_line(s, &s->row[table][at], *island, LINE_ROW);
			write_line(s, &s->statistics[table][s->kind == NAIVE ? (*island * CORES + core) % STATISTICS_SHARDS :
												*island * (STATISTICS_SHARDS / ISLANDS)], *island, LINE_STATISTICS);
		}
		changes |= change;
	}
	if (changes)
	{
		write_line(s, &s->clock, *island, LINE_CLOCK);
		write_line(s, &s->logged, *island, LINE_LOGGED);
		/* others are between the two */
		write_line(s, &s->logged, anywhere(s), LINE_LOGGED);
	}
	s->transactions++;
	session = *island * CORES + core;
	for (s->left_out[session] -= ALIKE; s->left_out[session] < 0; s->left_out[session]++)
	{
		isl_counts_add(&s->counts[session], &touched);
		s->left_out[session] += (int) isl_counts_leave_out(&s->counts[session]);
	}
	return ns;
}

/* the end of an interval, if it is */
static void
adapt(system_ * s, double now)
{
	double		seconds = now - s->interval_began;

	if (s->kind != ADAPTIVE || seconds < s->interval.seconds - TICK / 2)
		return;
	isl_load_clear(&counted);
	for (unsigned i = 0; i < SESSIONS; i++)
		(void) isl_load_add(&counted, &s->counts[i], s->generation);
	if (isl_interval_passed(&s->interval, s->done / seconds, counted.all.counted) != ISL_NOT_NOW)
	{
		if (!isl_decide(&s->machine, &s->scheme, &counted, &next, &decision))
			exit(1);
		isl_interval_looked(&s->interval, decision.moves, decision.unsure);
		if (decision.moves)
		{
			unsigned	moves = 0;

			for (unsigned i = 0; i < decision.actions; i++)
				moves += decision.action[i].kind == ISL_MOVE;
			if (s->decisions < 100)
			{
				s->decision[s->decisions].at = now;
				s->decision[s->decisions].actions = decision.actions;
				s->decision[s->decisions++].moves = moves;
			}
			s->pause += decision.actions * ACTION_SECONDS;
		}
		s->scheme = next;
	}
	s->generation++;
	for (unsigned i = 0; i < SESSIONS; i++)
		isl_counts_clear(&s->counts[i], s->generation);
	s->interval_began = now;
	s->done = 0;
}

static void
simulate(system_ * s, const phase *phases, unsigned nphases, double seconds)
{
	const phase *p = phases;
	unsigned	at = 0;

	for (unsigned tick = 0; tick * TICK < seconds; tick++)
	{
		double		busy[ISLANDS] = {0};
		double		most = 0;
		double		rate;
		double		pause;

		while (p + 1 < phases + nphases && tick * TICK >= p[1].at)
			p++;
		for (unsigned i = 0; i < ISLANDS; i++)
			s->machine.place[i].weight = (int) i == p->lost ? 0 : CORES;
		for (unsigned n = 0; n < SAMPLE; n++)
		{
			unsigned	island = 0;
			double		ns = run(s, p->load, &p->load->all[at++ % p->load->n], p->skewed, &island);

			busy[island] += ns;
		}
		for (unsigned i = 0; i < ISLANDS; i++)
			most = fmax(most, busy[i] / CORES);
		rate = SAMPLE / (most * 1e-9);
		pause = fmin(s->pause, TICK);
		s->pause -= pause;
		s->throughput[tick] = rate * (1 - pause / TICK);
		s->done += s->throughput[tick] * TICK;
		adapt(s, (tick + 1) * TICK);
	}
}

/* ----------------------------------------------------------------- report */

static double
mean(const system_ * s, double from, double to)
{
	double		sum = 0;
	unsigned	n = 0;

	for (unsigned tick = (unsigned) (from / TICK); tick < (unsigned) (to / TICK); tick++, n++)
		sum += s->throughput[tick];
	return n ? sum / n : 0;
}

/* where a phase has come to: its last quarter */
static double
end_of(const system_ * s, double from, double to)
{
	return mean(s, to - fmax((to - from) / 4, TICK), to);
}

/*
 * seconds from the beginning of a phase until throughput is what it is at its end, and stays for a
 * second
 */
static double
back_after(const system_ * s, double from, double to)
{
	double		level = BACK * end_of(s, from, to);
	unsigned	last = (unsigned) (to / TICK);

	for (unsigned tick = (unsigned) (from / TICK); tick < last; tick++)
	{
		bool		stays = true;

		for (unsigned i = tick; i < last && i < tick + (unsigned) (1 / TICK); i++)
			stays &= s->throughput[i] >= level;
		if (stays)
			return tick * TICK - from;
	}
	return to - from;
}

static void
report(const char *name, system_ * systems, const phase *phases, unsigned n, double seconds)
{
	printf("{\"scenario\": \"%s\", \"tick\": %g, \"seconds\": %g,\n \"phases\": [", name, TICK, seconds);
	for (unsigned i = 0; i < n; i++)
	{
		double		to = i + 1 < n ? phases[i + 1].at : seconds;

		printf("%s\n  {\"at\": %g, \"what\": \"%s\", \"back\": %.2f", i ? "," : "", phases[i].at, phases[i].what,
			   back_after(&systems[ADAPTIVE], phases[i].at, to));
		for (int k = 0; k < KINDS; k++)
			printf(", \"%s\": %.0f", kind_name[k], end_of(&systems[k], phases[i].at, to));
		printf("}");
	}
	printf("],\n \"decisions\": [");
	for (unsigned i = 0; i < systems[ADAPTIVE].decisions; i++)
		printf("%s{\"at\": %g, \"actions\": %u, \"moves\": %u}", i ? ", " : "", systems[ADAPTIVE].decision[i].at,
			   systems[ADAPTIVE].decision[i].actions, systems[ADAPTIVE].decision[i].moves);
	printf("],\n \"lines\": {");
	for (int k = 0; k < KINDS; k++)
	{
		printf("%s\"%s\": {", k ? ", " : "", kind_name[k]);
		for (int l = 0; l < LINES; l++)
			printf("%s\"%s\": %.3f", l ? ", " : "", line_name[l],
				   (double) systems[k].taken[l] / (double) systems[k].transactions);
		printf("}");
	}
	printf("},\n \"throughput\": {");
	for (int k = 0; k < KINDS; k++)
	{
		printf("%s\n  \"%s\": [", k ? "," : "", kind_name[k]);
		for (unsigned tick = 0; tick * TICK < seconds; tick++)
			printf("%s%.0f", tick ? ", " : "", systems[k].throughput[tick]);
		printf("]");
	}
	printf("}}\n");
}

int
main(int argc, char **argv)
{
	static system_ systems[KINDS];
	phase		phases[16];
	unsigned	n = 0;
	double		seconds = 60;
	const char *scenario = argc == 3 ? argv[2] : "";

	if (argc != 3)
	{
		fprintf(stderr, "usage: simulate TRACES change|skew|lost|alternate|tpcc\n");
		return 2;
	}
	make_cube();
	read_load(&mix, argv[1], "tatp-mix");
	read_load(&update, argv[1], "tatp-update-subscriber-data");
	read_load(&destination, argv[1], "tatp-get-new-destination");
	read_load(&tpcc, argv[1], "tpcc");
	if (strcmp(scenario, "change") == 0)
	{
		phases[n++] = (phase) {0, "UpdSubData", &update, false, -1};
		phases[n++] = (phase) {30, "GetNewDest", &destination, false, -1};
		phases[n++] = (phase) {60, "mix", &mix, false, -1};
		seconds = 90;
	}
	else if (strcmp(scenario, "skew") == 0 || strcmp(scenario, "tpcc") == 0)
	{
		workload   *load = scenario[0] == 's' ? &mix : &tpcc;

		phases[n++] = (phase) {0, "even", load, false, -1};
		phases[n++] = (phase) {20, "half of it on a fifth", load, true, -1};
	}
	else if (strcmp(scenario, "lost") == 0)
	{
		phases[n++] = (phase) {0, "8 sockets", &mix, false, -1};
		phases[n++] = (phase) {20, "7 sockets", &mix, false, 3};
	}
	else if (strcmp(scenario, "alternate") == 0)
	{
		double		at = 0;

		for (double each = 16; each >= 2; each /= 2)
		{
			phases[n++] = (phase) {at, "GetNewDest", &destination, false, -1};
			phases[n++] = (phase) {at + each, "mix", &mix, false, -1};
			at += 2 * each;
		}
		seconds = at;
	}
	else
		return 2;
	for (int k = 0; k < KINDS; k++)
	{
		system_begin(&systems[k], (kind) k);
		simulate(&systems[k], phases, n, seconds);
	}
	report(scenario, systems, phases, n, seconds);
	return 0;
}
