/*-------------------------------------------------------------------------
 *
 * islands.h
 *	  Hardware islands: what is used with what, and where it had better be.
 *
 * A library of plain C after ATraPos (Porobic et al., ICDE 2014).  It knows
 * neither PostgreSQL nor the engine; the server (measure.c, decide.c) and the
 * simulator (bench/islands) give it the same numbers.
 *
 *	position  where a row is in its table: 64 bits that order as its first key
 *	range	  of positions: what lives at one place.  For measuring it is cut
 *			  into ten sub-ranges.
 *	place	  what does work: a core, or a node (an island) as a whole; every
 *			  place is on a node
 *	scheme	  all sub-ranges of all tables that are watched, and their places
 *	counts	  one session's: what one in several of its transactions worked on.
 *			  Written by that session only.
 *	trace	  transactions added up: how much work sub-ranges were, and what passed
 *			  between which two in one transaction
 *	load	  the trace of all sessions, and of each half of their transactions
 *
 * What is counted is a sample, drawn at random, so chance is in it.  The more is searched
 * for a better scheme, the more it is found in chance alone, so what half of the
 * transactions say is asked the other half: only what is better with these, too,
 * by more than chance makes (twice its standard error), is better (choose.c).
 *
 * Two costs, in units of work (to read a row is one):
 *
 *	use		  RU = sum over places of |work there - its share of all work|
 *			  (times use_work)
 *	sync	  TS = sum over pairs of sub-ranges, on different nodes, of bytes
 *			  between them x distance of the nodes x cost of a byte
 *
 * A transaction that touches more than two sub-ranges makes pairs of the
 * first one with each other one: that is where a session is, and what it
 * reaches out for.
 *
 * What is at no place (ISL_NOWHERE) is everywhere: its work is shared evenly,
 * and it is as far from everything as nodes are on average.  So are sub-ranges
 * of a place that is lost (weight 0), until they get another one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ISLANDS_H
#define MOT_ISLANDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISL_SUBRANGES	10		/* of a range, as in the paper */
#define ISL_MAX_TABLES	64
#define ISL_MAX_SUBS	4096	/* of all tables; ten of them a range */
#define ISL_MAX_NODES	64
#define ISL_MAX_PLACES	128
#define ISL_NOWHERE		UINT16_MAX

/*
 * Work and bytes.  A row that is read is a line or two and its search; one
 * that is changed also has its head, its version and its log written.
 */
#define ISL_WORK_READ		1
#define ISL_WORK_CHANGE		4
#define ISL_BYTES_READ		64
#define ISL_BYTES_CHANGE	192

/* ---------------------------------------------------------------- scheme */

typedef struct isl_range
{
	uint64_t	low;			/* up to the next one's; the first one's is 0 */
	uint16_t	place;
} isl_range;

typedef struct isl_table
{
	uint64_t	key;			/* the caller's name of it */
	uint64_t	from,
				to;				/* the positions that there are, about */
	uint32_t	first;			/* of its sub-ranges */
	uint32_t	subs;
} isl_table;

typedef struct isl_scheme
{
	uint32_t	tables;
	uint32_t	subs;
	isl_table	table[ISL_MAX_TABLES];
	uint64_t	low[ISL_MAX_SUBS];	/* ascending within a table */
	uint16_t	place[ISL_MAX_SUBS];
	bool		starts[ISL_MAX_SUBS];	/* a range */
} isl_scheme;

/*
 * Another table of so many ranges, which are cut evenly between "from" and "to".
 * False: there is no room for it.
 */
extern bool isl_scheme_add(isl_scheme *scheme, uint64_t key, uint64_t from, uint64_t to,
						   const isl_range *range, unsigned ranges);
extern int	isl_scheme_find(const isl_scheme *scheme, uint64_t key);	/* -1: no */

/* a table's ranges, of which there are no more than sub-ranges; how many there are */
extern unsigned isl_scheme_ranges(const isl_scheme *scheme, unsigned table, isl_range *range);

/* A table's positions now leave out "fewer" bytes less of its keys: "bytes" are those. */
extern void isl_ranges_widen(isl_range *range, unsigned *ranges, const uint8_t *bytes,
							 unsigned fewer);

/* eight bytes of a key behind those that are left out ("common": which these are) */
extern uint64_t isl_position(const uint8_t *key, size_t len, const uint8_t *common, unsigned skip);

/* the sub-range of a position among those of one table */
static inline unsigned
isl_sub_at(const uint64_t *low, unsigned first, unsigned subs, uint64_t position)
{
	while (subs > 1)
	{
		unsigned	half = subs / 2;

		first = low[first + half] <= position ? first + half : first;
		subs -= half;
	}
	return first;
}

/* --------------------------------------------------------------- counting */

/* what a transaction has done to a sub-range's rows, in numbers of rows */
typedef struct isl_item
{
	uint32_t	sub;
	uint32_t	reads;
	uint32_t	changes;
} isl_item;

#define ISL_TOUCHED	32			/* of a transaction; others are lost */

/* a transaction in progress that is counted, private */
typedef struct isl_transaction
{
	uint64_t	generation;		/* of the scheme that its numbers are of */
	uint32_t	touched;
	uint32_t	lost;
	isl_item	item[ISL_TOUCHED];
} isl_transaction;

static inline void
isl_touch(isl_transaction *t, unsigned sub, uint32_t rows, bool change)
{
	uint32_t	i = 0;

	while (i < t->touched && t->item[i].sub != sub)
		i++;
	if (i == t->touched)
	{
		if (i == ISL_TOUCHED)
		{
			t->lost++;
			return;
		}
		t->item[t->touched++] = (isl_item)
		{
			.sub = sub
		};
	}
	if (change)
		t->item[i].changes += rows;
	else
		t->item[i].reads += rows;
}

#define ISL_EVERY	8			/* one transaction in so many is counted */
#define ISL_LOG		2048		/* items of the transactions of a session */

/*
 * A session's transactions since the scheme of this generation was made: those
 * that are counted, one behind the other.  When there is no room left, every second
 * one goes, and from then on half as many are counted: so it is always a sample
 * of them all.  The owner alone writes; who adds up reads beside it, and what
 * it reads may be a transaction older or newer.
 */
typedef struct isl_counts
{
	_Atomic uint64_t generation;
	_Atomic uint64_t transactions;	/* that the items stand for */
	_Atomic uint64_t lost;		/* what there was no room for */
	_Atomic uint32_t items;
	_Atomic uint32_t item[ISL_LOG]; /* see count.c */

	/* the owner's */
	uint32_t	every;
	uint32_t	left_out;		/* before the one that is counted next */
	uint32_t	random;
} isl_counts;

/* (memory that is new has to be zero) */
extern void isl_counts_clear(isl_counts *counts, uint64_t generation);

/* a transaction that is counted has ended (counts and transaction are of one generation) */
extern void isl_counts_add(isl_counts *counts, const isl_transaction *transaction);

/* How many are to be left out before the next one that is counted?  That is drawn. */
extern uint32_t isl_counts_leave_out(isl_counts *counts);

/* the work of those counted at each place, and behind them nowhere; how many these are */
extern unsigned isl_counts_places(const isl_counts *counts, const isl_scheme *scheme, double *work);

/* ------------------------------------------------------------------ trace */

#define ISL_MAX_PAIRS 16384		/* of all sessions; a power of two */

typedef struct isl_pair
{
	uint16_t	a,
				b;				/* a > b; both 0: empty */
	double		bytes;
} isl_pair;

typedef struct isl_trace
{
	uint32_t	counted;		/* transactions that were counted ... */
	double		transactions;	/* ... and what they stand for */
	uint64_t	lost;
	uint32_t	pairs;
	double		all_work;
	double		all_bytes;
	double		squares_work;	/* sums of what each counted one stands for,
								 * squared: their variance */
	double		squares_bytes;
	double		work[ISL_MAX_SUBS];
	isl_pair	pair[ISL_MAX_PAIRS];	/* a hash table */
} isl_trace;

extern void isl_trace_pair(isl_trace *trace, unsigned a, unsigned b, double bytes);

typedef struct isl_load
{
	isl_trace	all;
	isl_trace	half[2];		/* its transactions dealt out to two */
} isl_load;

extern void isl_load_clear(isl_load *load);

/* one transaction that stands for so many */
extern void isl_load_transaction(isl_load *load, const isl_item *item, unsigned items, double weight);

/* false: they are of another generation */
extern bool isl_load_add(isl_load *load, const isl_counts *counts, uint64_t generation);

/* ------------------------------------------------------------------ costs */

typedef struct isl_place
{
	uint16_t	node;
	double		weight;			/* how much it can do beside others; 0: lost */
} isl_place;

typedef struct isl_machine
{
	unsigned	nodes;
	unsigned	places;
	isl_place	place[ISL_MAX_PLACES];
	double		distance[ISL_MAX_NODES][ISL_MAX_NODES]; /* 0 to itself */
	double		byte_work;		/* of a byte over distance 1 */
	double		use_work;		/* of a unit of RU: 1 where each place does
								 * its own work only, less where others help
								 * out */
	double		worth;			/* what a better scheme has to gain to be
								 * worth its moves, in parts of all work */
} isl_machine;

typedef struct isl_cost
{
	double		use;
	double		sync;
} isl_cost;

static inline double
isl_cost_all(isl_cost cost)
{
	return cost.use + cost.sync;
}

extern isl_cost isl_cost_of(const isl_machine *machine, const isl_scheme *scheme,
							const isl_trace *trace);

/* ----------------------------------------------------------------- search */

typedef enum isl_action_kind
{
	ISL_SPLIT,					/* at low: what begins there is a range */
	ISL_MERGE,					/* what begins at low goes to the range before */
	ISL_MOVE					/* the range that begins at low goes to place */
} isl_action_kind;

typedef struct isl_action
{
	isl_action_kind kind;
	uint16_t	table;
	uint16_t	place;
	uint64_t	low;
} isl_action;

#define ISL_MAX_ACTIONS 1024

typedef struct isl_decision
{
	isl_cost	before,
				after;
	double		work;			/* of the load */
	bool		moves;			/* it is worth it: something is to be moved */
	bool		unsure;			/* it might be, but may be chance */
	bool		finer;			/* ranges were split that were too hot to be
								 * placed well */
	unsigned	actions;
	isl_action	action[ISL_MAX_ACTIONS];
} isl_decision;

/*
 * What "now" had better become for such a load.  "next" gets new
 * ranges: cut anew for the next measuring, with more of them where there is
 * much work, and, if decision->moves, new places.  Places stay as they are unless
 * the cost surely falls by a tenth and by what is worth it, or a
 * place is lost.  The actions lead from one to the other, in their order.
 * False: no memory.
 */
extern bool isl_decide(const isl_machine *machine, const isl_scheme *now, const isl_load *load,
					   isl_scheme *next, isl_decision *decision);

/*
 * search.c, for tests: the two searches, on places[] of all sub-ranges.  Neither
 * raises the cost.  NULL: no memory.
 */
typedef struct isl_search isl_search;

extern isl_search *isl_search_begin(const isl_machine *machine, const isl_scheme *scheme,
									const isl_trace *trace);
extern void isl_search_set(isl_search *search, const uint16_t *place);
extern const uint16_t *isl_search_get(const isl_search *search);
extern isl_cost isl_search_cost(const isl_search *search);

/* how much less these places cost than those, and the standard error of that */
extern double isl_search_gain(isl_search *search, const uint16_t *before, const uint16_t *after,
							  double *error);
extern void isl_search_fill(isl_search *search, bool by_table);
extern void isl_search_rescue(isl_search *search);	/* what is nowhere or lost */
extern void isl_search_balance(isl_search *search);
extern void isl_search_gather(isl_search *search);
extern void isl_search_end(isl_search *search);

/* --------------------------------------------------------------- interval */

#define ISL_INTERVAL_MIN	1	/* seconds */
#define ISL_INTERVAL_MAX	8
#define ISL_HISTORY			5

typedef struct isl_interval
{
	unsigned	seconds;
	unsigned	known;			/* of history */
	unsigned	next;
	double		history[ISL_HISTORY];
	bool		settled;		/* surely nothing better was found since the
								 * last change */
	bool		bettered;		/* the last look changed something, so there
								 * is nothing to compare with */
} isl_interval;

extern void isl_interval_init(isl_interval *interval);

typedef enum isl_why
{
	ISL_NOT_NOW,
	ISL_CHANGED,				/* throughput is another */
	ISL_UNSETTLED,				/* the last look made it better */
	ISL_LONGEST,				/* the longest interval has passed */
	ISL_LOST					/* a place is (the caller's to notice) */
} isl_why;

/*
 * An interval has passed, with so many transactions a second, which is known from so many
 * that were counted: is it time to look for something better?
 */
extern isl_why isl_interval_passed(isl_interval *interval, double throughput, double counted);

/* That was done, and something was changed or not, or longer counting may tell. */
extern void isl_interval_looked(isl_interval *interval, bool changed, bool unsure);

#endif							/* MOT_ISLANDS_H */
