#!/bin/bash
#
# Random functions in PL/pgSQL, interpreted and as machine code.  A sample, the same each time;
# FUNCTIONS and SEED ask for more or for others.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

export PYTHONDONTWRITEBYTECODE=1
SEED=${SEED:-1}

if [ "$(sql "CREATE FUNCTION pg_temp.mot_jit_installed() RETURNS boolean AS '\$libdir/mot' LANGUAGE C; SELECT pg_temp.mot_jit_installed()")" = t ]; then
	for tables in heap mot; do
		ok "functions are the same as machine code ($tables tables, seed $SEED)" /usr/bin/python3 \
			"$here/differential/procedures.py" --tables "$tables" --seed "$SEED" --functions "${FUNCTIONS:-30}"
		sed 's/^/# /' "$TMPDIR/tap.out"
	done
else
	echo "1..0 # SKIP there is no compiler"
	exit 0
fi

done_testing
