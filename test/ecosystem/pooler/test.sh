# pgbouncer in transaction mode: pgbench, whose statements go to any session.

cat >"$SANDBOX/tmp/pgbouncer.ini" <<CONF
[databases]
* = host=$PGHOST port=$PGPORT
[pgbouncer]
listen_addr =
unix_socket_dir = $SANDBOX/tmp
listen_port = 6432
auth_type = any
auth_user = postgres
pool_mode = transaction
default_pool_size = 3
pidfile = $SANDBOX/tmp/pgbouncer.pid
logfile = $SANDBOX/tmp/pgbouncer.log
CONF
sed -i 's/^\* = .*/& user=postgres/; /^auth_user/d' "$SANDBOX/tmp/pgbouncer.ini"
chmod 644 "$SANDBOX/tmp/pgbouncer.ini"
user=$(stat -c %U "$SANDBOX")
ok "it starts" runuser -u "$user" -- "$(PATH=$PATH:/usr/sbin command -v pgbouncer)" -d "$SANDBOX/tmp/pgbouncer.ini"
ok "tables are made through it" pgbench -h "$SANDBOX/tmp" -p 6432 -i -q -s 2 --foreign-keys
ok "eight clients share three sessions" pgbench -h "$SANDBOX/tmp" -p 6432 -n -c 8 -j 2 -T 5
is "$(grep -o 'number of failed transactions: [0-9]*' "$TMPDIR/tap.out")" "number of failed transactions: 0" "none fails"
ok "the same by extended protocol" pgbench -h "$SANDBOX/tmp" -p 6432 -n -c 8 -j 2 -T 5 -M extended
is "$(sql 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)
	AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)')" t "the books are right"
kill "$(cat "$SANDBOX/tmp/pgbouncer.pid")"
