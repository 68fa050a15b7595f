#!/bin/bash
#
# pg_dump while rows of heap and memory-optimized tables are being changed: a
# dump is of one moment, in both kinds of tables.

set -euo pipefail
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"

createdb bank
psql -X -q -v ON_ERROR_STOP=1 -d bank <<'SQL'
CREATE EXTENSION mot;
CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int, moves int NOT NULL) SERVER mot_server;
CREATE TABLE cold (id int PRIMARY KEY, v int, moves int NOT NULL);
INSERT INTO hot SELECT i, 100, 0 FROM generate_series(1, 2000) i;
INSERT INTO cold SELECT i, 100, 0 FROM generate_series(1, 2000) i;
SQL

# From a row of one kind to one of the other, and one among memory-optimized
# rows; a row leaves and comes back in the same transaction.
cat >"$TMPDIR/move" <<'SQL'
\set a random(1, 2000)
\set b random(1, 2000)
\set n random(-50, 50)
BEGIN;
UPDATE hot SET v = v - :n, moves = moves + 1 WHERE id = :a;
UPDATE cold SET v = v + :n, moves = moves + 1 WHERE id = :b;
COMMIT;
BEGIN;
UPDATE hot SET v = v - :n WHERE id = :b;
DELETE FROM hot WHERE id = 5000 + :b;
UPDATE hot SET v = v + :n WHERE id = 1;
COMMIT;
SQL
pgbench -n -c 4 -j 2 -T 300 -M prepared -f "$TMPDIR/move" bank >"$TMPDIR/load.out" 2>&1 &
load=$!

# what has to be true of every moment
checked()
{
	psql -X -A -t -q -d "$1" -c "
		SELECT (SELECT sum(v) FROM hot) + (SELECT sum(v) FROM cold) AS money,
			(SELECT sum(moves) FROM hot) - (SELECT sum(moves) FROM cold) AS moves_apart,
			(SELECT count(*) FROM hot), (SELECT count(*) FROM cold), (SELECT sum(moves) > 0 FROM hot)"
}

for options in "" --serializable-deferrable "--format=custom" ""; do
	dropdb --if-exists copy
	createdb copy
	dump=$TMPDIR/bank.dump
	# shellcheck disable=SC2086
	ok "pg_dump $options under load" pg_dump $options --include-foreign-data=mot_server -f "$dump" bank
	case $options in
		--format=custom) pg_restore -d copy "$dump" ;;
		*) psql -X -q -v ON_ERROR_STOP=1 -d copy -f "$dump" >/dev/null ;;
	esac
	is "$(checked copy)" "400000|0|2000|2000|t" "is of one moment"
done
ok "all the while there was load" kill -0 "$load"
kill "$load"
wait "$load" || true
is "$(grep -E 'ERROR|aborted' "$TMPDIR/load.out" || true)" "" "which was not disturbed"

done_testing
