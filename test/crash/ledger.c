/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  A client of the crash tests: writes a ledger, and notes outside of the
 *	  database what the database acknowledged.
 *
 *	ledger CONNINFO ROLE CLIENT FIRST SEED NOTES ENGINE SYNC
 *
 * ROLE is writer, reader, ddl, database (makes copies of db_template, and drops
 * them) or nuisance (cancels what others are at); FIRST the number of the
 * first entry.  Every
 * transaction of a writer adds entry number n to ledger_a (kind a: mot),
 * ledger_b (kind b: heap) or both (kind x: mixed), and moves an amount between
 * accounts.  NOTES gets a line for each step:
 *
 *	t n kind	tried
 *	c n kind	committed: the server said so
 *	f n kind	failed or rolled back: must not be found
 *	s client n	a reader was shown entry n of that client
 *
 * The client ends when the connection does.  What the tables look like is in
 * Ledger.pm.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libpq-fe.h"

#define ACCOUNTS	20
#define TWIN_KEYS	40
#define DDL_TABLES	5

static PGconn *conn;
static int	client;
static int	notes;
static uint64_t state;
static const char *engine;

/* the server's last words */
static void
ignore(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

static uint32_t
draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t) ((state >> 16) % below);
}

static void
note(const char *format,...)
{
	char		line[64];
	va_list		args;
	int			n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(notes, line, n) != n)
		exit(3);
}

/* false: the statement failed; ends the program when the connection is gone */
static bool
run(char **value, const char *format,...)
{
	char		sql[2048];
	va_list		args;
	PGresult   *res;
	ExecStatusType status;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	res = PQexec(conn, sql);
	status = PQresultStatus(res);
	if (PQstatus(conn) != CONNECTION_OK)
		exit(0);
	if (status == PGRES_TUPLES_OK && value != NULL)
	{
		free(*value);
		*value = strdup(PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "");
	}
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
	{
		const char *code = PQresultErrorField(res, PG_DIAG_SQLSTATE);

		/* the server is going down */
		if (code == NULL || strncmp(code, "57P", 3) == 0)
			exit(0);
		/* what can happen to anybody: conflicts, deadlocks, time-outs */
		if (strcmp(code, "40001") != 0 && strcmp(code, "40P01") != 0 && strcmp(code, "55P03") != 0 &&
			strcmp(code, "57014") != 0 && strcmp(code, "23505") != 0)
			fprintf(stderr, "client %d: %s: %s", client, sql, PQresultErrorMessage(res));
		PQclear(res);
		return false;
	}
	if (strcmp(sql, "COMMIT") == 0 && strcmp(PQcmdStatus(res), "COMMIT") != 0)
	{
		PQclear(res);
		return false;
	}
	PQclear(res);
	return true;
}

/* make a table by one door or the other */
static bool
create_table(const char *table, const char *columns)
{
	if (strcmp(engine, "mot") == 0 && draw(2))
		return run(NULL, "CREATE FOREIGN TABLE %s (%s) SERVER mot_server", table, columns);
	return run(NULL, "CREATE TABLE %s (%s) USING %s", table, columns, engine);
}

static bool
entry(const char *table, long n, const char *kind, int from, int to, int amount)
{
	uint32_t	d = draw(1000);
	unsigned	times = d < 2 ? 30000 : d < 15 ? 600 : d < 200 ? draw(40) : draw(4);

	return run(NULL, "INSERT INTO %s SELECT %d, %ld, '%s', %d, %d, %d, p, md5(p) FROM "
			   "(SELECT coalesce(string_agg(md5(i::text || '%ld'), ''), '') p FROM generate_series(1, %u) i) s",
			   table, client, n, kind, from, to, amount, n, times);
}

static bool
move(const char *from_table, int from, const char *to_table, int to, int amount)
{
	/* one order for all, mostly: deadlocks are resolved slowly */
	if (strcmp(from_table, to_table) == 0 && to < from)
		return run(NULL, "UPDATE %s SET balance = balance + %d WHERE id = %d", to_table, amount, to) &&
			run(NULL, "UPDATE %s SET balance = balance - %d WHERE id = %d", from_table, amount, from);
	return run(NULL, "UPDATE %s SET balance = balance - %d WHERE id = %d", from_table, amount, from) &&
		run(NULL, "UPDATE %s SET balance = balance + %d WHERE id = %d", to_table, amount, to);
}

/* the same to both twins */
static bool
twins(void)
{
	static const char *const table[] = {"twin_a", "twin_b"};
	int			k = draw(TWIN_KEYS);
	int			what = draw(10);
	uint32_t	v = draw(1000000);
	uint32_t	times = draw(12);

	if (!run(NULL, "SELECT pg_advisory_xact_lock(%d)", k))
		return false;
	for (int i = 0; i < 2; i++)
	{
		bool		good;

		if (what < 4)
			good = run(NULL, "INSERT INTO %s VALUES (%d, 0, %u, repeat('%x', %u)) "
					   "ON CONFLICT (k, variant) DO UPDATE SET v = excluded.v, t = excluded.t",
					   table[i], k, v, v, times);
		else if (what < 6)
			good = run(NULL, "DELETE FROM %s WHERE k = %d", table[i], k);
		else if (what < 8)
			good = run(NULL, "UPDATE %s SET variant = 1 - variant WHERE k = %d AND NOT EXISTS "
					   "(SELECT FROM %s o WHERE o.k = %d AND o.variant = 1)", table[i], k, table[i], k);
		else
			good = run(NULL, "UPDATE %s SET v = v + 1, t = CASE WHEN v %% 3 = 0 THEN NULL ELSE t || '+' END "
					   "WHERE k = %d", table[i], k);
		if (!good)
			return false;
	}
	return true;
}

static bool
savepoints(const char *table, long n)
{
	if (!run(NULL, "SAVEPOINT s") ||
		!run(NULL, "INSERT INTO %s VALUES (%d, -%ld, 'j', 0, 0, 0, '', '')", table, client, n) ||
		!run(NULL, "UPDATE accounts_a SET balance = balance + 1000000 WHERE id = %u", draw(ACCOUNTS)) ||
		!run(NULL, "ROLLBACK TO s"))
		return false;
	return draw(2) == 0 || run(NULL, "RELEASE s");
}

static bool
transfer(long n, char kind)
{
	static const char *const levels[] = {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"};
	int			from = draw(ACCOUNTS);
	int			to = (from + 1 + draw(ACCOUNTS - 1)) % ACCOUNTS;
	int			amount = draw(100);
	char		name[2] = {kind, '\0'};
	uint32_t	level = draw(8);

	if (!run(NULL, "BEGIN ISOLATION LEVEL %s", kind == 'x' || level > 2 ? levels[0] : levels[level]))
		return false;
	if (draw(12) == 0 && !savepoints(kind == 'b' ? "ledger_b" : "ledger_a", n))
		return false;
	if (kind != 'b' && !entry("ledger_a", n, name, from, to, amount))
		return false;
	if (kind != 'a' && !entry("ledger_b", n, name, from, to, amount))
		return false;
	if (kind == 'x' && draw(2) == 0 && !twins())
		return false;
	if (!move(kind == 'b' ? "accounts_b" : "accounts_a", from,
			  kind == 'a' ? "accounts_a" : "accounts_b", to, amount))
		return false;
	if (kind == 'x' && draw(2) == 0 && !twins())
		return false;
	if (draw(30) == 0)
		return false;
	return run(NULL, "COMMIT");
}

/* One table of this client's own is made, filled, changed, dropped. */
static bool
definition(long n)
{
	char	   *known = NULL;
	int			t = draw(DDL_TABLES);
	uint32_t	what = draw(17);
	bool		exists;
	bool		good = true;
	char		table[32];

	snprintf(table, sizeof(table), "dt_%d_%d", client, t);
	if (!run(NULL, "BEGIN") ||
		!run(&known, "SELECT count(*) FROM ddl_state WHERE name = '%s'", table))
		return false;
	exists = strcmp(known, "1") == 0;
	free(known);

	if (!exists)
	{
		if (what < 8)
			good = create_table(table, "id int PRIMARY KEY, v text, n bigint") &&
				run(NULL, "INSERT INTO %s SELECT i, 'v' || i %% 7, i * %u FROM generate_series(1, %u) i",
					table, draw(100), draw(300));
		else if (what < 13)
			good = create_table(table, "id int, v text, n bigint") &&
				run(NULL, "INSERT INTO %s SELECT i %% 5, NULL, i FROM generate_series(1, %u) i", table, draw(60)) &&
				run(NULL, "DELETE FROM %s WHERE id = 2", table);
		else
			good = run(NULL, "CREATE TABLE %s USING %s AS SELECT i AS id, md5(i::text) AS v, i::bigint * 3 AS n "
					   "FROM generate_series(1, %u) i", table, engine, draw(4000));
		good = good && run(NULL, "INSERT INTO ddl_state VALUES ('%s', 0, 0)", table);
	}
	else
		switch (what)
		{
			case 0:
			case 1:
				good = run(NULL, "DROP TABLE %s", table) &&
					run(NULL, "DELETE FROM ddl_state WHERE name = '%s'", table);
				break;
			case 2:
				good = run(NULL, "TRUNCATE %s", table);
				break;
			case 3:
				good = run(NULL, "INSERT INTO %s (id, v, n) SELECT -i, 'before', 0 FROM generate_series(1, 9) i", table) &&
					run(NULL, "TRUNCATE %s", table) &&
					run(NULL, "INSERT INTO %s (id, v, n) SELECT i, 'after', i FROM generate_series(1, %u) i", table, draw(50));
				break;
			case 4:
			case 5:
				good = run(NULL, "CREATE INDEX IF NOT EXISTS %s_v ON %s (v, n)", table, table);
				break;
			case 6:
				good = run(NULL, "DROP INDEX IF EXISTS %s_v", table);
				break;
			case 7:
				good = run(NULL, "ALTER TABLE %s ADD COLUMN IF NOT EXISTS c%u int DEFAULT %u", table, draw(3), draw(100));
				break;
			case 8:
				good = run(NULL, "ALTER TABLE %s ADD COLUMN IF NOT EXISTS e%u text", table, draw(3));
				break;
			case 9:
				good = run(NULL, "DELETE FROM %s WHERE id %% 3 = 0", table);
				break;
			case 10:
				good = run(NULL, "SAVEPOINT s") &&
					run(NULL, "TRUNCATE %s", table) &&
					run(NULL, "CREATE INDEX ON %s (n)", table) &&
					run(NULL, "ROLLBACK TO s") &&
					run(NULL, "UPDATE %s SET n = n + 1", table);
				break;
			case 11:
				/* other rows under the old name, or the old ones after all */
				good = run(NULL, "SAVEPOINT s") &&
					run(NULL, "DROP TABLE %s", table) &&
					run(NULL, "CREATE TABLE %s USING %s AS SELECT i AS id, 'anew'::text AS v, i::bigint AS n "
						"FROM generate_series(1, %u) i", table, engine, draw(200)) &&
					(draw(2) == 0 || run(NULL, "ROLLBACK TO s"));
				break;
			case 12:
				/* rows are written anew */
				good = run(NULL, "ALTER TABLE %s ALTER COLUMN n TYPE %s", table, draw(2) ? "bigint" : "numeric");
				break;
			case 13:
				good = run(NULL, "ALTER TABLE %s DROP COLUMN IF EXISTS e%u", table, draw(3));
				break;
			case 14:
				good = run(NULL, "REINDEX TABLE %s", table);
				break;
			default:
				good = run(NULL, "UPDATE %s SET v = v || '.', n = n + %u", table, draw(10));
		}
	if (good && (!exists || what > 1))
		good = run(NULL, "UPDATE ddl_state SET (n, total) = (SELECT count(*), coalesce(sum(n), 0) FROM %s) "
				   "WHERE name = '%s'", table, table);
	return good && entry("ledger_a", n, "x", 0, 0, 0) && entry("ledger_b", n, "x", 0, 0, 0) &&
		draw(10) != 0 && run(NULL, "COMMIT");
}

static void
look(void)
{
	PGresult   *res = PQexec(conn, "SELECT client, max(n) FROM ledger_a GROUP BY client "
							 "UNION ALL SELECT client, max(n) FROM ledger_b GROUP BY client");

	if (PQstatus(conn) != CONNECTION_OK)
		exit(0);
	if (PQresultStatus(res) == PGRES_TUPLES_OK)
		for (int i = 0; i < PQntuples(res); i++)
			note("s %s %s\n", PQgetvalue(res, i, 0), PQgetvalue(res, i, 1));
	PQclear(res);
	usleep(20000);
}

static void
databases(void)
{
	char	   *known = NULL;
	int			i = draw(3);

	if (run(&known, "SELECT count(*) FROM pg_database WHERE datname = 'db_%d'", i))
	{
		if (strcmp(known, "1") == 0)
			(void) run(NULL, "DROP DATABASE db_%d", i);
		else
			(void) run(NULL, "CREATE DATABASE db_%d TEMPLATE db_template STRATEGY %s", i, draw(2) ? "wal_log" : "file_copy");
	}
	free(known);
	usleep(draw(100000));
}

/* whatever is cancelled has happened or not, and says which */
static void
disturb(void)
{
	usleep(5000 + draw(60000));
	(void) run(NULL, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state <> 'idle' "
			   "AND backend_type = 'client backend' AND query !~ 'CHECKPOINT' ORDER BY random() LIMIT 1");
}

int
main(int argc, char **argv)
{
	const char *role;
	long		n;

	if (argc != 9)
	{
		fprintf(stderr, "usage: ledger CONNINFO ROLE CLIENT FIRST SEED NOTES ENGINE SYNC\n");
		return 2;
	}
	role = argv[2];
	client = atoi(argv[3]);
	n = atol(argv[4]);
	state = strtoull(argv[5], NULL, 10) * 2654435761u + 88172645463325252ull + (uint64_t) client * 7919;
	for (int i = 0; i < 20; i++)
		(void) draw(2);
	notes = open(argv[6], O_WRONLY | O_CREAT | O_APPEND, 0644);
	engine = argv[7];
	if (notes < 0)
		return 3;

	conn = PQconnectdb(argv[1]);
	if (PQstatus(conn) != CONNECTION_OK)
		return 0;
	PQsetNoticeProcessor(conn, ignore, NULL);
	if (!run(NULL, "SET synchronous_commit = %s", argv[8]) ||
		!run(NULL, "SET deadlock_timeout = '50ms'; SET client_min_messages = error"))
		return 1;

	for (;; n++)
	{
		char		kind;
		bool		good;

		if (strcmp(role, "reader") == 0)
		{
			look();
			continue;
		}
		if (strcmp(role, "nuisance") == 0)
		{
			disturb();
			continue;
		}
		if (strcmp(role, "database") == 0)
		{
			databases();
			continue;
		}
		if (strcmp(role, "ddl") == 0)
			kind = 'x';
		else
			kind = "aaabxx"[draw(6)];
		note("t %ld %c\n", n, kind);
		good = strcmp(role, "ddl") == 0 ? definition(n) : transfer(n, kind);
		if (!good)
		{
			(void) run(NULL, "ROLLBACK");
			note("f %ld %c\n", n, kind);
		}
		else
			note("c %ld %c\n", n, kind);
		if (strcmp(role, "ddl") == 0)
			usleep(draw(20000));
	}
}
