#!/bin/bash
#
# The files of monitoring/ fit the server, for a role that has pg_monitor only.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
CREATE ROLE exporter LOGIN IN ROLE pg_monitor;
CREATE TABLE kept (id int PRIMARY KEY, t text) USING mot;
INSERT INTO kept SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
CREATE DATABASE other;
\c other
CREATE EXTENSION mot;
CREATE TABLE hidden (id int PRIMARY KEY) USING mot;
INSERT INTO hidden VALUES (1);
REVOKE CONNECT ON DATABASE other FROM PUBLIC;
CHECKPOINT;
SQL
PGDATABASE=postgres PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/monitoring/check.py"

# of a database to which one may not connect only those who see all know
# shellcheck source=test/tap.sh
. "$here/tap.sh"
TAP_N=1000
sql -d postgres "CREATE ROLE nobody LOGIN"
is "$(sql -d postgres -U exporter "SELECT string_agg(datname || ' ' || rows, ', ' ORDER BY datname) FROM mot_stat_memory_databases")" \
	'other 1, postgres 1000' 'pg_monitor sees the memory of all databases'
is "$(sql -d postgres -U nobody "SELECT string_agg(datname || ' ' || rows, ', ' ORDER BY datname) FROM mot_stat_memory_databases")" \
	'postgres 1000' 'others do of those to which they may connect'
