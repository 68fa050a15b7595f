#!/bin/bash
#
# Every command of README.md and docs/ works.  A page's "sql" and "sh" blocks
# are run from its top to its end in a database of its own; what is to be left
# to the reader (an installation, a machine's settings) says so behind the
# language ("sh by-hand").  What a page takes for granted stands in it as a
# comment, <!-- given: ... -->, in SQL.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

# PAGE: its blocks as one shell script, which ends at the first error
script()
{
	awk '
		/^<!-- given:/ { print "psql <<\"MOT_GIVEN\""; given = 1; sub(/^<!-- given: */, "") }
		given { last = sub(/ *-->$/, ""); print; if (last) { print "MOT_GIVEN"; given = 0 } next }
		/^```/ && block { if (block == "sql") print "MOT_BLOCK"; block = ""; next }
		/^```sql$/ { block = "sql"; print "psql <<\"MOT_BLOCK\""; next }
		/^```sh$/ { block = "sh"; next }
		/^```/ { block = "other"; next }
		block == "sql" || block == "sh"
	' "$1"
}

run()
{
	{
		echo 'psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }'
		script "$1"
	} >"$TMPDIR/page.sh"
	psql -X -q -c 'DROP DATABASE IF EXISTS docs' -c 'CREATE DATABASE docs'
	psql -X -q -d docs -c 'CREATE EXTENSION mot'
	# a process of its own: "set -e" does not count where a status is asked for
	PGDATABASE=docs bash -eu "$TMPDIR/page.sh"
}

cd "$here/.."
for page in README.md docs/*.md; do
	if grep -qE '^```(sql|sh)$' "$page"; then
		ok "the commands of $page work" run "$page"
		sed 's/^/# /' "$TMPDIR/tap.out" | tail -5
	fi
done

done_testing
