--
-- Bitmap scans of ordinary tables, with a twin in heap: what indexes find for
-- conditions joined by OR and AND.
--
SET enable_indexscan = on;
CREATE TABLE bm_heap (a int, b int, c text, d int, PRIMARY KEY (a, b));
CREATE INDEX bm_heap_c ON bm_heap (c);
CREATE INDEX bm_heap_d ON bm_heap (d) WHERE d > 10;
CREATE TABLE bm_mot (LIKE bm_heap INCLUDING ALL) USING mot;
INSERT INTO bm_heap SELECT i / 100, i % 100, CASE WHEN i % 7 = 0 THEN NULL ELSE 'c' || i % 500 END, i % 1000
	FROM generate_series(1, 20000) i;
INSERT INTO bm_mot SELECT * FROM bm_heap;
ANALYZE bm_heap, bm_mot;

EXPLAIN (COSTS OFF) SELECT * FROM bm_mot WHERE (a, b) IN ((1, 2), (3, 4), (5, 99), (500, 1)) FOR UPDATE;
EXPLAIN (COSTS OFF) SELECT * FROM bm_mot WHERE c = 'c77' OR a = 4 AND b < 10;
EXPLAIN (COSTS OFF) UPDATE bm_mot SET d = -1 WHERE d = 17 OR c = 'c2';
-- not where EvalPlanQual would run it
EXPLAIN (COSTS OFF) UPDATE bm_mot SET d = (SELECT count(*) FROM bm_mot x WHERE x.c = bm_mot.c OR x.d = bm_mot.d AND x.d > 10)
	WHERE a = 1 AND b = 1;

-- the rows that a condition finds in one and not in the other: none
CREATE FUNCTION bm_differ(condition text) RETURNS TABLE (rows bigint, only_heap bigint, only_mot bigint, plan text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT * FROM bm_mot WHERE ' || condition LOOP
		plan := concat_ws(' ', plan, substring(line from '(Bitmap\w+|Index Scan|Seq Scan)'));
	END LOOP;
	EXECUTE format('SELECT count(*) FROM bm_mot WHERE %1$s', condition) INTO rows;
	EXECUTE format('SELECT count(*) FROM (SELECT * FROM bm_heap WHERE %1$s EXCEPT ALL SELECT * FROM bm_mot WHERE %1$s) x', condition) INTO only_heap;
	EXECUTE format('SELECT count(*) FROM (SELECT * FROM bm_mot WHERE %1$s EXCEPT ALL SELECT * FROM bm_heap WHERE %1$s) x', condition) INTO only_mot;
	RETURN NEXT;
END $$;
CREATE VIEW bm_all AS SELECT condition, d.* FROM (VALUES
	('(a, b) IN ((1, 2), (3, 4), (5, 99), (500, 1))'),
	('c = ''c77'' OR a = 4 AND b < 10'),
	('c = ''c77'' OR c IS NULL AND a = 7'),
	('a = 5 OR a = 6 AND b IN (1, 2, 3) OR d = 900'),
	('d = 17 AND c = ''c17'''),
	('(d = 17 OR c = ''c2'') AND (a < 50 OR b = 17)'),
	('a = NULL OR c = ''c1'''),
	('a IS NULL OR c = ''c1''')) v (condition), bm_differ(condition) d;
SELECT * FROM bm_all;

-- bitmaps that keep only blocks, for want of memory
CREATE TABLE bm_many (i int PRIMARY KEY, j int) USING mot;
INSERT INTO bm_many SELECT i, i % 10 FROM generate_series(1, 250000) i;
DELETE FROM bm_many WHERE i % 5000 BETWEEN 1 AND 999;
CREATE FUNCTION bm_lossy(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lossy bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		lossy := lossy OR line LIKE '%lossy=%';
	END LOOP;
	RETURN lossy;
END $$;
SET work_mem = '64kB';
SET enable_indexscan = off;
SET enable_seqscan = off;
SELECT bm_lossy('SELECT * FROM bm_many WHERE i > 7 OR i = 1');
SELECT count(*), sum(i), sum(j) FROM bm_many WHERE i > 7 OR i = 1;
SELECT bm_lossy('SELECT * FROM bm_many WHERE i < 5000');
DROP TABLE bm_many;
DROP FUNCTION bm_lossy;
RESET work_mem;
SELECT * FROM bm_all;
RESET enable_seqscan;
RESET enable_indexscan;

-- own changes, and what is read ahead of a table whose file is empty
SET effective_io_concurrency = 100;
BEGIN;
UPDATE bm_heap SET d = d + 1 WHERE (a, b) IN ((1, 2), (3, 4)) OR c = 'c100';
UPDATE bm_mot SET d = d + 1 WHERE (a, b) IN ((1, 2), (3, 4)) OR c = 'c100';
DELETE FROM bm_heap WHERE d = 20 OR c = 'c3';
DELETE FROM bm_mot WHERE d = 20 OR c = 'c3';
UPDATE bm_heap SET c = 'c1', b = b + 1000 WHERE c = 'c2' OR d = 31;
UPDATE bm_mot SET c = 'c1', b = b + 1000 WHERE c = 'c2' OR d = 31;
INSERT INTO bm_heap SELECT 1000, i, 'c77', 900 FROM generate_series(1, 50) i;
INSERT INTO bm_mot SELECT 1000, i, 'c77', 900 FROM generate_series(1, 50) i;
SELECT * FROM bm_all;
SAVEPOINT s;
DELETE FROM bm_heap WHERE c = 'c77' OR a = 4;
DELETE FROM bm_mot WHERE c = 'c77' OR a = 4;
SELECT sum(only_heap + only_mot) FROM bm_all;
ROLLBACK TO s;
SELECT sum(only_heap + only_mot) FROM bm_all;
COMMIT;
SELECT * FROM bm_all;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE bm_heap SET d = 900 WHERE a = 9 OR d = 17;
UPDATE bm_mot SET d = 900 WHERE a = 9 OR d = 17;
SELECT sum(rows), sum(only_heap + only_mot) FROM bm_all;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE bm_heap SET d = 17 WHERE a = 10 OR d = 900;
UPDATE bm_mot SET d = 17 WHERE a = 10 OR d = 900;
SELECT sum(rows), sum(only_heap + only_mot) FROM bm_all;
COMMIT;
SELECT sum(rows), sum(only_heap + only_mot) FROM bm_all;

-- cursors, forward and (with SCROLL) back; scans that begin again with other values
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM bm_mot WHERE (a, b) IN ((1, 2), (3, 4), (5, 99)) ORDER BY 1;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH ALL FROM c;
COMMIT;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM generate_series(1, 20) g JOIN bm_mot ON a = g AND b = 1 OR d = g AND d > 10;
SELECT (SELECT count(*) FROM generate_series(1, 20) g JOIN bm_mot ON a = g AND b = 1 OR d = g AND d > 10) =
	(SELECT count(*) FROM generate_series(1, 20) g JOIN bm_heap ON a = g AND b = 1 OR d = g AND d > 10) AS same;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- without the executor
SET mot.jit_prepare_above_executions = 0;
SET plan_cache_mode = force_generic_plan;
PREPARE by_or (int, int, text) AS SELECT a, b, c, d FROM bm_mot WHERE (a, b) IN (($1, 1), ($1, $2), ($2, $1)) OR c = $3 AND d > 10 OR d = $2 AND d > 10;
PREPARE change_by_or (int, int) AS UPDATE bm_mot SET c = c || 'x' WHERE (a, b) IN (($1, 1), ($1, $2), ($2, $1));
EXECUTE by_or (3, 4, 'c5') \g /dev/null
EXECUTE change_by_or (-3, -4);
DO $$
DECLARE
	x int;
	y int;
	differ int := 0;
BEGIN
	FOR i IN 1 .. 60 LOOP
		x := i * 7 % 210;
		y := i * 31 % 100;
		UPDATE bm_heap SET c = c || 'y', b = b + 2000 WHERE (a, b) IN ((x, 1), (x, y), (y, x)) OR d = x AND d > 10;
		UPDATE bm_mot SET c = c || 'y', b = b + 2000 WHERE (a, b) IN ((x, 1), (x, y), (y, x)) OR d = x AND d > 10;
		DELETE FROM bm_heap WHERE a = y AND b = x OR c = 'c' || y;
		DELETE FROM bm_mot WHERE a = y AND b = x OR c = 'c' || y;
		PERFORM FROM bm_heap WHERE (a, b) IN ((x, 1), (x, y), (y, x)) OR c = 'c' || y OR d = y AND d > 10
			HAVING (count(*), coalesce(sum(a), 0), coalesce(sum(b), 0), coalesce(sum(d), 0)) =
				(SELECT count(*), coalesce(sum(a), 0), coalesce(sum(b), 0), coalesce(sum(d), 0) FROM bm_mot
				WHERE (a, b) IN ((x, 1), (x, y), (y, x)) OR c = 'c' || y OR d = y AND d > 10);
		IF NOT FOUND THEN
			differ := differ + 1;
		END IF;
		PERFORM FROM bm_mot WHERE a = x OR d = y AND d > 10 FOR UPDATE;
	END LOOP;
	RAISE NOTICE '% differ', differ;
END $$;
SELECT regexp_replace(left(query, 32), '\s+', ' ', 'g') AS statement, tier > 0 AS runs, why_not FROM mot_stat_jit WHERE query ~ 'bm_mot' AND query ~ ' OR |by_or' AND query !~ 'mot_stat' ORDER BY 1, 2;
SELECT count(*) FROM (SELECT * FROM bm_heap EXCEPT ALL SELECT * FROM bm_mot) x;
SELECT count(*) FROM (SELECT * FROM bm_mot EXCEPT ALL SELECT * FROM bm_heap) x;
RESET ALL;

-- in a worker
SELECT name AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \gset
SET :forced = on;
SET enable_seqscan = off;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a), sum(b) FROM bm_mot WHERE a < 150 OR d < 900 AND d > 10;
BEGIN;
UPDATE bm_heap SET d = d + 7 WHERE a = 11;
UPDATE bm_mot SET d = d + 7 WHERE a = 11;
SELECT sum(rows), sum(only_heap + only_mot) FROM bm_all;
SELECT (SELECT (count(*), sum(a), sum(b)) FROM bm_mot WHERE a < 150 OR d < 900 AND d > 10) = (SELECT (count(*), sum(a), sum(b)) FROM bm_heap WHERE a < 150 OR d < 900 AND d > 10) AS same;
COMMIT;
RESET ALL;

-- a plan that finds btree's routine where ours was
CREATE FUNCTION mot_test_put_back(regclass) RETURNS void AS '$libdir/mot' LANGUAGE C STRICT;
SET plan_cache_mode = force_generic_plan;
PREPARE by_bitmap AS SELECT count(*) FROM bm_mot WHERE a = 3 AND b < 50 OR c = 'c77';
EXECUTE by_bitmap;
SELECT mot_test_put_back('bm_mot');
EXECUTE by_bitmap;
DROP FUNCTION mot_test_put_back;
RESET ALL;

DROP VIEW bm_all;
DROP FUNCTION bm_differ;
DROP TABLE bm_heap, bm_mot;
