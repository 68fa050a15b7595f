# go-tpc.sh
#	  The client go-tpc (github.com/pingcap/go-tpc), as it is: where its program is, and the
#	  tables that it makes and fills, kept as files; source it after bench/lib.sh.
#
# Nothing here installs the program: GO_TPC or PATH names it.  Filling by it takes minutes,
# so what it has made is kept in KEPT (build/bench/NAME-WAREHOUSES), and there and in later
# runs each kind of tables is made by the definitions and filled with the rows.

GO_TPC=${GO_TPC:-go-tpc}
WAREHOUSES=${WAREHOUSES:-4}
CLIENTS=${CLIENTS:-4}

command -v "$GO_TPC" >/dev/null || sandbox_die "no go-tpc: name the program with GO_TPC=..."
GO_TPC=$(realpath "$(command -v "$GO_TPC")")

# go_tpc DB tpcc|ch VERB [OPTION ...]: over the socket, which PGHOST names
go_tpc()
{
	local db=$1 load=$2 verb=$3
	shift 3
	as_user "$SANDBOX/tmp/go-tpc" "$load" "$verb" -d postgres -H '""' -P "$PGPORT" -U postgres -D "$db" \
		--conn-params sslmode=disable --warehouses "$WAREHOUSES" -T "$CLIENTS" "$@"
}

# keep LOAD: what the function LOAD has the client make in a database of heap
# tables, as files in KEPT; complete or not there
keep()
{
	local start=$SECONDS t
	[ ! -d "$KEPT" ] || return 0
	echo "  go-tpc loads $WAREHOUSES warehouses once, into $KEPT ..."
	create_database made heap
	"$1" made
	echo "  ... loaded in $((SECONDS - start)) s"
	rm -rf "$KEPT.new"
	mkdir -p "$KEPT.new"
	as_user pg_dump -s -O -x --no-table-access-method -t 'public.*' made >"$KEPT.new/schema.sql"
	for t in $(in_db made -c "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"); do
		in_db made -c "COPY $t TO STDOUT" >"$KEPT.new/$t.copy"
	done
	mv "$KEPT.new" "$KEPT"
	in_db postgres -c 'DROP DATABASE made' -c CHECKPOINT
}

load_by_copy()
{
	local file
	# it would have no schema to look names up in
	sed "/set_config('search_path'/d" "$KEPT/schema.sql" | in_db "$1" -f - >/dev/null
	for file in "$KEPT"/*.copy; do
		in_db "$1" -c "COPY $(basename "$file" .copy) FROM STDIN" <"$file"
	done
}

# client_prepare NAME DB [OPTION ...]: the client's tables, filled by it
client_prepare()
{
	local load=$1 db=$2
	shift 2
	go_tpc "$db" "$load" prepare "$@" >"$SANDBOX/tmp/prepare.log" 2>&1 || { cat "$SANDBOX/tmp/prepare.log" >&2; return 1; }
}

# Errors are counted by what the server said; what is cut off at the end of
# the time is none.
errors()
{
	sed -n '/stopped due to timeout/d; /cancelled due to timeout/d; s/.*execute.* failed,\? \(err \)\?.*pq: //p' "$1" |
		sort | uniq -c | sort -rn
}
