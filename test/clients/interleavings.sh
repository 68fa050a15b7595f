#!/bin/bash
#
# Interleavings of two sessions' row locks, upserts and changes of unique keys
# on twins, a heap table and a memory-optimized one: the same rows, errors and
# waits.  A sample, the same one each time; FULL=1 runs all that one step each
# can do and TWO (1000) with transactions of two steps, drawn anew each time
# unless SEED says how (a minute and a half).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

if [ -n "${FULL:-}" ]; then
	set -- --two "${TWO:-1000}" --seed "${SEED:-$RANDOM}"
else
	set -- --sample 150 --two 60 --seed "${SEED:-1}"
fi
echo "# $*"
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/interleave/interleave.py" "$@"
