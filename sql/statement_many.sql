-- More statements than something is kept for: the least used go, and leave nothing behind.
CREATE FOREIGN TABLE many (id integer PRIMARY KEY, v integer) SERVER mot_server;
INSERT INTO many SELECT g, g FROM generate_series(1, 10) g;
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = -1;
CREATE FUNCTION many_round(n integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	sum bigint := 0;
	v integer;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE 'EXECUTE many_' || i || '(' || i % 10 + 1 || ')' INTO v;
		sum := sum + v;
	END LOOP;
	RETURN sum;
END
$$;
-- (without the server's caches, whose memory doubles at once when others' DDL has them read anew,
-- without what is kept for each statement: of how many is settled below, and without the list of contexts itself)
CREATE FUNCTION many_bytes() RETURNS bigint LANGUAGE sql AS
	$$SELECT sum(total_bytes) FROM pg_backend_memory_contexts
		WHERE name NOT IN ('CacheMemoryContext', 'index info', 'MOT statement', 'MOT statement execution', 'ExprContext', 'tuplestore tuples')$$;
DO $$
BEGIN
	FOR i IN 1 .. 1100 LOOP
		EXECUTE format('PREPARE many_%s (integer) AS SELECT v + %s - %s FROM many WHERE id = $1', i, i, i);
	END LOOP;
END
$$;
-- a circle: most run without the executor all the time, when as many are kept as will be
SELECT sum(many_round(1100)) FROM generate_series(1, 30);
SELECT coalesce(sum(executions), 0) AS executions FROM mot_stat_jit WHERE query LIKE 'PREPARE many_%' \gset
SELECT many_bytes() AS before \gset
SELECT sum(many_round(1100)) FROM generate_series(1, 20);
SELECT many_bytes() - :before < 1000000 AS flat, (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'MOT statement') <= 1024 AS bounded, sum(executions) - :executions > 20 * 800 AS without, count(*) > 800 AS known
FROM mot_stat_jit WHERE query LIKE 'PREPARE many_%' AND tier > 0;
-- what is asked once does not push out what is asked all the time
SELECT coalesce(sum(executions), 0) AS executions FROM mot_stat_jit WHERE query LIKE 'PREPARE many_7 %' \gset
DO $$
BEGIN
	FOR i IN 1 .. 5000 LOOP
		EXECUTE 'SELECT v FROM many WHERE id = ' || i;
		EXECUTE 'EXECUTE many_7 (1)';
	END LOOP;
END
$$;
SELECT executions - :executions FROM mot_stat_jit WHERE query LIKE 'PREPARE many_7 %';
-- other statements have their turn
DO $$
BEGIN
	FOR i IN 1 .. 1100 LOOP
		EXECUTE format('DEALLOCATE many_%s', i);
		EXECUTE format('PREPARE many_%s (integer) AS SELECT v + %s - %s AS other FROM many WHERE id = $1', i, i, i);
	END LOOP;
END
$$;
SELECT sum(many_round(900)) FROM generate_series(1, 8);
SELECT count(*) AS others FROM mot_stat_jit WHERE query LIKE '%AS other%' AND tier > 0;
DEALLOCATE ALL;
SELECT count(*) FROM mot_stat_jit WHERE query LIKE 'PREPARE many%';
DROP FUNCTION many_round(integer), many_bytes();
DROP FOREIGN TABLE many;
