#!/bin/bash
#
# Random statements on twins: heap tables, memory-optimized tables through the
# server's executor, and without it from the first execution on.  A sample, the
# same each time; STATEMENTS and SEED ask for more or for others
# (test/differential/long is a run of 100,000 by itself).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

export PYTHONDONTWRITEBYTECODE=1
SEED=${SEED:-1}

ok "statements have the same answers on heap and memory-optimized tables, with and without the executor (seed $SEED)" \
	/usr/bin/python3 "$here/differential/differential.py" --seed "$SEED" --statements "${STATEMENTS:-4000}"
sed 's/^/# /' "$TMPDIR/tap.out"
ok "... so have those that group and join many rows (seed $SEED)" \
	/usr/bin/python3 "$here/differential/differential.py" --reports --seed "$SEED" --statements "$((${STATEMENTS:-4000} / 4))"
sed 's/^/# /' "$TMPDIR/tap.out"
for protocol in simple unnamed; do
	ok "... so have statements that nobody prepares: $protocol (seed $SEED)" \
		/usr/bin/python3 "$here/differential/differential.py" --protocol "$protocol" --seed "$SEED" --statements "$((${STATEMENTS:-4000} / 4))"
	sed 's/^/# /' "$TMPDIR/tap.out"
done
ok "... and what a client does with their portals, and with CALL" /usr/bin/python3 "$here/differential/messages.py"

ok "... and pipelines, which are read ahead (seed $SEED)" \
	/usr/bin/python3 "$here/differential/pipelines.py" --seed "$SEED" --rounds "$((${STATEMENTS:-4000} / 50))"
sed 's/^/# /' "$TMPDIR/tap.out"
ok "... whatever becomes of their bytes on the way (seed $SEED)" \
	/usr/bin/python3 "$here/differential/pipelines.py" --flip --seed "$SEED" --rounds "$((${STATEMENTS:-4000} / 50))"
sed 's/^/# /' "$TMPDIR/tap.out"
ok "... and by hand: lengths, cuts, waits, sizes, the unnamed statement" /usr/bin/python3 "$here/differential/ahead.py"
sed 's/^/# /' "$TMPDIR/tap.out"

done_testing
