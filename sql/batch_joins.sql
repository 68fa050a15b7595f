--
-- Hash joins whose tables are looked up by ours (src/batch/probe.c): the same rows, or the
-- same error, as the server's node gives, and as heap gives.
--
-- EXPLAIN (VERBOSE) but for the numbers, and for what 18 shows otherwise: the line about batches stands where costs do
-- (on 18 there are words at the nodes, which are made into the line that there was before)
CREATE FUNCTION explained(query text, options text DEFAULT '') RETURNS TABLE ("QUERY PLAN" text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	node text;
	nodes text[];
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (VERBOSE%s) %s', options, query) LOOP
		node := coalesce(substring(line from '^ *(?:->  )?(?:Finalize |Partial |Parallel )?(\w.*?)  \(cost='), node);
		"QUERY PLAN" := regexp_replace(regexp_replace(line, '  ?\(cost=[^)]*\)', ''), '(actual rows=\d+)\.00', '\1');
		IF line ~ '^ +MOT Batches: ' THEN
			nodes := nodes || (regexp_replace(regexp_replace(node, '^Hash .*Join$', 'Hash Join'), ' on public\.(\w+).*', ' on \1') || substring(line from ': .*'));
		ELSIF line !~ '^(Statement| *Disabled): ' THEN
			RETURN NEXT;
		END IF;
	END LOOP;
	IF nodes IS NOT NULL THEN
		"QUERY PLAN" := 'MOT Batches: ' || array_to_string(nodes, ', ');
		RETURN NEXT;
	END IF;
END $$;
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;

CREATE TABLE heap_fact (
	id int, i2 int2, i4 int4, i8 int8, t text, v varchar(20), c char(8), d date, ts timestamp, o oid, n numeric, f8 float8, m numeric(10,2));
INSERT INTO heap_fact
SELECT g, nullif(g % 40, 3), nullif(g % 50, 7), nullif(g % 60, 11), 'key ' || nullif(g % 30, 4), 'key ' || nullif(g % 35, 4), 'c' || nullif(g % 20, 2),
	date '2020-01-01' + nullif(g % 25, 9), timestamp '2020-01-01' + nullif(g % 25, 9) * interval '1 hour', nullif(g % 15, 3), g % 12,
	(ARRAY[0, -0.0, 1.5, 'NaN', NULL])[g % 5 + 1]::float8, g * 1.25
FROM generate_series(1, 1000) g;
CREATE TABLE mot_fact (LIKE heap_fact) USING mot;
INSERT INTO mot_fact SELECT * FROM heap_fact;
CREATE TABLE heap_dim (
	d_t text, id int, i2 int2, i4 int4, i8 int8, t text, v varchar(20), c char(8), d date, ts timestamp, o oid, n numeric, f8 float8);
INSERT INTO heap_dim
SELECT 'row ' || nullif(g % 9, 2), g, nullif(g, 5), nullif(g % 33, 5), nullif(g, 6), 'key ' || nullif(g, 8), 'key ' || g, 'c' || g || '  ',
	date '2020-01-01' + nullif(g, 8), timestamp '2020-01-01' + g * interval '1 hour', g, g * 1.00,
	(ARRAY[0, -0.0, 1.5, 'NaN', NULL])[g % 5 + 1]::float8
FROM generate_series(1, 45) g;
CREATE TABLE mot_dim (LIKE heap_dim) USING mot;
INSERT INTO mot_dim SELECT * FROM heap_dim;
ANALYZE heap_fact, mot_fact, heap_dim, mot_dim;

-- what a query gives: all rows, or the error
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || md5(coalesce(string_agg(r::text, ''|'' ORDER BY r::text COLLATE "C"), '''')) FROM (%s) r',
				   query) INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

-- whatever differs
CREATE FUNCTION differences(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	heap text;
	ours text;
	code text;
	servers text;
BEGIN
	SET LOCAL mot.batches = on;
	SET LOCAL mot.jit_above_scanned = -1;
	ours = answer(replace(query, 'TWIN', 'mot'));
	code = ours;
	IF query ~ 'sum|OR|/|EXISTS' THEN
		SET LOCAL mot.jit_above_scanned = 0;
		code = answer(replace(query, 'TWIN', 'mot'));
	END IF;
	SET LOCAL mot.batches = off;
	servers = answer(replace(query, 'TWIN', 'mot'));
	SET LOCAL mot.batches = on;
	IF ours <> servers OR code <> servers THEN
		RETURN NEXT format('%s: batches %s, machine code %s, without %s', query, ours, code, servers);
	END IF;
	heap = answer(replace(query, 'TWIN', 'heap'));
	IF ours <> heap THEN
		RETURN NEXT format('%s: batches %s, heap %s', query, ours, heap);
	END IF;
END
$$;

CREATE TABLE conditions (k text);
INSERT INTO conditions SELECT format('f.%s = x.%s', a, a) FROM unnest(ARRAY['i2', 'i4', 'i8', 't', 'v', 'c', 'd', 'ts', 'o', 'n', 'f8']) a;
INSERT INTO conditions VALUES ('f.i2 = x.i4'), ('f.i4 = x.i8'), ('f.i8 = x.i2'), ('f.i8 = x.i4'), ('f.t = x.v'), ('f.i4 % 10 = x.i4'), ('f.i4 = x.i4 + 1'),
	('f.i4 = x.i4 AND f.t = x.t'), ('f.i4 = x.i4 AND f.i8 = x.i8 AND f.n = x.n'), ('f.i4 = x.i4 AND f.m > x.id * 10'),
	('f.i4 = x.i4 AND f.i2 = 0'), ('f.t COLLATE "C" = x.t'), ('f.id = x.i2 AND f.d <= x.d');
CREATE TABLE joins (j text);
INSERT INTO joins VALUES
	('SELECT f.id, x.id AS x, x.d_t, f.v FROM TWIN_fact f JOIN TWIN_dim x ON %s'),
	('SELECT f.id + x.id, f.m, x FROM TWIN_fact f JOIN TWIN_dim x ON %s'),
	('SELECT f.id, x.id AS x, x.v FROM TWIN_fact f LEFT JOIN TWIN_dim x ON %s'),
	('SELECT f.id, x.id AS x, x.v FROM TWIN_fact f LEFT JOIN TWIN_dim x ON %s WHERE x.id IS NULL OR x.i4 > 10'),
	('SELECT f.id, x.id AS x, x.v FROM TWIN_dim x LEFT JOIN TWIN_fact f ON %s'),
	('SELECT f.id, x.id AS x, x.v FROM (SELECT * FROM TWIN_fact WHERE id < 800) f RIGHT JOIN TWIN_dim x ON %s'),
	('SELECT f.id, x.id AS x, x.v FROM TWIN_fact f FULL JOIN TWIN_dim x ON %s'),
	('SELECT f.id, f.t FROM TWIN_fact f WHERE EXISTS (SELECT FROM TWIN_dim x WHERE %s)'),
	('SELECT f.id, f.t FROM TWIN_fact f WHERE NOT EXISTS (SELECT FROM TWIN_dim x WHERE %s)'),
	('SELECT x.id, x.t FROM TWIN_dim x WHERE EXISTS (SELECT FROM TWIN_fact f WHERE %s)'),
	('SELECT x.id, x.t FROM TWIN_dim x WHERE NOT EXISTS (SELECT FROM TWIN_fact f WHERE %s)'),
	('SELECT x.t, count(*), sum(f.m), max(f.id) FROM TWIN_fact f JOIN TWIN_dim x ON %s GROUP BY x.t');
SELECT d FROM joins, conditions, differences(format(j, k)) d;

-- stars
CREATE VIEW star AS SELECT 'SELECT x.d_t, y.i4, count(*), sum(f.m), sum(f.m * y.n) FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id LEFT JOIN TWIN_dim y ON f.i8 = y.i8 WHERE x.i2 > 10 GROUP BY x.d_t, y.i4' AS star;
SELECT differences(star) FROM star;
SELECT differences('SELECT x.id, y.id, z.id, f.* FROM TWIN_fact f, TWIN_dim x, TWIN_dim y, TWIN_dim z WHERE f.i4 = x.i4 AND x.id = y.i8 AND f.t = z.t');
SELECT * FROM explained($q$SELECT x.d_t, sum(f.m) FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id WHERE x.i2 > 10 GROUP BY x.d_t$q$);
SELECT * FROM explained($q$SELECT count(*) FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id AND f.id > x.i2 * 15$q$, ', ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF');

-- a heap table on either side, and none of ours
SELECT count(*), sum(x.id) FROM mot_fact f JOIN heap_dim x ON f.i4 = x.id;
SELECT count(*), sum(x.id) FROM heap_fact f JOIN mot_dim x ON f.i4 = x.id;
SELECT * FROM explained($q$SELECT count(*) FROM heap_fact f JOIN heap_dim x ON f.i4 = x.id$q$);

-- rows that are changed or locked are left to the server's nodes
SELECT * FROM explained($q$UPDATE mot_fact f SET m = 0 FROM mot_dim x WHERE f.i4 = x.id$q$);
SELECT * FROM explained($q$INSERT INTO conditions SELECT x.t FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id$q$);

-- errors in keys, conditions and outputs
SELECT differences('SELECT f.id FROM TWIN_fact f JOIN TWIN_dim x ON 100 / (f.i4 - 30) = x.id');
SELECT differences('SELECT f.id FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id AND 1 / (f.i8 - 30) < x.i2');
SELECT differences('SELECT f.id / (x.id - 30) FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id');

-- started anew, with parameters and without; stopped on the way
SELECT differences('SELECT i, s.* FROM generate_series(1, 10) i, LATERAL (SELECT count(*), sum(x.id) FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id WHERE f.id < i * 100) s');
SELECT differences('SELECT i, s.* FROM generate_series(1, 10) i, LATERAL (SELECT count(*), sum(x.id) FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id AND x.id > i OFFSET 0) s');
SELECT differences('SELECT i, (SELECT f.id FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id WHERE f.id > i ORDER BY f.id LIMIT 1) FROM generate_series(1, 10) i');
SELECT differences('SELECT count(*) FROM (SELECT 1 FROM TWIN_fact f JOIN TWIN_dim x ON f.i4 = x.id LIMIT 70) s');
BEGIN;
DECLARE cur CURSOR FOR SELECT f.id FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id;
MOVE 100 FROM cur;
DELETE FROM mot_fact;
DELETE FROM mot_dim;
MOVE ALL FROM cur;
SELECT count(*) FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id;
ROLLBACK;
SELECT differences('SELECT f.id, x.id FROM TWIN_fact f JOIN (SELECT * FROM TWIN_dim WHERE id < 0) x ON f.i4 = x.id');
SELECT differences('SELECT f.id, x.id FROM TWIN_fact f LEFT JOIN (SELECT * FROM TWIN_dim WHERE id < 0) x ON f.i4 = x.id');
SELECT differences('SELECT f.id, x.id FROM (SELECT * FROM TWIN_fact WHERE id < 0) f FULL JOIN TWIN_dim x ON f.i4 = x.id');

-- rows of the table are what is shown: those without a partner, or with one, and the table serves again
CREATE TABLE heap_many USING heap AS SELECT g AS id, g % 400 AS k FROM generate_series(1, 3000) g;
CREATE TABLE mot_many USING mot AS SELECT * FROM heap_many;
CREATE TABLE heap_few USING heap AS SELECT g AS k, g % 9 AS a FROM generate_series(300, 500) g;
CREATE TABLE mot_few USING mot AS SELECT * FROM heap_few;
ANALYZE heap_many, mot_many, heap_few, mot_few;
SELECT differences('SELECT x.k FROM TWIN_few x WHERE NOT EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k)');
SELECT differences('SELECT i, s.* FROM generate_series(1, 3) i, LATERAL (SELECT count(*), sum(x.k) FROM TWIN_few x WHERE NOT EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id < i * 1000)) s');
SELECT differences('SELECT x.k FROM TWIN_few x WHERE NOT EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id > x.a * 300)');
SELECT differences('SELECT i, s.* FROM generate_series(1, 3) i, LATERAL (SELECT count(*), sum(x.k) FROM TWIN_few x WHERE NOT EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id < i * 1000 AND f.id > x.a * 300)) s');
SELECT differences('SELECT x.k FROM TWIN_few x WHERE EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k)');
SELECT differences('SELECT i, s.* FROM generate_series(1, 3) i, LATERAL (SELECT count(*), sum(x.k) FROM TWIN_few x WHERE EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id < i * 1000)) s');
SELECT differences('SELECT x.k FROM TWIN_few x WHERE EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id > x.a * 300)');
SELECT differences('SELECT i, s.* FROM generate_series(1, 3) i, LATERAL (SELECT count(*), sum(x.k) FROM TWIN_few x WHERE EXISTS (SELECT FROM TWIN_many f WHERE f.k = x.k AND f.id < i * 1000 AND f.id > x.a * 300)) s');
DROP TABLE heap_many, mot_many, heap_few, mot_few;

-- rows of a heap table that are older than its last column: null, and of the hash of that number
CREATE TABLE late (a int) USING heap;
INSERT INTO late SELECT 1474049294 FROM generate_series(1, 150);
ALTER TABLE late ADD b int, ADD c int, ADD d int, ADD e int, ADD f int, ADD g int, ADD h int, ADD i int, ADD j int, ADD k int;
CREATE TABLE heap_early USING heap AS SELECT 1 AS k UNION ALL SELECT 1474049294 UNION ALL SELECT generate_series(2, 200);
CREATE TABLE mot_early USING mot AS SELECT * FROM heap_early;
ANALYZE late, heap_early, mot_early;
INSERT INTO late (a, k) VALUES (1, 1);
SELECT differences('SELECT * FROM TWIN_early RIGHT JOIN late ON TWIN_early.k = late.k');
SELECT differences('SELECT * FROM TWIN_early FULL JOIN late ON TWIN_early.k = late.k');
DROP TABLE late, heap_early, mot_early;

-- little memory: several batches, left to the server's node
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT differences(format(j, 'f.id = x.id')) FROM (SELECT replace(j, 'TWIN_dim', 'TWIN_fact') FROM joins WHERE j !~ 'd_t|, x FROM') s(j);
RESET work_mem;
RESET hash_mem_multiplier;

-- workers, each with a table of its own and with a common one
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_parallel_hash = off;
SELECT * FROM explained($q$SELECT x.d_t, sum(f.m) FROM mot_fact f JOIN mot_dim x ON f.i4 = x.id GROUP BY x.d_t$q$);
SELECT d FROM joins, differences(format(j, 'f.i4 = x.i4')) d;
SELECT differences(star) FROM star;
SET enable_parallel_hash = on;
SELECT d FROM joins, differences(format(j, 'f.i4 = x.i4')) d;
SELECT differences(star) FROM star;
SET max_parallel_workers_per_gather = 0;

DROP VIEW star;
DROP FUNCTION answer, differences;
DROP TABLE heap_fact, mot_fact, heap_dim, mot_dim, conditions, joins;
DROP FUNCTION explained;
