/*-------------------------------------------------------------------------
 *
 * keyvalue.h
 *	  One client program for keys and values, whoever keeps them: YCSB's core
 *	  workloads, and gets and sets, on PostgreSQL's tables and on Redis.
 *
 * keyvalue.c	the command line, the threads and what they count
 * generate.c	YCSB's distributions, keys and values
 * postgres.c	a store of rows in a database
 * redis.c		a store of hashes and strings in a Redis server
 *
 * A thread has a connection and waits for each answer.  Every answer is
 * checked: that it is there, that it has the length it has to have, and that
 * each value in it was written for the key that was asked for.  The first one
 * that is wrong ends the program with an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KEYVALUE_H
#define KEYVALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* YCSB's defaults: ten fields of 100 bytes, all read, one written */
#define FIELDS 10
#define VALUE_BYTES 100
#define MAX_SCAN 100
#define MAX_PIPELINE 100

/* "user" and 20 digits; the digits begin each value of the key */
#define KEY_LETTERS 4
#define KEY_DIGITS 20
#define KEY_BYTES (KEY_LETTERS + KEY_DIGITS)

/* what YCSB calls records, ten fields under a key; or a value under a key */
typedef enum kind
{
	RECORDS,
	PAIRS
} kind;

typedef struct key
{
	char		name[KEY_BYTES + 1];
} key;

typedef struct value
{
	char		bytes[VALUE_BYTES + 1];
} value;

typedef struct store store;

/*
 * Keys of a pipeline ascend: for PostgreSQL they are one transaction.  A
 * scan returns how many records it has found.
 */
typedef struct store_methods
{
	store	   *(*open) (const char *place);
	void		(*close) (store *s);
	uint64_t	(*count) (store *s, kind what);

	void		(*load_begin) (store *s, kind what);
	void		(*load_row) (store *s, kind what, const key *k, const value *fields);
	void		(*load_end) (store *s, kind what);

	void		(*read) (store *s, const key *k);
	void		(*update) (store *s, const key *k, int field, const value *v);
	void		(*insert) (store *s, const key *k, const value *fields);
	int			(*scan) (store *s, const key *k, int n);
	void		(*get) (store *s, int n, const key *keys);
	void		(*set) (store *s, int n, const key *keys, const value *values);
} store_methods;

struct store
{
	const store_methods *m;
};

extern const store_methods postgres_store;
extern const store_methods redis_store;

/* generate.c */

typedef struct generator
{
	uint64_t	seed;			/* of the next random number */

	/* Zipf's distribution over items that may become more */
	uint64_t	items;
	double		zeta;
} generator;

extern void generator_init(generator *g, uint64_t seed);
extern uint64_t uniform(generator *g, uint64_t n);
extern uint64_t scrambled_zipfian(generator *g, uint64_t records);
extern uint64_t latest(generator *g, uint64_t records);
extern void record_key(key *k, uint64_t number);
extern void pair_key(key *k, uint64_t number);
extern void make_value(generator *g, value *v, const key *k);
extern void check_value(const key *k, const char *bytes, size_t length);

/* keyvalue.c */

extern void die(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

#endif							/* KEYVALUE_H */
