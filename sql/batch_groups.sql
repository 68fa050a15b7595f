--
-- Grouping, DISTINCT and plain aggregates whose rows are taken in by ours
-- (src/batch): the same rows, or the same error, as the server's node gives, and as heap gives.
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
SET enable_sort = off;
-- (a plan that sorts all the same looks dear, from 16 on also of DISTINCT aggregates, and the server would compile each of a thousand)
SET jit = off;

CREATE TABLE heap_twin (
	id int, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, m numeric(12,2), t text, c char(6),
	v varchar(8) COLLATE "C", d date, ts timestamp, b bool, o oid, u uuid, a int[]);
INSERT INTO heap_twin
SELECT g, nullif(g % 7, 3), nullif(g % 100, 50), nullif((g % 13) * 1000000007::int8, 0),
	(ARRAY['0', '-0', 'NaN', '1.5', 'inf', NULL])[g % 6 + 1]::float4,
	(ARRAY['0', '-0', 'NaN', '-2.25', '-inf', NULL, '1e10'])[g % 7 + 1]::float8,
	(ARRAY['0', '1', '1.0', '1.000', '-5.55', '123456789012345678901234567890.123', '0.00000001', NULL])[g % 8 + 1]::numeric,
	nullif(g % 1000, 77) * 1.13, 'text ' || nullif(g % 11, 4),
	(ARRAY['a', 'a  ', 'b', '', NULL])[g % 5 + 1], nullif('v' || g % 9, 'v2'),
	date '2020-01-01' + nullif(g % 20, 9), timestamp '2020-01-01' + nullif(g % 15, 9) * interval '1 hour',
	nullif(g % 3, 2)::bool, g % 4, ('00000000-0000-0000-0000-00000000000' || g % 10)::uuid, ARRAY[g % 3, NULL]
FROM generate_series(1, 1500) g;
CREATE TABLE mot_twin (LIKE heap_twin) USING mot;
INSERT INTO mot_twin SELECT * FROM heap_twin;
ANALYZE heap_twin, mot_twin;

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

-- whatever differs; heap has rows in another order, which some aggregates show
CREATE FUNCTION differences(query text, as_heap bool = true) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	heap text;
	ours text;
	code text;
	servers text;
BEGIN
	SET LOCAL mot.batches = on;
	SET LOCAL mot.jit_above_scanned = 0;
	code = answer(replace(replace(query, 'TWIN_edges', 'mot_edges'), 'TWIN', 'mot_twin'));
	SET LOCAL mot.jit_above_scanned = -1;
	ours = answer(replace(replace(query, 'TWIN_edges', 'mot_edges'), 'TWIN', 'mot_twin'));
	SET LOCAL mot.batches = off;
	servers = answer(replace(replace(query, 'TWIN_edges', 'mot_edges'), 'TWIN', 'mot_twin'));
	SET LOCAL mot.batches = on;
	IF ours <> servers OR code <> servers THEN
		RETURN NEXT format('%s: batches %s, machine code %s, without %s', query, ours, code, servers);
	END IF;
	IF as_heap THEN
		heap = answer(replace(replace(query, 'TWIN_edges', 'heap_edges'), 'TWIN', 'heap_twin'));
		IF ours <> heap THEN
			RETURN NEXT format('%s: batches %s, heap %s', query, ours, heap);
		END IF;
	END IF;
END
$$;

CREATE TABLE keys (k text);
INSERT INTO keys SELECT unnest(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'n', 'm', 't', 'c', 'v', 'd', 'ts', 'b', 'o', 'u', 'a',
	'i4, t', 'f4, f8', 'c, v, n', 'b, d, i2, o', 'i4 % 3, n + 1', 't COLLATE "POSIX"', 'id']);
CREATE TABLE aggregates (a text);
INSERT INTO aggregates SELECT unnest(ARRAY['count(*), count(i2), count(t)',
	'sum(i2), sum(i4), avg(i2), avg(i4)', 'sum(i8), avg(i8), sum(i8) FILTER (WHERE i4 > 20)',
	'sum(f4), sum(f8), avg(f4), avg(f8)', 'sum(n), avg(n), sum(m), avg(m)', 'sum(m * (1 - m)), sum(m * n + i4), sum(-m)',
	'min(i2), max(i2), min(i4), max(i4), min(i8), max(i8), min(o), max(o)',
	'min(f4), max(f4), min(f8), max(f8), min(d), max(d), min(ts), max(ts)',
	'min(n), max(n), min(t), max(t), min(c), max(c), bool_and(b), every(b)',
	'stddev(n), variance(i4), corr(f8, f8), string_agg(t, ''-''), array_agg(i4), max(a)',
	'count(*) FILTER (WHERE b), sum(n) FILTER (WHERE id < 100), avg(m) FILTER (WHERE NULL)']);

SELECT d FROM keys, aggregates, differences(format('SELECT %s, %s FROM TWIN GROUP BY %s', k, a, k), k !~ '[fn]' AND a !~ 'f[48]|_agg|min\(n') d
WHERE k NOT LIKE '%COLLATE%';
SELECT d FROM keys, differences(format('SELECT DISTINCT %s FROM TWIN', k), k !~ '[fn]') d;
SELECT d FROM aggregates, unnest(ARRAY['true', 'i4 > 90', 'false']) w,
	differences(format('SELECT %s FROM TWIN WHERE %s', a, w), a !~ 'f[48]|_agg|min\(n') d;

-- keys that just fit into a group's words and just do not, blanks at the end, numbers too large for a word
CREATE TABLE heap_edges (id int, k text, c char(20), c1 char(1), v varchar(15) COLLATE "C", b bytea, u uuid, n numeric(24,3), m numeric(5,2), z numeric(9,9));
INSERT INTO heap_edges
SELECT g, left('abcdefghijklmnopqrstuvwxyz', nullif(g % 19, 3)) || repeat(' ', g % 2), repeat(' ', g % 3) || left('abcdefghijklmnopqrs', g % 18),
	nullif(substr(' aä', g % 4, 1), 'a'), left('äbcdefghijklmno', g % 16), decode(repeat('00', g % 18), 'hex'), nullif(md5((g % 5)::text), md5('2'))::uuid,
	(ARRAY['NaN', '0', '-0.001', '123456789012345678901.5', '-461168601842738.790', '461168601842738.791', NULL, '10000'])[g % 8 + 1]::numeric,
	(ARRAY['NaN', '0', '1', '1.5', '-999.99', '100', NULL])[g % 7 + 1]::numeric, (ARRAY['0.000000001', '-0.5', '0'])[g % 3 + 1]::numeric
FROM generate_series(1, 2000) g;
CREATE TABLE mot_edges (LIKE heap_edges) USING mot;
INSERT INTO mot_edges SELECT * FROM heap_edges;
ANALYZE heap_edges, mot_edges;
SELECT d FROM unnest(ARRAY['k', 'c', 'c1', 'v', 'b', 'u', 'n', 'm', 'z', 'u, k', 'c1, c, m', 'n, b, v', 'z, c::text', 'c || v']) k,
	unnest(ARRAY['SELECT %s, count(*), sum(id) FROM TWIN_edges GROUP BY %1$s', 'SELECT DISTINCT %s FROM TWIN_edges',
	'SELECT %s, count(*) FROM (SELECT e.* FROM TWIN_edges e JOIN generate_series(1, 2000, 3) g ON g = id) s GROUP BY %1$s']) q,
	differences(format(q, k)) d;
DROP TABLE heap_edges, mot_edges;

-- HAVING, expressions over aggregates, nothing to show
SELECT differences('SELECT i4, sum(m) / count(*) FROM TWIN GROUP BY i4 HAVING max(i8) > 1000');
SELECT differences('SELECT i4 FROM TWIN WHERE false GROUP BY i4');
SELECT differences('SELECT count(*) FROM TWIN HAVING count(*) < 0');
SELECT differences('SELECT FROM TWIN GROUP BY i4');

-- aggregates of somebody else's over the same transition functions, with other initial states
CREATE AGGREGATE three(int) (sfunc = int4_avg_accum, stype = int8[], initcond = '{0,0,0}');
CREATE AGGREGATE from_five(*) (sfunc = int8inc, stype = int8, initcond = '5');
SELECT differences('SELECT i2, three(i4) FROM TWIN GROUP BY i2');
SELECT differences('SELECT i2, from_five(*) FROM TWIN GROUP BY i2');
DROP AGGREGATE three(int), from_five(*);

-- errors: the same
SELECT differences('SELECT i2, sum(1 / (i4 - 60)) FROM TWIN GROUP BY i2');
SELECT differences('SELECT sum(f8 * 1e308) FROM TWIN WHERE f8 = 1e10');
SELECT differences('SELECT sum(1e308::float8) FROM TWIN');
SELECT differences('SELECT sum(i8 * 9000000000) FROM TWIN');
SELECT differences('SELECT sum(n * 1e1000 * 1e1000) FROM TWIN');
SELECT answer('SELECT sum(1 / (i4 - 60)) FROM mot_twin');

-- sums beyond 64 and 128 bits, with scales that differ
SELECT differences('SELECT b, sum(9000000000000000000), avg(9000000000000000000), sum(-9000000000000000000) FROM TWIN GROUP BY b');
SELECT differences('SELECT b, sum(n * 99999999999999999999.9999), sum(n * m * m), avg(1e-30 * n) FROM TWIN GROUP BY b');
SELECT differences('SELECT b, sum((n + 9223372036854775805.5) * (n + 9223372036854775810.5)) FROM TWIN WHERE n = 0 GROUP BY b');
SELECT differences('SELECT b, sum(CASE WHEN id = 1400 THEN ''NaN'' ELSE m END), avg(CASE WHEN id > 1490 THEN ''inf'' ELSE m END) FROM TWIN GROUP BY b');
SELECT differences('SELECT i2, sum(round(m, id % 9)), avg(round(m * 1000, -(id % 5))) FROM TWIN GROUP BY i2');
SELECT differences('SELECT b, sum(0 - (n - 9223372036854775809) * 18446744073709551616) FILTER (WHERE n = 1) FROM TWIN GROUP BY b');
-- more digits shown than numeric has
SELECT differences(replace('SELECT b, sum(m * LONG * LONG) FROM TWIN GROUP BY b', 'LONG', '1.' || repeat('0', 9000)));

-- sub-queries that start anew, with parameters and without
SELECT differences('SELECT i, (SELECT sum(m) FROM TWIN WHERE i4 < i) FROM generate_series(1, 20) i');
SELECT differences('SELECT i, (SELECT sum(x.i4) FROM (SELECT DISTINCT i4 FROM TWIN WHERE i4 < i) x) FROM generate_series(1, 20) i');
SELECT differences('SELECT i, s.* FROM generate_series(1, 20) i LEFT JOIN LATERAL (SELECT t, max(id) AS max FROM TWIN WHERE id > i GROUP BY t) s ON s.max % 5 = i % 5');
SELECT differences('WITH w AS (SELECT i4, count(*) AS n FROM TWIN GROUP BY i4) SELECT * FROM w x, w y WHERE x.n = y.i4');
SELECT differences('SELECT i4, count(*) FROM (SELECT i4, i2, count(*) FROM TWIN GROUP BY i4, i2) s GROUP BY i4');
SELECT differences('SELECT x.i2, count(*), sum(y.m) FROM TWIN x JOIN TWIN y ON x.id = y.i4 GROUP BY x.i2');
SELECT differences('SELECT count(*) FROM (SELECT i4, count(*) FROM TWIN GROUP BY i4 LIMIT 3) s');

-- as many groups as rows are left to the server, if that is known
SELECT * FROM explained('SELECT id, count(*) FROM mot_twin GROUP BY id');
ALTER TABLE mot_twin ALTER id SET (n_distinct = 20), ALTER m SET (n_distinct = 20);
ANALYZE mot_twin;

-- little memory: the server's node goes on in the middle
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT differences(format('SELECT %s, count(*), sum(m), avg(i8), sum(n), max(t) FROM TWIN GROUP BY %s', k, k))
FROM unnest(ARRAY['id', 'id, t', 'm', 'i4, i8, t']) k;
SELECT differences('SELECT DISTINCT id, t FROM TWIN');
DO $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT id, t, count(*) FROM mot_twin GROUP BY id, t' INTO plan;
	RAISE NOTICE 'spilled: %, rows: %, %', (plan->0->'Plan'->>'Disk Usage')::int > 0, (plan->0->'Plan'->>'Actual Rows')::numeric::int, substring(plan::text from 'yes, [^"]*');
END
$$;
-- also if it is the groups' rows that take it
SET work_mem = '1MB';
DO $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT repeat(t, 250), id, count(*) FROM mot_twin GROUP BY 1, 2' INTO plan;
	RAISE NOTICE 'spilled: %, %', (plan->0->'Plan'->>'Disk Usage')::int > 0, substring(plan::text from 'yes, [^"]*');
END
$$;
RESET work_mem;
RESET hash_mem_multiplier;
SELECT * FROM explained($q$SELECT sum(m), max(t) FROM mot_twin WHERE id > 1000$q$, ', ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF');

-- nearly each row a group of its own: left to the server's node on the way
SELECT differences('SELECT id * 30 + i, count(*), sum(m) FROM TWIN, generate_series(1, 20) i GROUP BY 1');

ALTER TABLE mot_twin ALTER id RESET (n_distinct), ALTER m RESET (n_distinct);
ANALYZE mot_twin;
-- workers
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM explained($q$SELECT i2, sum(m), sum(i8) FROM mot_twin GROUP BY i2$q$);
SELECT d FROM keys, unnest(ARRAY['count(*)', 'sum(i8), avg(i8), sum(i4), avg(i2)', 'sum(m), avg(m), sum(n), avg(n)', 'max(t), max(i4), max(d), avg(m * m)']) a,
	differences(format('SELECT %s, %s FROM TWIN GROUP BY %s', k, a, k)) d
WHERE k IN ('i2', 't', 'c', 'id', 'm');
SELECT differences('SELECT count(*), sum(i8), avg(i4), sum(m), avg(n), max(f8) FROM TWIN');
SELECT differences('SELECT DISTINCT i4, c FROM TWIN');
SET max_parallel_workers_per_gather = 0;

-- a function among the arguments that reads and changes the table
CREATE FUNCTION meddle(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i % 500 = 0 THEN
		UPDATE mot_twin SET m = m + 1 WHERE id = i + 1;
		INSERT INTO mot_twin (id, i2) VALUES (-i, 1);
	END IF;
	RETURN i;
END
$$;
BEGIN;
SELECT i2, count(*), sum(meddle(id)), sum(m) FROM mot_twin GROUP BY i2 ORDER BY i2;
ROLLBACK;

-- a cursor, and changes meanwhile
BEGIN;
DECLARE cur CURSOR FOR SELECT i2, count(*) FROM mot_twin GROUP BY i2;
MOVE 2 FROM cur;
DELETE FROM mot_twin;
SELECT count(*) FROM mot_twin;
MOVE ALL FROM cur;
ROLLBACK;

-- an error on the way leaves nothing behind
DO $$
BEGIN
	PERFORM i2, sum(1 / (i4 - 60)) FROM mot_twin GROUP BY i2;
EXCEPTION WHEN division_by_zero THEN
	RAISE NOTICE '%', (SELECT count(*) FROM (SELECT i2, sum(i4) FROM mot_twin GROUP BY i2) s);
END
$$;

-- foreign tables as well
CREATE FOREIGN TABLE foreign_twin (id int PRIMARY KEY, i4 int, m numeric(12,2)) SERVER mot_server;
INSERT INTO foreign_twin SELECT id, i4, m FROM heap_twin;
ANALYZE foreign_twin;
SELECT count(*) FROM (SELECT i4, sum(m), avg(m), count(*) FROM foreign_twin GROUP BY i4 EXCEPT SELECT i4, sum(m), avg(m), count(*) FROM heap_twin GROUP BY i4) s;

SET mot.jit_above_scanned = 0;
SELECT count(*) FROM (SELECT i4, max(m * 2), count(*) FILTER (WHERE m > 500) FROM foreign_twin GROUP BY i4 EXCEPT SELECT i4, max(m * 2), count(*) FILTER (WHERE m > 500) FROM heap_twin GROUP BY i4) s;
RESET mot.jit_above_scanned;

-- keys that differ in their upper bits only: finding a group takes no more of the processor for that (than 8 times; it was 30)
CREATE TABLE high_bits (i bigint, b bigint, f float8) USING mot;
INSERT INTO high_bits SELECT i / 4, (i / 4)::bigint << 48, i / 4 FROM generate_series(0, 131071) i;
ANALYZE high_bits;
SET work_mem = '64MB';
-- hundredths of a second of this process
CREATE FUNCTION processor_time() RETURNS bigint LANGUAGE sql AS $$
	SELECT f[12]::bigint + f[13]::bigint FROM string_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '.*[)] ', ''), ' ') f $$;
CREATE FUNCTION cost(key text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	began bigint := processor_time();
BEGIN
	FOR i IN 1 .. 5 LOOP
		EXECUTE format('SELECT count(*) FROM (SELECT %I, count(*) FROM high_bits GROUP BY 1) s', key);
	END LOOP;
	RETURN processor_time() - began;
END
$$;
SELECT cost('b') < 8 * cost('i') + 10 AS bigints, cost('f') < 8 * cost('i') + 10 AS floats;
SET mot.jit_above_scanned = 0;
SELECT cost('b') < 8 * cost('i') + 10 AS bigints;
RESET mot.jit_above_scanned;
RESET work_mem;
DROP TABLE high_bits;
DROP FUNCTION cost, processor_time;

-- what is covered, and what is not
SELECT * FROM explained($q$SELECT i4, sum(m) FROM foreign_twin GROUP BY i4$q$);
SELECT * FROM explained($q$SELECT count(DISTINCT i4) FROM mot_twin$q$);
SELECT * FROM explained($q$SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i4) FROM mot_twin$q$);
SELECT * FROM explained($q$SELECT i4, i2, count(*) FROM mot_twin GROUP BY GROUPING SETS (i4, i2)$q$);
SELECT * FROM explained($q$SELECT count(*) FROM mot_twin WHERE id = 7$q$);
SELECT substring("QUERY PLAN" from '"MOT Batches": \[?"(?:Aggregate: )?([^"]*)') FROM explained('SELECT count(*) FROM mot_twin', ', FORMAT JSON');
SELECT * FROM explained($q$SELECT count(*) FROM heap_twin$q$);
EXPLAIN (COSTS OFF) SELECT count(*) FROM mot_twin;
SET mot.batches = off;
SELECT * FROM explained($q$SELECT count(*) FROM mot_twin$q$);
RESET mot.batches;

RESET enable_sort;
RESET jit;
DROP FUNCTION answer, differences, meddle;
DROP TABLE heap_twin, mot_twin, keys, aggregates;
DROP FOREIGN TABLE foreign_twin;
DROP FUNCTION explained;
