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
