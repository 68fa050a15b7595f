--
-- Aggregates right above a scan, with machine code for its conditions and columns
-- (src/batch/rows.c): the same as without.
--
SET max_parallel_workers_per_gather = 0;
SET mot.jit_above_scanned = 0;
SET enable_sort = off;
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

DROP FUNCTION differences;
DROP TABLE scanned;
