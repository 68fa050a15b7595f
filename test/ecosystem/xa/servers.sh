# servers.sh
#	  How the tests with a transaction manager end servers; source it after
#	  test/sandbox.sh.

# kill_server NAME: the postmaster and all of its processes
kill_server()
{
	local pid
	pid=$(head -n 1 "$SANDBOX/$1/postmaster.pid")
	kill -9 "$pid" $(children_of "$pid") 2>/dev/null || true
	while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	sleep 0.5
	rm -f "$SANDBOX/$1/postmaster.pid"
}

# answers FILE N: waits until the program has written so many
answers()
{
	local i
	for i in $(seq 1200); do
		[ "$(grep -cE '^(done|paid|ordered|delivered)' "$1")" -lt "$2" ] || return 0
		sleep 0.1
	done
	return 1
}

# stand_still PROGRAM PORT ...: stops the program at a moment when one of these servers has something
# prepared, and keeps it, since nobody tells it what to do with that
stand_still()
{
	local program=$1 i port
	shift
	for i in $(seq 600); do
		kill -STOP "$program"
		# what servers have been told they do
		sleep 0.2
		for port in "$@"; do
			[ "$(PGPORT=$port PGDATABASE=postgres sql 'SELECT count(*) FROM pg_prepared_xacts')" = 0 ] || return 0
		done
		kill -CONT "$program"
		sleep "0.0$((RANDOM % 10))"
	done
	return 1
}
