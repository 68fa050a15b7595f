-- The server's own JIT and ours in one process, used in either order, again
-- and again, with errors in between.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
\if :absent
DROP FUNCTION mot_jit_installed();
\echo there is no compiler
\quit
\endif
CREATE FUNCTION mot_jit_compare(query text, VARIADIC params "any") RETURNS text AS '$libdir/mot' LANGUAGE C;

CREATE FOREIGN TABLE jit_both (id integer NOT NULL, v bigint, t text) SERVER mot_server;
INSERT INTO jit_both SELECT i, i * 10, 'row ' || i FROM generate_series(1, 100) i;
CREATE TABLE jit_heap AS SELECT * FROM jit_both;

-- its code runs all the time: expressions, deforming, optimized and inlined
CREATE FUNCTION jit_theirs() RETURNS TABLE (n bigint, sum numeric, longest int) LANGUAGE sql
	SET jit = on SET jit_above_cost = 0 SET jit_optimize_above_cost = 0 SET jit_inline_above_cost = 0
	AS 'SELECT count(*), sum(v * 2 + id), max(length(t)) FROM jit_heap WHERE id % 3 = 0 AND t <> ''row 6''';
CREATE FUNCTION jit_theirs_fails() RETURNS bigint LANGUAGE sql
	SET jit = on SET jit_above_cost = 0 SET jit_optimize_above_cost = 0
	AS 'SELECT sum(v / (id - 50)) FROM jit_heap';

-- theirs first
\c -
SELECT * FROM jit_theirs();
SELECT mot_jit_compare('SELECT v * 2 + id, length(t) FROM jit_both WHERE id % 3 = 0 AND t <> ''row 6''', 1);
SELECT jit_theirs_fails();
SELECT mot_jit_compare('SELECT v / (id - 50) FROM jit_both', 1);
SELECT * FROM jit_theirs();

-- ours first
\c -
SELECT mot_jit_compare('SELECT v / (id - 50) FROM jit_both', 1);
SELECT mot_jit_compare('SELECT v * 2 + id, length(t) FROM jit_both WHERE id % 3 = 0 AND t <> ''row 6''', 1);
SELECT * FROM jit_theirs();
SELECT jit_theirs_fails();
SELECT mot_jit_compare('SELECT v * 2 + id, length(t) FROM jit_both WHERE id % 3 = 0 AND t <> ''row 6''', 1);

-- in one another: the function around ours is theirs
SET jit = on;
SET jit_above_cost = 0;
SELECT DISTINCT mot_jit_compare('SELECT v * ' || h.id || ' + id, t FROM jit_both WHERE id > 0', 1) FROM jit_heap h WHERE h.id < 20;
RESET jit;
RESET jit_above_cost;

-- and after errors that a block catches
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			PERFORM jit_theirs_fails();
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
		IF mot_jit_compare('SELECT v / (id - 50) FROM jit_both', 1) <> 'equal: 99 of 100 rows pass, 1 errors' THEN
			RAISE 'different';
		END IF;
	END LOOP;
END
$$;

DROP TABLE jit_heap;
DROP FOREIGN TABLE jit_both;
DROP FUNCTION jit_theirs(), jit_theirs_fails(), mot_jit_compare(text, "any"), mot_jit_installed();
