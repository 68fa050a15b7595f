# A consumer that knows nothing of memory-optimized tables: pg_recvlogical with wal2json, and a
# program that applies what it writes to another database (apply.py).  Writers, columns that are
# added meanwhile, and each of the three killed in turn: the rows are the same in the end, of
# memory-optimized tables as of heap tables.

. "$HERE/../streams.sh"
source_begin
here "CREATE TABLE applied (lsn numeric); INSERT INTO applied VALUES (0)"
create_tables "$PGDATABASE" "$main_port"
there "SELECT pg_create_logical_replication_slot('stream', 'wal2json')" >/dev/null
there "$FIRST_ROWS"

receive()
{
	# (after a line that was cut off)
	echo >>"$work/stream"
	PGPORT=$source_port "$PGBIN/pg_recvlogical" -d postgres -S stream --start -f "$work/stream" --fsync-interval=1 --status-interval=1 \
		-o format-version=2 -o include-lsn=true >>"$work/receive.log" 2>&1 &
	receiver=$!
}
apply()
{
	/usr/bin/python3 "$HERE/apply.py" "$work/stream" "host=$PGHOST port=$main_port user=$PGUSER dbname=$PGDATABASE" >>"$work/apply.log" 2>&1 &
	applier=$!
}
: >"$work/stream"
receive
apply
for kill in nothing receiver applier server all; do
	load_begin "${SECONDS_EACH:-6}"
	case $kill in receiver | all) kill -9 $receiver; wait $receiver || true ;; esac
	case $kill in applier | all) kill -9 $applier; wait $applier || true ;; esac
	case $kill in server | all) kill_source ;; esac
	case $kill in receiver | all) receive ;; esac
	case $kill in applier | all) apply ;; esac
	load_end
	same "$kill killed"
done
kill $receiver $applier
! grep -h 'error:\|Error' "$work/receive.log" "$work/apply.log" | grep -v 'connection\|server closed' || echo "not ok - the consumer met an error"
source_end
