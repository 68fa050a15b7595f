# shards.sh
#	  TPC-C's tables over several private servers; source it after
#	  test/sandbox.sh.
#
# Each server has its warehouses, a range of them, in ordinary memory-optimized
# tables (warehouse_2, stock_2, ... on the second), and on top of them
# TPC-C's tables as partitioned ones, whose other partitions are foreign
# tables of postgres_fdw that lead to the tables of the other servers.  So TPC-C's
# procedures run unchanged on each server, and what a transaction wants of
# another server's warehouse is done there.  item, which nobody changes, and
# loaded are on all of them.
#
#	SHARDS		how many servers: SHARD_NAME with 1 ..., at SHARD_PORT + 1 ...
#	WAREHOUSES	all together, the same number on each

SHARDS=${SHARDS:-3}
WAREHOUSES=${WAREHOUSES:-$((2 * SHARDS))}
SHARD_PORT=${SHARD_PORT:-$PGPORT}
SHARD_NAME=${SHARD_NAME:-shard}
SHARD_SQL=$TOP/bench/sql/tpcc

# table:column with the number of the warehouse
SHARDED=(warehouse:w_id district:d_w_id customer:c_w_id history:h_w_id new_order:no_w_id orders:o_w_id order_line:ol_w_id stock:s_w_id)

# on_shard N [OPTION ...]: psql
on_shard()
{
	local n=$1
	shift
	as_user psql -X -A -t -q -v ON_ERROR_STOP=1 -p "$((SHARD_PORT + n))" "$@"
}

# the warehouses of shard N: from, to
shard_range()
{
	local each=$((WAREHOUSES / SHARDS))
	echo "$((($1 - 1) * each + 1)) $(($1 * each))"
}

# shards_start: settings on stdin
shards_start()
{
	local n settings
	[ $((WAREHOUSES % SHARDS)) = 0 ] || sandbox_die "$WAREHOUSES warehouses are not the same number on $SHARDS servers"
	settings=$(cat)
	for ((n = 1; n <= SHARDS; n++)); do
		PGPORT=$((SHARD_PORT + n)) cluster_init "$SHARD_NAME$n" <<<"$settings"
		PGPORT=$((SHARD_PORT + n)) cluster_start "$SHARD_NAME$n"
	done
}

# the commands that make the tables of shard N (and, parts only, of a server that has no others)
shard_tables()
{
	local n=$1 other table column from to each=$((WAREHOUSES / SHARDS))
	echo "CREATE EXTENSION mot; CREATE EXTENSION postgres_fdw; SET mot.default_engine = 'mot';"
	sed -E "s/^(CREATE TABLE) ($(IFS='|'; echo "${SHARDED[*]%%:*}")) /\1 \2_$n /; s/^(CREATE INDEX .* ON) (customer|orders) /\1 \2_$n /" "$SHARD_SQL/schema.sql"
	for ((other = 1; other <= SHARDS; other++)); do
		[ "$other" != "$n" ] || continue
		echo "CREATE SERVER shard$other FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$PGHOST', port '$((SHARD_PORT + other))', dbname 'postgres', batch_size '1000');
			CREATE USER MAPPING FOR CURRENT_USER SERVER shard$other;"
	done
	for table in "${SHARDED[@]}"; do
		column=${table#*:} table=${table%:*}
		echo "CREATE TABLE $table (LIKE ${table}_$n) PARTITION BY RANGE ($column);"
		for ((other = 1; other <= SHARDS; other++)); do
			from=$(((other - 1) * each + 1)) to=$((other * each + 1))
			if [ "$other" = "$n" ]; then
				echo "ALTER TABLE $table ATTACH PARTITION ${table}_$n FOR VALUES FROM ($from) TO ($to);"
			else
				echo "CREATE FOREIGN TABLE ${table}_$other PARTITION OF $table FOR VALUES FROM ($from) TO ($to)
					SERVER shard$other;"
			fi
		done
	done
}

# shards_load ITEMS CUSTOMERS: the first server makes the rows, of all warehouses, through its
# partitioned tables
shards_load()
{
	local n
	for ((n = 1; n <= SHARDS; n++)); do
		shard_tables "$n" | on_shard "$n" -f -
	done
	on_shard 1 -v warehouses="$WAREHOUSES" -v items="$1" -v customers="$2" -f - <"$SHARD_SQL/load.sql" >/dev/null
	for ((n = 1; n <= SHARDS; n++)); do
		if [ "$n" != 1 ]; then
			on_shard "$n" -v only_functions=1 -f - <"$SHARD_SQL/load.sql" >/dev/null
			for table in item loaded; do
				on_shard 1 -c "COPY $table TO STDOUT" | on_shard "$n" -c "COPY $table FROM STDIN"
			done
		fi
		# (statistics of the servers' own partitions only: those of foreign ones would be samples
		# sent over)
		on_shard "$n" -f - <<-'SQL'
			SELECT format('VACUUM ANALYZE %I', relname) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' \gexec
		SQL
		cat "$SHARD_SQL/procedures.sql" "$SHARD_SQL/check.sql" "$TOP/bench/sql/shards.sql" | on_shard "$n" -f -
	done
}

# what does not hold, over all of them, seen from each
shards_check()
{
	local n
	for ((n = 1; n <= SHARDS; n++)); do
		on_shard "$n" -c "SELECT 'shard $n', * FROM tpcc_check() WHERE violations > 0"
	done
}

# shards_scripts DIR: pgbench's, whose home warehouses are :first to :last, for the procedures of
# shards.sql
shards_scripts()
{
	"$TOP/bench/tpcc-scripts" "$1"
	sed -i 's/^\\set w random(1, :warehouses)$/\\set w random(:first, :last)/; s/^CALL tpcc_new_order(/CALL shards_new_order(/' \
		"$1"/*/*.sql
}

# shards_traffic DIR SECONDS CLIENTS ITEMS CUSTOMERS: each server has clients at its own warehouses,
# who want something of others' where TPC-C's do; tpmC and tries again, of all together
shards_traffic()
{
	local dir=$1 seconds=$2 clients=$3 n from to log failed=0
	local -a pids=()
	for ((n = 1; n <= SHARDS; n++)); do
		read -r from to < <(shard_range "$n")
		as_user pgbench -n -M prepared -c "$clients" -T "$seconds" --max-tries=1000 --failures-detailed -p "$((SHARD_PORT + n))" \
			-D warehouses="$WAREHOUSES" -D first="$from" -D last="$to" -D items="$4" -D customers="$5" \
			-f "$dir/procedures/new_order.sql@45" -f "$dir/procedures/payment.sql@43" -f "$dir/procedures/delivery.sql@4" \
			-f "$dir/procedures/order_status.sql@4" -f "$dir/procedures/stock_level.sql@4" postgres >"$SANDBOX/tmp/$SHARD_NAME$n.pgbench" 2>&1 &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n" || failed=1
	done
	for log in "$SANDBOX/tmp/$SHARD_NAME"*.pgbench; do
		if [ $failed != 0 ] || grep -q aborted "$log" || ! grep -q '^number of failed transactions: 0 ' "$log"; then
			cat "$log" >&2
			failed=1
		fi
	done
	[ $failed = 0 ] || return 1
	cat "$SANDBOX/tmp/$SHARD_NAME"*.pgbench |
		awk '/new_order.sql$/ {found = 1} found && / transactions .*tps = / {sub(/.*tps = /, ""); tpmc += $0 * 60; found = 0}
			/^total number of retries/ {retries += $5} /^tps = / {tps += $3} END {printf "%.0f %.0f %d\n", tpmc, tps, retries}'
}
