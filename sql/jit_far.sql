-- Code and its constants far from each other, as memory beside large shared memory may be: no
-- reference between them may be one of 32 bits.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
DROP FUNCTION mot_jit_installed();
\if :absent
\echo there is no compiler
\quit
\endif
CREATE FUNCTION mot_jit_scatter() RETURNS int AS '$libdir/mot' LANGUAGE C;
CREATE FUNCTION mot_jit_compare(query text, VARIADIC params "any") RETURNS text AS '$libdir/mot' LANGUAGE C;

CREATE FOREIGN TABLE far (id int PRIMARY KEY, f float8, r real, d numeric(12, 2), at timestamptz) SERVER mot_server;
INSERT INTO far SELECT i, i / 7.0, i / 3.0, i / 4.0, timestamptz '2026-01-01 UTC' + i * interval '1 hour' FROM generate_series(1, 1000) i;
CREATE TABLE far_heap USING heap AS TABLE far;
CREATE FUNCTION far_loop(tab text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE x float8 := 0; a int := 0; b float8; c bigint := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		IF tab = 'mot' THEN
			SELECT f INTO b FROM far WHERE id = i;
		ELSE
			SELECT f INTO b FROM far_heap WHERE id = i;
		END IF;
		CASE i % 7
			WHEN 0 THEN x := x + b * 1.5;
			WHEN 1 THEN x := x - 0.3::float8 / 7.1::float8;
			WHEN 2 THEN a := a + i;
			WHEN 3 THEN CONTINUE;
			WHEN 4 THEN c := c + i * 3;
			ELSE x := x + 1e-3::float8 * sqrt(b);
		END CASE;
	END LOOP;
	RETURN concat_ws(' ', x, a, c);
END $$;

\c -
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SET mot.jit_procedures = on;
SET mot.jit_procedures_above_executions = 0;
-- (what the first one loads and makes is there before)
SELECT mot_jit_compare('SELECT f * 1.5 FROM far WHERE f > 100.5', 1);
SELECT far_loop('heap', 10) = far_loop('mot', 10) AS same;
SELECT mot_jit_scatter() > 0 AS scattered;

SELECT mot_jit_compare('SELECT f * 1.25 + 0.375, r - 0.1::real, f / 3.7 FROM far WHERE f > 17.25 AND f < 99.9', 1);
SELECT mot_jit_compare('SELECT f::int, f::bigint, id::float8, r::int, -f, abs(r), d * 3, d + 1.25 FROM far WHERE f NOT BETWEEN 10.5 AND 20.5', 1);
SELECT mot_jit_compare('SELECT CASE id % 6 WHEN 0 THEN f WHEN 1 THEN 2.5 WHEN 2 THEN f - 1.75 WHEN 3 THEN -0.5 WHEN 4 THEN 1e300 ELSE 0.1 END FROM far', 1);
SELECT mot_jit_compare('SELECT extract(epoch FROM at), at + interval ''1 day'' FROM far WHERE at > timestamptz ''2026-01-10 UTC''', 1);
PREPARE far_sum(float8) AS SELECT sum(f * 1.5), avg(f), min(r), max(d), count(*) FROM far WHERE f > $1 AND f < 100.25;
EXECUTE far_sum(3.5);
SELECT sum(f * 1.5), avg(f), min(r), max(d), count(*) FROM far_heap WHERE f > 3.5 AND f < 100.25;
PREPARE far_update(int) AS UPDATE far SET f = f * 1.0625 + 0.75, r = r + 0.5 WHERE id = $1 AND f > 0.01;
EXECUTE far_update(700);
EXECUTE far_update(701);
UPDATE far_heap SET f = f * 1.0625 + 0.75, r = r + 0.5 WHERE id IN (700, 701) AND f > 0.01;
TABLE far EXCEPT TABLE far_heap;
-- (each statement of SQL is a place where code goes on)
CREATE FUNCTION far_again(tab text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE x float8 := 0.5; r record; found_f float8; found_d numeric;
BEGIN
	FOR i IN 1 .. n LOOP
		CASE i % 5 WHEN 0 THEN x := x * 1.0001; WHEN 1 THEN x := x + 0.7::float8; WHEN 2 THEN x := x - i; WHEN 3 THEN CONTINUE; ELSE x := -x; END CASE;
		EXECUTE format('SELECT d FROM %s WHERE id = $1', CASE tab WHEN 'mot' THEN 'far' ELSE 'far_heap' END) INTO found_d USING i;
		SELECT f INTO found_f FROM far WHERE id = i;
		SELECT d + found_d INTO found_d FROM far WHERE id = i;
		FOR r IN SELECT f FROM far WHERE id BETWEEN i AND i + 2 LOOP x := x + r.f; END LOOP;
		SELECT max(f) INTO found_f FROM far WHERE id BETWEEN i AND i + 5 AND f > 0.5;
		PERFORM 1 FROM far WHERE id = -i;
		IF FOUND THEN RAISE NOTICE 'there is none'; END IF;
		x := x + found_f * 0.125 + found_d;
	END LOOP;
	RETURN far_loop(tab, n) || ' ' || x;
END $$;
SELECT far_again('heap', 50) = far_again('mot', 50) AS same, far_again('heap', 1000) = far_again('mot', 1000) AS same;
SELECT mot_jit_compare('SELECT CASE id WHEN 1 THEN id / v WHEN 2 THEN v / id WHEN 3 THEN v * 7 WHEN 4 THEN id % v WHEN 5 THEN v - 3 WHEN 6 THEN id * v END FROM (SELECT id, id % 8 AS v FROM far) s', 1);
SELECT count(*) > 0 AS compiled FROM mot_stat_jit WHERE query ~ 'FROM far WHERE' AND tier = 2;

\c -
DROP FUNCTION far_loop, far_again, mot_jit_scatter, mot_jit_compare;
DROP FOREIGN TABLE far;
DROP TABLE far_heap;
