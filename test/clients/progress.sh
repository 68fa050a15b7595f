#!/bin/bash
#
# SERIALIZABLE transactions in conflict: there is no round without a commit, with and
# without thinking time (test/progress/progress.py; test/progress/long measures how fast
# they get on, beside heap tables).

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

export PYTHONDONTWRITEBYTECODE=1

ok "of those in conflict one gets through" \
	/usr/bin/python3 "$here/progress/progress.py" --kinds mot --rounds 3 --think "0 3"
sed 's/^/# /' "$TMPDIR/tap.out"

done_testing
