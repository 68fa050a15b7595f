# Three servers that Patroni and etcd look after, in synchronous mode: leaders are killed under
# load, and change places. What was acknowledged is there, on all three, and old leaders come back.
# failover.pl has the story; Patroni's dynamic configuration is the one of docs/scale-out.md.

box=$SANDBOX
. "$HERE/../../sandbox.sh"
SANDBOX=$box
SANDBOX_USER=$(stat -c %U "$SANDBOX/main")
work=$SANDBOX/tmp/patroni
perl=$(dirname "$(dirname "$(pg_config --pgxs)")")/test/perl
rm -rf "$work"
mkdir "$work"
cp "$HERE/failover.pl" "$HERE/../../crash/Ledger.pm" "$HERE/../../../docs/scale-out.md" "$work"
# (the copy of the server has no headers)
installed=${PG_CONFIG:-$(PATH=${PATH#*:} command -v pg_config)}
cc -O1 -Wall -o "$work/ledger" "$HERE/../../crash/ledger.c" -I"$("$installed" --includedir)" -L"$("$installed" --libdir)" -lpq
[ "$(id -u)" != 0 ] || chown -R "$SANDBOX_USER:" "$work"
as_user env -C "$work" -u PGHOST -u PGUSER -u PGDATABASE -u PGPORT ENGINE="${TABLES:-mot}" \
	TESTDATADIR="$work/check" TESTLOGDIR="$work/check/log" perl -I "$perl" -I "$work" failover.pl "$((PGPORT + 10))"
cp "$work"/*.log "$CACHE"
if grep -nE 'PANIC:|TRAP:|was terminated by signal' "$work"/patroni-*.log; then
	echo "not ok - a server's log shows a crash"
fi
