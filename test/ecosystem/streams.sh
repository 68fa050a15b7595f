# streams.sh
#	  What tests of change streams share; source it in a test.sh of test/ecosystem.
#
# A server of its own, whose log can be decoded, has memory-optimized tables "hot" and "bag"
# (without a key) beside twins on heap, and writers, each with rows of his own; the consumer under
# test brings what they do to tables of the same names in the database of the test, all on
# memory-optimized tables there.

box=$SANDBOX
. "$HERE/../../sandbox.sh"
SANDBOX=$box
SANDBOX_USER=$(stat -c %U "$SANDBOX") PGBIN=$(dirname "$(command -v postgres)")
main_port=$PGPORT
source_port=$((main_port + 1))
work=$SANDBOX/tmp/$PGDATABASE
mkdir -p "$work"
# (consumers try again for ever)
trap 'kill $(jobs -p) 2>/dev/null' EXIT

there() { PGPORT=$source_port PGDATABASE=postgres sql "$@"; }
here() { sql "$@"; }

# create_tables DATABASE PORT [AM]
create_tables()
{
	local am
	for am in heap mot; do
		PGPORT=$2 sql -d "$1" "CREATE TABLE hot_$am (id int PRIMARY KEY, v bigint, name text, n numeric(12,3), a int[], at timestamptz) ${3:+USING ${3/twin/$am}};
			CREATE TABLE bag_$am (id int, v int, long text) ${3:+USING ${3/twin/$am}}; ALTER TABLE bag_$am REPLICA IDENTITY FULL; CREATE INDEX ON bag_$am (id)"
	done
}

FIRST_ROWS="INSERT INTO hot_heap SELECT i, 0, 'first', i / 8.0, ARRAY[i, NULL], now() FROM generate_series(1, 300) i; INSERT INTO hot_mot SELECT * FROM hot_heap"

source_begin()
{
	# (minor releases since the middle of 2026 let only named libraries be output plugins)
	local plugins=
	! as_user "$PGBIN/postgres" --describe-config | grep '^output_plugin_libraries' >/dev/null || plugins="output_plugin_libraries = 'pgoutput, wal2json'"
	PGPORT=$source_port cluster_init source <<-CONF
		shared_preload_libraries = 'mot'
		listen_addresses = '127.0.0.1'
		max_connections = 50
		wal_level = logical
		wal_sender_timeout = 0
		mot.max_memory = '128MB'
		$plugins
	CONF
	PGPORT=$source_port cluster_start source
	there "CREATE EXTENSION mot"
	create_tables postgres "$source_port" twin
	ncolumns=0
	for am in heap mot; do
		cat <<-SQL
			INSERT INTO hot_$am VALUES (:id, :v, 'it''s "' || :v::int, :v / 7.0, ARRAY[:id::int, :v::int], now()) ON CONFLICT (id) DO UPDATE SET v = hot_$am.v + 1;
			UPDATE hot_$am SET v = v + 1, a = a || :client_id::int WHERE id = (:id * 5) % 300 AND array_length(a, 1) < 20;
			DELETE FROM hot_$am WHERE id = (:id + 12) % 300;
			INSERT INTO bag_$am VALUES (:id, :v % 3, repeat('é', :v % 500));
			UPDATE bag_$am SET v = v + 1 WHERE id = :id;
			DELETE FROM bag_$am WHERE id = (:id + 8) % 300;
			SAVEPOINT a;
			DELETE FROM hot_$am WHERE id < 20 AND id % 4 = :client_id;
			ROLLBACK TO a;
			UPDATE hot_$am SET id = id + 1000 WHERE id = (:id + 4) % 300 AND :v % 9 = 0 AND NOT EXISTS (SELECT FROM hot_$am WHERE id = (:id + 4) % 300 + 1000);
		SQL
	done >"$work/changes.sql"
	{ printf '%s\n' '\set id 4 * random(0, 74) + :client_id' '\set v random(1, 100000)' 'BEGIN;'; cat "$work/changes.sql"; echo 'COMMIT;'; } >"$work/load.sql"
}

# load_begin SECONDS: writers, who may be killed with the server; and a column that comes meanwhile
load_begin()
{
	PGPORT=$source_port "$PGBIN/pgbench" -n -M prepared -c 4 -R "${RATE:-25}" -T "$1" --max-tries=100 -f "$work/load.sql" postgres >"$work/load.log" 2>&1 &
	load=$!
	sleep 1
	ncolumns=$((ncolumns + 1))
	for am in heap mot; do
		there "ALTER TABLE hot_$am ADD COLUMN new$ncolumns text; UPDATE hot_$am SET new$ncolumns = 'new' || id WHERE id % 5 = 0"
		there "BEGIN; ALTER TABLE bag_$am ADD COLUMN new$ncolumns int; INSERT INTO bag_$am VALUES (1, 2, 'x'$(printf ', 7%.0s' $(seq $ncolumns))); COMMIT"
	done
	sleep "$((RANDOM % 2)).$((RANDOM % 10))"
}
load_end() { wait $load || true; }

# the postmaster and all of its processes
kill_source()
{
	local pid
	pid=$(head -n 1 "$SANDBOX/source/postmaster.pid")
	kill -9 "$pid" $(children_of "$pid") 2>/dev/null || true
	while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	sleep 0.5
	rm -f "$SANDBOX/source/postmaster.pid"
	PGPORT=$source_port cluster_start source
}

# table NAME: its rows, the same text on both sides whatever the order of columns that were added
rows_of()
{
	echo "SELECT count(*), md5(string_agg(r, ' ' ORDER BY r)) FROM (SELECT jsonb_strip_nulls(to_jsonb(t) - 'at')::text || coalesce(extract(epoch FROM (to_jsonb(t) ->> 'at')::timestamptz)::text, '') AS r FROM $1 t) x"
}

# same WHAT: all that was committed has arrived
same()
{
	local t want=() got
	there "INSERT INTO hot_mot (id, v) VALUES (-1, 0) ON CONFLICT (id) DO UPDATE SET v = hot_mot.v + 1; INSERT INTO hot_heap (id, v) VALUES (-1, 0) ON CONFLICT (id) DO UPDATE SET v = hot_heap.v + 1"
	for t in hot_heap hot_mot bag_heap bag_mot; do
		want+=("$(there "$(rows_of $t)")")
	done
	for _ in $(seq 900); do
		got=$(here "SELECT v FROM hot_heap WHERE id = -1")
		[ "$got" != "$(there "SELECT v FROM hot_heap WHERE id = -1")" ] || break
		sleep 0.2
	done
	for t in hot_heap hot_mot bag_heap bag_mot; do
		is "$(here "$(rows_of $t)")" "${want[0]}" "$1: $t has the rows of its source (${want[0]%%|*})"
		want=("${want[@]:1}")
	done
}

source_end()
{
	ok "there were some" test "$(there 'SELECT count(*) FROM bag_mot')" -gt 100
	PGPORT=$source_port as_user "$PGBIN/pg_ctl" -s -w -D "$SANDBOX/source" -m fast stop
	! grep -nE 'PANIC:|TRAP:|was terminated by signal' "$SANDBOX/source.log" || echo "not ok - the log of the source shows a crash"
}
