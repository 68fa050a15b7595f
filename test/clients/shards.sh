#!/bin/bash
#
# Several servers with ordinary memory-optimized tables as the partitions of
# one, by postgres_fdw (bench/shards.sh): what is pushed down, TPC-C over all of
# them with its conditions of consistency, transactions that go to two
# others in conflict, and what is left of one when a server dies beside
# COMMIT (a transaction manager leaves nothing half done: test/ecosystem/shards).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"
# shellcheck source=test/sandbox.sh
. "$here/sandbox.sh"
SANDBOX=$TMPDIR/shards SANDBOX_USER=$(id -un) PGBIN=$(dirname "$(command -v postgres)") TOP=$(dirname "$here")
# shellcheck source=bench/shards.sh
. "$TOP/bench/shards.sh"
# shellcheck source=test/ecosystem/xa/servers.sh
. "$here/ecosystem/xa/servers.sh"

mkdir -p "$SANDBOX/tmp" "$SANDBOX/socket"
export PGHOST=$SANDBOX/socket
trap sandbox_stop_clusters EXIT
items=300 customers=30
shards_start <<-'CONF'
	shared_preload_libraries = 'mot'
	mot.max_memory = '128MB'
	shared_buffers = '32MB'
	max_connections = 40
	deadlock_timeout = '100ms'
	autovacuum = off
CONF
shards_load "$items" "$customers"
for n in 1 2 3; do
	is "$(on_shard $n -c "SELECT amname, count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'r'
		AND relnamespace = 'public'::regnamespace GROUP BY 1")" "mot|10" "server $n has memory-optimized tables"
	is "$(on_shard $n -c "SELECT count(*), min(s_w_id), max(s_w_id) FROM stock_$n")" "$((2 * items))|$((2 * n - 1))|$((2 * n))" "... with its part"
done
is "$(shards_check)" "" "consistent as loaded"

# ------------------------------------------------------------ pushed down

for mode in force_custom_plan force_generic_plan; do
	removed= w=5
	[ $mode = force_custom_plan ] || { removed=$'\nSubplans Removed: 2' w='$1::integer'; }
	is "$(on_shard 1 -c "SET plan_cache_mode = $mode" -c 'PREPARE look (int) AS SELECT s_quantity FROM stock WHERE s_w_id = $1 AND s_i_id = 7' \
		-c 'EXPLAIN (VERBOSE, COSTS OFF) EXECUTE look(5)' | grep -oE 'Remote SQL: .*|(Foreign|Seq|Index) Scan|Subplans .*' | LC_ALL=C sort)" \
		"Foreign Scan"$'\n'"Remote SQL: SELECT s_quantity FROM public.stock_3 WHERE ((s_w_id = $w)) AND ((s_i_id = 7))$removed" \
		"a key look-up is the other server's ($mode)"
done
is "$(on_shard 1 -c "EXPLAIN (VERBOSE, COSTS OFF) UPDATE stock SET s_quantity = s_quantity - 1, s_ytd = s_ytd + 1 WHERE s_w_id = 5 AND s_i_id = 7" |
	sed -n 's/^ *Remote SQL: //p')" "UPDATE public.stock_3 SET s_quantity = (s_quantity - 1), s_ytd = (s_ytd + 1) WHERE ((s_w_id = 5)) AND ((s_i_id = 7))" "so is an update"
is "$(on_shard 1 -c "EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM new_order WHERE no_w_id = 5 AND no_d_id = 1 AND no_o_id = 7" | sed -n 's/^ *Remote SQL: //p')" \
	"DELETE FROM public.new_order_3 WHERE ((no_w_id = 5)) AND ((no_d_id = 1)) AND ((no_o_id = 7))" "... a delete"
is "$(on_shard 1 -c "EXPLAIN (VERBOSE, COSTS OFF) SELECT s_quantity FROM stock WHERE s_w_id = 5 AND s_i_id = 7 FOR UPDATE" | sed -n 's/^ *Remote SQL: .*\(FOR .*\)/\1/p')" \
	"FOR UPDATE" "... a lock"
ok "one's own are looked up as without the others" bash -c "psql -XAt -p $((SHARD_PORT + 1)) -c 'EXPLAIN (VERBOSE, COSTS OFF) SELECT s_quantity FROM stock WHERE s_w_id = 1 AND s_i_id = 7' |
	grep -q 'Index.* using stock_1_pkey on public.stock_1'"

# ------------------------------------------- what is not pushed down is right

on_shard 1 -c "UPDATE stock SET s_data = left(s_data || random(), 50) WHERE s_w_id = 5 AND s_i_id < 10" -c "
	WITH gone AS (DELETE FROM history USING customer WHERE h_c_id = c_id AND h_c_d_id = c_d_id AND h_c_w_id = c_w_id
		AND random() >= 0 AND h_w_id IN (1, 5) RETURNING history.*)
	INSERT INTO history SELECT * FROM gone"
is "$(on_shard 3 -c "SELECT count(*), count(DISTINCT s_data) = 9 FROM stock_3 WHERE s_w_id = 5 AND s_data LIKE '%0.%'")" "9|t" "rows are changed one by one"
is "$(on_shard 1 -c "BEGIN; UPDATE history SET h_w_id = 5 WHERE h_w_id = 1 AND h_d_id <= 5; SELECT h_w_id, count(*) FROM history GROUP BY 1 ORDER BY 1; ROLLBACK")" \
	$'1|150\n2|300\n3|300\n4|300\n5|450\n6|300' "... move to another server"
is "$(shards_check)" "" "... deleted with a join; all are there"

# ---------------------------------------------------------------- traffic

shards_scripts "$TMPDIR/scripts"
traffic=$(shards_traffic "$TMPDIR/scripts" "${SECONDS_EACH:-3}" 2 "$items" "$customers")
ok "TPC-C at each server, in part with the others' warehouses" test "${traffic%% *}" -gt 0
echo "# ${traffic% * *} tpmC on $SHARDS servers together"
is "$(shards_check)" "" "... leaves all consistent, seen from each"
ok "... and some went to the others" test "$(on_shard 1 -c "SELECT count(*) FROM order_line WHERE ol_w_id <= 2 AND ol_supply_w_id > 2")" -gt 0

# other plans: scans of all servers at once, joins and aggregates of partitions
for n in 1 2 3; do
	on_shard $n -f - <<-'SQL'
		SELECT format('ALTER SERVER %I OPTIONS (ADD async_capable %L)', srvname, 'true') FROM pg_foreign_server WHERE srvname ~ '^shard' \gexec
	SQL
done
is "$(on_shard 2 -c "EXPLAIN SELECT sum(s_ytd) FROM stock" | grep -c 'Async Foreign Scan')" 2 "both others are scanned at once"
is "$(PGOPTIONS="-c enable_partitionwise_join=on -c enable_partitionwise_aggregate=on" shards_check)" "" "... and all is consistent"

# From one server to two others, who have conflicts: postgres_fdw commits there one after the other,
# at REPEATABLE READ.
cat >"$TMPDIR/between.sql" <<'SQL'
\set cents random(1, 100)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :cents WHERE w_id = 3;
UPDATE warehouse SET w_ytd = w_ytd - :cents WHERE w_id = 5;
COMMIT;
SQL
both="SELECT sum(w_ytd) FROM warehouse WHERE w_id IN (3, 5)"
before=$(on_shard 1 -c "$both")
ok "transactions that change rows of two others, in conflict" \
	as_user pgbench -n -c 6 -t 50 --max-tries=10000 -p "$((SHARD_PORT + 1))" -f "$TMPDIR/between.sql" postgres
sed -n 's/^number of transactions actually\|^total number of retries/# &/p' "$TMPDIR/tap.out"
is "$(on_shard 1 -c "$both")" "$before" "... are done on both or on none"

# One's own rows and another's, above READ COMMITTED, where somebody else wants the same row:
# postgres_fdw has committed there before it is known whether it can be done here.
before=$(on_shard 1 -c "SELECT sum(w_ytd * (CASE w_id WHEN 1 THEN 1 ELSE -1 END)) FROM warehouse WHERE w_id IN (1, 3)")
echo "psql -XAtq -p $((SHARD_PORT + 1)) -c \"SET lock_timeout = '1s'\" -c 'UPDATE warehouse_1 SET w_ytd = w_ytd + 0 WHERE w_id = 1'" >"$TMPDIR/other.sh"
on_shard 1 -v ON_ERROR_STOP=0 -f - >/dev/null 2>&1 <<-SQL
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	UPDATE warehouse_1 SET w_ytd = w_ytd + 1 WHERE w_id = 1;
	UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 3;
	\\! bash $TMPDIR/other.sh
	COMMIT;
SQL
is "$(on_shard 1 -c "SELECT sum(w_ytd * (CASE w_id WHEN 1 THEN 1 ELSE -1 END)) FROM warehouse WHERE w_id IN (1, 3)")" "$before" \
	"one's own and another's, in conflict: both or none"

# ------------------------------------------------- a server dies at COMMIT

# It is found out about at the one that is committed second, when the first one has committed; or
# first.  Which is which is up to postgres_fdw.
half=0
for victim in 2 3; do
	echo "$(declare -f children_of kill_server); SANDBOX=$SANDBOX; kill_server shard$victim" >"$TMPDIR/kill.sh"
	before=$(on_shard 1 -c "SELECT w_ytd FROM warehouse WHERE w_id IN (3, 5) ORDER BY w_id" | tr '\n' ' ')
	on_shard 1 -v ON_ERROR_STOP=0 -f - >/dev/null 2>"$TMPDIR/commit" <<-SQL
		BEGIN;
		UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 3;
		UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 5;
		\\! bash $TMPDIR/kill.sh
		COMMIT;
	SQL
	ok "COMMIT without server $victim fails" test -s "$TMPDIR/commit"
	PGPORT=$((SHARD_PORT + victim)) cluster_start "shard$victim"
	after=$(on_shard 1 -c "SELECT w_ytd FROM warehouse WHERE w_id IN (3, 5) ORDER BY w_id" | tr '\n' ' ')
	[ "$after" = "$before" ] || half=$((half + 1))
done
is "$half" 1 "postgres_fdw alone leaves a transaction over two others half done: one of these"

for n in 1 2 3; do
	is "$(on_shard $n -c "SELECT string_agg(first_problem, ', ') FROM pg_class c JOIN pg_am a ON a.oid = relam AND amname = 'mot', mot_verify(c.oid) WHERE relkind = 'r'")" "" \
		"indexes of server $n have what its rows say"
	PGPORT=$((SHARD_PORT + n)) cluster_stop "shard$n"
	ok "no crash in its log" bash -c "! grep -nE 'PANIC:|TRAP:|was terminated by signal' '$SANDBOX/shard$n.log'"
done
done_testing
