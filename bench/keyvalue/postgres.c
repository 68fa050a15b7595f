/*-------------------------------------------------------------------------
 *
 * postgres.c
 *	  A store of rows in a database: the tables of bench/sql/loads/ycsb.sql.
 *
 * All statements are prepared.  Each is a transaction of its own; those of a
 * pipeline are one together, and go past libpq.
 *
 *-------------------------------------------------------------------------
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "keyvalue.h"

typedef struct postgres
{
	store		base;
	PGconn	   *connection;

	/* of pipelines: what is sent, then the answers, of which "read" have been */
	size_t		bytes;
	size_t		read;
	char		buffer[1 << 16];
} postgres;

static const char *const insert_record =
"INSERT INTO usertable VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/* an answer that has to have this many rows; -1: any number */
static PGresult *
check_result(postgres *p, PGresult *answer, int rows)
{
	ExecStatusType status = PQresultStatus(answer);
	int			got = -1;

	if (status == PGRES_TUPLES_OK)
		got = PQntuples(answer);
	else if (status == PGRES_COMMAND_OK)
		got = atoi(PQcmdTuples(answer));
	if (got < 0)
		die("%s", PQerrorMessage(p->connection));
	if (rows >= 0 && got != rows)
		die("%s: %d rows instead of %d", PQcmdStatus(answer), got, rows);
	return answer;
}

static void
command(postgres *p, const char *sql)
{
	PQclear(check_result(p, PQexec(p->connection, sql), -1));
}

static void
prepare(postgres *p, const char *name, const char *sql)
{
	PQclear(check_result(p, PQprepare(p->connection, name, sql, 0, NULL), -1));
}

static PGresult *
execute(postgres *p, const char *name, int n, const char *const *arguments, int rows)
{
	return check_result(p, PQexecPrepared(p->connection, name, n, arguments, NULL, NULL, 0), rows);
}

static store *
postgres_open(const char *place)
{
	postgres   *p = calloc(1, sizeof(postgres));
	const char *names[] = {"dbname", NULL};
	const char *values[] = {place, NULL};
	char		name[16];
	char		sql[100];

	p->base.m = &postgres_store;
	p->connection = PQconnectdbParams(names, values, 0);
	if (PQstatus(p->connection) != CONNECTION_OK)
		die("%s", PQerrorMessage(p->connection));
	prepare(p, "read", "SELECT * FROM usertable WHERE ycsb_key = $1");
	prepare(p, "scan", "SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2");
	prepare(p, "insert", insert_record);
	for (int i = 0; i < FIELDS; i++)
	{
		snprintf(name, sizeof(name), "update%d", i);
		snprintf(sql, sizeof(sql), "UPDATE usertable SET field%d = $2 WHERE ycsb_key = $1", i);
		prepare(p, name, sql);
	}
	prepare(p, "get", "SELECT value FROM kv WHERE key = $1");
	prepare(p, "set", "INSERT INTO kv VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
	return &p->base;
}

static void
postgres_close(store *s)
{
	postgres   *p = (postgres *) s;

	PQfinish(p->connection);
	free(p);
}

static uint64_t
postgres_count(store *s, kind what)
{
	postgres   *p = (postgres *) s;
	PGresult   *answer;
	uint64_t	n;

	answer = check_result(p, PQexec(p->connection,
									what == RECORDS ? "SELECT count(*) FROM usertable" : "SELECT count(*) FROM kv"), 1);
	n = strtoull(PQgetvalue(answer, 0, 0), NULL, 10);
	PQclear(answer);
	return n;
}

static void
postgres_load_begin(store *s, kind what)
{
	postgres   *p = (postgres *) s;
	PGresult   *answer;

	command(p, what == RECORDS ? "TRUNCATE usertable" : "TRUNCATE kv");
	answer = PQexec(p->connection, what == RECORDS ? "COPY usertable FROM STDIN" : "COPY kv FROM STDIN");
	if (PQresultStatus(answer) != PGRES_COPY_IN)
		die("%s", PQerrorMessage(p->connection));
	PQclear(answer);
}

static void
postgres_load_row(store *s, kind what, const key *k, const value *fields)
{
	postgres   *p = (postgres *) s;
	char		line[KEY_BYTES + FIELDS * (VALUE_BYTES + 1) + 2];
	char	   *end = line;

	memcpy(end, k->name, KEY_BYTES);
	end += KEY_BYTES;
	for (int i = 0; i < (what == RECORDS ? FIELDS : 1); i++)
	{
		*end++ = '\t';
		memcpy(end, fields[i].bytes, VALUE_BYTES);
		end += VALUE_BYTES;
	}
	*end++ = '\n';
	if (PQputCopyData(p->connection, line, end - line) != 1)
		die("%s", PQerrorMessage(p->connection));
}

static void
postgres_load_end(store *s, kind what)
{
	postgres   *p = (postgres *) s;

	if (PQputCopyEnd(p->connection, NULL) != 1)
		die("%s", PQerrorMessage(p->connection));
	PQclear(check_result(p, PQgetResult(p->connection), -1));
	while (PQgetResult(p->connection) != NULL)
		;
	command(p, what == RECORDS ? "VACUUM ANALYZE usertable" : "VACUUM ANALYZE kv");
}

static void
check_record(PGresult *answer, int row)
{
	key			k;

	if (PQnfields(answer) != 1 + FIELDS || PQgetlength(answer, row, 0) != KEY_BYTES)
		die("not a record");
	memcpy(k.name, PQgetvalue(answer, row, 0), KEY_BYTES + 1);
	for (int i = 1; i <= FIELDS; i++)
		check_value(&k, PQgetvalue(answer, row, i), PQgetlength(answer, row, i));
}

static void
postgres_read(store *s, const key *k)
{
	const char *arguments[] = {k->name};
	PGresult   *answer = execute((postgres *) s, "read", 1, arguments, 1);

	if (strcmp(PQgetvalue(answer, 0, 0), k->name) != 0)
		die("%s instead of %s", PQgetvalue(answer, 0, 0), k->name);
	check_record(answer, 0);
	PQclear(answer);
}

static void
postgres_update(store *s, const key *k, int field, const value *v)
{
	const char *arguments[] = {k->name, v->bytes};
	char		name[16];

	snprintf(name, sizeof(name), "update%d", field);
	PQclear(execute((postgres *) s, name, 2, arguments, 1));
}

static void
postgres_insert(store *s, const key *k, const value *fields)
{
	const char *arguments[1 + FIELDS];

	arguments[0] = k->name;
	for (int i = 0; i < FIELDS; i++)
		arguments[1 + i] = fields[i].bytes;
	PQclear(execute((postgres *) s, "insert", 1 + FIELDS, arguments, 1));
}

static int
postgres_scan(store *s, const key *k, int n)
{
	char		limit[16];
	const char *arguments[] = {k->name, limit};
	const char *before = NULL;
	PGresult   *answer;
	int			found;

	snprintf(limit, sizeof(limit), "%d", n);
	answer = execute((postgres *) s, "scan", 2, arguments, -1);
	found = PQntuples(answer);
	if (found == 0 || strcmp(PQgetvalue(answer, 0, 0), k->name) != 0)
		die("a scan does not begin with %s", k->name);
	for (int i = 0; i < found; i++)
	{
		if (before != NULL && strcmp(before, PQgetvalue(answer, i, 0)) >= 0)
			die("a scan is not in order");
		before = PQgetvalue(answer, i, 0);
		check_record(answer, i);
	}
	PQclear(answer);
	return found;
}

/* ------------------------------------------------------------ pipelines
 *
 * As for Redis, the protocol itself, past libpq: that asks for a description of
 * the rows with every execution, and makes an object of each answer.  Between two
 * round trips libpq has nothing in its buffers.
 */

static void
put(postgres *p, const void *bytes, size_t length)
{
	if (p->bytes + length > sizeof(p->buffer))
		die("too much for one round trip");
	memcpy(p->buffer + p->bytes, bytes, length);
	p->bytes += length;
}

static void
put_int(postgres *p, uint32_t number, int size)
{
	uint32_t	big = htonl(number);

	put(p, (char *) &big + sizeof(big) - size, size);
}

static size_t
begin_message(postgres *p, char type)
{
	put(p, &type, 1);
	put_int(p, 0, 4);
	return p->bytes - 4;
}

static void
end_message(postgres *p, size_t at)
{
	uint32_t	length = htonl(p->bytes - at);

	memcpy(p->buffer + at, &length, 4);
}

/* a prepared statement, of one row: parameters and answer are text */
static void
put_execution(postgres *p, const char *name, const key *k, const value *v)
{
	size_t		at = begin_message(p, 'B');

	put(p, "", 1);
	put(p, name, strlen(name) + 1);
	put_int(p, 0, 2);
	put_int(p, v ? 2 : 1, 2);
	put_int(p, KEY_BYTES, 4);
	put(p, k->name, KEY_BYTES);
	if (v)
	{
		put_int(p, VALUE_BYTES, 4);
		put(p, v->bytes, VALUE_BYTES);
	}
	put_int(p, 0, 2);
	end_message(p, at);
	at = begin_message(p, 'E');
	put(p, "", 1);
	put_int(p, 0, 4);
	end_message(p, at);
}

static void
await(postgres *p, short events)
{
	struct pollfd socket = {.fd = PQsocket(p->connection),.events = events};

	poll(&socket, 1, -1);
}

static void
send_all(postgres *p)
{
	size_t		sent = 0;

	while (sent < p->bytes)
	{
		ssize_t		n = send(PQsocket(p->connection), p->buffer + sent, p->bytes - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += n;
		else if (n < 0 && errno == EAGAIN)
			await(p, POLLOUT);
		else if (n == 0 || errno != EINTR)
			die("writing to the server: %s", strerror(errno));
	}
	p->bytes = p->read = 0;
}

/* so many bytes of the answer in one piece */
static const char *
need(postgres *p, size_t bytes)
{
	while (p->bytes - p->read < bytes)
	{
		ssize_t		n;

		if (p->read + bytes > sizeof(p->buffer))
			die("an answer is too long");
		n = recv(PQsocket(p->connection), p->buffer + p->bytes, sizeof(p->buffer) - p->bytes, 0);
		if (n > 0)
			p->bytes += n;
		else if (n < 0 && errno == EAGAIN)
			await(p, POLLIN);
		else if (n == 0 || errno != EINTR)
			die("reading from the server: %s", n == 0 ? "closed" : strerror(errno));
	}
	p->read += bytes;
	return p->buffer + p->read - bytes;
}

static uint32_t
get_int(const char *bytes)
{
	uint32_t	big;

	memcpy(&big, bytes, 4);
	return ntohl(big);
}

/* the next message that has to be of this type */
static const char *
expect(postgres *p, char type, size_t *length)
{
	for (;;)
	{
		const char *head = need(p, 5);
		const char *body;

		*length = get_int(head + 1) - 4;
		body = need(p, *length);
		if (*head == type)
			return body;
		if (*head != 'N' && *head != 'S')
			die("message %c instead of %c: %.*s", *head, type, (int) *length, body);
	}
}

/* n prepared statements in a round trip, each of one row */
static void
pipeline(postgres *p, const char *name, int n, const key *keys, const value *values)
{
	const char *tag = values ? "INSERT 0 1" : "SELECT 1";
	const char *body;
	size_t		length;

	p->bytes = 0;
	for (int i = 0; i < n; i++)
		put_execution(p, name, &keys[i], values ? &values[i] : NULL);
	end_message(p, begin_message(p, 'S'));
	send_all(p);
	for (int i = 0; i < n; i++)
	{
		expect(p, '2', &length);
		if (values == NULL)
		{
			body = expect(p, 'D', &length);
			if (length < 6 || get_int(body + 2) != length - 6)
				die("not a row of one column");
			check_value(&keys[i], body + 6, length - 6);
		}
		body = expect(p, 'C', &length);
		if (length != strlen(tag) + 1 || memcmp(body, tag, length) != 0)
			die("%.*s instead of %s", (int) length, body, tag);
	}
	body = expect(p, 'Z', &length);
	if (length != 1 || *body != 'I' || p->read != p->bytes)
		die("the round trip has not ended");
}

static void
postgres_get(store *s, int n, const key *keys)
{
	const char *arguments[] = {keys[0].name};
	PGresult   *answer;

	if (n > 1)
	{
		pipeline((postgres *) s, "get", n, keys, NULL);
		return;
	}
	answer = execute((postgres *) s, "get", 1, arguments, 1);
	check_value(&keys[0], PQgetvalue(answer, 0, 0), PQgetlength(answer, 0, 0));
	PQclear(answer);
}

static void
postgres_set(store *s, int n, const key *keys, const value *values)
{
	const char *arguments[] = {keys[0].name, values[0].bytes};

	if (n > 1)
		pipeline((postgres *) s, "set", n, keys, values);
	else
		PQclear(execute((postgres *) s, "set", 2, arguments, 1));
}

const store_methods postgres_store = {
	.open = postgres_open,
	.close = postgres_close,
	.count = postgres_count,
	.load_begin = postgres_load_begin,
	.load_row = postgres_load_row,
	.load_end = postgres_load_end,
	.read = postgres_read,
	.update = postgres_update,
	.insert = postgres_insert,
	.scan = postgres_scan,
	.get = postgres_get,
	.set = postgres_set,
};
