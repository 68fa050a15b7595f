# tap.sh
#	  Test lines for shell scripts; source it.

TAP_N=0

# ok DESCRIPTION COMMAND ...: passes when the command succeeds
ok()
{
	local what=$1
	shift
	TAP_N=$((TAP_N + 1))
	if "$@" >"$TMPDIR/tap.out" 2>&1; then
		echo "ok $TAP_N - $what"
	else
		echo "not ok $TAP_N - $what"
		sed 's/^/# /' "$TMPDIR/tap.out"
	fi
}

# is GOT EXPECTED DESCRIPTION
is()
{
	TAP_N=$((TAP_N + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $TAP_N - $3"
	else
		echo "not ok $TAP_N - $3"
		diff <(printf '%s\n' "$2") <(printf '%s\n' "$1") | sed -n '1,40s/^/# /p' || true
	fi
}

done_testing()
{
	echo "1..$TAP_N"
}

# sql [OPTION ...] QUERY: bare result
sql()
{
	psql -X -A -t -q -v ON_ERROR_STOP=1 "${@:1:$#-1}" -c "${@: -1}"
}
