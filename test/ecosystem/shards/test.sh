# TPC-C over three servers with ordinary memory-optimized tables (bench/shards.sh), each transaction
# one of Narayana's over those that it touches (the program is the one of test/ecosystem/xa): the
# manager, or servers, are killed under load, and the manager's recovery ends what was begun.

box=$SANDBOX
. "$HERE/../../sandbox.sh"
. "$HERE/../xa/servers.sh"
SANDBOX=$box TOP=$HERE/../../..
SANDBOX_USER=$(stat -c %U "$SANDBOX/main") PGBIN=$(dirname "$(command -v postgres)")
SHARD_PORT=$((PGPORT + 20)) PGDATABASE_OF_TEST=$PGDATABASE
. "$TOP/bench/shards.sh"
ports=() items=200 customers=30 cache=${CACHE%/*}/xa
for n in 1 2 3; do ports+=($((SHARD_PORT + n))); done
work=$SANDBOX/tmp/shards
rm -rf "$work"
cp -r "$HERE/../xa" "$work"
mkdir -p "$work/store" "$cache"

export PGDATABASE=postgres
shards_start <<-CONF
	shared_preload_libraries = 'mot'
	listen_addresses = '127.0.0.1'
	max_connections = 60
	max_prepared_transactions = 50
	mot.max_memory = '128MB'
	shared_buffers = '32MB'
CONF
shards_load "$items" "$customers"
ok "the program builds" mvn -q -B -f "$work/pom.xml" -Dmaven.repo.local="$cache/m2" compile dependency:copy-dependencies -DoutputDirectory="$cache/lib"
program() { exec java -cp "$work/target/classes:$cache/lib/*" Transfers "$work/store" "${ports[@]}" "$@"; }

what=(nothing program 2 "program 1 3" 3 "program 1 2 3")
for round in $(seq "${ROUNDS:-6}"); do
	victims=${what[$(((round - 1) % ${#what[@]}))]}
	rm -f "$work/stop"
	(cd "$work" && program warehouses $((round * 10000000)) 300 "$WAREHOUSES" "$items" "$customers") >"$work/done.$round" 2>"$work/errors.$round" &
	program=$!
	ok "round $round: it works" answers "$work/done.$round" 20
	killed=()
	for n in ${victims//[a-z]/}; do killed+=($((SHARD_PORT + n))); done
	[ "$victims" != program ] || killed=("${ports[@]}")
	[ ${#killed[@]} = 0 ] || ok "... something is prepared when $victims is killed" stand_still $program "${killed[@]}"
	for victim in $victims; do
		case $victim in
			program) kill -9 $program ;;
			[123]) kill_server shard$victim ;;
		esac
	done
	for victim in ${victims//[a-z]/}; do PGPORT=$((SHARD_PORT + victim)) cluster_start shard$victim; done
	kill -CONT $program 2>/dev/null || true
	touch "$work/stop"
	wait $program 2>/dev/null || true
	(cd "$work" && program recover) >"$work/recovery.$round" 2>>"$work/errors.$round" || true
	echo "# round $round, killed: $victims; $(grep -cE '^(paid|ordered|delivered)' "$work/done.$round") transactions, $(sed -n 's/^to recover/prepared:/p' "$work/recovery.$round")"

	is "$(sed -n 's/^left //p' "$work/recovery.$round"; for n in 1 2 3; do on_shard $n -c 'SELECT count(*) FROM pg_prepared_xacts'; done)" \
		$'0\n0\n0\n0' "killed: $victims: nothing is left prepared"
	is "$(shards_check)" "" "... TPC-C's conditions hold over all servers, seen from each"
	is "$(sed -n 's/^paid //p' "$work"/done.* | LC_ALL=C sort | LC_ALL=C comm -23 - <(on_shard 1 -c "SELECT h_data FROM history" | LC_ALL=C sort) | head)" "" \
		"... each payment that was acknowledged is there"
	is "$(sed -n 's/^ordered //p' "$work"/done.* | LC_ALL=C sort | LC_ALL=C comm -23 - \
		<(on_shard 1 -c "SELECT o_w_id || ' ' || o_d_id || ' ' || o_id FROM orders" | LC_ALL=C sort) | head)" "" "... and each order"
done
ok "there were some" test "$(cat "$work"/done.* | wc -l)" -ge $((${ROUNDS:-6} * 20))
ok "some over several servers" test "$(on_shard 1 -c "SELECT count(*) FROM history WHERE (h_w_id - 1) / 2 <> (h_c_w_id - 1) / 2")" -gt 5
for n in 1 2 3; do
	is "$(on_shard $n -c "SELECT string_agg(first_problem, ', ') FROM pg_class c JOIN pg_am a ON a.oid = relam AND amname = 'mot', mot_verify(c.oid) WHERE relkind = 'r'")" "" \
		"indexes of server $n have what its rows say"
	PGPORT=$((SHARD_PORT + n)) cluster_stop shard$n
	! grep -nE 'PANIC:|TRAP:' "$SANDBOX/shard$n.log" || echo "not ok - the log of server $n shows a crash"
done
PGDATABASE=$PGDATABASE_OF_TEST
