/*-------------------------------------------------------------------------
 *
 * redis.c
 *	  A store in a Redis server, by its protocol over a socket.
 *
 * As YCSB's own client has it, a record is a hash, and a sorted set has the
 * keys of all of them for scans.  There all its members have score 0, which
 * orders them as text, so that a scan begins with its key; and the commands of
 * an insert, and those that read the records of a scan, are sent together,
 * which spares Redis round trips that YCSB's client makes.  A record and its
 * place in the set are two commands, and no transaction.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keyvalue.h"

#define INDEX "_indices"
#define LOAD_AT_ONCE 100

/* a load sends LOAD_AT_ONCE records and their places; a reply is shorter */
#define BUFFER_BYTES (1 << 20)

typedef struct redis
{
	store		base;
	int			socket;
	size_t		out_bytes;
	size_t		in_start;
	size_t		in_end;
	int			pending;		/* replies that a load has still to read */
	char		out[BUFFER_BYTES];
	char		in[BUFFER_BYTES];
} redis;

/* ------------------------------------------------------------ sending */

static void
put(redis *r, const char *bytes, size_t length)
{
	if (r->out_bytes + length > BUFFER_BYTES)
		die("too much for one round trip");
	memcpy(r->out + r->out_bytes, bytes, length);
	r->out_bytes += length;
}

/* the head of a command of n words */
static void
put_command(redis *r, int n)
{
	char		head[16];

	put(r, head, snprintf(head, sizeof(head), "*%d\r\n", n));
}

static void
put_bytes(redis *r, const char *bytes, size_t length)
{
	char		head[16];

	put(r, head, snprintf(head, sizeof(head), "$%zu\r\n", length));
	put(r, bytes, length);
	put(r, "\r\n", 2);
}

static void
put_word(redis *r, const char *word)
{
	put_bytes(r, word, strlen(word));
}

static void
put_field(redis *r, int i)
{
	char		name[16];

	snprintf(name, sizeof(name), "field%d", i);
	put_word(r, name);
}

static void
flush(redis *r)
{
	size_t		sent = 0;

	while (sent < r->out_bytes)
	{
		ssize_t		n = write(r->socket, r->out + sent, r->out_bytes - sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("writing to Redis: %s", strerror(errno));
		sent += n;
	}
	r->out_bytes = 0;

	/* all answers have been read when something is asked */
	r->in_start = r->in_end = 0;
}

/* ---------------------------------------------------------- receiving */

/* have this many bytes of the answer in one piece */
static void
need(redis *r, size_t bytes)
{
	while (r->in_end - r->in_start < bytes)
	{
		ssize_t		n;

		if (r->in_start + bytes > BUFFER_BYTES || r->in_end == BUFFER_BYTES)
		{
			memmove(r->in, r->in + r->in_start, r->in_end - r->in_start);
			r->in_end -= r->in_start;
			r->in_start = 0;
			if (bytes > BUFFER_BYTES)
				die("a reply is too long");
		}
		n = read(r->socket, r->in + r->in_end, BUFFER_BYTES - r->in_end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("reading from Redis: %s", n == 0 ? "closed" : strerror(errno));
		r->in_end += n;
	}
}

/* the number of a line that has to begin with this letter */
static long long
get_number(redis *r, char letter)
{
	size_t		length = 2;
	char	   *line;

	for (;;)
	{
		need(r, length);
		line = r->in + r->in_start;
		if (line[length - 2] == '\r' && line[length - 1] == '\n')
			break;
		length++;
	}
	if (line[0] != letter)
		die("an answer of Redis that was not expected: %.*s", (int) length - 2, line);
	r->in_start += length;
	return strtoll(line + 1, NULL, 10);
}

/* the bytes stay where they are up to the next call */
static const char *
get_bytes(redis *r, size_t *length)
{
	long long	n = get_number(r, '$');
	const char *bytes;

	if (n < 0)
		die("a key is not there");
	need(r, n + 2);
	bytes = r->in + r->in_start;
	r->in_start += n + 2;
	*length = n;
	return bytes;
}

static void
get_ok(redis *r)
{
	get_number(r, '+');
}

/* ------------------------------------------------------------- methods */

static store *
redis_open(const char *place)
{
	redis	   *r = calloc(1, sizeof(redis));
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	r->base.m = &redis_store;
	if (strlen(place) >= sizeof(address.sun_path))
		die("too long a path: %s", place);
	strcpy(address.sun_path, place);
	r->socket = socket(AF_UNIX, SOCK_STREAM, 0);
	if (r->socket < 0 || connect(r->socket, (struct sockaddr *) &address, sizeof(address)) != 0)
		die("%s: %s", place, strerror(errno));
	return &r->base;
}

static void
redis_close(store *s)
{
	redis	   *r = (redis *) s;

	close(r->socket);
	free(r);
}

static uint64_t
redis_count(store *s, kind what)
{
	redis	   *r = (redis *) s;
	uint64_t	indexed;
	uint64_t	all;

	put_command(r, 2);
	put_word(r, "ZCARD");
	put_word(r, INDEX);
	put_command(r, 1);
	put_word(r, "DBSIZE");
	flush(r);
	indexed = get_number(r, ':');
	all = get_number(r, ':');
	if (what == PAIRS)
		return indexed > 0 ? all - indexed - 1 : all;
	if (indexed > 0 && all < indexed + 1)
		die("records are missing");
	return indexed;
}

static void
redis_load_begin(store *s, kind what)
{
	redis	   *r = (redis *) s;

	(void) what;
	put_command(r, 1);
	put_word(r, "FLUSHALL");
	flush(r);
	get_ok(r);
}

static void
put_record(redis *r, const key *k, const value *fields)
{
	put_command(r, 2 + 2 * FIELDS);
	put_word(r, "HSET");
	put_bytes(r, k->name, KEY_BYTES);
	for (int i = 0; i < FIELDS; i++)
	{
		put_field(r, i);
		put_bytes(r, fields[i].bytes, VALUE_BYTES);
	}
	put_command(r, 4);
	put_word(r, "ZADD");
	put_word(r, INDEX);
	put_word(r, "0");
	put_bytes(r, k->name, KEY_BYTES);
}

static void
get_inserted(redis *r)
{
	if (get_number(r, ':') != FIELDS || get_number(r, ':') != 1)
		die("a record was there already");
}

static void
load_wait(redis *r, kind what)
{
	flush(r);
	for (; r->pending > 0; r->pending--)
	{
		if (what == RECORDS)
			get_inserted(r);
		else
			get_ok(r);
	}
}

static void
put_pair(redis *r, const key *k, const value *v)
{
	put_command(r, 3);
	put_word(r, "SET");
	put_bytes(r, k->name, KEY_BYTES);
	put_bytes(r, v->bytes, VALUE_BYTES);
}

static void
redis_load_row(store *s, kind what, const key *k, const value *fields)
{
	redis	   *r = (redis *) s;

	if (what == RECORDS)
		put_record(r, k, fields);
	else
		put_pair(r, k, &fields[0]);
	if (++r->pending == LOAD_AT_ONCE)
		load_wait(r, what);
}

static void
redis_load_end(store *s, kind what)
{
	load_wait((redis *) s, what);
}

static void
put_read(redis *r, const char *name)
{
	put_command(r, 2);
	put_word(r, "HGETALL");
	put_bytes(r, name, KEY_BYTES);
}

static void
get_record(redis *r, const key *k)
{
	if (get_number(r, '*') != 2 * FIELDS)
		die("not a record: %s", k->name);
	for (int i = 0; i < FIELDS; i++)
	{
		size_t		length;
		const char *bytes;

		get_bytes(r, &length);	/* the field's name */
		bytes = get_bytes(r, &length);
		check_value(k, bytes, length);
	}
}

static void
redis_read(store *s, const key *k)
{
	redis	   *r = (redis *) s;

	put_read(r, k->name);
	flush(r);
	get_record(r, k);
}

static void
redis_update(store *s, const key *k, int field, const value *v)
{
	redis	   *r = (redis *) s;

	put_command(r, 4);
	put_word(r, "HSET");
	put_bytes(r, k->name, KEY_BYTES);
	put_field(r, field);
	put_bytes(r, v->bytes, VALUE_BYTES);
	flush(r);
	if (get_number(r, ':') != 0)
		die("%s was not there", k->name);
}

static void
redis_insert(store *s, const key *k, const value *fields)
{
	redis	   *r = (redis *) s;

	put_record(r, k, fields);
	flush(r);
	get_inserted(r);
}

static int
redis_scan(store *s, const key *k, int n)
{
	redis	   *r = (redis *) s;
	char		from[KEY_BYTES + 2];
	char		limit[16];
	key			keys[MAX_SCAN];
	int			found;

	snprintf(from, sizeof(from), "[%s", k->name);
	snprintf(limit, sizeof(limit), "%d", n);
	put_command(r, 7);
	put_word(r, "ZRANGEBYLEX");
	put_word(r, INDEX);
	put_word(r, from);
	put_word(r, "+");
	put_word(r, "LIMIT");
	put_word(r, "0");
	put_word(r, limit);
	flush(r);
	found = get_number(r, '*');
	if (found < 1 || found > n)
		die("%d records instead of %d", found, n);
	for (int i = 0; i < found; i++)
	{
		size_t		length;
		const char *name = get_bytes(r, &length);

		if (length != KEY_BYTES)
			die("not a record's key");
		memcpy(keys[i].name, name, KEY_BYTES);
		keys[i].name[KEY_BYTES] = 0;
		if (i > 0 && strcmp(keys[i - 1].name, keys[i].name) >= 0)
			die("a scan is not in order");
	}
	if (strcmp(keys[0].name, k->name) != 0)
		die("a scan does not begin with %s", k->name);
	for (int i = 0; i < found; i++)
		put_read(r, keys[i].name);
	flush(r);
	for (int i = 0; i < found; i++)
		get_record(r, &keys[i]);
	return found;
}

static void
redis_get(store *s, int n, const key *keys)
{
	redis	   *r = (redis *) s;

	for (int i = 0; i < n; i++)
	{
		put_command(r, 2);
		put_word(r, "GET");
		put_bytes(r, keys[i].name, KEY_BYTES);
	}
	flush(r);
	for (int i = 0; i < n; i++)
	{
		size_t		length;
		const char *bytes = get_bytes(r, &length);

		check_value(&keys[i], bytes, length);
	}
}

static void
redis_set(store *s, int n, const key *keys, const value *values)
{
	redis	   *r = (redis *) s;

	for (int i = 0; i < n; i++)
		put_pair(r, &keys[i], &values[i]);
	flush(r);
	for (int i = 0; i < n; i++)
		get_ok(r);
}

const store_methods redis_store = {
	.open = redis_open,
	.close = redis_close,
	.count = redis_count,
	.load_begin = redis_load_begin,
	.load_row = redis_load_row,
	.load_end = redis_load_end,
	.read = redis_read,
	.update = redis_update,
	.insert = redis_insert,
	.scan = redis_scan,
	.get = redis_get,
	.set = redis_set,
};
