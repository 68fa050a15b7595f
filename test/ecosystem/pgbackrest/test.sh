# pgBackRest: a full and an incremental backup under load, and both restored.

box=$SANDBOX
. "$HERE/../../sandbox.sh"
SANDBOX=$box
SANDBOX_USER=$(stat -c %U "$SANDBOX") PGBIN=$(dirname "$(command -v postgres)")
mkdir -p "$SANDBOX/tmp/repo"
cat >"$SANDBOX/tmp/pgbackrest.conf" <<CONF
[global]
repo1-path=$SANDBOX/tmp/repo
log-path=$SANDBOX/tmp
lock-path=$SANDBOX/tmp/lock
spool-path=$SANDBOX/tmp/spool
log-level-console=warn
log-level-file=off
start-fast=y
[main]
pg1-path=$SANDBOX/main
pg1-port=$PGPORT
pg1-socket-path=$PGHOST
pg1-user=postgres
CONF
[ "$(id -u)" != 0 ] || chown -R "$SANDBOX_USER:" "$SANDBOX/tmp/repo"
rest() { as_user pgbackrest --config="$SANDBOX/tmp/pgbackrest.conf" --stanza=main "$@"; }

sql "ALTER SYSTEM SET archive_mode = on" >/dev/null
sql "ALTER SYSTEM SET archive_command = 'pgbackrest --config=$SANDBOX/tmp/pgbackrest.conf --stanza=main archive-push %p'" >/dev/null
cluster_stop main
cluster_start main
ok "a repository is made" rest stanza-create
ok "... and checked" rest check
pgbench -q -i -s 2 --foreign-keys 2>/dev/null
pgbench -n -M prepared -c 4 -T 30 >/dev/null 2>&1 &
load=$!
ok "a full backup, under load" rest --type=full backup
sql "CREATE TABLE later (id int PRIMARY KEY) USING mot; INSERT INTO later SELECT generate_series(1, 1000)" >/dev/null
ok "an incremental one" rest --type=incr backup
kill $load 2>/dev/null || true
wait $load 2>/dev/null || true
sum="SELECT count(*), sum(abalance) FROM pgbench_accounts UNION ALL SELECT count(*), sum(delta) FROM pgbench_history UNION ALL SELECT count(*), sum(id) FROM later"
sql "INSERT INTO later VALUES (2000)" >/dev/null
before=$(sql "$sum")
lsn=$(sql "SELECT pg_create_restore_point('here')")
sql "DELETE FROM later" >/dev/null
sql "SELECT pg_switch_wal()" >/dev/null
cluster_stop main

ok "it is restored to a point" rest --delta --type=name --target=here --target-action=promote restore
cluster_start main
for _ in $(seq 300); do
	[ "$(sql 'SELECT pg_is_in_recovery()')" = t ] || break
	sleep 0.2
done
is "$(sql "$sum")" "$before" "everything that was committed before that is there, nothing else"
is "$(sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam, mot_verify(c.oid) WHERE amname = 'mot' AND relkind = 'r' AND first_problem IS NOT NULL")" 0 \
	"indexes have what rows say"
ok "it goes on" pgbench -n -M prepared -c 4 -t 100
sql "ALTER SYSTEM RESET archive_mode" >/dev/null
sql "ALTER SYSTEM RESET archive_command" >/dev/null
