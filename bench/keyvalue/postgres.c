/*-------------------------------------------------------------------------
 *
 * postgres.c
 *	  A store of rows in a database: the tables of bench/sql/loads/ycsb.sql.
 *
 * All statements are prepared.  Each is a transaction of its own; those of a
 * pipeline are one together.
 *
 *-------------------------------------------------------------------------
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyvalue.h"

typedef struct postgres
{
	store		base;
	PGconn	   *connection;
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

/* n prepared statements in a round trip, each of one row */
static void
pipeline(postgres *p, const char *name, int n, const key *keys, const value *values)
{
	if (PQenterPipelineMode(p->connection) != 1)
		die("%s", PQerrorMessage(p->connection));
	for (int i = 0; i < n; i++)
	{
		const char *arguments[] = {keys[i].name, values ? values[i].bytes : NULL};

		if (PQsendQueryPrepared(p->connection, name, values ? 2 : 1, arguments, NULL, NULL, 0) != 1)
			die("%s", PQerrorMessage(p->connection));
	}
	if (PQpipelineSync(p->connection) != 1)
		die("%s", PQerrorMessage(p->connection));
	for (int i = 0; i < n; i++)
	{
		PGresult   *answer = check_result(p, PQgetResult(p->connection), 1);

		if (values == NULL)
			check_value(&keys[i], PQgetvalue(answer, 0, 0), PQgetlength(answer, 0, 0));
		PQclear(answer);
		if (PQgetResult(p->connection) != NULL)
			die("more than one answer");
	}
	PQclear(PQgetResult(p->connection));	/* of the synchronisation */
	if (PQexitPipelineMode(p->connection) != 1)
		die("%s", PQerrorMessage(p->connection));
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
