-- Machine code of a session: how much, for how long, and how long it takes.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
\if :absent
DROP FUNCTION mot_jit_installed();
\echo there is no compiler
\quit
\endif
DROP FUNCTION mot_jit_installed();

SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
CREATE FOREIGN TABLE jit_mem (id int PRIMARY KEY, v int NOT NULL, t text) SERVER mot_server;
INSERT INTO jit_mem SELECT i, i, 'row ' || i FROM generate_series(1, 10) i;
CREATE VIEW jit_mem_code AS SELECT count(*) FILTER (WHERE tier = 2) AS compiled, count(*) FILTER (WHERE code_bytes > 0 AND memory_bytes > 0) AS sized,
	max(why_not_compiled) FILTER (WHERE tier = 1) AS why_not FROM mot_stat_jit WHERE query ~ 'FROM jit_mem WHERE';
-- names of their own, constants of their own
CREATE FUNCTION jit_mem_prepare(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r int; total bigint := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('PREPARE jit_mem_%s(int) AS SELECT v * 2 + %s FROM jit_mem WHERE id = $1 AND v < 1000 + %s', i, i, i);
		EXECUTE format('EXECUTE jit_mem_%s(3)', i) INTO r;
		total := total + r;
	END LOOP;
	RETURN total;
END $$;

-- all of it is seen, and goes: with the statement, with all, with what the plan depends on
SELECT jit_mem_prepare(20);
TABLE jit_mem_code;
DEALLOCATE jit_mem_1;
TABLE jit_mem_code;
DEALLOCATE ALL;
TABLE jit_mem_code;
SELECT jit_mem_prepare(20);
TABLE jit_mem_code;
DISCARD ALL;
TABLE jit_mem_code;
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SELECT jit_mem_prepare(5);
ALTER TABLE jit_mem ADD COLUMN n int;
EXECUTE jit_mem_1(4);
TABLE jit_mem_code;
DISCARD PLANS;
EXECUTE jit_mem_1(4);
TABLE jit_mem_code;
DEALLOCATE ALL;

-- none: statements run, and are compiled when there is room
SET mot.jit_memory = 0;
SELECT jit_mem_prepare(3);
TABLE jit_mem_code;
RESET mot.jit_memory;
DO $$ DECLARE r int; BEGIN FOR i IN 1 .. 1100 LOOP EXECUTE 'EXECUTE jit_mem_1(3)' INTO r; END LOOP; END $$;
TABLE jit_mem_code;
DEALLOCATE ALL;
-- a little: the bound holds, by a program at most
SET mot.jit_memory = '200kB';
SELECT jit_mem_prepare(50);
SELECT compiled BETWEEN 3 AND 25 AS some, compiled = sized AS all_sized, why_not FROM jit_mem_code;
DEALLOCATE ALL;
SELECT jit_mem_prepare(3);
TABLE jit_mem_code;
RESET mot.jit_memory;
DEALLOCATE ALL;

-- thousands come and go, and nothing grows: the session's own memory, as the system sees it
CREATE FUNCTION jit_mem_used() RETURNS bigint LANGUAGE sql AS $$
	SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)')::bigint
$$;
CREATE FUNCTION jit_mem_churn(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('PREPARE jit_mem_churn(int) AS SELECT v * 2 + %s FROM jit_mem WHERE id = $1 AND v < 1000 + %s', i, i);
		EXECUTE 'EXECUTE jit_mem_churn(3)' INTO r;
		IF r <> 6 + i THEN RAISE 'wrong'; END IF;
		DEALLOCATE jit_mem_churn;
	END LOOP;
END $$;
SELECT jit_mem_churn(100);
SELECT jit_mem_used() AS before \gset
SELECT jit_mem_churn(700);
SELECT CASE WHEN jit_mem_used() - :before < 2048 THEN 'less than 2 MB' ELSE (jit_mem_used() - :before)::text END AS grown;

-- long ones are left to the server's expressions
CREATE FUNCTION jit_mem_long(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r int; result text;
BEGIN
	EXECUTE (SELECT 'PREPARE jit_mem_long(int) AS SELECT ' || string_agg('v * ' || i, ', ') FROM generate_series(1, n) i) || ' FROM jit_mem WHERE id = $1';
	EXECUTE 'EXECUTE jit_mem_long(2)' INTO r;
	SELECT concat_ws(' ', tier, why_not_compiled) INTO result FROM mot_stat_jit WHERE query ~ 'jit_mem_long';
	DEALLOCATE jit_mem_long;
	RETURN result;
END $$;
SELECT jit_mem_long(60), jit_mem_long(70);

-- the first executions wait for nothing: neither for the program that is run without the executor, nor for machine code
CREATE FUNCTION jit_mem_tiers(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r int; result text := '';
BEGIN
	EXECUTE 'PREPARE jit_mem_tiers(int) AS SELECT v * 2 FROM jit_mem WHERE id = $1';
	FOR i IN 1 .. n LOOP
		EXECUTE 'EXECUTE jit_mem_tiers(2)' INTO r;
		result := result || (SELECT coalesce(max(tier), 0) || CASE WHEN max(prepare_ms) > 0 THEN 'p' ELSE '' END
			|| CASE WHEN max(compile_ms) > 0 THEN 'c' ELSE '' END || ' ' FROM mot_stat_jit WHERE query ~ 'PREPARE jit_mem_tiers');
	END LOOP;
	DEALLOCATE jit_mem_tiers;
	RETURN result;
END $$;
SELECT jit_mem_tiers(2);
SET mot.jit_prepare_above_executions = 3;
SET mot.jit_above_executions = 4;
SELECT jit_mem_tiers(10);
-- code has to pay: many rows for one message, and not one row for each of many
SET mot.jit_above_rows = 3;
SELECT jit_mem_tiers(10);
PREPARE jit_mem_single(int) AS SELECT v * 2 FROM jit_mem WHERE id = $1;
EXECUTE jit_mem_single(1) \; EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
EXECUTE jit_mem_single(1);
SELECT tier, why_not_compiled FROM mot_stat_jit WHERE query ~ 'PREPARE jit_mem_single';
DEALLOCATE jit_mem_single;
PREPARE jit_mem_all AS SELECT count(v * 2) FROM jit_mem;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
EXECUTE jit_mem_all;
SELECT tier, why_not_compiled FROM mot_stat_jit WHERE query ~ 'PREPARE jit_mem_all';
DEALLOCATE jit_mem_all;
SET mot.jit_above_rows = 0;
SELECT jit_mem_tiers(10);
SET mot.jit_above_executions = -1;
SELECT jit_mem_tiers(10);
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;

-- no execution waits for more than one or two programs, unless all are to be compiled at once
SELECT 'PREPARE parts(int) AS SELECT j1.v FROM ' || string_agg(format('jit_mem j%s', i), ', ') || ' WHERE j1.id = $1'
	|| string_agg(format(' AND j%s.v * 3 - 1 <> 7 AND j%s.v %% 100 < 99 AND j%s.t <> ''x'' AND j%s.t < ''z'' AND length(j%s.t) < 100', i, i, i, i, i), '')
	|| string_agg(format(' AND j%s.id = j%s.v %% 9 + 1', i, i - 1), '') FILTER (WHERE i > 1) FROM generate_series(1, 8) i \gexec
CREATE FUNCTION jit_mem_parts() RETURNS bigint LANGUAGE sql AS $$ SELECT code_bytes FROM mot_stat_jit WHERE query ~ 'PREPARE parts' $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET join_collapse_limit = 1;
SET from_collapse_limit = 1;
EXECUTE parts(1);
SELECT jit_mem_parts() AS all_parts \gset
DISCARD PLANS;
SET mot.jit_above_executions = 1;
SET mot.jit_above_rows = 0;
EXECUTE parts(1);
SELECT jit_mem_parts() AS no_parts \gset
EXECUTE parts(2);
SELECT jit_mem_parts() AS some_parts \gset
DO $$ DECLARE r int; BEGIN FOR i IN 1 .. 8 LOOP EXECUTE 'EXECUTE parts(3)' INTO r; END LOOP; END $$;
EXECUTE parts(3);
SELECT :no_parts AS no, :some_parts > 0 AND :some_parts < :all_parts AS some, jit_mem_parts() = :all_parts AS all;
DEALLOCATE parts;

DROP VIEW jit_mem_code;
DROP FOREIGN TABLE jit_mem;
DROP FUNCTION jit_mem_prepare, jit_mem_used, jit_mem_churn, jit_mem_long, jit_mem_tiers, jit_mem_parts;
