#!/bin/bash
#
# Transactions of one session alone on twins: at no isolation level do they fail
# for others, who are not there, and they do what they do on heap tables.  A
# sample, the same each time; TRANSACTIONS and SEED ask for more or for others
# (test/alone/long is a run of 20,000 by itself).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

export PYTHONDONTWRITEBYTECODE=1
SEED=${SEED:-1}

ok "transactions of one session alone do the same on heap and memory-optimized tables, and never fail for others (seed $SEED)" \
	/usr/bin/python3 "$here/alone/alone.py" --seed "$SEED" --transactions "${TRANSACTIONS:-400}"
sed 's/^/# /' "$TMPDIR/tap.out"

done_testing
