# Narayana's transactions over two servers, with heap tables and memory-optimized ones in each:
# the program, or one of the servers, is killed under load, and the manager's recovery ends what was
# begun.

box=$SANDBOX
. "$HERE/../../sandbox.sh"
. "$HERE/servers.sh"
SANDBOX=$box
SANDBOX_USER=$(stat -c %U "$SANDBOX") PGBIN=$(dirname "$(command -v postgres)")
main_port=$PGPORT
ports=($((main_port + 1)) $((main_port + 2)))
work=$SANDBOX/tmp/xa
rm -rf "$work"
cp -r "$HERE" "$work"
mkdir "$work/store"
on() { local n=$1; shift; PGPORT=${ports[n - 1]} PGDATABASE=postgres sql "$@"; }

for n in 1 2; do
	PGPORT=${ports[n - 1]} cluster_init xa$n <<-CONF
		shared_preload_libraries = 'mot'
		listen_addresses = '127.0.0.1'
		max_connections = 50
		max_prepared_transactions = 50
		mot.max_memory = '128MB'
		mot.default_engine = '${TABLES:-mot}'
	CONF
	PGPORT=${ports[n - 1]} cluster_start xa$n
	on $n "CREATE EXTENSION mot"
	on $n "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL);
		CREATE TABLE cold (id int PRIMARY KEY, balance bigint NOT NULL) USING heap;
		CREATE TABLE transfer (id bigint PRIMARY KEY, amount bigint);
		INSERT INTO account SELECT i, 1000 FROM generate_series(1, 500) i;
		INSERT INTO cold SELECT i, 1000 FROM generate_series(1, 500) i"
done

ok "it builds" mvn -q -B -f "$work/pom.xml" -Dmaven.repo.local="$CACHE/m2" compile dependency:copy-dependencies -DoutputDirectory="$CACHE/lib"
transfers() { exec java -cp "$work/target/classes:$CACHE/lib/*" Transfers "$work/store" "${ports[@]}" "$@"; }

what=(nothing program server1 server2 program both)
for round in $(seq "${ROUNDS:-6}"); do
	kill=${what[$(((round - 1) % ${#what[@]}))]}
	rm -f "$work/stop"
	(cd "$work" && transfers load $((round * 10000000)) 300) >"$work/done.$round" 2>"$work/errors.$round" &
	program=$!
	ok "round $round: it works" answers "$work/done.$round" 100
	case $kill in
		nothing) victims=() ;;
		server1) victims=("${ports[0]}") ;;
		server2) victims=("${ports[1]}") ;;
		*) victims=("${ports[@]}") ;;
	esac
	[ $kill = nothing ] || ok "... something is prepared when $kill is killed" stand_still $program "${victims[@]}"
	case $kill in
		program) kill -9 $program ;;
		server1) kill_server xa1 ;;
		server2) kill_server xa2 ;;
		both) kill -9 $program; kill_server xa1; kill_server xa2 ;;
	esac
	case $kill in server1 | both) PGPORT=${ports[0]} cluster_start xa1 ;; esac
	case $kill in server2 | both) PGPORT=${ports[1]} cluster_start xa2 ;; esac
	kill -CONT $program 2>/dev/null || true
	touch "$work/stop"
	wait $program 2>/dev/null || true
	(cd "$work" && transfers recover) >"$work/recovery.$round" 2>>"$work/errors.$round" || true
	echo "# round $round, killed: $kill; $(grep -c '^done' "$work/done.$round") transfers, $(sed -n 's/^to recover/prepared:/p' "$work/recovery.$round")"

	is "$(sed -n 's/^left //p' "$work/recovery.$round"; on 1 'SELECT count(*) FROM pg_prepared_xacts'; on 2 'SELECT count(*) FROM pg_prepared_xacts')" $'0\n0\n0' \
		"$kill killed: nothing is left prepared"
	sums="SELECT sum(balance) FROM (SELECT balance FROM account UNION ALL SELECT balance FROM cold) x"
	is "$(($(on 1 "$sums") + $(on 2 "$sums")))" 2000000 "... no money is lost or made"
	for n in 1 2; do
		on $n "SELECT id, amount FROM transfer ORDER BY id" >"$work/transfers.$n"
		is "$(on $n "$sums")" "$(on $n "SELECT 1000000 + 2 * sum($((3 - 2 * n)) * amount) FROM transfer")" "... server $n has what its transfers say"
		cut -d'|' -f1 "$work/transfers.$n" | LC_ALL=C sort >"$work/ids.$n"
	done
	is "$(md5sum <"$work/transfers.1")" "$(md5sum <"$work/transfers.2")" "... the same transfers on both"
	is "$(sed -n 's/^done //p' "$work"/done.* | LC_ALL=C sort | LC_ALL=C comm -23 - "$work/ids.1" | head)" "" "... each that was acknowledged among them"
done
ok "there were some" test "$(on 1 'SELECT count(*) FROM transfer')" -ge $((${ROUNDS:-6} * 100))
for n in 1 2; do
	[ "${TABLES:-mot}" = heap ] || is "$(on $n "SELECT string_agg(first_problem, ', ') FROM unnest(ARRAY['account', 'transfer']::regclass[]) t, mot_verify(t)")" "" "indexes of server $n have what its rows say"
	as_user "$PGBIN/pg_ctl" -s -w -D "$SANDBOX/xa$n" -m fast stop
	! grep -nE 'PANIC:|TRAP:' "$SANDBOX/xa$n.log" || echo "not ok - the log of server $n shows a crash"
done
PGPORT=$main_port
