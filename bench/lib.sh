# lib.sh
#	  Twins of heap and MOT tables, measured in turns; source it after
#	  test/sandbox.sh.
#
# The twins are databases of one cluster, "heap" and "mot" (ordinary tables), filled
# by the same client programs; the second one has mot.default_engine = mot.  With
# FOREIGN=yes there is "foreign", the engine's tables by their other door; some works
# know "unlogged", heap tables that write no log.  ENGINES names those that are measured.
# Every measurement is taken ROUNDS times, the engines in turns, the first of a
# round changing from round to round; medians are compared.
#
# NICE=-12 gives servers and clients that priority (root), for a machine with
# others on it.  Where the kernel groups processes by sessions it counts within each only, and
# that is printed: sysctl kernel.sched_autogroup_enabled=0.
#
# HUGE_PAGES=yes gives both engines' memory huge pages, which are reserved for
# the run (that takes root, unless enough of them are free).

HUGE_PAGES=${HUGE_PAGES:-no}
# (from the environment, or from the script that sources this, it comes as a string)
read -ra ENGINES <<<"${ENGINES:-heap mot}"
[ "${FOREIGN:-no}" = no ] || ENGINES+=(foreign)
[ -z "${NICE:-}" ] || renice -n "$NICE" -p $$ >/dev/null
BENCH_LOAD=$(cut -d ' ' -f 1 /proc/loadavg)

# as it is when the bench begins
BENCH_COMMIT=${BENCH_COMMIT:-$(git -c safe.directory='*' -C "$TOP" describe --always --dirty 2>/dev/null || echo unknown)}
export BENCH_COMMIT

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
	[ "$HUGE_PAGES" = no ] || printf '%s = on\n' huge_pages mot.huge_pages
}

# sandbox.sh calls it: have the huge pages that the cluster asks for
cluster_before_start()
{
	local conf="$SANDBOX/$1/postgresql.conf" server mot_mb
	grep -q '^mot.huge_pages = on' "$conf" || return 0
	server=$(as_user "$PGBIN/postgres" -D "$SANDBOX/$1" -C shared_memory_size_in_huge_pages)
	mot_mb=$(sed -n "s/^mot.max_memory = '\([0-9]*\)MB'.*/\1/p" "$conf" | tail -1)
	sandbox_huge_pages "$((server + mot_mb / 2 + mot_mb / 128 + 1))" # and the hints
}

# BENCH_SETTINGS: the function that prints a caller's settings, if they are others
bench_machine()
{
	local autogroup=
	[ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" != 1 ] || autogroup=" within each session (autogroup)"
	echo "commit    $BENCH_COMMIT"
	echo "server    $("$PGBIN/postgres" --version)"
	echo "compiled  $("$PGBIN/pg_config" --cflags | grep -oE -- '-O[0-9a-z]*' | tail -n 1)"
	echo "machine   $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)," \
		"$(awk '/^MemTotal/ {printf "%.0f GB", $2 / 1048576}' /proc/meminfo)"
	echo "load      $BENCH_LOAD on average in the minute before${NICE:+; run with nice $NICE$autogroup}"
	echo "settings  $("${BENCH_SETTINGS:-bench_settings}" | tr '\n' ',' | sed 's/,$//; s/,/, /g')"
}

in_db()
{
	local db=$1
	shift
	as_user psql -X -A -t -q -v ON_ERROR_STOP=1 -d "$db" "$@"
}

# create_database DB ENGINE: where CREATE TABLE makes tables of that kind, but foreign ones
create_database()
{
	local default=mot
	case $2 in heap|unlogged|foreign) default=heap ;; esac
	in_db postgres -c "CREATE DATABASE \"$1\""
	in_db "$1" -c 'CREATE EXTENSION mot' -c "ALTER DATABASE \"$1\" SET mot.default_engine = '$default'"
}

# tables_of ENGINE: the CREATE TABLE commands of stdin for it (each ends with ");" at the end of a
# line)
tables_of()
{
	case $1 in
		foreign) perl -0pe 's/^CREATE (TABLE .*?\));$/CREATE FOREIGN $1 SERVER mot_server;/gms' ;;
		unlogged) sed 's/^CREATE TABLE/CREATE UNLOGGED TABLE/' ;;
		*) cat ;;
	esac
}

# kinds_of DB: how many tables of which kinds it has, those of the extension apart
kinds_of()
{
	in_db "$1" -F ' ' -R ', ' -c "SELECT count(*), CASE WHEN relkind = 'f' THEN 'foreign' WHEN amname = 'mot' THEN 'memory-optimized'
		WHEN relpersistence = 'u' THEN 'unlogged' ELSE 'heap' END FROM pg_class c LEFT JOIN pg_am a ON a.oid = relam
		WHERE relkind IN ('r', 'f') AND relnamespace = 'public'::regnamespace AND NOT EXISTS
			(SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') GROUP BY 2"
}

# pgbench's tables, which it fills
pgbench_tables()
{
	tables_of "$2" <<-'SQL' | in_db "$1" -f -
		CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
		CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
		CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
		CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
	SQL
}

# bench_twins SCALE: create and fill the databases
bench_twins()
{
	local scale=$1 db steps
	for db in "${ENGINES[@]}"; do
		create_database "$db" "$db"
		echo "  loading $db, pgbench scale $scale ..."
		steps=dtgvp
		if [ "$db" = foreign ]; then
			pgbench_tables "$db" "$db"
			steps=gv
		fi
		tables_of "$db" <<<'CREATE TABLE bench_insert_target (id bigint PRIMARY KEY, value bigint);' | in_db "$db" -f -
		as_user pgbench -i -I "$steps" -q -s "$scale" "$db" >"$SANDBOX/tmp/init.log" 2>&1 ||
			{ cat "$SANDBOX/tmp/init.log" >&2; return 1; }
		in_db "$db" -f - <"$TOP/bench/sql/loops.sql"
		# read everything once: cached, and heap rows marked as committed
		in_db "$db" -c 'ANALYZE' -c 'SELECT sum(abalance) FROM pgbench_accounts' >/dev/null
	done
	[ "$(in_db mot -c "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'pgbench_accounts'")" = mot ] ||
		sandbox_die "the MOT twin is not a MOT table"
	in_db postgres -c CHECKPOINT
}

# copy_rows FROM TO: what the tables of one database hold into those of another,
# of the same names
copy_rows()
{
	local from=$1 to=$2 t
	for t in $(in_db "$from" -c "SELECT relname FROM pg_class WHERE relkind IN ('r', 'f')
		AND relnamespace = 'public'::regnamespace ORDER BY relname"); do
		in_db "$from" -c "COPY (SELECT * FROM $t) TO STDOUT" | in_db "$to" -c "COPY $t FROM STDIN"
	done
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

# record_time WORK ENGINE BEFORE TRANSACTIONS: microseconds of the server's processor time for one,
# since cluster_cpu was BEFORE
record_time()
{
	record "$1: server's time" "$2" "$(awk -v t="$3" -v u="$(cluster_cpu bench)" -v n="$4" 'BEGIN {print 1e6 * (u - t) / n}')"
}

# how many transactions the last run_pgbench has made
pgbench_transactions()
{
	awk '/^number of transactions actually processed/ {print $NF; exit}' "$SANDBOX/tmp/pgbench.log"
}

# rounds WORK ROUNDS FUNCTION [ARG ...]: call FUNCTION ENGINE ARG ... in turns.
# With TIME_LIMIT, no round but the first begins that would not be over so many
# seconds after the script began.
rounds()
{
	local work=$1 n=$2 function=$3 round engine value began
	local -a order
	shift 3
	for ((round = 1; round <= n; round++)); do
		if [ "$round" -gt 1 ] && [ -n "${TIME_LIMIT:-}" ] && [ $((2 * SECONDS - began)) -gt "$TIME_LIMIT" ]; then
			echo "  $work: $((round - 1)) of $n rounds, for want of time"
			break
		fi
		began=$SECONDS
		order=("${ENGINES[@]:(round - 1) % ${#ENGINES[@]}}" "${ENGINES[@]:0:(round - 1) % ${#ENGINES[@]}}")
		for engine in "${order[@]}"; do
			value=$("$function" "$engine" "$@")
			record "$work" "$engine" "$value"
			printf '  %-42s round %d of %d  %-10s %12.2f\n' "$work" "$round" "$n" "$engine" "$value"
		done
	done
}

median()
{
	awk -F '\t' -v work="$1" -v engine="$2" '$1 == work && $2 == engine {print $3}' "$SANDBOX/tmp/results" |
		sort -g | awk '{v[NR] = $1} END {if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

# ratio WORK ENGINE OVER BETTER: how much better, "more" or "less", ENGINE is: the
# median of the rounds' ratios, since what the machine does besides changes from
# round to round and less within one; of medians, if a round is not whole
ratio()
{
	awk -F '\t' -v work="$1" -v engine="$2" -v over="$3" -v better="$4" '
		function middle(v, n,    i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
					t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
				}
			return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
		}
		$1 == work && $2 == engine {a[++na] = $3}
		$1 == work && $2 == over {b[++nb] = $3}
		END {
			for (i = 1; i <= na && i <= nb; i++) {
				if (a[i] <= 0 || b[i] <= 0)
					exit
				r[i] = better == "more" ? a[i] / b[i] : b[i] / a[i]
			}
			if (na == 0 || nb == 0)
				exit
			if (na == nb)
				print middle(r, na)
			else {
				x = middle(a, na); y = middle(b, nb)
				print better == "more" ? x / y : y / x
			}
		}' "$SANDBOX/tmp/results"
}

# table: from lines "work|unit|more or less is better[|at least[|mot]]" on stdin;
# the ratio is that of MOT to heap, and is what has to reach the aim, or MOT's
# own value if the line ends in "mot"
table()
{
	local work unit better aim of engine medians
	printf '\n%-57s' ""
	printf ' %12s' "${ENGINES[@]}"
	printf '  %-8s %7s\n' unit ratio
	while IFS='|' read -r work unit better aim of; do
		medians=
		for engine in "${ENGINES[@]}"; do
			medians+=" $engine=$(median "$work" "$engine")"
		done
		[[ "$medians " =~ =[^\ ] ]] || continue
		printf '%s\t%s\t%s\t%s\t%s\n' "$work" "$unit" "$better" "$aim" "$of" >>"$SANDBOX/tmp/units"
		awk -v work="$work" -v unit="$unit" -v ratio="$(ratio "$work" mot heap "$better")" \
			-v aim="$aim" -v of="$of" -v medians="$medians" 'BEGIN {
			n = split(medians, m, " ")
			printf "%-57s", work
			for (i = 1; i <= n; i++) {
				split(m[i], part, "=")
				v[part[1]] = part[2]
				if (part[2] == "")
					printf " %12s", "-"
				else
					printf " %12.*f", part[2] < 1000 ? 2 : 0, part[2]
			}
			printf "  %-8s", unit
			if (ratio != "") {
				printf " %6.2fx", ratio
				if (aim != "" && of == "mot")
					printf "  (at least %s: %s)", aim, (v["mot"] >= aim ? "yes" : "no")
				else if (aim != "")
					printf "  (at least %sx: %s)", aim, (ratio >= aim ? "yes" : "no")
			}
			printf "\n"
		}'
	done
}

# bench_json FILE [KEY VALUE ...]: what was recorded, once table has printed it,
# with its medians and every single value, what it was measured on, and what
# else the caller says
bench_json()
{
	local file=$1
	shift
	BENCH_LIB=$TOP/bench BENCH_DATE=$(date -u +%FT%TZ) BENCH_MACHINE=$(bench_machine) python3 - "$SANDBOX/tmp/results" "$@" >"$file" <<-'PYTHON'
		import json, os, statistics, sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, os.environ["BENCH_LIB"])
		import results
		works = {}
		for line in open(sys.argv[1]):
		    work, engine, value = line.rstrip("\n").split("\t")
		    works.setdefault(work, {}).setdefault(engine, []).append(float(value))
		out = {"date": os.environ["BENCH_DATE"]}
		for line in os.environ["BENCH_MACHINE"].splitlines():
		    key, _, value = line.partition(" ")
		    out[key] = value.strip()
		out.update(zip(sys.argv[2::2], sys.argv[3::2]))
		units = [line.rstrip("\n").split("\t") for line in open(sys.argv[1].replace("results", "units"))]
		out["works"] = {}
		for w, unit, better, aim, of in units:
		    engines = {e: {"median": statistics.median(v), "values": v} for e, v in works[w].items()}
		    out["works"][w] = work = {"unit": unit, "better": better, "engines": engines}
		    ratio = results.ratio(work)
		    if ratio:
		        work["ratio"] = ratio
		        if aim:
		            work["aim"] = float(aim)
		            work["aim_of"] = of or "ratio"
		            work["reached"] = (engines["mot"]["median"] if of == "mot" else ratio) >= work["aim"]
		print(json.dumps(out, indent=1))
	PYTHON
}

# cluster_cpu NAME: seconds of processor time all processes of a running
# cluster have taken so far.  Those that have ended count with the postmaster;
# one that ends while we look counts with nobody, and then we look again.
cluster_cpu()
{
	local postmaster children ticks=
	postmaster=$(head -1 "$SANDBOX/$1/postmaster.pid")
	until [ -n "$ticks" ]; do
		children=$(children_of "$postmaster")
		ticks=$(
			awk '{print $14 + $15 + $16 + $17}' "/proc/$postmaster/stat"
			for pid in $children; do
				awk '{print $14 + $15}' "/proc/$pid/stat" 2>/dev/null || true
			done
		)
		[ "$children" = "$(children_of "$postmaster")" ] || ticks=
	done
	awk -v hz="$(getconf CLK_TCK)" '{t += $1} END {print t / hz}' <<<"$ticks"
}

# make_unlogged DB: heap tables that write no log, as an ordinary user would
make_unlogged()
{
	in_db "$1" <<-'SQL'
		DO $$
		DECLARE
			t regclass;
		BEGIN
			FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
				EXECUTE format('ALTER TABLE %s SET UNLOGGED', t);
			END LOOP;
		END $$;
	SQL
}
