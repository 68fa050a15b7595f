#!/bin/bash
#
# pgbench, unmodified, on MOT tables: it loads, its three built-in scripts run
# at 16 clients on scale 1 (one branch row that everybody updates) without a
# failed transaction, and afterwards the balances agree.

set -euo pipefail
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"

SECONDS_EACH=${SECONDS_EACH:-5}
log=$TMPDIR/pgbench.log

createdb bench
psql -X -q -d bench -c 'CREATE EXTENSION mot'
export PGDATABASE=bench PGOPTIONS='-c mot.default_engine=mot'

kinds()
{
	sql "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname)
		FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'pgbench%' AND relkind = 'r'"
}
all_mot="pgbench_accounts mot, pgbench_branches mot, pgbench_history mot, pgbench_tellers mot"

# ----------------------------------------------------------------- loading

ok "pgbench -i -s 10" pgbench -i -q -s 10
is "$(kinds)" "$all_mot" "its tables are MOT tables"
is "$(sql 'SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_tellers),
	(SELECT count(*) FROM pgbench_branches)')" "1000000|100|10" "all rows are there"
is "$(sql "SELECT string_agg(conname, ', ' ORDER BY conname) FROM pg_constraint WHERE contype = 'p' AND conname LIKE 'pgbench%'")" \
	"pgbench_accounts_pkey, pgbench_branches_pkey, pgbench_tellers_pkey" "with their primary keys"
ok "pgbench -i with rows made by the server (-I dtGvp)" pgbench -i -q -s 2 -I dtGvp
is "$(sql 'SELECT count(*), min(aid), max(aid) FROM pgbench_accounts')" "200000|1|200000" "all rows are there"
ok "pgbench -i -s 1 over the old tables" pgbench -i -q -s 1
is "$(kinds)" "$all_mot" "again MOT tables"

# by way of vacuumdb, too, as after a restore
ok "ANALYZE of everything" psql -X -q -v ON_ERROR_STOP=1 -c ANALYZE -c 'VACUUM ANALYZE'
ok "vacuumdb --analyze" vacuumdb -q --analyze --jobs 2 bench
is "$(sql "SELECT reltuples FROM pg_class WHERE relname = 'pgbench_accounts'")" 100000 "the rows were counted"

# ----------------------------------------------------------------- running

# what OPTION ...: run with 16 clients; no transaction may fail
run()
{
	local what=$1
	shift
	ok "$what at 16 clients" pgbench -n -c 16 -j 2 -T "$SECONDS_EACH" "$@"
	cp "$TMPDIR/tap.out" "$log"
	is "$(sed -n 's/^number of failed transactions: \([0-9]*\) .*/\1/p' "$log")" 0 "$what: no failed transaction"
	is "$(grep -c -i 'aborted\|error' "$log" || true)" 0 "$what: no client gave up"
	sed -n 's/^number of transactions actually processed: /# processed: /p' "$log"
}

balances()
{
	sql "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT coalesce(sum(delta), 0) FROM pgbench_history),
		(SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches),
		(SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)"
}

for mode in simple extended prepared; do
	before=$(sql 'SELECT count(*) FROM pgbench_history')
	run "tpcb-like, $mode" -M "$mode" -b tpcb-like
	is "$(sql 'SELECT count(*) FROM pgbench_history')" \
		"$((before + $(sed -n 's/^number of transactions actually processed: //p' "$log")))" \
		"tpcb-like, $mode: one history row a transaction"
	is "$(balances)" "t|t|t" "tpcb-like, $mode: the balances agree"
done
run "select-only" -M prepared -b select-only
is "$(balances)" "t|t|t" "select-only: the balances agree"
run "simple-update" -M prepared -b simple-update
is "$(balances)" "t|t|f" "simple-update: accounts agree with the history, tellers with branches"

ok "pgbench's own VACUUM and TRUNCATE before a run" pgbench -c 2 -t 10
is "$(sql 'SELECT count(*) FROM pgbench_history')" 20 "history was emptied first"

done_testing
