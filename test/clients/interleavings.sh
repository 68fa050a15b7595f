#!/bin/bash
#
# Interleavings of two sessions' row locks, upserts and changes of unique keys
# on twins, a heap table and a memory-optimized one: the same rows, errors and
# waits.  A sample; FULL=1 runs all that one step each can do (a minute).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

if [ -n "${FULL:-}" ]; then
	set -- --two 1000
else
	set -- --sample 150 --two 60 --seed "$RANDOM"
	echo "# $*"
fi
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/interleave/interleave.py" "$@"
