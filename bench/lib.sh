# lib.sh
#	  Twins of heap and MOT tables, measured in turns; source it after
#	  test/sandbox.sh.
#
# The twins are two databases of one cluster, "heap" and "mot", filled by the
# same client programs; the second one has mot.default_engine = mot.  Every
# measurement is taken ROUNDS times, heap and MOT in turns, the first of a
# round changing from round to round; medians are compared.

ENGINES=(heap mot)

# bench_settings: the cluster's settings, for people and for cluster_init
bench_settings()
{
	local mem_mb
	mem_mb=$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
	cat <<-CONF
		shared_preload_libraries = 'mot'
		mot.max_memory = '$((mem_mb * 40 / 100))MB'
		shared_buffers = '$((mem_mb / 8 < 2048 ? mem_mb / 8 : 2048))MB'
		max_wal_size = '16GB'
		checkpoint_timeout = '1h'
		synchronous_commit = off
	CONF
}

bench_machine()
{
	echo "commit    $(git -c safe.directory='*' -C "$TOP" describe --always --dirty 2>/dev/null || echo unknown)"
	echo "server    $("$PGBIN/postgres" --version)"
	echo "machine   $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)," \
		"$(awk '/^MemTotal/ {printf "%.0f GB", $2 / 1048576}' /proc/meminfo)"
	echo "settings  $(bench_settings | tr '\n' ',' | sed 's/,$//; s/,/, /g')"
}

in_db()
{
	local db=$1
	shift
	as_user psql -X -A -t -q -v ON_ERROR_STOP=1 -d "$db" "$@"
}

# bench_twins SCALE: create and fill both databases
bench_twins()
{
	local scale=$1 db
	for db in "${ENGINES[@]}"; do
		in_db postgres -c "CREATE DATABASE $db"
		in_db "$db" -c 'CREATE EXTENSION mot' -c "ALTER DATABASE $db SET mot.default_engine = '$db'"
		echo "  loading $db, pgbench scale $scale ..."
		as_user pgbench -i -q -s "$scale" "$db" >"$SANDBOX/tmp/init.log" 2>&1 ||
			{ cat "$SANDBOX/tmp/init.log" >&2; return 1; }
		in_db "$db" -c 'CREATE TABLE bench_insert_target (id bigint PRIMARY KEY, value bigint)' \
			-f - <"$TOP/bench/sql/loops.sql"
		# read everything once: cached, and heap rows marked as committed
		in_db "$db" -c 'ANALYZE' -c 'SELECT sum(abalance) FROM pgbench_accounts' >/dev/null
	done
	[ "$(in_db mot -c "SELECT relkind FROM pg_class WHERE relname = 'pgbench_accounts'")" = f ] ||
		sandbox_die "the MOT twin is not a MOT table"
	in_db postgres -c CHECKPOINT
}

# ------------------------------------------------------------ measurements
#
# measure_X ENGINE prints one number.

run_pgbench()
{
	local db=$1
	shift
	as_user pgbench "$@" "$db" >"$SANDBOX/tmp/pgbench.log" 2>&1 ||
		{ cat "$SANDBOX/tmp/pgbench.log" >&2; return 1; }
	grep -q '^number of failed transactions: 0 ' "$SANDBOX/tmp/pgbench.log" ||
		{ cat "$SANDBOX/tmp/pgbench.log" >&2; return 1; }
	awk '/^tps = / {print $3}' "$SANDBOX/tmp/pgbench.log"
}

pgbench_prepared()
{
	local db=$1 seconds=$2
	shift 2
	run_pgbench "$db" -M prepared -c 4 -j "$(($(nproc) < 4 ? $(nproc) : 4))" -T "$seconds" "$@"
}

# record WORK ENGINE NUMBER
record()
{
	printf '%s\t%s\t%s\n' "$@" >>"$SANDBOX/tmp/results"
}

# rounds WORK ROUNDS FUNCTION [ARG ...]: call FUNCTION ENGINE ARG ... in turns
rounds()
{
	local work=$1 n=$2 function=$3 round engine order value
	shift 3
	for ((round = 1; round <= n; round++)); do
		order="heap mot"
		((round % 2)) || order="mot heap"
		for engine in $order; do
			value=$("$function" "$engine" "$@")
			record "$work" "$engine" "$value"
			printf '  %-28s round %d of %d  %-4s %12.2f\n' "$work" "$round" "$n" "$engine" "$value"
		done
	done
}

median()
{
	awk -F '\t' -v work="$1" -v engine="$2" '$1 == work && $2 == engine {print $3}' "$SANDBOX/tmp/results" |
		sort -g | awk '{v[NR] = $1} END {if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

# table: from lines "work|unit|more or less is better[|at least]" on stdin
table()
{
	local work unit better aim heap mot
	printf '\n%-34s %12s %12s  %-8s %7s\n' "" heap mot unit ratio
	while IFS='|' read -r work unit better aim; do
		heap=$(median "$work" heap)
		mot=$(median "$work" mot)
		[ -n "$heap" ] && [ -n "$mot" ] || continue
		awk -v work="$work" -v unit="$unit" -v better="$better" -v aim="$aim" -v heap="$heap" -v mot="$mot" 'BEGIN {
			ratio = better == "more" ? mot / heap : heap / mot
			printf "%-34s %12.*f %12.*f  %-8s %6.2fx%s\n", work, heap < 1000 ? 2 : 0, heap,
				heap < 1000 ? 2 : 0, mot, unit, ratio,
				aim == "" ? "" : sprintf("  (at least %sx: %s)", aim, ratio >= aim ? "yes" : "no")
		}'
	done
}
