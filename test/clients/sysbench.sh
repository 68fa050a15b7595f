#!/bin/bash
#
# sysbench's oltp_read_write, unmodified, on MOT tables: prepare, run, cleanup.
# Its transactions update rows in any order, so that two can deadlock, and
# delete a row and insert it again under the same id, so that of two that do
# this at once the second gets a duplicate key.  Both happen on heap tables,
# too, and sysbench repeats the transaction.  Any other error is a failure.

set -euo pipefail
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"

tables=2
size=20000

createdb sbtest
psql -X -q -d sbtest -c 'CREATE EXTENSION mot'
export PGDATABASE=sbtest PGOPTIONS='-c mot.default_engine=mot'

sb()
{
	sysbench --db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user="$PGUSER" \
		--pgsql-db=sbtest --tables=$tables --table-size=$size --threads=8 --time="${SECONDS_EACH:-5}" \
		oltp_read_write "$@"
}

ok "prepare" sb prepare
is "$(sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot'")" \
	$tables "its tables are MOT tables"
is "$(sql "SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY indexrelid) FROM pg_index
		WHERE indrelid = 'sbtest1'::regclass")" \
	"CREATE UNIQUE INDEX sbtest1_pkey ON public.sbtest1 USING btree (id); CREATE INDEX k_1 ON public.sbtest1 USING btree (k)" \
	"with their indexes"

ok "run" sb run
grep -E 'transactions:|ignored errors:' "$TMPDIR/tap.out" | sed 's/^ */# /'
is "$(awk '/reconnects:/ {print $2}' "$TMPDIR/tap.out")" 0 "no connection was lost"
is "$(awk '/ transactions:/ {print ($2 > 0)}' "$TMPDIR/tap.out")" 1 "transactions were done"
is "$(grep -E ' (ERROR|FATAL|PANIC): ' "$CLUSTER_LOG" |
	grep -vE 'duplicate key value violates unique constraint|deadlock detected' || true)" "" \
	"no error but deadlocks and duplicate keys"

for t in sbtest1 sbtest2; do
	is "$(sql "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM $t")" "$size|$size|1|$size" "$t has all its rows"
	is "$(sql "SET enable_seqscan = off; SET enable_sort = off;
			SELECT count(*), sum(id) FROM (SELECT id, k FROM $t WHERE k >= 0 ORDER BY k) s")" \
		"$(sql "SET enable_indexscan = off; SELECT count(*), sum(id) FROM $t")" "$t: its second index leads to the same rows"
done

ok "cleanup" sb cleanup
is "$(sql "SELECT count(*) FROM pg_class WHERE relname LIKE 'sbtest%'")" 0 "nothing is left"

done_testing
