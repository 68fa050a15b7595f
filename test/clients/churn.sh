#!/bin/bash
#
# Many clients come and go, and are cancelled and terminated at any moment;
# nothing of them is left.  The short form of test/churn/long.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/churn/churn.py" --clients "${CLIENTS:-70}" --seconds "${SECONDS_EACH:-6}" --seed "${SEED:-1}"
