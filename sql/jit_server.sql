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

-- statements of both, in triggers and functions, that change the table their statement changes
CREATE FOREIGN TABLE jit_own_mot (id int PRIMARY KEY, v int, w int) SERVER mot_server;
CREATE INDEX ON jit_own_mot (v);
CREATE TABLE jit_own_heap (id int PRIMARY KEY, v int, w int);
CREATE INDEX ON jit_own_heap (v);
CREATE FUNCTION jit_own_sum(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
	EXECUTE format('SELECT concat_ws(''/'', count(*), sum(v + w), max(w)) FROM %I WHERE v * 2 + w > -1000', t) INTO r;
	RETURN r;
END $$;
CREATE FUNCTION jit_own_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w BETWEEN 1 AND 3 THEN
		EXECUTE format('UPDATE %I SET w = w + 1, v = v + 7 WHERE id = $1 AND v * 2 > 0', TG_TABLE_NAME) USING NEW.id;
		EXECUTE format('INSERT INTO %I VALUES ($1, $1 / 2, $2 + 1)', TG_TABLE_NAME) USING NEW.id * 10 + NEW.w, NEW.w;
	END IF;
	RETURN NULL;
END $$;
CREATE FUNCTION jit_own_run(t text, fails int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('TRUNCATE %I', t);
	EXECUTE format('INSERT INTO %I SELECT i, i * 10, 0 FROM generate_series(1, 6) i', t);
	EXECUTE format('UPDATE %I SET w = 1 WHERE id < 4 AND v + w > 0', t);
	RETURN NEXT jit_own_sum(t);
	BEGIN
		EXECUTE format('UPDATE %I SET w = 100 / (id - $1), v = v - 35 WHERE v > 0', t) USING fails;
	EXCEPTION WHEN division_by_zero THEN
		RETURN NEXT 'division by zero';
	END;
	RETURN NEXT jit_own_sum(t);
	EXECUTE format('DELETE FROM %I WHERE v %% 3 = 0', t);
	RETURN NEXT jit_own_sum(t);
END $$;
CREATE TRIGGER after_row AFTER INSERT OR UPDATE ON jit_own_mot FOR EACH ROW EXECUTE FUNCTION jit_own_chain();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE ON jit_own_heap FOR EACH ROW EXECUTE FUNCTION jit_own_chain();
SET jit = on;
SET jit_above_cost = 0;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SELECT i, (SELECT string_agg(x, ', ') FROM jit_own_run('jit_own_mot', i) x) AS mot, (SELECT string_agg(x, ', ') FROM jit_own_run('jit_own_heap', i) x) AS heap FROM generate_series(3, 4) i;
-- (the server compiles what costs something: of these, some)
SET jit_above_cost = 30;
SELECT i, (SELECT string_agg(x, ', ') FROM jit_own_run('jit_own_mot', i) x) AS mot, (SELECT string_agg(x, ', ') FROM jit_own_run('jit_own_heap', i) x) AS heap FROM generate_series(3, 4) i;
RESET jit;
RESET jit_above_cost;
RESET mot.jit_prepare_above_executions;
RESET mot.jit_above_executions;
SELECT object, problems FROM mot_verify('jit_own_mot') WHERE problems > 0;
DROP FOREIGN TABLE jit_own_mot;
DROP TABLE jit_own_heap;
DROP FUNCTION jit_own_sum, jit_own_chain, jit_own_run;

DROP TABLE jit_heap;
DROP FOREIGN TABLE jit_both;
DROP FUNCTION jit_theirs(), jit_theirs_fails(), mot_jit_compare(text, "any"), mot_jit_installed();
