--
-- Machine code for scans' conditions, for groups and aggregates' transitions
-- (src/batch/rows.c, compile.c): the same as without.
--
SET max_parallel_workers_per_gather = 0;
SET mot.jit_above_scanned = 0;
SET enable_sort = off;
-- (a plan that sorts all the same looks dear, and the server would compile it)
SET jit = off;
CREATE TABLE scanned (id int, i2 int2, i8 int8, f8 float8, n numeric(12,2), t text, c char(4), d date, b bool, late int) USING mot;
INSERT INTO scanned
SELECT g, nullif(g % 7, 3), nullif(g % 13, 5), g * 0.5, nullif(g % 100, 50) * 1.25, 'text ' || nullif(g % 11, 4), nullif('c' || g % 3, 'c1'),
	date '2020-01-01' + g % 20, nullif(g % 3, 2)::bool FROM generate_series(1, 1000) g;
ALTER TABLE scanned DROP COLUMN late, ADD COLUMN more text DEFAULT 'more', ADD COLUMN less int;
INSERT INTO scanned SELECT id + 1000, i2, i8, f8, n, t, c, d, b, 'other', id FROM scanned;
ANALYZE scanned;

CREATE FUNCTION differences(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
	rows text;
BEGIN
	FOR i IN 0 .. 2 LOOP
		PERFORM set_config('mot.batches', CASE i WHEN 0 THEN 'off' ELSE 'on' END, true),
			set_config('mot.jit_above_scanned', CASE i WHEN 2 THEN '0' ELSE '-1' END, true);
		BEGIN
			EXECUTE format('SELECT array_agg(r::text ORDER BY r::text COLLATE "C")::text FROM (%s) r', query) INTO rows;
		EXCEPTION WHEN OTHERS THEN
			rows = SQLSTATE || ' ' || SQLERRM;
		END;
		answer[i] = rows;
	END LOOP;
	IF answer[0] IS DISTINCT FROM answer[1] OR answer[0] IS DISTINCT FROM answer[2] THEN
		RETURN NEXT format('%s: %s', query, answer);
	END IF;
END
$$;

SELECT d FROM unnest(ARRAY['i2', 'i8, t', 'c', 'n', 'd, b', 'more, less', 'f8', 'id % 10']) k,
	unnest(ARRAY['true', 'id % 2 = 0 AND d > ''2020-01-05''', 't = ''text 5'' OR c = ''c2''', 'b', 'less IS NULL AND n BETWEEN 10 AND 90', 'false']) w,
	differences(format('SELECT %s, count(*), count(t), sum(i2), avg(i8), sum(n), avg(n * (1 - n)), max(d), min(t), sum(f8) FROM scanned WHERE %s GROUP BY %s', k, w, k)) d;
SELECT differences('SELECT count(*), sum(id), sum(n), max(more), count(less), stddev(f8), string_agg(t, '','') FROM scanned WHERE i2 <> 4');
SELECT differences('SELECT DISTINCT i2, t FROM scanned WHERE id > 100');
SELECT differences('SELECT i2, sum(id) FILTER (WHERE b), count(*) FILTER (WHERE 10 / (id % 5 + 1) > 3), sum(id + 1) FROM scanned GROUP BY i2');
SELECT differences('SELECT sum(id) FROM scanned WHERE 1 / (id - 500) = 0');
SELECT differences('SELECT i2, sum(1 / (id - 500)) FROM scanned GROUP BY i2');
SELECT differences('SELECT i, (SELECT sum(n) FROM scanned WHERE id < i) FROM generate_series(1, 5) i');
SELECT differences('SELECT i, s.* FROM generate_series(1, 3) i, LATERAL (SELECT i2, count(*) + i FROM scanned WHERE n > 10 GROUP BY i2) s');
SELECT differences('SELECT more, id, count(*) FROM scanned GROUP BY more, id');
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT differences('SELECT id, t, count(*), sum(n) FROM scanned WHERE id > 10 GROUP BY id, t');
RESET work_mem;
RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT differences('SELECT i2, c, count(*), sum(n), avg(i8) FROM scanned WHERE id % 3 = 0 GROUP BY i2, c');
SET max_parallel_workers_per_gather = 0;

-- own changes
BEGIN;
UPDATE scanned SET n = n + 1 WHERE id < 500;
DELETE FROM scanned WHERE id > 1500;
SELECT differences('SELECT i2, count(*), sum(n) FROM scanned GROUP BY i2');
ROLLBACK;

-- numbers of all forms, for machine code has the usual ones only
CREATE TABLE numbers (id int, a numeric(15,2), b numeric(4,4), c numeric(6,0), d numeric(20,8), e numeric(38,12), f numeric, g numeric(3,-2), i2 int2, i4 int4,
	i8 int8, f4 float4, f8 float8, o oid, ts timestamp, b1 bool, c1 "char", t text, v varchar(20), bp char(6)) USING mot;
INSERT INTO numbers SELECT g, (ARRAY['0', '0.01', '-0.01', '1', '-1.5', '12345678.90', '99999999', '100000000.00', '-9999999999999.99', 'NaN', NULL])[g % 11 + 1]::numeric(15,2),
	(ARRAY['0', '0.0001', '-0.9999', '0.5', NULL])[g % 5 + 1]::numeric(4,4), (ARRAY['0', '7', '-10000', '999999', NULL])[g % 5 + 1]::numeric(6,0),
	(ARRAY['0', '0.00000001', '-123456789012.12345678', '10000', '99999999.9999', NULL, 'NaN'])[g % 7 + 1]::numeric(20,8),
	(ARRAY['0', '99999999999999999999999999.999999999999', '-1e-12', '1e20'])[g % 4 + 1]::numeric(38,12),
	(ARRAY['1e100', '-0.000000000000000000001', 'Infinity', '5', '-Infinity', '1.0'])[CASE WHEN g < 600 THEN g % 2 * 2 + 4 ELSE g % 6 + 1 END]::numeric, (g % 7 * 100)::numeric(3,-2),
	nullif(g % 7, 3), nullif(g, 77) * 1000003, nullif(g % 13, 5) * 700000000000000000, (ARRAY['0', '-0', 'NaN', '1.5', '-inf', NULL])[g % 6 + 1]::float4,
	(ARRAY['0', '-0', 'NaN', '-2.25', 'inf', NULL, '1e10'])[g % 7 + 1]::float8, (g::bigint * 2147483647 % 4294967296)::oid, timestamp '2020-01-01' + g * interval '1 hour',
	nullif(g % 3, 2)::bool, chr(65 + g % 5)::"char", nullif(repeat('x', g % 20), ''), 'v' || g % 9, 'b' || g % 4 FROM generate_series(1, 2000) g;
ALTER TABLE numbers ADD COLUMN late numeric(10,2) DEFAULT 1.25, ADD COLUMN later numeric(8,3);
INSERT INTO numbers (id, a, b, late, later) SELECT id + 2000, a, b, NULL, b FROM numbers WHERE id < 200;
ANALYZE numbers;
CREATE FOREIGN TABLE foreign_numbers (id int PRIMARY KEY, a numeric(15,2), i2 int2, t text) SERVER mot_server;
INSERT INTO foreign_numbers SELECT id, a, i2, t FROM numbers;
ANALYZE foreign_numbers;

SELECT d FROM unnest(ARRAY['id % 7', 'i2', 't', 'bp', 'c1, b1', 'f8, f4', 'a', 'NULL::int']) k,
	unnest(ARRAY['sum(a), avg(a), sum(b), sum(c), avg(d), sum(e), sum(g)', 'sum(a * b), sum(a - b), sum(a * (1 - b) * (1 + b)), avg(c * d), sum(d * d), sum(e * e), sum(e + a)',
		'sum(f), avg(f * a), sum(f - f) FILTER (WHERE f = 5)', 'sum(late), sum(late * later), avg(later + a * b) FILTER (WHERE id % 3 = 0)',
		'sum(i2), avg(i2), sum(i4), avg(i4), sum(i8), avg(i8), sum(i2 + i2), avg(i4 % 10)', 'min(i2), max(i2), min(i4), max(i4), min(i8), max(i8), min(o), max(o), min(ts), max(ts)',
		'min(f4), max(f4), min(f8), max(f8), sum(f4), sum(f8), avg(f8)', 'max(t), min(v), count(t), count(*), bool_or(b1), string_agg(v, '',''), array_agg(id)',
		'sum(CASE WHEN i2 > 2 THEN a ELSE 0 END), sum(a * 1.50), sum(1 - a), sum(a * 0.00000001 * 0.00000001 * 0.00000001), sum(-a)',
		'sum(a * 99999999999999999999 * 99999999999999999), count(*) FILTER (WHERE b1), max(i4) FILTER (WHERE v = ''v3'')',
		'sum((SELECT i2 + max(x) FROM generate_series(1, 2) x))']) a,
	differences(format('SELECT %s, %s FROM numbers GROUP BY %s', k, a, k)) d;
SELECT d FROM unnest(ARRAY['true', 'n.id > 10 AND n.a <> 0', 'n.t LIKE ''xx%'' OR n.i2 IS NULL', 'n.f8 = ''NaN''', 'false']) w,
	unnest(ARRAY['numbers n', 'numbers n JOIN scanned s ON n.id = s.id', 'numbers n LEFT JOIN (SELECT * FROM scanned WHERE id < 50) s ON n.id = s.id AND s.n > 30',
		'(SELECT *, a * 2 AS aa FROM numbers OFFSET 0) n', 'numbers n JOIN scanned s ON n.id % 50 = s.id AND mod(n.id * 3, 10) = s.i8']) f,
	differences(format('SELECT count(*), sum(n.a), sum(n.a * (1 - n.b)), avg(n.i8), min(n.f8), max(n.ts), sum(n.id) FROM %s WHERE %s', f, w)) d;
-- sums that leave 128 bits on the way, and forms that change on the way
SELECT differences('SELECT i2, sum(x * 9999999999999999.9999 * 999999999999999.9999) FROM (SELECT i2, e AS x FROM numbers ORDER BY id) s GROUP BY i2');
SELECT differences('SELECT b1, sum(a), sum(f) FROM numbers WHERE id < 1500 GROUP BY b1');
-- conditions below joins, sorts and sub-queries, and of foreign tables
SELECT differences('SELECT n.id, s.id AS s, n.t FROM numbers n JOIN scanned s ON n.i4 = s.id * 1000003 WHERE n.id % 3 = 1 AND s.t > ''text 2''');
SELECT differences('SELECT id, a FROM numbers WHERE a > 5 OR v = ''v1'' ORDER BY a, id LIMIT 30');
SELECT differences('SELECT * FROM foreign_numbers WHERE id % 3 = 1 AND t > ''xxx''');
SELECT differences('SELECT i2, sum(a), max(t) FROM foreign_numbers WHERE id % 5 < 3 AND a IS NOT NULL GROUP BY i2');
SELECT differences('SELECT n.id, (SELECT count(*) FROM foreign_numbers f WHERE f.i2 = n.i2 AND f.id < 300 + 100) FROM numbers n WHERE n.id < 20');
SELECT differences('SELECT f.id FROM foreign_numbers f WHERE 1 / (f.id - 1000) = 0');
SELECT differences('SELECT id, tableoid::regclass, ctid IS NULL AS c FROM numbers WHERE i2 = 4');
PREPARE report(int) AS SELECT i2, sum(a) FILTER (WHERE id > $1), count(*) FROM numbers WHERE id > $1 GROUP BY i2 ORDER BY i2;
SET plan_cache_mode = force_generic_plan;
EXECUTE report(2100);
RESET plan_cache_mode;
DEALLOCATE report;
BEGIN;
DECLARE cur SCROLL CURSOR FOR SELECT id % 500 FROM numbers WHERE id % 500 = 0;
FETCH 3 FROM cur;
FETCH BACKWARD 2 FROM cur;
FETCH ALL FROM cur;
CLOSE cur;
-- where it is, and system columns
DECLARE cur CURSOR FOR SELECT t FROM numbers WHERE id = 700;
FETCH cur;
UPDATE numbers SET i2 = -700 WHERE CURRENT OF cur;
SELECT id, i2 FROM numbers WHERE i2 = -700;
DECLARE other CURSOR FOR SELECT t FROM foreign_numbers WHERE id % 3000 = 701;
FETCH other;
DELETE FROM foreign_numbers WHERE CURRENT OF other;
SELECT count(*) FROM foreign_numbers WHERE id = 701;
SELECT count(DISTINCT x.ctid) FROM numbers x JOIN numbers y ON x.ctid = y.ctid AND x.id = y.id WHERE x.id % 2 = 0 AND y.id < 1000;
ROLLBACK;
-- joins whose rows are asked for ahead; in several batches; with computed keys
CREATE TABLE many (k int, l bigint, t text, n numeric(8,2)) USING mot;
INSERT INTO many SELECT i * 7919 % 20011, nullif(i % 5000, 7), 'text of ' || i, i FROM generate_series(1, 20000) i;
ANALYZE many;
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE TABLE joins (j text);
INSERT INTO joins SELECT format('SELECT md5(string_agg((x.t, y.n, x.k)::text, '','' ORDER BY x.t, x.k, y.n)) FROM %s', j) FROM unnest(ARRAY['many x JOIN many y ON x.k = y.k',
	'many x LEFT JOIN many y ON x.k = y.l AND x.l = y.k', 'many x JOIN many y ON mod(x.k * 3, 20011) = y.l', 'many x FULL JOIN many y ON x.k = y.l',
	'(SELECT * FROM many WHERE n > 15000) x LEFT JOIN many y ON x.l = y.l AND y.n < 10000', 'many x JOIN many y ON x.t = y.t AND x.k > 100',
	'many x JOIN (SELECT DISTINCT l, n, k FROM many WHERE k < 3000) y ON nullif(x.k, 100) = y.l']) j;
SELECT d FROM joins, differences(j) d;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT d FROM joins, differences(j) d;
SELECT differences('SELECT count(*), sum(x.n * y.n) FROM many x JOIN many y ON x.k = y.k');
RESET work_mem;
RESET hash_mem_multiplier;
RESET enable_mergejoin;
RESET enable_nestloop;

-- what is said of it, be there a compiler or not
CREATE FUNCTION said(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	RETURN replace((SELECT string_agg(m[1], ' | ') FROM regexp_matches(plan::text, '"(?:[^":]*: )?(yes, [^"]*)"', 'g') m), 'without machine code (there is no compiler (mot_jit is not installed))', 'by machine code');
END
$$;
SELECT said('SELECT i2, sum(a) FROM numbers WHERE id > 5 GROUP BY i2');
SELECT said('SELECT id FROM foreign_numbers WHERE id % 3 = 1 AND t > ''xxx''');
SET mot.jit_above_scanned = 1000000;
SELECT said('SELECT i2, sum(a) FROM numbers WHERE id > 5 GROUP BY i2');
SET mot.jit_above_scanned = -1;
SELECT said('SELECT i2, sum(a) FROM numbers WHERE id > 5 GROUP BY i2');

DROP FUNCTION differences, said;
DROP FOREIGN TABLE foreign_numbers;
DROP TABLE scanned, numbers, many, joins;
