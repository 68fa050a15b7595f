#!/bin/bash
#
# Histories: what several clients saw, judged against what their isolation
# level promises, on memory-optimized tables of both kinds, on heap tables (the
# control), and on all together.  The short form of test/history/long; first the checker
# itself is tested.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

SECONDS_EACH=${SECONDS_EACH:-1.5}
export PYTHONDONTWRITEBYTECODE=1
python=/usr/bin/python3			# Debian's, which has psycopg2

ok "the checker finds the anomalies of hand-written histories, and no others" \
	"$python" "$here/history/test_checker.py"

# judge PLACE LEVEL [OPTION]
judge()
{
	local place=$1 level=$2 history=$TMPDIR/history-$1-$2.json
	shift 2
	ok "clients on $place tables at $level${1:+, $1}" "$python" "$here/history/workload.py" \
		--level "$level" --place "$place" --seconds "$SECONDS_EACH" --clients 5 --seed "${SEED:-1}" "$@" "$history"
	sed 's/^/# /' "$TMPDIR/tap.out"
	ok "what they saw is what $level allows" "$python" "$here/history/checker.py" "$history"
}

for place in heap table foreign mixed; do
	for level in rc rr ser; do
		judge "$place" "$level"
	done
	judge "$place" ser --prepare
done
judge mixed rr --prepare

done_testing
