/*-------------------------------------------------------------------------
 *
 * generate.c
 *	  What YCSB's generators draw: keys by Zipf's distribution with a constant
 *	  of 0.99, scattered over all of them by a hash, or by how new they are; and
 *	  values that tell which key they belong to.
 *
 * The distribution is drawn as in Gray et al., Quickly Generating
 * Billion-Record Synthetic Databases, SIGMOD 1994, as YCSB does.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "keyvalue.h"

#define THETA 0.99

/*
 * The scattered distribution is over this many items, of which each hashes to
 * one of the records: YCSB's own number, and the sum of i^-0.99 up to it.
 */
#define SCATTERED_ITEMS UINT64_C(10000000000)
#define SCATTERED_ZETA 26.46902820178302

void
generator_init(generator *g, uint64_t seed)
{
	memset(g, 0, sizeof(*g));
	g->seed = seed;
}

/* splitmix64 */
static uint64_t
random64(generator *g)
{
	uint64_t	z;

	g->seed += UINT64_C(0x9e3779b97f4a7c15);
	z = g->seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* from 0 to n - 1 */
uint64_t
uniform(generator *g, uint64_t n)
{
	return random64(g) % n;
}

static double
uniform_double(generator *g)
{
	return (random64(g) >> 11) / 9007199254740992.0;
}

/* FNV-1a's 64 bits of a number's eight bytes, not negative: as YCSB's */
static uint64_t
hash(uint64_t number)
{
	uint64_t	h = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < 8; i++)
	{
		h = (h ^ (number & 0xff)) * UINT64_C(1099511628211);
		number >>= 8;
	}
	return (int64_t) h < 0 ? -h : h;
}

/* from 0 to items - 1, 0 the most often */
static uint64_t
zipfian(generator *g, uint64_t items, double zeta)
{
	double		second = 1 + pow(0.5, THETA);
	double		eta = (1 - pow(2.0 / items, 1 - THETA)) / (1 - second / zeta);
	double		u = uniform_double(g);
	uint64_t	drawn;

	if (u * zeta < 1)
		return 0;
	if (u * zeta < second)
		return 1;
	drawn = items * pow(eta * u - eta + 1, 1 / (1 - THETA));
	return drawn < items ? drawn : items - 1;
}

/* the number of one of the records; the popular ones lie apart */
uint64_t
scrambled_zipfian(generator *g, uint64_t records)
{
	return hash(zipfian(g, SCATTERED_ITEMS, SCATTERED_ZETA)) % records;
}

/* the number of one of the records; the later ones are the popular ones */
uint64_t
latest(generator *g, uint64_t records)
{
	while (g->items < records)
		g->zeta += pow(++g->items, -THETA);
	return records - 1 - zipfian(g, records, g->zeta);
}

/* in the order of a hash of the numbers, as YCSB's are by default */
void
record_key(key *k, uint64_t number)
{
	snprintf(k->name, sizeof(k->name), "user%0*" PRIu64, KEY_DIGITS, hash(number));
}

/* in the order of the numbers */
void
pair_key(key *k, uint64_t number)
{
	snprintf(k->name, sizeof(k->name), "key:%0*" PRIu64, KEY_DIGITS, number);
}

/* the key's digits, then letters */
void
make_value(generator *g, value *v, const key *k)
{
	uint64_t	bits = 0;

	memcpy(v->bytes, k->name + KEY_LETTERS, KEY_DIGITS);
	for (int i = KEY_DIGITS; i < VALUE_BYTES; i++)
	{
		if ((i - KEY_DIGITS) % 16 == 0)
			bits = random64(g);
		v->bytes[i] = 'a' + (bits & 15);
		bits >>= 4;
	}
	v->bytes[VALUE_BYTES] = 0;
}

void
check_value(const key *k, const char *bytes, size_t length)
{
	if (length != VALUE_BYTES || memcmp(bytes, k->name + KEY_LETTERS, KEY_DIGITS) != 0)
		die("a wrong value for %s: %.*s", k->name, (int) length, bytes);
}
