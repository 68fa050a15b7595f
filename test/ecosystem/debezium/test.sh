# Debezium's embedded engine, which knows nothing of memory-optimized tables, with a program that
# applies its events to another database: the initial copy beside writers, columns that are added
# meanwhile, and the engine and its source killed in turn.  The rows are the same in the end, of
# memory-optimized tables as of heap tables.

. "$HERE/../streams.sh"
cp -r "$HERE" "$work/program"
ok "it builds" mvn -q -B -f "$work/program/pom.xml" -Dmaven.repo.local="$CACHE/m2" compile dependency:copy-dependencies -DoutputDirectory="$CACHE/lib"
source_begin
here "CREATE TABLE applied (lsn bigint); INSERT INTO applied VALUES (0)"
create_tables "$PGDATABASE" "$main_port"
there "$FIRST_ROWS"

# whoever runs it starts it again when its source has gone, as an orchestrator does
consume()
{
	(
		trap 'kill -9 $java; exit' TERM
		while [ -d "$work" ]; do
			java -cp "$work/program/target/classes:$CACHE/lib/*" Streams "$source_port" "$main_port" "$PGDATABASE" "$work/offsets" &
			java=$!
			echo $java >"$work/java"
			wait $java
			sleep 1
		done
	) >>"$work/consumer.log" 2>&1 &
	consumer=$!
}

load_begin 300
consume
for _ in $(seq 200); do
	[ "$(here 'SELECT count(*) FROM hot_mot')" = 0 ] || break
	sleep 0.5
done
sleep 2
kill $load
load_end
same "an initial copy beside writers"
for kill in consumer source both; do
	load_begin "${SECONDS_EACH:-10}"
	case $kill in consumer | both) kill -9 "$(cat "$work/java")" ;; esac
	case $kill in source | both) kill_source ;; esac
	load_end
	same "$kill killed"
done
kill $consumer
wait $consumer || true
grep -E 'not one row|SQLException.*(duplicate|serialize)' "$work/consumer.log" && echo "not ok - the consumer met an error"
source_end
